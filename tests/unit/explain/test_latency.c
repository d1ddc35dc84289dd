/* SPDX-License-Identifier: Apache-2.0 */
/* From the last input of an operator to its start. */
#include "explain/report/report.h"
#include "formats/chrome_fixture.h"

#define OP(name, ts, dur, inputs)                                                  \
    "{\"ph\":\"X\",\"cat\":\"Op\",\"name\":\"op\",\"pid\":1,\"tid\":0,\"ts\":" #ts \
    ",\"dur\":" #dur ",\"args\":{\"name\":\"" name "\",\"op\":\"op\"" inputs "}}"

static void latency_is_measured_from_the_last_input(void **state)
{
    struct rp_import import = load(
        "{\"traceEvents\":[" OP("a", 0, 10, "") "," OP("b", 0, 20, "") "," OP("c", 25, 5, ",\"input0\":\"a\",\"input1\":\"b:1\"") "," OP(
            "d", 40, 5,
            ",\"input0\":\"^c\"") "," OP("e", 41, 5,
                                         ",\"input0\":\"d\"") "," OP("f", 60, 5,
                                                                     ",\"input0\":\"unknown\"") "]}");
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_report_latency latency;

    UNUSED_STATE(state);
    assert_code(rp_report_measure_latency(import.trace, &arena, &latency, NULL), RP_OK);
    assert_int_equal(latency.ops, 2); /* e starts before d ends, f's input is not there */
    assert_int_equal(latency.p50_ns, 5000);
    assert_int_equal(latency.max_ns, 10000);
    assert_string_equal(latency.slowest, "d");
    rp_arena_release(&arena);
    rp_import_release(&import);
}

static void what_another_device_sent_counts_from_its_sender(void **state)
{
    struct rp_import import = load("{\"traceEvents\":[" OP("a", 0, 10, "") "," OP(
        "b", 13, 5, ",\"input0\":\"a/_39\"") "," OP("c", 25, 5, ",\"input0\":\"b_S7\"") "]}");
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_report_latency latency;

    UNUSED_STATE(state);
    assert_code(rp_report_measure_latency(import.trace, &arena, &latency, NULL), RP_OK);
    assert_int_equal(latency.ops, 2);
    assert_int_equal(latency.p50_ns, 3000);
    assert_int_equal(latency.max_ns, 7000);
    rp_arena_release(&arena);
    rp_import_release(&import);
}

static void without_inputs_nothing_is_known(void **state)
{
    struct rp_import import = load("{\"traceEvents\":[" OP("a", 0, 10, "") "]}");
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_report_latency latency;

    UNUSED_STATE(state);
    assert_code(rp_report_measure_latency(import.trace, &arena, &latency, NULL), RP_OK);
    assert_int_equal(latency.ops, 0);
    rp_arena_release(&arena);
    rp_import_release(&import);
}

int test_latency(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latency_is_measured_from_the_last_input),
        cmocka_unit_test(what_another_device_sent_counts_from_its_sender),
        cmocka_unit_test(without_inputs_nothing_is_known),
    };

    return cmocka_run_group_tests_name("latency", tests, NULL, NULL);
}
