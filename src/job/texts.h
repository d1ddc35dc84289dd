/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_JOB_TEXTS_H
#define RP_JOB_TEXTS_H
/*
 * The files of a dPRO trial directory that are no traces: the graph of operators (dag.gml, or
 * metadata.json, which says the same), the rings (nccl_rank_graph.json) and BytePS' keys
 * (key_dict.txt).
 */
#include "io/input.h"
#include "job/job.h"

/* "…/BytePSPushPull_7", "HorovodAllreduce.7_0": the tensor of a communication, or -1. */
int64_t rp_job_tensor_of(const char *label);

enum rp_code rp_job_read_graph(const char *text, size_t len, struct rp_job_rank *out,
                               struct rp_err *err);
enum rp_code rp_job_read_metadata(struct rp_input *in, struct rp_job_rank *out, struct rp_err *err);
/* Also finds the rank's own number: the one that all its links have in common. */
enum rp_code rp_job_read_rings(const char *text, size_t len, struct rp_job_rank *out,
                               struct rp_err *err);
/* "…BytePSPushPull.5_6: 65536 65537" a line: tensors, and the keys of their parts. Other names are
   passed over. */
enum rp_code rp_job_read_keys(const char *text, size_t len, struct rp_job *out, struct rp_err *err);

#endif
