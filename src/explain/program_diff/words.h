/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Describes operations, changes and scopes, in the arena (rp_arena_check). */
#include "program/structure.h"

/* "dot f32[8,4]" */
const char *rp_op_words(const struct rp_program *p, uint32_t op, struct rp_arena *arena);

/* "dot f32[8,4] -> bf16[8,4]"; with the opcodes if they differ. */
const char *rp_op_change_words(const struct rp_program *left, uint32_t a,
                               const struct rp_program *right, uint32_t b, struct rp_arena *arena);

/* "constant f32[] 1 -> 2" */
const char *rp_constant_change_words(const struct rp_program *left, uint32_t a,
                                     const struct rp_program *right, uint32_t b,
                                     struct rp_arena *arena);

/* "slice f32[4]: slice={[0:4]} -> {[4:8]}"; if there are several attributes, the first two. */
const char *rp_attr_change_words(const struct rp_program *left, uint32_t a,
                                 const struct rp_program *right, uint32_t b,
                                 struct rp_arena *arena);

/* "parameter f32[8]: sharding {replicated} -> {devices=[8]<=[8]}" */
const char *rp_sharding_change_words(const struct rp_program *left, uint32_t a,
                                     const struct rp_program *right, uint32_t b,
                                     struct rp_arena *arena);

/* ---- scopes and lists of numbers ---- */

/*
 * The user's part of the scope path of an operation: without its last part (the primitive) and
 * without the wrappers of the tracer.
 *
 *   jit(step)/jit(main)/transpose(jvp(Net))/layer_17/attn/dot_general  ->  Net/layer_17/attn
 * (backward)
 *
 * The result is NUL-terminated and cut to cap. Returns its length; 0 if there are no names of the
 * user.
 */
size_t rp_scope_words(const char *op_name, char *out, size_t cap);

/* A hash that is the same for scopes that differ only in numbers. */
uint64_t rp_scope_pattern(const char *scope);

/* Joins scopes of one pattern into one text: "Net/layer_{0-31}/attn"; in the arena. */
const char *rp_scope_join(const char *const *scopes, size_t n, struct rp_arena *arena);

/* "1-3,7"; sorts the values. Long lists end in "...". NUL-terminated; cap of 128 is enough. */
size_t rp_ranges_print(int64_t *values, size_t n, char *out, size_t cap);
