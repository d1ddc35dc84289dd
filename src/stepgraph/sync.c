/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that wait for the device. A record of the wait (cuda_sync) names its stream or the event;
 * without one, a wait for the device waits for the last work of every stream, and a wait for a
 * stream or an event for the work that ended last during the call. A copy call that returned only
 * after its copy ended waited for the copy. The call is cut where the last of that work ended:
 * until then the thread waited.
 *
 * A call that launches work returns in microseconds, unless the device's queue is full (QUEUED):
 * then it waits until earlier work has left the queue.
 *
 * A thread may also wait without a recorded call, for example where it polls. It does if, nearly
 * each time that it does nothing for a while (QUIET_NS), it goes on as soon as (RP_SG_SOON_NS) the
 * device has nothing left to do. Inside an operator it waits, if after a launch it is quiet until
 * the work that it launched ends, or nearly does (a kernel tells the host what it counted).
 * Runtimes of XLA and TensorFlow are told by threads of their own that work has ended, so a thread
 * that waits for a result calls nothing, or only a function of Python (block_until_ready). There a
 * thread that launches waits while it records nothing, if, nearly each time, the device has done
 * all that was launched before the thread goes on, however long after.
 */
#include "base/each.h"
#include "base/filled.h"
#include "base/named.h"
#include "base/order.h"
#include "facts/host/signs.h"
#include "facts/work/workload.h"
#include "stepgraph/build.h"
#include "trace/device_calls.h"

#define QUIET_NS 100000
RP_DECISION(
    QUIET_NS, "ns",
    "a call that launches returns in microseconds, and so does a thread between two operators: "
    "for longer it waits (docs/definitions.md, sync)",
    "stepgraph/a_thread_that_polls_waits, stepgraph/a_launch_waits_while_the_queue_is_full");
#define LEAST_QUIET 4
RP_DECISION(LEAST_QUIET, "times",
            "that a thread goes on by chance when the device is done happens once, not four times",
            "stepgraph/a_thread_that_polls_waits");
#define NEARLY_EACH 0.8
RP_DECISION(NEARLY_EACH, "of the times that a thread is quiet",
            "a thread that waits for the device does so each time, but the first and the last of a "
            "recording",
            "stepgraph/a_thread_that_polls_waits");
#define WORKED 0.25
RP_DECISION(
    WORKED, "of the time that a thread is quiet",
    "where the device was done sooner, the thread was busy with something that was not recorded",
    "stepgraph/a_runtime_of_xla_waits_without_a_call");
#define NEARLY_OVER 0.02
RP_DECISION(NEARLY_OVER, "of the time that a thread is quiet",
            "a kernel that writes its result for the host ends up to 70 us later, after 2 to 20 ms "
            "(experts' dispatch of DeepSeek's training trace)",
            "stepgraph/an_operator_polls_for_what_it_launched");
#define QUEUED 500
RP_DECISION(QUEUED, "launches",
            "CUDA's queue of a stream holds 1024 entries, and a launch takes one or two",
            "stepgraph/a_launch_waits_while_the_queue_is_full");

enum wait { NO_WAIT, WAIT_DEVICE, WAIT_SOME, WAIT_COPY, WAIT_QUEUE, WAIT_RESULT };

struct sync_ctx {
    struct rp_sg_builder *b;
    struct rp_sg_waits waits;
    RP_VEC(uint8_t) wait_of;     /* by string: enum wait + 1, or 0 if it was not looked at */
    RP_VEC(int64_t) launched_ns; /* of each item, in order; INT64_MIN if before the recording */
};

/* Whether it is a function of a framework that waits for a result without a call of the device's
   interface. */
static bool waits_for_result(const char *name)
{
    const uint16_t both = RP_SIGN_BLOCKS | RP_SIGN_HANDS_OVER;

    return (rp_host_signs(name) & both) == both;
}

/* Calls that trace/device_calls.c does not know; the first row that fits decides. */
static const struct {
    enum rp_named how;
    const char *text;
    enum wait wait;
} calls[] = {{RP_NAMED_HAS, "Synchronize", WAIT_SOME},
             {RP_NAMED_BEGINS, "clEnqueueRead", WAIT_COPY}, /* they block if they are told to */
             {RP_NAMED_BEGINS, "clEnqueueWrite", WAIT_COPY},
             {RP_NAMED_BEGINS, "clEnqueueMap", WAIT_COPY}};

static enum wait wait_by_name(const char *name)
{
    const uint16_t does = rp_device_call_does(name);

    if (waits_for_result(name))
        return WAIT_RESULT;
    if (does & RP_DOES_AWAIT_DEVICE)
        return WAIT_DEVICE;
    if (does & RP_DOES_BLOCK)
        return WAIT_SOME;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (rp_is_named(name, calls[i].how, calls[i].text))
            return calls[i].wait;
    return does & RP_DOES_COPY ? WAIT_COPY : does & RP_DOES_WORK ? WAIT_QUEUE : NO_WAIT;
}

static enum wait wait_of(struct sync_ctx *s, rp_event call)
{
    const struct rp_trace *t = s->b->t;
    uint8_t *known = &s->wait_of.at[t->ev.name[call]];

    if (!*known)
        *known = (uint8_t)(1 + wait_by_name(rp_trace_str(t, t->ev.name[call])));
    return (enum wait)(*known - 1);
}

/* Cuts the call where the item ended, or at its start if the item was over before. */
static enum rp_code cut(struct sync_ctx *s, uint32_t lane, rp_event call, uint32_t item,
                        uint8_t flags, struct rp_err *err)
{
    int64_t start = s->b->t->ev.ts_ns[call], end = s->b->work->items.at[item].end_ns;
    struct rp_sg_cut c = {.from_ns = start,
                          .at_ns = end > start ? end : start,
                          .lane = lane,
                          .item = item,
                          .other = RP_SG_NO_LANE,
                          .kind = RP_SG_SYNC,
                          .flags = flags};

    return rp_vec_push(&s->b->cuts, c, err);
}

static enum rp_code wait_for_stream(struct sync_ctx *s, uint32_t lane, rp_event call,
                                    uint32_t stream, int64_t before_ns, struct rp_err *err)
{
    int64_t start = s->b->t->ev.ts_ns[call];
    uint32_t item = rp_sg_stream_item_before(s->b, stream, rp_event_end_ns(s->b->t, call),
                                             before_ns < start ? before_ns : start);

    return item == RP_SG_NO_ITEM ? RP_OK : cut(s, lane, call, item, 0, err);
}

static enum rp_code wait_for_all(struct sync_ctx *s, uint32_t lane, rp_event call,
                                 struct rp_err *err)
{
    for (uint32_t i = 0; i < s->b->work->streams.n; i++)
        RP_TRY(wait_for_stream(s, lane, call, i, INT64_MAX, err));
    return RP_OK;
}

/* If no record tells for what it waits, it is the work that ended last inside the call. */
static enum rp_code wait_for_last(struct sync_ctx *s, uint32_t lane, rp_event call,
                                  struct rp_err *err)
{
    uint32_t item = rp_sg_item_before(s->b, rp_event_end_ns(s->b->t, call));

    if (item == RP_SG_NO_ITEM || s->b->work->items.at[item].end_ns <= s->b->t->ev.ts_ns[call])
        return RP_OK;
    return cut(s, lane, call, item, RP_SG_INFERRED, err);
}

static enum rp_code wait_for_some(struct sync_ctx *s, uint32_t lane, rp_event call,
                                  struct rp_err *err)
{
    rp_event record = rp_sg_wait_record(s->b->t, call);
    struct rp_sg_wait wait = {RP_NONE, RP_NONE, INT64_MAX};

    if (record != RP_NONE)
        wait = rp_sg_wait_of(&s->waits, record);
    uint32_t stream = wait.on_stream == RP_NONE ? wait.stream : wait.on_stream;
    return stream == RP_NONE ? wait_for_last(s, lane, call, err)
                             : wait_for_stream(s, lane, call, stream, wait.record_ns, err);
}

/* Handles a long call that launches work while much of the launched work has not begun. */
static enum rp_code wait_for_queue(struct sync_ctx *s, uint32_t lane, rp_event call,
                                   struct rp_err *err)
{
    int64_t start = s->b->t->ev.ts_ns[call], end = rp_event_end_ns(s->b->t, call);
    size_t launched, begun;

    if (rp_ns_between(start, end) < QUIET_NS)
        return RP_OK;
    RP_LOWER_BOUND(launched, s->launched_ns.n, s->launched_ns.at[launched] < start);
    RP_LOWER_BOUND(begun, s->b->work->items.n, s->b->work->items.at[begun].begin_ns < end);
    return launched < begun + QUEUED ? RP_OK : wait_for_last(s, lane, call, err);
}

/* Finds the copy that a call made if the call lasted longer. */
static enum rp_code wait_for_copy(struct sync_ctx *s, uint32_t lane, rp_event call,
                                  struct rp_err *err)
{
    int64_t end = rp_event_end_ns(s->b->t, call);
    uint32_t item = rp_sg_item_before(s->b, end);

    if (item == RP_SG_NO_ITEM || s->b->work->items.at[item].launch != call)
        return wait_for_queue(s, lane, call, err);
    return cut(s, lane, call, item, 0, err);
}

/* Returns the first busy time of a thread that ends after a moment. */
static size_t busy_after(const struct rp_sg_builder *b, uint32_t lane, int64_t ns)
{
    const struct rp_sg_thread *thread = &b->threads.at[lane];
    size_t low;

    RP_LOWER_BOUND_FROM(low, thread->first_busy, thread->end_busy, b->busy.at[low].end_ns <= ns);
    return low;
}

/* Waits for the work that ended last inside the function, unless the thread was then active; it
   waited since it was last active. */
static enum rp_code wait_for_result(struct sync_ctx *s, uint32_t lane, rp_event call,
                                    struct rp_err *err)
{
    const struct rp_sg_builder *b = s->b;
    uint32_t item = rp_sg_item_before(b, rp_event_end_ns(b->t, call));
    struct rp_sg_cut c = {.from_ns = b->t->ev.ts_ns[call],
                          .lane = lane,
                          .item = item,
                          .other = RP_SG_NO_LANE,
                          .kind = RP_SG_SYNC,
                          .flags = RP_SG_INFERRED};

    if (item == RP_SG_NO_ITEM || b->work->items.at[item].end_ns <= c.from_ns)
        return RP_OK;
    c.at_ns = b->work->items.at[item].end_ns;
    size_t next = busy_after(b, lane, c.at_ns);
    if (next < b->threads.at[lane].end_busy && b->busy.at[next].begin_ns < c.at_ns)
        return RP_OK;
    if (next > b->threads.at[lane].first_busy && b->busy.at[next - 1].end_ns > c.from_ns)
        c.from_ns = b->busy.at[next - 1].end_ns;
    return rp_vec_push(&s->b->cuts, c, err);
}

static enum rp_code look_at(struct sync_ctx *s, uint32_t lane, rp_event e, struct rp_err *err)
{
    if (s->b->t->ev.kind[e] != RP_KIND_RUNTIME)
        return wait_of(s, e) == WAIT_RESULT ? wait_for_result(s, lane, e, err) : RP_OK;
    switch (wait_of(s, e)) {
    case WAIT_DEVICE:
        return wait_for_all(s, lane, e, err);
    case WAIT_SOME:
        return wait_for_some(s, lane, e, err);
    case WAIT_COPY:
        return wait_for_copy(s, lane, e, err);
    case WAIT_QUEUE:
        return wait_for_queue(s, lane, e, err);
    default:
        return RP_OK;
    }
}

/* ------------------------------------------------------------------ waits that were not recorded
 */

/* Finds the item that ends last of those that begin before a moment. Moments come in order. */
struct last_item {
    size_t next;   /* the next item to look at */
    uint32_t item; /* or RP_SG_NO_ITEM */
};

/* Whether a thread is quiet before its busy time i; *item is the work whose end ended that, or
   RP_SG_NO_ITEM. */
static bool is_quiet(const struct rp_sg_builder *b, size_t i, struct last_item *last,
                     uint32_t *item)
{
    int64_t from = b->busy.at[i - 1].end_ns, to = b->busy.at[i].begin_ns, end;

    *item = RP_SG_NO_ITEM;
    if (rp_ns_between(from, to) < QUIET_NS)
        return false;

    const struct rp_work_item *items = b->work->items.at;
    for (; last->next < b->work->items.n && items[last->next].begin_ns < to; last->next++)
        if (last->item == RP_SG_NO_ITEM || items[last->next].end_ns >= items[last->item].end_ns)
            last->item = (uint32_t)last->next;
    end = last->item == RP_SG_NO_ITEM ? INT64_MIN : b->work->items.at[last->item].end_ns;
    if (end > from && rp_ns_between(end, to) <= RP_SG_SOON_NS &&
        rp_ns_between(to, end) <= RP_SG_SOON_NS) /* clocks of the device are not exact */
        *item = last->item;
    return true;
}

/* Whether a thread waits for the device without a call. */
static bool waits_silently(const struct rp_sg_builder *b, const struct rp_sg_thread *thread)
{
    struct last_item last = {0, RP_SG_NO_ITEM};
    size_t i, quiet = 0, ended = 0;
    uint32_t item;

    for (i = thread->first_busy + 1; i < thread->end_busy; i++) {
        quiet += is_quiet(b, i, &last, &item);
        ended += item != RP_SG_NO_ITEM;
    }
    return ended >= LEAST_QUIET && (double)ended >= NEARLY_EACH * (double)quiet;
}

/* Cuts a thread that waited for an item before its busy time i without a call. */
static enum rp_code cut_quiet(struct rp_sg_builder *b, uint32_t lane, size_t i, uint32_t item,
                              struct rp_err *err)
{
    int64_t end = b->work->items.at[item].end_ns, to = b->busy.at[i].begin_ns;
    struct rp_sg_cut c = {.from_ns = b->busy.at[i - 1].end_ns,
                          .at_ns = end < to ? end : to,
                          .lane = lane,
                          .item = item,
                          .other = RP_SG_NO_LANE,
                          .kind = RP_SG_SYNC,
                          .flags = RP_SG_INFERRED};

    return rp_vec_push(&b->cuts, c, err);
}

/* ------------------------------------------------------------------ waits inside operators */

static uint32_t launcher_of(const struct rp_sg_builder *b, size_t item)
{
    rp_event launch = b->work->items.at[item].launch;

    return launch == RP_NONE ? RP_SG_NO_LANE : b->thread_of_track.at[b->t->ev.track[launch]];
}

/* How often operators of a name are quiet after a launch, and go on when its work is over. */
struct polls {
    RP_VEC(uint32_t) quiet, ended; /* by string */
};

/* Whether a thread is quiet after it launched an item, inside the operator that did; then *waits
   says whether it goes on when the item is over, or nearly. */
static bool is_quiet_inside(const struct rp_sg_builder *b, uint32_t lane, uint32_t item,
                            struct rp_sg_cut *out, bool *waits)
{
    const struct rp_trace *t = b->t;
    const struct rp_work_item *w = &b->work->items.at[item];
    const struct rp_sg_thread *thread = &b->threads.at[lane];
    rp_event parent = t->ev.parent[w->launch];
    int64_t from = rp_event_end_ns(t, w->launch);
    size_t next;

    if (parent == RP_NONE)
        return false;
    int64_t to = rp_event_end_ns(t, parent);
    RP_LOWER_BOUND_FROM(next, thread->first_span, thread->end_span,
                        t->ev.ts_ns[b->spans.at[next]] < from);
    if (next < thread->end_span && t->ev.ts_ns[b->spans.at[next]] < to)
        to = t->ev.ts_ns[b->spans.at[next]];
    int64_t quiet = rp_ns_between(from, to);
    if (to <= from || quiet < QUIET_NS)
        return false;
    *waits = w->end_ns > from && w->begin_ns < to &&
             rp_ns_between(w->end_ns, to) <= RP_SG_SOON_NS &&
             (double)rp_ns_between(to, w->end_ns) <= RP_SG_SOON_NS + NEARLY_OVER * (double)quiet;
    *out = (struct rp_sg_cut){
        .from_ns = from,
        .at_ns = w->end_ns < to ? w->end_ns : to,
        .lane = lane,
        .item = item,
        .other = RP_SG_NO_LANE,
        .kind = RP_SG_SYNC,
        .flags = (uint8_t)(RP_SG_INFERRED | (w->end_ns > to ? RP_SG_FROM_START : 0))};
    return true;
}

/* Counts such waits, or, once they are counted, cuts operators that nearly each time wait. */
static enum rp_code walk_polls(struct rp_sg_builder *b, struct polls *p, bool cutting,
                               struct rp_err *err)
{
    for (uint32_t i = 0; i < b->work->items.n; i++) {
        uint32_t lane = launcher_of(b, i);
        struct rp_sg_cut c;
        bool waits;

        if (lane == RP_SG_NO_LANE || !is_quiet_inside(b, lane, i, &c, &waits))
            continue;
        uint32_t name = b->t->ev.name[b->t->ev.parent[b->work->items.at[i].launch]];
        if (!cutting) {
            p->quiet.at[name]++;
            p->ended.at[name] += waits;
        } else if (waits && p->ended.at[name] >= LEAST_QUIET &&
                   p->ended.at[name] >= NEARLY_EACH * p->quiet.at[name])
            RP_TRY(rp_vec_push(&b->cuts, c, err));
    }
    return RP_OK;
}

static enum rp_code find_polls(struct rp_sg_builder *b, struct rp_err *err)
{
    struct polls p = {0};
    enum rp_code code = rp_vec_zeros(&p.quiet, b->t->str.n, err);

    if (code == RP_OK)
        code = rp_vec_zeros(&p.ended, b->t->str.n, err);
    if (code == RP_OK)
        code = walk_polls(b, &p, false, err);
    if (code == RP_OK)
        code = walk_polls(b, &p, true, err);
    RP_EACH(rp_vec_release, &p.quiet, &p.ended);
    return code;
}

/* ------------------------------------------------------------------ waits for results */

/* The work that each thread launched, in order of its begin. */
struct launched_work {
    RP_VEC(uint32_t) items; /* thread by thread */
    RP_VEC(size_t) end;     /* by thread: the end of its items */
};

static enum rp_code list_launched(const struct rp_sg_builder *b, struct launched_work *out,
                                  struct rp_err *err)
{
    size_t i, lane, sum = 0;

    RP_TRY(rp_vec_reserve(&out->items, b->work->items.n + 1, err));
    RP_TRY(rp_vec_zeros(&out->end, b->threads.n, err));
    for (i = 0; i < b->work->items.n; i++)
        if ((lane = launcher_of(b, i)) != RP_SG_NO_LANE)
            out->end.at[lane]++;
    for (lane = 0; lane < b->threads.n; lane++) {
        size_t n = out->end.at[lane];

        out->end.at[lane] = sum; /* it is the begin until it is filled */
        sum += n;
    }
    for (i = 0; i < b->work->items.n; i++)
        if ((lane = launcher_of(b, i)) != RP_SG_NO_LANE)
            out->items.at[out->end.at[lane]++] = (uint32_t)i;
    return RP_OK;
}

/* A walk over the times between the busy ones of a thread. */
struct result_walk {
    const struct rp_sg_builder *b;
    const struct launched_work *work;
    uint32_t lane;
    size_t next;   /* the next item of the thread to look at */
    uint32_t item; /* of the earlier items the one that ends last, or RP_SG_NO_ITEM */
};

static struct result_walk walk_from(const struct rp_sg_builder *b, const struct launched_work *work,
                                    uint32_t lane)
{
    return (struct result_walk){.b = b,
                                .work = work,
                                .lane = lane,
                                .next = lane ? work->end.at[lane - 1] : 0,
                                .item = RP_SG_NO_ITEM};
}

/* Whether a span of the thread begins between two moments. */
static bool begins_something(const struct result_walk *w, int64_t from_ns, int64_t to_ns)
{
    const struct rp_sg_builder *b = w->b;
    size_t low, end = b->threads.at[w->lane].end_span;

    RP_LOWER_BOUND_FROM(low, b->threads.at[w->lane].first_span, end,
                        b->t->ev.ts_ns[b->spans.at[low]] < from_ns);
    return low < end && b->t->ev.ts_ns[b->spans.at[low]] < to_ns;
}

/* Whether a thread is quiet before its busy time i while the device does the work that it launched,
   and whether all of that is done before it resumes. */
static bool is_quiet_for_result(struct result_walk *w, size_t i, bool *done)
{
    const struct rp_sg_builder *b = w->b;
    const struct rp_work_item *items = b->work->items.at;
    int64_t from = b->busy.at[i - 1].end_ns, to = b->busy.at[i].begin_ns, end;
    const uint32_t *own = w->work->items.at;

    *done = false;
    for (; w->next < w->work->end.at[w->lane] && items[own[w->next]].begin_ns < to; w->next++)
        if (w->item == RP_SG_NO_ITEM || items[own[w->next]].end_ns >= items[w->item].end_ns)
            w->item = own[w->next];
    end = w->item == RP_SG_NO_ITEM ? INT64_MIN : items[w->item].end_ns;
    if (rp_ns_between(from, to) < QUIET_NS || end <= from)
        return false;
    *done =
        end <= to && (double)rp_ns_between(from, end) >= WORKED * (double)rp_ns_between(from, to) &&
        !begins_something(w, from, end) &&
        (w->next == w->work->end.at[w->lane] || b->t->ev.ts_ns[items[own[w->next]].launch] >= to);
    return true;
}

static enum rp_code cut_results(struct rp_sg_builder *b, const struct launched_work *work,
                                uint32_t lane, struct rp_err *err)
{
    const struct rp_sg_thread *thread = &b->threads.at[lane];
    struct result_walk w = walk_from(b, work, lane);
    size_t i, quiet = 0, ended = 0;
    bool done;

    for (i = thread->first_busy + 1; i < thread->end_busy; i++) {
        quiet += is_quiet_for_result(&w, i, &done);
        ended += done;
    }
    if (ended < LEAST_QUIET || (double)ended < NEARLY_EACH * (double)quiet)
        return RP_OK;
    w = walk_from(b, work, lane);
    for (i = thread->first_busy + 1; i < thread->end_busy; i++) {
        is_quiet_for_result(&w, i, &done);
        if (done)
            RP_TRY(cut_quiet(b, lane, i, w.item, err));
    }
    return RP_OK;
}

static enum rp_code note_launches(struct sync_ctx *s, struct rp_err *err)
{
    const struct rp_work *work = s->b->work;

    RP_TRY(rp_vec_reserve(&s->launched_ns, work->items.n + 1, err));
    for (size_t i = 0; i < work->items.n; i++) {
        rp_event launch = work->items.at[i].launch;

        s->launched_ns.at[s->launched_ns.n++] =
            launch == RP_NONE ? INT64_MIN : s->b->t->ev.ts_ns[launch];
    }
    rp_ns_sort(s->launched_ns.at, s->launched_ns.n);
    return RP_OK;
}

static enum rp_code find_syncs(struct sync_ctx *s, struct rp_err *err)
{
    struct rp_sg_builder *b = s->b;

    RP_TRY(rp_sg_waits_init(&s->waits, b->work, err));
    RP_TRY(rp_vec_zeros(&s->wait_of, b->t->str.n, err));
    RP_TRY(note_launches(s, err));
    for (uint32_t lane = 0; lane < b->threads.n; lane++)
        for (size_t i = b->threads.at[lane].first_span; i < b->threads.at[lane].end_span; i++)
            RP_TRY(look_at(s, lane, b->spans.at[i], err));
    for (uint32_t lane = 0; lane < b->threads.n; lane++) {
        const struct rp_sg_thread *thread = &b->threads.at[lane];
        struct last_item last = {0, RP_SG_NO_ITEM};
        uint32_t item;

        if (!waits_silently(b, thread))
            continue;
        for (size_t i = thread->first_busy + 1; i < thread->end_busy; i++) {
            is_quiet(b, i, &last, &item);
            if (item != RP_SG_NO_ITEM)
                RP_TRY(cut_quiet(b, lane, i, item, err));
        }
    }
    RP_TRY(find_polls(b, err));

    struct launched_work work = {0};
    struct rp_workload workload;
    enum rp_code code = rp_workload_find(b->t, &workload, err);
    if (code != RP_OK ||
        (workload.framework != RP_FRAMEWORK_JAX && workload.framework != RP_FRAMEWORK_TENSORFLOW))
        return code;
    code = list_launched(b, &work, err);
    for (uint32_t lane = 0; code == RP_OK && lane < b->threads.n; lane++)
        code = cut_results(b, &work, lane, err);
    RP_EACH(rp_vec_release, &work.items, &work.end);
    return code;
}

enum rp_code rp_sg_cut_syncs(struct rp_sg_builder *b, struct rp_err *err)
{
    struct sync_ctx s = {.b = b};

    if (!b->work->items.n)
        return RP_OK;
    enum rp_code code = find_syncs(&s, err);
    rp_sg_waits_release(&s.waits);
    RP_EACH(rp_vec_release, &s.wait_of, &s.launched_ns);
    return code;
}
