/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call tree of a rank is that of its samples; the ranks' trees are joined by their frames. Time
 * with callees is added from the last node to the first. A function that calls itself counts once:
 * the tree is walked depth first, and a node adds to its row only if no node above it has the same
 * row. Linear in the nodes, without recursion.
 */
#include "explain/top/stacks_tree.h"

#include "base/line.h"
#include "result/part.h"
#include "result/print_units.h"
#include "result/result.h"

#include <stdlib.h>
#include <string.h>

static const char *const kind_words[RP_FRAME_KINDS] = {"other", "python", "native", "kernel"};
static const char part_word[] = "part";

/* ------------------------------------------------------------------ what is kept and shown */

static const struct rp_field frame_fields[] = {
    RP_PART_TEXT(struct rp_stacks_frame, name), RP_PART_TEXT(struct rp_stacks_frame, file),
    RP_PART_PLAIN(struct rp_stacks_frame, line), RP_PART_PLAIN(struct rp_stacks_frame, kind),
    RP_PART_END};
static const struct rp_type frame_type = {"stacks_frame", sizeof(struct rp_stacks_frame),
                                          frame_fields, NULL};

#define PLAIN(member) RP_PART_PLAIN(struct rp_stacks_part, member)
static const struct rp_field part_fields[] = {
    RP_PART_VEC(struct rp_stacks_part, frames, &frame_type),
    RP_PART_PLAIN_VEC(struct rp_stacks_part, nodes, struct rp_stacks_node),
    RP_PART_PLAIN_VEC(struct rp_stacks_part, runs, struct rp_stacks_node),
    PLAIN(whole),
    PLAIN(count),
    PLAIN(unread),
    PLAIN(waited),
    PLAIN(wants_gil),
    PLAIN(untimed),
    PLAIN(unit),
    PLAIN(of_spans),
    PLAIN(of_device),
    PLAIN(is_drawn),
    RP_PART_TEXT(struct rp_stacks_part, unit_name),
    RP_PART_END};
const struct rp_type rp_stacks_part_type = {"stacks_part", sizeof(struct rp_stacks_part),
                                            part_fields, NULL};

#define ROW(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_stacks_row, member, type, unit, title, doc, flags)

static const struct rp_field row_fields[] = {
    ROW(part, STR, NONE, NULL, "with '--split': the thread, step or rank; else null", 0),
    ROW(name, STR, NONE, NULL, "the function; for a stack, its innermost function", 0),
    ROW(label, STR, NONE, "name", "the row, shortened", RP_SCREEN | RP_SHORTEN),
    ROW(file, STR, NONE, NULL, "its source file or library, or null", 0),
    ROW(line, I64, NONE, NULL, "its line, or null", RP_NULLABLE),
    ROW(kind, STR, NONE, "kind", "python, native, kernel (of the system) or other", 0),
    ROW(stack, STR, NONE, NULL, "for a stack: all functions, outermost first; otherwise null", 0),
    ROW(count, I64, COUNT, "samples", "samples, or spans, in it and not in what it calls", 0),
    ROW(self_ns, I64, NS, "self", "time without what it calls; null where samples have no time",
        RP_NULLABLE),
    ROW(self_count, I64, COUNT, "self", "the same of a profile that counts", RP_NULLABLE),
    ROW(self_bytes, I64, BYTES, "self", "the same of a profile of memory", RP_NULLABLE),
    ROW(self_share, F64, RATIO, "share", "self, of all samples", RP_BAR),
    ROW(total_ns, I64, NS, "total",
        "time with what it calls; a function that calls itself counts once", RP_NULLABLE),
    ROW(total_count, I64, COUNT, "total", "the same of a profile that counts", RP_NULLABLE),
    ROW(total_bytes, I64, BYTES, "total", "the same of a profile of memory", RP_NULLABLE),
    ROW(total_share, F64, RATIO, "share", "total, of all samples", 0),
    RP_FIELD_END};
const struct rp_type rp_stacks_row_type = {"row", sizeof(struct rp_stacks_row), row_fields, NULL};

#define SHOWN(unit) "label, kind, count, self_" unit ", self_share, total_" unit ", total_share"

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_stacks_root, member, type, unit, title, doc, flags)

static const struct rp_field root_fields[] = {
    ROOT(summary, STR, NONE, "top", "text output only", RP_SCREEN),
    ROOT(by, STR, NONE, NULL, "what the rows are", 0),
    ROOT(measure, STR, NONE, NULL, "what the samples count, in the words of their file", 0),
    ROOT(ranks, I64, COUNT, NULL, "number of ranks", 0),
    ROOT(whole_ns, I64, NS, NULL, "time of all samples; null where they have no time", RP_NULLABLE),
    ROOT(whole_count, I64, COUNT, NULL, "the same of a profile that counts", RP_NULLABLE),
    ROOT(whole_bytes, I64, BYTES, NULL, "the same of a profile of memory", RP_NULLABLE),
    ROOT(waited_ns, I64, NS, NULL, "left out: threads waited ('--width wall' adds it)",
         RP_NULLABLE),
    ROOT(row_count, I64, COUNT, NULL, "rows before the limit", 0),
    RP_FIELD_LIST(struct rp_stacks_root, rows, &rp_stacks_row_type, NULL, "the largest first", 0),
    RP_FIELD_SHOWN(struct rp_stacks_root, times, &rp_stacks_row_type, "rows", SHOWN("ns"), 0),
    RP_FIELD_SHOWN(struct rp_stacks_root, counts, &rp_stacks_row_type, "rows", SHOWN("count"), 0),
    RP_FIELD_SHOWN(struct rp_stacks_root, bytes, &rp_stacks_row_type, "rows", SHOWN("bytes"), 0),
    RP_FIELD_LIST(struct rp_stacks_root, notes, &rp_type_string, "notes", "about the rows",
                  RP_SCREEN),
    RP_FIELD_END};
const struct rp_type rp_stacks_type = {"top", sizeof(struct rp_stacks_root), root_fields, "rows"};

/* ------------------------------------------------------------------ all ranks */

static enum rp_code join_frame(struct rp_stacks_tree *j, const struct rp_stacks_frame *f,
                               uint32_t *out)
{
    const char *key = rp_arena_textf(j->arena, "%u %u %s\n%s", f->kind, f->line, f->file, f->name);

    RP_TRY(rp_strtab_intern(&j->frames_of, key, strlen(key), out, j->err));
    *out -= 1; /* string 0 is "" */
    return *out < j->frames.n ? RP_OK : rp_vec_push(&j->frames, *f, j->err);
}

static enum rp_code join_node(struct rp_stacks_tree *j, uint32_t parent, uint32_t frame,
                              uint32_t *out)
{
    uint32_t fresh = (uint32_t)j->nodes.n;

    RP_TRY(rp_map_intern(&j->node_of, (uint64_t)parent << 32 | frame, fresh, out, j->err));
    if (*out != fresh)
        return RP_OK;
    RP_TRY(rp_vec_push(&j->nodes, ((struct rp_stacks_node){parent, frame, 0, 0}), j->err));
    return rp_vec_push(&j->base, ((struct rp_stacks_weight){0, 0}), j->err);
}

/* Puts the runs of ranks beside each other. */
static enum rp_code join_runs(struct rp_stacks_tree *j, const struct rp_stacks_part *part,
                              const uint32_t *frame, uint32_t rank)
{
    uint32_t top = RP_NONE, first;

    if (part->runs.n && rank != RP_NONE) {
        top = (uint32_t)j->runs.n;
        RP_TRY(rp_vec_push(&j->runs, ((struct rp_stacks_node){RP_NONE, rank, 0, 0}), j->err));
    }
    first = (uint32_t)j->runs.n;
    for (size_t i = 0; i < part->runs.n; i++) {
        struct rp_stacks_node n = part->runs.at[i];

        n.parent = n.parent == RP_NONE ? top : first + n.parent;
        n.frame = frame[n.frame];
        RP_TRY(rp_vec_push(&j->runs, n, j->err));
    }
    return RP_OK;
}

static enum rp_code join_tree_of(struct rp_stacks_tree *j, const struct rp_stacks_part *part,
                                 bool as_base, const char *rank, uint32_t *frame)
{
    struct rp_stacks_frame around = {.name = rank, .file = "", .kind = RP_STACKS_PART};
    uint32_t top = RP_NONE, top_frame = RP_NONE;

    for (size_t i = 0; i < part->frames.n; i++)
        RP_TRY(join_frame(j, &part->frames.at[i], &frame[i]));
    if (rank)
        RP_TRY(join_frame(j, &around, &top_frame));
    if (rank && j->split_ranks)
        RP_TRY(join_node(j, RP_NONE, top_frame, &top));

    /* Join the nodes below `top`; `to` maps ids of the rank's nodes. */
    uint32_t *to = frame + part->frames.n;
    for (size_t i = 0; i < part->nodes.n; i++) {
        const struct rp_stacks_node *n = &part->nodes.at[i];
        RP_TRY(join_node(j, n->parent == RP_NONE ? top : to[n->parent], frame[n->frame], &to[i]));
        if (as_base) {
            rp_ns_add(&j->base.at[to[i]].self, n->self);
            j->base.at[to[i]].count += n->count;
        } else {
            rp_ns_add(&j->nodes.at[to[i]].self, n->self);
            j->nodes.at[to[i]].count += n->count;
        }
    }

    RP_TRY(join_runs(j, part, frame, top_frame));
    rp_ns_add(as_base ? &j->base_whole : &j->whole, part->whole);
    rp_ns_add(&j->unread, part->unread);
    rp_ns_add(&j->waited, part->waited);
    j->untimed += part->untimed;
    j->of_spans |= part->of_spans;
    j->of_device |= part->of_device;
    j->is_drawn &= part->is_drawn;
    return RP_OK;
}

enum rp_code rp_stacks_tree_add(struct rp_stacks_tree *j, const struct rp_stacks_part *part,
                                bool as_base, const char *rank)
{
    RP_FREED uint32_t *ids = NULL;

    if (j->has_parts && part->unit != j->unit)
        return rp_err_set(j->err, RP_UNSUPPORTED,
                          "the profiles count different things: give one at a time");
    if (!j->has_parts) {
        j->unit = part->unit;
        j->measure = part->unit_name ? part->unit_name : "";
    }
    j->has_parts = true;
    ids = malloc((part->frames.n + part->nodes.n + 1) * sizeof *ids);
    RP_TRY(rp_err_need(ids, j->err, "adding up ranks"));
    return join_tree_of(j, part, as_base, rank, ids);
}

/* The thread, step or rank of a node's stack; NULL if stacks are not split. */
static const struct rp_stacks_frame *part_of(const struct rp_stacks_tree *j, uint32_t node)
{
    while (j->nodes.at[node].parent != RP_NONE)
        node = j->nodes.at[node].parent;
    const struct rp_stacks_frame *f = &j->frames.at[j->nodes.at[node].frame];
    return f->kind == RP_STACKS_PART ? f : NULL;
}

/* The key of a node's row: two nodes with the same key share a row. */
static const char *row_key(struct rp_stacks_tree *j, uint32_t node)
{
    const struct rp_stacks_frame *f = &j->frames.at[j->nodes.at[node].frame];
    const struct rp_stacks_frame *part = part_of(j, node);
    int in = part ? (int)(part - j->frames.at) : -1;

    if (!strcmp(j->by, "line"))
        return rp_arena_textf(j->arena, "%d %u %u %s\n%s", in, f->kind, f->line, f->file,
                              f->line ? "" : f->name);
    return rp_arena_textf(j->arena, "%d %u %s\n%s", in, f->kind, f->file, f->name);
}

static const char *row_label(struct rp_stacks_tree *j, const struct rp_stacks_frame *f,
                             const char *part)
{
    const char *slash = strrchr(f->file, '/'), *file = slash ? slash + 1 : f->file;
    const char *to = part ? ": " : "";

    part = part ? part : "";
    if (!strcmp(j->by, "line") && f->line)
        return rp_arena_textf(j->arena, "%s%s%s:%u %s", part, to, file, f->line, f->name);
    return *file ? rp_arena_textf(j->arena, "%s%s%s (%s)", part, to, f->name, file)
                 : rp_arena_textf(j->arena, "%s%s%s", part, to, f->name);
}

/* Whether a node counts for the line that called it: libraries rarely have lines, and users ask
   which line is slow. */
static bool joins_caller(const struct rp_stacks_tree *j, uint32_t node, const uint32_t *row)
{
    const struct rp_stacks_node *n = &j->nodes.at[node];

    return !strcmp(j->by, "line") && !j->frames.at[n->frame].line && n->parent != RP_NONE &&
           j->rows.at[row[n->parent]].line != RP_ABSENT_I64;
}

static enum rp_code row_of(struct rp_stacks_tree *j, uint32_t node, uint32_t *out)
{
    const struct rp_stacks_frame *f = &j->frames.at[j->nodes.at[node].frame];
    struct rp_stacks_row row = {.name = f->name,
                                .file = *f->file ? f->file : NULL,
                                .kind = f->kind == RP_STACKS_PART ? part_word : kind_words[f->kind],
                                .line = RP_ABSENT_I64};
    const struct rp_stacks_frame *part = part_of(j, node);

    row.part = part ? part->name : NULL;
    if (f->line && strcmp(j->by, "function") != 0)
        row.line = f->line;
    if (!strcmp(j->by, "stack")) { /* each is a row of its own */
        row.label = f->name;
        row.node = node;
        *out = (uint32_t)j->rows.n;
        return rp_vec_push(&j->rows, row, j->err);
    }
    const char *key = row_key(j, node);
    RP_TRY(rp_strtab_intern(&j->rows_of, key, strlen(key), out, j->err));
    *out -= 1; /* string 0 is "" */
    if (*out < j->rows.n)
        return RP_OK;
    row.label = row_label(j, f, row.part);
    return rp_vec_push(&j->rows, row, j->err);
}

/* Only rows that are shown get these texts, because for all rows they are as long as the stacks
   together. */
void rp_stacks_tree_name(struct rp_stacks_tree *j, struct rp_stacks_row *row)
{
    if (!strcmp(j->by, "stack")) {
        /* Write "main;step;load", or for the screen, which cuts the end of a long text, in reverse
           order. */
        struct rp_arena_line down = {.arena = j->arena}, up = {.arena = j->arena};
        RP_VEC(uint32_t) path = {0};

        for (uint32_t n = row->node; n != RP_NONE; n = j->nodes.at[n].parent) {
            rp_arena_addf(&up, "%s%s", up.n ? " < " : "", j->frames.at[j->nodes.at[n].frame].name);
            if (rp_vec_push(&path, n, j->err) != RP_OK)
                break;
        }
        while (path.n)
            rp_arena_addf(&down, "%s%s", down.n ? ";" : "",
                          j->frames.at[j->nodes.at[path.at[--path.n]].frame].name);
        rp_vec_release(&path);
        row->label = up.text ? up.text : "";
        row->stack = down.text ? down.text : "";
    }
}

/* ------------------------------------------------------------------ adding up */

struct walk {
    uint32_t *child, *next; /* first child and next sibling of a node */
    uint32_t *row;          /* of a node, or RP_NONE */
    uint32_t *above;        /* by row: number of its nodes on the way to the outermost */
    int64_t *total;         /* of a node */
};

static int64_t self_of(const struct rp_stacks_tree *j, uint32_t node, bool as_base)
{
    return as_base ? j->base.at[node].self : j->nodes.at[node].self;
}

static void link_children(const struct rp_stacks_tree *j, struct walk *w, bool as_base,
                          uint32_t *roots)
{
    memset(w->total, 0, j->nodes.n * sizeof *w->total);
    for (uint32_t i = 0; i < j->nodes.n; i++)
        w->child[i] = RP_NONE;

    *roots = RP_NONE;
    for (uint32_t i = (uint32_t)j->nodes.n; i-- > 0;) {
        uint32_t parent = j->nodes.at[i].parent;
        uint32_t *list = parent == RP_NONE ? roots : &w->child[parent];

        rp_ns_add(&w->total[i], self_of(j, i, as_base));
        if (parent != RP_NONE)
            rp_ns_add(&w->total[parent], w->total[i]);
        w->next[i] = *list;
        *list = i;
    }
}

static void leave_node(struct walk *w, uint32_t n)
{
    if (w->row[n] != RP_NONE)
        w->above[w->row[n]]--;
}

static void walk_nodes(struct rp_stacks_tree *j, struct walk *w, bool as_base)
{
    uint32_t n, roots;

    link_children(j, w, as_base, &roots);
    for (n = roots; n != RP_NONE;) {
        /* Enters a node: its row gets the total, unless the row is above already. */
        if (w->row[n] != RP_NONE) {
            struct rp_stacks_row *row = &j->rows.at[w->row[n]];
            if (w->above[w->row[n]]++ == 0)
                rp_ns_add(as_base ? &row->base_total : &row->total_ns, w->total[n]);
            rp_ns_add(as_base ? &row->base_self : &row->self_ns, self_of(j, n, as_base));
            *(as_base ? &row->base_samples : &row->count) +=
                as_base ? j->base.at[n].count : j->nodes.at[n].count;
        }

        if (w->child[n] != RP_NONE) {
            n = w->child[n];
            continue;
        }
        while (n != RP_NONE && w->next[n] == RP_NONE) {
            leave_node(w, n);
            n = j->nodes.at[n].parent;
        }
        if (n != RP_NONE) {
            leave_node(w, n);
            n = w->next[n];
        }
    }
}

enum rp_code rp_stacks_tree_fill(struct rp_stacks_tree *j)
{
    size_t n = j->nodes.n + 1, i;
    struct walk w = {.child = malloc(n * sizeof *w.child),
                     .next = malloc(n * sizeof *w.next),
                     .row = malloc(n * sizeof *w.row),
                     .above = calloc(n, sizeof *w.above),
                     .total = calloc(n, sizeof *w.total)};
    enum rp_code code = RP_OK;

    if (!w.child || !w.next || !w.row || !w.above || !w.total)
        code = rp_err_nomem(j->err, "adding up stacks");
    for (i = 0; code == RP_OK && i < j->nodes.n; i++) {
        if (!strcmp(j->by, "stack") && !j->nodes.at[i].count && !j->base.at[i].count)
            w.row[i] = RP_NONE; /* no stack ends there */
        else if (joins_caller(j, (uint32_t)i, w.row))
            w.row[i] = w.row[j->nodes.at[i].parent];
        else
            code = row_of(j, (uint32_t)i, &w.row[i]);
    }
    if (code == RP_OK) {
        walk_nodes(j, &w, true);
        walk_nodes(j, &w, false);
    }
    free(w.child);
    free(w.next);
    free(w.row);
    free(w.above);
    free(w.total);
    return code;
}

/* ------------------------------------------------------------------ the answer */

static int by_sort(const void *pa, const void *pb, void *user)
{
    const struct rp_stacks_row *a = pa, *b = pb;
    const char *sort = user;
    int64_t x = a->self_ns, y = b->self_ns;

    if (!strcmp(sort, "total")) {
        x = a->total_ns;
        y = b->total_ns;
    } else if (!strcmp(sort, "count")) {
        x = a->count;
        y = b->count;
    } else if (!strcmp(sort, "name")) {
        x = y = 0;
    }
    if (x != y)
        return x > y ? -1 : 1;
    if (strcmp(sort, "name") != 0 && a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    return strcmp(a->label, b->label) ? strcmp(a->label, b->label)
                                      : (a->node > b->node) - (a->node < b->node);
}

static bool row_has_samples(const struct rp_stacks_tree *j, const struct rp_stacks_row *row)
{
    if (row->kind == part_word)
        return false;
    return !strcmp(j->by, "stack") ? row->count > 0 : row->count > 0 || row->total_ns != 0;
}

static void add_notes(const struct rp_stacks_tree *j, const struct rp_stacks_want *want,
                      struct rp_stacks_root *out)
{
    if (j->of_device && !j->whole)
        RP_NOTE(out, j->arena,
                "no device work was recorded: '--width cpu' or 'wall' is about the "
                "host alone");
    else if (!out->row_count && !j->untimed && !j->waited)
        RP_NOTE(out, j->arena,
                rp_arena_textf(j->arena,
                               "no samples of call stacks and no Python functions were recorded%s: "
                               "'record --with +sample'%s%s, py-spy and perf do",
                               want->in_steps ? " in the steps" : "", want->frames ? ", " : "",
                               want->frames ? want->frames : ""));
    if (j->of_spans && out->row_count)
        RP_NOTE(out, j->arena,
                j->of_device ? "from spans of Python functions"
                             : "from spans of Python functions: no samples were recorded");
    else if (j->of_device && out->row_count)
        RP_NOTE(out, j->arena,
                "a launch has the stack of the sample of its thread that is nearest "
                "to it: sample often ('--set sample.hz=1000')");
    if (j->unread)
        RP_NOTE(out, j->arena,
                rp_arena_textf(j->arena, "%.1f %% of it has no stack",
                               100.0 * (double)j->unread / (double)j->whole));
    if (j->waited && out->waited_ns != RP_ABSENT_I64)
        RP_NOTE(out, j->arena,
                rp_arena_textf(j->arena,
                               "left out: %s in which threads waited: '--width wall' adds it",
                               rp_units_time(j->arena, j->waited)));
    if (j->untimed)
        RP_NOTE(out, j->arena,
                rp_arena_textf(
                    j->arena,
                    "left out: %s without a time, which '--step' and '--window' cannot select",
                    rp_units_count(j->arena, j->untimed, "sample")));
    if (out->row_count > (int64_t)out->nrows)
        RP_NOTE(out, j->arena,
                rp_arena_textf(j->arena, "%zu of %s rows: '--limit 0' shows all", out->nrows,
                               rp_units_number(j->arena, out->row_count)));
}

static enum rp_code fill_root(struct rp_stacks_tree *j, const char *sort, int64_t limit,
                              uint32_t unit, struct rp_stacks_root *out)
{
    static const char *const words[RP_WEIGHT_UNITS] = {"time", "samples", "memory"};
    size_t i, n = 0;
    size_t *shown[RP_WEIGHT_UNITS] = {&out->ntimes, &out->ncounts, &out->nbytes};

    for (i = 0; i < j->rows.n; i++)
        if (row_has_samples(j, &j->rows.at[i]))
            j->rows.at[n++] = j->rows.at[i];
    if (n)
        qsort_r(j->rows.at, n, sizeof *j->rows.at, by_sort, (void *)(uintptr_t)sort);
    out->row_count = (int64_t)n;
    out->nrows = limit > 0 && (size_t)limit < n ? (size_t)limit : n;
    out->rows = RP_ARENA_NEW(j->arena, struct rp_stacks_row, out->nrows + 1);
    RP_TRY(rp_err_need(out->rows, j->err, "adding up stacks"));
    for (i = 0; i < out->nrows; i++) {
        out->rows[i] = j->rows.at[i];
        rp_stacks_tree_name(j, &out->rows[i]);

        /* Weights are added up as nanoseconds; this moves them to the member of their unit. */
        struct rp_stacks_row *row = &out->rows[i];
        int64_t whole = j->whole;
        int64_t self = row->self_ns, total = row->total_ns;
        row->self_share = whole > 0 ? (double)self / (double)whole : 0;
        row->total_share = whole > 0 ? (double)total / (double)whole : 0;
        RP_STACKS_SET(row, self, unit, self);
        RP_STACKS_SET(row, total, unit, total);
    }
    RP_STACKS_SET(out, whole, unit, j->whole);
    out->waited_ns = unit == RP_WEIGHT_NS ? j->waited : RP_ABSENT_I64;
    out->times = out->counts = out->bytes = out->rows;
    *shown[unit] = out->nrows;
    out->summary = rp_arena_textf(
        j->arena, "%s%s by %s", j->of_device || !strncmp(out->measure, "device ", 7) ? "" : "host ",
        *out->measure ? out->measure : words[unit], j->by);
    return rp_arena_check(j->arena, "adding up stacks", j->err);
}

static enum rp_code check_sort(const char *sort, const char *by, struct rp_err *err)
{
    if (!strcmp(sort, "self") || !strcmp(sort, "total") || !strcmp(sort, "count") ||
        !strcmp(sort, "name"))
        return RP_OK;
    return rp_err_set(err, RP_USAGE, "'--by %s' has no '%s': sort by self, total, count or name",
                      by, sort);
}

enum rp_code rp_stacks_tree_init(struct rp_stacks_tree *j, const char *by, struct rp_arena *arena,
                                 struct rp_err *err)
{
    *j = (struct rp_stacks_tree){
        .arena = arena, .by = by, .measure = "", .is_drawn = true, .err = err};
    RP_TRY(rp_strtab_init(&j->rows_of, err));
    return rp_strtab_init(&j->frames_of, err);
}

void rp_stacks_tree_release(struct rp_stacks_tree *j)
{
    rp_strtab_release(&j->rows_of);
    rp_strtab_release(&j->frames_of);
    rp_map_release(&j->node_of);
    rp_vec_release(&j->rows);
    rp_vec_release(&j->nodes);
    rp_vec_release(&j->runs);
    rp_vec_release(&j->base);
    rp_vec_release(&j->frames);
}

enum rp_code rp_stacks_tree_draw(const struct rp_stacks_tree *j, const char *path, const char *by)
{
    struct rp_flame flame = {.frames = j->frames.at,
                             .nodes = j->nodes.at,
                             .runs = j->runs.at,
                             .base = j->base_whole ? j->base.at : NULL,
                             .nframes = j->frames.n,
                             .nnodes = j->nodes.n,
                             .nruns = j->runs.n,
                             .unit = j->unit,
                             .by_function = !strcmp(by, "function")};

    return path ? rp_flame_write(&flame, path, j->err) : RP_OK;
}

enum rp_code rp_stacks_join(const struct rp_stacks_part *const *parts, size_t n,
                            const struct rp_stacks_want *want, struct rp_arena *arena,
                            struct rp_stacks_root *out, struct rp_err *err)
{
    RP_SCOPED(rp_stacks_tree_release) struct rp_stacks_tree j = {0};

    RP_TRY(check_sort(want->sort, want->by, err));
    RP_TRY(rp_stacks_tree_init(&j, want->by, arena, err));
    j.split_ranks = want->split_ranks;
    for (size_t i = 0; i < n; i++)
        RP_TRY(rp_stacks_tree_add(&j, parts[i], false, want->ranks ? want->ranks[i] : NULL));
    *out = (struct rp_stacks_root){
        .by = rp_arena_text(arena, want->by), .measure = j.measure, .ranks = (int64_t)n};
    RP_TRY(rp_stacks_tree_fill(&j));
    RP_TRY(fill_root(&j, want->sort, want->limit, j.unit, out));
    add_notes(&j, want, out);
    RP_TRY(rp_stacks_tree_draw(&j, want->html, want->by));
    return rp_arena_check(arena, "adding up stacks", err);
}
