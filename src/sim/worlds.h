/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A recorded run without the cost of its recording, the time of its step with changes, and the same
 * times under other assumptions about unknowns. Gains get their intervals from these worlds.
 */
#include "base/decides.h"
#include "base/threads.h"
#include "outcomes/outcomes.h"
#include "sim/engine/resimulate.h"
#include "sim/model/profiler_cost.h"

#define RP_WORLDS_TASKS_MOST 4000000
RP_LIMIT(
    RP_WORLDS_TASKS_MOST, "tasks",
    "what is kept for simulating again takes several times the memory of a run: larger ones are "
    "simulated from nothing, for the same times");

struct rp_worlds {
    struct rp_sim_run run;
    struct rp_resim base;
    bool based;
    rp_sim_at_cost_vec at_cost; /* what differs if the profiler cost less, and more */
    bool listed;                /* it was made, under the lock, when it was needed */
    pthread_mutex_t lock;
    struct rp_pool *pool; /* set by the caller: tries several changes in parallel (beside.h); NULL:
                             one after the other */
    struct rp_worlds *twins; /* of the other threads */
    unsigned ntwins;
    struct rp_worlds *first; /* in a twin: what it is a copy of; else NULL */
    bool whole;              /* every change runs everything, to measure what that costs */
    int64_t recorded_ns, simulated_ns;
    int64_t step_ns;        /* without a change */
    double doubt;           /* relative: how far steps differ, and the model from the recording */
    double transport_doubt; /* relative: transport of another run; 0: nothing communicates */
    bool one_size;          /* latency and rate cannot be distinguished in the recorded transfers */
    bool costs;             /* recording had a cost */
    bool capture;     /* set by the caller: the recorded launches were captured, not executed */
    bool unlike;      /* the steps are too different for a prediction about one of them */
    size_t given;     /* number of ranks, including those that others represent */
    size_t evaluated; /* runs of the simulator */
    struct rp_outcomes outcomes; /* outcomes of changes that were tried on this machine */
};

/* The parts must outlive it. It must be released also after a failure. */
enum rp_code rp_worlds_init(struct rp_worlds *x, const struct rp_sim_part *const *parts, size_t n,
                            const uint32_t *weights, struct rp_err *err);
void rp_worlds_release(struct rp_worlds *x);

/* The share of the time in which ranks that were not given may be waited for; it is unknown how
   much less it would be with a change, or without the profiler. 0: all ranks were given. */
double rp_worlds_absent(const struct rp_worlds *x);
/* Why no gain is certain, whatever its interval; NULL if gains can be certain. */
const char *rp_worlds_distrust(const struct rp_worlds *x);

/* The time of a step with a list of what-ifs ("" for none). */
enum rp_code rp_worlds_step(struct rp_worlds *x, const char *text, int64_t *step_ns,
                            struct rp_err *err);

/* The same in all worlds: each transport and table leans to one side, and the profiler cost half,
   or half as much again. The first world is as above. If `before` is not NULL, the run ends after a
   world in which the step is not shorter than before, because then nothing is certain. */
enum { RP_WORLDS = RP_LEANS + 2 };
enum rp_code rp_worlds_steps(struct rp_worlds *x, const char *text, const int64_t *before,
                             int64_t step_ns[RP_WORLDS], struct rp_err *err);

/* The first world, and what it told about the others; a change that was tried already need not be
   run again in it. */
struct rp_worlds_first {
    int64_t step_ns;
    unsigned leans; /* the worlds that may differ (struct rp_sim_run) */
    bool transport, latency;
};
enum rp_code rp_worlds_first(struct rp_worlds *x, const char *text, struct rp_worlds_first *out,
                             struct rp_err *err);
/* Runs the other worlds, and sets all of step_ns. */
enum rp_code rp_worlds_others(struct rp_worlds *x, const char *text,
                              const struct rp_worlds_first *first, const int64_t *before,
                              int64_t step_ns[RP_WORLDS], struct rp_err *err);

/* Whether a step is shorter than before in the first of the worlds; true without `before`. */
bool rp_worlds_is_sure(const int64_t *before, const int64_t step_ns[RP_WORLDS], int nworlds);

/* What a change brings, and its interval over the worlds. */
struct rp_gain {
    int64_t ns, low_ns, high_ns;
    int64_t tries; /* number of tries on this machine that the interval comes from; 0: none */
};
/* `text` is the change between the two, which decides what may be wrong besides the worlds. */
struct rp_gain rp_worlds_gain(const struct rp_worlds *x, const int64_t before[RP_WORLDS],
                              const int64_t then[RP_WORLDS], const char *text);
