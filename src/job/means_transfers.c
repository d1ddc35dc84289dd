/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes mean times of sends and receives. A transfer is identified across steps by its group of
 * tensors, loop, channel, chunk and slice. A receive that overlaps the sends of its rank counts
 * only from the begin of its neighbour's send, on the common clock.
 */
#include "base/order.h"
#include "facts/times/intervals.h"
#include "job/means.h"

#include <stdlib.h>

static uint64_t place_key(size_t step, const struct rp_job_transfer *x, bool is_send)
{
    uint64_t k = rp_hash_join(rp_means_name_key(x->tensors), step);

    k = rp_hash_join(k, (uint64_t)(uint32_t)x->loop << 32 | (uint32_t)x->channel);
    return rp_hash_join(k, (uint64_t)(uint32_t)x->chunk << 32 | (uint64_t)(uint32_t)x->slice << 1 |
                               is_send);
}

/* ------------------------------------------------------------------ by step */

/* Whether sends and receives of a rank overlap; they are in order of time. */
static bool overlap(const struct rp_job_rank *r, const struct rp_means_item *items, size_t n)
{
    size_t i, count = 0;

    for (i = 1; i < n; i++) {
        const struct rp_job_transfer *a = &r->transfers.at[items[i - 1].at];

        count += items[i].step == items[i - 1].step &&
                 rp_ns_between(items[i].begin_ns, rp_ns_sum(a->begin_ns, a->dur_ns)) >
                     RP_JOB_ROUNDING_NS;
    }
    return 100 * count > n; /* a few rare cases, below a hundredth, do not count */
}

enum rp_code rp_means_index_transfers(struct rp_job_means *m, size_t rank, struct rp_err *err)
{
    const struct rp_job_rank *r = &m->job->ranks[rank];
    struct rp_means_rank *w = &m->work[rank];
    RP_FREED struct rp_means_item *items = malloc((r->transfers.n + 1) * sizeof *items);
    size_t i, n = 0;

    RP_TRY(rp_err_need(items, err, "simulating a job"));
    for (i = 0; i < r->transfers.n; i++) {
        const struct rp_job_transfer *x = &r->transfers.at[i];
        size_t step = rp_means_step(w, x->begin_ns);

        if (step == SIZE_MAX)
            continue;
        items[n++] = (struct rp_means_item){step, x->begin_ns, (uint32_t)i};
        RP_TRY(rp_map_put(&w->transfer_of, place_key(step, x, x->is_send), (uint32_t)i, err));
    }
    RP_TRY(rp_means_sort(m, items, n, &w->transfers, err));
    m->ranks[rank].duplex = overlap(r, items, n);
    return RP_OK;
}

/* ------------------------------------------------------------------ means */

static const struct rp_job_transfer *transfer_in(const struct rp_job_means *m, size_t rank,
                                                 size_t step, const struct rp_job_transfer *like,
                                                 bool is_send)
{
    uint32_t at = rp_map_get(&m->work[rank].transfer_of, place_key(step, like, is_send));

    return at == RP_MAP_NONE ? NULL : &m->job->ranks[rank].transfers.at[at];
}

/* A receive that is posted early waits for the send, and that time does not count as its own. */
static double own_ns(const struct rp_job_means *m, size_t from, size_t step,
                     const struct rp_job_transfer *x)
{
    const struct rp_job_transfer *send =
        x->is_send || from == SIZE_MAX ? NULL : transfer_in(m, from, step, x, true);
    int64_t begin = x->begin_ns, sent;

    if (!send)
        return (double)x->dur_ns;
    sent = rp_ns_sum(send->begin_ns, send->dur_ns);
    begin = sent > begin ? sent : begin;
    return (double)rp_ns_between(begin, rp_ns_sum(x->begin_ns, x->dur_ns));
}

RP_ORDER(by_group_and_begin, struct rp_mean_transfer, RP_UP(group), RP_UP(begin_ns))

static enum rp_code add_mean(struct rp_job_means *m, size_t rank, size_t first, size_t end,
                             const struct rp_job_transfer *x, struct rp_err *err)
{
    struct rp_mean_rank *out = &m->ranks[rank];
    struct rp_mean_transfer t = {
        .begin_ns = x->begin_ns,
        .group = rp_map_get(&m->group_of, (uint64_t)strtoll(x->tensors, NULL, 10)),
        .loop = x->loop,
        .channel = x->channel,
        .chunk = x->chunk,
        .slice = x->slice,
        .is_send = x->is_send};
    struct rp_mean dur = {0};
    size_t s, from = out->duplex ? rp_job_sender(m, rank, x->channel) : SIZE_MAX;

    if (t.group == RP_MAP_NONE || strcmp(m->groups[t.group], x->tensors) != 0)
        return RP_OK;
    for (s = first; s < end; s++) {
        const struct rp_job_transfer *y = transfer_in(m, rank, s, x, x->is_send);

        if (y)
            rp_mean_count(&dur, own_ns(m, from, s, y));
    }
    t.dur_ns = rp_mean_of(&dur);
    return rp_vec_push(&out->transfers, t, err);
}

enum rp_code rp_means_of_transfers(struct rp_job_means *m, size_t rank, size_t first, size_t end,
                                   struct rp_err *err)
{
    const struct rp_means_order *order = &m->work[rank].transfers;
    struct rp_mean_rank *out = &m->ranks[rank];
    size_t i, g = 0;

    out->transfers.n = 0;
    for (i = order->first[first]; i < order->first[first + 1]; i++) {
        const struct rp_job_transfer *x = &m->job->ranks[rank].transfers.at[order->at[i]];

        if (transfer_in(m, rank, first, x, x->is_send) == x) /* one a place */
            RP_TRY(add_mean(m, rank, first, end, x, err));
    }
    rp_sort(out->transfers.at, out->transfers.n, sizeof *out->transfers.at, by_group_and_begin);
    for (i = 0; g < m->ngroups; g++) {
        out->groups[g].first = i;
        while (i < out->transfers.n && out->transfers.at[i].group == g)
            i++;
        out->groups[g].end = i;
    }
    return RP_OK;
}
