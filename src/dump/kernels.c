/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dump kernels` shows what a compiled program launches, thunk by thunk: kernel, instruction,
 * operator of the framework and line of the user's code; with --trace the measured time of each
 * (xref/).
 */
#include "base/order.h"
#include "dataset/load.h"
#include "dump/folder.h"
#include "facts/arg_keys.h"
#include "facts/times/intervals.h"
#include "formats/formats.h"
#include "program/structure.h"
#include "result/print_units.h"
#include "xref/xref.h"

#include <stdlib.h>
#include <string.h>

struct kernel_row {
    int64_t thunk, depth, runs, flops, bytes, events, total_ns, mean_ns, blocks, threads,
        shared_bytes;
    double share;
    const char *kind, *kernel, *instruction, *opcode, *operator_, *scope, *line, *line_basis,
        *basis;
    const char *shown, *where;
};

struct line_row {
    const char *line;
    int64_t thunks, flops, bytes, total_ns;
    double share;
};

struct kernels_root {
    const char *module, *source, *summary, *trace;
    int64_t modules, thunks, with_line, with_instruction, events, events_matched, total_ns,
        matched_ns, other_modules_ns;
    size_t nkernels, nlines, nnotes;
    struct kernel_row *kernels;
    struct line_row *lines;
    const char **notes;
};

static const struct rp_field kernel_fields[] = {
    RP_FIELD(struct kernel_row, thunk, I64, NONE, "thunk", "number", 0),
    RP_FIELD(struct kernel_row, depth, I64, COUNT, NULL, "command buffers and loops around it", 0),
    RP_FIELD(struct kernel_row, kind, STR, NONE, "kind", "kind of the thunk", RP_WIDE),
    RP_FIELD(struct kernel_row, total_ns, I64, NS, "time", "time in the trace", RP_NULLABLE),
    RP_FIELD(struct kernel_row, share, F64, RATIO, "share", "share of the time of all kernels", 0),
    RP_FIELD(struct kernel_row, events, I64, COUNT, "events", "events in the trace", RP_NULLABLE),
    RP_FIELD(struct kernel_row, mean_ns, I64, NS, "mean", "mean time of an event",
             RP_NULLABLE | RP_WIDE),
    RP_FIELD(struct kernel_row, kernel, STR, NONE, NULL, "function that is launched", 0),
    RP_FIELD(struct kernel_row, instruction, STR, NONE, NULL,
             "instruction of the optimised program", 0),
    RP_FIELD(struct kernel_row, shown, STR, NONE, "instruction", "text output only",
             RP_SCREEN | RP_SHORTEN),
    RP_FIELD(struct kernel_row, opcode, STR, NONE, NULL, "opcode of the instruction", 0),
    RP_FIELD_AS("operator", struct kernel_row, operator_, STR, NONE, "operator",
                "operator of the framework", RP_SHORTEN),
    RP_FIELD(struct kernel_row, scope, STR, NONE, NULL, "scope of the operator", 0),
    RP_FIELD(struct kernel_row, line, STR, NONE, "line", "line of the user's code", RP_SHORTEN),
    RP_FIELD(struct kernel_row, line_basis, STR, NONE, NULL,
             "where the line comes from: instruction, fusion root, inside fusion, operand, user, "
             "loop",
             0),
    RP_FIELD(
        struct kernel_row, basis, STR, NONE, NULL,
        "how the instruction was found: thunk metadata, kernel name, thunk around it, program, "
        "unknown",
        0),
    RP_FIELD(struct kernel_row, runs, I64, COUNT, "runs", "runs in one execution, by trip counts",
             RP_WIDE),
    RP_FIELD(struct kernel_row, flops, I64, FLOP, "flops", "FLOPs of one run",
             RP_NULLABLE | RP_WIDE),
    RP_FIELD(struct kernel_row, bytes, I64, BYTES, "traffic", "bytes of one run",
             RP_NULLABLE | RP_WIDE),
    RP_FIELD(struct kernel_row, blocks, I64, COUNT, NULL, "blocks of the launch", RP_NULLABLE),
    RP_FIELD(struct kernel_row, threads, I64, COUNT, NULL, "threads of a block", RP_NULLABLE),
    RP_FIELD(struct kernel_row, shared_bytes, I64, BYTES, NULL, "shared memory of a block",
             RP_NULLABLE),
    RP_FIELD_END};
static const struct rp_type kernel_type = {"kernel", sizeof(struct kernel_row), kernel_fields,
                                           NULL};

static const struct rp_field line_fields[] = {
    RP_FIELD(struct line_row, line, STR, NONE, "line", "line of the user's code", RP_SHORTEN),
    RP_FIELD(struct line_row, thunks, I64, COUNT, "thunks", "that come from it", 0),
    RP_FIELD(struct line_row, total_ns, I64, NS, "time", "time in the trace", RP_NULLABLE),
    RP_FIELD(struct line_row, share, F64, RATIO, "share", "share of the time of all kernels",
             RP_BAR),
    RP_FIELD(struct line_row, flops, I64, FLOP, "flops", "FLOPs of one execution", 0),
    RP_FIELD(struct line_row, bytes, I64, BYTES, "traffic", "bytes of one execution", 0),
    RP_FIELD_END};
static const struct rp_type line_type = {"line", sizeof(struct line_row), line_fields, NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD(struct kernels_root, module, STR, NONE, "module", "module of the dump", 0),
    RP_FIELD(struct kernels_root, source, STR, NONE, NULL,
             "thunks, or program: a dump without thunks", 0),
    RP_FIELD(struct kernels_root, summary, STR, NONE, "thunks", "text output only", RP_SCREEN),
    RP_FIELD(struct kernels_root, modules, I64, COUNT, NULL, "modules in the folder", 0),
    RP_FIELD(struct kernels_root, thunks, I64, COUNT, NULL,
             "thunks; of a dump without, instructions that need code", 0),
    RP_FIELD(struct kernels_root, with_instruction, I64, COUNT, NULL,
             "thunks whose instruction is known", 0),
    RP_FIELD(struct kernels_root, with_line, I64, COUNT, NULL, "thunks whose line is known", 0),
    RP_FIELD(struct kernels_root, trace, STR, NONE, "trace", "text output only", RP_SCREEN),
    RP_FIELD(struct kernels_root, events, I64, COUNT, NULL, "device work in the trace",
             RP_NULLABLE),
    RP_FIELD(struct kernels_root, events_matched, I64, COUNT, NULL, "assigned to a thunk",
             RP_NULLABLE),
    RP_FIELD(struct kernels_root, total_ns, I64, NS, NULL, "time of the device work", RP_NULLABLE),
    RP_FIELD(struct kernels_root, matched_ns, I64, NS, NULL, "time of what is assigned",
             RP_NULLABLE),
    RP_FIELD(struct kernels_root, other_modules_ns, I64, NS, NULL, "time of other modules",
             RP_NULLABLE),
    RP_FIELD_LIST(struct kernels_root, lines, &line_type, "source lines",
                  "most time first; without a trace, most traffic", 0),
    RP_FIELD_LIST(struct kernels_root, kernels, &kernel_type, "kernels",
                  "with a trace most time first, else in the order of execution", 0),
    RP_FIELD_LIST(struct kernels_root, notes, &rp_type_string, "notes", "what is missing", 0),
    RP_FIELD_END};
static const struct rp_type kernels_type = {"dump_kernels", sizeof(struct kernels_root),
                                            root_fields, "kernels"};

struct kernels_ctx {
    const struct rp_dump_call *call;
    struct rp_dump_folder folder;
    const struct rp_dump_module *module;
    struct rp_arena *arena;
    struct kernels_root *root;
    struct rp_dataset *traces; /* or NULL */
    RP_VEC(struct rp_import) imports;
    struct rp_import program;
    struct rp_xref xref;
    struct rp_costs costs; /* if there is a program */
    struct rp_thunks thunks;
    struct rp_xref_kernels kernels;
    struct rp_xref_times times;
    struct rp_err *err;
};

/* ------------------------------------------------------------------ inputs */

static bool named_as(const char *event, const char *module)
{
    size_t n = strcspn(event, "(");

    return *module && strlen(module) == n && !memcmp(event, module, n);
}

/* The module named by most of the trace's work, or NULL. */
static enum rp_code module_of_trace(struct kernels_ctx *ctx, const struct rp_dump_module **out)
{
    int64_t *ns = RP_ARENA_NEW(ctx->arena, int64_t, ctx->folder.dump.nmodules + 1), most = 0;
    enum rp_code code = RP_OK;

    *out = NULL;
    RP_TRY(rp_err_need(ns, ctx->err, "reading a trace"));
    for (size_t i = 0; i < ctx->imports.n && code == RP_OK; i++) {
        const struct rp_trace *t = ctx->imports.at[i].trace;
        struct rp_arg_key key;
        rp_str name;

        if (!t)
            continue;
        RP_TRY(rp_trace_require(t, RP_NEED_ARGS, ctx->err));
        code = rp_arg_key_init(&key, t, "hlo_module", ctx->err);
        for (rp_event e = 0; code == RP_OK && e < t->ev.n; e++)
            if (t->ev.dur_ns[e] > 0 && rp_arg_key_text(&key, e, &name) && name)
                for (size_t k = 0; k < ctx->folder.dump.nmodules; k++)
                    if (named_as(rp_trace_str(t, name), ctx->folder.dump.modules[k].name))
                        ns[k] += t->ev.dur_ns[e] < INT64_MAX / 4 - ns[k] ? t->ev.dur_ns[e] : 0;
        rp_arg_key_release(&key);
    }
    for (size_t k = 0; k < ctx->folder.dump.nmodules; k++)
        if (ctx->folder.wanted[k] && ns[k] > most) {
            most = ns[k];
            *out = &ctx->folder.dump.modules[k];
        }
    return code;
}

static enum rp_code read_file(struct kernels_ctx *ctx, size_t source, bool metadata,
                              struct rp_thunks *out)
{
    const struct rp_limits *limits = &ctx->call->dataset->limits;
    struct rp_dump_content file;

    *out = (struct rp_thunks){0};
    if (source == SIZE_MAX)
        return RP_OK;
    RP_TRY(rp_dump_open(&file, &ctx->folder, source, ctx->err));
    enum rp_code code =
        metadata ? rp_thunk_metadata_read(file.bytes, file.n, limits, ctx->arena, out, ctx->err)
        : file.n
            ? rp_thunks_read((const char *)file.bytes, file.n, limits, ctx->arena, out, ctx->err)
            : RP_OK;
    return rp_dump_close(&file, code, ctx->err);
}

/* Reads the sequence after all passes, which has the command buffers; else that of the metadata. */
static enum rp_code read_thunks(struct kernels_ctx *ctx)
{
    const struct rp_dump_module *m = ctx->module;
    size_t sequence = SIZE_MAX;
    struct rp_thunks metadata;

    for (size_t i = 0; i < m->nfiles; i++) {
        const char *name = rp_sources_borrow(ctx->call->dataset->sources, m->files[i].source)->name;

        if (m->files[i].role == RP_DUMP_THUNKS &&
            (sequence == SIZE_MAX || strstr(name, "thunk_sequence_")))
            sequence = m->files[i].source;
    }
    RP_TRY(read_file(ctx, sequence, false, &ctx->thunks));
    RP_TRY(read_file(ctx, rp_dump_file_of(m, RP_DUMP_THUNK_METADATA), true, &metadata));
    if (ctx->thunks.n)
        return rp_thunks_join(&ctx->thunks, &metadata, ctx->arena, ctx->err);
    ctx->thunks = metadata;
    return RP_OK;
}

static enum rp_code read_program(struct kernels_ctx *ctx)
{
    if (!rp_dump_final(ctx->module))
        return rp_xref_init(&ctx->xref, NULL, ctx->err);
    RP_TRY(rp_dump_load(&ctx->folder, ctx->module, "kernels", &ctx->program, ctx->err));
    RP_TRY(rp_program_count(ctx->program.program, ctx->arena, &ctx->costs, ctx->err));
    return rp_xref_init(&ctx->xref, ctx->program.program, ctx->err);
}

/* ------------------------------------------------------------------ rows */

/* Whether there is code of a kernel for the CPU: "obj-file.add_fusion.1_kernel_module.o". */
static bool has_object(const struct kernels_ctx *ctx, const char *instruction)
{
    size_t n = strlen(instruction);

    for (size_t i = 0; i < ctx->module->nfiles; i++) {
        const struct rp_dump_file *file = &ctx->module->files[i];

        if (file->role != RP_DUMP_OBJECT)
            continue;
        const char *name = rp_sources_borrow(ctx->call->dataset->sources, file->source)->name;
        const char *at = strstr(name, ".obj-file.");
        if (!at)
            continue;
        at += 10;
        at += strncmp(at, "__compute_module_", 17) ? 0 : 17;
        if (!strncmp(at, instruction, n) &&
            (!strcmp(at + n, ".o") || !strcmp(at + n, "_kernel_module.o")))
            return true;
    }
    return false;
}

static int64_t cost_of(double x)
{
    return x >= 9e18 ? INT64_MAX : (int64_t)x;
}

static int64_t product(const int64_t *n)
{
    return cost_of((double)n[0] * (double)n[1] * (double)n[2]);
}

static void fill_row(struct kernels_ctx *ctx, const struct rp_xref_kernel *k,
                     struct kernel_row *row)
{
    const struct rp_thunk *t = &k->thunk;
    struct rp_xref_place place;
    bool measured = ctx->imports.n > 0;

    rp_xref_place(&ctx->xref, k->op, ctx->arena, &place);
    *row = (struct kernel_row){
        .thunk = t->id,
        .depth = t->depth,
        .runs = k->runs,
        .flops = RP_ABSENT_I64,
        .bytes = RP_ABSENT_I64,
        .events = measured ? k->events : RP_ABSENT_I64,
        .total_ns = measured ? k->total_ns : RP_ABSENT_I64,
        .mean_ns = k->events ? k->total_ns / k->events : RP_ABSENT_I64,
        .blocks = RP_ABSENT_I64,
        .threads = RP_ABSENT_I64,
        .shared_bytes = RP_ABSENT_I64,
        .share = measured && ctx->times.matched_ns
                     ? (double)k->total_ns / (double)ctx->times.matched_ns
                     : __builtin_nan(""),
        .kind = rp_arena_text(ctx->arena, t->kind),
        .kernel = *t->kernel ? rp_arena_text(ctx->arena, t->kernel) : NULL,
        .instruction = *t->instruction ? rp_arena_text(ctx->arena, t->instruction) : NULL,
        .operator_ = *place.operator_ ? place.operator_ : NULL,
        .scope = *place.scope ? place.scope : NULL,
        .line = place.line,
        .line_basis = place.basis,
        .basis = rp_xref_basis_names[k->basis]};
    if (t->grid[0]) {
        row->blocks = product(t->grid);
        row->threads = product(t->block);
        row->shared_bytes = t->shared_bytes;
    }
    if (k->op != RP_NONE) {
        row->flops = cost_of(ctx->costs.op[k->op].flops);
        row->bytes = cost_of(ctx->costs.op[k->op].bytes);
        row->opcode = rp_arena_text(ctx->arena, rp_op_opcode_name(ctx->xref.program, k->op));
    }
    if (k->basis == RP_XREF_PROGRAM && has_object(ctx, t->instruction))
        row->kernel = row->instruction;
    row->shown = row->instruction ? row->instruction : row->kernel ? row->kernel : row->kind;
}

RP_ORDER(by_time, struct kernel_row, RP_DOWN(total_ns), RP_UP(thunk))
RP_ORDER(by_line_time, struct line_row, RP_DOWN(total_ns), RP_DOWN(bytes), RP_DOWN(flops),
         strcmp(a->line, b->line))

/* Whether a thunk only contains others, and so is not counted. */
static bool is_container(const struct kernels_ctx *ctx, size_t i)
{
    return i + 1 < ctx->kernels.n && ctx->kernels.at[i + 1].thunk.parent == i;
}

static enum rp_code sum_lines(struct kernels_ctx *ctx)
{
    struct kernels_root *root = ctx->root;
    RP_SCOPED(rp_map_release) struct rp_map lines = {0};
    uint32_t at;

    root->lines = RP_ARENA_NEW(ctx->arena, struct line_row, root->nkernels + 1);
    RP_TRY(rp_err_need(root->lines, ctx->err, "summing lines"));
    for (size_t i = 0; i < root->nkernels; i++) {
        const struct kernel_row *row = &root->kernels[i];
        const char *line = row->line ? row->line : "(no line)";

        if (is_container(ctx, i))
            continue;
        RP_TRY(rp_map_intern(&lines, rp_hash_bytes(line, strlen(line)), (uint32_t)root->nlines, &at,
                             ctx->err));
        if (at == root->nlines)
            root->lines[root->nlines++] =
                (struct line_row){.line = line,
                                  .total_ns = ctx->imports.n ? 0 : RP_ABSENT_I64,
                                  .share = __builtin_nan("")};
        root->lines[at].thunks++;
        if (row->flops != RP_ABSENT_I64) {
            rp_ns_add(&root->lines[at].flops, cost_of((double)row->flops * (double)row->runs));
            rp_ns_add(&root->lines[at].bytes, cost_of((double)row->bytes * (double)row->runs));
        }
        if (ctx->imports.n)
            rp_ns_add(&root->lines[at].total_ns, row->total_ns);
    }
    for (size_t i = 0; i < root->nlines && ctx->times.matched_ns; i++)
        root->lines[i].share = (double)root->lines[i].total_ns / (double)ctx->times.matched_ns;
    rp_sort(root->lines, root->nlines, sizeof *root->lines, by_line_time);
    return RP_OK;
}

/* ------------------------------------------------------------------ the answer */

static void count_rows(struct kernels_ctx *ctx)
{
    struct kernels_root *root = ctx->root;
    int64_t containers = 0;

    root->thunks = (int64_t)root->nkernels;
    for (size_t i = 0; i < root->nkernels; i++) {
        bool container = is_container(ctx, i) && ctx->kernels.at[i].op == RP_NONE;

        containers += container;
        root->with_instruction += ctx->kernels.at[i].op != RP_NONE;
        root->with_line += root->kernels[i].line != NULL;
    }
    if (!ctx->thunks.n)
        root->summary = rp_arena_textf(
            ctx->arena, "none dumped; %s, of which %lld lead to a line of code",
            rp_units_count(ctx->arena, root->thunks, "instruction"), (long long)root->with_line);
    else
        root->summary = rp_arena_textf(
            ctx->arena, "%lld%s; %lld of %lld lead to a line of code", (long long)root->thunks,
            containers ? rp_arena_textf(ctx->arena, " (%s)",
                                        rp_units_count(ctx->arena, containers, "command buffer"))
                       : "",
            (long long)root->with_line, (long long)(root->thunks - containers));
}

static enum rp_code measure(struct kernels_ctx *ctx)
{
    struct kernels_root *root = ctx->root;
    int64_t ordered = 0;

    root->events = root->events_matched = root->total_ns = root->matched_ns =
        root->other_modules_ns = RP_ABSENT_I64;
    if (!ctx->imports.n)
        return RP_OK;
    for (size_t i = 0; i < ctx->imports.n; i++)
        if (ctx->imports.at[i].trace)
            RP_TRY(rp_xref_measure(ctx->imports.at[i].trace,
                                   *ctx->module->name ? ctx->module->name : NULL, &ctx->xref,
                                   &ctx->kernels, &ctx->times, ctx->err));
    root->events = ctx->times.events;
    root->events_matched = ctx->times.matched;
    root->total_ns = ctx->times.total_ns;
    root->matched_ns = ctx->times.matched_ns;
    root->other_modules_ns = ctx->times.elsewhere_ns;
    for (size_t i = 0; i < ctx->kernels.n; i++)
        ordered += ctx->kernels.at[i].by_order;
    root->trace = rp_arena_textf(ctx->arena, "%s of %s in %s assigned",
                                 rp_units_time(ctx->arena, root->matched_ns),
                                 rp_units_time(ctx->arena, root->total_ns),
                                 rp_units_count(ctx->arena, root->events, "event"));
    if (!ctx->times.matched)
        RP_NOTE(ctx->root, ctx->arena,
                "no event of the trace names an instruction or kernel of this module: "
                "is it a trace of this program?");
    if (ordered)
        RP_NOTE(ctx->root, ctx->arena,
                rp_arena_textf(ctx->arena,
                               "%lld thunks share a kernel with others; their events "
                               "are assigned in the order of execution",
                               (long long)ordered));
    return RP_OK;
}

static enum rp_code answer_kernels(struct kernels_ctx *ctx)
{
    struct kernels_root *root = ctx->root;

    const char *path = rp_settings_text(ctx->call->settings, "trace");
    struct rp_import empty = RP_IMPORT_INIT;
    if (path) {
        RP_TRY(rp_open(ctx->call->ctx, &path, 1, NULL, &ctx->traces, ctx->err));
        for (size_t i = 0; i < rp_sources_count(ctx->traces->sources); i++) {
            RP_TRY(rp_vec_push(&ctx->imports, empty, ctx->err));
            RP_TRY(rp_load_trace(ctx->traces, i, &ctx->imports.at[ctx->imports.n - 1], ctx->err));
        }
    }

    RP_TRY(module_of_trace(ctx, &ctx->module));
    if (!ctx->module)
        RP_TRY(rp_dump_largest(&ctx->folder, &ctx->module, ctx->err));
    RP_TRY(read_program(ctx));
    RP_TRY(read_thunks(ctx));
    RP_TRY(rp_xref_kernels(&ctx->xref, &ctx->thunks, ctx->arena, &ctx->kernels, ctx->err));
    RP_TRY(measure(ctx));
    root->module = rp_dump_label(ctx->module, ctx->arena);
    root->source = ctx->thunks.n ? "thunks" : "program";
    root->modules = (int64_t)ctx->folder.dump.nmodules;
    root->kernels = RP_ARENA_NEW(ctx->arena, struct kernel_row, ctx->kernels.n + 1);
    RP_TRY(rp_err_need(root->kernels, ctx->err, "listing kernels"));
    for (; root->nkernels < ctx->kernels.n; root->nkernels++)
        fill_row(ctx, &ctx->kernels.at[root->nkernels], &root->kernels[root->nkernels]);
    count_rows(ctx);
    RP_TRY(sum_lines(ctx));
    if (ctx->imports.n && root->nkernels)
        qsort(root->kernels, root->nkernels, sizeof *root->kernels, by_time);

    RP_NOTE(ctx->root, ctx->arena, rp_dump_one_of(&ctx->folder, ctx->arena));
    if (!ctx->thunks.n)
        RP_NOTE(ctx->root, ctx->arena,
                "no thunks in the dump (CPU, or an old version): instructions that "
                "need code, in the order of the program");
    if (!ctx->xref.program)
        RP_NOTE(ctx->root, ctx->arena,
                "no program beside the thunks: compile with --xla_dump_hlo_as_text to "
                "get operators and lines");
    return rp_arena_check(ctx->arena, "listing kernels", ctx->err);
}

static enum rp_code kernels_run(const struct rp_dump_call *call, struct rp_result *result,
                                struct rp_err *err)
{
    struct kernels_ctx ctx = {.call = call,
                              .arena = &result->arena,
                              .root = result->root,
                              .program = RP_IMPORT_INIT,
                              .err = err};

    RP_TRY(rp_dump_folder_open(call, ctx.arena, &ctx.folder, err));
    enum rp_code code = answer_kernels(&ctx);
    rp_xref_release(&ctx.xref);
    rp_import_release(&ctx.program);
    for (size_t i = 0; i < ctx.imports.n; i++)
        rp_import_release(&ctx.imports.at[i]);
    rp_vec_release(&ctx.imports);
    rp_dataset_free(ctx.traces);
    return code;
}

const struct rp_dump_word rp_dump_kernels = {
    .name = "kernels",
    .summary = "what a program launches: from thunk or kernel to instruction, operator and line",
    .options = "module trace",
    .files = true,
    .type = &kernels_type,
    .run = kernels_run};
