/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Folders of compiler dumps: XLA (--xla_dump_to), TensorFlow (TF_DUMP_GRAPH_PREFIX), JAX
 * (JAX_DUMP_IR_TO), and graphs of torch.compile ("LOG!fx:1/1:forward.03.aot_joint_graph"). Hundreds
 * of files form a few modules, each dumped at several stages:
 *
 *     module_3976.jit_step.before_optimizations.txt                  \
 *     module_3976.jit_step.0021.fusion.after_cse.before_dce.txt       |  module 3976 jit_step,
 *     module_3976.jit_step.sm_9.0a_gpu_after_optimizations.hlo.pb     >  5 stages
 *     module_3976.jit_step/module.mlir                                |
 *     module_3977.jit_step.execution_0000.hlo_unoptimized_snapshot.pb/
 *
 * Only file names are used, never contents, so the list may come from a folder or a tar. `graph
 * DIR` lists the modules, `graph DIR --module X --stage Y` reads one program.
 */
#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a file is; names and summaries in name.c. */
enum rp_dump_role {
    RP_DUMP_OTHER, /* belongs to a module, but is not read */
    RP_DUMP_PROGRAM,
    RP_DUMP_EXECUTION, /* a program with the arguments of one run: a snapshot */
    RP_DUMP_DRAWING,   /* .dot, .html: a drawing of a program */
    RP_DUMP_BUFFERS,   /* buffer assignment */
    RP_DUMP_VALUES,    /* ... its values */
    RP_DUMP_LIVE_RANGE,
    RP_DUMP_MEMORY_REPORT,
    RP_DUMP_THUNKS, /* the sequence of launches */
    RP_DUMP_THUNK_METADATA,
    RP_DUMP_PASS_TIMES, /* metadata.textproto */
    RP_DUMP_FUSION_LOG, /* priority_fusion_dump.txt */
    RP_DUMP_CONFIG,     /* module, debug and compile options */
    RP_DUMP_TARGET,     /* device and topology */
    RP_DUMP_AUTOTUNE,
    RP_DUMP_LLVM,
    RP_DUMP_PTX,
    RP_DUMP_OBJECT,
    RP_DUMP_ROLES
};
const char *rp_dump_role_name(enum rp_dump_role role); /* "buffers" */

/* Stages of the compilation, in order. */
enum rp_dump_point {
    RP_DUMP_AT_SOURCE, /* StableHLO from the framework */
    RP_DUMP_AT_BEFORE,
    RP_DUMP_AT_PASS, /* number: which one */
    RP_DUMP_AT_NAMED,
    RP_DUMP_AT_AFTER,
    RP_DUMP_AT_BEYOND, /* a variant of the optimised one */
    RP_DUMP_AT_RUN,    /* number: which execution */
    RP_DUMP_AT_NONE    /* no program */
};

/* Begins the name of a graph in a log of torch.compile, whose module has slashes. */
#define RP_DUMP_FX "!fx:"

/* A parsed file name; texts are slices of it. */
struct rp_dump_name {
    enum rp_dump_role role;
    enum rp_dump_point point;
    bool sure;          /* module_n is certain; otherwise it is a guess */
    bool proto;         /* the better form of a program: text leaves large constants out */
    int64_t id;         /* of the module; -1: none */
    const char *module; /* its name; n 0: none */
    size_t module_n;
    const char *stage; /* "before_optimizations"; n 0 where it is not a program */
    size_t stage_n;
    uint32_t number;
};

/* False where the name does not come from these compilers. */
bool rp_dump_name_read(const char *path, struct rp_dump_name *out);

struct rp_dump_file {
    size_t source; /* index in the given list */
    enum rp_dump_role role;
    enum rp_dump_point point;
    uint32_t number;
    bool proto;
    const char *stage; /* "" where it is not a program */
};

struct rp_dump_stage { /* one program, in one or more files */
    const char *name;  /* "before_optimizations" */
    enum rp_dump_point point;
    uint32_t number;
    size_t source; /* the file to read: protobuf before text */
    size_t nfiles; /* that hold it */
};

struct rp_dump_module {
    const char *root; /* the folder as in the list; "" if there is none */
    const char *name; /* "" where no file has it */
    int64_t id;       /* -1: none */
    struct rp_dump_file *files;
    size_t nfiles;
    struct rp_dump_stage *stages; /* programs only, in the order of compilation */
    size_t nstages;
};

struct rp_dump {
    struct rp_dump_module *modules; /* by folder, id, name */
    size_t nmodules;
    size_t nfiles; /* of all modules: the rest of the list is not part of a dump */
};

/*
 * Groups a list of file names into modules. On GPUs, XLA gives a snapshot the next id: it is
 * assigned to the module before it where that has the same name. In the arena; names are copied.
 * Takes the time of sorting the list.
 */
enum rp_code rp_dump_index(const char *const *names, size_t n, struct rp_arena *arena,
                           struct rp_dump *out, struct rp_err *err);

/* Marks the modules that an id, a name or part of a name matches, such as one in each of several
   folders; NULL matches all. RP_USAGE with a list where none matches. */
enum rp_code rp_dump_find_modules(const struct rp_dump *dump, const char *text, bool *found,
                                  struct rp_err *err);

/* Finds a stage: "source", "before", "after", "run", the number of a pass, a name or part of a
   name; the first of several. RP_USAGE with a list if there is none. */
enum rp_code rp_dump_find_stage(const struct rp_dump_module *module, const char *text,
                                size_t *stage, struct rp_err *err);
