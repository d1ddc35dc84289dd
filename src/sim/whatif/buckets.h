/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the what-if `bucket` knows about the transport, for searches. */
#include "sim/model/transport.h"

#define RP_SIM_MIB (1 << 20)
RP_FACT(RP_SIM_MIB, "bytes", "bucket_cap_mb of DistributedDataParallel counts so");

struct rp_sim_bucket_costs {
    struct rp_transport transport;
    double to_ns_by_byte,
        back_ns_by_byte; /* time for a byte of copies from the device before a transfer, and back */
};

/* Returns RP_UNSUPPORTED if `bucket` cannot be answered. */
enum rp_code rp_sim_bucket_costs(const struct rp_sim_run *run, struct rp_sim_bucket_costs *out,
                                 struct rp_err *err);
