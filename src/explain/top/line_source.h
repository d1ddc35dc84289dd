/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which lines of a compiled program an event is of: from the logs of torch.compile or the programs
   of XLA that belong to a trace. */
#include "explain/top/lines_xla.h"

struct rp_line_source {
    struct rp_torch_trace log;
    struct rp_compiled compiled; /* of torch.compile */
    struct rp_lines_xla xla;
    bool known; /* something was found; else the rest is not of use */
    bool of_xla;
};

/* As rp_lines_make (lines.h). It must stay where it is; release it also after a failure. */
enum rp_code rp_line_source_init(struct rp_line_source *s, const struct rp_loaded *loaded,
                                 const char *dumps, struct rp_err *err);
void rp_line_source_release(struct rp_line_source *s);

/* "model.py:11, model.py:10", the line of most nodes first; NULL: none. In the arena. */
const char *rp_line_source_text(const struct rp_line_source *s, const struct rp_trace *trace,
                                rp_event e, struct rp_arena *arena);
