/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast a distributed step is simulated: a training step of N ranks as dPRO's replay has it, 300
 * forward and 600 backward operators a rank, 40 tensors, each all-reduced over two rings in
 * 2(N - 1) steps of a send and a receive. One mover a rank, as dPRO assumes. Tasks grow with the
 * square of the ranks: where 40 tensors would make more than ten million of them, there are fewer.
 *
 * "bytes a task": what graph, overlay and run take, from the peak of the process. Then a what-if
 * that touches one bucket: the sends of the first, the middle or the last tensor take 3 % longer;
 * the time includes applying the change, simulating again what it affects, and undoing it; "rerun"
 * is the share of the tasks that was simulated again. The step's time is printed to compare
 * results.
 *
 *     bench_simulate [RANKS ...]        default 2 4 8 … 1024
 */
#include "sim/engine/resimulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS   7
#define FORWARD  300
#define BACKWARD 600
#define TENSORS  40
#define EACH     (BACKWARD / TENSORS) /* operators a tensor */
#define CHANNELS 2
#define MOST     10500000 /* tasks */

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
    uint32_t n, tensors;
    uint32_t first[TENSORS + 1]; /* task of a tensor */
    uint32_t *ready;             /* by rank and tensor */
    uint32_t *sent;              /* by rank: of the step at hand */
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
        if (i >= FORWARD && (i - FORWARD) % EACH == EACH - 1)
            j->ready[rank * TENSORS + (i - FORWARD) / EACH] = id;
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

    uint64_t each = 8 * (uint64_t)n * (n - 1);

    rp_task_graph_init(&j->g);
    j->n = n;
    j->tensors = each * TENSORS > MOST ? (uint32_t)(MOST / each) : TENSORS;
    j->tensors += !j->tensors;
    must(rp_task_graph_reserve(
        &j->g, each * j->tensors + (size_t)n * (FORWARD + BACKWARD + TENSORS),
        each * j->tensors + (size_t)n * (FORWARD + BACKWARD + 3 * TENSORS), NULL));
    j->ready = malloc((size_t)n * TENSORS * sizeof *j->ready);
    j->sent = malloc(n * sizeof *j->sent);
    j->got = malloc(n * sizeof *j->got);
    for (r = 0; r < n; r++)
        must(rp_task_graph_add_device(&j->g, "mover", RP_DEVICE_SERIAL, &id, NULL));
    for (r = 0; r < n; r++)
        add_compute(j, r);
    for (t = 0; t < j->tensors; t++) {
        j->first[t] = (uint32_t)j->g.tasks.n;
        for (r = 0; r < n; r++) {
            begin[r] = j->ready[r * TENSORS + t];
            end[r] = add(j, 0, RP_NO_DEVICE, r);
        }
        for (c = 0; c < CHANNELS; c++)
            add_ring(j, t, begin, end);
    }
    j->first[t] = (uint32_t)j->g.tasks.n;
    free(begin);
    free(end);
    must(rp_task_graph_freeze(&j->g, NULL));
}

/* The sends of a tensor are the tasks of its own that take between these. */
static void slow_down(struct rp_overlay *o, const struct job *j, uint32_t tensor)
{
    uint32_t i;

    for (i = j->first[tensor]; i < j->first[tensor + 1]; i++)
        if (o->dur_ns.at[i] > 3500 && o->dur_ns.at[i] < 5000)
            must(rp_overlay_set_dur(o, i, o->dur_ns.at[i] * 103 / 100, NULL));
}

static double measure_bucket(struct rp_resim *x, struct rp_overlay *o, const struct job *j,
                             uint32_t tensor, double *seen)
{
    size_t mark = rp_overlay_mark(o);
    double best = 1e300;
    int k;

    for (k = 0; k < ROUNDS; k++) {
        double t = now_ms();

        slow_down(o, j, tensor);
        must(rp_resim_update(x, NULL));
        *seen = 100 * (double)x->visited / (double)j->g.tasks.n;
        rp_overlay_undo(o, mark);
        rp_resim_undo(x);
        t = now_ms() - t;
        best = t < best ? t : best;
    }
    return best;
}

static double peak_bytes(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_maxrss * 1024;
}

static void measure_whatifs(struct rp_overlay *o, const struct job *j)
{
    uint32_t at[3] = {0, j->tensors / 2, j->tensors - 1};
    struct rp_resim x;
    double seen;
    int i;

    must(rp_resim_init(&x, o, NULL));
    slow_down(o, j, 0);
    must(rp_resim_update(&x, NULL)); /* the first runs everything */
    rp_overlay_undo(o, 0);
    for (i = 0; i < 3; i++) {
        double ms = measure_bucket(&x, o, j, at[i], &seen);

        printf(" %8.2f %3.0f%%", ms, seen);
    }
    rp_resim_release(&x);
}

static void measure(uint32_t n)
{
    struct rp_sim_result r = {0};
    struct rp_overlay o;
    struct job j;
    double best = 1e300, before = peak_bytes(), built = now_ms(), bytes;
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
    bytes = (peak_bytes() - before) / (double)j.g.tasks.n;
    printf("%5u %7u %9zu %9zu %8.1f %9.2f %7.1f %7.0f", n, j.tensors, j.g.tasks.n, j.g.edges.n,
           built, best, best * 1e6 / (double)j.g.tasks.n, bytes);
    measure_whatifs(&o, &j);
    printf(" %8.0f %11.3f\n", peak_bytes() / 1e6, (double)r.last_ns / 1e6);
    fflush(stdout);
    rp_sim_result_release(&r);
    rp_overlay_release(&o);
    rp_task_graph_release(&j.g);
    free(j.ready);
    free(j.sent);
    free(j.got);
}

/* In a process of its own: a peak does not go down again. */
static void measure_alone(uint32_t n)
{
    pid_t child;
    int status = 1;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        measure(n);
        exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0 || status)
        printf("%5u: failed\n", n);
}

int main(int argc, char **argv)
{
    static const uint32_t usual[] = {2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
    size_t i;

    printf("%5s %7s %9s %9s %8s %9s %7s %7s %8s %4s %8s %4s %8s %4s %8s %11s\n", "ranks", "tensors",
           "tasks", "edges", "built ms", "CPU ms", "ns/task", "B/task", "first ms", "rerun",
           "middle", "rerun", "last", "rerun", "peak MB", "step ms");
    for (i = 1; i < (size_t)argc; i++)
        if (strtoul(argv[i], NULL, 10) > 1)
            measure_alone((uint32_t)strtoul(argv[i], NULL, 10));
    for (i = 0; argc < 2 && i < sizeof usual / sizeof usual[0]; i++)
        measure_alone(usual[i]);
    return 0;
}
