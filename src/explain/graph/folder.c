/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers `graph` for a folder. File names decide which files form a module
 * (formats/dump/folder.h), so only programs that get a row are opened, each once and in parallel;
 * other files are opened to see whether they hold a program.
 */
#include "explain/graph/graph.h"

#include "result/result.h"

#include <pthread.h>

/* ---- picking ---- */

static void pick_program(struct rp_graph_folder *folder, const struct rp_dump_module *module,
                         const struct rp_dump_stage *stage, size_t source)
{
    folder->sources[folder->n] = source;
    folder->picks[folder->n++] = (struct rp_graph_pick){module, stage};
}

/* Unless a module is named, passes and later executions are left out. */
static void pick_stages(struct rp_graph_folder *folder, const struct rp_dump_module *module,
                        bool named)
{
    bool ran = false;

    for (size_t i = 0; i < module->nstages; i++) {
        const struct rp_dump_stage *stage = &module->stages[i];

        if (!named && (stage->point == RP_DUMP_AT_PASS || (stage->point == RP_DUMP_AT_RUN && ran)))
            continue;
        ran |= stage->point == RP_DUMP_AT_RUN;
        pick_program(folder, module, stage, stage->source);
    }
}

/* Picks the stage of every module that has it; an error if none has it. */
static enum rp_code pick_stage(struct rp_graph_folder *folder, const char *text, struct rp_err *err)
{
    struct rp_err missing = RP_ERR_INIT;
    enum rp_code code = RP_OK;

    for (size_t i = 0; i < folder->dump.nmodules; i++) {
        const struct rp_dump_module *module = &folder->dump.modules[i];
        size_t stage;

        if (!folder->wanted[i])
            continue;
        code = rp_dump_find_stage(module, text, &stage, &missing);
        if (code == RP_OK)
            pick_program(folder, module, &module->stages[stage], module->stages[stage].source);
        else if (code != RP_USAGE)
            break;
    }
    if (!folder->n || (code != RP_OK && code != RP_USAGE)) {
        *err = missing;
        return code;
    }
    return RP_OK;
}

/* Picks files that belong to no module, because some may be programs. */
static enum rp_code pick_others(struct rp_graph_folder *folder, size_t nsources,
                                struct rp_arena *arena, struct rp_err *err)
{
    bool *taken = RP_ARENA_NEW(arena, bool, nsources + 1);

    RP_TRY(rp_err_need(taken, err, "listing programs"));
    for (size_t i = 0; i < folder->dump.nmodules; i++)
        for (size_t k = 0; k < folder->dump.modules[i].nfiles; k++)
            taken[folder->dump.modules[i].files[k].source] = true;
    for (size_t i = 0; i < nsources; i++)
        if (!taken[i])
            pick_program(folder, NULL, NULL, i);
    return RP_OK;
}

enum rp_code rp_graph_folder_open(const struct rp_dataset *dataset, const char *module,
                                  const char *stage, struct rp_arena *arena,
                                  struct rp_graph_folder *out, struct rp_err *err)
{
    size_t n = rp_sources_count(dataset->sources);

    *out = (struct rp_graph_folder){0};
    RP_TRY(rp_dataset_dump(dataset, arena, &out->dump, err));
    out->wanted = RP_ARENA_NEW(arena, bool, out->dump.nmodules + 1);
    out->sources = RP_ARENA_NEW(arena, size_t, n + 1);
    out->picks = RP_ARENA_NEW(arena, struct rp_graph_pick, n + 1);
    RP_TRY(rp_err_need(out->wanted && out->sources && out->picks, err, "listing programs"));
    if ((module || stage) && !out->dump.nmodules)
        return rp_err_set(err, RP_USAGE,
                          "'%s' is not a folder of compiler dumps, which --module and --stage need",
                          rp_sources_borrow(dataset->sources, 0)->path);
    if (out->dump.nmodules)
        RP_TRY(rp_dump_find_modules(&out->dump, module, out->wanted, err));
    if (stage)
        return pick_stage(out, stage, err);
    for (size_t i = 0; i < out->dump.nmodules; i++)
        if (out->wanted[i])
            pick_stages(out, &out->dump.modules[i], module != NULL);
    return module ? RP_OK : pick_others(out, n, arena, err);
}

/* ---- listing ---- */

struct folder_ctx {
    const struct rp_graph_folder *folder;
    struct rp_arena *arena;        /* of the result */
    struct rp_graph_program *rows; /* one for each source; the file is set once it was read */
    pthread_mutex_t lock;          /* of the arena */
};

static enum rp_code summarize_program(void *user, const struct rp_loaded_program *loaded,
                                      struct rp_err *err)
{
    struct folder_ctx *run = user;
    struct rp_graph_program *to = &run->rows[loaded->index];
    struct rp_arena scratch = RP_ARENA_INIT;
    struct rp_graph_answer graph;
    enum rp_code code = rp_graph_summarize(loaded->program, loaded->format, &scratch, &graph, err);

    if (code == RP_OK) {
        pthread_mutex_lock(&run->lock);
        to->file = rp_arena_text(run->arena, loaded->source->name);
        to->format = rp_arena_text(run->arena, graph.format);
        to->name = rp_arena_text(run->arena, graph.name);
        to->hash = rp_arena_text(run->arena, graph.hash);
        code = rp_arena_check(run->arena, "listing programs", err);
        pthread_mutex_unlock(&run->lock);
        to->instructions = graph.instructions;
        to->flops = graph.flops;
    }
    rp_arena_release(&scratch);
    return code;
}

/* Copies what a program shows about its module into the row of the module. */
static void note_stage(struct rp_graph_module *to, const struct rp_graph_pick *at,
                       const struct rp_graph_program *program)
{
    if (!at->stage)
        return;
    if (at->stage->point == RP_DUMP_AT_BEFORE)
        to->instructions_before = program->instructions;
    if (at->stage->point == RP_DUMP_AT_AFTER)
        to->instructions_after = program->instructions;
    if (!to->hash || at->stage->point <= RP_DUMP_AT_AFTER) {
        to->hash = program->hash;
        to->flops = program->flops;
    }
}

static enum rp_code describe_module(const struct rp_dump_module *from, struct rp_arena *arena,
                                    struct rp_graph_module *to, struct rp_err *err)
{
    bool seen[RP_DUMP_ROLES] = {false};

    *to = (struct rp_graph_module){.folder = from->root,
                                   .name = from->name,
                                   .id = from->id < 0 ? RP_ABSENT_I64 : from->id,
                                   .files = (int64_t)from->nfiles,
                                   .instructions_before = RP_ABSENT_I64,
                                   .instructions_after = RP_ABSENT_I64,
                                   .flops = RP_ABSENT_I64};
    for (size_t i = 0; i < from->nstages; i++) {
        to->passes += from->stages[i].point == RP_DUMP_AT_PASS;
        to->executions += from->stages[i].point == RP_DUMP_AT_RUN;
        to->stages +=
            from->stages[i].point != RP_DUMP_AT_PASS && from->stages[i].point != RP_DUMP_AT_RUN;
    }
    to->kinds = RP_ARENA_NEW(arena, const char *, RP_DUMP_ROLES);
    RP_TRY(rp_err_need(to->kinds, err, "listing modules"));
    for (size_t i = 0; i < from->nfiles; i++)
        seen[from->files[i].role] = true;
    for (size_t i = 0; i < RP_DUMP_ROLES; i++)
        if (seen[i])
            to->kinds[to->nkinds++] = rp_dump_role_name((enum rp_dump_role)i);
    return RP_OK;
}

static void list_rows(const struct folder_ctx *run, struct rp_graph_answer *root, const size_t *at)
{
    for (size_t i = 0; i < run->folder->n; i++) {
        const struct rp_graph_pick *from = &run->folder->picks[i];
        struct rp_graph_program *to = &run->rows[run->folder->sources[i]];

        if (!to->file)
            continue;
        to->module = from->module && from->module->id >= 0 ? from->module->id : RP_ABSENT_I64;
        to->stage = from->stage ? from->stage->name : NULL;
        root->instructions += to->instructions;
        root->programs[root->nprograms++] = *to;
        if (from->module)
            note_stage(&root->modules[at[from->module - run->folder->dump.modules]], from, to);
    }
}

enum rp_code rp_graph_folder_list(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                  const struct rp_graph_folder *folder, struct rp_result *result,
                                  struct rp_err *err)
{
    struct rp_graph_answer *root = result->root;
    struct folder_ctx run = {.folder = folder, .arena = &result->arena};
    size_t *at = RP_ARENA_NEW(run.arena, size_t, folder->dump.nmodules + 1);
    enum rp_code code;

    run.rows = RP_ARENA_NEW(run.arena, struct rp_graph_program, rp_dataset_count(dataset));
    root->programs = RP_ARENA_NEW(run.arena, struct rp_graph_program, folder->n + 1);
    RP_TRY(rp_err_need(at && run.rows && root->programs, err, "listing programs"));

    /* Make rows for the selected modules; at[i] is the row of module i. */
    root->modules = RP_ARENA_NEW(run.arena, struct rp_graph_module, folder->dump.nmodules + 1);
    RP_TRY(rp_err_need(root->modules, err, "listing modules"));
    for (size_t i = 0; i < folder->dump.nmodules; i++)
        if (folder->wanted[i]) {
            at[i] = root->nmodules;
            RP_TRY(describe_module(&folder->dump.modules[i], run.arena,
                                   &root->modules[root->nmodules++], err));
        }

    pthread_mutex_init(&run.lock, NULL);
    code =
        rp_each_program_of(ctx, dataset, folder->sources, folder->n, summarize_program, &run, err);
    pthread_mutex_destroy(&run.lock);
    root->aliased = root->aliased_bytes = root->computations = root->parameters =
        root->parameter_bytes = root->constant_bytes = root->flops = root->transcendentals =
            root->bytes = RP_ABSENT_I64;
    if (code == RP_OK)
        list_rows(&run, root, at);
    return code;
}
