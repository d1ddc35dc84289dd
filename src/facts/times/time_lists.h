/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Stores lists of durations whose order does not matter, such as those of all kernels of a name,
 * packed as the differences of the sorted times, which are a byte or two each. In a run of many
 * ranks all of them are in memory at once, and exact percentiles need every one.
 */
#include "base/vec.h"

#include <stdint.h>

struct rp_type;

struct rp_time_lists {
    RP_VEC(uint32_t) count; /* by list */
    RP_VEC(uint64_t) begin; /* by list: its begin in the bytes */
    RP_VEC(uint8_t) bytes;
};
extern const struct rp_type rp_time_lists_type; /* for use as a member of a part (result/part.h) */

/* Adds a list; sorts the times. */
enum rp_code rp_time_lists_add(struct rp_time_lists *lists, int64_t *times, size_t n,
                               struct rp_err *err);
void rp_time_lists_release(struct rp_time_lists *lists);

/* Checks that they are n lists that can be read; RP_FORMAT if the part of a rank is damaged. */
enum rp_code rp_time_lists_check(const struct rp_time_lists *lists, size_t n, struct rp_err *err);

/* Reads the times of list i in ascending order; `out` has room for them. RP_FORMAT if the bytes are
   not those of such a list. */
enum rp_code rp_time_lists_read(const struct rp_time_lists *lists, size_t i, int64_t *out,
                                struct rp_err *err);

/* A list of one rank. */
struct rp_time_list {
    const struct rp_time_lists *of;
    uint32_t at;
};

/* Joins the lists of several ranks; `out` has room for all, and is sorted. */
enum rp_code rp_time_lists_join(const struct rp_time_list *lists, size_t n, int64_t *out,
                                struct rp_err *err);
