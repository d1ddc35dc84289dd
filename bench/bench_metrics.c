/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of <reprise/metrics.h>, beside the design of the original (a mutex and a ring of samples
 * for each metric, a shared atomic for each counter), in one run; and how near the percentiles are.
 *
 *     bench_metrics                    ns of processor time per operation in the quickest of 500
 *                                      rounds, with 1, 2 and 8 threads
 *     bench_metrics --accuracy [N]     N samples (10^9) of several distributions against the exact
 *                                      percentiles, which are known: the samples are a permutation
 */
#include "metrics/set.h"

#include <math.h>
#include <pthread.h>
#include <reprise/metrics.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 500   /* of which the quickest counts: other programs use the machine, too */
#define CALLS  10000 /* in a round */
#define RING   1024

static double cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int64_t wall_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- the original's design ---- */

static struct {
    pthread_mutex_t mutex;
    struct {
        int64_t at;
        double value;
    } ring[RING];
    size_t n;
    double sum;
} ring_metric = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static int64_t shared_counter;

__attribute__((noinline)) static void ring_timed(void)
{
    int64_t begin = wall_ns(), end = wall_ns();

    pthread_mutex_lock(&ring_metric.mutex);
    ring_metric.ring[ring_metric.n % RING].at = end;
    ring_metric.ring[ring_metric.n % RING].value = (double)(end - begin);
    ring_metric.sum += (double)(end - begin);
    ring_metric.n++;
    pthread_mutex_unlock(&ring_metric.mutex);
}

__attribute__((noinline)) static void shared_count(void)
{
    __atomic_fetch_add(&shared_counter, 1, __ATOMIC_RELAXED);
}

/* ---- ours ---- */

__attribute__((noinline)) static void timed(void)
{
    RP_TIMED("timed");
}

__attribute__((noinline)) static void sampled(void)
{
    RP_TIMED_SAMPLE("sampled", 1234);
}

__attribute__((noinline)) static void counted(void)
{
    RP_COUNT("counted", 1);
}

__attribute__((noinline)) static void sampled_without_clock(void)
{
    static __thread struct rp_metrics_here here;

    rp_metrics_sample(&here, "without clock", RP_METRICS_TICKS, 40, 1, 1);
}

/* ---- what a measurement cannot be cheaper than ---- */

__attribute__((noinline)) static void called(void)
{
    __asm__ volatile("");
}

__attribute__((noinline)) static void ticks_twice(void)
{
    uint64_t begin = rp_metrics_ticks(), end = rp_metrics_ticks();

    __asm__ volatile("" : : "r"(begin), "r"(end));
}

__attribute__((noinline)) static void clock_twice(void)
{
    struct timespec t[2];

    clock_gettime(CLOCK_MONOTONIC, &t[0]);
    clock_gettime(CLOCK_MONOTONIC, &t[1]);
    __asm__ volatile("" : : "r"(t) : "memory");
}

static const struct {
    const char *name;
    void (*run)(void);
} rows[] = {{"an empty call", called},
            {"two reads of the cycle counter", ticks_twice},
            {"two calls of clock_gettime", clock_twice},
            {"RP_TIMED", timed},
            {"RP_TIMED without the two reads", sampled_without_clock},
            {"RP_TIMED_SAMPLE", sampled},
            {"RP_COUNT", counted},
            {"mutex and ring, timed", ring_timed},
            {"shared atomic, counted", shared_count}};

#define NROWS (sizeof rows / sizeof rows[0])

struct worker {
    pthread_t thread;
    size_t row;
    double ns;
};

static void *work(void *arg)
{
    struct worker *w = arg;

    w->ns = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = cpu_ns();

        for (int i = 0; i < CALLS; i++)
            rows[w->row].run();
        w->ns = fmin(w->ns, (cpu_ns() - begin) / CALLS);
    }
    return NULL;
}

static double run_threads(size_t row, int n)
{
    struct worker w[8];
    double sum = 0;
    int i;

    for (i = 0; i < n; i++) {
        w[i].row = row;
        if (pthread_create(&w[i].thread, NULL, work, &w[i]))
            exit(4);
    }
    for (i = 0; i < n; i++) {
        pthread_join(w[i].thread, NULL);
        sum += w[i].ns;
    }
    return sum / n;
}

static void measure_cost(void)
{
    size_t i;

    printf("%-32s %10s %10s %10s   ns of processor time each\n", "", "1 thread", "2 threads",
           "8 threads");
    for (i = 0; i < NROWS; i++)
        printf("%-32s %10.1f %10.1f %10.1f\n", rows[i].name, run_threads(i, 1), run_threads(i, 2),
               run_threads(i, 8));
}

/* ---- accuracy ---- */

/* Monotone: the k-th smallest of n samples is at(k / n). */
static double uniform_at(double u)
{
    return u * 1e7;
}

static double exponential_at(double u)
{
    return -log1p(-u) * 2e5;
}

static double log_uniform_at(double u)
{
    return exp(u * 35);
}

static double two_modes_at(double u)
{
    return u < 0.7 ? 900 + 200 * u : 4e7 * (1 + u);
}

#define DISTRIBUTION(name, at)                                \
    static void take_##at(uint64_t n, uint64_t stride)        \
    {                                                         \
        uint64_t i, k = 0;                                    \
        for (i = 0; i < n; i++, k = (k + stride) % n)         \
            RP_TIMED_SAMPLE(name, at((double)k / (double)n)); \
    }
DISTRIBUTION("uniform", uniform_at)
DISTRIBUTION("exponential", exponential_at)
DISTRIBUTION("log-uniform", log_uniform_at)
DISTRIBUTION("two modes", two_modes_at)

static const struct {
    const char *name;
    void (*take)(uint64_t, uint64_t);
    double (*at)(double);
} distributions[] = {{"uniform", take_uniform_at, uniform_at},
                     {"exponential", take_exponential_at, exponential_at},
                     {"log-uniform", take_log_uniform_at, log_uniform_at},
                     {"two modes", take_two_modes_at, two_modes_at}};

static int measure_accuracy(uint64_t n)
{
    struct rp_arena arena = RP_ARENA_INIT;
    rp_metric_paths paths = {0};
    struct rp_metric_set set;
    struct rp_err err = RP_ERR_INIT;
    char self[32];
    size_t d, p;

    for (d = 0; d < sizeof distributions / sizeof distributions[0]; d++)
        distributions[d].take(n, 982451653); /* a prime: every k once */
    snprintf(self, sizeof self, "%d", (int)getpid());
    if (rp_metric_find_sources(self, &arena, &paths, &err) != RP_OK || !paths.n ||
        rp_metric_set_read(paths.at[0], &set, &err) != RP_OK) {
        fprintf(stderr, "bench_metrics: %s\n", err.text);
        return 4;
    }
    printf("%-16s %14s %16s   largest error of the percentiles 1 to 99\n", "distribution",
           "samples", "error");
    for (d = 0; d < sizeof distributions / sizeof distributions[0]; d++) {
        const struct rp_metric *m = rp_metric_find(&set, distributions[d].name);
        double worst = 0;

        for (p = 0; p < RP_METRIC_PERCENTILES; p++) {
            double exact = floor(distributions[d].at(rp_metric_percent[p] / 100.0));

            worst = fmax(worst, fabs(rp_metric_percentile(m, rp_metric_percent[p]) / exact - 1));
        }
        printf("%-16s %14llu %14.3f %%\n", distributions[d].name, (unsigned long long)m->count,
               100 * worst);
    }
    rp_metric_set_release(&set);
    rp_vec_release(&paths);
    rp_arena_release(&arena);
    return 0;
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/bench-metrics-XXXXXX", command[64];
    int status = 0;

    if (!mkdtemp(folder) || setenv("REPRISE_METRICS_DIR", folder, 1))
        return 4;
    if (argc > 1 && !strcmp(argv[1], "--accuracy"))
        status = measure_accuracy(argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000000);
    else
        measure_cost();
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) ? 4 : status;
}
