/* SPDX-License-Identifier: Apache-2.0 */
/* Chakra traces, messages or JSON: what can be read is hashed and counted. */
#include "formats/formats.h"
#include "program/structure.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct rp_limits limits = {
    .input_bytes = 1 << 20, .token_bytes = 1 << 20, .events = 1 << 16, .members = 1, .depth = 60};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_read_options options = {.limits = &limits};
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_hashes hashes;
    struct rp_costs costs;
    struct rp_input *in;

    if (rp_input_open_memory("fuzz", data, size, &limits, &in, NULL) != RP_OK)
        return 0;
    if ((size && *data == '{' ? rp_format_chakra_json : rp_format_chakra)
                .read(in, &options, &import, NULL) == RP_OK &&
        rp_program_hash(import.program, &arena, &hashes, NULL) == RP_OK)
        rp_program_count(import.program, &arena, &costs, NULL);
    rp_arena_release(&arena);
    rp_import_release(&import);
    rp_input_close(in);
    return 0;
}
