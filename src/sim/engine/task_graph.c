/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a task graph. Edges come in any order; freezing sorts them by their predecessor with one
 * counting sort, stable, so that equal inputs give equal graphs.
 */
#include "sim/engine/task_graph.h"

#include <string.h>

void rp_task_graph_init(struct rp_task_graph *g)
{
    memset(g, 0, sizeof *g);
    rp_arena_init(&g->arena);
}

void rp_task_graph_release(struct rp_task_graph *g)
{
    rp_vec_release(&g->tasks);
    rp_vec_release(&g->devices);
    rp_vec_release(&g->edges);
    rp_vec_release(&g->dur_ns);
    rp_vec_release(&g->lag_ns);
    rp_vec_release(&g->from);
    rp_vec_release(&g->first);
    rp_arena_release(&g->arena);
}

enum rp_code rp_task_graph_reserve(struct rp_task_graph *g, size_t tasks, size_t edges,
                                   struct rp_err *err)
{
    RP_TRY(rp_vec_reserve_full(&g->tasks, tasks, err));
    RP_TRY(rp_vec_reserve_full(&g->dur_ns, tasks, err));
    RP_TRY(rp_vec_reserve_full(&g->edges, edges, err));
    RP_TRY(rp_vec_reserve_full(&g->lag_ns, edges, err));
    return rp_vec_reserve_full(&g->from, edges, err);
}

enum rp_code rp_task_graph_add_device(struct rp_task_graph *g, const char *label,
                                      enum rp_sim_device_rule rule, uint32_t *id,
                                      struct rp_err *err)
{
    struct rp_sim_device d = {rp_arena_strdup(&g->arena, label), rule};

    RP_TRY(rp_err_need(d.label, err, "adding a device"));
    *id = (uint32_t)g->devices.n;
    return rp_vec_push(&g->devices, d, err);
}

enum rp_code rp_task_graph_add(struct rp_task_graph *g, struct rp_task task, uint32_t *id,
                               struct rp_err *err)
{
    if (g->tasks.n >= UINT32_MAX - 1)
        return rp_err_set(err, RP_LIMIT, "a simulation can have at most %u tasks", UINT32_MAX - 1);
    if (id)
        *id = (uint32_t)g->tasks.n;
    g->prioritised |= task.priority != 0 && task.device != RP_NO_DEVICE;
    RP_TRY(rp_vec_push(&g->dur_ns, task.dur_ns, err));
    return rp_vec_push(&g->tasks, rp_task_row_of(&task), err);
}

enum rp_code rp_task_graph_link(struct rp_task_graph *g, uint32_t from, uint32_t to, int64_t lag_ns,
                                uint32_t flags, struct rp_err *err)
{
    struct rp_task_link edge = {to, (uint8_t)flags};

    if (g->edges.n >= UINT32_MAX - 1)
        return rp_err_set(err, RP_LIMIT, "a simulation can have at most %u edges", UINT32_MAX - 1);
    g->starts_matter |= flags & RP_EDGE_FROM_START;
    RP_TRY(rp_vec_push(&g->edges, edge, err));
    RP_TRY(rp_vec_push(&g->lag_ns, lag_ns, err));
    return rp_vec_push(&g->from, from, err);
}

/* first[v] counts the edges of v, then is their end, then their begin. */
static void place_edges(const struct rp_task_graph *g, struct rp_task_link *out, int64_t *lag_ns,
                        uint32_t *first)
{
    size_t i, n = g->tasks.n;
    uint32_t sum = 0;

    for (i = 0; i < g->edges.n; i++)
        first[g->from.at[i]]++;
    for (i = 0; i <= n; i++) {
        sum += first[i];
        first[i] = sum;
    }
    for (i = g->edges.n; i-- > 0;) {
        uint32_t at = --first[g->from.at[i]];

        out[at] = g->edges.at[i];
        lag_ns[at] = g->lag_ns.at[i];
    }
}

enum rp_code rp_task_graph_freeze(struct rp_task_graph *g, struct rp_err *err)
{
    RP_VEC(struct rp_task_link) sorted = {0};
    RP_VEC(int64_t) lags = {0};
    size_t i, n = g->tasks.n;

    RP_TRY(rp_vec_reserve_full(&g->first, n + 1, err));
    enum rp_code code = rp_vec_reserve_full(&sorted, g->edges.n + 1, err);
    if (code == RP_OK)
        code = rp_vec_reserve_full(&lags, g->edges.n + 1, err);
    if (code != RP_OK) {
        rp_vec_release(&sorted);
        return code;
    }
    memset(g->first.at, 0, (n + 1) * sizeof *g->first.at);
    place_edges(g, sorted.at, lags.at, g->first.at);
    for (i = 0; i < g->edges.n; i++)
        g->device_starts_matter |= g->edges.at[i].flags & RP_EDGE_FROM_START &&
                                   g->tasks.at[g->from.at[i]].device != RP_NO_DEVICE;
    sorted.n = lags.n = g->edges.n;
    g->first.n = n + 1;
    rp_vec_release(&g->edges);
    rp_vec_release(&g->lag_ns);
    rp_vec_release(&g->from);
    memcpy(&g->edges, &sorted, sizeof sorted);
    memcpy(&g->lag_ns, &lags, sizeof lags);
    return RP_OK;
}

enum rp_code rp_task_graph_stuck(const struct rp_task_graph *g, size_t *out, struct rp_err *err)
{
    RP_VEC_LOCAL(uint32_t, missing);
    RP_VEC_LOCAL(uint32_t, ready);
    size_t i, n = g->tasks.n;
    uint32_t v, k;

    *out = n;
    RP_TRY(rp_vec_reserve(&missing, n + 1, err));
    for (i = 0; i < n; i++)
        missing.at[i] = 0;
    for (i = 0; i < g->edges.n; i++)
        missing.at[g->edges.at[i].to]++;
    for (i = 0; i < n; i++)
        if (!missing.at[i])
            RP_TRY(rp_vec_push(&ready, (uint32_t)i, err));
    for (; ready.n; (*out)--) {
        v = ready.at[--ready.n];
        for (k = g->first.at[v]; k < g->first.at[v + 1]; k++)
            if (--missing.at[g->edges.at[k].to] == 0)
                RP_TRY(rp_vec_push(&ready, g->edges.at[k].to, err));
    }
    return RP_OK;
}
