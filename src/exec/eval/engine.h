/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by `ref` and `fast`: the executable is a plan, and a run evaluates it once per
   partition. */
#include "exec/engine/engine.h"
#include "exec/eval/plan.h"

/* Changes a plan after it was made: fuses nodes, chooses kernels. */
typedef enum rp_code rp_improve_fn(struct rp_plan *plan, struct rp_err *err);

/* kernels has RP_OP_COUNT rows, which live as long as the program. threaded: kernels get a pool. */
enum rp_code rp_eval_compile(const struct rp_engine *engine,
                             const struct rp_engine_program *program,
                             const struct rp_engine_options *options,
                             void (*kernels)(const struct rp_kernel **), rp_improve_fn *improve,
                             bool threaded, struct rp_executable **out, struct rp_err *err);
enum rp_code rp_eval_upload(struct rp_executable *exe, struct rp_tensor *const *arguments,
                            struct rp_err *err);
enum rp_code rp_eval_run(struct rp_executable *exe, struct rp_err *err);
enum rp_code rp_eval_fetch(struct rp_executable *exe, struct rp_tensor **outputs,
                           struct rp_err *err);
const struct rp_op_time *rp_eval_times(struct rp_executable *exe, size_t *n);
enum rp_code rp_eval_spans(struct rp_executable *exe, unsigned runs, struct rp_op_spans *out,
                           struct rp_err *err);
void rp_eval_release(struct rp_executable *exe);
