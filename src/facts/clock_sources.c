/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clock constraints from recorded collectives. No rank finishes an all-reduce or another collective
 * in which every rank needs data of every other before the last rank has arrived. For a broadcast
 * this does not hold, but its ends are still close together. Sorting dominates the cost.
 */
#include "facts/clock_sources.h"

#include "base/hash.h"
#include "base/order.h"
#include "base/vec.h"
#include "facts/intervals.h"

#include <stdlib.h>
#include <string.h>

static bool waits_for_all(uint8_t kind)
{
    return kind == RP_COLL_ALL_REDUCE || kind == RP_COLL_ALL_GATHER ||
           kind == RP_COLL_REDUCE_SCATTER || kind == RP_COLL_ALL_TO_ALL || kind == RP_COLL_BARRIER;
}

enum rp_code rp_clocks_of_rendezvous(const struct rp_collectives *const *ranks, size_t n,
                                     const struct rp_rendezvous_list *rendezvous,
                                     const uint32_t *clock_of, const rp_clock_message_vec *messages,
                                     struct rp_arena *arena, struct rp_clocks *out,
                                     struct rp_err *err)
{
    struct rp_clock_input in = {
        .nranks = n, .clock_of = clock_of, .tolerance_ns = RP_CLOCK_TOLERANCE_NS};
    RP_VEC(struct rp_clock_participant) participants = {0};
    enum rp_code code = RP_OK;
    size_t m;
    uint32_t i;

    for (m = 0; m < rendezvous->n; m++)
        for (i = 0; code == RP_OK && i < rendezvous->at[m].n; i++) {
            uint32_t r = rendezvous->at[m].rank[i];
            const struct rp_collective *c = &ranks[r]->list.at[rendezvous->at[m].at[i]];
            struct rp_clock_participant v = {(uint32_t)m, r, c->begin_ns, c->end_ns,
                                             waits_for_all(c->kind)};

            code = rp_vec_push(&participants, v, err);
        }
    in.participants = participants.at;
    in.nparticipants = participants.n;
    in.start_ns = rendezvous->base_ns;
    if (messages) {
        in.messages = messages->at;
        in.nmessages = messages->n;
    }
    if (code == RP_OK)
        code = rp_clocks_find(&in, arena, out, err);
    rp_vec_release(&participants);
    return code;
}

/* ------------------------------------------------------------------ halves of messages */

enum rp_code rp_half_messages_find(const struct rp_trace *t, rp_half_message_vec *out,
                                   struct rp_err *err)
{
    const uint8_t wanted = RP_EVENT_UNENDED | RP_EVENT_NO_BEGIN;
    rp_event e;

    for (e = 0; e < t->ev.n; e++) {
        uint8_t flags = t->ev.flags[e];
        struct rp_half_message half = {.ns = t->ev.ts_ns[e], .is_begin = flags & RP_EVENT_UNENDED};
        rp_str id;

        if (t->origins[t->ev.origin[e]].kind != RP_KIND_TRANSFER || !(flags & wanted) ||
            !(flags & RP_EVENT_ID_TEXT) || t->ev.link[e] == RP_NONE)
            continue;
        id = (rp_str)t->links.native_id[t->ev.link[e]];
        half.key = rp_hash_bytes(rp_trace_str(t, id), rp_trace_str_len(t, id));
        RP_TRY(rp_vec_push(out, half, err));
    }
    return RP_OK;
}

RP_ORDER(by_rank_side_time, struct rp_half_message, RP_UP(key), RP_DOWN(is_begin), RP_UP(rank),
         RP_UP(ns))
RP_ORDER(by_key_then_nth, struct rp_half_message, RP_UP(key), RP_UP(nth), RP_DOWN(is_begin),
         RP_UP(rank))

enum rp_code rp_half_messages_join(rp_half_message_vec *halves, rp_clock_message_vec *out,
                                   struct rp_err *err)
{
    struct rp_half_message *h = halves->at;
    size_t i;

    if (!halves->n)
        return RP_OK;
    qsort(h, halves->n, sizeof *h, by_rank_side_time);
    h[0].nth = 0;
    for (i = 1; i < halves->n; i++)
        h[i].nth = h[i].key == h[i - 1].key && h[i].rank == h[i - 1].rank &&
                           h[i].is_begin == h[i - 1].is_begin
                       ? h[i - 1].nth + 1
                       : 0;
    qsort(h, halves->n, sizeof *h, by_key_then_nth);
    for (i = 1; i < halves->n; i++) {
        struct rp_clock_message m = {h[i - 1].rank, h[i].rank, h[i - 1].ns, h[i].ns};

        if (h[i].key == h[i - 1].key && h[i].nth == h[i - 1].nth && h[i - 1].is_begin &&
            !h[i].is_begin && m.from != m.to)
            RP_TRY(rp_vec_push(out, m, err));
    }
    return RP_OK;
}
