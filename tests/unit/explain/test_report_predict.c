/* SPDX-License-Identifier: Apache-2.0 */
/* What the report predicts is what simulate predicts, and useless advice is left out. */
#include "ask_fixture.h"
#include "explain/report/report.h"
#include "launch_bound.h"
#include "sim/simulate.h"

#include <math.h>
#include <stdlib.h>

extern const struct rp_question_row rp_ask_report, rp_ask_simulate;

static const struct rp_report_finding *finding_of(const struct rp_report_root *root, const char *id)
{
    size_t i;

    for (i = 0; i < root->nfindings; i++)
        if (!strcmp(root->findings[i].id, id))
            return &root->findings[i];
    return NULL;
}

static void a_prediction_is_that_of_simulate(void **state)
{
    struct rp_trace *t = launch_bound(60 * US, "cudaLaunchKernel", 10 * US);
    struct rp_result *report = ASK_TRACES(report, &t, 1, {"rank", "0"});
    struct rp_result *simulate = ASK_TRACES(simulate, &t, 1, {"what-if", "cuda-graphs"});
    const struct rp_report_root *root = report->root;
    const struct rp_sim_answer *answer = simulate->root;
    const struct rp_report_finding *f = finding_of(root, "launch-bound");

    UNUSED_STATE(state);
    assert_non_null(f);
    assert_string_equal(f->tries[0].what_if, "cuda-graphs");
    assert_string_equal(root->opportunities[0].what_if, "cuda-graphs");
    assert_int_equal(root->opportunities[0].step_ns, answer->predictions[0].predicted_ns);
    assert_string_equal(root->opportunities[0].finding, "launch-bound");
    assert_int_equal(f->tries[0].predicted_ns, answer->predictions[0].predicted_ns);
    assert_int_equal(f->tries[0].step_ns, answer->baseline.unprofiled_ns);
    assert_true(f->tries[0].change_ratio < -0.3);
    assert_int_equal(root->unprofiled_ns, answer->baseline.unprofiled_ns);
    assert_non_null(strstr(root->look[0].first, "simulate: cuda-graphs"));
    assert_null(strstr(f->hint, "simulate"));
    rp_result_free(report);
    rp_result_free(simulate);
    rp_trace_free(t);
}

/* What is recorded once is not predicted. */
static void without_steps_there_is_no_number(void **state)
{
    static const char *const parts[] = {"load", "build", "check", "save"};
    struct rp_trace *t = launch_bound_in(parts, 60 * US, "cudaLaunchKernel", 10 * US);
    struct rp_result *report = ASK_TRACES(report, &t, 1, {"rank", "0"});
    const struct rp_report_root *root = report->root;
    const struct rp_report_finding *f = finding_of(root, "launch-bound");
    size_t i;

    UNUSED_STATE(state);
    assert_int_equal(root->nsteps, 0);
    assert_non_null(f);
    for (i = 0; i < f->ntries; i++) {
        assert_null(f->tries[i].what_if);
        assert_true(isnan(f->tries[i].change_ratio));
    }
    rp_result_free(report);
    rp_trace_free(t);
}

/* The same program on a device of AMD. */
static void advice_is_in_the_words_of_the_vendor(void **state)
{
    struct rp_trace *t = launch_bound(60 * US, "hipLaunchKernel", 10 * US);
    struct rp_result *report = ASK_TRACES(report, &t, 1, {"rank", "0"});
    const struct rp_report_root *root = report->root;
    size_t i;

    UNUSED_STATE(state);
    assert_string_equal(root->workload.vendor, "amd");
    assert_non_null(finding_of(root, "launch-bound"));
    for (i = 0; i < root->nfindings; i++) {
        assert_null(strcasestr(root->findings[i].hint, "cuda"));
        assert_null(strstr(root->findings[i].hint, "ptimizer"));
    }
    for (i = 0; i < root->nlook; i++) { /* but for the name of the what-if */
        const char *at = strcasestr(root->look[i].first, "cuda");

        assert_true(!at || !strncmp(at, "cuda-graphs", 11));
    }
    rp_result_free(report);
    rp_trace_free(t);
}

static void without_a_model_the_what_if_is_named(void **state)
{
    struct rp_trace *t = launch_bound(60 * US, "cudaLaunchKernel", 10 * US);
    struct rp_result *report = ASK_TRACES(report, &t, 1, {"no-simulate", NULL});
    const struct rp_report_root *root = report->root;
    const struct rp_report_finding *f = finding_of(root, "launch-bound");

    UNUSED_STATE(state);
    assert_non_null(f);
    assert_true(isnan(f->tries[0].change_ratio));
    assert_int_equal(root->unprofiled_ns, RP_ABSENT_I64);
    assert_non_null(strstr(root->look[0].first, "'reprise simulate -w cuda-graphs'"));
    rp_result_free(report);
    rp_trace_free(t);
}

static void a_device_that_is_busy_needs_no_model(void **state)
{
    struct rp_trace *t = launch_bound(9 * US, "cudaLaunchKernel", 10 * US);
    struct rp_result *report = ASK_TRACES(report, &t, 1, {"rank", "0"});
    const struct rp_report_root *root = report->root;

    UNUSED_STATE(state);
    assert_null(finding_of(root, "launch-bound"));
    assert_null(root->profiler_text);
    rp_result_free(report);
    rp_trace_free(t);
}

/* n steps of a host that launches too slowly: what a report says of the steps it predicts from;
   NULL: of all. *change_ns: a step with graphs. */
static bool is_part_predicted(size_t steps, size_t ops, int64_t *change_ns)
{
    struct row *rows = calloc(steps * (4 * ops + 1), sizeof *rows);
    int64_t at = 0, device = 0, corr = 0;
    struct rp_result *report;
    struct rp_trace *t;
    size_t n = 0, mark;
    bool part = false;

    assert_non_null(rows);
    for (size_t s = 0; s < steps; s++) {
        mark = n++;
        rows[mark] = (struct row){'X', "user_annotation", "ProfilerStep#1", 1, 1, at};
        rows[mark].name = s % 2 ? "ProfilerStep#1" : "ProfilerStep#2";
        for (size_t i = 0; i < ops; i++, at += 61 * US) {
            int64_t launch = at + 54 * US;

            corr++;
            rows[n++] = (struct row){'X', "cpu_op", "aten::mm", 1, 1, at, 60 * US};
            rows[n++] = (struct row){'X', "cpu_op", "aten::t", 1, 1, at + 100, 600};
            rows[n++] =
                (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, launch, 5 * US, corr};
            device = device > launch + 8 * US ? device : launch + 8 * US;
            rows[n++] = (struct row){'X', "kernel", "gemm", 0, 7, device, 10 * US, corr, 7};
            device += 10 * US;
        }
        rows[mark].dur = at - rows[mark].ts;
        at += US;
    }
    t = trace_of(rows, n);
    report = ASK_TRACES(report, &t, 1, {"rank", "0"});
    {
        const struct rp_report_root *root = report->root;

        assert_true(root->nopportunities > 0);
        assert_string_equal(root->opportunities[0].what_if, "cuda-graphs");
        *change_ns = root->opportunities[0].step_ns;
        for (size_t i = 0; i < root->nnotes; i++)
            part |= strstr(root->notes[i], "changes are predicted from 8 steps") != NULL;
    }
    rp_result_free(report);
    rp_trace_free(t);
    free(rows);
    return part;
}

/* A model of all steps would take longer than the report: some tell as much. */
static void a_long_recording_is_predicted_from_some_steps(void **state)
{
    int64_t all, some;

    UNUSED_STATE(state);
    assert_false(is_part_predicted(16, 1550, &all));
    assert_true(is_part_predicted(16, 1600, &some));
    assert_true(fabs((double)some / 1600 - (double)all / 1550) < 0.01 * (double)all / 1550);
}

int test_report_predict(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prediction_is_that_of_simulate),
        cmocka_unit_test(without_steps_there_is_no_number),
        cmocka_unit_test(advice_is_in_the_words_of_the_vendor),
        cmocka_unit_test(without_a_model_the_what_if_is_named),
        cmocka_unit_test(a_device_that_is_busy_needs_no_model),
        cmocka_unit_test(a_long_recording_is_predicted_from_some_steps),
    };

    return cmocka_run_group_tests_name("report predict", tests, NULL, NULL);
}
