/* SPDX-License-Identifier: Apache-2.0 */
/* Device events at time 0. */
#include "trace/zero_times.h"

int64_t rp_zero_times_lost(const struct rp_trace *t)
{
    int64_t n = t->health.ts_zero_gpu, first = INT64_MAX, last = 0;

    if (!n || rp_trace_require(t, RP_NEED_EVENTS, NULL) != RP_OK)
        return n;
    for (rp_event e = 0; e < t->ev.n; e++)
        if (t->origins[t->ev.origin[e]].flags & RP_ORIGIN_GPU && t->ev.ts_ns[e] != 0) {
            int64_t end = rp_event_end_ns(t, e);

            if (t->ev.ts_ns[e] < 0)
                return 0;
            first = t->ev.ts_ns[e] < first ? t->ev.ts_ns[e] : first;
            last = end > last ? end : last;
        }
    if (first == INT64_MAX)
        return n > 1 ? n : 0;
    return first > last - first ? n : 0;
}
