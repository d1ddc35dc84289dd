/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds where threads were, by the samples of their call stacks. Times are added under a key, and
 * the weights of their samples are summed by place. The place of a sample is its innermost Python
 * frame; without one, the innermost frame that is not of the kernel.
 *
 *     struct rp_sampled sampled;
 *     rp_sampled_init(&sampled, trace, err);
 *     rp_sampled_add(&sampled, 0, thread, begin_ns, end_ns, err);    any number of times
 *     place = rp_sampled_main(&sampled, 0);                          NULL: no samples
 *     rp_sampled_release(&sampled);
 */
#include "base/arena.h"
#include "base/hash.h"
#include "base/vec.h"
#include "trace/trace.h"

struct rp_sampled_place {
    uint32_t key, frame; /* frame is RP_NONE for all samples of the key */
    int64_t weight, wants_gil, had_gil;
};

/* How long samples of a place waited for the GIL while a certain thread held it. */
struct rp_sampled_holder {
    uint32_t place;
    rp_track thread;
    int64_t weight;
};

struct rp_sampled_hold {
    int64_t ts_ns;
    rp_track thread;
};

struct rp_sampled {
    const struct rp_trace *t;
    struct rp_map known; /* from (key, frame) to the index in places */
    RP_VEC(struct rp_sampled_place) places;
    struct rp_map held; /* from (place, thread) to the index in holders */
    RP_VEC(struct rp_sampled_holder) holders;
    RP_VEC(struct rp_sampled_hold) holds; /* samples that held the GIL, ordered by time */
    bool has_holds;
    int64_t tick_ns; /* the smallest weight of a sample; 0 if weights are not times */
};

/* Must be released also after a failure. */
enum rp_code rp_sampled_init(struct rp_sampled *s, const struct rp_trace *trace,
                             struct rp_err *err);
void rp_sampled_release(struct rp_sampled *s);

/* Adds the samples of a thread in [begin, end). The thread RP_NONE has none. O(log samples + those
   inside). */
enum rp_code rp_sampled_add(struct rp_sampled *s, uint32_t key, rp_track thread, int64_t begin_ns,
                            int64_t end_ns, struct rp_err *err);

/* The first sample of a thread that may count for a time from begin on, because the thread may have
   been waiting since before. */
size_t rp_sampled_first(const struct rp_trace *t, rp_track thread, int64_t begin_ns);
/* The part of a sample's weight in [begin, end). A thread that waits is sampled once, at the begin
   of its wait, and the weight is the length of the wait. */
int64_t rp_sampled_weight(const struct rp_trace *t, size_t i, int64_t begin_ns, int64_t end_ns);

/* The place of a key with the most weight, or NULL. */
const struct rp_sampled_place *rp_sampled_main(const struct rp_sampled *s, uint32_t key);

/* The time of a place, out of the `ns` that were added under its key. Time without samples is not
   divided among the places, because a thread that waited may have none. */
int64_t rp_sampled_ns(const struct rp_sampled *s, const struct rp_sampled_place *place, int64_t ns);

/* Writes "decode at image.py:88", or on request the whole path. */
const char *rp_sampled_text(const struct rp_sampled *s, const struct rp_sampled_place *place,
                            bool whole_path, struct rp_arena *arena);

/* Writes ", waiting for the GIL held by loader (thread 7)" or ", holding the GIL" if that is more
   than half of its weight; else "". The holder is the thread that most other samples of the same
   time found with it. */
const char *rp_sampled_gil(const struct rp_sampled *s, const struct rp_sampled_place *place,
                           struct rp_arena *arena);

/* "loader (thread 7)", "thread 7" */
const char *rp_thread_text(const struct rp_trace *t, rp_track track, struct rp_arena *arena);
