/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong on the device, and that nothing is found where nothing is wrong. */
#include "explain/report/report.h"
#include "trace/trace_fixtures.h"

#define US 1000
#define N  40

struct bench {
    struct rp_arena arena;
    struct rp_trace *t;
    struct rp_work w;
    rp_gap_vec gaps;
    struct rp_report_device d;
};

static void look(struct bench *b, const struct row *rows, size_t n)
{
    struct rp_gap_finder *finder;

    *b = (struct bench){0};
    b->t = trace_of(rows, n);
    assert_code(rp_work_init(&b->w, b->t, NULL, NULL), RP_OK);
    assert_code(rp_gap_finder_new(b->w.trace, &finder, NULL), RP_OK);
    assert_code(rp_gaps_find(finder, &b->w, &b->gaps, NULL), RP_OK);
    rp_gap_finder_free(finder);
    assert_code(rp_report_check_device(&b->w, &b->gaps, &b->arena, &b->d, NULL), RP_OK);
}

static void end(struct bench *b)
{
    rp_vec_release(&b->gaps);
    rp_work_release(&b->w);
    rp_trace_free(b->t);
    rp_arena_release(&b->arena);
}

/* Kernels of three names, each 100 us and launched long before; `slow` stretches the last third. */
static void steady(struct row *rows, int percent, const char *key, int64_t value)
{
    static const char *const names[] = {"a", "b", "c"};
    int64_t at = 1000 * US;
    int i;

    for (i = 0; i < N; i++) {
        int64_t dur = i >= N * 2 / 3 ? 100 * US * (100 + percent) / 100 : 100 * US;

        rows[2 * i] =
            (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, i * 5 * US, 4 * US, i + 1};
        rows[2 * i + 1] = (struct row){'X', "kernel", names[i % 3], 0, 7, at, dur, i + 1, 7};
        rows[2 * i + 1].key = key;
        rows[2 * i + 1].value = value;
        at += dur + US;
    }
}

static void a_steady_device_is_left_alone(void **state)
{
    struct row rows[2 * N];
    struct bench b;

    UNUSED_STATE(state);
    steady(rows, 2, "blocks per SM", 4);
    look(&b, rows, 2 * N);
    assert_int_equal(b.d.thin_lost_ns, 0);
    assert_int_equal(b.d.slowed_ns, 0);
    assert_int_equal(b.d.early_count, 0);
    assert_int_equal(b.d.reserved_bytes, 0);
    end(&b);
}

static void all_kernels_slower_is_a_matter_of_the_clock(void **state)
{
    struct row rows[2 * N];
    struct bench b;
    int i;

    UNUSED_STATE(state);
    steady(rows, 20, NULL, 0);
    look(&b, rows, 2 * N);
    assert_int_equal(b.d.slowed_kinds, 3);
    assert_int_equal(b.d.slowed_ns, 14 * 20 * US); /* the last 14 of 40 are 20 us longer */
    end(&b);
    for (i = 0; i < N; i++) /* one name of three: its own matter */
        if (strcmp(rows[2 * i + 1].name, "a"))
            rows[2 * i + 1].dur = 100 * US;
    look(&b, rows, 2 * N);
    assert_int_equal(b.d.slowed_ns, 0);
    end(&b);
}

static void few_warps_lose_where_they_hold_up(void **state)
{
    struct row rows[2 * N];
    struct bench b;
    int i;

    UNUSED_STATE(state);
    steady(rows, 0, "est. achieved occupancy %", 5);
    look(&b, rows, 2 * N);
    assert_int_equal(b.d.thin_count, N);
    assert_int_equal(b.d.thin_lost_ns, N * 80 * US); /* 5 of 25 % */
    end(&b);
    for (i = 0; i < N; i++)
        rows[2 * i + 1].name = "sm90_xmma_gemm_f32"; /* matrix products run best so */
    look(&b, rows, 2 * N);
    assert_int_equal(b.d.thin_lost_ns, 0);
    end(&b);
    for (i = 0; i < N; i++) { /* each launched when the one before has ended: the host is slow */
        rows[2 * i].ts = i * 1000 * US;
        rows[2 * i + 1].ts = i * 1000 * US + 10 * US;
        rows[2 * i + 1].name = "a";
    }
    look(&b, rows, 2 * N);
    assert_int_equal(b.d.thin_count, 1); /* the last */
    end(&b);
}

static void work_before_its_launch_is_counted(void **state)
{
    static const struct row rows[] = {{'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 500, 40, 1},
                                      {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 600, 40, 2},
                                      {'X', "kernel", "a", 0, 7, 470, 20, 1, 7},
                                      {'X', "kernel", "b", 0, 7, 700, 20, 2, 7}};
    struct bench b;

    UNUSED_STATE(state);
    look(&b, rows, 4);
    assert_int_equal(b.d.launched, 2);
    assert_int_equal(b.d.early_count, 1);
    assert_int_equal(b.d.early_most_ns, 30);
    end(&b);
}

int test_report_device(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_steady_device_is_left_alone),
        cmocka_unit_test(all_kernels_slower_is_a_matter_of_the_clock),
        cmocka_unit_test(few_warps_lose_where_they_hold_up),
        cmocka_unit_test(work_before_its_launch_is_counted),
    };

    return cmocka_run_group_tests_name("report_device", tests, NULL, NULL);
}
