/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats numbers with units. A scaled number has two decimals below ten and one above, so that it
 * has at least three digits; an integer in its base unit has none. The next unit is used as soon as
 * rounding would reach it: never "1000.0 µs".
 */
#include "result/print_units.h"

#include "result/walk.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct scale {
    const char *const *names; /* each unit is 1,000 times the previous one */
    size_t n;
};

static const char *const ns_names[] = {"ns", "µs", "ms", "s"};
static const char *const byte_names[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
static const char *const bps_names[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"};
static const char *const flops_names[] = {"FLOP/s",  "kFLOP/s", "MFLOP/s", "GFLOP/s",
                                          "TFLOP/s", "PFLOP/s", "EFLOP/s"};
static const char *const flop_names[] = {"FLOP",  "kFLOP", "MFLOP", "GFLOP",
                                         "TFLOP", "PFLOP", "EFLOP"};
static const char *const hz_names[] = {"Hz", "kHz", "MHz", "GHz"};

#define SCALE(names_)                             \
    {                                             \
        names_, sizeof(names_) / sizeof *(names_) \
    }

static const struct scale scales[] = {
    [RP_UNIT_NS] = SCALE(ns_names),   [RP_UNIT_BYTES] = SCALE(byte_names),
    [RP_UNIT_BPS] = SCALE(bps_names), [RP_UNIT_FLOPS] = SCALE(flops_names),
    [RP_UNIT_HZ] = SCALE(hz_names),   [RP_UNIT_FLOP] = SCALE(flop_names),
};

/* Replaces the decimal mark of the locale by '.'. */
static size_t plain_decimal(char *text)
{
    char *to = text;

    for (const char *from = text; *from; from++) {
        bool known = strchr("0123456789+-einfa", *from) != NULL;

        if (known)
            *to++ = *from;
        else if (to == text || to[-1] != '.')
            *to++ = '.';
    }
    *to = '\0';
    return (size_t)(to - text);
}

size_t rp_units_double(double value, char out[32])
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, 32, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            break;
    }
    return plain_decimal(out);
}

/* Puts a comma between groups of three digits before the '.' (or the end). */
static void group_thousands(const char *digits, char *out, size_t cap)
{
    size_t at = 0, whole = strcspn(digits, ".");

    for (size_t i = 0; digits[i] && at + 2 < cap; i++) {
        if (i && i < whole && (whole - i) % 3 == 0 && digits[i - 1] != '-')
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
}

void rp_units_thousands(int64_t value, char *out, size_t cap)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%" PRId64, value);
    group_thousands(digits, out, cap);
}

static void format_decimals(double value, int n, char *out, size_t cap)
{
    char digits[400]; /* a double has up to 309 digits */

    snprintf(digits, sizeof digits, "%.*f", n, value + 0.0); /* never "-0" */
    plain_decimal(digits);
    group_thousands(digits, out, cap);
}

static void format_ratio(double value, char *out, size_t cap)
{
    double percent = value * 100;
    char number[64];

    if (percent != 0 && fabs(percent) < 0.05) {
        snprintf(out, cap,
                 "< 0.1 %%"); /* only its size: the sign of such a small share means nothing */
        return;
    }
    format_decimals(percent, 1, number, sizeof number);
    snprintf(out, cap, "%s %%", number);
}

void rp_units_format(double value, enum rp_unit unit, char *out, size_t cap)
{
    if (unit == RP_UNIT_RATIO) {
        format_ratio(value, out, cap);
    } else if (unit == RP_UNIT_COUNT) {
        format_decimals(value, value == floor(value) ? 0 : 1, out, cap);
    } else if (unit == RP_UNIT_NONE) {
        snprintf(out, cap, "%.6g", value);
        plain_decimal(out);
    } else {
        /* The smallest unit in which the value is below a thousand. */
        double size = fabs(value);
        size_t i = 0;
        char number[64];
        while (i + 1 < scales[unit].n &&
               size >= (i == 0 && size == floor(size) ? 1000.0 : 999.95)) {
            size /= 1000;
            i++;
        }
        format_decimals(value < 0 ? -size : size,
                        i == 0 && size == floor(size) ? 0
                        : size < 9.995                ? 2
                                                      : 1,
                        number, sizeof number);
        snprintf(out, cap, "%s %s", number, scales[unit].names[i]);
    }
}

static const char *scalar_cell(const struct rp_field *field, const void *record, char *buf)
{
    bool exact = field->unit == RP_UNIT_NONE || field->unit == RP_UNIT_COUNT;
    bool grouped = field->unit == RP_UNIT_COUNT;

    if (rp_field_null(field, record))
        return NULL;
    switch (field->type) {
    case RP_T_BOOL:
        return rp_field_bool(field, record) ? "yes" : "no";
    case RP_T_STR:
        return rp_field_str(field, record);
    case RP_T_F64:
        rp_units_format(rp_field_f64(field, record), field->unit, buf, RP_CELL_BYTES);
        return buf;
    case RP_T_U64:
        if (grouped) {
            char digits[24];
            snprintf(digits, sizeof digits, "%" PRIu64, rp_field_u64(field, record));
            group_thousands(digits, buf, RP_CELL_BYTES);
        } else if (exact)
            snprintf(buf, RP_CELL_BYTES, "%" PRIu64, rp_field_u64(field, record));
        else
            rp_units_format((double)rp_field_u64(field, record), field->unit, buf, RP_CELL_BYTES);
        return buf;
    default:
        if (grouped)
            rp_units_thousands(rp_field_i64(field, record), buf, RP_CELL_BYTES);
        else if (exact)
            snprintf(buf, RP_CELL_BYTES, "%" PRId64, rp_field_i64(field, record));
        else
            rp_units_format((double)rp_field_i64(field, record), field->unit, buf, RP_CELL_BYTES);
        return buf;
    }
}

/* Writes "a, b, c"; items that do not fit are left out, which is marked. */
static const char *list_cell(const struct rp_field *field, const void *record, char *buf)
{
    const struct rp_field *plain = rp_type_plain(field->item);
    size_t n = rp_field_count(field, record), used = 0;
    char one[RP_CELL_BYTES];

    for (size_t i = 0; i < n; i++) {
        const char *text = scalar_cell(plain, rp_field_item(field, record, i), one);
        size_t len = strlen(text ? text : "-");

        if (used + len + 8 > RP_CELL_BYTES) {
            memcpy(buf + used, "…", sizeof "…");
            return buf;
        }
        used += (size_t)snprintf(buf + used, RP_CELL_BYTES - used, "%s%s", text ? text : "-",
                                 i + 1 < n ? ", " : "");
    }
    return n ? buf : NULL;
}

const char *rp_units_cell(const struct rp_field *field, const void *record, char buf[RP_CELL_BYTES])
{
    return rp_field_scalar(field) ? scalar_cell(field, record, buf) : list_cell(field, record, buf);
}

/* Forms English plurals of the things that results count. */
static const char *plural_end(const char *one, size_t *keep)
{
    size_t n = strlen(one);
    char last = n ? one[n - 1] : '\0', before = n > 1 ? one[n - 2] : '\0';

    *keep = n;
    if (last == 'y' && !strchr("aeiou", before)) {
        *keep = n - 1;
        return "ies";
    }
    if (last == 's' || last == 'x' || (last == 'h' && (before == 'c' || before == 's')))
        return "es";
    return "s";
}

const char *rp_units_count(struct rp_arena *arena, int64_t n, const char *one)
{
    size_t keep;
    const char *end = plural_end(one, &keep);
    char number[RP_CELL_BYTES];

    rp_units_thousands(n, number, sizeof number);
    if (n == 1)
        return rp_arena_textf(arena, "1 %s", one);
    return rp_arena_textf(arena, "%s %.*s%s", number, (int)keep, one, end);
}

const char *rp_units_number(struct rp_arena *arena, int64_t n)
{
    char number[RP_CELL_BYTES];

    rp_units_thousands(n, number, sizeof number);
    return rp_arena_text(arena, number);
}

const char *rp_units_text(struct rp_arena *arena, double value, enum rp_unit unit)
{
    char text[RP_CELL_BYTES];

    rp_units_format(value, unit, text, sizeof text);
    return rp_arena_text(arena, text);
}
