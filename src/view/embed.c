/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Embeds a step, which the page of a report shows completely, as a saved view in that page. The
 * ranks that findings name come first. Only the traces that are shown are read a second time.
 */
#include "base/order.h"
#include "dataset/question.h"
#include "explain/report/answer.h"
#include "explain/report/view.h"
#include "view/view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_SHOWN  4
#define EVENTS_SHOWN 8000
#define HALVINGS     20

struct embedding {
    struct rp_report_root *root;
    struct rp_arena *arena;
    size_t n, shown[RANKS_SHOWN]; /* index in root->ranks */
};

/* ------------------------------------------------------------------ what is worth looking at */

static void show_rank(struct embedding *x, int64_t number)
{
    size_t i = 0;

    while (i < x->root->nranks && x->root->ranks[i].rank != number)
        i++;
    for (size_t k = 0; k < x->n; k++)
        if (x->shown[k] == i)
            return;
    if (i < x->root->nranks && x->n < RANKS_SHOWN)
        x->shown[x->n++] = i;
}

static void choose_ranks(struct embedding *x)
{
    const struct rp_report_root *root = x->root;
    size_t late = 0;

    for (size_t i = 0; i < root->nranks; i++)
        if (root->ranks[i].margin_ns > root->ranks[late].margin_ns)
            late = i;
    if (root->nranks > RANKS_SHOWN) {
        show_rank(x, root->ranks[late].rank);
        for (size_t i = 0; i < root->nfindings; i++)
            show_rank(x, root->findings[i].where.rank);
    }
    for (size_t i = 0; i < root->nranks; i++)
        show_rank(x, root->ranks[i].rank);
}

RP_ORDER(by_length, struct rp_report_step *const, RP_COMPARE((*a)->b.window_ns, (*b)->b.window_ns),
         RP_COMPARE((*a)->number, (*b)->number))

/* Chooses the step that a finding names, or a typical one. */
static bool choose_step(const struct embedding *x, int64_t *number)
{
    const struct rp_report_root *root = x->root;
    const struct rp_report_step **list =
        RP_ARENA_NEW(x->arena, const struct rp_report_step *, root->nsteps + 1);
    size_t n = 0;

    for (size_t i = 0; i < root->nfindings; i++)
        if (root->findings[i].where.step != RP_ABSENT_I64) {
            *number = root->findings[i].where.step;
            return true;
        }
    for (size_t i = 0; list && i < root->nsteps; i++)
        if (!root->steps[i].warm_up && !root->steps[i].no_detail &&
            root->steps[i].rank == root->steps[0].rank)
            list[n++] = &root->steps[i];
    if (!n)
        return false;
    qsort(list, n, sizeof *list, by_length);
    *number = list[n / 2]->number;
    return true;
}

/* ------------------------------------------------------------------ the traces */

/* Opens a dataset of the files of the ranks that are shown; the caller must free *own. */
static enum rp_code open_few(const struct embedding *x, const struct rp_dataset *dataset,
                             struct rp_dataset **own, struct rp_err *err)
{
    struct rp_open_options options = {.struct_size = sizeof options, .salvage = dataset->salvage};
    const char *paths[RANKS_SHOWN];

    for (size_t i = 0; i < x->n; i++)
        paths[i] = x->root->ranks[x->shown[i]].path;
    return rp_open(dataset->ctx, paths, x->n, &options, own, err);
}

static bool is_read_once(const struct rp_dataset *dataset)
{
    for (size_t i = 0; i < rp_dataset_count(dataset); i++)
        if (!strcmp(rp_sources_borrow(dataset->sources, i)->path, "-"))
            return true;
    return false;
}

static const char *list_numbers(const struct embedding *x)
{
    const char *text = "";

    for (size_t i = 0; i < x->n; i++)
        text = rp_arena_textf(x->arena, "%s%s%" PRId64, text, i ? "," : "",
                              x->root->ranks[x->shown[i]].rank);
    return text;
}

/* ------------------------------------------------------------------ the page */

/* Ends the part when it has as many events as a page should have. */
static bool shorten(const struct rp_view *view, struct rp_view_part *part)
{
    int64_t low = part->from_ns, high = part->to_ns;

    if (rp_view_count(view, part) <= EVENTS_SHOWN)
        return false;
    for (int i = 0; i < HALVINGS && low < high; i++) {
        part->to_ns = low + (high - low) / 2;
        if (rp_view_count(view, part) > EVENTS_SHOWN)
            high = part->to_ns;
        else
            low = part->to_ns;
    }
    part->to_ns = low;
    return true;
}

static enum rp_code choose_part(const struct embedding *x, struct rp_view *view,
                                struct rp_view_part *part, const char **what, struct rp_err *err)
{
    int64_t number;

    *part = (struct rp_view_part){0, rp_ns_sum(view->end_ns, 1)};
    *what = "the recording";
    if (!choose_step(x, &number))
        return RP_OK;
    *what = rp_arena_textf(x->arena, "step %" PRId64, number);
    return rp_view_steps(view, *what + strlen("step "), part, err);
}

static enum rp_code put_step(struct embedding *x, struct rp_view *view, struct rp_view_part *part,
                             const char *what, struct rp_err *err)
{
    struct rp_report_view *out = x->root->view;
    bool cut = shorten(view, part);
    struct rp_out *to;
    size_t n;

    view->swift = true;
    RP_TRY(rp_out_open_memory(&to, err));
    enum rp_code code = rp_view_put_page(view, part, to, err);
    if (code == RP_OK)
        code = rp_out_flush(to, err);
    if (code == RP_OK) {
        const char *page = rp_out_borrow_memory(to, &n);
        out->step_page = rp_arena_copy(x->arena, page, n);
        out->step_text = rp_arena_textf(x->arena, "%s%s, %s %s", cut ? "the first part of " : "",
                                        what, x->n > 1 ? "ranks" : "rank", list_numbers(x));
    }
    rp_out_abandon(to);
    return code;
}

static enum rp_code open_view(const struct embedding *x, const struct rp_dataset *dataset,
                              struct rp_view **out, struct rp_err *err)
{
    struct rp_view_options options = {.struct_size = sizeof options, .ranks = list_numbers(x)};

    return rp_view_open(&dataset, 1, &options, out, err);
}

/* Prefers a whole step of few ranks to a part of it of more. */
static enum rp_code show_step(struct embedding *x, const struct rp_dataset *dataset,
                              struct rp_view **view, struct rp_err *err)
{
    struct rp_view_part part;
    const char *what;

    RP_TRY(open_view(x, dataset, view, err));
    RP_TRY(choose_part(x, *view, &part, &what, err));
    size_t n = rp_view_count(*view, &part);
    if (n > EVENTS_SHOWN && x->n > 1) {
        x->n = x->n * EVENTS_SHOWN / n > 1 ? x->n * EVENTS_SHOWN / n : 1;
        rp_view_free(*view);
        *view = NULL;
        RP_TRY(open_view(x, dataset, view, err));
        RP_TRY(choose_part(x, *view, &part, &what, err));
    }
    return put_step(x, *view, &part, what, err);
}

enum rp_code rp_view_embed(const struct rp_dataset *dataset, struct rp_result *result,
                           struct rp_err *err)
{
    struct embedding x = {.root = result->root, .arena = &result->arena};
    struct rp_dataset *own = NULL;
    struct rp_view *view = NULL;
    enum rp_code code = RP_OK;

    choose_ranks(&x);
    if (!x.n || is_read_once(dataset))
        return RP_OK;
    if (rp_dataset_count(dataset) > RANKS_SHOWN)
        code = open_few(&x, dataset, &own, err);
    if (code == RP_OK)
        code = show_step(&x, own ? own : dataset, &view, err);
    rp_view_free(view);
    rp_dataset_free(own);
    return code;
}
