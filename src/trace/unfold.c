/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds folds. Calls of a thread and work of a stream are lanes: in the order of their ids, times
 * go forward. A lane has a fold if times go back once, so that several events before and after
 * share the same times. The folds of all lanes at about the same time are one: the clock was set
 * back by at least the distance from the last begin before it in any lane to the first begin after
 * it in any lane. A fold is certain if calls show it, or work that begins before its call. Times
 * outside of these two begins are certain. Between them, events with an id are divided by it: on
 * lanes with a fold, at the fold; device work of other lanes, which may have no fold if it is
 * sparse, where the times between neighbours are most like those between the same neighbours
 * elsewhere. Events without an id are divided where their track goes back in the order of the file.
 */
#include "trace/unfold.h"

#include "base/order.h"
#include "base/vec.h"
#include "trace/copy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define LONGEST_NS (INT64_MAX / 1024)
#define LEAST_NS   20000 /* ids of calls that race are swapped by less than this */
#define LEAST      4     /* events on either side that must share the same times */
#define MOST       8     /* folds of a trace */
#define DISORDER   8     /* a lane that goes back so often has ids in no order */
#define LOOK_BACK  4096  /* how far to look for neighbours with the same names */
#define USUAL      5     /* of them */

struct item {
    int64_t id, begin_ns, end_ns;
    rp_event event;
};
typedef RP_VEC(struct item) item_vec;

struct fold {
    int64_t last_ns;  /* the last begin before */
    int64_t first_ns; /* the first begin after */
    int64_t least_ns; /* the clock was set back by at least that much */
    int64_t id;       /* of the first after */
};

struct lane {
    rp_track track;
    bool on_device, found, certain;
    struct fold fold;
    size_t first, n; /* items */
};

struct unfolding {
    const struct rp_trace *t;
    int64_t *add_ns; /* by event: by how much it is moved so far */
    item_vec items;  /* of all lanes */
    RP_VEC(struct lane) lanes;
    item_vec scratch;
};

RP_ORDER(by_ns, int64_t, RP_COMPARE(*a, *b))

RP_ORDER(by_id, struct item, RP_UP(id), RP_UP(begin_ns), RP_UP(event))

/* Damaged files may have any times, so traces that last longer than LONGEST_NS are left alone, and
   sums of a few differences do not overflow. */
static bool is_limited(const struct rp_trace *t)
{
    int64_t span;

    return !__builtin_sub_overflow(t->totals.span_end_ns, t->totals.span_begin_ns, &span) &&
           span <= LONGEST_NS;
}

static bool has_time(const struct rp_trace *t, rp_event e)
{
    return t->ev.ts_ns[e] > INT64_MIN / 4 && t->ev.ts_ns[e] < INT64_MAX / 4 &&
           t->origins[t->ev.origin[e]].phase != 'M';
}

static bool is_usable(const struct rp_trace *t, rp_event e)
{
    return has_time(t, e) && t->ev.dur_ns[e] >= 0 && t->ev.dur_ns[e] <= LONGEST_NS;
}

static bool has_id(const struct rp_trace *t, rp_event e)
{
    return t->ev.link[e] != RP_NONE && t->links.source[t->ev.link[e]] == RP_LINK_CORRELATION &&
           !(t->ev.flags[e] & (RP_EVENT_ASYNC | RP_EVENT_ID_TEXT));
}

static int64_t id_of(const struct rp_trace *t, rp_event e)
{
    return t->links.native_id[t->ev.link[e]];
}

static bool is_in_lane(const struct rp_trace *t, rp_event e, uint8_t flag)
{
    return (t->origins[t->ev.origin[e]].flags & flag) && has_id(t, e) && is_usable(t, e);
}

/* ------------------------------------------------------------------ lanes */

/* Whether ids go back in the order of time often enough for a fold. */
static bool may_be_folded(const struct rp_trace *t, const struct rp_track_info *k, uint8_t flag)
{
    int64_t last = INT64_MIN;
    size_t back = 0;

    for (rp_event e = k->first; e < k->end && back < LEAST; e++)
        if (is_in_lane(t, e, flag)) {
            back += id_of(t, e) < last;
            last = id_of(t, e);
        }
    return back >= LEAST;
}

/* Whether calls have the same id although none is inside another. */
static bool has_id_twice(const struct item *at, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (at[i].id == at[i - 1].id && at[i].begin_ns > at[i - 1].end_ns + LEAST_NS)
            return true;
    return false;
}

static enum rp_code add_lane(struct unfolding *u, rp_track track, uint8_t flag, struct rp_err *err)
{
    const struct rp_trace *t = u->t;
    struct lane lane = {.track = track, .on_device = flag == RP_ORIGIN_GPU, .first = u->items.n};

    for (rp_event e = t->tracks[track].first; e < t->tracks[track].end; e++)
        if (is_in_lane(t, e, flag)) {
            struct item item = {id_of(t, e), t->ev.ts_ns[e], rp_event_end_ns(t, e), e};

            RP_TRY(rp_vec_push(&u->items, item, err));
        }
    lane.n = u->items.n - lane.first;
    rp_sort(u->items.at + lane.first, lane.n, sizeof *u->items.at, by_id);
    if (!lane.on_device && has_id_twice(u->items.at + lane.first, lane.n)) {
        u->items.n = lane.first;
        return RP_OK;
    }
    return rp_vec_push(&u->lanes, lane, err);
}

static enum rp_code find_lanes(struct unfolding *u, struct rp_err *err)
{
    static const uint8_t flags[] = {RP_ORIGIN_RUNTIME, RP_ORIGIN_GPU};

    for (rp_track k = 0; k < u->t->ntracks; k++)
        for (size_t i = 0; i < 2; i++)
            if (may_be_folded(u->t, &u->t->tracks[k], flags[i]))
                RP_TRY(add_lane(u, k, flags[i], err));
    return RP_OK;
}

/* ------------------------------------------------------------------ folds of a lane */

static int64_t moved_ns(const struct unfolding *u, const struct item *i)
{
    return i->begin_ns + u->add_ns[i->event];
}

struct span {
    int64_t begin_ns, end_ns;
};

/* From the first begin to the last. */
static struct span span_of(const struct unfolding *u, const struct item *at, size_t n)
{
    struct span s = {INT64_MAX, INT64_MIN};

    for (size_t i = 0; i < n; i++) {
        int64_t ns = moved_ns(u, &at[i]);

        s.begin_ns = ns < s.begin_ns ? ns : s.begin_ns;
        s.end_ns = ns > s.end_ns ? ns : s.end_ns;
    }
    return s;
}

static size_t count_in(const struct unfolding *u, const struct item *at, size_t n, struct span s)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += moved_ns(u, &at[i]) >= s.begin_ns && moved_ns(u, &at[i]) <= s.end_ns;
    return count;
}

/* Whether enough events on both sides of item m share the same times: those from..m and m..to. */
static bool shares_times(const struct unfolding *u, const struct item *at, size_t from, size_t m,
                         size_t to)
{
    struct span a = span_of(u, at + from, m - from), b = span_of(u, at + m, to - m);
    struct span both = {a.begin_ns > b.begin_ns ? a.begin_ns : b.begin_ns,
                        a.end_ns < b.end_ns ? a.end_ns : b.end_ns};

    return count_in(u, at + from, m - from, both) >= LEAST &&
           count_in(u, at + m, to - m, both) >= LEAST;
}

/* Where times go back next after item m, or n. */
static size_t next_back(const struct unfolding *u, const struct item *at, size_t n, size_t m)
{
    int64_t high = moved_ns(u, &at[m]);

    for (size_t i = m + 1; i < n; i++) {
        int64_t ns = moved_ns(u, &at[i]);

        if (ns < high - LEAST_NS)
            return i;
        high = ns > high ? ns : high;
    }
    return n;
}

/* Whether several of these begin before their calls, as work does that was launched before the
   clock was set back. Otherwise it may be the ids that are out of order. */
static bool begins_too_early(const struct unfolding *u, const struct item *at, size_t n)
{
    const struct rp_trace *t = u->t;
    size_t early = 0;

    for (size_t i = 0; i < n && early < LEAST; i++) {
        rp_link link = t->ev.link[at[i].event];
        rp_event call = t->links.member[t->links.offset[link]]; /* host calls come first */

        early += !rp_kind_is_device_work(t->ev.kind[call]) && is_usable(t, call) &&
                 t->ev.ts_ns[call] + u->add_ns[call] > moved_ns(u, &at[i]) + LEAST_NS;
    }
    return early >= LEAST;
}

static void find_fold(const struct unfolding *u, struct lane *lane)
{
    const struct item *at = u->items.at + lane->first;
    size_t m, to, backs = 0;

    lane->found = false;
    for (m = next_back(u, at, lane->n, 0); m < lane->n && backs < DISORDER; m = to, backs++) {
        to = next_back(u, at, lane->n, m);
        if (lane->found || !shares_times(u, at, 0, m, to))
            continue;
        lane->found = true;
        lane->certain = !lane->on_device || begins_too_early(u, at + m, to - m);
        lane->fold = (struct fold){
            .last_ns = span_of(u, at, m).end_ns, .first_ns = moved_ns(u, &at[m]), .id = at[m].id};
        lane->fold.least_ns = lane->fold.last_ns - lane->fold.first_ns;
        if (lane->on_device) /* work of a stream does not overlap */
            lane->fold.least_ns += at[m - 1].end_ns - at[m - 1].begin_ns;
    }
    lane->found &= backs < DISORDER;
}

static bool is_the_same(const struct fold *a, const struct fold *b)
{
    int64_t apart = llabs(a->last_ns - b->last_ns), differ = llabs(a->least_ns - b->least_ns);

    return apart <= a->least_ns && differ <= a->least_ns / 2;
}

/* Finds the first fold of all lanes; clears `found` of lanes that do not have it. */
static bool join_folds(struct unfolding *u, struct fold *out)
{
    const struct lane *first = NULL;
    struct fold of;

    for (size_t i = 0; i < u->lanes.n; i++) {
        find_fold(u, &u->lanes.at[i]);
        if (u->lanes.at[i].found && u->lanes.at[i].certain &&
            (!first || u->lanes.at[i].fold.last_ns < first->fold.last_ns))
            first = &u->lanes.at[i];
    }
    if (!first)
        return false;
    *out = of = first->fold;
    for (size_t i = 0; i < u->lanes.n; i++) {
        struct lane *lane = &u->lanes.at[i];

        lane->found &= is_the_same(&of, &lane->fold);
        if (!lane->found)
            continue;
        out->last_ns = lane->fold.last_ns > out->last_ns ? lane->fold.last_ns : out->last_ns;
        out->first_ns = lane->fold.first_ns < out->first_ns ? lane->fold.first_ns : out->first_ns;
        out->least_ns = lane->fold.least_ns > out->least_ns ? lane->fold.least_ns : out->least_ns;
    }
    if (out->last_ns - out->first_ns > out->least_ns)
        out->least_ns = out->last_ns - out->first_ns;
    return true;
}

/* ------------------------------------------------------------------ what comes after */

/* What lanes show is certain only for these lanes; others may begin a little earlier or later. */
static bool is_between(const struct unfolding *u, const struct fold *f, rp_event e)
{
    int64_t ns = u->t->ev.ts_ns[e] + u->add_ns[e], margin = llabs(f->least_ns) / 2;

    return ns >= f->first_ns - margin && ns <= f->last_ns + margin;
}

/* Finds the usual time between two neighbours: the median of the last few with the same names. */
static bool find_usual(const struct unfolding *u, const struct item *at, size_t i, int64_t *usual)
{
    const rp_str *name = u->t->ev.name;
    int64_t found[USUAL];
    size_t n = 0;

    for (size_t k = i - 1; k > 0 && i - k < LOOK_BACK && n < USUAL; k--)
        if (name[at[k].event] == name[at[i].event] &&
            name[at[k - 1].event] == name[at[i - 1].event])
            found[n++] = moved_ns(u, &at[k]) - moved_ns(u, &at[k - 1]);
    qsort(found, n, sizeof *found, by_ns);
    *usual = n ? found[n / 2] : 0;
    return n > 0;
}

/* Finds the first id after the fold among device work of all streams, where the times between
   neighbours are most like the usual ones; INT64_MAX if none is between. If the loop repeats, this
   also shows by how much more than is certain the clock was set back. */
static enum rp_code find_device_id(struct unfolding *u, const struct fold *f, int64_t *id,
                                   int64_t *more_ns, struct rp_err *err)
{
    int64_t best = INT64_MAX;

    *id = INT64_MAX;
    *more_ns = 0;

    /* Device work of all streams in the order of its ids. */
    u->scratch.n = 0;
    for (rp_event e = 0; e < u->t->ev.n; e++)
        if (is_in_lane(u->t, e, RP_ORIGIN_GPU)) {
            struct item item = {id_of(u->t, e), u->t->ev.ts_ns[e], 0, e};

            RP_TRY(rp_vec_push(&u->scratch, item, err));
        }
    rp_sort(u->scratch.at, u->scratch.n, sizeof *u->scratch.at, by_id);

    for (size_t i = 1; i < u->scratch.n; i++) {
        const struct item *at = u->scratch.at;
        int64_t usual, apart = moved_ns(u, &at[i]) - moved_ns(u, &at[i - 1]), odd;

        if (at[i].id == at[i - 1].id || !is_between(u, f, at[i].event) ||
            !is_between(u, f, at[i - 1].event))
            continue;
        bool known = find_usual(u, at, i, &usual);
        odd = llabs(apart + f->least_ns - usual) - llabs(apart - usual);
        if (odd >= best)
            continue;
        best = odd;
        *id = at[i].id;
        *more_ns = known ? usual - apart - f->least_ns : 0;
    }
    return RP_OK;
}

enum rp_code rp_trace_id_after(const struct rp_trace *t, int64_t from_ns, int64_t to_ns,
                               int64_t add_ns, int64_t *id, struct rp_err *err)
{
    struct fold f = {.first_ns = from_ns, .last_ns = to_ns, .least_ns = add_ns};
    struct unfolding u = {.t = t};
    int64_t more;

    *id = INT64_MAX;
    if (!is_limited(t) || add_ns < -LONGEST_NS || add_ns > LONGEST_NS || from_ns < INT64_MIN / 2 ||
        to_ns > INT64_MAX / 2)
        return RP_OK;
    u.add_ns = calloc((size_t)t->ev.n + 1, sizeof *u.add_ns);
    enum rp_code code =
        u.add_ns ? find_device_id(&u, &f, id, &more, err) : rp_err_nomem(err, "merging ranks");
    free(u.add_ns);
    rp_vec_release(&u.scratch);
    return code;
}

RP_ORDER(by_place, struct item, RP_UP(id))

/* Finds the place in the file from which on events without an id come after the fold. */
static enum rp_code find_place(struct unfolding *u, const struct fold *f, rp_track track,
                               int64_t *place, struct rp_err *err)
{
    const struct rp_trace *t = u->t;
    int64_t furthest = 0;

    *place = INT64_MAX;
    u->scratch.n = 0;
    for (rp_event e = t->tracks[track].first; e < t->tracks[track].end; e++)
        if (!has_id(t, e) && is_usable(t, e) && is_between(u, f, e)) {
            struct item item = {t->ev.seq[e], t->ev.ts_ns[e], 0, e};

            RP_TRY(rp_vec_push(&u->scratch, item, err));
        }
    rp_sort(u->scratch.at, u->scratch.n, sizeof *u->scratch.at, by_place);
    for (size_t i = 1; i < u->scratch.n; i++) {
        int64_t back = moved_ns(u, &u->scratch.at[i - 1]) - moved_ns(u, &u->scratch.at[i]);

        if (back > furthest) {
            furthest = back;
            *place = u->scratch.at[i].id;
        }
    }
    return RP_OK;
}

static const struct lane *lane_of(const struct unfolding *u, rp_track track, bool on_device)
{
    for (size_t i = 0; i < u->lanes.n; i++)
        if (u->lanes.at[i].track == track && u->lanes.at[i].on_device == on_device &&
            u->lanes.at[i].found)
            return &u->lanes.at[i];
    return NULL;
}

static enum rp_code move_track(struct unfolding *u, const struct fold *f, rp_track track,
                               int64_t device_id, struct rp_err *err)
{
    const struct rp_trace *t = u->t;
    const struct lane *calls = lane_of(u, track, false), *work = lane_of(u, track, true);
    int64_t place, ids[2] = {calls ? calls->fold.id : INT64_MAX, work ? work->fold.id : device_id};

    RP_TRY(find_place(u, f, track, &place, err));
    for (rp_event e = t->tracks[track].first; e < t->tracks[track].end; e++) {
        const int64_t *id = has_id(t, e) ? &ids[rp_kind_is_device_work(t->ev.kind[e])] : NULL;
        int64_t ns = t->ev.ts_ns[e];

        if (!has_time(t, e))
            continue;
        bool after = ns + u->add_ns[e] > f->last_ns;
        if (id && *id != INT64_MAX && (is_between(u, f, e) || *id != device_id))
            after = id_of(t, e) >= *id;
        else if (!id && place != INT64_MAX && is_between(u, f, e))
            after = t->ev.seq[e] >= place;
        u->add_ns[e] += after ? f->least_ns : 0;
    }
    return RP_OK;
}

static enum rp_code find_moves(struct unfolding *u, struct fold *f, size_t *n, struct rp_err *err)
{
    struct fold next;

    u->add_ns = calloc((size_t)u->t->ev.n + 1, sizeof *u->add_ns);
    RP_TRY(rp_err_need(u->add_ns, err, "reading a trace"));
    for (*n = 0; *n < MOST && join_folds(u, &next); ++*n) {
        int64_t device_id, more;

        RP_TRY(find_device_id(u, &next, &device_id, &more, err));
        next.least_ns += more > 0 && more < next.least_ns ? more : 0;
        for (rp_track k = 0; k < u->t->ntracks; k++)
            RP_TRY(move_track(u, &next, k, device_id, err));
        next.least_ns += *n ? f->least_ns : 0;
        *f = next;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ the new trace */

static enum rp_code unfolded(const struct unfolding *u, const struct fold *f, size_t n,
                             const struct rp_limits *limits, struct rp_trace **out,
                             struct rp_err *err)
{
    char moved[32], warning[160];
    struct rp_copy how = {.add_ns = u->add_ns, .set_back = moved, .warning = warning};

    snprintf(moved, sizeof moved, "%" PRId64, f->least_ns);
    snprintf(warning, sizeof warning,
             n == 1 ? "the clock was set back during the recording, by %.3f ms or more: what came "
                      "after is moved"
                    : "the clock was set back several times during the recording, by %.3f ms or "
                      "more in all: what came after is moved",
             (double)f->least_ns / 1e6);
    RP_TRY(rp_trace_require(u->t, RP_NEED_ALL, err));
    return rp_trace_copy(u->t, &how, limits, out, err);
}

enum rp_code rp_trace_unfold(struct rp_trace **trace, const struct rp_limits *limits,
                             struct rp_err *err)
{
    struct unfolding u = {.t = *trace};
    struct rp_trace *out = NULL;
    struct fold fold = {0};
    size_t n = 0;

    if ((!u.t->health.runtime_events && !u.t->health.gpu_events) || !is_limited(u.t))
        return RP_OK;
    RP_TRY(rp_trace_require(u.t, RP_NEED_EVENTS | RP_NEED_LINKS, err));
    enum rp_code code = find_lanes(&u, err);
    if (code == RP_OK && u.lanes.n)
        code = find_moves(&u, &fold, &n, err);
    if (code == RP_OK && n)
        code = unfolded(&u, &fold, n, limits, &out, err);
    if (code == RP_OK && out) {
        rp_trace_free(*trace);
        *trace = out;
    }
    free(u.add_ns);
    rp_vec_release(&u.items);
    rp_vec_release(&u.lanes);
    rp_vec_release(&u.scratch);
    return code;
}
