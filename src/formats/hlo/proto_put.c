/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes in words into fields of HloInstructionProto: the other direction of proto_attrs.c.
 * A value that its field cannot hold goes into our own field as it is, so that nothing is lost on
 * the way back.
 */
#include "formats/hlo/proto_put.h"

#include "formats/hlo/text.h"

#include <stdlib.h>
#include <string.h>

/* ---- scanning values ---- */

struct scan {
    const char *at, *end;
};

static struct scan scan_of(const struct rp_attr *attr)
{
    return (struct scan){attr->at, attr->at + attr->n};
}

static bool take(struct scan *s, char c)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n'))
        s->at++;
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static bool take_int(struct scan *s, int64_t *value)
{
    bool minus = take(s, '-');
    const char *from;
    uint64_t v = 0;

    while (s->at < s->end && *s->at == ' ')
        s->at++;
    for (from = s->at; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++)
        v = v * 10 + (uint64_t)(*s->at - '0');
    *value = (int64_t)(minus ? 0 - v : v);
    return s->at > from;
}

/* "{1,2}" with these brackets as one packed field; nothing is written where it is empty. */
static bool put_list(const struct hlo_put *put, uint32_t field, struct scan *s, char open,
                     char close)
{
    size_t begun;
    int64_t v;

    if (!take(s, open))
        return false;
    if (take(s, close))
        return true;
    begun = rp_proto_begin(put->w, field);
    do {
        if (!take_int(s, &v)) {
            rp_proto_end(put->w, begun);
            return false;
        }
        rp_proto_add_varint(put->w, (uint64_t)v);
    } while (take(s, ','));
    rp_proto_end(put->w, begun);
    return take(s, close);
}

static enum rp_code put_unquoted(const struct hlo_put *put, uint32_t field,
                                 const struct rp_attr *attr)
{
    char *text = malloc((size_t)attr->n + 1);

    if (!text)
        return rp_err_nomem(put->err, "writing an attribute");
    rp_proto_put_bytes(put->w, field, text, hlo_unquote(attr, text));
    free(text);
    return RP_OK;
}

/* ---- one attribute, one field ---- */

static bool is_word(const struct rp_attr *attr, const char *word)
{
    return attr->n == strlen(word) && memcmp(attr->at, word, attr->n) == 0;
}

static bool put_simple(const struct hlo_put *put, const struct hlo_codec_row *row,
                       const struct rp_attr *attr)
{
    struct scan s = scan_of(attr);
    char text[64];
    int64_t v;

    switch (row->codec) {
    case HLO_INT:
    case HLO_INT0:
    case HLO_INT1:
        if (!take_int(&s, &v) || s.at != s.end)
            return false;
        rp_proto_put_varint(put->w, row->field, (uint64_t)v);
        return true;
    case HLO_BOOL:
        if (!is_word(attr, "true") && !is_word(attr, "false"))
            return false;
        if (is_word(attr, "true"))
            rp_proto_put_varint(put->w, row->field, 1);
        return true;
    case HLO_WORD:
        rp_proto_put_bytes(put->w, row->field, attr->at, attr->n);
        return true;
    case HLO_INTS:
        return put_list(put, row->field, &s, '{', '}') && s.at == s.end;
    case HLO_FLOAT:
        if (attr->n >= sizeof text)
            return false;
        memcpy(text, attr->at, attr->n);
        text[attr->n] = '\0';
        rp_proto_put_float(put->w, row->field, strtof(text, NULL));
        return true;
    default:
        return false;
    }
}

/* ---- messages ---- */

static void put_triple(const struct hlo_put *put, uint32_t field, const int64_t v[3])
{
    size_t begun = rp_proto_begin(put->w, field);

    for (uint32_t i = 0; i < 3; i++)
        if (v[i])
            rp_proto_put_varint(put->w, i + 1, (uint64_t)v[i]);
    rp_proto_end(put->w, begun);
}

/* "{[0:4], [2:8:2]}" */
static bool put_slice(const struct hlo_put *put, const struct rp_attr *attr)
{
    struct scan s = scan_of(attr);

    if (!take(&s, '{'))
        return false;
    while (take(&s, '[')) {
        int64_t v[3] = {0, 0, 1};

        if (!take_int(&s, &v[0]) || !take(&s, ':') || !take_int(&s, &v[1]) ||
            (take(&s, ':') && !take_int(&s, &v[2])) || !take(&s, ']'))
            return false;
        put_triple(put, 17, v);
        take(&s, ',');
    }
    return take(&s, '}');
}

/* "0_1x2_3_1" */
static bool put_padding(const struct hlo_put *put, const struct rp_attr *attr)
{
    struct scan s = scan_of(attr);
    size_t begun = rp_proto_begin(put->w, 21);
    bool fits = true;

    do {
        int64_t v[3] = {0, 0, 0};

        fits = take_int(&s, &v[0]) && take(&s, '_') && take_int(&s, &v[1]) &&
               (!take(&s, '_') || take_int(&s, &v[2]));
        if (fits)
            put_triple(put, 1, v);
    } while (fits && take(&s, 'x'));
    rp_proto_end(put->w, begun);
    return fits && s.at == s.end;
}

/* "{{0,1},{1,0}}": pairs of numbers, or groups of them */
static bool put_nested(const struct hlo_put *put, const struct rp_attr *attr, bool pairs)
{
    struct scan s = scan_of(attr);

    if (!take(&s, '{'))
        return false;
    if (take(&s, '}'))
        return s.at == s.end;
    do {
        size_t begun;
        bool fits;

        if (pairs) {
            int64_t v[3] = {0, 0, 0};

            if (!take(&s, '{') || !take_int(&s, &v[0]) || !take(&s, ',') || !take_int(&s, &v[1]) ||
                !take(&s, '}'))
                return false;
            put_triple(put, 52, v);
            continue;
        }
        begun = rp_proto_begin(put->w, 49);
        fits = put_list(put, 1, &s, '{', '}');
        rp_proto_end(put->w, begun);
        if (!fits)
            return false;
    } while (take(&s, ','));
    return take(&s, '}') && s.at == s.end;
}

/* "[2,4]<=[4,2]T(1,0)" */
static bool put_iota_groups(const struct hlo_put *put, const struct rp_attr *attr)
{
    struct scan s = scan_of(attr);
    size_t begun = rp_proto_begin(put->w, 92);
    int64_t groups, size;
    bool fits = take(&s, '[') && take_int(&s, &groups) && take(&s, ',') && take_int(&s, &size) &&
                take(&s, ']') && take(&s, '<') && take(&s, '=');

    if (fits) {
        rp_proto_put_varint(put->w, 1, (uint64_t)groups);
        rp_proto_put_varint(put->w, 2, (uint64_t)size);
        fits = put_list(put, 3, &s, '[', ']');
        if (fits && take(&s, 'T'))
            fits = put_list(put, 4, &s, '(', ')');
        else if (fits)
            rp_proto_put_varint(put->w, 4, 0);
    }
    rp_proto_end(put->w, begun);
    return fits && s.at == s.end;
}

/* "{{0}: (1, {}), {1}: (2, {0})}" */
static bool put_aliasing(const struct hlo_put *put, const struct rp_attr *attr)
{
    struct scan s = scan_of(attr);

    if (!take(&s, '{'))
        return false;
    while (!take(&s, '}')) {
        size_t begun = rp_proto_begin(put->w, 74);
        int64_t operand;
        bool fits = put_list(put, 1, &s, '{', '}') && take(&s, ':') && take(&s, '(') &&
                    take_int(&s, &operand) && take(&s, ',');

        if (fits) {
            rp_proto_put_varint(put->w, 2, (uint64_t)operand);
            fits = put_list(put, 3, &s, '{', '}') && take(&s, ')');
        }
        rp_proto_end(put->w, begun);
        if (!fits)
            return false;
        take(&s, ',');
    }
    return s.at == s.end;
}

/* "{ {0}: (0, {}, may-alias), {1}: (2, {}, must-alias) }" of a module */
bool hlo_put_module_alias(const struct hlo_put *put, const struct rp_attr *attr)
{
    struct scan s = scan_of(attr);
    size_t aliases = rp_proto_begin(put->w, 8), begun;
    bool fits = take(&s, '{');

    while (fits && !take(&s, '}')) {
        int64_t parameter = 0;
        uint64_t kind = 1;

        begun = rp_proto_begin(put->w, 1);
        fits = put_list(put, 1, &s, '{', '}') && take(&s, ':') && take(&s, '(') &&
               take_int(&s, &parameter);
        rp_proto_put_varint(put->w, 2, (uint64_t)parameter);
        if (fits && take(&s, ','))
            fits = put_list(put, 3, &s, '{', '}');
        if (fits && take(&s, ',')) {
            const char *close = memchr(s.at, ')', (size_t)(s.end - s.at));

            kind = close && memmem(s.at, (size_t)(close - s.at), "must", 4) ? 2 : 1;
            s.at = close ? close : s.end;
        }
        rp_proto_put_varint(put->w, 4, kind);
        rp_proto_end(put->w, begun);
        fits = fits && take(&s, ')');
        take(&s, ',');
    }
    rp_proto_end(put->w, aliases);
    return fits;
}

/* ---- attributes that share a message ---- */

static const struct rp_attr *attr_of(const struct hlo_put *put, uint32_t op, uint32_t key)
{
    return rp_op_attr(put->p, op, key);
}

static bool of_dot(const struct hlo_put *put, uint32_t op)
{
    return rp_op_info[put->p->code.at[op]].class_ == RP_CLASS_DOT ||
           put->p->code.at[op] == RP_OP_CONVOLUTION || put->p->code.at[op] == RP_OP_CUSTOM_CALL;
}

/* Dot, gather and scatter dimensions; `single` ones of two messages go where the others are. */
static void put_groups(const struct hlo_put *put, uint32_t op, uint32_t field, uint32_t witness)
{
    size_t n, begun;
    const struct hlo_group_row *rows = hlo_group_rows(&n);

    if (!attr_of(put, op, witness))
        return;
    begun = rp_proto_begin(put->w, field);
    for (size_t i = 0; i < n; i++) {
        const struct rp_attr *attr = attr_of(put, op, rows[i].key);
        struct scan s;
        int64_t v;

        if (rows[i].field != field || !attr)
            continue;
        s = scan_of(attr);
        if (!rows[i].single)
            put_list(put, rows[i].inner, &s, '{', '}');
        else if (take_int(&s, &v))
            rp_proto_put_varint(put->w, rows[i].inner, (uint64_t)v);
    }
    rp_proto_end(put->w, begun);
}

static void put_precision(const struct hlo_put *put, uint32_t op)
{
    const struct rp_attr *list = attr_of(put, op, RP_ATTR_OPERAND_PRECISION);
    const struct rp_attr *algorithm = attr_of(put, op, RP_ATTR_ALGORITHM);
    uint64_t v;
    size_t begun, packed;

    if (algorithm && !of_dot(put, op))
        algorithm = NULL;
    if (!list && !algorithm)
        return;
    begun = rp_proto_begin(put->w, 51);
    if (list) {
        struct scan s = scan_of(list);

        packed = rp_proto_begin(put->w, 1);
        take(&s, '{');
        while (s.at < s.end && *s.at != '}') {
            const char *from = s.at;

            while (s.at < s.end && *s.at != ',' && *s.at != '}')
                s.at++;
            if (!hlo_enum_value(RP_ATTR_OPERAND_PRECISION, false, from, (size_t)(s.at - from), &v))
                v = 0;
            rp_proto_add_varint(put->w, v);
            take(&s, ',');
        }
        rp_proto_end(put->w, packed);
    }
    if (algorithm && hlo_enum_value(RP_ATTR_ALGORITHM, true, algorithm->at, algorithm->n, &v))
        rp_proto_put_varint(put->w, 2, v);
    rp_proto_end(put->w, begun);
}

static void put_solve(const struct hlo_put *put, uint32_t op)
{
    static const uint16_t keys[] = {0, RP_ATTR_LEFT_SIDE, RP_ATTR_LOWER, RP_ATTR_UNIT_DIAGONAL};
    bool cholesky = put->p->code.at[op] == RP_OP_CHOLESKY;
    const struct rp_attr *transpose = attr_of(put, op, RP_ATTR_TRANSPOSE_A);
    size_t begun = rp_proto_begin(put->w, cholesky ? 62 : 59);
    uint64_t v;

    for (uint32_t i = 1; i < 4; i++) {
        const struct rp_attr *attr = attr_of(put, op, keys[i]);

        if (attr && is_word(attr, "true"))
            rp_proto_put_varint(put->w, cholesky ? 1 : i, 1);
    }
    if (transpose && hlo_enum_value(RP_ATTR_TRANSPOSE_A, false, transpose->at, transpose->n, &v))
        rp_proto_put_varint(put->w, 4, v);
    rp_proto_end(put->w, begun);
}

/* "{k=\"v\",other={json}}" */
static bool put_frontend(const struct hlo_put *put, const struct rp_attr *attr)
{
    struct scan s = scan_of(attr);
    char *text = malloc((size_t)attr->n + 1);
    size_t map = rp_proto_begin(put->w, 68);
    bool fits = text && take(&s, '{');

    while (fits && !take(&s, '}')) {
        const char *key = s.at, *assign = memchr(s.at, '=', (size_t)(s.end - s.at));
        struct rp_attr value;
        size_t entry, n;

        fits = assign && assign + 1 < s.end && assign[1] == '"';
        if (!fits)
            break;
        value.at = assign + 1;
        for (s.at = assign + 2; s.at < s.end && *s.at != '"'; s.at++)
            s.at += *s.at == '\\';
        fits = s.at < s.end;
        if (!fits)
            break;
        value.n = (uint32_t)(++s.at - value.at);
        n = hlo_unquote(&value, text);
        entry = rp_proto_begin(put->w, 1);
        rp_proto_put_bytes(put->w, 1, key, (size_t)(assign - key));
        rp_proto_put_bytes(put->w, 2, text, n);
        rp_proto_end(put->w, entry);
        take(&s, ',');
    }
    rp_proto_end(put->w, map);
    free(text);
    return fits;
}

/* "{%a, %b}": names of instructions of the same computation */
static bool put_control(const struct hlo_put *put, uint32_t op, const struct rp_attr *attr)
{
    const struct rp_computation *c = &put->p->computations.at[put->p->computation.at[op]];
    struct scan s = scan_of(attr);
    size_t begun;

    if (!take(&s, '{'))
        return false;
    begun = rp_proto_begin(put->w, 37);
    while (!take(&s, '}') && s.at < s.end) {
        const char *from;
        uint32_t name, other = c->first;

        take(&s, '%');
        for (from = s.at; s.at < s.end && *s.at != ',' && *s.at != '}' && *s.at != ' '; s.at++)
            ;
        name = rp_strtab_find(&put->p->strings, from, (size_t)(s.at - from));
        while (other < op && put->p->op_name.at[other] != name)
            other++;
        if (other < op)
            rp_proto_add_varint(put->w, hlo_put_id(put->p, other));
        take(&s, ',');
    }
    rp_proto_end(put->w, begun);
    return true;
}

/* ---- all of them ---- */

/* Keys that put_groups, put_precision and put_solve have written. */
static bool in_message(const struct hlo_put *put, uint32_t op, uint32_t key)
{
    enum rp_opcode code = (enum rp_opcode)put->p->code.at[op];
    size_t n;
    const struct hlo_group_row *rows = hlo_group_rows(&n);

    for (size_t i = 0; i < n; i++)
        if (rows[i].key == key)
            return true;
    if (key == RP_ATTR_ALGORITHM)
        return of_dot(put, op);
    if (key == RP_ATTR_LEFT_SIDE || key == RP_ATTR_LOWER || key == RP_ATTR_UNIT_DIAGONAL ||
        key == RP_ATTR_TRANSPOSE_A)
        return code == RP_OP_TRIANGULAR_SOLVE || code == RP_OP_CHOLESKY;
    return key == RP_ATTR_OPERAND_PRECISION;
}

static bool put_dimensions(const struct hlo_put *put, const struct rp_attr *attr)
{
    struct scan s = scan_of(attr);
    size_t begun;
    int64_t v;

    if (attr->key == RP_ATTR_DIMENSIONS)
        return put_list(put, 14, &s, '{', '}') && s.at == s.end;
    if (!take_int(&s, &v) || s.at != s.end)
        return false;
    begun = rp_proto_begin(put->w, 14);
    rp_proto_add_varint(put->w, (uint64_t)v);
    rp_proto_end(put->w, begun);
    return true;
}

static bool put_special(const struct hlo_put *put, uint32_t op, const struct rp_attr *attr)
{
    switch (attr->key) {
    case RP_ATTR_DIMENSIONS:
    case RP_ATTR_IOTA_DIMENSION:
        return put_dimensions(put, attr);
    case RP_ATTR_WINDOW:
        return hlo_put_window(put, attr);
    case RP_ATTR_DIM_LABELS:
        return hlo_put_dim_labels(put, attr);
    case RP_ATTR_SLICE:
        return put_slice(put, attr);
    case RP_ATTR_PADDING:
        return put_padding(put, attr);
    case RP_ATTR_REPLICA_GROUPS:
        return attr->at[0] == '['   ? put_iota_groups(put, attr)
               : attr->at[0] == 'm' ? hlo_put_mesh_groups(put, attr)
                                    : put_nested(put, attr, false);
    case RP_ATTR_SOURCE_TARGET_PAIRS:
        return put_nested(put, attr, true);
    case RP_ATTR_OUTPUT_TO_OPERAND_ALIASING:
        return put_aliasing(put, attr);
    case RP_ATTR_SHARDING:
        return hlo_put_sharding(put, attr);
    case RP_ATTR_FRONTEND_ATTRIBUTES:
        return put_frontend(put, attr);
    case RP_ATTR_OPERAND_LAYOUT_CONSTRAINTS:
        return hlo_put_constraints(put, op, attr);
    case RP_ATTR_CONTROL_PREDECESSORS:
        return put_control(put, op, attr);
    default:
        return false;
    }
}

static enum rp_code put_attr(const struct hlo_put *put, uint32_t op, const struct rp_attr *attr)
{
    const struct hlo_codec_row *row = hlo_codec_of_key(attr->key);
    size_t mark = put->w->bytes.n;
    uint32_t field;
    uint64_t v;

    if (attr->key == RP_ATTR_PROTO) {
        rp_proto_add_bytes(put->w, attr->at, attr->n);
        return RP_OK;
    }
    if (in_message(put, op, attr->key))
        return RP_OK;
    if (attr->key == RP_ATTR_BACKEND_CONFIG)
        return put_unquoted(put, 43, attr);
    if (row && row->codec == HLO_QUOTED)
        return put_unquoted(put, row->field, attr);
    if (row && put_simple(put, row, attr))
        return RP_OK;
    if (hlo_enum_field(attr->key, false, &field) &&
        hlo_enum_value(attr->key, false, attr->at, attr->n, &v)) {
        if (v)
            rp_proto_put_varint(put->w, field, v);
        return RP_OK;
    }
    if (put_special(put, op, attr))
        return RP_OK;
    put->w->bytes.n = mark; /* half a field is taken back */
    return hlo_put_own(put, attr);
}

enum rp_code hlo_put_attrs(const struct hlo_put *put, uint32_t op)
{
    enum rp_opcode code = (enum rp_opcode)put->p->code.at[op];
    uint32_t n;
    const struct rp_attr *attrs = rp_op_attrs(put->p, op, &n);

    for (uint32_t i = 0; i < n; i++)
        RP_TRY(put_attr(put, op, &attrs[i]));
    put_groups(put, op, 30, RP_ATTR_LHS_CONTRACTING_DIMS);
    if (code == RP_OP_GATHER)
        put_groups(put, op, 33, RP_ATTR_INDEX_VECTOR_DIM);
    if (code == RP_OP_SCATTER)
        put_groups(put, op, 48, RP_ATTR_INDEX_VECTOR_DIM);
    put_precision(put, op);
    if (code == RP_OP_TRIANGULAR_SOLVE || code == RP_OP_CHOLESKY)
        put_solve(put, op);
    if (code == RP_OP_CUSTOM_CALL && !attr_of(put, op, RP_ATTR_API_VERSION))
        rp_proto_put_varint(put->w, 77, 1);
    return RP_OK;
}
