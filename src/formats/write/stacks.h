/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the writers of profiles share: the frames of a stack, and names of threads. */
#include "base/vec.h"
#include "trace/trace.h"

typedef RP_VEC(uint32_t) rp_stack_path;

/* Reads the trace as far as a profile needs it; RP_UNSUPPORTED if it has no samples. */
enum rp_code rp_stacks_require(const struct rp_trace *t, struct rp_err *err);

/* Lists the frames of a stack, innermost first. */
enum rp_code rp_stack_walk(const struct rp_trace *t, uint32_t stack, rp_stack_path *path,
                           struct rp_err *err);

/* The name of a thread, or its id as a text in `room`. */
const char *rp_stacks_thread(const struct rp_trace *t, rp_track track, char room[32]);
