/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decides which of the files that were given together are the ranks of a run. A folder also holds
 * copies, files of an earlier run, traces without an event and traces that are cut: such a file
 * does not get the number of another rank, and is not compared with whole ones.
 */
#include "dataset/related.h"

enum rp_verdict {
    RP_VERDICT_RANK,  /* it is a rank of the run */
    RP_VERDICT_COPY,  /* `instead` is the same recording */
    RP_VERDICT_CLASH, /* `instead` states the same number and fits the others better */
    RP_VERDICT_EMPTY, /* it has no event, but others have */
    RP_VERDICT_CUT    /* most of it may be missing, but others are whole */
};

/* One trace that states that it is a rank. */
struct rp_claim {
    const struct rp_digest *digest;
    const struct rp_sketch *sketch; /* or NULL */
    enum rp_verdict verdict;
    size_t instead; /* index of a claim */
};

/* Sets the verdicts, in the order of the inputs. With keep_cut a cut trace is still a rank. O(n log
   n), and for each number that several files state the square of their count. */
enum rp_code rp_claims_settle(struct rp_claim *claims, size_t n, bool keep_cut, struct rp_err *err);
