/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes over memory are counted in PyTorch's own updates; each is a read or a write of all
 * parameters (or gradients, or moments):
 *
 *     AdamW   p*=  2   lerp m 3   v*= 2   addcmul v 3   sqrt 2   div 2   add 2   addcdiv p 4    20
 *     Adam    the same without the first                                                       18
 *     SGD     b*=  2   b+=g 3   p-=b 3; without momentum only the last                       8, 3
 *
 * A capturable Adam divides by tensors, twice for each parameter instead of once for all: 4 more. A
 * fused one reads p, g, m, v and writes p, m, v: 7; SGD reads p, g, b and writes p, b: 5. Linear in
 * nodes.
 */
#include "sim/whatif/optimizer_kind.h"

#include "facts/work/workload.h"
#include "sim/model/names.h"

bool rp_sim_is_update(const struct rp_sim_run *run, uint32_t node)
{
    uint8_t kind = rp_sim_node(run, node)->kind;

    return rp_sim_note_of(run, node)->phase == RP_PHASE_OPTIMIZER &&
           (kind == RP_SG_COMPUTE || kind == RP_SG_MEMORY);
}

struct seen {
    bool adamw, adam, sgd, foreach, fused, item, decays; /* decays: a buffer is multiplied */
    bool powers;         /* powers: factors of it are computed on the device */
    bool fusible, other; /* whether PyTorch has a fused version */
};

static void look_at(struct seen *s, const char *name)
{
    s->fusible |= rp_update_of_mark(name) == RP_UPDATE_FUSIBLE;
    s->other |= rp_update_of_mark(name) == RP_UPDATE_OTHER;
    if (rp_update_of_mark(name) == RP_UPDATE_FUSIBLE) {
        s->adamw |= rp_sim_means(name, RP_SIM_ADAMW);
        s->adam |= rp_sim_means(name, RP_SIM_ADAM);
        s->sgd |= rp_sim_means(name, RP_SIM_SGD);
    }
    s->foreach |= rp_sim_means(name, RP_SIM_FOREACH);
    s->fused |= rp_sim_means(name, RP_SIM_FUSED);
    s->item |= rp_sim_means(name, RP_SIM_READS);
    s->powers |= rp_sim_means(name, RP_SIM_POWERS);
    s->decays |= rp_sim_means(name, RP_SIM_DECAYS);
}

void rp_optimizer_kind(const struct rp_sim_run *run, uint32_t rank, struct rp_optimizer_kind *out)
{
    const struct rp_stepgraph *g = run->graph;
    const struct rp_sim_part *part = run->parts[run->nranks > 1 ? rank : 0];
    struct seen s = {0};

    for (uint32_t i = rp_sim_first_node(run, rank); i < rp_sim_end_node(run, rank); i++)
        if (rp_sim_node(run, i)->rank == rank &&
            rp_sim_note_of(run, i)->phase == RP_PHASE_OPTIMIZER &&
            (rp_sim_node(run, i)->kind == RP_SG_HOST || rp_sim_node(run, i)->kind == RP_SG_RUNTIME))
            look_at(&s, g->names.at[rp_sim_node(run, i)->name]);
    if (part->update)
        look_at(&s, part->update);
    out->name = s.adamw ? "AdamW" : s.adam ? "Adam" : s.sgd ? "SGD" : "optimizer";
    out->style = s.fused     ? RP_OPTIMIZER_FUSED
                 : s.foreach ? RP_OPTIMIZER_FOREACH
                             : RP_OPTIMIZER_LOOP;
    out->adam = s.adam;
    out->fusible = s.fusible || !s.other;
    out->reads_host = s.adam && s.item;
    out->parameters = (double)part->gradients.n / (double)part->nsteps;
    if (s.sgd && !s.adam) {
        out->passes = s.decays ? 8 : 3;
        out->fused = s.decays ? 5 : 3;
    } else {
        out->passes =
            (s.adam && !s.adamw ? 18 : 20) + (s.adam && !s.item && (s.foreach || s.powers) ? 4 : 0);
        out->fused = 7;
    }
    if (s.fused)
        out->passes = out->fused;
}
