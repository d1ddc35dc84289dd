/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes samples in Chrome's JSON. Its frames correspond to our stacks: each has a parent.
 *
 *   "stackFrames":{"0":{"name":"main","category":"train.py","line":7,"kind":"python"},
 *                  "1":{"name":"step","category":"train.py","parent":"0"}},
 *   "samples":[{"name":"cpu","pid":7,"tid":7,"ts":12.5,"weight":1000000,"sf":"1","state":1}]
 *
 * line, kind, pid and state (RP_SAMPLE_*) are not in Chrome's description; its viewers ignore them.
 */
#include "formats/write/samples.h"
#include "formats/chrome/facts.h"
#include "io/escaped.h"
#include "trace/meta.h"
#include "trace/words.h"

uint32_t rp_samples_untimed(const struct rp_trace *t)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < t->samples.n; i++)
        n += t->samples.ts_ns[i] == RP_NO_TS;
    return n;
}

void rp_samples_put_weights(struct rp_emit *e, const struct rp_trace *t)
{
    rp_emit_text(e, "{\"unit\":\"");
    rp_emit_text(e, rp_word_weight_unit(t->samples.unit));
    rp_emit_char(e, '"');
    if (t->samples.unit_name) {
        rp_emit_text(e, ",\"name\":");
        rp_emit_escaped(e, RP_IN_JSON, rp_trace_str(t, t->samples.unit_name),
                        rp_trace_str_len(t, t->samples.unit_name));
    }
    rp_emit_char(e, '}');
}

static void put_frame(struct rp_emit *e, struct rp_emit_json *json, const struct rp_trace *t,
                      uint32_t stack)
{
    const struct rp_call_stack *s = &t->samples.stacks[stack];
    const struct rp_call_frame *f = &t->samples.frame[s->frame];

    rp_emit_text(e, stack ? ",\n\"" : "\n\"");
    rp_emit_i64(e, stack);
    rp_emit_text(e, "\":{\"name\":");
    rp_emit_json_str(e, json, f->name);
    if (f->file) {
        rp_emit_text(e, ",\"category\":");
        rp_emit_json_str(e, json, f->file);
    }
    if (f->line) {
        rp_emit_text(e, ",\"line\":");
        rp_emit_i64(e, f->line);
    }
    if (f->kind != RP_FRAME_OTHER) {
        rp_emit_text(e, ",\"kind\":\"");
        rp_emit_text(e, rp_word_frame_kind(f->kind));
        rp_emit_char(e, '"');
    }
    if (s->parent != RP_NONE) {
        rp_emit_text(e, ",\"parent\":\"");
        rp_emit_i64(e, s->parent);
        rp_emit_char(e, '"');
    }
    rp_emit_char(e, '}');
}

static void put_ident(struct rp_emit *e, struct rp_emit_json *json, const char *key, int64_t number,
                      rp_str text)
{
    rp_emit_text(e, key);
    if (text || number == RP_ID_EMPTY)
        rp_emit_json_str(e, json, text);
    else
        rp_emit_i64(e, number);
}

static void put_sample(struct rp_emit *e, struct rp_emit_json *json, const struct rp_trace *t,
                       uint32_t i)
{
    const struct rp_call_samples *s = &t->samples;
    const struct rp_track_info *track = &t->tracks[s->track[i]];
    const struct rp_process *process = &t->processes[track->process];

    rp_emit_text(e, "{\"name\":");
    rp_emit_json_str(e, json, s->unit_name);
    put_ident(e, json, ",\"pid\":", process->native_id, process->text);
    if (track->has_id)
        put_ident(e, json, ",\"tid\":", track->native_id, track->text);
    rp_emit_text(e, ",\"ts\":");
    e->at = rp_put_us(rp_emit_room(e, RP_PUT_US_MAX), s->ts_ns[i]);
    rp_emit_text(e, ",\"weight\":");
    rp_emit_i64(e, s->weight[i]);
    if (s->stack[i] != RP_NONE) {
        rp_emit_text(e, ",\"sf\":\"");
        rp_emit_i64(e, s->stack[i]);
        rp_emit_char(e, '"');
    }
    if (s->flags[i]) {
        rp_emit_text(e, ",\"state\":");
        rp_emit_i64(e, s->flags[i]);
    }
    rp_emit_char(e, '}');
}

void rp_samples_put_json(struct rp_emit *e, struct rp_emit_json *json, const struct rp_trace *t)
{
    const struct rp_call_samples *s = &t->samples;
    bool any = false;

    if (rp_samples_untimed(t) == s->n)
        return;
    if (!rp_trace_meta(t, RP_CHROME_WEIGHTS)) {
        rp_emit_text(e, ",\n\"" RP_CHROME_WEIGHTS "\":");
        rp_samples_put_weights(e, t);
    }
    rp_emit_text(e, ",\n\"stackFrames\":{");
    for (uint32_t i = 0; i < s->nstacks; i++)
        put_frame(e, json, t, i);
    rp_emit_text(e, "},\n\"samples\":[");
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->ts_ns[i] == RP_NO_TS)
            continue;
        rp_emit_text(e, any ? ",\n" : "\n");
        put_sample(e, json, t, i);
        any = true;
    }
    rp_emit_text(e, "\n]");
}
