/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of calls and kernels. CUPTI's names of calls end with a version ("cudaLaunchKernel_v7000"),
 * which is removed; names of kernels are demangled by the C++ library if the process has one. Both
 * are cached: those of kernels for the worker, those of calls for all threads.
 */
#include "capture/cuda/cuda.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define CALLS   2048
#define KERNELS 8192 /* a power of two */
#define PROBES  16

static _Atomic(char *) calls[2][CALLS]; /* driver, runtime */

const char *rp_cuda_call_name(int domain, uint32_t id)
{
    bool runtime = domain == RP_CUPTI_DOMAIN_RUNTIME;
    _Atomic(char *) *slot = &calls[runtime][id < CALLS ? id : 0];
    char *known = id < CALLS ? atomic_load_explicit(slot, memory_order_acquire) : NULL;
    char *none = NULL;
    const char *name = NULL;

    if (known)
        return known;
    if (id >= CALLS || rp_cuda.cupti.callback_name(domain, id, &name) || !name)
        return runtime ? "call of the CUDA runtime" : "call of the CUDA driver";
    known = strdup(name);
    if (!known)
        return "call";

    /* Removes "_v7000", then "_ptsz" or "_ptds" (entry points of the per-thread default stream). */
    char *v = strrchr(known, '_');
    if (v && v[1] == 'v' && strspn(v + 2, "0123456789") == strlen(v + 2) && v[2])
        *v = '\0';
    size_t n = strlen(known);
    if (n > 5 && (!strcmp(known + n - 5, "_ptsz") || !strcmp(known + n - 5, "_ptds")))
        known[n - 5] = '\0';
    if (atomic_compare_exchange_strong(slot, &none, known))
        return known;
    free(known); /* another thread was first */
    return none;
}

static char *demangle(const char *mangled)
{
    static char *(*call)(const char *, char *, size_t *, int *);
    static bool tried;
    int status = 0;
    char *text;

    if (!tried) {
        void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_NOLOAD);

        if (!library)
            library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
        if (library)
            *(void **)&call = dlsym(library, "__cxa_demangle");
        tried = true;
    }
    text =
        call && mangled[0] == '_' && mangled[1] == 'Z' ? call(mangled, NULL, NULL, &status) : NULL;
    return text ? text : strdup(mangled);
}

const char *rp_cuda_kernel_name(const char *mangled)
{
    static struct {
        uint64_t hash;
        char *name;
    } known[KERNELS];

    if (!mangled || !*mangled)
        return "(kernel without name)";

    /* FNV-1a, never 0. */
    const char *text = mangled;
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++)
        h = (h ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    uint64_t hash = h | 1;

    size_t at = (size_t)(hash >> 1) & (KERNELS - 1);
    for (size_t i = 0; i < PROBES; i++) {
        size_t k = (at + i) & (KERNELS - 1);

        if (known[k].hash == hash)
            return known[k].name;
        if (!known[k].hash) {
            at = k;
            break;
        }
    }
    free(known[at].name); /* if all slots are taken, replace the first */
    known[at].name = demangle(mangled);
    known[at].hash = known[at].name ? hash : 0;
    return known[at].name ? known[at].name : mangled;
}
