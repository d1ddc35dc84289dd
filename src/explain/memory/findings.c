/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what an expert would say about the memory of a device, the most important first. */
#include "explain/memory/memory.h"

#include "base/decides.h"
#include "base/hash.h"
#include "facts/times/intervals.h"
#include "facts/torch_names.h"
#include "result/print_units.h"

#include <stdlib.h>

#define SEGMENT_BYTES 20971520
RP_FACT(SEGMENT_BYTES, "bytes",
        "PyTorch's allocator asks the driver for 20 MiB at a time (kLargeBuffer)");
#define GROWTH 1e-4
RP_DECISION(GROWTH, "of the peak in each step", "doubles it within 10,000 steps, a short training",
            "explain/growth_has_an_edge");

struct finder {
    const struct rp_memory_logs *logs;
    const struct rp_memory_log *log;
    uint32_t peak;
    struct rp_arena *arena;
    struct rp_memory_device *out;
};

static const char *bytes_text(const struct finder *f, int64_t bytes)
{
    return rp_units_text(f->arena, (double)bytes, RP_UNIT_BYTES);
}

static const char *share_text(const struct finder *f, int64_t part, int64_t whole)
{
    return rp_units_text(f->arena, whole ? (double)part / (double)whole : 0, RP_UNIT_RATIO);
}

static void add_finding(struct finder *f, const char *text)
{
    f->out->findings[f->out->nfindings++] = text;
}

static bool is_part(int64_t bytes, double share, int64_t whole)
{
    return (double)bytes >= share * (double)whole;
}

static int64_t category_bytes(const struct finder *f, enum rp_memory_category c)
{
    for (size_t i = 0; i < f->out->ncategories; i++)
        if (f->out->categories[i].category == rp_memory_category_names[c])
            return f->out->categories[i].bytes;
    return 0;
}

/* ------------------------------------------------------------------ the peak */

/* The holder of a category with the most bytes. */
static const struct rp_memory_holder *largest_holder(const struct finder *f, const char *category)
{
    for (size_t i = 0; i < f->out->nholders; i++)
        if (f->out->holders[i].category == category)
            return &f->out->holders[i];
    return NULL;
}

static const char *place_of(const struct finder *f, const struct rp_memory_holder *h)
{
    const char *op = h->op ? h->op : "", *space = h->op && h->where ? " in " : "";

    return rp_arena_textf(f->arena, "%s%s%s", op, space, h->where ? h->where : "");
}

/* "the peak, 2.61 GB, is in backward of step 3; 61 % of it are activations, 38 % older than the
   recording; the largest part, 537 MB, is from aten::_log_softmax in GPT, model.py(37): forward" */
static void find_peak(struct finder *f)
{
    const struct rp_memory_device *out = f->out;
    const struct rp_memory_share *first = out->ncategories ? &out->categories[0] : NULL;
    const struct rp_memory_share *second = out->ncategories > 1 ? &out->categories[1] : NULL;
    const struct rp_memory_holder *h = first ? largest_holder(f, first->category) : NULL;
    const char *when = "", *text;

    if (out->peak_step != RP_ABSENT_I64 && out->peak_phase)
        when = rp_arena_textf(f->arena, " in %s of step %lld", out->peak_phase,
                              (long long)out->peak_step);
    else if (out->peak_step != RP_ABSENT_I64)
        when = rp_arena_textf(f->arena, " in step %lld", (long long)out->peak_step);
    else if (out->peak_phase)
        when = rp_arena_textf(f->arena, " in %s", out->peak_phase);
    text = rp_arena_textf(f->arena, "the peak is %s%s", bytes_text(f, out->peak_bytes), when);
    if (first && first->bytes > 0)
        text = rp_arena_textf(f->arena, "%s: %s %s", text,
                              share_text(f, first->bytes, out->peak_bytes), first->category);
    if (second && is_part(second->bytes, RP_MEMORY_NAMED, out->peak_bytes))
        text = rp_arena_textf(f->arena, "%s, %s %s", text,
                              share_text(f, second->bytes, out->peak_bytes), second->category);
    if (h && h->where && h->op && is_part(h->bytes, RP_MEMORY_NAMED, out->peak_bytes))
        text = rp_arena_textf(f->arena, "%s; the largest %s come from %s (%s)", text,
                              first->category, place_of(f, h), bytes_text(f, h->bytes));
    add_finding(f, text);
}

static void find_capacity(struct finder *f)
{
    const struct rp_memory_device *out = f->out;
    int64_t used =
        out->peak_reserved_bytes != RP_ABSENT_I64 ? out->peak_reserved_bytes : out->peak_bytes;

    if (out->memory_bytes == RP_ABSENT_I64 ||
        is_part(out->memory_bytes - used, RP_MEMORY_SPARE, out->memory_bytes))
        return;
    add_finding(f, rp_arena_textf(f->arena, "%s of the device's %s are reserved: little is left",
                                  share_text(f, used, out->memory_bytes),
                                  bytes_text(f, out->memory_bytes)));
}

/* ------------------------------------------------------------------ before the recording */

/* If the bytes are as many as the gradients of one step, parameters are a part of them. */
static void find_before(struct finder *f)
{
    int64_t before = category_bytes(f, RP_MEMORY_BEFORE), most = 0, now = 0;

    if (!is_part(before, RP_MEMORY_NAMED, f->out->peak_bytes) ||
        category_bytes(f, RP_MEMORY_PARAMETERS))
        return;
    for (size_t i = 0; i < f->log->entries.n; i++) {
        const struct rp_memory_entry *e = &f->log->entries.at[i];
        bool gradient =
            e->buffer != RP_NONE && f->log->buffers.at[e->buffer].category == RP_MEMORY_GRADIENTS;

        if (gradient && f->log->buffers.at[e->buffer].born != RP_NONE)
            now += e->bytes;
        most = now > most ? now : most;
    }
    if (most && most <= before)
        add_finding(f, rp_arena_textf(
                           f->arena,
                           "%s were allocated before the recording began and stay: parameters "
                           "(about %s, as much as the gradients of a step)%s",
                           bytes_text(f, before), bytes_text(f, most),
                           before - most > most / 2 ? ", and optimizer state or other data" : ""));
    else
        add_finding(f, rp_arena_textf(f->arena,
                                      "%s were allocated before the recording began and stay: "
                                      "parameters, caches and whatever else the program keeps",
                                      bytes_text(f, before)));
}

/* ------------------------------------------------------------------ kept by layers */

/* Without a backward pass: finds an operator of a repeated module in which every instance keeps a
   buffer. */
static void find_kept(struct finder *f)
{
    int64_t *count = RP_ARENA_NEW(f->arena, int64_t, f->logs->owners.n + 1);
    int64_t *sum = RP_ARENA_NEW(f->arena, int64_t, f->logs->owners.n + 1), bytes = 0, buffers = 0;
    const struct rp_memory_owner *largest = NULL;
    int64_t most = 0;

    if (f->logs->has_backward || !count || !sum)
        return;
    for (size_t i = 0; i < f->log->buffers.n; i++) {
        const struct rp_memory_buffer *b = &f->log->buffers.at[i];

        if (b->born == RP_NONE || !rp_memory_alive(b, f->peak))
            continue;
        count[f->log->entries.at[b->born].owner]++;
        sum[f->log->entries.at[b->born].owner] += b->bytes;
    }
    for (size_t i = 0; i < f->logs->owners.n; i++) {
        const struct rp_memory_owner *o = &f->logs->owners.at[i];

        if (o->blocks <= 2 || count[i] < o->blocks)
            continue;
        bytes += sum[i];
        buffers += count[i];
        largest = sum[i] > most ? o : largest;
        most = sum[i] > most ? sum[i] : most;
    }
    if (largest && is_part(bytes, RP_MEMORY_NAMED, f->out->peak_bytes))
        add_finding(f, rp_arena_textf(f->arena,
                                      "each of the %u modules %s keeps buffers that pile up to %s "
                                      "(%lld buffers), as a key-value cache does",
                                      largest->blocks, largest->block, bytes_text(f, bytes),
                                      (long long)buffers));
}

/* ------------------------------------------------------------------ growth */

/* The owner with most bytes in buffers of later steps that still exist at the end. */
static const struct rp_memory_owner *grower(const struct finder *f)
{
    const struct rp_memory_owner *best = NULL;
    int64_t *sums = RP_ARENA_NEW(f->arena, int64_t, f->logs->owners.n + 1), most = 0;

    for (size_t i = 0; sums && i < f->log->buffers.n; i++) {
        const struct rp_memory_buffer *b = &f->log->buffers.at[i];

        if (b->born == RP_NONE || b->died != RP_NONE)
            continue;
        uint32_t owner = f->log->entries.at[b->born].owner;
        sums[owner] += b->bytes;
        if (sums[owner] > most) {
            most = sums[owner];
            best = &f->logs->owners.at[owner];
        }
    }
    return best;
}

static void find_growth(struct finder *f)
{
    const struct rp_memory_device *out = f->out;

    if (out->growth_bytes == RP_ABSENT_I64 || out->growth_bytes <= 0 ||
        !is_part(out->growth_bytes, GROWTH, out->peak_bytes))
        return;
    const struct rp_memory_owner *owner = grower(f);
    const char *text =
        rp_arena_textf(f->arena,
                       "every step ends with at least %s more than it began with, over %lld "
                       "steps: something is kept",
                       bytes_text(f, out->growth_bytes), (long long)out->step_count);
    if (owner && (owner->line || owner->module || owner->op))
        text = rp_arena_textf(f->arena, "%s; most of what stays is from %s%s%s", text,
                              owner->op ? owner->op : "", owner->op ? " in " : "",
                              owner->line     ? owner->line
                              : owner->module ? owner->module
                                              : "the same operator");
    add_finding(f, text);
}

/* ------------------------------------------------------------------ the allocator */

static void find_slack(struct finder *f)
{
    const struct rp_memory_device *out = f->out;

    if (out->slack_bytes == RP_ABSENT_I64 || out->slack_bytes < SEGMENT_BYTES ||
        !is_part(out->slack_bytes, RP_MEMORY_SPARE, out->reserved_bytes))
        return;
    const char *text = rp_arena_textf(
        f->arena, "at the peak %s are reserved and not allocated (%s of what is reserved)",
        bytes_text(f, out->slack_bytes), share_text(f, out->slack_bytes, out->reserved_bytes));
    if (f->log->device_type == 1)
        text = rp_arena_textf(f->arena,
                              "%s: the cache of another phase, or fragmentation; "
                              "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True reduces the latter",
                              text);
    add_finding(f, text);
}

static void find_free(struct finder *f)
{
    const struct rp_memory_device *out = f->out;

    if (out->largest_free_bytes == RP_ABSENT_I64 || out->free_bytes < SEGMENT_BYTES)
        return;
    add_finding(f, rp_arena_textf(f->arena,
                                  "at the end %s of %s are free; the largest free block "
                                  "has %s: a larger request needs memory from the driver",
                                  bytes_text(f, out->free_bytes),
                                  rp_units_count(f->arena, out->segments, "segment"),
                                  bytes_text(f, out->largest_free_bytes)));
}

static void find_calls(struct finder *f)
{
    int64_t total = 0, count = 0, waits = 0, waited = 0;
    bool frees = false, allocates = false;

    for (size_t i = 0; i < f->out->ncalls; i++) {
        const struct rp_memory_call *c = &f->out->calls[i];

        rp_ns_add(&total, c->total_ns);
        count += c->count;
        waits += c->waits ? c->count : 0;
        rp_ns_add(&waited, c->waits ? c->total_ns : 0);
        frees = frees || rp_torch_means(c->name, RP_TORCH_FREES);
        allocates = allocates || rp_torch_means(c->name, RP_TORCH_ALLOCATES);
    }
    if (!count)
        return;
    add_finding(
        f, rp_arena_textf(
               f->arena, "%s for memory take %s of host time%s%s",
               rp_units_count(f->arena, count, "driver call"), rp_units_time(f->arena, total),
               waits ? rp_arena_textf(f->arena, ", %s of them wait for the device (%s)",
                                      rp_units_number(f->arena, waits),
                                      rp_units_time(f->arena, waited))
                     : "",
               frees && allocates ? ": the allocator had no room, freed its cache and tried again"
               : allocates        ? ": the cache was still growing while this was recorded"
                                  : ""));
}

static void find_oom(struct finder *f)
{
    const struct rp_memory_log *log = f->log;

    if (!log->ooms)
        return;
    add_finding(f, rp_arena_textf(f->arena, "out of memory %s: the last request was for %s%s",
                                  rp_units_count(f->arena, log->ooms, "time"),
                                  bytes_text(f, log->oom_bytes),
                                  log->oom_free == RP_ABSENT_I64
                                      ? ""
                                      : rp_arena_textf(f->arena, ", the device had %s left",
                                                       bytes_text(f, log->oom_free))));
}

static void find_churn(struct finder *f)
{
    const struct rp_memory_device *out = f->out;
    const struct rp_memory_churn *worst = out->nchurn ? &out->churn[0] : NULL;

    if (!worst || !out->nsteps)
        return;
    add_finding(f, rp_arena_textf(
                       f->arena, "a step makes %s of %s in total; most of it%s%s%s%s (%s a step)",
                       rp_units_count(f->arena, out->allocations / out->churn_steps, "allocation"),
                       bytes_text(f, out->allocated_bytes / out->churn_steps),
                       worst->op ? " by " : "", worst->op ? worst->op : "",
                       worst->where ? " in " : "", worst->where ? worst->where : "",
                       rp_units_text(f->arena, worst->per_step_bytes, RP_UNIT_BYTES)));
}

static void find_checkpoint(struct finder *f)
{
    const struct rp_memory_checkpoint *c = &f->out->checkpoint;

    if (!is_part(c->saved_bytes, RP_MEMORY_SPARE, f->out->peak_bytes) ||
        (c->module && c->modules <= 2))
        return;
    if (c->module)
        add_finding(f, rp_arena_textf(
                           f->arena,
                           "checkpointing the %lld modules %s would lower the peak by at most %s, "
                           "to %s, for one more forward pass of them (an upper bound: the inputs "
                           "that checkpointing keeps are not counted)",
                           (long long)c->modules, c->module, bytes_text(f, c->saved_bytes),
                           bytes_text(f, c->peak_bytes)));
    else
        add_finding(f, rp_arena_textf(
                           f->arena,
                           "recomputing all activations would lower the peak by at most %s, to %s "
                           "(an upper bound: checkpointing keeps the inputs of what it recomputes)",
                           bytes_text(f, c->saved_bytes), bytes_text(f, c->peak_bytes)));
}

void rp_memory_find(const struct rp_memory_logs *logs, const struct rp_memory_log *log,
                    uint32_t peak, struct rp_arena *arena, struct rp_memory_device *out)
{
    static void (*const find[])(struct finder *) = {
        find_oom,        find_peak,  find_growth, find_capacity, find_kept, find_before,
        find_checkpoint, find_calls, find_slack,  find_free,     find_churn};
    struct finder f = {logs, log, peak, arena, out};

    out->findings = RP_ARENA_NEW(arena, const char *, sizeof find / sizeof *find); /* one each */
    for (size_t i = 0; out->findings && i < sizeof find / sizeof *find; i++)
        find[i](&f);
}
