/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about one cause of pauses: in a trace without device work, the time in which no operator
   runs, for the rank at the end of the chain. */
#include "explain/findings/finding.h"

void rp_findings_pause(struct rp_findings *f, unsigned kind, enum rp_pause pause)
{
    const struct rp_report_part *lead = rp_findings_lead(f);
    const struct rp_report_pauses *p = &lead->pauses;
    struct rp_report_finding *finding = NULL;

    if (!rp_report_knows_no_work(lead) || rp_report_is_sampled(lead))
        finding = rp_findings_add(f, kind, p->ns[pause]);
    if (!finding)
        return;
    finding->where.names[0] = p->mainly[pause];
    RP_SAY(f, finding, "rank %d: %s in %lld pauses, the longest %s%s%.80s",
           rp_findings_lead_number(f), rp_findings_time(f, p->ns[pause]),
           (long long)p->count[pause], rp_findings_time(f, p->longest_ns[pause]),
           p->mainly[pause] ? "; mainly " : "", p->mainly[pause] ? p->mainly[pause] : "");
}
