/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_PROGRAM_SCOPE_H
#define RP_EXPLAIN_PROGRAM_SCOPE_H
/* Scope paths as the user wrote them, and lists of numbers as people write them. */
#include "base/arena.h"

#include <stddef.h>
#include <stdint.h>

/*
 * What the user named of an operation's scope path: without its last part (the primitive) and
 * without what the tracer put around it.
 *
 *   jit(step)/jit(main)/transpose(jvp(Net))/layer_17/attn/dot_general  ->  Net/layer_17/attn
 * (backward)
 *
 * NUL-terminated, cut to cap. Returns the length; 0: the user named nothing.
 */
size_t rp_scope_words(const char *op_name, char *out, size_t cap);

/* The same for scopes that differ in numbers only. */
uint64_t rp_scope_pattern(const char *scope);

/* Scopes of one pattern as one text: "Net/layer_{0-31}/attn"; in the arena, NULL: no memory. */
const char *rp_scope_join(const char *const *scopes, size_t n, struct rp_arena *arena);

/* "1-3,7"; sorts the values. Long lists end in "...". NUL-terminated; cap of 128 is enough. */
size_t rp_ranges_print(int64_t *values, size_t n, char *out, size_t cap);

#endif
