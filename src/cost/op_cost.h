/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The least work of an operator, computed from its recorded inputs (docs/definitions.md,
 * "Roofline"): floating-point operations, of which a multiply-add is two, and bytes, where each
 * input is read and each output written once. Costs are computed once for the same name, shapes,
 * types and arguments.
 */
#include "base/arena.h"
#include "base/hash.h"
#include "cost/devices.h"
#include "cost/trace_categories.h"
#include "facts/arg_keys.h"

struct rp_op_cost {
    double flops, bytes; /* of one call; NAN if it is not modelled */
    const char
        *missing; /* why it is not modelled: "no shapes were recorded" (static); NULL if it is */
    const char *shape; /* "[64,32] [32,16]", for work without an operator; NULL if not known */
    uint8_t category;  /* enum rp_category */
    uint8_t type;      /* enum rp_number of its arithmetic */
    bool on_matrix;    /* its arithmetic can run on matrix units */
    bool claims;       /* everything launched inside is part of it, as for fused attention */
};

static inline bool rp_cost_is_known(const struct rp_op_cost *cost)
{
    return !cost->missing;
}

struct rp_batch_mark;
struct rp_cost_model;
struct rp_inputs;

/* The costs of the operators of one trace. */
struct rp_op_costs {
    const struct rp_trace *trace;
    struct rp_trace_categories *categories; /* borrowed */
    struct rp_arg_key dims, strides, types, concrete;
    struct rp_inputs *inputs; /* scratch */
    struct rp_map models;     /* from name of an operator to index in `found` */
    RP_VEC(const struct rp_cost_model *) found;
    struct rp_map hints; /* from name of a kernel to number format and size of an element */
    RP_VEC(struct rp_op_cost) costs;
    struct rp_map known; /* from hash of name and inputs to index in costs */
    RP_VEC(struct rp_batch_mark)
    batches; /* of a server's steps; they are read when the first operator needs them */
    bool has_batches;
};

/* Uses the trace of the categories, which must outlive it and needs RP_NEED_ARGS. Must be released
   also after a failure. */
enum rp_code rp_op_costs_init(struct rp_op_costs *c, struct rp_trace_categories *categories,
                              struct rp_err *err);
void rp_op_costs_release(struct rp_op_costs *c);

/* Finds the index in c->costs of the cost of an operator, a span of the host. Its kernel (the name
   of the longest one, or 0) tells formats that the operator does not. */
enum rp_code rp_op_cost_of(struct rp_op_costs *c, rp_event op, rp_str kernel, uint32_t *cost,
                           struct rp_err *err);

/* Whether an operator is modelled as a whole, as far as its name tells. */
enum rp_code rp_op_cost_claims(struct rp_op_costs *c, rp_event op, bool *claims,
                               struct rp_err *err);

/* Adds the cost of something that is not an operator. */
enum rp_code rp_op_cost_add(struct rp_op_costs *c, const struct rp_op_cost *cost, uint32_t *index,
                            struct rp_err *err);

/* Computes the cost of an operator from its name and the texts of its arguments (NULL if not
   recorded), without a trace. */
enum rp_code rp_cost_of_texts(const char *name, const char *dims, const char *strides,
                              const char *types, const char *concrete, const char *kernel,
                              struct rp_op_cost *out, struct rp_err *err);

/* The least time of one call on a device, in seconds: the longer of the times for its FLOPs and its
   bytes. NAN if not known. */
struct rp_cost_peaks {
    double matrix[RP_NUMBERS], vector[RP_NUMBERS]; /* FLOP/s; 0: not known */
    double memory;                                 /* bytes/s */
};
void rp_cost_peaks_of_device(struct rp_cost_peaks *peaks, const struct rp_device_peaks *device);
double rp_cost_compute_s(const struct rp_op_cost *cost, const struct rp_cost_peaks *peaks);
double rp_cost_memory_s(const struct rp_op_cost *cost, const struct rp_cost_peaks *peaks);
