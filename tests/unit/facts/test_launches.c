/* SPDX-License-Identifier: Apache-2.0 */
/* Delays of launches and lengths of queues. */
#include "facts/work/launches.h"
#include "trace/trace_fixtures.h"

static void delays_and_queues(void **state)
{
    static const struct row rows[] = {
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 0, 4, 1},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 10, 4, 2},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 20, 40, 3},
        {'X', "kernel", "a", 0, 7, 30, 20, 1, 7},
        {'X', "kernel", "b", 0, 7, 50, 20, 2, 7},
        {'X', "kernel", "c", 0, 8, 55, 5, 3, 8},   /* inside its call: no delay */
        {'X', "kernel", "lost", 0, 7, 90, 5, 9, 7} /* nobody launched it */
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_queues q;
    struct rp_work w;
    uint32_t s;

    UNUSED_STATE(state);
    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_code(rp_queues_init(&q, &w, NULL), RP_OK);
    assert_int_equal(q.list.n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(q.list.at[i].item, i);
        assert_int_equal(q.list.at[i].items, 1);
        assert_int_equal(t->ev.ts_ns[q.list.at[i].call], 10 * i);
    }
    assert_int_equal(q.list.at[2].call_ns, 40);
    assert_int_equal(q.list.at[2].device_ns, 5);
    assert_int_equal(q.list.at[0].delay_ns, 26);
    assert_int_equal(q.list.at[0].call_ns, 4);
    assert_int_equal(q.list.at[0].device_ns, 20);
    assert_int_equal(q.list.at[1].delay_ns, 36);
    assert_int_equal(q.list.at[2].delay_ns, 0);
    s = w.items.at[q.list.at[0].item].stream;
    assert_int_equal(rp_queue_length(&q, s, -1), 0);
    assert_int_equal(rp_queue_length(&q, s, 0), 1);
    assert_int_equal(rp_queue_length(&q, s, 15), 2);
    assert_int_equal(rp_queue_length(&q, s, 30), 1);
    assert_int_equal(rp_queue_length(&q, s, 60), 0);
    rp_queues_release(&q);
    rp_work_release(&w);
    rp_trace_free(t);
}

/* The second stream runs in another order than it was filled. */
static void queues_are_in_the_order_of_launches(void **state)
{
    static const struct row rows[] = {
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 0, 2, 1},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 10, 2, 2},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 20, 2, 3},
        {'X', "kernel", "a", 0, 7, 30, 5, 1, 7},
        {'X', "kernel", "b", 0, 8, 40, 5, 3, 8},
        {'X', "kernel", "c", 0, 8, 50, 5, 2, 8},
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_queues q;
    struct rp_work w;
    uint32_t s;

    UNUSED_STATE(state);
    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_code(rp_queues_init(&q, &w, NULL), RP_OK);
    s = w.items.at[1].stream;
    assert_int_equal(rp_queue_length(&q, s, 9), 0);
    assert_int_equal(rp_queue_length(&q, s, 15), 1);
    assert_int_equal(rp_queue_length(&q, s, 25), 2);
    assert_int_equal(rp_queue_length(&q, s, 45), 1);
    assert_int_equal(rp_queue_length(&q, s, 55), 0);
    rp_queues_release(&q);
    rp_work_release(&w);
    rp_trace_free(t);
}

/* The call of a graph is one launch, of all its work. */
static void graphs_are_one_launch(void **state)
{
    static const struct row rows[] = {
        {'X', "cuda_runtime", "cudaGraphLaunch", 1, 1, 0, 10, 1},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 12, 4, 2},
        {'X', "cuda_runtime", "cudaGraphLaunch", 1, 1, 20, 10, 3},
        {'X', "kernel", "a", 0, 7, 30, 5, 1, 7},
        {'X', "kernel", "b", 0, 8, 32, 20, 1, 8},
        {'X', "gpu_memcpy", "c", 0, 7, 36, 4, 1, 7},
        {'X', "kernel", "d", 0, 7, 60, 1, 2, 7},
        {'X', "kernel", "a", 0, 7, 70, 5, 3, 7},
        {'X', "kernel", "b", 0, 8, 72, 20, 3, 8},
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_queues q;
    struct rp_work w;
    uint32_t s7, s8;

    UNUSED_STATE(state);
    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_code(rp_queues_init(&q, &w, NULL), RP_OK);
    assert_int_equal(q.list.n, 3);
    assert_int_equal(q.list.at[0].items, 3);
    assert_int_equal(q.list.at[0].call_ns, 10);
    assert_int_equal(q.list.at[0].device_ns, 29);
    assert_int_equal(q.list.at[0].delay_ns, 20);
    assert_int_equal(q.list.at[1].items, 1);
    assert_int_equal(q.list.at[2].items, 2);
    assert_int_equal(q.list.at[2].device_ns, 25);
    s7 = w.items.at[q.list.at[0].item].stream;
    s8 = w.items.at[1].stream;
    assert_int_not_equal(s7, s8);
    assert_int_equal(rp_queue_length(&q, s7, 25), 3);
    assert_int_equal(rp_queue_length(&q, s7, 33), 2); /* the graph has begun */
    assert_int_equal(rp_queue_length(&q, s8, 25), 0);
    rp_queues_release(&q);
    rp_work_release(&w);
    rp_trace_free(t);
}

int test_launches(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(delays_and_queues),
                                       cmocka_unit_test(queues_are_in_the_order_of_launches),
                                       cmocka_unit_test(graphs_are_one_launch)};

    return cmocka_run_group_tests_name("launches", tests, NULL, NULL);
}
