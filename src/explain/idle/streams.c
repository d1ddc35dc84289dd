/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the streams of a rank, device by device: how long each is busy, how much of that it runs
 * alone, and what it mainly runs. A sweep over the begins and ends of all items of a device.
 */
#include "explain/idle/idle.h"

#include "base/hash.h"
#include "base/order.h"
#include "explain/short_name.h"
#include "result/part.h"

#include <stdlib.h>

#define STREAM(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_idle_stream, member, type, unit, title, doc, flags)

static const struct rp_field stream_fields[] = {
    STREAM(rank, I64, NONE, "rank", "whose stream", 0),
    STREAM(device, I64, NONE, "device", "number of its device; null: not recorded", RP_NULLABLE),
    STREAM(stream, STR, NONE, "stream", "its id", 0),
    STREAM(name, STR, NONE, "name", "the recorder's name of it, or null", RP_WIDE | RP_SHORTEN),
    STREAM(count, I64, COUNT, "items", "kernels, copies and memsets", 0),
    STREAM(busy_ns, I64, NS, "busy", "time in which its work runs", 0),
    STREAM(share, F64, RATIO, "share", "busy / window of the device", 0),
    STREAM(alone_ns, I64, NS, "alone", "time in which no other stream of the device runs", 0),
    STREAM(idle_ns, I64, NS, "idle", "window of the device - busy", RP_LARGEST),
    STREAM(longest_ns, I64, NS, "longest", "its longest gap", 0),
    STREAM(mainly, STR, NONE, NULL, "the name with most of its time", 0),
    STREAM(label, STR, NONE, "mainly", "text output only", RP_SCREEN | RP_SHORTEN),
    RP_FIELD_END};
const struct rp_type rp_idle_stream_type = {"stream", sizeof(struct rp_idle_stream), stream_fields,
                                            NULL};

/* A begin (add 1) or an end (add -1) of an item. */
struct edge {
    int64_t at_ns;
    int32_t add;
    uint32_t stream;
};

struct stream_ctx {
    const struct rp_work *w;
    struct rp_arena *arena;
    RP_VEC(struct edge) edges;
    struct rp_map known; /* from (stream, name) to the index in times */
    RP_VEC(int64_t) times;
    int64_t *until, *most; /* by stream: its last end; the time of its main name */
    uint32_t *active;      /* by stream: number of running items */
    rp_str *mainly;
    struct rp_idle_stream *rows; /* by stream */
};

RP_ORDER(by_time, struct edge, RP_UP(at_ns), RP_UP(add), RP_UP(stream))

/* Adds busy time, gaps and names; items are in the order of time. */
static enum rp_code add_item(struct stream_ctx *c, const struct rp_work_item *x, struct rp_err *err)
{
    struct rp_idle_stream *row = &c->rows[x->stream];
    int64_t from =
        row->count && c->until[x->stream] > x->begin_ns ? c->until[x->stream] : x->begin_ns;
    int64_t gap = row->count ? rp_ns_between(c->until[x->stream], x->begin_ns) : 0, *time;
    rp_str name = c->w->trace->ev.name[x->event];
    uint32_t at;

    row->longest_ns = gap > row->longest_ns ? gap : row->longest_ns;
    row->count++;
    if (x->end_ns > from)
        rp_ns_add(&row->busy_ns, rp_ns_between(from, x->end_ns));
    if (row->count == 1 || x->end_ns > c->until[x->stream])
        c->until[x->stream] = x->end_ns;
    RP_TRY(
        rp_map_intern(&c->known, (uint64_t)x->stream << 32 | name, (uint32_t)c->times.n, &at, err));
    if (at == c->times.n)
        RP_TRY(rp_vec_push(&c->times, 0, err));
    time = &c->times.at[at];
    rp_ns_add(time, rp_ns_between(x->begin_ns, x->end_ns));
    if (*time > c->most[x->stream] || !c->mainly[x->stream]) {
        c->most[x->stream] = *time;
        c->mainly[x->stream] = name;
    }
    if (x->end_ns == x->begin_ns)
        return RP_OK;
    RP_TRY(rp_vec_push(&c->edges, ((struct edge){x->begin_ns, 1, x->stream}), err));
    return rp_vec_push(&c->edges, ((struct edge){x->end_ns, -1, x->stream}), err);
}

/* Adds the time in which only one stream of the device runs. */
static void add_alone(struct stream_ctx *c)
{
    uint64_t ids = 0; /* sum of the running streams' ids; if only one runs, it is the id */
    uint32_t running = 0;
    int64_t since = 0;

    rp_sort(c->edges.at, c->edges.n, sizeof *c->edges.at, by_time);
    for (size_t i = 0; i < c->edges.n; i++) {
        const struct edge *e = &c->edges.at[i];
        uint32_t *active = &c->active[e->stream];

        if (running == 1)
            rp_ns_add(&c->rows[ids].alone_ns, rp_ns_between(since, e->at_ns));
        since = e->at_ns;
        if (e->add > 0 && (*active)++ == 0) {
            running++;
            ids += e->stream;
        } else if (e->add < 0 && --*active == 0) {
            running--;
            ids -= e->stream;
        }
    }
    c->edges.n = 0;
}

static const char *stream_name(const struct stream_ctx *c, const struct rp_work_stream *s)
{
    const struct rp_trace *t = c->w->trace;
    rp_str name = t->tracks[s->track].name;
    size_t n = rp_trace_str_len(t, name);

    while (n && rp_trace_str(t, name)[n - 1] == ' ')
        n--;
    return n ? rp_arena_copy(c->arena, rp_trace_str(t, name), n) : NULL;
}

static void finish_row(struct stream_ctx *c, uint32_t i, struct rp_idle_stream *out)
{
    const struct rp_work_stream *s = &c->w->streams.at[i];
    const struct rp_work_device *d = &c->w->devices.at[s->device];
    const struct rp_trace *t = c->w->trace;
    int64_t window = rp_ns_between(d->begin_ns, d->end_ns);
    char label[160];

    *out = c->rows[i];
    out->device = d->number < 0 ? RP_ABSENT_I64 : d->number;
    out->stream = s->text ? rp_arena_text(c->arena, rp_trace_str(t, s->text))
                          : rp_arena_textf(c->arena, "%lld", (long long)s->number);
    out->name = stream_name(c, s);
    out->idle_ns = rp_ns_between(out->busy_ns, window);
    out->share = window > 0 ? (double)out->busy_ns / (double)window : 0;
    out->mainly = rp_arena_text(c->arena, rp_trace_str(t, c->mainly[i]));
    rp_short_name(rp_trace_str(t, c->mainly[i]), label, sizeof label);
    out->label = rp_arena_text(c->arena, label);
}

static int busier_first(const void *pa, const void *pb, void *user)
{
    const struct stream_ctx *c = user;
    uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
    uint32_t x = c->w->streams.at[a].device, y = c->w->streams.at[b].device;

    if (x != y)
        return x < y ? -1 : 1;
    if (c->rows[a].busy_ns != c->rows[b].busy_ns)
        return c->rows[a].busy_ns > c->rows[b].busy_ns ? -1 : 1;
    return (a > b) - (a < b);
}

static enum rp_code measure_streams(struct stream_ctx *c, struct rp_idle_stream **out, size_t *nout,
                                    struct rp_err *err)
{
    uint32_t *order = RP_ARENA_NEW(c->arena, uint32_t, c->w->streams.n + 1);
    size_t i, n = c->w->streams.n;

    c->rows = RP_ARENA_NEW(c->arena, struct rp_idle_stream, n + 1);
    c->until = RP_ARENA_NEW(c->arena, int64_t, n + 1);
    c->most = RP_ARENA_NEW(c->arena, int64_t, n + 1);
    c->active = RP_ARENA_NEW(c->arena, uint32_t, n + 1);
    c->mainly = RP_ARENA_NEW(c->arena, rp_str, n + 1);
    *out = RP_ARENA_NEW(c->arena, struct rp_idle_stream, n + 1);
    RP_TRY(rp_arena_check(c->arena, "measuring streams", err));
    for (uint16_t device = 0; device < c->w->devices.n; device++) {
        for (i = 0; i < c->w->items.n; i++)
            if (c->w->items.at[i].device == device)
                RP_TRY(add_item(c, &c->w->items.at[i], err));
        add_alone(c);
    }
    for (i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    if (n)
        qsort_r(order, n, sizeof *order, busier_first, c);
    for (i = 0; i < n; i++)
        finish_row(c, order[i], &(*out)[(*nout)++]);
    return rp_arena_check(c->arena, "measuring streams", err);
}

enum rp_code rp_idle_find_streams(const struct rp_work *work, struct rp_arena *arena,
                                  struct rp_idle_stream **out, size_t *nout, struct rp_err *err)
{
    struct stream_ctx c = {.w = work, .arena = arena};

    *nout = 0;
    enum rp_code code = measure_streams(&c, out, nout, err);
    rp_map_release(&c.known);
    rp_vec_release(&c.edges);
    rp_vec_release(&c.times);
    return code;
}
