/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The resources that a reader may use before it fails with RP_LIMIT, so that no input can exhaust
 * memory or run forever. Every reader takes them. The input checks input_bytes, and the builder of
 * a trace events; the reader must check token_bytes and depth.
 */
#include <stdint.h>

struct rp_limits {
    uint64_t input_bytes; /* decompressed bytes of one input */
    uint64_t held_bytes;  /* decompressed members of one archive that are kept in memory */
    uint64_t token_bytes; /* one string, number, field or line */
    uint64_t events;      /* events of one trace; ids are 32-bit */
    uint64_t members;     /* files of one folder or tar */
    uint32_t depth;       /* nesting */
};

#define RP_LIMITS_DEFAULT                                  \
    ((struct rp_limits){.input_bytes = UINT64_C(1) << 42,  \
                        .held_bytes = UINT64_C(8) << 30,   \
                        .token_bytes = UINT64_C(64) << 20, \
                        .events = UINT32_MAX - 1,          \
                        .members = 1000000,                \
                        .depth = 1024})
