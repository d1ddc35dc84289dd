/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TESTS_CHROME_FIXTURE_H
#define RP_TESTS_CHROME_FIXTURE_H
/* Loading small documents through the table of formats, and looking at what came out. */
#include "unit.h"

#include "formats/formats.h"

/* What the tests load is named "t.json". */
static inline enum rp_code load_bytes(const void *bytes, size_t n,
                                      const struct rp_read_options *options,
                                      struct rp_import *import, struct rp_err *err)
{
    struct rp_input *in;
    enum rp_code code = rp_input_open_memory("t.json", bytes, n, NULL, &in, err);

    if (code != RP_OK)
        return code;
    return rp_format_read(in, options, import, err);
}

/* A document that must load. */
static inline struct rp_import load(const char *text)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import = RP_IMPORT_INIT;

    assert_ok(load_bytes(text, strlen(text), NULL, &import, &err), &err);
    assert_non_null(import.trace);
    assert_ok(rp_trace_validate(import.trace, &err), &err);
    return import;
}

static inline struct rp_import load_salvaged(const char *text)
{
    struct rp_read_options options = {.salvage = true};
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import = RP_IMPORT_INIT;

    assert_ok(load_bytes(text, strlen(text), &options, &import, &err), &err);
    assert_ok(rp_trace_validate(import.trace, &err), &err);
    return import;
}

/* A document that must not load; the message must contain all of `parts` (NULL-terminated). */
static inline void refuse(const char *text, enum rp_code want, const char *const *parts)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import = RP_IMPORT_INIT;

    assert_code(load_bytes(text, strlen(text), NULL, &import, &err), want);
    assert_null(import.trace);
    for (; *parts; parts++)
        assert_contains(err.text, *parts);
}
#define REFUSE(text, want, ...) refuse(text, want, (const char *const[]){__VA_ARGS__, NULL})

/* The i-th event with that name. */
static inline rp_event find_nth(const struct rp_trace *t, const char *name, unsigned i)
{
    for (rp_event e = 0; e < t->ev.n; e++)
        if (strcmp(rp_trace_str(t, t->ev.name[e]), name) == 0 && i-- == 0)
            return e;
    fail_msg("no event '%s'", name);
    return RP_NONE;
}

static inline rp_event find(const struct rp_trace *t, const char *name)
{
    return find_nth(t, name, 0);
}

static inline const struct rp_origin *origin_of(const struct rp_trace *t, rp_event e)
{
    return &t->origins[t->ev.origin[e]];
}

/* The argument as text: "i 7", "f 0.5", "s text", "r [1, 2]", or "-" where it has none. */
static inline const char *arg_text(const struct rp_trace *t, rp_event e, const char *key, char *out,
                                   size_t cap)
{
    uint32_t n = rp_args_count(&t->args, t->ev.shape[e], t->ev.arg_row[e]), i;

    for (i = 0; i < n; i++) {
        struct rp_arg a = rp_args_at(&t->args, t->ev.shape[e], t->ev.arg_row[e], i);

        if (strcmp(rp_trace_str(t, a.key), key) != 0)
            continue;
        if (a.type == RP_ARG_I64)
            snprintf(out, cap, "i %lld", (long long)a.v.i);
        else if (a.type == RP_ARG_F64)
            snprintf(out, cap, "f %.17g", a.v.f);
        else
            snprintf(out, cap, "%c %s", a.type == RP_ARG_STR ? 's' : 'r', rp_trace_str(t, a.v.s));
        return out;
    }
    snprintf(out, cap, "-");
    return out;
}

#define assert_arg(t, e, key, want)                                                  \
    do {                                                                             \
        char arg_text_[256];                                                         \
        assert_string_equal(arg_text(t, e, key, arg_text_, sizeof arg_text_), want); \
    } while (0)

#define assert_str(t, s, want) assert_string_equal(rp_trace_str(t, s), want)

static inline bool warns(const struct rp_trace *t, const char *part)
{
    for (uint32_t i = 0; i < t->nwarnings; i++)
        if (strstr(rp_trace_str(t, t->warnings[i]), part))
            return true;
    return false;
}

#endif
