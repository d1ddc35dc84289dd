/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_REPORT_DEVICE_H
#define RP_EXPLAIN_REPORT_DEVICE_H
/*
 * What is wrong on the device itself: kernels that fill a part of it only, kernels that become
 * slower for no reason of their own, clocks of host and device that do not fit, and memory that is
 * reserved but not used (docs/definitions.md, "Findings").
 */
#include "explain/idle/gaps.h"

#include <stdbool.h>

struct rp_report_device {
    /* kernels that leave multiprocessors without a block */
    int64_t thin_count, thin_ns, thin_lost_ns; /* their time; at most lost */
    const char *thin_name;                     /* the one that loses most */
    int64_t thin_name_lost_ns;
    /* the same kernels, later: slower */
    int64_t slowed_ns; /* what they take more than in the first third */
    double slowed_ratio;
    int64_t slowed_kinds, kinds; /* names with the same grid; of them slower */
    /* work that starts before its launch */
    int64_t launched, early_count, early_most_ns;
    /* memory, of the device with most of it; 0: not recorded */
    int64_t reserved_bytes, allocated_bytes, device_bytes;
};

/* Texts go into the arena. O(n log n) in kernels. */
enum rp_code rp_report_look_at_device(const struct rp_work *work, const rp_gap_vec *gaps,
                                      struct rp_arena *arena, struct rp_report_device *out,
                                      struct rp_err *err);

#endif
