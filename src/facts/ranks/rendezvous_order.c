/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tries every position for the first collective; from there each further one is matched with the
 * one whose end is nearest, by the current difference of the clocks, which follows drift. The
 * position with the smallest sum of distances wins. Steps repeat, but not to the microsecond, so
 * only the right position has a small sum.
 */
#include "facts/ranks/rendezvous.h"

#include "facts/times/intervals.h"

#include <stdlib.h>

#define FIRST_ONES 64       /* collectives that are compared for each position */
#define FAR_NS     10000000 /* upper limit of a distance */
#define TRIES      65536
#define FOLLOW     8 /* a new distance moves the difference of the clocks by 1 / FOLLOW of itself */

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
    size_t i;

    for (i = 0; i < n; i++) {
        size_t last = w->nall - (w->nsome - i); /* leaves room for the rest */
        int64_t wanted = rp_ns_between(clocks, w->some[i].end_ns), d;

        while (at < last &&
               distance(w->all[at + 1].end_ns, wanted) < distance(w->all[at].end_ns, wanted))
            at++;
        d = w->all[at].name == w->some[i].name ? distance(w->all[at].end_ns, wanted) : FAR_NS;
        sum += d;
        if (d < FAR_NS)
            clocks = rp_ns_sum(clocks, rp_ns_between(w->all[at].end_ns, wanted) / FOLLOW);
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
