/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The widths that open groups need are constraints between the ends of columns: sorted by x, one
 * pass finds the least places that satisfy all of them and keep every distance. Columns in between
 * move proportionally, so aligned boxes stay aligned.
 */
#include "draw/picture_open.h"
#include "base/order.h"

#include <stdlib.h>

float rp_stretch_at(const struct rp_stretch *s, float x)
{
    size_t i;

    RP_LOWER_BOUND(i, s->n, s->from[i] <= x);
    if (i == 0)
        return x;
    if (i == s->n || s->from[i] == s->from[i - 1])
        return s->to[i - 1] + x - s->from[i - 1];
    return s->to[i - 1] +
           (x - s->from[i - 1]) * (s->to[i] - s->to[i - 1]) / (s->from[i] - s->from[i - 1]);
}

/* ---- which groups ---- */

enum rp_code rp_picture_choose(const struct rp_picture *picture, uint32_t root, uint32_t boxes,
                               struct rp_arena *arena, bool **open, struct rp_err *err)
{
    const struct rp_tree *t = &picture->tree;
    uint32_t *queue = RP_ARENA_NEW(arena, uint32_t, (size_t)t->ngroups + 1), n = 0;
    int64_t room = (int64_t)boxes - t->groups[root].n;

    *open = RP_ARENA_NEW(arena, bool, (size_t)t->p->nops + t->ngroups + 1);
    RP_TRY(rp_err_need(queue && *open, err, "drawing a program"));
    queue[n++] = root;
    for (uint32_t i = 0; i < n; i++) {
        const struct rp_group *g = &t->groups[queue[i]];

        for (uint32_t k = 0; k < g->n; k++) {
            uint32_t child = t->children[g->first + k], id = child - t->p->nops;
            const struct rp_group *c = &t->groups[id];

            if (child < t->p->nops || c->kind == RP_GROUP_REPEAT || c->kind == RP_GROUP_INPUTS ||
                (c->ops < g->ops * 0.6 && (int64_t)c->n > room))
                continue;
            (*open)[child] = true;
            queue[n++] = id;
            room -= c->n;
        }
    }
    return RP_OK;
}

/* ---- places ---- */

struct opening {
    const struct rp_picture *picture;
    const bool *open;
    struct rp_arena *arena;
    struct rp_opened *out;
    struct rp_err *err;
};

struct column { /* a column of the layout, and the width that it needs */
    float begin, end, w;
};

RP_ORDER(by_float, float, RP_COMPARE(*a, *b))

RP_ORDER(by_end, struct column, RP_UP(end))

static enum rp_code make_stretch(struct opening *o, struct column *columns, size_t n,
                                 struct rp_stretch *s)
{
    size_t next = 0;

    s->from = RP_ARENA_NEW(o->arena, float, 2 * n + 1);
    s->to = RP_ARENA_NEW(o->arena, float, 2 * n + 1);
    RP_TRY(rp_err_need(s->from && s->to, o->err, "drawing a program"));
    for (size_t i = 0; i < n; i++) {
        s->from[2 * i] = columns[i].begin;
        s->from[2 * i + 1] = columns[i].end;
    }
    qsort(s->from, 2 * n, sizeof *s->from, by_float);
    qsort(columns, n, sizeof *columns, by_end);
    for (size_t i = 0; i < 2 * n; i++) {
        float x = s->from[i];

        if (s->n && s->from[s->n - 1] == x)
            continue;
        s->to[s->n] = s->n ? s->to[s->n - 1] + x - s->from[s->n - 1] : x;
        s->from[s->n] = x;
        s->n++;
        for (; next < n && columns[next].end <= x; next++) {
            float least = rp_stretch_at(s, columns[next].begin) + columns[next].w;

            if (s->to[s->n - 1] < least)
                s->to[s->n - 1] = least;
        }
    }
    return RP_OK;
}

static enum rp_code open_group(struct opening *o, uint32_t g);

/* Sizes of the children; those that are open are columns. */
static enum rp_code measure_children(struct opening *o, uint32_t g, struct column *columns,
                                     size_t *n)
{
    const struct rp_tree *t = &o->picture->tree;
    const struct rp_group *group = &t->groups[g];
    const struct rp_picture_group *p = &o->picture->groups[group->same];
    struct rp_opened *to = &o->out[g];

    for (uint32_t i = 0; i < group->n; i++) {
        uint32_t child = t->children[group->first + i], row = p->layout.row[i];

        to->w[i] = p->w[i];
        to->h[i] = rp_picture_height(t, child);
        if (child >= t->p->nops && o->open[child]) {
            const struct rp_opened *inside = &o->out[child - t->p->nops];

            RP_TRY(open_group(o, child - t->p->nops));
            to->w[i] = inside->width + 2 * RP_OPEN_PAD;
            to->w[i] = to->w[i] < 150 ? 150 : to->w[i];
            to->h[i] = inside->height + RP_OPEN_TITLE + RP_OPEN_PAD;
            columns[(*n)++] = (struct column){p->layout.x[i], p->layout.x[i] + p->w[i], to->w[i]};
        }
        if (to->h[i] > to->row_h[row])
            to->row_h[row] = to->h[i];
    }
    return RP_OK;
}

static float tracks_width(uint32_t n)
{
    return n ? (float)(n * RP_LAYOUT_TRACK + 12) : 0;
}

static void place_children(struct opening *o, uint32_t g)
{
    const struct rp_group *group = &o->picture->tree.groups[g];
    const struct rp_picture_group *p = &o->picture->groups[group->same];
    struct rp_opened *to = &o->out[g];
    float y = 0;

    to->left = tracks_width(p->layout.tracks_left);
    to->inner = rp_stretch_at(&to->stretch, p->layout.width);
    to->width = to->left + to->inner + tracks_width(p->layout.tracks_right);
    for (uint32_t r = 0; r < p->layout.nrows; r++) {
        to->row_y[r] = y;
        y += to->row_h[r] + RP_LAYOUT_GAP_Y;
    }
    to->height = y > 0 ? y - RP_LAYOUT_GAP_Y : 0;
    for (uint32_t i = 0; i < group->n; i++) {
        float a = rp_stretch_at(&to->stretch, p->layout.x[i]);
        float b = rp_stretch_at(&to->stretch, p->layout.x[i] + p->w[i]);
        uint32_t row = p->layout.row[i];

        to->x[i] = to->left + (a + b - to->w[i]) / 2;
        to->y[i] = to->row_y[row] + (to->row_h[row] - to->h[i]) / 2;
    }
}

static enum rp_code open_group(struct opening *o, uint32_t g)
{
    const struct rp_group *group = &o->picture->tree.groups[g];
    size_t rows = o->picture->groups[group->same].layout.nrows, n = 0;
    struct rp_opened *to = &o->out[g];
    struct column *columns = RP_ARENA_NEW(o->arena, struct column, (size_t)group->n + 1);
    float *room = RP_ARENA_NEW(o->arena, float, 4 * ((size_t)group->n + 1) + 2 * (rows + 1));

    RP_TRY(rp_err_need(columns && room, o->err, "drawing a program"));
    to->x = room;
    to->y = to->x + group->n + 1;
    to->w = to->y + group->n + 1;
    to->h = to->w + group->n + 1;
    to->row_y = to->h + group->n + 1;
    to->row_h = to->row_y + rows + 1;
    RP_TRY(measure_children(o, g, columns, &n));
    RP_TRY(make_stretch(o, columns, n, &to->stretch));
    place_children(o, g);
    return RP_OK;
}

enum rp_code rp_picture_open(const struct rp_picture *picture, uint32_t root, const bool *open,
                             struct rp_arena *arena, struct rp_opened **out, struct rp_err *err)
{
    struct opening o = {.picture = picture, .open = open, .arena = arena, .err = err};

    o.out = RP_ARENA_NEW(arena, struct rp_opened, (size_t)picture->tree.ngroups + 1);
    RP_TRY(rp_err_need(o.out, err, "drawing a program"));
    *out = o.out;
    return open_group(&o, root);
}
