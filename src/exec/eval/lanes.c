/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the loop of an operation on a type. Small floats use the loop of f32, with operands
 * widened PIECE at a time. Types under a byte use the one of eight bits, and results are cut.
 */
#include "exec/eval/lanes.h"
#include "program/opcodes.h"

#define PIECE 256

/* XLA computes types of eight bits in f16. */
static void by_half(size_t n, float *values)
{
    for (size_t i = 0; i < n; i++)
        values[i] = rp_f16_to_f32(rp_f32_to_f16(values[i]));
}

void rp_round_small(unsigned elem, size_t n, float *values)
{
    uint16_t piece[PIECE];

    if (rp_elem_bits(elem) <= 8 && elem != RP_ELEM_F8E8M0FNU)
        by_half(n, values);
    for (size_t at = 0; at < n; at += PIECE) {
        size_t m = n - at < PIECE ? n - at : PIECE;

        rp_narrow(elem, m, piece, values + at);
        rp_widen(elem, m, values + at, piece);
    }
}

static RP_LANE(small_float)
{
    size_t from = (rp_elem_bits(lane->from) + 7) / 8, to = (rp_elem_bits(lane->to) + 7) / 8;
    const char *in[3] = {a, b, c};
    float wide[3][PIECE], result[PIECE];

    for (size_t at = 0; at < n; at += PIECE) {
        size_t m = n - at < PIECE ? n - at : PIECE;

        for (size_t k = 0; k < 3; k++)
            if (in[k])
                rp_widen(lane->from, m, wide[k], in[k] + at * from);
        if (lane->to == lane->from) {
            lane->inner(lane, m, result, wide[0], wide[1], wide[2]);
            if (from == 1 && lane->from != RP_ELEM_F8E8M0FNU)
                by_half(m, result);
            rp_narrow(lane->to, m, (char *)out + at * to, result);
        } else { /* a comparison gives bytes; other results are f32 */
            lane->inner(lane, m, (char *)out + at * to, wide[0], wide[1], wide[2]);
        }
    }
}

static RP_LANE(sub_byte)
{
    unsigned bits = rp_elem_bits(lane->to), mask = (1u << bits) - 1;
    uint8_t *to = out;

    lane->inner(lane, n, out, a, b, c);
    if (lane->to != lane->from)
        return;
    for (size_t i = 0; i < n; i++) {
        unsigned v = to[i] & mask;

        to[i] = (uint8_t)(rp_elem_is_signed(lane->to) && v >> (bits - 1) ? v | ~mask : v);
    }
}

/* Bits beyond the type count here, so they are cleared before, or filled with the top bit. */
static RP_LANE(sub_byte_bits)
{
    unsigned bits = rp_elem_bits(lane->to), mask = (1u << bits) - 1;
    uint8_t left[PIECE], right[PIECE];

    for (size_t at = 0; at < n; at += PIECE) {
        size_t m = n - at < PIECE ? n - at : PIECE;
        uint8_t *to = (uint8_t *)out + at;

        for (size_t i = 0; i < m; i++) {
            unsigned v = ((const uint8_t *)a)[at + i] & mask;

            left[i] = (uint8_t)(lane->direction && v >> (bits - 1) ? v | ~mask : v);
            right[i] = b ? ((const uint8_t *)b)[at + i] & mask : 0;
        }
        sub_byte(lane, m, to, left, right, NULL);
    }
}

static RP_LANE(sub_byte_clz)
{
    unsigned bits = rp_elem_bits(lane->to), mask = (1u << bits) - 1;

    for (size_t i = 0; i < n; i++) {
        unsigned v = ((const uint8_t *)a)[i] & mask;

        ((uint8_t *)out)[i] = (uint8_t)(v ? __builtin_clz(v) - (int)(32 - bits) : (int)bits);
    }
}

/* lane->direction tells whether the top bit fills the bits above it. */
static rp_lane_fn *find_sub_byte(unsigned opcode, struct rp_lane *lane)
{
    switch (opcode) {
    case RP_OP_CLZ:
        return sub_byte_clz;
    case RP_OP_POPCNT:
    case RP_OP_SHIFT_RIGHT_LOGICAL:
        lane->inner = rp_lane_integer(opcode, RP_ELEM_U8, 0);
        lane->direction = 0;
        return sub_byte_bits;
    case RP_OP_SHIFT_RIGHT_ARITHMETIC:
        lane->inner = rp_lane_integer(opcode, RP_ELEM_S8, 0);
        lane->direction = 1;
        return sub_byte_bits;
    default:
        return sub_byte;
    }
}

/* Uses masks instead of branches, because which side is taken is often random. */
#define SELECT(bits, type, attribute, choice)     \
    attribute static RP_LANE(select_##bits)       \
    {                                             \
        const uint8_t *which = a;                 \
        const type *yes = b, *no = c;             \
        type *to = out;                           \
                                                  \
        RP_LANE_ALONE(*to = *which ? *yes : *no;) \
        for (size_t i = 0; i < n; i++)            \
            to[i] = (choice);                     \
    }
#define MASK(type)  ((type)(0 - (type)(which[i] != 0)))
#define BLEND(type) (type)((yes[i] & MASK(type)) | (no[i] & (type)~MASK(type)))
struct sixteen {
    uint64_t half[2];
};
SELECT(8, uint8_t, RP_CLONES_FEW, BLEND(uint8_t))
SELECT(16, uint16_t, RP_CLONES_FEW, BLEND(uint16_t))
SELECT(32, uint32_t, RP_CLONES, BLEND(uint32_t))
SELECT(64, uint64_t, RP_CLONES_FEW, BLEND(uint64_t))
SELECT(128, struct sixteen, , which[i] ? yes[i] : no[i])

static rp_lane_fn *find_select(unsigned elem)
{
    switch ((rp_elem_bits(elem) + 7) / 8) {
    case 1:
        return select_8;
    case 2:
        return select_16;
    case 4:
        return select_32;
    case 8:
        return select_64;
    case 16:
        return select_128;
    default:
        return NULL;
    }
}

bool rp_lane_find(unsigned opcode, bool total_order, struct rp_lane *lane)
{
    unsigned elem = lane->from;

    if (opcode == RP_OP_SELECT) {
        lane->fn = find_select(elem);
    } else if (opcode == RP_OP_CONVERT) {
        lane->fn = rp_lane_convert(elem, lane->to);
    } else if (elem == RP_ELEM_F32 || elem == RP_ELEM_F64) {
        lane->fn = rp_lane_float(opcode, elem == RP_ELEM_F64, lane->direction, total_order);
    } else if (rp_elem_is_complex(elem)) {
        lane->fn = rp_lane_complex(opcode, elem == RP_ELEM_C128, lane->direction);
    } else if (rp_elem_is_small_float(elem)) {
        lane->inner = rp_lane_float(opcode, false, lane->direction, total_order);
        lane->fn = lane->inner ? small_float : NULL;
    } else {
        lane->inner = rp_lane_integer(opcode, elem, lane->direction);
        lane->fn = lane->inner;
        if (lane->inner && elem != RP_ELEM_PRED && rp_elem_bits(elem) < 8)
            lane->fn = find_sub_byte(opcode, lane);
    }
    return lane->fn != NULL;
}
