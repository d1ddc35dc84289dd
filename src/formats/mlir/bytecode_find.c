/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of an operation in MLIR bytecode by name. Names are those of StableHLO; VHLO has some
 * of its structures as several attributes. An attribute that the file has as text is searched as
 * text.
 */
#include "formats/mlir/bytecode_value.h"

#include <stdio.h>
#include <string.h>

static bool find_named(const struct rp_mlir_attrs *attrs, const char *key, uint64_t *value)
{
    size_t n = strlen(key);

    for (size_t i = 0; i < attrs->nall; i++)
        if (attrs->named[i].name.n == n && memcmp(attrs->named[i].name.at, key, n) == 0) {
            *value = attrs->named[i].value;
            return true;
        }
    return false;
}

/* Takes the text of an attribute that the file has as text. */
static bool text_of(struct rp_bytecode *b, uint64_t index, struct rp_mlir_attrs *out)
{
    struct rp_bc_cursor c = {NULL, NULL};
    uint64_t code;

    if (rp_bc_open(b, false, index, &c, &code) != RP_BC_TEXT || b->code != RP_OK)
        return false;
    *out = (struct rp_mlir_attrs){.at = (const char *)c.at, .end = (const char *)c.end};
    return true;
}

/* ---- integers and words ---- */

static bool attr_ints(struct rp_bytecode *b, uint64_t index, struct rp_mlir_ints *out)
{
    struct rp_bc_data data;
    struct rp_bc_number number;
    struct rp_bc_cursor c = {NULL, NULL};
    struct rp_mlir_attrs text;
    uint64_t code;

    out->n = 0;
    if (text_of(b, index, &text))
        rp_mlir_ints_in(text.at, text.end, out);
    else if (rp_bc_data(b, index, &data))
        return rp_bc_data_ints(&data, out);
    else if (rp_bc_number(b, index, &number))
        out->at[out->n++] = number.value;
    else if (rp_bc_open(b, false, index, &c, &code) == RP_BC_STABLEHLO && code == 1)
        out->at[out->n++] = rp_bc_signed(b, &c); /* the handle of a channel */
    else
        for (size_t n = rp_bc_array(b, index, &c); n && out->n < RP_MLIR_INTS && b->code == RP_OK;
             n--)
            if (rp_bc_number(b, rp_bc_varint(b, &c), &number))
                out->at[out->n++] = number.value;
    return b->code == RP_OK;
}

bool rp_bc_find_ints(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs, const char *key,
                     struct rp_mlir_ints *out)
{
    struct rp_bytecode *b = r->bytecode;
    struct rp_mlir_attrs text;
    struct rp_bc_lists lists;
    const char *name;
    uint64_t value;

    if (find_named(attrs, key, &value))
        return attr_ints(b, value, out);
    for (size_t i = 0; i < attrs->nnamed && b->code == RP_OK; i++) {
        value = attrs->named[i].value;
        if (rp_bc_lists(b, value, &lists))
            while ((name = rp_bc_next_list(b, &lists, out)))
                if (strcmp(name, key) == 0)
                    return b->code == RP_OK;
        if (text_of(b, value, &text) &&
            rp_mlir_find_ints(r, &text, (const char *const[]){key, NULL}, out))
            return true;
    }
    out->n = 0;
    return false;
}

bool rp_bc_has_word(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs, const char *word)
{
    struct rp_bytecode *b = r->bytecode;
    struct rp_mlir_attrs text;
    const char *of, *own;

    for (size_t i = 0; i < attrs->nnamed; i++)
        if ((rp_bc_word(b, attrs->named[i].value, &of, &own) && strcmp(own, word) == 0) ||
            (text_of(b, attrs->named[i].value, &text) &&
             rp_mlir_find_word(r, &text, (const char *const[]){word, NULL})))
            return true;
    return false;
}

enum rp_code rp_bc_find_groups(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                               const char *key, struct rp_mlir_ints *out, size_t *each)
{
    struct rp_bytecode *b = r->bytecode;
    struct rp_bc_data data;
    uint64_t value;

    *each = 0;
    if (!find_named(attrs, key, &value) || !rp_bc_data(b, value, &data))
        return b->code;
    if (data.type.kind != RP_BC_TENSOR || data.type.n != 2 || !data.elements)
        return RP_OK;
    if (!rp_bc_data_ints(&data, out))
        out->n = RP_MLIR_INTS; /* too many */
    *each = (size_t)data.type.dims[1];
    return RP_OK;
}

/* ---- convolutions ---- */

/* Appends "b01f" from the positions of its dimensions. */
static bool put_labels(const struct rp_mlir_ints *dims, const char *letters, char *out, size_t cap)
{
    size_t rank = dims[2].n + 2, n = strlen(out);

    if (dims[2].n > 9 || n + rank >= cap)
        return false;
    memset(out + n, '?', rank);
    out[n + rank] = '\0';
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < dims[k].n; i++)
            if (dims[k].at[i] >= 0 && dims[k].at[i] < (int64_t)rank)
                out[n + (size_t)dims[k].at[i]] = k == 2 ? (char)('0' + i) : letters[k];
    return true;
}

/* Reads a structure of StableHLO: for each side, two numbers and a list. */
static bool read_dims(struct rp_bytecode *b, struct rp_bc_cursor *c, struct rp_mlir_ints *dims)
{
    for (int k = 0; k < 3; k++) {
        size_t n = k == 2 ? rp_bc_count(b, c) : 1;
        for (dims[k].n = 0; dims[k].n < n && n < RP_MLIR_INTS && b->code == RP_OK;)
            dims[k].at[dims[k].n++] = rp_bc_signed(b, c);
    }
    return b->code == RP_OK && dims[2].n < 10;
}

bool rp_bc_find_labels(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs, char *out,
                       size_t cap)
{
    static const char *const keys[3][3] = {
        {"input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"},
        {"kernel_input_feature_dimension", "kernel_output_feature_dimension",
         "kernel_spatial_dimensions"},
        {"output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"}};
    static const char *const letters[] = {"bf", "io", "bf"}, *const joints[] = {"", "_", "->"};
    struct rp_bytecode *b = r->bytecode;
    struct rp_bc_cursor c = {NULL, NULL};
    struct rp_mlir_ints dims[3];
    uint64_t value, code = 0;
    bool whole = find_named(attrs, "dimension_numbers", &value) &&
                 rp_bc_open(b, false, value, &c, &code) == RP_BC_STABLEHLO && code == 4;

    out[0] = '\0';
    for (int side = 0; side < 3; side++) {
        snprintf(out + strlen(out), cap - strlen(out), "%s", joints[side]);
        if (whole && !read_dims(b, &c, dims))
            return false;
        for (int k = 0; !whole && k < 3; k++)
            if (!rp_bc_find_ints(r, attrs, keys[side][k], &dims[k]))
                return false;
        if (!put_labels(dims, letters[side], out, cap))
            return false;
    }
    return true;
}

/* ---- strings, functions and bytes ---- */

struct rp_slice rp_bc_find_string(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                                  const char *key)
{
    uint64_t value;

    return find_named(attrs, key, &value) ? rp_bc_attr_string(r->bytecode, value)
                                          : (struct rp_slice){0};
}

enum rp_code rp_bc_find_text(struct rp_mlir *r, const struct rp_mlir_attrs *attrs, const char *key,
                             struct rp_slice *out)
{
    uint64_t value;

    return find_named(attrs, key, &value) ? rp_bc_text(r, value, out) : RP_OK;
}

enum rp_code rp_bc_called_list(struct rp_mlir *r, const struct rp_mlir_attrs *attrs)
{
    struct rp_bytecode *b = r->bytecode;
    struct rp_bc_cursor c;
    uint64_t value;
    size_t n = find_named(attrs, "called_computations", &value) ? rp_bc_array(b, value, &c) : 0;

    for (size_t i = 0; i < n && b->code == RP_OK; i++) {
        struct rp_slice text = rp_bc_attr_string(b, rp_bc_varint(b, &c));
        uint32_t name;

        if (!text.at)
            continue;
        RP_TRY(rp_program_string(r->p, text.at, text.n, &name, r->err));
        RP_TRY(rp_mlir_add_call(r, name));
    }
    return b->code;
}

bool rp_bc_find_bytes(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                      struct rp_literal *out)
{
    struct rp_bc_data data;
    uint64_t value;

    if (!find_named(attrs, "value", &value) || !rp_bc_data(r->bytecode, value, &data) ||
        data.list || !data.raw.at)
        return false;
    out->at = (const char *)data.raw.at;
    out->n = (size_t)(data.raw.end - data.raw.at);
    out->form = RP_LITERAL_RAW;
    return true;
}
