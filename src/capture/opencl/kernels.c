/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels by handle: the name, queried once, and the arguments that were set last. A hash table of
 * fixed size with a lock; if it is full, the name is queried each time and arguments are not known.
 */
#include "capture/opencl/opencl.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define KERNELS        4096 /* a power of two */
#define NAME_MAX_BYTES (1 << 20)

static struct {
    void *handle;
    struct rp_opencl_kernel kernel;
} known[KERNELS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static char released; /* its address is the handle of an entry whose kernel was released */

/* The slot of the kernel, or with `fresh` a free one; KERNELS: none. */
static size_t slot_of(const void *handle, bool fresh)
{
    uint64_t h = (uint64_t)(uintptr_t)handle * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    size_t free_one = KERNELS;

    for (size_t i = 0; i < 64; i++) {
        size_t k = (h + i) & (KERNELS - 1);

        if (known[k].handle == handle)
            return k;
        if (free_one == KERNELS && (!known[k].handle || known[k].handle == &released))
            free_one = k;
        if (!known[k].handle)
            break;
    }
    return fresh ? free_one : KERNELS;
}

/* The runtime returns a name only if the buffer holds all of it. */
static void query_name(void *handle, struct rp_opencl_kernel *out)
{
    size_t n = 0;

    memcpy(out->name, "(kernel)", 9);
    if (!rp_opencl.GetKernelInfo ||
        rp_opencl.GetKernelInfo(handle, RP_CL_KERNEL_NAME, 0, NULL, &n) || !n || n > NAME_MAX_BYTES)
        return;
    char *whole = malloc(n);
    if (whole && !rp_opencl.GetKernelInfo(handle, RP_CL_KERNEL_NAME, n, whole, NULL)) {
        n = n < sizeof out->name ? n : sizeof out->name;
        memcpy(out->name, whole, n);
        out->name[n - 1] = '\0';
    }
    free(whole);
}

/* The entry of the kernel, created if needed; NULL if the table is full. */
static struct rp_opencl_kernel *kernel_entry(void *handle)
{
    size_t k = slot_of(handle, true);

    if (k == KERNELS)
        return NULL;
    if (known[k].handle != handle) {
        memset(&known[k], 0, sizeof known[k]);
        query_name(handle, &known[k].kernel);
        known[k].handle = handle;
    }
    return &known[k].kernel;
}

void rp_opencl_kernel_set(void *handle, uint32_t index, size_t size, const void *value)
{
    if (index >= RP_OPENCL_ARGS)
        return;
    pthread_mutex_lock(&lock);
    struct rp_opencl_kernel *kernel = kernel_entry(handle);
    if (kernel) {
        kernel->args[index].size = (uint32_t)size;
        kernel->args[index].is_set = true;
        kernel->args[index].value = 0;
        if (value)
            memcpy(&kernel->args[index].value, value, size < 8 ? size : 8);
        if (kernel->nargs <= index)
            kernel->nargs = index + 1;
    }
    pthread_mutex_unlock(&lock);
}

void rp_opencl_kernel_get(void *handle, struct rp_opencl_kernel *out)
{
    pthread_mutex_lock(&lock);
    struct rp_opencl_kernel *kernel = kernel_entry(handle);
    if (kernel)
        *out = *kernel;
    pthread_mutex_unlock(&lock);
    if (!kernel) {
        memset(out, 0, sizeof *out);
        query_name(handle, out);
    }
}

/* A new kernel may get the same handle. The entry stays in its probe chain, marked as released. */
void rp_opencl_kernel_forget(void *handle)
{
    pthread_mutex_lock(&lock);
    size_t k = slot_of(handle, false);
    if (k != KERNELS)
        known[k].handle = &released;
    pthread_mutex_unlock(&lock);
}
