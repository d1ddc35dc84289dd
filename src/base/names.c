/* SPDX-License-Identifier: Apache-2.0 */
/* A map from the hash of a text to its entry. */
#include "base/names.h"

#include <string.h>

void rp_names_release(struct rp_names *names)
{
    rp_map_release(&names->by_hash);
    rp_vec_release(&names->entries);
}

/* Finds the entry of a text, or returns RP_MAP_NONE and the key for it. Texts with the same hash
   get other hashes in turn. */
static uint32_t find_entry(const struct rp_names *names, const char *text, uint64_t *key)
{
    uint32_t entry;

    *key = rp_hash_bytes(text, strlen(text));
    while ((entry = rp_map_get(&names->by_hash, *key)) != RP_MAP_NONE &&
           strcmp(names->entries.at[entry].text, text) != 0)
        *key = rp_hash_join(*key, 1);
    return entry;
}

enum rp_code rp_names_add(struct rp_names *names, const char *text, uint32_t number,
                          struct rp_err *err)
{
    struct rp_name name = {text, number};
    uint64_t key;

    if (find_entry(names, text, &key) != RP_MAP_NONE)
        return RP_OK;
    RP_TRY(rp_vec_push(&names->entries, name, err));
    enum rp_code code = rp_map_put(&names->by_hash, key, (uint32_t)names->entries.n - 1, err);
    names->entries.n -= code != RP_OK;
    return code;
}

uint32_t rp_names_find(const struct rp_names *names, const char *text)
{
    uint64_t key;
    uint32_t entry = text ? find_entry(names, text, &key) : RP_MAP_NONE;

    return entry == RP_MAP_NONE ? RP_MAP_NONE : names->entries.at[entry].number;
}
