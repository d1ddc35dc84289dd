/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics/window.h"

#include "base/arena.h"
#include "base/decides.h"
#include "places/peers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LATE_SLICES 4
RP_DECISION(LATE_SLICES, "slices",
            "a pause of a machine or of a file system is in one slice, or in two where it lies "
            "between them; bursts of other programs on busy processors lasted for up to three",
            "metrics/one_pause_is_nobodys_lateness");
#define MOST_OF_IT 0.5
RP_DECISION(MOST_OF_IT, "of the lateness", "a cause that explains less is not the main one",
            "metrics/a_rank_without_a_processor_is_named_so");
#define CLOCK_LOWER 0.03
RP_DECISION(CLOCK_LOWER, "of the others' clock",
            "devices of one model run up to 2 % apart at the same power limit",
            "metrics/a_low_clock_is_the_cause");

#define LEAST_STEPS 4
RP_DECISION(LEAST_STEPS, "steps",
            "a slice of fewer is as long as a single step happens to be; a quarter of a step that "
            "lies over its edge is then less than a sixteenth of it",
            "metrics/a_slice_has_some_steps");
#define LEAST_PAST 64
RP_DECISION(LEAST_PAST, "steps",
            "the median of fewer has an interval of more than a quarter of them on either side",
            "metrics/a_short_past_is_not_compared_with");
#define FAR_OUT 3
RP_DECISION(FAR_OUT, "quartile distances",
            "the usual fence of what is far out; on a machine that other programs load, the steps "
            "of a healthy job became up to a quarter longer than before again and again",
            "metrics/steps_are_longer_only_beyond_their_past");
#define STILL_STEPS 20
RP_DECISION(
    STILL_STEPS, "steps",
    "checkpoints and evaluations take as long as some steps; the longest so far counts, too",
    "metrics/a_job_that_stands_still_is_told");
#define STILL_S 10
RP_DECISION(STILL_S, "s", "a pause that is shorter is over before anybody looks",
            "metrics/a_job_that_stands_still_is_told");

enum { PARTS = 3 }; /* the number of causes that are compared: host, input, device */

const char *const rp_window_causes[RP_WINDOW_CAUSES] = {"host", "input data", "device",
                                                        "no processor", "device clock"};

struct judge {
    const struct rp_window_rank *ranks;
    size_t n, used;
    struct rp_arena arena;
    struct rp_peer_rank *peers;
    struct rp_peer_sum *sums; /* by rank: its abnormal work, by slice */
    double *cut;              /* by rank and part */
};

/* Returns the time that a step of a slice spent in a part. Device work for which the host did not
   wait is not part of the host's time. */
static double part_ns(const struct rp_window_slice *s, size_t part)
{
    double rest = s->step_ns - s->collective_ns;
    double input = fmin(s->input_ns, fmax(rest, 0)), device = s->device_ns;

    if (part == RP_WINDOW_INPUT)
        return input;
    if (part == RP_WINDOW_DEVICE)
        return fmin(device, fmax(rest - input, 0));
    return fmax(rest - input - device, 0);
}

static double slice_ns(const struct judge *j)
{
    double sum = 0;

    for (size_t i = 0; i < j->used; i++)
        sum += j->ranks[0].slice[i].step_ns;
    return sum / (double)j->used;
}

static bool is_late(const struct judge *j, size_t rank)
{
    struct rp_peer_sum others = {0};

    for (size_t r = 0; r < j->n; r++)
        if (r != rank)
            rp_peers_add(&others, &j->sums[r]);
    return j->sums[rank].n >= LATE_SLICES &&
           rp_peers_beyond(&j->sums[rank], &others) > RP_PEERS_CHANCE;
}

static double delay_a_step(const struct judge *j, size_t r)
{
    double ns = 0, steps = 0;

    for (size_t i = 0; i < j->used; i++) {
        ns += j->ranks[r].slice[i].delay_ns;
        steps += j->ranks[r].slice[i].steps;
    }
    return steps > 0 ? ns / steps : 0;
}

/* Finds for the other ranks the lower quartile of their delays and the upper one of their
   clocks. */
static void look_at_others(struct judge *j, size_t rank, double *delay, double *clock)
{
    double *values = RP_ARENA_NEW(&j->arena, double, j->n + 1);
    size_t n = 0;

    *delay = 0;
    *clock = NAN;
    if (!values)
        return;
    for (size_t r = 0; r < j->n; r++)
        if (r != rank)
            values[n++] = delay_a_step(j, r);
    *delay = rp_peers_low(values, n);
    n = 0;
    for (size_t r = 0; r < j->n; r++)
        if (r != rank && !isnan(j->ranks[r].clock))
            values[n++] = -j->ranks[r].clock;
    *clock = -rp_peers_low(values, n);
}

/* late_ns is that of a step of the whole window, as the delays are. */
static enum rp_window_cause cause_of(struct judge *j, size_t rank, double late_ns)
{
    const double *cut = &j->cut[rank * PARTS];
    double delay, clock;
    size_t most = 0;

    for (size_t p = 1; p < PARTS; p++)
        most = cut[p] > cut[most] ? p : most;
    look_at_others(j, rank, &delay, &clock);
    if (most != RP_WINDOW_DEVICE && delay_a_step(j, rank) - delay > MOST_OF_IT * late_ns)
        return RP_WINDOW_PROCESSOR;
    if (most == RP_WINDOW_DEVICE && j->ranks[rank].clock < (1 - CLOCK_LOWER) * clock)
        return RP_WINDOW_CLOCK;
    return (enum rp_window_cause)most;
}

/* Whether the late ranks are exactly those of one host with several ranks. */
static bool is_whole_host(const struct judge *j, size_t rank)
{
    const char *host = j->ranks[rank].host;
    size_t there = 0, elsewhere = 0;

    for (size_t r = 0; r < j->n; r++) {
        bool same = host && j->ranks[r].host && !strcmp(host, j->ranks[r].host);

        if (same != (j->sums[r].n >= LATE_SLICES))
            return false;
        there += same;
        elsewhere += !same;
    }
    return there > 1 && elsewhere;
}

static void find_late(struct judge *j, struct rp_window_late *out)
{
    double steps = 0, step_ns = 0;
    size_t latest = 0;

    for (size_t r = 1; r < j->n; r++)
        latest = j->sums[r].sum > j->sums[latest].sum ? r : latest;
    bool host = is_whole_host(j, latest);
    if (!host && !is_late(j, latest))
        return;
    for (size_t i = 0; i < j->used; i++) {
        steps += j->ranks[latest].slice[i].steps;
        step_ns += j->ranks[latest].slice[i].step_ns;
    }
    /* only over slices in which it was late, so that recent lateness is not averaged away */
    double late_ns = j->sums[latest].sum / (steps * j->sums[latest].n / (double)j->used);
    enum rp_window_cause cause = cause_of(j, latest, j->sums[latest].sum / steps);
    /* other programs take a processor from one rank, then from another */
    if (cause == RP_WINDOW_PROCESSOR && j->sums[latest].n < RP_WINDOW_SLICES)
        return;
    out->rank = latest;
    out->whole_host = host;
    out->late_ns = late_ns;
    out->share = late_ns / (step_ns / steps);
    out->cause = cause;
}

static enum rp_code judge_ranks(struct judge *j, struct rp_window_late *out, struct rp_err *err)
{
    j->peers = RP_ARENA_NEW(&j->arena, struct rp_peer_rank, j->n);
    j->sums = RP_ARENA_NEW(&j->arena, struct rp_peer_sum, j->n);
    j->cut = RP_ARENA_NEW(&j->arena, double, j->n *PARTS);
    RP_TRY(rp_arena_check(&j->arena, "comparing ranks", err));
    for (size_t r = 0; r < j->n; r++) {
        /* The slices of the rank, part by part, as peers are compared. */
        struct rp_peer_key *keys = RP_ARENA_NEW(&j->arena, struct rp_peer_key, PARTS);
        struct rp_peer_cell *cells =
            RP_ARENA_NEW(&j->arena, struct rp_peer_cell, j->used * PARTS + 1);
        size_t n = 0;
        RP_TRY(rp_arena_check(&j->arena, "comparing ranks", err));
        for (uint32_t p = 0; p < PARTS; p++)
            keys[p] = (struct rp_peer_key){.hash = p + 1, .cls = p};
        for (uint32_t i = 0; i < j->used; i++)
            for (uint32_t p = 0; p < PARTS; p++) {
                const struct rp_window_slice *s = &j->ranks[r].slice[i];
                double ns = part_ns(s, p);
                if (s->steps >= 1 && ns > 0)
                    cells[n++] =
                        (struct rp_peer_cell){p, i, (uint32_t)s->steps, ns, ns * ns / s->steps};
            }
        j->peers[r] = (struct rp_peer_rank){
            .keys = keys, .nkeys = PARTS, .cells = cells, .ncells = n, .role = 1};
        RP_TRY(rp_peers_usual(cells, n, keys, PARTS, err));
    }
    RP_TRY(rp_peers_judge(j->peers, j->n, slice_ns(j), &j->arena, err));
    for (size_t r = 0; r < j->n; r++) {
        /* Adds up the abnormal work of a rank. */
        const struct rp_peer_rank *p = &j->peers[r];
        size_t i = 0;
        while (i < p->ncells) {
            uint32_t slice = p->cells[i].step;
            double abnormal = 0;
            for (; i < p->ncells && p->cells[i].step == slice; i++) {
                double ns = (1 - p->factor[i]) * p->cells[i].dur_ns;
                abnormal += ns;
                j->cut[r * PARTS + p->cells[i].key] += ns;
            }
            if (abnormal > 0)
                rp_peers_count(&j->sums[r], abnormal);
        }
    }
    find_late(j, out);
    return RP_OK;
}

enum rp_code rp_window_judge(const struct rp_window_rank *ranks, size_t n, size_t used,
                             struct rp_window_late *out, struct rp_err *err)
{
    struct judge j = {.ranks = ranks, .n = n, .used = used, .arena = RP_ARENA_INIT};
    enum rp_code code = RP_OK;

    *out = (struct rp_window_late){.rank = n};
    if (n > 1 && used >= LATE_SLICES)
        code = judge_ranks(&j, out, err);
    rp_arena_release(&j.arena);
    return code;
}

bool rp_window_is_slice(double steps)
{
    return steps >= LEAST_STEPS;
}

bool rp_window_is_past(double steps)
{
    return steps >= LEAST_PAST;
}

bool rp_window_is_longer(double step_ns, double *past, size_t n)
{
    double low = rp_peers_low(past, n);

    for (size_t i = 0; i < n; i++)
        past[i] = -past[i];
    double high = -rp_peers_low(past, n);
    return n >= RP_WINDOW_SLICES && step_ns > high + FAR_OUT * (high - low);
}

bool rp_window_is_still(double ns, double usual_ns, double longest_ns)
{
    return ns > STILL_S * 1e9 && ns > STILL_STEPS * usual_ns && ns > 2 * longest_ns;
}

bool rp_window_is_news(rp_window_told *told, const char *about, struct rp_err *err)
{
    for (size_t i = 0; i < told->n; i++)
        if (!strcmp(told->at[i].about, about)) {
            told->at[i].looks = 0;
            return false;
        }
    char *copy = strdup(about);
    if (copy && rp_vec_push(told, ((struct rp_window_subject){copy, 0}), err) != RP_OK)
        free(copy);
    return true;
}

void rp_window_forget_told(rp_window_told *told, size_t looks)
{
    size_t kept = 0;

    for (size_t i = 0; i < told->n; i++)
        if (told->at[i].looks++ < looks)
            told->at[kept++] = told->at[i];
        else
            free(told->at[i].about);
    told->n = kept;
}
