/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes are interned, so that two are compared by their ids. The map keys are hashes of the
 * content; if two shapes share a hash, the later one gets a changed hash, and comparing contents
 * decides.
 */
#include "program/program.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    uint8_t bits, len;
} elems[RP_ELEM_COUNT] = {
#define RP_ELEM(id, name, number, bits) [number] = {name, bits, sizeof(name) - 1},
#include "program/elements.def"
#undef RP_ELEM
};

const char *rp_elem_name(unsigned elem)
{
    return elem < RP_ELEM_COUNT ? elems[elem].name : NULL;
}

unsigned rp_elem_bits(unsigned elem)
{
    return elem < RP_ELEM_COUNT ? elems[elem].bits : 0;
}

unsigned rp_elem_find(const char *name, size_t len)
{
    for (unsigned i = 1; i < RP_ELEM_COUNT; i++)
        if (elems[i].name && elems[i].len == len && memcmp(elems[i].name, name, len) == 0)
            return i;
    return RP_ELEM_INVALID;
}

/* Whether a layout is the default, row-major: "{2,1,0}". */
static bool is_default_layout(const char *s, size_t rank)
{
    char want[32];

    if (*s++ != '{')
        return false;
    while (rank--) {
        int len = snprintf(want, sizeof want, rank ? "%zu," : "%zu", rank);

        if (strncmp(s, want, (size_t)len) != 0)
            return false;
        s += len;
    }
    return *s == '}' && !s[1];
}

static bool is_same_shape(const struct rp_program *p, const struct rp_op_shape *a,
                          const struct rp_op_shape *b, const int64_t *dims, const uint8_t *dynamic,
                          const uint32_t *parts)
{
    if (a->elem != b->elem || a->n != b->n || a->layout != b->layout || a->flags != b->flags)
        return false;
    if (a->elem == RP_ELEM_TUPLE)
        return !a->n || memcmp(p->parts.at + a->first, parts, a->n * sizeof *parts) == 0;
    if (a->n && memcmp(p->dims.at + a->first, dims, a->n * sizeof *dims) != 0)
        return false;
    return !(a->flags & RP_SHAPE_DYNAMIC) || !dynamic ||
           memcmp(p->dim_dynamic.at + a->first, dynamic, a->n) == 0;
}

/* Finds or adds the shape; returns its id and whether it is new. */
static enum rp_code shape_intern(struct rp_program *p, uint64_t hash, struct rp_op_shape *shape,
                                 const int64_t *dims, const uint8_t *dynamic, const uint32_t *parts,
                                 uint32_t *id, bool *fresh, struct rp_err *err)
{
    for (;; hash = rp_hash_u64(hash)) {
        uint32_t next = (uint32_t)p->shapes.n;

        RP_TRY(rp_map_intern(&p->shape_map, hash, next, id, err));
        *fresh = *id == next;
        if (*fresh) { /* with room for what belongs to it: there is no shape without that */
            RP_TRY(rp_vec_reserve(&p->parts, parts ? shape->n : 0, err));
            RP_TRY(rp_vec_reserve(&p->dims, parts ? 0 : shape->n, err));
            RP_TRY(rp_vec_reserve(&p->dim_dynamic, parts ? 0 : shape->n, err));
            return rp_vec_push(&p->shapes, *shape, err);
        }
        if (is_same_shape(p, &p->shapes.at[*id], shape, dims, dynamic, parts))
            return RP_OK;
    }
}

enum rp_code rp_program_array(struct rp_program *p, unsigned elem, const int64_t *dims,
                              const uint8_t *dynamic, size_t n, uint32_t layout, uint32_t *id,
                              struct rp_err *err)
{
    struct rp_op_shape shape = {
        .elem = (uint8_t)elem, .n = (uint32_t)n, .first = (uint32_t)p->dims.n, .layout = layout};
    bool fresh;

    if (elem == RP_ELEM_TUPLE)
        return rp_err_set(err, RP_FORMAT, "a tuple where there must be an array");
    /* Whether the number of the array's elements, or of their bits, fits into an int64. */
    int64_t count = rp_elem_bits(elem) ? (int64_t)rp_elem_bits(elem) : 1;
    for (size_t i = 0; i < n; i++)
        if (dims[i] > 0 && __builtin_mul_overflow(count, dims[i], &count))
            return rp_err_set(err, RP_LIMIT, "a shape of more than 2^63 bits");
    for (size_t i = 0; i < n; i++)
        if (dims[i] < 0 || (dynamic && dynamic[i]))
            shape.flags |= RP_SHAPE_DYNAMIC;
    if (!layout || is_default_layout(rp_program_text(p, layout), n))
        shape.flags |= RP_SHAPE_DEFAULT_LAYOUT;
    uint64_t hash = rp_hash_mix(rp_hash_bytes(dims, n * sizeof *dims) ^ elem,
                                (uint64_t)layout << 16 | shape.flags | UINT64_C(1) << 60);
    RP_TRY(shape_intern(p, hash, &shape, dims, dynamic, NULL, id, &fresh, err));
    for (size_t i = 0; fresh && i < n; i++) {
        p->dims.at[p->dims.n++] = dims[i];
        p->dim_dynamic.at[p->dim_dynamic.n++] = dims[i] < 0 || (dynamic && dynamic[i]);
    }
    return RP_OK;
}

enum rp_code rp_program_tuple(struct rp_program *p, const uint32_t *parts, size_t n, uint32_t *id,
                              struct rp_err *err)
{
    struct rp_op_shape shape = {.elem = RP_ELEM_TUPLE,
                                .flags = RP_SHAPE_DEFAULT_LAYOUT,
                                .n = (uint32_t)n,
                                .first = (uint32_t)p->parts.n};
    uint64_t hash = rp_hash_bytes(parts, n * sizeof *parts) ^ UINT64_C(0x746f75706c65);
    uint32_t made; /* the caller may pass the same place for its id and its part */
    bool fresh;

    uint64_t leaves = 0;
    for (size_t i = 0; i < shape.n; i++) {
        const struct rp_op_shape *part = &p->shapes.at[parts[i]];

        leaves += part->depth ? part->leaves : 1;
        shape.depth = part->depth > shape.depth ? part->depth : shape.depth;
    }
    if (++shape.depth > RP_SHAPE_DEPTH)
        return rp_err_set(err, RP_LIMIT, "tuples are nested more than %d deep", RP_SHAPE_DEPTH);
    if (leaves > RP_SHAPE_LEAVES)
        return rp_err_set(err, RP_LIMIT, "a tuple of more than %u arrays", RP_SHAPE_LEAVES);
    shape.leaves = (uint32_t)leaves;
    RP_TRY(shape_intern(p, hash, &shape, NULL, NULL, parts, &made, &fresh, err));
    for (size_t i = 0; fresh && i < n; i++)
        p->parts.at[p->parts.n++] = parts[i];
    *id = made;
    return RP_OK;
}

/* The parts of a tuple precede it in the table, so this ends. */
int64_t rp_shape_elements(const struct rp_program *p, uint32_t shape)
{
    const struct rp_op_shape *s = &p->shapes.at[shape];
    int64_t n = 1, sum = 0;

    if (s->elem == RP_ELEM_TUPLE) {
        for (uint32_t i = 0; i < s->n; i++)
            if (__builtin_add_overflow(sum, rp_shape_elements(p, p->parts.at[s->first + i]), &sum))
                return INT64_MAX;
        return sum;
    }
    if (!rp_elem_bits(s->elem))
        return 0;
    for (uint32_t i = 0; i < s->n; i++) {
        int64_t dim = p->dims.at[s->first + i];

        n *= dim < 0 ? 1 : dim;
    }
    return n;
}

int64_t rp_shape_bytes(const struct rp_program *p, uint32_t shape)
{
    const struct rp_op_shape *s = &p->shapes.at[shape];
    int64_t sum = 0;

    if (s->elem != RP_ELEM_TUPLE)
        return (rp_shape_elements(p, shape) * (int64_t)rp_elem_bits(s->elem) + 7) / 8;
    for (uint32_t i = 0; i < s->n; i++)
        if (__builtin_add_overflow(sum, rp_shape_bytes(p, p->parts.at[s->first + i]), &sum))
            return INT64_MAX;
    return sum;
}

struct shape_writer {
    char *out;
    size_t cap, n;
};

static void shape_put(struct shape_writer *w, const char *text)
{
    for (; *text; text++, w->n++)
        if (w->n + 1 < w->cap)
            w->out[w->n] = *text;
}

static void shape_put_shape(struct shape_writer *w, const struct rp_program *p, uint32_t shape,
                            bool layout)
{
    const struct rp_op_shape *s = &p->shapes.at[shape];

    if (s->elem == RP_ELEM_TUPLE) {
        shape_put(w, "(");
        for (uint32_t i = 0; i < s->n; i++) {
            if (i)
                shape_put(w, ", ");
            shape_put_shape(w, p, p->parts.at[s->first + i], layout);
        }
        shape_put(w, ")");
        return;
    }
    shape_put(w, rp_elem_name(s->elem));
    if (s->flags & RP_SHAPE_UNKNOWN)
        return;
    shape_put(w, "[");
    char number[32];
    for (uint32_t i = 0; i < s->n; i++) {
        int64_t dim = p->dims.at[s->first + i];

        if (i)
            shape_put(w, ",");
        if (dim < 0) {
            shape_put(w, "?");
            continue;
        }
        snprintf(number, sizeof number, "%s%lld", p->dim_dynamic.at[s->first + i] ? "<=" : "",
                 (long long)dim);
        shape_put(w, number);
    }
    shape_put(w, "]");
    if (layout && s->layout)
        shape_put(w, rp_program_text(p, s->layout));
}

size_t rp_shape_text(const struct rp_program *p, uint32_t shape, bool layout, char *out, size_t cap)
{
    struct shape_writer w = {out, cap, 0};

    shape_put_shape(&w, p, shape, layout);
    if (cap)
        out[w.n < cap ? w.n : cap - 1] = '\0';
    return w.n;
}
