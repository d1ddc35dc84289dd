/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast a distributed step is simulated: a training step of N ranks as dPRO's replay has it, 300
 * forward and 600 backward operators a rank, 40 tensors, each all-reduced over two rings in
 * 2(N - 1) steps of a send and a receive. One mover a rank, as dPRO assumes.
 *
 * "one bucket": the sends of one tensor in the middle take 3 % longer, and only what that reaches
 * is run again (and taken back); the part of tasks that were looked at stands beside it.
 *
 *     bench_simulate [RANKS ...]        default 2 4 8 16 32 64 128 and what fits 10 million tasks
 */
#include "sim/resimulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS   5
#define FORWARD  300
#define BACKWARD 600
#define TENSORS  40
#define CHANNELS 2

/* Of this process: the machine may be busy with others. */
static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void must(enum rp_code code)
{
    if (code != RP_OK)
        exit(1);
}

struct job {
    struct rp_task_graph g;
    uint32_t n;
    uint32_t *ready; /* by rank and tensor */
    uint32_t *sent;  /* by rank: of the step at hand */
    uint32_t *got;
};

static uint32_t add(struct job *j, int64_t dur_ns, uint32_t device, uint32_t rank)
{
    struct rp_task t = {.dur_ns = dur_ns, .device = device, .rank = rank};
    uint32_t id;

    must(rp_task_graph_add(&j->g, t, &id, NULL));
    return id;
}

static void wait_for(struct job *j, uint32_t from, uint32_t to)
{
    must(rp_task_graph_link(&j->g, from, to, 0, 0, NULL));
}

static void add_compute(struct job *j, uint32_t rank)
{
    uint32_t i, id, before = UINT32_MAX;

    for (i = 0; i < FORWARD + BACKWARD; i++) {
        id = add(j, 20000 + (i * 7919 + rank * 104729) % 30000, RP_NO_DEVICE, rank);
        if (before != UINT32_MAX)
            wait_for(j, before, id);
        before = id;
        if (i >= FORWARD && (i - FORWARD) % (BACKWARD / TENSORS) == BACKWARD / TENSORS - 1)
            j->ready[rank * TENSORS + (i - FORWARD) / (BACKWARD / TENSORS)] = id;
    }
}

/* One ring: every rank sends to the next and receives from the one before, step by step. */
static void add_ring(struct job *j, uint32_t tensor, const uint32_t *begin, uint32_t *end)
{
    uint32_t r, k;

    for (r = 0; r < j->n; r++)
        j->got[r] = begin[r];
    for (k = 0; k < 2 * (j->n - 1); k++) {
        for (r = 0; r < j->n; r++) {
            j->sent[r] = add(j, 4000 + 50 * (tensor % 7), r, r);
            wait_for(j, j->got[r], j->sent[r]);
        }
        for (r = 0; r < j->n; r++) {
            uint32_t from = (r + j->n - 1) % j->n;

            j->got[r] = add(j, 3000, r, r);
            wait_for(j, j->sent[from], j->got[r]);
        }
    }
    for (r = 0; r < j->n; r++)
        wait_for(j, j->got[r], end[r]);
}

static void make(struct job *j, uint32_t n)
{
    uint32_t *begin = malloc(n * sizeof *begin), *end = malloc(n * sizeof *end), r, t, c, id;

    rp_task_graph_init(&j->g);
    j->n = n;
    j->ready = malloc((size_t)n * TENSORS * sizeof *j->ready);
    j->sent = malloc(n * sizeof *j->sent);
    j->got = malloc(n * sizeof *j->got);
    for (r = 0; r < n; r++)
        must(rp_task_graph_add_device(&j->g, "mover", RP_DEVICE_SERIAL, &id, NULL));
    for (r = 0; r < n; r++)
        add_compute(j, r);
    for (t = 0; t < TENSORS; t++) {
        for (r = 0; r < n; r++) {
            begin[r] = j->ready[r * TENSORS + t];
            end[r] = add(j, 0, RP_NO_DEVICE, r);
        }
        for (c = 0; c < CHANNELS; c++)
            add_ring(j, t, begin, end);
    }
    free(begin);
    free(end);
    must(rp_task_graph_freeze(&j->g, NULL));
}

/* A what-if that touches one bucket: sends of a tensor, all of one duration. */
static double measure_bucket(struct rp_overlay *o, size_t at, double *part)
{
    struct rp_resim x;
    double best = 1e300;
    size_t i, mark, low = o->graph->tasks.n * at / 1000, high = low + o->graph->tasks.n / 80;
    int k;

    must(rp_resim_init(&x, o, NULL));
    mark = rp_overlay_mark(o);
    for (k = 0; k < ROUNDS; k++) {
        double t = now_ms();

        for (i = low; i < high; i++)
            if (o->dur_ns.at[i] > 3500 && o->dur_ns.at[i] < 5000)
                must(rp_overlay_set_dur(o, (uint32_t)i, o->dur_ns.at[i] * 103 / 100, NULL));
        must(rp_resim_update(&x, NULL));
        *part = (double)x.visited / (double)o->graph->tasks.n;
        rp_overlay_undo(o, mark);
        rp_resim_undo(&x);
        t = now_ms() - t;
        best = t < best ? t : best;
    }
    rp_resim_release(&x);
    return best;
}

static void measure(uint32_t n)
{
    struct rp_sim_result r = {0};
    struct rp_overlay o;
    struct job j;
    double best = 1e300, middle, last, part[2], built = now_ms();
    int i;

    make(&j, n);
    built = now_ms() - built;
    must(rp_overlay_init(&o, &j.g, NULL));
    for (i = 0; i < ROUNDS; i++) {
        double t = now_ms();

        must(rp_simulate(&o, &r, NULL));
        t = now_ms() - t;
        best = t < best ? t : best;
    }
    middle = measure_bucket(&o, 550, &part[0]);
    last = measure_bucket(&o, 987, &part[1]);
    printf("%6u %10zu %10zu %10.1f %10.2f %9.1f %12.3f %9.2f %4.0f%% %9.2f %4.0f%%\n", n,
           j.g.tasks.n, j.g.edges.n, built, best, (double)j.g.tasks.n / best / 1e3,
           (double)r.last_ns / 1e6, middle, 100 * part[0], last, 100 * part[1]);
    rp_sim_result_release(&r);
    rp_overlay_release(&o);
    rp_task_graph_release(&j.g);
    free(j.ready);
    free(j.sent);
    free(j.got);
}

int main(int argc, char **argv)
{
    static const uint32_t usual[] = {2, 4, 8, 16, 32, 64, 128, 176};
    size_t i;

    printf("%6s %10s %10s %10s %10s %9s %12s %9s %5s %9s %5s\n", "ranks", "tasks", "edges",
           "built ms", "CPU ms", "Mtasks/s", "step ms", "middle", "seen", "last", "seen");
    for (i = 1; i < (size_t)argc; i++)
        measure((uint32_t)strtoul(argv[i], NULL, 10));
    for (i = 0; argc < 2 && i < sizeof usual / sizeof usual[0]; i++)
        measure(usual[i]);
    return 0;
}
