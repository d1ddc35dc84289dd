/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A pool that runs numbered jobs, and a channel between two threads. Jobs are files or ranks
 * (milliseconds and more) or pieces of an operation (tens of microseconds); channel items are
 * blocks of 256 KiB, so the cost of a mutex is not measurable.
 */
#include "base/err.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* Returns the number of cores this process may use (affinity mask and the cgroup's quota), at least
   1. */
unsigned rp_cpu_count(void);

struct rp_pool;

/* If threads is 0, it is rp_cpu_count(). A pool of one runs jobs in the caller. */
enum rp_code rp_pool_new(unsigned threads, struct rp_pool **out, struct rp_err *err);
void rp_pool_free(struct rp_pool *pool);
unsigned rp_pool_threads(const struct rp_pool *pool);

/* Declares or defines a function that runs one job of a batch; err is the job's own. */
#define RP_JOB(name) enum rp_code name(void *user, size_t job, RP_UNUSED struct rp_err *err)
typedef RP_JOB(rp_job_fn);

/*
 * Runs jobs 0 to n-1, in the order of their numbers as threads become free, and waits. After a
 * failure no new job starts; the error of the lowest failed number is returned, so results do not
 * depend on timing. Only one batch runs at a time; a job must not start a batch on its own pool.
 * A pool that is NULL, or a single job, runs in the caller.
 */
enum rp_code rp_pool_each(struct rp_pool *pool, size_t n, rp_job_fn *job, void *user,
                          struct rp_err *err);

/* A bounded queue of pointers from one producer to one consumer. */
struct rp_channel {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void **slot;
    size_t cap, head, n;
    bool closed;
};

enum rp_code rp_channel_init(struct rp_channel *ch, size_t cap, struct rp_err *err);
void rp_channel_release(struct rp_channel *ch);
bool rp_channel_put(struct rp_channel *ch, void *item);   /* waits for room; false if closed */
bool rp_channel_take(struct rp_channel *ch, void **item); /* waits; false if closed and empty */
void rp_channel_close(
    struct rp_channel *ch); /* may be called by either side, any number of times */
