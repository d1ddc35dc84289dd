/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what made a step far longer than the others: that the thread of the marks waited for a
 * processor, or else the name with the largest difference of own time on that thread, between this
 * step and a typical one. Linear in the events of these steps.
 */
#include "explain/report/report.h"

#include "base/decides.h"
#include "base/hash.h"
#include "base/order.h"
#include "explain/short_name.h"
#include "facts/host/processors.h"
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

static int64_t end_of(const struct rp_trace *t, size_t at, const struct rp_report_step *s)
{
    int64_t end = rp_ns_sum(s->b.begin_ns, s->b.window_ns);

    return at + 1 < t->nsteps && t->steps[at + 1].begin_ns < end ? t->steps[at + 1].begin_ns : end;
}

/* For how long the thread of a step's mark was ready in it and had no processor. */
static int64_t unserved_in(const struct rp_trace *t, const struct rp_processors *processors,
                           size_t at, const struct rp_report_step *s)
{
    rp_track thread = t->ev.track[t->steps[at].mark];
    int64_t begin = t->steps[at].begin_ns, end = end_of(t, at, s);
    double ns = 0;

    for (size_t i = rp_ready_first(processors, thread, begin); i < processors->ready.n; i++) {
        const struct rp_ready *r = &processors->ready.at[i];

        if (r->thread != thread || r->begin_ns >= end)
            break;
        ns += (double)r->ready_ns * (double)rp_ns_common(r->begin_ns, r->end_ns, begin, end) /
              (double)rp_ns_between(r->begin_ns, r->end_ns);
    }
    return (int64_t)ns;
}

/* Without a device, steps that are far longer than the others may have waited for a processor. */
static enum rp_code measure_unserved(const struct rp_trace *t, struct rp_report_step *steps,
                                     size_t n, int64_t usual, size_t typical, struct rp_err *err)
{
    struct rp_processors processors;
    enum rp_code code = rp_processors_find(t, &processors, err);
    int64_t often = code == RP_OK ? unserved_in(t, &processors, typical, &steps[typical]) : 0;

    for (size_t i = 0; i < n && code == RP_OK; i++)
        if ((double)rp_report_own_ns(&steps[i]) > RP_ATYPICAL * (double)usual) {
            int64_t more = rp_ns_between(often, unserved_in(t, &processors, i, &steps[i]));

            steps[i].unserved_ns = more > 0 ? more : 0;
        }
    rp_processors_release(&processors);
    return code;
}

/* Adds the own times of events that begin in a step, `sign` times. */
static enum rp_code add_step(struct longer_ctx *c, size_t at, const struct rp_report_step *s,
                             int sign, struct rp_err *err)
{
    const struct rp_trace *t = c->t;
    rp_event mark = t->steps[at].mark;
    const struct rp_track_info *track = &t->tracks[t->ev.track[mark]];
    int64_t begin = t->steps[at].begin_ns, end = end_of(t, at, s);
    size_t i;

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
    const char *waited = rp_arena_textf(arena, "its thread waited %s longer for a processor",
                                        rp_units_time(arena, steps[at].unserved_ns));

    if ((double)steps[at].unserved_ns >= MOST_OF * (double)more_ns) {
        steps[at].longer = waited;
    } else if (code == RP_OK && most && (double)most->ns >= MOST_OF * (double)more_ns) {
        bool partly = (double)steps[at].unserved_ns >= MOST_OF * (double)most->ns;

        rp_cut_name(rp_trace_str(t, most->name), name, sizeof name);
        steps[at].longer =
            rp_arena_textf(arena, "'%s' ran %s longer%s%s", name, rp_units_time(arena, most->ns),
                           partly ? ", and " : "", partly ? waited : "");
    }
    rp_map_release(&c.by_name);
    rp_vec_release(&c.times);
    return code;
}

enum rp_code rp_report_say_longer(const struct rp_trace *trace, struct rp_report_step *steps,
                                  size_t n, bool on_device, struct rp_arena *arena,
                                  struct rp_err *err)
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
    if (!on_device) /* there the host may run ahead */
        RP_TRY(measure_unserved(trace, steps, n, usual, typical, err));
    for (i = 0; i < n && left; i++)
        if ((double)rp_report_own_ns(&steps[i]) > RP_ATYPICAL * (double)usual) {
            RP_TRY(compare(trace, steps, i, typical, arena, err));
            left--;
        }
    return rp_arena_check(arena, "measuring steps", err);
}
