/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what-ifs. Names of kernels hold nearly every character ("void add<int, 4>(a+b)"), so bare
 * text ends only where a what-if must begin, and quotes settle the remaining cases. Linear in the
 * text, times the number of what-ifs at each '+'.
 */
#include "sim/whatif/whatifs.h"

#include <reprise/question.h>
#include <string.h>

struct parser {
    const char *whole; /* the text that was given */
    const char *at;
    struct rp_arena *arena;
    struct rp_err *err;
};

static size_t name_len(const char *text)
{
    return strcspn(text, ":=+");
}

static bool is_name(const char *own, const char *name, size_t len)
{
    return own && strlen(own) == len && !memcmp(own, name, len);
}

static const struct rp_whatif *find_whatif(const char *name, size_t len)
{
    for (size_t i = 0; rp_whatifs[i]; i++)
        if (is_name(rp_whatifs[i]->name, name, len) || is_name(rp_whatifs[i]->alias, name, len))
            return rp_whatifs[i];
    return NULL;
}

static enum rp_code unknown_whatif(const char *text, const char *name, struct rp_err *err)
{
#define ONE(name) +1
    const char *words[RP_WHATIF_ROWS(ONE) + 1] = {NULL}, *near;
#undef ONE

    for (size_t i = 0; rp_whatifs[i]; i++)
        words[i] = rp_whatifs[i]->name;
    near = rp_closest_word(name, words);
    return rp_err_set(err, RP_USAGE, "there is no what-if '%s'%s%s%s; '--what-if help' lists them",
                      text, near ? ": did you mean '" : "", near ? near : "", near ? "'" : "");
}

/* Whether another what-if begins after a '+'. */
static bool is_separator(const char *at)
{
    return *at == '+' && find_whatif(at + 1, name_len(at + 1));
}

/* ------------------------------------------------------------------ subjects and values */

/* Reads from the opening quote to after the closing one. */
static enum rp_code read_quoted(struct parser *p, const char **out)
{
    char *to = rp_arena_alloc(p->arena, strlen(p->at) + 1, 1);

    RP_TRY(rp_err_need(to, p->err, "simulating"));
    *out = to;
    for (p->at++; *p->at; p->at++) {
        if (*p->at == '"' && *++p->at != '"') {
            *to = '\0';
            return RP_OK;
        }
        *to++ = *p->at;
    }
    return rp_err_set(p->err, RP_USAGE, "'%s': the closing '\"' is missing", p->whole);
}

/* Reads up to `end` and moves there. */
static enum rp_code read_bare(struct parser *p, const char *end, const char **out)
{
    *out = rp_arena_copy(p->arena, p->at, (size_t)(end - p->at));
    p->at = end;
    return *out ? RP_OK : rp_err_nomem(p->err, "simulating");
}

/* The end of a bare subject: at the '=' of the value, or with the what-if. */
static const char *subject_end(const char *at)
{
    const char *value = NULL;

    for (; *at && !is_separator(at); at++)
        if (*at == '=') {
            value = at;
            if (at[1] == '"')
                break;
        }
    return value ? value : at;
}

static const char *value_end(const char *at, bool at_comma)
{
    while (*at && !is_separator(at) && !(at_comma && *at == ','))
        at++;
    return at;
}

static enum rp_code read_value(struct parser *p, bool at_comma, const char **out)
{
    return *p->at == '"' ? read_quoted(p, out) : read_bare(p, value_end(p->at, at_comma), out);
}

/* ------------------------------------------------------------------ a what-if */

static enum rp_code read_args(struct parser *p, struct rp_whatif_call *call)
{
    bool two = call->row->value == RP_WHATIF_TWO_NAMES;

    if (*p->at == ':') {
        p->at++;
        RP_TRY(*p->at == '"' ? read_quoted(p, &call->args.subject)
                             : read_bare(p, subject_end(p->at), &call->args.subject));
    }
    if (*p->at == '=') {
        p->at++;
        RP_TRY(read_value(p, two, &call->args.value));
    }
    if (two && *p->at == ',') {
        p->at++;
        RP_TRY(read_value(p, false, &call->args.second));
    }
    return RP_OK;
}

static enum rp_code read_call(struct parser *p, struct rp_whatif_call *call)
{
    const char *begin = p->at, *name;
    size_t len = name_len(begin);

    if (!len)
        return rp_err_set(p->err, RP_USAGE,
                          "'%s': a what-if is missing; '--what-if help' lists them", p->whole);
    RP_TRY(read_bare(p, begin + len, &name));
    call->row = find_whatif(name, len);
    if (!call->row) {
        RP_TRY(read_bare(p, value_end(p->at, false), &call->args.text));
        return unknown_whatif(rp_arena_textf(p->arena, "%s%s", name, call->args.text), name,
                              p->err);
    }
    RP_TRY(read_args(p, call));
    call->args.text = rp_arena_copy(p->arena, begin, (size_t)(p->at - begin));
    RP_TRY(rp_err_need(call->args.text, p->err, "simulating"));
    if (*p->at && *p->at != '+')
        return rp_err_set(p->err, RP_USAGE, "'%s': '%s' is not expected after the closing '\"'",
                          p->whole, p->at);

    if (call->args.value && call->row->value == RP_WHATIF_NO_VALUE)
        return rp_err_set(p->err, RP_USAGE, "'%s': this what-if takes no value", call->args.text);
    if (call->args.subject && !call->row->has_subject)
        return rp_err_set(p->err, RP_USAGE, "'%s': ':' is not expected here: use '%s'",
                          call->args.text, call->row->form);

    /* In "bucket=25MB+fuze", the text after '+' is meant as a what-if, so it is an error. */
    const char *plus = call->row->value == RP_WHATIF_WORD && call->args.value
                           ? strchr(call->args.value, '+')
                           : NULL;
    return plus ? unknown_whatif(plus + 1, plus + 1, p->err) : RP_OK;
}

enum rp_code rp_whatif_parse(const char *text, struct rp_arena *arena, struct rp_whatif_list *out,
                             struct rp_err *err)
{
    struct parser p = {text, text, arena, err};
    size_t most = 1;

    for (const char *at = text; *at; at++)
        most += *at == '+';
    *out = (struct rp_whatif_list){0, RP_ARENA_NEW(arena, struct rp_whatif_call, most)};
    RP_TRY(rp_err_need(out->calls, err, "simulating"));
    do {
        struct rp_whatif_call *call = &out->calls[out->n];

        call->args.list = out;
        RP_TRY(read_call(&p, call));
        out->n++;
    } while (*p.at && *p.at++);
    return RP_OK;
}
