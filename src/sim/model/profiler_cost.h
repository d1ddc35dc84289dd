/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Estimates what recording added to a run. How fast the host was while recording follows from
 * operators that do next to nothing; the records themselves show what was recorded (shapes, Python
 * frames, memory).
 */
#include "sim/model/run.h"

/* The estimated costs of recording one of these. If they cannot be estimated, only their proportion
   is known, and the run's cost factor is 0 until a step without the recorder sets it. */
struct rp_sim_cost {
    double span_ns;  /* an operator or a range */
    double call_ns;  /* a call that the device's tracer intercepts */
    double frame_ns; /* a Python frame */
};

/* Fills the fields of the part about its own recording. */
enum rp_code rp_sim_cost_look(struct rp_sim_part *p, const struct rp_trace *t, struct rp_err *err);

struct rp_sim_cost rp_sim_cost_of(const struct rp_sim_part *p);

/* The factor for a run without a known step without the recorder: 1, or 0 if the cost cannot be
   estimated. */
double rp_sim_cost_usual(const struct rp_sim_run *run);
/* Whether the cost was estimated or measured. */
bool rp_sim_cost_is_known(const struct rp_sim_run *run);

/* The ends of the interval of the cost, as factors of it; `known`: a step without it was measured.
 */
double rp_sim_cost_end(const struct rp_sim_run *run, bool known, bool more);

/* Removes `factor` times the run's cost from the host's time, rank by rank, since hosts differ. */
enum rp_code rp_sim_cost_drop(struct rp_sim_run *run, double factor, struct rp_err *err);

/* A duration or lag at other costs, where it differs from that of the run. */
enum { RP_SIM_COSTS = 2 };
struct rp_sim_at_cost {
    uint32_t at : 31; /* a task, or an edge */
    uint32_t is_lag : 1;
    int64_t now_ns, then_ns[RP_SIM_COSTS];
};
typedef RP_VEC(struct rp_sim_at_cost) rp_sim_at_cost_vec;
/* Lists them for factors of the run's cost, the largest last. The run is as rp_sim_cost_drop(run,
   1) left it. */
enum rp_code rp_sim_cost_list(struct rp_sim_run *run, const double factor[RP_SIM_COSTS],
                              rp_sim_at_cost_vec *out, struct rp_err *err);

/* Sets the run's cost factor such that a step takes that long without the profiler, as nearly as
   possible. It is 0 if the recorded step is not longer, and 1 if the step hardly depends on it,
   because the device limits it. RP_USAGE if no cost explains it. */
enum rp_code rp_sim_cost_calibrate(struct rp_sim_run *run, int64_t unprofiled_ns,
                                   struct rp_err *err);

/* The same with what the recorder measured, if it did; nothing changes if no cost explains it. */
enum rp_code rp_sim_cost_take_measured(struct rp_sim_run *run, struct rp_err *err);
