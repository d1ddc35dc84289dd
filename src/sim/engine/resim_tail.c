/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts the base run, and continues runs from the cuts. A run works on the starts of its result;
 * those of tasks before the cut stay, and if the previous run began earlier, what it left is
 * replaced by the base's.
 */
#include "sim/engine/resim_tail.h"

#include "base/decides.h"
#include "base/order.h"

#include <stdlib.h>
#include <string.h>

#define CUTS 16
RP_LIMIT(CUTS, "states of a run that are kept", "where a replay begins; any gives the same times");
#define SAMPLE 4096
RP_LIMIT(SAMPLE, "starts by which the cuts are placed", "any gives the same times");

/* ------------------------------------------------------------------ cuts */

RP_ORDER(by_value, int64_t, RP_COMPARE(*a, *b))

/* Finds moments between which about equally many tasks of devices start. */
static size_t place_cuts(const struct rp_resim_tail *x, const struct rp_sim_result *base,
                         int64_t out[CUTS])
{
    int64_t *some = malloc(SAMPLE * sizeof *some);
    size_t i, n = 0, ncuts = 0, step = x->g.n / SAMPLE + 1;

    for (i = 0; some && i < x->g.n; i += step)
        if (x->g.tasks.at[i].device != RP_NO_DEVICE)
            some[n++] = base->start_ns.at[i];
    if (n)
        qsort(some, n, sizeof *some, by_value);
    for (i = 1; i <= CUTS && n; i++) {
        int64_t at = some[(n - 1) * i / (CUTS + 1)];

        if (at > (ncuts ? out[ncuts - 1] : 0))
            out[ncuts++] = at;
    }
    free(some);
    return ncuts;
}

RP_ORDER(by_wait, struct rp_horizon_entry, RP_UP(ready_ns), RP_UP(task))

static enum rp_code keep_waits(struct rp_resim_cut *cut, const struct rp_horizon *h,
                               struct rp_err *err)
{
    for (size_t i = 0; i < h->ndevices; i++) {
        const struct rp_horizon_device *d = &h->devices[i];
        const struct rp_event_queue *q = &d->rest;
        size_t sorted = q->run.n - q->head;

        cut->free_ns[i] = d->free_ns;
        for (size_t k = d->head; k < d->n; k++)
            RP_TRY(rp_vec_push(&cut->waits, d->near[k], err));
        for (size_t k = 0; k < sorted + q->rest.at.n; k++) {
            const struct rp_moment *m =
                k < sorted ? &q->run.at[q->head + k] : &q->rest.at.at[k - sorted];
            struct rp_horizon_entry e = {m->key, rp_moment_what(*m)};

            RP_TRY(rp_vec_push(&cut->waits, e, err));
        }
    }
    if (cut->waits.n)
        qsort(cut->waits.at, cut->waits.n, sizeof *cut->waits.at, by_wait);
    return RP_OK;
}

static enum rp_code keep_cut(struct rp_resim_tail *x, struct rp_err *err)
{
    struct rp_resim_cut *cut = &x->cuts[x->ncuts++];

    cut->begun = x->h.done;
    cut->free_ns = malloc((x->h.ndevices + 1) * sizeof *cut->free_ns);
    RP_TRY(rp_err_need(cut->free_ns, err, "simulating"));
    RP_TRY(keep_waits(cut, &x->h, err));

    for (uint32_t i = 0; i < x->g.n; i++) {
        const struct rp_plain_task *task = &x->g.tasks.at[i];
        struct rp_resim_task t = {x->result.start_ns.at[i], i, task->left};
        if (task->left != task->degree)
            RP_TRY(rp_vec_push(&cut->told, t, err));
    }
    return RP_OK;
}

/* Notes turns, and the latest end before each cut. */
static void note_turns(struct rp_resim_tail *x, const struct rp_sim_result *base)
{
    int64_t last = 0;
    size_t i, k = 0;

    for (i = 0; i < x->g.n; i++) {
        uint32_t task = x->begun.at[i];

        for (; k < x->ncuts && x->cuts[k].begun <= i; k++)
            x->cuts[k].last_ns = last;
        x->turn.at[task] = (uint32_t)i;
        last = base->end_ns.at[task] > last ? base->end_ns.at[task] : last;
    }
    for (; k < x->ncuts; k++)
        x->cuts[k].last_ns = last;
}

static enum rp_code run_base(struct rp_resim_tail *x, const struct rp_sim_result *base,
                             struct rp_err *err)
{
    int64_t moments[CUTS];
    size_t i, n = place_cuts(x, base, moments);

    x->cuts = calloc(CUTS, sizeof *x->cuts);
    RP_TRY(rp_err_need(x->cuts, err, "simulating"));
    x->h.begun = x->begun.at;
    rp_horizon_begin(&x->h);
    for (i = 0; i < n; i++) {
        RP_TRY(rp_horizon_go(&x->h, moments[i], err));
        RP_TRY(keep_cut(x, err));
    }
    RP_TRY(rp_horizon_go(&x->h, INT64_MAX, err));
    x->h.begun = NULL;
    x->begun.n = x->h.done;
    return RP_OK;
}

enum rp_code rp_resim_tail_init(struct rp_resim_tail *x, const struct rp_overlay *o,
                                const struct rp_sim_result *base, struct rp_err *err)
{
    size_t n = rp_overlay_ntasks(o);

    memset(x, 0, sizeof *x);
    x->o = o;
    RP_TRY(rp_plain_graph_init(&x->g, o, err));
    if (!x->g.fits)
        return RP_OK;
    RP_TRY(rp_vec_reserve(&x->begun, n + 1, err));
    RP_TRY(rp_vec_reserve(&x->turn, n + 1, err));
    RP_TRY(rp_vec_reserve(&x->result.start_ns, n + 1, err));
    RP_TRY(rp_vec_reserve(&x->result.end_ns, n + 1, err));
    x->turn.n = x->result.start_ns.n = x->result.end_ns.n = n;
    memcpy(x->result.end_ns.at, base->end_ns.at, n * sizeof *base->end_ns.at);
    RP_TRY(rp_horizon_init(&x->h, &x->g, x->result.start_ns.at, err));
    RP_TRY(run_base(x, base, err));
    x->g.fits = x->begun.n == n;
    x->differs = n;
    if (x->g.fits)
        note_turns(x, base);
    return RP_OK;
}

void rp_resim_tail_release(struct rp_resim_tail *x)
{
    for (size_t i = 0; i < x->ncuts; i++) {
        free(x->cuts[i].free_ns);
        rp_vec_release(&x->cuts[i].waits);
        rp_vec_release(&x->cuts[i].told);
    }
    free(x->cuts);
    rp_horizon_release(&x->h);
    rp_plain_graph_release(&x->g);
    rp_sim_result_release(&x->result);
    rp_vec_release(&x->begun);
    rp_vec_release(&x->turn);
}

/* ------------------------------------------------------------------ going on from a cut */

void rp_resim_tail_keep(struct rp_resim_tail *x, const struct rp_sim_result *base, size_t turn)
{
    for (size_t i = x->differs; i < turn; i++) {
        uint32_t task = x->begun.at[i];

        x->result.start_ns.at[task] = base->start_ns.at[task];
        x->result.end_ns.at[task] = base->end_ns.at[task];
    }
    x->differs = turn;
}

static void restore(struct rp_resim_tail *x, const struct rp_resim_cut *cut)
{
    for (size_t i = 0; i < cut->told.n; i++) {
        const struct rp_resim_task *t = &cut->told.at[i];

        x->result.start_ns.at[t->task] = t->at_ns;
        x->g.tasks.at[t->task].left = (uint16_t)t->left;
    }
    rp_horizon_clear(&x->h);
    for (size_t i = 0; i < x->h.ndevices; i++)
        x->h.devices[i].free_ns = cut->free_ns[i];
    for (size_t i = 0; i < cut->waits.n; i++) {
        const struct rp_horizon_entry *e = &cut->waits.at[i];

        x->result.start_ns.at[e->task] = e->ready_ns;
        rp_horizon_put(&x->h, e->task, e->ready_ns);
    }
    x->h.done = cut->begun;
}

static int64_t fill_some_ends(struct rp_resim_tail *x, size_t turn, int64_t last)
{
    for (size_t i = turn; i < x->g.n; i++) {
        uint32_t task = x->begun.at[i];
        int64_t end = x->result.start_ns.at[task] + x->g.tasks.at[task].dur_ns;

        x->result.end_ns.at[task] = end;
        last = end > last ? end : last;
    }
    return last;
}

static int64_t fill_ends(struct rp_resim_tail *x)
{
    const struct rp_plain_task *tasks = x->g.tasks.at;
    const int64_t *start = x->result.start_ns.at;
    int64_t *end = x->result.end_ns.at, last = 0;
    size_t i, n = x->g.n;

    for (i = 0; i < n; i++) {
        end[i] = start[i] + tasks[i].dur_ns;
        last = end[i] > last ? end[i] : last;
    }
    return last;
}

enum rp_code rp_resim_tail_run(struct rp_resim_tail *x, const struct rp_sim_result *base,
                               size_t from, bool *ok, size_t *seen, struct rp_err *err)
{
    size_t k = x->ncuts, turn;

    while (k > 0 && x->cuts[k - 1].begun > from)
        k--;
    turn = k ? x->cuts[k - 1].begun : 0;
    rp_resim_tail_keep(x, base, turn);
    if (k) {
        restore(x, &x->cuts[k - 1]);
    } else {
        rp_horizon_clear(&x->h);
        rp_horizon_begin(&x->h);
    }
    RP_TRY(rp_horizon_go(&x->h, INT64_MAX, err));
    *ok = x->h.done == x->g.n;
    *seen = x->g.n - turn;
    /* A short tail is visited task by task, a long one along the columns. */
    x->result.last_ns = x->g.n - turn < x->g.n / CUTS
                            ? fill_some_ends(x, turn, k ? x->cuts[k - 1].last_ns : 0)
                            : fill_ends(x);
    return RP_OK;
}
