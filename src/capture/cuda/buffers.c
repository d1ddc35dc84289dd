/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers for CUPTI. CUPTI requests one inside a launch of the program, so a request must be quick
 * and only looks for a free one. All are in one reserved range, each with a state (free, given to
 * CUPTI, full). A worker thread reads full buffers, and flushes CUPTI once a second, because a
 * flush delays launches: a killed process loses at most the records of that time.
 *
 * The memory comes from mmap; only touched pages are allocated. CUPTI is told that buffers are
 * zeroed, so that it does not clear them on the program's thread. The child of a fork has its own
 * copy, which is never read.
 */
#include "capture/cuda/cuda.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BLOCK         ((size_t)4 << 20)
#define BLOCKS        256
#define TICK_NS       1000000000
#define LEAVE_WAIT_MS 10000 /* for the device, whose work is waited for */

enum { FREE, GIVEN, FULL };

static struct {
    _Atomic uint32_t state;
    uint32_t stream;
    size_t valid;
    void *context;
} blocks[BLOCKS];

static uint8_t *base;
static sem_t full;
static _Atomic bool leaving, working; /* the worker is to leave; it runs */
static pthread_mutex_t reading =
    PTHREAD_MUTEX_INITIALIZER; /* between the worker and the shutdown */

/* -------------------------------------------------------------------------- for CUPTI */

void rp_cuda_request(uint8_t **buffer, size_t *size, size_t *records)
{
    atomic_store_explicit(&rp_cuda.used, 1, memory_order_relaxed);
    *records = 0; /* as many as fit into it */
    for (uint32_t k = 0; k < BLOCKS;
         k++) { /* in order, because the first ones have allocated pages */
        uint32_t none = FREE;

        if (atomic_load_explicit(&blocks[k].state, memory_order_relaxed) == FREE &&
            atomic_compare_exchange_strong(&blocks[k].state, &none, GIVEN)) {
            *buffer = base + k * BLOCK;
            *size = BLOCK;
            return;
        }
    }
    *buffer = NULL; /* then CUPTI drops records, and counts them */
    *size = 0;
}

void rp_cuda_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    size_t k = buffer ? (size_t)(buffer - base) / BLOCK : BLOCKS;

    if (k >= BLOCKS || size > BLOCK)
        return;
    blocks[k].context = context;
    blocks[k].stream = stream;
    blocks[k].valid = valid <= size ? valid : size;
    atomic_store(&blocks[k].state, FULL);
    sem_post(&full);
}

/* -------------------------------------------------------------------------- reading */

void rp_cuda_buffers_read(void)
{
    pthread_mutex_lock(&reading);
    for (size_t k = 0; k < BLOCKS; k++) {
        if (atomic_load(&blocks[k].state) != FULL)
            continue;
        if (blocks[k].valid) {
            rp_cuda_records(base + k * BLOCK, blocks[k].valid);
            memset(base + k * BLOCK, 0, blocks[k].valid);
        }
        size_t dropped = 0;
        if (!rp_cuda.cupti.dropped(blocks[k].context, blocks[k].stream, &dropped) && dropped) {
            atomic_fetch_add(&rp_cuda.dropped, dropped);
            rp_cuda.cap->lost(dropped);
        }
        atomic_store(&blocks[k].state, FREE);
    }
    pthread_mutex_unlock(&reading);
}

bool rp_cuda_buffers_idle(void)
{
    bool idle = !pthread_mutex_trylock(&reading);

    if (!idle)
        return false;
    for (size_t k = 0; idle && k < BLOCKS; k++)
        idle = atomic_load(&blocks[k].state) != FULL;
    pthread_mutex_unlock(&reading);
    return idle;
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *worker_run(void *unused)
{
    int64_t next = now_ns() + TICK_NS;

    (void)unused;
    pthread_setname_np(pthread_self(), "reprise-cuda");
    while (atomic_load(&rp_cuda.running)) {
        /* Waits until a buffer is full, or until that time. */
        int64_t left = next - now_ns();
        struct timespec t;
        if (left > 0) {
            clock_gettime(CLOCK_REALTIME, &t);
            t.tv_nsec += (long)(left % 1000000000);
            t.tv_sec += left / 1000000000 + t.tv_nsec / 1000000000;
            t.tv_nsec %= 1000000000;
            while (sem_timedwait(&full, &t) && errno == EINTR)
                ;
        }
        if (!atomic_load(&rp_cuda.running))
            break;
        if (now_ns() >= next) {
            if (atomic_load(&rp_cuda.used) && rp_cuda_is_attached())
                rp_cuda.cupti.flush(0);
            next = now_ns() + TICK_NS;
        }
        rp_cuda_buffers_read();
    }
    if (atomic_load(&leaving))
        rp_cuda_detach();
    atomic_store(&working, false);
    return NULL;
}

bool rp_cuda_buffers_begin(void)
{
    sigset_t all, old;
    pthread_attr_t attr;
    pthread_t thread;

    if (!base)
        base = mmap(NULL, BLOCKS * BLOCK, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED || atomic_load(&working) || sem_init(&full, 0, 0) ||
        pthread_attr_init(&attr))
        return false;
    atomic_store(&leaving, false);
    atomic_store(&working, true);
    sigfillset(&all);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool started = !pthread_create(&thread, &attr, worker_run, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return started;
}

void rp_cuda_buffers_end(void)
{
    if (atomic_load(&rp_cuda.used) && rp_cuda_is_attached())
        rp_cuda.cupti.flush(RP_CUPTI_FLUSH_FORCED);
    rp_cuda_buffers_read();
    atomic_store(&rp_cuda.running, 0);
    sem_post(&full);
}

void rp_cuda_buffers_leave(void)
{
    atomic_store(&leaving, true);
    atomic_store(&rp_cuda.running, 0);
    sem_post(&full);
    for (int ms = 0; ms < LEAVE_WAIT_MS && atomic_load(&working); ms++)
        usleep(1000);
    if (!atomic_load(&working)) /* gives the pages back, which are zeros again */
        madvise(base, BLOCKS * BLOCK, MADV_DONTNEED);
}
