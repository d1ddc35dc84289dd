/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol buffers: the cursor and its errors, and the writer byte for byte. */
#include "io/proto.h"
#include "io/proto_write.h"
#include "unit.h"

#define BYTES(literal) ((struct rp_bytes){(const uint8_t *)(literal), sizeof(literal) - 1})

static struct rp_proto_cursor cursor_of(struct rp_bytes bytes)
{
    return rp_proto_cursor(bytes.at, bytes.n, 0, 10);
}

static void assert_bytes(struct rp_bytes got, struct rp_bytes want)
{
    assert_int_equal(got.n, want.n);
    if (want.n)
        assert_memory_equal(got.at, want.at, want.n);
}

/* ---- cursor ---- */

static void test_every_wire_type(void **state)
{
    struct rp_bytes in = BYTES("\x08\x96\x01"                         /* 1: varint 150 */
                               "\x11\x01\x02\x03\x04\x05\x06\x07\x08" /* 2: fixed64 */
                               "\x1a\x03"
                               "abc"                        /* 3: bytes */
                               "\x25\x01\x02\x03\x04"       /* 4: fixed32 */
                               "\xaa\x7d\x00"               /* 2005: empty bytes */
                               "\x2b\x08\x01\x33\x34\x2c"); /* 5: group with group 6 in it */
    struct rp_proto_cursor c = cursor_of(in);
    struct rp_proto_item it;

    UNUSED_STATE(state);
    assert_true(rp_proto_next(&c, &it));
    assert_int_equal(RP_PROTO_KEY(it.number, it.wire), RP_PROTO_KEY(1, RP_WIRE_VARINT));
    assert_int_equal(it.value, 150);
    assert_true(rp_proto_next(&c, &it));
    assert_int_equal(RP_PROTO_KEY(it.number, it.wire), RP_PROTO_KEY(2, RP_WIRE_FIXED64));
    assert_true(it.value == UINT64_C(0x0807060504030201));
    assert_true(rp_proto_next(&c, &it));
    assert_int_equal(RP_PROTO_KEY(it.number, it.wire), RP_PROTO_KEY(3, RP_WIRE_BYTES));
    assert_bytes(it.bytes, BYTES("abc"));
    assert_int_equal(rp_proto_offset(&c, it.bytes.at), 14);
    assert_true(rp_proto_next(&c, &it));
    assert_int_equal(RP_PROTO_KEY(it.number, it.wire), RP_PROTO_KEY(4, RP_WIRE_FIXED32));
    assert_int_equal(it.value, 0x04030201);
    assert_true(rp_proto_next(&c, &it));
    assert_int_equal(it.number, 2005);
    assert_int_equal(it.bytes.n, 0);
    assert_true(rp_proto_next(&c, &it));
    assert_int_equal(RP_PROTO_KEY(it.number, it.wire), RP_PROTO_KEY(5, RP_WIRE_GROUP));
    assert_bytes(it.bytes, BYTES("\x08\x01\x33\x34"));
    assert_int_equal(c.at - it.begin, 6);
    assert_false(rp_proto_next(&c, &it));
    assert_code(rp_proto_finish(&c, NULL), RP_OK);
}

static void check_varint(struct rp_bytes in, uint64_t want)
{
    uint8_t padded[32] = {0};
    struct rp_proto_cursor c;
    uint64_t value;

    /* once at the end of the input, once with more behind */
    c = cursor_of(in);
    assert_true(rp_proto_packed_varint(&c, &value));
    assert_true(value == want && c.at == c.end);
    memcpy(padded, in.at, in.n);
    c = rp_proto_cursor(padded, sizeof padded, 0, 1);
    assert_true(rp_proto_packed_varint(&c, &value));
    assert_true(value == want && c.at == padded + in.n);
}

static void test_varints(void **state)
{
    UNUSED_STATE(state);
    check_varint(BYTES("\x00"), 0);
    check_varint(BYTES("\x7f"), 127);
    check_varint(BYTES("\x80\x01"), 128);
    check_varint(BYTES("\xff\x7f"), 16383);
    check_varint(BYTES("\x80\x80\x01"), 16384);
    check_varint(BYTES("\x81\x82\x84\x08"), 1 | 2 << 7 | 4 << 14 | 8 << 21);
    check_varint(BYTES("\xff\xff\xff\xff\x0f"), UINT32_MAX);
    check_varint(BYTES("\xff\xff\xff\xff\xff\xff\xff\x7f"), (UINT64_C(1) << 56) - 1);
    check_varint(BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), INT64_MAX);
    check_varint(BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), UINT64_MAX);
    check_varint(BYTES("\x80\x00"), 0); /* longer than needed */
    check_varint(BYTES("\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00"), 1);
}

static void test_varints_both_ways(void **state)
{
    struct rp_proto_writer w = {0};
    struct rp_proto_cursor c;
    struct rp_bytes bytes;
    uint64_t value;

    UNUSED_STATE(state);
    for (unsigned bit = 0; bit < 64; bit++)
        for (int off = -1; off <= 1; off++)
            rp_proto_add_varint(&w, (UINT64_C(1) << bit) + (uint64_t)off);
    assert_ok(rp_proto_written(&w, &bytes, NULL), &(struct rp_err){0});
    c = cursor_of(bytes);
    for (unsigned bit = 0; bit < 64; bit++)
        for (int off = -1; off <= 1; off++) {
            assert_true(rp_proto_packed_varint(&c, &value));
            assert_true(value == (UINT64_C(1) << bit) + (uint64_t)off);
        }
    assert_false(rp_proto_packed_varint(&c, &value));
    rp_proto_writer_release(&w);
}

/* Walks all fields of a message that stands at byte 100 of its input. */
static const char *walk_error(struct rp_bytes in, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_cursor(in.at, in.n, 100, 10);
    struct rp_proto_item it;

    rp_err_clear(err);
    while (rp_proto_next(&c, &it))
        ;
    assert_false(rp_proto_next(&c, &it)); /* and it stays so */
    rp_proto_finish(&c, err);
    return err->text;
}

static void test_errors(void **state)
{
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    assert_string_equal(walk_error(BYTES("\x08\x01\x1a\x84\x07xy"), &err),
                        "field 3 of message at byte 100: length 900 runs past the end at byte 107");
    assert_int_equal(err.code, RP_FORMAT);
    assert_int_equal(err.offset, 103);
    assert_string_equal(walk_error(BYTES("\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), &err),
                        "field 3 of message at byte 100: length 18446744073709551615 runs past the "
                        "end at byte 111");
    assert_string_equal(
        walk_error(BYTES("\x08\x80"), &err),
        "field 1 of message at byte 100: varint at byte 101 is truncated by the end "
        "at byte 102");
    assert_string_equal(walk_error(BYTES("\x80"), &err),
                        "message at byte 100: varint at byte 100 is truncated by the end at byte "
                        "101");
    assert_string_equal(walk_error(BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), &err),
                        "field 1 of message at byte 100: varint at byte 101 does not fit 64 bits");
    assert_string_equal(walk_error(BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x80\x00"), &err),
                        "field 1 of message at byte 100: varint at byte 101 does not fit 64 bits");
    assert_string_equal(walk_error(BYTES("\x11\x01\x02"), &err),
                        "field 2 of message at byte 100: value of 8 bytes at byte 101 runs past "
                        "the end at byte 103");
    assert_string_equal(walk_error(BYTES("\x0e\x01"), &err),
                        "field 1 of message at byte 100: wire type 6 at byte 100 does not exist");
    assert_string_equal(walk_error(BYTES("\x08\x01\x00\x01"), &err),
                        "message at byte 100: field number 0 at byte 102 is not in 1 to 536870911");
    assert_string_equal(walk_error(BYTES("\x80\x80\x80\x80\x10\x01"), &err),
                        "message at byte 100: field number 536870912 at byte 100 is not in 1 to "
                        "536870911");
    assert_string_equal(walk_error(BYTES("\x0c"), &err),
                        "message at byte 100: end of group 1 at byte 100 without its start");
    assert_string_equal(
        walk_error(BYTES("\x0b\x08\x01"), &err),
        "field 1 of message at byte 100: group at byte 100 is not closed before the end at "
        "byte 103");
    assert_string_equal(walk_error(BYTES("\x0b\x14"), &err),
                        "field 1 of message at byte 100: end of group 2 at byte 101 without its "
                        "start");
    assert_string_equal(walk_error(BYTES("\x0b\x12\x05\x0c"), &err),
                        "field 2 of message at byte 100: length 5 runs past the end at byte 104");
}

static void test_many_groups(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    char in[300];

    UNUSED_STATE(state);
    memset(in, 0x0b, 100);
    memset(in + 100, 0x0c, 100);
    assert_string_equal(walk_error((struct rp_bytes){(uint8_t *)in, 200}, &err), "");
    memset(in, 0x0b, 101);
    assert_string_equal(walk_error((struct rp_bytes){(uint8_t *)in, 101}, &err),
                        "field 1 of message at byte 100: groups are nested more than 100 deep at "
                        "byte 200");
    assert_int_equal(err.code, RP_LIMIT);
}

static void test_nested_offsets_and_depth(void **state)
{
    struct rp_bytes in = BYTES("\x0a\x06\x0a\x04\x0a\x02\x08\x80");
    struct rp_proto_cursor c = rp_proto_cursor(in.at, in.n, 0, 2), inner;
    struct rp_err err = RP_ERR_INIT;
    struct rp_proto_item it = {0};

    UNUSED_STATE(state);
    assert_true(rp_proto_next(&c, &it));
    inner = rp_proto_enter(&c, &it);
    assert_true(rp_proto_next(&inner, &it));
    inner = rp_proto_enter(&inner, &it);
    assert_true(rp_proto_next(&inner, &it));
    assert_int_equal(inner.offset, 4);
    inner = rp_proto_enter(&inner, &it);
    assert_false(rp_proto_next(&inner, &it));
    assert_code(rp_proto_finish(&inner, &err), RP_LIMIT);
    assert_string_equal(err.text, "field 1 of message at byte 4: messages are nested too deeply at "
                                  "byte 4");
}

static void test_values(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(rp_proto_zigzag(0), 0);
    assert_int_equal(rp_proto_zigzag(1), -1);
    assert_int_equal(rp_proto_zigzag(2), 1);
    assert_true(rp_proto_zigzag(UINT64_MAX) == INT64_MIN);
    assert_true(rp_proto_double(UINT64_C(0x3ff8000000000000)) == 1.5);
    assert_true(rp_proto_float(0x3fc00000) == 1.5f);
}

/* ---- writer ---- */

static void test_every_field_written(void **state)
{
    struct rp_proto_writer w = {0};
    struct rp_bytes out;
    size_t begun;

    UNUSED_STATE(state);
    rp_proto_put_varint(&w, 3, (uint64_t)(int64_t)-3);
    rp_proto_put_varint(&w, 4, 0); /* written, though zero */
    rp_proto_put_float(&w, 2, 1.5f);
    rp_proto_put_fixed32(&w, 9, 9);
    rp_proto_put_fixed64(&w, 10, 10);
    rp_proto_put_text(&w, 12, "text");
    rp_proto_put_bytes(&w, 12, NULL, 0);
    begun = rp_proto_begin(&w, 13);
    rp_proto_put_varint(&w, 4, 150);
    rp_proto_end(&w, begun);
    begun = rp_proto_begin(&w, 1000);
    rp_proto_end(&w, begun);
    rp_proto_add_bytes(&w, "\x08\x01", 2);
    assert_code(rp_proto_written(&w, &out, NULL), RP_OK);
    assert_bytes(out, BYTES("\x18\xfd\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                            "\x20\x00"
                            "\x15\x00\x00\xc0\x3f"
                            "\x4d\x09\x00\x00\x00"
                            "\x51\x0a\x00\x00\x00\x00\x00\x00\x00"
                            "\x62\x04text"
                            "\x62\x00"
                            "\x6a\x03\x20\x96\x01"
                            "\xc2\x3e\x00"
                            "\x08\x01"));
    rp_proto_rewind(&w);
    assert_code(rp_proto_written(&w, &out, NULL), RP_OK);
    assert_int_equal(out.n, 0);
    rp_proto_writer_release(&w);
}

static void test_packed_both_ways(void **state)
{
    struct rp_proto_writer w = {0};
    struct rp_proto_cursor c;
    struct rp_bytes out;
    uint64_t v64;
    uint32_t v32;
    size_t begun;

    UNUSED_STATE(state);
    begun = rp_proto_begin(&w, 1);
    for (uint32_t i = 0; i < 100; i++)
        rp_proto_add_fixed32(&w, i * 1000003);
    rp_proto_end(&w, begun);
    begun = rp_proto_begin(&w, 2);
    for (uint64_t i = 0; i < 100; i++)
        rp_proto_add_fixed64(&w, i * UINT64_C(1000000000039));
    rp_proto_end(&w, begun);
    assert_code(rp_proto_written(&w, &out, NULL), RP_OK);
    c = cursor_of(rp_proto_find(out, 1));
    for (uint32_t i = 0; i < 100; i++)
        assert_true(rp_proto_packed_fixed32(&c, &v32) && v32 == i * 1000003);
    assert_false(rp_proto_packed_fixed32(&c, &v32));
    assert_code(rp_proto_finish(&c, NULL), RP_OK);
    c = cursor_of(rp_proto_find(out, 2));
    for (uint64_t i = 0; i < 100; i++)
        assert_true(rp_proto_packed_fixed64(&c, &v64) && v64 == i * UINT64_C(1000000000039));
    assert_false(rp_proto_packed_fixed64(&c, &v64));
    assert_code(rp_proto_finish(&c, NULL), RP_OK);
    rp_proto_writer_release(&w);
}

static void test_packed_cut_off(void **state)
{
    struct rp_proto_cursor c = cursor_of(BYTES("\x01\x02\x03"));
    struct rp_err err = RP_ERR_INIT;
    uint32_t value;

    UNUSED_STATE(state);
    assert_false(rp_proto_packed_fixed32(&c, &value));
    assert_code(rp_proto_finish(&c, &err), RP_FORMAT);
    assert_string_equal(err.text, "message at byte 0: value of 4 bytes at byte 0 runs past the end "
                                  "at byte 3");
}

static void test_find(void **state)
{
    struct rp_bytes in = BYTES("\x08\x01\x12\x01x\x12\x02yz\x1a\x01q");

    UNUSED_STATE(state);
    assert_bytes(rp_proto_find(in, 2), BYTES("x"));
    assert_bytes(rp_proto_find_nth(in, 2, 1), BYTES("yz"));
    assert_int_equal(rp_proto_find_nth(in, 2, 2).n, 0);
    assert_bytes(rp_proto_find(in, 3), BYTES("q"));
    assert_int_equal(rp_proto_find(in, 1).n, 0); /* not of wire type BYTES */
}

static void test_slots(void **state)
{
    static const struct rp_bytes in = BYTES("\x08\x96\x01"             /* 1: 150 */
                                            "\x11\0\0\0\0\0\0\xf8\x3f" /* 2: 1.5 */
                                            "\x1a\x03\x61\x62\x63"     /* 3: abc */
                                            "\x25\0\0\x20\x40"         /* 4: 2.5 */
                                            "\x28\x02"                 /* 5: 2 */
                                            "\x30\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                                            "\x08\x07"    /* 1: 7 */
                                            "\x0a\x01z"); /* 1, but no number */
    struct rp_err err = RP_ERR_INIT;
    struct rp_bytes text = {0};
    uint64_t last = 0, absent = 4, values[7];
    int64_t negative = 0;
    bool flag = false;
    double f64 = 0, f32 = 0;
    const struct rp_proto_slot slots[] = {
        {1, .u64 = &last},  {2, .f64 = &f64},      {3, .bytes = &text}, {4, .f32 = &f32},
        {5, .flag = &flag}, {6, .i64 = &negative}, {7, .u64 = &absent}, {0}};
    struct rp_proto_cursor c = cursor_of(in);
    struct rp_proto_item it;

    UNUSED_STATE(state);
    assert_code(rp_proto_read(c, slots, NULL), RP_OK);
    assert_true(last == 7 && absent == 4 && negative == -1 && flag);
    assert_true(f64 == 1.5 && f32 == 2.5);
    assert_bytes(text, BYTES("abc"));
    assert_code(rp_proto_numbers(c, values, 7, NULL), RP_OK);
    assert_true(values[1] == 7 && values[2] == 0 && values[5] == 2 && values[6] == UINT64_MAX);
    assert_true(rp_proto_next_bytes(&c, 1, &it));
    assert_bytes(it.bytes, BYTES("z"));
    assert_false(rp_proto_take(slots, &it));
    assert_false(rp_proto_next_bytes(&c, 1, &it));
    c = cursor_of(BYTES("\x08\x05\x1a\x09"));
    assert_code(rp_proto_read(c, slots, &err), RP_FORMAT);
    assert_int_equal(last, 5);
    assert_string_equal(err.text, "field 3 of message at byte 0: length 9 runs past the end at "
                                  "byte 4");
    assert_code(rp_proto_numbers(c, values, 7, &err), RP_FORMAT);
}

/* 150, 1, 2, 7: not packed with a tag of two bytes, packed, not packed; no list of fixed numbers */
static void test_list(void **state)
{
    struct rp_proto_cursor c = cursor_of(BYTES("\x80\x01\x96\x01\x82\x01\x02\x01\x02\x80\x01\x07"
                                               "\x85\x01\x01\x02\x03\x04"));
    static const uint64_t want[] = {150, 1, 2, 7};
    struct rp_proto_item it;
    uint64_t value;
    size_t n = 0;

    UNUSED_STATE(state);
    while (rp_proto_next(&c, &it)) {
        struct rp_proto_cursor list = rp_proto_list(&c, &it);

        while (rp_proto_packed_varint(&list, &value))
            assert_true(n < 4 && value == want[n++]);
        assert_code(rp_proto_finish(&list, NULL), RP_OK);
    }
    assert_int_equal(n, 4);
}

static void test_long_lengths(void **state)
{
    static const size_t sizes[] = {0, 127, 128, 16383, 16384, 300000};
    struct rp_proto_writer w = {0};
    static char text[300000];

    UNUSED_STATE(state);
    memset(text, 'a', sizeof text);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t outer = rp_proto_begin(&w, 13), inner = rp_proto_begin(&w, 13);
        struct rp_proto_cursor c;
        struct rp_proto_item it;
        struct rp_bytes out;

        rp_proto_put_bytes(&w, 12, text, sizes[i]);
        rp_proto_end(&w, inner);
        rp_proto_put_varint(&w, 4, 7);
        rp_proto_end(&w, outer);
        assert_code(rp_proto_written(&w, &out, NULL), RP_OK);
        c = cursor_of(rp_proto_find(out, 13));
        assert_true(rp_proto_next(&c, &it));
        assert_bytes(rp_proto_find(it.bytes, 12), (struct rp_bytes){(uint8_t *)text, sizes[i]});
        assert_true(rp_proto_next(&c, &it));
        assert_true(it.number == 4 && it.value == 7);
        assert_false(rp_proto_next(&c, &it));
        assert_code(rp_proto_finish(&c, NULL), RP_OK);
        rp_proto_rewind(&w);
    }
    rp_proto_writer_release(&w);
}

int test_proto(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_wire_type),
        cmocka_unit_test(test_varints),
        cmocka_unit_test(test_varints_both_ways),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_many_groups),
        cmocka_unit_test(test_nested_offsets_and_depth),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_every_field_written),
        cmocka_unit_test(test_packed_both_ways),
        cmocka_unit_test(test_packed_cut_off),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_long_lengths),
    };

    return cmocka_run_group_tests_name("proto", tests, NULL, NULL);
}
