/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads speedscope's JSON, which has frames that all profiles share, and a profile of one of two
 * types for each thread:
 *
 *     {"$schema": "https://www.speedscope.app/file-format-schema.json",
 *      "shared": {"frames": [{"name": "main", "file": "a.py", "line": 3}, ...]},
 *      "profiles": [{"type": "sampled", "name": "MainThread", "unit": "seconds",
 *                    "samples": [[0, 1], ...], "weights": [0.01, ...]},
 *                   {"type": "evented", "events": [{"type": "O", "frame": 0, "at": 12}, ...]}]}
 *
 * Frames may come after the profiles, and a unit after its weights, so the text is walked three
 * times. A sampled profile has weights, but no times: samplers leave out idle threads. In an
 * evented profile, each interval between two events becomes a sample of the frames that are open
 * then, with its time.
 */
#include "base/decimal.h"
#include "base/each.h"
#include "formats/sampled/sampled.h"
#include "io/json_pull.h"

/* What must be known about a profile before its weights are read. */
struct speedscope_head {
    rp_track track;
    unsigned scale; /* decimals of its unit */
    bool left_out;  /* left out, because its unit is not that of the first profile */
};

struct speedscope {
    struct rp_profile p;
    RP_VEC(uint32_t) frames; /* from the number in the file to the builder's frame */
    RP_VEC(uint32_t) open;   /* for an evented profile: the stack at each depth */
    RP_VEC(uint32_t) nested; /* and its frame */
    RP_VEC(uint32_t) stacks; /* for a sampled profile: the stack of each sample */
    RP_VEC(int64_t) weights;
    RP_VEC(struct speedscope_head) heads; /* by profile */
    unsigned scale;                       /* scale of the profile that is being read */
    rp_track track;
    uint32_t unit; /* unit of the first profile, and thus of all that are read */
    bool has_unit;
    uint64_t left_out;
};

static enum rp_code bad_json(struct speedscope *s, const char *what)
{
    uint64_t at = rp_json_offset(s->p.json);

    return rp_err_set_at(s->p.err, RP_FORMAT, at, "byte %llu: %s", (unsigned long long)at, what);
}

static enum rp_code read_text(struct speedscope *s, struct rp_bytes *out)
{
    struct rp_json_token value;

    *out = (struct rp_bytes){0};
    if (rp_json_value(s->p.json, &value) == RP_JSON_STRING) {
        if (value.has_escapes && !rp_json_decode(s->p.json, &value))
            return rp_json_finish(s->p.json, s->p.err);
        *out = (struct rp_bytes){(const uint8_t *)value.text, value.len};
    } else if (value.kind == RP_JSON_OBJECT || value.kind == RP_JSON_ARRAY) {
        return bad_json(s, "a text is expected here");
    }
    return RP_OK;
}

static enum rp_code read_number(struct speedscope *s, unsigned scale, int64_t *out)
{
    struct rp_json_token value;

    if (rp_json_value(s->p.json, &value) != RP_JSON_NUMBER ||
        rp_decimal_parse(value.text, value.len, scale, out) &
            (RP_DECIMAL_INVALID | RP_DECIMAL_RANGE))
        return rp_json_failed(s->p.json) ? rp_json_finish(s->p.json, s->p.err)
                                         : bad_json(s, "a number is expected here");
    return RP_OK;
}

/* ------------------------------------------------------------------ frames */

static enum rp_code read_frame(struct speedscope *s)
{
    struct rp_call_frame frame = {0};
    struct rp_bytes text = {0}, file = {0};
    struct rp_json_token key, value;
    int64_t line = 0;
    uint32_t id;

    if (rp_json_value(s->p.json, &value) != RP_JSON_OBJECT)
        return bad_json(s, "a frame is not an object");
    while (rp_json_next(s->p.json, &key)) {
        if (rp_json_key_is(&key, "name")) {
            RP_TRY(read_text(s, &text));
            RP_TRY(rp_proto_trace_intern(&s->p.t, text, &frame.name, s->p.err));
        } else if (rp_json_key_is(&key, "file")) {
            RP_TRY(read_text(s, &file));
            frame.kind = rp_profile_kind_of_file(file);
            RP_TRY(rp_proto_trace_intern(&s->p.t, file, &frame.file, s->p.err));
        } else if (rp_json_key_is(&key, "line") &&
                   rp_json_value(s->p.json, &value) == RP_JSON_NUMBER) {
            rp_decimal_parse(value.text, value.len, 0, &line);
        }
    }
    frame.line = line > 0 && line < UINT32_MAX ? (uint32_t)line : 0;
    RP_TRY(rp_builder_frame(s->p.t.builder, &frame, &id, s->p.err));
    return rp_vec_push(&s->frames, id, s->p.err);
}

static enum rp_code read_shared(struct speedscope *s)
{
    struct rp_json_token key, value;

    if (rp_json_value(s->p.json, &value) != RP_JSON_OBJECT)
        return bad_json(s, "'shared' is not an object");
    while (rp_json_next(s->p.json, &key)) {
        if (!rp_json_key_is(&key, "frames") || s->frames.n)
            continue;
        if (rp_json_value(s->p.json, &value) != RP_JSON_ARRAY)
            return bad_json(s, "'frames' is not a list");
        while (rp_json_element(s->p.json))
            RP_TRY(read_frame(s));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ one profile */

static enum rp_code read_frame_number(struct speedscope *s, uint32_t *frame)
{
    int64_t number;

    RP_TRY(read_number(s, 0, &number));
    if (number < 0 || (uint64_t)number >= s->frames.n)
        return bad_json(s, "a frame that the file does not have");
    *frame = s->frames.at[number];
    return RP_OK;
}

static enum rp_code read_samples(struct speedscope *s)
{
    struct rp_json_token value;
    uint32_t frame;

    if (rp_json_value(s->p.json, &value) != RP_JSON_ARRAY)
        return bad_json(s, "'samples' is not a list");
    while (rp_json_element(s->p.json)) {
        uint32_t stack = RP_NONE;

        if (rp_json_value(s->p.json, &value) != RP_JSON_ARRAY)
            return bad_json(s, "a sample is not a list of frames");
        while (rp_json_element(s->p.json)) {
            RP_TRY(read_frame_number(s, &frame));
            RP_TRY(rp_builder_stack(s->p.t.builder, stack, frame, &stack, s->p.err));
        }
        RP_TRY(rp_vec_push(&s->stacks, stack, s->p.err));
    }
    return RP_OK;
}

static enum rp_code read_weights(struct speedscope *s)
{
    struct rp_json_token value;
    int64_t weight;

    if (rp_json_value(s->p.json, &value) != RP_JSON_ARRAY)
        return bad_json(s, "'weights' is not a list");
    while (rp_json_element(s->p.json)) {
        RP_TRY(read_number(s, s->scale, &weight));
        RP_TRY(rp_vec_push(&s->weights, weight, s->p.err));
    }
    return RP_OK;
}

static enum rp_code read_event(struct speedscope *s, int64_t *last)
{
    struct rp_json_token key, value;
    struct rp_bytes type = {0};
    uint32_t frame = RP_NONE;
    int64_t at = INT64_MIN;
    char letter = 0;

    if (rp_json_value(s->p.json, &value) != RP_JSON_OBJECT)
        return bad_json(s, "an event is not an object");
    while (rp_json_next(s->p.json, &key)) {
        if (rp_json_key_is(&key, "type")) {
            RP_TRY(read_text(s, &type));
            letter = type.n == 1 ? (char)type.at[0] : 0;
        } else if (rp_json_key_is(&key, "frame")) {
            RP_TRY(read_frame_number(s, &frame));
        } else if (rp_json_key_is(&key, "at")) {
            RP_TRY(read_number(s, s->scale, &at));
        }
    }
    if ((letter != 'O' && letter != 'C') || frame == RP_NONE || at == INT64_MIN)
        return bad_json(s, "an event without its type, frame or time");
    if (!s->open.n)
        *last = at;

    /* Adds a sample of the frames that were open from *last until now. */
    if (at < *last)
        return bad_json(s, "an event is earlier than the one before");
    if (at > *last && s->open.n) {
        s->p.stack = s->open.at[s->open.n - 1];
        RP_TRY(rp_profile_sample(&s->p, s->track, s->unit == RP_WEIGHT_NS ? *last : RP_NO_TS,
                                 at - *last, 0));
    }
    *last = at;
    uint32_t stack = s->open.n ? s->open.at[s->open.n - 1] : RP_NONE;
    if (letter == 'O') {
        RP_TRY(rp_builder_stack(s->p.t.builder, stack, frame, &stack, s->p.err));
        RP_TRY(rp_vec_push(&s->nested, frame, s->p.err));
        return rp_vec_push(&s->open, stack, s->p.err);
    }
    if (!s->open.n || s->nested.at[s->nested.n - 1] != frame)
        return bad_json(s, "an event closes a frame that is not the innermost one");
    s->open.n--;
    s->nested.n--;
    return RP_OK;
}

static enum rp_code read_events(struct speedscope *s)
{
    struct rp_json_token value;
    int64_t last = 0;

    if (rp_json_value(s->p.json, &value) != RP_JSON_ARRAY)
        return bad_json(s, "'events' is not a list");
    s->open.n = s->nested.n = 0;
    while (rp_json_element(s->p.json))
        RP_TRY(read_event(s, &last));
    return RP_OK;
}

static enum rp_code set_unit(struct speedscope *s, struct speedscope_head *head,
                             struct rp_bytes text)
{
    static const struct {
        const char *name;
        uint32_t unit;
        unsigned scale;
    } units[] = {{"none", RP_WEIGHT_COUNT, 0},      {"nanoseconds", RP_WEIGHT_NS, 0},
                 {"microseconds", RP_WEIGHT_NS, 3}, {"milliseconds", RP_WEIGHT_NS, 6},
                 {"seconds", RP_WEIGHT_NS, 9},      {"bytes", RP_WEIGHT_BYTES, 0}};
    size_t i;

    for (i = 0; i < sizeof units / sizeof *units; i++)
        if (rp_bytes_are(text, units[i].name))
            break;
    if (i == sizeof units / sizeof *units)
        return bad_json(s, "an unknown unit of weights");
    head->scale = units[i].scale;
    head->left_out = s->has_unit && s->unit != units[i].unit;
    if (s->has_unit)
        return RP_OK;
    s->has_unit = true;
    s->unit = units[i].unit;
    return rp_profile_unit(&s->p, s->unit,
                           s->unit == RP_WEIGHT_NS      ? "time"
                           : s->unit == RP_WEIGHT_BYTES ? "memory"
                                                        : "samples");
}

static enum rp_code add_sampled(struct speedscope *s)
{
    if (s->stacks.n != s->weights.n)
        return bad_json(s, "a profile with another number of weights than of samples");
    for (size_t i = 0; i < s->stacks.n; i++) {
        s->p.stack = s->stacks.at[i];
        RP_TRY(rp_profile_sample(&s->p, s->track, RP_NO_TS, s->weights.at[i], 0));
    }
    return RP_OK;
}

/* Reads the fields that say how to read the others. */
static enum rp_code read_profile_head(struct speedscope *s)
{
    struct speedscope_head head = {0};
    int64_t number = (int64_t)s->heads.n;
    struct rp_json_token key, value;
    struct rp_bytes text = {0};
    bool has_unit = false;

    if (rp_json_value(s->p.json, &value) != RP_JSON_OBJECT)
        return bad_json(s, "a profile is not an object");
    RP_TRY(rp_profile_thread(&s->p, 0, number, text, &head.track));
    while (rp_json_next(s->p.json, &key)) {
        if (rp_json_key_is(&key, "name")) {
            RP_TRY(read_text(s, &text));
            RP_TRY(rp_profile_thread(&s->p, 0, number, text, &head.track));
        } else if (rp_json_key_is(&key, "unit")) {
            RP_TRY(read_text(s, &text));
            RP_TRY(set_unit(s, &head, text));
            has_unit = true;
        }
    }
    if (!has_unit)
        RP_TRY(set_unit(s, &head, rp_bytes_of("none")));
    s->left_out += head.left_out;
    return rp_vec_push(&s->heads, head, s->p.err);
}

static enum rp_code read_profile_body(struct speedscope *s, size_t i)
{
    struct rp_json_token key, value;

    if (i >= s->heads.n || s->heads.at[i].left_out) {
        rp_json_skip(s->p.json);
        return RP_OK;
    }
    s->scale = s->heads.at[i].scale;
    s->track = s->heads.at[i].track;
    s->stacks.n = s->weights.n = 0;
    rp_json_value(s->p.json, &value);
    while (rp_json_next(s->p.json, &key)) {
        if (rp_json_key_is(&key, "samples"))
            RP_TRY(read_samples(s));
        else if (rp_json_key_is(&key, "weights"))
            RP_TRY(read_weights(s));
        else if (rp_json_key_is(&key, "events"))
            RP_TRY(read_events(s));
    }
    return rp_json_failed(s->p.json) ? RP_OK : add_sampled(s);
}

/* ------------------------------------------------------------------ the file */

enum speedscope_pass { FRAMES, HEADS, BODIES };

static enum rp_code read_profiles(struct speedscope *s, enum speedscope_pass pass)
{
    struct rp_json_token value;

    if (rp_json_value(s->p.json, &value) != RP_JSON_ARRAY)
        return bad_json(s, "'profiles' is not a list");
    for (size_t i = 0; rp_json_element(s->p.json); i++)
        RP_TRY(pass == HEADS ? read_profile_head(s) : read_profile_body(s, i));
    return RP_OK;
}

static enum rp_code walk_file(struct speedscope *s, enum speedscope_pass pass)
{
    struct rp_json_token key, value;

    if (rp_json_value(s->p.json, &value) != RP_JSON_OBJECT)
        return bad_json(s, "the file is not a JSON object");
    while (rp_json_next(s->p.json, &key)) {
        if (pass == FRAMES && rp_json_key_is(&key, "shared"))
            RP_TRY(read_shared(s));
        else if (pass != FRAMES && rp_json_key_is(&key, "profiles"))
            RP_TRY(read_profiles(s, pass));
    }
    return rp_json_finish(s->p.json, s->p.err);
}

static void speedscope_release(struct speedscope *s)
{
    rp_profile_release(&s->p);
    RP_EACH(rp_vec_release, &s->frames, &s->open, &s->nested, &s->stacks, &s->weights, &s->heads);
}

static enum rp_code read_speedscope(struct rp_input *in, const struct rp_read_options *options,
                                    struct rp_import *to, struct rp_err *err)
{
    RP_SCOPED(speedscope_release) struct speedscope s = {0};

    RP_TRY(rp_profile_begin(&s.p, in, options, "speedscope", err));
    for (int pass = FRAMES; pass <= BODIES; pass++) {
        RP_TRY(rp_profile_json(&s.p));
        RP_TRY(walk_file(&s, (enum speedscope_pass)pass));
    }
    if (s.left_out)
        RP_TRY(rp_builder_warn(s.p.t.builder, err,
                               "%llu profiles were left out: their unit is not that of the first",
                               (unsigned long long)s.left_out));
    return rp_profile_end(&s.p, to);
}

static enum rp_sniff sniff_speedscope(const uint8_t *head, size_t n, const char *file)
{
    (void)file;
    if (rp_sniff_json_key(head, n, 1, "$schema") == 1 &&
        memmem(head, n, "speedscope.app/file-format-schema", 33))
        return RP_SNIFF_CERTAIN;
    if (rp_sniff_json_key(head, n, 1, "shared") == 1 &&
        rp_sniff_json_key(head, n, 1, "profiles") == 1)
        return RP_SNIFF_CERTAIN;
    return RP_SNIFF_NO;
}

const struct rp_format rp_format_speedscope = {
    .name = "speedscope",
    .summary = "speedscope's JSON: samples, or events of frames",
    .files = "*.speedscope.json, *.json",
    .written_by = "py-spy --format speedscope, pyinstrument, rbspy, dotnet-trace",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_speedscope,
    .read = read_speedscope,
};
