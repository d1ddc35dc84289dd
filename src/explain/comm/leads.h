/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds what a rank did between its collectives: compute, copies, idle time by cause. */
#include "facts/idle/gaps.h"
#include "facts/ranks/collectives.h"

/* What happened between the previous collective of a rank and this one. */
struct rp_comm_lead {
    int64_t since_ns; /* end of the previous collective, or begin of the recording */
    int64_t compute_ns, copy_ns, idle_ns;
    int64_t overlap_ns;   /* overlap of the collective itself with compute */
    const char *kernel;   /* name of the longest compute, or NULL */
    const char *idle;     /* cause of most of the idle time, or NULL */
    const char *evidence; /* what the host ran meanwhile, or NULL */
};
extern const struct rp_type rp_comm_lead_type; /* as a member of a part */

/* Makes one for each of `c`; they and their texts are in the arena. Unions and gaps are those of
   `work`. */
enum rp_code rp_leads_find(const struct rp_work *work, const struct rp_work_unions *unions,
                           const rp_gap_vec *gaps, const struct rp_collectives *c,
                           struct rp_arena *arena, struct rp_comm_lead **out, struct rp_err *err);

/* Makes the unions if there is no device work: operators of threads without collectives count as
   compute. */
enum rp_code rp_leads_unite_host(const struct rp_trace *trace, const struct rp_collectives *c,
                                 struct rp_work_unions *out, struct rp_err *err);
