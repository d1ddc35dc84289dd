/* SPDX-License-Identifier: Apache-2.0 */
#include "query/functions.h"

#include "base/decides.h"
#include "base/order.h"

#if RP_HAVE_SQLITE
#include <math.h>
#include <string.h>

#define MOST_BARS 60
RP_LIMIT(MOST_BARS, "classes of a histogram", "more are refused: a line has no room for them");
#define BARS      10 /* the default */
#define BAR_BYTES 3  /* of "▁" in UTF-8 */

/* The data of sqlite3_aggregate_context: all values, since each function except stddev needs
   them. */
struct values {
    double *at;
    sqlite3_uint64 n, room;
    double argument; /* the second one */
    int reals;       /* one of the values is not an integer */
    int nomem;
};

struct value {
    double x;
};

RP_ORDER(by_value, struct value, RP_UP(x))

static void keep_value(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    struct values *v = sqlite3_aggregate_context(context, sizeof *v);
    int type = sqlite3_value_numeric_type(argv[0]);

    if (!v || v->nomem || (type != SQLITE_INTEGER && type != SQLITE_FLOAT))
        return;
    if (v->n == v->room) {
        double *more = sqlite3_realloc64(v->at, (v->room * 2 + 64) * sizeof *more);

        v->nomem = !more;
        if (!more)
            return;
        v->at = more;
        v->room = v->room * 2 + 64;
    }
    v->at[v->n++] = sqlite3_value_double(argv[0]);
    v->reals |= type == SQLITE_FLOAT;
    if (argc > 1)
        v->argument = sqlite3_value_double(argv[1]);
}

/* Returns the values in order; NULL if there are none, for which the answer is already set. */
static struct values *end_values(sqlite3_context *context)
{
    struct values *v = sqlite3_aggregate_context(context, 0);

    if (v && v->nomem)
        sqlite3_result_error_nomem(context);
    if (!v || v->nomem || !v->n)
        return NULL;
    rp_sort(v->at, v->n, sizeof *v->at, by_value);
    return v;
}

static void release_values(sqlite3_context *context)
{
    struct values *v = sqlite3_aggregate_context(context, 0);

    if (v) {
        sqlite3_free(v->at);
        v->at = NULL;
    }
}

/* Interpolates linearly between two values; for integers it gives the nearest integer. */
static void put_quantile(sqlite3_context *context, const struct values *v, double p)
{
    double at = p * (double)(v->n - 1), below = floor(at);
    size_t i = (size_t)below, next = i + 1 < v->n ? i + 1 : i;
    double value = v->at[i] + (v->at[next] - v->at[i]) * (at - below);

    if (!v->reals && fabs(value) < 0x1p62)
        sqlite3_result_int64(context, llround(value));
    else
        sqlite3_result_double(context, value);
}

static void end_median(sqlite3_context *context)
{
    struct values *v = end_values(context);

    if (v)
        put_quantile(context, v, 0.5);
    release_values(context);
}

static void end_quantile(sqlite3_context *context)
{
    struct values *v = end_values(context);

    if (v && v->argument >= 0 && v->argument <= 1)
        put_quantile(context, v, v->argument);
    else if (v)
        sqlite3_result_error(context, "quantile(x, p): p is from 0 to 1", -1);
    release_values(context);
}

/* The deviation of a sample: divided by n - 1. */
static void end_stddev(sqlite3_context *context)
{
    struct values *v = end_values(context);
    double mean = 0, squares = 0;

    for (sqlite3_uint64 i = 0; v && i < v->n; i++)
        mean += v->at[i] / (double)v->n;
    for (sqlite3_uint64 i = 0; v && i < v->n; i++)
        squares += (v->at[i] - mean) * (v->at[i] - mean);
    if (v && v->n > 1)
        sqlite3_result_double(context, sqrt(squares / (double)(v->n - 1)));
    release_values(context);
}

/* Writes "1200 ▁▂█▃ 98000": the least value, equal classes up to the largest, as high as their
   counts. */
static void put_histogram(sqlite3_context *context, const struct values *v, size_t nbars)
{
    double least = v->at[0], width = (v->at[v->n - 1] - least) / (double)nbars;
    sqlite3_uint64 counts[MOST_BARS] = {0}, most = 1;
    static const char levels[] = "\u2007▁▂▃▄▅▆▇█"; /* 3 bytes each */
    char bars[MOST_BARS * BAR_BYTES];
    char *text;

    for (sqlite3_uint64 i = 0; i < v->n; i++) {
        double at = width > 0 ? (v->at[i] - least) / width : 0;
        /* the last bar has the largest value, and NaN if values are infinite */
        size_t bar = at >= 0 && at < (double)nbars ? (size_t)at : nbars - 1;

        most = ++counts[bar] > most ? counts[bar] : most;
    }
    for (size_t i = 0; i < nbars; i++) {
        size_t height = (size_t)((counts[i] * 8 + most - 1) / most);

        memcpy(bars + i * BAR_BYTES, levels + height * BAR_BYTES, BAR_BYTES);
    }
    text =
        sqlite3_mprintf("%.6g %.*s %.6g", least, (int)(nbars * BAR_BYTES), bars, v->at[v->n - 1]);
    if (text)
        sqlite3_result_text(context, text, -1, sqlite3_free);
    else
        sqlite3_result_error_nomem(context);
}

static void end_histogram(sqlite3_context *context)
{
    struct values *v = end_values(context);
    double bars = v && v->argument != 0 ? v->argument : BARS;

    if (v && bars >= 1 && bars <= MOST_BARS)
        put_histogram(context, v, (size_t)bars);
    else if (v)
        sqlite3_result_error(context, "histogram(x, n): n is from 1 to 60", -1);
    release_values(context);
}

int rp_query_functions(sqlite3 *db)
{
    static const struct {
        const char *name;
        int arguments;
        void (*end)(sqlite3_context *);
    } functions[] = {{"median", 1, end_median},
                     {"quantile", 2, end_quantile},
                     {"stddev", 1, end_stddev},
                     {"histogram", 1, end_histogram},
                     {"histogram", 2, end_histogram}};
    int status = SQLITE_OK;

    for (size_t i = 0; i < sizeof functions / sizeof *functions && status == SQLITE_OK; i++)
        status = sqlite3_create_function_v2(db, functions[i].name, functions[i].arguments,
                                            SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, NULL,
                                            keep_value, functions[i].end, NULL);
    return status;
}
#endif
