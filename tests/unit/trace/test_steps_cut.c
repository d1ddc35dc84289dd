/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a part of a trace, as the record in its metadata says, and of a run of a session. */
#include "trace/build/state.h"
#include "trace/copy.h"
#include "trace_fixtures.h"

/* A trace whose first event begins at 100, with the record. */
static struct rp_trace *cut_trace(const char *record)
{
    static const struct row rows[] = {{'X', "cpu_op", "first", 1, 1, 100, 10},
                                      {'X', "user_annotation", "two", 1, 1, 130, 20},
                                      {'X', "user_annotation", "one", 1, 1, 150, 10},
                                      {'X', "user_annotation", "two", 1, 2, 130, 20}};
    struct rp_builder *b = build_rows(rows, 4);

    assert_code(rp_builder_add_meta(b, str_of(b, RP_CUT_KEY), str_of(b, record), false, NULL),
                RP_OK);
    return finish_valid(b);
}

/* A step with all members: times count from the first event. */
static void members(void **state)
{
    struct rp_trace *t = cut_trace(
        "{\"more\": [1], \"steps\": [{\"begin_ns\": 30, \"end_ns\": 50, \"number\": 7, \"requests\": 3, "
        "\"tokens\": 9, \"source\": 1, \"phase\": 2, \"flags\": 4, \"name\": \"two\"}, "
        "{\"begin_ns\": 50, \"end_ns\": 60, \"requests\": -1, \"tokens\": 0, \"name\": \"none\"}]}");

    UNUSED_STATE(state);
    assert_int_equal(t->nsteps, 2);
    assert_int_equal(t->steps[0].begin_ns, 130);
    assert_int_equal(t->steps[0].end_ns, 150);
    assert_int_equal(t->steps[0].number, 7);
    assert_int_equal(t->steps[0].requests, 3);
    assert_int_equal(t->steps[0].tokens, 9);
    assert_int_equal(t->steps[0].source, 1);
    assert_int_equal(t->steps[0].phase, 2);
    assert_int_equal(t->steps[0].flags, RP_STEP_WARM_UP);
    assert_string_equal(rp_trace_str(t, t->steps[0].name), "two");
    assert_int_equal(t->steps[0].mark, event_n(t, 1)); /* the first with its name and begin */
    assert_int_equal(t->steps[1].begin_ns, 150);
    assert_int_equal(t->steps[1].requests, RP_NO_COUNT);
    assert_int_equal(t->steps[1].tokens, 0);
    assert_int_equal(t->steps[1].mark, RP_NONE);
    rp_trace_free(t);
}

/* At both sides of every edge of a member: a record that makes no sense is ignored. */
static void edges_of_members(void **state)
{
    static const struct {
        const char *member;
        int64_t value;
        bool valid;
    } rows[] = {
        {"source", -1, false},
        {"source", 0, true},
        {"source", RP_STEP_SOURCES - 1, true},
        {"source", RP_STEP_SOURCES, false},
        {"phase", -1, false},
        {"phase", 0, true},
        {"phase", RP_STEP_PHASES - 1, true},
        {"phase", RP_STEP_PHASES, false},
        {"flags", -1, false},
        {"flags", 0, true},
        {"flags", 2 * RP_STEP_CUT_OFF - 1, true},
        {"flags", 2 * RP_STEP_CUT_OFF, false},
        {"begin_ns", -INT64_MAX / 2, true},
        {"begin_ns", -INT64_MAX / 2 - 1, false},
        {"begin_ns", 0, true},
        {"begin_ns", 1, false}, /* behind its end */
        {"end_ns", INT64_MAX / 2, true},
        {"end_ns", INT64_MAX / 2 + 1, false},
        {"end_ns", 0, true},
        {"end_ns", -1, false},
        {"other", 0, false},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char record[100];
        struct rp_trace *t;

        snprintf(record, sizeof record, "{\"steps\": [{\"%s\": %lld}]}", rows[i].member,
                 (long long)rows[i].value);
        t = cut_trace(record);
        if ((t->nsteps == 1) != rows[i].valid)
            fail_msg("%s", record);
        rp_trace_free(t);
    }
}

static void other_records(void **state)
{
    static const char *const records[] = {"[]",
                                          "{\"steps\": 1}",
                                          "{\"steps\": [1]}",
                                          "{\"steps\": [{\"name\": 1}]}",
                                          "{\"steps\": [{\"number\": \"1\"}]}",
                                          "{\"steps\": [{}, {\"end_ns\": -1}]}",
                                          "{\"steps\": [{}]"};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        struct rp_trace *t = cut_trace(records[i]);

        if (t->nsteps)
            fail_msg("%s", records[i]);
        rp_trace_free(t);
    }
}

/* One run of a session is a step from its first work to its last; ranges of the host are no work.
 */
static void session(void **state)
{
    static const struct row rows[] = {{'X', "user_annotation", "before", 1, 1, 50, 10},
                                      {'X', "kernel", "a", 1, 7, 120, 30},
                                      {'X', "cpu_op", "b", 1, 1, 100, 10},
                                      {'X', "cpu_op", "c", 1, 1, 115, 10},
                                      {'X', "user_annotation", "after", 1, 1, 160, 10}};
    static const struct {
        const char *format, *framework;
        uint32_t nsteps;
    } kinds[] = {{"runmetadata", "", 1},
                 {"chrome-json", "tensorflow", 1},
                 {"chrome-json", "pytorch", 0},
                 {"xplane", "tensorflow", 0}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct rp_builder *b = build_rows(rows, 5);
        struct rp_trace *t;

        b->trace->format = str_of(b, kinds[i].format);
        b->trace->framework = str_of(b, kinds[i].framework);
        t = finish_valid(b);
        assert_int_equal(t->nsteps && t->steps[0].source == RP_STEP_SESSION, kinds[i].nsteps);
        if (kinds[i].nsteps) {
            assert_int_equal(t->steps[0].begin_ns, 100);
            assert_int_equal(t->steps[0].end_ns, 150);
        }
        rp_trace_free(t);
    }
}

int test_steps_cut(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members),
        cmocka_unit_test(edges_of_members),
        cmocka_unit_test(other_records),
        cmocka_unit_test(session),
    };

    return cmocka_run_group_tests_name("steps of a part", tests, NULL, NULL);
}
