/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which calls are recorded, and how. By default only calls are recorded that start work, wait for
 * it, allocate, load code or make a context. They are chosen by their names, which CUPTI has for
 * each number: so that a launch function of a later CUDA is recorded too.
 *
 * They are recorded by callbacks, on the thread that calls. CUPTI's own records of calls
 * (activities) can be chosen by number as well, but then it follows all calls of the runtime and
 * throws most of them away: it read the clock 21 times a launch of PyTorch, which makes ten calls
 * for each. Callbacks come for the chosen calls only, and have the correlation that device work
 * has.
 *
 * Libraries that do not use the runtime (Triton, XLA) start their work through the driver. Inside a
 * call of the runtime the driver's is the same call again, with the same correlation, and is
 * dropped.
 */
#include "abi/cupti_counters.h"
#include "capture/cuda/cuda.h"

#include <string.h>

#define IDS 1024

static bool contains_any(const char *name, const char *const *words)
{
    for (; *words; words++) {
        if (strstr(name, *words))
            return true;
    }
    return false;
}

bool rp_cuda_call_matters(int domain, const char *name)
{
    static const char *const work[] = {"Launch",           "Memcpy",         "Memset",
                                       "Synchronize",      "BeginCapture",   "EndCapture",
                                       "ModuleLoad",       "LibraryLoad",    "CtxCreate",
                                       "PrimaryCtxRetain", "cuLinkComplete", NULL};
    /* in the driver these are inside calls of the runtime, or as frequent as queries */
    static const char *const more[] = {"GraphInstantiate", "GraphUpload",
                                       "GraphExecUpdate",  "EventRecord",
                                       "StreamWaitEvent",  "Malloc",
                                       "cudaFree",         "HostAlloc",
                                       "HostRegister",     "HostUnregister",
                                       "MemPrefetch",      "cudaInitDevice",
                                       "cudaDeviceReset",  NULL};
    static const char *const never[] = {"Node", "GetFunction", NULL}; /* parts of a graph */

    return (contains_any(name, work) ||
            (domain == RP_CUPTI_DOMAIN_RUNTIME && contains_any(name, more))) &&
           !contains_any(name, never);
}

/* Calls that give work to the device, or wait for it. */
static bool is_work(int domain, const char *name)
{
    static const char *const work[] = {"Launch", "Memcpy", "Memset", "Synchronize", NULL};

    return contains_any(name, work) && rp_cuda_call_matters(domain, name);
}

/* Calls `set` for each chosen call. Returns the number of calls for which that succeeded. */
static uint32_t for_each_call(int domain, bool (*is_chosen)(int domain, const char *name),
                              int (*set)(uint32_t id, uint8_t on), bool on)
{
    uint32_t n = 0;

    for (uint32_t id = 1; set && id < IDS; id++) {
        const char *name = NULL;

        if (!rp_cuda.cupti.callback_name(domain, id, &name) && name && is_chosen(domain, name) &&
            !set(id, on))
            n++;
    }
    return n;
}

static int watch_driver(uint32_t id, uint8_t on)
{
    return rp_cuda.cupti.enable_callback(on, rp_cuda.subscriber, RP_CUPTI_DOMAIN_DRIVER, id);
}

static int watch_runtime(uint32_t id, uint8_t on)
{
    return rp_cuda.cupti.enable_callback(on, rp_cuda.subscriber, RP_CUPTI_DOMAIN_RUNTIME, id);
}

static void switch_activities(bool on)
{
    const struct rp_cupti *c = &rp_cuda.cupti;
    int (*set)(int) = on ? c->enable : c->disable;

    if (rp_cuda.all_calls) {
        set(RP_CUPTI_RUNTIME);
        set(RP_CUPTI_DRIVER);
        return;
    }
    if (!for_each_call(RP_CUPTI_DOMAIN_RUNTIME, rp_cuda_call_matters, c->enable_runtime, on))
        set(RP_CUPTI_RUNTIME);
    for_each_call(RP_CUPTI_DOMAIN_DRIVER, rp_cuda_call_matters, c->enable_driver, on);
}

void rp_cuda_calls_switch(bool on)
{
    const char *which = rp_cuda.cap->option("cuda.calls");
    bool none = which && !strcmp(which, "none");
    bool (*is_chosen)(int, const char *) =
        which && !strcmp(which, "launches") ? is_work : rp_cuda_call_matters;

    rp_cuda.all_calls = which && !strcmp(which, "all");
    rp_cuda.by_callback = !none && !rp_cuda.all_calls && (!which || strcmp(which, "records") != 0);
    if (rp_cuda.by_callback) {
        for_each_call(RP_CUPTI_DOMAIN_RUNTIME, is_chosen, watch_runtime, on);
        for_each_call(RP_CUPTI_DOMAIN_DRIVER, is_chosen, watch_driver, on);
        return;
    }
    if (!none)
        switch_activities(on);
    /* To count, launches of the runtime, and of the driver without it. */
    if (rp_cuda.counting) {
        for_each_call(RP_CUPTI_DOMAIN_RUNTIME, is_work, watch_runtime, on);
        for_each_call(RP_CUPTI_DOMAIN_DRIVER, is_work, watch_driver, on);
    }
}

/* -------------------------------------------------------------------------- a call */

/* The calls that this thread is in: of the driver, and of the runtime. */
static __thread struct {
    uint64_t begin; /* ticks; 0: none */
    uint32_t correlation;
} inside[2] __attribute__((tls_model("initial-exec")));

static void call_write(bool runtime, uint32_t id, const struct rp_cupti_call *call, uint64_t begin)
{
    int code = call->result ? *(const int *)call->result : 0;
    struct rp_capture_arg arg = {.key = "result", .type = RP_CTF_ARG_INT, .number = code};

    rp_cuda.cap->span(&(struct rp_capture_span){
        .kind = runtime ? RP_CTF_KIND_RUNTIME : RP_CTF_KIND_DRIVER,
        .timebase = RP_CTF_TIME_TICKS,
        .begin = begin,
        .end = rp_cuda.cap->now(),
        .name = rp_cuda_call_name(runtime ? RP_CUPTI_DOMAIN_RUNTIME : RP_CUPTI_DOMAIN_DRIVER, id),
        .category = runtime ? "cuda_runtime" : "cuda_driver",
        .device = RP_CTF_SPAN_DEVICE,
        .link = call->correlation,
        .args = &arg,
        .nargs = code != 0});
}

void rp_cuda_calls_callback(int domain, uint32_t id, const void *data)
{
    const struct rp_cupti_call *call = data;
    bool runtime = domain == RP_CUPTI_DOMAIN_RUNTIME;
    uint64_t *count, begin = inside[runtime].begin;

    if (!runtime && inside[1].begin && inside[1].correlation == call->correlation)
        return;
    if (call->site == RP_CUPTI_SITE_ENTER) {
        count = rp_cuda.cap->launches();
        if (count)
            ++*count;
        inside[runtime].correlation = call->correlation;
        inside[runtime].begin = rp_cuda.cap->active() ? rp_cuda.cap->now() : 0;
        return;
    }
    inside[runtime].begin = 0;
    if (begin && inside[runtime].correlation == call->correlation && rp_cuda.by_callback)
        call_write(runtime, id, call, begin);
}
