/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs modules in rounds, each over the unpaired ones sorted by what must be equal. */
#include "explain/program_diff/program_diff.h"

#include "base/order.h"

#include <stdlib.h>
#include <string.h>

struct entry {
    uint64_t key;
    size_t at;
};

struct pairing {
    const struct rp_module_key *left, *right;
    size_t n, m;
    size_t *partner; /* partners of the left ones; SIZE_MAX: none yet */
    bool *taken;     /* of the right ones */
    struct entry *sorted;
};

enum round { PATH_AND_CONTENT, PATH, NAME_AND_CONTENT, NAME, CONTENT, ROUNDS };

static uint64_t key_of(const struct rp_module_key *m, enum round round)
{
    uint64_t name = rp_hash_bytes(m->name, strlen(m->name));
    uint64_t path = rp_hash_join(name, rp_hash_bytes(m->folder, strlen(m->folder)));

    switch (round) {
    case PATH_AND_CONTENT:
        return rp_hash_join(path, m->hash);
    case PATH:
        return path;
    case NAME:
        return name;
    case CONTENT:
        return rp_hash_u64(m->hash);
    default:
        return rp_hash_join(name, m->hash);
    }
}

RP_ORDER(by_key, struct entry, RP_UP(key), RP_UP(at))

static void pair_round(struct pairing *t, enum round round)
{
    size_t free = 0;

    for (size_t i = 0; i < t->m; i++)
        if (!t->taken[i])
            t->sorted[free++] = (struct entry){key_of(&t->right[i], round), i};
    rp_sort(t->sorted, free, sizeof *t->sorted, by_key);
    for (size_t i = 0; i < t->n; i++) {
        uint64_t key = key_of(&t->left[i], round);
        size_t k;

        if (t->partner[i] != SIZE_MAX)
            continue;
        RP_LOWER_BOUND(k, free, t->sorted[k].key < key);
        for (; k < free && t->sorted[k].key == key; k++)
            if (!t->taken[t->sorted[k].at]) {
                t->partner[i] = t->sorted[k].at;
                t->taken[t->partner[i]] = true;
                break;
            }
    }
}

enum rp_code rp_modules_pair(const struct rp_module_key *left, size_t n,
                             const struct rp_module_key *right, size_t m, struct rp_arena *arena,
                             struct rp_module_pair **out, size_t *npairs, struct rp_err *err)
{
    struct pairing t = {.left = left, .right = right, .n = n, .m = m};

    t.partner = RP_ARENA_NEW(arena, size_t, n + 1);
    t.taken = RP_ARENA_NEW(arena, bool, m + 1);
    t.sorted = RP_ARENA_NEW(arena, struct entry, m + 1);
    *out = RP_ARENA_NEW(arena, struct rp_module_pair, n + m + 1);
    *npairs = 0;
    RP_TRY(rp_err_need(t.partner && t.taken && t.sorted && *out, err, "pairing modules"));
    for (size_t i = 0; i < n; i++)
        t.partner[i] = SIZE_MAX;
    for (enum round round = 0; round < ROUNDS; round++)
        pair_round(&t, round);
    for (size_t i = 0; i < n; i++)
        (*out)[(*npairs)++] = (struct rp_module_pair){i, t.partner[i]};
    for (size_t i = 0; i < m; i++)
        if (!t.taken[i])
            (*out)[(*npairs)++] = (struct rp_module_pair){SIZE_MAX, i};
    return RP_OK;
}
