/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds when the device work of each step ends: the host runs ahead of the device, so that work may
 * end long after the mark of the step that launched it. Work belongs to the last step that had
 * begun when it was launched; work without a recorded launch, and work of steps that are marked on
 * the device, to the last one that had begun when it started. Before the first step, after the mark
 * of the last one, and in a break between two, it belongs to none.
 *
 * Each device work costs one search among the steps; the launch of a link is found once.
 */
#include "trace/finish/steps.h"

#include "base/order.h"

/* Of several runtime calls, takes the last one in the file, as in facts/work/work.c; if there is
   none, the first host call. */
int64_t rp_steps_launched_at(const struct rp_mark_view *v, uint32_t link)
{
    rp_event best = RP_NONE, any = RP_NONE;

    for (uint32_t i = v->member_offset[link]; i < v->member_offset[link + 1]; i++) {
        rp_event host = v->member[i];

        if (rp_kind_is_device_work(v->kind[host]))
            break; /* host calls come first */
        if (v->tracks[v->track[host]].kind == RP_TRACK_STREAM)
            continue;
        any = any == RP_NONE ? host : any;
        if ((v->origins[v->origin[host]].flags & RP_ORIGIN_RUNTIME) &&
            (best == RP_NONE || v->seq[host] > v->seq[best]))
            best = host;
    }
    best = best == RP_NONE ? any : best;
    return best == RP_NONE ? RP_NO_TS : v->ts_ns[best];
}

int64_t rp_steps_launched_next(const struct rp_mark_view *v, uint32_t link,
                               struct rp_launch_known *known)
{
    if (link != known->link)
        *known = (struct rp_launch_known){link, rp_steps_launched_at(v, link)};
    return known->at_ns;
}

static void end_work_of_track(const struct rp_mark_view *v, const struct rp_track_info *track,
                              struct rp_step *steps, size_t n)
{
    bool by_launch = !(steps[0].flags & RP_STEP_ON_DEVICE);
    struct rp_launch_known known = {.link = RP_NONE};

    for (rp_event e = track->first; e < track->end; e++) {
        uint32_t link = v->link[e];
        int64_t at = v->ts_ns[e], end;
        size_t after;

        if (!rp_kind_is_device_work(v->kind[e]) || !rp_mark_view_is_span(v, e))
            continue;
        end = rp_mark_view_end_ns(v, e);
        if (by_launch && link != RP_NONE) {
            int64_t launch = rp_steps_launched_next(v, link, &known);

            at = launch == RP_NO_TS ? at : launch;
        }
        RP_LOWER_BOUND(after, n, steps[after].begin_ns <= at);
        if (after && at >= steps[after - 1].end_ns &&
            (after == n || steps[after - 1].flags & RP_STEP_BREAK_AFTER))
            continue;
        if (after && end > steps[after - 1].work_end_ns)
            steps[after - 1].work_end_ns = end; /* RP_NO_TS is below every time */
    }
}

void rp_steps_end_work(const struct rp_mark_view *v, struct rp_step *steps, size_t n)
{
    /* The marks of a trace are on the device or on the host. */
    uint8_t common = RP_STEP_ON_DEVICE;

    for (size_t i = 0; i < n; i++)
        common &= steps[i].flags;
    for (size_t i = 0; i < n; i++)
        steps[i].flags = (uint8_t)((steps[i].flags & ~RP_STEP_ON_DEVICE) | common);

    for (size_t t = 0; n && t < v->ntracks; t++)
        if (v->tracks[t].kind == RP_TRACK_STREAM)
            end_work_of_track(v, &v->tracks[t], steps, n);
}
