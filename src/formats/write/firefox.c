/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes Firefox Profiler's processed profiles (profiler.firefox.com): for each thread the stacks
 * that its samples use, as tables by column. A function is written for each frame. Samples without
 * times follow each other.
 */
#include "formats/write/stacks.h"
#include "formats/write/writers.h"
#include "io/escaped.h"

#include <stdio.h>
#include <stdlib.h>

struct firefox_writer {
    const struct rp_trace *t;
    struct rp_emit e;
    uint32_t *stack_of, *frame_of;   /* from the trace's numbers to the thread's */
    RP_VEC(uint32_t) stacks, frames; /* from the thread's numbers to the trace's */
    struct rp_err *err;
};

struct column { /* `put` writes the i-th value; if it is NULL, all of them are `same` */
    const char *key;
    void (*put)(struct firefox_writer *w, size_t i);
    const char *same;
};

/* "key": [n values] */
static void put_column(struct firefox_writer *w, const struct column *c, size_t n)
{
    rp_emit_text(&w->e, "\"");
    rp_emit_text(&w->e, c->key);
    rp_emit_text(&w->e, "\": [");
    for (size_t i = 0; i < n; i++) {
        if (i)
            rp_emit_char(&w->e, ',');
        if (c->put)
            c->put(w, i);
        else
            rp_emit_text(&w->e, c->same);
    }
    rp_emit_char(&w->e, ']');
}

/* ------------------------------------------------------------------ tables of a thread */

/* Adds the stacks of a sample that the thread does not have yet, the outermost first. */
static enum rp_code add_stack(struct firefox_writer *w, uint32_t stack, rp_stack_path *path)
{
    const struct rp_call_samples *s = &w->t->samples;

    path->n = 0;
    for (; stack != RP_NONE && w->stack_of[stack] == RP_NONE; stack = s->stacks[stack].parent)
        RP_TRY(rp_vec_push(path, stack, w->err));
    while (path->n) {
        uint32_t one = path->at[--path->n], frame = s->stacks[one].frame;

        w->stack_of[one] = (uint32_t)w->stacks.n;
        RP_TRY(rp_vec_push(&w->stacks, one, w->err));
        if (w->frame_of[frame] != RP_NONE)
            continue;
        w->frame_of[frame] = (uint32_t)w->frames.n;
        RP_TRY(rp_vec_push(&w->frames, frame, w->err));
    }
    return RP_OK;
}

static const struct rp_call_frame *frame_at(const struct firefox_writer *w, size_t i)
{
    return &w->t->samples.frame[w->frames.at[i]];
}

static void put_prefix(struct firefox_writer *w, size_t i)
{
    uint32_t up = w->t->samples.stacks[w->stacks.at[i]].parent;

    if (up == RP_NONE)
        rp_emit_text(&w->e, "null");
    else
        rp_emit_i64(&w->e, w->stack_of[up]);
}

static void put_frame(struct firefox_writer *w, size_t i)
{
    rp_emit_i64(&w->e, w->frame_of[w->t->samples.stacks[w->stacks.at[i]].frame]);
}

static void put_category(struct firefox_writer *w, size_t i)
{
    rp_emit_i64(&w->e, w->t->samples.frame[w->t->samples.stacks[w->stacks.at[i]].frame].kind);
}

static void put_frame_category(struct firefox_writer *w, size_t i)
{
    rp_emit_i64(&w->e, frame_at(w, i)->kind);
}

static void put_index(struct firefox_writer *w, size_t i)
{
    rp_emit_i64(&w->e, (int64_t)i);
}

static void put_line(struct firefox_writer *w, size_t i)
{
    if (frame_at(w, i)->line)
        rp_emit_i64(&w->e, frame_at(w, i)->line);
    else
        rp_emit_text(&w->e, "null");
}

/* Function i has texts 2 i and 2 i + 1. */
static void put_name_index(struct firefox_writer *w, size_t i)
{
    rp_emit_i64(&w->e, 2 * (int64_t)i);
}

static void put_file_index(struct firefox_writer *w, size_t i)
{
    if (frame_at(w, i)->file)
        rp_emit_i64(&w->e, 2 * (int64_t)i + 1);
    else
        rp_emit_text(&w->e, "null");
}

static void put_string(struct firefox_writer *w, size_t i)
{
    const struct rp_call_frame *f = frame_at(w, i / 2);

    rp_emit_json_text(&w->e, rp_trace_str(w->t, i % 2 ? f->file : f->name));
}

static void put_table(struct firefox_writer *w, const char *name, const struct column *columns,
                      size_t rows)
{
    rp_emit_text(&w->e, ",\n\"");
    rp_emit_text(&w->e, name);
    rp_emit_text(&w->e, "\": {");
    for (; columns->key; columns++) {
        put_column(w, columns, rows);
        rp_emit_text(&w->e, ", ");
    }
    rp_emit_text(&w->e, "\"length\": ");
    rp_emit_i64(&w->e, (int64_t)rows);
    rp_emit_char(&w->e, '}');
}

static const char no_rows[] =
    ",\n\"resourceTable\": {\"lib\": [], \"name\": [], \"host\": [], \"type\": [], \"length\": 0},\n"
    "\"nativeSymbols\": {\"address\": [], \"functionSize\": [], \"libIndex\": [], \"name\": [], "
    "\"length\": 0},\n"
    "\"markers\": {\"category\": [], \"data\": [], \"endTime\": [], \"name\": [], \"phase\": [], "
    "\"startTime\": [], \"length\": 0},\n";

static void put_tables(struct firefox_writer *w)
{
    static const struct column stacks[] = {{"prefix", put_prefix, NULL},
                                           {"frame", put_frame, NULL},
                                           {"category", put_category, NULL},
                                           {"subcategory", NULL, "0"},
                                           {NULL, NULL, NULL}};
    static const struct column frames[] = {{"func", put_index, NULL},
                                           {"line", put_line, NULL},
                                           {"address", NULL, "-1"},
                                           {"inlineDepth", NULL, "0"},
                                           {"category", put_frame_category, NULL},
                                           {"subcategory", NULL, "0"},
                                           {"nativeSymbol", NULL, "null"},
                                           {"innerWindowID", NULL, "null"},
                                           {"implementation", NULL, "null"},
                                           {"column", NULL, "null"},
                                           {"optimizations", NULL, "null"},
                                           {NULL, NULL, NULL}};
    static const struct column funcs[] = {
        {"name", put_name_index, NULL},   {"fileName", put_file_index, NULL},
        {"resource", NULL, "-1"},         {"isJS", NULL, "false"},
        {"relevantForJS", NULL, "false"}, {"lineNumber", NULL, "null"},
        {"columnNumber", NULL, "null"},   {NULL, NULL, NULL}};
    static const struct column strings = {"stringArray", put_string, NULL};

    put_table(w, "stackTable", stacks, w->stacks.n);
    put_table(w, "frameTable", frames, w->frames.n);
    put_table(w, "funcTable", funcs, w->frames.n);
    rp_emit_text(&w->e, no_rows);
    put_column(w, &strings, 2 * w->frames.n);
}

/* ------------------------------------------------------------------ samples of a thread */

/* With six decimals, milliseconds are exact to the nanosecond. */
static void put_ms(struct firefox_writer *w, int64_t ns)
{
    char text[40];

    snprintf(text, sizeof text, "%s%llu.%06llu", ns < 0 ? "-" : "",
             (unsigned long long)(ns < 0 ? -(uint64_t)ns : (uint64_t)ns) / 1000000,
             (unsigned long long)(ns < 0 ? -(uint64_t)ns : (uint64_t)ns) % 1000000);
    rp_emit_text(&w->e, text);
}

static void put_samples(struct firefox_writer *w, uint32_t begin, uint32_t end)
{
    static const char *const types[RP_WEIGHT_UNITS] = {"tracing-ms", "samples", "bytes"};
    const struct rp_call_samples *s = &w->t->samples;
    bool is_time = s->unit == RP_WEIGHT_NS;
    int64_t at_ns = 0;

    rp_emit_text(&w->e, "\"samples\": {\"weightType\": ");
    rp_emit_json_text(&w->e, types[s->unit]);
    rp_emit_text(&w->e, ", \"stack\": [");
    for (uint32_t i = begin; i < end; i++) {
        rp_emit_text(&w->e, i > begin ? "," : "");
        if (s->stack[i] == RP_NONE)
            rp_emit_text(&w->e, "null");
        else
            rp_emit_i64(&w->e, w->stack_of[s->stack[i]]);
    }
    rp_emit_text(&w->e, "],\n\"time\": [");
    for (uint32_t i = begin; i < end; i++) {
        rp_emit_text(&w->e, i > begin ? "," : "");
        put_ms(w, s->ts_ns[i] == RP_NO_TS ? at_ns : s->ts_ns[i]);
        at_ns +=
            is_time && s->weight[i] > 0 && s->weight[i] < INT64_C(1) << 50 ? s->weight[i] : 1000000;
    }
    rp_emit_text(&w->e, "],\n\"weight\": [");
    for (uint32_t i = begin; i < end; i++) {
        rp_emit_text(&w->e, i > begin ? "," : "");
        if (is_time)
            put_ms(w, s->weight[i]);
        else
            rp_emit_i64(&w->e, s->weight[i]);
    }
    rp_emit_text(&w->e, "],\n\"threadCPUDelta\": [");
    for (uint32_t i = begin; i < end; i++) {
        rp_emit_text(&w->e, i > begin ? "," : "");
        if (s->flags[i] & RP_SAMPLE_WAITED)
            rp_emit_char(&w->e, '0');
        else if (s->flags[i] & RP_SAMPLE_RAN)
            rp_emit_i64(&w->e, is_time && s->weight[i] > 0 ? s->weight[i] : 1);
        else
            rp_emit_text(&w->e, "null");
    }
    rp_emit_text(&w->e, "], \"length\": ");
    rp_emit_i64(&w->e, end - begin);
    rp_emit_char(&w->e, '}');
}

/* The categories are the kinds of frames, in their order. */
static const char meta[] =
    "\"interval\": 1, \"startTime\": 0, \"processType\": 0, \"product\": \"reprise\", "
    "\"stackwalk\": 0, \"version\": 24, \"preprocessedProfileVersion\": 41, \"symbolicated\": "
    "true, \"debug\": false, \"markerSchema\": [], \"extensions\": {\"id\": [], \"name\": [], "
    "\"baseURL\": [], \"length\": 0},\n"
    "\"sampleUnits\": {\"time\": \"ms\", \"eventDelay\": \"ms\", \"threadCPUDelta\": \"ns\"},\n"
    "\"categories\": [{\"name\": \"Other\", \"color\": \"grey\", \"subcategories\": [\"Other\"]}, "
    "{\"name\": \"Python\", \"color\": \"yellow\", \"subcategories\": [\"Other\"]}, "
    "{\"name\": \"Native\", \"color\": \"blue\", \"subcategories\": [\"Other\"]}, "
    "{\"name\": \"Kernel\", \"color\": \"orange\", \"subcategories\": [\"Other\"]}]},\n"
    "\"libs\": [], \"pages\": [], \"counters\": [],\n"
    "\"threads\": [\n";

static enum rp_code put_profile(struct firefox_writer *w)
{
    const struct rp_call_samples *s = &w->t->samples;
    uint32_t end;

    rp_emit_text(&w->e, "{\"meta\": {");
    if (s->unit ==
        RP_WEIGHT_COUNT) /* a key of our own, because the format has no unit for the interval */
        rp_emit_text(&w->e, "\"weightsAreCounts\": true, ");
    rp_emit_text(&w->e, meta);
    for (uint32_t begin = 0; begin < s->n; begin = end) {
        for (end = begin; end < s->n && s->track[end] == s->track[begin]; end++)
            ;
        if (begin)
            rp_emit_text(&w->e, ",\n");

        /* Writes the samples from begin to end, which belong to one thread. */
        rp_track track = w->t->samples.track[begin];
        const struct rp_track_info *k = &w->t->tracks[track];
        const struct rp_process *process = &w->t->processes[k->process];
        char room[32];

        /* The stacks that samples use, each once. */
        rp_stack_path path = {0};
        enum rp_code code = RP_OK;
        for (size_t i = 0; i < w->stacks.n; i++) {
            w->frame_of[s->stacks[w->stacks.at[i]].frame] = RP_NONE;
            w->stack_of[w->stacks.at[i]] = RP_NONE;
        }
        w->stacks.n = w->frames.n = 0;
        for (uint32_t i = begin; i < end && code == RP_OK; i++)
            code = add_stack(w, s->stack[i], &path);
        rp_vec_release(&path);
        RP_TRY(code);
        rp_emit_text(&w->e, "{\"name\": ");
        rp_emit_json_text(&w->e, rp_stacks_thread(w->t, track, room));
        rp_emit_text(&w->e, ", \"processType\": \"default\", \"processName\": ");
        rp_emit_json_text(&w->e, rp_trace_str(w->t, process->name));
        rp_emit_text(&w->e, ", \"isMainThread\": ");
        rp_emit_text(&w->e, k->native_id == process->native_id ? "true" : "false");
        rp_emit_text(&w->e, ", \"processStartupTime\": 0, \"processShutdownTime\": null, "
                            "\"registerTime\": 0, \"unregisterTime\": null, \"pausedRanges\": [], "
                            "\"pid\": \"");
        rp_emit_i64(&w->e, process->native_id);
        rp_emit_text(&w->e, "\", \"tid\": ");
        rp_emit_i64(&w->e, k->native_id);
        rp_emit_text(&w->e, ",\n");
        put_samples(w, begin, end);
        put_tables(w);
        rp_emit_char(&w->e, '}');
    }
    rp_emit_text(&w->e, "]}\n");
    return RP_OK;
}

static enum rp_code write_firefox(const struct rp_trace *t, const char *path,
                                  const struct rp_write_options *options, struct rp_err *err)
{
    struct firefox_writer w = {.t = t, .err = err};

    RP_TRY(rp_stacks_require(t, err));
    w.stack_of = malloc(((size_t)t->samples.nstacks + 1) * sizeof *w.stack_of);
    w.frame_of = malloc(((size_t)t->samples.nframes + 1) * sizeof *w.frame_of);
    enum rp_code code = w.stack_of && w.frame_of
                            ? rp_emit_open(&w.e, path, options ? options->gzip_level : 0, err)
                            : rp_err_nomem(err, "writing samples");
    if (code == RP_OK) {
        memset(w.stack_of, 0xff, ((size_t)t->samples.nstacks + 1) * sizeof *w.stack_of);
        memset(w.frame_of, 0xff, ((size_t)t->samples.nframes + 1) * sizeof *w.frame_of);
        code = put_profile(&w);
        if (code == RP_OK)
            code = rp_emit_close(&w.e, err);
        rp_emit_abandon(&w.e);
    }
    free(w.stack_of);
    free(w.frame_of);
    rp_vec_release(&w.stacks);
    rp_vec_release(&w.frames);
    return code;
}

const struct rp_writer rp_writer_firefox = {
    .name = "firefox",
    .endings = {".firefox.json", ".firefox.json.gz"},
    .summary = "samples for the Firefox Profiler",
    .streams = true,
    .available = true,
    .samples = RP_SAMPLES_ALL,
    .write = write_firefox,
};
