/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Low occupancy is counted by blocks: a kernel with fewer blocks than multiprocessors leaves some
 * empty, and could at best be that much shorter. Few warps alone are no fault: matrix products run
 * best so. A kernel after which the device waits for the host would bring nothing if it were
 * shorter, so it does not count.
 *
 * A device that lowers its clock makes all kernels slower, whatever they do: durations of kernels
 * with the same name and grid are compared between the first and the last third of their calls.
 */
#include "explain/report/device.h"

#include "base/hash.h"
#include "facts/arg_keys.h"
#include "trace/names.h"

#include <stdlib.h>

#define LEAST_NS     10000 /* shorter kernels are a matter of launching */
#define STEADY_NS    5000  /* and shorter ones than this of the clock's steps */
#define ENOUGH_CALLS 12
#define LOW_PERCENT  25.0 /* occupancy under which blocks are missing, where those are not known */
#define SLOWER       1.05

struct call {
    uint32_t kind;
    int64_t dur_ns;
};

struct looker {
    const struct rp_work *w;
    const struct rp_trace *t;
    struct rp_arena *arena;
    struct rp_report_device *out;
    struct rp_arg_key blocks, occupancy, grid;
    RP_VEC(uint8_t) starved; /* by item: the device waits for the host after it */
    RP_VEC(int64_t) lost;    /* by string */
    struct rp_map kinds;     /* name and grid -> kind */
    RP_VEC(struct call) calls;
    RP_VEC(int64_t) scratch;
};

/* An argument as a number of either kind; -1 where it has none. */
static double number(const struct rp_arg_key *key, rp_event e)
{
    struct rp_arg arg;

    if (!rp_arg_key_find(key, e, &arg))
        return -1;
    return arg.type == RP_ARG_I64 ? (double)arg.v.i : arg.type == RP_ARG_F64 ? arg.v.f : -1;
}

/* Which part of the device a kernel fills; 1 where nothing says less. */
static double fill_of(const struct looker *l, rp_event e)
{
    uint8_t cls = l->t->str.name_class[l->t->ev.name[e]];
    double blocks = number(&l->blocks, e), percent;

    if (blocks > 0)
        return blocks < 1 ? blocks : 1;
    percent = number(&l->occupancy, e);
    if (percent <= 0 || percent >= LOW_PERCENT || cls == RP_NAME_GEMM || cls == RP_NAME_CONV ||
        cls == RP_NAME_ATTENTION)
        return 1;
    return percent / LOW_PERCENT;
}

static enum rp_code mark_starved(struct looker *l, const rp_gap_vec *gaps, struct rp_err *err)
{
    size_t i;

    RP_TRY(rp_vec_reserve(&l->starved, l->w->items.n + 1, err));
    memset(l->starved.at, 0, l->w->items.n + 1);
    for (i = 0; i < gaps->n; i++)
        l->starved.at[gaps->at[i].before] |= gaps->at[i].cls == RP_GAP_CLASS_NOT_LAUNCHED;
    return RP_OK;
}

/* A part of a kernel beside others does not count: together they may fill the device. */
static void find_thin(struct looker *l)
{
    struct rp_report_device *out = l->out;
    int64_t until = INT64_MIN, most = 0;
    rp_str name, worst = RP_NONE;
    size_t i;

    for (i = 0; i < l->w->items.n; i++) {
        const struct rp_work_item *x = &l->w->items.at[i];
        int64_t from = x->begin_ns > until ? x->begin_ns : until;
        double fill = x->cls == RP_WORK_COMPUTE ? fill_of(l, x->event) : 1;
        int64_t lost;

        until = x->end_ns > until ? x->end_ns : until;
        if (fill >= 1 || l->starved.at[i] || rp_ns_between(x->begin_ns, x->end_ns) < LEAST_NS ||
            x->end_ns <= from)
            continue;
        lost = (int64_t)((1 - fill) * (double)rp_ns_between(from, x->end_ns));
        name = l->t->ev.name[x->event];
        out->thin_count++;
        rp_ns_add(&out->thin_ns, rp_ns_between(from, x->end_ns));
        rp_ns_add(&out->thin_lost_ns, lost);
        rp_ns_add(&l->lost.at[name], lost);
        if (l->lost.at[name] > most) {
            most = l->lost.at[name];
            worst = name;
        }
    }
    out->thin_name_lost_ns = most;
    out->thin_name = worst == RP_NONE ? NULL
                                      : rp_arena_copy(l->arena, rp_trace_str(l->t, worst),
                                                      rp_trace_str_len(l->t, worst));
}

static void find_early(struct looker *l)
{
    struct rp_report_device *out = l->out;
    size_t i;

    for (i = 0; i < l->w->items.n; i++) {
        const struct rp_work_item *x = &l->w->items.at[i];
        int64_t early;

        if (x->launch == RP_NONE)
            continue;
        early = rp_ns_between(x->begin_ns, l->t->ev.ts_ns[x->launch]);
        out->launched++;
        out->early_count += early > 0;
        out->early_most_ns = early > out->early_most_ns ? early : out->early_most_ns;
    }
}

static enum rp_code list_calls(struct looker *l, struct rp_err *err)
{
    size_t i;

    for (i = 0; i < l->w->items.n; i++) {
        const struct rp_work_item *x = &l->w->items.at[i];
        struct call call = {0, rp_ns_between(x->begin_ns, x->end_ns)};
        rp_str grid = 0;

        if (x->cls != RP_WORK_COMPUTE || call.dur_ns < STEADY_NS)
            continue;
        rp_arg_key_text(&l->grid, x->event, &grid);
        RP_TRY(rp_map_intern(&l->kinds, (uint64_t)l->t->ev.name[x->event] << 32 | grid,
                             (uint32_t)l->kinds.n, &call.kind, err));
        RP_TRY(rp_vec_push(&l->calls, call, err));
    }
    return RP_OK;
}

/* The median of n values from v, which are put in order in the scratch. */
static int64_t median(struct looker *l, const int64_t *v, size_t n)
{
    memcpy(l->scratch.at, v, n * sizeof *v);
    qsort(l->scratch.at, n, sizeof *l->scratch.at, rp_ns_order);
    return l->scratch.at[n / 2];
}

struct drift {
    double weight, slower_weight, ratios; /* time of kinds; of those that became slower */
    int64_t kinds, slower, excess_ns;
};

/* One kind: its durations in the order of time. */
static void add_kind(struct looker *l, const int64_t *v, size_t n, struct drift *d)
{
    size_t third = n / 3, i;
    int64_t first, last, total = 0, excess = 0;
    double ratio;

    if (n < ENOUGH_CALLS)
        return;
    first = median(l, v, third);
    last = median(l, v + n - third, third);
    ratio = first > 0 ? (double)last / (double)first : 1;
    for (i = 0; i < n; i++) {
        rp_ns_add(&total, v[i]);
        rp_ns_add(&excess, i >= third && v[i] > first ? rp_ns_between(first, v[i]) : 0);
    }
    d->kinds++;
    d->weight += (double)total;
    d->ratios += ratio * (double)total;
    if (ratio < SLOWER)
        return;
    d->slower++;
    d->slower_weight += (double)total;
    rp_ns_add(&d->excess_ns, excess);
}

static enum rp_code find_slowed(struct looker *l, struct rp_err *err)
{
    size_t i, n = l->calls.n, nkinds = l->kinds.n;
    uint32_t *begin = RP_ARENA_NEW(l->arena, uint32_t, nkinds + 2);
    uint32_t *at = RP_ARENA_NEW(l->arena, uint32_t, nkinds + 2);
    int64_t *v = RP_ARENA_NEW(l->arena, int64_t, n + 1), compute = 0;
    struct drift d = {0};

    RP_TRY(rp_vec_reserve(&l->scratch, n + 1, err));
    if (!begin || !at || !v)
        return rp_err_nomem(err, "comparing kernels");
    for (i = 0; i < n; i++) {
        begin[l->calls.at[i].kind + 1]++;
        rp_ns_add(&compute, l->calls.at[i].dur_ns);
    }
    for (i = 0; i < nkinds; i++)
        at[i + 1] = begin[i + 1] += begin[i];
    for (i = 0; i < n; i++)
        v[at[l->calls.at[i].kind]++] = l->calls.at[i].dur_ns;
    for (i = 0; i < nkinds; i++)
        add_kind(l, v + begin[i], begin[i + 1] - begin[i], &d);
    l->out->kinds = d.kinds;
    l->out->slowed_kinds = d.slower;
    l->out->slowed_ratio = d.weight > 0 ? d.ratios / d.weight : 1;
    /* nearly all of them, and most of the time is in kernels that can be compared */
    if (d.kinds >= 3 && d.slower_weight >= 0.8 * d.weight && d.weight >= 0.3 * (double)compute)
        l->out->slowed_ns = d.excess_ns;
    return RP_OK;
}

/* Of all devices: the moment with most reserved memory. Type 0 is the host. */
static enum rp_code find_memory(struct looker *l, struct rp_err *err)
{
    struct rp_arg_key reserved, allocated, type;
    enum rp_code code = rp_arg_key_init(&reserved, l->t, "Total Reserved", err);
    int64_t r, a, kind;
    rp_event e;
    uint32_t i;

    allocated = type = (struct rp_arg_key){.key = RP_NONE};
    if (code == RP_OK)
        code = rp_arg_key_init(&allocated, l->t, "Total Allocated", err);
    if (code == RP_OK)
        code = rp_arg_key_init(&type, l->t, "Device Type", err);
    for (e = 0; code == RP_OK && reserved.key != RP_NONE && e < l->t->ev.n; e++) {
        if (l->t->ev.kind[e] != RP_KIND_INSTANT || !rp_arg_key_int(&reserved, e, &r) ||
            !rp_arg_key_int(&allocated, e, &a) || !rp_arg_key_int(&type, e, &kind) || kind == 0)
            continue;
        l->out->reserved_bytes = r > l->out->reserved_bytes ? r : l->out->reserved_bytes;
        l->out->allocated_bytes = a > l->out->allocated_bytes ? a : l->out->allocated_bytes;
    }
    for (i = 0; i < l->t->ndevices; i++)
        if (l->t->devices[i].memory_bytes > l->out->device_bytes)
            l->out->device_bytes = l->t->devices[i].memory_bytes;
    rp_arg_key_release(&reserved);
    rp_arg_key_release(&allocated);
    rp_arg_key_release(&type);
    return code;
}

static enum rp_code look(struct looker *l, const rp_gap_vec *gaps, struct rp_err *err)
{
    RP_TRY(rp_arg_key_init(&l->blocks, l->t, "blocks per SM", err));
    RP_TRY(rp_arg_key_init(&l->occupancy, l->t, "est. achieved occupancy %", err));
    RP_TRY(rp_arg_key_init(&l->grid, l->t, "grid", err));
    RP_TRY(mark_starved(l, gaps, err));
    RP_TRY(rp_vec_reserve(&l->lost, l->t->str.n + 1, err));
    memset(l->lost.at, 0, (l->t->str.n + 1) * sizeof *l->lost.at);
    if (l->blocks.key != RP_NONE || l->occupancy.key != RP_NONE)
        find_thin(l);
    find_early(l);
    RP_TRY(list_calls(l, err));
    RP_TRY(find_slowed(l, err));
    return find_memory(l, err);
}

enum rp_code rp_report_look_at_device(const struct rp_work *work, const rp_gap_vec *gaps,
                                      struct rp_arena *arena, struct rp_report_device *out,
                                      struct rp_err *err)
{
    struct looker l = {.w = work, .t = work->trace, .arena = arena, .out = out};
    enum rp_code code;

    *out = (struct rp_report_device){0};
    rp_map_init(&l.kinds);
    code = look(&l, gaps, err);
    rp_arg_key_release(&l.blocks);
    rp_arg_key_release(&l.occupancy);
    rp_arg_key_release(&l.grid);
    rp_vec_release(&l.starved);
    rp_vec_release(&l.lost);
    rp_map_release(&l.kinds);
    rp_vec_release(&l.calls);
    rp_vec_release(&l.scratch);
    return code;
}
