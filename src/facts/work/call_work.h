/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds whether a long call had more to do than others of its name; then it is not a stall. Sizes
 * come from the argument "Input Dims" of PyTorch's operators; the arguments of Python functions are
 * not recorded.
 */
#include "base/hash.h"
#include "facts/arg_keys.h"
#include "facts/times/intervals.h"

struct rp_usual_input { /* medians for a name; elements 0: not recorded */
    int64_t elements, dur_ns;
};

struct rp_call_work {
    const struct rp_trace *t;
    struct rp_arg_key dims;
    struct rp_map names; /* from a string to its index in `usual` */
    RP_VEC(struct rp_usual_input) usual;
    RP_VEC(int64_t) elements, durs_ns; /* of the calls of a name */
};

enum rp_code rp_call_work_init(struct rp_call_work *w, const struct rp_trace *trace,
                               struct rp_err *err);
void rp_call_work_release(struct rp_call_work *w); /* may be called after a failure, and on zeros */

/* Whether the inputs explain the length of a call: by the usual call of its name or, if it launches
   nothing, by what a core can do in that time. Linear in events for each new name. */
enum rp_code rp_call_has_more_work(struct rp_call_work *w, rp_event call, bool *out,
                                   struct rp_err *err);

/* Whether a call returned when its copy had ended, so that it waited for the device. */
bool rp_call_waits_for_copy(const struct rp_trace *trace, rp_event call);
/* ... which worked for nearly all of that time before the copy (`busy` is the union of its work),
   so the call read a result that was not ready. */
bool rp_call_waits_for_result(const struct rp_trace *trace, rp_event call,
                              const rp_interval_vec *busy);

/* Whether the time of such a call depends on arguments that are not recorded: functions of Python,
   except its garbage collection. signs: rp_host_signs of its name. */
bool rp_call_time_varies(uint8_t kind, unsigned signs);

/* Elements of all tensors in a text like "[[2, 3], [], [8]]"; INT64_MAX if there are more. */
int64_t rp_dims_elements(const char *dims);
