/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protocol buffers by tables: a message type with every kind of field that contains itself. What
 * can be decoded is encoded; that must decode again, and encode to the same bytes. The cursor alone
 * walks the same input, and must end where the decoder ends.
 */
#include "io/proto.h"
#include "io/proto_write.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
        struct node *node;
    };
    RP_PROTO_LIST_OF(struct node) nodes;
    RP_PROTO_LIST_OF(int32_t) packed_i32;
    RP_PROTO_LIST_OF(int64_t) plain_s64;
    RP_PROTO_LIST_OF(float) packed_f32;
    RP_PROTO_LIST_OF(double) packed_f64;
    RP_PROTO_LIST_OF(bool) flags;
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
    RP_PROTO_ROW(struct node, 16, node, MESSAGE, 0, 1, &node_message),
    RP_PROTO_FIELDS(struct node, 20, nodes, MESSAGE, 0, &node_message),
    RP_PROTO_FIELDS(struct node, 21, packed_i32, INT32, RP_PROTO_PACKED, NULL),
    RP_PROTO_FIELDS(struct node, 22, plain_s64, SINT64, 0, NULL),
    RP_PROTO_FIELDS(struct node, 23, packed_f32, FLOAT, RP_PROTO_PACKED, NULL),
    RP_PROTO_FIELDS(struct node, 24, packed_f64, DOUBLE, RP_PROTO_PACKED, NULL),
    RP_PROTO_FIELDS(struct node, 25, flags, BOOL, RP_PROTO_PACKED, NULL),
    RP_PROTO_FIELDS(struct node, 1000, texts, BYTES, 0, NULL),
};
static const struct rp_proto_message node_message = RP_PROTO_TABLE(struct node, node_fields);

static const struct rp_limits limits = {
    .input_bytes = 1 << 20, .token_bytes = 1 << 20, .events = 1 << 16, .members = 1, .depth = 60};

/* Decodes bytes and encodes what came of it. */
static enum rp_code again(struct rp_bytes bytes, struct rp_proto_writer *w, struct rp_bytes *out)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct node root = {0};
    enum rp_code code =
        rp_proto_decode(&node_message, bytes.at, bytes.n, &limits, &arena, &root, NULL);

    if (code == RP_OK) {
        rp_proto_put_struct(w, &node_message, &root);
        code = rp_proto_written(w, out, NULL);
    }
    rp_arena_release(&arena);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_proto_writer first = {0}, second = {0};
    struct rp_bytes one, two;
    struct rp_proto_cursor c = rp_proto_cursor(data, size, 0, limits.depth);
    struct rp_proto_item item;
    enum rp_code code = again((struct rp_bytes){data, size}, &first, &one), more;

    while (rp_proto_next(&c, &item))
        if (c.at <= item.begin || c.at > data + size)
            abort();
    if (rp_proto_finish(&c, NULL) != RP_OK && code == RP_OK)
        abort();
    if (code == RP_OK) {
        more = again(one, &second, &two);
        if (more != RP_OK && more != RP_NOMEM && more != RP_LIMIT)
            abort();
        if (more == RP_OK && (one.n != two.n || (one.n && memcmp(one.at, two.at, one.n))))
            abort();
    }
    rp_proto_writer_release(&first);
    rp_proto_writer_release(&second);
    return 0;
}
