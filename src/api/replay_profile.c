/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of instructions from an engine that records a trace of its own (PJRT an XSpace, TensorFlow
 * a RunMetadata): the trace is read as any other, and what `top` says of it are the instructions.
 * XLA names kernels after the instructions they were made of; TensorFlow's rows are operations.
 */
#include "api/replay_profile.h"

#include "explain/trace_top.h"
#include "formats/formats.h"

#include <stdlib.h>

#define PROFILED_RUNS 5

static enum rp_code rows_of(const struct rp_trace *trace, enum rp_top_by by, const char *word,
                            int64_t most, struct rp_arena *arena, struct rp_top_root *out,
                            struct rp_err *err)
{
    struct rp_scope all = {0};
    struct rp_top_part part = {0};
    const struct rp_top_part *parts[] = {&part};
    enum rp_code code = rp_top_rank(trace, &all, by, &part, err);

    if (code == RP_OK)
        code = rp_top_join(parts, 1, word, "total", most, arena, out, err);
    rp_top_part_release(&part);
    return code;
}

static enum rp_code from_trace(const struct rp_trace *trace, int64_t most, struct rp_result *result,
                               struct rp_err *err)
{
    struct rp_replay *root = result->root;
    struct rp_top_root *top = RP_ARENA_NEW(&result->arena, struct rp_top_root, 1);

    if (!top)
        return rp_err_nomem(err, "listing instructions");
    RP_TRY(rows_of(trace, RP_TOP_KERNEL, "kernel", most, &result->arena, top, err));
    if (!top->nrows)
        RP_TRY(rows_of(trace, RP_TOP_OP, "op", most, &result->arena, top, err));
    root->instructions = RP_ARENA_NEW(&result->arena, struct rp_replay_op, top->nrows + 1);
    if (!root->instructions)
        return rp_err_nomem(err, "listing instructions");
    for (size_t i = 0; i < top->nrows; i++) {
        const struct rp_top_row *row = &top->rows[i];

        root->instructions[i] =
            (struct rp_replay_op){row->name, row->kind, row->count, row->total_ns, row->share};
    }
    root->ninstructions = top->nrows;
    return RP_OK;
}

enum rp_code rp_replay_profile(const struct rp_session_run *run, int64_t most,
                               struct rp_result *result, struct rp_err *err)
{
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_input *in = NULL;
    uint8_t *bytes = NULL;
    enum rp_code code;
    size_t n = 0;

    RP_TRY(run->exe->engine->profile(run->exe, PROFILED_RUNS, &bytes, &n, err));
    code = rp_input_open_memory("the engine's profile", bytes, n, NULL, &in, err);
    if (code == RP_OK)
        code = rp_format_read(in, NULL, &import, err);
    if (code == RP_OK && !import.trace)
        code = rp_err_set(err, RP_FORMAT, "the engine's profile is no trace");
    if (code == RP_OK)
        code = from_trace(import.trace, most, result, err);
    rp_import_release(&import);
    free(bytes);
    return code;
}
