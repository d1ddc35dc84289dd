/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The work of a loop as a sequence of names in the order of time: the outermost operators of a
 * process, or if none are recorded, the work of its devices. Rounds of the loop are compared by it.
 * Inside src/trace only.
 */
#include "base/decides.h"
#include "trace/finish/steps.h"

#define RP_SAME_WORK 0.02
RP_DECISION(RP_SAME_WORK, "of the work",
            "rounds that differ by less are the same: the few operators that come and go by chance",
            "trace/rounds_are_the_same_up_to_two_percent");

struct rp_loop_item {
    int64_t begin_ns, end_ns;
    rp_str name;
    rp_event event;
};

struct rp_loop_work {
    RP_VEC(struct rp_loop_item) items; /* by begin */
    RP_VEC(uint32_t) count;            /* by string, all 0 between calls */
};

/* Fills an empty sequence from a process of the builder. Must be released also after a failure. */
enum rp_code rp_loop_work_init(struct rp_loop_work *work, struct rp_builder *b, uint32_t process,
                               struct rp_err *err);
/* Adds one event; events come in the order of time, or are sorted afterwards. */
enum rp_code rp_loop_work_push(struct rp_loop_work *work, struct rp_builder *b, rp_event e,
                               struct rp_err *err);
void rp_loop_work_sort(struct rp_loop_work *work);
void rp_loop_work_release(struct rp_loop_work *work);

/* The number of items that begin in [begin, end). */
size_t rp_loop_work_count(const struct rp_loop_work *work, int64_t begin_ns, int64_t end_ns);
/* How much of the work in two intervals differs, ignoring order: 0 to 1; NAN if one of them has
   none. */
double rp_loop_work_differs(const struct rp_loop_work *work, int64_t a_begin_ns, int64_t a_end_ns,
                            int64_t b_begin_ns, int64_t b_end_ns);
/* Whether the second interval has all the work of the first one and more, and the additional work
   has none of the texts (up to a NULL) in its names. */
bool rp_loop_work_adds(const struct rp_loop_work *work, const struct rp_builder *b,
                       int64_t a_begin_ns, int64_t a_end_ns, int64_t b_begin_ns, int64_t b_end_ns,
                       const char *const *texts);
/* Whether an item that begins in [begin, end) has the text in its name. */
bool rp_loop_work_has(const struct rp_loop_work *work, const struct rp_builder *b, int64_t begin_ns,
                      int64_t end_ns, const char *text);
/* Whether all items that begin in [begin, end) have names that begin with the text. */
bool rp_loop_work_has_only(const struct rp_loop_work *work, const struct rp_builder *b,
                           int64_t begin_ns, int64_t end_ns, const char *prefix);
/* Where the last n items before a time begin; INT64_MAX if there are none. */
int64_t rp_loop_work_begin(const struct rp_loop_work *work, int64_t before_ns, size_t n);
/* When the first n items from a time on have ended; INT64_MIN if there are none. */
int64_t rp_loop_work_end(const struct rp_loop_work *work, int64_t from_ns, size_t n);
