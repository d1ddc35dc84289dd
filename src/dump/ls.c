/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dump ls` lists the modules of a folder of dumps, one row each, from whatever files it has;
 * unreadable files are noted and the rest is shown. Reads one program for each module.
 */
#include "dump/buffers.h"
#include "dump/folder.h"
#include "dump/torch.h"
#include "program/opcodes.h"
#include "program/structure.h"

#include <pthread.h>
#include <string.h>

struct ls_module {
    int64_t id, files, stages, passes, passes_changed, executions;
    int64_t instructions_before, instructions, flops, bytes;
    int64_t peak_bytes, allocated_bytes, compile_ns;
    const char *name, *folder, *shown_folder, *stage, *hash;
    size_t nkinds;
    const char **kinds;
};

struct ls_compile { /* for torch.compile: the short form of a row of `dump compiles` */
    const char *id, *function, *file, *place, *state, *failed;
    int64_t rank, shown_rank, line, ops, breaks, compile_ns;
    bool again;
};

struct ls_ignored {
    const char *kind, *why, *example;
    int64_t files;
};

struct ls_root {
    int64_t nfiles;
    size_t nmodules, ncompiles, nignored, nnotes;
    struct ls_module *modules;
    struct ls_compile *compiles;
    struct ls_ignored *ignored;
    const char **notes;
};

static const struct rp_field module_fields[] = {
    RP_FIELD(struct ls_module, id, I64, NONE, "module", "number", RP_NULLABLE),
    RP_FIELD(struct ls_module, name, STR, NONE, "name", "name of the module, or the file",
             RP_WHOLE),
    RP_FIELD(struct ls_module, folder, STR, NONE, NULL, "folder of its files", 0),
    RP_FIELD(struct ls_module, shown_folder, STR, NONE, "folder", "text output only",
             RP_SHORTEN | RP_SCREEN),
    RP_FIELD(struct ls_module, files, I64, COUNT, "files", "files of the module", RP_WIDE),
    RP_FIELD(struct ls_module, stages, I64, COUNT, "stages",
             "programs, without those between passes and of executions", 0),
    RP_FIELD(struct ls_module, passes, I64, COUNT, NULL,
             "passes that ran; without times of passes, programs dumped between passes",
             RP_NULLABLE),
    RP_FIELD(struct ls_module, passes_changed, I64, COUNT, "passes",
             "passes that changed the module; without times of passes, passes after which it was "
             "dumped",
             RP_NULLABLE),
    RP_FIELD(struct ls_module, instructions_before, I64, COUNT, "before",
             "instructions before optimisation", RP_NULLABLE | RP_WIDE),
    RP_FIELD(struct ls_module, instructions, I64, COUNT, "instr.",
             "instructions of the last stage before execution", RP_NULLABLE),
    RP_FIELD(struct ls_module, flops, I64, FLOP, "flops", "FLOPs of one execution", RP_NULLABLE),
    RP_FIELD(struct ls_module, bytes, I64, BYTES, "traffic",
             "bytes read and written in one execution, without reuse", RP_NULLABLE),
    RP_FIELD(struct ls_module, peak_bytes, I64, BYTES, "peak",
             "live bytes where most are live; without live ranges, all allocations", RP_NULLABLE),
    RP_FIELD(struct ls_module, allocated_bytes, I64, BYTES, NULL,
             "all allocations of the buffer assignment", RP_NULLABLE),
    RP_FIELD(struct ls_module, compile_ns, I64, NS, "compile",
             "time from the first pass to the end of the last", RP_NULLABLE),
    RP_FIELD(struct ls_module, executions, I64, COUNT, "runs", "recorded with their arguments", 0),
    RP_FIELD(struct ls_module, stage, STR, NONE, NULL, "the last stage before execution", 0),
    RP_FIELD(struct ls_module, hash, STR, NONE, NULL,
             "hash of that stage; equal for equal programs", 0),
    RP_FIELD_LIST(struct ls_module, kinds, &rp_type_string, NULL, "kinds of its files", 0),
    RP_FIELD_END};
static const struct rp_type module_type = {"module", sizeof(struct ls_module), module_fields, NULL};

#define COMPILE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct ls_compile, member, type, unit, title, doc, flags)
static const struct rp_field compile_fields[] = {
    COMPILE(id, STR, NONE, "compile", "number of the function, and of the compile of it", 0),
    COMPILE(rank, I64, NONE, NULL, "rank of the process", RP_NULLABLE),
    COMPILE(shown_rank, I64, NONE, "rank", "text output only", RP_NULLABLE | RP_SCREEN),
    COMPILE(function, STR, NONE, "function", "that was compiled", RP_SHORTEN),
    COMPILE(file, STR, NONE, NULL, "file of the function", 0),
    COMPILE(line, I64, NONE, NULL, "its first", RP_NULLABLE),
    COMPILE(place, STR, NONE, "at", "text output only", RP_SCREEN | RP_SHORTEN),
    COMPILE(ops, I64, COUNT, "ops", "calls in Dynamo's graph", RP_NULLABLE),
    COMPILE(breaks, I64, COUNT, "breaks", "graph breaks", 0),
    COMPILE(again, BOOL, NONE, NULL, "whether it was compiled before", 0),
    COMPILE(compile_ns, I64, NS, "time", "time of the compile", RP_NULLABLE),
    COMPILE(failed, STR, NONE, NULL, "the error; null: it did not fail", 0),
    COMPILE(state, STR, NONE, "what", "text output only", RP_SCREEN | RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type compile_type = {"compile", sizeof(struct ls_compile), compile_fields,
                                            NULL};

static const struct rp_field ignored_fields[] = {
    RP_FIELD(struct ls_ignored, kind, STR, NONE, "kind", "kind of files", 0),
    RP_FIELD(struct ls_ignored, files, I64, COUNT, "files", "files of this kind", 0),
    RP_FIELD(struct ls_ignored, why, STR, NONE, "not read because", "why they are not read", 0),
    RP_FIELD(struct ls_ignored, example, STR, NONE, NULL, "the first of them", 0), RP_FIELD_END};
static const struct rp_type ignored_type = {"ignored", sizeof(struct ls_ignored), ignored_fields,
                                            NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD_LIST(struct ls_root, modules, &module_type, "modules", "by folder and number", 0),
    RP_FIELD_LIST(struct ls_root, compiles, &compile_type, "compiles",
                  "of torch.compile; 'dump compiles' says more", 0),
    RP_FIELD_AS("files", struct ls_root, nfiles, I64, COUNT, NULL, "files in all", 0),
    RP_FIELD_LIST(struct ls_root, ignored, &ignored_type, "ignored files",
                  "kinds that are not read", 0),
    RP_FIELD_LIST(struct ls_root, notes, &rp_type_string, "notes", "files that cannot be read", 0),
    RP_FIELD_END};
static const struct rp_type ls_type = {"dump_ls", sizeof(struct ls_root), root_fields, "modules"};

/* ------------------------------------------------------------------ programs */

struct ls_program { /* by source */
    bool read;
    int64_t instructions, flops, bytes;
    uint64_t hash;
    const char *error;
};

struct ls_ctx {
    const struct rp_dump_call *call;
    struct rp_dump_torch torch;
    struct rp_dump_folder folder;
    struct rp_arena *arena;
    struct ls_root *root;
    struct ls_program *programs;
    size_t *sources, nsources;
    pthread_mutex_t lock;
};

static int64_t rounded(double x)
{
    return x >= 9e18 ? INT64_MAX : (int64_t)x;
}

/* Operations of frameworks have no known costs, so if no cost is known, the total is unknown. */
static bool has_unknown_costs(const struct rp_program *p, const struct rp_costs *costs)
{
    for (uint32_t op = 0; op < p->nops; op++)
        if (p->code.at[op] == RP_OP_FOREIGN)
            return !(costs->program.flops > 0) && strcmp(p->language, "hlo") != 0;
    return false;
}

static enum rp_code measure_program(struct ls_ctx *ls, size_t source, struct rp_err *err)
{
    struct ls_program *to = &ls->programs[source];
    RP_SCOPED(rp_import_release) struct rp_import import = RP_IMPORT_INIT;
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;
    struct rp_costs costs;
    struct rp_hashes hashes;

    RP_TRY(rp_load_program(ls->call->dataset, source, &import, err));
    RP_TRY(rp_program_count(import.program, &scratch, &costs, err));
    RP_TRY(rp_program_hash(import.program, &scratch, &hashes, err));
    *to = (struct ls_program){.read = true,
                              .instructions = import.program->nops,
                              .flops = has_unknown_costs(import.program, &costs)
                                           ? RP_ABSENT_I64
                                           : rounded(costs.program.flops),
                              .bytes = rounded(costs.program.bytes),
                              .hash = hashes.program};
    return RP_OK;
}

/* A damaged program is noted, and does not end the list. */
static enum rp_code measure_one(void *user, size_t i, struct rp_err *err)
{
    struct ls_ctx *ls = user;
    struct rp_err local = {0};
    enum rp_code code = measure_program(ls, ls->sources[i], &local);

    if (code == RP_NOMEM || code == RP_CANCELLED) {
        *err = local;
        return code;
    }
    if (code != RP_OK) {
        pthread_mutex_lock(&ls->lock);
        ls->programs[ls->sources[i]].error = rp_arena_text(ls->arena, local.text);
        pthread_mutex_unlock(&ls->lock);
    }
    return RP_OK;
}

static void want_program(struct ls_ctx *ls, const struct rp_dump_stage *stage)
{
    if (stage)
        ls->sources[ls->nsources++] = stage->source;
}

/* ------------------------------------------------------------------ one module */

static enum rp_code note_error(struct ls_ctx *ls, enum rp_code code, const struct rp_err *local,
                               struct rp_err *err)
{
    if (code == RP_NOMEM)
        *err = *local;
    else if (code != RP_OK)
        RP_NOTE(ls->root, ls->arena, rp_arena_text(ls->arena, local->text));
    return code == RP_NOMEM ? code : RP_OK;
}

static enum rp_code fill_passes(struct ls_ctx *ls, const struct rp_dump_module *module,
                                struct ls_module *row, struct rp_err *err)
{
    size_t source = rp_dump_file_of(module, RP_DUMP_PASS_TIMES);
    struct rp_pass_times times;
    struct rp_err local = {0};

    if (source == SIZE_MAX)
        return RP_OK;
    enum rp_code code = rp_dump_pass_times(&ls->folder, source, ls->arena, &times, &local);
    if (code != RP_OK)
        return note_error(ls, code, &local, err);
    row->passes = (int64_t)times.n;
    row->passes_changed = 0;
    for (size_t i = 0; i < times.n; i++)
        row->passes_changed += times.at[i].changed;
    if (times.n) {
        struct rp_pass_time whole = {.start_us = times.at[0].start_us,
                                     .end_us = times.at[times.n - 1].end_us};

        row->compile_ns = rp_pass_ns(&whole);
    }
    return RP_OK;
}

static enum rp_code fill_memory(struct ls_ctx *ls, const struct rp_dump_module *module,
                                struct ls_module *row, struct rp_err *err)
{
    struct rp_buffers b;
    struct rp_err local = {0};
    bool found = false;
    enum rp_code code = rp_dump_buffers(&ls->folder, module, &b, &found, &local);

    if (code == RP_OK && found) {
        row->allocated_bytes = b.total_bytes;
        row->peak_bytes = b.has_peak ? b.peak_bytes : b.total_bytes;
    }
    rp_buffers_release(&b);
    return note_error(ls, code, &local, err);
}

/* "0021.fusion.after_cse.before_dce": whether a pass ran before it. */
static bool is_after_pass(const char *stage)
{
    const char *pipeline = strchr(stage, '.');
    const char *after = pipeline ? strchr(pipeline + 1, '.') : NULL;

    return after && !strncmp(after, ".after_", 7) &&
           strncmp(after, ".after_pipeline-start", 21) != 0;
}

/* The program of a stage, or NULL; the reason why it could not be read is noted. */
static const struct ls_program *program_of(struct ls_ctx *ls, const struct rp_dump_stage *stage)
{
    if (!stage)
        return NULL;
    RP_NOTE(ls->root, ls->arena, ls->programs[stage->source].error);
    return ls->programs[stage->source].read ? &ls->programs[stage->source] : NULL;
}

static enum rp_code fill_module(struct ls_ctx *ls, const struct rp_dump_module *module,
                                struct ls_module *row, struct rp_err *err)
{
    const struct rp_dump_stage *final = rp_dump_final(module);
    const struct ls_program *after;

    *row = (struct ls_module){.id = module->id < 0 ? RP_ABSENT_I64 : module->id,
                              .name = module->name,
                              .folder = module->root,
                              .files = (int64_t)module->nfiles,
                              .passes = RP_ABSENT_I64,
                              .passes_changed = RP_ABSENT_I64,
                              .instructions_before = RP_ABSENT_I64,
                              .instructions = RP_ABSENT_I64,
                              .flops = RP_ABSENT_I64,
                              .bytes = RP_ABSENT_I64,
                              .peak_bytes = RP_ABSENT_I64,
                              .allocated_bytes = RP_ABSENT_I64,
                              .compile_ns = RP_ABSENT_I64,
                              .stage = final ? final->name : NULL};

    for (size_t i = 0; i < module->nstages; i++) {
        const struct rp_dump_stage *stage = &module->stages[i];

        if (stage->point == RP_DUMP_AT_PASS) {
            row->passes = row->passes == RP_ABSENT_I64 ? 1 : row->passes + 1;
            row->passes_changed = row->passes_changed == RP_ABSENT_I64 ? 0 : row->passes_changed;
            row->passes_changed += is_after_pass(stage->name);
        } else if (stage->point == RP_DUMP_AT_RUN) {
            row->executions++;
        } else {
            row->stages++;
        }
    }

    bool seen[RP_DUMP_ROLES] = {false};

    row->kinds = RP_ARENA_NEW(ls->arena, const char *, RP_DUMP_ROLES);
    RP_TRY(rp_err_need(row->kinds, err, "listing modules"));
    for (size_t i = 0; i < module->nfiles; i++)
        seen[module->files[i].role] = true;
    for (size_t i = 0; i < RP_DUMP_ROLES; i++)
        if (seen[i])
            row->kinds[row->nkinds++] = rp_dump_role_name((enum rp_dump_role)i);

    const struct ls_program *before = program_of(ls, rp_dump_stage_at(module, RP_DUMP_AT_BEFORE));
    if (final && final == rp_dump_stage_at(module, RP_DUMP_AT_BEFORE))
        after = before;
    else
        after = program_of(ls, final);
    if (before)
        row->instructions_before = before->instructions;
    if (after) {
        row->instructions = after->instructions;
        row->flops = after->flops;
        row->bytes = after->bytes;
        row->hash = rp_arena_textf(ls->arena, "%016llx", (unsigned long long)after->hash);
    }
    RP_TRY(fill_passes(ls, module, row, err));
    return fill_memory(ls, module, row, err);
}

/* ------------------------------------------------------------------ what is not read */

/* Roles that no word reads. */
static const char *const ignored_reasons[RP_DUMP_ROLES] = {
    [RP_DUMP_OTHER] = "kind of file not known",
    [RP_DUMP_DRAWING] = "a drawing of a program; 'graph --html' draws from the program itself",
    [RP_DUMP_VALUES] = "repeats the buffer assignment, with the uses that the program has",
    [RP_DUMP_CONFIG] = "options of the compilation; 'dump flags' explains them",
    [RP_DUMP_TARGET] = "description of the device",
    [RP_DUMP_AUTOTUNE] = "choices of the autotuner; the optimised program contains them",
    [RP_DUMP_LLVM] = "generated code",
    [RP_DUMP_PTX] = "generated code",
    [RP_DUMP_OBJECT] = "generated code",
};

static enum rp_code list_ignored(struct ls_ctx *ls, struct ls_root *root, struct rp_err *err)
{
    struct rp_sources *sources = ls->call->dataset->sources;
    const char *examples[RP_DUMP_ROLES + 1] = {NULL};
    int64_t counts[RP_DUMP_ROLES + 1] = {0};

    for (size_t i = 0; i < ls->folder.dump.nmodules; i++)
        for (size_t k = 0; ls->folder.wanted[i] && k < ls->folder.dump.modules[i].nfiles; k++) {
            const struct rp_dump_file *file = &ls->folder.dump.modules[i].files[k];

            if (!counts[file->role]++)
                examples[file->role] = rp_sources_borrow(sources, file->source)->name;
        }
    for (size_t i = 0; i < ls->folder.nothers; i++)
        if (!ls->torch.is[ls->folder.others[i]] && !counts[RP_DUMP_ROLES]++)
            examples[RP_DUMP_ROLES] = rp_sources_borrow(sources, ls->folder.others[i])->name;
    root->ignored = RP_ARENA_NEW(ls->arena, struct ls_ignored, RP_DUMP_ROLES + 1);
    RP_TRY(rp_err_need(root->ignored, err, "listing files"));
    for (size_t i = 0; i <= RP_DUMP_ROLES; i++) {
        const char *why =
            i < RP_DUMP_ROLES ? ignored_reasons[i] : "not part of a module, no program";

        if (counts[i] && why)
            root->ignored[root->nignored++] = (struct ls_ignored){
                i < RP_DUMP_ROLES ? rp_dump_role_name((enum rp_dump_role)i) : "others", why,
                rp_arena_text(ls->arena, examples[i]), counts[i]};
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ the word */

static enum rp_code list_modules(struct ls_ctx *ls, struct ls_root *root, struct rp_err *err)
{
    const struct rp_dump *dump = &ls->folder.dump;

    for (size_t i = 0; i < dump->nmodules; i++)
        if (ls->folder.wanted[i]) {
            const struct rp_dump_stage *before =
                rp_dump_stage_at(&dump->modules[i], RP_DUMP_AT_BEFORE);
            const struct rp_dump_stage *final = rp_dump_final(&dump->modules[i]);

            want_program(ls, before);
            want_program(ls, final == before ? NULL : final);
        }
    RP_TRY(rp_pool_each(ls->call->ctx->pool, ls->nsources, measure_one, ls, err));
    root->modules = RP_ARENA_NEW(ls->arena, struct ls_module, ls->folder.nwanted + 1);
    RP_TRY(rp_err_need(root->modules, err, "listing modules"));
    for (size_t i = 0; i < dump->nmodules; i++)
        if (ls->folder.wanted[i])
            RP_TRY(fill_module(ls, &dump->modules[i], &root->modules[root->nmodules++], err));
    /* Whether there are several. */
    bool several = false;
    for (size_t i = 1; i < root->nmodules; i++)
        several = several || strcmp(root->modules[i].folder, root->modules[0].folder) != 0;
    for (size_t i = 0; several && i < root->nmodules; i++)
        root->modules[i].shown_folder = root->modules[i].folder;
    RP_TRY(list_ignored(ls, root, err));
    root->nfiles = (int64_t)rp_sources_count(ls->call->dataset->sources);
    return rp_arena_check(ls->arena, "listing modules", err);
}

static enum rp_code list_compiles(struct ls_ctx *ls, struct ls_root *root, struct rp_err *err)
{
    struct rp_compile_problems problems;
    size_t n;
    const struct rp_compile_row *rows = rp_dump_torch_rows(&ls->torch, ls->arena, &n);

    root->compiles = RP_ARENA_NEW(ls->arena, struct ls_compile, n + 1);
    RP_TRY(rp_arena_check(ls->arena, "listing compiles", err));
    for (size_t i = 0; i < n; i++)
        root->compiles[root->ncompiles++] = (struct ls_compile){.id = rows[i].id,
                                                                .function = rows[i].function,
                                                                .file = rows[i].file,
                                                                .place = rows[i].place,
                                                                .state = rows[i].state,
                                                                .failed = rows[i].failed,
                                                                .rank = rows[i].rank,
                                                                .shown_rank = rows[i].rank,
                                                                .line = rows[i].line,
                                                                .ops = rows[i].ops,
                                                                .breaks = rows[i].breaks,
                                                                .compile_ns = rows[i].compile_ns,
                                                                .again = rows[i].nrecompiled > 0};
    rp_dump_torch_problems(&ls->torch, ls->arena, &problems);
    RP_NOTE(root, ls->arena, rp_dump_torch_warning(&problems, ls->arena));
    if (n)
        RP_NOTE(root, ls->arena,
                "'dump compiles', 'breaks' and 'recompiles' say more about torch.compile");
    return RP_OK;
}

/* Lists modules, and compiles of torch.compile, of which a folder may have both. */
static enum rp_code ls_all(struct ls_ctx *ls, struct ls_root *root, struct rp_err *err)
{
    size_t n = rp_sources_count(ls->call->dataset->sources);
    struct rp_err local = {0};

    RP_TRY(rp_dump_torch_open(ls->call, ls->arena, &ls->torch, err));
    enum rp_code code = rp_dump_folder_open(ls->call, ls->arena, &ls->folder, &local);
    if (code != RP_OK && (code == RP_NOMEM || !ls->torch.nwanted)) {
        if (err)
            *err = local;
        return code;
    }
    ls->programs = RP_ARENA_NEW(ls->arena, struct ls_program, n + 1);
    ls->sources = RP_ARENA_NEW(ls->arena, size_t, 2 * ls->folder.dump.nmodules + 1);
    RP_TRY(rp_err_need(ls->programs && ls->sources, err, "listing modules"));
    RP_TRY(list_compiles(ls, root, err));
    pthread_mutex_init(&ls->lock, NULL);
    code = list_modules(ls, root, err);
    pthread_mutex_destroy(&ls->lock);
    return code;
}

static enum rp_code ls_run(const struct rp_dump_call *call, struct rp_result *result,
                           struct rp_err *err)
{
    struct ls_ctx ls = {.call = call, .arena = &result->arena, .root = result->root};
    enum rp_code code = ls_all(&ls, result->root, err);

    rp_dump_torch_release(&ls.torch);
    return code;
}

const struct rp_dump_word rp_dump_ls = {
    .name = "ls",
    .summary =
        "what was compiled: the modules of a folder of dumps, the functions of torch.compile",
    .options = "module",
    .files = true,
    .type = &ls_type,
    .run = ls_run};
