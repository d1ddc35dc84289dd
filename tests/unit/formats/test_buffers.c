/* SPDX-License-Identifier: Apache-2.0 */
/* Buffer assignments: kinds, totals and the peak, from texts and from a protobuf. */
#include "formats/buffers/buffers.h"
#include "formats/buffers/lives.h"
#include "unit.h"

static const char assignment[] =
    "BufferAssignment:\n"
    "allocation 0: size 100, page 0, parameter 3, shape |f32[25]| at ShapeIndex {}:\n"
    " value: <7 p.1 @0> (size=100,offset=0): f32[25]{0}\n"
    "allocation 1: size 30, page 0, output shape is |(f32[2])|, maybe-live-out:\n"
    " value: <9 out{1} @0> (size=30,offset=0): f32[2]{0}\n"
    "allocation 2: size 16, page 0, constant:\n"
    "allocation 3: size 4, page 0, thread-local:\n"
    "allocation 4: size 100, page 0, preallocated-temp:\n"
    " value: <10 add @0> (size=40,offset=0): f32[10]{0}\n"
    " value: <11 mul @0> (size=60,offset=40): f32[15]{0}\n";

static const char ranges[] = "HloLiveRange (max 5):\n"
                             "  InstructionSequence:\n"
                             "    0:p.1\n"
                             "    1:add\n"
                             "    2:mul\n"
                             "  BufferLiveRange:\n"
                             "    p.1{}:0-5\n"
                             "    add{}:1-1\n"
                             "    mul{}:2-2\n"
                             "    out{1}:2-5\n"
                             "  Live ranges at 2 (peak):\n"
                             "    p.1{}: 100 bytes (cumulative: 100 bytes)\n"
                             "    mul{}: 60 bytes (cumulative: 160 bytes)\n"
                             "    out{1}: 30 bytes (cumulative: 190 bytes)\n"
                             "  Stack trace breakdown for peak usage: 190 bytes\n"
                             "    x (100.0%, total: 190 bytes (cumulative\n";

static void reads_texts(void **state)
{
    static const uint8_t kinds[] = {RP_BUFFER_ARGUMENT, RP_BUFFER_OUTPUT, RP_BUFFER_CONSTANT,
                                    RP_BUFFER_THREAD_LOCAL, RP_BUFFER_TEMPORARY};
    struct rp_err err = RP_ERR_INIT;
    struct rp_buffers b;

    UNUSED_STATE(state);
    rp_buffers_init(&b);
    assert_ok(rp_buffers_read_text(&b, assignment, sizeof assignment - 1, NULL, &err), &err);
    assert_int_equal(b.allocations.n, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(b.allocations.at[i].kind, kinds[i]);
    assert_int_equal(b.allocations.at[0].argument, 3);
    assert_int_equal(b.total_bytes, 250);
    assert_int_equal(b.values.n, 4);
    assert_string_equal(b.values.at[3].name, "mul");
    assert_int_equal(b.values.at[3].allocation, 4);
    assert_int_equal(b.values.at[3].offset, 40);
    assert_ok(rp_buffers_read_ranges(&b, ranges, sizeof ranges - 1, NULL, &err), &err);
    assert_true(b.has_peak);
    assert_int_equal(b.peak_at, 2);
    assert_int_equal(b.length, 5);
    assert_string_equal(b.peak_instruction, "mul");
    assert_int_equal(b.peak_bytes, 190);
    assert_int_equal(b.live.n, 3);
    assert_string_equal(b.live.at[1].name, "out{1}");
    assert_int_equal(b.stated_peak_bytes, 190);
    assert_int_equal(b.order.n, 3);
    assert_int_equal(b.ranges.n, 4);
    assert_int_equal(b.ranges.at[3].first, 2);
    assert_int_equal(b.ranges.at[3].last, 5);
    rp_buffers_release(&b);
}

/* XLA names the position after the peak where something begins as something else ends; and `b` is
   computed in the place of `a`: the two share memory at position 1. */
static void finds_the_peak_by_addresses(void **state)
{
    static const char text[] = "BufferAssignment:\n"
                               "allocation 0: size 130, page 0, preallocated-temp:\n"
                               " value: <1 a @0> (size=50,offset=0): f32[]\n"
                               " value: <2 b @0> (size=50,offset=0): f32[]\n"
                               " value: <3 c @0> (size=60,offset=50): f32[]\n"
                               " value: <4 d{} @0> (size=20,offset=50): f32[]\n";
    static const char live[] = "HloLiveRange (max 3):\n"
                               "  InstructionSequence:\n"
                               "    0:a\n"
                               "    1:b\n"
                               "    2:d\n"
                               "  BufferLiveRange:\n"
                               "    a{}:0-1\n"
                               "    b{}:1-2\n"
                               "    c{}:0-1\n"
                               "    d{}:2-3\n"
                               "    unknown{}:0-3\n"
                               "  Live ranges at 2 (peak):\n"
                               "    b{}: 50 bytes (cumulative: 50 bytes)\n"
                               "    d{}: 20 bytes (cumulative: 70 bytes)\n";
    static const int64_t taken[] = {110, 110, 70, 20};
    struct rp_err err = RP_ERR_INIT;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_buffer_lives lives;
    struct rp_buffer_share *shares;
    struct rp_buffers b;
    size_t n;

    UNUSED_STATE(state);
    rp_buffers_init(&b);
    assert_ok(rp_buffers_read_text(&b, text, sizeof text - 1, NULL, &err), &err);
    assert_ok(rp_buffers_read_ranges(&b, live, sizeof live - 1, NULL, &err), &err);
    assert_int_equal(b.stated_peak_bytes, 70);
    assert_int_equal(b.stated_peak_at, 2);
    assert_int_equal(b.peak_bytes, 110);
    assert_int_equal(b.peak_at, 0);
    assert_ok(rp_buffers_lives(&b, &arena, &lives, &err), &err);
    assert_int_equal(lives.npositions, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(lives.taken[i], taken[i]);
    assert_int_equal(lives.heap_bytes, 130);
    assert_int_equal(lives.heap_peak_bytes, 110);
    assert_ok(rp_buffers_live_at(&b, &lives, 1, &arena, &shares, &n, &err), &err);
    assert_int_equal(n, 3); /* a, b in its place, c */
    assert_int_equal(shares[0].bytes + shares[1].bytes, 50);
    assert_int_equal(shares[2].bytes, 60);
    rp_arena_release(&arena);
    rp_buffers_release(&b);
}

static void reads_the_total_of_a_report(void **state)
{
    static const char report[] = "Memory Space: default (color=0)\nTotal bytes: 4399360 (4.20MiB)\n"
                                 "Memory Space: 1\nTotal bytes: 40 (40B)\n";
    struct rp_err err = RP_ERR_INIT;
    int64_t total;

    UNUSED_STATE(state);
    assert_ok(rp_buffers_read_report(report, sizeof report - 1, &total, &err), &err);
    assert_int_equal(total, 4399400);
    assert_code(rp_buffers_read_report("x", 1, &total, &err), RP_FORMAT);
}

/* The same program as a protobuf: add and mul are live together; the rest all the time. */
static const char proto[] = "\012\053\012\001\155\032\046\022\006\012\001\160\230\002\001\022"
                            "\010\012\003\141\144\144\230\002\002\022\010\012\003\155\165\154"
                            "\230\002\003\022\010\012\003\157\165\164\230\002\004\032\226\001"
                            "\012\010\010\012\020\144\032\002\040\001\012\010\010\013\020\050"
                            "\032\002\040\002\012\010\010\014\020\074\032\002\040\003\012\014"
                            "\010\015\020\036\032\006\040\004\030\000\030\001\032\020\010\000"
                            "\020\144\050\001\060\007\112\006\010\012\020\000\030\144\032\016"
                            "\010\001\020\036\070\001\112\006\010\015\020\000\030\036\032\024"
                            "\010\002\020\144\112\006\010\013\020\000\030\050\112\006\010\014"
                            "\020\050\030\074\032\006\010\003\020\004\030\001\032\006\010\004"
                            "\020\020\140\001\042\040\012\004\010\000\020\013\012\004\010\000"
                            "\020\014\012\004\010\001\020\013\012\004\010\002\020\015\012\004"
                            "\010\001\020\014\030\002";

static void reads_protobufs(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_buffers b;
    bool found;

    UNUSED_STATE(state);
    rp_buffers_init(&b);
    assert_ok(rp_buffers_read_proto(&b, (struct rp_bytes){(const uint8_t *)proto, sizeof proto - 1},
                                    &found, &err),
              &err);
    assert_true(found && b.has_peak);
    assert_int_equal(b.total_bytes, 250);
    assert_int_equal(b.peak_bytes, 40 + 60 + 100 + 30 + 16);
    assert_int_equal(b.allocations.at[0].argument, 7);
    assert_int_equal(b.live.n, 5);
    assert_string_equal(b.live.at[0].name, "add");
    assert_string_equal(b.values.at[1].name, "out{0,1}");
    assert_int_equal(b.order.n, 5);  /* events */
    assert_int_equal(b.ranges.n, 5); /* add, mul, and what exists all the time */
    assert_int_equal(b.ranges.at[0].first, 0);
    assert_int_equal(b.ranges.at[0].last, 1);
    assert_int_equal(b.ranges.at[1].last, 3);
    rp_buffers_release(&b);
}

static void names_the_line_of_damage(void **state)
{
    static const char *const bad[][2] = {
        {"Buffer", "does not begin"},
        {"BufferAssignment:\nx\n", "line 2: expected 'allocation'"},
        {"BufferAssignment:\nallocation 0: size 99999999999999999999:\n", "line 2"},
        {"BufferAssignment:\nallocation 0: size 1:\n value: <1 a> (size=1,offset=0)\n", "line 3"},
    };
    struct rp_err err = RP_ERR_INIT;
    struct rp_buffers b;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        rp_buffers_init(&b);
        assert_code(rp_buffers_read_text(&b, bad[i][0], strlen(bad[i][0]), NULL, &err), RP_FORMAT);
        assert_contains(err.text, bad[i][1]);
        rp_buffers_release(&b);
    }
}

int test_buffers(void);
int test_buffers(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_texts),
        cmocka_unit_test(finds_the_peak_by_addresses),
        cmocka_unit_test(reads_the_total_of_a_report),
        cmocka_unit_test(reads_protobufs),
        cmocka_unit_test(names_the_line_of_damage),
    };

    return cmocka_run_group_tests_name("buffers", tests, NULL, NULL);
}
