/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass against the edges: a task may end as late as what waits for it may start, less the lag.
 * Tasks of a serial device wait for the one before on it. Steps that stand beside each other each
 * have their own end; others share the last one of all.
 */
#include "sim/slack.h"

#include "facts/intervals.h"
#include "sim/engine/device_order.h"

#include <stdlib.h>
#include <string.h>

struct way {
    uint32_t from, next; /* next: into the same task, or UINT32_MAX */
    int64_t lag_ns;
    bool from_start;
};

struct slacker {
    const struct rp_sim_run *run;
    const struct rp_sim_result *r;
    int64_t *slack;
    RP_VEC(struct way) ways;
    RP_VEC(uint32_t) newest, todo; /* newest: by task, into ways */
    RP_VEC(uint32_t) follows;      /* by task: how many tasks wait for it */
    RP_VEC(uint32_t) on_device;
    struct rp_err *err;
};

static enum rp_code add_way(struct slacker *s, uint32_t from, uint32_t to, int64_t lag_ns,
                            bool from_start)
{
    struct way x = {from, s->newest.at[to], lag_ns, from_start};

    if (lag_ns == RP_LAG_CUT)
        return RP_OK;
    s->newest.at[to] = (uint32_t)s->ways.n;
    s->follows.at[from]++;
    return rp_vec_push(&s->ways, x, s->err);
}

/* What took no time may have run in any order: only tasks that take some hold others up. */
static enum rp_code add_device_order(struct slacker *s)
{
    const struct rp_overlay *o = &s->run->overlay;
    uint32_t v, n = (uint32_t)rp_overlay_ntasks(o);
    size_t i;

    for (v = 0; v < n; v++) {
        uint32_t device = rp_overlay_task(o, v)->device;

        if (device != RP_NO_DEVICE && o->graph->devices.at[device].rule == RP_DEVICE_SERIAL &&
            s->r->end_ns.at[v] > s->r->start_ns.at[v])
            RP_TRY(rp_vec_push(&s->on_device, v, s->err));
    }
    RP_TRY(rp_device_order(o, s->r->start_ns.at, s->on_device.at, s->on_device.n, s->err));
    for (i = 1; i < s->on_device.n; i++) {
        uint32_t a = s->on_device.at[i - 1], b = s->on_device.at[i];

        if (rp_overlay_task(o, a)->device == rp_overlay_task(o, b)->device)
            RP_TRY(add_way(s, a, b, 0, false));
    }
    return RP_OK;
}

static enum rp_code turn_around(struct slacker *s)
{
    const struct rp_overlay *o = &s->run->overlay;
    const struct rp_task_graph *g = o->graph;
    uint32_t v, i, n = (uint32_t)rp_overlay_ntasks(o);

    RP_TRY(rp_vec_reserve(&s->newest, (size_t)n + 1, s->err));
    RP_TRY(rp_vec_reserve(&s->follows, (size_t)n + 1, s->err));
    memset(s->newest.at, 0xff, n * sizeof *s->newest.at);
    memset(s->follows.at, 0, n * sizeof *s->follows.at);
    for (v = 0; v < g->tasks.n; v++)
        for (i = g->first.at[v]; i < g->first.at[v + 1]; i++)
            RP_TRY(add_way(s, v, g->edges.at[i].to, o->lag_ns.at[i],
                           g->edges.at[i].flags & RP_EDGE_FROM_START));
    for (i = 0; i < o->edges.n; i++)
        RP_TRY(add_way(s, o->edges.at[i].from, o->edges.at[i].edge.to, o->edges.at[i].edge.lag_ns,
                       o->edges.at[i].edge.flags & RP_EDGE_FROM_START));
    return add_device_order(s);
}

/* Ends of tasks that nothing waits for: that of their step, or of all. */
static enum rp_code set_ends(struct slacker *s)
{
    const struct rp_sim_part *part = s->run->parts[0];
    uint32_t v, n = (uint32_t)rp_overlay_ntasks(&s->run->overlay);
    size_t steps = part->beside ? part->nsteps : 0;
    int64_t *last = calloc(steps + 1, sizeof *last);

    if (!last)
        return rp_err_nomem(s->err, "simulating");
    for (v = 0; v < n; v++) {
        size_t step = rp_overlay_task(&s->run->overlay, v)->step;

        step = step < steps ? step : steps;
        last[step] = s->r->end_ns.at[v] > last[step] ? s->r->end_ns.at[v] : last[step];
    }
    for (v = 0; v < n; v++) {
        size_t step = rp_overlay_task(&s->run->overlay, v)->step;

        s->slack[v] = last[step < steps ? step : steps] - s->r->end_ns.at[v];
    }
    free(last);
    return RP_OK;
}

/* By how much the one before may be late, if this one may by that much. */
static int64_t slack_before(const struct slacker *s, const struct way *w, uint32_t to)
{
    int64_t at = w->from_start ? s->r->start_ns.at[w->from] : s->r->end_ns.at[w->from];

    return rp_ns_sum(s->slack[to], s->r->start_ns.at[to] - at - w->lag_ns);
}

static enum rp_code pass(struct slacker *s)
{
    uint32_t v, i, n = (uint32_t)rp_overlay_ntasks(&s->run->overlay);

    for (v = 0; v < n; v++)
        if (!s->follows.at[v])
            RP_TRY(rp_vec_push(&s->todo, v, s->err));
    while (s->todo.n) {
        v = s->todo.at[--s->todo.n];
        for (i = s->newest.at[v]; i != UINT32_MAX; i = s->ways.at[i].next) {
            const struct way *w = &s->ways.at[i];
            int64_t most = slack_before(s, w, v);

            s->slack[w->from] = most < s->slack[w->from] ? most : s->slack[w->from];
            if (!--s->follows.at[w->from])
                RP_TRY(rp_vec_push(&s->todo, w->from, s->err));
        }
    }
    return RP_OK;
}

enum rp_code rp_sim_slack(const struct rp_sim_run *run, const struct rp_sim_result *result,
                          int64_t *slack_ns, struct rp_err *err)
{
    struct slacker s = {.run = run, .r = result, .slack = slack_ns, .err = err};
    enum rp_code code = turn_around(&s);

    if (code == RP_OK)
        code = set_ends(&s);
    if (code == RP_OK)
        code = pass(&s);
    rp_vec_release(&s.ways);
    rp_vec_release(&s.newest);
    rp_vec_release(&s.todo);
    rp_vec_release(&s.follows);
    rp_vec_release(&s.on_device);
    return code;
}
