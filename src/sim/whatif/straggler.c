/* SPDX-License-Identifier: Apache-2.0 */
/*
 * straggler: ranks that are slower than the others are not. A rank's work in a step is what it
 * computes, without waiting and without transfers; it is scaled to the median over the ranks.
 *
 *     median        every rank takes the median
 *     remove:<N>    rank N takes the median of the others, if it took longer
 *
 * With more ranks the slowest of them is slower: of n ranks whose work differs like a normal
 * distribution the slowest is expected at mean + c(n) times the deviation, where c(n) is Blom's
 * approximation, the normal quantile of (n - 3/8) / (n + 1/4).
 */
#include "sim/whatif/nodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct work {
    int64_t *ns; /* by rank and step */
    size_t nranks, nsteps;
    bool on_host; /* there is no device: threads do the work */
};

/* Where the work of a node is summed up, or NULL: it is none. */
static int64_t *sum_of(const struct work *w, const struct rp_sim_run *run, uint32_t node)
{
    uint16_t step = rp_sim_note_of(run, node)->step;
    uint32_t rank = rp_sim_node(run, node)->rank;

    if (step >= w->nsteps || rank >= w->nranks || rp_sim_is_comm(run, node))
        return NULL;
    if (!(w->on_host ? rp_sim_is_host(run, node) : rp_sim_is_device_work(run, node)))
        return NULL;
    return &w->ns[rank * w->nsteps + step];
}

static void sum_work(struct work *w, const struct rp_sim_run *run)
{
    uint32_t i;

    for (i = 0; i < rp_sim_nnodes(run); i++) {
        int64_t *sum = sum_of(w, run, i);

        if (sum && __builtin_add_overflow(*sum, run->overlay.dur_ns.at[i], sum))
            *sum = INT64_MAX;
    }
}

static enum rp_code work_init(struct work *w, const struct rp_sim_run *run, struct rp_err *err)
{
    *w = (struct work){.nranks = run->nranks * run->parts[0]->nranks,
                       .nsteps = run->parts[0]->nsteps,
                       .on_host = !rp_sim_has_device(run)};
    w->ns = calloc(w->nranks * w->nsteps, sizeof *w->ns);
    if (!w->ns)
        return rp_err_nomem(err, "simulating");
    sum_work(w, run);
    return RP_OK;
}

/* Over the ranks, one left out (or none: RP_NONE); the mean of the middle two of an even count. */
static double median_of(const struct work *w, size_t step, uint32_t without, int64_t *scratch)
{
    int64_t low, high;
    size_t r, n = 0;

    for (r = 0; r < w->nranks; r++)
        if (r != without)
            scratch[n++] = w->ns[r * w->nsteps + step];
    rp_ns_sort(scratch, n);
    if (!n)
        return 0;
    low = scratch[(n - 1) / 2];
    high = scratch[n / 2];
    return (double)low / 2 + (double)high / 2;
}

static enum rp_code level_ranks(struct rp_sim_run *run, struct work *w, uint32_t only,
                                double *median, struct rp_err *err)
{
    uint32_t i;

    for (i = 0; i < rp_sim_nnodes(run); i++) {
        const int64_t *sum = sum_of(w, run, i);
        double to = sum ? median[rp_sim_note_of(run, i)->step] : 0;

        if (!sum || *sum <= 0 || (only != RP_NONE && rp_sim_node(run, i)->rank != only) ||
            (only != RP_NONE && to >= (double)*sum))
            continue;
        RP_TRY(rp_sim_scale_node(run, i, to / (double)*sum, err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ more ranks */

/* The normal quantile, by bisection: it is needed only twice per prediction. */
static double normal_quantile(double p)
{
    double low = -8, high = 8;
    int i;

    for (i = 0; i < 60; i++) {
        double middle = (low + high) / 2;

        if (erfc(-middle / sqrt(2)) / 2 < p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

static double slowest_of(double n)
{
    return n > 1 ? normal_quantile((n - 0.375) / (n + 0.25)) : 0;
}

/* The slowest work in a step, and what it is expected to be among n ranks. */
static void expect_slowest(const struct work *w, size_t step, double n, int64_t *slowest,
                           double *then)
{
    double sum = 0, squares = 0, mean;
    size_t r;

    *slowest = 0;
    for (r = 0; r < w->nranks; r++) {
        int64_t x = w->ns[r * w->nsteps + step];

        sum += (double)x;
        *slowest = x > *slowest ? x : *slowest;
    }
    mean = sum / (double)w->nranks;
    for (r = 0; r < w->nranks; r++) {
        double d = (double)w->ns[r * w->nsteps + step] - mean;

        squares += d * d;
    }
    *then = (double)*slowest + sqrt(squares / (double)(w->nranks - 1)) *
                                   (slowest_of(n) - slowest_of((double)w->nranks));
}

/* With more ranks, the slowest rank alone becomes slower; with fewer, all ranks that are slower
   than the expected slowest become that fast. */
static enum rp_code widen_step(struct rp_sim_run *run, const struct work *w, size_t step, double n,
                               struct rp_err *err)
{
    int64_t slowest;
    double then;
    uint32_t i;

    expect_slowest(w, step, n, &slowest, &then);
    for (i = 0; i < rp_sim_nnodes(run); i++) {
        const int64_t *sum = rp_sim_note_of(run, i)->step == step ? sum_of(w, run, i) : NULL;

        if (sum && *sum > 0 && then > 0 && (*sum == slowest || (double)*sum > then))
            RP_TRY(rp_sim_scale_node(run, i, then / (double)*sum, err));
    }
    return RP_OK;
}

enum rp_code rp_sim_expect_slowest(struct rp_sim_run *run, double n, struct rp_err *err)
{
    struct work w;
    enum rp_code code = RP_OK;
    size_t step;

    RP_TRY(work_init(&w, run, err));
    for (step = 0; w.nranks > 1 && step < w.nsteps && code == RP_OK; step++)
        code = widen_step(run, &w, step, n, err);
    free(w.ns);
    return code;
}

/* ------------------------------------------------------------------ asking */

static enum rp_code read_which(const struct rp_whatif_args *args, const struct work *w,
                               uint32_t *only, struct rp_err *err)
{
    const char *digits = args->value && !strncmp(args->value, "remove:", 7) ? args->value + 7 : "";
    unsigned long rank;
    char *end;

    *only = RP_NONE;
    if (args->value && !strcmp(args->value, "median"))
        return RP_OK;
    rank = strtoul(digits, &end, 10);
    if (end == digits || *end || *digits == '-')
        return rp_err_set(err, RP_USAGE,
                          "'%s': expected straggler=median or straggler=remove:<rank>", args->text);
    if (rank >= w->nranks)
        return rp_err_set(err, RP_UNSUPPORTED, "'%s': the run has ranks 0 to %zu", args->text,
                          w->nranks - 1);
    *only = (uint32_t)rank;
    return RP_OK;
}

static enum rp_code straggler_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                    struct rp_err *err)
{
    struct work w;
    int64_t *scratch;
    double *median;
    uint32_t only = RP_NONE;
    enum rp_code code;
    size_t i;

    if (run->parts[0]->stages)
        return rp_whatif_straggler_timeline(run, args, err);
    if (run->nranks * run->parts[0]->nranks < 2)
        return rp_err_set(err, RP_UNSUPPORTED, "straggler: the simulation has only one rank");
    RP_TRY(work_init(&w, run, err));
    scratch = calloc(w.nranks, sizeof *scratch);
    median = calloc(w.nsteps, sizeof *median);
    code = scratch && median ? read_which(args, &w, &only, err) : rp_err_nomem(err, "simulating");
    for (i = 0; i < w.nsteps && code == RP_OK; i++)
        median[i] = median_of(&w, i, only, scratch);
    if (code == RP_OK)
        code = level_ranks(run, &w, only, median, err);
    free(w.ns);
    free(scratch);
    free(median);
    return code;
}

const struct rp_whatif rp_whatif_straggler = {
    .name = "straggler",
    .form = "straggler=median|remove:<rank>",
    .summary = "every rank works in the median time of all, or one slow rank in that of the "
               "others; for the timeline of a pipeline ideal: every operation takes the usual time "
               "of its type, or all except those of stage:<N>, dp:<N> or type:<name>",
    .assumes = "a slow rank is equally slow in all work of a step, and ranks wait for each other "
               "no longer than necessary",
    .value = RP_WHATIF_NAME,
    .apply = straggler_apply};
