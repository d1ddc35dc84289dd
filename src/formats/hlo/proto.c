/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads HLO modules in protobufs: HloModuleProto alone, or inside HloProto,
 * HloModuleProtoWithConfig, HloSnapshot and HloUnoptimizedSnapshot (framed or not). None of them
 * says what it is, so the first bytes are tried as each of them down to the opcode of the first
 * instruction.
 *
 *   file        module at
 *   HloModuleProto                                the file
 *   HloProto, ...WithConfig, unoptimized snapshot field 1
 *   HloSnapshot                                   field 1 of field 1
 *   framed unoptimized snapshot                   field 1, after a varint
 */
#include "formats/hlo/proto.h"
#include "abi/proto/hlo.h"
#include "base/each.h"
#include "formats/formats.h"
#include "formats/programs.h"
#include "program/opcodes.h"
#include "program/structure.h"

#include <string.h>

#define KEY(number, wire) RP_PROTO_KEY(number, RP_WIRE_##wire)

static bool is_printable(struct rp_bytes s)
{
    if (!s.n || s.n > 4096)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (s.at[i] < 0x20 || s.at[i] > 0x7e)
            return false;
    return true;
}

/* ---- instructions ---- */

/* Reads lists of ids, packed or not; if a list is not packed (`loose`), the instruction is walked
   again. */
static enum rp_code instruction_fields(struct rp_hlo_proto *r, struct rp_bytes bytes,
                                       uint64_t offset, struct rp_hlo_fields *f)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, offset, r->limits.depth);
    struct rp_proto_item it;

    memset(f, 0, sizeof *f);
    r->metadata_rest = false;
    while (rp_proto_next(&c, &it)) {
        switch (RP_PROTO_KEY(it.number, it.wire)) {
        case KEY(RP_HLO_INSTRUCTION_NAME, BYTES):
            f->name = it.bytes;
            break;
        case KEY(RP_HLO_INSTRUCTION_OPCODE, BYTES):
            f->opcode = it.bytes;
            break;
        case KEY(RP_HLO_INSTRUCTION_SHAPE, BYTES):
            f->shape = it.bytes;
            break;
        case KEY(RP_HLO_INSTRUCTION_METADATA,
                 BYTES): /* a second one is merged, because it holds unknown fields */
            r->metadata_rest |= f->metadata.n != 0;
            f->metadata = f->metadata.n ? f->metadata : it.bytes;
            break;
        case KEY(RP_HLO_INSTRUCTION_LITERAL, BYTES):
            f->literal = it.bytes;
            break;
        case KEY(RP_HLO_INSTRUCTION_PARAMETER_NUMBER, VARINT):
            f->parameter = (int64_t)it.value;
            break;
        case KEY(RP_HLO_INSTRUCTION_TUPLE_INDEX, VARINT):
            f->index = (int64_t)it.value;
            break;
        case KEY(RP_HLO_INSTRUCTION_ID, VARINT):
            f->id = (int64_t)it.value;
            break;
        case KEY(RP_HLO_INSTRUCTION_OPERAND_IDS, VARINT):
        case KEY(RP_HLO_INSTRUCTION_CALLED_COMPUTATION_IDS, VARINT):
            f->loose_ids = true;
            break;
        case KEY(RP_HLO_INSTRUCTION_OPERAND_IDS, BYTES):
            f->loose_ids |= f->operand_ids.n != 0;
            f->operand_ids = it.bytes;
            break;
        case KEY(RP_HLO_INSTRUCTION_CALLED_COMPUTATION_IDS, BYTES):
            f->loose_ids |= f->called_ids.n != 0;
            f->called_ids = it.bytes;
            break;
        default:
            f->others = true;
            break;
        }
    }
    return rp_proto_finish(&c, r->err);
}

static enum rp_code add_operand(struct rp_hlo_proto *r, uint64_t id)
{
    uint32_t op = rp_hlo_proto_op(r, id);
    uint32_t first = r->p->computations.at[r->p->computations.n - 1].first;

    if (op == RP_MAP_NONE || op < first)
        return rp_err_set(r->err, RP_FORMAT, "operand %llu of instruction '%s' is not defined",
                          (unsigned long long)id, rp_program_text(r->p, r->p->op_name.at[r->op]));
    return rp_program_add_operand(r->p, op, 0, r->err);
}

static enum rp_code add_called(struct rp_hlo_proto *r, uint64_t id)
{
    uint32_t computation = rp_map_get(&r->computation_of, id);
    enum rp_opcode code = (enum rp_opcode)r->p->code.at[r->op];

    if (code == RP_OP_ASYNC_UPDATE || code == RP_OP_ASYNC_DONE)
        return RP_OK; /* the async-start has these attributes */
    if (computation == RP_MAP_NONE)
        return rp_err_set(r->err, RP_FORMAT,
                          "computation %llu, called by instruction '%s', is not defined",
                          (unsigned long long)id, rp_program_text(r->p, r->p->op_name.at[r->op]));
    return rp_program_add_called(r->p, computation, r->err);
}

typedef enum rp_code add_fn(struct rp_hlo_proto *r, uint64_t id);

static enum rp_code add_list(struct rp_hlo_proto *r, struct rp_proto_cursor list, add_fn *add)
{
    uint64_t id;

    while (rp_proto_packed_varint(&list, &id))
        RP_TRY(add(r, id));
    return rp_proto_finish(&list, r->err);
}

static enum rp_code add_packed_ids(struct rp_hlo_proto *r, struct rp_bytes bytes, add_fn *add)
{
    return add_list(r, rp_proto_cursor(bytes.at, bytes.n, 0, 1), add);
}

static enum rp_code add_loose_ids(struct rp_hlo_proto *r, struct rp_bytes bytes, uint32_t number,
                                  add_fn *add)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, 0, r->limits.depth);
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it))
        if (it.number == number)
            RP_TRY(add_list(r, rp_proto_list(&c, &it), add));
    return RP_OK;
}

static enum rp_code add_id_lists(struct rp_hlo_proto *r, struct rp_bytes bytes,
                                 const struct rp_hlo_fields *f)
{
    if (f->loose_ids) {
        RP_TRY(add_loose_ids(r, bytes, RP_HLO_INSTRUCTION_OPERAND_IDS, add_operand));
        return add_loose_ids(r, bytes, RP_HLO_INSTRUCTION_CALLED_COMPUTATION_IDS, add_called);
    }
    RP_TRY(add_packed_ids(r, f->operand_ids, add_operand));
    return add_packed_ids(r, f->called_ids, add_called);
}

/* Ids are consecutive within a computation or the module: the low half is an index. Other writers
   may use arbitrary ids, which are kept in a map. */
static enum rp_code note_id(struct rp_hlo_proto *r, uint64_t id)
{
    uint32_t low = (uint32_t)id;

    RP_TRY(rp_vec_push(&r->id_of, id, r->err));
    if (low > 4 * (uint64_t)r->op + 4096)
        return rp_map_put(&r->op_of, id, r->op, r->err);
    if (low >= r->dense.n) {
        RP_TRY(rp_vec_reserve(&r->dense, low + 1 - r->dense.n, r->err));
        memset(r->dense.at + r->dense.n, 0, (low + 1 - r->dense.n) * sizeof *r->dense.at);
        r->dense.n = (size_t)low + 1;
    }
    r->dense.at[low] = r->op + 1;
    return RP_OK;
}

static enum rp_code read_instruction(struct rp_hlo_proto *r, struct rp_bytes bytes, uint64_t offset)
{
    struct rp_hlo_fields f;
    struct rp_new_op op = {0};

    if (r->p->nops >= r->limits.events)
        return rp_err_set(r->err, RP_LIMIT, "more than %llu instructions",
                          (unsigned long long)r->limits.events);
    RP_TRY(instruction_fields(r, bytes, offset, &f));
    if (!is_printable(f.opcode))
        return rp_err_set_at(r->err, RP_FORMAT, offset,
                             "an instruction without an opcode at byte %llu",
                             (unsigned long long)offset);
    RP_TRY(rp_program_string(r->p, (const char *)f.name.at, f.name.n, &op.name, r->err));
    RP_TRY(rp_string_cached(r->p, &r->cache, (const char *)f.opcode.at, f.opcode.n, &op.foreign,
                            r->err));
    op.code = rp_program_opcode(r->p, op.foreign);
    if (f.shape.n)
        RP_TRY(rp_hlo_proto_shape(r, f.shape, offset + (uint64_t)(f.shape.at - bytes.at), 0,
                                  &op.shape));
    op.value = op.code == RP_OP_PARAMETER           ? f.parameter
               : op.code == RP_OP_GET_TUPLE_ELEMENT ? f.index
                                                    : 0;
    if (op.code == RP_OP_CONSTANT)
        RP_TRY(rp_hlo_proto_literal(r, f.literal, offset, op.shape, &op.value));
    if (f.metadata.n)
        RP_TRY(rp_hlo_proto_metadata(r, f.metadata, offset, &op.meta));
    RP_TRY(rp_program_add_op(r->p, &op, &r->op, r->err));
    RP_TRY(note_id(r, (uint64_t)f.id));
    RP_TRY(add_id_lists(r, bytes, &f));
    if (f.others || r->metadata_rest)
        RP_TRY(rp_hlo_proto_attrs(r, bytes, offset));
    return rp_hlo_proto_implicit(r);
}

/* ---- the schedule ---- */

/*
 * A protobuf lists the instructions of a computation in any order and stores the execution order
 * separately; text lists them in execution order. The model follows the text, so instructions are
 * read in the order of the schedule. Cost: a second look at the fields of scheduled instructions.
 */

/* One entry of the map: the id of a computation, and the ids of its instructions. */
static enum rp_code note_sequence(struct rp_hlo_proto *r, struct rp_proto_cursor c)
{
    struct rp_bytes list = {c.begin, 0}, packed = {0};
    uint64_t id = 0;

    RP_TRY(
        rp_proto_read(c,
                      (const struct rp_proto_slot[]){{RP_HLO_SEQUENCE_ENTRY_KEY, .u64 = &id},
                                                     {RP_HLO_SEQUENCE_ENTRY_VALUE, .bytes = &list},
                                                     {0}},
                      r->err));
    RP_TRY(rp_proto_read(
        rp_proto_cursor(list.at, list.n, rp_proto_offset(&c, list.at), c.depth),
        (const struct rp_proto_slot[]){{RP_HLO_SEQUENCE_INSTRUCTION_IDS, .bytes = &packed}, {0}},
        r->err));
    RP_TRY(rp_map_put(&r->sequence_of, id, (uint32_t)r->sequences.n, r->err));
    return rp_vec_push(&r->sequences, packed, r->err);
}

static enum rp_code read_schedule(struct rp_hlo_proto *r, struct rp_proto_cursor c)
{
    struct rp_proto_item it;

    while (rp_proto_next_bytes(&c, RP_HLO_SCHEDULE_SEQUENCES, &it))
        RP_TRY(note_sequence(r, rp_proto_enter(&c, &it)));
    return rp_proto_finish(&c, r->err);
}

/* Each instruction must occur once, or the schedule is not one of this computation. */
static enum rp_code order_instructions(struct rp_hlo_proto *r, struct rp_bytes packed,
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

static enum rp_code read_order(struct rp_hlo_proto *r, struct rp_bytes bytes, uint64_t computation)
{
    uint32_t at = r->sequences.n ? rp_map_get(&r->sequence_of, computation) : RP_MAP_NONE;
    RP_SCOPED(rp_map_release) struct rp_map by_id = {0};

    r->ordered.n = r->found.n = 0;
    if (at == RP_MAP_NONE)
        return RP_OK;

    /* Finds the instructions of a computation by their ids; `found` is in the order of the file. */
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, 0, r->limits.depth), inner;
    struct rp_proto_item it, field;
    while (rp_proto_next_bytes(&c, RP_HLO_COMPUTATION_INSTRUCTIONS, &it)) {
        uint64_t id = 0;
        inner = rp_proto_enter(&c, &it);
        while (rp_proto_next(&inner, &field))
            if (RP_PROTO_KEY(field.number, field.wire) == KEY(RP_HLO_INSTRUCTION_ID, VARINT)) {
                id = field.value;
                break;
            }
        RP_TRY(rp_map_put(&by_id, id, (uint32_t)r->found.n, r->err));
        RP_TRY(rp_vec_push(&r->found, it.bytes, r->err));
    }
    return order_instructions(r, r->sequences.at[at], &by_id);
}

/* ---- computations and the module ---- */

static enum rp_code read_computation(struct rp_hlo_proto *r, struct rp_bytes bytes, uint64_t offset)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, offset, r->limits.depth);
    struct rp_proto_item it;
    uint64_t root = UINT64_MAX;
    uint32_t id, text = 0;
    bool rooted = false;

    RP_TRY(rp_program_begin(r->p, 0, &id, r->err));
    RP_TRY(read_order(r, bytes, r->computation_ids.at[id]));
    for (size_t i = 0; i < r->ordered.n; i++)
        RP_TRY(read_instruction(r, r->ordered.at[i],
                                offset + (uint64_t)(r->ordered.at[i].at - bytes.at)));
    while (rp_proto_next(&c, &it)) {
        switch (RP_PROTO_KEY(it.number, it.wire)) {
        case KEY(RP_HLO_COMPUTATION_NAME, BYTES):
        case KEY(RP_HLO_COMPUTATION_EXECUTION_THREAD, BYTES):
            RP_TRY(rp_program_string(r->p, (const char *)it.bytes.at, it.bytes.n, &text, r->err));
            *(it.number == RP_HLO_COMPUTATION_NAME ? &r->p->computations.at[id].name
                                                   : &r->p->computations.at[id].thread) = text;
            break;
        case KEY(RP_HLO_COMPUTATION_INSTRUCTIONS, BYTES):
            if (!r->ordered.n)
                RP_TRY(read_instruction(r, it.bytes, rp_proto_offset(&c, it.bytes.at)));
            break;
        case KEY(RP_HLO_COMPUTATION_ROOT_ID, VARINT):
            root = it.value;
            rooted = true;
            break;
        default:
            break;
        }
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    text = rooted ? rp_hlo_proto_op(r, root) : RP_MAP_NONE;
    if (text != RP_MAP_NONE && text >= r->p->computations.at[id].first)
        r->p->computations.at[id].root = text;
    else if (root && rooted)
        return rp_err_set(r->err, RP_FORMAT, "the root of computation '%s' is not defined",
                          rp_program_text(r->p, r->p->computations.at[id].name));
    return RP_OK;
}

/* Numbers the computations first, so that any of them may call any other, and reads the
   schedule. */
static enum rp_code number_computations(struct rp_hlo_proto *r, struct rp_bytes bytes,
                                        uint64_t offset)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, offset, r->limits.depth);
    struct rp_proto_item it;
    uint32_t n = 0;

    while (rp_proto_next(&c, &it)) {
        uint64_t id = 0;

        if (RP_PROTO_KEY(it.number, it.wire) == KEY(RP_HLO_MODULE_SCHEDULE, BYTES))
            RP_TRY(read_schedule(r, rp_proto_enter(&c, &it)));
        if (RP_PROTO_KEY(it.number, it.wire) == KEY(RP_HLO_MODULE_PAYLOADS, BYTES))
            RP_TRY(rp_vec_push(&r->payloads, it.bytes, r->err));
        if (RP_PROTO_KEY(it.number, it.wire) != KEY(RP_HLO_MODULE_COMPUTATIONS, BYTES))
            continue;
        RP_TRY(rp_proto_read(
            rp_proto_enter(&c, &it),
            (const struct rp_proto_slot[]){{RP_HLO_COMPUTATION_ID, .u64 = &id}, {0}}, r->err));
        RP_TRY(rp_map_put(&r->computation_of, id, n++, r->err));
        RP_TRY(rp_vec_push(&r->computation_ids, id, r->err));
    }
    return rp_proto_finish(&c, r->err);
}

static enum rp_code add_own_module_text(struct rp_hlo_proto *r, struct rp_bytes bytes)
{
    const char *assign = bytes.n ? memchr(bytes.at, '=', bytes.n) : NULL;
    const char *begin = (const char *)bytes.at;
    uint32_t key;

    if (!assign)
        return RP_OK;
    RP_TRY(rp_program_string(r->p, begin, (size_t)(assign - begin), &key, r->err));
    return rp_program_add_module_attr(
        r->p, rp_attr_parse(r->p, key, assign + 1, bytes.n - (size_t)(assign + 1 - begin)), r->err);
}

static enum rp_code read_module_field(struct rp_hlo_proto *r, const struct rp_proto_cursor *c,
                                      const struct rp_proto_item *it)
{
    uint64_t offset = rp_proto_offset(c, it->bytes.at);

    switch (RP_PROTO_KEY(it->number, it->wire)) {
    case KEY(RP_HLO_MODULE_NAME, BYTES):
        return rp_program_string(r->p, (const char *)it->bytes.at, it->bytes.n, &r->p->name,
                                 r->err);
    case KEY(RP_HLO_MODULE_COMPUTATIONS, BYTES):
        return read_computation(r, it->bytes, offset);
    case KEY(RP_HLO_MODULE_INPUT_OUTPUT_ALIAS, BYTES):
        return rp_hlo_proto_add_module_aliases(r, rp_proto_enter(c, it));
    case KEY(RP_HLO_MODULE_STACK_FRAME_INDEX, BYTES):
        return rp_hlo_proto_frames(r, it->bytes, offset);
    case KEY(RP_HLO_OWN_FIELD, BYTES):
        return add_own_module_text(r, it->bytes);
    case KEY(RP_HLO_MODULE_ENTRY_COMPUTATION_NAME,
             BYTES): /* name, id and shape of the entry, which its computation has as well */
    case KEY(RP_HLO_MODULE_HOST_PROGRAM_SHAPE, BYTES):
    case KEY(RP_HLO_MODULE_ID, VARINT):
    case KEY(RP_HLO_MODULE_ENTRY_COMPUTATION_ID, VARINT):
        return RP_OK;
    case KEY(RP_HLO_MODULE_FRONTEND_ATTRIBUTES, BYTES):
        return rp_hlo_proto_add_module_map(r, rp_proto_enter(c, it));
    case KEY(RP_HLO_MODULE_SCHEDULE, BYTES):
        return rp_program_add_module_attr(r->p, rp_attr_flag(RP_ATTR_IS_SCHEDULED, true), r->err);
    case KEY(RP_HLO_MODULE_SPMD_OUTPUT_SHARDING, BYTES):
        RP_TRY(rp_hlo_proto_placement(r, it->bytes));
        /* fallthrough */
    default:
        return rp_program_add_module_attr(r->p,
                                          rp_attr_bytes(RP_ATTR_PROTO, RP_VALUE_WIRE,
                                                        (const char *)it->begin,
                                                        (size_t)(c->at - it->begin)),
                                          r->err);
    }
}

static enum rp_code read_module(struct rp_hlo_proto *r, struct rp_bytes bytes, uint64_t offset)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, offset, r->limits.depth);
    struct rp_proto_item it;
    uint64_t entry = UINT64_MAX;

    RP_TRY(number_computations(r, bytes, offset));
    while (rp_proto_next(&c, &it)) {
        if (RP_PROTO_KEY(it.number, it.wire) == KEY(RP_HLO_MODULE_ENTRY_COMPUTATION_ID, VARINT))
            entry = it.value;
        RP_TRY(read_module_field(r, &c, &it));
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    if (entry != UINT64_MAX)
        r->p->entry = rp_map_get(&r->computation_of, entry);
    if (!r->p->computations.n)
        return rp_err_set(r->err, RP_FORMAT, "a module without computations");
    RP_TRY(rp_program_finish(r->p, r->err));
    return rp_program_validate(r->p, r->err);
}

/* ---- recognising ---- */

/* The content of a field that may be truncated. */
struct field_peek {
    uint32_t number;
    bool whole;
    struct rp_bytes bytes;
    const uint8_t *behind;
};

static bool field_peek_at(struct rp_bytes from, struct field_peek *out)
{
    const uint8_t *at = from.at, *end = from.at + from.n;
    uint64_t tag, n;

    at = at < end ? rp_proto_varint_at(at, end, &tag) : NULL;
    if (!at || (tag & 7) != RP_WIRE_BYTES)
        return false;
    at = at < end ? rp_proto_varint_at(at, end, &n) : NULL;
    if (!at)
        return false;
    out->number = (uint32_t)(tag >> 3);
    out->whole = n <= (uint64_t)(end - at);
    out->bytes = (struct rp_bytes){at, out->whole ? (size_t)n : (size_t)(end - at)};
    out->behind = at + out->bytes.n;
    return true;
}

/* name = 1, opcode = 2, both words; the opcode in lower case */
static bool is_instruction(struct rp_bytes s)
{
    struct field_peek name, opcode;

    if (!field_peek_at(s, &name) || name.number != RP_HLO_INSTRUCTION_NAME ||
        !is_printable(name.bytes) || !name.whole)
        return false;
    if (!field_peek_at((struct rp_bytes){name.behind, (size_t)(s.at + s.n - name.behind)}, &opcode))
        return false;
    return opcode.number == RP_HLO_INSTRUCTION_OPCODE && is_printable(opcode.bytes) &&
           opcode.bytes.at[0] >= 'a' && opcode.bytes.at[0] <= 'z';
}

/* name = 1, maybe the entry's name = 2, then computations = 3 */
static bool is_module(struct rp_bytes s)
{
    struct field_peek field;

    for (int i = 0; i < 3; i++) {
        if (!field_peek_at(s, &field))
            return false;
        if (field.number == RP_HLO_MODULE_COMPUTATIONS) {
            /* name = 1, then instructions = 2 */
            struct field_peek name, first;
            if (!field_peek_at(field.bytes, &name) || name.number != RP_HLO_COMPUTATION_NAME ||
                !is_printable(name.bytes) || !name.whole)
                return false;
            return field_peek_at(
                       (struct rp_bytes){name.behind,
                                         (size_t)(field.bytes.at + field.bytes.n - name.behind)},
                       &first) &&
                   first.number == RP_HLO_COMPUTATION_INSTRUCTIONS && is_instruction(first.bytes);
        }
        if (field.number > RP_HLO_MODULE_ENTRY_COMPUTATION_NAME || !is_printable(field.bytes) ||
            !field.whole)
            return false;
        s = (struct rp_bytes){field.behind, (size_t)(s.at + s.n - field.behind)};
    }
    return false;
}

/* Finds the module inside the bytes, see the table above; false if there is none. */
static bool find_module(struct rp_bytes s, struct rp_bytes *module)
{
    const uint8_t *end = s.at + s.n, *behind;
    struct field_peek field;
    uint64_t meta;

    *module = s;
    if (is_module(s))
        return true;
    for (int level = 0; level < 2; level++) {
        if (!field_peek_at(*module, &field) || field.number != RP_HLO_PROTO_HLO_MODULE)
            break;
        *module = field.bytes;
        if (is_module(*module))
            return true;
    }
    behind = s.n ? rp_proto_varint_at(s.at, end, &meta) : NULL;
    if (!behind || !field_peek_at((struct rp_bytes){behind, (size_t)(end - behind)}, &field) ||
        field.number != RP_HLO_PROTO_HLO_MODULE)
        return false;
    *module = field.bytes;
    return is_module(*module);
}

bool rp_hlo_proto_module(const void *bytes, size_t n, struct rp_bytes *module)
{
    return find_module((struct rp_bytes){bytes, n}, module);
}

static enum rp_sniff hlo_proto_sniff(const uint8_t *head, size_t n, const char *file)
{
    struct rp_bytes module;

    (void)file;
    return find_module((struct rp_bytes){head, n}, &module) ? RP_SNIFF_CERTAIN : RP_SNIFF_NO;
}

/* ---- the whole ---- */

static enum rp_code read_file_module(struct rp_program *p, struct rp_bytes bytes,
                                     const struct rp_limits *limits, struct rp_err *err)
{
    struct rp_hlo_proto r = {.p = p, .limits = limits ? *limits : RP_LIMITS_DEFAULT, .err = err};
    struct rp_bytes module;

    if (!find_module(bytes, &module))
        return rp_err_set(err, RP_FORMAT, "no HLO module found");
    rp_hlo_index_fields(&r);
    enum rp_code code = rp_strtab_init(&r.shape_bytes, err);
    if (code == RP_OK)
        code = rp_vec_push(&r.shape_of, 0, err);
    if (code == RP_OK)
        code = read_module(&r, module, (uint64_t)(module.at - bytes.at));
    RP_EACH(rp_vec_release, &r.dense, &r.id_of);
    RP_EACH(rp_map_release, &r.op_of, &r.computation_of, &r.sequence_of);
    RP_EACH(rp_vec_release, &r.sequences, &r.found, &r.ordered, &r.computation_ids);
    rp_strtab_release(&r.shape_bytes);
    RP_EACH(rp_vec_release, &r.shape_of, &r.text, &r.ints, &r.ids, &r.texts, &r.aliases,
            &r.payloads);
    return code;
}

enum rp_code rp_hlo_proto_fill(struct rp_program *p, const void *bytes, size_t n,
                               const struct rp_limits *limits, struct rp_err *err)
{
    return read_file_module(p, (struct rp_bytes){bytes, n}, limits, err);
}

enum rp_code rp_hlo_proto_parse(const void *bytes, size_t n, const struct rp_limits *limits,
                                struct rp_program **out, struct rp_err *err)
{
    struct rp_program *p;

    *out = NULL;
    RP_TRY(rp_program_new("hlo", &p, err));
    enum rp_code code = read_file_module(p, (struct rp_bytes){bytes, n}, limits, err);
    if (code == RP_OK)
        *out = p;
    else
        rp_program_free(p);
    return code;
}

static enum rp_code hlo_proto_read(struct rp_input *in, const struct rp_read_options *options,
                                   struct rp_import *to, struct rp_err *err)
{
    const uint8_t *bytes;
    size_t n;

    RP_TRY(rp_input_slurp(in, &bytes, &n, err));
    RP_TRY(rp_program_new("hlo", &to->program, err));
    to->borrows_input = true;
    to->content_bytes = n;
    return read_file_module(to->program, (struct rp_bytes){bytes, n}, options->limits, err);
}

const struct rp_format rp_format_hlo_proto = {
    .name = "hlo-proto",
    .summary = "HLO module or snapshot as a protobuf",
    .files = "*.pb",
    .written_by = "XLA: JAX, TensorFlow, PyTorch/XLA",
    .kind = RP_FORMAT_KIND_PROGRAM,
    .sniff = hlo_proto_sniff,
    .read = hlo_proto_read,
};
