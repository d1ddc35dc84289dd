/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields of HloInstructionProto into the words that XLA's own printer has for them, leaving out
 * what it leaves out: so that a protobuf and a text dump of one module come out the same. Fields
 * without words are kept as they are (RP_ATTR_PROTO) and written back by the writer.
 */
#include "formats/hlo/proto.h"

#include <string.h>

#define KEY(number, wire) RP_PROTO_KEY(number, RP_WIRE_##wire)

/* ---- one field, one attribute ---- */

static enum rp_code simple(struct hlo_proto *r, const struct hlo_codec_row *row,
                           const struct rp_proto_item *it)
{
    switch (row->codec) {
    case HLO_INT:
    case HLO_INT0:
    case HLO_INT1:
        if (it->wire != RP_WIRE_VARINT || (it->value == 0 && row->codec != HLO_INT0) ||
            (row->codec == HLO_INT1 && it->value == 1))
            return RP_OK;
        RP_TRY(hlo_put_int(r, (int64_t)it->value));
        break;
    case HLO_BOOL:
        if (!it->value)
            return RP_OK;
        RP_TRY(hlo_put(r, "true", 4));
        break;
    case HLO_WORD:
        if (!it->bytes.n)
            return RP_OK;
        RP_TRY(hlo_put(r, (const char *)it->bytes.at, it->bytes.n));
        break;
    case HLO_QUOTED:
        if (!it->bytes.n)
            return RP_OK;
        RP_TRY(hlo_put_quoted(r, it->bytes));
        break;
    case HLO_INTS:
        if (it->wire != RP_WIRE_BYTES)
            return RP_OK;
        RP_TRY(hlo_put(r, "{", 1));
        RP_TRY(hlo_put_ints(r, it->bytes, ","));
        RP_TRY(hlo_put(r, "}", 1));
        break;
    case HLO_FLOAT:
        if (!it->value)
            return RP_OK;
        RP_TRY(hlo_putf(r, "%g", (double)rp_proto_float(it->value)));
        break;
    default:
        return RP_OK;
    }
    return hlo_put_attr(r, row->key, false);
}

/* What a comparison of these operands is where nothing is said. */
static bool default_comparison(const struct hlo_proto *r, struct rp_bytes type)
{
    struct rp_ids operands = rp_op_operands(r->p, r->op);
    unsigned elem = operands.n ? r->p->shapes.at[r->p->shape.at[operands.at[0]]].elem : 0;
    const char *name = rp_elem_name(elem), *word = "FLOAT";

    if (name && (name[0] == 's'))
        word = "SIGNED";
    else if (name && (name[0] == 'u' || name[0] == 'p'))
        word = "UNSIGNED";
    return type.n == strlen(word) && memcmp(type.at, word, type.n) == 0;
}

/* Floats are compared in part, everything else in total. */
static bool default_order(const struct hlo_proto *r, struct rp_bytes order)
{
    static const struct rp_bytes usual = {(const uint8_t *)"FLOAT", 5};
    const char *word = default_comparison(r, usual) ? "PARTIAL" : "TOTAL";

    return order.n == strlen(word) && memcmp(order.at, word, order.n) == 0;
}

/* ---- messages ---- */

static enum rp_code dims_group(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                               const struct rp_proto_item *item)
{
    size_t n;
    const struct hlo_group_row *rows = hlo_group_rows(&n);

    for (size_t i = 0; i < n; i++) {
        struct rp_proto_cursor c = rp_proto_enter(outer, item);
        struct rp_proto_item it;
        uint64_t single = 0;
        bool first = true;

        if (rows[i].field != item->number)
            continue;
        while (rp_proto_next(&c, &it)) {
            if (it.number != rows[i].inner)
                continue;
            if (rows[i].single) {
                single = it.value;
                continue;
            }
            RP_TRY(hlo_put_word(r, first ? "{" : ","));
            first = false;
            if (it.wire == RP_WIRE_BYTES)
                RP_TRY(hlo_put_ints(r, it.bytes, ","));
            else
                RP_TRY(hlo_put_int(r, (int64_t)it.value));
        }
        RP_TRY(rp_proto_finish(&c, r->err));
        if (rows[i].single)
            RP_TRY(hlo_put_int(r, (int64_t)single));
        else if (first)
            continue;
        else
            RP_TRY(hlo_put(r, "}", 1));
        RP_TRY(hlo_put_attr(r, rows[i].key, false));
    }
    return RP_OK;
}

static enum rp_code precision(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                              const struct rp_proto_item *item)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item), list;
    struct rp_proto_item it;
    uint64_t v, algorithm = 0;
    bool first = true, special = false;

    while (rp_proto_next(&c, &it)) {
        if (it.number == 2 && it.wire == RP_WIRE_VARINT)
            algorithm = it.value;
        if (RP_PROTO_KEY(it.number, it.wire) != KEY(1, BYTES))
            continue;
        list = rp_proto_enter(&c, &it);
        while (rp_proto_packed_varint(&list, &v)) {
            const char *word = hlo_enum_word(RP_ATTR_OPERAND_PRECISION, false, v);

            special |= v != 0;
            RP_TRY(hlo_putf(r, "%s%s", first ? "{" : ",", word ? word : "?"));
            first = false;
        }
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    if (special) {
        RP_TRY(hlo_put(r, "}", 1));
        RP_TRY(hlo_put_attr(r, RP_ATTR_OPERAND_PRECISION, false));
    }
    r->text.n = 0;
    if (!hlo_enum_word(RP_ATTR_ALGORITHM, true, algorithm))
        return RP_OK;
    RP_TRY(hlo_putf(r, "%s", hlo_enum_word(RP_ATTR_ALGORITHM, true, algorithm)));
    return hlo_put_attr(r, RP_ATTR_ALGORITHM, false);
}

/* "{0,1}" of one message with a list in field 1; behind others a comma. */
static enum rp_code id_list(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                            const struct rp_proto_item *item)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_proto_item it;
    bool first = true;

    RP_TRY(hlo_put_word(r, r->text.n > 1 ? ",{" : "{"));
    while (rp_proto_next(&c, &it)) {
        if (it.number != 1)
            continue;
        if (it.wire == RP_WIRE_BYTES)
            RP_TRY(hlo_put_ints(r, it.bytes, ","));
        else
            RP_TRY(hlo_putf(r, "%s%lld", first ? "" : ",", (long long)it.value));
        first = false;
    }
    RP_TRY(hlo_put(r, "}", 1));
    return rp_proto_finish(&c, r->err);
}

static enum rp_code device_list(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                                const struct rp_proto_item *item)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_proto_item it;

    RP_TRY(hlo_put(r, "{", 1));
    while (rp_proto_next(&c, &it))
        if (RP_PROTO_KEY(it.number, it.wire) == KEY(1, BYTES))
            RP_TRY(id_list(r, &c, &it));
    RP_TRY(hlo_put(r, "}", 1));
    RP_TRY(rp_proto_finish(&c, r->err));
    return hlo_put_attr(r, RP_ATTR_REPLICA_GROUPS, false);
}

/* "[2,4]<=[4,2]T(1,0)" */
static enum rp_code iota_list(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                              const struct rp_proto_item *item)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_bytes shape = {0}, order = {0};
    uint64_t groups = 0, size = 0;
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        if (it.number == 1)
            groups = it.value;
        else if (it.number == 2)
            size = it.value;
        else if (it.number == 3)
            shape = it.bytes;
        else if (it.number == 4)
            order = it.bytes;
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    RP_TRY(hlo_putf(r, "[%llu,%llu]<=[", (unsigned long long)groups, (unsigned long long)size));
    RP_TRY(hlo_put_ints(r, shape, ","));
    RP_TRY(hlo_put(r, "]", 1));
    if (rp_proto_count_varints(order) > 1) {
        RP_TRY(hlo_put(r, "T(", 2));
        RP_TRY(hlo_put_ints(r, order, ","));
        RP_TRY(hlo_put(r, ")", 1));
    }
    return hlo_put_attr(r, RP_ATTR_REPLICA_GROUPS, false);
}

static enum rp_code solve_options(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                                  const struct rp_proto_item *item)
{
    static const uint16_t keys[] = {0, RP_ATTR_LEFT_SIDE, RP_ATTR_LOWER, RP_ATTR_UNIT_DIAGONAL};
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        bool cholesky = item->number == 62;
        const char *word = hlo_enum_word(RP_ATTR_TRANSPOSE_A, false, it.value);

        if (it.wire != RP_WIRE_VARINT || !it.value)
            continue;
        if (it.number < (cholesky ? 2 : 4)) {
            RP_TRY(hlo_put(r, "true", 4));
            RP_TRY(hlo_put_attr(r, cholesky ? RP_ATTR_LOWER : keys[it.number], false));
        } else if (it.number == 4 && word) {
            RP_TRY(hlo_put_word(r, word));
            RP_TRY(hlo_put_attr(r, RP_ATTR_TRANSPOSE_A, false));
        }
    }
    return rp_proto_finish(&c, r->err);
}

/* "{0}: (1, {})" */
static enum rp_code alias_entry(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                                const struct rp_proto_item *item)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_bytes output = {0}, operand = {0};
    uint64_t index = 0;
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        if (it.number == 1)
            output = it.bytes;
        else if (it.number == 2)
            index = it.value;
        else if (it.number == 3)
            operand = it.bytes;
    }
    RP_TRY(hlo_put_word(r, r->text.n ? ", {" : "{{"));
    RP_TRY(hlo_put_ints(r, output, ","));
    RP_TRY(hlo_putf(r, "}: (%llu, {", (unsigned long long)index));
    RP_TRY(hlo_put_ints(r, operand, ","));
    RP_TRY(hlo_put(r, "})", 2));
    return rp_proto_finish(&c, r->err);
}

/* JSON stands in the text as it is, anything else in quotes. */
static enum rp_code backend_config(struct hlo_proto *r, struct rp_bytes bytes)
{
    if (!bytes.n)
        return RP_OK;
    if (bytes.at[0] == '{' && bytes.at[bytes.n - 1] == '}')
        RP_TRY(hlo_put(r, (const char *)bytes.at, bytes.n));
    else
        RP_TRY(hlo_put_quoted(r, bytes));
    return hlo_put_attr(r, RP_ATTR_BACKEND_CONFIG, false);
}

static enum rp_code frontend_entry(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                                   const struct rp_proto_item *item)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_bytes key = {0}, value = {0};
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        if (it.number == 1)
            key = it.bytes;
        else if (it.number == 2)
            value = it.bytes;
    }
    RP_TRY(hlo_put_word(r, r->text.n ? "," : "{"));
    RP_TRY(hlo_put(r, (const char *)key.at, key.n));
    RP_TRY(hlo_put(r, "=", 1));
    RP_TRY(hlo_put_quoted(r, value));
    return rp_proto_finish(&c, r->err);
}

static enum rp_code frontend(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                             const struct rp_proto_item *item)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it))
        if (RP_PROTO_KEY(it.number, it.wire) == KEY(1, BYTES))
            RP_TRY(frontend_entry(r, &c, &it));
    RP_TRY(rp_proto_finish(&c, r->err));
    if (!r->text.n)
        return RP_OK;
    RP_TRY(hlo_put(r, "}", 1));
    return hlo_put_attr(r, RP_ATTR_FRONTEND_ATTRIBUTES, false);
}

/* ---- lists that are one field an element ---- */

/* All elements of one repeated field, in one attribute. */
static enum rp_code repeated(struct hlo_proto *r, struct rp_bytes bytes, uint64_t offset,
                             uint32_t number, uint32_t key)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, offset, r->limits.depth);
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        if (it.number != number || it.wire != RP_WIRE_BYTES)
            continue;
        if (number == 74) {
            RP_TRY(alias_entry(r, &c, &it));
        } else if (number == 49) {
            RP_TRY(hlo_put_word(r, r->text.n ? "" : "{"));
            RP_TRY(id_list(r, &c, &it));
        } else {
            int64_t v[4];

            RP_TRY(hlo_proto_triple(r, &c, &it, v));
            RP_TRY(hlo_putf(r, "%s{%lld,%lld}", r->text.n ? "," : "{", (long long)v[1],
                            (long long)v[2]));
        }
    }
    RP_TRY(hlo_put(r, "}", 1));
    return hlo_put_attr(r, key, false);
}

static enum rp_code dimensions(struct hlo_proto *r, const struct rp_proto_item *it)
{
    bool iota = r->p->code.at[r->op] == RP_OP_IOTA;

    RP_TRY(hlo_put_word(r, iota ? "" : "{"));
    if (it->wire == RP_WIRE_BYTES)
        RP_TRY(hlo_put_ints(r, it->bytes, ","));
    else
        RP_TRY(hlo_put_int(r, (int64_t)it->value));
    RP_TRY(hlo_put_word(r, iota ? "" : "}"));
    return hlo_put_attr(r, iota ? RP_ATTR_IOTA_DIMENSION : RP_ATTR_DIMENSIONS, false);
}

static enum rp_code enum_field(struct hlo_proto *r, uint32_t key, uint64_t value)
{
    const char *word = hlo_enum_word(key, false, value);

    if (!word)
        return RP_OK;
    RP_TRY(hlo_put_word(r, word));
    return hlo_put_attr(r, key, false);
}

/* "key=value" that the writer had no field for. */
static enum rp_code own_text(struct hlo_proto *r, struct rp_bytes bytes)
{
    const uint8_t *assign = bytes.n ? memchr(bytes.at, '=', bytes.n) : NULL;
    uint32_t key;

    for (const uint8_t *at = bytes.at; assign && at < assign; at++)
        if (*at <= ' ' || *at > '~')
            return RP_OK; /* no word: not written by us */
    if (!assign)
        return RP_OK;
    RP_TRY(
        rp_program_string(r->p, (const char *)bytes.at, (size_t)(assign - bytes.at), &key, r->err));
    return rp_program_add_attr(r->p, key, (const char *)assign + 1,
                               bytes.n - (size_t)(assign + 1 - bytes.at), r->err);
}

/* Fields that hold an enum as it is. */
static uint32_t enum_key(uint32_t number)
{
    switch (number) {
    case 23:
        return RP_ATTR_DISTRIBUTION;
    case 31:
        return RP_ATTR_FFT_TYPE;
    case 70:
        return RP_ATTR_ALGORITHM;
    case 75:
        return RP_ATTR_PADDING_TYPE;
    case 76:
        return RP_ATTR_SCHEDULE;
    case 77:
        return RP_ATTR_API_VERSION;
    default:
        return 0;
    }
}

/* "{%a, %b}" */
static enum rp_code control(struct hlo_proto *r, struct rp_bytes ids)
{
    struct rp_proto_cursor c = rp_proto_cursor(ids.at, ids.n, 0, 1);
    uint64_t id;

    while (rp_proto_packed_varint(&c, &id)) {
        uint32_t op = hlo_proto_op(r, id);
        const char *name;

        if (op == RP_MAP_NONE)
            continue;
        name = rp_program_text(r->p, r->p->op_name.at[op]);
        RP_TRY(hlo_putf(r, r->text.n ? ", %%" : "{%%"));
        RP_TRY(hlo_put(r, name, strlen(name)));
    }
    if (!r->text.n)
        return RP_OK;
    RP_TRY(hlo_put(r, "}", 1));
    return hlo_put_attr(r, RP_ATTR_CONTROL_PREDECESSORS, false);
}

static enum rp_code message_field(struct hlo_proto *r, const struct rp_proto_cursor *c,
                                  const struct rp_proto_item *it, bool *known)
{
    *known = true;
    switch (it->number) {
    case 15:
        return hlo_proto_window(r, c, it);
    case 16:
        return hlo_proto_conv_dims(r, c, it);
    case 21:
        return hlo_proto_padding(r, c, it);
    case 30:
    case 33:
    case 48:
        return dims_group(r, c, it);
    case 51:
        return precision(r, c, it);
    case 59:
    case 62:
        return solve_options(r, c, it);
    case 68:
        return frontend(r, c, it);
    case 87:
        return device_list(r, c, it);
    case 92:
        return iota_list(r, c, it);
    case 93:
        return hlo_proto_mesh_groups(r, c, it);
    case 37:
        return control(r, it->bytes);
    case 40:
        return hlo_proto_sharding(r, it->bytes, known);
    case 43:
        return backend_config(r, it->bytes);
    case HLO_FIELD_TEXT:
        return own_text(r, it->bytes);
    default:
        *known = false;
        return RP_OK;
    }
}

static enum rp_code attr_field(struct hlo_proto *r, const struct rp_proto_cursor *c,
                               const struct rp_proto_item *it, bool *known)
{
    const struct hlo_codec_row *row = hlo_codec_of_field(it->number);

    *known = true;
    if (row) {
        if ((row->key == RP_ATTR_TYPE && default_comparison(r, it->bytes)) ||
            (row->key == RP_ATTR_ORDER && default_order(r, it->bytes)))
            return RP_OK;
        return simple(r, row, it);
    }
    if (enum_key(it->number) && it->wire == RP_WIRE_VARINT)
        return enum_field(r, enum_key(it->number), it->value);
    if (it->number == 14)
        return dimensions(r, it);
    *known = false;
    return it->wire == RP_WIRE_BYTES ? message_field(r, c, it, known) : RP_OK;
}

/* Fields that the instruction itself is made of, and repeated ones. */
static bool is_structure(uint32_t number)
{
    switch (number) {
    case 1:
    case 2:
    case 3:
    case 7:
    case 8:
    case 9:
    case 13:
    case 35:
    case 36:
    case 38:
    case 17:
    case 49:
    case 52:
    case 74:
        return true;
    default:
        return false;
    }
}

/* Fields of the metadata that the model has no place for, as a second metadata field: who reads
   the message merges both. */
static enum rp_code metadata_rest(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                                  const struct rp_proto_item *item)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_proto_writer w = {0};
    struct rp_proto_item it;
    struct rp_bytes bytes;
    size_t begun = rp_proto_begin(&w, 7);
    enum rp_code code;

    while (rp_proto_next(&c, &it))
        if (!hlo_proto_metadata_known(&it))
            rp_proto_add_bytes(&w, it.begin, (size_t)(c.at - it.begin));
    rp_proto_end(&w, begun);
    code = rp_proto_written(&w, &bytes, r->err);
    if (code == RP_OK)
        code = rp_proto_finish(&c, r->err);
    if (code == RP_OK && bytes.n > 2) {
        const char *kept = rp_arena_copy(&r->p->arena, (const char *)bytes.at, bytes.n);

        code = kept ? rp_program_add_attr(r->p, RP_ATTR_PROTO, kept, bytes.n, r->err)
                    : rp_err_nomem(r->err, "reading metadata");
    }
    rp_proto_writer_release(&w);
    return code;
}

enum rp_code hlo_proto_attrs(struct hlo_proto *r, struct rp_bytes bytes, uint64_t offset)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, offset, r->limits.depth);
    bool slices = false, groups = false, pairs = false, aliases = false, laid = false, known;
    bool custom = r->p->code.at[r->op] == RP_OP_CUSTOM_CALL;
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        slices |= it.number == 17;
        groups |= it.number == 49;
        pairs |= it.number == 52;
        aliases |= it.number == 74;
        if (r->metadata_rest && it.number == 7 && it.wire == RP_WIRE_BYTES)
            RP_TRY(metadata_rest(r, &c, &it));
        laid |= custom && it.number == 56 && it.value;
        if (is_structure(it.number) || (custom && (it.number == 56 || it.number == 57)))
            continue;
        RP_TRY(attr_field(r, &c, &it, &known));
        if (!known)
            RP_TRY(rp_program_add_attr(r->p, RP_ATTR_PROTO, (const char *)it.begin,
                                       (size_t)(c.at - it.begin), r->err));
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    if (slices)
        RP_TRY(hlo_proto_slices(r, bytes, offset));
    if (groups && !rp_op_attr(r->p, r->op, RP_ATTR_REPLICA_GROUPS))
        RP_TRY(repeated(r, bytes, offset, 49, RP_ATTR_REPLICA_GROUPS));
    if (pairs)
        RP_TRY(repeated(r, bytes, offset, 52, RP_ATTR_SOURCE_TARGET_PAIRS));
    if (aliases)
        RP_TRY(repeated(r, bytes, offset, 74, RP_ATTR_OUTPUT_TO_OPERAND_ALIASING));
    if (laid)
        RP_TRY(hlo_proto_constraints(r, bytes, offset));
    return RP_OK;
}
