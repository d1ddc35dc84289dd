/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The part of CUPTI's profiler host and range profiler interfaces (CUDA 12.6 and later) that is
 * used. Each function takes one struct that begins with its size, which tells CUPTI the caller's
 * version, and a pointer that must be NULL. The structs are those of CUDA 13.0: CUPTI refuses sizes
 * that are larger than its own.
 */
#include <stddef.h>
#include <stdint.h>

enum { RP_CUPTI_INSUFFICIENT_PRIVILEGES = 35, RP_CUPTI_VIRTUALIZED_PRIVILEGES = 40 };
enum { RP_CUPTI_DOMAIN_RESOURCE = 3, RP_CUPTI_CONTEXT_CREATED = 1, RP_CUPTI_CONTEXT_ENDS = 2 };
enum { RP_CUPTI_AUTO_RANGE = 1, RP_CUPTI_KERNEL_REPLAY = 2, RP_CUPTI_RANGE_PROFILER = 0 };
enum { RP_CUPTI_SITE_ENTER = 0, RP_CUPTI_SITE_EXIT = 1 };

struct rp_cupti_call { /* the data of a callback for a call */
    int site;
    const char *function;
    const void *params, *result;
    const char *symbol; /* the name of the kernel, if it is a launch */
    void *context;
    uint32_t context_id;
    uint64_t *user;
    uint32_t correlation;
};

struct rp_cupti_resource { /* the data of a callback for a context */
    void *context;
};

struct rp_cupti_launch { /* parameters of cuLaunchKernel */
    void *function;
    uint32_t grid[3], block[3], shared_bytes;
    void *stream;
};

struct rp_cupti_launch_ex { /* parameters of cuLaunchKernelEx */
    const struct {
        uint32_t grid[3], block[3], shared_bytes;
        void *stream;
    } * config;
};

struct rp_cupti_plain_params {
    size_t size;
    void *private_data;
};

struct rp_cupti_chip_params {
    size_t size;
    void *private_data;
    size_t device;
    const char *chip;
};

struct rp_cupti_host_params {
    size_t size;
    void *private_data;
    int type;
    const char *chip;
    const uint8_t *availability;
    void *host;
};

struct rp_cupti_metrics_params {
    size_t size;
    void *private_data;
    void *host;
    const char **names;
    size_t n;
};

struct rp_cupti_image_params { /* its size, or the image */
    size_t size;
    void *private_data;
    void *host;
    size_t image_size;
    uint8_t *image;
};

struct rp_cupti_passes_params {
    size_t size;
    void *private_data;
    size_t image_size;
    uint8_t *image;
    size_t passes;
};

struct rp_cupti_range_params { /* enable, disable, start, decode */
    size_t size;
    void *private_data;
    void *context_or_profiler;
    void *profiler_or_dropped;
};

struct rp_cupti_stop_params {
    size_t size;
    void *private_data;
    void *profiler;
    size_t pass, level;
    uint8_t all_passes;
};
#define RP_CUPTI_STOP_SIZE (offsetof(struct rp_cupti_stop_params, all_passes) + 1)

struct rp_cupti_data_size_params {
    size_t size;
    void *private_data;
    void *profiler;
    const char **names;
    size_t n, ranges;
    uint32_t nodes;
    size_t data_size;
};

struct rp_cupti_data_params {
    size_t size;
    void *private_data;
    void *profiler;
    size_t data_size;
    uint8_t *data;
};

struct rp_cupti_range_config_params {
    size_t size;
    void *private_data;
    void *profiler;
    size_t config_size;
    const uint8_t *config;
    size_t data_size;
    uint8_t *data;
    int range, replay;
    size_t ranges_per_pass;
    uint16_t levels, first_level;
    size_t pass;
    uint16_t target_level;
};
#define RP_CUPTI_RANGE_CONFIG_SIZE (offsetof(struct rp_cupti_range_config_params, target_level) + 2)

struct rp_cupti_data_info_params {
    size_t size;
    void *private_data;
    const uint8_t *data;
    size_t data_size;
    size_t ranges;
};

struct rp_cupti_values_params {
    size_t size;
    void *private_data;
    void *host;
    const uint8_t *data;
    size_t data_size, range;
    const char **names;
    size_t n;
    double *values;
};

/* ROW(field, name, parameter); names are without "cupti" */
#define RP_CUPTI_COUNTER_CALLS(ROW)                                                       \
    ROW(profiler_begin, ProfilerInitialize, struct rp_cupti_plain_params)                 \
    ROW(chip_name, DeviceGetChipName, struct rp_cupti_chip_params)                        \
    ROW(host_begin, ProfilerHostInitialize, struct rp_cupti_host_params)                  \
    ROW(add_metrics, ProfilerHostConfigAddMetrics, struct rp_cupti_metrics_params)        \
    ROW(config_size, ProfilerHostGetConfigImageSize, struct rp_cupti_image_params)        \
    ROW(config, ProfilerHostGetConfigImage, struct rp_cupti_image_params)                 \
    ROW(passes, ProfilerHostGetNumOfPasses, struct rp_cupti_passes_params)                \
    ROW(values, ProfilerHostEvaluateToGpuValues, struct rp_cupti_values_params)           \
    ROW(enable, RangeProfilerEnable, struct rp_cupti_range_params)                        \
    ROW(disable, RangeProfilerDisable, struct rp_cupti_range_params)                      \
    ROW(data_size, RangeProfilerGetCounterDataSize, struct rp_cupti_data_size_params)     \
    ROW(data_begin, RangeProfilerCounterDataImageInitialize, struct rp_cupti_data_params) \
    ROW(set_config, RangeProfilerSetConfig, struct rp_cupti_range_config_params)          \
    ROW(start, RangeProfilerStart, struct rp_cupti_range_params)                          \
    ROW(stop, RangeProfilerStop, struct rp_cupti_stop_params)                             \
    ROW(decode, RangeProfilerDecodeData, struct rp_cupti_range_params)                    \
    ROW(data_info, RangeProfilerGetCounterDataInfo, struct rp_cupti_data_info_params)
