/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Derives clock constraints from recorded collectives. No rank finishes an all-reduce or another
 * collective in which every rank needs data of every other before the last rank has arrived. This
 * does not hold for a broadcast, where a rank that comes late ends late. Broadcasts, and pairs of
 * sends and receives, are used only for ranks for which there is nothing better, and not on the
 * host, where ranks leave when their part is done.
 */
#include "facts/clocks/sources.h"

#include "base/hash.h"
#include "base/order.h"
#include "base/vec.h"
#include "facts/times/intervals.h"

#include <stdlib.h>
#include <string.h>

/* Containers of one machine may have several names, and machines with the same image may share one,
   so a boot is certain and a host's name is not. */
enum rp_code rp_clocks_share(const struct rp_collectives *const *ranks, size_t n,
                             uint32_t *clock_of, bool *shared, struct rp_err *err)
{
    enum rp_code code = RP_OK;
    struct rp_map first = {0};

    *shared = false;
    for (uint32_t r = 0; r < n && code == RP_OK; r++) {
        const struct rp_collectives *c = ranks[r];
        uint64_t key = c->boot   ? rp_hash_join(c->boot, 1)
                       : c->host ? rp_hash_join(rp_hash_bytes(c->host, strlen(c->host)), 2)
                                 : 0;

        clock_of[r] = r;
        if (key)
            code = rp_map_intern(&first, key, r, &clock_of[r], err);
        *shared |= clock_of[r] != r;
    }
    rp_map_release(&first);
    return code;
}

static const struct rp_collective *first_of(const struct rp_collectives *const *ranks,
                                            const struct rp_rendezvous *m)
{
    return &ranks[m->rank[0]]->list.at[m->at[0]];
}

static uint32_t root_of(uint32_t *with, uint32_t r)
{
    while (with[r] != r)
        r = with[r] = with[with[r]];
    return r;
}

/* Whether some of its ranks have no better evidence about their clocks. */
static bool tells_more(const struct rp_rendezvous *x, uint32_t *with)
{
    for (uint32_t i = 1; i < x->n; i++)
        if (root_of(with, x->rank[i]) != root_of(with, x->rank[0]))
            return true;
    return false;
}

enum rp_code rp_clocks_of_rendezvous(const struct rp_collectives *const *ranks, size_t n,
                                     const struct rp_rendezvous_list *rendezvous,
                                     const uint32_t *clock_of, const rp_clock_message_vec *messages,
                                     struct rp_arena *arena, struct rp_clocks *out,
                                     struct rp_err *err)
{
    struct rp_clock_input in = {
        .nranks = n, .clock_of = clock_of, .tolerance_ns = RP_CLOCK_TOLERANCE_NS, .steps = true};
    RP_VEC(struct rp_clock_participant) participants = {0};
    uint32_t *with = malloc((n + 1) * sizeof *with), i;
    enum rp_code code = with ? RP_OK : rp_err_nomem(err, "aligning clocks");

    if (with) {
        /* Join the ranks whose clocks are compared by rendezvous in which all wait for all, or
           which are the same. */
        for (uint32_t r = 0; r < n; r++)
            with[r] = clock_of ? clock_of[r] : r;
        for (size_t m = 0; m < rendezvous->n; m++)
            for (uint32_t k = 1; k < rendezvous->at[m].n &&
                                 rp_collective_is_mutual(first_of(ranks, &rendezvous->at[m]));
                 k++)
                with[root_of(with, rendezvous->at[m].rank[k])] =
                    root_of(with, rendezvous->at[m].rank[0]);
    }
    for (size_t m = 0; m < rendezvous->n && code == RP_OK; m++) {
        const struct rp_rendezvous *x = &rendezvous->at[m];

        if (!rp_collective_is_mutual(first_of(ranks, x)) &&
            (ranks[x->rank[0]]->on_host || !tells_more(x, with)))
            continue;
        for (i = 0; code == RP_OK && i < x->n; i++) {
            uint32_t r = x->rank[i];
            const struct rp_collective *c = &ranks[r]->list.at[x->at[i]];
            struct rp_clock_participant v = {(uint32_t)m, r, c->begin_ns, c->end_ns,
                                             rp_collective_is_mutual(c)};

            code = rp_vec_push(&participants, v, err);
        }
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
    free(with);
    return code;
}

/* ------------------------------------------------------------------ halves of messages */

enum rp_code rp_half_messages_find(const struct rp_trace *t, rp_half_message_vec *out,
                                   struct rp_err *err)
{
    const uint8_t wanted = RP_EVENT_UNENDED | RP_EVENT_NO_BEGIN;

    for (rp_event e = 0; e < t->ev.n; e++) {
        uint8_t flags = t->ev.flags[e];
        struct rp_half_message half = {.ns = t->ev.ts_ns[e], .is_begin = flags & RP_EVENT_UNENDED};

        if (t->origins[t->ev.origin[e]].kind != RP_KIND_TRANSFER || !(flags & wanted) ||
            !(flags & RP_EVENT_ID_TEXT) || t->ev.link[e] == RP_NONE)
            continue;
        rp_str id = (rp_str)t->links.native_id[t->ev.link[e]];
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

    if (!halves->n)
        return RP_OK;
    qsort(h, halves->n, sizeof *h, by_rank_side_time);
    h[0].nth = 0;
    for (size_t i = 1; i < halves->n; i++)
        h[i].nth = h[i].key == h[i - 1].key && h[i].rank == h[i - 1].rank &&
                           h[i].is_begin == h[i - 1].is_begin
                       ? h[i - 1].nth + 1
                       : 0;
    qsort(h, halves->n, sizeof *h, by_key_then_nth);
    for (size_t i = 1; i < halves->n; i++) {
        struct rp_clock_message m = {h[i - 1].rank, h[i].rank, h[i - 1].ns, h[i].ns};

        if (h[i].key == h[i - 1].key && h[i].nth == h[i - 1].nth && h[i - 1].is_begin &&
            !h[i].is_begin && m.from != m.to)
            RP_TRY(rp_vec_push(out, m, err));
    }
    return RP_OK;
}
