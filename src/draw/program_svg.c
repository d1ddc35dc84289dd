/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws the picture of the entry as an SVG file: the same layout, colours and edges as the page,
 * with as many groups open as fit on a poster. The name and origin of an operation are shown when
 * the mouse is over it.
 */
#include "draw/draw.h"
#include "draw/picture_open.h"
#include "draw/svg.h"
#include "io/escaped.h"
#include "program/opcodes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BOXES = 260, MARGIN = 20, HEAD = 66, FUSION = RP_CLASS_FOREIGN + 1, CLASSES = FUSION + 1 };

static const char *const class_names[CLASSES] = {"element-wise",
                                                 "reduction",
                                                 "matrix product",
                                                 "convolution",
                                                 "data movement",
                                                 "control",
                                                 "collective",
                                                 "input or constant",
                                                 "random",
                                                 "linear algebra",
                                                 "custom call or foreign",
                                                 "fusion"};

static const char style[] =
    "<style>text{font:600 11px ui-monospace,monospace;fill:#1b1f24}.s{font-weight:400;"
    "font-size:10.5px}.t{font:600 12px system-ui,sans-serif}.h{font:600 15px system-ui,sans-serif}"
    ".e{fill:none;stroke:#9aa4b0;stroke-width:1.2}.l{opacity:.5}.g{fill:#f1f3f6;stroke:#9aa4b0}"
    ".b{fill:#fff;stroke:#9aa4b0}.o{stroke:#d5dae0}.bg{fill:#fbfbfc}"
    ".k0{fill:#e6edf5}.k1{fill:#c9ddf0}.k2{fill:#5b9fd6}.k3{fill:#3f87c4}.k4{fill:#eef0f2}"
    ".k5{fill:#e3d9ee}.k6{fill:#f5b83d;stroke:#d55e00}.k7{fill:#fff}.k8{fill:#f3d6e4}"
    ".k9{fill:#a9c7e8}.k10{fill:#cbb3e0}.k11{fill:#a9dcc3}"
    "@media(prefers-color-scheme:dark){text{fill:#e6e8ea}.e{stroke:#5e6874}.g{fill:#1b1f24;"
    "stroke:#5e6874}.b{fill:#23282e;stroke:#5e6874}.o{stroke:#39414a}.bg{fill:#15181c}"
    ".k0{fill:#2b3641}.k1{fill:#27445e}.k2{fill:#1f6aa5}.k3{fill:#195a8f}.k4{fill:#2a2f35}"
    ".k5{fill:#40364e}.k6{fill:#9a6a00}.k7{fill:#1d2126}.k8{fill:#533145}.k9{fill:#31506f}"
    ".k10{fill:#55407a}.k11{fill:#1f5a45}}</style>\n";

struct poster {
    const struct rp_program *p;
    const struct rp_picture *picture;
    const struct rp_opened *opened;
    const bool *open;
    struct rp_out *to;
};

static unsigned class_of(const struct rp_program *p, uint32_t op)
{
    if (p->code.at[op] == RP_OP_FOREIGN)
        return rp_draw_foreign_class(rp_op_opcode_name(p, op));
    return p->code.at[op] == RP_OP_FUSION ? FUSION : rp_op_info[p->code.at[op]].class_;
}

static void put_numbers(struct rp_out *to, const char *word, const float *values, int n)
{
    rp_out_text(to, word);
    for (int i = 0; i < n; i++) {
        if (i)
            rp_out_char(to, ' ');
        rp_svg_number(to, values[i]);
    }
}

static void put_rect(struct rp_out *to, float x, float y, float w, float h, float r,
                     const char *classes)
{
    rp_out_text(to, "<rect x=\"");
    put_numbers(to, "", &x, 1);
    put_numbers(to, "\" y=\"", &y, 1);
    put_numbers(to, "\" width=\"", &w, 1);
    put_numbers(to, "\" height=\"", &h, 1);
    put_numbers(to, "\" rx=\"", &r, 1);
    rp_out_printf(to, "\" class=\"%s\"/>", classes);
}

/* Writes a text of at most `width` pixels, cut at its end. */
static void put_text(struct rp_out *to, float x, float y, float width, float per_char,
                     const char *classes, const char *text)
{
    size_t room = width > 0 ? (size_t)(width / per_char) : 0, n = 0, chars = 0;
    char cut[256];

    for (; text[n] && chars < room && n + 8 < sizeof cut; n++)
        chars += ((unsigned char)text[n] & 0xc0) != 0x80;
    while (text[n] && n && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    memcpy(cut, text, n);
    cut[n] = 0;
    if (text[n] && n)
        memcpy(cut + n, "…", sizeof "…");
    rp_out_printf(to, "<text class=\"%s\" x=\"", classes);
    put_numbers(to, "", &x, 1);
    put_numbers(to, "\" y=\"", &y, 1);
    rp_out_text(to, "\">");
    rp_out_escaped(to, RP_IN_MARKUP, cut);
    rp_out_text(to, "</text>");
}

/* ---- edges ---- */

static float clamp(float v, float least, float most)
{
    return v < least ? least : v > most ? most : v;
}

static void put_step(struct rp_out *to, const float from[2], float x, float y)
{
    float mid = (from[1] + y) / 2, curve[] = {from[0], mid, x, mid, x, y}, line[] = {x, y};

    if (fabsf(from[0] - x) < 1)
        put_numbers(to, "L", line, 2);
    else
        put_numbers(to, "C", curve, 6);
}

static void put_bends(const struct poster *s, uint32_t g, uint32_t e, float ox, float oy)
{
    const struct rp_picture_group *p = &s->picture->groups[s->picture->tree.groups[g].same];
    const struct rp_opened *o = &s->opened[g];
    uint32_t a = p->edges[e].from, b = p->edges[e].to, n = p->layout.row[b] - p->layout.row[a] - 1;
    const float *bends = p->layout.bends + p->layout.bend_begin[a];
    float first =
        n ? ox + o->left + rp_stretch_at(&o->stretch, bends[0]) : ox + o->x[b] + o->w[b] / 2;
    float last =
        n ? ox + o->left + rp_stretch_at(&o->stretch, bends[n - 1]) : ox + o->x[a] + o->w[a] / 2;
    float at[2] = {clamp(first, ox + o->x[a] + o->w[a] * .22f, ox + o->x[a] + o->w[a] * .78f),
                   oy + o->y[a] + o->h[a]};

    put_numbers(s->to, "M", at, 2);
    at[1] = oy + o->row_y[p->layout.row[a]] + o->row_h[p->layout.row[a]];
    put_numbers(s->to, "L", at, 2);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t row = p->layout.row[a] + 1 + k;
        float x = ox + o->left + rp_stretch_at(&o->stretch, bends[k]), y = oy + o->row_y[row];

        put_step(s->to, at, x, y);
        at[0] = x;
        at[1] = y + o->row_h[row];
        put_numbers(s->to, "L", at, 2);
    }
    last = clamp(last, ox + o->x[b] + o->w[b] * .15f, ox + o->x[b] + o->w[b] * .85f);
    put_step(s->to, at, last, oy + o->row_y[p->layout.row[b]]);
    put_numbers(s->to, "L", (float[]){last, oy + o->y[b]}, 2);
}

static void put_track(const struct poster *s, uint32_t g, uint32_t e, float ox, float oy)
{
    const struct rp_picture_group *p = &s->picture->groups[s->picture->tree.groups[g].same];
    const struct rp_opened *o = &s->opened[g];
    uint32_t a = p->edges[e].from, b = p->edges[e].to, track = p->layout.track[e], k = track / 2;
    bool right = track % 2 == 0;
    float away = (float)(10 + k * RP_LAYOUT_TRACK), off = (float)(6 + k % 6 * 3);
    float x = right ? ox + o->left + o->inner + away : ox + o->left - away;
    float sx = ox + o->x[a] + o->w[a] * (right ? .88f : .12f);
    float ex = ox + o->x[b] + o->w[b] * (right ? .9f : .1f);
    float y1 = oy + o->row_y[p->layout.row[a]] + o->row_h[p->layout.row[a]] + off;
    float y2 = oy + o->row_y[p->layout.row[b]] - off - 3;
    float points[][2] = {
        {sx, oy + o->y[a] + o->h[a]}, {sx, y1}, {x, y1}, {x, y2}, {ex, y2}, {ex, oy + o->y[b]}};

    for (int i = 0; i < 6; i++)
        put_numbers(s->to, i ? "L" : "M", points[i], 2);
}

static void put_edges(const struct poster *s, uint32_t g, float x, float y)
{
    const struct rp_picture_group *p = &s->picture->groups[s->picture->tree.groups[g].same];

    for (int lanes = 1; lanes >= 0; lanes--) {
        rp_out_printf(s->to, "<path class=\"e%s\" d=\"", lanes ? " l" : "");
        for (uint32_t e = 0; e < p->nedges; e++) {
            if ((p->layout.track[e] != RP_NONE) != lanes)
                continue;
            if (lanes)
                put_track(s, g, e, x, y);
            else
                put_bends(s, g, e, x, y);
        }
        rp_out_text(s->to, "\"/>\n");
    }
}

/* ---- boxes ---- */

static void put_op(const struct poster *s, uint32_t op, float x, float y, float w, float h)
{
    const struct rp_program *p = s->p;
    const char *name = rp_program_text(p, p->op_name.at[op]);
    struct rp_source_line at;
    char classes[16], shape[300];
    bool data = rp_tree_is_data(p, op);

    rp_shape_text(p, p->shape.at[op], false, shape, sizeof shape);
    snprintf(classes, sizeof classes, "o k%u", class_of(p, op));
    rp_out_text(s->to, "<g><title>");
    rp_out_escaped(s->to, RP_IN_MARKUP, name);
    rp_out_text(s->to, " = ");
    rp_out_escaped(s->to, RP_IN_MARKUP, shape);
    rp_out_char(s->to, ' ');
    rp_out_escaped(s->to, RP_IN_MARKUP, rp_op_opcode_name(p, op));
    if (rp_op_source(p, op, &at)) {
        rp_out_char(s->to, '\n');
        rp_out_escaped(s->to, RP_IN_MARKUP, at.file);
        rp_out_printf(s->to, ":%d", at.line);
    }
    rp_out_text(s->to, "</title>");
    put_rect(s->to, x, y, w, h, data ? 11 : 5, classes);
    put_text(s->to, x + 8, y + 15, w - 14, 6.7f, data ? "s" : "n", name);
    if (!data)
        put_text(s->to, x + 8, y + 29, w - 14, 6.3f, "s", shape);
    rp_out_text(s->to, "</g>\n");
}

static void group_title(const struct rp_tree *t, uint32_t g, char *out, size_t cap)
{
    const struct rp_group *group = &t->groups[g];
    const char *name = group->name, *slash = strrchr(name, '/');

    switch (group->kind) {
    case RP_GROUP_REPEAT:
        snprintf(out, cap, "×%u layers", group->n);
        break;
    case RP_GROUP_LAYER:
        snprintf(out, cap, "layer %u", group->number);
        break;
    case RP_GROUP_PART:
        snprintf(out, cap, "part %u", group->number);
        break;
    case RP_GROUP_INPUTS:
        snprintf(out, cap, "inputs and constants");
        break;
    default:
        snprintf(out, cap, "%s", slash ? slash + 1 : name);
    }
}

static void put_closed(const struct poster *s, uint32_t g, float x, float y, float w, float h)
{
    const struct rp_tree *t = &s->picture->tree;
    const struct rp_group *group = &t->groups[g];
    uint32_t each = group->kind == RP_GROUP_REPEAT && group->n ? group->ops / group->n : group->ops;
    char title[260], note[80];

    group_title(t, g, title, sizeof title);
    snprintf(note, sizeof note, "%u operations%s", each,
             group->kind == RP_GROUP_REPEAT ? " each" : "");
    rp_out_text(s->to, "<g><title>");
    rp_out_escaped(s->to, RP_IN_MARKUP, group->name);
    rp_out_text(s->to, "</title>");
    for (int k = group->kind == RP_GROUP_REPEAT ? 2 : 0; k >= 0; k--)
        put_rect(s->to, x + (float)(4 * k), y + (float)(4 * k), w, h, 7, "b");
    put_text(s->to, x + 9, y + 18, w - 16, 6.9f, "t", title);
    put_text(s->to, x + 9, y + 35, w - 16, 6.3f, "s", note);
    rp_out_text(s->to, "</g>\n");
}

static void put_group(const struct poster *s, uint32_t g, float x, float y)
{
    const struct rp_tree *t = &s->picture->tree;
    const struct rp_group *group = &t->groups[g];
    const struct rp_opened *o = &s->opened[g];

    put_edges(s, g, x, y);
    for (uint32_t i = 0; i < group->n; i++) {
        uint32_t child = t->children[group->first + i], id = child - t->p->nops;
        float cx = x + o->x[i], cy = y + o->y[i];
        char title[260];

        if (child < t->p->nops) {
            put_op(s, child, cx, cy, o->w[i], o->h[i]);
        } else if (!s->open[child]) {
            put_closed(s, id, cx, cy, o->w[i], o->h[i]);
        } else {
            group_title(t, id, title, sizeof title);
            put_rect(s->to, cx, cy, o->w[i], o->h[i], 9, "g");
            put_text(s->to, cx + 10, cy + 18, o->w[i] - 16, 6.9f, "t", title);
            put_group(s, id, cx + RP_OPEN_PAD, cy + RP_OPEN_TITLE);
        }
    }
}

static void put_legend(const struct poster *s)
{
    bool used[CLASSES] = {false};
    float x = MARGIN;

    for (uint32_t op = 0; op < s->p->nops; op++)
        used[class_of(s->p, op)] = true;
    for (unsigned i = 0; i < CLASSES; i++) {
        char classes[16];

        if (!used[i])
            continue;
        snprintf(classes, sizeof classes, "o k%u", i);
        put_rect(s->to, x, 38, 12, 12, 3, classes);
        put_text(s->to, x + 17, 48, 300, 6, "s", class_names[i]);
        x += 34 + 6.6f * (float)strlen(class_names[i]);
    }
    rp_out_char(s->to, '\n');
}

static void put_poster(const struct poster *s, uint32_t root)
{
    const struct rp_opened *o = &s->opened[root];
    float w = o->width + 2 * MARGIN, h = o->height + HEAD + MARGIN;

    w = w < 1000 ? 1000 : w;
    rp_out_text(s->to, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ");
    put_numbers(s->to, "", (float[]){w, h}, 2);
    put_numbers(s->to, "\" width=\"", &w, 1);
    put_numbers(s->to, "\" height=\"", &h, 1);
    rp_out_text(s->to, "\"><title>");
    rp_out_escaped(s->to, RP_IN_MARKUP, rp_program_text(s->p, s->p->name));
    rp_out_text(s->to, "</title>\n");
    rp_out_text(s->to, style);
    put_rect(s->to, 0, 0, w, h, 0, "bg");
    put_text(s->to, MARGIN, 24, 900, 8, "h", rp_program_text(s->p, s->p->name));
    put_legend(s);
    put_group(s, root, (w - o->width) / 2, HEAD);
    rp_out_text(s->to, "</svg>\n");
}

enum rp_code rp_draw_program_svg(const struct rp_program *p, struct rp_out *to, struct rp_err *err)
{
    RP_SCOPED(rp_arena_release) struct rp_arena arena = RP_ARENA_INIT;
    struct rp_picture picture;
    struct rp_opened *opened = NULL;
    bool *open = NULL;

    RP_TRY(rp_picture_make(p, &arena, &picture, err));
    if (p->entry == RP_NONE)
        return rp_err_set(err, RP_USAGE, "there is nothing to draw: the program is empty");
    uint32_t root = picture.tree.root[p->entry];
    RP_TRY(rp_picture_choose(&picture, root, BOXES, &arena, &open, err));
    RP_TRY(rp_picture_open(&picture, root, open, &arena, &opened, err));
    put_poster(&(struct poster){p, &picture, opened, open, to}, root);
    return RP_OK;
}
