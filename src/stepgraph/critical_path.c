/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path is known at each node from a moment inside it on. The walk adds the part of the node
 * before that moment, then the lag of the binding edge as a wait, and continues with the
 * predecessor; if the edge counts from the predecessor's start, with its part up to here.
 */
#include "stepgraph/critical_path.h"

const char *const rp_segment_kind_names[RP_PATH_KINDS] = {
    [RP_PATH_HOST] = "host", [RP_PATH_RUNTIME] = "runtime", [RP_PATH_COMPUTE] = "compute",
    [RP_PATH_COMM] = "comm", [RP_PATH_MEMORY] = "memory",   [RP_PATH_WAIT] = "wait"};
const char *const rp_path_cause_names[RP_PATH_CAUSES] = {[RP_PATH_NO_CAUSE] = "none",
                                                         [RP_PATH_LAUNCH_LATENCY] =
                                                             "launch_latency",
                                                         [RP_PATH_STREAM_ORDER] = "stream_order",
                                                         [RP_PATH_EVENT_WAIT] = "event_wait",
                                                         [RP_PATH_THREAD_GAP] = "thread_gap",
                                                         [RP_PATH_HAND_OFF] = "hand_over",
                                                         [RP_PATH_OTHER_RANK] = "other_rank",
                                                         [RP_PATH_UNRECORDED] = "unrecorded"};

uint8_t rp_segment_kind_of(const struct rp_sg_node *node)
{
    static const uint8_t kinds[RP_SG_KINDS] = {
        [RP_SG_ORIGIN] = RP_PATH_WAIT,     [RP_SG_HOST] = RP_PATH_HOST,
        [RP_SG_RUNTIME] = RP_PATH_RUNTIME, [RP_SG_COMPUTE] = RP_PATH_COMPUTE,
        [RP_SG_COMM] = RP_PATH_COMM,       [RP_SG_MEMORY] = RP_PATH_MEMORY,
        [RP_SG_ARRIVE] = RP_PATH_WAIT,     [RP_SG_RENDEZVOUS] = RP_PATH_WAIT};

    return kinds[node->kind];
}

static uint8_t cause_of(const struct rp_sg_edge *e)
{
    static const uint8_t causes[RP_SG_EDGE_KINDS] = {
        [RP_SG_ORDER] = RP_PATH_THREAD_GAP,    [RP_SG_LAUNCH] = RP_PATH_LAUNCH_LATENCY,
        [RP_SG_STREAM] = RP_PATH_STREAM_ORDER, [RP_SG_IN_GRAPH] = RP_PATH_STREAM_ORDER,
        [RP_SG_EVENT] = RP_PATH_EVENT_WAIT,    [RP_SG_SYNC] = RP_PATH_THREAD_GAP,
        [RP_SG_HAND_OFF] = RP_PATH_HAND_OFF,   [RP_SG_FORWARD] = RP_PATH_HAND_OFF,
        [RP_SG_MEMBER] = RP_PATH_OTHER_RANK,   [RP_SG_AFTER] = RP_PATH_UNRECORDED};
    bool device = e->kind == RP_SG_LAUNCH || e->kind == RP_SG_STREAM || e->kind == RP_SG_IN_GRAPH ||
                  e->kind == RP_SG_EVENT;

    return device && e->lag_ns > RP_SG_UNEXPLAINED_NS ? RP_PATH_UNRECORDED : causes[e->kind];
}

/* Prepends [from, *now) to the path, and merges it with the next segment if that is the same. */
static enum rp_code add_segment(const struct rp_stepgraph *g, struct rp_path *out, int64_t from_ns,
                                int64_t *now_ns, struct rp_path_segment s, struct rp_err *err)
{
    struct rp_path_segment *last = out->parts.n ? &out->parts.at[out->parts.n - 1] : NULL;

    if (from_ns >= *now_ns)
        return RP_OK;
    s.begin_ns = from_ns;
    s.end_ns = *now_ns;
    *now_ns = from_ns;
    if (last && last->kind == s.kind && last->cause == s.cause && s.kind != RP_PATH_WAIT &&
        g->nodes.at[last->node].rank == g->nodes.at[s.node].rank &&
        g->nodes.at[last->node].event == g->nodes.at[s.node].event) {
        last->begin_ns = from_ns;
        return RP_OK;
    }
    return rp_vec_push(&out->parts, s, err);
}

static enum rp_code walk_back(const struct rp_stepgraph *g, uint32_t node, struct rp_path *out,
                              struct rp_err *err)
{
    int64_t now = out->end_ns;

    for (;;) {
        const struct rp_sg_node *n = &g->nodes.at[node];
        struct rp_path_segment s = {.node = node, .peer = RP_NONE, .kind = rp_segment_kind_of(n)};
        uint32_t edge = rp_sg_binding(g, node);

        RP_TRY(add_segment(g, out, n->start_ns, &now, s, err));
        if (edge == RP_NONE)
            return RP_OK;
        const struct rp_sg_edge *e = &g->edges.at[edge];
        s.kind = RP_PATH_WAIT;
        s.cause = cause_of(e);
        node = e->from;
        if (!(e->flags & RP_SG_FROM_START))
            RP_TRY(add_segment(g, out, rp_sg_end_ns(&g->nodes.at[node]), &now, s, err));
    }
}

/* Returns the node that ends last, up to until_ns: of several, device work comes before work of a
   thread, and that before anything else. */
static uint32_t last_node(const struct rp_stepgraph *g, int64_t until_ns)
{
    uint32_t i, best = 0;
    int64_t best_end = INT64_MIN;
    int best_rank = 0;

    for (i = 0; i < g->nodes.n; i++) {
        const struct rp_sg_node *n = &g->nodes.at[i];
        int64_t end = rp_sg_end_ns(n);

        if (end < best_end || end > until_ns || n->kind == RP_SG_ARRIVE ||
            n->kind == RP_SG_RENDEZVOUS)
            continue;
        int rank = n->lane == RP_NONE            ? 0
                   : g->lanes.at[n->lane].device ? 3
                   : n->flags & RP_SG_WORK       ? 2
                                                 : 1;
        if (end > best_end || rank >= best_rank) {
            best = i;
            best_end = end;
            best_rank = rank;
        }
    }
    return best;
}

enum rp_code rp_path_find(const struct rp_stepgraph *g, int64_t until_ns, struct rp_path *out,
                          struct rp_err *err)
{
    int64_t end = until_ns < g->end_ns ? until_ns : g->end_ns;
    size_t i, n;

    *out = (struct rp_path){.begin_ns = g->begin_ns, .end_ns = end};
    if (g->begin_ns >= end)
        return RP_OK;
    RP_TRY(walk_back(g, last_node(g, end), out, err));
    for (i = 0, n = out->parts.n; i < n / 2; i++) {
        struct rp_path_segment s = out->parts.at[i];

        out->parts.at[i] = out->parts.at[n - 1 - i];
        out->parts.at[n - 1 - i] = s;
    }
    return RP_OK;
}

void rp_path_release(struct rp_path *path)
{
    rp_vec_release(&path->parts);
}
