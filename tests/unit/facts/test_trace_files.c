/* SPDX-License-Identifier: Apache-2.0 */
/* What the name of a file says of its process, and which events are a process's last. */
#include "facts/host/outside.h"
#include "facts/host/trace_host.h"
#include "facts/times/trace_life.h"
#include "formats/chrome_fixture.h"

static void names_of_pytorch(void **state)
{
    static const struct {
        const char *path;
        bool good;
        const char *host;
        size_t worker; /* length, of the path */
    } rows[] = {{"d/node7_4711.1623143089861.pt.trace.json.gz", true, "node7", 12},
                {"a_b_12.34.pt.trace.json", true, "a_b", 6},
                {"worker.17.pt.trace.json", true, "", 6},
                {"worker12.17.pt.trace.json", true, "", 8},
                {"_12.17.pt.trace.json", true, "", 3},
                {"17.pt.trace.json", false, "", 0},
                {".17.pt.trace.json", false, "", 0},
                {"worker_17.pt.trace.json", false, "", 0},
                {"worker.x.pt.trace.json", false, "", 0},
                {"worker.17.json", false, "", 0}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rp_torch_file file;

        if (rp_torch_file_parse(rows[i].path, &file) != rows[i].good)
            fail_msg("'%s' is%s a name", rows[i].path, rows[i].good ? " not" : "");
        if (!rows[i].good)
            continue;
        assert_int_equal(file.host_len, strlen(rows[i].host));
        assert_memory_equal(file.host, rows[i].host, file.host_len);
        assert_int_equal(file.worker_len, rows[i].worker);
    }
}

#define EVENT(ph, ts, process, name)                                                   \
    "{\"ph\":\"" ph "\",\"ts\":" ts ",\"dur\":10,\"pid\":" process ",\"tid\":" process \
    ",\"cat\":\"cpu_op\",\"name\":\"" name "\"}"

/* A thread of the recorder, which still runs, and one that ended before the last event. */
#define OTHER_THREADS                                                                       \
    "{\"ph\":\"M\",\"pid\":3,\"tid\":9,\"name\":\"thread_name\",\"args\":{\"name\":"        \
    "\"reprise writer\"}},{\"ph\":\"X\",\"ts\":60,\"dur\":10,\"pid\":3,\"tid\":9,\"cat\":"  \
    "\"cpu_op\",\"name\":\"write\"},{\"ph\":\"X\",\"ts\":30,\"dur\":5,\"pid\":3,\"tid\":4," \
    "\"cat\":\"cpu_op\",\"name\":\"help\"},"

/* The third process has most events, and said that it began, but not that it ends. A mark is not
   work. */
static void the_last_event_of_the_main_process(void **state)
{
    struct rp_import in =
        load("{\"traceEvents\":[" OTHER_THREADS EVENT("X", "900", "1", "a") "," EVENT(
            "X", "5", "2", "b") "," EVENT("X", "800", "2", "b") "," EVENT("X", "6", "3",
                                                                          "c") "," EVENT("X", "20",
                                                                                         "3",
                                                                                         "c") "," //
             EVENT("X", "40", "3", "last") "," EVENT(
                 "i", "70", "3", "mark") "]"
                                         ",\"process.3.began\":\"1\",\"process.2.began\":\"1\"}");
    struct rp_trace_life life;

    UNUSED_STATE(state);
    rp_trace_life_find(in.trace, &life);
    assert_int_equal(life.process, 3);
    assert_true(life.cut);
    assert_string_equal(rp_trace_str(in.trace, in.trace->ev.name[life.last]), "last");
    assert_int_equal(life.last_ns, 35000);
    rp_trace_free(in.trace);
}

/* It is not cut where it said that it ends, or where only a part of it was wanted. */
static void a_life_that_ended(void **state)
{
    static const struct {
        const char *facts;
        bool cut;
    } rows[] = {{"\"process.3.began\":\"1\"", true},
                {"\"process.3.began\":\"1\",\"process.3.ended\":\"9\"", false},
                {"\"process.3.began\":\"1\",\"record.window\":\"2\"", false},
                {"\"process.4.began\":\"1\"", false}};
    char text[400];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rp_trace_life life;
        struct rp_import in;

        snprintf(text, sizeof text,
                 "{\"traceEvents\":[" EVENT("X", "5", "3", "a") "],\"steps.recorded_ns\":\"1200\","
                                                                "\"steps.unrecorded_ns\":1000,%s}",
                 rows[i].facts);
        in = load(text);
        rp_trace_life_find(in.trace, &life);
        assert_int_equal(life.process, 3);
        assert_int_equal(life.cut, rows[i].cut);
        assert_int_equal(life.last == RP_NONE, !rows[i].cut);
        assert_int_equal(life.recorded_ns, 1200);
        assert_int_equal(life.unrecorded_ns, 1000);
        rp_trace_free(in.trace);
    }
}

static void hosts_and_frameworks(void **state)
{
    static const struct {
        const char *facts, *path, *host;
    } rows[] = {{"\"hostname\":\"node1\"", "x/node7_4711.16.pt.trace.json", "node1"},
                {"\"host_name\":\"node2\"", NULL, "node2"},
                {"\"hostName\":\"n\"", NULL, "n"},
                {"\"hostname\":\"\"", "x/node7_3.16.pt.trace.json", "node7"},
                {"\"hostname\":17", "x/node7_3.16.pt.trace.json", "node7"},
                {"\"user\":\"a\"", "x/worker2_step_12.16.pt.trace.json", NULL},
                {"\"user\":\"node1\"", "x/worker.16.pt.trace.json", NULL},
                {"\"user\":\"node1\"", NULL, NULL}};
    struct rp_import in;
    struct rp_arena arena;
    uint64_t boot;
    const char *host;
    char text[400];

    UNUSED_STATE(state);
    rp_arena_init(&arena);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(text, sizeof text, "{\"traceEvents\":[" EVENT("X", "5", "3", "a") "],%s}",
                 rows[i].facts);
        in = load(text);
        assert_code(rp_trace_host(in.trace, rows[i].path, &arena, &host, NULL), RP_OK);
        if (rows[i].host)
            assert_string_equal(host ? host : "none", rows[i].host);
        else
            assert_null(host);
        assert_int_equal(rp_trace_boot(in.trace), 0);
        assert_null(rp_trace_frameworks(in.trace, &arena));
        rp_trace_free(in.trace);
    }
    in = load("{\"traceEvents\":[" EVENT(
        "X", "5", "3",
        "a") "],\"framework.pytorch\":\"2.11.0+cu130\","
             "\"frameworks\":\"9\",\"framework.lightning\":\"2.6.6\",\"boot_id\":\"ab-1\"}");
    assert_string_equal(rp_trace_frameworks(in.trace, &arena), "pytorch 2.11.0, lightning 2.6.6");
    boot = rp_trace_boot(in.trace);
    assert_int_not_equal(boot, 0);
    rp_trace_free(in.trace);
    in = load("{\"traceEvents\":[" EVENT("X", "5", "3", "a") "],\"boot_id\":\"ab-1\"}");
    assert_int_equal(rp_trace_boot(in.trace), boot);
    rp_trace_free(in.trace);
    in = load("{\"traceEvents\":[" EVENT("X", "5", "3", "a") "],\"boot_id\":\"ab-2\"}");
    assert_int_not_equal(rp_trace_boot(in.trace), boot);
    rp_trace_free(in.trace);
    rp_arena_release(&arena);
}

#define COUNTER(ts, name, value) \
    ",{\"ph\":\"C\",\"ts\":" ts ",\"pid\":3,\"name\":\"" name "\",\"args\":{\"value\":" value "}}"

/* Steps without detail have times of the device, which the recorder counts. */
static void steps_without_detail(void **state)
{
    struct rp_import in =
        load("{\"traceEvents\":[{\"ph\":\"X\",\"ts\":1,\"dur\":10,\"pid\":3,\"tid\":3,\"cat\":"
             "\"user_annotation\",\"name\":\"ProfilerStep#1\"}" COUNTER("5", "other", "9.5")
                 COUNTER("6", "step on the device (ms)", "2.5")
                     COUNTER("7", "step on the device (ms)", "1.5")
                         COUNTER("8", "step on the device (ms)", "0.5") "]}");
    struct rp_step *own = in.trace->steps;
    struct rp_step step = own[0];
    struct rp_outside out;
    struct rp_arena arena;

    UNUSED_STATE(state);
    rp_arena_init(&arena);
    assert_int_equal(in.trace->nsteps, 1);
    assert_code(rp_outside_measure(in.trace, &arena, &out, NULL), RP_OK);
    assert_int_equal(out.without_detail, 0);
    assert_int_equal(out.device_steps, 0);
    step.flags |= RP_STEP_NO_DETAIL;
    in.trace->steps = &step;
    assert_code(rp_outside_measure(in.trace, &arena, &out, NULL), RP_OK);
    assert_int_equal(out.without_detail, 1);
    assert_int_equal(out.device_steps, 3);
    assert_int_equal(out.device_ns, 1500000);
    in.trace->steps = own;
    rp_arena_release(&arena);
    rp_trace_free(in.trace);
}

/* Each framework once, without what follows a version's number. */
static void frameworks_of_a_trace(void **state)
{
    struct rp_import in =
        load("{\"framework.pytorch\":\"2.4.0+cu121\",\"framework.numpy\":\"1.26\",\"frameworks\":"
             "\"no\",\"traceEvents\":[" EVENT("X", "5", "2", "b") "]}");
    struct rp_import none = load("{\"traceEvents\":[" EVENT("X", "5", "2", "b") "]}");
    struct rp_arena arena = RP_ARENA_INIT;

    UNUSED_STATE(state);
    assert_string_equal(rp_trace_frameworks(in.trace, &arena), "pytorch 2.4.0, numpy 1.26");
    assert_null(rp_trace_frameworks(none.trace, &arena));
    rp_arena_release(&arena);
    rp_trace_free(in.trace);
    rp_trace_free(none.trace);
}

/* Each of the keys names the host, if its value is a text. */
static void keys_of_hosts(void **state)
{
    static const struct {
        const char *key, *value, *host;
    } rows[] = {{"hostname", "\"a\"", "a"}, {"host_name", "\"bc\"", "bc"},
                {"hostName", "\"d\"", "d"}, {"hostname", "\"\"", NULL},
                {"hostname", "7", NULL},    {"hosts", "\"e\"", NULL}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rp_arena arena = RP_ARENA_INIT;
        struct rp_import in;
        const char *host;
        char text[256];

        snprintf(text, sizeof text, "{\"%s\":%s,\"traceEvents\":[" EVENT("X", "5", "2", "b") "]}",
                 rows[i].key, rows[i].value);
        in = load(text);
        assert_code(rp_trace_host(in.trace, NULL, &arena, &host, NULL), RP_OK);
        assert_string_equal(host ? host : "", rows[i].host ? rows[i].host : "");
        rp_arena_release(&arena);
        rp_trace_free(in.trace);
    }
}

int test_trace_files(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(frameworks_of_a_trace),
                                       cmocka_unit_test(keys_of_hosts),
                                       cmocka_unit_test(names_of_pytorch),
                                       cmocka_unit_test(the_last_event_of_the_main_process),
                                       cmocka_unit_test(a_life_that_ended),
                                       cmocka_unit_test(hosts_and_frameworks),
                                       cmocka_unit_test(steps_without_detail)};

    return cmocka_run_group_tests_name("trace_files", tests, NULL, NULL);
}
