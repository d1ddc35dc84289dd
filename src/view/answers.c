/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers the requests of a page other than tiles. Requests come from a browser, so every parameter
 * is checked, and every answer has a limit.
 *
 *     meta                          ranks, tracks, steps
 *     event?rank=0&event=17         one event: arguments, what encloses it, launch and device work,
 *                                   arrows, what the device did meanwhile
 *     search?q=REGEX                events whose names match
 *     sum?from=0&to=1000&rank=0     what `top` says about a range; run=0: of all ranks of a run
 *     explain?run=0&what=idle       what another question says, by time (explain.c)
 *     compare                       what two runs have in common (compare.c)
 */
#include "base/order.h"
#include "dataset/question.h"
#include "io/escaped.h"
#include "result/print_units.h"
#include "trace/words.h"
#include "view/view.h"

#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MOST   20000 /* of all ranks */
#define HITS_MOST    2000  /* of a search, listed */
#define HITS_SORTED  1000000
#define MARKS        1000 /* the number of pieces of the whole time in which hits are counted */
#define PARENTS_MOST 64
#define LINKED_MOST  256
#define SAFE_INTEGER \
    INT64_C(9007199254740992) /* the largest number that JavaScript represents exactly */
#define PATTERN_MOST 200

/* ------------------------------------------------------------------ classes */

enum {
    CLASS_OTHER,
    CLASS_COMPUTE,
    CLASS_COMM,
    CLASS_COPY,
    CLASS_OPERATOR,
    CLASS_RUNTIME,
    CLASS_RANGE,
    CLASS_PYTHON,
    CLASS_WAIT,
    CLASS_INSTANT,
    CLASSES
};

const char *const rp_view_class_names[] = {
    [CLASS_OTHER] = "other",      [CLASS_COMPUTE] = "kernel",    [CLASS_COMM] = "communication",
    [CLASS_COPY] = "copy",        [CLASS_OPERATOR] = "operator", [CLASS_RUNTIME] = "runtime call",
    [CLASS_RANGE] = "annotation", [CLASS_PYTHON] = "Python",     [CLASS_WAIT] = "wait",
    [CLASS_INSTANT] = "instant"};

unsigned rp_view_class(const struct rp_trace *t, rp_event e)
{
    static const uint8_t of_kind[RP_KIND_COUNT] = {[RP_KIND_CPU_OP] = CLASS_OPERATOR,
                                                   [RP_KIND_ANNOTATION] = CLASS_RANGE,
                                                   [RP_KIND_GPU_ANNOTATION] = CLASS_RANGE,
                                                   [RP_KIND_RUNTIME] = CLASS_RUNTIME,
                                                   [RP_KIND_KERNEL] = CLASS_COMPUTE,
                                                   [RP_KIND_MEMCPY] = CLASS_COPY,
                                                   [RP_KIND_MEMSET] = CLASS_COPY,
                                                   [RP_KIND_SYNC] = CLASS_WAIT,
                                                   [RP_KIND_PYTHON] = CLASS_PYTHON,
                                                   [RP_KIND_COMM_OP] = CLASS_COMM,
                                                   [RP_KIND_TRANSFER] = CLASS_COMM,
                                                   [RP_KIND_INSTANT] = CLASS_INSTANT,
                                                   [RP_KIND_WAIT] = CLASS_WAIT};
    uint8_t kind = t->ev.kind[e];

    if (kind == RP_KIND_KERNEL && t->str.name_class[t->ev.name[e]] == RP_NAME_COMM)
        return CLASS_COMM;
    return kind < RP_KIND_COUNT ? of_kind[kind] : CLASS_OTHER;
}

unsigned rp_view_frame_class(uint32_t kind)
{
    return kind == RP_FRAME_PYTHON   ? CLASS_PYTHON
           : kind == RP_FRAME_NATIVE ? CLASS_OPERATOR
           : kind == RP_FRAME_KERNEL ? CLASS_WAIT
                                     : CLASS_OTHER;
}

/* ------------------------------------------------------------------ parameters */

static const char *find_parameter(const char *query, const char *name, size_t *len)
{
    size_t n = strlen(name);

    for (const char *at = query; *at;) {
        size_t part = strcspn(at, "&");

        if (part > n && !memcmp(at, name, n) && at[n] == '=') {
            *len = part - n - 1;
            return at + n + 1;
        }
        at += part + (at[part] == '&');
    }
    return NULL;
}

enum rp_code rp_view_number(const char *query, const char *name, int64_t most, int64_t *out,
                            struct rp_err *err)
{
    size_t len = 0;
    const char *text = find_parameter(query, name, &len);
    int64_t value = 0;

    if (!text || !len || len > 18 || strspn(text, "0123456789") < len)
        return rp_err_set(err, RP_USAGE, "the request needs a number '%s'", name);
    for (size_t i = 0; i < len; i++)
        value = value * 10 + (text[i] - '0');
    if (value > most)
        return rp_err_set(err, RP_USAGE, "'%s' is too large: %" PRId64, name, value);
    *out = value;
    return RP_OK;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

enum rp_code rp_view_text(const char *query, const char *name, char *out, size_t size,
                          struct rp_err *err)
{
    size_t len = 0, n = 0;
    const char *text = find_parameter(query, name, &len);

    if (!text)
        return rp_err_set(err, RP_USAGE, "the request needs a text '%s'", name);
    for (size_t i = 0; i < len; i++) {
        int c = (unsigned char)text[i];

        if (c == '%') {
            int high = i + 2 < len ? hex_digit(text[i + 1]) : -1;
            int low = i + 2 < len ? hex_digit(text[i + 2]) : -1;

            if (high < 0 || low < 0)
                return rp_err_set(err, RP_USAGE, "'%s' is not encoded as an address is", name);
            c = high * 16 + low;
            i += 2;
        } else if (c == '+') {
            c = ' ';
        }
        if (n + 1 >= size || !c)
            return rp_err_set(err, RP_USAGE, "'%s' is too long, or has a NUL in it", name);
        out[n++] = (char)c;
    }
    out[n] = '\0';
    return RP_OK;
}

/* ------------------------------------------------------------------ meta */

void rp_view_put_text(struct rp_out *to, const char *key, const char *text)
{
    rp_out_printf(to, "\"%s\":", key);
    rp_out_escaped(to, RP_IN_SCRIPT, text);
}

static void put_id(struct rp_out *to, const struct rp_trace *t, const char *what, int64_t id,
                   rp_str text)
{
    char name[96];

    if (text)
        snprintf(name, sizeof name, "%s %.64s", what, rp_trace_str(t, text));
    else if (id == RP_ID_EMPTY)
        snprintf(name, sizeof name, "%s", what);
    else
        snprintf(name, sizeof name, "%s %" PRId64, what, id);
    rp_out_escaped(to, RP_IN_SCRIPT, name);
}

/* Writes [track, rows, samples] of the threads that have samples. */
static void put_sampled(struct rp_out *to, const struct rp_view_rank *rank)
{
    const struct rp_trace *t = rank->trace;
    bool any = false;
    uint32_t first, n;

    rp_out_text(to, "\"sampled\":[");
    for (rp_track i = 0; t->samples.n && i < t->ntracks; i++) {
        rp_view_samples(t, i, &first, &n);
        if (n)
            rp_out_printf(to, "%s[%u,%u,%u]", any ? "," : "", i, rp_view_sample_rows(t, first, n),
                          n);
        any = any || n;
    }
    rp_out_text(to, "],");
}

static void put_rank(struct rp_out *to, const struct rp_view_rank *rank, size_t *left)
{
    rp_out_printf(to, "{\"number\":%d,\"run\":%u,\"events\":%u,", rank->number, rank->run,
                  rank->trace->ev.n);
    rp_view_put_text(to, "path", rank->path);
    rp_out_text(to, ",\"tracks\":[");
    for (rp_track i = 0; i < rank->trace->ntracks; i++) {
        rp_out_text(to, i ? "," : "");

        /* Write [kind, name, process, rows, events, device]. */
        const struct rp_trace *t = rank->trace;
        const struct rp_track_info *track = &t->tracks[i];
        const struct rp_process *process = &t->processes[track->process];
        rp_out_text(to, "[");
        rp_out_escaped(to, RP_IN_SCRIPT, rp_word_track_kind(track->kind));
        rp_out_char(to, ',');
        if (track->name)
            rp_out_escaped(to, RP_IN_SCRIPT, rp_trace_str(t, track->name));
        else
            put_id(to, t, rp_word_track_kind(track->kind), track->native_id, track->text);
        rp_out_char(to, ',');
        if (process->name)
            rp_out_escaped(to, RP_IN_SCRIPT, rp_trace_str(t, process->name));
        else
            put_id(to, t, "process", process->native_id, process->text);
        rp_out_printf(to, ",%u,%u,%d]", rank->index.track_row[i + 1] - rank->index.track_row[i],
                      track->end - track->first, process->device);
    }
    rp_out_text(to, "],");
    put_sampled(to, rank);

    /* Write [number, name, begin, end]; *left is how many more may be listed. */
    const struct rp_trace *t = rank->trace;
    rp_out_text(to, "\"steps\":[");
    for (uint32_t i = 0; i < t->nsteps && *left; i++, --*left) {
        rp_out_printf(to, "%s[%" PRId64 ",", i ? "," : "", t->steps[i].number);
        rp_out_escaped(to, RP_IN_SCRIPT, rp_trace_str(t, t->steps[i].name));
        rp_out_printf(to, ",%" PRId64 ",%" PRId64 "]", rp_view_time(rank, rank->steps[i].begin_ns),
                      rp_view_time(rank, rank->steps[i].end_ns));
    }
    rp_out_text(to, "]");

    rp_out_char(to, '}');
}

/* Writes the run as words of a command that reads it as the view does. */
static const char *in_shell(struct rp_arena *arena, const struct rp_dataset *run)
{
    return rp_arena_textf(arena, "%s%s", run->salvage ? "--salvage " : "",
                          rp_arena_escaped(arena, RP_IN_SHELL, run->given));
}

static enum rp_code put_meta(const struct rp_view *view, const char *query, struct rp_out *to,
                             struct rp_err *err)
{
    size_t left = STEPS_MOST;

    (void)query;
    (void)err;
    rp_out_printf(to, "{\"version\":\"%s\",\"end_ns\":%" PRId64 ",\"events\":%" PRIu64 ",",
                  rp_version(), view->end_ns, view->nevents);
    rp_out_text(to, "\"classes\":[");
    for (size_t i = 0; i < CLASSES; i++)
        rp_out_printf(to, "%s\"%s\"", i ? "," : "", rp_view_class_names[i]);
    rp_out_text(to, "],\"notes\":[");
    for (size_t i = 0; i < view->notes.n; i++) {
        rp_out_text(to, i ? "," : "");
        rp_out_escaped(to, RP_IN_SCRIPT, view->notes.at[i]);
    }
    rp_out_text(to, "],\"runs\":[");
    for (size_t i = 0; i < view->nruns; i++) {
        rp_out_text(to, i ? ",{" : "{");
        rp_view_put_text(to, "title", view->runs[i].dataset->given);

        struct rp_arena arena = RP_ARENA_INIT;
        rp_out_char(to, ',');
        rp_view_put_text(to, "shell", in_shell(&arena, view->runs[i].dataset));
        rp_arena_release(&arena);
        rp_out_printf(to, ",\"aligned\":%s}", view->runs[i].aligned ? "true" : "false");
    }
    rp_out_text(to, "],\n\"ranks\":[");
    for (size_t i = 0; i < view->ranks.n; i++) {
        rp_out_text(to, i ? ",\n" : "");
        put_rank(to, &view->ranks.at[i], &left);
    }
    rp_out_text(to, "]}");
    return RP_OK;
}

/* ------------------------------------------------------------------ one event */

static void put_value(struct rp_out *to, const struct rp_trace *t, const struct rp_arg *arg)
{
    char text[32];

    if (arg->type == RP_ARG_I64 && arg->v.i <= SAFE_INTEGER && arg->v.i >= -SAFE_INTEGER) {
        rp_out_printf(to, "%" PRId64, arg->v.i);
    } else if (arg->type == RP_ARG_I64) {
        rp_out_printf(to, "\"%" PRId64 "\"", arg->v.i);
    } else if (arg->type == RP_ARG_F64) {
        rp_units_double(arg->v.f, text);
        rp_out_text(to, text);
    } else {
        rp_out_escaped(to, RP_IN_SCRIPT, rp_trace_str(t, arg->v.s));
    }
}

static void put_args(struct rp_out *to, const struct rp_view_rank *rank, rp_event e)
{
    const struct rp_trace *t = rank->trace;
    uint32_t n = rp_args_count(&t->args, t->ev.shape[e], t->ev.arg_row[e]);

    rp_out_text(to, ",\"args\":[");
    for (uint32_t i = 0; i < n; i++) {
        struct rp_arg arg = rp_args_at(&t->args, t->ev.shape[e], t->ev.arg_row[e], i);

        rp_out_text(to, i ? ",[" : "[");
        rp_out_escaped(to, RP_IN_SCRIPT, rp_trace_str(t, arg.key));
        rp_out_char(to, ',');
        put_value(to, t, &arg);
        rp_out_char(to, ']');
    }

    /* Add the lines of a compiled program as another argument. */
    bool first = !n;
    struct rp_arena scratch = RP_ARENA_INIT;
    const char *text = rank->lines && rank->lines->known
                           ? rp_line_source_text(rank->lines, rank->trace, e, &scratch)
                           : NULL;

    if (text) {
        rp_out_text(to, first ? "[\"source lines\"," : ",[\"source lines\",");
        rp_out_escaped(to, RP_IN_SCRIPT, text);
        rp_out_char(to, ']');
    }
    rp_arena_release(&scratch);

    rp_out_char(to, ']');
}

/* Writes where an event is:
   "event":…,"track":…,"row":…,"begin_ns":…,"dur_ns":…,"name":…,"class":… */
static void put_place(struct rp_out *to, const struct rp_view_rank *rank, rp_event e)
{
    const struct rp_trace *t = rank->trace;
    int64_t begin = rp_view_time(rank, t->ev.ts_ns[e]);

    rp_out_printf(to,
                  "\"event\":%u,\"track\":%u,\"row\":%u,\"begin_ns\":%" PRId64
                  ",\"dur_ns\":%" PRId64 ",\"class\":%u,",
                  e, t->ev.track[e], rank->index.depth.at[e], begin, t->ev.dur_ns[e],
                  rp_view_class(t, e));
    rp_view_put_text(to, "name", rp_trace_str(t, t->ev.name[e]));
}

static void put_places(struct rp_out *to, const struct rp_view_rank *rank, const char *key,
                       const rp_event *events, size_t n, bool brief)
{
    rp_out_printf(to, ",\"%s\":[", key);
    for (size_t i = 0; i < n; i++) {
        if (brief) {
            rp_out_printf(to, "%s%u", i ? "," : "", events[i]);
            continue;
        }
        rp_out_text(to, i ? ",{" : "{");
        put_place(to, rank, events[i]);
        rp_out_char(to, '}');
    }
    rp_out_char(to, ']');
}

/* Finds at most PARENTS_MOST, outwards. */
static size_t find_parents(const struct rp_trace *t, rp_event e, rp_event *out)
{
    size_t n = 0;

    for (e = t->ev.parent[e]; e != RP_NONE && n < PARENTS_MOST; e = t->ev.parent[e])
        out[n++] = e;
    return n;
}

/* Writes arrows other than those of launches, from the event and to it: [{"what", "out", place},
   …] */
static enum rp_code put_arrows(struct rp_out *to, const struct rp_view_rank *rank, rp_event e,
                               struct rp_err *err)
{
    rp_view_arrows arrows = {0};
    enum rp_code code = rp_view_find_arrows(rank->trace, e, &arrows, err);
    size_t n = 0;

    rp_out_text(to, ",\"arrows\":[");
    for (size_t i = 0; i < arrows.n && n < LINKED_MOST; i++) {
        const struct rp_view_arrow *a = &arrows.at[i];

        if (a->from != e && a->to != e)
            continue;
        rp_out_printf(to, "%s{\"out\":%s,", n++ ? "," : "", a->from == e ? "true" : "false");
        rp_view_put_text(to, "what", rp_trace_str(rank->trace, a->name));
        rp_out_char(to, ',');
        put_place(to, rank, a->from == e ? a->to : a->from);
        rp_out_char(to, '}');
    }
    rp_out_char(to, ']');
    rp_vec_release(&arrows);
    return code;
}

enum rp_code rp_view_put_event(const struct rp_view *view, size_t r, rp_event e, bool brief,
                               struct rp_out *to, struct rp_err *err)
{
    const struct rp_view_rank *rank = &view->ranks.at[r];
    const struct rp_trace *t = rank->trace;
    const struct rp_origin *origin = &t->origins[t->ev.origin[e]];
    rp_link link = t->ev.link[e];
    rp_event found[PARENTS_MOST];

    rp_out_printf(to, "{\"rank\":%zu,", r);
    put_place(to, rank, e);
    rp_out_char(to, ',');
    rp_view_put_text(to, "kind", rp_word_kind(t->ev.kind[e]));
    rp_out_char(to, ',');
    rp_view_put_text(to, "category",
                     origin->has_category ? rp_trace_str(t, origin->category) : NULL);
    put_args(to, rank, e);
    put_places(to, rank, "parents", found, find_parents(t, e, found), brief);
    size_t n = link == RP_NONE ? 0 : t->links.offset[link + 1] - t->links.offset[link];
    put_places(to, rank, "linked", n ? t->links.member + t->links.offset[link] : NULL,
               n < LINKED_MOST ? n : LINKED_MOST, brief);
    if (!brief)
        RP_TRY(put_arrows(to, rank, e, err));
    if (!brief)
        RP_TRY(rp_view_put_beside(rank, e, to, err));
    rp_out_printf(to, ",\"linked_count\":%zu}", n);
    return RP_OK;
}

static enum rp_code put_one_event(const struct rp_view *view, const char *query, struct rp_out *to,
                                  struct rp_err *err)
{
    int64_t rank, event;

    RP_TRY(rp_view_number(query, "rank", (int64_t)view->ranks.n - 1, &rank, err));
    RP_TRY(
        rp_view_number(query, "event", (int64_t)view->ranks.at[rank].trace->ev.n - 1, &event, err));
    if (view->ranks.at[rank].trace->ev.ts_ns[event] == RP_NO_TS)
        return rp_err_set(err, RP_USAGE, "event %" PRId64 " has no time", event);
    return rp_view_put_event(view, (size_t)rank, (rp_event)event, false, to, err);
}

/* ------------------------------------------------------------------ search */

struct hit {
    int64_t begin_ns;
    uint32_t rank;
    rp_event event;
};

struct search {
    const struct rp_view *view;
    regex_t regex;
    int64_t count, total_ns, marks[MARKS];
    RP_VEC(struct hit) hits;
};

/* A count in braces multiplies the size of an automaton, and a reference to a group makes matching
   exponential: neither is needed to find names. */
static enum rp_code check_pattern(const char *pattern, struct rp_err *err)
{
    for (const char *p = pattern; *p; p++) {
        if (*p == '{' || (*p == '\\' && p[1] >= '0' && p[1] <= '9'))
            return rp_err_set(err, RP_USAGE,
                              "counts in braces and references to groups are not searched for");
        p += *p == '\\' && p[1];
    }
    return RP_OK;
}

static enum rp_code compile_pattern(regex_t *out, const char *pattern, struct rp_err *err)
{
    char text[128];

    RP_TRY(check_pattern(pattern, err));
    int code = regcomp(out, pattern, REG_EXTENDED | REG_ICASE | REG_NOSUB);
    if (!code)
        return RP_OK;
    regerror(code, out, text, sizeof text);
    return rp_err_set(err, RP_USAGE, "'%s' is not a regular expression: %s", pattern, text);
}

static enum rp_code add_hit(struct search *s, uint32_t r, rp_event e, struct rp_err *err)
{
    const struct rp_view_rank *rank = &s->view->ranks.at[r];
    const struct rp_trace *t = rank->trace;
    struct hit hit = {rp_view_time(rank, t->ev.ts_ns[e]), r, e};
    int64_t end = s->view->end_ns > 0 ? s->view->end_ns : 1;
    int64_t mark = (int64_t)((double)hit.begin_ns / (double)end * MARKS);

    s->count++;
    if (t->ev.dur_ns[e] > 0)
        rp_ns_add(&s->total_ns, t->ev.dur_ns[e]);
    s->marks[mark < 0 ? 0 : mark >= MARKS ? MARKS - 1 : mark]++;
    return s->hits.n < HITS_SORTED ? rp_vec_push(&s->hits, hit, err) : RP_OK;
}

/* Each different name is matched once. */
static enum rp_code search_rank(struct search *s, uint32_t r, struct rp_err *err)
{
    const struct rp_trace *t = s->view->ranks.at[r].trace;
    RP_FREED uint8_t *known = calloc((size_t)t->str.n + 1, 1); /* 1: no, 2: yes */

    RP_TRY(rp_err_need(known, err, "searching"));
    for (rp_event e = 0; e < t->ev.n; e++) {
        rp_str name = t->ev.name[e];

        if (t->ev.ts_ns[e] == RP_NO_TS || t->ev.kind[e] == RP_KIND_COUNTER)
            continue;
        if (!known[name])
            known[name] = regexec(&s->regex, rp_trace_str(t, name), 0, NULL, 0) ? 1 : 2;
        if (known[name] == 2)
            RP_TRY(add_hit(s, r, e, err));
    }
    return RP_OK;
}

RP_ORDER(by_begin, struct hit, RP_UP(begin_ns), RP_UP(rank), RP_UP(event))

static enum rp_code put_search(const struct rp_view *view, const char *query, struct rp_out *to,
                               struct rp_err *err)
{
    struct search *s = calloc(1, sizeof *s);
    char pattern[PATTERN_MOST];
    enum rp_code code =
        s ? rp_view_text(query, "q", pattern, sizeof pattern, err) : rp_err_nomem(err, "searching");

    if (code == RP_OK)
        code = compile_pattern(&s->regex, pattern, err);
    if (code != RP_OK) {
        free(s);
        return code;
    }
    s->view = view;
    for (size_t r = 0; code == RP_OK && r < view->ranks.n; r++)
        code = search_rank(s, (uint32_t)r, err);
    if (code == RP_OK) {
        rp_out_printf(to, "{\"count\":%" PRId64 ",\"total_ns\":%" PRId64 ",\"marks\":[", s->count,
                      s->total_ns);
        for (size_t i = 0; i < MARKS; i++)
            rp_out_printf(to, "%s%" PRId64, i ? "," : "", s->marks[i]);
        rp_out_text(to, "],\"hits\":[");
        rp_sort(s->hits.at, s->hits.n, sizeof *s->hits.at, by_begin);
        for (size_t i = 0; i < s->hits.n && i < HITS_MOST; i++) {
            rp_out_printf(to, "%s{\"rank\":%u,", i ? "," : "", s->hits.at[i].rank);
            put_place(to, &s->view->ranks.at[s->hits.at[i].rank], s->hits.at[i].event);
            rp_out_char(to, '}');
        }
        rp_out_text(to, "]}");
    }
    regfree(&s->regex);
    rp_vec_release(&s->hits);
    free(s);
    return code;
}

/* ------------------------------------------------------------------ sums */

/* Converts a time of the view to that of `--window`, which counts from the first event of the
   rank. */
static int64_t window_time(const struct rp_view_rank *rank, int64_t view_ns)
{
    int64_t ns = rp_ns_between(rank->trace->totals.span_begin_ns, rp_view_own_time(rank, view_ns));

    return ns > 0 ? ns : 0;
}

static enum rp_code put_sum(const struct rp_view *view, const char *query, struct rp_out *to,
                            struct rp_err *err)
{
    static const struct rp_setting settings[] = {{"by", "kernel"}, {"limit", "100"}};
    int64_t from, end, which;
    size_t first, n = 1;
    struct rp_result *answer;

    RP_TRY(rp_view_number(query, "from", INT64_MAX, &from, err));
    RP_TRY(rp_view_number(query, "to", INT64_MAX, &end, err));
    if (from > end)
        return rp_err_set(err, RP_USAGE, "the range ends before it begins");
    if (rp_view_number(query, "run", (int64_t)view->nruns - 1, &which, NULL) == RP_OK) {
        first = view->runs[which].first;
        n = view->runs[which].n;
    } else {
        RP_TRY(rp_view_number(query, "rank", (int64_t)view->ranks.n - 1, &which, err));
        first = (size_t)which;
    }
    RP_TRY(rp_view_ask(view, first, n, &rp_ask_top, from, end, settings, 2, &answer, err));
    rp_out_char(to, '{');

    /* Write the command that prints the same. Windows count from the first event of each rank, so
       several ranks have none. */
    const struct rp_view_rank *rank = &view->ranks.at[first];
    struct rp_arena arena = RP_ARENA_INIT;
    const char *text =
        rp_arena_textf(&arena, "reprise top --by kernel%s --window %" PRId64 "ns..%" PRId64 "ns %s",
                       n == 1 && view->runs[rank->run].run->ranks.n > 1
                           ? rp_arena_textf(&arena, " --rank %d", rank->number)
                           : "",
                       window_time(rank, from), window_time(rank, end),
                       in_shell(&arena, view->runs[rank->run].dataset));

    rp_view_put_text(to, "command", n == 1 ? text : NULL);
    rp_arena_release(&arena);

    rp_out_text(to, ",\"top\":");
    rp_print_json(answer->type, answer->root, NULL, to);
    rp_out_char(to, '}');
    rp_result_free(answer);
    return RP_OK;
}

/* ------------------------------------------------------------------ all of them */

enum rp_code rp_view_answer(const struct rp_view *view, const char *path, const char *query,
                            struct rp_out *to, struct rp_err *err)
{
    static const struct {
        const char *path;
        rp_view_answer_fn *answer;
    } answers[] = {
        {"meta", put_meta},          {"tile", rp_view_tile}, {"event", put_one_event},
        {"search", put_search},      {"sum", put_sum},       {"explain", rp_view_explain},
        {"compare", rp_view_compare}};

    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        if (!strcmp(path, answers[i].path))
            return answers[i].answer(view, query, to, err);
    return rp_err_set(err, RP_MISSING, "there is nothing at '%.100s'", path);
}
