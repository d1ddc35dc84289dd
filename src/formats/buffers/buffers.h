/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * XLA's buffer assignment: allocations, the values that share them, and what is live when most is.
 * It is written in three ways:
 *
 *     …-buffer-assignment.txt   allocations with their values:
 *                                  allocation 4: size 262144, page 0, parameter 0, shape …
 *                                   value: <374 p.1 @0> (size=262144,offset=0): f32[256,256]{1,0}
 *     …-live-range.txt          the order of instructions, when values are live, and the peak
 *     HloProto, field 3         allocations, values, and events of the heap simulator
 */
#include "base/arena.h"
#include "base/limits.h"
#include "base/vec.h"
#include "io/proto.h"

#include <stdbool.h>

enum rp_buffer_kind {
    RP_BUFFER_ARGUMENT, /* of the program */
    RP_BUFFER_OUTPUT,   /* may still be live after the program has ended */
    RP_BUFFER_CONSTANT,
    RP_BUFFER_THREAD_LOCAL,
    RP_BUFFER_TEMPORARY,
    RP_BUFFER_KINDS
};
extern const char *const rp_buffer_kind_names[RP_BUFFER_KINDS];

struct rp_buffer_allocation {
    int64_t number, bytes;
    int64_t argument; /* number of the argument, or -1 */
    uint8_t kind;     /* enum rp_buffer_kind */
};

struct rp_buffer_value {
    const char *name; /* of the instruction, such as "fusion.3" or "fusion.3{1}"; in the arena */
    int64_t id, bytes, offset;
    uint32_t allocation; /* index */
};

struct rp_live_buffer {
    const char *name; /* as that of a value */
    int64_t bytes;
};

struct rp_live_range {
    const char *name;    /* as that of a value */
    int64_t first, last; /* positions in the order of instructions, inclusive */
};

struct rp_buffers {
    struct rp_arena arena;
    RP_VEC(struct rp_buffer_allocation) allocations;
    RP_VEC(struct rp_buffer_value) values;
    int64_t total_bytes; /* sum of all allocations, which XLA reports as "Total bytes" */
    /* These are set if the file says what is live when: */
    bool has_peak;
    RP_VEC(struct rp_live_buffer) live; /* at the peak */
    int64_t peak_bytes;                 /* their sum */
    int64_t peak_at, length; /* position in the order of instructions, or -1 if it is not known */
    const char *peak_instruction;              /* or NULL */
    int64_t stated_peak_bytes, stated_peak_at; /* as XLA's text of live ranges states them, or -1 */
    /* From the text of live ranges, or from the events of one heap, in which case positions are
       events and INT64_MAX is the end. Otherwise empty. */
    RP_VEC(const char *) order; /* names of instructions, by position */
    RP_VEC(struct rp_live_range) ranges;
};

void rp_buffers_init(struct rp_buffers *b);
void rp_buffers_release(struct rp_buffers *b);

/* `b` must be released also after a failure. limits may be NULL for the defaults. */
enum rp_code rp_buffers_read_text(struct rp_buffers *b, const char *text, size_t n,
                                  const struct rp_limits *limits, struct rp_err *err);
/* Adds what a live range text says: the order, the ranges, the peak. XLA looks for the peak before
   it takes off what ends at a position, so it may name the next position, and it counts values that
   share memory twice. Therefore the peak is computed from the ranges (lives.h), and what XLA states
   is kept beside it. */
enum rp_code rp_buffers_read_ranges(struct rp_buffers *b, const char *text, size_t n,
                                    const struct rp_limits *limits, struct rp_err *err);
/* Reads "Total bytes: N" of a memory usage report, the sum of all memory spaces. */
enum rp_code rp_buffers_read_report(const char *text, size_t n, int64_t *total_bytes,
                                    struct rp_err *err);
/* Reads the assignment in an HloProto; *found tells whether it has one. */
enum rp_code rp_buffers_read_proto(struct rp_buffers *b, struct rp_bytes proto, bool *found,
                                   struct rp_err *err);
