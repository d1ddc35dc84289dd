/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Named arrays in files: NumPy's .npy (one array) and .npz (a zip of them, stored or deflated).
 * Types that NumPy does not have (bf16, the f8 kinds) are written as unsigned integers of their
 * width, which are their raw bits, and converted back if the program asks for them (rp_array_as).
 * Written members are stored, not deflated, and aligned to 64 bytes.
 */
#include "base/arena.h"
#include "base/limits.h"
#include "base/names.h"
#include "exec/data/tensor.h"

struct rp_array {
    const char *name; /* without ".npy" */
    struct rp_tensor *value;
};
struct rp_arrays {
    struct rp_arena arena;
    RP_VEC(struct rp_array) list;
    struct rp_names places; /* in the list, by name */
};

/* Reads a file of either kind, by its content; an .npy is called "in0". Call rp_arrays_release in
   every case. Messages name the file and the member. */
enum rp_code rp_arrays_read(const char *path, const struct rp_limits *limits, struct rp_arrays *out,
                            struct rp_err *err);
enum rp_code rp_arrays_parse(const uint8_t *bytes, size_t n, const struct rp_limits *limits,
                             struct rp_arrays *out, struct rp_err *err);
void rp_arrays_release(struct rp_arrays *arrays);
/* Adds a value under a name; takes it over, also on failure. */
enum rp_code rp_arrays_add(struct rp_arrays *arrays, struct rp_tensor *value, struct rp_err *err,
                           const char *name, ...) RP_PRINTF(4, 5);
struct rp_tensor *rp_arrays_find(const struct rp_arrays *arrays, const char *name); /* borrowed */

enum rp_code rp_arrays_write(const char *path, const struct rp_array *list, size_t n,
                             struct rp_err *err);

/* The header of an array's .npy, padded to a multiple of 64. */
#define RP_NPY_HEADER 1024
size_t rp_npy_header(const struct rp_tensor *t, char out[RP_NPY_HEADER]);

/* One .npy. */
enum rp_code rp_npy_parse(const uint8_t *bytes, size_t n, struct rp_tensor **out,
                          struct rp_err *err);

/*
 * Converts the array to the type and dimensions that a program wants: raw bits for types that .npy
 * does not have (an unsigned array of their width), whole bytes for small integers and pred, floats
 * of another width converted (bf16 kept as f32); dimensions must be equal. The caller drops the
 * result.
 */
enum rp_code rp_array_as(struct rp_tensor *array, unsigned elem, const int64_t *dims, size_t rank,
                         const char *name, struct rp_tensor **out, struct rp_err *err);
