/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_SIM_ANSWER_H
#define RP_SIM_ANSWER_H
/*
 * The answer of `simulate`: how well the model repeats what was recorded, then what each what-if
 * would bring.
 */
#include "result/result.h"
#include "sim/model/expand.h"
#include "sim/whatif/whatifs.h"
#include "trace/trace.h"

struct rp_sim_baseline {
    int64_t measured_ns, simulated_ns, unprofiled_ns;
    int64_t unprofiled_low_ns, unprofiled_high_ns;
    int64_t span_cost_ns; /* what recording a span of the host cost, on the first rank */
    double cost_factor;   /* times the estimate */
    double error_ratio;   /* of simulated against measured */
    double spread_ratio;  /* one step against the others; NaN with fewer than two distances */
    int64_t ranks, steps, tasks, edges;
};

struct rp_sim_prediction {
    const char *what_if;
    int64_t simulated_ns, predicted_ns, low_ns, high_ns;
    double change_ratio;  /* of predicted against unprofiled: -0.1 is a tenth less */
    const char *bound_by; /* what most of its critical path is */
    const char *assumes;
};

/* A part of the critical path, a step. */
struct rp_sim_bound {
    const char *what;
    int64_t ns;
    double ratio; /* of the path */
};

/* What a rank does in a simulated step, on average. Waiting is for other ranks in collectives;
   slack is what its own work can be late without anything ending later, in the tightest step. */
struct rp_sim_rank {
    int64_t rank, host_ns, compute_ns, memory_ns, comm_ns, waiting_ns, slack_ns;
};

/* A row of the list that '--what-if help' gives. */
struct rp_sim_known {
    const char *form, *summary, *assumes;
};

struct rp_sim_answer {
    size_t nknown;
    struct rp_sim_known *known;
    struct rp_sim_baseline baseline; /* all absent where only the list was asked for */
    size_t npath, nby_rank, npredictions, nnotes;
    struct rp_sim_bound *path;
    struct rp_sim_rank *by_rank; /* of several ranks */
    struct rp_sim_prediction *predictions;
    const char **notes;
};

extern const struct rp_type rp_sim_type;

/* The list of what-ifs. */
enum rp_code rp_sim_answer_help(struct rp_arena *arena, struct rp_sim_answer *out,
                                struct rp_err *err);

/* What is asked. */
struct rp_sim_asked {
    const char *const *whatifs; /* texts as given */
    size_t nwhatifs;
    int64_t unprofiled_ns;   /* what a step takes without the profiler, as measured; 0: not given */
    double cost_factor;      /* the profiler cost so many times the estimate; 0: not given */
    struct rp_expand expand; /* 0: collectives stay whole */
    struct rp_trace **trace; /* NULL, or where the simulated run is put, that of the first what-if
                                or, without one, that of the recording; the caller frees it */
};

/* Copies into the arena. */
enum rp_code rp_sim_answer(const struct rp_sim_part *const *parts, size_t n,
                           const struct rp_sim_asked *asked, struct rp_arena *arena,
                           struct rp_sim_answer *out, struct rp_err *err);

#endif
