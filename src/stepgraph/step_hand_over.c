/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How work passes between the threads of a process. A thread is busy in its operators and calls; of
 * what it waits for in between nothing is recorded, but who else was busy tells:
 *
 *     main      [forward]  step · · · · · · · · · · step [update]
 *     autograd                [backward][backward]
 *                          ^ handed over           ^ handed back
 *
 *   - another thread that stopped being busy while this one was not, and still is not when this one
 *     goes on, hands over to it; this one waited from where it last did something;
 *   - a thread that recorded nothing for a while (WOKEN_NS) was woken by one that is busy just
 * then, or, of another process, stopped being busy meanwhile.
 *
 * These edges are inferred. A cursor for each thread moves with the time, so the cost is threads
 * times busy times.
 */
#include "stepgraph/step_build.h"

#include <string.h>

/* A shorter gap is the thread's own way from one operator to the next. */
#define WOKEN_NS 20000

struct passer {
    struct rp_sg_builder *b;
    RP_VEC(size_t) cursor; /* by thread: its first busy time that begins at or after now */
    uint32_t lane;
    int64_t idle_ns, busy_ns; /* this thread was not busy between these */
};

/* The last span of a thread that starts before a moment, or RP_NONE. */
static rp_event span_before(const struct rp_sg_builder *b, uint32_t lane, int64_t ns)
{
    size_t first = b->threads.at[lane].first_span, low = first;
    size_t high = b->threads.at[lane].end_span;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (b->t->ev.ts_ns[b->spans.at[middle]] < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low > first ? b->spans.at[low - 1] : RP_NONE;
}

/* The last start or end of a span of the thread before a moment; *inside: a span is open then. */
static int64_t last_change(const struct rp_sg_builder *b, uint32_t lane, int64_t ns, bool *inside)
{
    rp_event e = span_before(b, lane, ns);
    int64_t last = e == RP_NONE ? INT64_MIN : b->t->ev.ts_ns[e];

    for (*inside = false; e != RP_NONE && !*inside; e = b->t->ev.parent[e]) {
        int64_t end = rp_event_end_ns(b->t, e);

        *inside = end >= ns;
        if (end < ns && end > last)
            last = end;
    }
    return last;
}

/* Where a thread that does nothing at a moment starts its next span. */
static int64_t next_start(const struct rp_sg_builder *b, uint32_t lane, int64_t ns)
{
    size_t low = b->threads.at[lane].first_span, high = b->threads.at[lane].end_span, end = high;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (b->t->ev.ts_ns[b->spans.at[middle]] < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end ? b->t->ev.ts_ns[b->spans.at[low]] : INT64_MAX;
}

static enum rp_code put(struct passer *p, int64_t from_ns, int64_t at_ns, uint32_t other,
                        int64_t other_ns, struct rp_err *err)
{
    struct rp_sg_cut c = {.from_ns = from_ns,
                          .at_ns = at_ns,
                          .lane = p->lane,
                          .item = RP_SG_NO_ITEM,
                          .other = other,
                          .other_ns = other_ns,
                          .kind = RP_SG_HAND_OVER,
                          .flags = RP_SG_INFERRED};
    struct rp_sg_cut plain = {.from_ns = other_ns,
                              .at_ns = other_ns,
                              .lane = other,
                              .item = RP_SG_NO_ITEM,
                              .other = RP_SG_NO_LANE};

    RP_TRY(rp_vec_push(&p->b->cuts, c, err));
    return rp_vec_push(&p->b->cuts, plain, err);
}

/* When `other` was given its work: its first busy time that ends after this thread fell idle. */
static int64_t given_ns(const struct passer *p, uint32_t other)
{
    const struct rp_sg_thread *o = &p->b->threads.at[other];
    size_t i = p->cursor.at[other];
    int64_t begin = p->idle_ns;

    for (; i > o->first_busy && p->b->busy.at[i - 1].end_ns > p->idle_ns; i--)
        begin = p->b->busy.at[i - 1].begin_ns;
    return begin > p->idle_ns ? begin : p->idle_ns;
}

/* `other` stopped being busy at a moment, while this thread was not. */
static enum rp_code take_over(struct passer *p, uint32_t other, int64_t ns, struct rp_err *err)
{
    int64_t given, change, at;
    bool inside;

    change = last_change(p->b, p->lane, ns, &inside);
    if (!inside) {
        at = next_start(p->b, p->lane, ns);
        return put(p, at, at, other, at, err);
    }
    given = given_ns(p, other);
    given = change > given ? change : given;
    return put(p, given < ns ? given : ns, ns, other, ns, err);
}

/* How well another thread explains that this one was woken, and since when it did what it did:
   0: not at all; 1: of another process, it stopped meanwhile; 2: it is busy; 3: and of this one. */
static int waker(const struct passer *p, uint32_t other, int64_t *since_ns)
{
    const struct rp_sg_builder *b = p->b;
    const struct rp_sg_thread *o = &b->threads.at[other];
    size_t at = p->cursor.at[other];
    bool inside;

    if (other == p->lane || at == o->first_busy)
        return 0;
    *since_ns = b->busy.at[at - 1].end_ns;
    if (*since_ns <= p->busy_ns)
        return *since_ns > p->idle_ns ? 1 : 0;
    *since_ns = last_change(b, other, p->busy_ns, &inside);
    return b->t->tracks[o->track].process == b->t->tracks[b->threads.at[p->lane].track].process ? 3
                                                                                                : 2;
}

/* Finds who woke this thread: of those that explain it equally the one that changed last. */
static enum rp_code wake_up(struct passer *p, struct rp_err *err)
{
    uint32_t i, found = RP_SG_NO_LANE;
    int64_t since, best_since = INT64_MIN;
    int level, best = 0;
    bool inside;

    last_change(p->b, p->lane, p->busy_ns, &inside);
    if (inside || (p->idle_ns != INT64_MIN && rp_ns_between(p->idle_ns, p->busy_ns) < WOKEN_NS))
        return RP_OK;
    for (i = 0; i < p->b->threads.n; i++) {
        level = waker(p, i, &since);
        if (level > best || (level && level == best && since > best_since)) {
            best = level;
            best_since = since;
            found = i;
        }
    }
    return found == RP_SG_NO_LANE ? RP_OK : put(p, p->busy_ns, p->busy_ns, found, p->busy_ns, err);
}

/* Moves the cursors to now, and finds who stopped being busy last. */
static uint32_t last_to_stop(struct passer *p, int64_t *stop_ns)
{
    const struct rp_sg_builder *b = p->b;
    uint32_t i, found = RP_SG_NO_LANE, process = b->t->tracks[b->threads.at[p->lane].track].process;

    *stop_ns = p->idle_ns;
    for (i = 0; i < b->threads.n; i++) {
        const struct rp_sg_thread *o = &b->threads.at[i];
        size_t *at = &p->cursor.at[i];

        while (*at < o->end_busy && b->busy.at[*at].begin_ns < p->busy_ns)
            (*at)++;
        if (i == p->lane || b->t->tracks[o->track].process != process || *at == o->first_busy)
            continue;
        if (b->busy.at[*at - 1].end_ns <= p->busy_ns && b->busy.at[*at - 1].end_ns > *stop_ns) {
            *stop_ns = b->busy.at[*at - 1].end_ns;
            found = i;
        }
    }
    return found;
}

static enum rp_code pass_thread(struct passer *p, struct rp_err *err)
{
    const struct rp_sg_thread *thread = &p->b->threads.at[p->lane];
    size_t i;

    for (i = 0; i < p->b->threads.n; i++)
        p->cursor.at[i] = p->b->threads.at[i].first_busy;
    for (i = thread->first_busy; i < thread->end_busy; i++) {
        int64_t stop;
        uint32_t other;

        p->idle_ns = i == thread->first_busy ? INT64_MIN : p->b->busy.at[i - 1].end_ns;
        p->busy_ns = p->b->busy.at[i].begin_ns;
        other = last_to_stop(p, &stop);
        if (other != RP_SG_NO_LANE)
            RP_TRY(take_over(p, other, stop, err));
        else
            RP_TRY(wake_up(p, err));
    }
    return RP_OK;
}

enum rp_code rp_sg_cut_hand_overs(struct rp_sg_builder *b, struct rp_err *err)
{
    struct passer p = {.b = b};
    enum rp_code code = RP_OK;

    if (b->threads.n < 2)
        return RP_OK;
    RP_TRY(rp_vec_reserve(&p.cursor, b->threads.n, err));
    for (p.lane = 0; code == RP_OK && p.lane < b->threads.n; p.lane++)
        code = pass_thread(&p, err);
    rp_vec_release(&p.cursor);
    return code;
}
