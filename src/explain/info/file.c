/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes one trace. Everything comes from tables made when the trace was finished (totals,
 * health, steps, tracks), so the events of a native file are not touched. Only a merged trace is
 * divided, because its steps are those of its ranks.
 */
#include "base/text.h"
#include "explain/info/info.h"

#include "base/decides.h"
#include "base/order.h"
#include "dataset/captures.h"
#include "dataset/trust.h"
#include "facts/times/step_times.h"
#include "result/print_units.h"
#include "trace/merged.h"
#include "trace/meta.h"
#include "trace/secrets.h"
#include "trace/words.h"
#include "trace/zero_times.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUSIEST 8
RP_LIMIT(BUSIEST, "tracks on the screen", "those with most events; --json has them all");
#define MOST_NUMBERS 8
RP_LIMIT(MOST_NUMBERS, "numbers of ranks of a merged trace", "'…' stands for the others");

struct file_ctx {
    const struct rp_trace *trace;
    const struct rp_dataset *dataset;
    struct rp_arena *arena;
    struct rp_info_file *out;
    int64_t captured;        /* launches that became nodes of a CUDA graph */
    struct rp_merged merged; /* n is 0 if it is not a merged trace */
    int64_t step_sum_ns;     /* sum over its ranks that have steps */
    int64_t ranks_with_steps;
    size_t most_steps, least_steps;
    RP_VEC(struct rp_info_step) steps;
};

static const char *trace_text(const struct file_ctx *ctx, rp_str s)
{
    return s ? rp_arena_text(ctx->arena, rp_trace_str(ctx->trace, s)) : NULL;
}

/* Allocates cleared rows; if memory ran out, *n becomes 0 and the failure stays in the arena. */
static void *new_rows(const struct file_ctx *ctx, size_t *n, size_t size)
{
    void *rows = rp_arena_calloc(ctx->arena, *n + 1, size, _Alignof(int64_t));

    *n = rows ? *n : 0;
    return rows;
}

static void fill_counts(struct file_ctx *ctx)
{
    const struct rp_totals *totals = &ctx->trace->totals;
    struct rp_info_file *out = ctx->out;
    size_t k, n = RP_KIND_COUNT;

    out->events = ctx->trace->health.events;
    out->gpu_events = ctx->trace->health.gpu_events;
    out->flows = ctx->trace->flows.n;
    out->lost_events = ctx->trace->health.lost_events;
    out->instants = totals->count[RP_KIND_INSTANT];
    out->counters = totals->count[RP_KIND_COUNTER];
    out->kernels = totals->count[RP_KIND_KERNEL];
    out->kinds = new_rows(ctx, &n, sizeof *out->kinds);
    for (k = 0; k < n; k++) {
        if (k < RP_KIND_INSTANT || k == RP_KIND_WAIT)
            out->spans += totals->count[k];
        if (totals->count[k])
            out->kinds[out->nkinds++] =
                (struct rp_info_kind){rp_word_kind((uint8_t)k), totals->count[k]};
    }
}

static double meta_number(const struct rp_trace *t, const char *key)
{
    const char *text = rp_trace_note(t, key);

    return text ? strtod(text, NULL) : 0;
}

/* What a recording says about the cost of its samples. */
static const char *sampling_cost(struct file_ctx *ctx)
{
    double spent = meta_number(ctx->trace, "record.spent_ns"),
           all = meta_number(ctx->trace, "record.cpu_ns");

    return spent > 0 && all > spent
               ? rp_arena_textf(ctx->arena, "; the recorder took %.2f %% of the CPU time",
                                100 * spent / all)
               : "";
}

/* Reads no samples, so in a native file they are not touched. */
static void fill_samples(struct file_ctx *ctx)
{
    static const char *const units[RP_WEIGHT_UNITS] = {"time", "counts", "bytes"};
    const struct rp_call_samples *s = &ctx->trace->samples;
    const char *name = rp_trace_str(ctx->trace, s->unit_name);

    ctx->out->samples = s->n;
    if (s->n)
        ctx->out->sample_text =
            rp_arena_textf(ctx->arena, "%s of %s, in a call tree of %s; weighed by %s%s%s%s%s",
                           rp_units_count(ctx->arena, s->n, "sample"),
                           rp_units_count(ctx->arena, s->nframes, "different frame"),
                           rp_units_count(ctx->arena, s->nstacks, "node"), units[s->unit],
                           *name ? " (" : "", name, *name ? ")" : "", sampling_cost(ctx));
}

static void fill_times(struct file_ctx *ctx)
{
    const struct rp_totals *totals = &ctx->trace->totals;

    if (__builtin_sub_overflow(totals->span_end_ns, totals->span_begin_ns, &ctx->out->window_ns))
        ctx->out->window_ns = INT64_MAX;
    if (!ctx->out->window_ns && !ctx->trace->ev.n && ctx->trace->samples.n)
        ctx->out->window_ns = RP_ABSENT_I64; /* the profile has no times */
    if (__builtin_add_overflow(totals->span_begin_ns, ctx->trace->base_ns, &ctx->out->begin_ns))
        ctx->out->begin_ns = totals->span_begin_ns;
    /* by kind, because health's count knows only Kineto's categories */
    ctx->out->gpu_busy_ns =
        totals->gpu_end_ns > totals->gpu_begin_ns ? totals->gpu_busy_ns : RP_ABSENT_I64;
}

static int64_t counted(int64_t count)
{
    return count == RP_NO_COUNT ? RP_ABSENT_I64 : count;
}

/* "34, by marks: 30 decode, 3 prefill, 1 mixed; 33 of them judged" */
static const char *step_text(const struct file_ctx *ctx, const struct rp_interval *times)
{
    const struct rp_trace *t = ctx->trace;
    size_t count[RP_STEP_PHASES] = {0};
    uint32_t judged = 0;
    const char *text, *between = ": ";

    for (uint32_t i = 0; i < t->nsteps; i++)
        count[t->steps[i].phase]++;
    text =
        rp_arena_textf(ctx->arena, "%u, by %s", t->nsteps, rp_word_step_source(t->steps[0].source));
    for (unsigned phase = RP_PHASE_NONE + 1; phase < RP_STEP_PHASES; phase++)
        if (count[phase]) {
            text = rp_arena_textf(ctx->arena, "%s%s%zu %s", text, between, count[phase],
                                  rp_word_step_phase(phase));
            between = ", ";
        }
    for (uint32_t i = 0; i < t->nsteps; i++)
        judged += rp_step_is_judged(t, i, times[i]);
    return judged == t->nsteps ? text
                               : rp_arena_textf(ctx->arena, "%s; %u of them judged", text, judged);
}

/* Adds the steps of a trace, or of a rank of a merged one. */
static enum rp_code add_steps(struct file_ctx *ctx, const struct rp_trace *t, int64_t rank,
                              int64_t *median_ns, struct rp_err *err)
{
    struct rp_interval *times;

    RP_TRY(rp_step_times(t, ctx->arena, &times, err));
    RP_TRY(rp_step_median(times, rp_whole_steps(t), ctx->arena, median_ns, err));
    for (size_t i = 0; i < t->nsteps; i++) {
        const struct rp_step *step = &t->steps[i];
        const char *name =
            step->name ? rp_arena_text(ctx->arena, rp_trace_str(t, step->name)) : NULL;
        struct rp_info_step row = {.rank = rank,
                                   .name = name,
                                   .source = rp_word_step_source(step->source),
                                   .phase = rp_word_step_phase(step->phase),
                                   .requests = counted(step->requests),
                                   .tokens = counted(step->tokens),
                                   .ts_ns = times[i].begin_ns,
                                   .dur_ns = rp_ns_between(times[i].begin_ns, times[i].end_ns),
                                   .mark_ns = rp_ns_between(step->begin_ns, step->end_ns)};

        RP_TRY(rp_vec_push(&ctx->steps, row, err));
    }
    return RP_OK;
}

static enum rp_code add_rank(struct file_ctx *ctx, const struct rp_merged_rank *rank,
                             struct rp_err *err)
{
    struct rp_trace *t = NULL;
    int64_t median_ns = RP_ABSENT_I64;
    enum rp_code code = rp_load_merged_rank(ctx->dataset, ctx->trace, rank, &t, err);

    if (code == RP_OK)
        code = add_steps(ctx, t, rank->number, &median_ns, err);
    if (code == RP_OK && median_ns != RP_ABSENT_I64) {
        ctx->most_steps = t->nsteps > ctx->most_steps ? t->nsteps : ctx->most_steps;
        if (!ctx->ranks_with_steps || t->nsteps < ctx->least_steps)
            ctx->least_steps = t->nsteps;
        ctx->ranks_with_steps++;
        rp_ns_add(&ctx->step_sum_ns, median_ns);
    }
    rp_trace_free(t);
    return code;
}

/* "4 on each of 4 ranks, by profiler", or "7 on 2 of 4 ranks, by profiler" */
static const char *merged_step_text(const struct file_ctx *ctx)
{
    const char *source = ctx->steps.n ? ctx->steps.at[0].source : "";

    if (ctx->ranks_with_steps == (int64_t)ctx->merged.n && ctx->most_steps == ctx->least_steps)
        return rp_arena_textf(ctx->arena, "%zu on each of %zu ranks, by %s", ctx->most_steps,
                              ctx->merged.n, source);
    return rp_arena_textf(ctx->arena, "%zu on %lld of %zu ranks, by %s", ctx->steps.n,
                          (long long)ctx->ranks_with_steps, ctx->merged.n, source);
}

static enum rp_code add_all_steps(struct file_ctx *ctx, struct rp_err *err)
{
    if (ctx->merged.n) {
        /* The step time is that of the report: the mean of the ranks' medians. */
        RP_TRY(rp_trace_require(ctx->trace, RP_NEED_ALL, err));
        for (size_t i = 0; i < ctx->merged.n; i++)
            RP_TRY(add_rank(ctx, &ctx->merged.ranks[i], err));
        if (!ctx->ranks_with_steps)
            return RP_OK;
        ctx->out->step_median_ns = ctx->step_sum_ns / ctx->ranks_with_steps;
        ctx->out->step_text = merged_step_text(ctx);
        return RP_OK;
    }
    struct rp_interval *times;
    RP_TRY(add_steps(ctx, ctx->trace, RP_ABSENT_I64, &ctx->out->step_median_ns, err));
    RP_TRY(rp_step_times(ctx->trace, ctx->arena, &times, err));
    if (ctx->steps.n)
        ctx->out->step_text = step_text(ctx, times);
    return RP_OK;
}

/* Without steps: what is judged, if that is not everything. */
static const char *no_steps_text(const struct file_ctx *ctx)
{
    struct rp_interval judged = rp_trace_judged_span(ctx->trace), all = rp_trace_span(ctx->trace);

    if (ctx->merged.n || (judged.begin_ns <= all.begin_ns && judged.end_ns >= all.end_ns))
        return "none found";
    return rp_arena_textf(ctx->arena, "none found: the %s " RP_WORDS_DEVICE_WINDOW " are judged",
                          rp_units_time(ctx->arena, rp_ns_between(judged.begin_ns, judged.end_ns)));
}

static enum rp_code fill_steps(struct file_ctx *ctx, struct rp_err *err)
{
    struct rp_info_file *out = ctx->out;
    struct rp_err why = RP_ERR_INIT;

    out->step_median_ns = RP_ABSENT_I64;
    out->step_text = no_steps_text(ctx);
    enum rp_code code = add_all_steps(ctx, &why);
    if (code != RP_OK && code != RP_NOMEM && ctx->merged.n) { /* the rest is still valid */
        out->step_median_ns = RP_ABSENT_I64;
        out->step_text = rp_arena_textf(ctx->arena, "unknown: %s", why.text);
        ctx->steps.n = 0;
        code = RP_OK;
    }
    size_t n = ctx->steps.n;
    out->steps = new_rows(ctx, &n, sizeof *out->steps);
    if (n)
        memcpy(out->steps, ctx->steps.at, n * sizeof *out->steps);
    out->nsteps = n;
    out->step_count = (int64_t)n;
    rp_vec_release(&ctx->steps);
    return code == RP_OK ? RP_OK : rp_err_set(err, code, "%s", why.text);
}

static void fill_devices(struct file_ctx *ctx)
{
    const struct rp_trace *t = ctx->trace;
    size_t i, n = t->ndevices;

    ctx->out->devices = new_rows(ctx, &n, sizeof *ctx->out->devices);
    for (i = 0; i < n; i++) {
        const struct rp_device *d = &t->devices[i];

        ctx->out->devices[ctx->out->ndevices++] = (struct rp_info_device){
            .id = d->id,
            .name = trace_text(ctx, d->name),
            .memory_bytes = d->memory_bytes ? d->memory_bytes : RP_ABSENT_I64,
            .multiprocessors = d->multiprocessors ? d->multiprocessors : RP_ABSENT_I64};
    }
}

/* "8 x NVIDIA A100-SXM4-80GB", or the first name and how many more. */
static void fill_device_text(struct file_ctx *ctx)
{
    const struct rp_info_file *out = ctx->out;
    const char *name = out->ndevices ? out->devices[0].name : NULL;
    size_t i, same = 0;

    if (!name)
        return;
    for (i = 0; i < out->ndevices; i++)
        same += out->devices[i].name && !strcmp(name, out->devices[i].name);
    if (same < out->ndevices)
        ctx->out->device_text =
            rp_arena_textf(ctx->arena, "%zu x %s and %zu others", same, name, out->ndevices - same);
    else
        ctx->out->device_text = rp_arena_textf(ctx->arena, "%zu x %s", same, name);
}

/* Writes "python 1234", "1234", or only the name if it already contains the number. */
static const char *number_label(struct file_ctx *ctx, rp_str name, rp_str as_text, int64_t id)
{
    char number[24];

    snprintf(number, sizeof number, "%lld", (long long)id);
    if (as_text)
        return trace_text(ctx, name ? name : as_text);
    if (!name)
        return rp_arena_text(ctx->arena, number);
    if (strstr(rp_trace_str(ctx->trace, name), number))
        return trace_text(ctx, name);
    return rp_arena_textf(ctx->arena, "%s %s", rp_trace_str(ctx->trace, name), number);
}

/* Kineto shows a device as a process of the same name; its label distinguishes them. */
static const char *process_label(struct file_ctx *ctx, const struct rp_process *process)
{
    if (process->labels && process->device >= 0)
        return trace_text(ctx, process->labels);
    return number_label(ctx, process->name, process->text, process->native_id);
}

RP_ORDER(by_events, struct rp_info_track, RP_DOWN(events))

static void fill_tracks(struct file_ctx *ctx)
{
    const struct rp_trace *t = ctx->trace;
    struct rp_info_file *out = ctx->out;
    size_t i, n = t->ntracks;

    out->tracks = new_rows(ctx, &n, sizeof *out->tracks);
    out->busiest = new_rows(ctx, &n, sizeof *out->busiest);
    for (i = 0; i < n; i++) {
        const struct rp_track_info *track = &t->tracks[i];
        const struct rp_process *process = &t->processes[track->process];

        out->tracks[out->ntracks++] = (struct rp_info_track){
            .process = process_label(ctx, process),
            .name = number_label(ctx, track->name, track->text, track->native_id),
            .kind = rp_word_track_kind(track->kind),
            .events = (int64_t)track->end - track->first};
    }
    if (!n)
        return;
    memcpy(out->busiest, out->tracks, out->ntracks * sizeof *out->tracks);
    qsort(out->busiest, out->ntracks, sizeof *out->busiest, by_events);
    /* the screen leaves out tracks with hardly any events */
    while (out->nbusiest < out->ntracks && out->nbusiest < BUSIEST &&
           out->busiest[out->nbusiest].events * 1000 >= out->events)
        out->nbusiest++;
}

/* concern: a health counter that deserves a warning, what it is compared with, and what it
   means. */
struct concern {
    size_t counter, whole; /* offsets in struct rp_health; whole is SIZE_MAX if there is none */
    const char *sentence;  /* the text after "N of M " or "N " */
    const char *advice;
};

#define OF(key)  offsetof(struct rp_health, key)
#define NO_WHOLE SIZE_MAX

static const struct concern concerns[] = {
    {OF(gpu_without_runtime), OF(gpu_events), "device events have no recorded launch",
     "record with CPU activities, and start before the work is launched"},
    {OF(launches_without_gpu), OF(runtime_events),
     "runtime calls launched work that was not recorded",
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
    {OF(bad_time), NO_WHOLE, "times or durations are not numbers", NULL},
    {OF(huge_time), NO_WHOLE, "times or durations exceed 64 bits of nanoseconds", NULL},
    {OF(negative_dur), OF(events), "durations are negative", NULL},
    {OF(absurd_dur), OF(events), "durations are over 7 days", "their times are corrupt"},
    {OF(rounded_time), NO_WHOLE,
     "times and durations had digits below a nanosecond and were rounded", NULL},
    {OF(bad_utf8), NO_WHOLE, "strings are not UTF-8", NULL},
    {OF(control_bytes), NO_WHOLE, "control characters are inside strings", NULL},
    {OF(duplicate_keys), NO_WHOLE, "keys occur twice in one event; the last one counts", NULL},
    {OF(skipped_events), OF(events), "elements of the event list are not events", NULL},
    {OF(skipped_bytes), NO_WHOLE, "bytes were skipped to find the next event", NULL},
    {OF(lost_events), NO_WHOLE, "events were dropped by the recorder", "give it a larger buffer"},
};

static int64_t counter_value(const struct rp_health *health, size_t offset)
{
    int64_t value;

    memcpy(&value, (const char *)health + offset, sizeof value);
    return value;
}

/* Launches that were captured into a graph are not expected to have work of their own. */
static long long concern_count(const struct file_ctx *ctx, const struct concern *c)
{
    int64_t count = counter_value(&ctx->trace->health, c->counter);

    if (c->counter == OF(launches_without_gpu))
        count = ctx->captured < count ? count - ctx->captured : 0;
    if (c->counter == OF(lost_events) && ctx->trace->nwarnings && rp_trace_is_ours(ctx->trace))
        return 0; /* the reader of our recordings gives the reason */
    if (c->counter == OF(ts_zero_gpu))
        return rp_zero_times_lost(ctx->trace);
    return count;
}

static enum rp_code count_captured(struct file_ctx *ctx, const char *path, struct rp_err *err)
{
    struct rp_captures captures;

    if (!ctx->trace->health.launches_without_gpu)
        return RP_OK;
    RP_TRY(rp_trace_require(ctx->trace, RP_NEED_EVENTS | RP_NEED_LINKS, err));
    RP_TRY(rp_trace_require(ctx->trace, RP_NEED_ARGS, err));
    enum rp_code code = rp_captures_init(&captures, ctx->trace, err);
    ctx->captured = ctx->out->captured_launches = (int64_t)captures.nodes.n;
    ctx->out->is_capture = code == RP_OK && rp_is_capture_file(path, &captures);
    bool runs = !rp_captures_are_all(&captures);
    rp_captures_release(&captures);
    if (ctx->out->is_capture) {
        ctx->out->rank_text = "capture";
        ctx->out->content_text = rp_arena_textf(
            ctx->arena, "a recording of a graph capture: %s %s captured, not executed%s",
            rp_units_count(ctx->arena, ctx->captured, "launch"),
            ctx->captured == 1 ? "was" : "were", runs ? "; it runs beside other work" : "");
    }
    return code;
}

static const char *concern_text(struct file_ctx *ctx, const struct concern *c, long long count)
{
    const struct rp_health *health = &ctx->trace->health;
    const char *dash = c->advice ? ": " : "", *advice = c->advice ? c->advice : "";

    if (c->whole == NO_WHOLE)
        return rp_arena_textf(ctx->arena, "%lld %s%s%s", count, c->sentence, dash, advice);
    long long whole = counter_value(health, c->whole);
    return rp_arena_textf(ctx->arena, "%lld of %lld %s%s%s", count, whole, c->sentence, dash,
                          advice);
}

/* Lists what should not be shared. unread: secrets that only the file holds. */
static void fill_secrets(struct file_ctx *ctx, uint32_t unread)
{
    static const struct {
        enum rp_secret kind;
        const char *text;
    } told[] = {{RP_SECRET_ENVIRONMENT, "an environment"},
                {RP_SECRET_COMMAND, "a command line"},
                {RP_SECRET_OUTPUT, "captured output"},
                {RP_SECRET_TOKEN, "something like a token or password"}};
    int64_t counts[RP_SECRETS];
    const char *found[sizeof told / sizeof *told], *text = "";
    size_t i, n = 0;

    if (rp_secrets_count(ctx->trace, counts, NULL) != RP_OK)
        return;
    for (i = 0; i < sizeof told / sizeof *told; i++)
        if (counts[told[i].kind] || unread >> told[i].kind & 1)
            found[n++] = told[i].text;
    for (i = 0; i < n; i++)
        text = rp_arena_textf(ctx->arena, "%s%s%s", text,
                              !i           ? ""
                              : i + 1 == n ? " and "
                                           : ", ",
                              found[i]);
    if (n)
        ctx->out->secrets =
            rp_arena_textf(ctx->arena, "holds %s; 'reprise scrub' removes it", text);
}

static void fill_warnings(struct file_ctx *ctx)
{
    const struct rp_trace *t = ctx->trace;
    struct rp_info_file *out = ctx->out;
    size_t i, n = t->nwarnings + sizeof concerns / sizeof concerns[0];

    out->warnings = new_rows(ctx, &n, sizeof *out->warnings);
    out->shown = new_rows(ctx, &n, sizeof *out->shown);
    if (!n)
        return;
    for (i = 0; i < t->nwarnings; i++) {
        const char *text = trace_text(ctx, t->warnings[i]);

        out->warnings[out->nwarnings++] = text;
        if (!rp_trust_covers(t, rp_trace_str(t, t->warnings[i])))
            out->shown[out->nshown++] = text;
    }
    for (i = 0; i < sizeof concerns / sizeof concerns[0]; i++) {
        long long count = concern_count(ctx, &concerns[i]);

        if (!count)
            continue;
        out->warnings[out->nwarnings++] = concern_text(ctx, &concerns[i], count);
        if (concerns[i].counter != OF(lost_events) && concerns[i].counter != OF(skipped_bytes))
            out->shown[out->nshown++] = out->warnings[out->nwarnings - 1];
    }
    out->warning_count = (int64_t)out->nwarnings;
    out->trust = out->nshown      ? "with care: see the warnings"
                 : out->nwarnings ? "with care: see the first lines"
                                  : "nothing suspicious found";
}

static void fill_identity(struct file_ctx *ctx, const char *path)
{
    const struct rp_trace *t = ctx->trace;
    struct rp_info_file *out = ctx->out;

    out->path = rp_arena_text(ctx->arena, path);
    out->base_name = out->path ? rp_text_file(out->path) : NULL;
    out->framework = trace_text(ctx, t->framework);
    out->framework_version = trace_text(ctx, t->framework_version);
    out->rank = t->rank == RP_NO_RANK ? RP_ABSENT_I64 : t->rank;
    out->is_launcher = rp_trace_is_launcher(t);
    out->world_size = t->world_size > 0 ? t->world_size : RP_ABSENT_I64;
    out->recorder = rp_arena_textf(
        ctx->arena, "%s%s%s (%s)", out->framework ? out->framework : "unknown recorder",
        out->framework_version ? " " : "", out->framework_version ? out->framework_version : "",
        out->format);
    if (t->rank != RP_NO_RANK && t->world_size > 0)
        out->rank_text = rp_arena_textf(ctx->arena, "%d of %d", t->rank, t->world_size);
    else if (t->rank != RP_NO_RANK)
        out->rank_text = rp_arena_textf(ctx->arena, "%d", t->rank);
    else
        out->rank_text = "not recorded";
}

/* A merged trace is not a rank, because it holds several. */
static void fill_merged(struct file_ctx *ctx)
{
    const struct rp_merged *m = &ctx->merged;
    struct rp_info_file *out = ctx->out;

    if (!m->n)
        return;
    out->merged_ranks = (int64_t)m->n;
    out->rank = RP_ABSENT_I64;
    out->rank_text = rp_arena_textf(ctx->arena, "%d", m->ranks[0].number);
    for (size_t i = 1; i < m->n && i < MOST_NUMBERS; i++)
        out->rank_text = rp_arena_textf(ctx->arena, "%s, %d", out->rank_text, m->ranks[i].number);
    if (m->n > MOST_NUMBERS)
        out->rank_text = rp_arena_textf(ctx->arena, "%s, …", out->rank_text);
    out->content_text =
        rp_arena_textf(ctx->arena, "a merged trace of %zu rank%s", m->n, m->n == 1 ? "" : "s");
}

enum rp_code rp_info_describe(const struct rp_loaded *loaded, const struct rp_dataset *dataset,
                              struct rp_arena *arena, struct rp_info_file *out, struct rp_err *err)
{
    const struct rp_trace *trace = loaded->trace;
    const char *path = loaded->source->name;
    struct file_ctx ctx = {.trace = trace, .dataset = dataset, .arena = arena, .out = out};

    *out = (struct rp_info_file){
        .health = trace->health, .format = loaded->format, .merged_ranks = RP_ABSENT_I64};
    RP_TRY(rp_merged_read(trace, arena, &ctx.merged, err));
    fill_identity(&ctx, path);
    fill_merged(&ctx);
    fill_counts(&ctx);
    fill_samples(&ctx);
    fill_times(&ctx);
    RP_TRY(fill_steps(&ctx, err));
    fill_devices(&ctx);
    fill_device_text(&ctx);
    fill_tracks(&ctx);
    RP_TRY(count_captured(&ctx, path, err));
    fill_warnings(&ctx);
    fill_secrets(&ctx, loaded->import ? loaded->import->unread : 0);
    return rp_arena_check(arena, "describing a trace", err);
}
