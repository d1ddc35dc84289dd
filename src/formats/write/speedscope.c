/* SPDX-License-Identifier: Apache-2.0 */
/* Writes speedscope's JSON: the frames, and a sampled profile for each thread, in the order of
   time. */
#include "formats/write/stacks.h"
#include "formats/write/writers.h"
#include "io/escaped.h"

struct scope_writer {
    const struct rp_trace *t;
    struct rp_emit e;
    rp_stack_path path;
    struct rp_err *err;
};

/* Writes the samples from begin to end, which belong to one thread. */
static enum rp_code put_thread(struct scope_writer *w, uint32_t begin, uint32_t end)
{
    static const char *const units[RP_WEIGHT_UNITS] = {"nanoseconds", "none", "bytes"};
    const struct rp_call_samples *s = &w->t->samples;
    uint64_t sum = 0;
    char room[32];

    rp_emit_text(&w->e, "{\"type\": \"sampled\", \"name\": ");
    rp_emit_json_text(&w->e, rp_stacks_thread(w->t, s->track[begin], room));
    rp_emit_text(&w->e, ", \"unit\": ");
    rp_emit_json_text(&w->e, units[s->unit]);
    rp_emit_text(&w->e, ", \"samples\": [");
    for (uint32_t i = begin; i < end; i++) {
        if (i > begin)
            rp_emit_char(&w->e, ',');
        RP_TRY(rp_stack_walk(w->t, s->stack[i], &w->path, w->err));
        rp_emit_char(&w->e, '[');
        while (w->path.n) {
            rp_emit_i64(&w->e, w->path.at[--w->path.n]);
            if (w->path.n)
                rp_emit_char(&w->e, ',');
        }
        rp_emit_char(&w->e, ']');
    }
    rp_emit_text(&w->e, "],\n\"weights\": [");
    for (uint32_t i = begin; i < end; i++) {
        if (i > begin)
            rp_emit_char(&w->e, ',');
        rp_emit_i64(&w->e, s->weight[i]);
        sum += (uint64_t)s->weight[i];
    }
    rp_emit_text(&w->e, "], \"startValue\": 0, \"endValue\": ");
    rp_emit_i64(&w->e, (int64_t)sum);
    rp_emit_char(&w->e, '}');
    return RP_OK;
}

static void scope_writer_release(struct scope_writer *w)
{
    rp_emit_abandon(&w->e);
    rp_vec_release(&w->path);
}

static enum rp_code write_speedscope(const struct rp_trace *t, const char *path,
                                     const struct rp_write_options *options, struct rp_err *err)
{
    RP_SCOPED(scope_writer_release) struct scope_writer w = {.t = t, .err = err};

    RP_TRY(rp_stacks_require(t, err));
    RP_TRY(rp_emit_open(&w.e, path, options ? options->gzip_level : 0, err));

    const struct rp_call_samples *s = &w.t->samples;
    uint32_t end;

    rp_emit_text(&w.e, "{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\",\n"
                       "\"exporter\": \"reprise\",\n");

    /* All frames, which samples name by their index. */
    rp_emit_text(&w.e, "\"shared\": {\"frames\": [");
    for (uint32_t i = 0; i < s->nframes; i++) {
        const struct rp_call_frame *f = &s->frame[i];
        rp_emit_text(&w.e, i ? ",\n{\"name\": " : "\n{\"name\": ");
        rp_emit_json_text(&w.e, rp_trace_str(w.t, f->name));
        if (f->file) {
            rp_emit_text(&w.e, ", \"file\": ");
            rp_emit_json_text(&w.e, rp_trace_str(w.t, f->file));
        }
        if (f->line) {
            rp_emit_text(&w.e, ", \"line\": ");
            rp_emit_i64(&w.e, f->line);
        }
        rp_emit_char(&w.e, '}');
    }
    rp_emit_text(&w.e, "]}");
    rp_emit_text(&w.e, ",\n\"profiles\": [\n");
    for (uint32_t begin = 0; begin < s->n; begin = end) {
        for (end = begin; end < s->n && s->track[end] == s->track[begin]; end++)
            ;
        if (begin)
            rp_emit_text(&w.e, ",\n");
        RP_TRY(put_thread(&w, begin, end));
    }
    rp_emit_text(&w.e, "]}\n");

    return rp_emit_close(&w.e, err);
}

const struct rp_writer rp_writer_speedscope = {
    .name = "speedscope",
    .endings = {".speedscope.json", ".speedscope.json.gz"},
    .summary = "samples for speedscope",
    .streams = true,
    .available = true,
    .samples = RP_SAMPLES_ALL,
    .write = write_speedscope,
};
