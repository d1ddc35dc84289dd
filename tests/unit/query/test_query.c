/* SPDX-License-Identifier: Apache-2.0 */
/* SQL and Arrow over the ranks of examples/ddp: answers beside those of other questions and of the
   timeline, and SQL that must not do what it asks for. */
#include "unit.h"

#include "base/hash.h"
#include "query/aggregates.h"
#include "query/sql.h"
#include "rp_config.h"

#include <pthread.h>
#include <reprise/reprise.h>
#if RP_HAVE_SQLITE
#include <sqlite3.h>
#endif
#include <stdlib.h>

#define MS INT64_C(1000000)

struct run {
    struct rp_ctx *ctx;
    struct rp_dataset *dataset;
    struct rp_tables *tables;
    struct rp_arena arena;
    struct rp_sql_answer answer;
};

static int run_open(void **state)
{
    struct run *run = calloc(1, sizeof *run);
    const char *path = RP_SOURCE_DIR "/examples/ddp";
    struct rp_err err = RP_ERR_INIT;

    assert_ok(rp_ctx_new(NULL, &run->ctx, &err), &err);
    assert_ok(rp_open(run->ctx, &path, 1, NULL, &run->dataset, &err), &err);
    assert_ok(rp_tables_open(run->dataset, &run->tables, &err), &err);
    *state = run;
    return 0;
}

static int run_close(void **state)
{
    struct run *run = *state;

    rp_sql_answer_release(&run->answer);
    rp_arena_release(&run->arena);
    rp_tables_free(run->tables);
    rp_dataset_free(run->dataset);
    rp_ctx_free(run->ctx);
    free(run);
    return 0;
}

static enum rp_code run_sql(struct run *run, const char *sql, struct rp_sql_limits limits,
                            struct rp_err *err)
{
    rp_sql_answer_release(&run->answer);
    *err = (struct rp_err)RP_ERR_INIT;
    return rp_sql_run(run->tables, sql, &limits, &run->arena, &run->answer, err);
}

/* The integer in the first row and column. */
static int64_t number(struct run *run, const char *sql)
{
    struct rp_err err;

    assert_ok(run_sql(run, sql, (struct rp_sql_limits){0}, &err), &err);
    assert_int_equal(run->answer.nrows, 1);
    assert_int_equal(run->answer.cells.at[0].type, RP_SQL_INT);
    return run->answer.cells.at[0].i;
}

static void conditions_that_are_pushed_down_change_no_answer(void **state)
{
    /* A "+" before a column keeps SQLite from giving the condition to the table. */
    static const char *const conditions[] = {
        "name = 'aten::mm'",
        "kind = 'kernel'",
        "kind = 'no such kind'",
        "rank = 2",
        "rank in (0, 3)",
        "ts_ns >= (select min(ts_ns) + 5000000 from events where rank = 1)",
        "ts_ns < (select min(ts_ns) + 5000000 from events where rank = 1) and +ts_ns is not null",
        "ts_ns = (select ts_ns from events where id = 4711 and rank = 1)",
        "id = 4711",
        "id = 100000000",
        "parent = (select parent from events where rank = 0 and parent is not null limit 1)",
        "link = 17",
        "track = 1",
        "name like '%NCCL%'",
        "name glob '*nccl*'",
        "category = 'kernel'",
        "dur_ns > 100000",
        "dur_ns > 100000.5",
    };
    char sql[700];
    int64_t hits = 0;

    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        int64_t plain, pushed;

        snprintf(sql, sizeof sql, "select count(*) from events where %s", conditions[i]);
        pushed = number(*state, sql);
        snprintf(sql, sizeof sql, "select count(*) from events where +%s", conditions[i]);
        plain = number(*state, sql);
        if (pushed != plain)
            fail_msg("%s: %lld rows, and %lld without push-down", conditions[i], (long long)pushed,
                     (long long)plain);
        hits += pushed > 0;
    }
    assert_true(hits > 12);
}

static void a_row_is_found_by_its_id(void **state)
{
    assert_int_equal(number(*state, "select count(*) from device_work"),
                     number(*state, "select count(*) from device_work k join events e on e.rank = "
                                    "k.rank and e.id = k.event and e.ts_ns = k.ts_ns and e.dur_ns "
                                    "= k.dur_ns and e.name = k.name and e.end_ns = k.end_ns"));
    assert_int_equal(number(*state, "select count(*) from launches"),
                     number(*state,
                            "select count(*) from launches l join device_work k on k.rank = "
                            "l.rank and k.event = l.kernel_event and k.launch = l.event"));
}

static void gaps_are_those_of_a_window(void **state)
{
    assert_true(number(*state, "select count(*) from device_work where gap_ns > 0") > 100);
    assert_int_equal(
        number(*state,
               "select count(*) from (select gap_ns, ts_ns - lag(end_ns) over (partition by "
               "rank, stream order by ts_ns, event) by_window from device_work) where gap_ns is "
               "not by_window"),
        0);
}

#if RP_HAVE_SQLITE
/* A number that differs where answers do. */
static uint64_t answer_hash(struct run *run, const char *sql)
{
    struct rp_sql_answer *a = &run->answer;
    struct rp_err err;
    uint64_t hash = 0;

    if (run_sql(run, sql, (struct rp_sql_limits){0}, &err) != RP_OK)
        return rp_hash_bytes(err.text, strlen(err.text));
    for (size_t i = 0; i < a->nrows * a->ncolumns; i++) {
        const char *cell = rp_sql_text(&a->cells.at[i], &run->arena);

        hash = rp_hash_join(hash, cell ? rp_hash_bytes(cell, strlen(cell)) : 1);
    }
    return hash;
}

static bool is_rewritten(const char *sql)
{
    struct rp_vtab_table tables[RP_TABLE_COUNT] = {0};
    struct rp_aggregates out;

    for (size_t i = 0; i < RP_TABLE_COUNT; i++) {
        tables[i].table = &rp_tables_all[i];
        tables[i].columns = rp_tables_all[i].columns;
    }
    assert_true(rp_aggregates_rewrite(sql, tables, &out));
    sqlite3_free(out.sql);
    return out.sql != NULL;
}

/* A query in a condition keeps SQLite from getting groups instead of rows. */
static void groups_change_no_answer(void **state)
{
    static const char *const queries[] = {
        "select count(*) from kernels where %s",
        "select count(*), count(dur_ns), count(name), count(launch) from kernels where %s",
        "select name, count(*), sum(dur_ns), min(ts_ns), max(end_ns), avg(dur_ns) from kernels "
        "where %s group by 1 order by 1",
        "select kind, count(*) n from kernels where %s group by kind having n > 3 order by n desc",
        "select distinct name from kernels where %s order by 1",
        "select count(distinct name), count(distinct rank) from kernels where %s",
        "select k.rank, k.step, stream, sum(k.dur_ns) * 1.0 / count(*) mean from kernels k where "
        "%s group by 1, 2, 3 order by 1, 2, 3",
        "select upper(substr(name, 1, 3)) x, count(*) from kernels where %s group by x order by x",
        "select event / 7 \"part\", sum(dur_ns) from kernels where %s group by \"part\" order by 1",
        "select min(name), max(name), max(ts_ns) - min(ts_ns) from kernels where %s",
    };
    static const char *const conditions[] = {
        "1",
        "dur_ns > 5000",
        "dur_ns between 5000 and 20000",
        "rank = 1 and dur_ns < 7000.5",
        "dur_ns >= '5000'",
        "dur_ns > 'text'",
        "dur_ns < 'text'",
        "dur_ns > null",
        "dur_ns > -1e30 and dur_ns < 1e30",
        "dur_ns >= 9.3e18",
        "not (dur_ns > 4000)",
        "name like '%%nccl%%'",
        "name glob '*e*' and kind = 'kernel'",
        "rank in (0, 2)",
        "step = 2 or step is null",
        "dur_ns > 100 and dur_ns + 1 < 90000",
        "dur_ns between 100 and 90000 and dur_ns + 1 < 9000",
        "(dur_ns, name) > (3000, 'a')",
        "9000 < dur_ns",
        "name = 'nothing'",
        "launch is not null and dur_ns not between 100 and 10000",
        "event = 4711 or launch = 4712 or event = 99", /* of which SQLite finds the rows one by one
                                                        */
        "name = 'a' || char(0) || 'bc'",
    };
    char where[200], given[700], whole[700];

    for (size_t q = 0; q < sizeof queries / sizeof *queries; q++)
        for (size_t i = q % 3; i < sizeof conditions / sizeof *conditions; i += 3) {
            uint64_t hash; /* a third of the pairs: each condition with three queries or more */

            sqlite3_snprintf(sizeof where, where, conditions[i]);
            sqlite3_snprintf(sizeof given, given, queries[q], where);
            hash = answer_hash(*state, given);
            sqlite3_snprintf(sizeof given, given, "(%s) and (select 1)", where);
            sqlite3_snprintf(sizeof whole, whole, queries[q], given);
            if (hash != answer_hash(*state, whole))
                fail_msg("'%s' has another answer without the query in it", whole);
            assert_false(is_rewritten(whole));
        }
}

static void only_what_is_understood_is_taken_in_groups(void **state)
{
    static const char *const groups[] = {
        "select count(*) from events",
        "SELECT Count ( * ) FROM Events ; ",
        "select name, sum(dur_ns) from kernels as k where k.rank = 1 group by k.name limit 3",
        "select max(n) from (select /* how many */ count(*) n from kernels group by name)",
        "with x as (select name, count(*) n from kernels group by 1) select n from x",
        "select name from kernels where event = (select max(event) from kernels)",
        "select case when rank = 0 then 'first' else 'x' end who, count(*) from events group by 1",
    };
    static const char *const rows[] = {
        "select name from kernels",
        "select * from kernels group by name",
        "select kernels.* from kernels group by name",
        "select count(*) from kernels, launches",
        "select count(*) from kernels k join launches l on l.event = k.launch",
        "select count(*) from kernels union all select count(*) from events",
        "select sum(dur_ns + 1) from kernels",
        "select total(dur_ns) from kernels",
        "select group_concat(name) from kernels",
        "select sum(dur_ns) over (order by ts_ns) from kernels",
        "select sum(dur_ns) over w from kernels where 1 window w as (order by ts_ns)",
        "select count(*) filter (where rank = 0) from kernels",
        "select count(*), random() from kernels",
        "select count(*) from kernels where rowid = 3",
        "select rank, (select count(*) from kernels where rank = ranks.rank) from ranks",
        "select (select count(*) from kernels where world_size = 4) from ranks",
        "with kernels as (select 1 x) select count(*) from kernels",
        "select sum(name) from kernels",
        "select sum(share) from findings",
        "select count(*) from sqlite_schema",
        "select count(* from kernels",
    };

    (void)state;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (!is_rewritten(groups[i]))
            fail_msg("'%s' is not taken in groups", groups[i]);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (is_rewritten(rows[i]))
            fail_msg("'%s' is taken in groups", rows[i]);
}

static void sums_that_are_too_large_are_errors(void **state)
{
    struct run *run = *state;
    struct rp_err err;

    assert_true(number(run, "select min(ts_ns) from events") >
                INT64_MAX / number(run, "select count(*) from events"));
    assert_int_equal(run_sql(run, "select sum(ts_ns) from events", (struct rp_sql_limits){0}, &err),
                     RP_USAGE);
    assert_string_equal(err.text, "integer overflow");
    assert_ok(run_sql(run,
                      "select avg(ts_ns) / (select avg(ts_ns) from events where +rank >= 0), "
                      "count(ts_ns), max(ts_ns) - min(ts_ns) from events",
                      (struct rp_sql_limits){0}, &err),
              &err);
    assert_true(run->answer.cells.at[0].v.f > 1 - 1e-9 && run->answer.cells.at[0].v.f < 1 + 1e-9);
    assert_true(run->answer.cells.at[1].i > 1000);
}

/* A "+" before a column keeps SQLite from asking the table for an order. */
static void the_order_of_rows_is_that_of_sqlite(void **state)
{
    static const char *const queries[][2] = {
        {"select rank, id from events where dur_ns > 20000 order by dur_ns desc, rank, id",
         "select rank, id from events where dur_ns > 20000 order by +dur_ns desc, +rank, +id"},
        {"select name, ts_ns from kernels order by name desc, ts_ns, rank, event",
         "select name, ts_ns from kernels order by +name desc, +ts_ns, +rank, +event"},
        {"select event, launch from kernels where rank in (1, 3) order by launch, rank, event",
         "select event, launch from kernels where rank in (1, 3) order by +launch, +rank, +event"},
        {"select event from kernels order by operator, step desc, in_graph, stream, rank desc, event",
         "select event from kernels order by +operator, +step desc, +in_graph, +stream, +rank desc,"
         " +event"},
        {"select kind, category, count(*) filter (where dur_ns > 9000), total(dur_ns) from events "
         "group by kind, category order by 1, 2",
         "select kind, category, count(*) filter (where dur_ns > 9000), total(dur_ns) from events "
         "group by +kind, +category order by 1, 2"},
        {"select sum(ts_ns - before) from (select ts_ns, lag(end_ns) over (partition by rank, stream "
         "order by ts_ns, event) before from kernels)",
         "select sum(ts_ns - before) from (select ts_ns, lag(end_ns) over (partition by +rank, "
         "+stream order by +ts_ns, +event) before from kernels)"},
        {"select k.name, l.delay_ns from kernels k join launches l on l.rank = k.rank and l.event = "
         "k.launch order by l.delay_ns desc, k.rank, k.event limit 99",
         "select k.name, l.delay_ns from kernels k join launches l on l.rank = k.rank and l.event = "
         "k.launch order by +l.delay_ns desc, +k.rank, +k.event limit 99"},
        {"select id from findings order by share desc, id",
         "select id from findings order by +share desc, +id"},
    };

    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        uint64_t hash = answer_hash(*state, queries[i][0]);

        assert_true(((struct run *)*state)->answer.nrows > 0);
        if (hash != answer_hash(*state, queries[i][1]))
            fail_msg("'%s' has another answer if SQLite sorts", queries[i][0]);
    }
}
#endif

static void sums_are_those_of_top(void **state)
{
    struct run *run = *state;
    struct rp_setting limit = {"limit", "1"};
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *result;
    const char *name;
    int64_t total, count;
    char sql[600];

    assert_ok(rp_ask(run->ctx, run->dataset, "top", &limit, 1, &result, &err), &err);
    assert_true(rp_result_text(result, "rows.0.name", &name));
    assert_true(rp_result_i64(result, "rows.0.total_ns", &total));
    assert_true(rp_result_i64(result, "rows.0.count", &count));
    snprintf(sql, sizeof sql, "select sum(dur_ns) from kernels where name = '%s'", name);
    assert_int_equal(number(run, sql), total);
    snprintf(sql, sizeof sql, "select count(*) from kernels where name = '%s'", name);
    assert_int_equal(number(run, sql), count);
    rp_result_free(result);
}

static void steps_and_findings_are_those_of_report(void **state)
{
    struct run *run = *state;
    struct rp_err err = RP_ERR_INIT;
    struct rp_result *result;
    struct rp_rows rows;
    int64_t idle, lost, sum = 0;

    assert_ok(rp_ask(run->ctx, run->dataset, "report", NULL, 0, &result, &err), &err);
    assert_true(rp_result_rows(result, "steps", &rows));
    while (rp_rows_next(&rows)) {
        assert_true(rp_row_i64(&rows.row, "idle_ns", &idle));
        sum += idle;
    }
    assert_true(sum > 0);
    assert_int_equal(number(run, "select sum(idle_ns) from steps"), sum);
    assert_true(rp_result_i64(result, "findings.0.lost_ns", &lost));
    assert_int_equal(number(run, "select max(lost_ns) from findings"), lost);
    rp_result_free(result);
}

static void collectives_of_a_meeting_are_of_different_ranks(void **state)
{
    assert_int_equal(number(*state, "select count(distinct rank) from collectives"), 4);
    assert_int_equal(number(*state, "select count(*) from (select meeting from collectives where "
                                    "meeting is not null group by 1 having count(*) <> 4 or "
                                    "count(distinct rank) <> 4)"),
                     0);
    assert_int_equal(number(*state, "select count(*) from collectives where wait_ns + transfer_ns "
                                    "<> dur_ns or wait_ns < 0 or transfer_ns < 0"),
                     0);
}

static void hostile_sql_is_refused(void **state)
{
    static const char *const refused[] = {
        "attach '/tmp/x.db' as y",
        "create table t(x)",
        "create temp table t(x)",
        "create virtual table t using kernels",
        "insert into kernels values (1)",
        "delete from events",
        "update events set ts_ns = 0",
        "drop table events",
        "pragma writable_schema = 1",
        "select * from pragma_table_info('events')",
        "select load_extension('/tmp/x.so')",
        "select writefile('/tmp/x', 'y')",
        "vacuum into '/tmp/x.db'",
        "explain select 1",
        "begin",
        "select 1; select 2",
        "select 1; drop table events",
        "detach main",
        "analyze",
        "reindex",
        "",
        "-- nothing",
        "select",
        "select \"not a column\" from events",
        "select * from no_such_table",
        "select fts3_tokenizer('simple')",
        "values (?)",
    };
    struct rp_err err;

    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        enum rp_code code = run_sql(*state, refused[i], (struct rp_sql_limits){0}, &err);

        if (code != RP_USAGE || !*err.text)
            fail_msg("'%s': code %d, '%s'", refused[i], (int)code, err.text);
    }
}

static void a_query_has_an_end(void **state)
{
    static const char forever[] =
        "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";
    static const char wide[] = "select count(*) from events a, events b, events c where a.dur_ns + "
                               "b.dur_ns < c.dur_ns";
    /* Each look of the inner table is a walk without a hit: SQLite's machine hardly moves. */
    static const char walks[] =
        "select count(*) from events a join events b on b.dur_ns = a.id + 100000000000";
    static const char large[] = "with recursive n(i) as (select 1 union all select i + 1 from n) "
                                "select i from n order by hex(randomblob(1000))";
    /* One value, groups, different rows, a sort, a window: each would need more than it may. */
    static const char *const heavy[] = {
        "select group_concat(a.name) from events a, (select 1 from events limit 50)",
        "select json_group_array(a.name || b.name) from events a, events b",
        "select hex(zeroblob(90000000))",
        "select a.id, b.id, count(*) from events a, events b group by 1, 2",
        "select distinct a.dur_ns, b.id from events a, events b",
        "select sum(a.id) over (order by b.id, a.id) from events a, events b order by 1 limit 1",
    };
    static const char long_list[] =
        "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n";
    struct rp_err err;

    assert_int_equal(run_sql(*state, forever, (struct rp_sql_limits){.ns = 30 * MS}, &err),
                     RP_LIMIT);
    assert_int_equal(run_sql(*state, wide, (struct rp_sql_limits){.ns = 30 * MS}, &err), RP_LIMIT);
    assert_int_equal(run_sql(*state, walks, (struct rp_sql_limits){.ns = 30 * MS}, &err), RP_LIMIT);
    assert_non_null(strstr(err.text, "timeout"));
    assert_int_equal(
        run_sql(*state, large, (struct rp_sql_limits){.bytes = 8 << 20, .ns = 60000 * MS}, &err),
        RP_LIMIT);
    assert_non_null(strstr(err.text, "memory"));
    for (size_t i = 0; i < sizeof heavy / sizeof *heavy; i++) {
        assert_int_equal(run_sql(*state, heavy[i],
                                 (struct rp_sql_limits){.bytes = 8 << 20, .ns = 60000 * MS}, &err),
                         RP_LIMIT);
        assert_non_null(strstr(err.text, "memory"));
    }
    assert_int_equal(run_sql(*state, long_list,
                             (struct rp_sql_limits){.bytes = 8 << 20, .ns = 60000 * MS}, &err),
                     RP_LIMIT);
    assert_ok(run_sql(*state, long_list, (struct rp_sql_limits){.rows = 10}, &err), &err);
    assert_int_equal(((struct run *)*state)->answer.nrows, 10);
    assert_true(((struct run *)*state)->answer.more);
}

#if RP_HAVE_SQLITE
static void *ask_again_and_again(void *tables)
{
    struct rp_sql_limits limits = {.bytes = 64 << 20, .ns = 60000 * MS};

    for (int i = 0; i < 40; i++) {
        struct rp_arena arena = RP_ARENA_INIT;
        struct rp_sql_answer answer = {0};
        struct rp_err err = RP_ERR_INIT;

        assert_ok(
            rp_sql_run(tables, "select count(*) from kernels", &limits, &arena, &answer, &err),
            &err);
        rp_sql_answer_release(&answer);
        rp_arena_release(&arena);
    }
    return NULL;
}
#endif

static void queries_of_threads_leave_no_limit(void **state)
{
#if RP_HAVE_SQLITE
    struct run *run = *state;
    pthread_t threads[4];

    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_again_and_again, run->tables), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(sqlite3_hard_heap_limit64(-1), 0);
#endif
    (void)state;
}

static void columns_of_one_name_get_different_ones(void **state)
{
    struct run *run = *state;
    struct rp_err err;

    assert_ok(run_sql(run, "select 1 as a, 2 as a, 'x' as a", (struct rp_sql_limits){0}, &err),
              &err);
    assert_string_equal(run->answer.columns[0].name, "a");
    assert_string_equal(run->answer.columns[1].name, "a_2");
    assert_string_equal(run->answer.columns[2].name, "a_3");
}

static void units_come_from_names(void **state)
{
    (void)state;
    assert_int_equal(rp_sql_unit("dur_ns"), RP_UNIT_NS);
    assert_int_equal(rp_sql_unit("sum(dur_ns)"), RP_UNIT_NS);
    assert_int_equal(rp_sql_unit("quantile(dur_ns, 0.9)"), RP_UNIT_NS);
    assert_int_equal(rp_sql_unit("max(end_ns) - min(ts_ns)"), RP_UNIT_NS);
    assert_int_equal(rp_sql_unit("lag(dur_ns, 1) over (order by step)"), RP_UNIT_NS);
    assert_int_equal(rp_sql_unit("rank() over (order by dur_ns)"), RP_UNIT_NONE);
    assert_int_equal(rp_sql_unit("sum(dur_ns) / max(dur_ns)"), RP_UNIT_NONE);
    assert_int_equal(rp_sql_unit("count(dur_ns)"), RP_UNIT_COUNT);
    assert_int_equal(rp_sql_unit("in_bytes"), RP_UNIT_BYTES);
    assert_int_equal(rp_sql_unit("step"), RP_UNIT_NONE);
}

/* ------------------------------------------------------------------ Arrow */

static int64_t bit(const void *bits, int64_t i)
{
    return !bits || ((const uint8_t *)bits)[i / 8] >> i % 8 & 1;
}

static void streams_have_the_rows_of_the_timeline(void **state)
{
    struct run *run = *state;
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    struct ArrowArray batch;
    struct rp_err err = RP_ERR_INIT;
    struct rp_event_view event;
    struct rp_timeline *timeline;

    assert_ok(rp_timeline_open(run->dataset, 0, &timeline, &err), &err);
    assert_ok(rp_tables_stream(run->tables, "events", &stream, &err), &err);
    assert_int_equal(stream.get_schema(&stream, &schema), 0);
    assert_string_equal(schema.format, "+s");
    assert_string_equal(schema.children[2]->name, "ts_ns");
    assert_string_equal(schema.children[2]->format, "l");
    assert_string_equal(schema.children[5]->dictionary->format, "U");
    assert_int_equal(stream.get_next(&stream, &batch), 0);
    for (size_t i = 0; rp_timeline_events(timeline, i, 1, &event, sizeof event); i++) {
        const struct ArrowArray *name = batch.children[5];
        int32_t text = ((const int32_t *)name->buffers[1])[i];
        const int64_t *ends = name->dictionary->buffers[1];
        size_t len = (size_t)(ends[text + 1] - ends[text]);

        assert_int_equal(bit(batch.children[2]->buffers[0], (int64_t)i),
                         event.start_ns != RP_NO_TIME);
        assert_int_equal(((const int64_t *)batch.children[2]->buffers[1])[i], event.start_ns);
        assert_int_equal(len, strlen(event.name));
        assert_memory_equal((const char *)name->dictionary->buffers[2] + ends[text], event.name,
                            len);
    }
    schema.release(&schema);
    batch.release(&batch);
    stream.release(&stream);
    rp_timeline_free(timeline);
}

static void times_of_events_are_not_copied_and_outlive_the_tables(void **state)
{
    const char *path = RP_SOURCE_DIR "/examples/ddp/rank0.json.gz";
    struct run *run = *state;
    struct rp_err err = RP_ERR_INIT;
    struct rp_dataset *dataset;
    struct rp_tables *tables;
    struct ArrowArrayStream stream;
    struct ArrowArray first, second, end, moved;
    int64_t ts;

    assert_ok(rp_open(run->ctx, &path, 1, NULL, &dataset, &err), &err);
    assert_ok(rp_tables_open(dataset, &tables, &err), &err);
    assert_ok(rp_tables_stream(tables, "events", &stream, &err), &err);
    assert_int_equal(stream.get_next(&stream, &first), 0);
    assert_int_equal(stream.get_next(&stream, &end), 0);
    assert_null(end.release);
    stream.release(&stream);
    assert_ok(rp_tables_stream(tables, "events", &stream, &err), &err);
    assert_int_equal(stream.get_next(&stream, &second), 0);
    stream.release(&stream);
    for (size_t i = 2; i <= 6; i += i == 3 ? 2 : 1) /* all but end_ns, which is computed */
        assert_ptr_equal(first.children[i]->buffers[1], second.children[i]->buffers[1]);
    second.release(&second);
    moved = *first.children[2]; /* a consumer may keep one column */
    first.children[2]->release = NULL;
    first.release(&first);
    rp_tables_free(tables);
    ts = ((const int64_t *)moved.buffers[1])[moved.length - 1];
    assert_true(ts > 0);
    moved.release(&moved);
    rp_dataset_free(dataset);
}

static void every_table_and_a_query_can_be_streamed(void **state)
{
    struct run *run = *state;
    struct rp_err err = RP_ERR_INIT;
    struct rp_table_view table;
    struct ArrowArrayStream stream;
    struct ArrowArray batch;
    char sql[100];

    for (size_t i = 0; rp_tables_list(i, 1, &table, sizeof table); i++) {
        int64_t rows = 0;

        assert_ok(rp_tables_stream(run->tables, table.name, &stream, &err), &err);
        for (;;) {
            assert_int_equal(stream.get_next(&stream, &batch), 0);
            if (!batch.release)
                break;
            assert_int_equal(batch.n_children, table.ncolumns);
            rows += batch.length;
            batch.release(&batch);
        }
        stream.release(&stream);
        snprintf(sql, sizeof sql, "select count(*) from %s", table.name);
        assert_int_equal(rows, number(run, sql));
        assert_true(rows > 0);
    }
    assert_ok(rp_tables_query(run->tables, "select 7 as a, 'x' as b, 0.5 as c, null as d", 0,
                              &stream, &err),
              &err);
    assert_int_equal(stream.get_next(&stream, &batch), 0);
    assert_int_equal(*(const int64_t *)batch.children[0]->buffers[1], 7);
    assert_memory_equal(batch.children[1]->buffers[2], "x", 1);
    assert_true(*(const double *)batch.children[2]->buffers[1] == 0.5);
    assert_int_equal(batch.children[3]->null_count, 1);
    batch.release(&batch);
    stream.release(&stream);
    assert_int_equal(rp_tables_stream(run->tables, "nothing", &stream, &err), RP_USAGE);
}

int test_query(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_that_are_pushed_down_change_no_answer),
        cmocka_unit_test(a_row_is_found_by_its_id),
        cmocka_unit_test(gaps_are_those_of_a_window),
#if RP_HAVE_SQLITE
        cmocka_unit_test(groups_change_no_answer),
        cmocka_unit_test(only_what_is_understood_is_taken_in_groups),
        cmocka_unit_test(sums_that_are_too_large_are_errors),
        cmocka_unit_test(the_order_of_rows_is_that_of_sqlite),
#endif
        cmocka_unit_test(sums_are_those_of_top),
        cmocka_unit_test(steps_and_findings_are_those_of_report),
        cmocka_unit_test(collectives_of_a_meeting_are_of_different_ranks),
        cmocka_unit_test(hostile_sql_is_refused),
        cmocka_unit_test(a_query_has_an_end),
        cmocka_unit_test(queries_of_threads_leave_no_limit),
        cmocka_unit_test(columns_of_one_name_get_different_ones),
        cmocka_unit_test(units_come_from_names),
        cmocka_unit_test(streams_have_the_rows_of_the_timeline),
        cmocka_unit_test(times_of_events_are_not_copied_and_outlive_the_tables),
        cmocka_unit_test(every_table_and_a_query_can_be_streamed),
    };

    if (!RP_HAVE_SQLITE)
        return 0;
    return cmocka_run_group_tests_name("query", tests, run_open, run_close);
}
