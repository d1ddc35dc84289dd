/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of the pool spin for the next batch for a short time, then sleep: waking a thread
 * takes longer than many batches of the replay engine, which follow each other within microseconds.
 * A batch is a counter of the next job; a thread joins it and leaves it under the lock. The caller
 * works, too, so a pool of N has N-1 threads.
 */
#include "base/threads.h"
#include "base/clock.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LOOK_NS 50000 /* how long a thread spins before it sleeps */

struct rp_pool {
    pthread_mutex_t lock;
    pthread_cond_t work, idle;
    pthread_t *thread;
    unsigned wanted;   /* with the caller */
    unsigned nthreads; /* number of started threads, besides the caller */
    _Atomic unsigned busy;
    _Atomic unsigned batch; /* changes when a batch begins or the pool ends */
    bool stop;

    rp_job_fn *job; /* the batch; NULL between batches */
    void *user;
    size_t n;
    _Atomic size_t next, failed_at;
    struct rp_err failure;
};

static unsigned quota_cpus(void)
{
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
    long quota = 0, period = 0;

    if (f) {
        if (fscanf(f, "%ld %ld", &quota, &period) != 2)
            quota = 0;
        fclose(f);
    }
    if (quota <= 0 || period <= 0)
        return UINT16_MAX;
    return quota < period ? 1 : (unsigned)((quota + period - 1) / period);
}

unsigned rp_cpu_count(void)
{
    cpu_set_t set;
    unsigned n = 1, quota = quota_cpus();

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = (unsigned)CPU_COUNT(&set);
    if (n > quota)
        n = quota;
    return n ? n : 1;
}

static void breathe(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Spins until the value changes (with until_zero: until it is 0), or time is up. */
static void spin_until(_Atomic unsigned *at, unsigned seen, bool until_zero)
{
    int64_t end = rp_clock_ns() + LOOK_NS;

    for (unsigned i = 1;; i++) {
        unsigned is = atomic_load_explicit(at, memory_order_acquire);

        if (until_zero ? !is : is != seen)
            return;
        breathe();
        if (i % 16 == 0 && rp_clock_ns() > end)
            return;
    }
}

/* It is called, and returns, with the lock held. */
static void run_jobs(struct rp_pool *pool)
{
    rp_job_fn *job = pool->job;
    void *user = pool->user;
    size_t n = pool->n, i;

    if (!job)
        return;
    pool->busy++;
    pthread_mutex_unlock(&pool->lock);
    while (atomic_load(&pool->failed_at) == SIZE_MAX &&
           (i = atomic_fetch_add(&pool->next, 1)) < n) {
        struct rp_err err = RP_ERR_INIT;
        enum rp_code code = job(user, i, &err);

        if (code != RP_OK) {
            pthread_mutex_lock(&pool->lock);
            if (i < pool->failed_at) {
                pool->failed_at = i;
                pool->failure = err;
                pool->failure.code = code;
            }
            pthread_mutex_unlock(&pool->lock);
        }
    }
    pthread_mutex_lock(&pool->lock);
    if (atomic_fetch_sub(&pool->busy, 1) == 1)
        pthread_cond_broadcast(&pool->idle);
}

static void *worker(void *arg)
{
    struct rp_pool *pool = arg;

    pthread_mutex_lock(&pool->lock);
    while (!pool->stop) {
        unsigned seen = pool->batch;

        run_jobs(pool);
        pthread_mutex_unlock(&pool->lock);
        spin_until(&pool->batch, seen, false);
        pthread_mutex_lock(&pool->lock);
        while (pool->batch == seen && !pool->stop)
            pthread_cond_wait(&pool->work, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

enum rp_code rp_pool_new(unsigned threads, struct rp_pool **out, struct rp_err *err)
{
    struct rp_pool *pool = calloc(1, sizeof *pool);
    unsigned want = threads ? threads : rp_cpu_count();

    *out = NULL;
    if (!pool || !(pool->thread = calloc(want, sizeof *pool->thread))) {
        free(pool);
        return rp_err_nomem(err, "starting threads");
    }
    pool->failed_at = SIZE_MAX;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->idle, NULL);
    pool->wanted = want;
    *out = pool;
    return RP_OK;
}

/*
 * Threads start with the first batch that has work for two, so that a process that reads one trace
 * has only one thread; a process that it forks then finds no lock held by a thread that does not
 * exist there. The lock must be held. Fewer threads than requested make it slower, not wrong.
 */
static void start_threads(struct rp_pool *pool)
{
    while (pool->nthreads + 1 < pool->wanted &&
           !pthread_create(&pool->thread[pool->nthreads], NULL, worker, pool))
        pool->nthreads++;
    pool->wanted = pool->nthreads + 1;
}

void rp_pool_free(struct rp_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pool->batch++;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->nthreads; i++)
        pthread_join(pool->thread[i], NULL);
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->idle);
    pthread_mutex_destroy(&pool->lock);
    free(pool->thread);
    free(pool);
}

unsigned rp_pool_threads(const struct rp_pool *pool)
{
    return pool->wanted;
}

enum rp_code rp_pool_each(struct rp_pool *pool, size_t n, rp_job_fn *job, void *user,
                          struct rp_err *err)
{
    enum rp_code code = RP_OK;

    if (!pool || n < 2) {
        for (size_t i = 0; i < n; i++)
            RP_TRY(job(user, i, err));
        return RP_OK;
    }
    pthread_mutex_lock(&pool->lock);
    start_threads(pool);
    pool->job = job;
    pool->user = user;
    pool->next = 0;
    pool->n = n;
    pool->failed_at = SIZE_MAX;
    pool->batch++;
    pthread_cond_broadcast(&pool->work);
    run_jobs(pool);
    pool->job = NULL; /* threads that come late find no job */
    if (pool->busy) {
        pthread_mutex_unlock(&pool->lock);
        spin_until(&pool->busy, 0, true);
        pthread_mutex_lock(&pool->lock);
    }
    while (pool->busy)
        pthread_cond_wait(&pool->idle, &pool->lock);
    if (pool->failed_at != SIZE_MAX) {
        code = pool->failure.code;
        if (err)
            *err = pool->failure;
    }
    pthread_mutex_unlock(&pool->lock);
    return code;
}

enum rp_code rp_channel_init(struct rp_channel *ch, size_t cap, struct rp_err *err)
{
    *ch = (struct rp_channel){.cap = cap};
    ch->slot = calloc(cap, sizeof *ch->slot);
    RP_TRY(rp_err_need(ch->slot, err, "making a channel"));
    pthread_mutex_init(&ch->lock, NULL);
    pthread_cond_init(&ch->changed, NULL);
    return RP_OK;
}

void rp_channel_release(struct rp_channel *ch)
{
    if (!ch->slot)
        return;
    pthread_cond_destroy(&ch->changed);
    pthread_mutex_destroy(&ch->lock);
    free(ch->slot);
    *ch = (struct rp_channel){0};
}

bool rp_channel_put(struct rp_channel *ch, void *item)
{
    pthread_mutex_lock(&ch->lock);
    while (ch->n == ch->cap && !ch->closed)
        pthread_cond_wait(&ch->changed, &ch->lock);
    bool open = !ch->closed;
    if (open) {
        ch->slot[(ch->head + ch->n++) % ch->cap] = item;
        pthread_cond_broadcast(&ch->changed);
    }
    pthread_mutex_unlock(&ch->lock);
    return open;
}

bool rp_channel_take(struct rp_channel *ch, void **item)
{
    pthread_mutex_lock(&ch->lock);
    while (!ch->n && !ch->closed)
        pthread_cond_wait(&ch->changed, &ch->lock);
    bool got = ch->n > 0;
    if (got) {
        *item = ch->slot[ch->head];
        ch->head = (ch->head + 1) % ch->cap;
        ch->n--;
        pthread_cond_broadcast(&ch->changed);
    }
    pthread_mutex_unlock(&ch->lock);
    return got;
}

void rp_channel_close(struct rp_channel *ch)
{
    pthread_mutex_lock(&ch->lock);
    ch->closed = true;
    pthread_cond_broadcast(&ch->changed);
    pthread_mutex_unlock(&ch->lock);
}
