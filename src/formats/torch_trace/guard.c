/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads from a guard that failed what differed, and what would avoid it. A guard is an expression
 * of Python or a sentence of Dynamo's C++ guards, after the compile that did not fit:
 *
 *     1/0: tensor 'x' size mismatch at index 1. expected 128, actual 160
 *     1/1: mode == 'log'          # if mode == "exp":  # work/programs.py:96 in by_constant
 */
#include "formats/torch_trace/read.h"

#include <string.h>

struct guard_row {                  /* the first row whose text the guard contains is used */
    const char *has, *kind, *avoid; /* avoid: %s stands for the name of the tensor or expression */
};

static const struct guard_row mismatches[] = {
    {" size mismatch", "size", NULL},
    {" dtype mismatch", "dtype", "pass '%s' with one dtype"},
    {" rank mismatch", "rank",
     "pass '%s' with one number of dimensions, or compile a function for each"},
    {" stride mismatch", "stride", "pass '%s' with one layout: x.contiguous() before the call"},
    {" dispatch key set mismatch", "dispatch",
     "pass '%s' from one device and in one mode (inference_mode, no_grad)"},
    {" requires_grad mismatch", "requires_grad",
     "call it always with or always without gradients of '%s'"},
    {" device index mismatch", "device", "pass '%s' from one device"},
    {" type mismatch", "type", "pass '%s' with one type"},
};

static const struct guard_row expressions[] = {
    {"GLOBAL_STATE changed", "global state",
     "call it in one mode: grad, autocast, deterministic and number of threads are compiled in"},
    {"___check_global_state", "global state",
     "call it in one mode: grad, autocast, deterministic and number of threads are compiled in"},
    {"___check_type_id", "type", "pass a value of one type"},
    {"type(", "type", "pass a value of one type"},
    {"___check_obj_id", "object", "keep the object: another one is compiled for again"},
    {" is ", "object", "keep the object: another one is compiled for again"},
    {"len(", "length", "keep the length, or loop outside of what is compiled"},
    {"Eq(", "size", "dynamic sizes: what is computed with a size makes it a constant again"},
    {"Ne(", "size", "dynamic sizes: what is computed with a size makes it a constant again"},
    {" == ", "constant",
     "'%s' is a constant: pass a number as a tensor, and keep other values (each is compiled for)"},
};

static struct rp_snip first_line(struct rp_snip text)
{
    struct rp_snip line = {text.at, 0};

    (void)rp_snip_line(&text, &line);
    return line;
}

/* Removes the id, "1/0: …", from the text and returns it. */
static struct rp_snip take_entry(struct rp_snip *text)
{
    size_t n = 0;

    while (n < text->n &&
           ((text->at[n] >= '0' && text->at[n] <= '9') || text->at[n] == '/' || text->at[n] == '!'))
        n++;
    struct rp_snip entry = {text->at, n};
    if (!n || n + 1 >= text->n || text->at[n] != ':')
        return (struct rp_snip){text->at, 0};
    *text = rp_snip_trim((struct rp_snip){text->at + n + 1, text->n - n - 1});
    return entry;
}

/* The text between two words. */
static struct rp_snip between(struct rp_snip text, const char *from, const char *to)
{
    const char *at = memmem(text.at, text.n, from, strlen(from)), *end = text.at + text.n;

    if (!at)
        return (struct rp_snip){text.at, 0};
    at += strlen(from);
    const char *stop = memmem(at, (size_t)(end - at), to, strlen(to));
    return (struct rp_snip){at, (size_t)((stop ? stop : end) - at)};
}

/* Makes a sentence with the name in place of '%s'. */
static const char *sentence(const char *text, struct rp_snip name, struct rp_arena *arena)
{
    const char *gap = strstr(text, "%s");

    return gap ? rp_arena_textf(arena, "%.*s%.*s%s", (int)(gap - text), text, (int)name.n, name.at,
                                gap + 2)
               : text;
}

#define N(snip) (int)(snip).n, (snip).at

/* In "mode == 'log' # …", reads the expression before the comment. */
static void read_expression(struct rp_snip text, struct rp_arena *arena, struct rp_torch_guard *out)
{
    const char *hash = text.n ? memmem(text.at, text.n, "  #", 3) : NULL;
    struct rp_snip is =
        rp_snip_trim((struct rp_snip){text.at, hash ? (size_t)(hash - text.at) : text.n});
    const char *equals = is.n ? memmem(is.at, is.n, " == ", 4) : NULL;
    struct rp_snip name = {is.at, equals ? (size_t)(equals - is.at) : is.n};

    out->what = rp_arena_textf(arena, "not %.*s", N(is));
    out->kind = "guard";
    out->avoid = "keep what the guard names the same in all calls";
    for (size_t i = 0; i < sizeof expressions / sizeof expressions[0]; i++)
        if (rp_snip_has(is, expressions[i].has)) {
            out->kind = expressions[i].kind;
            out->avoid = sentence(expressions[i].avoid, name, arena);
            return;
        }
}

void rp_torch_guard_read(const char *reason, bool dynamic, struct rp_arena *arena,
                         struct rp_torch_guard *out)
{
    struct rp_snip whole = {reason, strlen(reason)}, text = first_line(whole);
    struct rp_torch_frame frame;

    *out = (struct rp_torch_guard){.text = reason, .line = RP_TORCH_NO_ID};
    struct rp_snip entry = take_entry(&text);
    out->entry = entry.n ? rp_snip_copy(entry, arena) : NULL;

    /* "… # work/programs.py:96 in by_constant" */
    const char *hash = text.n ? memrchr(text.at, '#', text.n) : NULL;
    const char *end = text.at + text.n;
    int64_t number;
    const char *in = hash ? memmem(hash, (size_t)(end - hash), " in ", 4) : NULL;
    const char *colon = in ? memrchr(hash, ':', (size_t)(in - hash)) : NULL;
    if (colon && rp_snip_int((struct rp_snip){colon + 1, (size_t)(in - colon - 1)}, &number)) {
        out->path = rp_snip_copy(
            rp_snip_trim((struct rp_snip){hash + 1, (size_t)(colon - hash - 1)}), arena);
        out->line = number;
    }
    if (rp_torch_user_frame(whole, &frame)) {
        out->path = rp_snip_copy(frame.path, arena);
        out->line = frame.line;
    }
    for (size_t i = 0; i < sizeof mismatches / sizeof mismatches[0]; i++)
        if (rp_snip_begins(text, "tensor ") && rp_snip_has(text, mismatches[i].has)) {
            out->kind = mismatches[i].kind;

            /* "tensor 'x' size mismatch at index 1. expected 8, actual 12" */
            const struct guard_row *row = &mismatches[i];
            struct rp_snip name = between(text, "'", "'"), index = between(text, " at index ", ".");
            struct rp_snip expected = between(text, "expected ", ", actual ");
            struct rp_snip actual = between(text, ", actual ", "\n");
            out->what = rp_arena_textf(arena, "%.*s: %s%s%.*s%s %.*s -> %.*s", N(name), row->kind,
                                       index.n ? "[" : "", N(index), index.n ? "]" : "",
                                       N(expected), N(actual));
            if (row->avoid)
                out->avoid = sentence(row->avoid, name, arena);
            else
                out->avoid = rp_arena_textf(
                    arena,
                    "%s torch._dynamo.mark_dynamic(%.*s, %.*s) before the first call, or pad to one size",
                    dynamic ? "any size is compiled in from here on; to save this compile:"
                            : "call",
                    N(name), N(index));
            return;
        }
    read_expression(text, arena, out);
}

/* Each entry of the cache fails by its own guard. Chooses the kind by which most of them fail, in
   the words of the newest such guard. */
size_t rp_torch_guard_main(const struct rp_torch_guard *guards, size_t n)
{
    size_t best = 0, most = 0;

    for (size_t i = 0; i < n; i++) {
        size_t same = 0;

        for (size_t k = 0; k < n; k++)
            same += !strcmp(guards[i].kind, guards[k].kind);
        if (same > most) {
            most = same;
            best = i;
        }
    }
    return best;
}
