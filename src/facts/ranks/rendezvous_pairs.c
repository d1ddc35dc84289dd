/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of a channel (messages.h) arrive in the order in which they were sent: the k-th send
 * and the k-th receive are one message, and their operations a pair. If one side recorded fewer of
 * them, they are aligned by their ends (rendezvous_order.c). Two operations that exchange several
 * messages are one pair; an operation with several partners is in several pairs.
 */
#include "facts/ranks/rendezvous.h"

#include "base/order.h"

#include <stdlib.h>

struct side {
    uint64_t channel;
    uint32_t receives, rank, at, nth; /* nth: number in the order of the rank */
};

RP_ORDER(by_channel, struct side, RP_UP(channel), RP_UP(receives), RP_UP(rank), RP_UP(nth))
RP_ORDER(by_first, struct rp_rendezvous_pair, RP_UP(rank[0]), RP_UP(at[0]), RP_UP(rank[1]),
         RP_UP(at[1]))

typedef RP_VEC(struct side) side_vec;

RP_ORDER(by_value, uint64_t, RP_COMPARE(*a, *b))

static enum rp_code list_sides(const struct rp_collectives *const *ranks, size_t n,
                               const bool *left_out, side_vec *out, struct rp_err *err)
{
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < ranks[r]->messages.n && !left_out[r]; i++) {
            const struct rp_message *m = &ranks[r]->messages.at[i];
            struct side s = {m->channel, !m->sends, (uint32_t)r, m->at, (uint32_t)i};

            if (m->at < ranks[r]->list.n)
                RP_TRY(rp_vec_push(out, s, err));
        }
    if (out->n)
        qsort(out->at, out->n, sizeof *out->at, by_channel);
    return RP_OK;
}

static void copy_ends(const struct rp_collectives *const *ranks, const struct side *from, size_t n,
                      struct rp_rendezvous_item *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (struct rp_rendezvous_item){ranks[from[i].rank]->list.at[from[i].at].end_ns, 0};
}

/* place[i]: which one of `all` is the other side of some[i]. */
static enum rp_code place_sides(const struct rp_collectives *const *ranks, const struct side *all,
                                size_t nall, const struct side *some, size_t nsome, uint32_t *place,
                                struct rp_err *err)
{
    struct rp_rendezvous_item *items = malloc((nall + nsome + 1) * sizeof *items);

    RP_TRY(rp_err_need(items, err, "matching sends and receives"));
    copy_ends(ranks, all, nall, items);
    copy_ends(ranks, some, nsome, items + nall);
    rp_rendezvous_place(items, nall, items + nall, nsome, place);
    free(items);
    return RP_OK;
}

/* Pairs n sides of one channel; those that send come first. */
static enum rp_code pair_channel(const struct rp_collectives *const *ranks, const struct side *s,
                                 size_t n, rp_rendezvous_pair_vec *out, struct rp_err *err)
{
    size_t sends = 0, receives, i;
    RP_FREED uint32_t *place = NULL;

    while (sends < n && !s[sends].receives)
        sends++;
    receives = n - sends;
    if (!sends || !receives || s[0].rank != s[sends - 1].rank || s[sends].rank != s[n - 1].rank ||
        s[0].rank == s[n - 1].rank)
        return RP_OK; /* the other side is missing, or two traces claim to be it */
    const struct side *all = sends >= receives ? s : s + sends;
    const struct side *some = sends >= receives ? s + sends : s;
    if (sends != receives) {
        place = malloc(n * sizeof *place);
        RP_TRY(place ? place_sides(ranks, all, sends > receives ? sends : receives, some,
                                   sends > receives ? receives : sends, place, err)
                     : rp_err_nomem(err, "matching sends and receives"));
    }
    for (i = 0; i < (sends < receives ? sends : receives); i++) {
        const struct side *a = &some[i], *b = &all[place ? place[i] : i];
        const struct side *low = a->rank < b->rank ? a : b, *high = low == a ? b : a;
        struct rp_rendezvous_pair pair = {
            {low->rank, high->rank}, {low->at, high->at}, low->receives ? 2 : 1};

        RP_TRY(rp_vec_push(out, pair, err));
    }
    return RP_OK;
}

/* An operation may be in several pairs. */
static enum rp_code count_operations(const rp_rendezvous_pair_vec *pairs, size_t *out,
                                     struct rp_err *err)
{
    uint64_t *all = malloc((2 * pairs->n + 1) * sizeof *all);

    RP_TRY(rp_err_need(all, err, "matching sends and receives"));
    for (size_t i = 0; i < 2 * pairs->n; i++)
        all[i] = (uint64_t)pairs->at[i / 2].rank[i % 2] << 32 | pairs->at[i / 2].at[i % 2];
    if (pairs->n)
        qsort(all, 2 * pairs->n, sizeof *all, by_value);
    for (size_t i = *out = 0; i < 2 * pairs->n; i++)
        *out += !i || all[i] != all[i - 1];
    free(all);
    return RP_OK;
}

enum rp_code rp_rendezvous_find_pairs(const struct rp_collectives *const *ranks, size_t n,
                                      const bool *left_out, rp_rendezvous_pair_vec *out,
                                      size_t *noperations, struct rp_err *err)
{
    side_vec sides = {0};
    enum rp_code code = list_sides(ranks, n, left_out, &sides, err);
    size_t i, end, kept = 0;

    for (i = 0; i < sides.n && code == RP_OK; i = end) {
        for (end = i + 1; end < sides.n && sides.at[end].channel == sides.at[i].channel;)
            end++;
        code = pair_channel(ranks, &sides.at[i], end - i, out, err);
    }
    rp_vec_release(&sides);
    if (out->n)
        qsort(out->at, out->n, sizeof *out->at, by_first);
    for (i = 0; i < out->n; i++)
        if (!kept || by_first(&out->at[i], &out->at[kept - 1]))
            out->at[kept++] = out->at[i];
        else
            out->at[kept - 1].senders |= out->at[i].senders;
    out->n = kept;
    return code == RP_OK ? count_operations(out, noperations, err) : code;
}
