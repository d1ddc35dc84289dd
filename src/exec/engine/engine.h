/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What an engine is: something that runs programs, described by a const row of functions. The rows
 * are listed in exec/engines.h.
 *
 * The user names an engine "name" or "name:where" ("pjrt:/path/plugin.so"); `where` is the text
 * after the colon, or NULL. The life of a program on an engine, each step timed separately:
 *
 *     probe     is it available? (library found, version supported, device present)
 *     compile   program -> executable
 *     upload    host arrays -> arguments in the engine's memory
 *     run       once; the outputs stay in the engine's memory; returns when they are complete
 *     fetch     outputs of the last run -> host arrays
 *     release   arguments, executable
 *
 * Arguments and outputs are flat lists of arrays: parameters in the order of their numbers, tuples
 * flattened depth first, the lists of several partitions one after the other (narguments each). A
 * run must not consume an argument (PJRT: donated arguments are sent again), since runs repeat.
 * Errors: RP_MISSING if a library, symbol, device or version is not available (exit status 4);
 * RP_UNSUPPORTED if the engine does not support the program, with the name of the operation;
 * RP_FORMAT if the program or an argument is wrong. A function that is NULL is not available.
 */
#include "base/vec.h"
#include "exec/data/tensor.h"

#include <sys/types.h>

struct rp_engine_options {
    unsigned threads;       /* 0: all cores */
    unsigned partitions;    /* 0: as the program states */
    bool profile;           /* record times of instructions */
    bool tf32;              /* ref and fast: round operands of f32 products to TF32 */
    bool tf32_convolutions; /* for operands of convolutions, too */
    bool like_xla; /* ref and fast: follow XLA also where it deviates from the specification */
    uint64_t vary; /* fast: this seed decides which results of types narrower than f32 are moved to
                      a neighbour; 0: none */
    bool in_process;    /* load third-party libraries here, not in a child process */
    int64_t timeout_ns; /* give up on a run, or on a child process that does not answer, after this
                           time; 0: never */
    const char *const *plugin_options; /* "name=value", for a plugin's client */
    size_t nplugin_options;
    const char *const *xla_flags; /* "name=value", for XLA's compilation */
    size_t nxla_flags;
    const uint8_t *compile_options; /* a CompileOptionsProto; NULL: derived from the program */
    size_t ncompile_options;
    /* The arguments of upload if they are already known and live until release, so that they need
       not be sent to a child process; or NULL. */
    struct rp_tensor *const *arguments;
    size_t narguments;
};

/* The program in the forms that engines want. */
struct rp_engine_program {
    const struct rp_program *program; /* NULL if only the bytes are known */
    const char *name;                 /* file name, for messages */
    const uint8_t *bytes;             /* content of the file, decompressed */
    size_t nbytes;
    const char *format;    /* "hlo-text", "hlo-proto", "graphdef" ... */
    const uint8_t *module; /* the program's wire format: an HloModuleProto or a GraphDef; NULL if
                              the engine does not need it (wants_module) */
    size_t nmodule;
    const char *const *feeds, *const *fetches; /* GraphDef: tensors by name, "x:0" */
    size_t nfeeds, nfetches;
    size_t nvariables;        /* number of feeds, counted from the end, that are not fed to runs but
                                 assigned once, by the operation "<feed>/assign" */
    const char *saved_folder; /* folder of a SavedModel with its variables in files, or NULL */
};

/* Time of one instruction, summed over the runs since the last upload. */
struct rp_op_time {
    const char *name, *opcode; /* borrowed from the executable */
    uint32_t op;               /* in the program; RP_NONE: internal to the engine */
    uint64_t calls;
    int64_t total_ns;
};

/* One execution of one instruction, or of the whole program (opcode NULL). */
struct rp_op_span {
    const char *name, *opcode; /* borrowed from the executable */
    unsigned partition;
    int64_t begin_ns, end_ns; /* monotonic */
};
#define RP_OP_SPANS_MOST 4000000 /* per partition; further ones are only counted */
struct rp_op_spans {
    RP_VEC(struct rp_op_span) list;
    uint64_t dropped;
};

struct rp_executable {
    const struct rp_engine *engine; /* first member of what compile returns */
    size_t narguments, noutputs;    /* of one partition */
    size_t partitions;
    int64_t load_ns;  /* part of the compile time: loading a library, finding its devices */
    char device[192]; /* "NVIDIA H200 (cuda)"; "" stands for this machine's CPU */
};

struct rp_engine {
    const char *name, *summary;
    const char *get; /* how to install it; NULL if it is built in */
    bool takes_where;
    bool wants_module; /* needs the program's wire format */

    /* Writes what was found ("/…/xla_cpu_pjrt.so, PJRT 0.81") as a line to `found`. */
    enum rp_code (*probe)(const char *where, char *found, size_t cap, struct rp_err *err);
    enum rp_code (*compile)(const char *where, const struct rp_engine_program *program,
                            const struct rp_engine_options *options, struct rp_executable **out,
                            struct rp_err *err);
    /* arguments: partitions * narguments arrays that live until release. */
    enum rp_code (*upload)(struct rp_executable *exe, struct rp_tensor *const *arguments,
                           struct rp_err *err);
    /* Runs once. NULL if there is run_timed, which runs n times and measures where it runs: an
       engine may use another process, in which our own steps do not count. */
    enum rp_code (*run)(struct rp_executable *exe, struct rp_err *err);
    enum rp_code (*run_timed)(struct rp_executable *exe, size_t n, int64_t *ns, struct rp_err *err);
    /* Notes that the measured runs begin or end, for profilers that record a part of a process. */
    enum rp_code (*mark)(struct rp_executable *exe, bool begin, struct rp_err *err);
    /* Runs under the engine's own profiler; gives a trace (an XSpace, a RunMetadata), which the
       caller frees. */
    enum rp_code (*profile)(struct rp_executable *exe, unsigned runs, uint8_t **bytes, size_t *n,
                            struct rp_err *err);
    /* The process that runs it; NULL if that is this process. */
    pid_t (*process)(const struct rp_executable *exe);
    /* Gives partitions * noutputs arrays, which the caller drops. */
    enum rp_code (*fetch)(struct rp_executable *exe, struct rp_tensor **outputs,
                          struct rp_err *err);
    /* Borrowed until the next run; NULL and 0 if nothing was kept. */
    const struct rp_op_time *(*times)(struct rp_executable *exe, size_t *n);
    /* Runs and notes every instruction, in the order in which they end; may be NULL. The caller
       releases the list. */
    enum rp_code (*spans)(struct rp_executable *exe, unsigned runs, struct rp_op_spans *out,
                          struct rp_err *err);
    void (*release)(struct rp_executable *exe);
};
