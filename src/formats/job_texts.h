/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FORMATS_JOB_TEXTS_H
#define RP_FORMATS_JOB_TEXTS_H
/*
 * The two files of a dPRO trial directory that are no traces: the graph of operators (dag.gml) and
 * the rings (nccl_rank_graph.json).
 */
#include "trace/job.h"

enum rp_code rp_job_read_graph(const char *text, size_t len, struct rp_job_rank *out,
                               struct rp_err *err);
/* Also finds the rank's own number: the one that all its links have in common. */
enum rp_code rp_job_read_rings(const char *text, size_t len, struct rp_job_rank *out,
                               struct rp_err *err);

#endif
