/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decides whether traces that were given together are ranks of one run: a sketch of each is kept
 * (its device, and which kernels and operators it runs and how much), and the sketches are
 * compared. Traces of other models, devices or days are not refused, but nobody should take their
 * mean for that of a run without being told.
 */
#include "trace/run.h"

struct rp_sketch_name {
    uint64_t hash;
    int64_t weight; /* the time of a kernel, the count of an operator */
};

struct rp_sketch {
    char device[96]; /* the name of the first device; "" if not recorded */
    uint64_t boot;   /* the boot of the machine (facts/host/trace_host.h); 0 if not known */
    RP_VEC(struct rp_sketch_name) kernels; /* by hash */
    RP_VEC(struct rp_sketch_name) ops;
};

/* O(events). The sketch must be released also after a failure. */
enum rp_code rp_sketch_init(struct rp_sketch *out, const struct rp_trace *trace,
                            struct rp_err *err);
void rp_sketch_release(struct rp_sketch *sketch);

/* Contradictions to the files of a run being its ranks; texts are in the arena of the run, or
   NULL. */
struct rp_relation {
    bool unrelated;      /* they are not of one run: their collectives must not be matched */
    size_t strangers;    /* the number of files that do not belong to the others */
    const char *why;     /* if unrelated: what differs; otherwise that their clocks do, if so */
    const char *numbers; /* files that do not state their number */
};

/* Whether the file is one of those that dPRO's recorder writes for each rank: together they are one
   job, and none of them is a rank. */
bool rp_digest_of_trial(const struct rp_digest *digest);

/* Checks a run whose ranks are settled. `sketches` is indexed by the `file` of a rank, with NULL
   for unknown ones. */
enum rp_code rp_run_check(struct rp_run *run, const struct rp_sketch *const *sketches,
                          struct rp_relation *out, struct rp_err *err);

/* Whether two files cannot be ranks of one run, whatever their numbers are. Sketches may be
   NULL. */
bool rp_digests_contradict(const struct rp_digest *a, const struct rp_sketch *x,
                           const struct rp_digest *b, const struct rp_sketch *y);

/* How far two recordings are apart in the time of day; 0 if they overlap, are less than a second
   apart, or it is not known. */
int64_t rp_digests_apart(const struct rp_digest *a, const struct rp_digest *b);
