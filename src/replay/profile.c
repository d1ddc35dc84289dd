/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of instructions from an engine that records a trace of its own (PJRT an XSpace, TensorFlow
 * a RunMetadata): the trace is read as any other, and what `top` says of it are the instructions.
 * XLA names kernels after the instructions they were made of; TensorFlow's rows are operations.
 */
#include "replay/profile.h"

#include "formats/write/writers.h"
#include "replay/spans.h"

#include "explain/top/top.h"
#include "formats/formats.h"

#include <stdlib.h>

#define PROFILED_RUNS 5

static enum rp_code from_trace(const struct rp_trace *trace, int64_t most, struct rp_result *result,
                               struct rp_err *err)
{
    struct rp_replay *root = result->root;
    struct rp_top_root *top = RP_ARENA_NEW(&result->arena, struct rp_top_root, 1);

    if (!top)
        return rp_err_nomem(err, "listing instructions");
    RP_TRY(rp_top_of_trace(trace, "kernel", most, &result->arena, top, err));
    if (!top->nrows)
        RP_TRY(rp_top_of_trace(trace, "op", most, &result->arena, top, err));
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

/* The trace of some runs that the engine's own profiler gave; the caller releases the import. */
static enum rp_code engine_trace(const struct rp_session_run *run, struct rp_import *import,
                                 uint8_t **bytes, struct rp_err *err)
{
    struct rp_input *in = NULL;
    size_t n = 0;

    RP_TRY(run->exe->engine->profile(run->exe, PROFILED_RUNS, bytes, &n, err));
    RP_TRY(rp_input_open_memory("the engine's profile", *bytes, n, NULL, &in, err));
    RP_TRY(rp_format_read(in, NULL, import, err));
    if (!import->trace)
        return rp_err_set(err, RP_FORMAT, "the engine's profile is no trace");
    return RP_OK;
}

static enum rp_code by_profiler(const struct rp_session_run *run, int64_t most,
                                struct rp_result *result, struct rp_err *err)
{
    struct rp_import import = RP_IMPORT_INIT;
    uint8_t *bytes = NULL;
    enum rp_code code = engine_trace(run, &import, &bytes, err);

    if (code == RP_OK)
        code = from_trace(import.trace, most, result, err);
    rp_import_release(&import);
    free(bytes);
    return code;
}

enum rp_code rp_replay_trace(const struct rp_session_run *run, const char *path,
                             struct rp_result *result, struct rp_err *err)
{
    struct rp_import import = RP_IMPORT_INIT;
    const struct rp_writer *writer;
    uint8_t *bytes = NULL;
    enum rp_code code;

    RP_TRY(rp_writer_for(NULL, path, &writer, err));
    if (!writer->write)
        return rp_err_set(err, RP_USAGE, "'%s': a format of programs, not of traces", path);
    if (run->exe->engine->spans)
        code = rp_replay_spans(run, PROFILED_RUNS, &import.trace, result, err);
    else if (run->exe->engine->profile)
        code = engine_trace(run, &import, &bytes, err);
    else
        code = rp_err_set(err, RP_UNSUPPORTED, "engine '%s' keeps no times of instructions",
                          run->exe->engine->name);
    if (code == RP_OK)
        code = writer->write(import.trace, path, NULL, err);
    rp_import_release(&import);
    free(bytes);
    return code;
}

static int by_time(const void *a, const void *b)
{
    const struct rp_replay_op *x = a, *y = b;

    return (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);
}

enum rp_code rp_replay_instructions(const struct rp_session_run *run, int64_t most,
                                    struct rp_result *result, struct rp_err *err)
{
    struct rp_replay *root = result->root;
    const struct rp_op_time *times;
    double all = (double)run->times.first_ns + (double)run->times.warmup_ns;
    size_t n;

    if (run->exe->engine->profile)
        return by_profiler(run, most, result, err);
    if (!run->exe->engine->times)
        return rp_err_set(err, RP_UNSUPPORTED, "engine '%s' keeps no times of instructions",
                          run->exe->engine->name);
    times = run->exe->engine->times(run->exe, &n);
    root->instructions = RP_ARENA_NEW(&result->arena, struct rp_replay_op, n + 1);
    if (!root->instructions)
        return rp_err_nomem(err, "listing instructions");
    for (size_t i = 0; i < run->times.runs.n; i++)
        all += (double)run->times.runs.at[i];
    for (size_t i = 0; i < n; i++)
        root->instructions[i] = (struct rp_replay_op){
            rp_arena_strdup(&result->arena, times[i].name), times[i].opcode,
            (int64_t)times[i].calls, times[i].total_ns, (double)times[i].total_ns / all};
    qsort(root->instructions, n, sizeof *root->instructions, by_time);
    root->ninstructions = (int64_t)n > most ? (size_t)most : n;
    return RP_OK;
}
