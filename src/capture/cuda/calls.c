/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which calls are recorded, and how. By default only calls are recorded that start work,
 * wait for it, allocate, load code or make a context. They are chosen by their names, which CUPTI
 * has for each number, so that a launch function of a later CUDA is recorded too.
 *
 * They are recorded by callbacks, on the thread that calls. CUPTI's own records of calls
 * (activities) can be chosen by number as well, but then it follows all calls of the runtime and
 * throws most of them away: it read the clock 21 times a launch of PyTorch, which makes ten calls
 * for each. Callbacks come for the chosen calls only, and have the correlation that device work
 * has.
 *
 * Libraries that do not use the runtime (Triton, XLA) start their work through the driver. Inside a
 * call of the runtime the driver's is the same call again, with the same correlation, and is
 * dropped.
 *
 * Calls that wait for the device are noted with what they wait for (waits.c), even where calls are
 * not recorded.
 *
 * A CUDA graph that is made while records are off never gets any. So if detail is off, calls that
 * make a graph are watched, and switch it on.
 */
#include "abi/cupti_counters.h"
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

/* Calls that give work to the device, or wait for it. */
static bool is_work(int domain, const char *name)
{
    static const char *const work[] = {"Launch", "Memcpy", "Memset", "Synchronize", NULL};

    return contains_any(name, work) && rp_cuda_call_matters(domain, name);
}

/* Calls `set` for each chosen call. Returns the number of calls for which that succeeded. */
static uint32_t for_each_call(int domain, bool (*is_chosen)(int domain, const char *name),
                              int (*set)(int domain, uint32_t id, uint8_t on), bool on)
{
    uint32_t n = 0;

    for (uint32_t id = 1; id < IDS; id++) {
        const char *name = NULL;

        if (!rp_cuda.cupti.callback_name(domain, id, &name) && name && is_chosen(domain, name) &&
            !set(domain, id, on))
            n++;
    }
    return n;
}

static void for_each(bool (*is_chosen)(int domain, const char *name),
                     int (*set)(int domain, uint32_t id, uint8_t on), bool on)
{
    for_each_call(RP_CUPTI_DOMAIN_RUNTIME, is_chosen, set, on);
    for_each_call(RP_CUPTI_DOMAIN_DRIVER, is_chosen, set, on);
}

/* State of the driver's calls, and of the runtime's. */
static struct {
    uint8_t does;    /* enum rp_cuda_call */
    bool per_thread; /* its default stream is the thread's own */
    bool recorded;
} calls[2][IDS];
static bool with_waits;

static const struct {
    const char *word;
    uint8_t does;
} words[] = {
    {"BeginCapture", RP_CUDA_BEGINS_CAPTURE},     {"EndCapture", RP_CUDA_ENDS_CAPTURE},
    {"GraphCreate", RP_CUDA_MAKES_GRAPH},         {"GraphInstantiate", RP_CUDA_MAKES_GRAPH},
    {"GraphLaunch", RP_CUDA_LAUNCHES_GRAPH},      {"EventRecord", RP_CUDA_RECORDS_EVENT},
    {"StreamWaitEvent", RP_CUDA_STREAM_WAITS},    {"EventSynchronize", RP_CUDA_AWAITS_EVENT},
    {"StreamSynchronize", RP_CUDA_AWAITS_STREAM}, {"DeviceSynchronize", RP_CUDA_AWAITS_DEVICE},
    {"ThreadSynchronize", RP_CUDA_AWAITS_DEVICE}, {"CtxSynchronize", RP_CUDA_AWAITS_DEVICE}};

static uint8_t what_it_does(const char *name)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(name, words[i].word))
            return words[i].does;
    return RP_CUDA_OTHER;
}

static bool is_graph_call(int domain, const char *name)
{
    uint8_t does = what_it_does(name);

    (void)domain;
    return does != RP_CUDA_OTHER && does < RP_CUDA_WAITS;
}

static bool is_wait(int domain, const char *name)
{
    (void)domain;
    return what_it_does(name) >= RP_CUDA_WAITS && !strstr(name, "Node"); /* of a graph */
}

static int watch(int domain, uint32_t id, uint8_t on)
{
    const char *name = NULL;

    rp_cuda.cupti.callback_name(domain, id, &name);
    calls[domain == RP_CUPTI_DOMAIN_RUNTIME][id].does = what_it_does(name);
    calls[domain == RP_CUPTI_DOMAIN_RUNTIME][id].per_thread = strstr(name, "_ptsz") != NULL;
    return rp_cuda.cupti.enable_callback(on, rp_cuda.subscriber, domain, id);
}

static int record_call(int domain, uint32_t id, uint8_t on)
{
    calls[domain == RP_CUPTI_DOMAIN_RUNTIME][id].recorded = on;
    return watch(domain, id, on);
}

static int switch_activity(int domain, uint32_t id, uint8_t on)
{
    const struct rp_cupti *c = &rp_cuda.cupti;
    int (*set)(uint32_t, uint8_t) =
        domain == RP_CUPTI_DOMAIN_RUNTIME ? c->enable_runtime : c->enable_driver;

    return set ? set(id, on) : -1;
}

void rp_cuda_calls_watch_work(bool on)
{
    for_each(is_work, watch, on);
}

static void switch_activities(bool on)
{
    int (*set)(int) = on ? rp_cuda.cupti.enable : rp_cuda.cupti.disable;

    if (rp_cuda.all_calls) {
        set(RP_CUPTI_RUNTIME);
        set(RP_CUPTI_DRIVER);
        return;
    }
    if (!for_each_call(RP_CUPTI_DOMAIN_RUNTIME, rp_cuda_call_matters, switch_activity, on))
        set(RP_CUPTI_RUNTIME);
    for_each_call(RP_CUPTI_DOMAIN_DRIVER, rp_cuda_call_matters, switch_activity, on);
}

static void switch_chosen(bool on)
{
    const char *which = rp_cuda.cap->option("cuda.calls");
    bool none = which && !strcmp(which, "none");

    rp_cuda.all_calls = which && !strcmp(which, "all");
    rp_cuda.by_callback = !none && !rp_cuda.all_calls && (!which || strcmp(which, "records") != 0);
    if (rp_cuda.by_callback) {
        for_each(which && !strcmp(which, "launches") ? is_work : rp_cuda_call_matters, record_call,
                 on);
        return;
    }
    if (!none)
        switch_activities(on);
    /* To count launches of the runtime, and launches of the driver outside of these. */
    if (rp_cuda.counting)
        rp_cuda_calls_watch_work(on);
}

void rp_cuda_calls_switch(bool on)
{
    switch_chosen(on);
    with_waits = !rp_cuda_option_is("cuda.sync", "off");
    if (with_waits) {
        rp_cuda_waits_forget();
        for_each(is_wait, watch, on);
    }
    for_each(is_graph_call, watch, true);
}

/* -------------------------------------------------------------------------- a call */

/* The calls that this thread is in: of the driver, and of the runtime. */
static __thread struct {
    uint64_t begin; /* ticks; 0: none */
    uint32_t correlation;
} inside[2] __attribute__((tls_model("initial-exec")));

/* Handles a call that makes a graph, or a part of it. */
static void graph_call(bool runtime, uint8_t does, const struct rp_cupti_call *call)
{
    static __thread uint32_t outer __attribute__((tls_model("initial-exec"))); /* of the runtime */
    bool enters = call->site == RP_CUPTI_SITE_ENTER;
    bool failed = !enters && call->result && *(const int *)call->result;

    if (!runtime && outer == call->correlation)
        return;
    if (runtime)
        outer = enters ? call->correlation : 0;
    if (enters)
        atomic_store(&rp_cuda.graphs, 1);
    if (enters && (does == RP_CUDA_MAKES_GRAPH || does == RP_CUDA_BEGINS_CAPTURE))
        rp_cuda.cap->need_detail();
    if (enters && does == RP_CUDA_BEGINS_CAPTURE)
        atomic_fetch_add(&rp_cuda.captures, 1);
    if (!enters && (does == RP_CUDA_BEGINS_CAPTURE ? failed : does == RP_CUDA_ENDS_CAPTURE)) {
        /* Ends a capture that began earlier, or an attempt that failed. */
        int32_t n = atomic_load(&rp_cuda.captures);
        while (n > 0 && !atomic_compare_exchange_weak(&rp_cuda.captures, &n, n - 1))
            ;
    }
}

void rp_cuda_calls_callback(int domain, uint32_t id, const void *data)
{
    const struct rp_cupti_call *call = data;
    bool runtime = domain == RP_CUPTI_DOMAIN_RUNTIME;
    uint64_t begin = inside[runtime].begin;

    if (id >= IDS)
        return;
    uint8_t does = calls[runtime][id].does;
    if (does != RP_CUDA_OTHER && does < RP_CUDA_WAITS)
        graph_call(runtime, does, call);
    if (rp_cuda_leave(call) || !rp_cuda.cap->detail()) {
        inside[runtime].begin = 0;
        return;
    }
    if (!runtime && inside[1].begin && inside[1].correlation == call->correlation)
        return;
    if (call->site == RP_CUPTI_SITE_ENTER) {
        uint64_t *count = rp_cuda.cap->launches();
        if (count)
            ++*count;
        inside[runtime].correlation = call->correlation;
        inside[runtime].begin = rp_cuda.cap->active() ? rp_cuda.cap->now() : 0;
        return;
    }
    inside[runtime].begin = 0;
    if (!begin || inside[runtime].correlation != call->correlation)
        return;
    if (does >= RP_CUDA_WAITS && with_waits)
        rp_cuda_wait(does, calls[runtime][id].per_thread, call, begin);
    if (calls[runtime][id].recorded && rp_cuda.by_callback) {
        /* Writes the call that has ended. */
        int code = call->result ? *(const int *)call->result : 0;
        struct rp_capture_arg arg = {.key = "result", .type = RP_CTF_ARG_INT, .number = code};
        rp_cuda.cap->span(&(struct rp_capture_span){
            .kind = runtime ? RP_CTF_KIND_RUNTIME : RP_CTF_KIND_DRIVER,
            .timebase = RP_CTF_TIME_TICKS,
            .begin = begin,
            .end = rp_cuda.cap->now(),
            .name =
                rp_cuda_call_name(runtime ? RP_CUPTI_DOMAIN_RUNTIME : RP_CUPTI_DOMAIN_DRIVER, id),
            .category = runtime ? "cuda_runtime" : "cuda_driver",
            .device = RP_CTF_SPAN_DEVICE,
            .link = rp_cuda_link(call->correlation),
            .args = &arg,
            .nargs = code != 0});
    }
}
