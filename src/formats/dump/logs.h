/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What XLA logs beside the programs of a dump, as protobuf or as its text:
 *
 *     module_0007.metadata.textproto             the passes: times, and whether they changed it
 *     module_0007.f.priority_fusion_dump.txt     what the fusion pass considered, in its order
 *     module_0007.f.thunk_metadata.txt or .pb    thunks: id, instruction, kind
 *     module_0007.f.thunk_sequence.txt           thunks as they run, nested in command buffers
 *
 * Everything is in the arena.
 */
#include "base/arena.h"
#include "base/limits.h"
#include "io/proto.h"

#include <stdbool.h>

/* ---- passes ---- */

struct rp_pass_time {
    const char *name, *pipeline; /* "algsimp", "simplification" */
    int64_t id, module;          /* -1: not given */
    int64_t start_us, end_us;    /* since 1970; end < start: did not end */
    bool changed;                /* the module */
};

struct rp_pass_times {
    struct rp_pass_time *at; /* in the order of the file, which is that of time */
    size_t n;
    int64_t module; /* -1: not given */
};

/* limits: NULL for the defaults. */
enum rp_code rp_pass_times_read(const uint8_t *bytes, size_t n, const struct rp_limits *limits,
                                struct rp_arena *arena, struct rp_pass_times *out,
                                struct rp_err *err);

/* Of a pass: 0 where it did not end. */
static inline int64_t rp_pass_ns(const struct rp_pass_time *pass)
{
    int64_t us;

    if (__builtin_sub_overflow(pass->end_us, pass->start_us, &us) || us < 0 ||
        us > INT64_MAX / 1000)
        return 0;
    return us * 1000;
}

/* ---- the fusion pass ---- */

enum rp_fusion_step_kind {
    RP_FUSION_FUSED,
    RP_FUSION_INELIGIBLE,
    RP_FUSION_PRIORITY /* an estimate: fuse the producer into all of its consumers, or not */
};

struct rp_fusion_step {
    uint8_t kind; /* enum rp_fusion_step_kind */
    const char *producer, *consumer, *fusion, *reason;
    const char **consumers; /* of an estimate */
    size_t nconsumers;
    double fused_us, unfused_us; /* of an estimate */
};

struct rp_fusion_log {
    struct rp_fusion_step *at;
    size_t n;
    const char *before; /* the program before the pass as HLO text, or NULL */
    size_t before_n;
};

enum rp_code rp_fusion_log_read(const uint8_t *bytes, size_t n, const struct rp_limits *limits,
                                struct rp_arena *arena, struct rp_fusion_log *out,
                                struct rp_err *err);

/* ---- thunks ---- */

struct rp_thunk {
    int64_t id;
    uint32_t parent;         /* index of the command buffer or region it is in; RP_NONE: none */
    uint32_t depth;          /* number of parents */
    const char *kind;        /* "kCustomKernel" */
    const char *kernel;      /* "gemm_fusion_dot_3"; "" where it launches none */
    const char *instruction; /* from the metadata; "" where not known */
    int64_t grid[3], block[3], shared_bytes; /* grid[0] is 0 if they are not given */
};

struct rp_thunks {
    struct rp_thunk *at; /* in the order of the file */
    size_t n;
};

/* RP_FORMAT where the first line is not a thunk. */
enum rp_code rp_thunks_read(const char *text, size_t n, const struct rp_limits *limits,
                            struct rp_arena *arena, struct rp_thunks *out, struct rp_err *err);

/* Thunks that have metadata only, in its order. */
enum rp_code rp_thunk_metadata_read(const uint8_t *bytes, size_t n, const struct rp_limits *limits,
                                    struct rp_arena *arena, struct rp_thunks *out,
                                    struct rp_err *err);

/* Fills the instructions of `thunks` from the metadata, by kind and id. */
enum rp_code rp_thunks_join(struct rp_thunks *thunks, const struct rp_thunks *metadata,
                            struct rp_arena *scratch, struct rp_err *err);
