/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads scope paths. Tracers wrap the names of the user: jit(f) around functions, jvp(x) and
 * transpose(jvp(x)) around the derivatives of x, while/body around loops. The wrappers are removed,
 * since the user looks for "layer_17/attn".
 */
#include "explain/program_diff/words.h"

#include "base/hash.h"
#include "base/order.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NUMBERS = 8, MOST_RANGES = 12 };

struct part {
    const char *at;
    size_t n;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool part_is(struct part p, const char *word)
{
    return strlen(word) == p.n && memcmp(p.at, word, p.n) == 0;
}

/* The next part of a path; a '/' within parentheses does not separate. */
static struct part next_part(const char **at)
{
    struct part p = {*at, 0};
    int depth = 0;

    for (; p.at[p.n] && p.at[p.n] != ';' && (p.at[p.n] != '/' || depth > 0); p.n++)
        depth += (p.at[p.n] == '(') - (p.at[p.n] == ')');
    *at = p.at[p.n] == '/' ? p.at + p.n + 1 : ""; /* if there are several paths, the first counts */
    return p;
}

/* Whether a part was added by a tracer. */
static bool is_noise(struct part p)
{
    static const char *const words[] = {"while",
                                        "body",
                                        "cond",
                                        "branch_0_fun",
                                        "branch_1_fun",
                                        "main",
                                        "closed_call",
                                        "checkpoint",
                                        "pjit",
                                        "core_call",
                                        "rematted_computation",
                                        "shard_map",
                                        "remat",
                                        "custom_jvp_call",
                                        "custom_vjp_call",
                                        "xla_call"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (part_is(p, words[i]))
            return true;
    return p.n == 0;
}

/* Removes jvp(...), vmap(...) and similar wrappers; jit(...) holds the name of a function. */
static struct part unwrap(struct part p, bool *backward)
{
    for (;;) {
        const char *open = memchr(p.at, '(', p.n);
        struct part word = {p.at, open ? (size_t)(open - p.at) : 0};

        if (!open || p.at[p.n - 1] != ')')
            return p;
        if (part_is(word, "transpose"))
            *backward = true;
        else if (part_is(word, "jit") || part_is(word, "pjit") || part_is(word, "pmap"))
            return (struct part){p.at, 0};
        else if (!part_is(word, "jvp") && !part_is(word, "vmap") && !part_is(word, "remat") &&
                 !part_is(word, "checkpoint"))
            return p;
        p = (struct part){open + 1, p.n - word.n - 2};
    }
}

size_t rp_scope_words(const char *op_name, char *out, size_t cap)
{
    const char *at = op_name;
    bool backward = false;
    size_t n = 0;

    out[0] = '\0';
    while (*at) {
        struct part p = next_part(&at);

        if (!*at)
            break; /* the last part is the primitive */
        p = unwrap(p, &backward);
        if (is_noise(p) || n + p.n + 2 > cap)
            continue;
        if (n)
            out[n++] = '/';
        memcpy(out + n, p.at, p.n);
        n += p.n;
        out[n] = '\0';
    }
    if (backward && n && n + sizeof " (backward)" <= cap)
        n += (size_t)snprintf(out + n, cap - n, " (backward)");
    return n;
}

uint64_t rp_scope_pattern(const char *scope)
{
    uint64_t hash = 0;

    for (size_t i = 0; scope[i]; i++)
        if (!is_digit(scope[i]))
            hash = rp_hash_join(hash, (uint64_t)(unsigned char)scope[i] + 1);
        else if (!i || !is_digit(scope[i - 1]))
            hash = rp_hash_join(hash, 1000);
    return hash;
}

/* ---- numbers ---- */

RP_ORDER(by_value, int64_t, RP_COMPARE(*a, *b))

size_t rp_ranges_print(int64_t *values, size_t n, char *out, size_t cap)
{
    size_t len = 0, ranges = 0;

    out[0] = '\0';
    rp_sort(values, n, sizeof *values, by_value);
    for (size_t i = 0; i < n;) {
        size_t k = i;

        while (k + 1 < n && values[k + 1] - values[k] <= 1)
            k++;
        if (++ranges > MOST_RANGES || len + 48 > cap) {
            len += (size_t)snprintf(out + len, cap - len, ",...");
            break;
        }
        len +=
            (size_t)snprintf(out + len, cap - len, "%s%lld", len ? "," : "", (long long)values[i]);
        if (values[k] != values[i])
            len += (size_t)snprintf(out + len, cap - len, "%c%lld",
                                    values[k] - values[i] == 1 ? ',' : '-', (long long)values[k]);
        i = k + 1;
    }
    return len;
}

/* Finds the k-th number of a text; its length goes to *len. NULL if there are fewer. */
static const char *number_at(const char *text, size_t k, size_t *len)
{
    for (; *text; text += *text != '\0') {
        if (!is_digit(*text))
            continue;
        *len = strspn(text, "0123456789");
        if (k-- == 0)
            return text;
        text += *len - 1;
    }
    return NULL;
}

/* The text for the k-th number of all scopes: the number, or "{0-31}". */
static const char *numbers_text(const char *const *scopes, size_t n, size_t k, int64_t *values,
                                struct rp_arena *arena)
{
    char ranges[160];
    size_t len = 0, differ = 0;
    const char *first = number_at(scopes[0], k, &len);

    for (size_t i = 0; i < n; i++) {
        const char *at = number_at(scopes[i], k, &(size_t){0});

        values[i] = at ? strtoll(at, NULL, 10) : 0;
        differ += values[i] != values[0];
    }
    if (!differ)
        return rp_arena_textf(arena, "%.*s", (int)len, first);
    rp_ranges_print(values, n, ranges, sizeof ranges);
    return rp_arena_textf(arena, "{%s}", ranges);
}

const char *rp_scope_join(const char *const *scopes, size_t n, struct rp_arena *arena)
{
    int64_t *values = RP_ARENA_NEW(arena, int64_t, n + 1);
    const char *out = "", *at = n ? scopes[0] : "";

    if (!values)
        return "";
    for (size_t k = 0; k < MOST_NUMBERS; k++) {
        size_t len = 0;
        const char *number = number_at(at, 0, &len);

        if (!number)
            break;
        out = rp_arena_textf(arena, "%s%.*s%s", out, (int)(number - at), at,
                             numbers_text(scopes, n, k, values, arena));
        at = number + len;
    }
    return rp_arena_textf(arena, "%s%s", out, at);
}
