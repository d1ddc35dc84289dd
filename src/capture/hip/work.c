/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dispatches and copies. Each gets a completion signal of ours in place of the program's; when it
 * completes, the runtime's thread calls on_done, which reads the times, writes the span and
 * completes the program's signal, with the same times, as the device would have done.
 *
 * The runtime's thread looks at all signals that have a handler whenever one of them changes, so
 * thousands of handlers would be slow. Most dispatches have no signal of the program, and nothing
 * waits until we see their end. Of these, only the oldest one of each queue has a handler, which
 * also handles the next ones that have ended.
 *
 * Signals are kept and used again. If there is none, or the runtime refuses the handler, the work
 * runs as the program submitted it and is counted as lost.
 */
#include "capture/hip/hip.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORK_MAX      65536 /* most dispatches and copies at one time */
#define BATCH         64    /* packets that are passed to the queue at once */
#define QUEUE_STREAMS 1000  /* streams of work outside HIP calls: this and the queue's number */

struct rp_hip_work {
    struct rp_hip_work *next;
    uint64_t signal, original; /* original is 0 if the program has none */
    enum rp_ctf_kind kind;
    uint64_t agent, stream, link, bytes;
    uint32_t device, queue, group_bytes, private_bytes;
    uint32_t grid[3], block[3];
    const char *name; /* of a kernel */
    bool to_device, from_device, refused;
};

struct queue {
    uint64_t agent;
    uint32_t device, number;
    pthread_mutex_t lock;
    struct rp_hip_work *first, *last; /* dispatches without a signal of the program, oldest first */
    bool armed;                       /* the first one has a handler */
};

static struct rp_hip_work *unused;
static uint32_t nwork;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int32_t running;
static _Atomic uint32_t nqueues;

/* -------------------------------------------------------------------------- signals */

static struct rp_hip_work *work_new(void)
{
    pthread_mutex_lock(&lock);
    struct rp_hip_work *w = unused;
    if (w)
        unused = w->next;
    bool may = !w && nwork < WORK_MAX;
    nwork += may;
    pthread_mutex_unlock(&lock);
    if (w) {
        rp_hip.signal_store_relaxed(w->signal, 1);
        return w;
    }
    w = may ? calloc(1, sizeof *w) : NULL;
    if (w && rp_hip.signal_create(1, 0, NULL, &w->signal)) {
        free(w);
        w = NULL;
    }
    if (may && !w) {
        pthread_mutex_lock(&lock);
        nwork--;
        pthread_mutex_unlock(&lock);
    }
    return w;
}

static void work_free(struct rp_hip_work *w)
{
    pthread_mutex_lock(&lock);
    w->next = unused;
    unused = w;
    pthread_mutex_unlock(&lock);
}

/* -------------------------------------------------------------------------- spans */

static const char *sizes_text(char *to, size_t size, const uint32_t *at)
{
    snprintf(to, size, "[%u, %u, %u]", at[0], at[1], at[2]);
    return to;
}

static const char *copy_name(const struct rp_hip_work *w)
{
    static const char *const names[] = {
        "Memcpy HtoH (Host -> Host)", "Memcpy DtoH (Device -> Host)",
        "Memcpy HtoD (Host -> Device)", "Memcpy DtoD (Device -> Device)"};

    return names[2 * w->to_device + w->from_device];
}

static void put_work(const struct rp_hip_work *w, const struct rp_hsa_times *times)
{
    bool kernel = w->kind == RP_CTF_KIND_KERNEL;
    struct rp_capture_args args;
    char grid[48], block[48];
    struct rp_capture_span span = {.kind = w->kind,
                                   .timebase = RP_CTF_TIME_MONOTONIC,
                                   .begin = rp_hip_clock_ns(times->start),
                                   .end = rp_hip_clock_ns(times->end),
                                   .name = kernel ? w->name : copy_name(w),
                                   .category = kernel ? "kernel" : "gpu_memcpy",
                                   .device = (int32_t)w->device,
                                   .track = w->stream,
                                   .link = w->link};

    args.n = 0;
    if (kernel) {
        rp_capture_add_text(&args, "grid", sizes_text(grid, sizeof grid, w->grid));
        rp_capture_add_text(&args, "block", sizes_text(block, sizeof block, w->block));
        rp_capture_add_number(&args, "shared memory", w->group_bytes);
        rp_capture_add_number(&args, "private memory", w->private_bytes);
        rp_capture_add_number(&args, "queue", w->queue);
    } else {
        rp_capture_add_number(&args, "bytes", (int64_t)w->bytes);
    }
    span.args = args.at;
    span.nargs = args.n;
    rp_hip.cap->span(&span);
}

/* -------------------------------------------------------------------------- completion */

static void work_end(struct rp_hip_work *w, int64_t value)
{
    struct rp_hsa_times times = {0, 0};
    int code = w->kind == RP_CTF_KIND_KERNEL
                   ? rp_hip.amd_profiling_get_dispatch_time(w->agent, w->signal, &times)
                   : rp_hip.amd_profiling_get_async_copy_time(w->signal, &times);

    if (!code && value >= 0 && times.start && times.start <= times.end && !w->refused)
        put_work(w, &times);
    else if (!w->refused)
        rp_hip.cap->lost(1);

    /* Does to the program's signal what the device would have done. If the runtime asks later for
       the times of a copy, it wants them in its own clock (see hsa.c), but those of a dispatch in
       the device's. */
    const struct rp_hsa_signal *ours = (const void *)(uintptr_t)w->signal;
    struct rp_hsa_signal *theirs = (void *)(uintptr_t)w->original;
    if (w->original) {
        if (theirs->kind == RP_HSA_SIGNAL_USER && ours->kind == RP_HSA_SIGNAL_USER) {
            theirs->start = w->kind == RP_CTF_KIND_KERNEL ? ours->start : times.start;
            theirs->end = w->kind == RP_CTF_KIND_KERNEL ? ours->end : times.end;
        }
        if (value < 0) /* an error */
            rp_hip.signal_store_screlease(w->original, value);
        else
            rp_hip.signal_subtract_screlease(w->original, 1);
    }
    work_free(w);
    atomic_fetch_sub(&running, 1);
}

static bool on_done(int64_t value, void *data)
{
    work_end(data, value);
    return false; /* so that the handler is called once */
}

static bool handler_set(const struct rp_hip_work *w, bool (*handler)(int64_t, void *), void *data)
{
    return !rp_hip.amd_signal_async_handler(w->signal, RP_HSA_CONDITION_LT, 1, handler, data);
}

/* Work that cannot be followed is counted as lost. */
static bool work_follow(struct rp_hip_work *w)
{
    atomic_fetch_add(&running, 1);
    if (handler_set(w, on_done, w))
        return true;
    atomic_fetch_sub(&running, 1);
    work_free(w);
    rp_hip.cap->lost(1);
    return false;
}

/* Handles the end of the oldest dispatch of a queue. */
static bool on_first_done(int64_t value, void *data)
{
    struct queue *q = data;
    struct rp_hip_work *next;

    (void)value;
    pthread_mutex_lock(&q->lock);
    struct rp_hip_work *ended = q->first, **end = &ended;
    while (*end && rp_hip.signal_load_scacquire((*end)->signal) < 1)
        end = &(*end)->next;
    q->first = *end;
    *end = NULL;
    /* if the handler is refused, the next dispatch tries again */
    q->armed = q->first && handler_set(q->first, on_first_done, q);
    pthread_mutex_unlock(&q->lock);
    for (struct rp_hip_work *w = ended; w; w = next) {
        next = w->next;
        work_end(w, rp_hip.signal_load_scacquire(w->signal));
    }
    return false;
}

/* -------------------------------------------------------------------------- dispatches */

void *rp_hip_queue_new(uint64_t agent, uint32_t device)
{
    struct queue *q = calloc(1, sizeof *q);

    if (!q)
        return NULL;
    q->agent = agent;
    q->device = device;
    q->number = atomic_fetch_add(&nqueues, 1);
    pthread_mutex_init(&q->lock, NULL);
    return q;
}

static void follow_dispatch(struct rp_hsa_packet *p, struct queue *q, uint64_t link,
                            uint64_t stream)
{
    struct rp_hip_work *w = work_new();

    if (!w) {
        rp_hip.cap->lost(1);
        return;
    }
    w->original = p->signal;
    w->kind = RP_CTF_KIND_KERNEL;
    w->refused = false;
    w->agent = q->agent;
    w->device = q->device;
    w->queue = q->number;
    w->link = link;
    w->stream = stream;
    w->group_bytes = p->group_bytes;
    w->private_bytes = p->private_bytes;
    w->name = rp_hip_name_of(p->kernel_object);
    for (int i = 0; i < 3; i++) {
        w->block[i] = p->workgroup[i];
        w->grid[i] =
            p->workgroup[i]
                ? (uint32_t)(((uint64_t)p->grid[i] + p->workgroup[i] - 1) / p->workgroup[i])
                : 0;
    }
    if (!w->original) {
        p->signal = w->signal;

        /* Queues work that has no signal of the program. */
        atomic_fetch_add(&running, 1);
        w->next = NULL;
        pthread_mutex_lock(&q->lock);
        if (q->first)
            q->last->next = w;
        else
            q->first = w;
        q->last = w;
        if (!q->armed)
            q->armed = handler_set(q->first, on_first_done, q);
        pthread_mutex_unlock(&q->lock);
    } else if (work_follow(w)) {
        p->signal = w->signal;
    }
}

static bool has_dispatch(const struct rp_hsa_packet *p, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if ((p[i].header & 0xff) == RP_HSA_PACKET_KERNEL)
            return true;
    }
    return false;
}

/* The runtime calls this on the thread that rings the doorbell of a queue. If that is not inside a
   HIP call, a call of our own represents the launch. */
void rp_hip_intercept(const void *packets, uint64_t count, uint64_t index, void *data,
                      rp_hsa_writer *write)
{
    struct rp_hip_call *call = rp_hip_current();
    const struct rp_hsa_packet *from = packets;
    struct queue *q = data;
    struct rp_hsa_packet batch[BATCH];
    uint64_t link = call->link, stream = call->stream;

    (void)index;
    if (!rp_hip.cap->ready() || !has_dispatch(from, count)) {
        write(packets, count);
        return;
    }
    call->submitted = true;
    bool own = !link && !rp_hip.no_calls;
    if (!link) {
        link = own ? rp_hip_link() : 0;
        stream = QUEUE_STREAMS + q->number;
    }
    uint64_t began = rp_hip.cap->now();
    while (count > 0) {
        uint64_t n = count < BATCH ? count : BATCH;

        memcpy(batch, from, n * sizeof *batch);
        for (uint64_t i = 0; i < n; i++) {
            if ((batch[i].header & 0xff) == RP_HSA_PACKET_KERNEL)
                follow_dispatch(&batch[i], q, link, stream);
        }
        write(batch, n);
        from += n;
        count -= n;
    }
    if (own)
        rp_hip_call_put("AQL dispatch", "hsa", began, link);
}

/* -------------------------------------------------------------------------- copies */

/* Copies are followed also while nothing is recorded, so that the runtime gets the times of all
   copies in the same way. */
struct rp_hip_work *rp_hip_copy_begin(const struct rp_hip_copy *copy, uint64_t *signal)
{
    struct rp_hip_call *call = rp_hip_current();
    struct rp_hip_work *w = work_new();
    uint32_t device = 0;

    if (!w) {
        rp_hip.cap->lost(1);
        return NULL;
    }
    w->original = *signal;
    w->kind = RP_CTF_KIND_MEMCPY;
    w->bytes = copy->bytes;
    w->from_device = rp_hip_device_of(copy->from_agent, &device);
    w->to_device = rp_hip_device_of(copy->to_agent, &device);
    w->device = device;
    w->refused = false;
    w->link = call->link;
    w->stream = call->link ? call->stream : RP_HIP_COPY_STREAM;
    call->submitted = true;
    if (!work_follow(w))
        return NULL;
    *signal = w->signal;
    return w;
}

/* A copy that the runtime refused never completes: its signal is completed here, so that its
   handler runs. */
void rp_hip_copy_end(struct rp_hip_work *w, int status)
{
    if (!w || !status)
        return;
    w->original = 0;
    w->refused = true;
    rp_hip.signal_store_screlease(w->signal, 0);
}

/* Signals of an earlier run of the runtime ended with it. */
void rp_hip_work_reset(void)
{
    pthread_mutex_lock(&lock);
    unused = NULL;
    nwork = 0;
    pthread_mutex_unlock(&lock);
    atomic_store(&running, 0);
}

void rp_hip_wait_for_all(void)
{
    for (int i = 0; i < 200 && atomic_load(&running) > 0; i++)
        usleep(1000);
    int32_t left = atomic_exchange(&running, 0);
    if (left > 0)
        rp_hip.cap->lost((uint64_t)left); /* their completion was not reported */
}
