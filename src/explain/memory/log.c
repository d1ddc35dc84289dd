/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the events finds the entries of all devices; sorting puts them in time order; a map
 * from addresses to open buffers pairs allocations with frees. O(n log n).
 */
#include "explain/memory/log.h"

#include "base/decides.h"
#include "base/hash.h"
#include "base/order.h"
#include "facts/arg_keys.h"
#include "facts/times/intervals.h"

#include <stdlib.h>
#include <string.h>

const char *const rp_memory_category_names[RP_MEMORY_CATEGORIES] = {
    [RP_MEMORY_PARAMETERS] = "parameters",   [RP_MEMORY_OPTIMIZER] = "optimizer state",
    [RP_MEMORY_GRADIENTS] = "gradients",     [RP_MEMORY_ACTIVATIONS] = "activations",
    [RP_MEMORY_INPUTS] = "inputs",           [RP_MEMORY_TEMPORARY] = "temporaries",
    [RP_MEMORY_BEFORE] = "before recording", [RP_MEMORY_UNKNOWN] = "unknown"};

/* What the names of events mean. */
enum {
    NAME_MEMORY,
    NAME_BLOCK,
    NAME_SEGMENT,
    NAME_OOM,
    NAME_SEGMENT_ALLOC,
    NAME_SEGMENT_FREE,
    NAMES
};

static const char *const name_texts[NAMES] = {"[memory]", "[block]",       "[segment]",
                                              "oom",      "segment_alloc", "segment_free"};

enum {
    ARG_ADDR,
    ARG_BYTES,
    ARG_TOTAL,
    ARG_RESERVED,
    ARG_TYPE,
    ARG_DEVICE,
    ARG_REQUESTED,
    ARG_STATE,
    ARG_FREE,
    ARGS
};

static const char *const arg_texts[ARGS] = {"Addr",           "Bytes",       "Total Allocated",
                                            "Total Reserved", "Device Type", "Device Id",
                                            "Requested",      "State",       "Device Free"};

struct log_reader {
    struct rp_memory_logs *out;
    const struct rp_trace *t;
    rp_str name[NAMES];
    struct rp_arg_key arg[ARGS];
    struct rp_err *err;
};

/* ------------------------------------------------------------------ devices */

#define MOST_DEVICES 1024
RP_LIMIT(MOST_DEVICES, "devices", "more in a file are refused");

static int64_t arg_or(const struct log_reader *r, int key, rp_event e, int64_t fallback)
{
    int64_t value;

    return rp_arg_key_int(&r->arg[key], e, &value) ? value : fallback;
}

static enum rp_code device_of(struct log_reader *r, rp_event e, struct rp_memory_log **out)
{
    int64_t type = arg_or(r, ARG_TYPE, e, 1);
    int64_t id = arg_or(r, ARG_DEVICE, e, 0);
    struct rp_memory_log fresh = {.device_type = type, .device_id = id};

    for (size_t i = 0; i < r->out->devices.n; i++) {
        *out = &r->out->devices.at[i];
        if ((*out)->device_type == type && (*out)->device_id == id)
            return RP_OK;
    }
    if (r->out->devices.n >= MOST_DEVICES)
        return rp_err_set(r->err, RP_LIMIT, "memory events of more than %d devices", MOST_DEVICES);
    RP_TRY(rp_vec_push(&r->out->devices, fresh, r->err));
    *out = &r->out->devices.at[r->out->devices.n - 1];
    return RP_OK;
}

/* ------------------------------------------------------------------ events */

static bool plausible_bytes(int64_t bytes)
{
    return bytes > -(INT64_C(1) << 56) && bytes < INT64_C(1) << 56;
}

static enum rp_code add_entry(struct log_reader *r, rp_event e)
{
    struct rp_memory_log *log;
    struct rp_memory_entry entry = {.ns = r->t->ev.ts_ns[e], .event = e, .buffer = RP_NONE};

    if (entry.ns == RP_NO_TS || !rp_arg_key_int(&r->arg[ARG_BYTES], e, &entry.bytes) ||
        !plausible_bytes(entry.bytes))
        return RP_OK;
    RP_TRY(device_of(r, e, &log));
    entry.addr = arg_or(r, ARG_ADDR, e, 0);
    log->has_addr = log->has_addr || entry.addr;
    entry.requested = llabs(arg_or(r, ARG_REQUESTED, e, entry.bytes));
    entry.reserved = arg_or(r, ARG_RESERVED, e, RP_ABSENT_I64);
    if (rp_arg_key_int(&r->arg[ARG_TOTAL], e, &entry.allocated) && plausible_bytes(entry.allocated))
        log->has_total = true;
    else
        entry.allocated = RP_ABSENT_I64;
    return rp_vec_push(&log->entries, entry, r->err);
}

/* Adds a block of a snapshot: free, or live and perhaps older than the log. */
static enum rp_code add_block(struct log_reader *r, rp_event e)
{
    struct rp_memory_buffer b = {.born = RP_NONE, .died = RP_NONE};
    struct rp_memory_log *log;
    rp_str state;

    RP_TRY(device_of(r, e, &log));
    b.addr = arg_or(r, ARG_ADDR, e, 0);
    b.bytes = arg_or(r, ARG_BYTES, e, 0);
    b.requested = arg_or(r, ARG_REQUESTED, e, b.bytes);
    if (!plausible_bytes(b.bytes) || b.bytes < 0 || !rp_arg_key_text(&r->arg[ARG_STATE], e, &state))
        return RP_OK;
    if (!strcmp(rp_trace_str(r->t, state), "inactive")) {
        log->free_bytes += b.bytes;
        log->largest_free = b.bytes > log->largest_free ? b.bytes : log->largest_free;
        return RP_OK;
    }
    if (strcmp(rp_trace_str(r->t, state), "active_allocated") != 0)
        return RP_OK;
    log->has_addr = true;
    return rp_vec_push(&log->buffers, b, r->err);
}

static enum rp_code add_other(struct log_reader *r, rp_event e, int name)
{
    struct rp_memory_log *log;
    int64_t bytes = arg_or(r, ARG_BYTES, e, 0);

    RP_TRY(device_of(r, e, &log));
    if (name == NAME_SEGMENT && plausible_bytes(bytes)) {
        log->segments++;
        log->segment_bytes += bytes;
    } else if (name == NAME_OOM) {
        log->ooms++;
        log->oom_bytes = bytes;
        log->oom_free = arg_or(r, ARG_FREE, e, RP_ABSENT_I64);
    }
    return RP_OK;
}

static enum rp_code read_events(struct log_reader *r)
{
    const struct rp_trace *t = r->t;
    int i;

    for (rp_event e = 0; e < t->ev.n; e++) {
        if (t->ev.kind[e] != RP_KIND_INSTANT)
            continue;
        for (i = 0; i < NAMES && t->ev.name[e] != r->name[i]; i++)
            ;
        if (i == NAME_MEMORY)
            RP_TRY(add_entry(r, e));
        else if (i == NAME_BLOCK)
            RP_TRY(add_block(r, e));
        else if (i < NAMES)
            RP_TRY(add_other(r, e, i));
    }
    return RP_OK;
}

static enum rp_code find_names(struct log_reader *r)
{
    for (int i = 0; i < NAMES; i++)
        r->name[i] = RP_NONE;
    for (rp_str s = 0; s < r->t->str.n; s++)
        for (int i = 0; i < NAMES; i++)
            if (!strcmp(rp_trace_str(r->t, s), name_texts[i]))
                r->name[i] = s;
    for (int i = 0; i < ARGS; i++)
        RP_TRY(rp_arg_key_init(&r->arg[i], r->t, arg_texts[i], r->err));
    return RP_OK;
}

/* ------------------------------------------------------------------ totals */

static int by_time(const void *pa, const void *pb, void *user)
{
    const struct rp_memory_entry *a = pa, *b = pb;
    const struct rp_trace *t = user;

    if (a->ns != b->ns)
        return a->ns < b->ns ? -1 : 1;
    return RP_COMPARE(t->ev.seq[a->event], t->ev.seq[b->event]);
}

static void fill_totals(struct rp_memory_log *log)
{
    struct rp_memory_entry *at = log->entries.at;
    size_t i;

    if (!log->entries.n) { /* a snapshot without history */
        for (i = 0; i < log->buffers.n; i++)
            log->before += log->buffers.at[i].bytes;
        return;
    }
    if (!log->has_total) {
        /* If totals were not recorded, they are counted, starting from what must have existed
         * before. */
        int64_t total = 0;

        for (size_t k = 0; k < log->buffers.n; k++)
            if (log->buffers.at[k].born == RP_NONE)
                rp_ns_add(&total, log->buffers.at[k].bytes);
        log->before = total;
        for (size_t k = 0; k < log->entries.n; k++) {
            rp_ns_add(&total, log->entries.at[k].bytes);
            log->entries.at[k].allocated = total;
        }

        return;
    }
    for (i = 0; i < log->entries.n && at[i].allocated == RP_ABSENT_I64; i++)
        ;
    log->before = at[i].allocated;
    for (size_t k = 0; k <= i; k++)
        log->before -= at[k].bytes;
    for (i = 0; i < log->entries.n; i++)
        if (at[i].allocated == RP_ABSENT_I64)
            at[i].allocated = rp_ns_sum(i ? at[i - 1].allocated : log->before, at[i].bytes);
}

/* ------------------------------------------------------------------ buffers */

static enum rp_code open_buffer(struct rp_memory_log *log, struct rp_map *open, uint32_t i,
                                struct rp_err *err)
{
    struct rp_memory_entry *entry = &log->entries.at[i];
    struct rp_memory_buffer b = {.addr = entry->addr,
                                 .bytes = entry->bytes,
                                 .requested = entry->requested,
                                 .born = i,
                                 .died = RP_NONE};
    uint32_t old = rp_map_get(open, (uint64_t)entry->addr);

    if (old != RP_MAP_NONE && log->buffers.at[old].died == RP_NONE)
        log->buffers.at[old].died = i; /* its end was not recorded */
    entry->buffer = (uint32_t)log->buffers.n;
    RP_TRY(rp_map_put(open, (uint64_t)entry->addr, entry->buffer, err));
    return rp_vec_push(&log->buffers, b, err);
}

static enum rp_code close_buffer(struct rp_memory_log *log, struct rp_map *open, uint32_t i,
                                 struct rp_err *err)
{
    struct rp_memory_entry *entry = &log->entries.at[i];
    struct rp_memory_buffer b = {.addr = entry->addr,
                                 .bytes = -entry->bytes,
                                 .requested = entry->requested,
                                 .born = RP_NONE,
                                 .died = i};
    uint32_t old = rp_map_get(open, (uint64_t)entry->addr);

    if (old != RP_MAP_NONE && log->buffers.at[old].died == RP_NONE) {
        log->buffers.at[old].died = i;
        entry->buffer = old;
        return RP_OK;
    }
    if (old != RP_MAP_NONE)
        return RP_OK; /* freed twice */
    entry->buffer = (uint32_t)log->buffers.n;
    RP_TRY(rp_map_put(open, (uint64_t)entry->addr, entry->buffer, err));
    return rp_vec_push(&log->buffers, b, err);
}

/* Without addresses, a free belongs to the last allocation of its size that is still open. */
static enum rp_code pair_by_size(struct rp_memory_log *log, struct rp_err *err)
{
    struct rp_map last = {0}; /* from bytes to 1 + the last open buffer of that size; 0: none */
    uint32_t *before = malloc((log->entries.n + 1) * sizeof *before); /* it, of that size */
    enum rp_code code = rp_err_need(before, err, "pairing allocations");

    for (uint32_t i = 0; code == RP_OK && i < log->entries.n; i++) {
        struct rp_memory_entry *e = &log->entries.at[i];
        uint64_t size = (uint64_t)llabs(e->bytes);
        struct rp_memory_buffer b = {.bytes = (int64_t)size,
                                     .requested = (int64_t)size,
                                     .born = e->bytes > 0 ? i : RP_NONE,
                                     .died = e->bytes > 0 ? RP_NONE : i};
        uint32_t open = 0;

        code = rp_map_intern(&last, size, 0, &open, err);
        if (code != RP_OK || !size)
            continue;
        if (e->bytes < 0 && open) {
            e->buffer = open - 1;
            log->buffers.at[open - 1].died = i;
            code = rp_map_put(&last, size, before[open - 1], err);
            continue;
        }
        e->buffer = (uint32_t)log->buffers.n;
        before[e->buffer] = open;
        code = rp_vec_push(&log->buffers, b, err);
        if (code == RP_OK && e->bytes > 0)
            code = rp_map_put(&last, size, e->buffer + 1, err);
    }
    free(before);
    rp_map_release(&last);
    return code;
}

/* Pairs allocations with frees. The live blocks of a snapshot come first in `buffers`; those that
   the log allocated are dropped, because its entries say more. */
static enum rp_code pair_entries(struct rp_memory_log *log, struct rp_err *err)
{
    size_t nblocks = log->buffers.n, i;
    RP_FREED struct rp_memory_buffer *blocks = NULL;
    RP_SCOPED(rp_map_release) struct rp_map open = {0};

    if (!log->has_addr)
        return pair_by_size(log, err);
    if (nblocks) {
        blocks = malloc(nblocks * sizeof *blocks);
        RP_TRY(rp_err_need(blocks, err, "pairing allocations"));
        memcpy(blocks, log->buffers.at, nblocks * sizeof *blocks);
        log->buffers.n = 0;
    }
    for (i = 0; i < log->entries.n; i++)
        if (log->entries.at[i].bytes)
            RP_TRY(log->entries.at[i].bytes > 0 ? open_buffer(log, &open, (uint32_t)i, err)
                                                : close_buffer(log, &open, (uint32_t)i, err));
    for (i = 0; i < nblocks; i++)
        if (rp_map_get(&open, (uint64_t)blocks[i].addr) == RP_MAP_NONE)
            RP_TRY(rp_vec_push(&log->buffers, blocks[i], err));
    return RP_OK;
}

/* ------------------------------------------------------------------ steps */

static bool is_annotation(const struct rp_trace *t, rp_event e, const char *name)
{
    return t->ev.kind[e] == RP_KIND_ANNOTATION && t->ev.dur_ns[e] >= 0 &&
           !strncmp(rp_trace_str(t, t->ev.name[e]), name, strlen(name));
}

/* A snapshot has no steps, but may have annotations: a step begins when gradients are cleared, or
   when the optimizer of the previous one has ended. */
static enum rp_code steps_of_optimizer(struct rp_memory_logs *out, struct rp_err *err)
{
    const struct rp_trace *t = out->trace;
    int64_t number = 1, begin = t->totals.span_begin_ns;
    bool clears = false;

    for (rp_event e = 0; e < t->ev.n && !clears; e++)
        clears = is_annotation(t, e, "Optimizer.zero_grad");
    for (rp_event e = 0; e < t->ev.n; e++) {
        if (!is_annotation(t, e, clears ? "Optimizer.zero_grad" : "Optimizer.step") ||
            rp_event_end_ns(t, e) < begin)
            continue;
        begin = clears ? t->ev.ts_ns[e] : begin;
        RP_TRY(rp_vec_push(&out->steps, begin, err));
        RP_TRY(rp_vec_push(&out->step_names, number++, err));
        begin = rp_event_end_ns(t, e);
    }
    out->end_ns = clears ? INT64_MAX : begin;
    return RP_OK;
}

static enum rp_code fill_steps(struct rp_memory_logs *out, struct rp_err *err)
{
    const struct rp_trace *t = out->trace;

    if (!t->nsteps)
        return steps_of_optimizer(out, err);
    for (uint32_t i = 0; i < t->nsteps; i++) {
        if (out->steps.n && t->steps[i].begin_ns <= out->steps.at[out->steps.n - 1])
            continue;
        RP_TRY(rp_vec_push(&out->steps, t->steps[i].begin_ns, err));
        RP_TRY(rp_vec_push(&out->step_names, t->steps[i].number, err));
        if (t->steps[i].end_ns > out->end_ns || !i)
            out->end_ns = t->steps[i].end_ns;
    }
    return RP_OK;
}

int64_t rp_memory_step(const struct rp_memory_logs *logs, int64_t ns)
{
    size_t i = 0;

    RP_LOWER_BOUND(i, logs->steps.n, logs->steps.at[i] <= ns);
    return i && ns < logs->end_ns ? (int64_t)i - 1 : -1;
}

/* ------------------------------------------------------------------ all */

enum rp_code rp_memory_logs_init(struct rp_memory_logs *out, const struct rp_trace *trace,
                                 struct rp_err *err)
{
    struct log_reader r = {.out = out, .t = trace, .err = err};

    *out = (struct rp_memory_logs){.trace = trace};
    enum rp_code code = find_names(&r);
    if (code == RP_OK)
        code = read_events(&r);
    for (size_t i = 0; i < ARGS; i++)
        rp_arg_key_release(&r.arg[i]);
    for (size_t i = 0; code == RP_OK && i < out->devices.n; i++) {
        struct rp_memory_log *log = &out->devices.at[i];

        if (log->entries.n)
            qsort_r(log->entries.at, log->entries.n, sizeof *log->entries.at, by_time,
                    (void *)(uintptr_t)trace);
        code = pair_entries(log, err);
        if (code == RP_OK)
            fill_totals(log);
    }
    if (code == RP_OK)
        code = fill_steps(out, err);
    return code;
}

void rp_memory_logs_release(struct rp_memory_logs *logs)
{
    for (size_t i = 0; i < logs->devices.n; i++) {
        rp_vec_release(&logs->devices.at[i].entries);
        rp_vec_release(&logs->devices.at[i].buffers);
    }
    rp_vec_release(&logs->devices);
    rp_vec_release(&logs->owners);
    rp_vec_release(&logs->steps);
    rp_vec_release(&logs->step_names);
    rp_arena_release(&logs->arena);
}
