/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_DATASET_RELATED_H
#define RP_DATASET_RELATED_H
/*
 * Whether traces that were given together are ranks of one run: of each a sketch is kept (its
 * device, which kernels and operators it runs and how much), and the sketches are compared. Traces
 * of other models, devices or days are not refused, but nobody should take their mean for that of a
 * run without being told.
 */
#include "trace/run.h"

struct rp_sketch_name {
    uint64_t hash;
    int64_t weight; /* of a kernel its time, of an operator its count */
};

struct rp_sketch {
    char device[96];                       /* name of the first device; "": not recorded */
    RP_VEC(struct rp_sketch_name) kernels; /* by hash */
    RP_VEC(struct rp_sketch_name) ops;
};

/* O(events). Release the sketch also after a failure. */
enum rp_code rp_sketch_init(struct rp_sketch *out, const struct rp_trace *trace,
                            struct rp_err *err);
void rp_sketch_release(struct rp_sketch *sketch);

/*
 * Adds warnings to a run whose ranks are settled: what contradicts that its files are ranks of one
 * run, and which files did not say their number. `sketches` is by the `file` of a rank; NULL: not
 * known. *unrelated: they are not ranks of one run, so their collectives must not be matched.
 */
enum rp_code rp_run_check(struct rp_run *run, const struct rp_sketch *const *sketches,
                          bool *unrelated, struct rp_err *err);

#endif
