/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the readers of ROCm's recordings share: rocpd, RPD, and the JSON and CSV of rocprofv3. */
#include "formats/activity/activity.h"
#include "formats/activity/texts.h"

/* The kind of a call by its domain ("HIP_RUNTIME_API_EXT", "MARKER_CORE_API"), or for RCCL by its
   name. */
enum rp_activity_kind rp_rocm_call_kind(const char *domain, const char *name);

/* "Memcpy HtoD (Host -> Device)" for "MEMORY_COPY_HOST_TO_DEVICE" or "CopyHostToDevice". */
const char *rp_rocm_copy_name(const char *direction);

/* Adds grid and block. AMD counts the grid in work-items, CUDA in blocks, so it is converted. */
enum rp_code rp_rocm_dims(struct rp_activity *a, struct rp_activity_event *e, const int64_t grid[3],
                          const int64_t group[3], struct rp_err *err);

/* The value of one instance of a counter, for readers that have the values before the kernels. */
struct rp_rocm_value {
    int64_t kernel; /* id of its dispatch or its event */
    int64_t counter;
    double value;
};
struct rp_rocm_values {
    struct rp_texts names; /* of counters */
    RP_VEC(struct rp_rocm_value) all;
};

void rp_rocm_values_sort(
    struct rp_rocm_values *values); /* to be called after the last value was added */
size_t rp_rocm_values_first(const struct rp_rocm_values *values,
                            int64_t kernel); /* or their number */
/* Adds the values of a kernel to its event, summed over the instances of each counter. */
enum rp_code rp_rocm_values_add(const struct rp_rocm_values *values, struct rp_activity *a,
                                int64_t kernel, struct rp_activity_event *e, struct rp_err *err);
void rp_rocm_values_release(struct rp_rocm_values *values);

/* Names a call, and if it is one of RCCL, says what it does. */
enum rp_code rp_rocm_name_call(struct rp_activity *a, struct rp_activity_event *e, const char *name,
                               size_t n, struct rp_err *err);

/* "Half" for RCCL's "ncclFloat16" or 6; NULL: not known. */
const char *rp_rocm_dtype(const char *text);
