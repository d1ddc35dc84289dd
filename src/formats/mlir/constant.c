/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads constants of MLIR as literals: "dense<[[1, 2], [3, 4]]>" stays text; "dense<"0x00FF...">"
 * holds the bytes, "dense_resource<name>" names bytes at the end of the file. If a large array has
 * one value for all elements, it becomes a broadcast of a scalar.
 */
#include "formats/mlir/bytecode.h"
#include "program/literal.h"
#include "program/opcodes.h"

#include <string.h>

/* Decodes "0x00FF" to bytes in file order; false for any other text. */
static bool decode_bytes(struct rp_mlir *r, const char *s, const char *end, struct rp_literal *out)
{
    size_t n = (size_t)(end - s) / 2;
    char *bytes = rp_arena_alloc(&r->p->arena, n + 1, 1);

    if ((end - s) % 2)
        return false;
    for (size_t i = 0; bytes && i < n; i++) {
        int32_t byte = rp_hex_number(s + 2 * i, 2);

        if (byte < 0)
            return false;
        bytes[i] = (char)byte;
    }
    out->at = bytes;
    out->n = n;
    out->form = RP_LITERAL_RAW;
    return bytes != NULL;
}

/* Checks that the bytes are those of all elements, or of one element for all, which sets *splat. */
static enum rp_code fit_bytes(struct rp_mlir *r, const char *where, struct rp_literal *literal,
                              bool *splat)
{
    unsigned elem = r->p->shapes.at[literal->shape].elem;
    size_t unit = rp_literal_unit(elem), n = (size_t)rp_shape_elements(r->p, literal->shape);
    const char *at = literal->at;
    bool one = literal->n == unit && n > 1;
    bool packed = elem == RP_ELEM_PRED && n > 8 && !one && literal->n == (n + 7) / 8;

    if (literal->n == unit * n)
        return RP_OK;
    if (!one && !packed)
        return RP_MLIR_FAIL(r, where, "a constant has %zu bytes instead of %zu", literal->n,
                            unit * n);
    *splat = one && n > RP_LITERAL_REPEAT;
    if (*splat)
        return RP_OK;
    char *all = rp_arena_alloc(&r->p->arena, unit * n + 1, 8);
    RP_TRY(rp_err_need(all, r->err, "reading a constant"));
    if (packed) {
        /* Truth values become bytes; older versions of MLIR pack eight into a byte. */
        for (size_t i = 0; i < n; i++)
            all[i] = (char)((unsigned char)at[i / 8] >> i % 8 & 1);
    }
    for (size_t i = 0; !packed && i < n; i++)
        memcpy(all + i * unit, at, unit);
    literal->at = all;
    literal->n = unit * n;
    return RP_OK;
}

/* ---- resources ---- */

/* Finds the bytes that a name stands for in "{-# dialect_resources: ... #-}". The first four bytes
   there are an alignment. */
static bool find_resource(struct rp_mlir *r, struct rp_slice name, struct rp_literal *out)
{
    size_t n = (size_t)(r->end - r->begin);
    const char *s = r->resources ? r->resources : memmem(r->begin, n, "{-#", 3);

    out->form = RP_LITERAL_RAW;
    r->resources = s = s ? s : r->end;
    while (s < r->end && (s = memmem(s, (size_t)(r->end - s), name.at, name.n))) {
        const char *to = s + name.n;
        while (to < r->end && (*to == ' ' || *to == ':'))
            to++;
        if (!rp_mlir_word_char(s[-1]) && r->end - to > 12 && memcmp(to, "\"0x", 3) == 0) {
            const char *end = memchr(to + 3, '"', (size_t)(r->end - to - 3));

            return end && end - to >= 11 && decode_bytes(r, to + 11, end, out);
        }
        s = to;
    }
    return false;
}

/* Reads "resource<name>" after "dense_"; if the file has no such name, its values were left out. */
static enum rp_code resource_literal(struct rp_mlir *r, const char *s, const char *end,
                                     struct rp_literal *literal, bool *splat)
{
    struct rp_slice name = {s, (uint32_t)(end - s), 0};
    struct rp_literal found = *literal;

    if (name.n > 1 && s[0] == '"')
        name = (struct rp_slice){s + 1, name.n - 2, 0};
    if (!name.n || name.n > 4096 || !find_resource(r, name, &found))
        return RP_OK;
    *literal = found;
    return fit_bytes(r, s, literal, splat);
}

static enum rp_code dense_literal(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                                  struct rp_literal *literal, bool *splat)
{
    const char *s = memmem(attrs->at, (size_t)(attrs->end - attrs->at), "dense", 5);

    if (!rp_literal_unit(r->p->shapes.at[literal->shape].elem))
        return RP_OK;
    if (attrs->named)
        return rp_bc_find_bytes(r, attrs, literal) ? fit_bytes(r, attrs->at, literal, splat)
                                                   : RP_OK;
    const char *open = s ? memchr(s, '<', (size_t)(attrs->end - s)) : NULL;
    const char *end = open ? rp_mlir_bracket_end(r, open) : NULL;
    if (!end || end > attrs->end)
        return RP_OK;
    if (open - s > 5)
        return resource_literal(r, open + 1, end - 1, literal, splat);
    s = open + 1;
    end--;
    if (end - s > 4 && memcmp(s, "\"0x", 3) == 0 && end[-1] == '"')
        return decode_bytes(r, s + 3, end - 1, literal)
                   ? fit_bytes(r, s, literal, splat)
                   : RP_MLIR_FAIL(r, s, "expected hexadecimal digits");
    *splat = !memchr(s, '[', (size_t)(end - s)) &&
             rp_shape_elements(r->p, literal->shape) > RP_LITERAL_REPEAT;
    literal->at = s;
    literal->n = (size_t)(end - s);
    literal->form = RP_LITERAL_MLIR;
    return RP_OK;
}

enum rp_code rp_mlir_constant(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                              struct rp_new_op *op, uint32_t *scalar)
{
    struct rp_literal literal = {.shape = op->shape, .form = RP_LITERAL_NONE, .at = ""};
    struct rp_new_op one = {.code = RP_OP_CONSTANT, .value = (int64_t)r->p->literals.n};
    bool splat = false;

    *scalar = RP_NONE;
    RP_TRY(dense_literal(r, attrs, &literal, &splat));
    op->value = (int64_t)r->p->literals.n;
    if (splat && literal.form != RP_LITERAL_NONE) {
        RP_TRY(rp_program_array(r->p, r->p->shapes.at[op->shape].elem, NULL, NULL, 0, 0, &one.shape,
                                r->err));
        RP_TRY(rp_mlir_add_implicit(r, &one, NULL, 0, scalar));
        literal.shape = one.shape;
        op->code = RP_OP_BROADCAST;
        op->value = 0;
    }
    return rp_vec_push(&r->p->literals, literal, r->err);
}
