/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of a program without a device and without operators: what its own ranges contain,
 * without the times in which their thread waits or communicates.
 */
#include "explain/report/report.h"

/* Adds what of sorted intervals is not covered by others. */
static enum rp_code add_without(rp_interval_vec *to, const rp_interval_vec *from,
                                const rp_interval_vec *away, struct rp_err *err)
{
    size_t i, k = 0;

    for (i = 0; i < from->n; i++) {
        int64_t at = from->at[i].begin_ns, end = from->at[i].end_ns;

        for (; k < away->n && away->at[k].end_ns <= at; k++)
            ;
        for (size_t x = k; x < away->n && away->at[x].begin_ns < end; x++) {
            struct rp_interval part = {at, away->at[x].begin_ns};

            if (part.begin_ns < part.end_ns)
                RP_TRY(rp_vec_push(to, part, err));
            at = away->at[x].end_ns > at ? away->at[x].end_ns : at;
        }
        if (at < end)
            RP_TRY(rp_vec_push(to, ((struct rp_interval){at, end}), err));
    }
    return RP_OK;
}

static enum rp_code list_track(const struct rp_trace *t, const struct rp_scope *scope,
                               rp_track track, rp_interval_vec *work, rp_interval_vec *away,
                               struct rp_err *err)
{
    rp_event e;

    for (e = t->tracks[track].first; e < t->tracks[track].end; e++) {
        struct rp_interval x = {t->ev.ts_ns[e], rp_event_end_ns(t, e)};
        bool comm = rp_event_is_host_collective(t, e);

        if (comm || t->ev.kind[e] == RP_KIND_WAIT) {
            if (t->ev.ts_ns[e] != RP_NO_TS && t->ev.dur_ns[e] >= 0)
                RP_TRY(rp_union_add(away, x.begin_ns, x.end_ns, err));
        } else if (rp_report_is_host_work(t, scope, e)) {
            RP_TRY(rp_union_add(work, x.begin_ns, x.end_ns, err));
        }
    }
    return RP_OK;
}

enum rp_code rp_report_unite_ranges(const struct rp_trace *trace, const struct rp_scope *scope,
                                    rp_interval_vec *out, struct rp_err *err)
{
    rp_interval_vec work = {0}, away = {0};
    enum rp_code code = RP_OK;
    rp_track track;

    for (track = 0; track < trace->ntracks && code == RP_OK; track++) {
        if (trace->tracks[track].kind == RP_TRACK_STREAM)
            continue;
        work.n = away.n = 0;
        code = list_track(trace, scope, track, &work, &away, err);
        if (code == RP_OK)
            code = add_without(out, &work, &away, err);
    }
    rp_vec_release(&work);
    rp_vec_release(&away);
    return code;
}
