/* SPDX-License-Identifier: Apache-2.0 */
/* The table of devices; finds a row by what a driver calls a device. */
#include "cost/devices.h"

#include "base/decides.h"
#include "cost/category.h"

#include <string.h>
#include <strings.h>

#define TERA 1e12
RP_FACT(TERA, "FLOP/s", "units of the table");
#define GIGA 1e9
RP_FACT(GIGA, "bytes/s", "units of the table");
#define MEGA 1e6
RP_FACT(MEGA, "bytes", "units of the table");

const char *const rp_number_names[RP_NUMBERS] = {
#define NUMBER_NAME(name, text) [RP_NUMBER_##name] = (text),
    RP_NUMBER_MAP(NUMBER_NAME)
#undef NUMBER_NAME
};

#define M(fp64_, fp32_, tf32_, bf16_, fp16_, fp8_, fp4_, int8_)           \
    {                                                                     \
        [RP_NUMBER_FP64] = (fp64_)*TERA, [RP_NUMBER_FP32] = (fp32_)*TERA, \
        [RP_NUMBER_TF32] = (tf32_)*TERA, [RP_NUMBER_BF16] = (bf16_)*TERA, \
        [RP_NUMBER_FP16] = (fp16_)*TERA, [RP_NUMBER_FP8] = (fp8_)*TERA,   \
        [RP_NUMBER_FP4] = (fp4_)*TERA, [RP_NUMBER_INT8] = (int8_)*TERA,   \
    }
#define RP_DEVICE(name_, patterns_, source_, matrix_, fp32_, fp64_, memory_, cache_, link_, \
                  units_, reach_)                                                           \
    {.name = (name_),                                                                       \
     .patterns = (patterns_),                                                               \
     .matrix = matrix_,                                                                     \
     .vector32 = (fp32_)*TERA,                                                              \
     .vector64 = (fp64_)*TERA,                                                              \
     .memory = (memory_)*GIGA,                                                              \
     .cache_bytes = (cache_)*MEGA,                                                          \
     .link = (link_)*GIGA,                                                                  \
     .units = (units_),                                                                     \
     .reach = (reach_),                                                                     \
     .source = source_},

static const struct rp_device_peaks devices[] = {
#include "cost/devices.def"
};

#define NDEVICES (sizeof devices / sizeof devices[0])

const struct rp_device_peaks *rp_devices(size_t *n)
{
    *n = NDEVICES;
    return devices;
}

const struct rp_device_peaks *rp_device_by_name(const char *name)
{
    for (size_t i = 0; name && i < NDEVICES; i++)
        if (!strcasecmp(devices[i].name, name))
            return &devices[i];
    return NULL;
}

static bool fits_any(const char *patterns, const char *text)
{
    char pattern[64];
    size_t n;

    for (; *patterns; patterns += n + (patterns[n] == '|')) {
        n = strcspn(patterns, "|");
        if (n >= sizeof pattern)
            continue;
        memcpy(pattern, patterns, n);
        pattern[n] = '\0';
        if (rp_name_fits(pattern, text))
            return true;
    }
    return false;
}

#define SMALL_A100 INT64_C(50000000000)
RP_FACT(SMALL_A100, "bytes", "between the 40 and the 80 GB of NVIDIA's A100");

const struct rp_device_peaks *rp_device_recognise(const char *text, int64_t memory_bytes)
{
    for (size_t i = 0; text && *text && i < NDEVICES; i++)
        if (fits_any(devices[i].patterns, text)) {
            if (!strcmp(devices[i].name, "A100") && memory_bytes > 0 && memory_bytes < SMALL_A100)
                return rp_device_by_name("A100-40GB");
            return &devices[i];
        }
    return NULL;
}

enum rp_number rp_device_half(const struct rp_device_peaks *device)
{
    if (!device || device->matrix[RP_NUMBER_BF16] > 0)
        return RP_NUMBER_BF16;
    return device->matrix[RP_NUMBER_FP16] > 0 ? RP_NUMBER_FP16 : RP_NUMBER_NONE;
}

double rp_device_vector_peak(const struct rp_device_peaks *device, enum rp_number type)
{
    return type == RP_NUMBER_FP64 ? device->vector64 : device->vector32;
}

double rp_device_matrix_peak(const struct rp_device_peaks *device, enum rp_number type)
{
    double peak = device->matrix[type];

    if (peak > 0)
        return peak;
    switch (type) {
    case RP_NUMBER_BF16: /* there is no bf16 before Ampere: the same products take as long as in
                            fp16 */
        return device->matrix[RP_NUMBER_FP16] > 0 ? device->matrix[RP_NUMBER_FP16]
                                                  : device->vector32;
    case RP_NUMBER_FP16: /* TPUs */
    case RP_NUMBER_FP8:
    case RP_NUMBER_FP4: /* smaller formats are widened first */
        return device->matrix[RP_NUMBER_BF16];
    case RP_NUMBER_TF32:
        return device->matrix[RP_NUMBER_FP32] > 0 ? device->matrix[RP_NUMBER_FP32]
                                                  : device->vector32;
    case RP_NUMBER_INT8:
    case RP_NUMBER_NONE:
        return 0;
    default:
        return rp_device_vector_peak(device, type);
    }
}
