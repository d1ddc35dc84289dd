/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that does nothing, and goes on as soon as the device has nothing left to do. */
#include "graph_fixtures.h"

#define MOST 10
#define WORK 10000 /* of the thread in a round */

/* Waits that are found where the thread is quiet for quiet_ns between rounds and goes on after_ns
   after the kernel has ended; in the last `apart` rounds the device has ended long before. */
static size_t waits_in(size_t rounds, int64_t quiet_ns, int64_t after_ns, size_t apart)
{
    struct row rows[2 * MOST];
    struct built b;
    size_t n = 0, waits = 0;

    for (size_t i = 0; i < rounds; i++) {
        int64_t at = (int64_t)i * (WORK + quiet_ns), next = at + WORK + quiet_ns;
        bool early = i + 1 + apart >= rounds;

        rows[n++] = (struct row){'X', "cpu_op", "poll", 1, 1, at, WORK};
        if (i + 1 < rounds)
            rows[n++] = (struct row){'X',
                                     "kernel",
                                     "k",
                                     0,
                                     7,
                                     at + 5000,
                                     (early ? at + 50000 : next - after_ns) - at - 5000,
                                     0,
                                     7};
    }
    b = build_graph(rows, n);
    for (size_t i = 0; i < b.graph.edges.n; i++)
        waits += b.graph.edges.at[i].kind == RP_SG_SYNC;
    release_graph(&b);
    return waits;
}

static void a_thread_that_polls_waits(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(waits_in(5, 200000, 1000, 0), 4);
    assert_int_equal(waits_in(5, 200000, 20000, 0), 4);
    assert_int_equal(waits_in(5, 200000, 20001, 0), 0); /* not soon enough */
    assert_int_equal(waits_in(4, 200000, 1000, 0), 0);  /* three times may be chance */
    assert_int_equal(waits_in(5, 100000, 1000, 0), 4);
    assert_int_equal(waits_in(5, 99999, 1000, 0), 0);   /* not quiet for long enough */
    assert_int_equal(waits_in(10, 200000, 1000, 1), 8); /* eight of nine */
    assert_int_equal(waits_in(10, 200000, 1000, 2), 0); /* seven of nine: it does something else */
}

int test_silent_waits(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_thread_that_polls_waits)};

    return cmocka_run_group_tests_name("silent waits", tests, NULL, NULL);
}
