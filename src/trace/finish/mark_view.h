/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The data in which the marks of steps and their device work are found: the columns of a builder
 * after the pass `names`, or those of a frozen trace, which are the same. Borrowed. Inside
 * src/trace only.
 */
#include "trace/build/state.h"

struct rp_mark_view {
    uint32_t nevents, nstrings;
    size_t ntracks;
    const int64_t *ts_ns, *dur_ns;
    const rp_str *name;
    const rp_track *track;
    const rp_link *link;
    const uint32_t *seq;
    const uint16_t *origin;
    const uint8_t *kind, *flags;
    const struct rp_track_info *tracks;
    const struct rp_process *processes;
    const struct rp_origin *origins;
    const uint32_t *member_offset;
    const rp_event *member;
    const uint64_t *str_offset;
    const char *str_bytes;
};

static inline struct rp_mark_view rp_mark_view_of_builder(const struct rp_builder *b)
{
    return (struct rp_mark_view){.nevents = b->ev.n,
                                 .nstrings = b->str.n,
                                 .ntracks = b->tracks.n,
                                 .ts_ns = b->ev.ts_ns.at,
                                 .dur_ns = b->ev.dur_ns.at,
                                 .name = b->ev.name.at,
                                 .track = b->ev.track.at,
                                 .link = b->ev.link.at,
                                 .seq = b->ev.seq.at,
                                 .origin = b->ev.origin.at,
                                 .kind = b->ev.kind.at,
                                 .flags = b->ev.flags.at,
                                 .tracks = b->tracks.at,
                                 .processes = b->processes.at,
                                 .origins = b->origins.at,
                                 .member_offset = b->member_offset.at,
                                 .member = b->member.at,
                                 .str_offset = b->str.offset.at,
                                 .str_bytes = b->str.bytes.at};
}

/* Requires events and links. */
static inline struct rp_mark_view rp_mark_view_of_trace(const struct rp_trace *t)
{
    return (struct rp_mark_view){.nevents = t->ev.n,
                                 .nstrings = t->str.n,
                                 .ntracks = t->ntracks,
                                 .ts_ns = t->ev.ts_ns,
                                 .dur_ns = t->ev.dur_ns,
                                 .name = t->ev.name,
                                 .track = t->ev.track,
                                 .link = t->ev.link,
                                 .seq = t->ev.seq,
                                 .origin = t->ev.origin,
                                 .kind = t->ev.kind,
                                 .flags = t->ev.flags,
                                 .tracks = t->tracks,
                                 .processes = t->processes,
                                 .origins = t->origins,
                                 .member_offset = t->links.offset,
                                 .member = t->links.member,
                                 .str_offset = t->str.offset,
                                 .str_bytes = t->str.bytes};
}

static inline const char *rp_mark_view_text(const struct rp_mark_view *v, rp_str s)
{
    return v->str_bytes + v->str_offset[s];
}

static inline bool rp_mark_view_is_span(const struct rp_mark_view *v, rp_event e)
{
    return v->ts_ns[e] != RP_NO_TS && v->dur_ns[e] >= 0;
}

/* The end of a span; saturates. */
static inline int64_t rp_mark_view_end_ns(const struct rp_mark_view *v, rp_event e)
{
    int64_t end;

    return __builtin_add_overflow(v->ts_ns[e], v->dur_ns[e], &end) ? INT64_MAX : end;
}

/* Fills work_end_ns of steps in time order (steps_work.c). */
void rp_steps_end_work(const struct rp_mark_view *v, struct rp_step *steps, size_t n);
