/* SPDX-License-Identifier: Apache-2.0 */
/* A host call takes far longer than calls of its name usually do. */
#include "explain/findings/finding.h"

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_LOOK,
     .text = "'reprise stalls' lists the calls: look for too few cores (taskset, numactl "
             "--cpunodebind), page faults, locks, monitoring"},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .modes = MODE(TRAINING) | MODE(INFERENCE) | MODE(UNKNOWN),
     .text = "gc.freeze() after the first step and gc.disable(), then gc.collect() every N "
             "steps: Python's collector stops all threads"},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING), .parallels = PAR(MEGATRON),
     .text = "--manual-gc --manual-gc-interval N: all ranks collect garbage at the same step"},
    {RP_ADVISE_MORE, .frameworks = FW(PYTORCH),
     .parallels = PAR(OTHER) | PAR(DDP) | PAR(FSDP) | PAR(DEEPSPEED) | PAR(MEGATRON),
     .text = "OMP_NUM_THREADS = cores / ranks of the machine: the threads of all ranks share "
             "its cores"},
};

const struct rp_finding rp_finding_host_stall = {
    .id = "host-stall",
    .kinds = {{"", "host calls that usually take microseconds took far longer"}},
    .idle = 1u << RP_GAP_HOST_STALL,
    .of_host = true,
    .find = rp_findings_idle,
    RP_ADVICE(advice),
};
