/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gets times of instructions from an engine that records a trace of its own (PJRT an XSpace,
 * TensorFlow a RunMetadata): the trace is read like any other, and the rows of `top` are the
 * instructions. XLA names kernels after the instructions they were made of; TensorFlow's rows are
 * operations.
 */
#include "base/order.h"
#include "explain/top/answer.h"
#include "formats/write/writers.h"
#include "replay/replay.h"
#include "trace/build/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROFILED_RUNS 5

/* ---- traces of the built-in engines ---- */

/*
 * A trace of a replay on an engine of our own: one process, a thread for the session (compile,
 * upload, first run, then each traced run as a named range) and one for every partition with its
 * instructions, those of called computations inside the call. Compiling, uploading and the first
 * run were measured before; they are placed directly before the traced runs.
 */

struct trace_ctx {
    struct rp_builder *builder;
    uint16_t meta, range, op;
    uint32_t process;
    rp_track session;
    struct rp_err *err;
};

static enum rp_code trace_text(struct trace_ctx *t, const char *s, rp_str *out)
{
    return rp_builder_intern(t->builder, s, strlen(s), out, t->err);
}

static enum rp_code trace_origin(struct trace_ctx *t, const char *category, char phase,
                                 uint8_t kind, uint16_t *out)
{
    struct rp_origin o = {.phase = phase, .kind = kind, .has_category = category != NULL};

    if (category)
        RP_TRY(trace_text(t, category, &o.category));
    return rp_builder_origin(t->builder, &o, out, t->err);
}

/* Gives names as Chrome's format does: by metadata events. */
static enum rp_code give_name(struct trace_ctx *t, rp_track track, const char *what,
                              const char *name)
{
    struct rp_arg arg = {.type = RP_ARG_STR};
    struct rp_raw raw = {.ts_ns = RP_NO_TS,
                         .dur_ns = RP_OPEN_NS,
                         .track = track,
                         .origin = t->meta,
                         .args = &arg,
                         .nargs = 1};

    RP_TRY(trace_text(t, "name", &arg.key));
    RP_TRY(trace_text(t, name, &arg.v.s));
    RP_TRY(trace_text(t, what, &raw.name));
    RP_TRY(rp_builder_shape(t->builder, &arg, 1, &raw.shape, t->err));
    return rp_builder_add(t->builder, &raw, t->err);
}

static enum rp_code add_range(struct trace_ctx *t, const char *name, int64_t begin, int64_t dur)
{
    struct rp_raw raw = {.ts_ns = begin, .dur_ns = dur, .track = t->session, .origin = t->range};

    RP_TRY(trace_text(t, name, &raw.name));
    return rp_builder_add(t->builder, &raw, t->err);
}

static enum rp_code add_op(struct trace_ctx *t, const struct rp_op_span *span, rp_track track)
{
    struct rp_arg arg = {.type = RP_ARG_STR};
    struct rp_raw raw = {.ts_ns = span->begin_ns,
                         .dur_ns = span->end_ns - span->begin_ns,
                         .track = track,
                         .origin = t->op,
                         .args = &arg,
                         .nargs = 1};

    RP_TRY(trace_text(t, "opcode", &arg.key));
    RP_TRY(trace_text(t, span->opcode, &arg.v.s));
    RP_TRY(trace_text(t, span->name, &raw.name));
    RP_TRY(rp_builder_shape(t->builder, &arg, 1, &raw.shape, t->err));
    return rp_builder_add(t->builder, &raw, t->err);
}

static enum rp_code begin_trace(struct trace_ctx *t)
{
    RP_TRY(rp_builder_new(NULL, &t->builder, t->err));
    RP_TRY(trace_text(t, "replay", &rp_builder_borrow_trace(t->builder)->format));
    RP_TRY(trace_origin(t, NULL, 'M', RP_KIND_METADATA, &t->meta));
    RP_TRY(trace_origin(t, "user_annotation", 'X', RP_KIND_ANNOTATION, &t->range));
    RP_TRY(trace_origin(t, "cpu_op", 'X', RP_KIND_CPU_OP, &t->op));
    RP_TRY(rp_builder_process(t->builder, 0, 0, &t->process, t->err));
    RP_TRY(rp_builder_track(t->builder, t->process, 0, 0, true, &t->session, t->err));
    RP_TRY(give_name(t, t->session, "process_name", "reprise replay"));
    return give_name(t, t->session, "thread_name", "session");
}

static enum rp_code add_spans(struct trace_ctx *t, const struct rp_session_run *run,
                              const struct rp_op_spans *spans)
{
    rp_track track = 0;
    unsigned partition = UINT32_MAX;
    char name[64];

    for (size_t i = 0, nth = 0; i < spans->list.n; i++) {
        const struct rp_op_span *span = &spans->list.at[i];

        if (!span->opcode) {
            if (!i) {
                /* Adds what was measured earlier, so that it ends where the first span begins. */
                int64_t at =
                    span->begin_ns - run->times.first_ns - run->upload_ns - run->compile_ns;

                RP_TRY(add_range(t, "compile", at, run->compile_ns));
                RP_TRY(add_range(t, "upload", at + run->compile_ns, run->upload_ns));
                RP_TRY(add_range(t, "first run", span->begin_ns - run->times.first_ns,
                                 run->times.first_ns));
            }
            snprintf(name, sizeof name, "ProfilerStep#%zu", nth++);
            RP_TRY(add_range(t, name, span->begin_ns, span->end_ns - span->begin_ns));
            continue;
        }
        if (span->partition != partition) {
            partition = span->partition;
            snprintf(name, sizeof name, "partition %u", partition);
            RP_TRY(rp_builder_track(t->builder, t->process, (int64_t)partition + 1, 0, true, &track,
                                    t->err));
            RP_TRY(give_name(t, track, "thread_name", name));
        }
        RP_TRY(add_op(t, span, track));
    }
    return RP_OK;
}

static enum rp_code warn_dropped(struct rp_result *result, uint64_t dropped, struct rp_err *err)
{
    if (!dropped)
        return RP_OK;
    return rp_replay_warn(result->root, &result->arena,
                          rp_arena_textf(&result->arena, "%llu instructions are not in the trace",
                                         (unsigned long long)dropped),
                          err);
}

static enum rp_code replay_spans(const struct rp_session_run *run, unsigned runs,
                                 struct rp_trace **out, struct rp_result *result,
                                 struct rp_err *err)
{
    struct trace_ctx t = {.err = err};
    struct rp_op_spans spans = {0};
    enum rp_code code = run->exe->engine->spans(run->exe, runs, &spans, err);

    *out = NULL;
    if (code == RP_OK)
        code = begin_trace(&t);
    if (code == RP_OK)
        code = add_spans(&t, run, &spans);
    if (code == RP_OK)
        code = warn_dropped(result, spans.dropped, err);
    rp_vec_release(&spans.list);
    if (code != RP_OK) {
        rp_builder_free(t.builder);
        return code;
    }
    return rp_builder_finish(t.builder, out, err);
}

/* ---- the profiler of an engine ---- */

/* Gets the trace that the engine's own profiler made of some runs; the caller releases the
   import. */
static enum rp_code engine_trace(const struct rp_session_run *run, struct rp_import *import,
                                 uint8_t **bytes, struct rp_err *err)
{
    struct rp_input *in = NULL;
    size_t n = 0;

    RP_TRY(run->exe->engine->profile(run->exe, PROFILED_RUNS, bytes, &n, err));
    RP_TRY(rp_input_open_memory("the engine's profile", *bytes, n, NULL, &in, err));
    RP_TRY(rp_format_read(in, NULL, import, err));
    if (!import->trace)
        return rp_err_set(err, RP_FORMAT, "the engine's profile is not a trace");
    return RP_OK;
}

static enum rp_code by_profiler(const struct rp_session_run *run, int64_t most,
                                struct rp_result *result, struct rp_err *err)
{
    RP_SCOPED(rp_import_release) struct rp_import import = RP_IMPORT_INIT;
    RP_FREED uint8_t *bytes = NULL;

    RP_TRY(engine_trace(run, &import, &bytes, err));

    struct rp_replay *root = result->root;
    struct rp_top_root *top = RP_ARENA_NEW(&result->arena, struct rp_top_root, 1);
    RP_TRY(rp_err_need(top, err, "listing instructions"));
    RP_TRY(rp_top_of_trace(import.trace, "kernel", most, &result->arena, top, err));
    if (!top->nrows)
        RP_TRY(rp_top_of_trace(import.trace, "op", most, &result->arena, top, err));
    root->instructions = RP_ARENA_NEW(&result->arena, struct rp_replay_op, top->nrows + 1);
    RP_TRY(rp_err_need(root->instructions, err, "listing instructions"));
    for (size_t i = 0; i < top->nrows; i++) {
        const struct rp_top_row *row = &top->rows[i];

        root->instructions[i] =
            (struct rp_replay_op){row->name, row->kind, row->count, row->total_ns, row->share};
    }
    root->ninstructions = top->nrows;
    return RP_OK;
}

enum rp_code rp_replay_trace(const struct rp_session_run *run, const char *path,
                             struct rp_result *result, struct rp_err *err)
{
    RP_SCOPED(rp_import_release) struct rp_import import = RP_IMPORT_INIT;
    const struct rp_writer *writer;
    RP_FREED uint8_t *bytes = NULL;

    RP_TRY(rp_writer_for(NULL, path, &writer, err));
    if (!writer->write)
        return rp_err_set(err, RP_USAGE, "'%s' is a format for programs, not for traces", path);
    if (run->exe->engine->spans)
        RP_TRY(replay_spans(run, PROFILED_RUNS, &import.trace, result, err));
    else if (run->exe->engine->profile)
        RP_TRY(engine_trace(run, &import, &bytes, err));
    else
        return rp_err_set(err, RP_UNSUPPORTED, "engine '%s' does not record times of instructions",
                          run->exe->engine->name);
    return writer->write(import.trace, path, NULL, err);
}

RP_ORDER(by_total, struct rp_replay_op, RP_DOWN(total_ns))

enum rp_code rp_replay_instructions(const struct rp_session_run *run, int64_t most,
                                    struct rp_result *result, struct rp_err *err)
{
    struct rp_replay *root = result->root;
    double all = (double)run->times.first_ns + (double)run->times.warmup_ns;
    size_t n;

    if (run->exe->engine->profile)
        return by_profiler(run, most, result, err);
    if (!run->exe->engine->times)
        return rp_err_set(err, RP_UNSUPPORTED, "engine '%s' does not record times of instructions",
                          run->exe->engine->name);
    const struct rp_op_time *times = run->exe->engine->times(run->exe, &n);
    root->instructions = RP_ARENA_NEW(&result->arena, struct rp_replay_op, n + 1);
    RP_TRY(rp_err_need(root->instructions, err, "listing instructions"));
    for (size_t i = 0; i < run->times.runs.n; i++)
        all += (double)run->times.runs.at[i];
    for (size_t i = 0; i < n; i++)
        root->instructions[i] = (struct rp_replay_op){
            rp_arena_strdup(&result->arena, times[i].name), times[i].opcode,
            (int64_t)times[i].calls, times[i].total_ns, (double)times[i].total_ns / all};
    qsort(root->instructions, n, sizeof *root->instructions, by_total);
    root->ninstructions = (int64_t)n > most ? (size_t)most : n;
    return RP_OK;
}
