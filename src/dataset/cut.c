/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which events belong to a part of a trace: those that questions with --step or --window
 * look at (facts/work/work.h), and those needed to understand them: the calls that launched their
 * device work, and all spans around anything that is kept.
 *
 *     host    [ loop                                        ]   kept: it is around steps 3 and 4
 *              [step 2 ][step 3 ][step 4 ][step 5 ]
 *     device     [work of 2 ][work of 3 ][work of 4 ][work of 5 ]
 *                            ^^^^^^^^^^^^^^^^^^^^^^             kept: launched in them
 */
#include "dataset/cut.h"

#include "base/decides.h"
#include "base/each.h"
#include "dataset/selection.h"
#include "facts/times/step_times.h"
#include "trace/copy.h"
#include "trace/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIND_SHOWN 80
RP_LIMIT(KIND_SHOWN, "bytes", "of an unknown kind that a message shows");

/* ------------------------------------------------------------------ options */

static enum rp_code parse_kinds(struct rp_trace_cut *cut, const char *text, struct rp_err *err)
{
    char known[400];

    for (; text && *text; text += strcspn(text, ",") + (text[strcspn(text, ",")] == ',')) {
        size_t n = strcspn(text, ",");
        int k;

        for (k = 0; k < RP_KIND_COUNT; k++)
            if (strlen(rp_word_kind((uint8_t)k)) == n && !memcmp(rp_word_kind((uint8_t)k), text, n))
                break;
        if (k == RP_KIND_COUNT) {
            size_t used = 0;

            for (int m = 0; m < RP_KIND_COUNT && used < sizeof known; m++)
                used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", m ? ", " : "",
                                         rp_word_kind((uint8_t)m));
            return rp_err_set(err, RP_USAGE, "there is no kind of events '%.*s'; the kinds are %s",
                              (int)(n < KIND_SHOWN ? n : KIND_SHOWN), text, known);
        }
        cut->kinds |= UINT32_C(1) << k;
    }
    return RP_OK;
}

enum rp_code rp_trace_cut_init(struct rp_trace_cut *cut, const struct rp_settings *settings,
                               struct rp_err *err)
{
    const char *steps = rp_settings_text(settings, "steps");
    const char *window = rp_settings_text(settings, "window");
    const char *kinds = rp_settings_text(settings, "kinds");

    *cut = (struct rp_trace_cut){.ranks = rp_settings_text(settings, "ranks"),
                                 .has_window = window != NULL};
    cut->asked = steps || window || kinds || cut->ranks;
    if (steps && window)
        return rp_err_set(err, RP_USAGE, "'--steps' and '--window' cannot be combined");
    RP_TRY(rp_ranks_check(cut->ranks, err));

    /* "3" is one step, "3:2" are two from there. */
    const char *text = steps;
    char *end;
    if (text) {
        cut->has_steps = true;
        cut->first_step = strtoll(text, &end, 10);
        cut->nsteps = 1;
        if (end != text && *end == ':') {
            text = end + 1;
            cut->nsteps = strtoll(text, &end, 10);
        }
        if (end == text || *end || cut->nsteps < 1)
            return rp_err_set(
                err, RP_USAGE,
                "invalid steps: write the number of the first one and how many, as in "
                "'3:2'");
    }
    RP_TRY(parse_kinds(cut, kinds, err));
    return window ? rp_time_window_parse(window, &cut->from_ns, &cut->to_ns, err) : RP_OK;
}

/* ------------------------------------------------------------------ what is kept */

struct cutting {
    const struct rp_trace_cut *cut;
    const struct rp_trace *t;
    struct rp_scope scope;
    uint32_t first, nsteps; /* the steps of the part */
    uint8_t *events, *flows, *samples;
    struct rp_interval *busy; /* by track: from the first to the last device work that is kept */
    struct rp_err *err;
};

/* Finds the scope of all steps that are wanted. */
static enum rp_code find_steps(struct cutting *c, const char *name)
{
    const struct rp_trace *t = c->t;
    uint32_t i;

    for (i = 0; i < t->nsteps && t->steps[i].number != c->cut->first_step; i++)
        ;
    if (!t->nsteps)
        return rp_err_set(c->err, RP_USAGE, "'%s' has no steps, so none can be selected", name);
    if (i == t->nsteps)
        return rp_err_set(c->err, RP_USAGE, "'%s' has no step %lld; its steps are %lld to %lld",
                          name, (long long)c->cut->first_step, (long long)t->steps[0].number,
                          (long long)t->steps[t->nsteps - 1].number);
    if (t->nsteps - i < c->cut->nsteps)
        return rp_err_set(c->err, RP_USAGE, "'%s' has only %u steps from step %lld on", name,
                          t->nsteps - i, (long long)c->cut->first_step);
    c->first = i;
    c->nsteps = (uint32_t)c->cut->nsteps;
    c->scope = rp_scope_of_step(t, i);
    c->scope.end_ns = rp_scope_of_step(t, i + c->nsteps - 1).end_ns;
    return RP_OK;
}

static enum rp_code find_scope(struct cutting *c, const char *name)
{
    const struct rp_totals *totals = &c->t->totals;

    c->scope = (struct rp_scope){0};
    c->nsteps = c->cut->has_window ? 0 : c->t->nsteps;
    if (c->cut->has_window)
        c->scope = rp_scope_of_window(c->t, rp_ns_sum(totals->span_begin_ns, c->cut->from_ns),
                                      rp_ns_sum(totals->span_begin_ns, c->cut->to_ns));
    return c->cut->has_steps ? find_steps(c, name) : RP_OK;
}

static enum rp_code keep_device_work(struct cutting *c)
{
    RP_SCOPED(rp_work_release) struct rp_work work = {0};

    RP_TRY(rp_work_init(&work, c->t, &c->scope, c->err));
    for (size_t i = 0; i < work.items.n; i++) {
        const struct rp_work_item *x = &work.items.at[i];
        struct rp_interval *busy = &c->busy[c->t->ev.track[x->event]];

        c->events[x->event] = 1;

        /* Keep the host's part of a launch: every call and operator of the link. */
        rp_event e = x->event;
        const struct rp_trace *t = c->t;
        rp_link link = t->ev.link[e];
        for (uint32_t k = link == RP_NONE ? 0 : t->links.offset[link];
             link != RP_NONE && k < t->links.offset[link + 1] &&
             !rp_kind_is_device_work(t->ev.kind[t->links.member[k]]);
             k++)
            c->events[t->links.member[k]] = 1;

        busy->begin_ns = x->begin_ns < busy->begin_ns ? x->begin_ns : busy->begin_ns;
        busy->end_ns = x->end_ns > busy->end_ns ? x->end_ns : busy->end_ns;
    }
    return RP_OK;
}

/* Whether an event that is not device work with a launch is in the scope. A stream also has ranges
   and waits, which are in it if they are beside work that is kept. */
static bool is_in_scope(const struct cutting *c, rp_event e)
{
    const struct rp_trace *t = c->t;
    const struct rp_interval *busy = &c->busy[t->ev.track[e]];
    int64_t ts = t->ev.ts_ns[e];

    if (ts == RP_NO_TS || t->ev.kind[e] == RP_KIND_METADATA)
        return true;
    if (t->tracks[t->ev.track[e]].kind != RP_TRACK_STREAM)
        return rp_scope_has(&c->scope, ts);
    if (rp_kind_is_device_work(t->ev.kind[e]) && t->ev.dur_ns[e] >= 0)
        return false;
    return ts < busy->end_ns && rp_event_end_ns(t, e) >= busy->begin_ns;
}

static enum rp_code select_events(struct cutting *c)
{
    const struct rp_trace *t = c->t;

    if (!c->scope.limited) {
        memset(c->events, 1, t->ev.n);
    } else {
        for (uint32_t i = 0; i < t->ntracks; i++)
            c->busy[i] = (struct rp_interval){INT64_MAX, INT64_MIN};
        RP_TRY(keep_device_work(c));
        for (rp_event e = 0; e < t->ev.n; e++)
            c->events[e] |= is_in_scope(c, e);
        for (rp_event e = 0; e < t->ev.n; e++)
            for (rp_event p = t->ev.parent[e]; c->events[e] && p != RP_NONE && !c->events[p];
                 p = t->ev.parent[p])
                c->events[p] = 1;
    }
    for (uint32_t i = 0; c->cut->kinds && i < t->ev.n; i++)
        if (t->ev.kind[i] != RP_KIND_METADATA && !(c->cut->kinds >> t->ev.kind[i] & 1))
            c->events[i] = 0;
    for (uint32_t i = 0; i < t->flows.n; i++)
        c->flows[i] = t->flows.event[i] != RP_NONE
                          ? c->events[t->flows.event[i]]
                          : !c->cut->kinds && rp_scope_has(&c->scope, t->flows.ts_ns[i]);
    for (uint32_t i = 0; i < t->samples.n; i++)
        c->samples[i] = !c->cut->kinds && rp_scope_has(&c->scope, t->samples.ts_ns[i]);
    return RP_OK;
}

/* ------------------------------------------------------------------ the part */

/* Returns when the first event or sample that is kept starts, as in struct rp_totals. */
static int64_t first_kept_ns(const struct cutting *c)
{
    int64_t first = INT64_MAX;

    for (rp_event e = 0; e < c->t->ev.n; e++)
        if (c->events[e] && c->t->ev.ts_ns[e] != RP_NO_TS && c->t->ev.kind[e] != RP_KIND_METADATA &&
            c->t->ev.ts_ns[e] < first)
            first = c->t->ev.ts_ns[e];
    for (uint32_t i = 0; i < c->t->samples.n; i++)
        if (c->samples[i] && c->t->samples.ts_ns[i] != RP_NO_TS && c->t->samples.ts_ns[i] < first)
            first = c->t->samples.ts_ns[i];
    return first;
}

static enum rp_code copy_part(const struct cutting *c, const char *name,
                              const struct rp_limits *limits, struct rp_trace **out)
{
    struct rp_copy how = {.events = c->events, .flows = c->flows, .samples = c->samples};
    int64_t begin = first_kept_ns(c);
    struct rp_arena arena = RP_ARENA_INIT;
    enum rp_code code = RP_OK;

    if (begin == INT64_MAX)
        return rp_err_set(c->err, RP_USAGE, "nothing of '%s' is selected", name);
    if (c->cut->has_steps || c->cut->has_window || c->cut->kinds) {
        struct rp_cut_record record = {.first = c->first,
                                       .n = c->nsteps,
                                       .begin_ns = begin,
                                       .previous_ns =
                                           c->cut->has_steps ? c->scope.span.begin_ns : RP_NO_TS};

        how.cut = rp_cut_describe(c->t, &record, &arena, c->err);
        code = how.cut ? RP_OK : c->err->code;
    }
    if (code == RP_OK)
        code = rp_trace_copy(c->t, &how, limits, out, c->err);
    rp_arena_release(&arena);
    return code;
}

enum rp_code rp_trace_cut_make(const struct rp_trace_cut *cut, const struct rp_trace *t,
                               const char *name, const struct rp_limits *limits,
                               struct rp_trace **out, struct rp_err *err)
{
    struct cutting c = {.cut = cut,
                        .t = t,
                        .events = calloc((size_t)t->ev.n + 1, 1),
                        .flows = calloc((size_t)t->flows.n + 1, 1),
                        .samples = calloc((size_t)t->samples.n + 1, 1),
                        .busy = calloc((size_t)t->ntracks + 1, sizeof *c.busy),
                        .err = err};
    enum rp_code code = c.events && c.flows && c.samples && c.busy
                            ? find_scope(&c, name)
                            : rp_err_nomem(err, "selecting events");

    *out = NULL;
    if (code == RP_OK)
        code = select_events(&c);
    if (code == RP_OK)
        code = copy_part(&c, name, limits, out);
    RP_EACH(free, c.events, c.flows, c.samples, c.busy);
    return code;
}
