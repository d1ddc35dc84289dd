/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes attributes of HLO in StableHLO's words. An attribute that determines what an operation
 * computes but has no form there makes the whole program unwritable; those that only place,
 * schedule or explain are left out.
 */
#include "formats/write/stablehlo.h"
#include "io/escaped.h"
#include "program/dot_algorithm.h"
#include "program/opcodes.h"
#include "program/window.h"

#include <string.h>

/* ---- writing ---- */

void rp_shlo_key(struct rp_shlo *w, const char *key)
{
    rp_out_printf(w->to, "%s%s = ", w->listed ? ", " : " <{", key);
    w->listed = true;
}

void rp_shlo_list(struct rp_shlo *w, const int64_t *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rp_out_printf(w->to, i ? ", %lld" : "%lld", (long long)at[i]);
}

void rp_shlo_ints(struct rp_shlo *w, const char *key, const int64_t *at, size_t n)
{
    rp_shlo_key(w, key);
    rp_out_text(w->to, n ? "array<i64: " : "array<i64");
    rp_shlo_list(w, at, n);
    rp_out_char(w->to, '>');
}

void rp_shlo_int(struct rp_shlo *w, const char *key, int64_t value)
{
    rp_shlo_key(w, key);
    rp_out_printf(w->to, "%lld : i64", (long long)value);
}

void rp_shlo_flag(struct rp_shlo *w, const char *key, bool value)
{
    rp_shlo_key(w, key);
    rp_out_text(w->to, value ? "true" : "false");
}

void rp_shlo_string(const struct rp_shlo *w, const char *at, size_t n)
{
    rp_out_escaped_bytes(w->to, RP_IN_MLIR, at, n);
}

void rp_shlo_table(struct rp_shlo *w, const char *key, const int64_t *at, size_t rows,
                   size_t columns)
{
    rp_shlo_key(w, key);
    rp_out_text(w->to, rows && columns ? "dense<[" : "dense<");
    for (size_t i = 0; columns && i < rows; i++) {
        rp_out_text(w->to, i ? ", [" : "[");
        rp_shlo_list(w, at + i * columns, columns);
        rp_out_char(w->to, ']');
    }
    rp_out_printf(w->to, "%s> : tensor<%zux%zuxi64>", rows && columns ? "]" : "", rows, columns);
}

/* ---- attributes that differ in their names only ---- */

enum attr_form { NONE, LIST, FIRST, NUMBER, SHORT, FLAG, COUNT, REAL, WORD, PART, ELSE };

static const struct row {
    uint16_t code, key;
    uint8_t form;
    const char *word;
} rows[] = {
#define RP_SHLO_ATTR(code, key, reads, writes, word, pretty) \
    {RP_OP_##code, RP_ATTR_##key, writes, word},
#define RP_SHLO_WORD(key, type, word, hlo)
#include "formats/mlir/stablehlo_attrs.def"
#undef RP_SHLO_ATTR
#undef RP_SHLO_WORD
};
#define NROWS (sizeof rows / sizeof *rows)

static const struct {
    uint16_t key;
    const char *type, *word, *hlo;
} words[] = {
#define RP_SHLO_ATTR(code, key, reads, writes, word, pretty)
#define RP_SHLO_WORD(key, type, word, hlo) {RP_ATTR_##key, type, word, hlo},
#include "formats/mlir/stablehlo_attrs.def"
#undef RP_SHLO_ATTR
#undef RP_SHLO_WORD
};

/* Attributes that are written by a function below, or say nothing that StableHLO needs. */
static const struct {
    uint16_t code, keys[4];
} others[] = {
    {RP_OP_CONVOLUTION, {RP_ATTR_WINDOW, RP_ATTR_DIM_LABELS, RP_ATTR_OPERAND_PRECISION}},
    {RP_OP_DOT, {RP_ATTR_OPERAND_PRECISION, RP_ATTR_ALGORITHM}},
    {RP_OP_COMPARE, {RP_ATTR_DIRECTION, RP_ATTR_TYPE, RP_ATTR_ORDER}},
    {RP_OP_SLICE, {RP_ATTR_SLICE}},
    {RP_OP_PAD, {RP_ATTR_PADDING}},
    {RP_OP_REDUCE_WINDOW, {RP_ATTR_WINDOW}},
    {RP_OP_SELECT_AND_SCATTER, {RP_ATTR_WINDOW}},
    {RP_OP_TOPK, {RP_ATTR_LARGEST}},
    {RP_OP_COLLECTIVE_PERMUTE, {RP_ATTR_SOURCE_TARGET_PAIRS}},
    {RP_OP_FUSION, {RP_ATTR_KIND}},
    {RP_OP_CALL, {RP_ATTR_IS_COMPOSITE}},
    {RP_OP_CUSTOM_CALL,
     {RP_ATTR_CUSTOM_CALL_TARGET, RP_ATTR_CUSTOM_CALL_HAS_SIDE_EFFECT, RP_ATTR_API_VERSION,
      RP_ATTR_OUTPUT_TO_OPERAND_ALIASING}},
};

/* The collective that an asynchronous operation starts; any other operation stays. */
static uint16_t plain_code(uint16_t code)
{
    switch (code) {
    case RP_OP_ALL_REDUCE_START:
        return RP_OP_ALL_REDUCE;
    case RP_OP_ALL_GATHER_START:
        return RP_OP_ALL_GATHER;
    case RP_OP_COLLECTIVE_PERMUTE_START:
        return RP_OP_COLLECTIVE_PERMUTE;
    default:
        return code;
    }
}

static bool is_collective(uint16_t code)
{
    return code == RP_OP_ALL_REDUCE || code == RP_OP_ALL_GATHER || code == RP_OP_ALL_TO_ALL ||
           code == RP_OP_REDUCE_SCATTER || code == RP_OP_COLLECTIVE_BROADCAST ||
           code == RP_OP_COLLECTIVE_PERMUTE;
}

static bool is_known(uint16_t code, uint32_t key)
{
    if (rp_attr_flags(key) & RP_ATTRF_QUIET)
        return true;
    if (is_collective(code) && (key == RP_ATTR_REPLICA_GROUPS || key == RP_ATTR_CONSTRAIN_LAYOUT ||
                                key == RP_ATTR_USE_GLOBAL_DEVICE_IDS))
        return true;
    for (size_t i = 0; i < NROWS; i++)
        if (rows[i].code == code && rows[i].key == key && rows[i].form != NONE)
            return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (size_t k = 0; others[i].code == code && k < 4; k++)
            if (others[i].keys[k] == key)
                return true;
    return false;
}

enum rp_code rp_shlo_refuse_attr(const struct rp_shlo *w, uint32_t op, uint32_t key)
{
    return rp_err_set(w->err, RP_UNSUPPORTED,
                      "%s '%s' cannot be written as StableHLO: its attribute '%s'",
                      rp_op_opcode_name(w->p, op), rp_program_text(w->p, w->p->op_name.at[op]),
                      rp_program_text(w->p, key));
}

static enum rp_code put_word(struct rp_shlo *w, uint32_t op, const struct row *row,
                             const struct rp_attr *attr)
{
    if (!attr && row->key != RP_ATTR_TRANSPOSE_A)
        return rp_shlo_refuse_attr(w, op, row->key);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (words[i].key != row->key || (attr && !rp_attr_is(attr, words[i].hlo)))
            continue;
        rp_shlo_key(w, row->word);
        rp_out_printf(w->to, "#stablehlo<%s %s>", words[i].type, words[i].word);
        return RP_OK;
    }
    return rp_shlo_refuse_attr(w, op, row->key);
}

static enum rp_code put_row(struct rp_shlo *w, uint32_t op, const struct row *row)
{
    const struct rp_attr *attr = rp_op_attr(w->p, op, row->key);
    const int64_t *at = NULL;
    size_t n = 0;

    if (attr && row->form <= SHORT && !rp_attr_numbers(attr, &at, &n))
        return rp_shlo_refuse_attr(w, op, row->key);
    switch (row->form) {
    case LIST:
        rp_shlo_ints(w, row->word, at, n);
        return RP_OK;
    case FIRST:
        if (n != 1)
            return rp_shlo_refuse_attr(w, op, row->key);
        rp_shlo_int(w, row->word, at[0]);
        return RP_OK;
    case NUMBER:
        rp_shlo_int(w, row->word, n ? at[0] : 0);
        return RP_OK;
    case SHORT:
        rp_shlo_key(w, row->word);
        rp_out_printf(w->to, "%lld : i32", (long long)(n ? at[0] : 0));
        return RP_OK;
    case COUNT:
        rp_shlo_int(w, row->word, rp_op_int(w->p, op, row->key, 1));
        return RP_OK;
    case FLAG:
        if (attr && attr->type != RP_VALUE_FLAG)
            return rp_shlo_refuse_attr(w, op, row->key);
        rp_shlo_flag(w, row->word, attr && attr->number);
        return RP_OK;
    case REAL:
        if (attr && attr->type != RP_VALUE_FLOAT)
            return rp_shlo_refuse_attr(w, op, row->key);
        rp_shlo_key(w, row->word);
        rp_out_printf(w->to, "%.9e : f32", attr ? attr->real : 0.0);
        return RP_OK;
    case WORD:
        return put_word(w, op, row, attr);
    default:
        return RP_OK;
    }
}

/* ---- dimension numbers ---- */

/* Writes 'dimension_numbers = #stablehlo.gather<offset_dims = [0], index_vector_dim = 1>'; empty
   lists are left out. */
static enum rp_code put_parts(struct rp_shlo *w, uint32_t op, uint16_t code, const char *key,
                              const char *type)
{
    const char *before = "";

    rp_shlo_key(w, key);
    rp_out_printf(w->to, "#stablehlo.%s<", type);
    for (size_t i = 0; i < NROWS; i++) {
        const struct rp_attr *attr =
            rows[i].code == code && rows[i].form == PART ? rp_op_attr(w->p, op, rows[i].key) : NULL;
        const int64_t *at;
        size_t n;

        if (!attr)
            continue;
        if (!rp_attr_numbers(attr, &at, &n))
            return rp_shlo_refuse_attr(w, op, rows[i].key);
        if (!n)
            continue;
        rp_out_printf(w->to, attr->type == RP_VALUE_INT ? "%s%s = " : "%s%s = [", before,
                      rows[i].word);
        rp_shlo_list(w, at, n);
        rp_out_text(w->to, attr->type == RP_VALUE_INT ? "" : "]");
        before = ", ";
    }
    rp_out_char(w->to, '>');
    return RP_OK;
}

static enum rp_code put_precision(struct rp_shlo *w, uint32_t op)
{
    static const char *const known[][2] = {
        {"default", "DEFAULT"}, {"high", "HIGH"}, {"highest", "HIGHEST"}};
    const struct rp_attr *attr = rp_op_attr(w->p, op, RP_ATTR_OPERAND_PRECISION);

    if (!attr)
        return RP_OK;
    if (attr->type != RP_VALUE_WORDS)
        return rp_shlo_refuse_attr(w, op, RP_ATTR_OPERAND_PRECISION);
    rp_shlo_key(w, "precision_config");
    rp_out_char(w->to, '[');
    for (uint32_t i = 0; i < attr->n; i++) {
        struct rp_slice word = attr->texts[i];
        size_t k = 0;

        while (k < 3 &&
               (word.n != strlen(known[k][0]) || memcmp(word.at, known[k][0], word.n) != 0))
            k++;
        if (k == 3)
            return rp_shlo_refuse_attr(w, op, RP_ATTR_OPERAND_PRECISION);
        rp_out_printf(w->to, "%s#stablehlo<precision %s>", i ? ", " : "", known[k][1]);
    }
    rp_out_char(w->to, ']');
    return RP_OK;
}

static enum rp_code put_dot(struct rp_shlo *w, uint32_t op)
{
    RP_TRY(put_parts(w, op, RP_OP_DOT, "dot_dimension_numbers", "dot"));
    RP_TRY(put_precision(w, op));
    static const char *const keys[] = {"lhs_precision_type", "rhs_precision_type"};
    const struct rp_attr *attr = rp_op_attr(w->p, op, RP_ATTR_ALGORITHM);
    struct rp_ids in = rp_op_operands(w->p, op);
    if (!attr)
        return RP_OK;
    const struct rp_dot_algorithm *a =
        attr->type == RP_VALUE_WORD ? rp_dot_algorithm_find(attr->at, attr->n) : NULL;
    if (!a || in.n < 2)
        return rp_shlo_refuse_attr(w, op, RP_ATTR_ALGORITHM);
    rp_shlo_key(w, "algorithm");
    rp_out_text(w->to, "#stablehlo.dot_algorithm<");
    for (size_t i = 0; i < 2; i++) {
        const char *own = rp_shlo_elem(w->p->shapes.at[w->p->shape.at[in.at[i]]].elem);
        bool any = strcmp(a->operands, "f8") == 0, fits = own && strncmp(own, "f8", 2) == 0;

        rp_out_printf(w->to, "%s = %s, ", keys[i], !any ? a->operands : fits ? own : "f8E5M2");
    }
    rp_out_printf(w->to,
                  "accumulation_type = %s, lhs_component_count = 1, rhs_component_count = 1, "
                  "num_primitive_operations = %u, allow_imprecise_accumulation = %s>",
                  a->sum, a->products, a->imprecise ? "true" : "false");
    return RP_OK;
}

static enum rp_code put_compare(struct rp_shlo *w, uint32_t op)
{
    static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
    static const char *const types[] = {"FLOAT", "SIGNED", "UNSIGNED", "TOTALORDER"};
    const struct rp_attr *direction = rp_op_attr(w->p, op, RP_ATTR_DIRECTION),
                         *type = rp_op_attr(w->p, op, RP_ATTR_TYPE),
                         *order = rp_op_attr(w->p, op, RP_ATTR_ORDER);
    bool total = (type && rp_attr_is(type, "TOTALORDER")) || (order && rp_attr_is(order, "TOTAL"));
    size_t i = 0, k = 0;

    while (direction && i < 6 && !rp_attr_is(direction, directions[i]))
        i++;
    while (type && k < 4 && !rp_attr_is(type, types[k]))
        k++;
    if (!direction || i == 6)
        return rp_shlo_refuse_attr(w, op, RP_ATTR_DIRECTION);
    if (k == 4 || (order && !total && !rp_attr_is(order, "PARTIAL")))
        return rp_shlo_refuse_attr(w, op, k == 4 ? RP_ATTR_TYPE : RP_ATTR_ORDER);
    rp_shlo_key(w, "comparison_direction");
    rp_out_printf(w->to, "#stablehlo<comparison_direction %s>", directions[i]);
    if (total) {
        rp_shlo_key(w, "compare_type");
        rp_out_text(w->to, "#stablehlo<comparison_type TOTALORDER>");
    }
    return RP_OK;
}

/* Writes triples of numbers as three lists. */
static enum rp_code put_triples(struct rp_shlo *w, uint32_t op, uint32_t key,
                                const char *const names[3])
{
    const struct rp_attr *attr = rp_op_attr(w->p, op, key);
    int64_t list[RP_SHLO_RANK];

    if (!attr || attr->type != rp_attr_type(key) || attr->n > 3 * RP_SHLO_RANK)
        return rp_shlo_refuse_attr(w, op, key);
    for (size_t k = 0; k < 3; k++) {
        for (size_t i = 0; i < attr->n / 3; i++)
            list[i] = attr->ints[3 * i + k];
        rp_shlo_ints(w, names[k], list, attr->n / 3);
    }
    return RP_OK;
}

/* ---- windows ---- */

static void put_window_list(struct rp_shlo *w, const char *key, const struct rp_window *window,
                            size_t offset)
{
    int64_t list[RP_WINDOW_DIMS];

    for (size_t i = 0; i < window->n; i++)
        memcpy(&list[i], (const char *)&window->dim[i] + offset, sizeof list[i]);
    rp_shlo_ints(w, key, list, window->n);
}
#define PUT_WINDOW(w, key, window, member) \
    put_window_list(w, key, window, offsetof(struct rp_window_dim, member))

static void put_window_padding(struct rp_shlo *w, const struct rp_window *window)
{
    int64_t list[2 * RP_WINDOW_DIMS];

    for (size_t i = 0; i < window->n; i++) {
        list[2 * i] = window->dim[i].pad_low;
        list[2 * i + 1] = window->dim[i].pad_high;
    }
    rp_shlo_table(w, "padding", list, window->n, 2);
}

static bool has_other_window(const struct rp_window *window, bool dilated)
{
    for (size_t i = 0; i < window->n; i++)
        if (window->dim[i].reversal ||
            (dilated && (window->dim[i].base_dilation != 1 || window->dim[i].window_dilation != 1)))
            return true;
    return false;
}

static enum rp_code put_reduce_window(struct rp_shlo *w, uint32_t op, bool dilations)
{
    const struct rp_attr *attr = rp_op_attr(w->p, op, RP_ATTR_WINDOW);
    struct rp_window window;

    if (!attr || !rp_attr_window(attr, &window) || has_other_window(&window, !dilations))
        return rp_shlo_refuse_attr(w, op, RP_ATTR_WINDOW);
    PUT_WINDOW(w, "window_dimensions", &window, size);
    PUT_WINDOW(w, "window_strides", &window, stride);
    if (dilations) {
        PUT_WINDOW(w, "base_dilations", &window, base_dilation);
        PUT_WINDOW(w, "window_dilations", &window, window_dilation);
    }
    put_window_padding(w, &window);
    return RP_OK;
}

/* "[b, f, 0, 1]": the two named dimensions and the others in their order */
static void put_labels(const struct rp_shlo *w, char first, int64_t first_at, char second,
                       int64_t second_at, const int64_t *spatial, size_t n)
{
    for (size_t i = 0; i < n + 2; i++) {
        rp_out_text(w->to, i ? ", " : "[");
        if ((int64_t)i == first_at)
            rp_out_char(w->to, first);
        else if ((int64_t)i == second_at)
            rp_out_char(w->to, second);
        for (size_t k = 0; k < n; k++)
            if (spatial[k] == (int64_t)i)
                rp_out_printf(w->to, "%zu", k);
    }
    rp_out_char(w->to, ']');
}

static enum rp_code put_convolution(struct rp_shlo *w, uint32_t op)
{
    const struct rp_attr *labels = rp_op_attr(w->p, op, RP_ATTR_DIM_LABELS),
                         *attr = rp_op_attr(w->p, op, RP_ATTR_WINDOW);
    struct rp_conv_dims d;
    struct rp_window window = {0};
    char checked[64];

    if (!labels || !rp_attr_conv_dims(labels, &d) || !rp_conv_dims_print(&d, checked))
        return rp_shlo_refuse_attr(w, op, RP_ATTR_DIM_LABELS);
    if ((attr && !rp_attr_window(attr, &window)) || window.n != d.nspatial)
        return rp_shlo_refuse_attr(w, op, RP_ATTR_WINDOW);
    rp_shlo_key(w, "dimension_numbers");
    rp_out_text(w->to, "#stablehlo.conv<");
    put_labels(w, 'b', d.input_batch, 'f', d.input_feature, d.input_spatial, d.nspatial);
    rp_out_char(w->to, 'x');
    put_labels(w, 'i', d.kernel_input, 'o', d.kernel_output, d.kernel_spatial, d.nspatial);
    rp_out_text(w->to, "->");
    put_labels(w, 'b', d.output_batch, 'f', d.output_feature, d.output_spatial, d.nspatial);
    rp_out_char(w->to, '>');
    PUT_WINDOW(w, "window_strides", &window, stride);
    PUT_WINDOW(w, "lhs_dilation", &window, base_dilation);
    PUT_WINDOW(w, "rhs_dilation", &window, window_dilation);
    put_window_padding(w, &window);
    rp_shlo_key(w, "window_reversal");
    rp_out_text(w->to, window.n ? "array<i1: " : "array<i1");
    for (size_t i = 0; i < window.n; i++)
        rp_out_printf(w->to, "%s%s", i ? ", " : "", window.dim[i].reversal ? "true" : "false");
    rp_out_char(w->to, '>');
    return put_precision(w, op);
}

/* ---- all ---- */

static enum rp_code put_own_form(struct rp_shlo *w, uint32_t op, uint16_t code)
{
    static const char *const slices[] = {"start_indices", "limit_indices", "strides"};
    static const char *const pads[] = {"edge_padding_low", "edge_padding_high", "interior_padding"};
    const struct rp_attr *largest;

    switch (code) {
    case RP_OP_CONSTANT:
        rp_shlo_key(w, "value");
        return rp_shlo_constant(w, op);
    case RP_OP_GATHER:
        return put_parts(w, op, code, "dimension_numbers", "gather");
    case RP_OP_SCATTER:
        return put_parts(w, op, code, "scatter_dimension_numbers", "scatter");
    case RP_OP_DOT:
        return put_dot(w, op);
    case RP_OP_COMPARE:
        return put_compare(w, op);
    case RP_OP_SLICE:
        return put_triples(w, op, RP_ATTR_SLICE, slices);
    case RP_OP_PAD:
        return put_triples(w, op, RP_ATTR_PADDING, pads);
    case RP_OP_REDUCE_WINDOW:
        return put_reduce_window(w, op, true);
    case RP_OP_SELECT_AND_SCATTER:
        return put_reduce_window(w, op, false);
    case RP_OP_CONVOLUTION:
        return put_convolution(w, op);
    case RP_OP_CUSTOM_CALL:
        return rp_shlo_custom_call(w, op);
    case RP_OP_TOPK:
        largest = rp_op_attr(w->p, op, RP_ATTR_LARGEST);
        return largest && (largest->type != RP_VALUE_FLAG || !largest->number)
                   ? rp_shlo_refuse_attr(w, op, RP_ATTR_LARGEST)
                   : RP_OK;
    default:
        return is_collective(code) ? rp_shlo_collective(w, op, code) : RP_OK;
    }
}

enum rp_code rp_shlo_attrs(struct rp_shlo *w, uint32_t op)
{
    uint16_t code = plain_code(w->p->code.at[op]);
    uint32_t n;
    const struct rp_attr *attrs = rp_op_attrs(w->p, op, &n);

    w->listed = false;
    for (uint32_t i = 0; i < n; i++)
        if (!is_known(code, attrs[i].key))
            return rp_shlo_refuse_attr(w, op, attrs[i].key);
    RP_TRY(put_own_form(w, op, code));
    for (size_t i = 0; i < NROWS; i++)
        if (rows[i].code == code && rows[i].form != NONE && rows[i].form < PART)
            RP_TRY(put_row(w, op, &rows[i]));
    if (w->listed)
        rp_out_text(w->to, "}>");
    return RP_OK;
}

static enum rp_code put_sharding(const struct rp_shlo *w, const struct rp_attr *attr)
{
    RP_SCOPED(rp_chars_release) struct rp_chars text = {0};

    rp_attr_print(w->p, attr, &text);
    rp_out_text(w->to, "mhlo.sharding = ");
    if (!text.failed)
        rp_shlo_string(w, text.at ? text.at : "", text.n);
    return text.failed ? rp_err_nomem(w->err, "writing a sharding") : RP_OK;
}

static const struct rp_attr *sharding_of(const struct rp_shlo *w, uint32_t op)
{
    const struct rp_attr *attr = rp_op_attr(w->p, op, RP_ATTR_SHARDING);

    return attr && w->shardings && attr->type == RP_VALUE_SHARDING ? attr : NULL;
}

enum rp_code rp_shlo_placement(struct rp_shlo *w, const char *key, struct rp_ids ops)
{
    bool any = false, first = true;

    for (uint32_t i = 0; i < ops.n; i++)
        any = any || sharding_of(w, ops.at[i]);
    if (!any)
        return RP_OK;
    rp_out_printf(w->to, ", %s = [", key);
    for (uint32_t i = 0; i < ops.n; i++) {
        uint32_t shape = w->p->shape.at[ops.at[i]], n = rp_shlo_leaves(w->p, shape);
        const struct rp_attr *attr = sharding_of(w, ops.at[i]);
        bool tuple = w->p->shapes.at[shape].elem == RP_ELEM_TUPLE;
        bool parts = attr && attr->sharding->type == RP_SHARDING_TUPLE;

        if (attr && tuple && (!parts || attr->sharding->nparts != n))
            return rp_shlo_refuse_attr(w, ops.at[i], RP_ATTR_SHARDING);
        for (uint32_t k = 0; k < n; k++, first = false) {
            struct rp_attr one = attr ? *attr : (struct rp_attr){0};

            if (tuple && attr)
                one.sharding = &attr->sharding->parts[k];
            rp_out_text(w->to, first ? "{" : ", {");
            if (attr)
                RP_TRY(put_sharding(w, &one));
            rp_out_char(w->to, '}');
        }
    }
    rp_out_char(w->to, ']');
    return RP_OK;
}

enum rp_code rp_shlo_more_attrs(struct rp_shlo *w, uint32_t op)
{
    const struct rp_attr *sharding = sharding_of(w, op),
                         *map = rp_op_attr(w->p, op, RP_ATTR_FRONTEND_ATTRIBUTES);

    w->listed = sharding != NULL;
    if (sharding) {
        rp_out_text(w->to, " {");
        RP_TRY(put_sharding(w, sharding));
    }
    if (map && map->type == RP_VALUE_MAP && map->n) {
        rp_out_text(w->to, w->listed ? ", mhlo.frontend_attributes = {"
                                     : " {mhlo.frontend_attributes = {");
        w->listed = true;
        for (uint32_t i = 0; i + 1 < map->n; i += 2) {
            rp_out_text(w->to, i ? ", " : "");
            rp_shlo_string(w, map->texts[i].at, map->texts[i].n);
            rp_out_text(w->to, " = ");
            rp_shlo_string(w, map->texts[i + 1].at, map->texts[i + 1].n);
        }
        rp_out_char(w->to, '}');
    }
    if (w->listed)
        rp_out_char(w->to, '}');
    return RP_OK;
}
