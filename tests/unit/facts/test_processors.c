/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording counted of threads that waited for a processor. */
#include "facts/host/processors.h"
#include "trace/trace_fixtures.h"

struct fact {
    const char *key;
    int64_t value;
};

enum { FACTS = 8 };

static void count(struct rp_builder *b, const char *name, char phase, int64_t tid, int64_t ts,
                  const struct fact facts[FACTS])
{
    struct rp_arg args[FACTS];
    struct rp_raw raw = {.ts_ns = ts,
                         .dur_ns = phase == 'X' ? 5 : RP_OPEN_NS,
                         .name = str_of(b, name),
                         .track = track_of(b, 1, tid),
                         .origin = origin_of(b, phase, phase == 'X' ? "cpu_op" : NULL),
                         .args = args};

    for (size_t i = 0; i < FACTS && facts[i].key; i++)
        push_arg(b, args, &raw.nargs, facts[i].key, facts[i].value);
    assert_code(rp_builder_shape(b, args, raw.nargs, &raw.shape, NULL), RP_OK);
    assert_code(rp_builder_add(b, &raw, NULL), RP_OK);
}

static struct rp_processors found(struct rp_builder *b)
{
    struct rp_trace *t = finish_valid(b);
    struct rp_processors p;

    assert_code(rp_processors_find(t, &p, NULL), RP_OK);
    rp_trace_free(t);
    return p;
}

static struct rp_builder *empty(void)
{
    struct rp_builder *b;

    assert_code(rp_builder_new(NULL, &b, NULL), RP_OK);
    return b;
}

#define READY(over, ready, ran)                     \
    (const struct fact[FACTS])                      \
    {                                               \
        {"over_ns", (over)}, {"ready_ns", (ready)}, \
        {                                           \
            "ran_ns", (ran)                         \
        }                                           \
    }

static void threads_were_ready(void **state)
{
    static const char waited[] = "waited for a processor";
    struct rp_builder *b = empty();
    struct rp_processors p;

    UNUSED_STATE(state);
    count(b, waited, 'C', 5, 1000, READY(500, 200, 300));
    count(b, waited, 'C', 5, 1500, READY(500, 0, 500)); /* ran all the time */
    count(b, waited, 'C', 5, 2000, READY(0, 200, 0));   /* in no time */
    count(b, waited, 'C', 5, 2500, READY(500, -1, 0));
    count(b, waited, 'C', 5, 3000, READY(400, 1, -7));
    count(b, waited, 'X', 5, 4000, READY(500, 200, 300)); /* a span of that name */
    count(b, "waited", 'C', 5, 4000, READY(500, 200, 300));
    count(b, waited, 'C', 6, 1100, READY(1, 100, 2));
    p = found(b);
    assert_int_equal(p.ready.n, 3);
    assert_int_equal(p.ready.at[0].begin_ns, 1000);
    assert_int_equal(p.ready.at[0].end_ns, 1500);
    assert_int_equal(p.ready.at[0].ready_ns, 200);
    assert_int_equal(p.ready.at[0].ran_ns, 300);
    assert_int_equal(p.ready.at[1].begin_ns, 3000);
    assert_int_equal(p.ready.at[1].end_ns, 3400);
    assert_int_equal(p.ready.at[1].ready_ns, 1);
    assert_int_equal(p.ready.at[1].ran_ns, 0);
    assert_int_equal(p.ready.at[1].thread, p.ready.at[0].thread);
    assert_int_equal(p.ready.at[2].begin_ns, 1100);
    assert_int_equal(p.ready.at[2].end_ns, 1101);
    assert_true(p.ready.at[2].thread > p.ready.at[0].thread);
    assert_int_equal(p.machine.looks, 0);
    /* the first that ends after a time, of its thread */
    assert_int_equal(rp_ready_first(&p, p.ready.at[0].thread, 0), 0);
    assert_int_equal(rp_ready_first(&p, p.ready.at[0].thread, 1499), 0);
    assert_int_equal(rp_ready_first(&p, p.ready.at[0].thread, 1500), 1);
    assert_int_equal(rp_ready_first(&p, p.ready.at[0].thread, 3400), 2);
    assert_int_equal(rp_ready_first(&p, p.ready.at[2].thread, 0), 2);
    assert_int_equal(rp_ready_first(&p, p.ready.at[2].thread, 1101), 3);
    rp_processors_release(&p);
}

/* Times and loads are sums, the processors and the limit those that were seen last. */
static void the_machine_was_looked_at(void **state)
{
    static const struct fact looks[3][FACTS] = {
        {{"over_ns", 100},
         {"some_waited_ns", 40},
         {"throttled_ns", 7},
         {"load_percent", 150},
         {"processors", 8},
         {"limit_percent", 300}},
        {{"over_ns", 101},
         {"some_waited_ns", 50},
         {"throttled_ns", 11},
         {"load_percent", 250},
         {"processors", 4},
         {"limit_percent", 200}},
        {{"over_ns", 99}, {"some_waited_ns", -3}, {"processors", 2}}};
    struct rp_builder *b = empty();
    struct rp_processors p;

    UNUSED_STATE(state);
    for (int i = 0; i < 3; i++)
        count(b, "processors", 'C', 5, 1000 * (i + 1), looks[i]);
    p = found(b);
    assert_int_equal(p.ready.n, 0);
    assert_int_equal(p.machine.looks, 3);
    assert_int_equal(p.machine.over_ns, 300);
    assert_int_equal(p.machine.some_waited_ns, 90);
    assert_int_equal(p.machine.throttled_ns, 18);
    assert_int_equal(p.machine.load_percent, 400);
    assert_int_equal(p.machine.processors, 2);
    assert_int_equal(p.machine.limit_percent, 0);
    rp_processors_release(&p);
}

static void without_counters_nothing_is_known(void **state)
{
    struct rp_builder *b = empty();
    struct rp_processors p;

    UNUSED_STATE(state);
    count(b, "processors", 'X', 5, 1000, READY(500, 200, 300));
    p = found(b);
    assert_int_equal(p.machine.looks, 0);
    assert_int_equal(p.ready.n, 0);
    rp_processors_release(&p);
}

int test_processors(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_were_ready),
        cmocka_unit_test(the_machine_was_looked_at),
        cmocka_unit_test(without_counters_nothing_is_known),
    };

    return cmocka_run_group_tests_name("processors", tests, NULL, NULL);
}
