/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_REPORT_HOST_H
#define RP_EXPLAIN_REPORT_HOST_H
/*
 * Why no operator runs, where a trace has no device work: what the threads did instead, as far as
 * it was recorded.
 */
#include "facts/work.h"

/* X(NAME, part of the report, what it means) */
#define RP_PAUSE_MAP(X)                                                     \
    X(DATA, "no operator: input data", "the data loader runs")              \
    X(PROFILER, "no operator: profiler", "the profiler writes its buffers") \
    X(PYTHON, "no operator: Python", "Python code between the operators")   \
    X(SPAN, "no operator: other spans", "an annotation or a runtime call")  \
    X(OUTSIDE, "no operator: between steps", "nothing recorded")            \
    X(NOTHING, "no operator: not recorded", "waiting, or untraced code")

enum rp_pause {
#define RP_PAUSE_ENUM(name, text, doc) RP_PAUSE_##name,
    RP_PAUSE_MAP(RP_PAUSE_ENUM)
#undef RP_PAUSE_ENUM
        RP_PAUSES
};
extern const char *const rp_pause_names[RP_PAUSES];
extern const char *const rp_pause_docs[RP_PAUSES];

struct rp_report_pauses {
    int64_t ns[RP_PAUSES], count[RP_PAUSES], longest_ns[RP_PAUSES];
    const char *mostly[RP_PAUSES]; /* the span with most of it, or NULL */
    int64_t mostly_ns[RP_PAUSES];
};

/* The pauses between the intervals of `busy`; they add up to its idle time. Texts go into the
   arena. */
enum rp_code rp_report_find_pauses(const struct rp_trace *trace, const rp_interval_vec *busy,
                                   struct rp_arena *arena, struct rp_report_pauses *out,
                                   struct rp_err *err);

#endif
