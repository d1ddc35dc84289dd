/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Values of programs: arrays of any element type, and tuples of values. Elements are little-endian,
 * row-major in the order of the dimensions, each in whole bytes (types under eight bits take one
 * byte, with the value in its low bits and the sign of s4 and s2 extended). Layouts exist only
 * where values enter or leave the program (see rp_tensor_permute).
 *
 * Values are shared and do not change after they are made; keep and drop count their users, from
 * any thread.
 */
#include "base/err.h"
#include "program/program.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RP_TENSOR_RANK  32
#define RP_TENSOR_DEPTH 128 /* limit for nested tuples; shapes nest less (64) */

struct rp_tensor {
    _Atomic uint32_t users;
    uint8_t elem;  /* enum rp_elem; RP_ELEM_TUPLE has parts, RP_ELEM_TOKEN neither parts nor data */
    bool borrowed; /* the data belongs to an owner that lives longer */
    bool inside;   /* the data, or the list of parts, is in the same block of memory */
    uint32_t rank;
    size_t n, unit;      /* number of elements; bytes of each */
    unsigned char *data; /* aligned to 64 bytes unless borrowed */
    struct rp_tensor **parts;
    size_t nparts;
    size_t leaves;  /* for a tuple: number of arrays in it, SIZE_MAX if that overflows */
    unsigned depth; /* for a tuple: 1, or one more than its deepest part */
    int64_t dims[RP_TENSOR_RANK]; /* the first `rank` are set */
};

/* The elements are not set. RP_LIMIT if there are more bytes than the machine can address or a
   dimension is negative; RP_UNSUPPORTED if the type has no elements. */
enum rp_code rp_tensor_new(unsigned elem, const int64_t *dims, size_t rank, struct rp_tensor **out,
                           struct rp_err *err);
/* Does the same with zeros. */
enum rp_code rp_tensor_zeros(unsigned elem, const int64_t *dims, size_t rank,
                             struct rp_tensor **out, struct rp_err *err);
/* Makes a tensor over n * unit bytes that belong to another owner. */
enum rp_code rp_tensor_borrow(unsigned elem, const int64_t *dims, size_t rank, const void *data,
                              struct rp_tensor **out, struct rp_err *err);
/* Takes over one use of each part, also on failure. RP_LIMIT if tuples nest too deep. */
enum rp_code rp_tensor_tuple(struct rp_tensor *const *parts, size_t n, struct rp_tensor **out,
                             struct rp_err *err);
enum rp_code rp_tensor_token(struct rp_tensor **out, struct rp_err *err);

struct rp_tensor *rp_tensor_keep(struct rp_tensor *t);
void rp_tensor_drop(struct rp_tensor *t); /* NULL is fine */

static inline void rp_tensor_drop_at(struct rp_tensor **t) /* for RP_SCOPED */
{
    rp_tensor_drop(*t);
}

/* A list of values that it owns, some of which may be NULL. */
struct rp_tensors {
    struct rp_tensor **at;
    size_t n;
};
/* Makes a list of n values, which are NULL; call rp_tensors_release in every case. */
enum rp_code rp_tensors_new(size_t n, struct rp_tensors *out, struct rp_err *err);
void rp_tensors_release(struct rp_tensors *list);

static inline size_t rp_tensor_bytes(const struct rp_tensor *t)
{
    return t->n * t->unit;
}

/* Whether elements cannot be read as numbers in place, because arrays in a file may begin at any
   byte. */
static inline bool rp_tensor_is_unaligned(const struct rp_tensor *t)
{
    return t->borrowed && t->unit > 1 && (uintptr_t)t->data % (t->unit < 8 ? t->unit : 8) != 0;
}
/* Returns a new use of the array, or of a copy if it is unaligned. */
enum rp_code rp_tensor_align(struct rp_tensor *t, struct rp_tensor **out, struct rp_err *err);
enum rp_code rp_tensor_copy(const struct rp_tensor *t, struct rp_tensor **out, struct rp_err *err);
/* Replaces the array by a copy, unless its data belongs to this use alone. */
enum rp_code rp_tensor_own(struct rp_tensor **t, struct rp_err *err);

/* The number of arrays in a value. */
size_t rp_tensor_leaves(const struct rp_tensor *t);

/* Reads one element of any real type, or the real part of a complex one. */
double rp_tensor_number(const struct rp_tensor *t, size_t i);
double rp_tensor_imaginary(const struct rp_tensor *t, size_t i); /* 0 for real types */
int64_t rp_tensor_integer(const struct rp_tensor *t,
                          size_t i);                          /* only for integer types and pred */
uint64_t rp_tensor_bits(const struct rp_tensor *t, size_t i); /* up to 64 */
/* Sets the nearest value of the type; integers are truncated to their width. */
void rp_tensor_set(struct rp_tensor *t, size_t i, double value);
void rp_tensor_set_integer(struct rp_tensor *t, size_t i, int64_t value);

bool rp_elem_is_unsigned(unsigned elem); /* not pred */
bool rp_elem_is_complex(unsigned elem);

/*
 * Converts bytes in the order of a layout to row-major order. order: minor to major, or NULL if
 * they are row-major already. packed: types under eight bits, including pred, share bytes, lowest
 * bits first, as in snapshots. RP_FORMAT if n does not fit.
 */
enum rp_code rp_tensor_permute(struct rp_tensor *to, const uint32_t *order, bool packed,
                               const uint8_t *bytes, size_t n, struct rp_err *err);
/* For elements from outside in whole bytes: makes pred 0 or 1, and sets the unused bits of types
   under eight bits as tensors require. */
void rp_tensor_tidy(struct rp_tensor *t);
/* The number of bytes in that form. */
size_t rp_tensor_packed_bytes(unsigned elem, size_t n, bool packed);

/* "f32[2,3]"; cap of 512 is enough for any array. */
size_t rp_tensor_shape_text(const struct rp_tensor *t, char *out, size_t cap);

/* Whether two lists of dimensions are the same. */
static inline bool rp_dims_same(const int64_t *a, size_t na, const int64_t *b, size_t nb)
{
    return na == nb && (!na || !memcmp(a, b, na * sizeof *a));
}

/* Row-major strides of dims. */
void rp_strides(const int64_t *dims, size_t rank, int64_t *out);

/* Counts an index over dims, the last one running fastest; false after the last index. */
static inline bool rp_index_next(int64_t *index, const int64_t *dims, size_t rank)
{
    for (size_t k = rank; k-- > 0;) {
        if (++index[k] < dims[k])
            return true;
        index[k] = 0;
    }
    return false;
}
