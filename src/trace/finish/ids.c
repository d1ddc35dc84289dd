/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Correlation ids and async ids become dense link numbers: correlations first, in the order of the
 * file. An async id belongs to its category: (category, id) is one chain. A text id is never
 * confused with the number of its string. The column of links is rewritten in place: first the
 * events with a correlation, then the others.
 */
#include "trace/build/dense_ids.h"
#include "trace/build/state.h"
#include "trace/finish/finish.h"

/* The events with a correlation id (or an async id), and their ids, in the order of the file. */
struct numbering {
    rp_id_vec id, key;
    RP_VEC(uint32_t) dense;
    bool keyed; /* the id alone is not unique */
};

static void release_ids(struct numbering *w)
{
    rp_vec_release(&w->id);
    rp_vec_release(&w->key);
    rp_vec_release(&w->dense);
}

static bool has_id(const struct rp_builder *b, uint32_t i, bool async)
{
    return b->ev.link.at[i] != RP_NONE && !(b->ev.flags.at[i] & RP_EVENT_ASYNC) == !async;
}

static enum rp_code collect_ids(const struct rp_builder *b, bool async, struct numbering *w,
                                struct rp_err *err)
{
    w->keyed = async;
    for (uint32_t i = 0; i < b->ev.n; i++)
        if (has_id(b, i, async)) {
            w->keyed |= (b->ev.flags.at[i] & RP_EVENT_ID_TEXT) != 0;
            RP_TRY(rp_vec_push(&w->id, b->link_id.at[b->ev.link.at[i]], err));
        }
    return rp_vec_reserve(&w->dense, w->id.n + 1, err);
}

/* Makes keys of one word: number of an id, whether it is a text, and for async ids the category. */
static enum rp_code make_keys(const struct rp_builder *b, bool async, struct numbering *w,
                              struct rp_err *err)
{
    rp_row_vec category = {0};
    uint32_t n, i;
    size_t k = 0;

    RP_TRY(rp_dense_ids(w->id.at, w->id.n, w->dense.at, &n, err));
    RP_TRY(rp_vec_reserve(&w->key, w->id.n + 1, err));
    enum rp_code code = rp_build_categories(b, &category, err);
    for (i = 0; code == RP_OK && i < b->ev.n; i++)
        if (has_id(b, i, async)) {
            uint64_t text = (b->ev.flags.at[i] & RP_EVENT_ID_TEXT) != 0;

            w->key.at[k] = (int64_t)((uint64_t)w->dense.at[k] << 17 | text << 16 |
                                     (async ? category.at[b->ev.origin.at[i]] : 0));
            k++;
        }
    rp_vec_release(&category);
    return code;
}

/* Assigns link numbers to the events and keeps the id of each number. */
static enum rp_code assign_links(struct rp_builder *b, bool async, const struct numbering *w,
                                 uint32_t ndistinct, struct rp_err *err)
{
    uint32_t base = (uint32_t)b->links.native_id.n, i;
    size_t k = 0;

    if (ndistinct > RP_NONE - 1 - base)
        return rp_err_set(err, RP_LIMIT, "more than %u links", RP_NONE - 1);
    RP_TRY(rp_vec_reserve(&b->links.native_id, ndistinct, err));
    RP_TRY(rp_vec_reserve(&b->links.source, ndistinct, err));
    for (i = 0; i < b->ev.n; i++)
        if (has_id(b, i, async)) {
            uint32_t number = base + w->dense.at[k];

            if (number == b->links.native_id.n) {
                b->links.native_id.at[b->links.native_id.n++] = w->id.at[k];
                b->links.source.at[b->links.source.n++] =
                    async ? RP_LINK_ASYNC_ID : RP_LINK_CORRELATION;
            }
            b->ev.link.at[i] = number;
            k++;
        }
    return RP_OK;
}

static enum rp_code number_ids(struct rp_builder *b, bool async, struct rp_err *err)
{
    RP_SCOPED(release_ids) struct numbering w = {0};
    uint32_t ndistinct = 0;

    RP_TRY(collect_ids(b, async, &w, err));
    w.keyed = w.keyed && w.id.n;
    if (w.keyed)
        RP_TRY(make_keys(b, async, &w, err));
    RP_TRY(rp_dense_ids(w.keyed ? w.key.at : w.id.at, w.id.n, w.dense.at, &ndistinct, err));
    return assign_links(b, async, &w, ndistinct, err);
}

enum rp_code rp_build_categories(const struct rp_builder *b, rp_row_vec *out, struct rp_err *err)
{
    RP_SCOPED(rp_map_release) struct rp_map map = {0};

    RP_TRY(rp_vec_reserve(out, b->origins.n + 1, err));
    for (uint32_t i = 0; i < b->origins.n; i++) {
        const struct rp_origin *o = &b->origins.at[i];

        RP_TRY(rp_map_intern(&map, (uint64_t)o->category << 1 | (o->has_category != 0), i,
                             &out->at[i], err));
    }
    out->n = b->origins.n;
    return RP_OK;
}

enum rp_code rp_pass_ids(struct rp_builder *b, struct rp_err *err)
{
    if (b->link_id.n == 0)
        return RP_OK;
    RP_TRY(number_ids(b, false, err));
    b->links.ncorrelation = (uint32_t)b->links.native_id.n;
    RP_TRY(number_ids(b, true, err));
    rp_vec_release(&b->link_id);
    return RP_OK;
}
