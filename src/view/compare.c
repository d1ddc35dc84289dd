/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two runs: the answer of `diff`, and how much of a step the events of each name take in
 * each run, by which a page colours them. A page asks for it after its first picture; it is made
 * once.
 *
 *     compare     {"diff": {…}, "why": null, "steps": [4, 4],
 *                  "names": [["gemm", calls, ns, calls, ns], …]}
 *
 * Calls and times are sums over all ranks and steps of the first run, and of the second; "steps"
 * counts the steps of all ranks. Without steps the whole recording is one.
 */
#include "base/names.h"
#include "base/order.h"
#include "dataset/question.h"
#include "draw/web.h"
#include "explain/diff/answer.h"
#include "io/escaped.h"
#include "view/view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MOST 20000

extern const struct rp_question_row rp_ask_diff;

struct rp_view_name {
    const char *name;
    int64_t calls[2], ns[2], change_ns; /* change: of a step */
};

RP_ORDER(by_change, struct rp_view_name, RP_DOWN(change_ns), strcmp(a->name, b->name))

struct rp_view_comparison {
    struct rp_result *diff; /* NULL if the runs cannot be compared */
    struct rp_err why;
    int64_t steps[2];
    RP_VEC(struct rp_view_name) names;
};

/* ------------------------------------------------------------------ names */

static bool is_compared(const struct rp_trace *t, rp_event e)
{
    return t->ev.ts_ns[e] != RP_NO_TS && t->ev.dur_ns[e] >= 0 && t->ev.kind[e] != RP_KIND_COUNTER;
}

/* By name of a rank: calls, and their time. */
struct name_sum {
    int64_t calls, ns;
};

static enum rp_code add_names(struct rp_view_comparison *c, struct rp_names *ids,
                              const struct rp_view_rank *rank, const struct name_sum *sums,
                              struct rp_err *err)
{
    for (rp_str s = 0; s < rank->trace->str.n; s++) {
        const char *text = sums[s].calls ? rp_trace_str(rank->trace, s) : NULL;
        uint32_t id = rp_names_find(ids, text);

        if (!text)
            continue;
        if (id == RP_NONE) {
            struct rp_view_name fresh = {.name = text};

            id = (uint32_t)c->names.n;
            RP_TRY(rp_names_add(ids, text, id, err));
            RP_TRY(rp_vec_push(&c->names, fresh, err));
        }
        c->names.at[id].calls[rank->run] += sums[s].calls;
        rp_ns_add(&c->names.at[id].ns[rank->run], sums[s].ns);
    }
    return RP_OK;
}

static enum rp_code compare_names(const struct rp_view *view, struct rp_view_comparison *c,
                                  struct rp_names *ids, struct rp_err *err)
{
    for (size_t r = 0; r < view->ranks.n; r++) {
        const struct rp_view_rank *rank = &view->ranks.at[r];
        struct name_sum *sums = calloc((size_t)rank->trace->str.n + 1, sizeof *sums);
        enum rp_code code = rp_err_need(sums, err, "comparing two runs");

        if (sums) {
            /* Count events that begin between the start of the first step and the end of the last.
             */
            const struct rp_trace *t = rank->trace;
            int64_t from = INT64_MIN, to = INT64_MAX;

            if (t->nsteps) {
                from = rank->steps[0].begin_ns;
                to = rank->steps[t->nsteps - 1].end_ns;
            }
            for (rp_event e = 0; e < t->ev.n; e++)
                if (is_compared(t, e) && t->ev.ts_ns[e] >= from && t->ev.ts_ns[e] < to) {
                    sums[t->ev.name[e]].calls++;
                    rp_ns_add(&sums[t->ev.name[e]].ns, t->ev.dur_ns[e]);
                }
        }
        if (code == RP_OK)
            code = add_names(c, ids, rank, sums, err);
        free(sums);
        RP_TRY(code);
        c->steps[rank->run] += rank->trace->nsteps ? rank->trace->nsteps : 1;
    }
    for (size_t i = 0; i < c->names.n; i++) {
        struct rp_view_name *n = &c->names.at[i];

        n->change_ns = rp_ns_between(n->ns[0] / c->steps[0], n->ns[1] / c->steps[1]);
        n->change_ns = n->change_ns < 0 ? -n->change_ns : n->change_ns;
    }
    rp_sort(c->names.at, c->names.n, sizeof *c->names.at, by_change);
    return RP_OK;
}

/* ------------------------------------------------------------------ asking once */

void rp_view_comparison_free(struct rp_view_comparison *c)
{
    if (!c)
        return;
    rp_result_free(c->diff);
    rp_vec_release(&c->names);
    free(c);
}

/* It is not an error of the page if `diff` has no answer: the names are still compared. */
static enum rp_code compare_once(const struct rp_view *view, struct rp_err *err)
{
    static const struct rp_setting limit = {"limit", "60"};
    struct rp_view_comparison *c = calloc(1, sizeof *c);
    struct rp_names ids = {0};
    enum rp_code code =
        c ? compare_names(view, c, &ids, err) : rp_err_nomem(err, "comparing two runs");

    rp_names_release(&ids);
    if (code == RP_OK)
        (void)!rp_view_ask_both(view, &rp_ask_diff, &rp_trace_diff_type, &limit, 1, &c->diff,
                                &c->why);
    if (code == RP_OK)
        *view->comparison = c;
    else
        rp_view_comparison_free(c);
    return code;
}

/* Whether `diff` prints the field on the screen. */
static bool is_shown(const struct rp_field *field)
{
    return field->title != NULL;
}

enum rp_code rp_view_compare(const struct rp_view *view, const char *query, struct rp_out *to,
                             struct rp_err *err)
{
    (void)query;
    if (view->nruns < 2)
        return rp_err_set(err, RP_USAGE, "there is one run, and nothing to compare it with");
    if (!*view->comparison)
        RP_TRY(compare_once(view, err));
    const struct rp_view_comparison *c = *view->comparison;
    rp_out_text(to, "{\"diff\":");
    if (c->diff)
        rp_web_record(to, c->diff->type, c->diff->root, is_shown);
    else
        rp_out_text(to, "null");
    rp_out_char(to, ',');
    rp_view_put_text(to, "why", c->diff ? NULL : c->why.text);
    rp_out_printf(to, ",\"steps\":[%" PRId64 ",%" PRId64 "],\"names\":[", c->steps[0], c->steps[1]);
    for (size_t i = 0; i < c->names.n && i < NAMES_MOST; i++) {
        const struct rp_view_name *n = &c->names.at[i];

        rp_out_text(to, i ? ",\n[" : "[");
        rp_out_escaped(to, RP_IN_SCRIPT, n->name);
        rp_out_printf(to, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "]", n->calls[0],
                      n->ns[0], n->calls[1], n->ns[1]);
    }
    rp_out_text(to, "]}");
    return RP_OK;
}
