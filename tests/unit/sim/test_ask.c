/* SPDX-License-Identifier: Apache-2.0 */
/* The question: its options, what it refuses, and the fields of its answer. */
#include "asked_file.h"
#include "run_fixtures.h"
#include "sim/simulate.h"
#include "sim/whatif/whatifs.h"

#include <math.h>

#define PIPELINE GOLDEN "pipeline/in.json"
#define MOST     260

/* Asks with settings such as "what-if=scale:gpu=2". */
static enum rp_code ask(struct asked_file *f, const char *const *texts, size_t n,
                        struct rp_result **out, struct rp_err *err)
{
    static char names[MOST][24];
    struct rp_setting settings[MOST];

    assert_true(n <= MOST);
    for (size_t i = 0; i < n; i++) {
        const char *eq = strchr(texts[i], '=');

        snprintf(names[i], sizeof names[i], "%.*s", (int)(eq - texts[i]), texts[i]);
        settings[i] = (struct rp_setting){names[i], eq + 1};
    }
    *err = (struct rp_err)RP_ERR_INIT;
    return rp_ask(f->ctx, f->dataset, "simulate", settings, n, out, err);
}

static int64_t number_at(const struct rp_result *r, const char *path)
{
    int64_t value;

    return rp_result_i64(r, path, &value) ? value : RP_ABSENT_I64;
}

static double ratio_at(const struct rp_result *r, const char *path)
{
    double value;

    return rp_result_f64(r, path, &value) ? value : NAN;
}

static bool says(const struct rp_result *r, const char *part)
{
    const struct rp_sim_answer *a = rp_result_borrow_root(r);

    for (size_t i = 0; i < a->nnotes; i++)
        if (strstr(a->notes[i], part))
            return true;
    return false;
}

/* ------------------------------------------------------------------ what is refused */

static void wrong_settings_are_refused(void **state)
{
    static const struct {
        const char *texts[2], *why; /* NULL: it is accepted */
    } rows[] = {
        {{"unprofiled-step=0"}, "must be a time above 0"},
        {{"unprofiled-step=-1ms"}, ""},
        {{"unprofiled-step=400us"}, NULL},
        {{"profiler-cost=0"}, "must be a factor above 0"},
        {{"profiler-cost=100"}, NULL},
        {{"profiler-cost=100.5"}, "must be a factor above 0"},
        {{"profiler-cost=1.5", "unprofiled-step=400us"}, "give only one of them"},
        {{"collective=tree", "backend=byteps"}, "does not go with '--collective tree'"},
        {{"collective=ring", "backend=byteps"}, NULL},
        {{"collective=tree", "backend=gloo"}, NULL},
        {{"collective=whole", "backend=byteps"}, NULL},
        {{"trace=/nowhere/x.bmp"}, "x.bmp"},
        {{"what-if=straggler=ideal", "what-if=fuze"}, "did you mean"},
    };
    struct asked_file f;

    UNUSED_STATE(state);
    asked_open(&f, PIPELINE, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rp_result *r = NULL;
        struct rp_err err;

        if (rows[i].why) {
            assert_code(ask(&f, rows[i].texts, 1 + !!rows[i].texts[1], &r, &err), RP_USAGE);
            assert_contains(err.text, rows[i].why);
        } else { /* of a pipeline the cost of recording is not known */
            assert_code(ask(&f, rows[i].texts, 1 + !!rows[i].texts[1], &r, &err),
                        strchr(rows[i].texts[0], 'u') == rows[i].texts[0] ? RP_UNSUPPORTED : RP_OK);
        }
        rp_result_free(r);
    }
    asked_close(&f);
}

static void a_trace_is_of_one_run(void **state)
{
    static const char *const texts[] = {"trace=/nowhere/x.json", "what-if=straggler=ideal",
                                        "what-if=straggler=ideal"};
    struct rp_result *r = NULL;
    struct asked_file f;
    struct rp_err err;

    UNUSED_STATE(state);
    asked_open(&f, PIPELINE, NULL);
    assert_code(ask(&f, texts, 3, &r, &err), RP_USAGE);
    assert_contains(err.text, "writes one run");
    assert_code(ask(&f, texts, 2, &r, &err), RP_IO);
    assert_code(ask(&f, texts, 1, &r, &err), RP_IO);
    asked_close(&f);
}

/* The trace that is written has the step that was simulated, with the change if there is one. */
static void a_trace_of_the_run_is_written(void **state)
{
    char folder[] = "/tmp/reprise-sim-XXXXXX", path[64], setting[80];
    const char *texts[] = {setting, "what-if=scale:gpu=10"};
    int64_t steps[2];

    UNUSED_STATE(state);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/out.json", folder);
    snprintf(setting, sizeof setting, "trace=%s", path);
    for (size_t n = 1; n <= 2; n++) {
        struct asked_file f, again = {{0}};
        struct rp_result *r = NULL;
        const char *out = path;
        struct rp_err err;

        asked_open(&f, GOLDEN "attention/in.json", NULL);
        assert_ok(ask(&f, texts, n, &r, &err), &err);
        steps[n - 1] =
            number_at(r, n > 1 ? "predictions.0.simulated_step_ns" : "baseline.simulated_step_ns");
        rp_result_free(r);
        asked_close(&f);
        assert_ok(rp_ctx_new(NULL, &again.ctx, &err), &err);
        assert_ok(rp_open(again.ctx, &out, 1, NULL, &again.dataset, &err), &err);
        assert_ok(ask(&again, NULL, 0, &r, &err), &err);
        assert_in_range(number_at(r, "baseline.step_ns"), steps[n - 1] - 2, steps[n - 1] + 2);
        rp_result_free(r);
        rp_dataset_free(again.dataset);
        rp_ctx_free(again.ctx);
        unlink(path);
    }
    assert_true(steps[1] > steps[0] + 1000000);
    rmdir(folder);
}

/* A factor that is given is used, though nothing tells what recording costs. */
static void a_given_cost_is_used(void **state)
{
    static const char *const texts[] = {"profiler-cost=2"};
    struct rp_result *r = NULL;
    struct asked_file f;
    struct rp_err err;

    UNUSED_STATE(state);
    asked_open(&f, GOLDEN "attention/in.json", NULL);
    assert_ok(ask(&f, texts, 1, &r, &err), &err);
    assert_true(ratio_at(r, "baseline.cost_factor") == 2);
    assert_true(number_at(r, "baseline.span_cost_ns") > 0);
    rp_result_free(r);
    asked_close(&f);
}

static void what_ifs_have_a_limit(void **state)
{
    const char *texts[257];
    struct rp_result *r = NULL;
    struct asked_file f;
    struct rp_err err;

    UNUSED_STATE(state);
    for (size_t i = 0; i < 257; i++)
        texts[i] = "what-if=straggler=ideal";
    asked_open(&f, PIPELINE, NULL);
    assert_code(ask(&f, texts, 257, &r, &err), RP_USAGE);
    assert_contains(err.text, "more than 256 what-ifs");
    assert_ok(ask(&f, texts, 256, &r, &err), &err);
    assert_int_equal(number_at(r, "predictions.255.predicted_ns"), 421500);
    rp_result_free(r);
    asked_close(&f);
}

/* ------------------------------------------------------------------ help */

static void help_lists_what_ifs(void **state)
{
    static const char *const absent[] = {"step_ns",
                                         "simulated_step_ns",
                                         "measured_ns",
                                         "simulated_ns",
                                         "unprofiled_ns",
                                         "unprofiled_low_ns",
                                         "unprofiled_high_ns",
                                         "span_cost_ns",
                                         "cost_factor",
                                         "error_ratio",
                                         "spread_ratio",
                                         "ranks",
                                         "steps",
                                         "tasks",
                                         "edges"};
    const char *const texts[] = {"what-if=scale:gpu=2", "what-if=help"};
    struct asked_file f = {{0}};
    struct rp_result *r = NULL;
    char path[48];
    struct rp_err err = RP_ERR_INIT;
    size_t n = 0;

    UNUSED_STATE(state);
    assert_ok(rp_ctx_new(NULL, &f.ctx, &err), &err);
    assert_code(ask(&f, texts, 1, &r, &err), RP_USAGE);
    assert_contains(err.text, "needs a trace");
    assert_ok(ask(&f, texts, 2, &r, &err), &err);
    for (const char *form, *summary, *assumes; rp_whatifs[n]; n++) {
        snprintf(path, sizeof path, "known.%zu.form", n);
        assert_true(rp_result_text(r, path, &form));
        snprintf(path, sizeof path, "known.%zu.summary", n);
        assert_true(rp_result_text(r, path, &summary));
        snprintf(path, sizeof path, "known.%zu.assumes", n);
        assert_true(rp_result_text(r, path, &assumes));
        assert_string_equal(form, rp_whatifs[n]->form);
        assert_string_equal(summary, rp_whatifs[n]->summary);
        assert_string_equal(assumes, rp_whatifs[n]->assumes);
    }
    snprintf(path, sizeof path, "known.%zu.form", n);
    assert_false(rp_result_text(r, path, &(const char *){0}));
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        snprintf(path, sizeof path, "baseline.%s", absent[i]);
        assert_true(isnan(ratio_at(r, path)));
    }
    rp_result_free(r);
    rp_ctx_free(f.ctx);
}

/* ------------------------------------------------------------------ ranks */

static void equal_parts_are_kept_once(void **state)
{
    struct rp_sim_part a = {0}, b = {0}, c = {0};
    const struct rp_sim_part *parts[] = {&a, &b, &a, &c, &b, &a};
    uint32_t same_as[6] = {9, 9, 9, 9, 9, 9};
    static const uint32_t want[] = {0, 1, 0, 2, 1, 0};

    UNUSED_STATE(state);
    assert_int_equal(rp_sim_keep_different(parts, 6, same_as), 3);
    assert_memory_equal(same_as, want, sizeof want);
    assert_ptr_equal(parts[0], &a);
    assert_ptr_equal(parts[1], &b);
    assert_ptr_equal(parts[2], &c);
}

/* ------------------------------------------------------------------ a pipeline */

struct value {
    const char *path;
    double value; /* NAN: absent */
};

static void check_values(const struct rp_result *r, const struct value *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double value = ratio_at(r, rows[i].path);

        if (isnan(value) != isnan(rows[i].value) || fabs(value - rows[i].value) > 1e-9)
            fail_msg("%s is %.12g and not %.12g", rows[i].path, value, rows[i].value);
    }
}

#define CHECK_VALUES(r, rows) check_values(r, rows, sizeof(rows) / sizeof(rows)[0])

/*
 * Two steps of two stages and two data-parallel ranks. Computes take 50 us, those of the last rank
 * in the second step 100, so the mean of 16 is 56.25. A step is
 *
 *     10 gather, forward, 5 send, 2 (forward and backward) of the second stage, 5 send, backward,
 *     2 + 8 + 20 + 4 of gradients, 30 optimizer
 */
static void a_pipeline_is_measured(void **state)
{
    static const struct value rows[] = {
        {"baseline.step_ns", 624000},
        {"baseline.simulated_step_ns", (384000 + 584000) / 2},
        {"baseline.measured_ns", 624000},
        {"baseline.simulated_ns", 484000},
        {"baseline.unprofiled_ns", 484000},
        {"baseline.span_cost_ns", NAN},
        {"baseline.cost_factor", NAN},
        {"baseline.error_ratio", 484. / 624 - 1},
        {"baseline.spread_ratio", NAN},
        {"baseline.ranks", 4},
        {"baseline.steps", 2},
        {"path.0.ns", 430000},
        {"by_rank.0.rank", 0},
        {"by_rank.0.compute_ns", 230000},
        {"by_rank.0.memory_ns", 0},
        {"by_rank.0.comm_ns", 64000},
        {"by_rank.0.waiting_ns", 0},
        {"by_rank.3.rank", 3},
        {"by_rank.3.host_ns", 0},
        {"by_rank.3.compute_ns", 330000},
        {"by_rank.3.slack_ns", 0},
        {"by_rank.4.rank", NAN},
    };
    struct rp_result *r = NULL;
    struct asked_file f;
    struct rp_err err;

    UNUSED_STATE(state);
    asked_open(&f, PIPELINE, NULL);
    assert_ok(ask(&f, NULL, 0, &r, &err), &err);
    CHECK_VALUES(r, rows);
    assert_true(says(r, "the cost of recording cannot be estimated here"));
    assert_true(says(r, "too few steps to measure how well one step predicts another"));
    assert_false(says(r, "no steps are marked"));
    assert_false(says(r, "expanded"));
    rp_result_free(r);
    asked_close(&f);
}

#define MEAN(a, b) (1000 * ((a) + (b)) / 2)

/* A recv that takes 45 us in place of 5, which is the median, delays the first step. */
static void a_pipeline_without_stragglers(void **state)
{
    static const struct replaced slow[] = {
        {"\"forward-recv\", \"pid\": 0, \"tid\": 11, \"ts\": 60, \"dur\": 5,",
         "\"forward-recv\", \"pid\": 0, \"tid\": 11, \"ts\": 60, \"dur\": 45,"},
        {NULL, NULL}};
    static const struct {
        const char *text;
        double us[2]; /* of the two steps */
    } rows[] = {
        {"what-if=straggler=ideal", {421.5, 421.5}},
        {"what-if=straggler=stage:0", {409, 409}},
        {"what-if=straggler=stage:1", {396.5 + 40, 596.5}},
        {"what-if=straggler=dp:0", {384 + 40, 421.5}},
        {"what-if=straggler=dp:1", {421.5, 584}},
        {"what-if=straggler=type:forward-compute", {402.75, 502.75}},
        {"what-if=straggler=type:backward-compute", {402.75, 502.75}},
        {"what-if=straggler=type:forward-recv", {461.5, 421.5}},
        {"what-if=straggler=type:forward-send", {421.5, 421.5}},
        {"what-if=straggler=type:forward-pp-comm", {461.5, 421.5}},
        {"what-if=straggler=type:backward-pp-comm", {421.5, 421.5}},
    };
    const char *texts[sizeof rows / sizeof *rows];
    struct rp_result *r = NULL;
    struct asked_file f;
    struct rp_err err;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        texts[i] = rows[i].text;
    asked_open(&f, PIPELINE, slow);
    assert_ok(ask(&f, texts, sizeof rows / sizeof *rows, &r, &err), &err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[40];

        snprintf(path, sizeof path, "predictions.%zu.predicted_ns", i);
        if (fabs(ratio_at(r, path) - MEAN(rows[i].us[0], rows[i].us[1])) > 2)
            fail_msg("%s: %.0f ns", rows[i].text, ratio_at(r, path));
    }
    rp_result_free(r);
    asked_close(&f);
}

static void a_pipeline_has_so_many_parts(void **state)
{
    static const struct {
        const char *text;
        enum rp_code code;
        const char *why;
    } rows[] = {
        {"what-if=straggler=stage:2", RP_UNSUPPORTED, "expected 0 to 1"},
        {"what-if=straggler=dp:2", RP_UNSUPPORTED, "expected 0 to 1"},
        {"what-if=straggler=dp:-1", RP_USAGE, "for a pipeline expected"},
        {"what-if=straggler=dp:1x", RP_USAGE, "for a pipeline expected"},
        {"what-if=straggler=dp:", RP_USAGE, "for a pipeline expected"},
        {"what-if=straggler=dp", RP_USAGE, "for a pipeline expected"},
        {"what-if=straggler=rank:0", RP_USAGE, "for a pipeline expected"},
        {"what-if=straggler=type:", RP_USAGE, "for a pipeline expected"},
        {"what-if=straggler=type:none", RP_UNSUPPORTED, "nothing in the timeline is 'none'"},
        {"what-if=straggler=type:forward-pp-commx", RP_UNSUPPORTED, "nothing in the timeline"},
    };
    struct asked_file f;

    UNUSED_STATE(state);
    asked_open(&f, PIPELINE, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rp_result *r = NULL;
        struct rp_err err;

        assert_code(ask(&f, &rows[i].text, 1, &r, &err), rows[i].code);
        assert_contains(err.text, rows[i].why);
    }
    asked_close(&f);
}

/* ------------------------------------------------------------------ jobs */

static void ask_example(const char *path, const char *const *texts, size_t n,
                        const struct value *rows, size_t nrows)
{
    struct asked_file f = {{0}};
    struct rp_result *r = NULL;
    struct rp_err err = RP_ERR_INIT;
    double sum = 0;

    assert_ok(rp_ctx_new(NULL, &f.ctx, &err), &err);
    assert_ok(rp_open(f.ctx, &path, 1, NULL, &f.dataset, &err), &err);
    assert_ok(ask(&f, texts, n, &r, &err), &err);
    check_values(r, rows, nrows);
    for (int i = 0; i < 9; i++) {
        char name[24];

        snprintf(name, sizeof name, "path.%d.ratio", i);
        sum += isnan(ratio_at(r, name)) ? 0 : ratio_at(r, name);
    }
    assert_float_equal(sum, 1, 1e-4); /* but for rounding, the parts of the path are the step */
    rp_result_free(r);
    rp_dataset_free(f.dataset);
    rp_ctx_free(f.ctx);
}

/* Four ranks of dPRO, whose own emulation of the step takes as long (golden dpro_truth). */
static void a_job_of_dpro_is_simulated(void **state)
{
    static const char *const texts[] = {"what-if=parallel-update", "what-if=scale:comm=0.5"};
    static const struct value rows[] = {
        {"baseline.step_ns", 14154003},
        {"baseline.simulated_step_ns", 14134076},
        {"baseline.measured_ns", 14154003},
        {"baseline.unprofiled_ns", 14134076},
        {"baseline.ranks", 4},
        {"baseline.steps", 5},
        {"baseline.tasks", 5700},
        {"baseline.edges", 10400},
        {"path.0.ns", 18000},
        {"path.1.ns", 10726101},
        {"path.2.ns", 2733000},
        {"path.3.ns", 30000},
        {"path.4.ns", 657417},
        {"by_rank.0.host_ns", 54200},
        {"by_rank.0.compute_ns", 10871636},
        {"by_rank.0.memory_ns", 74200},
        {"by_rank.0.comm_ns", 8756200},
        {"by_rank.0.waiting_ns", 896400},
        {"by_rank.0.slack_ns", 446400},
        {"by_rank.3.compute_ns", 11224311},
        {"by_rank.3.waiting_ns", 232400},
        {"by_rank.3.slack_ns", 58400},
        {"predictions.0.predicted_ns", 14050148},
        {"predictions.1.predicted_ns", 12769065},
    };

    UNUSED_STATE(state);
    ask_example(RP_SOURCE_DIR "/examples/dpro.tar.gz", texts, 2, rows, sizeof rows / sizeof *rows);
}

/* Three ranks of BytePS and their servers. */
static void a_job_of_byteps_is_simulated(void **state)
{
    static const char *const texts[] = {"what-if=parallel-update", "what-if=scale:comm=0.5"};
    static const struct value rows[] = {
        {"baseline.step_ns", 8068093},
        {"baseline.simulated_step_ns", 8026988},
        {"baseline.ranks", 3},
        {"baseline.steps", 4},
        {"baseline.tasks", 3228},
        {"baseline.edges", 4584},
        {"path.0.ns", 2562850},
        {"path.1.ns", 5384500},
        {"path.2.ns", 87009},
        {"by_rank.0.host_ns", 0},
        {"by_rank.0.compute_ns", 4413412},
        {"by_rank.0.comm_ns", 4665083},
        {"by_rank.0.waiting_ns", 3101103},
        {"by_rank.0.slack_ns", 31943},
        {"by_rank.1.waiting_ns", 3300415},
        {"by_rank.2.slack_ns", 0},
        {"predictions.0.predicted_ns", 8004493},
        {"predictions.1.predicted_ns", 5640830},
    };

    UNUSED_STATE(state);
    ask_example(RP_SOURCE_DIR "/examples/byteps.tar.gz", texts, 2, rows,
                sizeof rows / sizeof *rows);
}

int test_ask(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_settings_are_refused),
        cmocka_unit_test(a_trace_is_of_one_run),
        cmocka_unit_test(a_trace_of_the_run_is_written),
        cmocka_unit_test(a_given_cost_is_used),
        cmocka_unit_test(what_ifs_have_a_limit),
        cmocka_unit_test(help_lists_what_ifs),
        cmocka_unit_test(equal_parts_are_kept_once),
        cmocka_unit_test(a_pipeline_is_measured),
        cmocka_unit_test(a_pipeline_without_stragglers),
        cmocka_unit_test(a_pipeline_has_so_many_parts),
        cmocka_unit_test(a_job_of_dpro_is_simulated),
        cmocka_unit_test(a_job_of_byteps_is_simulated),
    };

    return cmocka_run_group_tests_name("ask", tests, NULL, NULL);
}
