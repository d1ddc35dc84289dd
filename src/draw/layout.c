/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows follow the longest path; nodes with more outputs than inputs move down to their users. Rows
 * that are too wide are broken. Edges over a few rows get a slot in each of them; longer ones leave
 * the rows, since the number of slots for all would be quadratic: the train step of a language
 * model would have hundreds for each node. A fixed number of sweeps orders each row by the mean
 * place of its neighbours, and another one moves the boxes towards their neighbours without
 * changing the order (isotonic regression, which is linear).
 */
#include "draw/layout.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LARGE = 100000,
    MOST_SPAN = 8,
    ORDER_SWEEPS = 4,
    PLACE_SWEEPS = 6,
    MOST_TRACKS = 24,
    SLOT = 10
};
#define WIDEST 3600.0f

struct items { /* nodes, then slots of edges */
    uint32_t n, nodes, nslots;
    uint32_t *row;
    float *w, *mid;                              /* mid: x of the middle */
    float *place;                                /* the place in its row, from 0 to 1 */
    uint32_t *down_begin, *down, *up_begin, *up; /* neighbours in the rows below and above */
};

struct rows {
    uint32_t n;
    uint32_t *begin, *at; /* items of a row, from left to right */
};

struct work {
    const struct rp_layout_graph *g;
    struct rp_layout *out;
    struct rp_arena *arena;
    struct rp_err *err;
    uint32_t *in_begin, *in, *out_begin, *outs; /* numbers of the forward edges by their ends */
    struct items items;
    struct rows rows;
    float *key;
    uint32_t span; /* the length of the longest edge that gets slots */
};

static bool goes_down(const struct rp_layout_edge *e)
{
    return e->from < e->to;
}

/* ---- rows ---- */

static enum rp_code index_edges(struct work *w)
{
    const struct rp_layout_graph *g = w->g;

    w->in_begin = RP_ARENA_NEW(w->arena, uint32_t, (size_t)g->n + 2);
    w->out_begin = RP_ARENA_NEW(w->arena, uint32_t, (size_t)g->n + 2);
    w->in = RP_ARENA_NEW(w->arena, uint32_t, g->nedges + 1);
    w->outs = RP_ARENA_NEW(w->arena, uint32_t, g->nedges + 1);
    RP_TRY(rp_err_need(w->in_begin && w->out_begin && w->in && w->outs, w->err, "placing a graph"));
    for (size_t e = 0; e < g->nedges; e++)
        if (goes_down(&g->edges[e])) {
            w->in_begin[g->edges[e].to + 2]++;
            w->out_begin[g->edges[e].from + 2]++;
        }
    for (size_t i = 2; i < (size_t)g->n + 2; i++) {
        w->in_begin[i] += w->in_begin[i - 1];
        w->out_begin[i] += w->out_begin[i - 1];
    }
    for (uint32_t e = 0; e < g->nedges; e++)
        if (goes_down(&g->edges[e])) {
            w->in[w->in_begin[g->edges[e].to + 1]++] = e;
            w->outs[w->out_begin[g->edges[e].from + 1]++] = e;
        }
    return RP_OK;
}

static void find_rows(struct work *w)
{
    const struct rp_layout_graph *g = w->g;
    uint32_t *row = w->out->row;

    for (uint32_t v = 0; v < g->n; v++)
        for (uint32_t i = w->in_begin[v]; i < w->in_begin[v + 1]; i++) {
            uint32_t above = row[g->edges[w->in[i]].from] + 1;

            if (above > row[v])
                row[v] = above;
        }
    for (uint32_t v = g->n; v-- > 0;) {
        uint32_t nin = w->in_begin[v + 1] - w->in_begin[v], lowest = RP_NONE;

        if (nin > w->out_begin[v + 1] - w->out_begin[v])
            continue;
        for (uint32_t i = w->out_begin[v]; i < w->out_begin[v + 1]; i++) {
            uint32_t below = row[g->edges[w->outs[i]].to];

            if (below < lowest)
                lowest = below;
        }
        if (lowest != RP_NONE)
            row[v] = lowest - 1;
    }
}

/* Breaks rows that are too wide, in the order of the nodes. */
static enum rp_code break_rows(struct work *w)
{
    const struct rp_layout_graph *g = w->g;
    uint32_t *row = w->out->row, n = 0, next = 0;

    for (uint32_t v = 0; v < g->n; v++)
        n = row[v] + 1 > n ? row[v] + 1 : n;
    float *used = RP_ARENA_NEW(w->arena, float, (size_t)n + 1);
    uint32_t *part = RP_ARENA_NEW(w->arena, uint32_t, (size_t)n + 1);
    uint32_t *first = RP_ARENA_NEW(w->arena, uint32_t, (size_t)n + 1);
    RP_TRY(rp_err_need(used && part && first, w->err, "placing a graph"));
    for (int pass = 0; pass < 2; pass++) {
        memset(used, 0, (size_t)n * sizeof *used);
        memset(part, 0, (size_t)n * sizeof *part);
        for (uint32_t v = 0; v < g->n; v++) {
            uint32_t r = row[v];

            if (used[r] > 0 && used[r] + g->w[v] > WIDEST) {
                used[r] = 0;
                part[r]++;
            }
            used[r] += g->w[v] + RP_LAYOUT_GAP_X;
            if (pass)
                row[v] = first[r] + part[r];
        }
        for (uint32_t r = 0; !pass && r < n; r++) {
            first[r] = next;
            next += part[r] + 1;
        }
    }
    w->rows.n = next;
    return RP_OK;
}

/* ---- slots ---- */

static uint32_t edge_span(const struct work *w, size_t e)
{
    const struct rp_layout_edge *edge = &w->g->edges[e];

    return goes_down(edge) ? w->out->row[edge->to] - w->out->row[edge->from] : 0;
}

/* Counts the slots below a node: as many as its longest edge with slots needs. */
static uint64_t count_slots(const struct work *w, uint32_t span)
{
    uint64_t all = 0;

    for (uint32_t v = 0; v < w->g->n; v++) {
        uint32_t most = 1;

        for (uint32_t i = w->out_begin[v]; i < w->out_begin[v + 1]; i++) {
            uint32_t here = edge_span(w, w->outs[i]);

            most = here <= span && here > most ? here : most;
        }
        all += w->out->bend_begin[v + 1] = most - 1;
    }
    return all;
}

/* Finds the longest span for which there are at most two slots per node and edge; in large graphs
   half a slot per node. */
static enum rp_code number_slots(struct work *w)
{
    uint64_t most = w->g->n > LARGE ? w->g->n / 2 : 2 * ((uint64_t)w->g->n + w->g->nedges);

    w->out->bend_begin = RP_ARENA_NEW(w->arena, uint32_t, (size_t)w->g->n + 1);
    RP_TRY(rp_err_need(w->out->bend_begin, w->err, "placing a graph"));
    for (w->span = MOST_SPAN; count_slots(w, w->span) > most && w->span > 1; w->span /= 2)
        ;
    for (uint32_t v = 0; v < w->g->n; v++)
        w->out->bend_begin[v + 1] += w->out->bend_begin[v];
    w->items.nslots = w->out->bend_begin[w->g->n];
    w->items.nodes = w->g->n;
    w->items.n = w->g->n + w->items.nslots;
    return RP_OK;
}

/* Calls fn for each pair of neighbours: ends of edges and slots. */
static void each_link(const struct work *w, void (*fn)(struct items *, uint32_t, uint32_t),
                      struct items *items)
{
    for (uint32_t v = 0; v < w->g->n; v++) {
        uint32_t slots = w->g->n + w->out->bend_begin[v];
        uint32_t n = w->out->bend_begin[v + 1] - w->out->bend_begin[v];

        for (uint32_t k = 0; k < n; k++)
            fn(items, k ? slots + k - 1 : v, slots + k);
        for (uint32_t i = w->out_begin[v]; i < w->out_begin[v + 1]; i++) {
            uint32_t span = edge_span(w, w->outs[i]);

            if (span <= w->span)
                fn(items, span > 1 ? slots + span - 2 : v, w->g->edges[w->outs[i]].to);
        }
    }
}

static void count_link(struct items *items, uint32_t above, uint32_t below)
{
    items->down_begin[above + 2]++;
    items->up_begin[below + 2]++;
}

static void add_link(struct items *items, uint32_t above, uint32_t below)
{
    items->down[items->down_begin[above + 1]++] = below;
    items->up[items->up_begin[below + 1]++] = above;
}

static enum rp_code make_items(struct work *w)
{
    struct items *t = &w->items;
    size_t n = t->n, links = 0;

    t->row = RP_ARENA_NEW(w->arena, uint32_t, n + 1);
    t->place = RP_ARENA_NEW(w->arena, float, n + 1);
    t->w = RP_ARENA_NEW(w->arena, float, n + 1);
    t->mid = RP_ARENA_NEW(w->arena, float, n + 1);
    t->down_begin = RP_ARENA_NEW(w->arena, uint32_t, n + 2);
    t->up_begin = RP_ARENA_NEW(w->arena, uint32_t, n + 2);
    w->key = RP_ARENA_NEW(w->arena, float, n + 1);
    RP_TRY(
        rp_err_need(t->row && t->place && t->w && t->mid && t->down_begin && t->up_begin && w->key,
                    w->err, "placing a graph"));
    for (uint32_t v = 0; v < t->nodes; v++) {
        t->row[v] = w->out->row[v];
        t->w[v] = w->g->w[v];
    }
    for (uint32_t v = 0; v < t->nodes; v++)
        for (uint32_t k = w->out->bend_begin[v]; k < w->out->bend_begin[v + 1]; k++) {
            t->row[t->nodes + k] = w->out->row[v] + 1 + k - w->out->bend_begin[v];
            t->w[t->nodes + k] = SLOT;
        }
    each_link(w, count_link, t);
    for (size_t i = 2; i < n + 2; i++) {
        t->down_begin[i] += t->down_begin[i - 1];
        t->up_begin[i] += t->up_begin[i - 1];
    }
    links = t->down_begin[n + 1];
    t->down = RP_ARENA_NEW(w->arena, uint32_t, links + 1);
    t->up = RP_ARENA_NEW(w->arena, uint32_t, links + 1);
    RP_TRY(rp_err_need(t->down && t->up, w->err, "placing a graph"));
    each_link(w, add_link, t);
    return RP_OK;
}

static void note_places(struct work *w, uint32_t row)
{
    uint32_t from = w->rows.begin[row], to = w->rows.begin[row + 1];

    for (uint32_t i = from; i < to; i++)
        w->items.place[w->rows.at[i]] = ((float)(i - from) + .5f) / (float)(to - from);
}

/* Lists items by row: nodes in their order, and a slot after the start of its edge. */
static enum rp_code fill_rows(struct work *w)
{
    struct rows *r = &w->rows;
    struct items *t = &w->items;

    r->begin = RP_ARENA_NEW(w->arena, uint32_t, (size_t)r->n + 2);
    r->at = RP_ARENA_NEW(w->arena, uint32_t, (size_t)t->n + 1);
    RP_TRY(rp_err_need(r->begin && r->at, w->err, "placing a graph"));
    for (uint32_t i = 0; i < t->n; i++)
        r->begin[t->row[i] + 2]++;
    for (uint32_t i = 2; i < r->n + 2; i++)
        r->begin[i] += r->begin[i - 1];
    for (uint32_t i = 0; i < t->n; i++)
        r->at[r->begin[t->row[i] + 1]++] = i;
    for (uint32_t k = 0; k < r->n; k++)
        note_places(w, k);
    return RP_OK;
}

/* ---- order ---- */

struct sorted {
    float key;
    uint32_t item;
};

RP_ORDER(by_key, struct sorted, RP_UP(key), RP_UP(item))

/* Sorts by insertion, for short rows and those that hardly change. */
static void sort_row(struct work *w, uint32_t *at, uint32_t n, struct sorted *scratch)
{
    uint32_t moves = 0;

    for (uint32_t i = 1; i < n; i++) {
        uint32_t item = at[i], k = i;

        while (k > 0 && w->key[at[k - 1]] > w->key[item] && moves <= 8 * n + 64) {
            at[k] = at[k - 1];
            k--;
            moves++;
        }
        at[k] = item;
    }
    if (moves > 8 * n + 64) {
        for (uint32_t i = 0; i < n; i++)
            scratch[i] = (struct sorted){w->key[at[i]], at[i]};
        qsort(scratch, n, sizeof *scratch, by_key);
        for (uint32_t i = 0; i < n; i++)
            at[i] = scratch[i].item;
    }
}

static void order_row(struct work *w, uint32_t r, bool from_above, struct sorted *scratch)
{
    struct items *t = &w->items;
    const uint32_t *begin = from_above ? t->up_begin : t->down_begin;
    const uint32_t *near = from_above ? t->up : t->down;
    uint32_t from = w->rows.begin[r], n = w->rows.begin[r + 1] - from;
    uint32_t *at = w->rows.at + from;

    for (uint32_t i = 0; i < n; i++) {
        float sum = 0;
        uint32_t count = begin[at[i] + 1] - begin[at[i]];

        for (uint32_t k = begin[at[i]]; k < begin[at[i] + 1]; k++)
            sum += t->place[near[k]];
        w->key[at[i]] = count ? sum / (float)count : t->place[at[i]];
    }
    sort_row(w, at, n, scratch);
    note_places(w, r);
}

static uint32_t longest_row(const struct work *w)
{
    uint32_t most = 0;

    for (uint32_t r = 0; r < w->rows.n; r++)
        if (w->rows.begin[r + 1] - w->rows.begin[r] > most)
            most = w->rows.begin[r + 1] - w->rows.begin[r];
    return most;
}

static enum rp_code order_rows(struct work *w)
{
    uint32_t most = longest_row(w);
    int sweeps = w->items.n > LARGE ? ORDER_SWEEPS / 2 : ORDER_SWEEPS;
    struct sorted *scratch = RP_ARENA_NEW(w->arena, struct sorted, (size_t)most + 1);

    RP_TRY(rp_err_need(scratch, w->err, "placing a graph"));
    for (int sweep = 0; most > 1 && sweep < sweeps; sweep++) {
        bool down = sweep % 2 == 0;

        for (uint32_t i = 0; i < w->rows.n; i++)
            order_row(w, down ? i : w->rows.n - 1 - i, down, scratch);
    }
    return RP_OK;
}

/* ---- places ---- */

struct block { /* of boxes that touch */
    double sum, weight;
    uint32_t n;
};

static float gap_after(const struct items *t, uint32_t a, uint32_t b)
{
    bool slots = a >= t->nodes || b >= t->nodes;

    return (t->w[a] + t->w[b]) / 2 + (slots ? RP_LAYOUT_GAP_X / 2 : RP_LAYOUT_GAP_X);
}

/* Returns the middle of its neighbours above, below or both; edges through slots shall be
   straight. */
static double wanted_mid(const struct items *t, uint32_t item, int sides, double *weight)
{
    double sum = 0, total = 0;

    for (int side = 1; side <= 2; side++) {
        const uint32_t *begin = side == 1 ? t->up_begin : t->down_begin;
        const uint32_t *near = side == 1 ? t->up : t->down;

        for (uint32_t k = begin[item]; (sides & side) && k < begin[item + 1]; k++) {
            double one = item >= t->nodes ? near[k] >= t->nodes ? 8 : 2 : 1;

            sum += one * t->mid[near[k]];
            total += one;
        }
    }
    *weight = total > 0 ? total : 0.05;
    return total > 0 ? sum / total : t->mid[item];
}

/* Moves the boxes of a row as close to their wanted places as the order permits, by least
   squares. */
static void place_row(struct work *w, uint32_t r, int sides, struct block *blocks)
{
    struct items *t = &w->items;
    uint32_t from = w->rows.begin[r], n = w->rows.begin[r + 1] - from, nblocks = 0, i = 0;
    const uint32_t *at = w->rows.at + from;
    double offset = 0;

    for (uint32_t k = 0; k < n; k++) {
        double weight, want;

        offset += k ? gap_after(t, at[k - 1], at[k]) : 0;
        want = wanted_mid(t, at[k], sides, &weight) - offset;
        blocks[nblocks++] = (struct block){want * weight, weight, 1};
        while (nblocks > 1 && blocks[nblocks - 2].sum * blocks[nblocks - 1].weight >
                                  blocks[nblocks - 1].sum * blocks[nblocks - 2].weight) {
            nblocks--;
            blocks[nblocks - 1].sum += blocks[nblocks].sum;
            blocks[nblocks - 1].weight += blocks[nblocks].weight;
            blocks[nblocks - 1].n += blocks[nblocks].n;
        }
    }
    offset = 0;
    for (uint32_t b = 0; b < nblocks; b++)
        for (uint32_t k = 0; k < blocks[b].n; k++, i++) {
            offset += i ? gap_after(t, at[i - 1], at[i]) : 0;
            t->mid[at[i]] = (float)(blocks[b].sum / blocks[b].weight + offset);
        }
}

static enum rp_code place_items(struct work *w)
{
    struct items *t = &w->items;
    struct block *blocks = RP_ARENA_NEW(w->arena, struct block, (size_t)longest_row(w) + 1);
    float least = 0, most = 0;
    int sweeps = t->n > LARGE ? PLACE_SWEEPS - 2 : PLACE_SWEEPS;

    RP_TRY(rp_err_need(blocks, w->err, "placing a graph"));
    for (uint32_t r = 0; r < w->rows.n; r++) {
        float x = 0;

        for (uint32_t i = w->rows.begin[r]; i < w->rows.begin[r + 1]; i++) {
            if (i > w->rows.begin[r])
                x += gap_after(t, w->rows.at[i - 1], w->rows.at[i]);
            t->mid[w->rows.at[i]] = x;
        }
    }
    for (int sweep = 0; sweep < sweeps; sweep++)
        for (uint32_t i = 0; i < w->rows.n; i++) {
            int sides = sweep >= sweeps - 2 ? 3 : sweep % 2 ? 2 : 1;

            place_row(w, sweep % 2 ? w->rows.n - 1 - i : i, sides, blocks);
        }
    for (uint32_t i = 0; i < t->n; i++) {
        least = i == 0 || t->mid[i] - t->w[i] / 2 < least ? t->mid[i] - t->w[i] / 2 : least;
        most = i == 0 || t->mid[i] + t->w[i] / 2 > most ? t->mid[i] + t->w[i] / 2 : most;
    }
    for (uint32_t i = 0; i < t->n; i++)
        t->mid[i] = roundf(t->mid[i] - least);
    w->out->width = ceilf(most - least);
    return RP_OK;
}

static enum rp_code keep_places(struct work *w)
{
    struct rp_layout *out = w->out;
    const struct items *t = &w->items;
    float y = 0;

    out->nrows = w->rows.n;
    out->x = RP_ARENA_NEW(w->arena, float, (size_t)t->nodes + 1);
    out->bends = RP_ARENA_NEW(w->arena, float, (size_t)t->nslots + 1);
    out->row_y = RP_ARENA_NEW(w->arena, float, (size_t)out->nrows + 1);
    out->row_h = RP_ARENA_NEW(w->arena, float, (size_t)out->nrows + 1);
    RP_TRY(
        rp_err_need(out->x && out->bends && out->row_y && out->row_h, w->err, "placing a graph"));
    for (uint32_t v = 0; v < t->nodes; v++) {
        out->x[v] = t->mid[v] - t->w[v] / 2;
        if (w->g->h[v] > out->row_h[out->row[v]])
            out->row_h[out->row[v]] = w->g->h[v];
    }
    for (uint32_t i = 0; i < t->nslots; i++)
        out->bends[i] = t->mid[t->nodes + i];
    for (uint32_t r = 0; r < out->nrows; r++) {
        out->row_y[r] = y;
        y += out->row_h[r] + RP_LAYOUT_GAP_Y;
    }
    out->height = y > 0 ? y - RP_LAYOUT_GAP_Y : 0;
    return RP_OK;
}

/* ---- tracks ---- */

struct tracks {
    uint32_t until[2][MOST_TRACKS]; /* the first row at which it is free again */
    uint32_t used[2];
};

/* Takes the first free track of a side; the last one is shared if all are taken. */
static uint32_t take_track(struct tracks *t, int side, uint32_t from, uint32_t to)
{
    uint32_t k = 0;

    while (k + 1 < MOST_TRACKS && t->until[side][k] > from)
        k++;
    if (t->until[side][k] < to + 1)
        t->until[side][k] = to + 1;
    if (k + 1 > t->used[side])
        t->used[side] = k + 1;
    return 2 * k + (unsigned)side;
}

/* Nodes are visited by row, so that a track is free again when its last edge has ended. */
static enum rp_code find_tracks(struct work *w)
{
    const struct rp_layout_graph *g = w->g;
    struct rp_layout *out = w->out;
    struct tracks tracks = {.used = {0}};
    uint32_t *low = RP_ARENA_NEW(w->arena, uint32_t, (size_t)g->n + 1);
    uint32_t *high = RP_ARENA_NEW(w->arena, uint32_t, (size_t)g->n + 1);
    uint32_t *of = RP_ARENA_NEW(w->arena, uint32_t, (size_t)g->n + 1);

    out->track = RP_ARENA_NEW(w->arena, uint32_t, g->nedges + 1);
    RP_TRY(rp_err_need(low && high && of && out->track, w->err, "placing a graph"));
    memset(low, 0xff, (size_t)g->n * sizeof *low);
    for (size_t e = 0; e < g->nedges; e++) {
        uint32_t span = edge_span(w, e), from = g->edges[e].from, a = out->row[from],
                 b = out->row[g->edges[e].to];

        out->track[e] = RP_NONE;
        if (span && span <= w->span)
            continue;
        out->track[e] = 0;
        low[from] = low[from] < (a < b ? a : b) ? low[from] : a < b ? a : b;
        high[from] = high[from] > (a > b ? a : b) ? high[from] : a > b ? a : b;
    }
    for (uint32_t i = 0; i < w->items.n; i++) {
        uint32_t v = w->rows.at[i];

        if (v < g->n && low[v] != RP_NONE)
            of[v] = take_track(&tracks, out->x[v] + g->w[v] / 2 < out->width / 2, low[v], high[v]);
    }
    for (size_t e = 0; e < g->nedges; e++)
        if (out->track[e] != RP_NONE)
            out->track[e] = of[g->edges[e].from];
    out->tracks_right = tracks.used[0];
    out->tracks_left = tracks.used[1];
    return RP_OK;
}

enum rp_code rp_layout_run(const struct rp_layout_graph *graph, struct rp_arena *arena,
                           struct rp_layout *out, struct rp_err *err)
{
    struct work w = {.g = graph, .out = out, .arena = arena, .err = err};

    *out = (struct rp_layout){0};
    if (graph->n > RP_LAYOUT_MOST || graph->nedges > RP_LAYOUT_MOST)
        return rp_err_set(err, RP_LIMIT, "a graph of %u nodes is too large to be drawn", graph->n);
    out->row = RP_ARENA_NEW(arena, uint32_t, (size_t)graph->n + 1);
    RP_TRY(rp_err_need(out->row, err, "placing a graph"));
    RP_TRY(index_edges(&w));
    find_rows(&w);
    RP_TRY(break_rows(&w));
    RP_TRY(number_slots(&w));
    RP_TRY(make_items(&w));
    RP_TRY(fill_rows(&w));
    RP_TRY(order_rows(&w));
    RP_TRY(place_items(&w));
    RP_TRY(keep_places(&w));
    return find_tracks(&w);
}
