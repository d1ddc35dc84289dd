/* SPDX-License-Identifier: Apache-2.0 */
/* `idle`: every gap in which a device does nothing, with its cause. */
#include "dataset/question.h"
#include "dataset/ranks.h"
#include "explain/idle/idle.h"

static size_t limit_of(const struct rp_settings *settings)
{
    int64_t limit = rp_settings_int(settings, "limit");

    return limit > 0 ? (size_t)limit : SIZE_MAX;
}

static enum rp_code rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                         const struct rp_settings *settings, struct rp_rank_part *part,
                         struct rp_err *err)
{
    return rp_idle_rank(loaded->trace, scope, limit_of(settings), &part->arena, part->data, err);
}

/* The parts die with their arenas: what the result shows is copied. */
static enum rp_code copy_texts(struct rp_idle_rank *r, struct rp_arena *arena, struct rp_err *err)
{
    struct rp_idle_cause *causes = RP_ARENA_NEW(arena, struct rp_idle_cause, r->ncauses + 1);
    struct rp_idle_gap *gaps = RP_ARENA_NEW(arena, struct rp_idle_gap, r->ngaps + 1);
    size_t i, k;

    if (!causes || !gaps)
        return rp_err_nomem(err, "explaining idle time");
    for (i = 0; i < r->ncauses; i++) {
        causes[i] = r->causes[i];
        if (causes[i].evidence &&
            !(causes[i].evidence = rp_arena_strdup(arena, causes[i].evidence)))
            return rp_err_nomem(err, "explaining idle time");
    }
    for (i = 0; i < r->ngaps; i++) {
        const char **texts[] = {&gaps[i].before, &gaps[i].after, &gaps[i].host, &gaps[i].thread,
                                &gaps[i].after_label};

        gaps[i] = r->gaps[i];
        for (k = 0; k < sizeof texts / sizeof texts[0]; k++)
            if (*texts[k] && !(*texts[k] = rp_arena_strdup(arena, *texts[k])))
                return rp_err_nomem(err, "explaining idle time");
    }
    r->causes = causes;
    r->gaps = gaps;
    return RP_OK;
}

static enum rp_code join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                         struct rp_result *result, struct rp_err *err)
{
    struct rp_idle_rank *rows = RP_ARENA_NEW(&result->arena, struct rp_idle_rank, ranks->n + 1);
    size_t i;

    if (!rows)
        return rp_err_nomem(err, "explaining idle time");
    for (i = 0; i < ranks->n; i++) {
        rows[i] = *(const struct rp_idle_rank *)ranks->parts[i].data;
        rows[i].rank = ranks->parts[i].number;
        rows[i].path = rp_arena_strdup(&result->arena, ranks->parts[i].path);
        if (!rows[i].path)
            return rp_err_nomem(err, "explaining idle time");
        RP_TRY(copy_texts(&rows[i], &result->arena, err));
    }
    return rp_idle_join(rows, ranks->n, limit_of(settings), &result->arena, result->root, err);
}

static const struct rp_rank_row row = {
    .part_bytes = sizeof(struct rp_idle_rank), .rank = rank, .join = join};

static enum rp_code run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                        const struct rp_settings *settings, struct rp_result *result,
                        struct rp_err *err)
{
    return rp_ask_ranks(ctx, dataset, settings, &row, result, err);
}

static const struct rp_option options[] = {
    {"limit", 'n', RP_OPT_COUNT, "N", "10", "show the N longest gaps; 0: all", 0},
    RP_RANK_OPTIONS,
    RP_OPTION_END};

const struct rp_question_row rp_ask_idle = {
    .question = {.name = "idle",
                 .group = "traces",
                 .summary = "why devices do nothing: every gap has a cause",
                 .details =
                     "A gap is a time in which no kernel, copy or memset of a rank runs on any "
                     "stream. Each has one cause, found by what was recorded; the causes add up to "
                     "the idle time exactly.",
                 .examples = "reprise idle trace.json.gz\twhy the device waits\n"
                             "reprise idle --limit 0 --csv run/\tevery cause of every rank\n",
                 .accepts = RP_ACCEPTS_TRACES,
                 .options = options,
                 .type = &rp_idle_type},
    .run = run};
