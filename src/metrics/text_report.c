/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads metric reports of torch_xla, torch.lazy and Ratex, and our own in the same format:
 *
 *     Metric: RAFCompile
 *       TotalSamples: 2
 *       Accumulator: 806ms578.778us
 *       ValueRate: 307ms863.165us / second
 *       Rate: 0.761845 / second
 *       Percentiles: 1%=389ms559.598us; ...; 99%=417ms019.180us
 *     Counter: MarkStep
 *       Value: 3
 *
 * Their programs print many times incorrectly: each part of a time is rounded, but the next part is
 * the remainder after rounding down, so that a part is one too large if that remainder is at least
 * half a unit. 805.578778 ms become 806ms578.778us. That is undone here, from the smallest part
 * upwards, unless the report says in its first line that it is ours.
 */
#include "base/text.h"
#include "metrics/set.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUR_MARK "# reprise metrics"
#define MAX_NAME 4096

struct text_report {
    const char *path;
    struct rp_metric_set *out;
    size_t metric; /* index of the metric that is being read, or SIZE_MAX */
    char counter[MAX_NAME];
    bool is_ours;
    size_t line;
};

static const struct {
    const char *unit;
    double ns;
} time_parts[] = {{"d", 864e11}, {"h", 36e11}, {"m", 6e10}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}};
#define PARTS (sizeof time_parts / sizeof time_parts[0])

/* Reads "06m09s401ms746.001us": the parts that are present, in order. */
static bool read_parts(const char *text, double value[PARTS], bool given[PARTS])
{
    size_t part = 0, n = 0;

    memset(given, 0, PARTS * sizeof *given);
    while (*text) {
        char *end;
        double v = strtod(text, &end);
        size_t len = 0;

        if (end == text || v < 0 || !isfinite(v))
            return false;
        while (isalpha((unsigned char)end[len]))
            len++;
        while (part < PARTS && (strlen(time_parts[part].unit) != len ||
                                memcmp(time_parts[part].unit, end, len) != 0))
            part++;
        if (part == PARTS)
            return false;
        value[part] = v;
        given[part++] = true;
        text = end + len;
        n++;
    }
    return n > 0;
}

/* Returns the time that was meant, in ns, and whether the text is incorrect. */
static bool read_time(const struct text_report *r, const char *text, double *ns, bool *wrong)
{
    double value[PARTS];
    bool given[PARTS];

    *wrong = false;
    *ns = 0;
    if (!read_parts(text, value, given))
        return false;
    for (size_t i = PARTS; i-- > 0;) {
        if (!given[i])
            continue;
        if (!r->is_ours && i + 1 < PARTS && *ns >= time_parts[i].ns / 2 && value[i] >= 1) {
            value[i]--;
            *wrong = true;
        }
        *ns += value[i] * time_parts[i].ns;
    }
    return true;
}

/* Reads a value with its unit: a time, "62.40MB", or a plain number. */
static bool read_value(struct text_report *r, const char *field, const char *text, double *value,
                       enum rp_metric_unit *unit)
{
    static const char *const sizes[] = {"B", "KB", "MB", "GB", "TB", "PB"};
    struct rp_metric_set *out = r->out;
    char *end;
    bool wrong;

    *value = strtod(text, &end);
    if (end == text)
        return false;
    if (!*end) {
        *unit = RP_METRIC_VALUE;
        return true;
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (!strcmp(end, sizes[i])) {
            *value = ldexp(*value, (int)i * 10);
            *unit = RP_METRIC_BYTES;
            return true;
        }
    if (!read_time(r, text, value, &wrong))
        return false;
    *unit = RP_METRIC_TIME;
    out->ntimes++;
    if (wrong && !out->nmisprints++)
        out->misprint = (struct rp_metric_misprint){
            .metric = rp_arena_text(&out->arena, out->metrics.at[r->metric].name),
            .field = field,
            .printed = rp_arena_text(&out->arena, text),
            .ns = *value};
    return true;
}

static enum rp_code bad_line(const struct text_report *r, const char *what, struct rp_err *err)
{
    return rp_err_set(err, RP_FORMAT, "'%s': line %zu: %s", r->path, r->line, what);
}

/* Reads "1%=001.712us; 5%=..." */
static enum rp_code read_percentiles(struct text_report *r, char *text, struct rp_err *err)
{
    struct rp_metric *m = &r->out->metrics.at[r->metric];
    char *save = NULL, *item;

    for (size_t i = 0; i < RP_METRIC_PERCENTILES; i++)
        m->point[i] = NAN;
    for (item = strtok_r(text, ";", &save); item; item = strtok_r(NULL, ";", &save)) {
        char *end;
        double percent = strtod(item, &end), value;
        enum rp_metric_unit unit;

        if (end[0] != '%' || end[1] != '=' || !read_value(r, "Percentiles", end + 2, &value, &unit))
            return bad_line(r, "invalid percentile", err);
        for (size_t i = 0; i < RP_METRIC_PERCENTILES; i++)
            if (fabs(percent - rp_metric_percent[i]) < 0.01)
                m->point[i] = value;
    }
    m->has_points = true;
    return RP_OK;
}

static enum rp_code read_field(struct text_report *r, const char *key, char *value,
                               struct rp_err *err)
{
    struct rp_metric *m = r->metric == SIZE_MAX ? NULL : &r->out->metrics.at[r->metric];
    enum rp_metric_unit unit;
    char *end;
    double v;

    if (!strcmp(key, "Value") && r->counter[0]) {
        int64_t n = strtoll(value, &end, 10);

        if (end == value || *end)
            return bad_line(r, "invalid value of a counter", err);
        return rp_metric_set_count(r->out, r->counter, n, err);
    }
    if (!m)
        return RP_OK; /* of something else */
    if (!strcmp(key, "TotalSamples")) {
        m->count = strtoull(value, &end, 10);
        return end == value || *end ? bad_line(r, "invalid number of samples", err) : RP_OK;
    }
    if (!strcmp(key, "Percentiles"))
        return read_percentiles(r, value, err);
    if (rp_text_ends(value, " / second"))
        value[strlen(value) - strlen(" / second")] = '\0';
    /* torch_xla's manual prints "Counter:" for the accumulator */
    if (!strcmp(key, "Accumulator") || !strcmp(key, "Counter")) {
        if (!read_value(r, "Accumulator", value, &v, &unit))
            return bad_line(r, "invalid accumulator", err);
        m->sum = v;
        m->unit = unit;
    } else if (!strcmp(key, "ValueRate")) {
        if (read_value(r, "ValueRate", value, &v, &unit))
            m->sum_rate = v;
    } else if (!strcmp(key, "Rate")) {
        m->rate = strtod(value, NULL);
    }
    return RP_OK;
}

static enum rp_code read_line(struct text_report *r, char *line, struct rp_err *err)
{
    line[strcspn(line, "\r")] = '\0';
    /* a file of one report per step, "[MetricsData; step=7]": each includes those before it */
    if (!strncmp(line, "[MetricsData;", 13))
        rp_metric_set_clear(r->out);
    if (!strncmp(line, "Metric: ", 8)) {
        /* the unit is known only with the accumulator, but names are unique in a report */
        struct rp_metric *m = rp_metric_set_metric(r->out, line + 8, RP_METRIC_VALUE, err);
        if (!m)
            return RP_NOMEM;
        r->metric = (size_t)(m - r->out->metrics.at);
        r->counter[0] = '\0';
        return RP_OK;
    }
    if (!strncmp(line, "Counter: ", 9)) {
        r->metric = SIZE_MAX;
        snprintf(r->counter, sizeof r->counter, "%s", line + 9);
        return RP_OK;
    }
    if (line[0] != ' ') {
        r->metric = SIZE_MAX; /* a line that is not part of a report */
        r->counter[0] = '\0';
        return RP_OK;
    }
    line += strspn(line, " ");
    char *colon = strstr(line, ": ");
    if (!colon)
        return RP_OK;
    *colon = '\0';
    return read_field(r, line, colon + 2, err);
}

enum rp_code rp_metric_set_read_text(const char *path, const char *text, size_t n,
                                     struct rp_metric_set *out, struct rp_err *err)
{
    struct text_report *r = calloc(1, sizeof *r);
    const char *at = text, *end = text + n;
    enum rp_code code = rp_err_need(r, err, "reading metrics");

    if (r)
        *r = (struct text_report){.path = path,
                                  .out = out,
                                  .metric = SIZE_MAX,
                                  .is_ours = n >= strlen(OUR_MARK) &&
                                             !memcmp(text, OUR_MARK, strlen(OUR_MARK))};
    while (code == RP_OK && at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((stop ? stop : end) - at);
        char *line = malloc(length + 1);

        r->line++;
        if (!line) {
            code = rp_err_nomem(err, "reading metrics");
            break;
        }
        memcpy(line, at, length);
        line[length] = '\0';
        code = read_line(r, line, err);
        free(line);
        at += length + 1;
    }
    free(r);
    if (code == RP_OK && !out->metrics.n && !out->counters.n)
        code = rp_err_set(err, RP_FORMAT, "'%s': no metrics in it", path);
    if (code == RP_OK)
        code = rp_arena_check(&out->arena, "reading metrics", err);
    rp_metric_set_sort(out);
    return code;
}
