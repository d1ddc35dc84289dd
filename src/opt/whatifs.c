/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search over what-ifs. Each what-if that a user can make proposes texts; a plan has at most
 * one text of each what-if. First every text is tried alone; then one what-if after the other gets
 * its best text given the others, until nothing changes. What a plan takes is remembered, so a plan
 * is simulated once.
 */
#include "opt/optimize.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

struct slot {          /* a what-if */
    size_t first, end; /* its tries */
    size_t now;        /* the one that is chosen, or SIZE_MAX */
};

struct known {
    uint64_t key;
    int64_t step_ns;
};

struct search {
    struct rp_opt_run *x;
    struct rp_opt_limits *limits;
    const char *before; /* what-ifs that are there already, or "" */
    struct rp_arena *arena;
    RP_VEC(struct rp_opt_try) tries;
    RP_VEC(struct slot) slots;
    RP_VEC(struct known) known;
    struct rp_err *err;
};

/* ------------------------------------------------------------------ what is tried */

static enum rp_code add_slot(struct search *s, const struct rp_whatif *row)
{
    rp_whatif_texts texts = {0};
    struct rp_err why = RP_ERR_INIT;
    enum rp_code code = row->move->propose ? row->move->propose(&s->x->run, s->arena, &texts, &why)
                                           : rp_vec_push(&texts, row->name, &why);
    struct slot slot = {s->tries.n, s->tries.n + texts.n, SIZE_MAX};
    struct rp_opt_try none = {.row = row,
                              .family = rp_opt_family_of(row->move->family),
                              .text = row->name,
                              .alone_ns = RP_ABSENT_I64};
    size_t i;

    if (code == RP_UNSUPPORTED) {
        none.impossible = rp_arena_text(s->arena, why.text);
        rp_vec_release(&texts);
        return rp_vec_push(&s->tries, none, s->err);
    }
    if (code != RP_OK)
        rp_err_set(s->err, code, "%s", why.text);

    for (i = 0; code == RP_OK && i < texts.n; i++) {
        struct rp_opt_try t = {.row = row,
                               .family = rp_opt_family_of(row->move->family),
                               .text = texts.at[i],
                               .alone_ns = RP_ABSENT_I64};

        code = rp_vec_push(&s->tries, t, s->err);
    }
    if (code == RP_OK && texts.n)
        code = rp_vec_push(&s->slots, slot, s->err);
    rp_vec_release(&texts);
    return code;
}

static int by_effort(const void *pa, const void *pb)
{
    const struct rp_whatif *a = *(const struct rp_whatif *const *)pa;
    const struct rp_whatif *b = *(const struct rp_whatif *const *)pb;

    return a->move->effort < b->move->effort ? -1 : a->move->effort > b->move->effort;
}

static enum rp_code add_slots(struct search *s)
{
    const struct rp_whatif *rows[64];
    size_t i, n = 0;

    for (i = 0; rp_whatifs[i] && n < sizeof rows / sizeof rows[0]; i++) {
        const struct rp_whatif_move *m = rp_whatifs[i]->move;

        if (m && s->limits->families >> rp_opt_family_of(m->family) & 1)
            rows[n++] = rp_whatifs[i];
    }
    qsort((void *)rows, n, sizeof rows[0], by_effort);
    for (i = 0; i < n; i++)
        RP_TRY(add_slot(s, rows[i]));
    return RP_OK;
}

/* ------------------------------------------------------------------ plans */

/* The texts of a plan, joined. */
static const char *plan_text(const struct search *s)
{
    const char *text = s->before;
    size_t i;

    for (i = 0; i < s->slots.n; i++)
        if (s->slots.at[i].now != SIZE_MAX)
            text = rp_arena_textf(s->arena, "%s%s%s", text, *text ? "+" : "",
                                  s->tries.at[s->slots.at[i].now].text);
    return text;
}

/* What the plan takes; INT64_MAX where two of its changes do not go together. */
static enum rp_code plan_step(struct search *s, int64_t *step_ns)
{
    const char *text = plan_text(s);
    uint64_t key = rp_hash_bytes(text, strlen(text));
    struct rp_err why = RP_ERR_INIT;
    enum rp_code code;
    size_t i;

    RP_TRY(rp_arena_check(s->arena, "searching", s->err));
    for (i = 0; i < s->known.n; i++)
        if (s->known.at[i].key == key) {
            *step_ns = s->known.at[i].step_ns;
            return RP_OK;
        }
    code = rp_opt_run_step(s->x, text, step_ns, &why);
    if (code == RP_UNSUPPORTED || code == RP_USAGE)
        *step_ns = INT64_MAX;
    else if (code != RP_OK)
        return rp_err_set(s->err, code, "%s", why.text);
    return rp_vec_push(&s->known, ((struct known){key, *step_ns}), s->err);
}

static enum rp_code try_alone(struct search *s)
{
    size_t i, k;

    for (i = 0; i < s->slots.n; i++)
        for (k = s->slots.at[i].first; k < s->slots.at[i].end; k++) {
            struct rp_opt_try *t = &s->tries.at[k];
            struct rp_err why = RP_ERR_INIT;
            enum rp_code code;

            if (rp_opt_over(s->limits)) {
                t->impossible = "the search ended before it was tried";
                continue;
            }
            code = rp_opt_run_step(s->x, t->text, &t->alone_ns, &why);
            if (code == RP_OK)
                continue;
            if (code != RP_UNSUPPORTED)
                return rp_err_set(s->err, code, "%s", why.text);
            t->alone_ns = RP_ABSENT_I64;
            t->impossible = rp_arena_text(s->arena, why.text);
        }
    return RP_OK;
}

/* ------------------------------------------------------------------ the best together */

static bool is_possible(const struct search *s, size_t k)
{
    return s->tries.at[k].alone_ns != RP_ABSENT_I64;
}

/* The best text of a slot given the others; *best is what the plan takes. Without a gain that is
   worth it none. */
static enum rp_code settle_slot(struct search *s, struct slot *slot, int64_t *best, bool *changed)
{
    size_t k, was = slot->now, to = SIZE_MAX;
    int64_t without, least;

    slot->now = SIZE_MAX;
    RP_TRY(plan_step(s, &without));
    least = without;
    for (k = slot->first; k < slot->end; k++) {
        int64_t step;

        if (!is_possible(s, k))
            continue;
        slot->now = k;
        RP_TRY(plan_step(s, &step));
        s->tries.at[k].clashes = step == INT64_MAX;
        if (step < least) {
            least = step;
            to = k;
        }
    }
    if (to != SIZE_MAX && (double)(without - least) < RP_OPT_LEAST_GAIN * (double)s->x->step_ns)
        to = SIZE_MAX;
    slot->now = to;
    *best = to == SIZE_MAX ? without : least;
    if (s->limits->workspace)
        rp_opt_workspace_point(s->limits->workspace, (int64_t)s->x->evaluated, (double)*best);
    *changed |= to != was;
    return RP_OK;
}

static enum rp_code settle(struct search *s)
{
    enum { ROUNDS_MOST = 8 };
    bool changed = true;
    int64_t best;
    size_t i;
    int round;

    for (round = 0; round < ROUNDS_MOST && changed; round++) {
        changed = false;
        for (i = 0; i < s->slots.n; i++) {
            if (rp_opt_over(s->limits))
                return RP_OK;
            RP_TRY(settle_slot(s, &s->slots.at[i], &best, &changed));
        }
    }
    return RP_OK;
}

/* The texts of a plan that is resumed are where the search begins. */
static void resume_slots(struct search *s)
{
    const char *texts = s->limits->workspace ? s->limits->workspace->whatifs : NULL;
    size_t i, k;

    for (i = 0; texts && i < s->slots.n; i++)
        for (k = s->slots.at[i].first; k < s->slots.at[i].end; k++)
            if (strstr(texts, s->tries.at[k].text) && is_possible(s, k))
                s->slots.at[i].now = k;
}

enum rp_code rp_opt_try_whatifs(struct rp_opt_run *x, struct rp_opt_limits *limits,
                                struct rp_arena *arena, struct rp_opt_tries *out,
                                struct rp_err *err)
{
    struct search s = {.x = x, .limits = limits, .before = "", .arena = arena, .err = err};
    enum rp_code code = add_slots(&s);

    if (code == RP_OK)
        code = try_alone(&s);
    *out = (struct rp_opt_tries){s.tries.n, RP_ARENA_NEW(arena, struct rp_opt_try, s.tries.n + 1)};
    if (code == RP_OK)
        code = rp_arena_check(arena, "searching", err);
    if (code == RP_OK && s.tries.n)
        memcpy(out->at, s.tries.at, s.tries.n * sizeof *out->at);
    rp_vec_release(&s.tries);
    rp_vec_release(&s.slots);
    return code;
}

/* What was tried, as slots again. */
static enum rp_code take_tries(struct search *s, const struct rp_opt_tries *tries)
{
    size_t i, end;

    for (i = 0; i < tries->n; i++)
        RP_TRY(rp_vec_push(&s->tries, tries->at[i], s->err));
    for (i = 0; i < tries->n; i = end) {
        for (end = i; end < tries->n && tries->at[end].row == tries->at[i].row;)
            end++;
        RP_TRY(rp_vec_push(&s->slots, ((struct slot){i, end, SIZE_MAX}), s->err));
    }
    return RP_OK;
}

enum rp_code rp_opt_combine_whatifs(struct rp_opt_run *x, struct rp_opt_limits *limits,
                                    const char *first, struct rp_arena *arena,
                                    struct rp_opt_tries *tries, struct rp_err *err)
{
    struct search s = {.x = x, .limits = limits, .before = first, .arena = arena, .err = err};
    enum rp_code code = take_tries(&s, tries);
    size_t i;

    if (code == RP_OK) {
        resume_slots(&s);
        code = settle(&s);
    }
    for (i = 0; i < s.slots.n; i++)
        if (s.slots.at[i].now != SIZE_MAX)
            s.tries.at[s.slots.at[i].now].chosen = true;
    if (code == RP_OK && s.tries.n)
        memcpy(tries->at, s.tries.at, s.tries.n * sizeof *tries->at);
    rp_vec_release(&s.tries);
    rp_vec_release(&s.slots);
    rp_vec_release(&s.known);
    return code;
}
