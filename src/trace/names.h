/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Classes of names: what a kernel or an operator does, derived from its name. The table of patterns
 * is in names.c, with the reason for each. The class is decided once for each string
 * (rp_strings.name_class), so that an analysis tests a byte.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(NAME, "name", doc) */
#define RP_NAME_CLASS_MAP(X)                                              \
    X(NONE, "other", "nothing is known about it")                         \
    X(COMM, "communication", "collectives and transfers between devices") \
    X(MEMCPY, "memcpy", "copies")                                         \
    X(MEMSET, "memset", "fills")                                          \
    X(ATTENTION, "attention", "fused attention")                          \
    X(CONV, "conv", "convolutions")                                       \
    X(GEMM, "gemm", "matrix products")                                    \
    X(SOFTMAX, "softmax", "softmax and cross entropy")                    \
    X(NORM, "norm", "batch, layer, group and RMS normalisation")          \
    X(OPTIMIZER, "optimizer", "updates of parameters")                    \
    X(EMBEDDING, "embedding", "embedding tables, gather and scatter")     \
    X(SORT, "sort", "sort, scan, top-k")                                  \
    X(RNG, "rng", "random numbers and dropout")                           \
    X(REDUCE, "reduce", "sums, maxima and other reductions")              \
    X(ELEMENTWISE, "elementwise", "arithmetic on each element, casts")    \
    X(LAYOUT, "layout", "changes of layout around convolutions")

enum rp_name_class {
#define RP_NAME_CLASS_ENUM(name, text, doc) RP_NAME_##name,
    RP_NAME_CLASS_MAP(RP_NAME_CLASS_ENUM)
#undef RP_NAME_CLASS_ENUM
        RP_NAME_COUNT
};

struct rp_name_pattern {
    const char *part; /* in lower case; matches anywhere in the name, ignoring case */
    uint8_t name_class;
    const char *reason;
};

/* The table; the first row that matches decides. */
const struct rp_name_pattern *rp_name_patterns(size_t *n);

enum { RP_NAME_ROWS = 255 }; /* the most rows of a table */

/*
 * The table prepared for matching: the rows by the pair of letters with which they begin. Takes
 * a microsecond to build; matching a name of 60 letters takes about 0.1 microseconds.
 */
struct rp_name_matcher {
    uint8_t first[1024];            /* by a hash of two letters: 1 + the first row; 0: none */
    uint8_t next[RP_NAME_ROWS + 1]; /* by row: 1 + the next row of the same hash; 0: none */
    const struct rp_name_pattern *table;
    size_t n;
};

void rp_name_matcher_init(struct rp_name_matcher *m, const struct rp_name_pattern *table, size_t n);
enum rp_name_class rp_name_classify(const struct rp_name_matcher *m, const char *name, size_t len);
