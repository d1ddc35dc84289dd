/* SPDX-License-Identifier: Apache-2.0 */
/* Answers about a recording that is written here, and about one with many events. */
#include "unit.h"

#include "view/view.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct opened {
    char path[64];
    struct rp_ctx *ctx;
    struct rp_dataset *dataset;
    struct rp_view *view;
};

static void open_path(struct opened *o, const char *path)
{
    struct rp_err err = RP_ERR_INIT;
    const struct rp_dataset *runs[1];

    assert_ok(rp_ctx_new(NULL, &o->ctx, &err), &err);
    assert_ok(rp_open(o->ctx, &path, 1, NULL, &o->dataset, &err), &err);
    runs[0] = o->dataset;
    assert_ok(rp_view_open(runs, 1, NULL, &o->view, &err), &err);
}

static void open_text(struct opened *o, const char *text)
{
    FILE *file;
    int fd;

    snprintf(o->path, sizeof o->path, "/tmp/reprise-view-XXXXXX");
    fd = mkstemp(o->path);
    assert_true(fd >= 0);
    file = fdopen(fd, "w");
    fputs(text, file);
    fclose(file);
    open_path(o, o->path);
}

static void close_text(struct opened *o)
{
    rp_view_free(o->view);
    rp_dataset_free(o->dataset);
    rp_ctx_free(o->ctx);
    unlink(o->path);
}

/* The answer, which the caller frees. */
static char *ask(const struct opened *o, const char *path, const char *query)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_out *to = NULL;
    char *text;
    size_t n;

    assert_ok(rp_out_open_memory(&to, &err), &err);
    assert_ok(rp_view_answer(o->view, path, query, to, &err), &err);
    assert_ok(rp_out_flush(to, &err), &err);
    text = strdup(rp_out_borrow_memory(to, &n));
    rp_out_abandon(to);
    return text;
}

#define expect(o, path, query, part)       \
    do {                                   \
        char *text_ = ask(o, path, query); \
        assert_contains(text_, part);      \
        free(text_);                       \
    } while (0)

/* A step of 1 ms: an operator with a call inside, and the kernel that it launches. */
#define SMALL                                                                                                                                               \
    "{\"traceEvents\":["                                                                                                                                    \
    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#4\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":1000},"                                     \
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":1,\"ts\":10,\"dur\":50},"                                                     \
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":20,\"dur\":5,\"args\":{\"correlation\":9}},"           \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":7,\"ts\":40,\"dur\":200,\"args\":{\"correlation\":9,\"stream\":7,\"device\":0}}," \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"relu\",\"pid\":0,\"tid\":7,\"ts\":300,\"dur\":100,\"args\":{\"correlation\":10,\"stream\":7,\"device\":0}}]}"

static void events_are_listed_where_they_are_few(void **state)
{
    struct opened o;
    char *text;

    UNUSED_STATE(state);
    open_text(&o, SMALL);
    expect(&o, "meta", "", "\"steps\":[[4,\"ProfilerStep#4\",0,1000000]]");
    /* track 0 is the thread: the step, the operator, and the call inside it */
    text = ask(&o, "tile", "z=11&i=0&lanes=0.0,0.1");
    assert_contains(text, "{\"row\":0,\"events\":[0,1000000,0,");
    assert_contains(text, "{\"row\":1,\"events\":[10000,50000,1,");
    assert_contains(text, "{\"row\":2,\"events\":[20000,5000,2,");
    assert_contains(text, "[\"gemm\",1]");
    free(text);
    /* the second tile of 262144 ns begins with what the first gemm has left, and has relu */
    expect(&o, "tile", "z=9&i=1&lanes=0.1", "\"events\":[37856,100000,0,");
    expect(&o, "tile", "z=9&i=9&lanes=0.1", "\"0.1\":[]");
    close_text(&o);
}

static void an_event_shows_its_launch_and_its_parents(void **state)
{
    struct opened o;
    char *text;

    UNUSED_STATE(state);
    open_text(&o, SMALL);
    text = ask(&o, "event", "rank=0&event=3");
    assert_contains(text, "\"begin_ns\":40000,\"dur_ns\":200000,\"class\":1,\"name\":\"gemm\"");
    assert_contains(text, "[\"correlation\",9]");
    assert_contains(text, "\"linked\":[{\"event\":2,");
    free(text);
    text = ask(&o, "event", "rank=0&event=2");
    assert_contains(text, "\"parents\":[{\"event\":1,");
    free(text);
    close_text(&o);
}

/* Two arrows of one id, the first by way of a third operator; a launch, which is a link; an end
   without a start. */
#define ARROW(phase, tid, ts)                                              \
    ",{\"ph\":\"" phase "\",\"id\":3,\"pid\":1,\"tid\":" tid ",\"ts\":" ts \
    ",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"bp\":\"e\"}"
#define OPERATOR(name, tid, ts)                                                                   \
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":1,\"tid\":" tid ",\"ts\":" ts \
    ",\"dur\":50},"
#define ARROWS                                                                                                                                                             \
    "{\"traceEvents\":[" OPERATOR("forward", "1", "0") OPERATOR("between", "2", "100")                                                                                     \
        OPERATOR("backward", "2", "200") OPERATOR("again", "1", "300") OPERATOR(                                                                                           \
            "after", "2",                                                                                                                                                  \
            "400") "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":20,\"dur\":5,\"args\":{\"correlation\":9}},"           \
                   "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":7,\"ts\":40,\"dur\":200,\"args\":{\"correlation\":9,\"stream\":7,\"device\":0}}," \
                   "{\"ph\":\"s\",\"id\":9,\"pid\":1,\"tid\":1,\"ts\":20,\"cat\":\"ac2g\",\"name\":\"ac2g\"},"                                                             \
                   "{\"ph\":\"f\",\"id\":9,\"pid\":0,\"tid\":7,\"ts\":40,\"cat\":\"ac2g\",\"name\":\"ac2g\",\"bp\":\"e\"},"                                                \
                   "{\"ph\":\"f\",\"id\":4,\"pid\":1,\"tid\":1,\"ts\":300,\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"bp\":\"e\"}" ARROW(                                     \
                       "s", "1", "0") ARROW("t", "2", "100") ARROW("f", "2", "200")                                                                                        \
                       ARROW("s", "1", "300") ARROW("f", "2", "400") "]}"

#define KERNEL(name, stream, ts, dur)                                                  \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" name "\",\"pid\":0,\"tid\":" stream \
    ",\"ts\":" ts ",\"dur\":" dur ",\"args\":{\"stream\":" stream ",\"device\":0}}"

/* The number of the event of a name, as a query. */
static char *query_of(const struct opened *o, const char *name)
{
    const struct rp_trace *t = o->view->ranks.at[0].trace;
    static char query[40];

    for (rp_event e = 0; e < t->ev.n; e++)
        if (!strcmp(rp_trace_str(t, t->ev.name[e]), name))
            snprintf(query, sizeof query, "rank=0&event=%u", e);
    return query;
}

static void arrows_lead_to_other_events(void **state)
{
    struct opened o;
    char *text;

    UNUSED_STATE(state);
    open_text(&o, ARROWS);
    text = ask(&o, "event", query_of(&o, "forward"));
    assert_contains(text, "\"arrows\":[{\"out\":true,\"what\":\"fwdbwd\",");
    assert_contains(text, "\"name\":\"between\"}]");
    free(text);
    text = ask(&o, "event", query_of(&o, "between"));
    assert_contains(text, "\"arrows\":[{\"out\":false,");
    assert_contains(text, "\"name\":\"forward\"},{\"out\":true,");
    assert_contains(text, "\"name\":\"backward\"}]");
    free(text);
    text = ask(&o, "event", query_of(&o, "after"));
    assert_contains(text, "\"name\":\"again\"}]");
    free(text);
    expect(&o, "event", query_of(&o, "gemm"), "\"arrows\":[]");
    expect(&o, "event", query_of(&o, "gemm"), "\"linked_count\":2");
    close_text(&o);
}

/* Of three kernels on two streams the second runs beside all of the first and half of the third. */
static void device_work_at_the_same_time_is_listed(void **state)
{
    struct opened o;

    UNUSED_STATE(state);
    open_text(&o, "{\"traceEvents\":[" KERNEL("a", "7", "0", "100") "," KERNEL(
                      "all_reduce", "9", "0", "200") "," KERNEL("b", "7", "150", "100") "]}");
    expect(
        &o, "event", query_of(&o, "all_reduce"),
        "\"beside\":[{\"ns\":100000,\"count\":1,\"name\":\"a\"},{\"ns\":50000,\"count\":1,\"name\":\"b\"}]");
    expect(&o, "event", query_of(&o, "b"),
           "\"beside\":[{\"ns\":50000,\"count\":1,\"name\":\"all_reduce\"}]");
    close_text(&o);
}

static void sums_are_those_of_top(void **state)
{
    struct opened o;

    UNUSED_STATE(state);
    open_text(&o, SMALL);
    expect(&o, "sum", "from=0&to=1000000&rank=0", "\"whole_ns\": 300000");
    expect(&o, "sum", "from=40001&to=300001&run=0", "\"whole_ns\": 100000");
    expect(&o, "sum", "from=40000&to=300000&rank=0", "\"whole_ns\": 200000");
    expect(&o, "sum", "from=40000&to=300000&rank=0",
           "reprise top --by kernel --window 40000ns..300000ns /tmp/reprise-view-");
    expect(&o, "search", "q=%5Egem%2B", "{\"count\":1,\"total_ns\":200000,");
    close_text(&o);
}

static void damaged_requests_are_refused(void **state)
{
    static const char *const cases[][2] = {
        {"tile", ""},
        {"tile", "z=1&i=0"},
        {"tile", "z=51&i=0&lanes=0.0"},
        {"tile", "z=-1&i=0&lanes=0.0"},
        {"tile", "z=50&i=99999999999999999&lanes=0.0"},
        {"tile", "z=1&i=0&lanes=0"},
        {"tile", "z=1&i=0&lanes=0.99"},
        {"tile", "z=1&i=0&lanes=1.0"},
        {"tile", "z=1&i=0&lanes=0.0;0.1"},
        {"tile", "z=1&i=0&lanes=%"},
        {"tile", "z=1&i=0&lanes=0.%0"},
        {"event", "rank=0&event=99"},
        {"event", "rank=1&event=0"},
        {"event", "rank=0&event=1e3"},
        {"search", "q=("},
        {"search", "q=a{9}"},
        {"search", "q=(a)%5C1"},
        {"search", "q=a%00b"},
        {"sum", "from=5&to=1&rank=0"},
        {"sum", "from=0&to=9&rank=7"},
        {"sum", "from=0&to=9&run=1"},
    };
    struct rp_out *to = NULL;
    struct opened o;

    UNUSED_STATE(state);
    open_text(&o, SMALL);
    assert_code(rp_out_open_memory(&to, NULL), RP_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (rp_view_answer(o.view, cases[i][0], cases[i][1], to, NULL) != RP_USAGE)
            fail_msg("accepted: %s?%s", cases[i][0], cases[i][1]);
    assert_code(rp_view_answer(o.view, "../etc/passwd", "", to, NULL), RP_MISSING);
    rp_out_abandon(to);
    close_text(&o);
}

/* 100,000 kernels of 600 ns, one each microsecond; of each thousand the first takes 900 ns. */
#define MANY 100000

static char *many_events(void)
{
    char *text = malloc(MANY * 96 + 64);
    size_t n = (size_t)sprintf(text, "{\"traceEvents\":[");

    for (int i = 0; i < MANY; i++)
        n += (size_t)sprintf(
            text + n,
            "%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"pid\":0,\"tid\":7,"
            "\"ts\":%d,\"dur\":0.%d}",
            i ? "," : "", i % 1000 ? "k" : "long", i, i % 1000 ? 6 : 9);
    strcpy(text + n, "]}");
    return text;
}

static void many_events_become_pieces(void **state)
{
    char *events = many_events(), *text, *at;
    int64_t count = 0, longest = 0;
    struct opened o;

    UNUSED_STATE(state);
    open_text(&o, events);
    /* a piece of 2^18 ns: 262 kernels, busy for 60 % of it */
    text = ask(&o, "tile", "z=18&i=0&lanes=0.0");
    at = strstr(text, "\"pieces\":[");
    assert_non_null(at);
    for (at += 10; *at != ']';) {
        long value[5];

        for (int i = 0; i < 5; i++, at += *at == ',')
            value[i] = strtol(at, &at, 10);
        count += value[1];
        if (value[0] < 381) /* the last is not full */
            assert_in_range(value[2], 152, 154);
        longest += value[4] % 1000 == 0;
    }
    assert_int_equal(count, MANY);
    assert_int_equal(longest, 101); /* each of its piece, and one reaches into the next */
    free(text);
    close_text(&o);
    free(events);
}

/* Events that cross each other are on different rows, and no row is lost. */
static void what_overlaps_has_rows_of_its_own(void **state)
{
    struct opened o;
    char *text;

    UNUSED_STATE(state);
    open_text(
        &o,
        "{\"traceEvents\":["
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a\",\"pid\":0,\"tid\":7,\"ts\":0,\"dur\":10},"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"b\",\"pid\":0,\"tid\":7,\"ts\":5,\"dur\":10},"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"c\",\"pid\":0,\"tid\":7,\"ts\":10,\"dur\":10}]}");
    text = ask(&o, "tile", "z=8&i=0&lanes=0.0");
    assert_contains(text, "{\"row\":0,\"events\":[0,10000,0,0,10000,10000,1,2]}");
    assert_contains(text, "{\"row\":1,\"events\":[5000,10000,2,1]}");
    free(text);
    close_text(&o);
}

static void *ask_questions(void *user)
{
    static const char *const queries[][2] = {{"explain", "run=0&what=findings"},
                                             {"explain", "run=0&what=idle"},
                                             {"explain", "run=0&what=path"},
                                             {"sum", "from=0&to=1000000&rank=0"}};

    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++)
        free(ask(user, queries[i][0], queries[i][1]));
    return NULL;
}

/* As the server does it: questions on a thread of their own, the rest meanwhile. */
static void questions_are_asked_beside_tiles(void **state)
{
    struct opened o;
    pthread_t thread;

    UNUSED_STATE(state);
    open_text(&o, SMALL);
    assert_int_equal(pthread_create(&thread, NULL, ask_questions, &o), 0);
    for (int i = 0; i < 100; i++) {
        free(ask(&o, "tile", "z=11&i=0&lanes=0.0,0.1"));
        free(ask(&o, "event", "rank=0&event=3"));
        free(ask(&o, "search", "q=gemm"));
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect(&o, "explain", "run=0&what=idle", "\"gaps\":[");
    close_text(&o);
}

/* A trace without device work has the pauses of its host as gaps, with the causes of `report`. */
static void pauses_of_a_host_have_causes(void **state)
{
    struct opened o;

    UNUSED_STATE(state);
    open_text(
        &o,
        "{\"traceEvents\":["
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":10},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":30,\"dur\":10}]}");
    expect(&o, "explain", "run=0&what=idle", "\"gaps\":[[0,-1,10000,20000,");
    expect(&o, "explain", "run=0&what=idle", "\"no operator: not recorded\"");
    close_text(&o);
}

static void note_address(void *user, const char *address)
{
    snprintf(user, 96, "%s", address);
}

static void the_server_ends_when_it_is_told(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    char address[96] = "";
    struct rp_view_server server = {
        .struct_size = sizeof server, .ready = note_address, .user = address};
    struct opened o;
    int ends[2];

    UNUSED_STATE(state);
    open_text(&o, SMALL);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    server.stop_fd = ends[0];
    assert_ok(rp_view_serve(o.view, &server, &err), &err);
    assert_int_equal(strncmp(address, "http://127.0.0.1:", 17), 0);
    server.port = 65536;
    assert_code(rp_view_serve(o.view, &server, &err), RP_USAGE);
    close(ends[0]);
    close(ends[1]);
    close_text(&o);
}

/* By the log beside the profile: of a generated kernel, which has two lines, and of its launch. */
static void compiled_work_has_lines(void **state)
{
    struct opened o = {.path = ""};
    const struct rp_trace *t;
    size_t kernels = 0;

    (void)state;
    open_path(&o, RP_SOURCE_DIR "/examples/torch_compile/profile.json.gz");
    t = o.view->ranks.at[0].trace;
    for (rp_event e = 0; e < t->ev.n; e++) {
        char query[40];

        if (strcmp(rp_trace_str(t, t->ev.name[e]),
                   "triton_per_fused_add_native_layer_norm_view_1") != 0)
            continue;
        snprintf(query, sizeof query, "rank=0&event=%u", e);
        expect(&o, "event", query, "[\"source lines\",\"program.py:11, program.py:10\"]");
        kernels += t->ev.kind[e] == RP_KIND_KERNEL;
    }
    assert_true(kernels > 0);
    close_text(&o);
}

int test_tiles(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(events_are_listed_where_they_are_few),
                                       cmocka_unit_test(an_event_shows_its_launch_and_its_parents),
                                       cmocka_unit_test(arrows_lead_to_other_events),
                                       cmocka_unit_test(device_work_at_the_same_time_is_listed),
                                       cmocka_unit_test(sums_are_those_of_top),
                                       cmocka_unit_test(damaged_requests_are_refused),
                                       cmocka_unit_test(many_events_become_pieces),
                                       cmocka_unit_test(what_overlaps_has_rows_of_its_own),
                                       cmocka_unit_test(questions_are_asked_beside_tiles),
                                       cmocka_unit_test(pauses_of_a_host_have_causes),
                                       cmocka_unit_test(compiled_work_has_lines),
                                       cmocka_unit_test(the_server_ends_when_it_is_told)};

    return cmocka_run_group_tests_name("tiles", tests, NULL, NULL);
}
