/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes rows of frames from samples of call stacks: the flame strip of a thread. A sample
 * represents the time up to the next one, but not for much longer than samples are apart; frames
 * that stay on the stack from one sample to the next are one frame. If a piece of a tile has many
 * samples, one is taken, so that a strip of any length costs the same.
 */
#include "base/order.h"
#include "view/view.h"

struct strip {
    const struct rp_trace *trace;
    struct rp_view_frame
        open[RP_VIEW_ROWS_MOST]; /* by depth; `depth` is RP_NONE if there is none */
    rp_view_frames *out;
};

void rp_view_samples(const struct rp_trace *t, rp_track track, uint32_t *first, uint32_t *n)
{
    const struct rp_call_samples *s = &t->samples;
    size_t i;

    RP_LOWER_BOUND(i, s->n, s->track[i] < track);
    *first = (uint32_t)i;
    RP_LOWER_BOUND(i, s->n, s->track[i] <= track);
    *n = (uint32_t)i - *first;
    if (*n && s->ts_ns[*first] == RP_NO_TS)
        *n = 0;
}

/* Lists the frames of a stack, outermost first; those beyond the last row are left out. */
static uint32_t list_frames(const struct rp_trace *t, uint32_t stack, uint32_t *out)
{
    uint32_t depth = 0, left;

    for (uint32_t s = stack; s != RP_NONE; s = t->samples.stacks[s].parent)
        depth++;
    left = depth;
    for (uint32_t s = stack; s != RP_NONE; s = t->samples.stacks[s].parent)
        if (--left < RP_VIEW_ROWS_MOST)
            out[left] = s;
    return depth < RP_VIEW_ROWS_MOST ? depth : RP_VIEW_ROWS_MOST;
}

uint32_t rp_view_sample_rows(const struct rp_trace *t, uint32_t first, uint32_t n)
{
    uint32_t frames[RP_VIEW_ROWS_MOST], most = 0;

    for (uint32_t i = first; i < first + n && most < RP_VIEW_ROWS_MOST; i++) {
        uint32_t depth = list_frames(t, t->samples.stack[i], frames);

        most = depth > most ? depth : most;
    }
    return most;
}

/* Ends the open frames from a depth on. */
static enum rp_code close_frames(struct strip *s, uint32_t depth, struct rp_err *err)
{
    for (; depth < RP_VIEW_ROWS_MOST && s->open[depth].depth != RP_NONE; depth++) {
        RP_TRY(rp_vec_push(s->out, s->open[depth], err));
        s->open[depth].depth = RP_NONE;
    }
    return RP_OK;
}

static enum rp_code add_sample(struct strip *s, uint32_t i, int64_t end_ns, struct rp_err *err)
{
    int64_t begin = s->trace->samples.ts_ns[i];
    uint32_t frames[RP_VIEW_ROWS_MOST];
    uint32_t n = list_frames(s->trace, s->trace->samples.stack[i], frames), same = 0;

    while (same < n && s->open[same].depth == same && s->open[same].stack == frames[same] &&
           s->open[same].end_ns >= begin)
        s->open[same++].end_ns = end_ns;
    RP_TRY(close_frames(s, same, err));
    for (; same < n; same++)
        s->open[same] = (struct rp_view_frame){same, frames[same], begin, end_ns};
    return RP_OK;
}

RP_ORDER(by_row, struct rp_view_frame, RP_UP(depth), RP_UP(begin_ns))

/* Returns the longest time that a sample represents. */
static int64_t reach_of(const struct rp_call_samples *s, uint32_t i, uint32_t first, uint32_t n)
{
    int64_t apart = s->unit == RP_WEIGHT_NS && s->weight[i] > 0
                        ? s->weight[i]
                        : rp_ns_between(s->ts_ns[first], s->ts_ns[first + n - 1]) / n;

    return rp_ns_sum(apart, apart);
}

enum rp_code rp_view_strip(const struct rp_trace *t, rp_track track, const int64_t *bounds,
                           size_t most, rp_view_frames *out, struct rp_err *err)
{
    const struct rp_call_samples *s = &t->samples;
    struct strip strip = {.trace = t, .out = out};
    uint32_t first, n, a, b;
    size_t i, k = 0;

    rp_view_samples(t, track, &first, &n);
    RP_LOWER_BOUND(i, n, s->ts_ns[first + i] < bounds[0]);
    a = first + (uint32_t)i - (i > 0);
    RP_LOWER_BOUND(i, n, s->ts_ns[first + i] < bounds[RP_VIEW_TILE]);
    b = first + (uint32_t)i;
    for (size_t d = 0; d < RP_VIEW_ROWS_MOST; d++)
        strip.open[d].depth = RP_NONE;
    bool thin = b - a > most;
    while (a < b) {
        uint32_t next = a + 1;
        int64_t end = rp_ns_sum(s->ts_ns[a], reach_of(s, a, first, n));

        if (thin) { /* the next one is in a later piece */
            while (k < RP_VIEW_TILE && bounds[k] <= s->ts_ns[a])
                k++;
            RP_LOWER_BOUND(i, b - a, s->ts_ns[a + i] < bounds[k]);
            next = a + (uint32_t)i > next ? a + (uint32_t)i : next;
        }
        if (next < first + n && (s->ts_ns[next] < end || thin))
            end = s->ts_ns[next];
        RP_TRY(add_sample(&strip, a, end, err));
        a = next;
    }
    RP_TRY(close_frames(&strip, 0, err));
    rp_sort(out->at, out->n, sizeof *out->at, by_row);
    return RP_OK;
}
