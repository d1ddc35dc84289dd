/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that were recorded as a whole. */
#include "trace/hidden.h"

#include <string.h>

static bool is_hidden(const struct rp_trace *t, rp_str s)
{
    size_t n = rp_trace_str_len(t, s), len = strlen(RP_HIDDEN_ENDING);

    return n > len && !memcmp(rp_trace_str(t, s) + n - len, RP_HIDDEN_ENDING, len);
}

int64_t rp_hidden_graphs(const struct rp_trace *t, int64_t *ns)
{
    int64_t n = 0;
    bool any = false;

    *ns = 0;
    for (rp_str s = 0; s < t->str.n && !any; s++)
        any = is_hidden(t, s);
    if (!any || rp_trace_require(t, RP_NEED_EVENTS, NULL) != RP_OK)
        return 0;
    for (rp_event e = 0; e < t->ev.n; e++)
        if (t->ev.kind[e] == RP_KIND_KERNEL && is_hidden(t, t->ev.name[e])) {
            n++;
            if (t->ev.dur_ns[e] > 0 && __builtin_add_overflow(*ns, t->ev.dur_ns[e], ns))
                *ns = INT64_MAX;
        }
    return n;
}
