/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands. The call is a span of its thread; when the runtime reports completion, a second span
 * covers the command on the device, with its four times: queued, submitted, started, ended. Queues
 * have these times because they are created with profiling enabled (opencl.c).
 *
 * A device has its own clock. Two constraints bound its offset to the host's clock: a command is
 * queued after its call began, and ends before its completion is reported. Each command narrows the
 * bounds. If they contain 0, the clocks are the same (CPU devices); else the lower bound is used,
 * which is off by at most the time from the call to the queueing.
 */
#include "capture/opencl/opencl.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEVICES  64
#define QUEUES   1024
#define LINKS    UINT64_C(0x80000000) /* distinct from CUDA's correlations */
#define CATEGORY "opencl"

struct rp_opencl_command {
    const char *call;
    enum rp_ctf_kind kind;
    uint64_t bytes, link;
    uint32_t queue, device, dims;
    int64_t begun_ns;
    size_t global[3], local[3];
    bool has_local;
    struct rp_opencl_kernel kernel;
};

static struct {
    void *handle;
    int64_t min_ns, max_ns; /* bounds of host clock - device clock */
} devices[DEVICES];
static void *queues[QUEUES], *queue_device[QUEUES];
static uint32_t ndevices, nqueues;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t links;
static _Atomic int32_t running;

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* -------------------------------------------------------------------------- devices and queues */

static uint32_t find_device(void *handle)
{
    char key[32], name[512] = "";

    for (uint32_t i = 0; i < ndevices; i++) {
        if (devices[i].handle == handle)
            return i;
    }
    if (ndevices == DEVICES)
        return DEVICES - 1;
    devices[ndevices].handle = handle;
    devices[ndevices].min_ns = INT64_MIN;
    devices[ndevices].max_ns = INT64_MAX;
    if (rp_opencl.GetDeviceInfo)
        rp_opencl.GetDeviceInfo(handle, RP_CL_DEVICE_NAME, sizeof name - 1, name, NULL);
    snprintf(key, sizeof key, "opencl.device.%u", ndevices);
    rp_opencl.cap->fact(key, name);
    return ndevices++;
}

static void find_queue(void *handle, uint32_t *queue, uint32_t *device)
{
    void *of = NULL;
    uint32_t i = 0;

    pthread_mutex_lock(&lock);
    rp_opencl.GetCommandQueueInfo(handle, RP_CL_QUEUE_DEVICE, sizeof of, &of, NULL);
    while (i < nqueues && (queues[i] != handle || queue_device[i] != of))
        i++;
    if (i == nqueues && nqueues < QUEUES) {
        queue_device[nqueues] = of;
        queues[nqueues++] = handle;
    }
    *queue = i;
    *device = find_device(of);
    pthread_mutex_unlock(&lock);
}

/* Narrows the bounds of the clock offset by one command, and returns the offset. */
static int64_t clock_offset(uint32_t device, int64_t min_ns, int64_t max_ns)
{
    int64_t result;

    pthread_mutex_lock(&lock);
    if (min_ns > devices[device].min_ns)
        devices[device].min_ns = min_ns;
    if (max_ns < devices[device].max_ns)
        devices[device].max_ns = max_ns;
    result =
        devices[device].min_ns <= 0 && devices[device].max_ns >= 0 ? 0 : devices[device].min_ns;
    pthread_mutex_unlock(&lock);
    return result;
}

/* -------------------------------------------------------------------------- arguments */

struct args {
    struct rp_capture_args list;
    char texts[RP_OPENCL_ARGS][48], keys[RP_OPENCL_ARGS][16], global[64], local[64];
};

static const char *sizes_text(char *to, size_t size, const size_t *at, uint32_t dims)
{
    snprintf(to, size, "[%zu, %zu, %zu]", at[0], dims > 1 ? at[1] : 1, dims > 2 ? at[2] : 1);
    return to;
}

/* -------------------------------------------------------------------------- a command */

struct rp_opencl_command *rp_opencl_begin(const char *call, enum rp_ctf_kind kind, void *queue,
                                          uint64_t bytes, void *kernel, uint32_t dims,
                                          const size_t *global, const size_t *local)
{
    struct rp_opencl_command *c = malloc(sizeof *c);

    if (!c)
        return NULL;
    *c = (struct rp_opencl_command){.call = call, .kind = kind, .bytes = bytes};
    find_queue(queue, &c->queue, &c->device);
    c->link = LINKS + atomic_fetch_add(&links, 1);
    if (kernel)
        rp_opencl_kernel_get(kernel, &c->kernel);
    c->dims = dims <= 3 && global ? dims : 0;
    c->has_local = c->dims && local;
    for (uint32_t i = 0; i < c->dims; i++) {
        c->global[i] = global[i];
        c->local[i] = local ? local[i] : 0;
    }
    c->begun_ns = now_ns();
    rp_opencl.cap->enter(&(struct rp_capture_enter){
        .kind = RP_CTF_KIND_RUNTIME, .name = call, .category = CATEGORY, .link = c->link});
    return c;
}

static bool read_times(void *event, uint64_t times[4])
{
    for (uint32_t i = 0; i < 4; i++) {
        if (rp_opencl.GetEventProfilingInfo(event, RP_CL_TIME_QUEUED + i, sizeof times[i],
                                            &times[i], NULL))
            return false;
    }
    return times[3] && times[0] <= times[3] && times[2] <= times[3];
}

static void put_command(const struct rp_opencl_command *c, const uint64_t times[4])
{
    static const char *const keys[] = {"queued ns", "submitted ns", "started ns", "ended ns"};
    int64_t offset =
        clock_offset(c->device, c->begun_ns - (int64_t)times[0], now_ns() - (int64_t)times[3]);
    struct args args;
    struct rp_capture_span span = {.kind = c->kind,
                                   .timebase = RP_CTF_TIME_MONOTONIC,
                                   .begin = times[2] + (uint64_t)offset,
                                   .end = times[3] + (uint64_t)offset,
                                   .name = c->kernel.name[0] ? c->kernel.name : c->call,
                                   .category = c->kind == RP_CTF_KIND_KERNEL   ? "kernel"
                                               : c->kind == RP_CTF_KIND_MEMSET ? "gpu_memset"
                                               : c->kind == RP_CTF_KIND_MEMCPY ? "gpu_memcpy"
                                                                               : CATEGORY,
                                   .device = (int32_t)c->device,
                                   .track = c->queue,
                                   .link = c->link};

    args.list.n = 0;
    for (int i = 0; i < 4; i++)
        rp_capture_add_number(&args.list, keys[i], (int64_t)times[i]);
    if (c->bytes)
        rp_capture_add_number(&args.list, "bytes", (int64_t)c->bytes);

    /* Adds the sizes and arguments: up to eight bytes as a number, larger ones by their size. */
    if (c->dims)
        rp_capture_add_text(&args.list, "global",
                            sizes_text(args.global, sizeof args.global, c->global, c->dims));
    if (c->has_local)
        rp_capture_add_text(&args.list, "local",
                            sizes_text(args.local, sizeof args.local, c->local, c->dims));
    for (uint32_t i = 0; i < c->kernel.nargs; i++) {
        if (!c->kernel.args[i].is_set)
            continue;
        snprintf(args.keys[i], sizeof args.keys[i], "arg%u", i);
        if (c->kernel.args[i].size <= 8)
            snprintf(args.texts[i], sizeof args.texts[i], "0x%llx (%u bytes)",
                     (unsigned long long)c->kernel.args[i].value, c->kernel.args[i].size);
        else
            snprintf(args.texts[i], sizeof args.texts[i], "%u bytes", c->kernel.args[i].size);
        rp_capture_add_text(&args.list, args.keys[i], args.texts[i]);
    }
    span.args = args.list.at;
    span.nargs = args.list.n;
    rp_opencl.cap->span(&span);
}

static void on_complete(void *event, int32_t status, void *user)
{
    struct rp_opencl_command *c = user;
    uint64_t times[4];

    if (status == RP_CL_COMPLETE && read_times(event, times))
        put_command(c, times);
    else
        rp_opencl.cap->lost(1);
    rp_opencl.ReleaseEvent(event);
    free(c);
    atomic_fetch_sub(&running, 1);
}

void rp_opencl_end(struct rp_opencl_command *c, int32_t code, void *event, bool own)
{
    if (!c)
        return;
    rp_opencl.cap->leave(0, code);
    if (code || !event) {
        free(c);
        return;
    }
    if (!own)
        rp_opencl.RetainEvent(event);
    atomic_fetch_add(&running, 1);
    if (rp_opencl.SetEventCallback(event, RP_CL_COMPLETE, on_complete, c)) {
        atomic_fetch_sub(&running, 1);
        rp_opencl.cap->lost(1);
        rp_opencl.ReleaseEvent(event);
        free(c);
    }
}

void rp_opencl_wait_for_all(void)
{
    for (int i = 0; i < 200 && atomic_load(&running) > 0; i++)
        usleep(1000);
    int32_t left = atomic_exchange(&running, 0);
    if (left > 0)
        rp_opencl.cap->lost((uint64_t)left); /* their completion was not reported */
}
