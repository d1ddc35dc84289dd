/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How long steps last: the one definition for every question (docs/definitions.md, "Step time").
 * The host runs ahead of the device, so a step begins at its mark, or where the device work of
 * earlier steps has ended (also of one that is not marked, because recording began while the device
 * still ran it), whichever is later, and lasts until the next one begins:
 *
 *     host    [mark 1][mark 2][mark 3]
 *     device     [work of 1    ][work of 2   ][work of 3   ]
 *     steps   |        1        |      2      |     3      |
 *
 * So the steps of a trace follow each other without gaps and cover its span, except for breaks: if
 * something else was done (an evaluation) or nothing was recorded, a step ends with its own mark
 * and work.
 */
#include "base/arena.h"
#include "facts/times/intervals.h"
#include "facts/work/work.h"
#include "trace/run.h"

/* One interval for each step of the trace, in order; allocated in the arena, never NULL. */
enum rp_code rp_step_times(const struct rp_trace *trace, struct rp_arena *arena,
                           struct rp_interval **out, struct rp_err *err);
/* The number of whole steps; the last one may be cut off by the end of the recording. */
uint32_t rp_whole_steps(const struct rp_trace *trace);
/* The same from a digest; previous_end_ns: rp_previous_step_end. */
enum rp_code rp_step_times_of_digest(const struct rp_digest *digest, int64_t previous_end_ns,
                                     struct rp_arena *arena, struct rp_interval **out,
                                     struct rp_err *err);

/* Where the device work of the step before the first one ends, which the device still ran when
   recording began; RP_NO_TS if there is none. If that work was recorded, *last is its event that
   ends last: its launches were not recorded, and it runs before the first work that was launched in
   a step. If it is `unrecorded`, *last is the first work of the steps, which waited for it. Linear
   in such work. */
int64_t rp_previous_step_end(const struct rp_trace *trace, rp_event *last, bool *unrecorded);

/* The step time: the median of the durations (with an even number, the mean of the middle two,
   rounded down); RP_ABSENT_I64 without steps. The arena is for scratch. */
enum rp_code rp_step_median(const struct rp_interval *steps, size_t n, struct rp_arena *arena,
                            int64_t *out, struct rp_err *err);

/* From the begin of the first step to the end of the last; without steps, from the first start to
   the last end of host and device work, or if there is none, of everything that has a time. */
struct rp_interval rp_trace_span(const struct rp_trace *trace);

/*
 * What is judged (docs/definitions.md, "What is judged"): with steps, those that are judged;
 * without steps, from the first to the last device work, or if there is none, the span. What comes
 * before is the start-up, what comes after is the end of the program.
 */
struct rp_interval rp_trace_judged_span(const struct rp_trace *trace); /* without steps */
#define RP_WORDS_DEVICE_WINDOW "from the first to the last device work"
/* Whether a step is judged: not a warm-up, with detail, and neither before all device work nor
   after it; `time` is that of rp_step_times. */
bool rp_step_is_judged(const struct rp_trace *trace, uint32_t step, struct rp_interval time);

/* The same as intervals: steps that follow each other are joined, breaks between them are left out.
   At least one interval, in the order of time, in the arena. */
struct rp_segments {
    size_t n;
    struct rp_interval *at;
};
enum rp_code rp_trace_segments(const struct rp_trace *trace, struct rp_arena *arena,
                               struct rp_segments *out, struct rp_err *err);

/* Keeps the items that run in the segments. */
void rp_segments_keep_work(const struct rp_segments *segments, struct rp_work *work);

/* The scope of one step: everything launched from its mark to the next one, or if it is the last,
   to its end. Linear in the steps. */
struct rp_scope rp_scope_of_step(const struct rp_trace *trace, uint32_t step);

/* The scope of a window in times of the trace. Its span is the part in which anything was
   recorded. */
struct rp_scope rp_scope_of_window(const struct rp_trace *trace, int64_t begin_ns, int64_t end_ns);
