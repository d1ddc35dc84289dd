/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the report as text, in the format of torch_xla, with correct times. */
#include "io/escaped.h"
#include "metrics/set.h"

#include "io/output.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const char *time_text(struct rp_arena *arena, double ns)
{
    static const struct {
        const char *unit;
        int64_t ns;
        int width;
    } parts[] = {{"d", 86400000000000, 2},
                 {"h", 3600000000000, 2},
                 {"m", 60000000000, 2},
                 {"s", 1000000000, 2},
                 {"ms", 1000000, 3}};
    int64_t left = ns > 0 && ns < 9e18 ? (int64_t)(ns + 0.5) : 0;
    char text[96];
    size_t i, at = 0;

    for (i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (at || left >= parts[i].ns)
            at += (size_t)snprintf(text + at, sizeof text - at, "%0*" PRId64 "%s", parts[i].width,
                                   left / parts[i].ns, parts[i].unit);
        left %= parts[i].ns;
    }
    snprintf(text + at, sizeof text - at, "%03" PRId64 ".%03" PRId64 "us", left / 1000,
             left % 1000);
    return rp_arena_text(arena, text);
}

const char *rp_metric_value_text(struct rp_arena *arena, double value, enum rp_metric_unit unit)
{
    static const char *const sizes[] = {"B", "KB", "MB", "GB", "TB", "PB"};
    size_t i = 0;

    if (unit == RP_METRIC_TIME)
        return time_text(arena, value);
    if (unit == RP_METRIC_VALUE)
        return rp_arena_textf(arena, "%.2f", value);
    for (; value >= 1024 && i + 1 < sizeof sizes / sizeof sizes[0]; i++)
        value /= 1024;
    return rp_arena_textf(arena, "%.2f%s", value, sizes[i]);
}

static void write_metric(const struct rp_metric *m, struct rp_arena *scratch, struct rp_out *to)
{
    double sum_rate = rp_metric_sum_rate(m), rate = rp_metric_rate(m), value;
    bool some = false;

    rp_out_text(to, "Metric: ");
    rp_out_escaped(to, RP_IN_LINE, m->name);
    rp_out_printf(to, "\n  TotalSamples: %" PRIu64 "\n  Accumulator: %s\n", m->count,
                  rp_metric_value_text(scratch, m->sum, m->unit));
    if (isfinite(sum_rate))
        rp_out_printf(to, "  ValueRate: %s / second\n",
                      rp_metric_value_text(scratch, sum_rate, m->unit));
    if (isfinite(rate))
        rp_out_printf(to, "  Rate: %g / second\n", rate);
    for (size_t i = 0; i < RP_METRIC_PERCENTILES; i++) {
        value = rp_metric_percentile(m, rp_metric_percent[i]);
        if (isnan(value))
            continue;
        rp_out_printf(to, "%s%d%%=%s", some ? "; " : "  Percentiles: ", rp_metric_percent[i],
                      rp_metric_value_text(scratch, value, m->unit));
        some = true;
    }
    if (some)
        rp_out_char(to, '\n');
}

void rp_metric_write_report(const struct rp_metric_set *set, struct rp_out *to)
{
    struct rp_arena scratch = RP_ARENA_INIT;

    rp_out_text(to, "# reprise metrics\n");
    for (size_t i = 0; i < set->metrics.n; i++) {
        write_metric(&set->metrics.at[i], &scratch, to);
        rp_arena_release(&scratch);
    }
    for (size_t i = 0; i < set->counters.n; i++) {
        rp_out_text(to, "Counter: ");
        rp_out_escaped(to, RP_IN_LINE, set->counters.at[i].name);
        rp_out_printf(to, "\n  Value: %" PRId64 "\n", set->counters.at[i].value);
    }
}
