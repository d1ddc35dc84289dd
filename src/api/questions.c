/* SPDX-License-Identifier: Apache-2.0 */
/* The table of questions (its lines are in questions.h, each row beside its answer), and rp_ask. */
#include "api/questions.h"

#include "dataset/question.h"

#include <string.h>

#define RP_DECLARE_ROW(name) extern const struct rp_question_row rp_ask_##name;
RP_QUESTION_ROWS(RP_DECLARE_ROW)
#undef RP_DECLARE_ROW

static const struct rp_question_row *const rows[] = {
#define ROW_ADDRESS(name) &rp_ask_##name,
    RP_QUESTION_ROWS(ROW_ADDRESS)
#undef ROW_ADDRESS
};

#define NROWS (sizeof rows / sizeof rows[0])

/* The public side of the rows: the same pointers, since the question is a row's first member. */
const struct rp_question *const *rp_question_list(size_t *n)
{
    _Static_assert(offsetof(struct rp_question_row, question) == 0, "question comes first");
    *n = NROWS;
    return (const struct rp_question *const *)(const void *)rows;
}

static const struct rp_question_row *find_row(const char *name)
{
    size_t i;

    for (i = 0; i < NROWS; i++) {
        if (!strcmp(rows[i]->question.name, name))
            return rows[i];
    }
    return NULL;
}

const struct rp_question *rp_question_find(const char *name)
{
    const struct rp_question_row *row = find_row(name);

    return row ? &row->question : NULL;
}

const struct rp_option *rp_question_option(const struct rp_question *question, size_t i)
{
    const struct rp_option *option = question->options;

    while (option->name && i--)
        option++;
    return option->name ? option : NULL;
}

enum rp_code rp_ask(struct rp_ctx *ctx, const struct rp_dataset *dataset, const char *question,
                    const struct rp_setting *settings, size_t nsettings, struct rp_result **out,
                    struct rp_err *err)
{
    const struct rp_question_row *row = find_row(question);
    struct rp_settings checked;
    enum rp_code code;

    *out = NULL;
    if (!row)
        return rp_err_set(err, RP_USAGE, "there is no question '%s'", question);
    if ((row->question.accepts & (RP_ACCEPTS_TRACES | RP_ACCEPTS_PROGRAMS)) &&
        !(row->question.accepts & RP_ACCEPTS_NONE_TOO) && !dataset)
        return rp_err_set(err, RP_USAGE, "question '%s' needs an input", question);
    RP_TRY(rp_settings_init(&checked, row->question.options, settings, nsettings, err));
    RP_TRY(rp_result_new(row->question.type, out, err));
    code = row->run ? row->run(ctx, dataset, &checked, *out, err)
                    : rp_ask_ranks(ctx, dataset, &checked, &row->ranks, *out, err);
    if (code != RP_OK) {
        rp_result_free(*out);
        *out = NULL;
    }
    return code;
}
