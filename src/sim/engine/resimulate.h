/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_SIM_ENGINE_RESIMULATE_H
#define RP_SIM_ENGINE_RESIMULATE_H
/*
 * Simulating again only what a change can reach. A base run is kept; when durations or lags of the
 * overlay change, as little as possible is run again. The result is that of a full run, bit by bit.
 *
 *     rp_resim_init(&x, &overlay, err);
 *     mark = rp_overlay_mark(&overlay);
 *     ... change durations and lags ...
 *     rp_resim_update(&x, err);         x.result is that of the changed overlay
 *     rp_overlay_undo(&overlay, mark);
 *     rp_resim_undo(&x);                and that of the base again
 *
 * Four ways, the first that can do it: what the change reaches (resim_sweep.h); everything behind
 * it in the base's order; everything that begins behind it (resim_tail.h); everything. The last is
 * taken where a change is of another kind (new tasks or edges) or the graph is not plain
 * (horizon.h), and by the first update: making the others ready costs more than a run.
 */
#include "sim/engine/resim_sweep.h"
#include "sim/engine/resim_tail.h"

struct rp_resim {
    const struct rp_overlay *o;
    size_t mark; /* of the overlay, when the base ran */
    struct rp_sim_result result;
    struct rp_sim_result base; /* kept while `result` is of another run; else room for one */
    int64_t last_ns;           /* of the base */
    struct rp_resim_tail tail;
    struct rp_resim_sweep sweep;
    RP_VEC(struct rp_overlay_change) patched; /* what the plain graph may have otherwise */
    bool made;                                /* tail and sweep are */
    bool apart;                               /* `result` is of another run than the base */
    bool in_tail;                             /* ... of the tail's */
    bool whole;                               /* the last update ran everything */
    unsigned runs;                            /* updates with changes */
    size_t visited;                           /* tasks that the last update looked at */
};

/* Runs the overlay as it is; it must outlive x. Release x also after a failure. */
enum rp_code rp_resim_init(struct rp_resim *x, const struct rp_overlay *o, struct rp_err *err);
void rp_resim_release(struct rp_resim *x);

/* Takes the changes of the overlay since rp_resim_init into the result. */
enum rp_code rp_resim_update(struct rp_resim *x, struct rp_err *err);
/* Back to the base, when the overlay is. */
void rp_resim_undo(struct rp_resim *x);

#endif
