/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/comm/late.h"

#include <stdlib.h>
#include <string.h>

#define MOST_HOPS 128
RP_LIMIT(MOST_HOPS, "collectives", "what happened before so many is another story");

const char rp_late_previous[] = "previous";

/* What is compared between the participants of a rendezvous. */
enum aspect { COMPUTE, COPIES, IDLE, PREVIOUS, ASPECTS, ALL_COMPUTE };

struct late_ctx {
    const struct rp_late_ranks *ranks;
    const struct rp_rendezvous_list *list;
    struct rp_late *out;
    int64_t *scratch; /* room for one number for each rank */
    size_t *first;    /* by rank: where its collectives begin in the next two arrays */
    uint32_t *row;    /* index of the rendezvous of a collective, or RP_NONE */
    uint32_t *before; /* the collective of the same rank that ended last before it, or RP_NONE */
};

static int64_t aspect_of(const struct late_ctx *x, const struct rp_rendezvous *m, uint32_t i,
                         int aspect)
{
    const struct rp_comm_lead *leads = x->ranks->leads[m->rank[i]], *lead = &leads[m->at[i]];
    uint32_t before = x->before[x->first[m->rank[i]] + m->at[i]];

    switch (aspect) {
    case COMPUTE:
        return lead->compute_ns;
    case ALL_COMPUTE:
        return rp_ns_sum(lead->compute_ns, before == RP_NONE ? 0 : leads[before].overlap_ns);
    case COPIES:
        return lead->copy_ns;
    case IDLE:
        return lead->idle_ns;
    default:
        return rp_clock_time(&x->list->clocks[m->rank[i]], lead->since_ns);
    }
}

/* How far the last rank to arrive is above the median of all. */
static int64_t excess(const struct late_ctx *x, const struct rp_rendezvous *m, int aspect)
{
    for (uint32_t i = 0; i < m->n; i++)
        x->scratch[i] = aspect_of(x, m, i, aspect);
    rp_ns_sort(x->scratch, m->n);
    return rp_ns_between(x->scratch[(m->n - 1) / 2], aspect_of(x, m, m->last, aspect));
}

/* A rank that comes early computes beside the previous collective what one that comes late computes
   after it: that is not more. */
static int64_t own_excess(const struct late_ctx *x, const struct rp_rendezvous *m, int aspect)
{
    int64_t ns = excess(x, m, aspect);
    int64_t all = aspect == COMPUTE && ns > 0 ? excess(x, m, ALL_COMPUTE) : ns;

    return all < ns ? all : ns;
}

static struct rp_late late_of(const struct late_ctx *x, const struct rp_rendezvous *m)
{
    uint32_t rank = m->rank[m->last], at = m->at[m->last];
    const struct rp_comm_lead *lead = &x->ranks->leads[rank][at];
    int aspect, best = COMPUTE;
    struct rp_late late = {.by = rank};

    for (aspect = 0; aspect < ASPECTS; aspect++) {
        int64_t ns = own_excess(x, m, aspect);

        if (ns > late.ns) {
            late.ns = ns;
            best = aspect;
        }
    }
    if (late.ns <= 0)
        return late;
    switch (best) {
    case IDLE:
        late.cause = lead->idle ? lead->idle : "host";
        late.evidence = lead->evidence;
        break;
    case PREVIOUS:
        late.cause = at > 0 ? rp_late_previous : "start";
        if (at > 0)
            late.evidence = x->ranks->lists[rank]->list.at[x->before[x->first[rank] + at]].name;
        break;
    default:
        late.cause = best == COMPUTE ? "compute" : "copy";
        late.evidence = lead->kernel;
    }
    return late;
}

/* The previous collective may have ended late because its own last rank was late, or an earlier
   one, or several of them. Finds on the way back the cause in which most of this time was lost;
   otherwise changes nothing. */
static void trace_back(struct late_ctx *x, size_t i)
{
    const struct rp_rendezvous *m = &x->list->at[i];
    struct rp_late *late = &x->out[i], most;
    struct rp_late_sums sums;

    sums.n = 0;
    for (int hop = 0; hop < MOST_HOPS; hop++) {
        size_t rank = m->rank[m->last];
        uint32_t at = x->before[x->first[rank] + m->at[m->last]];

        /* One beside others may end last, and be of no concern to what comes after. */
        while (at != RP_NONE && x->row[x->first[rank] + at] != RP_NONE &&
               x->row[x->first[rank] + at] >= i)
            at = x->before[x->first[rank] + at];
        uint32_t row = at == RP_NONE ? RP_NONE : x->row[x->first[rank] + at];
        if (row == RP_NONE)
            return;
        const struct rp_late *earlier = &x->out[row];
        if (earlier->cause && earlier->cause != rp_late_previous) {
            if (!earlier->before) /* else its parts come later on the way */
                rp_late_add(&sums, earlier, earlier->ns);
            most = rp_late_main(&sums);
            if (earlier->before && earlier->ns > most.ns)
                most = *earlier;
            if (most.ns >= late->ns - most.ns) {
                late->cause = most.cause;
                late->evidence = most.evidence;
                late->by = most.by;
                late->before = true;
                return;
            }
        }
        m = &x->list->at[row];
        i = row;
    }
}

static void index_collectives(struct late_ctx *x)
{
    for (size_t r = 0; r < x->ranks->n; r++) {
        const struct rp_collectives *list = x->ranks->lists[r];
        uint32_t last = RP_NONE;

        for (uint32_t k = 0; k < list->list.n; k++) {
            x->row[x->first[r] + k] = RP_NONE;
            x->before[x->first[r] + k] = last;
            if (last == RP_NONE || list->list.at[k].end_ns > list->list.at[last].end_ns)
                last = k;
        }
    }
    for (size_t i = 0; i < x->list->n; i++)
        for (uint32_t k = 0; k < x->list->at[i].n; k++)
            x->row[x->first[x->list->at[i].rank[k]] + x->list->at[i].at[k]] = (uint32_t)i;
}

enum rp_code rp_late_find(const struct rp_late_ranks *ranks, const struct rp_rendezvous_list *list,
                          struct rp_arena *arena, struct rp_late **out, struct rp_err *err)
{
    struct late_ctx x = {.ranks = ranks, .list = list};
    size_t total = 0;

    x.out = *out = RP_ARENA_NEW(arena, struct rp_late, list->n + 1);
    x.first = calloc(ranks->n + 1, sizeof *x.first);
    for (size_t r = 0; r < ranks->n && x.first; r++) {
        x.first[r] = total;
        total += ranks->lists[r]->list.n;
    }
    x.scratch = calloc(ranks->n + 1, sizeof *x.scratch);
    x.row = calloc(total + 1, sizeof *x.row);
    x.before = calloc(total + 1, sizeof *x.before);
    if (x.out && x.first && x.scratch && x.row && x.before) {
        index_collectives(&x);
        for (size_t i = 0; i < list->n; i++) {
            x.out[i] = late_of(&x, &list->at[i]);
            if (x.out[i].cause == rp_late_previous)
                trace_back(&x, i);
        }
    } else {
        *out = NULL;
    }
    free(x.first);
    free(x.scratch);
    free(x.row);
    free(x.before);
    return rp_err_need(*out, err, "comparing late ranks");
}

void rp_late_add(struct rp_late_sums *sums, const struct rp_late *late, int64_t margin_ns)
{
    size_t i = 0;

    while (i < sums->n &&
           (sums->at[i].late.by != late->by || strcmp(sums->at[i].late.cause, late->cause) != 0))
        i++;
    if (i == RP_LATE_CAUSES)
        return;
    if (i == sums->n) {
        sums->n++;
        sums->at[i].late = *late;
        sums->at[i].total_ns = 0;
        sums->at[i].longest_ns = -1;
    }
    rp_ns_add(&sums->at[i].total_ns, margin_ns);
    if (margin_ns > sums->at[i].longest_ns) {
        sums->at[i].longest_ns = margin_ns;
        sums->at[i].late.evidence = late->evidence;
    }
}

struct rp_late rp_late_main(const struct rp_late_sums *sums)
{
    struct rp_late late = {.by = RP_NONE};

    for (size_t i = 0; i < sums->n; i++)
        if (!i || sums->at[i].total_ns > late.ns) {
            late = sums->at[i].late;
            late.ns = sums->at[i].total_ns;
        }
    return late;
}
