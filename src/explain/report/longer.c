/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what made a step far longer than the others: the name with the largest difference of own
 * time, on the thread of the marks, between this step and a typical one. Linear in the events of
 * these steps.
 */
#include "explain/report/report.h"

#include "base/decides.h"
#include "base/hash.h"
#include "base/order.h"
#include "explain/short_name.h"
#include "result/print_units.h"

#define MOST_STEPS 32
RP_LIMIT(MOST_STEPS, "steps of a rank", "the first ones that are not typical say what took longer");
#define MOST_NAME 80
RP_LIMIT(MOST_NAME, "bytes of a name", "longer ones are cut in their middle");

#define MOST_OF 0.5
RP_DECISION(MOST_OF, "of what a step takes longer",
            "a name with less of it does not explain the step",
            "explain/a_step_is_longer_for_a_reason");

struct own_time {
    rp_str name;
    int64_t ns; /* time in the step minus that in a typical one */
};

struct longer_ctx {
    const struct rp_trace *t;
    struct rp_map by_name;
    RP_VEC(struct own_time) times;
};

static enum rp_code add_time(struct longer_ctx *c, rp_event e, int64_t ns, struct rp_err *err)
{
    uint32_t fresh = (uint32_t)c->times.n, at;
    struct own_time none = {.name = c->t->ev.name[e]};

    RP_TRY(rp_map_intern(&c->by_name, none.name, fresh, &at, err));
    if (at == fresh)
        RP_TRY(rp_vec_push(&c->times, none, err));
    rp_ns_add(&c->times.at[at].ns, ns);
    return RP_OK;
}

/* Adds the own times of events that begin in a step, `sign` times. */
static enum rp_code add_step(struct longer_ctx *c, size_t at, const struct rp_report_step *s,
                             int sign, struct rp_err *err)
{
    const struct rp_trace *t = c->t;
    rp_event mark = t->steps[at].mark;
    const struct rp_track_info *track = &t->tracks[t->ev.track[mark]];
    int64_t begin = t->steps[at].begin_ns, end = rp_ns_sum(s->b.begin_ns, s->b.window_ns);
    size_t i;

    if (at + 1 < t->nsteps && t->steps[at + 1].begin_ns < end)
        end = t->steps[at + 1].begin_ns;
    RP_LOWER_BOUND_FROM(i, track->first, track->end, t->ev.ts_ns[i] < begin);
    for (; i < track->end && t->ev.ts_ns[i] < end; i++) {
        rp_event e = (rp_event)i, parent = t->ev.parent[e];

        if (e == mark || t->ev.dur_ns[e] <= 0)
            continue;
        RP_TRY(add_time(c, e, sign * t->ev.dur_ns[e], err));
        if (parent != RP_NONE && parent != mark && t->ev.ts_ns[parent] >= begin)
            RP_TRY(add_time(c, parent, -sign * t->ev.dur_ns[e], err));
    }
    return RP_OK;
}

static enum rp_code compare(const struct rp_trace *t, struct rp_report_step *steps, size_t at,
                            size_t typical, struct rp_arena *arena, struct rp_err *err)
{
    struct longer_ctx c = {.t = t};
    const struct own_time *most = NULL;
    char name[MOST_NAME + 1];
    enum rp_code code = add_step(&c, at, &steps[at], 1, err);

    if (code == RP_OK)
        code = add_step(&c, typical, &steps[typical], -1, err);
    for (size_t i = 0; i < c.times.n; i++)
        if (!most || c.times.at[i].ns > most->ns)
            most = &c.times.at[i];
    int64_t more_ns =
        rp_ns_between(rp_report_own_ns(&steps[typical]), rp_report_own_ns(&steps[at]));
    if (code == RP_OK && most && (double)most->ns >= MOST_OF * (double)more_ns) {
        rp_cut_name(rp_trace_str(t, most->name), name, sizeof name);
        steps[at].longer =
            rp_arena_textf(arena, "'%s' ran %s longer", name, rp_units_time(arena, most->ns));
    }
    rp_map_release(&c.by_name);
    rp_vec_release(&c.times);
    return code;
}

enum rp_code rp_report_say_longer(const struct rp_trace *trace, struct rp_report_step *steps,
                                  size_t n, struct rp_arena *arena, struct rp_err *err)
{
    int64_t *ns = RP_ARENA_NEW(arena, int64_t, n + 1), usual;
    size_t i, left = MOST_STEPS, typical = 0;

    RP_TRY(rp_err_need(ns, err, "measuring steps"));
    if (n < 2 || n > trace->nsteps || !rp_report_steps_alike(steps, n))
        return RP_OK;
    for (i = 0; i < n; i++) {
        if (trace->steps[i].mark == RP_NONE)
            return RP_OK;
        ns[i] = rp_report_own_ns(&steps[i]);
    }
    rp_ns_sort(ns, n);
    usual = rp_ns_median(ns, n);
    for (i = 0; i < n; i++)
        if (rp_ns_apart(rp_report_own_ns(&steps[i]), usual) <
            rp_ns_apart(rp_report_own_ns(&steps[typical]), usual))
            typical = i;
    for (i = 0; i < n && left; i++)
        if ((double)rp_report_own_ns(&steps[i]) > RP_ATYPICAL * (double)usual) {
            RP_TRY(compare(trace, steps, i, typical, arena, err));
            left--;
        }
    return rp_arena_check(arena, "measuring steps", err);
}
