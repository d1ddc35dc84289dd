/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds repeated blocks without using names. Every operation gets a colour: first its local hash,
 * then, step by step, combined with the colours of its operands and users (Weisfeiler-Leman
 * refinement). With a small radius, operations of different blocks of a layer share a colour; a
 * large radius separates the first and last layers from the middle ones. In a layered program,
 * operations of a colour class are evenly spaced in the data flow, one in every layer. The most
 * common size of such classes is the number of layers, and an operation uses the radius at which
 * its class is evenly spaced and closest to that size.
 *
 * Operations of a class are numbered in data-flow order, as late as their users allow: parameters,
 * and operations that depend only on them, are placed with the layer that uses them, wherever they
 * are in the file. Linear except for one sort.
 */
#include "explain/program_diff/place.h"

#include "base/order.h"
#include "program/order.h"

#include <stdlib.h>

enum { RADII = 6, SMALL_RADII = 3, MOST_USERS = 16 };

struct refinement {
    const struct rp_match_side *side;
    const struct rp_computation *c;
    struct rp_arena *arena;
    struct rp_err *err;
    uint64_t *color[RADII];
    uint32_t *class[RADII]; /* of an operation */
    uint32_t *size[RADII];  /* of a class */
    uint32_t *index[RADII]; /* by operation: its number in its class, from 1 */
    bool *even[RADII];      /* by class: whether its members are evenly spaced */
    uint32_t *order;        /* positions, earliest in the data flow first */
    uint32_t *level;        /* by operation: its level in the data flow */
};

static enum rp_code refinement_init(struct refinement *r)
{
    size_t n = r->c->n;

    for (unsigned k = 0; k < RADII; k++) {
        r->color[k] = RP_ARENA_NEW(r->arena, uint64_t, n);
        r->class[k] = RP_ARENA_NEW(r->arena, uint32_t, n);
        r->size[k] = RP_ARENA_NEW(r->arena, uint32_t, n);
        r->index[k] = RP_ARENA_NEW(r->arena, uint32_t, n);
        r->even[k] = RP_ARENA_NEW(r->arena, bool, n);
        RP_TRY(rp_err_need(r->color[k] && r->class[k] && r->size[k] && r->index[k] && r->even[k],
                           r->err, "finding repeats"));
    }
    r->order = RP_ARENA_NEW(r->arena, uint32_t, n);
    r->level = RP_ARENA_NEW(r->arena, uint32_t, n);
    return rp_err_need(r->order && r->level, r->err, "finding repeats");
}

/* The colour one step further; users are unordered, and those of constants are not a clue. */
static uint64_t refine_color(const struct refinement *r, const uint64_t *color, uint32_t i)
{
    const struct rp_match_side *s = r->side;
    uint32_t op = r->c->first + i, from = s->user_begin[op], to = s->user_begin[op + 1];
    struct rp_ids operands = rp_op_operands(s->p, op);
    uint64_t hash = rp_hash_u64(color[i]), sum = 0;

    for (uint32_t k = 0; k < operands.n; k++)
        hash = rp_hash_join(hash, color[operands.at[k] - r->c->first] ^ 0x9e3779b97f4a7c15);
    for (uint32_t k = from; k < to && to - from <= MOST_USERS; k++)
        sum += rp_hash_u64(color[s->users[k] - r->c->first]);
    return rp_hash_join(hash, sum ^ 0xd1342543de82ef95);
}

static enum rp_code classify(struct refinement *r, unsigned radius)
{
    RP_SCOPED(rp_map_release) struct rp_map classes = {0};
    uint32_t fresh = 0;

    for (uint32_t i = 0; i < r->c->n; i++) {
        RP_TRY(rp_map_intern(&classes, r->color[radius][i], fresh, &r->class[radius][i], r -> err));
        fresh += r->class[radius][i] == fresh;
        r->size[radius][r->class[radius][i]]++;
    }
    return RP_OK;
}

/* ---- order ---- */

struct late {
    uint32_t level, position;
};

RP_ORDER(by_level, struct late, RP_UP(level), RP_UP(position))

/* Finds levels: one below the lowest user; operations without users come right after their
   operands. */
static void find_levels(const struct refinement *r, const uint32_t *topological, uint32_t *depth,
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

static enum rp_code order_by_flow(struct refinement *r, uint32_t computation)
{
    uint32_t n = r->c->n;
    uint32_t *topological = RP_ARENA_NEW(r->arena, uint32_t, n);
    uint32_t *depth = RP_ARENA_NEW(r->arena, uint32_t, n);
    struct late *late = RP_ARENA_NEW(r->arena, struct late, n);

    RP_TRY(rp_err_need(topological && depth && late, r->err, "finding repeats"));
    RP_TRY(rp_computation_order(r->side->p, computation, r->arena, topological, r->err));
    find_levels(r, topological, depth, late);
    for (uint32_t i = 0; i < n; i++)
        r->level[i] = late[i].level;
    qsort(late, n, sizeof *late, by_level);
    for (uint32_t i = 0; i < n; i++)
        r->order[i] = late[i].position;
    return RP_OK;
}

struct spacing { /* spacing: state of a class while its members are visited */
    uint32_t n, last, gap;
    bool uneven;
};

/* Numbers the members of every class and checks the distances between them; the first and the last
   distance may differ, because of what surrounds the layers. */
static enum rp_code number_members(struct refinement *r, unsigned radius)
{
    struct spacing *spacing = RP_ARENA_NEW(r->arena, struct spacing, r->c->n);

    RP_TRY(rp_err_need(spacing, r->err, "finding repeats"));
    for (uint32_t k = 0; k < r->c->n; k++) {
        uint32_t i = r->order[k], class = r->class[radius][i];
        struct spacing *s = &spacing[class];
        uint32_t gap = r->level[i] - s->last;

        r->index[radius][i] = ++s->n;
        if (s->n > 1 && gap == 0)
            s->uneven = true;
        if (s->n > 2 && s->gap && gap != s->gap && s->n < r->size[radius][class])
            s->uneven = true;
        if (s->n > 2 && !s->gap)
            s->gap = gap;
        s->last = r->level[i];
    }
    for (uint32_t class = 0; class < r->c->n; class ++)
        r->even[radius][class] = spacing[class].n > 2 && !spacing[class].uneven;
    return RP_OK;
}

/* ---- layers ---- */

/* The most common class size at small radii, among evenly spaced classes or all larger than 1; 0:
   none. */
static enum rp_code common_size(const struct refinement *r, bool even, uint32_t *size)
{
    uint32_t *covered = RP_ARENA_NEW(r->arena, uint32_t, (size_t)r->c->n + 1);
    uint32_t best = 0;

    *size = 0;
    RP_TRY(rp_err_need(covered, r->err, "finding repeats"));
    for (unsigned k = 0; k < SMALL_RADII; k++)
        for (uint32_t i = 0; i < r->c->n; i++)
            if (!even || r->even[k][r->class[k][i]])
                covered[r->size[k][r->class[k][i]]]++;
    for (uint32_t n = 2; n <= r->c->n; n++)
        if (covered[n] > best) {
            best = covered[n];
            *size = n;
        }
    return RP_OK;
}

/* Chooses the class whose size is closest to the number of layers; evenly spaced ones are
   preferred. */
static struct rp_repeat choose_repeat(const struct refinement *r, uint32_t i, uint32_t layers)
{
    struct rp_repeat best = {.count = 1, .index = 1, .off = UINT32_MAX};
    bool even = false;

    for (unsigned k = 0; k < RADII; k++) {
        uint32_t class = r->class[k][i], size = r->size[k][class];
        uint32_t off = size > layers ? size - layers : layers - size;

        if (size < 2 || (even && !r->even[k][class]))
            continue;
        if (off < best.off || (!even && r->even[k][class]))
            best = (struct rp_repeat){r->color[k][i], r->index[k][i], size, off};
        even |= r->even[k][class];
    }
    return best;
}

enum rp_code rp_repeats_find(const struct rp_match_side *side, uint32_t computation,
                             struct rp_arena *arena, struct rp_repeat **out, struct rp_err *err)
{
    struct refinement r = {
        .side = side, .c = &side->p->computations.at[computation], .arena = arena, .err = err};
    uint32_t layers;

    *out = RP_ARENA_NEW(arena, struct rp_repeat, (size_t)r.c->n + 1);
    RP_TRY(rp_err_need(*out, err, "finding repeats"));
    if (!r.c->n)
        return RP_OK;
    RP_TRY(refinement_init(&r));
    RP_TRY(order_by_flow(&r, computation));
    for (unsigned k = 0; k < RADII; k++) {
        for (uint32_t i = 0; i < r.c->n; i++)
            r.color[k][i] =
                k ? refine_color(&r, r.color[k - 1], i) : side->hashes.local[r.c->first + i];
        RP_TRY(classify(&r, k));
        RP_TRY(number_members(&r, k));
    }
    RP_TRY(common_size(&r, true, &layers));
    if (!layers)
        RP_TRY(common_size(&r, false, &layers));
    for (uint32_t i = 0; i < r.c->n; i++)
        (*out)[i] = choose_repeat(&r, i, layers);
    return RP_OK;
}
