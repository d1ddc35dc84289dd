/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repeats of a block without names. Operations get a colour: first their own looks, then, step by
 * step, also the colours of what they read and who reads them (the refinement of Weisfeiler and
 * Leman). A small radius makes operations of different blocks of a layer alike, a large one sets
 * the first and the last layers apart from the middle ones; so the number of layers is taken from
 * the whole computation (the class size that most operations have), and every operation takes the
 * radius at which its class comes nearest to that.
 *
 * Alike operations are counted in the order of the data flow, as late as their readers allow:
 * parameters and what is made of them stand with the layer that reads them, wherever the file has
 * them. Linear but for one sort.
 */
#include "explain/program_repeat.h"

#include "program/order.h"

#include <stdlib.h>
#include <string.h>

enum { RADII = 6, TYPICAL_RADIUS = 3, MOST_USERS = 16 };

struct refine {
    const struct rp_match_side *side;
    const struct rp_computation *c;
    struct rp_arena *arena;
    struct rp_err *err;
    uint64_t *color[RADII];
    uint32_t *class[RADII]; /* of an operation */
    uint32_t *size[RADII];  /* of a class */
    uint32_t *index[RADII]; /* of an operation in its class, from 1 */
    uint32_t *order;        /* positions, earliest in the data flow first */
};

static enum rp_code prepare(struct refine *r)
{
    size_t n = r->c->n;

    for (unsigned k = 0; k < RADII; k++) {
        r->color[k] = RP_ARENA_NEW(r->arena, uint64_t, n);
        r->class[k] = RP_ARENA_NEW(r->arena, uint32_t, n);
        r->size[k] = RP_ARENA_NEW(r->arena, uint32_t, n);
        r->index[k] = RP_ARENA_NEW(r->arena, uint32_t, n);
        if (!r->color[k] || !r->class[k] || !r->size[k] || !r->index[k])
            return rp_err_nomem(r->err, "finding repeats");
    }
    r->order = RP_ARENA_NEW(r->arena, uint32_t, n);
    return r->order ? RP_OK : rp_err_nomem(r->err, "finding repeats");
}

/* The colour one step further; users have no order, and those of constants say nothing. */
static uint64_t refined(const struct refine *r, const uint64_t *color, uint32_t i)
{
    const struct rp_match_side *s = r->side;
    uint32_t op = r->c->first + i, from = s->user_begin[op], to = s->user_begin[op + 1];
    struct rp_ids operands = rp_op_operands(s->p, op);
    uint64_t hash = rp_hash_u64(color[i]), sum = 0;

    for (uint32_t k = 0; k < operands.n; k++)
        hash = rp_hash_mix(hash, color[operands.at[k] - r->c->first] ^ 0x9e3779b97f4a7c15);
    for (uint32_t k = from; k < to && to - from <= MOST_USERS; k++)
        sum += rp_hash_u64(color[s->users[k] - r->c->first]);
    return rp_hash_mix(hash, sum ^ 0xd1342543de82ef95);
}

static enum rp_code classify(struct refine *r, unsigned radius)
{
    struct rp_map classes;
    uint32_t fresh = 0;
    enum rp_code code = RP_OK;

    rp_map_init(&classes);
    for (uint32_t i = 0; code == RP_OK && i < r->c->n; i++) {
        code = rp_map_intern(&classes, r->color[radius][i], fresh, &r->class[radius][i], r -> err);
        if (code == RP_OK) {
            fresh += r->class[radius][i] == fresh;
            r->size[radius][r->class[radius][i]]++;
        }
    }
    rp_map_release(&classes);
    return code;
}

/* ---- order ---- */

struct late {
    uint32_t level, position;
};

static int by_level(const void *x, const void *y)
{
    const struct late *a = x, *b = y;

    if (a->level != b->level)
        return a->level < b->level ? -1 : 1;
    return (a->position > b->position) - (a->position < b->position);
}

/* Levels: one below the lowest reader; what nobody reads stands right behind what it reads. */
static void find_levels(const struct refine *r, const uint32_t *topological, uint32_t *depth,
                        struct late *late)
{
    const struct rp_match_side *s = r->side;
    uint32_t first = r->c->first, n = r->c->n;

    for (uint32_t k = 0; k < n; k++) {
        struct rp_ids operands = rp_op_operands(s->p, topological[k]);
        uint32_t most = 0;

        for (uint32_t i = 0; i < operands.n; i++)
            if (depth[operands.at[i] - first] > most)
                most = depth[operands.at[i] - first];
        depth[topological[k] - first] = most + 1;
    }
    for (uint32_t k = n; k-- > 0;) {
        uint32_t op = topological[k], level = UINT32_MAX;

        for (uint32_t u = s->user_begin[op]; u < s->user_begin[op + 1]; u++)
            if (late[s->users[u] - first].level && late[s->users[u] - first].level < level)
                level = late[s->users[u] - first].level;
        late[op - first].level = level == UINT32_MAX ? depth[op - first] : level - (level > 1);
        late[op - first].position = op - first;
    }
}

static enum rp_code order_by_flow(struct refine *r, uint32_t computation)
{
    uint32_t n = r->c->n;
    uint32_t *topological = RP_ARENA_NEW(r->arena, uint32_t, n);
    uint32_t *depth = RP_ARENA_NEW(r->arena, uint32_t, n);
    struct late *late = RP_ARENA_NEW(r->arena, struct late, n);

    if (!topological || !depth || !late)
        return rp_err_nomem(r->err, "finding repeats");
    RP_TRY(rp_computation_order(r->side->p, computation, r->arena, topological, r->err));
    find_levels(r, topological, depth, late);
    qsort(late, n, sizeof *late, by_level);
    for (uint32_t i = 0; i < n; i++)
        r->order[i] = late[i].position;
    return RP_OK;
}

static enum rp_code number(struct refine *r, unsigned radius)
{
    uint32_t *next = RP_ARENA_NEW(r->arena, uint32_t, r->c->n);

    if (!next)
        return rp_err_nomem(r->err, "finding repeats");
    for (uint32_t k = 0; k < r->c->n; k++) {
        uint32_t i = r->order[k];

        r->index[radius][i] = ++next[r->class[radius][i]];
    }
    return RP_OK;
}

/* ---- layers ---- */

/* The class size above 1 that most operations have; 0 where there is none. */
static enum rp_code layers_of(const struct refine *r, uint32_t *layers)
{
    uint32_t *covered = RP_ARENA_NEW(r->arena, uint32_t, (size_t)r->c->n + 1);
    uint32_t best = 0;

    *layers = 0;
    if (!covered)
        return rp_err_nomem(r->err, "finding repeats");
    for (uint32_t i = 0; i < r->c->n; i++)
        covered[r->size[TYPICAL_RADIUS][r->class[TYPICAL_RADIUS][i]]]++;
    for (uint32_t size = 2; size <= r->c->n; size++)
        if (covered[size] > best) {
            best = covered[size];
            *layers = size;
        }
    return RP_OK;
}

static struct rp_repeat choose(const struct refine *r, uint32_t i, uint32_t layers)
{
    struct rp_repeat best = {.count = 1, .index = 1, .off = UINT32_MAX};

    for (unsigned k = 0; k < RADII; k++) {
        uint32_t size = r->size[k][r->class[k][i]];
        uint32_t distance = size > layers ? size - layers : layers - size;

        if (size > 1 && distance < best.off)
            best = (struct rp_repeat){r->color[k][i], r->index[k][i], size, distance};
    }
    return best;
}

enum rp_code rp_repeats_find(const struct rp_match_side *side, uint32_t computation,
                             struct rp_arena *arena, struct rp_repeat **out, struct rp_err *err)
{
    struct refine r = {
        .side = side, .c = &side->p->computations.at[computation], .arena = arena, .err = err};
    uint32_t layers;

    *out = RP_ARENA_NEW(arena, struct rp_repeat, (size_t)r.c->n + 1);
    if (!*out)
        return rp_err_nomem(err, "finding repeats");
    if (!r.c->n)
        return RP_OK;
    RP_TRY(prepare(&r));
    RP_TRY(order_by_flow(&r, computation));
    for (unsigned k = 0; k < RADII; k++) {
        for (uint32_t i = 0; i < r.c->n; i++)
            r.color[k][i] = k ? refined(&r, r.color[k - 1], i) : side->hashes.local[r.c->first + i];
        RP_TRY(classify(&r, k));
        RP_TRY(number(&r, k));
    }
    RP_TRY(layers_of(&r, &layers));
    for (uint32_t i = 0; i < r.c->n; i++)
        (*out)[i] = choose(&r, i, layers);
    return RP_OK;
}
