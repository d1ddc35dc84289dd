/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the record of one device. The peak is the largest total after an entry; it is held by the
 * buffers that exist then, by owner and category. The rest was allocated before the recording and
 * not freed in it, so the categories always add up to the peak. O(n log n).
 */
#include "explain/memory/memory.h"

#include "base/hash.h"
#include "base/order.h"

#include <stdlib.h>
#include <string.h>

struct describer {
    const struct rp_memory_logs *logs;
    const struct rp_memory_log *log;
    const struct rp_scope *scope;
    struct rp_arena *arena;
    struct rp_memory_device *out;
    uint32_t peak; /* index of the entry; RP_NONE: before the first */
    struct rp_err *err;
};

/* How each category is recognised, and with what certainty. */
static const struct {
    const char *sure, *basis;
} bases[RP_MEMORY_CATEGORIES] = {
    [RP_MEMORY_PARAMETERS] = {"low", "older than the recording, of the sizes of the gradients"},
    [RP_MEMORY_OPTIMIZER] = {"medium", "allocated by the optimizer and kept; or older than the "
                                       "recording, of the sizes of gradients once more"},
    [RP_MEMORY_GRADIENTS] = {"high", "allocated in backward and still there after it, or freed by "
                                     "zero_grad"},
    [RP_MEMORY_ACTIVATIONS] = {"high", "allocated in forward, still there when backward begins"},
    [RP_MEMORY_INPUTS] = {"medium", "copied outside of any module, and kept"},
    [RP_MEMORY_TEMPORARY] = {"high", "freed in the phase in which it was allocated"},
    [RP_MEMORY_BEFORE] = {"certain", "allocated before the recording began"},
    [RP_MEMORY_UNKNOWN] = {"none", "kept, and none of the others"}};

static const struct rp_memory_owner *owner_of(const struct describer *d,
                                              const struct rp_memory_buffer *b)
{
    return b->born == RP_NONE ? NULL : &d->logs->owners.at[d->log->entries.at[b->born].owner];
}

/* ------------------------------------------------------------------ the peak */

static int64_t total_after(const struct describer *d, uint32_t entry)
{
    return entry == RP_NONE ? d->log->before : d->log->entries.at[entry].allocated;
}

static void find_peak(struct describer *d)
{
    const struct rp_memory_log *log = d->log;
    struct rp_memory_device *out = d->out;
    bool any = false;

    d->peak = RP_NONE;
    out->peak_reserved_bytes = RP_ABSENT_I64;
    for (size_t i = 0; i < log->entries.n; i++) {
        const struct rp_memory_entry *e = &log->entries.at[i];

        if (!rp_scope_has(d->scope, e->ns))
            continue;
        if (!any && d->scope->limited)
            d->peak = (uint32_t)i;
        any = true;
        if (e->allocated > total_after(d, d->peak))
            d->peak = (uint32_t)i;
        if (e->reserved > out->peak_reserved_bytes)
            out->peak_reserved_bytes = e->reserved;
        out->allocations += e->bytes > 0;
        out->frees += e->bytes < 0;
        out->allocated_bytes += e->bytes > 0 ? e->bytes : 0;
    }
    if (out->peak_reserved_bytes == 0)
        out->peak_reserved_bytes = RP_ABSENT_I64;
    if (!log->entries.n && log->segment_bytes)
        out->peak_reserved_bytes = log->segment_bytes;
}

static const char *phase_name(const struct describer *d, const struct rp_memory_owner *owner)
{
    uint8_t phase = owner->phase;

    if (phase == RP_PHASE_OTHER && d->logs->has_backward && (owner->module || owner->op))
        phase = RP_PHASE_FORWARD;
    return phase == RP_PHASE_OTHER ? NULL : rp_phase_names[phase];
}

static const char *peak_text(const struct describer *d)
{
    const struct rp_memory_device *out = d->out;
    const char *phase = out->peak_phase;

    if (d->peak == RP_NONE)
        return "at the beginning";
    if (out->peak_step != RP_ABSENT_I64 && phase)
        return rp_arena_textf(d->arena, "step %lld, %s", (long long)out->peak_step, phase);
    if (out->peak_step != RP_ABSENT_I64)
        return rp_arena_textf(d->arena, "step %lld", (long long)out->peak_step);
    return phase ? phase : "";
}

static void fill_peak(struct describer *d)
{
    const struct rp_memory_entry *e = d->peak == RP_NONE ? NULL : &d->log->entries.at[d->peak];
    struct rp_memory_device *out = d->out;
    int64_t step = e ? rp_memory_step(d->logs, e->ns) : -1;
    size_t n = d->log->entries.n;

    out->peak_bytes = total_after(d, d->peak);
    out->peak_ns = e ? rp_ns_between(d->logs->trace->totals.span_begin_ns, e->ns) : RP_ABSENT_I64;
    out->peak_step = step < 0 ? RP_ABSENT_I64 : d->logs->step_names.at[step];
    out->peak_phase = e ? phase_name(d, &d->logs->owners.at[e->owner]) : NULL;
    out->peak_text = peak_text(d);
    out->reserved_bytes = e ? e->reserved : out->peak_reserved_bytes;
    if (out->peak_reserved_bytes == RP_ABSENT_I64)
        out->reserved_bytes = RP_ABSENT_I64;
    out->slack_bytes = out->reserved_bytes == RP_ABSENT_I64 ? RP_ABSENT_I64
                                                            : out->reserved_bytes - out->peak_bytes;
    out->begin_bytes = d->log->before;
    out->end_bytes = n ? d->log->entries.at[n - 1].allocated : d->log->before;
}

/* ------------------------------------------------------------------ who holds it */

static uint64_t text_key(const char *text)
{
    return text ? rp_hash_bytes(text, strlen(text)) : 3;
}

/* The last two classes of a path of modules. */
static const char *short_module(const char *path)
{
    const char *last = strrchr(path, '/'), *at = last;

    if (!last)
        return path;
    while (at > path && at[-1] != '/')
        at--;
    return at;
}

/* "model.py:42" for "src/model.py(42): forward"; if `whole`, with the function. */
static const char *short_line(const char *line, bool whole, struct rp_arena *arena)
{
    const char *open = strstr(line, ".py("), *name, *close;

    close = open ? strchr(open, ')') : NULL;
    if (!close)
        return rp_arena_text(arena, line);
    name = memrchr(line, '/', (size_t)(open - line));
    name = name ? name + 1 : line;
    return rp_arena_textf(arena, "%.*s.py:%.*s%s", (int)(open - name), name,
                          (int)(close - open - 4), open + 4,
                          whole && close[1] == ':' ? close + 2 : "");
}

static const char *where_text(const struct rp_memory_owner *o, struct rp_arena *arena)
{
    if (!o || (!o->module && !o->line))
        return NULL;
    if (o->module && o->line)
        return rp_arena_textf(arena, "%s, %s", short_module(o->module),
                              short_line(o->line, false, arena));
    return o->module ? rp_arena_text(arena, short_module(o->module))
                     : short_line(o->line, true, arena);
}

static enum rp_code add_holder(struct describer *d, struct rp_map *rows,
                               const struct rp_memory_buffer *b)
{
    const struct rp_memory_owner *o = owner_of(d, b);
    uint64_t key = rp_hash_join(b->category, o ? text_key(o->op) : 1);
    uint32_t i;

    key = rp_hash_join(rp_hash_join(key, o ? text_key(o->module) : 1), o ? text_key(o->line) : 1);
    RP_TRY(rp_map_intern(rows, key, (uint32_t)d->out->nholders, &i, d->err));
    struct rp_memory_holder *row = &d->out->holders[i];
    if (i == d->out->nholders) {
        d->out->nholders++;
        row->category = rp_memory_category_names[b->category];
        if (o) {
            row->op = rp_arena_text(d->arena, o->op);
            row->module = rp_arena_text(d->arena, o->module);
            row->line = rp_arena_text(d->arena, o->line);
            row->where = where_text(o, d->arena);
        }
    }
    row->bytes += b->bytes;
    row->buffers++;
    return RP_OK;
}

RP_ORDER(by_bytes, struct rp_memory_holder, RP_DOWN(bytes), strcmp(a->category, b->category),
         strcmp(a->op ? a->op : "", b->op ? b->op : ""),
         strcmp(a->where ? a->where : "", b->where ? b->where : ""))
RP_ORDER(by_share, struct rp_memory_share, RP_DOWN(bytes), strcmp(a->category, b->category))

static double share_of(int64_t bytes, int64_t whole)
{
    return whole ? (double)bytes / (double)whole : 0;
}

/* Adds what the buffers do not explain: it is older than the recording, or if negative, was not
   recorded. */
static void add_rest(struct describer *d, int64_t known)
{
    struct rp_memory_holder *row = &d->out->holders[d->out->nholders];
    int64_t rest = d->out->peak_bytes - known;

    if (!rest)
        return;
    row->bytes = rest;
    row->category = rp_memory_category_names[rest > 0 ? RP_MEMORY_BEFORE : RP_MEMORY_UNKNOWN];
    row->where = rest > 0 ? "not freed in the recording" : "frees that were not recorded";
    d->out->nholders++;
}

static enum rp_code fill_categories(struct describer *d)
{
    struct rp_memory_device *out = d->out;

    out->categories = RP_ARENA_NEW(d->arena, struct rp_memory_share, RP_MEMORY_CATEGORIES + 1);
    RP_TRY(rp_err_need(out->categories, d->err, "summing categories"));
    for (size_t c = 0; c < RP_MEMORY_CATEGORIES; c++) {
        struct rp_memory_share *row = &out->categories[out->ncategories];

        *row = (struct rp_memory_share){.category = rp_memory_category_names[c],
                                        .sure = bases[c].sure,
                                        .basis = bases[c].basis};
        for (size_t i = 0; i < out->nholders; i++)
            if (out->holders[i].category == row->category) {
                row->bytes += out->holders[i].bytes;
                row->buffers += out->holders[i].buffers;
            }
        row->share = share_of(row->bytes, out->peak_bytes);
        out->ncategories += row->bytes != 0;
    }
    qsort(out->categories, out->ncategories, sizeof *out->categories, by_share);
    return RP_OK;
}

static enum rp_code fill_holders(struct describer *d)
{
    struct rp_memory_device *out = d->out;
    RP_SCOPED(rp_map_release) struct rp_map rows = {0};
    int64_t known = 0;
    size_t i, n = 0;

    for (i = 0; i < d->log->buffers.n; i++)
        n += rp_memory_alive(&d->log->buffers.at[i], d->peak);
    out->holders = RP_ARENA_NEW(d->arena, struct rp_memory_holder, n + 2);
    RP_TRY(rp_err_need(out->holders, d->err, "listing buffers"));
    for (i = 0; i < d->log->buffers.n; i++)
        if (rp_memory_alive(&d->log->buffers.at[i], d->peak)) {
            known += d->log->buffers.at[i].bytes;
            RP_TRY(add_holder(d, &rows, &d->log->buffers.at[i]));
        }
    out->buffers = (int64_t)n;
    add_rest(d, known);
    RP_TRY(fill_categories(d));
    for (i = 0; i < out->nholders; i++)
        out->holders[i].share = share_of(out->holders[i].bytes, out->peak_bytes);
    qsort(out->holders, out->nholders, sizeof *out->holders, by_bytes);
    return RP_OK;
}

/* ------------------------------------------------------------------ steps */

static enum rp_code fill_steps(struct describer *d)
{
    const struct rp_memory_log *log = d->log;
    struct rp_memory_device *out = d->out;
    int64_t last = log->before;
    size_t i, n = d->logs->steps.n;

    out->steps = RP_ARENA_NEW(d->arena, struct rp_memory_step_row, n + 1);
    RP_TRY(rp_err_need(out->steps, d->err, "listing steps"));
    for (i = 0; i < n; i++)
        out->steps[i] =
            (struct rp_memory_step_row){.step = d->logs->step_names.at[i], .peak_bytes = INT64_MIN};
    for (i = 0; i < log->entries.n; i++) {
        const struct rp_memory_entry *e = &log->entries.at[i];
        int64_t step = rp_memory_step(d->logs, e->ns);
        struct rp_memory_step_row *row = step < 0 ? NULL : &out->steps[step];

        if (row && row->peak_bytes == INT64_MIN)
            row->peak_bytes = row->begin_bytes = last;
        last = e->allocated;
        if (!row)
            continue;
        row->peak_bytes = last > row->peak_bytes ? last : row->peak_bytes;
        row->end_bytes = last;
        row->allocations += e->bytes > 0;
        row->allocated_bytes += e->bytes > 0 ? e->bytes : 0;
    }
    for (i = 0; i < n; i++)
        if (out->steps[i].peak_bytes != INT64_MIN) {
            out->steps[out->nsteps] = out->steps[i];
            out->steps[out->nsteps].growth_bytes =
                out->steps[i].end_bytes - out->steps[i].begin_bytes;
            out->nsteps++;
        }
    out->step_count = (int64_t)out->nsteps;
    return RP_OK;
}

/* The smallest growth of the steps after the first, if all of them grow; else nothing. */
static void fill_growth(struct rp_memory_device *out)
{
    int64_t least = INT64_MAX;

    out->growth_bytes = RP_ABSENT_I64;
    if (out->nsteps <=
        2) /* the first step allocates what stays, and a single other one is not a trend */
        return;
    for (size_t i = 1; i < out->nsteps; i++)
        least = out->steps[i].growth_bytes < least ? out->steps[i].growth_bytes : least;
    out->growth_bytes = least > 0 ? least : 0;
}

/* ------------------------------------------------------------------ churn */

RP_ORDER(by_churn, struct rp_memory_churn, RP_DOWN(bytes), RP_DOWN(allocations),
         strcmp(a->op ? a->op : "", b->op ? b->op : ""),
         strcmp(a->where ? a->where : "", b->where ? b->where : ""))

/* At least one. */
static int64_t steps_in_scope(const struct describer *d)
{
    int64_t n = 0;

    if (d->scope->step)
        return 1;
    for (size_t i = 0; i < d->logs->steps.n; i++)
        n += rp_scope_has(d->scope, d->logs->steps.at[i]);
    n = n < d->out->step_count ? n : d->out->step_count;
    return n > 0 ? n : 1;
}

static enum rp_code fill_churn(struct describer *d)
{
    const struct rp_memory_log *log = d->log;
    struct rp_memory_device *out = d->out;
    double steps = (double)steps_in_scope(d);
    size_t i, n = d->logs->owners.n;

    out->churn = RP_ARENA_NEW(d->arena, struct rp_memory_churn, n + 1);
    RP_TRY(rp_err_need(out->churn, d->err, "listing allocations"));
    for (i = 0; i < log->entries.n; i++)
        if (log->entries.at[i].bytes > 0 && rp_scope_has(d->scope, log->entries.at[i].ns)) {
            out->churn[log->entries.at[i].owner].allocations++;
            out->churn[log->entries.at[i].owner].bytes += log->entries.at[i].bytes;
        }
    for (i = 0; i < n; i++) {
        const struct rp_memory_owner *o = &d->logs->owners.at[i];
        struct rp_memory_churn row = out->churn[i];

        if (!row.allocations)
            continue;
        row.op = rp_arena_text(d->arena, o->op);
        row.module = rp_arena_text(d->arena, o->module);
        row.line = rp_arena_text(d->arena, o->line);
        row.where = where_text(o, d->arena);
        row.phase = phase_name(d, o);
        row.allocations_per_step = (double)row.allocations / steps;
        row.per_step_bytes = (double)row.bytes / steps;
        out->churn[out->nchurn++] = row;
    }
    out->churn_steps = (int64_t)steps;
    qsort(out->churn, out->nchurn, sizeof *out->churn, by_churn);
    return RP_OK;
}

/* ------------------------------------------------------------------ the timeline */

/* Divides the time into equal slices, each of which shows the moment of its largest total. */
static enum rp_code fill_timeline(struct describer *d)
{
    const struct rp_memory_log *log = d->log;
    struct rp_memory_device *out = d->out;
    struct rp_memory_point now = {.allocated_bytes = log->before, .reserved_bytes = RP_ABSENT_I64};
    int64_t begin, first, span, known = 0;
    size_t i, slot, n = log->entries.n;

    out->timeline = RP_ARENA_NEW(d->arena, struct rp_memory_point, RP_MEMORY_POINTS + 1);
    RP_TRY(rp_err_need(out->timeline, d->err, "drawing the timeline"));
    if (!n)
        return RP_OK;
    for (i = 0; i < log->buffers.n; i++)
        if (log->buffers.at[i].born == RP_NONE) {
            now.category_bytes[log->buffers.at[i].category] += log->buffers.at[i].bytes;
            known += log->buffers.at[i].bytes;
        }
    now.category_bytes[RP_MEMORY_BEFORE] += log->before - known;
    begin = log->entries.at[0].ns;
    first = rp_ns_between(d->logs->trace->totals.span_begin_ns, begin);
    span = rp_ns_between(begin, log->entries.at[n - 1].ns) + 1;
    now.reserved_bytes =
        out->peak_reserved_bytes == RP_ABSENT_I64 ? RP_ABSENT_I64 : log->entries.at[0].reserved;
    for (i = 0; i < n; i++) {
        const struct rp_memory_entry *e = &log->entries.at[i];
        uint8_t c = e->buffer == RP_NONE ? RP_MEMORY_BEFORE : log->buffers.at[e->buffer].category;
        int64_t change = e->allocated - now.allocated_bytes;
        struct rp_memory_point last = now;

        slot = span > 0
                   ? (size_t)((double)rp_ns_between(begin, e->ns) / (double)span * RP_MEMORY_POINTS)
                   : 0;
        slot = slot < RP_MEMORY_POINTS ? slot : RP_MEMORY_POINTS - 1;
        now.ts_ns = rp_ns_between(d->logs->trace->totals.span_begin_ns, e->ns);
        now.allocated_bytes = e->allocated;
        now.reserved_bytes =
            out->peak_reserved_bytes == RP_ABSENT_I64 ? RP_ABSENT_I64 : e->reserved;
        now.category_bytes[c] += e->bytes;
        now.category_bytes[RP_MEMORY_BEFORE] += change - e->bytes; /* a change without an event */
        if (out->ntimeline <= slot) {
            for (; out->ntimeline < slot;
                 out->ntimeline++) { /* nothing happened, so the slice is like the one before */
                last.ts_ns = rp_ns_sum(
                    first, (int64_t)((double)span * (double)out->ntimeline / RP_MEMORY_POINTS));
                out->timeline[out->ntimeline] = last;
            }
            out->timeline[out->ntimeline++] = now;
        } else if (now.allocated_bytes > out->timeline[slot].allocated_bytes) {
            out->timeline[slot] = now;
        }
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ checkpointing */

/* The repeated module that holds most activations at the peak. */
static enum rp_code fill_checkpoint(struct describer *d)
{
    struct rp_memory_checkpoint *out = &d->out->checkpoint;
    int64_t *sums = RP_ARENA_NEW(d->arena, int64_t, d->logs->owners.n + 1), all = 0;
    const struct rp_memory_owner *best = NULL;
    struct rp_map rows = {0};
    enum rp_code code = rp_err_need(sums, d->err, "summing activations");

    for (size_t i = 0; i < d->log->buffers.n && code == RP_OK; i++) {
        const struct rp_memory_buffer *b = &d->log->buffers.at[i];
        const struct rp_memory_owner *o = owner_of(d, b);
        uint32_t row;

        if (b->category != RP_MEMORY_ACTIVATIONS || !rp_memory_alive(b, d->peak))
            continue;
        all += b->bytes;
        if (!o || !o->block)
            continue;
        code = rp_map_intern(&rows, text_key(o->block), (uint32_t)rows.n, &row, d->err);
        if (code != RP_OK)
            break;
        sums[row] += b->bytes;
        if (sums[row] > out->activation_bytes) {
            out->activation_bytes = sums[row];
            best = o;
        }
    }
    rp_map_release(&rows);
    if (code != RP_OK || !all)
        return code;
    out->module = best ? rp_arena_text(d->arena, best->block) : NULL;
    out->modules = best ? best->blocks : 0;
    out->activation_bytes = best ? out->activation_bytes : all;

    /* The peak if the activations of a module were recomputed, so that only one of n instances
       exists at a time. */
    const char *block = best ? best->block : NULL;
    int64_t n = out->modules;
    const struct rp_memory_log *log = d->log;
    int64_t held = 0, peak = log->before;
    for (size_t i = 0; i < log->entries.n; i++) {
        const struct rp_memory_entry *e = &log->entries.at[i];
        const struct rp_memory_buffer *b =
            e->buffer == RP_NONE ? NULL : &log->buffers.at[e->buffer];
        const struct rp_memory_owner *o = b ? owner_of(d, b) : NULL;

        if (b && b->category == RP_MEMORY_ACTIVATIONS && o &&
            (!block || (o->block && !strcmp(o->block, block))))
            held += e->bytes;
        int64_t total = e->allocated - (n > 1 ? held / n * (n - 1) : held);
        if (rp_scope_has(d->scope, e->ns) && total > peak)
            peak = total;
    }
    out->peak_bytes = peak;

    out->saved_bytes = d->out->peak_bytes - out->peak_bytes;
    return RP_OK;
}

/* ------------------------------------------------------------------ the record */

/* Numbers of PyTorch's types of devices. */
static const char *device_label(const struct rp_memory_log *log, struct rp_arena *arena)
{
    enum { TYPE_CPU, TYPE_CUDA, TYPE_HIP = 6, TYPE_XPU = 12, TYPE_MPS = 13 };

    switch (log->device_type) {
    case TYPE_CPU:
        return "CPU";
    case TYPE_CUDA:
    case TYPE_HIP:
    case TYPE_XPU:
    case TYPE_MPS:
        return rp_arena_textf(arena, "GPU %lld", (long long)log->device_id);
    default:
        return rp_arena_textf(arena, "device %lld of type %lld", (long long)log->device_id,
                              (long long)log->device_type);
    }
}

static void fill_device(struct describer *d)
{
    const struct rp_trace *t = d->logs->trace;
    const struct rp_memory_log *log = d->log;
    struct rp_memory_device *out = d->out;
    bool snapshot = log->segments > 0;

    out->device = device_label(log, d->arena);
    out->source = snapshot ? "snapshot" : "profile";
    out->segments = snapshot ? log->segments : RP_ABSENT_I64;
    out->free_bytes = snapshot ? log->free_bytes : RP_ABSENT_I64;
    out->largest_free_bytes = snapshot ? log->largest_free : RP_ABSENT_I64;
    out->oom_count = log->ooms;
    out->memory_bytes = RP_ABSENT_I64;
    for (uint32_t i = 0; i < t->ndevices && log->device_type; i++)
        if (t->devices[i].id == log->device_id && t->devices[i].memory_bytes)
            out->memory_bytes = t->devices[i].memory_bytes;
}

enum rp_code rp_memory_describe(const struct rp_memory_logs *logs, size_t device,
                                const struct rp_scope *scope, size_t limit, struct rp_arena *arena,
                                struct rp_memory_device *out, struct rp_err *err)
{
    struct describer d = {.logs = logs,
                          .log = &logs->devices.at[device],
                          .scope = scope,
                          .arena = arena,
                          .out = out,
                          .err = err};

    *out = (struct rp_memory_device){.rank = 0};
    find_peak(&d);
    fill_device(&d);
    fill_peak(&d);
    RP_TRY(fill_steps(&d));
    fill_growth(out);
    RP_TRY(fill_holders(&d));
    RP_TRY(fill_churn(&d));
    RP_TRY(fill_timeline(&d));
    RP_TRY(fill_checkpoint(&d));
    if (d.log->device_type)
        RP_TRY(rp_memory_calls(logs->trace, scope, arena, out, err));
    rp_memory_find(logs, d.log, d.peak, arena, out);
    out->holder_count = (int64_t)out->nholders;
    if (limit) {
        out->nholders = out->nholders < limit ? out->nholders : limit;
        out->nchurn = out->nchurn < limit ? out->nchurn : limit;
    }
    return rp_arena_check(arena, "describing the memory of a device", err);
}
