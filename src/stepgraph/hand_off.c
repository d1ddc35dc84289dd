/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How work passes between the threads of a process. A thread is busy in its operators and calls;
 * for what it waits in between is not recorded, but follows from which other threads were busy:
 *
 *     main      [forward]  step · · · · · · · · · · step [update]
 *     autograd                [backward][backward]
 *                          ^ handed over           ^ handed back
 *
 *   - another thread that stopped being busy while this one was not, and still is not when this one
 *     resumes, hands over to it; this one waited since it was last active. If that was a thread
 *     that carries collectives, and this one then rests for longer than it had, the collective was
 *     over before, but is not what it waited for (RP_SG_LOOSE);
 *   - a thread that recorded nothing for a while (RP_SG_SOON_NS) was woken by one that is busy just
 * then (if it carries a collective: leaves it), or, of another process, stopped being busy
 *     meanwhile;
 *   - a thread that carries collectives got each of them from a thread that works, not from another
 *     carrier, however long it then took to begin. What it does before its collective (buffers) it
 *     got as well; what it does after it (copies of the result) nobody gave it;
 *   - a recorded wait for a collective inside an operator (FSDP in the backward pass) ends because
 *     a carrier left one: the last that did before the wait was over.
 *
 * These edges are inferred. All starts and stops of busy times are walked in time order, with the
 * threads that are busy and those that are not in lists, the one that changed last in front: of
 * each process, and of all. So the cost is that of a sort.
 */
#include "stepgraph/build.h"

#include "base/each.h"
#include "base/filled.h"
#include "base/order.h"
#include "facts/torch_names.h"

#include <stdlib.h>

#define SLEEPS_NS 1000000
RP_DECISION(SLEEPS_NS, "ns",
            "whoever waits for a collective goes on sooner when it is over (docs/definitions.md, "
            "hand_over)",
            "stepgraph/only_a_long_sleep_is_for_something_else");
#define LEAVES_NS 200000
RP_DECISION(LEAVES_NS, "ns",
            "a carrier tells that its collective is over before it leaves it, by this at most "
            "(docs/definitions.md, hand_over)",
            "stepgraph/a_carrier_that_leaves_wakes");

enum state { IDLE, BUSY, STATES };
enum scope { PROCESS, ALL, SCOPES };

/* A busy time starts or stops. */
struct change {
    int64_t ns;
    uint32_t lane, starts;
};

struct neighbours {
    uint32_t before, after;
};

/* A carrier left a collective; it may have begun another one since. */
struct leave {
    int64_t ns;
    uint32_t lane;
};

struct hand_off_ctx {
    struct rp_sg_builder *b;
    RP_VEC(struct change) changes;
    RP_VEC(size_t) cursor;                   /* by thread: its next busy time */
    RP_VEC(struct neighbours) links[SCOPES]; /* by thread */
    RP_VEC(uint32_t) front[SCOPES];          /* by process and state, or by state */
    RP_VEC(struct leave) left;               /* by process: the last */
    RP_VEC(struct leave) leaves;             /* all leaves of one process, in order */
    RP_VEC(struct rp_interval) carried;      /* the collectives of carriers, thread by thread */
    RP_VEC(size_t) first_carried;            /* by thread */
    uint32_t lane;
    int64_t idle_ns, busy_ns; /* this thread was not busy between these times */
};

/* Returns the last span of a thread that starts before a moment, or RP_NONE. */
static rp_event span_before(const struct rp_sg_builder *b, uint32_t lane, int64_t ns)
{
    size_t low, first = b->threads.at[lane].first_span;

    RP_LOWER_BOUND_FROM(low, first, b->threads.at[lane].end_span,
                        b->t->ev.ts_ns[b->spans.at[low]] < ns);
    return low > first ? b->spans.at[low - 1] : RP_NONE;
}

/* Returns the last start or end of a span of the thread before a moment; *inside tells if a span is
   open then. */
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

/* Returns when a thread that is idle at a moment starts its next span. */
static int64_t next_start(const struct rp_sg_builder *b, uint32_t lane, int64_t ns)
{
    size_t low, end = b->threads.at[lane].end_span;

    RP_LOWER_BOUND_FROM(low, b->threads.at[lane].first_span, end,
                        b->t->ev.ts_ns[b->spans.at[low]] < ns);
    return low < end ? b->t->ev.ts_ns[b->spans.at[low]] : INT64_MAX;
}

static enum rp_code add_hand_off(struct hand_off_ctx *p, int64_t from_ns, int64_t at_ns,
                                 uint32_t other, int64_t other_ns, uint8_t flags,
                                 struct rp_err *err)
{
    struct rp_sg_cut c = {.from_ns = from_ns,
                          .at_ns = at_ns,
                          .lane = p->lane,
                          .item = RP_SG_NO_ITEM,
                          .other = other,
                          .other_ns = other_ns,
                          .kind = RP_SG_HAND_OFF,
                          .flags = RP_SG_INFERRED | flags};
    struct rp_sg_cut plain = {.from_ns = other_ns,
                              .at_ns = other_ns,
                              .lane = other,
                              .item = RP_SG_NO_ITEM,
                              .other = RP_SG_NO_LANE};

    RP_TRY(rp_vec_push(&p->b->cuts, c, err));
    return rp_vec_push(&p->b->cuts, plain, err);
}

/* Returns when `other` was given its work: its first busy time that ends after this thread became
   idle. */
static int64_t given_ns(const struct hand_off_ctx *p, uint32_t other)
{
    const struct rp_sg_thread *o = &p->b->threads.at[other];
    size_t i = p->cursor.at[other];
    int64_t begin = p->idle_ns;

    for (; i > o->first_busy && p->b->busy.at[i - 1].end_ns > p->idle_ns; i--)
        begin = p->b->busy.at[i - 1].begin_ns;
    return begin > p->idle_ns ? begin : p->idle_ns;
}

/* Handles that `other` stopped being busy at a moment at which this thread was not. */
static enum rp_code take_over(struct hand_off_ctx *p, uint32_t other, int64_t ns,
                              struct rp_err *err)
{
    bool inside;
    int64_t change = last_change(p->b, p->lane, ns, &inside);

    if (!inside) {
        int64_t at = next_start(p->b, p->lane, ns);
        /* a carrier handed over when it left; other threads may still be active until then */
        return add_hand_off(p, at, at, other, p->b->threads.at[other].carries ? ns : at, 0, err);
    }
    int64_t given = given_ns(p, other);
    given = change > given ? change : given;
    return add_hand_off(p, given < ns ? given : ns, ns, other, ns, 0, err);
}

/* ------------------------------------------------------------------ who changed last */

static uint32_t process_of(const struct hand_off_ctx *p, uint32_t lane)
{
    return p->b->t->tracks[p->b->threads.at[lane].track].process;
}

static uint32_t *front_of(struct hand_off_ctx *p, enum scope scope, uint32_t lane, enum state state)
{
    return &p->front[scope].at[scope == ALL ? state : STATES * process_of(p, lane) + state];
}

static void take_out(struct hand_off_ctx *p, enum scope scope, uint32_t lane, enum state state)
{
    struct neighbours *links = p->links[scope].at, *of = &links[lane];

    if (of->before != RP_SG_NO_LANE)
        links[of->before].after = of->after;
    else if (*front_of(p, scope, lane, state) == lane)
        *front_of(p, scope, lane, state) = of->after;
    if (of->after != RP_SG_NO_LANE)
        links[of->after].before = of->before;
}

static void put_in_front(struct hand_off_ctx *p, enum scope scope, uint32_t lane, enum state state)
{
    uint32_t *front = front_of(p, scope, lane, state);
    struct neighbours *links = p->links[scope].at;

    links[lane] = (struct neighbours){RP_SG_NO_LANE, *front};
    if (*front != RP_SG_NO_LANE)
        links[*front].before = lane;
    *front = lane;
}

static void enter_state(struct hand_off_ctx *p, uint32_t lane, enum state state)
{
    for (int scope = 0; scope < SCOPES; scope++) {
        take_out(p, (enum scope)scope, lane, state == BUSY ? IDLE : BUSY);
        put_in_front(p, (enum scope)scope, lane, state);
    }
}

/* Whether a thread may have woken this one. Carriers do not wake each other, and one that is busy
   wakes nobody before it leaves its collective. */
static bool may_wake(const struct hand_off_ctx *p, uint32_t lane, enum state state)
{
    const struct rp_sg_thread *threads = p->b->threads.at;

    if (lane == p->lane || !threads[lane].carries)
        return lane != p->lane;
    return !threads[p->lane].carries &&
           (state == IDLE ||
            rp_ns_between(p->busy_ns, p->b->busy.at[p->cursor.at[lane] - 1].end_ns) < LEAVES_NS);
}

/* Returns the thread that entered a state last, of those that may have woken this one. */
static uint32_t last_to(struct hand_off_ctx *p, enum scope scope, enum state state)
{
    uint32_t lane = *front_of(p, scope, p->lane, state);

    while (lane != RP_SG_NO_LANE && !may_wake(p, lane, state))
        lane = p->links[scope].at[lane].after;
    return lane;
}

/* Returns when a thread that is idle stopped being busy, if that was after this one did; otherwise
   INT64_MIN. */
static int64_t stop_ns(const struct hand_off_ctx *p, uint32_t lane)
{
    int64_t ns = lane == RP_SG_NO_LANE ? INT64_MIN : p->b->busy.at[p->cursor.at[lane] - 1].end_ns;

    return ns > p->idle_ns ? ns : INT64_MIN;
}

/* ------------------------------------------------------------------ the walk */

/* Whether a carrier only ends its last collective in a busy time, which is then closer to it than
   to the next one, and contains neither. */
static bool ends_collective(const struct hand_off_ctx *p, const struct rp_interval *busy)
{
    const struct rp_interval *all = p->carried.at;
    size_t low, first = p->first_carried.at[p->lane], end = p->first_carried.at[p->lane + 1];

    RP_LOWER_BOUND_FROM(low, first, end, all[low].end_ns <= busy->begin_ns);
    if (low == first || (low < end && all[low].begin_ns < busy->end_ns))
        return false;
    return low == end || rp_ns_between(all[low - 1].end_ns, busy->begin_ns) <
                             rp_ns_between(busy->end_ns, all[low].begin_ns);
}

/* A carrier got its collective from the thread that works, or that worked last; *given tells if
   there is one. */
static enum rp_code give_collective(struct hand_off_ctx *p, bool *given, struct rp_err *err)
{
    uint32_t giver = last_to(p, PROCESS, BUSY);

    if (giver == RP_SG_NO_LANE)
        giver = last_to(p, PROCESS, IDLE);
    *given = giver != RP_SG_NO_LANE;
    return *given ? add_hand_off(p, p->busy_ns, p->busy_ns, giver, p->busy_ns, 0, err) : RP_OK;
}

/* Whether a thread pauses for much longer after a carrier stopped than before: then it did not wait
   for the collective that ended meanwhile. */
static bool sleeps_on(const struct hand_off_ctx *p, uint32_t other, int64_t stop_ns)
{
    int64_t after = rp_ns_between(stop_ns, p->busy_ns);
    bool inside;

    if (!p->b->threads.at[other].carries || p->idle_ns == INT64_MIN || after < SLEEPS_NS ||
        after <= rp_ns_between(p->idle_ns, stop_ns))
        return false;
    last_change(p->b, p->lane, stop_ns, &inside);
    return !inside;
}

/* Returns which thread stopped being busy last, or left a collective, while this thread was not
   busy; ns is INT64_MIN if there is none. */
static struct leave last_stop(struct hand_off_ctx *p)
{
    struct leave idle = {.lane = last_to(p, PROCESS, IDLE)};
    const struct leave *left = &p->left.at[process_of(p, p->lane)];

    idle.ns = stop_ns(p, idle.lane);
    return left->ns > p->idle_ns && left->ns > idle.ns ? *left : idle;
}

/* Whether a carrier is just leaving its collective, and no thread stopped as close to now. */
static bool is_leaving(struct hand_off_ctx *p, int64_t stop_ns)
{
    uint32_t lane = last_to(p, PROCESS, BUSY);
    bool inside;

    last_change(p->b, p->lane, p->busy_ns, &inside);
    return lane != RP_SG_NO_LANE && p->b->threads.at[lane].carries && !inside &&
           rp_ns_between(stop_ns, p->busy_ns) >= RP_SG_SOON_NS;
}

/* Finds why a thread resumes. */
static enum rp_code resume_thread(struct hand_off_ctx *p, uint32_t lane, int64_t ns,
                                  struct rp_err *err)
{
    size_t at = p->cursor.at[lane];
    bool given = false;

    p->lane = lane;
    p->busy_ns = ns;
    p->idle_ns = at == p->b->threads.at[lane].first_busy ? INT64_MIN : p->b->busy.at[at - 1].end_ns;
    if (p->b->threads.at[lane].carries && ends_collective(p, &p->b->busy.at[at]))
        return RP_OK;
    if (p->b->threads.at[lane].carries)
        RP_TRY(give_collective(p, &given, err));
    if (given)
        return RP_OK;
    struct leave stop = last_stop(p);
    if (stop.ns == INT64_MIN || is_leaving(p, stop.ns)) {
        /* This thread recorded nothing for a while, so another thread woke it. */
        bool inside;

        last_change(p->b, p->lane, p->busy_ns, &inside);
        if (inside ||
            (p->idle_ns != INT64_MIN && rp_ns_between(p->idle_ns, p->busy_ns) < RP_SG_SOON_NS))
            return RP_OK;
        uint32_t found = last_to(p, PROCESS, BUSY);
        if (found == RP_SG_NO_LANE)
            found = last_to(p, ALL, BUSY);
        if (found == RP_SG_NO_LANE && stop_ns(p, last_to(p, ALL, IDLE)) != INT64_MIN)
            found = last_to(p, ALL, IDLE);
        return found == RP_SG_NO_LANE
                   ? RP_OK
                   : add_hand_off(p, p->busy_ns, p->busy_ns, found, p->busy_ns, 0, err);
    }
    if (sleeps_on(p, stop.lane, stop.ns))
        return add_hand_off(p, ns, ns, stop.lane, stop.ns, RP_SG_LOOSE, err);
    return take_over(p, stop.lane, stop.ns, err);
}

RP_ORDER(by_time, struct change, RP_UP(ns), RP_UP(starts), RP_UP(lane))

/* Stops come first, then threads that start at the same time, none of which is yet busy for the
   others. */
static enum rp_code walk_changes(struct hand_off_ctx *p, struct rp_err *err)
{
    const struct change *c = p->changes.at;
    size_t i, k, end, n = p->changes.n;

    for (i = 0; i < n; i = end) {
        for (; i < n && !c[i].starts; i++) {
            enter_state(p, c[i].lane, IDLE);
            if (p->b->threads.at[c[i].lane].carries)
                p->left.at[process_of(p, c[i].lane)] = (struct leave){c[i].ns, c[i].lane};
        }
        for (end = i; end < n && c[end].starts && c[end].ns == c[i].ns; end++)
            RP_TRY(resume_thread(p, c[end].lane, c[end].ns, err));
        for (k = i; k < end; k++) {
            const struct rp_interval *busy = &p->b->busy.at[p->cursor.at[c[k].lane]++];

            enter_state(p, c[k].lane, BUSY);
            if (busy->end_ns <= busy->begin_ns)
                enter_state(p, c[k].lane, IDLE);
        }
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ recorded waits */

RP_ORDER(by_leave, struct leave, RP_UP(ns), RP_UP(lane))

/* Whether a span of a thread lies inside a time in which the thread counts as busy. */
static bool is_inside_busy(const struct hand_off_ctx *p, int64_t begin_ns, int64_t end_ns)
{
    const struct rp_sg_thread *thread = &p->b->threads.at[p->lane];
    const struct rp_interval *busy = p->b->busy.at;
    size_t low;

    RP_LOWER_BOUND_FROM(low, thread->first_busy, thread->end_busy, busy[low].end_ns < end_ns);
    return low < thread->end_busy && busy[low].begin_ns <= begin_ns;
}

/* Returns when a thread that is not busy after a moment, or just then, was last busy. */
static int64_t busy_until(const struct hand_off_ctx *p, uint32_t lane, int64_t ns)
{
    const struct rp_sg_thread *thread = &p->b->threads.at[lane];
    size_t low;

    RP_LOWER_BOUND_FROM(low, thread->first_busy, thread->end_busy,
                        p->b->busy.at[low].begin_ns < ns);
    return low > thread->first_busy && p->b->busy.at[low - 1].end_ns < ns
               ? p->b->busy.at[low - 1].end_ns
               : ns;
}

/* Cuts waits only in times in which a thread counts as busy: those in between are found by the
   walk. */
static enum rp_code cut_waits(struct hand_off_ctx *p, struct rp_err *err)
{
    const struct rp_trace *t = p->b->t;
    uint32_t process = RP_NONE;

    for (p->lane = 0; p->lane < p->b->threads.n; p->lane++) {
        rp_track track = p->b->threads.at[p->lane].track;

        for (rp_event e = t->tracks[track].first; e < t->tracks[track].end; e++) {
            if (t->ev.kind[e] != RP_KIND_WAIT || t->ev.dur_ns[e] <= 0 ||
                !rp_torch_means(rp_trace_str(t, t->ev.name[e]), RP_TORCH_WAITS))
                continue;
            if (process != process_of(p, p->lane)) {
                process = process_of(p, p->lane);

                /* List the ends of all collectives that carriers of a process carried. */
                p->leaves.n = 0;
                for (uint32_t lane = 0; lane < p->b->threads.n; lane++)
                    for (size_t i = p->first_carried.at[lane];
                         process_of(p, lane) == process && i < p->first_carried.at[lane + 1]; i++)
                        RP_TRY(rp_vec_push(&p->leaves,
                                           ((struct leave){p->carried.at[i].end_ns, lane}), err));
                if (p->leaves.n)
                    qsort(p->leaves.at, p->leaves.n, sizeof *p->leaves.at, by_leave);
            }

            int64_t begin = p->b->t->ev.ts_ns[e], end = rp_event_end_ns(p->b->t, e);
            size_t low;
            RP_LOWER_BOUND(low, p->leaves.n, p->leaves.at[low].ns <= rp_ns_sum(end, LEAVES_NS));
            const struct leave *left = low ? &p->leaves.at[low - 1] : NULL;
            if (!left || left->ns <= begin || !is_inside_busy(p, begin, end))
                continue;
            RP_TRY(add_hand_off(p, begin, end, left->lane, busy_until(p, left->lane, end), 0, err));
        }
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ all of it */

static enum rp_code list_changes(struct hand_off_ctx *p, struct rp_err *err)
{
    const struct rp_sg_builder *b = p->b;

    RP_TRY(rp_vec_reserve(&p->changes, 2 * b->busy.n, err));
    for (uint32_t lane = 0; lane < b->threads.n; lane++)
        for (size_t i = b->threads.at[lane].first_busy; i < b->threads.at[lane].end_busy; i++) {
            const struct rp_interval *busy = &b->busy.at[i];

            p->changes.at[p->changes.n++] = (struct change){busy->begin_ns, lane, 1};
            if (busy->end_ns > busy->begin_ns)
                p->changes.at[p->changes.n++] = (struct change){busy->end_ns, lane, 0};
        }
    qsort(p->changes.at, p->changes.n, sizeof *p->changes.at, by_time);
    return RP_OK;
}

static enum rp_code list_carried(struct hand_off_ctx *p, struct rp_err *err)
{
    const struct rp_sg_builder *b = p->b;
    uint32_t lane;

    RP_TRY(rp_vec_reserve(&p->first_carried, b->threads.n + 1, err));
    for (lane = 0; lane < b->threads.n; lane++) {
        const struct rp_sg_thread *thread = &b->threads.at[lane];

        p->first_carried.at[lane] = p->carried.n;
        for (size_t i = thread->first_span; thread->carries && i < thread->end_span; i++) {
            rp_event e = b->spans.at[i];
            struct rp_interval x = {b->t->ev.ts_ns[e], rp_event_end_ns(b->t, e)};

            if (rp_event_is_host_collective(b->t, e))
                RP_TRY(rp_vec_push(&p->carried, x, err));
        }
    }
    p->first_carried.at[lane] = p->carried.n;
    return RP_OK;
}

static enum rp_code prepare(struct hand_off_ctx *p, struct rp_err *err)
{
    size_t i, n = p->b->threads.n, fronts = STATES * ((size_t)p->b->t->nprocesses + 1);

    RP_TRY(list_changes(p, err));
    RP_TRY(list_carried(p, err));
    RP_TRY(rp_vec_reserve(&p->cursor, n, err));
    for (i = 0; i < n; i++)
        p->cursor.at[i] = p->b->threads.at[i].first_busy;
    RP_TRY(rp_vec_reserve(&p->left, (size_t)p->b->t->nprocesses + 1, err));
    for (i = 0; i <= p->b->t->nprocesses; i++)
        p->left.at[i] = (struct leave){INT64_MIN, RP_SG_NO_LANE};
    for (int scope = 0; scope < SCOPES; scope++) {
        RP_TRY(rp_vec_nones(&p->links[scope], n, err));
        RP_TRY(rp_vec_nones(&p->front[scope], fronts, err));
    }
    return RP_OK;
}

enum rp_code rp_sg_cut_hand_offs(struct rp_sg_builder *b, struct rp_err *err)
{
    struct hand_off_ctx p = {.b = b};

    if (b->threads.n < 2)
        return RP_OK;
    enum rp_code code = prepare(&p, err);
    if (code == RP_OK)
        code = walk_changes(&p, err);
    if (code == RP_OK)
        code = cut_waits(&p, err);
    RP_EACH(rp_vec_release, &p.changes, &p.cursor, &p.left, &p.leaves, &p.carried,
            &p.first_carried);
    for (int scope = 0; scope < SCOPES; scope++) {
        RP_EACH(rp_vec_release, &p.links[scope], &p.front[scope]);
    }
    return code;
}
