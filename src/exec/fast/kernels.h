/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Kernels of `fast`: each handles what it is quick at and leaves the rest to the reference's. */
#include "exec/eval/plan.h"

/* Lists all by opcode, with the reference's where there is no quick one; RP_OP_COUNT entries. */
void rp_kernels_fast(const struct rp_kernel **by_code);

RP_KERNEL(rp_fast_reduce);
RP_PREPARE(rp_fast_reduce_prepare);
/* Reduces one line of f32 by maximum, minimum, add or multiply; NaN stays. */
float rp_fast_row(unsigned opcode, const float *in, size_t n, float init);
/* A new use of the array, with the reduced dimensions last, as n lines of that length. */
struct rp_reduce;
enum rp_code rp_fast_lines(const struct rp_reduce *a, struct rp_tensor *t, struct rp_tensor **out,
                           size_t *n, size_t *length, struct rp_err *err);
/* Whether it reduces the last dimensions of f32 without further conditions; the second function
   then does so into an existing array. */
bool rp_fast_reduces_row(const struct rp_graph *g, const struct rp_node *node);
void rp_fast_reduce_row(const struct rp_node *node, const struct rp_tensor *in,
                        const struct rp_tensor *init, struct rp_tensor *out);
/* Whether it can read its operand at any address (exec/data/tensor.h). */
bool rp_fast_reduce_takes_unaligned(const struct rp_graph *g, const struct rp_node *node);
RP_KERNEL(rp_fast_reduce_window);
/* A reduce-window that is a running sum or similar; *done is false if it is not. */
enum rp_code rp_fast_scan(struct rp_eval *e, const struct rp_node *node,
                          struct rp_tensor *const *in, bool *done, struct rp_tensor **out,
                          struct rp_err *err);
RP_KERNEL(rp_fast_select_and_scatter);
RP_PREPARE(rp_fast_dot_prepare);
RP_KERNEL(rp_fast_dot);
RP_PREPARE(rp_fast_conv_prepare);
RP_KERNEL(rp_fast_conv);

/* Transforms of f32, with lines in lanes. */
RP_PREPARE(rp_fast_fft_prepare);
RP_KERNEL(rp_fast_fft);

/* Loops over scalars. */
RP_PREPARE(rp_fast_while_prepare);
RP_KERNEL(rp_fast_while);

/* Whether operand k belongs only to us and is not needed after this node, so that it may be changed
   in place. */
bool rp_fast_can_change(const struct rp_node *node, struct rp_tensor *const *in, uint32_t k);
RP_KERNEL(rp_fast_update_slice);
RP_KERNEL(rp_fast_gather);
RP_KERNEL(rp_fast_scatter);
RP_KERNEL(rp_fast_special);
RP_PREPARE(rp_fast_sort_prepare);
RP_KERNEL(rp_fast_sort);

/* ---- changes to the plan before it runs ---- */

/* Replaces calls and fusions by what they call. */
enum rp_code rp_calls_inline(struct rp_plan *plan, struct rp_err *err);
/* Joins nodes of equal value; called after calls were replaced. */
enum rp_code rp_equals_merge(struct rp_plan *plan, struct rp_err *err);
/* Lets products read transposed arrays in place (turned.c). */
enum rp_code rp_turned_fold(struct rp_plan *plan, struct rp_err *err);
/* Lets long arrays go through their operations in blocks of rows; called before loops are
   formed. */
enum rp_code rp_blocks_form(struct rp_plan *plan, struct rp_err *err);
/* Called when all nodes are final: finds where each replaced call ends, for counting. */
void rp_calls_finish(struct rp_plan *plan);
/* Marks the invariants of loops; called after loops are formed. */
enum rp_code rp_invariants_mark(struct rp_plan *plan, struct rp_err *err);

/* Gives loops over short arrays fixed memory; called after that. */
enum rp_code rp_short_loops_form(struct rp_plan *plan, struct rp_err *err);

/* ---- element-wise operations of one shape become one loop over pieces that stay in the cache ----
 */

/* Forms the loops of every graph of a plan, and finds again where values end. */
enum rp_code rp_loops_form(struct rp_plan *plan, struct rp_err *err);
enum rp_code rp_loops_form_graph(struct rp_plan *plan, struct rp_graph *g, struct rp_err *err);

/* Whether a node is such a loop, and whether it is a short one: one piece of lanes. */
bool rp_loop_is(const struct rp_node *node);
bool rp_loop_is_short(const struct rp_node *node);
/* The registers of a short loop, which runs many times, in the caller's memory of so many bytes,
   aligned to 64. */
struct rp_loop_frame {
    void **reg;
    char *room; /* memory for inputs that are repeated */
};
size_t rp_loop_frame_bytes(const struct rp_node *node);
void rp_loop_frame_place(const struct rp_node *node, char *memory, struct rp_loop_frame *frame);
/* Takes the inputs from their places in `values`, whose data is aligned. To be called again if the
   memory of one has moved, or if the elements of one that is not read in place have changed. */
void rp_loop_frame_bind(const struct rp_node *node, const struct rp_loop_frame *frame,
                        struct rp_tensor *const *values, const uint32_t *in, struct rp_tensor *out);
bool rp_loop_frame_reads(const struct rp_node *node, uint32_t k); /* input k is read in place */
void rp_loop_frame_run(const struct rp_node *node, const struct rp_loop_frame *frame);

/* Replaces *fn by a vector version of an f32 operation, if there is one. */
struct rp_lane;
bool rp_fast_lane(unsigned opcode, struct rp_lane *lane);
/* The vector version of a function of CHLO; false if there is none. */
bool rp_fast_special_lane(const struct rp_plan *plan, const struct rp_node *node,
                          struct rp_lane *lane);
