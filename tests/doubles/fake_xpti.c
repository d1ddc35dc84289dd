/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SYCL runtime to a recorder, in two parts: the dispatcher libxptifw.so, and (with -DPROGRAM) a
 * program that loads it and the subscribers in XPTI_SUBSCRIBERS, as the runtime does, and reports N
 * command groups with the calls inside them, waits and allocations.
 *
 *   fake_xpti N
 */
#include "abi/xpti.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef PROGRAM

static struct {
    char names[8][64];
    rp_xpti_callback *callbacks[8][64];
    int n;
} streams;

uint8_t xptiRegisterStream(const char *name)
{
    for (int i = 0; i < streams.n; i++) {
        if (!strcmp(streams.names[i], name))
            return (uint8_t)i;
    }
    snprintf(streams.names[streams.n], sizeof streams.names[0], "%s", name);
    return (uint8_t)streams.n++;
}

int xptiRegisterCallback(uint8_t stream, uint16_t point, rp_xpti_callback *callback)
{
    streams.callbacks[stream][point & 63] = callback;
    return 0;
}

const struct rp_xpti_payload *xptiQueryPayload(void *event)
{
    return event;
}

void fake_notify(const char *stream, uint16_t point, void *event, const void *data)
{
    rp_xpti_callback *callback = streams.callbacks[xptiRegisterStream(stream)][point & 63];

    if (callback)
        callback(point, NULL, event, 1, data);
}

#else

static void (*notify)(const char *stream, uint16_t point, void *event, const void *data);

static void call(const char *name)
{
    int result = 0;
    struct rp_xpti_call c = {.id = 295, .name = name, .result = &result};

    notify("ur.call", RP_XPTI_CALL_BEGIN, NULL, &c);
    notify("ur.call", RP_XPTI_CALL_END, NULL, &c);
}

static void memory(uint16_t point, size_t bytes)
{
    struct rp_xpti_memory m = {.object = 1, .address = 4096, .bytes = bytes};

    notify("sycl.experimental.mem_alloc", point, NULL, &m);
}

static void load_runtime(void)
{
    static const char *const names[] = {"sycl", "ur.call", "sycl.experimental.mem_alloc", "other"};
    const char *dispatcher = getenv("XPTI_FRAMEWORK_DISPATCHER");
    const char *subscriber = getenv("XPTI_SUBSCRIBERS"), *on = getenv("XPTI_TRACE_ENABLE");
    void *handle = dispatcher && on ? dlopen(dispatcher, RTLD_LAZY) : NULL;
    void (*begin)(unsigned, unsigned, const char *, const char *) = NULL;
    void *library = handle && subscriber ? dlopen(subscriber, RTLD_LAZY) : NULL;

    if (handle)
        *(void **)&notify = dlsym(handle, "fake_notify");
    if (library)
        *(void **)&begin = dlsym(library, "xptiTraceInit");
    for (size_t i = 0; begin && i < sizeof names / sizeof names[0]; i++)
        begin(1, 0, "2026.2", names[i]);
}

int main(int argc, char **argv)
{
    long n = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    struct rp_xpti_payload kernel = {.name = "typeinfo name for axpy",
                                     .file = "/src/app/axpy.cpp",
                                     .line = 42},
                           copy = {.name = "memcpy"}, wait = {.name = "queue.wait[7]"};

    load_runtime();
    for (long i = 0; notify && i < n; i++) {
        memory(RP_XPTI_ALLOC_END, 4096);
        notify("sycl", RP_XPTI_TASK_BEGIN, &kernel, NULL);
        call("urKernelGetInfo");
        call("urEnqueueKernelLaunchWithArgsExp");
        notify("sycl", RP_XPTI_TASK_END, &kernel, NULL);
        notify("sycl", RP_XPTI_TASK_BEGIN, &copy, NULL);
        call("urEnqueueUSMMemcpy");
        notify("sycl", RP_XPTI_TASK_END, &copy, NULL);
        notify("sycl", RP_XPTI_WAIT_BEGIN, &wait, NULL);
        call("urQueueFinish");
        notify("sycl", RP_XPTI_WAIT_END, &wait, NULL);
        memory(RP_XPTI_RELEASE_END, 4096);
    }
    printf("%ld command groups\n", 2 * n);
    return 0;
}

#endif
