/* SPDX-License-Identifier: Apache-2.0 */
/* `dump recompiles` shows what was compiled again, the guard that failed, what differed, and how to
   avoid it. A compile has one guard for each earlier compile; the screen shows the one that tells
   most. */
#include "base/names.h"
#include "base/text.h"
#include "dump/torch.h"
#include "result/print_units.h"

struct again_row {
    const char *id, *function, *file, *place, *kind, *what, *where, *avoid;
    int64_t rank, shown_rank, line, compile_ns;
    bool dynamic, limited;
    size_t nguards;
    struct rp_compile_guard *guards;
};

struct function_row {
    const char *function, *place, *kinds;
    int64_t compiles, again, compile_ns, failed;
    bool limited;
};

struct recompiles_root {
    const char *summary;
    int64_t count, compile_ns, compiles;
    size_t nrecompiles, nfunctions, nadvice, nnotes;
    struct again_row *recompiles;
    struct function_row *functions;
    const char **advice;
    struct rp_compile_problems problems;
    const char **notes;
};

#define GUARD(key, member, type, doc, flags) \
    RP_FIELD_AS(key, struct rp_compile_guard, member, type, NONE, NULL, doc, flags)
static const struct rp_field guard_fields[] = {
    GUARD("text", is.text, STR, "text in the log", 0),
    GUARD("entry", is.entry, STR, "the compile that did not fit", 0),
    GUARD("kind", is.kind, STR, "size, dtype, constant …", 0),
    GUARD("what", is.what, STR, "what differed", 0),
    GUARD("avoid", is.avoid, STR, "how to avoid it", 0),
    GUARD("file", file, STR, "file of the line that made the guard; null: not stated", 0),
    GUARD("line", is.line, I64, "likewise", RP_NULLABLE),
    RP_FIELD_END};
static const struct rp_type guard_type = {"guard", sizeof(struct rp_compile_guard), guard_fields,
                                          NULL};

#define ROW(member, type, unit, title, doc, flags) \
    RP_FIELD(struct again_row, member, type, unit, title, doc, flags)
static const struct rp_field again_fields[] = {
    ROW(id, STR, NONE, "compile", "number of the function, and of the compile of it", 0),
    ROW(rank, I64, NONE, NULL, "rank of the process", RP_NULLABLE),
    ROW(shown_rank, I64, NONE, "rank", "text output only", RP_NULLABLE | RP_SCREEN),
    ROW(function, STR, NONE, "function", "that was compiled", RP_SHORTEN),
    ROW(file, STR, NONE, NULL, "file of the function", 0),
    ROW(line, I64, NONE, NULL, "its first", RP_NULLABLE),
    ROW(compile_ns, I64, NS, "time", "time of the compile", RP_NULLABLE),
    ROW(kind, STR, NONE, "because of",
        "the kind of guard that most of the compiles before failed by", 0),
    ROW(what, STR, NONE, "what differed", "what differed, from the newest of these compiles",
        RP_SHORTEN),
    ROW(where, STR, NONE, "guard made at", "text output only", RP_SCREEN | RP_WIDE),
    ROW(avoid, STR, NONE, NULL, "how to avoid it", 0),
    ROW(dynamic, BOOL, NONE, NULL, "whether the new graph takes any size", 0),
    ROW(limited, BOOL, NONE, NULL, "whether the limit of compiles was reached", 0),
    RP_FIELD_LIST(struct again_row, guards, &guard_type, NULL, "one for each compile before", 0),
    RP_FIELD_END};
static const struct rp_type again_type = {"recompile", sizeof(struct again_row), again_fields,
                                          NULL};

#define FUNCTION(member, type, unit, title, doc, flags) \
    RP_FIELD(struct function_row, member, type, unit, title, doc, flags)
static const struct rp_field function_fields[] = {
    FUNCTION(function, STR, NONE, "function", "that was compiled several times", RP_SHORTEN),
    FUNCTION(place, STR, NONE, "at", "file and first line", 0),
    FUNCTION(compiles, I64, COUNT, "compiles", "number of its compiles in all processes", 0),
    FUNCTION(again, I64, COUNT, "again", "those that are not the first", 0),
    FUNCTION(compile_ns, I64, NS, "their time", "time of those that are not the first", 0),
    FUNCTION(limited, BOOL, NONE, "gave up", "whether the limit of compiles was reached", 0),
    RP_FIELD_END};
static const struct rp_type function_type = {"function", sizeof(struct function_row),
                                             function_fields, NULL};

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct recompiles_root, member, type, unit, title, doc, flags)
static const struct rp_field root_fields[] = {
    ROOT(summary, STR, NONE, "recompiles", "text output only", RP_SCREEN),
    ROOT(count, I64, COUNT, NULL, "compiles of what was compiled before", 0),
    ROOT(compile_ns, I64, NS, NULL, "their compile time", 0),
    ROOT(compiles, I64, COUNT, NULL, "number of compiles in the logs", 0),
    RP_FIELD_LIST(struct recompiles_root, functions, &function_type, "functions",
                  "that were compiled again", 0),
    RP_FIELD_LIST(struct recompiles_root, recompiles, &again_type, "recompiles",
                  "in the order of the logs", 0),
    RP_FIELD_LIST(struct recompiles_root, advice, &rp_type_string, "to avoid them",
                  "what differed, and what to do about it, each once", 0),
    RP_FIELD_RECORD(struct recompiles_root, problems, &rp_compile_problems_type, NULL,
                    "what the logs lack", 0),
    RP_FIELD_LIST(struct recompiles_root, notes, &rp_type_string, "notes", "what to know", 0),
    RP_FIELD_END};
static const struct rp_type recompiles_type = {"dump_recompiles", sizeof(struct recompiles_root),
                                               root_fields, "recompiles"};

/* ------------------------------------------------------------------ rows */

/* Of the guards of a compile the one that the screen shows. */
static const struct rp_torch_guard *main_guard(const struct rp_compile_cause *cause,
                                               struct rp_arena *arena)
{
    struct rp_torch_guard *guards = RP_ARENA_NEW(arena, struct rp_torch_guard, cause->nguards + 1);

    if (!guards || !cause->nguards)
        return NULL;
    for (size_t i = 0; i < cause->nguards; i++)
        guards[i] = cause->guards[i].is;
    return &guards[rp_torch_guard_main(guards, cause->nguards)];
}

static void fill_again(const struct rp_compile_row *from, struct rp_arena *arena,
                       struct again_row *row)
{
    const struct rp_torch_guard *guard =
        from->nrecompiled ? main_guard(from->recompiled, arena) : NULL;

    *row = (struct again_row){.id = from->id,
                              .rank = from->rank,
                              .shown_rank = from->rank,
                              .function = from->function,
                              .file = from->file,
                              .line = from->line,
                              .place = from->place,
                              .compile_ns = from->compile_ns,
                              .dynamic = from->dynamic,
                              .limited = from->limited,
                              .nguards = from->nrecompiled ? from->recompiled->nguards : 0,
                              .guards = from->nrecompiled ? from->recompiled->guards : NULL,
                              .kind = guard ? guard->kind : "limit",
                              .what = guard ? guard->what : from->failed,
                              .avoid = guard ? guard->avoid : NULL};
    if (guard && guard->path)
        row->where =
            rp_arena_textf(arena, "%s:%lld", rp_text_file(guard->path), (long long)guard->line);
}

static enum rp_code add_advice(struct recompiles_root *root, const struct again_row *row,
                               struct rp_names *said, struct rp_arena *arena, struct rp_err *err)
{
    if (!row->avoid)
        return RP_OK;
    const char *text = rp_arena_textf(arena, "%s (%s): %s", row->function ? row->function : row->id,
                                      row->kind, row->avoid);
    if (rp_names_find(said, text) != RP_NONE)
        return RP_OK;
    rp_arena_append(arena, &root->advice, &root->nadvice, text);
    return rp_names_add(said, text, 0, err);
}

static enum rp_code add_again(struct recompiles_root *root, const struct rp_compile_row *rows,
                              size_t n, struct rp_arena *arena, struct rp_err *err)
{
    struct rp_names said = {0};
    enum rp_code code = RP_OK;

    for (size_t i = 0; i < n && code == RP_OK; i++) {
        struct again_row *row = &root->recompiles[root->nrecompiles];

        if (!rows[i].nrecompiled && !rows[i].limited)
            continue;
        fill_again(&rows[i], arena, row);
        code = add_advice(root, row, &said, arena, err);
        root->compile_ns += row->compile_ns == RP_ABSENT_I64 ? 0 : row->compile_ns;
        root->nrecompiles++;
    }
    rp_names_release(&said);
    return code;
}

static enum rp_code fill_recompiles(const struct rp_dump_torch *torch, struct recompiles_root *root,
                                    struct rp_arena *arena, struct rp_err *err)
{
    size_t n;
    const struct rp_compile_row *rows = rp_dump_torch_rows(torch, arena, &n);
    int64_t limited = 0;

    root->recompiles = RP_ARENA_NEW(arena, struct again_row, n + 1);
    RP_TRY(rp_arena_check(arena, "listing recompiles", err));
    /* Lists functions with several compiles, with all of these. */
    struct function_row *all = RP_ARENA_NEW(arena, struct function_row, n + 1);
    struct rp_names names = {0};
    enum rp_code code = rp_err_need(all, err, "listing recompiles");
    uint32_t used = 0;
    for (size_t i = 0; i < n && code == RP_OK; i++) {
        const char *name = rp_arena_textf(arena, "%s\n%s", rows[i].function ? rows[i].function : "",
                                          rows[i].place ? rows[i].place : "");

        uint32_t f = rp_names_find(&names, name);
        if (f == RP_NONE) {
            f = used++;
            all[f] = (struct function_row){.function = rows[i].function, .place = rows[i].place};
            code = rp_names_add(&names, name, f, err);
        }
        all[f].compiles++;
        all[f].limited = all[f].limited || rows[i].limited;
        if (rows[i].nrecompiled || rows[i].limited) {
            all[f].again++;
            all[f].compile_ns += rows[i].compile_ns == RP_ABSENT_I64 ? 0 : rows[i].compile_ns;
        }
    }
    rp_names_release(&names);
    root->functions = all;
    for (uint32_t f = 0; f < used && code == RP_OK; f++)
        if (all[f].again)
            all[root->nfunctions++] = all[f];
    RP_TRY(code);
    RP_TRY(add_again(root, rows, n, arena, err));
    for (size_t i = 0; i < root->nrecompiles; i++)
        limited += root->recompiles[i].limited;
    root->compiles = (int64_t)n;
    root->count = (int64_t)root->nrecompiles;
    root->summary = rp_arena_textf(arena, "%s of %s, in %s", rp_units_number(arena, root->count),
                                   rp_units_count(arena, root->compiles, "compile"),
                                   rp_units_time(arena, root->compile_ns));
    rp_dump_torch_problems(torch, arena, &root->problems);
    RP_NOTE(root, arena, rp_dump_torch_warning(&root->problems, arena));
    if (limited)
        RP_NOTE(root, arena,
                "where the limit of compiles (torch._dynamo.config.recompile_limit) was reached, "
                "the function runs eagerly, and nothing more is logged about it");
    return rp_arena_check(arena, "listing recompiles", err);
}

static enum rp_code recompiles_run(const struct rp_dump_call *call, struct rp_result *result,
                                   struct rp_err *err)
{
    RP_SCOPED(rp_dump_torch_release) struct rp_dump_torch torch = {0};

    RP_TRY(rp_dump_torch_need(call, &result->arena, &torch, err));
    return fill_recompiles(&torch, result->root, &result->arena, err);
}

const struct rp_dump_word rp_dump_recompiles = {
    .name = "recompiles",
    .summary = "what torch.compile compiled again, why, and how to avoid it",
    .options = "module",
    .files = true,
    .type = &recompiles_type,
    .run = recompiles_run};
