/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator: by hand on small graphs, against a slow and obvious one on thousands of random
 * graphs, and by what must hold of any graph.
 */
#include "unit.h"

#include "sim/engine/plain_graph.h"
#include "sim/engine/simulator.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ helpers */

static uint32_t add(struct rp_task_graph *g, int64_t dur_ns, uint32_t device, uint8_t priority)
{
    struct rp_task t = {.dur_ns = dur_ns, .device = device, .priority = priority};
    uint32_t id;

    assert_code(rp_task_graph_add(g, t, &id, NULL), RP_OK);
    return id;
}

static void join(struct rp_task_graph *g, uint32_t from, uint32_t to, int64_t lag_ns,
                 uint32_t flags)
{
    assert_code(rp_task_graph_link(g, from, to, lag_ns, flags, NULL), RP_OK);
}

static uint32_t device(struct rp_task_graph *g, enum rp_sim_device_rule rule)
{
    uint32_t id;

    assert_code(rp_task_graph_add_device(g, "device", rule, &id, NULL), RP_OK);
    return id;
}

static void check_starts(struct rp_task_graph *g, const int64_t *expected)
{
    struct rp_sim_result r = {0};
    struct rp_overlay o;
    size_t i;

    assert_code(rp_task_graph_freeze(g, NULL), RP_OK);
    assert_code(rp_overlay_init(&o, g, NULL), RP_OK);
    assert_code(rp_simulate(&o, &r, NULL), RP_OK);
    for (i = 0; i < g->tasks.n; i++)
        assert_int_equal(r.start_ns.at[i], expected[i]);
    rp_sim_result_release(&r);
    rp_overlay_release(&o);
    rp_task_graph_release(g);
}

/* ------------------------------------------------------------------ by hand */

static void a_task_waits_for_the_last_of_what_it_needs(void **state)
{
    struct rp_task_graph g;
    uint32_t a, b, c, d;

    UNUSED_STATE(state);
    rp_task_graph_init(&g);
    a = add(&g, 10, RP_NO_DEVICE, 0);
    b = add(&g, 30, RP_NO_DEVICE, 0);
    c = add(&g, 5, RP_NO_DEVICE, 0);
    d = add(&g, 5, RP_NO_DEVICE, 0);
    join(&g, a, c, 7, 0);
    join(&g, b, c, 0, 0);
    join(&g, b, d, 2, RP_EDGE_FROM_START);
    check_starts(&g, (const int64_t[]){0, 0, 30, 2});
}

static void a_serial_device_takes_priority_then_who_came_first(void **state)
{
    struct rp_task_graph g;
    uint32_t dev, first, late, urgent, gate;

    UNUSED_STATE(state);
    rp_task_graph_init(&g);
    dev = device(&g, RP_DEVICE_SERIAL);
    first = add(&g, 10, dev, 1);
    late = add(&g, 10, dev, 1);
    urgent = add(&g, 10, dev, 0);
    gate = add(&g, 5, RP_NO_DEVICE, 0);
    join(&g, gate, urgent, 0, 0); /* ready at 5, before the device is free */
    join(&g, gate, late, 1, 0);
    (void)first;
    check_starts(&g, (const int64_t[]){0, 20, 10, 0});
}

/* What is ready later in the order of the graph but earlier in time is not held up. */
static void a_device_is_causal(void **state)
{
    struct rp_task_graph g;
    uint32_t link, c, a, b0, b, a2;

    UNUSED_STATE(state);
    rp_task_graph_init(&g);
    link = device(&g, RP_DEVICE_SERIAL);
    c = add(&g, 100, RP_NO_DEVICE, 0);
    a = add(&g, 10, link, 0);
    b0 = add(&g, 10, RP_NO_DEVICE, 0);
    b = add(&g, 10, RP_NO_DEVICE, 0);
    a2 = add(&g, 10, link, 0);
    join(&g, c, a, 0, 0);
    join(&g, b0, b, 0, 0);
    join(&g, b, a2, 0, 0);
    check_starts(&g, (const int64_t[]){0, 100, 0, 10, 20});
}

static void a_shared_device_gives_each_its_part(void **state)
{
    struct rp_task_graph g;
    struct rp_sim_result r = {0};
    struct rp_overlay o;
    uint32_t link, gate, a, b;

    UNUSED_STATE(state);
    rp_task_graph_init(&g);
    link = device(&g, RP_DEVICE_SHARED);
    a = add(&g, 100, link, 0);
    gate = add(&g, 40, RP_NO_DEVICE, 0);
    b = add(&g, 100, link, 0);
    join(&g, gate, b, 0, 0);
    assert_code(rp_task_graph_freeze(&g, NULL), RP_OK);
    assert_code(rp_overlay_init(&o, &g, NULL), RP_OK);
    assert_code(rp_simulate(&o, &r, NULL), RP_OK);
    assert_int_equal(r.end_ns.at[a], 160); /* 40 alone, then 120 at half the rate */
    assert_int_equal(r.end_ns.at[b], 200); /* 60 done at 160, the rest alone */
    assert_int_equal(r.last_ns, 200);
    rp_sim_result_release(&r);
    rp_overlay_release(&o);
    rp_task_graph_release(&g);
}

/* Each lets the next start at the same moment: a list of work, not calls inside each other. */
static void a_long_chain_of_starts_is_no_recursion(void **state)
{
    enum { N = 200000 };
    int64_t *starts = calloc(N, sizeof *starts);
    struct rp_task_graph g;
    uint32_t link, last, task;

    UNUSED_STATE(state);
    assert_non_null(starts);
    rp_task_graph_init(&g);
    link = device(&g, RP_DEVICE_SHARED);
    last = add(&g, 100, link, 0);
    for (int i = 1; i < N; i++, last = task) {
        task = add(&g, 100, link, 0);
        join(&g, last, task, 0, RP_EDGE_FROM_START);
    }
    check_starts(&g, starts);
    free(starts);
}

static void a_cycle_is_an_error(void **state)
{
    struct rp_task_graph g;
    struct rp_sim_result r = {0};
    struct rp_overlay o;
    struct rp_err err = RP_ERR_INIT;
    uint32_t a, b;

    UNUSED_STATE(state);
    rp_task_graph_init(&g);
    a = add(&g, 1, RP_NO_DEVICE, 0);
    b = add(&g, 1, RP_NO_DEVICE, 0);
    join(&g, a, b, 0, 0);
    join(&g, b, a, 0, 0);
    assert_code(rp_task_graph_freeze(&g, NULL), RP_OK);
    assert_code(rp_overlay_init(&o, &g, NULL), RP_OK);
    assert_code(rp_simulate(&o, &r, &err), RP_BUG);
    assert_non_null(strstr(err.text, "depends on itself"));
    rp_sim_result_release(&r);
    rp_overlay_release(&o);
    rp_task_graph_release(&g);
}

/* ------------------------------------------------------------------ the slow one */

struct slow {
    const struct rp_overlay *o;
    size_t n;
    int64_t *start, *end, *ready; /* -1: not known yet */
    int *begun;                   /* on its device */
};

static bool edge_known(const struct slow *s, uint32_t from, uint32_t flags, int64_t lag,
                       int64_t *ready)
{
    int64_t anchor = flags & RP_EDGE_FROM_START ? s->start[from] : s->end[from];

    if (lag == RP_LAG_CUT)
        return true;
    if (anchor < 0)
        return false;
    if (anchor + lag > *ready)
        *ready = anchor + lag;
    return true;
}

/* The ready time of a task if all it waits for is over, by looking at every edge there is. */
static int64_t slow_ready(const struct slow *s, uint32_t task)
{
    const struct rp_task_graph *g = s->o->graph;
    int64_t ready = 0;
    uint32_t from;
    size_t i;

    for (from = 0; from < g->tasks.n; from++)
        for (i = g->first.at[from]; i < g->first.at[from + 1]; i++)
            if (g->edges.at[i].to == task &&
                !edge_known(s, from, g->edges.at[i].flags, s->o->lag_ns.at[i], &ready))
                return -1;
    for (i = 0; i < s->o->edges.n; i++) {
        const struct rp_extra_edge *x = &s->o->edges.at[i];

        if (x->edge.to == task && !edge_known(s, x->from, x->edge.flags, x->edge.lag_ns, &ready))
            return -1;
    }
    return ready;
}

/* Everything that can be known without a decision of a device. `now`: ends of the devices' tasks
   after it have not happened. */
static void settle(struct slow *s, int64_t now)
{
    bool moved = true;
    uint32_t v;

    while (moved) {
        moved = false;
        for (v = 0; v < s->n; v++) {
            const struct rp_task_row *t = rp_overlay_task(s->o, v);

            if (s->begun[v] && s->end[v] < 0 && s->start[v] + s->o->dur_ns.at[v] <= now) {
                s->end[v] = s->start[v] + s->o->dur_ns.at[v];
                moved = true;
            }
            if (s->ready[v] >= 0)
                continue;
            s->ready[v] = slow_ready(s, v);
            moved |= s->ready[v] >= 0;
            if (s->ready[v] >= 0 && t->device == RP_NO_DEVICE) {
                s->start[v] = s->ready[v];
                s->end[v] = s->start[v] + s->o->dur_ns.at[v];
            }
        }
    }
}

static bool device_busy(const struct slow *s, uint32_t dev)
{
    uint32_t v;

    for (v = 0; v < s->n; v++)
        if (s->begun[v] && s->end[v] < 0 && rp_overlay_task(s->o, v)->device == dev)
            return true;
    return false;
}

/* Lets the first idle device that can begin its best task that is ready now; whether one did. */
static bool begin_now(struct slow *s, int64_t now)
{
    uint32_t dev, v;

    for (dev = 0; dev < s->o->graph->devices.n; dev++) {
        uint32_t best = UINT32_MAX;

        if (device_busy(s, dev))
            continue;
        for (v = 0; v < s->n; v++) {
            const struct rp_task_row *t = rp_overlay_task(s->o, v), *b;

            if (t->device != dev || s->begun[v] || s->ready[v] < 0 || s->ready[v] > now)
                continue;
            b = best == UINT32_MAX ? NULL : rp_overlay_task(s->o, best);
            if (!b || t->priority < b->priority ||
                (t->priority == b->priority && s->ready[v] < s->ready[best]))
                best = v;
        }
        if (best == UINT32_MAX)
            continue;
        s->begun[best] = 1;
        s->start[best] = now;
        return true;
    }
    return false;
}

static int64_t next_moment(const struct slow *s, int64_t now)
{
    int64_t next = INT64_MAX;
    uint32_t v;

    for (v = 0; v < s->n; v++) {
        int64_t at = INT64_MAX;

        if (rp_overlay_task(s->o, v)->device == RP_NO_DEVICE)
            continue;
        if (s->begun[v] && s->end[v] < 0)
            at = s->start[v] + s->o->dur_ns.at[v];
        else if (!s->begun[v] && s->ready[v] > now)
            at = s->ready[v];
        next = at < next ? at : next;
    }
    return next;
}

static void slow_simulate(struct slow *s)
{
    int64_t now = 0;

    while (now != INT64_MAX) {
        do
            settle(s, now);
        while (begin_now(s, now));
        now = next_moment(s, now);
    }
}

/* ------------------------------------------------------------------ random graphs */

static uint32_t random_state;

static uint32_t random_below(uint32_t n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % n;
}

/* plain: without priorities, and edges from starts only out of tasks without a device. */
static void random_graph(struct rp_task_graph *g, uint32_t ndevices, bool plain)
{
    uint32_t i, n = 2 + random_below(24), edges = random_below(3 * n);

    rp_task_graph_init(g);
    for (i = 0; i < ndevices; i++)
        device(g, RP_DEVICE_SERIAL);
    for (i = 0; i < n; i++)
        add(g, 1 + random_below(20),
            ndevices && random_below(3) ? random_below(ndevices) : RP_NO_DEVICE,
            plain ? 0 : (uint8_t)random_below(3));
    for (i = 0; i < edges; i++) {
        uint32_t a = random_below(n), b = random_below(n), from = a < b ? a : b;
        bool start = !random_below(4) && !(plain && g->tasks.at[from].device != RP_NO_DEVICE);

        if (a != b)
            join(g, from, a < b ? b : a, random_below(6), start ? RP_EDGE_FROM_START : 0);
    }
    assert_code(rp_task_graph_freeze(g, NULL), RP_OK);
}

static void random_changes(struct rp_overlay *o)
{
    uint32_t i, n = (uint32_t)o->graph->tasks.n, fresh;

    for (i = random_below(4); i > 0; i--)
        assert_code(rp_overlay_set_dur(o, random_below(n), random_below(30), NULL), RP_OK);
    for (i = o->graph->edges.n ? random_below(4) : 0; i > 0; i--)
        assert_code(rp_overlay_set_lag(o, random_below((uint32_t)o->graph->edges.n),
                                       random_below(2) ? RP_LAG_CUT : (int64_t)random_below(9),
                                       NULL),
                    RP_OK);
    if (random_below(2)) {
        struct rp_task t = {.dur_ns = random_below(9), .device = RP_NO_DEVICE};

        assert_code(rp_overlay_add(o, t, &fresh, NULL), RP_OK);
        assert_code(rp_overlay_link(o, random_below(n), fresh, random_below(4), 0, NULL), RP_OK);
    }
}

static void compare(const struct rp_overlay *o)
{
    struct rp_sim_result r = {0};
    struct slow s = {.o = o, .n = rp_overlay_ntasks(o)};
    size_t i;

    s.start = malloc(s.n * sizeof *s.start);
    s.end = malloc(s.n * sizeof *s.end);
    s.ready = malloc(s.n * sizeof *s.ready);
    s.begun = calloc(s.n, sizeof *s.begun);
    for (i = 0; i < s.n; i++)
        s.start[i] = s.end[i] = s.ready[i] = -1;
    slow_simulate(&s);
    assert_code(rp_simulate(o, &r, NULL), RP_OK);
    for (i = 0; i < s.n; i++) {
        assert_int_equal(r.start_ns.at[i], s.start[i]);
        assert_int_equal(r.end_ns.at[i], s.end[i]);
    }
    rp_sim_result_release(&r);
    free(s.start);
    free(s.end);
    free(s.ready);
    free(s.begun);
}

static void equals_the_slow_one_on_random_graphs(void **state)
{
    uint32_t round;

    UNUSED_STATE(state);
    for (round = 0; round < 6000; round++) {
        struct rp_task_graph g;
        struct rp_overlay o;

        random_state = round;
        random_graph(&g, round % 4, round % 8 < 4);
        assert_code(rp_overlay_init(&o, &g, NULL), RP_OK);
        compare(&o);
        random_changes(&o);
        compare(&o);
        rp_overlay_release(&o);
        rp_task_graph_release(&g);
    }
}

/* ------------------------------------------------------------------ what always holds */

static int64_t last_of(const struct rp_overlay *o, struct rp_sim_result *r)
{
    assert_code(rp_simulate(o, r, NULL), RP_OK);
    return r->last_ns;
}

static void all_times_as_long_take_as_long(void **state)
{
    uint32_t round;

    UNUSED_STATE(state);
    for (round = 0; round < 300; round++) {
        struct rp_sim_result r = {0};
        struct rp_task_graph g;
        struct rp_overlay o;
        int64_t before;
        uint32_t i;

        random_state = 77 + round;
        random_graph(&g, round % 3, round % 2);
        assert_code(rp_overlay_init(&o, &g, NULL), RP_OK);
        before = last_of(&o, &r);
        for (i = 0; i < g.tasks.n; i++)
            assert_code(rp_overlay_set_dur(&o, i, 3 * o.dur_ns.at[i], NULL), RP_OK);
        for (i = 0; i < g.edges.n; i++)
            assert_code(rp_overlay_set_lag(&o, i, 3 * o.lag_ns.at[i], NULL), RP_OK);
        assert_int_equal(last_of(&o, &r), 3 * before);
        rp_sim_result_release(&r);
        rp_overlay_release(&o);
        rp_task_graph_release(&g);
    }
}

static void an_undone_change_leaves_nothing(void **state)
{
    uint32_t round;

    UNUSED_STATE(state);
    for (round = 0; round < 300; round++) {
        struct rp_sim_result first = {0}, again = {0};
        struct rp_task_graph g;
        struct rp_overlay o;

        random_state = 7777 + round;
        random_graph(&g, round % 3, round % 2);
        assert_code(rp_overlay_init(&o, &g, NULL), RP_OK);
        last_of(&o, &first);
        random_changes(&o);
        random_changes(&o);
        rp_overlay_undo(&o, 0);
        last_of(&o, &again);
        assert_int_equal(first.start_ns.n, again.start_ns.n);
        assert_memory_equal(first.start_ns.at, again.start_ns.at, 8 * first.start_ns.n);
        assert_memory_equal(first.end_ns.at, again.end_ns.at, 8 * first.end_ns.n);
        rp_sim_result_release(&first);
        rp_sim_result_release(&again);
        rp_overlay_release(&o);
        rp_task_graph_release(&g);
    }
}

/* Without devices, whose order could change. */
static void an_edge_never_shortens(void **state)
{
    uint32_t round;

    UNUSED_STATE(state);
    for (round = 0; round < 300; round++) {
        struct rp_sim_result r = {0};
        struct rp_task_graph g;
        struct rp_overlay o;
        uint32_t a, b;
        int64_t before;

        random_state = 4242 + round;
        random_graph(&g, 0, round % 2);
        assert_code(rp_overlay_init(&o, &g, NULL), RP_OK);
        before = last_of(&o, &r);
        a = random_below((uint32_t)g.tasks.n - 1);
        b = a + 1 + random_below((uint32_t)g.tasks.n - a - 1);
        assert_code(rp_overlay_link(&o, a, b, random_below(9), 0, NULL), RP_OK);
        assert_true(last_of(&o, &r) >= before);
        rp_sim_result_release(&r);
        rp_overlay_release(&o);
        rp_task_graph_release(&g);
    }
}

/* The log holds any number, near and far from the one before. */
static void changes_of_any_size_are_undone(void **state)
{
    static const int64_t values[] = {0,         1,  127,           128,       INT64_C(1) << 31,
                                     INT64_MAX, -1, INT64_MIN + 1, RP_LAG_CUT};
    enum { TASKS = 300, VALUES = sizeof values / sizeof values[0] };
    struct rp_task_graph g;
    struct rp_overlay o;
    uint32_t i, task;

    UNUSED_STATE(state);
    rp_task_graph_init(&g);
    for (i = 0; i < TASKS; i++)
        add(&g, values[i % VALUES], RP_NO_DEVICE, 0);
    for (i = 1; i < TASKS; i++)
        join(&g, i - 1, i, values[i % VALUES], 0);
    assert_code(rp_task_graph_freeze(&g, NULL), RP_OK);
    assert_code(rp_overlay_init(&o, &g, NULL), RP_OK);
    for (i = 0; i < TASKS; i++) {
        task = i * 7919 % TASKS;
        assert_code(rp_overlay_set_dur(&o, task, 5, NULL), RP_OK);
        assert_code(rp_overlay_set_lag(&o, task % (TASKS - 1), RP_LAG_CUT, NULL), RP_OK);
    }
    rp_overlay_undo(&o, 0);
    assert_int_equal(rp_overlay_mark(&o), 0);
    for (i = 0; i < TASKS; i++)
        assert_int_equal(o.dur_ns.at[i], values[i % VALUES]);
    for (i = 1; i < TASKS; i++)
        assert_int_equal(o.lag_ns.at[i - 1], values[i % VALUES]);
    rp_overlay_release(&o);
    rp_task_graph_release(&g);
}

/* More tasks than sums are safe for, of which none is looked at: memory for them is not there. */
static void a_plain_graph_has_a_limit(void **state)
{
    struct rp_task_graph few, many = {.tasks.n = RP_PLAIN_MOST};
    struct rp_overlay o, none = {.graph = &many};
    struct rp_plain_graph plain;

    UNUSED_STATE(state);
    rp_task_graph_init(&few);
    add(&few, 1, RP_NO_DEVICE, 0);
    assert_code(rp_task_graph_freeze(&few, NULL), RP_OK);
    assert_code(rp_overlay_init(&o, &few, NULL), RP_OK);
    assert_code(rp_plain_graph_init(&plain, &o, NULL), RP_OK);
    assert_true(plain.fits);
    rp_plain_graph_release(&plain);
    assert_code(rp_plain_graph_init(&plain, &none, NULL), RP_OK);
    assert_false(plain.fits);
    assert_int_equal(plain.tasks.n, 0);
    rp_plain_graph_release(&plain);
    rp_overlay_release(&o);
    rp_task_graph_release(&few);
}

int test_simulator(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_waits_for_the_last_of_what_it_needs),
        cmocka_unit_test(a_serial_device_takes_priority_then_who_came_first),
        cmocka_unit_test(a_device_is_causal),
        cmocka_unit_test(a_shared_device_gives_each_its_part),
        cmocka_unit_test(a_long_chain_of_starts_is_no_recursion),
        cmocka_unit_test(a_cycle_is_an_error),
        cmocka_unit_test(equals_the_slow_one_on_random_graphs),
        cmocka_unit_test(all_times_as_long_take_as_long),
        cmocka_unit_test(an_undone_change_leaves_nothing),
        cmocka_unit_test(an_edge_never_shortens),
        cmocka_unit_test(changes_of_any_size_are_undone),
        cmocka_unit_test(a_plain_graph_has_a_limit),
    };

    return cmocka_run_group_tests_name("simulator", tests, NULL, NULL);
}
