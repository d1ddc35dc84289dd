/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stalls that happen at the same time on several threads or ranks have a cause outside the calls. A
 * sweep over the begins, middles and ends of all stalls counts what is stalled at each moment.
 */
#include "explain/stalls/stalls.h"

#include "base/order.h"
#include "base/strtab.h"

#include <stdio.h>
#include <stdlib.h>

enum { AT_BEGIN, AT_MIDDLE, AT_END, MOMENTS };

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
    uint32_t *on_rank, *on_lane; /* number of stalls now */
    size_t ranks_stalled;
};

RP_ORDER(by_time, struct moment, RP_UP(at_ns), RP_UP(what), RP_UP(stall))

static enum rp_code number_lanes(struct sweep *s, size_t n, struct rp_err *err)
{
    RP_SCOPED(rp_strtab_release) struct rp_strtab names = {0};
    char text[128];

    RP_TRY(rp_strtab_init(&names, err));
    for (size_t i = 0; i < n; i++) {
        int len = snprintf(text, sizeof text, "%u %s", s->place[i], s->stalls[i].thread);

        RP_TRY(rp_strtab_intern(&names, text, (size_t)len < sizeof text ? (size_t)len : 127,
                                &s->lane[i], err));
    }
    return RP_OK;
}

static void list_moments(struct sweep *s, size_t n, const int64_t *offset_ns)
{
    for (size_t i = 0; i < n; i++) {
        int64_t begin = rp_ns_sum(s->stalls[i].begin_ns, offset_ns[s->place[i]]);
        int64_t dur = s->stalls[i].dur_ns;

        struct moment *at = &s->moments[MOMENTS * i];

        at[AT_BEGIN] = (struct moment){begin, (uint32_t)i, AT_BEGIN};
        at[AT_MIDDLE] = (struct moment){rp_ns_sum(begin, dur / 2), (uint32_t)i, AT_MIDDLE};
        at[AT_END] = (struct moment){rp_ns_sum(begin, dur), (uint32_t)i, AT_END};
    }
    if (n)
        qsort(s->moments, MOMENTS * n, sizeof *s->moments, by_time);
}

static void check_middle(struct sweep *s, uint32_t i, size_t nranks)
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

    s.moments = RP_ARENA_NEW(arena, struct moment, MOMENTS * n + 1);
    s.lane = RP_ARENA_NEW(arena, uint32_t, n + 1);
    s.on_rank = RP_ARENA_NEW(arena, uint32_t, nranks + 1);
    s.on_lane = RP_ARENA_NEW(arena, uint32_t, n + 1);
    RP_TRY(rp_arena_check(arena, "comparing stalls", err));
    RP_TRY(number_lanes(&s, n, err));
    list_moments(&s, n, offset_ns);
    for (size_t i = 0; i < MOMENTS * n; i++) {
        uint32_t stall = s.moments[i].stall, rank = place[stall], lane = s.lane[stall];

        if (s.moments[i].what == AT_MIDDLE) {
            check_middle(&s, stall, nranks);
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
