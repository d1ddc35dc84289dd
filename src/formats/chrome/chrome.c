/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chrome's trace-event JSON in all its dialects: PyTorch's Kineto since 2021, XProf (JAX,
 * TensorFlow), TensorFlow's Timeline, Horovod's timeline, bare arrays, DFTracer's lines. One pass
 * over the text with the pull parser, which may read, decompress and index on another thread;
 * memory is that of the model and some blocks. This file reads the document: it finds the events
 * and handles files that are truncated or damaged.
 *
 *   ends early, with complete events before it   read up to there, with a warning
 *   a bare array without its ']'                 as Horovod writes it: nothing is missing
 *   damaged, or no JSON                          an error; with salvage, everything before it, and
 *                                                inside the list whatever follows it
 *   compressed, and damaged                      the same, but nothing after the first error:
 *                                                decoded garbage may look like events
 */
#include "formats/chrome/chrome.h"
#include "base/clock.h"
#include "base/each.h"

#include <locale.h>
#include <stdlib.h>

#define PROGRESS_EVENTS 8192 /* number of events between progress reports */

/* -------------------------------------------------------------------------- sniffing */

/* Whether the file has keys of other JSON documents: execution traces, rocprof. */
static bool is_other(const uint8_t *head, size_t n)
{
    static const char *const keys[] = {"nodes", "rocprofiler-sdk-tool", NULL};

    for (size_t i = 0; keys[i]; i++)
        if (rp_sniff_json_key(head, n, 1, keys[i]) == 1)
            return true;
    return false;
}

static enum rp_sniff sniff_array(const uint8_t *head, size_t n, size_t at)
{
    at = rp_sniff_space(head, n, at + 1);
    if (at == n)
        return RP_SNIFF_FALLBACK;
    if (head[at] != '{')
        return RP_SNIFF_NO;
    at = rp_sniff_space(head, n, at + 1);
    if (at < n && head[at] == '}')
        return RP_SNIFF_FALLBACK; /* the first one is empty */
    int has = rp_sniff_json_key(head, n, 2, "ph");
    return has > 0 ? RP_SNIFF_CERTAIN : has == 0 ? RP_SNIFF_FALLBACK : RP_SNIFF_NO;
}

static enum rp_sniff sniff_chrome(const uint8_t *head, size_t n, const char *file)
{
    size_t at = rp_sniff_space(head, n, 0);

    (void)file;
    if (at == n || (head[at] != '{' && head[at] != '['))
        return RP_SNIFF_NO;
    if (head[at] == '[')
        return sniff_array(head, n, at);
    int has = rp_sniff_json_key(head, n, 1, "traceEvents");
    if (has > 0)
        return RP_SNIFF_CERTAIN;
    return has < 0 || is_other(head, n) ? RP_SNIFF_NO : RP_SNIFF_FALLBACK;
}

/* Whether '}' and the '{' of the next event have no comma between them. */
static enum rp_sniff sniff_dftracer(const uint8_t *head, size_t n, const char *file)
{
    size_t at = rp_sniff_space(head, n, 0), end;

    (void)file;
    if (at == n || head[at] != '[' || sniff_array(head, n, at) != RP_SNIFF_CERTAIN)
        return RP_SNIFF_NO;
    at = rp_sniff_space(head, n, at + 1);
    const uint8_t *line = memchr(head + at, '\n', n - at);
    if (!line || line == head)
        return RP_SNIFF_NO;
    for (end = (size_t)(line - head); end > at && (head[end - 1] == '\r' || head[end - 1] == ' ');)
        end--;
    at = rp_sniff_space(head, n, (size_t)(line - head));
    return head[end - 1] == '}' && at < n && head[at] == '{' ? RP_SNIFF_CERTAIN : RP_SNIFF_NO;
}

/* -------------------------------------------------------------------------- the document */

/* Reads the elements of the list, to its end or to a syntax error. */
static enum rp_code read_elements(struct rp_chrome *r, struct rp_err *err)
{
    uint32_t depth = rp_json_depth(r->json), left = PROGRESS_EVENTS;
    struct rp_json_token v;
    enum rp_code code;

    while (rp_json_element(r->json)) {
        r->in_event = true;
        if (rp_chrome_read_fast(r, &code, err)) {
            RP_TRY(code);
        } else if (rp_json_trailing(r->json)) {
            r->in_event = false;
            return RP_OK;
        } else if (rp_chrome_learn_event(r), rp_json_value(r->json, &v) == RP_JSON_OBJECT) {
            RP_TRY(rp_chrome_read_event(r, err));
        } else if (!rp_json_failed(r->json)) {
            r->health->skipped_events++;
            rp_chrome_pass(r->json, depth);
        }
        if (rp_json_failed(r->json))
            return RP_OK;
        r->in_event = false;
        if (!--left) {
            left = PROGRESS_EVENTS;
            const struct rp_read_options *o = r->options;
            bool compressed = *rp_input_compression(r->in) != '\0';
            if (o->progress && !o->progress(o->progress_user, rp_json_offset(r->json),
                                            compressed ? 0 : rp_input_file_size(r->in)))
                return rp_err_set(err, RP_CANCELLED, "reading was cancelled");
        }
    }
    return RP_OK;
}

/* After a syntax error in compressed input: a flipped bit often causes a syntax error long before
 * the checksum fails, so the rest is read first. */
static void check_rest(struct rp_chrome *r, bool keep)
{
    if (r->drained || !rp_json_failed(r->json) || rp_json_ended_early(r->json) ||
        !*rp_input_compression(r->in))
        return;
    r->drained = true;
    rp_json_drain(r->json, keep, &r->rest);
}

static bool go_on(struct rp_chrome *r, uint32_t depth, uint64_t *skipped)
{
    static const char *const keys[] = {"ph",  "name", "cat", "pid",  "tid", "ts",
                                       "dur", "id",   "bp",  "args", NULL};

    check_rest(r, true);
    return r->rest.code == RP_OK && rp_json_resync(r->json, depth, keys, skipped);
}

static enum rp_code read_list(struct rp_chrome *r, struct rp_err *err)
{
    uint32_t depth = rp_json_depth(r->json);
    uint64_t skipped;

    r->has_list = true;
    for (;;) {
        RP_TRY(read_elements(r, err));
        if (!rp_json_failed(r->json) || !r->options->salvage || !go_on(r, depth, &skipped))
            return RP_OK;
        r->in_event = false;
        r->health->salvaged = 1;
        r->health->skipped_bytes += (int64_t)skipped;
        r->bare_breaks += !skipped;
    }
}

static enum rp_code read_object(struct rp_chrome *r, struct rp_err *err)
{
    struct rp_json_token key, v;

    while (rp_json_field(r->json, &key)) {
        if (rp_json_key_is(&key, "stackFrames")) {
            RP_TRY(rp_chrome_read_frames(r, err));
            continue;
        }
        if (rp_json_key_is(&key, "samples")) {
            RP_TRY(rp_chrome_read_samples(r, err));
            continue;
        }
        if (key.has_escapes || !rp_json_key_is(&key, "traceEvents")) {
            RP_TRY(rp_chrome_read_header(r, &key, err));
            continue;
        }
        if (rp_json_value(r->json, &v) == RP_JSON_ARRAY)
            RP_TRY(read_list(r, err));
        else if (!rp_json_failed(r->json))
            return rp_err_set_at(err, RP_FORMAT, rp_json_offset(r->json),
                                 "'traceEvents' is not a list, at byte %llu",
                                 (unsigned long long)rp_json_offset(r->json));
    }
    return RP_OK;
}

static enum rp_code read_document(struct rp_chrome *r, struct rp_err *err)
{
    struct rp_json_token v;

    switch (rp_json_value(r->json, &v)) {
    case RP_JSON_OBJECT:
        return read_object(r, err);
    case RP_JSON_ARRAY:
        r->is_array = true;
        return read_list(r, err);
    default:
        return RP_OK;
    }
}

/* -------------------------------------------------------------------------- how it ends */

/* Whether the input failed instead of just ending. */
static bool is_damaged(struct rp_chrome *r)
{
    char byte;
    size_t got;

    rp_json_close(r->json); /* the parser uses the input until it is closed */
    r->json = NULL;
    return rp_input_read(r->in, &byte, 1, &got, NULL) != RP_OK;
}

static enum rp_code warn_early(struct rp_chrome *r, uint64_t offset, bool cut, struct rp_err *err)
{
    if (r->is_array && !r->in_event && !cut)
        return rp_builder_warn(
            r->builder, err,
            "the list of events is not closed: the program was still writing, or the file is "
            "truncated at byte %llu",
            (unsigned long long)offset);
    r->health->truncated = 1;
    return rp_builder_warn(r->builder, err, "the file is truncated at byte %llu%s",
                           (unsigned long long)offset,
                           r->in_event ? ", inside an event, which is skipped" : "");
}

static enum rp_code warn_salvaged(struct rp_chrome *r, const struct rp_err *why, struct rp_err *err)
{
    int n = (int)strcspn(why->text, "\n");

    r->health->salvaged = 1;
    return rp_builder_warn(r->builder, err,
                           "the file is damaged; everything before the damage was read: %.*s", n,
                           why->text);
}

/* If the compressed data after a syntax error is damaged, that damage is reported instead. If a
 * limit was exceeded, the syntax error stays. */
static enum rp_code name_rest(struct rp_chrome *r, enum rp_code code, struct rp_err *err)
{
    uint64_t offset = rp_json_offset(r->json);

    check_rest(r, false);
    if (r->rest.code == RP_OK || r->rest.code == RP_LIMIT)
        return code;
    if (strcmp(r->rest.text, err->text) ==
        0) /* the text is complete, so the damage may be anywhere */
        return code;
    if (r->rest.code != RP_FORMAT) {
        *err = r->rest;
        return r->rest.code;
    }
    return rp_err_set_at(
        err, RP_FORMAT, offset,
        "the compressed data is damaged; the content is not reliable from byte %llu on: %s",
        (unsigned long long)offset, r->rest.text);
}

/* Ends reading after the syntax error in err. */
static enum rp_code end_with_error(struct rp_chrome *r, enum rp_code code, struct rp_err *err)
{
    uint64_t offset = rp_json_offset(r->json);
    bool early = rp_json_ended_early(r->json), cut = rp_json_stats(r->json).truncated;
    struct rp_err why = *err;

    if (!r->nevents || (code != RP_FORMAT && code != RP_LIMIT))
        return code;
    if (early && code == RP_FORMAT && !is_damaged(r))
        return warn_early(r, offset, cut, err);
    return r->options->salvage ? warn_salvaged(r, &why, err) : code;
}

static enum rp_code end_document(struct rp_chrome *r, struct rp_err *err)
{
    struct rp_err why;
    enum rp_code code = rp_json_finish(r->json, &why);
    struct rp_json_stats stats = rp_json_stats(r->json);

    r->health->control_bytes = (int64_t)stats.control_bytes;
    r->content_bytes = rp_json_offset(r->json);
    if (code != RP_OK) {
        code = end_with_error(r, name_rest(r, code, &why), &why);
        if (err)
            *err = why;
        if (code != RP_OK)
            return code;
    } else if (stats.truncated) { /* only the end of the compressed stream is missing, not data */
        RP_TRY(warn_early(r, r->content_bytes, true, err));
    }

    /* The text is complete: checks that it has events. */
    if (!r->has_list)
        return rp_err_set(err, RP_FORMAT,
                          "JSON, but not a trace: it has no list of events ('traceEvents')");
    if (!r->nevents && !r->sampled.samples.n && (r->is_array || r->health->skipped_events))
        return rp_err_set(
            err, RP_FORMAT,
            "JSON, but not a trace: none of the %lld elements of its list is an event",
            (long long)r->health->skipped_events);

    /* Skipped bytes are counted in health and reported from there. */
    if (r->bare_breaks)
        RP_TRY(rp_builder_warn(r->builder, err,
                               "the file is damaged: commas between events are missing"));
    if (stats.trailing_commas)
        RP_TRY(rp_builder_warn(
            r->builder, err,
            "a comma before a closing bracket is not strict JSON; nothing was skipped"));
    if (rp_input_trailing(r->in))
        RP_TRY(rp_builder_warn(r->builder, err,
                               "other data follows the compressed data and was ignored"));
    RP_TRY(rp_chrome_end_samples(r, err));
    RP_TRY(rp_chrome_end_fused(r, err));
    return rp_chrome_end_facts(&r->facts, err);
}

/* -------------------------------------------------------------------------- reading */

static enum rp_code open_reader(struct rp_chrome *r, struct rp_err *err)
{
    struct rp_json_options json = {.limits = r->options->limits,
                                   .threaded = r->options->threaded,
                                   .trailing_comma = true,
                                   .missing_comma = r->lines};
    uint32_t none;

    rp_arena_init(&r->arena);
    rp_map_init(&r->category_of);
    rp_map_init(&r->fused.process_of);
    rp_map_init(&r->fused.count_of);
    rp_map_init(&r->sampled.frame_of);
    RP_TRY(rp_builder_new(r->options->limits, &r->builder, err));
    r->facts.builder = r->builder;
    r->trace = rp_builder_borrow_trace(r->builder);
    r->health = &r->trace->health;
    RP_TRY(r->lines ? rp_chrome_intern(r, "dftracer", 8, &r->trace->format, err)
                    : rp_chrome_intern(r, "chrome-json", 11, &r->trace->format, err));
    RP_TRY(rp_chrome_category(r, NULL, &none, err));
    RP_TRY(rp_chrome_learn_init(r, err));
    return rp_json_open(r->in, &json, &r->json, err);
}

static void release_reader(struct rp_chrome *r)
{
    rp_json_close(r->json);
    rp_builder_free(r->builder);
    rp_arena_release(&r->arena);
    RP_EACH(rp_map_release, &r->category_of, &r->fused.process_of, &r->fused.count_of);
    rp_vec_release(&r->fused.processes);
    rp_chrome_release_samples(r);
    RP_EACH(rp_vec_release, &r->categories, &r->nodes, &r->args);
    rp_chrome_learn_release(r);
    RP_EACH(rp_vec_release, &r->track_kind, &r->is_device, &r->scratch);
    if (r->c_locale)
        freelocale((locale_t)r->c_locale);
    free(r);
}

static enum rp_code read_trace(struct rp_input *in, const struct rp_read_options *options,
                               bool lines, struct rp_import *to, struct rp_err *err)
{
    struct rp_chrome *r = calloc(1, sizeof *r);
    int64_t begin_ns = rp_clock_ns();

    RP_TRY(rp_err_need(r, err, "reading a trace"));
    r->in = in;
    r->options = options;
    r->lines = lines;
    enum rp_code code = open_reader(r, err);
    if (code == RP_OK)
        code = read_document(r, err);
    if (code == RP_OK)
        code = end_document(r, err);
    if (code == RP_OK) {
        struct rp_builder *builder = r->builder;

        r->builder = NULL;
        to->content_bytes = r->content_bytes;
        release_reader(r); /* released first, because the passes need memory */
        to->read_ns = rp_clock_ns() - begin_ns;
        code = rp_builder_finish(builder, &to->trace, err);
        to->finish_ns = rp_clock_ns() - begin_ns - to->read_ns;
        return code;
    }
    release_reader(r);
    return code;
}

static enum rp_code read_chrome(struct rp_input *in, const struct rp_read_options *options,
                                struct rp_import *to, struct rp_err *err)
{
    return read_trace(in, options, false, to, err);
}

static enum rp_code read_dftracer(struct rp_input *in, const struct rp_read_options *options,
                                  struct rp_import *to, struct rp_err *err)
{
    return read_trace(in, options, true, to, err);
}

const struct rp_format rp_format_chrome_json = {
    .name = "chrome-json",
    .summary = "Chrome trace events as JSON",
    .files = "*.json, *.json.gz",
    .written_by = "torch.profiler, JAX, TensorFlow, Horovod",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_chrome,
    .read = read_chrome,
};

const struct rp_format rp_format_dftracer = {
    .name = "dftracer",
    .summary = "Chrome trace events, one a line, without commas",
    .files = "*.pfw, *.pfw.gz",
    .written_by = "DFTracer",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_dftracer,
    .read = read_dftracer,
};
