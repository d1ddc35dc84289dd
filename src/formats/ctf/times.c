/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of a recording. Its calibrations (the counter and the system's clocks, read together)
 * are joined by straight lines, so the drift of the counter against the system does not matter.
 * Readings that took much longer than the best one are left out, and of readings close together
 * only one is kept: the error of a reading, about its width, then tilts a line of at least 50 ms.
 * Before the first and after the last reading their lines go on.
 */
#include "formats/ctf/ctf.h"

#include "base/order.h"
#include <stdlib.h>

#define SHORTEST_NS 50000000
#define SHIFT       RP_CTF_TIMES_SHIFT

typedef rp_ctf_wide wide;

RP_ORDER(by_ticks, struct rp_ctf_clock, RP_UP(ticks))

static uint64_t factor_of(uint64_t ticks, uint64_t ns)
{
    wide factor = ticks ? ((wide)ns << SHIFT) / ticks : 0;

    return factor > UINT64_MAX ? UINT64_MAX : (uint64_t)factor;
}

static uint32_t narrowest(const struct rp_ctf_times *t)
{
    uint32_t best = UINT32_MAX;

    for (size_t i = 0; i < t->read.n; i++)
        best = t->read.at[i].width < best ? t->read.at[i].width : best;
    return best;
}

enum rp_code rp_ctf_times_settle(struct rp_ctf_times *t, struct rp_err *err)
{
    uint64_t factor = factor_of(t->frequency, 1000000000);
    struct rp_ctf_segment only = {0, 0, factor};

    if (t->read.n) {
        /* Keeps the readings that can be trusted, in order: both clocks must move forward. */
        uint64_t limit = (uint64_t)narrowest(t) * 8 + 1000;
        size_t kept = 0;
        qsort(t->read.at, t->read.n, sizeof *t->read.at, by_ticks);
        for (size_t i = 0; i < t->read.n; i++) {
            const struct rp_ctf_clock *c = &t->read.at[i];
            const struct rp_ctf_clock *before = kept ? &t->read.at[kept - 1] : NULL;
            if (c->width > limit || c->monotonic_ns < 0 || c->monotonic_ns > RP_TIME_MAX_NS ||
                c->realtime_ns < 0 || c->realtime_ns > RP_TIME_MAX_NS)
                continue;
            if (!before ||
                (c->ticks > before->ticks && c->monotonic_ns - before->monotonic_ns >= SHORTEST_NS))
                t->read.at[kept++] = *c;
        }
        t->read.n = kept;
    }
    if (!t->read.n) { /* only the description: time of day */
        t->base_ns = t->offset_ns;
        return rp_vec_push(&t->segments, only, err);
    }
    t->base_ns = t->read.at[0].realtime_ns - t->read.at[0].monotonic_ns;
    for (size_t i = 0; i < t->read.n; i++) {
        const struct rp_ctf_clock *c = &t->read.at[i];
        struct rp_ctf_segment s = {c->ticks, c->monotonic_ns, factor};

        if (i + 1 < t->read.n)
            s.factor = factor_of(c[1].ticks - c->ticks, (uint64_t)(c[1].monotonic_ns - s.ns));
        else if (i)
            s.factor = t->segments.at[i - 1].factor;
        RP_TRY(rp_vec_push(&t->segments, s, err));
    }
    return RP_OK;
}

static int64_t clamp(int64_t from, wide delta, bool back)
{
    int64_t room = back ? RP_TIME_MAX_NS + from : RP_TIME_MAX_NS - from;

    if (delta > (wide)(room > 0 ? room : 0))
        delta = (wide)(room > 0 ? room : 0);
    return back ? from - (int64_t)delta : from + (int64_t)delta;
}

int64_t rp_ctf_times_find(struct rp_ctf_times *t, uint64_t ticks)
{
    const struct rp_ctf_segment *s = &t->segments.at[t->last];

    while (t->last && ticks < s->ticks)
        s = &t->segments.at[--t->last];
    while (t->last + 1 < t->segments.n && ticks >= s[1].ticks)
        s = &t->segments.at[++t->last];

    /* Number of ticks from the beginning of the segment for which no product or sum overflows. */
    bool last = t->last + 1 == t->segments.n;
    uint64_t most = s->factor ? (uint64_t)(((wide)INT64_C(1) << (SHIFT + 60)) / s->factor) : 0;
    t->from = s->ticks;
    if (__builtin_add_overflow(s->ticks, most, &t->to))
        t->to = UINT64_MAX;
    if (!last && s[1].ticks < t->to)
        t->to = s[1].ticks;
    if (ticks >= s->ticks)
        return clamp(s->ns, ((wide)(ticks - s->ticks) * s->factor) >> SHIFT, false);
    return clamp(s->ns, ((wide)(s->ticks - ticks) * s->factor) >> SHIFT, true);
}

void rp_ctf_times_release(struct rp_ctf_times *t)
{
    rp_vec_release(&t->read);
    rp_vec_release(&t->segments);
}
