/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks questions about the traces in memory. The functions of the question are the same as on the
 * command line, so the numbers of a page are those that a command prints.
 */
#include "dataset/query.h"
#include "dataset/question.h"
#include "view/view.h"

/* Which ranks of the view are asked, and about which time. */
struct asked_ranks {
    size_t first, n;
    int64_t from_ns, to_ns; /* from_ns > to_ns means all of it */
};

/* The parts are in the arena of the result, which also takes over their own arenas. */
static enum rp_code make_parts(const struct rp_view *view, const struct asked_ranks *asked,
                               const struct rp_rank_row *row, const struct rp_settings *settings,
                               struct rp_ranks *out, struct rp_result *result, struct rp_err *err)
{
    const struct rp_view_run *run = &view->runs[view->ranks.at[asked->first].run];
    struct rp_rank_query q = {.row = row, .settings = settings};
    enum rp_code code = rp_query_init(&q, run->dataset->ctx, run->dataset, err);

    *out =
        (struct rp_ranks){.parts = RP_ARENA_NEW(&result->arena, struct rp_rank_part, asked->n + 1),
                          .world_size = run->run->world_size,
                          .unrelated = run->unrelated};
    if (code == RP_OK && !out->parts)
        code = rp_err_nomem(err, "asking about ranks");
    while (code == RP_OK && out->n < asked->n) {
        const struct rp_view_rank *rank = &view->ranks.at[asked->first + out->n];
        struct rp_rank_part *part = &out->parts[out->n++];

        rp_arena_init(&part->arena);
        if (asked->from_ns <= asked->to_ns) {
            /* A window of a question counts from the first event of each rank. */
            int64_t begin = rank->trace->totals.span_begin_ns;

            q.has_window = true;
            q.from_ns = rp_ns_between(begin, rp_view_own_time(rank, asked->from_ns));
            q.to_ns = rp_ns_between(begin, rp_view_own_time(rank, asked->to_ns));
        }
        part->number = rank->number;
        part->digest = rank->digest;
        part->source = rank->loaded.index;
        part->in_source = rank->loaded.part;
        part->path = rp_arena_text(&part->arena, rank->path);
        code = rp_query_make(&q, &rank->loaded, part, NULL, err);
    }
    rp_query_release(&q);
    return code;
}

static void adopt_parts(struct rp_ranks *ranks, struct rp_result *result)
{
    for (size_t i = 0; i < ranks->n; i++)
        rp_arena_adopt(&result->arena, &ranks->parts[i].arena);
}

/* Frees the result after a failure. */
static enum rp_code keep_result(enum rp_code code, struct rp_result **out)
{
    if (code == RP_OK)
        return code;
    rp_result_free(*out);
    *out = NULL;
    return code;
}

enum rp_code rp_view_ask(const struct rp_view *view, size_t first, size_t n,
                         const struct rp_question_row *row, int64_t from_ns, int64_t to_ns,
                         const struct rp_setting *settings, size_t nsettings,
                         struct rp_result **out, struct rp_err *err)
{
    struct asked_ranks asked = {first, n, from_ns, to_ns};
    struct rp_settings checked;
    struct rp_ranks ranks;

    *out = NULL;
    RP_TRY(rp_settings_init(&checked, row->question.options, settings, nsettings, err));
    RP_TRY(rp_result_new(row->question.type, out, err));
    enum rp_code code = make_parts(view, &asked, &row->ranks, &checked, &ranks, *out, err);
    if (code == RP_OK)
        code = row->ranks.join(&ranks, &checked, *out, err);
    adopt_parts(&ranks, *out);
    return keep_result(code, out);
}

enum rp_code rp_view_ask_both(const struct rp_view *view, const struct rp_question_row *row,
                              const struct rp_type *type, const struct rp_setting *settings,
                              size_t nsettings, struct rp_result **out, struct rp_err *err)
{
    struct rp_settings checked;
    struct rp_ranks ranks[2] = {{0}, {0}};

    *out = NULL;
    RP_TRY(rp_settings_init(&checked, row->question.options, settings, nsettings, err));
    RP_TRY(rp_result_new(type, out, err));
    enum rp_code code = RP_OK;
    for (size_t r = 0; r < 2 && code == RP_OK; r++) {
        struct asked_ranks asked = {view->runs[r].first, view->runs[r].n, 1, 0};

        code = make_parts(view, &asked, &row->ranks, &checked, &ranks[r], *out, err);
    }
    if (code == RP_OK)
        code = row->ranks.join_two(ranks, &checked, *out, err);
    for (size_t r = 0; r < 2; r++)
        adopt_parts(&ranks[r], *out);
    return keep_result(code, out);
}
