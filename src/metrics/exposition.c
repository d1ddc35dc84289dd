/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes metrics for Prometheus in its text format (version 0.0.4) or as OpenMetrics. Each process
 * has series of its own. The bounds of a family's histograms are the same for every process and at
 * every time, as rate(), histogram_quantile() and sums over processes need it.
 *
 * A bucket of a file is counted whole at the first bound that is not below its least value: it is
 * 1/64 of its values wide, so that a sample may count at a bound that is up to 1.6 % below it, and
 * one that is equal to a bound always counts there.
 */
#include "metrics/set.h"

#include "io/escaped.h"
#include "io/output.h"

#include <inttypes.h>
#include <math.h>
#include <reprise/result.h>
#include <stdio.h>
#include <string.h>

struct family {
    const char *name, *unit, *help;
    enum rp_metric_unit of;
    double scale;
    double (*bound)(size_t i); /* in ascending order, before scaling; NAN after the last */
};

/* 1, 2, 5, 10, ... */
static double decimal_step(size_t i)
{
    static const double step[] = {1, 2, 5};

    size_t power = i / 3;

    return step[i % 3] * pow(10, (double)power);
}

static double time_bound(size_t i) /* 100 ns to 1000 s */
{
    return i <= 30 ? 100 * decimal_step(i) : NAN;
}

static double size_bound(size_t i) /* 64 B to 1 TiB */
{
    return i <= 34 ? ldexp(64, (int)i) : NAN;
}

static double value_bound(size_t i) /* 0, then 1 to 1e12 */
{
    return !i ? 0 : i <= 37 ? decimal_step(i - 1) : NAN;
}

static const struct family families[] = {
    {"reprise_time_seconds", "seconds", "Durations that the program measured, by name.",
     RP_METRIC_TIME, 1e-9, time_bound},
    {"reprise_size_bytes", "bytes", "Sizes that the program measured, by name.", RP_METRIC_BYTES, 1,
     size_bound},
    {"reprise_value", NULL, "Values that the program measured, by name.", RP_METRIC_VALUE, 1,
     value_bound}};

static void write_label(const char *key, const char *value, struct rp_out *to)
{
    if (!value)
        return;
    rp_out_printf(to, "%s=\"", key);
    rp_out_escaped(to, RP_IN_METRICS, value);
    rp_out_char(to, '"');
}

/* Writes the text behind the name of a sample, "{name=...,rank=...", without the closing brace. */
static void write_labels(const struct rp_metric_set *set, const char *name, struct rp_out *to)
{
    write_label("{name", name, to);
    if (set->rank != RP_ABSENT_I64)
        rp_out_printf(to, ",rank=\"%" PRId64 "\"", set->rank);
    write_label(",host", set->host, to);
    write_label(",job", set->job, to);
    if (set->pid != RP_ABSENT_I64)
        rp_out_printf(to, ",process=\"%" PRId64 "\"", set->pid);
}

static void write_bucket(const struct family *f, const struct rp_metric_set *set,
                         const struct rp_metric *m, const char *bound, uint64_t count,
                         struct rp_out *to)
{
    rp_out_printf(to, "%s_bucket", f->name);
    write_labels(set, m->name, to);
    rp_out_printf(to, ",le=\"%s\"} %" PRIu64 "\n", bound, count);
}

static void write_head(const char *name, const char *help, const char *type, const char *unit,
                       struct rp_out *to)
{
    rp_out_printf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
    if (unit)
        rp_out_printf(to, "# UNIT %s %s\n", name, unit);
}

static void write_family(const struct family *f, const struct rp_metric_set *sets, size_t n,
                         enum rp_metric_format format, struct rp_out *to)
{
    bool begun = false;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sets[i].metrics.n; k++) {
            if (sets[i].metrics.at[k].unit != f->of)
                continue;
            if (!begun)
                write_head(f->name, f->help, "histogram",
                           format == RP_METRIC_OPENMETRICS ? f->unit : NULL, to);
            begun = true;

            /* The distribution of a report as text is not known: it has only the last bucket. */
            const struct rp_metric_set *set = &sets[i];
            const struct rp_metric *m = &sets[i].metrics.at[k];
            uint64_t sum = 0;
            size_t at = 0;
            double bound;

            for (size_t j = 0; m->buckets.n && !isnan(bound = f->bound(j)); j++) {
                char text[32];

                for (; at < m->buckets.n && m->buckets.at[at].least <= bound; at++)
                    sum += m->buckets.at[at].count;
                snprintf(text, sizeof text, "%.9g", bound * f->scale);
                write_bucket(f, set, m, text, sum, to);
            }
            write_bucket(f, set, m, "+Inf", m->count, to);
            rp_out_printf(to, "%s_count", f->name);
            write_labels(set, m->name, to);
            rp_out_printf(to, "} %" PRIu64 "\n%s_sum", m->count, f->name);
            write_labels(set, m->name, to);
            rp_out_printf(to, "} %.17g\n", m->sum * f->scale);
        }
}

/* A counter of Prometheus never falls, so one that did is a gauge. OpenMetrics names the family
   without the suffix of its samples. */
static void write_counters(const struct rp_metric_set *sets, size_t n, bool negative,
                           enum rp_metric_format format, struct rp_out *to)
{
    const char *sample = negative ? "reprise_balance" : "reprise_count_total";
    const char *help =
        negative ? "Counters that are below zero, by name." : "Counters of the program, by name.";
    bool begun = false;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sets[i].counters.n; k++) {
            const struct rp_metric_counter *c = &sets[i].counters.at[k];

            if ((c->value < 0) != negative)
                continue;
            if (!begun)
                write_head(!negative && format == RP_METRIC_OPENMETRICS ? "reprise_count" : sample,
                           help, negative ? "gauge" : "counter", NULL, to);
            begun = true;
            rp_out_text(to, sample);
            write_labels(&sets[i], c->name, to);
            rp_out_printf(to, "} %" PRId64 "\n", c->value);
        }
}

static bool same_labels(const struct rp_metric_set *a, const struct rp_metric_set *b)
{
    return a->pid == b->pid && a->rank == b->rank &&
           !strcmp(a->host ? a->host : "", b->host ? b->host : "");
}

/* Merges a set with the one that has the same labels: a process may have several files. */
static enum rp_code add_set(rp_metric_sets *to, const struct rp_metric_set *set, struct rp_err *err)
{
    struct rp_metric_set fresh = {
        .pid = set->pid, .rank = set->rank, .host = set->host, .job = set->job};
    size_t i = 0;

    while (i < to->n && !same_labels(&to->at[i], set))
        i++;
    if (i == to->n) {
        rp_arena_init(&fresh.arena);
        RP_TRY(rp_vec_push(to, fresh, err));
    }
    return rp_metric_set_merge(&to->at[i], set, err);
}

enum rp_code rp_metric_expose(const struct rp_metric_set *sets, size_t n,
                              enum rp_metric_format format, struct rp_out *to, struct rp_err *err)
{
    rp_metric_sets merged = {0};
    enum rp_code code = RP_OK;

    for (size_t i = 0; code == RP_OK && i < n; i++)
        code = add_set(&merged, &sets[i], err);
    for (size_t i = 0; i < merged.n; i++)
        rp_metric_set_sort(&merged.at[i]);
    if (code == RP_OK) {
        for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
            write_family(&families[i], merged.at, merged.n, format, to);
        write_counters(merged.at, merged.n, false, format, to);
        write_counters(merged.at, merged.n, true, format, to);
        if (format == RP_METRIC_OPENMETRICS)
            rp_out_text(to, "# EOF\n");
    }
    rp_metric_sets_release(&merged);
    return code;
}
