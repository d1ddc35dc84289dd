/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a range costs the program that has it: `bench_record PAIRS [THREADS]` runs begin and end in
 * each thread, five times, and prints the best time an event. Run bare it measures the macros
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

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *run(void *best)
{
    double *least = best;

    *least = 1e9;
    for (int round = 0; round < 5; round++) {
        double begin = now(), ns;

        for (long i = 0; i < pairs; i++) {
            RP_RANGE_BEGIN("forward");
            __asm__ volatile("" ::: "memory"); /* the loop stays where the macros do nothing */
            RP_RANGE_END();
        }
        ns = (now() - begin) * 1e9 / (2.0 * (double)pairs);
        *least = ns < *least ? ns : *least;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int n = argc > 2 ? atoi(argv[2]) : 1;
    pthread_t threads[64];
    double best[64], worst = 0;

    pairs = argc > 1 ? atol(argv[1]) : 1000000;
    n = n < 1 ? 1 : n > 64 ? 64 : n;
    for (int i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, run, &best[i]);
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
        worst = best[i] > worst ? best[i] : worst;
    }
    printf("ns_per_event %.2f\n", worst);
    return 0;
}
