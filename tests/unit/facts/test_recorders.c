/* SPDX-License-Identifier: Apache-2.0 */
/* By how much the clock of a second recorder must be corrected, and what of it is kept. */
#include "facts/recorders.h"
#include "trace/trace_fixtures.h"

/* The host calls at 100, 200, 300 and 400, waits from then on until 600, and copies. The device's
   clock is about 1000 ahead: its work starts at least 1020 after its call, and has ended when the
   host has waited for it: the copy, which returns at 750, ends at 1745. */
static const struct row calls[] = {
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 100, 10, 1},
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 200, 10, 2},
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 300, 10, 3},
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 400, 10, 4},
    {'X', "cuda_runtime", "cudaDeviceSynchronize", 1, 1, 410, 190},
    {'X', "cuda_runtime", "cudaMemcpy", 1, 1, 700, 50, 5},
};
static const struct row work[] = {
    {'X', "kernel", "a", 0, 7, 1120, 30, 1, 7},    {'X', "kernel", "b", 0, 7, 1230, 30, 2, 7},
    {'X', "kernel", "c", 0, 7, 1340, 30, 3, 7},    {'X', "kernel", "d", 0, 7, 1450, 30, 4, 7},
    {'X', "gpu_memcpy", "e", 0, 7, 1740, 5, 5, 7},
};

static enum rp_code align(struct rp_trace *a, struct rp_trace *b, struct rp_recorders *out,
                          struct rp_err *err)
{
    const struct rp_trace *const traces[2] = {a, b};

    return rp_recorders_align(traces, out, err);
}

static void launches_bound_the_offset(void **state)
{
    struct rp_trace *host = TRACE_OF(calls), *device = TRACE_OF(work);
    struct rp_trace *four = trace_of(work, 4), *five = trace_of(calls, 5);
    struct rp_err err = RP_ERR_INIT;
    struct rp_recorders r;

    UNUSED_STATE(state);
    assert_ok(align(host, device, &r, &err), &err);
    assert_string_equal(rp_recorders_word(r.by), "correlation");
    assert_int_equal(r.matched, 5);
    assert_true(r.same_ids);
    assert_false(r.contradiction);
    assert_int_equal(r.low_ns, 100 - 1120);
    assert_int_equal(r.high_ns, 750 - 1745);
    assert_int_equal(r.offset_ns, -1020 + 12);
    assert_int_equal(r.uncertainty_ns, 12);
    for (rp_event e = 0; e < host->ev.n; e++)
        assert_int_equal(r.keep[0][e], 1);
    rp_recorders_release(&r);
    assert_ok(align(device, host, &r, &err), &err); /* the other way round */
    assert_int_equal(r.low_ns, 1745 - 750);
    assert_int_equal(r.high_ns, 1120 - 100);
    assert_int_equal(r.offset_ns, 1020 - 12);
    rp_recorders_release(&r);
    assert_ok(align(five, four, &r, &err), &err); /* no copy: the call that waits is the bound */
    assert_int_equal(r.high_ns, 600 - 1480);
    assert_int_equal(r.low_ns, -1020);
    assert_int_equal(r.offset_ns, -1020 + 70);
    rp_recorders_release(&r);
    rp_trace_free(host);
    rp_trace_free(device);
    rp_trace_free(four);
    rp_trace_free(five);
}

static void one_bound_alone_is_the_offset(void **state)
{
    struct rp_trace *host = trace_of(calls, 4), *device = trace_of(work, 4);
    struct rp_err err = RP_ERR_INIT;
    struct rp_recorders r;

    UNUSED_STATE(state);
    assert_ok(align(host, device, &r, &err), &err);
    assert_int_equal(r.offset_ns, -1020);
    assert_int_equal(r.low_ns, -1020);
    assert_int_equal(r.high_ns, RP_NO_TS);
    assert_int_equal(r.uncertainty_ns, RP_NO_TS);
    rp_recorders_release(&r);
    assert_ok(align(device, host, &r, &err), &err);
    assert_int_equal(r.offset_ns, 1020);
    assert_int_equal(r.high_ns, 1020);
    assert_int_equal(r.low_ns, RP_NO_TS);
    rp_recorders_release(&r);
    rp_trace_free(host);
    rp_trace_free(device);
}

/* A copy that ends at 1770 leaves one offset, and a later one none. */
static void bounds_may_meet(void **state)
{
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    for (int64_t dur = 29; dur <= 31; dur++) {
        struct row rows[5];
        struct rp_recorders r;

        memcpy(rows, work, sizeof rows);
        rows[4].dur = dur;
        struct rp_trace *host = TRACE_OF(calls), *device = TRACE_OF(rows);
        assert_ok(align(host, device, &r, &err), &err);
        assert_int_equal(r.contradiction, dur > 30);
        assert_int_equal(r.high_ns - r.low_ns, 30 - dur);
        rp_recorders_release(&r);
        rp_trace_free(host);
        rp_trace_free(device);
    }
}

/* The copy ends so late that the bounds exclude each other. */
static void bounds_that_contradict(void **state)
{
    static const struct row late[] = {
        {'X', "kernel", "a", 0, 7, 1120, 30, 1, 7},     {'X', "kernel", "b", 0, 7, 1230, 30, 2, 7},
        {'X', "kernel", "c", 0, 7, 1340, 30, 3, 7},     {'X', "kernel", "d", 0, 7, 1450, 30, 4, 7},
        {'X', "gpu_memcpy", "e", 0, 7, 1740, 50, 5, 7},
    };
    struct rp_trace *host = TRACE_OF(calls), *device = TRACE_OF(late);
    struct rp_err err = RP_ERR_INIT;
    struct rp_recorders r;

    UNUSED_STATE(state);
    assert_ok(align(host, device, &r, &err), &err);
    assert_true(r.contradiction);
    assert_int_equal(r.low_ns, -1020);
    assert_int_equal(r.high_ns, 750 - 1790);
    assert_int_equal(r.offset_ns, -1030);
    assert_int_equal(r.uncertainty_ns, 10);
    rp_recorders_release(&r);
    rp_trace_free(host);
    rp_trace_free(device);
}

/* Ids that launch copies by kernels are of two counters; two launches are too few. */
static void ids_of_two_counters(void **state)
{
    static const struct row copies[] = {
        {'X', "gpu_memcpy", "a", 0, 7, 1120, 30, 1, 7},
        {'X', "gpu_memcpy", "b", 0, 7, 1230, 30, 2, 7},
        {'X', "gpu_memcpy", "c", 0, 7, 1340, 30, 3, 7},
    };
    struct rp_trace *host = trace_of(calls, 4), *unlike = TRACE_OF(copies),
                    *two = trace_of(work, 2);
    struct rp_err err = RP_ERR_INIT;
    struct rp_recorders r;

    UNUSED_STATE(state);
    assert_code(align(host, unlike, &r, &err), RP_UNSUPPORTED);
    assert_contains(err.text, "nothing ties the clocks");
    rp_recorders_release(&r);
    assert_code(align(host, two, &r, &err), RP_UNSUPPORTED);
    rp_recorders_release(&r);
    assert_code(align(two, unlike, &r, &err), RP_UNSUPPORTED);
    assert_contains(err.text, "both recordings have device work");
    rp_recorders_release(&r);
    rp_trace_free(host);
    rp_trace_free(unlike);
    rp_trace_free(two);
}

static void names_that_both_recorded(void **state)
{
    static const struct row first[] = {
        {'X', "cpu_op", "a", 1, 1, 10000, 5},          {'X', "cpu_op", "b", 1, 1, 20000, 5},
        {'X', "cpu_op", "c", 1, 1, 30000, 5},          {'X', "cpu_op", "alone", 1, 1, 40000, 5},
        {'X', "cuda_runtime", "call", 1, 1, 50000, 5},
    };
    static const struct row second[] = {
        {'X', "cpu_op", "a", 1, 1, 9000, 5},           {'X', "cpu_op", "b", 1, 1, 17000, 5},
        {'X', "cpu_op", "c", 1, 1, 29500, 5},          {'X', "cpu_op", "d", 1, 1, 31000, 5},
        {'X', "cuda_runtime", "call", 1, 1, 48800, 5},
    };
    struct rp_trace *a = TRACE_OF(first), *b = TRACE_OF(second), *c = trace_of(second, 2);
    struct rp_err err = RP_ERR_INIT;
    struct rp_recorders r;

    UNUSED_STATE(state);
    assert_ok(align(a, b, &r, &err), &err); /* differences: 500, 1000, 1200, 3000 */
    assert_string_equal(rp_recorders_word(r.by), "names");
    assert_int_equal(r.matched, 4);
    assert_int_equal(r.offset_ns, 1200);
    assert_int_equal(r.low_ns, 500);
    assert_int_equal(r.high_ns, 3000);
    assert_int_equal(r.uncertainty_ns, 1800);
    for (rp_event e = 0; e < a->ev.n; e++)
        assert_int_equal(r.keep[0][e], 1);
    for (rp_event e = 0; e < b->ev.n; e++) /* calls and what the other has not are kept */
        assert_int_equal(r.keep[1][e],
                         b->ev.kind[e] == RP_KIND_RUNTIME || !strcmp(name_of(b, e), "d"));
    rp_recorders_release(&r);
    assert_code(align(a, c, &r, &err), RP_UNSUPPORTED); /* two names are too few */
    rp_recorders_release(&r);
    rp_trace_free(a);
    rp_trace_free(b);
    rp_trace_free(c);
}

static void three_names_are_enough(void **state)
{
    static const struct row rows[] = {{'X', "cpu_op", "a", 1, 1, 10000, 5},
                                      {'X', "cpu_op", "b", 1, 1, 20000, 5},
                                      {'X', "cpu_op", "c", 1, 1, 30000, 5}};
    struct rp_trace *all = TRACE_OF(rows), *two = trace_of(rows, 2);
    struct rp_err err = RP_ERR_INIT;
    struct rp_recorders r;

    UNUSED_STATE(state);
    assert_ok(align(all, all, &r, &err), &err);
    assert_int_equal(r.matched, 3);
    rp_recorders_release(&r);
    assert_code(align(all, two, &r, &err), RP_UNSUPPORTED);
    rp_recorders_release(&r);
    rp_trace_free(all);
    rp_trace_free(two);
}

static void names_at_the_same_distance_are_not_exact(void **state)
{
    static const struct row first[] = {
        {'X', "cpu_op", "a", 1, 1, 10, 5},
        {'X', "cpu_op", "a", 1, 1, 20, 5},
        {'X', "cpu_op", "a", 1, 1, 1000030, 5},
    };
    static const struct row second[] = {
        {'X', "cpu_op", "a", 1, 1, 11, 5},
        {'X', "cpu_op", "a", 1, 1, 21, 5},
        {'X', "cpu_op", "a", 1, 1, 31, 5},
    };
    struct rp_trace *a = TRACE_OF(first), *b = TRACE_OF(second), *two = trace_of(second, 2);
    struct rp_err err = RP_ERR_INIT;
    struct rp_recorders r;

    UNUSED_STATE(state);
    assert_ok(align(b, b, &r, &err), &err);
    assert_int_equal(r.offset_ns, 0);
    assert_int_equal(r.uncertainty_ns, 1000);
    rp_recorders_release(&r);
    assert_ok(align(a, b, &r, &err), &err); /* from -1 to 999,999: a millisecond is not too much */
    assert_int_equal(r.high_ns, 999999);
    rp_recorders_release(&r);
    assert_code(align(b, two, &r, &err), RP_UNSUPPORTED); /* not equally often */
    assert_int_equal(r.keep[1][0], 1);
    rp_recorders_release(&r);
    rp_trace_free(a);
    rp_trace_free(b);
    rp_trace_free(two);
}

/* Both recorded the calls; the recorder of the device has their launches. */
static void calls_of_the_device_recorder_are_kept(void **state)
{
    static const struct row host[] = {
        {'X', "cpu_op", "op", 1, 1, 90, 300},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 100, 10, 1},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 200, 10, 2},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 300, 10, 3},
    };
    static const struct row device[] = {
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 1100, 10, 1},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 1200, 10, 2},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 1300, 10, 3},
        {'X', "kernel", "a", 0, 7, 1120, 30, 1, 7},
        {'X', "kernel", "b", 0, 7, 1230, 30, 2, 7},
        {'X', "kernel", "c", 0, 7, 1340, 30, 3, 7},
    };
    struct rp_trace *h = TRACE_OF(host), *d = TRACE_OF(device);
    struct rp_err err = RP_ERR_INIT;
    struct rp_recorders r;

    UNUSED_STATE(state);
    assert_ok(align(h, d, &r, &err), &err);
    assert_string_equal(rp_recorders_word(r.by), "names");
    assert_false(r.same_ids);
    assert_int_equal(r.offset_ns, -1000);
    for (rp_event e = 0; e < h->ev.n; e++)
        assert_int_equal(r.keep[0][e], h->ev.kind[e] != RP_KIND_RUNTIME);
    for (rp_event e = 0; e < d->ev.n; e++)
        assert_int_equal(r.keep[1][e], 1);
    rp_recorders_release(&r);
    rp_trace_free(h);
    rp_trace_free(d);
}

/* Times of day tie two recordings only where they overlap. */
static void the_time_of_day(void **state)
{
    static const struct row one[] = {{'X', "cpu_op", "a", 1, 1, 0, 100}};
    static const struct row other[] = {{'X', "cpu_op", "b", 1, 1, 0, 100}};
    struct rp_trace *a = TRACE_OF(one), *b = TRACE_OF(other);
    static const struct {
        int64_t base_ns;
        bool tied;
    } rows[] = {{1050, true}, {1100, true}, {1101, false}, {900, true}, {899, false}};
    struct rp_err err = RP_ERR_INIT;
    struct rp_recorders r;

    UNUSED_STATE(state);
    a->has_base = true;
    a->base_ns = 1000;
    assert_code(align(a, b, &r, &err), RP_UNSUPPORTED);
    rp_recorders_release(&r);
    b->has_base = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        b->base_ns = rows[i].base_ns;
        assert_code(align(a, b, &r, &err), rows[i].tied ? RP_OK : RP_UNSUPPORTED);
        if (rows[i].tied) {
            assert_string_equal(rp_recorders_word(r.by), "wall clock");
            assert_int_equal(r.offset_ns, rows[i].base_ns - 1000);
            assert_int_equal(r.uncertainty_ns, RP_NO_TS);
        }
        rp_recorders_release(&r);
    }
    rp_trace_free(a);
    rp_trace_free(b);
}

/* Ten kernels of the device: some whose call the host lacks, some that are copies, and some that
   have a call in their own recording. Returns whether ids align them. */
static bool ids_align(int missing, int unlike, int own)
{
    struct row host[10], device[20];
    struct rp_err err = RP_ERR_INIT;
    struct rp_recorders r;
    size_t n = 0;
    bool ids;

    for (int i = 0; i < 10; i++) {
        host[i] = (struct row){'X',
                               "cuda_runtime",
                               "cudaLaunchKernel",
                               1,
                               1,
                               100 * i,
                               10,
                               i < missing ? 100 + i : i + 1};
        device[n++] = (struct row){
            'X', i >= 10 - unlike ? "gpu_memcpy" : "kernel", "a", 0, 7, 1000 + 100 * i, 30, i + 1,
            7};
        if (i < own)
            device[n++] = (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 900 + 100 * i,
                                       10,  i + 1};
    }
    struct rp_trace *a = trace_of(host, 10), *b = trace_of(device, n);
    if (align(a, b, &r, &err) != RP_OK)
        r.by = RP_RECORDERS_NONE;
    ids = r.by == RP_RECORDERS_IDS;
    rp_recorders_release(&r);
    rp_trace_free(a);
    rp_trace_free(b);
    return ids;
}

static void nine_in_ten_ids_must_agree(void **state)
{
    UNUSED_STATE(state);
    assert_true(ids_align(0, 0, 0));
    assert_true(ids_align(1, 0, 0));
    assert_false(ids_align(2, 0, 0));
    assert_true(ids_align(0, 1, 0));
    assert_false(ids_align(0, 2, 0));
    assert_true(ids_align(0, 0, 1));
    assert_false(ids_align(0, 0, 2));
}

/* The first kernel runs longest: what the host has waited for ended when that did. */
static void a_wait_is_for_all_work_before_it(void **state)
{
    struct row rows[4];
    struct rp_err err = RP_ERR_INIT;
    struct rp_recorders r;

    UNUSED_STATE(state);
    memcpy(rows, work, sizeof rows);
    rows[0].dur = 400;
    struct rp_trace *host = trace_of(calls, 5), *device = TRACE_OF(rows);
    assert_ok(align(host, device, &r, &err), &err);
    assert_int_equal(r.low_ns, -1020);
    assert_int_equal(r.high_ns, 600 - 1520);
    assert_int_equal(r.offset_ns, -1020 + 50);
    assert_int_equal(r.uncertainty_ns, 50);
    rp_recorders_release(&r);
    rp_trace_free(host);
    rp_trace_free(device);
}

/* Ten names whose distances are 0 to 9 µs: the two at the ends do not count. */
static void one_distance_in_ten_is_left_out_on_each_side(void **state)
{
    struct row first[10], second[10];
    char names[10][8];
    struct rp_err err = RP_ERR_INIT;
    struct rp_recorders r;

    UNUSED_STATE(state);
    for (int i = 0; i < 10; i++) {
        snprintf(names[i], sizeof names[i], "n%d", i);
        first[i] = (struct row){'X', "cpu_op", names[i], 1, 1, 100000 * (i + 1) + 1000 * i, 5};
        second[i] = (struct row){'X', "cpu_op", names[i], 1, 1, 100000 * (i + 1), 5};
    }
    struct rp_trace *a = TRACE_OF(first), *b = TRACE_OF(second);
    assert_ok(align(a, b, &r, &err), &err);
    assert_int_equal(r.matched, 10);
    assert_int_equal(r.low_ns, 1000);
    assert_int_equal(r.high_ns, 8000);
    assert_int_equal(r.offset_ns, 5000);
    assert_int_equal(r.uncertainty_ns, 4000);
    rp_recorders_release(&r);
    rp_trace_free(a);
    rp_trace_free(b);
}

/* Distances that differ by more than a millisecond are chance. */
static void distances_of_names_agree_within_a_millisecond(void **state)
{
    UNUSED_STATE(state);
    for (int64_t more = 0; more < 2; more++) {
        const struct row first[] = {{'X', "cpu_op", "a", 1, 1, 10, 5},
                                    {'X', "cpu_op", "b", 1, 1, 20, 5},
                                    {'X', "cpu_op", "c", 1, 1, 1000030 + more, 5}};
        const struct row second[] = {{'X', "cpu_op", "a", 1, 1, 10, 5},
                                     {'X', "cpu_op", "b", 1, 1, 20, 5},
                                     {'X', "cpu_op", "c", 1, 1, 30, 5}};
        struct rp_trace *a = TRACE_OF(first), *b = TRACE_OF(second);
        struct rp_err err = RP_ERR_INIT;
        struct rp_recorders r;

        assert_code(align(a, b, &r, &err), more ? RP_UNSUPPORTED : RP_OK);
        rp_recorders_release(&r);
        rp_trace_free(a);
        rp_trace_free(b);
    }
}

/* What both recorded is left out of the device's recording, whichever comes first, and so are the
   arrows to it. */
static void spans_and_arrows_of_one_recorder_are_kept(void **state)
{
    static const struct row host[] = {{'X', "cpu_op", "a", 1, 1, 100, 10},
                                      {'X', "cpu_op", "b", 1, 1, 200, 10},
                                      {'X', "cpu_op", "c", 1, 1, 300, 10}};
    static const struct row device[] = {
        {'X', "cpu_op", "a", 1, 1, 1100, 10},
        {'X', "cpu_op", "b", 1, 1, 1200, 10},
        {'X', "cpu_op", "c", 1, 1, 1300, 10},
        {'X', "cpu_op", "own", 1, 1, 1400, 10},
        {'X', "kernel", "k", 0, 7, 1500, 10, 9, 7},
        {'s', "flow", "arrow", 1, 1, 1105, 0, .id = 5},
        {'f', "flow", "arrow", 1, 1, 1405, 0, .id = 5},
    };
    struct rp_trace *h = TRACE_OF(host), *d = TRACE_OF(device);
    struct rp_err err = RP_ERR_INIT;
    struct rp_recorders r;

    UNUSED_STATE(state);
    for (int swapped = 0; swapped < 2; swapped++) {
        int dropped = 0, kept = 0;

        assert_ok(swapped ? align(d, h, &r, &err) : align(h, d, &r, &err), &err);
        assert_int_equal(r.offset_ns, swapped ? 1000 : -1000);
        for (rp_event e = 0; e < d->ev.n; e++)
            assert_int_equal(r.keep[!swapped][e],
                             !strcmp(name_of(d, e), "own") || !strcmp(name_of(d, e), "k"));
        for (rp_event e = 0; e < h->ev.n; e++)
            assert_int_equal(r.keep[swapped][e], 1);
        assert_int_equal(d->flows.n, 2);
        for (uint32_t i = 0; i < 2; i++) {
            assert_true(d->flows.event[i] != RP_NONE);
            assert_int_equal(r.keep_flows[!swapped][i], r.keep[!swapped][d->flows.event[i]]);
            dropped += !r.keep_flows[!swapped][i];
            kept += r.keep_flows[!swapped][i];
        }
        assert_true(dropped == 1 && kept == 1);
        rp_recorders_release(&r);
    }
    rp_trace_free(h);
    rp_trace_free(d);
}

int test_recorders(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nine_in_ten_ids_must_agree),
        cmocka_unit_test(a_wait_is_for_all_work_before_it),
        cmocka_unit_test(one_distance_in_ten_is_left_out_on_each_side),
        cmocka_unit_test(distances_of_names_agree_within_a_millisecond),
        cmocka_unit_test(spans_and_arrows_of_one_recorder_are_kept),
        cmocka_unit_test(launches_bound_the_offset),
        cmocka_unit_test(one_bound_alone_is_the_offset),
        cmocka_unit_test(bounds_may_meet),
        cmocka_unit_test(bounds_that_contradict),
        cmocka_unit_test(ids_of_two_counters),
        cmocka_unit_test(names_that_both_recorded),
        cmocka_unit_test(three_names_are_enough),
        cmocka_unit_test(names_at_the_same_distance_are_not_exact),
        cmocka_unit_test(calls_of_the_device_recorder_are_kept),
        cmocka_unit_test(the_time_of_day),
    };

    return cmocka_run_group_tests_name("recorders", tests, NULL, NULL);
}
