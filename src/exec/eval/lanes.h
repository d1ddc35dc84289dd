/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Element-wise operations as loops: a lane takes n elements of each operand, which follow one
 * another, and writes n results. Whole arrays, the pieces of a fused loop and the scalars of a
 * reduction all go through the same lanes. An output may be one of the inputs.
 *
 * Types narrower than f32 are widened to f32 piece by piece and rounded after each operation, as
 * XLA does; types under a byte are computed in eight bits and cut.
 */
#include "exec/data/tensor.h"

#include <string.h>

struct rp_lane;
/* Declares or defines a lane; most use only some of the parameters. */
#define RP_LANE(name)                                                                             \
    void name(RP_UNUSED const struct rp_lane *lane, size_t n, void *out, RP_UNUSED const void *a, \
              RP_UNUSED const void *b, RP_UNUSED const void *c)
typedef RP_LANE(rp_lane_fn);

struct rp_lane {
    rp_lane_fn *fn;
    rp_lane_fn *inner; /* the inner function, on wider elements */
    uint8_t from,
        to; /* element types of the first operand (for select: the second) and the result */
    uint8_t direction; /* for compare, enum rp_direction; for products, 1: rounded once (complex) */
    uint8_t exponent, mantissa; /* of reduce-precision */
    uint8_t unit;               /* of select */
};

/* Loops are compiled for several x86 machines, and the best version is chosen when the program
   starts. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define RP_CLONES     __attribute__((target_clones("avx512f", "avx2", "default")))
#define RP_CLONES_FEW __attribute__((target_clones("avx2", "default"))) /* for what is less hot */
#else
#define RP_CLONES
#define RP_CLONES_FEW
#endif

/* In a lane of n elements: does the statement and returns if there is only one, as in loops over
   scalars, for which preparing a loop takes longer than its body. */
#define RP_LANE_ALONE(...)  \
    if (n == 1) {           \
        __VA_ARGS__ return; \
    }

enum rp_direction { RP_CMP_EQ, RP_CMP_NE, RP_CMP_GE, RP_CMP_GT, RP_CMP_LE, RP_CMP_LT };

/* All members except fn and inner are given; false if there is no such operation on the type. */
bool rp_lane_find(unsigned opcode, bool total_order, struct rp_lane *lane);

static inline RP_LANE(rp_lane_run)
{
    lane->fn(lane, n, out, a, b, c);
}

/* Convert types under 32 bits to f32 and back, rounding to nearest even. */
void rp_widen(unsigned elem, size_t n, float *out, const void *in);
void rp_narrow(unsigned elem, size_t n, void *out, const float *in);
/* Rounds floats in place to what an operation on the type gives. */
void rp_round_small(unsigned elem, size_t n, float *values);
bool rp_elem_is_small_float(unsigned elem); /* f16, bf16, f8, f6, f4 */

/* The loops for one class of types; NULL: none. */
rp_lane_fn *rp_lane_float(unsigned opcode, bool wide, unsigned direction, bool total_order);
rp_lane_fn *rp_lane_integer(unsigned opcode, unsigned elem, unsigned direction);
rp_lane_fn *rp_lane_complex(unsigned opcode, bool wide, unsigned direction);
/* Tests whether floats are equal without flushing subnormal numbers. */
rp_lane_fn *rp_lane_by_bits(bool wide);
rp_lane_fn *rp_lane_convert(unsigned from, unsigned to);

float rp_f16_to_f32(uint16_t bits);
uint16_t rp_f32_to_f16(float value);
