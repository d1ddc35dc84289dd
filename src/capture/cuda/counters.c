/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures counters with CUPTI's range profiler: each kernel is a range, and runs as often as the
 * counters need passes, between which CUPTI restores the memory that it wrote. Kernels run one
 * after the other and their launches wait for them, so the recording has true values for each
 * kernel, but no true times between kernels. A kernel is a span at its launch, as long as the
 * counter of its time says.
 *
 * One context is measured, the first. Launches are listed in order, and so are the ranges: every
 * RANGES launches, at the end of the context and at exit, values are read and spans written. If
 * there are more or fewer ranges than launches (a CUDA graph), kernels cannot be identified and are
 * counted as lost.
 */
#include "capture/cuda/counters.h"

#include "abi/cupti_counters.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RANGES  64
#define METRICS 30
#define TIME    "gpu__time_duration.sum" /* nanoseconds */

struct launch {
    uint64_t begin_ns, end_ns;
    uint32_t correlation, context;
    uint32_t grid[3], block[3];
    uint64_t stream;
    char name[512];
};

static struct {
#define FIELD(field, name, type) int (*field)(type *);
    RP_CUPTI_COUNTER_CALLS(FIELD)
#undef FIELD
} cupti;

static struct {
    pthread_mutex_t lock;
    char text[2048]; /* the names, cut apart */
    const char *names[METRICS + 1];
    size_t n;
    void *context, *host, *profiler;
    uint8_t *config, *data; /* config: what to measure; data: what was measured */
    size_t nconfig, ndata;
    bool running, failed; /* running: it measures now, or is paused with the recording */
    bool paused;
    struct launch *launches;
    size_t nlaunches;
    uint64_t lost;
} counters = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* -------------------------------------------------------------------------- errors */

static void counters_fail(const char *doing, int code)
{
    char text[400];
    const char *hint =
        code == RP_CUPTI_INSUFFICIENT_PRIVILEGES || code == RP_CUPTI_VIRTUALIZED_PRIVILEGES
            ? ": the driver allows counters to administrators only (NVreg_RestrictProfilingToAdmin"
              "Users=0, or the capability CAP_SYS_ADMIN)"
            : "";

    snprintf(text, sizeof text, "no hardware counters: %s: %s (CUPTI's error %d)%s", doing,
             rp_cuda_error(code), code, hint);
    rp_cuda.cap->warn(text);
    rp_cuda.cap->fact("cuda.counters_refused", text);
    counters.failed = true;
}

#define TRY(doing, call)                 \
    do {                                 \
        int code_ = (call);              \
        if (code_) {                     \
            counters_fail(doing, code_); \
            return false;                \
        }                                \
    } while (0)

/* -------------------------------------------------------------------------- beginning */

bool rp_cuda_counters_wanted(void)
{
    const char *list = rp_cuda.cap->option("cuda.counters");

    return list && *list;
}

static bool find_calls(void)
{
#define LOOKUP(field, name, type)                                                                \
    *(void **)&cupti.field = rp_cuda_symbol("cupti" #name);                                      \
    if (!cupti.field) {                                                                          \
        rp_cuda.cap->warn("no hardware counters: this CUPTI is too old, it has no cupti" #name); \
        return false;                                                                            \
    }
    RP_CUPTI_COUNTER_CALLS(LOOKUP)
#undef LOOKUP
    return true;
}

void rp_cuda_counters_begin(void)
{
    static const uint16_t launches[] = {307, 442, 477, 478, 514, 515, 652, 653};

    char *at = counters.text, *word;
    snprintf(counters.text, sizeof counters.text, "%s", rp_cuda.cap->option("cuda.counters"));
    counters.names[counters.n++] = TIME;
    while ((word = strsep(&at, ",")) && counters.n < METRICS) {
        if (*word && strcmp(word, TIME) != 0)
            counters.names[counters.n++] = word;
    }
    counters.launches = calloc(RANGES, sizeof *counters.launches);
    if (!counters.launches || !find_calls())
        return;
    rp_cuda.cupti.enable_callback(1, rp_cuda.subscriber, RP_CUPTI_DOMAIN_RESOURCE,
                                  RP_CUPTI_CONTEXT_CREATED);
    rp_cuda.cupti.enable_callback(1, rp_cuda.subscriber, RP_CUPTI_DOMAIN_RESOURCE,
                                  RP_CUPTI_CONTEXT_ENDS);
    for (size_t i = 0; i < sizeof launches / sizeof launches[0]; i++)
        rp_cuda.cupti.enable_callback(1, rp_cuda.subscriber, RP_CUPTI_DOMAIN_DRIVER, launches[i]);
}

/* Adds them one by one, so that the message names the metric that CUPTI does not know. */
static bool add_metrics(void)
{
    for (size_t i = 0; i < counters.n; i++) {
        struct rp_cupti_metrics_params p = {
            .size = sizeof p, .host = counters.host, .names = &counters.names[i], .n = 1};
        char doing[160];

        snprintf(doing, sizeof doing, "counter '%.100s' ('ncu --query-metrics' lists them)",
                 counters.names[i]);
        TRY(doing, cupti.add_metrics(&p));
    }
    return true;
}

static bool make_host(void)
{
    struct rp_cupti_plain_params begin = {.size = sizeof begin};
    struct rp_cupti_chip_params chip = {.size = sizeof chip};
    struct rp_cupti_host_params host = {.size = sizeof host, .type = RP_CUPTI_RANGE_PROFILER};

    TRY("the profiler", cupti.profiler_begin(&begin));
    TRY("the device", cupti.chip_name(&chip));
    host.chip = chip.chip;
    TRY("the host side of the profiler", cupti.host_begin(&host));
    counters.host = host.host;
    return true;
}

static bool make_config(void)
{
    struct rp_cupti_image_params size = {.size = offsetof(struct rp_cupti_image_params, image),
                                         .host = counters.host};
    struct rp_cupti_image_params image = {.size = sizeof image, .host = counters.host};
    struct rp_cupti_passes_params passes = {.size = sizeof passes};
    char text[32];

    TRY("the configuration", cupti.config_size(&size));
    counters.nconfig = size.image_size;
    counters.config = calloc(1, counters.nconfig);
    if (!counters.config)
        return false;
    image.image_size = counters.nconfig;
    image.image = counters.config;
    TRY("the configuration", cupti.config(&image));
    passes.image_size = counters.nconfig;
    passes.image = counters.config;
    TRY("the configuration", cupti.passes(&passes));
    snprintf(text, sizeof text, "%zu", passes.passes);
    rp_cuda.cap->fact("cuda.counters_passes", text);
    return true;
}

/* Empties the data and starts to measure. */
static bool counters_start(void)
{
    struct rp_cupti_data_params data = {.size = sizeof data,
                                        .profiler = counters.profiler,
                                        .data_size = counters.ndata,
                                        .data = counters.data};
    struct rp_cupti_range_config_params config = {.size = RP_CUPTI_RANGE_CONFIG_SIZE,
                                                  .profiler = counters.profiler,
                                                  .config_size = counters.nconfig,
                                                  .config = counters.config,
                                                  .data_size = counters.ndata,
                                                  .data = counters.data,
                                                  .range = RP_CUPTI_AUTO_RANGE,
                                                  .replay = RP_CUPTI_KERNEL_REPLAY,
                                                  .ranges_per_pass = RANGES,
                                                  .levels = 1,
                                                  .first_level = 1};
    struct rp_cupti_range_params start = {
        .size = offsetof(struct rp_cupti_range_params, profiler_or_dropped),
        .context_or_profiler = counters.profiler};

    TRY("the counters' memory", cupti.data_begin(&data));
    TRY("the ranges", cupti.set_config(&config));
    TRY("the start", cupti.start(&start));
    counters.nlaunches = 0;
    return true;
}

static bool context_begin(void *context)
{
    struct rp_cupti_range_params enable = {.size = sizeof enable, .context_or_profiler = context};
    struct rp_cupti_data_size_params size = {.size = sizeof size,
                                             .names = counters.names,
                                             .n = counters.n,
                                             .ranges = RANGES,
                                             .nodes = RANGES};

    counters.context = context;
    if (!make_host() || !add_metrics() || !make_config())
        return false;
    TRY("the context", cupti.enable(&enable));
    counters.profiler = enable.profiler_or_dropped;
    size.profiler = counters.profiler;
    TRY("the counters' memory", cupti.data_size(&size));
    counters.ndata = size.data_size;
    counters.data = calloc(1, counters.ndata);
    return counters.data && counters_start();
}

/* -------------------------------------------------------------------------- values */

static void put_kernel(const struct launch *l, const double *values)
{
    struct rp_capture_arg args[RP_CTF_ARGS_MAX];
    char grid[48], block[48], keys[METRICS][160];
    uint32_t n = 0;

    snprintf(grid, sizeof grid, "[%u,%u,%u]", l->grid[0], l->grid[1], l->grid[2]);
    snprintf(block, sizeof block, "[%u,%u,%u]", l->block[0], l->block[1], l->block[2]);
    if (l->grid[0]) {
        args[n++] = (struct rp_capture_arg){"grid", RP_CTF_ARG_TEXT, 0, 0, grid};
        args[n++] = (struct rp_capture_arg){"block", RP_CTF_ARG_TEXT, 0, 0, block};
    }
    for (size_t i = 1; i < counters.n && n < RP_CTF_ARGS_MAX; i++) {
        snprintf(keys[i], sizeof keys[i], "counter %.140s", counters.names[i]);
        args[n++] = (struct rp_capture_arg){keys[i], RP_CTF_ARG_REAL, 0, values[i], NULL};
    }
    rp_cuda.cap->span(&(struct rp_capture_span){.kind = RP_CTF_KIND_KERNEL,
                                                .timebase = RP_CTF_TIME_MONOTONIC,
                                                .begin = l->begin_ns,
                                                .end = l->begin_ns + (uint64_t)values[0],
                                                .name = rp_cuda_kernel_name(l->name),
                                                .category = "kernel",
                                                .device = 0,
                                                .track = l->stream,
                                                .link = l->correlation,
                                                .args = args,
                                                .nargs = n});
    atomic_fetch_add(&rp_cuda.kernels, 1);
}

/* Reads what was measured since the start. Called with the lock held. */
static bool counters_read(void)
{
    struct rp_cupti_stop_params stop = {.size = RP_CUPTI_STOP_SIZE, .profiler = counters.profiler};
    struct rp_cupti_range_params decode = {.size = sizeof decode,
                                           .context_or_profiler = counters.profiler};
    struct rp_cupti_data_info_params info = {
        .size = sizeof info, .data = counters.data, .data_size = counters.ndata};

    TRY("the end of a batch", cupti.stop(&stop));
    TRY("reading the counters", cupti.decode(&decode));
    TRY("reading the counters", cupti.data_info(&info));
    if (info.ranges != counters.nlaunches) {
        rp_cuda.cap->lost(counters.nlaunches > info.ranges ? counters.nlaunches : info.ranges);
        counters.lost += counters.nlaunches;
        return true;
    }

    /* An event for each launch that was measured. */
    double values[METRICS + 1];
    for (size_t i = 0; i < info.ranges; i++) {
        struct rp_cupti_values_params p = {.size = sizeof p,
                                           .host = counters.host,
                                           .data = counters.data,
                                           .data_size = counters.ndata,
                                           .range = i,
                                           .names = counters.names,
                                           .n = counters.n,
                                           .values = values};
        TRY("the values", cupti.values(&p));
        put_kernel(&counters.launches[i], values);
    }
    return true;
}

/* -------------------------------------------------------------------------- callbacks */

static void launch_begin(const struct rp_cupti_call *c, uint32_t id)
{
    pthread_mutex_lock(&counters.lock);
    if (counters.running) {
        /* Measures only while the recording is on, because that makes each kernel cost many
           milliseconds. */
        bool pause = !rp_cuda.cap->ready();
        if (pause != counters.paused)
            counters.running = pause ? counters_read() : counters_start();
        else if (!pause && counters.nlaunches == RANGES)
            counters.running = counters_read() && counters_start();
        counters.paused = pause;
    }
    *c->user = now_ns();
    if (counters.running && !counters.paused && c->context == counters.context) {
        struct launch *l = &counters.launches[counters.nlaunches++];
        *l = (struct launch){.begin_ns = *c->user, .correlation = c->correlation};
        snprintf(l->name, sizeof l->name, "%s", c->symbol ? c->symbol : c->function);
        if (id == 307 || id == 442) {
            const struct rp_cupti_launch *p = c->params;

            memcpy(l->grid, p->grid, sizeof l->grid);
            memcpy(l->block, p->block, sizeof l->block);
            l->stream = (uint64_t)(uintptr_t)p->stream;
        } else if (id == 652 || id == 653) {
            const struct rp_cupti_launch_ex *p = c->params;

            memcpy(l->grid, p->config->grid, sizeof l->grid);
            memcpy(l->block, p->config->block, sizeof l->block);
            l->stream = (uint64_t)(uintptr_t)p->config->stream;
        }
        l->stream &= UINT32_MAX;
    }
    pthread_mutex_unlock(&counters.lock);
}

void rp_cuda_counters_callback(int domain, uint32_t id, const void *data)
{
    const struct rp_cupti_resource *resource = data;
    const struct rp_cupti_call *call = data;

    if (domain == RP_CUPTI_DOMAIN_RESOURCE) {
        /* The first context is measured, until it ends. */
        pthread_mutex_lock(&counters.lock);
        if (id == RP_CUPTI_CONTEXT_CREATED && !counters.context && !counters.failed)
            counters.running = context_begin(resource->context);
        else if (id == RP_CUPTI_CONTEXT_ENDS && resource->context == counters.context &&
                 counters.running) {
            if (!counters.paused)
                counters_read();
            counters.running = false;
        }
        pthread_mutex_unlock(&counters.lock);
    } else if (domain == RP_CUPTI_DOMAIN_DRIVER && call->site == RP_CUPTI_SITE_ENTER)
        launch_begin(call, id);
    else if (domain == RP_CUPTI_DOMAIN_DRIVER) {
        rp_cuda.cap->span(&(struct rp_capture_span){.kind = RP_CTF_KIND_DRIVER,
                                                    .timebase = RP_CTF_TIME_MONOTONIC,
                                                    .begin = *call->user,
                                                    .end = now_ns(),
                                                    .name = call->function,
                                                    .category = "cuda_driver",
                                                    .device = RP_CTF_SPAN_DEVICE,
                                                    .link = call->correlation});
    }
}

void rp_cuda_counters_end(void)
{
    char text[160];

    pthread_mutex_lock(&counters.lock);
    if (counters.running && !counters.paused)
        counters_read();
    counters.running = false;
    pthread_mutex_unlock(&counters.lock);
    if (counters.lost) {
        snprintf(
            text, sizeof text,
            "counters of %llu launches could not be told apart (CUDA graphs: run without them)",
            (unsigned long long)counters.lost);
        rp_cuda.cap->warn(text);
    }
}
