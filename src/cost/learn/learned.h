/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Cost models that are learned from measured operators. For each operator and device there is a
 * fit: overhead, arithmetic and memory added up, and on it either curves (log-linear pieces, by
 * number format) or trees. A prediction is kept between the measured shapes that are smaller and
 * larger than it, and above the roofline. It never falls when a dimension grows.
 *
 *     struct rp_learned model;
 *     struct rp_learned_time t;
 *
 *     RP_TRY(rp_learned_read(&model, "h200.model", err));
 *     if (rp_learned_predict(&model, &sample, &t))
 *         ... t.ns, between t.low_ns and t.high_ns in four of five cases
 *     rp_learned_release(&model);
 */
#include "cost/learn/features.h"
#include "io/output.h"

/* A piece of a curve: `gain` times how far feature x is between low and high, 0 to 1. A step where
   they are equal. */
struct rp_curve_piece {
    uint8_t feature; /* RP_FEATURES_MAX: the logarithm of the base */
    float low, high, gain;
};

#define RP_BASE_TERMS 4

/* What is added up on a base, for one number format and alignment. */
struct rp_curve {
    uint8_t type;               /* enum rp_number; NONE: any */
    uint8_t aligned;            /* 2: of aligned shapes; 1: of others; 0: of any */
    double base[RP_BASE_TERMS]; /* seconds: overhead, factors of compute_s, memory_s, extra_s */
    double low, high;           /* of the logarithm of the base, in the rows */
    double bias, slope;         /* slope: on the logarithm of the base */
    RP_VEC(struct rp_curve_piece) pieces;
};

struct rp_fit {
    const char *op;               /* or a family: "~products", "~rows", "~elements" */
    const char *device;           /* "*": of several devices */
    uint8_t kind;                 /* enum rp_op_kind */
    uint32_t types;               /* bits of enum rp_number: what was measured */
    uint32_t count;               /* rows that it was fitted to */
    uint32_t first, end;          /* its rows, of an operator on one device; else empty */
    double error_low, error_high; /* of log(measured / predicted) for shapes left out: a tenth is
                                     below, a tenth above */
    double median, p90; /* of |predicted / measured - 1| for shapes left out; NAN: not known */
    RP_VEC(struct rp_curve) curves;
};

/* How operators of a kind that were measured in two formats take longer in the second than their
   fit of the first says: logarithms, of short kernels and of long ones. */
struct rp_format_gap {
    uint8_t kind, from, to;
    double quick, slow;
};

struct rp_learned {
    struct rp_arena arena;
    struct rp_samples samples; /* sorted: device, operator, format, shape */
    RP_VEC(double) smooth;     /* by sample: log of seconds, made monotone where operators are */
    RP_VEC(struct rp_features) features; /* by sample */
    RP_VEC(struct rp_fit) fits;
    RP_VEC(struct rp_format_gap) transfers;
};

enum rp_provenance { RP_MEASURED, RP_FITTED, RP_ASSUMED };
extern const char *const rp_provenance_names[3];

struct rp_learned_time {
    double ns, low_ns, high_ns;
    uint8_t provenance; /* enum rp_provenance */
    const char *why;    /* what it rests on: "measured", "fitted to conv2d", …; static */
};

/* Learns from all samples but those left out (NULL: none). `calibrate`: finds the intervals by
   leaving shapes out. Texts stay in the samples, which must outlive the model. Release it also
   after a failure. */
enum rp_code rp_learn(struct rp_learned *out, const struct rp_samples *samples,
                      const uint8_t *left_out, bool calibrate, struct rp_err *err);
void rp_learned_release(struct rp_learned *model);

/* The time of an operator whose flops and bytes are known. False: nothing is known about it. */
bool rp_learned_predict(const struct rp_learned *model, const struct rp_sample *s,
                        struct rp_learned_time *out);

/* How long an operator takes in another format, in parts of its time now; false: not known. */
struct rp_learned_ratio {
    double ratio, low, high;
    uint8_t provenance;
};
bool rp_learned_ratio_of(const struct rp_learned *model, const struct rp_sample *from,
                         const struct rp_sample *to, struct rp_learned_ratio *out);

/* The fold that shapes left out together belong to: all formats and devices of a shape have the
   same, whatever else is in the table. */
#define RP_LEARN_FOLDS 5
uint32_t rp_learn_fold(const struct rp_sample *s);

/* ------------------------------------------------------------------ files (file.c) */

void rp_learned_write(const struct rp_learned *model, struct rp_out *out);
enum rp_code rp_learned_parse(struct rp_learned *out, const char *name, const char *text,
                              struct rp_err *err);
enum rp_code rp_learned_read(struct rp_learned *out, const char *path, struct rp_err *err);
/* The model that is built in: an H200 of NVIDIA. */
enum rp_code rp_learned_builtin(struct rp_learned *out, struct rp_err *err);

/* ------------------------------------------------------------------ inside */

/* What a fit is fitted to. */
struct rp_fit_rows {
    size_t n;
    const struct rp_features *const *x;
    const uint8_t *type;
    const double *y; /* log of seconds */
};

/* The curve for an operator. */
const struct rp_curve *rp_fit_curve(const struct rp_fit *fit, const struct rp_features *x,
                                    uint8_t type);
double rp_curve_base(const struct rp_curve *curve, const struct rp_features *x);
double rp_curve_at(const struct rp_curve *curve, const struct rp_features *x, double log_base);
/* weight: as many as rows, scratch. base.c */
void rp_curve_fit_base(struct rp_curve *curve, const struct rp_fit_rows *rows, double *weight);
/* Groups rows by format and alignment. curves.c */
enum rp_code rp_fit_curves_to(struct rp_fit *fit, const struct rp_fit_rows *rows,
                              struct rp_err *err);
/* A fit's value, as the logarithm of seconds. */
double rp_fit_at(const struct rp_fit *fit, const struct rp_features *x, uint8_t type);
/* How much longer than their fit the most similar convolutions that were measured take: a
   logarithm. neighbours.c */
double rp_neighbours_shift(const struct rp_learned *model, const struct rp_fit *fit,
                           const struct rp_features *x);
/* After the fits are there: transfers. predict.c */
enum rp_code rp_learned_compare_formats(struct rp_learned *model, struct rp_err *err);
/* After the rows of a model are there: features, order, smooth times. */
enum rp_code rp_learned_prepare(struct rp_learned *model, struct rp_err *err);

/* The value below which a part q of n sorted ones is, between two of them if need be; n > 0. */
double rp_quantile(const double *sorted, size_t n, double q);
/* Of the errors of n rows that were left out, which are overwritten. learn.c */
void rp_fit_interval(struct rp_fit *fit, double *errors, size_t n);
