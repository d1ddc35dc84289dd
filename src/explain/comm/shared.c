/* SPDX-License-Identifier: Apache-2.0 */
/* Compares ranks with the one that delays the others most. */
#include "explain/comm/shared.h"

#include "facts/times/intervals.h"

#include <reprise/result.h>

#include <string.h>

typedef bool shares_fn(const struct rp_late_rank *a, const struct rp_late_rank *b);

static bool shares_host(const struct rp_late_rank *a, const struct rp_late_rank *b)
{
    return a->host && b->host && !strcmp(a->host, b->host);
}

/* Whether two ranks use the same slot of different hosts. */
static bool shares_device(const struct rp_late_rank *a, const struct rp_late_rank *b)
{
    return a->device != RP_ABSENT_I64 && a->device == b->device && a->host && b->host &&
           (a == b || strcmp(a->host, b->host) != 0);
}

/* The share of the delay caused by ranks that have the same as the latest one; 0 if that is one
   rank alone, or all ranks have it in common. *late counts those that cause more than an even
   share. */
static double shared_part(const struct rp_late_rank *ranks, size_t n,
                          const struct rp_late_rank *latest, shares_fn *shares, int64_t *late)
{
    int64_t sum = 0, all = 0;
    size_t r, others = 0;

    *late = 0;
    for (r = 0; r < n; r++)
        rp_ns_add(&all, ranks[r].margin_ns);
    for (r = 0; r < n; r++) {
        if (!shares(latest, &ranks[r])) {
            others++;
            continue;
        }
        rp_ns_add(&sum, ranks[r].margin_ns);
        *late += ranks[r].margin_ns > all / (int64_t)n;
    }
    return all > 0 && others && *late > 1 ? (double)sum / (double)all : 0;
}

const char *rp_late_shared(const struct rp_late_rank *ranks, size_t n, struct rp_arena *arena)
{
    const struct rp_late_rank *latest = ranks;
    int64_t late;

    if (!n)
        return NULL;
    for (size_t r = 1; r < n; r++)
        if (ranks[r].margin_ns > latest->margin_ns)
            latest = &ranks[r];
    double part = shared_part(ranks, n, latest, shares_host, &late);
    if (part >= RP_COMM_MOST)
        return rp_arena_textf(arena,
                              "host %s: %lld of its ranks cause %.0f %% of all delay, so look for "
                              "what they share: its network, processors, power or storage",
                              latest->host, (long long)late, 100 * part);
    part = shared_part(ranks, n, latest, shares_device, &late);
    if (part >= RP_COMM_MOST)
        return rp_arena_textf(arena,
                              "device %lld: the ranks on it in %lld hosts cause %.0f %% of all "
                              "delay, so look for what is the same there: its place in the host, "
                              "cooling, network card or cores",
                              (long long)latest->device, (long long)late, 100 * part);
    return NULL;
}
