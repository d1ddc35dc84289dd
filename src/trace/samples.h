/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Samples of call stacks, as a sampling profiler takes them: columns beside the events of a trace,
 * 25 bytes for each sample. Stacks form a prefix tree, so that each different stack is stored once:
 *
 *     stack 0 = main            parent RP_NONE
 *     stack 1 = main > step     parent 0
 *     stack 2 = main > load     parent 0        a sample names the stack of its innermost frame
 *
 * A parent has a smaller number than its child, so one loop from the last stack to the first adds
 * up what is under each. Samples are ordered by track, time, file order. A profile without times
 * (pprof, folded stacks) has weights only: its times are RP_NO_TS, and nobody may place it on a
 * time line.
 */
#include <stdint.h>

enum rp_frame_kind {
    RP_FRAME_OTHER, /* not known, or of another language */
    RP_FRAME_PYTHON,
    RP_FRAME_NATIVE,
    RP_FRAME_KERNEL, /* of the operating system */
    RP_FRAME_KINDS
};

struct rp_call_frame {
    uint32_t name; /* name of the function, a string; if it has none, its address in hexadecimal */
    uint32_t file; /* the source file, or for native code without one, the library; 0: not known */
    uint32_t line; /* 0: not known */
    uint32_t kind; /* enum rp_frame_kind */
};

struct rp_call_stack {
    uint32_t parent; /* the stack without the innermost frame, or RP_NONE */
    uint32_t frame;
};

/* What a thread did when it was sampled. It is unknown if neither RAN nor WAITED is set. */
enum {
    RP_SAMPLE_RAN = 1,       /* on a processor */
    RP_SAMPLE_WAITED = 2,    /* off the processors */
    RP_SAMPLE_HAD_GIL = 4,   /* held Python's global lock */
    RP_SAMPLE_WANTS_GIL = 8, /* waited for it */
    RP_SAMPLE_FLAGS = 15
};

/* What the weights of a trace count. */
enum rp_weight_unit { RP_WEIGHT_NS, RP_WEIGHT_COUNT, RP_WEIGHT_BYTES, RP_WEIGHT_UNITS };

struct rp_call_samples {
    uint32_t n, nframes, nstacks;
    uint32_t unit;         /* enum rp_weight_unit, the same for all weights */
    uint32_t unit_name;    /* what is counted, in the file's words: "cpu", "cycles"; or 0 */
    const int64_t *ts_ns;  /* RP_NO_TS: not known */
    const int64_t *weight; /* for time: how long this sample stands for. May be 0, or negative in a
                              difference of two profiles */
    const uint32_t *track; /* its thread */
    const uint32_t *stack; /* RP_NONE if the stack could not be read */
    const uint8_t *flags;  /* RP_SAMPLE_* */
    const struct rp_call_frame *frame;
    const struct rp_call_stack *stacks;
};
