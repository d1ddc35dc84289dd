/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers `metrics`: the counts of programs with <reprise/metrics.h>, and metric reports of
 * torch_xla, torch.lazy and Ratex. Sources are read one by one and merged; two are compared.
 */
#include "metrics/set.h"

#include "dataset/question.h"
#include "io/output.h"
#include "result/print_units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct metrics_source {
    const char *path, *host, *command, *state;
    int64_t pid, rank, world_size, metrics, lost;
};

struct metrics_point {
    const char *percent;
    double value;
};

struct metrics_row {
    const char *name, *kind, *total_text, *mean_text, *p50_text, *p99_text, *most_text;
    int64_t count, total_ns, least_ns, most_ns;
    double mean_ns, total, mean, least, most, rate_hz;
    size_t npercentiles;
    struct metrics_point *percentiles;
};

struct counter_row {
    const char *name;
    int64_t value;
};

struct change_row {
    const char *name, *kind, *verdict, *base_text, *other_text;
    int64_t base_count, other_count;
    double base_mean, other_mean, base_median, other_median, change_ratio;
};

struct metrics_root {
    size_t nshown, ncounted; /* numbers of metrics and counters on the screen */
    struct metrics_row *shown;
    struct counter_row *counted;
    size_t nlines, nsources, nlisted, nmetrics, ncounters, nchanges, nremarks;
    const char **lines; /* the report as text */
    struct metrics_source *sources, *listed;
    struct metrics_row *metrics;
    struct counter_row *counters;
    struct change_row *changes;
    const char **remarks;
};

static const struct rp_field source_fields[] = {
    RP_FIELD(struct metrics_source, path, STR, NONE, "source", "file", RP_SHORTEN),
    RP_FIELD(struct metrics_source, pid, I64, NONE, "process", "id of the process", RP_NULLABLE),
    RP_FIELD(struct metrics_source, rank, I64, NONE, "rank", "rank, from its environment",
             RP_NULLABLE),
    RP_FIELD(struct metrics_source, world_size, I64, NONE, NULL, "ranks of the job", RP_NULLABLE),
    RP_FIELD(struct metrics_source, state, STR, NONE, "state", "running, ended, text or removed",
             0),
    RP_FIELD(struct metrics_source, host, STR, NONE, "host", "name of the machine", RP_WIDE),
    RP_FIELD(struct metrics_source, command, STR, NONE, "command", "command line of the process",
             RP_SHORTEN),
    RP_FIELD(struct metrics_source, metrics, I64, COUNT, "metrics", "metrics and counters in it",
             0),
    RP_FIELD(struct metrics_source, lost, I64, COUNT, NULL, "samples that found no memory", 0),
    RP_FIELD_END};

static const struct rp_type source_type = {"metrics_source", sizeof(struct metrics_source),
                                           source_fields, NULL};

static const struct rp_field point_fields[] = {
    RP_FIELD(struct metrics_point, percent, STR, NONE, "percent", "share of the samples below", 0),
    RP_FIELD(struct metrics_point, value, F64, NONE, "value",
             "value; in ns where the metric is a time", 0),
    RP_FIELD_END};

static const struct rp_type point_type = {"metrics_point", sizeof(struct metrics_point),
                                          point_fields, NULL};

static const struct rp_field row_fields[] = {
    RP_FIELD(struct metrics_row, name, STR, NONE, "metric", "name of the metric", 0),
    RP_FIELD(struct metrics_row, kind, STR, NONE, NULL, "time, value or bytes", 0),
    RP_FIELD(struct metrics_row, count, I64, COUNT, "samples", "number of samples", 0),
    RP_FIELD(struct metrics_row, total_text, STR, NONE, "total", "with its unit", RP_SCREEN),
    RP_FIELD(struct metrics_row, mean_text, STR, NONE, "mean", "with its unit", RP_SCREEN),
    RP_FIELD(struct metrics_row, p50_text, STR, NONE, "p50", "with its unit", RP_SCREEN),
    RP_FIELD(struct metrics_row, p99_text, STR, NONE, "p99", "with its unit", RP_SCREEN),
    RP_FIELD(struct metrics_row, most_text, STR, NONE, "max", "with its unit", RP_SCREEN),
    RP_FIELD(struct metrics_row, total_ns, I64, NS, NULL, "sum, of a time", RP_NULLABLE),
    RP_FIELD(struct metrics_row, mean_ns, F64, NS, NULL, "mean, of a time", 0),
    RP_FIELD(struct metrics_row, least_ns, I64, NS, NULL, "shortest, of a time", RP_NULLABLE),
    RP_FIELD(struct metrics_row, most_ns, I64, NS, NULL, "longest, of a time", RP_NULLABLE),
    RP_FIELD(struct metrics_row, total, F64, NONE, NULL, "sum, of values and bytes", 0),
    RP_FIELD(struct metrics_row, mean, F64, NONE, NULL, "mean, of values and bytes", 0),
    RP_FIELD(struct metrics_row, least, F64, NONE, NULL, "smallest, of values and bytes", 0),
    RP_FIELD(struct metrics_row, most, F64, NONE, NULL, "largest, of values and bytes", 0),
    RP_FIELD(struct metrics_row, rate_hz, F64, HZ, "rate",
             "samples per second, from the begin of the first to the end of the last", 0),
    RP_FIELD_MAP(struct metrics_row, percentiles, &point_type, NULL,
                 "value at each percentile; in ns where the metric is a time", 0),
    RP_FIELD_END};

static const struct rp_type row_type = {"metrics_row", sizeof(struct metrics_row), row_fields,
                                        NULL};

static const struct rp_field counter_fields[] = {
    RP_FIELD(struct counter_row, name, STR, NONE, "counter", "name of the counter", 0),
    RP_FIELD(struct counter_row, value, I64, COUNT, "value", "its value", 0), RP_FIELD_END};

static const struct rp_type counter_type = {"metrics_counter", sizeof(struct counter_row),
                                            counter_fields, NULL};

static const struct rp_field change_fields[] = {
    RP_FIELD(struct change_row, name, STR, NONE, "metric", "metric or counter", RP_SHORTEN),
    RP_FIELD(struct change_row, kind, STR, NONE, NULL, "time, value, bytes or counter", 0),
    RP_FIELD(struct change_row, verdict, STR, NONE, "verdict",
             "slower, faster, higher, lower, same, new or gone", 0),
    RP_FIELD(struct change_row, base_text, STR, NONE, "before", "median, mean or value before",
             RP_SCREEN),
    RP_FIELD(struct change_row, other_text, STR, NONE, "after", "the same after", RP_SCREEN),
    RP_FIELD(struct change_row, change_ratio, F64, RATIO, "change", "after / before - 1", 0),
    RP_FIELD(struct change_row, base_count, I64, COUNT, "samples", "samples before, or the counter",
             0),
    RP_FIELD(struct change_row, other_count, I64, COUNT, "after", "samples after, or the counter",
             0),
    RP_FIELD(struct change_row, base_mean, F64, NONE, NULL, "mean before; of a time in ns", 0),
    RP_FIELD(struct change_row, other_mean, F64, NONE, NULL, "mean after", 0),
    RP_FIELD(struct change_row, base_median, F64, NONE, NULL, "median before; of a time in ns", 0),
    RP_FIELD(struct change_row, other_median, F64, NONE, NULL, "median after", 0),
    RP_FIELD_END};

static const struct rp_type change_type = {"metrics_change", sizeof(struct change_row),
                                           change_fields, NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD_LIST(struct metrics_root, listed, &source_type, "sources", "sources, on the screen",
                  RP_SCREEN),
    RP_FIELD_SHOWN(struct metrics_root, shown, &row_type, "metrics", NULL, 0),
    RP_FIELD_SHOWN(struct metrics_root, counted, &counter_type, "counters", NULL, 0),
    RP_FIELD_LIST(struct metrics_root, lines, &rp_type_string, "report", "the report as text",
                  RP_SCREEN | RP_VERBATIM),
    RP_FIELD_LIST(struct metrics_root, sources, &source_type, NULL, "what was read", 0),
    RP_FIELD_LIST(struct metrics_root, metrics, &row_type, NULL, "times, values and sizes", 0),
    RP_FIELD_LIST(struct metrics_root, counters, &counter_type, NULL, "counters", 0),
    RP_FIELD_LIST(struct metrics_root, changes, &change_type, "what changed",
                  "the second source against the first", 0),
    RP_FIELD_LIST(struct metrics_root, remarks, &rp_type_string, "remarks", "what the numbers show",
                  0),
    RP_FIELD_END};

static const struct rp_type root_type = {"metrics", sizeof(struct metrics_root), root_fields,
                                         "metrics"};

static const char *const kinds[] = {"time", "value", "bytes"};

struct metrics_ctx {
    struct rp_arena *arena;
    struct metrics_root *root;
    const struct rp_settings *settings;
    rp_metric_sets sets;
    rp_metric_paths paths;
    struct rp_metric_set all;
};

/* ---- reading ---- */

static enum rp_code merge_sets(struct metrics_ctx *ctx, size_t from, size_t to,
                               struct rp_metric_set *out, struct rp_err *err)
{
    for (size_t i = from; i < to; i++)
        RP_TRY(rp_metric_set_merge(out, &ctx->sets.at[i], err));
    rp_metric_set_sort(out);
    return RP_OK;
}

/* ---- rows ---- */

static int64_t whole(double value)
{
    return isnan(value) ? RP_ABSENT_I64 : fabs(value) < 9e18 ? (int64_t)(value + 0.5) : INT64_MAX;
}

/* Prints a value like times and sizes of other answers. */
static const char *value_text(struct metrics_ctx *ctx, double value, enum rp_metric_unit unit)
{
    static const enum rp_unit units[] = {[RP_METRIC_TIME] = RP_UNIT_NS,
                                         [RP_METRIC_BYTES] = RP_UNIT_BYTES,
                                         [RP_METRIC_VALUE] = RP_UNIT_NONE};

    return isnan(value) ? NULL : rp_units_text(ctx->arena, value, units[unit]);
}

static void fill_row(struct metrics_ctx *ctx, const struct rp_metric *m, struct metrics_row *row)
{
    bool time = m->unit == RP_METRIC_TIME;

    *row = (struct metrics_row){.name = rp_arena_text(ctx->arena, m->name),
                                .kind = kinds[m->unit],
                                .count = (int64_t)m->count,
                                .total_ns = time ? whole(m->sum) : RP_ABSENT_I64,
                                .mean_ns = time ? rp_metric_mean(m) : NAN,
                                .least_ns = time ? whole(m->least) : RP_ABSENT_I64,
                                .most_ns = time ? whole(m->most) : RP_ABSENT_I64,
                                .total = time ? NAN : m->sum,
                                .mean = time ? NAN : rp_metric_mean(m),
                                .least = time ? NAN : m->least,
                                .most = time ? NAN : m->most,
                                .rate_hz = rp_metric_rate(m),
                                .total_text = value_text(ctx, m->sum, m->unit),
                                .mean_text = value_text(ctx, rp_metric_mean(m), m->unit),
                                .p50_text = value_text(ctx, rp_metric_percentile(m, 50), m->unit),
                                .p99_text = value_text(ctx, rp_metric_percentile(m, 99), m->unit),
                                .most_text = value_text(ctx, m->most, m->unit)};
    row->percentiles = RP_ARENA_NEW(ctx->arena, struct metrics_point, RP_METRIC_PERCENTILES);
    for (size_t i = 0; row->percentiles && i < RP_METRIC_PERCENTILES; i++) {
        double value = rp_metric_percentile(m, rp_metric_percent[i]);

        if (!isnan(value))
            row->percentiles[row->npercentiles++] = (struct metrics_point){
                rp_arena_textf(ctx->arena, "%d", rp_metric_percent[i]), value};
    }
}

static enum rp_code fill_lines(struct metrics_ctx *ctx, struct rp_err *err)
{
    struct metrics_root *root = ctx->root;
    struct rp_out *out;
    size_t n, i, lines = 0;

    RP_TRY(rp_out_open_memory(&out, err));
    rp_metric_write_report(&ctx->all, out);
    const char *at = rp_arena_text(ctx->arena, rp_out_borrow_memory(out, &n));
    for (i = 0; at[i]; i++)
        lines += at[i] == '\n';
    root->lines = RP_ARENA_NEW(ctx->arena, const char *, lines + 1);
    while (root->lines && root->nlines < lines) {
        size_t length = strcspn(at, "\n");

        root->lines[root->nlines++] = rp_arena_copy(ctx->arena, at, length);
        at += length + 1;
    }
    rp_out_abandon(out);
    return rp_arena_check(ctx->arena, "writing the report", err);
}

/* Writes the file of an option if it was given. */
static enum rp_code write_exposition(struct metrics_ctx *ctx, const char *option,
                                     enum rp_metric_format format, struct rp_err *err)
{
    const char *path = rp_settings_text(ctx->settings, option);
    struct rp_out *out;

    if (!path)
        return RP_OK;
    RP_TRY(rp_out_open(path, &out, err));
    return rp_out_end(out, rp_metric_expose(ctx->sets.at, ctx->sets.n, format, out, err), err);
}

/* ---- two sources ---- */

/* Compares medians if both are known, otherwise means. */
static void compare_metric(struct metrics_ctx *ctx, const struct rp_metric *a,
                           const struct rp_metric *b, struct change_row *row)
{
    *row = (struct change_row){.name = rp_arena_text(ctx->arena, (a ? a : b)->name),
                               .kind = kinds[(a ? a : b)->unit],
                               .base_count = a ? (int64_t)a->count : 0,
                               .other_count = b ? (int64_t)b->count : 0,
                               .base_mean = a ? rp_metric_mean(a) : NAN,
                               .other_mean = b ? rp_metric_mean(b) : NAN,
                               .base_median = a ? rp_metric_percentile(a, 50) : NAN,
                               .other_median = b ? rp_metric_percentile(b, 50) : NAN,
                               .change_ratio = NAN,
                               .verdict = a ? "gone" : "new"};
    double x = isnan(row->base_median) ? row->base_mean : row->base_median;
    double y = isnan(row->other_median) ? row->other_mean : row->other_median;
    if (a)
        row->base_text = value_text(ctx, x, a->unit);
    if (b)
        row->other_text = value_text(ctx, y, b->unit);
    if (!a || !b)
        return;
    if (x > 0)
        row->change_ratio = y / x - 1;
    row->verdict =
        rp_metric_verdict(a, b, row->base_mean > 0 ? row->other_mean / row->base_mean - 1 : 0);
}

static void compare_counter(struct metrics_ctx *ctx, const char *name, const int64_t *a,
                            const int64_t *b, struct change_row *row)
{
    *row = (struct change_row){.name = rp_arena_text(ctx->arena, name),
                               .kind = "counter",
                               .base_count = a ? *a : 0,
                               .other_count = b ? *b : 0,
                               .base_mean = NAN,
                               .other_mean = NAN,
                               .base_median = NAN,
                               .other_median = NAN,
                               .change_ratio = a && b && *a ? (double)*b / (double)*a - 1 : NAN,
                               .verdict = !a        ? "new"
                                          : !b      ? "gone"
                                          : *a < *b ? "higher"
                                          : *a > *b ? "lower"
                                                    : "same"};
}

static const struct rp_metric *same_metric(const struct rp_metric_set *set,
                                           const struct rp_metric *like)
{
    const struct rp_metric *m = rp_metric_find(set, like->name);

    return m && m->unit == like->unit ? m : NULL;
}

static const int64_t *same_counter(const struct rp_metric_set *set, const char *name)
{
    for (size_t i = 0; i < set->counters.n; i++)
        if (!strcmp(set->counters.at[i].name, name))
            return &set->counters.at[i].value;
    return NULL;
}

static void compare_sets(struct metrics_ctx *ctx, const struct rp_metric_set *a,
                         const struct rp_metric_set *b)
{
    struct metrics_root *root = ctx->root;
    size_t i, most = a->metrics.n + b->metrics.n + a->counters.n + b->counters.n;

    root->changes = RP_ARENA_NEW(ctx->arena, struct change_row, most + 1);
    if (!root->changes)
        return;
    for (i = 0; i < a->metrics.n; i++)
        compare_metric(ctx, &a->metrics.at[i], same_metric(b, &a->metrics.at[i]),
                       &root->changes[root->nchanges++]);
    for (i = 0; i < b->metrics.n; i++)
        if (!same_metric(a, &b->metrics.at[i]))
            compare_metric(ctx, NULL, &b->metrics.at[i], &root->changes[root->nchanges++]);
    for (i = 0; i < a->counters.n; i++)
        compare_counter(ctx, a->counters.at[i].name, &a->counters.at[i].value,
                        same_counter(b, a->counters.at[i].name), &root->changes[root->nchanges++]);
    for (i = 0; i < b->counters.n; i++)
        if (!same_counter(a, b->counters.at[i].name))
            compare_counter(ctx, b->counters.at[i].name, NULL, &b->counters.at[i].value,
                            &root->changes[root->nchanges++]);
}

/* ---- the question ---- */

static void say(struct metrics_ctx *ctx, const char *text)
{
    ctx->root->remarks = RP_ARENA_NEW(ctx->arena, const char *, 1);
    if (ctx->root->remarks)
        ctx->root->remarks[ctx->root->nremarks++] = text;
}

/* Whether all processes run the same program, as the ranks of a job do. */
static bool is_one_job(const struct metrics_ctx *ctx)
{
    for (size_t i = 1; i < ctx->sets.n; i++)
        if (!ctx->sets.at[i].command || !ctx->sets.at[0].command ||
            strcmp(ctx->sets.at[i].command, ctx->sets.at[0].command) != 0)
            return false;
    return true;
}

static enum rp_code answer_merged(struct metrics_ctx *ctx, bool found, struct rp_err *err)
{
    RP_TRY(write_exposition(ctx, "prometheus", RP_METRIC_PROMETHEUS, err));
    RP_TRY(write_exposition(ctx, "openmetrics", RP_METRIC_OPENMETRICS, err));
    if (ctx->sets.n != 1) {
        ctx->root->listed = ctx->root->sources;
        ctx->root->nlisted = ctx->root->nsources;
    }
    if (found && !ctx->sets.n) {
        say(ctx, "no running process of this user counts metrics; those that have ended are read "
                 "by file or folder");
        return RP_OK;
    }
    if (found && !is_one_job(ctx)) {
        say(ctx, "several programs: choose one by its process");
        return RP_OK;
    }
    RP_TRY(merge_sets(ctx, 0, ctx->sets.n, &ctx->all, err));

    const struct rp_metric_set *all = &ctx->all;
    struct metrics_root *root = ctx->root;
    root->metrics = RP_ARENA_NEW(ctx->arena, struct metrics_row, all->metrics.n + 1);
    root->counters = RP_ARENA_NEW(ctx->arena, struct counter_row, all->counters.n + 1);
    for (size_t i = 0; root->metrics && i < all->metrics.n; i++)
        fill_row(ctx, &all->metrics.at[i], &root->metrics[root->nmetrics++]);
    for (size_t i = 0; root->counters && i < all->counters.n; i++)
        root->counters[root->ncounters++] = (struct counter_row){
            rp_arena_text(ctx->arena, all->counters.at[i].name), all->counters.at[i].value};
    if (!strcmp(rp_settings_text(ctx->settings, "form"), "torch_xla")) {
        RP_TRY(fill_lines(ctx, err));
    } else {
        ctx->root->shown = ctx->root->metrics;
        ctx->root->nshown = ctx->root->nmetrics;
        ctx->root->counted = ctx->root->counters;
        ctx->root->ncounted = ctx->root->ncounters;
    }

    rp_metric_remarks remarks = {0};
    enum rp_code code =
        rp_metric_remark(&ctx->all, ctx->sets.at, ctx->sets.n, ctx->arena, &remarks, err);
    ctx->root->remarks = RP_ARENA_NEW(ctx->arena, const char *, remarks.n + 1);
    for (size_t i = 0; ctx->root->remarks && i < remarks.n; i++)
        ctx->root->remarks[ctx->root->nremarks++] = remarks.at[i];
    rp_vec_release(&remarks);
    return code;
}

static enum rp_code answer_metrics(struct metrics_ctx *ctx, struct rp_err *err)
{
    bool clean = rp_settings_flag(ctx->settings, "clean");
    size_t words = 0, first_n = 0;
    const char *word;

    while ((word = rp_settings_nth(ctx->settings, "source", words))) {
        ctx->paths.n = 0;
        RP_TRY(rp_metric_find_sources(word, ctx->arena, &ctx->paths, err));
        RP_TRY(rp_metric_read_all(&ctx->paths, clean ? RP_METRIC_READABLE : RP_METRIC_ALL, NULL,
                                  &ctx->sets, err));
        if (!words++)
            first_n = ctx->sets.n;
    }
    if (!words) {
        RP_TRY(rp_metric_find_sources(NULL, ctx->arena, &ctx->paths, err));
        RP_TRY(rp_metric_read_all(&ctx->paths, clean ? RP_METRIC_READABLE : RP_METRIC_RUNNING, NULL,
                                  &ctx->sets, err));
    }

    /* The files that were read, and their state. */
    struct metrics_root *root = ctx->root;
    root->sources = RP_ARENA_NEW(ctx->arena, struct metrics_source, ctx->sets.n + 1);
    for (size_t i = 0; root->sources && i < ctx->sets.n; i++) {
        const struct rp_metric_set *s = &ctx->sets.at[i];
        root->sources[root->nsources++] =
            (struct metrics_source){.path = rp_arena_text(ctx->arena, s->source),
                                    .host = rp_arena_text(ctx->arena, s->host),
                                    .command = rp_arena_text(ctx->arena, s->command),
                                    .state = !s->is_own   ? "text"
                                             : s->is_live ? "running"
                                                          : "ended",
                                    .pid = s->pid,
                                    .rank = s->rank,
                                    .world_size = s->world_size,
                                    .metrics = (int64_t)(s->metrics.n + s->counters.n),
                                    .lost = (int64_t)s->lost};
    }
    if (clean) {
        for (size_t i = 0; i < ctx->sets.n; i++) {
            bool removed;

            RP_TRY(rp_metric_set_remove(&ctx->sets.at[i], &removed, err));
            if (removed && ctx->root->sources)
                ctx->root->sources[i].state = "removed";
        }
        ctx->root->listed = ctx->root->sources;
        ctx->root->nlisted = ctx->root->nsources;
        return RP_OK;
    }
    if (words == 2 && !rp_settings_flag(ctx->settings, "merge")) {
        RP_SCOPED(rp_metric_set_release) struct rp_metric_set a = {0}, b = {0};
        rp_arena_init(&a.arena);
        rp_arena_init(&b.arena);
        RP_TRY(merge_sets(ctx, 0, first_n, &a, err));
        RP_TRY(merge_sets(ctx, first_n, ctx->sets.n, &b, err));
        compare_sets(ctx, &a, &b);
        return rp_arena_check(ctx->arena, "comparing metrics", err);
    }
    return answer_merged(ctx, !words, err);
}

static enum rp_code metrics_run(struct rp_ctx *rp, const struct rp_dataset *dataset,
                                const struct rp_settings *settings, struct rp_result *result,
                                struct rp_err *err)
{
    struct metrics_ctx ctx = {.arena = &result->arena, .root = result->root, .settings = settings};

    (void)rp;
    (void)dataset;
    for (size_t i = 0; i < 3 && !rp_settings_flag(settings, "watch"); i++)
        if (rp_settings_has(settings, (const char *[]){"alert-over", "on-alert", "until-alert"}[i]))
            return rp_err_set(err, RP_USAGE, "alerts are those of '--watch', which is missing");
    if (rp_settings_flag(settings, "serve"))
        return rp_err_set(err, RP_USAGE,
                          "'serve' is for the command line; a program calls "
                          "rp_metrics_call_serve of <reprise/metrics_calls.h>");
    rp_arena_init(&ctx.all.arena);
    enum rp_code code = answer_metrics(&ctx, err);
    rp_metric_sets_release(&ctx.sets);
    rp_vec_release(&ctx.paths);
    rp_metric_set_release(&ctx.all);
    return code == RP_OK ? rp_arena_check(&result->arena, "reading metrics", err) : code;
}

static const struct rp_option options[] = {
    {"source", 0, RP_OPT_TEXT, "SOURCE", NULL, "process, file or folder",
     RP_OPT_REPEAT | RP_OPT_WORDS},
    {"merge", 0, RP_OPT_FLAG, NULL, NULL, "add up two sources instead of comparing them", 0},
    {"form", 0, RP_OPT_CHOICE, "table|torch_xla", "table",
     "how they are printed: as other answers, or in the form of torch_xla's reports", 0},
    {"watch", 0, RP_OPT_FLAG, NULL, NULL,
     "show a screen of the ranks of a job under 'record --light' until it ends; for others, print "
     "again and again",
     0},
    {"interval", 0, RP_OPT_DURATION, "TIME", "2s", "with --watch: time between two updates", 0},
    {"alert-over", 0, RP_OPT_RATIO, "SHARE", "10%",
     "with --watch: a rank that is late, or steps that are longer, by less than this is not an "
     "alert",
     0},
    {"on-alert", 0, RP_OPT_TEXT, "COMMAND", NULL,
     "with --watch: run it for each new alert, with its text in REPRISE_ALERT", 0},
    {"until-alert", 0, RP_OPT_FLAG, NULL, NULL,
     "with --watch: stop at the first alert, with exit status 1", 0},
    {"clean", 0, RP_OPT_FLAG, NULL, NULL,
     "remove the files of this user's processes that have ended", 0},
    {"serve", 0, RP_OPT_FLAG, NULL, NULL,
     "serve /metrics to Prometheus on this machine, until interrupted", 0},
    {"port", 0, RP_OPT_INT, "0..65535", "9464", "with --serve: port of 127.0.0.1; 0: any", 0},
    {"keep", 0, RP_OPT_DURATION, "TIME", "5m",
     "with --serve: how long the last numbers of an ended process are served; --clean then "
     "removes its file",
     0},
    {"prometheus", 0, RP_OPT_PATH, "FILE", NULL,
     "also write the text that Prometheus reads; '-': only that", 0},
    {"openmetrics", 0, RP_OPT_PATH, "FILE", NULL, "also write OpenMetrics text; '-': only that", 0},
    RP_OPTION_END};

const struct rp_question_row rp_ask_metrics = {
    .question =
        {.name = "metrics",
         .group = "capture",
         .summary = "timings and counters of running and ended programs",
         .details = "Shows what programs with <reprise/metrics.h> count: while they run, without "
                    "stopping them, or after they have ended, however they ended. Without an "
                    "argument, all running programs of this user. A folder is a job: its ranks "
                    "are added up. Two sources are compared. Metric reports of torch_xla, "
                    "torch.lazy and Ratex are read as well; times that those print incorrectly are "
                    "corrected.",
         .examples = "reprise metrics\tall running programs\n"
                     "reprise metrics 4711\tone process\n"
                     "reprise metrics 4711 --watch\tfollow it\n"
                     "reprise metrics run/ --watch --until-alert\ta job, until a rank is "
                     "late\n"
                     "reprise metrics --serve --clean\tlet Prometheus fetch them\n"
                     "reprise metrics job/\tall ranks of a job, added up\n"
                     "reprise metrics before.txt after.txt\twhat changed\n",
         .accepts = RP_ACCEPTS_SOURCES,
         .options = options,
         .type = &root_type},
    .run = metrics_run};
