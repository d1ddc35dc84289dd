/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TRACE_FINISH_STEPS_H
#define RP_TRACE_FINISH_STEPS_H
/*
 * Sources of steps: one function for each kind of evidence, strongest first (steps.c). Each
 * appends to b->steps, or nothing where its evidence is missing or weak. Inside src/trace only.
 */
#include "trace/build/state.h"

/* "ProfilerStep#12" in a category that marks steps. */
enum rp_code rp_steps_by_profiler(struct rp_builder *b, struct rp_err *err);
/* XLA and TensorFlow: a thread "Steps", step_num, group_id, "XLA Modules", run_id. */
enum rp_code rp_steps_by_run_id(struct rp_builder *b, struct rp_err *err);
/* TensorFlow's RunMetadata and Timeline: the one run that they record. */
enum rp_code rp_steps_by_session(struct rp_builder *b, struct rp_err *err);
/* Annotations such as "iteration 5", one after the other. */
enum rp_code rp_steps_by_annotation(struct rp_builder *b, struct rp_err *err);
/* Unmarked steps: the same sequence of work repeats. */
enum rp_code rp_steps_by_repetition(struct rp_builder *b, struct rp_err *err);

/* The smallest period of the sequence: at least three repetitions, nine of ten elements equal to
   the one a period later, two different names. 0: none. Only the first 2^18 elements are examined.
 */
enum rp_code rp_steps_find_period(const rp_str *names, size_t n, size_t *period,
                                  struct rp_err *err);

/* A step that is an event. */
static inline struct rp_step rp_step_of_event(const struct rp_builder *b, rp_event e,
                                              enum rp_step_source source, int64_t number)
{
    return (struct rp_step){.name = b->ev.name.at[e],
                            .source = source,
                            .number = number,
                            .begin_ns = b->ev.ts_ns.at[e],
                            .end_ns = rp_build_end_ns(b, e),
                            .mark = e};
}

/* Whether the event is a span with a time. */
static inline bool rp_step_is_span(const struct rp_builder *b, rp_event e)
{
    return b->ev.ts_ns.at[e] != RP_NO_TS && b->ev.dur_ns.at[e] >= 0;
}

#endif
