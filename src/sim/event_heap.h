/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_SIM_EVENT_HEAP_H
#define RP_SIM_EVENT_HEAP_H
/*
 * A heap of moments, the earliest first. Four children a node: half the levels of a binary heap,
 * and the children of one share a cache line. Keys are two numbers, so that ties are settled by the
 * caller's rank of the event and nothing is left to chance.
 */
#include "base/vec.h"

struct rp_moment {
    int64_t key;   /* time, most often */
    uint64_t rank; /* decides between equal keys */
    uint32_t what; /* and between equal ranks */
    uint32_t version;
};

struct rp_event_heap {
    RP_VEC(struct rp_moment) at;
};

static inline int rp_moment_before(const struct rp_moment *a, const struct rp_moment *b)
{
    if (a->key != b->key)
        return a->key < b->key;
    return a->rank != b->rank ? a->rank < b->rank : a->what < b->what;
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
            if (rp_moment_before(&h->at.at[c], &h->at.at[best]))
                best = c;
        if (!rp_moment_before(&h->at.at[best], &last))
            break;
        h->at.at[i] = h->at.at[best];
        i = best;
    }
    h->at.at[i] = last;
    return top;
}

/*
 * A queue of moments, most of which come in order: these are a run that is appended to and eaten
 * from its head; only what comes too early for its end goes through a heap.
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

static inline void rp_queue_release(struct rp_event_queue *q)
{
    rp_vec_release(&q->run);
    rp_vec_release(&q->rest.at);
}

#endif
