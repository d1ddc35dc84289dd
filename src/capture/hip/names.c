/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of kernels. A dispatch names its code by an address, the kernel object. When an executable
 * is complete, its kernels are entered in a hash table with a lock; a later executable at the same
 * address replaces the entry. Names are kept for the life of the process, because running commands
 * point to them.
 */
#include "capture/hip/hip.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES (1 << 20)
#define KERNELS_MAX    (1u << 22)

struct kernel {
    uint64_t object; /* 0: unused */
    const char *name;
};
static struct kernel *kernels;
static uint32_t nkernels, nslots; /* nslots: a power of two, or 0 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static char *demangle(const char *mangled)
{
    static char *(*call)(const char *, char *, size_t *, int *);
    int status = 0;

    if (!call) {
        void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);

        if (library)
            *(void **)&call = dlsym(library, "__cxa_demangle");
    }
    char *text = call && !strncmp(mangled, "_Z", 2) ? call(mangled, NULL, NULL, &status) : NULL;
    return text ? text : strdup(mangled);
}

static struct kernel *slot_of(struct kernel *at, uint32_t n, uint64_t object)
{
    uint32_t k = (uint32_t)(object * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (n - 1);

    while (at[k].object && at[k].object != object)
        k = (k + 1) & (n - 1);
    return &at[k];
}

static bool kernels_grow(void)
{
    uint32_t n = nslots ? 2 * nslots : 1024;
    struct kernel *at = n <= KERNELS_MAX ? calloc(n, sizeof *at) : NULL;

    if (!at)
        return false;
    for (uint32_t i = 0; i < nslots; i++) {
        if (kernels[i].object)
            *slot_of(at, n, kernels[i].object) = kernels[i];
    }
    free(kernels);
    kernels = at;
    nslots = n;
    return true;
}

static int add_symbol(uint64_t executable, uint64_t symbol, void *data)
{
    uint32_t type = 0, n = 0;
    uint64_t object = 0;

    (void)executable, (void)data;
    if (rp_hip.executable_symbol_get_info(symbol, RP_HSA_SYMBOL_TYPE, &type) ||
        type != RP_HSA_SYMBOL_IS_KERNEL ||
        rp_hip.executable_symbol_get_info(symbol, RP_HSA_SYMBOL_KERNEL_OBJECT, &object) ||
        rp_hip.executable_symbol_get_info(symbol, RP_HSA_SYMBOL_NAME_LENGTH, &n) || !object || !n ||
        n > NAME_MAX_BYTES)
        return 0;
    char *mangled = calloc(1, n + 1);
    if (mangled && !rp_hip.executable_symbol_get_info(symbol, RP_HSA_SYMBOL_NAME, mangled)) {
        if (n > 3 && !strcmp(mangled + n - 3, ".kd")) /* kernel descriptor */
            mangled[n - 3] = '\0';
        char *name = demangle(mangled);
        if (name) {
            /* Takes over the name. */
            pthread_mutex_lock(&lock);
            if (2 * nkernels < nslots || kernels_grow()) {
                struct kernel *k = slot_of(kernels, nslots, object);
                nkernels += !k->object;
                k->object = object;
                if (!k->name || strcmp(k->name, name) != 0) {
                    k->name = name;
                    name = NULL;
                }
            }
            pthread_mutex_unlock(&lock);
            free(name);
        }
    }
    free(mangled);
    return 0;
}

void rp_hip_names_add(uint64_t executable)
{
    rp_hip.executable_iterate_symbols(executable, add_symbol, NULL);
}

const char *rp_hip_name_of(uint64_t kernel_object)
{
    const char *name = NULL;

    pthread_mutex_lock(&lock);
    if (nslots && kernel_object)
        name = slot_of(kernels, nslots, kernel_object)->name;
    pthread_mutex_unlock(&lock);
    return name ? name : "(kernel without name)";
}
