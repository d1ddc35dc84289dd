/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * SVG documents: shapes, texts, legends. Charts with axes are in plot.h. Coordinates are pixels
 * from the upper left corner; they are written with at most two decimals, so that equal input gives
 * equal bytes. Texts may contain anything. Write errors stick to `to`.
 *
 * A document needs nothing from outside: the fonts are the viewer's, and the colours follow its
 * light or dark scheme. The numbered colours (those of Okabe and Ito) can be distinguished with all
 * common kinds of colour blindness; if there are more things than colours, they repeat.
 */
#include "io/output.h"

#include <stddef.h>

enum rp_colour {
    RP_COLOUR_BLUE,
    RP_COLOUR_ORANGE,
    RP_COLOUR_GREEN,
    RP_COLOUR_PURPLE,
    RP_COLOUR_SKY,
    RP_COLOUR_RED,
    RP_COLOUR_YELLOW,
    RP_COLOUR_GREY,
    RP_COLOUR_PALE, /* a light orange: waiting */
    RP_COLOURS,
    /* these are always drawn in the same colour */
    RP_COLOUR_COMPUTE = RP_COLOUR_BLUE,
    RP_COLOUR_COMM = RP_COLOUR_ORANGE,
    RP_COLOUR_COPY = RP_COLOUR_GREEN,
    RP_COLOUR_IDLE = RP_COLOUR_GREY
};

enum rp_anchor { RP_ANCHOR_START, RP_ANCHOR_MIDDLE, RP_ANCHOR_END };

enum rp_text_style {
    RP_TEXT_PLAIN, /* 12 pixels */
    RP_TEXT_SMALL, /* 11 pixels, soft: ticks and remarks */
    RP_TEXT_TITLE  /* 15 pixels, bold */
};

enum rp_line_style {
    RP_LINE_PLAIN,
    RP_LINE_DASHED,
    RP_LINE_GRID, /* thin and soft, whatever the colour */
    RP_LINE_AXIS  /* thin, in the colour of text */
};

struct rp_svg {
    struct rp_out *to;
    double width, height;
};

struct rp_point {
    double x, y;
};

/* Begins a document with a title, which is drawn and also read by screen readers; `summary`
   describes the picture in a sentence (NULL for none). The title takes the first 30 pixels. */
void rp_svg_begin(struct rp_svg *svg, struct rp_out *to, double width, double height,
                  const char *title, const char *summary);
void rp_svg_end(struct rp_svg *svg);

/* Shapes drawn between these two show `hint` when the mouse is over them; hint may be NULL. */
void rp_svg_group_begin(struct rp_svg *svg, const char *hint);
void rp_svg_group_end(struct rp_svg *svg);

/* Draws many rectangles of one colour as one shape: begin, any number of rectangles, end. */
void rp_svg_rects_begin(struct rp_svg *svg, unsigned colour);
void rp_svg_rects_add(struct rp_svg *svg, double x, double y, double w, double h);
void rp_svg_rects_end(struct rp_svg *svg);
void rp_svg_line(struct rp_svg *svg, struct rp_point a, struct rp_point b, unsigned colour,
                 enum rp_line_style style);
void rp_svg_circle(struct rp_svg *svg, struct rp_point at, double radius, unsigned colour,
                   double opacity);
/* Draw a line through the points, and a closed area. */
void rp_svg_path(struct rp_svg *svg, const struct rp_point *points, size_t n, unsigned colour,
                 enum rp_line_style style);
void rp_svg_area(struct rp_svg *svg, const struct rp_point *points, size_t n, unsigned colour,
                 double opacity);

/* y is the base line. */
void rp_svg_text(struct rp_svg *svg, double x, double y, enum rp_anchor anchor,
                 enum rp_text_style style, const char *text);
/* Does the same as rp_svg_text, but turned by 90 degrees, so that the text reads upwards. */
void rp_svg_text_up(struct rp_svg *svg, double x, double y, enum rp_anchor anchor,
                    enum rp_text_style style, const char *text);
/* Does the same as rp_svg_text, but cuts the text in its middle with '…' to fit into about `width`
   pixels. */
void rp_svg_text_in(struct rp_svg *svg, double x, double y, double width, enum rp_anchor anchor,
                    enum rp_text_style style, const char *text);
/* Estimates the width of a text; viewers use different fonts. */
double rp_svg_text_width(enum rp_text_style style, const char *text);

/* Draws a row of coloured squares with their names, from x on; continues in further rows, of 18
   pixels, before `right`. Returns the number of rows. Entries whose name is NULL are left out. */
struct rp_svg_entry {
    const char *name;
    unsigned colour;
};
size_t rp_svg_legend(struct rp_svg *svg, double x, double y, double right,
                     const struct rp_svg_entry *entries, size_t n);

/* Writes a coordinate with at most two decimals and no exponent, the same in every locale. */
void rp_svg_number(struct rp_out *to, double value);
