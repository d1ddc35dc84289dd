/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank allocated and freed: which entries belong together, totals, steps. */
#include "trace/trace_fixtures.h"

#include "explain/memory/log.h"

#include <reprise/result.h>

struct change {
    int64_t bytes, addr, total; /* addr, total: 0: not recorded */
};

struct logged {
    struct rp_trace *trace;
    struct rp_memory_logs logs;
    const struct rp_memory_log *at;
};

static struct logged log_of(const struct change *changes, size_t n)
{
    struct row rows[16];
    struct rp_err err = RP_ERR_INIT;
    struct logged l;

    for (size_t i = 0; i < n; i++)
        rows[i] = (struct row){.phase = 'i',
                               .category = "cpu_instant_event",
                               .name = "[memory]",
                               .pid = 1,
                               .tid = 1,
                               .ts = (int64_t)i,
                               .key = "Bytes",
                               .value = changes[i].bytes,
                               .key2 = changes[i].addr    ? "Addr"
                                       : changes[i].total ? "Total Allocated"
                                                          : NULL,
                               .value2 = changes[i].addr ? changes[i].addr : changes[i].total};
    l.trace = trace_of(rows, n);
    assert_ok(rp_memory_logs_init(&l.logs, l.trace, &err), &err);
    assert_true(l.logs.devices.n <= 1);
    l.at = l.logs.devices.at;
    return l;
}

#define LOG_OF(...)                              \
    log_of((const struct change[]){__VA_ARGS__}, \
           sizeof((const struct change[]){__VA_ARGS__}) / sizeof(struct change))

static void release(struct logged *l)
{
    rp_memory_logs_release(&l->logs);
    rp_trace_free(l->trace);
}

#define NEVER RP_NONE

static void check_buffer(const struct logged *l, size_t i, int64_t bytes, uint32_t born,
                         uint32_t died)
{
    const struct rp_memory_buffer *b = &l->at->buffers.at[i];

    assert_true(i < l->at->buffers.n);
    assert_int_equal(b->bytes, bytes);
    assert_int_equal(b->requested, bytes);
    assert_int_equal(b->born, born);
    assert_int_equal(b->died, died);
}

/* Without addresses the last one of a size is freed; more frees than allocations are of before. */
static void frees_find_their_size(void **state)
{
    static const uint32_t buffers[] = {0, 1, 2, 1, RP_NONE, 0, 3, 4, 4};
    struct logged l = LOG_OF({8}, {8}, {4}, {-8}, {0}, {-8}, {-8}, {8}, {-8});

    UNUSED_STATE(state);
    for (size_t i = 0; i < 9; i++)
        assert_int_equal(l.at->entries.at[i].buffer, buffers[i]);
    assert_int_equal(l.at->buffers.n, 5);
    check_buffer(&l, 0, 8, 0, 5);
    check_buffer(&l, 1, 8, 1, 3);
    check_buffer(&l, 2, 4, 2, NEVER);
    check_buffer(&l, 3, 8, RP_NONE, 6);
    check_buffer(&l, 4, 8, 7, 8);
    assert_int_equal(l.at->before, 8);
    assert_int_equal(l.at->entries.at[2].allocated, 28);
    assert_int_equal(l.at->entries.at[8].allocated, 4);
    release(&l);
}

static void frees_find_their_address(void **state)
{
    static const uint32_t buffers[] = {0, 1, 1, RP_NONE, 2, 3, RP_NONE};
    struct logged l =
        LOG_OF({8, 1}, {8, 1}, {-8, 1}, {-8, 1}, {-4, 2}, {4, 2}, {.bytes = 0, .addr = 3});

    UNUSED_STATE(state);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(l.at->entries.at[i].buffer, buffers[i]);
    assert_int_equal(l.at->buffers.n, 4);
    check_buffer(&l, 0, 8, 0, 1); /* its end was not recorded */
    check_buffer(&l, 1, 8, 1, 2);
    check_buffer(&l, 2, 4, RP_NONE, 4);
    check_buffer(&l, 3, 4, 5, NEVER);
    release(&l);
}

static void totals_are_completed(void **state)
{
    struct logged l = LOG_OF({10}, {.bytes = 5, .total = 115}, {-10}, {.bytes = 7, .total = 120});

    UNUSED_STATE(state);
    assert_int_equal(l.at->before, 100);
    assert_int_equal(l.at->entries.at[0].allocated, 110);
    assert_int_equal(l.at->entries.at[1].allocated, 115);
    assert_int_equal(l.at->entries.at[2].allocated, 105);
    assert_int_equal(l.at->entries.at[3].allocated, 120);
    release(&l);
}

/* No device has 2^56 bytes. */
static void absurd_sizes_are_left_out(void **state)
{
    static const int64_t edge = INT64_C(1) << 56;

    UNUSED_STATE(state);
    for (int sign = -1; sign < 2; sign += 2) {
        struct logged l = LOG_OF({sign * edge}, {sign * (edge - 1)});

        assert_int_equal(l.at->entries.n, 1);
        assert_int_equal(l.at->entries.at[0].requested, edge - 1);
        release(&l);
        l = LOG_OF({.bytes = 1, .total = edge}, {1});
        assert_false(l.at->has_total);
        release(&l);
        l = LOG_OF({.bytes = 1, .total = edge - 1}, {1});
        assert_true(l.at->has_total);
        release(&l);
    }
}

static struct row block(const char *state, int64_t addr, int64_t bytes)
{
    return (struct row){.phase = 'i',
                        .category = "cpu_instant_event",
                        .name = "[block]",
                        .pid = 1,
                        .tid = 1,
                        .ts = 100,
                        .key = "Bytes",
                        .value = bytes,
                        .key2 = "Addr",
                        .value2 = addr,
                        .text_key = "State",
                        .text = state};
}

/* A snapshot: its live blocks are of before, but for those that the log allocated. */
static void snapshots_have_blocks(void **state)
{
    const struct row rows[] = {
        block("active_allocated", 16, 100),
        block("active_allocated", 32, 30),
        block("inactive", 48, 7),
        block("inactive", 64, 5),
        block("active_pending_free", 80, 3),
        block("active_allocated", 96, -1),
        {'i', "x", "[segment]", 1, 1, 100, .key = "Bytes", .value = 4096},
        {'i', "x", "[segment]", 1, 1, 100, .key = "Bytes", .value = 100},
        {'i', "x", "oom", 1, 1, 101, .key = "Bytes", .value = 512, .key2 = "Device Free",
         .value2 = 9},
        {'i', "x", "segment_alloc", 1, 1, 102, .key = "Bytes", .value = 11},
        {'i', "x", "[memory]", 1, 1, 103, .key = "Bytes", .value = 30, .key2 = "Addr",
         .value2 = 32},
    };
    struct rp_err err = RP_ERR_INIT;
    struct logged l;

    UNUSED_STATE(state);
    for (size_t n = 10; n <= 11; n++) { /* without the log, and with it */
        l.trace = trace_of(rows, n);
        assert_ok(rp_memory_logs_init(&l.logs, l.trace, &err), &err);
        l.at = l.logs.devices.at;
        assert_int_equal(l.logs.devices.n, 1);
        assert_true(l.at->has_addr);
        assert_int_equal(l.at->free_bytes, 12);
        assert_int_equal(l.at->largest_free, 7);
        assert_int_equal(l.at->segments, 2);
        assert_int_equal(l.at->segment_bytes, 4196);
        assert_int_equal(l.at->ooms, 1);
        assert_int_equal(l.at->oom_bytes, 512);
        assert_int_equal(l.at->oom_free, 9);
        assert_int_equal(l.at->buffers.n, 2);
        assert_int_equal(l.at->before, n == 10 ? 130 : 100);
        check_buffer(&l, n == 10 ? 0 : 1, 100, RP_NONE, NEVER);
        check_buffer(&l, n == 10 ? 1 : 0, 30, n == 10 ? RP_NONE : 0, NEVER);
        release(&l);
    }
}

/* Types and numbers of devices, as recorded; without them the first GPU. */
static void devices_are_told_apart(void **state)
{
    static const struct row rows[] = {
        {'i', "x", "[memory]", 1, 1, 1, .key = "Bytes", .value = 1},
        {'i', "x", "[memory]", 1, 1, 2, .key = "Bytes", .value = 2, .key2 = "Device Id",
         .value2 = 1},
        {'i', "x", "[memory]", 1, 1, 3, .key = "Bytes", .value = 3, .key2 = "Device Type"},
        {'i', "x", "[memory]", 1, 1, 4, .key = "Bytes", .value = 4, .key2 = "Device Type",
         .value2 = 1},
        {'X', "x", "[memory]", 1, 1, 5, 1, .key = "Bytes", .value = 5},
    };
    static const int64_t want[][3] = {{1, 0, 2}, {1, 1, 1}, {0, 0, 1}};
    struct rp_trace *trace = TRACE_OF(rows);
    struct rp_memory_logs logs;
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    assert_ok(rp_memory_logs_init(&logs, trace, &err), &err);
    assert_int_equal(logs.devices.n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(logs.devices.at[i].device_type, want[i][0]);
        assert_int_equal(logs.devices.at[i].device_id, want[i][1]);
        assert_int_equal(logs.devices.at[i].entries.n, want[i][2]);
    }
    rp_memory_logs_release(&logs);
    rp_trace_free(trace);
}

static void a_buffer_is_alive_until_it_is_freed(void **state)
{
    const struct rp_memory_buffer b = {.born = 2, .died = 5}, old = {.born = RP_NONE, .died = 1},
                                  kept = {.born = 3, .died = RP_NONE};

    UNUSED_STATE(state);
    assert_false(rp_memory_alive(&b, 1));
    assert_true(rp_memory_alive(&b, 2));
    assert_true(rp_memory_alive(&b, 4));
    assert_false(rp_memory_alive(&b, 5));
    assert_false(rp_memory_alive(&b, RP_NONE));
    assert_true(rp_memory_alive(&old, RP_NONE));
    assert_true(rp_memory_alive(&old, 0));
    assert_false(rp_memory_alive(&old, 1));
    assert_true(rp_memory_alive(&kept, 3));
    assert_false(rp_memory_alive(&kept, 2));
}

static void check_steps(const struct row *rows, size_t n, const int64_t (*want)[2], size_t nwant,
                        int64_t first)
{
    struct rp_trace *trace = trace_of(rows, n);
    struct rp_memory_logs logs;
    struct rp_err err = RP_ERR_INIT;

    assert_ok(rp_memory_logs_init(&logs, trace, &err), &err);
    for (size_t i = 0; i < nwant; i++)
        assert_int_equal(rp_memory_step(&logs, want[i][0]), want[i][1]);
    assert_int_equal(logs.steps.n, 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(logs.step_names.at[i], first + (int64_t)i);
    rp_memory_logs_release(&logs);
    rp_trace_free(trace);
}

/* Steps of the profiler, or else between two calls that clear gradients, or ends of optimizers. */
static void times_are_in_steps(void **state)
{
    static const struct row profiled[] = {
        {'X', "user_annotation", "ProfilerStep#4", 1, 1, 10, 10},
        {'X', "user_annotation", "ProfilerStep#5", 1, 1, 20, 10},
    };
    static const int64_t in_profiled[][2] = {{9, -1}, {10, 0}, {19, 0}, {20, 1}, {29, 1}, {30, -1}};
    static const struct row cleared[] = {
        {'X', "cpu_op", "aten::mm", 1, 1, 0, 5},
        {'X', "user_annotation", "Optimizer.zero_grad#Adam", 1, 1, 10, 2},
        {'X', "user_annotation", "Optimizer.step#Adam", 1, 1, 15, 2},
        {'X', "user_annotation", "Optimizer.zero_grad#Adam", 1, 1, 20, 2},
    };
    static const int64_t in_cleared[][2] = {{9, -1}, {10, 0}, {19, 0}, {20, 1}, {1000, 1}};
    static const struct row stepped[] = {
        {'X', "cpu_op", "aten::mm", 1, 1, 0, 5},
        {'X', "user_annotation", "Optimizer.step#Adam", 1, 1, 10, 4},
        {'X', "user_annotation", "Optimizer.step#Adam", 1, 1, 11, 2}, /* inside the other */
        {'X', "user_annotation", "Optimizer.step#Adam", 1, 1, 20, 2},
    };
    static const int64_t in_stepped[][2] = {{-1, -1}, {0, 0}, {13, 0}, {14, 1}, {21, 1}, {22, -1}};

    UNUSED_STATE(state);
    check_steps(profiled, 2, in_profiled, 6, 4);
    check_steps(cleared, 4, in_cleared, 5, 1);
    check_steps(stepped, 4, in_stepped, 6, 1);
}

int test_memory_log(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frees_find_their_size),
        cmocka_unit_test(frees_find_their_address),
        cmocka_unit_test(totals_are_completed),
        cmocka_unit_test(absurd_sizes_are_left_out),
        cmocka_unit_test(snapshots_have_blocks),
        cmocka_unit_test(devices_are_told_apart),
        cmocka_unit_test(a_buffer_is_alive_until_it_is_freed),
        cmocka_unit_test(times_are_in_steps),
    };

    return cmocka_run_group_tests_name("memory_log", tests, NULL, NULL);
}
