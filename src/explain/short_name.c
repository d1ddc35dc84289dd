/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel's name is a C++ declaration: [type] scope::…::name<arguments>(parameters). The short
 * name is what precedes the first '<' or '(' at depth zero, without its scopes. Names that are not
 * declarations (Triton's, copies, operators of a framework) have no '<' or '(' after a word and are
 * kept as they are.
 */
#include "explain/short_name.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* The first character after the bracket that closes the one at p, or the end of the text. */
static const char *after_bracket(const char *p)
{
    int depth = 0;

    for (; *p; p++) {
        if (*p == '<' || *p == '(')
            depth++;
        else if ((*p == '>' && p[-1] != '-') || *p == ')')
            depth--;
        if (depth == 0)
            return p + 1;
    }
    return p;
}

/* Start of the last component of [begin, end): after "::", a blank, '*' or '&'. */
static const char *last_component(const char *begin, const char *end)
{
    const char *p = end;

    while (p > begin && (isalnum((unsigned char)p[-1]) || p[-1] == '_' || p[-1] == '$'))
        p--;
    return p;
}

/* Whether a component is preceded by what may precede one in a declaration: not "f.py(3): g". */
static bool is_scoped(const char *name, const char *component)
{
    return component == name || strchr(": *&", component[-1]);
}

/* The end of a word of a declaration: at '<' or '(' that follows a letter. */
static const char *end_of_name(const char *name)
{
    const char *p;

    for (p = name; *p; p++) {
        if (!strncmp(p, "(anonymous namespace)", 21)) {
            p += 20;
            continue;
        }
        if ((*p == '<' || *p == '(') && p > name &&
            (isalnum((unsigned char)p[-1]) || p[-1] == '_')) {
            /* "a<b>::name(": what follows the template belongs to the name */
            const char *after = *p == '<' ? after_bracket(p) : p;

            if (*p == '<' && after[0] == ':' && after[1] == ':') {
                p = after;
                continue;
            }
            return p;
        }
    }
    return p;
}

/* The first template argument that ends in "Functor", "Ops" or the like: what the kernel does. */
static const char *functor_in(const char *args, size_t *len)
{
    static const char *const ends[] = {"Functor", "FunctorOnSelf_add", "Ops", "_op", "Op"};
    const char *p = args, *stop = after_bracket(args), *word;
    size_t i;

    while (p < stop) {
        while (p < stop && !isalpha((unsigned char)*p) && *p != '_')
            p++;
        for (word = p; p < stop && (isalnum((unsigned char)*p) || *p == '_'); p++)
            ;
        for (i = 0; i < sizeof ends / sizeof ends[0]; i++) {
            size_t n = strlen(ends[i]);

            if ((size_t)(p - word) > n && !strncmp(p - n, ends[i], n)) {
                *len = (size_t)(p - word);
                return word;
            }
        }
    }
    return NULL;
}

static size_t append_text(char *out, size_t cap, size_t at, const char *text, size_t len)
{
    if (at + 1 >= cap)
        return at;
    if (len > cap - 1 - at)
        len = cap - 1 - at;
    memcpy(out + at, text, len);
    return at + len;
}

size_t rp_short_name(const char *name, char *out, size_t cap)
{
    const char *end = end_of_name(name), *begin = last_component(name, end), *functor = NULL;
    size_t at = 0, len = 0;

    if (!*end || begin == end || !is_scoped(name, begin) || !strncmp(name, "Memcpy", 6) ||
        !strncmp(name, "Memset", 6)) {
        begin = name;
        end = name + strlen(name);
    } else if (*end == '<') {
        functor = functor_in(end, &len);
    }
    at = append_text(out, cap, at, begin, (size_t)(end - begin));
    if (functor) {
        at = append_text(out, cap, at, "<", 1);
        at = append_text(out, cap, at, functor, len);
        at = append_text(out, cap, at, ">", 1);
    }
    if (cap)
        out[at] = '\0';
    return at;
}
