/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural hash: bottom up, an operation is its opcode, shape, attributes, constants, the
 * hashes of its operands in order and of the computations it calls. A computation is its root and
 * the multiset of all its operations, each with the number of its uses, so that duplicates and dead
 * code count while the order does not.
 *
 * get-tuple-element is part of the operand it stands for: newer HLO text writes '%x#0' instead, and
 * both must come out the same. So it is left out of the multiset and hands its uses on.
 *
 * Values are printed and compared across machines and versions, so nothing here depends on ids, and
 * the mixing is this file's own.
 */
#include "program/floats.h"
#include "program/literal.h"
#include "program/order.h"
#include "program/structure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static uint64_t mix(uint64_t h, uint64_t value)
{
    __extension__ typedef unsigned __int128 wide;
    wide m = (wide)(h ^ UINT64_C(0x9e3779b97f4a7c15)) * (value ^ UINT64_C(0xd1342543de82ef95));

    return (uint64_t)m ^ (uint64_t)(m >> 64) ^ (h << 1 | h >> 63);
}

/* Eight bytes at a time, little-endian whatever the machine. */
struct stream {
    uint64_t hash, word;
    unsigned n;
};

static inline void stream_add(struct stream *s, unsigned char c)
{
    s->word |= (uint64_t)c << 8 * (s->n & 7);
    if ((++s->n & 7) == 0) {
        s->hash = mix(s->hash, s->word);
        s->word = 0;
    }
}

static uint64_t stream_end(const struct stream *s)
{
    return mix(mix(s->hash, s->word), s->n);
}

static uint64_t hash_text(const char *at, size_t n)
{
    struct stream s = {0};

    for (size_t i = 0; i < n; i++)
        stream_add(&s, (unsigned char)at[i]);
    return stream_end(&s);
}

/* Of the letters that carry meaning: spaces, comments, '%' and the quotes and backslashes that one
   writer needs and another does not are passed over. Text arrives in pieces. */
struct meaning {
    struct stream s;
    enum { PLAIN, SLASH, COMMENT, STAR } state;
};

static void meaning_add(struct meaning *m, char c)
{
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r' && c != '%' && c != '"' && c != '\\')
        stream_add(&m->s, (unsigned char)c);
}

static void meaning_put(void *meaning, const char *at, size_t n)
{
    struct meaning *m = meaning;

    if (m->state == PLAIN && !memchr(at, '/', n)) { /* most often there is no comment */
        for (size_t i = 0; i < n; i++)
            meaning_add(m, at[i]);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (m->state >= COMMENT) {
            m->state = m->state == STAR && at[i] == '/' ? PLAIN : at[i] == '*' ? STAR : COMMENT;
        } else if (m->state == SLASH && at[i] == '*') {
            m->state = STAR;
        } else {
            if (m->state == SLASH)
                meaning_add(m, '/');
            m->state = at[i] == '/' ? SLASH : PLAIN;
            if (m->state == PLAIN)
                meaning_add(m, at[i]);
        }
    }
}

static uint64_t meaning_end(struct meaning *m)
{
    if (m->state == SLASH)
        meaning_add(m, '/');
    return stream_end(&m->s);
}

static uint64_t hash_value(const char *at, size_t n)
{
    struct meaning m = {.state = PLAIN};

    meaning_put(&m, at, n);
    return meaning_end(&m);
}

struct hasher {
    const struct rp_program *p;
    struct rp_arena *arena;
    struct rp_hashes *out;
    uint64_t *key;    /* of every attribute key that is known */
    uint64_t *opcode; /* of every opcode */
    uint32_t *uses;   /* of every operation */
    uint32_t *order;  /* scratch of one computation */
};

static uint64_t hash_shape(const struct hasher *h, uint32_t id)
{
    const struct rp_program *p = h->p;
    const struct rp_op_shape *s = &p->shapes.at[id];
    uint64_t hash = mix(s->elem, (uint64_t)s->n << 1 | !!(s->flags & RP_SHAPE_UNKNOWN));

    for (uint32_t i = 0; i < s->n; i++) {
        if (s->elem == RP_ELEM_TUPLE) /* a part is before its tuple */
            hash = mix(hash, h->out->shape[p->parts.at[s->first + i]]);
        else
            hash =
                mix(mix(hash, (uint64_t)p->dims.at[s->first + i]), p->dim_dynamic.at[s->first + i]);
    }
    if (!(s->flags & RP_SHAPE_DEFAULT_LAYOUT) && s->layout)
        hash = mix(
            hash, hash_value(rp_program_text(p, s->layout), rp_strtab_len(&p->strings, s->layout)));
    return hash;
}

/* A NaN is a NaN: text does not keep which. */
static void unify_nans(unsigned elem, unsigned char *values, size_t n)
{
    unsigned part = elem == RP_ELEM_C64 ? RP_ELEM_F32 : elem == RP_ELEM_C128 ? RP_ELEM_F64 : elem;
    size_t unit = rp_literal_unit(part), count = n * rp_literal_unit(elem) / (unit ? unit : 1);

    for (size_t i = 0; rp_elem_is_float(part) && i < count; i++) {
        uint64_t bits = 0;

        memcpy(&bits, values + unit * i, unit);
        if (isnan(rp_float_decode(part, bits)))
            memset(values + unit * i, 0x7f, unit);
    }
}

static uint64_t hash_literal(const struct hasher *h, uint32_t op)
{
    const struct rp_program *p = h->p;
    const struct rp_literal *literal;
    unsigned char values[RP_HASH_ELEMENTS * 16];
    unsigned elem = p->shapes.at[p->shape.at[op]].elem;
    int64_t n = rp_shape_elements(p, p->shape.at[op]);

    if ((uint64_t)p->value.at[op] >= p->literals.n)
        return 1;
    literal = &p->literals.at[p->value.at[op]];
    if (n > RP_HASH_ELEMENTS || !rp_literal_known(p, literal) ||
        rp_literal_decode(p, literal, values, sizeof values, NULL) != RP_OK)
        return 1;
    unify_nans(elem, values, (size_t)n);
    return hash_text((const char *)values, (size_t)n * rp_literal_unit(elem));
}

static const char *const known_keys[] = {
    "",
#define RP_ATTR(id, key, type, field, inner, flags) key,
#include "program/attrs.def"
#undef RP_ATTR
};

/* What one writer leaves out and another writes. */
static bool says_nothing(const struct rp_attr *attr)
{
    unsigned flags = rp_attr_flags(attr->key);

    switch ((enum rp_value_type)attr->type) {
    case RP_VALUE_FLAG:
        return !attr->number;
    case RP_VALUE_INT:
        return (flags & RP_ATTRF_ZERO && attr->number == 0) ||
               (flags & RP_ATTRF_ONE && attr->number == 1);
    case RP_VALUE_FLOAT:
        return flags & RP_ATTRF_ZERO && attr->real == 0;
    case RP_VALUE_GROUPS:
        return attr->groups->form == RP_GROUPS_LISTED && !attr->groups->ngroups;
    case RP_VALUE_TEXT:
        return (attr->n == 2 && memcmp(attr->at, "{}", 2) == 0) ||
               (attr->n == 5 && memcmp(attr->at, "false", 5) == 0);
    case RP_VALUE_CONFIG:
        return attr->n == 2 && memcmp(attr->at, "{}", 2) == 0;
    case RP_VALUE_INTS:
    case RP_VALUE_PAIRS:
    case RP_VALUE_SLICES:
    case RP_VALUE_WORDS:
    case RP_VALUE_MAP:
    case RP_VALUE_WINDOW:
    case RP_VALUE_ALIASES:
    case RP_VALUE_OPS:
    case RP_VALUE_SHAPES:
        return !attr->n;
    default:
        return false;
    }
}

bool rp_attr_counts(const struct rp_program *p, uint32_t op, const struct rp_attr *attr)
{
    if (says_nothing(attr))
        return false;
    if (attr->key == RP_ATTR_BACKEND_CONFIG)
        return p->code.at[op] == RP_OP_CUSTOM_CALL;
    if (attr->key < RP_ATTR_COUNT)
        return !(rp_attr_flags(attr->key) & RP_ATTRF_QUIET);
    return *rp_program_text(p, attr->key) != '_'; /* TensorFlow's notes to itself */
}

static bool are_digits(const struct rp_attr *attr)
{
    for (uint32_t i = 0; i < attr->n; i++)
        if (attr->ints[i] < 0 || attr->ints[i] > 9)
            return false;
    return attr->n != 0;
}

/* A value is hashed as it is printed: there is one way to print it, whatever file it came from. */
uint64_t rp_attr_hash(const struct rp_program *p, const struct rp_attr *attr)
{
    struct meaning m = {.state = PLAIN};
    struct rp_chars text = {.sink = meaning_put, .sink_arg = &m};
    char number[32];
    int n;

    if (attr->key == RP_ATTR_ROOT)
        return 1;
    if (attr->type == RP_VALUE_FLOAT) { /* text keeps six digits */
        n = snprintf(number, sizeof number, "%g", attr->real);
        return hash_value(number, (size_t)n);
    }
    if (attr->type == RP_VALUE_INTS && are_digits(attr)) { /* what most attributes are */
        for (uint32_t i = 0; i < attr->n; i++) {
            stream_add(&m.s, i ? ',' : '{');
            stream_add(&m.s, (unsigned char)('0' + attr->ints[i]));
        }
        stream_add(&m.s, '}');
        return stream_end(&m.s);
    }
    rp_attr_print(p, attr, &text);
    return meaning_end(&m);
}

static uint64_t hash_attrs(const struct hasher *h, uint32_t op)
{
    const struct rp_program *p = h->p;
    uint32_t n;
    const struct rp_attr *attr = rp_op_attrs(p, op, &n);
    uint64_t sum = 0;

    for (; n; n--, attr++) {
        uint64_t key;

        if (!rp_attr_counts(p, op, attr))
            continue;
        if (attr->key < RP_ATTR_COUNT)
            key = h->key[attr->key];
        else
            key = hash_text(rp_program_text(p, attr->key), rp_strtab_len(&p->strings, attr->key));
        sum += mix(key, rp_attr_hash(p, attr));
    }
    return sum;
}

static uint64_t hash_op(const struct hasher *h, uint32_t op)
{
    const struct rp_program *p = h->p;
    enum rp_opcode code = (enum rp_opcode)p->code.at[op];
    struct rp_ids operands = rp_op_operands(p, op), called = rp_op_called(p, op);
    uint32_t from = p->operand_begin.at[op];
    uint64_t hash = h->opcode[code];

    if (code == RP_OP_FOREIGN)
        hash = mix(hash, hash_text(rp_program_text(p, p->foreign.at[op]),
                                   rp_strtab_len(&p->strings, p->foreign.at[op])));
    h->out->opcode[op] = hash;
    hash = mix(hash, h->out->shape[p->shape.at[op]]);
    if (code == RP_OP_CONSTANT)
        hash = mix(hash, hash_literal(h, op));
    else if (code == RP_OP_GET_TUPLE_ELEMENT)
        hash = mix(hash, (uint64_t)p->value.at[op]);
    hash = mix(hash, hash_attrs(h, op));
    h->out->local[op] = hash;
    if (code == RP_OP_PARAMETER)
        hash = mix(hash, (uint64_t)p->value.at[op]);
    for (uint32_t i = 0; i < operands.n; i++) {
        hash = mix(hash, h->out->op[operands.at[i]]);
        if (p->operand_index.n && p->operand_index.at[from + i])
            hash = mix(hash, p->operand_index.at[from + i]);
    }
    for (uint32_t i = 0; i < called.n; i++)
        hash = mix(hash, h->out->computation[called.at[i]]);
    return hash;
}

/* Backwards, so that a get-tuple-element knows its uses when it hands them on. */
static void count_uses(const struct hasher *h, const struct rp_computation *c)
{
    const struct rp_program *p = h->p;

    if (c->root != RP_NONE)
        h->uses[c->root] += 1;
    for (uint32_t k = c->n; k-- > 0;) {
        uint32_t op = h->order[k];
        struct rp_ids operands = rp_op_operands(p, op);
        uint32_t times = p->code.at[op] == RP_OP_GET_TUPLE_ELEMENT ? h->uses[op] : 1;

        for (uint32_t i = 0; i < operands.n; i++)
            h->uses[operands.at[i]] += times;
    }
}

static enum rp_code hash_computation(struct hasher *h, uint32_t id, struct rp_err *err)
{
    const struct rp_program *p = h->p;
    const struct rp_computation *c = &p->computations.at[id];
    uint64_t sum = 0;

    if (!c->n)
        return RP_OK;
    RP_TRY(rp_computation_order(p, id, h->arena, h->order, err));
    for (uint32_t k = 0; k < c->n; k++)
        h->out->op[h->order[k]] = hash_op(h, h->order[k]);
    count_uses(h, c);
    for (uint32_t op = c->first; op < c->first + c->n; op++)
        if (p->code.at[op] != RP_OP_GET_TUPLE_ELEMENT)
            sum += mix(h->out->op[op], h->uses[op]);
    h->out->computation[id] =
        mix(mix(c->root == RP_NONE ? 0 : h->out->op[c->root], sum), c->nparams);
    return RP_OK;
}

/* What depends on the tables only. */
static void hash_tables(const struct hasher *h)
{
    for (uint32_t i = 0; i < RP_ATTR_COUNT; i++)
        h->key[i] = hash_text(known_keys[i], strlen(known_keys[i]));
    for (uint32_t i = 0; i < RP_OP_COUNT; i++)
        h->opcode[i] = hash_text(rp_op_info[i].name, strlen(rp_op_info[i].name));
    for (uint32_t i = 0; i < h->p->shapes.n; i++)
        h->out->shape[i] = hash_shape(h, i);
}

/* Dead computations count too, as a multiset: a file that changes there is not the same. */
static void hash_program(const struct hasher *h, const uint32_t *calls)
{
    const struct rp_program *p = h->p;
    uint64_t dead = 0;

    if (p->entry == RP_NONE)
        return;
    h->out->reachable[p->entry] = true;
    for (size_t i = p->computations.n; i-- > 0;) { /* callers first */
        const struct rp_computation *c = &p->computations.at[calls[i]];

        if (!h->out->reachable[calls[i]] || !c->n) {
            dead += mix(h->out->computation[calls[i]], 1);
            continue;
        }
        for (uint32_t k = p->called_begin.at[c->first]; k < p->called_begin.at[c->first + c->n];
             k++)
            h->out->reachable[p->called.at[k]] = true;
    }
    h->out->program = mix(h->out->computation[p->entry], dead);
}

enum rp_code rp_program_hash(const struct rp_program *p, struct rp_arena *arena,
                             struct rp_hashes *out, struct rp_err *err)
{
    struct hasher h = {.p = p, .arena = arena, .out = out};
    uint32_t *calls;

    out->program = 0;
    out->op = RP_ARENA_NEW(arena, uint64_t, (size_t)p->nops + 1);
    out->computation = RP_ARENA_NEW(arena, uint64_t, p->computations.n + 1);
    out->reachable = RP_ARENA_NEW(arena, bool, p->computations.n + 1);
    out->local = RP_ARENA_NEW(arena, uint64_t, (size_t)p->nops + 1);
    out->opcode = RP_ARENA_NEW(arena, uint64_t, (size_t)p->nops + 1);
    out->shape = RP_ARENA_NEW(arena, uint64_t, p->shapes.n + 1);
    h.key = RP_ARENA_NEW(arena, uint64_t, RP_ATTR_COUNT);
    h.opcode = RP_ARENA_NEW(arena, uint64_t, RP_OP_COUNT);
    h.uses = RP_ARENA_NEW(arena, uint32_t, (size_t)p->nops + 1);
    h.order = RP_ARENA_NEW(arena, uint32_t, (size_t)p->nops + 1);
    if (!out->op || !out->computation || !out->reachable || !out->local || !out->opcode ||
        !out->shape || !h.key || !h.opcode || !h.uses || !h.order)
        return rp_err_nomem(err, "hashing a program");
    RP_TRY(rp_program_call_order(p, arena, &calls, err));
    hash_tables(&h);
    for (size_t i = 0; i < p->computations.n; i++)
        RP_TRY(hash_computation(&h, calls[i], err));
    hash_program(&h, calls);
    return RP_OK;
}
