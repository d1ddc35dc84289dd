/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds stacks of layers by content. The children of a group are a sequence of hashes, in the order
 * of the data flow; a stack is a run that is equal to itself one period later. Distances between
 * equal neighbours vote for periods, the best are tried, and the runs that save most boxes win. A
 * layer may begin anywhere in its period, so it begins where the fewest values cross.
 */
#include "base/order.h"
#include "draw/tree_build.h"

#include <stdlib.h>
#include <string.h>

enum {
    FEWEST_CHILDREN = 12,
    PERIODS = 40, /* the most that are tried */
    FEWEST_VOTES = 3,
    SMALLEST = 100,    /* a stack saves at least this part of the boxes of its group */
    SHORTEST = 3,      /* the shortest period of operations; groups may repeat one by one */
    SHORTEST_PAIR = 12 /* the same if there are only two layers */
};

struct run {
    uint32_t begin, n, period;
    uint32_t saved; /* number of children that need not be shown */
};

struct sequence {
    struct rp_tree_build *b;
    uint32_t group, n;
    const uint32_t *child;
    uint64_t *symbol;
    int32_t *crossing; /* number of values that cross the border before an element */
    RP_VEC(struct run) runs;
};

static uint64_t symbol_of(const struct rp_tree_build *b, uint32_t child)
{
    return child < b->p->nops ? b->content[child] : b->groups.at[child - b->p->nops].hash;
}

struct vote {
    uint32_t period, votes;
};

RP_ORDER(by_votes, struct vote, RP_DOWN(votes), RP_UP(period))

static enum rp_code count_votes(struct sequence *s, struct rp_map *last, struct vote *votes)
{
    struct rp_err *err = s->b->err;

    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t before = rp_map_get(last, s->symbol[i]);

        if (before != RP_MAP_NONE)
            votes[i - before].votes++;
        RP_TRY(rp_map_put(last, s->symbol[i], i, err));
    }
    for (uint32_t i = 0; i <= s->n; i++)
        votes[i].period = i;
    qsort(votes, s->n, sizeof *votes, by_votes);
    return RP_OK;
}

static bool is_worth(const struct sequence *s, const struct run *run)
{
    uint32_t copies = run->period ? run->n / run->period : 0;

    if (copies < 2 || run->n - run->period < s->n / SMALLEST)
        return false;
    if (run->period < SHORTEST) /* only of groups */
        return copies >= 3 && s->child[run->begin] >= s->b->p->nops;
    return copies >= 3 ? run->n >= FEWEST_CHILDREN : run->period >= SHORTEST_PAIR;
}

static enum rp_code add_run(struct sequence *s, uint32_t begin, uint32_t equal, uint32_t period)
{
    struct run run = {begin, equal + period, period, equal};

    return equal >= period && is_worth(s, &run) ? rp_vec_push(&s->runs, run, s->b->err) : RP_OK;
}

RP_ORDER(by_saving, struct run, RP_DOWN(saved), RP_UP(period), RP_UP(begin))

/* ---- where a layer begins ---- */

static uint32_t element_of(const struct sequence *s, uint32_t op, const uint32_t *index)
{
    const struct rp_group *groups = s->b->groups.at;
    uint32_t g = s->b->home[op], child = op;

    while (g != s->group && g != RP_NONE) {
        child = s->b->p->nops + g;
        g = groups[g].parent;
    }
    return g == RP_NONE ? RP_NONE : index[child];
}

/* Counts only values of the neighbourhood, because those that the backward pass reads cross every
   border. */
static enum rp_code count_crossings(struct sequence *s)
{
    struct rp_tree_build *b = s->b;
    const struct rp_tree_list *list = &b->lists.at[s->group];
    size_t n = b->p->nops + b->groups.n;

    RP_TRY(rp_vec_reserve(&b->index, n + 1, b->err));
    while (b->index.n <= n)
        b->index.at[b->index.n++] = RP_NONE;
    uint32_t *index = b->index.at;
    for (uint32_t i = 0; i < s->n; i++)
        index[s->child[i]] = i;
    for (uint32_t i = list->begin; i < list->end; i++) {
        uint32_t op = b->order_in[i], to = element_of(s, op, index);
        struct rp_ids operands = rp_op_operands(b->p, op);

        for (uint32_t k = 0; to != RP_NONE && k < operands.n; k++) {
            uint32_t from = element_of(s, operands.at[k], index);

            if (from == RP_NONE || from >= to || to - from > 400)
                continue;
            s->crossing[from + 1]++;
            s->crossing[to + 1]--;
        }
    }
    for (uint32_t i = 1; i <= s->n; i++)
        s->crossing[i] += s->crossing[i - 1];
    for (uint32_t i = 0; i < s->n; i++) /* clears the counts for the next group */
        index[s->child[i]] = RP_NONE;
    return RP_OK;
}

/* Finds the first element of the first layer; one layer may be given up for a better border. */
static uint32_t layer_begin(const struct sequence *s, const struct run *run)
{
    uint32_t copies = run->n / run->period, best = 0, rest = run->n % run->period;

    for (uint32_t off = 0; off < run->period; off++) {
        int32_t here = s->crossing[run->begin + off + run->period];
        int32_t least = s->crossing[run->begin + best + run->period];

        if (off > rest && copies < 4)
            break;
        if (here < least)
            best = off;
    }
    return run->begin + best;
}

/* ---- groups ---- */

static const char *stack_name(struct rp_tree_build *b, uint32_t first, uint32_t last)
{
    if (first < b->p->nops || last < b->p->nops)
        return "";
    const char *a = b->groups.at[first - b->p->nops].name;
    const char *z = b->groups.at[last - b->p->nops].name;
    return *a && *z ? rp_arena_textf(b->arena, "%s … %s", a, z) : "";
}

static enum rp_code make_layers(struct sequence *s, const struct run *run)
{
    struct rp_tree_build *b = s->b;
    uint32_t begin = layer_begin(s, run);
    uint32_t copies = (run->begin + run->n - begin) / run->period, stack, layer;

    if (copies < 2)
        return RP_OK;
    RP_TRY(rp_tree_add(
        b, s->group, RP_GROUP_REPEAT,
        run->period > 1 ? "" : stack_name(b, s->child[begin], s->child[begin + copies - 1]),
        &stack));
    for (uint32_t i = 0; i < copies; i++, begin += run->period) {
        if (run->period > 1)
            RP_TRY(rp_tree_wrap(b, s->child + begin, run->period, stack, RP_GROUP_LAYER, i + 1,
                                &layer));
        else
            b->groups.at[s->child[begin] - b->p->nops].parent = stack;
    }
    return RP_OK;
}

/* Finds the longest part of a run that is still free. */
static bool trim_run(struct sequence *s, struct run *run, const uint8_t *taken)
{
    uint32_t best = 0, at = run->begin, n = 0;

    for (uint32_t i = run->begin; i < run->begin + run->n; i++) {
        n = taken[i] ? 0 : n + 1;
        if (n > best) {
            best = n;
            at = i + 1 - n;
        }
    }
    run->begin = at;
    run->n = best;
    return is_worth(s, run);
}

static enum rp_code search_sequence(struct sequence *s, struct rp_map *last)
{
    struct rp_arena *arena = s->b->arena;
    struct vote *votes = RP_ARENA_NEW(arena, struct vote, (size_t)s->n + 1);
    uint8_t *taken = RP_ARENA_NEW(arena, uint8_t, (size_t)s->n + 1);

    s->symbol = RP_ARENA_NEW(arena, uint64_t, (size_t)s->n + 1);
    s->crossing = RP_ARENA_NEW(arena, int32_t, (size_t)s->n + 2);
    RP_TRY(rp_err_need(votes && taken && s->symbol && s->crossing, s->b->err, "finding repeats"));
    for (uint32_t i = 0; i < s->n; i++)
        s->symbol[i] = symbol_of(s->b, s->child[i]);
    RP_TRY(count_votes(s, last, votes));
    for (uint32_t i = 0; i < s->n && i < PERIODS && votes[i].votes >= FEWEST_VOTES; i++)
        if (votes[i].period) {
            uint32_t period = votes[i].period;
            uint32_t equal = 0, k;

            for (k = 0; k + period < s->n; k++) {
                if (s->symbol[k] == s->symbol[k + period]) {
                    equal++;
                    continue;
                }
                RP_TRY(add_run(s, k - equal, equal, period));
                equal = 0;
            }
            RP_TRY(add_run(s, k - equal, equal, period));
        }
    if (!s->runs.n)
        return RP_OK;
    RP_TRY(count_crossings(s));

    qsort(s->runs.at, s->runs.n, sizeof *s->runs.at, by_saving);
    for (size_t i = 0; i < s->runs.n; i++) {
        struct run run = s->runs.at[i];
        if (!trim_run(s, &run, taken))
            continue;
        memset(taken + run.begin, 1, run.n);
        RP_TRY(make_layers(s, &run));
    }
    return RP_OK;
}

enum rp_code rp_tree_find_repeats(struct rp_tree_build *b)
{
    size_t n = b->groups.n;
    enum rp_code code = RP_OK;

    for (uint32_t g = 0; code == RP_OK && g < n; g++) {
        struct sequence s = {.b = b, .group = g};
        struct rp_map last;

        /* Lists the children that are more than data in b->found. */
        const struct rp_tree_list *list = &b->lists.at[g];
        b->found.n = 0;
        RP_TRY(rp_vec_reserve(&b->found, (size_t)list->n + 1, b->err));
        for (uint32_t k = 0, child = list->first; k < list->n; k++, child = b->next.at[child])
            if (child >= b->p->nops ? b->lists.at[child - b->p->nops].works
                                    : !rp_tree_is_data(b->p, child))
                b->found.at[b->found.n++] = child;
        s.n = (uint32_t)b->found.n;
        s.child = b->found.at;
        if (s.n < SHORTEST)
            continue;
        rp_map_init(&last);
        code = search_sequence(&s, &last);
        rp_map_release(&last);
        rp_vec_release(&s.runs);
    }
    return code;
}
