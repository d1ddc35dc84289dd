/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writers: what is read, written and read again is the same trace; what is written is JSON, CSV or
 * an SQLite database that others can read, whatever the strings hold.
 */
#include "formats/formats.h"
#include "formats/write/writers.h"
#include "io/io_fixtures.h"
#include "io/json_strict.h"
#include "rp_config.h"
#include "trace/build/build.h"
#include "trace_equal.h"

#if RP_HAVE_SQLITE
#include <sqlite3.h>
#endif

static void read_file(const char *path, struct rp_import *import)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_input *in;

    assert_ok(rp_input_open(path, NULL, &in, &err), &err);
    assert_ok(rp_format_read(in, NULL, import, &err), &err);
    assert_non_null(import->trace);
}

static void read_text(const char *text, size_t n, struct rp_import *import)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_input *in;

    assert_ok(rp_input_open_memory("in.json", text, n, NULL, &in, &err), &err);
    assert_ok(rp_format_read(in, NULL, import, &err), &err);
    assert_non_null(import->trace);
}

static void write_file(const struct rp_trace *trace, const char *path)
{
    const struct rp_writer *writer;
    struct rp_err err = RP_ERR_INIT;

    assert_ok(rp_writer_for(NULL, path, &writer, &err), &err);
    assert_ok(writer->write(trace, path, NULL, &err), &err);
}

/* Reads the text, writes it as `name`, reads that again: the same. */
static void assert_round_trip(const char *text, const char *name)
{
    struct rp_import before = RP_IMPORT_INIT, after = RP_IMPORT_INIT;
    struct trace_diff diff;
    char folder[128], path[192];

    folder_new(folder, sizeof folder);
    file_put(path, sizeof path, folder, name, NULL, 0);
    read_text(text, strlen(text), &before);
    write_file(before.trace, path);
    read_file(path, &after);
    if (*trace_difference(&diff, before.trace, after.trace)) {
        struct bytes written = file_get(path);

        fail_msg("%s\nof\n%s\nwritten\n%.*s", diff.text, text, (int)written.n,
                 (const char *)written.at);
    }
    rp_import_release(&before);
    rp_import_release(&after);
    folder_remove(folder);
}

static void choices(void **state)
{
    static const struct {
        const char *name, *path, *want;
    } cases[] = {
        {NULL, "a/b.rpt", "rpt"},     {NULL, "x.json", "json"},
        {NULL, "x.json.gz", "json"},  {NULL, "x.csv", "csv"},
        {NULL, "x.db", "sqlite"},     {NULL, "x.sqlite", "sqlite"},
        {"csv", "x.json", "csv"},     {"json", "-", "json"},
        {"rpt", "-", "rpt"},          {NULL, "x", NULL},
        {NULL, ".json", NULL},        {NULL, "-", NULL},
        {"nonsense", "x.json", NULL}, {"sqlite", "-", NULL},
    };
    const struct rp_writer *writer;
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        enum rp_code code = rp_writer_for(cases[i].name, cases[i].path, &writer, &err);

        if (cases[i].want) {
            assert_ok(code, &err);
            assert_string_equal(writer->name, cases[i].want);
        } else {
            assert_code(code, RP_USAGE);
            assert_null(writer);
        }
    }
    rp_writer_for(NULL, "x.txt", &writer, &err);
    assert_contains(err.text, "'x.txt'");
    assert_contains(err.text, "rpt (.rpt), ");
    assert_contains(err.text, ", json (.json, .json.gz), ");
}

#define EVERYTHING                                                                                  \
    "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA H100\","          \
    " \"totalGlobalMem\": 85899345920, \"numSms\": 132}], \"distributedInfo\":"                     \
    " {\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 8}, \"with\\tescape\": \"\\u00e9\","     \
    " \"displayTimeUnit\": \"ms\", \"baseTimeNanoseconds\": 1727700000000000000,\n"                 \
    "\"traceEvents\": [\n"                                                                          \
    "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":12,\"args\":{\"name\":\"python\"}},\n"         \
    "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":12,\"tid\":0,\"ts\":5.5,"                \
    "\"args\":{\"sort_index\":7}},\n"                                                               \
    "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":\"stream 7\","                        \
    "\"args\":{\"name\":\"st\\\"ream\"}},\n"                                                        \
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":12,\"tid\":34,\"ts\":100,"      \
    "\"dur\":50.125,\"args\":{\"External id\":5,\"Input Dims\":[[1, 2], []],\"flops\":1e9,"         \
    "\"ratio\":0.30000000000000004,\"big\":123456789012345678901234567890,\"t\":true,"              \
    "\"s\":\"a\\\\b\\u0001\",\"n\":null,\"neg\":-7,\"one\":1.0,\"mz\":-0}},\n"                      \
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":12,\"tid\":34,"   \
    "\"ts\":110.5,\"dur\":5,\"args\":{\"correlation\":99}},\n"                                      \
    "{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":12,\"tid\":34,\"ts\":110.5,"          \
    "\"id\":99},\n"                                                                                 \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm<\\u00e4>\",\"pid\":0,\"tid\":\"stream 7\","   \
    "\"ts\":130.001,\"dur\":10,\"args\":{\"correlation\":99,\"stream\":7,\"device\":0}},\n"         \
    "{\"ph\":\"f\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":0,\"tid\":\"stream 7\","              \
    "\"ts\":130.001,\"id\":99,\"bp\":\"e\"},\n"                                                     \
    "{\"ph\":\"f\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":12,\"tid\":99,\"ts\":1,"              \
    "\"id\":\"0x1f\",\"bp\":\"e\",\"args\":{\"weight\":7,\"type\":\"critical\"}},\n"                \
    "{\"ph\":\"t\",\"name\":\"step\",\"pid\":12,\"tid\":34,\"ts\":2},\n"                            \
    "{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":12,\"tid\":34,\"ts\":120,\"s\":\"t\","             \
    "\"args\":{\"Bytes\":-1024}},\n"                                                                \
    "{\"ph\":\"C\",\"name\":\"mem\",\"pid\":\"GPU 0 Counters\",\"ts\":1,\"args\":{\"\":4}},\n"      \
    "{\"ph\":\"X\",\"name\":\"no dur\",\"pid\":12,\"tid\":34,\"ts\":400},\n"                        \
    "{\"ph\":\"X\",\"cat\":\"\",\"name\":\"\",\"pid\":\"\",\"tid\":\"\",\"ts\":-3.5,"               \
    "\"dur\":0},\n"                                                                                 \
    "{\"ph\":\"X\",\"name\":\"backwards\",\"pid\":12,\"tid\":35,\"ts\":4,\"dur\":-0.001},\n"        \
    "{\"ph\":\"N\",\"cat\":\"Tensor\",\"name\":\"obj\",\"pid\":12,\"tid\":34,\"ts\":1,\"id\":4},\n" \
    "{\"ph\":\"n\",\"cat\":\"a\",\"name\":\"chain\",\"pid\":12,\"tid\":34,\"ts\":3,"                \
    "\"id\":\"0xbeef\"}\n"                                                                          \
    "], \"INFO\": [\"a\", \"b\"], \"traceName\": \"x.json\"}"

static void chrome_round_trip(void **state)
{
    UNUSED_STATE(state);
    assert_round_trip(EVERYTHING, "x.json");
    assert_round_trip("{\"traceEvents\": []}", "x.json");
    assert_round_trip("[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":2,\"ts\":1,\"dur\":2}]",
                      "x.json");
}

static void assert_scope(const struct rp_trace *t, rp_event i, uint8_t want)
{
    const uint8_t all = RP_ORIGIN_SCOPE_GLOBAL | RP_ORIGIN_SCOPE_PROCESS | RP_ORIGIN_SCOPE_THREAD;

    assert_int_equal(t->origins[t->ev.origin[i]].flags & all, want);
}

static void scope_of_instants(void **state)
{
    static const char text[] =
        "[{\"ph\":\"i\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"s\":\"g\"},"
        "{\"ph\":\"i\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":2,\"s\":\"p\"},"
        "{\"ph\":\"i\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":3,\"s\":\"t\"},"
        "{\"ph\":\"i\",\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":4,\"s\":\"g\"},"
        "{\"ph\":\"i\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":5,\"s\":\"wide\"},"
        "{\"ph\":\"i\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":6}]";
    static const uint8_t want[] = {RP_ORIGIN_SCOPE_GLOBAL,
                                   RP_ORIGIN_SCOPE_PROCESS,
                                   RP_ORIGIN_SCOPE_THREAD,
                                   RP_ORIGIN_SCOPE_GLOBAL,
                                   0,
                                   0};
    struct rp_import import = RP_IMPORT_INIT;

    UNUSED_STATE(state);
    read_text(text, sizeof text - 1, &import);
    for (rp_event i = 0; i < 6; i++)
        assert_scope(import.trace, i, want[i]);
    rp_import_release(&import);
    assert_round_trip(text, "x.json");
    assert_round_trip(text, "x.rpt");
}

static void chrome_compressed(void **state)
{
    UNUSED_STATE(state);
    assert_round_trip(EVERYTHING, "x.json.gz");
}

static void native_round_trip(void **state)
{
    UNUSED_STATE(state);
    assert_round_trip(EVERYTHING, "x.rpt");
}

/* The events of the text come out in their order; `names` are those of the events. */
static void assert_written_order(const char *text, const char *const *names)
{
    struct rp_import import = RP_IMPORT_INIT;
    char folder[128], path[192], quoted[64];
    struct bytes written;
    const char *at;

    folder_new(folder, sizeof folder);
    file_put(path, sizeof path, folder, "x.json", NULL, 0);
    read_text(text, strlen(text), &import);
    write_file(import.trace, path);
    written = file_get(path);
    bytes_append(&written, "", 1);
    at = (const char *)written.at;
    for (; *names; names++) {
        snprintf(quoted, sizeof quoted, "\"name\":\"%s\"", *names);
        at = strstr(at, quoted);
        if (!at)
            fail_msg("'%s' is not where it was in\n%s", *names, (const char *)written.at);
    }
    free(written.at);
    rp_import_release(&import);
    folder_remove(folder);
}

static void chrome_order(void **state)
{
    static const char *const names[] = {"late", "early", "other track", "first", NULL};

    UNUSED_STATE(state);
    assert_written_order("[{\"ph\":\"X\",\"name\":\"late\",\"pid\":1,\"tid\":1,\"ts\":9,\"dur\":1},"
                         "{\"ph\":\"i\",\"name\":\"early\",\"pid\":1,\"tid\":1,\"ts\":1},"
                         "{\"ph\":\"E\",\"name\":\"other track\",\"pid\":0,\"tid\":0,\"ts\":5},"
                         "{\"ph\":\"M\",\"name\":\"first\",\"pid\":1,\"tid\":1}]",
                         names);
}

/* {"ph":"B","name":"a","ts":0} ... from "Ba0 Bb5 Eb10 E-10": phase, name ('-': none), time. */
static void pairs_text(char *text, size_t cap, const char *events, const char *more)
{
    size_t n = (size_t)snprintf(text, cap, "[");

    for (const char *at = events; *at; at += strcspn(at, " "), at += *at == ' ') {
        n += (size_t)snprintf(text + n, cap - n, "%s{\"ph\":\"%c\",\"pid\":1,\"tid\":1,\"ts\":%d%s",
                              n > 1 ? "," : "", at[0], atoi(at + 2), more);
        if (at[1] != '-')
            n += (size_t)snprintf(text + n, cap - n, ",\"name\":\"%c\"", at[1]);
        n += (size_t)snprintf(text + n, cap - n, "}");
    }
    snprintf(text + n, cap - n, "]");
}

static void chrome_pairs(void **state)
{
    static const char *const cases[] = {
        "Ba0 Ea10",
        "Ba0 Bb5 Eb10 Ea10",      /* end together */
        "Ba0 Bb0 Eb10 Ea10",      /* the same span twice */
        "Ba0 Bb0 E-4 E-10",       /* ends without names */
        "Ba0 Ea10 Bb10 Eb20",     /* back to back */
        "Ba0 Bb10 Eb10 Ea10",     /* no length, at the end of another */
        "Ba10 Ea10 Bb10 Eb10",    /* no length, the same time */
        "Ba0 Bb5 Ea10",           /* b never ends */
        "Ba0 Bb5 Ea10 Eb12",      /* and then its end comes alone */
        "E-3 Ba3 Ea5",            /* an end alone where another begins */
        "Ex3 Bx3 Ex5 Ex5",        /* the same with names */
        "Ba0 Ba5 Ba10 Ea10 Ea10", /* one name, an open one */
        "Ba0 Bb1 Bc2 Ec3 Eb3 Ea3 Ba3 Bb3 Eb4 Ea4 Bz9",
    };
    char text[4096];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pairs_text(text, sizeof text, cases[i], ",\"args\":{\"k\":1}");
        assert_round_trip(text, "x.json");
    }
}

static void chrome_async_pairs(void **state)
{
    static const char *const cases[] = {"ba0 ea10", "ba0 bb5 eb10 ea10", "ba0 ea10 ba10 ea12",
                                        "ea3 ba3 na4 ea5", "ba0 bb5 ea10"};
    static const char *const ids[] = {",\"id\":7,\"cat\":\"c\"", ",\"id\":\"0x7f\",\"cat\":\"c\""};
    char text[4096];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t k = 0; k < 2; k++) {
            pairs_text(text, sizeof text, cases[i], ids[k]);
            assert_round_trip(text, "x.json");
        }
}

/* Each line of the events is one object in the strict sense. */
static void assert_lines_are_json(const char *path)
{
    struct bytes b = file_get(path);
    char *text, *line, *next;

    bytes_append(&b, "", 1);
    text = strstr((char *)b.at, "\"traceEvents\":[\n");
    assert_non_null(text);
    for (line = strchr(text, '\n') + 1; *line != ']'; line = next) {
        size_t n = strcspn(line, "\n");

        next = line + n + 1;
        n -= line[n - 1] == ',';
        if (rp_json_raw_check(line, n) != RP_RAW_CLEAN)
            fail_msg("not JSON: %.*s", (int)n, line);
    }
    free(b.at);
}

static void chrome_is_always_json(void **state)
{
    static const char text[] =
        "{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"tab\there \xff\xfe\",\"pid\":\"p\x01\","
        "\"tid\":1,\"ts\":1,\"dur\":1,\"cat\":\"\\\"\",\"args\":{\"k\x02\\q\":\"\x1f\",\"nan\":NaN,"
        "\"inf\":[1,\n\n -Infinity],\"raw\":[\"\x03\xff\",\"\\q\"]}}],\"m\xff\":[NaN]}";
    struct rp_import import = RP_IMPORT_INIT, after = RP_IMPORT_INIT;
    char folder[128], path[192];

    UNUSED_STATE(state);
    folder_new(folder, sizeof folder);
    file_put(path, sizeof path, folder, "x.json", NULL, 0);
    read_text(text, sizeof text - 1, &import);
    write_file(import.trace, path);
    assert_lines_are_json(path);
    read_file(path, &after);
    assert_int_equal(after.trace->ev.n, 1);
    assert_string_equal(rp_trace_str(after.trace, after.trace->ev.name[0]),
                        "tab\there \xef\xbf\xbd\xef\xbf\xbd");
    assert_int_equal(after.trace->health.control_bytes, 0);
    assert_int_equal(after.trace->health.bad_utf8, 0);
    rp_import_release(&import);
    rp_import_release(&after);
    folder_remove(folder);
}

/* ------------------------------------------------------------------ traces of other formats */

static rp_str intern(struct rp_builder *b, const char *text)
{
    struct rp_err err = RP_ERR_INIT;
    rp_str s;

    assert_ok(rp_builder_intern(b, text, strlen(text), &s, &err), &err);
    return s;
}

static void add_span(struct rp_builder *b, rp_track track, const char *name, const char *category,
                     int64_t ts_ns, int64_t dur_ns)
{
    struct rp_origin origin = {
        .category = intern(b, category), .phase = 'X', .kind = RP_KIND_CPU_OP, .has_category = 1};
    struct rp_arg arg = {.key = intern(b, "k,\"1\""), .type = RP_ARG_F64, .v.f = 0.5};
    struct rp_raw raw = {.ts_ns = ts_ns, .dur_ns = dur_ns, .name = intern(b, name), .track = track};
    struct rp_err err = RP_ERR_INIT;

    raw.args = &arg;
    raw.nargs = 1;
    assert_ok(rp_builder_origin(b, &origin, &raw.origin, &err), &err);
    assert_ok(rp_builder_shape(b, &arg, 1, &raw.shape, &err), &err);
    assert_ok(rp_builder_add(b, &raw, &err), &err);
}

/* Two spans, one in the other, as a reader of another format would make them. */
static struct rp_trace *foreign_trace(void)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_limits limits = RP_LIMITS_DEFAULT;
    struct rp_trace *trace, *t;
    struct rp_builder *b;
    uint32_t process;
    rp_track track;

    assert_ok(rp_builder_new(&limits, &b, &err), &err);
    t = rp_builder_borrow_trace(b);
    t->format = intern(b, "other");
    t->rank = 2;
    t->world_size = 4;
    t->has_base = 1;
    t->base_ns = 1000;
    assert_ok(rp_builder_add_meta(b, intern(b, "host"), intern(b, "a.b"), false, &err), &err);
    assert_ok(rp_builder_process(b, 5, 0, &process, &err), &err);
    assert_ok(rp_builder_track(b, process, 6, 0, true, &track, &err), &err);
    add_span(b, track, "outer, \"x\"", "c", 1500, 1000);
    add_span(b, track, "inner", "c", 1600, 10);
    assert_ok(rp_builder_finish(b, &trace, &err), &err);
    return trace;
}

static void written_text(const struct rp_trace *trace, const char *name, char *text, size_t cap)
{
    char folder[128], path[192];
    struct bytes b;

    folder_new(folder, sizeof folder);
    file_put(path, sizeof path, folder, name, NULL, 0);
    write_file(trace, path);
    b = file_get(path);
    snprintf(text, cap, "%.*s", (int)b.n, (const char *)b.at);
    free(b.at);
    folder_remove(folder);
}

static void foreign_to_chrome(void **state)
{
    struct rp_trace *trace = foreign_trace();
    char text[2048];

    UNUSED_STATE(state);
    written_text(trace, "x.json", text, sizeof text);
    assert_string_equal(
        text, "{\n\"host\":\"a.b\",\n\"baseTimeNanoseconds\":1000,\n"
              "\"distributedInfo\":{\"rank\":2,\"world_size\":4},\n\"traceEvents\":[\n"
              "{\"ph\":\"X\",\"cat\":\"c\",\"name\":\"outer, \\\"x\\\"\",\"pid\":5,\"tid\":6,"
              "\"ts\":1.5,\"dur\":1,\"args\":{\"k,\\\"1\\\"\":0.5}},\n"
              "{\"ph\":\"X\",\"cat\":\"c\",\"name\":\"inner\",\"pid\":5,\"tid\":6,"
              "\"ts\":1.6,\"dur\":0.01,\"args\":{\"k,\\\"1\\\"\":0.5}}\n]\n}\n");
    rp_trace_free(trace);
}

static void csv_rows(void **state)
{
    struct rp_trace *trace = foreign_trace();
    char text[2048];

    UNUSED_STATE(state);
    written_text(trace, "x.csv", text, sizeof text);
    assert_string_equal(
        text, "id,rank,process,thread,track_kind,name,category,phase,kind,ts_ns,dur_ns,parent,"
              "correlation,args\n"
              "0,2,5,6,thread,\"outer, \"\"x\"\"\",c,X,cpu_op,1500,1000,,,"
              "\"{\"\"k,\\\"\"1\\\"\"\"\":0.5}\"\n"
              "1,2,5,6,thread,inner,c,X,cpu_op,1600,10,0,,\"{\"\"k,\\\"\"1\\\"\"\"\":0.5}\"\n");
    rp_trace_free(trace);
}

#if RP_HAVE_SQLITE
/* The first column of the first row, as text. */
static void assert_query(sqlite3 *db, const char *sql, const char *want)
{
    sqlite3_stmt *s;

    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(s, 0), want);
    sqlite3_finalize(s);
}

static void sqlite_tables(void **state)
{
    struct rp_import import = RP_IMPORT_INIT;
    char folder[128], path[192];
    sqlite3 *db;

    UNUSED_STATE(state);
    folder_new(folder, sizeof folder);
    file_put(path, sizeof path, folder, "x.db", "old", 3);
    read_text(EVERYTHING, strlen(EVERYTHING), &import);
    write_file(import.trace, path);
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_query(db, "PRAGMA integrity_check", "ok");
    assert_query(db, "SELECT count(*) FROM event WHERE kind = 'kernel'", "1");
    assert_query(db, "SELECT dur_ns FROM event WHERE name = 'aten::mm'", "50125");
    assert_query(db,
                 "SELECT p.name FROM event e JOIN event p ON p.id = e.parent"
                 " WHERE e.kind = 'runtime'",
                 "aten::mm");
    assert_query(db,
                 "SELECT value FROM arg JOIN event ON event.id = arg.event"
                 " WHERE event.kind = 'kernel' AND key = 'stream'",
                 "7");
    assert_query(db, "SELECT value FROM trace WHERE key = 'rank'", "3");
    assert_query(db,
                 "SELECT tid FROM track JOIN event ON track.id = track"
                 " WHERE event.kind = 'kernel'",
                 "stream 7");
    assert_query(db, "SELECT count(*) FROM flow WHERE phase = 'f' AND flow_id = 99", "1");
    assert_query(db, "SELECT value FROM flow_arg WHERE key = 'weight'", "7");
    assert_query(db, "SELECT count FROM health WHERE name = 'gpu_events'", "1");
    assert_query(db, "SELECT name FROM device", "NVIDIA H100");
    sqlite3_close(db);
    rp_import_release(&import);
    folder_remove(folder);
}
#endif

static void failures_leave_nothing(void **state)
{
    static const char *const names[] = {"no/x.json", "no/x.csv", "no/x.rpt", "no/x.db"};
    struct rp_trace *trace = foreign_trace();
    struct rp_err err = RP_ERR_INIT;
    char folder[128], path[192];

    UNUSED_STATE(state);
    folder_new(folder, sizeof folder);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct rp_writer *writer;

        file_put(path, sizeof path, folder, names[i], NULL, 0);
        assert_ok(rp_writer_for(NULL, path, &writer, &err), &err);
        assert_code(writer->write(trace, path, NULL, &err), writer->available ? RP_IO : RP_MISSING);
        assert_contains(err.text, path);
    }
    assert_int_equal(rmdir(folder), 0);
    rp_trace_free(trace);
}

int test_writers(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices),
        cmocka_unit_test(chrome_round_trip),
        cmocka_unit_test(chrome_order),
        cmocka_unit_test(scope_of_instants),
        cmocka_unit_test(chrome_compressed),
        cmocka_unit_test(native_round_trip),
        cmocka_unit_test(chrome_pairs),
        cmocka_unit_test(chrome_async_pairs),
        cmocka_unit_test(chrome_is_always_json),
        cmocka_unit_test(foreign_to_chrome),
        cmocka_unit_test(csv_rows),
#if RP_HAVE_SQLITE
        cmocka_unit_test(sqlite_tables),
#endif
        cmocka_unit_test(failures_leave_nothing),
    };

    return cmocka_run_group_tests_name("writers", tests, NULL, NULL);
}
