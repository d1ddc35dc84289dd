/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a long Chrome trace out of a short one: its events again and again, each copy behind the
 * one before in time, with ids of its own, so that launches, arrows and steps of the copies stay
 * apart. The header is the same. The same input gives the same output.
 *
 *     bench_generate IN.json[.gz] OUT.json SIZE_MB
 *
 * The text is parsed once; of each event the places are noted where a copy differs. A copy is then
 * the text with those numbers moved. It has as many whole copies as come closest to the size.
 */
#include "base/decimal.h"
#include "base/vec.h"
#include "io/emit.h"
#include "io/json_pull.h"

#include <stdio.h>
#include <stdlib.h>

enum place { PLACE_TIME, PLACE_ID, PLACE_STEP };

struct patch { /* digits of a whole number in the text */
    uint64_t at;
    uint32_t len;
    uint8_t place; /* enum place */
};

struct event {
    uint64_t begin, end;         /* in the text */
    uint32_t first_patch, times; /* times: 1 for metadata, which is written once */
};

struct work {
    struct rp_json *json;
    const char *text;
    size_t len;
    uint64_t list_begin, list_end; /* of what stands between the brackets of the events */
    RP_VEC(struct event) events;
    RP_VEC(struct patch) patches;
    int64_t first_ns, last_ns, id_max, step_min, step_max;
    struct rp_err err;
};

/* Arguments that name a launch, an operator or a frame. */
static const char *const id_keys[] = {
    "correlation", "External id", "Record function id", "Sequence number",
    "Ev Idx",      "Python id",   "Python parent id",   "wait_on_cuda_event_record_corr_id",
    NULL};

static void leave(struct rp_json *p, uint32_t depth)
{
    struct rp_json_token key;

    while (!rp_json_failed(p) && rp_json_depth(p) > depth)
        if (rp_json_in_object(p) ? rp_json_field(p, &key) : rp_json_element(p))
            rp_json_skip(p);
}

static size_t count_digits(const char *s, size_t len)
{
    size_t n = 0;

    while (n < len && s[n] >= '0' && s[n] <= '9')
        n++;
    return n;
}

static enum rp_code add_patch(struct work *w, uint64_t at, size_t len, enum place place)
{
    return rp_vec_push(&w->patches, ((struct patch){at, (uint32_t)len, (uint8_t)place}), &w->err);
}

static int64_t number_of(const char *s, size_t len)
{
    int64_t v = 0;

    rp_decimal_parse(s, len, 0, &v);
    return v;
}

/* A whole positive number becomes an id that each copy has for itself; 0 stays "none". */
static enum rp_code read_id(struct work *w)
{
    uint32_t depth = rp_json_depth(w->json);
    uint64_t at = rp_json_offset(w->json);
    struct rp_json_token v;
    int64_t id;

    if (rp_json_value(w->json, &v) != RP_JSON_NUMBER || !v.is_integer || v.len > 15) {
        leave(w->json, depth);
        return RP_OK;
    }
    id = number_of(v.text, v.len);
    if (id <= 0)
        return RP_OK;
    if (id > w->id_max)
        w->id_max = id;
    return add_patch(w, at, v.len, PLACE_ID);
}

static enum rp_code read_args(struct work *w)
{
    uint32_t depth = rp_json_depth(w->json);
    struct rp_json_token key, v;
    size_t i;

    if (rp_json_value(w->json, &v) != RP_JSON_OBJECT) {
        leave(w->json, depth);
        return RP_OK;
    }
    while (rp_json_field(w->json, &key)) {
        for (i = 0; id_keys[i] && !rp_json_key_is(&key, id_keys[i]); i++)
            ;
        if (id_keys[i])
            RP_TRY(read_id(w));
        else
            rp_json_skip(w->json);
    }
    return RP_OK;
}

/* "ProfilerStep#12" */
static enum rp_code read_name(struct work *w, const struct rp_json_token *v, uint64_t at)
{
    static const char prefix[] = "ProfilerStep#";
    size_t skip = sizeof prefix - 1, digits;
    int64_t step;

    if (v->kind != RP_JSON_STRING || v->len <= skip || memcmp(v->text, prefix, skip) != 0)
        return RP_OK;
    digits = count_digits(v->text + skip, v->len - skip);
    if (!digits || digits > 15)
        return RP_OK;
    step = number_of(v->text + skip, digits);
    if (step > w->step_max)
        w->step_max = step;
    if (step < w->step_min)
        w->step_min = step;
    return add_patch(w, at + 1 + skip, digits, PLACE_STEP);
}

struct times {
    int64_t ts_ns, dur_ns;
    bool has_ts;
};

/* The whole microseconds are what moves; copies are whole microseconds apart. */
static enum rp_code read_ts(struct work *w, const struct rp_json_token *v, uint64_t at,
                            struct times *times)
{
    size_t digits = count_digits(v->text, v->len);

    times->has_ts = v->kind == RP_JSON_NUMBER && digits && digits <= 18 &&
                    !(rp_decimal_parse(v->text, v->len, 3, &times->ts_ns) & RP_DECIMAL_INVALID);
    return times->has_ts ? add_patch(w, at, digits, PLACE_TIME) : RP_OK;
}

static enum rp_code read_field(struct work *w, const struct rp_json_token *key, struct event *e,
                               struct times *times)
{
    uint64_t at = rp_json_offset(w->json);
    uint32_t depth = rp_json_depth(w->json);
    struct rp_json_token v;

    if (rp_json_key_is(key, "args"))
        return read_args(w);
    if (rp_json_key_is(key, "id"))
        return read_id(w);
    if (rp_json_value(w->json, &v) == RP_JSON_OBJECT || v.kind == RP_JSON_ARRAY)
        leave(w->json, depth);
    else if (rp_json_key_is(key, "ph") && v.len == 1 && v.text[0] == 'M')
        e->times = 1;
    else if (rp_json_key_is(key, "dur") && v.kind == RP_JSON_NUMBER)
        rp_decimal_parse(v.text, v.len, 3, &times->dur_ns);
    else if (rp_json_key_is(key, "name"))
        return read_name(w, &v, at);
    else if (rp_json_key_is(key, "ts"))
        return read_ts(w, &v, at, times);
    return RP_OK;
}

static enum rp_code read_event(struct work *w)
{
    struct event e = {.begin = rp_json_offset(w->json),
                      .first_patch = (uint32_t)w->patches.n,
                      .times = UINT32_MAX};
    struct times times = {0};
    struct rp_json_token key;

    if (rp_json_value(w->json, &key) != RP_JSON_OBJECT)
        return rp_err_set(&w->err, RP_FORMAT, "an element of the list of events is not an object");
    while (rp_json_field(w->json, &key))
        RP_TRY(read_field(w, &key, &e, &times));
    e.end = rp_json_offset(w->json);
    if (times.has_ts && e.times != 1) {
        if (times.ts_ns < w->first_ns)
            w->first_ns = times.ts_ns;
        if (times.ts_ns + times.dur_ns > w->last_ns)
            w->last_ns = times.ts_ns + times.dur_ns;
    }
    return rp_vec_push(&w->events, e, &w->err);
}

static enum rp_code read_list(struct work *w)
{
    w->list_begin = rp_json_offset(w->json);
    while (rp_json_element(w->json))
        RP_TRY(read_event(w));
    w->list_end = rp_json_offset(w->json) - 1;
    return RP_OK;
}

static enum rp_code read_document(struct work *w)
{
    struct rp_json_token key, v;
    enum rp_json_kind kind = rp_json_value(w->json, &v);

    if (kind == RP_JSON_ARRAY)
        RP_TRY(read_list(w));
    while (kind == RP_JSON_OBJECT && rp_json_field(w->json, &key)) {
        if (!rp_json_key_is(&key, "traceEvents"))
            rp_json_skip(w->json);
        else if (rp_json_value(w->json, &v) == RP_JSON_ARRAY)
            RP_TRY(read_list(w));
    }
    RP_TRY(rp_json_finish(w->json, &w->err));
    if (!w->events.n)
        return rp_err_set(&w->err, RP_FORMAT, "no events in it");
    return RP_OK;
}

static void put_event(struct rp_emit *e, const struct work *w, size_t i, const int64_t *shift)
{
    const struct event *event = &w->events.at[i];
    size_t end = i + 1 < w->events.n ? w->events.at[i + 1].first_patch : w->patches.n;
    uint64_t at = event->begin;

    for (size_t k = event->first_patch; k < end; k++) {
        const struct patch *p = &w->patches.at[k];

        rp_emit_bytes(e, w->text + at, p->at - at);
        rp_emit_i64(e, number_of(w->text + p->at, p->len) + shift[p->place]);
        at = p->at + p->len;
    }
    rp_emit_bytes(e, w->text + at, event->end - at);
}

static void put_copies(struct rp_emit *e, const struct work *w, uint64_t copies)
{
    int64_t step[] = {[PLACE_TIME] = (w->last_ns - w->first_ns) / 1000 + 2,
                      [PLACE_ID] = w->id_max + 1,
                      [PLACE_STEP] =
                          w->step_max >= w->step_min ? w->step_max - w->step_min + 1 : 0};
    int64_t shift[] = {0, 0, 0};

    rp_emit_bytes(e, w->text, w->list_begin);
    for (uint64_t copy = 0; copy < copies; copy++) {
        for (size_t i = 0; i < w->events.n; i++) {
            if (copy >= w->events.at[i].times)
                continue;
            rp_emit_text(e, copy || i ? ",\n" : "\n");
            put_event(e, w, i, shift);
        }
        for (size_t k = 0; k < 3; k++)
            shift[k] += step[k];
    }
    rp_emit_bytes(e, w->text + w->list_end, w->len - w->list_end);
}

static enum rp_code generate(struct work *w, struct rp_input *in, const char *out, double megabytes)
{
    struct rp_input *again = NULL;
    struct rp_emit e;
    const uint8_t *bytes;
    uint64_t copies;

    RP_TRY(rp_input_slurp(in, &bytes, &w->len, &w->err));
    w->text = (const char *)bytes;
    RP_TRY(rp_input_open_memory("(text)", bytes, w->len, NULL, &again, &w->err));
    if (rp_json_open(again, NULL, &w->json, &w->err) == RP_OK)
        read_document(w);
    rp_json_close(w->json);
    rp_input_close(again);
    if (w->err.code != RP_OK)
        return w->err.code;
    copies = (uint64_t)(megabytes * 1e6 / (double)(w->list_end - w->list_begin + 1) + 0.5);
    copies = copies ? copies : 1;
    RP_TRY(rp_emit_open(&e, out, 0, &w->err));
    put_copies(&e, w, copies);
    RP_TRY(rp_emit_close(&e, &w->err));
    fprintf(stderr, "%llu copies of %zu events\n", (unsigned long long)copies, w->events.n);
    return RP_OK;
}

int main(int argc, char **argv)
{
    struct work w = {.first_ns = INT64_MAX, .last_ns = INT64_MIN, .step_min = INT64_MAX};
    double megabytes = argc == 4 ? atof(argv[3]) : 0;
    struct rp_input *in = NULL;

    if (argc != 4 || !(megabytes > 0)) {
        fprintf(stderr, "usage: bench_generate IN.json[.gz] OUT.json SIZE_MB\n");
        return 2;
    }
    w.step_max = -1;
    if (rp_input_open(argv[1], NULL, &in, &w.err) == RP_OK)
        generate(&w, in, argv[2], megabytes);
    if (w.err.code != RP_OK)
        fprintf(stderr, "bench_generate: '%s': %s\n", argv[1], w.err.text);
    rp_vec_release(&w.events);
    rp_vec_release(&w.patches);
    rp_input_close(in);
    return rp_code_exit_status(w.err.code);
}
