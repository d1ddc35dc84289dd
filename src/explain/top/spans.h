/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the trees of `top` ask about spans and their names. */
#include "base/vec.h"
#include "trace/trace.h"

#include <stdbool.h>

enum rp_span_kind {
    RP_SPAN_ALL, /* everything, the root of a tree */
    RP_SPAN_MODULE,
    RP_SPAN_ANNOTATION,
    RP_SPAN_OP,
    RP_SPAN_PYTHON,
    RP_SPAN_SCOPE, /* a part of XLA's op_name */
    RP_SPAN_KERNEL,
    RP_SPAN_REST,
    RP_SPAN_KINDS
};
extern const char *const rp_span_kind_names[RP_SPAN_KINDS];

/* The kind of a host span; RP_SPAN_ALL if it is none of these, or marks a step. */
enum rp_span_kind rp_span_kind_of(const struct rp_trace *t, rp_event e);

/* The name of a span as trees show it: without "nn.Module: ", or the engine that calls a backward
   function. */
const char *rp_span_name(const struct rp_trace *t, rp_event e);

/*
 * The next component of XLA's name of an instruction, "jit(step)/transpose(jvp(GPT))/Block_0/dot",
 * from *at on: "jit(step)", "GPT", "Block_0", "dot". Derivations (jvp, transpose, vmap, remat) are
 * not shown; *backward is set if one of them is a transposition. Components that become empty are
 * left out. Returns false at the end.
 */
bool rp_scope_next(const char **at, const char **begin, size_t *len, bool *backward);

/* Copies a name with '*' for each number that is a whole component: "Layer_*", "layers.*.attn"; but
   not "Conv2d". The copy is never longer, and has no terminator. *number is the last number, or -1;
   *count is how many there are. */
size_t rp_name_without_numbers(const char *name, size_t len, char *out, int64_t *number,
                               size_t *count);
