/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of metrics with known numbers: merged, asked, and written as text and as OpenMetrics. */
#include "unit.h"

#include "io/output.h"
#include "metrics/set.h"

#include <math.h>
#include <reprise/result.h>
#include <stdlib.h>
#include <string.h>

static struct rp_metric *add_metric(struct rp_metric_set *set, const char *name,
                                    enum rp_metric_unit unit)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_metric *m = rp_metric_set_metric(set, name, unit, &err);

    assert_non_null(m);
    return m;
}

/* Samples of one value; of several calls the values grow. */
static void add_samples(struct rp_metric *m, double value, uint64_t n)
{
    struct rp_err err = RP_ERR_INIT;

    assert_ok(rp_metric_add(m, value, value, n, &err), &err);
    m->least = m->count ? m->least : value;
    m->most = value;
    m->count += n;
    m->sum += value * (double)n;
}

static void assert_written(void (*write)(const struct rp_metric_set *, struct rp_out *),
                           const struct rp_metric_set *set, const char *want)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_out *out;
    size_t n;

    assert_ok(rp_out_open_memory(&out, &err), &err);
    write(set, out);
    assert_string_equal(rp_out_borrow_memory(out, &n), want);
    rp_out_abandon(out);
}

/* Two times, a size, a value, a counter that rose and one that fell. */
static void fill_set(struct rp_metric_set *set)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_metric *m = add_metric(set, "step", RP_METRIC_TIME);

    add_samples(m, 1000000, 3);
    add_samples(m, 2500000, 1);
    m->first_ns = 1000000000;
    m->last_ns = 3000000000;
    add_samples(add_metric(set, "load", RP_METRIC_TIME), 500, 2);
    add_samples(add_metric(set, "sent", RP_METRIC_BYTES), 3072, 2);
    add_samples(add_metric(set, "depth", RP_METRIC_VALUE), 7, 5);
    assert_ok(rp_metric_set_count(set, "steps", 40, &err), &err);
    assert_ok(rp_metric_set_count(set, "steps", 2, &err), &err);
    assert_ok(rp_metric_set_count(set, "open", -3, &err), &err);
    rp_metric_set_sort(set);
}

static char *exposed(const struct rp_metric_set *sets, size_t n, enum rp_metric_format format)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_out *out;
    char *text;
    size_t size;

    assert_ok(rp_out_open_memory(&out, &err), &err);
    assert_ok(rp_metric_expose(sets, n, format, out, &err), &err);
    text = strdup(rp_out_borrow_memory(out, &size));
    rp_out_abandon(out);
    assert_non_null(text);
    return text;
}

static size_t count_text(const char *in, const char *what)
{
    size_t n = 0;

    for (; (in = strstr(in, what)); in++)
        n++;
    return n;
}

/* Two files of one process are one series, another process is another; bounds do not depend on the
   samples. */
static void processes_have_series(void **state)
{
    struct rp_metric_set sets[3] = {0};
    char *text;

    UNUSED_STATE(state);
    for (size_t i = 0; i < 3; i++) {
        fill_set(&sets[i]);
        sets[i].pid = i < 2 ? 10 : 11;
        sets[i].rank = i < 2 ? RP_ABSENT_I64 : 1;
        sets[i].host = "a\"b";
    }
    text = exposed(sets, 3, RP_METRIC_PROMETHEUS);
#define OF_10 ",host=\"a\\\"b\",process=\"10\""
#define OF_11 ",rank=\"1\",host=\"a\\\"b\",process=\"11\""
    assert_non_null(strstr(text, "_seconds_bucket{name=\"step\"" OF_10 ",le=\"0.0005\"} 0\n"));
    assert_non_null(strstr(text, "_seconds_bucket{name=\"step\"" OF_10 ",le=\"0.001\"} 6\n"));
    assert_non_null(strstr(text, "_seconds_bucket{name=\"step\"" OF_11 ",le=\"0.005\"} 4\n"));
    assert_non_null(strstr(text, "_bytes_bucket{name=\"sent\"" OF_11 ",le=\"2048\"} 0\n"));
    assert_non_null(strstr(text, "_bytes_bucket{name=\"sent\"" OF_11 ",le=\"4096\"} 2\n"));
    assert_non_null(strstr(text, "reprise_count_total{name=\"steps\"" OF_10 "} 84\n"));
    assert_non_null(strstr(text, "reprise_balance{name=\"open\"" OF_11 "} -3\n"));
    assert_int_equal(count_text(text, "reprise_time_seconds_bucket"), 4 * 32);
    assert_int_equal(count_text(text, "# HELP "), 5);
    assert_int_equal(count_text(text, "# TYPE "), 5);
    assert_int_equal(count_text(text, "# TYPE reprise_count_total counter"), 1);
    free(text);
    text = exposed(sets, 3, RP_METRIC_OPENMETRICS);
    assert_int_equal(count_text(text, "# TYPE reprise_count counter"), 1);
    assert_int_equal(count_text(text, "# UNIT "), 2);
    assert_string_equal(text + strlen(text) - 6, "# EOF\n");
    free(text);
    for (size_t i = 0; i < 3; i++)
        rp_metric_set_release(&sets[i]);
}

/* The names of two files of one process are in one order. */
static void series_are_sorted(void **state)
{
    struct rp_metric_set sets[2] = {0};
    struct rp_err err = RP_ERR_INIT;
    char *text;

    UNUSED_STATE(state);
    for (size_t i = 0; i < 2; i++) {
        rp_arena_init(&sets[i].arena);
        sets[i].pid = 10;
        sets[i].rank = RP_ABSENT_I64;
        assert_ok(rp_metric_set_count(&sets[i], i ? "alpha" : "omega", 1, &err), &err);
        add_samples(add_metric(&sets[i], i ? "first" : "second", RP_METRIC_VALUE), 7, 5);
        rp_metric_set_sort(&sets[i]);
    }
    text = exposed(sets, 2, RP_METRIC_PROMETHEUS);
    assert_true(strstr(text, "\"alpha\"") < strstr(text, "\"omega\""));
    assert_true(strstr(text, "\"first\"") < strstr(text, "\"second\""));
    free(text);
    for (size_t i = 0; i < 2; i++)
        rp_metric_set_release(&sets[i]);
}

/* 4 samples and 5.5 ms in 2 s. */
static void sets_are_reports(void **state)
{
    struct rp_metric_set set = {0}, step = {0};

    UNUSED_STATE(state);
    fill_set(&set);
    step.metrics = set.metrics;
    step.metrics.at += 3; /* depth, load, sent, step */
    step.metrics.n = 1;
    step.counters = set.counters;
    assert_written(rp_metric_write_report, &step,
                   "# reprise metrics\nMetric: step\n  TotalSamples: 4\n"
                   "  Accumulator: 005ms500.000us\n  ValueRate: 002ms750.000us / second\n"
                   "  Rate: 2 / second\n  Percentiles: 1%=001ms000.000us; 5%=001ms000.000us; "
                   "10%=001ms000.000us; 20%=001ms000.000us; 50%=001ms000.000us; "
                   "80%=002ms500.000us; 90%=002ms500.000us; 95%=002ms500.000us; "
                   "99%=002ms500.000us\nCounter: open\n  Value: -3\nCounter: steps\n  Value: 42\n");
    rp_metric_set_release(&set);
}

static void values_have_their_unit(void **state)
{
    static const struct {
        double value;
        enum rp_metric_unit unit;
        const char *text;
    } rows[] = {{0, RP_METRIC_TIME, "000.000us"},
                {999.4, RP_METRIC_TIME, "000.999us"},
                {999999.6, RP_METRIC_TIME, "001ms000.000us"},
                {805578778, RP_METRIC_TIME, "805ms578.778us"},
                {61e9, RP_METRIC_TIME, "01m01s000ms000.000us"},
                {90061001002003, RP_METRIC_TIME, "01d01h01m01s001ms002.003us"},
                {1023, RP_METRIC_BYTES, "1023.00B"},
                {1024, RP_METRIC_BYTES, "1.00KB"},
                {65431142.4, RP_METRIC_BYTES, "62.40MB"},
                {5 * 0x1p50, RP_METRIC_BYTES, "5.00PB"},
                {2048 * 0x1p50, RP_METRIC_BYTES, "2048.00PB"},
                {29, RP_METRIC_VALUE, "29.00"},
                {4096.126, RP_METRIC_VALUE, "4096.13"}};
    struct rp_arena arena = RP_ARENA_INIT;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(rp_metric_value_text(&arena, rows[i].value, rows[i].unit),
                            rows[i].text);
    rp_arena_release(&arena);
}

/* The sample at index floor(percent * n / 100): of 1, 2 ... 10, each once. */
static void percentiles_are_samples(void **state)
{
    struct rp_metric_set set = {0};
    struct rp_metric *m = add_metric(&set, "v", RP_METRIC_VALUE);

    UNUSED_STATE(state);
    assert_true(isnan(rp_metric_percentile(m, 50)));
    for (int i = 1; i <= 10; i++)
        add_samples(m, i, 1);
    assert_true(rp_metric_percentile(m, 0) == 1 && rp_metric_percentile(m, 9) == 1);
    assert_true(rp_metric_percentile(m, 10) == 2 && rp_metric_percentile(m, 50) == 6);
    assert_true(rp_metric_percentile(m, 99) == 10 && rp_metric_percentile(m, 100) == 10);
    rp_metric_set_release(&set);
}

static void merged_sets_add_up(void **state)
{
    struct rp_metric_set all = {0}, a = {0}, b = {0};
    struct rp_err err = RP_ERR_INIT;
    const struct rp_metric *m;

    UNUSED_STATE(state);
    fill_set(&a);
    add_samples(add_metric(&b, "step", RP_METRIC_TIME), 1000000, 2);
    b.metrics.at[0].first_ns = 500000000;
    b.metrics.at[0].last_ns = 2000000000;
    b.lost = 5;
    b.torn = 1;
    assert_ok(rp_metric_set_count(&b, "steps", 8, &err), &err);
    assert_ok(rp_metric_set_merge(&all, &a, &err), &err);
    assert_ok(rp_metric_set_merge(&all, &b, &err), &err);
    m = rp_metric_find(&all, "step");
    assert_non_null(m);
    assert_int_equal(m->count, 6);
    assert_true(m->sum == 7500000 && m->least == 1000000 && m->most == 2500000);
    assert_int_equal(m->first_ns, 500000000);
    assert_int_equal(m->last_ns, 3000000000);
    assert_int_equal(m->buckets.n, 2);
    assert_int_equal(m->buckets.at[0].count, 5);
    assert_int_equal(m->buckets.at[1].count, 1);
    assert_true(rp_metric_rate(m) == 6 / 2.5 && rp_metric_mean(m) == 1250000);
    assert_int_equal(rp_metric_counter_value(&all, "steps"), 50);
    assert_int_equal(rp_metric_counter_value(&all, "none"), 0);
    assert_int_equal(all.lost, 5);
    assert_int_equal(all.torn, 1);
    assert_null(rp_metric_find(&all, "none"));
    rp_metric_set_clear(&all);
    assert_null(rp_metric_find(&all, "step"));
    assert_int_equal(rp_metric_counter_value(&all, "steps"), 0);
    rp_metric_set_release(&all);
    rp_metric_set_release(&a);
    rp_metric_set_release(&b);
}

static bool has_remark(const struct rp_metric_set *set, const char *begin)
{
    struct rp_arena arena = RP_ARENA_INIT;
    rp_metric_remarks remarks = {0};
    struct rp_err err = RP_ERR_INIT;
    bool found = false;

    assert_ok(rp_metric_remark(set, set, 1, &arena, &remarks, &err), &err);
    for (size_t i = 0; i < remarks.n; i++)
        found |= !strncmp(remarks.at[i], begin, strlen(begin));
    rp_vec_release(&remarks);
    rp_arena_release(&arena);
    return found;
}

/* A compilation of more than five minutes, an execution of more than half a minute. */
static void slow_calls_are_remarked(void **state)
{
    static const struct {
        const char *name, *remark;
        double limit_ns;
    } rows[] = {{"CompileTime", "slow compilation", 300e9},
                {"RAFCompile", "slow compilation", 300e9},
                {"ExecuteTime", "slow execution", 30e9},
                {"ExecuteReplicatedTime", "slow execution", 30e9}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int over = 0; over < 2; over++) {
            struct rp_metric_set set = {0};

            add_samples(add_metric(&set, rows[i].name, RP_METRIC_TIME), rows[i].limit_ns + over, 1);
            assert_int_equal(has_remark(&set, rows[i].remark), over);
            rp_metric_set_release(&set);
        }
}

/* Reading a value on the host is not an operator without a lowering. */
static void fallbacks_are_operators(void **state)
{
    struct rp_metric_set set = {0};
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    assert_ok(rp_metric_set_count(&set, "aten::_local_scalar_dense", 5, &err), &err);
    assert_ok(rp_metric_set_count(&set, "aten", 5, &err), &err);
    assert_false(has_remark(&set, "fallback"));
    for (int i = 0; i < 4; i++)
        assert_ok(
            rp_metric_set_count(
                &set, (const char *[]){"aten::a", "aten::b", "aten::c", "aten::d"}[i], i + 1, &err),
            &err);
    assert_true(has_remark(&set, "fallback: 4 operators without a lowering ran on the host, 10 "
                                 "calls: aten::d (4), aten::c (3), aten::b (2), …"));
    rp_metric_set_release(&set);
}

int test_metric_sets(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_have_series),   cmocka_unit_test(series_are_sorted),
        cmocka_unit_test(sets_are_reports),        cmocka_unit_test(values_have_their_unit),
        cmocka_unit_test(percentiles_are_samples), cmocka_unit_test(slow_calls_are_remarked),
        cmocka_unit_test(fallbacks_are_operators), cmocka_unit_test(merged_sets_add_up),
    };

    return cmocka_run_group_tests_name("metric_sets", tests, NULL, NULL);
}
