/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks by device and time: what a plain sort by comparison gives, on random times. */
#include "unit.h"

#include "sim/engine/overlay.h"

#include <stdlib.h>

static uint64_t dice = 12345;

static uint64_t roll(uint64_t below)
{
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (dice >> 33) % below;
}

/* Whether a belongs before b, or beside it. */
static bool in_order(const struct rp_task_graph *g, const int64_t *at, uint32_t a, uint32_t b)
{
    if (g->tasks.at[a].device != g->tasks.at[b].device)
        return g->tasks.at[a].device < g->tasks.at[b].device;
    return at[a] != at[b] ? at[a] < at[b] : a < b;
}

static void try_order(uint32_t ndevices, uint32_t n, uint64_t range)
{
    struct rp_err err = RP_ERR_INIT;
    int64_t *at = malloc((n + 1) * sizeof *at);
    uint32_t *tasks = malloc((n + 1) * sizeof *tasks), i, id;
    struct rp_task_graph g;
    struct rp_overlay o;

    rp_task_graph_init(&g);
    for (i = 0; i < ndevices; i++)
        assert_ok(rp_task_graph_add_device(&g, "d", RP_DEVICE_SERIAL, &id, &err), &err);
    for (i = 0; i < n; i++) {
        struct rp_task t = {.dur_ns = 1, .device = (uint32_t)roll(ndevices)};

        at[i] = (int64_t)(roll(range) * (range > 1000 ? roll(range) : 1));
        tasks[i] = i;
        assert_ok(rp_task_graph_add(&g, t, &id, &err), &err);
    }
    assert_ok(rp_task_graph_freeze(&g, &err), &err);
    assert_ok(rp_overlay_init(&o, &g, &err), &err);
    assert_ok(rp_device_order(&o, at, tasks, n, &err), &err);
    for (i = 1; i < n; i++)
        assert_true(in_order(&g, at, tasks[i - 1], tasks[i]));
    rp_overlay_release(&o);
    rp_task_graph_release(&g);
    free(at);
    free(tasks);
}

static void by_device_then_time_then_number(void **state)
{
    uint32_t round;

    UNUSED_STATE(state);
    for (round = 0; round < 200; round++)
        try_order(1 + (uint32_t)roll(9), (uint32_t)roll(300), 1 + roll(2000000000));
    for (round = 0; round < 50; round++)
        try_order(3, 200, 5); /* many at one time */
}

int test_device_order(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_device_then_time_then_number)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
