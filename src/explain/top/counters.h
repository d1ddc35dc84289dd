/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `top --counters` shows hardware counters of kernels, by step, operator and kernel. They are
 * arguments of kernels, "counter NAME" (`record --counters`).
 */
#include "base/arena.h"
#include "base/vec.h"
#include "explain/top/counter_table.h"
#include "facts/work/work.h"

struct rp_counter_sum {
    const char *op, *kernel, *counter; /* op: "" none */
    int64_t step;                      /* number of the step; RP_ABSENT_I64: outside of steps */
    int64_t calls, total_ns;
    double sum, min, max;
};

struct rp_counters_part {
    RP_VEC(struct rp_counter_sum) sums;
    int64_t lines, joined; /* of the table */
};

extern const struct rp_type rp_counters_part_type;

/* Texts are in the arena. table has counters of another profiler, joined by the order of kernels
   with one name; NULL for those of the recording. */
enum rp_code rp_counters_make(const struct rp_trace *trace, const struct rp_scope *scope,
                              struct rp_counter_table *table, struct rp_arena *arena,
                              struct rp_counters_part *out, struct rp_err *err);

struct rp_counter_row {
    const char *op, *kernel, *counter, *label, *op_label;
    int64_t step, calls, total_ns;
    double mean, min, max, sum;
};

struct rp_counters_root {
    const char *summary;
    int64_t row_count;
    size_t nrows, nshown, nnotes;
    struct rp_counter_row *rows;  /* by step */
    struct rp_counter_row *shown; /* on the screen: sums over all steps */
    const char **notes;
};

extern const struct rp_type rp_counters_type;

/* limit of the rows on the screen; 0: all. */
enum rp_code rp_counters_join(const struct rp_counters_part *const *parts, size_t n, int64_t limit,
                              struct rp_arena *arena, struct rp_counters_root *out,
                              struct rp_err *err);
