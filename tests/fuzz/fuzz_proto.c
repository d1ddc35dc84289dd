/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protocol buffers: the cursor walks a message and every bytes field that is a message itself, and
 * the writer writes what was read. That must read again, and be written as the same bytes.
 */
#include "io/proto.h"
#include "io/proto_write.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DEPTH 60

static enum rp_code walk(struct rp_proto_cursor c)
{
    struct rp_proto_item item;

    while (rp_proto_next(&c, &item))
        if (c.at <= item.begin || c.at > c.end)
            abort();
    return rp_proto_finish(&c, NULL);
}

static enum rp_code copy(struct rp_proto_cursor c, struct rp_proto_writer *w)
{
    struct rp_proto_item item;

    while (rp_proto_next(&c, &item)) {
        struct rp_proto_cursor inner;
        size_t begun;

        switch (item.wire) {
        case RP_WIRE_VARINT:
            rp_proto_put_varint(w, item.number, item.value);
            break;
        case RP_WIRE_FIXED32:
            rp_proto_put_fixed32(w, item.number, (uint32_t)item.value);
            break;
        case RP_WIRE_FIXED64:
            rp_proto_put_fixed64(w, item.number, item.value);
            break;
        case RP_WIRE_GROUP:
            rp_proto_add_bytes(w, item.begin, (size_t)(c.at - item.begin));
            break;
        default:
            inner = rp_proto_enter(&c, &item);
            if (walk(inner) != RP_OK) {
                rp_proto_put_bytes(w, item.number, item.bytes.at, item.bytes.n);
                break;
            }
            begun = rp_proto_begin(w, item.number);
            if (copy(inner, w) != RP_OK)
                abort();
            rp_proto_end(w, begun);
        }
    }
    return rp_proto_finish(&c, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_proto_writer first = {0}, second = {0};
    struct rp_bytes one, two;

    if (copy(rp_proto_cursor(data, size, 0, DEPTH), &first) == RP_OK &&
        rp_proto_written(&first, &one, NULL) == RP_OK) {
        if (copy(rp_proto_cursor(one.at, one.n, 0, DEPTH), &second) != RP_OK)
            abort();
        if (rp_proto_written(&second, &two, NULL) == RP_OK &&
            (one.n != two.n || (one.n && memcmp(one.at, two.at, one.n))))
            abort();
    }
    rp_proto_writer_release(&first);
    rp_proto_writer_release(&second);
    return 0;
}
