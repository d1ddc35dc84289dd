/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups the work of one rank. Kernels, streams and phases are groups of device work. Operators,
 * shapes, modules, annotations and Python frames are groups of host spans: from each launch
 * outwards, every span of the kind gets the time of what was launched inside it (its total), the
 * innermost also as its own (self). A span inside another of the same row adds to that one's total
 * only. Without device work the times of host spans themselves are counted.
 *
 * Waits are host spans whose own times are counted in any case.
 *
 * Unless the question is asked with --flat, modules whose names differ only in a number are one row
 * ("nn.Module: Layer_*"), and so are annotations that count ("step *", facts/times/name_series.h).
 * Python frames around everything that a thread launched (launchers, the bootstrap of threads) have
 * no row.
 */
#include "explain/top/top.h"

#include "base/decides.h"
#include "base/filled.h"
#include "base/hash.h"
#include "base/order.h"
#include "base/strtab.h"
#include "explain/top/categories.h"
#include "explain/top/spans.h"
#include "facts/arg_keys.h"
#include "facts/host/waits.h"
#include "facts/torch_names.h"
#include "facts/work/ancestors.h"

#include <ctype.h>
#include <stdio.h>

struct sample {
    uint32_t group;
    int64_t total_ns, self_ns;
};

struct grouping {
    const struct rp_trace *t;
    const struct rp_scope *scope;
    enum rp_top_by by;
    bool flat, kernels, calls;
    const struct rp_category_table *categories;
    struct rp_arena *arena;
    struct rp_top_part *out;
    struct rp_strtab names;       /* a group is the id of its name */
    struct rp_map groups;         /* key -> group */
    struct rp_strtab rolls;       /* names of modules without their numbers */
    struct rp_map roll_of;        /* name -> its id there */
    struct rp_name_series series; /* of annotations */
    struct rp_arg_key dims;       /* of --by shape */
    struct rp_arg_key own; /* arguments of the work itself, if no span surrounds its launch */
    RP_VEC(int64_t) total; /* by event, of spans */
    RP_VEC(int64_t) self;
    RP_VEC(int64_t) thread; /* by track: time of work launched inside its spans */
    RP_VEC(uint8_t) worker; /* by track: 0: not examined; 1: no; 2: yes */
    RP_VEC(char) text;
    RP_VEC(struct sample) samples;
};

static const char *const by_words[RP_TOP_BYS] = {
    "kernel", "op",       "shape", "module", "annotation", "phase", "stream",
    "python", "category", "wait",  "stack",  "function",   "line"};
static const char *const span_kinds[RP_TOP_BYS] = {NULL, "op", "op",     "module", "annotation",
                                                   NULL, NULL, "python", NULL,     "wait"};

/* Arguments of XLA's work that replace spans. */
static const char *const own_keys[RP_TOP_BYS] = {[RP_TOP_OP] = "hlo_op",
                                                 [RP_TOP_SHAPE] = "hlo_op",
                                                 [RP_TOP_MODULE] = "hlo_module",
                                                 [RP_TOP_ANNOTATION] = "tf_op"};

enum rp_top_by rp_top_by_of(const char *word)
{
    int by;

    for (by = 0; by < RP_TOP_BYS - 1 && strcmp(word, by_words[by]) != 0; by++)
        ;
    return (enum rp_top_by)by;
}

/* ------------------------------------------------------------------ numbered modules */

static bool rolls_up(const struct grouping *g, rp_event e)
{
    return !g->flat && (g->by == RP_TOP_MODULE || g->by == RP_TOP_PYTHON) &&
           rp_event_is_module(g->t, e);
}

/* The id of the row of a module's name. */
static enum rp_code roll_up(struct grouping *g, rp_str name, uint32_t *roll, struct rp_err *err)
{
    size_t len = rp_trace_str_len(g->t, name), numbers;
    int64_t number;

    *roll = rp_map_get(&g->roll_of, name);
    if (*roll != RP_MAP_NONE)
        return RP_OK;
    g->text.n = 0;
    RP_TRY(rp_vec_reserve(&g->text, len + 1, err));
    len = rp_name_without_numbers(rp_trace_str(g->t, name), len, g->text.at, &number, &numbers);
    RP_TRY(rp_strtab_intern(&g->rolls, g->text.at, len, roll, err));
    return rp_map_put(&g->roll_of, name, *roll, err);
}

/* ------------------------------------------------------------------ groups */

/* The category of a kernel or an operator, to which a shape may be appended. */
static const char *category_of_group(const struct grouping *g, const char *name)
{
    const char *shape = g->by == RP_TOP_SHAPE ? strstr(name, " [") : NULL;
    char op[256];

    if (g->by == RP_TOP_KERNEL)
        return rp_category_names[rp_category_of(g->categories, NULL, name)];
    if (g->by != RP_TOP_OP && g->by != RP_TOP_SHAPE)
        return NULL;
    snprintf(op, sizeof op, "%.*s", shape ? (int)(shape - name) : (int)sizeof op - 1, name);
    return rp_category_names[rp_category_of(g->categories, op, NULL)];
}

/* The group of a key, found by the id of its name, so that two keys with the same text are one
   group. */
static enum rp_code group_of(struct grouping *g, uint64_t key, const char *name, size_t len,
                             const char *kind, uint32_t *group, struct rp_err *err)
{
    *group = rp_map_get(&g->groups, key);
    if (*group != RP_MAP_NONE)
        return RP_OK;
    RP_TRY(rp_strtab_intern(&g->names, name, len, group, err));
    RP_TRY(rp_map_put(&g->groups, key, *group, err));
    while (g->out->groups.n <= *group) { /* at most two: the empty name is first */
        uint32_t id = (uint32_t)g->out->groups.n;
        struct rp_top_group row = {
            rp_arena_copy(g->arena, rp_strtab_borrow(&g->names, id), rp_strtab_len(&g->names, id)),
            kind, NULL, NULL, 0};

        row.category = row.name ? category_of_group(g, row.name) : NULL;

        RP_TRY(rp_vec_push(&g->out->groups, row, err));
    }
    return rp_arena_check(g->arena, "grouping work", err);
}

static enum rp_code add_sample(struct grouping *g, uint32_t group, int64_t total_ns,
                               int64_t self_ns, struct rp_err *err)
{
    struct sample sample = {group, total_ns, self_ns};

    return rp_vec_push(&g->samples, sample, err);
}

/* item_place: what an item is, if the groups are phases or categories. */
struct item_place {
    uint8_t phase, category;
};

/* Adds an item, which is a sample of kernels, streams, phases and categories. */
static enum rp_code add_item(struct grouping *g, const struct rp_work *w, size_t i,
                             const struct item_place *place, struct rp_err *err)
{
    const struct rp_work_item *x = &w->items.at[i];
    int64_t dur = rp_ns_between(x->begin_ns, x->end_ns);
    const char *name, *kind = rp_work_class_names[x->cls];
    rp_str s = g->t->ev.name[x->event];
    char label[128];
    uint64_t key = s;
    uint32_t group;
    size_t len;

    if (g->by == RP_TOP_KERNEL) {
        name = rp_trace_str(g->t, s);
        len = rp_trace_str_len(g->t, s);
    } else if (g->by == RP_TOP_PHASE) {
        key = place->phase;
        name = rp_phase_names[place->phase];
        kind = "phase";
        len = strlen(name);
    } else if (g->by == RP_TOP_CATEGORY) {
        key = place->category;
        name = rp_category_names[place->category];
        kind = "category";
        len = strlen(name);
    } else {
        key = x->stream;
        rp_work_stream_label(w, x->stream, label, sizeof label);
        name = label;
        kind = "stream";
        len = strlen(label);
    }
    RP_TRY(group_of(g, key, name, len, kind, &group, err));
    if (g->by == RP_TOP_PHASE ? place->phase != RP_PHASE_OTHER
                              : g->by != RP_TOP_CATEGORY || place->category != RP_CATEGORY_OTHER)
        g->out->covered_ns = rp_ns_sum(g->out->covered_ns, dur);
    return add_sample(g, group, dur, dur, err);
}

static enum rp_code group_items(struct grouping *g, const struct rp_work *w, struct rp_err *err)
{
    RP_SCOPED(rp_work_categories_release) struct rp_work_categories c = {0};
    RP_SCOPED(rp_trace_categories_release) struct rp_trace_categories known = {0};
    RP_SCOPED(rp_attribution_release) struct rp_attribution a = {0};

    rp_trace_categories_init(&known, w->trace, g->categories);
    if (g->by == RP_TOP_PHASE || g->by == RP_TOP_CATEGORY)
        RP_TRY(rp_attribution_init(&a, w, err));
    if (g->by == RP_TOP_CATEGORY)
        RP_TRY(rp_work_categories_init(&c, w, &a, &known, err));
    for (size_t i = 0; i < w->items.n; i++) {
        struct item_place place = {.phase = a.owners.n ? a.owners.at[i].phase : RP_PHASE_OTHER,
                                   .category = c.of_item.n ? c.of_item.at[i] : RP_CATEGORY_OTHER};

        RP_TRY(add_item(g, w, i, &place, err));
    }
    return RP_OK;
}

/* Whether a span is of the kind that is grouped. */
static bool is_wanted(const struct grouping *g, rp_event e)
{
    uint8_t kind = g->t->ev.kind[e];

    if (g->calls)
        return g->t->tracks[g->t->ev.track[e]].kind != RP_TRACK_STREAM;
    switch (g->by) {
    case RP_TOP_OP:
    case RP_TOP_SHAPE:
        return kind == RP_KIND_CPU_OP;
    case RP_TOP_MODULE:
        return rp_event_is_module(g->t, e);
    case RP_TOP_ANNOTATION:
        return kind == RP_KIND_ANNOTATION;
    case RP_TOP_WAIT:
        return kind == RP_KIND_WAIT && rp_event_is_host_wait(g->t, e);
    default:
        return kind == RP_KIND_PYTHON;
    }
}

/* XLA's work names its instruction, its module and the place in the program. */
static enum rp_code add_own(struct grouping *g, rp_event e, int64_t dur, bool *none,
                            struct rp_err *err)
{
    uint32_t group;
    rp_str name;

    if (!own_keys[g->by] || !rp_arg_key_text(&g->own, e, &name) || !name ||
        !strcmp(rp_trace_str(g->t, name), "XlaModule:")) /* this is not a place in the program */
        return RP_OK;
    *none = false;
    RP_TRY(group_of(g, (uint64_t)name << 32, rp_trace_str(g->t, name), rp_trace_str_len(g->t, name),
                    span_kinds[g->by], &group, err));
    return add_sample(g, group, dur, dur, err);
}

/* Kernels of a graph without an operator (module) are shown by the place where the graph was
   launched, which is not an attribution. */
static bool names_graphs(const struct grouping *g)
{
    return g->by == RP_TOP_OP || g->by == RP_TOP_SHAPE || g->by == RP_TOP_MODULE;
}

/* Gives the time of device work to the spans around its launch. */
static enum rp_code spread(struct grouping *g, const struct rp_work *w, struct rp_err *err)
{
    for (size_t i = 0; i < w->items.n; i++) {
        const struct rp_work_item *x = &w->items.at[i];
        int64_t dur = rp_ns_between(x->begin_ns, x->end_ns);
        rp_event e = rp_work_described_by(w, x), outer = RP_NONE;
        bool inner = true;

        RP_FOR_ANCESTORS (g->t, e) {
            if (!is_wanted(g, e))
                continue;
            g->total.at[e] = rp_ns_sum(g->total.at[e], dur);
            if (inner)
                g->self.at[e] = rp_ns_sum(g->self.at[e], dur);
            inner = false;
            outer = e;
        }
        if (outer != RP_NONE)
            rp_ns_add(&g->thread.at[g->t->ev.track[outer]], dur);
        if (inner)
            RP_TRY(add_own(g, x->event, dur, &inner, err));
        if (inner && g->kernels) {
            /* Add work of which only the name is known. */
            rp_str name = g->t->ev.name[x->event];
            uint32_t group;

            RP_TRY(group_of(g, (uint64_t)1 << 62 | name, rp_trace_str(g->t, name),
                            rp_trace_str_len(g->t, name), rp_work_class_names[x->cls], &group,
                            err));
            RP_TRY(add_sample(g, group, dur, dur, err));
        } else if (inner && names_graphs(g) && rp_work_is_of_graph(w, x)) {
            g->total.at[x->launch] = rp_ns_sum(g->total.at[x->launch], dur);
            g->self.at[x->launch] = rp_ns_sum(g->self.at[x->launch], dur);
        }
        if (!inner)
            g->out->covered_ns = rp_ns_sum(g->out->covered_ns, dur);
    }
    return RP_OK;
}

static bool in_scope(const struct grouping *g, rp_event e)
{
    int64_t ts = g->t->ev.ts_ns[e];

    return ts != RP_NO_TS && rp_scope_has(g->scope, ts);
}

/* Without device work: takes the spans' own times. */
static void take_host_times(struct grouping *g)
{
    const struct rp_events *ev = &g->t->ev;
    rp_event e, p;

    g->out->on_host = true;
    for (e = 0; e < ev->n; e++) {
        if (ev->dur_ns[e] <= 0 || !in_scope(g, e) || !is_wanted(g, e))
            continue;
        g->total.at[e] = ev->dur_ns[e];
        g->self.at[e] = rp_ns_sum(g->self.at[e], ev->dur_ns[e]);
        for (p = ev->parent[e]; p != RP_NONE && !is_wanted(g, p); p = ev->parent[p])
            ;
        if (p != RP_NONE)
            g->self.at[p] = rp_ns_between(ev->dur_ns[e], g->self.at[p]);
        else
            g->out->whole_ns = rp_ns_sum(g->out->whole_ns, ev->dur_ns[e]);
        if (p == RP_NONE)
            rp_ns_add(&g->thread.at[ev->track[e]], ev->dur_ns[e]);
    }
    g->out->covered_ns = g->out->whole_ns;
}

/* The place of a graph's launch: the module around it, else the user's own frame, else the
   launch. */
static rp_event graph_place(const struct grouping *g, rp_event launch)
{
    rp_event e = launch, frame = RP_NONE;

    RP_FOR_ANCESTORS (g->t, e) {
        const char *name = rp_trace_str(g->t, g->t->ev.name[e]);

        if (rp_event_is_module(g->t, e))
            return e;
        if (frame == RP_NONE && g->t->ev.kind[e] == RP_KIND_PYTHON &&
            !rp_torch_means(name, RP_TORCH_LIBRARY))
            frame = e;
    }
    return frame == RP_NONE ? launch : frame;
}

static enum rp_code name_graph(struct grouping *g, rp_event launch, uint32_t *group,
                               struct rp_err *err)
{
    static const char before[] = "graph launched in ";
    rp_str name = g->t->ev.name[graph_place(g, launch)];
    size_t len = rp_trace_str_len(g->t, name);

    g->text.n = 0;
    RP_TRY(rp_vec_reserve(&g->text, len + sizeof before, err));
    memcpy(g->text.at, before, sizeof before - 1);
    memcpy(g->text.at + sizeof before - 1, rp_trace_str(g->t, name), len);
    return group_of(g, (uint64_t)1 << 63 | name, g->text.at, len + sizeof before - 1, "graph",
                    group, err);
}

/* "poll in 'step *'"; "poll, worker thread" of a thread that runs nothing else. */
static enum rp_code name_wait(struct grouping *g, rp_event e, uint32_t *group, struct rp_err *err)
{
    rp_event range = rp_event_around(g->t, g->t->ev.parent[e], RP_KIND_ANNOTATION);
    const char *call = rp_trace_str(g->t, g->t->ev.name[e]), *in = NULL, *text;

    rp_track track = g->t->ev.track[e];
    if (!g->worker.at[track])
        g->worker.at[track] = rp_track_is_worker(g->t, track) ? 2 : 1;
    bool worker = g->worker.at[track] == 2;
    uint64_t words[3] = {g->t->ev.name[e], worker, 0};

    if (range != RP_NONE) {
        in = rp_name_series_of(&g->series, g->t->ev.name[range]);
        in = in ? in : rp_trace_str(g->t, g->t->ev.name[range]);
        words[2] = rp_hash_bytes(in, strlen(in)) | 1;
    }
    words[0] = rp_hash_bytes(words, sizeof words);
    *group = rp_map_get(&g->groups, words[0]);
    if (*group != RP_MAP_NONE)
        return RP_OK;
    text = rp_arena_textf(g->arena, "%s%s%s%s", call,
                          in       ? " in '"
                          : worker ? ", worker thread"
                                   : "",
                          in ? in : "", in ? "'" : "");
    return group_of(g, words[0], text, strlen(text), "wait", group, err);
}

static enum rp_code name_span(struct grouping *g, rp_event e, uint32_t *group, struct rp_err *err)
{
    rp_str name = g->t->ev.name[e], dims = 0;
    const char *kind = span_kinds[g->by], *text = rp_trace_str(g->t, name);
    size_t len = rp_trace_str_len(g->t, name);

    if (rolls_up(g, e)) {
        uint32_t roll;

        RP_TRY(group_of(g, name, text, len, kind, group, err));
        RP_TRY(roll_up(g, name, &roll, err));
        if (!g->out->groups.at[*group].row)
            g->out->groups.at[*group].row = rp_arena_copy(
                g->arena, rp_strtab_borrow(&g->rolls, roll), rp_strtab_len(&g->rolls, roll));
        return RP_OK;
    }
    if (g->by == RP_TOP_WAIT)
        return name_wait(g, e, group, err);
    if (g->by == RP_TOP_ANNOTATION && rp_name_series_of(&g->series, name)) {
        RP_TRY(group_of(g, name, text, len, kind, group, err));
        if (!g->out->groups.at[*group].row)
            g->out->groups.at[*group].row =
                rp_arena_text(g->arena, rp_name_series_of(&g->series, name));
        return RP_OK;
    }
    if (g->by != RP_TOP_SHAPE)
        return group_of(g, name, text, len, kind, group, err);
    if (!rp_arg_key_text(&g->dims, e, &dims))
        dims = 0;
    g->text.n = 0;
    RP_TRY(rp_vec_reserve(&g->text, len + 2 * rp_trace_str_len(g->t, dims) + 2, err));
    memcpy(g->text.at, text, len);
    if (dims) {
        g->text.at[len++] = ' ';

        /* Write a list on one line, as "[[4, 2048], []]", however it was written; at most twice as
           long. */
        const char *list = rp_trace_str(g->t, dims);
        char *out = g->text.at + len;
        size_t n = 0;
        for (; *list; list++) {
            if (!isspace((unsigned char)*list))
                out[n++] = *list;
            if (*list == ',')
                out[n++] = ' ';
        }
        len += n;
    }
    return group_of(g, (uint64_t)name << 32 | dims, g->text.at, len, kind, group, err);
}

/* Whether a span is inside another one of the same row. */
static enum rp_code inside_same_row(struct grouping *g, rp_event e, bool *inside,
                                    struct rp_err *err)
{
    const rp_str *name = g->t->ev.name;
    bool rolled = rolls_up(g, e);
    int left = RP_ANCESTORS_MAX;
    uint32_t own = 0, other;

    *inside = false;
    if (rolled)
        RP_TRY(roll_up(g, name[e], &own, err));
    for (rp_event p = g->t->ev.parent[e]; p != RP_NONE && left > 0 && !*inside;
         p = g->t->ev.parent[p], left--) {
        if (!is_wanted(g, p))
            continue;
        *inside = name[p] == name[e];
        if (!*inside && rolled && rolls_up(g, p)) {
            RP_TRY(roll_up(g, name[p], &other, err));
            *inside = own == other;
        }
    }
    return RP_OK;
}

#define MOST_OF_IT 0.99
RP_DECISION(MOST_OF_IT, "of the time of its thread",
            "a frame with so much inside, and no more itself, says nothing: main, a training loop",
            "explain/frames_around_everything_are_skipped");
#define MAIN_THREAD 0.1
RP_DECISION(MAIN_THREAD, "of all time",
            "of a thread that does less, the outermost frame says which it is",
            "explain/frames_around_everything_are_skipped");

/* Whether a Python frame surrounds all work of its thread, and so says nothing. */
static bool is_around_all(const struct grouping *g, rp_event e)
{
    double thread = (double)g->thread.at[g->t->ev.track[e]];

    return g->by == RP_TOP_PYTHON && !g->flat &&
           thread >= MAIN_THREAD * (double)g->out->covered_ns &&
           (double)g->total.at[e] >= MOST_OF_IT * thread &&
           (double)g->self.at[e] <= (1 - MOST_OF_IT) * thread;
}

#define SAME_CALL 0.9
RP_DECISION(
    SAME_CALL, "of the span around it",
    "the two spans of a call of JAX differ by microseconds; a call inside of a call by more",
    "explain/the_two_spans_of_a_call_are_one");

/* A recursive span has its own time, but its total is already included in the outer one. */
static enum rp_code collect_spans(struct grouping *g, struct rp_err *err)
{
    uint32_t group;

    /* JAX records a call of a compiled function as two spans, one directly inside the other and
       almost as long: the outer one is counted. Operators of other frameworks that call themselves
       are separate calls. */
    const int64_t *dur = g->t->ev.dur_ns;
    for (rp_event e = (rp_event)g->t->ev.n; g->by == RP_TOP_OP && e-- > 0;) {
        rp_event p = g->t->ev.parent[e];

        if (p == RP_NONE || p >= e || g->t->ev.name[p] != g->t->ev.name[e] || !is_wanted(g, p) ||
            (double)dur[e] < SAME_CALL * (double)dur[p] ||
            !rp_torch_is(rp_trace_str(g->t, g->t->ev.name[e]),
                         rp_trace_str_len(g->t, g->t->ev.name[e]), RP_TORCH_SAME_CALL))
            continue;
        g->self.at[p] = rp_ns_sum(g->self.at[p], g->self.at[e]);
        g->self.at[e] = 0;
    }

    for (rp_event e = 0; e < g->t->ev.n; e++) {
        bool inner;

        if (g->total.at[e] == 0)
            continue;
        if (is_around_all(g, e)) {
            struct rp_top_group frame = {
                rp_arena_text(g->arena, rp_trace_str(g->t, g->t->ev.name[e])), "python", NULL, NULL,
                0};

            RP_TRY(rp_vec_push(&g->out->skipped, frame, err));
            continue;
        }
        RP_TRY(inside_same_row(g, e, &inner, err));
        if (inner && g->self.at[e] == 0)
            continue;
        RP_TRY(is_wanted(g, e) ? name_span(g, e, &group, err) : name_graph(g, e, &group, err));
        RP_TRY(add_sample(g, group, inner ? 0 : g->total.at[e], g->self.at[e], err));
    }
    return RP_OK;
}

static enum rp_code group_spans(struct grouping *g, const struct rp_work *w, struct rp_err *err)
{
    size_t n = g->t->ev.n;

    RP_TRY(rp_arg_key_init_dims(&g->dims, g->t, err));
    RP_TRY(rp_vec_zeros(&g->total, n, err));
    RP_TRY(rp_vec_zeros(&g->self, n, err));
    RP_TRY(rp_vec_zeros(&g->thread, g->t->ntracks, err));
    if (own_keys[g->by])
        RP_TRY(rp_arg_key_init(&g->own, g->t, own_keys[g->by], err));
    if (g->by == RP_TOP_WAIT || (g->by == RP_TOP_ANNOTATION && !g->flat))
        RP_TRY(rp_name_series_init(&g->series, g->t, err));
    RP_TRY(rp_vec_zeros(&g->worker, g->t->ntracks, err));
    if (w->items.n && g->by != RP_TOP_WAIT)
        RP_TRY(spread(g, w, err));
    else
        take_host_times(g);
    return collect_spans(g, err);
}

static enum rp_code group_all(struct grouping *g, struct rp_err *err)
{
    RP_SCOPED(rp_work_release) struct rp_work w = {0};

    RP_TRY(rp_work_init(&w, g->t, g->scope, err));
    for (size_t i = 0; i < w.items.n && g->by != RP_TOP_WAIT; i++)
        g->out->whole_ns = rp_ns_sum(g->out->whole_ns,
                                     rp_ns_between(w.items.at[i].begin_ns, w.items.at[i].end_ns));
    RP_TRY(rp_strtab_init(&g->names, err));
    RP_TRY(rp_strtab_init(&g->rolls, err));
    return span_kinds[g->by] ? group_spans(g, &w, err) : group_items(g, &w, err);
}

RP_ORDER(by_group, struct sample, RP_UP(group), RP_UP(total_ns))

static enum rp_code pack_samples(struct grouping *g, struct rp_err *err)
{
    struct rp_top_part *out = g->out;
    size_t i, group, begin = 0;

    rp_sort(g->samples.at, g->samples.n, sizeof *g->samples.at, by_group);
    RP_TRY(rp_vec_reserve(&g->total, g->samples.n + 1, err));
    for (i = 0; i < g->samples.n; i++) {
        const struct sample *s = &g->samples.at[i];

        g->total.at[i] = s->total_ns;
        rp_ns_add(&out->groups.at[s->group].self_ns, s->self_ns);
    }
    for (i = group = 0; group < out->groups.n; group++, begin = i) {
        while (i < g->samples.n && g->samples.at[i].group == group)
            i++;
        RP_TRY(rp_time_lists_add(&out->times, g->total.at + begin, i - begin, err));
    }
    return RP_OK;
}

enum rp_code rp_top_group_work(const struct rp_trace *trace, const struct rp_scope *scope,
                               const struct rp_top_groups *want, struct rp_arena *arena,
                               struct rp_top_part *out, struct rp_err *err)
{
    struct grouping g = {.t = trace,
                         .scope = scope,
                         .by = want->by,
                         .flat = want->flat,
                         .kernels = want->kernels,
                         .calls = want->calls,
                         .categories = want->categories,
                         .arena = arena,
                         .out = out};
    enum rp_code code = group_all(&g, err);
    if (code == RP_OK)
        code = pack_samples(&g, err);
    rp_map_release(&g.groups);
    rp_map_release(&g.roll_of);
    rp_strtab_release(&g.names);
    rp_strtab_release(&g.rolls);
    rp_name_series_release(&g.series);
    rp_arg_key_release(&g.dims);
    rp_arg_key_release(&g.own);
    rp_vec_release(&g.total);
    rp_vec_release(&g.self);
    rp_vec_release(&g.thread);
    rp_vec_release(&g.worker);
    rp_vec_release(&g.text);
    rp_vec_release(&g.samples);
    return code;
}
