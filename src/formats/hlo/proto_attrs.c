/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads attributes from the fields of HloInstructionProto. Defaults that XLA's printer omits are
 * omitted, and values that it prints although the protobuf omits them are added, so that a protobuf
 * and a text dump of one module give the same program. Other fields are kept verbatim
 * (RP_ATTR_PROTO) and written back by the writer.
 */
#include "formats/hlo/proto.h"
#include "program/opcodes.h"

#include "abi/proto/hlo.h"
#include "formats/hlo/comparison.h"

#include <string.h>

#define KEY(number, wire) RP_PROTO_KEY(number, RP_WIRE_##wire)

enum rp_code rp_hlo_proto_add(struct rp_hlo_proto *r, struct rp_attr attr)
{
    return rp_program_add_attr(r->p, attr, r->err);
}

static struct rp_attr bytes_attr(uint32_t key, enum rp_value_type type, struct rp_bytes bytes)
{
    return rp_attr_bytes(key, type, (const char *)bytes.at, bytes.n);
}

/* ---- one field, one attribute ---- */

static enum rp_code add_word(struct rp_hlo_proto *r, uint32_t key, const struct rp_proto_item *it)
{
    if (it->wire == RP_WIRE_VARINT) {
        const char *word = rp_hlo_enum_word(key, false, it->value);
        return word ? rp_hlo_proto_add(r, rp_attr_word(key, word)) : RP_OK;
    }
    if (it->wire != RP_WIRE_BYTES || !it->bytes.n)
        return RP_OK;
    struct rp_attr attr = bytes_attr(key, RP_VALUE_WORD, it->bytes);
    return rp_hlo_comparison_attr(r->p, r->op, &attr) ? rp_hlo_proto_add(r, attr) : RP_OK;
}

static enum rp_code add_int(struct rp_hlo_proto *r, uint32_t key, int64_t value)
{
    unsigned flags = rp_attr_flags(key);

    if ((flags & (RP_ATTRF_ZERO | RP_ATTRF_ONE) && value == 0) ||
        (flags & RP_ATTRF_ONE && value == 1))
        return RP_OK;
    return rp_hlo_proto_add(r, rp_attr_int(key, value));
}

static enum rp_code add_ints(struct rp_hlo_proto *r, uint32_t key)
{
    struct rp_attr attr = rp_attr_ints(r->p, key, r->ints.at, r->ints.n);

    r->ints.n = 0;
    return rp_hlo_proto_add(r, attr);
}

/* ---- messages that hold several attributes ---- */

/* Adds the dimensions of products, gathers and scatters: each is a list or a number. */
static enum rp_code add_dims_message(struct rp_hlo_proto *r, struct rp_proto_cursor message,
                                     const uint16_t *keys)
{
    for (; *keys; keys++) {
        struct rp_proto_cursor c = message;
        bool single = *keys == RP_ATTR_INDEX_VECTOR_DIM, any = false;
        uint32_t inner = rp_hlo_attr_field(*keys).inner;
        struct rp_proto_item it;
        int64_t number = 0;

        while (rp_proto_next(&c, &it)) {
            if (it.number != inner)
                continue;
            any = true;
            number = (int64_t)it.value;
            if (!single)
                RP_TRY(rp_hlo_proto_collect(r, rp_proto_list(&c, &it)));
        }
        RP_TRY(rp_proto_finish(&c, r->err));
        if (single)
            RP_TRY(rp_hlo_proto_add(r, rp_attr_int(*keys, number)));
        else if (any)
            RP_TRY(add_ints(r, *keys));
    }
    return RP_OK;
}

static const uint16_t dot_keys[] = {RP_ATTR_LHS_BATCH_DIMS, RP_ATTR_LHS_CONTRACTING_DIMS,
                                    RP_ATTR_RHS_BATCH_DIMS, RP_ATTR_RHS_CONTRACTING_DIMS, 0};
static const uint16_t ragged_keys[] = {RP_ATTR_LHS_RAGGED_DIMS, RP_ATTR_RHS_GROUP_DIMS, 0};
static const uint16_t gather_keys[] = {RP_ATTR_OFFSET_DIMS,
                                       RP_ATTR_COLLAPSED_SLICE_DIMS,
                                       RP_ATTR_START_INDEX_MAP,
                                       RP_ATTR_OPERAND_BATCHING_DIMS,
                                       RP_ATTR_START_INDICES_BATCHING_DIMS,
                                       RP_ATTR_INDEX_VECTOR_DIM,
                                       0};
/* index_vector_dim has one number in both messages */
_Static_assert((int)RP_HLO_GATHER_DIMS_INDEX_VECTOR_DIM ==
                   (int)RP_HLO_SCATTER_DIMS_INDEX_VECTOR_DIM,
               "index_vector_dim");
static const uint16_t scatter_keys[] = {RP_ATTR_UPDATE_WINDOW_DIMS,
                                        RP_ATTR_INSERTED_WINDOW_DIMS,
                                        RP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS,
                                        RP_ATTR_INPUT_BATCHING_DIMS,
                                        RP_ATTR_SCATTER_INDICES_BATCHING_DIMS,
                                        RP_ATTR_INDEX_VECTOR_DIM,
                                        0};

const uint16_t *rp_hlo_dims_keys(uint32_t field)
{
    switch (field) {
    case RP_HLO_INSTRUCTION_DOT_DIMENSION_NUMBERS:
        return dot_keys;
    case RP_HLO_INSTRUCTION_RAGGED_DOT_DIMENSION_NUMBERS:
        return ragged_keys;
    case RP_HLO_INSTRUCTION_GATHER_DIMENSION_NUMBERS:
        return gather_keys;
    case RP_HLO_INSTRUCTION_SCATTER_DIMENSION_NUMBERS:
        return scatter_keys;
    default:
        return NULL;
    }
}

static enum rp_code add_ragged_dims(struct rp_hlo_proto *r, struct rp_proto_cursor message)
{
    struct rp_proto_cursor c = message;
    struct rp_proto_item it;

    while (rp_proto_next_bytes(&c, RP_HLO_RAGGED_DOT_DIMS_DOT_DIMENSION_NUMBERS, &it))
        RP_TRY(add_dims_message(r, rp_proto_enter(&c, &it), dot_keys));
    RP_TRY(rp_proto_finish(&c, r->err));
    return add_dims_message(r, message, ragged_keys);
}

static enum rp_code add_precision(struct rp_hlo_proto *r, struct rp_proto_cursor c)
{
    struct rp_proto_item it;
    const char *algorithm = NULL;
    bool special = false;

    r->ints.n = 0;
    while (rp_proto_next(&c, &it)) {
        if (RP_PROTO_KEY(it.number, it.wire) == KEY(RP_HLO_PRECISION_ALGORITHM, VARINT))
            algorithm = rp_hlo_enum_word(RP_ATTR_ALGORITHM, true, it.value);
        else if (RP_PROTO_KEY(it.number, it.wire) == KEY(RP_HLO_PRECISION_OPERAND_PRECISION, BYTES))
            RP_TRY(rp_hlo_proto_collect(r, rp_proto_enter(&c, &it)));
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    size_t n = r->ints.n;
    r->ints.n = 0;
    for (size_t i = 0; i < n; i++) { /* an unknown value is the default */
        if (!rp_hlo_enum_word(RP_ATTR_OPERAND_PRECISION, false, (uint64_t)r->ints.at[i]))
            r->ints.at[i] = 0;
        special |= r->ints.at[i] != 0;
    }
    if (special) {
        struct rp_slice *words = RP_ARENA_NEW(&r->p->arena, struct rp_slice, n);
        for (size_t i = 0; words && i < n; i++) {
            const char *word =
                rp_hlo_enum_word(RP_ATTR_OPERAND_PRECISION, false, (uint64_t)r->ints.at[i]);

            words[i] = (struct rp_slice){word, (uint32_t)strlen(word), 0};
        }
        RP_TRY(rp_hlo_proto_add(r, (struct rp_attr){.texts = words,
                                                    .n = (uint32_t)n,
                                                    .key = RP_ATTR_OPERAND_PRECISION,
                                                    .type = RP_VALUE_WORDS}));
    }
    return algorithm ? rp_hlo_proto_add(r, rp_attr_word(RP_ATTR_ALGORITHM, algorithm)) : RP_OK;
}

static enum rp_code add_solve_options(struct rp_hlo_proto *r, struct rp_proto_cursor c,
                                      bool cholesky)
{
    static const uint16_t keys[] = {0, RP_ATTR_LEFT_SIDE, RP_ATTR_LOWER, RP_ATTR_UNIT_DIAGONAL};
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        const char *word = rp_hlo_enum_word(RP_ATTR_TRANSPOSE_A, false, it.value);

        if (it.wire != RP_WIRE_VARINT || !it.value)
            continue;
        if (it.number < (cholesky ? 2 : 4))
            RP_TRY(rp_hlo_proto_add(
                r, rp_attr_flag(cholesky ? RP_ATTR_LOWER : keys[it.number], true)));
        else if (it.number == RP_HLO_TRIANGULAR_SOLVE_TRANSPOSE_A && word)
            RP_TRY(rp_hlo_proto_add(r, rp_attr_word(RP_ATTR_TRANSPOSE_A, word)));
    }
    return rp_proto_finish(&c, r->err);
}

/* ---- texts ---- */

static enum rp_code add_map_entry(struct rp_hlo_proto *r, struct rp_proto_cursor c)
{
    struct rp_bytes key = {(const uint8_t *)"", 0}, value = key;

    RP_TRY(rp_proto_read(c,
                         (const struct rp_proto_slot[]){{RP_HLO_TEXT_ENTRY_KEY, .bytes = &key},
                                                        {RP_HLO_TEXT_ENTRY_VALUE, .bytes = &value},
                                                        {0}},
                         r->err));
    RP_TRY(rp_vec_push(&r->texts, ((struct rp_slice){(const char *)key.at, (uint32_t)key.n, 0}),
                       r->err));
    return rp_vec_push(&r->texts, ((struct rp_slice){(const char *)value.at, (uint32_t)value.n, 0}),
                       r->err);
}

static enum rp_code read_map(struct rp_hlo_proto *r, struct rp_proto_cursor c, struct rp_attr *out)
{
    struct rp_proto_item it;

    r->texts.n = 0;
    while (rp_proto_next_bytes(&c, RP_HLO_FRONTEND_ATTRIBUTES_MAP, &it))
        RP_TRY(add_map_entry(r, rp_proto_enter(&c, &it)));
    RP_TRY(rp_proto_finish(&c, r->err));
    struct rp_slice *kept = RP_ARENA_NEW(&r->p->arena, struct rp_slice, r->texts.n + 1);
    if (kept && r->texts.n)
        memcpy(kept, r->texts.at, r->texts.n * sizeof *kept);
    *out = (struct rp_attr){.texts = kept,
                            .n = (uint32_t)r->texts.n,
                            .key = RP_ATTR_FRONTEND_ATTRIBUTES,
                            .type = RP_VALUE_MAP};
    return RP_OK;
}

enum rp_code rp_hlo_proto_add_module_map(struct rp_hlo_proto *r, struct rp_proto_cursor c)
{
    struct rp_attr attr;

    RP_TRY(read_map(r, c, &attr));
    return attr.n ? rp_program_add_module_attr(r->p, attr, r->err) : RP_OK;
}

/* Adds a configuration from the message of payloads: the text is in it, or its number in the
   module. */
static enum rp_code add_payload(struct rp_hlo_proto *r, struct rp_proto_cursor c)
{
    struct rp_bytes config = {0};
    uint64_t id = UINT64_MAX;

    RP_TRY(rp_proto_read(c,
                         (const struct rp_proto_slot[]){{RP_HLO_PAYLOAD_VALUE, .bytes = &config},
                                                        {RP_HLO_PAYLOAD_ID, .u64 = &id},
                                                        {0}},
                         r->err));
    if (id < r->payloads.n)
        config = r->payloads.at[id];
    return config.n
               ? rp_hlo_proto_add(r, bytes_attr(RP_ATTR_BACKEND_CONFIG, RP_VALUE_CONFIG, config))
               : RP_OK;
}

/* Adds a "key=value" for which the writer had no field. */
static enum rp_code add_own_attr(struct rp_hlo_proto *r, struct rp_bytes bytes)
{
    const uint8_t *assign = bytes.n ? memchr(bytes.at, '=', bytes.n) : NULL;
    uint32_t key;

    for (const uint8_t *at = bytes.at; assign && at < assign; at++)
        if (*at <= ' ' || *at > '~')
            return RP_OK; /* without a word it was not written by us */
    if (!assign)
        return RP_OK;
    RP_TRY(
        rp_program_string(r->p, (const char *)bytes.at, (size_t)(assign - bytes.at), &key, r->err));
    return rp_hlo_proto_add(r, rp_attr_parse(r->p, key, (const char *)assign + 1,
                                             bytes.n - (size_t)(assign + 1 - bytes.at)));
}

static enum rp_code add_ids(struct rp_hlo_proto *r, uint32_t key, enum rp_value_type type)
{
    size_t n = r->ids.n;
    uint32_t *ids = n ? rp_arena_alloc(&r->p->arena, n * sizeof *ids, _Alignof(uint32_t)) : NULL;

    if (ids)
        memcpy(ids, r->ids.at, n * sizeof *ids);
    return rp_hlo_proto_add(
        r, (struct rp_attr){.ids = ids, .n = (uint32_t)n, .key = key, .type = (uint8_t)type});
}

static enum rp_code add_predecessors(struct rp_hlo_proto *r, struct rp_bytes ids)
{
    struct rp_proto_cursor c = rp_proto_cursor(ids.at, ids.n, 0, 1);
    uint64_t id;

    r->ids.n = 0;
    while (rp_proto_packed_varint(&c, &id)) {
        uint32_t op = rp_hlo_proto_op(r, id);

        if (op != RP_MAP_NONE)
            RP_TRY(rp_vec_push(&r->ids, op, r->err));
    }
    return r->ids.n ? add_ids(r, RP_ATTR_CONTROL_PREDECESSORS, RP_VALUE_OPS) : RP_OK;
}

/* Adds the layouts that a custom call requires of its operands: one field per shape. */
static enum rp_code add_layout_constraints(struct rp_hlo_proto *r, struct rp_proto_cursor c)
{
    struct rp_proto_item it;
    uint32_t shape;

    r->ids.n = 0;
    while (rp_proto_next_bytes(&c, RP_HLO_INSTRUCTION_OPERAND_SHAPES_WITH_LAYOUT, &it)) {
        RP_TRY(rp_hlo_proto_shape(r, it.bytes, rp_proto_offset(&c, it.bytes.at), 0, &shape));
        RP_TRY(rp_vec_push(&r->ids, shape, r->err));
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    return add_ids(r, RP_ATTR_OPERAND_LAYOUT_CONSTRAINTS, RP_VALUE_SHAPES);
}

/* ---- all fields ---- */

static enum rp_code add_message(struct rp_hlo_proto *r, struct rp_proto_cursor c,
                                const struct rp_proto_item *it, bool *known)
{
    *known = true;
    switch (it->number) {
    case RP_HLO_INSTRUCTION_WINDOW:
        return rp_hlo_proto_add_window(r, c);
    case RP_HLO_INSTRUCTION_CONVOLUTION_DIMENSION_NUMBERS:
        return rp_hlo_proto_add_conv_dims(r, c);
    case RP_HLO_INSTRUCTION_PADDING_CONFIG:
        return rp_hlo_proto_add_padding(r, c);
    case RP_HLO_INSTRUCTION_DOT_DIMENSION_NUMBERS:
    case RP_HLO_INSTRUCTION_GATHER_DIMENSION_NUMBERS:
    case RP_HLO_INSTRUCTION_SCATTER_DIMENSION_NUMBERS:
        return add_dims_message(r, c, rp_hlo_dims_keys(it->number));
    case RP_HLO_INSTRUCTION_RAGGED_DOT_DIMENSION_NUMBERS:
        return add_ragged_dims(r, c);
    case RP_HLO_INSTRUCTION_PRECISION_CONFIG:
        return add_precision(r, c);
    case RP_HLO_INSTRUCTION_TRIANGULAR_SOLVE_OPTIONS:
    case RP_HLO_INSTRUCTION_CHOLESKY_OPTIONS:
        return add_solve_options(r, c, it->number == RP_HLO_INSTRUCTION_CHOLESKY_OPTIONS);
    case RP_HLO_INSTRUCTION_FRONTEND_ATTRIBUTES: {
        struct rp_attr attr;
        RP_TRY(read_map(r, c, &attr));
        return attr.n ? rp_hlo_proto_add(r, attr) : RP_OK;
    }
    case RP_HLO_INSTRUCTION_COLLECTIVE_DEVICE_LIST:
        return rp_hlo_proto_add_groups(r, c, RP_HLO_DEVICE_LIST_REPLICA_GROUPS);
    case RP_HLO_INSTRUCTION_IOTA_COLLECTIVE_DEVICE_LIST:
        return rp_hlo_proto_add_iota_groups(r, c);
    case RP_HLO_INSTRUCTION_MESH_AXES_REPLICA_GROUP_LIST:
        return rp_hlo_proto_add_mesh_groups(r, c);
    case RP_HLO_INSTRUCTION_CONTROL_PREDECESSOR_IDS:
        return add_predecessors(r, it->bytes);
    case RP_HLO_INSTRUCTION_SHARDING:
        return rp_hlo_proto_add_sharding(r, it->bytes, known);
    case RP_HLO_INSTRUCTION_BACKEND_CONFIG_PAYLOAD:
        return add_payload(r, c);
    case RP_HLO_INSTRUCTION_SPARSITY_CONFIG: /* every convolution has one; most are empty */
        *known = !it->bytes.n;
        return RP_OK;
    case RP_HLO_OWN_FIELD:
        return add_own_attr(r, it->bytes);
    default:
        *known = false;
        return RP_OK;
    }
}

static enum rp_code add_field(struct rp_hlo_proto *r, const struct rp_proto_cursor *c,
                              const struct rp_proto_item *it, bool *known)
{
    uint32_t key = it->number < RP_HLO_PROTO_FIELDS ? r->key_of[it->number] : 0;
    bool bytes = it->wire == RP_WIRE_BYTES, number = it->wire == RP_WIRE_VARINT;

    *known = true;
    if (key == RP_ATTR_DIMENSIONS) {
        RP_TRY(rp_hlo_proto_collect(r, rp_proto_list(c, it)));
        if (r->p->code.at[r->op] == RP_OP_IOTA && r->ints.n == 1) {
            r->ints.n = 0;
            return rp_hlo_proto_add(r, rp_attr_int(RP_ATTR_IOTA_DIMENSION, r->ints.at[0]));
        }
        return add_ints(r, RP_ATTR_DIMENSIONS);
    }
    switch (rp_attr_type(key)) {
    case RP_VALUE_FLAG:
        return it->value ? rp_hlo_proto_add(r, rp_attr_flag(key, true)) : RP_OK;
    case RP_VALUE_INT:
        return number ? add_int(r, key, (int64_t)it->value) : RP_OK;
    case RP_VALUE_FLOAT:
        return it->value
                   ? rp_hlo_proto_add(r, rp_attr_float(key, (double)rp_proto_float(it->value)))
                   : RP_OK;
    case RP_VALUE_WORD:
        return add_word(r, key, it);
    case RP_VALUE_STRING:
    case RP_VALUE_CONFIG:
        return bytes && it->bytes.n
                   ? rp_hlo_proto_add(r, bytes_attr(key, rp_attr_type(key), it->bytes))
                   : RP_OK;
    case RP_VALUE_INTS:
        if (!bytes)
            return RP_OK;
        RP_TRY(rp_hlo_proto_collect(r, rp_proto_enter(c, it)));
        return add_ints(r, key);
    default:
        *known = false;
        return bytes ? add_message(r, rp_proto_enter(c, it), it, known) : RP_OK;
    }
}

/* Whether a field is not an attribute, or is repeated and read separately. */
static bool is_structural_field(uint32_t number)
{
    switch (number) {
    case RP_HLO_INSTRUCTION_NAME:
    case RP_HLO_INSTRUCTION_OPCODE:
    case RP_HLO_INSTRUCTION_SHAPE:
    case RP_HLO_INSTRUCTION_METADATA:
    case RP_HLO_INSTRUCTION_LITERAL:
    case RP_HLO_INSTRUCTION_PARAMETER_NUMBER:
    case RP_HLO_INSTRUCTION_TUPLE_INDEX:
    case RP_HLO_INSTRUCTION_ID:
    case RP_HLO_INSTRUCTION_OPERAND_IDS:
    case RP_HLO_INSTRUCTION_CALLED_COMPUTATION_IDS:
    case RP_HLO_INSTRUCTION_SLICE_DIMENSIONS:
    case RP_HLO_INSTRUCTION_REPLICA_GROUPS:
    case RP_HLO_INSTRUCTION_SOURCE_TARGET_PAIRS:
    case RP_HLO_INSTRUCTION_OUTPUT_OPERAND_ALIASING:
        return true;
    default:
        return false;
    }
}

/* Metadata fields that the model does not store, kept as a second metadata field: protobuf
   readers merge both. */
static enum rp_code keep_metadata_rest(struct rp_hlo_proto *r, struct rp_proto_cursor c)
{
    RP_SCOPED(rp_proto_writer_release) struct rp_proto_writer w = {0};
    struct rp_proto_item it;
    struct rp_bytes bytes;
    size_t begun = rp_proto_begin(&w, RP_HLO_INSTRUCTION_METADATA);

    while (rp_proto_next(&c, &it))
        if (!rp_hlo_proto_metadata_known(&it))
            rp_proto_add_bytes(&w, it.begin, (size_t)(c.at - it.begin));
    rp_proto_end(&w, begun);
    RP_TRY(rp_proto_written(&w, &bytes, r->err));
    RP_TRY(rp_proto_finish(&c, r->err));
    if (bytes.n > 2)
        RP_TRY(rp_hlo_proto_add(
            r,
            rp_attr_bytes(RP_ATTR_PROTO, RP_VALUE_WIRE,
                          rp_arena_copy(&r->p->arena, (const char *)bytes.at, bytes.n), bytes.n)));
    return RP_OK;
}

enum rp_code rp_hlo_proto_attrs(struct rp_hlo_proto *r, struct rp_bytes bytes, uint64_t offset)
{
    const struct rp_proto_cursor all = rp_proto_cursor(bytes.at, bytes.n, offset, r->limits.depth);
    struct rp_proto_cursor c = all;
    bool slices = false, groups = false, pairs = false, aliases = false, laid = false, known;
    bool custom = r->p->code.at[r->op] == RP_OP_CUSTOM_CALL;
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        slices |= it.number == RP_HLO_INSTRUCTION_SLICE_DIMENSIONS;
        groups |= it.number == RP_HLO_INSTRUCTION_REPLICA_GROUPS;
        pairs |= it.number == RP_HLO_INSTRUCTION_SOURCE_TARGET_PAIRS;
        aliases |= it.number == RP_HLO_INSTRUCTION_OUTPUT_OPERAND_ALIASING;
        if (r->metadata_rest && it.number == RP_HLO_INSTRUCTION_METADATA &&
            it.wire == RP_WIRE_BYTES)
            RP_TRY(keep_metadata_rest(r, rp_proto_enter(&c, &it)));
        laid |= custom && it.number == RP_HLO_INSTRUCTION_CONSTRAIN_LAYOUT && it.value;
        if (is_structural_field(it.number) ||
            (custom && (it.number == RP_HLO_INSTRUCTION_CONSTRAIN_LAYOUT ||
                        it.number == RP_HLO_INSTRUCTION_OPERAND_SHAPES_WITH_LAYOUT)))
            continue;
        RP_TRY(add_field(r, &c, &it, &known));
        if (!known)
            RP_TRY(rp_hlo_proto_add(r, rp_attr_bytes(RP_ATTR_PROTO, RP_VALUE_WIRE,
                                                     (const char *)it.begin,
                                                     (size_t)(c.at - it.begin))));
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    if (slices)
        RP_TRY(rp_hlo_proto_add_slices(r, all));
    if (groups && !rp_op_attr(r->p, r->op, RP_ATTR_REPLICA_GROUPS))
        RP_TRY(rp_hlo_proto_add_groups(r, all, RP_HLO_INSTRUCTION_REPLICA_GROUPS));
    if (pairs)
        RP_TRY(rp_hlo_proto_add_pairs(r, all));
    if (aliases)
        RP_TRY(rp_hlo_proto_add_aliases(r, all));
    return laid ? add_layout_constraints(r, all) : RP_OK;
}

/* ---- values that a protobuf omits because they are zero or empty ---- */

static const struct {
    uint16_t code, key;
    const char *word; /* word: otherwise it is 0, or an empty list */
} implicit[] = {
    {RP_OP_BATCH_NORM_GRAD, RP_ATTR_EPSILON, NULL},
    {RP_OP_BATCH_NORM_GRAD, RP_ATTR_FEATURE_INDEX, NULL},
    {RP_OP_BATCH_NORM_INFERENCE, RP_ATTR_EPSILON, NULL},
    {RP_OP_BATCH_NORM_INFERENCE, RP_ATTR_FEATURE_INDEX, NULL},
    {RP_OP_BATCH_NORM_TRAINING, RP_ATTR_EPSILON, NULL},
    {RP_OP_BATCH_NORM_TRAINING, RP_ATTR_FEATURE_INDEX, NULL},
    {RP_OP_BROADCAST, RP_ATTR_DIMENSIONS, NULL},
    {RP_OP_DOT, RP_ATTR_LHS_CONTRACTING_DIMS, NULL},
    {RP_OP_DOT, RP_ATTR_RHS_CONTRACTING_DIMS, NULL},
    {RP_OP_FFT, RP_ATTR_FFT_TYPE, "FFT"},
    {RP_OP_GATHER, RP_ATTR_COLLAPSED_SLICE_DIMS, NULL},
    {RP_OP_GATHER, RP_ATTR_OFFSET_DIMS, NULL},
    {RP_OP_GATHER, RP_ATTR_SLICE_SIZES, NULL},
    {RP_OP_GATHER, RP_ATTR_START_INDEX_MAP, NULL},
    {RP_OP_REDUCE, RP_ATTR_DIMENSIONS, NULL},
    {RP_OP_REDUCE_PRECISION, RP_ATTR_EXPONENT_BITS, NULL},
    {RP_OP_REDUCE_PRECISION, RP_ATTR_MANTISSA_BITS, NULL},
    {RP_OP_RNG_BIT_GENERATOR, RP_ATTR_ALGORITHM, "rng_default"},
    {RP_OP_SCAN, RP_ATTR_NUM_CARRIES, NULL},
    {RP_OP_SCATTER, RP_ATTR_INSERTED_WINDOW_DIMS, NULL},
    {RP_OP_SCATTER, RP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, NULL},
    {RP_OP_SCATTER, RP_ATTR_UPDATE_WINDOW_DIMS, NULL},
    {RP_OP_TOPK, RP_ATTR_K, NULL},
    {RP_OP_TOPK, RP_ATTR_LARGEST, NULL},
    {RP_OP_TRANSPOSE, RP_ATTR_DIMENSIONS, NULL},
};

/* Most operations have no implicit attributes. */
static const bool has_implicit[RP_OP_COUNT] = {
    [RP_OP_BATCH_NORM_GRAD] = true,
    [RP_OP_BATCH_NORM_INFERENCE] = true,
    [RP_OP_BATCH_NORM_TRAINING] = true,
    [RP_OP_BROADCAST] = true,
    [RP_OP_DOT] = true,
    [RP_OP_FFT] = true,
    [RP_OP_GATHER] = true,
    [RP_OP_REDUCE] = true,
    [RP_OP_REDUCE_PRECISION] = true,
    [RP_OP_RNG_BIT_GENERATOR] = true,
    [RP_OP_SCAN] = true,
    [RP_OP_SCATTER] = true,
    [RP_OP_TOPK] = true,
    [RP_OP_TRANSPOSE] = true,
};

enum rp_code rp_hlo_proto_implicit(struct rp_hlo_proto *r)
{
    uint16_t code = r->p->code.at[r->op];

    if (!has_implicit[code])
        return RP_OK;
    for (size_t i = 0; i < sizeof implicit / sizeof *implicit; i++) {
        struct rp_attr attr = {.key = implicit[i].key,
                               .type = (uint8_t)rp_attr_type(implicit[i].key)};

        if (implicit[i].code != code || rp_op_attr(r->p, r->op, implicit[i].key))
            continue;
        if (implicit[i].word)
            attr = rp_attr_word(implicit[i].key, implicit[i].word);
        RP_TRY(rp_hlo_proto_add(r, attr));
    }
    return RP_OK;
}
