/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that take several times what their links need. */
#include "explain/findings/finding.h"

enum { RATE, LINK, NIC };

static void slow_link_find(struct rp_findings *f)
{
    /* Find paths that are slower than others of their kind. */
    const struct rp_places *places = &f->chain->places;

    for (size_t i = 0; i < places->n; i++) {
        const struct rp_place_found *p = &places->at[i];

        if (p->kind != RP_PLACE_LINK && p->kind != RP_PLACE_NIC)
            continue;
        struct rp_report_finding *finding =
            rp_findings_add_place(f, p->kind == RP_PLACE_LINK ? LINK : NIC, p);
        if (!finding)
            continue;
        RP_SAY(f, finding, "transfers %s %s took %s those of the same kind and size elsewhere",
               p->kind == RP_PLACE_LINK ? "between" : "of", rp_findings_who_text(f, &finding->who),
               rp_findings_times_text(f, 1 + p->slower));
        if (p->nsteps < places->all_steps)
            RP_SAY(f, finding, "in %zu of %zu steps, from step %lld to step %lld", p->nsteps,
                   places->all_steps, (long long)p->first_step, (long long)p->last_step);
    }

    struct rp_report_finding *finding = rp_findings_add(f, RATE, f->chain->slow_ns);
    if (!finding)
        return;
    finding->at_most = true; /* its time is also exposed communication */
    for (int i = 0; i < RP_PLACES; i++)
        if (f->chain->slow_link[i])
            rp_findings_say(finding, f->chain->slow_link[i]);
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_LOOK,
     .text =
         "'reprise comm' has the bandwidth of each kind and size beside what its link can carry"},
    {RP_ADVISE_CALL, .vendors = BY(NVIDIA),
     .text = "NCCL_DEBUG=INFO: 'via P2P' within a node, 'NET/IB' with GDRDMA between nodes; "
             "nvidia-smi topo -m shows the links"},
    {RP_ADVISE_CALL, .vendors = BY(AMD),
     .text = "NCCL_DEBUG=INFO: 'via P2P' within a node, 'NET/IB' with GDRDMA between nodes; "
             "rocm-smi --showtopo shows the links"},
};

const struct rp_finding rp_finding_slow_link = {
    .id = "slow-link",
    .kinds = {{"rate", "large collectives take several times what their links need"},
              {"link", "transfers between two hosts take longer than the same elsewhere"},
              {"nic", "all transfers of a host with others take longer than the same elsewhere"}},
    .condition = "half of the large collectives at a place are slow "
                 "([Communication](definitions/ranks.md#communication))",
    .cost =
        "of a link or host as of `straggler`; else what they take longer than their links need while no compute runs, the mean of the "
        "ranks; an upper bound, part of `exposed-comm`",
    .find = slow_link_find,
    RP_ADVICE(advice),
};
