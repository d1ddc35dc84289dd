/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule of a module: a protobuf has the instructions of a computation in some order and the
 * one they run in apart, text has them in the latter. The model has what text has, so instructions
 * are read in the order of the schedule. Cost: one more look at the fields of what is scheduled.
 */
#include "formats/hlo/proto.h"

#include "abi/proto/hlo.h"

#include <string.h>

#define KEY(number, wire) RP_PROTO_KEY(number, RP_WIRE_##wire)

/* One entry of the map: the id of a computation, and the ids of its instructions. */
static enum rp_code sequence(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                             const struct rp_proto_item *item)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item), list;
    struct rp_proto_item it, ids;
    struct rp_bytes packed = {0};
    uint64_t id = 0;

    while (rp_proto_next(&c, &it)) {
        if (RP_PROTO_KEY(it.number, it.wire) == KEY(RP_HLO_SEQUENCE_ENTRY_KEY, VARINT))
            id = it.value;
        if (RP_PROTO_KEY(it.number, it.wire) != KEY(RP_HLO_SEQUENCE_ENTRY_VALUE, BYTES))
            continue;
        list = rp_proto_enter(&c, &it);
        while (rp_proto_next(&list, &ids))
            if (RP_PROTO_KEY(ids.number, ids.wire) == KEY(RP_HLO_SEQUENCE_INSTRUCTION_IDS, BYTES))
                packed = ids.bytes;
        RP_TRY(rp_proto_finish(&list, r->err));
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    RP_TRY(rp_map_put(&r->sequence_of, id, (uint32_t)r->sequences.n, r->err));
    return rp_vec_push(&r->sequences, packed, r->err);
}

enum rp_code hlo_proto_schedule(struct hlo_proto *r, struct rp_bytes bytes)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, 0, r->limits.depth);
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it))
        if (RP_PROTO_KEY(it.number, it.wire) == KEY(RP_HLO_SCHEDULE_SEQUENCES, BYTES))
            RP_TRY(sequence(r, &c, &it));
    return rp_proto_finish(&c, r->err);
}

/* The instructions of a computation by their ids; `found` in the order of the file. */
static enum rp_code collect(struct hlo_proto *r, struct rp_bytes bytes, struct rp_map *by_id)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, 0, r->limits.depth), inner;
    struct rp_proto_item it, field;

    while (rp_proto_next(&c, &it)) {
        uint64_t id = 0;

        if (RP_PROTO_KEY(it.number, it.wire) != KEY(RP_HLO_COMPUTATION_INSTRUCTIONS, BYTES))
            continue;
        inner = rp_proto_enter(&c, &it);
        while (rp_proto_next(&inner, &field))
            if (RP_PROTO_KEY(field.number, field.wire) == KEY(RP_HLO_INSTRUCTION_ID, VARINT)) {
                id = field.value;
                break;
            }
        RP_TRY(rp_map_put(by_id, id, (uint32_t)r->found.n, r->err));
        RP_TRY(rp_vec_push(&r->found, it.bytes, r->err));
    }
    return RP_OK; /* whoever reads the instructions says what is wrong with them */
}

/* Each instruction once, or it is no schedule of this computation. */
static enum rp_code put_in_order(struct hlo_proto *r, struct rp_bytes packed,
                                 const struct rp_map *by_id)
{
    struct rp_proto_cursor c = rp_proto_cursor(packed.at, packed.n, 0, 1);
    uint64_t id;

    while (rp_proto_packed_varint(&c, &id)) {
        uint32_t at = rp_map_get(by_id, id);

        if (at == RP_MAP_NONE || !r->found.at[at].at)
            break;
        RP_TRY(rp_vec_push(&r->ordered, r->found.at[at], r->err));
        r->found.at[at].at = NULL;
    }
    if (r->ordered.n != r->found.n)
        r->ordered.n = 0;
    return RP_OK;
}

enum rp_code hlo_proto_order(struct hlo_proto *r, struct rp_bytes bytes, uint64_t computation)
{
    uint32_t at = r->sequences.n ? rp_map_get(&r->sequence_of, computation) : RP_MAP_NONE;
    struct rp_map by_id;
    enum rp_code code;

    r->ordered.n = r->found.n = 0;
    if (at == RP_MAP_NONE)
        return RP_OK;
    rp_map_init(&by_id);
    code = collect(r, bytes, &by_id);
    if (code == RP_OK)
        code = put_in_order(r, r->sequences.at[at], &by_id);
    rp_map_release(&by_id);
    return code;
}
