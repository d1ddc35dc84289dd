/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds the lines of a compiled program that an event belongs to, from the logs of torch.compile or
   the programs of XLA that belong to a trace. */
#include "explain/top/lines_xla.h"

struct rp_line_source {
    struct rp_torch_trace log;
    struct rp_compiled compiled; /* of torch.compile */
    struct rp_lines_xla xla;
    bool known; /* something was found; otherwise the rest is unused */
    bool of_xla;
};

/* Arguments as for rp_lines_make (lines.h). The struct must not be moved, and must be released also
   after a failure. */
enum rp_code rp_line_source_init(struct rp_line_source *s, const struct rp_loaded *loaded,
                                 const char *dumps, struct rp_err *err);
void rp_line_source_release(struct rp_line_source *s);

/* Writes "model.py:11, model.py:10", the line with most nodes first, in the arena; NULL: none. */
const char *rp_line_source_text(const struct rp_line_source *s, const struct rp_trace *trace,
                                rp_event e, struct rp_arena *arena);
