/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which calls are recorded. A record costs the program about as much as the call of a query does,
 * and PyTorch makes several queries for each launch, so that by default only calls are recorded
 * that start work, wait for it, allocate, load code or make a context. They are chosen by their
 * names, which CUPTI has for each number: so that a launch function of a later CUDA is recorded
 * too. A CUPTI that cannot choose records all calls of the runtime.
 *
 * Libraries that do not use the runtime (Triton, XLA) start their work through the driver. Inside
 * a call of the runtime the driver's is the same call again, which the worker drops. With
 * cuda.calls=launches the driver's are the only ones: one record for each launch, without the
 * runtime's part of its time.
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

static void switch_calls(bool on)
{
    const struct rp_cupti *c = &rp_cuda.cupti;
    int (*set)(int) = on ? c->enable : c->disable;

    if (rp_cuda_option_is("cuda.calls", "none"))
        return;
    rp_cuda.all_calls = rp_cuda_option_is("cuda.calls", "all");
    if (rp_cuda.all_calls) {
        set(RP_CUPTI_RUNTIME);
        set(RP_CUPTI_DRIVER);
        return;
    }
    if (rp_cuda_option_is("cuda.calls", "launches") &&
        for_each_call(RP_CUPTI_DOMAIN_DRIVER, is_work, c->enable_driver, on))
        return;
    if (!for_each_call(RP_CUPTI_DOMAIN_RUNTIME, rp_cuda_call_matters, c->enable_runtime, on))
        set(RP_CUPTI_RUNTIME);
    for_each_call(RP_CUPTI_DOMAIN_DRIVER, rp_cuda_call_matters, c->enable_driver, on);
}

static int watch(uint32_t id, uint8_t on)
{
    return rp_cuda.cupti.enable_callback(on, rp_cuda.subscriber, RP_CUPTI_DOMAIN_DRIVER, id);
}

/* To count, the driver's are all there are: those of the runtime call it. */
void rp_cuda_calls_switch(bool on)
{
    switch_calls(on);
    if (rp_cuda.counting)
        for_each_call(RP_CUPTI_DOMAIN_DRIVER, is_work, watch, on);
}

void rp_cuda_calls_count(const void *data)
{
    const struct rp_cupti_call *call = data;
    uint64_t *count = call->site == RP_CUPTI_SITE_ENTER ? rp_cuda.cap->launches() : NULL;

    if (count)
        ++*count;
}
