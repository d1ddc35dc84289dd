/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tells what a piece of device work is for: its category, from the names of its operator and its
 * kernel. The operator decides if the table knows it, so that the kernel that changes the layout
 * for a convolution is convolution too; copies and collectives are always what their kernels say.
 *
 * The table is categories.def; users extend it by a file (docs/definitions.md, "Categories"). One
 * line is a category and a pattern of whole names, of operators or kernels, in which * is any text
 * and letters match in either case:
 *
 *     attention   my_library::ring_*
 */
#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "trace/names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(NAME, "name", doc) */
#define RP_CATEGORY_MAP(X)                                                                     \
    X(OTHER, "other", "nothing is known about it")                                             \
    X(MATMUL, "matmul", "matrix products, also grouped ones and those of experts")             \
    X(ATTENTION, "attention", "fused attention, forward and backward")                         \
    X(CONVOLUTION, "convolution", "convolutions, forward and backward")                        \
    X(NORMALIZATION, "normalization", "batch, layer, group, instance and RMS normalization")   \
    X(ELEMENTWISE, "elementwise", "arithmetic on each element, activations, random numbers")   \
    X(REDUCTION, "reduction", "sums, maxima, softmax and losses over it, scans, sorts, top-k") \
    X(EMBEDDING, "embedding", "lookups, gather and scatter")                                   \
    X(COMMUNICATION, "communication", "collectives and transfers between devices")             \
    X(COPY, "copy", "copies, casts, fills, concatenation, caches")                             \
    X(LAYOUT, "layout", "changes of layout around convolutions, between NCHW and NHWC")        \
    X(OPTIMIZER, "optimizer", "updates of parameters")

enum rp_category {
#define RP_CATEGORY_ENUM(name, text, doc) RP_CATEGORY_##name,
    RP_CATEGORY_MAP(RP_CATEGORY_ENUM)
#undef RP_CATEGORY_ENUM
        RP_CATEGORIES
};
extern const char *const rp_category_names[RP_CATEGORIES];

/* Finds the category of that name; false if there is none. */
bool rp_category_by_name(const char *name, size_t len, enum rp_category *out);

struct rp_category_row {
    const char *pattern; /* of whole names */
    uint8_t category;
};

/* The user's rows, in the order of the file, which are tried before the built-in ones. */
struct rp_category_table {
    struct rp_arena arena;
    RP_VEC(struct rp_category_row) rows;
};

/* Adds the rows of a file. A malformed line is RP_USAGE, with its number. */
enum rp_code rp_category_table_read(struct rp_category_table *table, const char *path,
                                    struct rp_err *err);
enum rp_code rp_category_table_parse(struct rp_category_table *table, const char *path,
                                     const char *text, struct rp_err *err);
void rp_category_table_release(struct rp_category_table *table);

/* Finds the category of a kernel that an operator launched. Either may be NULL if it is not known.
   Takes about a microsecond, so it should be called once for two strings. `table` may be NULL. */
enum rp_category rp_category_of(const struct rp_category_table *table, const char *op,
                                const char *kernel);

/* The steps of rp_category_of, for callers that keep results (trace_categories.h): */
/* finds a row of the user's table; false if there is none; */
bool rp_category_table_find(const struct rp_category_table *table, const char *op,
                            const char *kernel, enum rp_category *out);
/* whether the class of the kernel's name decides before any built-in row; */
bool rp_category_is_by_class(enum rp_name_class name_class);
/* finds the built-in row of an operator or a kernel; RP_CATEGORIES if there is none; */
enum rp_category rp_category_row_of(const char *name, bool is_op);
/* the category of a class if there is no row. */
enum rp_category rp_category_of_class(enum rp_name_class name_class);
enum rp_name_class rp_name_class_of(const char *name);

/* Whether the pattern fits the whole name: * is any text, and letters match in either case. */
bool rp_name_fits(const char *pattern, const char *name);

/* The pairs of letters in a name, by which most of the patterns that do not fit are skipped. */
struct rp_name_pairs {
    uint64_t bits[16];
};
void rp_name_pairs_init(struct rp_name_pairs *pairs, const char *name);
/* Returns false if the pattern, or a part of a name, cannot fit. */
bool rp_name_pairs_may_fit(const struct rp_name_pairs *pairs, const char *pattern);
