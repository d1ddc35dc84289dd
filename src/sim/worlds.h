/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A recorded run without the cost of its recording, what a step of it takes with changes, and what
 * the same would take where what is not known is different: gains have intervals from these worlds.
 */
#include "base/decides.h"
#include "base/threads.h"
#include "outcomes/outcomes.h"
#include "sim/engine/resimulate.h"
#include "sim/model/run.h"

#define RP_WORLDS_TASKS_MOST 4000000
RP_LIMIT(
    RP_WORLDS_TASKS_MOST, "tasks",
    "what is kept for simulating again takes several times the memory of a run: larger ones are "
    "simulated from nothing, for the same times");
#define RP_SIM_COST_DOUBT 0.5
RP_DECISION(RP_SIM_COST_DOUBT, "of the profiler's cost",
            "half of it, or half as much again: 20 of 22 unprofiled steps lay in that interval "
            "(docs/definitions.md, Cost of the profiler)",
            "sim/worlds_differ_in_the_profilers_cost");

/* The overlay where the profiler cost less, or more; made when it is needed. */
struct rp_at_cost {
    struct rp_overlay overlay;
    bool made;
    pthread_mutex_t lock; /* of what is tried beside each other, one at a time */
};

struct rp_worlds {
    struct rp_sim_run run;
    struct rp_resim base;
    bool based;
    struct rp_at_cost at_cost[2];
    struct rp_pool *pool;    /* set by the caller: of what is asked for at once, several changes are
                                tried beside each other (beside.h); NULL: one after the other */
    struct rp_worlds *twins; /* of the other threads */
    unsigned ntwins;
    struct rp_worlds *first; /* of a twin: what it is a copy of; else NULL */
    bool whole;              /* every change runs all of it: to measure what that costs */
    int64_t recorded_ns, simulated_ns;
    int64_t step_ns;        /* without a change */
    double doubt;           /* relative: how far steps differ, and the model from the recording */
    double transport_doubt; /* relative: of another run; 0: nothing communicates */
    bool one_size;          /* recorded transfers tell latency and rate not apart */
    bool costs;             /* recording had a cost */
    bool capture;     /* set by the caller: the recorded launches were captured, not executed */
    bool unlike;      /* the steps are too different for a prediction about one of them */
    size_t given;     /* ranks, those that others stand for included */
    size_t evaluated; /* runs of the simulator */
    struct rp_outcomes outcomes; /* of changes that were tried on this machine */
};

/* The parts outlive it. Release it also after a failure. */
enum rp_code rp_worlds_init(struct rp_worlds *x, const struct rp_sim_part *const *parts, size_t n,
                            const uint32_t *weights, struct rp_err *err);
void rp_worlds_release(struct rp_worlds *x);

/* The part of the time in which ranks that were not given may be waited for: how much less it would
   be with a change, or without the profiler, is not known. 0: all ranks were given. */
double rp_worlds_absent(const struct rp_worlds *x);
/* Why no gain is sure, whatever its interval; NULL: gains can be. */
const char *rp_worlds_distrust(const struct rp_worlds *x);

/* A step with a list of what-ifs ("" is none). */
enum rp_code rp_worlds_step(struct rp_worlds *x, const char *text, int64_t *step_ns,
                            struct rp_err *err);

/* The same where what is not known is different: each transport and table leans to one side, and
   the profiler cost half or half as much again. The first is as above. With `before` (else NULL)
   the worlds after one in which a step is not shorter than before are not run: nothing is sure. */
enum { RP_WORLDS = RP_LEANS + 2 };
enum rp_code rp_worlds_steps(struct rp_worlds *x, const char *text, const int64_t *before,
                             int64_t step_ns[RP_WORLDS], struct rp_err *err);

/* The first of them, and what it told of the others: of a change that was tried already it is not
   run again. */
struct rp_worlds_first {
    int64_t step_ns;
    bool leans, transport, latency;
};
enum rp_code rp_worlds_first(struct rp_worlds *x, const char *text, struct rp_worlds_first *out,
                             struct rp_err *err);
/* Those that lean to one side; all of step_ns is set. */
enum rp_code rp_worlds_leans(struct rp_worlds *x, const char *text,
                             const struct rp_worlds_first *first, const int64_t *before,
                             int64_t step_ns[RP_WORLDS], struct rp_err *err);
/* Where the profiler cost less, or more. step_ns stays as it is where recording cost nothing. */
enum rp_code rp_worlds_at_cost(struct rp_worlds *x, const char *text, bool more, int64_t *step_ns,
                               struct rp_err *err);

/* Whether a step is shorter than before in the first of the worlds; always without `before`. */
bool rp_worlds_is_sure(const int64_t *before, const int64_t step_ns[RP_WORLDS], int nworlds);

/* What a change brings, and its interval over the worlds. */
struct rp_gain {
    int64_t ns, low_ns, high_ns;
    int64_t tries; /* on this machine, that the interval is from; 0: none */
};
/* `text` is what changed between the two: it tells what may be off beside the worlds. */
struct rp_gain rp_worlds_gain(const struct rp_worlds *x, const int64_t before[RP_WORLDS],
                              const int64_t then[RP_WORLDS], const char *text);
