/* SPDX-License-Identifier: Apache-2.0 */
/* The flags and variables that make compilers write dumps, as one array. */
#include "dump/table.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

const struct rp_xla_release rp_xla_releases[RP_XLA_RELEASES] = {
    {"0.4.30", 4030}, {"0.6.2", 6002}, {"0.8.1", 8001}, {"0.10.2", 10002}};

static const struct rp_flag flags[] = {
#define RP_XLA_FLAG(name, type, fallback, a, b, c, d, meaning, caution) \
    {RP_FLAG_XLA, "XLA", #name, RP_FLAG_##type, fallback, {a, b, c, d}, meaning, caution},
#include "dump/flags_xla.def"
#undef RP_XLA_FLAG
#define RP_VARIABLE(framework, name, fallback, meaning, caution) \
    {RP_FLAG_VARIABLE, framework, #name, RP_FLAG_TEXT, fallback, {0}, meaning, caution},
#define RP_TF_FLAG(name, type, fallback, meaning, caution) \
    {RP_FLAG_TF, "TensorFlow", #name, RP_FLAG_##type, fallback, {0}, meaning, caution},
#define RP_GONE(name, meaning, successor) \
    {RP_FLAG_XLA_OLD, "XLA", #name, RP_FLAG_TEXT, NULL, {0}, meaning, "removed; " successor},
#include "dump/flags_other.def"
#undef RP_VARIABLE
#undef RP_TF_FLAG
#undef RP_GONE
};

#define NFLAGS (sizeof flags / sizeof flags[0])

const struct rp_flag *rp_flags(size_t *n)
{
    *n = NFLAGS;
    return flags;
}

const struct rp_flag *rp_flag_find(const char *name, size_t len)
{
    for (size_t i = 0; i < NFLAGS; i++)
        if (strlen(flags[i].name) == len && !memcmp(flags[i].name, name, len))
            return &flags[i];
    return NULL;
}

/* How many pairs of neighbouring letters two names share, relative to how many they have; names
   that lack a word, or have two exchanged, are still similar. */
static double likeness(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b), shared = 0;
    bool used[256] = {false};

    if (na < 2 || nb < 2 || nb > sizeof used)
        return 0;
    for (size_t i = 0; i + 1 < na; i++)
        for (size_t k = 0; k + 1 < nb; k++)
            if (!used[k] && a[i] == b[k] && a[i + 1] == b[k + 1]) {
                used[k] = true;
                shared++;
                break;
            }
    return 2.0 * (double)shared / (double)(na + nb - 2);
}

const char *rp_flag_nearest(enum rp_flag_kind kind, const char *name)
{
    const char *nearest = "";
    double most = 0.65;

    for (size_t i = 0; i < NFLAGS; i++) {
        double like = flags[i].kind == kind ? likeness(name, flags[i].name) : 0;

        if (like > most) {
            most = like;
            nearest = flags[i].name;
        }
    }
    return nearest;
}

uint32_t rp_release_number(const char *text)
{
    uint32_t version = 0;

    for (int i = 0; i < 3; i++) {
        char *end;
        unsigned long part = strtoul(text, &end, 10);

        version = version * 1000 + (end == text ? 0 : part > 999 ? 999 : (uint32_t)part);
        text = end + (*end == '.' && end != text);
    }
    return version;
}

enum rp_flag_known rp_flag_known_to(const struct rp_flag *flag, uint32_t version)
{
    size_t before = 0, after = RP_XLA_RELEASES - 1;

    if (flag->kind != RP_FLAG_XLA)
        return flag->kind == RP_FLAG_XLA_OLD && !version ? RP_FLAG_UNSURE : RP_FLAG_UNKNOWN;
    for (size_t i = 0; version && i < RP_XLA_RELEASES; i++) {
        if (rp_xla_releases[i].version <= version)
            before = i;
        if (rp_xla_releases[RP_XLA_RELEASES - 1 - i].version >= version)
            after = RP_XLA_RELEASES - 1 - i;
    }
    if (before > after) /* newer than all */
        after = before;
    for (size_t i = before; i <= after; i++)
        if (flag->in[i] != flag->in[before])
            return RP_FLAG_UNSURE;
    if (!flag->in[before])
        return RP_FLAG_UNKNOWN;
    return version && (version < rp_xla_releases[0].version ||
                       version > rp_xla_releases[RP_XLA_RELEASES - 1].version)
               ? RP_FLAG_UNSURE
               : RP_FLAG_KNOWN;
}

static bool is_word(const char *value, size_t len, const char *word)
{
    return strlen(word) == len && !strncasecmp(value, word, len);
}

bool rp_flag_takes(const struct rp_flag *flag, const char *value, size_t len)
{
    char text[64], *end = text;

    switch (flag->type) {
    case RP_FLAG_BOOL:
        return is_word(value, len, "true") || is_word(value, len, "false") ||
               is_word(value, len, "1") || is_word(value, len, "0");
    case RP_FLAG_INT:
    case RP_FLAG_FLOAT:
        if (!len || len >= sizeof text)
            return false;
        memcpy(text, value, len);
        text[len] = '\0';
        if (flag->type == RP_FLAG_INT)
            (void)strtoll(text, &end, 10);
        else
            (void)strtod(text, &end);
        return !*end;
    default:
        return true;
    }
}
