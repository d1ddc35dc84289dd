/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses by a few sorts of the ranks whose bulk is kept: a few dozen while ranks arrive, and all
 * of them once at the end.
 */
#include "dataset/bulk.h"

#include "base/hash.h"
#include "base/order.h"
#include "dataset/slot.h"
#include "result/print_units.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { EXTREME = 1, USUAL = 2 }; /* why a rank was chosen */
enum { QUARTERS = 4 };

struct candidate {
    struct rp_rank_traits traits;
    size_t source;
    uint32_t in_source;
    uint32_t at; /* the caller's own */
    uint64_t hash;
    uint8_t why;
};

#define PLACE RP_UP(traits.rank), RP_UP(source), RP_UP(in_source)
RP_ORDER(by_place, struct candidate, PLACE)
RP_ORDER(by_comm, struct candidate, RP_UP(traits.comm_ns), PLACE)
RP_ORDER(by_hash, struct candidate, RP_UP(hash), PLACE)

struct rp_rank_traits rp_bulk_traits(const struct rp_digest *digest, const struct rp_sketch *sketch)
{
    struct rp_rank_traits out = {
        .comm_ns = digest->totals.comm_ns, .events = digest->nevents, .rank = digest->rank};

    for (size_t i = 0; sketch && i < sketch->kernels.n; i++)
        out.kind = rp_hash_join(out.kind, sketch->kernels.at[i].hash);
    return out;
}

static struct candidate candidate_of(const struct rp_rank_traits *traits, size_t source,
                                     uint32_t in_source, size_t at)
{
    /* files without a number are distinguished by their places */
    uint64_t number = traits->rank >= 0 ? (uint64_t)traits->rank : (uint64_t)source;

    return (struct candidate){.traits = *traits,
                              .source = source,
                              .in_source = in_source,
                              .at = (uint32_t)at,
                              .hash = rp_hash_join(rp_hash_u64(number), in_source)};
}

/* ------------------------------------------------------------------ choosing */

/* Leaves the list in the order of the ranks. */
static void choose_ranks(struct candidate *list, size_t n, uint32_t most)
{
    size_t i, each = most / QUARTERS < n ? most / QUARTERS : n;

    for (i = 0; i < n; i++)
        list[i].why = 0;
    qsort(list, n, sizeof *list, by_comm);
    for (i = 0; i < each; i++) {
        list[i].why |= EXTREME;
        list[n - 1 - i].why |= EXTREME;
    }
    qsort(list, n, sizeof *list, by_hash);
    for (i = 0; i < each; i++)
        list[i].why |= USUAL;
    qsort(list, n, sizeof *list, by_place);

    /* The first rank of each kind, for as many kinds as are kept. */
    size_t m, k, kinds = 0;
    for (m = 0; m < n && kinds < each; m++) {
        for (k = 0; k < m && list[k].traits.kind != list[m].traits.kind;)
            k++;
        if (k < m)
            continue;
        list[m].why |= USUAL;
        kinds++;
    }
}

/* ------------------------------------------------------------------ while ranks arrive */

static uint64_t events_most(const struct rp_rank_query *q)
{
    return q->ctx->bulk_events ? q->ctx->bulk_events : q->row->bulk->events_most;
}

static bool is_too_much(const struct rp_rank_query *q, uint64_t more)
{
    return atomic_load(q->bulk_events) + more > events_most(q);
}

/* Lists the kept ranks and one more as candidates; the caller frees them. */
static struct candidate *list_kept(const struct rp_rank_query *q, const struct rp_rank_part *more)
{
    struct candidate *list = malloc((q->bulky.n + 2) * sizeof *list);
    size_t i;

    for (i = 0; list && i < q->bulky.n; i++) {
        const struct rp_bulky *b = &q->bulky.at[i];

        list[i] = candidate_of(&b->traits, b->source, b->in_source, i);
    }
    if (list && more)
        list[i] = candidate_of(&more->traits, more->source, more->in_source, i);
    return list;
}

/* Ranks that have equal parts share them, so all lose theirs at once, and the next equal one brings
   it again. */
static enum rp_code drop_bulk(struct rp_rank_query *q, struct rp_rank_slot *slot,
                              struct rp_err *err)
{
    q->row->bulk->drop(slot->part.data);
    enum rp_code code = rp_query_compact(q, &slot->part, err);
    memset(slot->content, 0, sizeof slot->content);
    slot->part.left_out = true;
    for (size_t i = 0; i < q->slots.n; i++)
        if (q->slots.at[i]->owner == slot) {
            q->slots.at[i]->part.data = slot->part.data;
            q->slots.at[i]->part.left_out = true;
        }
    return code;
}

/* Frees the bulk of ranks that were not chosen. */
static enum rp_code leave_chosen(struct rp_rank_query *q, struct rp_err *err)
{
    size_t i, n = q->bulky.n, kept = 0;
    struct candidate *list = list_kept(q, NULL);
    enum rp_code code = rp_err_need(list, err, "choosing ranks");
    struct rp_bulky *chosen = list ? malloc((n + 1) * sizeof *chosen) : NULL;

    if (!chosen) {
        free(list);
        return rp_err_nomem(err, "choosing ranks");
    }
    choose_ranks(list, n, q->row->bulk->ranks_most);
    for (i = 0; i < n; i++) {
        struct rp_bulky *b = &q->bulky.at[list[i].at];

        if (list[i].why)
            chosen[kept++] = *b;
        else if (code == RP_OK)
            code = drop_bulk(q, b->slot, err);
    }
    memcpy(q->bulky.at, chosen, kept * sizeof *chosen);
    q->bulky.n = kept;
    free(chosen);
    free(list);
    return code;
}

static enum rp_code add_bulky(struct rp_rank_query *q, const struct rp_rank_part *part,
                              struct rp_rank_slot *slot, struct rp_err *err)
{
    struct rp_bulky b = {part->traits, part->source, part->in_source, slot};

    RP_TRY(rp_vec_push(&q->bulky, b, err));
    atomic_fetch_add(q->bulk_events, part->traits.events);
    return is_too_much(q, 0) ? leave_chosen(q, err) : RP_OK;
}

enum rp_code rp_bulk_wants(struct rp_rank_query *q, const struct rp_rank_part *part, bool *out,
                           struct rp_err *err)
{
    struct candidate *list = NULL;
    enum rp_code code = RP_OK;

    *out = true;
    if (!q->bulk_limited)
        return RP_OK;
    pthread_mutex_lock(&q->lock);
    size_t n = q->bulky.n + 1;
    if (is_too_much(q, part->traits.events)) {
        list = list_kept(q, part);
        code = rp_err_need(list, err, "choosing ranks");
        if (list)
            choose_ranks(list, n, q->row->bulk->ranks_most);
        for (size_t i = 0; list && i < n; i++)
            if (list[i].at == n - 1)
                *out = list[i].why != 0;
    }
    pthread_mutex_unlock(&q->lock);
    free(list);
    return code;
}

enum rp_code rp_bulk_keep(struct rp_rank_query *q, struct rp_rank_slot *slot, struct rp_err *err)
{
    struct rp_rank_slot *owner = slot->owner ? slot->owner : slot;
    enum rp_code code = RP_OK;
    bool has; /* it may have been dropped meanwhile */
    size_t i;

    if (!q->bulk_limited)
        return RP_OK;
    pthread_mutex_lock(&q->lock);
    has = q->row->bulk->has(slot->part.data);
    for (i = 0; i < q->bulky.n && q->bulky.at[i].slot != owner;)
        i++;
    if (has && i == q->bulky.n)
        code = add_bulky(q, &slot->part, owner, err);
    else if (has && slot->part.traits.rank < q->bulky.at[i].traits.rank) /* the first of equals */
        q->bulky.at[i].traits.rank = slot->part.traits.rank;
    pthread_mutex_unlock(&q->lock);
    return code;
}

/* ------------------------------------------------------------------ in the end */

/* Lists ranks that have or had a bulk, of equal ones only the first; returns false if all can be
   kept. */
static bool list_ranks(const struct rp_rank_query *q, const struct rp_ranks *ranks,
                       struct candidate *list, size_t *n)
{
    const struct rp_rank_bulk *bulk = q->row->bulk;
    uint64_t events = 0;
    bool left_out = false;
    size_t i, k;

    for (i = *n = 0; i < ranks->n; i++) {
        const struct rp_rank_part *part = &ranks->parts[i];

        left_out |= part->left_out;
        if (!part->left_out && !bulk->has(part->data))
            continue;
        for (k = 0; k < *n && ranks->parts[list[k].at].data != part->data;)
            k++;
        if (k < *n)
            continue;
        events += part->traits.events;
        list[(*n)++] = candidate_of(&part->traits, part->source, part->in_source, i);
    }
    return left_out || events > events_most(q);
}

static uint64_t events_of(const struct rp_rank_query *q, const struct rp_ranks *ranks,
                          const struct candidate *list, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        if (list[i].why && q->row->bulk->has(ranks->parts[list[i].at].data))
            sum += list[i].traits.events;
    return sum;
}

/* Finds for each rank that was not chosen the chosen one that stands for it: in turn, one of its
   kind that is not extreme; otherwise any of its kind; otherwise the first. */
static void weigh(const struct rp_ranks *ranks, const struct candidate *chosen, size_t n,
                  uint32_t *weights)
{
    size_t i, k, turn = 0;

    for (i = 0; i < n; i++)
        weights[i] = 1;
    for (i = 0; i < ranks->n; i++) {
        uint64_t kind = ranks->parts[i].traits.kind;
        size_t found = n;

        for (k = 0; k < n && chosen[k].at != i;)
            k++;
        if (k < n)
            continue;
        turn++;
        for (unsigned pass = 0; pass < 2 && found == n; pass++)
            for (k = 0; k < n && found == n; k++) {
                const struct candidate *c = &chosen[(k + turn) % n];

                if (c->traits.kind == kind && (pass || c->why & USUAL))
                    found = (k + turn) % n;
            }
        weights[found < n ? found : 0]++;
    }
}

enum rp_code rp_bulk_choose(struct rp_rank_query *q, struct rp_ranks *ranks, struct rp_arena *arena,
                            struct rp_err *err)
{
    const struct rp_rank_bulk *bulk = q->row->bulk;
    struct candidate *list = RP_ARENA_NEW(arena, struct candidate, ranks->n + 1);
    uint32_t *chosen = RP_ARENA_NEW(arena, uint32_t, ranks->n + 1);
    uint32_t *weights = RP_ARENA_NEW(arena, uint32_t, ranks->n + 1);
    uint32_t most = bulk->ranks_most;
    size_t i, n, kept = 0;

    RP_TRY(rp_arena_check(arena, "choosing ranks", err));
    if (!list_ranks(q, ranks, list, &n))
        return RP_OK;
    choose_ranks(list, n, most);
    while (most > QUARTERS && events_of(q, ranks, list, n) > events_most(q))
        choose_ranks(list, n, most /= 2);
    for (i = 0; i < n; i++)
        if (list[i].why && bulk->has(ranks->parts[list[i].at].data))
            list[kept++] = list[i];
    for (i = 0; i < kept; i++)
        chosen[i] = list[i].at;
    if (kept)
        weigh(ranks, list, kept, weights);

    /* Says which ranks were read, and which were not. */
    const char *text = rp_arena_textf(
        arena,
        "the model has %s of %s, because all are too large for it: the slowest, the fastest, the "
        "first of each kind and some others; '--rank' models those that it names",
        rp_units_text(arena, (double)kept, RP_UNIT_COUNT),
        rp_units_count(arena, (int64_t)ranks->n, "rank"));
    RP_TRY(rp_arena_check(arena, "choosing ranks", err));
    RP_TRY(q->dataset->trust
               ? rp_trust_note(q->dataset->trust, "modelled", false, (int64_t)kept, text, err)
               : RP_OK);
    ranks->chosen = chosen;
    ranks->nchosen = kept;
    ranks->weights = weights;
    if (bulk->whole && kept) {
        /* Leave only the chosen parts. */
        for (size_t k = 0; k < ranks->nchosen; k++)
            ranks->parts[k] = ranks->parts[ranks->chosen[k]];
        ranks->n = ranks->nchosen;
        ranks->chosen = NULL;
    }
    return RP_OK;
}
