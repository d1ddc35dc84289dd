/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes of gradients come from the first of these that was recorded:
 *
 *   shapes     of the operator AccumulateGrad. Recordings of ours have no types: the bytes of an
 *              element follow from what all-reduces send, if that is all gradients
 *   metadata   "gradients.0.0": "4096 65536 ...", which `record` notes once for a model in
 *              DistributedDataParallel, in the order in which they become ready
 */
#include "sim/model/gradients.h"

#include "base/decides.h"
#include "facts/ranks/collective_args.h"
#include "facts/ranks/ddp_notes.h"
#include "sim/engine/task_graph.h"
#include "sim/model/names.h"

#include <math.h>
#include <stdlib.h>

/* The work that a call launched, or RP_NONE. */
static uint32_t launched_by(const struct rp_stepgraph *g, uint32_t node)
{
    for (uint32_t i = g->out.at[node]; i < g->out.at[node + 1]; i++) {
        const struct rp_sg_edge *edge = &g->edges.at[g->out_edges.at[i]];

        if (edge->kind == RP_SG_LAUNCH)
            return edge->to;
    }
    return RP_NONE;
}

/* PyTorch runs AccumulateGrad when a gradient is ready, and then DistributedDataParallel learns of
   it. */
static enum rp_code find(struct rp_sim_part *p, const struct rp_coll_reader *args,
                         struct rp_err *err)
{
    const struct rp_stepgraph *g = &p->graph;
    uint32_t i, lane = RP_NONE, work = RP_NONE;
    RP_FREED uint8_t *ready = calloc(g->names.n + 1, 1);
    bool any = false;

    RP_TRY(rp_err_need(ready, err, "simulating"));
    for (size_t k = 0; k < g->names.n; k++) {
        ready[k] = rp_sim_means(g->names.at[k], RP_SIM_GRADIENT_READY);
        any |= ready[k];
    }
    for (i = 0; any && i < g->nodes.n; i++) {
        const struct rp_sg_node *node = &g->nodes.at[i];
        struct rp_sim_gradient x = {
            .node = i, .work = RP_NONE, .bytes = -1, .step = p->notes.at[i].step};

        if (node->lane != lane) {
            lane = node->lane;
            work = RP_NONE;
        }
        if (node->kind == RP_SG_RUNTIME && launched_by(g, i) != RP_NONE)
            work = launched_by(g, i);
        if (!(p->notes.at[i].flags & RP_SIM_OPENS) || !ready[node->name])
            continue;
        x.work = work;
        x.bytes = rp_coll_input_bytes(args, node->event);
        RP_TRY(rp_vec_push(&p->gradients, x, err));
    }
    return RP_OK;
}

#define OTHER_SENT 0.1
RP_DECISION(OTHER_SENT, "of the bytes of all gradients",
            "all-reduces send other things too, such as a loss; types differ by a factor of two",
            "sim/gradients_are_sized_by_what_is_sent");

static void size_by_shapes(struct rp_sim_part *p, const struct rp_coll_reader *args)
{
    double elements = 0, bytes = 0;

    for (size_t i = 0; i < p->gradients.n; i++) {
        int64_t count =
            rp_coll_input_elements(args, p->graph.nodes.at[p->gradients.at[i].node].event);
        if (p->gradients.at[i].bytes >= 0 || count < 0)
            return;
        elements += (double)count;
    }
    for (size_t i = 0; i < p->collectives.list.n; i++)
        if (p->collectives.list.at[i].kind == RP_COLL_ALL_REDUCE &&
            p->collectives.list.at[i].in_bytes > 0)
            bytes += (double)p->collectives.list.at[i].in_bytes;
    for (int item = 2; item <= (int)sizeof(double); item *= 2)
        if (elements > 0 && fabs(bytes / elements / item - 1) < OTHER_SENT)
            for (size_t i = 0; i < p->gradients.n; i++)
                p->gradients.at[i].bytes =
                    item *
                    rp_coll_input_elements(args, p->graph.nodes.at[p->gradients.at[i].node].event);
}

/* A step that accumulates gradients makes each several times and sends them the last time. If a
   step has others, nothing is known. */
static void size_by_notes(struct rp_sim_part *p, const struct rp_ddp_sizes *sizes)
{
    size_t low, high, i, n = sizes->list.n, kept = 0;

    for (low = 0; low < p->gradients.n; low = high) {
        uint16_t step = p->gradients.at[low].step;

        for (high = low; high < p->gradients.n && p->gradients.at[high].step == step;)
            high++;
        if (step != RP_NO_STEP && (high - low) % n)
            return;
    }
    for (low = 0; low < p->gradients.n; low = high) {
        uint16_t step = p->gradients.at[low].step;

        for (high = low; high < p->gradients.n && p->gradients.at[high].step == step;)
            high++;
        for (i = high - n; step != RP_NO_STEP && i < high; i++) {
            p->gradients.at[kept] = p->gradients.at[i];
            p->gradients.at[kept++].bytes = sizes->list.at[i - (high - n)];
        }
    }
    p->gradients.n = kept;
}

enum rp_code rp_sim_gradients_find(struct rp_sim_part *part, const struct rp_trace *t,
                                   struct rp_err *err)
{
    struct rp_coll_reader args = {0};
    struct rp_ddp_sizes sizes = {0};
    enum rp_code code = rp_coll_reader_init(&args, t, err);

    if (code == RP_OK)
        code = find(part, &args, err);
    if (code == RP_OK)
        size_by_shapes(part, &args);
    if (code == RP_OK)
        code = rp_ddp_sizes_read(t, &sizes, err);
    if (code == RP_OK && sizes.list.n && part->gradients.n && part->gradients.at[0].bytes < 0)
        size_by_notes(part, &sizes);
    rp_vec_release(&sizes.list);
    rp_coll_reader_release(&args);
    return code;
}
