/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep over the begins, middles and ends of all stalls, with counts of who is stalled. */
#include "explain/stalls/together.h"

#include "base/strtab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AT_BEGIN, AT_MIDDLE, AT_END };

struct moment {
    int64_t at_ns;
    uint32_t stall;
    int what;
};

struct sweep {
    struct rp_stall *stalls;
    const uint32_t *place;
    struct moment *moments;
    uint32_t *lane;              /* by stall: its rank and thread */
    uint32_t *on_rank, *on_lane; /* how many are stalled now */
    size_t ranks_stalled;
};

static int by_time(const void *pa, const void *pb)
{
    const struct moment *a = pa, *b = pb;

    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns ? -1 : 1;
    if (a->what != b->what)
        return a->what < b->what ? -1 : 1;
    return (a->stall > b->stall) - (a->stall < b->stall);
}

static enum rp_code number_lanes(struct sweep *s, size_t n, struct rp_err *err)
{
    struct rp_strtab names;
    enum rp_code code = rp_strtab_init(&names, err);
    char text[128];
    size_t i;

    for (i = 0; i < n && code == RP_OK; i++) {
        int len = snprintf(text, sizeof text, "%u %s", s->place[i], s->stalls[i].thread);

        code = rp_strtab_intern(&names, text, (size_t)len < sizeof text ? (size_t)len : 127,
                                &s->lane[i], err);
    }
    rp_strtab_release(&names);
    return code;
}

static void list_moments(struct sweep *s, size_t n, const int64_t *offset_ns)
{
    size_t i;

    for (i = 0; i < n; i++) {
        int64_t begin = rp_ns_sum(s->stalls[i].begin_ns, offset_ns[s->place[i]]);
        int64_t dur = s->stalls[i].dur_ns;

        s->moments[3 * i] = (struct moment){begin, (uint32_t)i, AT_BEGIN};
        s->moments[3 * i + 1] = (struct moment){rp_ns_sum(begin, dur / 2), (uint32_t)i, AT_MIDDLE};
        s->moments[3 * i + 2] = (struct moment){rp_ns_sum(begin, dur), (uint32_t)i, AT_END};
    }
    if (n)
        qsort(s->moments, 3 * n, sizeof *s->moments, by_time);
}

static void decide(struct sweep *s, uint32_t i, size_t nranks)
{
    uint32_t rank = s->place[i];
    size_t others = s->ranks_stalled - (s->on_rank[rank] > 0);

    if (s->stalls[i].why != RP_STALL_UNKNOWN)
        return;
    if (s->on_rank[rank] > s->on_lane[s->lane[i]] || (nranks > 1 && others * 2 >= nranks - 1))
        s->stalls[i].why = RP_STALL_TOGETHER;
}

enum rp_code rp_stalls_find_together(struct rp_stall *stalls, const uint32_t *place, size_t n,
                                     const int64_t *offset_ns, size_t nranks,
                                     struct rp_arena *arena, struct rp_err *err)
{
    struct sweep s = {.stalls = stalls, .place = place};
    size_t i;

    s.moments = RP_ARENA_NEW(arena, struct moment, 3 * n + 1);
    s.lane = RP_ARENA_NEW(arena, uint32_t, n + 1);
    s.on_rank = RP_ARENA_NEW(arena, uint32_t, nranks + 1);
    s.on_lane = RP_ARENA_NEW(arena, uint32_t, n + 1);
    if (!s.moments || !s.lane || !s.on_rank || !s.on_lane)
        return rp_err_nomem(err, "comparing stalls");
    RP_TRY(number_lanes(&s, n, err));
    list_moments(&s, n, offset_ns);
    for (i = 0; i < 3 * n; i++) {
        uint32_t stall = s.moments[i].stall, rank = place[stall], lane = s.lane[stall];

        if (s.moments[i].what == AT_MIDDLE) {
            decide(&s, stall, nranks);
        } else if (s.moments[i].what == AT_BEGIN) {
            s.ranks_stalled += s.on_rank[rank]++ == 0;
            s.on_lane[lane]++;
        } else {
            s.ranks_stalled -= --s.on_rank[rank] == 0;
            s.on_lane[lane]--;
        }
    }
    return RP_OK;
}
