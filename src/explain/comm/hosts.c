/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives by host, and by the pair of hosts that they are between. A transfer is compared with
 * those of the same kind, size and number of ranks between other hosts: with the pair whose median
 * is the lowest. O(n log n) in collectives, and hosts times ranks.
 */
#include "base/hash.h"
#include "base/order.h"
#include "explain/comm/comm.h"

#include <math.h>
#include <string.h>

#define HOST(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_comm_host, member, type, unit, title, doc, flags)

static const struct rp_field host_fields[] = {
    HOST(host, STR, NONE, "host", "its name", 0),
    HOST(rank_count, I64, COUNT, "ranks", "ranks on it", 0),
    RP_FIELD_LIST(struct rp_comm_host, ranks, &rp_type_int, NULL, "their numbers", 0),
    HOST(last_count, I64, COUNT, "last", "how often one of them arrived last", 0),
    HOST(margin_ns, I64, NS, "delay", "by how much they delayed others, added up", RP_LARGEST),
    HOST(wait_ns, I64, NS, "waited", "the mean of its ranks", 0),
    HOST(transfer_ns, I64, NS, "transfer", "the mean of its ranks", 0),
    RP_FIELD_END};
const struct rp_type rp_comm_host_type = {"host", sizeof(struct rp_comm_host), host_fields, NULL};

#define LINK(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_comm_host_link, member, type, unit, title, doc, flags)

static const struct rp_field link_fields[] = {
    LINK(between, STR, NONE, "between", "text output only", RP_SCREEN),
    RP_FIELD_LIST(struct rp_comm_host_link, hosts, &rp_type_string, NULL, "both hosts", 0),
    LINK(count, I64, COUNT, "count", "collectives between these two hosts alone", 0),
    LINK(size_bytes, I64, BYTES, "size", "their sizes, added up", RP_NULLABLE),
    LINK(wait_ns, I64, NS, "waited", "for ranks, the mean of the ranks of each, added up", 0),
    LINK(transfer_ns, I64, NS, "transfer", "the shortest time on a rank of each, added up", 0),
    LINK(bytes_per_s, F64, BPS, "speed", "size / transfer", 0),
    LINK(slower_ratio, F64, RATIO, "slower",
         "transfer / what the same take between other hosts − 1; null: there are none", 0),
    RP_FIELD_END};
const struct rp_type rp_comm_link_type = {"link", sizeof(struct rp_comm_host_link), link_fields,
                                          NULL};

/* A collective between two hosts. */
struct passage {
    uint64_t cls; /* kind, size and number of ranks */
    size_t link;
    int64_t transfer_ns, expected_ns; /* expected: of the best pair; 0: there is no other */
};

RP_ORDER(by_class, struct passage, RP_UP(cls), RP_UP(link), RP_UP(transfer_ns))
RP_ORDER(slowest_first, struct rp_comm_host_link,
         RP_COMPARE(isnan(a->slower_ratio), isnan(b->slower_ratio)), RP_DOWN(slower_ratio),
         strcmp(a->between, b->between))
RP_ORDER(latest_first, struct rp_comm_host, RP_DOWN(margin_ns), strcmp(a->host, b->host))

/* ------------------------------------------------------------------ hosts */

static struct rp_comm_host *host_named(struct rp_comm_root *out, const char *name)
{
    size_t i = 0;

    while (i < out->nhosts && strcmp(out->hosts[i].host, name) != 0)
        i++;
    if (i == out->nhosts)
        out->hosts[out->nhosts++] = (struct rp_comm_host){.host = name};
    return &out->hosts[i];
}

/* Only where the hosts of all ranks are known: what is missing may be the slow one. */
static enum rp_code add_hosts(struct rp_comm_root *out, struct rp_arena *arena, struct rp_err *err)
{
    for (size_t r = 0; r < out->nranks; r++)
        if (!out->ranks[r].host)
            return RP_OK;
    out->hosts = RP_ARENA_NEW(arena, struct rp_comm_host, out->nranks + 1);
    RP_TRY(rp_err_need(out->hosts, err, "comparing hosts"));
    for (size_t r = 0; r < out->nranks; r++) {
        const struct rp_comm_rank *rank = &out->ranks[r];
        struct rp_comm_host *host = host_named(out, rank->host);

        if (!host->ranks)
            host->ranks = RP_ARENA_NEW(arena, int64_t, out->nranks);
        RP_TRY(rp_err_need(host->ranks, err, "comparing hosts"));
        if (!host->nranks || host->ranks[host->nranks - 1] != rank->rank)
            host->ranks[host->nranks++] = rank->rank;
        host->rank_count = (int64_t)host->nranks;
        host->last_count += rank->last_count;
        rp_ns_add(&host->margin_ns, rank->margin_ns);
        rp_ns_add(&host->wait_ns, rank->wait_ns);
        rp_ns_add(&host->transfer_ns, rank->transfer_ns);
    }
    for (size_t h = 0; h < out->nhosts; h++) {
        out->hosts[h].wait_ns /= out->hosts[h].rank_count;
        out->hosts[h].transfer_ns /= out->hosts[h].rank_count;
    }
    rp_sort(out->hosts, out->nhosts, sizeof *out->hosts, latest_first);
    return RP_OK;
}

/* ------------------------------------------------------------------ links */

/* Both hosts of a collective, by their names; false where they are one, or more than two. */
static bool two_hosts(const struct rp_comm_root *out, const struct rp_comm_collective *c,
                      const char *hosts[2])
{
    size_t n = 0;

    for (int64_t i = 0; i < c->seen_count && c->arrivals; i++) {
        const char *host = out->ranks[c->arrivals[i].lane].host;

        if (!host)
            return false;
        if ((n > 0 && !strcmp(hosts[0], host)) || (n > 1 && !strcmp(hosts[1], host)))
            continue;
        if (n == 2)
            return false;
        hosts[n++] = host;
    }
    if (n == 2 && strcmp(hosts[0], hosts[1]) > 0) {
        const char *first = hosts[0];

        hosts[0] = hosts[1];
        hosts[1] = first;
    }
    return n == 2 && c->seen_count == c->rank_count;
}

static struct rp_comm_host_link *link_between(struct rp_comm_root *out, const char *const hosts[2],
                                              struct rp_map *map, struct rp_arena *arena,
                                              struct rp_err *err)
{
    uint64_t key = rp_hash_join(rp_hash_bytes(hosts[0], strlen(hosts[0])),
                                rp_hash_bytes(hosts[1], strlen(hosts[1])));
    uint32_t fresh = (uint32_t)out->nlinks, at;
    struct rp_comm_host_link *link;

    if (rp_map_intern(map, key, fresh, &at, err) != RP_OK)
        return NULL;
    link = &out->links[at];
    if (at != fresh)
        return link;
    *link =
        (struct rp_comm_host_link){.between = rp_arena_textf(arena, "%s, %s", hosts[0], hosts[1]),
                                   .hosts = RP_ARENA_NEW(arena, const char *, 2)};
    if (!link->hosts)
        return NULL;
    link->hosts[0] = hosts[0];
    link->hosts[1] = hosts[1];
    link->nhosts = 2;
    out->nlinks++;
    return link;
}

static int64_t median_of(const struct passage *p, size_t n)
{
    return p[(n - 1) / 2].transfer_ns / 2 + p[n / 2].transfer_ns / 2;
}

/* What the best pair of hosts takes for each class. */
static void expect_passages(struct passage *p, size_t n)
{
    size_t i, end, next;

    rp_sort(p, n, sizeof *p, by_class);
    for (i = 0; i < n; i = end) {
        int64_t best = INT64_MAX;
        size_t pairs = 0;

        for (end = i; end < n && p[end].cls == p[i].cls; end = next, pairs++) {
            int64_t median;

            for (next = end; next < n && p[next].cls == p[i].cls && p[next].link == p[end].link;)
                next++;
            median = median_of(&p[end], next - end);
            best = median < best ? median : best;
        }
        for (size_t k = i; k < end; k++)
            p[k].expected_ns = pairs > 1 ? best : 0;
    }
}

static enum rp_code add_passages(struct rp_comm_root *out, struct passage *p, struct rp_map *map,
                                 struct rp_arena *arena, struct rp_err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < out->ncollectives; i++) {
        const struct rp_comm_collective *c = &out->collectives[i];
        const char *hosts[2];
        struct rp_comm_host_link *link;

        if (!two_hosts(out, c, hosts))
            continue;
        link = link_between(out, hosts, map, arena, err);
        RP_TRY(rp_err_need(link, err, "comparing hosts"));
        link->count++;
        link->size_bytes += c->size_bytes > 0 ? c->size_bytes : 0;
        rp_ns_add(&link->wait_ns, c->wait_ns / (c->seen_count ? c->seen_count : 1));
        rp_ns_add(&link->transfer_ns, c->min_dur_ns);
        p[n++] = (struct passage){
            .cls = rp_hash_join(
                rp_hash_join(rp_hash_bytes(c->kind, strlen(c->kind)), (uint64_t)c->size_bytes),
                (uint64_t)c->rank_count),
            .link = (size_t)(link - out->links),
            .transfer_ns = c->min_dur_ns};
    }
    expect_passages(p, n);
    for (size_t i = 0; i < n; i++)
        if (p[i].expected_ns > 0) {
            out->links[p[i].link].compared_ns += p[i].transfer_ns;
            out->links[p[i].link].expected_ns += p[i].expected_ns;
        }
    for (size_t l = 0; l < out->nlinks; l++) {
        struct rp_comm_host_link *link = &out->links[l];

        link->slower_ratio =
            link->expected_ns > 0 ? (double)link->compared_ns / (double)link->expected_ns - 1 : NAN;
        link->bytes_per_s = link->size_bytes > 0 && link->transfer_ns > 0
                                ? (double)link->size_bytes * 1e9 / (double)link->transfer_ns
                                : NAN;
        if (!link->size_bytes)
            link->size_bytes = RP_ABSENT_I64;
    }
    return RP_OK;
}

static enum rp_code add_links(struct rp_comm_root *out, struct rp_arena *arena, struct rp_err *err)
{
    struct passage *p = RP_ARENA_NEW(arena, struct passage, out->ncollectives + 1);
    struct rp_map map;
    enum rp_code code;

    out->links = RP_ARENA_NEW(arena, struct rp_comm_host_link, out->ncollectives + 1);
    RP_TRY(rp_err_need(p && out->links, err, "comparing hosts"));
    rp_map_init(&map);
    code = add_passages(out, p, &map, arena, err);
    rp_map_release(&map);
    rp_sort(out->links, out->nlinks, sizeof *out->links, slowest_first);
    return code == RP_OK ? rp_arena_check(arena, "comparing hosts", err) : code;
}

enum rp_code rp_comm_add_hosts(struct rp_comm_root *out, size_t limit, struct rp_arena *arena,
                               struct rp_err *err)
{
    RP_TRY(add_hosts(out, arena, err));
    RP_TRY(add_links(out, arena, err));
    out->host_rows = out->hosts;
    out->link_rows = out->links;
    out->nhost_rows = out->nhosts < 2 ? 0 : out->nhosts < limit ? out->nhosts : limit;
    out->nlink_rows = out->nlinks < 2 ? 0 : out->nlinks < limit ? out->nlinks : limit;
    return RP_OK;
}
