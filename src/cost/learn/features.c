/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Features of operators: times at the peaks of the device, dimensions, and for products of matrices
 * the number of tiles and of rounds in which the device runs them, because it runs a few hundred
 * tiles at a time. All sizes are logarithms.
 */
#include "cost/learn/features.h"

#include "base/decides.h"
#include <math.h>
#include <string.h>

#define FLASH_TILE 128
RP_FACT(FLASH_TILE, "queries",
        "of a block of FlashAttention 2 and 3, at the widths of heads up to 128");
#define ANY_PEAK 1e12
RP_FACT(ANY_PEAK, "FLOP/s",
        "of devices whose row of cost/devices.def names none: those of 2010 had it");

#define LEAST 1e-30
RP_LIMIT(LEAST, "of a feature", "keeps logarithms finite");

static double log_of(double x)
{
    return log(fmax(x, LEAST));
}

static void add_feature(struct rp_features *f, double value)
{
    if (f->n < RP_FEATURES_MAX)
        f->x[f->n++] = (float)value;
}

/* The largest power of two that divides a dimension, up to most. */
static uint8_t alignment(double d, uint8_t most)
{
    uint8_t a = 1;

    while (a < most && fmod(d, a * 2) == 0)
        a = (uint8_t)(a * 2);
    return a;
}

static void set_order(struct rp_features *f, const double *d, size_t n)
{
    memcpy(f->order, d, n * sizeof *d);
    f->norder = (uint8_t)n;
}

const struct rp_device_peaks *rp_sample_device(const struct rp_sample *s, bool *known)
{
    const struct rp_device_peaks *d = rp_device_by_name(s->device);

    *known = d != NULL;
    return d ? d : rp_device_by_name("A100");
}

/* ------------------------------------------------------------------ by kind */

/* A product of matrices, or an operator that is computed like one: batch, M, K, N. */
struct product {
    double b, m, k, n;
};

static struct product product_as(const struct rp_sample *s)
{
    const double *d = s->dim;

    if (s->kind == RP_OP_BMM)
        return (struct product){d[0], d[1], d[2], d[3]};
    if (s->kind == RP_OP_CONV)
        return (struct product){
            1, d[0] * rp_conv_out(d[2], d[5], d[6]) * rp_conv_out(d[3], d[5], d[6]),
            d[1] * d[5] * d[5], d[4]};
    if (s->kind == RP_OP_MATMUL)
        return (struct product){1, d[0], d[1], d[2]};
    return (struct product){1, s->dim[0], 1, rp_sample_elements(s) / s->dim[0]};
}

static double rounds(double tiles, double units)
{
    return ceil(tiles / units);
}

static void product_sizes(const struct product *p, double units, struct rp_features *f)
{
    double large = p->b * ceil(p->m / 128) * ceil(p->n / 128);
    double small = p->b * ceil(p->m / 64) * ceil(p->n / 64);
    double wide = p->b * ceil(p->m / 256) * ceil(p->n / 128);

    f->extra_s = rounds(large, units) * units * 128 * 128 * 2 * p->k / f->peak;
    add_feature(f, log_of(p->b * p->m));
    add_feature(f, log_of(p->k));
    add_feature(f, log_of(p->n));
    add_feature(f, log_of(large));
    add_feature(f, log_of(rounds(large, units) * p->k));
    add_feature(f, log_of(rounds(small, units) * p->k));
    add_feature(f, log_of(rounds(wide, units) * p->k));
}

static void sizes_of(const struct rp_sample *s, enum rp_op_kind kind, double units,
                     struct rp_features *f)
{
    const double *d = s->dim;
    struct product p;

    switch (kind) {
    case RP_OP_MATMUL:
    case RP_OP_BMM:
    case RP_OP_CONV:
        p = product_as(s);
        product_sizes(&p, units, f);
        if (kind == RP_OP_BMM)
            add_feature(f, log_of(p.b));
        set_order(f, (double[]){p.b, p.m, p.k, p.n}, 4);
        f->align[0] = alignment(kind == RP_OP_CONV ? d[1] : p.k, 8);
        f->align[1] = alignment(p.n, 8);
        f->nalign = 2;
        if (kind == RP_OP_CONV) {
            add_feature(f, log_of(d[1]));
            add_feature(f, log_of(d[2]));
            add_feature(f, log_of(d[0]));
            add_feature(f, log_of(d[5]));
            set_order(f, (double[]){d[0], d[1], d[2], d[3], d[4], d[5], -d[6]}, 7);
        }
        break;
    case RP_OP_ATTENTION:
        add_feature(f, log_of(d[0] * d[1]));
        add_feature(f, log_of(d[2]));
        add_feature(f, log_of(d[3]));
        f->extra_s = rounds(d[0] * d[1] * ceil(d[2] / FLASH_TILE), units) * units * FLASH_TILE *
                     (2. + 2) * d[2] * d[3] / f->peak; /* two products */
        add_feature(f, log_of(rounds(d[0] * d[1] * ceil(d[2] / FLASH_TILE), units) * d[2]));
        set_order(f, d, 4);
        break;
    case RP_OP_ROWS:
        f->extra_s = d[0] * 1e-9;
        add_feature(f, log_of(d[0]));
        add_feature(f, log_of(d[1]));
        add_feature(f, log_of(rounds(d[0], units) * d[1]));
        set_order(f, d, 2);
        f->align[0] = alignment(d[1], 4);
        f->nalign = 1;
        break;
    default:
        set_order(f, (double[]){rp_sample_elements(s)}, 1);
        f->align[0] = alignment(d[s->ndims - 1], 4);
        f->nalign = 1;
    }
}

/* Most are logarithms. The weights minimise the error for shapes that were left out, among about
   1,400 shapes in up to three formats, forwards and backwards, on one H200. */
static const double trait_weights[RP_CONV_TRAITS] = {
    [RP_CONV_BATCH] = 0.4,
    [RP_CONV_CHANNELS] = 0.75,
    [RP_CONV_HEIGHT] = 0.55,
    [RP_CONV_FILTERS] = 0.55,
    [RP_CONV_KERNEL] = 4.5,
    [RP_CONV_STRIDE] = 2.25,
    [RP_CONV_CHANNELS_ALIGNED] = 0.55,
    [RP_CONV_FILTERS_ALIGNED] = 1.2,
    [RP_CONV_NUMBER_BYTES] = 2.25,
    [RP_CONV_PIXELS] = 0.3,
    [RP_CONV_POINTWISE] = 0.5,
    [RP_CONV_TIME_AT_PEAKS] = 0.5,
    [RP_CONV_FLOPS_A_BYTE] = 1.1,
};

static void set_traits(const struct rp_sample *s, struct rp_features *x)
{
    const double *d = s->dim;
    double pixels = rp_conv_out(d[2], d[5], d[6]) * rp_conv_out(d[3], d[5], d[6]);
    const double plain[RP_CONV_TRAITS] = {
        [RP_CONV_BATCH] = log(d[0]),
        [RP_CONV_CHANNELS] = log(d[1]),
        [RP_CONV_HEIGHT] = log(d[2]),
        [RP_CONV_FILTERS] = log(d[4]),
        [RP_CONV_KERNEL] = log(d[5]),
        [RP_CONV_STRIDE] = log(d[6]),
        [RP_CONV_CHANNELS_ALIGNED] = log2(x->align[0]),
        [RP_CONV_FILTERS_ALIGNED] = log2(x->align[1]),
        [RP_CONV_NUMBER_BYTES] = log(rp_number_bytes((enum rp_number)s->type)),
        [RP_CONV_PIXELS] = log(d[0] * pixels),
        [RP_CONV_POINTWISE] = d[5] == 1,
        [RP_CONV_TIME_AT_PEAKS] = log(fmax(x->compute_s, x->memory_s)),
        [RP_CONV_FLOPS_A_BYTE] = log(s->flops / s->bytes),
    };

    for (int i = 0; i < RP_CONV_TRAITS; i++)
        x->trait[i] = (float)(trait_weights[i] * plain[i]);
}

/* Products run on matrix units if the device has them for the format. Libraries compute
   convolutions of fp32 in tf32 unless they are told not to. */
static double peak_of(const struct rp_sample *s, const struct rp_device_peaks *device)
{
    enum rp_number type = (enum rp_number)s->type;
    double peak;

    if (s->kind < RP_OP_MATMUL || s->kind > RP_OP_ATTENTION)
        peak = rp_device_vector_peak(device, type);
    else if (s->kind == RP_OP_CONV && type == RP_NUMBER_FP32)
        peak = fmax(rp_device_matrix_peak(device, RP_NUMBER_TF32),
                    rp_device_matrix_peak(device, type));
    else
        peak = rp_device_matrix_peak(device, type);
    return peak > 0 ? peak : device->vector32 > 0 ? device->vector32 : ANY_PEAK;
}

void rp_features_of(const struct rp_sample *s, enum rp_op_kind kind, struct rp_features *out)
{
    bool known;
    const struct rp_device_peaks *device = rp_sample_device(s, &known);
    double peak = peak_of(s, device);
    bool on_matrix = s->kind >= RP_OP_MATMUL && s->kind <= RP_OP_ATTENTION;
    double uncached = s->bytes - device->cache_bytes;

    *out = (struct rp_features){0};
    out->peak = on_matrix ? peak * device->reach : peak;
    out->compute_s = s->flops / out->peak;
    out->memory_s = s->bytes / device->memory;
    out->least_s = known ? fmax(s->flops / peak, uncached > 0 ? uncached / device->memory : 0) : 0;
    add_feature(out, log_of(fmax(out->compute_s, out->memory_s)));
    add_feature(out, log_of(out->compute_s));
    add_feature(out, log_of(out->memory_s));
    sizes_of(s, kind, device->units > 0 ? device->units : 100, out);
    out->nsizes = out->n;

    /* Set the traits, which do not grow with the shape. */
    uint8_t least = 8;
    out->aligned = true;
    for (int i = 0; i < out->nalign; i++) {
        out->aligned = out->aligned && out->align[i] >= (out->nalign > 1 ? 8 : 4);
        add_feature(out, log2(out->align[i]));
        least = out->align[i] < least ? out->align[i] : least;
    }
    if (out->nalign > 1)
        add_feature(out, log2(least));
    add_feature(out, rp_number_bytes((enum rp_number)s->type));
    add_feature(out, s->type == RP_NUMBER_BF16);
    if (kind == RP_OP_CONV)
        add_feature(out, s->dim[6]);
    add_feature(out, log_of(peak));
    add_feature(out, log_of(device->memory));

    if (kind == RP_OP_CONV)
        set_traits(s, out);
}

bool rp_features_below(const struct rp_features *a, const struct rp_features *b)
{
    for (int i = 0; i < a->norder; i++)
        if (a->order[i] > b->order[i])
            return false;
    for (int i = 0; i < a->nalign; i++)
        if (a->align[i] < b->align[i])
            return false;
    return true;
}
