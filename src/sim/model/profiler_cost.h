/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What recording added to a run. How fast the host was while recording follows from operators that
 * do next to nothing; what was recorded (shapes, Python frames, memory) from the records
 * themselves.
 */
#include "sim/model/run.h"

/* What it costs to record one of these, as estimated, or in some proportion where it cannot be
   estimated: then the run's cost factor is 0 until a step without the recorder sets it. */
struct rp_sim_cost {
    double span_ns;  /* an operator or a range */
    double call_ns;  /* a call that the device's tracer intercepts */
    double frame_ns; /* a Python frame */
};

/* Fills the fields of the part about its own recording. */
enum rp_code rp_sim_cost_look(struct rp_sim_part *p, const struct rp_trace *t, struct rp_err *err);

struct rp_sim_cost rp_sim_cost_of(const struct rp_sim_part *p);

/* The factor of a run whose steps without the recorder are not known: 1, or 0 where it cannot be
   estimated. */
double rp_sim_cost_usual(const struct rp_sim_run *run);
/* Whether the cost was estimated or measured. */
bool rp_sim_cost_is_known(const struct rp_sim_run *run);

/* Removes `factor` times the run's cost from the host's time, rank by rank, since hosts differ. */
enum rp_code rp_sim_cost_drop(struct rp_sim_run *run, double factor, struct rp_err *err);

/* Sets the run's cost factor so that a step takes that long without the profiler, as nearly as
   possible; 0 where the recorded step is not longer, and 1 where the step hardly depends on it, as
   where the device limits it. RP_USAGE where no cost explains it. */
enum rp_code rp_sim_cost_calibrate(struct rp_sim_run *run, int64_t unprofiled_ns,
                                   struct rp_err *err);

/* The same by what the recorder measured, where it did; nothing changes where no cost explains it.
 */
enum rp_code rp_sim_cost_take_measured(struct rp_sim_run *run, struct rp_err *err);
