/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws the page of two programs: their union (draw/stages.h) twice, side by side, in which
 * operations that only one of them has are coloured. Operations are the same if the comparison
 * matched them; in computations that are equal as a whole, those with the same place are.
 */
#include "explain/program_diff/program_diff.h"

#include "draw/draw.h"
#include "draw/stages.h"
#include "io/output.h"

#include <string.h>

/* Pairs computations that were not visited because another one has their hash. */
static enum rp_code pair_equal(const struct rp_match *m, uint32_t *match, struct rp_err *err)
{
    const struct rp_program *a = m->left.p, *b = m->right.p;
    /* from the hash of a left computation to the first with it that is not taken */
    RP_SCOPED(rp_map_release) struct rp_map first = {0};

    for (uint32_t c = (uint32_t)a->computations.n; c-- > 0;)
        RP_TRY(rp_map_put(&first, m->left.hashes.computation[c], c, err));
    for (uint32_t c = 0; c < b->computations.n; c++) {
        const struct rp_computation *to = &b->computations.at[c], *from;
        uint64_t hash = m->right.hashes.computation[c];
        uint32_t at = rp_map_get(&first, hash);

        if (at == RP_MAP_NONE || !to->n || match[to->first] != RP_NONE)
            continue;
        from = &a->computations.at[at];
        for (uint32_t k = 0; k < to->n && k < from->n; k++)
            if (m->left.hashes.local[from->first + k] == m->right.hashes.local[to->first + k])
                match[to->first + k] = from->first + k;
        for (at++; at < a->computations.n && m->left.hashes.computation[at] != hash; at++)
            ;
        if (at < a->computations.n)
            RP_TRY(rp_map_put(&first, hash, at, err));
    }
    return RP_OK;
}

static enum rp_code draw_union(const struct rp_stages *stages, const char *path, struct rp_err *err)
{
    struct rp_draw_more more = {.stages = stages};
    struct rp_out *to;

    RP_TRY(rp_out_open(path, &to, err));
    return rp_out_end(to, rp_draw_program_html(stages->p, &more, to, err), err);
}

enum rp_code rp_program_diff_draw(const struct rp_match_side *left, const char *left_name,
                                  const struct rp_match_side *right, const char *right_name,
                                  const char *path, struct rp_err *err)
{
    RP_SCOPED(rp_arena_release) struct rp_arena arena = RP_ARENA_INIT;
    RP_SCOPED(rp_stages_release) struct rp_stages stages = {0};
    struct rp_match m;
    uint32_t *match = RP_ARENA_NEW(&arena, uint32_t, (size_t)right->p->nops + 1);

    RP_TRY(match ? rp_program_match(left, RP_NONE, right, RP_NONE, &arena, &m, err)
                 : rp_err_nomem(err, "drawing programs"));
    memcpy(match, m.right.match, (size_t)right->p->nops * sizeof *match);
    RP_TRY(pair_equal(&m, match, err));
    struct rp_stage both[] = {{left->p, left_name, NULL}, {right->p, right_name, match}};

    RP_TRY(rp_stages_make(both, 2, true, &arena, &stages, err));
    return draw_union(&stages, path, err);
}
