/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts of a run, two at a time, for the map in the page of the report: how long the ranks of
 * one wait for those of the other, and what the collectives between these two alone carry. Linear
 * in the members of collectives.
 */
#include "base/decides.h"
#include "explain/report/report.h"
#include "explain/report/view.h"

#include <string.h>

#define MOST_HOSTS 256
RP_LIMIT(MOST_HOSTS, "hosts",
         "of the map of the page, whose cells would be too small; comm has all");

struct pair_ctx {
    const struct rp_chain *chain;
    struct rp_report_view *out;
};

/* False where one is not known, or there are too many: what is missing may be the slow one. */
static bool find_hosts(struct pair_ctx *ctx, const struct rp_ranks *ranks)
{
    struct rp_report_view *out = ctx->out;

    for (size_t r = 0; r < ranks->n; r++) {
        const char *host = rp_report_part_of(ranks, r)->host;
        size_t h = 0;

        while (host && h < out->nhosts && strcmp(out->hosts[h], host) != 0)
            h++;
        if (!host || h == MOST_HOSTS)
            return false;
        if (h == out->nhosts)
            out->hosts[out->nhosts++] = host;
        out->host_of[r] = (uint32_t)h;
    }
    return out->nhosts > 1;
}

static struct rp_view_pair *pair_of(const struct pair_ctx *ctx, uint32_t from, uint32_t to)
{
    return &ctx->out->pairs[from * ctx->out->nhosts + to];
}

/* The other host of a collective between two of them alone; else RP_NONE. */
static uint32_t other_host(const struct pair_ctx *ctx, const struct rp_rendezvous *m)
{
    uint32_t first = ctx->out->host_of[m->rank[0]], other = RP_NONE;

    for (uint32_t i = 1; i < m->n; i++) {
        uint32_t host = ctx->out->host_of[m->rank[i]];

        if (host != first && other != RP_NONE && host != other)
            return RP_NONE;
        if (host != first)
            other = host;
    }
    return (int64_t)m->n == m->members ? other : RP_NONE;
}

static void add_transfer(const struct pair_ctx *ctx, const struct rp_rendezvous *m, uint32_t other)
{
    uint32_t first = ctx->out->host_of[m->rank[0]];
    struct rp_view_pair *pair =
        first < other ? pair_of(ctx, first, other) : pair_of(ctx, other, first);
    int64_t shortest = INT64_MAX, size = 0;

    for (uint32_t i = 0; i < m->n; i++) {
        const struct rp_collective *c = &ctx->chain->lists[m->rank[i]]->list.at[m->at[i]];
        int64_t dur = rp_ns_between(c->begin_ns, c->end_ns),
                own = rp_collective_size(c, m->members);

        shortest = dur < shortest ? dur : shortest;
        size = own > size ? own : size;
    }
    pair->count++;
    rp_ns_add(&pair->transfer_ns, shortest);
    rp_ns_add(&pair->size_bytes, size);
}

static void add_waits(const struct pair_ctx *ctx, const struct rp_rendezvous *m)
{
    const struct rp_chain *chain = ctx->chain;

    for (uint32_t i = 0; i < m->n; i++) {
        uint32_t by = rp_rendezvous_awaited(&chain->matched, chain->lists, m, i);
        uint32_t from = ctx->out->host_of[m->rank[i]], to = ctx->out->host_of[m->rank[by]];

        if (from != to)
            rp_ns_add(&pair_of(ctx, from, to)->wait_ns,
                      rp_rendezvous_wait(&chain->matched, chain->lists, m, i));
    }
}

enum rp_code rp_report_join_pairs(const struct rp_ranks *ranks, const struct rp_chain *chain,
                                  struct rp_arena *arena, struct rp_report_view *out,
                                  struct rp_err *err)
{
    struct pair_ctx ctx = {.chain = chain, .out = out};
    int64_t nranks[MOST_HOSTS] = {0};

    out->hosts = RP_ARENA_NEW(arena, const char *, ranks->n + 1);
    out->host_of = RP_ARENA_NEW(arena, uint32_t, ranks->n + 1);
    RP_TRY(rp_err_need(out->hosts && out->host_of, err, "comparing hosts"));
    if (!find_hosts(&ctx, ranks)) {
        out->nhosts = 0;
        return RP_OK;
    }
    out->pairs = RP_ARENA_NEW(arena, struct rp_view_pair, out->nhosts * out->nhosts);
    RP_TRY(rp_err_need(out->pairs, err, "comparing hosts"));
    for (size_t i = 0; chain->ncollectives && i < chain->matched.n; i++) {
        const struct rp_rendezvous *m = &chain->matched.at[i];
        uint32_t other = other_host(&ctx, m);

        if (other != RP_NONE)
            add_transfer(&ctx, m, other);
        add_waits(&ctx, m);
    }
    for (size_t r = 0; r < ranks->n; r++)
        nranks[out->host_of[r]]++;
    for (uint32_t from = 0; from < out->nhosts; from++)
        for (uint32_t to = 0; to < out->nhosts; to++)
            pair_of(&ctx, from, to)->wait_ns /= nranks[from] ? nranks[from] : 1;
    return RP_OK;
}
