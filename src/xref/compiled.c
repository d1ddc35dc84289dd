/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds runs of compiled graphs in a trace, and their calls. Directly below the span of a run are
 * the operators that the generated code calls, in its order: the k-th with a name is the k-th call
 * of that name in the code. The scheduler of the compiler moves operators, so their order in the
 * graph tells nothing.
 */
#include "xref/compiled.h"

#include "base/each.h"
#include "base/names.h"
#include "base/text.h"
#include "facts/arg_keys.h"
#include "facts/work/ancestors.h"

#include <string.h>

#define MANY (UINT32_MAX - 1) /* several graphs have a kernel of this name */

static const char run_begin[] = "## Call CompiledFxGraph ";
static const char region_begin[] = "Torch-Compiled Region: ";

/* ------------------------------------------------------------------ names */

enum rp_compiled_name rp_compiled_name(const char *name)
{
    if (rp_text_begins(name, run_begin))
        return RP_COMPILED_BY_KEY;
    if (rp_text_begins(name, region_begin))
        return RP_COMPILED_REGION;
    if (!strcmp(name, "CompiledFunction"))
        return RP_COMPILED_FORWARD;
    return strcmp(name, "CompiledFunctionBackward") ? RP_COMPILED_OTHER : RP_COMPILED_BACKWARD;
}

static bool has_name(const struct rp_trace *trace, bool keys_only)
{
    for (rp_str s = 0; s < trace->str.n; s++) {
        enum rp_compiled_name is = rp_compiled_name(rp_trace_str(trace, s));

        if (is == RP_COMPILED_BY_KEY || (is && !keys_only))
            return true;
    }
    return false;
}

enum rp_code rp_compiled_read_logs(struct rp_torch_trace *log, const struct rp_trace *trace,
                                   const char *path, const char *dumps, struct rp_err *err)
{
    if (dumps)
        return rp_torch_trace_open(log, dumps, NULL, err);
    if (!path || !has_name(trace, false))
        return RP_OK;
    return rp_torch_trace_beside(
        log, path, trace->rank == RP_NO_RANK ? RP_TORCH_NO_ID : trace->rank, NULL, err);
}

/* Returns the hash of the key in "## Call CompiledFxGraph f4fw5x… ##". */
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

/* The next call with the same name for each call of a graph, and the first one of each name. */
struct call_lists {
    struct rp_map first;    /* from hash of graph and name to call */
    RP_VEC(uint32_t) next;  /* by call of the log */
    struct rp_map progress; /* for the current run: from hash of the name to the next call */
};

/* Returns its name in a profile. */
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

/* Matches the operators directly below a run, which follow it on its track. */
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

/* Finds runs in a trace: by the key of the graph, or by the compile whose region they lie in. */
struct run_finder {
    struct rp_compiled *c;
    struct call_lists lists;
    struct rp_map by_key;     /* hash of a key -> graph */
    struct rp_map by_compile; /* hash of a compile's id and a direction -> graph */
    struct rp_map forward_of; /* sequence number -> event of the forward function */
    struct rp_arg_key sequence;
};

static enum rp_code add_run(struct run_finder *f, rp_event e, uint32_t graph, struct rp_err *err)
{
    bool known = graph != RP_MAP_NONE && graph != MANY;

    RP_TRY(rp_map_put(&f->c->run_of, e, known ? graph + 1 : 0, err));
    if (!known) {
        f->c->unknown_runs++;
        return RP_OK;
    }
    f->c->runs.at[graph]++;
    return match_run(f->c, &f->lists, e, graph, err);
}

static uint64_t key_of_compile(uint64_t id, enum rp_torch_direction direction)
{
    return rp_hash_join(direction, id);
}

/* The hash of the id in "Torch-Compiled Region: 1/0" around an event; 0: there is none. */
static uint64_t region_of(const struct rp_trace *trace, rp_event e)
{
    RP_FOR_ANCESTORS (trace, e) {
        const char *name = rp_trace_str(trace, trace->ev.name[e]);

        if (rp_compiled_name(name) == RP_COMPILED_REGION) {
            const char *id = name + sizeof region_begin - 1;

            return rp_hash_bytes(id, strcspn(id, " "));
        }
    }
    return 0;
}

/* A function in a region is a run of its forward graph. The backward pass is not in the region; its
   function has the sequence number of the forward function. */
static enum rp_code add_function(struct run_finder *f, rp_event e, bool forward, struct rp_err *err)
{
    int64_t number;
    bool numbered = rp_arg_key_int(&f->sequence, e, &number);
    uint64_t id = forward ? region_of(f->c->trace, e) : 0;

    if (!forward) {
        uint32_t known = numbered ? rp_map_get(&f->forward_of, (uint64_t)number) : RP_MAP_NONE;

        id = known == RP_MAP_NONE ? 0 : region_of(f->c->trace, known);
    } else if (numbered) {
        RP_TRY(rp_map_put(&f->forward_of, (uint64_t)number, e, err));
    }
    return add_run(f, e,
                   rp_map_get(&f->by_compile, key_of_compile(id, forward ? RP_TORCH_IS_FORWARD
                                                                         : RP_TORCH_IS_BACKWARD)),
                   err);
}

/* The code of a graph for inference has no function of its own: the region is its run. */
static enum rp_code add_region(struct run_finder *f, rp_event e, struct rp_err *err)
{
    uint32_t graph = rp_map_get(&f->by_compile,
                                key_of_compile(region_of(f->c->trace, e), RP_TORCH_IS_INFERENCE));

    return graph == RP_MAP_NONE ? RP_OK : add_run(f, e, graph, err);
}

/* Forward functions come before backward ones: these are on other threads, which may be listed
   first. */
static enum rp_code find_runs(struct run_finder *f, bool by_key, bool backward, struct rp_err *err)
{
    const struct rp_trace *t = f->c->trace;

    for (rp_event e = 0; e < t->ev.n; e++) {
        enum rp_compiled_name is = rp_compiled_name(rp_trace_str(t, t->ev.name[e]));

        if (!is || t->ev.dur_ns[e] < 0 || t->ev.kind[e] == RP_KIND_GPU_ANNOTATION)
            continue;
        if (by_key) {
            if (is == RP_COMPILED_BY_KEY && t->ev.kind[e] == RP_KIND_ANNOTATION)
                RP_TRY(add_run(f, e, rp_map_get(&f->by_key, key_of_run(t, e)), err));
        } else if (backward || is == RP_COMPILED_BACKWARD) {
            if (backward && is == RP_COMPILED_BACKWARD)
                RP_TRY(add_function(f, e, false, err));
        } else if (is == RP_COMPILED_FORWARD) {
            RP_TRY(add_function(f, e, true, err));
        } else if (is == RP_COMPILED_REGION) {
            RP_TRY(add_region(f, e, err));
        }
    }
    return RP_OK;
}

static void run_finder_release(struct run_finder *f)
{
    RP_EACH(rp_map_release, &f->lists.first, &f->lists.progress);
    rp_vec_release(&f->lists.next);
    RP_EACH(rp_map_release, &f->by_key, &f->by_compile, &f->forward_of);
    rp_arg_key_release(&f->sequence);
}

/* The graph of a compile by its id. Ranks make equal graphs; where the log of one process has an id
   again, after torch._dynamo.reset(), the id does not tell which of its graphs ran. */
static enum rp_code list_id(struct run_finder *f, uint32_t g, struct rp_err *err)
{
    const struct rp_torch_trace *log = f->c->log;
    const struct rp_torch_graph *graph = &log->graphs.at[g];
    const struct rp_torch_compile *compile = &log->compiles.at[graph->compile];
    uint64_t key =
        key_of_compile(text_hash(compile->id), (enum rp_torch_direction)graph->direction);
    uint32_t first;

    RP_TRY(rp_map_intern(&f->by_compile, key, g, &first, err));
    if (first == g || first == MANY ||
        log->compiles.at[log->graphs.at[first].compile].log != compile->log)
        return RP_OK;
    return rp_map_put(&f->by_compile, key, MANY, err);
}

/* Where ranks and later runs make a graph with the same key again, the first is taken. */
static enum rp_code list_graphs(struct run_finder *f, struct rp_err *err)
{
    const struct rp_torch_trace *log = f->c->log;

    for (uint32_t g = 0; g < log->graphs.n; g++) {
        const char *key = log->graphs.at[g].key;
        uint32_t first;

        RP_TRY(rp_vec_push(&f->c->runs, 0, err));
        if (key)
            RP_TRY(rp_map_intern(&f->by_key, text_hash(key), g, &first, err));
        RP_TRY(list_id(f, g, err));
    }
    return RP_OK;
}

enum rp_code rp_compiled_init(struct rp_compiled *out, const struct rp_trace *trace,
                              const struct rp_torch_trace *log, struct rp_err *err)
{
    RP_SCOPED(run_finder_release) struct run_finder f = {.c = out};

    *out = (struct rp_compiled){.trace = trace, .log = log};
    RP_TRY(list_graphs(&f, err));
    RP_TRY(list_calls(&f.lists, log, err));

    /* Finds graphs by the names of their kernels. */
    for (uint32_t g = 0; g < out->log->graphs.n; g++)
        for (uint32_t k = 0; k < out->log->graphs.at[g].nkernels; k++) {
            const struct rp_torch_kernel *kernel =
                &out->log->kernels.at[out->log->graphs.at[g].first_kernel + k];
            uint64_t name = text_hash(kernel->name);
            uint32_t known = rp_map_get(&out->by_name, name);

            if (!kernel->op)
                RP_TRY(rp_map_put(&out->by_name, name, known == RP_MAP_NONE ? g : MANY, err));
        }

    if (has_name(trace, true))
        return find_runs(&f, true, false, err);
    if (!has_name(trace, false))
        return RP_OK;
    RP_TRY(rp_arg_key_init(&f.sequence, trace, "Sequence number", err));
    RP_TRY(find_runs(&f, false, false, err));
    return find_runs(&f, false, true, err);
}

void rp_compiled_release(struct rp_compiled *c)
{
    RP_EACH(rp_map_release, &c->run_of, &c->call_of, &c->by_name);
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

/* Returns the only call of a kernel in its graph, or RP_NONE. */
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

/* Adds to the facts of a kernel's launch those of its name. */
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
