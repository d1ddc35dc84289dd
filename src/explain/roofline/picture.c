/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws the rows as dots: arithmetic intensity to the right, rate upwards, both logarithmic; the
 * area of a dot is its share of the device time, its colour its category. Above them the roofs: the
 * peak of the memory rises to that of arithmetic, and the dashed lines are at the achievable part.
 * Rows that compute nothing have no place on a logarithmic axis; a line below states their time.
 */
#include "explain/roofline/roofline.h"

#include "base/decides.h"
#include "base/order.h"
#include "draw/plot.h"
#include "result/print_units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_DOTS 400
RP_LIMIT(MOST_DOTS, "dots", "the longest; the table has them all");
#define LABELLED 24
RP_LIMIT(LABELLED, "dots with a name", "the others have it when pointed at");

struct picture {
    const struct rp_roof_root *root;
    struct rp_arena *arena;
    const struct rp_roof_row **rows; /* rows that are drawn, longest first */
    size_t nrows;
    int64_t moved_ns, moved; /* rows without arithmetic */
    struct rp_svg_entry entries[RP_COLOURS];
    size_t nentries;
};

static bool has_place(const struct rp_roof_row *r)
{
    return r->flops_per_byte > 0 && r->flops_per_s > 0 && isfinite(r->flops_per_byte) &&
           isfinite(r->flops_per_s);
}

/* A rate above the memory's, because of a cache, is drawn at the memory's roof. */
static double drawn_rate(const struct picture *p, const struct rp_roof_row *r)
{
    double roof = r->flops_per_byte * p->root->memory_bytes_per_s;

    return roof < r->flops_per_s ? roof : r->flops_per_s;
}

RP_ORDER(longer_first, struct rp_roof_row *const, RP_COMPARE((*b)->device_ns, (*a)->device_ns),
         RP_COMPARE(*a, *b))

static void choose_rows(struct picture *p)
{
    const struct rp_roof_root *root = p->root;

    p->rows = RP_ARENA_NEW(p->arena, const struct rp_roof_row *, root->nknown + 1);
    for (size_t i = 0; p->rows && i < root->nknown; i++) {
        if (has_place(&root->known[i])) {
            p->rows[p->nrows++] = &root->known[i];
        } else {
            p->moved++;
            p->moved_ns += root->known[i].device_ns;
        }
    }
    rp_sort(p->rows, p->nrows, sizeof *p->rows, longer_first);
    p->nrows = p->nrows < MOST_DOTS ? p->nrows : MOST_DOTS;
}

/* A category has the same colour in every picture. */
static unsigned colour_of(const char *category)
{
    static const struct {
        const char *category;
        unsigned colour;
    } colours[] = {
        {"matmul", RP_COLOUR_BLUE},       {"attention", RP_COLOUR_ORANGE},
        {"elementwise", RP_COLOUR_GREEN}, {"convolution", RP_COLOUR_PURPLE},
        {"normalization", RP_COLOUR_SKY}, {"reduction", RP_COLOUR_RED},
        {"embedding", RP_COLOUR_YELLOW},
    };

    for (size_t i = 0; category && i < sizeof colours / sizeof *colours; i++)
        if (!strcmp(category, colours[i].category))
            return colours[i].colour;
    return RP_COLOUR_GREY;
}

/* Fits the axes: whole decades around all dots and the ridge, where the roofs meet. */
static void fit_axes(const struct picture *p, struct rp_plot *plot)
{
    double peak = p->root->matrix_flops_per_s, ridge = peak / p->root->memory_bytes_per_s;
    double low = 0.1, high = 1000, slow = 1e11, fast = 1e13;

    if (ridge > 0 && isfinite(ridge)) {
        high = fmax(high, ridge * 3);
        fast = fmax(fast, peak * 1.01);
        slow = fmin(slow, peak / 1e4);
    }
    for (size_t i = 0; i < p->nrows; i++) {
        low = fmin(low, p->rows[i]->flops_per_byte);
        high = fmax(high, p->rows[i]->flops_per_byte);
        slow = fmin(slow, drawn_rate(p, p->rows[i]));
        fast = fmax(fast, drawn_rate(p, p->rows[i]));
    }
    low = fmax(low, 1e-3);
    slow = fmax(slow, fast * 1e-7);
    plot->x.from = pow(10, floor(log10(low)));
    plot->x.to = pow(10, ceil(log10(high)));
    plot->y.from = pow(10, floor(log10(slow)));
    plot->y.to = pow(10, ceil(log10(fast)));
}

static void draw_roof(struct rp_plot *plot, double bytes_per_s, double flops_per_s,
                      enum rp_line_style style)
{
    double ridge = flops_per_s / bytes_per_s;
    /* where the rising part enters the box */
    double from = fmax(plot->x.from, plot->y.from / bytes_per_s);
    struct rp_point roof[] = {
        {from, from * bytes_per_s}, {ridge, flops_per_s}, {plot->x.to, flops_per_s}};

    rp_plot_line(plot, roof, 3, RP_COLOUR_GREY, style);
}

static void draw_roofs(struct rp_plot *plot, const struct rp_roof_root *root)
{
    double peak = root->matrix_flops_per_s, memory = root->memory_bytes_per_s;
    double at = sqrt(plot->x.from * peak / memory); /* the middle of the rising part */
    char rate[64], text[160];

    if (!(peak > 0) || !(memory > 0))
        return;
    draw_roof(plot, memory, peak, RP_LINE_PLAIN);
    draw_roof(plot, memory * root->achievable_share, peak * root->achievable_share, RP_LINE_DASHED);
    rp_units_format(peak, RP_UNIT_FLOPS, rate, sizeof rate);
    snprintf(text, sizeof text, "%s for products in %s", rate, root->matrix_type);
    rp_svg_text(plot->svg, plot->left + plot->width - 4, rp_plot_y(plot, peak) - 5, RP_ANCHOR_END,
                RP_TEXT_SMALL, text);
    rp_units_format(memory, RP_UNIT_BPS, rate, sizeof rate);
    snprintf(text, sizeof text, "memory: %s", rate);
    rp_svg_text(plot->svg, rp_plot_x(plot, at) - 6, rp_plot_y(plot, at * memory) - 4, RP_ANCHOR_END,
                RP_TEXT_SMALL, text);
}

static const char *dot_hint(struct picture *p, const struct rp_roof_row *r)
{
    return rp_arena_textf(
        p->arena, "%s: %s, %s (%s)%s%s%s%s%s%s", r->label ? r->label : r->name,
        rp_units_count(p->arena, r->calls, "call"), rp_units_time(p->arena, r->device_ns),
        rp_units_text(p->arena, r->share, RP_UNIT_RATIO), r->bound ? "; bound by " : "",
        r->bound ? r->bound : "", r->rate ? ", " : "", r->rate ? r->rate : "",
        isfinite(r->peak_share) ? ", of peak " : "",
        isfinite(r->peak_share) ? rp_units_text(p->arena, r->peak_share, RP_UNIT_RATIO) : "");
}

static void draw_dots(struct picture *p, struct rp_plot *plot)
{
    struct rp_plot_dot *dots = RP_ARENA_NEW(p->arena, struct rp_plot_dot, p->nrows + 1);

    for (size_t i = 0; dots && i < p->nrows; i++) {
        const struct rp_roof_row *r = p->rows[i];

        dots[i] = (struct rp_plot_dot){.x = r->flops_per_byte,
                                       .y = drawn_rate(p, r),
                                       .radius = 2.5 + 24 * sqrt(fmax(r->share, 0)),
                                       .colour = colour_of(r->category),
                                       .label = i < LABELLED ? r->label : NULL,
                                       .hint = dot_hint(p, r)};

        /* Add to the legend: categories in the order of their longest row; those without a colour
           share one entry. */
        unsigned colour = colour_of(r->category);
        size_t k = 0;
        while (k < p->nentries && p->entries[k].colour != colour)
            k++;
        if (k == p->nentries && k < RP_COLOURS)
            p->entries[p->nentries++] =
                (struct rp_svg_entry){colour == RP_COLOUR_GREY ? "others" : r->category, colour};
    }
    if (dots)
        rp_plot_dots(plot, dots, p->nrows);
}

static void draw_rest(struct picture *p, struct rp_svg *svg)
{
    const struct rp_roof_root *root = p->root;
    int64_t unknown = root->device_ns - root->modelled_ns;
    const char *text = "";

    if (p->moved)
        text = rp_arena_textf(p->arena, "%s compute nothing and are not shown: %s. ",
                              rp_units_count(p->arena, p->moved, "row"),
                              rp_units_time(p->arena, p->moved_ns));
    if (unknown > 0)
        text = rp_arena_textf(p->arena, "%sNot modelled: %s of %s.", text ? text : "",
                              rp_units_time(p->arena, unknown),
                              rp_units_time(p->arena, root->device_ns));
    if (text)
        rp_svg_text_in(svg, 80, svg->height - 10, svg->width - 100, RP_ANCHOR_START, RP_TEXT_SMALL,
                       text);
}

static void draw_picture(struct picture *p, struct rp_out *to)
{
    struct rp_plot plot = {
        .left = 100,
        .top = 66,
        .width = 1060,
        .height = 500,
        .x = {RP_SCALE_LOG, RP_UNIT_NONE, 1, 10, "arithmetic intensity (FLOP/B)"},
        .y = {RP_SCALE_LOG, RP_UNIT_FLOPS, 1, 10, "arithmetic (FLOP/s)"}};
    struct rp_svg svg;

    rp_svg_begin(&svg, to, 1200, 640, p->root->device ? p->root->device : "roofline",
                 p->root->summary);
    fit_axes(p, &plot);
    rp_plot_begin(&plot, &svg);
    draw_roofs(&plot, p->root);
    draw_dots(p, &plot);
    rp_plot_end(&plot);
    rp_svg_legend(&svg, 100, 48, 1180, p->entries, p->nentries);
    draw_rest(p, &svg);
    rp_svg_end(&svg);
}

void rp_roof_draw(const struct rp_roof_root *root, struct rp_arena *scratch, struct rp_out *to)
{
    struct picture picture = {.root = root, .arena = scratch};

    choose_rows(&picture);
    draw_picture(&picture, to);
}

enum rp_code rp_roof_write_picture(const struct rp_roof_root *root, const char *path,
                                   struct rp_err *err)
{
    struct rp_arena scratch = RP_ARENA_INIT;
    struct rp_out *to;
    enum rp_code code = rp_out_open(path, &to, err);

    if (code == RP_OK) {
        rp_roof_draw(root, &scratch, to);
        code = rp_arena_check(&scratch, "drawing a roofline", err);
        code = rp_out_end(to, code, err);
    }
    rp_arena_release(&scratch);
    return code;
}
