/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads the files of a dPRO trial directory:
 *
 *     trace.json.gz          operators of TensorFlow, by step (group_id)
 *     comm.json              Horovod's timeline: Sync, QUEUE, MEMCPY_…, NCCL_ALLREDUCE, by tensor
 *     comm_detail.json       SEND and RECV of the rings
 *     *.log, *.txt           messages and work of BytePS
 *     dag.gml                the graph of operators
 *     metadata.json          the same graph, in another form
 *     nccl_rank_graph.json   the rings
 *     key_dict.txt           the keys of BytePS
 */
#include "io/input.h"
#include "job/job.h"
#include "trace/trace.h"

/* ------------------------------------------------------------------ traces (records.c) */

enum rp_code rp_job_read_ops(const struct rp_trace *t, struct rp_job_rank *out, struct rp_err *err);
enum rp_code rp_job_read_timeline(const struct rp_trace *t, struct rp_job_rank *out,
                                  struct rp_err *err);
enum rp_code rp_job_read_transfers(const struct rp_trace *t, struct rp_job_rank *out,
                                   struct rp_err *err);

/* Reads one log of BytePS, of a worker or a server: its messages, or a server's copies and sums. */
enum rp_code rp_job_read_byteps(const struct rp_trace *t, struct rp_job_node *out,
                                struct rp_err *err);

/* ------------------------------------------------------------------ other files (texts.c,
 * metadata.c) */

/* Returns the tensor of a communication such as "…/BytePSPushPull_7" or "HorovodAllreduce.7_0", or
   -1. */
int64_t rp_job_tensor_of(const char *label);

enum rp_code rp_job_read_graph(const char *text, size_t len, struct rp_job_rank *out,
                               struct rp_err *err);
enum rp_code rp_job_read_metadata(struct rp_input *in, struct rp_job_rank *out, struct rp_err *err);
/* Reads the sizes of gradients and the types of operators (tensors.c). */
enum rp_code rp_job_read_tensors(struct rp_input *in, struct rp_job *out, struct rp_err *err);
/* Also finds the rank's own number: the one that is in all of its links. */
enum rp_code rp_job_read_rings(const char *text, size_t len, struct rp_job_rank *out,
                               struct rp_err *err);
/* Reads lines such as "…BytePSPushPull.5_6: 65536 65537": tensors, and the keys of their parts.
   Other names are skipped. */
enum rp_code rp_job_read_keys(const char *text, size_t len, struct rp_job *out, struct rp_err *err);
