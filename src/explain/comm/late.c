/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/comm/late.h"

#include <string.h>

/* What is compared between the participants of a rendezvous. */
enum aspect { COMPUTE, COPIES, IDLE, PREVIOUS, ASPECTS };

static int64_t aspect_of(const struct rp_late_ranks *ranks, const struct rp_rendezvous *m,
                         uint32_t i, int aspect)
{
    const struct rp_comm_lead *lead = &ranks->leads[m->rank[i]][m->at[i]];

    switch (aspect) {
    case COMPUTE:
        return lead->compute_ns;
    case COPIES:
        return lead->copy_ns;
    case IDLE:
        return lead->idle_ns;
    default:
        return rp_clock_time(&ranks->clocks[m->rank[i]], lead->since_ns);
    }
}

/* By how much the last rank to arrive is above the median of all. */
static int64_t excess(const struct rp_late_ranks *ranks, const struct rp_rendezvous *m, int aspect)
{
    for (uint32_t i = 0; i < m->n; i++)
        ranks->scratch[i] = aspect_of(ranks, m, i, aspect);
    rp_ns_sort(ranks->scratch, m->n);
    return rp_ns_between(ranks->scratch[(m->n - 1) / 2], aspect_of(ranks, m, m->last, aspect));
}

struct rp_late rp_late_of(const struct rp_late_ranks *ranks, const struct rp_rendezvous *m)
{
    uint32_t rank = m->rank[m->last], at = m->at[m->last];
    const struct rp_comm_lead *lead = &ranks->leads[rank][at];
    int aspect, best = COMPUTE;
    struct rp_late late = {0};

    for (aspect = 0; aspect < ASPECTS; aspect++) {
        int64_t ns = excess(ranks, m, aspect);

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
        late.cause = at > 0 ? "previous" : "start";
        if (at > 0)
            late.evidence = ranks->lists[rank]->list.at[at - 1].name;
        break;
    default:
        late.cause = best == COMPUTE ? "compute" : "copy";
        late.evidence = lead->kernel;
    }
    return late;
}

void rp_late_add(struct rp_late_sums *sums, const char *cause, const char *evidence,
                 int64_t margin_ns)
{
    size_t i;

    for (i = 0; i < sums->n && strcmp(sums->at[i].cause, cause) != 0; i++)
        ;
    if (i == RP_LATE_CAUSES)
        return;
    if (i == sums->n) {
        sums->n++;
        sums->at[i].cause = cause;
        sums->at[i].longest_ns = -1;
    }
    rp_ns_add(&sums->at[i].total_ns, margin_ns);
    if (margin_ns > sums->at[i].longest_ns) {
        sums->at[i].longest_ns = margin_ns;
        sums->at[i].evidence = evidence;
    }
}

struct rp_late rp_late_main(const struct rp_late_sums *sums)
{
    struct rp_late late = {0};

    for (size_t i = 0; i < sums->n; i++)
        if (!i || sums->at[i].total_ns > late.ns)
            late = (struct rp_late){sums->at[i].cause, sums->at[i].evidence, sums->at[i].total_ns};
    return late;
}
