/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds requests of a program that generates, if their ranges were recorded: calls of generate(),
 * and ranges or chains that are named after a request. If requests follow each other, the steps
 * that begin inside one serve it; if they overlap, no mark says which step serves which
 * (docs/definitions.md, "Requests"). Linear in events; each name is examined once.
 */
#include "base/decides.h"
#include "explain/report/report.h"

#include "base/order.h"
#include "base/text.h"
#include "facts/times/intervals.h"
#include "facts/times/step_times.h"
#include "result/print_units.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { NAME_UNKNOWN, NAME_OTHER, NAME_REQUEST, NAME_QUEUE, NAME_PREFILL }; /* of a name */

#define MOST_HOPS   256
#define LEAST_STEPS 2
RP_FACT(LEAST_STEPS, "steps", "of a request: the first token, and one after it");
RP_LIMIT(MOST_HOPS, "spans around one", "outer ones are not looked at");

struct request {
    int64_t begin_ns, end_ns;
    int64_t queue_ns, prefill_ns; /* RP_ABSENT_I64 if not recorded; prefill_ns: when it ended */
    rp_event event;
};

struct requests_ctx {
    const struct rp_trace *t;
    RP_VEC(uint8_t) word; /* by string */
    RP_VEC(struct request) list;
    RP_VEC(int64_t) ns[RP_REQUEST_TIMES];
    bool overlap;
};

/* ------------------------------------------------------------------ their ranges */

static bool begins_with(const char *name, const char *word)
{
    size_t n = strlen(word);

    return !strncasecmp(name, word, n) && !isalpha((unsigned char)name[n]);
}

/* The beginnings of their ranges' names; llm_request is what vLLM sends to OpenTelemetry. */
static const struct {
    const char *begin;
    uint8_t word;
} words[] = {{"request", NAME_REQUEST}, {"llm_request", NAME_REQUEST}, {"generate", NAME_REQUEST},
             {"queue", NAME_QUEUE},     {"waiting", NAME_QUEUE},       {"prefill", NAME_PREFILL}};
#define PYTHON_GENERATE "): generate" /* how the frame of transformers ends */

static uint8_t word_of(const char *name)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (begins_with(name, words[i].begin))
            return words[i].word;
    return rp_text_ends(name, PYTHON_GENERATE) ? NAME_REQUEST : NAME_OTHER;
}

/* The meaning of a host span, by its name. */
static uint8_t span_word(struct requests_ctx *c, rp_event e)
{
    const struct rp_events *ev = &c->t->ev;
    uint8_t *word = &c->word.at[ev->name[e]];
    bool chain = c->t->tracks[ev->track[e]].kind == RP_TRACK_ASYNC;

    if (ev->dur_ns[e] <= 0 || ev->ts_ns[e] == RP_NO_TS ||
        !(chain || ev->kind[e] == RP_KIND_ANNOTATION || ev->kind[e] == RP_KIND_PYTHON ||
          ev->kind[e] == RP_KIND_OTHER))
        return NAME_OTHER;
    if (*word == NAME_UNKNOWN)
        *word = word_of(rp_trace_str(c->t, ev->name[e]));
    return *word;
}

static bool is_inside_another(struct requests_ctx *c, rp_event e)
{
    for (int hops = 0; hops < MOST_HOPS && (e = c->t->ev.parent[e]) != RP_NONE; hops++)
        if (span_word(c, e) == NAME_REQUEST)
            return true;
    return false;
}

/* Reads from a span inside a request how long it waited, or when its prefill ended. */
static void read_span(struct requests_ctx *c, struct request *r, rp_event e)
{
    const struct rp_events *ev = &c->t->ev;
    uint8_t word = span_word(c, e);

    if (ev->ts_ns[e] < r->begin_ns || ev->ts_ns[e] >= r->end_ns)
        return;
    if (word == NAME_QUEUE) {
        r->queue_ns = r->queue_ns == RP_ABSENT_I64 ? 0 : r->queue_ns;
        rp_ns_add(&r->queue_ns, ev->dur_ns[e]);
    }
    if (word == NAME_PREFILL)
        r->prefill_ns = rp_event_end_ns(c->t, e);
}

/* Spans of a chain have no parents, but a link, whose members are in the order of time. */
static void read_chain(struct requests_ctx *c, struct request *r)
{
    const struct rp_events *ev = &c->t->ev;
    const uint32_t *member = c->t->links.member;
    uint32_t link = ev->link[r->event];
    size_t i;

    if (link == RP_NONE)
        return;
    RP_LOWER_BOUND_FROM(i, c->t->links.offset[link], c->t->links.offset[link + 1],
                        ev->ts_ns[member[i]] < r->begin_ns);
    for (; i < c->t->links.offset[link + 1] && ev->ts_ns[member[i]] < r->end_ns; i++)
        read_span(c, r, member[i]);
}

static void read_inside(struct requests_ctx *c, struct request *r)
{
    const struct rp_events *ev = &c->t->ev;
    const struct rp_track_info *track = &c->t->tracks[ev->track[r->event]];

    if (track->kind == RP_TRACK_ASYNC) {
        read_chain(c, r);
        return;
    }
    for (rp_event e = r->event + 1; e < track->end && ev->ts_ns[e] < r->end_ns; e++)
        if (ev->parent[e] == r->event)
            read_span(c, r, e);
}

RP_ORDER(by_begin, struct request, RP_UP(begin_ns), RP_UP(event))

static enum rp_code find_requests(struct requests_ctx *c, struct rp_err *err)
{
    const struct rp_events *ev = &c->t->ev;

    RP_TRY(rp_vec_reserve(&c->word, c->t->str.n + 1, err));
    memset(c->word.at, NAME_UNKNOWN, c->t->str.n + 1);
    for (rp_event e = 0; e < ev->n; e++) {
        struct request r = {ev->ts_ns[e], rp_event_end_ns(c->t, e), RP_ABSENT_I64, RP_ABSENT_I64,
                            e};

        if (span_word(c, e) != NAME_REQUEST || is_inside_another(c, e))
            continue;
        read_inside(c, &r);
        RP_TRY(rp_vec_push(&c->list, r, err));
    }
    rp_sort(c->list.at, c->list.n, sizeof *c->list.at, by_begin);
    for (size_t i = 1; i < c->list.n; i++)
        c->overlap = c->overlap || c->list.at[i].begin_ns < c->list.at[i - 1].end_ns;
    return RP_OK;
}

/* ------------------------------------------------------------------ their times */

static enum rp_code add_time(struct requests_ctx *c, enum rp_request_time what, int64_t ns,
                             struct rp_err *err)
{
    return rp_vec_push(&c->ns[what], ns, err);
}

/* When the results of a step were available: when its device work or its mark had ended, but not
   later than the request. */
static int64_t step_done(const struct rp_step *s, const struct request *r)
{
    if (s->work_end_ns != RP_NO_TS)
        return s->work_end_ns;
    return s->end_ns < r->end_ns ? s->end_ns : r->end_ns;
}

static enum rp_code add_steps(struct requests_ctx *c, const struct request *r, uint32_t first,
                              uint32_t end, struct rp_err *err)
{
    const struct rp_step *s = c->t->steps;

    if (end - first < LEAST_STEPS)
        return RP_OK;
    RP_TRY(add_time(c, RP_REQUEST_FIRST, rp_ns_between(r->begin_ns, step_done(&s[first], r)), err));
    for (uint32_t i = first + 1; i < end; i++)
        RP_TRY(add_time(c, RP_REQUEST_BETWEEN,
                        rp_ns_between(step_done(&s[i - 1], r), step_done(&s[i], r)), err));
    return RP_OK;
}

static enum rp_code measure(struct requests_ctx *c, struct rp_err *err)
{
    uint32_t nsteps = rp_whole_steps(c->t), at = 0, first;

    for (size_t i = 0; i < c->list.n; i++) {
        const struct request *r = &c->list.at[i];

        while (at < nsteps && c->t->steps[at].begin_ns < r->begin_ns)
            at++;
        for (first = at; !c->overlap && at < nsteps && c->t->steps[at].begin_ns < r->end_ns;)
            at++;
        RP_TRY(add_steps(c, r, first, at, err));
        if (c->overlap && r->prefill_ns != RP_ABSENT_I64)
            RP_TRY(add_time(c, RP_REQUEST_FIRST, rp_ns_between(r->begin_ns, r->prefill_ns), err));
        if (r->queue_ns != RP_ABSENT_I64)
            RP_TRY(add_time(c, RP_REQUEST_QUEUE, r->queue_ns, err));
        RP_TRY(add_time(c, RP_REQUEST_WHOLE, rp_ns_between(r->begin_ns, r->end_ns), err));
    }
    return RP_OK;
}

/* Whether at least half of the steps begin in a request, so that the program serves these. */
static bool holds_steps(const struct requests_ctx *c)
{
    uint32_t nsteps = rp_whole_steps(c->t), i, inside = 0;
    int64_t until = INT64_MIN;
    size_t next = 0;

    for (i = 0; i < nsteps; i++) {
        int64_t begin = c->t->steps[i].begin_ns;

        for (; next < c->list.n && c->list.at[next].begin_ns <= begin; next++)
            until = c->list.at[next].end_ns > until ? c->list.at[next].end_ns : until;
        inside += begin < until;
    }
    return inside && inside >= nsteps / 2;
}

/* "requests are 4 ranges 'generate': how long they waited before is not recorded". */
static const char *describe(const struct requests_ctx *c, struct rp_arena *arena)
{
    return rp_arena_textf(
        arena, "requests are %s '%.80s'%s%s", rp_units_count(arena, (int64_t)c->list.n, "range"),
        rp_trace_str(c->t, c->t->ev.name[c->list.at[0].event]),
        c->ns[RP_REQUEST_QUEUE].n ? ""
                                  : ": how long they waited before, in a queue, was not recorded",
        c->overlap ? "; they overlap, and no mark says which step served which, so that the times "
                     "between their tokens are not known"
                   : "");
}

static const char *const time_words[RP_REQUEST_TIMES][2] = {
    [RP_REQUEST_QUEUE] = {"queue", "in the queue"},
    [RP_REQUEST_FIRST] = {"first_token", "to the first token"},
    [RP_REQUEST_BETWEEN] = {"between_tokens", "between tokens"},
    [RP_REQUEST_WHOLE] = {"whole", "the whole request"}};

static void add_rows(struct requests_ctx *c, struct rp_arena *arena, struct rp_report_part *out)
{
    out->requests = RP_ARENA_NEW(arena, struct rp_report_request, RP_REQUEST_TIMES);
    for (size_t i = 0; out->requests && i < RP_REQUEST_TIMES; i++) {
        int64_t *ns = c->ns[i].at;
        size_t n = c->ns[i].n;

        if (!n)
            continue;
        rp_ns_sort(ns, n);
        out->requests[out->nrequests++] =
            (struct rp_report_request){.what = time_words[i][0],
                                       .label = time_words[i][1],
                                       .count = (int64_t)n,
                                       .p50_ns = rp_ns_percentile(ns, n, 50),
                                       .p90_ns = rp_ns_percentile(ns, n, 90),
                                       .p99_ns = rp_ns_percentile(ns, n, 99),
                                       .max_ns = ns[n - 1]};
    }
    out->request_text = describe(c, arena);
}

enum rp_code rp_report_find_requests(const struct rp_trace *trace, struct rp_arena *arena,
                                     struct rp_report_part *out, struct rp_err *err)
{
    struct requests_ctx c = {.t = trace};
    enum rp_code code = trace->nsteps ? find_requests(&c, err) : RP_OK;
    bool holds = code == RP_OK && c.list.n && holds_steps(&c);

    if (holds)
        code = measure(&c, err);
    if (code == RP_OK && holds && (c.overlap || c.ns[RP_REQUEST_FIRST].n))
        add_rows(&c, arena, out);
    rp_vec_release(&c.word);
    rp_vec_release(&c.list);
    for (size_t i = 0; i < RP_REQUEST_TIMES; i++)
        rp_vec_release(&c.ns[i]);
    return code == RP_OK ? rp_arena_check(arena, "measuring requests", err) : code;
}

/* ------------------------------------------------------------------ the rows */

#define REQUEST(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_report_request, member, type, unit, title, doc, flags)

static const struct rp_field request_fields[] = {
    REQUEST(label, STR, NONE, "time", "text output only", RP_SCREEN),
    REQUEST(what, STR, NONE, NULL, "queue, first_token, between_tokens or whole", 0),
    REQUEST(count, I64, COUNT, "count", "how many such times", 0),
    REQUEST(p50_ns, I64, NS, "p50", "half of them are as short, by nearest rank", 0),
    REQUEST(p90_ns, I64, NS, "p90", "nine of ten are as short", 0),
    REQUEST(p99_ns, I64, NS, "p99", "99 of 100 are as short", 0),
    REQUEST(max_ns, I64, NS, "longest", "the longest", 0),
    RP_FIELD_END};
const struct rp_type rp_report_request_type = {"request", sizeof(struct rp_report_request),
                                               request_fields, NULL};
