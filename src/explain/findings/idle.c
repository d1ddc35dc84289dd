/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a finding about one cause of idle time is that time on the chain that sets the
   pace. */
#include "explain/findings/finding.h"

#define RANKS_SAID 3
#define SAID_SHARE 4
RP_LIMIT(RANKS_SAID, "ranks", "that are named as evidence; 'reprise idle' has all of them");
RP_LIMIT(SAID_SHARE, "of the cost, one part in",
         "a rank with less of it is not named behind the first; 'reprise idle' has all of them");

static uint8_t cause_of(const struct rp_finding *row)
{
    return (uint8_t)__builtin_ctz(row->idle);
}

const struct rp_idle_cause *rp_findings_cause(const struct rp_findings *f, size_t rank,
                                              int64_t *total_ns, int64_t *count)
{
    const struct rp_report_part *p = rp_findings_part(f, rank);
    const struct rp_idle_cause *best = NULL;

    *total_ns = *count = 0;
    for (size_t i = 0; i < p->nidle_causes; i++) {
        const struct rp_idle_cause *c = &p->idle_causes[i];

        if (strcmp(c->cause, rp_gap_cause_names[cause_of(f->row)]) != 0)
            continue;
        rp_ns_add(total_ns, c->total_ns);
        *count += c->count;
        if (!best || c->total_ns > best->total_ns)
            best = c;
    }
    return best;
}

struct rp_report_finding *rp_findings_add_idle(struct rp_findings *f, unsigned kind,
                                               int64_t more_ns)
{
    uint8_t cause = cause_of(f->row);
    int64_t lost = rp_ns_between(f->atypical_ns[cause], f->chain->cause_ns[cause]);
    struct rp_report_finding *finding = rp_findings_add(f, kind, rp_ns_sum(lost, more_ns));

    if (finding)
        finding->where.causes = f->row->idle;
    return finding;
}

void rp_findings_say_idle(struct rp_findings *f, struct rp_report_finding *finding)
{
    int64_t below = INT64_MAX;

    for (int round = 0; round < RANKS_SAID; round++) {
        const struct rp_idle_cause *c = NULL;
        int64_t total, count, most = 0, gaps = 0;
        size_t r, best = SIZE_MAX;

        for (r = 0; r < f->ranks->n; r++) {
            const struct rp_idle_cause *row = rp_findings_cause(f, r, &total, &count);

            if (row && total > most && total < below) {
                most = total;
                gaps = count;
                best = r;
                c = row;
            }
        }
        if (best == SIZE_MAX || (round && most < finding->lost_ns / SAID_SHARE))
            return;
        below = most;
        RP_SAY(f, finding, "rank %d: %s idle in %s, the longest %s; mainly %s",
               rp_findings_number(f, best), rp_findings_time(f, most),
               rp_units_count(f->arena, gaps, "gap"), rp_findings_time(f, c->longest_ns),
               c->evidence ? c->evidence : "unknown");
    }
}

void rp_findings_idle(struct rp_findings *f)
{
    struct rp_report_finding *finding = rp_findings_add_idle(f, 0, 0);

    if (finding)
        rp_findings_say_idle(f, finding);
}

/* ------------------------------------------------------------------ of several causes */

void rp_findings_sum_idle(const struct rp_finding_rank *rank, rp_interval_vec *in,
                          int64_t cause_ns[RP_GAP_CAUSES])
{
    const uint32_t others = 1u << RP_GAP_START_UP | 1u << RP_GAP_DATA_LOADER |
                            1u << RP_GAP_ALLOCATION | 1u << RP_GAP_PROFILER |
                            1u << RP_GAP_OTHER_RANK;

    in->n = rp_union_sort(in->at, in->n);
    for (size_t i = 0; i < rank->gaps->n; i++) {
        const struct rp_gap *gap = &rank->gaps->at[i];

        if (!(others >> gap->cause & 1))
            rp_ns_add(&cause_ns[gap->cause],
                      rp_union_covers(in->at, in->n, gap->begin_ns, gap->end_ns));
    }
}

struct rp_report_finding *rp_findings_take_idle(struct rp_findings *f, unsigned kind,
                                                const int64_t cause_ns[RP_GAP_CAUSES])
{
    int64_t lost = 0;

    for (size_t i = 0; i < RP_GAP_CAUSES; i++)
        rp_ns_add(&lost, rp_ns_between(f->atypical_ns[i], cause_ns[i]));
    struct rp_report_finding *finding = rp_findings_add(f, kind, lost);
    for (size_t i = 0; finding && i < RP_GAP_CAUSES; i++)
        if (cause_ns[i] > f->atypical_ns[i])
            f->atypical_ns[i] = cause_ns[i];
    return finding;
}
