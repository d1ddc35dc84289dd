/* SPDX-License-Identifier: Apache-2.0 */
/* Simulating again what a change reaches gives the bits of a full run, on thousands of graphs. */
#include "unit.h"

#include "sim/engine/resimulate.h"

#include <stdlib.h>
#include <string.h>

struct dice {
    uint64_t state;
};

static uint64_t roll(struct dice *d, uint64_t below)
{
    d->state = d->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (d->state >> 33) % below;
}

/* Edges lead to larger numbers; `devices` of them are serial, and one may be shared. */
static void random_graph(struct dice *d, struct rp_task_graph *g, size_t n, unsigned devices,
                         bool shared, bool odd)
{
    struct rp_err err = RP_ERR_INIT;
    uint32_t id;
    size_t i, k;

    rp_task_graph_init(g);
    for (i = 0; i < devices; i++)
        assert_ok(rp_task_graph_add_device(
                      g, "d", shared && i == 0 ? RP_DEVICE_SHARED : RP_DEVICE_SERIAL, &id, &err),
                  &err);
    for (i = 0; i < n; i++) {
        struct rp_task t = {.dur_ns = (int64_t)roll(d, 30) + !odd,
                            .device = RP_NO_DEVICE,
                            .priority = odd && !roll(d, 20)};

        if (devices && roll(d, 2))
            t.device = (uint32_t)roll(d, devices);
        assert_ok(rp_task_graph_add(g, t, &id, &err), &err);
        for (k = roll(d, 4); k > 0 && i > 0; k--)
            assert_ok(rp_task_graph_link(g, (uint32_t)roll(d, i), id, (int64_t)roll(d, 9),
                                         odd && !roll(d, 6) ? RP_EDGE_FROM_START : 0, &err),
                      &err);
    }
    assert_ok(rp_task_graph_freeze(g, &err), &err);
}

static void change(struct dice *d, struct rp_overlay *o)
{
    struct rp_err err = RP_ERR_INIT;
    size_t k;

    for (k = 1 + roll(d, 3); k > 0; k--)
        if (roll(d, 2) || !o->graph->edges.n)
            assert_ok(rp_overlay_set_dur(o, (uint32_t)roll(d, o->graph->tasks.n),
                                         1 + (int64_t)roll(d, 60), &err),
                      &err);
        else
            assert_ok(rp_overlay_set_lag(o, (uint32_t)roll(d, o->graph->edges.n),
                                         roll(d, 4) ? (int64_t)roll(d, 20) : RP_LAG_CUT, &err),
                      &err);
}

static void same(const struct rp_sim_result *a, const struct rp_sim_result *b)
{
    assert_int_equal(a->start_ns.n, b->start_ns.n);
    assert_int_equal(a->last_ns, b->last_ns);
    assert_memory_equal(a->start_ns.at, b->start_ns.at, a->start_ns.n * 8);
    assert_memory_equal(a->end_ns.at, b->end_ns.at, a->end_ns.n * 8);
}

/* How many of the updates did not need a full run. */
static size_t try_graphs(unsigned devices, bool shared, bool odd, size_t rounds)
{
    struct dice d = {devices * 7919 + shared * 3 + odd};
    size_t round, k, partial = 0;

    for (round = 0; round < rounds; round++) {
        struct rp_err err = RP_ERR_INIT;
        struct rp_sim_result full = {0}, base = {0};
        struct rp_task_graph g;
        struct rp_overlay o;
        struct rp_resim x;
        size_t mark;

        random_graph(&d, &g, 2 + roll(&d, 60), devices, shared, odd);
        assert_ok(rp_overlay_init(&o, &g, &err), &err);
        change(&d, &o); /* the base itself is changed already */
        assert_ok(rp_simulate(&o, &base, &err), &err);
        assert_ok(rp_resim_init(&x, &o, &err), &err);
        mark = rp_overlay_mark(&o);
        for (k = 0; k < 4; k++) {
            change(&d, &o);
            assert_ok(rp_resim_update(&x, &err), &err);
            assert_ok(rp_simulate(&o, &full, &err), &err);
            same(&x.result, &full);
            partial += !x.whole;
            if (roll(&d, 2)) { /* else the next changes come on top */
                rp_overlay_undo(&o, mark);
                rp_resim_undo(&x);
                assert_memory_equal(x.result.end_ns.at, base.end_ns.at, base.end_ns.n * 8);
            }
        }
        rp_resim_release(&x);
        rp_sim_result_release(&full);
        rp_sim_result_release(&base);
        rp_overlay_release(&o);
        rp_task_graph_release(&g);
    }
    return partial;
}

static void graphs_without_devices(void **state)
{
    UNUSED_STATE(state);
    /* The first update of each graph runs everything. */
    assert_int_equal(try_graphs(0, false, false, 1000), 3000);
    assert_int_equal(try_graphs(0, false, true, 1000), 3000);
}

static void graphs_with_serial_devices(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(try_graphs(3, false, false, 1500), 4500);
    assert_int_equal(try_graphs(1, false, false, 1500), 4500);
}

static void odd_and_shared_ones_are_right_too(void **state)
{
    UNUSED_STATE(state);
    try_graphs(3, true, false, 500);
    try_graphs(3, false, true, 500);
    try_graphs(4, true, true, 500);
}

/* Rings over devices, as a job has them: a change early on lets tasks change places everywhere. */
static void rings(struct dice *d, struct rp_task_graph *g, uint32_t ranks, uint32_t nrings)
{
    struct rp_err err = RP_ERR_INIT;
    uint32_t r, k, c, id, got[8];

    rp_task_graph_init(g);
    for (r = 0; r < ranks; r++)
        assert_ok(rp_task_graph_add_device(g, "mover", RP_DEVICE_SERIAL, &id, &err), &err);
    for (c = 0; c < nrings; c++) {
        for (r = 0; r < ranks; r++) {
            struct rp_task t = {.dur_ns = 1 + (int64_t)roll(d, 400 * (c + 1)),
                                .device = RP_NO_DEVICE};

            assert_ok(rp_task_graph_add(g, t, &got[r], &err), &err);
        }
        for (k = 0; k < 40; k++) {
            uint32_t next[8];

            for (r = 0; r < ranks; r++) {
                struct rp_task t = {.dur_ns = 20 + (int64_t)roll(d, 3), .device = r};

                assert_ok(rp_task_graph_add(g, t, &next[r], &err), &err);
                assert_ok(rp_task_graph_link(g, got[(r + ranks - 1) % ranks], next[r], 0, 0, &err),
                          &err);
                assert_ok(rp_task_graph_link(g, got[r], next[r], (int64_t)roll(d, 2), 0, &err),
                          &err);
            }
            memcpy(got, next, sizeof got);
        }
    }
    assert_ok(rp_task_graph_freeze(g, &err), &err);
}

/* Which ways were taken: [0] a sweep or what follows in the same order, [1] a tail, [2] all. */
static void try_rings(struct dice *d, size_t ways[3])
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_sim_result full = {0};
    struct rp_task_graph g;
    struct rp_overlay o;
    struct rp_resim x;
    size_t k, i, mark;

    rings(d, &g, 2 + (uint32_t)roll(d, 7), 4 + (uint32_t)roll(d, 9));
    assert_ok(rp_overlay_init(&o, &g, &err), &err);
    assert_ok(rp_resim_init(&x, &o, &err), &err);
    mark = rp_overlay_mark(&o);
    for (k = 0; k < 12; k++) {
        size_t low = roll(d, g.tasks.n), many = 1 + roll(d, 60);

        for (i = low; i < low + many && i < g.tasks.n; i++)
            assert_ok(rp_overlay_set_dur(&o, (uint32_t)i, 1 + (int64_t)roll(d, 60), &err), &err);
        if (!roll(d, 3))
            change(d, &o);
        assert_ok(rp_resim_update(&x, &err), &err);
        assert_ok(rp_simulate(&o, &full, &err), &err);
        same(&x.result, &full);
        ways[x.whole ? 2 : x.in_tail]++;
        if (roll(d, 4)) {
            rp_overlay_undo(&o, mark);
            rp_resim_undo(&x);
            assert_ok(rp_simulate(&o, &full, &err), &err);
            same(&x.result, &full);
        }
    }
    rp_resim_release(&x);
    rp_sim_result_release(&full);
    rp_overlay_release(&o);
    rp_task_graph_release(&g);
}

static void rings_are_right_whichever_way_is_taken(void **state)
{
    struct dice d = {4711};
    size_t round, ways[3] = {0};

    UNUSED_STATE(state);
    for (round = 0; round < 150; round++)
        try_rings(&d, ways);
    assert_int_equal(ways[2], 150); /* the first of each */
    assert_true(ways[0] > 100 && ways[1] > 100);
}

/* A task at the end of a long chain costs one look. */
static void only_what_is_reached_is_looked_at(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_task task = {.dur_ns = 5, .device = RP_NO_DEVICE};
    struct rp_task_graph g;
    struct rp_overlay o;
    struct rp_resim x;
    uint32_t i, id;

    UNUSED_STATE(state);
    rp_task_graph_init(&g);
    for (i = 0; i < 1000; i++) {
        assert_ok(rp_task_graph_add(&g, task, &id, &err), &err);
        if (i)
            assert_ok(rp_task_graph_link(&g, i - 1, i, 0, 0, &err), &err);
    }
    assert_ok(rp_task_graph_freeze(&g, &err), &err);
    assert_ok(rp_overlay_init(&o, &g, &err), &err);
    assert_ok(rp_resim_init(&x, &o, &err), &err);
    assert_ok(rp_overlay_set_dur(&o, 990, 9, &err), &err);
    assert_ok(rp_resim_update(&x, &err), &err); /* the first runs everything */
    assert_ok(rp_resim_update(&x, &err), &err);
    assert_int_equal(x.visited, 10);
    assert_int_equal(x.result.last_ns, 5004);
    rp_resim_undo(&x);
    assert_int_equal(x.result.end_ns.at[999], 5000);
    rp_resim_release(&x);
    rp_overlay_release(&o);
    rp_task_graph_release(&g);
}

int test_resimulate(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_without_devices),
        cmocka_unit_test(graphs_with_serial_devices),
        cmocka_unit_test(odd_and_shared_ones_are_right_too),
        cmocka_unit_test(rings_are_right_whichever_way_is_taken),
        cmocka_unit_test(only_what_is_reached_is_looked_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
