/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a track are trees. They are walked from the last to the first, each after the event
   around it and the one that follows it there, because these two limit where it may end. */
#include "trace/build/moved.h"

#include "base/vec.h"

#include <stdlib.h>

/* A clock that gains more than this part of an event's time was set during it, because no clock
   drifts so much. */
#define MOST_DRIFT 0.001

struct moving {
    const struct rp_trace *t;
    rp_time_fn *time;
    const void *user;
    struct rp_moved *out;
    uint32_t *last, *before; /* by event: its last child; the child before it of the same parent */
    uint32_t *after;         /* the next one */
    RP_VEC(rp_event) stack;
};

/* Sums wrap around, because damaged files may have any times. */
static int64_t sum_of(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t moved_time(const struct moving *m, rp_event e, int64_t ns)
{
    return m->time(m->user, m->t->tracks[m->t->ev.track[e]].process, ns);
}

static rp_event parent_of(const struct rp_trace *t, rp_event e)
{
    rp_event p = t->ev.parent[e];

    return p != RP_NONE && t->ev.track[p] == t->ev.track[e] && t->ev.ts_ns[p] != RP_NO_TS ? p
                                                                                          : RP_NONE;
}

/* The duration of an event: as recorded, unless its clock was set meanwhile. */
static int64_t duration_of(const struct moving *m, rp_event e, int64_t begin_ns)
{
    int64_t dur = m->t->ev.dur_ns[e], by_ends;

    if (dur <= 0)
        return dur;
    by_ends = sum_of(moved_time(m, e, rp_event_end_ns(m->t, e)), -begin_ns);
    return by_ends > 0 && llabs(by_ends - dur) > (int64_t)(MOST_DRIFT * (double)dur) + 1 ? by_ends
                                                                                         : dur;
}

static void move_event(struct moving *m, rp_event e)
{
    const struct rp_trace *t = m->t;
    rp_event p = parent_of(t, e), next = m->after[e];
    int64_t begin = moved_time(m, e, t->ev.ts_ns[e]), dur = duration_of(m, e, begin);
    int64_t length = dur > 0 ? dur : 0, limit = INT64_MAX;

    if (p != RP_NONE && m->out->dur_ns[p] >= 0)
        limit = sum_of(m->out->begin_ns[p], m->out->dur_ns[p]);
    if (next != RP_NONE && rp_event_end_ns(t, e) <= t->ev.ts_ns[next] &&
        m->out->begin_ns[next] < limit)
        limit = m->out->begin_ns[next];
    if (dur == t->ev.dur_ns[e] && begin > sum_of(limit, -length))
        begin = sum_of(limit, -length);
    if (p != RP_NONE && begin < sum_of(m->out->begin_ns[p], m->out->begin_ns[e]))
        begin = sum_of(m->out->begin_ns[p], m->out->begin_ns[e]);
    m->out->begin_ns[e] = begin;
    m->out->dur_ns[e] = dur;
}

/* The time that earlier events inside the same event need. It is stored in place of the begin of an
   event until that is moved. */
static int64_t room_before(const struct moving *m, rp_event e)
{
    rp_event before = m->before[e];
    int64_t dur = before == RP_NONE ? 0 : m->t->ev.dur_ns[before];

    if (before == RP_NONE)
        return 0;
    return sum_of(m->out->begin_ns[before],
                  dur > 0 && rp_event_end_ns(m->t, before) <= m->t->ev.ts_ns[e] ? dur : 0);
}

/* The children of each event of a track; returns the last of those that have no parent. */
static rp_event list_children(struct moving *m, const struct rp_track_info *track)
{
    rp_event e, top = RP_NONE;

    for (e = track->first; e < track->end; e++) {
        rp_event p = parent_of(m->t, e);
        uint32_t *last = p == RP_NONE ? &top : &m->last[p];

        m->last[e] = m->before[e] = m->after[e] = RP_NONE;
        m->out->begin_ns[e] = m->t->ev.ts_ns[e];
        m->out->dur_ns[e] = m->t->ev.dur_ns[e];
        if (m->t->ev.ts_ns[e] == RP_NO_TS)
            continue;
        m->before[e] = *last;
        if (*last != RP_NONE)
            m->after[*last] = e;
        m->out->begin_ns[e] = room_before(m, e);
        *last = e;
    }
    return top;
}

static enum rp_code move_track(struct moving *m, const struct rp_track_info *track,
                               struct rp_err *err)
{
    rp_event e = list_children(m, track);

    if (e != RP_NONE)
        RP_TRY(rp_vec_push(&m->stack, e, err));
    while (m->stack.n) {
        e = m->stack.at[--m->stack.n];
        move_event(m, e);
        if (m->before[e] != RP_NONE)
            RP_TRY(rp_vec_push(&m->stack, m->before[e], err));
        if (m->last[e] != RP_NONE)
            RP_TRY(rp_vec_push(&m->stack, m->last[e], err));
    }
    return RP_OK;
}

enum rp_code rp_moved_init(struct rp_moved *out, const struct rp_trace *t, rp_time_fn *time,
                           const void *user, struct rp_err *err)
{
    size_t n = (size_t)t->ev.n + 1;
    struct moving m = {.t = t, .time = time, .user = user, .out = out};
    uint32_t *lists = malloc(3 * n * sizeof *lists);
    enum rp_code code = RP_OK;

    *out = (struct rp_moved){malloc(n * sizeof *out->begin_ns), malloc(n * sizeof *out->dur_ns)};
    if (!lists || !out->begin_ns || !out->dur_ns)
        code = rp_err_nomem(err, "joining traces");
    if (code == RP_OK) {
        m.last = lists;
        m.before = lists + n;
        m.after = lists + 2 * n;
    }
    for (rp_track k = 0; k < t->ntracks && code == RP_OK; k++)
        code = move_track(&m, &t->tracks[k], err);
    rp_vec_release(&m.stack);
    free(lists);
    return code;
}

void rp_moved_release(struct rp_moved *m)
{
    free(m->begin_ns);
    free(m->dur_ns);
}
