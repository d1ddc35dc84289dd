/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A tape is a function of scalars (the body of a reduction, a comparison of a sort, an element-wise
 * fusion) as a list of lanes over registers. Each register holds up to RP_TAPE_LANES elements: one
 * call runs it for that many scalars at a time.
 *
 *     add = { r2 = r0 + r1 }   reg[0], reg[1] point at arguments, reg[2] at the frame's own memory
 */
#include "exec/eval/lanes.h"
#include "exec/eval/plan.h"

#define RP_TAPE_LANES 512

struct rp_tape_op {
    struct rp_lane lane;
    uint32_t to, a, b, c; /* registers; RP_NONE if unused */
};

struct rp_tape_reg {
    uint8_t elem;
    uint8_t unit;
    const void *constant; /* one element, or NULL */
};

struct rp_tape {
    size_t nregs, nops, nparams, nresults;
    struct rp_tape_reg *regs; /* the first nparams are the parameters */
    struct rp_tape_op *ops;
    uint32_t *results; /* registers */
    bool second;       /* the only result is the second parameter, unchanged */
    uint16_t simple;   /* the opcode, if it is one operation of both parameters; else 0 */
};

/*
 * Makes the tape of a graph whose parameters and results are scalars, or one tuple of scalars each,
 * as in loops; arrays in that tuple are not read. The tape is in the plan's arena. wide: types
 * narrower than f32 are computed and kept in f32, including parameters and results. RP_UNSUPPORTED
 * if the graph does something that is not element-wise.
 */
enum rp_code rp_tape_new(struct rp_plan *plan, const struct rp_graph *graph, bool wide,
                         struct rp_tape **out, struct rp_err *err);

/* The registers of one thread. */
struct rp_tape_frame {
    const struct rp_tape *tape;
    void **reg;   /* the caller sets parameters before each run */
    char *memory; /* of its own, or NULL */
};
enum rp_code rp_tape_begin(const struct rp_tape *tape, struct rp_tape_frame *frame,
                           struct rp_err *err);
void rp_tape_end(struct rp_tape_frame *frame);
/* Makes a frame in the caller's memory of so many bytes, aligned to 64, with registers of `lanes`
   lanes. */
size_t rp_tape_bytes(const struct rp_tape *tape, size_t lanes);
void rp_tape_place(const struct rp_tape *tape, size_t lanes, char *memory,
                   struct rp_tape_frame *frame);

/* n is at most RP_TAPE_LANES; results are where reg[results[i]] points, until the next run. */
static inline void rp_tape_run(const struct rp_tape_frame *f, size_t n)
{
    const struct rp_tape *t = f->tape;

    for (size_t i = 0; i < t->nops; i++) {
        const struct rp_tape_op *op = &t->ops[i];

        op->lane.fn(&op->lane, n, f->reg[op->to], f->reg[op->a],
                    op->b == RP_NONE ? NULL : f->reg[op->b],
                    op->c == RP_NONE ? NULL : f->reg[op->c]);
    }
}

static inline const void *rp_tape_result(const struct rp_tape_frame *f, size_t i)
{
    return f->reg[f->tape->results[i]];
}

/* Finds the lane of an element-wise node; wide as above. False: none. */
bool rp_lane_of_node(const struct rp_plan *plan, const struct rp_node *node, bool wide,
                     struct rp_lane *lane);
bool rp_opcode_is_elementwise(unsigned code);
/* The bits of an element in a bitcast-convert, in which types under a byte share a byte. */
size_t rp_cast_bits(unsigned elem);
