/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Connects measured time to lines of the program that torch.compile compiled. A profile names the
 * key of a graph around each of its runs; the log of the compiler has the same key, with the calls
 * of the graph and their lines:
 *
 *     ## Call CompiledFxGraph f4fw5x… ##         graph 1/1 forward
 *       aten::addmm                              1st call of aten::addmm     program.py:8
 *       triton_per_fused_native_layer_norm_0     1st call of it              program.py:8
 *       aten::addmm                              2nd call of aten::addmm     program.py:10
 *         kernel, 21 us                  ----------------------------------------^
 */
#include "base/hash.h"
#include "facts/work/work.h"
#include "formats/torch_trace/torch_trace.h"
#include "trace/trace.h"

/* What a name says of a span. PyTorch's profiler records all of them; recorders that see operators
   only have the functions, and no keys. */
enum rp_compiled_name {
    RP_COMPILED_OTHER,
    RP_COMPILED_BY_KEY,   /* "## Call CompiledFxGraph f4fw5x… ##": a run of one graph */
    RP_COMPILED_REGION,   /* "Torch-Compiled Region: 1/0": a call of what a compile made */
    RP_COMPILED_FORWARD,  /* "CompiledFunction": the forward graph runs in it */
    RP_COMPILED_BACKWARD, /* "CompiledFunctionBackward" */
};
enum rp_compiled_name rp_compiled_name(const char *name);

/* The meaning of a span of the host in the log. */
struct rp_compiled_span {
    uint32_t graph; /* index in the log; RP_NONE if it is not in a run of a known graph */
    uint32_t
        call; /* index in the log; RP_NONE if it is not a call of the graph, or not known which */
    bool in_graph; /* it is in a run of some graph */
};

struct rp_compiled {
    const struct rp_trace *trace;
    const struct rp_torch_trace *log;
    struct rp_map
        run_of; /* from event of a run to graph + 1; 0 for a graph that is not in the log */
    struct rp_map call_of; /* from event of an operator to call */
    struct rp_map by_name; /* from hash of a generated kernel's name to graph, or MANY */
    RP_VEC(uint32_t) runs; /* by graph of the log */
    uint64_t unknown_runs; /* runs of graphs that are not in the log */
};

/* Reads the logs in `dumps`; if that is NULL, those beside the trace at `path` (may be NULL), if
   runs of compiled graphs were recorded. There may be none. `log` must be initialised. */
enum rp_code rp_compiled_read_logs(struct rp_torch_trace *log, const struct rp_trace *trace,
                                   const char *path, const char *dumps, struct rp_err *err);

/* Finds the runs and calls of a trace. Without runs by key, a function in a region is a run of the
   graph that the region's compile made for its direction. Both must outlive `out`; release it also
   after a failure. Linear in the events. */
enum rp_code rp_compiled_init(struct rp_compiled *out, const struct rp_trace *trace,
                              const struct rp_torch_trace *log, struct rp_err *err);
void rp_compiled_release(struct rp_compiled *c);

/* Returns the meaning of a span of the host, by itself or through a span around it. */
struct rp_compiled_span rp_compiled_of_span(const struct rp_compiled *c, rp_event e);
/* Does the same for an item of work: by its launch, otherwise by the name of its kernel if only one
   graph has it (kernels of replayed CUDA graphs). */
struct rp_compiled_span rp_compiled_of_work(const struct rp_compiled *c, const struct rp_work *work,
                                            const struct rp_work_item *item);

/* Does the same for any event: by itself, otherwise by an event with which it is linked, otherwise
   by its name. */
struct rp_compiled_span rp_compiled_of_event(const struct rp_compiled *c, rp_event e);
