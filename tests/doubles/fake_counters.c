/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The range profiler of the CUPTI double. A launch calls the subscriber as the driver's launch
 * does; while the profiler is started it is a range. The counter "a.sum" of the k-th launch is 10
 * k, "b.pct" is 50, the duration 1,000 k ns; other names are unknown. FAKE_COUNTERS=refuse: the
 * driver does not allow counters; =graph: one range of four is missing.
 */
#include "fake_cupti.h"

#include "abi/cupti.h"
#include "abi/cupti_counters.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define RANGES 64

static struct {
    bool started;
    uint64_t launches;       /* of the process */
    uint64_t ranges[RANGES]; /* the number of their launch */
    size_t n, decoded;
} profiler;

static bool asked(const char *how)
{
    const char *text = getenv("FAKE_COUNTERS");

    return text && !strcmp(text, how);
}

int cuptiProfilerInitialize(struct rp_cupti_plain_params *p)
{
    return p->size != sizeof *p;
}

int cuptiDeviceGetChipName(struct rp_cupti_chip_params *p)
{
    p->chip = "FAKE100";
    return p->size != sizeof *p;
}

int cuptiProfilerHostInitialize(struct rp_cupti_host_params *p)
{
    p->host = &profiler;
    return strcmp(p->chip, "FAKE100") != 0;
}

static double value_of(const char *name, uint64_t launch)
{
    if (!strcmp(name, "gpu__time_duration.sum"))
        return 1000.0 * (double)launch;
    if (!strcmp(name, "a.sum"))
        return 10.0 * (double)launch;
    return strcmp(name, "b.pct") == 0 ? 50.0 : -1.0;
}

int cuptiProfilerHostConfigAddMetrics(struct rp_cupti_metrics_params *p)
{
    return value_of(p->names[0], 1) < 0;
}

int cuptiProfilerHostGetConfigImageSize(struct rp_cupti_image_params *p)
{
    p->image_size = 16;
    return 0;
}

int cuptiProfilerHostGetConfigImage(struct rp_cupti_image_params *p)
{
    memset(p->image, 7, p->image_size);
    return 0;
}

int cuptiProfilerHostGetNumOfPasses(struct rp_cupti_passes_params *p)
{
    p->passes = 3;
    return p->image[15] != 7;
}

int cuptiRangeProfilerEnable(struct rp_cupti_range_params *p)
{
    p->profiler_or_dropped = &profiler;
    return asked("refuse") ? RP_CUPTI_INSUFFICIENT_PRIVILEGES : 0;
}

int cuptiRangeProfilerDisable(struct rp_cupti_range_params *p)
{
    return p->context_or_profiler != &profiler;
}

int cuptiRangeProfilerGetCounterDataSize(struct rp_cupti_data_size_params *p)
{
    p->data_size = 64;
    return p->ranges > RANGES;
}

int cuptiRangeProfilerCounterDataImageInitialize(struct rp_cupti_data_params *p)
{
    profiler.decoded = 0;
    return p->data_size != 64;
}

int cuptiRangeProfilerSetConfig(struct rp_cupti_range_config_params *p)
{
    return p->range != RP_CUPTI_AUTO_RANGE || p->replay != RP_CUPTI_KERNEL_REPLAY || p->levels != 1;
}

int cuptiRangeProfilerStart(struct rp_cupti_range_params *p)
{
    profiler.started = true;
    profiler.n = 0;
    return p->context_or_profiler != &profiler;
}

int cuptiRangeProfilerStop(struct rp_cupti_stop_params *p)
{
    profiler.started = false;
    p->all_passes = 1;
    return 0;
}

int cuptiRangeProfilerDecodeData(struct rp_cupti_range_params *p)
{
    (void)p;
    profiler.decoded = profiler.n;
    return 0;
}

int cuptiRangeProfilerGetCounterDataInfo(struct rp_cupti_data_info_params *p)
{
    p->ranges = profiler.decoded;
    return 0;
}

int cuptiProfilerHostEvaluateToGpuValues(struct rp_cupti_values_params *p)
{
    if (p->range >= profiler.decoded)
        return 1;
    for (size_t i = 0; i < p->n; i++)
        p->values[i] = value_of(p->names[i], profiler.ranges[p->range]);
    return 0;
}

/* -------------------------------------------------------------------------- for the test */

void fake_cupti_context(int begins)
{
    struct rp_cupti_resource resource = {.context = &profiler};

    fake_cupti_call(RP_CUPTI_DOMAIN_RESOURCE,
                    begins ? RP_CUPTI_CONTEXT_CREATED : RP_CUPTI_CONTEXT_ENDS, &resource);
}

void fake_cupti_launch(const char *kernel, uint32_t correlation)
{
    struct rp_cupti_launch params = {.grid = {4, 2, 1}, .block = {128, 1, 1}, .stream = NULL};
    uint64_t user = 0;
    struct rp_cupti_call call = {.site = RP_CUPTI_SITE_ENTER,
                                 .function = "cuLaunchKernel",
                                 .params = &params,
                                 .symbol = kernel,
                                 .context = &profiler,
                                 .user = &user,
                                 .correlation = correlation};

    fake_cupti_call(RP_CUPTI_DOMAIN_DRIVER, 307, &call);
    profiler.launches++;
    if (profiler.started && profiler.n < RANGES && !(asked("graph") && profiler.launches % 4 == 0))
        profiler.ranges[profiler.n++] = profiler.launches;
    call.site = RP_CUPTI_SITE_EXIT;
    fake_cupti_call(RP_CUPTI_DOMAIN_DRIVER, 307, &call);
}
