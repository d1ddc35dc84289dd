/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the long host calls of one rank with what was recorded about each: the step, the thread,
 * what else ran at that time. A cause is given only if the trace shows it; the causes are tried in
 * the order of their table. Linear in events, then for each long call a few searches and one lookup
 * in every thread.
 */
#include "explain/stalls/stalls.h"

#include "base/decides.h"
#include "base/filled.h"
#include "base/order.h"
#include "explain/findings/finding.h"
#include "explain/idle/sampled.h"
#include "facts/host/outside.h"
#include "facts/host/processors.h"
#include "facts/host/signs.h"
#include "facts/work/attribution.h"
#include "facts/work/call_work.h"
#include "facts/work/launches.h"

#define QUEUE_NEARLY_FULL 1000
RP_DECISION(QUEUE_NEARLY_FULL, "launches",
            "of 1,024 that a stream takes: some in the queue are not recorded",
            "explain/a_full_queue_holds_launches");
#define AS_LONG 0.8
RP_DECISION(AS_LONG, "of the call",
            "a call of another thread that holds the lock lasts as long as the wait",
            "explain/another_thread_may_hold_the_driver");

const char *const rp_stall_cause_names[RP_STALL_CAUSES] = {
#define CAUSE_NAME(name, text, doc, hint) text,
    RP_STALL_CAUSE_MAP(CAUSE_NAME)
#undef CAUSE_NAME
};

/* ------------------------------------------------------------------ what was recorded */

/* How long the thread of a call was ready without a processor: at least, and at most. */
struct ready_in {
    int64_t self_ns, least_ns, most_ns;
    uint32_t call;
    bool stall; /* as far as this rank tells */
};

struct stall_ctx {
    const struct rp_trace *t;
    struct rp_arena *arena;
    struct rp_stalls_part *out;
    struct rp_work w;
    struct rp_work_unions u;
    struct rp_queues q;
    struct rp_call_work sizes;
    rp_interval_vec overhead;
    struct rp_processors processors;
    RP_VEC(struct ready_in) ready; /* by call of the list */
    RP_VEC(uint32_t) item;         /* by event: the item that it launched, or RP_NONE */
    RP_VEC(int64_t) first_call;    /* by string: the first start */
    RP_VEC(int64_t) first_kernel;  /* by string: the first launch of a kernel of that name */
};

static const char *trace_text(const struct stall_ctx *ctx, rp_str s)
{
    return rp_arena_text(ctx->arena, rp_trace_str(ctx->t, s));
}

static enum rp_code note_first_uses(struct stall_ctx *ctx, struct rp_err *err)
{
    const struct rp_events *ev = &ctx->t->ev;

    RP_TRY(rp_vec_reserve(&ctx->first_call, ctx->t->str.n + 1, err));
    RP_TRY(rp_vec_reserve(&ctx->first_kernel, ctx->t->str.n + 1, err));
    RP_TRY(rp_vec_nones(&ctx->item, ev->n, err));
    for (size_t i = 0; i < ctx->t->str.n; i++)
        ctx->first_call.at[i] = ctx->first_kernel.at[i] = INT64_MAX;
    for (rp_event e = 0; e < ev->n; e++) {
        struct rp_interval span = {ev->ts_ns[e], rp_event_end_ns(ctx->t, e)};

        if (span.begin_ns == RP_NO_TS)
            continue;
        if (span.begin_ns < ctx->first_call.at[ev->name[e]])
            ctx->first_call.at[ev->name[e]] = span.begin_ns;
        if (ev->kind[e] == RP_KIND_OVERHEAD && ev->dur_ns[e] > 0)
            RP_TRY(rp_vec_push(&ctx->overhead, span, err));
    }
    ctx->overhead.n = rp_union_sort(ctx->overhead.at, ctx->overhead.n);
    for (size_t i = 0; i < ctx->q.list.n; i++) {
        const struct rp_launch *launch = &ctx->q.list.at[i];
        int64_t *first = &ctx->first_kernel.at[ev->name[ctx->w.items.at[launch->item].event]];

        ctx->item.at[launch->call] = launch->item;
        if (ev->ts_ns[launch->call] < *first)
            *first = ev->ts_ns[launch->call];
    }
    return RP_OK;
}

/* How long the device does nothing in a time that lies inside the steps, or inside the range of its
   work if that is longer. */
static int64_t device_idle_in(const struct stall_ctx *ctx, int64_t begin_ns, int64_t end_ns)
{
    const rp_interval_vec *all = &ctx->u.all;
    const struct rp_trace *t = ctx->t;

    if (!all->n)
        return 0;
    struct rp_interval judged = {all->at[0].begin_ns, all->at[all->n - 1].end_ns};
    if (t->nsteps && t->steps[0].begin_ns < judged.begin_ns)
        judged.begin_ns = t->steps[0].begin_ns;
    if (t->nsteps && t->steps[t->nsteps - 1].end_ns > judged.end_ns)
        judged.end_ns = t->steps[t->nsteps - 1].end_ns;
    begin_ns = begin_ns > judged.begin_ns ? begin_ns : judged.begin_ns;
    end_ns = end_ns < judged.end_ns ? end_ns : judged.end_ns;
    if (end_ns <= begin_ns)
        return 0;
    return rp_ns_between(rp_union_covers(all->at, all->n, begin_ns, end_ns),
                         rp_ns_between(begin_ns, end_ns));
}

/* The same for a call without the spans directly inside it. Notes an allocation among those. */
static int64_t own_device_idle(const struct stall_ctx *ctx, rp_event e, bool *allocates)
{
    const struct rp_events *ev = &ctx->t->ev;
    int64_t until = rp_event_end_ns(ctx->t, e), idle = device_idle_in(ctx, ev->ts_ns[e], until);
    rp_event c, end = ctx->t->tracks[ev->track[e]].end;

    for (c = e + 1; c < end && ev->ts_ns[c] < until; c++) {
        const char *name = rp_trace_str(ctx->t, ev->name[c]);

        if (ev->parent[c] != e || ev->dur_ns[c] <= 0)
            continue;
        idle = rp_ns_between(device_idle_in(ctx, ev->ts_ns[c], rp_event_end_ns(ctx->t, c)), idle);
        *allocates |= ev->kind[c] == RP_KIND_RUNTIME && (rp_host_signs(name) & RP_SIGN_ALLOCATES);
    }
    return idle > 0 ? idle : 0;
}

/* Whether names show the cause: that of the call, and for some causes those around it. */
static bool cause_by_name(const struct stall_ctx *ctx, rp_event call, uint8_t *cause,
                          rp_event *during)
{
    static const struct {
        uint8_t sign, cause;
        bool around;
    } rules[] = {{RP_SIGN_DATA, RP_STALL_DATA_LOADER, true},
                 {RP_SIGN_RANKS, RP_STALL_OTHER_RANK, true},
                 {RP_SIGN_ALLOCATES, RP_STALL_ALLOCATION, false},
                 {RP_SIGN_GARBAGE, RP_STALL_GARBAGE, true}};

    for (rp_event e = call; e != RP_NONE; e = ctx->t->ev.parent[e]) {
        uint16_t signs = rp_host_signs(rp_trace_str(ctx->t, ctx->t->ev.name[e]));

        for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
            if ((signs & rules[i].sign) && (e == call || rules[i].around)) {
                *cause = rules[i].cause;
                *during = e;
                return true;
            }
    }
    return false;
}

static bool queue_is_full(const struct stall_ctx *ctx, rp_event call)
{
    uint32_t item = ctx->item.at[call];

    return item != RP_NONE && rp_queue_length(&ctx->q, ctx->w.items.at[item].stream,
                                              ctx->t->ev.ts_ns[call]) >= QUEUE_NEARLY_FULL;
}

static bool is_first_use(const struct stall_ctx *ctx, rp_event call)
{
    int64_t ts = ctx->t->ev.ts_ns[call];
    uint32_t item = ctx->item.at[call];

    if (ctx->first_call.at[ctx->t->ev.name[call]] == ts)
        return true;
    return item != RP_NONE && ctx->t->ev.kind[ctx->w.items.at[item].event] == RP_KIND_KERNEL &&
           ctx->first_kernel.at[ctx->t->ev.name[ctx->w.items.at[item].event]] == ts;
}

/* A runtime call of another thread that lasts as long as this one, or RP_NONE. */
static rp_event lock_holder(const struct stall_ctx *ctx, rp_event call)
{
    const struct rp_events *ev = &ctx->t->ev;
    int64_t begin = ev->ts_ns[call], end = rp_event_end_ns(ctx->t, call);

    if (ev->kind[call] != RP_KIND_RUNTIME)
        return RP_NONE;
    for (rp_track track = 0; track < ctx->t->ntracks; track++) {
        if (track == ev->track[call] || ctx->t->tracks[track].kind != RP_TRACK_THREAD)
            continue;
        rp_event e = rp_event_at(ctx->t, track, rp_ns_sum(begin, rp_ns_between(begin, end) / 2));
        if (e != RP_NONE && ev->kind[e] == RP_KIND_RUNTIME &&
            (double)rp_ns_common(ev->ts_ns[e], rp_event_end_ns(ctx->t, e), begin, end) >
                AS_LONG * (double)rp_ns_between(begin, end))
            return e;
    }
    return RP_NONE;
}

RP_ORDER(by_self, struct ready_in, RP_DOWN(stall), RP_DOWN(self_ns), RP_UP(call))
RP_ORDER(by_call, struct ready_in, RP_UP(call))

static enum rp_code list_ready(struct stall_ctx *ctx, struct rp_err *err)
{
    const struct rp_host_calls *const calls[] = {&ctx->out->calls};
    struct rp_call_names names;

    RP_TRY(rp_processors_find(ctx->t, &ctx->processors, err));
    RP_TRY(rp_call_names_join(calls, 1, ctx->arena, &names, err));
    for (uint32_t i = 0; i < calls[0]->slow.n; i++) {
        const struct rp_slow_call *slow = &calls[0]->slow.at[i];
        const struct rp_call_name *name = &names.at[names.to[0][slow->name]];

        RP_TRY(rp_vec_push(
            &ctx->ready,
            ((struct ready_in){.self_ns = slow->self_ns,
                               .call = i,
                               .stall = rp_is_stall(name, slow->self_ns, &rp_stall_usual)}),
            err));
    }
    rp_sort(ctx->ready.at, ctx->ready.n, sizeof *ctx->ready.at, by_self);
    return RP_OK;
}

/* What the kernel counted in a tenth of a second is more than one call's. So much as does not fit
   beside the call is its own at least; at most it is what longer stalls leave. */
static void share_ready(struct stall_ctx *ctx)
{
    for (size_t i = 0; i < ctx->ready.n; i++) {
        struct ready_in *to = &ctx->ready.at[i];
        rp_event e = ctx->out->calls.slow.at[to->call].event;
        int64_t begin = ctx->t->ev.ts_ns[e], end = rp_event_end_ns(ctx->t, e);
        size_t k = rp_ready_first(&ctx->processors, ctx->t->ev.track[e], begin);

        for (; k < ctx->processors.ready.n; k++) {
            struct rp_ready *r = &ctx->processors.ready.at[k];
            int64_t inside = rp_ns_common(begin, end, r->begin_ns, r->end_ns);
            int64_t beside = rp_ns_between(inside, rp_ns_between(r->begin_ns, r->end_ns));
            int64_t most = inside < r->ready_ns ? inside : r->ready_ns;

            if (r->thread != ctx->t->ev.track[e] || !inside)
                break;
            most = most < to->self_ns - to->most_ns ? most : to->self_ns - to->most_ns;
            rp_ns_add(&to->least_ns, r->ready_ns > beside ? r->ready_ns - beside : 0);
            to->most_ns += most;
            r->ready_ns -= most;
        }
    }
    rp_sort(ctx->ready.at, ctx->ready.n, sizeof *ctx->ready.at, by_call);
}

static enum rp_code find_cause(struct stall_ctx *ctx, rp_event call, bool allocates,
                               const struct ready_in *ready, uint8_t *cause, rp_event *during,
                               struct rp_err *err)
{
    int64_t begin = ctx->t->ev.ts_ns[call], end = rp_event_end_ns(ctx->t, call);
    bool larger = false;

    if (rp_union_covers(ctx->overhead.at, ctx->overhead.n, begin, end) >
        rp_ns_between(begin, end) / 2)
        *cause = RP_STALL_PROFILER;
    else if (queue_is_full(ctx, call))
        *cause = RP_STALL_QUEUE_FULL;
    else if (rp_call_waits_for_result(ctx->t, call, &ctx->u.all))
        *cause = RP_STALL_RESULT_WAIT;
    else if (rp_call_waits_for_copy(ctx->t, call))
        *cause = RP_STALL_COPY_WAIT;
    else if (ready->least_ns > ready->self_ns / 2)
        *cause = RP_STALL_NO_PROCESSOR;
    else if (cause_by_name(ctx, call, cause, during))
        return RP_OK;
    else if (allocates)
        *cause = RP_STALL_ALLOCATION;
    else
        RP_TRY(rp_call_has_more_work(&ctx->sizes, call, &larger, err));
    if (larger)
        *cause = RP_STALL_LARGER_INPUT;
    else if (*cause == RP_STALL_UNKNOWN && ready->most_ns > ready->self_ns / 2)
        *cause = RP_STALL_NO_PROCESSOR;
    else if (*cause == RP_STALL_UNKNOWN && is_first_use(ctx, call))
        *cause = RP_STALL_FIRST_USE;
    else if (*cause == RP_STALL_UNKNOWN && (*during = lock_holder(ctx, call)) != RP_NONE)
        *cause = RP_STALL_LOCK;
    return RP_OK;
}

static const char *kind_text(uint8_t kind)
{
    static const char *const texts[RP_KIND_COUNT] = {
        [RP_KIND_CPU_OP] = "operator",    [RP_KIND_ANNOTATION] = "annotation",
        [RP_KIND_RUNTIME] = "runtime",    [RP_KIND_PYTHON] = "python",
        [RP_KIND_COMM_OP] = "collective", [RP_KIND_WAIT] = "wait"};

    return texts[kind] ? texts[kind] : "span";
}

static int64_t step_number(const struct rp_trace *t, int64_t at_ns)
{
    for (uint32_t i = 0; i < t->nsteps; i++)
        if (at_ns >= t->steps[i].begin_ns && at_ns < t->steps[i].end_ns)
            return t->steps[i].number;
    return RP_ABSENT_I64;
}

static const char *thread_text(const struct stall_ctx *ctx, rp_event e)
{
    const struct rp_track_info *track = &ctx->t->tracks[ctx->t->ev.track[e]];

    return track->text ? trace_text(ctx, track->text)
                       : rp_arena_textf(ctx->arena, "%lld", (long long)track->native_id);
}

static enum rp_code describe_call(struct stall_ctx *ctx, const struct ready_in *ready,
                                  struct rp_stall *out, struct rp_err *err)
{
    const struct rp_slow_call *slow = &ctx->out->calls.slow.at[ready->call];
    const struct rp_events *ev = &ctx->t->ev;
    rp_event e = slow->event, during = RP_NONE;
    bool allocates = false;
    int64_t idle = own_device_idle(ctx, e, &allocates);

    *out = (struct rp_stall){.step = step_number(ctx->t, ev->ts_ns[e]),
                             .thread = thread_text(ctx, e),
                             .name = trace_text(ctx, ev->name[e]),
                             .kind = kind_text(ev->kind[e]),
                             .begin_ns = ev->ts_ns[e],
                             .dur_ns = ev->dur_ns[e],
                             .self_ns = slow->self_ns,
                             .device_idle_ns = ctx->out->on_device ? idle : RP_ABSENT_I64,
                             .ready_ns = ctx->processors.ready.n ? ready->most_ns : RP_ABSENT_I64,
                             .group = slow->name,
                             .why = RP_STALL_UNKNOWN};
    RP_TRY(find_cause(ctx, e, allocates, ready, &out->why, &during, err));
    if (during != RP_NONE && during != e)
        out->during = trace_text(ctx, ev->name[during]);

    /* Find where the thread was meanwhile, by samples of its stack. */
    const struct rp_sampled_place *place = NULL;
    struct rp_sampled sampled;
    enum rp_code code = rp_sampled_init(&sampled, ctx->t, err);
    if (code == RP_OK)
        code = rp_sampled_add(&sampled, 0, ctx->t->ev.track[e], ctx->t->ev.ts_ns[e],
                              rp_event_end_ns(ctx->t, e), err);
    if (code == RP_OK)
        place = rp_sampled_main(&sampled, 0);
    if (place)
        out->sampled =
            rp_arena_textf(ctx->arena, "%s%s", rp_sampled_text(&sampled, place, false, ctx->arena),
                           rp_sampled_gil(&sampled, place, ctx->arena));
    rp_sampled_release(&sampled);
    return code;
}

static enum rp_code list_calls(struct stall_ctx *ctx, const struct rp_scope *scope,
                               int64_t floor_ns, struct rp_err *err)
{
    struct rp_stalls_part *out = ctx->out;
    struct rp_judged judged;

    RP_TRY(rp_host_calls_init(&out->calls, ctx->t, scope, floor_ns, ctx->arena, err));
    RP_TRY(rp_judged_find(ctx->t, scope, ctx->arena, &judged, err));
    out->judged = rp_judged_words(&judged);
    out->outside = rp_judged_text(&judged, ctx->arena);
    rp_judged_keep_calls(&judged, ctx->t, &out->calls);
    RP_TRY(rp_work_init(&ctx->w, ctx->t, NULL, err));
    RP_TRY(rp_work_unite(&ctx->w, &ctx->u, err));
    RP_TRY(rp_queues_init(&ctx->q, &ctx->w, err));
    RP_TRY(rp_call_work_init(&ctx->sizes, ctx->t, err));
    RP_TRY(note_first_uses(ctx, err));
    RP_TRY(list_ready(ctx, err));
    share_ready(ctx);
    out->on_device = ctx->w.items.n > 0;
    out->base_ns = ctx->t->has_base ? ctx->t->base_ns : 0;
    out->list = RP_ARENA_NEW(ctx->arena, struct rp_stall, out->calls.slow.n + 1);
    RP_TRY(rp_err_need(out->list, err, "listing host calls"));
    for (size_t i = 0; i < out->calls.slow.n; i++)
        RP_TRY(describe_call(ctx, &ctx->ready.at[i], &out->list[out->nlist++], err));
    return rp_arena_check(ctx->arena, "listing host calls", err);
}

/* Finds what report advises if device memory is allocated and freed call by call. */
static enum rp_code find_uncached(struct stall_ctx *ctx, struct rp_err *err)
{
    const struct rp_advice_row *advice[RP_ADVICE_MOST];
    struct rp_workload workload;
    size_t i;

    for (i = 0; i < ctx->out->nlist && ctx->out->list[i].why != RP_STALL_ALLOCATION; i++)
        ;
    if (i == ctx->out->nlist)
        return RP_OK;
    RP_TRY(rp_workload_find(ctx->t, &workload, err));
    if (workload.uncached &&
        rp_advice_find(&rp_finding_fragmentation,
                       rp_finding_kind(&rp_finding_fragmentation, "uncached"), &workload, advice))
        ctx->out->uncached = advice[0]->text;
    return RP_OK;
}

enum rp_code rp_stalls_list_calls(const struct rp_trace *trace, const struct rp_scope *scope,
                                  int64_t floor_ns, struct rp_arena *arena,
                                  struct rp_stalls_part *out, struct rp_err *err)
{
    struct stall_ctx ctx = {.t = trace, .arena = arena, .out = out};
    enum rp_code code = list_calls(&ctx, scope, floor_ns, err);

    if (code == RP_OK)
        code = find_uncached(&ctx, err);
    rp_work_release(&ctx.w);
    rp_work_unions_release(&ctx.u);
    rp_queues_release(&ctx.q);
    rp_call_work_release(&ctx.sizes);
    rp_vec_release(&ctx.overhead);
    rp_processors_release(&ctx.processors);
    rp_vec_release(&ctx.ready);
    rp_vec_release(&ctx.item);
    rp_vec_release(&ctx.first_call);
    rp_vec_release(&ctx.first_kernel);
    return code;
}
