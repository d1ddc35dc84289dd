/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_REPLAY_SPANS_H
#define RP_REPLAY_SPANS_H
#include "replay/session.h"
#include "result/result.h"
#include "trace/trace.h"

/* The trace of so many more runs of an engine that notes what runs when; a warning in the result
   where not all of it was kept. */
enum rp_code rp_replay_spans(const struct rp_session_run *run, unsigned runs, struct rp_trace **out,
                             struct rp_result *result, struct rp_err *err);

#endif
