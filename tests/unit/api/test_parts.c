/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of every question about ranks can travel: the answer is the same to the byte where each
 * part is written, forgotten and read back before the parts are joined.
 */
#include "unit.h"

#include "dataset/dataset.h"
#include "dataset/question.h"

#include <reprise/reprise.h>
#include <stdio.h>
#include <stdlib.h>

#define EXAMPLES RP_SOURCE_DIR "/examples/"

/* The answer as JSON, in memory of the heap. */
static char *answer(struct rp_ctx *ctx, const char *const *paths, size_t npaths,
                    const char *question, const struct rp_setting *settings, size_t nsettings)
{
    struct rp_print_options options = {.struct_size = sizeof options, .format = RP_PRINT_JSON};
    struct rp_dataset *dataset = NULL;
    struct rp_result *result = NULL;
    struct rp_err err = RP_ERR_INIT;
    FILE *file = tmpfile();
    char *text;
    long n;

    assert_non_null(file);
    assert_ok(rp_open(ctx, paths, npaths, NULL, &dataset, &err), &err);
    assert_ok(rp_ask(ctx, dataset, question, settings, nsettings, &result, &err), &err);
    rp_dataset_free(dataset); /* what the result shows is its own */
    assert_ok(rp_result_print(result, &options, fileno(file), &err), &err);
    rp_result_free(result);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    n = ftell(file);
    rewind(file);
    text = calloc(1, (size_t)n + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)n, file), (size_t)n);
    fclose(file);
    return text;
}

static void compare(const char *question, const char *const *paths, size_t npaths,
                    const struct rp_setting *settings, size_t nsettings)
{
    struct rp_ctx *ctx = NULL;
    struct rp_err err = RP_ERR_INIT;
    char *direct, *resent;

    assert_ok(rp_ctx_new(NULL, &ctx, &err), &err);
    direct = answer(ctx, paths, npaths, question, settings, nsettings);
    ctx->resend_parts = true;
    resent = answer(ctx, paths, npaths, question, settings, nsettings);
    assert_true(strlen(direct) > 100);
    assert_string_equal(direct, resent);
    free(direct);
    free(resent);
    rp_ctx_free(ctx);
}

static bool is_about(const struct rp_setting *setting, const char *question)
{
    size_t len = strlen(question);

    return !strncmp(setting->name, question, len) && setting->name[len] == ' ';
}

/* Options that put more into a part, or other things: {"question option", value}. */
static void compare_with_options(const char *question, const char *const *paths, size_t npaths)
{
    static const struct rp_setting options[] = {
        {"report step", "4"},    {"top by", "op"},          {"top by", "module"},
        {"top by", "python"},    {"idle limit", "0"},       {"critpath step", "4"},
        {"stalls least", "9us"}, {"launches by", "stream"}, {"simulate collective", "ring"},
        {"diff step", "3"},      {"top by", "stream"},      {"simulate what-if", "cuda-graphs"},
    };

    compare(question, paths, npaths, NULL, 0);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (is_about(&options[i], question))
            compare(question, paths, npaths,
                    &(struct rp_setting){options[i].name + strlen(question) + 1, options[i].value},
                    1);
}

static void every_part_travels(void **state)
{
    static const char *const run[] = {EXAMPLES "ddp"}, *const gpt[] = {EXAMPLES "gpt_bf16.json.gz"};
    static const char *const timeline[] = {EXAMPLES "tf_timeline.json.gz"};
    static const char *const pair[] = {EXAMPLES "gpt_bf16.json.gz", EXAMPLES "gpt_foreach.json.gz"};
    const struct rp_question *const *list;
    size_t i, n, asked = 0;

    UNUSED_STATE(state);
    list = rp_question_list(&n);
    for (i = 0; i < n; i++) {
        const struct rp_question_row *row = (const struct rp_question_row *)(const void *)list[i];

        if (!row->ranks.rank)
            continue;
        assert_non_null(row->ranks.part);
        asked++;
        if (!strcmp(list[i]->name, "diff")) {
            compare_with_options("diff", pair, 2);
            continue;
        }
        if (list[i]->anytime) { /* what it finds in a time depends on the machine */
            static const struct rp_setting enough[] = {{"budget", "3600"}, {"moves", "graphs"}};

            compare(list[i]->name, run, 1, enough, 2);
            compare(list[i]->name, gpt, 1, enough, 2);
            continue;
        }
        compare(list[i]->name, run, 1, NULL, 0);
        compare_with_options(list[i]->name, gpt, 1);
        compare(list[i]->name, timeline, 1, NULL, 0);
    }
    assert_true(asked >= 10);
}

int test_parts(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_part_travels)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
