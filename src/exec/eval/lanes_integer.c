/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element-wise operations on integers and pred, written once for all widths. Arithmetic wraps;
 * division by zero gives -1 (all ones), the remainder by zero gives the left side, the smallest
 * number divided by -1 gives itself; shifts by the width or more give 0, or the sign.
 */
#include "exec/eval/lanes.h"
#include "program/opcodes.h"

#define LANE(name) RP_CLONES_FEW static RP_LANE(name)
#define WIDTH      (8 * sizeof(T))

#define EQUAL_LIST(X) \
    X(EQ, eq, x == y) \
    X(NE, ne, x != y)

#define ORDER_LIST(X) \
    X(GE, ge, x >= y) \
    X(GT, gt, x > y)  \
    X(LE, le, x <= y) \
    X(LT, lt, x < y)

/* Signed and unsigned numbers give the same bits, so there is one loop for both. */
#define SAME_BINARY_LIST(X)                               \
    X(ADD, add, x + y)                                    \
    X(SUBTRACT, subtract, x - y)                          \
    X(MULTIPLY, multiply, (x + 0u) * y)                   \
    X(AND, and, x &y)                                     \
    X(OR, or, x | y)                                      \
    X(XOR, xor, x ^ y)                                    \
    X(SHIFT_LEFT, shl, y >= WIDTH ? 0 : (x + 0u) << y)    \
    X(SHIFT_RIGHT_LOGICAL, shrl, y >= WIDTH ? 0 : x >> y) \
    X(SHIFT_RIGHT_ARITHMETIC, shra, (S)x >> (y >= WIDTH ? WIDTH - 1 : y))

#define SAME_UNARY_LIST(X)                                                    \
    X(NEGATE, negate, 0 - (uint64_t)x)                                        \
    X(NOT, not, ~x)                                                           \
    X(POPCNT, popcnt, __builtin_popcountll(x))                                \
    X(CLZ, clz, x == 0 ? (int)WIDTH : __builtin_clzll(x) - (int)(64 - WIDTH)) \
    X(COPY, copy, x)

#define BINARY_LIST(X)                                                      \
    X(DIVIDE, divide, N(quotient)(x, y))                                    \
    X(REMAINDER, remainder, y == 0 ? x : (T)(x - N(quotient)(x, y) * (U)y)) \
    X(MAXIMUM, maximum, x > y ? x : y)                                      \
    X(MINIMUM, minimum, x < y ? x : y)                                      \
    X(POWER, power, N(raise)(x, y))                                         \
    X(MULHI, mulhi, (T)(((WIDE)x * (WIDE)y) >> WIDTH))

#define UNARY_LIST(X)                                   \
    X(ABS, abs, NEGATIVE(x) ? (T)(0 - (uint64_t)x) : x) \
    X(SIGN, sign, NEGATIVE(x) ? (T)-1 : x != 0)

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

#define NEGATIVE(x)  0
#define MINUS_ONE(y) 0
#define WIDE         uint128
#define T            uint8_t
#define U            uint8_t
#define S            int8_t
#define N(name)      name##_u8
#include "exec/eval/lanes_integer.inc"
#define T       uint16_t
#define U       uint16_t
#define S       int16_t
#define N(name) name##_u16
#include "exec/eval/lanes_integer.inc"
#define T       uint32_t
#define U       uint32_t
#define S       int32_t
#define N(name) name##_u32
#include "exec/eval/lanes_integer.inc"
#define T       uint64_t
#define U       uint64_t
#define S       int64_t
#define N(name) name##_u64
#include "exec/eval/lanes_integer.inc"
#undef NEGATIVE
#undef MINUS_ONE
#undef WIDE
#define NEGATIVE(x)  ((x) < 0)
#define MINUS_ONE(y) ((y) == -1)
#define WIDE         int128
#define T            int8_t
#define U            uint8_t
#define N(name)      name##_s8
#define SAME         find_u8
#include "exec/eval/lanes_integer.inc"
#define T       int16_t
#define U       uint16_t
#define N(name) name##_s16
#define SAME    find_u16
#include "exec/eval/lanes_integer.inc"
#define T       int32_t
#define U       uint32_t
#define N(name) name##_s32
#define SAME    find_u32
#include "exec/eval/lanes_integer.inc"
#define T       int64_t
#define U       uint64_t
#define N(name) name##_s64
#define SAME    find_u64
#include "exec/eval/lanes_integer.inc"

LANE(not_pred)
{
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)out)[i] = !((const uint8_t *)a)[i];
}

/* For truth values, a sum is `or` and a product `and`; everything else is as on bytes of 0 and
   1. */
static rp_lane_fn *find_pred(unsigned opcode, unsigned direction)
{
    switch (opcode) {
    case RP_OP_NOT:
        return not_pred;
    case RP_OP_ADD:
    case RP_OP_MAXIMUM:
        return find_u8(RP_OP_OR, 0);
    case RP_OP_MULTIPLY:
    case RP_OP_MINIMUM:
        return find_u8(RP_OP_AND, 0);
    case RP_OP_SUBTRACT:
        return find_u8(RP_OP_XOR, 0);
    case RP_OP_AND:
    case RP_OP_OR:
    case RP_OP_XOR:
    case RP_OP_COMPARE:
    case RP_OP_COPY:
    case RP_OP_CLAMP:
        return find_u8(opcode, direction);
    default:
        return NULL;
    }
}

rp_lane_fn *rp_lane_integer(unsigned opcode, unsigned elem, unsigned direction)
{
    switch (elem) {
    case RP_ELEM_PRED:
        return find_pred(opcode, direction);
    case RP_ELEM_S8:
    case RP_ELEM_S4:
    case RP_ELEM_S2:
    case RP_ELEM_S1:
        return find_s8(opcode, direction);
    case RP_ELEM_S16:
        return find_s16(opcode, direction);
    case RP_ELEM_S32:
        return find_s32(opcode, direction);
    case RP_ELEM_S64:
        return find_s64(opcode, direction);
    case RP_ELEM_U8:
    case RP_ELEM_U4:
    case RP_ELEM_U2:
    case RP_ELEM_U1:
        return find_u8(opcode, direction);
    case RP_ELEM_U16:
        return find_u16(opcode, direction);
    case RP_ELEM_U32:
        return find_u32(opcode, direction);
    case RP_ELEM_U64:
        return find_u64(opcode, direction);
    default:
        return NULL;
    }
}
