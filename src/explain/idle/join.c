/* SPDX-License-Identifier: Apache-2.0 */
/* All ranks on one screen: causes added up, the longest gaps of all, one row a rank. */
#include "explain/idle/idle.h"

#include "result/print_units.h"

#include <stdlib.h>
#include <string.h>

static int by_total(const void *pa, const void *pb)
{
    const struct rp_idle_cause *a = pa, *b = pb;

    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    return strcmp(a->cause, b->cause);
}

/* Adds a rank's row to that of the same cause; evidence is that of the rank with most of it. */
static void add_cause(struct rp_idle_root *out, const struct rp_idle_cause *c, int64_t *largest)
{
    size_t i;

    for (i = 0; i < out->ncauses && out->causes[i].cause != c->cause; i++)
        ;
    if (i == out->ncauses) {
        out->causes[out->ncauses++] = (struct rp_idle_cause){.cause = c->cause};
        largest[i] = -1;
    }
    rp_ns_add(&out->causes[i].total_ns, c->total_ns);
    out->causes[i].count += c->count;
    out->causes[i].meaning = c->meaning;
    if (c->longest_ns > out->causes[i].longest_ns)
        out->causes[i].longest_ns = c->longest_ns;
    if (c->total_ns > largest[i]) {
        largest[i] = c->total_ns;
        out->causes[i].evidence = c->evidence;
    }
}

static void add_causes(struct rp_idle_root *out)
{
    int64_t largest[RP_GAP_CAUSES], idle = 0;
    size_t r, i;

    for (r = 0; r < out->nranks; r++) {
        rp_ns_add(&idle, out->ranks[r].idle_ns);
        for (i = 0; i < out->ranks[r].ncauses; i++)
            add_cause(out, &out->ranks[r].causes[i], largest);
    }
    for (i = 0; i < out->ncauses; i++)
        out->causes[i].share = idle > 0 ? (double)out->causes[i].total_ns / (double)idle : 0;
    if (out->ncauses)
        qsort(out->causes, out->ncauses, sizeof *out->causes, by_total);
}

static int by_length(const void *pa, const void *pb)
{
    const struct rp_idle_gap *a = pa, *b = pb;

    if (a->dur_ns != b->dur_ns)
        return a->dur_ns > b->dur_ns ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->begin_ns < b->begin_ns ? -1 : a->begin_ns > b->begin_ns;
}

static enum rp_code add_gaps(struct rp_idle_root *out, size_t limit, struct rp_arena *arena,
                             struct rp_err *err)
{
    size_t r, i, total = 0;

    for (r = 0; r < out->nranks; r++)
        total += out->ranks[r].ngaps;
    out->gaps = RP_ARENA_NEW(arena, struct rp_idle_gap, total + 1);
    if (!out->gaps)
        return rp_err_nomem(err, "explaining idle time");
    for (r = 0; r < out->nranks; r++)
        for (i = 0; i < out->ranks[r].ngaps; i++) {
            out->ranks[r].gaps[i].rank = out->ranks[r].rank;
            out->gaps[out->ngaps++] = out->ranks[r].gaps[i];
        }
    if (out->ngaps)
        qsort(out->gaps, out->ngaps, sizeof *out->gaps, by_length);
    if (out->ngaps > limit)
        out->ngaps = limit;
    return RP_OK;
}

/* "49.6 ms of 58.2 ms (85.2 %) in 932 gaps; 100.0 % of it explained" */
static const char *sentence(const struct rp_idle_root *out, struct rp_arena *arena,
                            int64_t window_ns, int64_t idle_ns, int64_t unknown_ns, int64_t count)
{
    char idle[64], window[64];

    rp_units_format((double)idle_ns, RP_UNIT_NS, idle, sizeof idle);
    rp_units_format((double)window_ns, RP_UNIT_NS, window, sizeof window);
    return rp_arena_printf(arena, "%s of %s (%.1f %%) in %lld gap%s%s; %.1f %% of it explained",
                           idle, window, 100.0 * (double)idle_ns / (double)window_ns,
                           (long long)count, count == 1 ? "" : "s",
                           out->nranks > 1 ? " of all ranks" : "",
                           idle_ns ? 100.0 - 100.0 * (double)unknown_ns / (double)idle_ns : 100.0);
}

static enum rp_code summarize(struct rp_idle_root *out, struct rp_arena *arena, struct rp_err *err)
{
    int64_t window = 0, idle = 0, count = 0, unknown = 0;
    size_t r, i;

    for (r = 0; r < out->nranks; r++) {
        rp_ns_add(&window, out->ranks[r].window_ns);
        rp_ns_add(&idle, out->ranks[r].idle_ns);
        count += out->ranks[r].gap_count;
    }
    for (i = 0; i < out->ncauses; i++)
        if (!strcmp(out->causes[i].cause, rp_gap_cause_names[RP_GAP_UNKNOWN]))
            unknown = out->causes[i].total_ns;
    out->summary = window ? sentence(out, arena, window, idle, unknown, count)
                          : "no device work was recorded, so there is no idle time to explain";
    return out->summary ? RP_OK : rp_err_nomem(err, "explaining idle time");
}

enum rp_code rp_idle_join(struct rp_idle_rank *ranks, size_t n, size_t limit,
                          struct rp_arena *arena, struct rp_idle_root *out, struct rp_err *err)
{
    *out = (struct rp_idle_root){.ranks = ranks, .nranks = n};
    out->causes = RP_ARENA_NEW(arena, struct rp_idle_cause, RP_GAP_CAUSES);
    if (!out->causes)
        return rp_err_nomem(err, "explaining idle time");
    add_causes(out);
    RP_TRY(add_gaps(out, limit, arena, err));
    if (n > 1) {
        out->rows = ranks;
        out->nrows = n;
    }
    return summarize(out, arena, err);
}
