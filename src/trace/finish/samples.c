/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts samples by track, time and order of the file, like events. */
#include "trace/build/state.h"
#include "trace/finish/finish.h"
#include "trace/finish/index_sort.h"

enum rp_code rp_pass_samples(struct rp_builder *b, struct rp_err *err)
{
    struct rp_build_samples *s = &b->samples;
    struct rp_sort_keys keys = {.n = (uint32_t)s->ts_ns.n,
                                .ntracks = (uint32_t)b->tracks.n,
                                .track = s->track.at,
                                .ts_ns = s->ts_ns.at};
    struct rp_sort_scratch scratch = {0};
    rp_row_vec perm = {0}, begin = {0};

    if (!keys.n)
        return RP_OK;
    enum rp_code code = rp_index_sort(&keys, &perm, &begin, &scratch, err);
    if (code == RP_OK)
        code = rp_vec_reserve(&scratch.a, perm.n, err);
    if (code == RP_OK) {
        RP_PERMUTE(&s->ts_ns, int64_t, &perm, scratch.a.at);
        RP_PERMUTE(&s->weight, int64_t, &perm, scratch.a.at);
        RP_PERMUTE(&s->track, uint32_t, &perm, scratch.a.at);
        RP_PERMUTE(&s->stack, uint32_t, &perm, scratch.a.at);
        RP_PERMUTE(&s->flags, uint8_t, &perm, scratch.a.at);
    }
    rp_sort_scratch_release(&scratch);
    rp_vec_release(&perm);
    rp_vec_release(&begin);
    return code;
}
