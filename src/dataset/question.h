/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A row of the table of questions (src/api/questions.h): its public description, and the functions
 * that answer it. A question about the ranks of a run gives `ranks` (ranks.h); any other gives
 * `run`.
 */
#include "dataset/ranks.h"
#include "result/result.h"
#include "result/settings.h"

#include <reprise/question.h>

struct rp_question_row {
    struct rp_question question;
    struct rp_rank_row ranks;
    /* Fills result->root, allocating in result->arena. dataset is NULL for RP_ACCEPTS_NOTHING. NULL
       if `ranks` alone answers the question. */
    enum rp_code (*run)(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                        const struct rp_settings *settings, struct rp_result *result,
                        struct rp_err *err);
    /* Writes the files that options name when the answer is complete; may be NULL. */
    enum rp_code (*write)(const struct rp_settings *settings, struct rp_result *result,
                          struct rp_err *err);
};
