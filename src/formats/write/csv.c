/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes CSV: one row for each event, in the trace's order, quoted as in RFC 4180 (but lines end
 * with a newline only). `parent` refers to `id`; an empty cell is "none". Arguments are one JSON
 * object in the last column. A pair has the phase of its begin. Flow arrows are not events and have
 * no row.
 */
#include "formats/write/emit_json.h"
#include "formats/write/writers.h"
#include "io/escaped.h"
#include "trace/words.h"

#include <stdlib.h>

#define HEADER                                                                                    \
    "id,rank,process,thread,track_kind,name,category,phase,kind,ts_ns,dur_ns,parent,correlation," \
    "args\n"

enum { PLAIN = 1, QUOTED = 2 };

struct csv {
    const struct rp_trace *t;
    struct rp_emit e;
    struct rp_emit_json json;
    struct rp_emit args;     /* memory: the arguments of one event */
    struct rp_pieces tracks; /* rank,process,thread,kind, */
    uint8_t *seen;           /* for each string, whether it needs quotes */
};

static void put_str(struct csv *c, struct rp_emit *e, rp_str s)
{
    const char *bytes = rp_trace_str(c->t, s);
    size_t n = rp_trace_str_len(c->t, s);

    if (!c->seen[s])
        c->seen[s] = !n || rp_escape_needless(RP_IN_CSV, bytes, n) ? PLAIN : QUOTED;
    if (c->seen[s] == PLAIN)
        rp_emit_bytes(e, bytes, n);
    else
        rp_emit_escaped(e, RP_IN_CSV, bytes, n);
}

static void put_number_or_text(struct csv *c, struct rp_emit *e, int64_t number, rp_str text)
{
    if (text || number == RP_ID_EMPTY)
        put_str(c, e, text);
    else
        rp_emit_i64(e, number);
}

static void put_optional(struct rp_emit *e, bool there, int64_t v)
{
    if (there)
        rp_emit_i64(e, v);
    rp_emit_char(e, ',');
}

static void put_event(struct csv *c, rp_event i)
{
    const struct rp_events *ev = &c->t->ev;
    const struct rp_origin *origin = &c->t->origins[ev->origin[i]];
    size_t len;

    rp_emit_i64(&c->e, i);
    rp_emit_char(&c->e, ',');
    const char *track = rp_piece(&c->tracks, ev->track[i], &len);
    rp_emit_bytes(&c->e, track, len);
    put_str(c, &c->e, ev->name[i]);
    rp_emit_char(&c->e, ',');
    if (origin->has_category)
        put_str(c, &c->e, origin->category);
    rp_emit_char(&c->e, ',');

    /* The phase as in the file; a native file may have any byte here. */
    char phase = origin->phase;
    if (phase > ' ' && phase <= '~')
        rp_emit_escaped(&c->e, RP_IN_CSV, &phase, 1);
    rp_emit_char(&c->e, ',');
    rp_emit_text(&c->e, rp_word_kind(ev->kind[i]));
    rp_emit_char(&c->e, ',');
    put_optional(&c->e, ev->ts_ns[i] != RP_NO_TS, ev->ts_ns[i]);
    put_optional(&c->e, ev->dur_ns[i] != RP_OPEN_NS, ev->dur_ns[i]);
    put_optional(&c->e, ev->parent[i] != RP_NONE, ev->parent[i]);

    /* The correlation id, or the async id. */
    rp_link link = c->t->ev.link[i];
    if (link != RP_NONE && c->t->ev.flags[i] & RP_EVENT_ID_TEXT)
        put_str(c, &c->e, (rp_str)c->t->links.native_id[link]);
    else if (link != RP_NONE)
        rp_emit_i64(&c->e, c->t->links.native_id[link]);
    rp_emit_char(&c->e, ',');
    if (ev->shape[i]) {
        rp_emit_reset(&c->args);
        rp_emit_json_args(&c->args, &c->json, ev->shape[i], ev->arg_row[i]);
        rp_emit_escaped(&c->e, RP_IN_CSV, c->args.buffer, rp_emit_length(&c->args));
    }
    rp_emit_char(&c->e, '\n');
}

static void csv_release(struct csv *c)
{
    rp_emit_abandon(&c->e);
    rp_emit_abandon(&c->args);
    rp_emit_json_release(&c->json);
    rp_pieces_release(&c->tracks);
    free(c->seen);
}

static enum rp_code write_csv(const struct rp_trace *trace, const char *path,
                              const struct rp_write_options *options, struct rp_err *err)
{
    RP_SCOPED(csv_release) struct csv c = {.t = trace};

    RP_TRY(rp_trace_require(c.t, RP_NEED_ALL & ~RP_NEED_FLOWS, err));
    RP_TRY(rp_emit_json_init(&c.json, c.t, err));
    RP_TRY(rp_emit_open_memory(&c.args, err));
    RP_TRY(rp_pieces_init(&c.tracks, c.t->ntracks, err));
    c.seen = calloc((size_t)c.t->str.n + 1, 1);
    RP_TRY(rp_err_need(c.seen, err, "writing text"));
    for (uint32_t i = 0; i < c.t->ntracks; i++) {
        /* The columns of a track: rank, process, thread, kind. */
        const struct rp_process *process = &c.t->processes[c.t->tracks[i].process];
        if (c.t->rank != RP_NO_RANK)
            rp_emit_i64(&c.tracks.text, c.t->rank);
        rp_emit_char(&c.tracks.text, ',');
        put_number_or_text(&c, &c.tracks.text, process->native_id, process->text);
        rp_emit_char(&c.tracks.text, ',');
        if (c.t->tracks[i].has_id)
            put_number_or_text(&c, &c.tracks.text, c.t->tracks[i].native_id, c.t->tracks[i].text);
        rp_emit_char(&c.tracks.text, ',');
        rp_emit_text(&c.tracks.text, rp_word_track_kind(c.t->tracks[i].kind));
        rp_emit_char(&c.tracks.text, ',');
        rp_pieces_end(&c.tracks);
    }
    RP_TRY(rp_pieces_check(&c.tracks, err));
    RP_TRY(rp_emit_open(&c.e, path, options ? options->gzip_level : 0, err));
    rp_emit_text(&c.e, HEADER);
    for (rp_event i = 0; i < trace->ev.n; i++)
        put_event(&c, i);
    if (c.e.failure.code == RP_OK)
        c.e.failure = c.args.failure;
    return rp_emit_close(&c.e, err);
}

const struct rp_writer rp_writer_csv = {
    .name = "csv",
    .endings = {".csv", ".csv.gz"},
    .summary = "one row per event, for spreadsheets",
    .streams = true,
    .available = true,
    .write = write_csv,
};
