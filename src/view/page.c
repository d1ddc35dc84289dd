/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the page. The server sends it without data, which its script asks for; a saved page
 * contains all events of a part of the recording, with their arguments.
 */
#include "draw/web.h"
#include "io/escaped.h"
#include "view/view.h"

#include <inttypes.h>
#include <stdlib.h>

#define EVENTS_MOST 400000 /* of a saved page */

struct page {
    const struct rp_view *view;
    const struct rp_view_part *part;
    enum rp_code code;
    struct rp_err *err;
};

static bool overlaps(const struct rp_view_rank *rank, rp_event e, const struct rp_view_part *part)
{
    const struct rp_trace *t = rank->trace;

    return t->ev.ts_ns[e] != RP_NO_TS && rp_view_time(rank, t->ev.ts_ns[e]) < part->to_ns &&
           rp_view_time(rank, rp_event_end_ns(t, e)) >= part->from_ns;
}

size_t rp_view_count(const struct rp_view *view, const struct rp_view_part *part)
{
    size_t n = 0;

    for (size_t r = 0; r < view->ranks.n; r++)
        for (rp_event e = 0; e < view->ranks.at[r].trace->ev.n; e++)
            n += overlaps(&view->ranks.at[r], e, part);
    return n;
}

/* Writes [[from, to, "name", …], …] by rank: arrows between events of the part. */
static enum rp_code put_arrows(const struct rp_view *view, const struct rp_view_part *part,
                               struct rp_out *to, struct rp_err *err)
{
    rp_view_arrows arrows = {0};
    enum rp_code code = RP_OK;

    rp_out_char(to, '[');
    for (size_t r = 0; r < view->ranks.n && code == RP_OK; r++) {
        const struct rp_view_rank *rank = &view->ranks.at[r];
        const char *comma = "";

        arrows.n = 0;
        code = rp_view_find_arrows(rank->trace, RP_NONE, &arrows, err);
        rp_out_text(to, r ? ",\n[" : "[");
        for (size_t i = 0; i < arrows.n; i++) {
            const struct rp_view_arrow *a = &arrows.at[i];

            if (!overlaps(rank, a->from, part) || !overlaps(rank, a->to, part))
                continue;
            rp_out_printf(to, "%s%u,%u,", comma, a->from, a->to);
            rp_out_escaped(to, RP_IN_SCRIPT, rp_trace_str(rank->trace, a->name));
            comma = ",";
        }
        rp_out_char(to, ']');
    }
    rp_out_char(to, ']');
    rp_vec_release(&arrows);
    return code;
}

static enum rp_code put_data(const struct rp_view *view, const struct rp_view_part *part,
                             struct rp_out *to, struct rp_err *err)
{
    rp_out_printf(to, "{\"from_ns\":%" PRId64 ",\"to_ns\":%" PRId64 ",\n\"meta\":", part->from_ns,
                  part->to_ns);
    RP_TRY(rp_view_answer(view, "meta", "", to, err));
    rp_out_text(to, ",\n\"tile\":");
    RP_TRY(rp_view_put_events(view, part->from_ns, part->to_ns, EVENTS_MOST, to, err));
    rp_out_text(to, ",\n\"details\":");

    /* Write [{event: …}, …] by rank, in the order of the events. */
    rp_out_char(to, '[');
    for (size_t r = 0; r < view->ranks.n; r++) {
        rp_out_text(to, r ? ",\n[" : "[");
        bool first = true;
        for (rp_event e = 0; e < view->ranks.at[r].trace->ev.n; e++)
            if (view->ranks.at[r].trace->ev.kind[e] != RP_KIND_COUNTER &&
                overlaps(&view->ranks.at[r], e, part)) {
                rp_out_text(to, first ? "" : ",\n");
                RP_TRY(rp_view_put_event(view, r, e, true, to, err));
                first = false;
            }
        rp_out_char(to, ']');
    }
    rp_out_char(to, ']');

    rp_out_text(to, ",\n\"arrows\":");
    RP_TRY(put_arrows(view, part, to, err));

    /* Write by run what the questions say about the part. */
    rp_out_text(to, ",\n\"explained\":[");
    for (size_t r = 0; r < view->nruns; r++) {
        rp_out_text(to, r ? ",{" : "{");
        for (size_t i = 0; i < RP_VIEW_EXPLAINED; i++) {
            rp_out_printf(to, "%s\"%s\":", i ? ",\n" : "", rp_view_explained_name(i));
            RP_TRY(rp_view_put_explained(view, r, i, part, to, err));
        }
        rp_out_char(to, '}');
    }
    rp_out_text(to, "],\n\"compared\":");
    if (view->nruns == 2)
        RP_TRY(rp_view_answer(view, "compare", "", to, err));
    else
        rp_out_text(to, "null");
    rp_out_char(to, '}');
    return RP_OK;
}

static enum rp_code put_packed(const struct page *page, struct rp_out *to)
{
    struct rp_out *data;
    size_t n;

    RP_TRY(rp_out_open_memory(&data, page->err));
    enum rp_code code = put_data(page->view, page->part, data, page->err);
    if (code == RP_OK)
        code = rp_out_flush(data, page->err);
    if (code == RP_OK) {
        const char *json = rp_out_borrow_memory(data, &n);
        code = rp_web_put_packed(to, json, n, page->err);
    }
    rp_out_abandon(data);
    return code;
}

static void fill_data(struct rp_out *to, void *user)
{
    struct page *page = user;

    if (page->part)
        page->code = put_packed(page, to);
    else
        rp_out_text(to, "null");
}

static void put_title(struct rp_out *to, void *user)
{
    const struct page *page = user;

    for (size_t i = 0; i < page->view->nruns; i++) {
        rp_out_text(to, i ? " and " : "");
        rp_out_escaped(to, RP_IN_MARKUP, page->view->runs[i].dataset->given);
    }
}

enum rp_code rp_view_put_page(const struct rp_view *view, const struct rp_view_part *part,
                              struct rp_out *to, struct rp_err *err)
{
    struct page page = {view, part, RP_OK, err};
    struct rp_web_page parts = {rp_web_view_html, rp_web_view_css, rp_web_view_js,
                                fill_data,        put_title,       &page};

    RP_TRY(rp_web_put_page(to, &parts, err));
    return page.code;
}

/* ------------------------------------------------------------------ saving */

/* Finds the place of a step of a rank by its number, or fails with the list of steps. */
static enum rp_code find_step(const struct rp_view_rank *rank, int64_t number, uint32_t *out,
                              struct rp_err *err)
{
    const struct rp_trace *t = rank->trace;

    for (*out = 0; *out < t->nsteps; ++*out)
        if (t->steps[*out].number == number)
            return RP_OK;
    return t->nsteps
               ? rp_err_set(err, RP_USAGE,
                            "there is no step %" PRId64 "; the steps are %" PRId64 " to %" PRId64,
                            number, t->steps[0].number, t->steps[t->nsteps - 1].number)
               : rp_err_set(err, RP_USAGE, "'%s' has no steps", rank->path);
}

/* Adds the time from the begin of step i of a rank to the end of the last of n steps. */
static void add_steps(const struct rp_view_rank *rank, uint32_t i, int64_t n,
                      struct rp_view_part *part)
{
    uint32_t last = n < rank->trace->nsteps - i ? i + (uint32_t)n - 1 : rank->trace->nsteps - 1;
    int64_t from = rp_view_time(rank, rank->steps[i].begin_ns);
    int64_t to = rp_view_time(rank, rank->steps[last].end_ns);

    part->from_ns = from < part->from_ns ? from : part->from_ns;
    part->to_ns = to > part->to_ns ? to : part->to_ns;
}

enum rp_code rp_view_steps(struct rp_view *view, const char *steps, struct rp_view_part *out,
                           struct rp_err *err)
{
    char *end;
    long long number = strtoll(steps, &end, 10), n = 1;
    bool good = end > steps;
    uint32_t i;

    if (good && *end == ':') {
        const char *count = end + 1;

        n = strtoll(count, &end, 10);
        good = end > count && n > 0;
    }
    if (!good || *end)
        return rp_err_set(err, RP_USAGE,
                          "invalid steps '%s': write a number, or '3:2' for two steps from 3 on",
                          steps);
    RP_TRY(find_step(&view->ranks.at[0], number, &i, err));
    rp_view_align(view, i);
    *out = (struct rp_view_part){INT64_MAX, INT64_MIN};
    add_steps(&view->ranks.at[0], i, n, out);
    if (rp_view_twin(view, i, &i))
        add_steps(&view->ranks.at[view->runs[1].first], i, n, out);
    return RP_OK;
}

enum rp_code rp_view_save(struct rp_view *view, const char *path, const char *steps,
                          struct rp_err *err)
{
    struct rp_view_part part = {0, rp_ns_sum(view->end_ns, 1)};
    struct rp_out *to;

    if (steps)
        RP_TRY(rp_view_steps(view, steps, &part, err));
    size_t n = rp_view_count(view, &part);
    if (n > EVENTS_MOST)
        return rp_err_set(
            err, RP_LIMIT, "%zu events are too many for a page (at most %d): choose %s", n,
            EVENTS_MOST, steps ? "fewer steps, or ranks with '--rank'" : "steps with '--steps'");
    RP_TRY(rp_out_open(path, &to, err));
    return rp_out_end(to, rp_view_put_page(view, &part, to, err), err);
}
