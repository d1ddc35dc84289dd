/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of CUDA graphs. A launch that is captured makes a node, at a time of its call; a graph is
 * instantiated with clones of its nodes, and kernels name the clone. So a kernel leads to the call
 * that was captured: that call gets the name of the kernel, by which facts/graphs/join.h finds the
 * operators of graphs.
 */
#include "formats/nsys/nsys.h"

#include "base/order.h"
#include "rp_config.h"

#if RP_HAVE_SQLITE

#define MOST_CLONES 64 /* limit for chains of clones, which are circles in damaged files */

static uint64_t node_key(uint64_t process, int64_t node)
{
    return rp_hash_join(process, (uint64_t)node);
}

/* A clone may have two rows, one of which does not name its original. */
static enum rp_code read_node(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    struct rp_nsys *r = user;
    struct rp_nsys_node node = {.id = rp_cell_int(rows, 2, 0), .original = rp_cell_int(rows, 3, 0)};
    uint32_t fresh = (uint32_t)r->nodes.n, at;

    rp_cell_get(rows, 0, &node.at_ns);
    rp_cell_get(rows, 1, &node.thread);
    if (!node.id || node.id == node.original)
        return RP_OK;
    RP_TRY(rp_map_intern(&r->node_of, node_key(rp_nsys_process(node.thread), node.id), fresh, &at,
                         err));
    if (at == fresh)
        return rp_vec_push(&r->nodes, node, err);
    if (!r->nodes.at[at].original)
        r->nodes.at[at].original = node.original;
    return RP_OK;
}

enum rp_code rp_nsys_read_nodes(struct rp_nsys *r, struct rp_err *err)
{
    static const char *const columns[] = {"start", "globalTid", "graphNodeId",
                                          "originalGraphNodeId", NULL};

    return rp_rows_each(r->db, "CUDA_GRAPH_NODE_EVENTS", columns, read_node, r, err);
}

int64_t rp_nsys_captured_node(struct rp_nsys *r, uint64_t process, int64_t node, rp_str kernel)
{
    uint32_t at = RP_MAP_NONE;

    for (int left = MOST_CLONES; left > 0; left--) {
        at = rp_map_get(&r->node_of, node_key(process, node));
        if (at == RP_MAP_NONE || !r->nodes.at[at].original)
            break;
        node = r->nodes.at[at].original;
    }
    if (at != RP_MAP_NONE && kernel)
        r->nodes.at[at].kernel = kernel;
    return node;
}

RP_ORDER(by_thread, struct rp_nsys_node, RP_UP(thread), RP_UP(at_ns), RP_UP(id))

void rp_nsys_order_nodes(struct rp_nsys *r)
{
    rp_sort(r->nodes.at, r->nodes.n, sizeof *r->nodes.at, by_thread);
}

rp_str rp_nsys_captured_kernel(const struct rp_nsys *r, const struct rp_activity_event *call)
{
    int64_t thread = (int64_t)(call->process << RP_NSYS_ID_BITS) | call->track;
    const struct rp_nsys_node *node = r->nodes.at;
    size_t i;

    RP_LOWER_BOUND(i, r->nodes.n,
                   node[i].thread < thread ||
                       (node[i].thread == thread && node[i].at_ns < call->begin_ns));
    for (; i < r->nodes.n && node[i].thread == thread && node[i].at_ns <= call->end_ns; i++)
        if (node[i].kernel)
            return node[i].kernel;
    return 0;
}

#endif
