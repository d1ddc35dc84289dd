/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_REPORT_FINDINGS_H
#define RP_EXPLAIN_REPORT_FINDINGS_H
/* What was lost, as findings with their cost, evidence and a hint. */
#include "explain/report/chain.h"

/* Fills findings, the most costly first; those under a hundredth of the window are left out. */
enum rp_code rp_report_find(const struct rp_report_input *ranks, size_t n,
                            const struct rp_chain *chain, struct rp_arena *arena,
                            int32_t world_size, struct rp_report_root *out, struct rp_err *err);

/* Fills the stalls of the ranks and of all (stalls.c). Needs the window. */
enum rp_code rp_report_count_stalls(const struct rp_report_input *ranks, size_t n,
                                    struct rp_arena *arena, struct rp_report_root *out,
                                    struct rp_err *err);

/* "628.1 ms" in the arena, or NULL. */
const char *rp_report_time(struct rp_arena *arena, int64_t ns);

#endif
