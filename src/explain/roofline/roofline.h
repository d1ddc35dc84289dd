/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `roofline` shows how good each operator is, by the work that its shapes need and the peaks of the
 * device (docs/definitions.md, "Roofline"). groups.c adds up the calls of one trace, roofline.c has
 * the row of the question and joins the ranks.
 */
#include "base/arena.h"
#include "cost/calls.h"
#include "facts/work/recorder.h"

#include <reprise/result.h>

enum rp_roof_by {
    RP_ROOF_SHAPE,
    RP_ROOF_OP,
    RP_ROOF_KERNEL,
    RP_ROOF_MODULE,
    RP_ROOF_ANNOTATION,
    RP_ROOF_PHASE,
    RP_ROOF_CATEGORY,
    RP_ROOF_BYS
};
#define RP_ROOF_BY_WORDS "shape|op|kernel|module|annotation|phase|category"

/* The slowest limit of a call. */
enum rp_roof_bound { RP_BOUND_COMPUTE, RP_BOUND_MEMORY, RP_BOUND_LATENCY, RP_BOUNDS };

/* A call that needs less at the peaks is bound by latency, because even the shortest kernel takes
   about as long. */
#define RP_ROOF_LATENCY_NS 2000

/* One row of one rank, added up over its calls. */
struct rp_roof_sums {
    int64_t calls, kernels, device_ns;
    int64_t modelled_ns; /* the part of it with FLOPs and bytes */
    int64_t rated_ns;    /* the part of that for which the peaks are known, too */
    double flops, bytes; /* of modelled work */
    double least_s;      /* of the rated part: time at the peaks */
    double reached_s; /* the same at the achievable part of the peaks, with at least the latency for
                         each call */
    int64_t bound_ns[RP_BOUNDS]; /* of the rated part: device time by the limit of its calls */
};

struct rp_roof_group {
    const char *name, *shape, *type, *category; /* NULL if there are several, or none */
    const char *missing;                        /* why it has no model; NULL if it has one */
    struct rp_roof_sums sums;
};

/* The part of a rank. */
struct rp_roof_part {
    RP_VEC(struct rp_roof_group) groups;
    struct rp_roof_sums all;
    int64_t classes_ns; /* device time of the categories that have models */
    const char *device; /* its name in the driver; NULL: not recorded */
    const char *peaks;  /* the row of the table that has its peaks; NULL: none */
    double memory_bytes_per_s;
    double matrix_flops_per_s[RP_NUMBERS]; /* by format */
    int64_t product_ns[RP_NUMBERS];        /* device time of products, by format */
    const char *not_counted;               /* what lies outside of the steps; NULL: nothing */
    struct rp_recorder recorder;
};

#define RP_ROOF_ACHIEVABLE 0.8 /* the achievable part of the peaks, unless given */

struct rp_roof_options {
    enum rp_roof_by by;
    const struct rp_device_peaks
        *device;                     /* instead of the recorded device; NULL: the recorded one */
    double flops_per_s, bytes_per_s; /* instead of the table's peaks; 0: those of the table */
    double achievable;               /* part of the peaks */
};

struct rp_roof_row {
    const char *name, *label, *shape, *type, *category, *bound, *rate, *missing;
    int64_t calls, kernels, device_ns, saved_ns;
    double share, flops, bytes, flops_per_s, bytes_per_s, flops_per_byte, peak_share;
};

struct rp_roof_root {
    const char *by, *device, *peaks, *matrix_type, *summary;
    double achievable_share, matrix_flops_per_s, memory_bytes_per_s;
    int64_t ranks, device_ns, modelled_ns, classes_ns, rated_ns, saved_ns, row_count;
    double modelled_share, rated_share, flops, flops_per_s;
    size_t nrows, nknown, nunmodelled, nnotes;
    struct rp_roof_row *rows;
    struct rp_roof_row *known, *unmodelled; /* on the screen */
    const char **notes;
    struct rp_roof_root *picture; /* the same with all rows; NULL unless a picture is asked for */
};

extern const struct rp_type rp_roof_part_type, rp_roof_type; /* for a part, and for the answer */

enum rp_roof_by rp_roof_by_of(const char *word);

/* Adds up the calls of one trace. Texts are in the arena; the caller owns the vector, also after a
   failure. `known` as for rp_cost_calls_init, or NULL. */
enum rp_code rp_roof_group_calls(const struct rp_trace *trace, const struct rp_scope *scope,
                                 const struct rp_category_table *categories,
                                 const struct rp_roof_options *options, rp_item_cost_fn *known,
                                 void *user, struct rp_arena *arena, struct rp_roof_part *out,
                                 struct rp_err *err);

/* Adds up the groups of ranks; `by` is the word of options->by. Everything is in the arena. limit
   0: all rows. */
enum rp_code rp_roof_join(const struct rp_roof_part *const *parts, size_t nparts,
                          const struct rp_roof_options *options, const char *by, int64_t limit,
                          struct rp_arena *arena, struct rp_roof_root *out, struct rp_err *err);

/* Draws the known rows of an answer as dots below the roofs (picture.c); a failure stays in the
 * arena. */
struct rp_out;
void rp_roof_draw(const struct rp_roof_root *root, struct rp_arena *scratch, struct rp_out *to);
/* Writes the same picture to a file. */
enum rp_code rp_roof_write_picture(const struct rp_roof_root *root, const char *path,
                                   struct rp_err *err);
