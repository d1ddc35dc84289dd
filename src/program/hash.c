/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the structural hash bottom up: that of an operation combines its opcode, shape,
 * attributes, constants, the hashes of its operands in order and of the computations it calls. A
 * computation is its root and the multiset of all its operations, each with the number of its uses,
 * so that duplicates and dead code count while the order does not.
 *
 * A get-tuple-element counts as part of the operand that uses it: newer HLO text writes '%x#0'
 * instead, and both forms must have the same hash. It is therefore left out of the multiset, and
 * its uses count for the tuple.
 *
 * Attributes are hashed as values, by their type, never as text. Hashes are printed and compared
 * across machines: nothing here depends on ids or on the byte order.
 */
#include "program/floats.h"
#include "program/literal.h"
#include "program/opcodes.h"
#include "program/order.h"
#include "program/structure.h"

#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static uint64_t mix(uint64_t h, uint64_t value)
{
    __extension__ typedef unsigned __int128 wide;
    wide m = (wide)(h ^ UINT64_C(0x9e3779b97f4a7c15)) * (value ^ UINT64_C(0xd1342543de82ef95));

    return (uint64_t)m ^ (uint64_t)(m >> 64) ^ (h << 1 | h >> 63);
}

/* Hashes eight bytes at a time, little-endian on every machine. */
static uint64_t hash_bytes(const char *at, size_t n)
{
    uint64_t hash = 0, word = 0;

    for (size_t i = 0; i + 8 <= n; i += 8) {
        memcpy(&word, at + i, sizeof word);
        hash = mix(hash, le64toh(word));
    }
    word = 0;
    if (n & 7)
        memcpy(&word, at + (n & ~(size_t)7), n & 7);
    return mix(mix(hash, le64toh(word)), n);
}

/* Characters that some writers write and others do not: white space, '%', quotes and
   backslashes. */
static const bool is_optional[256] = {[' '] = true, ['\n'] = true, ['\t'] = true, ['\r'] = true,
                                      ['%'] = true, ['"'] = true,  ['\\'] = true};

/* Hashes raw text without optional characters and comments. */
static uint64_t hash_raw_text(const char *at, size_t n)
{
    uint64_t hash = 0, word = 0;
    unsigned count = 0;

    for (const char *end = at + n; at < end; at++) {
        if (*at == '/' && end - at > 1 && at[1] == '*') {
            const char *close = memmem(at + 2, (size_t)(end - at) - 2, "*/", 2);

            if (!close)
                break;
            at = close + 1;
            continue;
        }
        if (is_optional[(unsigned char)*at])
            continue;
        word |= (uint64_t)(unsigned char)*at << 8 * (count & 7);
        if ((++count & 7) == 0) {
            hash = mix(hash, word);
            word = 0;
        }
    }
    return mix(mix(hash, word), count);
}

/* ---- backend_config ---- */

#define DEPTH_MOST 32

struct scan {
    const char *at, *end;
};

static void skip_blanks(struct scan *s)
{
    while (s->at < s->end && strchr(" \t\r\n", *s->at))
        s->at++;
}

static bool take(struct scan *s, char c)
{
    skip_blanks(s);
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static uint64_t hash_text(const char *at, size_t n)
{
    uint64_t hash = n;

    for (size_t i = 0; i < n; i++)
        hash = mix(hash, (unsigned char)at[i]);
    return hash;
}

/* Hashes the text between the quotes; escapes are compared as they are written. */
static bool scan_string(struct scan *s, uint64_t *hash)
{
    const char *from = s->at;

    for (; s->at < s->end && *s->at != '"'; s->at++)
        if (*s->at == '\\' && ++s->at == s->end)
            return false;
    if (s->at == s->end)
        return false;
    *hash = s->at == from || (s->at == from + 1 && *from == '0')
                ? 0
                : hash_text(from, (size_t)(s->at - from));
    s->at++;
    return true;
}

/* The hash 0 stands for the default of the type. */
static bool scan_value(struct scan *s, unsigned depth, uint64_t *hash)
{
    if (depth > DEPTH_MOST)
        return false;
    if (take(s, '{')) {
        uint64_t key, value;

        *hash = 0;
        if (take(s, '}'))
            return true;
        do {
            if (!take(s, '"') || !scan_string(s, &key) || !take(s, ':') ||
                !scan_value(s, depth + 1, &value))
                return false;
            if (value)
                *hash += mix(key, value);
        } while (take(s, ','));
        return take(s, '}');
    }
    if (take(s, '[')) {
        uint64_t value;

        *hash = 0;
        if (take(s, ']'))
            return true;
        *hash = 1;
        do {
            if (!scan_value(s, depth + 1, &value))
                return false;
            *hash = mix(*hash, value);
        } while (take(s, ','));
        return take(s, ']');
    }
    if (take(s, '"'))
        return scan_string(s, hash);
    /* Numbers and words; 0, 0.0 and -0 are the same default. */
    const char *from = s->at;
    bool zero = true;
    while (s->at < s->end && !strchr(" \t\r\n,]}:\"[{", *s->at))
        zero &= strchr("-+0.", *s->at++) != NULL;
    size_t n = (size_t)(s->at - from);
    *hash = zero || (n == 5 && !memcmp(from, "false", n)) || (n == 4 && !memcmp(from, "null", n))
                ? 0
                : hash_text(from, n);
    return n > 0;
}

/*
 * Hashes a backend_config by its content. It is JSON written by protobuf: the order of the members
 * means nothing, and a member with its default value (0, "0", false, "", null, [], {}) means the
 * same as a missing one; some writers of modules spell defaults out and others leave them out. The
 * hash is 0 if no other member is left. Returns false if the text is not a JSON object.
 */
static bool config_hash(const char *at, size_t n, uint64_t *hash)
{
    struct scan s = {at, at + n};

    skip_blanks(&s);
    if (s.at == s.end || *s.at != '{' || !scan_value(&s, 0, hash))
        return false;
    skip_blanks(&s);
    return s.at == s.end;
}

/* ---- shapes and literals ---- */

struct hasher {
    const struct rp_program *p;
    struct rp_arena *arena;
    struct rp_hashes *out;
    uint64_t *key;    /* the hash of every known attribute key */
    uint64_t *opcode; /* of every opcode */
    uint32_t *uses;   /* of every operation */
    uint32_t *order;  /* scratch space for one computation */
};

static uint64_t hash_shape(const struct hasher *h, uint32_t id)
{
    const struct rp_program *p = h->p;
    const struct rp_op_shape *s = &p->shapes.at[id];
    uint64_t hash = mix(s->elem, (uint64_t)s->n << 1 | !!(s->flags & RP_SHAPE_UNKNOWN));

    for (uint32_t i = 0; i < s->n; i++) {
        if (s->elem == RP_ELEM_TUPLE) /* a part precedes its tuple */
            hash = mix(hash, h->out->shape[p->parts.at[s->first + i]]);
        else
            hash =
                mix(mix(hash, (uint64_t)p->dims.at[s->first + i]), p->dim_dynamic.at[s->first + i]);
    }
    if (!(s->flags & RP_SHAPE_DEFAULT_LAYOUT) && s->layout)
        hash = mix(hash, hash_raw_text(rp_program_text(p, s->layout),
                                       rp_strtab_len(&p->strings, s->layout)));
    return hash;
}

static uint64_t hash_literal(const struct hasher *h, uint32_t op)
{
    const struct rp_program *p = h->p;
    unsigned char values[RP_HASH_ELEMENTS * 16];
    unsigned elem = p->shapes.at[p->shape.at[op]].elem;
    int64_t n = rp_shape_elements(p, p->shape.at[op]);

    if ((uint64_t)p->value.at[op] >= p->literals.n)
        return 1;
    const struct rp_literal *literal = &p->literals.at[p->value.at[op]];
    if (n > RP_HASH_ELEMENTS || !rp_literal_known(p, literal) ||
        rp_literal_decode(p, literal, values, sizeof values, NULL) != RP_OK)
        return 1;
    /* All NaNs are treated as equal, because text does not keep their bits. */
    unsigned part = elem == RP_ELEM_C64 ? RP_ELEM_F32 : elem == RP_ELEM_C128 ? RP_ELEM_F64 : elem;
    size_t unit = rp_literal_unit(part),
           count = (size_t)n * rp_literal_unit(elem) / (unit ? unit : 1);
    for (size_t i = 0; rp_elem_is_float(part) && i < count; i++) {
        uint64_t bits = 0;

        memcpy(&bits, values + unit * i, unit);
        if (isnan(rp_float_decode(part, bits)))
            memset(values + unit * i, 0x7f, unit);
    }
    return hash_bytes((const char *)values, (size_t)n * rp_literal_unit(elem));
}

static const char *const known_keys[] = {
    "",
#define RP_ATTR(id, key, type, field, inner, flags) key,
#include "program/attrs.def"
#undef RP_ATTR
};

/* Values that some writers omit and others write. */
static bool is_default_value(const struct rp_attr *attr)
{
    unsigned flags = rp_attr_flags(attr->key);
    uint64_t content;

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
        return !attr->n || (config_hash(attr->at, attr->n, &content) && !content);
    case RP_VALUE_STRING:
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
    if (is_default_value(attr))
        return false;
    if (attr->key == RP_ATTR_BACKEND_CONFIG)
        return p->code.at[op] == RP_OP_CUSTOM_CALL;
    if (attr->key < RP_ATTR_COUNT)
        return !(rp_attr_flags(attr->key) & RP_ATTRF_QUIET);
    return *rp_program_text(p, attr->key) != '_'; /* an internal attribute of TensorFlow */
}

/* ---- values ---- */

/* Hashes two numbers in a step; the last number, if one remains, is hashed with the length. */
static inline uint64_t hash_ints(uint64_t hash, const int64_t *at, size_t n)
{
    size_t i = 0;

    for (; i + 1 < n; i += 2)
        hash = mix(hash + (uint64_t)at[i] * UINT64_C(0xe7037ed1a0b428db), (uint64_t)at[i + 1]);
    return mix(hash + n, i < n ? (uint64_t)at[i] : UINT64_C(0xa0761d6478bd642f));
}

static uint64_t hash_list(uint64_t hash, struct rp_int_list list)
{
    return hash_ints(hash, list.at, list.n);
}

static uint64_t hash_slice(struct rp_slice text)
{
    return hash_raw_text(text.at, text.n);
}

/* The files of a module may list the entries of a map in any order. */
static uint64_t hash_map(const struct rp_attr *attr)
{
    uint64_t sum = attr->n;

    for (uint32_t i = 0; i + 1 < attr->n; i += 2)
        sum += mix(hash_slice(attr->texts[i]), hash_slice(attr->texts[i + 1]));
    return sum;
}

static uint64_t hash_words(const struct rp_attr *attr)
{
    uint64_t hash = attr->n;

    for (uint32_t i = 0; i < attr->n; i++)
        hash = mix(hash, hash_slice(attr->texts[i]));
    return hash;
}

static uint64_t hash_window(const struct rp_attr *attr)
{
    uint64_t hash = attr->n;

    for (uint32_t i = 0; i < attr->n; i++) {
        const struct rp_window_dim *d = &attr->window[i];
        const int64_t fields[] = {d->size,          d->stride,          d->pad_low, d->pad_high,
                                  d->base_dilation, d->window_dilation, d->reversal};

        hash = hash_ints(hash, fields, sizeof fields / sizeof *fields);
    }
    return hash;
}

static uint64_t hash_mesh(const struct rp_replica_groups *g)
{
    uint64_t hash = hash_list(hash_list(hash_list(g->form, g->ids), g->dims), g->perm);

    for (size_t i = 0; i < g->naxes; i++)
        hash = mix(mix(hash, hash_slice(g->axes[i].name)), (uint64_t)g->axes[i].size);
    hash = mix(hash, g->nparts);
    for (size_t i = 0; i < g->nparts; i++) {
        const struct rp_mesh_part *part = &g->parts[i];

        hash = mix(hash, hash_slice(g->axes[part->axis].name));
        hash = mix(mix(hash, part->size ? (uint64_t)part->before : 0), (uint64_t)part->size);
    }
    return hash;
}

static uint64_t hash_groups(const struct rp_replica_groups *g)
{
    uint64_t hash = mix(g->form, g->ngroups);

    if (g->form == RP_GROUPS_MESH)
        return hash_mesh(g);
    if (g->form == RP_GROUPS_IOTA)
        return hash_list(hash_list(mix(hash, (uint64_t)g->group_size), g->dims), g->perm);
    for (size_t i = 0; i < g->ngroups; i++)
        hash = hash_ints(hash, g->ids.at + g->begin[i], g->begin[i + 1] - g->begin[i]);
    return hash;
}

static uint64_t hash_aliases(const struct rp_attr *attr)
{
    uint64_t hash = attr->n;

    for (uint32_t i = 0; i < attr->n; i++) {
        const struct rp_alias *a = &attr->aliases[i];

        hash = hash_list(hash_list(hash, a->output), a->operand);
        hash = mix(mix(hash, (uint64_t)a->number), a->kind);
    }
    return hash;
}

/* Hashes the fields that matter for the type of the sharding; shardings are nested at most
   RP_SHARDING_DEPTH deep. */
static uint64_t hash_sharding(const struct rp_sharding *s)
{
    static const struct rp_int_list none;
    uint64_t hash = mix(s->type, s->last_replicate);

    if (s->type == RP_SHARDING_OTHER) {
        hash = hash_list(hash_list(hash_list(hash, s->tiles), s->dims), s->perm);
        hash = hash_list(hash, s->dims.n ? none : s->devices);
    } else if (s->type == RP_SHARDING_MAXIMAL) {
        hash = hash_list(hash, s->devices);
    }
    hash = hash_list(hash, s->last);
    for (size_t i = 0; i < s->nparts; i++)
        hash = mix(hash, hash_sharding(&s->parts[i]));
    return s->grouped ? mix(mix(hash, 1U + s->shard_like), (uint64_t)s->group) : hash;
}

/* Hashes the printed form. The structural hash does not include these, because they depend on
   names. */
static uint64_t hash_printed(const struct rp_program *p, const struct rp_attr *attr)
{
    struct rp_chars text = {0};

    rp_attr_print(p, attr, &text);
    uint64_t hash = hash_raw_text(text.at ? text.at : "", text.n);
    rp_chars_release(&text);
    return hash;
}

/* Hashes six digits, because text keeps no more. */
static uint64_t hash_float(double value)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%g", value);

    return hash_bytes(text, (size_t)n);
}

/* A value has the same hash whichever file it comes from. */
uint64_t rp_attr_hash(const struct rp_program *p, const struct rp_attr *attr)
{
    uint64_t content;

    if (attr->type == RP_VALUE_INTS) /* most attributes are */
        return hash_ints(0, attr->ints, attr->n);
    if (attr->key == RP_ATTR_ROOT)
        return 1;
    switch ((enum rp_value_type)attr->type) {
    case RP_VALUE_WIRE:
        return 0;
    case RP_VALUE_FLAG:
    case RP_VALUE_INT:
        return mix(1, (uint64_t)attr->number);
    case RP_VALUE_FLOAT:
        return hash_float(attr->real);
    case RP_VALUE_STRING:
        return hash_bytes(attr->at, attr->n);
    case RP_VALUE_TEXT:
    case RP_VALUE_WORD:
        return hash_raw_text(attr->at, attr->n);
    case RP_VALUE_CONFIG:
        return config_hash(attr->at, attr->n, &content) ? content
                                                        : hash_raw_text(attr->at, attr->n);
    case RP_VALUE_INTS:
    case RP_VALUE_PAIRS:
    case RP_VALUE_SLICES:
    case RP_VALUE_PADDING:
    case RP_VALUE_CONV_DIMS:
        return hash_ints(0, attr->ints, attr->n);
    case RP_VALUE_WORDS:
        return hash_words(attr);
    case RP_VALUE_MAP:
        return hash_map(attr);
    case RP_VALUE_WINDOW:
        return hash_window(attr);
    case RP_VALUE_GROUPS:
        return hash_groups(attr->groups);
    case RP_VALUE_ALIASES:
        return hash_aliases(attr);
    case RP_VALUE_SHARDING:
        return hash_sharding(attr->sharding);
    case RP_VALUE_OPS:
    case RP_VALUE_SHAPES:
        return hash_printed(p, attr);
    }
    return 0;
}

static uint64_t hash_op_attrs(const struct hasher *h, uint32_t op)
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
            key = hash_bytes(rp_program_text(p, attr->key), rp_strtab_len(&p->strings, attr->key));
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
        hash = mix(hash, hash_bytes(rp_program_text(p, p->foreign.at[op]),
                                    rp_strtab_len(&p->strings, p->foreign.at[op])));
    h->out->opcode[op] = hash;
    hash = mix(hash, h->out->shape[p->shape.at[op]]);
    if (code == RP_OP_CONSTANT)
        hash = mix(hash, hash_literal(h, op));
    else if (code == RP_OP_GET_TUPLE_ELEMENT)
        hash = mix(hash, (uint64_t)p->value.at[op]);
    hash = mix(hash, hash_op_attrs(h, op));
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

/* Goes backwards, so that the uses of a get-tuple-element are complete when they are passed to its
   operand. */
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

/* Dead computations count too, as a multiset, because a change in them is a change of the
   module. */
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
    RP_TRY(rp_err_need(out->op && out->computation && out->reachable && out->local && out->opcode &&
                           out->shape && h.key && h.opcode && h.uses && h.order,
                       err, "hashing a program"));
    RP_TRY(rp_program_call_order(p, arena, &calls, err));
    /* The hashes of keys, opcodes and shapes. */
    for (uint32_t i = 0; i < RP_ATTR_COUNT; i++)
        h.key[i] = hash_bytes(known_keys[i], strlen(known_keys[i]));
    for (uint32_t i = 0; i < RP_OP_COUNT; i++)
        h.opcode[i] = hash_bytes(rp_op_info[i].name, strlen(rp_op_info[i].name));
    for (uint32_t i = 0; i < h.p->shapes.n; i++)
        h.out->shape[i] = hash_shape(&h, i);
    for (size_t i = 0; i < p->computations.n; i++)
        RP_TRY(hash_computation(&h, calls[i], err));
    hash_program(&h, calls);
    return RP_OK;
}
