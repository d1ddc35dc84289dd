/* SPDX-License-Identifier: Apache-2.0 */
/* When torch.compile compiled: by its own spans, else by its log and the wall clock. */
#include "explain/report/report.h"

#include "formats/torch_trace/torch_trace.h"
#include "xref/compiled.h"

#include <string.h>

enum { NONE, COMPILE, COMPILED }; /* what a name says of its spans */

static uint8_t name_is(const char *name)
{
    if (!strcmp(name, "entire_frame_compile (dynamo_timed)") ||
        !strcmp(name, "entire_backward_compile (dynamo_timed)"))
        return COMPILE;
    return rp_compiled_name(name) ? COMPILED : NONE;
}

static enum rp_code add_logged(const struct rp_trace *t, const struct rp_torch_times *times,
                               rp_interval_vec *out, struct rp_err *err)
{
    if (times->start_us < 0 || times->end_us < times->start_us || times->end_us > INT64_MAX / 1000)
        return RP_OK; /* not stated, or damaged */
    struct rp_interval time = {rp_ns_between(t->base_ns, times->start_us * 1000),
                               rp_ns_between(t->base_ns, times->end_us * 1000)};
    return rp_vec_push(out, time, err);
}

enum rp_code rp_report_find_compiles(const struct rp_trace *trace, const char *path,
                                     rp_interval_vec *out, struct rp_err *err)
{
    RP_SCOPED(rp_torch_trace_release) struct rp_torch_trace log;
    bool has[3] = {false};

    rp_torch_trace_init(&log);
    for (rp_str s = 0; s < trace->str.n; s++)
        has[name_is(rp_trace_str(trace, s))] = true;
    if (has[COMPILE]) {
        for (rp_event e = 0; e < trace->ev.n; e++)
            if (trace->ev.dur_ns[e] >= 0 && trace->ev.kind[e] != RP_KIND_GPU_ANNOTATION &&
                name_is(rp_trace_str(trace, trace->ev.name[e])) == COMPILE)
                RP_TRY(rp_vec_push(
                    out, ((struct rp_interval){trace->ev.ts_ns[e], rp_event_end_ns(trace, e)}),
                    err));
        return RP_OK;
    }
    if (!has[COMPILED] || !trace->has_base ||
        rp_compiled_read_logs(&log, trace, path, NULL, NULL) != RP_OK)
        return RP_OK; /* a damaged log takes nothing from what the recording says */
    for (size_t i = 0; i < log.compiles.n; i++) {
        RP_TRY(add_logged(trace, &log.compiles.at[i].forward, out, err));
        RP_TRY(add_logged(trace, &log.compiles.at[i].backward, out, err));
    }
    return RP_OK;
}
