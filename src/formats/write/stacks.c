/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/write/stacks.h"

#include <stdio.h>

enum rp_code rp_stacks_require(const struct rp_trace *t, struct rp_err *err)
{
    RP_TRY(rp_trace_require(t, RP_NEED_SAMPLES, err));
    if (t->samples.n)
        return RP_OK;
    return rp_err_set(err, RP_UNSUPPORTED,
                      "the trace has no samples of call stacks, which this format consists of");
}

enum rp_code rp_stack_walk(const struct rp_trace *t, uint32_t stack, rp_stack_path *path,
                           struct rp_err *err)
{
    path->n = 0;
    for (; stack != RP_NONE; stack = t->samples.stacks[stack].parent)
        RP_TRY(rp_vec_push(path, t->samples.stacks[stack].frame, err));
    return RP_OK;
}

const char *rp_stacks_thread(const struct rp_trace *t, rp_track track, char room[32])
{
    const struct rp_track_info *k = &t->tracks[track];

    if (k->name || k->text)
        return rp_trace_str(t, k->name ? k->name : k->text);
    snprintf(room, 32, "thread %lld", (long long)k->native_id);
    return room;
}
