/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `info` of one trace. Everything comes from tables that finish made (totals, health, steps,
 * tracks), so a native file answers without its events being touched.
 */
#include "explain/info/info.h"

#include "facts/graph_captures.h"
#include "trace/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUSIEST 8 /* tracks on the screen */

/* One fill: what is read, where texts go, and whether memory ran out on the way. */
struct fill {
    const struct rp_trace *trace;
    struct rp_arena *arena;
    struct rp_info_file *out;
    int64_t captured; /* launches that became nodes of a CUDA graph */
    bool failed;
};

static const char *text(struct fill *f, rp_str s)
{
    char *copy;

    if (!s)
        return NULL;
    copy = rp_arena_copy(f->arena, rp_trace_str(f->trace, s), rp_trace_str_len(f->trace, s));
    f->failed |= !copy;
    return copy;
}

static void *rows(struct fill *f, size_t n, size_t size)
{
    void *p = rp_arena_calloc(f->arena, n ? n : 1, size, _Alignof(int64_t));

    f->failed |= !p;
    return p;
}

static const char *kept(struct fill *f, const char *made)
{
    f->failed |= !made;
    return made;
}

static void fill_counts(struct fill *f)
{
    const struct rp_totals *totals = &f->trace->totals;
    struct rp_info_file *out = f->out;
    size_t k;

    out->events = f->trace->health.events;
    out->gpu_events = f->trace->health.gpu_events;
    out->flows = f->trace->flows.n;
    out->lost_events = f->trace->health.lost_events;
    out->instants = totals->count[RP_KIND_INSTANT];
    out->counters = totals->count[RP_KIND_COUNTER];
    out->kernels = totals->count[RP_KIND_KERNEL];
    out->kinds = rows(f, RP_KIND_COUNT, sizeof *out->kinds);
    for (k = 0; k < RP_KIND_COUNT && !f->failed; k++) {
        if (k < RP_KIND_INSTANT)
            out->spans += totals->count[k];
        if (totals->count[k])
            out->kinds[out->nkinds++] =
                (struct rp_info_kind){rp_word_kind((uint8_t)k), totals->count[k]};
    }
}

static void fill_times(struct fill *f)
{
    const struct rp_totals *totals = &f->trace->totals;

    if (__builtin_sub_overflow(totals->span_end_ns, totals->span_begin_ns, &f->out->window_ns))
        f->out->window_ns = INT64_MAX;
    if (__builtin_add_overflow(totals->span_begin_ns, f->trace->base_ns, &f->out->begin_ns))
        f->out->begin_ns = totals->span_begin_ns;
    /* by kind and not by health's count, which knows Kineto's categories only */
    f->out->gpu_busy_ns =
        totals->gpu_end_ns > totals->gpu_begin_ns ? totals->gpu_busy_ns : RP_ABSENT_I64;
}

static int compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int64_t median_step(struct fill *f)
{
    size_t i, n = f->out->nsteps;
    int64_t *lengths = rows(f, n, sizeof *lengths);

    if (!n || f->failed)
        return RP_ABSENT_I64;
    for (i = 0; i < n; i++)
        lengths[i] = f->out->steps[i].dur_ns;
    qsort(lengths, n, sizeof *lengths, compare_i64);
    return lengths[(n - 1) / 2] + (lengths[n / 2] - lengths[(n - 1) / 2]) / 2;
}

static void fill_steps(struct fill *f)
{
    const struct rp_trace *t = f->trace;
    uint32_t i;

    f->out->steps = rows(f, t->nsteps, sizeof *f->out->steps);
    for (i = 0; i < t->nsteps && !f->failed; i++) {
        const struct rp_step *step = &t->steps[i];

        f->out->steps[f->out->nsteps++] =
            (struct rp_info_step){.name = text(f, step->name),
                                  .source = rp_word_step_source(step->source),
                                  .ts_ns = step->begin_ns,
                                  .dur_ns = step->end_ns - step->begin_ns};
    }
    f->out->step_count = t->nsteps;
    f->out->step_median_ns = median_step(f);
    if (t->nsteps)
        f->out->step_text = kept(f, rp_arena_printf(f->arena, "%u, by %s", t->nsteps,
                                                    rp_word_step_source(t->steps[0].source)));
    else
        f->out->step_text = "none found";
}

static void fill_devices(struct fill *f)
{
    const struct rp_trace *t = f->trace;
    uint32_t i;

    f->out->devices = rows(f, t->ndevices, sizeof *f->out->devices);
    for (i = 0; i < t->ndevices && !f->failed; i++) {
        const struct rp_device *d = &t->devices[i];

        f->out->devices[f->out->ndevices++] = (struct rp_info_device){
            .id = d->id,
            .name = text(f, d->name),
            .memory_bytes = d->memory_bytes ? d->memory_bytes : RP_ABSENT_I64,
            .multiprocessors = d->multiprocessors ? d->multiprocessors : RP_ABSENT_I64};
    }
}

/* "8 x NVIDIA A100-SXM4-80GB", or the first name and how many more. */
static void fill_device_text(struct fill *f)
{
    const struct rp_info_file *out = f->out;
    const char *name = out->ndevices ? out->devices[0].name : NULL;
    size_t i, same = 0;

    if (!name)
        return;
    for (i = 0; i < out->ndevices; i++)
        same += out->devices[i].name && !strcmp(name, out->devices[i].name);
    if (same < out->ndevices)
        f->out->device_text = kept(f, rp_arena_printf(f->arena, "%zu x %s and %zu others", same,
                                                      name, out->ndevices - same));
    else
        f->out->device_text = kept(f, rp_arena_printf(f->arena, "%zu x %s", same, name));
}

/* "python 1234", "1234", or the name alone where it holds the number already. */
static const char *label(struct fill *f, rp_str name, rp_str as_text, int64_t id)
{
    char number[24];

    snprintf(number, sizeof number, "%lld", (long long)id);
    if (as_text)
        return text(f, name ? name : as_text);
    if (!name)
        return kept(f, rp_arena_strdup(f->arena, number));
    if (strstr(rp_trace_str(f->trace, name), number))
        return text(f, name);
    return kept(f, rp_arena_printf(f->arena, "%s %s", rp_trace_str(f->trace, name), number));
}

/* Kineto shows a device as a process of the same name; its label tells them apart. */
static const char *process_label(struct fill *f, const struct rp_process *process)
{
    if (process->labels && process->device >= 0)
        return text(f, process->labels);
    return label(f, process->name, process->text, process->native_id);
}

static int compare_busiest(const void *a, const void *b)
{
    const struct rp_info_track *x = a, *y = b;

    return (y->events > x->events) - (y->events < x->events);
}

static void fill_tracks(struct fill *f)
{
    const struct rp_trace *t = f->trace;
    struct rp_info_file *out = f->out;
    uint32_t i;

    out->tracks = rows(f, t->ntracks, sizeof *out->tracks);
    out->busiest = rows(f, t->ntracks, sizeof *out->busiest);
    for (i = 0; i < t->ntracks && !f->failed; i++) {
        const struct rp_track_info *track = &t->tracks[i];
        const struct rp_process *process = &t->processes[track->process];

        out->tracks[out->ntracks++] =
            (struct rp_info_track){.process = process_label(f, process),
                                   .name = label(f, track->name, track->text, track->native_id),
                                   .kind = rp_word_track_kind(track->kind),
                                   .events = (int64_t)track->end - track->first};
    }
    if (f->failed)
        return;
    memcpy(out->busiest, out->tracks, out->ntracks * sizeof *out->tracks);
    qsort(out->busiest, out->ntracks, sizeof *out->busiest, compare_busiest);
    /* tracks that hold little more than their own name are of no interest on the screen */
    while (out->nbusiest < out->ntracks && out->nbusiest < BUSIEST &&
           out->busiest[out->nbusiest].events * 1000 >= out->events)
        out->nbusiest++;
}

/* What of health deserves a sentence: the counter, what it is compared with, what it means. */
struct concern {
    size_t counter, whole; /* offsets in struct rp_health; whole SIZE_MAX: none */
    const char *sentence;  /* after "N of M " or "N " */
    const char *advice;
};

#define OF(key)  offsetof(struct rp_health, key)
#define NO_WHOLE SIZE_MAX

static const struct concern concerns[] = {
    {OF(gpu_without_runtime), OF(gpu_events), "device events have no recorded launch",
     "record with CPU activities, and start before the work is launched"},
    {OF(launches_without_gpu), OF(runtime_events), "runtime calls launched work that is not here",
     "the recording ended before the device did, or its buffer was full"},
    {OF(gpu_start_before_launch), OF(gpu_events), "device events start before their launch",
     "host and device clocks do not agree"},
    {OF(same_stream_overlaps), OF(gpu_events), "device events overlap on one stream",
     "programmatic dependent launch, or wrong durations"},
    {OF(ts_zero_gpu), OF(gpu_events), "device events are at time zero", "their times were lost"},
    {OF(cpu_not_nested), OF(events), "host spans cross the end of the span around them",
     "times are inexact, or two threads share one id"},
    {OF(unended), NO_WHOLE, "begin events have no end", "the recording stopped inside them"},
    {OF(unbegun), NO_WHOLE, "end events have no begin", "the recording started inside them"},
    {OF(missing_dur), OF(X), "complete events have no duration", NULL},
    {OF(missing_ts), OF(events), "events have no time", NULL},
    {OF(bad_time), NO_WHOLE, "times or lengths are not a number", NULL},
    {OF(huge_time), NO_WHOLE, "times or lengths are beyond what 64 bits of nanoseconds hold", NULL},
    {OF(negative_dur), OF(events), "durations are negative", NULL},
    {OF(absurd_dur), OF(events), "durations are over 7 days", "their times are corrupt"},
    {OF(rounded_time), NO_WHOLE, "times and lengths had digits below a nanosecond and were rounded",
     NULL},
    {OF(bad_utf8), NO_WHOLE, "strings are not UTF-8", NULL},
    {OF(control_bytes), NO_WHOLE, "control characters stand inside strings", NULL},
    {OF(duplicate_keys), NO_WHOLE, "keys are given twice in an event; the last one counts", NULL},
    {OF(skipped_events), OF(events), "elements of the event list are no events", NULL},
    {OF(skipped_bytes), NO_WHOLE, "bytes were skipped to find the next event", NULL},
    {OF(lost_events), NO_WHOLE, "events were dropped by the recorder", "give it a larger buffer"},
};

static int64_t counter(const struct rp_health *health, size_t offset)
{
    int64_t value;

    memcpy(&value, (const char *)health + offset, sizeof value);
    return value;
}

/* What the sentence is about: launches that were captured into a graph miss no work. */
static long long concern_count(const struct fill *f, const struct concern *c)
{
    int64_t count = counter(&f->trace->health, c->counter);

    if (c->counter == OF(launches_without_gpu))
        count = f->captured < count ? count - f->captured : 0;
    return count;
}

static enum rp_code count_captured(struct fill *f, struct rp_err *err)
{
    if (!f->trace->health.launches_without_gpu)
        return RP_OK;
    RP_TRY(rp_trace_require(f->trace, RP_NEED_EVENTS | RP_NEED_LINKS, err));
    return rp_captured_launches(f->trace, &f->captured, err);
}

static const char *concern_text(struct fill *f, const struct concern *c, long long count)
{
    const struct rp_health *health = &f->trace->health;
    const char *dash = c->advice ? ": " : "", *advice = c->advice ? c->advice : "";
    long long whole;

    if (c->whole == NO_WHOLE)
        return kept(f, rp_arena_printf(f->arena, "%lld %s%s%s", count, c->sentence, dash, advice));
    whole = counter(health, c->whole);
    return kept(f, rp_arena_printf(f->arena, "%lld of %lld %s%s%s", count, whole, c->sentence, dash,
                                   advice));
}

static void fill_warnings(struct fill *f)
{
    const size_t n = sizeof concerns / sizeof concerns[0];
    const struct rp_trace *t = f->trace;
    struct rp_info_file *out = f->out;
    size_t i;

    out->warnings = rows(f, t->nwarnings + n, sizeof *out->warnings);
    for (i = 0; i < t->nwarnings && !f->failed; i++)
        out->warnings[out->nwarnings++] = text(f, t->warnings[i]);
    for (i = 0; i < n && !f->failed; i++) {
        long long count = concern_count(f, &concerns[i]);

        if (count)
            out->warnings[out->nwarnings++] = concern_text(f, &concerns[i], count);
    }
    out->warning_count = (int64_t)out->nwarnings;
    out->trust = out->nwarnings ? "with care: see the warnings" : "nothing suspicious found";
}

static void fill_identity(struct fill *f, const char *path)
{
    const struct rp_trace *t = f->trace;
    struct rp_info_file *out = f->out;

    out->path = kept(f, rp_arena_strdup(f->arena, path));
    out->base_name = out->path && strrchr(out->path, '/') ? strrchr(out->path, '/') + 1 : out->path;
    out->framework = text(f, t->framework);
    out->framework_version = text(f, t->framework_version);
    out->rank = t->rank == RP_NO_RANK ? RP_ABSENT_I64 : t->rank;
    out->world_size = t->world_size > 0 ? t->world_size : RP_ABSENT_I64;
    out->recorder =
        kept(f, rp_arena_printf(f->arena, "%s%s%s (%s)",
                                out->framework ? out->framework : "unknown recorder",
                                out->framework_version ? " " : "",
                                out->framework_version ? out->framework_version : "", out->format));
    if (t->rank != RP_NO_RANK && t->world_size > 0)
        out->rank_text = kept(f, rp_arena_printf(f->arena, "%d of %d", t->rank, t->world_size));
    else if (t->rank != RP_NO_RANK)
        out->rank_text = kept(f, rp_arena_printf(f->arena, "%d", t->rank));
    else
        out->rank_text = "not recorded";
}

enum rp_code rp_explain_info(const struct rp_trace *trace, const char *path, const char *format,
                             struct rp_arena *arena, struct rp_info_file *out, struct rp_err *err)
{
    struct fill f = {.trace = trace, .arena = arena, .out = out};

    *out = (struct rp_info_file){.health = trace->health, .format = format};
    fill_identity(&f, path);
    fill_counts(&f);
    fill_times(&f);
    fill_steps(&f);
    fill_devices(&f);
    fill_device_text(&f);
    fill_tracks(&f);
    RP_TRY(count_captured(&f, err));
    fill_warnings(&f);
    return f.failed ? rp_err_nomem(err, "describing a trace") : RP_OK;
}
