/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Solves difference constraints between clocks by Bellman-Ford. No rank leaves a rendezvous before
 * every rank that it waits for has arrived:
 *
 *     x[s] <= min over r (end[r] + x[r]) + tolerance - begin[s]
 *
 * so one minimum for each rendezvous covers all pairs of its ranks, and a pass is linear in
 * participants. Lowering all values from 0 gives the largest solution that is nowhere above 0;
 * doing the same with all times negated gives the smallest one that is nowhere below 0. Their mean
 * is a solution too, and is 0 if 0 is a solution. Starting from clock 0 alone, the two directions
 * give the bounds of every other clock.
 *
 * A value that depends on itself after a pass is a cycle of contradicting constraints. The
 * constraint of the cycle that the estimate violates most is reported as a conflict and dropped,
 * and the rest is tried again.
 */
#include "facts/clocks/bounds.h"

#include "base/decides.h"
#include "facts/times/intervals.h"

#include <string.h>

#define FAR           INT64_MAX /* no limit yet */
#define CONFLICTS_MAX 16
RP_LIMIT(
    CONFLICTS_MAX, "constraints that are dropped",
    "each costs all passes again; beyond it the clocks are reported as inconsistent, and have the "
    "estimated offsets without bounds");

struct cause {
    uint32_t from;           /* clock; RP_CLOCK_NONE: none */
    uint32_t target, source; /* participants, or the same message twice */
    bool by_message;
};

struct descent {
    const struct rp_clock_facts *f;
    bool turned; /* all times are negated, for lower bounds */
    int64_t *x;  /* by clock */
    struct cause *cause;
    uint32_t *mark;
};

static int64_t target_ns(const struct descent *d, const struct rp_clock_participant *v)
{
    return d->turned ? rp_ns_between(v->end_ns, 0) : v->begin_ns;
}

static int64_t source_ns(const struct descent *d, const struct rp_clock_participant *v)
{
    return d->turned ? rp_ns_between(v->begin_ns, 0) : v->end_ns;
}

static bool lower_clock(struct descent *d, uint32_t clock, int64_t limit_ns, struct cause cause)
{
    if (limit_ns >= d->x[clock])
        return false;
    d->x[clock] = limit_ns;
    d->cause[clock] = cause;
    return true;
}

/* The participant that left first (negated: that arrived last), among those whose adjustment is
 * bounded. */
static uint32_t tightest_participant(const struct descent *d, uint32_t rendezvous)
{
    const struct rp_clock_facts *f = d->f;
    uint32_t i, best = RP_CLOCK_NONE;
    int64_t least = FAR;

    for (i = f->first[rendezvous]; i < f->first[rendezvous + 1]; i++) {
        const struct rp_clock_participant *v = &f->participants[i];

        if (!f->known[v->rank] || d->x[v->rank] == FAR || (d->turned && !v->binds))
            continue;
        int64_t at = rp_ns_sum(source_ns(d, v), d->x[v->rank]);
        if (at < least) {
            least = at;
            best = i;
        }
    }
    return best;
}

static bool lower_rendezvous(struct descent *d, uint32_t rendezvous)
{
    const struct rp_clock_facts *f = d->f;
    uint32_t i, source = tightest_participant(d, rendezvous), from;
    bool changed = false;
    int64_t limit;

    if (source == RP_CLOCK_NONE)
        return false;
    from = f->participants[source].rank;
    limit =
        rp_ns_sum(rp_ns_sum(source_ns(d, &f->participants[source]), d->x[from]), f->tolerance_ns);
    for (i = f->first[rendezvous]; i < f->first[rendezvous + 1]; i++) {
        const struct rp_clock_participant *v = &f->participants[i];

        if (f->known[v->rank] && (d->turned || v->binds) && i != source)
            changed |= lower_clock(d, v->rank, rp_ns_between(target_ns(d, v), limit),
                                   (struct cause){from, i, source, false});
    }
    return changed;
}

static bool lower_message(struct descent *d, uint32_t i)
{
    const struct rp_clock_message *m = &d->f->messages[i];
    uint32_t target = d->turned ? m->to : m->from, source = d->turned ? m->from : m->to;
    int64_t room = rp_ns_sum(rp_ns_between(m->sent_ns, m->received_ns), d->f->tolerance_ns);

    if (!d->f->known[target] || !d->f->known[source] || d->x[source] == FAR)
        return false;
    return lower_clock(d, target, rp_ns_sum(d->x[source], room),
                       (struct cause){source, i, i, true});
}

static bool run_pass(struct descent *d)
{
    const struct rp_clock_facts *f = d->f;
    bool changed = false;

    for (uint32_t i = 0; i < f->nrendezvous; i++)
        if (!f->dropped[i])
            changed |= lower_rendezvous(d, i);
    for (uint32_t i = 0; i < f->nmessages; i++)
        if (!f->dropped[f->nrendezvous + i])
            changed |= lower_message(d, i);
    return changed;
}

/* A clock on a cycle of causes, or RP_CLOCK_NONE. */
static uint32_t on_cycle(struct descent *d)
{
    uint32_t c, at;

    memset(d->mark, 0xff, d->f->nclocks * sizeof *d->mark);
    for (c = 0; c < d->f->nclocks; c++) {
        for (at = c; at != RP_CLOCK_NONE && d->mark[at] == RP_CLOCK_NONE; at = d->cause[at].from)
            d->mark[at] = c;
        if (at != RP_CLOCK_NONE && d->mark[at] == c)
            return at;
    }
    return RP_CLOCK_NONE;
}

/* Repeats passes until nothing changes. Returns a clock on a cycle if that never happens. */
static uint32_t run_passes(struct descent *d)
{
    for (size_t passes = 0; run_pass(d); passes++) {
        uint32_t cycle = on_cycle(d);
        if (cycle != RP_CLOCK_NONE || passes > d->f->nclocks)
            return cycle;
    }
    return RP_CLOCK_NONE;
}

/* ------------------------------------------------------------------ conflicts */

/* The slack of the constraint by the estimate alone. */
static int64_t slack_ns(const struct rp_clock_facts *f, const struct cause *c)
{
    if (c->by_message)
        return rp_ns_between(f->messages[c->source].sent_ns, f->messages[c->source].received_ns);
    return rp_ns_between(f->participants[c->target].begin_ns, f->participants[c->source].end_ns);
}

static void set_cause(struct rp_clock_conflict *x, const struct rp_clock_facts *f,
                      const struct cause *c)
{
    x->rendezvous = x->message = RP_CLOCK_NONE;
    if (c->by_message) {
        x->message = c->source;
        x->rank_a = f->given_messages[c->source].to;
        x->rank_b = f->given_messages[c->source].from;
    } else {
        x->rendezvous = f->participants[c->source].rendezvous;
        x->rank_a = f->given_participants[c->source].rank;
        x->rank_b = f->given_participants[c->target].rank;
    }
}

static struct rp_clock_conflict conflict_of(const struct descent *d, uint32_t clock)
{
    const struct cause *worst = &d->cause[clock], *next;
    struct rp_clock_conflict x = {0}, other = {0};
    uint32_t at = clock;
    int64_t sum = 0;

    do {
        const struct cause *c = &d->cause[at];

        sum = rp_ns_sum(sum, slack_ns(d->f, c));
        worst = slack_ns(d->f, c) < slack_ns(d->f, worst) ? c : worst;
        at = c->from;
    } while (at != clock);
    set_cause(&x, d->f, worst);
    next = &d->cause[worst->from];
    set_cause(&other, d->f, next);
    x.against = next == worst ? RP_CLOCK_NONE : other.rendezvous;
    x.against_message = next == worst ? RP_CLOCK_NONE : other.message;
    x.by_ns = rp_ns_between(sum, 0);
    return x;
}

static void start_descent(struct descent *d, int64_t value_ns)
{
    for (uint32_t c = 0; c < d->f->nclocks; c++) {
        d->x[c] = value_ns;
        d->cause[c].from = RP_CLOCK_NONE;
    }
}

/* Drops constraints until the rest can be satisfied. */
static void drop_conflicts(struct descent *d, struct rp_clocks *out)
{
    for (;;) {
        start_descent(d, 0);
        uint32_t cycle = run_passes(d);
        out->consistent = cycle == RP_CLOCK_NONE;
        if (out->consistent || out->nconflicts == CONFLICTS_MAX)
            return;
        struct rp_clock_conflict x = conflict_of(d, cycle);
        d->f->dropped[x.rendezvous == RP_CLOCK_NONE ? d->f->nrendezvous + x.message
                                                    : x.rendezvous] = true;
        out->conflicts[out->nconflicts++] = x;
    }
}

/* ------------------------------------------------------------------ entries */

static enum rp_code init_descent(struct descent *d, const struct rp_clock_facts *f,
                                 struct rp_arena *arena, struct rp_err *err)
{
    *d = (struct descent){.f = f};
    d->x = RP_ARENA_NEW(arena, int64_t, f->nclocks + 1);
    d->cause = RP_ARENA_NEW(arena, struct cause, f->nclocks + 1);
    d->mark = RP_ARENA_NEW(arena, uint32_t, f->nclocks + 1);
    return d->x && d->cause && d->mark ? RP_OK : rp_err_nomem(err, "aligning clocks");
}

enum rp_code rp_clock_fit(const struct rp_clock_facts *f, struct rp_arena *arena,
                          int64_t *adjust_ns, struct rp_clocks *out, struct rp_err *err)
{
    struct descent d;

    RP_TRY(init_descent(&d, f, arena, err));
    out->conflicts = RP_ARENA_NEW(arena, struct rp_clock_conflict, CONFLICTS_MAX);
    RP_TRY(rp_err_need(out->conflicts, err, "aligning clocks"));
    memset(adjust_ns, 0, f->nclocks * sizeof *adjust_ns);
    drop_conflicts(&d, out);
    if (!out->consistent)
        return RP_OK;
    memcpy(adjust_ns, d.x, f->nclocks * sizeof *adjust_ns);
    d.turned = true;
    start_descent(&d, 0);
    run_passes(&d);
    for (uint32_t c = 0; c < f->nclocks; c++) {
        int64_t sum = rp_ns_between(d.x[c], adjust_ns[c]); /* twice the middle */

        adjust_ns[c] = sum >= 0 ? sum / 2 : -((1 - sum) / 2);
    }
    int64_t first = adjust_ns[0];
    for (uint32_t c = 0; c < f->nclocks; c++)
        adjust_ns[c] = rp_ns_between(first, adjust_ns[c]);
    return RP_OK;
}

enum rp_code rp_clock_bounds(const struct rp_clock_facts *f, struct rp_arena *arena,
                             int64_t *low_ns, int64_t *high_ns, struct rp_err *err)
{
    struct descent d;

    RP_TRY(init_descent(&d, f, arena, err));
    start_descent(&d, FAR);
    d.x[0] = 0;
    run_passes(&d);
    memcpy(high_ns, d.x, f->nclocks * sizeof *high_ns);
    d.turned = true;
    start_descent(&d, FAR);
    d.x[0] = 0;
    run_passes(&d);
    for (uint32_t c = 0; c < f->nclocks; c++)
        low_ns[c] = d.x[c] == FAR ? INT64_MIN : rp_ns_between(d.x[c], 0);
    return RP_OK;
}
