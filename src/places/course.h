/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The course of a rank: its work in the order in which its host issued it, small enough to be kept
 * for every rank of a large job. All work between two moments at which host, device or ranks wait
 * for each other is one operation.
 *
 *     host    [h1       ][h2 ][h3        ]  s      [h4
 *     device    \[k1        ]\[C     ][k2 ]/          \[k3       C: a collective   s: a wait
 *
 *     HOST h1 . DEVICE k1 . HOST h2 . COLLECTIVE C . HOST h3 . DEVICE k2 . SYNC . HOST h4 . DEVICE
 * k3
 *
 * An operation consists of items: how often and how long work of a kind (a key) ran in it. Keys are
 * the same for the same work on all ranks. So work can be compared between ranks (peers.h), and the
 * job can be run again with other times (rerun.h). Times are those of the rank's own clock, and
 * only differences of times of one rank are used.
 *
 * If the device need not wait for the host (the work was issued before it could begin), its work is
 * joined; of the joined work, the launch that was closest to being late begins an operation of its
 * own.
 */
#include "base/decides.h"
#include "facts/ranks/collectives.h"
#include "result/part.h"

/* Work that waits for a collective may begin this much before its recorded end. */
#define RP_COURSE_EARLY_NS 3000
RP_DECISION(RP_COURSE_EARLY_NS, "ns",
            "begins and ends of kernels in whole microseconds are each up to 1 us wrong, and a "
            "collective ends up to 1 us apart on its blocks",
            "places/what_begins_a_little_before_the_end_may_have_waited");

enum rp_course_kind {
    RP_COURSE_HOST,       /* the host works for dur_ns */
    RP_COURSE_DEVICE,     /* the device works for dur_ns, after its previous work and its launch */
    RP_COURSE_COLLECTIVE, /* issued by the host, after the device's work that was issued before */
    RP_COURSE_SYNC,       /* the host waits until the device has done the work issued before */
    RP_COURSE_KINDS
};

struct rp_course_op {
    int64_t begin_ns; /* for DEVICE and COLLECTIVE as recorded; for SYNC when the host continues */
    int64_t dur_ns;
    uint32_t first, n; /* items */
    uint32_t
        index;    /* for DEVICE and COLLECTIVE: position in the step, in kernels and collectives */
    uint32_t ref; /* for COLLECTIVE: index in the rank's collectives; for SYNC: the collective for
                     which it also waits, or RP_NONE */
    uint32_t ordinal; /* for COLLECTIVE: its number in the step */
    uint32_t
        wait; /* for COLLECTIVE: index of the first operation that may have waited for its end */
    uint16_t step; /* index in steps */
    uint8_t kind;
    uint8_t tight; /* for COLLECTIVE: that operation began as soon as it had ended */
    uint32_t reserved;
};

struct rp_course_item {
    int64_t dur_ns;
    uint32_t key, n;
};

enum rp_course_class {
    RP_COURSE_KERNEL,
    RP_COURSE_REST, /* of the device, before a kernel */
    RP_COURSE_CALL, /* of the host */
    RP_COURSE_GAP,  /* of the host, before a call, when nothing was recorded */
    RP_COURSE_CLASSES
};

/* A kind of work. */
#define RP_COURSE_KEY_PART(M, s)                                                                  \
    M(s, PLAIN, uint64_t, hash) /* the same on all ranks */                                       \
    M(s, PLAIN, double,                                                                           \
      usual_ns)                 /* usual time of one: the median over the steps of their means */ \
    M(s, PLAIN, double, spread) /* in a step: deviation / mean, as the median over the steps */   \
    M(s, PLAIN, uint32_t, n)    /* in a step, the median */                                       \
    M(s, PLAIN, uint32_t, cls)  /* enum rp_course_class */                                        \
    M(s, TEXT, name)
RP_PART_STRUCT(rp_course_key, RP_COURSE_KEY_PART);

struct rp_course_step {
    int64_t number;
    uint64_t program; /* the same for steps that issue the same work, on any rank */
};

#define RP_COURSE_PART(M, s)                                                                     \
    M(s, PLAIN_LIST, struct rp_course_op, ops)                                                   \
    M(s, PLAIN_LIST, struct rp_course_item, items)                                               \
    M(s, LIST, rp_course_key, keys)                                                              \
    M(s, PLAIN_LIST, struct rp_course_step, steps)                                               \
    M(s, PLAIN, int64_t, begin_ns)   /* when it begins on the host */                            \
    M(s, PLAIN, int64_t, latency_ns) /* the least time from a launch to the begin of its work */ \
    M(s, PLAIN, int64_t, gap_ns)     /* the least time between two items of work on a stream */
RP_PART_STRUCT(rp_course, RP_COURSE_PART);
extern const struct rp_type rp_course_type; /* as a member of a part */

/* Makes the course of the work of a rank, which is that of one device, with its collectives. Its
   memory is in the arena; without collectives or other work it is empty. Linear in events, and a
   sort of the work. */
enum rp_code rp_course_make(struct rp_course *out, const struct rp_work *work,
                            const struct rp_collectives *collectives, struct rp_arena *arena,
                            struct rp_err *err);
