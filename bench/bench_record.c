/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a range costs the program that has it: `bench_record PAIRS [THREADS]` runs begin and end in
 * each thread, five times, and prints the best time an event, by the clock and of the thread's
 * processor time (which a busy machine disturbs less). Run bare it measures the macros
 * without a recorder, under `reprise record` those with one; bench/record does both, beside
 * LTTng-UST.
 */
#include <pthread.h>
#include <reprise/record.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long pairs;

struct best {
    double wall_ns, cpu_ns; /* an event, of the best round */
};

static double now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

static void *run(void *result)
{
    struct best *best = result;

    *best = (struct best){1e9, 1e9};
    for (int round = 0; round < 5; round++) {
        double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);

        for (long i = 0; i < pairs; i++) {
            RP_RANGE_BEGIN("forward");
            __asm__ volatile("" ::: "memory"); /* the loop stays where the macros do nothing */
            RP_RANGE_END();
        }
        cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
        wall = now(CLOCK_MONOTONIC) - wall;
        best->wall_ns = least(best->wall_ns, wall * 1e9 / (2.0 * (double)pairs));
        best->cpu_ns = least(best->cpu_ns, cpu * 1e9 / (2.0 * (double)pairs));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int n = argc > 2 ? atoi(argv[2]) : 1;
    pthread_t threads[64];
    struct best best[64], worst = {0, 0};

    pairs = argc > 1 ? atol(argv[1]) : 1000000;
    n = n < 1 ? 1 : n > 64 ? 64 : n;
    for (int i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, run, &best[i]);
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
        worst.wall_ns = best[i].wall_ns > worst.wall_ns ? best[i].wall_ns : worst.wall_ns;
        worst.cpu_ns = best[i].cpu_ns > worst.cpu_ns ? best[i].cpu_ns : worst.cpu_ns;
    }
    printf("ns_per_event %.2f cpu %.2f\n", worst.wall_ns, worst.cpu_ns);
    return 0;
}
