/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TESTS_ASK_FIXTURE_H
#define RP_TESTS_ASK_FIXTURE_H
/*
 * A question about the ranks of a run, asked of traces in memory:
 *
 *     struct rp_result *result = ASK_TRACES(top, traces, 2, {"by", "op"}, {"limit", "1"});
 *     const struct rp_top_root *root = result->root;
 *     ...
 *     rp_result_free(result);
 */
#include "unit.h"

#include "dataset/bulk.h"
#include "dataset/question.h"
#include "result/part.h"

#define ASK_TRACES(name, traces, n, ...)                                                \
    ask_traces(&rp_ask_##name, (traces), (n), (const struct rp_setting[]){__VA_ARGS__}, \
               sizeof((const struct rp_setting[]){__VA_ARGS__}) / sizeof(struct rp_setting))

static inline struct rp_result *ask_traces(const struct rp_question_row *row,
                                           struct rp_trace *const *traces, size_t n,
                                           const struct rp_setting *given, size_t ngiven)
{
    struct rp_rank_part parts[8] = {{0}};
    struct rp_ranks ranks = {.n = n, .parts = parts, .world_size = (int32_t)n};
    static const struct rp_scope all = {0};
    struct rp_source source = {.name = "trace"};
    struct rp_err err = RP_ERR_INIT;
    struct rp_settings settings;
    struct rp_result *result;
    size_t i;

    assert_true(n <= 8);
    assert_ok(rp_settings_init(&settings, row->question.options, given, ngiven, &err), &err);
    assert_ok(rp_result_new(row->question.type, &result, &err), &err);
    for (i = 0; i < n; i++) {
        struct rp_loaded loaded = {.index = i, .source = &source, .trace = traces[i]};

        parts[i].number = (int32_t)i;
        parts[i].path = rp_arena_textf(&parts[i].arena, "rank%zu.json", i);
        parts[i].data = rp_arena_calloc(&parts[i].arena, 1, row->ranks.part->size, 16);
        assert_ok(row->ranks.rank(&loaded, &all, &settings, &parts[i], &err), &err);
        if (row->ranks.bulk && row->ranks.bulk->make)
            assert_ok(row->ranks.bulk->make(&loaded, &settings, &parts[i], &err), &err);
        assert_ok(rp_part_adopt(row->ranks.part, parts[i].data, &parts[i].arena, &err), &err);
    }
    assert_ok(row->ranks.join(&ranks, &settings, result, &err), &err);
    for (i = 0; i < n; i++)
        rp_arena_adopt(&result->arena, &parts[i].arena);
    return result;
}

#endif
