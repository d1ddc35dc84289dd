/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXEC_ENGINE_ENGINE_H
#define RP_EXEC_ENGINE_ENGINE_H
/*
 * What can run a program. An engine is a const row of one table (engines.c), one file
 * engine_<name>.c each. To add one: write the row, list it in engines.c; nothing else knows it.
 *
 * The user names an engine "name" or "name:where" ("pjrt:/path/plugin.so"); `where` is what stands
 * behind the colon, or NULL. The life of a program on an engine, each step timed apart by timing.c:
 *
 *     probe     is it there? (library found, version fits, device present)
 *     compile   program -> executable
 *     upload    host arrays -> arguments where the engine wants them
 *     run       once; the outputs stay where they are; returns when they are complete
 *     fetch     outputs of the last run -> host arrays
 *     release   arguments, executable
 *
 * Arguments and outputs are flat lists of arrays: parameters in the order of their numbers, tuples
 * opened depth first; of several partitions one list behind the other (narguments each). An
 * argument must not be consumed by a run (PJRT: not donated), since runs repeat.
 * Errors: RP_MISSING where a library, symbol, device or version is not there (exit status 4);
 * RP_UNSUPPORTED where the program asks for something the engine does not know, and the message
 * names the operation; RP_FORMAT where the program or an argument is wrong. A function that is NULL
 * is not offered.
 */
#include "base/vec.h"
#include "exec/data/tensor.h"

#include <sys/types.h>

struct rp_engine_options {
    unsigned threads;    /* 0: all cores */
    unsigned partitions; /* 0: what the program says */
    bool profile;        /* keep times of instructions */
    bool tf32;           /* built-in engines: operands of f32 products are rounded to TF32 */
    bool in_process;     /* a library of others is loaded here, not in a child process */
    int64_t timeout_ns;  /* give up where a child process gives no answer for so long; 0: never */
    const char *const *plugin_options; /* "name=value", for a plugin's client */
    size_t nplugin_options;
    const char *const *xla_flags; /* "name=value", for XLA's compilation */
    size_t nxla_flags;
    const uint8_t *compile_options; /* a CompileOptionsProto; NULL: by the program */
    size_t ncompile_options;
    /* What upload will be given, where that is there already and stays until release; or NULL. A
       child process need not be sent it. */
    struct rp_tensor *const *arguments;
    size_t narguments;
};

/* The program in the forms that engines want. */
struct rp_engine_program {
    const struct rp_program *program; /* NULL where only the bytes are understood */
    const char *name;                 /* of the file, for messages */
    const uint8_t *bytes;             /* of the file as it is, decompressed */
    size_t nbytes;
    const char *format;    /* that was read: "hlo-text", "hlo-proto", "graphdef" */
    const uint8_t *module; /* the program's wire form: of HLO an HloModuleProto, of TensorFlow a
                              GraphDef; NULL where the engine does not want one (wants_module) */
    size_t nmodule;
    const char *const *feeds, *const *fetches; /* of a GraphDef: tensors by name, "x:0" */
    size_t nfeeds, nfetches;
    size_t nvariables; /* so many of the feeds, the last ones, are not fed to runs but assigned
                          once, by the operation "<feed's>/assign" */
    const char *saved_folder; /* of a SavedModel whose variables stand in files there; or NULL */
};

/* Time of one instruction, summed over the runs since the last upload. */
struct rp_op_time {
    const char *name, *opcode; /* borrowed from the executable */
    uint32_t op;               /* of the program; RP_NONE where the engine's own */
    uint64_t calls;
    int64_t total_ns;
};

/* One execution of one instruction, or of the whole program (opcode NULL). */
struct rp_op_span {
    const char *name, *opcode; /* borrowed from the executable */
    unsigned partition;
    int64_t begin_ns, end_ns; /* monotonic */
};
#define RP_OP_SPANS_MOST 4000000 /* of one partition; later ones are counted only */
struct rp_op_spans {
    RP_VEC(struct rp_op_span) list;
    uint64_t dropped;
};

struct rp_executable {
    const struct rp_engine *engine; /* first member of what compile makes */
    size_t narguments, noutputs;    /* of one partition */
    size_t partitions;
    int64_t load_ns;  /* of compile's time: loading a library and finding its devices */
    char device[192]; /* what it runs on, "NVIDIA H200 (cuda)"; "" where that is this machine */
};

struct rp_engine {
    const char *name, *summary;
    const char *get; /* how a user gets it; NULL: it is always there */
    bool takes_where;
    bool wants_module; /* the program's wire form must be given */

    /* What was found ("/…/xla_cpu_pjrt.so, PJRT 0.81") as a line in `found`. */
    enum rp_code (*probe)(const char *where, char *found, size_t cap, struct rp_err *err);
    enum rp_code (*compile)(const char *where, const struct rp_engine_program *program,
                            const struct rp_engine_options *options, struct rp_executable **out,
                            struct rp_err *err);
    /* arguments: partitions * narguments arrays that live until release. */
    enum rp_code (*upload)(struct rp_executable *exe, struct rp_tensor *const *arguments,
                           struct rp_err *err);
    /* Once, or NULL where there is run_timed: n times, timed where it runs (an engine may do it in
       another process, where our own steps do not count). */
    enum rp_code (*run)(struct rp_executable *exe, struct rp_err *err);
    enum rp_code (*run_timed)(struct rp_executable *exe, size_t n, int64_t *ns, struct rp_err *err);
    /* The measured runs begin, or end: for profilers that look at a part of a process. */
    enum rp_code (*mark)(struct rp_executable *exe, bool begin, struct rp_err *err);
    /* Runs under the engine's own profiler: a trace (an XSpace, a RunMetadata), which the caller
       frees. */
    enum rp_code (*profile)(struct rp_executable *exe, unsigned runs, uint8_t **bytes, size_t *n,
                            struct rp_err *err);
    /* The process that runs it, or NULL: this one. */
    pid_t (*process)(const struct rp_executable *exe);
    /* partitions * noutputs arrays, which the caller drops. */
    enum rp_code (*fetch)(struct rp_executable *exe, struct rp_tensor **outputs,
                          struct rp_err *err);
    /* Borrowed until the next run; NULL and 0 where nothing was kept. */
    const struct rp_op_time *(*times)(struct rp_executable *exe, size_t *n);
    /* Runs with every instruction noted, in the order they ended; or NULL. The caller releases the
       list. */
    enum rp_code (*spans)(struct rp_executable *exe, unsigned runs, struct rp_op_spans *out,
                          struct rp_err *err);
    void (*release)(struct rp_executable *exe);
};

#endif
