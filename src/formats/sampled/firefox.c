/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads Firefox Profiler's processed profiles, which samply and others write. Each thread has
 * tables by column; newer versions have some of them in "shared":
 *
 *     {"meta": {"interval": 1.0, ...}, "libs": [{"name": "libc.so.6", ...}, ...],
 *      "shared": {"stringArray": [...]},
 *      "threads": [{"name": "main", "pid": "7", "tid": 8,
 *                   "samples": {"stack": [0, ...], "time": [0.5, ...], "weight": null, ...},
 *                   "stackTable": {"prefix": [null, 0], "frame": [0, 1]},
 *                   "frameTable": {"func": [...], "line": [...]},
 *                   "funcTable": {"name": [...], "fileName": [...], "resource": [...]},
 *                   "resourceTable": {"lib": [...], "name": [...]}, "stringArray": [...]}]}
 *
 * What threads share may come after them, so the text is walked twice. A sample stands for the
 * interval times its weight; a thread whose CPU time did not change was waiting.
 */
#include "base/decimal.h"
#include "formats/sampled/sampled.h"
#include "io/json_pull.h"

/* X(name, key, table, key of the table, decimals) */
#define COLUMNS(X)                                \
    X(STACK_PREFIX, "stackTable", "prefix", 0)    \
    X(STACK_FRAME, "stackTable", "frame", 0)      \
    X(FRAME_FUNC, "frameTable", "func", 0)        \
    X(FRAME_LINE, "frameTable", "line", 0)        \
    X(FUNC_NAME, "funcTable", "name", 0)          \
    X(FUNC_FILE, "funcTable", "fileName", 0)      \
    X(FUNC_RESOURCE, "funcTable", "resource", 0)  \
    X(RESOURCE_LIB, "resourceTable", "lib", 0)    \
    X(RESOURCE_NAME, "resourceTable", "name", 0)  \
    X(SAMPLE_STACK, "samples", "stack", 0)        \
    X(SAMPLE_WEIGHT, "samples", "weight", 6)      \
    X(SAMPLE_CPU, "samples", "threadCPUDelta", 0) \
    X(SAMPLE_TIME, "samples", "time", 6)          \
    X(SAMPLE_DELTA, "samples", "timeDeltas", 6)
enum column {
#define COLUMN_ENUM(name, table, key, scale) name,
    COLUMNS(COLUMN_ENUM)
#undef COLUMN_ENUM
        NCOLUMNS
};

static const struct {
    const char *table, *key;
    unsigned scale;
} columns[NCOLUMNS] = {
#define COLUMN_ROW(name, table, key, scale) {table, key, scale},
    COLUMNS(COLUMN_ROW)
#undef COLUMN_ROW
};

#define NOTHING INT64_MIN /* null in a column */
#define MILLION 1000000   /* weights are read with six decimals */

typedef RP_VEC(int64_t) column_vec;

struct tables {
    column_vec at[NCOLUMNS];
    RP_VEC(rp_str) strings;
    bool by_bytes, by_time; /* unit of the weights; if neither is set, samples */
};

struct firefox {
    struct rp_profile p;
    struct rp_arena texts;
    RP_VEC(rp_str) libs;
    struct tables shared, own; /* own: tables of the thread that is being read */
    RP_VEC(uint32_t) stacks;   /* of the thread: its stacks in the builder */
    int64_t interval_ns;
    int64_t pid, tid;
    const char *name, *process;
    uint32_t unit;
    bool has_unit, counts; /* counts: 'reprise convert' has written that weights are not times */
    uint64_t left_out;
};

static enum rp_code bad_json(struct firefox *f, const char *what)
{
    uint64_t at = rp_json_offset(f->p.json);

    if (rp_json_failed(f->p.json))
        return rp_json_finish(f->p.json, f->p.err);
    return rp_err_set_at(f->p.err, RP_FORMAT, at, "byte %llu: %s", (unsigned long long)at, what);
}

/* ------------------------------------------------------------------ values */

/* Reads a text, or a number as its text; otherwise the result is empty. */
static enum rp_code read_text(struct firefox *f, struct rp_bytes *out)
{
    struct rp_json_token value;
    enum rp_json_kind kind = rp_json_value(f->p.json, &value);

    *out = (struct rp_bytes){0};
    if (kind == RP_JSON_OBJECT || kind == RP_JSON_ARRAY)
        return bad_json(f, "a text is expected here");
    if (kind == RP_JSON_STRING && value.has_escapes && !rp_json_decode(f->p.json, &value))
        return rp_json_finish(f->p.json, f->p.err);
    if (kind == RP_JSON_STRING || kind == RP_JSON_NUMBER)
        *out = (struct rp_bytes){(const uint8_t *)value.text, value.len};
    return RP_OK;
}

static enum rp_code read_column(struct firefox *f, column_vec *to, unsigned scale)
{
    struct rp_json_token value;
    enum rp_json_kind kind = rp_json_value(f->p.json, &value);

    to->n = 0;
    if (kind == RP_JSON_NULL)
        return RP_OK;
    if (kind != RP_JSON_ARRAY)
        return bad_json(f, "a column is not a list");
    while (rp_json_element(f->p.json)) {
        int64_t number = NOTHING;

        kind = rp_json_value(f->p.json, &value);
        if (kind == RP_JSON_OBJECT || kind == RP_JSON_ARRAY)
            return bad_json(f, "a number is expected here");
        if (kind == RP_JSON_NUMBER && rp_decimal_parse(value.text, value.len, scale, &number) &
                                          (RP_DECIMAL_INVALID | RP_DECIMAL_RANGE))
            return bad_json(f, "a number is out of range");
        RP_TRY(rp_vec_push(to, number, f->p.err));
    }
    return RP_OK;
}

static enum rp_code read_table(struct firefox *f, struct tables *t, const char *table)
{
    struct rp_json_token key, value;
    struct rp_bytes text;

    if (rp_json_value(f->p.json, &value) != RP_JSON_OBJECT)
        return bad_json(f, "a table is not an object");
    while (rp_json_next(f->p.json, &key)) {
        size_t i = 0;

        if (!strcmp(table, "samples") && rp_json_key_is(&key, "weightType")) {
            RP_TRY(read_text(f, &text));
            t->by_bytes = rp_bytes_are(text, "bytes");
            t->by_time = rp_bytes_are(text, "tracing-ms");
            continue;
        }
        while (i < NCOLUMNS &&
               (strcmp(columns[i].table, table) != 0 || !rp_json_key_is(&key, columns[i].key)))
            i++;
        if (i < NCOLUMNS)
            RP_TRY(read_column(f, &t->at[i], columns[i].scale));
    }
    return RP_OK;
}

/* Reads a table or the texts, if the key is one of them. */
static enum rp_code read_part(struct firefox *f, struct tables *t, const struct rp_json_token *key)
{
    if (rp_json_key_is(key, "stringArray") || rp_json_key_is(key, "stringTable")) {
        struct rp_json_token value;
        struct rp_bytes text;
        rp_str str;
        t->strings.n = 0;
        if (rp_json_value(f->p.json, &value) != RP_JSON_ARRAY)
            return bad_json(f, "the texts are not a list");
        while (rp_json_element(f->p.json)) {
            RP_TRY(read_text(f, &text));
            RP_TRY(rp_proto_trace_intern(&f->p.t, text, &str, f->p.err));
            RP_TRY(rp_vec_push(&t->strings, str, f->p.err));
        }
        return RP_OK;
    }
    for (size_t i = 0; i < NCOLUMNS; i++)
        if (rp_json_key_is(key, columns[i].table))
            return read_table(f, t, columns[i].table);
    return RP_OK;
}

/* ------------------------------------------------------------------ stacks of a thread */

static const column_vec *column(const struct firefox *f, enum column c)
{
    return f->own.at[c].n ? &f->own.at[c] : &f->shared.at[c];
}

/* The value of a cell; NOTHING if the row, or its value, does not exist. */
static int64_t cell(const struct firefox *f, enum column c, int64_t row)
{
    const column_vec *v = column(f, c);

    return row >= 0 && (uint64_t)row < v->n ? v->at[row] : NOTHING;
}

static rp_str string_at(const struct firefox *f, int64_t i)
{
    const struct tables *t = f->own.strings.n ? &f->own : &f->shared;

    return i >= 0 && (uint64_t)i < t->strings.n ? t->strings.at[i] : 0;
}

static struct rp_bytes bytes_of(struct firefox *f, rp_str str)
{
    return rp_bytes_of(rp_builder_borrow_str(f->p.t.builder, str, NULL));
}

static enum rp_code make_stacks(struct firefox *f)
{
    const column_vec *prefix = column(f, STACK_PREFIX), *frame = column(f, STACK_FRAME);
    uint32_t id;

    f->stacks.n = 0;
    for (size_t i = 0; i < frame->n; i++) {
        int64_t up = i < prefix->n ? prefix->at[i] : NOTHING;

        if (up != NOTHING && (up < 0 || (uint64_t)up >= i))
            return bad_json(f, "a stack is not after the one that it continues");

        /* A function without a symbol is named by its address in its library:
           "libc.so.6+0x271d0". */
        int64_t func = cell(f, FRAME_FUNC, frame->at[i]), line = cell(f, FRAME_LINE, frame->at[i]);
        int64_t resource = cell(f, FUNC_RESOURCE, func), lib = cell(f, RESOURCE_LIB, resource);
        struct rp_call_frame made = {.name = string_at(f, cell(f, FUNC_NAME, func)),
                                     .file = string_at(f, cell(f, FUNC_FILE, func)),
                                     .line = line > 0 && line < UINT32_MAX ? (uint32_t)line : 0};
        struct rp_bytes name = bytes_of(f, made.name);
        if (!made.file && lib >= 0 && (uint64_t)lib < f->libs.n)
            made.file = f->libs.at[lib];
        if (!made.file)
            made.file = string_at(f, cell(f, RESOURCE_NAME, resource));
        made.kind = rp_profile_kind_of_file(bytes_of(f, made.file));
        if (rp_bytes_begin(name, "0x") && made.file) {
            const char *text = rp_arena_textf(
                &f->texts, "%s+%s", rp_builder_borrow_str(f->p.t.builder, made.file, NULL),
                rp_builder_borrow_str(f->p.t.builder, made.name, NULL));

            RP_TRY(rp_arena_check(&f->texts, "naming addresses", f->p.err));
            RP_TRY(rp_proto_trace_intern(&f->p.t, rp_bytes_of(text), &made.name, f->p.err));
        }
        RP_TRY(rp_builder_frame(f->p.t.builder, &made, &id, f->p.err));
        RP_TRY(rp_builder_stack(f->p.t.builder, up == NOTHING ? RP_NONE : f->stacks.at[up], id, &id,
                                f->p.err));
        RP_TRY(rp_vec_push(&f->stacks, id, f->p.err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ samples of a thread */

static int64_t weight_of(const struct firefox *f, size_t i)
{
    int64_t weight = f->own.at[SAMPLE_WEIGHT].n ? cell(f, SAMPLE_WEIGHT, (int64_t)i) : MILLION;

    weight = weight == NOTHING ? MILLION : weight;
    if (f->own.by_time)
        return weight; /* in milliseconds with six decimals */
    if (f->own.by_bytes || f->unit == RP_WEIGHT_COUNT)
        return weight / MILLION;
    return (int64_t)((double)weight / MILLION * (double)f->interval_ns);
}

static enum rp_code add_thread(struct firefox *f)
{
    const column_vec *time = &f->own.at[SAMPLE_TIME], *delta = &f->own.at[SAMPLE_DELTA];
    int64_t now = 0;
    rp_track track;

    if (!f->own.at[SAMPLE_STACK].n)
        return RP_OK;

    /* The first thread decides the unit; threads with another unit are left out. */
    static const char *const names[RP_WEIGHT_UNITS] = {"time", "samples", "memory"};
    uint32_t unit = f->own.by_bytes                                        ? RP_WEIGHT_BYTES
                    : f->own.by_time || (f->interval_ns > 0 && !f->counts) ? RP_WEIGHT_NS
                                                                           : RP_WEIGHT_COUNT;
    bool fits = !f->has_unit || unit == f->unit;
    if (!f->has_unit) {
        f->has_unit = true;
        f->unit = unit;
        RP_TRY(rp_profile_unit(&f->p, unit, names[unit]));
    }
    if (!fits) {
        f->left_out++;
        return RP_OK;
    }
    RP_TRY(make_stacks(f));
    RP_TRY(rp_profile_thread(&f->p, f->pid, f->tid, rp_bytes_of(f->name), &track));
    if (*f->process)
        RP_TRY(rp_profile_process_name(&f->p, track, rp_bytes_of(f->process)));
    for (size_t i = 0; i < f->own.at[SAMPLE_STACK].n; i++) {
        int64_t stack = f->own.at[SAMPLE_STACK].at[i], cpu = cell(f, SAMPLE_CPU, (int64_t)i);
        int64_t at = i < time->n ? time->at[i] : NOTHING;

        if (i < delta->n && delta->at[i] != NOTHING &&
            !__builtin_add_overflow(now, delta->at[i], &now))
            at = now;
        if (stack != NOTHING && (stack < 0 || (uint64_t)stack >= f->stacks.n))
            return bad_json(f, "a stack that the file does not have");
        f->p.stack = stack == NOTHING ? RP_NONE : f->stacks.at[stack];
        at = at == NOTHING || at > RP_TIME_MAX_NS || at < -RP_TIME_MAX_NS ? RP_NO_TS : at;
        RP_TRY(rp_profile_sample(&f->p, track, at, weight_of(f, i),
                                 cpu == NOTHING ? 0
                                 : cpu > 0      ? RP_SAMPLE_RAN
                                                : RP_SAMPLE_WAITED));
    }
    return RP_OK;
}

static enum rp_code keep_name(struct firefox *f, const char **out)
{
    struct rp_bytes text;

    RP_TRY(read_text(f, &text));
    *out = rp_arena_textf(&f->texts, "%.*s", (int)(text.n < 4096 ? text.n : 4096),
                          text.n ? (const char *)text.at : "");
    return rp_arena_check(&f->texts, "reading names", f->p.err);
}

/* Ids are numbers, or texts that begin with one ("7.1"). */
static enum rp_code read_id(struct firefox *f, int64_t other, int64_t *out)
{
    struct rp_bytes text;
    size_t n = 0;

    RP_TRY(read_text(f, &text));
    while (n < text.n && text.at[n] >= '0' && text.at[n] <= '9')
        n++;
    text.n = n;
    if (!rp_bytes_number(text, out))
        *out = other;
    return RP_OK;
}

static enum rp_code read_thread(struct firefox *f, int64_t number)
{
    struct rp_json_token key, value;

    for (size_t i = 0; i < NCOLUMNS; i++)
        f->own.at[i].n = 0;
    f->own.strings.n = 0;
    f->own.by_bytes = f->own.by_time = false;
    f->pid = 0;
    f->tid = number;
    f->name = f->process = "";
    if (rp_json_value(f->p.json, &value) != RP_JSON_OBJECT)
        return bad_json(f, "a thread is not an object");
    while (rp_json_next(f->p.json, &key)) {
        if (rp_json_key_is(&key, "name"))
            RP_TRY(keep_name(f, &f->name));
        else if (rp_json_key_is(&key, "processName"))
            RP_TRY(keep_name(f, &f->process));
        else if (rp_json_key_is(&key, "pid"))
            RP_TRY(read_id(f, 0, &f->pid));
        else if (rp_json_key_is(&key, "tid"))
            RP_TRY(read_id(f, number, &f->tid));
        else
            RP_TRY(read_part(f, &f->own, &key));
    }
    return rp_json_failed(f->p.json) ? RP_OK : add_thread(f);
}

/* ------------------------------------------------------------------ the file */

static enum rp_code read_meta(struct firefox *f)
{
    struct rp_json_token key, value;

    if (rp_json_value(f->p.json, &value) != RP_JSON_OBJECT)
        return bad_json(f, "'meta' is not an object");
    while (rp_json_next(f->p.json, &key)) {
        if (rp_json_key_is(&key, "weightsAreCounts")) {
            f->counts = rp_json_value(f->p.json, &value) == RP_JSON_TRUE;
        } else if (rp_json_key_is(&key, "interval") &&
                   (rp_json_value(f->p.json, &value) != RP_JSON_NUMBER ||
                    rp_decimal_parse(value.text, value.len, 6, &f->interval_ns) &
                        (RP_DECIMAL_INVALID | RP_DECIMAL_RANGE))) {
            return bad_json(f, "the interval is not a number");
        }
    }
    return RP_OK;
}

static enum rp_code read_libs(struct firefox *f)
{
    struct rp_json_token key, value;
    struct rp_bytes text;

    if (rp_json_value(f->p.json, &value) != RP_JSON_ARRAY)
        return bad_json(f, "'libs' is not a list");
    while (rp_json_element(f->p.json)) {
        rp_str name = 0;
        if (rp_json_value(f->p.json, &value) != RP_JSON_OBJECT)
            return bad_json(f, "a library is not an object");
        while (rp_json_next(f->p.json, &key)) {
            if (rp_json_key_is(&key, "name")) {
                RP_TRY(read_text(f, &text));
                RP_TRY(rp_proto_trace_intern(&f->p.t, text, &name, f->p.err));
            }
        }
        RP_TRY(rp_vec_push(&f->libs, name, f->p.err));
    }
    return RP_OK;
}

static enum rp_code read_shared(struct firefox *f)
{
    struct rp_json_token key, value;

    if (rp_json_value(f->p.json, &value) != RP_JSON_OBJECT)
        return bad_json(f, "'shared' is not an object");
    while (rp_json_next(f->p.json, &key))
        RP_TRY(read_part(f, &f->shared, &key));
    return RP_OK;
}

static enum rp_code read_threads(struct firefox *f)
{
    struct rp_json_token value;
    int64_t number = 0;

    if (rp_json_value(f->p.json, &value) != RP_JSON_ARRAY)
        return bad_json(f, "'threads' is not a list");
    while (rp_json_element(f->p.json))
        RP_TRY(read_thread(f, number++));
    return RP_OK;
}

static enum rp_code walk_file(struct firefox *f, bool threads)
{
    struct rp_json_token key, value;

    if (rp_json_value(f->p.json, &value) != RP_JSON_OBJECT)
        return bad_json(f, "the file is not a JSON object");
    while (rp_json_next(f->p.json, &key)) {
        if (threads && rp_json_key_is(&key, "threads"))
            RP_TRY(read_threads(f));
        else if (!threads && rp_json_key_is(&key, "meta"))
            RP_TRY(read_meta(f));
        else if (!threads && rp_json_key_is(&key, "libs"))
            RP_TRY(read_libs(f));
        else if (!threads && rp_json_key_is(&key, "shared"))
            RP_TRY(read_shared(f));
    }
    return rp_json_finish(f->p.json, f->p.err);
}

static void release_tables(struct tables *t)
{
    for (size_t i = 0; i < NCOLUMNS; i++)
        rp_vec_release(&t->at[i]);
    rp_vec_release(&t->strings);
}

static void firefox_release(struct firefox *f)
{
    rp_profile_release(&f->p);
    release_tables(&f->shared);
    release_tables(&f->own);
    rp_vec_release(&f->libs);
    rp_vec_release(&f->stacks);
    rp_arena_release(&f->texts);
}

static enum rp_code read_firefox(struct rp_input *in, const struct rp_read_options *options,
                                 struct rp_import *to, struct rp_err *err)
{
    RP_SCOPED(firefox_release) struct firefox f = {.texts = RP_ARENA_INIT};

    RP_TRY(rp_profile_begin(&f.p, in, options, "firefox", err));
    RP_TRY(rp_profile_json(&f.p));
    RP_TRY(walk_file(&f, false));
    RP_TRY(rp_profile_json(&f.p));
    RP_TRY(walk_file(&f, true));
    if (f.left_out)
        RP_TRY(rp_builder_warn(f.p.t.builder, err,
                               "%llu threads were left out: their unit is not that of the first",
                               (unsigned long long)f.left_out));
    return rp_profile_end(&f.p, to);
}

static enum rp_sniff sniff_firefox(const uint8_t *head, size_t n, const char *file)
{
    (void)file;
    return rp_sniff_json_key(head, n, 1, "meta") == 1 &&
                   memmem(head, n, "\"preprocessedProfileVersion\"", 28)
               ? RP_SNIFF_CERTAIN
               : RP_SNIFF_NO;
}

const struct rp_format rp_format_firefox = {
    .name = "firefox",
    .summary = "Firefox Profiler's JSON: samples of threads",
    .files = "*.firefox.json, profile.json",
    .written_by = "samply, the Firefox Profiler, 'reprise convert'",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_firefox,
    .read = read_firefox,
};
