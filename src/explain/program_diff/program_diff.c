/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inputs decide what is compared: two programs in full; the graphs of one lazy-tensor dump, or
 * the modules of one folder that have the same name, each with the most similar one before it; two
 * dumps or two folders module by module. Programs of folders are first read in parallel for their
 * hashes only, and then the pairs that differ are read again, so that memory holds two programs at
 * a time.
 */
#include "explain/program_diff/program_diff.h"

#include "explain/graph/graph.h"
#include "formats/torch_trace/torch_trace.h"

#include <stdio.h>
#include <string.h>

/* ---- the records ---- */

static const struct rp_field change_fields[] = {
    RP_FIELD(struct rp_program_diff_change, kind, STR, NONE, "change",
             "added, removed, opcode, shape, constant, attribute, operands, sharding; follows: a "
             "consequence of the others",
             0),
    RP_FIELD(struct rp_program_diff_change, count, I64, COUNT, "times",
             "operations changed in this way", 0),
    RP_FIELD(struct rp_program_diff_change, what, STR, NONE, NULL,
             "the operation, before and after", RP_SHORTEN),
    RP_FIELD(struct rp_program_diff_change, where, STR, NONE, NULL,
             "scope named by the user, or number of the repeat", RP_SHORTEN),
    RP_FIELD(struct rp_program_diff_change, place, STR, NONE, NULL, "line of the user's program",
             RP_SHORTEN),
    RP_FIELD(struct rp_program_diff_change, example, STR, NONE, NULL, "the first such operation",
             RP_SHORTEN),
    RP_FIELD(struct rp_program_diff_change, text, STR, NONE, "what, where", "text output only",
             RP_SCREEN),
    RP_FIELD_END};
static const struct rp_type change_type = {"change", sizeof(struct rp_program_diff_change),
                                           change_fields, NULL};

static const struct rp_field side_fields[] = {
    RP_FIELD(struct rp_program_diff_program, name, STR, NONE, "name", "name of the program",
             RP_SHORTEN),
    RP_FIELD(struct rp_program_diff_program, hash, STR, NONE, "hash", "structural", 0),
    RP_FIELD(struct rp_program_diff_program, instructions, I64, COUNT, "operations",
             "instructions in all computations", 0),
    RP_FIELD_END};
static const struct rp_type side_type = {"program", sizeof(struct rp_program_diff_program),
                                         side_fields, NULL};

static const struct rp_field step_fields[] = {
    RP_FIELD(struct rp_program_diff_step, label, STR, NONE, "graph", "number and name", RP_SCREEN),
    RP_FIELD(struct rp_program_diff_step, graph, I64, NONE, NULL, "number in the dump, from 1", 0),
    RP_FIELD(struct rp_program_diff_step, name, STR, NONE, NULL, "name of the graph or its file",
             RP_SHORTEN),
    RP_FIELD(struct rp_program_diff_step, runs, I64, COUNT, "runs", "identical graphs in the dump",
             0),
    RP_FIELD(struct rp_program_diff_step, cause, STR, NONE, "cause",
             "first, same, shape, constant, sharding or structure", 0),
    RP_FIELD(struct rp_program_diff_step, against, I64, NONE, NULL, "the graph it is compared with",
             RP_NULLABLE),
    RP_FIELD(struct rp_program_diff_step, what, STR, NONE, NULL, "the most important change",
             RP_SHORTEN),
    RP_FIELD(struct rp_program_diff_step, where, STR, NONE, NULL, "scope, or number of the repeat",
             RP_SHORTEN),
    RP_FIELD(struct rp_program_diff_step, place, STR, NONE, NULL, "line of the user's program",
             RP_SHORTEN),
    RP_FIELD(struct rp_program_diff_step, changes, I64, COUNT, NULL, "number of changes", RP_WIDE),
    RP_FIELD(struct rp_program_diff_step, text, STR, NONE, "why", "text output only", RP_SCREEN),
    RP_FIELD_END};
static const struct rp_type step_type = {"step", sizeof(struct rp_program_diff_step), step_fields,
                                         NULL};

static const struct rp_field module_fields[] = {
    RP_FIELD(struct rp_program_diff_module, name, STR, NONE, "module", "name and stage", 0),
    RP_FIELD(struct rp_program_diff_module, state, STR, NONE, "state",
             "same, different, added or removed", 0),
    RP_FIELD(struct rp_program_diff_module, cause, STR, NONE, NULL,
             "shape, constant, sharding or structure", 0),
    RP_FIELD(struct rp_program_diff_module, changes, I64, COUNT, NULL, "number of changes", 0),
    RP_FIELD(struct rp_program_diff_module, what, STR, NONE, NULL, "the most important change",
             RP_SHORTEN),
    RP_FIELD(struct rp_program_diff_module, where, STR, NONE, NULL,
             "scope, or number of the repeat", RP_SHORTEN),
    RP_FIELD(struct rp_program_diff_module, place, STR, NONE, NULL, "line of the user's program",
             RP_SHORTEN),
    RP_FIELD(struct rp_program_diff_module, left, STR, NONE, NULL, "file on the left", 0),
    RP_FIELD(struct rp_program_diff_module, right, STR, NONE, NULL, "file on the right", 0),
    RP_FIELD(struct rp_program_diff_module, text, STR, NONE, "why", "text output only", RP_SCREEN),
    RP_FIELD_END};
static const struct rp_type module_type = {"module", sizeof(struct rp_program_diff_module),
                                           module_fields, NULL};

static const struct rp_field diff_fields[] = {
    RP_FIELD(struct rp_program_diff, inputs, STR, NONE, NULL, "programs", 0),
    RP_FIELD(struct rp_program_diff, same, BOOL, NONE, "same", "whether they are the same program",
             0),
    RP_FIELD(struct rp_program_diff, cause, STR, NONE, "cause",
             "kind of the change: shape, constant, sharding or structure", 0),
    RP_FIELD_RECORD(struct rp_program_diff, left, &side_type, "left", "the first program", 0),
    RP_FIELD_RECORD(struct rp_program_diff, right, &side_type, "right", "the second program", 0),
    RP_FIELD(struct rp_program_diff, matched, I64, COUNT, "matched", "operations in both", 0),
    RP_FIELD(struct rp_program_diff, changed, I64, COUNT, "changed", "those of them that differ",
             0),
    RP_FIELD(struct rp_program_diff, follows, I64, COUNT, "implied",
             "those of the changed that only result from others", 0),
    RP_FIELD(struct rp_program_diff, added, I64, COUNT, "added", "only in the second", 0),
    RP_FIELD(struct rp_program_diff, removed, I64, COUNT, "removed", "only in the first", 0),
    RP_FIELD_LIST(struct rp_program_diff, changes, &change_type, "changes",
                  "identical changes in many places are one row", 0),
    RP_FIELD_END};
const struct rp_type rp_program_diff_type = {"diff", sizeof(struct rp_program_diff), diff_fields,
                                             "changes"};

static const struct rp_field steps_fields[] = {
    RP_FIELD(struct rp_program_diff, inputs, STR, NONE, NULL, "programs", 0),
    RP_FIELD(struct rp_program_diff, same, BOOL, NONE, "same", "whether nothing was recompiled", 0),
    RP_FIELD_LIST(struct rp_program_diff, steps, &step_type, "steps",
                  "graphs that had to be compiled, and why", 0),
    RP_FIELD_END};
static const struct rp_type diff_steps_type = {"diff", sizeof(struct rp_program_diff), steps_fields,
                                               "steps"};

static const struct rp_field modules_fields[] = {
    RP_FIELD(struct rp_program_diff, inputs, STR, NONE, NULL, "programs", 0),
    RP_FIELD(struct rp_program_diff, same, BOOL, NONE, "same", "true if all modules are equal", 0),
    RP_FIELD(struct rp_program_diff, matched, I64, COUNT, "matched", "modules in both", 0),
    RP_FIELD(struct rp_program_diff, changed, I64, COUNT, "changed", "those of them that differ",
             0),
    RP_FIELD(struct rp_program_diff, added, I64, COUNT, "added", "only in the second", 0),
    RP_FIELD(struct rp_program_diff, removed, I64, COUNT, "removed", "only in the first", 0),
    RP_FIELD_LIST(struct rp_program_diff, modules, &module_type, "modules", "one row per pair", 0),
    RP_FIELD_END};
static const struct rp_type diff_modules_type = {"diff", sizeof(struct rp_program_diff),
                                                 modules_fields, "modules"};

/* ---- the command ---- */

struct diff_ctx {
    struct rp_ctx *ctx;
    const struct rp_dataset *dataset;
    struct rp_result *result;
    struct rp_program_diff *root;
    struct rp_arena *arena; /* of the result */
    const char *html;       /* path of the page to write, or NULL */
    bool drawn;             /* it was written */
    struct rp_err *err;
};

static const struct rp_source *source_at(const struct diff_ctx *run, size_t i)
{
    return rp_sources_borrow(run->dataset->sources, i);
}

static bool has_graphs(const struct rp_program *p)
{
    return !strcmp(p->language, "lazy") && p->computations.n > 1;
}

/* ---- programs and graphs to compare ---- */

struct items {
    size_t n;
    struct rp_module_key *keys;
    size_t *source;    /* of the dataset */
    const char **file; /* to show */
    int64_t *number;   /* number of the module or the graph */
    uint32_t *graph;   /* the computation; RP_NONE: the whole program */
    struct rp_dump_stage const **stage;
};

static enum rp_code items_new(struct diff_ctx *run, size_t cap, struct items *out)
{
    *out = (struct items){0};
    out->keys = RP_ARENA_NEW(run->arena, struct rp_module_key, cap + 1);
    out->source = RP_ARENA_NEW(run->arena, size_t, cap + 1);
    out->file = RP_ARENA_NEW(run->arena, const char *, cap + 1);
    out->number = RP_ARENA_NEW(run->arena, int64_t, cap + 1);
    out->graph = RP_ARENA_NEW(run->arena, uint32_t, cap + 1);
    out->stage = RP_ARENA_NEW(run->arena, const struct rp_dump_stage *, cap + 1);
    return rp_arena_check(run->arena, "comparing programs", run->err);
}

/* Lists the graphs of a lazy-tensor dump, without duplicates. */
static enum rp_code list_graphs(struct diff_ctx *run, const struct rp_match_side *side,
                                size_t source, struct items *out)
{
    size_t n = side->p->computations.n;
    struct rp_map seen = {0};
    enum rp_code code = items_new(run, n, out);

    for (uint32_t i = 0; code == RP_OK && i < n; i++) {
        uint64_t hash = side->hashes.computation[i];
        uint32_t known;

        code = rp_map_intern(&seen, hash, i, &known, run->err);
        if (code != RP_OK || known != i)
            continue;
        out->keys[out->n] = (struct rp_module_key){"graph", "", hash, 0};
        out->source[out->n] = source;
        out->file[out->n] = rp_arena_textf(run->arena, "graph %u", i + 1);
        out->graph[out->n] = i;
        out->number[out->n] = i + 1;
        out->n++;
    }
    rp_map_release(&seen);
    return code == RP_OK ? rp_arena_check(run->arena, "comparing programs", run->err) : code;
}

/* ---- modules ---- */

static const char *stage_name(const struct rp_dump_stage *stage)
{
    switch (stage->point) {
    case RP_DUMP_AT_SOURCE:
        return "source";
    case RP_DUMP_AT_BEFORE:
        return "before";
    case RP_DUMP_AT_AFTER: /* the stage's name contains the device */
        return "after";
    default:
        return stage->name;
    }
}

/* The length of the folder that all sources of a side share. */
static size_t common_folder(const struct diff_ctx *run, size_t given)
{
    const char *first = NULL;
    size_t n = 0;

    for (size_t i = 0; i < rp_sources_count(run->dataset->sources); i++) {
        const struct rp_source *source = source_at(run, i);
        size_t k = 0;

        if (source->given != given)
            continue;
        if (!first) {
            first = source->name;
            n = strlen(first);
        }
        while (k < n && first[k] == source->name[k])
            k++;
        n = k;
    }
    while (n && first[n - 1] != '/' && first[n - 1] != '!')
        n--;
    return n;
}

static enum rp_code name_item(struct diff_ctx *run, const struct rp_graph_pick *pick, size_t source,
                              size_t common, struct items *out)
{
    const char *file = source_at(run, source)->name, *slash = strrchr(file, '/');
    const char *mark = strrchr(file, '!'), *base = slash > mark ? slash : mark;
    size_t i = out->n++, end;

    base = base ? base + 1 : file;
    end = pick->module ? strlen(pick->module->root) : (size_t)(base - file);
    out->source[i] = source;
    out->file[i] = rp_arena_text(run->arena, file);
    out->graph[i] = RP_NONE;
    out->number[i] = pick->module && pick->module->id >= 0 ? pick->module->id : RP_ABSENT_I64;
    out->stage[i] = pick->stage;
    out->keys[i].folder =
        end > common ? rp_arena_copy(run->arena, file + common, end - common) : "";
    out->keys[i].name = pick->module ? rp_arena_textf(run->arena, "%s %s", pick->module->name,
                                                      stage_name(pick->stage))
                                     : rp_arena_text(run->arena, base);
    return rp_arena_check(run->arena, "comparing programs", run->err);
}

/* Lists the programs of a side that are to be compared. */
static enum rp_code list_side(struct diff_ctx *run, const struct rp_graph_folder *folder,
                              size_t given, struct items *out)
{
    size_t common = common_folder(run, given);

    RP_TRY(items_new(run, folder->n, out));
    for (size_t i = 0; i < folder->n; i++)
        if (source_at(run, folder->sources[i])->given == given)
            RP_TRY(name_item(run, &folder->picks[i], folder->sources[i], common, out));
    return RP_OK;
}

struct hashing {
    struct rp_module_key *by_source; /* hash 0: no program */
};

static enum rp_code hash_program(void *user, const struct rp_loaded_program *loaded,
                                 struct rp_err *err)
{
    struct hashing *h = user;
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;
    struct rp_match_side side;

    RP_TRY(rp_match_prepare(loaded->program, &scratch, &side, err));
    struct rp_program_diff_side whole = {&side, RP_NONE};

    h->by_source[loaded->index].hash = rp_program_diff_side_hash(whole);
    h->by_source[loaded->index].sharding = rp_program_diff_sharding_hash(whole);
    h->by_source[loaded->index].name = "";
    return RP_OK;
}

static void move_item(struct items *items, size_t from, size_t to)
{
    items->keys[to] = items->keys[from];
    items->source[to] = items->source[from];
    items->file[to] = items->file[from];
    items->number[to] = items->number[from];
    items->graph[to] = items->graph[from];
    items->stage[to] = items->stage[from];
}

/* Fills in the hashes and drops files that are not programs. */
static void keep_programs(struct items *items, const struct hashing *h)
{
    size_t n = 0;

    for (size_t i = 0; i < items->n; i++) {
        const struct rp_module_key *key = &h->by_source[items->source[i]];

        if (!key->name)
            continue;
        move_item(items, i, n);
        items->keys[n].hash = key->hash;
        items->keys[n++].sharding = key->sharding;
    }
    items->n = n;
}

static enum rp_code hash_all(struct diff_ctx *run, const struct rp_graph_folder *folder,
                             struct items *left, struct items *right)
{
    struct hashing h = {RP_ARENA_NEW(run->arena, struct rp_module_key,
                                     rp_sources_count(run->dataset->sources) + 1)};

    RP_TRY(rp_err_need(h.by_source, run->err, "comparing programs"));
    RP_TRY(rp_each_program_of(run->ctx, run->dataset, folder->sources, folder->n, hash_program, &h,
                              run->err));
    keep_programs(left, &h);
    keep_programs(right, &h);
    return RP_OK;
}

/* ---- one pair ---- */

struct loaded {
    struct rp_import import;
    struct rp_arena arena;
    struct rp_match_side side;
};

static enum rp_code load_side(struct diff_ctx *run, size_t source, struct loaded *out)
{
    out->import = (struct rp_import)RP_IMPORT_INIT;
    rp_arena_init(&out->arena);
    RP_TRY(rp_load_program(run->dataset, source, &out->import, run->err));
    return rp_match_prepare(out->import.program, &out->arena, &out->side, run->err);
}

static void unload_side(struct loaded *loaded)
{
    rp_import_release(&loaded->import);
    rp_arena_release(&loaded->arena);
}

static enum rp_code describe_difference(struct diff_ctx *run, const struct rp_program_diff *diff,
                                        struct rp_program_diff_module *row)
{
    const struct rp_program_diff_change *change = rp_program_diff_main_change(diff);

    if (diff->same)
        return RP_OK;
    row->state = "different";
    row->cause = rp_arena_text(run->arena, diff->cause);
    row->what = change ? rp_program_diff_change_words(change, run->arena) : "";
    row->where = rp_arena_text(run->arena, change ? change->where : "");
    row->place = rp_arena_text(run->arena, change ? change->place : "");
    row->changes = diff->changed - diff->follows + diff->added + diff->removed;
    row->text = rp_program_diff_sentence(row->what, row->where, row->place, run->arena);
    if (row->changes > 1)
        row->text = rp_arena_textf(run->arena, "%s; %lld changes in total", row->text,
                                   (long long)row->changes);
    return rp_arena_check(run->arena, "comparing programs", run->err);
}

static enum rp_code compare_graphs(struct diff_ctx *run, struct rp_program_diff_side left,
                                   struct rp_program_diff_side right,
                                   struct rp_program_diff_module *row)
{
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;
    struct rp_program_diff diff;

    RP_TRY(rp_program_diff_sides(left, right, &scratch, &diff, run->err));
    return describe_difference(run, &diff, row);
}

static enum rp_code compare_files(struct diff_ctx *run, size_t left, size_t right,
                                  struct rp_program_diff_module *row)
{
    struct loaded a = {0}, b = {0};
    enum rp_code code = load_side(run, left, &a);

    if (code == RP_OK)
        code = load_side(run, right, &b);
    if (code == RP_OK)
        code = compare_graphs(run, (struct rp_program_diff_side){&a.side, RP_NONE},
                              (struct rp_program_diff_side){&b.side, RP_NONE}, row);
    unload_side(&a);
    unload_side(&b);
    return code;
}

/* ---- tables ---- */

/* sides: the two programs as graphs; NULL if they must be read from their files first. */
struct sides {
    const struct rp_match_side *left, *right;
};

static enum rp_code compare_row(struct diff_ctx *run, const struct items *left,
                                const struct items *right, struct rp_module_pair pair,
                                struct sides graphs, struct rp_program_diff_module *row)
{
    const struct rp_module_key *a = pair.left == SIZE_MAX ? NULL : &left->keys[pair.left];
    const struct rp_module_key *b = pair.right == SIZE_MAX ? NULL : &right->keys[pair.right];

    if (!a && !b)
        return RP_OK;
    *row = (struct rp_program_diff_module){.name = a ? a->name : b->name,
                                           .state = !a   ? "added"
                                                    : !b ? "removed"
                                                         : "same",
                                           .cause = "",
                                           .what = "",
                                           .where = "",
                                           .place = "",
                                           .text = "",
                                           .left = a ? left->file[pair.left] : "",
                                           .right = b ? right->file[pair.right] : ""};
    if (graphs.left)
        row->name = a ? row->left : row->right;
    if (!a || !b || rp_program_diff_same_hashes(a->hash, a->sharding, b->hash, b->sharding))
        return RP_OK;
    if (!graphs.left)
        return compare_files(run, left->source[pair.left], right->source[pair.right], row);
    return compare_graphs(run, (struct rp_program_diff_side){graphs.left, left->graph[pair.left]},
                          (struct rp_program_diff_side){graphs.right, right->graph[pair.right]},
                          row);
}

/* Puts differences first; if memory runs out, the order stays. */
static void sort_same_last(struct rp_program_diff_module *rows, size_t n, struct rp_arena *arena)
{
    struct rp_program_diff_module *sorted =
        RP_ARENA_NEW(arena, struct rp_program_diff_module, n + 1);
    size_t k = 0;

    if (!sorted)
        return;
    for (int same = 0; same < 2; same++)
        for (size_t i = 0; i < n; i++)
            if ((strcmp(rows[i].state, "same") == 0) == same)
                sorted[k++] = rows[i];
    memcpy(rows, sorted, n * sizeof *rows);
}

static enum rp_code compare_items(struct diff_ctx *run, const struct items *left,
                                  const struct items *right, struct sides graphs)
{
    struct rp_module_pair *pairs;
    struct rp_program_diff *root = run->root;
    size_t n;

    RP_TRY(rp_modules_pair(left->keys, left->n, right->keys, right->n, run->arena, &pairs, &n,
                           run->err));
    root->modules = RP_ARENA_NEW(run->arena, struct rp_program_diff_module, n + 1);
    RP_TRY(rp_err_need(root->modules, run->err, "comparing programs"));
    root->same = true;
    for (size_t i = 0; i < n; i++) {
        struct rp_program_diff_module *row = &root->modules[root->nmodules++];

        RP_TRY(compare_row(run, left, right, pairs[i], graphs, row));
        root->matched += !strcmp(row->state, "same");
        root->changed += !strcmp(row->state, "different");
        root->added += !strcmp(row->state, "added");
        root->removed += !strcmp(row->state, "removed");
    }
    root->matched += root->changed;
    sort_same_last(root->modules, root->nmodules, run->arena);
    root->same = !root->changed && !root->added && !root->removed;
    run->result->type = &diff_modules_type;
    return RP_OK;
}

/* ---- two files ---- */

static enum rp_code diff_programs(struct diff_ctx *run, size_t left, size_t right)
{
    struct loaded a = {0}, b = {0};
    struct items x, y;
    enum rp_code code = load_side(run, left, &a);

    if (code == RP_OK)
        code = load_side(run, right, &b);
    if (code == RP_OK && !has_graphs(a.import.program) && !has_graphs(b.import.program)) {
        code = rp_program_diff_sides((struct rp_program_diff_side){&a.side, RP_NONE},
                                     (struct rp_program_diff_side){&b.side, RP_NONE}, run->arena,
                                     run->root, run->err);
        if (code == RP_OK && run->html) {
            code = rp_program_diff_draw(&a.side, source_at(run, left)->name, &b.side,
                                        source_at(run, right)->name, run->html, run->err);
            run->drawn = true;
        }
    } else if (code == RP_OK) {
        code = list_graphs(run, &a.side, left, &x);
        if (code == RP_OK)
            code = list_graphs(run, &b.side, right, &y);
        if (code == RP_OK)
            code = compare_items(run, &x, &y, (struct sides){&a.side, &b.side});
    }
    unload_side(&a);
    unload_side(&b);
    return code;
}

/* ---- one dump ---- */

static enum rp_code keep_steps(struct diff_ctx *run, struct rp_recompiles *steps, size_t families)
{
    struct rp_program_diff *root = run->root;

    root->steps = RP_ARENA_NEW(run->arena, struct rp_program_diff_step, steps->rows.n + 1);
    RP_TRY(rp_err_need(root->steps, run->err, "comparing programs"));
    if (steps->rows.n)
        memcpy(root->steps, steps->rows.at, steps->rows.n * sizeof *steps->rows.at);
    root->nsteps = steps->rows.n;
    root->same = steps->rows.n <= families;
    run->result->type = &diff_steps_type;
    return RP_OK;
}

static enum rp_code steps_of_file(struct diff_ctx *run, size_t source)
{
    struct rp_recompiles steps = {.rows = {0}};
    struct rp_recompile_graph *graphs = NULL;
    struct loaded a = {0};
    enum rp_code code = load_side(run, source, &a);
    size_t n = code == RP_OK ? a.import.program->computations.n : 0;

    if (code == RP_OK && !has_graphs(a.import.program))
        code = rp_err_set(run->err, RP_USAGE,
                          "'diff' compares two programs, but '%s' is only one; a single file must "
                          "hold several graphs",
                          source_at(run, source)->name);
    if (code == RP_OK) {
        graphs = RP_ARENA_NEW(run->arena, struct rp_recompile_graph, n);
        if (!graphs)
            code = rp_err_nomem(run->err, "comparing programs");
    }
    for (uint32_t i = 0; code == RP_OK && i < n; i++)
        graphs[i] = (struct rp_recompile_graph){{&a.side, i}, "", (int64_t)i + 1};
    if (code == RP_OK)
        code = rp_recompiles_explain(graphs, n, run->arena, &steps, run->err);
    if (code == RP_OK)
        code = keep_steps(run, &steps, 1);
    rp_vec_release(&steps.rows);
    unload_side(&a);
    return code;
}

/* Compares modules with the same name, which are loaded together. */
static enum rp_code steps_of_family(struct diff_ctx *run, const struct items *items,
                                    const size_t *members, size_t n, struct rp_recompiles *steps)
{
    struct loaded *loaded = RP_ARENA_NEW(run->arena, struct loaded, n);
    struct rp_recompile_graph *graphs = RP_ARENA_NEW(run->arena, struct rp_recompile_graph, n);
    enum rp_code code = rp_err_need(loaded && graphs, run->err, "comparing programs");
    size_t opened = 0;

    for (; code == RP_OK && opened < n; opened++) {
        size_t item = members[opened];

        code = load_side(run, items->source[item], &loaded[opened]);
        graphs[opened] = (struct rp_recompile_graph){
            {&loaded[opened].side, RP_NONE},
            items->keys[item].name,
            items->number[item] == RP_ABSENT_I64 ? (int64_t)item + 1 : items->number[item]};
    }
    if (code == RP_OK)
        code = rp_recompiles_explain(graphs, n, run->arena, steps, run->err);
    while (opened-- > 0)
        unload_side(&loaded[opened]);
    return code;
}

/* Makes one row for each compilation of a function that was compiled more than once. */
static enum rp_code steps_of_folder(struct diff_ctx *run, const struct items *items)
{
    struct rp_recompiles steps = {.rows = {0}};
    bool *done = RP_ARENA_NEW(run->arena, bool, items->n + 1);
    size_t *members = RP_ARENA_NEW(run->arena, size_t, items->n + 1), families = 0;
    enum rp_code code = rp_err_need(done && members, run->err, "comparing programs");

    for (size_t i = 0; code == RP_OK && i < items->n; i++) {
        size_t n = 0;

        for (size_t k = i; !done[i] && k < items->n; k++)
            if (!strcmp(items->keys[k].name, items->keys[i].name) &&
                !strcmp(items->keys[k].folder, items->keys[i].folder))
                members[n++] = k;
        for (size_t k = 0; k < n; k++)
            done[members[k]] = true;
        families += n > 0;
        if (n)
            code = steps_of_family(run, items, members, n, &steps);
    }
    if (code == RP_OK)
        code = keep_steps(run, &steps, families);
    rp_vec_release(&steps.rows);
    return code;
}

/* ---- folders ---- */

/* Keeps the first stage of every module, which the compiler received. */
static void keep_earliest(struct items *items)
{
    size_t n = 0;

    for (size_t i = 0; i < items->n; i++) {
        const struct rp_dump_stage *stage = items->stage[i];

        if (stage && stage->point != RP_DUMP_AT_BEFORE &&
            strcmp(stage->name, "dynamo_output_graph") != 0)
            continue;
        move_item(items, i, n++);
    }
    items->n = n;
}

static enum rp_code diff_folders(struct diff_ctx *run, const struct rp_settings *settings,
                                 size_t given)
{
    const char *stage = rp_settings_text(settings, "stage");
    struct rp_graph_folder folder;
    struct items left, right;

    RP_TRY(rp_graph_folder_open(run->dataset, rp_settings_text(settings, "module"), stage,
                                run->arena, &folder, run->err));
    RP_TRY(list_side(run, &folder, 0, &left));
    RP_TRY(list_side(run, &folder, 1, &right));
    RP_TRY(hash_all(run, &folder, &left, &right));
    if (given == 1) {
        if (!stage)
            keep_earliest(&left);

        /* Compilations of one frame of torch.compile, "1/0:forward" and "1/1:forward", belong to
           one function. */
        for (size_t i = 0; i < left.n; i++) {
            const char *name = left.keys[i].name, *slash = strchr(name, '/'), *colon;
            int frame, compile;

            if (!slash || !(colon = strchr(slash, ':')) || !strstr(left.file[i], RP_DUMP_FX) ||
                sscanf(name, "%d/%d", &frame, &compile) != 2)
                continue;
            left.number[i] = compile;
            left.keys[i].name = rp_arena_textf(run->arena, "of frame %d, %s", frame,
                                               rp_arena_text(run->arena, colon + 1));
        }
        RP_TRY(rp_arena_check(run->arena, "comparing programs", run->err));

        return steps_of_folder(run, &left);
    }
    if (left.n == 1 && right.n == 1)
        return diff_programs(run, left.source[0], right.source[0]);
    return compare_items(run, &left, &right, (struct sides){NULL, NULL});
}

enum rp_code rp_program_diff_run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                 const struct rp_settings *settings, struct rp_result *result,
                                 struct rp_err *err)
{
    struct diff_ctx run = {.ctx = ctx,
                           .dataset = dataset,
                           .result = result,
                           .root = result->root,
                           .arena = &result->arena,
                           .html = rp_settings_text(settings, "html"),
                           .err = err};
    size_t n, given = 0;
    bool found = false;

    RP_TRY(rp_torch_graphs_list(dataset->sources, &dataset->limits, err));
    n = rp_sources_count(dataset->sources);
    for (size_t i = 0; i < n; i++) {
        given = source_at(&run, i)->given >= given ? source_at(&run, i)->given + 1 : given;
        found |= source_at(&run, i)->found;
    }
    if (!n || given > 2)
        return rp_err_set(err, RP_USAGE, "'diff' compares two files or folders, not %zu", given);
    if (found)
        RP_TRY(diff_folders(&run, settings, given));
    else if (n == 1)
        RP_TRY(steps_of_file(&run, 0));
    else
        RP_TRY(diff_programs(&run, 0, 1));
    if (run.html && !run.drawn)
        return rp_err_set(err, RP_USAGE,
                          "'--html' shows two programs, but there are more; select one of each "
                          "folder with --module and --stage");
    result->answer = run.root->same ? 0 : 1;
    return RP_OK;
}
