/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What slow-operator keeps about a rank. */
#include "base/decides.h"
#include "result/part.h"

#define RP_SLOW_OPERATOR(M, s)                                                             \
    M(s, PLAIN, uint8_t, kind) /* of the finding's */                                      \
    M(s, PLAIN, bool, by_memory)                                                           \
    M(s, PLAIN, int64_t, calls)                                                            \
    M(s, PLAIN, int64_t, device_ns)                                                        \
    M(s, PLAIN, int64_t, lost_ns)                                                          \
    M(s, PLAIN, double, rate) /* FLOP/s, or if memory limits it, bytes/s */                \
    M(s, PLAIN, double, peak)                                                              \
    M(s, PLAIN, double, flops_per_s) /* for a matrix product that memory limits; else 0 */ \
    M(s, TEXT, op)                   /* "bmm [[96, 3137, 64], …" */                      \
    M(s, TEXT, kernel)                                                                     \
    M(s, TEXT, why) /* or NULL */
RP_PART_STRUCT(rp_slow_operator, RP_SLOW_OPERATOR);

#define RP_SLOW_OPERATORS_MOST 3
RP_LIMIT(RP_SLOW_OPERATORS_MOST, "operators", "all count, those that lose most are named");
#define RP_SLOW_OPERATORS(M, s)                                                       \
    M(s, PLAIN, size_t, n)                                                            \
    M(s, RECORDS, rp_slow_operator, at,                                               \
      RP_SLOW_OPERATORS_MOST)     /* operators of one kind, the largest loss first */ \
    M(s, PLAIN, int64_t, lost_ns) /* loss of all operators of that kind */
RP_PART_STRUCT(rp_slow_operators, RP_SLOW_OPERATORS);
