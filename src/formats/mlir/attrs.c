/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of StableHLO as HLO attributes, so that counting, hashing and printing need one
 * language only. Both forms are read: the pretty form "dims = [1, 0]" and the generic form
 * "<{permutation = array<i64: 1, 0>}>". Lists are found by their key and read as the integers in
 * them. Operations that HLO does not have keep the text.
 */
#include "formats/mlir/mlir.h"

#include "base/text.h"
#include "program/window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *rp_mlir_find_key(const struct rp_mlir_text *text, const char *key)
{
    size_t n = strlen(key);

    for (const char *at = text->at; at < text->end;) {
        const char *found = memmem(at, (size_t)(text->end - at), key, n), *s;

        if (!found)
            return NULL;
        at = s = found + n;
        if (text->region && found >= text->region && found < text->region_end) {
            at = text->region_end;
            continue;
        }
        while (s < text->end && *s == ' ')
            s++;
        if ((found == text->at || !rp_mlir_word_char(found[-1])) && s < text->end && *s == '=')
            return s + 1;
    }
    return NULL;
}

/* The end of the value at s: a bracket with what is in it, or a word. */
static const char *value_end(const struct rp_mlir *r, const struct rp_mlir_text *text,
                             const char *s)
{
    const char *to;

    while (s < text->end && (rp_mlir_word_char(*s) || *s == '#'))
        s++;
    if (s >= text->end || (*s != '[' && *s != '<' && *s != '{'))
        return s;
    to = rp_mlir_bracket_end(r, s);
    return to && to < text->end ? to : text->end;
}

void rp_mlir_ints_in(const char *s, const char *end, struct rp_mlir_ints *out)
{
    bool typed = s && end - s > 7 && memcmp(s, "array<", 6) == 0;
    const char *colon = typed ? memchr(s, ':', (size_t)(end - s)) : NULL;

    out->n = 0;
    if (typed && !colon)
        return; /* "array<i64>" is an empty one */
    for (s = colon ? colon : s; s < end && out->n < RP_MLIR_INTS; s++) {
        int64_t v = 0;
        bool minus = *s == '-';
        const char *from = s + minus;

        if (end - s >= 4 && memcmp(s, "true", 4) == 0) {
            out->at[out->n++] = 1;
            s += 3;
        } else if (end - s >= 5 && memcmp(s, "false", 5) == 0) {
            out->at[out->n++] = 0;
            s += 4;
        } else if (from < end && *from >= '0' && *from <= '9') {
            for (s = from; s < end && *s >= '0' && *s <= '9' && v < INT64_MAX / 20; s++)
                v = v * 10 + (*s - '0');
            s--;
            out->at[out->n++] = minus ? -v : v;
        }
    }
}

/* The integers of the first of these keys that is there; keys end with NULL. */
static bool find_ints(const struct rp_mlir *r, const struct rp_mlir_text *text,
                      const char *const *keys, struct rp_mlir_ints *out)
{
    out->n = 0;
    for (; *keys; keys++) {
        const char *s = rp_mlir_find_key(text, *keys);

        while (s && s < text->end && *s == ' ')
            s++;
        if (!s)
            continue;
        rp_mlir_ints_in(s, value_end(r, text, s), out);
        return true;
    }
    return false;
}

/* ---- adding ---- */

static enum rp_code add_ints_attr(struct rp_mlir *r, struct rp_attr attr)
{
    return rp_program_add_attr(r->p, attr, r->err);
}

static enum rp_code add_listed(struct rp_mlir *r, uint32_t key, const struct rp_mlir_ints *list)
{
    return add_ints_attr(r, rp_attr_ints(r->p, key, list->at, list->n));
}

void rp_mlir_broadcast_dims(const struct rp_mlir *r, const struct rp_mlir_text *text,
                            struct rp_mlir_ints *out)
{
    static const char *const words[] = {"dims", "broadcast_dimensions", NULL};

    find_ints(r, text, words, out);
}

/* ---- one list to one attribute ---- */

enum attr_form { LIST, NUMBER, FLAG, COUNT /* left out where it is 1 */ };

static const struct row {
    uint16_t code, key;
    uint8_t form;
    const char *words[4]; /* of both forms; the last is NULL */
} rows[] = {
    {RP_OP_BROADCAST, RP_ATTR_DIMENSIONS, LIST, {"dims", "broadcast_dimensions"}},
    {RP_OP_TRANSPOSE, RP_ATTR_DIMENSIONS, LIST, {"dims", "permutation"}},
    {RP_OP_REVERSE, RP_ATTR_DIMENSIONS, LIST, {"dims", "dimensions"}},
    {RP_OP_REDUCE, RP_ATTR_DIMENSIONS, LIST, {"dimensions"}},
    {RP_OP_MAP, RP_ATTR_DIMENSIONS, LIST, {"dimensions"}},
    {RP_OP_CONCATENATE, RP_ATTR_DIMENSIONS, LIST, {"dim", "dimension"}},
    {RP_OP_SORT, RP_ATTR_DIMENSIONS, LIST, {"dimension"}},
    {RP_OP_SORT, RP_ATTR_IS_STABLE, FLAG, {"is_stable"}},
    {RP_OP_IOTA, RP_ATTR_IOTA_DIMENSION, NUMBER, {"dim", "iota_dimension"}},
    {RP_OP_DYNAMIC_SLICE, RP_ATTR_DYNAMIC_SLICE_SIZES, LIST, {"sizes", "slice_sizes"}},
    {RP_OP_GATHER, RP_ATTR_OFFSET_DIMS, LIST, {"offset_dims"}},
    {RP_OP_GATHER, RP_ATTR_COLLAPSED_SLICE_DIMS, LIST, {"collapsed_slice_dims"}},
    {RP_OP_GATHER, RP_ATTR_OPERAND_BATCHING_DIMS, LIST, {"operand_batching_dims"}},
    {RP_OP_GATHER, RP_ATTR_START_INDICES_BATCHING_DIMS, LIST, {"start_indices_batching_dims"}},
    {RP_OP_GATHER, RP_ATTR_START_INDEX_MAP, LIST, {"start_index_map"}},
    {RP_OP_GATHER, RP_ATTR_INDEX_VECTOR_DIM, NUMBER, {"index_vector_dim"}},
    {RP_OP_GATHER, RP_ATTR_SLICE_SIZES, LIST, {"slice_sizes"}},
    {RP_OP_GATHER, RP_ATTR_INDICES_ARE_SORTED, FLAG, {"indices_are_sorted"}},
    {RP_OP_SCATTER, RP_ATTR_UPDATE_WINDOW_DIMS, LIST, {"update_window_dims"}},
    {RP_OP_SCATTER, RP_ATTR_INSERTED_WINDOW_DIMS, LIST, {"inserted_window_dims"}},
    {RP_OP_SCATTER, RP_ATTR_INPUT_BATCHING_DIMS, LIST, {"input_batching_dims"}},
    {RP_OP_SCATTER, RP_ATTR_SCATTER_INDICES_BATCHING_DIMS, LIST, {"scatter_indices_batching_dims"}},
    {RP_OP_SCATTER, RP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, LIST, {"scatter_dims_to_operand_dims"}},
    {RP_OP_SCATTER, RP_ATTR_INDEX_VECTOR_DIM, NUMBER, {"index_vector_dim"}},
    {RP_OP_SCATTER, RP_ATTR_INDICES_ARE_SORTED, FLAG, {"indices_are_sorted"}},
    {RP_OP_SCATTER, RP_ATTR_UNIQUE_INDICES, FLAG, {"unique_indices"}},
    {RP_OP_CONVOLUTION, RP_ATTR_FEATURE_GROUP_COUNT, COUNT, {"feature_group_count"}},
    {RP_OP_CONVOLUTION, RP_ATTR_BATCH_GROUP_COUNT, COUNT, {"batch_group_count"}},
    {RP_OP_TOPK, RP_ATTR_K, NUMBER, {"k"}},
    {RP_OP_CHOLESKY, RP_ATTR_LOWER, FLAG, {"lower"}},
    {RP_OP_TRIANGULAR_SOLVE, RP_ATTR_LEFT_SIDE, FLAG, {"left_side"}},
    {RP_OP_TRIANGULAR_SOLVE, RP_ATTR_LOWER, FLAG, {"lower"}},
    {RP_OP_TRIANGULAR_SOLVE, RP_ATTR_UNIT_DIAGONAL, FLAG, {"unit_diagonal"}},
    {RP_OP_FFT, RP_ATTR_FFT_LENGTH, LIST, {"length", "fft_length"}},
    {RP_OP_ALL_GATHER, RP_ATTR_DIMENSIONS, LIST, {"all_gather_dim"}},
    {RP_OP_REDUCE_SCATTER, RP_ATTR_DIMENSIONS, LIST, {"scatter_dimension"}},
    {RP_OP_ALL_TO_ALL, RP_ATTR_DIMENSIONS, LIST, {"split_dimension"}},
    {RP_OP_BATCH_NORM_TRAINING, RP_ATTR_FEATURE_INDEX, NUMBER, {"feature_index"}},
    {RP_OP_BATCH_NORM_INFERENCE, RP_ATTR_FEATURE_INDEX, NUMBER, {"feature_index"}},
    {RP_OP_BATCH_NORM_GRAD, RP_ATTR_FEATURE_INDEX, NUMBER, {"feature_index"}},
    {RP_OP_SCAN, RP_ATTR_DIMENSIONS, LIST, {"dimension"}},
    {RP_OP_SCAN, RP_ATTR_IS_REVERSE, FLAG, {"is_reverse"}},
    {RP_OP_RAGGED_DOT, RP_ATTR_LHS_RAGGED_DIMS, LIST, {"lhs_ragged_dimensions"}},
    {RP_OP_RAGGED_DOT, RP_ATTR_RHS_GROUP_DIMS, LIST, {"rhs_group_dimensions"}},
    {RP_OP_GET_DIMENSION_SIZE, RP_ATTR_DIMENSIONS, LIST, {"dim", "dimension"}},
    {RP_OP_SET_DIMENSION_SIZE, RP_ATTR_DIMENSIONS, LIST, {"dim", "dimension"}},
};

static enum rp_code add_form_row(struct rp_mlir *r, const struct row *row,
                                 const struct rp_mlir_text *text)
{
    struct rp_mlir_ints list;

    if (!find_ints(r, text, row->words, &list))
        return RP_OK;
    if (row->form == LIST)
        return add_listed(r, row->key, &list);
    if (!list.n || (row->form == COUNT && list.at[0] == 1))
        return RP_OK;
    if (row->form == FLAG)
        return list.at[0] ? add_ints_attr(r, rp_attr_flag(row->key, true)) : RP_OK;
    return add_ints_attr(r, rp_attr_int(row->key, list.at[0]));
}

/* ---- attributes with their own syntax ---- */

/* "contracting_dims = [1] x [0]", or four lists of long names */
static enum rp_code add_dot(struct rp_mlir *r, const struct rp_mlir_text *text)
{
    static const struct {
        const char *both, *left, *right;
        uint32_t left_key, right_key;
    } lists[] = {{"contracting_dims", "lhs_contracting_dimensions", "rhs_contracting_dimensions",
                  RP_ATTR_LHS_CONTRACTING_DIMS, RP_ATTR_RHS_CONTRACTING_DIMS},
                 {"batching_dims", "lhs_batching_dimensions", "rhs_batching_dimensions",
                  RP_ATTR_LHS_BATCH_DIMS, RP_ATTR_RHS_BATCH_DIMS}};
    struct rp_mlir_ints list;

    for (size_t i = 0; i < 2; i++) {
        const char *s = rp_mlir_find_key(text, lists[i].both), *open, *to;

        if (!s) {
            if (find_ints(r, text, (const char *const[]){lists[i].left, NULL}, &list))
                RP_TRY(add_listed(r, lists[i].left_key, &list));
            if (find_ints(r, text, (const char *const[]){lists[i].right, NULL}, &list))
                RP_TRY(add_listed(r, lists[i].right_key, &list));
            continue;
        }
        for (int side = 0; side < 2; side++) {
            open = memchr(s, '[', (size_t)(text->end - s));
            to = open ? memchr(open, ']', (size_t)(text->end - open)) : NULL;
            if (!to)
                break;
            rp_mlir_ints_in(open, to, &list);
            RP_TRY(add_listed(r, side ? lists[i].right_key : lists[i].left_key, &list));
            s = to;
        }
    }
    return RP_OK;
}

const char *rp_mlir_find_word(const struct rp_mlir_text *text, const char *const *words)
{
    for (; *words; words++) {
        size_t n = strlen(*words);
        const char *at = text->at;

        while ((at = memmem(at, (size_t)(text->end - at), *words, n))) {
            if ((at == text->at || !rp_mlir_word_char(at[-1])) &&
                (at + n == text->end || !rp_mlir_word_char(at[n])))
                return *words;
            at += n;
        }
    }
    return NULL;
}

/* "GT, %a, %b, TOTALORDER"; the other types follow from the operands */
static enum rp_code add_compare(struct rp_mlir *r, const struct rp_mlir_text *text)
{
    static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT", NULL};
    static const char *const types[] = {"TOTALORDER", NULL};
    const char *direction = rp_mlir_find_word(text, directions),
               *type = rp_mlir_find_word(text, types);

    if (direction)
        RP_TRY(add_ints_attr(r, rp_attr_word(RP_ATTR_DIRECTION, direction)));
    return type ? add_ints_attr(r, rp_attr_word(RP_ATTR_TYPE, type)) : RP_OK;
}

/* "[0:32, 1:4:2]" into lists of starts, ends and steps */
static void slice_ranges(const struct rp_mlir_text *text, struct rp_mlir_ints *part)
{
    const char *s = memchr(text->at, '[', (size_t)(text->end - text->at));

    while (s && s < text->end && *s != ']' && part[0].n < RP_MLIR_INTS) {
        const char *to = s + 1;
        struct rp_mlir_ints dim;

        while (to < text->end && *to != ',' && *to != ']')
            to++;
        rp_mlir_ints_in(s + 1, to, &dim);
        for (size_t i = 0; i < 3 && dim.n; i++)
            part[i].at[part[i].n++] = i < dim.n ? dim.at[i] : 1;
        s = to;
    }
}

/* Zips three lists into triples; `usual` is the default of the last. */
static struct rp_attr add_triples(struct rp_mlir *r, uint32_t key, const struct rp_mlir_ints *part,
                                  int64_t usual)
{
    int64_t list[3 * RP_MLIR_INTS];
    size_t n = 0;

    for (size_t i = 0; i < part[0].n && i < part[1].n; i++) {
        list[n++] = part[0].at[i];
        list[n++] = part[1].at[i];
        list[n++] = i < part[2].n ? part[2].at[i] : usual;
    }
    return rp_attr_int_list(r->p, key, rp_attr_type(key), list, n);
}

static enum rp_code add_slice(struct rp_mlir *r, const struct rp_mlir_text *text)
{
    static const char *const words[3][2] = {
        {"start_indices", NULL}, {"limit_indices", NULL}, {"strides", NULL}};
    struct rp_mlir_ints part[3];

    for (int i = 0; i < 3; i++)
        find_ints(r, text, words[i], &part[i]);
    if (!part[0].n)
        slice_ranges(text, part);
    return add_ints_attr(r, add_triples(r, RP_ATTR_SLICE, part, 1));
}

/* "low = [0], high = [1], interior = [0]" */
static enum rp_code add_pad(struct rp_mlir *r, const struct rp_mlir_text *text)
{
    static const char *const words[3][3] = {{"low", "edge_padding_low", NULL},
                                            {"high", "edge_padding_high", NULL},
                                            {"interior", "interior_padding", NULL}};
    struct rp_mlir_ints part[3];

    for (int i = 0; i < 3; i++)
        find_ints(r, text, words[i], &part[i]);
    return part[0].n && part[1].n ? add_ints_attr(r, add_triples(r, RP_ATTR_PADDING, part, 0))
                                  : RP_OK;
}

/* ---- windows ---- */

struct window_lists {
    struct rp_mlir_ints size, stride, pad, lhs, rhs, reverse;
};

static int64_t window_element(const struct rp_mlir_ints *list, size_t i, int64_t absent)
{
    return i < list->n ? list->at[i] : absent;
}

static enum rp_code add_window(struct rp_mlir *r, const struct window_lists *from)
{
    struct rp_window w = {.n = from->size.n};
    bool padded = from->pad.n == 2 * from->size.n;

    if (!w.n || w.n > RP_WINDOW_DIMS)
        return RP_OK;
    for (size_t i = 0; i < w.n; i++)
        w.dim[i] = (struct rp_window_dim){.size = from->size.at[i],
                                          .stride = window_element(&from->stride, i, 1),
                                          .pad_low = padded ? from->pad.at[2 * i] : 0,
                                          .pad_high = padded ? from->pad.at[2 * i + 1] : 0,
                                          .base_dilation = window_element(&from->lhs, i, 1),
                                          .window_dilation = window_element(&from->rhs, i, 1),
                                          .reversal = window_element(&from->reverse, i, 0) != 0};
    return add_ints_attr(r, rp_attr_of_window(r->p, &w));
}

static void find_window(const struct rp_mlir *r, const struct rp_mlir_text *text,
                        struct window_lists *w)
{
    static const char *const stride[] = {"stride", "window_strides", NULL};
    static const char *const pads[] = {"pad", "padding", NULL};
    static const char *const lhs[] = {"lhs_dilate", "lhs_dilation", "base_dilations", NULL};
    static const char *const rhs[] = {"rhs_dilate", "rhs_dilation", "window_dilations", NULL};
    static const char *const reverse[] = {"reverse", "window_reversal", NULL};

    find_ints(r, text, stride, &w->stride);
    find_ints(r, text, pads, &w->pad);
    find_ints(r, text, lhs, &w->lhs);
    find_ints(r, text, rhs, &w->rhs);
    find_ints(r, text, reverse, &w->reverse);
}

static enum rp_code add_reduce_window(struct rp_mlir *r, const struct rp_mlir_text *text)
{
    struct window_lists w;

    find_window(r, text, &w);
    find_ints(r, text, (const char *const[]){"window_dimensions", NULL}, &w.size);
    return add_window(r, &w);
}

/* "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]" is "b01f_01io->b01f". */
static bool parse_labels(const struct rp_mlir_text *text, char *out, size_t cap)
{
    const char *s = rp_mlir_find_key(text, "dim_numbers");
    unsigned lists = 0;
    size_t n = 0;

    if (!s && (s = rp_mlir_find_key(text, "dimension_numbers")))
        s = memchr(s, '[', (size_t)(text->end - s));
    while (s && s < text->end && *s != '[')
        s++;
    for (; s && s < text->end && lists < 3 && n + 4 < cap; s++) {
        if (*s == ']') {
            lists++;
            n += (size_t)snprintf(out + n, cap - n, "%s",
                                  lists == 1   ? "_"
                                  : lists == 2 ? "->"
                                               : "");
            while (lists < 3 && s + 1 < text->end && s[1] != '[')
                s++;
        } else if ((*s >= '0' && *s <= '9') || *s == 'b' || *s == 'f' || *s == 'i' || *s == 'o' ||
                   *s == '?') {
            out[n++] = *s;
        }
    }
    out[n] = '\0';
    return lists == 3;
}

/* The window is as large as the kernel is along its numbered dimensions. */
static void kernel_size(const struct rp_mlir *r, const struct rp_mlir_text *text, const char *label,
                        struct rp_mlir_ints *size)
{
    const char *kernel = strchr(label, '_');
    const struct rp_op_shape *shape;

    size->n = 0;
    if (!kernel || text->operands.n < 2)
        return;
    shape = &r->p->shapes.at[r->p->shape.at[text->operands.at[1]]];
    for (int digit = '0'; digit <= '9'; digit++) {
        const char *at = strchr(kernel + 1, digit), *end = strchr(kernel, '-');

        if (!at || at >= end || shape->elem == RP_ELEM_TUPLE ||
            (size_t)(at - kernel - 1) >= shape->n)
            return;
        size->at[size->n++] = r->p->dims.at[shape->first + (size_t)(at - kernel - 1)];
    }
}

static enum rp_code add_convolution(struct rp_mlir *r, const struct rp_mlir_text *text)
{
    struct window_lists w;
    const char *kept;
    char label[64];

    if (!parse_labels(text, label, sizeof label))
        return RP_OK;
    find_window(r, text, &w);
    kernel_size(r, text, label, &w.size);
    RP_TRY(add_window(r, &w));
    kept = rp_arena_strdup(&r->p->arena, label); /* which the value borrows where it stays text */
    return kept ? add_ints_attr(r, rp_attr_parse(r->p, RP_ATTR_DIM_LABELS, kept, strlen(kept)))
                : rp_err_nomem(r->err, "reading attributes");
}

/* ---- words and strings: Fourier transforms, random bits, precisions, custom calls ---- */

static const char *value_of(const struct rp_mlir_text *text, const char *key)
{
    const char *s = rp_mlir_find_key(text, key);

    while (s && s < text->end && *s == ' ')
        s++;
    return s && s < text->end ? s : NULL;
}

/* "type = RFFT" or "#stablehlo<fft_type RFFT>": the first of the words, in HLO's spelling. */
static enum rp_code add_word(struct rp_mlir *r, const struct rp_mlir_text *text, uint32_t key,
                             const char *const (*words)[2])
{
    for (; (*words)[0]; words++)
        if (rp_mlir_find_word(text, (const char *const[]){(*words)[0], NULL}))
            return rp_program_add_attr(r->p, rp_attr_word(key, (*words)[1]), r->err);
    return RP_OK;
}

/* "format = e5m3", or two numbers */
static enum rp_code add_precision(struct rp_mlir *r, const struct rp_mlir_text *text)
{
    static const struct {
        uint32_t key;
        const char *word;
        char letter;
    } parts[] = {{RP_ATTR_EXPONENT_BITS, "exponent_bits", 'e'},
                 {RP_ATTR_MANTISSA_BITS, "mantissa_bits", 'm'}};
    const char *format = value_of(text, "format");

    for (size_t i = 0; i < 2; i++) {
        const char *s = value_of(text, parts[i].word), *from;

        if (!s && format) {
            s = memchr(format, parts[i].letter, (size_t)(text->end - format));
            s = s ? s + 1 : NULL;
        }
        for (from = s; s && s < text->end && *s >= '0' && *s <= '9'; s++)
            ;
        if (s && s > from)
            RP_TRY(rp_program_add_attr(
                r->p, rp_attr_parse(r->p, parts[i].key, from, (size_t)(s - from)), r->err));
    }
    return RP_OK;
}

/* MLIR's escapes: \n \t \" \\ and two hexadecimal digits. */
static size_t unescape_string(const char *in, size_t n, char *out)
{
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        if (in[i] != '\\' || i + 1 == n) {
            out[len++] = in[i];
        } else if (i + 2 < n && rp_hex_number(in + i + 1, 2) >= 0) {
            out[len++] = (char)rp_hex_number(in + i + 1, 2);
            i += 2;
        } else {
            char c = in[++i];

            out[len++] = (char)(c == 'n' ? '\n' : c == 't' ? '\t' : c);
        }
    }
    return len;
}

/* The content of a string, or a dictionary as it is; nothing where it is empty. */
static enum rp_code add_value(struct rp_mlir *r, const struct rp_mlir_text *text, const char *s,
                              uint32_t key)
{
    const char *to = *s == '"'   ? rp_mlir_string_end(r, s)
                     : *s == '{' ? rp_mlir_bracket_end(r, s)
                                 : NULL;
    struct rp_attr attr;
    char *copy;

    if (!to || to > text->end || to - s <= 2)
        return RP_OK;
    attr = rp_attr_bytes(key, rp_attr_type(key), s, (size_t)(to - s));
    if (*s == '"') {
        attr.at++;
        attr.n -= 2;
    }
    if (*s == '"' && memchr(attr.at, '\\', attr.n)) {
        copy = rp_arena_alloc(&r->p->arena, attr.n, 1);
        attr.n = copy ? (uint32_t)unescape_string(attr.at, attr.n, copy) : attr.n;
        attr.at = copy;
    }
    return rp_program_add_attr(r->p, attr, r->err);
}

static enum rp_code add_api_version(struct rp_mlir *r, const struct rp_mlir_text *text, bool typed)
{
    static const char *const words[] = {NULL, NULL, "API_VERSION_STATUS_RETURNING",
                                        "API_VERSION_STATUS_RETURNING_UNIFIED",
                                        "API_VERSION_TYPED_FFI"};
    const char *s = value_of(text, "api_version");
    unsigned v = typed ? 4 : s && *s >= '0' && *s <= '4' ? (unsigned)(*s - '0') : 0;

    if (!words[v])
        return RP_OK;
    return rp_program_add_attr(r->p, rp_attr_word(RP_ATTR_API_VERSION, words[v]), r->err);
}

/* "called_computations = [@f, @g]"; portable bytecode has strings. */
static enum rp_code add_called_list(struct rp_mlir *r, const struct rp_mlir_text *text)
{
    const char *s = value_of(text, "called_computations");
    const char *to = s && *s == '[' ? rp_mlir_bracket_end(r, s) : NULL;
    struct rp_mlir look = *r;
    uint32_t name;

    if (!to || to > text->end)
        return RP_OK;
    for (look.at = s + 1; look.at < to;) {
        if (*look.at != '@' && *look.at != '"') {
            look.at++;
            continue;
        }
        look.at -= *look.at == '"'; /* without its sign */
        RP_TRY(rp_mlir_name_at(&look, &name));
        RP_TRY(rp_vec_push(&r->waiting, (uint32_t)r->p->called.n, r->err));
        RP_TRY(rp_vec_push(&r->waiting, name, r->err));
        RP_TRY(rp_program_add_called(r->p, 0, r->err));
    }
    return RP_OK;
}

static enum rp_code add_custom_call(struct rp_mlir *r, const struct rp_mlir_text *text)
{
    const char *target = value_of(text, "call_target_name");
    const char *typed = value_of(text, "mhlo.backend_config");
    const char *config = typed ? typed : value_of(text, "backend_config");
    const char *effect = value_of(text, "has_side_effect");
    const char *sharding = value_of(text, "mhlo.sharding"), *to;

    if (target)
        RP_TRY(add_value(r, text, target, RP_ATTR_CUSTOM_CALL_TARGET));
    if (effect && *effect == 't')
        RP_TRY(rp_program_add_attr(r->p, rp_attr_flag(RP_ATTR_CUSTOM_CALL_HAS_SIDE_EFFECT, true),
                                   r->err));
    to = sharding && *sharding == '"' ? rp_mlir_string_end(r, sharding) : NULL;
    if (to && to <= text->end && to - sharding > 2)
        RP_TRY(rp_program_add_attr(
            r->p, rp_attr_parse(r->p, RP_ATTR_SHARDING, sharding + 1, (size_t)(to - sharding - 2)),
            r->err));
    RP_TRY(add_called_list(r, text));
    RP_TRY(add_api_version(r, text, typed && *typed == '{'));
    return config ? add_value(r, text, config, RP_ATTR_BACKEND_CONFIG) : RP_OK;
}

static enum rp_code add_word_attrs(struct rp_mlir *r, enum rp_opcode code,
                                   const struct rp_mlir_text *text, bool *known)
{
    static const char *const transforms[][2] = {
        {"IRFFT", "IRFFT"}, {"RFFT", "RFFT"}, {"IFFT", "IFFT"}, {"FFT", "FFT"}, {NULL, NULL}};
    static const char *const generators[][2] = {{"DEFAULT", "rng_default"},
                                                {"THREE_FRY", "rng_three_fry"},
                                                {"PHILOX", "rng_philox"},
                                                {NULL, NULL}};
    static const char *const distributions[][2] = {
        {"UNIFORM", "rng_uniform"}, {"NORMAL", "rng_normal"}, {NULL, NULL}};

    static const char *const turns[][2] = {{"NO_TRANSPOSE", "NO_TRANSPOSE"},
                                           {"TRANSPOSE", "TRANSPOSE"},
                                           {"ADJOINT", "ADJOINT"},
                                           {NULL, NULL}};

    *known = true;
    switch (code) {
    case RP_OP_TRIANGULAR_SOLVE:
        return add_word(r, text, RP_ATTR_TRANSPOSE_A, turns);
    case RP_OP_CHOLESKY: /* in the rows */
        return RP_OK;
    case RP_OP_FFT:
        return add_word(r, text, RP_ATTR_FFT_TYPE, transforms);
    case RP_OP_RNG_BIT_GENERATOR:
        return add_word(r, text, RP_ATTR_ALGORITHM, generators);
    case RP_OP_RNG:
        return add_word(r, text, RP_ATTR_DISTRIBUTION, distributions);
    case RP_OP_REDUCE_PRECISION:
        return add_precision(r, text);
    case RP_OP_CUSTOM_CALL:
        return add_custom_call(r, text);
    case RP_OP_CALL: /* its function is no attribute */
        return RP_OK;
    default:
        *known = false;
        return RP_OK;
    }
}

/* ---- all types ---- */

/* Operations whose attributes are all read above, or that have none. */
static bool has_known_attributes(enum rp_opcode code)
{
    switch (code) {
    case RP_OP_BROADCAST:
    case RP_OP_TRANSPOSE:
    case RP_OP_REVERSE:
    case RP_OP_REDUCE:
    case RP_OP_CONCATENATE:
    case RP_OP_SORT:
    case RP_OP_IOTA:
    case RP_OP_DYNAMIC_SLICE:
    case RP_OP_GATHER:
    case RP_OP_SCATTER:
    case RP_OP_CONVOLUTION:
    case RP_OP_DOT:
    case RP_OP_COMPARE:
    case RP_OP_SLICE:
    case RP_OP_PAD:
    case RP_OP_REDUCE_WINDOW:
    case RP_OP_SELECT_AND_SCATTER:
    case RP_OP_CONSTANT:
    case RP_OP_WHILE:
    case RP_OP_CONDITIONAL:
    case RP_OP_TOPK:
    case RP_OP_SCAN:
    case RP_OP_RAGGED_DOT:
    case RP_OP_ALL_REDUCE:
    case RP_OP_ALL_GATHER:
    case RP_OP_ALL_TO_ALL:
    case RP_OP_REDUCE_SCATTER:
    case RP_OP_COLLECTIVE_BROADCAST:
    case RP_OP_COLLECTIVE_PERMUTE:
        return true;
    default:
        return rp_op_info[code].class_ == RP_CLASS_ELEMENT && code != RP_OP_REDUCE_PRECISION;
    }
}

enum rp_code rp_mlir_attributes(struct rp_mlir *r, enum rp_opcode code,
                                const struct rp_mlir_text *text, bool *known)
{
    *known = has_known_attributes(code);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].code == code)
            RP_TRY(add_form_row(r, &rows[i], text));
    switch (code) {
    case RP_OP_DOT:
    case RP_OP_RAGGED_DOT:
        return add_dot(r, text);
    case RP_OP_SCAN:
        return add_called_list(r, text); /* of a custom call that stands for it */
    case RP_OP_COMPARE:
        return add_compare(r, text);
    case RP_OP_SLICE:
        return add_slice(r, text);
    case RP_OP_PAD:
        return add_pad(r, text);
    case RP_OP_CONVOLUTION:
        return add_convolution(r, text);
    case RP_OP_REDUCE_WINDOW:
    case RP_OP_SELECT_AND_SCATTER:
        return add_reduce_window(r, text);
    case RP_OP_ALL_REDUCE:
    case RP_OP_ALL_GATHER:
    case RP_OP_ALL_TO_ALL:
    case RP_OP_REDUCE_SCATTER:
    case RP_OP_COLLECTIVE_BROADCAST:
    case RP_OP_COLLECTIVE_PERMUTE:
        return rp_mlir_collective(r, code, text);
    default:
        return *known ? RP_OK : add_word_attrs(r, code, text, known);
    }
}

enum rp_code rp_mlir_callee(struct rp_mlir *r, const struct rp_mlir_text *text, uint32_t *name)
{
    struct rp_mlir look = *r;
    const char *s = value_of(text, "callee");

    if (!s)
        s = value_of(text, "decomposition");
    if (!s || *s != '@')
        return RP_OK;
    look.at = s;
    return rp_mlir_name_at(&look, name);
}

enum rp_code rp_mlir_keep_text(struct rp_mlir *r, const char *at, const char *end,
                               uint32_t operation)
{
    const char *mesh;
    uint32_t key;

    while (at < end && (*at == ' ' || *at == ',' || *at == '(' || *at == ')' || *at == '%')) {
        if (*at == '%')
            while (at < end && *at != ' ' && *at != ',' && *at != ')')
                at++;
        else
            at++;
    }
    while (end > at && (end[-1] == ' ' || end[-1] == '\n' || end[-1] == ','))
        end--;
    if (at == end || memchr(at, '%', (size_t)(end - at)))
        return RP_OK;
    mesh = memmem(at, (size_t)(end - at), "<@", 2);
    if (mesh && strncmp(rp_program_text(r->p, operation), "sdy.", 4) == 0) {
        const char *to = rp_mlir_bracket_end(r, mesh); /* the same in both forms */

        return rp_program_add_text(r->p, RP_ATTR_SHARDING, mesh,
                                   (size_t)((to && to < end ? to : end) - mesh), r->err);
    }
    RP_TRY(rp_program_string(r->p, "attributes", 10, &key, r->err));
    return rp_program_add_text(r->p, key, at, (size_t)(end - at), r->err);
}
