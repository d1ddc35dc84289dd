/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_GRAPH_GRAPH_H
#define RP_EXPLAIN_GRAPH_GRAPH_H
/* The summary of a program: what it is called, what it consists of, what it costs. */
#include "program/structure.h"
#include "result/result.h"

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
    const char *stage; /* of a dump folder: "before_optimizations"; else NULL */
    int64_t module;    /* ... the id; RP_ABSENT_I64: none */
    int64_t instructions, flops;
};

struct rp_graph_module { /* of a dump folder */
    const char *folder, *name;
    int64_t id; /* RP_ABSENT_I64: none */
    int64_t files, stages, passes, executions;
    int64_t instructions_before, instructions_after, flops; /* RP_ABSENT_I64: no such program */
    const char *hash;                                       /* of the last stage; or NULL */
    size_t nkinds;
    const char **kinds; /* what else is there: "buffers", "thunks" */
};

struct rp_graph_alias { /* an output that takes an input's memory */
    int64_t parameter, output;
    const char *name, *shape; /* of the input */
    int64_t size_bytes;
    const char *kind; /* "may" or "must" */
};

struct rp_graph {
    const char *format, *name, *hash;
    int64_t computations, instructions, parameters;
    int64_t flops, transcendentals, bytes;
    int64_t parameter_bytes, constant_bytes;
    size_t nopcodes, nclusters, nlines, nlisting, nprograms, nmodules, naliases;
    struct rp_graph_opcode *opcodes;   /* most frequent first */
    struct rp_graph_opcode *clusters;  /* of TensorFlow's auto-clustering: name and nodes */
    struct rp_graph_line *lines;       /* most flops first, at most 10 */
    struct rp_graph_program *programs; /* where more than one was given; else none */
    int64_t aliased, aliased_bytes;    /* RP_ABSENT_I64: nothing is said */
    struct rp_graph_alias *aliases;    /* by the number of the input */
    struct rp_graph_module *modules;   /* of dump folders; else none */
    const char **listing;              /* what --tree, --near, --path and --grep found */
};

extern const struct rp_type rp_graph_type;

/* The same record, of which the screen shows the listing only; in the arena, NULL: no memory. */
const struct rp_type *rp_graph_listing_type(struct rp_arena *arena);

/* Fills it but for the listing; texts and lists in the arena. */
enum rp_code rp_explain_graph(const struct rp_program *p, const char *format,
                              struct rp_arena *arena, struct rp_graph *out, struct rp_err *err);

#endif
