/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assigns measured times to kernels. Most events name their instruction. Those of a command buffer
 * name only the buffer; they are identified by the name of their kernel and, if several thunks
 * launch a kernel of one name, by their order: the thunks of a program run in the same order every
 * time, so the i-th event belongs to thunk i modulo their number, with loops repeated as often as
 * they run. Traces without a device (CPU) have events of the host, of which the own time counts,
 * without the events inside. Cost: the events of the trace, and sorting those that are assigned by
 * name.
 */
#include "xref/xref.h"

#include "base/order.h"
#include "facts/arg_keys.h"
#include "facts/times/intervals.h"

#include <string.h>

#define MAX_SEQUENCE 1000000

struct named_event {
    uint32_t group;
    rp_event event;
    int64_t ts_ns;
};

struct kernel_group {  /* rows that launch a kernel of one name */
    uint32_t first, n; /* of rows */
};

struct measure {
    const struct rp_trace *t;
    const struct rp_xref *x;
    struct rp_xref_kernels *kernels;
    struct rp_xref_times *out;
    struct rp_arena arena;
    struct rp_map by_op;   /* operation -> row */
    struct rp_map by_name; /* from hash of the kernel's name to group */
    RP_VEC(struct kernel_group) groups;
    uint32_t *rows; /* by group */
    RP_VEC(struct named_event) events;
    struct rp_arg_key op_key, module_key;
    int64_t *self_ns; /* for events on the host: time without the events inside; NULL if durations
                         count */
    struct rp_err *err;
};

/* ------------------------------------------------------------------ names */

static uint64_t text_key(const char *text)
{
    return rp_hash_bytes(text, strlen(text));
}

/* Returns the key of the kernel that a thunk launches; 0 if a trace would not show any. */
static uint64_t row_key(const struct rp_xref_kernel *row)
{
    if (*row->thunk.kernel)
        return text_key(row->thunk.kernel);
    if (strstr(row->thunk.kind, "Copy"))
        return 1;
    return strstr(row->thunk.kind, "Mems") || strstr(row->thunk.kind, "Memz") ? 2 : 0;
}

static enum rp_code index_rows(struct measure *m)
{
    size_t n = m->kernels->n;
    uint32_t known;

    m->rows = RP_ARENA_NEW(&m->arena, uint32_t, n + 1);
    RP_TRY(rp_err_need(m->rows, m->err, "measuring kernels"));
    for (size_t i = 0; i < n; i++) {
        const struct rp_xref_kernel *row = &m->kernels->at[i];
        struct kernel_group fresh = {0, 0};

        if (row->op != RP_NONE)
            RP_TRY(rp_map_intern(&m->by_op, row->op, (uint32_t)i, &known, m->err));
        if (!row_key(row))
            continue;
        RP_TRY(rp_map_intern(&m->by_name, row_key(row), (uint32_t)m->groups.n, &known, m->err));
        if (known == m->groups.n)
            RP_TRY(rp_vec_push(&m->groups, fresh, m->err));
        m->groups.at[known].n++;
    }
    uint32_t *count = RP_ARENA_NEW(&m->arena, uint32_t, m->groups.n + 1);
    RP_TRY(rp_err_need(count, m->err, "measuring kernels"));
    for (size_t g = 1; g < m->groups.n; g++)
        m->groups.at[g].first = m->groups.at[g - 1].first + m->groups.at[g - 1].n;
    for (size_t i = 0; i < n; i++) {
        uint64_t key = row_key(&m->kernels->at[i]);
        uint32_t g = key ? rp_map_get(&m->by_name, key) : RP_MAP_NONE;

        if (g != RP_MAP_NONE)
            m->rows[m->groups.at[g].first + count[g]++] = (uint32_t)i;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ events */

static int64_t time_of(const struct measure *m, rp_event e)
{
    return m->self_ns ? m->self_ns[e] : m->t->ev.dur_ns[e];
}

static void add_time(struct measure *m, struct rp_xref_kernel *row, rp_event e)
{
    int64_t ns = time_of(m, e);

    row->min_ns = !row->events || ns < row->min_ns ? ns : row->min_ns;
    row->max_ns = ns > row->max_ns ? ns : row->max_ns;
    row->events++;
    rp_ns_add(&row->total_ns, ns);
    m->out->matched++;
    rp_ns_add(&m->out->matched_ns, ns);
}

/* "jit_step(123)" belongs to module jit_step. */
static bool same_module(const char *event, const char *module)
{
    size_t n = strcspn(event, "(");

    return strlen(module) == n && !memcmp(event, module, n);
}

static uint64_t event_key(const struct measure *m, rp_event e)
{
    switch (m->t->ev.kind[e]) {
    case RP_KIND_MEMCPY:
        return 1;
    case RP_KIND_MEMSET:
        return 2;
    default:
        return text_key(rp_trace_str(m->t, m->t->ev.name[e]));
    }
}

static enum rp_code measure_event(struct measure *m, const char *module, rp_event e)
{
    rp_str op = 0, of = 0;
    uint32_t row = RP_NONE;
    struct named_event named = {.event = e, .ts_ns = m->t->ev.ts_ns[e]};

    m->out->events++;
    rp_ns_add(&m->out->total_ns, time_of(m, e));
    if (module && rp_arg_key_text(&m->module_key, e, &of) && of &&
        !same_module(rp_trace_str(m->t, of), module)) {
        m->out->elsewhere++;
        rp_ns_add(&m->out->elsewhere_ns, time_of(m, e));
        return RP_OK;
    }
    if (rp_arg_key_text(&m->op_key, e, &op) && op) {
        uint32_t found = rp_xref_find(m->x, rp_trace_str(m->t, op));
        row = found == RP_NONE ? RP_NONE : rp_map_get(&m->by_op, found);
    }
    if (row != RP_NONE && row != RP_MAP_NONE) {
        add_time(m, &m->kernels->at[row], e);
        return RP_OK;
    }
    named.group = rp_map_get(&m->by_name, event_key(m, e));
    return named.group == RP_MAP_NONE ? RP_OK : rp_vec_push(&m->events, named, m->err);
}

static bool names_op(const struct measure *m, rp_event e)
{
    rp_str op;

    return m->t->ev.dur_ns[e] >= 0 && rp_arg_key_text(&m->op_key, e, &op) && op;
}

/* On the host, a loop or call is an event around those of its body, so they nest. */
static enum rp_code find_self_times(struct measure *m)
{
    const struct rp_trace *t = m->t;

    m->self_ns = RP_ARENA_NEW(&m->arena, int64_t, (size_t)t->ev.n + 1);
    RP_TRY(rp_err_need(m->self_ns, m->err, "measuring kernels"));
    for (rp_event e = 0; e < t->ev.n; e++) {
        rp_event around = t->ev.parent[e];

        if (!names_op(m, e))
            continue;
        m->self_ns[e] = t->ev.dur_ns[e];
        while (around != RP_NONE && !names_op(m, around))
            around = t->ev.parent[around];
        if (around != RP_NONE && m->self_ns[around] >= t->ev.dur_ns[e])
            m->self_ns[around] -= t->ev.dur_ns[e];
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ events known by name */

RP_ORDER(by_group_and_time, struct named_event, RP_UP(group), RP_UP(ts_ns), RP_UP(event))

/* Finds the order in which one execution runs the rows of a group: neighbours inside one loop run
   together, as often as the loop does. */
static enum rp_code group_sequence(struct measure *m, const struct kernel_group *g, uint32_t **out,
                                   size_t *n)
{
    const uint32_t *rows = m->rows + g->first;
    const struct rp_xref_kernel *k = m->kernels->at;
    size_t total = 0, cap = g->n;

    for (uint32_t i = 0; i < g->n && cap < MAX_SEQUENCE; i++)
        cap += k[rows[i]].runs < MAX_SEQUENCE ? (size_t)k[rows[i]].runs : MAX_SEQUENCE;
    if (cap >= MAX_SEQUENCE) /* too many: each once */
        cap = g->n;
    *out = RP_ARENA_NEW(&m->arena, uint32_t, cap + 1);
    RP_TRY(rp_err_need(*out, m->err, "measuring kernels"));
    for (uint32_t i = 0, end; i < g->n; i = end) {
        int64_t runs = cap == g->n ? 1 : k[rows[i]].runs;

        for (end = i + 1; end < g->n && k[rows[end]].runs == k[rows[i]].runs; end++)
            ;
        for (int64_t r = 0; r < runs; r++)
            for (uint32_t j = i; j < end; j++)
                (*out)[total++] = rows[j];
    }
    *n = total;
    return RP_OK;
}

static void measure_release(struct measure *m)
{
    rp_arg_key_release(&m->op_key);
    rp_arg_key_release(&m->module_key);
    rp_map_release(&m->by_op);
    rp_map_release(&m->by_name);
    rp_vec_release(&m->groups);
    rp_vec_release(&m->events);
    rp_arena_release(&m->arena);
}

enum rp_code rp_xref_measure(const struct rp_trace *trace, const char *module,
                             const struct rp_xref *x, struct rp_xref_kernels *kernels,
                             struct rp_xref_times *out, struct rp_err *err)
{
    RP_SCOPED(measure_release)
    struct measure m = {.t = trace, .x = x, .kernels = kernels, .out = out, .err = err};

    RP_TRY(rp_trace_require(trace, RP_NEED_ARGS, err));
    RP_TRY(rp_arg_key_init(&m.op_key, trace, "hlo_op", err));
    RP_TRY(rp_arg_key_init(&m.module_key, trace, "hlo_module", err));
    RP_TRY(index_rows(&m));
    const struct rp_trace *t = m.t;
    bool device = t->totals.count[RP_KIND_KERNEL] > 0;
    if (!device)
        RP_TRY(find_self_times(&m));
    for (rp_event e = 0; e < t->ev.n; e++) {
        if (device ? t->ev.dur_ns[e] >= 0 && rp_kind_is_device_work(t->ev.kind[e])
                   : names_op(&m, e))
            RP_TRY(measure_event(&m, module, e));
    }
    size_t i = 0;
    rp_sort(m.events.at, m.events.n, sizeof *m.events.at, by_group_and_time);
    while (i < m.events.n) {
        const struct kernel_group *g = &m.groups.at[m.events.at[i].group];
        uint32_t *sequence, group = m.events.at[i].group;
        size_t n = 1;

        RP_TRY(group_sequence(&m, g, &sequence, &n));
        for (size_t k = 0; i < m.events.n && m.events.at[i].group == group; i++, k++) {
            struct rp_xref_kernel *row = &m.kernels->at[sequence[n ? k % n : 0]];

            row->by_order = g->n > 1;
            add_time(&m, row, m.events.at[i].event);
        }
    }
    return RP_OK;
}
