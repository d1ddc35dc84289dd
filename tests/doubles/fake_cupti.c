/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A double of libcupti.so: the calls that the cuda library makes, with records that a test writes.
 * It behaves like CUPTI: it requests a buffer when a record does not fit, returns it when it is
 * full or flushed, has a single subscriber, and counts dropped records if it gets no buffer. Once
 * it was detached, it must not be called before somebody subscribes again.
 * FAKE_CUPTI_REFUSE=1: another profiler is already subscribed. FAKE_CUPTI_VERSION=130000: its
 * version.
 */
#include "fake_cupti.h"

#include "abi/cupti.h"
#include "abi/cupti_counters.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    rp_cupti_callback *callback;
    rp_cupti_request *request;
    rp_cupti_complete *complete;
    uint64_t (*timestamp)(void);
    uint8_t *buffer;
    size_t size, at, dropped;
    atomic_size_t given, read; /* buffers */
    uint64_t enabled;
    uint8_t calls[2][1024];  /* driver, runtime: whether calls of that number are reported */
    bool callbacks[4][1024]; /* by domain and number */
    int timestamps;
    int left; /* how often it was detached */
    bool detached;
    uint32_t entered; /* the call of the runtime that has begun */
    const void *const *params;
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

int cuptiGetVersion(uint32_t *version)
{
    const char *other = getenv("FAKE_CUPTI_VERSION");

    *version = other ? (uint32_t)atoi(other) : 130001;
    return 0;
}

int cuptiGetCallbackName(int domain, uint32_t id, const char **name)
{
    static const char *const runtime[] = {[17] = "cudaGetDevice_v3020",
                                          [31] = "cudaMemcpy_v3020",
                                          [131] = "cudaStreamSynchronize_v3020",
                                          [135] = "cudaEventRecord_v3020",
                                          [147] = "cudaStreamWaitEvent_v3020",
                                          [211] = "cudaLaunchKernel_v7000",
                                          [291] = "cudaGraphMemcpyNodeGetParams_v10000",
                                          [311] = "cudaGraphLaunch_v10000",
                                          [315] = "cudaStreamBeginCapture_v10000",
                                          [317] = "cudaStreamIsCapturing_v10000",
                                          [319] = "cudaStreamEndCapture_v10000"};
    static const char *const driver[] = {[4] = "cuDeviceGetCount",
                                         [119] = "cuEventRecord",
                                         [295] = "cuStreamWaitEvent",
                                         [307] = "cuLaunchKernel_ptsz",
                                         [652] = "cuLaunchKernelEx"};
    bool of_runtime = domain == RP_CUPTI_DOMAIN_RUNTIME;
    size_t n = of_runtime ? sizeof runtime / sizeof *runtime : sizeof driver / sizeof *driver;

    *name = id < n ? (of_runtime ? runtime : driver)[id] : NULL;
    return *name ? 0 : 1;
}

int cuptiSubscribe(void **subscriber, rp_cupti_callback *callback, void *user)
{
    const char *refuse = getenv("FAKE_CUPTI_REFUSE");

    (void)user;
    if (refuse || fake.callback)
        return RP_CUPTI_MULTIPLE_SUBSCRIBERS;
    fake.callback = callback;
    fake.detached = false;
    *subscriber = &fake;
    return 0;
}

/* Forgets everything. */
int cuptiFinalize(void)
{
    fake.callback = NULL;
    fake.enabled = 0;
    memset(fake.calls, 0, sizeof fake.calls);
    memset(fake.callbacks, 0, sizeof fake.callbacks);
    fake.timestamps = 0;
    fake.left++;
    fake.detached = true;
    return 0;
}

int fake_cupti_left(void)
{
    return fake.left;
}

int cuptiGetStreamIdEx(void *context, void *stream, uint8_t per_thread, uint32_t *id)
{
    (void)context, (void)per_thread;
    *id = stream ? (uint32_t)(uintptr_t)stream : 7;
    return 0;
}

int cuptiSubscribe_v2(void **subscriber, rp_cupti_callback *callback, void *user,
                      struct rp_cupti_subscriber_params *params)
{
    if (params && params->old_name)
        strncpy(params->old_name, "CUPTI for Somebody", params->old_name_size);
    return cuptiSubscribe(subscriber, callback, user);
}

int cuptiUnsubscribe(void *subscriber)
{
    (void)subscriber;
    fake.callback = NULL;
    return 0;
}

int cuptiEnableCallback(uint32_t on, void *subscriber, int domain, uint32_t id)
{
    (void)subscriber;
    if (domain < 4 && id < 1024)
        fake.callbacks[domain][id] = on;
    return on > 1;
}

int cuptiSetThreadIdType(int type)
{
    return type != RP_CUPTI_THREAD_ID_SYSTEM;
}

int cuptiActivityRegisterTimestampCallback(uint64_t (*timestamp)(void))
{
    fake.timestamp = timestamp;
    return ++fake.timestamps > 1; /* a second call corrupts the times of the real CUPTI */
}

int cuptiActivityRegisterCallbacks(rp_cupti_request *request, rp_cupti_complete *complete)
{
    fake.request = request;
    fake.complete = complete;
    return 0;
}

static bool is_call(int kind)
{
    return kind == RP_CUPTI_DRIVER || kind == RP_CUPTI_RUNTIME;
}

int cuptiActivityEnable(int kind)
{
    if (is_call(kind))
        memset(fake.calls[kind == RP_CUPTI_RUNTIME], 1, sizeof fake.calls[0]);
    fake.enabled |= UINT64_C(1) << kind;
    return 0;
}

int cuptiActivityDisable(int kind)
{
    if (is_call(kind))
        memset(fake.calls[kind == RP_CUPTI_RUNTIME], 0, sizeof fake.calls[0]);
    fake.enabled &= ~(UINT64_C(1) << kind);
    return 0;
}

int cuptiActivityEnableDriverApi(uint32_t id, uint8_t on)
{
    fake.calls[0][id & 1023] = on;
    return 0;
}

int cuptiActivityEnableRuntimeApi(uint32_t id, uint8_t on)
{
    fake.calls[1][id & 1023] = on;
    return 0;
}

static const uint16_t sizes[64] = {[RP_CUPTI_CONCURRENT_KERNEL] = 216,
                                   [RP_CUPTI_MEMCPY] = 96,
                                   [RP_CUPTI_MEMCPY2] = 96,
                                   [RP_CUPTI_MEMSET] = 88,
                                   [RP_CUPTI_RUNTIME] = 40,
                                   [RP_CUPTI_DRIVER] = 40,
                                   [RP_CUPTI_OVERHEAD] = 56,
                                   [RP_CUPTI_EXTERNAL_CORRELATION] = 24,
                                   [RP_CUPTI_GRAPH_TRACE] = 56,
                                   [RP_CUPTI_DEVICE] = 184};

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
    uint8_t *at = *record ? *record : buffer;
    uint32_t kind;

    if (*record) {
        memcpy(&kind, at, 4);
        at += sizes[kind & 63];
    }
    if (at >= buffer + valid)
        return RP_CUPTI_MAX_LIMIT_REACHED;
    *record = at;
    return 0;
}

/* Asked when a buffer has been read. */
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
    (void)context, (void)stream;
    *dropped = fake.dropped;
    fake.dropped = 0;
    fake.read++;
    return 0;
}

static void give_back(void)
{
    if (!fake.buffer)
        return;
    fake.given++;
    fake.complete(NULL, 0, fake.buffer, fake.size, fake.at);
    fake.buffer = NULL;
}

int cuptiActivityFlushAll(uint32_t flags)
{
    (void)flags;
    if (fake.detached)
        fprintf(stderr, "fake_cupti: flushed while it is detached\n");
    pthread_mutex_lock(&fake.lock);
    give_back();
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

/* -------------------------------------------------------------------------- for the test */

uint64_t fake_cupti_now(void)
{
    return fake.timestamp ? fake.timestamp() : 0;
}

void fake_cupti_call(int domain, uint32_t id, const void *data)
{
    if (fake.callback && fake.callbacks[domain & 3][id & 1023])
        fake.callback(NULL, domain, id, data);
}

void fake_cupti_params(const void *const *params)
{
    fake.params = params;
}

void fake_cupti_drop(size_t n)
{
    fake.dropped += n;
}

static bool has_buffer(void)
{
    bool has;

    pthread_mutex_lock(&fake.lock);
    has = fake.buffer;
    pthread_mutex_unlock(&fake.lock);
    return has;
}

/* As a program that runs for longer than the recorder needs, on a machine of any speed. */
void fake_cupti_await(int all)
{
    while ((all && has_buffer()) || fake.read < fake.given)
        usleep(100);
}

/* A subscriber that wants callbacks of the call gets both, unless it got the first already. */
static void call_back(const void *record)
{
    struct rp_cupti_api_record r;
    struct rp_cupti_call call = {.site = RP_CUPTI_SITE_ENTER};
    int domain, code;

    memcpy(&r, record, sizeof r);
    domain = r.kind == RP_CUPTI_RUNTIME ? RP_CUPTI_DOMAIN_RUNTIME : RP_CUPTI_DOMAIN_DRIVER;
    code = (int)r.result;
    call.correlation = r.correlation;
    call.result = &code;
    call.context = &fake;
    call.context_id = 1;
    call.params = fake.params;
    if (fake.entered != r.correlation || domain != RP_CUPTI_DOMAIN_RUNTIME)
        fake_cupti_call(domain, r.id, &call);
    call.site = RP_CUPTI_SITE_EXIT;
    fake_cupti_call(domain, r.id, &call);
}

void fake_cupti_enter(uint32_t id, uint32_t correlation)
{
    struct rp_cupti_call call = {.site = RP_CUPTI_SITE_ENTER, .correlation = correlation};

    fake.entered = correlation;
    fake_cupti_call(RP_CUPTI_DOMAIN_RUNTIME, id, &call);
}

static bool is_wanted(const void *record)
{
    struct rp_cupti_api_record call;

    memcpy(&call, record, sizeof call);
    if (is_call((int)call.kind))
        return fake.calls[call.kind == RP_CUPTI_RUNTIME][call.id & 1023];
    return fake.enabled >> (call.kind & 63) & 1;
}

void fake_cupti_put(const void *record)
{
    uint32_t kind;
    size_t size, records;

    memcpy(&kind, record, 4);
    size = sizes[kind & 63];
    if (is_call((int)kind))
        call_back(record);
    if (!size || !fake.request || !is_wanted(record))
        return;
    pthread_mutex_lock(&fake.lock);
    if (fake.buffer && fake.at + size > fake.size)
        give_back();
    if (!fake.buffer) {
        fake.request(&fake.buffer, &fake.size, &records);
        fake.at = 0;
    }
    if (fake.buffer) {
        memcpy(fake.buffer + fake.at, record, size);
        fake.at += size;
    } else {
        fake.dropped++;
    }
    pthread_mutex_unlock(&fake.lock);
}
