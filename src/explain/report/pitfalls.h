/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_REPORT_PITFALLS_H
#define RP_EXPLAIN_REPORT_PITFALLS_H
/* What a timeline seems to show and does not, checked on this trace: sentences for the report. */
#include "explain/report/report.h"
#include "facts/attribution.h"

/* One operator name for work of very different size; NULL where there is none. */
enum rp_code rp_pitfall_unequal(const struct rp_work *work, const struct rp_attribution *places,
                                struct rp_arena *arena, const char **out, struct rp_err *err);

/* Several streams that compute, one after the other; NULL where that is not so. */
enum rp_code rp_pitfall_streams(const struct rp_work *work, int64_t compute_ns,
                                struct rp_arena *arena, const char **out, struct rp_err *err);

/* A step much longer than the others, why as far as its host spans tell, and which one to look at
   instead; `steps` are those of the trace. */
enum rp_code rp_pitfall_steps(const struct rp_trace *trace, const struct rp_report_step *steps,
                              size_t n, struct rp_arena *arena, const char **out,
                              struct rp_err *err);

#endif
