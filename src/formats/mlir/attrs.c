/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of StableHLO as HLO attributes, so that counting, hashing and printing need to know
 * only one language. Operations that HLO does not have keep their attributes as text.
 */
#include "formats/mlir/mlir.h"

#include "program/dot_algorithm.h"
#include "program/opcodes.h"
#include "program/window.h"

#include <string.h>

/* ---- adding ---- */

static enum rp_code add_ints_attr(struct rp_mlir *r, struct rp_attr attr)
{
    return rp_program_add_attr(r->p, attr, r->err);
}

static enum rp_code add_listed(struct rp_mlir *r, uint32_t key, const struct rp_mlir_ints *list)
{
    return add_ints_attr(r, rp_attr_ints(r->p, key, list->at, list->n));
}

void rp_mlir_broadcast_dims(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                            struct rp_mlir_ints *out)
{
    static const char *const words[] = {"dims", "broadcast_dimensions", NULL};

    rp_mlir_find_ints(r, attrs, words, out);
}

/* ---- one list to one attribute ---- */

enum attr_form { NONE, LIST, NUMBER, FLAG, COUNT, DIMS, BATCH, INDEX, WORD };

static const struct row {
    uint16_t code, key;
    uint8_t form;
    const char *words[3]; /* words of both forms; the last is NULL */
} rows[] = {
#define RP_SHLO_ATTR(code, key, reads, writes, word, pretty) \
    {RP_OP_##code, RP_ATTR_##key, reads, {word, pretty}},
#define RP_SHLO_WORD(key, type, word, hlo)
#include "formats/mlir/stablehlo_attrs.def"
#undef RP_SHLO_ATTR
#undef RP_SHLO_WORD
};

static const struct {
    uint16_t key;
    const char *word, *hlo;
} spellings[] = {
#define RP_SHLO_ATTR(code, key, reads, writes, word, pretty)
#define RP_SHLO_WORD(key, type, word, hlo) {RP_ATTR_##key, word, hlo},
#include "formats/mlir/stablehlo_attrs.def"
#undef RP_SHLO_ATTR
#undef RP_SHLO_WORD
};

/* Reads "type = RFFT" or "#stablehlo<fft_type RFFT>": the first of the words, in HLO's spelling. */
static enum rp_code add_word(struct rp_mlir *r, const struct rp_mlir_attrs *attrs, uint32_t key)
{
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
        if (spellings[i].key == key &&
            rp_mlir_find_word(r, attrs, (const char *const[]){spellings[i].word, NULL}))
            return add_ints_attr(r, rp_attr_word(key, spellings[i].hlo));
    return RP_OK;
}

static enum rp_code add_form_row(struct rp_mlir *r, const struct row *row,
                                 const struct rp_mlir_attrs *attrs)
{
    struct rp_mlir_ints list;

    if (row->form == NONE || row->form == WORD)
        return row->form == WORD ? add_word(r, attrs, row->key) : RP_OK;
    if (!rp_mlir_find_ints(r, attrs, row->words, &list) && row->form != DIMS && row->form != INDEX)
        return RP_OK;
    if (row->form == LIST || row->form == DIMS || (row->form == BATCH && list.n))
        return add_listed(r, row->key, &list);
    if (row->form == INDEX)
        return add_ints_attr(r, rp_attr_int(row->key, list.n ? list.at[0] : 0));
    if (row->form == BATCH)
        return RP_OK;
    if (!list.n || (row->form == COUNT && list.at[0] == 1))
        return RP_OK;
    if (row->form == FLAG)
        return list.at[0] ? add_ints_attr(r, rp_attr_flag(row->key, true)) : RP_OK;
    return add_ints_attr(r, rp_attr_int(row->key, list.at[0]));
}

/* ---- attributes with their own syntax ---- */

/* Reads "precision = [HIGHEST, DEFAULT]" or "precision_config = [#stablehlo<precision HIGHEST>,
   ...]"; HLO writes nothing if all are the default. */
static enum rp_code add_operand_precision(struct rp_mlir *r, const struct rp_mlir_attrs *attrs)
{
    static const char *const words[][2] = {
        {"HIGHEST", "highest"}, {"HIGH", "high"}, {"DEFAULT", "default"}};
    struct rp_slice text, *list = RP_ARENA_NEW(&r->p->arena, struct rp_slice, 2);
    struct rp_attr attr = {.key = RP_ATTR_OPERAND_PRECISION, .type = RP_VALUE_WORDS};
    bool other = false;

    RP_TRY(rp_err_need(list, r->err, "reading attributes"));
    RP_TRY(rp_mlir_find_text(r, attrs, "precision_config", &text));
    if (!text.n)
        RP_TRY(rp_mlir_find_text(r, attrs, "precision", &text));
    for (uint32_t i = 0; i < text.n && attr.n < 2; i++)
        for (size_t k = 0; k < 3; k++) {
            uint32_t n = (uint32_t)strlen(words[k][0]);

            if (n > text.n - i || memcmp(text.at + i, words[k][0], n) != 0)
                continue;
            list[attr.n++] = (struct rp_slice){words[k][1], (uint32_t)strlen(words[k][1]), 0};
            other = other || k < 2;
            i += n - 1;
            break;
        }
    attr.texts = list;
    return attr.n == 2 && other ? add_ints_attr(r, attr) : RP_OK;
}

/* Whether the text is this type, or one of "f8". */
static bool is_type(struct rp_slice text, const char *type)
{
    size_t n = strlen(type);

    return text.n >= n && memcmp(text.at, type, n) == 0 && (text.n == n || strcmp(type, "f8") == 0);
}

/* "contracting_dims = [1] x [0]", or four lists of long names */
static enum rp_code add_dot(struct rp_mlir *r, const struct rp_mlir_attrs *attrs)
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
        const char *s = rp_mlir_find_key(attrs, lists[i].both);

        if (!s) {
            if (rp_mlir_find_ints(r, attrs, (const char *const[]){lists[i].left, NULL}, &list))
                RP_TRY(add_listed(r, lists[i].left_key, &list));
            if (rp_mlir_find_ints(r, attrs, (const char *const[]){lists[i].right, NULL}, &list))
                RP_TRY(add_listed(r, lists[i].right_key, &list));
            continue;
        }
        for (int side = 0; side < 2; side++) {
            const char *open = memchr(s, '[', (size_t)(attrs->end - s));
            const char *to = open ? memchr(open, ']', (size_t)(attrs->end - open)) : NULL;
            if (!to)
                break;
            rp_mlir_ints_in(open, to, &list);
            RP_TRY(add_listed(r, side ? lists[i].right_key : lists[i].left_key, &list));
            s = to;
        }
    }
    RP_TRY(add_operand_precision(r, attrs));

    /* Reads "algorithm = <lhs_precision_type = tf32, ...>", or its parts as separate attributes,
       which have the type "none" if there is no algorithm. HLO has a word for each algorithm that
       XLA knows; other text is kept. */
    static const char *const keys[] = {"lhs_precision_type", "rhs_precision_type",
                                       "accumulation_type"};
    struct rp_mlir_attrs in = *attrs;
    struct rp_slice text, type[3];
    RP_TRY(rp_mlir_find_text(r, attrs, "algorithm", &text));
    if (text.n)
        in = (struct rp_mlir_attrs){.at = text.at, .end = text.at + text.n};
    for (size_t i = 0; i < 3; i++)
        RP_TRY(rp_mlir_find_text(r, &in, keys[i], &type[i]));
    int64_t products = rp_mlir_find_int(r, &in, "num_primitive_operations", 1);
    bool imprecise = rp_mlir_find_int(r, &in, "allow_imprecise_accumulation", 0) != 0;
    bool single = rp_mlir_find_int(r, &in, "lhs_component_count", 1) == 1 &&
                  rp_mlir_find_int(r, &in, "rhs_component_count", 1) == 1;
    for (size_t i = 0; i < rp_dot_nalgorithms && single; i++) {
        const struct rp_dot_algorithm *a = &rp_dot_algorithms[i];

        if (a->products == products && a->imprecise == imprecise && is_type(type[0], a->operands) &&
            is_type(type[1], a->operands) && is_type(type[2], a->sum))
            return add_ints_attr(r, rp_attr_word(RP_ATTR_ALGORITHM, a->word));
    }
    return text.n ? rp_program_add_text(r->p, RP_ATTR_ALGORITHM, text.at, text.n, r->err) : RP_OK;
}

/* reads "GT, %a, %b, TOTALORDER"; the other types follow from the operands */
static enum rp_code add_compare(struct rp_mlir *r, const struct rp_mlir_attrs *attrs)
{
    static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT", NULL};
    static const char *const types[] = {"TOTALORDER", NULL};
    const char *direction = rp_mlir_find_word(r, attrs, directions),
               *type = rp_mlir_find_word(r, attrs, types);

    if (direction)
        RP_TRY(add_ints_attr(r, rp_attr_word(RP_ATTR_DIRECTION, direction)));
    return type ? add_ints_attr(r, rp_attr_word(RP_ATTR_TYPE, type)) : RP_OK;
}

/* Reads "largest = false"; the default is the largest, which HLO states explicitly. */
static enum rp_code add_largest(struct rp_mlir *r, const struct rp_mlir_attrs *attrs)
{
    static const char *const words[] = {"largest", NULL};
    struct rp_mlir_ints list;
    bool smallest = rp_mlir_find_ints(r, attrs, words, &list) && list.n && !list.at[0];

    return add_ints_attr(r, rp_attr_flag(RP_ATTR_LARGEST, !smallest));
}

/* Combines three lists into triples; `usual` is the default of the last. */
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

static enum rp_code add_slice(struct rp_mlir *r, const struct rp_mlir_attrs *attrs)
{
    static const char *const words[3][2] = {
        {"start_indices", NULL}, {"limit_indices", NULL}, {"strides", NULL}};
    struct rp_mlir_ints part[3];

    for (int i = 0; i < 3; i++)
        rp_mlir_find_ints(r, attrs, words[i], &part[i]);
    if (!part[0].n) {
        /* "[0:32, 1:4:2]" into lists of starts, ends and steps */
        const char *s = memchr(attrs->at, '[', (size_t)(attrs->end - attrs->at));
        while (s && s < attrs->end && *s != ']' && part[0].n < RP_MLIR_INTS) {
            const char *to = s + 1;
            struct rp_mlir_ints dim;

            while (to < attrs->end && *to != ',' && *to != ']')
                to++;
            rp_mlir_ints_in(s + 1, to, &dim);
            for (size_t i = 0; i < 3 && dim.n; i++)
                part[i].at[part[i].n++] = i < dim.n ? dim.at[i] : 1;
            s = to;
        }
    }
    return add_ints_attr(r, add_triples(r, RP_ATTR_SLICE, part, 1));
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

static void find_window(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                        struct window_lists *w)
{
    static const char *const stride[] = {"stride", "window_strides", NULL};
    static const char *const pads[] = {"pad", "padding", NULL};
    static const char *const lhs[] = {"lhs_dilate", "lhs_dilation", "base_dilations", NULL};
    static const char *const rhs[] = {"rhs_dilate", "rhs_dilation", "window_dilations", NULL};
    static const char *const reverse[] = {"reverse", "window_reversal", NULL};

    rp_mlir_find_ints(r, attrs, stride, &w->stride);
    rp_mlir_find_ints(r, attrs, pads, &w->pad);
    rp_mlir_find_ints(r, attrs, lhs, &w->lhs);
    rp_mlir_find_ints(r, attrs, rhs, &w->rhs);
    rp_mlir_find_ints(r, attrs, reverse, &w->reverse);
}

/* The window is as large as the kernel is along its numbered dimensions. */
static void kernel_size(const struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                        const char *label, struct rp_mlir_ints *size)
{
    const char *kernel = strchr(label, '_');

    size->n = 0;
    if (!kernel || attrs->operands.n < 2)
        return;
    const struct rp_op_shape *shape = &r->p->shapes.at[r->p->shape.at[attrs->operands.at[1]]];
    for (int digit = '0'; digit <= '9'; digit++) {
        const char *at = strchr(kernel + 1, digit), *end = strchr(kernel, '-');

        if (!at || at >= end || shape->elem == RP_ELEM_TUPLE ||
            (size_t)(at - kernel - 1) >= shape->n)
            return;
        size->at[size->n++] = r->p->dims.at[shape->first + (size_t)(at - kernel - 1)];
    }
}

static enum rp_code add_convolution(struct rp_mlir *r, const struct rp_mlir_attrs *attrs)
{
    struct window_lists w;
    char label[64];

    if (!rp_mlir_find_labels(r, attrs, label, sizeof label))
        return RP_OK;
    find_window(r, attrs, &w);
    kernel_size(r, attrs, label, &w.size);
    RP_TRY(add_window(r, &w));
    RP_TRY(add_operand_precision(r, attrs));
    const char *kept =
        rp_arena_strdup(&r->p->arena, label); /* a value that stays text borrows this copy */
    return kept ? add_ints_attr(r, rp_attr_parse(r->p, RP_ATTR_DIM_LABELS, kept, strlen(kept)))
                : rp_err_nomem(r->err, "reading attributes");
}

/* ---- precisions and custom calls ---- */

/* "format = e5m3", or two numbers */
static enum rp_code add_precision(struct rp_mlir *r, const struct rp_mlir_attrs *attrs)
{
    static const struct {
        uint32_t key;
        const char *word;
        char letter;
    } parts[] = {{RP_ATTR_EXPONENT_BITS, "exponent_bits", 'e'},
                 {RP_ATTR_MANTISSA_BITS, "mantissa_bits", 'm'}};
    struct rp_slice format;
    struct rp_mlir_ints list;

    RP_TRY(rp_mlir_find_text(r, attrs, "format", &format));
    for (size_t i = 0; i < 2; i++) {
        int64_t bits = rp_mlir_find_int(r, attrs, parts[i].word, -1);
        const char *at = format.n ? memchr(format.at, parts[i].letter, format.n) : NULL;

        rp_mlir_ints_in(at, at ? format.at + format.n : NULL, &list);
        bits = bits < 0 && list.n ? list.at[0] : bits;
        if (bits >= 0)
            RP_TRY(rp_program_add_attr(r->p, rp_attr_int(parts[i].key, bits), r->err));
    }
    return RP_OK;
}

static enum rp_code add_api_version(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                                    bool typed)
{
    static const char *const words[] = {NULL, NULL, "API_VERSION_STATUS_RETURNING",
                                        "API_VERSION_STATUS_RETURNING_UNIFIED",
                                        "API_VERSION_TYPED_FFI"};
    int64_t v = typed ? 4 : rp_mlir_find_int(r, attrs, "api_version", 0);

    if (v < 0 || v > 4 || !words[v])
        return RP_OK;
    return rp_program_add_attr(r->p, rp_attr_word(RP_ATTR_API_VERSION, words[v]), r->err);
}

/* Adds what programs for inputs of any size have: which operands are shapes, and the text of an
   assertion. */
static enum rp_code add_shape_attrs(struct rp_mlir *r, const struct rp_mlir_attrs *attrs)
{
    static const char *const words[] = {"indices_of_shape_operands", NULL};
    struct rp_mlir_ints which;
    struct rp_slice message;
    uint32_t key;

    RP_TRY(rp_mlir_find_string(r, attrs, "error_message", &message));
    if (message.n) {
        RP_TRY(rp_program_string(r->p, "error_message", 13, &key, r->err));
        RP_TRY(rp_program_add_text(r->p, key, message.at, message.n, r->err));
    }
    if (!rp_mlir_find_ints(r, attrs, words, &which))
        return RP_OK;
    RP_TRY(rp_program_string(r->p, words[0], strlen(words[0]), &key, r->err));
    return add_ints_attr(r, rp_attr_ints(r->p, key, which.at, which.n));
}

static enum rp_code add_custom_call(struct rp_mlir *r, const struct rp_mlir_attrs *attrs)
{
    struct rp_slice target, sharding;

    RP_TRY(rp_mlir_find_string(r, attrs, "call_target_name", &target));
    RP_TRY(rp_mlir_find_string(r, attrs, "mhlo.sharding", &sharding));
    if (target.n)
        RP_TRY(rp_program_add_attr(
            r->p, rp_attr_bytes(RP_ATTR_CUSTOM_CALL_TARGET, RP_VALUE_STRING, target.at, target.n),
            r->err));
    if (rp_mlir_find_int(r, attrs, "has_side_effect", 0))
        RP_TRY(rp_program_add_attr(r->p, rp_attr_flag(RP_ATTR_CUSTOM_CALL_HAS_SIDE_EFFECT, true),
                                   r->err));
    if (sharding.n)
        RP_TRY(rp_program_add_attr(
            r->p, rp_attr_parse(r->p, RP_ATTR_SHARDING, sharding.at, sharding.n), r->err));
    RP_TRY(rp_mlir_called_list(r, attrs));
    RP_TRY(add_shape_attrs(r, attrs));
    RP_TRY(rp_mlir_operand_layouts(r, attrs));

    /* Adds the content of a string, or a dictionary as it is written; nothing if it is empty. */
    static const char *const words[] = {"mhlo.backend_config", "backend_config"};
    struct rp_slice text = {0}, dictionary = {0};
    RP_TRY(rp_mlir_find_text(r, attrs, words[0], &dictionary));
    bool own = dictionary.at != NULL;
    RP_TRY(rp_mlir_find_string(r, attrs, words[!own], &text));
    RP_TRY(rp_mlir_find_text(r, attrs, words[!own], &dictionary));
    bool typed = dictionary.n > 1 && dictionary.at[0] == '{';
    RP_TRY(add_api_version(r, attrs, own && typed));
    if (typed)
        text = dictionary;
    return text.n > (typed ? 2U : 0U)
               ? rp_program_add_attr(r->p,
                                     rp_attr_bytes(RP_ATTR_BACKEND_CONFIG,
                                                   rp_attr_type(RP_ATTR_BACKEND_CONFIG), text.at,
                                                   text.n),
                                     r->err)
               : RP_OK;
}

/* ---- all types ---- */

/* Whether all attributes of an operation are read above, or it has none. */
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
    case RP_OP_TRIANGULAR_SOLVE:
    case RP_OP_CHOLESKY:
    case RP_OP_FFT:
    case RP_OP_RNG_BIT_GENERATOR:
    case RP_OP_RNG:
    case RP_OP_CUSTOM_CALL:
    case RP_OP_CALL: /* the called function is not an attribute */
        return true;
    default:
        return rp_op_info[code].class_ == RP_CLASS_ELEMENT;
    }
}

enum rp_code rp_mlir_attributes(struct rp_mlir *r, unsigned code, const struct rp_mlir_attrs *attrs,
                                bool *known)
{
    *known = has_known_attributes(code);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].code == code)
            RP_TRY(add_form_row(r, &rows[i], attrs));
    switch (code) {
    case RP_OP_DOT:
    case RP_OP_RAGGED_DOT:
        return add_dot(r, attrs);
    case RP_OP_SCAN:
        return rp_mlir_called_list(r, attrs); /* attributes of a custom call that stands for it */
    case RP_OP_COMPARE:
        return add_compare(r, attrs);
    case RP_OP_TOPK:
        return add_largest(r, attrs);
    case RP_OP_SLICE:
        return add_slice(r, attrs);
    case RP_OP_PAD: {
        /* "low = [0], high = [1], interior = [0]" */
        static const char *const words[3][3] = {{"low", "edge_padding_low", NULL},
                                                {"high", "edge_padding_high", NULL},
                                                {"interior", "interior_padding", NULL}};
        struct rp_mlir_ints part[3];
        for (int i = 0; i < 3; i++)
            rp_mlir_find_ints(r, attrs, words[i], &part[i]);
        return part[0].n && part[1].n ? add_ints_attr(r, add_triples(r, RP_ATTR_PADDING, part, 0))
                                      : RP_OK;
    }
    case RP_OP_CONVOLUTION:
        return add_convolution(r, attrs);
    case RP_OP_REDUCE_PRECISION:
        return add_precision(r, attrs);
    case RP_OP_CUSTOM_CALL:
        return add_custom_call(r, attrs);
    case RP_OP_REDUCE_WINDOW:
    case RP_OP_SELECT_AND_SCATTER: {
        struct window_lists w;
        find_window(r, attrs, &w);
        rp_mlir_find_ints(r, attrs, (const char *const[]){"window_dimensions", NULL}, &w.size);
        return add_window(r, &w);
    }
    case RP_OP_ALL_REDUCE:
    case RP_OP_ALL_GATHER:
    case RP_OP_ALL_TO_ALL:
    case RP_OP_REDUCE_SCATTER:
    case RP_OP_COLLECTIVE_BROADCAST:
    case RP_OP_COLLECTIVE_PERMUTE:
        return rp_mlir_collective(r, code, attrs);
    default:
        return RP_OK;
    }
}
