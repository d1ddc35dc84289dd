/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completes what is known only when all packets have been read, because they need not be in order
 * of time. The end of a slice belongs to the innermost one that is open on its track; if the end
 * has a name, it belongs to the innermost one of that name, and those inside it end, too. A state
 * lasts until the next one. An arrow is an id that several events carry: it goes from each to the
 * next in time. O(n log n).
 */
#include "base/order.h"
#include "formats/perfetto/perfetto.h"

/* ------------------------------------------------------------------ ends of slices */

#define NAME_DEPTH 256 /* open slices among which a name is looked for */

RP_ORDER(by_track, struct rp_perfetto_mark, RP_UP(track), RP_UP(ts_ns), RP_UP(event), RP_UP(begins),
         RP_UP(name))

/* How many of the n open marks stay open; n if the mark ends none of them. */
static size_t find_begin(const struct rp_perfetto *r, const uint32_t *open, size_t n,
                         const struct rp_perfetto_mark *m)
{
    if (!n || m->type == RP_PFT_BEGIN)
        return n;
    if (m->type != RP_PFT_END || !m->name)
        return n - 1;
    for (size_t i = n; i-- > 0 && n - i <= NAME_DEPTH;)
        if (r->marks.at[open[i]].name == m->name)
            return i;
    return n;
}

enum rp_code rp_perfetto_end_slices(struct rp_perfetto *r, struct rp_err *err)
{
    RP_VEC_LOCAL(uint32_t, open); /* marks, innermost last */

    rp_sort(r->marks.at, r->marks.n, sizeof *r->marks.at, by_track);
    for (size_t i = 0; i < r->marks.n; i++) {
        const struct rp_perfetto_mark *m = &r->marks.at[i];

        if (open.n && r->marks.at[open.at[open.n - 1]].track != m->track) {
            r->t.health->unended += (int64_t)open.n;
            open.n = 0;
        }
        size_t left = find_begin(r, open.at, open.n, m);
        if (left == open.n && m->type == RP_PFT_END)
            r->t.health->unbegun++;
        while (open.n > left) {
            const struct rp_perfetto_mark *begin = &r->marks.at[open.at[--open.n]];
            rp_builder_end(r->t.builder, begin->event,
                           rp_proto_trace_clamp(&r->t, (rp_wide_ns)m->ts_ns - begin->ts_ns));
        }
        if (m->type != RP_PFT_END)
            RP_TRY(rp_vec_push(&open, (uint32_t)i, err));
    }
    r->t.health->unended += (int64_t)open.n;
    return RP_OK;
}

/* ------------------------------------------------------------------ arrows */

RP_ORDER(by_id, struct rp_perfetto_flow, RP_UP(id), RP_UP(ts_ns), RP_UP(order))

/* Arrows have no name, so they get the one that PyTorch uses for launches, or the one that our
   writer noted. */
static enum rp_code arrow_category(struct rp_perfetto *r, const struct rp_perfetto_flow *from,
                                   const struct rp_perfetto_flow *to, rp_str *out,
                                   struct rp_err *err)
{
    *out = from->category;
    if (*out)
        return RP_OK;
    if (to && from->kind == RP_KIND_RUNTIME && rp_kind_is_device_work(to->kind))
        return rp_proto_trace_word(&r->t, "ac2g", out, err);
    return rp_proto_trace_word(&r->t, "flow", out, err);
}

enum rp_code rp_perfetto_add_arrows(struct rp_perfetto *r, struct rp_err *err)
{
    const struct rp_perfetto_flow *f = r->flows.at;
    bool begins = true;
    rp_str category = 0;

    rp_sort(r->flows.at, r->flows.n, sizeof *f, by_id);
    for (size_t i = 0; i < r->flows.n; i++) {
        bool more = i + 1 < r->flows.n && f[i + 1].id == f[i].id && !(f[i].ends && !begins);

        if (begins)
            RP_TRY(arrow_category(r, &f[i], more ? &f[i + 1] : NULL, &category, err));
        struct rp_origin origin = {.phase = begins && (more || !f[i].ends) ? 's'
                                            : more                         ? 't'
                                                                           : 'f',
                                   .category = category,
                                   .has_category = 1};
        struct rp_raw_flow raw = {
            .ts_ns = f[i].ts_ns, .id = (int64_t)f[i].id, .name = category, .track = f[i].track};
        RP_TRY(rp_builder_origin(r->t.builder, &origin, &raw.origin, err));
        RP_TRY(rp_builder_add_flow(r->t.builder, &raw, err));
        begins = !more;
    }
    return RP_OK;
}
