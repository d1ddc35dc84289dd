/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Timelines of pipeline-parallel training as Chrome traces (StragglerAnalysis): each process is a
 * data-parallel rank, each thread, such as "PP rank 2, TP rank 0, compute", a kind of work of a
 * stage, and each span an operation with its step and its number among those of its type.
 * Communication is recorded without waiting: its span begins when the last participant has arrived.
 */
#include "base/vec.h"
#include "sim/model/part.h"
#include "trace/trace.h"

struct rp_pipeline_op {
    int64_t begin_ns, dur_ns;
    rp_str type; /* a text of the trace: "forward-compute" */
    uint32_t step, dp, stage, seq;
    int32_t chunk; /* a chunk of the model; -1 if none */
};

struct rp_pipeline {
    const struct rp_trace *trace;
    uint32_t nsteps, ndp, nstages;
    RP_VEC(struct rp_pipeline_op) ops; /* sorted by step, dp, stage, type and seq */
};

/* Whether a trace is such a timeline, which the names of its threads tell. */
bool rp_trace_is_pipeline(const struct rp_trace *t);

/* Returns the number of ranks of such a timeline, the stages of all data-parallel ranks; 0 for
   other traces. */
uint32_t rp_trace_pipeline_ranks(const struct rp_trace *t);

/*
 * A pipeline's timeline as one part of a simulated run: all steps, each
 * of them from 0 on, of all ranks. Rank dp * stages + stage.
 *
 *     params-all-gather -> F0 -> F1 ..... B0 -> B1 -> gc -> layernorm -> embedding -> grads -> clip
 *        (all dp)          `send/recv`   recv/send                        (ends)    (all dp)  (all)
 *
 * Texts are in the graph's own arena. Release the part also after a failure.
 */
enum rp_code rp_sim_part_of_pipeline(struct rp_sim_part *out, const struct rp_trace *trace,
                                     struct rp_err *err);

/* Whether the duration of an operation is communication: its ideal is the median, not the mean. */
bool rp_pipeline_is_comm(const char *type);
