/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which calls are recorded. A record costs the program about as much as the call of a query does,
 * and PyTorch makes several queries for each launch, so that by default only calls are recorded
 * that start work, wait for it, allocate, load code or make a context. They are chosen by their
 * names, which CUPTI has for each number: so that a launch function of a later CUDA is recorded
 * too. A CUPTI that cannot choose records all calls of the runtime.
 *
 * Libraries that do not use the runtime (Triton, XLA) start their work through the driver. Inside
 * a call of the runtime the driver's is the same call again, which the worker drops.
 */
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

/* Returns the number of calls that were enabled. */
static uint32_t enable_by_name(int domain, int (*enable)(uint32_t, uint8_t))
{
    uint32_t n = 0;

    for (uint32_t id = 1; id < IDS; id++) {
        const char *name = NULL;

        if (!rp_cuda.cupti.callback_name(domain, id, &name) && name &&
            rp_cuda_call_matters(domain, name) && !enable(id, 1))
            n++;
    }
    return n;
}

void rp_cuda_calls_enable(void)
{
    const struct rp_cupti *c = &rp_cuda.cupti;

    if (rp_cuda_option_is("cuda.calls", "none"))
        return;
    rp_cuda.all_calls = rp_cuda_option_is("cuda.calls", "all");
    if (rp_cuda.all_calls) {
        c->enable(RP_CUPTI_RUNTIME);
        c->enable(RP_CUPTI_DRIVER);
        return;
    }
    if (!c->enable_runtime || !enable_by_name(RP_CUPTI_DOMAIN_RUNTIME, c->enable_runtime))
        c->enable(RP_CUPTI_RUNTIME);
    if (c->enable_driver)
        enable_by_name(RP_CUPTI_DOMAIN_DRIVER, c->enable_driver);
}
