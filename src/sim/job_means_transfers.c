/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Means of sends and receives. One is found again in other steps by its place: group of tensors,
 * loop, channel, chunk and slice. A receive of a rank whose sends run beside it is only what it
 * took after its neighbour had sent, on one clock.
 */
#include "facts/intervals.h"
#include "sim/job_means_work.h"

#include <stdlib.h>
#include <string.h>

static uint64_t place_key(uint32_t group, int64_t step, const struct rp_job_transfer *x)
{
    uint64_t k = rp_hash_join((uint64_t)group << 20 ^ (uint64_t)step,
                              (uint64_t)x->loop << 32 | (uint32_t)x->channel);

    return rp_hash_join(k,
                        (uint64_t)x->chunk << 32 | (uint64_t)(uint32_t)x->slice << 1 | x->is_send);
}

static uint32_t group_of(const struct rp_means *m, const char *tensors)
{
    uint32_t g;

    for (g = 0; g < m->out->ngroups; g++)
        if (!strcmp(m->out->groups[g], tensors))
            return g;
    return UINT32_MAX;
}

enum rp_code rp_means_index_transfers(struct rp_means *m, size_t rank)
{
    const struct rp_job_rank *r = &m->job->ranks[rank];
    struct rp_means_rank *w = &m->work[rank];
    size_t i;

    for (i = 0; i < r->transfers.n; i++) {
        const struct rp_job_transfer *x = &r->transfers.at[i];
        uint32_t group = group_of(m, x->tensors);
        size_t step = rp_means_step(w, x->begin_ns);

        if (group != UINT32_MAX && step != SIZE_MAX)
            RP_TRY(rp_map_put(&w->transfer_of, place_key(group, (int64_t)step, x), (uint32_t)i,
                              m->err));
    }
    return RP_OK;
}

/* The rank that sends to this one on a channel, or SIZE_MAX. */
static size_t sender_to(const struct rp_means *m, size_t rank, int32_t channel)
{
    size_t r, i;

    for (r = 0; r < m->out->nranks; r++)
        for (i = 0; i < m->job->ranks[r].links.n; i++)
            if (m->job->ranks[r].links.at[i].channel == channel &&
                m->job->ranks[r].links.at[i].to == m->job->ranks[rank].number)
                return r;
    return SIZE_MAX;
}

static const struct rp_job_transfer *transfer_in(const struct rp_means *m, size_t rank,
                                                 uint32_t group, size_t step,
                                                 const struct rp_job_transfer *like, bool is_send)
{
    struct rp_job_transfer x = *like;
    uint32_t at;

    x.is_send = is_send;
    at = rp_map_get(&m->work[rank].transfer_of, place_key(group, (int64_t)step, &x));
    return at == RP_MAP_NONE ? NULL : &m->job->ranks[rank].transfers.at[at];
}

/* A receive that is posted early waits for the send: that is no time of its own. */
static double own_ns(const struct rp_means *m, size_t rank, size_t from, uint32_t group,
                     size_t step, const struct rp_job_transfer *x)
{
    const struct rp_job_transfer *send;
    double begin = (double)x->begin_ns, end = begin + (double)x->dur_ns, sent;

    if (x->is_send || from == SIZE_MAX)
        return (double)x->dur_ns;
    send = transfer_in(m, from, group, step, x, true);
    if (!send)
        return (double)x->dur_ns;
    sent = (double)rp_ns_sum(send->begin_ns, send->dur_ns) - m->out->offset_ns[from] +
           m->out->offset_ns[rank];
    begin = sent > begin ? sent : begin;
    return end > begin ? end - begin : 0;
}

static int by_group_and_begin(const void *pa, const void *pb)
{
    const struct rp_mean_transfer *a = pa, *b = pb;

    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

static int by_begin_only(const void *pa, const void *pb)
{
    const struct rp_job_transfer *a = *(const struct rp_job_transfer *const *)pa;
    const struct rp_job_transfer *b = *(const struct rp_job_transfer *const *)pb;

    return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

enum rp_code rp_means_find_duplex(struct rp_means *m, size_t rank)
{
    const struct rp_job_rank *r = &m->job->ranks[rank];
    const struct rp_job_transfer **sorted = malloc((r->transfers.n + 1) * sizeof *sorted);
    size_t i;

    if (!sorted)
        return rp_err_nomem(m->err, "simulating a job");
    for (i = 0; i < r->transfers.n; i++)
        sorted[i] = &r->transfers.at[i];
    qsort((void *)sorted, r->transfers.n, sizeof *sorted, by_begin_only);
    for (i = 1; i < r->transfers.n; i++)
        if (sorted[i]->begin_ns < rp_ns_sum(sorted[i - 1]->begin_ns, sorted[i - 1]->dur_ns))
            m->out->ranks[rank].duplex = true;
    free((void *)sorted);
    return RP_OK;
}

enum rp_code rp_means_of_transfers(struct rp_means *m, size_t rank)
{
    const struct rp_job_rank *r = &m->job->ranks[rank];
    struct rp_mean_rank *out = &m->out->ranks[rank];
    size_t i, s;

    for (i = 0; i < r->transfers.n; i++) {
        const struct rp_job_transfer *x = &r->transfers.at[i], *y;
        struct rp_mean_transfer t = {.begin_ns = x->begin_ns,
                                     .group = group_of(m, x->tensors),
                                     .loop = x->loop,
                                     .channel = x->channel,
                                     .chunk = x->chunk,
                                     .slice = x->slice,
                                     .is_send = x->is_send};
        size_t from;
        struct rp_mean dur = {0};

        if (t.group == UINT32_MAX || rp_means_step(&m->work[rank], x->begin_ns) != 0)
            continue;
        from = out->duplex ? sender_to(m, rank, x->channel) : SIZE_MAX;
        for (s = 0; s < m->out->nsteps; s++) {
            y = transfer_in(m, rank, t.group, s, x, x->is_send);
            if (y)
                rp_mean_count(&dur, own_ns(m, rank, from, t.group, s, y));
        }
        t.dur_ns = rp_mean_of(&dur);
        RP_TRY(rp_vec_push(&out->transfers, t, m->err));
    }
    if (out->transfers.n)
        qsort(out->transfers.at, out->transfers.n, sizeof *out->transfers.at, by_group_and_begin);
    return RP_OK;
}
