/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search over what-ifs. A plan has at most one text of each what-if. The what-ifs that were
 * tried alone (sim/opportunities.h) are visited in the order of their gain: one after the other
 * gets its best text given the others, until nothing changes. The first opportunity stays in the
 * plan, so that the plan begins with the advice that 'report' gives first. The time of a plan is
 * remembered, so each plan is simulated once.
 */
#include "opt/optimize.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

struct slot {          /* a what-if */
    size_t first, end; /* its tries */
    size_t now;        /* the text that is chosen, or SIZE_MAX */
    bool stays;        /* it must stay in the plan */
};

struct known {
    uint64_t key;
    int64_t step_ns;
};

struct search {
    struct rp_worlds *x;
    struct rp_opt_limits *limits;
    const char *before; /* what-ifs that are already made, or "" */
    struct rp_arena *arena;
    RP_VEC(struct rp_change) tries;
    RP_VEC(struct slot) slots;
    RP_VEC(struct known) known;
    struct rp_err *err;
};

/* ------------------------------------------------------------------ plans */

/* Simulates the plan; INT64_MAX if two of its changes exclude each other. */
static enum rp_code plan_step(struct search *s, int64_t *step_ns)
{
    const char *text = s->before;

    for (size_t i = 0; i < s->slots.n; i++)
        if (s->slots.at[i].now != SIZE_MAX)
            text = rp_arena_textf(s->arena, "%s%s%s", text, *text ? "+" : "",
                                  s->tries.at[s->slots.at[i].now].text);
    uint64_t key = rp_hash_bytes(text, strlen(text));
    struct rp_err why = RP_ERR_INIT;

    RP_TRY(rp_arena_check(s->arena, "searching", s->err));
    for (size_t i = 0; i < s->known.n; i++)
        if (s->known.at[i].key == key) {
            *step_ns = s->known.at[i].step_ns;
            return RP_OK;
        }
    enum rp_code code = rp_worlds_step(s->x, text, step_ns, &why);
    if (code == RP_UNSUPPORTED || code == RP_USAGE)
        *step_ns = INT64_MAX;
    else if (code != RP_OK)
        return rp_err_set(s->err, code, "%s", why.text);
    return rp_vec_push(&s->known, ((struct known){key, *step_ns}), s->err);
}

/* ------------------------------------------------------------------ the best together */

static bool is_possible(const struct search *s, size_t k)
{
    return s->tries.at[k].alone_ns != RP_ABSENT_I64;
}

/* Finds the best text of a slot given the others, or none if no gain is worth it; *best is the time
   of the plan. */
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
    if (slot->stays && to == SIZE_MAX)
        to = was;
    else if (to != SIZE_MAX && !slot->stays &&
             (double)(without - least) < RP_OPT_LEAST_GAIN * (double)s->x->step_ns)
        to = SIZE_MAX;
    slot->now = to;
    RP_TRY(plan_step(s, best));
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

    for (int round = 0; round < ROUNDS_MOST && changed; round++) {
        changed = false;
        for (size_t i = 0; i < s->slots.n; i++) {
            if (rp_opt_over(s->limits))
                return RP_OK;
            RP_TRY(settle_slot(s, &s->slots.at[i], &best, &changed));
        }
    }
    return RP_OK;
}

/* The search begins with the texts of a plan that is resumed. */
static void resume_slots(struct search *s)
{
    const char *texts = s->limits->workspace ? s->limits->workspace->whatifs : NULL;

    for (size_t i = 0; texts && i < s->slots.n; i++)
        for (size_t k = s->slots.at[i].first; k < s->slots.at[i].end; k++)
            if (strstr(texts, s->tries.at[k].text) && is_possible(s, k))
                s->slots.at[i].now = k;
}

static bool wants_family(const struct rp_whatif *row, void *limits)
{
    return ((struct rp_opt_limits *)limits)->families >> rp_opt_family_of(row->move->family) & 1;
}

static bool is_over(void *limits)
{
    return rp_opt_over(limits);
}

enum rp_code rp_opt_try_whatifs(struct rp_worlds *x, struct rp_opt_limits *limits,
                                struct rp_arena *arena, struct rp_changes *out, struct rp_err *err)
{
    const struct rp_changes_asked asked = {.wants = wants_family, .over = is_over, .user = limits};

    return rp_changes_try(x, &asked, arena, out, err);
}

/* Returns the shortest step that one of a slot's texts gives alone. */
static int64_t best_alone(const struct search *s, const struct slot *slot)
{
    int64_t best = INT64_MAX;

    for (size_t k = slot->first; k < slot->end; k++)
        if (is_possible(s, k) && s->tries.at[k].alone_ns < best)
            best = s->tries.at[k].alone_ns;
    return best;
}

static int by_alone(const void *pa, const void *pb, void *search)
{
    const struct slot *a = pa, *b = pb;
    int64_t na = best_alone(search, a), nb = best_alone(search, b);

    return na != nb ? na < nb ? -1 : 1 : a->first < b->first ? -1 : a->first > b->first;
}

/* Puts the first opportunity into the plan, where it stays even if no time is left to search. */
static void take_first(const struct search *s, struct slot *slot,
                       const struct rp_opportunity *first)
{
    for (size_t k = slot->first; first && k < slot->end; k++)
        if (s->tries.at[k].row == first->row && !strcmp(s->tries.at[k].text, first->what_if)) {
            slot->now = k;
            slot->stays = true;
        }
}

/* Makes slots of the tried what-ifs; `first` is not left out. */
static enum rp_code take_tries(struct search *s, const struct rp_changes *tries,
                               const struct rp_opportunity *first)
{
    size_t i, end;

    for (i = 0; i < tries->n; i++)
        RP_TRY(rp_vec_push(&s->tries, tries->at[i], s->err));
    for (i = 0; i < tries->n; i = end) {
        struct slot slot = {.first = i, .now = SIZE_MAX};

        for (end = i; end < tries->n && tries->at[end].row == tries->at[i].row;)
            end++;
        slot.end = end;
        take_first(s, &slot, first);
        RP_TRY(rp_vec_push(&s->slots, slot, s->err));
    }
    if (s->slots.n)
        qsort_r(s->slots.at, s->slots.n, sizeof *s->slots.at, by_alone, s);
    return RP_OK;
}

enum rp_code rp_opt_combine_whatifs(struct rp_worlds *x, struct rp_opt_limits *limits,
                                    const char *before, const struct rp_opportunity *first,
                                    struct rp_arena *arena, struct rp_changes *tries,
                                    struct rp_err *err)
{
    struct search s = {.x = x, .limits = limits, .before = before, .arena = arena, .err = err};
    enum rp_code code = take_tries(&s, tries, first);

    if (code == RP_OK) {
        resume_slots(&s);
        code = settle(&s);
    }
    for (size_t i = 0; i < s.slots.n; i++)
        if (s.slots.at[i].now != SIZE_MAX)
            s.tries.at[s.slots.at[i].now].chosen = true;
    if (code == RP_OK && s.tries.n)
        memcpy(tries->at, s.tries.at, s.tries.n * sizeof *tries->at);
    rp_vec_release(&s.tries);
    rp_vec_release(&s.slots);
    rp_vec_release(&s.known);
    return code;
}
