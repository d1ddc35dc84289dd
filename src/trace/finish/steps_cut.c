/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the steps of a part of a trace, as its metadata describes them (trace/copy.h). A record
   that makes no sense is ignored. */
#include "trace/finish/steps.h"

#include "base/arena.h"
#include "base/decimal.h"
#include "base/order.h"
#include "io/json_pull.h"
#include "trace/copy.h"

#define MOST_NS \
    (INT64_MAX / 2) /* limit of a time, and of a distance from it, so that their sum fits */

struct cut_reader {
    struct rp_builder *b;
    struct rp_json *p;
    int64_t begin_ns;
    struct rp_err *err;
};

static int64_t first_event_ns(const struct rp_builder *b)
{
    int64_t first = INT64_MAX;

    for (rp_event e = 0; e < b->ev.n; e++)
        if (b->ev.ts_ns.at[e] != RP_NO_TS && b->ev.kind.at[e] != RP_KIND_METADATA &&
            b->ev.ts_ns.at[e] < first)
            first = b->ev.ts_ns.at[e];
    return first;
}

static bool number_of(const struct rp_json_token *v, int64_t *out)
{
    return v->kind == RP_JSON_NUMBER &&
           !(rp_decimal_parse(v->text, v->len, 0, out) & ~RP_DECIMAL_NEGATIVE);
}

/* Reads a member of a step; false if it makes no sense. */
static bool read_number(struct rp_step *step, const struct rp_json_token *key, int64_t n)
{
    bool is_time = rp_json_key_is(key, "begin_ns") || rp_json_key_is(key, "end_ns");

    if (is_time && (n < -MOST_NS || n > MOST_NS))
        return false;
    if (rp_json_key_is(key, "begin_ns"))
        step->begin_ns = n;
    else if (rp_json_key_is(key, "end_ns"))
        step->end_ns = n;
    else if (rp_json_key_is(key, "number"))
        step->number = n;
    else if (rp_json_key_is(key, "requests"))
        step->requests = n < 0 ? RP_NO_COUNT : n;
    else if (rp_json_key_is(key, "tokens"))
        step->tokens = n < 0 ? RP_NO_COUNT : n;
    else if (rp_json_key_is(key, "source") && n >= 0 && n < RP_STEP_SOURCES)
        step->source = (uint32_t)n;
    else if (rp_json_key_is(key, "phase") && n >= 0 && n < RP_STEP_PHASES)
        step->phase = (uint8_t)n;
    else if (rp_json_key_is(key, "flags") && n >= 0 && n < 2 * (int64_t)RP_STEP_CUT_OFF)
        step->flags = (uint8_t)n;
    else
        return false;
    return true;
}

static enum rp_code read_step(struct cut_reader *r, struct rp_step *step, bool *valid)
{
    struct rp_json_token key, v;
    int64_t n;

    *step = rp_step_from(RP_STEP_PROFILER);
    while (*valid && rp_json_field(r->p, &key) && rp_json_value(r->p, &v)) {
        if (!rp_json_key_is(&key, "name")) {
            *valid = number_of(&v, &n) && read_number(step, &key, n);
        } else if (v.kind == RP_JSON_STRING && rp_json_decode(r->p, &v)) {
            RP_TRY(rp_strtab_intern(&r->b->str, v.text, v.len, &step->name, r->err));
        } else {
            *valid = false;
        }
    }
    *valid = *valid && !rp_json_failed(r->p) && step->end_ns >= step->begin_ns;
    step->begin_ns += r->begin_ns;
    step->end_ns += r->begin_ns;
    return RP_OK;
}

static enum rp_code read_steps(struct cut_reader *r, bool *valid)
{
    struct rp_json_token key, v;
    struct rp_step step;

    *valid = rp_json_value(r->p, &v) == RP_JSON_OBJECT;
    while (*valid && rp_json_field(r->p, &key)) {
        if (!rp_json_key_is(&key, "steps")) {
            *valid = rp_json_skip(r->p);
            continue;
        }
        *valid = rp_json_value(r->p, &v) == RP_JSON_ARRAY;
        while (*valid && rp_json_element(r->p)) {
            *valid = rp_json_value(r->p, &v) == RP_JSON_OBJECT;
            if (*valid)
                RP_TRY(read_step(r, &step, valid));
            if (*valid)
                RP_TRY(rp_vec_push(&r->b->steps, step, r->err));
        }
    }
    *valid = *valid && !rp_json_failed(r->p);
    return RP_OK;
}

/* Copies the record, because new texts may move it; NULL if there is none, or memory ran out. */
static const char *copy_record(const struct rp_builder *b, struct rp_arena *arena, size_t *n)
{
    rp_str key = rp_build_find_str(b, RP_CUT_KEY);
    size_t i;

    for (i = 0; key != RP_NONE && i < b->meta.n && b->meta.at[i].key != key; i++)
        ;
    if (key == RP_NONE || i == b->meta.n)
        return NULL;
    const char *text = rp_builder_borrow_str(b, b->meta.at[i].value, n);
    return rp_arena_copy(arena, text, *n);
}

enum rp_code rp_steps_by_cut(struct rp_builder *b, bool *found, struct rp_err *err)
{
    struct cut_reader r = {.b = b, .err = err, .begin_ns = first_event_ns(b)};
    struct rp_arena arena = {0};
    struct rp_input *in = NULL;
    size_t n = 0;
    const char *text = NULL;

    *found = false;
    if (r.begin_ns >= -MOST_NS && r.begin_ns <= MOST_NS)
        text = copy_record(b, &arena, &n);
    if (!text)
        return rp_arena_check(&arena, "reading the steps of a cut", err);
    enum rp_code code = rp_input_open_memory(RP_CUT_KEY, text, n, NULL, &in, err);
    if (code == RP_OK)
        code = rp_json_open(in, NULL, &r.p, err);
    if (code == RP_OK)
        code = read_steps(&r, found);
    rp_json_close(r.p);
    rp_input_close(in);
    rp_arena_release(&arena);
    if (!*found)
        b->steps.n = 0;

    /* Find the event that marks each step: it has the name of the step and begins when the step
       does. The steps are in time order. */
    struct rp_step *s = b->steps.at;
    size_t i;
    for (rp_event e = 0; b->steps.n && e < b->ev.n; e++) {
        RP_LOWER_BOUND(i, b->steps.n, s[i].begin_ns < b->ev.ts_ns.at[e]);
        if (i < b->steps.n && s[i].begin_ns == b->ev.ts_ns.at[e] && s[i].name == b->ev.name.at[e] &&
            s[i].mark == RP_NONE)
            s[i].mark = e;
    }

    return code;
}
