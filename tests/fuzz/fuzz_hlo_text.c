/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HLO text: what can be read is counted, hashed and printed; that must read again and have the same
 * hash.
 */
#include "formats/programs.h"
#include "program/structure.h"
#include "read_format.h"

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

static void print_and_read(const struct rp_program *p, uint64_t hash)
{
    struct rp_program *again = NULL;
    struct rp_out *out;
    const char *text;
    uint64_t second;
    size_t n;

    if (rp_out_open_memory(&out, NULL) != RP_OK)
        return;
    if (rp_hlo_text_print(p, out, NULL) == RP_OK && rp_out_flush(out, NULL) == RP_OK) {
        enum rp_code code;

        text = rp_out_borrow_memory(out, &n);
        code = rp_hlo_text_parse(text, n, &limits, &again, NULL);
        if (code != RP_OK && code != RP_NOMEM && code != RP_LIMIT)
            abort();
        if (again && describe(again, &second) && second != hash)
            abort();
    }
    rp_program_free(again);
    rp_out_abandon(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_program *p;
    uint64_t hash;

    if (rp_hlo_text_parse((const char *)data, size, &limits, &p, NULL) != RP_OK)
        return 0;
    if (describe(p, &hash))
        print_and_read(p, hash);
    fuzz_write_stablehlo(p);
    rp_program_free(p);
    return 0;
}
