/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times runs. The first one is reported separately (it touches memory and loads code). Warm-up goes
 * on until the medians of two successive groups of five runs differ by under 2 %, or for a third of
 * the time or iterations. Then come the measured runs: as many as requested, or as fit in the time,
 * but at least five. Percentiles are of the sorted times (nearest rank); the interval of the median
 * is by ranks (binomial, 95 %), which assumes nothing about their distribution.
 *
 * For comparisons with another process, the low times of blocks of runs are kept; and every few
 * milliseconds between runs, a fixed piece of work is timed: if its time changed, the machine did.
 */
#include "exec/engine/timing.h"

#include "base/clock.h"
#include "base/order.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GROUP      5
#define MOST_RUNS  1000000
#define BATCH      64
#define COLD_BYTES ((size_t)256 << 20)
#define LOW        0.1     /* the low time of a block is this percentile of its runs */
#define LOOK_NS    5000000 /* time between two measurements of the fixed work */
#define WORK_WORDS 4096
#define WORK_TURNS 12

RP_ORDER(by_time, int64_t, RP_COMPARE(*a, *b))

static int64_t percentile(const int64_t *sorted, size_t n, double share)
{
    size_t i = (size_t)ceil(share * (double)n);

    return sorted[i ? i - 1 : 0];
}

/* Computes the low times of up to RP_TIMING_BLOCKS blocks; room is for as many times as there are
   runs. */
static void sum_up_blocks(struct rp_timing *t, int64_t *room)
{
    size_t n = t->runs.n, size = (n + RP_TIMING_BLOCKS - 1) / RP_TIMING_BLOCKS;

    t->nblocks = 0;
    for (size_t at = 0; at < n; at += size) {
        size_t have = n - at < size ? n - at : size;

        memcpy(room, t->runs.at + at, have * sizeof *room);
        qsort(room, have, sizeof *room, by_time);
        t->blocks[t->nblocks++] = percentile(room, have, LOW);
    }
}

enum rp_code rp_timing_sum_up(struct rp_timing *t, struct rp_err *err)
{
    size_t n = t->runs.n;
    double half = 0.98 * sqrt((double)n); /* 1.96 * sqrt(n) / 2 */
    int64_t *sorted;
    double sum = 0;

    t->n = n;
    if (!n)
        return RP_OK;
    sorted = malloc(n * sizeof *sorted);
    RP_TRY(rp_err_need(sorted, err, "timing"));
    sum_up_blocks(t, sorted);
    memcpy(sorted, t->runs.at, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_time);
    if (t->machine.n) {
        qsort(t->machine.at, t->machine.n, sizeof *t->machine.at, by_time);
        t->machine_ns = percentile(t->machine.at, t->machine.n, LOW);
    }
    for (size_t i = 0; i < n; i++)
        sum += (double)sorted[i];
    t->min_ns = sorted[0];
    t->max_ns = sorted[n - 1];
    t->mean_ns = (int64_t)(sum / (double)n);
    t->p50_ns = percentile(sorted, n, 0.5);
    t->p90_ns = percentile(sorted, n, 0.9);
    t->p99_ns = percentile(sorted, n, 0.99);
    int64_t low = (int64_t)floor(0.5 * (double)n - half) - 1;
    int64_t high = (int64_t)ceil(0.5 * (double)n + half);
    t->low_ns = sorted[low < 0 ? 0 : low];
    t->high_ns = sorted[high >= (int64_t)n ? (int64_t)n - 1 : high];
    free(sorted);
    return RP_OK;
}

static int64_t group_median(const int64_t *at)
{
    int64_t sorted[GROUP];

    memcpy(sorted, at, sizeof sorted);
    qsort(sorted, GROUP, sizeof *sorted, by_time);
    return sorted[GROUP / 2];
}

/* Times work that depends only on our share of the processor: multiplications on data in its first
   cache. */
static int64_t look_at_machine(uint64_t *work)
{
    int64_t begin = rp_clock_ns();
    uint64_t a[8] = {1, 2, 3, 4, 5, 6, 7, 8};

    for (size_t turn = 0; turn < WORK_TURNS; turn++)
        for (size_t i = 0; i < WORK_WORDS; i += 8)
            for (size_t k = 0; k < 8; k++)
                a[k] = (a[k] ^ work[i + k]) * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t k = 0; k < 8; k++)
        work[k] ^= a[k]; /* so that the work cannot be optimised away */
    return rp_clock_ns() - begin;
}

/* Reads as much as the caches hold, so that nothing of the program is left there. */
static uint64_t empty_caches(unsigned char *memory)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < COLD_BYTES; i += 64)
        sum += ++memory[i];
    return sum;
}

static enum rp_code run_once(struct rp_executable *exe, unsigned char *cold, int64_t *ns,
                             struct rp_err *err)
{
    if (cold && empty_caches(cold) == 1)
        return RP_OK;
    if (exe->engine->run_timed)
        return exe->engine->run_timed(exe, 1, ns, err);
    int64_t begin = rp_clock_ns();
    RP_TRY(exe->engine->run(exe, err));
    *ns = rp_clock_ns() - begin;
    return RP_OK;
}

static enum rp_code warm_up(struct rp_executable *exe, const struct rp_timing_options *o,
                            int64_t budget_ns, unsigned char *cold, struct rp_timing *out,
                            struct rp_err *err)
{
    int64_t times[2 * GROUP], begin = rp_clock_ns();

    for (;;) {
        size_t n = out->warmups;

        if (o->warmup >= 0 ? (int64_t)n >= o->warmup : rp_clock_ns() - begin > budget_ns)
            return RP_OK;
        if (n >= (size_t)2 * GROUP)
            memmove(times, times + 1, (2 * GROUP - 1) * sizeof *times);
        n = n < (size_t)2 * GROUP ? n : (size_t)2 * GROUP - 1;
        RP_TRY(run_once(exe, cold, &times[n], err));
        out->warmup_ns += times[n];
        out->warmups++;
        if (o->warmup < 0 && out->warmups >= (size_t)2 * GROUP) {
            double a = (double)group_median(times), b = (double)group_median(times + GROUP);

            if (fabs(a - b) < 0.02 * b)
                return RP_OK;
        }
    }
}

/* How many runs to request from an engine at once: it times them where they run, and no code of
   ours should run in between, but the time limit must be checked ten times a second. */
static size_t at_a_time(const struct rp_executable *exe, const struct rp_timing_options *o,
                        const unsigned char *cold, const struct rp_timing *t)
{
    int64_t last = t->runs.n ? t->runs.at[t->runs.n - 1] : t->first_ns;

    if (!exe->engine->run_timed || cold)
        return 1;
    int64_t n = 100000000 / (last > 0 ? last : 1);
    if (o->iterations && n > o->iterations - (int64_t)t->runs.n)
        n = o->iterations - (int64_t)t->runs.n;
    return n < 1 ? 1 : n > BATCH ? BATCH : (size_t)n;
}

static enum rp_code count_runs(struct rp_executable *exe, const struct rp_timing_options *o,
                               int64_t limit_ns, unsigned char *cold, struct rp_timing *out,
                               struct rp_err *err)
{
    int64_t begin = rp_clock_ns(), ns[BATCH], done, looked = 0;
    uint64_t work[WORK_WORDS] = {0};

    while ((done = (int64_t)out->runs.n) < MOST_RUNS) {
        if (o->iterations ? done >= o->iterations
                          : done >= GROUP && rp_clock_ns() - begin > limit_ns)
            break;
        if (o->iterations && o->time_ns && done >= 1 && rp_clock_ns() - begin > limit_ns)
            break;
        if (rp_clock_ns() - looked > LOOK_NS) {
            looked = rp_clock_ns();
            RP_TRY(rp_vec_push(&out->machine, look_at_machine(work), err));
        }
        size_t n = at_a_time(exe, o, cold, out);
        RP_TRY(n > 1 ? exe->engine->run_timed(exe, n, ns, err) : run_once(exe, cold, ns, err));
        for (size_t i = 0; i < n; i++)
            RP_TRY(rp_vec_push(&out->runs, ns[i], err));
    }
    return RP_OK;
}

/* Time that all threads of the process that runs it have waited since they began; -1 if the system
   does not tell. */
static int64_t waited_ns(const struct rp_executable *exe)
{
    char path[320];
    struct dirent *entry;
    int64_t all = 0, one;

    snprintf(path, sizeof path, "/proc/%d/task",
             (int)(exe->engine->process ? exe->engine->process(exe) : getpid()));
    DIR *tasks = opendir(path);
    if (!tasks)
        return -1;
    while ((entry = readdir(tasks))) {
        size_t n = strlen(path);
        FILE *f = NULL;

        snprintf(path + n, sizeof path - n, "/%.200s/schedstat", entry->d_name);
        if (entry->d_name[0] != '.')
            f = fopen(path, "re");
        path[n] = 0;
        if (f && fscanf(f, "%*s %" SCNd64, &one) == 1)
            all += one;
        if (f)
            fclose(f);
    }
    closedir(tasks);
    return all;
}

enum rp_code rp_timing_run(struct rp_executable *exe, const struct rp_timing_options *options,
                           struct rp_timing *out, struct rp_err *err)
{
    RP_FREED unsigned char *cold = NULL;

    memset(out, 0, sizeof *out);
    if (options->cold) {
        cold = calloc(1, COLD_BYTES);
        RP_TRY(rp_err_need(cold, err, "emptying caches"));
    }

    int64_t limit_ns = options->time_ns ? options->time_ns : 1000000000;

    RP_TRY(run_once(exe, cold, &out->first_ns, err));
    /* with few requested runs, a program that takes seconds is warmed up only briefly */
    RP_TRY(warm_up(exe, options, options->iterations ? out->first_ns / 2 : limit_ns / 3, cold, out,
                   err));
    if (exe->engine->mark)
        RP_TRY(exe->engine->mark(exe, true, err));
    int64_t waited = waited_ns(exe);
    int64_t begin = rp_clock_ns();

    RP_TRY(count_runs(exe, options, limit_ns, cold, out, err));
    if (waited >= 0)
        out->waited = (double)(waited_ns(exe) - waited) / (double)(rp_clock_ns() - begin + 1);
    if (exe->engine->mark)
        RP_TRY(exe->engine->mark(exe, false, err));
    return rp_timing_sum_up(out, err);
}

void rp_timing_release(struct rp_timing *t)
{
    rp_vec_release(&t->runs);
    rp_vec_release(&t->machine);
}
