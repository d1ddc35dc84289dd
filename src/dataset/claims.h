/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which of the files that were given together are the ranks of a run. A folder also holds copies,
 * files of an earlier run, traces without an event and traces that are cut: such a file is not
 * given the number of another rank, and not compared with whole ones.
 */
#include "dataset/related.h"

enum rp_verdict {
    RP_VERDICT_RANK,  /* it is a rank of the run */
    RP_VERDICT_COPY,  /* `instead` is the same recording */
    RP_VERDICT_CLASH, /* `instead` states the same number and fits the others better */
    RP_VERDICT_EMPTY, /* it has no event, and others have */
    RP_VERDICT_CUT    /* most of it may be missing, and others are whole */
};

/* One trace that says that it is a rank. */
struct rp_claim {
    const struct rp_digest *digest;
    const struct rp_sketch *sketch; /* or NULL */
    enum rp_verdict verdict;
    size_t instead; /* index of a claim */
};

/* Sets the verdicts. keep_cut: a cut trace is a rank all the same. In the order of the inputs;
   O(n log n), and for each number that several state the square of their count. */
enum rp_code rp_claims_settle(struct rp_claim *claims, size_t n, bool keep_cut, struct rp_err *err);
