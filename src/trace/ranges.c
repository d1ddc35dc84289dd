/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks ranges. Columns are checked by their largest value, which a compiler turns into a few
 * instructions per element; the wrong element is searched only if there is one.
 */
#include "trace/ranges.h"

#include "trace/names.h"
#include "trace/trace_store.h"

#include <stdarg.h>
#include <stdio.h>

enum rp_code rp_trace_bad(const struct rp_trace *t, struct rp_err *err, const char *fmt, ...)
{
    enum rp_code code = t->store->bytes ? RP_FORMAT : RP_BUG;
    char text[256];
    va_list args;

    va_start(args, fmt);
    if (vsnprintf(text, sizeof text, fmt, args) < 0)
        text[0] = '\0';
    va_end(args);
    return rp_err_set(err, code, "%s trace: %s",
                      code == RP_FORMAT ? "damaged or hostile" : "inconsistent", text);
}

/* Checks that n ids are below limit, or RP_NONE if that is allowed. */
static enum rp_code check_ids(const struct rp_trace *t, const uint32_t *id, uint32_t n,
                              uint32_t limit, bool none, const char *what, struct rp_err *err)
{
    uint32_t highest = 0, i;

    for (i = 0; i < n; i++) {
        uint32_t x = none ? id[i] + 1 : id[i]; /* RP_NONE becomes 0 */

        highest = x > highest ? x : highest;
    }
    if (n == 0 || highest < limit + (none ? 1u : 0u))
        return RP_OK;
    for (i = 0; id[i] < limit || (none && id[i] == RP_NONE); i++)
        ;
    return rp_trace_bad(t, err, "%s %u of row %u is not below %u", what, id[i], i, limit);
}

static enum rp_code check_bytes(const struct rp_trace *t, const uint8_t *byte, uint32_t n,
                                uint8_t limit, const char *what, struct rp_err *err)
{
    for (uint32_t i = 0; i < n; i++)
        if (byte[i] >= limit)
            return rp_trace_bad(t, err, "%s %u of row %u is not below %u", what, byte[i], i, limit);
    return RP_OK;
}

enum rp_code rp_ranges_strings(const struct rp_trace *t, struct rp_err *err)
{
    const struct rp_strings *s = &t->str;

    if (s->n == 0 || s->n == RP_NONE || s->offset[0] != 0 || s->offset[1] != 1)
        return rp_trace_bad(t, err, "the first string is not empty");
    for (uint32_t i = 0; i < s->n; i++)
        if (s->offset[i + 1] <= s->offset[i])
            return rp_trace_bad(t, err, "string %u has a length below 1", i);
    for (uint32_t i = 0; i < s->n; i++)
        if (s->bytes[s->offset[i + 1] - 1] != '\0')
            return rp_trace_bad(t, err, "string %u is not terminated", i);
    return check_bytes(t, s->name_class, s->n, RP_NAME_COUNT, "name class", err);
}

static bool is_str(const struct rp_trace *t, rp_str s)
{
    return s < t->str.n;
}

static enum rp_code check_tracks(const struct rp_trace *t, struct rp_err *err)
{
    rp_event next = 0;

    for (uint32_t i = 0; i < t->ntracks; i++) {
        const struct rp_track_info *track = &t->tracks[i];

        if (track->process >= t->nprocesses || !is_str(t, track->text) || !is_str(t, track->name) ||
            track->kind > RP_TRACK_ASYNC)
            return rp_trace_bad(t, err, "track %u has an unknown process, name or kind", i);
        if (track->first != next || track->end < next)
            return rp_trace_bad(
                t, err, "the events of track %u do not follow those of the track before", i);
        next = track->end;
    }
    if (next != t->ev.n)
        return rp_trace_bad(t, err, "the tracks have %u events of %u", next, t->ev.n);
    return RP_OK;
}

static enum rp_code check_steps(const struct rp_trace *t, struct rp_err *err)
{
    for (uint32_t i = 0; i < t->nsteps; i++)
        if (!is_str(t, t->steps[i].name) || t->steps[i].source >= RP_STEP_SOURCES ||
            t->steps[i].phase >= RP_STEP_PHASES || t->steps[i].requests < RP_NO_COUNT ||
            t->steps[i].tokens < RP_NO_COUNT ||
            (t->steps[i].mark != RP_NONE && t->steps[i].mark >= t->ev.n))
            return rp_trace_bad(t, err, "step %u has an unknown name, source, phase or mark", i);
    return RP_OK;
}

enum rp_code rp_ranges_tables(const struct rp_trace *t, struct rp_err *err)
{
    if (!is_str(t, t->format) || !is_str(t, t->framework) || !is_str(t, t->framework_version))
        return rp_trace_bad(t, err, "format or framework is an unknown string");
    if (!is_str(t, t->samples.unit_name) || t->samples.unit >= RP_WEIGHT_UNITS)
        return rp_trace_bad(t, err, "the weights of samples have an unknown unit");
    for (uint32_t i = 0; i < t->norigins; i++)
        if (!is_str(t, t->origins[i].category) || t->origins[i].kind >= RP_KIND_COUNT)
            return rp_trace_bad(t, err, "origin %u has an unknown category or kind", i);
    for (uint32_t i = 0; i < t->nprocesses; i++)
        if (!is_str(t, t->processes[i].text) || !is_str(t, t->processes[i].name) ||
            !is_str(t, t->processes[i].labels))
            return rp_trace_bad(t, err, "process %u has an unknown name", i);
    RP_TRY(check_tracks(t, err));
    RP_TRY(check_steps(t, err));

    for (uint32_t i = 0; i < t->ndevices; i++)
        if (!is_str(t, t->devices[i].name))
            return rp_trace_bad(t, err, "device %u has an unknown name", i);
    for (uint32_t i = 0; i < t->nmeta; i++)
        if (!is_str(t, t->meta[i].key) || !is_str(t, t->meta[i].value))
            return rp_trace_bad(t, err, "metadata %u has an unknown key or value", i);
    for (uint32_t i = 0; i < t->nwarnings; i++)
        if (!is_str(t, t->warnings[i]))
            return rp_trace_bad(t, err, "warning %u is unknown", i);
    return RP_OK;
}

static enum rp_code check_shape_ids(const struct rp_trace *t, const uint16_t *shape, uint32_t n,
                                    const char *what, struct rp_err *err)
{
    for (uint32_t i = 0; i < n; i++)
        if (shape[i] >= t->args.nshapes && shape[i] != RP_SHAPE_SPILLED)
            return rp_trace_bad(t, err, "shape %u of %s %u is not below %u", shape[i], what, i,
                                t->args.nshapes);
    return RP_OK;
}

static enum rp_code check_origin_ids(const struct rp_trace *t, struct rp_err *err)
{
    for (uint32_t i = 0; i < t->ev.n; i++)
        if (t->ev.origin[i] >= t->norigins)
            return rp_trace_bad(t, err, "origin %u of event %u is not below %u", t->ev.origin[i], i,
                                t->norigins);
    return RP_OK;
}

/* Whether a time, which may be unknown, and its end are in the range. */
static bool is_in_range(int64_t ts, int64_t dur)
{
    int64_t begin = ts == RP_NO_TS ? 0 : ts;

    return (begin >= -RP_TIME_MAX_NS) & (begin <= RP_TIME_MAX_NS) && dur <= RP_TIME_MAX_NS - begin;
}

static enum rp_code check_times(const struct rp_trace *t, struct rp_err *err)
{
    for (rp_event e = 0; e < t->ev.n; e++)
        if (!is_in_range(t->ev.ts_ns[e], t->ev.dur_ns[e]))
            return rp_trace_bad(t, err, "the time of event %u is out of range", e);
    return RP_OK;
}

enum rp_code rp_ranges_events(const struct rp_trace *t, struct rp_err *err)
{
    RP_TRY(check_times(t, err));
    RP_TRY(check_ids(t, t->ev.name, t->ev.n, t->str.n, false, "name", err));
    RP_TRY(check_ids(t, t->ev.link, t->ev.n, t->links.n, true, "link", err));
    RP_TRY(check_bytes(t, t->ev.kind, t->ev.n, RP_KIND_COUNT, "kind", err));
    RP_TRY(check_shape_ids(t, t->ev.shape, t->ev.n, "event", err));
    RP_TRY(check_origin_ids(t, err));
    for (uint32_t i = 0; i < t->ntracks; i++)
        for (uint32_t e = t->tracks[i].first; e < t->tracks[i].end; e++)
            if (t->ev.track[e] != i)
                return rp_trace_bad(t, err, "event %u is outside its track", e);
    for (uint32_t e = 0; e < t->ev.n;
         e++) /* ids of parents are smaller, so that a walk up the ancestors always ends */
        if (t->ev.parent[e] >= e && t->ev.parent[e] != RP_NONE)
            return rp_trace_bad(t, err, "parent %u of event %u is not before it", t->ev.parent[e],
                                e);
    return RP_OK;
}

/* The largest delta of a block of 1, 2 or 4 bytes. */
static uint64_t largest_delta(const uint8_t *p, uint32_t n, unsigned width)
{
    uint32_t largest = 0, i, v = 0;

    for (i = 0; i < n; i++) {
        memcpy(&v, p + (size_t)i * width, width);
        largest = v > largest ? v : largest;
    }
    return largest;
}

/* Checks that every value of a block is a string id. */
static bool block_is_strings(const struct rp_trace *t, const struct rp_arg_block *b, uint32_t n)
{
    const uint8_t *p = t->args.data + (b->place >> 8);
    unsigned width = b->place & 255;
    uint64_t v;

    if (width < 8)
        return b->base >= 0 && b->base < t->str.n &&
               (uint64_t)b->base + (width ? largest_delta(p, n, width) : 0) < t->str.n;
    for (uint32_t i = 0; i < n; i++) {
        memcpy(&v, p + 8 * (size_t)i, 8);
        if ((uint64_t)b->base + v >= t->str.n)
            return false;
    }
    return true;
}

/* Checks one column; adds the bytes of its blocks to *used, to detect blocks that share data. */
static enum rp_code check_column(const struct rp_trace *t, uint32_t column, uint32_t nrows,
                                 uint64_t *used, struct rp_err *err)
{
    const struct rp_args *a = &t->args;
    uint32_t nblocks = nrows / RP_ARG_BLOCK + (nrows % RP_ARG_BLOCK != 0), i;

    if (a->key_name[column] >= t->str.n || a->key_type[column] > RP_ARG_RAW)
        return rp_trace_bad(t, err, "key %u has an unknown name or type", column);
    if (nblocks > a->nblocks || a->key_block[column] > a->nblocks - nblocks)
        return rp_trace_bad(t, err, "the blocks of key %u are missing", column);
    for (i = 0; i < nblocks; i++) {
        const struct rp_arg_block *b = &a->block[a->key_block[column] + i];
        uint32_t rest = nrows - i * RP_ARG_BLOCK;
        uint32_t n = rest < RP_ARG_BLOCK ? rest : RP_ARG_BLOCK;
        uint64_t at = b->place >> 8, width = b->place & 255;

        if (width > 8 || (width & (width - 1)) || at > a->ndata || width * n > a->ndata - at)
            return rp_trace_bad(t, err, "block %u of key %u is outside the data", i, column);
        *used += width * n;
        if (a->key_type[column] >= RP_ARG_STR && !block_is_strings(t, b, n))
            return rp_trace_bad(t, err, "key %u has values that are not strings", column);
    }
    return RP_OK;
}

static enum rp_code check_shapes(const struct rp_trace *t, struct rp_err *err)
{
    const struct rp_args *a = &t->args;
    uint32_t key = 0, block = 0, i, k;
    uint64_t used = 0;

    if (a->nshapes == 0 || a->nshapes > RP_SHAPE_MAX + 1 || a->shape[0].nkeys != 0)
        return rp_trace_bad(t, err, "%u shapes", a->nshapes);
    for (i = 0; i < a->nshapes; i++) {
        const struct rp_shape *s = &a->shape[i];

        if (s->first_key != key && s->nkeys)
            return rp_trace_bad(
                t, err, "the keys of shape %u do not start after those of the previous shape", i);
        if (s->nkeys > RP_SHAPE_KEYS || s->nkeys > a->nkeys - key)
            return rp_trace_bad(t, err, "shape %u has %u keys", i, s->nkeys);
        for (k = 0; k < s->nkeys; k++, key++) {
            if (a->key_block[key] != block)
                return rp_trace_bad(
                    t, err, "the blocks of key %u do not follow those of the key before", key);
            RP_TRY(check_column(t, key, s->nrows, &used, err));
            block += s->nrows / RP_ARG_BLOCK + (s->nrows % RP_ARG_BLOCK != 0);
            if (used > a->ndata)
                return rp_trace_bad(t, err, "blocks of arguments share data");
        }
    }
    if (key != a->nkeys || block != a->nblocks || used != a->ndata)
        return rp_trace_bad(t, err, "arguments that belong to no shape");
    return RP_OK;
}

static enum rp_code check_spilled(const struct rp_trace *t, struct rp_err *err)
{
    const struct rp_args *a = &t->args;

    if (a->spill_offset[0] != 0 || a->spill_offset[a->nspilled_rows] != a->nspilled)
        return rp_trace_bad(t, err, "spilled arguments that belong to no row");
    for (uint32_t i = 0; i < a->nspilled_rows; i++)
        if (a->spill_offset[i + 1] < a->spill_offset[i])
            return rp_trace_bad(t, err, "row %u of the spilled arguments has a negative length", i);
    for (uint32_t i = 0; i < a->nspilled; i++) {
        const struct rp_spilled *s = &a->spill[i];

        if (s->key >= t->str.n || s->type > RP_ARG_RAW ||
            (s->type >= RP_ARG_STR && (s->value < 0 || s->value >= t->str.n)))
            return rp_trace_bad(t, err, "spilled argument %u has an unknown key or value", i);
    }
    return RP_OK;
}

/* Checks that rows of arguments are inside their shapes, which are already valid. */
static enum rp_code check_rows(const struct rp_trace *t, const uint16_t *shape, const uint32_t *row,
                               uint32_t n, const char *what, struct rp_err *err)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t nrows =
            shape[i] == RP_SHAPE_SPILLED ? t->args.nspilled_rows : t->args.shape[shape[i]].nrows;

        if (shape[i] && row[i] >= nrows)
            return rp_trace_bad(t, err, "row %u of %s %u is not below %u", row[i], what, i, nrows);
    }
    return RP_OK;
}

enum rp_code rp_ranges_args(const struct rp_trace *t, struct rp_err *err)
{
    RP_TRY(check_shapes(t, err));
    RP_TRY(check_spilled(t, err));
    RP_TRY(check_shape_ids(t, t->flows.shape, t->flows.n, "arrow", err));
    RP_TRY(check_rows(t, t->ev.shape, t->ev.arg_row, t->ev.n, "event", err));
    return check_rows(t, t->flows.shape, t->flows.arg_row, t->flows.n, "arrow", err);
}

enum rp_code rp_ranges_links(const struct rp_trace *t, uint64_t nmembers, struct rp_err *err)
{
    const struct rp_links *l = &t->links;

    if (l->offset[0] != 0 || l->offset[l->n] != nmembers)
        return rp_trace_bad(t, err, "members that belong to no link");
    for (uint32_t i = 0; i < l->n; i++)
        if (l->offset[i + 1] < l->offset[i])
            return rp_trace_bad(t, err, "link %u has no length", i);
    RP_TRY(check_bytes(t, l->source, l->n, RP_LINK_ASYNC_ID + 1, "source of a link", err));
    return check_ids(t, l->member, l->offset[l->n], t->ev.n, false, "member", err);
}

enum rp_code rp_ranges_flows(const struct rp_trace *t, struct rp_err *err)
{
    const struct rp_flows *f = &t->flows;

    RP_TRY(check_ids(t, f->name, f->n, t->str.n, false, "name of an arrow", err));
    RP_TRY(check_ids(t, f->track, f->n, t->ntracks, false, "track of an arrow", err));
    RP_TRY(check_ids(t, f->event, f->n, t->ev.n, true, "event of an arrow", err));
    for (uint32_t i = 0; i < f->n; i++)
        if (f->origin[i] >= t->norigins ||
            ((f->flags[i] & RP_FLOW_ID_TEXT) && (f->id[i] < 0 || f->id[i] >= t->str.n)))
            return rp_trace_bad(t, err, "arrow %u has an unknown origin or id", i);
    return RP_OK;
}

/* Checks that the parent of a stack has a smaller id, so that no walk to the outermost frame is
   endless. */
static enum rp_code check_stacks(const struct rp_trace *t, struct rp_err *err)
{
    const struct rp_call_samples *s = &t->samples;

    for (uint32_t i = 0; i < s->nstacks; i++)
        if ((s->stacks[i].parent != RP_NONE && s->stacks[i].parent >= i) ||
            s->stacks[i].frame >= s->nframes)
            return rp_trace_bad(t, err, "stack %u has an unknown parent or frame", i);
    return RP_OK;
}

enum rp_code rp_ranges_samples(const struct rp_trace *t, struct rp_err *err)
{
    const struct rp_call_samples *s = &t->samples;

    for (uint32_t i = 0; i < s->nframes; i++)
        if (!is_str(t, s->frame[i].name) || !is_str(t, s->frame[i].file) ||
            s->frame[i].kind >= RP_FRAME_KINDS)
            return rp_trace_bad(t, err, "frame %u has an unknown name, file or kind", i);
    RP_TRY(check_stacks(t, err));
    RP_TRY(check_ids(t, s->track, s->n, t->ntracks, false, "track of a sample", err));
    RP_TRY(check_ids(t, s->stack, s->n, s->nstacks, true, "stack of a sample", err));
    return check_bytes(t, s->flags, s->n, RP_SAMPLE_FLAGS + 1, "state of a sample", err);
}
