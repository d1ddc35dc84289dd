/* SPDX-License-Identifier: Apache-2.0 */
/* Prints values as HLO text, in the form of XLA's printer. */
#include "base/escape.h"
#include "program/program.h"
#include "program/window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rp_chars_put(struct rp_chars *to, const char *text, size_t n)
{
    if (to->sink) {
        to->sink(to->sink_arg, text, n);
        return;
    }
    if (to->failed || rp_vec_reserve(to, n + 1, NULL) != RP_OK) {
        to->failed = true;
        return;
    }
    if (n)
        memcpy(to->at + to->n, text, n);
    to->n += n;
    to->at[to->n] = '\0';
}

void rp_chars_release(struct rp_chars *chars)
{
    rp_vec_release(chars);
    chars->failed = false;
}

static void put_text(struct rp_chars *to, const char *text)
{
    rp_chars_put(to, text, strlen(text));
}

/* Prints as "%lld" would, which costs more than the rest of hashing an attribute. Returns the
   length, at most 20. */
static size_t int_text(int64_t value, char *out)
{
    char digits[24];
    size_t at = sizeof digits;
    uint64_t v = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    if (value < 0)
        digits[--at] = '-';
    memcpy(out, digits + at, sizeof digits - at);
    return sizeof digits - at;
}

static void put_int(struct rp_chars *to, int64_t value)
{
    char text[24];

    rp_chars_put(to, text, int_text(value, text));
}

static void put_ints(struct rp_chars *to, const char *open, const int64_t *at, size_t n,
                     const char *close)
{
    char text[256]; /* pieces are collected and handed on together */
    size_t len = strlen(open);

    memcpy(text, open, len);
    for (size_t i = 0; i < n; i++) {
        if (len > sizeof text - 32) {
            rp_chars_put(to, text, len);
            len = 0;
        }
        if (i)
            text[len++] = ',';
        len += int_text(at[i], text + len);
    }
    for (; *close; close++)
        text[len++] = *close;
    rp_chars_put(to, text, len);
}

static void put_list(struct rp_chars *to, const char *open, struct rp_int_list list,
                     const char *close)
{
    put_ints(to, open, list.at, list.n, close);
}

static void put_piece(void *to, const char *text, size_t n)
{
    rp_chars_put(to, text, n);
}

static void put_quoted(struct rp_chars *to, const char *text, size_t n)
{
    rp_escape(RP_IN_PROTO, text, n, put_piece, to);
}

/* Whether the brackets and quotes of "{...}" close, so that nothing in it ends the attribute. */
static bool is_json(const char *at, size_t n)
{
    size_t depth = 0, i;
    bool quoted = false;

    for (i = 0; i < n && (i == 0 || depth); i++) {
        if ((unsigned char)at[i] < ' ')
            return false;
        if (quoted && at[i] == '\\' && i + 1 < n)
            i++;
        else if (at[i] == '"')
            quoted = !quoted;
        else if (!quoted && at[i] == '{')
            depth++;
        else if (!quoted && at[i] == '}')
            depth--; /* it is never 0 here */
    }
    return n && i == n && !depth && at[0] == '{';
}

/* Writes JSON verbatim and anything else in quotes. */
static void put_config(struct rp_chars *to, const char *at, size_t n)
{
    if (is_json(at, n))
        rp_chars_put(to, at, n);
    else
        put_quoted(to, at, n);
}

/* XLA writes six digits; if they are not enough, all digits of the float are written. */
static void put_float(struct rp_chars *to, double value)
{
    char text[48];

    snprintf(text, sizeof text, "%g", value);
    if (strtof(text, NULL) != (float)value)
        snprintf(text, sizeof text, "%.9g", value);
    put_text(to, text);
}

static void put_pairs(struct rp_chars *to, const struct rp_attr *attr)
{
    put_text(to, "{");
    for (uint32_t i = 0; i + 1 < attr->n; i += 2)
        put_ints(to, i ? ",{" : "{", attr->ints + i, 2, "}");
    put_text(to, "}");
}

/* Whether a third number of the triples differs from `usual`. */
static bool has_unusual_third(const struct rp_attr *attr, int64_t usual)
{
    for (uint32_t i = 2; i < attr->n; i += 3)
        if (attr->ints[i] != usual)
            return true;
    return false;
}

static void put_slices(struct rp_chars *to, const struct rp_attr *attr)
{
    bool strides = has_unusual_third(attr, 1);

    put_text(to, "{");
    for (uint32_t i = 0; i + 2 < attr->n; i += 3) {
        put_text(to, i ? ", [" : "[");
        put_int(to, attr->ints[i]);
        put_text(to, ":");
        put_int(to, attr->ints[i + 1]);
        if (strides) {
            put_text(to, ":");
            put_int(to, attr->ints[i + 2]);
        }
        put_text(to, "]");
    }
    put_text(to, "}");
}

static void put_padding(struct rp_chars *to, const struct rp_attr *attr)
{
    bool interior = has_unusual_third(attr, 0);

    for (uint32_t i = 0; i + 2 < attr->n; i += 3) {
        if (i)
            put_text(to, "x");
        put_int(to, attr->ints[i]);
        put_text(to, "_");
        put_int(to, attr->ints[i + 1]);
        if (interior) {
            put_text(to, "_");
            put_int(to, attr->ints[i + 2]);
        }
    }
}

static void put_words(struct rp_chars *to, const struct rp_attr *attr)
{
    put_text(to, "{");
    for (uint32_t i = 0; i < attr->n; i++) {
        if (i)
            put_text(to, ",");
        rp_chars_put(to, attr->texts[i].at, attr->texts[i].n);
    }
    put_text(to, "}");
}

static void put_map(struct rp_chars *to, const struct rp_attr *attr)
{
    put_text(to, "{");
    for (uint32_t i = 0; i + 1 < attr->n; i += 2) {
        if (i)
            put_text(to, ",");
        rp_chars_put(to, attr->texts[i].at, attr->texts[i].n);
        put_text(to, "=");
        put_config(to, attr->texts[i + 1].at, attr->texts[i + 1].n);
    }
    put_text(to, "}");
}

static void put_reshape(struct rp_chars *to, struct rp_int_list dims, struct rp_int_list perm)
{
    put_list(to, "[", dims, "]");
    if (perm.n)
        put_list(to, "T(", perm, ")");
}

static void put_mesh(struct rp_chars *to, const struct rp_replica_groups *g)
{
    put_text(to, "mesh[");
    for (size_t i = 0; i < g->naxes; i++) {
        put_text(to, i ? ",'" : "'");
        rp_chars_put(to, g->axes[i].name.at, g->axes[i].name.n);
        put_text(to, "'=");
        put_int(to, g->axes[i].size);
    }
    put_text(to, "]");
    if (g->ids.n)
        put_list(to, ", device_ids=(", g->ids, ")");
    if (g->dims.n) {
        put_text(to, ", device_ids=(");
        put_reshape(to, g->dims, g->perm);
        put_text(to, ")");
    }
    put_text(to, " {");
    for (size_t i = 0; i < g->nparts; i++) {
        const struct rp_mesh_part *part = &g->parts[i];

        put_text(to, i ? ",'" : "'");
        rp_chars_put(to, g->axes[part->axis].name.at, g->axes[part->axis].name.n);
        put_text(to, "'");
        if (!part->size)
            continue;
        put_text(to, ":(");
        put_int(to, part->before);
        put_text(to, ")");
        put_int(to, part->size);
    }
    put_text(to, "}");
}

static void put_groups(struct rp_chars *to, const struct rp_replica_groups *g)
{
    if (g->form == RP_GROUPS_MESH) {
        put_mesh(to, g);
        return;
    }
    if (g->form == RP_GROUPS_IOTA) {
        put_ints(to, "[", (const int64_t[]){(int64_t)g->ngroups, g->group_size}, 2, "]<=");
        put_reshape(to, g->dims, g->perm);
        return;
    }
    put_text(to, "{");
    for (size_t i = 0; i < g->ngroups; i++)
        put_ints(to, i ? ",{" : "{", g->ids.at + g->begin[i], g->begin[i + 1] - g->begin[i], "}");
    put_text(to, "}");
}

/* Aliases of a module are printed with blanks inside the brackets. */
static void put_aliases(struct rp_chars *to, const struct rp_attr *attr)
{
    bool module = attr->key == RP_ATTR_INPUT_OUTPUT_ALIAS;

    put_text(to, module ? "{ " : "{");
    for (uint32_t i = 0; i < attr->n; i++) {
        const struct rp_alias *a = &attr->aliases[i];

        put_list(to, i ? ", {" : "{", a->output, "}: (");
        put_int(to, a->number);
        put_list(to, ", {", a->operand, "}");
        if (a->kind != RP_ALIAS_UNSPECIFIED)
            put_text(to, a->kind == RP_ALIAS_MUST ? ", must-alias" : ", may-alias");
        put_text(to, ")");
    }
    put_text(to, module ? " }" : "}");
}

const char *rp_sharding_word(unsigned type)
{
    static const char *const words[RP_SHARDING_TYPES] = {"replicated", "maximal", "",         "",
                                                         "manual",     "unknown", "unreduced"};

    return type < RP_SHARDING_TYPES ? words[type] : "";
}

/* Readers bound the depth by RP_SHARDING_DEPTH. */
static void put_sharding(struct rp_chars *to, const struct rp_sharding *s)
{
    put_text(to, "{");
    if (s->type == RP_SHARDING_OTHER) {
        put_list(to, "devices=[", s->tiles, "]");
        if (s->dims.n) {
            put_text(to, "<=");
            put_reshape(to, s->dims, s->perm);
        } else {
            put_list(to, "", s->devices, "");
        }
    } else
        put_text(to, rp_sharding_word(s->type));
    if (s->type == RP_SHARDING_MAXIMAL)
        put_list(to, " device=", s->devices, "");
    if (s->last_replicate)
        put_text(to, " last_tile_dim_replicate");
    for (size_t i = 0; i < s->last.n; i++) {
        put_text(to, i ? ", " : " last_tile_dims={");
        put_text(to, rp_sharding_word((unsigned)s->last.at[i]));
    }
    if (s->last.n)
        put_text(to, "}");
    for (size_t i = 0; i < s->nparts; i++) {
        put_text(to, i ? ", " : "");
        put_sharding(to, &s->parts[i]);
    }
    if (s->grouped) {
        put_text(to, s->shard_like ? " shard_like " : " shard_as ");
        put_int(to, s->group);
    }
    put_text(to, "}");
}

/* The fields of windows, in the order in which they are printed. */
enum window_field {
    WINDOW_SIZE,
    WINDOW_STRIDE,
    WINDOW_PAD,
    WINDOW_LHS_DILATE,
    WINDOW_RHS_DILATE,
    WINDOW_RHS_REVERSAL,
    WINDOW_FIELDS
};

static int64_t window_field(const struct rp_window_dim *d, int field)
{
    switch (field) {
    case WINDOW_SIZE:
        return d->size;
    case WINDOW_STRIDE:
        return d->stride;
    case WINDOW_LHS_DILATE:
        return d->base_dilation;
    case WINDOW_RHS_DILATE:
        return d->window_dilation;
    default:
        return d->reversal;
    }
}

/* Whether all dimensions have the default value of this field. */
static bool is_window_default(const struct rp_attr *attr, int field)
{
    for (uint32_t i = 0; i < attr->n; i++) {
        const struct rp_window_dim *d = &attr->window[i];

        if (field == WINDOW_PAD ? d->pad_low || d->pad_high
                                : window_field(d, field) != (field != WINDOW_RHS_REVERSAL))
            return false;
    }
    return field != WINDOW_SIZE;
}

static void put_window(struct rp_chars *to, const struct rp_attr *attr)
{
    static const char *const names[] = {
        "size=", " stride=", " pad=", " lhs_dilate=", " rhs_dilate=", " rhs_reversal="};

    put_text(to, "{");
    for (int field = WINDOW_SIZE; attr->n && field < WINDOW_FIELDS; field++) {
        if (is_window_default(attr, field))
            continue;
        put_text(to, names[field]);
        for (uint32_t i = 0; i < attr->n; i++) {
            const struct rp_window_dim *d = &attr->window[i];

            if (i)
                put_text(to, "x");
            put_int(to, field == WINDOW_PAD ? d->pad_low : window_field(d, field));
            if (field == WINDOW_PAD) {
                put_text(to, "_");
                put_int(to, d->pad_high);
            }
        }
    }
    put_text(to, "}");
}

static void put_conv_dims(struct rp_chars *to, const struct rp_attr *attr)
{
    struct rp_conv_dims dims;
    char text[64];

    if (rp_attr_conv_dims(attr, &dims) && rp_conv_dims_print(&dims, text))
        put_text(to, text);
}

static void put_ops(const struct rp_program *p, struct rp_chars *to, const struct rp_attr *attr)
{
    put_text(to, "{");
    for (uint32_t i = 0; i < attr->n; i++) {
        put_text(to, i ? ", %" : "%");
        put_text(to, rp_program_text(p, p->op_name.at[attr->ids[i]]));
    }
    put_text(to, "}");
}

static void put_shapes(const struct rp_program *p, struct rp_chars *to, const struct rp_attr *attr)
{
    put_text(to, "{");
    for (uint32_t i = 0; i < attr->n; i++) {
        put_text(to, i ? ", " : "");

        uint32_t shape = attr->ids[i];
        char few[256];
        size_t n = rp_shape_text(p, shape, true, few, sizeof few);
        if (n < sizeof few) {
            rp_chars_put(to, few, n);
            continue;
        }
        char *many = malloc(n + 1);
        to->failed |= !many;
        if (!many)
            continue;
        rp_shape_text(p, shape, true, many, n + 1);
        rp_chars_put(to, many, n);
        free(many);
    }
    put_text(to, "}");
}

void rp_attr_print(const struct rp_program *p, const struct rp_attr *attr, struct rp_chars *to)
{
    switch ((enum rp_value_type)attr->type) {
    case RP_VALUE_WIRE:
        break;
    case RP_VALUE_TEXT:
    case RP_VALUE_WORD:
        rp_chars_put(to, attr->at, attr->n);
        break;
    case RP_VALUE_FLAG:
        put_text(to, attr->number ? "true" : "false");
        break;
    case RP_VALUE_INT:
        put_int(to, attr->number);
        break;
    case RP_VALUE_FLOAT:
        put_float(to, attr->real);
        break;
    case RP_VALUE_STRING:
        put_quoted(to, attr->at, attr->n);
        break;
    case RP_VALUE_CONFIG:
        put_config(to, attr->at, attr->n);
        break;
    case RP_VALUE_INTS:
        put_ints(to, "{", attr->ints, attr->n, "}");
        break;
    case RP_VALUE_PAIRS:
        put_pairs(to, attr);
        break;
    case RP_VALUE_SLICES:
        put_slices(to, attr);
        break;
    case RP_VALUE_PADDING:
        put_padding(to, attr);
        break;
    case RP_VALUE_CONV_DIMS:
        put_conv_dims(to, attr);
        break;
    case RP_VALUE_WORDS:
        put_words(to, attr);
        break;
    case RP_VALUE_MAP:
        put_map(to, attr);
        break;
    case RP_VALUE_WINDOW:
        put_window(to, attr);
        break;
    case RP_VALUE_GROUPS:
        put_groups(to, attr->groups);
        break;
    case RP_VALUE_ALIASES:
        put_aliases(to, attr);
        break;
    case RP_VALUE_SHARDING:
        put_sharding(to, attr->sharding);
        break;
    case RP_VALUE_OPS:
        put_ops(p, to, attr);
        break;
    case RP_VALUE_SHAPES:
        put_shapes(p, to, attr);
        break;
    }
}

const char *rp_attr_text(const struct rp_program *p, const struct rp_attr *attr,
                         struct rp_arena *arena)
{
    struct rp_chars chars = {0};

    rp_attr_print(p, attr, &chars);
    const char *text = rp_arena_text(arena, chars.at ? chars.at : "");
    arena->failed |= chars.failed;
    rp_chars_release(&chars);
    return text;
}
