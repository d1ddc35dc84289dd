/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of ranks: those given in files are assigned first, the other ranks fill the gaps. Linear.
 */
#include "trace/run.h"

#include "base/hash.h"
#include "base/order.h"

#include <stdlib.h>

enum rp_code rp_run_new(struct rp_run **out, struct rp_err *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return rp_err_nomem(err, "making a run");
    rp_arena_init(&(*out)->arena);
    return RP_OK;
}

void rp_run_free(struct rp_run *run)
{
    size_t i;

    if (!run)
        return;
    for (i = 0; i < run->ranks.n; i++)
        rp_digest_free(run->ranks.at[i].digest);
    rp_vec_release(&run->ranks);
    rp_vec_release(&run->warnings);
    rp_arena_release(&run->arena);
    free(run);
}

enum rp_code rp_run_add(struct rp_run *run, struct rp_digest **digest, size_t file,
                        struct rp_err *err)
{
    struct rp_rank rank = {.file = (uint32_t)file, .digest = *digest};

    RP_TRY(rp_vec_push(&run->ranks, rank, err));
    *digest = NULL;
    if (rank.digest->world_size > run->world_size)
        run->world_size = rank.digest->world_size;
    return RP_OK;
}

static enum rp_code warn_renumbered(struct rp_run *run, const struct rp_rank *rank,
                                    struct rp_err *err)
{
    const char *text =
        rp_arena_printf(&run->arena, "two files have rank %d: '%s' is used as rank %d",
                        rank->digest->rank, rank->digest->name, rank->number);

    return text ? rp_vec_push(&run->warnings, text, err) : rp_err_nomem(err, "numbering ranks");
}

/* Gives ranks the number in their file; those without, or whose number is taken, get RP_NO_RANK. */
static enum rp_code claim_numbers(struct rp_run *run, struct rp_map *taken, struct rp_err *err)
{
    uint32_t i, owner;

    for (i = 0; i < run->ranks.n; i++) {
        struct rp_rank *rank = &run->ranks.at[i];

        rank->number = RP_NO_RANK;
        if (rank->digest->rank < 0)
            continue;
        RP_TRY(rp_map_intern(taken, (uint64_t)rank->digest->rank, i, &owner, err));
        if (owner == i)
            rank->number = rank->digest->rank;
    }
    return RP_OK;
}

static enum rp_code fill_gaps(struct rp_run *run, const struct rp_map *taken, struct rp_err *err)
{
    int32_t next = 0;
    size_t i;

    for (i = 0; i < run->ranks.n; i++) {
        struct rp_rank *rank = &run->ranks.at[i];

        if (rank->number != RP_NO_RANK)
            continue;
        while (rp_map_get(taken, (uint64_t)next) != RP_MAP_NONE)
            next++;
        rank->number = next++;
        if (rank->digest->rank >= 0)
            RP_TRY(warn_renumbered(run, rank, err));
    }
    return RP_OK;
}

RP_ORDER(by_number, struct rp_rank, RP_UP(number))

enum rp_code rp_run_settle(struct rp_run *run, struct rp_err *err)
{
    struct rp_map taken;
    enum rp_code code;

    rp_map_init(&taken);
    code = claim_numbers(run, &taken, err);
    if (code == RP_OK)
        code = fill_gaps(run, &taken, err);
    rp_map_release(&taken);
    if (run->ranks.n)
        qsort(run->ranks.at, run->ranks.n, sizeof *run->ranks.at, by_number);
    if (run->world_size < (int64_t)run->ranks.n)
        run->world_size = (int32_t)run->ranks.n;
    return code;
}
