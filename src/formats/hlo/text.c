/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HLO text: what XLA prints and dumps, in both dialects and of every age, also if there is no
 * module around it or it was pasted from a log. One pass over the text in memory; constants and
 * texts of attributes stay slices of it. Linear; about 0.4 us an instruction.
 */
#include "formats/hlo/text.h"
#include "base/each.h"
#include "formats/formats.h"
#include "formats/programs.h"
#include "program/structure.h"

#include <stdio.h>
#include <string.h>

static void hlo_text_release(struct rp_hlo_text *r)
{
    RP_EACH(rp_vec_release, &r->op_of, &r->computation_of);
    rp_strtab_release(&r->shape_texts);
    RP_EACH(rp_vec_release, &r->shape_of, &r->operands, &r->ids, &r->calls, &r->waiting,
            &r->inlined, &r->async, &r->async_attrs);
    rp_vec_release(&r->async_calls);
    rp_map_release(&r->parts_of);
}

bool rp_hlo_text_heading(struct rp_hlo_text *r, const char *word)
{
    size_t n = strlen(word);

    rp_hlo_text_space(r);
    if ((size_t)(r->end - r->at) <= n || memcmp(r->at, word, n) != 0 ||
        !rp_hlo_text_is(r, r->at + n, RP_HLO_CHAR_BLANK))
        return false;
    r->at += n;
    rp_hlo_text_space(r);
    return true;
}

/* "(a: f32[2], b: s32[]) -> f32[2]": redundant with the instructions, so skipped. */
static enum rp_code skip_signature(struct rp_hlo_text *r)
{
    const char *from = r->at;
    uint32_t shape;

    if (rp_hlo_text_peek(r) != '(')
        return RP_OK;
    r->at = rp_hlo_text_bracket_end(r, from);
    if (!r->at) {
        r->at = r->end;
        return RP_HLO_FAIL(r, from, "unclosed list of parameters");
    }
    rp_hlo_text_space(r);
    if (r->end - r->at < 2 || r->at[0] != '-' || r->at[1] != '>')
        return RP_HLO_FAIL(r, r->at, "expected '->' after the parameters");
    r->at += 2;
    rp_hlo_text_space(r);
    return rp_hlo_text_shape(r, &shape);
}

static enum rp_code define_computation(struct rp_hlo_text *r, struct rp_slice name,
                                       const char *where, uint32_t *id)
{
    uint32_t string;

    RP_TRY(rp_program_string(r->p, name.at, name.n, &string, r->err));
    while (r->computation_of.n <= string)
        RP_TRY(rp_vec_push(&r->computation_of, 0, r->err));
    if (r->computation_of.at[string])
        return RP_HLO_FAIL(r, where, "computation '%.*s' is defined twice", (int)name.n, name.at);
    RP_TRY(rp_program_begin(r->p, string, id, r->err));
    r->computation_of.at[string] = *id + 1;
    return RP_OK;
}

static enum rp_code read_instructions(struct rp_hlo_text *r, uint32_t id, const char *where)
{
    while (!rp_hlo_text_take(r, '}'))
        RP_TRY(rp_hlo_text_instruction(r));
    if (!r->p->computations.at[id].n)
        return RP_HLO_FAIL(r, where, "a computation without instructions");
    return RP_OK;
}

/* Reads the computations that are written where they are called, and those inside them. */
static enum rp_code read_inlined(struct rp_hlo_text *r)
{
    const char *behind = r->at;

    while (r->next_inlined < r->inlined.n) {
        struct rp_hlo_inlined body = r->inlined.at[r->next_inlined++];
        const char *name = rp_program_text(r->p, body.name);
        uint32_t id;

        r->at = body.at;
        r->depth = body.depth;
        RP_TRY(define_computation(r, (struct rp_slice){name, (uint32_t)strlen(name), 0}, body.at,
                                  &id));
        RP_TRY(read_instructions(r, id, body.at));
    }
    r->at = behind;
    r->depth = 0;
    return RP_OK;
}

/* Whether computations are written where they are called: "calls=", and '{' on the next line. If
   so, all of them are, and each stands on its own as well. */
static bool has_bodies(const struct rp_hlo_text *r)
{
    const char *line, *s = r->at;

    while (s < r->end && (line = memchr(s, '\n', (size_t)(r->end - s)))) {
        s = line + 1;
        if (line == r->begin || line[-1] != '=')
            continue;
        while (s < r->end && *s == ' ')
            s++;
        if (s < r->end && *s == '{')
            return true;
    }
    return false;
}

static enum rp_code read_computation(struct rp_hlo_text *r)
{
    bool entry = rp_hlo_text_heading(r, "ENTRY");
    const char *where = r->at;
    struct rp_slice name = rp_hlo_text_name(r);
    char unnamed[32];
    uint32_t id;

    rp_hlo_text_space(r);
    if (!name.n && rp_hlo_text_peek(r) != '{')
        return RP_HLO_FAIL(r, where, "expected a computation");
    if (r->bodies && !entry && rp_hlo_text_peek(r) == '{') {
        const char *to = rp_hlo_text_bracket_end(r, r->at);
        if (!to)
            return RP_HLO_FAIL(r, where, "unclosed computation");
        r->at = to;
        return RP_OK;
    }
    if (!name.n)
        name = (struct rp_slice){
            unnamed,
            (uint32_t)snprintf(unnamed, sizeof unnamed, "unnamed.%zu", r->p->computations.n), 0};
    RP_TRY(define_computation(r, name, where, &id));
    if (entry && r->p->entry != RP_NONE)
        return RP_HLO_FAIL(r, where, "a second ENTRY");
    if (entry)
        r->p->entry = id;
    RP_TRY(skip_signature(r));
    RP_TRY(rp_hlo_text_expect(r, '{', "before the instructions of a computation"));
    RP_TRY(read_instructions(r, id, where));
    r->last = id;

    /* ", execution_thread=\"host\"" after a computation */
    while (rp_hlo_text_take(r, ',')) {
        struct rp_slice value;
        uint32_t key, text;
        RP_TRY(rp_hlo_text_attr_key(r, &key));
        rp_hlo_text_space(r);
        if (rp_hlo_text_peek(r) == '"')
            RP_TRY(rp_hlo_text_string(r, &value));
        else
            RP_TRY(rp_hlo_text_value(r, &value));
        RP_TRY(rp_program_string(r->p, value.at, value.n, &text, r->err));
        if (key == RP_ATTR_EXECUTION_THREAD)
            r->p->computations.at[id].thread = text;
    }
    RP_TRY(read_inlined(r));
    return rp_hlo_async_flush(r);
}

/* Resolves calls of computations that are defined after their caller. */
static enum rp_code resolve_calls(struct rp_hlo_text *r)
{
    for (size_t i = 0; i < r->waiting.n; i++) {
        const struct rp_hlo_call *call = &r->waiting.at[i];
        uint32_t id = call->name < r->computation_of.n ? r->computation_of.at[call->name] : 0;

        if (!id)
            return RP_HLO_FAIL(r, call->where, "computation '%s' is not defined",
                               rp_program_text(r->p, call->name));
        r->p->called.at[call->at] = id - 1;
    }
    return RP_OK;
}

static enum rp_code read_module(struct rp_hlo_text *r)
{
    /* "HloModule name, key=value, ..." */
    if (rp_hlo_text_heading(r, "HloModule")) {
        struct rp_slice name = rp_hlo_text_name(r);
        if (!name.n && rp_hlo_text_peek(r) != ',') /* a fingerprint's text has no names */
            return RP_HLO_FAIL(r, r->at, "expected the name of the module");
        RP_TRY(rp_program_string(r->p, name.at, name.n, &r->p->name, r->err));
        rp_hlo_text_take(r, ':'); /* this is how it was written in 2018 */
        while (rp_hlo_text_take(r, ',')) {
            struct rp_slice value;
            uint32_t key;

            RP_TRY(rp_hlo_text_attr_key(r, &key));
            rp_hlo_text_space(r);
            RP_TRY(rp_hlo_text_value(r, &value));
            RP_TRY(rp_program_add_module_attr(r->p, rp_attr_parse(r->p, key, value.at, value.n),
                                              r->err));
        }
    }

    RP_TRY(rp_hlo_text_frames(r));
    r->bodies = has_bodies(r);
    for (rp_hlo_text_space(r); r->at < r->end && *r->at; rp_hlo_text_space(r)) {
        if (r->end - r->at > 10 && memcmp(r->at, "HloModule ", 10) == 0)
            break; /* if a file has several modules, only the first is read */
        if (r->end - r->at > 4 && memcmp(r->at, "*** ", 4) == 0)
            break; /* the end of a dump to standard output */
        RP_TRY(read_computation(r));
    }
    if (!r->p->computations.n)
        return RP_HLO_FAIL(r, r->at, "a module without computations");
    if (r->p->entry == RP_NONE)
        r->p->entry = r->last;
    RP_TRY(resolve_calls(r));
    return rp_program_finish(r->p, r->err);
}

static enum rp_code read_text(struct rp_program *p, const char *text, size_t n,
                              const struct rp_limits *limits, struct rp_err *err)
{
    RP_SCOPED(hlo_text_release) struct rp_hlo_text r = {0};

    memset(&r, 0, sizeof r);
    r.begin = r.at = text;
    r.end = text + n;
    r.p = p;
    r.limits = limits ? *limits : RP_LIMITS_DEFAULT;
    r.err = err;
    RP_TRY(rp_strtab_init(&r.shape_texts, err));
    RP_TRY(rp_vec_push(&r.shape_of, 0, err));
    RP_TRY(read_module(&r));
    return rp_program_validate(p, err);
}

enum rp_code rp_hlo_text_parse(const char *text, size_t n, const struct rp_limits *limits,
                               struct rp_program **out, struct rp_err *err)
{
    struct rp_program *p;

    *out = NULL;
    RP_TRY(rp_program_new("hlo", &p, err));
    enum rp_code code = read_text(p, text, n, limits, err);
    if (code == RP_OK)
        *out = p;
    else
        rp_program_free(p);
    return code;
}

/* ---- recognising ---- */

/* Length of a log's prefix before a line, "2026-01-01 10:00:00.123456: I xla/service/dump.cc:12] ",
   or 0. */
static size_t log_prefix_end(const char *line, size_t n)
{
    const char *close = memmem(line, n < 200 ? n : 200, "] ", 2);
    size_t blank = 2;

    while (n && (line[n - 1] == '\n' || line[n - 1] == '\r'))
        n--;
    if (!close && n && n < 200 && line[n - 1] == ']') { /* an empty line */
        close = line + n - 1;
        blank = 1;
    }
    if (!close)
        return 0;
    const char *s = close;
    while (s > line && s[-1] >= '0' && s[-1] <= '9')
        s--;
    if (s == close || s == line || s[-1] != ':' || memchr(line, '=', (size_t)(close - line)) ||
        memchr(line, '%', (size_t)(close - line)))
        return 0;
    return (size_t)(close - line) + blank;
}

/* Finds the line that begins the module: the offset of its text after a log's prefix, or n. */
static size_t find_module(const char *text, size_t n, size_t *prefix)
{
    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t len = end ? (size_t)(end - text) - at : n - at, blank = 0;

        while (blank < len && (text[at + blank] == ' ' || text[at + blank] == '\t'))
            blank++;
        *prefix = log_prefix_end(text + at, len);
        if (*prefix < blank)
            *prefix = blank;
        if (len - *prefix > 10 && memcmp(text + at + *prefix, "HloModule ", 10) == 0)
            return at;
        at += len + 1;
    }
    *prefix = 0;
    return n;
}

/* The position after blanks and comments. */
static size_t skip_comments(const char *text, size_t n)
{
    size_t at = rp_sniff_space((const uint8_t *)text, n, 0);

    while (at + 1 < n && text[at] == '/' && text[at + 1] == '/') {
        const char *line = memchr(text + at, '\n', n - at);

        at = rp_sniff_space((const uint8_t *)text, n, line ? (size_t)(line - text) : n);
    }
    return at;
}

/* Whether an instruction stands without a module around it: "name {" or "ENTRY name (...", then "x
   = f32[". */
static bool is_bare_instruction(const char *text, size_t n)
{
    size_t at = skip_comments(text, n), from;
    const char *assign, *s;

    if (n - at > 6 && memcmp(text + at, "ENTRY ", 6) == 0)
        at += 6;
    at += at < n && text[at] == '%';
    for (from = at; at < n && rp_hlo_char_class[(unsigned char)text[at]] & RP_HLO_CHAR_NAME; at++)
        ;
    if (at == from || (at - from == 2 && memcmp(text + from, "IR", 2) == 0))
        return false;
    at = rp_sniff_space((const uint8_t *)text, n, at);
    if (at >= n || (text[at] != '{' && text[at] != '('))
        return false;
    assign = memmem(text + at, n - at, " = ", 3);
    if (!assign)
        return false;
    for (s = assign + 3; s < text + n && *s != '[' && s - assign < 20; s++)
        ;
    return s < text + n && *s == '[' &&
           rp_elem_find(assign + 3, (size_t)(s - assign - 3)) != RP_ELEM_INVALID;
}

static enum rp_sniff hlo_text_sniff(const uint8_t *head, size_t n, const char *file)
{
    const char *text = (const char *)head;
    size_t prefix;

    (void)file;
    if (memchr(head, 0, n))
        return RP_SNIFF_NO;
    if (find_module(text, n, &prefix) < n)
        return RP_SNIFF_CERTAIN;
    return is_bare_instruction(text, n) ? RP_SNIFF_LIKELY : RP_SNIFF_NO;
}

/* A copy of a pasted log without what the logger wrote before each line. */
static char *strip_log(struct rp_arena *arena, const char *text, size_t n, size_t *len)
{
    char *out = rp_arena_alloc(arena, n + 1, 1);

    *len = 0;
    for (size_t at = 0; out && at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t line = end ? (size_t)(end - text) - at + 1 : n - at;
        size_t skip = log_prefix_end(text + at, line);

        memcpy(out + *len, text + at + skip, line - skip);
        *len += line - skip;
        at += line;
    }
    return out;
}

/* Whether "*** Begin module_0001.f.txt ***" precedes the module, as in XLA's dumps to standard
   output. Any other text there is an error that should be shown. */
static bool begins_dump(const char *text, size_t n)
{
    size_t at = rp_sniff_space((const uint8_t *)text, n, 0);

    return n - at > 10 && memcmp(text + at, "*** Begin ", 10) == 0;
}

static enum rp_code hlo_text_read(struct rp_input *in, const struct rp_read_options *options,
                                  struct rp_import *to, struct rp_err *err)
{
    const uint8_t *bytes;
    size_t n, at, prefix, len;

    RP_TRY(rp_input_slurp(in, &bytes, &n, err));
    RP_TRY(rp_program_new("hlo", &to->program, err));
    to->borrows_input = true;
    to->content_bytes = n;
    const char *text = (const char *)bytes;
    len = n;
    at = find_module(text, n < RP_SNIFF_BYTES ? n : RP_SNIFF_BYTES, &prefix);
    if (at < n && log_prefix_end(text + at, n - at)) {
        text = strip_log(&to->program->arena, text + at, n - at, &len);
        RP_TRY(rp_err_need(text, err, "reading a log"));
    } else if (at < n && begins_dump(text, at)) {
        text += at;
        len -= at;
    }
    return read_text(to->program, text, len, options->limits, err);
}

const struct rp_format rp_format_hlo_text = {
    .name = "hlo-text",
    .summary = "HLO module as text",
    .files = "*.txt, *.hlo",
    .written_by = "XLA: JAX, TensorFlow, PyTorch/XLA",
    .kind = RP_FORMAT_KIND_PROGRAM,
    .sniff = hlo_text_sniff,
    .read = hlo_text_read,
};
