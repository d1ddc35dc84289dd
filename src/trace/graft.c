/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of events, strings and arguments are copied and extended. All strings and shapes of a
 * source are appended as they are: then ids in its arguments become ids of the new trace by adding
 * a constant to the base of a block. Names and keys are looked up in the base first, because they
 * are compared by id. Linear in the size of the base and its sources.
 */
#include "trace/graft.h"

#include "trace/trace_store.h"

#include <stdlib.h>

static uint64_t hash_of(const struct rp_trace *t, rp_str s)
{
    return rp_hash_bytes(rp_trace_str(t, s), rp_trace_str_len(t, s));
}

static bool same_text(const struct rp_trace *a, rp_str x, const struct rp_trace *b, rp_str y)
{
    size_t len = rp_trace_str_len(a, x);

    return rp_trace_str_len(b, y) == len && !memcmp(rp_trace_str(a, x), rp_trace_str(b, y), len);
}

enum rp_code rp_graft_init(struct rp_graft *g, const struct rp_trace *base, struct rp_err *err)
{
    uint32_t i, known;

    *g = (struct rp_graft){.base = base};
    RP_TRY(rp_trace_require(base, RP_NEED_ALL, err));
    RP_TRY(rp_vec_reserve(&g->captured, (size_t)base->ev.n + 1, err));
    for (i = 0; i < base->ev.n; i++)
        g->captured.at[i] = RP_NONE;
    g->captured.n = base->ev.n;
    for (i = 0; i < base->str.n; i++)
        RP_TRY(rp_map_intern(&g->texts, hash_of(base, i), i, &known, err));
    return RP_OK;
}

void rp_graft_release(struct rp_graft *g)
{
    for (size_t i = 0; i < g->sources.n; i++)
        free(g->sources.at[i].name);
    rp_vec_release(&g->sources);
    rp_vec_release(&g->spans);
    rp_vec_release(&g->captured);
    rp_map_release(&g->texts);
}

enum rp_code rp_graft_source(struct rp_graft *g, const struct rp_trace *from, uint32_t *source,
                             struct rp_err *err)
{
    const struct rp_trace *base = g->base;
    struct rp_graft_source s = {
        from, base->str.n, base->norigins, base->args.nshapes, base->args.nspilled_rows, NULL};
    uint64_t blocks = base->args.nblocks, keys = base->args.nkeys, spilled = base->args.nspilled;

    for (size_t i = 0; i < g->sources.n; i++) {
        const struct rp_trace *t = g->sources.at[i].trace;

        *source = (uint32_t)i;
        if (t == from)
            return RP_OK;
        if (t == base)
            continue;
        s.strings += t->str.n;
        s.origins += t->norigins;
        s.shapes += t->args.nshapes;
        s.spilled_rows += t->args.nspilled_rows;
        blocks += t->args.nblocks;
        keys += t->args.nkeys;
        spilled += t->args.nspilled;
    }
    RP_TRY(rp_trace_require(from, RP_NEED_EVENTS | RP_NEED_ARGS, err));
    if (from == base)
        s.strings = s.origins = s.shapes = s.spilled_rows = 0;
    else if ((uint64_t)s.strings + from->str.n > UINT32_MAX / 2 ||
             (uint64_t)s.shapes + from->args.nshapes >= RP_SHAPE_SPILLED ||
             (uint64_t)s.origins + from->norigins > UINT16_MAX ||
             blocks + from->args.nblocks > UINT32_MAX || keys + from->args.nkeys > UINT32_MAX ||
             spilled + from->args.nspilled > UINT32_MAX)
        return rp_err_set(err, RP_LIMIT, "the captures have too many different names");
    s.name = calloc((size_t)from->str.n + 1, sizeof *s.name);
    RP_TRY(rp_err_need(s.name, err, "joining captures"));
    *source = (uint32_t)g->sources.n;
    if (rp_vec_push(&g->sources, s, err) != RP_OK) {
        free(s.name);
        return RP_NOMEM;
    }
    return RP_OK;
}

enum rp_code rp_graft_span(struct rp_graft *g, uint32_t source, rp_event e, rp_event parent,
                           rp_event *out, struct rp_err *err)
{
    struct rp_graft_span span = {source, e, parent};

    if (g->spans.n >= RP_GRAFT_SPANS || g->base->ev.n + g->spans.n >= RP_NONE - 1)
        return rp_err_set(err, RP_LIMIT, "the captures have too many spans");
    *out = (rp_event)(g->base->ev.n + g->spans.n);
    return rp_vec_push(&g->spans, span, err);
}

/* The id of a text of a source in the new trace. */
static rp_str name_in_new(struct rp_graft *g, struct rp_graft_source *s, rp_str name)
{
    if (!name || s->trace == g->base)
        return name;
    if (!s->name[name]) {
        uint32_t known = rp_map_get(&g->texts, hash_of(s->trace, name));
        s->name[name] = known != RP_MAP_NONE && same_text(g->base, known, s->trace, name)
                            ? known
                            : s->strings + name;
    }
    return s->name[name];
}

static bool is_own(const struct rp_graft *g, size_t i)
{
    return g->sources.at[i].trace != g->base;
}

/* Allocates an array of the store with room for n elements, of which the first are the old
   one's. */
static void *extended(struct rp_trace *to, const void *old, size_t nold, size_t n, size_t size,
                      struct rp_err *err)
{
    RP_VEC(char) v = {0};

    if (n > SIZE_MAX / size / 2 || rp_vec_reserve(&v, n * size + 1, err) != RP_OK)
        return NULL;
    if (rp_store_adopt(to->store, v.at, v.cap, 1, err) != RP_OK) {
        rp_vec_release(&v);
        return NULL;
    }
    if (nold)
        memcpy(v.at, old, nold * size);
    return v.at;
}

#define EXTEND(to, field, old, nold, n)                                     \
    do {                                                                    \
        (field) = extended((to), (old), (nold), (n), sizeof *(field), err); \
        if (!(field))                                                       \
            return RP_NOMEM;                                                \
    } while (0)

/* ------------------------------------------------------------------ strings */

static enum rp_code join_strings(const struct rp_graft *g, struct rp_trace *to, struct rp_err *err)
{
    const struct rp_strings *base = &g->base->str;
    uint64_t n = base->n, bytes = base->offset[base->n], *offset;
    uint8_t *name_class;
    char *text;

    for (size_t i = 0; i < g->sources.n; i++)
        if (is_own(g, i)) {
            n += g->sources.at[i].trace->str.n;
            bytes += g->sources.at[i].trace->str.offset[g->sources.at[i].trace->str.n];
        }
    EXTEND(to, offset, base->offset, (size_t)base->n + 1, n + 1);
    EXTEND(to, text, base->bytes, base->offset[base->n], bytes);
    EXTEND(to, name_class, base->name_class, base->n, n);
    for (size_t i = 0; i < g->sources.n; i++) {
        const struct rp_graft_source *s = &g->sources.at[i];
        const struct rp_strings *from = &s->trace->str;

        if (!is_own(g, i))
            continue;
        memcpy(text + offset[s->strings], from->bytes, from->offset[from->n]);
        memcpy(name_class + s->strings, from->name_class, from->n);
        for (uint32_t k = 1; k <= from->n; k++)
            offset[s->strings + k] = offset[s->strings] + from->offset[k];
    }
    to->str = (struct rp_strings){(uint32_t)n, offset, text, name_class};
    return RP_OK;
}

/* ------------------------------------------------------------------ arguments */

struct joined_args {
    struct rp_shape *shape;
    uint32_t *key_name, *key_block, *spill_offset;
    uint8_t *key_type, *data;
    struct rp_arg_block *block;
    struct rp_spilled *spill;
};

static enum rp_code make_args(const struct rp_graft *g, struct rp_trace *to, struct joined_args *a,
                              struct rp_err *err)
{
    const struct rp_args *base = &g->base->args;
    uint64_t shapes = base->nshapes, keys = base->nkeys, blocks = base->nblocks;
    uint64_t rows = base->nspilled_rows, spilled = base->nspilled, data = base->ndata;

    for (size_t i = 0; i < g->sources.n; i++) {
        const struct rp_args *from = &g->sources.at[i].trace->args;

        if (!is_own(g, i))
            continue;
        shapes += from->nshapes;
        keys += from->nkeys;
        blocks += from->nblocks;
        rows += from->nspilled_rows;
        spilled += from->nspilled;
        data += from->ndata;
    }
    EXTEND(to, a->shape, base->shape, base->nshapes, shapes);
    EXTEND(to, a->key_name, base->key_name, base->nkeys, keys);
    EXTEND(to, a->key_type, base->key_type, base->nkeys, keys);
    EXTEND(to, a->key_block, base->key_block, base->nkeys, keys);
    EXTEND(to, a->block, base->block, base->nblocks, blocks);
    EXTEND(to, a->data, base->data, base->ndata, data + 8);
    EXTEND(to, a->spill, base->spill, base->nspilled, spilled);
    EXTEND(to, a->spill_offset, base->spill_offset, base->nspilled_rows, rows + 1);
    memset(a->data + data, 0, 8);
    a->spill_offset[base->nspilled_rows] = base->nspilled;
    return RP_OK;
}

static bool is_text(uint32_t type)
{
    return type == RP_ARG_STR || type == RP_ARG_RAW;
}

/* Appends the arguments of a source. The blocks of a column are contiguous, up to those of the next
   column. */
static void append_args(struct rp_graft *g, struct rp_graft_source *s, struct rp_args *all,
                        const struct joined_args *a)
{
    const struct rp_args *from = &s->trace->args;

    for (uint32_t i = 0; i < from->nshapes; i++) {
        a->shape[all->nshapes + i] = from->shape[i];
        a->shape[all->nshapes + i].first_key += all->nkeys;
    }
    for (uint32_t i = 0; i < from->nblocks; i++)
        a->block[all->nblocks + i] =
            (struct rp_arg_block){from->block[i].base, from->block[i].place + (all->ndata << 8)};
    for (uint32_t i = 0; i < from->nshapes; i++)
        for (uint32_t k = from->shape[i].first_key;
             k < from->shape[i].first_key + from->shape[i].nkeys; k++) {
            uint32_t blocks = (from->shape[i].nrows + RP_ARG_BLOCK - 1) / RP_ARG_BLOCK;

            a->key_name[all->nkeys + k] = name_in_new(g, s, from->key_name[k]);
            a->key_type[all->nkeys + k] = from->key_type[k];
            a->key_block[all->nkeys + k] = from->key_block[k] + all->nblocks;
            for (uint32_t b = 0; is_text(from->key_type[k]) && b < blocks; b++)
                a->block[all->nblocks + from->key_block[k] + b].base += s->strings;
        }
    if (from->ndata)
        memcpy(a->data + all->ndata, from->data, from->ndata);
    for (uint32_t i = 0; i < from->nspilled; i++) {
        struct rp_spilled *one = &a->spill[all->nspilled + i];

        *one = from->spill[i];
        one->key = name_in_new(g, s, one->key);
        one->value += is_text(one->type) ? s->strings : 0;
    }
    for (uint32_t i = 0; i < from->nspilled_rows; i++)
        a->spill_offset[all->nspilled_rows + i + 1] = all->nspilled + from->spill_offset[i + 1];
    all->nshapes += from->nshapes;
    all->nkeys += from->nkeys;
    all->nblocks += from->nblocks;
    all->ndata += from->ndata;
    all->nspilled += from->nspilled;
    all->nspilled_rows += from->nspilled_rows;
}

static enum rp_code join_args(struct rp_graft *g, struct rp_trace *to, struct rp_err *err)
{
    struct rp_args all = g->base->args;
    struct joined_args a = {0};

    RP_TRY(make_args(g, to, &a, err));
    for (size_t i = 0; i < g->sources.n; i++)
        if (is_own(g, i))
            append_args(g, &g->sources.at[i], &all, &a);
    all.shape = a.shape;
    all.key_name = a.key_name;
    all.key_type = a.key_type;
    all.key_block = a.key_block;
    all.block = a.block;
    all.data = a.data;
    all.spill = a.spill;
    all.spill_offset = a.spill_offset;
    to->args = all;
    return RP_OK;
}

/* ------------------------------------------------------------------ tables and events */

/* Copies must not count as calls of the runtime or marks of steps, so their origins lose the
   flags. */
static enum rp_code join_origins(const struct rp_graft *g, struct rp_trace *to, struct rp_err *err)
{
    const struct rp_trace *base = g->base;
    size_t i, n = base->norigins;

    for (i = 0; i < g->sources.n; i++)
        n += is_own(g, i) ? g->sources.at[i].trace->norigins : 0;
    EXTEND(to, to->origins, base->origins, base->norigins, n);
    for (i = 0; i < g->sources.n; i++) {
        const struct rp_graft_source *s = &g->sources.at[i];

        for (uint32_t k = 0; is_own(g, i) && k < s->trace->norigins; k++) {
            struct rp_origin *o = &to->origins[s->origins + k];

            *o = s->trace->origins[k];
            o->category += o->category ? s->strings : 0;
            o->flags = 0;
        }
    }
    to->norigins = (uint32_t)n;
    return RP_OK;
}

static enum rp_code join_tracks(const struct rp_graft *g, struct rp_trace *to, struct rp_err *err)
{
    const struct rp_trace *base = g->base;

    EXTEND(to, to->tracks, base->tracks, base->ntracks, (size_t)base->ntracks + 1);
    to->tracks[base->ntracks] = (struct rp_track_info){
        .native_id = RP_ID_EMPTY, .first = base->ev.n, .kind = RP_TRACK_ASYNC};
    to->tracks[base->ntracks].end = (rp_event)(base->ev.n + g->spans.n);
    to->ntracks = base->ntracks + 1;
    return RP_OK;
}

#define COLUMN(member) EXTEND(to, to->ev.member, base->member, base->n, n)

static enum rp_code make_columns(const struct rp_events *base, size_t n, struct rp_trace *to,
                                 struct rp_err *err)
{
    COLUMN(ts_ns);
    COLUMN(dur_ns);
    COLUMN(name);
    COLUMN(track);
    COLUMN(parent);
    COLUMN(link);
    COLUMN(arg_row);
    COLUMN(seq);
    COLUMN(shape);
    COLUMN(origin);
    COLUMN(kind);
    COLUMN(flags);
    to->ev.n = (uint32_t)n;
    return RP_OK;
}

static void put_span(struct rp_graft *g, struct rp_trace *to, rp_event e,
                     const struct rp_graft_span *span)
{
    struct rp_graft_source *s = &g->sources.at[span->source];
    const struct rp_events *from = &s->trace->ev;
    rp_event old = span->event;
    uint16_t shape = from->shape[old];

    to->ev.ts_ns[e] = RP_NO_TS;
    to->ev.dur_ns[e] = 0;
    to->ev.name[e] = name_in_new(g, s, from->name[old]);
    to->ev.track[e] = g->base->ntracks;
    to->ev.parent[e] = span->parent;
    to->ev.link[e] = RP_NONE;
    to->ev.arg_row[e] = from->arg_row[old] + (shape == RP_SHAPE_SPILLED ? s->spilled_rows : 0);
    to->ev.seq[e] = e;
    to->ev.shape[e] = shape && shape != RP_SHAPE_SPILLED ? (uint16_t)(shape + s->shapes) : shape;
    to->ev.origin[e] = (uint16_t)(from->origin[old] + s->origins);
    to->ev.kind[e] = from->kind[old];
    to->ev.flags[e] = 0;
}

static enum rp_code fill_trace(struct rp_graft *g, struct rp_trace *to, struct rp_err *err)
{
    const struct rp_trace *base = g->base;
    rp_event *captured;

    RP_TRY(join_strings(g, to, err));
    RP_TRY(join_args(g, to, err));
    RP_TRY(join_origins(g, to, err));
    RP_TRY(join_tracks(g, to, err));
    RP_TRY(make_columns(&base->ev, base->ev.n + g->spans.n, to, err));
    for (size_t i = 0; i < g->spans.n; i++)
        put_span(g, to, (rp_event)(base->ev.n + i), &g->spans.at[i]);
    EXTEND(to, captured, g->captured.at, g->captured.n, base->ev.n + g->spans.n);
    for (size_t i = 0; i < g->spans.n; i++)
        captured[base->ev.n + i] = RP_NONE;
    to->captured = captured;
    return RP_OK;
}

enum rp_code rp_graft_finish(struct rp_graft *g, struct rp_trace **out, struct rp_err *err)
{
    struct rp_trace *to, made;

    *out = NULL;
    RP_TRY(rp_trace_new(&to, err));
    made = *to;
    *to = *g->base;
    to->arena = made.arena;
    to->store = made.store;
    enum rp_code code = fill_trace(g, to, err);
    if (code != RP_OK) {
        rp_trace_free(to);
        return code;
    }
    *out = to;
    return RP_OK;
}
