/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes Chrome trace JSON. A file that our reader read is written back event by event, in the
 * order of that file, with flow arrows at the end.
 *
 *   {
 *   "schemaVersion":1,                              top-level keys before the events
 *   "traceEvents":[
 *   {"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":12.5,"dur":3,"args":{...}},
 *   ...
 *   ],
 *   "traceName":"x.json"                            and after them
 *   }
 *
 * An event is put together from texts that are made beforehand: one for its origin (phase,
 * category), one for its track, one for each key of its arguments. Only names, times and values are
 * formatted event by event. A trace that was read from another format gets metadata events that
 * name its processes and threads.
 *
 * Begin/end pairs become two events again, but the place of the end in the file is not known.
 * Readers pair events by time, and by the order of the file where times are equal. So a trace with
 * pairs is written track by track. Among events of the same time, the ends of open pairs come
 * first, inner before outer, then ends without a begin, then begins and the rest.
 */
#include "base/vec.h"
#include "formats/write/emit_json.h"
#include "formats/write/samples.h"
#include "formats/write/writers.h"
#include "io/escaped.h"
#include "trace/meta.h"

struct chrome {
    const struct rp_trace *t;
    struct rp_emit e;
    struct rp_emit_json json;
    struct rp_pieces origins; /* {"ph":"X","cat":"kernel","name": */
    struct rp_pieces ends;    /* the same for the end of a pair */
    struct rp_pieces tracks;  /* ,"pid":0,"tid":7 */
    const struct rp_write_overlay *overlay;
    bool foreign; /* not read from Chrome JSON */
    bool any;     /* the current list has an element already */
    RP_VEC(rp_event)
    open; /* pairs of the track that have not ended: a heap with the next end first */
    RP_VEC(rp_event) order; /* the events in the order of the file, if that order is used */
};

static void put_origin(struct chrome *c, struct rp_emit *to, const struct rp_origin *o, char phase)
{
    char head[] = "{\"ph\":\"X\"";

    head[7] = phase;
    if (phase < ' ' || phase > '~' || phase == '"' || phase == '\\')
        head[7] = 'X';
    rp_emit_text(to, head);
    if (o->flags & (RP_ORIGIN_SCOPE_GLOBAL | RP_ORIGIN_SCOPE_PROCESS | RP_ORIGIN_SCOPE_THREAD))
        rp_emit_text(to, o->flags & RP_ORIGIN_SCOPE_GLOBAL    ? ",\"s\":\"g\""
                         : o->flags & RP_ORIGIN_SCOPE_PROCESS ? ",\"s\":\"p\""
                                                              : ",\"s\":\"t\"");
    if (o->has_category) {
        rp_emit_text(to, ",\"cat\":");
        rp_emit_json_str(to, &c->json, o->category);
    }
    rp_emit_text(to, ",\"name\":");
}

/* The phase that ends what phase `begin` begins. */
static char end_phase(char begin)
{
    return begin == 'b' ? 'e' : begin == 'S' ? 'F' : 'E';
}

static void put_number_or_text(struct chrome *c, struct rp_emit *to, int64_t number, rp_str text)
{
    if (text || number == RP_ID_EMPTY)
        rp_emit_json_str(to, &c->json, text);
    else
        rp_emit_i64(to, number);
}

static void put_track(struct chrome *c, struct rp_emit *to, const struct rp_track_info *track)
{
    const struct rp_process *process = &c->t->processes[track->process];

    rp_emit_text(to, ",\"pid\":");
    put_number_or_text(c, to, process->native_id, process->text);
    if (track->has_id) {
        rp_emit_text(to, ",\"tid\":");
        put_number_or_text(c, to, track->native_id, track->text);
    }
}

static void put_piece(struct rp_emit *e, const struct rp_pieces *p, uint32_t i)
{
    size_t len;
    const char *text = rp_piece(p, i, &len);

    rp_emit_bytes(e, text, len);
}

static void put_time(struct rp_emit *e, const char *key, size_t key_len, int64_t ns)
{
    char *to = rp_emit_room(e, key_len + RP_PUT_US_MAX);

    memcpy(to, key, key_len);
    e->at = rp_put_us(to + key_len, ns);
}

/* Puts the separator before an element of a list. */
static void put_separator(struct chrome *c)
{
    char *to = rp_emit_room(&c->e, 2);

    if (c->any) {
        memcpy(to, ",\n", 2);
        c->e.at += 2;
    }
    c->any = true;
}

/* Puts the part of an event up to its time, which all events have. */
static void put_head(struct chrome *c, rp_event i, const struct rp_pieces *origins, int64_t ts_ns)
{
    const struct rp_trace *t = c->t;

    put_separator(c);
    put_piece(&c->e, origins, t->ev.origin[i]);
    rp_emit_json_str(&c->e, &c->json, t->ev.name[i]);
    put_piece(&c->e, &c->tracks, t->ev.track[i]);
    if (ts_ns != RP_NO_TS)
        put_time(&c->e, ",\"ts\":", 6, ts_ns);
    if (t->ev.flags[i] & RP_EVENT_ASYNC && t->ev.link[i] != RP_NONE) {
        int64_t id = t->links.native_id[t->ev.link[i]];

        rp_emit_text(&c->e, ",\"id\":");
        if (t->ev.flags[i] & RP_EVENT_ID_TEXT)
            rp_emit_json_str(&c->e, &c->json, (rp_str)id);
        else
            rp_emit_i64(&c->e, id);
    }
}

/* A negative duration may be that of RP_OPEN_NS; in a Chrome trace the flags distinguish the two.
 */
static bool has_duration(const struct chrome *c, rp_event i)
{
    const struct rp_events *ev = &c->t->ev;

    if (ev->flags[i] & (RP_EVENT_PAIR | RP_EVENT_NO_DUR | RP_EVENT_UNENDED))
        return false;
    return ev->dur_ns[i] != RP_OPEN_NS ||
           (!c->foreign && c->t->origins[ev->origin[i]].phase == 'X');
}

static void put_args(struct chrome *c, uint16_t shape, uint32_t row)
{
    if (!shape)
        return;
    rp_emit_text(&c->e, ",\"args\":");
    rp_emit_json_args(&c->e, &c->json, shape, row);
}

static void put_event(struct chrome *c, rp_event i)
{
    const struct rp_trace *t = c->t;

    put_head(c, i, &c->origins, t->ev.ts_ns[i]);
    if (has_duration(c, i))
        put_time(&c->e, ",\"dur\":", 7, t->ev.dur_ns[i]);
    put_args(c, t->ev.shape[i], t->ev.arg_row[i]);
    rp_emit_char(&c->e, '}');
}

/* ------------------------------------------------------------------ the order of the file */

static bool has_pairs(const struct rp_trace *t)
{
    uint8_t any = 0;

    for (rp_event i = 0; i < t->ev.n; i++)
        any |= t->ev.flags[i];
    return any & RP_EVENT_PAIR;
}

/* Inverts the list of the events' places. *known is false if the places are not 0 to n - 1, each
   once, since a native file may contain anything. */
static enum rp_code find_order(struct chrome *c, bool *known, struct rp_err *err)
{
    const struct rp_events *ev = &c->t->ev;

    RP_TRY(rp_vec_reserve(&c->order, (size_t)ev->n + 1, err));
    memset(c->order.at, 0xff, ev->n * sizeof *c->order.at);
    *known = true;
    for (rp_event i = 0; i < ev->n && *known; i++) {
        *known = ev->seq[i] < ev->n && c->order.at[ev->seq[i]] == RP_NONE;
        if (*known)
            c->order.at[ev->seq[i]] = i;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ the order of a track */

/* Whether a ends before b, or at the same time and inside it. */
static bool ends_first(const struct chrome *c, rp_event a, rp_event b)
{
    int64_t end_a = rp_event_end_ns(c->t, a), end_b = rp_event_end_ns(c->t, b);

    return end_a < end_b || (end_a == end_b && a > b);
}

static rp_event close_pair(struct chrome *c)
{
    rp_event first = c->open.at[0], last = c->open.at[--c->open.n];
    size_t at = 0, n = c->open.n, down;

    while ((down = 2 * at + 1) < n) {
        if (down + 1 < n && ends_first(c, c->open.at[down + 1], c->open.at[down]))
            down++;
        if (!ends_first(c, c->open.at[down], last))
            break;
        c->open.at[at] = c->open.at[down];
        at = down;
    }
    c->open.at[at] = last;
    return first;
}

static void put_ends(struct chrome *c, int64_t until_ns)
{
    while (c->open.n && rp_event_end_ns(c->t, c->open.at[0]) <= until_ns) {
        rp_event i = close_pair(c);

        put_head(c, i, &c->ends, rp_event_end_ns(c->t, i));
        rp_emit_char(&c->e, '}');
    }
}

static enum rp_code put_track_events(struct chrome *c, const struct rp_track_info *track,
                                     struct rp_err *err)
{
    const struct rp_events *ev = &c->t->ev;
    bool unbegun = c->t->health.unbegun > 0;

    for (rp_event i = track->first; i < track->end; i++) {
        if (c->open.n)
            put_ends(c, ev->ts_ns[i]);
        if (unbegun && (i == track->first || ev->ts_ns[i] != ev->ts_ns[i - 1])) {
            /* Puts the ends without a begin among the events that have the time of event i. */
            for (rp_event k = i; k < track->end && ev->ts_ns[k] == ev->ts_ns[i]; k++)
                if (ev->flags[k] & RP_EVENT_NO_BEGIN)
                    put_event(c, k);
        }
        if (unbegun && ev->flags[i] & RP_EVENT_NO_BEGIN)
            continue;
        put_event(c, i);
        if (ev->flags[i] & RP_EVENT_PAIR) {
            size_t at = c->open.n, up;
            RP_TRY(rp_vec_push(&c->open, i, err));
            for (; at > 0 && ends_first(c, i, c->open.at[up = (at - 1) / 2]); at = up)
                c->open.at[at] = c->open.at[up];
            c->open.at[at] = i;
        }
    }
    put_ends(c, INT64_MAX);
    return RP_OK;
}

/* ------------------------------------------------------------------ arrows and names */

static void put_flow(struct chrome *c, uint32_t i)
{
    const struct rp_flows *f = &c->t->flows;

    put_separator(c);
    put_piece(&c->e, &c->origins, f->origin[i]);
    rp_emit_json_str(&c->e, &c->json, f->name[i]);
    put_piece(&c->e, &c->tracks, f->track[i]);
    if (f->ts_ns[i] != RP_NO_TS)
        put_time(&c->e, ",\"ts\":", 6, f->ts_ns[i]);
    if (!(f->flags[i] & RP_FLOW_NO_ID)) {
        rp_emit_text(&c->e, ",\"id\":");
        if (f->flags[i] & RP_FLOW_ID_TEXT)
            rp_emit_json_str(&c->e, &c->json, (rp_str)f->id[i]);
        else
            rp_emit_i64(&c->e, f->id[i]);
    }
    if (f->flags[i] & RP_FLOW_BIND_ENCLOSING)
        rp_emit_text(&c->e, ",\"bp\":\"e\"");
    put_args(c, f->shape[i], f->arg_row[i]);
    rp_emit_char(&c->e, '}');
}

/* {"ph":"M","name":"process_name","pid":0,"args":{"name":"python"}} */
static void put_name_event(struct chrome *c, const char *what, uint32_t process, uint32_t track,
                           rp_str name)
{
    static const struct rp_track_info no_track = {0};
    struct rp_track_info at = track == RP_NONE ? no_track : c->t->tracks[track];

    at.process = process;
    put_separator(c);
    rp_emit_text(&c->e, "{\"ph\":\"M\",\"name\":\"");
    rp_emit_text(&c->e, what);
    rp_emit_char(&c->e, '"');
    put_track(c, &c->e, &at);
    rp_emit_text(&c->e, ",\"args\":{\"name\":");
    rp_emit_json_str(&c->e, &c->json, name);
    rp_emit_text(&c->e, "}}");
}

/* ------------------------------------------------------------------ the overlay */

/*
 * Rows of spans in a process that is named by the overlay's title and sorted above the others, and
 * arrows between recorded tracks. The process id is a text (as Kineto uses them) and the title is
 * the category of the arrows, so that neither collides with recorded ids.
 *
 *   {"ph":"X","cat":"critical path","name":"gemm","pid":"critical path","tid":0,"ts":12.5,"dur":3,
 *    "args":{"kind":"compute"}}
 */

/* {"ph":"X","cat":"title","name":"name" */
static void put_overlay_head(struct chrome *c, char phase, const char *name)
{
    char head[] = "{\"ph\":\"X\",\"cat\":";

    put_separator(c);
    head[7] = phase;
    rp_emit_text(&c->e, head);
    rp_emit_json_text(&c->e, c->overlay->title);
    rp_emit_text(&c->e, ",\"name\":");
    rp_emit_json_text(&c->e, name);
}

/* row: -1 for the process itself */
static void put_overlay_row(struct chrome *c, int64_t row)
{
    rp_emit_text(&c->e, ",\"pid\":");
    rp_emit_json_text(&c->e, c->overlay->title);
    if (row >= 0) {
        rp_emit_text(&c->e, ",\"tid\":");
        rp_emit_i64(&c->e, row);
    }
}

static void put_overlay_name(struct chrome *c, const char *what, int64_t row, const char *name)
{
    put_overlay_head(c, 'M', what);
    put_overlay_row(c, row);
    rp_emit_text(&c->e, ",\"args\":{\"name\":");
    rp_emit_json_text(&c->e, name);
    rp_emit_text(&c->e, "}}");
}

static void put_overlay_arrow(struct chrome *c, char phase, rp_track track, int64_t ns, size_t id)
{
    put_overlay_head(c, phase, c->overlay->title);
    put_piece(&c->e, &c->tracks, track);
    put_time(&c->e, ",\"ts\":", 6, ns);
    rp_emit_text(&c->e, ",\"id\":");
    rp_emit_i64(&c->e, (int64_t)id);
    rp_emit_text(&c->e, phase == 'f' ? ",\"bp\":\"e\"}" : "}");
}

/* ------------------------------------------------------------------ the document */

static void put_meta(struct chrome *c, bool after)
{
    const struct rp_trace *t = c->t;

    for (uint32_t i = 0; i < t->nmeta; i++) {
        if ((t->meta[i].after_events != 0) != after)
            continue;
        put_separator(c);
        rp_emit_json_str(&c->e, &c->json, t->meta[i].key);
        rp_emit_char(&c->e, ':');
        rp_emit_json_raw(&c->e, &c->json, t->meta[i].value);
    }
}

/* Puts facts that other formats keep elsewhere, under the names that Kineto gives them. */
static void put_facts(struct chrome *c)
{
    const struct rp_trace *t = c->t;

    if (t->has_base && !rp_trace_meta(t, "baseTimeNanoseconds")) {
        put_separator(c);
        rp_emit_text(&c->e, "\"baseTimeNanoseconds\":");
        rp_emit_i64(&c->e, t->base_ns);
    }
    if (!c->foreign || t->rank == RP_NO_RANK || rp_trace_meta(t, "distributedInfo"))
        return;
    put_separator(c);
    rp_emit_text(&c->e, "\"distributedInfo\":{\"rank\":");
    rp_emit_i64(&c->e, t->rank);
    if (t->world_size > 0) {
        rp_emit_text(&c->e, ",\"world_size\":");
        rp_emit_i64(&c->e, t->world_size);
    }
    rp_emit_char(&c->e, '}');
}

static enum rp_code put_document(struct chrome *c, struct rp_err *err)
{
    const struct rp_trace *t = c->t;

    rp_emit_text(&c->e, "{\n");
    put_meta(c, false);
    put_facts(c);
    put_separator(c);
    rp_emit_text(&c->e, "\"traceEvents\":[\n");
    c->any = false;
    if (c->foreign) {
        for (uint32_t i = 0; i < t->nprocesses; i++)
            if (t->processes[i].name)
                put_name_event(c, "process_name", i, RP_NONE, t->processes[i].name);
        for (uint32_t i = 0; i < t->ntracks; i++)
            if (t->tracks[i].name && t->tracks[i].has_id)
                put_name_event(c, "thread_name", t->tracks[i].process, i, t->tracks[i].name);
    }
    bool in_file_order = !has_pairs(c->t);
    if (in_file_order)
        RP_TRY(find_order(c, &in_file_order, err));
    for (rp_event i = 0; in_file_order && i < c->t->ev.n; i++)
        put_event(c, c->order.at[i]);
    for (uint32_t i = 0; !in_file_order && i < c->t->ntracks; i++)
        RP_TRY(put_track_events(c, &c->t->tracks[i], err));
    for (uint32_t i = 0; i < t->flows.n; i++)
        put_flow(c, i);
    if (c->overlay) {
        const struct rp_write_overlay *o = c->overlay;
        put_overlay_name(c, "process_name", -1, o->title);
        put_overlay_head(c, 'M', "process_sort_index");
        put_overlay_row(c, -1);
        rp_emit_text(&c->e, ",\"args\":{\"sort_index\":-1000}}");
        for (size_t i = 0; i < o->nrows; i++)
            put_overlay_name(c, "thread_name", (int64_t)i, o->rows[i]);
        for (size_t i = 0; i < o->nspans; i++) {
            const struct rp_overlay_span *s = &o->spans[i];
            put_overlay_head(c, 'X', s->name);
            put_overlay_row(c, s->row);
            put_time(&c->e, ",\"ts\":", 6, s->ts_ns);
            put_time(&c->e, ",\"dur\":", 7, s->dur_ns);
            rp_emit_text(&c->e, ",\"args\":{\"kind\":");
            rp_emit_json_text(&c->e, s->kind);
            rp_emit_text(&c->e, "}}");
        }
        for (size_t i = 0; i < o->narrows; i++) {
            put_overlay_arrow(c, 's', o->arrows[i].from, o->arrows[i].from_ns, i + 1);
            put_overlay_arrow(c, 'f', o->arrows[i].to, o->arrows[i].to_ns, i + 1);
        }
    }
    rp_emit_text(&c->e, c->any ? "\n]" : "]");
    c->any = true;
    put_meta(c, true);
    rp_samples_put_json(&c->e, &c->json, t);
    rp_emit_text(&c->e, "\n}\n");
    return RP_OK;
}

static void chrome_release(struct chrome *c)
{
    rp_emit_abandon(&c->e);
    rp_emit_json_release(&c->json);
    rp_pieces_release(&c->origins);
    rp_pieces_release(&c->ends);
    rp_pieces_release(&c->tracks);
    rp_vec_release(&c->open);
    rp_vec_release(&c->order);
}

static enum rp_code write_chrome(const struct rp_trace *trace, const char *path,
                                 const struct rp_write_options *options, struct rp_err *err)
{
    RP_SCOPED(chrome_release)
    struct chrome c = {.t = trace, .overlay = options ? options->overlay : NULL};

    c.foreign = strcmp(rp_trace_str(trace, trace->format), "chrome-json") != 0;

    /* Texts that repeat, those of origins and tracks, are made once. */
    const struct rp_trace *t = c.t;
    RP_TRY(rp_trace_require(t, RP_NEED_ALL, err));
    RP_TRY(rp_emit_json_init(&c.json, t, err));
    RP_TRY(rp_pieces_init(&c.origins, t->norigins, err));
    RP_TRY(rp_pieces_init(&c.ends, t->norigins, err));
    RP_TRY(rp_pieces_init(&c.tracks, t->ntracks, err));
    for (uint32_t i = 0; i < t->norigins; i++) {
        put_origin(&c, &c.origins.text, &t->origins[i], t->origins[i].phase);
        rp_pieces_end(&c.origins);
        put_origin(&c, &c.ends.text, &t->origins[i], end_phase(t->origins[i].phase));
        rp_pieces_end(&c.ends);
    }
    for (uint32_t i = 0; i < t->ntracks; i++) {
        put_track(&c, &c.tracks.text, &t->tracks[i]);
        rp_pieces_end(&c.tracks);
    }
    RP_TRY(rp_pieces_check(&c.origins, err));
    RP_TRY(rp_pieces_check(&c.ends, err));
    RP_TRY(rp_pieces_check(&c.tracks, err));
    RP_TRY(rp_emit_open(&c.e, path, options ? options->gzip_level : 0, err));
    RP_TRY(put_document(&c, err));
    return rp_emit_close(&c.e, err);
}

const struct rp_writer rp_writer_json = {
    .name = "json",
    .endings = {".json", ".json.gz"},
    .summary = "Chrome trace JSON, for Perfetto and other tools",
    .streams = true,
    .available = true,
    .samples = RP_SAMPLES_TIMED,
    .write = write_chrome,
};
