/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_JOB_RECORDS_H
#define RP_JOB_RECORDS_H
/*
 * What the traces in a dPRO trial directory say about a job.
 *
 *     trace.json.gz        operators of TensorFlow, by step (group_id)
 *     comm.json            Horovod's timeline: Sync, QUEUE, MEMCPY_…, NCCL_ALLREDUCE, by tensor
 *     comm_detail.json     SEND and RECV of the rings
 *     *.log, *.txt         messages and work of BytePS
 */
#include "job/job.h"
#include "trace/trace.h"

enum rp_code rp_job_read_ops(const struct rp_trace *t, struct rp_job_rank *out, struct rp_err *err);
enum rp_code rp_job_read_timeline(const struct rp_trace *t, struct rp_job_rank *out,
                                  struct rp_err *err);
enum rp_code rp_job_read_transfers(const struct rp_trace *t, struct rp_job_rank *out,
                                   struct rp_err *err);

/* One log of BytePS, of a worker or a server: its messages, or a server's copies and sums. */
enum rp_code rp_job_read_byteps(const struct rp_trace *t, struct rp_job_node *out,
                                struct rp_err *err);

#endif
