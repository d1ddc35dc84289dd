/* SPDX-License-Identifier: Apache-2.0 */
/* What a log of torch.compile says of a variant that is not faster. */
#include "try/session.h"
#include "unit.h"

static void assert_says(const char *log, const char *want)
{
    struct rp_arena arena = RP_ARENA_INIT;
    char folder[256];
    const char *text;

    snprintf(folder, sizeof folder, RP_SOURCE_DIR "/tests/data/torch_trace/%s", log);
    text = rp_try_compiled_text(folder, &arena);
    if (want)
        assert_string_equal(text, want);
    else
        assert_null(text);
    rp_arena_release(&arena);
}

static void logs_say_why(void **state)
{
    (void)state;
    assert_says(
        "breaks",
        "3 graph breaks, the first at torch_trace_programs.py:63 (Failed to trace builtin operator)");
    assert_says("recompiles", "compiled again 6 times, at first because of x: size[1] 8 -> 12");
    assert_says(
        "failure",
        "1/0 failed: InductorError: LoweringException: RuntimeError: this lowering fails on purpose");
    assert_says(
        "limit",
        "compiled again 3 times, at first because of t: size[0] 2 -> 3; the limit of compiles is reached: <lambda> runs eagerly");
    assert_says("train", NULL);
    assert_says("nothing there", NULL);
}

int test_compiled(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(logs_say_why)};

    return cmocka_run_group_tests_name("compiled", tests, NULL, NULL);
}
