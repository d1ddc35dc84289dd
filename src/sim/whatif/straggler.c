/* SPDX-License-Identifier: Apache-2.0 */
/*
 * straggler: ranks that are slower than the others become as fast. A rank's work is what it
 * computes, without waiting and without transfers; it is set to the median over the ranks,
 * separately for its device and its host. The host's work includes what its threads do between
 * their tasks, because a thread that sleeps or runs code that was not recorded is late, too.
 *
 *     median        every rank takes the median; of two ranks, the time of the one that works less.
 * Beside devices only work that is slower than the same work elsewhere (repair.c) remove:<N> rank N
 * takes the median of the others, if it took longer
 *
 * Work is compared between one collective and the next (stretches), so that time is removed where
 * the rank was late. On a host the moments at which collectives begin move from rank to rank, and
 * with them work from one stretch to the next: so no more is removed from the stretches of a step
 * than its excess as a whole. Beside a device the host's work is only made shorter: the host of a
 * rank that waits is often blocked in launches, which is not work.
 *
 * With more ranks the slowest of them is slower: of n ranks whose work differs like a normal
 * distribution the slowest is expected at mean + c(n) times the deviation, where c(n) is Blom's
 * approximation, the normal quantile of (n - 3/8) / (n + 1/4).
 */
#include "base/order.h"
#include "sim/model/steps.h"
#include "sim/whatif/nodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_STRETCHES 64
RP_LIMIT(MOST_STRETCHES, "stretches of a step", "of more, neighbours are levelled as one");
#define SAME_RANK 0.66
RP_DECISION(SAME_RANK, "of the steps",
            "in two of three one rank is the slowest: else it is ordinary variation",
            "sim/the_same_rank_is_slow_in_two_of_three_steps");

struct arrival { /* arrival: of a rank at a collective */
    uint32_t at; /* rank and step, as below */
    int64_t ns;
};

struct work {
    int64_t *ns;    /* by rank, step and stretch */
    double *factor; /* by the same index: its factor */
    size_t nranks, nsteps, nstretches;
    bool on_host; /* the work is that of threads, not of the device */
    bool gaps;    /* includes what they do between their tasks */
    RP_VEC(struct arrival) arrivals;
    uint32_t *first; /* by rank and step: index into arrivals; NULL if steps are not divided */
    bool *alike;     /* by step: all ranks arrive equally often */
};

static size_t place_of(const struct work *w, const struct rp_sim_run *run, uint32_t node)
{
    return rp_sim_node(run, node)->rank * w->nsteps + rp_sim_note_of(run, node)->step;
}

/* The stretch of its step in which a node begins. */
static size_t stretch_of(const struct work *w, const struct rp_sim_run *run, uint32_t node)
{
    size_t at = place_of(w, run, node), low, n, before;

    if (!w->first || !w->arrivals.at || !w->alike[at % w->nsteps])
        return 0;
    RP_LOWER_BOUND_FROM(low, w->first[at], w->first[at + 1],
                        w->arrivals.at[low].ns <= rp_sim_node(run, node)->start_ns);
    n = w->first[at + 1] - w->first[at] + 1;
    before = low - w->first[at];
    return n <= w->nstretches ? before : before * w->nstretches / n;
}

/* The cell in which the work of a node is summed up, or SIZE_MAX if it is not work. */
static size_t cell_of(const struct work *w, const struct rp_sim_run *run, uint32_t node)
{
    if (rp_sim_note_of(run, node)->step >= w->nsteps || rp_sim_node(run, node)->rank >= w->nranks ||
        rp_sim_is_comm(run, node))
        return SIZE_MAX;
    if (!(w->on_host ? rp_sim_is_host(run, node) : rp_sim_is_device_work(run, node)))
        return SIZE_MAX;
    return place_of(w, run, node) * w->nstretches + stretch_of(w, run, node);
}

/* The same for the time of a thread between two of its tasks, or from the end of what it waited for
   to its next task. */
static size_t gap_cell(const struct work *w, const struct rp_sim_run *run, uint32_t edge)
{
    const struct rp_task_link *link = &run->tasks.edges.at[edge];
    unsigned kind = RP_SIM_EDGE_KIND(link->flags);

    return (kind == RP_SG_ORDER || kind == RP_SG_HAND_OFF) && run->overlay.lag_ns.at[edge] > 0
               ? cell_of(w, run, link->to)
               : SIZE_MAX;
}

static void add_work(struct work *w, size_t cell, int64_t ns)
{
    if (cell != SIZE_MAX && __builtin_add_overflow(w->ns[cell], ns, &w->ns[cell]))
        w->ns[cell] = INT64_MAX;
}

/* ------------------------------------------------------------------ stretches */

RP_ORDER(by_place, struct arrival, RP_UP(at), RP_UP(ns))

/* Divides steps at the arrivals of each rank, if all ranks have equally many. */
static enum rp_code find_stretches(struct work *w, const struct rp_sim_run *run, struct rp_err *err)
{
    size_t at, i = 0, most = 0, n = w->nranks * w->nsteps;

    for (uint32_t k = 0; k < rp_sim_nnodes(run); k++) {
        const struct rp_sg_node *node = rp_sim_node(run, k);

        if (node->kind == RP_SG_ARRIVE && node->rank < w->nranks &&
            rp_sim_note_of(run, k)->step < w->nsteps)
            RP_TRY(rp_vec_push(&w->arrivals,
                               ((struct arrival){(uint32_t)place_of(w, run, k), node->start_ns}),
                               err));
    }
    if (w->arrivals.n)
        qsort(w->arrivals.at, w->arrivals.n, sizeof *w->arrivals.at, by_place);
    w->first = calloc(n + 1, sizeof *w->first);
    w->alike = calloc(w->nsteps, sizeof *w->alike);
    if (!w->first || !w->alike)
        return rp_err_nomem(err, "simulating");
    for (at = 0; at < n; at++) {
        size_t count, before = at % w->nsteps;

        w->first[at] = (uint32_t)i;
        while (i < w->arrivals.n && w->arrivals.at[i].at == at)
            i++;
        count = i - w->first[at];
        most = count > most ? count : most;
        w->alike[before] = at < w->nsteps ||
                           (w->alike[before] && count == w->first[before + 1] - w->first[before]);
    }
    w->first[n] = (uint32_t)i;
    w->nstretches = most + 1 < MOST_STRETCHES ? most + 1 : MOST_STRETCHES;
    return RP_OK;
}

static void work_release(struct work *w)
{
    free(w->ns);
    free(w->factor);
    free(w->first);
    free(w->alike);
    rp_vec_release(&w->arrivals);
}

/* Must be released also after a failure. */
static enum rp_code work_init(struct work *w, const struct rp_sim_run *run, bool on_host, bool gaps,
                              bool whole_steps, struct rp_err *err)
{
    *w = (struct work){.nranks = run->nranks * run->parts[0]->nranks,
                       .nsteps = run->parts[0]->nsteps,
                       .nstretches = 1,
                       .on_host = on_host,
                       .gaps = gaps};
    if (!whole_steps)
        RP_TRY(find_stretches(w, run, err));
    w->ns = calloc(w->nranks * w->nsteps * w->nstretches + 1, sizeof *w->ns);
    w->factor = calloc(w->nranks * w->nsteps * w->nstretches + 1, sizeof *w->factor);
    if (!w->ns || !w->factor)
        return rp_err_nomem(err, "simulating");
    for (uint32_t i = 0; i < rp_sim_nnodes(run); i++)
        add_work(w, cell_of(w, run, i), run->overlay.dur_ns.at[i]);
    for (uint32_t i = 0; w->gaps && i < run->tasks.edges.n; i++)
        add_work(w, gap_cell(w, run, i), run->overlay.lag_ns.at[i]);
    return RP_OK;
}

/* ------------------------------------------------------------------ levelling */

/* What is levelled, and how. */
struct level {
    struct work *work;
    uint32_t only; /* only this rank, to the others; or RP_NONE: all */
    bool shorten;  /* shortens what took longer, and changes nothing else */
    int64_t *scratch;
    double *median; /* by stretch of a step; the last is for the whole step */
    size_t fastest; /* if there are two ranks, the one that works less; else SIZE_MAX */
};

/* Whether a rank recorded a step without detail, so that its waits there look like work. */
static bool is_bare(const struct rp_sim_run *run, size_t step)
{
    for (size_t r = 0; r < run->nranks; r++)
        if (rp_sim_step_is_bare(run->parts[r], step))
            return true;
    return false;
}

static int64_t whole_of(const struct work *w, size_t place)
{
    int64_t sum = 0;

    for (size_t k = 0; k < w->nstretches; k++)
        sum = rp_ns_sum(sum, w->ns[place * w->nstretches + k]);
    return sum;
}

/* With two ranks nothing tells which one is usual; the slower one might become like the other. */
static size_t find_fastest(const struct rp_sim_run *run, const struct level *l)
{
    int64_t sum[2] = {0, 0};

    if (l->work->nranks != 2 || l->only != RP_NONE)
        return SIZE_MAX;
    for (size_t r = 0; r < 2; r++)
        for (size_t step = 0; step < l->work->nsteps; step++)
            if (!is_bare(run, step))
                sum[r] = rp_ns_sum(sum[r], whole_of(l->work, r * l->work->nsteps + step));
    return sum[1] < sum[0];
}

static void find_medians(const struct level *l, size_t step)
{
    const struct work *w = l->work;
    size_t r, k, n;

    for (k = 0; k <= w->nstretches; k++) {
        for (r = n = 0; r < w->nranks; r++)
            if (r != l->only && (l->fastest == SIZE_MAX || r == l->fastest)) {
                size_t place = r * w->nsteps + step;

                l->scratch[n++] =
                    k < w->nstretches ? w->ns[place * w->nstretches + k] : whole_of(w, place);
            }

        /* The median of numbers (for an even count, the mean of the middle two). */
        size_t low = n ? (n - 1) / 2 : 0, high = n / 2;
        rp_ns_sort(l->scratch, n);
        l->median[k] = n ? (double)l->scratch[low] / 2 + (double)l->scratch[high] / 2 : 0;
    }
}

/* The fraction of the stretches' excess that the step has as a whole. */
static double taken_part(const struct level *l, size_t place)
{
    const struct work *w = l->work;
    double stretches = 0, step = (double)whole_of(w, place) - l->median[w->nstretches];

    for (size_t k = 0; k < w->nstretches; k++) {
        double more = (double)w->ns[place * w->nstretches + k] - l->median[k];

        stretches += more > 0 ? more : 0;
    }
    return step <= 0 || stretches <= 0 ? 0 : step < stretches ? step / stretches : 1;
}

static void find_factors(const struct level *l, size_t place)
{
    const struct work *w = l->work;
    double part = w->on_host ? taken_part(l, place) : 1, whole = (double)whole_of(w, place);
    double to_median = whole > 0 ? l->median[w->nstretches] / whole : 1;

    for (size_t k = 0; k < w->nstretches; k++) {
        double is = (double)w->ns[place * w->nstretches + k], to = l->median[k];
        double *factor = &w->factor[place * w->nstretches + k];

        if (w->on_host && part <= 0) /* it took less time than usual */
            *factor = l->shorten && to_median > 1 ? 1 : to_median;
        else if (is > 0 && (to < is || !(l->shorten || w->on_host)))
            *factor = 1 - part * (is - to) / is;
    }
}

static enum rp_code apply_factors(struct rp_sim_run *run, const struct work *w, struct rp_err *err)
{
    for (uint32_t i = 0; i < rp_sim_nnodes(run); i++) {
        size_t cell = cell_of(w, run, i);

        if (cell != SIZE_MAX && w->factor[cell] != 1)
            RP_TRY(rp_sim_scale_node(run, i, w->factor[cell], err));
    }
    for (uint32_t i = 0; w->gaps && i < run->tasks.edges.n; i++) {
        size_t cell = gap_cell(w, run, i);

        if (cell != SIZE_MAX && w->factor[cell] != 1)
            RP_TRY(rp_overlay_set_lag(
                &run->overlay, i, rp_sim_scaled(run->overlay.lag_ns.at[i], w->factor[cell]), err));
    }
    return RP_OK;
}

static enum rp_code level_ranks(struct rp_sim_run *run, struct level *l, struct rp_err *err)
{
    struct work *w = l->work;

    for (size_t i = 0; i < w->nranks * w->nsteps * w->nstretches; i++)
        w->factor[i] = 1;
    l->fastest = find_fastest(run, l);
    for (size_t i = 0; i < w->nsteps; i++) {
        if (is_bare(run, i))
            continue;
        find_medians(l, i);
        for (size_t r = 0; r < w->nranks; r++)
            if (l->only == RP_NONE || r == l->only)
                find_factors(l, r * w->nsteps + i);
    }
    return apply_factors(run, w, err);
}

/* Levels the work of the devices, or of the hosts. */
static enum rp_code level_work(struct rp_sim_run *run, uint32_t only, bool on_host, bool shorten,
                               struct rp_err *err)
{
    struct work w;
    struct level l = {.work = &w, .only = only, .shorten = shorten};
    enum rp_code code = work_init(&w, run, on_host, on_host, false, err);

    l.scratch = calloc(w.nranks, sizeof *l.scratch);
    l.median = calloc(w.nstretches + 1, sizeof *l.median);
    if (code == RP_OK)
        code = l.scratch && l.median ? level_ranks(run, &l, err) : rp_err_nomem(err, "simulating");
    free(l.scratch);
    free(l.median);
    work_release(&w);
    return code;
}

/* ------------------------------------------------------------------ more ranks */

/* The normal quantile, by bisection: it is needed only twice per prediction. */
static double normal_quantile(double p)
{
    double low = -10, high = 10; /* a double has no larger range here */

    while (high - low > 1e-9) {
        double middle = (low + high) / 2;

        if (erfc(-middle / sqrt(2)) / 2 < p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

#define BLOM 0.375
RP_FACT(BLOM, "of a rank", "Blom's approximation of normal order statistics, 3/8");

static double slowest_of(double n)
{
    return n > 1 ? normal_quantile((n - BLOM) / (n + 1 - 2 * BLOM)) : 0;
}

/* The slowest work in a step, and its expected value among n ranks. */
static void expect_slowest(const struct work *w, size_t step, double n, int64_t *slowest,
                           double *then)
{
    double sum = 0, squares = 0, mean;

    *slowest = 0;
    for (size_t r = 0; r < w->nranks; r++) {
        int64_t x = w->ns[r * w->nsteps + step];

        sum += (double)x;
        *slowest = x > *slowest ? x : *slowest;
    }
    mean = sum / (double)w->nranks;
    for (size_t r = 0; r < w->nranks; r++) {
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

    expect_slowest(w, step, n, &slowest, &then);
    for (uint32_t i = 0; i < rp_sim_nnodes(run); i++) {
        size_t cell = rp_sim_note_of(run, i)->step == step ? cell_of(w, run, i) : SIZE_MAX;
        int64_t sum = cell == SIZE_MAX ? 0 : w->ns[cell];

        if (sum > 0 && then > 0 && (sum == slowest || (double)sum > then))
            RP_TRY(rp_sim_scale_node(run, i, then / (double)sum, err));
    }
    return RP_OK;
}

enum rp_code rp_sim_expect_slowest(struct rp_sim_run *run, double n, struct rp_err *err)
{
    RP_SCOPED(work_release) struct work w = {0};

    RP_TRY(work_init(&w, run, !rp_sim_has_device(run), false, true, err));
    for (size_t step = 0; w.nranks > 1 && step < w.nsteps; step++)
        RP_TRY(widen_step(run, &w, step, n, err));
    return RP_OK;
}

/* ------------------------------------------------------------------ asking */

static enum rp_code read_which(const struct rp_whatif_args *args, size_t nranks, uint32_t *only,
                               struct rp_err *err)
{
    const char *digits = args->value && !strncmp(args->value, "remove:", 7) ? args->value + 7 : "";
    char *end;

    *only = RP_NONE;
    if (args->value && !strcmp(args->value, "median"))
        return RP_OK;
    unsigned long rank = strtoul(digits, &end, 10);
    if (end == digits || *end || *digits == '-')
        return rp_err_set(err, RP_USAGE,
                          "'%s': expected straggler=median or straggler=remove:<rank>", args->text);
    if (rank >= nranks)
        return rp_err_set(err, RP_UNSUPPORTED, "'%s': the run has ranks 0 to %zu", args->text,
                          nranks - 1);
    *only = (uint32_t)rank;
    return RP_OK;
}

/* In which part of the steps the same rank has more work than all others, at most. */
static double share_of_slowest(const struct rp_sim_run *run, const struct work *w)
{
    size_t step, r, most = 0, n = 0;
    size_t *times = calloc(w->nranks + 1, sizeof *times);

    for (step = 0; times && step < w->nsteps; step++) {
        size_t slowest = 0;

        if (is_bare(run, step))
            continue;
        n++;
        for (r = 1; r < w->nranks; r++)
            if (whole_of(w, r * w->nsteps + step) > whole_of(w, slowest * w->nsteps + step))
                slowest = r;
        times[slowest]++;
        most = times[slowest] > most ? times[slowest] : most;
    }
    free(times);
    return n ? (double)most / (double)n : 0;
}

static enum rp_code find_share(const struct rp_sim_run *run, bool on_host, double *share,
                               struct rp_err *err)
{
    RP_SCOPED(work_release) struct work w = {0};

    RP_TRY(work_init(&w, run, on_host, on_host, true, err));
    *share = share_of_slowest(run, &w);
    return RP_OK;
}

/* It is only proposed if it is always the same rank: if another one is slowest in each step, that
   is ordinary variation, which nobody can fix. */
static enum rp_whatif_verdict straggler_applies(const struct rp_sim_run *run,
                                                const struct rp_whatif_args *args,
                                                struct rp_err *why)
{
    double on_host = 0, on_device = 0;

    if (run->parts[0]->stages || run->parts[0]->nranks > 1)
        return args
                   ? RP_WHATIF_APPLIES
                   : RP_WHATIF_SAY(why, UNSURE, "only ranks with traces of their own are compared");
    if (run->nranks < 2)
        return args ? RP_WHATIF_SAY(why, CANNOT, "only one rank was recorded")
                    : RP_WHATIF_SAY(why, UNSURE, "only one rank was recorded");
    if (args)
        return RP_WHATIF_APPLIES;
    if ((rp_sim_has_device(run) && find_share(run, false, &on_device, why) != RP_OK) ||
        find_share(run, true, &on_host, why) != RP_OK)
        return RP_WHATIF_CANNOT;
    return on_device >= SAME_RANK || on_host >= SAME_RANK
               ? RP_WHATIF_APPLIES
               : RP_WHATIF_SAY(why, UNSURE, "no rank has the most work in most of the steps");
}

static const struct rp_whatif_move straggler_move = {
    .family = "balance",
    .effort = 3,
    .apply =
        "find out why one rank works longer: 'reprise comm' names it and what it does meanwhile",
    .text = "straggler=median"};

static enum rp_code straggler_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                    struct rp_err *err)
{
    size_t nranks = run->nranks * run->parts[0]->nranks;
    bool device = rp_sim_has_device(run);
    uint32_t only;

    RP_TRY(rp_whatif_check(&rp_whatif_straggler, run, args, err));
    if (run->parts[0]->stages)
        return rp_whatif_straggler_timeline(run, args, err);
    RP_TRY(read_which(args, nranks, &only, err));
    if (device && only == RP_NONE)
        return rp_whatif_repair(run, err);
    if (device)
        RP_TRY(level_work(run, only, false, only != RP_NONE, err));
    return level_work(run, only, true, device || only != RP_NONE, err);
}

const struct rp_whatif rp_whatif_straggler = {
    .name = "straggler",
    .form = "straggler=median|remove:<rank>",
    .summary =
        "work that is slower than the same work of other ranks takes their time (without a "
        "device: every rank works in the median time of all, of two in that of the faster), "
        "or one slow rank in that of the others; for the timeline of a pipeline ideal: every "
        "operation takes the usual time of its type, or all except those of "
        "stage:<N>, dp:<N> or type:<name>",
    .assumes = "a slow rank does the same as the others between collectives, and ranks wait for "
               "each other no longer than necessary",
    .sums = true,
    .value = RP_WHATIF_NAME,
    .move = &straggler_move,
    .applies = straggler_applies,
    .apply = straggler_apply};
