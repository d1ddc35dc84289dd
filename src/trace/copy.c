/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/copy.h"

#include "io/emit.h"
#include "io/escaped.h"
#include "trace/meta.h"
#include "trace/unfold.h"

#include <stdlib.h>

static enum rp_code copied_text(struct rp_builder *b, const struct rp_trace *t,
                                const struct rp_copy *how, enum rp_text_use use, rp_str key,
                                rp_str s, rp_str *out, struct rp_err *err)
{
    if (how->text)
        return how->text(how->text_user, b, use, key, s, out, err);
    return rp_builder_intern(b, rp_trace_str(t, s), rp_trace_str_len(t, s), out, err);
}

static enum rp_code add_meta(struct rp_builder *b, const char *name, const char *text,
                             struct rp_err *err)
{
    rp_str key, value;

    RP_TRY(rp_builder_intern(b, name, strlen(name), &key, err));
    RP_TRY(rp_builder_intern(b, text, strlen(text), &value, err));
    return rp_builder_add_meta(b, key, value, false, err);
}

static enum rp_code copy_meta(struct rp_builder *b, const struct rp_trace *t,
                              const struct rp_copy *how, struct rp_err *err)
{
    rp_str key, value;

    for (uint32_t i = 0; i < t->nmeta; i++) {
        const struct rp_meta *m = &t->meta[i];

        if ((how->cut && !strcmp(rp_trace_str(t, m->key), RP_CUT_KEY)) ||
            (how->set_back && !strcmp(rp_trace_str(t, m->key), RP_SET_BACK_KEY)) ||
            (how->drops && how->drops(how->text_user, rp_trace_str(t, m->key))))
            continue;
        RP_TRY(copied_text(b, t, how, RP_TEXT_KEY, RP_NONE, m->key, &key, err));
        RP_TRY(copied_text(b, t, how, RP_TEXT_JSON, m->key, m->value, &value, err));
        RP_TRY(rp_builder_add_meta(b, key, value, m->after_events, err));
    }
    if (how->cut)
        RP_TRY(add_meta(b, RP_CUT_KEY, how->cut, err));
    return how->set_back ? add_meta(b, RP_SET_BACK_KEY, how->set_back, err) : RP_OK;
}

/* Copies the counts of what a reader could not read; the others are counted again. */
static void copy_health(struct rp_health *to, const struct rp_health *from)
{
    to->bad_time = from->bad_time;
    to->huge_time = from->huge_time;
    to->control_bytes = from->control_bytes;
    to->bad_utf8 = from->bad_utf8;
    to->duplicate_keys = from->duplicate_keys;
    to->skipped_bytes = from->skipped_bytes;
    to->skipped_events = from->skipped_events;
    to->lost_events = from->lost_events;
    to->truncated = from->truncated;
    to->salvaged = from->salvaged;
}

static enum rp_code copy_rest(struct rp_builder *b, const struct rp_trace *t,
                              const struct rp_copy *how, struct rp_err *err)
{
    struct rp_trace *to = rp_builder_borrow_trace(b);

    to->base_ns = t->base_ns;
    to->has_base = t->has_base;
    to->rank = t->rank;
    to->world_size = t->world_size;
    copy_health(&to->health, &t->health);
    RP_TRY(copied_text(b, t, how, RP_TEXT_CATEGORY, RP_NONE, t->format, &to->format, err));
    RP_TRY(copied_text(b, t, how, RP_TEXT_CATEGORY, RP_NONE, t->framework, &to->framework, err));
    RP_TRY(copied_text(b, t, how, RP_TEXT_CATEGORY, RP_NONE, t->framework_version,
                       &to->framework_version, err));
    for (uint32_t i = 0; i < t->ndevices; i++) {
        struct rp_device device = t->devices[i];

        RP_TRY(copied_text(b, t, how, RP_TEXT_CATEGORY, RP_NONE, device.name, &device.name, err));
        RP_TRY(rp_builder_add_device(b, &device, err));
    }
    for (uint32_t i = 0; i < t->nwarnings; i++) {
        rp_str text;

        RP_TRY(copied_text(b, t, how, RP_TEXT_VALUE, RP_NONE, t->warnings[i], &text, err));
        RP_TRY(rp_builder_warn(b, err, "%s", rp_builder_borrow_str(b, text, NULL)));
    }
    if (how->warning)
        RP_TRY(rp_builder_warn(b, err, "%s", how->warning));
    return copy_meta(b, t, how, err);
}

enum rp_code rp_trace_copy(const struct rp_trace *t, const struct rp_copy *how,
                           const struct rp_limits *limits, struct rp_trace **out,
                           struct rp_err *err)
{
    struct rp_append append = {.same_processes = true,
                               .events = how->events,
                               .flows = how->flows,
                               .samples = how->samples,
                               .add_ns = how->add_ns,
                               .longer_ns = how->longer_ns,
                               .text = how->text,
                               .text_user = how->text_user};
    struct rp_builder *b;

    *out = NULL;
    RP_TRY(rp_builder_new(limits, &b, err));
    enum rp_code code = rp_builder_append(b, t, &append, err);
    if (code == RP_OK)
        code = copy_rest(b, t, how, err);
    if (code == RP_OK)
        return rp_builder_finish(b, out, err);
    rp_builder_free(b);
    return code;
}

/* ------------------------------------------------------------------ steps of a part */

/* Differences wrap around, because damaged files may have any times. */
static int64_t since(int64_t begin_ns, int64_t ns)
{
    return (int64_t)((uint64_t)ns - (uint64_t)begin_ns);
}

static void put_number(struct rp_emit *to, const char *key, int64_t value)
{
    rp_emit_text(to, key);
    rp_emit_i64(to, value);
}

static void put_step(struct rp_emit *to, const struct rp_trace *t, uint32_t i,
                     const struct rp_cut_record *r)
{
    const struct rp_step *s = &t->steps[i];
    bool last = i + 1 == r->first + r->n;
    int64_t end = s->end_ns;

    if (last && i + 1 < t->nsteps && !(s->flags & RP_STEP_BREAK_AFTER) && end < s[1].begin_ns)
        end = s[1].begin_ns;

    bool nameless = r->nameless;
    rp_emit_text(to, "{\"name\":");
    if (nameless) {
        put_number(to, "\"step ", s->number);
        rp_emit_char(to, '"');
    } else {
        rp_emit_escaped(to, RP_IN_JSON, rp_trace_str(t, s->name), rp_trace_str_len(t, s->name));
    }
    put_number(to, ",\"number\":", s->number);
    put_number(to, ",\"source\":", s->source);
    put_number(to, ",\"begin_ns\":", since(r->begin_ns, s->begin_ns));
    put_number(to, ",\"end_ns\":", since(r->begin_ns, end));
    put_number(to, ",\"flags\":", s->flags & ~(last ? RP_STEP_BREAK_AFTER : 0));
    put_number(to, ",\"phase\":", s->phase);
    put_number(to, ",\"requests\":", s->requests);
    put_number(to, ",\"tokens\":", s->tokens);
    rp_emit_char(to, '}');
}

const char *rp_cut_describe(const struct rp_trace *t, const struct rp_cut_record *r,
                            struct rp_arena *arena, struct rp_err *err)
{
    struct rp_emit to;

    if (rp_emit_open_memory(&to, err) != RP_OK)
        return NULL;
    rp_emit_char(&to, '{');
    if (r->n && r->previous_ns > t->steps[r->first].begin_ns) {
        put_number(&to, "\"previous_end_ns\":", since(r->begin_ns, r->previous_ns));
        rp_emit_char(&to, ',');
    }
    rp_emit_text(&to, "\"steps\":[");
    for (uint32_t i = r->first; i < r->first + r->n; i++) {
        if (i > r->first)
            rp_emit_char(&to, ',');
        put_step(&to, t, i, r);
    }
    rp_emit_text(&to, "]}");
    const char *out = rp_arena_copy(arena, to.buffer, rp_emit_length(&to));
    if (rp_emit_close(&to, err) != RP_OK)
        return NULL;
    if (!out)
        rp_err_nomem(err, "describing steps");
    return out;
}

int64_t rp_cut_previous_end(const struct rp_trace *t)
{
    static const char start[] = "{\"previous_end_ns\":";
    const char *record = rp_trace_meta(t, RP_CUT_KEY);
    char *end;

    if (!record || strncmp(record, start, sizeof start - 1) != 0)
        return RP_NO_TS;
    long long ns = strtoll(record + sizeof start - 1, &end, 10);
    return *end == ',' && ns >= 0 && ns < INT64_MAX / 4 ? since(-ns, t->totals.span_begin_ns)
                                                        : RP_NO_TS;
}
