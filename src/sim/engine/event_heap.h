/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A heap of moments, the earliest first. Each node has four children, which gives half the levels
 * of a binary heap, and the children of one share a cache line. A key consists of two numbers, so
 * that the caller's rank of the event settles ties; both are compared as one, without an
 * unpredictable branch.
 */
#include "base/vec.h"

struct rp_moment {
    int64_t key;   /* mostly a time; not negative */
    uint64_t rank; /* decides between equal keys; its lower half identifies the event */
};

struct rp_event_heap {
    RP_VEC(struct rp_moment) at;
};

static inline uint32_t rp_moment_what(struct rp_moment m)
{
    return (uint32_t)m.rank;
}

static inline int rp_moment_before(const struct rp_moment *a, const struct rp_moment *b)
{
    unsigned __int128 x = (unsigned __int128)(uint64_t)a->key << 64 | a->rank;
    unsigned __int128 y = (unsigned __int128)(uint64_t)b->key << 64 | b->rank;

    return x < y;
}

static inline enum rp_code rp_heap_push(struct rp_event_heap *h, struct rp_moment m,
                                        struct rp_err *err)
{
    size_t i = h->at.n;

    RP_TRY(rp_vec_reserve(&h->at, 1, err));
    h->at.n++;
    while (i > 0) {
        size_t parent = (i - 1) / 4;

        if (!rp_moment_before(&m, &h->at.at[parent]))
            break;
        h->at.at[i] = h->at.at[parent];
        i = parent;
    }
    h->at.at[i] = m;
    return RP_OK;
}

static inline struct rp_moment rp_heap_pop(struct rp_event_heap *h)
{
    struct rp_moment top = h->at.at[0], last = h->at.at[--h->at.n];
    size_t i = 0, n = h->at.n;

    for (;;) {
        size_t child = 4 * i + 1, best = child, end = child + 4 < n ? child + 4 : n, c;

        if (child >= n)
            break;
        for (c = child + 1; c < end; c++)
            best = rp_moment_before(&h->at.at[c], &h->at.at[best]) ? c : best;
        if (!rp_moment_before(&h->at.at[best], &last))
            break;
        h->at.at[i] = h->at.at[best];
        i = best;
    }
    h->at.at[i] = last;
    return top;
}

/*
 * A queue of moments that mostly come in order: these form a run that is appended to and consumed
 * from its head; only moments that come too late for its end go through a heap.
 */
struct rp_event_queue {
    RP_VEC(struct rp_moment) run;
    size_t head; /* of the run */
    struct rp_event_heap rest;
};

static inline size_t rp_queue_count(const struct rp_event_queue *q)
{
    return q->run.n - q->head + q->rest.at.n;
}

static inline enum rp_code rp_queue_push(struct rp_event_queue *q, struct rp_moment m,
                                         struct rp_err *err)
{
    if (q->head == q->run.n)
        q->head = q->run.n = 0;
    if (q->run.n && rp_moment_before(&m, &q->run.at[q->run.n - 1]))
        return rp_heap_push(&q->rest, m, err);
    return rp_vec_push(&q->run, m, err);
}

static inline struct rp_moment rp_queue_pop(struct rp_event_queue *q)
{
    if (q->head == q->run.n ||
        (q->rest.at.n && rp_moment_before(&q->rest.at.at[0], &q->run.at[q->head])))
        return rp_heap_pop(&q->rest);
    return q->run.at[q->head++];
}

/* The next moment to be popped, or NULL. */
static inline const struct rp_moment *rp_queue_peek(const struct rp_event_queue *q)
{
    const struct rp_moment *run = q->head < q->run.n ? &q->run.at[q->head] : NULL;
    const struct rp_moment *rest = q->rest.at.n ? q->rest.at.at : NULL;

    if (!run || !rest)
        return run ? run : rest;
    return rp_moment_before(rest, run) ? rest : run;
}

static inline void rp_queue_release(struct rp_event_queue *q)
{
    rp_vec_release(&q->run);
    rp_vec_release(&q->rest.at);
}
