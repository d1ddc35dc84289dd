/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of call stacks, beside the list of events:
 *
 *   "stackFrames":{"1":{"name":"main","category":"libc.so"},"2":{"name":"step","parent":1}},
 *   "samples":[{"name":"cpu","tid":7,"ts":12.5,"sf":2,"weight":1}]
 *
 * Ids are numbers or texts; 2 is "2". A sample of a thread without a process belongs to a process
 * that has a thread with its number. Weights are counts unless the file says otherwise
 * (RP_CHROME_WEIGHTS). line, kind, pid and state are our own (formats/write/samples.c).
 */
#include "base/decimal.h"
#include "formats/chrome/chrome.h"
#include "trace/words.h"

static uint64_t key_of(const struct rp_chrome_ident *id)
{
    uint64_t key = rp_hash_join(id->text ? id->text : (uint64_t)id->number, id->text != 0);

    return id->given ? key ? key : 1 : 0;
}

static enum rp_code set_frame_field(struct rp_chrome *r, struct rp_chrome_frame *to,
                                    const struct rp_json_token *key, struct rp_json_token *v,
                                    struct rp_err *err)
{
    struct rp_chrome_ident id;
    int64_t line;

    if (rp_json_key_is(key, "parent")) {
        RP_TRY(rp_chrome_set_ident(r, &id, v, true, err));
        to->parent = key_of(&id);
    } else if (rp_json_key_is(key, "name") && v->kind == RP_JSON_STRING) {
        return rp_chrome_intern_name(r, v, &to->frame.name, err);
    } else if (rp_json_key_is(key, "category") && v->kind == RP_JSON_STRING) {
        return rp_chrome_intern_name(r, v, &to->frame.file, err);
    } else if (rp_json_key_is(key, "line") && rp_chrome_parse_int(v->text, v->len, &line)) {
        to->frame.line = line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0;
    } else if (rp_json_key_is(key, "kind")) {
        for (uint32_t i = 0; i < RP_FRAME_KINDS; i++)
            if (rp_json_key_is(v, rp_word_frame_kind(i)))
                to->frame.kind = i;
    }
    return RP_OK;
}

static enum rp_code read_frame(struct rp_chrome *r, struct rp_json_token *id_token,
                               struct rp_err *err)
{
    struct rp_chrome_frame frame = {.stack = RP_NONE};
    uint32_t depth = rp_json_depth(r->json);
    struct rp_chrome_ident id;
    struct rp_json_token key, v;

    id_token->kind = RP_JSON_STRING;
    RP_TRY(rp_chrome_set_ident(r, &id, id_token, true, err));
    if (rp_json_value(r->json, &v) != RP_JSON_OBJECT) {
        rp_chrome_pass(r->json, depth);
        return RP_OK;
    }
    while (rp_json_field(r->json, &key))
        if (rp_chrome_at_container(r->json))
            rp_json_skip(r->json);
        else if (rp_json_value(r->json, &v))
            RP_TRY(set_frame_field(r, &frame, &key, &v, err));
    if (rp_json_failed(r->json))
        return RP_OK;
    RP_TRY(rp_map_put(&r->sampled.frame_of, key_of(&id), (uint32_t)r->sampled.frames.n, err));
    return rp_vec_push(&r->sampled.frames, frame, err);
}

enum rp_code rp_chrome_read_frames(struct rp_chrome *r, struct rp_err *err)
{
    uint32_t depth = rp_json_depth(r->json);
    struct rp_json_token key, v;

    if (rp_json_value(r->json, &v) != RP_JSON_OBJECT) {
        rp_chrome_pass(r->json, depth);
        return RP_OK;
    }
    while (rp_json_field(r->json, &key))
        RP_TRY(read_frame(r, &key, err));
    return RP_OK;
}

static enum rp_code set_sample_field(struct rp_chrome *r, struct rp_chrome_sample *to,
                                     const struct rp_json_token *key, struct rp_json_token *v,
                                     struct rp_err *err)
{
    struct rp_chrome_ident id;
    int64_t n;

    if (rp_json_key_is(key, "pid"))
        return rp_chrome_set_ident(r, &to->pid, v, false, err);
    if (rp_json_key_is(key, "tid"))
        return rp_chrome_set_ident(r, &to->tid, v, false, err);
    if (rp_json_key_is(key, "sf")) {
        RP_TRY(rp_chrome_set_ident(r, &id, v, true, err));
        to->frame = key_of(&id);
    } else if (rp_json_key_is(key, "ts")) {
        if (rp_decimal_parse(v->text, v->len, 3, &n) & (RP_DECIMAL_INVALID | RP_DECIMAL_RANGE))
            r->health->bad_time++;
        else
            to->ts_ns = n;
    } else if (rp_json_key_is(key, "weight")) {
        if (!(rp_decimal_parse(v->text, v->len, 0, &n) & (RP_DECIMAL_INVALID | RP_DECIMAL_RANGE)))
            to->weight = n;
    } else if (rp_json_key_is(key, "state") && rp_chrome_parse_int(v->text, v->len, &n) && n >= 0 &&
               n <= RP_SAMPLE_FLAGS) {
        to->flags = (uint8_t)n;
    }
    return RP_OK;
}

static enum rp_code read_sample(struct rp_chrome *r, struct rp_err *err)
{
    struct rp_chrome_sample sample = {.ts_ns = RP_NO_TS, .weight = 1};
    struct rp_json_token key, v;

    while (rp_json_field(r->json, &key))
        if (rp_chrome_at_container(r->json))
            rp_json_skip(r->json);
        else if (rp_json_value(r->json, &v))
            RP_TRY(set_sample_field(r, &sample, &key, &v, err));
    return rp_json_failed(r->json) ? RP_OK : rp_vec_push(&r->sampled.samples, sample, err);
}

enum rp_code rp_chrome_read_samples(struct rp_chrome *r, struct rp_err *err)
{
    uint32_t depth = rp_json_depth(r->json);
    struct rp_json_token v;

    if (rp_json_value(r->json, &v) != RP_JSON_ARRAY) {
        rp_chrome_pass(r->json, depth);
        return RP_OK;
    }
    while (rp_json_element(r->json)) {
        depth = rp_json_depth(r->json);
        if (rp_json_value(r->json, &v) == RP_JSON_OBJECT)
            RP_TRY(read_sample(r, err));
        else
            rp_chrome_pass(r->json, depth);
    }
    return RP_OK;
}

/* Makes the stack of a frame and its ancestors; a frame that is its own ancestor starts a new
   stack. */
static enum rp_code make_stack(struct rp_chrome *r, uint64_t key, uint32_t *stack,
                               struct rp_err *err)
{
    uint32_t i, id;

    *stack = RP_NONE;
    r->sampled.path.n = 0;
    for (i = rp_map_get(&r->sampled.frame_of, key); key && i != RP_MAP_NONE;
         i = rp_map_get(&r->sampled.frame_of, key)) {
        struct rp_chrome_frame *f = &r->sampled.frames.at[i];
        *stack = f->stack;
        if (f->walked)
            break;
        f->walked = true;
        RP_TRY(rp_vec_push(&r->sampled.path, i, err));
        key = f->parent;
    }
    while (r->sampled.path.n) {
        struct rp_chrome_frame *f = &r->sampled.frames.at[r->sampled.path.at[--r->sampled.path.n]];
        RP_TRY(rp_builder_frame(r->builder, &f->frame, &id, err));
        RP_TRY(rp_builder_stack(r->builder, *stack, id, stack, err));
        f->stack = *stack;
    }
    return RP_OK;
}

/* Finds the process of a thread with this number among the threads with events. */
static void find_process(const struct rp_chrome *r, struct rp_chrome_sample *s)
{
    for (size_t i = 0; i < RP_CHROME_TRACKS && !s->pid.given; i++) {
        const struct rp_chrome_track *t = &r->tracks[i];

        if (t->used && t->has_tid && s->tid.given && t->tid == s->tid.number &&
            t->tid_text == s->tid.text)
            s->pid = (struct rp_chrome_ident){t->pid, t->pid_text, true, false};
    }
}

enum rp_code rp_chrome_end_samples(struct rp_chrome *r, struct rp_err *err)
{
    if (r->sampled.samples.n && !r->facts.has_weights)
        r->trace->samples.unit = RP_WEIGHT_COUNT;
    for (size_t i = 0; i < r->sampled.samples.n; i++) {
        struct rp_chrome_sample *s = &r->sampled.samples.at[i];
        struct rp_raw_sample raw = {.ts_ns = s->ts_ns, .weight = s->weight, .flags = s->flags};

        if (!s->pid.given)
            find_process(r, s);
        RP_TRY(rp_chrome_find_track(r, &s->pid, &s->tid, &raw.track, err));
        RP_TRY(make_stack(r, s->frame, &raw.stack, err));
        RP_TRY(rp_builder_add_sample(r->builder, &raw, err));
    }
    return RP_OK;
}

void rp_chrome_release_samples(struct rp_chrome *r)
{
    rp_vec_release(&r->sampled.frames);
    rp_vec_release(&r->sampled.samples);
    rp_vec_release(&r->sampled.path);
    rp_map_release(&r->sampled.frame_of);
}
