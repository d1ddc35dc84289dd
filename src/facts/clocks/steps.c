/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each clock is followed from rendezvous to rendezvous: its offset moves a quarter of the distance
 * between its end and the median of all ends, so it follows any real drift. An end that is far from
 * the median, compared with the scatter before and with the largest drift of a real clock, is an
 * outlier, or the first after a step: it is a step if the following ends are as far away.
 *
 * An even number of ends has two medians. If they are far from each other, as with two clocks after
 * a step, the one whose clock keeps its rhythm is used: on a clock that was set, the time since the
 * previous end is unusual. Traces in which a clock that was set back shows times twice are unfolded
 * when they are read (trace/unfold.h).
 */
#include "facts/clocks/steps.h"

#include "base/decides.h"
#include "base/order.h"
#include "base/vec.h"
#include "facts/times/durations.h"
#include "facts/times/intervals.h"

#include <string.h>

#define IN_A_ROW 4
RP_DECISION(
    IN_A_ROW, "rendezvous",
    "a step needs as many that are as far away, and as many before it that are not: a delay "
    "makes one or two end late; also what one distance may move the offset, and by how many "
    "of the largest distances of late a step exceeds scatter",
    "facts/a_step_takes_four_rendezvous");
#define RHYTHM (2 * IN_A_ROW) /* number of times between ends whose median is usual */
#define FADE   0.97
RP_DECISION(
    FADE, "by rendezvous",
    "how fast large distances are forgotten: half of one in 23 rendezvous, more than a step "
    "needs",
    "facts/scatter_is_remembered");
#define STEPS_MAX 64
RP_LIMIT(STEPS_MAX, "steps of a clock",
         "each time is compared with all of them; those beyond it stay in the times, which then "
         "contradict each other and are reported");
#define LEAST_NS \
    (INT64_C(2) * RP_CLOCK_TOLERANCE_NS) /* smaller steps between two ends are scatter */

/* What is known about a clock while its rendezvous are visited. */
struct track {
    uint32_t n; /* number of rendezvous that were near the others */
    int64_t offset_ns;
    double scatter_ns;          /* the largest distance of late */
    int64_t last_end_ns;        /* of those near the others, uncorrected */
    int64_t between_ns[RHYTHM]; /* the last ends */
    int64_t
        odd_ns; /* how far the time since the last end is from the usual one; within a rendezvous */
    /* A step that is not yet certain. */
    uint32_t far;
    int64_t far_ns, far_begin_ns, far_after_ns;
    RP_VEC(struct rp_clock_step) steps;
};

/* The participants of one clock in one rendezvous. */
struct visit {
    uint32_t clock;
    int64_t begin_ns, end_ns; /* the earliest begin and the middle end */
};

struct step_ctx {
    const struct rp_clock_series *s;
    struct track *tracks;
    struct visit *visits; /* of one rendezvous */
    size_t nvisits;
    int64_t *ends; /* scratch */
};

/* The distance that drift and scatter explain. scatter_ns: over all clocks in the rendezvous,
   because the distances of two clocks are all seen on one of them. */
static int64_t reach_ns(const struct track *t, const struct visit *v, double scatter_ns)
{
    int64_t apart = rp_ns_between(t->last_end_ns, v->end_ns);
    double drift = (double)(apart < 0 ? rp_ns_between(apart, 0) : apart) * RP_CLOCK_DRIFT_PPM / 1e6;
    double reach = drift > IN_A_ROW * scatter_ns ? drift : IN_A_ROW * scatter_ns;

    if (reach >= (double)INT64_MAX)
        return INT64_MAX; /* absurd times of damaged files */
    return reach > LEAST_NS ? (int64_t)reach : LEAST_NS;
}

static int64_t size_of(int64_t ns)
{
    return ns < 0 ? rp_ns_between(ns, 0) : ns;
}

RP_ORDER(by_clock, struct visit, RP_UP(clock), RP_UP(end_ns))

/* Makes one visit for each clock. */
static void list_visits(struct step_ctx *x, uint32_t rendezvous)
{
    const struct rp_clock_series *s = x->s;
    uint32_t i, from = s->first[rendezvous], n = s->first[rendezvous + 1] - from, end;

    for (i = 0; i < n; i++) {
        const struct rp_clock_participant *p = &s->participants[from + i];

        x->visits[i] = (struct visit){p->rank, p->begin_ns, p->end_ns};
    }
    if (n)
        qsort(x->visits, n, sizeof *x->visits, by_clock);
    for (i = 0, x->nvisits = 0; i < n; i = end) {
        struct visit v = x->visits[i];

        for (end = i; end < n && x->visits[end].clock == v.clock; end++)
            v.begin_ns =
                x->visits[end].begin_ns < v.begin_ns ? x->visits[end].begin_ns : v.begin_ns;
        v.end_ns = x->visits[i + (end - i - 1) / 2].end_ns;
        x->visits[x->nvisits++] = v;
    }
}

/* How much the clock of an end is out of its rhythm. */
static int64_t oddness_at(const struct step_ctx *x, uint32_t rendezvous, int64_t end_ns)
{
    const struct rp_clock_series *s = x->s;
    uint32_t i = s->first[rendezvous];

    while (i + 1 < s->first[rendezvous + 1] &&
           rp_ns_sum(s->participants[i].end_ns, x->tracks[s->participants[i].rank].offset_ns) !=
               end_ns)
        i++;
    return x->tracks[s->participants[i].rank].odd_ns;
}

/* The time of the rendezvous on the clocks that are already followed, or if there are none, on
   all. */
static int64_t time_of(struct step_ctx *x, uint32_t rendezvous)
{
    const struct rp_clock_series *s = x->s;
    bool all = false;
    size_t n;
    uint32_t i;

    do {
        for (i = s->first[rendezvous], n = 0; i < s->first[rendezvous + 1]; i++) {
            const struct track *t = &x->tracks[s->participants[i].rank];

            if (t->n || all)
                x->ends[n++] = rp_ns_sum(s->participants[i].end_ns, t->offset_ns);
        }
        all = !all;
    } while (!n && all);
    rp_ns_sort(x->ends, n);
    int64_t low = x->ends[(n - 1) / 2];
    int64_t high = x->ends[n / 2];
    return rp_ns_between(low, high) > LEAST_NS &&
                   oddness_at(x, rendezvous, high) < oddness_at(x, rendezvous, low)
               ? high
               : low;
}

static enum rp_code confirm_step(struct track *t, struct rp_err *err)
{
    struct rp_clock_step step = {.from_ns = t->far_begin_ns, .add_ns = t->far_ns};

    if (t->far_after_ns < t->far_begin_ns)
        step.from_ns =
            rp_ns_sum(t->far_after_ns, rp_ns_between(t->far_after_ns, t->far_begin_ns) / 2);
    t->far = 0;
    if (t->steps.n == STEPS_MAX ||
        (t->steps.n && t->steps.at[t->steps.n - 1].from_ns >= step.from_ns) ||
        rp_ns_between(t->far_after_ns, t->far_begin_ns) < rp_ns_between(step.add_ns, 0))
        return RP_OK; /* a clock that is set forward shows a gap of that size */
    t->offset_ns = rp_ns_sum(t->offset_ns, step.add_ns);
    return rp_vec_push(&t->steps, step, err);
}

static enum rp_code follow(struct track *t, const struct visit *v, int64_t at_ns, double scatter_ns,
                           struct rp_err *err)
{
    int64_t d = rp_ns_between(rp_ns_sum(v->end_ns, t->offset_ns), at_ns);

    if (!t->n) {
        t->offset_ns = rp_ns_sum(t->offset_ns, d);
        d = 0;
    }
    if (t->n >= IN_A_ROW && size_of(d) > reach_ns(t, v, scatter_ns)) {
        if (!t->far || size_of(rp_ns_between(t->far_ns, d)) > size_of(t->far_ns) / IN_A_ROW) {
            t->far = 0;
            t->far_ns = d;
            t->far_begin_ns = v->begin_ns;
            t->far_after_ns = t->last_end_ns;
        }
        return ++t->far == IN_A_ROW ? confirm_step(t, err) : RP_OK;
    }
    t->far = 0;
    t->offset_ns = rp_ns_sum(t->offset_ns, d / IN_A_ROW);
    t->scatter_ns *= FADE;
    t->scatter_ns = (double)size_of(d) > t->scatter_ns ? (double)size_of(d) : t->scatter_ns;
    if (t->n)
        t->between_ns[(t->n - 1) % RHYTHM] = rp_ns_between(t->last_end_ns, v->end_ns);
    t->last_end_ns = v->end_ns;
    t->n++;
    return RP_OK;
}

static enum rp_code walk(struct step_ctx *x, struct rp_err *err)
{
    const struct rp_clock_series *s = x->s;

    for (size_t m = 0; m < s->nrendezvous; m++) {
        uint32_t rendezvous = s->order[m];
        double scatter = 0;

        list_visits(x, rendezvous);
        if (x->nvisits < 2)
            continue;

        /* Compare how much the clocks of this rendezvous are out of their rhythm. */
        for (size_t k = 0; k < x->nvisits; k++) {
            struct track *t = &x->tracks[x->visits[k].clock];
            size_t n = t->n > RHYTHM ? RHYTHM : t->n ? t->n - 1 : 0;
            int64_t usual[RHYTHM], since = rp_ns_between(t->last_end_ns, x->visits[k].end_ns);

            memcpy(usual, t->between_ns, sizeof usual);
            rp_ns_sort(usual, n);
            t->odd_ns = n ? size_of(rp_ns_between(usual[n / 2], since)) : INT64_MAX;
        }

        int64_t at = time_of(x, rendezvous);
        for (size_t k = 0; k < x->nvisits; k++)
            if (x->tracks[x->visits[k].clock].scatter_ns > scatter)
                scatter = x->tracks[x->visits[k].clock].scatter_ns;
        for (size_t k = 0; k < x->nvisits; k++)
            RP_TRY(follow(&x->tracks[x->visits[k].clock], &x->visits[k], at, scatter, err));
    }
    for (size_t k = 0; k < s->nclocks; k++)
        if (x->tracks[k].far >= 2)
            RP_TRY(confirm_step(&x->tracks[k], err));
    return RP_OK;
}

int64_t rp_clock_steps_before(const struct rp_clock_step *at, size_t n, int64_t ns)
{
    int64_t add = 0;

    for (size_t i = 0; i < n && at[i].from_ns <= ns; i++)
        add = rp_ns_sum(add, at[i].add_ns);
    return add;
}

/* Copies the steps of the clocks into the arena and undoes them. */
static enum rp_code keep_steps(struct step_ctx *x, struct rp_arena *arena,
                               struct rp_clock_steps *out, struct rp_err *err)
{
    const struct rp_clock_series *s = x->s;

    for (size_t c = 0; c < s->nclocks; c++) {
        const struct track *t = &x->tracks[c];

        out[c] = (struct rp_clock_steps){0};
        if (!t->steps.n)
            continue;
        out[c].at = RP_ARENA_NEW(arena, struct rp_clock_step, t->steps.n);
        if (!out[c].at)
            return rp_err_nomem(err, "aligning clocks");
        memcpy(out[c].at, t->steps.at, t->steps.n * sizeof *out[c].at);
        out[c].n = t->steps.n;
    }
    for (uint32_t i = 0; i < s->first[s->nrendezvous]; i++) {
        struct rp_clock_participant *p = &s->participants[i];
        int64_t add = rp_clock_steps_before(out[p->rank].at, out[p->rank].n, p->begin_ns);

        p->begin_ns = rp_ns_sum(p->begin_ns, add);
        p->end_ns = rp_ns_sum(p->end_ns, add);
    }
    return RP_OK;
}

enum rp_code rp_clock_steps_find(const struct rp_clock_series *s, struct rp_arena *arena,
                                 struct rp_clock_steps *out, struct rp_err *err)
{
    size_t n = s->first[s->nrendezvous], c;
    struct step_ctx x = {.s = s};

    x.tracks = calloc(s->nclocks + 1, sizeof *x.tracks);
    x.visits = calloc(n + 1, sizeof *x.visits);
    x.ends = calloc(n + 1, sizeof *x.ends);
    enum rp_code code =
        x.tracks && x.visits && x.ends ? RP_OK : rp_err_nomem(err, "aligning clocks");
    for (c = 0; code == RP_OK && c < s->nclocks; c++)
        x.tracks[c].offset_ns = s->offset_ns[c];
    if (code == RP_OK)
        code = walk(&x, err);
    if (code == RP_OK)
        code = keep_steps(&x, arena, out, err);
    for (c = 0; x.tracks && c < s->nclocks; c++)
        rp_vec_release(&x.tracks[c].steps);
    free(x.tracks);
    free(x.visits);
    free(x.ends);
    return code;
}
