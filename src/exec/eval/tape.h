/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A function of scalars (the body of a reduction, a comparison of a sort, an element-wise fusion)
 * as a list of lanes over registers, each of which holds up to RP_TAPE_LANES elements: one call
 * runs it for that many scalars at a time.
 *
 *     add = { r2 = r0 + r1 }   reg[0], reg[1] point at arguments, reg[2] at the frame's own memory
 */
#include "exec/eval/lanes.h"
#include "exec/eval/plan.h"

#define RP_TAPE_LANES 512

struct rp_tape_op {
    struct rp_lane lane;
    uint32_t to, a, b, c; /* registers; RP_NONE: none */
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
    bool second;       /* the one result is the second parameter as it is */
    uint16_t simple;   /* the opcode, where it is one operation of both parameters; else 0 */
};

/*
 * The tape of a graph whose parameters and results are scalars, or one tuple of scalars each, as in
 * loops; arrays in that tuple are not read. In the plan's arena. wide: types
 * narrower than f32 are computed and kept in f32 (params and results too). RP_UNSUPPORTED where the
 * graph does something that is not element-wise.
 */
enum rp_code rp_tape_new(struct rp_plan *plan, const struct rp_graph *graph, bool wide,
                         struct rp_tape **out, struct rp_err *err);

/* Registers of one thread. */
struct rp_tape_frame {
    const struct rp_tape *tape;
    void **reg;   /* parameters: set by the caller before each run */
    char *memory; /* of its own, or NULL */
};
enum rp_code rp_tape_begin(const struct rp_tape *tape, struct rp_tape_frame *frame,
                           struct rp_err *err);
void rp_tape_end(struct rp_tape_frame *frame);
/* In memory of the caller, with registers of so many lanes: as many bytes, aligned to 64. */
size_t rp_tape_bytes(const struct rp_tape *tape, size_t lanes);
void rp_tape_place(const struct rp_tape *tape, size_t lanes, char *memory,
                   struct rp_tape_frame *frame);

/* n up to RP_TAPE_LANES; results are where reg[results[i]] points, until the next run. */
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

/* The lane of an element-wise node; wide as above. False: none. */
bool rp_lane_of_node(const struct rp_plan *plan, const struct rp_node *node, bool wide,
                     struct rp_lane *lane);
bool rp_opcode_is_elementwise(unsigned code);
/* Bits of an element in a bitcast-convert: types under a byte lie several in one there. */
size_t rp_cast_bits(unsigned elem);
