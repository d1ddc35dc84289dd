/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_JOB_LOAD_H
#define RP_JOB_LOAD_H
/*
 * A job from a dPRO trial directory: <host>/<local rank>/ with trace.json.gz, comm.json,
 * comm_detail.json, dag.gml and nccl_rank_graph.json each.
 */
#include "dataset/load.h"
#include "job/job.h"

/* Whether the inputs are such a directory: some folder has the rings' records and the graph. */
bool rp_dataset_is_job(const struct rp_dataset *dataset);

/* Release the job also after a failure. */
enum rp_code rp_load_job(struct rp_ctx *ctx, const struct rp_dataset *dataset, struct rp_job *out,
                         struct rp_err *err);

#endif
