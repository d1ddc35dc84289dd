/* SPDX-License-Identifier: Apache-2.0 */
/* TensorFlow graphs, as text where the first byte is printable, else as protobuf. */
#include "formats/programs.h"
#include "formats/textproto.h"
#include "program/structure.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct rp_limits limits = {
    .input_bytes = 1 << 20, .token_bytes = 1 << 20, .events = 1 << 16, .members = 1, .depth = 60};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_program *p;
    struct rp_hashes hashes;
    struct rp_out *out;
    enum rp_code code;

    if (rp_program_new("graphdef", &p, NULL) != RP_OK)
        return 0;
    if (size && data[0] >= 0x20)
        code = rp_graphdef_fill_text(p, (const char *)data, size, &limits, NULL);
    else
        code = rp_graphdef_fill(p, (struct rp_bytes){data, size}, &limits, NULL);
    if (code == RP_OK && rp_program_hash(p, &arena, &hashes, NULL) == RP_OK &&
        rp_out_open_memory(&out, NULL) == RP_OK) {
        rp_textproto_print(&rp_schema_TF_GRAPH,
                           (struct rp_bytes){(const uint8_t *)p->source.at, p->source.n}, false,
                           out, NULL);
        rp_out_abandon(out);
    }
    rp_arena_release(&arena);
    rp_program_free(p);
    return 0;
}
