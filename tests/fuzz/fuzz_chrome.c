/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chrome JSON from any bytes, plain and with salvage; what loads must be a valid trace. The limits
 * are small, so that they are reached.
 */
#include "formats/list.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_once(const uint8_t *data, size_t size, bool salvage)
{
    struct rp_limits limits = {.input_bytes = 1 << 24,
                               .token_bytes = 1 << 16,
                               .events = 100000,
                               .members = 100,
                               .depth = 64};
    struct rp_read_options options = {.limits = &limits, .salvage = salvage};
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import;
    struct rp_input *in;

    if (rp_input_open_memory("fuzz.json", data, size, &limits, &in, &err) != RP_OK)
        return;
    if (rp_format_read(in, &options, &import, &err) != RP_OK)
        return;
    if (import.trace && rp_trace_validate(import.trace, &err) != RP_OK && err.code != RP_NOMEM)
        abort();
    rp_import_release(&import);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_once(data, size, false);
    read_once(data, size, true);
    return 0;
}
