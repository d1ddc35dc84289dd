/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks from each launch through its ancestors, as attribution does. Launches under one span follow
 * each other, so the result for a span is kept for the next launch. The cost is computed when all
 * items of a call are known, because the longest kernel tells the format.
 */
#include "cost/calls.h"

#include "base/copies.h"
#include "base/decides.h"
#include "base/each.h"
#include "base/filled.h"
#include "cost/models.h"
#include "facts/ranks/collective_args.h"
#include "facts/work/ancestors.h"
#include "facts/xla_names.h"

#include <math.h>

#define NO_OPERATOR "no operator is around its launch"
#define NO_SIZE     "its size was not recorded"
#define NO_PROGRAM  "its program is not among the inputs"

/* The last execution of an instruction of XLA on a stream. */
struct xla_run {
    rp_str op, module, first; /* first is its first kernel */
    uint32_t call;            /* RP_NONE if there is none */
};

struct call_maker {
    struct rp_op_costs *costs;
    const struct rp_work *work;
    const struct rp_trace *t;
    struct rp_cost_calls *out;
    struct rp_map calls; /* from operator and launch of a graph to call */
    struct rp_map ways;  /* from name of a copy to enum rp_copy_way */
    struct rp_arg_key bytes, grid, block, hlo_module, hlo_op;
    bool unlaunched; /* some kernel has no launch */
    struct rp_coll_reader collectives;
    rp_item_cost_fn *known;
    void *user;
    RP_VEC(struct xla_run) runs; /* by stream */
    rp_event last_span, last_op; /* the result for the span around the last launch */
};

/* ------------------------------------------------------------------ the operator of an item */

/* Finds the operator to which the work launched inside a span belongs, or RP_NONE. */
static enum rp_code find_operator(struct call_maker *m, rp_event span, rp_event *op,
                                  struct rp_err *err)
{
    rp_event e = span, innermost = RP_NONE, chosen = RP_NONE, whole = RP_NONE;
    uint8_t wanted = RP_CATEGORY_OTHER;
    uint32_t index;

    RP_FOR_ANCESTORS (m->t, e) {
        bool claims;

        if (m->t->ev.kind[e] != RP_KIND_CPU_OP)
            continue;
        if (chosen !=
            RP_NONE) { /* operators around it matter only if they are modelled as a whole */
            RP_TRY(rp_op_cost_claims(m->costs, e, &claims, err));
            if (!claims)
                continue;
        }
        RP_TRY(rp_op_cost_of(m->costs, e, 0, &index, err));
        const struct rp_op_cost *cost = &m->costs->costs.at[index];
        if (innermost == RP_NONE)
            innermost = e;
        if (!rp_cost_is_known(cost)) {
            /* the time goes outwards only to an operator of the same category */
            if (wanted == RP_CATEGORY_OTHER)
                wanted = cost->category;
            continue;
        }
        if (cost->claims)
            whole = e;
        else if (chosen == RP_NONE && (wanted == RP_CATEGORY_OTHER || wanted == cost->category))
            chosen = e;
    }
    *op = whole != RP_NONE ? whole : chosen != RP_NONE ? chosen : innermost;
    return RP_OK;
}

static enum rp_code operator_of(struct call_maker *m, const struct rp_work_item *item, rp_event *op,
                                struct rp_err *err)
{
    rp_event launch = rp_work_described_by(m->work, item);
    rp_event span = launch != RP_NONE && m->t->ev.kind[launch] != RP_KIND_CPU_OP
                        ? m->t->ev.parent[launch]
                        : launch;

    if (span != m->last_span) {
        RP_TRY(find_operator(m, span, &m->last_op, err));
        m->last_span = span;
    }
    *op = span == RP_NONE ? RP_NONE : m->last_op;
    return RP_OK;
}

/* ------------------------------------------------------------------ calls */

/* A library may launch several kernels for an instruction: those that follow each other on a stream
   until the first one comes again. A graph has many instructions of one kernel each. */
static uint32_t continued_call(struct call_maker *m, const struct rp_work_item *x, rp_str module)
{
    struct xla_run *run = &m->runs.at[x->stream];
    rp_str name = m->t->ev.name[x->event], op;

    if (!rp_arg_key_text(&m->hlo_op, x->event, &op) || rp_xla_is_graph(rp_trace_str(m->t, op))) {
        run->call = RP_NONE;
        return RP_NONE;
    }
    if (run->call != RP_NONE && run->op == op && run->module == module && run->first != name)
        return run->call;
    *run = (struct xla_run){op, module, name, (uint32_t)m->out->calls.n};
    return RP_NONE;
}

static enum rp_code place_item(struct call_maker *m, uint32_t item, struct rp_err *err)
{
    const struct rp_work_item *x = &m->work->items.at[item];
    struct rp_cost_call fresh = {.op = RP_NONE, .launch = RP_NONE};
    uint32_t at = (uint32_t)m->out->calls.n;
    rp_str module; /* work of XLA belongs to an instruction, whatever runs the program */

    if (rp_arg_key_text(&m->hlo_module, x->event, &module)) {
        uint32_t call = x->cls == RP_WORK_COMPUTE ? continued_call(m, x, module) : RP_NONE;

        at = call == RP_NONE ? at : call;
    } else if (x->cls != RP_WORK_MEMORY) {
        RP_TRY(operator_of(m, x, &fresh.op, err));
    }
    if (fresh.op != RP_NONE) {
        if (rp_work_is_of_graph(m->work, x))
            fresh.launch = x->launch;
        RP_TRY(rp_map_intern(&m->calls, (uint64_t)fresh.op << 32 | fresh.launch, at, &at, err));
    }
    if (at == m->out->calls.n)
        RP_TRY(rp_vec_push(&m->out->calls, fresh, err));
    m->unlaunched = m->unlaunched || (x->launch == RP_NONE && x->cls == RP_WORK_COMPUTE);

    struct rp_cost_call *call = &m->out->calls.at[at];
    int64_t dur = rp_ns_between(x->begin_ns, x->end_ns);
    call->device_ns = rp_ns_sum(call->device_ns, dur);
    if (!call->nitems || dur > call->longest_ns) {
        call->item = item;
        call->longest_ns = dur;
    }
    call->nitems++;
    return rp_vec_push(&m->out->of_item, at, err);
}

/* ------------------------------------------------------------------ costs */

static rp_str kernel_of(const struct call_maker *m, const struct rp_cost_call *call)
{
    return m->t->ev.name[m->work->items.at[call->item].event];
}

/* Whether a copy is to or from the host or another device. */
static enum rp_code find_link(struct call_maker *m, rp_str name, bool *on_link, struct rp_err *err)
{
    uint32_t way = rp_map_get(&m->ways, name);

    if (way == RP_MAP_NONE) {
        way = rp_copy_way(rp_trace_str(m->t, name));
        RP_TRY(rp_map_put(&m->ways, name, way, err));
    }
    *on_link = way == RP_COPY_TO_DEVICE || way == RP_COPY_TO_HOST || way == RP_COPY_BETWEEN;
    return RP_OK;
}

/* Counts what a copy or fill moves: both of its sides are in memory, or only one is. */
static struct rp_op_cost cost_of_memory(const struct call_maker *m, rp_event e, bool on_link)
{
    struct rp_op_cost cost = {.flops = NAN, .bytes = NAN, .missing = NO_SIZE};
    int64_t bytes;

    if (!rp_arg_key_int(&m->bytes, e, &bytes) || bytes < 0)
        return cost;
    cost.missing = NULL;
    cost.flops = 0;
    cost.bytes = (double)bytes * (on_link || m->t->ev.kind[e] == RP_KIND_MEMSET ? 1 : 2);
    return cost;
}

/* Counts the bytes that the busiest link moves (docs/definitions.md, "Communication"). */
static struct rp_op_cost cost_of_collective(const struct call_maker *m,
                                            const struct rp_work_item *item)
{
    struct rp_op_cost cost = {.flops = NAN, .bytes = NAN, .missing = NO_SIZE};
    struct rp_coll_facts f = rp_coll_read(&m->collectives, item->event, item->launch);
    int64_t elements = f.in_elements > f.out_elements ? f.in_elements : f.out_elements;
    double factor = rp_coll_bus_factor(f.kind, f.group_size);

    if (elements < 0 || !f.item_bytes || factor <= 0)
        return cost;
    cost.missing = NULL;
    cost.flops = 0;
    cost.bytes = (double)elements * (double)f.item_bytes * factor;
    return cost;
}

static enum rp_code set_cost(struct call_maker *m, struct rp_cost_call *call, struct rp_err *err)
{
    const struct rp_work_item *x = &m->work->items.at[call->item];
    struct rp_op_cost cost = {.flops = NAN, .bytes = NAN, .missing = NO_OPERATOR};
    rp_str module;

    rp_str op = call->op == RP_NONE ? 0 : m->t->ev.name[call->op];
    RP_TRY(
        rp_trace_category_of(m->costs->categories, op, kernel_of(m, call), &call->category, err));
    if (rp_arg_key_text(&m->hlo_module, x->event, &module))
        cost.missing = NO_PROGRAM;
    if (x->cls == RP_WORK_COMM) {
        cost = cost_of_collective(m, x);
        call->on_link = true;
    } else if (x->cls == RP_WORK_MEMORY) {
        RP_TRY(find_link(m, m->t->ev.name[x->event], &call->on_link, err));
        cost = cost_of_memory(m, x->event, call->on_link);
    } else if (call->op != RP_NONE) {
        RP_TRY(rp_op_cost_of(m->costs, call->op, kernel_of(m, call), &call->cost, err));
        if (rp_cost_is_known(&m->costs->costs.at[call->cost]) || !m->known)
            return RP_OK;
        cost = m->costs->costs.at[call->cost];
        if (!m->known(m->user, m->t, x->event, &cost))
            return RP_OK;
    } else if (m->known) {
        m->known(m->user, m->t, x->event, &cost);
    }
    cost.category = call->category;
    return rp_op_cost_add(m->costs, &cost, &call->cost, err);
}

/* ------------------------------------------------------------------ launches that are missing */

#define AMBIGUOUS (UINT32_MAX - 1)

/* A kernel without a launch is found elsewhere, the surest way first: by its grid, by the kernels
   before and after it on its stream, or by its name alone. */
enum { BY_GRID, BY_NEIGHBOURS, BY_NAME, LEVELS };
#define NEIGHBOURS 3
RP_DECISION(
    NEIGHBOURS, "kernels on either side",
    "they tell a kernel whose launch was not recorded from others with its name; where they do not, it stays without an operator",
    "cost/neighbours_tell_kernels_apart");

struct launch_finder {
    struct call_maker *m;
    struct rp_map items[LEVELS]; /* from key to an item of an operator, or AMBIGUOUS */
    RP_VEC(uint32_t) before;     /* by item: the item before it on its stream, or RP_NONE */
    RP_VEC(uint32_t) after;
};

static enum rp_code link_neighbours(struct launch_finder *f, struct rp_err *err)
{
    const struct rp_work *w = f->m->work;
    RP_VEC_LOCAL(uint32_t, last); /* by stream */

    RP_TRY(rp_vec_reserve(&f->before, w->items.n + 1, err));
    RP_TRY(rp_vec_reserve(&f->after, w->items.n + 1, err));
    RP_TRY(rp_vec_nones(&last, w->streams.n, err));
    for (uint32_t i = 0; i < w->items.n; i++) {
        uint32_t *previous = &last.at[w->items.at[i].stream];

        f->before.at[i] = *previous;
        f->after.at[i] = RP_NONE;
        if (*previous != RP_NONE)
            f->after.at[*previous] = i;
        *previous = i;
    }
    return RP_OK;
}

static uint64_t hash_neighbours(const struct launch_finder *f, uint32_t item)
{
    const struct rp_trace *t = f->m->t;
    uint32_t i, a = item, b = item;
    uint64_t hash = t->ev.name[f->m->work->items.at[item].event];

    for (i = 0; i < NEIGHBOURS; i++) {
        a = a == RP_NONE ? a : f->before.at[a];
        b = b == RP_NONE ? b : f->after.at[b];
        if (a == RP_NONE || b == RP_NONE)
            return 0;
        hash = rp_hash_join(hash, t->ev.name[f->m->work->items.at[a].event]);
        hash = rp_hash_join(hash, t->ev.name[f->m->work->items.at[b].event]);
    }
    return hash;
}

/* Returns 0 if there is no such key. */
static uint64_t launch_key(const struct launch_finder *f, uint32_t item, int level)
{
    const struct call_maker *m = f->m;
    rp_event kernel = m->work->items.at[item].event;
    rp_str grid, block;

    if (level == BY_NAME)
        return m->t->ev.name[kernel];
    if (level == BY_NEIGHBOURS)
        return hash_neighbours(f, item);
    if (!rp_arg_key_text(&m->grid, kernel, &grid) || !rp_arg_key_text(&m->block, kernel, &block))
        return 0;
    return rp_hash_join((uint64_t)m->t->ev.name[kernel] << 32 | grid, block);
}

/* Whether two items have the same role in the same work: the main kernel of their calls, or
   another. */
static bool same_work(const struct call_maker *m, uint32_t a, uint32_t b)
{
    const struct rp_cost_call *x = &m->out->calls.at[m->out->of_item.at[a]],
                              *y = &m->out->calls.at[m->out->of_item.at[b]];
    const struct rp_op_cost *p = &m->costs->costs.at[x->cost], *q = &m->costs->costs.at[y->cost];

    return (x->cost == y->cost || (p->flops == q->flops && p->bytes == q->bytes)) &&
           (x->item == a) == (y->item == b);
}

static enum rp_code map_launches(struct launch_finder *f, struct rp_err *err)
{
    const struct call_maker *m = f->m;

    for (uint32_t i = 0; i < m->work->items.n; i++) {
        const struct rp_cost_call *call = &m->out->calls.at[m->out->of_item.at[i]];

        if (call->op != RP_NONE && m->work->items.at[i].cls == RP_WORK_COMPUTE &&
            rp_cost_is_known(&m->costs->costs.at[call->cost])) {
            uint32_t found;

            for (int level = 0; level < LEVELS; level++) {
                uint64_t key = launch_key(f, i, level);

                if (!key)
                    continue;
                RP_TRY(rp_map_intern(&f->items[level], key, i, &found, err));
                if (found != i && found != AMBIGUOUS && !same_work(f->m, found, i))
                    RP_TRY(rp_map_put(&f->items[level], key, AMBIGUOUS, err));
            }
        }
    }
    return RP_OK;
}

static enum rp_code infer_call(struct launch_finder *f, struct rp_cost_call *call,
                               struct rp_err *err)
{
    struct call_maker *m = f->m;
    uint32_t found = RP_MAP_NONE;
    struct rp_op_cost none = {0};
    int level;

    for (level = 0; level < LEVELS; level++) {
        uint64_t key = launch_key(f, call->item, level);

        found = key ? rp_map_get(&f->items[level], key) : RP_MAP_NONE;
        if (found != RP_MAP_NONE && found != AMBIGUOUS)
            break;
    }
    if (level == LEVELS)
        return RP_OK;
    const struct rp_cost_call *like = &m->out->calls.at[m->out->of_item.at[found]];
    call->op = like->op;
    call->category = like->category;
    call->inferred = true;
    if (like->item == found) {
        call->cost = like->cost;
        return RP_OK;
    }
    call->is_part = true;
    none.category = like->category; /* the work of both is counted for the main kernel */
    none.type = m->costs->costs.at[like->cost].type;
    return rp_op_cost_add(m->costs, &none, &call->cost, err);
}

static enum rp_code infer_calls(struct call_maker *m, struct rp_err *err)
{
    struct launch_finder f = {.m = m};
    enum rp_code code = link_neighbours(&f, err);

    for (int level = 0; level < LEVELS; level++)
        rp_map_init(&f.items[level]);
    if (code == RP_OK)
        code = map_launches(&f, err);
    for (size_t i = 0; i < m->out->calls.n && code == RP_OK; i++) {
        struct rp_cost_call *call = &m->out->calls.at[i];
        const struct rp_work_item *x = &m->work->items.at[call->item];

        if (call->op == RP_NONE && x->launch == RP_NONE && x->cls == RP_WORK_COMPUTE)
            code = infer_call(&f, call, err);
    }
    for (int level = 0; level < LEVELS; level++)
        rp_map_release(&f.items[level]);
    RP_EACH(rp_vec_release, &f.before, &f.after);
    return code;
}

static enum rp_code make_calls(struct call_maker *m, struct rp_err *err)
{
    RP_TRY(rp_arg_key_init(&m->bytes, m->t, "bytes", err));
    RP_TRY(rp_arg_key_init(&m->grid, m->t, "grid", err));
    RP_TRY(rp_arg_key_init(&m->hlo_module, m->t, "hlo_module", err));
    RP_TRY(rp_arg_key_init(&m->hlo_op, m->t, "hlo_op", err));
    RP_TRY(rp_vec_nones(&m->runs, m->work->streams.n, err));
    RP_TRY(rp_arg_key_init(&m->block, m->t, "block", err));
    RP_TRY(rp_coll_reader_init(&m->collectives, m->t, err));
    RP_TRY(rp_vec_reserve(&m->out->of_item, m->work->items.n, err));
    for (size_t i = 0; i < m->work->items.n; i++)
        RP_TRY(place_item(m, (uint32_t)i, err));
    for (size_t i = 0; i < m->out->calls.n; i++)
        RP_TRY(set_cost(m, &m->out->calls.at[i], err));
    return m->unlaunched ? infer_calls(m, err) : RP_OK;
}

enum rp_code rp_cost_calls_init(struct rp_cost_calls *out, struct rp_op_costs *costs,
                                const struct rp_work *work, rp_item_cost_fn *known, void *user,
                                struct rp_err *err)
{
    struct call_maker m = {.costs = costs,
                           .work = work,
                           .t = work->trace,
                           .out = out,
                           .known = known,
                           .user = user,
                           .last_span = RP_NONE,
                           .last_op = RP_NONE};

    *out = (struct rp_cost_calls){0};
    enum rp_code code = make_calls(&m, err);
    RP_EACH(rp_map_release, &m.calls, &m.ways);
    rp_arg_key_release(&m.bytes);
    rp_arg_key_release(&m.grid);
    rp_arg_key_release(&m.hlo_module);
    rp_arg_key_release(&m.hlo_op);
    rp_vec_release(&m.runs);
    rp_arg_key_release(&m.block);
    rp_coll_reader_release(&m.collectives);
    return code;
}

void rp_cost_calls_release(struct rp_cost_calls *calls)
{
    RP_EACH(rp_vec_release, &calls->calls, &calls->of_item);
}

/* ------------------------------------------------------------------ what cannot be */

#define ABOVE_PEAK 1.05
RP_DECISION(
    ABOVE_PEAK, "of a peak",
    "clocks above the published boost and errors of time stay below; what is counted above is wrong",
    "cost/what_no_device_can_do_is_not_modelled");
#define CACHE_FASTER 4
RP_DECISION(
    CACHE_FASTER, "times the bandwidth of memory",
    "arrays that stay in the last cache are moved faster than memory can, but no cache of cost/devices.def is that fast",
    "cost/what_no_device_can_do_is_not_modelled");
#define CACHE_BYTES 300e6
RP_DECISION(
    CACHE_BYTES, "bytes",
    "the last caches of cost/devices.def hold up to 256 MB; more was not moved inside of them",
    "cost/what_no_device_can_do_is_not_modelled");
/* A limit for any device whose peaks are not known. */
#define ANY_FLOPS_PER_S 3e16
RP_DECISION(ANY_FLOPS_PER_S, "FLOP/s",
            "three times the fastest format of the fastest device of cost/devices.def",
            "cost/without_peaks_only_the_absurd_is_removed");
#define ANY_BYTES_PER_S 1e14
RP_DECISION(ANY_BYTES_PER_S, "bytes/s",
            "twelve times the fastest memory of cost/devices.def, for caches",
            "cost/without_peaks_only_the_absurd_is_removed");

static bool is_impossible(const struct rp_cost_call *call, const struct rp_op_cost *cost,
                          const struct rp_cost_peaks *peaks)
{
    double taken = (double)call->device_ns * 1e-9;
    double compute = rp_cost_compute_s(cost, peaks), memory = rp_cost_memory_s(cost, peaks);

    if (isnan(compute))
        compute = cost->flops / ANY_FLOPS_PER_S;
    if (isnan(memory))
        return compute > ABOVE_PEAK * taken || cost->bytes > ANY_BYTES_PER_S * taken;
    return compute > ABOVE_PEAK * taken || memory > CACHE_FASTER * taken ||
           (memory > ABOVE_PEAK * taken && cost->bytes > CACHE_BYTES);
}

enum rp_code rp_cost_calls_limit(struct rp_cost_calls *calls, struct rp_op_costs *costs,
                                 const struct rp_cost_peaks *peaks, struct rp_err *err)
{
    RP_SCOPED(rp_map_release) struct rp_map made = {0};

    for (size_t i = 0; i < calls->calls.n; i++) {
        struct rp_cost_call *call = &calls->calls.at[i];
        const struct rp_op_cost *cost = &costs->costs.at[call->cost];

        if (!call->on_link && rp_cost_is_known(cost) && is_impossible(call, cost, peaks)) {
            /* Replace the cost `index` by one without its model, which all calls share that had it.
             */
            uint32_t *index = &call->cost;
            struct rp_op_cost none = costs->costs.at[*index];
            uint32_t found = rp_map_get(&made, *index), at = *index;

            if (found == RP_MAP_NONE) {
                none.flops = none.bytes = NAN;
                none.missing = RP_ABOVE_PEAK;
                RP_TRY(rp_op_cost_add(costs, &none, &found, err));
                RP_TRY(rp_map_put(&made, at, found, err));
            }
            *index = found;
        }
    }
    return RP_OK;
}

double rp_cost_least_s(const struct rp_cost_call *call, const struct rp_op_cost *cost,
                       const struct rp_cost_peaks *peaks)
{
    double compute = rp_cost_compute_s(cost, peaks), memory = rp_cost_memory_s(cost, peaks);

    if (isnan(compute) && !cost->on_matrix)
        compute = 0; /* there is no published peak for vectors of this device */
    if (isnan(compute) || isnan(memory))
        return NAN;
    return fmin(fmax(compute, memory), (double)call->device_ns * 1e-9);
}
