/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated run as a trace: every task with its times, and the same step when it is read. */
#include "facts/times/step_times.h"
#include "run_fixtures.h"
#include "sim/simulate.h"
#include "trace/merged.h"

static const struct step_shape usual = {40000, false, false};

static struct rp_trace *trace_with(struct bench *b, const char *whatif, struct rp_sim_result *r,
                                   int64_t *step_ns)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_sim_steps steps;
    struct rp_trace *t;

    if (whatif)
        assert_ok(rp_whatif_apply(&b->run, whatif, &err), &err);
    assert_ok(rp_simulate(&b->run.overlay, r, &err), &err);
    assert_ok(rp_sim_steps_init(&steps, &b->run, r, &err), &err);
    *step_ns = steps.step_ns;
    assert_ok(rp_sim_trace_new(&b->run, r, &steps, &t, &err), &err);
    rp_sim_steps_release(&steps);
    assert_ok(rp_trace_validate(t, &err), &err);
    return t;
}

/* All tasks are there once, with the times of the result. */
static void check_tasks(const struct rp_trace *t, const struct rp_sim_result *r)
{
    size_t seen = 0;
    rp_event e;

    for (e = 0; e < t->ev.n; e++) {
        int64_t node = arg_of(t, e, "node");

        if (node == NO_ARG)
            continue;
        seen++;
        assert_in_range(t->ev.ts_ns[e], r->start_ns.at[node], r->start_ns.at[node] + STEPS - 1);
        assert_int_equal(t->ev.dur_ns[e], r->end_ns.at[node] - r->start_ns.at[node]);
    }
    assert_int_equal(seen, r->start_ns.n);
}

/* The step time of the ranks of a trace, as every command measures it. */
static int64_t step_read(const struct rp_trace *t, size_t nranks)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_merged merged = {0};
    int64_t sum = 0;
    size_t i;

    assert_ok(rp_merged_read(t, &arena, &merged, &err), &err);
    assert_int_equal(merged.n, nranks > 1 ? nranks : 0);
    for (i = 0; i < nranks; i++) {
        const struct rp_trace *rank = t;
        struct rp_trace *split = NULL;
        struct rp_interval *times;
        int64_t ns;

        if (merged.n) {
            assert_ok(rp_merged_split(t, &merged.ranks[i], NULL, &split, &err), &err);
            rank = split;
        }
        assert_int_equal(rank->nsteps, STEPS);
        assert_ok(rp_step_times(rank, &arena, &times, &err), &err);
        assert_ok(rp_step_median(times, rank->nsteps, &arena, &ns, &err), &err);
        sum += ns;
        rp_trace_free(split);
    }
    rp_arena_release(&arena);
    return sum / (int64_t)nranks;
}

/* Of steps that a host without any time launches at once, each is moved by a nanosecond. */
static void the_step_can_be_measured_again(void **state)
{
    static const char *const whatifs[] = {NULL,          "scale:gpu=2",     "scale:gpu=100",
                                          "cuda-graphs", "no-sync",         "cuda-graphs+no-sync",
                                          "ranks=16",    "scale:host=0.001"};
    struct step_shape shapes[] = {usual, {46000, false, false}};
    size_t i, n;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof whatifs / sizeof whatifs[0]; i++)
        for (n = 1; n <= 2; n++) {
            struct rp_sim_result r = {0};
            struct rp_trace *t;
            struct bench b;
            int64_t step_ns;

            bench_init(&b, n, shapes);
            t = trace_with(&b, whatifs[i], &r, &step_ns);
            check_tasks(t, &r);
            assert_in_range(step_read(t, n), step_ns, step_ns + 1);
            rp_trace_free(t);
            rp_sim_result_release(&r);
            bench_release(&b);
        }
}

static void what_was_recorded_stands_beside(void **state)
{
    struct rp_sim_result r = {0};
    struct rp_trace *t;
    struct bench b;
    int64_t step_ns, gap = NO_ARG;
    size_t seen = 0;
    rp_event e;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    t = trace_with(&b, NULL, &r, &step_ns);
    for (e = 0; e < t->ev.n; e++)
        if (arg_of(t, e, "recorded ts ns") != NO_ARG) {
            int64_t offset = t->ev.ts_ns[e] - arg_of(t, e, "recorded ts ns");

            gap = gap == NO_ARG ? offset : gap;
            assert_int_equal(t->ev.dur_ns[e], arg_of(t, e, "recorded dur ns"));
            assert_int_equal(offset, gap);
            seen++;
        }
    for (size_t i = 0; i < b.run.graph->nodes.n; i++)
        seen -= b.run.graph->nodes.at[i].event != RP_NONE;
    assert_int_equal(seen, 0);
    rp_trace_free(t);
    rp_sim_result_release(&r);
    bench_release(&b);
}

/* Tasks without a lane share a row where one begins no earlier than the one before it ended. */
static void rows_hold_one_task_at_a_time(void **state)
{
    static const int64_t begin_ns[] = {1000, 3000, 4999, 6000};
    rp_track track[4] = {0};
    struct rp_sim_result r = {0};
    struct rp_trace *t;
    struct bench b;
    int64_t step_ns;
    uint32_t id;

    UNUSED_STATE(state);
    bench_init(&b, 1, &usual);
    for (size_t i = 0; i < 4; i++) {
        struct rp_task task = {
            .dur_ns = 2000, .device = RP_NO_DEVICE, .step = RP_NO_STEP, .kind = RP_SG_MEMORY};

        assert_code(rp_overlay_add(&b.run.overlay, task, &id, NULL), RP_OK);
        assert_code(rp_overlay_link(&b.run.overlay, 0, id, begin_ns[i], 0, NULL), RP_OK);
    }
    t = trace_with(&b, NULL, &r, &step_ns);
    for (rp_event e = 0; e < t->ev.n; e++)
        if (arg_of(t, e, "node") > (int64_t)id - 4)
            track[arg_of(t, e, "node") - (id - 3)] = t->ev.track[e];
    assert_int_equal(track[0], track[1]);
    assert_int_not_equal(track[1], track[2]);
    assert_int_equal(track[1], track[3]);
    rp_trace_free(t);
    rp_sim_result_release(&r);
    bench_release(&b);
}

int test_sim_trace(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_step_can_be_measured_again),
        cmocka_unit_test(what_was_recorded_stands_beside),
        cmocka_unit_test(rows_hold_one_task_at_a_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
