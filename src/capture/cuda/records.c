/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts CUPTI records to events, on the worker thread. A buffer is read twice, because records
 * are unordered: a runtime call's record follows those of the driver calls inside it. Arguments
 * have the keys of PyTorch's traces, so that all commands understand both.
 *
 * Records without times (the device ran out of buffers, or work was unfinished at the end of the
 * process) are counted as lost.
 */
#include "capture/cuda/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define EXTERNALS 8192 /* a power of two */
#define ARGS      16

struct out { /* out: a span under construction */
    struct rp_capture_span span;
    struct rp_capture_arg args[ARGS];
};

/* -------------------------------------------------------------------------- helpers */

static void add_number(struct out *o, const char *key, int64_t value)
{
    if (o->span.nargs < ARGS)
        o->args[o->span.nargs++] =
            (struct rp_capture_arg){.key = key, .type = RP_CTF_ARG_INT, .number = value};
}

static void add_text(struct out *o, const char *key, const char *text)
{
    if (o->span.nargs < ARGS)
        o->args[o->span.nargs++] =
            (struct rp_capture_arg){.key = key, .type = RP_CTF_ARG_TEXT, .text = text};
}

static void put_span(struct out *o)
{
    if (!o->span.begin || o->span.end < o->span.begin) {
        atomic_fetch_add(&rp_cuda.untimed, 1);
        rp_cuda.cap->lost(1);
        return;
    }
    o->span.timebase = RP_CTF_TIME_MONOTONIC;
    o->span.args = o->args;
    rp_cuda.cap->span(&o->span);
}

static const char *word(const char *const *words, size_t n, uint32_t i)
{
    return i < n && words[i] ? words[i] : "Unknown";
}
#define WORD(words, i) word(words, sizeof(words) / sizeof(words)[0], i)

/* -------------------------------------------------------------------------- referenced records */

static struct {
    uint32_t correlation;
    uint64_t external;
} externals[EXTERNALS];

static void add_external(struct out *o, uint32_t correlation)
{
    uint32_t k = correlation & (EXTERNALS - 1);

    if (externals[k].correlation == correlation && externals[k].external)
        add_number(o, "External id", (int64_t)externals[k].external);
}

/* Correlations of runtime calls; the driver call inside has the same one. */
static uint32_t outer[EXTERNALS];

static bool is_inner(const struct rp_cupti_api_record *r)
{
    return r->correlation && outer[r->correlation & (EXTERNALS - 1)] == r->correlation;
}

static void keep_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    int (*get)(int *) = NULL, version = 0;
    char text[32];

    if (driver)
        *(void **)&get = dlsym(driver, "cuDriverGetVersion");
    if (!get || get(&version) || !version)
        return;
    snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
    rp_cuda.cap->fact("cuda.driver", text);
}

/* -------------------------------------------------------------------------- device work */

static void begin_device(struct out *o, enum rp_ctf_kind kind, const char *category,
                         uint32_t device, uint32_t context, uint32_t stream, uint32_t correlation)
{
    o->span.kind = kind;
    o->span.category = category;
    o->span.device = (int32_t)device;
    atomic_store_explicit(&rp_cuda.device, device + 1, memory_order_relaxed);
    o->span.track = stream;
    o->span.link = rp_cuda_link(correlation);
    add_number(o, "context", context);
    if (rp_cuda.by_callback) /* otherwise its call has it */
        add_external(o, correlation);
}

static void add_graph(struct out *o, uint32_t graph, uint64_t node)
{
    if (!graph && !node)
        return;
    add_number(o, "graph id", graph);
    add_number(o, "graph node id", (int64_t)node);
}

static void read_kernel(const struct rp_cupti_kernel_record *r)
{
    struct out o = {{.begin = r->start, .end = r->end}, {{0}}};
    char grid[48], block[48];

    snprintf(grid, sizeof grid, "[%d, %d, %d]", r->grid[0], r->grid[1], r->grid[2]);
    snprintf(block, sizeof block, "[%d, %d, %d]", r->block[0], r->block[1], r->block[2]);
    o.span.name = rp_cuda_kernel_name(r->name);
    begin_device(&o, RP_CTF_KIND_KERNEL, "kernel", r->device, r->context, r->stream,
                 r->correlation);
    add_text(&o, "grid", grid);
    add_text(&o, "block", block);
    add_number(&o, "registers per thread", r->registers);
    add_number(&o, "shared memory", (int64_t)r->shared_static + r->shared_dynamic);
    add_graph(&o, r->graph, r->graph_node);
    atomic_fetch_add_explicit(&rp_cuda.kernels, 1, memory_order_relaxed);
    if (r->stream < RP_CUDA_STREAMS)
        atomic_fetch_add_explicit(&rp_cuda.by_stream[r->stream], 1, memory_order_relaxed);
    put_span(&o);
}

static const char *const memories[] = {NULL,    "Pageable", "Pinned", "Device",
                                       "Array", "Managed",  "Device", "Managed"};

static void read_memcpy(const struct rp_cupti_memcpy_record *r)
{
    static const char *const kinds[] = {NULL,   "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                        "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
    struct out o = {{.begin = r->start, .end = r->end}, {{0}}};
    char name[96];

    snprintf(name, sizeof name, "Memcpy %s (%s -> %s)", WORD(kinds, r->copy_kind),
             WORD(memories, r->from_kind), WORD(memories, r->to_kind));
    o.span.name = name;
    begin_device(&o, RP_CTF_KIND_MEMCPY, "gpu_memcpy", r->device, r->context, r->stream,
                 r->correlation);
    add_number(&o, "bytes", (int64_t)r->bytes);
    add_graph(&o, r->graph, r->graph_node);
    put_span(&o);
}

static void read_memcpy2(const struct rp_cupti_memcpy2_record *r)
{
    struct out o = {{.begin = r->start, .end = r->end}, {{0}}};

    o.span.name = "Memcpy PtoP (Device -> Device)";
    begin_device(&o, RP_CTF_KIND_MEMCPY, "gpu_memcpy", r->device, r->context, r->stream,
                 r->correlation);
    add_number(&o, "fromDevice", r->from_device);
    add_number(&o, "toDevice", r->to_device);
    add_number(&o, "bytes", (int64_t)r->bytes);
    add_graph(&o, r->graph, r->graph_node);
    put_span(&o);
}

static void read_memset(const struct rp_cupti_memset_record *r)
{
    struct out o = {{.begin = r->start, .end = r->end}, {{0}}};
    char name[64];

    snprintf(name, sizeof name, "Memset (%s)", WORD(memories, r->memory_kind));
    o.span.name = name;
    begin_device(&o, RP_CTF_KIND_MEMSET, "gpu_memset", r->device, r->context, r->stream,
                 r->correlation);
    add_number(&o, "bytes", (int64_t)r->bytes);
    add_graph(&o, r->graph, r->graph_node);
    put_span(&o);
}

static void read_graph(const struct rp_cupti_graph_record *r)
{
    struct out o = {{.begin = r->start, .end = r->end}, {{0}}};
    char name[64];

    snprintf(name, sizeof name, "CUDA graph %u", r->graph);
    o.span.name = name;
    begin_device(&o, RP_CTF_KIND_KERNEL, "kernel", r->device, r->context, r->stream,
                 r->correlation);
    add_number(&o, "graph id", r->graph);
    put_span(&o);
}

/* -------------------------------------------------------------------------- host calls */

static void read_call(const struct rp_cupti_api_record *r, int domain)
{
    bool runtime = domain == RP_CUPTI_DOMAIN_RUNTIME;
    struct out o = {{.kind = runtime ? RP_CTF_KIND_RUNTIME : RP_CTF_KIND_DRIVER,
                     .begin = r->start,
                     .end = r->end,
                     .category = runtime ? "cuda_runtime" : "cuda_driver",
                     .device = RP_CTF_SPAN_DEVICE,
                     .track = r->thread,
                     .link = rp_cuda_link(r->correlation)},
                    {{0}}};

    o.span.name = rp_cuda_call_name(domain, r->id);
    if (r->result)
        add_number(&o, "result", r->result);
    add_external(&o, r->correlation);
    put_span(&o);
}

static void read_overhead(const struct rp_cupti_overhead_record *r)
{
    static const char *const kinds[] = {"Driver Compiler",
                                        "Buffer Flush",
                                        "Instrumentation",
                                        "Resource",
                                        "Runtime Triggered Module Loading",
                                        "Lazy Function Loading",
                                        "Command Buffer Full",
                                        "Activity Buffer Request",
                                        "UVM Activity Init"};
    struct out o = {{.kind = RP_CTF_KIND_OVERHEAD,
                     .begin = r->start,
                     .end = r->end,
                     .category = "overhead",
                     .device = RP_CTF_SPAN_DEVICE,
                     .track = r->thread},
                    {{0}}};

    o.span.name = WORD(kinds, r->overhead >> 16);
    if (r->object == RP_CUPTI_OBJECT_THREAD && r->start)
        put_span(&o);
}

/* -------------------------------------------------------------------------- a buffer */

static void first_pass(uint32_t kind, const void *record)
{
    if (kind == RP_CUPTI_RUNTIME) {
        const struct rp_cupti_api_record *r = record;
        outer[r->correlation & (EXTERNALS - 1)] = r->correlation;
    } else if (kind == RP_CUPTI_EXTERNAL_CORRELATION) {
        const struct rp_cupti_external_record *r = record;
        uint32_t k = r->correlation & (EXTERNALS - 1);

        externals[k].correlation = r->correlation;
        externals[k].external = r->external;
    } else if (kind == RP_CUPTI_DEVICE) {
        const struct rp_cupti_device_record *r = record;
        char key[32], text[128];

        snprintf(key, sizeof key, "cuda.device.%u.size", r->id);
        snprintf(text, sizeof text, "%llu bytes, %u multiprocessors",
                 (unsigned long long)r->memory_bytes, r->multiprocessors);
        rp_cuda.cap->fact(key, text); /* written before the name, which completes the device */
        snprintf(key, sizeof key, "cuda.device.%u.clocks", r->id);
        snprintf(text, sizeof text, "%u MHz, memory %llu GB/s", r->clock_khz / 1000,
                 (unsigned long long)(r->bandwidth_kb / 1000000));
        rp_cuda.cap->fact(key, text);
        keep_driver();
        snprintf(key, sizeof key, "cuda.device.%u", r->id);
        snprintf(text, sizeof text, "%s", r->name ? r->name : "");
        rp_cuda.cap->fact(key, text);
    }
}

static void second_pass(uint32_t kind, const void *record)
{
    switch (kind) {
    case RP_CUPTI_KERNEL:
    case RP_CUPTI_CONCURRENT_KERNEL:
        read_kernel(record);
        break;
    case RP_CUPTI_MEMCPY:
        read_memcpy(record);
        break;
    case RP_CUPTI_MEMCPY2:
        read_memcpy2(record);
        break;
    case RP_CUPTI_MEMSET:
        read_memset(record);
        break;
    case RP_CUPTI_GRAPH_TRACE:
        read_graph(record);
        break;
    case RP_CUPTI_RUNTIME:
        read_call(record, RP_CUPTI_DOMAIN_RUNTIME);
        break;
    case RP_CUPTI_DRIVER:
        if (rp_cuda.all_calls || !is_inner(record))
            read_call(record, RP_CUPTI_DOMAIN_DRIVER);
        break;
    case RP_CUPTI_OVERHEAD:
        read_overhead(record);
        break;
    default:
        break;
    }
}

static void for_each_record(uint8_t *buffer, size_t valid,
                            void (*use)(uint32_t kind, const void *record))
{
    void *record = NULL;
    uint32_t kind;
    int code;

    while (!(code = rp_cuda.cupti.next_record(buffer, valid, &record)) && record) {
        memcpy(&kind, record, sizeof kind);
        use(kind, record);
    }
    if (code && code != RP_CUPTI_MAX_LIMIT_REACHED)
        atomic_fetch_add(&rp_cuda.bad, 1);
}

void rp_cuda_records_forget(void)
{
    memset(externals, 0, sizeof externals);
    memset(outer, 0, sizeof outer);
}

void rp_cuda_records(uint8_t *buffer, size_t valid)
{
    for_each_record(buffer, valid, first_pass);
    for_each_record(buffer, valid, second_pass);
}
