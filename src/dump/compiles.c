/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dump compiles` shows what torch.compile did, with a row for each compile, and where its time
 * went. The times of a compile are nested (Dynamo around AOTAutograd around Inductor …); they are
 * separated here, so that phases add up.
 */
#include "base/order.h"
#include "dump/torch.h"
#include "result/print_units.h"

#include <string.h>

struct phase_row {
    const char *phase;
    int64_t total_ns, compiles;
    double share;
};

struct rank_row {
    int64_t rank, compiles, graphs, breaks, recompiles, compile_ns;
    const char *log, *differs;
};

struct compiles_root {
    const char *summary, *caches;
    int64_t logs, records, compile_ns, failed, recompiled;
    size_t ncompiles, nshown, nbreaks, nphases, nranks, nnotes;
    struct rp_compile_row *compiles, *shown;
    struct rp_break_row *breaks;
    struct phase_row *phases;
    struct rank_row *ranks;
    struct rp_compile_problems problems;
    const char **notes;
};

static const struct rp_field phase_fields[] = {
    RP_FIELD(struct phase_row, phase, STR, NONE, "phase", "phase of a compile", 0),
    RP_FIELD(struct phase_row, total_ns, I64, NS, "time", "its own time in all compiles", 0),
    RP_FIELD(struct phase_row, share, F64, RATIO, "share", "share of the time of all compiles",
             RP_BAR),
    RP_FIELD(struct phase_row, compiles, I64, COUNT, "compiles", "that have it", 0), RP_FIELD_END};
static const struct rp_type phase_type = {"phase", sizeof(struct phase_row), phase_fields, NULL};

#define RANK(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rank_row, member, type, unit, title, doc, flags)
static const struct rp_field rank_fields[] = {
    RANK(rank, I64, NONE, "rank", "rank of the process", RP_NULLABLE),
    RANK(log, STR, NONE, NULL, "file", 0),
    RANK(compiles, I64, COUNT, "compiles", "number of compiles of the process", 0),
    RANK(graphs, I64, COUNT, "graphs", "that they made", 0),
    RANK(breaks, I64, COUNT, "breaks", "number of graph breaks", 0),
    RANK(recompiles, I64, COUNT, "again", "compiles of functions that were compiled before", 0),
    RANK(compile_ns, I64, NS, "time", "time of its compiles", 0),
    RANK(differs, STR, NONE, "differs from the first in",
         "the first compile that only one of the two has, or whose graph is another; null: none",
         RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type rank_type = {"rank", sizeof(struct rank_row), rank_fields, NULL};

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct compiles_root, member, type, unit, title, doc, flags)
static const struct rp_field root_fields[] = {
    ROOT(summary, STR, NONE, "compiles", "text output only", RP_SCREEN),
    ROOT(caches, STR, NONE, "caches", "text output only", RP_SCREEN),
    ROOT(logs, I64, COUNT, NULL, "number of processes", 0),
    ROOT(records, I64, COUNT, NULL, "records of all logs", 0),
    ROOT(compile_ns, I64, NS, NULL, "time of all compiles", 0),
    ROOT(failed, I64, COUNT, NULL, "compiles that failed: their function runs eagerly", 0),
    ROOT(recompiled, I64, COUNT, NULL, "compiles of functions that had been compiled before", 0),
    RP_FIELD_LIST(struct compiles_root, compiles, &rp_compile_row_type, NULL,
                  "in the order of the logs", 0),
    RP_FIELD_SHOWN(struct compiles_root, shown, &rp_compile_row_type, "compiles",
                   "id, shown_rank, function, place, ops, guards+, kernels+, breaks, cache_text, "
                   "compile_ns, state",
                   0),
    RP_FIELD_LIST(struct compiles_root, phases, &phase_type, "time by phase",
                  "own times, in the order in which they come", 0),
    RP_FIELD_LIST(struct compiles_root, breaks, &rp_break_row_type, NULL,
                  "distinct graph breaks, most frequent first", 0),
    RP_FIELD_LIST(struct compiles_root, ranks, &rank_type, "processes",
                  "one a log, where there are several", 0),
    RP_FIELD_RECORD(struct compiles_root, problems, &rp_compile_problems_type, NULL,
                    "what the logs lack", 0),
    RP_FIELD_LIST(struct compiles_root, notes, &rp_type_string, "notes", "what to know", 0),
    RP_FIELD_END};
static const struct rp_type compiles_type = {"dump_compiles", sizeof(struct compiles_root),
                                             root_fields, "compiles"};

/* ------------------------------------------------------------------ sums */

static void sum_phases(struct compiles_root *root, struct rp_arena *arena)
{
    static const char *const titles[RP_TORCH_PHASES] = {"restarts at graph breaks",
                                                        "Dynamo",
                                                        "passes over graphs",
                                                        "AOTAutograd",
                                                        "Inductor",
                                                        "code generation",
                                                        "compilers of kernels"};
    struct phase_row *rows = RP_ARENA_NEW(arena, struct phase_row, RP_TORCH_PHASES);

    root->phases = rows;
    for (size_t p = 0; rows && p < RP_TORCH_PHASES; p++) {
        struct phase_row *row = &rows[root->nphases];

        *row = (struct phase_row){.phase = titles[p]};
        for (size_t i = 0; i < root->ncompiles; i++) {
            row->total_ns += root->compiles[i].phases_ns.at[p];
            row->compiles += root->compiles[i].phases_ns.at[p] > 0;
        }
        row->share = root->compile_ns ? (double)row->total_ns / (double)root->compile_ns : 0;
        root->nphases += row->total_ns > 0;
    }
}

static const char *caches_text(const struct compiles_root *root, struct rp_arena *arena)
{
    int64_t hits = 0, misses = 0, bypassed = 0;

    for (size_t i = 0; i < root->ncompiles; i++)
        for (size_t g = 0; g < root->compiles[i].ngraphs; g++) {
            const char *cache = root->compiles[i].graphs[g].cache;

            hits += cache && !strcmp(cache, "hit");
            misses += cache && !strcmp(cache, "miss");
            bypassed += cache && !strcmp(cache, "bypass");
        }
    if (!hits && !misses && !bypassed)
        return NULL;
    return rp_arena_textf(arena, "%s found, %s not found%s%s", rp_units_count(arena, hits, "graph"),
                          rp_units_number(arena, misses), bypassed ? ", bypassed: " : "",
                          bypassed ? rp_units_number(arena, bypassed) : "");
}

/* ------------------------------------------------------------------ processes */

/* The key of a compile's forward graph; "" if it has none. */
static const char *key_of(const struct rp_compile_row *row)
{
    for (size_t g = 0; g < row->ngraphs; g++)
        if (row->graphs[g].key && strcmp(row->graphs[g].direction, "backward") != 0)
            return row->graphs[g].key;
    return "";
}

struct log_rows { /* the rows of one log */
    const struct rp_compile_row *at;
    size_t n;
};

static const struct rp_compile_row *same_id(const struct log_rows *rows, size_t from,
                                            const struct rp_compile_row *row)
{
    /* they are mostly in the same order, so this place is tried first */
    if (from < rows->n && rows->at[from].occurrence == row->occurrence &&
        !strcmp(rows->at[from].id, row->id))
        return &rows->at[from];
    for (size_t i = 0; i < rows->n; i++)
        if (rows->at[i].occurrence == row->occurrence && !strcmp(rows->at[i].id, row->id))
            return &rows->at[i];
    return NULL;
}

static const char *differs_text(const struct log_rows *first, const struct log_rows *rows,
                                struct rp_arena *arena)
{
    for (size_t i = 0; i < rows->n; i++) {
        const struct rp_compile_row *row = &rows->at[i], *other = same_id(first, i, row);
        const char *name = row->function ? row->function : "";

        if (!other)
            return rp_arena_textf(arena, "%s %s (%s): only here%s%s", row->id, name,
                                  row->place ? row->place : "", row->nrecompiled ? "; " : "",
                                  row->nrecompiled ? row->recompiled->guards[0].is.what : "");
        if (strcmp(key_of(row), key_of(other)) != 0)
            return rp_arena_textf(
                arena, "%s %s (%s): another graph, %s operations, not %s", row->id, name,
                row->place ? row->place : "",
                rp_units_number(arena, row->ops == RP_ABSENT_I64 ? 0 : row->ops),
                rp_units_number(arena, other->ops == RP_ABSENT_I64 ? 0 : other->ops));
    }
    for (size_t i = 0; i < first->n; i++)
        if (!same_id(rows, i, &first->at[i]))
            return rp_arena_textf(arena, "%s %s: not here", first->at[i].id,
                                  first->at[i].function ? first->at[i].function : "");
    return NULL;
}

static void fill_rank(struct rank_row *row, const struct log_rows *rows, int64_t rank,
                      const char *log)
{
    *row = (struct rank_row){
        .rank = rank < 0 ? RP_ABSENT_I64 : rank, .log = log, .compiles = (int64_t)rows->n};
    for (size_t i = 0; i < rows->n; i++) {
        row->graphs += (int64_t)rows->at[i].ngraphs;
        row->breaks += rows->at[i].breaks;
        row->recompiles += rows->at[i].nrecompiled > 0;
        row->compile_ns += rows->at[i].compile_ns == RP_ABSENT_I64 ? 0 : rows->at[i].compile_ns;
    }
}

/* Processes that are not ranks of one job are not compared, because they may do different
   things. */
static void compare_logs(struct compiles_root *root, const struct rp_dump_torch *torch,
                         struct rp_arena *arena)
{
    const struct rp_torch_trace *t = &torch->trace;
    struct log_rows first = {NULL, 0};
    uint32_t compile = 0;
    size_t at = 0;

    if (t->logs.n < 2)
        return;
    root->ranks = RP_ARENA_NEW(arena, struct rank_row, t->logs.n);
    for (uint32_t log = 0; root->ranks && log < t->logs.n; log++) {
        struct log_rows rows = {root->compiles + at, 0};
        for (; compile < t->compiles.n && t->compiles.at[compile].log == log; compile++)
            rows.n += torch->wanted[compile];
        at += rows.n;
        fill_rank(&root->ranks[root->nranks], &rows, t->logs.at[log].rank,
                  rp_arena_text(arena, t->logs.at[log].name));
        if (!first.at)
            first = rows;
        else if (t->logs.at[log].rank >= 0 && t->logs.at[0].rank >= 0)
            root->ranks[root->nranks].differs = differs_text(&first, &rows, arena);
        root->nranks++;
    }
}

/* ------------------------------------------------------------------ the word */

static enum rp_code fill_compiles(const struct rp_dump_torch *torch, struct compiles_root *root,
                                  struct rp_arena *arena, struct rp_err *err)
{
    int64_t skipped = 0;

    root->compiles = rp_dump_torch_rows(torch, arena, &root->ncompiles);
    root->breaks = rp_dump_torch_breaks(torch, arena, &root->nbreaks);
    RP_TRY(rp_arena_check(arena, "listing compiles", err));
    root->shown = root->compiles;
    root->nshown = root->ncompiles;
    root->logs = (int64_t)torch->trace.logs.n;
    for (size_t i = 0; i < torch->trace.logs.n; i++)
        root->records += (int64_t)torch->trace.logs.at[i].counts.records;
    for (size_t i = 0; i < root->ncompiles; i++) {
        const struct rp_compile_row *row = &root->compiles[i];

        root->compile_ns += row->compile_ns == RP_ABSENT_I64 ? 0 : row->compile_ns;
        root->failed += row->failed != NULL;
        root->recompiled += row->nrecompiled > 0;
        skipped += row->cudagraphs != NULL;
    }
    sum_phases(root, arena);
    compare_logs(root, torch, arena);
    rp_dump_torch_problems(torch, arena, &root->problems);
    /* Counts different functions, by compiles that are not repeated ones. */
    int64_t functions = 0, breaks = 0;
    for (size_t i = 0; i < root->ncompiles; i++) {
        functions += !root->compiles[i].nrecompiled && !root->compiles[i].occurrence &&
                     !root->compiles[i].limited;
        breaks += root->compiles[i].breaks;
    }
    root->summary = rp_arena_textf(
        arena, "%s of %s in %s: %s, %s again, %s failed",
        rp_units_count(arena, (int64_t)root->ncompiles, "compile"),
        rp_units_count(arena, functions, "function"), rp_units_time(arena, root->compile_ns),
        rp_units_count(arena, breaks, "graph break"), rp_units_number(arena, root->recompiled),
        rp_units_number(arena, root->failed));
    root->caches = caches_text(root, arena);
    RP_NOTE(root, arena, rp_dump_torch_warning(&root->problems, arena));
    for (size_t i = 0; i < root->ncompiles; i++)
        if (root->compiles[i].failed && !root->compiles[i].breaks && !root->compiles[i].limited)
            RP_NOTE(root, arena,
                    rp_arena_textf(arena, "%s failed: %s", root->compiles[i].id,
                                   root->compiles[i].failed));
    if (root->nbreaks)
        RP_NOTE(root, arena, "'dump breaks' lists the graph breaks, with the lines to change");
    if (root->recompiled)
        RP_NOTE(root, arena, "'dump recompiles' says what differed, and how to avoid it");
    if (skipped)
        RP_NOTE(root, arena,
                rp_arena_textf(arena, "CUDA graphs were skipped in %s: --json has the reasons",
                               rp_units_count(arena, skipped, "compile")));
    return rp_arena_check(arena, "listing compiles", err);
}

static enum rp_code compiles_run(const struct rp_dump_call *call, struct rp_result *result,
                                 struct rp_err *err)
{
    RP_SCOPED(rp_dump_torch_release) struct rp_dump_torch torch = {0};

    RP_TRY(rp_dump_torch_need(call, &result->arena, &torch, err));
    return fill_compiles(&torch, result->root, &result->arena, err);
}

const struct rp_dump_word rp_dump_compiles = {
    .name = "compiles",
    .summary =
        "what torch.compile did: functions, times by phase, caches, kernels with their lines",
    .options = "module",
    .files = true,
    .type = &compiles_type,
    .run = compiles_run};
