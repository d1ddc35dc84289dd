/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_DATASET_QUESTION_H
#define RP_DATASET_QUESTION_H
/*
 * A row of the table of questions: what the public sees of it, and how it is answered. Rows are
 * listed in questions.h; each stands beside its answer.
 */
#include "dataset/ctx.h"
#include "result/result.h"
#include "result/settings.h"

#include <reprise/question.h>

struct rp_question_row {
    struct rp_question question;
    /* Fills result->root, allocating in result->arena. dataset is NULL for RP_ACCEPTS_NOTHING. */
    enum rp_code (*run)(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                        const struct rp_settings *settings, struct rp_result *result,
                        struct rp_err *err);
};

#endif
