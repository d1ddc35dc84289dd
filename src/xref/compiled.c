/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of compiled graphs in a trace, and their calls. Directly below the span of a run are the
 * operators that the generated code calls, in its order: of each name the k-th is the k-th call of
 * that name in the code. The scheduler of the compiler moves operators, so that their order in the
 * graph says nothing.
 */
#include "xref/compiled.h"

#include "base/names.h"
#include "base/text.h"
#include "facts/work/ancestors.h"

#include <string.h>

#define MANY (UINT32_MAX - 1) /* graphs have a kernel of this name */

static const char run_begin[] = RP_COMPILED_RUN;

/* ------------------------------------------------------------------ runs */

bool rp_compiled_is_run(const struct rp_trace *trace, rp_event e)
{
    return trace->ev.kind[e] == RP_KIND_ANNOTATION &&
           !strncmp(rp_trace_str(trace, trace->ev.name[e]), run_begin, sizeof run_begin - 1);
}

/* Whether runs of graphs of torch.compile were recorded. */
static bool has_runs(const struct rp_trace *trace)
{
    for (rp_str s = 0; s < trace->str.n; s++)
        if (rp_text_begins(rp_trace_str(trace, s), RP_COMPILED_RUN))
            return true;
    return false;
}

enum rp_code rp_compiled_read_logs(struct rp_torch_trace *log, const struct rp_trace *trace,
                                   const char *path, const char *dumps, struct rp_err *err)
{
    if (dumps)
        return rp_torch_trace_open(log, dumps, NULL, err);
    if (!path || !has_runs(trace))
        return RP_OK;
    return rp_torch_trace_beside(
        log, path, trace->rank == RP_NO_RANK ? RP_TORCH_NO_ID : trace->rank, NULL, err);
}

/* The hash of the key in "## Call CompiledFxGraph f4fw5x… ##". */
static uint64_t key_of_run(const struct rp_trace *trace, rp_event e)
{
    const char *key = rp_trace_str(trace, trace->ev.name[e]) + sizeof run_begin - 1;

    return rp_hash_bytes(key, strcspn(key, " "));
}

static uint64_t text_hash(const char *text)
{
    return rp_hash_bytes(text, strlen(text));
}

/* ------------------------------------------------------------------ calls of one graph */

/* For each call of a graph, the next one with the same name; and the first of each name. */
struct call_lists {
    struct rp_map first;    /* hash of graph and name -> call */
    RP_VEC(uint32_t) next;  /* by call of the log */
    struct rp_map progress; /* of the run at hand: hash of the name -> the next call */
};

/* What a profile calls it. */
static const char *name_of_call(const struct rp_torch_trace *log,
                                const struct rp_torch_graph *graph, uint32_t call)
{
    const struct rp_torch_kernel *kernel =
        &log->kernels.at[graph->first_kernel + log->calls.at[call].kernel];

    return kernel->op ? kernel->op : kernel->name;
}

static enum rp_code list_calls(struct call_lists *lists, const struct rp_torch_trace *log,
                               struct rp_err *err)
{
    RP_TRY(rp_vec_reserve(&lists->next, log->calls.n + 1, err));
    lists->next.n = log->calls.n;
    for (uint32_t g = 0; g < log->graphs.n; g++) {
        const struct rp_torch_graph *graph = &log->graphs.at[g];

        for (uint32_t i = graph->ncalls; i-- > 0;) {
            uint32_t call = graph->first_call + i;
            uint64_t key = rp_hash_join(g, text_hash(name_of_call(log, graph, call)));

            lists->next.at[call] = rp_map_get(&lists->first, key);
            RP_TRY(rp_map_put(&lists->first, key, call, err));
        }
    }
    return RP_OK;
}

/* The operators directly below a run, which follow it on its track. */
static enum rp_code match_run(struct rp_compiled *c, struct call_lists *lists, rp_event run,
                              uint32_t graph, struct rp_err *err)
{
    const struct rp_events *ev = &c->trace->ev;
    int64_t end_ns = rp_event_end_ns(c->trace, run);
    rp_event last = c->trace->tracks[ev->track[run]].end;

    rp_map_release(&lists->progress);
    for (rp_event e = run + 1; e < last && ev->ts_ns[e] < end_ns; e++) {
        if (ev->parent[e] != run || ev->kind[e] != RP_KIND_CPU_OP)
            continue;
        uint64_t name = text_hash(rp_trace_str(c->trace, ev->name[e]));
        uint32_t call = rp_map_get(&lists->progress, name);
        if (call == RP_MAP_NONE)
            call = rp_map_get(&lists->first, rp_hash_join(graph, name));
        if (call == RP_MAP_NONE || call == MANY)
            continue;
        RP_TRY(rp_map_put(&c->call_of, e, call, err));
        call = lists->next.at[call];
        RP_TRY(rp_map_put(&lists->progress, name, call == RP_MAP_NONE ? MANY : call, err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ the trace */

static enum rp_code list_names(struct rp_compiled *c, struct rp_err *err)
{
    for (uint32_t g = 0; g < c->log->graphs.n; g++)
        for (uint32_t k = 0; k < c->log->graphs.at[g].nkernels; k++) {
            const struct rp_torch_kernel *kernel =
                &c->log->kernels.at[c->log->graphs.at[g].first_kernel + k];
            uint64_t name = text_hash(kernel->name);
            uint32_t known = rp_map_get(&c->by_name, name);

            if (!kernel->op)
                RP_TRY(rp_map_put(&c->by_name, name, known == RP_MAP_NONE ? g : MANY, err));
        }
    return RP_OK;
}

static enum rp_code find_runs(struct rp_compiled *c, struct call_lists *lists,
                              const struct rp_map *by_key, struct rp_err *err)
{
    for (rp_event e = 0; e < c->trace->ev.n; e++) {
        if (!rp_compiled_is_run(c->trace, e))
            continue;
        uint32_t graph = rp_map_get(by_key, key_of_run(c->trace, e));
        RP_TRY(rp_map_put(&c->run_of, e, graph == RP_MAP_NONE ? 0 : graph + 1, err));
        if (graph == RP_MAP_NONE) {
            c->unknown_runs++;
            continue;
        }
        c->runs.at[graph]++;
        RP_TRY(match_run(c, lists, e, graph, err));
    }
    return RP_OK;
}

static void call_lists_release(struct call_lists *lists)
{
    rp_map_release(&lists->first);
    rp_map_release(&lists->progress);
    rp_vec_release(&lists->next);
}

enum rp_code rp_compiled_init(struct rp_compiled *out, const struct rp_trace *trace,
                              const struct rp_torch_trace *log, struct rp_err *err)
{
    RP_SCOPED(call_lists_release) struct call_lists lists = {0};
    RP_SCOPED(rp_map_release) struct rp_map by_key = {0};

    *out = (struct rp_compiled){.trace = trace, .log = log};
    RP_TRY(rp_vec_reserve(&out->runs, log->graphs.n + 1, err));
    for (uint32_t g = 0; g < log->graphs.n; g++) {
        uint32_t first;

        out->runs.at[out->runs.n++] = 0;
        if (log->graphs.at[g].key) /* ranks and later runs make the same graph again */
            RP_TRY(rp_map_intern(&by_key, text_hash(log->graphs.at[g].key), g, &first, err));
    }
    RP_TRY(list_calls(&lists, log, err));
    RP_TRY(list_names(out, err));
    return find_runs(out, &lists, &by_key, err);
}

void rp_compiled_release(struct rp_compiled *c)
{
    rp_map_release(&c->run_of);
    rp_map_release(&c->call_of);
    rp_map_release(&c->by_name);
    rp_vec_release(&c->runs);
}

/* ------------------------------------------------------------------ answers */

struct rp_compiled_span rp_compiled_of_span(const struct rp_compiled *c, rp_event e)
{
    struct rp_compiled_span out = {RP_NONE, RP_NONE, false};

    RP_FOR_ANCESTORS (c->trace, e) {
        uint32_t call = rp_map_get(&c->call_of, e), run = rp_map_get(&c->run_of, e);

        if (call != RP_MAP_NONE)
            out.call = call;
        if (run == RP_MAP_NONE)
            continue;
        out.in_graph = true;
        out.graph = run ? run - 1 : RP_NONE;
        return out;
    }
    return out;
}

/* The only call of a kernel in its graph, or RP_NONE. */
static uint32_t single_call(const struct rp_compiled *c, uint32_t graph, const char *name)
{
    const struct rp_torch_graph *g = &c->log->graphs.at[graph];
    uint32_t found = RP_NONE;

    for (uint32_t i = 0; i < g->ncalls; i++)
        if (!strcmp(name_of_call(c->log, g, g->first_call + i), name)) {
            if (found != RP_NONE)
                return RP_NONE;
            found = g->first_call + i;
        }
    return found;
}

/* What the name of a kernel adds to what its launch says. */
static struct rp_compiled_span by_name(const struct rp_compiled *c, struct rp_compiled_span out,
                                       rp_event e)
{
    const char *name = rp_trace_str(c->trace, c->trace->ev.name[e]);

    if (out.in_graph && out.call != RP_NONE)
        return out;
    uint32_t graph = rp_map_get(&c->by_name, text_hash(name));
    if (graph == RP_MAP_NONE || graph == MANY || (out.graph != RP_NONE && out.graph != graph))
        return out;
    return (struct rp_compiled_span){graph, single_call(c, graph, name), true};
}

struct rp_compiled_span rp_compiled_of_work(const struct rp_compiled *c, const struct rp_work *work,
                                            const struct rp_work_item *item)
{
    rp_event launch = rp_work_described_by(work, item);
    struct rp_compiled_span out = {RP_NONE, RP_NONE, false};

    return by_name(c, launch != RP_NONE ? rp_compiled_of_span(c, launch) : out, item->event);
}

struct rp_compiled_span rp_compiled_of_event(const struct rp_compiled *c, rp_event e)
{
    const struct rp_trace *t = c->trace;
    rp_link link = t->ev.link[e];
    struct rp_compiled_span out = rp_compiled_of_span(c, e);

    for (uint32_t i = link == RP_NONE ? 0 : t->links.offset[link];
         link != RP_NONE && i < t->links.offset[link + 1] && out.call == RP_NONE; i++)
        out = rp_compiled_of_span(c, t->links.member[i]);
    return by_name(c, out, e);
}
