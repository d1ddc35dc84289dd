/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communication streams are numbered by the length of their id and the id itself, so that the k-th
 * stream of one rank corresponds to the k-th of the others although ids differ. Keys for matching
 * are hashes: of group and sequence number (or if there is none, and name). On the host, where
 * worker threads may start two collectives in either order, those without a number have the hash of
 * name and size. If several have the same key, their ordinal becomes part of it.
 */
#include "facts/ranks/collectives.h"

#include "base/filled.h"
#include "base/hash.h"
#include "base/order.h"
#include "facts/host/trace_host.h"
#include "result/part.h"

#include <stdio.h>
#include <stdlib.h>

#define COLL(kind, member) RP_PART_##kind(struct rp_collective, member)

static const struct rp_field collective_fields[] = {
    COLL(PLAIN, begin_ns),  COLL(PLAIN, end_ns),     COLL(TEXT, name),
    COLL(TEXT, group),      COLL(TEXT, dtype),       COLL(PLAIN, seq),
    COLL(PLAIN, in_bytes),  COLL(PLAIN, out_bytes),  COLL(PLAIN, group_size),
    COLL(PLAIN, name_hash), COLL(PLAIN, group_hash), COLL(PLAIN, key),
    COLL(PLAIN, stream),    COLL(PLAIN, index),      COLL(PLAIN, event),
    COLL(PLAIN, launch),    COLL(PLAIN, kind),       COLL(PLAIN, awaited),
    COLL(PLAIN, algorithm), COLL(PLAIN, dimension),  RP_PART_END};
static const struct rp_type collective_type = {"collective", sizeof(struct rp_collective),
                                               collective_fields, NULL};

static const struct rp_field collectives_fields[] = {
    RP_PART_VEC(struct rp_collectives, list, &collective_type),
    RP_PART_PLAIN_VEC(struct rp_collectives, messages, struct rp_message),
    RP_PART_PLAIN(struct rp_collectives, nstreams),
    RP_PART_PLAIN(struct rp_collectives, on_host),
    RP_PART_PLAIN(struct rp_collectives, cut),
    RP_PART_PLAIN(struct rp_collectives, sequenced),
    RP_PART_PLAIN(struct rp_collectives, grouped),
    RP_PART_PLAIN(struct rp_collectives, mixed),
    RP_PART_PLAIN(struct rp_collectives, group_hash),
    RP_PART_PLAIN(struct rp_collectives, base_ns),
    RP_PART_PLAIN(struct rp_collectives, boot),
    RP_PART_TEXT(struct rp_collectives, host),
    RP_PART_PLAIN(struct rp_collectives, world_size),
    RP_PART_PLAIN(struct rp_collectives, first_step_ns),
    RP_PART_END};
const struct rp_type rp_collectives_type = {"collectives", sizeof(struct rp_collectives),
                                            collectives_fields, NULL};

/* found: a collective whose arguments are not read yet. */
struct found {
    int64_t begin_ns;
    uint32_t seq; /* position in the file */
    rp_event event, launch, described_by;
    uint32_t stream;
};

struct collective_ctx {
    const struct rp_work *work;
    const struct rp_trace *t;
    struct rp_collectives *out;
    struct rp_arena *arena;
    struct rp_coll_reader reader;
    struct rp_message_finder messages;
    struct rp_map texts;           /* from a string to its number in `copies` */
    RP_VEC(const char *) copies;   /* in the arena */
    struct rp_map seen;            /* from a key to its count so far */
    RP_VEC(uint32_t) stream_place; /* by stream of the work: its number here, or RP_NONE */
    RP_VEC(uint32_t) stream_count;
    RP_VEC(uint32_t) comm_streams; /* streams of the work with communication, in order */
    RP_VEC(struct found) found;
};

static enum rp_code keep_text(struct collective_ctx *g, rp_str s, const char **out,
                              struct rp_err *err)
{
    uint32_t at;

    RP_TRY(rp_map_intern(&g->texts, s, (uint32_t)g->copies.n, &at, err));
    if (at == g->copies.n) {
        *out = rp_arena_copy(g->arena, rp_trace_str(g->t, s), rp_trace_str_len(g->t, s));
        if (!*out)
            return rp_err_nomem(err, "listing collectives");
        return rp_vec_push(&g->copies, *out, err);
    }
    *out = g->copies.at[at];
    return RP_OK;
}

static int64_t bytes_of(int64_t elements, int64_t item_bytes)
{
    int64_t bytes;

    if (elements < 0 || item_bytes <= 0 || __builtin_mul_overflow(elements, item_bytes, &bytes))
        return -1;
    return bytes;
}

static enum rp_code set_group(struct collective_ctx *g, const struct rp_coll_facts *f,
                              struct rp_collective *c, struct rp_err *err)
{
    if (f->group != RP_NONE) {
        RP_TRY(keep_text(g, f->group, &c->group, err));
    } else if (f->group_number >= 0) {
        c->group = rp_arena_printf(g->arena, "%lld", (long long)f->group_number);
        RP_TRY(rp_err_need(c->group, err, "listing collectives"));
    }
    c->group_hash = rp_coll_group_hash(g->t, f);
    return RP_OK;
}

/* Sets the key of c, which includes its ordinal among those that look the same. */
static enum rp_code set_key(struct collective_ctx *g, struct rp_collective *c, struct rp_err *err)
{
    uint64_t words[3] = {rp_hash_join(c->name_hash, (uint64_t)c->group_size), (uint64_t)c->in_bytes,
                         0};
    bool numbered = c->group && c->seq >= 0;

    if (c->kind == RP_COLL_SEND_RECV && (!g->out->on_host || c->group))
        return RP_OK;
    if (!g->out->on_host || numbered) {
        if (!c->group)
            return RP_OK;
        words[0] = c->group_hash;
        words[1] = c->seq >= 0 ? (uint64_t)c->seq : c->name_hash;
    }
    words[2] = rp_hash_bytes(words, 2 * sizeof *words);
    uint32_t before = rp_map_get(&g->seen, words[2]);
    before = before == RP_MAP_NONE ? 0 : before;
    RP_TRY(rp_map_put(&g->seen, words[2], before + 1, err));
    c->key = rp_hash_mix(words[2], before + UINT64_C(0x9e3779b97f4a7c15)) | 1;
    return RP_OK;
}

static enum rp_code add_collective(struct collective_ctx *g, const struct found *found,
                                   struct rp_err *err)
{
    rp_event e = found->event;
    struct rp_coll_facts f = rp_coll_read(&g->reader, e, found->described_by);

    RP_TRY(
        rp_messages_add(&g->messages, e, found->described_by, (uint32_t)g->out->list.n, &f, err));
    struct rp_collective c = {.begin_ns = g->t->ev.ts_ns[e],
                              .end_ns = rp_event_end_ns(g->t, e),
                              .dtype = f.dtype,
                              .seq = f.seq,
                              .in_bytes = bytes_of(f.in_elements, f.item_bytes),
                              .out_bytes = bytes_of(f.out_elements, f.item_bytes),
                              .group_size = f.group_size,
                              .stream = found->stream,
                              .event = e,
                              .launch = found->launch,
                              .kind = (uint8_t)f.kind,
                              .algorithm = f.algorithm,
                              .dimension = f.dimension,
                              .awaited = f.awaited};

    RP_TRY(keep_text(g, g->t->ev.name[e], &c.name, err));
    RP_TRY(set_group(g, &f, &c, err));
    c.name_hash = rp_hash_bytes(c.name, strlen(c.name));
    c.index = g->stream_count.at[found->stream]++;
    RP_TRY(set_key(g, &c, err));

    /* Note what all collectives of the rank have in common. */
    struct rp_collectives *out = g->out;
    if (c.kind != RP_COLL_SEND_RECV) {
        out->grouped = out->grouped && c.key;
        out->sequenced = out->sequenced && c.key && c.seq >= 0;
        out->mixed |= out->group_hash && out->group_hash != c.group_hash;
        out->group_hash = c.group_hash;
    }

    return rp_vec_push(&g->out->list, c, err);
}

/* The id of a stream as text, for sorting. */
static const char *stream_text(const struct rp_work *w, uint32_t stream, char buf[24])
{
    const struct rp_work_stream *s = &w->streams.at[stream];

    if (s->text)
        return rp_trace_str(w->trace, s->text);
    snprintf(buf, 24, "%lld", (long long)s->number);
    return buf;
}

static int stream_order(const struct rp_work *w, uint32_t a, uint32_t b)
{
    char bufs[2][24];
    const char *x = stream_text(w, a, bufs[0]), *y = stream_text(w, b, bufs[1]);
    size_t nx = strlen(x), ny = strlen(y);
    int order = nx != ny ? (nx < ny ? -1 : 1) : strcmp(x, y);

    if (order)
        return order;
    return (w->streams.at[a].process > w->streams.at[b].process) -
           (w->streams.at[a].process < w->streams.at[b].process);
}

static int by_stream(const void *pa, const void *pb, void *user)
{
    return stream_order(user, *(const uint32_t *)pa, *(const uint32_t *)pb);
}

static void sort_streams(const struct rp_work *w, uint32_t *at, size_t n)
{
    union {
        const struct rp_work *given;
        void *user;
    } work = {.given = w};

    if (n)
        qsort_r(at, n, sizeof *at, by_stream, work.user);
}

/* Numbers the streams that hold communication. */
static enum rp_code place_streams(struct collective_ctx *g, struct rp_err *err)
{
    const struct rp_work *w = g->work;

    RP_TRY(rp_vec_reserve(&g->stream_place, w->streams.n + 1, err));
    RP_TRY(rp_vec_zeros(&g->stream_count, w->streams.n, err));
    for (uint32_t s = 0; s < w->streams.n; s++)
        g->stream_place.at[s] = RP_NONE;
    for (size_t i = 0; i < w->items.n; i++)
        if (w->items.at[i].cls == RP_WORK_COMM)
            g->stream_place.at[w->items.at[i].stream] = 0;
    for (uint32_t s = 0; s < w->streams.n; s++)
        if (g->stream_place.at[s] != RP_NONE)
            RP_TRY(rp_vec_push(&g->comm_streams, s, err));
    g->out->nstreams = (uint32_t)g->comm_streams.n;
    sort_streams(w, g->comm_streams.at, g->comm_streams.n);
    for (uint32_t s = 1; s < g->out->nstreams; s++) { /* 7 and "7" are the same id */
        uint32_t before = g->comm_streams.at[s - 1], at = g->comm_streams.at[s];

        g->stream_place.at[at] = stream_order(w, before, at) ? s : g->stream_place.at[before];
    }
    return RP_OK;
}

bool rp_event_is_host_collective(const struct rp_trace *t, rp_event e)
{
    static const char *const prefixes[] = {"gloo:", "mpi:", "ucc:"};
    const char *name = rp_trace_str(t, t->ev.name[e]);

    if (t->ev.ts_ns[e] == RP_NO_TS || t->ev.dur_ns[e] < 0)
        return false;
    if (t->ev.kind[e] == RP_KIND_COMM_OP)
        return true;
    if (t->ev.kind[e] != RP_KIND_ANNOTATION)
        return false;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
            return true;
    return false;
}

RP_ORDER(by_start, struct found, RP_UP(begin_ns), RP_UP(seq))

static enum rp_code find_kernels(struct collective_ctx *g, struct rp_err *err)
{
    const struct rp_work *w = g->work;

    for (size_t i = 0; i < w->items.n; i++) {
        const struct rp_work_item *x = &w->items.at[i];
        struct found f = {x->begin_ns, g->t->ev.seq[x->event],     x->event,
                          x->launch,   rp_work_described_by(w, x), 0};

        if (x->cls != RP_WORK_COMM)
            continue;
        f.stream = g->stream_place.at[x->stream];
        RP_TRY(rp_vec_push(&g->found, f, err));
    }
    return RP_OK;
}

/* The spans of all threads form one stream. */
static enum rp_code find_spans(struct collective_ctx *g, const struct rp_scope *scope,
                               struct rp_err *err)
{
    const struct rp_trace *t = g->t;

    for (rp_event e = 0; e < t->ev.n; e++) {
        struct found f = {t->ev.ts_ns[e], t->ev.seq[e], e, RP_NONE, RP_NONE, 0};

        if (t->tracks[t->ev.track[e]].kind == RP_TRACK_STREAM || f.begin_ns == RP_NO_TS ||
            !rp_event_is_host_collective(t, e))
            continue;
        if (scope && !rp_scope_has(scope, f.begin_ns))
            continue;
        RP_TRY(rp_vec_push(&g->found, f, err));
    }
    g->out->nstreams = g->found.n > 0;
    return RP_OK;
}

static enum rp_code gather_collectives(struct collective_ctx *g, const struct rp_scope *scope,
                                       struct rp_err *err)
{
    RP_TRY(rp_coll_reader_init(&g->reader, g->t, err));
    RP_TRY(rp_message_finder_init(&g->messages, &g->reader, &g->out->messages, err));
    RP_TRY(place_streams(g, err));
    g->out->on_host = g->out->nstreams == 0;
    RP_TRY(g->out->on_host ? find_spans(g, scope, err) : find_kernels(g, err));
    if (g->found.n)
        qsort(g->found.at, g->found.n, sizeof *g->found.at, by_start);
    for (size_t i = 0; i < g->found.n; i++)
        RP_TRY(rp_message_finder_note(&g->messages, g->found.at[i].described_by, err));
    for (size_t i = 0; i < g->found.n; i++)
        RP_TRY(add_collective(g, &g->found.at[i], err));
    g->out->sequenced = g->out->sequenced && g->out->list.n && g->out->group_hash;
    g->out->grouped = g->out->grouped && g->out->group_hash && !g->out->on_host;
    return RP_OK;
}

/* Steps that were found by repetition may begin anywhere in it, so what comes before is not
   start-up. */
static int64_t first_step(const struct rp_trace *t, const struct rp_scope *scope)
{
    return (scope && scope->limited) || !t->nsteps || t->steps[0].source == RP_STEP_REPETITION
               ? INT64_MIN
               : t->steps[0].begin_ns;
}

enum rp_code rp_collectives_init(struct rp_collectives *out, const struct rp_work *work,
                                 const struct rp_scope *scope, struct rp_arena *arena,
                                 struct rp_err *err)
{
    struct collective_ctx g = {.work = work, .t = work->trace, .out = out, .arena = arena};

    *out = (struct rp_collectives){.sequenced = true, .grouped = true};
    out->base_ns = work->trace->has_base ? work->trace->base_ns : 0;
    out->boot = rp_trace_boot(work->trace);
    out->world_size = work->trace->world_size;
    out->first_step_ns = first_step(work->trace, scope);
    out->cut = work->trace->health.truncated || work->trace->health.salvaged ||
               work->trace->health.skipped_bytes;
    enum rp_code code = rp_trace_host(work->trace, NULL, arena, &out->host, err);
    if (code == RP_OK)
        code = gather_collectives(&g, scope, err);
    rp_message_finder_release(&g.messages);
    rp_coll_reader_release(&g.reader);
    rp_map_release(&g.texts);
    rp_map_release(&g.seen);
    rp_vec_release(&g.copies);
    rp_vec_release(&g.stream_place);
    rp_vec_release(&g.stream_count);
    rp_vec_release(&g.comm_streams);
    rp_vec_release(&g.found);
    return code;
}

void rp_collectives_release(struct rp_collectives *c)
{
    rp_vec_release(&c->list);
    rp_vec_release(&c->messages);
}

int64_t rp_collective_size(const struct rp_collective *c, int64_t n)
{
    int64_t total;

    if (c->kind != RP_COLL_ALL_GATHER && c->in_bytes > 0)
        return c->in_bytes;
    if (c->out_bytes > 0)
        return c->out_bytes;
    if (c->in_bytes <= 0 || n <= 0 || __builtin_mul_overflow(c->in_bytes, n, &total))
        return -1;
    return total;
}
