/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `top --by line` for compiled programs shows measured time by line, from what their compilers
 * wrote. A kernel of several lines is divided among them by the nodes of each, so that lines add
 * up.
 */
#include "base/arena.h"
#include "base/vec.h"
#include "dataset/load.h"
#include "facts/work/work.h"
#include "result/part.h"

#include <reprise/result.h>

struct rp_line_sum {
    const char *path, *function;
    int64_t line, total_ns, alone_ns, forward_ns, backward_ns, calls;
};

struct rp_line_graph {
    const char *id, *direction, *function, *key;
    int64_t runs, total_ns, lines_ns;
};

struct rp_lines_part {
    RP_VEC(struct rp_line_sum) lines;
    RP_VEC(struct rp_line_graph) graphs;
    int64_t whole_ns, covered_ns;
    int64_t outside_ns;   /* time that is not in a run of a compiled graph */
    int64_t unknown_ns;   /* time in graphs that the logs do not have */
    int64_t unmatched_ns; /* time in a graph, when it is unknown in which of its calls */
    int64_t unlined_ns;   /* time of calls without a line */
    int64_t compiles;     /* in the logs */
    bool on_host;
    bool known;  /* programs or logs were found */
    bool of_xla; /* graphs are modules of XLA */
};

extern const struct rp_type rp_lines_part_type, rp_lines_type;

/* Makes the part of one trace. dumps: logs of torch.compile or dumps of XLA, a file or folder,
   which must contain some; NULL: what lies beside the trace or is in it, if anything. Texts are in
   the arena; the caller owns the vectors, also after a failure. */
enum rp_code rp_lines_make(const struct rp_loaded *loaded, const struct rp_scope *scope,
                           const char *dumps, struct rp_arena *arena, struct rp_lines_part *out,
                           struct rp_err *err);

void rp_lines_release(struct rp_lines_part *part);

struct rp_source_line_row {
    const char *name, *label, *path, *function;
    int64_t line, total_ns, alone_ns, shared_ns, forward_ns, backward_ns, calls;
    double share;
};

extern const struct rp_type rp_source_line_type;

struct rp_lines_rest {
    const char *what;
    int64_t total_ns;
    double share;
};

struct rp_line_graph_row {
    const char *id, *direction, *function, *key;
    int64_t runs, total_ns;
    double share, coverage;
};

struct rp_lines_root {
    const char *summary, *by, *measure;
    int64_t ranks, whole_ns, covered_ns, row_count;
    double coverage;
    size_t nrows, nrest, ngraphs, nnotes;
    struct rp_source_line_row *rows;
    struct rp_lines_rest *rest;
    struct rp_line_graph_row *graphs;
    const char **notes;
};

/* limit: rows; 0: all. Everything is in the arena. */
/* html: path of a page with a flame graph, or NULL. */
enum rp_code rp_lines_join(const struct rp_lines_part *const *parts, size_t n, int64_t limit,
                           const char *html, struct rp_arena *arena, struct rp_lines_root *out,
                           struct rp_err *err);
