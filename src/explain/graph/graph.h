/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The question `graph`: what a program consists of and what it costs (summary.c), which outputs
 * reuse the memory of inputs (aliases.c), parts of it as lines of text (list.c), the programs of a
 * folder of compiler dumps (folder.c), and pictures (pictures.c, heat.c).
 */
#include "dataset/load_program.h"
#include "program/structure.h"
#include "result/result.h"
#include "result/settings.h"
#include "xref/comm.h"

/* ---- the answer ---- */

struct rp_graph_opcode {
    const char *name;
    int64_t count;
};

struct rp_graph_line { /* of the user's code */
    const char *place; /* "model.py:12 in forward" */
    int64_t instructions, flops;
};

struct rp_graph_program { /* one of several */
    const char *file, *format, *name, *hash;
    const char *stage; /* in a dump folder: "before_optimizations"; else NULL */
    int64_t module;    /* in a dump folder: the id; RP_ABSENT_I64: none */
    int64_t instructions, flops;
};

struct rp_graph_module { /* of a dump folder */
    const char *folder, *name;
    int64_t id; /* RP_ABSENT_I64: none */
    int64_t files, stages, passes, executions;
    int64_t instructions_before, instructions_after,
        flops;        /* RP_ABSENT_I64 if there is no such program */
    const char *hash; /* hash of the last stage, or NULL */
    size_t nkinds;
    const char **kinds; /* what else there is: "buffers", "thunks" */
};

struct rp_graph_alias { /* rp_graph_alias: an output that reuses the memory of an input */
    int64_t parameter, output;
    const char *name, *shape; /* of the input */
    int64_t size_bytes;
    const char *kind; /* "may" or "must" */
};

struct rp_graph_answer {
    const char *format, *name, *hash;
    int64_t computations, instructions, parameters;
    int64_t flops, transcendentals, bytes;
    int64_t parameter_bytes, constant_bytes;
    size_t nopcodes, nclusters, nlines, nlisting, nprograms, nmodules, naliases;
    struct rp_graph_opcode *opcodes;  /* most frequent first */
    struct rp_graph_opcode *clusters; /* clusters of TensorFlow's auto-clustering: name and nodes */
    struct rp_graph_line *lines;      /* the 10 lines with most flops */
    int64_t sent_bytes;               /* bytes sent by collectives; RP_ABSENT_I64: there are none */
    size_t ncommunication, ncommunication_lines;
    struct rp_comm_sum *communication;       /* by collective and axis, largest first */
    struct rp_comm_sum *communication_lines; /* by line, most first */
    struct rp_graph_program *programs;       /* if more than one was given; else empty */
    int64_t aliased, aliased_bytes;          /* RP_ABSENT_I64 if not known */
    struct rp_graph_alias *aliases;          /* ordered by the number of the input */
    struct rp_graph_module *modules;         /* modules of dump folders; else empty */
    const char **listing;                    /* what --tree, --near, --path and --grep found */
};

/* ---- the summary of one program ---- */

/* Fills all but aliases and the listing; texts and lists are in the arena. */
enum rp_code rp_graph_summarize(const struct rp_program *p, const char *format,
                                struct rp_arena *arena, struct rp_graph_answer *out,
                                struct rp_err *err);

/*
 * Fills aliases, aliased and aliased_bytes from the module (HLO's input_output_alias). numbers: n
 * pairs of input and output from elsewhere (a Ratex alias dump), for programs that do not state
 * them; in lazy graphs, input i is the i-th device_data of the newest graph and output k its
 * ROOT=k. RP_USAGE if there is no such input or output.
 */
enum rp_code rp_graph_list_aliases(const struct rp_program *p, const uint32_t (*numbers)[2],
                                   size_t n, struct rp_arena *arena, struct rp_graph_answer *out,
                                   struct rp_err *err);

/* ---- programs of a folder ---- */

struct rp_graph_pick { /* rp_graph_pick: a program to read, and its place in the dump */
    const struct rp_dump_module *module; /* NULL: the file is not part of a dump */
    const struct rp_dump_stage *stage;
};

struct rp_graph_folder {
    struct rp_dump dump;
    bool *wanted;    /* a mark for each module */
    size_t *sources; /* sources of the programs to read */
    struct rp_graph_pick *picks;
    size_t n;
};

/*
 * Groups the files into modules and selects the programs to read: the given stage of the modules
 * that match `module`, or without a stage, all stages (passes and later executions only if a module
 * is named). Both may be NULL. Allocates in the arena.
 */
enum rp_code rp_graph_folder_open(const struct rp_dataset *dataset, const char *module,
                                  const char *stage, struct rp_arena *arena,
                                  struct rp_graph_folder *out, struct rp_err *err);

/* Reads all picks and fills the result's modules and programs. */
enum rp_code rp_graph_folder_list(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                  const struct rp_graph_folder *folder, struct rp_result *result,
                                  struct rp_err *err);

/* ---- pictures ---- */

struct rp_graph_heat {   /* rp_graph_heat: measured times; in the arena */
    int64_t *time_ns;    /* by operation, for one run; negative: not measured */
    int64_t matched;     /* operations that were */
    const char *time_of; /* "trace.json.gz, mean of 5 runs" */
};

/* Joins the kernels of a trace with the instructions of a program. RP_USAGE if none match. */
enum rp_code rp_graph_heat_read(struct rp_ctx *ctx, const struct rp_program *p, const char *path,
                                struct rp_arena *arena, struct rp_graph_heat *out,
                                struct rp_err *err);

/* Writes what the settings html, svg, dot, model-explorer and tensorboard ask for. wanted: the
   operations in a Graphviz file; NULL for all. */
enum rp_code rp_graph_draw(struct rp_ctx *ctx, const struct rp_program *p, const bool *wanted,
                           const struct rp_settings *settings, struct rp_arena *arena,
                           struct rp_err *err);

/* Whether the picks are stages of one module; draws the page of all of them. */
bool rp_graph_is_history(const struct rp_graph_folder *folder);
enum rp_code rp_graph_draw_history(const struct rp_dataset *dataset,
                                   const struct rp_graph_folder *folder, const char *path,
                                   struct rp_arena *arena, struct rp_err *err);

/* ---- parts of a program, one operation a line ---- */

struct rp_listing {
    size_t n, cap;
    const char **lines; /* in the arena */
    bool *ops;          /* marks of the operations that were listed; NULL: none so far */
    size_t left_out;    /* number of lines beyond the limit */
};

/* The tree of computations below the entry with their costs; identical ones are listed once. */
enum rp_code rp_list_tree(const struct rp_program *p, struct rp_arena *arena,
                          struct rp_listing *out, struct rp_err *err);
/* An operation with its operands and users, up to `hops` steps away; "OP N" overrides hops. */
enum rp_code rp_list_near(const struct rp_program *p, const char *name, unsigned hops,
                          struct rp_arena *arena, struct rp_listing *out, struct rp_err *err);
/* The shortest data-flow path between two operations, "A,B" or "A B". */
enum rp_code rp_list_path(const struct rp_program *p, const char *ends, struct rp_arena *arena,
                          struct rp_listing *out, struct rp_err *err);
/* Operations that meet all conditions of "op=dot shape~bf16 line=a.py:7 name~x scope~y". */
enum rp_code rp_list_grep(const struct rp_program *p, const char *words, struct rp_arena *arena,
                          struct rp_listing *out, struct rp_err *err);
