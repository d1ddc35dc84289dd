/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machine code for loops over scalars, on x86-64: instruction for instruction, each result left in
 * a register, and stored in its slot if it is still to be read when something else needs the
 * register, or when paths part or join. Operations that are not frequent call their lanes. There is
 * no other optimization; XLA is the engine for that.
 *
 *     rbx: the frame    rax, rcx, rdx, xmm0, xmm1: for one instruction    the others: results
 *
 * Slots are read and written in the width of their type, because a load that is wider than the
 * store before it waits for the store.
 */
#include "exec/fast/scalar_loop.h"
#include "program/literal.h"
#include "program/opcodes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)

#define MOST_BYTES 512 /* of one instruction, with its loads and stores */

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI };

static bool is_float(unsigned elem)
{
    return elem == RP_ELEM_F32 || elem == RP_ELEM_F64;
}

static bool is_integer(unsigned elem)
{
    return elem == RP_ELEM_S32 || elem == RP_ELEM_U32 || elem == RP_ELEM_S64 || elem == RP_ELEM_U64;
}

static bool is_signed(unsigned elem)
{
    return elem == RP_ELEM_S32 || elem == RP_ELEM_S64;
}

static bool is_wide(unsigned elem)
{
    return rp_literal_unit(elem) == 8;
}

static bool has_code(unsigned code, unsigned from, unsigned to)
{
    switch (code) {
    case RP_OP_ADD:
    case RP_OP_SUBTRACT:
    case RP_OP_MULTIPLY:
    case RP_OP_DIVIDE:
    case RP_OP_NEGATE:
        return from == to && (is_float(from) || is_integer(from));
    case RP_OP_ABS:
    case RP_OP_SQRT:
        return from == to && is_float(from);
    case RP_OP_REMAINDER:
    case RP_OP_MAXIMUM:
    case RP_OP_MINIMUM:
    case RP_OP_SHIFT_LEFT:
    case RP_OP_SHIFT_RIGHT_LOGICAL:
    case RP_OP_SHIFT_RIGHT_ARITHMETIC:
        return from == to && is_integer(from);
    case RP_OP_AND:
    case RP_OP_OR:
    case RP_OP_XOR:
    case RP_OP_NOT:
        return from == to && (is_integer(from) || from == RP_ELEM_PRED);
    case RP_OP_COMPARE:
    case RP_OP_SELECT:
        return is_float(from) || is_integer(from) || from == RP_ELEM_PRED;
    case RP_OP_CONVERT:
        if (from == RP_ELEM_PRED || from == RP_ELEM_S32 || from == RP_ELEM_U32)
            return is_integer(to) || is_float(to);
        return (is_integer(from) && is_integer(to)) || (from == RP_ELEM_S64 && is_float(to)) ||
               (is_float(from) && is_float(to));
    default:
        return false;
    }
}

/* A lane of the usual name may be of another kind, such as a comparison by bits. */
bool rp_scalar_is_frequent(const struct rp_scalar_op *op)
{
    struct rp_lane usual = op->lane;

    return op->kind == RP_SCALAR_LANE && has_code(op->code, op->lane.from, op->lane.to) &&
           rp_lane_find(op->code, false, &usual) && usual.fn == op->lane.fn;
}

struct code {
    uint8_t *at;
    size_t n, cap;
    uint32_t general[16], vector[16]; /* by register: the slot whose value it has, or RP_NONE */
    unsigned next_general, next_vector;
    uint32_t dirty;   /* registers whose value is not in the slot: bit r, and 16 + r */
    uint8_t unit[32]; /* and its bytes */
    uint32_t *last;   /* by slot: the last instruction that reads it */
    uint32_t now;
    uint32_t busy;   /* registers of the running instruction: bit r, and 16 + r */
    uint32_t *place; /* by instruction: where its code begins */
    struct jump {
        size_t at;
        uint32_t to;
    } * jumps;
    size_t njumps;
};

static void put(struct code *k, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        k->at[k->n++] = (uint8_t)(value >> 8 * i);
}

/* Prefix (0: none), REX, opcode of up to three bytes (the first ones first in the number). */
static void put_opcode(struct code *k, unsigned prefix, bool wide, unsigned opcode, unsigned reg,
                       unsigned index, unsigned rm, bool bytes)
{
    unsigned rex = 0x40 | wide << 3 | (reg >> 3) << 2 | (index >> 3) << 1 | rm >> 3;

    if (prefix)
        put(k, prefix, 1);
    if (rex != 0x40 || bytes)
        put(k, rex, 1);
    if (opcode > 0xff)
        put(k, opcode >> 8, 1);
    put(k, opcode & 0xff, 1);
}

static void op_rr(struct code *k, unsigned prefix, bool wide, unsigned opcode, unsigned reg,
                  unsigned rm)
{
    put_opcode(k, prefix, wide, opcode, reg, 0, rm, false);
    put(k, 0xc0 | (reg & 7) << 3 | (rm & 7), 1);
}

/* With a slot as the other operand. */
static void op_slot(struct code *k, unsigned prefix, bool wide, unsigned opcode, unsigned reg,
                    uint32_t slot, unsigned offset)
{
    put_opcode(k, prefix, wide, opcode, reg, 0, RBX, opcode == 0x88);
    put(k, 0x80 | (reg & 7) << 3 | RBX, 1);
    put(k, slot * sizeof(rp_scalar_slot) + offset, 4);
}

/* With the memory at rax + offset. */
static void op_at(struct code *k, unsigned prefix, bool wide, unsigned opcode, unsigned reg,
                  int64_t offset)
{
    put_opcode(k, prefix, wide, opcode, reg, 0, RAX, opcode == 0x88);
    put(k, 0x80 | (reg & 7) << 3 | RAX, 1);
    put(k, (uint64_t)offset, 4);
}

static void load_number(struct code *k, unsigned reg, uint64_t value)
{
    put_opcode(k, 0, true, 0xb8 | (reg & 7), 0, 0, reg, false);
    put(k, value, 8);
}

/* ---- registers ---- */

static void put_store(struct code *k, unsigned r)
{
    size_t unit = k->unit[r];

    if (r < 16)
        op_slot(k, unit == 2 ? 0x66 : 0, unit == 8, unit == 1 ? 0x88 : 0x89, r, k->general[r], 0);
    else
        op_slot(k, unit == 8 ? 0xf2 : 0xf3, false, 0x0f11, r - 16, k->vector[r - 16], 0);
}

/* Stores a register, if its value is still read. */
static void flush(struct code *k, unsigned r)
{
    uint32_t slot = r < 16 ? k->general[r] : k->vector[r - 16];

    if (k->dirty >> r & 1 && k->last[slot] >= k->now)
        put_store(k, r);
    k->dirty &= ~(UINT32_C(1) << r);
}

static void flush_all(struct code *k)
{
    for (unsigned r = 0; k->dirty && r < 32; r++)
        flush(k, r);
}

static void forget_all(struct code *k)
{
    flush_all(k);
    memset(k->general, 0xff, sizeof k->general);
    memset(k->vector, 0xff, sizeof k->vector);
}

static void forget(struct code *k, uint32_t slot)
{
    for (unsigned r = 0; r < 16; r++) {
        k->general[r] = k->general[r] == slot ? RP_NONE : k->general[r];
        k->vector[r] = k->vector[r] == slot ? RP_NONE : k->vector[r];
    }
}

static unsigned take_general(struct code *k, uint32_t slot)
{
    static const uint8_t those[] = {RSI, RDI, 8, 9, 10, 11, RBP, 12, 13, 14, 15};
    unsigned r;

    do
        r = those[k->next_general++ % sizeof those];
    while (k->busy >> r & 1);
    flush(k, r);
    k->busy |= 1u << r;
    k->general[r] = slot;
    return r;
}

static unsigned take_vector(struct code *k, uint32_t slot)
{
    unsigned r;

    do
        r = 2 + k->next_vector++ % 14;
    while (k->busy >> (16 + r) & 1);
    flush(k, 16 + r);
    k->busy |= 1u << (16 + r);
    k->vector[r] = slot;
    return r;
}

/* The register that has the value of a slot; 16: none. */
static unsigned find(const uint32_t *registers, uint32_t slot)
{
    unsigned r = 0;

    while (r < 16 && registers[r] != slot)
        r++;
    return r;
}

static unsigned general_of(struct code *k, size_t unit, uint32_t slot)
{
    unsigned r = find(k->general, slot), other = find(k->vector, slot);

    if (r < 16) {
        k->busy |= 1u << r;
        return r;
    }
    if (other < 16)
        flush(k, 16 + other);
    r = take_general(k, slot);
    op_slot(k, 0, unit == 8, unit == 1 ? 0x0fb6 : unit == 2 ? 0x0fb7 : 0x8b, r, slot, 0);
    return r;
}

static unsigned vector_of(struct code *k, size_t unit, uint32_t slot)
{
    unsigned r = find(k->vector, slot), other = find(k->general, slot);

    if (r < 16) {
        k->busy |= 1u << (16 + r);
        return r;
    }
    if (other < 16)
        flush(k, other);
    r = take_vector(k, slot);
    op_slot(k, unit == 8 ? 0xf2 : 0xf3, false, 0x0f10, r, slot, 0);
    return r;
}

/* A result is in the register that was taken for it. */
static void keep_general(struct code *k, size_t unit, unsigned reg)
{
    k->unit[reg] = (uint8_t)unit;
    k->dirty |= 1u << reg;
}

static void keep_vector(struct code *k, size_t unit, unsigned reg)
{
    keep_general(k, unit, 16 + reg);
}

/* ---- operations ---- */

static void compute_binary(struct code *k, unsigned opcode, const struct rp_scalar_op *op)
{
    size_t unit = rp_literal_unit(op->lane.from);
    unsigned x = general_of(k, unit, op->a), y = general_of(k, unit, op->b);
    unsigned to = take_general(k, op->to);

    op_rr(k, 0, unit == 8, 0x8b, to, x);
    op_rr(k, 0, unit == 8, opcode, to, y);
    keep_general(k, unit, to);
}

/* s32 by a known number above 1: by 2^s / d, which is exact for 31 bits if s is 31 and the bits of
   d - 1; negative numbers are rounded down, and so one too few. */
static void compute_known_divide(struct code *k, const struct rp_scalar_op *op)
{
    unsigned s = 31 + 64 - (unsigned)__builtin_clzll((uint64_t)op->most - 1);
    unsigned x = general_of(k, 4, op->a), to = take_general(k, op->to);

    op_rr(k, 0, true, 0x63, RAX, x);
    load_number(k, RDX, (UINT64_C(1) << s) / (uint64_t)op->most + 1);
    op_rr(k, 0, true, 0x0faf, RAX, RDX);
    op_rr(k, 0, true, 0xc1, 7, RAX); /* sar rax, s */
    put(k, s, 1);
    op_rr(k, 0, false, 0x8b, to, x);
    op_rr(k, 0, false, 0xc1, 5, to); /* shr to, 31 */
    put(k, 31, 1);
    op_rr(k, 0, false, 0x03, to, RAX);
    if (op->code == RP_OP_REMAINDER) {
        op_rr(k, 0, false, 0x69, RAX, to); /* imul eax, to, d */
        put(k, (uint64_t)op->most, 4);
        op_rr(k, 0, false, 0x8b, to, x);
        op_rr(k, 0, false, 0x2b, to, RAX);
    }
    keep_general(k, 4, to);
}

/* Division and remainder, with the results that have a number for all operands. */
static void compute_divide(struct code *k, const struct rp_scalar_op *op)
{
    bool wide = is_wide(op->lane.from), sign = is_signed(op->lane.from);
    bool rest = op->code == RP_OP_REMAINDER;
    size_t unit = rp_literal_unit(op->lane.from), zero, minus = 0, done, done_minus = 0;
    unsigned x = general_of(k, unit, op->a), y = general_of(k, unit, op->b);
    unsigned to = take_general(k, op->to);

    op_rr(k, 0, wide, 0x8b, RAX, x);
    op_rr(k, 0, wide, 0x85, y, y);
    put(k, 0x0074, 2); /* jz */
    zero = k->n;
    if (sign) {
        put_opcode(k, 0, wide, 0x83, 0, 0, y, false);
        put(k, 0xf8 | (y & 7), 1); /* cmp y, -1 */
        put(k, 0xff, 1);
        put(k, 0x0074, 2);
        minus = k->n;
        put_opcode(k, 0, wide, 0x99, 0, 0, 0, false);
    } else {
        op_rr(k, 0, false, 0x33, RDX, RDX);
    }
    op_rr(k, 0, wide, 0xf7, sign ? 7 : 6, y);
    op_rr(k, 0, wide, 0x8b, to, rest ? RDX : RAX);
    put(k, 0x00eb, 2);
    done = k->n;
    if (sign) { /* by -1 */
        k->at[minus - 1] = (uint8_t)(k->n - minus);
        op_rr(k, 0, wide, 0xf7, 3, RAX); /* neg */
        if (rest)
            op_rr(k, 0, false, 0x33, RAX, RAX);
        op_rr(k, 0, wide, 0x8b, to, RAX);
        put(k, 0x00eb, 2);
        done_minus = k->n;
    }
    k->at[zero - 1] = (uint8_t)(k->n - zero); /* by 0 */
    if (!rest) {
        op_rr(k, 0, wide, 0x33, RAX, RAX);
        op_rr(k, 0, wide, 0xf7, 2, RAX); /* not */
    }
    op_rr(k, 0, wide, 0x8b, to, RAX);
    k->at[done - 1] = (uint8_t)(k->n - done);
    if (sign)
        k->at[done_minus - 1] = (uint8_t)(k->n - done_minus);
    keep_general(k, unit, to);
}

/* Counts of the width and above give 0, or the sign. */
static void compute_shift(struct code *k, const struct rp_scalar_op *op)
{
    bool wide = is_wide(op->lane.from);
    size_t unit = rp_literal_unit(op->lane.from);
    unsigned x = general_of(k, unit, op->a), y = general_of(k, unit, op->b);
    unsigned to = take_general(k, op->to);

    op_rr(k, 0, wide, 0x8b, RCX, y);
    op_rr(k, 0, wide, 0x8b, to, x);
    if (op->code == RP_OP_SHIFT_RIGHT_ARITHMETIC) {
        put_opcode(k, 0, false, 0xb8 | RAX, 0, 0, 0, false);
        put(k, wide ? 63 : 31, 4);
        op_rr(k, 0, wide, 0x3b, RCX, RAX);
        op_rr(k, 0, wide, 0x0f47, RCX, RAX); /* cmova */
        op_rr(k, 0, wide, 0xd3, 7, to);
    } else {
        op_rr(k, 0, wide, 0xd3, op->code == RP_OP_SHIFT_LEFT ? 4 : 5, to);
        put_opcode(k, 0, wide, 0x83, 0, 0, RCX, false);
        put(k, 0xf8 | RCX, 1); /* cmp rcx, width */
        put(k, wide ? 64 : 32, 1);
        op_rr(k, 0, wide, 0x1b, RAX, RAX); /* all ones if it is below */
        op_rr(k, 0, wide, 0x23, to, RAX);
    }
    keep_general(k, unit, to);
}

static void compute_extreme(struct code *k, const struct rp_scalar_op *op)
{
    bool wide = is_wide(op->lane.from), sign = is_signed(op->lane.from);
    size_t unit = rp_literal_unit(op->lane.from);
    unsigned x = general_of(k, unit, op->a), y = general_of(k, unit, op->b);
    unsigned to = take_general(k, op->to), less = sign ? 0x0f4c : 0x0f42;

    op_rr(k, 0, wide, 0x8b, to, x);
    op_rr(k, 0, wide, 0x3b, to, y);
    op_rr(k, 0, wide, op->code == RP_OP_MAXIMUM ? less : sign ? 0x0f4f : 0x0f47, to, y);
    keep_general(k, unit, to);
}

static void compute_compare(struct code *k, const struct rp_scalar_op *op)
{
    /* EQ, NE, GE, GT, LE, LT: the condition of signed and of unsigned numbers, and that of floats,
       for which GE and GT exchange the operands */
    static const uint8_t with_sign[] = {0x94, 0x95, 0x9d, 0x9f, 0x9e, 0x9c};
    static const uint8_t without[] = {0x94, 0x95, 0x93, 0x97, 0x96, 0x92};
    static const uint8_t floats[] = {0, 4, 2, 1, 2, 1};
    unsigned from = op->lane.from, d = op->lane.direction;
    size_t unit = rp_literal_unit(from);

    if (is_float(from)) {
        bool swap = d == RP_CMP_GE || d == RP_CMP_GT;
        unsigned x = vector_of(k, unit, swap ? op->b : op->a);
        unsigned y = vector_of(k, unit, swap ? op->a : op->b), to = take_general(k, op->to);

        op_rr(k, 0, false, 0x0f28, 0, x);
        op_rr(k, unit == 8 ? 0xf2 : 0xf3, false, 0x0fc2, 0, y);
        put(k, floats[d], 1);
        op_rr(k, 0x66, false, 0x0f7e, 0, to);
        put_opcode(k, 0, false, 0x83, 0, 0, to, false);
        put(k, 0xe0 | (to & 7), 1); /* and to, 1 */
        put(k, 1, 1);
        keep_general(k, 1, to);
        return;
    }
    unsigned x = general_of(k, unit, op->a), y = general_of(k, unit, op->b);
    unsigned to = take_general(k, op->to);
    op_rr(k, 0, unit == 8, 0x3b, x, y);
    op_rr(k, 0, false, 0x0f00u | (is_signed(from) ? with_sign : without)[d], 0, RAX);
    op_rr(k, 0, false, 0x0fb6, to, RAX);
    keep_general(k, 1, to);
}

static void compute_select(struct code *k, const struct rp_scalar_op *op)
{
    size_t unit = rp_literal_unit(op->lane.to);
    unsigned on = general_of(k, 1, op->a);

    if (is_float(op->lane.to)) {
        unsigned yes = vector_of(k, unit, op->b), no = vector_of(k, unit, op->c);
        unsigned to = take_vector(k, op->to);

        op_rr(k, 0, false, 0x8b, RAX, on);
        op_rr(k, 0, true, 0xf7, 3, RAX);      /* 0, or all ones */
        op_rr(k, 0x66, true, 0x0f6e, 0, RAX); /* xmm0 */
        op_rr(k, 0, false, 0x0f28, to, yes);
        op_rr(k, 0, false, 0x0f54, to, 0);
        op_rr(k, 0, false, 0x0f55, 0, no);
        op_rr(k, 0, false, 0x0f56, to, 0);
        keep_vector(k, unit, to);
        return;
    }
    unsigned yes = general_of(k, unit, op->b), no = general_of(k, unit, op->c);
    unsigned to = take_general(k, op->to);
    op_rr(k, 0, unit == 8, 0x8b, to, no);
    op_rr(k, 0, false, 0x85, on, on);
    op_rr(k, 0, unit == 8, 0x0f45, to, yes);
    keep_general(k, unit, to);
}

static void compute_convert(struct code *k, const struct rp_scalar_op *op)
{
    unsigned from = op->lane.from, to_elem = op->lane.to;
    size_t unit = rp_literal_unit(from), to_unit = rp_literal_unit(to_elem);

    if (is_float(from)) {
        unsigned x = vector_of(k, unit, op->a), to = take_vector(k, op->to);

        op_rr(k, unit == 8 ? 0xf2 : 0xf3, false, from == to_elem ? 0x0f10 : 0x0f5a, to, x);
        keep_vector(k, to_unit, to);
        return;
    }
    unsigned x = general_of(k, unit, op->a);
    if (is_float(to_elem)) { /* u32 as s64 */
        unsigned to = take_vector(k, op->to);

        op_rr(k, 0, false, 0x0f57, to, to); /* depends on nothing */
        op_rr(k, to_unit == 8 ? 0xf2 : 0xf3, unit == 8 || from == RP_ELEM_U32, 0x0f2a, to, x);
        keep_vector(k, to_unit, to);
        return;
    }
    unsigned to = take_general(k, op->to);
    if (from == RP_ELEM_S32 && to_unit == 8)
        op_rr(k, 0, true, 0x63, to, x);
    else
        op_rr(k, 0, unit == 8 && to_unit == 8, 0x8b, to, x);
    keep_general(k, to_unit, to);
}

static void compute_float(struct code *k, const struct rp_scalar_op *op)
{
    size_t unit = rp_literal_unit(op->lane.from);
    unsigned prefix = unit == 8 ? 0xf2 : 0xf3, opcode, x = vector_of(k, unit, op->a);
    uint64_t top = UINT64_C(1) << (8 * unit - 1);

    switch (op->code) {
    case RP_OP_ADD:
        opcode = 0x0f58;
        break;
    case RP_OP_SUBTRACT:
        opcode = 0x0f5c;
        break;
    case RP_OP_MULTIPLY:
        opcode = 0x0f59;
        break;
    case RP_OP_DIVIDE:
        opcode = 0x0f5e;
        break;
    case RP_OP_SQRT:
        opcode = 0x0f51;
        break;
    default:
        opcode = op->code == RP_OP_NEGATE ? 0x0f57 : 0x0f54;
    }
    unsigned y = op->b == RP_NONE ? x : vector_of(k, unit, op->b), to = take_vector(k, op->to);
    if (op->code == RP_OP_NEGATE || op->code == RP_OP_ABS) { /* changes the sign alone */
        load_number(k, RAX, op->code == RP_OP_NEGATE ? top : top - 1);
        op_rr(k, 0x66, true, 0x0f6e, 0, RAX);
        prefix = 0;
        y = 0;
    }
    op_rr(k, 0, false, 0x0f28, to, x);
    op_rr(k, prefix, false, opcode, to, y);
    keep_vector(k, unit, to);
}

/* An operation of one integer. */
static void compute_unary(struct code *k, const struct rp_scalar_op *op)
{
    size_t unit = rp_literal_unit(op->lane.from);
    unsigned x = general_of(k, unit, op->a), to = take_general(k, op->to);

    op_rr(k, 0, unit == 8, 0x8b, to, x);
    if (op->lane.from == RP_ELEM_PRED) {
        put_opcode(k, 0, false, 0x83, 0, 0, to, false);
        put(k, 0xf0 | (to & 7), 1); /* xor to, 1 */
        put(k, 1, 1);
    } else {
        op_rr(k, 0, unit == 8, 0xf7, op->code == RP_OP_NOT ? 2 : 3, to);
    }
    keep_general(k, unit, to);
}

static void compute(struct code *k, const struct rp_scalar_op *op)
{
    switch (op->code) {
    case RP_OP_COMPARE:
        compute_compare(k, op);
        return;
    case RP_OP_SELECT:
        compute_select(k, op);
        return;
    case RP_OP_CONVERT:
        compute_convert(k, op);
        return;
    default:
        break;
    }
    if (is_float(op->lane.from)) {
        compute_float(k, op);
        return;
    }
    switch (op->code) {
    case RP_OP_ADD:
        compute_binary(k, 0x03, op);
        return;
    case RP_OP_SUBTRACT:
        compute_binary(k, 0x2b, op);
        return;
    case RP_OP_MULTIPLY:
        compute_binary(k, 0x0faf, op);
        return;
    case RP_OP_AND:
        compute_binary(k, 0x23, op);
        return;
    case RP_OP_OR:
        compute_binary(k, 0x0b, op);
        return;
    case RP_OP_XOR:
        compute_binary(k, 0x33, op);
        return;
    case RP_OP_DIVIDE:
    case RP_OP_REMAINDER:
        if (op->most > 1)
            compute_known_divide(k, op);
        else
            compute_divide(k, op);
        return;
    case RP_OP_MAXIMUM:
    case RP_OP_MINIMUM:
        compute_extreme(k, op);
        return;
    case RP_OP_NOT:
    case RP_OP_NEGATE:
        compute_unary(k, op);
        return;
    default:
        compute_shift(k, op);
    }
}

/* What the function reads, and what is read later, is in its slots. */
static void call(struct code *k, uint64_t function)
{
    load_number(k, RAX, function);
    put(k, 0xd0ff, 2);
}

static void call_lane(struct code *k, const struct rp_scalar_op *op)
{
    static const uint8_t registers[] = {RDX, RCX, 8, 9};
    const uint32_t slots[] = {op->to, op->a, op->b, op->c};

    forget_all(k);
    load_number(k, RDI, (uint64_t)(uintptr_t)&op->lane);
    load_number(k, RSI, 1);
    for (size_t i = 0; i < 4; i++)
        if (slots[i] != RP_NONE)
            op_slot(k, 0, true, 0x8d, registers[i], slots[i], 0); /* lea */
        else
            load_number(k, registers[i], 0);
    call(k, (uint64_t)(uintptr_t)op->lane.fn);
}

static void jump(struct code *k, unsigned opcode, uint32_t to)
{
    if (opcode > 0xff)
        put(k, opcode >> 8, 1);
    put(k, opcode & 0xff, 1);
    k->jumps[k->njumps++] = (struct jump){k->n, to};
    put(k, 0, 4);
}

/* rax = the number in a slot, in 64 bits */
static void load_index(struct code *k, const struct rp_scalar_op *op)
{
    unsigned x = general_of(k, rp_literal_unit(op->elem), op->a);

    if (op->elem == RP_ELEM_S32)
        op_rr(k, 0, true, 0x63, RAX, x);
    else
        op_rr(k, 0, is_wide(op->elem), 0x8b, RAX, x);
}

static void place(struct code *k, const struct rp_scalar_op *op)
{
    bool sign = is_signed(op->elem);

    load_index(k, op);
    if (sign) {
        op_rr(k, 0, false, 0x33, RDX, RDX);
        op_rr(k, 0, true, 0x85, RAX, RAX);
        op_rr(k, 0, true, 0x0f48, RAX, RDX); /* cmovs */
    }
    put_opcode(k, 0, false, 0xb8 | RDX, 0, 0, 0, false);
    put(k, (uint64_t)op->most, 4);
    op_rr(k, 0, true, 0x3b, RAX, RDX);
    op_rr(k, 0, true, 0x0f47, RAX, RDX); /* cmova */
    op_rr(k, 0, true, 0x69, RAX, RAX);
    put(k, (uint64_t)op->stride, 4);
    if (op->b != RP_NONE)
        op_rr(k, 0, true, 0x03, RAX, general_of(k, 8, op->b));
    unsigned to = take_general(k, op->to);
    op_rr(k, 0, true, 0x8b, to, RAX);
    keep_general(k, 8, to);
}

/* rax = the address of an element, but for its distance */
static void load_address(struct code *k, const struct rp_scalar_op *op)
{
    op_rr(k, 0, true, 0x8b, RAX, general_of(k, 8, op->a));
    if (op->b != RP_NONE)
        op_rr(k, 0, true, 0x03, RAX, general_of(k, 8, op->b));
}

static void load(struct code *k, const struct rp_scalar_op *op)
{
    size_t unit = rp_literal_unit(op->elem);

    load_address(k, op);
    if (is_float(op->elem)) {
        unsigned to = take_vector(k, op->to);

        op_at(k, unit == 8 ? 0xf2 : 0xf3, false, 0x0f10, to, op->stride);
        keep_vector(k, unit, to);
        return;
    }
    unsigned to = take_general(k, op->to);
    op_at(k, 0, unit == 8, unit == 1 ? 0x0fb6 : unit == 2 ? 0x0fb7 : 0x8b, to, op->stride);
    keep_general(k, unit, to);
}

static void store(struct code *k, const struct rp_scalar_op *op)
{
    size_t unit = rp_literal_unit(op->elem);

    if (op->a == RP_SCALAR_FRAME)
        flush_all(k);
    load_address(k, op);
    if (is_float(op->elem))
        op_at(k, unit == 8 ? 0xf2 : 0xf3, false, 0x0f11, vector_of(k, unit, op->c), op->stride);
    else
        op_at(k, unit == 2 ? 0x66 : 0, unit == 8, unit == 1 ? 0x88 : 0x89,
              general_of(k, unit, op->c), op->stride);
    if (op->a == RP_SCALAR_FRAME)
        forget_all(k);
}

/* The target may be read before it is written, in the next turn, so it is stored at once. */
static void move(struct code *k, const struct rp_scalar_op *op)
{
    size_t unit = rp_literal_unit(op->elem);

    if (is_float(op->elem))
        op_slot(k, unit == 8 ? 0xf2 : 0xf3, false, 0x0f11, vector_of(k, unit, op->a), op->to, 0);
    else
        op_slot(k, unit == 2 ? 0x66 : 0, unit == 8, unit == 1 ? 0x88 : 0x89,
                general_of(k, unit, op->a), op->to, 0);
}

static void leave(struct code *k)
{
    static const uint8_t bytes[] = {0x48, 0x83, 0xc4, 0x08, 0x41, 0x5f, 0x41, 0x5e,
                                    0x41, 0x5d, 0x41, 0x5c, 0x5d, 0x5b, 0xc3};

    for (size_t i = 0; i < sizeof bytes; i++)
        put(k, bytes[i], 1);
}

static void turn(struct code *k, const struct rp_scalar_op *op)
{
    forget_all(k);
    op_slot(k, 0, false, 0xff, 1, RP_SCALAR_TURNS, 0); /* dec */
    jump(k, 0x0f85, op->to);
    op_rr(k, 0, true, 0x8b, RDI, RBX);
    call(k, (uint64_t)(uintptr_t)rp_scalar_look);
    op_rr(k, 0, false, 0x85, RAX, RAX);
    jump(k, 0x0f84, op->to);
    leave(k);
}

static void put_op(struct code *k, const struct rp_scalar_op *op)
{
    switch (op->kind) {
    case RP_SCALAR_LANE:
        forget(k, op->to);
        if (rp_scalar_is_frequent(op))
            compute(k, op);
        else
            call_lane(k, op);
        break;
    case RP_SCALAR_MOVE:
        forget(k, op->to);
        move(k, op);
        break;
    case RP_SCALAR_PLACE:
        place(k, op);
        break;
    case RP_SCALAR_LOAD:
        load(k, op);
        break;
    case RP_SCALAR_STORE:
        store(k, op);
        break;
    case RP_SCALAR_INSIDE:
        load_index(k, op);
        flush_all(k);
        put(k, 0x3d48, 2); /* cmp rax, most */
        put(k, (uint64_t)op->most, 4);
        jump(k, 0x0f87, op->to);
        break;
    case RP_SCALAR_EQUAL:
        op_rr(k, 0, false, 0x8b, RAX, general_of(k, rp_literal_unit(op->elem), op->a));
        flush_all(k);
        put(k, 0x3d, 1); /* cmp eax, most */
        put(k, (uint64_t)op->most, 4);
        jump(k, 0x0f85, op->to);
        break;
    case RP_SCALAR_JUMP:
        flush_all(k);
        jump(k, 0xe9, op->to);
        break;
    case RP_SCALAR_AGAIN:
        turn(k, op);
        break;
    default:
        break;
    }
}

static void code_release(struct code *k)
{
    free(k->at);
    free(k->place);
    free(k->last);
    free(k->jumps);
}

/* Finds where slots are read last; operands that an instruction does not have are RP_NONE or 0. */
static bool find_last(struct code *k, const struct rp_scalar_op *ops, size_t n)
{
    uint32_t most = RP_SCALAR_SLOTS;

    for (size_t i = 0; i < n; i++) {
        const uint32_t slots[] = {ops[i].to, ops[i].a, ops[i].b, ops[i].c};

        for (size_t j = 0; j < 4; j++)
            most = slots[j] != RP_NONE && slots[j] > most ? slots[j] : most;
    }
    k->last = calloc((size_t)most + 1, sizeof *k->last);
    for (size_t i = 0; k->last && i < n; i++) {
        const uint32_t slots[] = {ops[i].a, ops[i].b, ops[i].c};

        for (size_t j = 0; j < 3; j++)
            if (slots[j] != RP_NONE)
                k->last[slots[j]] = (uint32_t)i;
    }
    return k->last;
}

static bool put_all(struct code *k, const struct rp_scalar_op *ops, size_t n)
{
    static const uint8_t enter[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x53, 0x55, 0x41,
                                    0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57,
                                    0x48, 0x83, 0xec, 0x08, 0x48, 0x89, 0xfb};

    k->cap = (n + 2) * MOST_BYTES;
    k->at = malloc(k->cap);
    k->place = calloc(n + 1, sizeof *k->place);
    k->jumps = calloc(2 * n + 1, sizeof *k->jumps);
    if (!k->at || !k->place || !k->jumps || !find_last(k, ops, n))
        return false;
    forget_all(k);
    for (size_t i = 0; i < sizeof enter; i++)
        put(k, enter[i], 1);
    for (size_t i = 0; i < n; i++) {
        k->busy = 0;
        k->now = (uint32_t)i;
        if (ops[i].kind == RP_SCALAR_LABEL)
            forget_all(k); /* what comes from above stores before the label */
        k->place[i] = (uint32_t)k->n;
        put_op(k, &ops[i]);
    }
    op_rr(k, 0, false, 0x33, RAX, RAX);
    leave(k);
    for (size_t i = 0; i < k->njumps; i++) {
        uint32_t by = k->place[k->jumps[i].to] - (uint32_t)(k->jumps[i].at + 4);

        memcpy(k->at + k->jumps[i].at, &by, sizeof by);
    }
    return true;
}

rp_scalar_fn *rp_scalar_compile(struct rp_plan *plan, const struct rp_scalar_op *ops, size_t n)
{
    RP_SCOPED(code_release) struct code k = {0};
    struct rp_plan_code *kept = RP_NODE_NEW(plan, struct rp_plan_code);
    rp_scalar_fn *fn = NULL;

    if (!kept || !put_all(&k, ops, n))
        return NULL;
    void *at = mmap(NULL, k.n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    memcpy(at, k.at, k.n);
    *kept = (struct rp_plan_code){plan->code, at, k.n};
    plan->code = kept;
    if (mprotect(at, k.n, PROT_READ | PROT_EXEC) == 0)
        memcpy(&fn, &at, sizeof fn);
    return fn;
}

#else

bool rp_scalar_is_frequent(const struct rp_scalar_op *op)
{
    (void)op;
    return false;
}

rp_scalar_fn *rp_scalar_compile(struct rp_plan *plan, const struct rp_scalar_op *ops, size_t n)
{
    (void)plan;
    (void)ops;
    (void)n;
    return NULL;
}

#endif
