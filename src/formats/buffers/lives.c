/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes taken at each position are the length of a union of intervals (offset to offset + size)
 * that changes as values begin and end. For each allocation, a tree over the different offsets
 * counts how often each stretch is covered, and holds the covered length below every node:
 *
 *     node:  count   how many intervals cover it as a whole
 *            length  covered bytes: all of it where count > 0, else the sum of its children
 */
#include "formats/buffers/lives.h"

#include "base/hash.h"
#include "base/order.h"

#include <stdlib.h>
#include <string.h>

struct cover_node {
    int64_t length;
    uint32_t count;
};

struct cover_event {
    int64_t position, begin, end; /* addresses */
    uint32_t allocation;
    bool ends;
};

struct cover {
    int64_t *edges; /* all different addresses, sorted */
    size_t nedges;
    struct cover_node *nodes; /* an implicit tree: the children of i are 2i + 1 and 2i + 2 */
};

RP_ORDER(by_number, int64_t, RP_COMPARE(*a, *b))
RP_ORDER(by_allocation, struct cover_event, RP_UP(allocation), RP_UP(position), RP_UP(ends))

static void cover_change(struct cover *c, size_t node, size_t low, size_t high, size_t begin,
                         size_t end, int by)
{
    struct cover_node *n = &c->nodes[node];
    size_t middle = low + (high - low) / 2;

    if (begin >= high || end <= low)
        return;
    if (begin <= low && high <= end) {
        n->count = (uint32_t)((int64_t)n->count + by);
    } else {
        cover_change(c, 2 * node + 1, low, middle, begin, end, by);
        cover_change(c, 2 * node + 2, middle, high, begin, end, by);
    }
    if (n->count)
        n->length = c->edges[high] - c->edges[low];
    else
        n->length =
            high - low == 1 ? 0 : c->nodes[2 * node + 1].length + c->nodes[2 * node + 2].length;
}

static size_t edge_of(const struct cover *c, int64_t address)
{
    size_t i;

    RP_LOWER_BOUND(i, c->nedges, c->edges[i] < address);
    return i;
}

static enum rp_code cover_init(struct cover *c, const struct cover_event *events, size_t n,
                               struct rp_arena *scratch, struct rp_err *err)
{
    size_t kept = 0;

    *c = (struct cover){0};
    c->edges = RP_ARENA_NEW(scratch, int64_t, 2 * n + 1);
    RP_TRY(rp_err_need(c->edges, err, "measuring buffers"));
    for (size_t i = 0; i < n; i++) {
        c->edges[2 * i] = events[i].begin;
        c->edges[2 * i + 1] = events[i].end;
    }
    qsort(c->edges, 2 * n, sizeof *c->edges, by_number);
    for (size_t i = 0; i < 2 * n; i++)
        if (!kept || c->edges[kept - 1] != c->edges[i])
            c->edges[kept++] = c->edges[i];
    c->nedges = kept;
    c->nodes = RP_ARENA_NEW(scratch, struct cover_node, 4 * kept + 4);
    return rp_err_need(c->nodes, err, "measuring buffers");
}

/* ------------------------------------------------------------------ one allocation */

/* Adds to each position how the taken bytes of the allocation change; *most is the largest number
   of bytes taken at once. */
static enum rp_code cover_allocation(const struct cover_event *events, size_t n,
                                     struct rp_buffer_lives *out, int64_t *most, struct rp_err *err)
{
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;
    struct cover c;

    *most = 0;
    RP_TRY(cover_init(&c, events, n, &scratch, err));
    for (size_t i = 0; i < n;) {
        int64_t position = events[i].position, before = c.nodes[0].length, taken;

        for (; i < n && events[i].position == position; i++)
            cover_change(&c, 0, 0, c.nedges - 1, edge_of(&c, events[i].begin),
                         edge_of(&c, events[i].end), events[i].ends ? -1 : 1);
        taken = c.nodes[0].length;
        *most = taken > *most ? taken : *most;
        if (position < (int64_t)out->npositions)
            out->taken[position] += taken - before;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ all of them */

static uint64_t text_key(const char *text)
{
    return rp_hash_bytes(text, strlen(text));
}

static enum rp_code resolve_ranges(const struct rp_buffers *b, struct rp_buffer_lives *out,
                                   struct rp_err *err)
{
    RP_SCOPED(rp_map_release) struct rp_map values = {0};
    uint32_t first;
    int64_t end = (int64_t)out->npositions - 1;

    for (uint32_t i = 0; i < b->values.n; i++)
        RP_TRY(rp_map_intern(&values, text_key(b->values.at[i].name), i, &first, err));
    for (size_t i = 0; i < b->ranges.n; i++) {
        const struct rp_live_range *r = &b->ranges.at[i];
        uint32_t value = rp_map_get(&values, text_key(r->name));

        if (value == RP_MAP_NONE || r->first < 0 || r->first > r->last)
            value = RP_NONE;
        out->at[out->n++] = (struct rp_buffer_live){value, r->first > end ? end : r->first,
                                                    r->last > end ? end : r->last};
    }
    return RP_OK;
}

/* The part of its allocation that a value takes; only a wrong file places a value outside of it. */
static bool place_of(const struct rp_buffers *b, uint32_t value, int64_t *begin, int64_t *end)
{
    if (value == RP_NONE)
        return false;
    const struct rp_buffer_value *v = &b->values.at[value];
    int64_t whole = b->allocations.at[v->allocation].bytes;
    if (v->offset < 0 || v->bytes <= 0 || v->offset >= whole)
        return false;
    *begin = v->offset;
    *end = v->bytes > whole - v->offset ? whole : v->offset + v->bytes;
    return true;
}

static size_t collect_events(const struct rp_buffers *b, const struct rp_buffer_lives *lives,
                             struct cover_event *out)
{
    size_t n = 0;

    for (size_t i = 0; i < lives->n; i++) {
        const struct rp_buffer_live *l = &lives->at[i];
        struct cover_event e;

        if (!place_of(b, l->value, &e.begin, &e.end))
            continue;
        e.allocation = b->values.at[l->value].allocation;
        e.position = l->first;
        e.ends = false;
        out[n++] = e;
        e.position = l->last + 1;
        e.ends = true;
        out[n++] = e;
    }
    return n;
}

static enum rp_code cover_all(const struct rp_buffers *b, struct rp_buffer_lives *out,
                              struct cover_event *events, struct rp_err *err)
{
    size_t n = collect_events(b, out, events), end;
    int64_t most;

    out->heap_peak_bytes = 0;
    rp_sort(events, n, sizeof *events, by_allocation);
    for (size_t i = 0; i < n; i = end) {
        uint32_t allocation = events[i].allocation;

        for (end = i; end < n && events[end].allocation == allocation; end++)
            ;
        RP_TRY(cover_allocation(events + i, end - i, out, &most, err));
        if (b->allocations.at[allocation].kind == RP_BUFFER_TEMPORARY)
            out->heap_peak_bytes += most;
    }
    return RP_OK;
}

enum rp_code rp_buffers_lives(const struct rp_buffers *b, struct rp_arena *arena,
                              struct rp_buffer_lives *out, struct rp_err *err)
{
    struct cover_event *events;

    *out = (struct rp_buffer_lives){.peak = -1, .peak_bytes = -1, .heap_peak_bytes = -1};
    for (size_t i = 0; i < b->allocations.n; i++)
        if (b->allocations.at[i].kind == RP_BUFFER_TEMPORARY)
            out->heap_bytes += b->allocations.at[i].bytes;
    if (!b->ranges.n)
        return RP_OK;
    out->npositions = b->order.n + 1;
    out->at = RP_ARENA_NEW(arena, struct rp_buffer_live, b->ranges.n);
    out->taken = RP_ARENA_NEW(arena, int64_t, out->npositions);
    events = malloc(2 * b->ranges.n * sizeof *events);
    if (!out->at || !out->taken || !events) {
        free(events);
        return rp_err_nomem(err, "reading live ranges");
    }
    enum rp_code code = resolve_ranges(b, out, err);
    if (code == RP_OK)
        code = cover_all(b, out, events, err);
    free(events);
    for (size_t i = 0; i < out->npositions; i++) {
        out->taken[i] += i ? out->taken[i - 1] : 0;
        if (out->taken[i] > out->peak_bytes) {
            out->peak_bytes = out->taken[i];
            out->peak = (int64_t)i;
        }
    }
    return code;
}

/* ------------------------------------------------------------------ a position */

struct placed {
    struct rp_buffer_share share;
    int64_t begin, end;
    uint32_t allocation;
};

RP_ORDER(by_place, struct placed, RP_UP(allocation), RP_UP(begin), RP_DOWN(end), RP_UP(share.live))

enum rp_code rp_buffers_live_at(const struct rp_buffers *b, const struct rp_buffer_lives *lives,
                                int64_t position, struct rp_arena *arena,
                                struct rp_buffer_share **out, size_t *n, struct rp_err *err)
{
    struct placed *list = RP_ARENA_NEW(arena, struct placed, lives->n + 1);
    int64_t covered = 0;

    *n = 0;
    *out = RP_ARENA_NEW(arena, struct rp_buffer_share, lives->n + 1);
    RP_TRY(rp_err_need(list && *out, err, "listing buffers"));
    for (size_t i = 0; i < lives->n; i++) {
        struct placed p = {.share = {.live = (uint32_t)i}};

        if (lives->at[i].first > position || lives->at[i].last < position ||
            !place_of(b, lives->at[i].value, &p.begin, &p.end))
            continue;
        p.allocation = b->values.at[lives->at[i].value].allocation;
        list[(*n)++] = p;
    }
    rp_sort(list, *n, sizeof *list, by_place);
    for (size_t i = 0; i < *n; i++) {
        struct placed *p = &list[i];

        if (!i || list[i - 1].allocation != p->allocation)
            covered = 0;
        p->share.bytes = p->end > covered ? p->end - (p->begin > covered ? p->begin : covered) : 0;
        covered = p->end > covered ? p->end : covered;
        (*out)[i] = p->share;
    }
    return RP_OK;
}
