/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares what two programs print, word by word. Words that differ between two runs of the same
 * program say nothing, nor do times, rates and names of our folders.
 */
#include "io/input.h"
#include "try/against.h"

#include <regex.h>
#include <stdio.h>
#include <string.h>

struct words {
    const char *text, *end, *at; /* `at`: the word that was read last, of n bytes */
    size_t n;
};

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool next_word(struct words *w)
{
    w->at += w->n;
    while (w->at < w->end && is_space(*w->at))
        w->at++;
    for (w->n = 0; w->at + w->n < w->end && !is_space(w->at[w->n]);)
        w->n++;
    return w->n > 0;
}

static bool same_word(const struct words *a, const struct words *b)
{
    return a->n == b->n && !memcmp(a->at, b->at, a->n);
}

/* A number with a unit of time behind it, also as the next word, or a time of day: "4.1s", "0.3
   ms",
   "(12 it/s)", "00:04". */
#define TIME                                                                                      \
    "^[^[:alpha:] ]*[0-9][^[:alpha:] ]* ?([mu]?s|secs?|seconds?|mins?|minutes?|h|[[:alpha:]]*/s|" \
    "s/[[:alpha:]]*)([^[:alpha:]]|$)|^[^ ]*[0-9]:[0-9]"

static bool is_time(struct words w, const regex_t *time)
{
    char text[130];
    int n = snprintf(text, 65, "%.*s", (int)w.n, w.at);

    if (n < 65 && next_word(&w))
        snprintf(text + n, sizeof text - (size_t)n, " %.*s", (int)w.n, w.at);
    return regexec(time, text, 0, NULL, 0) == 0;
}

static bool is_ours(const struct words *w)
{
    return memmem(w->at, w->n, "/reprise-try-", 13) != NULL;
}

static enum rp_code read_words(const char *path, struct rp_input **in, struct words *out)
{
    const uint8_t *bytes;
    size_t n;

    RP_TRY(rp_input_open(path, NULL, in, NULL));
    RP_TRY(rp_input_slurp(*in, &bytes, &n, NULL));
    *out = (struct words){(const char *)bytes, (const char *)bytes + n, (const char *)bytes, 0};
    return RP_OK;
}

/* Copies the line of a word. */
static void line_of(const struct words *w, char *out, size_t cap)
{
    const char *begin = w->at, *end = w->at;

    while (begin > w->text && begin[-1] != '\n')
        begin--;
    while (end < w->end && *end != '\n')
        end++;
    snprintf(out, cap, "%.*s", (int)(end - begin), begin);
}

static enum rp_try_printed compare(struct words *first, struct words *again, struct words *other,
                                   const regex_t *time, char *why, size_t cap)
{
    bool any = false;

    for (;;) {
        bool one = next_word(first), two = next_word(again), three = next_word(other);

        if (one != two)
            return RP_TRY_PRINTED_UNSTEADY;
        if (one != three || (one && same_word(first, again) && !same_word(first, other) &&
                             !is_time(*first, time) && !(is_ours(first) && is_ours(other)))) {
            char yours[64], its[64];

            line_of(first, yours, sizeof yours);
            line_of(other, its, sizeof its);
            snprintf(why, cap, "'%s' instead of '%s'", yours, its);
            return RP_TRY_PRINTED_OTHER;
        }
        if (!one)
            return any ? RP_TRY_PRINTED_SAME : RP_TRY_PRINTED_NOTHING;
        any |= same_word(first, again);
    }
}

enum rp_try_printed rp_try_printed(const char *const paths[3], char *why, size_t cap)
{
    struct rp_input *in[3] = {NULL};
    struct words words[3];
    enum rp_try_printed out = RP_TRY_PRINTED_UNSTEADY;
    regex_t time;
    int n = 0;

    while (n < 3 && read_words(paths[n], &in[n], &words[n]) == RP_OK)
        n++;
    if (n == 3 && !regcomp(&time, TIME, REG_EXTENDED | REG_NOSUB)) {
        out = compare(&words[0], &words[1], &words[2], &time, why, cap);
        regfree(&time);
    }
    for (n = 0; n < 3; n++)
        rp_input_close(in[n]);
    return out;
}
