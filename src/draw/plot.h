/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Charts: a box with two axes, in which lines, areas, stacks and dots with labels are drawn; and
 * lanes, which have an axis of names.
 *
 *     struct rp_svg svg;
 *     struct rp_plot plot = {.left = 70, .top = 40, .width = 700, .height = 300,
 *                            .x = {RP_SCALE_LINEAR, RP_UNIT_NS, 0, 5e9, "time"},
 *                            .y = {RP_SCALE_LINEAR, RP_UNIT_BYTES, 0, 80e9, "memory"}};
 *     rp_svg_begin(&svg, to, 800, 400, "memory", NULL);
 *     rp_plot_begin(&plot, &svg);
 *     rp_plot_line(&plot, points, n, RP_COLOUR_BLUE, RP_LINE_PLAIN);
 *     rp_plot_end(&plot);
 *     rp_svg_end(&svg);
 *
 * Values outside the axes are drawn at the edge of the box. Ticks are round numbers in the unit of
 * the axis; those of a logarithmic axis are decades, and 2 and 5 times these where there is room.
 */
#include "draw/svg.h"

#include <reprise/result.h>
#include <stdint.h>

enum rp_scale {
    RP_SCALE_LINEAR,
    RP_SCALE_LOG,
    RP_SCALE_NONE /* an axis of names, for which nothing is drawn */
};

struct rp_axis {
    enum rp_scale scale;
    enum rp_unit unit; /* the unit of the values: RP_UNIT_NS for times */
    double from, to;
    const char *title; /* or NULL */
};

struct rp_plot {
    double left, top, width,
        height; /* the box; ticks and titles are outside of it: 80 pixels left, 36 below */
    struct rp_axis x, y;
    struct rp_svg *svg; /* set by begin */
};

/* Corrects axes that show nothing (from >= to, or a logarithm of 0), and draws grid, ticks and
   titles. */
void rp_plot_begin(struct rp_plot *plot, struct rp_svg *svg);
/* Draws the line around the box, over everything inside. */
void rp_plot_end(struct rp_plot *plot);

/* Returns where a value is in the document, inside the box. */
double rp_plot_x(const struct rp_plot *plot, double value);
double rp_plot_y(const struct rp_plot *plot, double value);

/* Returns the smallest round number (1, 2, 2.5 or 5 times a power of ten) that is not smaller than
   the value: a good end of an axis. */
double rp_plot_round_up(double value);

/* Writes the label of a tick: "0", "2.5 ms", "40 GB", "100 %"; step is the distance of ticks (if it
   is 0, the value alone decides how many decimals there are). */
void rp_plot_tick_text(double value, double step, enum rp_unit unit, char *out, size_t cap);

/* Draws points in the order of x. In a step function the value of a point holds until the next
   one. */
void rp_plot_line(struct rp_plot *plot, const struct rp_point *points, size_t n, unsigned colour,
                  enum rp_line_style style);
void rp_plot_steps(struct rp_plot *plot, const struct rp_point *points, size_t n, unsigned colour,
                   enum rp_line_style style);

/*
 * Layers on top of each other, the first lowest: layer i has n heights, at heights[i * n], one for
 * each x. If steps is set, heights hold until the next x. Layer i has the colour colours[i].
 */
struct rp_stack {
    size_t n, layers;
    const double *x, *heights;
    const unsigned *colours;
    bool steps;
};
void rp_plot_stack(struct rp_plot *plot, const struct rp_stack *stack);

/* A dot; hint is shown when the mouse is over it (NULL shows nothing). */
struct rp_plot_dot {
    double x, y, radius;
    unsigned colour;
    const char *label, *hint;
};
/* Draws dots, the large ones first. Labels are placed beside their dots, in the order of the array,
   if they cover neither a label nor a dot; the others are left out. At most 64 labels. */
void rp_plot_dots(struct rp_plot *plot, const struct rp_plot_dot *dots, size_t n);

/*
 * One lane of a timeline in the box of a plot, which has a time axis x: a name at its left, and
 * shares of each of n equal slices of the axis, stacked from below: share[i * kinds + k] of slice i
 * is drawn in colours[k]; the rest up to 1 stays empty. Equal slices are joined.
 */
struct rp_lane_shares {
    const char *name, *hint;
    double top, height; /* in the document */
    size_t n, kinds;
    const float *share;
    const unsigned *colours;
};
void rp_plot_lane(struct rp_plot *plot, const struct rp_lane_shares *lane);
