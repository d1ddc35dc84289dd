/* SPDX-License-Identifier: Apache-2.0 */
/* Devices wait for collectives that run on the hosts. */
#include "explain/findings/finding.h"

/* Says how much of the time in them is waiting for the last rank. */
static void host_collectives_find(struct rp_findings *f)
{
    const struct rp_chain_rank *c = &f->chain->ranks[f->chain->lead];
    struct rp_report_finding *finding = rp_findings_add_idle(f, 0, 0);

    if (!finding)
        return;
    rp_findings_say_idle(f, finding);
    if (f->chain->ncollectives && f->chain->beside)
        RP_SAY(f, finding,
               "rank %d: of its time in %s on the hosts, %s is waiting for the last rank and %s is "
               "transfer",
               rp_findings_lead_number(f),
               rp_units_count(f->arena, (int64_t)f->chain->ncollectives, "collective"),
               rp_findings_time(f, c->wait_ns), rp_findings_time(f, c->transfer_ns));
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_CALL, .text = "collectives that run on the device, or that overlap with its work"},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .transports = VIA(GLOO) | VIA(MPI) | VIA(NONE) | VIA(NCCL) | VIA(ONECCL),
     .text = "torch.distributed.init_process_group(\"nccl\") instead of gloo: collectives run "
             "on the device"},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .transports = VIA(GLOO) | VIA(MPI) | VIA(NONE) | VIA(NCCL) | VIA(ONECCL),
     .text = "torch.distributed.init_process_group(\"nccl\"), which is RCCL, instead of gloo: "
             "collectives run on the device"},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(INTEL),
     .transports = VIA(GLOO) | VIA(MPI) | VIA(NONE) | VIA(NCCL) | VIA(ONECCL),
     .text = "torch.distributed.init_process_group(\"xccl\") instead of gloo: collectives run "
             "on the device"},
    {RP_ADVISE_MORE, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING), .parallels = PAR(DDP),
     .text = "DistributedDataParallel(model, bucket_cap_mb={}): collectives of another size",
     .what_if = "bucket=5MB|10MB|25MB|50MB|100MB"},
    {RP_ADVISE_CALL, .frameworks = FW(HOROVOD), .vendors = BY(NVIDIA) | BY(AMD),
     .text = "HOROVOD_GPU_OPERATIONS=NCCL when Horovod is built: collectives run on the device"},
    {RP_ADVISE_MORE, .frameworks = FW(HOROVOD),
     .text = "HOROVOD_FUSION_THRESHOLD and HOROVOD_CYCLE_TIME: fewer and larger collectives"},
    {RP_ADVISE_CALL, .frameworks = FW(BYTEPS),
     .text = "BYTEPS_PARTITION_BYTES and BYTEPS_SCHEDULING_CREDIT"},
};

const struct rp_finding rp_finding_host_collectives = {
    .id = "host-collectives",
    .kinds = {{"", "the devices wait for collectives that run on the hosts"}},
    .idle = 1u << RP_GAP_OTHER_RANK,
    .find = host_collectives_find,
    RP_ADVICE(advice),
};
