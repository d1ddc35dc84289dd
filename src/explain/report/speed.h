/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Compares what the device computed in the time that is judged with what it can compute: MFU, the
 * speed of light, tokens and samples (docs/definitions.md, "Utilization").
 */
#include "cost/calls.h"

#include <reprise/result.h>

/* Sums over the calls of one rank. */
struct rp_speed_sums {
    double flops_of[RP_NUMBERS]; /* FLOPs of products, convolutions and attention, by format */
    double peak_of[RP_NUMBERS];  /* FLOP/s; 0: not known */
    double matrix_s;             /* the time of these FLOPs at the peaks of their formats */
    double least_s;              /* the time of all known work at the peaks */
    int64_t matrix_ns,
        known_matrix_ns; /* device time of products and the like; the part of it with FLOPs */
    int64_t device_ns, known_ns; /* device time of all work but communication; the part of it with
                                    FLOPs and bytes */
    double table_rows, table_width; /* size of the table in which tokens are looked up */
    double other_rows;              /* rows of the largest table of another shape */
    double tokens, samples;
    int64_t earlier_ns; /* left out: the time in the span before the first step's own work */
};

/* Speed in a step of a rank, as the mean of all ranks. */
struct rp_report_speed {
    double mfu_share;         /* NaN: not known, also for all that follow */
    double flops;             /* FLOPs of products, convolutions and attention */
    const char *format;       /* the format of most of them; NULL: not known */
    double peak_flops_per_s;  /* of that format */
    double known_share;       /* share in the device time of products and the like */
    int64_t light_ns;         /* time of its work at the peaks; absent: not known */
    double light_share;       /* of the step */
    double light_known_share; /* of the device time */
    double tokens, tokens_per_s, samples, samples_per_s;
};
extern const struct rp_type rp_report_speed_type;

/* Adds the calls of a rank that begin at from_ns or later, with their `costs`; tokens and samples
   follow from the shapes of its operators. */
enum rp_code rp_speed_add_calls(struct rp_speed_sums *out, const struct rp_work *work,
                                const struct rp_op_costs *costs, const struct rp_cost_calls *calls,
                                const struct rp_cost_peaks *peaks, int64_t from_ns,
                                struct rp_err *err);

struct rp_speed_rank {
    const struct rp_speed_sums *sums;
    int64_t window_ns; /* in which its work ran */
    double steps;      /* steps in it; 1 if there are none */
    double tokens;     /* tokens that a server counted; 0: none */
};

/* Returns the mean of the ranks; everything is absent if too little is known. */
struct rp_report_speed rp_report_speed_of(const struct rp_speed_rank *ranks, size_t n);

/* Writes "MFU 38.2 %: ..." to the arena; NULL if nothing is known. unprofiled_ns: time of the step
   without the profiler, or absent. */
const char *rp_report_speed_text(const struct rp_report_speed *speed, int64_t step_ns,
                                 int64_t unprofiled_ns, bool several_ranks, struct rp_arena *arena);
