/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filling the compact form, one task after the other with its edges. What does not fit is found on
 * the way: the caller then runs the graph as it is.
 */
#include "sim/plain_graph.h"

#include <stdlib.h>
#include <string.h>

struct filler {
    struct rp_plain_graph *g;
    const struct rp_overlay *o;
    const uint32_t *device; /* as it is called here, by device of the graph */
    bool keep_cut;
    bool fits;
};

static void put_edge(struct filler *f, const struct rp_task_edge *e, int64_t lag_ns)
{
    uint32_t start = e->flags & RP_EDGE_FROM_START ? RP_PLAIN_FROM_START : 0;

    if (lag_ns == RP_LAG_CUT && !f->keep_cut)
        return;
    f->fits &= lag_ns == RP_LAG_CUT || rp_plain_fits(lag_ns);
    f->g->edges.at[f->g->edges.n++] = (struct rp_plain_edge){e->to | start, rp_plain_lag(lag_ns)};
}

static void put_edges(struct filler *f, uint32_t number)
{
    const struct rp_overlay *o = f->o;
    const struct rp_task_graph *g = o->graph;
    uint32_t i;

    if (number < g->tasks.n)
        for (i = g->first.at[number]; i < g->first.at[number + 1]; i++)
            put_edge(f, &g->edges.at[i], o->lag_ns.at[i]);
    if (o->edges.n)
        for (i = o->newest.at[number]; i != UINT32_MAX; i = o->edges.at[i].next)
            put_edge(f, &o->edges.at[i].edge, o->edges.at[i].edge.lag_ns);
}

static void put_tasks(struct filler *f)
{
    const struct rp_overlay *o = f->o;
    struct rp_plain_graph *g = f->g;
    uint64_t sum = 0, count = 0;
    uint32_t i;

    for (i = 0; i < g->n && f->fits; i++) {
        uint32_t device = rp_overlay_task(o, i)->device;
        int64_t dur = o->dur_ns.at[i];

        g->tasks.at[i] = (struct rp_plain_task){o->degree.at[i],
                                                device == RP_NO_DEVICE ? device : f->device[device],
                                                (uint32_t)dur, (uint32_t)g->edges.n};
        f->fits &= rp_plain_fits(dur);
        put_edges(f, i);
        if (device == RP_NO_DEVICE)
            continue;
        f->fits &= dur > 0 && o->graph->devices.at[device].rule == RP_DEVICE_SERIAL;
        sum += (uint64_t)dur;
        count++;
    }
    g->tasks.at[g->n].first = (uint32_t)g->edges.n;
    g->mean_ns = (int64_t)(sum / (count + 1));
}

struct use {
    uint32_t device, tasks;
};

static int by_use(const void *pa, const void *pb)
{
    const struct use *a = pa, *b = pb;

    if (a->tasks != b->tasks)
        return a->tasks > b->tasks ? -1 : 1;
    return (a->device > b->device) - (a->device < b->device);
}

/* Devices with many tasks stand side by side: a run looks at blocks of them. */
static uint32_t *name_devices(const struct rp_overlay *o)
{
    size_t i, n = o->graph->devices.n;
    uint32_t *name = malloc((n + 1) * sizeof *name);
    struct use *use = calloc(n + 1, sizeof *use);

    for (i = 0; use && i < rp_overlay_ntasks(o); i++) {
        uint32_t device = rp_overlay_task(o, (uint32_t)i)->device;

        use[device == RP_NO_DEVICE ? n : device].tasks++;
    }
    for (i = 0; use && i < n; i++)
        use[i].device = (uint32_t)i;
    if (use && name) {
        qsort(use, n, sizeof *use, by_use);
        for (i = 0; i < n; i++)
            name[use[i].device] = (uint32_t)i;
        free(use);
        return name;
    }
    free(use);
    free(name);
    return NULL;
}

enum rp_code rp_plain_graph_init(struct rp_plain_graph *g, const struct rp_overlay *o,
                                 bool keep_cut, struct rp_err *err)
{
    struct filler f = {.g = g, .o = o, .keep_cut = keep_cut, .fits = true};
    uint32_t *device;

    memset(g, 0, sizeof *g);
    g->n = rp_overlay_ntasks(o);
    g->ndevices = o->graph->devices.n;
    if (o->graph->prioritised || o->prioritised || o->graph->device_starts_matter ||
        o->device_starts_matter || g->n >= RP_PLAIN_MOST)
        return RP_OK;
    RP_TRY(rp_vec_reserve(&g->tasks, g->n + 1, err));
    RP_TRY(rp_vec_reserve(&g->edges, o->graph->edges.n + o->edges.n + 1, err));
    f.device = device = name_devices(o);
    if (!device)
        return rp_err_nomem(err, "simulating");
    put_tasks(&f);
    free(device);
    g->tasks.n = g->n;
    g->fits = f.fits;
    return RP_OK;
}

void rp_plain_graph_release(struct rp_plain_graph *g)
{
    rp_vec_release(&g->tasks);
    rp_vec_release(&g->edges);
}
