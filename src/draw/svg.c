/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Colours are classes (f0 fills, s0 strokes) of one style sheet, so that the dark scheme is a
 * second set of values and shapes stay short. Numbers are written from integers, because printf
 * would use the decimal mark of the locale.
 */
#include "draw/svg.h"

#include "io/escaped.h"
#include "result/print_text.h"

#include <math.h>
#include <stdbool.h>

#define FAR 1e6 /* larger coordinates are cut, because viewers compute with floats */

/* The colours of Okabe and Ito; in the dark scheme they are lighter if they would be hard to
   see. */
static const char sheet[] =
    "<style>\n"
    "svg{--bg:#fff;--fg:#1b1f24;--soft:#5b6470;--grid:#e3e6ea;--c0:#0072b2;--c1:#e69f00;--c2:#009e73;"
    "--c3:#cc79a7;--c4:#56b4e9;--c5:#d55e00;--c6:#c9b800;--c7:#b4bac2;--c8:#f6dcae}\n"
    "@media(prefers-color-scheme:dark){svg{--bg:#15181c;--fg:#e6e8ea;--soft:#9aa4af;--grid:#2c323a;"
    "--c0:#4aa3df;--c1:#f0b429;--c2:#2fc39a;--c3:#dd94bd;--c4:#8fd0f5;--c5:#f07f3c;--c6:#e8dc4a;"
    "--c7:#59616b;--c8:#6a5426}}\n"
    "text{font:12px system-ui,sans-serif;fill:var(--fg)}\n"
    ".small{font-size:11px;fill:var(--soft)}.title{font-size:15px;font-weight:600}\n"
    ".bg{fill:var(--bg)}.grid{stroke:var(--grid);stroke-width:1}.axis{stroke:var(--soft);"
    "stroke-width:1}\n"
    ".line{fill:none;stroke-width:1.5;stroke-linejoin:round}.dashed{stroke-dasharray:5 4}\n"
    ".f0{fill:var(--c0)}.f1{fill:var(--c1)}.f2{fill:var(--c2)}.f3{fill:var(--c3)}"
    ".f4{fill:var(--c4)}.f5{fill:var(--c5)}.f6{fill:var(--c6)}.f7{fill:var(--c7)}.f8{fill:var(--c8)}\n"
    ".s0{stroke:var(--c0)}.s1{stroke:var(--c1)}.s2{stroke:var(--c2)}.s3{stroke:var(--c3)}"
    ".s4{stroke:var(--c4)}.s5{stroke:var(--c5)}.s6{stroke:var(--c6)}.s7{stroke:var(--c7)}.s8{stroke:var(--c8)}\n"
    "</style>\n";

void rp_svg_number(struct rp_out *to, double value)
{
    value = isnan(value) ? 0 : value > FAR ? FAR : value < -FAR ? -FAR : value;
    long hundredths = lround(value * 100);
    long size = hundredths < 0 ? -hundredths : hundredths;
    rp_out_printf(to, "%s%ld", hundredths < 0 ? "-" : "", size / 100);
    if (size % 100)
        rp_out_printf(to, size % 10 ? ".%02ld" : ".%ld", size % 10 ? size % 100 : size % 100 / 10);
}

static void put_attribute(struct rp_svg *svg, const char *name, double value)
{
    rp_out_printf(svg->to, " %s=\"", name);
    rp_svg_number(svg->to, value);
    rp_out_char(svg->to, '"');
}

static void put_opacity(struct rp_svg *svg, double opacity)
{
    if (opacity < 1)
        put_attribute(svg, "opacity", opacity > 0 ? opacity : 0);
}

void rp_svg_begin(struct rp_svg *svg, struct rp_out *to, double width, double height,
                  const char *title, const char *summary)
{
    *svg = (struct rp_svg){to, width, height};
    rp_out_text(to, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"");
    put_attribute(svg, "width", width);
    put_attribute(svg, "height", height);
    rp_out_text(to, " viewBox=\"0 0 ");
    rp_svg_number(to, width);
    rp_out_char(to, ' ');
    rp_svg_number(to, height);
    rp_out_text(to, "\">\n<title>");
    rp_out_escaped(to, RP_IN_MARKUP, title);
    rp_out_text(to, "</title>\n");
    if (summary) {
        rp_out_text(to, "<desc>");
        rp_out_escaped(to, RP_IN_MARKUP, summary);
        rp_out_text(to, "</desc>\n");
    }
    rp_out_text(to, sheet);
    rp_out_text(to, "<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n");
    rp_svg_text_in(svg, 12, 21, width - 24, RP_ANCHOR_START, RP_TEXT_TITLE, title);
}

void rp_svg_end(struct rp_svg *svg)
{
    rp_out_text(svg->to, "</svg>\n");
}

void rp_svg_group_begin(struct rp_svg *svg, const char *hint)
{
    rp_out_text(svg->to, "<g>");
    if (hint) {
        rp_out_text(svg->to, "<title>");
        rp_out_escaped(svg->to, RP_IN_MARKUP, hint);
        rp_out_text(svg->to, "</title>");
    }
    rp_out_char(svg->to, '\n');
}

void rp_svg_group_end(struct rp_svg *svg)
{
    rp_out_text(svg->to, "</g>\n");
}

/* Draws a filled rectangle; opacity 1 covers everything below. Nothing is drawn if a side is not
   positive. */
static void svg_rect(struct rp_svg *svg, double x, double y, double w, double h, unsigned colour,
                     double opacity)
{
    if (!(w > 0) || !(h > 0))
        return;
    rp_out_printf(svg->to, "<rect class=\"f%u\"", colour % RP_COLOURS);
    put_attribute(svg, "x", x);
    put_attribute(svg, "y", y);
    put_attribute(svg, "width", w);
    put_attribute(svg, "height", h);
    put_opacity(svg, opacity);
    rp_out_text(svg->to, "/>\n");
}

void rp_svg_rects_begin(struct rp_svg *svg, unsigned colour)
{
    rp_out_printf(svg->to, "<path class=\"f%u\" d=\"", colour % RP_COLOURS);
}

void rp_svg_rects_add(struct rp_svg *svg, double x, double y, double w, double h)
{
    if (!(w > 0) || !(h > 0))
        return;
    rp_out_char(svg->to, 'M');
    rp_svg_number(svg->to, x);
    rp_out_char(svg->to, ' ');
    rp_svg_number(svg->to, y);
    rp_out_char(svg->to, 'h');
    rp_svg_number(svg->to, w);
    rp_out_char(svg->to, 'v');
    rp_svg_number(svg->to, h);
    rp_out_char(svg->to, 'h');
    rp_svg_number(svg->to, -w);
    rp_out_char(svg->to, 'z');
}

void rp_svg_rects_end(struct rp_svg *svg)
{
    rp_out_text(svg->to, "\"/>\n");
}

static void put_stroke(struct rp_svg *svg, unsigned colour, enum rp_line_style style)
{
    if (style == RP_LINE_GRID || style == RP_LINE_AXIS)
        rp_out_text(svg->to,
                    style == RP_LINE_GRID ? " class=\"line grid\"" : " class=\"line axis\"");
    else
        rp_out_printf(svg->to, " class=\"line s%u%s\"", colour % RP_COLOURS,
                      style == RP_LINE_DASHED ? " dashed" : "");
}

void rp_svg_line(struct rp_svg *svg, struct rp_point a, struct rp_point b, unsigned colour,
                 enum rp_line_style style)
{
    rp_out_text(svg->to, "<line");
    put_stroke(svg, colour, style);
    put_attribute(svg, "x1", a.x);
    put_attribute(svg, "y1", a.y);
    put_attribute(svg, "x2", b.x);
    put_attribute(svg, "y2", b.y);
    rp_out_text(svg->to, "/>\n");
}

void rp_svg_circle(struct rp_svg *svg, struct rp_point at, double radius, unsigned colour,
                   double opacity)
{
    rp_out_printf(svg->to, "<circle class=\"f%u\"", colour % RP_COLOURS);
    put_attribute(svg, "cx", at.x);
    put_attribute(svg, "cy", at.y);
    put_attribute(svg, "r", radius);
    put_opacity(svg, opacity);
    rp_out_text(svg->to, "/>\n");
}

static void put_points(struct rp_svg *svg, const struct rp_point *points, size_t n)
{
    rp_out_text(svg->to, " d=\"");
    for (size_t i = 0; i < n; i++) {
        rp_out_text(svg->to, i ? "L" : "M");
        rp_svg_number(svg->to, points[i].x);
        rp_out_char(svg->to, ' ');
        rp_svg_number(svg->to, points[i].y);
    }
}

void rp_svg_path(struct rp_svg *svg, const struct rp_point *points, size_t n, unsigned colour,
                 enum rp_line_style style)
{
    if (n < 2)
        return;
    rp_out_text(svg->to, "<path");
    put_stroke(svg, colour, style);
    put_points(svg, points, n);
    rp_out_text(svg->to, "\"/>\n");
}

void rp_svg_area(struct rp_svg *svg, const struct rp_point *points, size_t n, unsigned colour,
                 double opacity)
{
    if (n < 3)
        return;
    rp_out_printf(svg->to, "<path class=\"f%u\"", colour % RP_COLOURS);
    put_opacity(svg, opacity);
    put_points(svg, points, n);
    rp_out_text(svg->to, "Z\"/>\n");
}

/* ------------------------------------------------------------------ texts */

static void put_text(struct rp_svg *svg, double x, double y, enum rp_anchor anchor,
                     enum rp_text_style style, bool up)
{
    static const char *const anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    static const char *const styles[] = {"", " class=\"small\"", " class=\"title\""};

    rp_out_printf(svg->to, "<text%s%s", styles[style], anchors[anchor]);
    if (up) {
        rp_out_text(svg->to, " transform=\"translate(");
        rp_svg_number(svg->to, x);
        rp_out_char(svg->to, ' ');
        rp_svg_number(svg->to, y);
        rp_out_text(svg->to, ") rotate(-90)\">");
        return;
    }
    put_attribute(svg, "x", x);
    put_attribute(svg, "y", y);
    rp_out_char(svg->to, '>');
}

void rp_svg_text(struct rp_svg *svg, double x, double y, enum rp_anchor anchor,
                 enum rp_text_style style, const char *text)
{
    put_text(svg, x, y, anchor, style, false);
    rp_out_escaped(svg->to, RP_IN_MARKUP, text);
    rp_out_text(svg->to, "</text>\n");
}

void rp_svg_text_up(struct rp_svg *svg, double x, double y, enum rp_anchor anchor,
                    enum rp_text_style style, const char *text)
{
    put_text(svg, x, y, anchor, style, true);
    rp_out_escaped(svg->to, RP_IN_MARKUP, text);
    rp_out_text(svg->to, "</text>\n");
}

/* Returns the width of a column of rp_screen_width in pixels: a little more than the mean of
   sans-serif fonts. */
static double column_width(enum rp_text_style style)
{
    static const double widths[] = {6.6, 6.1, 8.6};

    return widths[style];
}

double rp_svg_text_width(enum rp_text_style style, const char *text)
{
    return column_width(style) * (double)rp_screen_width(text);
}

/* Returns the number of bytes at the begin of a text that have at most this many characters. */
static size_t bytes_of(const char *text, size_t characters)
{
    size_t n = 0;
    uint32_t code;

    for (; text[n] && characters; characters--)
        n += rp_utf8_next(text + n, &code);
    return n;
}

void rp_svg_text_in(struct rp_svg *svg, double x, double y, double width, enum rp_anchor anchor,
                    enum rp_text_style style, const char *text)
{
    size_t room = width > 0 ? (size_t)(fmin(width, FAR) / column_width(style)) : 0, n = 0;
    uint32_t code;

    if (rp_screen_width(text) <= room) {
        rp_svg_text(svg, x, y, anchor, style, text);
        return;
    }
    if (room < 3)
        return;
    room = room < 400 ? room : 400;
    for (const char *at = text; *at; n++)
        at += rp_utf8_next(at, &code);
    size_t tail = (room - 1) / 3 < n ? (room - 1) / 3 : n;
    put_text(svg, x, y, anchor, style, false);
    rp_out_escaped_bytes(svg->to, RP_IN_MARKUP, text, bytes_of(text, room - 1 - tail));
    rp_out_text(svg->to, "…");
    rp_out_escaped(svg->to, RP_IN_MARKUP, text + bytes_of(text, n - tail));
    rp_out_text(svg->to, "</text>\n");
}

size_t rp_svg_legend(struct rp_svg *svg, double x, double y, double right,
                     const struct rp_svg_entry *entries, size_t n)
{
    double at = x;
    size_t rows = n > 0;

    for (size_t i = 0; i < n; i++) {
        if (!entries[i].name)
            continue;
        double width = rp_svg_text_width(RP_TEXT_SMALL, entries[i].name) + 30;
        if (at > x && at + width > right) {
            at = x;
            y += 18;
            rows++;
        }
        svg_rect(svg, at, y - 9, 11, 11, entries[i].colour, 1);
        rp_svg_text(svg, at + 16, y, RP_ANCHOR_START, RP_TEXT_SMALL, entries[i].name);
        at += width;
    }
    return rows;
}
