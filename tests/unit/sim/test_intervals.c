/* SPDX-License-Identifier: Apache-2.0 */
/* How far predictions may be off, and which gains are worth a change. */
#include "outcomes/outcomes.h"
#include "run_fixtures.h"
#include "sim/model/profiler_cost.h"
#include "sim/opportunities.h"
#include "sim/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static const struct step_shape usual = {40000, true, false};

/* Of a run of one rank: the prediction of `text` alone, where threads carry its collectives or not.
 */
static struct rp_sim_prediction predicted(const char *text, const struct step_shape *shape,
                                          bool on_host)
{
    struct rp_sim_asked asked = {.whatifs = &text, .nwhatifs = 1};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_sim_answer answer = {0};
    struct rp_sim_prediction p;
    struct bench b;

    bench_init(&b, 1, shape);
    b.parts[0].collectives.on_host = on_host;
    b.parts[0].spread_ratio = 0.002;
    assert_code(rp_sim_answer(b.list, 1, &asked, &arena, &answer, NULL), RP_OK);
    p = answer.predictions[0];
    rp_arena_release(&arena);
    bench_release(&b);
    return p;
}

/* Three steps of 100 us that are alike, and that the model reproduces. */
static void runs_differ_at_least(void **state)
{
    struct rp_sim_prediction p = predicted("scale:all=2", &usual, false);

    UNUSED_STATE(state);
    assert_int_equal(p.predicted_ns, 200000);
    assert_int_equal(p.low_ns, 197044); /* 200,000 / 1.015 */
    assert_int_equal(p.high_ns, 203000);
    assert_float_equal(p.change_low_ratio, 2 / 1.001 - 1, 1e-6); /* half of how steps differ */
    assert_float_equal(p.change_high_ratio, 2 * 1.001 - 1, 1e-6);
}

/* And half of that between two runs. */
static void runs_of_the_host_differ(void **state)
{
    const struct step_shape shape = {40000, false, false};
    struct rp_sim_prediction p = predicted("scale:all=2", &shape, true);

    UNUSED_STATE(state);
    assert_int_equal(p.predicted_ns, 200000);
    assert_true(p.high_ns >= 216000 && p.high_ns < 219000);
    assert_true(p.change_high_ratio >= 2 * 1.04 - 1 - 1e-9 && p.change_high_ratio < 1.09);
}

static int64_t step_with_cost(struct bench *b, double factor)
{
    size_t mark = rp_overlay_mark(&b->run.overlay);
    int64_t ns;

    b->run.cost_factor = 1;
    assert_code(rp_sim_cost_drop(&b->run, factor, NULL), RP_OK);
    ns = step_now(b);
    rp_overlay_undo(&b->run.overlay, mark);
    return ns;
}

static void worlds_differ_in_the_profilers_cost(void **state)
{
    int64_t steps[RP_WORLDS];
    struct rp_worlds x;
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    b.parts[0].quick_ns = 400;
    assert_code(rp_worlds_init(&x, b.list, 1, NULL, NULL), RP_OK);
    assert_code(rp_worlds_steps(&x, "", NULL, steps, NULL), RP_OK);
    assert_int_equal(steps[0], step_with_cost(&b, 1));
    assert_int_equal(steps[RP_LEANS], step_with_cost(&b, 0.5));
    assert_int_equal(steps[RP_LEANS + 1], step_with_cost(&b, 1.5));
    assert_true(steps[RP_LEANS] > steps[0] && steps[0] > steps[RP_LEANS + 1]);
    rp_worlds_release(&x);
    b.parts[0].recorder.ours = true; /* of which less is known */
    assert_code(rp_worlds_init(&x, b.list, 1, NULL, NULL), RP_OK);
    assert_code(rp_worlds_steps(&x, "", NULL, steps, NULL), RP_OK);
    assert_int_equal(steps[RP_LEANS], step_with_cost(&b, 0.5));
    assert_int_equal(steps[RP_LEANS + 1], step_with_cost(&b, 2.5));
    rp_worlds_release(&x);
    bench_release(&b);
}

/* A step with a change on a host that pays another cost, applied from nothing. */
static int64_t changed_with_cost(struct bench *b, double factor, const char *text)
{
    size_t mark = rp_overlay_mark(&b->run.overlay);
    int64_t ns;

    b->run.cost_factor = 1;
    assert_code(rp_sim_cost_drop(&b->run, factor, NULL), RP_OK);
    assert_code(rp_whatif_apply(&b->run, text, NULL), RP_OK);
    ns = step_now(b);
    rp_overlay_undo(&b->run.overlay, mark);
    memset(b->run.gone.at, 0, b->run.gone.n);
    return ns;
}

/* A change that is asked for first, before anything was simulated at these costs, and again. */
static void a_change_differs_in_the_profilers_cost(void **state)
{
    static const char *const texts[] = {"scale:host=0.5", "no-sync", "cuda-graphs",
                                        "fused-optimizer+scale:host=0.5", "scale:host=3"};
    int64_t steps[RP_WORLDS];
    struct bench b;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct rp_err why = RP_ERR_INIT;
        struct rp_worlds x;

        bench_init(&b, 1, &usual);
        b.parts[0].quick_ns = 400;
        assert_code(rp_worlds_init(&x, b.list, 1, NULL, NULL), RP_OK);
        if (rp_worlds_steps(&x, texts[i], NULL, steps, &why) == RP_OK) {
            assert_in_range(steps[RP_LEANS] - changed_with_cost(&b, 0.5, texts[i]) + 2, 0, 4);
            assert_in_range(steps[RP_LEANS + 1] - changed_with_cost(&b, 1.5, texts[i]) + 2, 0, 4);
        } else {
            assert_int_equal(why.code, RP_UNSUPPORTED);
        }
        rp_worlds_release(&x);
        bench_release(&b);
    }
}

/* A tenth of it, where a measured step says what it is. */
static void a_known_cost_is_doubted_less(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_sim_asked asked = {.cost_factor = 1};
    struct rp_sim_answer answer = {0};
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    b.parts[0].quick_ns = 1500;
    assert_code(rp_sim_answer(b.list, 1, &asked, &arena, &answer, NULL), RP_OK);
    assert_int_equal(answer.baseline.unprofiled_low_ns,
                     llround((double)step_with_cost(&b, 1.1) / 1.015));
    assert_int_equal(answer.baseline.unprofiled_high_ns,
                     llround((double)step_with_cost(&b, 0.9) * 1.015));
    rp_arena_release(&arena);
    bench_release(&b);
}

/* Whether no gain is sure because steps of these lengths are too unlike. */
static bool are_unlike(int64_t first, int64_t second, int64_t third)
{
    const int64_t ns[] = {first, second, third};
    struct rp_worlds x;
    struct bench b;
    bool unlike;

    bench_init(&b, 1, &usual);
    assert_int_equal(b.parts[0].step_begin_ns.n, 3);
    for (int i = 0; i < 3; i++)
        b.parts[0].step_end_ns.at[i] = b.parts[0].step_begin_ns.at[i] + ns[i];
    assert_code(rp_worlds_init(&x, b.list, 1, NULL, NULL), RP_OK);
    unlike = x.unlike;
    rp_worlds_release(&x);
    bench_release(&b);
    return unlike;
}

/* Half of the steps are further from the median than half of it. */
static void steps_may_be_too_unlike(void **state)
{
    UNUSED_STATE(state);
    assert_false(are_unlike(50000, 100000, 200000));
    assert_true(are_unlike(49999, 100000, 200000));
    assert_false(are_unlike(100000, 100000, 900000));
}

/* A tenth of a step of 1 ms in every world. */
static struct rp_gain gain_of(const char *text, bool on_host)
{
    const int64_t before[RP_WORLDS] = {1000000, 1000000, 1000000, 1000000,
                                       1000000, 1000000, 1000000};
    const int64_t then[RP_WORLDS] = {900000, 900000, 900000, 900000, 900000, 900000, 900000};
    struct rp_sim_part part = {.collectives = {.on_host = on_host}};
    const struct rp_sim_part *parts[] = {&part};
    struct rp_worlds x = {.run = {.parts = parts, .nranks = 1}, .given = 1, .transport_doubt = 0.1};

    return rp_worlds_gain(&x, before, then, text);
}

static void gains_over_the_hosts_transport_are_doubted(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(gain_of("bucket=1MB", true).low_ns, 60000);
    assert_int_equal(gain_of("bucket=1MB", true).high_ns, 140000);
    assert_int_equal(gain_of("overlap", true).low_ns, 60000);
    assert_int_equal(gain_of("fuse", true).low_ns, 100000);
    assert_int_equal(gain_of("bucket=1MB", false).low_ns, 100000);
}

/* Seven changes on this machine that brought what was predicted: the interval becomes narrower. */
static void what_was_tried_narrows_gains(void **state)
{
    const int64_t before[RP_WORLDS] = {1000000, 1000000, 1000000, 1000000,
                                       1000000, 1000000, 1000000};
    const int64_t then[RP_WORLDS] = {900000, 500000, 990000, 900000, 900000, 900000, 900000};
    struct rp_sim_part part = {.gpu = "NVIDIA H200", .update = "AdamW"};
    const struct rp_sim_part *parts[] = {&part};
    struct rp_worlds x = {.run = {.parts = parts, .nranks = 1}, .given = 1};
    char folder[] = "/tmp/reprise-sim-test-XXXXXX", path[64];
    struct rp_err err = RP_ERR_INIT;
    struct rp_gain g;

    UNUSED_STATE(state);
    assert_non_null(mkdtemp(folder));
    assert_int_equal(setenv("XDG_DATA_HOME", folder, 1), 0);
    for (int k = 0; k < 7; k++)
        assert_ok(rp_outcomes_add(&(struct rp_outcome){.device = "NVIDIA H200",
                                                       .framework = "torch 2.9",
                                                       .change = "compile",
                                                       .parameters = k,
                                                       .predicted = 0.9,
                                                       .measured = 0.9},
                                  1, &err),
                  &err);
    assert_ok(rp_outcomes_read(&x.outcomes, &err), &err);
    g = rp_worlds_gain(&x, before, then, "overlap"); /* not tried */
    assert_int_equal(g.tries, 0);
    assert_int_equal(g.low_ns, 10000);
    assert_int_equal(g.high_ns, 500000);
    g = rp_worlds_gain(&x, before, then, "compile");
    assert_int_equal(g.tries, 7);
    assert_int_equal(g.ns, 100000);
    assert_true(g.low_ns > 10000 && g.low_ns <= 100000);
    assert_true(g.high_ns < 500000 && g.high_ns >= 100000);
    rp_outcomes_release(&x.outcomes);
    snprintf(path, sizeof path, "%s/reprise/outcomes.tsv", folder);
    assert_int_equal(unlink(path), 0);
    *strrchr(path, '/') = '\0';
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(folder), 0);
    unsetenv("XDG_DATA_HOME");
}

/* Whether a change is an opportunity; it gains what was simulated, or, with more_ns,
   by so much more than the least that is worth it. */
static bool is_worth(const char *text, const int64_t *more_ns)
{
    const struct rp_changes_asked asked = {.nmore = 1, .more = &text};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_opportunities list;
    struct rp_changes changes;
    struct rp_worlds x;
    bool found = false;
    struct bench b;

    bench_init(&b, 1, &usual);
    assert_code(rp_worlds_init(&x, b.list, 1, NULL, NULL), RP_OK);
    assert_code(rp_changes_try(&x, &asked, &arena, &changes, NULL), RP_OK);
    for (size_t i = 0; i < changes.n && more_ns; i++)
        changes.at[i].alone_ns =
            x.step_ns - (int64_t)ceil(RP_OPPORTUNITY_LEAST * (double)x.step_ns) - *more_ns;
    assert_code(rp_opportunities_find(&x, &changes, &arena, &list, NULL), RP_OK);
    for (size_t i = 0; i < list.n; i++)
        found |= !strcmp(list.at[i].what_if, text);
    rp_worlds_release(&x);
    rp_arena_release(&arena);
    bench_release(&b);
    return found;
}

static void small_gains_are_no_opportunities(void **state)
{
    const int64_t least = 0, less = -1;

    UNUSED_STATE(state);
    assert_true(is_worth("scale:all=0.989", NULL));
    assert_false(is_worth("scale:all=0.991", NULL));
    assert_true(is_worth("scale:all=0.9", &least));
    assert_false(is_worth("scale:all=0.9", &less));
}

int test_intervals(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_differ_at_least),
        cmocka_unit_test(runs_of_the_host_differ),
        cmocka_unit_test(worlds_differ_in_the_profilers_cost),
        cmocka_unit_test(a_change_differs_in_the_profilers_cost),
        cmocka_unit_test(a_known_cost_is_doubted_less),
        cmocka_unit_test(gains_over_the_hosts_transport_are_doubted),
        cmocka_unit_test(what_was_tried_narrows_gains),
        cmocka_unit_test(steps_may_be_too_unlike),
        cmocka_unit_test(small_gains_are_no_opportunities),
    };

    return cmocka_run_group_tests_name("intervals", tests, NULL, NULL);
}
