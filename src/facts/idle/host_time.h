/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds what the host ran in an interval in which it launched nothing, as segments in the order of
 * time, each with one cause and the span that shows it. The thread that launches the next work is
 * examined; if it runs nothing, the thread with the most spans; if it waits for another thread,
 * that one.
 */
#include "base/hash.h"
#include "facts/idle/gaps.h"
#include "facts/times/durations.h"
#include "facts/work/call_work.h"

struct rp_host_segment {
    int64_t begin_ns, end_ns;
    rp_event host; /* RP_NONE if nothing was recorded */
    uint8_t cause; /* enum rp_gap_cause */
};

/* A span that is open while a thread is walked, the innermost last. */
struct rp_host_open {
    int64_t end_ns;
    rp_event event, above_host;
    rp_event host;              /* shows the cause of the time in which it is the innermost */
    uint8_t cause, above_cause; /* above: the cause of the spans around it, seen from it */
    uint8_t shown;              /* the cause that it shows itself, or RP_GAP_CAUSES */
    bool stall;                 /* it is a stall */
    bool warms_up;              /* it, or one around it, is a warm-up */
};

struct rp_host_leaf {
    rp_event event;
    int64_t ns;
};

struct rp_host_name {
    int64_t ns;
    uint32_t leaf; /* 1 + the index of the leaf that was added last */
    uint32_t spans;
    rp_event last;
};

struct rp_host_time {
    const struct rp_trace *t;
    bool marked; /* steps are marked, so the first in the recording was not the first of the run */
    rp_track busiest; /* the thread with most spans that has not only runtime calls; or RP_NONE */
    rp_event loads;   /* the first launch of a kernel, which may load its code; or RP_NONE */
    int64_t least_ns; /* shorter segments join their neighbour */
    RP_VEC(uint16_t) sign;    /* by string */
    RP_VEC(uint8_t) launches; /* by track: whether it has runtime calls */
    RP_VEC(uint32_t) calls;   /* by string: number of events with the name */
    struct rp_call_work sizes;
    struct rp_map stalls;  /* from an event to whether it is a stall */
    struct rp_map medians; /* from a name to its index in median */
    struct rp_map firsts;  /* from a name to its first event */
    RP_VEC(int64_t) median;
    RP_VEC(int64_t) scratch;
    RP_VEC(struct rp_host_open) open;
    size_t base; /* spans below it are open on the thread for which another one is examined */
    RP_VEC(struct rp_host_leaf) leaves; /* time that no special cause explains, by innermost span */
    RP_VEC(struct rp_host_segment) segments;
    RP_VEC(struct rp_host_name) names; /* by string, for `leaves`; 0 if it is not in `named` */
    RP_VEC(rp_event) named;            /* one event for each name that is not 0 in `names` */
};

/* `trace` must outlive it. It must be released also after a failure. */
enum rp_code rp_host_time_init(struct rp_host_time *h, const struct rp_trace *trace,
                               struct rp_err *err);
void rp_host_time_release(struct rp_host_time *h);

#define RP_HOST_SIGN_UNKNOWN UINT16_MAX /* the name was not classified yet */
uint16_t rp_host_time_classify(struct rp_host_time *h, rp_event e);

/* Bits of enum rp_host_sign of a span's name. */
static inline uint16_t rp_host_time_sign(struct rp_host_time *h, rp_event e)
{
    uint16_t sign = h->sign.at[h->t->ev.name[e]];

    return sign != RP_HOST_SIGN_UNKNOWN ? sign : rp_host_time_classify(h, e);
}

/* Divides [begin, end) of a thread into `segments`. An interval shorter than RP_HOST_LONG_NS
   becomes one segment, with the cause of most time. Linear in the spans inside. */
enum rp_code rp_host_time_divide(struct rp_host_time *h, rp_track track, int64_t begin_ns,
                                 int64_t end_ns, struct rp_err *err);
