/* SPDX-License-Identifier: Apache-2.0 */
/* The table of questions (its lines are in questions.h, each row beside its answer), and rp_ask. */
#include "api/questions.h"

#include "dataset/question.h"
#include "dataset/selection.h"
#include "dataset/trust.h"
#include "sim/whatif/whatifs.h"
#include "team/team.h"
#include "view/view.h"

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

/* Returns the public side of the rows: the same pointers, since the question is a row's first
   member. */
const struct rp_question *const *rp_question_list(size_t *n)
{
    _Static_assert(offsetof(struct rp_question_row, question) == 0, "question comes first");
    *n = NROWS;
    return (const struct rp_question *const *)(const void *)rows;
}

static const struct rp_question_row *find_row(const char *name)
{
    for (size_t i = 0; i < NROWS; i++) {
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

const char *rp_question_word(const struct rp_question *question, const struct rp_option *option,
                             size_t i)
{
    size_t n = 0;

    if (strcmp(question->name, "simulate") != 0 || strcmp(option->name, "what-if") != 0)
        return NULL;
    while (n < i && rp_whatifs[n])
        n++;
    return rp_whatifs[n] ? rp_whatifs[n]->name : NULL;
}

static enum rp_code answer(const struct rp_question_row *row, struct rp_ctx *ctx,
                           const struct rp_dataset *dataset, const struct rp_settings *settings,
                           struct rp_result *result, struct rp_err *err)
{
    return row->run ? row->run(ctx, dataset, settings, result, err)
                    : rp_ask_ranks(ctx, dataset, settings, &row->ranks, result, err);
}

/* Answers with a log of what the answer rests on (dataset/trust.h). *again tells that files were
   skipped by their names, and that the names were wrong. */
static enum rp_code answer_trusted(const struct rp_question_row *row, struct rp_ctx *ctx,
                                   const struct rp_dataset *dataset,
                                   const struct rp_settings *settings, bool select, bool *again,
                                   struct rp_result *result, struct rp_err *err)
{
    struct rp_dataset asked = *dataset;
    struct rp_trust_log log;
    enum rp_code code = RP_OK;

    rp_trust_log_init(&log);
    asked.trust = &log;
    asked.question = row->question.name;
    asked.wanted = rp_settings_text(settings, "rank");
    if (!asked.wanted)
        asked.wanted = rp_settings_text(settings, "ranks");
    asked.step_name = rp_settings_text(settings, "step-name");
    if (select)
        code = rp_selection_make(&asked, asked.wanted, &result->arena, err);
    if (code == RP_OK)
        code = answer(row, ctx, &asked, settings, result, err);
    if (code == RP_OK && asked.step_name && log.traces.n && !log.steps_named)
        code = rp_err_set(err, RP_USAGE,
                          "no range or mark has a name that begins with '%s'; 'reprise top --by "
                          "annotation' lists names",
                          asked.step_name);
    *again = log.misjudged;
    if (code == RP_OK && log.traces.n)
        code = rp_trust_finish(
            &log, &asked, !log.ranked && !log.is_job && row->question.accepts == RP_ACCEPTS_TRACES,
            result, err);
    rp_trust_log_release(&log);
    return code;
}

/* The names of files tell which ranks they contain, so that only the wanted ones are read. If a
   name was wrong, the question is asked again, and reads all files. */
static enum rp_code ask_row(const struct rp_question_row *row, struct rp_ctx *ctx,
                            const struct rp_dataset *dataset, const struct rp_settings *settings,
                            struct rp_result **out, struct rp_err *err)
{
    bool select = rp_team_size(ctx->team) < 2, again; /* processes divide all files */
    enum rp_code code;

    do {
        again = false;
        rp_result_free(*out);
        *out = NULL;
        RP_TRY(rp_result_new(row->question.type, out, err));
        code = dataset && (row->question.accepts & RP_ACCEPTS_TRACES)
                   ? answer_trusted(row, ctx, dataset, settings, select, &again, *out, err)
                   : answer(row, ctx, dataset, settings, *out, err);
        again = again && select;
        if (code == RP_OK && !again && row->write) {
            /* Writes the files that options name. The page of a report embeds the timeline of one
               step, if the view can draw it; a report without one is complete. */
            struct rp_result *result = *out;
            if (row == &rp_ask_report && rp_settings_has(settings, "html"))
                (void)!rp_view_embed(dataset, result, NULL);
            code = row->write(settings, result, err);
        }
        select = false;
    } while (again);
    return code;
}

enum rp_code rp_ask(struct rp_ctx *ctx, const struct rp_dataset *dataset, const char *question,
                    const struct rp_setting *settings, size_t nsettings, struct rp_result **out,
                    struct rp_err *err)
{
    const struct rp_question_row *row = find_row(question);
    struct rp_settings checked;

    *out = NULL;
    if (!row)
        return rp_err_set(err, RP_USAGE, "there is no question '%s'", question);
    if ((row->question.accepts & (RP_ACCEPTS_TRACES | RP_ACCEPTS_PROGRAMS)) &&
        !(row->question.accepts & RP_ACCEPTS_NONE_TOO) && !dataset)
        return rp_err_set(err, RP_USAGE, "question '%s' needs an input", question);
    RP_TRY(rp_settings_init(&checked, row->question.options, settings, nsettings, err));
    if (rp_ctx_helps(ctx) && (!row->ranks.rank || row->ranks.memory))
        return rp_err_set(err, RP_CANCELLED, "the answer is made by process 0");
    enum rp_code code = ask_row(row, ctx, dataset, &checked, out, err);
    if (code != RP_OK) {
        rp_result_free(*out);
        *out = NULL;
    }
    return code;
}
