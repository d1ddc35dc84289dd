/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of metrics: finds metrics by name, merges sets, computes percentiles and rates. */
#include "metrics/set.h"

#include "base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FEW_SAMPLES 6
#define MEAN_CHANGE 0.05 /* a larger difference is a change if only means are known */

const int rp_metric_percent[RP_METRIC_PERCENTILES] = {1, 5, 10, 20, 50, 80, 90, 95, 99};

void rp_metric_set_clear(struct rp_metric_set *set)
{
    for (size_t i = 0; i < set->metrics.n; i++)
        rp_vec_release(&set->metrics.at[i].buckets);
    set->metrics.n = set->counters.n = set->ntimes = set->nmisprints = 0;
    set->torn = 0;
}

void rp_metric_set_release(struct rp_metric_set *set)
{
    rp_metric_set_clear(set);
    rp_vec_release(&set->metrics);
    rp_vec_release(&set->counters);
    rp_arena_release(&set->arena);
}

const struct rp_metric *rp_metric_find(const struct rp_metric_set *set, const char *name)
{
    for (size_t i = 0; i < set->metrics.n; i++)
        if (!strcmp(set->metrics.at[i].name, name))
            return &set->metrics.at[i];
    return NULL;
}

struct rp_metric *rp_metric_set_metric(struct rp_metric_set *set, const char *name,
                                       enum rp_metric_unit unit, struct rp_err *err)
{
    struct rp_metric fresh = {
        .unit = unit, .least = NAN, .most = NAN, .rate = NAN, .sum_rate = NAN};

    for (size_t i = 0; i < set->metrics.n; i++)
        if (set->metrics.at[i].unit == unit && !strcmp(set->metrics.at[i].name, name))
            return &set->metrics.at[i];
    fresh.name = rp_arena_text(&set->arena, name);
    if (rp_arena_check(&set->arena, "reading metrics", err) != RP_OK ||
        rp_vec_push(&set->metrics, fresh, err) != RP_OK)
        return NULL;
    return &set->metrics.at[set->metrics.n - 1];
}

enum rp_code rp_metric_set_count(struct rp_metric_set *set, const char *name, int64_t value,
                                 struct rp_err *err)
{
    struct rp_metric_counter fresh = {.value = value};

    for (size_t i = 0; i < set->counters.n; i++)
        if (!strcmp(set->counters.at[i].name, name)) {
            set->counters.at[i].value =
                (int64_t)((uint64_t)(set->counters.at[i].value) + (uint64_t)value);
            return RP_OK;
        }
    fresh.name = rp_arena_text(&set->arena, name);
    RP_TRY(rp_arena_check(&set->arena, "reading metrics", err));
    return rp_vec_push(&set->counters, fresh, err);
}

int64_t rp_metric_counter_value(const struct rp_metric_set *set, const char *name)
{
    for (size_t i = 0; i < set->counters.n; i++)
        if (!strcmp(set->counters.at[i].name, name))
            return set->counters.at[i].value;
    return 0;
}

enum rp_code rp_metric_add(struct rp_metric *m, double least, double most, uint64_t count,
                           struct rp_err *err)
{
    struct rp_metric_bucket bucket = {least, most, count};

    return rp_vec_push(&m->buckets, bucket, err);
}

RP_ORDER(by_name, struct rp_metric, strcmp(a->name, b->name), RP_UP(unit))
RP_ORDER(by_counter_name, struct rp_metric_counter, strcmp(a->name, b->name))
RP_ORDER(by_value, struct rp_metric_bucket, RP_UP(least), RP_UP(most))

/* Sorts buckets and merges equal ones. */
static void sort_buckets(struct rp_metric *m)
{
    struct rp_metric_bucket *b = m->buckets.at;
    size_t i, kept = 0;

    if (!m->buckets.n)
        return;
    qsort(b, m->buckets.n, sizeof *b, by_value);
    for (i = 1; i < m->buckets.n; i++)
        if (b[i].least == b[kept].least && b[i].most == b[kept].most)
            b[kept].count += b[i].count;
        else
            b[++kept] = b[i];
    m->buckets.n = kept + 1;
}

void rp_metric_set_sort(struct rp_metric_set *set)
{
    for (size_t i = 0; i < set->metrics.n; i++)
        sort_buckets(&set->metrics.at[i]);
    rp_sort(set->metrics.at, set->metrics.n, sizeof *set->metrics.at, by_name);
    rp_sort(set->counters.at, set->counters.n, sizeof *set->counters.at, by_counter_name);
}

static enum rp_code merge_metric(struct rp_metric_set *to, const struct rp_metric *from,
                                 struct rp_err *err)
{
    struct rp_metric *m = rp_metric_set_metric(to, from->name, from->unit, err);

    if (!m)
        return RP_NOMEM;
    bool first = !m->count && !m->has_points;
    m->least = fmin(m->least, from->least); /* the other one, if one is NAN */
    m->most = fmax(m->most, from->most);
    if (from->last_ns && (!m->last_ns || from->first_ns < m->first_ns))
        m->first_ns = from->first_ns;
    if (from->last_ns > m->last_ns)
        m->last_ns = from->last_ns;
    m->rate = first ? from->rate : m->rate + from->rate;
    m->sum_rate = first ? from->sum_rate : m->sum_rate + from->sum_rate;
    m->has_points = first && from->has_points;
    memcpy(m->point, from->point, sizeof m->point);
    m->count += from->count;
    m->sum += from->sum;
    for (size_t i = 0; i < from->buckets.n; i++)
        RP_TRY(rp_vec_push(&m->buckets, from->buckets.at[i], err));
    sort_buckets(m);
    return RP_OK;
}

enum rp_code rp_metric_set_merge(struct rp_metric_set *to, const struct rp_metric_set *from,
                                 struct rp_err *err)
{
    for (size_t i = 0; i < from->metrics.n; i++)
        RP_TRY(merge_metric(to, &from->metrics.at[i], err));
    for (size_t i = 0; i < from->counters.n; i++)
        RP_TRY(rp_metric_set_count(to, from->counters.at[i].name, from->counters.at[i].value, err));
    to->lost += from->lost;
    to->torn += from->torn;
    to->ntimes += from->ntimes;
    if (!to->nmisprints)
        to->misprint = from->misprint;
    to->nmisprints += from->nmisprints;
    return RP_OK;
}

double rp_metric_percentile(const struct rp_metric *m, double percent)
{
    uint64_t total = 0, at, seen = 0;
    size_t i;

    for (i = 0; i < m->buckets.n; i++)
        total += m->buckets.at[i].count;
    if (!total) {
        for (size_t k = 0; m->has_points && k < RP_METRIC_PERCENTILES; k++)
            if (rp_metric_percent[k] == (int)percent)
                return m->point[k];
        return NAN;
    }
    at = (uint64_t)(percent / 100 * (double)total);
    at = at < total ? at : total - 1;
    for (i = 0; i + 1 < m->buckets.n && seen + m->buckets.at[i].count <= at; i++)
        seen += m->buckets.at[i].count;
    double value = (m->buckets.at[i].least + m->buckets.at[i].most) / 2;
    return fmax(m->least, fmin(m->most, value));
}

static double seconds_of(const struct rp_metric *m)
{
    return m->last_ns > m->first_ns ? ((double)m->last_ns - (double)m->first_ns) / 1e9 : NAN;
}

double rp_metric_rate(const struct rp_metric *m)
{
    return isnan(m->rate) ? (double)m->count / seconds_of(m) : m->rate;
}

double rp_metric_sum_rate(const struct rp_metric *m)
{
    return isnan(m->sum_rate) ? m->sum / seconds_of(m) : m->sum_rate;
}

/* Returns the bounds of the median of the distribution, with 95 % confidence. */
static void median_bounds(const struct rp_metric *m, double *low, double *high)
{
    double n = (double)m->count, reach = 98 / sqrt(n); /* 1.96 / 2, in percent */

    *low = rp_metric_percentile(m, fmax(0, 50 - reach)) * 0.992;
    *high = rp_metric_percentile(m, fmin(100, 50 + reach)) * 1.008;
}

const char *rp_metric_verdict(const struct rp_metric *a, const struct rp_metric *b, double change)
{
    const char *more = a->unit == RP_METRIC_TIME ? "slower" : "higher";
    const char *less = a->unit == RP_METRIC_TIME ? "faster" : "lower";
    double low_a, high_a, low_b, high_b;

    if (!a->buckets.n || !b->buckets.n)
        return fabs(change) < MEAN_CHANGE ? "same" : change > 0 ? more : less;
    if (a->count < FEW_SAMPLES || b->count < FEW_SAMPLES)
        return "too few samples";
    median_bounds(a, &low_a, &high_a);
    median_bounds(b, &low_b, &high_b);
    return low_b > high_a ? more : high_b < low_a ? less : "same";
}

enum rp_code rp_metric_minus(struct rp_metric *m, const struct rp_metric *before,
                             struct rp_err *err)
{
    for (size_t i = 0; i < before->buckets.n; i++) {
        struct rp_metric_bucket less = before->buckets.at[i];

        less.count = 0 - less.count; /* sort_buckets adds modulo 2^64 */
        RP_TRY(rp_vec_push(&m->buckets, less, err));
    }
    sort_buckets(m);
    m->count -= before->count;
    m->sum -= before->sum;
    return RP_OK;
}
