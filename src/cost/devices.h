/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The peaks of devices: published ones by number format, memory and links. The table is
 * devices.def, with the source of each row.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Number formats that devices compute in. X(NAME, "name") */
#define RP_NUMBER_MAP(X) \
    X(NONE, "none")      \
    X(FP64, "fp64")      \
    X(FP32, "fp32")      \
    X(TF32, "tf32")      \
    X(BF16, "bf16")      \
    X(FP16, "fp16")      \
    X(FP8, "fp8")        \
    X(FP4, "fp4")        \
    X(INT8, "int8")      \
    X(INT, "int") /* integers of other widths and booleans, which are computed on vectors */

enum rp_number {
#define RP_NUMBER_ENUM(name, text) RP_NUMBER_##name,
    RP_NUMBER_MAP(RP_NUMBER_ENUM)
#undef RP_NUMBER_ENUM
        RP_NUMBERS
};
extern const char *const rp_number_names[RP_NUMBERS];

/* Published rates without sparsity. A rate is 0 if the device has none, or none is published. */
struct rp_device_peaks {
    const char *name;     /* "H100" */
    const char *patterns; /* patterns of what its driver calls it */
    double
        matrix[RP_NUMBERS]; /* FLOP/s on matrix units by format; operations per second for int8 */
    double vector32, vector64; /* FLOP/s on vectors */
    double memory;             /* bytes/s */
    double cache_bytes;        /* the size of the last cache before the memory */
    double link;               /* bytes/s to other devices in one direction, all links together */
    int units;                 /* the number of multiprocessors or compute units */
    double reach; /* how much of the matrix peak its libraries reach, compared with NVIDIA's */
    const char *source;
};

/* All devices, in the order of the table. */
const struct rp_device_peaks *rp_devices(size_t *n);
/* Finds a device by its name in the table, in either case; NULL if unknown. */
const struct rp_device_peaks *rp_device_by_name(const char *name);
/* Finds a device by what a driver calls it, "NVIDIA A100-SXM4-80GB"; NULL if unknown. memory_bytes
   (0 if not known) distinguishes devices of the same name. */
const struct rp_device_peaks *rp_device_recognise(const char *text, int64_t memory_bytes);

/* Returns the 16-bit format that its matrix units have: bf16, otherwise fp16 (Volta, Turing),
   otherwise RP_NUMBER_NONE. For NULL, an unknown device, it is bf16. */
enum rp_number rp_device_half(const struct rp_device_peaks *device);

/* Returns the peak for products of matrices in a format, of its matrix units or otherwise of its
   vectors. 0 if not known. */
double rp_device_matrix_peak(const struct rp_device_peaks *device, enum rp_number type);
/* Returns the same for arithmetic on each element. */
double rp_device_vector_peak(const struct rp_device_peaks *device, enum rp_number type);
