/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of compiles: what the reader of logs found, in the columns of an answer. */
#include "dump/torch.h"

#include "base/names.h"
#include "base/order.h"
#include "base/text.h"
#include "result/print_units.h"

#include <string.h>

/* ------------------------------------------------------------------ columns */

static const struct rp_field kernel_fields[] = {
    RP_FIELD(struct rp_compile_kernel, name, STR, NONE, NULL,
             "name of the generated kernel, or of the function that is called", 0),
    RP_FIELD(struct rp_compile_kernel, calls, I64, COUNT, NULL, "calls in one run of the graph", 0),
    RP_FIELD_LIST(struct rp_compile_kernel, lines, &rp_type_string, NULL,
                  "lines of the program that the calls are of", 0),
    RP_FIELD(struct rp_compile_kernel, from, STR, NONE, NULL,
             "the evidence for it: handle, fragment, node or graph; null: none", 0),
    RP_FIELD_END};
static const struct rp_type kernel_type = {"kernel", sizeof(struct rp_compile_kernel),
                                           kernel_fields, NULL};

static const struct rp_field graph_fields[] = {
    RP_FIELD(struct rp_compile_graph, direction, STR, NONE, NULL,
             "forward, backward, inference or unknown", 0),
    RP_FIELD(struct rp_compile_graph, key, STR, NONE, NULL,
             "key in the cache of FX graphs, which profiles name; null: not known", 0),
    RP_FIELD(struct rp_compile_graph, cache, STR, NONE, NULL, "miss, hit or bypass; or null", 0),
    RP_FIELD_LIST(struct rp_compile_graph, kernels, &kernel_type, NULL, "in order of their first",
                  0),
    RP_FIELD_END};
static const struct rp_type graph_type = {"graph", sizeof(struct rp_compile_graph), graph_fields,
                                          NULL};

#define PHASE(name, which, doc) \
    RP_FIELD_AS(name, struct rp_compile_phases, at[which], I64, NS, NULL, doc, 0)
static const struct rp_field phase_fields[] = {
    PHASE("restarts", RP_TORCH_IN_RESTARTS, "attempts that were given up, at graph breaks"),
    PHASE("dynamo", RP_TORCH_IN_DYNAMO, "tracing of Python, guards"),
    PHASE("passes", RP_TORCH_IN_PASSES, "passes over graphs: pre-grad, joint, post-grad"),
    PHASE("aot", RP_TORCH_IN_AOT, "AOTAutograd: joint graph, its division into two"),
    PHASE("inductor", RP_TORCH_IN_INDUCTOR, "lowering, scheduling"),
    PHASE("codegen", RP_TORCH_IN_CODEGEN, "writing code; on a CPU its C++ compiler, too"),
    PHASE("kernels", RP_TORCH_IN_KERNELS, "compilers of kernels, and waiting for them"),
    RP_FIELD_END};
static const struct rp_type phases_type = {"phases", sizeof(struct rp_compile_phases), phase_fields,
                                           NULL};

static const struct rp_field caches_fields[] = {
    RP_FIELD(struct rp_compile_caches, fx, STR, NONE, NULL,
             "result of the cache of FX graphs: miss, hit or bypass", 0),
    RP_FIELD(struct rp_compile_caches, aot, STR, NONE, NULL, "result of the cache of AOTAutograd",
             0),
    RP_FIELD_END};
static const struct rp_type caches_type = {"cache", sizeof(struct rp_compile_caches), caches_fields,
                                           NULL};

#define GUARD(key, member, type, title, doc, flags) \
    RP_FIELD_AS(key, struct rp_compile_guard, member, type, NONE, title, doc, flags)
static const struct rp_field guard_fields[] = {
    GUARD("text", is.text, STR, NULL, "text in the log", 0),
    GUARD("entry", is.entry, STR, NULL, "the compile that did not fit", 0),
    GUARD("kind", is.kind, STR, NULL, "size, dtype, constant …", 0),
    GUARD("what", is.what, STR, NULL, "what differed", 0),
    GUARD("avoid", is.avoid, STR, NULL, "how to avoid it", 0),
    RP_FIELD(struct rp_compile_guard, file, STR, NONE, NULL,
             "file of the line that made the guard; null: not stated", 0),
    GUARD("line", is.line, I64, NULL, "likewise", RP_NULLABLE),
    RP_FIELD_END};
static const struct rp_type guard_type = {"guard", sizeof(struct rp_compile_guard), guard_fields,
                                          NULL};

static const struct rp_field cause_fields[] = {
    RP_FIELD(struct rp_compile_cause, key, STR, NONE, NULL, "guards", 0),
    RP_FIELD_LIST(struct rp_compile_cause, guards, &guard_type, NULL,
                  "one for each compile that was tried, the newest first", 0),
    RP_FIELD_END};
static const struct rp_type cause_type = {"cause", sizeof(struct rp_compile_cause), cause_fields,
                                          NULL};

#define ROW(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_compile_row, member, type, unit, title, doc, flags)
static const struct rp_field row_fields[] = {
    ROW(id, STR, NONE, "compile", "number of the function, and of the compile of it", 0),
    ROW(occurrence, I64, COUNT, NULL, "ids repeat after torch._dynamo.reset(): 0, 1, …", 0),
    ROW(rank, I64, NONE, NULL, "rank of the process", RP_NULLABLE),
    ROW(shown_rank, I64, NONE, "rank", "text output only", RP_NULLABLE | RP_SCREEN),
    ROW(pid, I64, NONE, NULL, "id of the process", RP_NULLABLE),
    ROW(log, STR, NONE, NULL, "file", 0),
    ROW(function, STR, NONE, "function", "that was compiled; null: not known", RP_SHORTEN),
    ROW(file, STR, NONE, NULL, "file of the function", 0),
    ROW(line, I64, NONE, NULL, "its first", RP_NULLABLE),
    ROW(place, STR, NONE, "at", "text output only", RP_SCREEN | RP_SHORTEN),
    ROW(ops, I64, COUNT, "ops", "calls in Dynamo's graph", RP_NULLABLE),
    ROW(nodes, I64, COUNT, NULL, "nodes of it", RP_NULLABLE),
    ROW(inputs, I64, COUNT, NULL, "inputs of it", RP_NULLABLE),
    ROW(guards, I64, COUNT, "guards", "conditions under which it is used again",
        RP_NULLABLE | RP_WIDE),
    ROW(attempts, I64, COUNT, NULL, "how often tracing began", 0),
    ROW(breaks, I64, COUNT, "breaks", "graph breaks", 0),
    ROW(kernels, I64, COUNT, "kernels", "generated, of all its graphs", RP_WIDE),
    ROW(dynamic, BOOL, NONE, NULL, "a size in its graph is not a constant", 0),
    ROW(compile_ns, I64, NS, "time", "time of the compile, forward and backward", RP_NULLABLE),
    ROW(start_ns, I64, NS, NULL, "since 1970", RP_NULLABLE),
    RP_FIELD_RECORD(struct rp_compile_row, phases_ns, &phases_type, NULL,
                    "own times; their sum is compile_ns", 0),
    ROW(autotune_ns, I64, NS, NULL, "choosing configurations in its first runs", 0),
    RP_FIELD_RECORD(struct rp_compile_row, cache, &caches_type, NULL,
                    "whether it was found in a cache; null: not asked", 0),
    ROW(cache_text, STR, NONE, "cache", "text output only", RP_SCREEN),
    RP_FIELD_MAP(struct rp_compile_row, recompiled, &cause_type, NULL,
                 "why the compiles before did not fit; null: it is the first", RP_NULLABLE),
    ROW(failed, STR, NONE, NULL, "the error; null: it did not fail", 0),
    ROW(limited, BOOL, NONE, NULL,
        "whether the limit of compiles was reached: the function then runs eagerly", 0),
    ROW(cudagraphs, STR, NONE, NULL, "why CUDA graphs were skipped; null: not stated", 0),
    ROW(state, STR, NONE, "what", "text output only", RP_SCREEN | RP_SHORTEN),
    RP_FIELD_LIST(struct rp_compile_row, graphs, &graph_type, NULL, "in the order of the log", 0),
    RP_FIELD_END};
const struct rp_type rp_compile_row_type = {"compile", sizeof(struct rp_compile_row), row_fields,
                                            NULL};

#define BREAK(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_break_row, member, type, unit, title, doc, flags)
static const struct rp_field break_fields[] = {
    BREAK(count, I64, COUNT, "count", "number in the logs", 0),
    BREAK(gb, STR, NONE, "number", "id of the kind in PyTorch's list of graph breaks, or null", 0),
    BREAK(place, STR, NONE, "at", "text output only", RP_SCREEN),
    BREAK(kind, STR, NONE, "kind", "what Dynamo could not trace", RP_SHORTEN | RP_WHOLE),
    BREAK(effect, STR, NONE, "effect", "text output only", RP_SCREEN),
    BREAK(reason, STR, NONE, NULL, "first line of the reason in the log", 0),
    BREAK(file, STR, NONE, NULL, "file in which Dynamo stopped", 0),
    BREAK(line, I64, NONE, NULL, "likewise", RP_NULLABLE),
    BREAK(user_file, STR, NONE, NULL, "the last place of the program on the way there", 0),
    BREAK(user_line, I64, NONE, NULL, "likewise", RP_NULLABLE),
    BREAK(function, STR, NONE, NULL, "function of that line", 0),
    BREAK(skipped_frame, BOOL, NONE, NULL, "the whole function runs eagerly", 0),
    RP_FIELD_LIST(struct rp_break_row, ids, &rp_type_string, NULL, "compiles that it ended", 0),
    BREAK(restart_ns, I64, NS, "restarts", "attempts that were given up at it", RP_WIDE),
    BREAK(resumes, I64, COUNT, "resumes", "compiles of what follows it", RP_WIDE),
    BREAK(resume_ns, I64, NS, "their time", "time of these compiles", RP_WIDE),
    BREAK(explanation, STR, NONE, NULL, "the explanation in the log", 0),
    BREAK(hint, STR, NONE, NULL, "the first hint in the log", 0),
    RP_FIELD_END};
const struct rp_type rp_break_row_type = {"break", sizeof(struct rp_break_row), break_fields, NULL};

static const struct rp_field unknown_fields[] = {
    RP_FIELD(struct rp_compile_unknown, kind, STR, NONE, NULL, "kind of a record", 0),
    RP_FIELD(struct rp_compile_unknown, records, I64, COUNT, NULL, "number of its records", 0),
    RP_FIELD_END};
static const struct rp_type unknown_type = {"unknown", sizeof(struct rp_compile_unknown),
                                            unknown_fields, NULL};

#define PROBLEM(member, doc) RP_FIELD(struct rp_compile_problems, member, I64, COUNT, NULL, doc, 0)
static const struct rp_field problem_fields[] = {
    PROBLEM(lines, "lines that are not records"),
    PROBLEM(md5, "texts that are not what their record says"),
    PROBLEM(too_long, "lines and texts over the limit: passed over"),
    PROBLEM(cut, "logs that end inside a record"),
    RP_FIELD_MAP(struct rp_compile_problems, unknown, &unknown_type, NULL,
                 "kinds of records that are not known, with their number", 0),
    RP_FIELD_END};
const struct rp_type rp_compile_problems_type = {"problems", sizeof(struct rp_compile_problems),
                                                 problem_fields, NULL};

/* ------------------------------------------------------------------ the logs */

static bool matches(const struct rp_torch_compile *compile, const char *text)
{
    return !text || !strcmp(compile->id, text) ||
           (compile->function && strstr(compile->function, text));
}

enum rp_code rp_dump_torch_open(const struct rp_dump_call *call, struct rp_arena *arena,
                                struct rp_dump_torch *out, struct rp_err *err)
{
    const char *module = rp_settings_text(call->settings, "module");
    size_t n = rp_sources_count(call->dataset->sources);

    *out = (struct rp_dump_torch){0};
    rp_torch_trace_init(&out->trace);
    out->is = RP_ARENA_NEW(arena, bool, n + 1);
    RP_TRY(rp_err_need(out->is, err, "listing compiles"));
    RP_TRY(rp_torch_trace_find(&out->trace, call->dataset->sources, &call->dataset->limits, out->is,
                               err));
    out->wanted = RP_ARENA_NEW(arena, bool, out->trace.compiles.n + 1);
    RP_TRY(rp_err_need(out->wanted, err, "listing compiles"));
    for (size_t i = 0; i < out->trace.compiles.n; i++) {
        out->wanted[i] = matches(&out->trace.compiles.at[i], module);
        out->nwanted += out->wanted[i];
    }
    return RP_OK;
}

enum rp_code rp_dump_torch_need(const struct rp_dump_call *call, struct rp_arena *arena,
                                struct rp_dump_torch *out, struct rp_err *err)
{
    const char *module = rp_settings_text(call->settings, "module");

    RP_TRY(rp_dump_torch_open(call, arena, out, err));
    if (!out->trace.logs.n)
        return rp_err_set(err, RP_FORMAT,
                          "'%s': no log of torch.compile; TORCH_TRACE=DIR or 'reprise dump run' "
                          "makes PyTorch write one",
                          call->dataset->given ? call->dataset->given : "");
    if (module && !out->nwanted)
        return rp_err_set(err, RP_USAGE, "no compile and no function is '%s'", module);
    return RP_OK;
}

void rp_dump_torch_release(struct rp_dump_torch *torch)
{
    rp_torch_trace_release(&torch->trace);
}

/* ------------------------------------------------------------------ compiles */

static int64_t known(int64_t number)
{
    return number < 0 ? RP_ABSENT_I64 : number;
}

/* "model.py:11"; NULL where the file is not known. */
static const char *place_text(const char *path, int64_t line, struct rp_arena *arena)
{
    return path ? rp_arena_textf(arena, "%s:%lld", rp_text_file(path), (long long)line) : NULL;
}

/* Adds each line of a kernel once. */
static void add_lines(const struct rp_torch_trace *t, const struct rp_torch_call *call,
                      struct rp_names *seen, struct rp_arena *arena, struct rp_compile_kernel *row)
{
    for (uint32_t i = 0; i < call->n; i++) {
        const struct rp_torch_place *place = &t->places.at[t->shares.at[call->first + i].place];
        const char *text = place_text(place->path, place->line, arena);
        const char *key = rp_arena_textf(arena, "%u %s", call->kernel, text ? text : "");

        if (!key || rp_names_find(seen, key) != RP_NONE)
            continue;
        arena->failed |= rp_names_add(seen, key, 0, NULL) != RP_OK;
        rp_arena_append(arena, &row->lines, &row->nlines, text);
    }
    if (call->n)
        row->from = rp_torch_basis_names[call->basis];
}

static void fill_graph(const struct rp_torch_trace *t, const struct rp_torch_graph *graph,
                       struct rp_arena *arena, struct rp_compile_graph *row)
{
    struct rp_names seen = {0};

    *row = (struct rp_compile_graph){
        .direction = rp_torch_direction_names[graph->direction],
        .key = rp_arena_text(arena, graph->key),
        .cache = rp_torch_cache_names[graph->cache],
        .kernels = RP_ARENA_NEW(arena, struct rp_compile_kernel, graph->nkernels + 1)};
    if (!row->kernels)
        return;
    row->nkernels = graph->nkernels;
    for (uint32_t k = 0; k < graph->nkernels; k++) {
        const struct rp_torch_kernel *kernel = &t->kernels.at[graph->first_kernel + k];

        row->kernels[k] = (struct rp_compile_kernel){.name = rp_arena_text(arena, kernel->name),
                                                     .calls = kernel->calls};
    }
    for (uint32_t c = 0; c < graph->ncalls; c++)
        add_lines(t, &t->calls.at[graph->first_call + c], &seen, arena,
                  &row->kernels[t->calls.at[graph->first_call + c].kernel]);
    rp_names_release(&seen);
}

static void fill_cause(const struct rp_torch_compile *compile, struct rp_arena *arena,
                       struct rp_compile_row *row)
{
    struct rp_compile_cause *cause = RP_ARENA_NEW(arena, struct rp_compile_cause, 1);

    if (!compile->nreasons || !cause)
        return;
    cause->key = "guards";
    cause->guards = RP_ARENA_NEW(arena, struct rp_compile_guard, compile->nreasons);
    for (size_t i = 0; cause->guards && i < compile->nreasons; i++) {
        struct rp_compile_guard *guard = &cause->guards[cause->nguards++];

        rp_torch_guard_read(rp_arena_text(arena, compile->reasons[i]), compile->dynamic, arena,
                            &guard->is);
        guard->file = guard->is.path;
        guard->is.line = known(guard->is.line);
    }
    row->recompiled = cause;
    row->nrecompiled = 1;
}

/* Says in words what a reader of the table should know about a compile. */
static const char *state_text(const struct rp_compile_row *row, struct rp_arena *arena)
{
    if (row->limited)
        return "limit reached, runs eagerly";
    if (row->failed && row->breaks)
        return "graph break, runs eagerly";
    if (row->failed)
        return rp_arena_textf(arena, "failed: %.*s", (int)strcspn(row->failed, ":"), row->failed);
    if (row->nrecompiled && row->recompiled->nguards)
        return rp_arena_textf(arena, "again: %s", row->recompiled->guards[0].is.what);
    if (row->ops == RP_ABSENT_I64 || !row->ops)
        return "nothing to compile";
    return row->cudagraphs ? rp_arena_textf(arena, "no CUDA graph: %s", row->cudagraphs) : "";
}

static const char *cache_words(const struct rp_compile_row *row, struct rp_arena *arena)
{
    if (!row->cache.fx && !row->cache.aot)
        return "";
    if (!row->cache.fx || (row->cache.aot && !strcmp(row->cache.fx, row->cache.aot)))
        return row->cache.aot;
    return row->cache.aot ? rp_arena_textf(arena, "fx %s, aot %s", row->cache.fx, row->cache.aot)
                          : row->cache.fx;
}

static void fill_row(const struct rp_dump_torch *torch, uint32_t i, struct rp_arena *arena,
                     struct rp_compile_row *row)
{
    const struct rp_torch_compile *c = &torch->trace.compiles.at[i];
    const struct rp_torch_log *log = &torch->trace.logs.at[c->log];

    *row = (struct rp_compile_row){
        .id = rp_arena_text(arena, c->id),
        .occurrence = c->occurrence,
        .rank = known(log->rank),
        .shown_rank = known(log->rank),
        .pid = known(log->pid),
        .log = rp_arena_text(arena, log->name),
        .function = rp_arena_text(arena, c->function),
        .file = rp_arena_text(arena, c->path),
        .line = known(c->line),
        .place = rp_torch_is_library(c->path ? c->path : "") && c->caller.path
                     ? place_text(c->caller.path, c->caller.line, arena)
                     : place_text(c->path, c->line, arena),
        .ops = known(c->ops),
        .guards = known(c->guards),
        .nodes = known(c->nodes),
        .inputs = known(c->inputs),
        .attempts = c->attempts,
        .breaks = c->nbreaks,
        .dynamic = c->dynamic,
        .limited = c->limited,
        .failed = rp_arena_text(arena, c->failed),
        .cudagraphs = rp_arena_text(arena, c->cudagraphs),
        .start_ns = known(c->start_ns),
        .autotune_ns = c->autotune_us * 1000,
        .compile_ns = c->measured ? 0 : RP_ABSENT_I64,
        .cache = {rp_torch_cache_names[c->fx], rp_torch_cache_names[c->aot]}};
    rp_torch_phases(c, row->phases_ns.at);
    for (size_t k = 0; c->measured && k < RP_TORCH_PHASES; k++)
        row->compile_ns += row->phases_ns.at[k];
    fill_cause(c, arena, row);
    row->cache_text = cache_words(row, arena);
    row->state = state_text(row, arena);
}

struct rp_compile_row *rp_dump_torch_rows(const struct rp_dump_torch *torch, struct rp_arena *arena,
                                          size_t *n)
{
    struct rp_compile_row *rows = RP_ARENA_NEW(arena, struct rp_compile_row, torch->nwanted + 1);
    struct rp_compile_row **row_of =
        RP_ARENA_NEW(arena, struct rp_compile_row *, torch->trace.compiles.n + 1);

    *n = 0;
    if (!rows || !row_of)
        return rows;
    for (uint32_t i = 0; i < torch->trace.compiles.n; i++)
        if (torch->wanted[i]) {
            row_of[i] = &rows[(*n)++];
            fill_row(torch, i, arena, row_of[i]);
        }
    /* Connects the graphs of all compiles to their rows; row_of is by compile. */
    const struct rp_torch_trace *t = &torch->trace;
    for (size_t i = 0; i < t->graphs.n; i++)
        if (row_of[t->graphs.at[i].compile])
            row_of[t->graphs.at[i].compile]->ngraphs++;
    for (size_t i = 0; i < t->compiles.n; i++)
        if (row_of[i]) {
            row_of[i]->graphs =
                RP_ARENA_NEW(arena, struct rp_compile_graph, row_of[i]->ngraphs + 1);
            row_of[i]->ngraphs = 0;
        }
    for (size_t i = 0; i < t->graphs.n; i++) {
        struct rp_compile_row *row = row_of[t->graphs.at[i].compile];

        if (!row || !row->graphs)
            continue;
        fill_graph(t, &t->graphs.at[i], arena, &row->graphs[row->ngraphs++]);
        for (uint32_t k = 0; k < t->graphs.at[i].nkernels; k++)
            row->kernels += !t->kernels.at[t->graphs.at[i].first_kernel + k].op;
    }
    return rows;
}

/* ------------------------------------------------------------------ breaks */

/* The code after a break at a line is compiled as "torch_dynamo_resume_in_f_at_63". */
struct resumes {
    int64_t n, ns;
};

struct break_lists {
    struct rp_names resumed; /* "file\nline" -> resumes */
    struct rp_names breaks;  /* what makes breaks one -> row */
    struct resumes *resumes;
    struct rp_break_row *rows;
    size_t n;
};

static const char *place_key(const char *path, int64_t line, struct rp_arena *arena)
{
    return rp_arena_textf(arena, "%s\n%lld", path ? path : "", (long long)line);
}

static enum rp_code list_resumes(const struct rp_dump_torch *torch, struct break_lists *lists,
                                 struct rp_arena *arena)
{
    uint32_t used = 0;

    for (size_t i = 0; i < torch->trace.compiles.n; i++) {
        const struct rp_torch_compile *c = &torch->trace.compiles.at[i];
        int64_t phases[RP_TORCH_PHASES];

        if (!c->function || !rp_text_begins(c->function, "torch_dynamo_resume_in_"))
            continue;
        const char *key = place_key(c->path, c->line, arena);
        uint32_t at = rp_names_find(&lists->resumed, key);
        if (at == RP_NONE) {
            at = used++;
            RP_TRY(rp_names_add(&lists->resumed, key, at, NULL));
        }
        rp_torch_phases(c, phases);
        lists->resumes[at].n++;
        for (size_t k = 0; k < RP_TORCH_PHASES; k++)
            lists->resumes[at].ns += phases[k];
    }
    return RP_OK;
}

static void first_break(struct break_lists *lists, const struct rp_torch_break *is,
                        struct rp_arena *arena, struct rp_break_row *row)
{
    const struct rp_torch_place *user = is->user.path ? &is->user : &is->at;
    uint32_t resumed = rp_names_find(&lists->resumed, place_key(is->at.path, is->at.line, arena));

    *row = (struct rp_break_row){
        .gb = rp_arena_text(arena, is->gb),
        .kind = rp_arena_text(arena, is->kind),
        .reason = rp_arena_text(arena, is->reason),
        .file = rp_arena_text(arena, is->at.path ? is->at.path : ""),
        .line = is->at.path ? is->at.line : RP_ABSENT_I64,
        .user_file = rp_arena_text(arena, user->path),
        .user_line = user->path ? user->line : RP_ABSENT_I64,
        .function = rp_arena_text(arena, user->function && *user->function ? user->function : NULL),
        .place = user->path ? place_text(user->path, user->line, arena) : "",
        .explanation = rp_arena_text(arena, is->explanation),
        .hint = rp_arena_text(arena, is->hint),
        .skipped_frame = is->skips,
        .effect = is->skips ? "runs eagerly" : "two graphs"};
    if (resumed != RP_NONE) {
        row->resumes = lists->resumes[resumed].n;
        row->resume_ns = lists->resumes[resumed].ns;
    }
}

/* Breaks are in the order of the compiles, so the id is new unless it is that of the break
   before. */
static void add_break(const struct rp_dump_torch *torch, const struct rp_torch_break *is,
                      struct rp_arena *arena, struct rp_break_row *row)
{
    const struct rp_torch_compile *compile = &torch->trace.compiles.at[is->compile];
    int64_t phases[RP_TORCH_PHASES];

    rp_torch_phases(compile, phases);
    row->count++;
    row->restart_ns += phases[RP_TORCH_IN_RESTARTS] / (compile->nbreaks ? compile->nbreaks : 1);
    if (!row->nids || strcmp(row->ids[row->nids - 1], compile->id) != 0)
        rp_arena_append(arena, &row->ids, &row->nids, rp_arena_text(arena, compile->id));
}

RP_ORDER(by_count, struct rp_break_row, RP_DOWN(count), RP_DOWN(restart_ns),
         strcmp(a->place, b->place), strcmp(a->kind, b->kind))

static enum rp_code list_breaks(const struct rp_dump_torch *torch, struct break_lists *lists,
                                struct rp_arena *arena)
{
    const struct rp_torch_trace *t = &torch->trace;

    RP_TRY(list_resumes(torch, lists, arena));
    for (uint32_t i = 0; i < t->breaks.n; i++) {
        const struct rp_torch_break *is = &t->breaks.at[i];

        if (!torch->wanted[is->compile])
            continue;
        const char *key = rp_arena_textf(arena, "%d\n%s\n%s\n%s", is->skips, is->kind,
                                         place_key(is->at.path, is->at.line, arena),
                                         place_key(is->user.path, is->user.line, arena));
        uint32_t row = rp_names_find(&lists->breaks, key);
        if (row == RP_NONE) {
            row = (uint32_t)lists->n++;
            first_break(lists, is, arena, &lists->rows[row]);
            RP_TRY(rp_names_add(&lists->breaks, key, row, NULL));
        }
        add_break(torch, is, arena, &lists->rows[row]);
    }
    return RP_OK;
}

struct rp_break_row *rp_dump_torch_breaks(const struct rp_dump_torch *torch, struct rp_arena *arena,
                                          size_t *n)
{
    struct break_lists lists = {
        .resumes = RP_ARENA_NEW(arena, struct resumes, torch->trace.compiles.n + 1),
        .rows = RP_ARENA_NEW(arena, struct rp_break_row, torch->trace.breaks.n + 1)};

    *n = 0;
    if (!lists.resumes || !lists.rows)
        return NULL;
    if (list_breaks(torch, &lists, arena) != RP_OK)
        arena->failed = true; /* memory ran out, as if in the arena */
    rp_names_release(&lists.resumed);
    rp_names_release(&lists.breaks);
    *n = lists.n;
    rp_sort(lists.rows, *n, sizeof *lists.rows, by_count);
    return lists.rows;
}

/* ------------------------------------------------------------------ problems */

void rp_dump_torch_problems(const struct rp_dump_torch *torch, struct rp_arena *arena,
                            struct rp_compile_problems *out)
{
    const struct rp_torch_trace *t = &torch->trace;

    *out = (struct rp_compile_problems){
        .unknown = RP_ARENA_NEW(arena, struct rp_compile_unknown, t->unknown.n + 1)};
    for (size_t i = 0; i < t->logs.n; i++) {
        out->lines += (int64_t)t->logs.at[i].counts.bad_lines;
        out->md5 += (int64_t)t->logs.at[i].counts.bad_md5;
        out->too_long += (int64_t)t->logs.at[i].counts.too_long;
        out->cut += t->logs.at[i].counts.cut;
    }
    for (size_t i = 0; out->unknown && i < t->unknown.n; i++)
        out->unknown[out->nunknown++] = (struct rp_compile_unknown){
            rp_arena_text(arena, t->unknown.at[i].kind), t->unknown.at[i].records};
}

const char *rp_dump_torch_warning(const struct rp_compile_problems *problems,
                                  struct rp_arena *arena)
{
    if (!problems->lines && !problems->md5 && !problems->too_long && !problems->cut &&
        !problems->nunknown)
        return NULL;
    return rp_arena_textf(
        arena,
        "the logs are not whole: %s cut, %s lines are not records, %s texts are not what their "
        "checksums say, %s too long, %s kinds of records not known",
        rp_units_number(arena, problems->cut), rp_units_number(arena, problems->lines),
        rp_units_number(arena, problems->md5), rp_units_number(arena, problems->too_long),
        rp_units_number(arena, (int64_t)problems->nunknown));
}
