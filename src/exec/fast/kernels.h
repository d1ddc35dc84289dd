/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Kernels of `fast`: each takes what it is quick at and leaves the rest to the reference's. */
#include "exec/eval/plan.h"

/* All of them by opcode, the reference's where it has none; RP_OP_COUNT entries. */
void rp_kernels_fast(const struct rp_kernel **by_code);

enum rp_code rp_fast_reduce(struct rp_eval *e, const struct rp_node *node,
                            struct rp_tensor *const *in, struct rp_tensor **out,
                            struct rp_err *err);
enum rp_code rp_fast_reduce_prepare(struct rp_plan *plan, struct rp_node *node, struct rp_err *err);
/* One line of f32 by maximum, minimum, add or multiply; NaN stays. */
float rp_fast_row(unsigned opcode, const float *in, size_t n, float init);
/* The array with what is reduced in its last dimensions, as n lines of that length. A new use. */
struct rp_reduce;
enum rp_code rp_fast_lines(const struct rp_reduce *a, struct rp_tensor *t, struct rp_tensor **out,
                           size_t *n, size_t *length, struct rp_err *err);
/* Whether it reduces the last dimensions of f32, and nothing is in its way; then: that, into an
   array that is there. */
bool rp_fast_reduces_row(const struct rp_graph *g, const struct rp_node *node);
void rp_fast_reduce_row(const struct rp_node *node, const struct rp_tensor *in,
                        const struct rp_tensor *init, struct rp_tensor *out);
/* Whether it reads its operand at any address (exec/data/tensor.h). */
bool rp_fast_reduce_takes_unaligned(const struct rp_graph *g, const struct rp_node *node);
enum rp_code rp_fast_reduce_window(struct rp_eval *e, const struct rp_node *node,
                                   struct rp_tensor *const *in, struct rp_tensor **out,
                                   struct rp_err *err);
/* A reduce-window that is a running sum or the like; false in *done: it is not. */
enum rp_code rp_fast_scan(struct rp_eval *e, const struct rp_node *node,
                          struct rp_tensor *const *in, bool *done, struct rp_tensor **out,
                          struct rp_err *err);
enum rp_code rp_fast_select_and_scatter(struct rp_eval *e, const struct rp_node *node,
                                        struct rp_tensor *const *in, struct rp_tensor **out,
                                        struct rp_err *err);
enum rp_code rp_fast_dot_prepare(struct rp_plan *plan, struct rp_node *node, struct rp_err *err);
enum rp_code rp_fast_dot(struct rp_eval *e, const struct rp_node *node, struct rp_tensor *const *in,
                         struct rp_tensor **out, struct rp_err *err);
enum rp_code rp_fast_conv_prepare(struct rp_plan *plan, struct rp_node *node, struct rp_err *err);
enum rp_code rp_fast_conv(struct rp_eval *e, const struct rp_node *node,
                          struct rp_tensor *const *in, struct rp_tensor **out, struct rp_err *err);

/* Of f32, lines in lanes. */
enum rp_code rp_fast_fft_prepare(struct rp_plan *plan, struct rp_node *node, struct rp_err *err);
enum rp_code rp_fast_fft(struct rp_eval *e, const struct rp_node *node, struct rp_tensor *const *in,
                         struct rp_tensor **out, struct rp_err *err);

/* Loops of scalars. */
enum rp_code rp_fast_while_prepare(struct rp_plan *plan, struct rp_node *node, struct rp_err *err);
enum rp_code rp_fast_while(struct rp_eval *e, const struct rp_node *node,
                           struct rp_tensor *const *in, struct rp_tensor **out, struct rp_err *err);

/* Whether operand k is ours alone and not needed after this node: it may be changed in place. */
bool rp_fast_can_change(const struct rp_node *node, struct rp_tensor *const *in, uint32_t k);
enum rp_code rp_fast_update_slice(struct rp_eval *e, const struct rp_node *node,
                                  struct rp_tensor *const *in, struct rp_tensor **out,
                                  struct rp_err *err);
enum rp_code rp_fast_gather(struct rp_eval *e, const struct rp_node *node,
                            struct rp_tensor *const *in, struct rp_tensor **out,
                            struct rp_err *err);
enum rp_code rp_fast_scatter(struct rp_eval *e, const struct rp_node *node,
                             struct rp_tensor *const *in, struct rp_tensor **out,
                             struct rp_err *err);
enum rp_code rp_fast_special(struct rp_eval *e, const struct rp_node *node,
                             struct rp_tensor *const *in, struct rp_tensor **out,
                             struct rp_err *err);
enum rp_code rp_fast_sort_prepare(struct rp_plan *plan, struct rp_node *node, struct rp_err *err);
enum rp_code rp_fast_sort(struct rp_eval *e, const struct rp_node *node,
                          struct rp_tensor *const *in, struct rp_tensor **out, struct rp_err *err);

/* ---- changes to the plan before it runs ---- */

/* Calls and fusions are replaced by what they call. */
enum rp_code rp_calls_inline(struct rp_plan *plan, struct rp_err *err);
/* Nodes of the same value become one. After calls were replaced. */
enum rp_code rp_equals_merge(struct rp_plan *plan, struct rp_err *err);
/* Products read transposed arrays where they lie (turned.c). */
enum rp_code rp_turned_fold(struct rp_plan *plan, struct rp_err *err);
/* Long arrays go through their operations in blocks of rows. Before loops are formed. */
enum rp_code rp_blocks_form(struct rp_plan *plan, struct rp_err *err);
/* When no node is skipped any more: where each of those calls ends, for counting. */
void rp_calls_finish(struct rp_plan *plan);
/* Marks what is the same in every iteration of a loop. After loops are formed. */
enum rp_code rp_invariants_mark(struct rp_plan *plan, struct rp_err *err);

/* Loops over short arrays get their memory once. After that. */
enum rp_code rp_short_loops_form(struct rp_plan *plan, struct rp_err *err);

/* ---- element-wise operations of one shape become one loop over pieces that stay in the cache ----
 */

/* Forms the loops of every graph of a plan, and computes anew where values end. */
enum rp_code rp_loops_form(struct rp_plan *plan, struct rp_err *err);
enum rp_code rp_loops_form_graph(struct rp_plan *plan, struct rp_graph *g, struct rp_err *err);

/* Whether a node is such a loop, and a short one: one piece of lanes. */
bool rp_loop_is(const struct rp_node *node);
bool rp_loop_is_short(const struct rp_node *node);
/* The registers of a short one, which runs many times: in memory of the caller, as many bytes,
   aligned to 64. in: places of its inputs in `values`, whose data is aligned. */
struct rp_loop_frame {
    void **reg;
    char *room; /* for inputs that are repeated */
};
size_t rp_loop_frame_bytes(const struct rp_node *node);
void rp_loop_frame_place(const struct rp_node *node, char *memory, struct rp_loop_frame *frame);
void rp_loop_frame_run(const struct rp_node *node, const struct rp_loop_frame *frame,
                       struct rp_tensor *const *values, const uint32_t *in, struct rp_tensor *out);

/* Whether a vector version of an f32 operation exists: it replaces *fn. */
struct rp_lane;
bool rp_fast_lane(unsigned opcode, struct rp_lane *lane);
/* That of a function of CHLO that fast has; false: none. */
bool rp_fast_special_lane(const struct rp_plan *plan, const struct rp_node *node,
                          struct rp_lane *lane);
