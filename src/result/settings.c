/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values are text until they are read: a call has only a few settings, so parsing twice (to check,
 * then to read) costs nothing and needs no store.
 */
#include "result/settings.h"

#include "base/decimal.h"
#include "base/text.h"
#include "result/part.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct suffix {
    const char *text;
    int64_t factor;
};

static const struct suffix no_suffixes[] = {{"", 1}, {NULL, 0}};
static const struct suffix counts[] = {
    {"", 1}, {"k", 1000}, {"M", 1000000}, {"G", 1000000000}, {NULL, 0}};
static const struct suffix byte_units[] = {
    {"", 1},          {"B", 1},           {"kB", 1000},          {"KB", 1000},
    {"MB", 1000000},  {"GB", 1000000000}, {"TB", 1000000000000}, {"KiB", 1024},
    {"MiB", 1 << 20}, {"GiB", 1 << 30},   {"k", 1024},           {"M", 1 << 20},
    {"G", 1 << 30},   {NULL, 0}};
static const struct suffix durations[] = {
    {"", 1},           {"ns", 1},          {"us", 1000},         {"µs", 1000}, {"ms", 1000000},
    {"s", 1000000000}, {"m", 60000000000}, {"min", 60000000000}, {NULL, 0}};

static const struct suffix durations_in_seconds[] = {
    {"", 1000000000},  {"ns", 1},          {"us", 1000},         {"µs", 1000}, {"ms", 1000000},
    {"s", 1000000000}, {"m", 60000000000}, {"min", 60000000000}, {NULL, 0}};

static const struct suffix *option_suffixes(const struct rp_option *option)
{
    switch (option->type) {
    case RP_OPT_COUNT:
        return counts;
    case RP_OPT_BYTES:
        return byte_units;
    case RP_OPT_DURATION:
        return option->value && !strcmp(option->value, "SECONDS") ? durations_in_seconds
                                                                  : durations;
    default:
        return no_suffixes;
    }
}

/* Parses a decimal and a suffix: the value must be an integer in the base unit. */
static bool parse_scaled(const char *text, const struct suffix *suffix, int64_t *value)
{
    size_t digits = strspn(text, "+-0123456789.");
    __extension__ typedef __int128 wide;
    int64_t billionths;

    while (suffix->text && strcmp(text + digits, suffix->text) != 0)
        suffix++;
    if (!suffix->text)
        return false;
    unsigned flags = rp_decimal_parse(text, digits, 0, value);
    if (!(flags & (RP_DECIMAL_INVALID | RP_DECIMAL_RANGE | RP_DECIMAL_FRACTION)))
        return !__builtin_mul_overflow(*value, suffix->factor, value);
    flags = rp_decimal_parse(text, digits, 9, &billionths);
    if (flags & (RP_DECIMAL_INVALID | RP_DECIMAL_RANGE) || suffix->factor == 1)
        return false;
    wide scaled = (wide)billionths * suffix->factor / 1000000000;
    *value = (int64_t)scaled;
    return *value == scaled;
}

/* Finds the bounds of an integer option: those in its placeholder ("0..1024"), or 0 and no
   maximum. */
static bool has_range(const struct rp_option *option, int64_t *min, int64_t *max)
{
    const char *dots = option->value ? strstr(option->value, "..") : NULL;

    *min = 0;
    *max = INT64_MAX;
    if (option->type != RP_OPT_INT || !dots)
        return false;
    *min = strtoll(option->value, NULL, 10);
    *max = strtoll(dots + 2, NULL, 10);
    return true;
}

static bool parse_number(const struct rp_option *option, const char *text, int64_t *value)
{
    int64_t min, max;

    has_range(option, &min, &max);
    return parse_scaled(text, option_suffixes(option), value) && *value >= min && *value <= max;
}

static bool parse_ratio(const char *text, double *value)
{
    char *end;

    *value = strtod(text, &end);
    if (end == text)
        return false;
    if (*end == '%') {
        *value /= 100;
        end++;
    }
    return *end == '\0' && isfinite(*value);
}

static bool parse_flag(const char *text, bool *value)
{
    *value = !text || !strcmp(text, "yes");
    return *value || !strcmp(text, "no");
}

static bool is_choice(const char *choices, const char *text)
{
    size_t len = strlen(text);

    while (*choices) {
        size_t n = strcspn(choices, "|");

        if (n == len && !memcmp(choices, text, n))
            return true;
        choices += n + (choices[n] == '|');
    }
    return false;
}

static const char *expectation(const struct rp_option *option)
{
    switch (option->type) {
    case RP_OPT_FLAG:
        return "yes or no";
    case RP_OPT_INT:
        return "a whole number, such as 4";
    case RP_OPT_COUNT:
        return "a whole number, such as 20 or 10k";
    case RP_OPT_BYTES:
        return "a size, such as 25MB or 64MiB";
    case RP_OPT_DURATION:
        return "a time, such as 10us, 1.5ms or 2s";
    case RP_OPT_RATIO:
        return "a share, such as 2% or 0.02";
    case RP_OPT_CHOICE:
        return option->value;
    case RP_OPT_PATH:
        return "the name of a file";
    default:
        return "a text";
    }
}

static enum rp_code wrong_value(const struct rp_option *option, const char *text,
                                struct rp_err *err)
{
    int64_t min, max;

    if (option->type == RP_OPT_CHOICE)
        return rp_err_set(err, RP_USAGE, "option '--%s' is one of %s, not '%s'", option->name,
                          option->value, text);
    if (has_range(option, &min, &max))
        return rp_err_set(err, RP_USAGE,
                          "option '--%s' takes a whole number from %" PRId64 " to %" PRId64
                          ", not '%s'",
                          option->name, min, max, text);
    return rp_err_set(err, RP_USAGE, "option '--%s' takes %s, not '%s'", option->name,
                      expectation(option), text);
}

enum rp_code rp_option_check(const struct rp_option *option, const char *text, struct rp_err *err)
{
    int64_t number;
    double ratio;
    bool flag, valid = true;

    if (!text && option->type != RP_OPT_FLAG)
        return rp_err_set(err, RP_USAGE, "option '--%s' needs a value: %s", option->name,
                          expectation(option));
    switch (option->type) {
    case RP_OPT_FLAG:
        valid = parse_flag(text, &flag);
        break;
    case RP_OPT_INT:
    case RP_OPT_COUNT:
    case RP_OPT_BYTES:
    case RP_OPT_DURATION:
        valid = parse_number(option, text, &number);
        break;
    case RP_OPT_RATIO:
        valid = parse_ratio(text, &ratio);
        break;
    case RP_OPT_CHOICE:
        valid = is_choice(option->value, text);
        break;
    case RP_OPT_PATH:
        valid = *text != '\0';
        break;
    case RP_OPT_TEXT:
        break;
    }
    return valid ? RP_OK : wrong_value(option, text, err);
}

int64_t rp_option_number(const struct rp_option *option, const char *text)
{
    int64_t value = 0;

    return text && parse_number(option, text, &value) ? value : 0;
}

double rp_option_ratio(const char *text)
{
    double value = 0;

    return text && parse_ratio(text, &value) ? value : 0;
}

static const struct rp_option *find_option(const struct rp_option *options, const char *name)
{
    for (; options && options->name; options++) {
        if (!strcmp(options->name, name))
            return options;
    }
    return NULL;
}

enum rp_code rp_settings_init(struct rp_settings *out, const struct rp_option *options,
                              const struct rp_setting *given, size_t ngiven, struct rp_err *err)
{
    *out = (struct rp_settings){options, given, ngiven, NULL};
    for (size_t i = 0; i < ngiven; i++) {
        const struct rp_option *option = find_option(options, given[i].name);

        if (!option)
            return rp_err_set(err, RP_USAGE, "there is no option '%s'", given[i].name);
        RP_TRY(rp_option_check(option, given[i].value, err));
    }
    return RP_OK;
}

static void note_read(const struct rp_settings *s, const char *name, bool presence)
{
    const struct rp_option *option = s->reads ? find_option(s->options, name) : NULL;
    struct rp_settings_reads *reads = s->reads;
    size_t i;

    if (!option)
        return;
    for (i = 0; i < reads->n && reads->at[i].name != option->name;)
        i++;
    if (i == RP_SETTINGS_READS_MOST)
        return;
    if (i == reads->n) {
        reads->at[i].name = option->name;
        reads->at[i].value = reads->at[i].presence = false;
        reads->n++;
    }
    *(presence ? &reads->at[i].presence : &reads->at[i].value) = true;
}

static const struct rp_setting *find_given(const struct rp_settings *s, const char *name)
{
    size_t i = s->ngiven;

    while (i--) {
        if (!strcmp(s->given[i].name, name))
            return &s->given[i];
    }
    return NULL;
}

static const struct rp_setting *last_given(const struct rp_settings *s, const char *name)
{
    note_read(s, name, false);
    return find_given(s, name);
}

bool rp_settings_has(const struct rp_settings *s, const char *name)
{
    note_read(s, name, true);
    return find_given(s, name) != NULL;
}

bool rp_settings_flag(const struct rp_settings *s, const char *name)
{
    const struct rp_setting *setting = last_given(s, name);
    bool on = false;

    return setting && parse_flag(setting->value, &on) && on;
}

const char *rp_settings_text(const struct rp_settings *s, const char *name)
{
    const struct rp_setting *setting = last_given(s, name);
    const struct rp_option *option = find_option(s->options, name);

    return setting ? setting->value : option ? option->fallback : NULL;
}

int64_t rp_settings_int(const struct rp_settings *s, const char *name)
{
    const struct rp_option *option = find_option(s->options, name);

    return option ? rp_option_number(option, rp_settings_text(s, name)) : 0;
}

double rp_settings_ratio(const struct rp_settings *s, const char *name)
{
    const char *text = rp_settings_text(s, name);
    double value = 0;

    return text && parse_ratio(text, &value) ? value : 0;
}

const char *rp_settings_nth(const struct rp_settings *s, const char *name, size_t i)
{
    note_read(s, name, false);
    for (size_t k = 0; k < s->ngiven; k++) {
        if (!strcmp(s->given[k].name, name) && i-- == 0)
            return s->given[k].value;
    }
    return NULL;
}

/* ------------------------------------------------------------------ what was read */

static const struct rp_field read_fields[] = {
    RP_PART_TEXT(struct rp_setting_read, name), RP_PART_BOOL(struct rp_setting_read, value),
    RP_PART_BOOL(struct rp_setting_read, presence),
    RP_PART_LIST(struct rp_setting_read, values, &rp_type_string), RP_PART_END};
const struct rp_type rp_setting_read_type = {"setting_read", sizeof(struct rp_setting_read),
                                             read_fields, NULL};

struct rp_setting_read *rp_settings_values(const struct rp_settings *s,
                                           const struct rp_settings_reads *reads,
                                           struct rp_arena *arena)
{
    struct rp_setting_read *out = RP_ARENA_NEW(arena, struct rp_setting_read, reads->n + 1);

    for (size_t i = 0; i < reads->n && out; i++) {
        out[i] =
            (struct rp_setting_read){.name = reads->at[i].name,
                                     .value = reads->at[i].value,
                                     .presence = reads->at[i].presence,
                                     .values = RP_ARENA_NEW(arena, const char *, s->ngiven + 1)};
        for (size_t k = 0; k < s->ngiven && out[i].values; k++)
            if (!strcmp(s->given[k].name, out[i].name))
                out[i].values[out[i].nvalues++] = s->given[k].value ? s->given[k].value : "yes";
    }
    return rp_arena_check(arena, "reading options", NULL) == RP_OK ? out : NULL;
}

/* Returns the k-th given value; without one the default comes first. NULL after the last. */
static const char *given_value(const struct rp_settings *s, const char *name, size_t k)
{
    const struct rp_option *option = find_option(s->options, name);
    size_t i, n = 0;

    for (i = 0; i < s->ngiven; i++)
        if (!strcmp(s->given[i].name, name) && n++ == k)
            return s->given[i].value ? s->given[i].value : "yes";
    return !n && !k && option ? option->fallback : NULL;
}

/* Returns the last of the values that were given or read, or the default. */
static int64_t last_number(const struct rp_settings *s, const struct rp_setting_read *read)
{
    const struct rp_option *option = find_option(s->options, read->name);

    if (!option)
        return -1;
    return rp_option_number(option,
                            read->nvalues ? read->values[read->nvalues - 1] : option->fallback);
}

/* A list that was cut to its first rows can be shown with fewer rows, but not with more; 0 means
   all. */
static bool is_cut_enough(const struct rp_settings *s, const struct rp_setting_read *read)
{
    int64_t there = last_number(s, read), here = rp_settings_int(s, read->name);

    return there == 0 || (here > 0 && here <= there);
}

static bool has_less(const struct rp_settings *s, const struct rp_setting_read *read)
{
    const struct rp_option *option = find_option(s->options, read->name);

    return option && option->flags & RP_OPT_LESS && !read->nvalues;
}

static bool agrees(const struct rp_settings *s, const struct rp_setting_read *read)
{
    struct rp_settings none = {.options = s->options};
    const char *here, *there;
    size_t k = 0;

    if (!read->name)
        return false;
    if (has_less(s, read))
        return true;
    if (read->presence && (find_given(s, read->name) != NULL) != (read->nvalues > 0))
        return false;
    if (!read->value || (!strcmp(read->name, "limit") && is_cut_enough(s, read)))
        return true;
    do {
        here = given_value(s, read->name, k);
        there = !read->nvalues      ? given_value(&none, read->name, k)
                : k < read->nvalues ? read->values[k]
                                    : NULL;
        k++;
    } while (here && there && !strcmp(here, there));
    return !here && !there;
}

bool rp_settings_agree(const struct rp_settings *s, const struct rp_setting_read *reads, size_t n)
{
    while (n && agrees(s, &reads[n - 1]))
        n--;
    return !n;
}

const char *rp_closest_word(const char *word, const char *const *words)
{
    unsigned best = (unsigned)strlen(word) / 3 + 1;
    const char *found = NULL;

    for (; *words; words++) {
        unsigned distance = rp_text_distance(word, *words);

        if (distance < best || (distance == best && !found)) {
            best = distance;
            found = *words;
        }
    }
    return found;
}

size_t rp_settings_limit(const struct rp_settings *s, const char *name)
{
    int64_t limit = rp_settings_int(s, name);

    return limit > 0 ? (size_t)limit : SIZE_MAX;
}
