/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/beside.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_TASKS 8000
RP_LIMIT(LEAST_TASKS, "tasks",
         "of smaller runs twins cost more than they save; the answers are the same");
#define MOST_TWINS 3
RP_LIMIT(MOST_TWINS, "twins",
         "each takes the memory of an overlay and of the tasks that are simulated again");

/* ------------------------------------------------------------------ twins */

static enum rp_code twin_init(struct rp_worlds *twin, struct rp_worlds *x, struct rp_err *err)
{
    struct rp_sim_run *run = &twin->run;
    size_t n = x->run.gone.n, names = x->run.graph->names.n + 1;

    *twin = (struct rp_worlds){.run = x->run,
                               .first = x,
                               .recorded_ns = x->recorded_ns,
                               .simulated_ns = x->simulated_ns,
                               .step_ns = x->step_ns,
                               .transport_doubt = x->transport_doubt,
                               .one_size = x->one_size,
                               .costs = x->costs};
    rp_arena_init(&run->arena);
    memset(&run->overlay, 0, sizeof run->overlay);
    memset(&run->gone, 0, sizeof run->gone);
    memset(run->cuts, 0, sizeof run->cuts);
    run->kernel_traits = RP_ARENA_NEW(&run->arena, uint16_t, names);
    RP_TRY(rp_arena_check(&run->arena, "simulating", err));
    memcpy(run->kernel_traits, x->run.kernel_traits, names * sizeof *run->kernel_traits);
    RP_TRY(rp_vec_reserve(&run->gone, n + 1, err));
    memset(run->gone.at, 0, n);
    run->gone.n = n;
    RP_TRY(rp_overlay_copy(&run->overlay, &x->run.overlay, err));
    twin->based = x->based;
    return x->based ? rp_resim_copy(&twin->base, &x->base, &run->overlay, err) : RP_OK;
}

void rp_worlds_free_twins(struct rp_worlds *x)
{
    for (unsigned i = 0; i < x->ntwins; i++) {
        struct rp_worlds *twin = &x->twins[i];

        if (twin->based)
            rp_resim_release(&twin->base);
        rp_overlay_release(&twin->run.overlay);
        rp_vec_release(&twin->run.gone);
        rp_arena_release(&twin->run.arena);
    }
    free(x->twins);
    x->twins = NULL;
    x->ntwins = 0;
}

/* There are no twins for packed ranks, which are unpacked one at a time, or for what-ifs that
   describe themselves, which use one arena. */
static bool has_twins(const struct rp_worlds *x, size_t n)
{
    return n > 1 && x->pool && rp_pool_threads(x->pool) > 1 && !x->whole && !x->run.block &&
           !x->run.says && x->run.tasks.tasks.n >= LEAST_TASKS &&
           x->run.tasks.tasks.n <= RP_WORLDS_TASKS_MOST;
}

static enum rp_code make_twins(struct rp_worlds *x, struct rp_err *err)
{
    unsigned n = rp_pool_threads(x->pool) - 1;

    if (x->twins)
        return RP_OK;
    n = n < MOST_TWINS ? n : MOST_TWINS;
    x->twins = calloc(n, sizeof *x->twins);
    RP_TRY(rp_err_need(x->twins, err, "simulating"));
    while (x->ntwins < n)
        RP_TRY(twin_init(&x->twins[x->ntwins++], x, err));
    return RP_OK;
}

/* ------------------------------------------------------------------ jobs */

struct batch {
    struct rp_worlds *free[1 + MOST_TWINS];
    unsigned nfree;
    pthread_mutex_t lock;
    pthread_cond_t freed;
    rp_worlds_job *job;
    void *user;
};

/* Runs a job on any worlds that are free. */
static enum rp_code run_job(void *user, size_t i, struct rp_err *err)
{
    struct batch *b = user;

    pthread_mutex_lock(&b->lock);
    while (!b->nfree)
        pthread_cond_wait(&b->freed, &b->lock);
    struct rp_worlds *x = b->free[--b->nfree];
    pthread_mutex_unlock(&b->lock);
    enum rp_code code = b->job(x, b->user, i, err);
    pthread_mutex_lock(&b->lock);
    b->free[b->nfree++] = x;
    pthread_cond_signal(&b->freed);
    pthread_mutex_unlock(&b->lock);
    return code;
}

static enum rp_code run_beside(struct rp_worlds *x, size_t n, rp_worlds_job *job, void *user,
                               struct rp_err *err)
{
    struct batch b = {.free = {x}, .nfree = 1, .job = job, .user = user};

    RP_TRY(make_twins(x, err));
    for (unsigned i = 0; i < x->ntwins; i++)
        b.free[b.nfree++] = &x->twins[i];
    pthread_mutex_init(&b.lock, NULL);
    pthread_cond_init(&b.freed, NULL);
    enum rp_code code = rp_pool_each(x->pool, n, run_job, &b, err);
    pthread_cond_destroy(&b.freed);
    pthread_mutex_destroy(&b.lock);
    for (unsigned i = 0; i < x->ntwins; i++) {
        x->evaluated += x->twins[i].evaluated;
        x->twins[i].evaluated = 0;
    }
    return code;
}

enum rp_code rp_worlds_each(struct rp_worlds *x, size_t n, rp_worlds_job *job, void *user,
                            struct rp_err *err)
{
    if (has_twins(x, n))
        return run_beside(x, n, job, user, err);
    for (size_t i = 0; i < n; i++)
        RP_TRY(job(x, user, i, err));
    return RP_OK;
}
