/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sycl library, a subscriber of XPTI. The SYCL runtime reports command groups (tasks) and waits
 * with their name and source line, allocations, and the calls of Unified Runtime that it makes.
 *
 *   stream                          becomes
 *   sycl                            operators (tasks) and waits
 *   ur.call                         runtime calls (needs UR_ENABLE_LAYERS=UR_LAYER_TRACING)
 *   sycl.experimental.mem_alloc     a counter of the bytes allocated by SYCL
 *
 * XPTI has no times of the device. For devices behind OpenCL the opencl library records them; its
 * commands are enqueued inside these calls.
 *
 * A task ends on the thread where it began, so a pair is an enter and a leave. Calls that the
 * tracing layer makes for its own bookkeeping are those of the program: only queries are filtered,
 * which are many and take no time.
 */
#include "abi/xpti.h"
#include "capture/core/core.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define LANE   UINT32_C(0x53590000) /* calls nest among themselves */

#define KERNEL_TYPE "typeinfo name for " /* a kernel has the name of its type */

static const struct rp_capture *cap;
static struct rp_xpti xpti;
static _Atomic int64_t bytes_in_use;

/* -------------------------------------------------------------------------- tasks and waits */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* "kernel (file.cpp:12)": the runtime knows the line where the program was compiled with it. */
static const char *event_name(void *event, const char *otherwise, char *room, size_t size)
{
    const struct rp_xpti_payload *p = event ? xpti.payload(event) : NULL;
    const char *name = p && p->name && *p->name ? p->name : otherwise;

    if (!strncmp(name, KERNEL_TYPE, sizeof KERNEL_TYPE - 1))
        name += sizeof KERNEL_TYPE - 1;
    if (!p || !p->file || !*p->file || p->line == 0 || p->line == UINT32_MAX)
        return name;
    snprintf(room, size, "%.400s (%.80s:%u)", name, base_name(p->file), p->line);
    return room;
}

static void on_sycl(uint16_t point, void *parent, void *event, uint64_t instance, const void *data)
{
    char room[512];

    (void)parent, (void)instance, (void)data;
    if (point == RP_XPTI_TASK_BEGIN)
        cap->enter(&(struct rp_capture_enter){.kind = RP_CTF_KIND_OPERATOR,
                                              .name = event_name(event, "task", room, sizeof room),
                                              .category = "sycl"});
    else if (point == RP_XPTI_WAIT_BEGIN)
        cap->enter(&(struct rp_capture_enter){.kind = RP_CTF_KIND_WAIT,
                                              .name = event_name(event, "wait", room, sizeof room),
                                              .category = "sycl"});
    else
        cap->leave(0, 0);
}

/* -------------------------------------------------------------------------- calls */

static bool is_query(const char *name)
{
    return strstr(name, "Get") || strstr(name, "Retain") || strstr(name, "Release") ||
           strstr(name, "Is") || strstr(name, "Set");
}

static void on_call(uint16_t point, void *parent, void *event, uint64_t instance, const void *data)
{
    const struct rp_xpti_call *call = data;

    (void)parent, (void)event, (void)instance;
    if (!call || !call->name || is_query(call->name))
        return;
    if (point == RP_XPTI_CALL_BEGIN)
        cap->enter(&(struct rp_capture_enter){
            .kind = RP_CTF_KIND_RUNTIME, .lane = LANE, .name = call->name, .category = "ur"});
    else
        cap->leave(LANE, call->result ? *(const int *)call->result : 0);
}

/* -------------------------------------------------------------------------- memory */

static void on_memory(uint16_t point, void *parent, void *event, uint64_t instance,
                      const void *data)
{
    const struct rp_xpti_memory *m = data;

    (void)parent, (void)event, (void)instance;
    if (!m || (point != RP_XPTI_ALLOC_END && point != RP_XPTI_RELEASE_END))
        return;
    int64_t now = point == RP_XPTI_ALLOC_END
                      ? atomic_fetch_add(&bytes_in_use, (int64_t)m->bytes) + (int64_t)m->bytes
                      : atomic_fetch_sub(&bytes_in_use, (int64_t)m->bytes) - (int64_t)m->bytes;
    if (m->bytes)
        cap->counter("SYCL memory", (double)now);
}

/* -------------------------------------------------------------------------- streams */

static const struct {
    const char *stream;
    rp_xpti_callback *callback;
    uint16_t points[4];
} streams[] = {
    {"sycl", on_sycl, {RP_XPTI_TASK_BEGIN, RP_XPTI_TASK_END, RP_XPTI_WAIT_BEGIN, RP_XPTI_WAIT_END}},
    {"ur.call", on_call, {RP_XPTI_CALL_BEGIN, RP_XPTI_CALL_END}},
    {"sycl.experimental.mem_alloc", on_memory, {RP_XPTI_ALLOC_END, RP_XPTI_RELEASE_END}},
};

static bool xpti_find(void)
{
    const char *name = getenv("XPTI_FRAMEWORK_DISPATCHER");
    void *handle = name ? dlopen(name, RTLD_LAZY | RTLD_NOLOAD) : NULL;

    handle = handle ? handle : dlopen("libxptifw.so", RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return false;
    *(void **)&xpti.stream = dlsym(handle, "xptiRegisterStream");
    *(void **)&xpti.callback = dlsym(handle, "xptiRegisterCallback");
    *(void **)&xpti.payload = dlsym(handle, "xptiQueryPayload");
    return xpti.stream && xpti.callback && xpti.payload;
}

EXPORT void xptiTraceInit(unsigned major, unsigned minor, const char *version, const char *stream);
EXPORT void xptiTraceFinish(const char *stream);

void xptiTraceInit(unsigned major, unsigned minor, const char *version, const char *stream)
{
    (void)major, (void)minor, (void)version;
    if (!cap)
        cap = rp_capture_get();
    if (!cap || (!xpti.stream && !xpti_find()))
        return;
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        if (strcmp(streams[i].stream, stream) != 0)
            continue;
        for (size_t k = 0; k < 4 && streams[i].points[k]; k++)
            xpti.callback(xpti.stream(stream), streams[i].points[k], streams[i].callback);
    }
}

void xptiTraceFinish(const char *stream)
{
    (void)stream;
}
