/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counts of health that need the events in order: device work that overlaps on a stream, and
 * host spans that do not nest. They are counted by (process, stream or thread) as the file names
 * them, where 7 and "7" are the same; that is nearly always one track, which is then read directly.
 * If a group has several tracks, or a track several groups (a stream in the arguments that is not
 * the tid), its events are collected and sorted.
 */
#include "base/each.h"
#include "trace/build/dense_ids.h"
#include "trace/build/state.h"
#include "trace/finish/finish.h"

#include <stdlib.h>

struct group {
    struct rp_plain_id process, lane;
};

struct span {
    uint32_t group;
    int64_t begin, dur;
};

enum { MIXED = RP_NONE - 1 }; /* a track whose events belong to different groups */

struct health_ctx {
    struct rp_builder *b;
    bool streams;      /* device work on streams, or spans on threads */
    struct rp_map map; /* hash of a group -> group */
    RP_VEC(struct group) groups;
    RP_VEC(uint8_t) ntracks;   /* of each group: 0, 1 or 2 for more */
    RP_VEC(uint32_t) group_of; /* of each track: RP_NONE, a group or MIXED */
    RP_VEC(uint32_t) column;   /* by shape: column of the argument "stream" */
    rp_str stream_key;
    RP_VEC(struct span) spans;
    RP_VEC(int64_t) stack;
    int64_t count, sum_ns;
};

static bool same_id(struct rp_plain_id a, struct rp_plain_id b)
{
    return a.value == b.value && a.is_text == b.is_text;
}

static enum rp_code intern_group(struct health_ctx *w, struct group g, uint32_t *out,
                                 struct rp_err *err)
{
    uint32_t fresh = (uint32_t)w->groups.n;
    uint64_t key = rp_hash_mix((uint64_t)g.process.value * 2 + g.process.is_text + 1,
                               (uint64_t)g.lane.value * 2 + g.lane.is_text + 1);

    RP_TRY(rp_vec_reserve(&w->groups, 1, err));
    RP_TRY(rp_vec_reserve(&w->ntracks, 1, err));
    for (;; key = rp_hash_u64(key)) {
        RP_TRY(rp_map_intern(&w->map, key, fresh, out, err));
        if (*out == fresh) {
            w->groups.at[w->groups.n++] = g;
            w->ntracks.at[w->ntracks.n++] = 0;
            return RP_OK;
        }
        if (same_id(w->groups.at[*out].process, g.process) &&
            same_id(w->groups.at[*out].lane, g.lane))
            return RP_OK;
    }
}

static struct rp_plain_id id_of(const struct rp_builder *b, int64_t number, rp_str text)
{
    return text || number == RP_ID_EMPTY ? rp_plain_text(&b->str, text) : rp_plain_number(number);
}

static struct group group_of_track(const struct rp_builder *b, const struct rp_track_info *t)
{
    const struct rp_process *p = &b->processes.at[t->process];

    return (struct group){id_of(b, p->native_id, p->text),
                          t->has_id ? id_of(b, t->native_id, t->text) : rp_plain_none(&b->str)};
}

/* A value of the argument "stream" as an id: null becomes "None", true "True". */
static struct rp_plain_id id_of_arg(const struct rp_builder *b, const struct rp_arg *arg)
{
    if (arg->type == RP_ARG_I64)
        return rp_plain_number(arg->v.i);
    if (arg->type == RP_ARG_F64) { /* streams have no fraction, so equal bits mean equal ids */
        int64_t bits;

        memcpy(&bits, &arg->v.f, sizeof bits);
        return (struct rp_plain_id){.value = bits, .is_text = true};
    }
    const char *text = rp_strtab_borrow(&b->str, arg->v.s);
    if (arg->type == RP_ARG_RAW && !strcmp(text, "null"))
        return rp_plain_none(&b->str);
    return rp_plain_text(&b->str, arg->v.s);
}

static bool takes_part(const struct health_ctx *w, rp_event e)
{
    return (rp_build_origin_of(w->b, e)->flags & (w->streams ? RP_ORIGIN_GPU : RP_ORIGIN_NESTS)) &&
           w->b->ev.ts_ns.at[e] != RP_NO_TS;
}

static enum rp_code group_of_event(struct health_ctx *w, const struct rp_track_info *t, rp_event e,
                                   uint32_t *out, struct rp_err *err)
{
    const struct rp_args *args = &w->b->trace->args;
    struct group g = group_of_track(w->b, t);
    uint16_t shape = w->b->ev.shape.at[e];
    struct rp_arg arg;

    if (w->streams && shape && (shape == RP_SHAPE_SPILLED || w->column.at[shape] != UINT32_MAX) &&
        rp_args_find(args, shape, w->b->ev.arg_row.at[e], w->stream_key, &arg))
        g.lane = id_of_arg(w->b, &arg);
    return intern_group(w, g, out, err);
}

/* The number of the stream if it is an integer argument, as it nearly always is. */
static bool stream_number(const struct health_ctx *w, rp_event e, int64_t *number)
{
    const struct rp_args *args = &w->b->trace->args;
    uint16_t shape = w->b->ev.shape.at[e];

    if (shape == RP_SHAPE_SPILLED || w->column.at[shape] == UINT32_MAX ||
        args->key_type[w->column.at[shape]] != RP_ARG_I64)
        return false;
    *number = rp_args_cell(args, w->column.at[shape], w->b->ev.arg_row.at[e]);
    return true;
}

/* A track of several groups is sorted, and so is everything in those groups. */
static uint32_t join_group(struct health_ctx *w, uint32_t mine, uint32_t group)
{
    if (mine == group)
        return mine;
    if (mine == RP_NONE) {
        w->ntracks.at[group] = w->ntracks.at[group] ? 2 : 1;
        return group;
    }
    if (mine != (uint32_t)MIXED)
        w->ntracks.at[mine] = 2;
    w->ntracks.at[group] = 2;
    return MIXED;
}

static enum rp_code group_track(struct health_ctx *w, const struct rp_track_info *track,
                                uint32_t *mine, struct rp_err *err)
{
    int64_t number, last = 0;
    bool have_last = false;
    uint32_t group;

    *mine = RP_NONE;
    for (rp_event e = track->first; e < track->end; e++) {
        if (!takes_part(w, e))
            continue;
        if (w->streams && stream_number(w, e, &number)) {
            if (have_last && number == last)
                continue;
            have_last = true;
            last = number;
        }
        RP_TRY(group_of_event(w, track, e, &group, err));
        *mine = join_group(w, *mine, group);
        if (!w->streams)
            break;
    }
    return RP_OK;
}

static int64_t end_of(int64_t begin, int64_t dur)
{
    int64_t end;

    return __builtin_add_overflow(begin, dur == RP_OPEN_NS ? 0 : dur, &end)
               ? (dur < 0 ? INT64_MIN : INT64_MAX)
               : end;
}

static void add_overlap(struct health_ctx *w, int64_t begin, int64_t end, int64_t *until,
                        bool first)
{
    int64_t common;

    if (!first && begin < *until) {
        w->count++;
        if (__builtin_sub_overflow(end < *until ? end : *until, begin, &common) ||
            __builtin_add_overflow(w->sum_ns, common, &w->sum_ns))
            w->sum_ns = INT64_MAX;
    }
    if (first || end > *until)
        *until = end;
}

static enum rp_code add_nested(struct health_ctx *w, int64_t begin, int64_t end, struct rp_err *err)
{
    while (w->stack.n && w->stack.at[w->stack.n - 1] <= begin)
        w->stack.n--;
    w->count += w->stack.n && end > w->stack.at[w->stack.n - 1];
    while (w->stack.n &&
           w->stack.at[w->stack.n - 1] < end) /* it can never be innermost again, see nest.h */
        w->stack.n--;
    return rp_vec_push(&w->stack, end, err);
}

/* A track that is a group is in order already, except that on streams shorter work comes first. */
static enum rp_code count_track(struct health_ctx *w, const struct rp_track_info *t,
                                struct rp_err *err)
{
    const int64_t *ts = w->b->ev.ts_ns.at, *dur = w->b->ev.dur_ns.at;
    int64_t until = 0;
    bool first = true;
    rp_event e, k, end;

    w->stack.n = 0;
    for (e = t->first; e < t->end; e = end) {
        for (end = e + 1; end < t->end && ts[end] == ts[e]; end++)
            ;
        for (k = e; k < end; k++) {
            rp_event at = w->streams ? end - 1 - (k - e) : k;

            if (!takes_part(w, at))
                continue;
            if (w->streams)
                add_overlap(w, ts[at], end_of(ts[at], dur[at]), &until, first);
            else
                RP_TRY(add_nested(w, ts[at], end_of(ts[at], dur[at]), err));
            first = false;
        }
    }
    return RP_OK;
}

static enum rp_code gather_group(struct health_ctx *w, const struct rp_track_info *t,
                                 struct rp_err *err)
{
    struct span span;

    for (rp_event e = t->first; e < t->end; e++) {
        if (!takes_part(w, e))
            continue;
        RP_TRY(group_of_event(w, t, e, &span.group, err));
        span.begin = w->b->ev.ts_ns.at[e];
        span.dur = w->b->ev.dur_ns.at[e] == RP_OPEN_NS ? 0 : w->b->ev.dur_ns.at[e];
        RP_TRY(rp_vec_push(&w->spans, span, err));
    }
    return RP_OK;
}

/* By group and start; streams: shorter first, threads: longer first. */
static int by_group(const void *pa, const void *pb, void *user)
{
    const struct span *a = pa, *b = pb;
    int sign = *(const bool *)user ? 1 : -1;

    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return a->dur == b->dur ? 0 : a->dur < b->dur ? -sign : sign;
}

static enum rp_code count_gathered(struct health_ctx *w, struct rp_err *err)
{
    int64_t until = 0;

    if (w->spans.n)
        qsort_r(w->spans.at, w->spans.n, sizeof *w->spans.at, by_group, &w->streams);
    for (size_t i = 0; i < w->spans.n; i++) {
        const struct span *s = &w->spans.at[i];
        bool first = i == 0 || s[-1].group != s->group;

        if (first)
            w->stack.n = 0;
        if (w->streams)
            add_overlap(w, s->begin, end_of(s->begin, s->dur), &until, first);
        else
            RP_TRY(add_nested(w, s->begin, end_of(s->begin, s->dur), err));
    }
    return RP_OK;
}

static enum rp_code count_groups(struct health_ctx *w, struct rp_err *err)
{
    const struct rp_args *args = &w->b->trace->args;

    w->stream_key = rp_build_find_str(w->b, "stream");
    RP_TRY(rp_vec_reserve(&w->column, args->nshapes, err));
    for (uint32_t s = 0; s < args->nshapes; s++)
        w->column.at[s] = rp_args_column(args, (uint16_t)s, w->stream_key);

    /* The group of each track, and how many tracks each group has. */
    RP_TRY(rp_vec_reserve(&w->group_of, w->b->tracks.n + 1, err));
    for (size_t t = 0; t < w->b->tracks.n; t++)
        RP_TRY(group_track(w, &w->b->tracks.at[t], &w->group_of.at[t], err));

    for (uint32_t t = 0; t < w->b->tracks.n; t++) {
        uint32_t group = w->group_of.at[t];

        if (group == RP_NONE)
            continue;
        if (group != (uint32_t)MIXED && w->ntracks.at[group] == 1)
            RP_TRY(count_track(w, &w->b->tracks.at[t], err));
        else
            RP_TRY(gather_group(w, &w->b->tracks.at[t], err));
    }
    return count_gathered(w, err);
}

static enum rp_code count_health(struct health_ctx *w, struct rp_err *err)
{
    enum rp_code code = count_groups(w, err);

    rp_map_release(&w->map);
    RP_EACH(rp_vec_release, &w->groups, &w->ntracks, &w->group_of, &w->column, &w->spans,
            &w->stack);
    return code;
}

enum rp_code rp_pass_health(struct rp_builder *b, struct rp_err *err)
{
    struct health_ctx streams = {.b = b, .streams = true}, threads = {.b = b};

    RP_TRY(count_health(&streams, err));
    RP_TRY(count_health(&threads, err));
    b->trace->health.same_stream_overlaps = streams.count;
    b->trace->health.same_stream_overlap_ns = streams.sum_ns;
    b->trace->health.cpu_not_nested = threads.count;
    return RP_OK;
}
