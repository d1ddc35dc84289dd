/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `launches` shows how work gets to the device: how long the host's calls take, how late the
 * work starts after them, how long the queues of the streams are, and how fast copies run
 * (docs/definitions.md, "Launches"). launches.c has the row of the question and the launches,
 * queues.c the queues and copies of a rank.
 */
#include "base/arena.h"
#include "base/vec.h"
#include "facts/work/work.h"

struct rp_launch_sample {
    uint32_t name, items; /* items: number of device work items that it started */
    int64_t call_ns, device_ns, delay_ns;
};

/* A distribution: sum, percentiles by nearest rank, maximum. */
struct rp_launch_times {
    int64_t total_ns, p50_ns, p90_ns, max_ns;
};

struct rp_launch_row {
    const char *name, *label;
    int64_t count, items;
    struct rp_launch_times call, device, delay;
    int64_t short_count, slow_call_count, late_count;
    int64_t call_p50_ns, device_p50_ns, delay_p50_ns, delay_p90_ns, delay_max_ns; /* the screen */
    int64_t kernels; /* on the screen: items, if there are launches of graphs */
};

struct rp_launch_queue {
    int64_t rank;
    const char *stream;
    int64_t launches, samples, p50, max;
    double mean, std, time_mean; /* over samples; over time */
    int64_t full_ns;             /* with 1,024 or more */
};

struct rp_launch_copy {
    int64_t rank;
    const char *kind;
    int64_t count, size_bytes, busy_ns, samples;
    double mean_bytes_per_s, min_bytes_per_s, p50_bytes_per_s, max_bytes_per_s; /* over samples */
    double whole_bytes_per_s;                                                   /* bytes / busy */
};

struct rp_launches_part {
    RP_VEC(const char *) names;
    RP_VEC(struct rp_launch_sample) samples;
    size_t nqueues, ncopies;
    struct rp_launch_queue *queues;
    struct rp_launch_copy *copies;
    int64_t items, launched; /* device work, and the part of it with a launch */
    const char *not_counted; /* what lies outside of the steps; NULL if everything is counted */
};

struct rp_launches_root {
    const char *summary, *by;
    int64_t launches, unlinked;  /* unlinked: device work without a recorded launch */
    int64_t items;               /* number of device work items that they started */
    int64_t graphs, graph_items; /* launches that started several items, and those items */
    struct rp_launch_times call, device, delay;
    int64_t short_count, slow_call_count, late_count;
    size_t nrows, nqueues, ncopies, nnotes;
    int64_t row_count;
    struct rp_launch_row *rows;
    struct rp_launch_queue *queues;
    struct rp_launch_copy *copies;
    const char **notes;
};

/* Adds queues and copies of the device work, in the arena (queues.c). */
struct rp_queues;
enum rp_code rp_launches_measure_queues(const struct rp_work *work, const struct rp_queues *queues,
                                        struct rp_arena *arena, struct rp_launches_part *out,
                                        struct rp_err *err);
enum rp_code rp_launches_measure_copies(const struct rp_work *work, struct rp_arena *arena,
                                        struct rp_launches_part *out, struct rp_err *err);
