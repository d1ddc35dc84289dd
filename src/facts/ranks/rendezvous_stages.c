/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds pipelines. Neighbouring stages send both ways: activations forward, gradients back. The
 * first message between two ranks goes forward, and the first one back is sent only after that has
 * arrived; ranks that exchange data at the same time are not stages. Each stage has one stage
 * before it and one after it. If a stage has several chunks of the model, the last stage sends
 * forward to the first; that ring is cut before the rank that sends first.
 */
#include "facts/ranks/rendezvous.h"

#include "base/order.h"
#include "facts/clocks/sources.h"

#include <stdlib.h>

/* link: between two ranks, from the lower to the higher number, and the other way. */
struct link {
    uint32_t rank[2];
    int64_t first_ns[2];   /* when the first is sent */
    int64_t arrived_ns[2]; /* and has arrived */
    uint32_t n[2];
};

/* One message. */
struct sent {
    uint32_t low, high, sender; /* sender 0 is the lower one */
    int64_t ns, arrived_ns;
};

RP_ORDER(by_link, struct sent, RP_UP(low), RP_UP(high), RP_UP(sender), RP_UP(ns))

typedef RP_VEC(struct sent) sent_vec;
typedef RP_VEC(struct link) link_vec;

static enum rp_code list_sent(const struct rp_rendezvous_list *list,
                              const struct rp_collectives *const *ranks, sent_vec *out,
                              struct rp_err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct rp_rendezvous *m = &list->at[i];

        for (uint32_t s = 0; s < 2 && m->senders; s++) {
            uint32_t to = !s;
            struct sent x = {m->rank[0], m->rank[1], s, 0, 0};

            if (!(m->senders & 1U << s))
                continue;
            x.ns = rp_clock_time(&list->clocks[m->rank[s]],
                                 ranks[m->rank[s]]->list.at[m->at[s]].begin_ns);
            x.arrived_ns = rp_clock_time(&list->clocks[m->rank[to]],
                                         ranks[m->rank[to]]->list.at[m->at[to]].end_ns);
            RP_TRY(rp_vec_push(out, x, err));
        }
    }
    if (out->n)
        qsort(out->at, out->n, sizeof *out->at, by_link);
    return RP_OK;
}

static enum rp_code list_links(const sent_vec *sent, link_vec *out, struct rp_err *err)
{
    for (size_t i = 0; i < sent->n; i++) {
        const struct sent *x = &sent->at[i];
        struct link *l = out->n ? &out->at[out->n - 1] : NULL;

        if (!l || l->rank[0] != x->low || l->rank[1] != x->high) {
            RP_TRY(rp_vec_push(out, ((struct link){.rank = {x->low, x->high}}), err));
            l = &out->at[out->n - 1];
        }
        if (!l->n[x->sender]++) {
            l->first_ns[x->sender] = x->ns;
            l->arrived_ns[x->sender] = x->arrived_ns;
        }
    }
    return RP_OK;
}

/* Connects two neighbouring ranks; false if one of them would have two neighbours on a side. */
static bool place_link(const struct link *l, struct rp_pipe_stage *stages)
{
    uint32_t forward = l->first_ns[1] < l->first_ns[0], from = l->rank[forward],
             to = l->rank[!forward];

    if (!l->n[0] || !l->n[1] ||
        l->first_ns[!forward] < rp_ns_sum(l->arrived_ns[forward], -(int64_t)RP_CLOCK_TOLERANCE_NS))
        return true;
    if (stages[from].next != RP_NONE || stages[to].before != RP_NONE)
        return false;
    stages[from].next = to;
    stages[to].before = from;
    return true;
}

static void number_stages(struct rp_pipe_stage *stages, uint32_t first, uint32_t pipeline)
{
    uint32_t r = first, stage = 0;

    do {
        stages[r].pipeline = pipeline;
        stages[r].stage = stage++;
        r = stages[r].next;
    } while (r != RP_NONE && stages[r].pipeline == RP_NONE);
}

/* In a ring, the rank that sends forward first. */
static uint32_t first_of_ring(const link_vec *links, const struct rp_pipe_stage *stages, uint32_t r)
{
    int64_t first = INT64_MAX;
    uint32_t best = r, at;

    for (size_t i = 0; i < links->n; i++) {
        const struct link *l = &links->at[i];
        uint32_t forward = l->first_ns[1] < l->first_ns[0], from = l->rank[forward];

        for (at = stages[r].next; at != r && at != from;)
            at = stages[at].next;
        if (at == from && l->first_ns[forward] < first) {
            first = l->first_ns[forward];
            best = from;
        }
    }
    return best;
}

static uint32_t number_all(const link_vec *links, struct rp_pipe_stage *stages, size_t n)
{
    uint32_t r, npipelines = 0;

    for (r = 0; r < n; r++)
        if (stages[r].next != RP_NONE && stages[r].before == RP_NONE)
            number_stages(stages, r, npipelines++);
    for (r = 0; r < n; r++)
        if (stages[r].next != RP_NONE && stages[r].pipeline == RP_NONE)
            number_stages(stages, first_of_ring(links, stages, r), npipelines++);
    return npipelines;
}

enum rp_code rp_rendezvous_find_stages(struct rp_rendezvous_list *list,
                                       const struct rp_collectives *const *ranks, size_t n,
                                       struct rp_arena *arena, struct rp_err *err)
{
    struct rp_pipe_stage *stages = RP_ARENA_NEW(arena, struct rp_pipe_stage, n + 1);
    sent_vec sent = {0};
    link_vec links = {0};
    enum rp_code code =
        stages ? list_sent(list, ranks, &sent, err) : rp_err_nomem(err, "finding stages");
    bool sound = true;

    list->stages = NULL;
    for (size_t i = 0; stages && i < n; i++)
        stages[i] = (struct rp_pipe_stage){RP_NONE, RP_NONE, RP_NONE, RP_NONE};
    if (code == RP_OK)
        code = list_links(&sent, &links, err);
    for (size_t i = 0; i < links.n && code == RP_OK; i++)
        sound = sound && place_link(&links.at[i], stages);
    if (code == RP_OK && links.n && sound && number_all(&links, stages, n))
        list->stages = stages;
    rp_vec_release(&sent);
    rp_vec_release(&links);
    return code;
}
