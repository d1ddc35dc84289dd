/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether two runs changed the parameters in the same way. The file of a run has a line
 * that is equal only if all parameters are, a line with numbers of steps, and for each of them by
 * how much a sample of the parameters had changed. Comparing the loss would not be enough: with a
 * third of the gradients set to zero it differs by less than 1e-4 on some models.
 */
#include "io/input.h"
#include "try/session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct update {
    struct rp_input *in;
    const char *line;
    size_t nline, nblocks, n; /* n: values of a block */
    size_t steps[RP_TRY_COMPARED];
    const char *values; /* floats, unaligned */
};

static bool read_steps(struct update *u, const char *at, const char *end)
{
    while (at < end && u->nblocks < RP_TRY_COMPARED) {
        size_t steps = 0;

        for (; at < end && *at >= '0' && *at <= '9' && steps < 1000000; at++)
            steps = 10 * steps + (size_t)(*at - '0');
        if (!steps || (at < end && *at != ' '))
            return false;
        u->steps[u->nblocks++] = steps;
        at += at < end;
    }
    return u->nblocks && at >= end;
}

static enum rp_code update_open(const char *path, struct update *out, struct rp_err *err)
{
    const uint8_t *bytes, *end, *last = NULL;
    size_t n;

    RP_TRY(rp_input_open(path, NULL, &out->in, err));
    RP_TRY(rp_input_slurp(out->in, &bytes, &n, err));
    end = memchr(bytes, '\n', n);
    if (end)
        last = memchr(end + 1, '\n', n - (size_t)(end + 1 - bytes));
    if (!last || !read_steps(out, (const char *)end + 1, (const char *)last))
        return rp_err_set(err, RP_FORMAT, "'%s' is not an update of parameters", path);
    out->line = (const char *)bytes;
    out->nline = (size_t)(end - bytes);
    out->values = (const char *)last + 1;
    out->n = (n - (size_t)(last + 1 - bytes)) / sizeof(float) / out->nblocks;
    return RP_OK;
}

static double value_at(const struct update *u, size_t i)
{
    float value;

    memcpy(&value, u->values + i * sizeof value, sizeof value);
    return (double)value;
}

/* Also tells the size of the first over that of the second. */
static double block_difference(const struct update *a, const struct update *b, size_t block,
                               double *sizes)
{
    double apart = 0, size = 0, own = 0;

    for (size_t i = block * a->n; i < (block + 1) * a->n; i++) {
        double x = value_at(a, i), y = value_at(b, i);

        apart += (x - y) * (x - y);
        size += y * y;
        own += x * x;
    }
    *sizes = own == size ? 1 : sqrt(own / size);
    return !isfinite(apart) || !isfinite(size) ? NAN
           : size > 0                          ? sqrt(apart / size)
           : apart > 0                         ? 1
                                               : 0;
}

static void difference(const struct update *a, const struct update *b,
                       struct rp_try_difference *out)
{
    *out = (struct rp_try_difference){.n = a->nblocks};
    out->exact = a->nline == b->nline && !memcmp(a->line, b->line, a->nline);
    memcpy(out->steps, a->steps, sizeof out->steps);
    for (size_t i = 0; i < a->nblocks; i++)
        out->ratio[i] = block_difference(a, b, i, &out->size[i]);
}

static enum rp_code compare_files(const char *path, const char *with, struct rp_try_difference *out,
                                  struct rp_err *err)
{
    struct update a = {0}, b = {0};
    enum rp_code code = update_open(path, &a, err);

    if (code == RP_OK)
        code = update_open(with, &b, err);
    if (code == RP_OK &&
        (a.n != b.n || a.nblocks != b.nblocks || memcmp(a.steps, b.steps, sizeof a.steps) != 0))
        code = rp_err_set(err, RP_FORMAT, "the runs have different numbers of parameters");
    if (code == RP_OK)
        difference(&a, &b, out);
    rp_input_close(a.in);
    rp_input_close(b.in);
    return code;
}

/* The file of a process; that of the first has no number. */
static bool file_of(const char *path, size_t rank, char *out, size_t cap)
{
    if (rank)
        snprintf(out, cap, "%s.%zu", path, rank);
    else
        snprintf(out, cap, "%s", path);
    return !access(out, F_OK);
}

static void add_rank(struct rp_try_difference *all, const struct rp_try_difference *rank)
{
    all->exact = all->exact && rank->exact;
    for (size_t i = 0; i < all->n && i < rank->n; i++) {
        if (isnan(rank->ratio[i]) || rank->ratio[i] > all->ratio[i])
            all->ratio[i] = rank->ratio[i];
        if (isnan(rank->size[i]) || fabs(log(rank->size[i])) > fabs(log(all->size[i])))
            all->size[i] = rank->size[i];
    }
}

enum rp_code rp_try_compare(const char *path, const char *with, struct rp_try_difference *out,
                            struct rp_err *err)
{
    char one[2 * RP_TRY_PATH + 16], two[2 * RP_TRY_PATH + 16];

    RP_TRY(compare_files(path, with, out, err));
    for (size_t rank = 1; rank < RP_TRY_RANKS; rank++) {
        bool has = file_of(path, rank, one, sizeof one),
             other = file_of(with, rank, two, sizeof two);
        struct rp_try_difference next;

        if (!has && !other)
            break;
        if (has != other)
            return rp_err_set(err, RP_FORMAT, "the runs have different numbers of processes");
        RP_TRY(compare_files(one, two, &next, err));
        add_rank(out, &next);
    }
    return RP_OK;
}

void rp_try_move_update(const char *path, const char *to)
{
    char one[2 * RP_TRY_PATH + 16], two[2 * RP_TRY_PATH + 16];

    for (size_t rank = 0; rank < RP_TRY_RANKS && file_of(path, rank, one, sizeof one); rank++) {
        (void)file_of(to, rank, two, sizeof two);
        (void)!rename(one, two);
    }
}
