/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of records as aligned columns: numbers to the right, texts to the left, two spaces
 * between. Two passes over the rows, one to measure and one to print; nothing is allocated.
 *
 * Where the rows are wider than the screen:
 *   1. columns marked RP_WIDE are left out, the last first, until each text marked RP_SHORTEN can
 *      have COMFORT characters
 *   2. these texts share the remaining width and are cut in their middle
 * A column without any known value is not shown.
 */
#include "result/print_grid.h"

#include "result/print_text.h"
#include "result/print_units.h"
#include "result/walk.h"

#define MAX_COLUMNS 48
#define GAP         2
#define COMFORT     28 /* a shorter name is hard to recognize */
#define MIN_TEXT    8

struct column {
    const struct rp_field *field;
    const char *prefix;  /* title of the record around the field, or "" */
    size_t base;         /* offset of that record in the item */
    size_t natural, now; /* width in columns of the screen */
    bool any, shown;
};

struct grid {
    struct column column[MAX_COLUMNS];
    size_t n;
    bool headings;
};

void rp_screen_style(struct rp_screen *screen, const char *style)
{
    if (screen->color)
        rp_out_text(screen->to, style ? style : "\033[0m");
}

static bool is_right_aligned(const struct column *c)
{
    return rp_field_number(c->field);
}

/* A list joined by commas may always be cut. */
static bool may_shorten(const struct column *c)
{
    return !is_right_aligned(c) && ((c->field->flags & RP_SHORTEN) || !rp_field_scalar(c->field));
}

static size_t column_heading_width(const struct column *c)
{
    size_t prefix = rp_screen_width(c->prefix);

    return prefix + (prefix > 0) + rp_screen_width(c->field->title ? c->field->title : "");
}

static void grid_collect(struct grid *grid, const struct rp_type *type, size_t base,
                         const char *prefix)
{
    for (const struct rp_field *f = type->fields; rp_field_here(f); f++) {
        bool list = f->type == RP_T_LIST && rp_type_plain(f->item) && !(f->flags & RP_WARN);

        if (grid->headings && !f->title)
            continue;
        if (f->type == RP_T_RECORD)
            grid_collect(grid, f->item, base + f->offset, f->title ? f->title : "");
        else if ((list || rp_field_scalar(f)) && grid->n < MAX_COLUMNS)
            grid->column[grid->n++] =
                (struct column){.field = f, .prefix = prefix, .base = base, .shown = true};
    }
}

static const char *column_cell(const struct column *c, const void *item, char buf[RP_CELL_BYTES])
{
    return rp_units_cell(c->field, (const char *)item + c->base, buf);
}

static void grid_measure(struct grid *grid, const struct rp_type *type, const char *items, size_t n)
{
    char buf[RP_CELL_BYTES];

    for (size_t i = 0; i < grid->n; i++) {
        struct column *c = &grid->column[i];

        c->natural = grid->headings ? column_heading_width(c) : 0;
        for (size_t row = 0; row < n; row++) {
            const char *text = column_cell(c, items + row * type->size, buf);
            size_t width = text ? rp_screen_width(text) : 1;

            c->any |= text != NULL;
            c->natural = width > c->natural ? width : c->natural;
        }
        c->shown = c->any;
    }
}

/* The width of a line whose texts are cut to at most `most` characters. */
static size_t grid_line_width(const struct grid *grid, size_t most)
{
    size_t total = 0;

    for (size_t i = 0; i < grid->n; i++) {
        const struct column *c = &grid->column[i];

        if (c->shown)
            total += GAP + (may_shorten(c) && c->natural > most ? most : c->natural);
    }
    return total ? total - GAP : 0;
}

/* The largest limit for texts that makes a line fit is found by trying: screens are narrow. */
static void grid_fit(struct grid *grid, size_t width)
{
    size_t most = width;

    for (size_t i = grid->n; i-- > 0 && grid_line_width(grid, COMFORT) > width;)
        if (grid->column[i].field->flags & RP_WIDE)
            grid->column[i].shown = false;
    while (most > MIN_TEXT && grid_line_width(grid, most) > width)
        most--;
    for (size_t i = 0; i < grid->n; i++) {
        struct column *c = &grid->column[i];

        c->now = may_shorten(c) && c->natural > most ? most : c->natural;
    }
}

static void grid_put_cell(struct rp_screen *screen, const struct column *c, const char *text,
                          bool last)
{
    size_t width = rp_screen_width(text), room = c->now;

    if (width > room && !may_shorten(c))
        room = width;
    if (is_right_aligned(c) && width < room)
        rp_screen_pad(screen->to, room - width);
    width = rp_screen_put(screen->to, text, room);
    if (!is_right_aligned(c) && width < room && !last)
        rp_screen_pad(screen->to, room - width);
}

static void grid_put_heading(struct rp_screen *screen, const struct column *c, bool last)
{
    size_t width = column_heading_width(c);

    if (is_right_aligned(c))
        rp_screen_pad(screen->to, c->now - width);
    if (*c->prefix)
        rp_out_printf(screen->to, "%s ", c->prefix);
    rp_out_text(screen->to, c->field->title);
    if (!is_right_aligned(c) && !last && c->now > width)
        rp_screen_pad(screen->to, c->now - width);
}

/* A line of headings (item == NULL) or of one item's values. */
static void grid_put_line(struct rp_screen *screen, const struct grid *grid, const void *item,
                          size_t indent)
{
    size_t left = 0;
    char buf[RP_CELL_BYTES];
    const char *text;

    for (size_t i = 0; i < grid->n; i++)
        left += grid->column[i].shown;
    rp_screen_pad(screen->to, indent);
    for (size_t i = 0; i < grid->n; i++) {
        const struct column *c = &grid->column[i];

        if (!c->shown)
            continue;
        left--;
        text = item ? column_cell(c, item, buf) : "";
        if (item)
            grid_put_cell(screen, c, text ? text : "-", left == 0);
        else
            grid_put_heading(screen, c, left == 0);
        rp_screen_pad(screen->to, left ? GAP : 0);
    }
}

void rp_grid_print(struct rp_screen *screen, const struct rp_type *type, const void *items,
                   size_t n, size_t indent, bool headings)
{
    struct grid grid = {.headings = headings};

    grid_collect(&grid, type, 0, "");
    grid_measure(&grid, type, items, n);
    grid_fit(&grid, screen->width > indent ? screen->width - indent : 0);
    if (headings) {
        rp_screen_style(screen, RP_STYLE_DIM);
        grid_put_line(screen, &grid, NULL, indent);
        rp_screen_style(screen, NULL);
        rp_out_char(screen->to, '\n');
    }
    for (size_t row = 0; row < n; row++) {
        grid_put_line(screen, &grid, (const char *)items + row * type->size, indent);
        rp_out_char(screen->to, '\n');
    }
}
