/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes marks for profilers of NVIDIA GPUs, using only libraries that exist. CUDA's runtime is
 * looked for only if its driver is in the process; NVTX comes from the library of CUDA 12 and
 * before, or the one of CUDA 13, wherever the loader finds them.
 */
#include "exec/pjrt/device_marks.h"

#include <dlfcn.h>
#include <stddef.h>

static void *open_first(const char *const *names, int flags)
{
    void *library = NULL;

    for (; *names && !library; names++)
        library = dlopen(*names, RTLD_LAZY | flags);
    return library;
}

static void *find_symbol(void *library, const char *name)
{
    return library ? dlsym(library, name) : NULL;
}

static void marks_look(struct rp_device_marks *m)
{
    static const char *const driver[] = {"libcuda.so.1", NULL};
    static const char *const runtime[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0",
                                          "libcudart.so", NULL};
    static const char *const nvtx[] = {"libnvToolsExt.so.1", "libnvtx3interop.so.1",
                                       "libnvtx3interop.so", NULL};
    void *cuda = NULL;
    union {
        void *symbol;
        int (*call)(void);
        int (*name)(const char *);
    } as;

    m->looked = true;
    if (!open_first(driver, RTLD_NOLOAD))
        return;
    cuda = open_first(runtime, RTLD_NOLOAD);
    if (!cuda)
        cuda = open_first(runtime, 0);
    as.symbol = find_symbol(cuda, "cudaProfilerStart");
    m->start = as.call;
    as.symbol = find_symbol(cuda, "cudaProfilerStop");
    m->stop = as.call;
    void *ranges = open_first(nvtx, 0);
    as.symbol = find_symbol(ranges, "nvtxRangePushA");
    m->push = as.name;
    as.symbol = find_symbol(ranges, "nvtxRangePop");
    m->pop = as.call;
}

void rp_device_marks_begin(struct rp_device_marks *m)
{
    if (!m->looked)
        marks_look(m);
    m->marking = true;
    if (m->start && m->stop)
        m->start();
    rp_device_marks_push(m, "reprise: measured runs");
}

void rp_device_marks_end(struct rp_device_marks *m)
{
    if (!m->marking)
        return;
    rp_device_marks_pop(m);
    if (m->start && m->stop)
        m->stop();
    m->marking = false;
}

void rp_device_marks_push(struct rp_device_marks *m, const char *name)
{
    if (m->marking && m->push && m->pop)
        m->push(name);
}

void rp_device_marks_pop(struct rp_device_marks *m)
{
    if (m->marking && m->push && m->pop)
        m->pop();
}
