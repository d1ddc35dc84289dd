/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mangled name is a sequence of short codes; those that open something (nested names N, template
 * arguments I, packs J, literals L, expressions X, functions F) are closed by E. One pass with a
 * stack of the open ones; the name ends where the outermost name and its arguments are closed.
 * Linear, nothing is allocated.
 */
#include "explain/demangle.h"

#include "base/decides.h"

#include <ctype.h>
#include <string.h>

#define MAX_OPEN 64
RP_LIMIT(MAX_OPEN, "brackets in brackets", "a deeper name is shown as it is");

struct mangled {
    const char *p;
    char *out;
    size_t at, cap;
    char open[MAX_OPEN];  /* codes that are not closed yet */
    bool typed[MAX_OPEN]; /* for a literal: its type was read, and digits are its value */
    size_t depth;
    bool fresh; /* nothing has been written since the last opening bracket or comma */
    bool joins; /* the next name belongs to the one before: "::" between */
};

static void put_text(struct mangled *m, const char *text, size_t len)
{
    if (len > m->cap - 1 - m->at)
        len = m->cap - 1 - m->at;
    memcpy(m->out + m->at, text, len);
    m->at += len;
}

static void put_part(struct mangled *m, const char *text, size_t len)
{
    if (m->joins)
        put_text(m, "::", 2);
    else if (!m->fresh)
        put_text(m, ", ", 2);
    put_text(m, text, len);
    m->fresh = false;
}

static char top_of(const struct mangled *m)
{
    return m->depth ? m->open[m->depth - 1] : '\0';
}

static void close_code(struct mangled *m)
{
    char code = top_of(m);

    m->p++;
    if (!m->depth)
        return;
    m->depth--;
    if (code == 'I') {
        put_text(m, ">", 1);
        m->fresh = false;
    }
    m->joins = code == 'I' && top_of(m) == 'N';
    if (top_of(m) == 'L')
        m->typed[m->depth - 1] = true;
}

/* Reads "24add_rmsnorm_quant_kernel", or the value of a literal. */
static bool read_number(struct mangled *m)
{
    bool value = top_of(m) == 'L' && m->typed[m->depth - 1];
    const char *begin = m->p;
    size_t len = 0;

    for (; isdigit((unsigned char)*m->p); m->p++)
        len = len < 4096 ? len * 10 + (size_t)(*m->p - '0') : len;
    if (value) {
        put_part(m, begin, (size_t)(m->p - begin));
        return true;
    }
    if (strlen(m->p) < len)
        len = strlen(m->p);
    if (strncmp(m->p, "_GLOBAL__N_", 11) != 0)
        put_part(m, m->p, len);
    m->p += len;
    m->joins = top_of(m) == 'N';
    if (top_of(m) == 'L')
        m->typed[m->depth - 1] = true;
    return len > 0;
}

static bool read_builtin(struct mangled *m)
{
    static const struct {
        char code;
        const char *name;
    } types[] = {{'f', "float"}, {'d', "double"}, {'i', "int"},   {'l', "long"},
                 {'j', "uint"},  {'m', "ulong"},  {'h', "uchar"}, {'t', "ushort"},
                 {'s', "short"}, {'b', "bool"},   {'c', "char"},  {'a', "schar"},
                 {'x', "llong"}, {'y', "ullong"}, {'v', "void"},  {'w', "wchar"}};

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (*m->p == types[i].code) {
            m->p++;
            if (top_of(m) == 'L')
                m->typed[m->depth - 1] = true; /* the type of a number says little */
            else
                put_part(m, types[i].name, strlen(types[i].name));
            return true;
        }
    return false;
}

/* Skips S_ S0_ T_ T0_ St and the like, which stand for earlier parts. */
static bool skip_reference(struct mangled *m)
{
    char code = *m->p++;

    if (code == 'S' && islower((unsigned char)*m->p)) {
        m->p++;
        return true;
    }
    if (code == 'T' &&
        *m->p == 'n') { /* this argument is the type of a parameter that is a value */
        m->p++;
        return true;
    }
    while (isdigit((unsigned char)*m->p) || isupper((unsigned char)*m->p))
        m->p++;
    if (*m->p != '_')
        return false;
    m->p++;
    if (top_of(m) == 'L')
        m->typed[m->depth - 1] = true;
    return true;
}

static bool read_one(struct mangled *m)
{
    if (isdigit((unsigned char)*m->p))
        return read_number(m);
    if (!strncmp(m->p, "DF16b", 5) || !strncmp(m->p, "DF16_", 5)) {
        put_part(m, m->p[4] == 'b' ? "bf16" : "f16", m->p[4] == 'b' ? 4 : 3);
        m->p += 5;
        return true;
    }
    if (!strncmp(m->p, "_Z", 2) || !strncmp(m->p, "Dp", 2) || !strncmp(m->p, "ad", 2)) {
        m->p += 2;
        return true;
    }
    if (*m->p == 'L' && top_of(m) == 'N') { /* the next name is static: no literal */
        m->p++;
        return true;
    }
    if (strchr("NIJLXF", *m->p)) {
        char code = *m->p;
        if (m->depth == MAX_OPEN)
            return false;
        m->typed[m->depth] = false;
        m->open[m->depth++] = code;
        m->p++;
        if (code == 'I') {
            put_text(m, "<", 1);
            m->fresh = true;
        }
        m->joins = false;
        return true;
    }
    if (*m->p == 'E') {
        close_code(m);
        return true;
    }
    if (*m->p == 'S' || *m->p == 'T')
        return skip_reference(m);
    if (strchr("PRKOVn", *m->p)) { /* pointers, references, qualifiers; the sign of a literal */
        m->p++;
        return true;
    }
    return read_builtin(m);
}

bool rp_demangle(const char *name, char *out, size_t cap)
{
    struct mangled m = {.p = name + 2, .out = out, .cap = cap, .fresh = true};
    bool more = true;

    if (cap < sizeof "_Z" || strncmp(name, "_Z", 2) != 0 ||
        !(name[2] == 'N' || isdigit((unsigned char)name[2])))
        return false;
    while (more && *m.p && m.at + 1 < cap) {
        more = read_one(&m);
        if (m.depth == 0 && *m.p != 'I')
            break;
    }
    if (m.at && out[m.at - 1] != '>')
        put_text(&m, "(", 1);
    out[m.at] = '\0';
    return m.at > 1;
}
