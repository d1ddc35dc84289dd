/* SPDX-License-Identifier: Apache-2.0 */
/* Structured logs of torch.compile. What a guard says is read, too, and graphs as programs. */
#include "formats/list.h"
#include "formats/torch_trace/torch_trace.h"
#include "program/structure.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct rp_limits limits = {
    .input_bytes = 1 << 20, .token_bytes = 1 << 14, .events = 1000, .depth = 32};

static enum rp_code read_graph(void *user, uint32_t compile, const char *name, struct rp_snip text,
                               struct rp_err *err)
{
    const struct rp_read_options options = {.limits = &limits};
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_input *in;

    (void)user;
    (void)compile;
    (void)name;
    RP_TRY(rp_input_open_memory("graph", text.at, text.n, &limits, &in, err));
    if (rp_format_fx.read(in, &options, &import, NULL) == RP_OK)
        (void)rp_program_validate(import.program, NULL);
    rp_import_release(&import);
    rp_input_close(in);
    return RP_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct rp_torch_texts texts = {NULL, read_graph};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_torch_trace trace;
    struct rp_torch_guard guard;
    struct rp_input *in;
    int64_t phases[RP_TORCH_PHASES];

    if (rp_input_open_memory("rank_1_x.log", data, size, &limits, &in, NULL) != RP_OK)
        return 0;
    rp_torch_trace_init(&trace);
    trace.texts = &texts;
    (void)rp_torch_trace_read(&trace, in, &limits, NULL);
    for (size_t i = 0; i < trace.compiles.n; i++) {
        rp_torch_phases(&trace.compiles.at[i], phases);
        for (size_t k = 0; k < trace.compiles.at[i].nreasons; k++)
            rp_torch_guard_read(trace.compiles.at[i].reasons[k], false, &arena, &guard);
    }
    rp_torch_trace_release(&trace);
    rp_input_close(in);
    rp_arena_release(&arena);
    return 0;
}
