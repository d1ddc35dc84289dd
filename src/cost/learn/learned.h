/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Cost models learned from measured operators. For each operator and device there is a fit: the sum
 * of overhead, arithmetic and memory, and on it either curves (log-linear pieces, by number format)
 * or trees. A prediction is kept between the measured shapes that are smaller and larger than it,
 * and above the roofline. It never falls when a dimension grows.
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

#include <pthread.h>
#include <stdatomic.h>

/* A piece of a curve: `gain` times how far feature x is between low and high, 0 to 1. It is a step
   if they are equal. */
struct rp_curve_piece {
    uint8_t feature; /* RP_FEATURES_MAX stands for the logarithm of the base */
    float low, high, gain;
};

#define RP_BASE_TERMS 4

/* The terms that are added to a base, for one number format and alignment. */
struct rp_curve {
    uint8_t type;    /* enum rp_number; NONE for any */
    uint8_t aligned; /* 2 for aligned shapes, 1 for others, 0 for any */
    double
        base[RP_BASE_TERMS]; /* in seconds: overhead, and factors of compute_s, memory_s, extra_s */
    double low, high;        /* of the logarithm of the base, in the rows */
    double bias, slope;      /* slope is a factor of the logarithm of the base */
    RP_VEC(struct rp_curve_piece) pieces;
};

struct rp_fit {
    const char *op;      /* or a family: "~products", "~rows", "~elements" */
    const char *device;  /* "*" for several devices */
    uint8_t kind;        /* enum rp_op_kind */
    uint32_t types;      /* bits of enum rp_number: the formats that were measured */
    uint32_t count;      /* number of rows to which it was fitted */
    uint32_t first, end; /* its rows, if it is for an operator on one device; otherwise empty */
    double error_low, error_high; /* of log(measured / predicted) for shapes left out: a tenth is
                                     below, and a tenth above */
    double median, p90; /* of |predicted / measured - 1| for shapes left out; NAN if not known */
    RP_VEC(struct rp_curve) curves;
};

/* How much longer operators of a kind that were measured in two formats take in the second than the
   fit of the first tells: logarithms, for short kernels and for long ones. */
struct rp_format_gap {
    uint8_t kind, from, to;
    double quick, slow;
};

/* The answer of rp_learned_ratio_of. */
struct rp_learned_ratio {
    double ratio, low, high;
    uint8_t provenance;
};
struct rp_known_ratio {
    struct rp_sample from, to;
    bool known;
    struct rp_learned_ratio ratio;
};

/* What was found out about the samples of a device, operator and format: that is done when somebody
   asks about them, because a step has few of the operators that a model knows. A model may be asked
   by several threads. */
enum { RP_ROWS_UNKNOWN, RP_ROWS_KNOWN, RP_ROWS_SMOOTH };
struct rp_learned_rows {
    pthread_mutex_t lock;
    struct rp_arena arena;
    RP_VEC(struct rp_known_ratio) ratios;
    atomic_uchar state[]; /* by the first sample */
};

struct rp_learned {
    struct rp_arena arena;
    struct rp_samples samples; /* sorted by device, operator, format and shape */
    RP_VEC(double) log_s;      /* by sample: log of seconds, when asked for */
    RP_VEC(double) smooth;     /* the same, made monotone for operators that are */
    RP_VEC(uint32_t) kin;      /* by sample: the first of its device, operator and format */
    struct rp_learned_rows *rows;
    RP_VEC(struct rp_features) features; /* by sample: rp_learned_features */
    RP_VEC(struct rp_fit) fits;
    RP_VEC(struct rp_format_gap) transfers;
};

enum rp_provenance { RP_MEASURED, RP_FITTED, RP_ASSUMED };
extern const char *const rp_provenance_names[3];

struct rp_learned_time {
    double ns, low_ns, high_ns;
    uint8_t provenance; /* enum rp_provenance */
    const char *why; /* the basis of the prediction: "measured", "fitted to conv2d", … (static) */
};

/* Learns from all samples but those left out (NULL for none). `calibrate`: finds the intervals by
   leaving shapes out. Texts stay in the samples, which must outlive the model. Must be released
   also after a failure. */
enum rp_code rp_learn(struct rp_learned *out, const struct rp_samples *samples,
                      const uint8_t *left_out, bool calibrate, struct rp_err *err);
void rp_learned_release(struct rp_learned *model);

/* Predicts the time of an operator whose flops and bytes are known. Returns false if nothing is
   known about it. */
bool rp_learned_predict(const struct rp_learned *model, const struct rp_sample *s,
                        struct rp_learned_time *out);

/* The time of an operator in another format divided by its time now; false if not known. Answers
   are kept, because the steps and ranks of a run repeat a few shapes. */
bool rp_learned_ratio_of(const struct rp_learned *model, const struct rp_sample *from,
                         const struct rp_sample *to, struct rp_learned_ratio *out);

/* Returns the fold of a shape, which is left out as a whole: all formats and devices of a shape
   have the same one, whatever else is in the table. */
#define RP_LEARN_FOLDS 5
uint32_t rp_learn_fold(const struct rp_sample *s);

/* ------------------------------------------------------------------ files (file.c) */

void rp_learned_write(const struct rp_learned *model, struct rp_out *out);
enum rp_code rp_learned_parse(struct rp_learned *out, const char *name, const char *text,
                              struct rp_err *err);
enum rp_code rp_learned_read(struct rp_learned *out, const char *path, struct rp_err *err);
/* Reads the built-in model, that of an NVIDIA H200. */
enum rp_code rp_learned_builtin(struct rp_learned *out, struct rp_err *err);

/* ------------------------------------------------------------------ inside */

/* The rows to which a fit is fitted. */
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
/* weight is scratch space for as many values as rows. (base.c) */
void rp_curve_fit_base(struct rp_curve *curve, const struct rp_fit_rows *rows, double *weight);
/* Groups rows by format and alignment, and fits a curve to each group. (curves.c) */
enum rp_code rp_fit_curves_to(struct rp_fit *fit, const struct rp_fit_rows *rows,
                              struct rp_err *err);
/* A fit's value, as the logarithm of seconds. */
double rp_fit_at(const struct rp_fit *fit, const struct rp_features *x, uint8_t type);
/* Returns the logarithm of how much longer than their fit the most similar measured convolutions
   take. (neighbours.c) */
double rp_neighbours_shift(const struct rp_learned *model, const struct rp_fit *fit,
                           const struct rp_features *x);
/* Called when the fits are there: compares formats. (predict.c) */
enum rp_code rp_learned_compare_formats(struct rp_learned *model, struct rp_err *err);
/* Called when the rows of a model are there: sets kin, and makes room for what is found later. */
enum rp_code rp_learned_prepare(struct rp_learned *model, struct rp_err *err);
/* The features of a row. (learn.c) */
const struct rp_features *rp_learned_features(const struct rp_learned *model, size_t row);
/* The time of a row, as `smooth`. (learn.c) */
double rp_learned_smooth(const struct rp_learned *model, size_t row);

/* Returns the value below which a part q of n sorted ones lies, interpolated between two of them if
   necessary; n > 0. */
double rp_quantile(const double *sorted, size_t n, double q);
/* Uses the errors of n rows that were left out, and overwrites them. (learn.c) */
void rp_fit_interval(struct rp_fit *fit, double *errors, size_t n);
