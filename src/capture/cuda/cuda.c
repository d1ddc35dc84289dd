/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cuda library. The driver loads it at cuInit (CUDA_INJECTION64_PATH) and calls
 * InitializeInjection, which may call CUPTI but not CUDA. It subscribes first: CUPTI has a single
 * subscriber, and a profiler that uses CUPTI without subscribing takes the buffers of the first
 * one. If another profiler is subscribed, the recording continues without device work.
 *
 * The library is also in LD_PRELOAD, for one reason: the wrappers of cuptiSubscribe below detect
 * another profiler in the process (torch.profiler), so that a message can explain why it fails.
 *
 * Options (`record --set`):
 *
 *   cuda.graph=graph|node      a CUDA graph is one record (default), or one for each node
 *   cuda.calls=usual|launches|records|all|none  calls that matter for the time of a step (default),
 *                              fewer, the same by CUPTI's records, or all (calls.c)
 *   cuda.sync=on|off           waits and events (default on)
 *   cuda.detach=on|off         with --detail: CUPTI is left where nothing is recorded (default on)
 *   cuda.state=on|off          the state of the device, once a second (device_state.c; default on)
 *   cuda.counters=A,B          hardware counters of each kernel, in place of records (counters.c)
 */
#include "capture/cuda/cuda.h"
#include "capture/cuda/counters.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

#define DEADLOCKS                                                                                  \
    130000 /* from this version on there may be deadlocks when records of kernels are switched off \
            */

struct rp_cuda rp_cuda;

/* -------------------------------------------------------------------------- callbacks */

static uint64_t timestamp(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void on_callback(void *user, int domain, uint32_t id, const void *data)
{
    (void)user;
    if (!rp_cuda_counters_wanted() &&
        (domain == RP_CUPTI_DOMAIN_DRIVER || domain == RP_CUPTI_DOMAIN_RUNTIME))
        rp_cuda_calls_callback(domain, id, data);
    else if (domain != RP_CUPTI_DOMAIN_STATE)
        rp_cuda_counters_callback(domain, id, data);
    else if (id == RP_CUPTI_STATE_FATAL_ERROR)
        rp_cuda.cap->warn("CUPTI reported a fatal error: kernels are no longer recorded");
}

/* -------------------------------------------------------------------------- what is recorded */

bool rp_cuda_option_is(const char *key, const char *value)
{
    const char *text = rp_cuda.cap->option(key);

    return text && !strcmp(text, value);
}

static void set_attribute(int attribute, size_t value, size_t size)
{
    if (rp_cuda.cupti.set_attribute)
        rp_cuda.cupti.set_attribute(attribute, &size, &value);
}

void rp_cuda_switch_records(bool on)
{
    static const uint8_t kinds[] = {RP_CUPTI_MEMCPY, RP_CUPTI_MEMCPY2, RP_CUPTI_MEMSET,
                                    RP_CUPTI_OVERHEAD, RP_CUPTI_EXTERNAL_CORRELATION};
    int (*set)(int) = on ? rp_cuda.cupti.enable : rp_cuda.cupti.disable;
    int code = set(RP_CUPTI_CONCURRENT_KERNEL);
    char text[160];

    if (code) {
        snprintf(text, sizeof text, "CUPTI cannot record kernels: %s", rp_cuda_error(code));
        rp_cuda.cap->warn(text);
    }
    for (size_t i = 0; i < sizeof kinds; i++)
        set(kinds[i]);
    /* One record for each graph is cheaper, but with CUPTI 13.0 it breaks programs: launches of
       XLA's command buffers fail. */
    if (rp_cuda_option_is("cuda.graph", "graph"))
        set(RP_CUPTI_GRAPH_TRACE);
    rp_cuda_calls_switch(on);
}

/* -------------------------------------------------------------------------- subscribing */

static bool subscribe(void)
{
    char owner[160], text[400];

    if (rp_cuda.cupti.thread_ids)
        rp_cuda.cupti.thread_ids(RP_CUPTI_THREAD_ID_SYSTEM);
    int code = rp_cuda.cupti.subscribe(&rp_cuda.subscriber, on_callback, NULL);
    if (!code)
        return true;
    if (code == RP_CUPTI_MULTIPLE_SUBSCRIBERS) {
        /* Finds the name of the subscribed profiler, if possible. */
        char old[128] = "";
        struct rp_cupti_subscriber_params params = {.size = RP_CUPTI_SUBSCRIBER_PARAMS_SIZE,
                                                    .name = "reprise",
                                                    .old_name = old,
                                                    .old_name_size = sizeof old};
        const char *nsys = getenv("NSYS_PROFILING_SESSION_ID");
        void *subscriber;
        if (rp_cuda.cupti.subscribe2 &&
            !rp_cuda.cupti.subscribe2(&subscriber, on_callback, NULL, &params))
            rp_cuda.cupti.unsubscribe(subscriber);
        old[sizeof old - 1] = '\0';
        snprintf(owner, sizeof owner, "%s",
                 old[0] ? old
                 : nsys ? "Nsight Systems"
                        : "another profiler");
        snprintf(text, sizeof text,
                 "%s already uses CUPTI: this recording has no kernels, copies and CUDA calls (run "
                 "one profiler at a time)",
                 owner);
        rp_cuda.cap->fact("cuda.refused", owner);
    } else {
        snprintf(text, sizeof text, "cannot use CUPTI: %s (%d); continuing without kernels",
                 rp_cuda_error(code), code);
        rp_cuda.cap->fact("cuda.refused", rp_cuda_error(code));
    }
    rp_cuda.cap->warn(text);
    return false;
}

static void prepare_records(void)
{
    const struct rp_cupti *c = &rp_cuda.cupti;

    c->enable_callback(1, rp_cuda.subscriber, RP_CUPTI_DOMAIN_STATE, RP_CUPTI_STATE_FATAL_ERROR);
    set_attribute(RP_CUPTI_ATTR_PER_THREAD_BUFFER, 1, 1);
    set_attribute(RP_CUPTI_ATTR_ZEROED_OUT_BUFFER, 1, 1);
    if (c->timestamp) /* called only once while attached, because a second call corrupts the times
                         of records */
        c->timestamp(timestamp);
    c->buffers(rp_cuda_request, rp_cuda_complete);
    c->enable(RP_CUPTI_DEVICE);
}

bool rp_cuda_attach(void)
{
    if (!subscribe())
        return false;
    prepare_records();
    return true;
}

static void put_counts(void)
{
    static const struct {
        const char *key;
        _Atomic uint64_t *count;
    } counts[] = {{"cuda.kernels", &rp_cuda.kernels},
                  {"cuda.records_without_time", &rp_cuda.untimed},
                  {"cuda.records_dropped", &rp_cuda.dropped},
                  {"cuda.buffers_unreadable", &rp_cuda.bad}};
    char text[32];

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        uint64_t n = atomic_exchange(counts[i].count, 0);

        if (!n)
            continue;
        snprintf(text, sizeof text, "%llu", (unsigned long long)n);
        rp_cuda.cap->fact(counts[i].key, text);
    }
}

/* Registered with atexit after the driver and CUPTI were loaded, so that it runs before their exit
   handlers. Must not call CUPTI in the child of a fork. */
static void cuda_end(void)
{
    if (!atomic_load(&rp_cuda.running) || rp_cuda.cap->process_id() != rp_cuda.process ||
        rp_cuda.cap->sealed()) /* then CUPTI would make system calls */
        return;
    if (rp_cuda_counters_wanted())
        rp_cuda_counters_end();
    else
        rp_cuda_buffers_end();
    put_counts();
}

/* The recording ends, the program goes on. */
static void cuda_leave(void)
{
    if (!atomic_load(&rp_cuda.running) || rp_cuda.cap->process_id() != rp_cuda.process)
        return;
    rp_cuda_buffers_leave();
    put_counts();
    rp_cuda_forget_device();
    atomic_store(&rp_cuda.device, 0);
}

static void cuda_begin(bool attached)
{
    const struct rp_cupti *c = &rp_cuda.cupti;
    static bool ends;
    char version[32];

    if (!subscribe())
        return;
    rp_cuda.process = rp_cuda.cap->process_id();
    atomic_store(&rp_cuda.running, 1);
    if (rp_cuda_counters_wanted()) {
        rp_cuda.cap->fact("cuda.counters", rp_cuda.cap->option("cuda.counters"));
        rp_cuda_counters_begin();
        atexit(cuda_end);
        return;
    }
    if (!rp_cuda_buffers_begin()) {
        rp_cuda.cap->warn(
            "cannot allocate buffers or a thread for CUPTI: continuing without kernels");
        atomic_store(&rp_cuda.running, 0);
        c->unsubscribe(rp_cuda.subscriber);
        return;
    }
    prepare_records();
    rp_cuda.counting = rp_cuda.cap->count_launches();
    rp_cuda_switch_records(true);
    rp_cuda.cap->on_detail(rp_cuda.cupti.version != DEADLOCKS ? rp_cuda_on_detail : NULL);
    rp_cuda.cap->on_boundary(rp_cuda_boundary);
    if (rp_cuda.cupti.version == DEADLOCKS && rp_cuda.cap->option("detail"))
        rp_cuda.cap->warn(
            "kernels are recorded in all steps: CUPTI 13.0 can stop a program when they are "
            "switched off (update 1 of CUDA 13.0 mends that)");
    snprintf(version, sizeof version, "%u", c->version);
    rp_cuda.cap->fact("cuda.cupti", version);
    if (attached)
        rp_cuda.cap->on_leave(cuda_leave);
    if (!ends)
        atexit(cuda_end);
    ends = true;
}

EXPORT int InitializeInjection(void);

static _Atomic uint32_t begun;

static void find_and_begin(bool attached)
{
    const char *why = rp_cuda.cupti.handle ? NULL : rp_cuda_find(&rp_cuda.cupti);

    if (why) {
        rp_cuda.cupti.handle = NULL;
        rp_cuda.cap->warn(why);
        rp_cuda.cap->fact("cuda.refused", why);
        return;
    }
    cuda_begin(attached);
    rp_cuda_watch_device();
}

int InitializeInjection(void)
{
    if (atomic_exchange(&begun, 1))
        return 1;
    rp_cuda.cap = rp_capture_get();
    if (rp_cuda.cap)
        find_and_begin(false);
    return 1;
}

EXPORT int reprise_attach_source_v1(void);

/* In a program that runs; again for each recording of it. Contexts, streams and graphs that it has
   made are known to CUPTI by their numbers only. */
int reprise_attach_source_v1(void)
{
    atomic_store(&begun, 1);
    rp_cuda.cap = rp_capture_get();
    if (!rp_cuda.cap || !dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD))
        return 0;
    if (rp_cuda.cap->option("cuda.counters"))
        return 1;
    rp_cuda_records_forget();
    rp_cuda_set_attached();
    atomic_fetch_add(&rp_cuda.times, 1);
    find_and_begin(true);
    return 0;
}

/* -------------------------------------------------------------------------- other profilers */

static pid_t preloaded_in;

/* A profiler started inside the recording (Nsight Systems) replaces CUDA_INJECTION64_PATH, so that
   the driver never calls InitializeInjection. Warns about it if the program used CUDA. */
static void warn_if_replaced(void)
{
    const char *path = getenv("CUDA_INJECTION64_PATH"), *slash = path ? strrchr(path, '/') : NULL;
    const char *owner = slash ? slash + 1 : path;
    const struct rp_capture *cap = atomic_load(&begun) ? NULL : rp_capture_get();
    char text[400];

    if (!cap || cap->sealed() || getpid() != preloaded_in ||
        (owner && !strcmp(owner, "reprise-cuda.so")) ||
        !dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD))
        return;
    if (getenv("NSYS_PROFILING_SESSION_ID"))
        owner = "Nsight Systems";
    if (!owner)
        return;
    snprintf(text, sizeof text,
             "%.200s uses CUPTI: this recording has no kernels, copies and CUDA calls (run one "
             "profiler at a time)",
             owner);
    cap->warn(text);
    cap->fact("cuda.refused", owner);
}

__attribute__((constructor)) static void on_load(void)
{
    preloaded_in = getpid();
    if (getenv("REPRISE_RECORD"))
        atexit(warn_if_replaced);
}

static void warn_of_other(int code)
{
    char text[16];

    if (!atomic_load(&rp_cuda.running) || rp_cuda.cap->process_id() != rp_cuda.process)
        return;
    if (!atomic_fetch_add(&rp_cuda.others, 1))
        rp_cuda.cap->warn(
            code
                ? "another profiler in the program (torch.profiler?) cannot subscribe to CUPTI: it "
                  "will show no kernels. This recording has them; 'record --with host,nvtx,nccl' "
                  "leaves CUPTI to the other profiler"
                : "another profiler in the program (torch.profiler?) also uses CUPTI");
    snprintf(text, sizeof text, "%u", atomic_load(&rp_cuda.others));
    rp_cuda.cap->fact("cuda.other_profilers", text);
}

EXPORT int cuptiSubscribe(void **subscriber, rp_cupti_callback *callback, void *user);
EXPORT int cuptiSubscribe_v2(void **subscriber, rp_cupti_callback *callback, void *user,
                             struct rp_cupti_subscriber_params *params);

int cuptiSubscribe(void **subscriber, rp_cupti_callback *callback, void *user)
{
    int (*next)(void **, rp_cupti_callback *, void *);

    *(void **)&next = rp_cuda_symbol("cuptiSubscribe");
    if (!next || next == cuptiSubscribe)
        return 999; /* CUPTI_ERROR_UNKNOWN: no CUPTI is loaded */
    int code = next(subscriber, callback, user);
    warn_of_other(code);
    return code;
}

int cuptiSubscribe_v2(void **subscriber, rp_cupti_callback *callback, void *user,
                      struct rp_cupti_subscriber_params *params)
{
    int (*next)(void **, rp_cupti_callback *, void *, struct rp_cupti_subscriber_params *);

    *(void **)&next = rp_cuda_symbol("cuptiSubscribe_v2");
    if (!next || next == cuptiSubscribe_v2)
        return 999;
    int code = next(subscriber, callback, user, params);
    warn_of_other(code);
    return code;
}
