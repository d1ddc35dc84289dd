/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The overlay keeps whole columns of durations and lags, so that the simulator reads them without a
 * test, and a log of the previous values. New edges out of a task are a list, newest first, so
 * undoing the last one is one step.
 *
 * A what-if may change every task of a large run, mostly in order, so the log consists of bytes:
 *
 *     old value | distance from the last change of this kind, kind
 *
 * Both are numbers of seven bits a byte, the lowest at the end: they are read backward.
 */
#include "sim/engine/overlay.h"

#include "base/hash.h"
#include "base/order.h"

#include <string.h>

static enum rp_code count_degrees(struct rp_overlay *o, struct rp_err *err)
{
    const struct rp_task_graph *graph = o->graph;
    size_t i, n = graph->tasks.n;

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
    out->stamp = o->stamp;
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
    memcpy(out->log_at, o->log_at, sizeof out->log_at);
    return RP_OK;
}

/* ------------------------------------------------------------------ the log */

enum { CHANGE_MOST = 16 }; /* bytes: 10 and 6 */

/* Maps small negative numbers to small numbers, too. */
static uint64_t folded(int64_t x)
{
    return (uint64_t)x << 1 ^ (uint64_t)(x >> 63);
}

static int64_t unfolded(uint64_t x)
{
    return (int64_t)(x >> 1 ^ (0 - (x & 1)));
}

/* Puts the highest bits first; a byte that follows another one has its top bit set. */
static uint8_t *put_number(uint8_t *to, uint64_t x)
{
    unsigned shift = 0;

    while (shift < 8 * sizeof x - 1 && x >> shift >= 0x80)
        shift += 7;
    *to++ = (uint8_t)(x >> shift);
    while (shift) {
        shift -= 7;
        *to++ = (uint8_t)(x >> shift & 127) | 128;
    }
    return to;
}

static uint64_t number_before(const uint8_t *log, size_t *end)
{
    uint64_t x = 0;

    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = log[--*end];

        x |= (uint64_t)(byte & 127) << shift;
        if (byte < 0x80)
            return x;
    }
}

/* The stamp of a change at a place of the log; adding and removing it are the same operation. */
static uint64_t stamp_of(size_t place, uint8_t what, uint32_t at, int64_t fresh)
{
    return rp_hash_join((uint64_t)fresh, (uint64_t)at << 2 | what) * (2 * place + 1);
}

static enum rp_code log_change(struct rp_overlay *o, uint8_t what, uint32_t at, int64_t old,
                               int64_t fresh, struct rp_err *err)
{
    int64_t far = (int64_t)at - o->log_at[what];

    RP_TRY(rp_vec_reserve(&o->log, CHANGE_MOST, err));
    o->stamp ^= stamp_of(o->log.n, what, at, fresh);
    uint8_t *to = put_number(o->log.at + o->log.n, folded(old));
    to = put_number(to, folded(far) << 2 | what);
    o->log.n = (size_t)(to - o->log.at);
    o->log_at[what] = at;
    return RP_OK;
}

struct rp_overlay_place rp_overlay_last(const struct rp_overlay *o)
{
    struct rp_overlay_place place = {.end = o->log.n};

    memcpy(place.at, o->log_at, sizeof place.at);
    return place;
}

struct rp_overlay_change rp_overlay_before(const struct rp_overlay *o,
                                           struct rp_overlay_place *place)
{
    uint64_t head = number_before(o->log.at, &place->end);
    struct rp_overlay_change c = {.what = head & 3};

    c.at = place->at[c.what];
    c.old = unfolded(number_before(o->log.at, &place->end));
    place->at[c.what] = (uint32_t)(c.at - unfolded(head >> 2));
    return c;
}

/* ------------------------------------------------------------------ changes */

enum rp_code rp_overlay_set_dur(struct rp_overlay *o, uint32_t task, int64_t dur_ns,
                                struct rp_err *err)
{
    if (o->dur_ns.at[task] == dur_ns)
        return RP_OK;
    RP_TRY(log_change(o, RP_OVERLAY_SET_DUR, task, o->dur_ns.at[task], dur_ns, err));
    o->dur_ns.at[task] = dur_ns;
    return RP_OK;
}

/* A cut edge is not waited for at all. */
static void put_lag(struct rp_overlay *o, uint32_t edge, int64_t lag_ns)
{
    uint32_t *degree = &o->degree.at[o->graph->edges.at[edge].to];

    *degree += o->lag_ns.at[edge] == RP_LAG_CUT;
    *degree -= lag_ns == RP_LAG_CUT;
    o->lag_ns.at[edge] = lag_ns;
}

enum rp_code rp_overlay_set_lag(struct rp_overlay *o, uint32_t edge, int64_t lag_ns,
                                struct rp_err *err)
{
    if (o->lag_ns.at[edge] == lag_ns)
        return RP_OK;
    RP_TRY(log_change(o, RP_OVERLAY_SET_LAG, edge, o->lag_ns.at[edge], lag_ns, err));
    put_lag(o, edge, lag_ns);
    return RP_OK;
}

enum rp_code rp_overlay_add(struct rp_overlay *o, struct rp_task task, uint32_t *id,
                            struct rp_err *err)
{
    if (rp_overlay_ntasks(o) >= UINT32_MAX - 1)
        return rp_err_set(err, RP_LIMIT, "a simulation can have at most %u tasks", UINT32_MAX - 1);
    RP_TRY(rp_vec_reserve(&o->dur_ns, 1, err));
    RP_TRY(rp_vec_reserve(&o->degree, 1, err));
    RP_TRY(rp_vec_reserve(&o->tasks, 1, err));
    RP_TRY(rp_vec_reserve(&o->source, 1, err));
    *id = (uint32_t)rp_overlay_ntasks(o);
    o->prioritised |= task.priority != 0 && task.device != RP_NO_DEVICE;
    RP_TRY(log_change(o, RP_OVERLAY_ADD_TASK, *id, 0, task.dur_ns, err));
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
    RP_TRY(log_change(o, RP_OVERLAY_ADD_EDGE, from, 0, to ^ lag_ns, err));
    o->newest.at[from] = (uint32_t)o->edges.n;
    o->edges.at[o->edges.n++] = e;
    o->degree.at[to]++;
    return RP_OK;
}

void rp_overlay_undo(struct rp_overlay *o, size_t mark)
{
    struct rp_overlay_place place = rp_overlay_last(o);

    while (place.end > mark) {
        struct rp_overlay_change c = rp_overlay_before(o, &place);
        const struct rp_task_edge *edge;
        int64_t fresh;

        switch (c.what) {
        case RP_OVERLAY_SET_DUR:
            fresh = o->dur_ns.at[c.at];
            o->dur_ns.at[c.at] = c.old;
            break;
        case RP_OVERLAY_SET_LAG:
            fresh = o->lag_ns.at[c.at];
            put_lag(o, c.at, c.old);
            break;
        case RP_OVERLAY_ADD_TASK:
            fresh = o->dur_ns.at[--o->dur_ns.n];
            o->degree.n--;
            o->tasks.n--;
            o->source.n--;
            break;
        default:
            o->newest.at[c.at] = o->edges.at[--o->edges.n].next;
            edge = &o->edges.at[o->edges.n].edge;
            fresh = edge->to ^ edge->lag_ns;
            o->degree.at[edge->to]--;
        }
        o->stamp ^= stamp_of(place.end, c.what, c.at, fresh);
    }
    o->log.n = place.end;
    memcpy(o->log_at, place.at, sizeof o->log_at);
}

/* The first change of an edge tells what it was before. */
void rp_overlay_base_lags(const struct rp_overlay *o, const uint32_t *edges, size_t n,
                          int64_t *lag_ns)
{
    struct rp_overlay_place place = rp_overlay_last(o);
    size_t i, k;

    for (i = 0; i < n; i++)
        lag_ns[i] = o->lag_ns.at[edges[i]];
    while (place.end) {
        struct rp_overlay_change c = rp_overlay_before(o, &place);

        if (c.what != RP_OVERLAY_SET_LAG)
            continue;
        RP_LOWER_BOUND(k, n, edges[k] < c.at);
        if (k < n && edges[k] == c.at)
            lag_ns[k] = c.old;
    }
}
