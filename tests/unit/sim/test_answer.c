/* SPDX-License-Identifier: Apache-2.0 */
/* What the answer of a simulation says besides its numbers, and where it says it. */
#include "run_fixtures.h"
#include "sim/model/steps.h"
#include "sim/simulate.h"

#include <math.h>

static const struct step_shape usual = {40000, true, false};

struct answered {
    struct rp_arena arena;
    struct rp_sim_answer answer;
};

static struct rp_sim_answer *answer_of(struct bench *b, const struct rp_sim_asked *asked,
                                       struct answered *out)
{
    struct rp_err err = RP_ERR_INIT;

    *out = (struct answered){.arena = RP_ARENA_INIT};
    assert_ok(rp_sim_answer(b->list, b->n, asked, &out->arena, &out->answer, &err), &err);
    return &out->answer;
}

static bool says(const struct rp_sim_answer *a, const char *part)
{
    for (size_t i = 0; i < a->nnotes; i++)
        if (strstr(a->notes[i], part))
            return true;
    return false;
}

/* Whether the answer without a what-if says so. */
static bool baseline_says(struct bench *b, const char *part)
{
    const struct rp_sim_asked asked = {0};
    struct answered out;
    bool said = says(answer_of(b, &asked, &out), part);

    rp_arena_release(&out.arena);
    return said;
}

/* ------------------------------------------------------------------ the cost of recording */

static void what_recording_wrote_is_named(void **state)
{
    static const struct {
        bool shapes, frames;
        const char *text;
    } rows[] = {{true, false, "the cost of recording shapes is removed, too"},
                {false, true, "the cost of recording Python frames is removed, too"},
                {true, true, "the cost of recording shapes and Python frames is removed, too"}};
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    b.parts[0].quick_ns = 400;
    assert_false(baseline_says(&b, "is removed, too"));
    for (size_t i = 0; i < 3; i++) {
        b.parts[0].with_shapes = rows[i].shapes;
        b.parts[0].with_frames = rows[i].frames;
        assert_true(baseline_says(&b, rows[i].text));
    }
    b.parts[0].quick_ns = 0;
    assert_false(baseline_says(&b, "is removed, too"));
    assert_true(baseline_says(&b, "predictions are for the recorded speed"));
    bench_release(&b);
}

/* The baseline has the cost of a span where it is known. */
static void the_cost_of_a_span_is_in_the_baseline(void **state)
{
    const struct rp_sim_asked asked = {0}, twice = {.cost_factor = 2};
    struct answered out;
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    answer_of(&b, &asked, &out);
    assert_int_equal(out.answer.baseline.span_cost_ns, RP_ABSENT_I64);
    assert_true(isnan(out.answer.baseline.cost_factor));
    rp_arena_release(&out.arena);
    b.parts[0].quick_ns = 600;
    answer_of(&b, &asked, &out);
    assert_int_equal(out.answer.baseline.span_cost_ns, 2640); /* 4.4 times a quick operator */
    assert_true(out.answer.baseline.cost_factor == 1);
    rp_arena_release(&out.arena);
    answer_of(&b, &twice, &out);
    assert_int_equal(out.answer.baseline.span_cost_ns, 5280);
    assert_true(out.answer.baseline.cost_factor == 2);
    rp_arena_release(&out.arena);
    bench_release(&b);
}

static void a_given_step_is_judged(void **state)
{
    const struct rp_sim_asked longer = {.unprofiled_ns = 200000}, same = {.unprofiled_ns = 96000};
    struct answered out;
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    b.parts[0].quick_ns = 1500;
    answer_of(&b, &longer, &out);
    assert_true(says(&out.answer, "the given unprofiled step is not shorter than the recorded"));
    assert_true(out.answer.baseline.cost_factor == 0);
    assert_int_equal(out.answer.baseline.unprofiled_ns, 100000);
    rp_arena_release(&out.arena);
    answer_of(&b, &same, &out);
    assert_in_range(out.answer.baseline.unprofiled_ns, 95000, 97000);
    rp_arena_release(&out.arena);
    bench_release(&b);
}

static void a_flat_step_says_nothing_about_the_cost(void **state)
{
    const struct step_shape device = {80000, true, false};
    const struct rp_sim_asked asked = {.unprofiled_ns = 99900};
    struct answered out;
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &device);
    b.parts[0].quick_ns = 100;
    answer_of(&b, &asked, &out);
    assert_true(says(&out.answer, "the step hardly depends on the cost of recording"));
    assert_true(out.answer.baseline.cost_factor == 1);
    rp_arena_release(&out.arena);
    bench_release(&b);
}

/* ------------------------------------------------------------------ the steps */

static void steps_are_described(void **state)
{
    uint8_t bare[] = {0, 1, 0};
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    assert_false(baseline_says(&b, "recorded without detail"));
    assert_false(baseline_says(&b, "no steps are marked"));
    assert_false(baseline_says(&b, RP_SIM_START_UP));
    assert_false(baseline_says(&b, "contradict the recorded times"));
    b.parts[0].graph.ndropped = 7;
    assert_true(baseline_says(&b, "7 dependencies contradict the recorded times"));
    b.parts[0].graph.ndropped = 0;
    b.parts[0].start_up = true;
    assert_true(baseline_says(&b, RP_SIM_START_UP ": no prediction here is about those"));
    b.parts[0].start_up = false;
    __typeof__(b.parts[0].bare) own = b.parts[0].bare;
    b.parts[0].bare.at = bare;
    b.parts[0].bare.n = 3;
    assert_true(baseline_says(&b, "from 2 of 3 steps: the others were recorded without detail"));
    b.parts[0].bare = own;
    bench_release(&b);
}

/* What was found while a part was made is passed on. */
static void remarks_are_notes(void **state)
{
    const char *remarks[] = {"the first remark", "another one"};
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    __typeof__(b.parts[0].remarks) own = b.parts[0].remarks;
    b.parts[0].remarks.at = remarks;
    b.parts[0].remarks.n = 2;
    assert_true(baseline_says(&b, "the first remark"));
    assert_true(baseline_says(&b, "another one"));
    b.parts[0].remarks = own;
    bench_release(&b);
}

/* Equal steps that are reproduced say nothing about an error; one step spreads as others do. */
static void how_far_off_may_be_unknown(void **state)
{
    const struct rp_sim_asked asked = {0};
    struct answered out;
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    b.parts[0].spread_ratio = 0;
    answer_of(&b, &asked, &out);
    assert_int_equal(out.answer.baseline.unprofiled_low_ns, RP_ABSENT_I64);
    assert_int_equal(out.answer.baseline.unprofiled_high_ns, RP_ABSENT_I64);
    assert_true(says(&out.answer, "is not known: all steps took the same time"));
    rp_arena_release(&out.arena);
    b.parts[0].spread_ratio = NAN;
    answer_of(&b, &asked, &out);
    assert_int_equal(out.answer.baseline.unprofiled_low_ns, llround(100000 / 1.03));
    assert_int_equal(out.answer.baseline.unprofiled_high_ns, 103000);
    assert_true(
        says(&out.answer, "one step was recorded: intervals assume that steps differ by 3 %"));
    rp_arena_release(&out.arena);
    b.parts[0].spread_ratio = 0.1;
    answer_of(&b, &asked, &out);
    assert_int_equal(out.answer.baseline.unprofiled_low_ns, llround(100000 / 1.1));
    assert_int_equal(out.answer.baseline.unprofiled_high_ns, 110000);
    assert_float_equal(out.answer.baseline.spread_ratio, 0.1, 1e-12);
    assert_false(says(&out.answer, "one step was recorded"));
    assert_false(says(&out.answer, "is not known"));
    rp_arena_release(&out.arena);
    bench_release(&b);
}

/* ------------------------------------------------------------------ intervals and their reasons */

/* The prediction of a change where steps differ by so much and the model is off by so much. */
static struct rp_sim_prediction predicted(const char *text, double spread, double error,
                                          bool on_host, bool *explained)
{
    const struct step_shape shape = {40000, !on_host, false};
    const struct rp_sim_asked asked = {.whatifs = &text, .nwhatifs = 1};
    struct rp_sim_prediction p;
    struct answered out;
    struct bench b;

    bench_init(&b, 1, &shape);
    b.parts[0].collectives.on_host = on_host;
    b.parts[0].spread_ratio = spread;
    b.parts[0].measured_ns = llround(100000 / (1 + error));
    p = answer_of(&b, &asked, &out)->predictions[0];
    *explained = says(&out.answer, "; uncertain mainly because ");
    rp_arena_release(&out.arena);
    bench_release(&b);
    return p;
}

static void intervals_have_a_reason(void **state)
{
    struct rp_sim_prediction p;
    bool explained;

    UNUSED_STATE(state);
    p = predicted("scale:all=2", 0.1, 0, false, &explained);
    assert_string_equal(p.uncertain, "the recorded steps differ");
    assert_int_equal(p.low_ns, llround(200000 / 1.1));
    assert_int_equal(p.high_ns, 220000);
    assert_false(explained); /* 1.21 */
    p = predicted("scale:all=2", 0.12, 0, false, &explained);
    assert_true(explained); /* 1.2544 */
    p = predicted("scale:all=2", 0.1, 0.25, false, &explained);
    assert_string_equal(p.uncertain, "the model does not reproduce the recorded step exactly");
    assert_int_equal(p.low_ns, llround(200000 / 1.35));
    assert_int_equal(p.high_ns, 270000);
    assert_float_equal(p.change_ratio, 1, 1e-9);
    assert_float_equal(p.change_low_ratio, 2 / 1.175 - 1, 1e-6);
    assert_float_equal(p.change_high_ratio, 2 * 1.175 - 1, 1e-6);
    p = predicted("scale:all=2", NAN, 0, false, &explained);
    assert_string_equal(p.uncertain, "one step was recorded, and others may differ from it");
    p = predicted("scale:all=2", 0, 0, false, &explained);
    assert_null(p.uncertain);
    assert_int_equal(p.low_ns, RP_ABSENT_I64);
    assert_true(isnan(p.change_low_ratio) && isnan(p.change_high_ratio));
    p = predicted("scale:all=2", 0.001, 0, true, &explained);
    assert_string_equal(p.uncertain, "runs differ where threads carry the collectives");
}

/* ------------------------------------------------------------------ what is noted about changes */

static void changes_are_noted(void **state)
{
    static const char *const texts[] = {"scale:gpu=2", "ranks=8", "scale:sgemm_128=0.5"};
    const struct rp_sim_asked asked = {.whatifs = texts, .nwhatifs = 3};
    struct rp_sim_prediction *p;
    struct answered out;
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    p = answer_of(&b, &asked, &out)->predictions;
    assert_int_equal(out.answer.npredictions, 3);
    assert_string_equal(p[0].what_if, "scale:gpu=2");
    assert_null(p[0].impossible);
    assert_non_null(p[0].bound_by);
    assert_true(says(&out.answer, "scale:gpu=2: assumes that "));
    assert_string_equal(p[1].impossible, "ranks: no communication was recorded");
    assert_int_equal(p[1].simulated_step_ns, RP_ABSENT_I64);
    assert_int_equal(p[1].simulated_ns, RP_ABSENT_I64);
    assert_int_equal(p[1].low_ns, RP_ABSENT_I64);
    assert_int_equal(p[1].high_ns, RP_ABSENT_I64);
    assert_true(isnan(p[1].change_ratio) && isnan(p[1].change_low_ratio));
    assert_true(isnan(p[1].change_high_ratio));
    assert_non_null(p[1].assumes);
    assert_true(says(&out.answer, "ranks: no communication was recorded"));
    assert_false(says(&out.answer, "ranks=8: assumes"));
    assert_int_equal(p[2].tries, 0);
    rp_arena_release(&out.arena);
    bench_release(&b);
}

/* The path of the usual step: 40 of the product, 20 of the others, and the host before them. */
static void the_path_is_in_the_baseline(void **state)
{
    const struct rp_sim_asked asked = {0};
    struct rp_sim_answer *a;
    struct answered out;
    struct bench b;
    double sum = 0;
    int64_t kernels = 0, total = 0;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    a = answer_of(&b, &asked, &out);
    for (size_t i = 0; i < a->npath; i++) {
        assert_true(a->path[i].ns > 0);
        sum += a->path[i].ratio;
        total += a->path[i].ns;
        if (!strcmp(a->path[i].what, "kernels"))
            kernels = a->path[i].ns;
    }
    assert_int_equal(total, 100000);
    assert_float_equal(sum, 1, 1e-9);
    assert_int_equal(kernels, 60000);
    assert_int_equal(a->nby_rank, 0);
    assert_int_equal(a->baseline.ranks, 1);
    assert_int_equal(a->baseline.steps, 3);
    assert_int_equal(a->baseline.tasks, b.run.tasks.tasks.n);
    assert_int_equal(a->baseline.edges, b.run.tasks.edges.n);
    assert_int_equal(a->baseline.measured_ns, 100000);
    assert_int_equal(a->baseline.simulated_ns, 100000);
    assert_true(a->baseline.error_ratio == 0);
    rp_arena_release(&out.arena);
    bench_release(&b);
}

/* ------------------------------------------------------------------ ranks */

static void expanded_collectives_are_counted(void **state)
{
    const struct step_shape shapes[] = {{40000, false, false}, {46000, false, false}};
    struct rp_sim_asked asked = {.expand = {.shape = RP_EXPAND_RING}};
    struct answered out;
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 2, shapes);
    answer_of(&b, &asked, &out);
    assert_true(says(&out.answer, "3 collectives are expanded into their hops; 0 are not"));
    rp_arena_release(&out.arena);
    asked.expand.shape = RP_EXPAND_WHOLE;
    answer_of(&b, &asked, &out);
    assert_false(says(&out.answer, "expanded"));
    rp_arena_release(&out.arena);
    bench_release(&b);
    bench_init(&b, 1, &usual);
    asked.expand.shape = RP_EXPAND_RING;
    answer_of(&b, &asked, &out);
    assert_true(says(&out.answer, "nothing was expanded"));
    rp_arena_release(&out.arena);
    bench_release(&b);
}

static void ranks_without_common_collectives_are_one(void **state)
{
    const struct step_shape shapes[] = {{40000, true, false}, {46000, true, false}};
    static const int32_t numbers[] = {4, 7};
    const struct rp_sim_asked asked = {.numbers = numbers};
    struct answered out;
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 2, shapes);
    answer_of(&b, &asked, &out);
    assert_true(says(&out.answer, "the 2 ranks share no collectives: only the first is simulated"));
    assert_int_equal(out.answer.baseline.ranks, 1);
    assert_int_equal(out.answer.nby_rank, 0);
    rp_arena_release(&out.arena);
    bench_release(&b);
}

/* The second rank's product takes 6 us more: the first one waits for it in each step, and could be
   so much later. */
static void ranks_are_described(void **state)
{
    const struct step_shape shapes[] = {{40000, false, false}, {46000, false, false}};
    static const int32_t numbers[] = {4, 7};
    const struct rp_sim_asked asked = {.numbers = numbers};
    const struct rp_sim_rank *r;
    struct answered out;
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 2, shapes);
    r = answer_of(&b, &asked, &out)->by_rank;
    assert_int_equal(out.answer.nby_rank, 2);
    assert_int_equal(r[0].rank, 4);
    assert_int_equal(r[1].rank, 7);
    assert_int_equal(r[0].compute_ns, 60000);
    assert_int_equal(r[1].compute_ns, 66000);
    assert_int_equal(r[0].memory_ns, 0);
    assert_int_equal(r[0].comm_ns, 14000); /* after the other rank came */
    assert_int_equal(r[1].comm_ns, 20000);
    assert_int_equal(r[0].waiting_ns, 6000);
    assert_int_equal(r[1].waiting_ns, 0);
    assert_int_equal(r[0].slack_ns, 6000);
    assert_int_equal(r[1].slack_ns, 0);
    assert_false(says(&out.answer, "without a counterpart"));
    rp_arena_release(&out.arena);
    bench_release(&b);
}

int test_answer(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_recording_wrote_is_named),
        cmocka_unit_test(the_cost_of_a_span_is_in_the_baseline),
        cmocka_unit_test(a_given_step_is_judged),
        cmocka_unit_test(a_flat_step_says_nothing_about_the_cost),
        cmocka_unit_test(steps_are_described),
        cmocka_unit_test(remarks_are_notes),
        cmocka_unit_test(how_far_off_may_be_unknown),
        cmocka_unit_test(intervals_have_a_reason),
        cmocka_unit_test(changes_are_noted),
        cmocka_unit_test(the_path_is_in_the_baseline),
        cmocka_unit_test(expanded_collectives_are_counted),
        cmocka_unit_test(ranks_without_common_collectives_are_one),
        cmocka_unit_test(ranks_are_described),
    };

    return cmocka_run_group_tests_name("answer", tests, NULL, NULL);
}
