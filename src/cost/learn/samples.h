/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Measured operators, from which cost models learn: one row is an operator on a device with its
 * number format, shape, FLOPs, bytes and time. They come from tables (CSV, docs/cli/model.md) or
 * from traces (cost/learn/from_trace.h).
 */
#include "base/arena.h"
#include "base/vec.h"
#include "cost/devices.h"

#include <stdbool.h>

#define RP_SHAPE_DIMS 8
/* Times and sizes beyond these are refused. */
#define RP_SAMPLE_MOST_NS   1e15
#define RP_SAMPLE_MOST_WORK 1e21
#define RP_SAMPLE_MOST_DIM  1e15

/* How the numbers of a shape are used (features.c). */
enum rp_op_kind {
    RP_OP_ELEMENTS,  /* n, or any dimensions, of which the product counts */
    RP_OP_ROWS,      /* rows x columns; a reduction or normalization over columns */
    RP_OP_MATMUL,    /* M x K x N */
    RP_OP_BMM,       /* batch x M x K x N */
    RP_OP_CONV,      /* batch x channels x height x width x filters x kernel x stride */
    RP_OP_ATTENTION, /* batch x heads x length x width of a head */
    RP_OP_FUSED,     /* n: a chain of element-wise operators in one kernel */
    RP_OP_KINDS
};
extern const char *const rp_op_kind_names[RP_OP_KINDS];

struct rp_sample {
    const char *op;     /* "matmul", "conv2d", "aten::gelu"; for a chain its parts: "neg+exp" */
    const char *device; /* a name of devices.def, such as "H200" */
    uint8_t type;       /* enum rp_number */
    uint8_t kind;       /* enum rp_op_kind */
    uint8_t ndims;
    double dim[RP_SHAPE_DIMS];
    double flops, bytes;
    double ns;    /* the time of its kernels; NAN if it is to be predicted */
    double count; /* how often it was measured; ns is the median */
};

double rp_sample_elements(const struct rp_sample *s); /* Returns the product of its dimensions. */

struct rp_samples {
    struct rp_arena arena;
    RP_VEC(struct rp_sample) rows;
    RP_VEC(const char *) sources; /* the files from which they were read, as the user named them */
};

void rp_samples_release(struct rp_samples *samples);

/* Facts about an operator that follow from its name. on_matrix: it is computed by matrix units. */
struct rp_op_name {
    const char *name;
    uint8_t kind;
    bool on_matrix;
    double flops; /* FLOPs per element, for elements and rows */
    double moved; /* elements read and written per element of its shape; 0 if the kind tells */
};
/* Returns NULL if the table does not have it. "aten::" in front and '_' at the end do not
   matter. */
const struct rp_op_name *rp_op_name_of(const char *op, size_t len);

/* Fills kind, and flops and bytes if they are NAN, from op, type and dimensions. Returns RP_USAGE
   if the operator cannot have this shape; the message tells which shape it has. */
enum rp_code rp_sample_complete(struct rp_sample *s, struct rp_err *err);
/* Reads "f32", "bf16", "float32", "half", …; NONE if unknown. */
enum rp_number rp_number_of_word(const char *word, size_t len);
double rp_number_bytes(enum rp_number type);
/* Parses "64x128x32", also with ',' or '*' instead of 'x'. */
enum rp_code rp_sample_shape_parse(const char *text, size_t len, struct rp_sample *s,
                                   struct rp_err *err);
/* Writes a shape into buf as "64x128x32". */
const char *rp_sample_shape_text(const struct rp_sample *s, char *buf, size_t size);
/* Returns how many positions a filter has along one side, with half of it as padding. */
double rp_conv_out(double size, double kernel, double stride);
bool rp_sample_same_shape(const struct rp_sample *a, const struct rp_sample *b);

/* Adds the rows of a CSV file. `device` is for rows without one; if it is NULL, rows must name
   theirs. `timed`: rows must have a time. */
enum rp_code rp_samples_read_csv(struct rp_samples *out, const char *path, const char *device,
                                 bool timed, struct rp_err *err);
enum rp_code rp_samples_parse_csv(struct rp_samples *out, const char *name, const char *text,
                                  const char *device, bool timed, struct rp_err *err);
/* Merges rows of the same operator, device, format and shape into one with the median time. */
enum rp_code rp_samples_merge(struct rp_samples *samples, struct rp_err *err);
