/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a rank keeps every name once, so that a path of many segments stays small; the answer
 * adds the time on the path up by kind, and by name or cause.
 */
#include "explain/trace_critpath.h"

#include "base/hash.h"
#include "explain/short_name.h"
#include "result/print_units.h"

#include <stdlib.h>
#include <string.h>

/* Cuts the path to what lies in the scope. */
static void clip(struct rp_path *path, const struct rp_scope *scope)
{
    size_t i, n = 0;

    if (!scope || !scope->limited)
        return;
    path->begin_ns = path->begin_ns > scope->begin_ns ? path->begin_ns : scope->begin_ns;
    path->end_ns = path->end_ns < scope->end_ns ? path->end_ns : scope->end_ns;
    if (path->end_ns < path->begin_ns)
        path->end_ns = path->begin_ns;
    for (i = 0; i < path->parts.n; i++) {
        struct rp_path_segment s = path->parts.at[i];

        s.begin_ns = s.begin_ns > path->begin_ns ? s.begin_ns : path->begin_ns;
        s.end_ns = s.end_ns < path->end_ns ? s.end_ns : path->end_ns;
        if (s.end_ns > s.begin_ns)
            path->parts.at[n++] = s;
    }
    path->parts.n = n;
}

/* Numbers the names in the order in which they come. */
static enum rp_code number_names(const struct rp_trace *t, struct rp_critpath_part *out,
                                 struct rp_map *seen, rp_str *names, struct rp_err *err)
{
    size_t i;

    for (i = 0; i < out->path.parts.n; i++) {
        rp_event e = out->path.parts.at[i].event;

        out->text[i] = RP_NONE;
        if (e == RP_NONE)
            continue;
        RP_TRY(rp_map_intern(seen, t->ev.name[e], (uint32_t)out->ntexts, &out->text[i], err));
        if (out->text[i] == out->ntexts)
            names[out->ntexts++] = t->ev.name[e];
    }
    return RP_OK;
}

static enum rp_code keep_names(const struct rp_trace *t, struct rp_arena *arena,
                               struct rp_critpath_part *out, struct rp_err *err)
{
    size_t i, n = out->path.parts.n;
    rp_str *names = calloc(n + 1, sizeof *names);
    struct rp_map seen;
    enum rp_code code;

    rp_map_init(&seen);
    out->text = RP_ARENA_NEW(arena, uint32_t, n + 1);
    code = names && out->text ? number_names(t, out, &seen, names, err)
                              : rp_err_nomem(err, "walking the critical path");
    if (code == RP_OK && !(out->texts = RP_ARENA_NEW(arena, const char *, out->ntexts + 1)))
        code = rp_err_nomem(err, "walking the critical path");
    for (i = 0; code == RP_OK && i < out->ntexts; i++)
        if (!(out->texts[i] =
                  rp_arena_copy(arena, rp_trace_str(t, names[i]), rp_trace_str_len(t, names[i]))))
            code = rp_err_nomem(err, "walking the critical path");
    rp_map_release(&seen);
    free(names);
    return code;
}

enum rp_code rp_critpath_rank(const struct rp_trace *trace, const struct rp_scope *scope,
                              struct rp_arena *arena, struct rp_critpath_part *out,
                              struct rp_err *err)
{
    struct rp_work work;
    enum rp_code code;

    *out = (struct rp_critpath_part){0};
    code = rp_work_init(&work, trace, NULL, err);
    if (code == RP_OK)
        code = rp_path_find(&work, &out->path, err);
    rp_work_release(&work);
    RP_TRY(code);
    clip(&out->path, scope);
    return keep_names(trace, arena, out, err);
}

void rp_critpath_part_release(struct rp_critpath_part *part)
{
    rp_path_release(&part->path);
}

struct filler {
    const struct rp_critpath_part *part;
    struct rp_critpath_rank *out;
    struct rp_arena *arena;
    const char **texts; /* copies */
    uint32_t *place;    /* by kind and text or cause: row of names + 1 */
    bool failed;
};

static void add_share(struct rp_critpath_share *s, int64_t ns)
{
    s->count++;
    rp_ns_add(&s->total_ns, ns);
}

static int by_total(const void *pa, const void *pb)
{
    const struct rp_critpath_share *a = pa, *b = pb;
    int kind = strcmp(a->kind, b->kind);

    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    return kind ? kind : strcmp(a->name ? a->name : "", b->name ? b->name : "");
}

static void finish_shares(struct rp_critpath_share *s, size_t n, int64_t whole_ns)
{
    size_t i;

    for (i = 0; i < n; i++)
        s[i].share = whole_ns > 0 ? (double)s[i].total_ns / (double)whole_ns : 0;
    if (n)
        qsort(s, n, sizeof *s, by_total);
}

static void fill_segment(struct filler *f, size_t i)
{
    const struct rp_path_segment *s = &f->part->path.parts.at[i];
    bool wait = s->kind == RP_PATH_WAIT;
    int64_t ns = rp_ns_between(s->begin_ns, s->end_ns);
    size_t text = wait ? f->part->ntexts + s->cause : f->part->text[i];
    uint32_t *place = &f->place[text * RP_PATH_KINDS + s->kind];
    const char *name = wait ? rp_path_cause_names[s->cause] : f->texts[text];

    f->out->segments[f->out->nsegments++] =
        (struct rp_critpath_segment){.kind = rp_path_kind_names[s->kind],
                                     .name = wait ? NULL : name,
                                     .cause = wait ? name : NULL,
                                     .start_ns = s->begin_ns,
                                     .dur_ns = ns};
    rp_ns_add(&f->out->length_ns, ns);
    add_share(&f->out->kinds[s->kind], ns);
    if (!*place) {
        f->out->names[f->out->nnames++] =
            (struct rp_critpath_share){.kind = rp_path_kind_names[s->kind], .name = name};
        *place = (uint32_t)f->out->nnames;
    }
    add_share(&f->out->names[*place - 1], ns);
}

static void fill_kinds(struct filler *f)
{
    size_t k, n = 0;

    for (k = 0; k < RP_PATH_KINDS; k++)
        if (f->out->kinds[k].count) {
            f->out->kinds[n] = f->out->kinds[k];
            f->out->kinds[n++].kind = rp_path_kind_names[k];
        }
    f->out->nkinds = n;
    finish_shares(f->out->kinds, n, f->out->window_ns);
    finish_shares(f->out->names, f->out->nnames, f->out->window_ns);
}

static void label_names(struct filler *f, size_t limit)
{
    char label[160], window[64];
    size_t i;

    f->out->shown = f->out->names;
    f->out->nshown = f->out->nnames < limit ? f->out->nnames : limit;
    for (i = 0; i < f->out->nshown; i++) {
        rp_short_name(f->out->names[i].name, label, sizeof label);
        f->out->names[i].label = rp_arena_strdup(f->arena, label);
        f->failed |= !f->out->names[i].label;
    }
    rp_units_format((double)f->out->window_ns, RP_UNIT_NS, window, sizeof window);
    f->out->summary =
        f->out->nsegments
            ? rp_arena_printf(f->arena, "rank %lld: %s in %zu segments", (long long)f->out->rank,
                              window, f->out->nsegments)
            : rp_arena_printf(f->arena, "rank %lld: no operators, calls or device work recorded",
                              (long long)f->out->rank);
    f->failed |= !f->out->summary;
}

static void allocate(struct filler *f)
{
    size_t i, n = f->part->path.parts.n, texts = f->part->ntexts;
    size_t places = (texts + RP_PATH_CAUSES) * RP_PATH_KINDS;

    f->texts = RP_ARENA_NEW(f->arena, const char *, texts + 1);
    f->place = RP_ARENA_NEW(f->arena, uint32_t, places);
    f->out->kinds = RP_ARENA_NEW(f->arena, struct rp_critpath_share, RP_PATH_KINDS);
    f->out->names = RP_ARENA_NEW(f->arena, struct rp_critpath_share, (n < places ? n : places) + 1);
    f->out->segments = RP_ARENA_NEW(f->arena, struct rp_critpath_segment, n + 1);
    f->failed = !f->texts || !f->place || !f->out->kinds || !f->out->names || !f->out->segments;
    for (i = 0; i < texts && !f->failed; i++) {
        f->texts[i] = rp_arena_strdup(f->arena, f->part->texts[i]);
        f->failed |= !f->texts[i];
    }
}

enum rp_code rp_critpath_fill(const struct rp_critpath_part *part, size_t limit,
                              struct rp_arena *arena, struct rp_critpath_rank *out,
                              struct rp_err *err)
{
    struct filler f = {.part = part, .out = out, .arena = arena};
    size_t i;

    out->window_ns = rp_ns_between(part->path.begin_ns, part->path.end_ns);
    allocate(&f);
    for (i = 0; i < part->path.parts.n && !f.failed; i++)
        fill_segment(&f, i);
    if (!f.failed)
        fill_kinds(&f);
    if (!f.failed)
        label_names(&f, limit);
    return f.failed ? rp_err_nomem(err, "describing the critical path") : RP_OK;
}
