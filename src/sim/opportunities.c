/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the list of opportunities. Every what-if that a user can realise proposes texts, and each
 * text is run alone on the model without the profiler, which costs part of a simulation. Only those
 * that bring enough are then run in the other worlds, for their intervals. If a what-if has several
 * texts, the best whose whole interval is a gain is kept.
 */
#include "sim/opportunities.h"

#include "base/order.h"
#include "sim/beside.h"

#include <reprise/result.h>
#include <stdlib.h>
#include <string.h>

struct trying {
    struct rp_worlds *x;
    const struct rp_changes_asked *asked;
    struct rp_arena *arena;
    RP_VEC(struct rp_change) list;
    struct rp_err *err;
};

/* ------------------------------------------------------------------ what is tried */

static enum rp_code push_change(struct trying *t, const struct rp_whatif *row, const char *text,
                                enum rp_whatif_verdict verdict, const char *because)
{
    bool refused = verdict >= RP_WHATIF_UNSURE;
    struct rp_change c = {.row = row,
                          .text = text,
                          .alone_ns = RP_ABSENT_I64,
                          .impossible = refused ? because : NULL,
                          .refused = refused,
                          .verdict = verdict,
                          .because = because};

    for (size_t i = t->list.n; i > 0 && t->list.at[i - 1].row == row; i--)
        if (!strcmp(t->list.at[i - 1].text, text))
            return RP_OK;
    return rp_vec_push(&t->list, c, t->err);
}

/* Collects the texts that a what-if proposes, or one entry that says why it has none. */
static enum rp_code propose(struct trying *t, const struct rp_whatif *row)
{
    rp_whatif_texts texts = {0};
    struct rp_err why = RP_ERR_INIT;
    enum rp_whatif_verdict verdict = rp_whatif_applies(row, &t->x->run, &why);
    const char *because = *why.text ? rp_arena_text(t->arena, why.text) : NULL;

    if (why.code != RP_OK && why.code != RP_UNSUPPORTED)
        return rp_err_set(t->err, why.code, "%s", why.text);
    if (verdict == RP_WHATIF_UNSURE || verdict == RP_WHATIF_NOT)
        return push_change(t, row, row->name, verdict, because);
    enum rp_code code =
        row->move->propose
            ? row->move->propose(&t->x->run, t->arena, &texts, t->err)
            : rp_vec_push(&texts, row->move->text ? row->move->text : row->name, t->err);
    for (size_t i = 0; code == RP_OK && i < texts.n; i++)
        code = push_change(t, row, texts.at[i], verdict, because);
    rp_vec_release(&texts);
    return code;
}

/* The what-if that a text begins with; NULL: it is malformed. */
static const struct rp_whatif *row_of(struct trying *t, const char *text)
{
    struct rp_err why = RP_ERR_INIT;
    struct rp_whatif_list list;

    return rp_whatif_parse(text, t->arena, &list, &why) == RP_OK && list.n ? list.calls[0].row
                                                                           : NULL;
}

static int by_effort(const void *pa, const void *pb)
{
    const struct rp_whatif *a = *(const struct rp_whatif *const *)pa;
    const struct rp_whatif *b = *(const struct rp_whatif *const *)pb;
    unsigned ea = a->move ? a->move->effort : 0, eb = b->move ? b->move->effort : 0;

    return ea != eb ? ea < eb ? -1 : 1 : strcmp(a->name, b->name);
}

static enum rp_code list_changes(struct trying *t)
{
    const struct rp_whatif *rows[64];
    const struct rp_changes_asked *asked = t->asked;
    size_t i, n = 0;

    for (i = 0; rp_whatifs[i] && n < sizeof rows / sizeof rows[0]; i++)
        rows[n++] = rp_whatifs[i];
    qsort((void *)rows, n, sizeof rows[0], by_effort);
    for (i = 0; i < n; i++) {
        if (rows[i]->move && (!asked->wants || asked->wants(rows[i], asked->user)))
            RP_TRY(propose(t, rows[i]));

        /* What was asked for besides the proposals. */
        for (size_t k = 0; k < t->asked->nmore; k++)
            if (row_of(t, t->asked->more[k]) == rows[i])
                RP_TRY(push_change(t, rows[i], t->asked->more[k], RP_WHATIF_APPLIES, NULL));
    }
    return RP_OK;
}

/* tried: for every change, why it is impossible. */
struct tried {
    struct trying *t;
    struct rp_err *why;
};

static enum rp_code try_change(struct rp_worlds *x, void *user, size_t i, struct rp_err *err)
{
    struct tried *all = user;
    struct trying *t = all->t;
    struct rp_change *c = &t->list.at[i];
    struct rp_err *why = &all->why[i];

    if (c->impossible)
        return RP_OK;
    if (t->asked->over && t->asked->over(t->asked->user)) {
        c->impossible = "the search ended before it was tried";
        return RP_OK;
    }
    enum rp_code code = rp_worlds_first(x, c->text, &c->first, why);
    c->alone_ns = code == RP_OK ? c->first.step_ns : RP_ABSENT_I64;
    return code == RP_OK || code == RP_UNSUPPORTED ? RP_OK : rp_err_set(err, code, "%s", why->text);
}

static enum rp_code try_all(struct trying *t)
{
    struct tried all = {t, calloc(t->list.n + 1, sizeof *all.why)};
    enum rp_code code = rp_err_need(all.why, t->err, "simulating");

    if (code == RP_OK)
        code = rp_worlds_each(t->x, t->list.n, try_change, &all, t->err);
    for (size_t i = 0; code == RP_OK && i < t->list.n; i++)
        if (all.why[i].code != RP_OK)
            t->list.at[i].impossible = rp_arena_text(t->arena, all.why[i].text);
    free(all.why);
    return code;
}

enum rp_code rp_changes_try(struct rp_worlds *x, const struct rp_changes_asked *asked,
                            struct rp_arena *arena, struct rp_changes *out, struct rp_err *err)
{
    struct trying t = {.x = x, .asked = asked, .arena = arena, .err = err};
    enum rp_code code = list_changes(&t);

    if (code == RP_OK)
        code = try_all(&t);
    *out = (struct rp_changes){t.list.n, RP_ARENA_NEW(arena, struct rp_change, t.list.n + 1)};
    if (code == RP_OK)
        code = rp_arena_check(arena, "simulating", err);
    if (code == RP_OK && t.list.n)
        memcpy(out->at, t.list.at, t.list.n * sizeof *out->at);
    rp_vec_release(&t.list);
    return code;
}

const struct rp_change *rp_changes_find(const struct rp_changes *changes, const char *text)
{
    for (size_t i = 0; i < changes->n; i++)
        if (!strcmp(changes->at[i].text, text))
            return &changes->at[i];
    return NULL;
}

/* ------------------------------------------------------------------ what is worth it */

RP_ORDER(by_gain, struct rp_opportunity, RP_DOWN(gain_ns), strcmp(a->what_if, b->what_if))

/* The next best text of the what-if [first, end) with a step longer than `above`; NULL if none
   brings enough. */
static const struct rp_change *next_best(const struct rp_worlds *x, const struct rp_changes *all,
                                         size_t first, size_t end, const struct rp_change *above)
{
    const struct rp_change *best = NULL;

    for (size_t i = first; i < end; i++) {
        const struct rp_change *c = &all->at[i];

        if (c->alone_ns == RP_ABSENT_I64 ||
            (double)(x->step_ns - c->alone_ns) < RP_OPPORTUNITY_LEAST * (double)x->step_ns ||
            (above &&
             (c->alone_ns < above->alone_ns || (c->alone_ns == above->alone_ns && c <= above))))
            continue;
        if (!best || c->alone_ns < best->alone_ns)
            best = c;
    }
    return best;
}

/* Whether a what-if has nothing to propose: advice about it may be simulated, but it is not a
   change that a user could make for that gain. */
static bool is_refused(const struct rp_changes *all, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        if (all->at[i].refused)
            return true;
    return false;
}

/* The texts of a what-if, among which the best is sought whose whole interval is a gain. */
struct contest {
    size_t first, end;
    const struct rp_change *now; /* the current one; NULL: none is left */
    bool settled;
    int64_t then[RP_WORLDS];
    struct rp_gain gain;
};

/* Several what-ifs, and the worlds that are run for them. */
struct contests {
    size_t n;
    struct contest **at;
    const int64_t *before; /* NULL if all worlds are run */
};

static enum rp_code run_others(struct rp_worlds *x, void *user, size_t i, struct rp_err *err)
{
    const struct contests *all = user;
    struct contest *c = all->at[i];

    return rp_worlds_others(x, c->now->text, &c->now->first, all->before, c->then, err);
}

static enum rp_code find_before(struct rp_worlds *x, int64_t before[RP_WORLDS], struct rp_err *err)
{
    const struct rp_change none = {.text = "", .first = {.step_ns = x->step_ns}};
    struct contest base = {.now = &none}, *at = &base;
    struct contests all = {1, &at, NULL};
    enum rp_code code = run_others(x, &all, 0, err);

    memcpy(before, base.then, sizeof base.then);
    return code;
}

/* Continues with the next best text of each what-if until all are settled. */
static enum rp_code settle(struct rp_worlds *x, const struct rp_changes *changes,
                           struct contest *list, size_t n, const int64_t before[RP_WORLDS],
                           struct rp_arena *arena, struct rp_err *err)
{
    struct contests all = {.at = RP_ARENA_NEW(arena, struct contest *, n + 1),
                           .before = x->outcomes.list.n ? NULL : before};

    RP_TRY(rp_arena_check(arena, "simulating", err));
    do {
        for (size_t i = all.n = 0; i < n; i++) {
            struct contest *c = &list[i];

            if (c->settled)
                continue;
            c->now = next_best(x, changes, c->first, c->end, c->now);
            c->settled = !c->now;
            if (c->now)
                all.at[all.n++] = c;
        }
        RP_TRY(rp_worlds_each(x, all.n, run_others, &all, err));
        for (size_t i = 0; i < all.n; i++) {
            all.at[i]->gain = rp_worlds_gain(x, before, all.at[i]->then, all.at[i]->now->text);
            all.at[i]->settled = all.at[i]->gain.low_ns > 0;
        }
    } while (all.n);
    return RP_OK;
}

static enum rp_code add_best(const struct rp_worlds *x, const struct contest *best,
                             struct rp_arena *arena, struct rp_opportunities *out,
                             struct rp_err *err)
{
    unsigned framework = x->run.parts[0]->recorder.framework;
    const struct rp_change *c = best->now;

    if (!c)
        return RP_OK;
    struct rp_opportunity *o = &out->at[out->n++];
    *o = (struct rp_opportunity){
        .row = c->row,
        .what_if = c->text,
        .apply = rp_whatif_apply_in(framework, c->row->name, rp_whatif_how(c->row, c->text)),
        .applies = rp_whatif_verdict_name(c->verdict),
        .because = c->because,
        .effort = c->row->move ? c->row->move->effort : 0,
        .step_ns = c->alone_ns,
        .gain_ns = best->gain.ns,
        .gain_low_ns = best->gain.low_ns,
        .gain_high_ns = best->gain.high_ns,
        .tries = best->gain.tries};
    return rp_whatif_assumes(c->text, framework, arena, &o->assumes, err);
}

/* Adds what-ifs that do not apply although there is something they could change, each once, after
   those that apply. */
static void add_refused(const struct rp_changes *changes, struct rp_opportunities *out)
{
    for (size_t i = 0; i < changes->n; i++) {
        const struct rp_change *c = &changes->at[i];

        if (c->verdict == RP_WHATIF_NOT)
            out->at[out->n + out->nrefused++] =
                (struct rp_opportunity){.row = c->row,
                                        .what_if = c->text,
                                        .applies = rp_whatif_verdict_name(c->verdict),
                                        .because = c->because,
                                        .gain_ns = RP_ABSENT_I64,
                                        .gain_low_ns = RP_ABSENT_I64,
                                        .gain_high_ns = RP_ABSENT_I64,
                                        .step_ns = RP_ABSENT_I64};
    }
}

enum rp_code rp_opportunities_find(struct rp_worlds *x, const struct rp_changes *changes,
                                   struct rp_arena *arena, struct rp_opportunities *out,
                                   struct rp_err *err)
{
    struct contest *list = RP_ARENA_NEW(arena, struct contest, changes->n + 1);
    int64_t before[RP_WORLDS];
    size_t i, end, n = 0;

    *out = (struct rp_opportunities){
        .at = RP_ARENA_NEW(arena, struct rp_opportunity, 2 * changes->n + 1)};
    RP_TRY(rp_arena_check(arena, "simulating", err));
    if (!changes->n)
        return RP_OK;
    if (rp_worlds_distrust(x)) {
        add_refused(changes, out);
        return RP_OK;
    }
    for (i = 0; i < changes->n; i = end) {
        for (end = i; end < changes->n && changes->at[end].row == changes->at[i].row;)
            end++;
        if (!is_refused(changes, i, end))
            list[n++] = (struct contest){.first = i, .end = end};
    }
    RP_TRY(find_before(x, before, err));
    RP_TRY(settle(x, changes, list, n, before, arena, err));
    for (i = 0; i < n; i++)
        RP_TRY(add_best(x, &list[i], arena, out, err));
    if (out->n)
        qsort(out->at, out->n, sizeof *out->at, by_gain);
    add_refused(changes, out);
    return rp_arena_check(arena, "simulating", err);
}
