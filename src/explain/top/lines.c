/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums up time by line of a compiled program. Each item of device work leads through its launch to
 * a call of a compiled graph (xref/compiled.h), and from there to lines. Without device work the
 * operators in the runs of graphs are counted, on the host.
 */
#include "explain/top/lines.h"
#include "explain/top/line_source.h"
#include "explain/top/stacks.h"

#include "base/names.h"
#include "base/order.h"
#include "base/text.h"
#include "facts/times/intervals.h"
#include "result/print_units.h"
#include "result/result.h"
#include "xref/compiled.h"

#include <string.h>

/* ------------------------------------------------------------------ what is kept and shown */

static const struct rp_field sum_fields[] = {RP_PART_TEXT(struct rp_line_sum, path),
                                             RP_PART_TEXT(struct rp_line_sum, function),
                                             RP_PART_PLAIN(struct rp_line_sum, line),
                                             RP_PART_PLAIN(struct rp_line_sum, total_ns),
                                             RP_PART_PLAIN(struct rp_line_sum, alone_ns),
                                             RP_PART_PLAIN(struct rp_line_sum, forward_ns),
                                             RP_PART_PLAIN(struct rp_line_sum, backward_ns),
                                             RP_PART_PLAIN(struct rp_line_sum, calls),
                                             RP_PART_END};
static const struct rp_type sum_type = {"line", sizeof(struct rp_line_sum), sum_fields, NULL};

static const struct rp_field kept_graph_fields[] = {
    RP_PART_TEXT(struct rp_line_graph, id),        RP_PART_TEXT(struct rp_line_graph, direction),
    RP_PART_TEXT(struct rp_line_graph, function),  RP_PART_TEXT(struct rp_line_graph, key),
    RP_PART_PLAIN(struct rp_line_graph, runs),     RP_PART_PLAIN(struct rp_line_graph, total_ns),
    RP_PART_PLAIN(struct rp_line_graph, lines_ns), RP_PART_END};
static const struct rp_type kept_graph_type = {"graph", sizeof(struct rp_line_graph),
                                               kept_graph_fields, NULL};

static const struct rp_field part_fields[] = {
    RP_PART_VEC(struct rp_lines_part, lines, &sum_type),
    RP_PART_VEC(struct rp_lines_part, graphs, &kept_graph_type),
    RP_PART_PLAIN(struct rp_lines_part, whole_ns),
    RP_PART_PLAIN(struct rp_lines_part, covered_ns),
    RP_PART_PLAIN(struct rp_lines_part, outside_ns),
    RP_PART_PLAIN(struct rp_lines_part, unknown_ns),
    RP_PART_PLAIN(struct rp_lines_part, unmatched_ns),
    RP_PART_PLAIN(struct rp_lines_part, unlined_ns),
    RP_PART_PLAIN(struct rp_lines_part, compiles),
    RP_PART_PLAIN(struct rp_lines_part, on_host),
    RP_PART_PLAIN(struct rp_lines_part, known),
    RP_PART_PLAIN(struct rp_lines_part, of_xla),
    RP_PART_END};
const struct rp_type rp_lines_part_type = {"lines_part", sizeof(struct rp_lines_part), part_fields,
                                           NULL};

#define ROW(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_source_line_row, member, type, unit, title, doc, flags)
static const struct rp_field row_fields[] = {
    ROW(name, STR, NONE, "line", "file without folders, and line", 0),
    ROW(path, STR, NONE, NULL, "the file, as the log has it", 0),
    ROW(line, I64, NONE, NULL, "its number", 0),
    ROW(function, STR, NONE, "function", "function of the line", RP_SHORTEN),
    ROW(total_ns, I64, NS, "total",
        "time of work of the line; work of several lines is divided by their nodes", 0),
    ROW(share, F64, RATIO, "share", "share of all work", RP_BAR),
    ROW(alone_ns, I64, NS, "alone", "time of work that belongs to this line only", 0),
    ROW(shared_ns, I64, NS, "with others", "its part of work of several lines", 0),
    ROW(forward_ns, I64, NS, "forward", "time in graphs of the forward pass or of inference",
        RP_WIDE),
    ROW(backward_ns, I64, NS, "backward", "time in backward graphs", RP_WIDE),
    ROW(calls, I64, COUNT, "count", "kernels, copies; without a device, operators", 0),
    RP_FIELD_END};
const struct rp_type rp_source_line_type = {"row", sizeof(struct rp_source_line_row), row_fields,
                                            NULL};

static const struct rp_field rest_fields[] = {
    RP_FIELD(struct rp_lines_rest, what, STR, NONE, "work", "why it has no line", 0),
    RP_FIELD(struct rp_lines_rest, total_ns, I64, NS, "total", "its time", 0),
    RP_FIELD(struct rp_lines_rest, share, F64, RATIO, "share", "share of all work", RP_BAR),
    RP_FIELD_END};
static const struct rp_type rest_type = {"rest", sizeof(struct rp_lines_rest), rest_fields, NULL};

#define GRAPH(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_line_graph_row, member, type, unit, title, doc, flags)
static const struct rp_field graph_fields[] = {
    GRAPH(id, STR, NONE, "compile", "id in the log; for XLA, the module", 0),
    GRAPH(direction, STR, NONE, "graph", "forward, backward or inference; 'module': of XLA", 0),
    GRAPH(function, STR, NONE, "function", "that was compiled", RP_SHORTEN),
    GRAPH(key, STR, NONE, NULL, "key in the cache of FX graphs", 0),
    GRAPH(runs, I64, COUNT, "runs", "runs in the recording; null: not known", RP_NULLABLE),
    GRAPH(total_ns, I64, NS, "total", "time of the work in them", 0),
    GRAPH(share, F64, RATIO, "share", "share of all work", RP_BAR),
    GRAPH(coverage, F64, RATIO, "with a line", "share of the work that is in them", RP_WIDE),
    RP_FIELD_END};
static const struct rp_type graph_type = {"graph", sizeof(struct rp_line_graph_row), graph_fields,
                                          NULL};

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_lines_root, member, type, unit, title, doc, flags)
static const struct rp_field root_fields[] = {
    ROOT(summary, STR, NONE, "top", "text output only", RP_SCREEN),
    ROOT(by, STR, NONE, NULL, "line", 0),
    ROOT(measure, STR, NONE, NULL,
         "device time, or host time of operators in compiled graphs where no device work was "
         "recorded",
         0),
    ROOT(ranks, I64, COUNT, NULL, "number of ranks", 0),
    ROOT(whole_ns, I64, NS, "total", "sum of the durations of all selected work", 0),
    ROOT(covered_ns, I64, NS, NULL, "the part of it that has a line", 0),
    RP_FIELD_AS("coverage", struct rp_lines_root, coverage, F64, RATIO, NULL,
                "covered_ns / whole_ns", 0),
    ROOT(row_count, I64, COUNT, NULL, "lines before the limit", 0),
    RP_FIELD_LIST(struct rp_lines_root, rows, &rp_source_line_type, "lines of the program",
                  "most time first", 0),
    RP_FIELD_LIST(struct rp_lines_root, rest, &rest_type, "the rest",
                  "what has no line; with the rows it is all of the time", 0),
    RP_FIELD_LIST(struct rp_lines_root, graphs, &graph_type, "compiled graphs", "most time first",
                  0),
    RP_FIELD_LIST(struct rp_lines_root, notes, &rp_type_string, "notes", "about the rows",
                  RP_SCREEN),
    RP_FIELD_END};
const struct rp_type rp_lines_type = {"top", sizeof(struct rp_lines_root), root_fields, "rows"};

/* ------------------------------------------------------------------ one trace */

struct line_maker {
    const struct rp_line_source *from;
    const struct rp_torch_trace *log; /* of it */
    struct rp_lines_part *out;
    struct rp_arena *arena;
    struct rp_map line_of;  /* from a place in the log to the line of the part */
    struct rp_map graph_of; /* from a graph of the log to the graph of the part */
    struct rp_err *err;
};

static enum rp_code line_at(struct line_maker *m, uint32_t place, struct rp_line_sum **out)
{
    const struct rp_torch_place *is = &m->log->places.at[place];
    uint32_t i;

    RP_TRY(rp_map_intern(&m->line_of, place, (uint32_t)m->out->lines.n, &i, m->err));
    if (i == m->out->lines.n) {
        struct rp_line_sum sum = {.path = rp_arena_text(m->arena, is->path),
                                  .function = rp_arena_text(m->arena, is->function),
                                  .line = is->line};

        RP_TRY(rp_vec_push(&m->out->lines, sum, m->err));
    }
    *out = &m->out->lines.at[i];
    return RP_OK;
}

static enum rp_code graph_at(struct line_maker *m, uint32_t graph, struct rp_line_graph **out)
{
    const struct rp_torch_graph *is = &m->log->graphs.at[graph];
    const struct rp_torch_compile *compile = &m->log->compiles.at[is->compile];
    uint32_t i;

    RP_TRY(rp_map_intern(&m->graph_of, graph, (uint32_t)m->out->graphs.n, &i, m->err));
    if (i == m->out->graphs.n) {
        struct rp_line_graph row = {
            .id = rp_arena_text(m->arena, compile->id),
            .direction = m->out->of_xla ? "module" : rp_torch_direction_names[is->direction],
            .function = rp_arena_text(m->arena, compile->function),
            .key = rp_arena_text(m->arena, is->key),
            .runs = m->out->of_xla ? RP_ABSENT_I64 : m->from->compiled.runs.at[graph]};

        RP_TRY(rp_vec_push(&m->out->graphs, row, m->err));
    }
    *out = &m->out->graphs.at[i];
    return RP_OK;
}

/* Divides time among the lines of a call by their nodes; the last one gets what rounding leaves. */
static enum rp_code add_call(struct line_maker *m, uint32_t call, uint8_t direction, int64_t ns)
{
    const struct rp_torch_call *is = &m->log->calls.at[call];
    const struct rp_torch_share *shares = m->log->shares.at + is->first;
    int64_t nodes = 0, left = ns;

    for (uint32_t i = 0; i < is->n; i++)
        nodes += shares[i].nodes;
    for (uint32_t i = 0; i < is->n; i++) {
        int64_t part =
            i + 1 == is->n ? left : (int64_t)((double)ns * shares[i].nodes / (double)nodes);
        struct rp_line_sum *sum;

        RP_TRY(line_at(m, shares[i].place, &sum));
        part = part < left ? part : left;

        bool alone = is->n == 1;
        rp_ns_add(&sum->total_ns, part);
        if (alone)
            rp_ns_add(&sum->alone_ns, part);
        rp_ns_add(direction == RP_TORCH_IS_BACKWARD ? &sum->backward_ns : &sum->forward_ns, part);
        sum->calls++;
        left -= part;
    }
    return RP_OK;
}

static enum rp_code add_work(struct line_maker *m, const struct rp_compiled_span *span, int64_t ns)
{
    struct rp_line_graph *graph;

    rp_ns_add(&m->out->whole_ns, ns);
    if (!span->in_graph || span->graph == RP_NONE) {
        rp_ns_add(span->in_graph ? &m->out->unknown_ns : &m->out->outside_ns, ns);
        return RP_OK;
    }
    RP_TRY(graph_at(m, span->graph, &graph));
    rp_ns_add(&graph->total_ns, ns);
    if (span->call == RP_NONE || !m->log->calls.at[span->call].n) {
        rp_ns_add(span->call == RP_NONE ? &m->out->unmatched_ns : &m->out->unlined_ns, ns);
        return RP_OK;
    }
    rp_ns_add(&m->out->covered_ns, ns);
    rp_ns_add(&graph->lines_ns, ns);
    if (m->out->of_xla)
        return add_call(
            m, span->call,
            m->from->xla.backward.at[span->call] ? RP_TORCH_IS_BACKWARD : RP_TORCH_IS_FORWARD, ns);
    return add_call(m, span->call, m->log->graphs.at[span->graph].direction, ns);
}

static enum rp_code add_device(struct line_maker *m, const struct rp_work *work)
{
    for (size_t i = 0; i < work->items.n; i++) {
        const struct rp_work_item *item = &work->items.at[i];
        struct rp_compiled_span span =
            m->out->of_xla ? rp_lines_xla_of(&m->from->xla, work->trace, item->event)
                           : rp_compiled_of_work(&m->from->compiled, work, item);

        RP_TRY(add_work(m, &span, rp_ns_between(item->begin_ns, item->end_ns)));
    }
    return RP_OK;
}

/* Adds the operators that the code of graphs calls, without those inside them. */
static enum rp_code add_host(struct line_maker *m, const struct rp_trace *t,
                             const struct rp_scope *scope)
{

    m->out->on_host = true;
    for (rp_event e = 0; e < t->ev.n; e++) {
        rp_event parent = t->ev.parent[e];
        struct rp_compiled_span span;

        if (t->ev.dur_ns[e] < 0 || !rp_scope_has(scope, t->ev.ts_ns[e]))
            continue;
        if (m->out->of_xla) {
            span = rp_lines_xla_of(&m->from->xla, t, e);
            if (!span.in_graph ||
                (parent != RP_NONE && rp_lines_xla_of(&m->from->xla, t, parent).in_graph))
                continue;
        } else {
            if (t->ev.kind[e] != RP_KIND_CPU_OP || parent == RP_NONE ||
                rp_map_get(&m->from->compiled.run_of, parent) == RP_MAP_NONE)
                continue;
            span = rp_compiled_of_span(&m->from->compiled, e);
        }
        RP_TRY(add_work(m, &span, t->ev.dur_ns[e]));
    }
    return RP_OK;
}

static enum rp_code make_lines(struct line_maker *m, const struct rp_trace *trace,
                               const struct rp_scope *scope)
{
    struct rp_work work;
    enum rp_code code = rp_work_init(&work, trace, scope, m->err);

    m->out->compiles = (int64_t)m->log->compiles.n;
    if (code == RP_OK && work.items.n)
        code = add_device(m, &work);
    else if (code == RP_OK)
        code = add_host(m, trace, scope);
    rp_work_release(&work);
    return code;
}

enum rp_code rp_lines_make(const struct rp_loaded *loaded, const struct rp_scope *scope,
                           const char *dumps, struct rp_arena *arena, struct rp_lines_part *out,
                           struct rp_err *err)
{
    struct rp_line_source source;
    struct line_maker m = {
        .from = &source, .log = &source.log, .out = out, .arena = arena, .err = err};
    enum rp_code code = rp_line_source_init(&source, loaded, dumps, err);

    out->known = source.known;
    out->of_xla = source.of_xla;
    if (code == RP_OK && source.known)
        code = make_lines(&m, loaded->trace, scope);
    rp_map_release(&m.line_of);
    rp_map_release(&m.graph_of);
    rp_line_source_release(&source);
    return code == RP_OK ? rp_arena_check(arena, "joining the compile log", err) : code;
}

/* ------------------------------------------------------------------ all ranks */

RP_ORDER(by_total, struct rp_source_line_row, RP_DOWN(total_ns), strcmp(a->name, b->name),
         strcmp(a->path, b->path))
RP_ORDER(graph_by_total, struct rp_line_graph_row, RP_DOWN(total_ns), strcmp(a->id, b->id),
         strcmp(a->direction, b->direction))

static double share_of(int64_t ns, int64_t whole_ns)
{
    return whole_ns > 0 ? (double)ns / (double)whole_ns : 0;
}

static void add_line(struct rp_source_line_row *row, const struct rp_line_sum *sum)
{
    rp_ns_add(&row->total_ns, sum->total_ns);
    rp_ns_add(&row->alone_ns, sum->alone_ns);
    rp_ns_add(&row->forward_ns, sum->forward_ns);
    rp_ns_add(&row->backward_ns, sum->backward_ns);
    row->calls += sum->calls;
}

static enum rp_code join_lines(const struct rp_lines_part *const *parts, size_t n,
                               struct rp_arena *arena, struct rp_lines_root *out,
                               struct rp_err *err)
{
    struct rp_names names = {0};
    enum rp_code code = RP_OK;
    size_t most = 0;

    for (size_t p = 0; p < n; p++)
        most += parts[p]->lines.n;
    out->rows = RP_ARENA_NEW(arena, struct rp_source_line_row, most + 1);
    RP_TRY(rp_err_need(out->rows, err, "adding up ranks"));
    for (size_t p = 0; p < n; p++)
        for (size_t i = 0; i < parts[p]->lines.n && code == RP_OK; i++) {
            const struct rp_line_sum *sum = &parts[p]->lines.at[i];
            const char *key = rp_arena_textf(arena, "%lld\n%s", (long long)sum->line, sum->path);
            uint32_t row = rp_names_find(&names, key);

            if (row == RP_NONE) {
                row = (uint32_t)out->nrows++;
                out->rows[row] = (struct rp_source_line_row){
                    .name = rp_arena_textf(arena, "%s:%lld", rp_text_file(sum->path),
                                           (long long)sum->line),
                    .path = sum->path,
                    .function = sum->function,
                    .line = sum->line};
                code = rp_names_add(&names, key, row, err);
            }
            add_line(&out->rows[row], sum);
        }
    rp_names_release(&names);
    return code;
}

static enum rp_code join_graphs(const struct rp_lines_part *const *parts, size_t n,
                                struct rp_arena *arena, struct rp_lines_root *out,
                                struct rp_err *err)
{
    struct rp_names names = {0};
    enum rp_code code = RP_OK;
    size_t most = 0;

    for (size_t p = 0; p < n; p++)
        most += parts[p]->graphs.n;
    out->graphs = RP_ARENA_NEW(arena, struct rp_line_graph_row, most + 1);
    RP_TRY(rp_err_need(out->graphs, err, "adding up ranks"));
    for (size_t p = 0; p < n; p++)
        for (size_t i = 0; i < parts[p]->graphs.n && code == RP_OK; i++) {
            const struct rp_line_graph *graph = &parts[p]->graphs.at[i];
            const char *key = graph->key
                                  ? graph->key
                                  : rp_arena_textf(arena, "%s %s", graph->id, graph->direction);
            uint32_t row = rp_names_find(&names, key);

            if (row == RP_NONE) {
                row = (uint32_t)out->ngraphs++;
                out->graphs[row] = (struct rp_line_graph_row){.id = graph->id,
                                                              .direction = graph->direction,
                                                              .function = graph->function,
                                                              .key = graph->key};
                code = rp_names_add(&names, key, row, err);
            }
            out->graphs[row].runs =
                graph->runs == RP_ABSENT_I64 ? graph->runs : out->graphs[row].runs + graph->runs;
            rp_ns_add(&out->graphs[row].total_ns, graph->total_ns);
            out->graphs[row].coverage += (double)graph->lines_ns;
        }
    rp_names_release(&names);
    return code;
}

static void add_rest(struct rp_lines_root *out, const char *what, int64_t ns)
{
    if (ns)
        out->rest[out->nrest++] = (struct rp_lines_rest){what, ns, share_of(ns, out->whole_ns)};
}

static void fill_notes(struct rp_lines_root *out, const struct rp_lines_part *sum,
                       struct rp_arena *arena)
{
    if (!out->ngraphs && !sum->unknown_ns)
        RP_NOTE(out, arena,
                "no run of a compiled graph was recorded ('## Call CompiledFxGraph …'): the "
                "profiler must record annotations of the host");
    else if (sum->unknown_ns && sum->of_xla)
        RP_NOTE(out, arena, "some modules are neither in the profile nor in the dumps");
    else if (sum->unknown_ns)
        RP_NOTE(out, arena,
                "some graphs are not in these logs: they are of another run, or of another setting "
                "(provenance is part of a graph's key), or one log has their compile's id twice");
    if (out->row_count > (int64_t)out->nrows)
        RP_NOTE(out, arena,
                rp_arena_textf(arena, "%zu of %s rows: '--limit 0' shows all", out->nrows,
                               rp_units_number(arena, out->row_count)));
}

RP_ORDER(by_place, struct rp_source_line_row, strcmp(a->path, b->path),
         strcmp(a->function ? a->function : "", b->function ? b->function : ""), RP_UP(line))

static bool same_function(const struct rp_source_line_row *a, const struct rp_source_line_row *b)
{
    return !strcmp(a->path, b->path) &&
           !strcmp(a->function ? a->function : "", b->function ? b->function : "");
}

/* Writes the page: functions, their lines, and what has no line. */
static enum rp_code write_page(const struct rp_lines_root *out, const char *path,
                               struct rp_arena *arena, struct rp_err *err)
{
    size_t n = (size_t)out->row_count, most = 2 * n + out->nrest + 1, used = 0;
    struct rp_source_line_row *rows = RP_ARENA_NEW(arena, struct rp_source_line_row, n + 1);
    struct rp_stacks_frame *frames = RP_ARENA_NEW(arena, struct rp_stacks_frame, most);
    struct rp_stacks_node *nodes = RP_ARENA_NEW(arena, struct rp_stacks_node, most);
    uint32_t function = RP_NONE;

    RP_TRY(rp_err_need(rows && frames && nodes, err, "drawing lines"));
    if (n)
        memcpy(rows, out->rows, n * sizeof *rows);
    rp_sort(rows, n, sizeof *rows, by_place);
    for (size_t i = 0; i < n; i++) {
        const struct rp_source_line_row *r = &rows[i];

        if (!i || !same_function(r, r - 1)) {
            function = (uint32_t)used;
            frames[used] = (struct rp_stacks_frame){
                r->function && *r->function ? r->function : rp_text_file(r->path), r->path, 0, 0};
            nodes[used++] = (struct rp_stacks_node){RP_NONE, function, 0, 0};
        }
        frames[used] = (struct rp_stacks_frame){r->name, r->path, (uint32_t)r->line, 0};
        nodes[used] = (struct rp_stacks_node){function, (uint32_t)used, r->total_ns, r->calls};
        used++;
    }
    for (size_t i = 0; i < out->nrest; i++, used++) {
        frames[used] = (struct rp_stacks_frame){out->rest[i].what, "", 0, RP_STACKS_PART};
        nodes[used] = (struct rp_stacks_node){RP_NONE, (uint32_t)used, out->rest[i].total_ns, 0};
    }
    return rp_flame_write(&(struct rp_flame){.frames = frames,
                                             .nodes = nodes,
                                             .nframes = used,
                                             .nnodes = used,
                                             .unit = RP_WEIGHT_NS},
                          path, err);
}

enum rp_code rp_lines_join(const struct rp_lines_part *const *parts, size_t n, int64_t limit,
                           const char *html, struct rp_arena *arena, struct rp_lines_root *out,
                           struct rp_err *err)
{
    struct rp_lines_part sum = {0};

    *out = (struct rp_lines_root){.by = "line", .measure = "device time", .ranks = (int64_t)n};
    for (size_t p = 0; p < n; p++) {
        rp_ns_add(&sum.whole_ns, parts[p]->whole_ns);
        rp_ns_add(&sum.covered_ns, parts[p]->covered_ns);
        rp_ns_add(&sum.outside_ns, parts[p]->outside_ns);
        rp_ns_add(&sum.unknown_ns, parts[p]->unknown_ns);
        rp_ns_add(&sum.unmatched_ns, parts[p]->unmatched_ns);
        rp_ns_add(&sum.unlined_ns, parts[p]->unlined_ns);
        sum.of_xla = sum.of_xla || parts[p]->of_xla;
        if (parts[p]->on_host)
            out->measure = "host time in compiled graphs";
    }
    out->whole_ns = sum.whole_ns;
    out->covered_ns = sum.covered_ns;
    out->coverage = share_of(sum.covered_ns, sum.whole_ns);
    RP_TRY(join_lines(parts, n, arena, out, err));
    RP_TRY(join_graphs(parts, n, arena, out, err));
    out->rest = RP_ARENA_NEW(arena, struct rp_lines_rest, 4);
    RP_TRY(rp_err_need(out->rest, err, "adding up ranks"));
    for (size_t i = 0; i < out->nrows; i++) {
        out->rows[i].share = share_of(out->rows[i].total_ns, out->whole_ns);
        out->rows[i].shared_ns = out->rows[i].total_ns - out->rows[i].alone_ns;
    }
    for (size_t i = 0; i < out->ngraphs; i++) {
        out->graphs[i].share = share_of(out->graphs[i].total_ns, out->whole_ns);
        out->graphs[i].coverage = out->graphs[i].total_ns > 0
                                      ? out->graphs[i].coverage / (double)out->graphs[i].total_ns
                                      : 1;
    }
    rp_sort(out->rows, out->nrows, sizeof *out->rows, by_total);
    rp_sort(out->graphs, out->ngraphs, sizeof *out->graphs, graph_by_total);
    add_rest(out, "outside of compiled graphs", sum.outside_ns);
    add_rest(out, "in graphs that are not in the logs", sum.unknown_ns);
    add_rest(out, "in a graph, call not known", sum.unmatched_ns);
    add_rest(out, "in a call without a line", sum.unlined_ns);
    out->row_count = (int64_t)out->nrows;
    if (html)
        RP_TRY(write_page(out, html, arena, err));
    out->nrows = limit > 0 && (size_t)limit < out->nrows ? (size_t)limit : out->nrows;
    fill_notes(out, &sum, arena);
    out->summary = rp_arena_textf(arena, "%s by line of the program; %s has one", out->measure,
                                  rp_units_text(arena, out->coverage, RP_UNIT_RATIO));
    return rp_arena_check(arena, "adding up ranks", err);
}

void rp_lines_release(struct rp_lines_part *part)
{
    rp_vec_release(&part->lines);
    rp_vec_release(&part->graphs);
}
