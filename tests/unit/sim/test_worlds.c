/* SPDX-License-Identifier: Apache-2.0 */
/* Worlds: gains and their intervals, what makes them uncertain, and several changes at once. */
#include "run_fixtures.h"
#include "sim/beside.h"
#include "sim/worlds.h"

#include <math.h>
#include <stdlib.h>

static const struct step_shape usual = {40000, true, false};

/* ------------------------------------------------------------------ intervals of gains */

static struct rp_gain gain_between(double doubt, int64_t before_ns, const int64_t *then)
{
    struct rp_sim_part part = {0};
    const struct rp_sim_part *parts[] = {&part};
    struct rp_worlds x = {.run = {.parts = parts, .nranks = 1}, .given = 1, .doubt = doubt};
    int64_t before[RP_WORLDS];

    for (int i = 0; i < RP_WORLDS; i++)
        before[i] = before_ns;
    return rp_worlds_gain(&x, before, then, "fuse");
}

/* The ends are those of all worlds, each a quarter further out. */
static void a_gain_is_between_the_worlds(void **state)
{
    int64_t then[RP_WORLDS] = {900, 900, 860, 900, 900, 900, 960};
    struct rp_gain g;

    UNUSED_STATE(state);
    g = gain_between(0.25, 1000, then);
    assert_int_equal(g.ns, 100);
    assert_int_equal(g.low_ns, 32);
    assert_int_equal(g.high_ns, 175);
    then[1] = 1100; /* a loss */
    g = gain_between(0.25, 1000, then);
    assert_int_equal(g.low_ns, -125);
    for (int i = 0; i < RP_WORLDS; i++)
        then[i] = 1100;
    g = gain_between(0.25, 1000, then);
    assert_int_equal(g.ns, -100);
    assert_int_equal(g.low_ns, -125);
    assert_int_equal(g.high_ns, -80);
    then[3] = 100; /* not more than the whole step */
    g = gain_between(0.25, 1000, then);
    assert_int_equal(g.high_ns, 1000);
}

static double absent(int32_t world_size, size_t given, double a, double b)
{
    struct rp_sim_part first = {.world_size = world_size, .exposed_ratio = a},
                       second = {.world_size = world_size, .exposed_ratio = b};
    const struct rp_sim_part *parts[] = {&first, &second};
    struct rp_worlds x = {.run = {.parts = parts, .nranks = 2}, .given = given};

    return rp_worlds_absent(&x);
}

static void ranks_that_are_not_given_are_waited_for(void **state)
{
    UNUSED_STATE(state);
    assert_true(absent(4, 4, 0.1, 0.2) == 0);
    assert_true(absent(5, 4, 0.1, 0.2) == 0.2);
    assert_true(absent(5, 4, 0.3, 0.2) == 0.3);
    assert_true(absent(5, 4, 0, 0) == 0);
}

/* Two of eight ranks were given, and a tenth of the step is exposed communication. */
static void absent_ranks_widen_gains(void **state)
{
    const int64_t before[RP_WORLDS] = {1000, 1000, 1000, 1000, 1000, 1000, 1000};
    const int64_t then[RP_WORLDS] = {800, 800, 800, 800, 800, 800, 800};
    struct rp_sim_part part = {.world_size = 8, .exposed_ratio = 0.1};
    const struct rp_sim_part *parts[] = {&part};
    struct rp_worlds x = {.run = {.parts = parts, .nranks = 1}, .given = 2};
    struct rp_gain g = rp_worlds_gain(&x, before, then, "fuse");

    UNUSED_STATE(state);
    assert_int_equal(g.low_ns, 100);
    assert_int_equal(g.high_ns, 300);
    g = rp_worlds_gain(&x, before, then, "overlap");
    assert_int_equal(g.low_ns, -800);
    assert_int_equal(g.high_ns, 1000);
    g = rp_worlds_gain(&x, before, then, "bucket=1MB");
    assert_int_equal(g.low_ns, -800);
}

/* Where threads carry collectives, a twenty-fifth of a step; where none were recorded, nothing. */
static void only_transfers_doubt_buckets(void **state)
{
    const int64_t before[RP_WORLDS] = {1000, 1000, 1000, 1000, 1000, 1000, 1000};
    const int64_t then[RP_WORLDS] = {800, 800, 800, 800, 800, 800, 800};
    struct rp_sim_part part = {.collectives = {.on_host = true}};
    const struct rp_sim_part *parts[] = {&part};
    struct rp_worlds x = {.run = {.parts = parts, .nranks = 1}, .given = 1};

    UNUSED_STATE(state);
    assert_int_equal(rp_worlds_gain(&x, before, then, "bucket=1MB").low_ns, 200);
    x.transport_doubt = 0.1;
    assert_int_equal(rp_worlds_gain(&x, before, then, "bucket=1MB").low_ns, 160);
    assert_int_equal(rp_worlds_gain(&x, before, then, "bucket=1MB").high_ns, 240);
}

static void gains_of_some_recordings_are_not_certain(void **state)
{
    struct rp_worlds x;
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    assert_code(rp_worlds_init(&x, b.list, 1, NULL, NULL), RP_OK);
    assert_null(rp_worlds_distrust(&x));
    x.capture = true;
    assert_contains(rp_worlds_distrust(&x), "graph capture");
    x.capture = false;
    x.unlike = true;
    assert_contains(rp_worlds_distrust(&x), "the steps differ");
    x.unlike = false;
    x.simulated_ns = 3 * x.recorded_ns;
    assert_contains(rp_worlds_distrust(&x), "does not reproduce");
    x.simulated_ns = x.recorded_ns;
    b.parts[0].has_steps = false;
    b.parts[0].recorded_steps = 1;
    assert_null(rp_worlds_distrust(&x));
    b.parts[0].recorded_steps = 0;
    assert_contains(rp_worlds_distrust(&x), "no steps are marked");
    rp_worlds_release(&x);
    bench_release(&b);
}

static void a_change_is_sure_if_it_is_in_all_worlds(void **state)
{
    const int64_t before[RP_WORLDS] = {10, 10, 10, 10, 10, 10, 10};
    const int64_t then[RP_WORLDS] = {9, 9, 10, 9, 9, 9, 9};

    UNUSED_STATE(state);
    assert_true(rp_worlds_is_sure(before, then, 2));
    assert_false(rp_worlds_is_sure(before, then, 3));
    assert_true(rp_worlds_is_sure(NULL, then, 3));
    assert_true(rp_worlds_is_sure(before, then, 0));
}

/* ------------------------------------------------------------------ the worlds of a run */

static void weights_are_counted(void **state)
{
    const struct step_shape shapes[] = {{40000, false, false}, {46000, false, false}};
    static const uint32_t weights[] = {3, 4};
    struct rp_worlds x;
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 2, shapes);
    assert_code(rp_worlds_init(&x, b.list, 2, NULL, NULL), RP_OK);
    assert_int_equal(x.given, 2);
    assert_null(x.run.weights);
    rp_worlds_release(&x);
    assert_code(rp_worlds_init(&x, b.list, 2, weights, NULL), RP_OK);
    assert_int_equal(x.given, 7);
    assert_ptr_equal(x.run.weights, weights);
    rp_worlds_release(&x);
    bench_release(&b);
}

/* What the model misses of the recorded step is doubted. */
static void an_error_of_the_model_is_doubt(void **state)
{
    struct rp_worlds x;
    struct bench b;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    b.parts[0].spread_ratio = 0.002;
    assert_code(rp_worlds_init(&x, b.list, 1, NULL, NULL), RP_OK);
    assert_int_equal(x.recorded_ns, 100000);
    assert_int_equal(x.simulated_ns, 100000);
    assert_float_equal(x.doubt, 0.002, 1e-9);
    assert_true(x.transport_doubt == 0);
    rp_worlds_release(&x);
    b.parts[0].measured_ns = 80000;
    assert_code(rp_worlds_init(&x, b.list, 1, NULL, NULL), RP_OK);
    assert_int_equal(x.recorded_ns, 80000);
    assert_float_equal(x.doubt, 0.252, 1e-9);
    rp_worlds_release(&x);
    bench_release(&b);
}

/* Simulating everything gives the same steps as only what changed, and so does a run that ends at
   the first world that is lost, as far as it got. */
static void all_is_simulated_for_the_same_steps(void **state)
{
    static const char *const texts[] = {
        "", "scale:gpu=0.5", "scale:comm=0.5", "net.latency=0.5x", "scale:all=0.9", "scale:host=2"};
    const struct step_shape shapes[] = {{40000, false, false}, {46000, false, false}};
    const int64_t none[RP_WORLDS] = {0};
    int64_t some[RP_WORLDS], all[RP_WORLDS], ended[RP_WORLDS];
    struct bench b, c;
    struct rp_worlds x, y;

    UNUSED_STATE(state);
    bench_init(&b, 2, shapes);
    bench_init(&c, 2, shapes);
    for (int i = 0; i < 2; i++)
        b.parts[i].quick_ns = c.parts[i].quick_ns = 400;
    assert_code(rp_worlds_init(&x, b.list, 2, NULL, NULL), RP_OK);
    assert_code(rp_worlds_init(&y, c.list, 2, NULL, NULL), RP_OK);
    y.whole = true;
    assert_true(x.transport_doubt > 0 && x.costs);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct rp_err err = RP_ERR_INIT;

        assert_ok(rp_worlds_steps(&x, texts[i], NULL, some, &err), &err);
        assert_ok(rp_worlds_steps(&y, texts[i], NULL, all, &err), &err);
        for (int k = 0; k < RP_WORLDS; k++)
            assert_in_range(some[k] + 2 - all[k], 0, 4);
        assert_ok(rp_worlds_steps(&x, texts[i], none, ended, &err), &err);
        for (int k = 0; k < RP_WORLDS; k++)
            assert_int_equal(ended[k], some[0]);
    }
    rp_worlds_release(&x);
    rp_worlds_release(&y);
    bench_release(&b);
    bench_release(&c);
}

/* ------------------------------------------------------------------ several at once */

/* One step of so many operators of 1 us, each with a kernel of 1 us. */
static void long_init(struct bench *b, size_t n)
{
    struct rp_err err = RP_ERR_INIT;
    struct row *rows = (struct row *)calloc(3 * n + 1, sizeof *rows);

    assert_non_null(rows);
    rows[0] = (struct row){'X', "user_annotation", "ProfilerStep#0", 1, 1, 0, 3000 * (int64_t)n};
    for (size_t i = 0; i < n; i++) {
        int64_t at = 2000 * (int64_t)i;

        rows[3 * i + 1] = (struct row){'X', "cpu_op", "aten::relu", 1, 1, at, 1900};
        rows[3 * i + 2] = (struct row){'X',      "cuda_runtime", "cudaLaunchKernel", 1, 1,
                                       at + 100, 1000,           (int64_t)i + 1};
        rows[3 * i + 3] =
            (struct row){'X', "kernel", "elementwise", 0, 7, at + 2000, 1000, (int64_t)i + 1, 7};
    }
    memset(b, 0, sizeof *b);
    b->n = 1;
    b->traces[0] = trace_of(rows, 3 * n + 1);
    rp_arena_init(&b->arenas[0]);
    assert_ok(rp_sim_part_init(&b->parts[0], b->traces[0], &b->arenas[0], &err), &err);
    b->list[0] = &b->parts[0];
    assert_ok(rp_sim_run_init(&b->run, b->list, 1, &err), &err);
    free(rows);
}

static const char *const changes[] = {"scale:gpu=0.5", "scale:host=0.5", "scale:all=2",
                                      "cuda-graphs",   "scale:gpu=3",    "scale:host=3"};
enum { CHANGES = sizeof changes / sizeof *changes };

struct tried {
    int64_t steps[CHANGES][RP_WORLDS];
    _Atomic int by_twins;
};

static enum rp_code try_change(struct rp_worlds *x, void *user, size_t i, struct rp_err *err)
{
    struct tried *t = user;

    t->by_twins += x->first != NULL;
    return rp_worlds_steps(x, changes[i], NULL, t->steps[i], err);
}

static enum rp_code refuse(struct rp_worlds *x, void *user, size_t i, struct rp_err *err)
{
    (void)x;
    *(_Atomic int *)user += 1;
    return i == 2 ? rp_err_set(err, RP_LIMIT, "no") : RP_OK;
}

static void twins_simulate_the_same(void **state)
{
    struct rp_pool *pool;
    struct tried one = {0}, beside = {0};
    _Atomic int done = 0;
    struct rp_err err = RP_ERR_INIT;
    struct rp_worlds x;
    size_t evaluated;
    struct bench b;

    UNUSED_STATE(state);
    SKIP_WITHOUT_THREADS();
    long_init(&b, 4500);
    b.parts[0].quick_ns = 100;
    assert_ok(rp_pool_new(6, &pool, &err), &err);
    assert_ok(rp_worlds_init(&x, b.list, 1, NULL, &err), &err);
    assert_true(x.run.tasks.tasks.n >= 8000);
    x.evaluated = 0;
    assert_ok(rp_worlds_each(&x, CHANGES, try_change, &one, &err), &err);
    evaluated = x.evaluated;
    assert_int_equal(one.by_twins, 0);
    assert_null(x.twins);
    x.pool = pool;
    for (int again = 0; again < 2; again++) {
        x.evaluated = 0;
        assert_ok(rp_worlds_each(&x, CHANGES, try_change, &beside, &err), &err);
        assert_int_equal(x.ntwins, 3);
        assert_int_equal(x.evaluated, evaluated);
        assert_memory_equal(beside.steps, one.steps, sizeof one.steps);
    }
    assert_code(rp_worlds_each(&x, CHANGES, refuse, &done, &err), RP_LIMIT);
    assert_true(done >= 1 && done <= CHANGES);
    rp_worlds_release(&x);
    assert_int_equal(x.ntwins, 0);
    rp_pool_free(pool);
    bench_release(&b);
}

/* One change, a small run, and one that describes itself. */
static void twins_are_for_much_work(void **state)
{
    static const size_t launches[] = {4500, 100};

    UNUSED_STATE(state);
    for (int i = 0; i < 2; i++) {
        struct rp_arena arena = RP_ARENA_INIT;
        struct rp_err err = RP_ERR_INIT;
        struct tried t = {0};
        struct rp_pool *pool;
        struct rp_worlds x;
        struct bench b;

        long_init(&b, launches[i]);
        assert_ok(rp_pool_new(2, &pool, &err), &err);
        assert_ok(rp_worlds_init(&x, b.list, 1, NULL, &err), &err);
        x.pool = pool;
        assert_ok(rp_worlds_each(&x, 1, try_change, &t, &err), &err);
        assert_int_equal(x.ntwins, 0);
        x.run.says = &arena;
        assert_ok(rp_worlds_each(&x, 2, try_change, &t, &err), &err);
        assert_int_equal(x.ntwins, 0);
        x.run.says = NULL;
        x.whole = true;
        assert_ok(rp_worlds_each(&x, 2, try_change, &t, &err), &err);
        assert_int_equal(x.ntwins, 0);
        x.whole = false;
        assert_ok(rp_worlds_each(&x, 2, try_change, &t, &err), &err);
        assert_int_equal(x.ntwins, i ? 0 : 1);
        rp_worlds_release(&x);
        rp_pool_free(pool);
        rp_arena_release(&arena);
        bench_release(&b);
    }
}

int test_worlds(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gain_is_between_the_worlds),
        cmocka_unit_test(ranks_that_are_not_given_are_waited_for),
        cmocka_unit_test(absent_ranks_widen_gains),
        cmocka_unit_test(only_transfers_doubt_buckets),
        cmocka_unit_test(gains_of_some_recordings_are_not_certain),
        cmocka_unit_test(a_change_is_sure_if_it_is_in_all_worlds),
        cmocka_unit_test(weights_are_counted),
        cmocka_unit_test(an_error_of_the_model_is_doubt),
        cmocka_unit_test(all_is_simulated_for_the_same_steps),
        cmocka_unit_test(twins_simulate_the_same),
        cmocka_unit_test(twins_are_for_much_work),
    };

    return cmocka_run_group_tests_name("worlds", tests, NULL, NULL);
}
