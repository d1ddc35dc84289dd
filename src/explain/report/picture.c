/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline of all ranks as a picture: each lane is cut into slices of one pixel, and a slice
 * shows the exact share of its time that each state has, so that no short work is lost.
 */
#include "base/decides.h"
#include "explain/report/report.h"
#include "explain/report/view.h"

#include "draw/plot.h"
#include "result/print_units.h"

#include <stdio.h>

#define WIDTH      1200.0
#define LEFT       120.0
#define SLICES     1060
#define MANY       64
#define FEW_SLICES 265
#define MOST_MARKS 100
#define SHOWN      (RP_LANE_STATES - 1) /* all states but idle */
RP_LIMIT(WIDTH, "pixels", "of the picture");
RP_LIMIT(LEFT, "pixels", "of the names of lanes");
RP_LIMIT(SLICES, "slices of a lane", "a pixel each; shorter pieces are mixed");
RP_LIMIT(MANY, "lanes", "beyond, each has fewer slices");
RP_LIMIT(FEW_SLICES, "slices of a lane", "where there are many; shorter pieces are mixed");
RP_LIMIT(MOST_MARKS, "steps", "that are marked; if there are more, no step is");

static const unsigned colours[] = {
#define STATE_COLOUR(name, text, colour, doc) colour,
    RP_LANE_MAP(STATE_COLOUR)
#undef STATE_COLOUR
};
static const char *const names[] = {
#define STATE_NAME(name, text, colour, doc) text,
    RP_LANE_MAP(STATE_NAME)
#undef STATE_NAME
};

static void fill_share(const struct rp_report_view *view, const struct rp_view_lane *lane,
                       float *share, size_t n)
{
    double at = (double)lane->at_ns, slice = (double)view->span_ns / (double)n;

    for (size_t i = 0; i < n * SHOWN; i++)
        share[i] = 0;
    for (size_t i = 0; i < lane->npieces && slice > 0; i++) {
        double ns = 0;

        for (int s = 0; s < RP_LANE_STATES; s++)
            ns += (double)lane->pieces[i].ns[s];

        /* Add a piece of `ns` from `at` on to the slices that it covers, in proportion. */
        double end = at + ns;
        size_t k = at > 0 ? (size_t)(at / slice) : 0;
        for (; ns > 0 && k < n && (double)k * slice < end; k++) {
            double from = (double)k * slice, to = from + slice;
            double part = ((end < to ? end : to) - (at > from ? at : from)) / ns;

            for (int s = 1; s < RP_LANE_STATES; s++)
                share[k * SHOWN + (size_t)s - 1] +=
                    (float)(part * (double)lane->pieces[i].ns[s] / slice);
        }

        at += ns;
    }
}

/* "rank 3: 14.5 % compute, 85.5 % idle of 58.7 ms" */
static void lane_hint(const struct rp_view_lane *lane, char *out, size_t cap)
{
    char time[64], share[64];
    size_t n = (size_t)snprintf(out, cap, "%s:", lane->name);

    rp_units_format((double)lane->total_ns, RP_UNIT_NS, time, sizeof time);
    for (int s = 1; s <= RP_LANE_STATES; s++) {
        int k = s % RP_LANE_STATES; /* idle last */

        if (!lane->ns[k] || n >= cap)
            continue;
        rp_units_format((double)lane->ns[k] / (double)lane->total_ns, RP_UNIT_RATIO, share,
                        sizeof share);
        n += (size_t)snprintf(out + n, cap - n, " %s %s,", share, names[k]);
    }
    if (n > 0 && n < cap)
        snprintf(out + n - 1, cap - n + 1, " of %s", time);
}

/* Where the steps of a lane begin; the first lane has their names. */
static void mark_steps(struct rp_plot *plot, const struct rp_report_root *root, size_t lane,
                       double top, double height)
{
    size_t i, n = 0;

    for (i = 0; i < root->nsteps; i++)
        n += root->steps[i].rank == root->view->lanes[lane].rank;
    for (i = 0; i < root->nsteps && n <= MOST_MARKS; i++) {
        double x = rp_plot_x(plot, (double)root->view->step_at_ns[i]);

        if (root->steps[i].rank != root->view->lanes[lane].rank)
            continue;
        rp_svg_line(plot->svg, (struct rp_point){x, lane ? top : top - 4},
                    (struct rp_point){x, top + height}, 0, RP_LINE_AXIS);
        if (!lane && n <= 20 && root->steps[i].name)
            rp_svg_text_in(plot->svg, x + 3, top - 5, plot->width / (double)n - 6, RP_ANCHOR_START,
                           RP_TEXT_SMALL, root->steps[i].name);
    }
}

static void draw_lanes(struct rp_plot *plot, const struct rp_report_root *root, double height,
                       float *share)
{
    const struct rp_report_view *view = root->view;

    for (size_t i = 0; i < view->nlanes; i++) {
        const struct rp_view_lane *from = &view->lanes[i];
        char hint[400];
        struct rp_lane_shares lane = {.name = height < 9 && i % 8 ? "" : from->name,
                                      .hint = hint,
                                      .top = plot->top + (double)i * height,
                                      .height = height > 6 ? height - 3 : height - 0.5,
                                      .n = view->nlanes > MANY ? FEW_SLICES : SLICES,
                                      .kinds = SHOWN,
                                      .share = share,
                                      .colours = colours + 1};

        lane_hint(from, hint, sizeof hint);
        fill_share(view, from, share, lane.n);
        rp_plot_lane(plot, &lane);
        if (!i || view->nlanes <= MANY)
            mark_steps(plot, root, i, lane.top, lane.height);
    }
}

static void draw_legend(struct rp_svg *svg, const struct rp_report_view *view)
{
    struct rp_svg_entry entries[RP_LANE_STATES] = {{NULL, 0}};

    for (size_t i = 0; i < view->nlanes; i++)
        for (int s = 1; s < RP_LANE_STATES; s++)
            if (view->lanes[i].ns[s])
                entries[s - 1] =
                    (struct rp_svg_entry){s == RP_LANE_COMPUTE ? view->busy : names[s], colours[s]};
    rp_svg_legend(svg, LEFT, 44, WIDTH - 20, entries, SHOWN);
}

static void draw_picture(struct rp_out *to, const struct rp_report_root *root, float *share)
{
    const struct rp_report_view *view = root->view;
    double n = view->nlanes ? (double)view->nlanes : 1;
    double height = n > 200 ? 3 : n > 40 ? 10 : n > 3 ? 28 : 60;
    struct rp_plot plot = {.left = LEFT,
                           .top = 76,
                           .width = SLICES,
                           .height = n * height,
                           .x = {RP_SCALE_LINEAR, RP_UNIT_NS, 0, (double)view->span_ns, NULL},
                           .y = {.scale = RP_SCALE_NONE}};
    struct rp_svg svg;

    rp_svg_begin(&svg, to, WIDTH, plot.top + plot.height + 30,
                 root->run_text ? root->run_text : "timeline", root->lost_text);
    draw_legend(&svg, view);
    rp_plot_begin(&plot, &svg);
    draw_lanes(&plot, root, height, share);
    rp_plot_end(&plot);
    rp_svg_end(&svg);
}

enum rp_code rp_report_write_picture(const struct rp_result *result, const char *path,
                                     struct rp_err *err)
{
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;
    float *share = RP_ARENA_NEW(&scratch, float, (size_t)SLICES *SHOWN);
    struct rp_out *to;

    RP_TRY(rp_err_need(share, err, "drawing a timeline"));
    RP_TRY(rp_out_open(path, &to, err));
    draw_picture(to, result->root, share);
    return rp_out_close(to, err);
}
