/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds where the time before the first step goes (--start-up). Spans are sorted into kinds by
 * their names. If several run at once, the most specific kind counts, so that the parts add up to
 * the whole. Time without a span counts as import while libraries are still being loaded; otherwise
 * it was not recorded. A sweep over begins and ends: n log n in the spans before the first step.
 */
#include "explain/report/report.h"

#include "base/named.h"
#include "base/order.h"

struct start_edge {
    int64_t at_ns;
    uint8_t kind;
    int8_t change; /* +1: a span begins, -1: it ends */
};
RP_ORDER(by_time, struct start_edge, RP_UP(at_ns), RP_DOWN(change))

static enum rp_start_kind kind_of(const struct rp_trace *t, rp_event e)
{
    static const char *const compiles[] = {"compile", "XlaPass",  "XlaEmit", "XlaOptimize",
                                           "dynamo",  "inductor", "triton",  "autotun",
                                           "nvrtc",   NULL};
    static const char *const loads[] = {"Module Loading", "Function Loading", "ModuleLoad",
                                        "LibraryLoad", NULL};
    static const char *const batches[] = {"enumerate(DataLoader)", "IteratorGetNext", NULL};
    const char *name = rp_trace_str(t, t->ev.name[e]);

    switch (t->ev.kind[e]) {
    case RP_KIND_OVERHEAD:
    case RP_KIND_RUNTIME:
    case RP_KIND_ANNOTATION:
    case RP_KIND_CPU_OP:
    case RP_KIND_PYTHON:
        break;
    default:
        return rp_kind_is_device_work(t->ev.kind[e]) ? RP_START_WORK : RP_START_KINDS;
    }
    if (rp_has_word(name, compiles))
        return RP_START_COMPILATION;
    if (rp_has_word(name, loads))
        return RP_START_LOADING;
    if (rp_has_word(name, batches))
        return RP_START_BATCH;
    if (t->ev.kind[e] == RP_KIND_RUNTIME)
        return t->ev.ts_ns[e] < t->totals.gpu_begin_ns ? RP_START_DEVICE : RP_START_WORK;
    return t->ev.kind[e] == RP_KIND_CPU_OP ? RP_START_WORK : RP_START_KINDS;
}

typedef RP_VEC(struct start_edge) start_edges;

static enum rp_code list_edges(const struct rp_trace *t, int64_t end_ns, start_edges *out,
                               int64_t *loaded_ns, struct rp_err *err)
{
    for (rp_event e = 0; e < t->ev.n; e++) {
        if (t->ev.ts_ns[e] == RP_NO_TS || t->ev.ts_ns[e] >= end_ns)
            continue;
        if (t->ev.kind[e] == RP_KIND_INSTANT && t->ev.ts_ns[e] > *loaded_ns &&
            !strcmp(rp_trace_str(t, t->ev.name[e]), "library"))
            *loaded_ns = t->ev.ts_ns[e];
        enum rp_start_kind kind = kind_of(t, e);
        if (kind == RP_START_KINDS || t->ev.dur_ns[e] <= 0)
            continue;
        int64_t end = rp_event_end_ns(t, e);
        RP_TRY(rp_vec_push(out, ((struct start_edge){t->ev.ts_ns[e], (uint8_t)kind, 1}), err));
        RP_TRY(rp_vec_push(
            out, ((struct start_edge){end < end_ns ? end : end_ns, (uint8_t)kind, -1}), err));
    }
    return RP_OK;
}

/* Adds [from, to), in which these spans run. */
static void add_piece(int64_t ns[RP_START_KINDS], const int64_t *running, int64_t from, int64_t to,
                      int64_t loaded_ns)
{
    int kind = 0;

    if (from >= to)
        return;
    while (kind < RP_START_IMPORTS && !running[kind])
        kind++;
    if (kind < RP_START_IMPORTS) {
        rp_ns_add(&ns[kind], rp_ns_between(from, to));
        return;
    }
    if (from < loaded_ns)
        rp_ns_add(&ns[RP_START_IMPORTS], rp_ns_between(from, to < loaded_ns ? to : loaded_ns));
    if (to > loaded_ns)
        rp_ns_add(&ns[RP_START_UNRECORDED], rp_ns_between(from > loaded_ns ? from : loaded_ns, to));
}

enum rp_code rp_report_measure_start(const struct rp_trace *trace, struct rp_report_part *out,
                                     struct rp_err *err)
{
    int64_t begin = trace->totals.span_begin_ns, loaded = INT64_MIN, at = begin;
    int64_t running[RP_START_KINDS] = {0};
    start_edges edges = {0};
    uint32_t first = 0;

    while (first + 1 < trace->nsteps && trace->steps[first].flags & RP_STEP_WARM_UP)
        first++;
    if (!trace->nsteps || trace->steps[first].begin_ns <= begin)
        return RP_OK;
    enum rp_code code = list_edges(trace, trace->steps[first].begin_ns, &edges, &loaded, err);
    if (code == RP_OK)
        rp_sort(edges.at, edges.n, sizeof *edges.at, by_time);
    for (size_t i = 0; code == RP_OK && i < edges.n; i++) {
        add_piece(out->start_ns, running, at, edges.at[i].at_ns, loaded);
        at = edges.at[i].at_ns > at ? edges.at[i].at_ns : at;
        running[edges.at[i].kind] += edges.at[i].change;
    }
    if (code == RP_OK)
        add_piece(out->start_ns, running, at, trace->steps[first].begin_ns, loaded);
    rp_vec_release(&edges);
    return code;
}

void rp_report_fill_start(const struct rp_ranks *ranks, struct rp_arena *arena,
                          struct rp_report_root *out)
{
    static const char *const texts[RP_START_KINDS][2] = {
#define START_TEXT(name, text, doc) {text, doc},
        RP_START_MAP(START_TEXT)
#undef START_TEXT
    };
    int64_t total = 0;

    out->start_up = RP_ARENA_NEW(arena, struct rp_report_share, RP_START_KINDS);
    for (int k = 0; out->start_up && k < RP_START_KINDS; k++) {
        struct rp_report_share row = {.part = texts[k][0], .note = texts[k][1]};

        for (size_t r = 0; r < ranks->n; r++)
            rp_ns_add(&row.total_ns, rp_report_part_of(ranks, r)->start_ns[k]);
        row.mean_ns = ranks->n ? row.total_ns / (int64_t)ranks->n : 0;
        rp_ns_add(&total, row.total_ns);
        if (row.total_ns)
            out->start_up[out->nstart_up++] = row;
    }
    for (size_t r = 0; r < out->nstart_up; r++)
        out->start_up[r].share = (double)out->start_up[r].total_ns / (double)total;
}
