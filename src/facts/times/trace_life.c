/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of a recording are metadata: "process.4711.began", "process.4711.ended",
   "steps.unrecorded_ns". */
#include "facts/times/trace_life.h"

#include "facts/times/intervals.h"
#include "trace/meta.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t number(const struct rp_trace *t, const char *key)
{
    const char *text = rp_trace_note(t, key);

    return text ? strtoll(text, NULL, 10) : 0;
}

/* Whether this is a thread of the program, not the recorder's own. */
static bool is_thread(const struct rp_trace *t, const struct rp_track_info *track)
{
    return track->kind == RP_TRACK_THREAD && t->processes[track->process].device < 0 &&
           strncmp(rp_trace_str(t, track->name), "reprise", 7) != 0;
}

/* The process of the thread with most events; RP_NONE if there is no thread. */
static uint32_t main_process(const struct rp_trace *t)
{
    uint32_t best = RP_NONE, most = 0;

    for (uint32_t i = 0; i < t->ntracks; i++) {
        const struct rp_track_info *track = &t->tracks[i];

        if (is_thread(t, track) && track->end - track->first > most) {
            most = track->end - track->first;
            best = track->process;
        }
    }
    return best;
}

void rp_trace_life_find(const struct rp_trace *trace, struct rp_trace_life *out)
{
    uint32_t process = main_process(trace);
    char began[48], ended[48];

    *out = (struct rp_trace_life){.last = RP_NONE,
                                  .recorded_ns = number(trace, "steps.recorded_ns"),
                                  .unrecorded_ns = number(trace, "steps.unrecorded_ns")};
    if (process == RP_NONE)
        return;
    out->process = trace->processes[process].native_id;
    snprintf(began, sizeof began, "process.%lld.began", (long long)out->process);
    snprintf(ended, sizeof ended, "process.%lld.ended", (long long)out->process);
    if (!rp_trace_note(trace, began) || rp_trace_note(trace, ended) ||
        rp_trace_note(trace, "record.window"))
        return;

    const struct rp_trace *t = trace;
    rp_event last = RP_NONE;
    for (uint32_t i = 0; i < t->ntracks; i++) {
        if (t->tracks[i].process != process || !is_thread(t, &t->tracks[i]))
            continue;
        for (rp_event e = t->tracks[i].first; e < t->tracks[i].end; e++)
            if (t->ev.ts_ns[e] != RP_NO_TS && t->ev.kind[e] != RP_KIND_INSTANT &&
                t->ev.kind[e] != RP_KIND_OVERHEAD && t->ev.kind[e] != RP_KIND_COUNTER &&
                (last == RP_NONE || t->ev.ts_ns[e] > t->ev.ts_ns[last]))
                last = e;
    }
    out->last = last;
    if (out->last == RP_NONE) /* it may have continued as another program, which was not recorded */
        return;
    out->cut = true;
    out->last_ns = rp_ns_between(trace->totals.span_begin_ns, trace->ev.ts_ns[out->last]);
}
