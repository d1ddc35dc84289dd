/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
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
    char device[96]; /* name of the first device; "": not recorded */
    uint64_t boot;   /* of the machine (facts/host/trace_host.h); 0: not known */
    RP_VEC(struct rp_sketch_name) kernels; /* by hash */
    RP_VEC(struct rp_sketch_name) ops;
};

/* O(events). Release the sketch also after a failure. */
enum rp_code rp_sketch_init(struct rp_sketch *out, const struct rp_trace *trace,
                            struct rp_err *err);
void rp_sketch_release(struct rp_sketch *sketch);

/* What contradicts that the files of a run are its ranks; texts in the arena of the run, or NULL.
 */
struct rp_relation {
    bool unrelated;      /* they are not of one run: their collectives must not be matched */
    size_t strangers;    /* how many do not belong to the others */
    const char *why;     /* if so: what differs; else, where their clocks do, that */
    const char *numbers; /* files that did not say their number */
};

/* Whether the file is one of those that dPRO's recorder writes for each rank: together they are one
   job, none of them is a rank. */
bool rp_digest_of_trial(const struct rp_digest *digest);

/* Of a run whose ranks are settled. `sketches` is by the `file` of a rank; NULL: not known. */
enum rp_code rp_run_check(struct rp_run *run, const struct rp_sketch *const *sketches,
                          struct rp_relation *out, struct rp_err *err);

/* Whether two files cannot be ranks of one run, whatever their numbers. Sketches may be NULL. */
bool rp_digests_contradict(const struct rp_digest *a, const struct rp_sketch *x,
                           const struct rp_digest *b, const struct rp_sketch *y);

/* How far two recordings are apart, on the clock of the day; 0 where they overlap, are less than a
   second apart, or nobody knows. */
int64_t rp_digests_apart(const struct rp_digest *a, const struct rp_digest *b);
