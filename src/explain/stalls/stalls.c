/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank's long host calls and what was recorded about each: the step, the thread, what else ran
 * at that time. A cause is given only where the recording shows it; the causes are tried in the
 * order of their table. Linear in events, then for each long call a few searches and one look at
 * every thread.
 */
#include "explain/stalls/stalls.h"

#include "explain/stalls/inputs.h"
#include "facts/attribution.h"
#include "facts/host_signs.h"
#include "facts/launches.h"

#include <stdlib.h>

#define QUEUE_NEARLY_FULL 1000   /* of 1,024 launches: some wait that were not recorded */
#define COPY_SLACK_NS     200000 /* a call that waits for its copy returns so soon after it */

const char *const rp_stall_cause_names[RP_STALL_CAUSES] = {
#define CAUSE_NAME(name, text, doc, hint) text,
    RP_STALL_CAUSE_MAP(CAUSE_NAME)
#undef CAUSE_NAME
};
const char *const rp_stall_cause_docs[RP_STALL_CAUSES] = {
#define CAUSE_DOC(name, text, doc, hint) doc,
    RP_STALL_CAUSE_MAP(CAUSE_DOC)
#undef CAUSE_DOC
};
const char *const rp_stall_hints[RP_STALL_CAUSES] = {
#define CAUSE_HINT(name, text, doc, hint) hint,
    RP_STALL_CAUSE_MAP(CAUSE_HINT)
#undef CAUSE_HINT
};

struct looker {
    const struct rp_trace *t;
    struct rp_arena *arena;
    struct rp_stalls_part *out;
    struct rp_work w;
    struct rp_work_unions u;
    struct rp_queues q;
    struct rp_inputs inputs;
    rp_interval_vec overhead;
    RP_VEC(uint32_t) item;        /* by event: the work it launched, or RP_NONE */
    RP_VEC(int64_t) first_call;   /* by string: the first start */
    RP_VEC(int64_t) first_kernel; /* by string: the first launch of a kernel of that name */
    bool failed;
};

static const char *kept(struct looker *l, const char *made)
{
    l->failed |= !made;
    return made;
}

static const char *text(struct looker *l, rp_str s)
{
    return kept(l, rp_arena_copy(l->arena, rp_trace_str(l->t, s), rp_trace_str_len(l->t, s)));
}

static enum rp_code fill_firsts(struct looker *l, struct rp_err *err)
{
    const struct rp_events *ev = &l->t->ev;
    size_t i;
    rp_event e;

    RP_TRY(rp_vec_reserve(&l->first_call, l->t->str.n + 1, err));
    RP_TRY(rp_vec_reserve(&l->first_kernel, l->t->str.n + 1, err));
    RP_TRY(rp_vec_reserve(&l->item, ev->n + 1, err));
    for (i = 0; i < l->t->str.n; i++)
        l->first_call.at[i] = l->first_kernel.at[i] = INT64_MAX;
    memset(l->item.at, 0xff, (ev->n + 1) * sizeof *l->item.at);
    for (e = 0; e < ev->n; e++) {
        struct rp_interval span = {ev->ts_ns[e], rp_event_end_ns(l->t, e)};

        if (span.begin_ns == RP_NO_TS)
            continue;
        if (span.begin_ns < l->first_call.at[ev->name[e]])
            l->first_call.at[ev->name[e]] = span.begin_ns;
        if (ev->kind[e] == RP_KIND_OVERHEAD && ev->dur_ns[e] > 0)
            RP_TRY(rp_vec_push(&l->overhead, span, err));
    }
    l->overhead.n = rp_union_sort(l->overhead.at, l->overhead.n);
    for (i = 0; i < l->q.list.n; i++) {
        const struct rp_launch *launch = &l->q.list.at[i];
        int64_t *first = &l->first_kernel.at[ev->name[l->w.items.at[launch->item].event]];

        l->item.at[launch->call] = launch->item;
        if (ev->ts_ns[launch->call] < *first)
            *first = ev->ts_ns[launch->call];
    }
    return RP_OK;
}

/* How long the device does nothing in a time that lies between its first and last work. */
static int64_t idle_in(const struct looker *l, int64_t begin_ns, int64_t end_ns)
{
    const rp_interval_vec *all = &l->u.all;

    if (!all->n)
        return 0;
    if (begin_ns < all->at[0].begin_ns)
        begin_ns = all->at[0].begin_ns;
    if (end_ns > all->at[all->n - 1].end_ns)
        end_ns = all->at[all->n - 1].end_ns;
    if (end_ns <= begin_ns)
        return 0;
    return rp_ns_between(rp_union_covers(all->at, all->n, begin_ns, end_ns),
                         rp_ns_between(begin_ns, end_ns));
}

/* The same in a call without the spans directly inside it. Notes an allocation among those. */
static int64_t own_idle(const struct looker *l, rp_event e, bool *allocates)
{
    const struct rp_events *ev = &l->t->ev;
    int64_t until = rp_event_end_ns(l->t, e), idle = idle_in(l, ev->ts_ns[e], until);
    rp_event c, end = l->t->tracks[ev->track[e]].end;

    for (c = e + 1; c < end && ev->ts_ns[c] < until; c++) {
        const char *name = rp_trace_str(l->t, ev->name[c]);

        if (ev->parent[c] != e || ev->dur_ns[c] <= 0)
            continue;
        idle = rp_ns_between(idle_in(l, ev->ts_ns[c], rp_event_end_ns(l->t, c)), idle);
        *allocates |= ev->kind[c] == RP_KIND_RUNTIME && (rp_host_signs(name) & RP_SIGN_ALLOCATES);
    }
    return idle > 0 ? idle : 0;
}

/* What the names say: that of the call, and for some causes those around it. */
static bool by_name(const struct looker *l, rp_event call, uint8_t *cause, rp_event *during)
{
    static const struct {
        uint8_t sign, cause;
        bool around;
    } rules[] = {{RP_SIGN_DATA, RP_STALL_DATA_LOADER, true},
                 {RP_SIGN_RANKS, RP_STALL_OTHER_RANK, true},
                 {RP_SIGN_ALLOCATES, RP_STALL_ALLOCATION, false},
                 {RP_SIGN_GARBAGE, RP_STALL_GARBAGE, true}};
    rp_event e;
    size_t i;

    for (e = call; e != RP_NONE; e = l->t->ev.parent[e]) {
        uint8_t signs = rp_host_signs(rp_trace_str(l->t, l->t->ev.name[e]));

        for (i = 0; i < sizeof rules / sizeof rules[0]; i++)
            if ((signs & rules[i].sign) && (e == call || rules[i].around)) {
                *cause = rules[i].cause;
                *during = e;
                return true;
            }
    }
    return false;
}

static bool is_full(const struct looker *l, rp_event call)
{
    uint32_t item = l->item.at[call];

    return item != RP_NONE && rp_queue_length(&l->q, l->w.items.at[item].stream,
                                              l->t->ev.ts_ns[call]) >= QUEUE_NEARLY_FULL;
}

/* Whether the call returned when its copy had ended: then it waited for the device. */
static bool waits_for_copy(const struct looker *l, rp_event call)
{
    uint32_t item = l->item.at[call];
    const struct rp_work_item *x;
    int64_t end = rp_event_end_ns(l->t, call);

    if (item == RP_NONE)
        return false;
    x = &l->w.items.at[item];
    return l->t->ev.kind[x->event] == RP_KIND_MEMCPY && x->begin_ns >= l->t->ev.ts_ns[call] &&
           x->end_ns <= end && rp_ns_between(x->end_ns, end) < COPY_SLACK_NS;
}

static bool is_first(const struct looker *l, rp_event call)
{
    int64_t ts = l->t->ev.ts_ns[call];
    uint32_t item = l->item.at[call];

    if (l->first_call.at[l->t->ev.name[call]] == ts)
        return true;
    return item != RP_NONE && l->t->ev.kind[l->w.items.at[item].event] == RP_KIND_KERNEL &&
           l->first_kernel.at[l->t->ev.name[l->w.items.at[item].event]] == ts;
}

/* A runtime call of another thread that lasts as long as this one, or RP_NONE. */
static rp_event holder_of(const struct looker *l, rp_event call)
{
    const struct rp_events *ev = &l->t->ev;
    int64_t begin = ev->ts_ns[call], end = rp_event_end_ns(l->t, call);
    rp_track track;
    rp_event e;

    if (ev->kind[call] != RP_KIND_RUNTIME)
        return RP_NONE;
    for (track = 0; track < l->t->ntracks; track++) {
        if (track == ev->track[call] || l->t->tracks[track].kind != RP_TRACK_THREAD)
            continue;
        e = rp_event_at(l->t, track, rp_ns_sum(begin, rp_ns_between(begin, end) / 2));
        if (e != RP_NONE && ev->kind[e] == RP_KIND_RUNTIME &&
            rp_ns_common(ev->ts_ns[e], rp_event_end_ns(l->t, e), begin, end) / 4 >
                rp_ns_between(begin, end) / 5)
            return e;
    }
    return RP_NONE;
}

static uint8_t cause_of(struct looker *l, rp_event call, bool allocates, rp_event *during)
{
    int64_t begin = l->t->ev.ts_ns[call], end = rp_event_end_ns(l->t, call);
    bool larger = false;
    uint8_t cause;

    if (rp_union_covers(l->overhead.at, l->overhead.n, begin, end) > rp_ns_between(begin, end) / 2)
        return RP_STALL_PROFILER;
    if (is_full(l, call))
        return RP_STALL_QUEUE_FULL;
    if (waits_for_copy(l, call))
        return RP_STALL_COPY_WAIT;
    if (by_name(l, call, &cause, during))
        return cause;
    if (allocates)
        return RP_STALL_ALLOCATION;
    l->failed |= rp_inputs_are_larger(&l->inputs, call, &larger, NULL) != RP_OK;
    if (larger)
        return RP_STALL_LARGER_INPUT;
    if (is_first(l, call))
        return RP_STALL_FIRST_USE;
    *during = holder_of(l, call);
    return *during != RP_NONE ? RP_STALL_LOCK : RP_STALL_UNKNOWN;
}

static const char *kind_text(uint8_t kind)
{
    static const char *const texts[RP_KIND_COUNT] = {[RP_KIND_CPU_OP] = "operator",
                                                     [RP_KIND_ANNOTATION] = "annotation",
                                                     [RP_KIND_RUNTIME] = "runtime",
                                                     [RP_KIND_PYTHON] = "python",
                                                     [RP_KIND_COMM_OP] = "collective"};

    return texts[kind] ? texts[kind] : "span";
}

static int64_t step_of(const struct rp_trace *t, int64_t at_ns)
{
    uint32_t i;

    for (i = 0; i < t->nsteps; i++)
        if (at_ns >= t->steps[i].begin_ns && at_ns < t->steps[i].end_ns)
            return t->steps[i].number;
    return RP_ABSENT_I64;
}

static const char *thread_of(struct looker *l, rp_event e)
{
    const struct rp_track_info *track = &l->t->tracks[l->t->ev.track[e]];

    if (track->text)
        return text(l, track->text);
    return kept(l, rp_arena_printf(l->arena, "%lld", (long long)track->native_id));
}

static void look_at(struct looker *l, const struct rp_slow_call *slow, struct rp_stall *out)
{
    const struct rp_events *ev = &l->t->ev;
    rp_event e = slow->event, during = RP_NONE;
    bool allocates = false;
    int64_t idle = own_idle(l, e, &allocates);

    *out = (struct rp_stall){.step = step_of(l->t, ev->ts_ns[e]),
                             .thread = thread_of(l, e),
                             .name = text(l, ev->name[e]),
                             .kind = kind_text(ev->kind[e]),
                             .begin_ns = ev->ts_ns[e],
                             .dur_ns = ev->dur_ns[e],
                             .self_ns = slow->self_ns,
                             .device_idle_ns = l->out->on_device ? idle : RP_ABSENT_I64,
                             .group = slow->name};
    out->why = cause_of(l, e, allocates, &during);
    if (during != RP_NONE && during != e)
        out->during = text(l, ev->name[during]);
}

static enum rp_code look(struct looker *l, const struct rp_scope *scope, int64_t floor_ns,
                         struct rp_err *err)
{
    struct rp_stalls_part *out = l->out;
    size_t i;

    RP_TRY(rp_host_calls_init(&out->calls, l->t, scope, floor_ns, l->arena, err));
    RP_TRY(rp_work_init(&l->w, l->t, NULL, err));
    RP_TRY(rp_work_unite(&l->w, &l->u, err));
    RP_TRY(rp_queues_init(&l->q, &l->w, err));
    RP_TRY(rp_inputs_init(&l->inputs, l->t, err));
    RP_TRY(fill_firsts(l, err));
    out->on_device = l->w.items.n > 0;
    out->base_ns = l->t->has_base ? l->t->base_ns : 0;
    out->window_ns = rp_ns_between(l->t->totals.work_begin_ns, l->t->totals.work_end_ns);
    out->list = RP_ARENA_NEW(l->arena, struct rp_stall, out->calls.slow.n + 1);
    if (!out->list)
        return rp_err_nomem(err, "looking at host calls");
    for (i = 0; i < out->calls.slow.n && !l->failed; i++)
        look_at(l, &out->calls.slow.at[i], &out->list[i]);
    return l->failed ? rp_err_nomem(err, "looking at host calls") : RP_OK;
}

enum rp_code rp_stalls_rank(const struct rp_trace *trace, const struct rp_scope *scope,
                            int64_t floor_ns, struct rp_arena *arena, struct rp_stalls_part *out,
                            struct rp_err *err)
{
    struct looker l = {.t = trace, .arena = arena, .out = out};
    enum rp_code code;

    *out = (struct rp_stalls_part){0};
    code = look(&l, scope, floor_ns, err);
    rp_work_release(&l.w);
    rp_work_unions_release(&l.u);
    rp_queues_release(&l.q);
    rp_inputs_release(&l.inputs);
    rp_vec_release(&l.overhead);
    rp_vec_release(&l.item);
    rp_vec_release(&l.first_call);
    rp_vec_release(&l.first_kernel);
    return code;
}

void rp_stalls_part_release(struct rp_stalls_part *part)
{
    rp_host_calls_release(&part->calls);
}
