/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws charts by svg.c. A chart of hostile values is still a document of bounded size: ticks are
 * counted before they are drawn, labels are limited, and every value is clipped to the box.
 */
#include "draw/plot.h"

#include "base/order.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MOST_TICKS  40
#define MOST_LABELS 64
#define CHUNK       512 /* the number of points that are converted at a time */

/* ------------------------------------------------------------------ axes */

static void axis_correct(struct rp_axis *axis)
{
    if (!isfinite(axis->from))
        axis->from = 0;
    if (!isfinite(axis->to))
        axis->to = axis->from + 1;
    if (axis->scale == RP_SCALE_LOG && !(axis->to > 0))
        axis->to = 1;
    if (axis->scale == RP_SCALE_LOG && !(axis->from > axis->to * 1e-30))
        axis->from = axis->to / 1000;
    if (!(axis->to > axis->from))
        axis->to = axis->scale == RP_SCALE_LOG ? axis->from * 10
                                               : axis->from + fmax(fabs(axis->from) * 1e-6, 1);
}

/* Returns where a value is on its axis, 0 to 1. */
static double axis_place(const struct rp_axis *axis, double value)
{
    double at;

    if (axis->scale == RP_SCALE_LOG)
        at = value > 0 ? (log10(value) - log10(axis->from)) / (log10(axis->to) - log10(axis->from))
                       : 0;
    else
        at = (value - axis->from) / (axis->to - axis->from);
    return !(at > 0) ? 0 : at > 1 ? 1 : at;
}

double rp_plot_x(const struct rp_plot *plot, double value)
{
    return plot->left + plot->width * axis_place(&plot->x, value);
}

double rp_plot_y(const struct rp_plot *plot, double value)
{
    return plot->top + plot->height * (1 - axis_place(&plot->y, value));
}

double rp_plot_round_up(double value)
{
    static const double steps[] = {1, 2, 2.5, 5, 10};
    size_t i = 0;

    if (!(value > 0) || !isfinite(value))
        return 1;
    double power = pow(10, floor(log10(value)));
    while (i < 4 && steps[i] * power < value * (1 - 1e-12))
        i++;
    return steps[i] * power;
}

/* ------------------------------------------------------------------ ticks */

static const char *const time_names[] = {"ns", "µs", "ms", "s"};
static const char *const si_names[] = {"", "k", "M", "G", "T", "P", "E"};

static const char *unit_base(enum rp_unit unit)
{
    switch (unit) {
    case RP_UNIT_BYTES:
        return "B";
    case RP_UNIT_BPS:
        return "B/s";
    case RP_UNIT_FLOPS:
        return "FLOP/s";
    case RP_UNIT_HZ:
        return "Hz";
    case RP_UNIT_FLOP:
        return "FLOP";
    default:
        return "";
    }
}

void rp_plot_tick_text(double value, double step, enum rp_unit unit, char *out, size_t cap)
{
    const char *const *names = unit == RP_UNIT_NS ? time_names : si_names;
    size_t n = unit == RP_UNIT_NS ? 4 : 7, i = 0;
    double shown = unit == RP_UNIT_RATIO ? value * 100 : value;
    double gap = unit == RP_UNIT_RATIO ? step * 100 : step;
    char number[64];
    int decimals = 0;

    if (value == 0) {
        snprintf(out, cap, "0");
        return;
    }
    while (unit != RP_UNIT_NONE && unit != RP_UNIT_RATIO && i + 1 < n &&
           fabs(shown) >= 1000 * (1 - 1e-9)) {
        shown /= 1000;
        gap /= 1000;
        i++;
    }
    gap = gap > 0 ? gap : fabs(shown);
    while (decimals < 6 && fabs(gap - round(gap)) > 1e-6 * gap) {
        gap *= 10;
        decimals++;
    }
    snprintf(number, sizeof number, "%.*f", decimals, shown);
    for (char *c = number; *c; c++) /* replaces the decimal mark of some locales */
        *c = *c == ',' ? '.' : *c;
    if (unit == RP_UNIT_RATIO)
        snprintf(out, cap, "%s %%", number);
    else if (unit == RP_UNIT_NONE || (unit == RP_UNIT_COUNT && i == 0))
        snprintf(out, cap, "%s", number);
    else
        snprintf(out, cap, "%s %s%s", number, names[i], unit_base(unit));
}

struct tick {
    double value;
    bool minor; /* a grid line only */
};

struct ticks {
    struct tick at[MOST_TICKS];
    size_t n;
    double step;
};

static void ticks_log(const struct rp_axis *axis, double most, struct ticks *out)
{
    int low = (int)floor(log10(axis->from) + 1e-9), high = (int)ceil(log10(axis->to) - 1e-9);
    int every = (int)ceil((high - low + 1) / fmax(most, 2));
    bool roomy = (high - low + 1) * 3 <= most;

    for (int i = low; i <= high; i++)
        for (int k = 1; k <= 9; k++) {
            double value = k * pow(10, i);
            bool labelled = k == 1 ? (i - low) % every == 0 : roomy && (k == 2 || k == 5);

            if (value < axis->from * (1 - 1e-9) || value > axis->to * (1 + 1e-9) ||
                out->n == MOST_TICKS || (k > 1 && high - low > 3 && !labelled))
                continue;
            out->at[out->n++] = (struct tick){value, !labelled};
        }
}

static void ticks_of(const struct rp_axis *axis, double most, struct ticks *out)
{
    out->n = 0;
    out->step = 0;
    if (axis->scale == RP_SCALE_LOG)
        ticks_log(axis, most, out);
    else {
        double first, step = rp_plot_round_up((axis->to - axis->from) / fmax(most, 2));

        if (axis->unit != RP_UNIT_RATIO && axis->unit != RP_UNIT_NONE && step < 1)
            step = 1; /* nanoseconds, bytes and counts have no fractions */
        first = ceil(axis->from / step - 1e-9);
        out->step = step;
        for (size_t i = 0;
             out->n < MOST_TICKS && (first + (double)i) * step <= axis->to * (1 + 1e-12); i++)
            out->at[out->n++] = (struct tick){(first + (double)i) * step, false};
    }
}

static void draw_x_axis(struct rp_plot *plot)
{
    double bottom = plot->top + plot->height;
    struct ticks ticks;
    char text[80];

    ticks_of(&plot->x, plot->width / 90, &ticks);
    for (size_t i = 0; i < ticks.n; i++) {
        double x = rp_plot_x(plot, ticks.at[i].value);

        rp_svg_line(plot->svg, (struct rp_point){x, plot->top}, (struct rp_point){x, bottom}, 0,
                    RP_LINE_GRID);
        if (ticks.at[i].minor)
            continue;
        rp_plot_tick_text(ticks.at[i].value, ticks.step, plot->x.unit, text, sizeof text);
        rp_svg_text(plot->svg, x, bottom + 15, RP_ANCHOR_MIDDLE, RP_TEXT_SMALL, text);
    }
    if (plot->x.title)
        rp_svg_text(plot->svg, plot->left + plot->width / 2, bottom + 32, RP_ANCHOR_MIDDLE,
                    RP_TEXT_PLAIN, plot->x.title);
}

static void draw_y_axis(struct rp_plot *plot)
{
    struct ticks ticks;
    double widest = 0;
    char text[80];

    ticks_of(&plot->y, plot->height / 40, &ticks);
    for (size_t i = 0; i < ticks.n; i++) {
        double y = rp_plot_y(plot, ticks.at[i].value);

        rp_svg_line(plot->svg, (struct rp_point){plot->left, y},
                    (struct rp_point){plot->left + plot->width, y}, 0, RP_LINE_GRID);
        if (ticks.at[i].minor)
            continue;
        rp_plot_tick_text(ticks.at[i].value, ticks.step, plot->y.unit, text, sizeof text);
        rp_svg_text(plot->svg, plot->left - 6, y + 4, RP_ANCHOR_END, RP_TEXT_SMALL, text);
        widest = fmax(widest, rp_svg_text_width(RP_TEXT_SMALL, text));
    }
    if (plot->y.title)
        rp_svg_text_up(plot->svg, fmax(plot->left - widest - 14, 12), plot->top + plot->height / 2,
                       RP_ANCHOR_MIDDLE, RP_TEXT_PLAIN, plot->y.title);
}

void rp_plot_begin(struct rp_plot *plot, struct rp_svg *svg)
{
    plot->svg = svg;
    axis_correct(&plot->x);
    axis_correct(&plot->y);
    if (plot->x.scale != RP_SCALE_NONE)
        draw_x_axis(plot);
    if (plot->y.scale != RP_SCALE_NONE)
        draw_y_axis(plot);
}

void rp_plot_end(struct rp_plot *plot)
{
    double right = plot->left + plot->width, bottom = plot->top + plot->height;

    rp_svg_line(plot->svg, (struct rp_point){plot->left, plot->top},
                (struct rp_point){plot->left, bottom}, 0, RP_LINE_AXIS);
    rp_svg_line(plot->svg, (struct rp_point){plot->left, bottom}, (struct rp_point){right, bottom},
                0, RP_LINE_AXIS);
}

/* ------------------------------------------------------------------ lines and areas */

static struct rp_point place(const struct rp_plot *plot, double x, double y)
{
    return (struct rp_point){rp_plot_x(plot, x), rp_plot_y(plot, y)};
}

/* Draws a long line as several paths that share their ends. */
static void draw_points(struct rp_plot *plot, const struct rp_point *points, size_t n, bool steps,
                        unsigned colour, enum rp_line_style style)
{
    struct rp_point at[2 * CHUNK];
    size_t m = 0;

    for (size_t i = 0; i < n; i++) {
        if (m && steps)
            at[m++] = place(plot, points[i].x, points[i - 1].y);
        at[m++] = place(plot, points[i].x, points[i].y);
        if (m < 2 * CHUNK - 1)
            continue;
        rp_svg_path(plot->svg, at, m, colour, style);
        at[0] = at[m - 1];
        m = 1;
    }
    rp_svg_path(plot->svg, at, m, colour, style);
}

void rp_plot_line(struct rp_plot *plot, const struct rp_point *points, size_t n, unsigned colour,
                  enum rp_line_style style)
{
    draw_points(plot, points, n, false, colour, style);
}

void rp_plot_steps(struct rp_plot *plot, const struct rp_point *points, size_t n, unsigned colour,
                   enum rp_line_style style)
{
    draw_points(plot, points, n, true, colour, style);
}

/* Returns the height of the layers below `layer` at the i-th x. */
static double stack_below(const struct rp_stack *stack, size_t layer, size_t i)
{
    double sum = 0;

    for (size_t k = 0; k < layer; k++)
        sum += stack->heights[k * stack->n + i];
    return sum;
}

void rp_plot_stack(struct rp_plot *plot, const struct rp_stack *stack)
{
    for (size_t layer = 0; layer < stack->layers; layer++)
        for (size_t begin = 0; begin + 1 < stack->n; begin += CHUNK - 1) {
            size_t end = begin + CHUNK < stack->n ? begin + CHUNK : stack->n;

            /* Draw the part of a layer from one x to another: along the top, and back along the
             * bottom. */
            struct rp_point at[4 * CHUNK];
            size_t m = 0;
            for (size_t i = begin; i < end; i++) {
                if (i > begin && stack->steps)
                    at[m++] = place(plot, stack->x[i], stack_below(stack, layer + 1, i - 1));
                at[m++] = place(plot, stack->x[i], stack_below(stack, layer + 1, i));
            }
            for (size_t i = end; i-- > begin;) {
                at[m++] = place(plot, stack->x[i], stack_below(stack, layer, i));
                if (i > begin && stack->steps)
                    at[m++] = place(plot, stack->x[i], stack_below(stack, layer, i - 1));
            }
            rp_svg_area(plot->svg, at, m, stack->colours[layer], 1);
        }
}

/* ------------------------------------------------------------------ dots */

struct box {
    double x, y, w, h;
};

static bool boxes_meet(const struct box *a, const struct box *b)
{
    return a->x < b->x + b->w && b->x < a->x + a->w && a->y < b->y + b->h && b->y < a->y + a->h;
}

#define MOST_SEEN 256 /* dots that a label must not cover */

struct labels {
    const struct rp_plot *plot;
    const struct rp_plot_dot *dots;
    size_t ndots, n;
    struct box at[MOST_LABELS];
};

/* Whether a place is in the box of the plot and covers neither a label nor another dot. */
static bool is_free(const struct labels *l, const struct box *box, size_t own)
{
    const struct rp_plot *plot = l->plot;

    if (box->x < plot->left || box->x + box->w > plot->left + plot->width || box->y < plot->top ||
        box->y + box->h > plot->top + plot->height)
        return false;
    for (size_t i = 0; i < l->n; i++)
        if (boxes_meet(&l->at[i], box))
            return false;
    for (size_t i = 0; i < l->ndots && i < MOST_SEEN; i++) {
        struct rp_point at = place(plot, l->dots[i].x, l->dots[i].y);
        double r = l->dots[i].radius;
        struct box dot = {at.x - r, at.y - r, 2 * r, 2 * r};

        if (i != own && boxes_meet(&dot, box))
            return false;
    }
    return true;
}

/* Finds a free place for the label of a dot: right, left, above or below. */
static bool label_fits(const struct labels *l, size_t own, struct box *label)
{
    struct rp_point at = place(l->plot, l->dots[own].x, l->dots[own].y);
    double w = label->w, h = label->h, radius = l->dots[own].radius;
    const struct rp_point tries[] = {{at.x + radius + 4, at.y - h / 2},
                                     {at.x - radius - 4 - w, at.y - h / 2},
                                     {at.x - w / 2, at.y - radius - 3 - h},
                                     {at.x - w / 2, at.y + radius + 3}};

    for (size_t k = 0; k < sizeof tries / sizeof *tries; k++) {
        label->x = tries[k].x;
        label->y = tries[k].y;
        if (is_free(l, label, own))
            return true;
    }
    return false;
}

static void draw_labels(struct rp_plot *plot, const struct rp_plot_dot *dots, size_t n)
{
    struct labels l = {.plot = plot, .dots = dots, .ndots = n};

    for (size_t i = 0; i < n && l.n < MOST_LABELS; i++) {
        struct box label = {.h = 13};

        if (!dots[i].label)
            continue;
        label.w = fmin(rp_svg_text_width(RP_TEXT_SMALL, dots[i].label), 220);
        if (!label_fits(&l, i, &label))
            continue;
        l.at[l.n++] = label;
        rp_svg_text_in(plot->svg, label.x, label.y + 10, label.w + 1, RP_ANCHOR_START,
                       RP_TEXT_SMALL, dots[i].label);
    }
}

void rp_plot_dots(struct rp_plot *plot, const struct rp_plot_dot *dots, size_t n)
{
    static const double sizes[] = {1e9, 12, 8, 5,
                                   0}; /* in classes of size, so that sorting needs no memory */

    for (size_t k = 0; k + 1 < sizeof sizes / sizeof *sizes; k++)
        for (size_t i = 0; i < n; i++) {
            if (!(dots[i].radius < sizes[k]) || dots[i].radius < sizes[k + 1])
                continue;
            rp_svg_group_begin(plot->svg, dots[i].hint);
            rp_svg_circle(plot->svg, place(plot, dots[i].x, dots[i].y), dots[i].radius,
                          dots[i].colour, 0.75);
            rp_svg_group_end(plot->svg);
        }
    draw_labels(plot, dots, n);
}

/* ------------------------------------------------------------------ lanes */

static bool slices_equal(const struct rp_lane_shares *lane, size_t a, size_t b)
{
    return !memcmp(&lane->share[a * lane->kinds], &lane->share[b * lane->kinds],
                   lane->kinds * sizeof *lane->share);
}

/* Draws one kind of a lane as one shape. */
static void draw_kind(struct rp_plot *plot, const struct rp_lane_shares *lane, size_t kind)
{
    double slice = plot->width / (double)(lane->n ? lane->n : 1);
    size_t end;

    rp_svg_rects_begin(plot->svg, lane->colours[kind]);
    for (size_t i = 0; i < lane->n; i = end) {
        double below = 0, share = 0;

        for (end = i + 1; end < lane->n && slices_equal(lane, i, end);)
            end++;
        for (size_t k = 0; k <= kind; k++) {
            below += share;
            share = lane->share[i * lane->kinds + k];
            share = !(share > 0) ? 0 : share > 1 - below ? 1 - below : share;
        }
        rp_svg_rects_add(plot->svg, plot->left + (double)i * slice,
                         lane->top + lane->height * (1 - below - share), (double)(end - i) * slice,
                         lane->height * share);
    }
    rp_svg_rects_end(plot->svg);
}

void rp_plot_lane(struct rp_plot *plot, const struct rp_lane_shares *lane)
{
    rp_svg_group_begin(plot->svg, lane->hint);
    rp_svg_text_in(plot->svg, plot->left - 6, lane->top + lane->height / 2 + 4, plot->left - 10,
                   RP_ANCHOR_END, RP_TEXT_SMALL, lane->name);
    for (size_t k = 0; k < lane->kinds; k++)
        draw_kind(plot, lane, k);
    rp_svg_group_end(plot->svg);
}
