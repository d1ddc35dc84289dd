/* SPDX-License-Identifier: Apache-2.0 */
/* Launch and start times of each stream are in two sorted lists, so a queue length takes two binary
   searches. */
#include "facts/work/launches.h"

#include "base/hash.h"
#include "base/order.h"

#include <stdlib.h>

static enum rp_code add_launch(struct rp_queues *q, const struct rp_work *work, uint32_t i,
                               struct rp_map *graphs, struct rp_err *err)
{
    const struct rp_work_item *x = &work->items.at[i];
    int64_t end = rp_event_end_ns(work->trace, x->launch);
    struct rp_launch launch = {.call = x->launch, .item = i, .items = 1};
    uint32_t place = (uint32_t)q->list.n;

    if (rp_work_is_of_graph(work, x))
        RP_TRY(rp_map_intern(graphs, x->launch, place, &place, err));
    launch.device_ns = rp_ns_between(x->begin_ns, x->end_ns);
    if (place < q->list.n) {
        q->list.at[place].items++;
        rp_ns_add(&q->list.at[place].device_ns, launch.device_ns);
        return RP_OK;
    }
    launch.call_ns = rp_ns_between(work->trace->ev.ts_ns[x->launch], end);
    launch.delay_ns = x->begin_ns > end ? rp_ns_between(end, x->begin_ns) : 0;
    q->begin[x->stream + 1]++;
    return rp_vec_push(&q->list, launch, err);
}

static enum rp_code list_launches(struct rp_queues *q, const struct rp_work *work,
                                  struct rp_err *err)
{
    RP_SCOPED(rp_map_release) struct rp_map graphs = {0}; /* call -> launch */

    for (size_t i = 0; i < work->items.n; i++)
        if (work->items.at[i].launch != RP_NONE)
            RP_TRY(add_launch(q, work, (uint32_t)i, &graphs, err));
    return RP_OK;
}

enum rp_code rp_queues_init(struct rp_queues *out, const struct rp_work *work, struct rp_err *err)
{
    uint32_t s, *at;

    *out = (struct rp_queues){.nstreams = (uint32_t)work->streams.n};
    out->begin = calloc((size_t)out->nstreams + 2, sizeof *out->begin);
    RP_TRY(rp_err_need(out->begin, err, "looking at launches"));
    RP_TRY(list_launches(out, work, err));
    for (s = 0; s < out->nstreams; s++)
        out->begin[s + 1] += out->begin[s];
    out->launched = calloc(out->list.n + 1, sizeof *out->launched);
    out->started = calloc(out->list.n + 1, sizeof *out->started);
    at = calloc((size_t)out->nstreams + 1, sizeof *at);
    if (!out->launched || !out->started || !at) {
        free(at);
        return rp_err_nomem(err, "looking at launches");
    }
    for (size_t i = 0; i < out->list.n; i++) {
        const struct rp_work_item *x = &work->items.at[out->list.at[i].item];
        uint32_t place = out->begin[x->stream] + at[x->stream]++;

        out->launched[place] = work->trace->ev.ts_ns[x->launch];
        out->started[place] = x->begin_ns; /* work is in this order */
    }
    free(at);
    for (s = 0; s < out->nstreams; s++)
        rp_ns_sort(out->launched + out->begin[s], out->begin[s + 1] - out->begin[s]);
    return RP_OK;
}

void rp_queues_release(struct rp_queues *q)
{
    free(q->begin);
    free(q->launched);
    free(q->started);
    rp_vec_release(&q->list);
}

/* How many of n ascending values are at or before a time. */
static uint32_t count_until(const int64_t *v, uint32_t n, int64_t at_ns)
{
    size_t i;

    RP_LOWER_BOUND(i, n, v[i] <= at_ns);
    return (uint32_t)i;
}

int64_t rp_queue_length(const struct rp_queues *q, uint32_t stream, int64_t at_ns)
{
    uint32_t first = q->begin[stream], n = q->begin[stream + 1] - first;

    return (int64_t)count_until(q->launched + first, n, at_ns) -
           (int64_t)count_until(q->started + first, n, at_ns);
}
