/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills the compact form, one task after the other. If something does not fit, the caller runs the
 * graph as it is.
 */
#include "sim/engine/plain_graph.h"

#include "base/decides.h"
#include "base/order.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLE 16384
RP_LIMIT(SAMPLE, "tasks", "tell which devices stand side by side; any gives the same times");

struct plain_ctx {
    const struct rp_overlay *o;
    const uint32_t *device; /* by device of the graph: its number here */
};

/* Finds where the edges of each task begin; false if an edge is not plain. */
static bool put_edges(const struct plain_ctx *f, struct rp_plain_graph *g)
{
    const struct rp_overlay *o = f->o;
    const uint32_t *first = o->graph->first.at;
    const int64_t *lag = o->lag_ns.at;
    size_t i, n = g->n, nold = o->graph->tasks.n, nedges = o->graph->edges.n;
    bool fits = true;

    for (i = 0; i < nold; i++)
        g->tasks.at[i].first = first[i];
    for (; i <= n; i++)
        g->tasks.at[i].first = (uint32_t)nedges;
    for (i = 0; i < nedges; i++)
        fits &= lag[i] == RP_LAG_CUT || rp_plain_fits(lag[i]);
    for (i = 0; i < o->edges.n; i++)
        fits &=
            o->edges.at[i].edge.lag_ns == RP_LAG_CUT || rp_plain_fits(o->edges.at[i].edge.lag_ns);
    g->edges = o->graph->edges.at;
    g->lag_ns = lag;
    g->added = o->edges.n ? o : NULL;
    return fits;
}

static bool put_tasks(const struct plain_ctx *f, struct rp_plain_graph *g)
{
    const struct rp_overlay *o = f->o;
    const struct rp_sim_device *devices = o->graph->devices.at;
    const uint32_t *name = f->device, *degree = o->degree.at;
    const int64_t *durs = o->dur_ns.at;
    struct rp_plain_task *tasks = g->tasks.at;
    uint64_t sum = 0, count = 0;
    uint32_t i, n = (uint32_t)g->n;
    bool fits = true;

    for (i = 0; i < n; i++) {
        uint32_t device = rp_overlay_task(o, i)->device;
        int64_t dur = durs[i];

        tasks[i].left = tasks[i].degree = (uint16_t)degree[i];
        tasks[i].dur_ns = (uint32_t)dur;
        tasks[i].device = device;
        fits &= rp_plain_fits(dur) && degree[i] <= UINT16_MAX;
        if (device == RP_NO_DEVICE)
            continue;
        tasks[i].device = name[device];
        fits &= dur > 0 && devices[device].rule == RP_DEVICE_SERIAL;
        sum += (uint64_t)dur;
        count++;
    }
    g->mean_ns = (int64_t)(sum / (count + 1));
    return fits;
}

struct use {
    uint32_t device, tasks;
};

RP_ORDER(by_use, struct use, RP_DOWN(tasks), RP_UP(device))

/* Numbers devices such that those with many tasks are neighbours, because a run examines blocks of
   them. A sample of the tasks is enough. */
static uint32_t *name_devices(const struct rp_overlay *o)
{
    size_t i, n = o->graph->devices.n, step = rp_overlay_ntasks(o) / SAMPLE + 1;
    uint32_t *name = malloc((n + 1) * sizeof *name);
    struct use *use = calloc(n + 1, sizeof *use);

    for (i = 0; use && i < rp_overlay_ntasks(o); i += step) {
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

/* Whether new tasks are all for devices that run one after the other, which is quickly seen. */
static bool may_fit(const struct rp_overlay *o)
{
    for (size_t i = 0; i < o->tasks.n; i++) {
        uint32_t device = o->tasks.at[i].device;

        if (device != RP_NO_DEVICE && o->graph->devices.at[device].rule != RP_DEVICE_SERIAL)
            return false;
    }
    return !o->graph->prioritised && !o->prioritised && !o->graph->device_starts_matter &&
           !o->device_starts_matter;
}

enum rp_code rp_plain_graph_init(struct rp_plain_graph *g, const struct rp_overlay *o,
                                 struct rp_err *err)
{
    struct plain_ctx f = {.o = o};
    uint32_t *device;

    memset(g, 0, sizeof *g);
    g->n = rp_overlay_ntasks(o);
    g->ndevices = o->graph->devices.n;
    if (!may_fit(o) || g->n >= RP_PLAIN_MOST)
        return RP_OK;
    RP_TRY(rp_vec_reserve_full(&g->tasks, g->n + 1, err));
    f.device = device = name_devices(o);
    RP_TRY(rp_err_need(device, err, "simulating"));
    g->tasks.n = g->n;
    g->fits = put_tasks(&f, g) && put_edges(&f, g);
    free(device);
    return RP_OK;
}

void rp_plain_graph_release(struct rp_plain_graph *g)
{
    rp_vec_release(&g->tasks);
}
