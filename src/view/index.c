/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes rows of tracks. An event is drawn in the first row that is free when it begins; the order
 * of the events (begin, longer first) puts enclosing events above the others. So the events of a
 * row never overlap, and the part of a row between two times is found by bisection and added up by
 * blocks:
 *
 *     row 0   [A..............] [D....]          A  D
 *     row 1     [B..]  [C..]                     B  C       each from a new block on
 *
 * O(events x depth), 5 bytes an event.
 */
#include "base/each.h"
#include "view/view.h"

#include <stdlib.h>
#include <string.h>

/* Returns the first row that is free then; events beyond the last row share it. */
static uint32_t free_row(int64_t *ends, uint32_t *nrows, int64_t begin, int64_t end)
{
    uint32_t d = 0;

    while (d < *nrows && d + 1 < RP_VIEW_ROWS_MOST && ends[d] > begin)
        d++;
    if (d == *nrows)
        ends[(*nrows)++] = end;
    else if (end > ends[d])
        ends[d] = end;
    return d;
}

/* Sets the depths of the events of a track, and counts them. */
static uint32_t place_events(struct rp_view_index *out, const struct rp_trace *t,
                             const struct rp_track_info *track, uint32_t count[])
{
    int64_t ends[RP_VIEW_ROWS_MOST];
    uint32_t nrows = 0;

    memset(count, 0, RP_VIEW_ROWS_MOST * sizeof *count);
    for (rp_event e = track->first; e < track->end; e++) {
        if (t->ev.ts_ns[e] == RP_NO_TS)
            continue;
        out->depth.at[e] = (uint8_t)free_row(ends, &nrows, t->ev.ts_ns[e], rp_event_end_ns(t, e));
        count[out->depth.at[e]]++;
    }
    return nrows;
}

static size_t whole_blocks(size_t n)
{
    return (n + RP_VIEW_BLOCK - 1) / RP_VIEW_BLOCK * RP_VIEW_BLOCK;
}

static enum rp_code add_rows(struct rp_view_index *out, const struct rp_trace *t, rp_track track,
                             struct rp_err *err)
{
    uint32_t count[RP_VIEW_ROWS_MOST], at[RP_VIEW_ROWS_MOST], d;
    uint32_t nrows = place_events(out, t, &t->tracks[track], count);

    for (d = 0; d < nrows; d++) {
        struct rp_view_row row = {track, d, (uint32_t)out->event.n, count[d]};
        size_t n = whole_blocks(count[d]);

        RP_TRY(rp_vec_push(&out->rows, row, err));
        RP_TRY(rp_vec_reserve(&out->event, n, err));
        for (size_t i = count[d]; i < n; i++)
            out->event.at[out->event.n + i] = RP_NONE;
        at[d] = row.first;
        out->event.n += n;
    }
    for (rp_event e = t->tracks[track].first; e < t->tracks[track].end; e++)
        if (t->ev.ts_ns[e] != RP_NO_TS)
            out->event.at[at[out->depth.at[e]]++] = e;
    return RP_OK;
}

static enum rp_code add_blocks(struct rp_view_index *out, const struct rp_trace *t,
                               struct rp_err *err)
{
    size_t nblocks = out->event.n / RP_VIEW_BLOCK;

    RP_TRY(rp_vec_reserve(&out->block_ns, nblocks + 1, err));
    RP_TRY(rp_vec_reserve(&out->block_longest, nblocks + 1, err));
    for (size_t b = 0; b < nblocks; b++) {
        const rp_event *e = out->event.at + b * RP_VIEW_BLOCK;
        rp_event longest = e[0];
        int64_t sum = 0;

        for (size_t i = 0; i < RP_VIEW_BLOCK && e[i] != RP_NONE; i++) {
            if (t->ev.dur_ns[e[i]] > 0)
                rp_ns_add(&sum, t->ev.dur_ns[e[i]]);
            if (t->ev.dur_ns[e[i]] > t->ev.dur_ns[longest])
                longest = e[i];
        }
        out->block_ns.at[b] = sum;
        out->block_longest.at[b] = longest;
    }
    out->block_ns.n = out->block_longest.n = nblocks;
    return RP_OK;
}

enum rp_code rp_view_index_init(struct rp_view_index *out, const struct rp_trace *t,
                                struct rp_err *err)
{
    *out =
        (struct rp_view_index){.track_row = calloc((size_t)t->ntracks + 1, sizeof *out->track_row)};
    RP_TRY(rp_err_need(out->track_row, err, "preparing a timeline"));
    RP_TRY(rp_vec_reserve(&out->depth, (size_t)t->ev.n + 1, err));
    for (rp_track i = 0; i < t->ntracks; i++) {
        out->track_row[i] = (uint32_t)out->rows.n;
        RP_TRY(add_rows(out, t, i, err));
    }
    out->track_row[t->ntracks] = (uint32_t)out->rows.n;
    return add_blocks(out, t, err);
}

void rp_view_index_release(struct rp_view_index *index)
{
    free(index->track_row);
    RP_EACH(rp_vec_release, &index->rows, &index->event, &index->depth, &index->block_ns,
            &index->block_longest);
}

uint32_t rp_view_row_from(const struct rp_view_index *index, const struct rp_trace *t,
                          const struct rp_view_row *row, int64_t ns)
{
    const rp_event *e = index->event.at + row->first;
    uint32_t low = 0, high = row->n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (t->ev.ts_ns[e[middle]] < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add_event(const struct rp_trace *t, rp_event e, int64_t dur_ns, rp_event *longest)
{
    if (*longest == RP_NONE || dur_ns > t->ev.dur_ns[*longest])
        *longest = e;
}

int64_t rp_view_row_sum(const struct rp_view_index *index, const struct rp_trace *t,
                        const struct rp_view_row *row, uint32_t a, uint32_t b, rp_event *longest)
{
    const rp_event *e = index->event.at + row->first;
    size_t block = row->first / RP_VIEW_BLOCK;
    int64_t sum = 0;

    *longest = RP_NONE;
    while (a < b) {
        if (a % RP_VIEW_BLOCK == 0 && b - a >= RP_VIEW_BLOCK) {
            size_t k = block + a / RP_VIEW_BLOCK;
            rp_event most = index->block_longest.at[k];

            rp_ns_add(&sum, index->block_ns.at[k]);
            add_event(t, most, t->ev.dur_ns[most], longest);
            a += RP_VIEW_BLOCK;
            continue;
        }
        if (t->ev.dur_ns[e[a]] > 0)
            rp_ns_add(&sum, t->ev.dur_ns[e[a]]);
        add_event(t, e[a], t->ev.dur_ns[e[a]], longest);
        a++;
    }
    return sum;
}
