/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A double of the CUDA driver, libcuda.so.1, with one device: cuInit loads the injected library,
 * and what is set on the device is reported to the CUPTI double. FAKE_DRIVER=none: it has no
 * device.
 */
#include "fake_cupti.h"

#include "abi/cupti.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

int cuInit(unsigned flags)
{
    const char *path = getenv("CUDA_INJECTION64_PATH"), *kind = getenv("FAKE_DRIVER");
    void *library;
    int (*call)(void) = NULL;

    if (flags || (kind && !strcmp(kind, "none")))
        return 100;
    library = path ? dlopen(path, RTLD_NOW) : NULL;
    if (library)
        *(void **)&call = dlsym(library, "InitializeInjection");
    return call && call() != 1;
}

int cuDeviceGet(int *device, int number)
{
    *device = number;
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    static int contexts[1];

    *context = &contexts[device];
    return 0;
}

int cuCtxSetCurrent(void *context)
{
    return !context;
}

int cuMemAlloc_v2(uint64_t *memory, size_t bytes)
{
    *memory = (uint64_t)(uintptr_t)malloc(bytes);
    return 0;
}

int cuMemsetD8_v2(uint64_t memory, unsigned char value, size_t bytes)
{
    uint64_t now = fake_cupti_now();
    union {
        uint8_t bytes[256];
        struct rp_cupti_memset_record set;
    } r = {.set = {.kind = RP_CUPTI_MEMSET,
                   .bytes = bytes,
                   .memory_kind = 3,
                   .start = now,
                   .end = now + 1000,
                   .context = 1,
                   .stream = 7,
                   .correlation = 1}};

    memset((void *)(uintptr_t)memory, value, bytes);
    if (now)
        fake_cupti_put(&r);
    return 0;
}

int cuCtxSynchronize(void)
{
    return 0;
}
