/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads what torch.compile did from the structured logs of the processes of a run (TORCH_TRACE). A
 * compile is one translation of a function by Dynamo; it makes at most a graph for the forward pass
 * and one for the backward pass, each of which Inductor turns into a list of calls:
 *
 *     compile 1/0 forward, model.py:7
 *         graph forward  f4fw5x…       calls: addmm, triton_poi_fused_gelu_2, mm, …  -> lines
 *         graph backward fd7k6t…
 *
 * The key of a graph is the one in the FX graph cache. Profiles name it around each run of the
 * graph, and so lead from measured time to these calls, and on to lines of the program.
 */
#include "formats/torch_trace/records.h"

#include "base/strtab.h"
#include "base/vec.h"
#include "io/sources.h"

/* ---- lines ---- */

struct rp_torch_place { /* a line of Python */
    const char *path, *function;
    int64_t line;
};

/* How many nodes of a graph come from a line. */
struct rp_torch_share {
    uint32_t place, nodes;
};

/* Whether a file belongs to Python or to an installed package, not to the user's program. */
bool rp_torch_is_library(const char *path);

/* ---- graphs ---- */

enum rp_torch_direction {
    RP_TORCH_IS_UNKNOWN,
    RP_TORCH_IS_FORWARD,
    RP_TORCH_IS_BACKWARD,
    RP_TORCH_IS_INFERENCE,
    RP_TORCH_DIRECTIONS
};
extern const char *const rp_torch_direction_names[RP_TORCH_DIRECTIONS];

enum rp_torch_cache { RP_TORCH_NO_CACHE, RP_TORCH_MISS, RP_TORCH_HIT, RP_TORCH_BYPASS };
extern const char *const rp_torch_cache_names[]; /* NULL: none */

/* What tells which lines a call comes from. */
enum rp_torch_basis {
    RP_TORCH_NO_LINE,
    RP_TORCH_BY_HANDLE,   /* provenance that Inductor recorded, for this very call */
    RP_TORCH_BY_FRAGMENT, /* the nodes that the comment above the kernel lists */
    RP_TORCH_BY_NODE,     /* the last of the nodes that the comment above the call lists */
    RP_TORCH_BY_GRAPH,    /* it is the only kernel of its graph, so all nodes are its own */
    RP_TORCH_BY_CALLER /* its nodes have no line: the function that was compiled, or who called it
                        */
};
extern const char *const rp_torch_basis_names[]; /* NULL: no line */

struct rp_torch_kernel {
    const char *name; /* "triton_poi_fused_gelu_2", "extern_kernels.addmm" */
    const char *op;   /* for an extern kernel, its name in profiles: "aten::addmm"; else NULL */
    int64_t calls;
    /* What a generated kernel reads and writes, in the form in which PyTorch's profiler records the
       inputs of an operator: "[8,128,512],[512]" and "float","float". NULL if the log does not say
       it, or sizes are not constants. */
    const char *dims, *types;
};

struct rp_torch_call {
    uint32_t kernel;        /* number of the kernel in its graph, from 0 */
    double outer, elements; /* sizes of the loops of a generated kernel; 0: not stated */
    uint32_t first, n;      /* its lines, in rp_torch_trace.shares */
    uint8_t basis;          /* enum rp_torch_basis */
};

struct rp_torch_graph {
    uint32_t compile;
    uint8_t direction, cache; /* enum rp_torch_direction, enum rp_torch_cache */
    const char *key;          /* key in the FX graph cache; NULL: not known */
    const char *file;         /* path of the generated code; NULL: not known */
    uint32_t first_kernel, nkernels, first_call, ncalls;
};

/* ---- compiles ---- */

/* Times in microseconds as the log states them, each one inside the one before; RP_TORCH_NO_ID: not
   stated. */
struct rp_torch_times {
    int64_t start_us, end_us, duration_us;
    int64_t dynamo_us, aot_us, inductor_us, codegen_us, kernels_us;
    int64_t pre_grad_us, joint_us, post_grad_us, gc_us, autotune_us;
    int64_t restart_us; /* time of attempts that were given up */
    int64_t logging_us;
};

struct rp_torch_break {
    uint32_t compile;
    const char *gb;                 /* number of the kind, "GB0124", or NULL */
    const char *kind;               /* "Unsupported Tensor.item() call …" */
    const char *reason;             /* the first line of the reason that the log gives */
    const char *explanation, *hint; /* or NULL */
    struct rp_torch_place at;       /* where Dynamo stopped; path NULL: not known */
    struct rp_torch_place user;     /* the last line of the user's program on the way there */
    bool skips;                     /* the whole function runs eagerly */
    int64_t attempt;
};

struct rp_torch_compile {
    uint32_t log;
    const char *id;     /* "1/0" */
    int64_t occurrence; /* ids repeat after torch._dynamo.reset(): 0, 1, … */
    int64_t frame,
        number; /* parts of the id; RP_TORCH_NO_ID for a graph of compiled autograd alone */
    const char *function, *path, *backend_error;
    int64_t line;
    struct rp_torch_place caller; /* in the stack around it, the last line of the user's program */
    int64_t ops, guards, nodes, inputs, attempts, guard_us; /* RP_TORCH_NO_ID if not stated */
    struct rp_torch_times forward, backward;
    int64_t start_ns, end_ns; /* since 1970; RP_TORCH_NO_ID if not stated */
    int64_t autotune_us;      /* of its first runs */
    uint8_t fx, aot;          /* enum rp_torch_cache of the forward graph */
    const char **reasons;     /* for each entry in the cache, why it did not fit */
    size_t nreasons;
    const char *failed;     /* NULL: it did not */
    const char *cudagraphs; /* why CUDA graphs were skipped, or NULL */
    struct rp_torch_place failed_at;
    int64_t nbreaks;
    bool started;    /* Dynamo began to trace it, which it does not do if the limit of compiles was
                        reached */
    bool measured;   /* its metrics were written: it ended */
    bool dynamic;    /* a size of its graph is not a constant */
    bool limited;    /* the limit of compiles was reached, so it runs eagerly from now on */
    uint64_t record; /* the first of it */
};

/* ---- all of it ---- */

struct rp_torch_log {
    const char *name;
    int64_t pid, rank; /* RP_TORCH_NO_ID: not known */
    const char *version;
    struct rp_torch_counts counts;
};

struct rp_torch_unknown {
    const char *kind;
    int64_t records;
};

/* Gets the texts of graphs as they come. name is "aot_joint_graph", or for an artifact its own
   name; "inductor_output_code" is the code that was made of the graph before it. */
struct rp_torch_texts {
    void *user;
    enum rp_code (*text)(void *user, uint32_t compile, const char *name, struct rp_snip text,
                         struct rp_err *err);
};

struct rp_torch_trace {
    const struct rp_torch_texts *texts; /* NULL: nobody wants them */
    struct rp_arena arena;
    RP_VEC(struct rp_torch_log) logs;
    RP_VEC(struct rp_torch_compile) compiles; /* by log, in the order of their first record */
    RP_VEC(struct rp_torch_graph) graphs;     /* in the order in which they were made */
    RP_VEC(struct rp_torch_kernel) kernels;
    RP_VEC(struct rp_torch_call) calls;
    RP_VEC(struct rp_torch_share) shares;
    RP_VEC(struct rp_torch_place) places;
    RP_VEC(struct rp_torch_break) breaks;
    RP_VEC(struct rp_torch_unknown) unknown; /* kinds of records that the reader does not know */
    struct rp_strtab place_keys;             /* from "path line" to place + 1 */
};

void rp_torch_trace_init(struct rp_torch_trace *trace);
void rp_torch_trace_release(struct rp_torch_trace *trace);

/* The number of a line, which is added if it is new. function may be empty. */
enum rp_code rp_torch_place(struct rp_torch_trace *trace, struct rp_snip path, int64_t line,
                            struct rp_snip function, uint32_t *out, struct rp_err *err);

/* Adds the log of one process, whose name may say its rank. limits may be NULL for the defaults. */
enum rp_code rp_torch_trace_read(struct rp_torch_trace *trace, struct rp_input *in,
                                 const struct rp_limits *limits, struct rp_err *err);

/* Adds a source if it is a log. */
enum rp_code rp_torch_trace_add(struct rp_torch_trace *trace, struct rp_sources *sources, size_t i,
                                const struct rp_limits *limits, bool *is, struct rp_err *err);
/* Adds those sources that are logs, in their order, and marks them in `is`, which may be NULL. A
   damaged log ends at the damage. */
enum rp_code rp_torch_trace_find(struct rp_torch_trace *trace, struct rp_sources *sources,
                                 const struct rp_limits *limits, bool *is, struct rp_err *err);
/* Does the same for a file, a folder or a tar. */
enum rp_code rp_torch_trace_open(struct rp_torch_trace *trace, const char *path,
                                 const struct rp_limits *limits, struct rp_err *err);

/* Adds the logs beside a file: those in its folder, by their names, and its folder "torch_trace";
   for a folder, those inside it. There may be none. rank: logs whose names have another rank are
   left out; RP_TORCH_NO_ID leaves none out. */
enum rp_code rp_torch_trace_beside(struct rp_torch_trace *trace, const char *path, int64_t rank,
                                   const struct rp_limits *limits, struct rp_err *err);

/* The rank in the name of a log, "dedicated_log_torch_trace_rank_3_ab_cdefg.log", or
   RP_TORCH_NO_ID. */
int64_t rp_torch_rank_of_name(const char *name);

/* Replaces the logs among the sources by their graphs, as torch.fx prints them: a source for each
   stage of a compilation, "LOG!fx:1/1:forward.03.aot_joint_graph". A log without graphs stays. */
enum rp_code rp_torch_graphs_list(struct rp_sources *sources, const struct rp_limits *limits,
                                  struct rp_err *err);

/* ---- guards ---- */

struct rp_torch_guard { /* why an entry of the cache did not fit */
    const char *text;   /* as in the log */
    const char *entry;  /* id of that compile, "1/0"; NULL: not stated */
    const char *kind;   /* "size", "dtype", "constant" … */
    const char *what;   /* "x: size[1] 8 -> 12" */
    const char *avoid;  /* what to do about it */
    const char *path;   /* path of the line that made the guard, or NULL */
    int64_t line;
};

/* dynamic: the compile that the failure led to takes any size. Texts are in the arena, or point
   into `reason`. */
void rp_torch_guard_read(const char *reason, bool dynamic, struct rp_arena *arena,
                         struct rp_torch_guard *out);
/* Chooses the guard of a compile that tells most about the cause; n is not 0. */
size_t rp_torch_guard_main(const struct rp_torch_guard *guards, size_t n);

/* The phases of a compile, forward and backward together, each without those inside it; they add up
   to the time that it took. */
enum rp_torch_phase {
    RP_TORCH_IN_RESTARTS, /* attempts that were given up, at graph breaks */
    RP_TORCH_IN_DYNAMO,
    RP_TORCH_IN_PASSES, /* passes over graphs: pre-grad, joint, post-grad */
    RP_TORCH_IN_AOT,
    RP_TORCH_IN_INDUCTOR,
    RP_TORCH_IN_CODEGEN,
    RP_TORCH_IN_KERNELS, /* compilers of the generated code: Triton, g++ */
    RP_TORCH_PHASES
};
extern const char *const rp_torch_phase_names[RP_TORCH_PHASES];
void rp_torch_phases(const struct rp_torch_compile *compile, int64_t out_ns[RP_TORCH_PHASES]);
