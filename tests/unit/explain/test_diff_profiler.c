/* SPDX-License-Identifier: Apache-2.0 */
/* A change of the device that recording hides: the host limits the recorded base. */
#include "ask_fixture.h"
#include "explain/diff/diff.h"
#include "launch_bound.h"
#include "sim/simulate.h"

extern const struct rp_question_row rp_ask_simulate;

struct comparison {
    struct rp_arena arena;
    struct rp_trace_diff_part parts[2];
    struct rp_trace_diff_root root;
};

static void make_parts(struct comparison *c, struct rp_trace *a, struct rp_trace *b, bool simulate)
{
    const struct rp_trace *of[2] = {a, b};
    int s;

    memset(c, 0, sizeof *c);
    for (s = 0; s < 2; s++) {
        assert_code(rp_trace_diff_rank(of[s], NULL, NULL, simulate, &c->arena, &c->parts[s], NULL),
                    RP_OK);
        assert_code(rp_part_adopt(&rp_trace_diff_part_type, &c->parts[s], &c->arena, NULL), RP_OK);
    }
}

static void join(struct comparison *c, double fail_share)
{
    struct rp_trace_diff_options options = {
        .paths = {"a.json", "b.json"}, .fail_share = fail_share, .fail_ns = -1};
    struct rp_trace_diff_input in[2] = {{&c->parts[0], 0}, {&c->parts[1], 0}};

    assert_code(rp_trace_diff_join(&in[0], 1, &in[1], 1, &options, &c->arena, &c->root, NULL),
                RP_OK);
}

static void compare(struct comparison *c, struct rp_trace *a, struct rp_trace *b, bool simulate,
                    double fail_share)
{
    make_parts(c, a, b, simulate);
    join(c, fail_share);
}

static void release(struct comparison *c, struct rp_trace *a, struct rp_trace *b)
{
    rp_arena_release(&c->arena);
    rp_trace_free(a);
    rp_trace_free(b);
}

static bool has_note(const struct rp_trace_diff_root *root, const char *text)
{
    size_t i;

    for (i = 0; i < root->nnotes && !strstr(root->notes[i], text); i++)
        ;
    return i < root->nnotes;
}

static const char *call = "cudaLaunchKernel";

/* Recorded, the host takes 21 us for a kernel in both runs; the kernels grow from 10 to 20 us. */
static void recording_may_hide_a_change(void **state)
{
    struct rp_trace *a = launch_bound(20 * US, call, 10 * US);
    struct rp_trace *b = launch_bound(20 * US, call, 20 * US + 500);
    struct rp_result *simulate = ASK_TRACES(simulate, &a, 1, {"rank", "0"});
    const struct rp_sim_answer *answer = simulate->root;
    const struct rp_trace_diff_root *root;
    struct comparison c;

    UNUSED_STATE(state);
    compare(&c, a, b, true, 0.05);
    root = &c.root;
    assert_int_equal(root->base.unprofiled_ns, answer->baseline.unprofiled_ns);
    assert_int_equal(root->base.unprofiled_low_ns, answer->baseline.unprofiled_low_ns);
    assert_int_equal(root->base.unprofiled_high_ns, answer->baseline.unprofiled_high_ns);
    assert_int_equal(root->unprofiled_delta_ns,
                     root->new_run.unprofiled_ns - root->base.unprofiled_ns);
    assert_string_equal(root->verdict, "same");
    assert_string_equal(root->unprofiled_verdict, "slower");
    assert_true(root->contradicted);
    assert_false(root->failed); /* the recorded steps decide */
    assert_non_null(strstr(root->verdict_text, "same as recorded: 0 ns (+0.0 %)"));
    assert_non_null(strstr(root->verdict_text, "; slower without the profiler: about +"));
    assert_non_null(strstr(root->verdict_text, ": passed as recorded, fails without the profiler"));
    assert_non_null(strstr(root->profiler_text, "without it about "));
    assert_true(has_note(root, "'--fail-over' decides by the recorded steps"));
    rp_result_free(simulate);
    release(&c, a, b);
}

/* The other way round: what the gate fails for is the cost of recording. */
static void recording_may_be_the_change(void **state)
{
    struct rp_trace *a = launch_bound(9 * US, call, 18 * US);
    struct rp_trace *b = launch_bound(20 * US, call, 18 * US);
    struct comparison c;

    UNUSED_STATE(state);
    compare(&c, a, b, true, 0.05);
    assert_string_equal(c.root.verdict, "slower");
    assert_true(c.root.failed);
    assert_true(c.root.contradicted);
    assert_string_equal(c.root.unprofiled_verdict, "same");
    /* the device of the base hardly waits: it needs no model */
    assert_false(c.parts[0].modelled);
    assert_int_equal(c.root.base.unprofiled_ns, c.root.base.step_ns);
    assert_int_equal(c.root.base.unprofiled_high_ns, c.root.base.step_ns);
    assert_int_equal(c.root.base.unprofiled_low_ns,
                     c.root.base.step_ns - c.parts[0].time_ns[RP_DIFF_IDLE]);
    assert_non_null(
        strstr(c.root.verdict_text, ": failed as recorded, passes without the profiler"));
    assert_non_null(strstr(c.root.profiler_text, "and with it the new step"));
    release(&c, a, b);
}

static void the_same_verdict_is_no_contradiction(void **state)
{
    struct rp_trace *a = launch_bound(20 * US, call, 10 * US);
    struct rp_trace *b = launch_bound(40 * US, call, 10 * US);
    struct comparison c;

    UNUSED_STATE(state);
    compare(&c, a, b, true, -1);
    assert_string_equal(c.root.verdict, "slower");
    assert_string_equal(c.root.unprofiled_verdict, "slower");
    assert_false(c.root.contradicted);
    assert_null(strstr(c.root.verdict_text, "profiler"));
    assert_non_null(strstr(c.root.profiler_text, "and with it both steps"));
    release(&c, a, b);
}

static void nothing_is_said_where_recording_costs_nothing(void **state)
{
    struct rp_trace *a = launch_bound(9 * US, call, 18 * US);
    struct rp_trace *b = launch_bound(9 * US, call, 20 * US);
    struct comparison c;

    UNUSED_STATE(state);
    compare(&c, a, b, true, -1);
    assert_null(c.root.profiler_text);
    assert_null(c.root.unprofiled_verdict);
    assert_int_equal(c.root.base.unprofiled_ns, RP_ABSENT_I64);
    assert_int_equal(c.root.new_run.unprofiled_low_ns, RP_ABSENT_I64);
    assert_int_equal(c.root.unprofiled_delta_ns, RP_ABSENT_I64);
    release(&c, a, b);
}

static void no_simulate_says_nothing(void **state)
{
    struct rp_trace *a = launch_bound(20 * US, call, 10 * US);
    struct rp_trace *b = launch_bound(20 * US, call, 20 * US + 500);
    struct comparison c;

    UNUSED_STATE(state);
    compare(&c, a, b, false, -1);
    assert_false(c.parts[0].modelled);
    assert_null(c.root.profiler_text);
    assert_null(strstr(c.root.verdict_text, "profiler"));
    release(&c, a, b);
}

/* One run alone: what is known of it is said, and no verdict. */
static void one_run_may_be_unknown(void **state)
{
    struct rp_trace *a = launch_bound(20 * US, call, 10 * US);
    struct rp_trace *b = launch_bound(20 * US, call, 12 * US);
    struct comparison c;

    UNUSED_STATE(state);
    make_parts(&c, a, b, true);
    c.parts[1].modelled = false;
    join(&c, -1);
    assert_true(c.root.base.unprofiled_ns < c.root.base.step_ns);
    assert_int_equal(c.root.new_run.unprofiled_ns, RP_ABSENT_I64);
    assert_null(c.root.unprofiled_verdict);
    assert_non_null(strstr(c.root.profiler_text, " -> unknown: "));
    release(&c, a, b);
}

/* A rank that waits for others, whose traces are not here. */
static void absent_ranks_leave_it_unknown(void **state)
{
    struct rp_trace *a = launch_bound(20 * US, call, 10 * US);
    struct rp_trace *b = launch_bound(20 * US, call, 20 * US + 500);
    struct comparison c;

    UNUSED_STATE(state);
    make_parts(&c, a, b, true);
    c.parts[0].world_size = 8;
    c.parts[0].cause_ns[RP_GAP_OTHER_RANK] = c.parts[0].median_ns / 10;
    join(&c, -1);
    assert_null(c.root.profiler_text);
    c.parts[0].cause_ns[RP_GAP_OTHER_RANK] = 0; /* one of a job that hardly communicates */
    join(&c, -1);
    assert_non_null(c.root.profiler_text);
    release(&c, a, b);
}

/* Whether the new run is known although nothing models it: its device waits so long, in two ways.
 */
static bool is_known_by_waits(int64_t comm_ns, int64_t idle_ns)
{
    struct rp_trace *a = launch_bound(20 * US, call, 10 * US);
    struct rp_trace *b = launch_bound(20 * US, call, 12 * US);
    struct comparison c;
    bool known;

    make_parts(&c, a, b, true);
    c.parts[1].modelled = false;
    c.parts[1].median_ns = 100000;
    c.parts[1].time_ns[RP_DIFF_COMM] = comm_ns;
    c.parts[1].time_ns[RP_DIFF_IDLE] = idle_ns;
    join(&c, -1);
    known = c.root.new_run.unprofiled_ns != RP_ABSENT_I64;
    if (known) {
        assert_int_equal(c.root.new_run.unprofiled_ns, c.root.new_run.step_ns);
        assert_int_equal(c.root.new_run.unprofiled_low_ns,
                         c.root.new_run.step_ns - comm_ns - idle_ns);
    }
    c.parts[1].on_device = false; /* then it is unknown what waits */
    join(&c, -1);
    assert_int_equal(c.root.new_run.unprofiled_ns, RP_ABSENT_I64);
    release(&c, a, b);
    return known;
}

/* Less than 3 % of the step. */
static void short_waits_need_no_model(void **state)
{
    UNUSED_STATE(state);
    assert_true(is_known_by_waits(0, 2999));
    assert_true(is_known_by_waits(1500, 1499));
    assert_false(is_known_by_waits(0, 3000));
    assert_false(is_known_by_waits(3000, 0));
}

/* Whether the base is known where this is waited for, and so many ranks took part; 0: not known. */
static bool is_known_of(int32_t ranks, double waits)
{
    struct rp_trace *a = launch_bound(20 * US, call, 10 * US);
    struct rp_trace *b = launch_bound(20 * US, call, 20 * US + 500);
    struct comparison c;
    bool known;

    make_parts(&c, a, b, true);
    c.parts[0].world_size = ranks;
    c.parts[0].cause_ns[RP_GAP_OTHER_RANK] = (int64_t)(waits * (double)c.parts[0].median_ns);
    join(&c, -1);
    known = c.root.profiler_text != NULL;
    release(&c, a, b);
    return known;
}

static void waits_for_absent_ranks_have_an_edge(void **state)
{
    UNUSED_STATE(state);
    assert_true(is_known_of(1, 0.1)); /* nobody is absent */
    assert_false(is_known_of(2, 0.1));
    assert_false(is_known_of(0, 0.1));
    assert_true(is_known_of(2, 0.029));
    assert_false(is_known_of(2, 0.031));
}

int test_diff_profiler(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recording_may_hide_a_change),
        cmocka_unit_test(recording_may_be_the_change),
        cmocka_unit_test(the_same_verdict_is_no_contradiction),
        cmocka_unit_test(nothing_is_said_where_recording_costs_nothing),
        cmocka_unit_test(no_simulate_says_nothing),
        cmocka_unit_test(one_run_may_be_unknown),
        cmocka_unit_test(absent_ranks_leave_it_unknown),
        cmocka_unit_test(short_waits_need_no_model),
        cmocka_unit_test(waits_for_absent_ranks_have_an_edge),
    };

    return cmocka_run_group_tests_name("diff profiler", tests, NULL, NULL);
}
