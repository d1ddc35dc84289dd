/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Simulates again only what a change can affect. A base run is kept; when durations or lags of the
 * overlay change, as little as possible is run again. The result equals that of a full run exactly.
 *
 *     rp_resim_init(&x, &overlay, err);
 *     mark = rp_overlay_mark(&overlay);
 *     ... change durations and lags ...
 *     rp_resim_update(&x, err);         x.result is that of the changed overlay
 *     rp_overlay_undo(&overlay, mark);
 *     rp_resim_undo(&x);                and that of the base again
 *
 * There are four methods, of which the first that applies is used: what the change reaches
 * (resim_sweep.h); everything after it in the base's order; everything that begins after it
 * (resim_tail.h); everything. The last is used for other kinds of changes (new tasks or edges),
 * where the graph is not plain (horizon.h), and by the first update, because preparing the others
 * costs more than one run.
 */
#include "sim/engine/resim_sweep.h"
#include "sim/engine/resim_tail.h"

struct rp_resim {
    const struct rp_overlay *o;
    size_t mark; /* mark of the overlay when the base ran */
    struct rp_sim_result result;
    struct rp_sim_result base; /* the base's, while `result` is of another run; else spare memory */
    int64_t last_ns;           /* of the base */
    struct rp_resim_tail tail;
    struct rp_resim_sweep sweep;
    RP_VEC(struct rp_overlay_change) patched; /* changes with which the plain graph is patched */
    bool made;                                /* tail and sweep are prepared */
    bool apart;                               /* `result` is not that of the base */
    bool in_tail;                             /* ... of the tail's */
    bool whole;                               /* the last update ran everything */
    unsigned runs;                            /* updates with changes */
    size_t visited;                           /* tasks that the last update recomputed */
};

/* Runs the overlay as it is; it must outlive x, which must be released also after a failure. */
enum rp_code rp_resim_init(struct rp_resim *x, const struct rp_overlay *o, struct rp_err *err);
/* The same for a copy of the overlay, without a run: `from` must be as its base is. */
enum rp_code rp_resim_copy(struct rp_resim *x, const struct rp_resim *from,
                           const struct rp_overlay *o, struct rp_err *err);
void rp_resim_release(struct rp_resim *x);

/* Updates the result for the changes of the overlay since rp_resim_init. */
enum rp_code rp_resim_update(struct rp_resim *x, struct rp_err *err);
/* Restores the result of the base after the overlay was undone. */
void rp_resim_undo(struct rp_resim *x);
