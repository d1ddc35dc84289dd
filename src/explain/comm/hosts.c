/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums up collectives by host, by the path that they take (between two hosts, or among the same
 * ranks), and by dimension of the job. A transfer is compared with the same kind, size and number
 * of ranks on the path with the lowest mean. O(n log n) in collectives, and hosts times ranks.
 */
#include "base/hash.h"
#include "base/order.h"
#include "explain/comm/comm.h"
#include "facts/times/intervals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NUMBERS 8
RP_LIMIT(MOST_NUMBERS, "ranks in a cell", "JSON has all of them");

#define HOST(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_comm_host, member, type, unit, title, doc, flags)

static const struct rp_field host_fields[] = {
    HOST(host, STR, NONE, "host", "its name", 0),
    HOST(rank_count, I64, COUNT, "ranks", "ranks on it", 0),
    RP_FIELD_LIST(struct rp_comm_host, ranks, &rp_type_int, NULL, "their numbers", 0),
    HOST(last_count, I64, COUNT, "last", "how often one of them arrived last", 0),
    HOST(margin_ns, I64, NS, "delay", "how long they delayed others, added up", RP_LARGEST),
    HOST(wait_ns, I64, NS, "waited", "the mean of its ranks", 0),
    HOST(transfer_ns, I64, NS, "transfer", "the mean of its ranks", 0),
    RP_FIELD_END};
const struct rp_type rp_comm_host_type = {"host", sizeof(struct rp_comm_host), host_fields, NULL};

#define PATH(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_comm_path, member, type, unit, title, doc, flags)
#define PATH_SUMS                                                                               \
    PATH(count, I64, COUNT, "count", "collectives", 0),                                         \
        PATH(size_bytes, I64, BYTES, "size", "their sizes, added up", RP_NULLABLE),             \
        PATH(wait_ns, I64, NS, "waited",                                                        \
             "time of waiting for ranks: the mean over the ranks of each, added up", 0),        \
        PATH(transfer_ns, I64, NS, "transfer", "the shortest time on a rank of each, added up", \
             0),                                                                                \
        PATH(bytes_per_s, F64, BPS, "speed", "size / transfer", 0)
#define PATH_SLOWER                          \
    PATH(slower_ratio, F64, RATIO, "slower", \
         "transfer / what the same take elsewhere − 1; null: there are none", 0)

static const struct rp_field link_fields[] = {
    PATH(label, STR, NONE, "between", "text output only", RP_SCREEN),
    RP_FIELD_LIST(struct rp_comm_path, hosts, &rp_type_string, NULL, "both hosts", 0), PATH_SUMS,
    PATH_SLOWER, RP_FIELD_END};
const struct rp_type rp_comm_link_type = {"link", sizeof(struct rp_comm_path), link_fields, NULL};

static const struct rp_field group_fields[] = {
    PATH(dimension, STR, NONE, "dimension", "tp, pp, dp, cp, ep; null: not known", 0),
    PATH(group, STR, NONE, NULL, "name of the process group, or null", 0),
    PATH(label, STR, NONE, "ranks", "text output only", RP_SCREEN | RP_SHORTEN),
    RP_FIELD_LIST(struct rp_comm_path, ranks, &rp_type_int, NULL, "those that were given", 0),
    PATH(rank_count, I64, COUNT, NULL, "ranks in it", 0),
    PATH(place, STR, NONE, "where", "node, between (nodes) or null", RP_WIDE),
    PATH_SUMS,
    PATH_SLOWER,
    RP_FIELD_END};
const struct rp_type rp_comm_group_type = {"group", sizeof(struct rp_comm_path), group_fields,
                                           NULL};

static const struct rp_field dimension_fields[] = {
    PATH(dimension, STR, NONE, "dimension", "tp, pp, dp, cp, ep; null: not known", 0),
    PATH(group_count, I64, COUNT, "groups", "groups of ranks, of a pipeline the pairs", 0),
    PATH(rank_count, I64, COUNT, "ranks", "ranks in the largest of them", 0), PATH_SUMS,
    RP_FIELD_END};
const struct rp_type rp_comm_dimension_type = {"dimension", sizeof(struct rp_comm_path),
                                               dimension_fields, NULL};

/* passage: a collective that goes along a path. */
struct passage {
    uint64_t cls; /* class: kind, size, number of ranks and place */
    size_t path;
    int64_t transfer_ns, expected_ns; /* expected: on the best path; 0 if there is no other */
};

RP_ORDER(by_class, struct passage, RP_UP(cls), RP_UP(path), RP_UP(transfer_ns))
RP_ORDER(slowest_first, struct rp_comm_path,
         RP_COMPARE(isnan(a->slower_ratio), isnan(b->slower_ratio)), RP_DOWN(slower_ratio),
         RP_DOWN(wait_ns), strcmp(a->label, b->label))
RP_ORDER(longest_wait_first, struct rp_comm_path, RP_DOWN(wait_ns), RP_DOWN(transfer_ns))
RP_ORDER(latest_first, struct rp_comm_host, RP_DOWN(margin_ns), strcmp(a->host, b->host))

/* ------------------------------------------------------------------ hosts */

/* Needs the hosts of all ranks, because the slow one may be missing. */
static enum rp_code add_hosts(struct rp_comm_root *out, struct rp_arena *arena, struct rp_err *err)
{
    out->nhosts = 0;
    for (size_t r = 0; r < out->nranks; r++)
        if (!out->ranks[r].host)
            return RP_OK;
    out->hosts = RP_ARENA_NEW(arena, struct rp_comm_host, out->nranks + 1);
    RP_TRY(rp_err_need(out->hosts, err, "comparing hosts"));
    for (size_t r = 0; r < out->nranks; r++) {
        const struct rp_comm_rank *rank = &out->ranks[r];

        size_t i = 0;
        while (i < out->nhosts && strcmp(out->hosts[i].host, rank->host) != 0)
            i++;
        if (i == out->nhosts)
            out->hosts[out->nhosts++] = (struct rp_comm_host){.host = rank->host};
        struct rp_comm_host *host = &out->hosts[i];

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

/* ------------------------------------------------------------------ paths */

/* Paths of one sort. */
struct path_sort {
    /* The path of a collective as a number; 0 if it has none of this sort. */
    uint64_t (*key)(const struct rp_comm_root *out, const struct rp_comm_collective *c);
    void (*fill)(const struct rp_comm_root *out, const struct rp_comm_collective *c,
                 struct rp_arena *arena, struct rp_comm_path *path);
};

/* Finds both hosts of a collective by their names; false if there are not exactly two. */
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

static uint64_t link_key(const struct rp_comm_root *out, const struct rp_comm_collective *c)
{
    const char *hosts[2];

    return two_hosts(out, c, hosts) ? rp_hash_join(rp_hash_bytes(hosts[0], strlen(hosts[0])),
                                                   rp_hash_bytes(hosts[1], strlen(hosts[1]))) |
                                          1
                                    : 0;
}

static void link_fill(const struct rp_comm_root *out, const struct rp_comm_collective *c,
                      struct rp_arena *arena, struct rp_comm_path *path)
{
    const char *hosts[2];

    path->hosts = RP_ARENA_NEW(arena, const char *, 2);
    if (!path->hosts || !two_hosts(out, c, hosts))
        return;
    memcpy(path->hosts, hosts, sizeof hosts);
    path->nhosts = 2;
    path->label = rp_arena_textf(arena, "%s, %s", hosts[0], hosts[1]);
}

static const struct path_sort links = {link_key, link_fill};

static uint64_t text_key(uint64_t key, const char *text)
{
    return text ? rp_hash_join(key, rp_hash_bytes(text, strlen(text))) : key;
}

static uint64_t group_key(const struct rp_comm_root *out, const struct rp_comm_collective *c)
{
    (void)out;
    return text_key(text_key(rp_hash_bytes(c->ranks, c->nranks * sizeof *c->ranks), c->dimension),
                    c->group) |
           1;
}

/* "0, 8, 16", "0 to 7" */
static const char *numbers_text(const int64_t *numbers, size_t n, struct rp_arena *arena)
{
    const char *text = "";

    if (n > 2 && numbers[n - 1] - numbers[0] == (int64_t)n - 1)
        return rp_arena_textf(arena, "%lld to %lld", (long long)numbers[0],
                              (long long)numbers[n - 1]);
    for (size_t i = 0; i < n && i < MOST_NUMBERS; i++)
        text = rp_arena_textf(arena, "%s%s%lld", text, i ? ", " : "", (long long)numbers[i]);
    return n > MOST_NUMBERS ? rp_arena_textf(arena, "%s, …", text) : text;
}

static void group_fill(const struct rp_comm_root *out, const struct rp_comm_collective *c,
                       struct rp_arena *arena, struct rp_comm_path *path)
{
    (void)out;
    path->dimension = c->dimension;
    path->group = c->group;
    path->ranks = c->ranks;
    path->nranks = c->nranks;
    path->rank_count = c->rank_count;
    path->place = c->place;
    path->label = numbers_text(c->ranks, c->nranks, arena);
}

static const struct path_sort groups = {group_key, group_fill};

/* Few transfers may take most of the time, on the best path as on others, so means are compared. */
static int64_t mean_of(const struct passage *p, size_t n)
{
    int64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        rp_ns_add(&sum, p[i].transfer_ns);
    return sum / (int64_t)n;
}

/* Sets the time that each class takes on its best path. */
static void expect_passages(struct passage *p, size_t n)
{
    size_t i, end, next;

    rp_sort(p, n, sizeof *p, by_class);
    for (i = 0; i < n; i = end) {
        int64_t best = INT64_MAX;
        size_t paths = 0;

        for (end = i; end < n && p[end].cls == p[i].cls; end = next, paths++) {
            for (next = end; next < n && p[next].cls == p[i].cls && p[next].path == p[end].path;)
                next++;
            int64_t mean = mean_of(&p[end], next - end);
            best = mean < best ? mean : best;
        }
        for (size_t k = i; k < end; k++)
            p[k].expected_ns = paths > 1 ? best : 0;
    }
}

static void add_up(struct rp_comm_path *path, const struct rp_comm_path *more)
{
    path->count += more->count;
    rp_ns_add(&path->size_bytes, more->size_bytes > 0 ? more->size_bytes : 0);
    rp_ns_add(&path->wait_ns, more->wait_ns);
    rp_ns_add(&path->transfer_ns, more->transfer_ns);
}

static void finish_path(struct rp_comm_path *path)
{
    path->slower_ratio =
        path->expected_ns > 0 ? (double)path->compared_ns / (double)path->expected_ns - 1 : NAN;
    path->bytes_per_s = path->size_bytes > 0 && path->transfer_ns > 0
                            ? (double)path->size_bytes * 1e9 / (double)path->transfer_ns
                            : NAN;
    if (!path->size_bytes)
        path->size_bytes = RP_ABSENT_I64;
}

static enum rp_code walk_paths(const struct rp_comm_root *out, const struct path_sort *sort,
                               struct rp_comm_path *paths, size_t *npaths, struct passage *p,
                               struct rp_map *map, struct rp_arena *arena, struct rp_err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < out->ncollectives; i++) {
        const struct rp_comm_collective *c = &out->collectives[i];
        uint64_t key = sort->key(out, c);
        uint32_t at;

        if (!key)
            continue;
        RP_TRY(rp_map_intern(map, key, (uint32_t)*npaths, &at, err));
        if (at == *npaths)
            sort->fill(out, c, arena, &paths[(*npaths)++]);
        add_up(&paths[at],
               &(struct rp_comm_path){.count = 1,
                                      .size_bytes = c->size_bytes,
                                      .wait_ns = c->wait_ns / (c->seen_count ? c->seen_count : 1),
                                      .transfer_ns = c->min_dur_ns});
        if (c->seen_count == c->rank_count)
            p[n++] = (struct passage){
                .cls = rp_hash_join(text_key((uint64_t)c->size_bytes, c->kind),
                                    (uint64_t)c->rank_count << 8 | (uint64_t)c->at_place),
                .path = at,
                .transfer_ns = c->min_dur_ns};
    }
    expect_passages(p, n);
    for (size_t i = 0; i < n; i++)
        if (p[i].expected_ns > 0) {
            rp_ns_add(&paths[p[i].path].compared_ns, p[i].transfer_ns);
            rp_ns_add(&paths[p[i].path].expected_ns, p[i].expected_ns);
        }
    for (size_t i = 0; i < *npaths; i++)
        finish_path(&paths[i]);
    rp_sort(paths, *npaths, sizeof *paths, slowest_first);
    return rp_arena_check(arena, "comparing paths", err);
}

static enum rp_code find_paths(const struct rp_comm_root *out, const struct path_sort *sort,
                               struct rp_arena *arena, struct rp_comm_path **paths, size_t *n,
                               struct rp_err *err)
{
    struct passage *p = calloc(out->ncollectives + 1, sizeof *p);
    struct rp_map map = {0};
    enum rp_code code = rp_err_need(p, err, "comparing paths");

    *n = 0;
    *paths = RP_ARENA_NEW(arena, struct rp_comm_path, out->ncollectives + 1);
    if (code == RP_OK)
        code = rp_err_need(*paths, err, "comparing paths");
    if (code == RP_OK)
        code = walk_paths(out, sort, *paths, n, p, &map, arena, err);
    rp_map_release(&map);
    free(p);
    return code;
}

/* Adds sizes and times of groups, by the dimension that their ranks share. */
static enum rp_code add_dimensions(struct rp_comm_root *out, struct rp_arena *arena,
                                   struct rp_err *err)
{
    out->ndimensions = 0;
    out->dimensions = RP_ARENA_NEW(arena, struct rp_comm_path, RP_DIMENSIONS);
    RP_TRY(rp_err_need(out->dimensions, err, "comparing paths"));
    for (size_t g = 0; g < out->ngroups; g++) {
        const struct rp_comm_path *group = &out->groups[g];
        struct rp_comm_path *to = out->dimensions;

        while (to < out->dimensions + out->ndimensions && to->dimension != group->dimension)
            to++;
        out->ndimensions += to == out->dimensions + out->ndimensions;
        to->dimension = group->dimension;
        to->group_count++;
        if (group->rank_count > to->rank_count)
            to->rank_count = group->rank_count;
        add_up(to, group);
    }
    for (size_t d = 0; d < out->ndimensions; d++)
        finish_path(&out->dimensions[d]);
    rp_sort(out->dimensions, out->ndimensions, sizeof *out->dimensions, longest_wait_first);
    return RP_OK;
}

/* A single row says nothing that the others do not. */
static size_t shown(size_t n, size_t limit)
{
    return n < 2 ? 0 : n < limit ? n : limit;
}

enum rp_code rp_comm_add_hosts(struct rp_comm_root *out, size_t limit, struct rp_arena *arena,
                               struct rp_err *err)
{
    RP_TRY(add_hosts(out, arena, err));
    RP_TRY(find_paths(out, &links, arena, &out->links, &out->nlinks, err));
    RP_TRY(find_paths(out, &groups, arena, &out->groups, &out->ngroups, err));
    RP_TRY(add_dimensions(out, arena, err));
    out->host_rows = out->hosts;
    out->link_rows = out->links;
    out->group_rows = out->groups;
    out->dimension_rows = out->dimensions;
    out->nhost_rows = shown(out->nhosts, limit);
    out->nlink_rows = shown(out->nlinks, limit);
    out->ngroup_rows = shown(out->ngroups, limit);
    out->ndimension_rows = shown(out->ndimensions, limit);
    return RP_OK;
}
