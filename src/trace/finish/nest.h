/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The spans that are open at a time of a track, innermost last. Spans come in canonical order
 * (start, longer first). A span that ends before a later one ends can never be an innermost span
 * again, so it is dropped when the later one is entered: ends never increase towards the top, and
 * every span is pushed and dropped once, for any input. Inside src/trace only.
 *
 *   a ----------------------------       stack when c is entered: a c    (b crosses c and is gone)
 *      b ---------                        parent of c: a; c is flagged as crossing
 *            c ------------
 */
#include "base/err.h"
#include "base/vec.h"
#include "trace/trace.h"

struct rp_nest {
    RP_VEC(struct rp_nest_span {
        int64_t end_ns;
        rp_event event;
    })
    open;
};

/* Drops spans that ended at or before ts. */
static inline void rp_nest_advance(struct rp_nest *nest, int64_t ts_ns)
{
    while (nest->open.n && nest->open.at[nest->open.n - 1].end_ns <= ts_ns)
        nest->open.n--;
}

static inline rp_event rp_nest_top(const struct rp_nest *nest)
{
    return nest->open.n ? nest->open.at[nest->open.n - 1].event : RP_NONE;
}

/*
 * Enters a span; if it is unended, it lasts as long as the span around it. Sets *parent to the
 * innermost span that encloses it completely, and *crosses if it ends after the span in which it
 * starts.
 */
static inline enum rp_code rp_nest_enter(struct rp_nest *nest, rp_event event, int64_t ts_ns,
                                         int64_t end_ns, bool unended, rp_event *parent,
                                         bool *crosses, struct rp_err *err)
{
    struct rp_nest_span span = {end_ns, event};

    rp_nest_advance(nest, ts_ns);
    if (unended)
        span.end_ns = nest->open.n ? nest->open.at[nest->open.n - 1].end_ns : INT64_MAX;
    *crosses = nest->open.n && span.end_ns > nest->open.at[nest->open.n - 1].end_ns;
    while (nest->open.n && nest->open.at[nest->open.n - 1].end_ns < span.end_ns)
        nest->open.n--;
    *parent = rp_nest_top(nest);
    return rp_vec_push(&nest->open, span, err);
}
