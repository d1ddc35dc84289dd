/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Used inside the reader only, for payloads that are texts of their own. */
#include "base/hash.h"
#include "formats/torch_trace/torch_trace.h"

/* ---- stacks of Python ---- */

struct rp_torch_frame {
    struct rp_snip path, function;
    int64_t line;
};

/* Reads ' File "/home/a.py", line 12, in f'; false if the line is something else. */
bool rp_torch_frame_of(struct rp_snip line, struct rp_torch_frame *out);
/* Finds the last frame of a stack that is in the user's program, or else the last; false if there
   is none. */
bool rp_torch_user_frame(struct rp_snip stack, struct rp_torch_frame *out);

/* ---- graphs that torch.fx has printed (fx.c) ---- */

#define RP_TORCH_NO_STACK \
    "# No stacktrace" /* a comment that says that the line of what follows is not known */

/* 'name: "type" = what'; for "x += 1; x_1 = x" the name is x_1 and `what` is "x += 1". */
struct rp_torch_statement {
    struct rp_snip name, type, what; /* type n 0: not stated */
};
/* Returns false if the line is something else. */
bool rp_torch_statement_of(struct rp_snip line, struct rp_torch_statement *out);
/* Reads "# File: PATH:LINE in FUNCTION, code: …"; false if the line is something else. */
bool rp_torch_comment_of(struct rp_snip line, struct rp_torch_frame *out);
/* The length of the name that a text begins with. */
size_t rp_torch_name_length(struct rp_snip s);
/* Reads 'name: "type"' and returns what follows. */
struct rp_snip rp_torch_typed_name(struct rp_snip s, struct rp_snip *name, struct rp_snip *type);

struct rp_torch_node {
    uint64_t name; /* its hash */
    uint32_t place;
};

struct rp_torch_nodes {
    RP_VEC(struct rp_torch_node) at;
    struct rp_map by_name; /* -> node */
    int64_t ops;           /* number of calls, without inputs and attributes */
    bool dynamic;          /* a size is a symbol */
};

enum rp_code rp_torch_nodes_read(struct rp_torch_nodes *nodes, struct rp_snip text,
                                 struct rp_torch_trace *trace, struct rp_err *err);
void rp_torch_nodes_release(struct rp_torch_nodes *nodes);
/* The place of the line of a node, or RP_NONE. */
uint32_t rp_torch_nodes_place(const struct rp_torch_nodes *nodes, struct rp_snip name);

/* ---- code that Inductor has generated (code.c) ---- */

struct rp_torch_code {
    struct rp_snip text,
        stacks; /* stacks: JSON with the stacks of kernels and calls; n 0 if there are none */
    const struct rp_torch_nodes *source, *post; /* Dynamo's graph, and the graph after all passes */
};

/* Adds the graph with its kernels and calls. */
enum rp_code rp_torch_code_read(struct rp_torch_trace *trace, const struct rp_torch_code *code,
                                struct rp_torch_graph *graph, struct rp_err *err);

/* ---- why a graph ended (breaks.c) ---- */

void rp_torch_break_read(struct rp_snip text, struct rp_arena *arena, struct rp_torch_break *out);

/* ---- numbers of a compile (metrics.c) ---- */

enum rp_torch_metrics { RP_TORCH_FORWARD_METRICS, RP_TORCH_BACKWARD_METRICS, RP_TORCH_RUN_METRICS };
void rp_torch_metrics_read(struct rp_snip value, enum rp_torch_metrics kind, struct rp_arena *arena,
                           struct rp_torch_compile *compile, const char **version);
/* Finds the line of a traceback that names the error, or NULL. */
const char *rp_torch_error_line(struct rp_snip traceback, const char *type, struct rp_arena *arena);
