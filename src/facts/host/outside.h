/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds what was recorded outside of the steps that are judged, and how the steps were found, so
 * that every question that judges steps says the same about both.
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
    int64_t before_ns, after_ns; /* time of recorded work before the first step and after the last;
                                    without steps, around the device work */
    int64_t unrecorded_ns;       /* from its mark to the begin of the first step, which waited for
                                    unrecorded work */
    int64_t warm_ups, warm_up_ns, without_detail;
    int64_t beside, beside_ns;       /* steps before the first device work or after the last */
    int64_t device_steps, device_ns; /* for steps without detail: how many have a time on the
                                        device, and the median */
    int64_t breaks[RP_BREAKS], break_ns[RP_BREAKS];
    double share;     /* share of the device time from the first step on that is in steps (without a
                         device, of the operators' time) */
    uint32_t source;  /* enum rp_step_source, if there are steps */
    const char *mark; /* common part of the marks' names, in the arena; NULL without steps */
};

extern const struct rp_type rp_outside_type; /* result/part.h */

/* `mark` is in the arena. Linear in the events. */
enum rp_code rp_outside_measure(const struct rp_trace *trace, struct rp_arena *arena,
                                struct rp_outside *out, struct rp_err *err);

/* Whether so much lies outside of the steps (more than a tenth of the time of recorded work) that
   judging all of the recording would mislead. */
bool rp_outside_is_large(const struct rp_outside *o, const struct rp_trace *trace);

/* Writes "not counted: 10.4 s before the first step (start-up), 1.2 s in 2 evaluations"; parts
   below a fiftieth of judged_ns are left out. NULL if nothing is left. In the arena, which keeps a
   failure. */
const char *rp_outside_text(const struct rp_outside *o, int64_t judged_ns, struct rp_arena *arena);

/* Writes "25, by Optimizer.step#SGD.step, 98 % of the device time from the first one on"; NULL if
   there are no steps, or a profiler marks them, which needs no proof. */
const char *rp_outside_steps_text(const struct rp_outside *o, bool on_device,
                                  struct rp_arena *arena);

/*
 * What is judged by questions that are by definition about all of a recording (idle, stalls,
 * critpath): the steps, if much lies outside of them and the user did not choose what to record;
 * without steps the time of the device work. n is 0 if everything is, as with a step or window that
 * is selected. Steps of torch.profiler and of servers were chosen, unless the device was not
 * recorded in some.
 */
struct rp_judged {
    struct rp_segments segments; /* in the arena */
    struct rp_outside outside;   /* where n is not 0 */
};
enum rp_code rp_judged_find(const struct rp_trace *trace, const struct rp_scope *scope,
                            struct rp_arena *arena, struct rp_judged *out, struct rp_err *err);

/* For questions that add up work. A recording by `reprise record` includes the start-up of its
   program, so the scope becomes what is judged, and *not_counted says what is left out. A
   profiler's file counts as a whole, because somebody chose what to record. */
enum rp_code rp_judged_scope(const struct rp_trace *trace, struct rp_scope *scope,
                             struct rp_arena *arena, const char **not_counted, struct rp_err *err);

/* Whether a time lies in what is judged. */
bool rp_judged_has(const struct rp_judged *judged, int64_t ts_ns);

/* Keeps the slow calls that begin in what is judged. */
void rp_judged_keep_calls(const struct rp_judged *judged, const struct rp_trace *trace,
                          struct rp_host_calls *calls);

/* What is judged, after a time or a noun: " from the first to the last device work", " in the
   judged steps", or "" if it is everything. */
const char *rp_judged_words(const struct rp_judged *judged);

/* "not counted: …", or NULL. */
const char *rp_judged_text(const struct rp_judged *judged, struct rp_arena *arena);

/* Whether a name with "checkpoint" in it belongs to PyTorch's activation checkpointing, which
   recomputes and saves nothing. */
bool rp_name_recomputes(const char *name);
