/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes tiles: pictures of a stretch of time, for tracks. At zoom z a piece is 2^z ns and a tile
 * 512 pieces; tile i begins at i * 512 * 2^z. A row with few events in the tile lists them; a row
 * with many sums up each piece. Both take a time that depends only on the size of the answer.
 *
 *     tile?z=10&i=3&lanes=0.4,0.5      tracks 4 and 5 of the first rank; 0.5s: samples
 *     {"names": [["name", class], …],
 *      "lanes": {"0.4": [{"row": 0, "events": [begin, duration, name, event, …]},
 *                        {"row": 1, "pieces": [piece, count, busy, name, event, …]}],
 *                "0.5": [{"series": "bytes", "values": [time, value, …]},
 *                        {"series": "blocks", "ranges": [piece, lowest, highest, …]}]}}
 *
 * Times count from the begin of the tile; a duration of -1 is an instant. `busy` is 0 to 255; name
 * and event are those of the longest, count those of the events that begin there. Each lane is a
 * line, and so are the names, so that a page can take an answer in parts.
 */
#include "base/hash.h"
#include "io/escaped.h"
#include "result/print_units.h"
#include "view/view.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define SERIES_MOST 16 /* of a counter */

struct tile {
    const struct rp_view *view;
    struct rp_out *to;
    int64_t begin_ns, end_ns; /* of the view */
    int zoom;
    size_t events_most; /* of a row that is listed */
    struct rp_map names;
    RP_VEC(uint64_t) named; /* keys of names: rank << 36 | name << 4 | class */
    const struct rp_view_rank *rank;
    int64_t bounds[RP_VIEW_TILE + 1]; /* of the pieces, on the clock of the rank */
};

/* ------------------------------------------------------------------ names */

/* Returns the number of a name and class in this answer. */
static uint32_t number_name(struct tile *tile, rp_str name, unsigned class)
{
    uint64_t rank = (uint64_t)(tile->rank - tile->view->ranks.at);
    uint64_t key = rank << 36 | (uint64_t)name << 4 | class;
    uint32_t fresh = (uint32_t)tile->named.n, id;

    if (rp_map_intern(&tile->names, key, fresh, &id, NULL) != RP_OK)
        return 0;
    if (id == fresh)
        (void)!rp_vec_push(&tile->named, key, NULL);
    return id;
}

static uint32_t tile_name(struct tile *tile, rp_event e)
{
    const struct rp_trace *t = tile->rank->trace;

    return number_name(tile, t->ev.name[e], rp_view_class(t, e));
}

static void put_names(struct tile *tile)
{
    rp_out_text(tile->to, "\"names\":[");
    for (size_t i = 0; i < tile->named.n; i++) {
        uint64_t key = tile->named.at[i];
        const struct rp_trace *t = tile->view->ranks.at[key >> 36].trace;

        rp_out_text(tile->to, i ? ",[" : "[");
        rp_out_escaped(tile->to, RP_IN_SCRIPT, rp_trace_str(t, (rp_str)(key >> 4)));
        rp_out_printf(tile->to, ",%u]", (unsigned)(key & 15));
    }
    rp_out_char(tile->to, ']');
}

/* ------------------------------------------------------------------ rows of events */

static void put_events(struct tile *tile, const struct rp_view_row *row, uint32_t a, uint32_t b)
{
    rp_out_printf(tile->to, "{\"row\":%u,\"events\":[", row->depth);
    for (uint32_t i = a; i < b; i++) {
        rp_event e = tile->rank->index.event.at[row->first + i];
        bool first = i == a;
        const struct rp_trace *t = tile->rank->trace;
        int64_t begin = rp_view_time(tile->rank, t->ev.ts_ns[e]);
        int64_t end = rp_view_time(tile->rank, rp_event_end_ns(t, e));

        rp_out_printf(tile->to, "%s%" PRId64 ",%" PRId64 ",%u,%u", first ? "" : ",",
                      rp_ns_between(tile->begin_ns, begin),
                      t->ev.dur_ns[e] < 0 ? -1 : rp_ns_between(begin, end), tile_name(tile, e), e);
    }
    rp_out_text(tile->to, "]}");
}

/* Returns the busy time of a piece from events a to b; the first may begin before it, and the last
   end after it. longest is the longest of them. */
static int64_t busy_in(const struct tile *tile, const struct rp_view_row *row, uint32_t a,
                       uint32_t b, int64_t from, int64_t to, rp_event *longest)
{
    const struct rp_view_index *index = &tile->rank->index;
    const struct rp_trace *t = tile->rank->trace;
    const rp_event *e = index->event.at + row->first;
    int64_t sum = rp_view_row_sum(index, t, row, a, b, longest);

    if (a < b && t->ev.ts_ns[e[a]] < from)
        sum -= rp_ns_between(t->ev.ts_ns[e[a]], from);
    if (a < b && rp_event_end_ns(t, e[b - 1]) > to)
        sum -= rp_ns_between(to, rp_event_end_ns(t, e[b - 1]));
    return sum < 0 ? 0 : sum;
}

/* Writes a piece in which events a to b begin; the one before a may reach into it. */
static bool put_piece(struct tile *tile, const struct rp_view_row *row, uint32_t k, uint32_t a,
                      uint32_t b, bool first)
{
    const struct rp_trace *t = tile->rank->trace;
    const rp_event *e = tile->rank->index.event.at + row->first;
    int64_t from = tile->bounds[k], to = tile->bounds[k + 1], width = rp_ns_between(from, to);
    bool reaches = a > 0 && rp_event_end_ns(t, e[a - 1]) > from;
    rp_event longest;

    if (a == b && !reaches)
        return false;
    int64_t busy = busy_in(tile, row, a - reaches, b, from, to, &longest);
    rp_out_printf(tile->to, "%s%u,%u,%d,%u,%u", first ? "" : ",", k, b - a,
                  width <= 0 || busy >= width ? 255 : (int)((double)busy / (double)width * 255),
                  tile_name(tile, longest), longest);
    return true;
}

static void put_pieces(struct tile *tile, const struct rp_view_row *row, uint32_t a)
{
    bool first = true;

    rp_out_printf(tile->to, "{\"row\":%u,\"pieces\":[", row->depth);
    for (uint32_t k = 0; k < RP_VIEW_TILE; k++) {
        uint32_t b =
            rp_view_row_from(&tile->rank->index, tile->rank->trace, row, tile->bounds[k + 1]);

        if (put_piece(tile, row, k, a, b, first))
            first = false;
        a = b;
    }
    rp_out_text(tile->to, "]}");
}

/* Returns whether it wrote anything. */
static bool put_row(struct tile *tile, const struct rp_view_row *row, bool first)
{
    const struct rp_view_index *index = &tile->rank->index;
    const struct rp_trace *t = tile->rank->trace;
    uint32_t a = rp_view_row_from(index, t, row, tile->bounds[0]);
    uint32_t b = rp_view_row_from(index, t, row, tile->bounds[RP_VIEW_TILE]);
    bool reaches =
        a > 0 && rp_event_end_ns(t, index->event.at[row->first + a - 1]) > tile->bounds[0];

    if (a == b && !reaches)
        return false;
    if (!first)
        rp_out_char(tile->to, ',');
    if (b - a <= tile->events_most)
        put_events(tile, row, a - reaches, b);
    else
        put_pieces(tile, row, a);
    return true;
}

/* ------------------------------------------------------------------ counters */

static bool counter_value(const struct rp_trace *t, rp_event e, uint32_t key, double *out)
{
    struct rp_arg arg;

    if (!rp_args_find(&t->args, t->ev.shape[e], t->ev.arg_row[e], key, &arg))
        return false;
    if (arg.type == RP_ARG_I64)
        *out = (double)arg.v.i;
    else if (arg.type == RP_ARG_F64)
        *out = arg.v.f;
    else
        return false;
    return isfinite(*out);
}

static void put_double(struct rp_out *to, double value)
{
    char text[32];

    rp_units_double(value, text);
    rp_out_printf(to, ",%s", text);
}

/* Writes the values, including the last one before the tile. */
static void put_values(struct tile *tile, const struct rp_view_row *row, uint32_t key, uint32_t a,
                       uint32_t b)
{
    const struct rp_trace *t = tile->rank->trace;
    bool first = true;
    double value;

    rp_out_text(tile->to, "\"values\":[");
    for (uint32_t i = a > 0 ? a - 1 : 0; i < b; i++) {
        rp_event e = tile->rank->index.event.at[row->first + i];

        if (!counter_value(t, e, key, &value))
            continue;
        rp_out_printf(tile->to, "%s%" PRId64, first ? "" : ",",
                      rp_ns_between(tile->begin_ns, rp_view_time(tile->rank, t->ev.ts_ns[e])));
        put_double(tile->to, value);
        first = false;
    }
    rp_out_char(tile->to, ']');
}

static void put_ranges(struct tile *tile, const struct rp_view_row *row, uint32_t key, uint32_t a)
{
    const struct rp_trace *t = tile->rank->trace;
    bool first = true;

    rp_out_text(tile->to, "\"ranges\":[");
    for (uint32_t k = 0; k < RP_VIEW_TILE; k++) {
        double low = INFINITY, high = -INFINITY, value;
        uint32_t b = rp_view_row_from(&tile->rank->index, t, row, tile->bounds[k + 1]);

        for (; a < b; a++)
            if (counter_value(t, tile->rank->index.event.at[row->first + a], key, &value)) {
                low = value < low ? value : low;
                high = value > high ? value : high;
            }
        if (low > high)
            continue;
        rp_out_printf(tile->to, "%s%u", first ? "" : ",", k);
        put_double(tile->to, low);
        put_double(tile->to, high);
        first = false;
    }
    rp_out_char(tile->to, ']');
}

/* The series of a counter are the arguments of its first event. */
static void put_counter(struct tile *tile, const struct rp_view_row *row)
{
    const struct rp_trace *t = tile->rank->trace;
    const struct rp_view_index *index = &tile->rank->index;
    rp_event e = index->event.at[row->first];
    uint32_t n = rp_args_count(&t->args, t->ev.shape[e], t->ev.arg_row[e]);
    uint32_t a = rp_view_row_from(index, t, row, tile->bounds[0]);
    uint32_t b = rp_view_row_from(index, t, row, tile->bounds[RP_VIEW_TILE]);
    bool first = true;

    for (uint32_t i = 0; i < n && i < SERIES_MOST; i++) {
        struct rp_arg arg = rp_args_at(&t->args, t->ev.shape[e], t->ev.arg_row[e], i);

        if (arg.type != RP_ARG_I64 && arg.type != RP_ARG_F64)
            continue;
        rp_out_text(tile->to, first ? "{\"series\":" : ",{\"series\":");
        first = false;
        rp_out_escaped(tile->to, RP_IN_SCRIPT, rp_trace_str(t, arg.key));
        rp_out_char(tile->to, ',');
        if (b - a <= tile->events_most)
            put_values(tile, row, arg.key, a, b);
        else
            put_ranges(tile, row, arg.key, a);
        rp_out_char(tile->to, '}');
    }
}

/* ------------------------------------------------------------------ samples */

/* Writes frames as events, whose numbers are those of their stacks. */
static enum rp_code put_strip(struct tile *tile, rp_track track, struct rp_err *err)
{
    rp_view_frames frames = {0};
    enum rp_code code =
        rp_view_strip(tile->rank->trace, track, tile->bounds, tile->events_most, &frames, err);

    rp_out_char(tile->to, '[');
    for (size_t i = 0; i < frames.n; i++) {
        if (!i || frames.at[i].depth != frames.at[i - 1].depth)
            rp_out_printf(tile->to, "%s{\"row\":%u,\"events\":[", i ? "]}," : "",
                          frames.at[i].depth);
        else
            rp_out_char(tile->to, ',');

        const struct rp_view_frame *f = &frames.at[i];
        const struct rp_call_samples *s = &tile->rank->trace->samples;
        const struct rp_call_frame *frame = &s->frame[s->stacks[f->stack].frame];
        int64_t begin = rp_view_time(tile->rank, f->begin_ns);
        rp_out_printf(tile->to, "%" PRId64 ",%" PRId64 ",%u,%u",
                      rp_ns_between(tile->begin_ns, begin),
                      rp_ns_between(begin, rp_view_time(tile->rank, f->end_ns)),
                      number_name(tile, frame->name, rp_view_frame_class(frame->kind)), f->stack);
    }
    rp_out_text(tile->to, frames.n ? "]}]" : "]");
    rp_vec_release(&frames);
    return code;
}

/* ------------------------------------------------------------------ the answer */

static void put_lane(struct tile *tile, rp_track track)
{
    const struct rp_view_index *index = &tile->rank->index;
    const struct rp_trace *t = tile->rank->trace;
    uint32_t begin = index->track_row[track], end = index->track_row[track + 1];
    bool first = true;

    rp_out_char(tile->to, '[');
    if (t->tracks[track].kind == RP_TRACK_COUNTER && begin < end)
        put_counter(tile, &index->rows.at[begin]);
    else
        for (uint32_t r = begin; r < end; r++)
            if (put_row(tile, &index->rows.at[r], first))
                first = false;
    rp_out_char(tile->to, ']');
}

static void set_rank(struct tile *tile, const struct rp_view_rank *rank)
{
    if (rank == tile->rank)
        return;
    tile->rank = rank;
    for (int64_t k = 0; k <= RP_VIEW_TILE; k++)
        tile->bounds[k] = rp_view_own_time(
            rank, tile->zoom < 0 ? (k == RP_VIEW_TILE ? tile->end_ns : tile->begin_ns)
                                 : rp_ns_sum(tile->begin_ns, k << tile->zoom));
}

/* Reads "0.4,0.5s": ranks by their place, and tracks, or the samples of a track. */
static enum rp_code put_lanes(struct tile *tile, const char *lanes, struct rp_err *err)
{
    size_t n = 0;

    for (const char *at = lanes; *at; n++) {
        char *end;
        unsigned long rank = strtoul(at, &end, 10), track = 0;
        bool good = end > at && *end == '.' && end[1] >= '0' && end[1] <= '9', strip;

        if (good)
            track = strtoul(end + 1, &end, 10);
        strip = good && *end == 's';
        end += strip;
        if (!good || (*end && *end != ',') || rank >= tile->view->ranks.n ||
            track >= tile->view->ranks.at[rank].trace->ntracks || n >= RP_VIEW_LANES_MOST)
            return rp_err_set(err, RP_USAGE, "there is no lane '%.40s'", lanes);
        set_rank(tile, &tile->view->ranks.at[rank]);
        rp_out_printf(tile->to, "%s\"%lu.%lu%s\":", n ? ",\n" : "", rank, track, strip ? "s" : "");
        if (strip)
            RP_TRY(put_strip(tile, (rp_track)track, err));
        else
            put_lane(tile, (rp_track)track);
        at = *end ? end + 1 : end;
    }
    return RP_OK;
}

static void tile_release(struct tile *tile)
{
    rp_map_release(&tile->names);
    rp_vec_release(&tile->named);
}

enum rp_code rp_view_tile(const struct rp_view *view, const char *query, struct rp_out *to,
                          struct rp_err *err)
{
    struct tile tile = {.view = view, .to = to, .events_most = RP_VIEW_TILE};
    char lanes[RP_VIEW_LANES_MOST * 12];
    int64_t zoom, i;

    RP_TRY(rp_view_number(query, "z", RP_VIEW_ZOOM_MOST, &zoom, err));
    RP_TRY(rp_view_number(query, "i", INT64_MAX >> (zoom + RP_VIEW_TILE_BITS + 1), &i, err));
    RP_TRY(rp_view_text(query, "lanes", lanes, sizeof lanes, err));
    tile.zoom = (int)zoom;
    tile.begin_ns = i << (zoom + RP_VIEW_TILE_BITS);
    rp_out_text(to, "{\"lanes\":{");
    enum rp_code code = put_lanes(&tile, lanes, err);
    rp_out_text(to, "},\n");
    put_names(&tile);
    rp_out_text(to, "}");
    tile_release(&tile);
    return code;
}

enum rp_code rp_view_put_events(const struct rp_view *view, int64_t from_ns, int64_t to_ns,
                                size_t most, struct rp_out *to, struct rp_err *err)
{
    struct tile tile = {.view = view,
                        .to = to,
                        .begin_ns = from_ns,
                        .end_ns = to_ns,
                        .zoom = -1,
                        .events_most = most};
    enum rp_code code = RP_OK;
    bool first = true;
    uint32_t sample, n;

    rp_out_text(to, "{\"lanes\":{");
    for (size_t r = 0; r < view->ranks.n && code == RP_OK; r++)
        for (rp_track track = 0; track < view->ranks.at[r].trace->ntracks; track++) {
            set_rank(&tile, &view->ranks.at[r]);
            rp_out_printf(to, "%s\"%zu.%u\":", first ? "" : ",\n", r, track);
            put_lane(&tile, track);
            first = false;
            rp_view_samples(tile.rank->trace, track, &sample, &n);
            if (!n || code != RP_OK)
                continue;
            rp_out_printf(to, ",\n\"%zu.%us\":", r, track);
            code = put_strip(&tile, track, err);
        }
    rp_out_text(to, "},");
    put_names(&tile);
    rp_out_text(to, "}");
    tile_release(&tile);
    return code;
}
