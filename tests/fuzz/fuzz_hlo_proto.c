/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HLO protobufs: what can be read is counted, hashed, printed as text and written; what was written
 * must read again and have the same hash.
 */
#include "formats/programs.h"
#include "program/structure.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct rp_limits limits = {
    .input_bytes = 1 << 20, .token_bytes = 1 << 20, .events = 1 << 16, .members = 1, .depth = 60};

/* Whether it could be had: there may be no memory. */
static bool describe(const struct rp_program *p, uint64_t *hash)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_hashes hashes;
    struct rp_costs costs;
    bool done = rp_program_hash(p, &arena, &hashes, NULL) == RP_OK &&
                rp_program_count(p, &arena, &costs, NULL) == RP_OK;

    *hash = done ? hashes.program : 0;
    rp_arena_release(&arena);
    return done;
}

static void write_and_read(const struct rp_program *p, uint64_t hash)
{
    struct rp_proto_writer w = {0};
    struct rp_program *again = NULL;
    struct rp_bytes bytes;
    uint64_t second;

    if (rp_hlo_proto_write(p, &w, NULL) == RP_OK && rp_proto_written(&w, &bytes, NULL) == RP_OK &&
        rp_hlo_proto_parse(bytes.at, bytes.n, &limits, &again, NULL) == RP_OK &&
        describe(again, &second) && second != hash)
        abort();
    rp_program_free(again);
    rp_proto_writer_release(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_program *p;
    struct rp_out *out;
    uint64_t hash;

    if (rp_hlo_proto_parse(data, size, &limits, &p, NULL) != RP_OK)
        return 0;
    if (describe(p, &hash))
        write_and_read(p, hash);
    if (rp_out_open_memory(&out, NULL) == RP_OK) {
        rp_hlo_text_print(p, out, NULL);
        rp_out_abandon(out);
    }
    rp_program_free(p);
    return 0;
}
