/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol buffers: the cursor and its errors, tables both ways, byte for byte. */
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
    assert_int_equal(rp_proto_count_varints(bytes), 64 * 3);
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
    assert_string_equal(walk_error(BYTES("\x08\x80"), &err),
                        "field 1 of message at byte 100: varint at byte 101 is cut off by the end "
                        "at byte 102");
    assert_string_equal(walk_error(BYTES("\x80"), &err),
                        "message at byte 100: varint at byte 100 is cut off by the end at byte "
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
    assert_string_equal(walk_error(BYTES("\x0b\x08\x01"), &err),
                        "field 1 of message at byte 100: group at byte 100 is open at the end at "
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

static void test_delimited(void **state)
{
    struct rp_bytes in = BYTES("\x02\x08\x01\x00\x05xx");
    struct rp_proto_cursor c = cursor_of(in);
    struct rp_err err = RP_ERR_INIT;
    struct rp_proto_item it;

    UNUSED_STATE(state);
    assert_true(rp_proto_next_delimited(&c, &it));
    assert_bytes(it.bytes, BYTES("\x08\x01"));
    assert_true(rp_proto_next_delimited(&c, &it));
    assert_int_equal(it.bytes.n, 0);
    assert_false(rp_proto_next_delimited(&c, &it));
    assert_code(rp_proto_finish(&c, &err), RP_FORMAT);
    assert_string_equal(err.text, "message at byte 0: length 5 runs past the end at byte 7");
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

/* ---- tables ---- */

struct node {
    struct rp_proto_head head;
    double f64;
    float f32;
    int32_t i32, s32;
    int64_t i64, s64;
    uint32_t u32, x32;
    uint64_t u64, x64;
    bool flag;
    struct rp_bytes text;
    struct node *child;
    union {
        int64_t number;
        struct rp_bytes name;
    };
    RP_PROTO_LIST_OF(struct node) nodes;
    RP_PROTO_LIST_OF(int32_t) packed;
    RP_PROTO_LIST_OF(int64_t) plain;
    RP_PROTO_LIST_OF(float) floats;
    RP_PROTO_LIST_OF(struct rp_bytes) texts;
};

static const struct rp_proto_message node_message;
static const struct rp_proto_field node_fields[] = {
    RP_PROTO_FIELD(struct node, 1, f64, DOUBLE),
    RP_PROTO_FIELD(struct node, 2, f32, FLOAT),
    RP_PROTO_FIELD(struct node, 3, i32, INT32),
    RP_PROTO_FIELD(struct node, 4, i64, INT64),
    RP_PROTO_FIELD(struct node, 5, u32, UINT32),
    RP_PROTO_FIELD(struct node, 6, u64, UINT64),
    RP_PROTO_FIELD(struct node, 7, s32, SINT32),
    RP_PROTO_FIELD(struct node, 8, s64, SINT64),
    RP_PROTO_FIELD(struct node, 9, x32, FIXED32),
    RP_PROTO_FIELD(struct node, 10, x64, FIXED64),
    RP_PROTO_FIELD(struct node, 11, flag, BOOL),
    RP_PROTO_FIELD(struct node, 12, text, BYTES),
    RP_PROTO_SUB(struct node, 13, child, &node_message),
    RP_PROTO_ONEOF(struct node, 14, number, INT64, 1),
    RP_PROTO_ONEOF(struct node, 15, name, BYTES, 1),
    RP_PROTO_FIELDS(struct node, 20, nodes, MESSAGE, 0, &node_message),
    RP_PROTO_FIELDS(struct node, 21, packed, INT32, RP_PROTO_PACKED, NULL),
    RP_PROTO_FIELDS(struct node, 22, plain, SINT64, 0, NULL),
    RP_PROTO_FIELDS(struct node, 23, floats, FLOAT, RP_PROTO_PACKED, NULL),
    RP_PROTO_FIELDS(struct node, 1000, texts, BYTES, 0, NULL),
};
static const struct rp_proto_message node_message = RP_PROTO_TABLE(struct node, node_fields);

static void decode(struct rp_bytes in, struct rp_arena *arena, struct node *node)
{
    struct rp_err err = RP_ERR_INIT;

    memset(node, 0, sizeof *node);
    assert_ok(rp_proto_decode(&node_message, in.at, in.n, NULL, arena, node, &err), &err);
}

/* Decodes, encodes and compares with what should come out. */
static void check_again(struct rp_bytes in, struct rp_bytes want)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_proto_writer w = {0};
    struct rp_bytes out;
    struct node node;

    decode(in, &arena, &node);
    rp_proto_put_struct(&w, &node_message, &node);
    assert_code(rp_proto_written(&w, &out, NULL), RP_OK);
    assert_bytes(out, want);
    rp_proto_writer_release(&w);
    rp_arena_release(&arena);
}

static void make(struct rp_proto_writer *w)
{
    size_t begun;

    rp_proto_put_double(w, 1, -0.5);
    rp_proto_put_float(w, 2, 0.25f);
    rp_proto_put_varint(w, 3, (uint64_t)(int64_t)-3);
    rp_proto_put_varint(w, 4, (uint64_t)INT64_MIN);
    rp_proto_put_varint(w, 5, UINT32_MAX);
    rp_proto_put_varint(w, 6, UINT64_MAX);
    rp_proto_put_sint(w, 7, INT32_MIN);
    rp_proto_put_sint(w, 8, INT64_MIN);
    rp_proto_put_fixed32(w, 9, 9);
    rp_proto_put_fixed64(w, 10, 10);
    rp_proto_put_varint(w, 11, 1);
    rp_proto_put_text(w, 12, "text");
    begun = rp_proto_begin(w, 13);
    rp_proto_put_varint(w, 4, 0); /* there, though zero */
    rp_proto_end(w, begun);
    rp_proto_put_text(w, 15, "");
    for (int i = 0; i < 3; i++) {
        begun = rp_proto_begin(w, 20);
        rp_proto_put_varint(w, 3, (uint64_t)i);
        rp_proto_end(w, begun);
    }
    begun = rp_proto_begin(w, 21);
    for (int i = 0; i < 100; i++)
        rp_proto_add_varint(w, (uint64_t)i * 1000);
    rp_proto_end(w, begun);
    rp_proto_put_sint(w, 22, -1);
    rp_proto_put_sint(w, 22, 1);
    begun = rp_proto_begin(w, 23);
    rp_proto_add_fixed32(w, 0x3fc00000);
    rp_proto_end(w, begun);
    rp_proto_put_text(w, 1000, "a");
    rp_proto_put_text(w, 1000, "bc");
}

static void check_values(const struct node *n)
{
    assert_true(n->f64 == -0.5 && n->f32 == 0.25f);
    assert_int_equal(n->i32, -3);
    assert_true(n->i64 == INT64_MIN && n->u32 == UINT32_MAX && n->u64 == UINT64_MAX);
    assert_true(n->s32 == INT32_MIN && n->s64 == INT64_MIN);
    assert_true(n->x32 == 9 && n->x64 == 10 && n->flag);
    assert_bytes(n->text, BYTES("text"));
    assert_non_null(n->child);
    assert_int_equal(n->child->i64, 0);
    assert_true(rp_proto_has(&node_message, n->child, 4));
    assert_false(rp_proto_has(&node_message, n->child, 3));
    assert_true(rp_proto_has(&node_message, n, 15));
    assert_false(rp_proto_has(&node_message, n, 14));
    assert_false(rp_proto_has(&node_message, n, 77));
    assert_int_equal(n->nodes.n, 3);
    assert_int_equal(n->nodes.at[2].i32, 2);
    assert_int_equal(n->packed.n, 100);
    assert_int_equal(n->packed.at[99], 99000);
    assert_int_equal(n->plain.n, 2);
    assert_true(n->plain.at[0] == -1 && n->plain.at[1] == 1);
    assert_int_equal(n->floats.n, 1);
    assert_true(n->floats.at[0] == 1.5f);
    assert_int_equal(n->texts.n, 2);
    assert_bytes(n->texts.at[1], BYTES("bc"));
    assert_null(n->head.last);
}

static void test_every_type_both_ways(void **state)
{
    struct rp_proto_writer w = {0};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_bytes in;
    struct node node;

    UNUSED_STATE(state);
    make(&w);
    assert_code(rp_proto_written(&w, &in, NULL), RP_OK);
    decode(in, &arena, &node);
    check_values(&node);
    check_again(in, in);
    rp_arena_release(&arena);
    rp_proto_writer_release(&w);
}

static void test_last_wins_and_messages_merge(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct node node;

    UNUSED_STATE(state);
    check_again(BYTES("\x20\x01\x20\x02"), BYTES("\x20\x02"));
    decode(BYTES("\x6a\x02\x18\x05\x6a\x05\x20\x07\xb0\x01\x02\x6a\x03\xb0\x01\x04"), &arena,
           &node);
    assert_int_equal(node.child->i32, 5);
    assert_int_equal(node.child->i64, 7);
    assert_int_equal(node.child->plain.n, 2);
    assert_int_equal(node.child->plain.at[1], 2);
    rp_arena_release(&arena);
}

static void test_oneof(void **state)
{
    UNUSED_STATE(state);
    check_again(BYTES("\x70\x05\x7a\x01x"), BYTES("\x7a\x01x"));
    check_again(BYTES("\x7a\x01x\x70\x05"), BYTES("\x70\x05"));
    check_again(BYTES("\x7a\x01x\x70\x00"), BYTES("\x70\x00"));
}

static void test_packed_and_not(void **state)
{
    UNUSED_STATE(state);
    check_again(BYTES("\xa8\x01\x07\xaa\x01\x02\x08\x09\xa8\x01\x0a"), /* mixed, written packed */
                BYTES("\xaa\x01\x04\x07\x08\x09\x0a"));
    check_again(BYTES("\xb2\x01\x02\x01\x02"), /* packed, written plain */
                BYTES("\xb0\x01\x01\xb0\x01\x02"));
    check_again(BYTES("\xbd\x01\x01\x02\x03\x04"), BYTES("\xba\x01\x04\x01\x02\x03\x04"));
    check_again(BYTES("\xaa\x01\x00"), BYTES(""));
}

static void test_unknown_fields_stay(void **state)
{
    UNUSED_STATE(state);
    /* 50: varint, 4 known, 51: bytes, 52: a group, and 4 with a wire type that is not its own */
    check_again(BYTES("\x90\x03\x01\x20\x05\x9a\x03\x01x\xa3\x03\x08\x01\xa4\x03\x21"
                      "12345678"),
                BYTES("\x20\x05\x90\x03\x01\x9a\x03\x01x\xa3\x03\x08\x01\xa4\x03\x21"
                      "12345678"));
    check_again(BYTES("\x6a\x03\x90\x03\x01"), BYTES("\x6a\x03\x90\x03\x01"));
}

static void test_scattered_lists(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_proto_writer w = {0};
    struct rp_bytes in;
    struct node node;

    UNUSED_STATE(state);
    for (int i = 0; i < 5000; i++) {
        rp_proto_put_sint(&w, 22, i);
        rp_proto_put_varint(&w, 4, (uint64_t)i);
    }
    assert_code(rp_proto_written(&w, &in, NULL), RP_OK);
    decode(in, &arena, &node);
    assert_int_equal(node.plain.n, 5000);
    for (int i = 0; i < 5000; i++)
        assert_int_equal(node.plain.at[i], i);
    assert_int_equal(node.i64, 4999);
    assert_true(arena.bytes < 5000 * 8 * 8);
    rp_arena_release(&arena);
    rp_proto_writer_release(&w);
}

static void check_failure(struct rp_bytes in, const struct rp_limits *limits, enum rp_code code,
                          const char *want)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct node node = {0};

    assert_code(rp_proto_decode(&node_message, in.at, in.n, limits, &arena, &node, &err), code);
    assert_string_equal(err.text, want);
    rp_arena_release(&arena);
}

static void test_failures_name_the_message(void **state)
{
    struct rp_limits limits = RP_LIMITS_DEFAULT;

    UNUSED_STATE(state);
    check_failure(BYTES("\x6a\x04\x20\x01\x62\x09"), NULL, RP_FORMAT,
                  "struct node: field 12 of message at byte 2: length 9 runs past the end at byte "
                  "6");
    check_failure(BYTES("\xba\x01\x03\x01\x02\x03"), NULL, RP_FORMAT,
                  "message at byte 3: value of 4 bytes at byte 3 runs past the end at byte 6");
    limits.depth = 2;
    check_failure(BYTES("\x6a\x04\x6a\x02\x6a\x00"), &limits, RP_LIMIT,
                  "struct node: field 13 of message at byte 4: messages are nested too deeply at "
                  "byte 4");
    limits.events = 2;
    check_failure(BYTES("\xa2\x01\x00\xa2\x01\x00\xa2\x01\x00"), &limits, RP_LIMIT,
                  "message at byte 0: more than 2 elements in all");
    limits.input_bytes = 1;
    check_failure(BYTES("\x20\x01"), &limits, RP_LIMIT,
                  "struct node: 2 bytes are over the limit of 1");
}

static void test_built_by_hand(void **state)
{
    struct node child = {.i64 = 3}, list[] = {{.i32 = 1}, {.i32 = 2}};
    struct node root = {.child = &child, .text = BYTES("x"), .number = 0};
    struct rp_proto_writer w = {0};
    struct rp_bytes out;

    UNUSED_STATE(state);
    root.nodes.at = list;
    root.nodes.n = 2;
    rp_proto_set(&node_message, &root, 15);
    rp_proto_set(&node_message, &root, 14); /* of a oneof the last counts */
    rp_proto_put_struct(&w, &node_message, &root);
    assert_code(rp_proto_written(&w, &out, NULL), RP_OK);
    assert_bytes(
        out, BYTES("\x62\x01x\x6a\x02\x20\x03\x70\x00\xa2\x01\x02\x18\x01\xa2\x01\x02\x18\x02"));
    rp_proto_rewind(&w);
    assert_code(rp_proto_written(&w, &out, NULL), RP_OK);
    assert_int_equal(out.n, 0);
    rp_proto_writer_release(&w);
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
        struct rp_arena arena = RP_ARENA_INIT;
        struct rp_bytes out;
        struct node node;

        rp_proto_put_bytes(&w, 12, text, sizes[i]);
        rp_proto_end(&w, inner);
        rp_proto_put_varint(&w, 4, 7);
        rp_proto_end(&w, outer);
        assert_code(rp_proto_written(&w, &out, NULL), RP_OK);
        decode(out, &arena, &node);
        assert_int_equal(node.child->i64, 7);
        assert_bytes(node.child->child->text, (struct rp_bytes){(uint8_t *)text, sizes[i]});
        rp_arena_release(&arena);
        rp_proto_rewind(&w);
    }
    rp_proto_writer_release(&w);
}

static const char *check_table(struct rp_proto_field a, struct rp_proto_field b, char why[200])
{
    struct rp_proto_field fields[] = {a, b};
    struct rp_proto_message type = {"m", sizeof(struct node), 2, fields};

    return rp_proto_check(&type, why, 200) ? "" : why;
}

static void test_check(void **state)
{
    struct rp_proto_field a = RP_PROTO_FIELD(struct node, 1, f64, DOUBLE),
                          b = RP_PROTO_FIELD(struct node, 2, i32, INT32);
    char why[200];

    UNUSED_STATE(state);
    assert_true(rp_proto_check(&node_message, why, sizeof why));
    assert_string_equal(check_table(a, b, why), "");
    assert_contains(check_table(b, a, why), "m.f64: numbers are not ascending");
    b.type = RP_PROTO_INT64;
    assert_contains(check_table(a, b, why), "m.i32: the member does not have the size of its type");
    b.type = RP_PROTO_INT32;
    b.offset = 0;
    assert_contains(check_table(a, b, why), "m.i32: the member is not inside the struct");
    a = (struct rp_proto_field)RP_PROTO_ROW(struct node, 1, child, MESSAGE, 0, 0, NULL);
    assert_contains(check_table(a, b, why), "m.child: a message, and only a message");
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
        cmocka_unit_test(test_delimited),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_every_type_both_ways),
        cmocka_unit_test(test_last_wins_and_messages_merge),
        cmocka_unit_test(test_oneof),
        cmocka_unit_test(test_packed_and_not),
        cmocka_unit_test(test_unknown_fields_stay),
        cmocka_unit_test(test_scattered_lists),
        cmocka_unit_test(test_failures_name_the_message),
        cmocka_unit_test(test_built_by_hand),
        cmocka_unit_test(test_long_lengths),
        cmocka_unit_test(test_check),
    };

    return cmocka_run_group_tests_name("proto", tests, NULL, NULL);
}
