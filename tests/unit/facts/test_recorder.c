/* SPDX-License-Identifier: Apache-2.0 */
/* Advice names options of the recorder that was used. */
#include "facts/work/recorder.h"
#include "trace/trace_fixtures.h"

static const char *option_of(bool ours, unsigned system, unsigned framework,
                             enum rp_recordable what)
{
    const struct rp_recorder r = {
        .framework = (uint8_t)framework, .system = (uint8_t)system, .ours = ours};

    return rp_recorder_option(&r, what);
}

static void options_are_those_of_the_recorder(void **state)
{
    UNUSED_STATE(state);
    assert_string_equal(option_of(false, 0, RP_FRAMEWORK_PYTORCH, RP_RECORDS_SHAPES),
                        "record_shapes=True");
    assert_string_equal(option_of(true, 0, RP_FRAMEWORK_PYTORCH, RP_RECORDS_SHAPES),
                        "'reprise record --set frameworks.shapes=on'");
    assert_string_equal(option_of(false, RP_SYSTEM_NSYS, RP_FRAMEWORK_PYTORCH, RP_RECORDS_SHAPES),
                        "'reprise record --set frameworks.shapes=on'");
    assert_null(option_of(false, RP_SYSTEM_NSYS, RP_FRAMEWORK_NATIVE, RP_RECORDS_SHAPES));
    assert_null(option_of(true, 0, RP_FRAMEWORK_PYTORCH, RP_RECORDS_FRAMES)); /* samples instead */
    for (int ours = 0; ours < 2; ours++) {
        for (unsigned what = 0; what < RP_RECORDABLES; what++)
            for (unsigned f = RP_FRAMEWORK_JAX; f <= RP_FRAMEWORK_TENSORFLOW; f++) {
                const char *text = option_of(ours, 0, f, (enum rp_recordable)what);

                assert_true(!text || (!strstr(text, "=True") && !strstr(text, "torch")));
            }
        assert_string_equal(option_of(ours, 0, RP_FRAMEWORK_JAX, RP_RECORDS_SHAPES),
                            "XLA_FLAGS=--xla_dump_to=DIR");
    }
}

static void the_recorder_of_a_trace(void **state)
{
    static const struct row jax[] = {{'X', "kernel", "loop_add_fusion", 0, 7, 0, 10, 0, 7}};
    struct rp_trace *t = trace_of(jax, 1);
    struct rp_err err = RP_ERR_INIT;
    struct rp_recorder r;

    UNUSED_STATE(state);
    assert_ok(rp_recorder_find(t, &r, &err), &err);
    assert_int_equal(r.framework, RP_FRAMEWORK_JAX);
    assert_false(r.ours);
    rp_trace_free(t);
}

int test_recorder(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(options_are_those_of_the_recorder),
                                       cmocka_unit_test(the_recorder_of_a_trace)};

    return cmocka_run_group_tests_name("recorder", tests, NULL, NULL);
}
