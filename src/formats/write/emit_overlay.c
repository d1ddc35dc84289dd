/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of spans in a process that is named by its title (a text as process number, as Kineto uses
 * them, cannot meet a recorded one) and stands above the others, and arrows between recorded
 * tracks, with the title as their category so that their numbers cannot meet recorded ones either.
 *
 *   {"ph":"X","cat":"critical path","name":"gemm","pid":"critical path","tid":0,"ts":12.5,"dur":3,
 *    "args":{"kind":"compute"}}
 */
#include "formats/write/emit_overlay.h"

struct overlay {
    struct rp_emit *e;
    const struct rp_write_overlay *o;
    bool any;
};

static void put_text(struct rp_emit *e, const char *text)
{
    rp_emit_json_text(e, text, strlen(text));
}

static void put_us(struct rp_emit *e, const char *key, int64_t ns)
{
    rp_emit_text(e, key);
    rp_emit_room(e, RP_PUT_US_MAX);
    e->at = rp_put_us(e->at, ns);
}

/* {"ph":"X","cat":"title","name":"name" */
static void begin(struct overlay *w, char phase, const char *name)
{
    char head[] = "{\"ph\":\"X\",\"cat\":";

    if (w->any)
        rp_emit_text(w->e, ",\n");
    w->any = true;
    head[7] = phase;
    rp_emit_text(w->e, head);
    put_text(w->e, w->o->title);
    rp_emit_text(w->e, ",\"name\":");
    put_text(w->e, name);
}

static void put_process(struct overlay *w, int64_t row)
{
    rp_emit_text(w->e, ",\"pid\":");
    put_text(w->e, w->o->title);
    if (row >= 0) {
        rp_emit_text(w->e, ",\"tid\":");
        rp_emit_i64(w->e, row);
    }
}

static void put_names(struct overlay *w)
{
    size_t i;

    begin(w, 'M', "process_name");
    put_process(w, -1);
    rp_emit_text(w->e, ",\"args\":{\"name\":");
    put_text(w->e, w->o->title);
    rp_emit_text(w->e, "}}");
    begin(w, 'M', "process_sort_index");
    put_process(w, -1);
    rp_emit_text(w->e, ",\"args\":{\"sort_index\":-1000}}");
    for (i = 0; i < w->o->nrows; i++) {
        begin(w, 'M', "thread_name");
        put_process(w, (int64_t)i);
        rp_emit_text(w->e, ",\"args\":{\"name\":");
        put_text(w->e, w->o->rows[i]);
        rp_emit_text(w->e, "}}");
    }
}

static void put_span(struct overlay *w, const struct rp_overlay_span *s)
{
    begin(w, 'X', s->name);
    put_process(w, s->row);
    put_us(w->e, ",\"ts\":", s->ts_ns);
    put_us(w->e, ",\"dur\":", s->dur_ns);
    rp_emit_text(w->e, ",\"args\":{\"kind\":");
    put_text(w->e, s->kind);
    rp_emit_text(w->e, "}}");
}

static void put_arrow_end(struct overlay *w, const struct rp_pieces *tracks, char phase,
                          rp_track track, int64_t ns, size_t id)
{
    size_t len;
    const char *where = rp_piece(tracks, track, &len);

    begin(w, phase, w->o->title);
    rp_emit_bytes(w->e, where, len);
    put_us(w->e, ",\"ts\":", ns);
    rp_emit_text(w->e, ",\"id\":");
    rp_emit_i64(w->e, (int64_t)id);
    rp_emit_text(w->e, phase == 'f' ? ",\"bp\":\"e\"}" : "}");
}

bool rp_emit_overlay(struct rp_emit *e, const struct rp_write_overlay *o,
                     const struct rp_pieces *tracks, bool any)
{
    struct overlay w = {e, o, any};
    size_t i;

    put_names(&w);
    for (i = 0; i < o->nspans; i++)
        put_span(&w, &o->spans[i]);
    for (i = 0; i < o->narrows; i++) {
        put_arrow_end(&w, tracks, 's', o->arrows[i].from, o->arrows[i].from_ns, i + 1);
        put_arrow_end(&w, tracks, 'f', o->arrows[i].to, o->arrows[i].to_ns, i + 1);
    }
    return w.any;
}
