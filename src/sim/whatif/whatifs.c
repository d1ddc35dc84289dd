/* SPDX-License-Identifier: Apache-2.0 */
/* The list of what-ifs, and how one is asked for. */
#include "sim/whatif/whatifs.h"

#include <math.h>
#include <reprise/question.h>
#include <stdlib.h>
#include <string.h>

const struct rp_whatif *const rp_whatifs[] = {&rp_whatif_scale,
                                              &rp_whatif_cuda_graphs,
                                              &rp_whatif_fused_optimizer,
                                              &rp_whatif_bucket,
                                              &rp_whatif_ranks,
                                              &rp_whatif_bandwidth,
                                              &rp_whatif_latency,
                                              &rp_whatif_straggler,
                                              &rp_whatif_no_sync,
                                              &rp_whatif_no_profiler,
                                              &rp_whatif_dataloader,
                                              &rp_whatif_overlap,
                                              &rp_whatif_no_overlap,
                                              &rp_whatif_parallel_update,
                                              &rp_whatif_swap,
                                              &rp_whatif_gpu,
                                              &rp_whatif_dtype,
                                              &rp_whatif_fuse,
                                              &rp_whatif_recompute,
                                              NULL};

enum { LONGEST = 256 };

static const struct rp_whatif *find(const char *name)
{
    size_t i;

    for (i = 0; rp_whatifs[i]; i++)
        if (!strcmp(rp_whatifs[i]->name, name))
            return rp_whatifs[i];
    return NULL;
}

static enum rp_code unknown(const char *text, const char *name, struct rp_err *err)
{
    const char *words[sizeof rp_whatifs / sizeof rp_whatifs[0]] = {NULL}, *near;
    size_t i;

    for (i = 0; rp_whatifs[i]; i++)
        words[i] = rp_whatifs[i]->name;
    near = rp_closest_word(name, words);
    return rp_err_set(err, RP_USAGE, "there is no what-if '%s'%s%s%s; '--what-if help' lists them",
                      text, near ? ": did you mean '" : "", near ? near : "", near ? "'" : "");
}

/* One: cut into name, subject and value in a buffer of its own. */
static enum rp_code cut(char *buffer, struct rp_whatif_args *args, const struct rp_whatif **row,
                        struct rp_err *err)
{
    char *value = strchr(buffer, '='), *subject = strchr(buffer, ':');

    if (subject && (!value || subject < value)) {
        /* A kernel's name may hold '=': the last one counts. */
        value = strrchr(subject, '=');
        *subject++ = '\0';
        args->subject = subject;
    }
    if (value) {
        *value++ = '\0';
        args->value = value;
    }
    *row = find(buffer);
    return *row ? RP_OK : unknown(args->text, buffer, err);
}

/* Those that make tasks, or the others. */
static enum rp_code apply_some(struct rp_sim_run *run, const char *text, bool makers,
                               struct rp_err *err)
{
    const char *at = text;

    do {
        size_t len = strcspn(at, "+");
        char buffer[LONGEST], whole[LONGEST];
        struct rp_whatif_args args = {.text = whole};
        const struct rp_whatif *row;

        if (!len)
            return rp_err_set(err, RP_USAGE,
                              "'%s': a what-if is missing; '--what-if help' lists them", text);
        if (len >= LONGEST)
            return rp_err_set(err, RP_USAGE, "the what-if '%.60s…' is too long", at);
        memcpy(buffer, at, len);
        buffer[len] = '\0';
        memcpy(whole, buffer, len + 1);
        RP_TRY(cut(buffer, &args, &row, err));
        if (row->makes_tasks == makers)
            RP_TRY(row->apply(run, &args, err));
        at += len;
    } while (*at++);
    return RP_OK;
}

/* Whether one of the joined ones has that name. */
static bool names(const char *text, const char *name)
{
    size_t len = strlen(name);

    for (; *text; text += strcspn(text, "+"), text += *text == '+')
        if (strcspn(text, ":=+") == len && !memcmp(text, name, len))
            return true;
    return false;
}

enum rp_code rp_whatif_apply(struct rp_sim_run *run, const char *text, struct rp_err *err)
{
    run->fuses = names(text, rp_whatif_fused_optimizer.name);
    RP_TRY(apply_some(run, text, true, err));
    return apply_some(run, text, false, err);
}

enum rp_code rp_whatif_assumes(const char *text, struct rp_arena *arena, const char **out,
                               struct rp_err *err)
{
    *out = "";
    while (*text) {
        size_t i, len = strcspn(text, ":=+");

        for (i = 0; rp_whatifs[i]; i++)
            if (strlen(rp_whatifs[i]->name) == len && !memcmp(rp_whatifs[i]->name, text, len))
                *out = rp_arena_printf(arena, "%s%s%s", *out, **out ? "; " : "",
                                       rp_whatifs[i]->assumes);
        if (!*out)
            return rp_err_nomem(err, "simulating");
        text += strcspn(text, "+");
        text += *text == '+';
    }
    return RP_OK;
}

enum rp_code rp_whatif_factor(const struct rp_whatif_args *args, double *out, struct rp_err *err)
{
    char *end = NULL;

    *out = args->value ? strtod(args->value, &end) : 0;
    if (end && !strcmp(end, "%"))
        *out /= 100;
    else if (end && *end && strcmp(end, "x") != 0)
        end = NULL;
    if (!end || end == args->value || !isfinite(*out) || *out <= 0 || *out > 1e6)
        return rp_err_set(err, RP_USAGE,
                          "'%s': a factor such as 0.5, 2 or 50%% is expected behind '='",
                          args->text);
    return RP_OK;
}
