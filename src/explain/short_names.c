/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the rows of a table apart. Names with the same short name are read as lists of words (types
 * by their usual short names). All lists of a group are followed to the first word in which they
 * differ; that word is added to each label, and those that got the same one are followed further,
 * as on the branches of a trie. Names that differ in nothing but punctuation, or in more words than
 * are shown, are numbered.
 */
#include "base/decides.h"
#include "base/order.h"
#include "explain/demangle.h"
#include "explain/short_name.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_BYTES  256
#define DETAIL_BYTES 96
#define WORD_BYTES   40
RP_LIMIT(WORD_BYTES, "bytes of a word", "longer words are cut; the whole name is in the data");
#define MAX_DETAILS 4
RP_LIMIT(MAX_DETAILS, "words",
         "that distinguish names; names that are still the same are shown whole");

struct row {
    const char *name; /* readable: demangled */
    const char *whole;
    const char *p; /* up to where its words have been read */
    size_t i;      /* position in the table */
    bool cpp;      /* it has brackets */
    char word[WORD_BYTES];
    char detail[DETAIL_BYTES];
    const char *base;
};

RP_ORDER(by_base, struct row, strcmp(a->base, b->base), strcmp(a->whole, b->whole), RP_UP(i))
RP_ORDER(by_word, struct row, strcmp(a->word, b->word), strcmp(a->whole, b->whole), RP_UP(i))

/* Whether a word is a scope or syntax, which says nothing about what a kernel does. */
static bool is_noise(const char *word)
{
    static const char *const noise[] = {"at",       "native", "anonymous", "namespace",
                                        "c10",      "std",    "detail",    "const",
                                        "operator", "lambda", "void",      "unsigned"};

    for (size_t i = 0; i < sizeof noise / sizeof noise[0]; i++)
        if (!strcmp(word, noise[i]))
            return true;
    return false;
}

static void shorten_type(char *word)
{
    static const char *const types[][2] = {
        {"BFloat16", "bf16"},   {"__nv_bfloat16", "bf16"}, {"__hip_bfloat16", "bf16"},
        {"bfloat16_t", "bf16"}, {"Half", "f16"},           {"__half", "f16"},
        {"half", "f16"},        {"float", "f32"},          {"double", "f64"},
    };

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (!strcmp(word, types[i][0]))
            snprintf(word, WORD_BYTES, "%s", types[i][1]);
}

/* Reads the next word of a row; "" at its end. A name without brackets is divided at '_'. */
static void next_word(struct row *row, bool all)
{
    const char *p = row->p;
    bool cpp = row->cpp;

    do {
        size_t n = 0;

        while (*p && !isalnum((unsigned char)*p) && !(cpp && *p == '_'))
            p++;
        char before = p > row->name ? p[-1] : ' ';
        for (; isalnum((unsigned char)*p) || (cpp && *p == '_'); p++)
            if (n + 1 < WORD_BYTES)
                row->word[n++] = *p;
        row->word[n] = '\0';
        if (all || (before != '#' && !is_noise(row->word)))
            break;
    } while (*row->word);
    row->p = p;
    shorten_type(row->word);
}

static void add_detail(struct row *row, const char *text)
{
    size_t len = strlen(row->detail);

    if (*text)
        snprintf(row->detail + len, sizeof row->detail - len, "%s%s",
                 !len       ? ""
                 : row->cpp ? ", "
                            : "_",
                 text);
}

/* Follows the rows to their next difference; false if there is none. */
static bool follow_rows(struct row *rows, size_t n, bool all)
{
    for (;;) {
        bool equal = true;

        for (size_t i = 0; i < n; i++) {
            next_word(&rows[i], all);
            equal = equal && !strcmp(rows[i].word, rows[0].word);
        }
        if (!equal)
            return true;
        if (!*rows[0].word)
            return false;
    }
}

/* The rows have one label and are sorted by their whole names; the same name may occur twice. */
static void tell_apart(struct row *rows, size_t n, int left, bool all)
{
    size_t i, end;

    if (n < 2 || !strcmp(rows[0].whole, rows[n - 1].whole))
        return;
    if (left == 0 || !follow_rows(rows, n, all)) {
        if (left && !all) { /* the rows differ only in noise */
            for (i = 0; i < n; i++)
                rows[i].p = rows[i].name;
            tell_apart(rows, n, left, true);
        } else {
            char text[24];
            size_t m, k = 1;

            for (m = 0; m < n; m++) {
                k += m && strcmp(rows[m].whole, rows[m - 1].whole) != 0;
                snprintf(text, sizeof text, "#%zu", k);
                add_detail(&rows[m], text);
            }
        }
        return;
    }
    for (i = 0; i < n; i++)
        add_detail(&rows[i], rows[i].word);
    qsort(rows, n, sizeof *rows, by_word);
    for (i = 0; i < n; i = end) {
        for (end = i + 1; end < n && !strcmp(rows[end].word, rows[i].word); end++)
            ;
        tell_apart(rows + i, end - i, left - 1, all);
    }
}

static const char *label_of(const struct row *row, struct rp_arena *arena)
{
    size_t len = strlen(row->base);

    if (!*row->detail)
        return row->base;
    if (len && row->base[len - 1] == '>')
        return rp_arena_textf(arena, "%.*s, %s>", (int)(len - 1), row->base, row->detail);
    return rp_arena_textf(arena, row->cpp ? "%s<%s>" : "%s_\xe2\x80\xa6%s", row->base, row->detail);
}

/* Makes rows for the names that are not NULL; returns their number. */
static size_t fill_rows(struct row *rows, const char *const *names, size_t n,
                        struct rp_arena *arena)
{
    char text[1024], base[LABEL_BYTES];
    size_t i, filled = 0;

    for (i = 0; i < n; i++) {
        struct row *row = &rows[filled];

        if (!names[i])
            continue;
        rp_short_name(names[i], base, sizeof base);
        *row = (struct row){.i = i, .whole = names[i], .name = names[i]};
        if (rp_demangle(names[i], text, sizeof text))
            row->name = rp_arena_text(arena, text);
        row->p = row->name;
        row->cpp = strpbrk(row->name, "<(") != NULL;
        row->base = rp_arena_text(arena, base);
        filled++;
    }
    return filled;
}

void rp_short_names(const char *const *names, const char **labels, size_t n, struct rp_arena *arena)
{
    struct row *rows = RP_ARENA_NEW(arena, struct row, n + 1);
    size_t i, end;

    for (i = 0; i < n; i++)
        labels[i] = names[i];
    n = rows ? fill_rows(rows, names, n, arena) : 0;
    if (!n)
        return;
    qsort(rows, n, sizeof *rows, by_base);
    for (i = 0; i < n; i = end) {
        for (end = i + 1; end < n && !strcmp(rows[end].base, rows[i].base); end++)
            ;
        tell_apart(rows + i, end - i, MAX_DETAILS, false);
    }
    for (i = 0; i < n; i++)
        labels[rows[i].i] = label_of(&rows[i], arena);
}
