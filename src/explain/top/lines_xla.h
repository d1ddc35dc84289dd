/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Presents lines of programs that XLA compiled in the terms of a compile log: a module is a graph,
 * an instruction a call, whose lines are in the metadata of it and of what is fused in it.
 */
#include "dataset/load.h"
#include "facts/arg_keys.h"
#include "xref/compiled.h"

struct rp_lines_xla {
    struct rp_torch_trace *log; /* filled; borrowed */
    struct rp_map call_of;      /* from module and instruction to the call */
    struct rp_map graph_of;     /* module -> graph */
    RP_VEC(bool) backward;      /* by call */
    struct rp_arg_key hlo_op, hlo_module;
};

/* Reads the programs that a profile carries or that are among its inputs, and those of a dump if
   dumps is not NULL. Must be released also after a failure. */
enum rp_code rp_lines_xla_init(struct rp_lines_xla *x, const struct rp_loaded *loaded,
                               const char *dumps, struct rp_torch_trace *log, struct rp_err *err);
void rp_lines_xla_release(struct rp_lines_xla *x);

struct rp_compiled_span rp_lines_xla_of(const struct rp_lines_xla *x, const struct rp_trace *trace,
                                        rp_event e);
