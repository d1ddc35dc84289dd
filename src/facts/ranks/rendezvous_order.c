/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tries every position for the first collective; from there each further one is matched with the
 * one whose end is nearest, by the current difference of the clocks, which follows drift by half of
 * each distance. The position with the smallest sum of distances wins. Steps repeat, but not to the
 * microsecond, so only the right position has a small sum.
 */
#include "facts/ranks/rendezvous.h"

#include "base/decides.h"
#include "facts/times/durations.h"
#include "facts/times/intervals.h"

#define FAR_NS     (INT64_C(10) * RP_LONG_NS) /* the most that a distance counts */
#define FIRST_ONES 64
RP_LIMIT(
    FIRST_ONES, "collectives",
    "are compared for each position: bounds time to positions times this; more would only repeat the "
    "steps that these show");
#define TRIES 65536
RP_LIMIT(
    TRIES, "positions",
    "are tried for the first collective; who lacks more does not match in time, which is found "
    "afterwards");

static int64_t distance(int64_t a_ns, int64_t b_ns)
{
    int64_t d = rp_ns_between(a_ns, b_ns);

    d = d < 0 ? rp_ns_between(d, 0) : d;
    return d < FAR_NS ? d : FAR_NS;
}

struct walk {
    const struct rp_rendezvous_item *all, *some;
    size_t nall, nsome;
};

/* Matches the first n of `some` from position `at` on. Returns the sum of distances. place may be
 * NULL. */
static int64_t walk_from(const struct walk *w, size_t at, size_t n, uint32_t *place)
{
    int64_t clocks = rp_ns_between(w->all[at].end_ns, w->some[0].end_ns), sum = 0;

    for (size_t i = 0; i < n; i++) {
        size_t last = w->nall - (w->nsome - i); /* leaves room for the others */
        int64_t wanted = rp_ns_between(clocks, w->some[i].end_ns), d;

        while (at < last &&
               distance(w->all[at + 1].end_ns, wanted) < distance(w->all[at].end_ns, wanted))
            at++;
        d = w->all[at].name == w->some[i].name ? distance(w->all[at].end_ns, wanted) : FAR_NS;
        sum += d;
        if (d < FAR_NS)
            clocks = rp_ns_sum(clocks, rp_ns_between(w->all[at].end_ns, wanted) / 2);
        if (place)
            place[i] = (uint32_t)at;
        at++;
    }
    return sum;
}

void rp_rendezvous_place(const struct rp_rendezvous_item *all, size_t nall,
                         const struct rp_rendezvous_item *some, size_t nsome, uint32_t *place)
{
    struct walk w = {all, some, nall, nsome};
    size_t at, best = 0, n = nsome < FIRST_ONES ? nsome : FIRST_ONES;
    int64_t least = INT64_MAX;

    if (!nsome)
        return;
    for (at = 0; at <= nall - nsome && at < TRIES; at++) {
        int64_t sum = walk_from(&w, at, n, NULL);

        if (sum < least) {
            least = sum;
            best = at;
        }
    }
    walk_from(&w, best, nsome, place);
}
