/* SPDX-License-Identifier: Apache-2.0 */
/* Assigns numbers of ranks: first those given in files; the other ranks fill the gaps. Linear. */
#include "trace/run.h"

#include "base/hash.h"
#include "base/order.h"

#include <stdlib.h>
#include <strings.h>

enum rp_code rp_run_new(struct rp_run **out, struct rp_err *err)
{
    *out = calloc(1, sizeof **out);
    RP_TRY(rp_err_need(*out, err, "making a run"));
    rp_arena_init(&(*out)->arena);
    return RP_OK;
}

void rp_run_free(struct rp_run *run)
{
    if (!run)
        return;
    for (size_t i = 0; i < run->ranks.n; i++)
        rp_digest_free(run->ranks.at[i].digest);
    rp_vec_release(&run->ranks);
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

int32_t rp_rank_in_name(const char *path)
{
    const char *at = path, *word = NULL;

    for (; *at; at++)
        if (*at == '/' || *at == '!')
            word = NULL;
        else if (!strncasecmp(at, "rank", 4))
            word = at + 4;
    if (!word)
        return RP_NO_RANK;
    word += strspn(word, "-_. ");
    if (*word < '0' || *word > '9')
        return RP_NO_RANK;
    long number = strtol(word, NULL, 10);
    return number < 1000000 ? (int32_t)number : RP_NO_RANK;
}

/* Uses numbers in names of files if no other rank has or claims them. */
static enum rp_code claim_names(struct rp_run *run, struct rp_map *taken, struct rp_err *err)
{
    struct rp_map claims = {0};
    enum rp_code code = RP_OK;
    uint32_t i, owner;

    for (int pass = 0; pass < 2; pass++)
        for (i = 0; i < run->ranks.n && code == RP_OK; i++) {
            struct rp_rank *rank = &run->ranks.at[i];
            int32_t number = rank->digest->rank < 0 ? rp_rank_in_name(rank->digest->name) : -1;

            if (number < 0 || (!pass && rp_map_get(taken, (uint64_t)number) != RP_MAP_NONE))
                continue;
            if (!pass) {
                uint32_t before = rp_map_get(&claims, (uint64_t)number);

                code = rp_map_put(&claims, (uint64_t)number, before == RP_MAP_NONE ? 1 : 2, err);
            } else if (rp_map_get(&claims, (uint64_t)number) == 1) {
                code = rp_map_intern(taken, (uint64_t)number, i, &owner, err);
                rank->number = number;
                rank->named = true;
            }
        }
    rp_map_release(&claims);
    return code;
}

RP_ORDER(by_number, struct rp_rank, RP_UP(number))

/* Drops launchers unless there is nothing else. */
static void drop_launchers(struct rp_run *run)
{
    size_t i, n = 0, ranks = 0;

    for (i = 0; i < run->ranks.n; i++)
        ranks += run->ranks.at[i].digest->rank >= 0;
    if (!ranks)
        return;
    for (i = 0; i < run->ranks.n; i++) {
        if (run->ranks.at[i].digest->is_launcher)
            rp_digest_free(run->ranks.at[i].digest);
        else
            run->ranks.at[n++] = run->ranks.at[i];
    }
    run->ranks.n = n;
}

enum rp_code rp_run_settle(struct rp_run *run, struct rp_err *err)
{
    struct rp_map taken = {0};

    drop_launchers(run);
    enum rp_code code = claim_numbers(run, &taken, err);
    if (code == RP_OK && run->ranks.n + run->nothers > 1)
        code = claim_names(run, &taken, err);
    if (code == RP_OK) {
        int32_t next = 0;

        for (size_t i = 0; i < run->ranks.n; i++) {
            struct rp_rank *rank = &run->ranks.at[i];

            if (rank->number != RP_NO_RANK)
                continue;
            while (rp_map_get(&taken, (uint64_t)next) != RP_MAP_NONE)
                next++;
            rank->number = next++;
        }
    }
    rp_map_release(&taken);
    rp_sort(run->ranks.at, run->ranks.n, sizeof *run->ranks.at, by_number);
    if (run->world_size < (int64_t)(run->ranks.n + run->nothers))
        run->world_size = (int32_t)(run->ranks.n + run->nothers);
    return code;
}
