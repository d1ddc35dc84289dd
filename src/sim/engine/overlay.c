/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The overlay keeps whole columns of durations and lags, so that the simulator reads them without a
 * test, and a log of the previous values. New edges out of a task are a list, newest first, so
 * undoing the last one is one step.
 */
#include "sim/engine/overlay.h"

#include "base/hash.h"
#include "base/order.h"

#include <string.h>

static enum rp_code check_size(size_t n, struct rp_err *err)
{
    return n < RP_OVERLAY_MOST
               ? RP_OK
               : rp_err_set(err, RP_LIMIT, "a simulation can have at most %u tasks or edges",
                            RP_OVERLAY_MOST - 1);
}

static enum rp_code count_degrees(struct rp_overlay *o, struct rp_err *err)
{
    const struct rp_task_graph *graph = o->graph;
    size_t i, n = graph->tasks.n;

    RP_TRY(check_size(n > graph->edges.n ? n : graph->edges.n, err));
    RP_TRY(rp_vec_reserve_full(&o->degree, n + 1, err));
    memset(o->degree.at, 0, (n + 1) * sizeof *o->degree.at);
    for (i = 0; i < graph->edges.n; i++)
        o->degree.at[graph->edges.at[i].to]++;
    o->degree.n = n;
    return RP_OK;
}

enum rp_code rp_overlay_init(struct rp_overlay *o, const struct rp_task_graph *graph,
                             struct rp_err *err)
{
    size_t n = graph->tasks.n;

    memset(o, 0, sizeof *o);
    o->graph = graph;
    RP_TRY(rp_vec_reserve_full(&o->dur_ns, n + 1, err));
    RP_TRY(rp_vec_reserve_full(&o->lag_ns, graph->edges.n + 1, err));
    if (n)
        memcpy(o->dur_ns.at, graph->dur_ns.at, n * sizeof *o->dur_ns.at);
    if (graph->edges.n)
        memcpy(o->lag_ns.at, graph->lag_ns.at, graph->edges.n * sizeof *o->lag_ns.at);
    o->dur_ns.n = n;
    o->lag_ns.n = graph->edges.n;
    return count_degrees(o, err);
}

enum rp_code rp_overlay_take(struct rp_overlay *o, struct rp_task_graph *graph, struct rp_err *err)
{
    memset(o, 0, sizeof *o);
    o->graph = graph;
    memcpy(&o->dur_ns, &graph->dur_ns, sizeof o->dur_ns);
    memcpy(&o->lag_ns, &graph->lag_ns, sizeof o->lag_ns);
    memset(&graph->dur_ns, 0, sizeof graph->dur_ns);
    memset(&graph->lag_ns, 0, sizeof graph->lag_ns);
    return count_degrees(o, err);
}

void rp_overlay_release(struct rp_overlay *o)
{
    rp_vec_release(&o->dur_ns);
    rp_vec_release(&o->lag_ns);
    rp_vec_release(&o->tasks);
    rp_vec_release(&o->source);
    rp_vec_release(&o->edges);
    rp_vec_release(&o->newest);
    rp_vec_release(&o->degree);
    rp_vec_release(&o->log);
}

#define COPY(column)                                                                  \
    do {                                                                              \
        RP_TRY(rp_vec_reserve(&out->column, o->column.n + 1, err));                   \
        if (o->column.n)                                                              \
            memcpy(out->column.at, o->column.at, o->column.n * sizeof *o->column.at); \
        out->column.n = o->column.n;                                                  \
    } while (0)

enum rp_code rp_overlay_copy(struct rp_overlay *out, const struct rp_overlay *o, struct rp_err *err)
{
    memset(out, 0, sizeof *out);
    out->graph = o->graph;
    out->starts_matter = o->starts_matter;
    out->device_starts_matter = o->device_starts_matter;
    out->prioritised = o->prioritised;
    COPY(dur_ns);
    COPY(lag_ns);
    COPY(tasks);
    COPY(source);
    COPY(edges);
    COPY(newest);
    COPY(degree);
    COPY(log);
    return RP_OK;
}

/* ------------------------------------------------------------------ the log */

/* What a task or edge of a change is now; of a new edge, the newest that its task has. */
static uint64_t value_of(const struct rp_overlay *o, const struct rp_overlay_change *c)
{
    const struct rp_task_edge *edge;

    switch (c->what) {
    case RP_OVERLAY_SET_LAG:
        return (uint64_t)o->lag_ns.at[c->at];
    case RP_OVERLAY_ADD_EDGE:
        edge = &o->edges.at[o->newest.at[c->at]].edge;
        return rp_hash_join((uint64_t)edge->lag_ns, edge->to);
    default:
        return (uint64_t)o->dur_ns.at[c->at];
    }
}

uint64_t rp_overlay_stamp(const struct rp_overlay *o)
{
    uint64_t stamp = o->log.n;

    for (size_t i = 0; i < o->log.n; i++) {
        const struct rp_overlay_change *c = &o->log.at[i];

        stamp = rp_hash_join(stamp, value_of(o, c) ^ (uint64_t)c->at << 34 ^ (uint64_t)c->what);
    }
    return stamp;
}

/* ------------------------------------------------------------------ changes */

enum rp_code rp_overlay_add(struct rp_overlay *o, struct rp_task task, uint32_t *id,
                            struct rp_err *err)
{
    RP_TRY(check_size(rp_overlay_ntasks(o) + 1, err));
    RP_TRY(rp_vec_reserve(&o->dur_ns, 1, err));
    RP_TRY(rp_vec_reserve(&o->degree, 1, err));
    RP_TRY(rp_vec_reserve(&o->tasks, 1, err));
    RP_TRY(rp_vec_reserve(&o->source, 1, err));
    *id = (uint32_t)rp_overlay_ntasks(o);
    o->prioritised |= task.priority != 0 && task.device != RP_NO_DEVICE;
    RP_TRY(rp_overlay_log(o, RP_OVERLAY_ADD_TASK, *id, 0, err));
    o->dur_ns.at[o->dur_ns.n++] = task.dur_ns;
    o->degree.at[o->degree.n++] = 0;
    o->tasks.at[o->tasks.n++] = rp_task_row_of(&task);
    o->source.at[o->source.n++] = task.source;
    return RP_OK;
}

enum rp_code rp_overlay_link(struct rp_overlay *o, uint32_t from, uint32_t to, int64_t lag_ns,
                             uint32_t flags, struct rp_err *err)
{
    struct rp_extra_edge e = {{lag_ns, to, flags}, from, rp_overlay_newest(o, from)};

    o->starts_matter |= flags & RP_EDGE_FROM_START;
    o->device_starts_matter |=
        flags & RP_EDGE_FROM_START && rp_overlay_task(o, from)->device != RP_NO_DEVICE;
    RP_TRY(rp_vec_reserve(&o->edges, 1, err));
    if (from >= o->newest.n) {
        size_t more = rp_overlay_ntasks(o) - o->newest.n;

        RP_TRY(rp_vec_reserve(&o->newest, more, err));
        memset(o->newest.at + o->newest.n, 0xff, more * sizeof *o->newest.at);
        o->newest.n += more;
    }
    RP_TRY(rp_overlay_log(o, RP_OVERLAY_ADD_EDGE, from, 0, err));
    o->newest.at[from] = (uint32_t)o->edges.n;
    o->edges.at[o->edges.n++] = e;
    o->degree.at[to]++;
    return RP_OK;
}

static void undo_edge(struct rp_overlay *o, uint32_t from)
{
    const struct rp_extra_edge *e = &o->edges.at[--o->edges.n];

    o->newest.at[from] = e->next;
    o->degree.at[e->edge.to]--;
}

void rp_overlay_undo(struct rp_overlay *o, size_t mark)
{
    while (o->log.n > mark) {
        struct rp_overlay_change c = o->log.at[--o->log.n];

        switch (c.what) {
        case RP_OVERLAY_SET_DUR:
            o->dur_ns.at[c.at] = c.old;
            break;
        case RP_OVERLAY_SET_LAG:
            rp_overlay_put_lag(o, c.at, c.old);
            break;
        case RP_OVERLAY_ADD_TASK:
            o->dur_ns.n--;
            o->degree.n--;
            o->tasks.n--;
            o->source.n--;
            break;
        default:
            undo_edge(o, c.at);
        }
    }
}

/* The first change of an edge tells what it was before. */
void rp_overlay_base_lags(const struct rp_overlay *o, const uint32_t *edges, size_t n,
                          int64_t *lag_ns)
{
    size_t i, k;

    for (i = 0; i < n; i++)
        lag_ns[i] = o->lag_ns.at[edges[i]];
    for (i = o->log.n; i-- > 0;) {
        struct rp_overlay_change c = o->log.at[i];

        if (c.what != RP_OVERLAY_SET_LAG)
            continue;
        RP_LOWER_BOUND(k, n, edges[k] < c.at);
        if (k < n && edges[k] == c.at)
            lag_ns[k] = c.old;
    }
}
