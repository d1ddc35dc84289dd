/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sources of steps: one function for each kind of evidence, strongest first (steps.c). Each appends
 * to b->steps, unless its evidence is missing or weak. Inside src/trace only.
 */
#include "trace/finish/mark_view.h"
#include "trace/step_patterns.h"

/* Uses what the metadata of a part of a trace says (trace/copy.h); *found: there is such a record,
   even without steps. */
enum rp_code rp_steps_by_cut(struct rp_builder *b, bool *found, struct rp_err *err);
/* XLA and TensorFlow: a thread "Steps", step_num, group_id, "XLA Modules". */
enum rp_code rp_steps_by_run_id(struct rp_builder *b, struct rp_err *err);
/* By the argument run_id: any execution, if nothing says more. */
enum rp_code rp_steps_by_runs(struct rp_builder *b, struct rp_err *err);
/* TensorFlow's RunMetadata and Timeline: the one run that they record. */
enum rp_code rp_steps_by_session(struct rp_builder *b, struct rp_err *err);
/* Annotations such as "iteration 5", one after the other. */
enum rp_code rp_steps_by_annotation(struct rp_builder *b, struct rp_err *err);
/* Loops without marks, by what they do once in each round (steps_loop.c). */
enum rp_code rp_steps_by_optimizer(struct rp_builder *b, struct rp_err *err);
enum rp_code rp_steps_by_executable(struct rp_builder *b, struct rp_err *err);
enum rp_code rp_steps_by_loader(struct rp_builder *b, struct rp_err *err);
enum rp_code rp_steps_by_replay(struct rp_builder *b, struct rp_err *err);
enum rp_code rp_steps_by_backward(struct rp_builder *b, struct rp_err *err);
enum rp_code rp_steps_by_compiled(struct rp_builder *b, struct rp_err *err);
enum rp_code rp_steps_by_forward(struct rp_builder *b, struct rp_err *err);
/* Unmarked steps: the same sequence of work repeats. */
enum rp_code rp_steps_by_repetition(struct rp_builder *b, struct rp_err *err);

/* Flags first steps that take more than twice as long as usual. At least half of the steps are
   kept. */
void rp_steps_flag_warm_up(struct rp_builder *b, int64_t usual_ns);

/* Whether the steps in b are layers of one pass, by the numbers in the names of modules. */
enum rp_code rp_steps_are_layers(const struct rp_builder *b, bool *out, struct rp_err *err);

/* The smallest period of the sequence: at least three repetitions, nine of ten elements equal to
   the element a period later, and two different names. 0: none. Only the first 2^18 elements are
   examined. */
enum rp_code rp_steps_find_period(const rp_str *names, size_t n, size_t *period,
                                  struct rp_err *err);

typedef RP_VEC(struct rp_step) rp_step_vec;

/* The start of the host call of a link; RP_NO_TS if none is recorded. */
int64_t rp_steps_launched_at(const struct rp_mark_view *v, uint32_t link);
/* The same for a sequence of device work: work that was launched together is looked up once.
   `known` begins with the link RP_NONE. */
struct rp_launch_known {
    uint32_t link;
    int64_t at_ns;
};
int64_t rp_steps_launched_next(const struct rp_mark_view *v, uint32_t link,
                               struct rp_launch_known *known);

/* Finds the steps that a server marks, by the table (or NULL) and the built-in patterns, in the
   order of time. */
enum rp_code rp_steps_find_marks(const struct rp_mark_view *v, const struct rp_step_table *table,
                                 rp_step_vec *out, struct rp_err *err);

/* Adds what marks say to the profiler's steps around them, in the order of time. Returns false and
   does nothing if there are none, or if a step contains several, which are the steps then. */
bool rp_steps_describe(struct rp_step *steps, size_t n, const rp_step_vec *marks);

/* The length of "iteration" in "iteration 5", and the number 5, if a number ends the name. */
size_t rp_steps_base_length(const char *text, size_t len, int64_t *number, bool *numbered);

/* A step without times and counts. */
static inline struct rp_step rp_step_from(enum rp_step_source source)
{
    return (struct rp_step){.source = source,
                            .work_end_ns = RP_NO_TS,
                            .requests = RP_NO_COUNT,
                            .tokens = RP_NO_COUNT,
                            .mark = RP_NONE};
}

/* A step that is an event. */
static inline struct rp_step rp_step_of_event(const struct rp_builder *b, rp_event e,
                                              enum rp_step_source source, int64_t number)
{
    const struct rp_track_info *track = &b->tracks.at[b->ev.track.at[e]];
    struct rp_step step = rp_step_from(source);

    step.name = b->ev.name.at[e];
    step.number = number;
    step.begin_ns = b->ev.ts_ns.at[e];
    step.end_ns = rp_build_end_ns(b, e);
    step.mark = e;
    if (track->kind == RP_TRACK_STREAM || b->processes.at[track->process].device >= 0)
        step.flags = RP_STEP_ON_DEVICE;
    return step;
}

/* The distance between two times; saturates. */
static inline int64_t rp_step_between(int64_t from_ns, int64_t to_ns)
{
    int64_t ns;

    return __builtin_sub_overflow(to_ns, from_ns, &ns) ? to_ns > from_ns ? INT64_MAX : INT64_MIN
                                                       : ns;
}

static inline bool rp_step_is_span(const struct rp_builder *b, rp_event e)
{
    return b->ev.ts_ns.at[e] != RP_NO_TS && b->ev.dur_ns.at[e] >= 0;
}
