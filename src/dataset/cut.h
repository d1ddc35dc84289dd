/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Makes a part of a trace: some of its steps or a window, and some kinds of events. */
#include "base/limits.h"
#include "result/settings.h"
#include "trace/trace.h"

/* These rows are for the option table of `convert`. */
#define RP_CUT_OPTIONS                                                                          \
    {"ranks", 'r', RP_OPT_TEXT, "N[-M],…", NULL, "write only these ranks: '0,3' or '8-15'", 0}, \
        {"steps",                                                                               \
         0,                                                                                     \
         RP_OPT_TEXT,                                                                           \
         "FIRST[:COUNT]",                                                                       \
         NULL,                                                                                  \
         "write only these steps: '3:2' is step number 3 and the next one",                     \
         0},                                                                                    \
        {"window",                                                                              \
         0,                                                                                     \
         RP_OPT_TEXT,                                                                           \
         "A..B",                                                                                \
         NULL,                                                                                  \
         "write what starts between two times, counted from the first event: '10ms..25ms'",     \
         0},                                                                                    \
    {                                                                                           \
        "kinds", 0, RP_OPT_TEXT, "KIND,…", NULL,                                                \
            "write only these kinds of events, as 'info' names them: 'kernel,runtime'", 0       \
    }

struct rp_trace_cut {
    bool asked; /* any of the options was given */
    const char *ranks;
    bool has_steps, has_window;
    int64_t first_step, nsteps; /* the number of the first step */
    int64_t from_ns, to_ns;
    uint32_t kinds; /* one bit for each enum rp_kind; 0 for all */
};

enum rp_code rp_trace_cut_init(struct rp_trace_cut *cut, const struct rp_settings *settings,
                               struct rp_err *err);

/* Makes the part of a trace, which must be verified completely (RP_NEED_ALL); `name` is for
   messages. O(events). */
enum rp_code rp_trace_cut_make(const struct rp_trace_cut *cut, const struct rp_trace *t,
                               const char *name, const struct rp_limits *limits,
                               struct rp_trace **out, struct rp_err *err);
