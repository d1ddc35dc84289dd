/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what calls wait for: a stream for an event of another one, or the host for an event, a
 * stream or the device. CUPTI has records of both (activities), but each of the two kinds makes it
 * follow all calls of the program: with one, a step of many small kernels was 15 % longer. The
 * parameters of the few calls that wait give the same information.
 *
 * A wait is for the last record of its event. Calls that are captured into a graph are ignored,
 * because they execute nothing.
 */
#include "abi/cupti_counters.h"
#include "capture/cuda/cuda.h"

#include <pthread.h>
#include <string.h>

#define EVENTS    4096 /* a power of two */
#define NO_STREAM UINT32_MAX

static struct {
    const void *event;
    uint64_t link; /* link of the call that recorded it */
    uint32_t stream;
} events[EVENTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t place_of(const void *event)
{
    return (uint64_t)(uintptr_t)event * UINT64_C(0x9E3779B97F4A7C15) >> 52 & (EVENTS - 1);
}

void rp_cuda_waits_forget(void)
{
    pthread_mutex_lock(&lock);
    memset(events, 0, sizeof events);
    pthread_mutex_unlock(&lock);
}

static uint32_t add(struct rp_capture_arg *args, uint32_t n, const char *key, uint64_t value)
{
    args[n] = (struct rp_capture_arg){.key = key, .type = RP_CTF_ARG_INT, .number = (int64_t)value};
    return n + 1;
}

/* Finds the last record of an event: the call, and the stream. */
static bool find(const void *event, uint64_t *link, uint32_t *stream)
{
    size_t k = place_of(event);

    pthread_mutex_lock(&lock);
    bool found = events[k].event == event;
    *link = events[k].link;
    *stream = events[k].stream;
    pthread_mutex_unlock(&lock);
    return found;
}

static void put(const char *name, const struct rp_cupti_call *call, uint64_t begin, uint32_t stream,
                const void *event)
{
    struct rp_capture_arg args[3];
    uint32_t device = 0, on_stream, n = add(args, 0, "context", call->context_id);
    uint64_t link;

    if (rp_cuda.cupti.device_id)
        rp_cuda.cupti.device_id(call->context, &device);
    if (event && find(event, &link, &on_stream)) {
        n = add(args, n, "wait_on_stream", on_stream);
        n = add(args, n, "wait_on_cuda_event_record_corr_id", link);
        stream = stream == NO_STREAM ? on_stream : stream;
    }
    rp_cuda.cap->span(&(struct rp_capture_span){.kind = RP_CTF_KIND_SYNC,
                                                .timebase = RP_CTF_TIME_TICKS,
                                                .begin = begin,
                                                .end = rp_cuda.cap->now(),
                                                .name = name,
                                                .category = "cuda_sync",
                                                .device = (int32_t)device,
                                                .track = stream,
                                                .link = rp_cuda_link(call->correlation),
                                                .args = args,
                                                .nargs = n});
}

void rp_cuda_wait(enum rp_cuda_call does, bool per_thread, const struct rp_cupti_call *call,
                  uint64_t begin)
{
    static const struct {
        const char *name;
        int8_t event, stream; /* places among the parameters, counted from 1; 0: none */
    } rows[] = {[RP_CUDA_RECORDS_EVENT] = {NULL, 1, 2},
                [RP_CUDA_STREAM_WAITS] = {"Stream Wait Event", 2, 1},
                [RP_CUDA_AWAITS_EVENT] = {"Event Sync", 1, 0},
                [RP_CUDA_AWAITS_STREAM] = {"Stream Sync", 0, 1},
                [RP_CUDA_AWAITS_DEVICE] = {"Context Sync", 0, 0}};
    void *const *params = call->params;
    void *event = rows[does].event ? params[rows[does].event - 1] : NULL;
    uint32_t stream = NO_STREAM;

    if (!call->context || (call->result && *(const int *)call->result) ||
        atomic_load(&rp_cuda.captures))
        return;
    if (rows[does].stream && rp_cuda.cupti.stream_id &&
        rp_cuda.cupti.stream_id(call->context, params[rows[does].stream - 1], per_thread, &stream))
        stream = NO_STREAM;
    if (rows[does].stream && rows[does].name && stream == NO_STREAM)
        return;
    if (rows[does].name)
        put(rows[does].name, call, begin, stream, event);
    else {
        /* Keeps the last record of an event. Without a stream, it is no longer known what a wait
           for the event waits for. */
        size_t k = place_of(event);
        pthread_mutex_lock(&lock);
        events[k].event = stream == NO_STREAM ? NULL : event;
        events[k].link = rp_cuda_link(call->correlation);
        events[k].stream = stream;
        pthread_mutex_unlock(&lock);
    }
}
