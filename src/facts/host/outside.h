/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What was recorded outside of the steps that are judged, by what it is, and what the steps were
 * found by: every question that judges steps says the same about both.
 */
#include "facts/host/calls.h"
#include "facts/times/step_times.h"

/* What lies between two steps that do not follow each other: X(NAME, "one", "several"). */
#define RP_BREAK_MAP(X)                                               \
    X(EVALUATION, "evaluation or rollout", "evaluations or rollouts") \
    X(CHECKPOINT, "checkpoint", "checkpoints")                        \
    X(PAUSE, "pause", "pauses")                                       \
    X(OTHER, "break", "breaks")
enum rp_break {
#define RP_BREAK_ENUM(name, one, several) RP_BREAK_##name,
    RP_BREAK_MAP(RP_BREAK_ENUM)
#undef RP_BREAK_ENUM
        RP_BREAKS
};

struct rp_outside {
    int64_t nsteps;
    int64_t before_ns, after_ns; /* recorded work before the first step and after the last; without
                                    steps around the device work */
    int64_t unrecorded_ns; /* from its mark to the begin of the first step, which waited for work
                              that was not recorded */
    int64_t warm_ups, warm_up_ns, without_detail;
    int64_t beside, beside_ns;       /* steps before the first device work or after the last */
    int64_t device_steps, device_ns; /* of those without detail: how many have a time on the device,
                                        and the median */
    int64_t breaks[RP_BREAKS], break_ns[RP_BREAKS];
    double share; /* in steps: of the device time from the first on (without any, the operators') */
    uint32_t source;  /* enum rp_step_source; with steps */
    const char *mark; /* the name that the marks have in common, in the arena; NULL without steps */
};

extern const struct rp_type rp_outside_type; /* result/part.h */

/* `mark` is in the arena. Linear in the events. */
enum rp_code rp_outside_measure(const struct rp_trace *trace, struct rp_arena *arena,
                                struct rp_outside *out, struct rp_err *err);

/* Whether so much lies outside of the steps that judging all of the recording would mislead: more
   than a tenth of the recorded work's time. */
bool rp_outside_is_large(const struct rp_outside *o, const struct rp_trace *trace);

/* "not counted: 10.4 s before the first step (start-up), 1.2 s in 2 evaluations"; what is less than
   a fiftieth of judged_ns is left out. NULL: nothing. In the arena, whose failure sticks to it. */
const char *rp_outside_text(const struct rp_outside *o, int64_t judged_ns, struct rp_arena *arena);

/* "25, by Optimizer.step#SGD.step, 98 % of the device time from the first one on"; NULL where a
   profiler marks the steps, which needs no proof, or there are none. */
const char *rp_outside_steps_text(const struct rp_outside *o, bool on_device,
                                  struct rp_arena *arena);

/*
 * What a question judges that is about all of a recording by its definition (idle, stalls,
 * critpath): the steps, where much lies outside of them and the recorder did not choose what to
 * record. A profiler's steps are chosen: there all is judged, and n is 0, as where a step or window
 * is selected. Without steps it is the time of the device work.
 */
struct rp_judged {
    struct rp_segments segments; /* in the arena */
    struct rp_outside outside;   /* where n is not 0 */
};
enum rp_code rp_judged_find(const struct rp_trace *trace, const struct rp_scope *scope,
                            struct rp_arena *arena, struct rp_judged *out, struct rp_err *err);

/* For questions that add up work: of a recording by `reprise record`, which has the start-up of its
   program in it, what is judged becomes the scope, and *not_counted says what is not in it. Of a
   profiler's file everything counts: somebody chose what to record. */
enum rp_code rp_judged_scope(const struct rp_trace *trace, struct rp_scope *scope,
                             struct rp_arena *arena, const char **not_counted, struct rp_err *err);

/* Whether a time lies in what is judged. */
bool rp_judged_has(const struct rp_judged *judged, int64_t ts_ns);

/* Leaves the slow calls that begin in what is judged. */
void rp_judged_keep_calls(const struct rp_judged *judged, const struct rp_trace *trace,
                          struct rp_host_calls *calls);

/* "not counted: …", or NULL. */
const char *rp_judged_text(const struct rp_judged *judged, struct rp_arena *arena);

/* Whether a name with "checkpoint" in it is of PyTorch's activation checkpointing, which computes
   again, and saves nothing. */
bool rp_name_recomputes(const char *name);
