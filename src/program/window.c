/* SPDX-License-Identifier: Apache-2.0 */
/* Small scanners of borrowed text; every number and position is checked. */
#include "program/window.h"

#include <string.h>

struct window_scan {
    const char *at, *end;
};

static bool scan_int(struct window_scan *s, int64_t *value)
{
    bool minus = s->at < s->end && *s->at == '-';
    int64_t v = 0;

    s->at += minus;
    const char *from = s->at;
    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *s->at - '0', &v))
            return false;
    *value = minus ? -v : v;
    return s->at > from;
}

static bool scan_char(struct window_scan *s, char c)
{
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static bool set_field(struct rp_window_dim *dim, const char *key, size_t len, struct window_scan *s)
{
    int64_t v, high;

    if (!scan_int(s, &v))
        return false;
    if (len == 3 && !memcmp(key, "pad", 3)) {
        if (!scan_char(s, '_') || !scan_int(s, &high))
            return false;
        dim->pad_low = v;
        dim->pad_high = high;
    } else if (len == 4 && !memcmp(key, "size", 4))
        dim->size = v;
    else if (len == 6 && !memcmp(key, "stride", 6))
        dim->stride = v;
    else if (len == 10 && !memcmp(key, "lhs_dilate", 10))
        dim->base_dilation = v;
    else if (len == 10 && !memcmp(key, "rhs_dilate", 10))
        dim->window_dilation = v;
    else if (len == 12 && !memcmp(key, "rhs_reversal", 12))
        dim->reversal = v != 0;
    else
        return false;
    return true;
}

bool rp_window_parse(const char *at, size_t n, struct rp_window *out)
{
    struct window_scan s = {at, at + n};

    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < RP_WINDOW_DIMS; i++)
        out->dim[i] = (struct rp_window_dim){1, 1, 0, 0, 1, 1, false};
    for (;;) {
        size_t i = 0;

        while (s.at < s.end && (*s.at == ' ' || *s.at == ',' || *s.at == '{' || *s.at == '}'))
            s.at++;
        if (s.at == s.end)
            return true;
        const char *key = s.at;
        while (s.at < s.end && *s.at != '=')
            s.at++;
        size_t len = (size_t)(s.at - key);
        if (!scan_char(&s, '='))
            return false;
        do {
            if (i == RP_WINDOW_DIMS || !set_field(&out->dim[i++], key, len, &s))
                return false;
        } while (scan_char(&s, 'x'));
        if (out->n && out->n != i)
            return false;
        out->n = i;
    }
}

/* Reads one group of labels: letters name the batch and feature dimensions, digits the spatial
   ones. */
static bool scan_labels(struct window_scan *s, const char *letters, int64_t *first, int64_t *second,
                        int64_t *spatial, size_t *nspatial)
{
    uint32_t seen = 0;
    int64_t position = 0;

    *first = *second = -1;
    *nspatial = 0;
    for (; s->at < s->end && *s->at != '_' && *s->at != '-'; s->at++, position++) {
        char c = *s->at;

        if (c == letters[0])
            *first = position;
        else if (c == letters[1])
            *second = position;
        else if (c >= '0' && c <= '9' && !(seen >> (c - '0') & 1)) {
            spatial[c - '0'] = position;
            seen |= 1U << (c - '0');
            (*nspatial)++;
        } else
            return false;
    }
    return *first >= 0 && *second >= 0 && seen == (1U << *nspatial) - 1 &&
           position == (int64_t)*nspatial + 2; /* no letter twice */
}

bool rp_conv_dims_parse(const char *at, size_t n, struct rp_conv_dims *out)
{
    struct window_scan s = {at, at + n};
    size_t kernel, output;

    memset(out, 0, sizeof *out);
    return scan_labels(&s, "bf", &out->input_batch, &out->input_feature, out->input_spatial,
                       &out->nspatial) &&
           scan_char(&s, '_') &&
           scan_labels(&s, "io", &out->kernel_input, &out->kernel_output, out->kernel_spatial,
                       &kernel) &&
           scan_char(&s, '-') && scan_char(&s, '>') &&
           scan_labels(&s, "bf", &out->output_batch, &out->output_feature, out->output_spatial,
                       &output) &&
           s.at == s.end && kernel == out->nspatial && output == out->nspatial;
}

static bool print_labels(const char *letters, int64_t first, int64_t second, const int64_t *spatial,
                         size_t nspatial, char **out)
{
    size_t rank = nspatial + 2;

    memset(*out, '?', rank);
    if ((uint64_t)first >= rank || (uint64_t)second >= rank)
        return false;
    (*out)[first] = letters[0];
    (*out)[second] = letters[1];
    for (size_t i = 0; i < nspatial; i++) {
        if ((uint64_t)spatial[i] >= rank)
            return false;
        (*out)[spatial[i]] = (char)('0' + i);
    }
    *out += rank;
    return !memchr(*out - rank, '?',
                   rank); /* two dimensions in one place would leave another empty */
}

bool rp_conv_dims_print(const struct rp_conv_dims *d, char out[64])
{
    if (d->nspatial > 10 ||
        !print_labels("bf", d->input_batch, d->input_feature, d->input_spatial, d->nspatial, &out))
        return false;
    *out++ = '_';
    if (!print_labels("io", d->kernel_input, d->kernel_output, d->kernel_spatial, d->nspatial,
                      &out))
        return false;
    *out++ = '-';
    *out++ = '>';
    if (!print_labels("bf", d->output_batch, d->output_feature, d->output_spatial, d->nspatial,
                      &out))
        return false;
    *out = '\0';
    return true;
}

/* ---- attributes ---- */

/* The batch and feature dimensions come first, then the spatial ones of input, kernel and
   output. */
enum { CONV_FIXED = 6 };

struct rp_attr rp_attr_of_window(struct rp_program *p, const struct rp_window *w)
{
    struct rp_window_dim *dims = RP_ARENA_NEW(&p->arena, struct rp_window_dim, w->n);

    if (dims && w->n)
        memcpy(dims, w->dim, w->n * sizeof *dims);
    return (struct rp_attr){
        .window = dims, .n = (uint32_t)w->n, .key = RP_ATTR_WINDOW, .type = RP_VALUE_WINDOW};
}

bool rp_attr_window(const struct rp_attr *attr, struct rp_window *out)
{
    memset(out, 0, sizeof *out);
    if (!attr || attr->type != RP_VALUE_WINDOW || attr->n > RP_WINDOW_DIMS)
        return false;
    out->n = attr->n;
    if (attr->n)
        memcpy(out->dim, attr->window, attr->n * sizeof *out->dim);
    return true;
}

struct rp_attr rp_attr_of_conv_dims(struct rp_program *p, const struct rp_conv_dims *d)
{
    int64_t list[CONV_FIXED + 3 * RP_WINDOW_DIMS] = {d->input_batch,  d->input_feature,
                                                     d->kernel_input, d->kernel_output,
                                                     d->output_batch, d->output_feature};
    size_t n = d->nspatial;

    memcpy(list + CONV_FIXED, d->input_spatial, n * sizeof *list);
    memcpy(list + CONV_FIXED + n, d->kernel_spatial, n * sizeof *list);
    memcpy(list + CONV_FIXED + 2 * n, d->output_spatial, n * sizeof *list);
    return rp_attr_int_list(p, RP_ATTR_DIM_LABELS, RP_VALUE_CONV_DIMS, list, CONV_FIXED + 3 * n);
}

bool rp_attr_conv_dims(const struct rp_attr *attr, struct rp_conv_dims *d)
{
    size_t n;

    memset(d, 0, sizeof *d);
    if (!attr || attr->type != RP_VALUE_CONV_DIMS)
        return false;
    n = d->nspatial = (attr->n - CONV_FIXED) / 3;
    d->input_batch = attr->ints[0];
    d->input_feature = attr->ints[1];
    d->kernel_input = attr->ints[2];
    d->kernel_output = attr->ints[3];
    d->output_batch = attr->ints[4];
    d->output_feature = attr->ints[5];
    memcpy(d->input_spatial, attr->ints + CONV_FIXED, n * sizeof *attr->ints);
    memcpy(d->kernel_spatial, attr->ints + CONV_FIXED + n, n * sizeof *attr->ints);
    memcpy(d->output_spatial, attr->ints + CONV_FIXED + 2 * n, n * sizeof *attr->ints);
    return true;
}
