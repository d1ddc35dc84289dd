/* SPDX-License-Identifier: Apache-2.0 */
/* The texts are stored one after another, and a number leads to the place of its text. */
#include "formats/activity/texts.h"

struct rp_texts_entry {
    uint64_t at;
    uint32_t n;
    rp_str str; /* the text in the trace, or RP_NONE */
};

enum rp_code rp_texts_add(struct rp_texts *t, int64_t number, const char *text, size_t n,
                          struct rp_err *err)
{
    struct rp_texts_entry entry = {.at = t->bytes.n, .n = (uint32_t)n, .str = RP_NONE};
    uint32_t fresh = (uint32_t)t->list.n, place;

    if (n >= UINT32_MAX)
        return RP_OK;
    RP_TRY(rp_map_intern(&t->place, (uint64_t)number, fresh, &place, err));
    if (place != fresh)
        return RP_OK;
    RP_TRY(rp_vec_reserve(&t->bytes, n + 1, err));
    memcpy(t->bytes.at + t->bytes.n, text, n);
    t->bytes.at[t->bytes.n + n] = '\0';
    t->bytes.n += n + 1;
    return rp_vec_push(&t->list, entry, err);
}

void rp_texts_release(struct rp_texts *t)
{
    rp_map_release(&t->place);
    rp_vec_release(&t->list);
    rp_vec_release(&t->bytes);
}

const char *rp_texts_borrow(const struct rp_texts *t, int64_t number, size_t *n)
{
    uint32_t place = rp_map_get(&t->place, (uint64_t)number);

    *n = place == RP_MAP_NONE ? 0 : t->list.at[place].n;
    return place == RP_MAP_NONE ? "" : t->bytes.at + t->list.at[place].at;
}

enum rp_code rp_texts_intern(struct rp_texts *t, struct rp_activity *a, int64_t number, rp_str *out,
                             struct rp_err *err)
{
    uint32_t place = rp_map_get(&t->place, (uint64_t)number);

    *out = 0;
    if (place == RP_MAP_NONE)
        return RP_OK;
    struct rp_texts_entry *entry = &t->list.at[place];
    if (entry->str == RP_NONE)
        RP_TRY(rp_activity_intern(a, t->bytes.at + entry->at, entry->n, &entry->str, err));
    *out = entry->str;
    return RP_OK;
}
