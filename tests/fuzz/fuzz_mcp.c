/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a client of `reprise mcp`. The only root holds nothing to read. */
#include "mcp/mcp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const roots[] = {"/dev/null"};
    const struct rp_mcp_options options = {
        .struct_size = sizeof options, .roots = roots, .nroots = 1, .threads = 1};
    struct rp_mcp mcp;
    struct rp_out *to = NULL;

    if (rp_mcp_init(&mcp, &options, NULL, NULL, NULL) == RP_OK &&
        rp_out_open_memory(&to, NULL) == RP_OK)
        rp_mcp_message(&mcp, (const char *)data, size, to);
    rp_out_abandon(to);
    rp_mcp_release(&mcp);
    return 0;
}
