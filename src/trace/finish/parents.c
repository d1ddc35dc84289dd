/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the innermost span around each event, on tracks of threads. Work on a stream may overlap,
 * and async chains belong to no thread: they neither have parents nor are parents. One pass over
 * the events with a stack (nest.h); depth is bounded by memory only.
 */
#include "base/filled.h"
#include "trace/build/state.h"
#include "trace/finish/finish.h"
#include "trace/finish/nest.h"

static enum rp_code walk_track(struct rp_builder *b, const struct rp_track_info *t,
                               struct rp_nest *nest, struct rp_err *err)
{
    struct rp_build_events *ev = &b->ev;

    nest->open.n = 0;
    for (uint32_t i = t->first; i < t->end; i++) {
        int64_t ts = ev->ts_ns.at[i];
        bool unended = ev->flags.at[i] & RP_EVENT_UNENDED, crosses;

        if (ts == RP_NO_TS || (ev->flags.at[i] & RP_EVENT_ASYNC) ||
            ev->kind.at[i] == RP_KIND_METADATA)
            continue;
        if (ev->dur_ns.at[i] < 0 && !unended) { /* this is an instant, not a span */
            rp_nest_advance(nest, ts);
            ev->parent.at[i] = rp_nest_top(nest);
            continue;
        }
        RP_TRY(rp_nest_enter(nest, i, ts, rp_build_end_ns(b, i), unended, &ev->parent.at[i],
                             &crosses, err));
        if (crosses)
            ev->flags.at[i] |= RP_EVENT_CROSSES;
    }
    return RP_OK;
}

enum rp_code rp_pass_parents(struct rp_builder *b, struct rp_err *err)
{
    struct rp_nest nest = {0};
    enum rp_code code = RP_OK;

    RP_TRY(rp_vec_nones(&b->ev.parent, b->ev.n, err));
    b->ev.parent.n = b->ev.n;
    for (size_t t = 0; code == RP_OK && t < b->tracks.n; t++)
        if (b->tracks.at[t].kind == RP_TRACK_THREAD)
            code = walk_track(b, &b->tracks.at[t], &nest, err);
    rp_vec_release(&nest.open);
    return code;
}
