/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the surroundings of one name. An item of device work belongs to the focus if its own name
 * matches or that of a span around its launch; of several such spans the outermost counts, so that
 * a recursion counts once. Callers are the next operator, module and annotation around it, callees
 * the outermost operator and module inside it and the kernels, each with the time of the focus that
 * is theirs. Work of the backward pass belongs to the modules of its forward operator, as in trees.
 * If nothing around a launch of the backward pass is known, the surroundings of the operator whose
 * gradient is computed are used.
 */
#include "explain/top/focus.h"

#include "base/filled.h"
#include "base/hash.h"
#include "base/order.h"
#include "base/strtab.h"
#include "explain/short_name.h"
#include "explain/top/spans.h"
#include "facts/arg_keys.h"
#include "facts/torch_names.h"
#include "facts/work/ancestors.h"
#include "result/part.h"
#include "result/print_units.h"
#include "result/result.h"

#include <ctype.h>
#include <string.h>

/* ------------------------------------------------------------------ the part of a rank */

static const struct rp_field sum_fields[] = {
    RP_PART_PLAIN(struct rp_focus_sum, relation), RP_PART_PLAIN(struct rp_focus_sum, kind),
    RP_PART_PLAIN(struct rp_focus_sum, calls),    RP_PART_PLAIN(struct rp_focus_sum, total_ns),
    RP_PART_TEXT(struct rp_focus_sum, name),      RP_PART_END};
static const struct rp_type sum_type = {"sum", sizeof(struct rp_focus_sum), sum_fields, NULL};

static const struct rp_field focus_fields[] = {RP_PART_VEC(struct rp_focus_part, sums, &sum_type),
                                               RP_PART_PLAIN(struct rp_focus_part, whole_ns),
                                               RP_PART_PLAIN(struct rp_focus_part, total_ns),
                                               RP_PART_PLAIN(struct rp_focus_part, backward_ns),
                                               RP_PART_PLAIN(struct rp_focus_part, calls),
                                               RP_PART_PLAIN(struct rp_focus_part, on_host),
                                               RP_PART_PLAIN(struct rp_focus_part, exact),
                                               RP_PART_PLAIN(struct rp_focus_part, recorder),
                                               RP_PART_END};
const struct rp_type rp_focus_part_type = {"focus_part", sizeof(struct rp_focus_part), focus_fields,
                                           NULL};

struct focusing {
    const struct rp_trace *t;
    const struct rp_scope *scope;
    struct rp_arena *arena;
    struct rp_focus_part *out;
    struct rp_strtab names;
    struct rp_map sums;      /* from relation, kind and name to the sum */
    RP_VEC(uint8_t) matches; /* by string */
    RP_VEC(uint8_t) seen;    /* by event: whether it was counted as a call */
    struct rp_arg_key dims;
    RP_VEC(char) text;
};

static bool can_match(enum rp_span_kind kind)
{
    return kind == RP_SPAN_OP || kind == RP_SPAN_MODULE || kind == RP_SPAN_ANNOTATION ||
           kind == RP_SPAN_PYTHON;
}

/* Decides which names match: those that are equal, else those that contain the text. */
static enum rp_code match_names(struct focusing *f, const char *wanted, struct rp_err *err)
{
    const struct rp_events *ev = &f->t->ev;

    RP_TRY(rp_vec_reserve(&f->matches, f->t->str.n + 1, err));
    uint8_t *matches = f->matches.at;
    memset(matches, 0, f->t->str.n);
    for (rp_event e = 0; e < ev->n; e++) {
        const char *name = rp_trace_str(f->t, ev->name[e]);

        if (matches[ev->name[e]] ||
            (!rp_kind_is_device_work(ev->kind[e]) && !can_match(rp_span_kind_of(f->t, e))))
            continue;
        if (!strcmp(name, wanted) || !strcmp(rp_torch_module(name), wanted)) {
            matches[ev->name[e]] = 2;
            f->out->exact = true;
        } else {
            matches[ev->name[e]] = strcasestr(name, wanted) ? 1 : 3; /* 3: looked at */
        }
    }
    for (rp_str s = 0; s < f->t->str.n; s++)
        matches[s] = matches[s] == (f->out->exact ? 2 : 1);
    return RP_OK;
}

static enum rp_code add_sum(struct focusing *f, enum rp_focus_relation relation,
                            enum rp_span_kind kind, const char *name, int64_t dur, int64_t calls,
                            struct rp_err *err)
{
    struct rp_focus_sum fresh = {.relation = (uint8_t)relation, .kind = (uint8_t)kind};
    uint32_t id, at;

    RP_TRY(rp_strtab_intern(&f->names, name, strlen(name), &id, err));
    RP_TRY(rp_map_intern(&f->sums, (uint64_t)id << 16 | (uint64_t)relation << 8 | (uint64_t)kind,
                         (uint32_t)f->out->sums.n, &at, err));
    if (at == f->out->sums.n) {
        fresh.name = rp_arena_text(f->arena, name);
        RP_TRY(rp_vec_push(&f->out->sums, fresh, err));
    }
    rp_ns_add(&f->out->sums.at[at].total_ns, dur);
    f->out->sums.at[at].calls += calls;
    return RP_OK;
}

/* Counts a span as a call, unless it was counted before. */
static int64_t count_call(struct focusing *f, rp_event e)
{
    return e == RP_NONE || f->seen.at[e]++ ? 0 : 1;
}

/* Whether this is a frame of the user's own code. */
static bool is_own_frame(const struct rp_trace *t, rp_event e)
{
    const char *name = rp_trace_str(t, t->ev.name[e]);

    return rp_span_kind_of(t, e) == RP_SPAN_PYTHON && strchr(name, '(') &&
           !rp_torch_means(name, RP_TORCH_LIBRARY);
}

/* What surrounds an event, from the inside: the first operator, module, annotation, frame. */
struct surroundings {
    rp_event op, module, annotation, line;
};

static struct surroundings look_around(const struct rp_trace *t, rp_event e)
{
    struct surroundings s = {RP_NONE, RP_NONE, RP_NONE, RP_NONE};

    RP_FOR_ANCESTORS (t, e) {
        enum rp_span_kind kind = rp_span_kind_of(t, e);

        if (kind == RP_SPAN_OP && s.op == RP_NONE)
            s.op = e;
        if (kind == RP_SPAN_MODULE && s.module == RP_NONE)
            s.module = e;
        if (kind == RP_SPAN_ANNOTATION && s.annotation == RP_NONE)
            s.annotation = e;
        if (s.line == RP_NONE && is_own_frame(t, e))
            s.line = e;
    }
    return s;
}

static enum rp_code add_callers(struct focusing *f, rp_event around, rp_event forward, int64_t dur,
                                int64_t calls, struct rp_err *err)
{
    struct surroundings s = look_around(f->t, around);

    if (forward != RP_NONE && (s.module == RP_NONE || s.line == RP_NONE)) {
        struct surroundings fwd = look_around(f->t, forward);

        s.module = s.module == RP_NONE ? fwd.module : s.module;
        s.line = s.line == RP_NONE ? fwd.line : s.line;
    }
    if (s.op != RP_NONE)
        RP_TRY(add_sum(f, RP_FOCUS_CALLER, RP_SPAN_OP, rp_span_name(f->t, s.op), dur, calls, err));
    if (s.module != RP_NONE)
        RP_TRY(add_sum(f, RP_FOCUS_CALLER, RP_SPAN_MODULE, rp_span_name(f->t, s.module), dur, calls,
                       err));
    if (s.annotation != RP_NONE)
        RP_TRY(add_sum(f, RP_FOCUS_CALLER, RP_SPAN_ANNOTATION, rp_span_name(f->t, s.annotation),
                       dur, calls, err));
    return s.line == RP_NONE ? RP_OK
                             : add_sum(f, RP_FOCUS_LINE, RP_SPAN_PYTHON, rp_span_name(f->t, s.line),
                                       dur, calls, err);
}

/* The shapes of an operator, on one line; with its name, unless that is the focus. */
static enum rp_code add_shape(struct focusing *f, rp_event op, bool named, int64_t dur,
                              int64_t calls, struct rp_err *err)
{
    rp_str dims;

    if (op == RP_NONE || !rp_arg_key_text(&f->dims, op, &dims) || !dims)
        return RP_OK;
    f->text.n = 0;
    size_t n = named ? strlen(rp_span_name(f->t, op)) : 0;
    RP_TRY(rp_vec_reserve(&f->text, n + 2 * rp_trace_str_len(f->t, dims) + 2, err));
    if (named) {
        memcpy(f->text.at, rp_span_name(f->t, op), n);
        f->text.at[n++] = ' ';
    }
    for (const char *p = rp_trace_str(f->t, dims); *p; p++) {
        if (!isspace((unsigned char)*p))
            f->text.at[n++] = *p;
        if (*p == ',')
            f->text.at[n++] = ' ';
    }
    f->text.at[n] = 0;
    return add_sum(f, RP_FOCUS_SHAPE, RP_SPAN_OP, f->text.at, dur, calls, err);
}

/* ------------------------------------------------------------------ device work */

/* focus_path: where the focus of an item is, on the way outwards from its launch. */
struct focus_path {
    rp_event span;       /* the outermost span that matches, or RP_NONE */
    rp_event op, module; /* the outermost ones inside of it */
    rp_event innermost;  /* operator */
};

static struct focus_path find_path(const struct focusing *f, rp_event e)
{
    struct focus_path path = {RP_NONE, RP_NONE, RP_NONE, RP_NONE};
    rp_event op = RP_NONE, module = RP_NONE;

    RP_FOR_ANCESTORS (f->t, e) {
        enum rp_span_kind kind = rp_span_kind_of(f->t, e);

        if (!can_match(kind))
            continue;
        if (kind == RP_SPAN_OP && path.innermost == RP_NONE)
            path.innermost = e;
        if (f->matches.at[f->t->ev.name[e]]) {
            path.span = e;
            path.op = op;
            path.module = module;
        }
        if (kind == RP_SPAN_OP)
            op = e;
        if (kind == RP_SPAN_MODULE)
            module = e;
    }
    return path;
}

/* The path of an item. In the backward pass, if nothing around its launch matches, it is that of
   its forward operator, if that is in a module, an annotation or a frame that matches. */
static struct focus_path find_item_path(const struct focusing *f, rp_event from, rp_event forward)
{
    struct focus_path path = find_path(f, from), fwd;

    if (path.span != RP_NONE || forward == RP_NONE)
        return path;
    fwd = find_path(f, forward);
    return fwd.span != RP_NONE && rp_span_kind_of(f->t, fwd.span) != RP_SPAN_OP ? fwd : path;
}

static enum rp_code add_callees(struct focusing *f, const struct focus_path *path,
                                const char *kernel, int64_t dur, int64_t op_calls,
                                struct rp_err *err)
{
    if (path->op != RP_NONE)
        RP_TRY(add_sum(f, RP_FOCUS_CALLEE, RP_SPAN_OP, rp_span_name(f->t, path->op), dur, op_calls,
                       err));
    if (path->module != RP_NONE)
        RP_TRY(add_sum(f, RP_FOCUS_CALLEE, RP_SPAN_MODULE, rp_span_name(f->t, path->module), dur,
                       count_call(f, path->module), err));
    return add_sum(f, RP_FOCUS_CALLEE, RP_SPAN_KERNEL, kernel, dur, 1, err);
}

static enum rp_code focus_item(struct focusing *f, const struct rp_work *w, size_t i,
                               const struct rp_work_owner *owner, struct rp_err *err)
{
    const struct rp_work_item *x = &w->items.at[i];
    int64_t dur = rp_ns_between(x->begin_ns, x->end_ns), calls = 1, op_calls = 1;
    rp_event from = rp_work_described_by(w, x), around = from;
    struct focus_path path = find_item_path(f, from, owner->forward);
    rp_str kernel = f->t->ev.name[x->event];

    rp_ns_add(&f->out->whole_ns, dur);
    if (path.span == RP_NONE && !f->matches.at[kernel])
        return RP_OK;
    if (path.span != RP_NONE) {
        calls = count_call(f, path.span);
        around = f->t->ev.parent[path.span];
        RP_TRY(add_sum(f, RP_FOCUS_MATCH, rp_span_kind_of(f->t, path.span),
                       rp_span_name(f->t, path.span), dur, calls, err));
        op_calls = count_call(f, path.op);
        RP_TRY(add_callees(f, &path, rp_trace_str(f->t, kernel), dur, op_calls, err));
    } else {
        RP_TRY(add_sum(f, RP_FOCUS_MATCH, RP_SPAN_KERNEL, rp_trace_str(f->t, kernel), dur, 1, err));
    }
    f->out->calls += calls;
    rp_ns_add(&f->out->total_ns, dur);
    rp_ns_add(&f->out->backward_ns, owner->phase == RP_PHASE_BACKWARD ? dur : 0);
    bool own = path.span != RP_NONE && rp_span_kind_of(f->t, path.span) == RP_SPAN_OP;
    RP_TRY(add_shape(f,
                     own                    ? path.span
                     : path.span == RP_NONE ? path.innermost
                                            : path.op,
                     !own, dur, own ? calls : op_calls, err));
    return add_callers(f, around, owner->forward, dur, calls, err);
}

static enum rp_code focus_items(struct focusing *f, const struct rp_work *w, struct rp_err *err)
{
    RP_SCOPED(rp_attribution_release) struct rp_attribution a = {0};

    RP_TRY(rp_attribution_init(&a, w, err));
    for (size_t i = 0; i < w->items.n; i++)
        RP_TRY(focus_item(f, w, i, &a.owners.at[i], err));
    return RP_OK;
}

/* ------------------------------------------------------------------ host time */

/* The next span around an event that can match. */
static rp_event next_around(const struct rp_trace *t, rp_event e)
{

    e = t->ev.parent[e];
    RP_FOR_ANCESTORS (t, e)
        if (can_match(rp_span_kind_of(t, e)))
            return e;
    return RP_NONE;
}

static enum rp_code focus_span(struct focusing *f, rp_event e, struct rp_err *err)
{
    int64_t dur = f->t->ev.dur_ns[e];
    enum rp_span_kind kind = rp_span_kind_of(f->t, e);
    rp_event around = next_around(f->t, e);
    struct focus_path path = find_path(f, e);

    if (around == RP_NONE)
        rp_ns_add(&f->out->whole_ns, dur);
    if (path.span != RP_NONE && path.span == around)
        return add_sum(f, RP_FOCUS_CALLEE, kind, rp_span_name(f->t, e), dur, 1, err);
    if (path.span != e)
        return RP_OK;
    rp_ns_add(&f->out->total_ns, dur);
    f->out->calls++;
    RP_TRY(add_sum(f, RP_FOCUS_MATCH, kind, rp_span_name(f->t, e), dur, 1, err));
    RP_TRY(add_shape(f, kind == RP_SPAN_OP ? e : RP_NONE, false, dur, 1, err));
    return add_callers(f, f->t->ev.parent[e], RP_NONE, dur, 1, err);
}

static enum rp_code focus_spans(struct focusing *f, struct rp_err *err)
{
    const struct rp_events *ev = &f->t->ev;

    f->out->on_host = true;
    for (rp_event e = 0; e < ev->n; e++)
        if (ev->dur_ns[e] > 0 && ev->ts_ns[e] != RP_NO_TS && rp_scope_has(f->scope, ev->ts_ns[e]) &&
            can_match(rp_span_kind_of(f->t, e)))
            RP_TRY(focus_span(f, e, err));
    return RP_OK;
}

static enum rp_code focus_fill(struct focusing *f, const char *name, struct rp_err *err)
{
    RP_SCOPED(rp_work_release) struct rp_work w = {0};

    RP_TRY(rp_strtab_init(&f->names, err));
    RP_TRY(rp_arg_key_init_dims(&f->dims, f->t, err));
    RP_TRY(rp_vec_zeros(&f->seen, f->t->ev.n, err));
    RP_TRY(match_names(f, name, err));
    RP_TRY(rp_work_init(&w, f->t, f->scope, err));
    RP_TRY(w.items.n ? focus_items(f, &w, err) : focus_spans(f, err));
    return rp_arena_check(f->arena, "focusing", err);
}

enum rp_code rp_focus_make(const struct rp_trace *trace, const struct rp_scope *scope,
                           const char *name, struct rp_arena *arena, struct rp_focus_part *out,
                           struct rp_err *err)
{
    struct focusing f = {.t = trace, .scope = scope, .arena = arena, .out = out};
    enum rp_code code = rp_recorder_find(trace, &out->recorder, err);

    if (code == RP_OK)
        code = focus_fill(&f, name, err);
    rp_strtab_release(&f.names);
    rp_map_release(&f.sums);
    rp_vec_release(&f.matches);
    rp_vec_release(&f.seen);
    rp_vec_release(&f.text);
    rp_arg_key_release(&f.dims);
    return code;
}

/* ------------------------------------------------------------------ the answer */

#define ROW(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_focus_row, member, type, unit, title, doc, flags)

static const struct rp_field row_fields[] = {
    ROW(relation, STR, NONE, NULL, "match, caller, callee, shape or line", 0),
    ROW(kind, STR, NONE, "kind", "op, module, annotation, python or kernel", 0),
    ROW(name, STR, NONE, "name", "the name as recorded", RP_SHORTEN),
    ROW(label, STR, NONE, "name", "the name, shortened", RP_SCREEN | RP_SHORTEN | RP_LABEL),
    ROW(calls, I64, COUNT, "calls", "calls of the focus; for callees, their own calls", 0),
    ROW(total_ns, I64, NS, "time", "time of the focus that is theirs", 0),
    ROW(share, F64, RATIO, "share", "share of the time of the focus", 0),
    RP_FIELD_END};
static const struct rp_type row_type = {"row", sizeof(struct rp_focus_row), row_fields, NULL};

#define WITH_KIND "label, kind, calls, total_ns, share"
#define WHOLE     "name*, calls, total_ns, share"

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_focus_root, member, type, unit, title, doc, flags)
#define SHOWN(member, columns, title) \
    RP_FIELD_SHOWN(struct rp_focus_root, member, &row_type, title, columns, 0)

static const struct rp_field root_fields[] = {
    ROOT(summary, STR, NONE, "top", "text output only", RP_SCREEN),
    ROOT(focus, STR, NONE, NULL, "the name that was asked about", 0),
    ROOT(exact, BOOL, NONE, NULL, "whether something has this very name; else it is a part", 0),
    ROOT(measure, STR, NONE, NULL, "device time, or host time where no device work was recorded",
         0),
    ROOT(ranks, I64, COUNT, NULL, "number of ranks", 0),
    ROOT(whole_ns, I64, NS, NULL, "sum of the durations of all selected work", 0),
    ROOT(total_ns, I64, NS, NULL, "its time inside of the focus", 0),
    ROOT(share, F64, RATIO, NULL, "total_ns / whole_ns", 0),
    ROOT(backward_ns, I64, NS, NULL, "the part of total_ns in the backward pass", 0),
    ROOT(calls, I64, COUNT, NULL, "calls of the focus", 0),
    RP_FIELD_LIST(struct rp_focus_root, rows, &row_type, NULL, "by relation, the largest first", 0),
    SHOWN(matches, WITH_KIND, "matches"),
    SHOWN(callers, WITH_KIND, "called by"),
    SHOWN(callees, WITH_KIND, "calls"),
    SHOWN(shapes, WHOLE, "shapes"),
    SHOWN(lines, WHOLE, "Python lines"),
    RP_FIELD_LIST(struct rp_focus_root, notes, &rp_type_string, "notes", "about the rows",
                  RP_SCREEN),
    RP_FIELD_END};
const struct rp_type rp_focus_type = {"top", sizeof(struct rp_focus_root), root_fields, "rows"};

static const char *const relations[RP_FOCUS_RELATIONS] = {
#define RP_FOCUS_WORD(name, word, heading) [RP_FOCUS_##name] = word,
    RP_FOCUS_MAP(RP_FOCUS_WORD)
#undef RP_FOCUS_WORD
};

struct focus_join {
    struct rp_arena *arena;
    bool flat;
    RP_VEC(char) text;
    struct rp_strtab names;
    struct rp_map sums;
    RP_VEC(struct rp_focus_sum) all;
};

RP_ORDER(by_relation_and_time, struct rp_focus_sum, RP_UP(relation), RP_DOWN(total_ns), RP_UP(kind),
         strcmp(a->name, b->name))

/* The name of the row that a sum belongs to: modules that differ only in a number are one row. */
static enum rp_code row_name(struct focus_join *j, const struct rp_focus_sum *s, uint32_t *id,
                             struct rp_err *err)
{
    size_t len = strlen(s->name), numbers;
    int64_t number;

    if (j->flat || s->kind != RP_SPAN_MODULE || s->relation == RP_FOCUS_MATCH)
        return rp_strtab_intern(&j->names, s->name, len, id, err);
    j->text.n = 0;
    RP_TRY(rp_vec_reserve(&j->text, len + 1, err));
    len = rp_name_without_numbers(s->name, len, j->text.at, &number, &numbers);
    return rp_strtab_intern(&j->names, j->text.at, len, id, err);
}

static enum rp_code add_sums(struct focus_join *j, const struct rp_focus_part *part,
                             struct rp_err *err)
{
    uint32_t id, at;

    for (size_t i = 0; i < part->sums.n; i++) {
        const struct rp_focus_sum *s = &part->sums.at[i];

        RP_TRY(row_name(j, s, &id, err));
        RP_TRY(rp_map_intern(&j->sums, (uint64_t)id << 16 | (uint64_t)s->relation << 8 | s->kind,
                             (uint32_t)j->all.n, &at, err));
        if (at == j->all.n) {
            RP_TRY(rp_vec_push(&j->all, *s, err));
            continue;
        }
        rp_ns_add(&j->all.at[at].total_ns, s->total_ns);
        j->all.at[at].calls += s->calls;
        if (strcmp(j->all.at[at].name, s->name) != 0)
            j->all.at[at].name = rp_arena_copy(j->arena, rp_strtab_borrow(&j->names, id),
                                               rp_strtab_len(&j->names, id));
        RP_TRY(rp_err_need(j->all.at[at].name, err, "focusing"));
    }
    return RP_OK;
}

/* Shortens the long names of kernels. */
static void label_rows(struct rp_focus_root *out, struct rp_arena *arena)
{
    const char **names = RP_ARENA_NEW(arena, const char *, out->nrows + 1);
    const char **labels = RP_ARENA_NEW(arena, const char *, out->nrows + 1);
    size_t i, n = 0;

    if (!names || !labels)
        return;
    for (i = 0; i < out->nrows; i++) {
        out->rows[i].label = out->rows[i].name;
        if (!strcmp(out->rows[i].kind, "kernel"))
            names[n++] = out->rows[i].name;
    }
    if (n)
        rp_short_names(names, labels, n, arena);
    for (i = 0, n = 0; i < out->nrows; i++)
        if (!strcmp(out->rows[i].kind, "kernel"))
            out->rows[i].label = labels[n++];
}

/* Fills the rows of each relation, and where they are shown. */
static enum rp_code fill_rows(struct focus_join *j, int64_t limit, struct rp_arena *arena,
                              struct rp_focus_root *out, struct rp_err *err)
{
    struct rp_focus_row **shown[] = {&out->matches, &out->callers, &out->callees, &out->shapes,
                                     &out->lines};
    size_t *nshown[] = {&out->nmatches, &out->ncallers, &out->ncallees, &out->nshapes,
                        &out->nlines};
    size_t i, n[RP_FOCUS_RELATIONS] = {0};

    rp_sort(j->all.at, j->all.n, sizeof *j->all.at, by_relation_and_time);
    out->rows = RP_ARENA_NEW(arena, struct rp_focus_row, j->all.n + 1);
    RP_TRY(rp_err_need(out->rows, err, "focusing"));
    for (i = 0; i < j->all.n; i++) {
        const struct rp_focus_sum *s = &j->all.at[i];

        if (limit > 0 && n[s->relation] >= (size_t)limit)
            continue;
        if (!n[s->relation]++)
            *shown[s->relation] = &out->rows[out->nrows];
        ++*nshown[s->relation];
        out->rows[out->nrows++] = (struct rp_focus_row){
            .relation = relations[s->relation],
            .kind = rp_span_kind_names[s->kind],
            .name = s->name,
            .calls = s->calls,
            .total_ns = s->total_ns,
            .share = out->total_ns > 0 ? (double)s->total_ns / (double)out->total_ns : 0};
    }
    label_rows(out, arena);
    return RP_OK;
}

static void write_summary(struct rp_focus_root *out, const struct rp_recorder *recorder,
                          struct rp_arena *arena)
{
    const char *frames = rp_recorder_option(recorder, RP_RECORDS_FRAMES);
    const char *shapes = rp_recorder_option(recorder, RP_RECORDS_SHAPES);
    const char *backward = out->backward_ns && out->backward_ns < out->total_ns
                               ? rp_arena_textf(arena, ", %s of it in the backward pass",
                                                rp_units_time(arena, out->backward_ns))
                               : "";

    if (!out->calls)
        out->summary = rp_arena_textf(
            arena, "no operator, module, annotation, Python frame or kernel is named '%s'",
            out->focus);
    else
        out->summary = rp_arena_textf(
            arena, "%s of '%s'%s: %s, %s of all, in %s%s", out->measure,
            out->nmatches == 1 ? out->matches[0].label : out->focus,
            out->nmatches == 1 ? "" : rp_arena_textf(arena, " (%zu names)", out->nmatches),
            rp_units_time(arena, out->total_ns), rp_units_text(arena, out->share, RP_UNIT_RATIO),
            rp_units_count(arena, out->calls, "call"), backward);
    if (out->nmatches == 1) /* it is in the summary */
        out->nmatches = 0;
    if (out->calls && !out->nlines && frames)
        RP_NOTE(out, arena,
                rp_arena_textf(arena, "no Python lines: record with %s to see where it is called",
                               frames));
    else if (out->calls && !out->nlines && recorder->ours)
        RP_NOTE(out, arena,
                "no Python lines: with 'reprise record --with +sample', 'reprise top --by line' "
                "shows the code that runs");
    if (out->calls && !out->nshapes && shapes)
        RP_NOTE(out, arena,
                rp_arena_textf(arena, "no shapes: %s records those of operators", shapes));
}

enum rp_code rp_focus_join(const struct rp_focus_part *const *parts, size_t n, const char *name,
                           const struct rp_focus_cut *cut, struct rp_arena *arena,
                           struct rp_focus_root *out, struct rp_err *err)
{
    static const struct rp_recorder unknown = {0};
    struct focus_join j = {.arena = arena, .flat = cut->flat};
    enum rp_code code = rp_strtab_init(&j.names, err);

    *out = (struct rp_focus_root){
        .focus = rp_arena_text(arena, name), .measure = "device time", .ranks = (int64_t)n};
    for (size_t i = 0; i < n && code == RP_OK; i++) {
        rp_ns_add(&out->whole_ns, parts[i]->whole_ns);
        rp_ns_add(&out->total_ns, parts[i]->total_ns);
        rp_ns_add(&out->backward_ns, parts[i]->backward_ns);
        out->calls += parts[i]->calls;
        out->exact |= parts[i]->exact;
        if (parts[i]->on_host)
            out->measure = "host time";
        code = add_sums(&j, parts[i], err);
    }
    out->share = out->whole_ns > 0 ? (double)out->total_ns / (double)out->whole_ns : 0;
    if (code == RP_OK)
        code = fill_rows(&j, cut->rows, arena, out, err);
    if (code == RP_OK)
        write_summary(out, n ? &parts[0]->recorder : &unknown, arena);
    rp_strtab_release(&j.names);
    rp_map_release(&j.sums);
    rp_vec_release(&j.all);
    rp_vec_release(&j.text);
    return code == RP_OK ? rp_arena_check(arena, "focusing", err) : code;
}
