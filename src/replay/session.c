/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses inputs of a replay, in this order: a file of arrays that the user names; what the file of
 * the program recorded; synthetic ones. Arrays are called in0, in1 ... in the order of the
 * parameters (also arg0, arr_0 and p0), or p<k>_in0 for partition k of several.
 */
#include "replay/replay.h"

#include "base/clock.h"
#include "exec/data/groups.h"
#include "exec/data/synthetic.h"
#include "formats/programs.h"
#include "replay/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rp_tensor *find_array(const struct rp_arrays *arrays, const char *const *kinds,
                                    size_t partition, size_t i)
{
    struct rp_tensor *t = NULL;
    char name[64];

    for (size_t k = 0; kinds[k] && !t; k++) {
        snprintf(name, sizeof name, "p%zu_%s%zu", partition, kinds[k], i);
        t = rp_arrays_find(arrays, name);
        snprintf(name, sizeof name, "%s%zu", kinds[k], i);
        if (!t)
            t = rp_arrays_find(arrays, name);
    }
    return t;
}

static const char *const input_names[] = {"in", "arg", "arr_", "param", NULL};
static const char *const output_names[] = {"out", "result", NULL};

struct rp_tensor *rp_session_input(const struct rp_session *s, size_t i)
{
    return find_array(&s->inputs, input_names, 0, i);
}

/* ---- where inputs come from ---- */

static enum rp_code from_arrays(struct rp_session *s, const char *file, struct rp_err *err)
{
    for (size_t p = 0; p < s->partitions; p++)
        for (size_t i = 0; i < s->signature.nin; i++) {
            const struct rp_slot *slot = &s->signature.in[i];
            struct rp_tensor *t = find_array(&s->inputs, input_names, p, i);
            char name[32];

            snprintf(name, sizeof name, "in%zu", i);
            if (!t)
                return rp_err_set(err, RP_FORMAT,
                                  "'%s': array '%s' is missing; the program has %zu inputs", file,
                                  name, s->signature.nin);
            enum rp_code code = rp_session_shard(s, slot, false, i, t, (unsigned)p, name,
                                                 &s->arguments[p * s->signature.nin + i], err);
            if (code != RP_OK)
                return rp_err_prefix(err, code, "'%s'", file);
        }
    return RP_OK;
}

/* Whether partitions recorded blocks of arrays that the program has as a whole. */
static bool recorded_in_blocks(const struct rp_session *s, size_t parts)
{
    for (size_t i = 0; i < s->signature.nin && parts > 1; i++) {
        const struct rp_slot *slot = &s->signature.in[i];
        const struct rp_tensor *t = s->snapshot.arguments.at[i];

        if (t->rank == slot->rank && memcmp(t->dims, slot->dims, t->rank * sizeof *t->dims) != 0)
            return true;
    }
    return false;
}

static enum rp_code from_snapshot(struct rp_session *s, struct rp_err *err)
{
    size_t parts = s->snapshot.partitions ? s->snapshot.partitions : 1;
    size_t have = s->snapshot.arguments.n / parts;

    if (s->snapshot.arguments.n % parts || have != s->signature.nin)
        return rp_err_set(err, RP_FORMAT, "'%s': %zu inputs are recorded, the program has %zu",
                          s->file, have, s->signature.nin);
    if (s->partitions == parts && recorded_in_blocks(s, parts)) {
        for (size_t k = 0; k < s->snapshot.arguments.n; k++)
            RP_TRY(rp_arrays_add(&s->inputs, rp_tensor_keep(s->snapshot.arguments.at[k]), err,
                                 "p%zu_in%zu", k / s->signature.nin, k % s->signature.nin));
        RP_TRY(rp_session_unshard(s, NULL, err));
        return from_arrays(s, s->file, err);
    }
    for (size_t p = 0; p < s->partitions; p++)
        for (size_t i = 0; i < have; i++) {
            const struct rp_slot *slot = &s->signature.in[i];
            char name[32];

            snprintf(name, sizeof name, "recorded in%zu", i);
            enum rp_code code =
                rp_array_as(s->snapshot.arguments.at[p % parts * have + i], slot->elem, slot->dims,
                            slot->rank, name, &s->arguments[p * have + i], err);
            if (code != RP_OK)
                return rp_err_prefix(err, code, "'%s'", s->file);
        }
    return RP_OK;
}

static const char *inputs_from(struct rp_session *s, const struct rp_session_options *o)
{
    if (o->inputs)
        return rp_arena_strdup(s->arena, o->inputs);
    if (s->inputs.list.n)
        return "recorded in the bundle";
    if (s->snapshot.arguments.n)
        return rp_arena_printf(s->arena, "recorded in the %s", s->snapshot.kind);
    if (!s->signature.nin)
        return "none";
    return rp_arena_printf(s->arena, "synthetic, seed %llu", (unsigned long long)o->seed);
}

enum rp_code rp_session_inputs(struct rp_session *s, const struct rp_session_options *o,
                               struct rp_replay *root, struct rp_err *err)
{
    struct rp_bytes wire;

    s->expect = o->expect;
    if (o->expect)
        RP_TRY(rp_arrays_read(o->expect, NULL, &s->expected, err));
    if (s->graph) {
        root->partitions = 1;
        if (o->inputs)
            RP_TRY(rp_arrays_read(o->inputs, NULL, &s->inputs, err));
        return rp_replay_graph_inputs(s, o, root, err);
    }
    if (o->inputs)
        RP_TRY(rp_arrays_read(o->inputs, NULL, &s->inputs, err));
    RP_TRY(rp_session_platform(s, err));
    RP_TRY(rp_session_refine(s, o, err));
    RP_TRY(rp_session_callbacks(s, err));
    enum rp_code code = rp_signature_find(s->program.program, s->arena, &s->signature, err);
    if (code == RP_OK && rp_replay_wire(s, &wire))
        code = rp_snapshot_read(wire.at, wire.n, wire.at != s->program.bytes, &s->snapshot, err);
    if (code != RP_OK)
        return rp_err_prefix(err, code, "'%s'", s->file);
    s->partitions = o->partitions            ? (size_t)o->partitions
                    : s->snapshot.partitions ? s->snapshot.partitions
                                             : s->signature.partitions;
    s->arguments = calloc(s->partitions * s->signature.nin + 1, sizeof(struct rp_tensor *));
    RP_TRY(rp_err_need(s->arguments, err, "preparing inputs"));
    const char *from = inputs_from(s, o);

    root->inputs = s->platform < 0 ? from
                                   : rp_arena_printf(s->arena, "%s; _platform_index %lld", from,
                                                     (long long)s->platform);
    root->partitions = (int64_t)s->partitions;
    if (o->inputs || s->inputs.list.n)
        return from_arrays(s, o->inputs ? o->inputs : s->file, err);
    if (s->snapshot.arguments.n)
        return from_snapshot(s, err);
    bool whole = rp_program_is_whole(s->program.program); /* all partitions have the same arrays */
    for (size_t p = 0; p < s->partitions; p++)
        RP_TRY(rp_synthetic_inputs(s->program.program, &s->signature, o->seed + (whole ? 0 : p),
                                   s->arguments + p * s->signature.nin, err));
    return s->platform < 0 ? RP_OK : rp_session_set_platform(s, err);
}

void rp_session_release(struct rp_session *s)
{
    for (size_t i = 0; s->arguments && i < s->partitions * s->signature.nin; i++)
        rp_tensor_drop(s->arguments[i]);
    free(s->arguments);
    rp_snapshot_release(&s->snapshot);
    rp_arrays_release(&s->inputs);
    rp_arrays_release(&s->expected);
    rp_replay_graph_release(s->graph);
    rp_session_callbacks_release(s);
    rp_import_release(&s->import);
}

/* ---- the program in the wire form that an engine takes ---- */

/*
 * Gives the program to an engine with a third-party compiler. A protobuf, also one that was text,
 * is passed unchanged, so that nothing is lost that our model does not represent; HLO text is first
 * written as a module; StableHLO stays text.
 */

bool rp_replay_wire(const struct rp_session *s, struct rp_bytes *out)
{
    const struct rp_program *p = s->import.program;

    *out = (struct rp_bytes){0};
    if (s->graph || !p || strcmp(p->language, "hlo") != 0)
        return false;
    if (!strcmp(s->program.format, "hlo-proto"))
        *out = (struct rp_bytes){s->program.bytes, s->program.nbytes};
    else if (p->source.n)
        *out = (struct rp_bytes){(const uint8_t *)p->source.at, p->source.n};
    return out->n > 0;
}

/* Fills in the module of the program; if it had to be written, it is in `made`, which must live
   until the engine is done with it. */
static enum rp_code module_for_engine(const struct rp_session *s, const struct rp_engine *engine,
                                      struct rp_proto_writer *made, struct rp_engine_program *out,
                                      struct rp_err *err)
{
    const struct rp_program *p = s->program.program;
    struct rp_bytes bytes = {0}, wire;

    *out = s->program;
    if (s->graph && engine == &rp_engine_tf)
        return rp_replay_graph_module(s, made, out, err);
    if (s->graph && !p) {
        if (err)
            *err = s->graph->why;
        return s->graph->why.code;
    }
    if (!engine->wants_module || out->module || !p || strcmp(p->language, "hlo") != 0)
        return RP_OK;
    if (!rp_replay_wire(s, &wire) || !rp_hlo_proto_module(wire.at, wire.n, &bytes)) {
        RP_TRY(rp_hlo_module_write(p, made, err));
        RP_TRY(rp_proto_written(made, &bytes, err));
    }
    out->module = bytes.at;
    out->nmodule = bytes.n;
    return RP_OK;
}

/* ---- on an engine ---- */

enum rp_code rp_session_execute(const struct rp_session *s, struct rp_session_run *run,
                                struct rp_err *err)
{
    const struct rp_engine *engine = run->engine;
    RP_SCOPED(rp_proto_writer_release) struct rp_proto_writer made = {0};
    struct rp_engine_program program;

    run->options.partitions = (unsigned)s->partitions;
    run->options.arguments = s->arguments;
    run->options.narguments = s->arguments ? s->partitions * s->signature.nin : 0;
    RP_TRY(module_for_engine(s, engine, &made, &program, err));
    int64_t begin = rp_clock_ns();
    RP_TRY(engine->compile(run->where, &program, &run->options, &run->exe, err));
    run->compile_ns = rp_clock_ns() - begin - (run->exe ? run->exe->load_ns : 0);
    if (!run->exe)
        return rp_err_set(err, RP_BUG, "engine '%s' returned no executable", engine->name);
    if (run->exe->narguments != rp_replay_narguments(s, engine))
        return rp_err_set(err, RP_FORMAT, "engine '%s' expects %zu inputs, the program has %zu",
                          engine->name, run->exe->narguments, s->signature.nin);
    begin = rp_clock_ns();
    RP_TRY(engine->upload(run->exe, s->arguments, err));
    run->upload_ns = rp_clock_ns() - begin;
    if (run->timed)
        RP_TRY(rp_timing_run(run->exe, &run->timing, &run->times, err));
    else
        RP_TRY(engine->run(run->exe, err));
    run->noutputs = run->exe->noutputs * run->exe->partitions;
    run->outputs = calloc(run->noutputs + 1, sizeof(struct rp_tensor *));
    RP_TRY(rp_err_need(run->outputs, err, "fetching outputs"));
    return engine->fetch(run->exe, run->outputs, err);
}

void rp_session_run_release(struct rp_session_run *run)
{
    for (size_t i = 0; run->outputs && i < run->noutputs; i++)
        rp_tensor_drop(run->outputs[i]);
    free(run->outputs);
    rp_timing_release(&run->times);
    if (run->exe)
        run->exe->engine->release(run->exe);
}

/* An output of bounded size, "f32[<=8]", may be any array that is not larger. */
static bool is_within_bounds(const struct rp_program *p, const struct rp_slot *slot,
                             const struct rp_tensor *t)
{
    if (!p || slot->shape >= p->shapes.n || t->rank != slot->rank ||
        !(p->shapes.at[slot->shape].flags & RP_SHAPE_DYNAMIC))
        return false;
    for (size_t i = 0; i < t->rank; i++)
        if (t->dims[i] > slot->dims[i])
            return false;
    return true;
}

enum rp_code rp_session_expected(const struct rp_session *s, struct rp_tensor **out, size_t n,
                                 struct rp_err *err)
{
    size_t each = s->signature.nout;

    if (!s->expected.list.n && s->snapshot.results.n != each)
        return rp_err_set(err, RP_FORMAT,
                          "'%s' records no outputs to compare with: give --expect FILE", s->file);
    for (size_t i = 0; i < n; i++) {
        const struct rp_slot *slot = &s->signature.out[i % each];
        char name[48];

        snprintf(name, sizeof name, "out%zu", i % each);
        struct rp_tensor *t = s->expected.list.n
                                  ? find_array(&s->expected, output_names, i / each, i % each)
                                  : s->snapshot.results.at[i % each];
        if (!t && s->graph)
            t = rp_replay_graph_expected(s, i % each);
        if (!t)
            return rp_err_set(err, RP_FORMAT,
                              "'%s': array '%s' is missing; the program has %zu outputs",
                              s->expect ? s->expect : s->file, name, each);
        if (slot->elem == RP_ELEM_INVALID) { /* only an engine that runs it knows the type */
            out[i] = rp_tensor_keep(t);
            continue;
        }
        enum rp_code code = is_within_bounds(s->program.program, slot, t)
                                ? rp_array_as(t, slot->elem, t->dims, t->rank, name, &out[i], err)
                                : rp_session_shard(s, slot, true, i % each, t, (unsigned)(i / each),
                                                   name, &out[i], err);
        if (code != RP_OK)
            return rp_err_prefix(err, code, "'%s'", s->expect ? s->expect : s->file);
    }
    return RP_OK;
}
