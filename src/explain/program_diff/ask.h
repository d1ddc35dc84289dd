/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_PROGRAM_DIFF_ASK_H
#define RP_EXPLAIN_PROGRAM_DIFF_ASK_H
/* `diff` of programs: two files, one dump of several graphs, or two folders. */
#include "dataset/load_program.h"
#include "explain/program_diff/diff.h"
#include "result/settings.h"

/*
 * Fills the result, whose root is a struct rp_diff, its type (see rp_diff_type) and its answer.
 * Settings "module" and "stage" choose of folders.
 */
enum rp_code rp_diff_programs(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                              const struct rp_settings *settings, struct rp_result *result,
                              struct rp_err *err);

#endif
