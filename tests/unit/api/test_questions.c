/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold for every question, also for those that are added later. */
#include "unit.h"

#include "type_check.h"

#include <ctype.h>
#include <reprise/reprise.h>

static void every_type_keeps_the_rules(void **state)
{
    const struct rp_question *const *list;
    char why[256];
    size_t i, n;

    UNUSED_STATE(state);
    list = rp_question_list(&n);
    assert_true(n >= 2);
    for (i = 0; i < n; i++) {
        if (!rp_type_check(list[i]->type, why, sizeof why))
            fail_msg("%s: %s", list[i]->name, why);
        assert_string_equal(list[i]->type->name, list[i]->name);
    }
}

static void check_option(const char *question, const struct rp_option *option)
{
    size_t n = option->summary ? strlen(option->summary) : 0;
    struct rp_err err = RP_ERR_INIT;

    assert_true(n > 2);
    if (isupper((unsigned char)option->summary[0]) && !isupper((unsigned char)option->summary[1]))
        fail_msg("%s --%s: the summary begins with a capital", question, option->name);
    if (option->summary[n - 1] == '.' && option->summary[n - 2] != '.') /* "..." is fine */
        fail_msg("%s --%s: the summary ends in a full stop", question, option->name);
    if (option->type != RP_OPT_FLAG)
        assert_non_null(option->value);
    if (option->fallback)
        assert_ok(rp_option_check(option, option->fallback, &err), &err);
}

static void every_option_is_described(void **state)
{
    const struct rp_question *const *list;
    const struct rp_option *option, *other;
    size_t i, n;

    UNUSED_STATE(state);
    list = rp_question_list(&n);
    for (i = 0; i < n; i++) {
        size_t k = 0;

        for (option = list[i]->options; option->name; option++, k++) {
            check_option(list[i]->name, option);
            assert_ptr_equal(rp_question_option(list[i], k), option);
            for (other = option + 1; other->name; other++)
                assert_string_not_equal(option->name, other->name);
        }
        assert_null(rp_question_option(list[i], k));
        assert_null(rp_question_option(list[i], SIZE_MAX));
    }
}

/* For completion: the names of what-ifs, and nothing for other options. */
static void words_of_options(void **state)
{
    const struct rp_question *simulate = rp_question_find("simulate");
    const struct rp_option *option;
    size_t i, n = 0;

    UNUSED_STATE(state);
    for (i = 0; (option = rp_question_option(simulate, i)) != NULL; i++)
        if (!strcmp(option->name, "what-if"))
            while (rp_question_word(simulate, option, n))
                n++;
        else
            assert_null(rp_question_word(simulate, option, 0));
    assert_true(n > 10);
}

static void names_are_unique(void **state)
{
    const struct rp_question *const *list;
    size_t i, n;

    UNUSED_STATE(state);
    list = rp_question_list(&n);
    for (i = 0; i < n; i++)
        assert_ptr_equal(rp_question_find(list[i]->name), list[i]);
    assert_null(rp_question_find("no such question"));
}

static void asking(void **state)
{
    struct rp_setting wrong = {"no-such-option", "1"};
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *result;
    const char *version;
    struct rp_ctx *ctx;
    bool zlib = false;

    UNUSED_STATE(state);
    assert_ok(rp_ctx_new(NULL, &ctx, &err), &err);
    assert_ok(rp_ask(ctx, NULL, "version", NULL, 0, &result, &err), &err);
    assert_string_equal(rp_result_type(result)->name, "version");
    assert_true(rp_result_text(result, "version", &version));
    assert_string_equal(version, rp_version());
    assert_true(rp_result_bool(result, "features.0.present", &zlib) && zlib);
    assert_int_equal(rp_result_answer(result), 0);
    rp_result_free(result);
    assert_code(rp_ask(ctx, NULL, "version", &wrong, 1, &result, &err), RP_USAGE);
    assert_contains(err.text, "no-such-option");
    assert_null(result);
    assert_code(rp_ask(ctx, NULL, "nothing", NULL, 0, &result, &err), RP_USAGE);
    assert_contains(err.text, "'nothing'");
    rp_ctx_free(ctx);
}

static void opening(void **state)
{
    const char *absent = "/no/such/file.json";
    struct rp_err err = RP_ERR_INIT;
    struct rp_dataset *dataset;
    struct rp_ctx *ctx;

    UNUSED_STATE(state);
    assert_ok(rp_ctx_new(NULL, &ctx, &err), &err);
    assert_code(rp_open(ctx, &absent, 1, NULL, &dataset, &err), RP_IO);
    assert_contains(err.text, absent);
    assert_null(dataset);
    assert_code(rp_open(ctx, NULL, 0, NULL, &dataset, &err), RP_USAGE);
    rp_dataset_free(NULL);
    rp_ctx_free(ctx);
}

int test_questions(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_keeps_the_rules),
        cmocka_unit_test(every_option_is_described),
        cmocka_unit_test(words_of_options),
        cmocka_unit_test(names_are_unique),
        cmocka_unit_test(asking),
        cmocka_unit_test(opening),
    };

    return cmocka_run_group_tests_name("questions", tests, NULL, NULL);
}
