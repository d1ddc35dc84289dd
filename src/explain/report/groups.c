/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups the ranks of a large run by host, if all traces name theirs, else by equal behaviour: a
 * rank joins the first group whose first rank has times like its own. So a rank that differs from a
 * thousand others is a row of its own.
 */
#include "base/decides.h"
#include "base/order.h"
#include "explain/report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW_GROUPS 4
#define MANY_RANKS 16
#define AGREE      0.05
#define MOST_TEXT  24
RP_DECISION(AGREE, "of the window",
            "times of ranks that do the same work differ by less; more is another role",
            "explain/ranks_that_behave_alike_have_an_edge");
RP_LIMIT(FEW_GROUPS, "ranks a group", "with fewer, groups say nothing, and ranks are shown");
RP_LIMIT(MANY_RANKS, "ranks", "up to so many are shown one by one; JSON has all");
RP_LIMIT(MOST_TEXT, "bytes", "of the list of a group's ranks; beyond it is cut");

#define GROUP(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_report_group, member, type, unit, title, doc, flags)

static const struct rp_field group_fields[] = {
    GROUP(host, STR, NONE, "host", "the host of its ranks; null: they behave alike", RP_SHORTEN),
    GROUP(like_rank, I64, NONE, "like rank", "the first of them", 0),
    GROUP(rank_count, I64, COUNT, "ranks", "how many", 0),
    GROUP(which, STR, NONE, "which", "their numbers", RP_SHORTEN | RP_WHOLE),
    GROUP(compute_ns, I64, NS, "compute", "mean", 0),
    GROUP(comm_ns, I64, NS, "comm", "mean", RP_WIDE),
    GROUP(idle_ns, I64, NS, "idle", "mean", RP_LARGEST),
    GROUP(wait_ns, I64, NS, "waits", "mean, or null", RP_NULLABLE),
    GROUP(last_count, I64, COUNT, "was last",
          "collectives at which one of them arrived last, or null", RP_NULLABLE),
    GROUP(margin_ns, I64, NS, "delays", "how much later than the second last they arrived, or null",
          RP_NULLABLE | RP_LARGEST),
    RP_FIELD_END};
const struct rp_type rp_report_group_type = {"group", sizeof(struct rp_report_group), group_fields,
                                             NULL};
const struct rp_type rp_report_host_type = {"host", sizeof(struct rp_report_group), group_fields,
                                            NULL};

struct group_ctx {
    const struct rp_ranks *ranks;
    struct rp_report_root *out;
    struct rp_arena *arena;
    uint32_t *group_of; /* by rank */
    uint32_t *first;    /* by group: its first rank */
    size_t n;           /* groups */
};

struct host_of {
    const char *host;
    uint32_t rank;
};

RP_ORDER(by_host, struct host_of, strcmp(a->host, b->host), RP_UP(rank))

/* Groups by host; false unless every rank has a host, and some share one. */
static bool group_by_host(struct group_ctx *g)
{
    struct host_of *hosts = RP_ARENA_NEW(g->arena, struct host_of, g->ranks->n + 1);

    for (size_t i = 0; hosts && i < g->ranks->n; i++) {
        hosts[i] = (struct host_of){rp_report_part_of(g->ranks, i)->host, (uint32_t)i};
        if (!hosts[i].host)
            return false;
    }
    if (!hosts)
        return false;
    qsort(hosts, g->ranks->n, sizeof *hosts, by_host);
    for (size_t i = 0; i < g->ranks->n; i++) {
        if (!i || strcmp(hosts[i].host, hosts[i - 1].host) != 0)
            g->first[g->n++] = hosts[i].rank;
        g->group_of[hosts[i].rank] = (uint32_t)g->n - 1;
    }
    return g->n > 1 && g->n < g->ranks->n;
}

static bool near_by(int64_t a, int64_t b, int64_t window_ns)
{
    double by = (double)a - (double)b;

    return by <= AGREE * (double)window_ns && -by <= AGREE * (double)window_ns;
}

static bool behave_alike(const struct rp_report_rank *a, const struct rp_report_rank *b)
{
    return near_by(a->window_ns, b->window_ns, a->window_ns) &&
           near_by(a->compute_ns, b->compute_ns, a->window_ns) &&
           near_by(a->comm_ns, b->comm_ns, a->window_ns) &&
           near_by(a->idle_ns, b->idle_ns, a->window_ns) &&
           near_by(a->wait_ns, b->wait_ns, a->window_ns);
}

/* Groups by behaviour; false unless there are few enough groups to say something. */
static bool group_by_behaviour(struct group_ctx *g)
{
    size_t i, k;

    g->n = 0;
    for (i = 0; i < g->ranks->n; i++) {
        for (k = 0; k < g->n && !behave_alike(&g->out->ranks[g->first[k]], &g->out->ranks[i]);)
            k++;
        if (k == g->n)
            g->first[g->n++] = (uint32_t)i;
        g->group_of[i] = (uint32_t)k;
        if (g->n > g->ranks->n / FEW_GROUPS)
            return false;
    }
    return true;
}

/* "0-7, 16 …" */
static const char *which_ranks(const struct group_ctx *g, size_t group)
{
    char text[MOST_TEXT + 40];
    size_t i, used = 0;
    long long from = -1, to = -1;

    for (i = 0; i <= g->ranks->n; i++) {
        long long number = i < g->ranks->n ? g->ranks->parts[i].number : 0;

        if (i < g->ranks->n && g->group_of[i] != group)
            continue;
        if (i < g->ranks->n && to >= 0 && number == to + 1) {
            to = number;
            continue;
        }
        if (to >= 0)
            used +=
                (size_t)snprintf(text + used, sizeof text - used,
                                 from == to ? "%s%lld" : "%s%lld-%lld", used ? ", " : "", from, to);
        if (used > MOST_TEXT && i < g->ranks->n) {
            snprintf(text + used, sizeof text - used, " …");
            break;
        }
        from = to = number;
    }
    return rp_arena_text(g->arena, text);
}

static void fill_groups(struct group_ctx *g, bool hosts)
{
    struct rp_report_root *out = g->out;

    out->groups = RP_ARENA_NEW(g->arena, struct rp_report_group, g->n + 1);
    if (!out->groups)
        return;
    for (size_t i = 0; i < g->ranks->n; i++) {
        struct rp_report_group *to = &out->groups[g->group_of[i]];
        const struct rp_report_rank *r = &out->ranks[i];
        to->rank_count++;
        rp_ns_add(&to->compute_ns, r->compute_ns);
        rp_ns_add(&to->comm_ns, r->comm_ns);
        rp_ns_add(&to->idle_ns, r->idle_ns);
        if (r->wait_ns == RP_ABSENT_I64) {
            to->wait_ns = to->last_count = to->margin_ns = RP_ABSENT_I64;
            continue;
        }
        rp_ns_add(&to->wait_ns, r->wait_ns);
        rp_ns_add(&to->last_count, r->last_count);
        rp_ns_add(&to->margin_ns, r->margin_ns);
    }
    for (size_t i = 0; i < g->n; i++) {
        struct rp_report_group *to = &out->groups[i];

        to->host = hosts ? rp_report_part_of(g->ranks, g->first[i])->host : NULL;
        to->like_rank = g->ranks->parts[g->first[i]].number;
        to->which = which_ranks(g, i);
        to->compute_ns /= to->rank_count;
        to->comm_ns /= to->rank_count;
        to->idle_ns /= to->rank_count;
        if (to->wait_ns != RP_ABSENT_I64)
            to->wait_ns /= to->rank_count;
    }
    out->ngroups = g->n;
    out->host_rows = out->alike_rows = out->groups;
    *(hosts ? &out->nhost_rows : &out->nalike_rows) = g->n;
}

void rp_report_group_ranks(const struct rp_ranks *ranks, struct rp_arena *arena,
                           struct rp_report_root *out)
{
    struct group_ctx g = {.ranks = ranks, .out = out, .arena = arena};

    if (ranks->n <= MANY_RANKS)
        return;
    g.group_of = RP_ARENA_NEW(arena, uint32_t, ranks->n + 1);
    g.first = RP_ARENA_NEW(arena, uint32_t, ranks->n + 1);
    if (!g.group_of || !g.first)
        return;
    bool hosts = group_by_host(&g);
    if (hosts || group_by_behaviour(&g))
        fill_groups(&g, hosts);
}
