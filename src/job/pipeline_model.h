/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_JOB_PIPELINE_MODEL_H
#define RP_JOB_PIPELINE_MODEL_H
/*
 * A pipeline's timeline (job/pipeline_records.h) as one part of a simulated run: all steps, each
 * of them from 0 on, of all ranks. Rank dp * stages + stage.
 *
 *     params-all-gather -> F0 -> F1 ..... B0 -> B1 -> gc -> layernorm -> embedding -> grads -> clip
 *        (all dp)          `send/recv`   recv/send                        (ends)    (all dp)  (all)
 */
#include "job/pipeline_records.h"
#include "sim/model/part.h"

/* Texts are in the graph's own arena. Release the part also after a failure. */
enum rp_code rp_sim_part_of_pipeline(struct rp_sim_part *out, const struct rp_trace *trace,
                                     struct rp_err *err);

/* Whether the duration of an operation is communication: its ideal is the median, not the mean. */
bool rp_pipeline_is_comm(const char *type);

#endif
