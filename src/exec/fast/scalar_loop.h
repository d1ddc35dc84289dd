/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A loop over scalars as one list of instructions, with the loops and branches inside it. Every
 * scalar, and every element of a short array, has a slot of 16 bytes in a frame; a long array has a
 * slot with its address, and its elements are read and written in place.
 */
#include "exec/eval/lanes.h"
#include "exec/eval/plan.h"

enum rp_scalar_kind {
    RP_SCALAR_LANE,   /* to = code(a, b, c), by its lane */
    RP_SCALAR_MOVE,   /* to = a */
    RP_SCALAR_PLACE,  /* to = b + clamp(a, 0, most) * stride; b may be absent */
    RP_SCALAR_LOAD,   /* to = the element `stride` bytes after address a + place b */
    RP_SCALAR_STORE,  /* that element = c */
    RP_SCALAR_INSIDE, /* goes on at instruction `to` unless 0 <= a <= most */
    RP_SCALAR_EQUAL,  /* goes on at instruction `to` unless a == most */
    RP_SCALAR_JUMP,   /* goes on at instruction `to` */
    RP_SCALAR_AGAIN,  /* the same, backwards: the time is looked at now and then */
    RP_SCALAR_LABEL,  /* something goes on here */
};

struct rp_scalar_op {
    uint8_t kind, elem; /* elem: the type of a for PLACE, INSIDE and EQUAL, else of what is moved */
    uint16_t code;
    uint32_t to, a, b, c; /* slots; RP_NONE if absent */
    int64_t most, stride; /* most, of a division of s32: by what, if that is known; else 0 */
    struct rp_lane lane;
};

/* The first two slots: how many turns are left until the time is looked at, followed by the run,
   and the address of the frame. */
enum { RP_SCALAR_TURNS, RP_SCALAR_FRAME, RP_SCALAR_SLOTS };
#define RP_SCALAR_LOOK 1024 /* turns between two looks at the time */

typedef char rp_scalar_slot[16];
typedef int rp_scalar_fn(rp_scalar_slot *frame);
/* Called when no turns are left; 0: go on. */
rp_scalar_fn rp_scalar_look;

/* Whether an operation has instructions of its own; the others call their lanes. */
bool rp_scalar_is_frequent(const struct rp_scalar_op *op);
/* Makes machine code that returns 0, or what rp_scalar_look returned. NULL if this machine, or this
   system, has none. It is part of the plan. */
rp_scalar_fn *rp_scalar_compile(struct rp_plan *plan, const struct rp_scalar_op *ops, size_t n);
