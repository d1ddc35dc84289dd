/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_PROGRAM_WORDS_H
#define RP_EXPLAIN_PROGRAM_WORDS_H
/* Operations and what changed in them, as people say it. In the arena, NULL: no memory. */
#include "program/structure.h"

/* "dot f32[8,4]" */
const char *rp_op_words(const struct rp_program *p, uint32_t op, struct rp_arena *arena);

/* "dot f32[8,4] -> bf16[8,4]"; the opcodes where they differ. */
const char *rp_op_change_words(const struct rp_program *left, uint32_t a,
                               const struct rp_program *right, uint32_t b, struct rp_arena *arena);

/* "constant f32[] 1 -> 2" */
const char *rp_constant_change_words(const struct rp_program *left, uint32_t a,
                                     const struct rp_program *right, uint32_t b,
                                     struct rp_arena *arena);

/* "slice f32[4]: slice={[0:4]} -> {[4:8]}"; of several attributes the first two. */
const char *rp_attr_change_words(const struct rp_program *left, uint32_t a,
                                 const struct rp_program *right, uint32_t b,
                                 struct rp_arena *arena);

/* "parameter f32[8]: sharding {replicated} -> {devices=[8]<=[8]}" */
const char *rp_sharding_change_words(const struct rp_program *left, uint32_t a,
                                     const struct rp_program *right, uint32_t b,
                                     struct rp_arena *arena);

#endif
