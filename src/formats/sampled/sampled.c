/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the readers of sampled profiles share. A frame costs two look-ups in the string table and
 * two in maps; lines are not copied. Nothing here is recursive, because stacks may be as deep as
 * the file is long.
 */
#include "formats/sampled/sampled.h"

#include "base/clock.h"

#include <ctype.h>
#include <inttypes.h>

enum rp_code rp_profile_begin(struct rp_profile *p, struct rp_input *in,
                              const struct rp_read_options *options, const char *format,
                              struct rp_err *err)
{
    *p = (struct rp_profile){.begin_ns = rp_clock_ns(), .stack = RP_NONE, .err = err};
    RP_TRY(rp_proto_trace_init(&p->t, in, options, format, err));
    p->at = p->t.bytes;
    return RP_OK;
}

enum rp_code rp_profile_unit(struct rp_profile *p, uint32_t unit, const char *unit_name)
{
    p->t.trace->samples.unit = unit;
    return rp_proto_trace_text(&p->t, unit_name ? unit_name : "", &p->t.trace->samples.unit_name,
                               p->err);
}

static void close_json(struct rp_profile *p)
{
    rp_json_close(p->json);
    rp_input_close(p->text);
    p->json = NULL;
    p->text = NULL;
}

enum rp_code rp_profile_json(struct rp_profile *p)
{
    struct rp_json_options options = {.limits = &p->t.limits};

    close_json(p);
    RP_TRY(rp_input_open_memory("profile", p->t.bytes, p->t.n, &p->t.limits, &p->text, p->err));
    return rp_json_open(p->text, &options, &p->json, p->err);
}

enum rp_code rp_profile_end(struct rp_profile *p, struct rp_import *to)
{
    if (!p->samples)
        return rp_err_set(p->err, RP_FORMAT, "no samples in the profile");
    if (p->skipped)
        RP_TRY(rp_builder_warn(p->t.builder, p->err,
                               "%llu records are not samples and were skipped",
                               (unsigned long long)p->skipped));
    close_json(p); /* closed first, because the passes need memory */
    to->unread |= p->unread;
    return rp_proto_trace_finish(&p->t, to, p->begin_ns, p->err);
}

void rp_profile_release(struct rp_profile *p)
{
    close_json(p);
    rp_map_release(&p->named);
    rp_vec_release(&p->kept);
    rp_proto_trace_release(&p->t);
}

/* ------------------------------------------------------------------ texts */

bool rp_profile_line(struct rp_profile *p, struct rp_bytes *line)
{
    const uint8_t *end = p->t.bytes + p->t.n;

    if (p->at == end)
        return false;
    const uint8_t *nl = memchr(p->at, '\n', (size_t)(end - p->at));
    *line = (struct rp_bytes){p->at, (size_t)((nl ? nl : end) - p->at)};
    if (line->n && line->at[line->n - 1] == '\r')
        line->n--;
    p->at = nl ? nl + 1 : end;
    p->line++;
    return true;
}

enum rp_code rp_profile_bad_line(struct rp_profile *p, const char *what)
{
    return rp_err_set(p->err, RP_FORMAT, "line %llu: %s", (unsigned long long)p->line, what);
}

struct rp_bytes rp_bytes_trim(struct rp_bytes b)
{
    while (b.n && isspace(b.at[0])) {
        b.at++;
        b.n--;
    }
    while (b.n && isspace(b.at[b.n - 1]))
        b.n--;
    return b;
}

static bool bytes_end(struct rp_bytes b, const char *word)
{
    size_t n = strlen(word);

    return b.n >= n && memcmp(b.at + b.n - n, word, n) == 0;
}

bool rp_bytes_number(struct rp_bytes b, int64_t *out)
{
    int64_t x = 0;

    for (size_t i = 0; i < b.n; i++) {
        if (!isdigit(b.at[i]) || x > (INT64_C(1) << 62) / 10 - 1)
            return false;
        x = x * 10 + (b.at[i] - '0');
    }
    *out = x;
    return b.n > 0;
}

/* ------------------------------------------------------------------ frames */

uint32_t rp_profile_kind_of_file(struct rp_bytes file)
{
    static const char *const not_kernel[] = {"[unknown]", "[vdso]", "[vsyscall]", "[heap]",
                                             "[stack]",   "[anon",  "[JIT]"};

    if (bytes_end(file, ".py") || bytes_end(file, ".pyx") || rp_bytes_begin(file, "<frozen"))
        return RP_FRAME_PYTHON;
    if (!file.n)
        return RP_FRAME_OTHER;
    for (size_t i = 0; i < sizeof not_kernel / sizeof *not_kernel; i++)
        if (rp_bytes_begin(file, not_kernel[i]))
            return RP_FRAME_NATIVE;
    return file.at[0] == '[' ? RP_FRAME_KERNEL : RP_FRAME_NATIVE;
}

const char *rp_profile_place(struct rp_arena *arena, struct rp_bytes file, uint64_t place)
{
    const uint8_t *slash = file.n ? memrchr(file.at, '/', file.n) : NULL;
    size_t skip = slash ? (size_t)(slash + 1 - file.at) : 0;

    if (!file.n)
        return rp_arena_textf(arena, "0x%" PRIx64, place);
    return rp_arena_textf(arena, "%.*s+0x%" PRIx64, (int)(file.n - skip),
                          (const char *)file.at + skip, place);
}

/* Splits "text:12" into "text" and 12. */
static bool split_line_number(struct rp_bytes *text, uint32_t *line)
{
    const uint8_t *colon = memrchr(text->at, ':', text->n);
    int64_t number;

    if (!colon || colon == text->at ||
        !rp_bytes_number((struct rp_bytes){colon + 1, (size_t)(text->at + text->n - colon - 1)},
                         &number) ||
        number > UINT32_MAX)
        return false;
    *line = (uint32_t)number;
    text->n = (size_t)(colon - text->at);
    return true;
}

/* "name (file.py:12)" or "name (file.py)" */
static bool parse_file_in_brackets(struct rp_bytes text, struct rp_profile_frame *f)
{
    const uint8_t *open = text.n ? memrchr(text.at, '(', text.n) : NULL;

    if (!open || open < text.at + 2 || open[-1] != ' ' || text.at[text.n - 1] != ')')
        return false;
    struct rp_bytes file = {open + 1, (size_t)(text.at + text.n - open - 2)};
    if (!split_line_number(&file, &f->line) && rp_profile_kind_of_file(file) != RP_FRAME_PYTHON)
        return false; /* the brackets contain arguments of a C++ function */
    f->name = (struct rp_bytes){text.at, (size_t)(open - text.at - 1)};
    f->file = file;
    f->kind = rp_profile_kind_of_file(file);
    return true;
}

/* "py::name:file" of Python's perf trampoline */
static bool parse_trampoline(struct rp_bytes text, struct rp_profile_frame *f)
{
    if (!rp_bytes_begin(text, "py::"))
        return false;
    text.at += 4;
    text.n -= 4;
    const uint8_t *colon = memchr(text.at, ':', text.n);
    f->kind = RP_FRAME_PYTHON;
    f->name = (struct rp_bytes){text.at, colon ? (size_t)(colon - text.at) : text.n};
    if (colon)
        f->file = (struct rp_bytes){colon + 1, (size_t)(text.at + text.n - colon - 1)};
    return true;
}

/* "file.py:name:12" of austin */
static bool parse_austin(struct rp_bytes text, struct rp_profile_frame *f)
{
    struct rp_bytes rest = text;

    if (!split_line_number(&rest, &f->line))
        return false;
    const uint8_t *colon = memrchr(rest.at, ':', rest.n);
    if (!colon || colon == rest.at)
        return false;
    f->file = (struct rp_bytes){rest.at, (size_t)(colon - rest.at)};
    if (rp_profile_kind_of_file(f->file) != RP_FRAME_PYTHON) {
        f->file.n = 0;
        return false;
    }
    f->name = (struct rp_bytes){colon + 1, (size_t)(rest.at + rest.n - colon - 1)};
    f->kind = RP_FRAME_PYTHON;
    return true;
}

struct rp_profile_frame rp_profile_parse_frame(struct rp_bytes text)
{
    struct rp_profile_frame f = {.name = text};

    if (parse_trampoline(text, &f) || parse_file_in_brackets(text, &f) || parse_austin(text, &f))
        return f;
    f = (struct rp_profile_frame){.name = text};
    if (bytes_end(text, "_[k]"))
        f.kind = RP_FRAME_KERNEL;
    else if (bytes_end(text, "_[j]") || bytes_end(text, "_[i]"))
        f.kind = RP_FRAME_NATIVE;
    if (f.kind != RP_FRAME_OTHER)
        f.name.n -= 4;
    return f;
}

/* ------------------------------------------------------------------ threads, stacks, samples */

enum rp_code rp_profile_thread(struct rp_profile *p, int64_t pid, int64_t tid, struct rp_bytes name,
                               rp_track *out)
{
    uint32_t process;
    rp_str text;

    RP_TRY(rp_builder_process(p->t.builder, pid, 0, &process, p->err));
    if (tid == RP_PROFILE_BY_NAME) {
        RP_TRY(rp_proto_trace_intern(&p->t, name, &text, p->err));
        return rp_builder_track(p->t.builder, process, 0, text, true, out, p->err);
    }
    RP_TRY(rp_builder_track(p->t.builder, process, tid, 0, true, out, p->err));
    if (!name.n || rp_map_get(&p->named, *out) != RP_MAP_NONE)
        return RP_OK;
    RP_TRY(rp_map_put(&p->named, *out, 1, p->err));
    RP_TRY(rp_proto_trace_intern(&p->t, name, &text, p->err));
    return rp_proto_trace_name(&p->t, *out, false, text, p->err);
}

enum rp_code rp_profile_process_name(struct rp_profile *p, rp_track track, struct rp_bytes name)
{
    rp_str text;

    RP_TRY(rp_proto_trace_intern(&p->t, name, &text, p->err));
    return rp_proto_trace_name(&p->t, track, true, text, p->err);
}

enum rp_code rp_profile_push(struct rp_profile *p, const struct rp_profile_frame *frame)
{
    struct rp_call_frame f = {.line = frame->line, .kind = frame->kind};
    uint32_t id;

    RP_TRY(rp_proto_trace_intern(&p->t, frame->name, &f.name, p->err));
    RP_TRY(rp_proto_trace_intern(&p->t, frame->file, &f.file, p->err));
    RP_TRY(rp_builder_frame(p->t.builder, &f, &id, p->err));
    return rp_builder_stack(p->t.builder, p->stack, id, &p->stack, p->err);
}

enum rp_code rp_profile_keep(struct rp_profile *p, const struct rp_profile_frame *frame)
{
    return rp_vec_push(&p->kept, *frame, p->err);
}

enum rp_code rp_profile_push_kept(struct rp_profile *p)
{
    while (p->kept.n)
        RP_TRY(rp_profile_push(p, &p->kept.at[--p->kept.n]));
    return RP_OK;
}

enum rp_code rp_profile_sample(struct rp_profile *p, rp_track track, int64_t ts_ns, int64_t weight,
                               uint8_t flags)
{
    struct rp_raw_sample raw = {ts_ns, weight, track, p->stack, flags};

    p->stack = RP_NONE;
    p->samples++;
    return rp_builder_add_sample(p->t.builder, &raw, p->err);
}
