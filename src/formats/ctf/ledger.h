/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The ledger of a recording (abi/ctf_wire.h), summed. */
#include "abi/ctf_wire.h"

#include <stdbool.h>
#include <stddef.h>

struct rp_ctf_account {
    uint64_t events[RP_CTF_LOSS_COUNT]; /* by reason */
    uint64_t commands, marks, setup_ns, cpu_ns, recorded_ns, unrecorded_ns, unrecorded_least_ns,
        unrecorded_most_ns, loaded;
};

/* Adds the file to the sums; `rank`: only this rank's losses, NULL: all. False: it is not a ledger.
 */
bool rp_ctf_ledger_add(const char *path, const int32_t *rank, struct rp_ctf_account *to);
uint64_t rp_ctf_account_lost(const struct rp_ctf_account *account); /* without overwritten ones */
/* Completes "N events were lost: ". */
const char *rp_ctf_loss_text(enum rp_ctf_loss why);
