/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts events into canonical order. An order of row numbers is made first (index_sort.c). Then each
 * column is copied in that order into scratch memory and back, the same for all columns: a fresh
 * page costs more than a second copy, and the peak is 8 bytes per event above the trace itself.
 * Events that `pairs` removed are dropped.
 */
#include "trace/build/state.h"
#include "trace/finish/finish.h"
#include "trace/finish/index_sort.h"

static void permute_all(struct rp_build_events *ev, const rp_row_vec *perm, uint64_t *scratch)
{
    RP_PERMUTE(&ev->ts_ns, int64_t, perm, scratch);
    RP_PERMUTE(&ev->dur_ns, int64_t, perm, scratch);
    RP_PERMUTE(&ev->name, uint32_t, perm, scratch);
    RP_PERMUTE(&ev->track, uint32_t, perm, scratch);
    RP_PERMUTE(&ev->link, uint32_t, perm, scratch);
    RP_PERMUTE(&ev->arg_row, uint32_t, perm, scratch);
    RP_PERMUTE(&ev->shape, uint16_t, perm, scratch);
    RP_PERMUTE(&ev->origin, uint16_t, perm, scratch);
    RP_PERMUTE(&ev->flags, uint8_t, perm, scratch);
    ev->n = (uint32_t)perm->n;
}

static bool is_identity(const rp_row_vec *perm, uint32_t n)
{
    uint32_t i;

    for (i = 0; i < n && i < perm->n && perm->at[i] == i; i++)
        ;
    return i == n;
}

enum rp_code rp_pass_order(struct rp_builder *b, struct rp_err *err)
{
    struct rp_sort_keys keys = {.n = b->ev.n,
                                .ntracks = (uint32_t)b->tracks.n,
                                .track = b->ev.track.at,
                                .ts_ns = b->ev.ts_ns.at,
                                .dur_ns = b->ev.dur_ns.at,
                                .flags = b->ev.flags.at};
    struct rp_sort_scratch scratch = {0};
    rp_row_vec perm = {0}, begin = {0};
    enum rp_code code = rp_index_sort(&keys, &perm, &begin, &scratch, err);

    for (size_t t = 0; code == RP_OK && t < b->tracks.n; t++) {
        b->tracks.at[t].first = begin.at[t];
        b->tracks.at[t].end = begin.at[t + 1];
    }
    rp_vec_release(&scratch.tmp);
    rp_vec_release(&begin);
    if (code == RP_OK && !is_identity(&perm, b->ev.n)) {
        code = rp_vec_reserve(&scratch.a, perm.n, err);
        if (code == RP_OK)
            permute_all(&b->ev, &perm, scratch.a.at);
    }
    /* the permutation is the order of the events in the file, so it is kept as a column */
    rp_vec_release(&b->ev.seq);
    b->ev.seq.at = perm.at;
    b->ev.seq.n = perm.n;
    b->ev.seq.cap = perm.cap;
    rp_sort_scratch_release(&scratch);
    return code;
}
