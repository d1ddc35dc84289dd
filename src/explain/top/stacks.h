/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `top --by stack|function|line` shows where the host spends its time, from samples of call stacks,
 * or if a trace has none, from spans of Python functions.
 */
#include "base/arena.h"
#include "base/vec.h"
#include "facts/work/work.h"

#include <reprise/result.h>

struct rp_stacks_frame {
    const char *name, *file; /* file is "" if it is not known */
    uint32_t line, kind;     /* enum rp_frame_kind, or RP_STACKS_PART */
};

/* The kind of a frame that is not a function, but a thread, step or rank around its stacks. */
#define RP_STACKS_PART RP_FRAME_KINDS

struct rp_stacks_node {
    uint32_t parent; /* index in the list, before its own, or RP_NONE */
    uint32_t frame;
    int64_t self, count; /* weight and number of samples (or spans) that end here */
};

/* The call tree of a rank. */
struct rp_stacks_part {
    RP_VEC(struct rp_stacks_frame) frames;
    RP_VEC(struct rp_stacks_node) nodes;
    RP_VEC(struct rp_stacks_node) runs; /* in the order of time, if that is wanted (stacks_add.h) */
    int64_t whole, count;               /* weight and number of all samples of the scope */
    int64_t unread;                     /* the part of it without a stack */
    int64_t waited;                     /* left out: samples of threads that waited */
    int64_t wants_gil;                  /* of all samples: those that waited for Python's lock */
    int64_t untimed;                    /* samples without a time that a limited scope leaves out */
    uint32_t unit;                      /* enum rp_weight_unit */
    bool of_spans;                      /* made from spans of Python functions */
    bool of_device;                     /* weights are time of the device */
    bool is_drawn; /* each sample is an independent draw, so that chance can be judged */
    const char *unit_name;
};

extern const struct rp_type rp_stacks_part_type;

/* The weight of a stack: the time on a processor; that with waiting; the time of the device work
   that was launched in it; the time in which the device was idle while the launching thread was in
   it. */
enum rp_stacks_width { RP_STACKS_CPU, RP_STACKS_WALL, RP_STACKS_GPU, RP_STACKS_IDLE };
#define RP_STACKS_WIDTHS "cpu|wall|gpu|idle"
enum rp_stacks_width rp_stacks_width_of(const char *word); /* it was checked */

/* How the stacks are divided; rp_stacks_join divides by ranks. */
enum rp_stacks_split { RP_STACKS_WHOLE, RP_STACKS_BY_THREAD, RP_STACKS_BY_STEP, RP_STACKS_BY_RANK };
#define RP_STACKS_SPLITS "thread|step|rank"
enum rp_stacks_split rp_stacks_split_of(const char *word); /* NULL: not divided */

struct rp_stacks_how {
    enum rp_stacks_width width;
    enum rp_stacks_split split;
    bool in_order; /* make `runs` too */
};

/* Texts are in the arena; the caller owns the vectors, also after a failure. */
enum rp_code rp_stacks_make(const struct rp_trace *trace, const struct rp_scope *scope,
                            const struct rp_stacks_how *how, struct rp_arena *arena,
                            struct rp_stacks_part *out, struct rp_err *err);

struct rp_stacks_row {
    const char *part, *name, *file, *kind, *label, *stack;
    int64_t line, count;
    int64_t self_ns, total_ns, self_count, total_count, self_bytes, total_bytes;
    double self_share, total_share;
    int64_t base_self, base_total, base_samples; /* the values of the base in a comparison */
    uint32_t node;                               /* of a stack */
};

struct rp_stacks_root {
    const char *summary, *by, *measure;
    int64_t ranks, whole_ns, whole_count, whole_bytes, waited_ns, row_count;
    size_t nrows, ntimes, ncounts, nbytes, nnotes;
    struct rp_stacks_row *rows;
    struct rp_stacks_row *times, *counts, *bytes; /* the same on the screen, as one of the three */
    const char **notes;
};

extern const struct rp_type rp_stacks_type, rp_stacks_row_type; /* row: one of its rows */

/* by: stack, function or line; sort: self, total, count or name; limit 0: all rows. */
struct rp_stacks_want {
    const char *by, *sort;
    int64_t limit;
    const char *html;         /* path of a page with a flame graph; NULL: none */
    const char *const *ranks; /* by part: the name of its rank; NULL if there is only one */
    bool split_ranks;
    bool in_steps;      /* the parts are without what lies outside of the steps */
    const char *frames; /* the recorder's option for Python frames; NULL if it has none */
};

enum rp_code rp_stacks_join(const struct rp_stacks_part *const *parts, size_t n,
                            const struct rp_stacks_want *want, struct rp_arena *arena,
                            struct rp_stacks_root *out, struct rp_err *err);

/* What changed between two runs, by stack, function or line. */
struct rp_stacks_change {
    const char *name, *file, *kind, *label, *stack, *change;
    int64_t line, base_samples, new_samples;
    int64_t base_ns, new_ns, delta_ns, noise_ns; /* each in the variant of its unit, out of three */
    int64_t base_count, new_count, delta_count, noise_count;
    int64_t base_bytes, new_bytes, delta_bytes, noise_bytes;
};

struct rp_stacks_diff_root {
    const char *summary, *inputs, *by, *measure;
    int64_t base_ns, new_ns, delta_ns, base_count, new_count, delta_count;
    int64_t base_bytes, new_bytes, delta_bytes, row_count;
    size_t nrows, ntimes, ncounts, nbytes, nnotes;
    struct rp_stacks_change *rows;
    struct rp_stacks_change *times, *counts,
        *bytes; /* the same on the screen, as one of the three */
    const char **notes;
};

extern const struct rp_type rp_stacks_diff_type;

/* want->sort is ignored: the largest change comes first. */
enum rp_code rp_stacks_diff(const struct rp_stacks_part *const *base, size_t nbase,
                            const struct rp_stacks_part *const *fresh, size_t nfresh,
                            const struct rp_stacks_want *want, struct rp_arena *arena,
                            struct rp_stacks_diff_root *out, struct rp_err *err);

/* Writes a call tree as a page (web/flame), which has at most some hundred thousand boxes: in a
   larger tree the narrowest ones are joined. */
struct rp_stacks_weight;
struct rp_flame {
    const struct rp_stacks_frame *frames;
    const struct rp_stacks_node *nodes, *runs; /* runs: the same in the order of time */
    const struct rp_stacks_weight *base; /* by node: weights in a run to compare with; NULL: none */
    size_t nframes, nnodes, nruns;
    uint32_t unit;
    bool by_function; /* the lines of a function are joined to one frame */
};
enum rp_code rp_flame_write(const struct rp_flame *flame, const char *path, struct rp_err *err);
