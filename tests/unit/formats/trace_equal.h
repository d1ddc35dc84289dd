/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TESTS_TRACE_EQUAL_H
#define RP_TESTS_TRACE_EQUAL_H
/*
 * Whether two traces hold the same, column by column. Ids of strings, tracks and shapes may differ:
 * what they stand for may not. Left out: what the form of a file decides (shapes that spill, times
 * that had too many digits, counters of damage).
 */
#include "trace/trace.h"

#include <inttypes.h>
#include <stdio.h>

struct trace_diff {
    const struct rp_trace *a, *b;
    char text[512]; /* the first difference; empty: none */
};

static inline bool differ_i64(struct trace_diff *d, const char *what, uint32_t i, int64_t a,
                              int64_t b)
{
    if (a == b)
        return false;
    snprintf(d->text, sizeof d->text, "%s %u: %" PRId64 " and %" PRId64, what, i, a, b);
    return true;
}

static inline bool differ_str(struct trace_diff *d, const char *what, uint32_t i, rp_str a,
                              rp_str b)
{
    size_t n = rp_trace_str_len(d->a, a);

    if (n == rp_trace_str_len(d->b, b) &&
        memcmp(rp_trace_str(d->a, a), rp_trace_str(d->b, b), n) == 0)
        return false;
    snprintf(d->text, sizeof d->text, "%s %u: '%.200s' and '%.200s'", what, i,
             rp_trace_str(d->a, a), rp_trace_str(d->b, b));
    return true;
}

static inline bool differ_track(struct trace_diff *d, const char *what, uint32_t i, rp_track a,
                                rp_track b)
{
    const struct rp_track_info *ta = &d->a->tracks[a], *tb = &d->b->tracks[b];
    const struct rp_process *pa = &d->a->processes[ta->process];
    const struct rp_process *pb = &d->b->processes[tb->process];

    return differ_str(d, what, i, pa->text, pb->text) ||
           differ_str(d, what, i, ta->text, tb->text) ||
           (!pa->text && differ_i64(d, what, i, pa->native_id, pb->native_id)) ||
           (!ta->text && differ_i64(d, what, i, ta->native_id, tb->native_id)) ||
           differ_i64(d, what, i, ta->has_id, tb->has_id) ||
           differ_i64(d, what, i, ta->kind, tb->kind) ||
           differ_str(d, what, i, ta->name, tb->name) ||
           differ_str(d, what, i, pa->name, pb->name) ||
           differ_str(d, what, i, pa->labels, pb->labels) ||
           differ_i64(d, what, i, pa->device, pb->device) ||
           differ_i64(d, what, i, pa->sort_index, pb->sort_index) ||
           differ_i64(d, what, i, ta->sort_index, tb->sort_index);
}

static inline bool differ_origin(struct trace_diff *d, const char *what, uint32_t i, uint16_t a,
                                 uint16_t b)
{
    const struct rp_origin *oa = &d->a->origins[a], *ob = &d->b->origins[b];

    return differ_i64(d, what, i, oa->phase, ob->phase) ||
           differ_i64(d, what, i, oa->has_category, ob->has_category) ||
           differ_str(d, what, i, oa->category, ob->category) ||
           differ_i64(d, what, i, oa->kind, ob->kind) ||
           differ_i64(d, what, i, oa->flags, ob->flags);
}

/* The next byte of raw JSON that is not white space between tokens. */
static inline const char *skip_blanks(const char *s, bool quoted)
{
    while (!quoted && *s && strchr(" \n\r\t", *s))
        s++;
    return s;
}

/* As differ_str for raw JSON: lines may be broken in other places. */
static inline bool differ_raw(struct trace_diff *d, const char *what, uint32_t i, rp_str a,
                              rp_str b)
{
    const char *x = rp_trace_str(d->a, a), *y = rp_trace_str(d->b, b);
    bool quoted = false, escaped = false;

    for (;; x++, y++) {
        x = skip_blanks(x, quoted);
        y = skip_blanks(y, quoted);
        if (*x != *y)
            return differ_str(d, what, i, a, b);
        if (!*x)
            return false;
        quoted ^= *x == '"' && !escaped;
        escaped = *x == '\\' && !escaped;
    }
}

static inline bool differ_arg(struct trace_diff *d, uint32_t i, const struct rp_arg *a,
                              const struct rp_arg *b)
{
    if (differ_str(d, "key of event", i, a->key, b->key) ||
        differ_i64(d, "type of an argument of event", i, a->type, b->type))
        return true;
    if (a->type == RP_ARG_RAW)
        return differ_raw(d, "argument of event", i, a->v.s, b->v.s);
    if (a->type == RP_ARG_STR)
        return differ_str(d, "argument of event", i, a->v.s, b->v.s);
    return differ_i64(d, "argument of event", i, a->v.i, b->v.i);
}

struct args_of { /* an event or an arrow */
    uint16_t shape;
    uint32_t row;
};

static inline bool differ_args(struct trace_diff *d, uint32_t i, struct args_of a, struct args_of b)
{
    uint32_t n = rp_args_count(&d->a->args, a.shape, a.row);

    if (differ_i64(d, "arguments of event", i, n, rp_args_count(&d->b->args, b.shape, b.row)))
        return true;
    for (uint32_t k = 0; k < n; k++) {
        struct rp_arg x = rp_args_at(&d->a->args, a.shape, a.row, k);
        struct rp_arg y = rp_args_at(&d->b->args, b.shape, b.row, k);

        if (differ_arg(d, i, &x, &y))
            return true;
    }
    return false;
}

static inline bool differ_link(struct trace_diff *d, const struct rp_links *a,
                               const struct rp_links *b, rp_event i)
{
    rp_link x = d->a->ev.link[i], y = d->b->ev.link[i];

    if (x == RP_NONE || y == RP_NONE)
        return differ_i64(d, "link of event", i, x, y);
    if (d->a->ev.flags[i] & RP_EVENT_ID_TEXT)
        return differ_str(d, "id of event", i, (rp_str)a->native_id[x], (rp_str)b->native_id[y]);
    return differ_i64(d, "id of event", i, a->native_id[x], b->native_id[y]) ||
           differ_i64(d, "source of link of event", i, a->source[x], b->source[y]) ||
           differ_i64(d, "members of link of event", i, a->offset[x + 1] - a->offset[x],
                      b->offset[y + 1] - b->offset[y]);
}

static inline bool differ_events(struct trace_diff *d)
{
    const struct rp_events *a = &d->a->ev, *b = &d->b->ev;

    if (differ_i64(d, "events", 0, a->n, b->n))
        return true;
    for (rp_event i = 0; i < a->n; i++)
        if (differ_str(d, "name of event", i, a->name[i], b->name[i]) ||
            differ_origin(d, "origin of event", i, a->origin[i], b->origin[i]) ||
            differ_i64(d, "start of event", i, a->ts_ns[i], b->ts_ns[i]) ||
            differ_i64(d, "duration of event", i, a->dur_ns[i], b->dur_ns[i]) ||
            differ_track(d, "track of event", i, a->track[i], b->track[i]) ||
            differ_i64(d, "parent of event", i, a->parent[i], b->parent[i]) ||
            differ_i64(d, "kind of event", i, a->kind[i], b->kind[i]) ||
            differ_i64(d, "flags of event", i, a->flags[i] & ~RP_EVENT_ROUNDED,
                       b->flags[i] & ~RP_EVENT_ROUNDED) ||
            differ_link(d, &d->a->links, &d->b->links, i) ||
            differ_args(d, i, (struct args_of){a->shape[i], a->arg_row[i]},
                        (struct args_of){b->shape[i], b->arg_row[i]}))
            return true;
    return false;
}

static inline bool differ_flows(struct trace_diff *d)
{
    const struct rp_flows *a = &d->a->flows, *b = &d->b->flows;

    if (differ_i64(d, "arrows", 0, a->n, b->n))
        return true;
    for (uint32_t i = 0; i < a->n; i++)
        if (differ_i64(d, "start of arrow", i, a->ts_ns[i], b->ts_ns[i]) ||
            differ_i64(d, "flags of arrow", i, a->flags[i], b->flags[i]) ||
            (a->flags[i] & RP_FLOW_ID_TEXT
                 ? differ_str(d, "id of arrow", i, (rp_str)a->id[i], (rp_str)b->id[i])
                 : differ_i64(d, "id of arrow", i, a->id[i], b->id[i])) ||
            differ_str(d, "name of arrow", i, a->name[i], b->name[i]) ||
            differ_track(d, "track of arrow", i, a->track[i], b->track[i]) ||
            differ_origin(d, "origin of arrow", i, a->origin[i], b->origin[i]) ||
            differ_i64(d, "event of arrow", i, a->event[i], b->event[i]) ||
            differ_args(d, i, (struct args_of){a->shape[i], a->arg_row[i]},
                        (struct args_of){b->shape[i], b->arg_row[i]}))
            return true;
    return false;
}

static inline bool differ_tables(struct trace_diff *d)
{
    const struct rp_trace *a = d->a, *b = d->b;

    if (differ_i64(d, "has base", 0, a->has_base, b->has_base) ||
        differ_i64(d, "base", 0, a->base_ns, b->base_ns) ||
        differ_i64(d, "rank", 0, a->rank, b->rank) ||
        differ_i64(d, "world size", 0, a->world_size, b->world_size) ||
        differ_str(d, "framework", 0, a->framework, b->framework) ||
        differ_str(d, "version", 0, a->framework_version, b->framework_version) ||
        differ_i64(d, "processes", 0, a->nprocesses, b->nprocesses) ||
        differ_i64(d, "tracks", 0, a->ntracks, b->ntracks) ||
        differ_i64(d, "steps", 0, a->nsteps, b->nsteps) ||
        differ_i64(d, "devices", 0, a->ndevices, b->ndevices) ||
        differ_i64(d, "metadata", 0, a->nmeta, b->nmeta))
        return true;
    for (uint32_t i = 0; i < a->nsteps; i++)
        if (differ_str(d, "step", i, a->steps[i].name, b->steps[i].name) ||
            differ_i64(d, "begin of step", i, a->steps[i].begin_ns, b->steps[i].begin_ns) ||
            differ_i64(d, "end of step", i, a->steps[i].end_ns, b->steps[i].end_ns))
            return true;
    for (uint32_t i = 0; i < a->ndevices; i++)
        if (differ_str(d, "device", i, a->devices[i].name, b->devices[i].name) ||
            differ_i64(d, "device", i, a->devices[i].id, b->devices[i].id))
            return true;
    for (uint32_t i = 0; i < a->nmeta; i++)
        if (differ_str(d, "key of metadata", i, a->meta[i].key, b->meta[i].key) ||
            differ_str(d, "metadata", i, a->meta[i].value, b->meta[i].value) ||
            differ_i64(d, "place of metadata", i, a->meta[i].after_events, b->meta[i].after_events))
            return true;
    return false;
}

/* Counters of damage and of how times were written: those a clean copy does not have. */
static inline bool is_about_form(const char *counter)
{
    static const char *const form[] = {"bad_time",      "huge_time",      "rounded_time",
                                       "control_bytes", "bad_utf8",       "duplicate_keys",
                                       "skipped_bytes", "skipped_events", "lost_events",
                                       "truncated",     "salvaged"};

    for (size_t i = 0; i < sizeof form / sizeof form[0]; i++)
        if (strcmp(form[i], counter) == 0)
            return true;
    return false;
}

static inline bool differ_health(struct trace_diff *d)
{
#define BOTH(key, unit, doc) {#key, d->a->health.key, d->b->health.key},
    const struct {
        const char *key;
        int64_t a, b;
    } counters[] = {RP_HEALTH_MAP(BOTH)};
#undef BOTH

    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++)
        if (!is_about_form(counters[i].key) &&
            differ_i64(d, counters[i].key, 0, counters[i].a, counters[i].b))
            return true;
    return false;
}

/* "" where they are the same. */
static inline const char *trace_difference(struct trace_diff *d, const struct rp_trace *a,
                                           const struct rp_trace *b)
{
    *d = (struct trace_diff){.a = a, .b = b};
    if (!differ_events(d) && !differ_flows(d) && !differ_tables(d))
        differ_health(d);
    return d->text;
}

#endif
