/* SPDX-License-Identifier: Apache-2.0 */
/* Anything that is taken for a program, through the table of formats: hashed and counted. */
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
    const struct rp_format *format;
    struct rp_hashes hashes;
    struct rp_costs costs;
    struct rp_input *in;

    if (rp_input_open_memory("fuzz", data, size, &limits, &in, NULL) != RP_OK)
        return 0;
    if (rp_format_sniff(in, &format, NULL) == RP_OK && format->kind == RP_FORMAT_KIND_PROGRAM &&
        format->read(in, &options, &import, NULL) == RP_OK &&
        rp_program_hash(import.program, &arena, &hashes, NULL) == RP_OK)
        rp_program_count(import.program, &arena, &costs, NULL);
    rp_arena_release(&arena);
    rp_import_release(&import);
    rp_input_close(in);
    return 0;
}
