/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds offsets of clocks. First every clock that has a rendezvous with a known one gets the
 * weighted median distance of their ends. Then a few sweeps: the time of a rendezvous is the median
 * of its ends on the clocks known so far, and a clock is a line through the distances of its ends
 * from these times. The slope (drift) comes from the medians of the first and the last third and is
 * used only if it far exceeds what scatter could cause; the offset is the weighted median of the
 * residuals. A clock that is connected only by messages is set such that the fastest message takes
 * equally long in both directions. Finally offsets are moved as little as the hard constraints
 * require (clock_bounds.c).
 *
 * All steps are medians and differences of integers: adding d to all times of a clock lowers its
 * offset by exactly d.
 */
#include "facts/clocks/clocks.h"

#include "base/decides.h"
#include "base/order.h"
#include "facts/clocks/bounds.h"
#include "facts/clocks/steps.h"
#include "facts/times/durations.h"
#include "facts/times/intervals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SWEEPS 4
RP_LIMIT(
    SWEEPS, "passes",
    "bounds time: by then offsets move by less than their uncertainty, which is measured after the "
    "last one");
#define LEAST 3
RP_DECISION(
    LEAST, "points",
    "fewer have no median that one outlier leaves alone; a drift is a line through the medians of "
    "the first and the last of so many parts, each of so many points",
    "facts/a_drift_needs_nine_rendezvous");
#define SIGMAS 2
RP_DECISION(
    SIGMAS, "standard errors",
    "19 of 20 true drifts lie within them; a drift is one when also its doubt halved would hold 0",
    "facts/a_drift_is_told_with_two_standard_errors");

struct point {
    int64_t x_ns, y_ns;
    uint64_t weight;
};

struct line {
    bool known;
    int64_t offset_ns, at_ns;
    double drift;       /* ns a ns */
    double drift_doubt; /* the same; negative: not known */
    double spread_ns;
    uint32_t n; /* rendezvous */
    uint32_t messages;
    int64_t half_trip_ns; /* of messages; -1: they go only one way */
};

struct clock_ctx {
    const struct rp_clock_input *in;
    struct rp_arena *arena;
    size_t nclocks, nrendezvous;
    struct rp_clock_participant
        *participants; /* their rank is a number of a clock; start_ns is added to their times */
    struct rp_clock_message *messages;
    uint32_t *first;    /* by rendezvous: its participants */
    uint32_t *by_clock; /* participants, by clock */
    uint32_t *clock_first;
    int64_t *rendezvous_ns; /* when each ended, on the first clock */
    bool *rendezvous_known;
    uint64_t *weight; /* by rendezvous */
    struct line *lines;
    struct rp_clock_steps *steps; /* by clock */
    struct point *points;         /* scratch, one for each participant */
    int64_t *values;              /* scratch, the same */
};

/* ------------------------------------------------------------------ medians */

RP_ORDER(by_x, struct point, RP_UP(x_ns))

RP_ORDER(by_y, struct point, RP_UP(y_ns), RP_UP(weight))

static int64_t median(int64_t *values, size_t n)
{
    rp_ns_sort(values, n);
    return rp_ns_median(values, n);
}

/* Sorts the points by y. */
static int64_t weighted_median(struct point *p, size_t n)
{
    uint64_t all = 0, sum = 0;
    size_t i;

    qsort(p, n, sizeof *p, by_y);
    for (i = 0; i < n; i++)
        all += p[i].weight;
    for (i = 0; i + 1 < n; i++) {
        sum += p[i].weight;
        if (sum >= all - sum)
            break;
    }
    return p[i].y_ns;
}

static int64_t on_line(const struct line *l, int64_t ns)
{
    double drift = l->drift != 0 ? l->drift * (double)rp_ns_between(l->at_ns, ns) : 0;

    return rp_ns_sum(rp_ns_sum(ns, l->offset_ns), (int64_t)llround(drift));
}

/* ------------------------------------------------------------------ first values */

static void tell_rendezvous(struct clock_ctx *f, uint32_t clock)
{
    for (uint32_t i = f->clock_first[clock]; i < f->clock_first[clock + 1]; i++) {
        const struct rp_clock_participant *v = &f->participants[f->by_clock[i]];

        if (!f->rendezvous_known[v->rendezvous])
            f->rendezvous_ns[v->rendezvous] = on_line(&f->lines[clock], v->end_ns);
        f->rendezvous_known[v->rendezvous] = true;
    }
}

/* The distances of a clock's ends from the known times of rendezvous. */
static size_t points_of(struct clock_ctx *f, uint32_t clock)
{
    size_t n = 0;

    for (uint32_t i = f->clock_first[clock]; i < f->clock_first[clock + 1]; i++) {
        const struct rp_clock_participant *v = &f->participants[f->by_clock[i]];

        if (f->rendezvous_known[v->rendezvous])
            f->points[n++] =
                (struct point){v->end_ns, rp_ns_between(v->end_ns, f->rendezvous_ns[v->rendezvous]),
                               f->weight[v->rendezvous]};
    }
    return n;
}

/* Seeds a clock by rendezvous with known ones; returns whether a clock became known. */
static bool seed_by_rendezvous(struct clock_ctx *f)
{
    bool any = false;

    for (uint32_t c = 0; c < f->nclocks; c++) {
        size_t n = f->lines[c].known ? 0 : points_of(f, c);

        if (!n)
            continue;
        f->lines[c].known = any = true;
        f->lines[c].offset_ns = weighted_median(f->points, n);
        tell_rendezvous(f, c);
    }
    return any;
}

/* Seeds a clock by the fastest message to and from known clocks; returns whether a clock became
   known. */
static bool seed_by_messages(struct clock_ctx *f)
{
    for (uint32_t c = 0; c < f->nclocks; c++) {
        int64_t to = INT64_MAX, from = INT64_MAX;
        struct line *l = &f->lines[c];

        for (size_t i = 0; !l->known && i < f->in->nmessages; i++) {
            const struct rp_clock_message *m = &f->messages[i];

            if (m->to == c && f->lines[m->from].known) {
                int64_t d = rp_ns_between(on_line(&f->lines[m->from], m->sent_ns), m->received_ns);
                to = d < to ? d : to;
            } else if (m->from == c && f->lines[m->to].known) {
                int64_t d = rp_ns_between(m->sent_ns, on_line(&f->lines[m->to], m->received_ns));
                from = d < from ? d : from;
            }
        }
        if (to == INT64_MAX && from == INT64_MAX)
            continue;
        l->known = true;
        l->half_trip_ns = -1;
        if (to != INT64_MAX && from != INT64_MAX) {
            l->offset_ns = rp_ns_between(to, from) >> 1;
            l->half_trip_ns = rp_ns_sum(to, from) / 2;
        } else {
            l->offset_ns = to != INT64_MAX ? rp_ns_between(to, 0) : from;
        }
        tell_rendezvous(f, c);
        return true;
    }
    return false;
}

/* ------------------------------------------------------------------ sweeps */

static int64_t median_coordinate(struct clock_ctx *f, const struct point *p, size_t n, bool of_x)
{
    for (size_t i = 0; i < n; i++)
        f->values[i] = of_x ? p[i].x_ns : p[i].y_ns;
    return median(f->values, n);
}

/* The distance from the median below which two thirds of the points lie: for normally distributed
 * residuals the standard deviation. Coarse times can make that 0, so half of the 90th percentile is
 * a lower limit. */
static double spread_of(struct clock_ctx *f, const struct point *p, size_t n)
{
    int64_t mid = median_coordinate(f, p, n, false), two_thirds, nine_tenths;

    for (size_t i = 0; i < n; i++) {
        int64_t d = rp_ns_between(mid, p[i].y_ns);

        f->values[i] = d < 0 ? rp_ns_between(d, 0) : d;
    }
    rp_ns_sort(f->values, n);
    two_thirds = f->values[n - 1 - n / LEAST];
    nine_tenths = f->values[n - 1 - n / 10];
    return fmax((double)two_thirds, (double)nine_tenths / 2);
}

static void take_slope(struct point *p, size_t n, double drift, int64_t at_ns)
{
    for (size_t i = 0; i < n; i++)
        p[i].y_ns = rp_ns_between((int64_t)llround(drift * (double)rp_ns_between(at_ns, p[i].x_ns)),
                                  p[i].y_ns);
}

/* Subtracts the slope from the points, which are sorted by x, and returns it, or 0 if it is not
 * significant. *within: how far the true slope may be from it; -1: not known. That is two standard
 * errors of the two medians plus the scatter itself, because the time of a rendezvous follows the
 * clock that is fitted, as long as its end lies among the others'. */
static double take_drift(struct clock_ctx *f, struct point *p, size_t n, int64_t at_ns,
                         double *within)
{
    size_t third = n / LEAST;

    *within = -1;
    if (third < LEAST)
        return 0;
    double dx = (double)rp_ns_between(median_coordinate(f, p, third, true),
                                      median_coordinate(f, p + (n - third), third, true));
    double dy = (double)rp_ns_between(median_coordinate(f, p, third, false),
                                      median_coordinate(f, p + (n - third), third, false));
    if (dx <= 0 || fabs(dy) > dx * 2 * RP_CLOCK_DRIFT_PPM / 1e6) /* both may drift */
        return 0;
    double drift = dy / dx;
    take_slope(p, n, drift, at_ns);
    double spread = spread_of(f, p, n);
    double doubt =
        (spread + 1) * sqrt(M_PI / (double)third); /* error of the difference of two medians */
    *within = (SIGMAS * doubt + spread) / dx;
    if (fabs(dy) > 2 * SIGMAS * doubt)
        return drift;
    *within += fabs(drift);
    take_slope(p, n, -drift, at_ns);
    return 0;
}

/* The time of a rendezvous depends on the clock itself, the more the fewer participants it has.
 * This is the factor by which distances from the other clocks are wider than those from the
 * rendezvous. */
static double widening_factor(const struct clock_ctx *f, uint32_t clock)
{
    double participants = f->clock_first[clock + 1] - f->clock_first[clock], all = 0;

    for (uint32_t i = f->clock_first[clock]; i < f->clock_first[clock + 1]; i++) {
        uint32_t m = f->participants[f->by_clock[i]].rendezvous;

        all += f->first[m + 1] - f->first[m];
    }
    return all > participants ? all / (all - participants) : 1;
}

static void sweep_clocks(struct clock_ctx *f)
{
    /* A rendezvous took place at the median of the ends that known clocks say. */
    for (uint32_t m = 0; m < f->nrendezvous; m++) {
        size_t n = 0;

        for (uint32_t i = f->first[m]; i < f->first[m + 1]; i++)
            if (f->lines[f->participants[i].rank].known)
                f->values[n++] =
                    on_line(&f->lines[f->participants[i].rank], f->participants[i].end_ns);
        f->rendezvous_known[m] = n > 0;
        if (n)
            f->rendezvous_ns[m] = median(f->values, n);
    }

    for (uint32_t c = 0; c < f->nclocks; c++) {
        /* The line of each clock through its points, by medians. */
        struct line *l = &f->lines[c];
        size_t n = l->known ? points_of(f, c) : 0;

        if (!n)
            continue;
        qsort(f->points, n, sizeof *f->points, by_x);
        l->n = (uint32_t)n;
        l->at_ns = median_coordinate(f, f->points, n, true);
        l->drift = take_drift(f, f->points, n, l->at_ns, &l->drift_doubt);
        l->drift_doubt *= widening_factor(f, c);
        l->spread_ns = spread_of(f, f->points, n) * widening_factor(f, c);
        l->offset_ns = weighted_median(f->points, n);
    }

    /* All clocks become relative to the first. */
    struct line first = f->lines[0];
    for (uint32_t c = 0; c < f->nclocks; c++) {
        struct line *l = &f->lines[c];
        int64_t at = rp_ns_sum(l->at_ns, rp_ns_between(first.offset_ns, l->offset_ns));
        double gone = first.drift != 0 ? first.drift * (double)rp_ns_between(first.at_ns, at) : 0;

        l->offset_ns =
            rp_ns_between((int64_t)llround(gone), rp_ns_between(first.offset_ns, l->offset_ns));
        l->drift -= first.drift;
    }
}

/* ------------------------------------------------------------------ the tables */

static enum rp_code allocate_tables(struct clock_ctx *f, struct rp_err *err)
{
    const struct rp_clock_input *in = f->in;

    f->nrendezvous =
        in->nparticipants ? (size_t)in->participants[in->nparticipants - 1].rendezvous + 1 : 0;
    f->participants = RP_ARENA_NEW(f->arena, struct rp_clock_participant, in->nparticipants + 1);
    f->messages = RP_ARENA_NEW(f->arena, struct rp_clock_message, in->nmessages + 1);
    f->first = RP_ARENA_NEW(f->arena, uint32_t, f->nrendezvous + 2);
    f->by_clock = RP_ARENA_NEW(f->arena, uint32_t, in->nparticipants + 1);
    f->clock_first = RP_ARENA_NEW(f->arena, uint32_t, in->nranks + 2);
    f->rendezvous_ns = RP_ARENA_NEW(f->arena, int64_t, f->nrendezvous + 1);
    f->rendezvous_known = RP_ARENA_NEW(f->arena, bool, f->nrendezvous + 1);
    f->weight = RP_ARENA_NEW(f->arena, uint64_t, f->nrendezvous + 1);
    f->lines = RP_ARENA_NEW(f->arena, struct line, in->nranks + 1);
    f->steps = RP_ARENA_NEW(f->arena, struct rp_clock_steps, in->nranks + 1);
    f->points = RP_ARENA_NEW(f->arena, struct point, in->nparticipants + 1);
    f->values = RP_ARENA_NEW(f->arena, int64_t, in->nparticipants + 1);
    if (!f->participants || !f->messages || !f->first || !f->by_clock || !f->clock_first ||
        !f->rendezvous_ns || !f->rendezvous_known || !f->weight || !f->lines || !f->steps ||
        !f->points || !f->values)
        return rp_err_nomem(err, "aligning clocks");
    return RP_OK;
}

static void copy_facts(struct clock_ctx *f, struct rp_clocks *out)
{
    const struct rp_clock_input *in = f->in;

    for (size_t i = 0; i < in->nparticipants; i++) {
        struct rp_clock_participant v = in->participants[i];
        int64_t add = in->start_ns ? in->start_ns[v.rank] : 0;

        v.begin_ns = rp_ns_sum(v.begin_ns, add);
        v.end_ns = rp_ns_sum(v.end_ns, add);
        v.rank = out->at[v.rank].clock;
        f->participants[i] = v;
        f->first[v.rendezvous + 1]++;
        f->clock_first[v.rank + 1]++;
    }
    for (size_t i = 0; i < f->nrendezvous; i++)
        f->first[i + 1] += f->first[i];
    for (size_t i = 0; i < f->nclocks; i++)
        f->clock_first[i + 1] += f->clock_first[i];
    for (size_t i = in->nparticipants; i-- > 0;)
        f->by_clock[--f->clock_first[f->participants[i].rank + 1]] = (uint32_t)i;
    memmove(f->clock_first, f->clock_first + 1, f->nclocks * sizeof *f->clock_first);
    f->clock_first[f->nclocks] = (uint32_t)in->nparticipants;
    for (size_t i = 0; i < in->nmessages; i++) {
        struct rp_clock_message m = in->messages[i];

        m.sent_ns = rp_ns_sum(m.sent_ns, in->start_ns ? in->start_ns[m.from] : 0);
        m.received_ns = rp_ns_sum(m.received_ns, in->start_ns ? in->start_ns[m.to] : 0);
        m.from = out->at[m.from].clock;
        m.to = out->at[m.to].clock;
        f->messages[i] = m;
        out->nmessages += m.from != m.to;
        f->lines[m.from].messages += m.from != m.to;
        f->lines[m.to].messages += m.from != m.to;
    }
}

/* ------------------------------------------------------------------ clocks that were set */

struct timed_rendezvous {
    int64_t ns;
    uint32_t rendezvous;
};

RP_ORDER(by_time, struct timed_rendezvous, RP_UP(ns), RP_UP(rendezvous))

/* Removes steps from the times of all facts; first values are then found again. */
static enum rp_code undo_steps(struct clock_ctx *f, struct rp_err *err)
{
    uint32_t *order = RP_ARENA_NEW(f->arena, uint32_t, f->nrendezvous + 1);
    int64_t *offset = RP_ARENA_NEW(f->arena, int64_t, f->nclocks + 1);
    struct rp_clock_series series = {.nclocks = f->nclocks,
                                     .nrendezvous = f->nrendezvous,
                                     .participants = f->participants,
                                     .first = f->first,
                                     .order = order,
                                     .offset_ns = offset};
    bool any = false;

    if (!order || !offset)
        return rp_err_nomem(err, "aligning clocks");
    for (size_t i = 0; i < f->nclocks; i++)
        offset[i] = f->lines[i].offset_ns;

    /* Rendezvous in the order of time, by the first values of the clocks. */
    struct timed_rendezvous *all = malloc((f->nrendezvous + 1) * sizeof *all);
    RP_TRY(rp_err_need(all, err, "aligning clocks"));
    for (uint32_t m = 0; m < f->nrendezvous; m++) {
        const struct rp_clock_participant *p = &f->participants[f->first[m]];

        all[m] = (struct timed_rendezvous){on_line(&f->lines[p->rank], p->end_ns), m};
    }
    if (f->nrendezvous)
        qsort(all, f->nrendezvous, sizeof *all, by_time);
    for (uint32_t m = 0; m < f->nrendezvous; m++)
        order[m] = all[m].rendezvous;
    free(all);

    RP_TRY(rp_clock_steps_find(&series, f->arena, f->steps, err));
    for (size_t i = 0; i < f->nclocks; i++)
        any |= f->steps[i].n > 0;
    for (size_t i = 0; any && i < f->in->nmessages; i++) {
        struct rp_clock_message *m = &f->messages[i];
        const struct rp_clock_steps *from = &f->steps[m->from], *to = &f->steps[m->to];

        m->sent_ns = rp_ns_sum(m->sent_ns, rp_clock_steps_before(from->at, from->n, m->sent_ns));
        m->received_ns =
            rp_ns_sum(m->received_ns, rp_clock_steps_before(to->at, to->n, m->received_ns));
    }
    if (any) {
        for (size_t i = 0; i < f->nclocks; i++)
            f->lines[i] = (struct line){.known = i == 0, .messages = f->lines[i].messages};
        memset(f->rendezvous_known, 0, f->nrendezvous * sizeof *f->rendezvous_known);
        tell_rendezvous(f, 0);
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ what is certain */

static enum rp_code gather_constraints(struct clock_ctx *f, struct rp_clock_facts *facts,
                                       struct rp_err *err)
{
    bool *known = RP_ARENA_NEW(f->arena, bool, f->nclocks + 1);

    *facts = (struct rp_clock_facts){.nclocks = f->nclocks,
                                     .nrendezvous = f->nrendezvous,
                                     .nparticipants = f->in->nparticipants,
                                     .nmessages = f->in->nmessages,
                                     .tolerance_ns = f->in->tolerance_ns,
                                     .participants = f->participants,
                                     .messages = f->messages,
                                     .given_participants = f->in->participants,
                                     .given_messages = f->in->messages,
                                     .first = f->first,
                                     .known = known};
    facts->dropped = RP_ARENA_NEW(f->arena, bool, f->nrendezvous + f->in->nmessages + 1);
    if (!known || !facts->dropped)
        return rp_err_nomem(err, "aligning clocks");
    for (size_t i = 0; i < f->nclocks; i++)
        known[i] = f->lines[i].known;
    for (size_t i = 0; i < f->in->nparticipants; i++) {
        struct rp_clock_participant *v = &f->participants[i];

        v->begin_ns = on_line(&f->lines[v->rank], v->begin_ns);
        v->end_ns = on_line(&f->lines[v->rank], v->end_ns);
    }
    for (size_t i = 0; i < f->in->nmessages; i++) {
        struct rp_clock_message *m = &f->messages[i];

        m->sent_ns = on_line(&f->lines[m->from], m->sent_ns);
        m->received_ns = on_line(&f->lines[m->to], m->received_ns);
    }
    return RP_OK;
}

/* The scatter of the rendezvous or half a round trip, limited by the bounds. */
static int64_t uncertainty(const struct line *l, int64_t low_ns, int64_t high_ns)
{
    int64_t spread = l->n >= LEAST ? (int64_t)llround(l->spread_ns) : l->n ? -1 : l->half_trip_ns;
    int64_t above = rp_ns_between(l->offset_ns, high_ns);
    int64_t below = rp_ns_between(low_ns, l->offset_ns);
    int64_t limit = above > below ? above : below;
    bool limited = low_ns != INT64_MIN && high_ns != INT64_MAX && limit >= 0;

    if (spread < 0 || (limited && limit < spread))
        return limited ? limit : -1;
    return spread;
}

/* Converts the steps of a clock to the own times of a rank. */
static enum rp_code put_steps(const struct clock_ctx *f, size_t rank, struct rp_clock *to,
                              struct rp_err *err)
{
    const struct rp_clock_steps *from = &f->steps[to->clock];

    if (!from->n)
        return RP_OK;
    struct rp_clock_step *steps = RP_ARENA_NEW(f->arena, struct rp_clock_step, from->n);
    RP_TRY(rp_err_need(steps, err, "aligning clocks"));
    for (to->nsteps = 0; to->nsteps < from->n; to->nsteps++) {
        steps[to->nsteps] = from->at[to->nsteps];
        if (f->in->start_ns)
            steps[to->nsteps].from_ns =
                rp_ns_between(f->in->start_ns[rank], steps[to->nsteps].from_ns);
    }
    to->steps = steps;
    return RP_OK;
}

static enum rp_code put_clocks(const struct clock_ctx *f, const int64_t *low, const int64_t *high,
                               struct rp_clocks *out, struct rp_err *err)
{
    for (size_t r = 0; r < f->in->nranks; r++) {
        struct rp_clock *to = &out->at[r];
        const struct line *l = &f->lines[to->clock];
        int64_t start = f->in->start_ns ? f->in->start_ns[r] : 0;
        int64_t zero = f->in->start_ns ? f->in->start_ns[0] : 0;

        to->known = l->known;
        start = rp_ns_between(zero, start);
        to->offset_ns = rp_ns_sum(l->offset_ns, start);
        to->at_ns = rp_ns_between(f->in->start_ns ? f->in->start_ns[r] : 0, l->at_ns);
        to->drift_ppb = l->drift * 1e9;
        to->drift_doubt_ppb = !to->clock ? 0
                              : l->known && l->n >= LEAST * LEAST && l->drift_doubt >= 0
                                  ? l->drift_doubt * 1e9
                                  : -1;
        to->low_ns = low[to->clock] == INT64_MIN ? INT64_MIN : rp_ns_sum(low[to->clock], start);
        to->high_ns = high[to->clock] == INT64_MAX ? INT64_MAX : rp_ns_sum(high[to->clock], start);
        to->uncertainty_ns = to->clock ? uncertainty(l, low[to->clock], high[to->clock]) : 0;
        to->uncertainty_ns = l->known ? to->uncertainty_ns : -1;
        to->rendezvous = l->n;
        to->messages = l->messages;
        out->used_drift = out->used_drift || l->drift != 0;
        RP_TRY(put_steps(f, r, to, err));
    }
    return RP_OK;
}

/* Rendezvous of more than one clock. */
static size_t count_rendezvous(const struct clock_ctx *f)
{
    size_t m, n = 0;
    uint32_t i;

    for (m = 0; m < f->nrendezvous; m++) {
        for (i = f->first[m];
             i < f->first[m + 1] && f->participants[i].rank == f->participants[f->first[m]].rank;)
            i++;
        n += i < f->first[m + 1];
    }
    return n;
}

static enum rp_code apply_constraints(struct clock_ctx *f, struct rp_clocks *out,
                                      struct rp_err *err)
{
    int64_t *adjust = RP_ARENA_NEW(f->arena, int64_t, f->nclocks + 1);
    int64_t *low = RP_ARENA_NEW(f->arena, int64_t, f->nclocks + 1);
    int64_t *high = RP_ARENA_NEW(f->arena, int64_t, f->nclocks + 1);
    struct rp_clock_facts facts;

    if (!adjust || !low || !high)
        return rp_err_nomem(err, "aligning clocks");
    RP_TRY(gather_constraints(f, &facts, err));
    RP_TRY(rp_clock_fit(&facts, f->arena, adjust, out, err));
    for (size_t c = 0; c < f->nclocks; c++) {
        low[c] = INT64_MIN;
        high[c] = INT64_MAX;
    }
    if (out->consistent)
        RP_TRY(rp_clock_bounds(&facts, f->arena, low, high, err));
    for (size_t c = 0; c < f->nclocks; c++) {
        low[c] = low[c] == INT64_MIN ? low[c] : rp_ns_sum(low[c], f->lines[c].offset_ns);
        high[c] = high[c] == INT64_MAX ? high[c] : rp_ns_sum(high[c], f->lines[c].offset_ns);
        f->lines[c].offset_ns = rp_ns_sum(f->lines[c].offset_ns, adjust[c]);
    }
    return put_clocks(f, low, high, out, err);
}

/* ------------------------------------------------------------------ all of it */

enum rp_code rp_clocks_find(const struct rp_clock_input *in, struct rp_arena *arena,
                            struct rp_clocks *out, struct rp_err *err)
{
    struct clock_ctx f = {.in = in, .arena = arena};
    bool swept = false;

    *out = (struct rp_clocks){.n = in->nranks, .consistent = true};
    out->at = RP_ARENA_NEW(arena, struct rp_clock, in->nranks + 1);
    RP_TRY(rp_err_need(out->at, err, "aligning clocks"));
    if (!in->nranks)
        return RP_OK;
    RP_TRY(allocate_tables(&f, err));

    /* Clocks are numbered by their first rank, so that the first rank has clock 0. */
    uint32_t *number = RP_ARENA_NEW(f.arena, uint32_t, f.in->nranks + 1);
    RP_TRY(rp_err_need(number, err, "aligning clocks"));
    memset(number, 0xff, f.in->nranks * sizeof *number);
    for (size_t r = 0; r < f.in->nranks; r++) {
        uint32_t given = f.in->clock_of ? f.in->clock_of[r] : (uint32_t)r;

        if (number[given] == RP_CLOCK_NONE)
            number[given] = (uint32_t)f.nclocks++;
        out->at[r].clock = number[given];
    }

    copy_facts(&f, out);
    for (uint32_t m = 0; m < f.nrendezvous; m++) {
        /* The ends of a collective differ by at most the length of its transfer, so the shorter it
         * was for the rank that arrived last, the better it measures clocks. */
        int64_t least = INT64_MAX, dur;

        for (uint32_t i = f.first[m]; i < f.first[m + 1]; i++) {
            dur = rp_ns_between(f.participants[i].begin_ns, f.participants[i].end_ns);
            least = dur < least ? dur : least;
        }
        f.weight[m] = 1 + UINT64_C(1000000000000) / ((uint64_t)(least < 0 ? 0 : least) + 1000);
    }
    out->nrendezvous = count_rendezvous(&f);
    f.lines[0].known = true;
    tell_rendezvous(&f, 0);
    if (in->steps && f.nclocks > 1) {
        while (seed_by_rendezvous(&f))
            ;
        RP_TRY(undo_steps(&f, err));
    }
    do {
        while (seed_by_rendezvous(&f))
            ;
        for (int i = 0; !swept && i < SWEEPS; i++)
            sweep_clocks(&f);
        swept = true;
    } while (seed_by_messages(&f));
    return apply_constraints(&f, out, err);
}

static int64_t gone_ns(const struct rp_clock *clock, int64_t ns)
{
    return clock->drift_ppb != 0
               ? (int64_t)llround(clock->drift_ppb / 1e9 * (double)rp_ns_between(clock->at_ns, ns))
               : 0;
}

int64_t rp_clock_time(const struct rp_clock *clock, int64_t ns)
{
    if (clock->nsteps)
        ns = rp_ns_sum(ns, rp_clock_steps_before(clock->steps, clock->nsteps, ns));
    return rp_ns_sum(rp_ns_sum(ns, clock->offset_ns), gone_ns(clock, ns));
}

int64_t rp_clock_own_time(const struct rp_clock *clock, int64_t ns)
{
    int64_t own = rp_ns_between(clock->offset_ns, ns), add = 0;

    own = rp_ns_between(gone_ns(clock, own), own);
    for (size_t i = 0; i < clock->nsteps; i++) {
        int64_t more = rp_ns_sum(add, clock->steps[i].add_ns);

        if (rp_ns_between(more, own) < clock->steps[i].from_ns)
            break;
        add = more;
    }
    return rp_ns_between(add, own);
}

static bool exceeds(int64_t ns, int64_t limit_ns)
{
    return (ns < 0 ? rp_ns_between(ns, 0) : ns) > limit_ns;
}

bool rp_clock_differs(const struct rp_clock *clock, int64_t recorded_ns, int64_t least_ns,
                      int64_t from_ns, int64_t to_ns)
{
    int64_t limit = clock->uncertainty_ns > least_ns ? clock->uncertainty_ns : least_ns;

    if (!clock->known || clock->uncertainty_ns < 0)
        return false;
    return clock->nsteps ||
           exceeds(rp_ns_between(rp_ns_sum(from_ns, recorded_ns), rp_clock_time(clock, from_ns)),
                   limit) ||
           exceeds(rp_ns_between(rp_ns_sum(to_ns, recorded_ns), rp_clock_time(clock, to_ns)),
                   limit);
}
