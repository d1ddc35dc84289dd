/* SPDX-License-Identifier: Apache-2.0 */
/* The course of a rank: what is joined, what waits, and what of it is work that was not recorded.
 */
#include "places/course.h"
#include "trace/trace_fixtures.h"

#define NCCL "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*)"

struct made {
    struct rp_arena arena;
    struct rp_collectives list;
    struct rp_course course;
};

static struct made made_of(const struct row *rows, size_t n)
{
    struct rp_trace *t = trace_of(rows, n);
    struct rp_err err = RP_ERR_INIT;
    struct rp_work w;
    struct made m = {0};

    rp_arena_init(&m.arena);
    assert_ok(rp_work_init(&w, t, NULL, &err), &err);
    assert_ok(rp_collectives_init(&m.list, &w, NULL, &m.arena, &err), &err);
    assert_ok(rp_course_make(&m.course, &w, &m.list, &m.arena, &err), &err);
    rp_work_release(&w);
    rp_trace_free(t); /* the course must not need it */
    return m;
}

static void release(struct made *m)
{
    rp_collectives_release(&m->list);
    rp_arena_release(&m->arena);
}

static const struct rp_course_op *op_of(const struct made *m, enum rp_course_kind kind, size_t nth)
{
    for (size_t i = 0; i < m->course.nops; i++)
        if (m->course.ops[i].kind == kind && !nth--)
            return &m->course.ops[i];
    return NULL;
}

static int64_t dur_of(const struct made *m, enum rp_course_class cls, const char *name)
{
    int64_t sum = 0;

    for (size_t i = 0; i < m->course.nops; i++)
        for (uint32_t k = 0; k < m->course.ops[i].n; k++) {
            const struct rp_course_item *item = &m->course.items[m->course.ops[i].first + k];
            const struct rp_course_key *key = &m->course.keys[item->key];

            if (key->cls == cls && !strcmp(key->name, name))
                sum += item->dur_ns;
        }
    return sum;
}

#define LAUNCH(ts, dur, corr)                                              \
    {                                                                      \
        'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, (ts), (dur), (corr) \
    }
#define KERNEL(name, stream, ts, dur, corr)                               \
    {                                                                     \
        'X', "kernel", (name), 0, (stream), (ts), (dur), (corr), (stream) \
    }

/* Two kernels, an all-reduce on another stream, and a kernel `late` after its end. */
static struct made waiting(int64_t late)
{
    const struct row rows[] = {LAUNCH(1000, 1000, 1),
                               LAUNCH(3000, 1000, 2),
                               LAUNCH(5000, 1000, 3),
                               LAUNCH(7000, 1000, 4),
                               KERNEL("a", 7, 10000, 90000, 1),
                               KERNEL("b", 7, 101000, 99000, 2),
                               KERNEL(NCCL, 9, 201000, 99000, 3),
                               KERNEL("c", 7, 300000 + late, 50000, 4)};

    return made_of(rows, sizeof rows / sizeof rows[0]);
}

static void what_begins_soon_after_a_collective_waited_for_it(void **state)
{
    UNUSED_STATE(state);
    for (int k = 0; k < 2; k++) {
        struct made m = waiting(k ? 9000 : 11000);
        const struct rp_course_op *c = op_of(&m, RP_COURSE_COLLECTIVE, 0);

        assert_non_null(c);
        assert_int_equal(c->index, 2);
        assert_int_equal(c->wait, 3);
        assert_int_equal(c->tight, k);
        release(&m);
    }
}

static void what_begins_a_little_before_the_end_may_have_waited(void **state)
{
    UNUSED_STATE(state);
    for (int k = 0; k < 2; k++) {
        struct made m = waiting(k ? -2500 : -3500);
        const struct rp_course_op *c = op_of(&m, RP_COURSE_COLLECTIVE, 0);

        assert_non_null(c);
        assert_int_equal(c->tight, k);
        release(&m);
    }
}

/* Both kernels before the all-reduce are one operation, but for the launch of the second; the one
   that may wait begins another. */
static void work_is_joined_up_to_what_may_wait(void **state)
{
    struct made m = waiting(2000);
    const struct rp_course_op *last = op_of(&m, RP_COURSE_DEVICE, 2);

    UNUSED_STATE(state);
    assert_int_equal(
        op_of(&m, RP_COURSE_DEVICE, 0)->dur_ns + op_of(&m, RP_COURSE_DEVICE, 1)->dur_ns, 189000);
    assert_non_null(last);
    assert_int_equal(last->index, 3);
    assert_int_equal(last->begin_ns, 302000);
    assert_int_equal(dur_of(&m, RP_COURSE_KERNEL, "a"), 90000);
    assert_int_equal(m.course.gap_ns, 1000);
    release(&m);
}

/* The device rests before `d`, which was issued long before. */
static void a_rest_of_the_device_is_work(void **state)
{
    UNUSED_STATE(state);
    for (int k = 0; k < 2; k++) {
        int64_t rest = k ? 3500 : 2500;
        const struct row rows[] = {LAUNCH(1000, 1000, 1),
                                   LAUNCH(50000, 1000, 2),
                                   LAUNCH(52000, 1000, 3),
                                   LAUNCH(53000, 1000, 4),
                                   LAUNCH(55000, 1000, 5),
                                   KERNEL("a", 7, 10000, 90000, 1),
                                   KERNEL("b", 7, 101000, 9000, 2),
                                   KERNEL("c", 7, 111000, 9000, 3),
                                   KERNEL("d", 7, 120000 + rest, 9000, 4),
                                   KERNEL(NCCL, 9, 140000, 99000, 5)};
        struct made m = made_of(rows, sizeof rows / sizeof rows[0]);

        assert_int_equal(dur_of(&m, RP_COURSE_REST, "d"), k ? 3500 : 0);
        release(&m);
    }
}

/* The host: an operator around a launch, a range before it, and time that nothing is known of. */
static void time_of_the_host_is_divided(void **state)
{
    const struct row rows[] = {{'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 500000},
                               {'X', "user_annotation", "load", 1, 1, 5000, 60000},
                               {'X', "cpu_op", "aten::mm", 1, 1, 70000, 20000},
                               LAUNCH(75000, 10000, 1),
                               LAUNCH(95000, 5000, 2),
                               {'X', "cuda_runtime", "cudaStreamSynchronize", 1, 1, 110000, 191000},
                               KERNEL("a", 7, 90000, 60000, 1),
                               KERNEL(NCCL, 7, 160000, 140000, 2)};
    struct made m = made_of(rows, sizeof rows / sizeof rows[0]);
    const struct rp_course_op *sync = op_of(&m, RP_COURSE_SYNC, 0);

    UNUSED_STATE(state);
    assert_int_equal(dur_of(&m, RP_COURSE_CALL, "load"), 60000);
    assert_int_equal(dur_of(&m, RP_COURSE_CALL, "aten::mm"), 15000);
    assert_int_equal(dur_of(&m, RP_COURSE_GAP, "load"), 5000);
    assert_int_equal(dur_of(&m, RP_COURSE_GAP, "aten::mm"), 5000);
    assert_non_null(sync);
    assert_int_equal(sync->begin_ns, 301000);
    assert_int_equal(sync->ref, 0);
    release(&m);
}

/* Nothing is recorded while the device works, and the host goes on `late` after its end. */
static void a_host_that_polls_waits(void **state)
{
    UNUSED_STATE(state);
    for (int k = 0; k < 2; k++) {
        int64_t late = k ? 18000 : 22000;
        const struct row rows[] = {LAUNCH(1000, 1000, 1), KERNEL("a", 7, 10000, 90000, 1),
                                   LAUNCH(100000 + late, 1000, 2),
                                   KERNEL(NCCL, 9, 130000, 99000, 2)};
        struct made m = made_of(rows, sizeof rows / sizeof rows[0]);

        assert_int_equal(op_of(&m, RP_COURSE_SYNC, 0) != NULL, k);
        release(&m);
    }
}

/* The host goes on before the recorded end of what it waits for. */
static void a_host_that_polls_may_seem_early(void **state)
{
    UNUSED_STATE(state);
    for (int k = 0; k < 2; k++) {
        int64_t early = k ? 9000 : 11000;
        const struct row rows[] = {LAUNCH(1000, 1000, 1), KERNEL("a", 7, 10000, 90000, 1),
                                   LAUNCH(100000 - early, 1000, 2),
                                   KERNEL(NCCL, 9, 130000, 99000, 2)};
        struct made m = made_of(rows, sizeof rows / sizeof rows[0]);

        assert_int_equal(op_of(&m, RP_COURSE_SYNC, 0) != NULL, k);
        release(&m);
    }
}

/* Whatever the times are. */
static void hostile_times(void **state)
{
    struct random r = {7};
    struct row rows[40];

    UNUSED_STATE(state);
    for (int round = 0; round < 200; round++) {
        struct made m;

        for (size_t i = 0; i < 40; i++) {
            int64_t ts = random_below(&r, 4) ? (int64_t)random_below(&r, 100) : INT64_MAX / 2;
            int64_t corr = 1 + random_below(&r, 12);

            rows[i] = i % 2 ? (struct row)LAUNCH(ts, random_below(&r, 30), corr)
                            : (struct row)KERNEL(i % 4 ? "a" : NCCL, 7 + i % 3, ts,
                                                 random_below(&r, 30), corr);
        }
        m = made_of(rows, 40);
        for (size_t i = 0; i < m.course.nops; i++)
            assert_true(m.course.ops[i].first + m.course.ops[i].n <= m.course.nitems);
        release(&m);
    }
}

int test_course(void);
int test_course(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_begins_soon_after_a_collective_waited_for_it),
        cmocka_unit_test(what_begins_a_little_before_the_end_may_have_waited),
        cmocka_unit_test(work_is_joined_up_to_what_may_wait),
        cmocka_unit_test(a_rest_of_the_device_is_work),
        cmocka_unit_test(time_of_the_host_is_divided),
        cmocka_unit_test(a_host_that_polls_waits),
        cmocka_unit_test(a_host_that_polls_may_seem_early),
        cmocka_unit_test(hostile_times),
    };

    return cmocka_run_group_tests_name("course", tests, NULL, NULL);
}
