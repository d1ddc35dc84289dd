/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_STALLS_INPUTS_H
#define RP_EXPLAIN_STALLS_INPUTS_H
/* Whether a long call simply has more to do: the sizes of its inputs beside those of other calls.
 */
#include "base/hash.h"
#include "facts/arg_keys.h"

/* What is usual for a name. */
struct rp_usual_input {
    int64_t elements, dur_ns; /* medians; elements 0: not recorded */
};

struct rp_inputs {
    const struct rp_trace *trace;
    struct rp_arg_key dims;
    struct rp_map names; /* string -> place in `usual` */
    RP_VEC(struct rp_usual_input) usual;
    RP_VEC(int64_t) scratch;
};

enum rp_code rp_inputs_init(struct rp_inputs *in, const struct rp_trace *trace, struct rp_err *err);
void rp_inputs_release(struct rp_inputs *in);

/* Whether its inputs have 8 times as many elements as the median call of its name, or more, and at
   least an eighth of what would explain its length. Linear in events for each new name. */
enum rp_code rp_inputs_are_larger(struct rp_inputs *in, rp_event call, bool *out,
                                  struct rp_err *err);

/* The elements of all inputs in "[[16, 256], [], [8]]": products, added up. */
int64_t rp_inputs_count(const char *dims);

#endif
