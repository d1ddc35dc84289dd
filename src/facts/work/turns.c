/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/work/turns.h"

#include "base/copies.h"
#include "facts/host/signs.h"

static enum rp_copy_way way_of(const struct rp_work *work, const struct rp_work_item *x)
{
    const struct rp_trace *t = work->trace;

    return x->cls == RP_WORK_MEMORY && x->launch != RP_NONE
               ? rp_copy_way(rp_trace_str(t, t->ev.name[x->event]))
               : RP_COPY_UNKNOWN;
}

/* Whether the thread waits for the device from the first call on, before the second. */
static bool waits_between(const struct rp_trace *t, rp_event first, rp_event second)
{
    if (t->ev.track[first] != t->ev.track[second])
        return false;
    for (rp_event e = first; e < second; e++)
        if (t->ev.kind[e] == RP_KIND_RUNTIME &&
            rp_host_signs(rp_trace_str(t, t->ev.name[e])) & RP_SIGN_BLOCKS)
            return true;
    return false;
}

enum rp_code rp_work_turns(const struct rp_work *work, rp_turn_vec *out, struct rp_err *err)
{
    for (size_t i = 1; i < work->items.n; i++) {
        const struct rp_work_item *read = &work->items.at[i - 1], *upload = &work->items.at[i];

        if (way_of(work, upload) == RP_COPY_TO_DEVICE && way_of(work, read) == RP_COPY_TO_HOST &&
            waits_between(work->trace, read->launch, upload->launch))
            RP_TRY(rp_vec_push(
                out, ((struct rp_turn){read->end_ns, upload->begin_ns, read->launch}), err));
    }
    return RP_OK;
}
