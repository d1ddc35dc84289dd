/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints a record as text: its scalars as lines "title value", then, in the order of the fields, a
 * section for each record, map and list. Fields without title are not shown:
 *
 *     File     resnet.json.gz          scalars of the record
 *     Events   239,093
 *
 *     Kernels                          a list of records: aligned columns, see below
 *       name         count     total
 *       gemm_128x64  1,200  628.1 ms
 *
 *     rank 0                           RP_BLOCKS: each item a record of its own, indented
 *       Busy  97.7 %
 *
 *     warning: 12 kernels without launch
 *
 * A table of more than ROWS_MOST rows that has a column to rank them by (RP_LARGEST, RP_SMALLEST)
 * shows the first ROWS_SHOWN by it, unless the caller asked for all.
 *
 * Sections without content do not appear. Nothing is allocated.
 */
#include "result/columns.h"
#include "result/print_text.h"
#include "result/print_units.h"
#include "result/result.h"
#include "result/walk.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define INDENT 2

struct screen {
    struct rp_out *to;
    size_t width; /* columns */
    bool color;
    bool wide;  /* the tables may be as wide as necessary */
    bool all;   /* ... and as long */
    int bars;   /* 0 for none, 1 for those of '#', 2 for those of blocks */
    bool ascii; /* plots too */
    bool open;  /* something was printed, so an empty line precedes the next block */
};

/* Printed before a text if color is on. */
#define STYLE_BOLD "\033[1m"
#define STYLE_DIM  "\033[2m"
#define STYLE_WARN "\033[33m"

static void show_row_warnings(struct screen *s, const struct rp_type *type, const void *item,
                              size_t indent);

/*
 * Prints a list of records as aligned columns: numbers to the right, texts to the left, two spaces
 * between. Two passes over the rows, one to measure and one to print; nothing is allocated.
 *
 * If the rows are wider than the screen:
 *   1. columns marked RP_WIDE are left out, the last first, until each text marked RP_SHORTEN can
 *      have COMFORT characters (KERNEL, if it is a label), and each marked RP_WHOLE all it needs
 *   2. these texts share the remaining width and are cut in their middle; labels, and texts that
 *      would then look like another one, where they are like the other rows of the column: the
 *      words in which they differ stay
 *   3. a sentence in the last column that would be cut to less than COMFORT, or may not be cut,
 *      continues in that column of the next line
 *   4. on a screen narrower than USUAL, where texts would be cut to less than READABLE or the
 *      numbers alone do not fit, columns continue in the next line, of the heading and of every row
 * A bar (RP_BAR) is beside a share if the line has room for it, if necessary without columns marked
 * RP_WIDE; the largest share of the column has the longest bar. A column without any known value is
 * not shown. If the caller asked for wide tables, nothing is left out or cut, and the whole name
 * replaces its label (RP_LABEL), behind the numbers if it is long.
 */
#define MAX_COLUMNS 48
#define GAP         2
#define COMFORT     28 /* a name cut to less than this is hard to recognize */
#define KERNEL      44 /* of a kernel */
#define MIN_TEXT    8
#define READABLE    12  /* the least that identifies a name */
#define USUAL       80  /* the width for which tables are made */
#define CONTINUED   4   /* the indentation of a line that continues a row */
#define MIN_WRAPPED 12  /* a column of words narrower than this is harder to read than a cut one */
#define MIN_PROSE   20  /* ... and a column of sentences, if other texts can be cut */
#define SENTENCE    3   /* a text with this many spaces is more than a name */
#define NEIGHBOURS  400 /* a text is compared with this many rows before and after it */
#define ROWS_MOST   16  /* rows of a table that may leave out rows; a longer one shows ... */
#define ROWS_SHOWN  8
#define BAR         12 /* columns of the longest bar */

struct column {
    const struct rp_field *field;
    const struct rp_field
        *value;          /* the value to show: the field, or the whole name for its label */
    const char *prefix;  /* the title of the record around the field, or "" */
    size_t base;         /* the offset of that record in the item */
    size_t natural, now; /* widths in columns of the screen */
    bool any, shown;
    bool prose; /* it has sentences, is the last column and may not be cut, so they are wrapped */
    bool continues; /* it is in a further line of the row */
    double most;    /* for a column with bars the largest value; 0 if it has none */
};

struct grid {
    struct column column[MAX_COLUMNS];
    size_t n;
    bool headings, wide;
    bool folded;       /* a row has several lines */
    const char *items; /* the rows */
    size_t nitems, item_size;
    bool brief;                /* not all rows are shown, only these */
    size_t chosen[ROWS_SHOWN]; /* these */
    size_t nshown;
};

static void screen_style(struct screen *screen, const char *style)
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

/* Returns the field that replaces a label in a wide table: the field "name" of its record, or
   itself. */
static const struct rp_field *whole_field(const struct rp_type *type, const struct rp_field *f)
{
    if (f->flags & RP_LABEL)
        for (const struct rp_field *g = type->fields; rp_field_here(g); g++)
            if (g->key && !strcmp(g->key, "name") && g->type == RP_T_STR)
                return g;
    return f;
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
                (struct column){.field = f,
                                .value = grid->wide ? whole_field(type, f) : f,
                                .prefix = prefix,
                                .base = base,
                                .shown = true};
    }
}

static const char *column_cell(const struct column *c, const void *item, char buf[RP_CELL_BYTES])
{
    return rp_units_cell(c->value, (const char *)item + c->base, buf);
}

static const void *grid_item(const struct grid *grid, size_t row)
{
    return grid->items + row * grid->item_size;
}

/* Returns the item that is shown in a row. */
static size_t grid_shown(const struct grid *grid, size_t row)
{
    return grid->brief ? grid->chosen[row] : row;
}

static bool column_ranks(const struct column *c)
{
    return (c->field->flags & (RP_LARGEST | RP_SMALLEST)) && rp_field_number(c->field);
}

/* Returns a value by which rows are ranked; unknown ones come last. */
static double column_rank(const struct column *c, const void *item)
{
    const void *record = (const char *)item + c->base;
    char buf[RP_CELL_BYTES];

    if (!rp_units_cell(c->field, record, buf))
        return -INFINITY;
    double x = c->field->type == RP_T_F64 ? rp_field_f64(c->field, record)
                                          : (double)rp_field_i64(c->field, record);
    return c->field->flags & RP_SMALLEST ? -x : x;
}

static bool grid_precedes(const struct grid *grid, size_t a, size_t b)
{
    for (size_t i = grid->n; i-- > 0;) {
        const struct column *c = &grid->column[i];

        if (!column_ranks(c))
            continue;
        double x = column_rank(c, grid_item(grid, a));
        double y = column_rank(c, grid_item(grid, b));
        if (x > y || x < y)
            return x > y;
    }
    return a < b;
}

/* Chooses the first rows by the columns that rank them; of equal ones the earlier. */
static void grid_choose(struct grid *grid)
{
    bool ranked = false;

    for (size_t i = 0; i < grid->n; i++)
        ranked |= column_ranks(&grid->column[i]);
    grid->brief = ranked && grid->nitems > ROWS_MOST;
    grid->nshown = grid->brief ? 0 : grid->nitems;
    for (size_t row = 0; grid->brief && row < grid->nitems; row++) {
        size_t at = grid->nshown;

        for (; at > 0 && grid_precedes(grid, row, grid->chosen[at - 1]); at--)
            if (at < ROWS_SHOWN)
                grid->chosen[at] = grid->chosen[at - 1];
        if (at < ROWS_SHOWN)
            grid->chosen[at] = row;
        grid->nshown += grid->nshown < ROWS_SHOWN;
    }
}

static void grid_measure(struct grid *grid)
{
    char buf[RP_CELL_BYTES];

    for (size_t i = 0; i < grid->n; i++) {
        struct column *c = &grid->column[i];

        c->natural = grid->headings ? column_heading_width(c) : 0;
        for (size_t row = 0; row < grid->nshown; row++) {
            const char *text = column_cell(c, grid_item(grid, grid_shown(grid, row)), buf);
            size_t width = text ? rp_screen_width(text) : 1;

            c->any |= text != NULL;
            c->natural = width > c->natural ? width : c->natural;
        }
        c->shown = c->any;
    }
}

/* Returns the width of a column whose texts are cut to at most `most` characters; its heading never
   is. */
static size_t column_cut_width(const struct grid *grid, const struct column *c, size_t most)
{
    size_t heading = grid->headings ? column_heading_width(c) : 0;

    if (!(may_shorten(c) || c->prose) || c->natural <= most)
        return c->natural;
    most = c->prose && most < MIN_PROSE ? MIN_PROSE : most;
    return most > heading ? most : heading;
}

/* Returns the width of a line whose texts are cut to at most `most` characters. */
static size_t grid_line_width(const struct grid *grid, size_t most)
{
    size_t total = 0;

    for (size_t i = 0; i < grid->n; i++) {
        const struct column *c = &grid->column[i];

        if (c->shown)
            total += GAP + column_cut_width(grid, c, most);
    }
    return total ? total - GAP : 0;
}

/* Returns the width of a line in which each text has the room that it should have. */
static size_t grid_good_width(const struct grid *grid)
{
    size_t total = 0;

    for (size_t i = 0; i < grid->n; i++) {
        const struct column *c = &grid->column[i];
        unsigned flags = c->field->flags;
        size_t room = flags & RP_WHOLE ? SIZE_MAX : flags & RP_LABEL ? KERNEL : COMFORT;

        if (c->shown)
            total += GAP + column_cut_width(grid, c, room);
    }
    return total ? total - GAP : 0;
}

static bool is_sentence(const char *text)
{
    size_t spaces = 0;

    for (; *text && spaces < SENTENCE; text++)
        spaces += *text == ' ';
    return spaces == SENTENCE;
}

/* Whether a text may take several lines: in the last column, if it is a sentence. */
static bool is_prose(const struct grid *grid, size_t i)
{
    const struct column *c = &grid->column[i];
    char buf[RP_CELL_BYTES];

    for (size_t k = i + 1; k < grid->n; k++)
        if (grid->column[k].shown)
            return false;
    for (size_t row = 0; !is_right_aligned(c) && row < grid->nshown; row++) {
        const char *text = column_cell(c, grid_item(grid, grid_shown(grid, row)), buf);

        if (text && is_sentence(text))
            return true;
    }
    return false;
}

/* Breaks rows into lines if they do not fit otherwise. */
static void grid_fold(struct grid *grid, size_t width)
{
    size_t at = 0;

    grid->folded = grid_line_width(grid, READABLE) > width && width > 2 * (size_t)READABLE;
    for (size_t i = 0; grid->folded && i < grid->n; i++) {
        struct column *c = &grid->column[i];
        size_t most = width - CONTINUED, room = width > at ? width - at : 0;

        if (!c->shown)
            continue;
        c->now = !is_right_aligned(c) && c->natural > most ? most : c->natural;
        if (c->now > room && room >= COMFORT && is_prose(grid, i))
            c->now = room;
        c->continues = at > 0 && c->now > room;
        at = (c->continues ? CONTINUED : at) + c->now + GAP;
    }
}

static size_t grid_now_width(const struct grid *grid)
{
    size_t used = 0;

    for (size_t i = 0; i < grid->n; i++)
        used += grid->column[i].shown ? GAP + grid->column[i].now : 0;
    return used;
}

/* Leaves out the last columns marked RP_WIDE if that makes room for a bar. */
static void grid_clear_bar(struct grid *grid, size_t width)
{
    size_t used = grid_now_width(grid), room = width + GAP, i = grid->n;

    while (i > 0 && used + 1 + BAR > room) {
        const struct column *c = &grid->column[--i];

        used -= c->shown && c->field->flags & RP_WIDE ? GAP + c->now : 0;
    }
    for (size_t k = i; used + 1 + BAR <= room && k < grid->n; k++)
        if (grid->column[k].field->flags & RP_WIDE)
            grid->column[k].shown = false;
}

/* Adds bars beside shares in the room that is left. */
static void grid_add_bars(struct grid *grid, size_t width)
{
    for (size_t i = 0; !grid->wide && i < grid->n; i++)
        if (grid->column[i].shown && grid->column[i].field->flags & RP_BAR)
            grid_clear_bar(grid, width);
    size_t used = grid_now_width(grid);
    for (size_t i = 0; i < grid->n; i++) {
        struct column *c = &grid->column[i];
        char buf[RP_CELL_BYTES];

        if (!(c->field->flags & RP_BAR) || c->field->type != RP_T_F64 || !c->shown ||
            used + 1 + BAR > width + GAP)
            continue;
        for (size_t row = 0; row < grid->nshown; row++) {
            const char *item = grid_item(grid, grid_shown(grid, row));

            if (column_cell(c, item, buf))
                c->most = fmax(c->most, rp_field_f64(c->field, item + c->base));
        }
        used += 1 + BAR;
    }
}

/* Draws a bar in eighths of a column, or in '#'; a value other than 0 is always visible. */
static void put_bar(struct screen *screen, const struct column *c, const void *item, bool last)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    double value = rp_field_f64(c->field, (const char *)item + c->base);
    size_t unit = screen->bars > 1 ? 8 : 1, n = 0;

    if (value > 0)
        n = (size_t)lround(fmin(value / c->most, 1) * BAR * (double)unit);
    n = value > 0 && !n ? 1 : n;
    rp_out_char(screen->to, ' ');
    for (size_t i = 0; i < n / unit; i++)
        rp_out_text(screen->to, unit > 1 ? "█" : "#");
    rp_out_text(screen->to, eighths[n % unit]);
    if (!last)
        rp_screen_pad(screen->to, BAR - n / unit - (n % unit > 0));
}

/* Whether two different texts look the same if both are cut in their middle. */
static bool look_alike(const char *a, const char *b, size_t width)
{
    size_t tail = width - width / 2 - 1, na, nb;

    if (strncmp(a, b, width / 2) != 0)
        return false;
    na = strlen(a);
    nb = strlen(b);
    return na > tail && nb > tail && !strcmp(a + na - tail, b + nb - tail) && strcmp(a, b) != 0;
}

/* Cuts a text that does not fit. If it is a name, or would look like that of another row, the words
   in which it differs from the other rows stay. */
static size_t grid_put_cut(struct screen *screen, const struct grid *grid, const struct column *c,
                           size_t row, const char *text)
{
    struct rp_kept_words kept = {0};
    size_t first = row > NEIGHBOURS ? row - NEIGHBOURS : 0;
    bool apart = (c->field->flags & RP_LABEL) != 0;
    char buf[RP_CELL_BYTES];

    for (size_t i = first; i < grid->nitems && i <= row + NEIGHBOURS; i++) {
        const char *other = i == row ? NULL : column_cell(c, grid_item(grid, i), buf);

        if (!other || strnlen(other, c->now + 1) <= c->now)
            continue;
        rp_screen_keep(&kept, text, other);
        apart = apart || look_alike(text, other, c->now);
    }
    return apart ? rp_screen_put_kept(screen->to, text, c->now, &kept)
                 : rp_screen_put(screen->to, text, c->now);
}

/* Whether a text of the last column, which begins at this column of the screen, is broken into
   lines. */
static bool is_wrapped(const struct screen *screen, const struct grid *grid, const struct column *c,
                       const char *text, size_t at)
{
    size_t room = screen->width > at ? screen->width - at : 0, width = rp_screen_width(text);

    if (screen->wide || room < MIN_WRAPPED || width <= room || is_right_aligned(c) ||
        (c->field->flags & RP_LABEL) || !(is_sentence(text) || c->prose))
        return false;
    return grid->folded || c->prose || (may_shorten(c) && room < COMFORT);
}

static void grid_put_cell(struct screen *screen, const struct grid *grid, const struct column *c,
                          size_t row, size_t at, bool last)
{
    char buf[RP_CELL_BYTES];
    const char *value = column_cell(c, grid_item(grid, row), buf), *text = value ? value : "-";
    size_t width = rp_screen_width(text), room = c->now;

    if (last && is_wrapped(screen, grid, c, text, at)) {
        rp_screen_wrap_within(screen->to, text, at, at, screen->width);
        return;
    }
    if (width > room && !may_shorten(c) && !grid->folded)
        room = width;
    if (is_right_aligned(c) && width < room)
        rp_screen_pad(screen->to, room - width);
    width = width > room ? grid_put_cut(screen, grid, c, row, text)
                         : rp_screen_put(screen->to, text, room);
    if (!is_right_aligned(c) && width < room && !last)
        rp_screen_pad(screen->to, room - width);
    if (c->most > 0)
        put_bar(screen, c, grid_item(grid, row), last);
}

#define HEADINGS SIZE_MAX

/* Whether the column after this one begins a line. */
static bool next_continues(const struct grid *grid, size_t i)
{
    for (i++; i < grid->n && !grid->column[i].shown;)
        i++;
    return i < grid->n && grid->column[i].continues;
}

/* Writes a line of headings (row == HEADINGS) or of one item's values. */
static void grid_put_line(struct screen *screen, const struct grid *grid, size_t row, size_t indent)
{
    size_t left = 0, at = indent;

    for (size_t i = 0; i < grid->n; i++)
        left += grid->column[i].shown;
    rp_screen_pad(screen->to, indent);
    for (size_t i = 0; i < grid->n; i++) {
        const struct column *c = &grid->column[i];

        if (!c->shown)
            continue;
        left--;
        if (c->continues) {
            at = indent + CONTINUED;
            rp_out_char(screen->to, '\n');
            rp_screen_pad(screen->to, at);
        }
        bool ends = !left || next_continues(grid, i);
        if (row == HEADINGS) {
            /* The heading, padded to the width of its column. */
            size_t width = column_heading_width(c);
            if (is_right_aligned(c))
                rp_screen_pad(screen->to, c->now - width);
            if (*c->prefix)
                rp_out_printf(screen->to, "%s ", c->prefix);
            rp_out_text(screen->to, c->field->title);
            if (!is_right_aligned(c) && !ends && c->now > width)
                rp_screen_pad(screen->to, c->now - width);
            if (c->most > 0 && !ends)
                rp_screen_pad(screen->to, 1 + BAR);
        } else
            grid_put_cell(screen, grid, c, row, at, ends);
        rp_screen_pad(screen->to, ends ? 0 : GAP);
        at += c->now + GAP + (c->most > 0 ? 1 + BAR : 0);
    }
}

/* Returns the first ranking column whose values are not all the same, or NULL. */
static const struct column *grid_ranked_by(const struct grid *grid)
{
    for (size_t i = grid->n; i-- > 0;) {
        const struct column *c = &grid->column[i];

        for (size_t row = 1; column_ranks(c) && row < grid->nitems; row++) {
            double x = column_rank(c, grid_item(grid, row)), y = column_rank(c, grid_item(grid, 0));

            if (x > y || x < y)
                return c;
        }
    }
    return NULL;
}

/* Writes "… and 1,016 more ranks (by idle, largest first): --all prints them". */
static void grid_put_rest(struct screen *screen, const struct grid *grid,
                          const struct rp_type *type, size_t indent)
{
    char more[32], text[256];

    if (!grid->brief)
        return;
    const struct column *by = grid_ranked_by(grid);
    rp_units_thousands((int64_t)(grid->nitems - grid->nshown), more, sizeof more);
    rp_screen_pad(screen->to, indent);
    screen_style(screen, STYLE_DIM);
    size_t n = (size_t)snprintf(text, sizeof text, "… and %s more %.80ss", more, type->name);
    if (by)
        n += (size_t)snprintf(text + n, sizeof text - n, " (by %.80s, %s first)", by->field->title,
                              by->field->flags & RP_SMALLEST ? "smallest" : "largest");
    snprintf(text + n, sizeof text - n, ": --all prints them");
    rp_screen_wrap(screen->to, text, indent, indent, screen->width);
    screen_style(screen, NULL);
    rp_out_char(screen->to, '\n');
}

#define LONG_TEXT 60

/* Moves texts longer than a screen behind the numbers, which stay in sight. */
static void grid_move_long(struct grid *grid)
{
    struct column late[MAX_COLUMNS];
    size_t n = 0, nlate = 0;

    for (size_t i = 0; i < grid->n; i++) {
        const struct column *c = &grid->column[i];

        if (may_shorten(c) && c->natural > LONG_TEXT)
            late[nlate++] = *c;
        else
            grid->column[n++] = *c;
    }
    memcpy(grid->column + n, late, nlate * sizeof *late);
}

/*
 * Prints n records of a type, one per line. With headings, the columns are the fields that have a
 * title; without headings, all fields (the keys and values of a map). Lists of warnings are not
 * shown.
 */
static void grid_print(struct screen *screen, const struct rp_type *type, const void *items,
                       size_t n, size_t indent, bool headings)
{
    struct grid grid = {.headings = headings,
                        .wide = screen->wide,
                        .items = items,
                        .nitems = n,
                        .item_size = type->size};

    grid_collect(&grid, type, 0, "");
    grid.nshown = n;
    if (!screen->all)
        grid_choose(&grid);
    grid_measure(&grid);
    if (screen->wide && headings)
        grid_move_long(&grid);
    else if (!screen->wide) {
        /* The columns that are shown must be known. */
        for (size_t i = 0; i < grid.n; i++)
            grid.column[i].prose = grid.column[i].shown && !may_shorten(&grid.column[i]) &&
                                   !(grid.column[i].field->flags & RP_WIDE) && is_prose(&grid, i);
    }

    /* Finds by trying the largest limit for texts that makes a line fit, because screens are
     * narrow. */
    size_t width = screen->wide             ? SIZE_MAX / 2
                   : screen->width > indent ? screen->width - indent
                                            : 0;
    size_t most = width;
    for (size_t i = grid.n; i-- > 0 && grid_good_width(&grid) > width;)
        if (grid.column[i].field->flags & RP_WIDE)
            grid.column[i].shown = false;
    while (most > MIN_TEXT && grid_line_width(&grid, most) > width)
        most--;
    for (size_t i = 0; i < grid.n; i++) {
        struct column *c = &grid.column[i];
        c->now = column_cut_width(&grid, c, most);
    }
    if (!screen->wide && screen->width > indent && screen->width < USUAL)
        grid_fold(&grid, screen->width - indent);
    if (screen->bars && !grid.folded && screen->width > indent)
        grid_add_bars(&grid, screen->width - indent);
    if (headings) {
        screen_style(screen, STYLE_DIM);
        grid_put_line(screen, &grid, HEADINGS, indent);
        screen_style(screen, NULL);
        rp_out_char(screen->to, '\n');
    }
    for (size_t row = 0; row < grid.nshown; row++) {
        grid_put_line(screen, &grid, grid_shown(&grid, row), indent);
        rp_out_char(screen->to, '\n');
    }
    grid_put_rest(screen, &grid, type, indent);
    for (size_t row = 0; row < grid.nshown; row++)
        show_row_warnings(screen, type, grid_item(&grid, grid_shown(&grid, row)), indent);
}

static void show_record(struct screen *s, const struct rp_type *type, const void *record,
                        const struct rp_field *skip, size_t indent);

static bool on_screen(const struct rp_field *field)
{
    return field->title != NULL;
}

static bool is_warning(const struct rp_field *field)
{
    return (field->flags & RP_WARN) != 0;
}

/* Whether it is shown as one line: a scalar, or a list of plain numbers. */
static bool is_pair(const struct rp_field *field)
{
    const struct rp_field *plain = field->type == RP_T_LIST ? rp_type_plain(field->item) : NULL;

    return rp_field_scalar(field) || (plain && rp_field_number(plain));
}

static bool has_content(const struct rp_type *type, const void *record)
{
    char buf[RP_CELL_BYTES];

    for (const struct rp_field *f = type->fields; rp_field_here(f); f++) {
        if (!on_screen(f))
            continue;
        if (is_pair(f)               ? rp_units_cell(f, record, buf) != NULL
            : f->type == RP_T_RECORD ? has_content(f->item, rp_field_at(f, record))
                                     : rp_field_count(f, record) > 0)
            return true;
    }
    return false;
}

static void begin_block(struct screen *s)
{
    if (s->open)
        rp_out_char(s->to, '\n');
    s->open = true;
}

static void put_heading(struct screen *s, const char *before, const char *text, size_t indent)
{
    begin_block(s);
    s->open = false; /* there is no empty line after the heading */
    rp_screen_pad(s->to, indent);
    screen_style(s, STYLE_BOLD);
    if (*before) {
        rp_out_text(s->to, before);
        rp_out_char(s->to, ' ');
    }
    rp_screen_put(s->to, text, rp_screen_width(text));
    screen_style(s, NULL);
    rp_out_char(s->to, '\n');
}

static bool is_alarming(const struct rp_field *f, const void *record)
{
    if (!is_warning(f))
        return false;
    return f->type == RP_T_I64 || f->type == RP_T_U64 ? rp_field_i64(f, record) != 0 : true;
}

static bool shows_pair(const struct rp_field *f, const void *record, const struct rp_field *skip)
{
    char buf[RP_CELL_BYTES];

    return f != skip && on_screen(f) && is_pair(f) && rp_units_cell(f, record, buf);
}

static void show_pairs(struct screen *s, const struct rp_type *type, const void *record,
                       const struct rp_field *skip, size_t indent)
{
    size_t widest = 0, n = 0;

    for (const struct rp_field *f = type->fields; rp_field_here(f); f++) {
        if (!shows_pair(f, record, skip))
            continue;
        widest = rp_screen_width(f->title) > widest ? rp_screen_width(f->title) : widest;
        n++;
    }
    if (n)
        begin_block(s);
    for (const struct rp_field *f = type->fields; n && rp_field_here(f); f++)
        if (shows_pair(f, record, skip)) {
            /* A name and its value. */
            size_t column = indent + widest + 2;
            char buf[RP_CELL_BYTES];
            const char *text = rp_units_cell(f, record, buf);
            rp_screen_pad(s->to, indent);
            rp_out_text(s->to, f->title);
            rp_screen_pad(s->to, widest - rp_screen_width(f->title) + 2);
            if (is_alarming(f, record))
                screen_style(s, STYLE_WARN);
            if (f->flags & RP_SHORTEN)
                rp_screen_put(s->to, text, s->width > column + 16 ? s->width - column : 16);
            else
                rp_screen_wrap(s->to, text, column, column, s->width);
            if (is_alarming(f, record))
                screen_style(s, NULL);
            rp_out_char(s->to, '\n');
        }
}

/* The heading of a block is the first text of the item, or otherwise its first value, as in "rank
   3". */
static const struct rp_field *naming_field(const struct rp_type *type, const void *item)
{
    const struct rp_field *first = NULL;
    char buf[RP_CELL_BYTES];

    for (const struct rp_field *f = type->fields; rp_field_here(f); f++) {
        if (!rp_field_scalar(f) || !on_screen(f) || !rp_units_cell(f, item, buf))
            continue;
        if (f->type == RP_T_STR)
            return f;
        first = first ? first : f;
    }
    return first;
}

static void put_warning(struct screen *s, const char *where, const char *text, size_t indent)
{
    static const char word[] = "warning: ";
    size_t column = indent + sizeof word - 1;

    rp_screen_pad(s->to, indent);
    screen_style(s, STYLE_WARN);
    rp_out_text(s->to, word);
    screen_style(s, NULL);
    if (*where) {
        column += rp_screen_put(s->to, where, s->width / 2) + 2;
        rp_out_text(s->to, ": ");
    }
    rp_screen_wrap(s->to, text, column, indent + sizeof word - 1, s->width);
    rp_out_char(s->to, '\n');
}

static const char *string_item(const struct rp_field *field, const void *record, size_t i)
{
    const char *text = rp_field_str(field->item->fields, rp_field_item(field, record, i));

    return text ? text : "-";
}

static bool is_warning_list(const struct rp_field *f)
{
    return on_screen(f) && is_warning(f) && f->type == RP_T_LIST && rp_type_plain(f->item) &&
           !is_pair(f);
}

/* Writes a line of a plot in ASCII: the blocks of an eighth to eight, and the lines of its axes. */
static void put_ascii(struct rp_out *to, const char *line)
{
    static const struct {
        const char *from;
        char to;
    } letters[] = {{"▁", '.'}, {"▂", '.'}, {"▃", ':'}, {"▄", ':'}, {"▅", ':'}, {"▆", '#'},
                   {"▇", '#'}, {"█", '#'}, {"│", '|'}, {"┤", '+'}, {"└", '+'}, {"µ", 'u'}};
    const size_t n = sizeof letters / sizeof *letters;

    while (*line) {
        size_t i = 0;

        while (i < n && strncmp(line, letters[i].from, strlen(letters[i].from)) != 0)
            i++;
        rp_out_char(to, i < n ? letters[i].to : *line);
        line += i < n ? strlen(letters[i].from) : 1;
    }
}

static void show_lines(struct screen *s, const struct rp_field *field, const void *record,
                       size_t indent)
{
    size_t n = rp_field_count(field, record);

    if (is_warning(field)) {
        begin_block(s);
        for (size_t i = 0; i < n; i++)
            put_warning(s, "", string_item(field, record, i), indent);
        return;
    }
    if (field->flags & RP_VERBATIM) {
        begin_block(s);
        for (size_t i = 0; i < n; i++) {
            if (s->ascii)
                put_ascii(s->to, string_item(field, record, i));
            else
                rp_out_text(s->to, string_item(field, record, i));
            rp_out_char(s->to, '\n');
        }
        return;
    }
    put_heading(s, "", field->title, indent);
    for (size_t i = 0; i < n; i++) {
        rp_screen_pad(s->to, indent + INDENT);
        rp_screen_wrap(s->to, string_item(field, record, i), indent + INDENT, indent + INDENT,
                       s->width);
        rp_out_char(s->to, '\n');
    }
    s->open = true;
}

/* Warnings of a row are printed below the table, with the name of the row. */
static void show_row_warnings(struct screen *s, const struct rp_type *type, const void *item,
                              size_t indent)
{
    const struct rp_field *name = naming_field(type, item);
    char buf[RP_CELL_BYTES], where[2 * RP_CELL_BYTES] = "";

    if (name && name->type == RP_T_STR)
        snprintf(where, sizeof where, "%s", rp_field_str(name, item));
    else if (name)
        snprintf(where, sizeof where, "%s %s", name->title, rp_units_cell(name, item, buf));
    for (const struct rp_field *f = type->fields; rp_field_here(f); f++)
        for (size_t i = 0; is_warning_list(f) && i < rp_field_count(f, item); i++)
            put_warning(s, where, string_item(f, item, i), indent);
}

static void show_items(struct screen *s, const struct rp_field *field, const void *record,
                       size_t indent)
{
    size_t n = rp_field_count(field, record);
    bool pairs = field->type == RP_T_MAP && rp_type_nfields(field->item) == 2;
    const struct rp_type *type = field->item;
    struct rp_columns chosen;

    if (n == 0)
        return;
    if (field->columns && !rp_columns_choose(field, &chosen))
        type = &chosen.type;
    if (field->type == RP_T_LIST && rp_type_plain(field->item)) {
        show_lines(s, field, record, indent);
    } else if (field->flags & RP_BLOCKS) {
        /* Each item is a block of its own. */
        char buf[RP_CELL_BYTES];
        for (size_t i = 0; i < rp_field_count(field, record); i++) {
            const void *item = rp_field_item(field, record, i);
            const struct rp_field *name = naming_field(type, item);
            if (name)
                put_heading(s, name->type == RP_T_STR ? "" : name->title,
                            rp_units_cell(name, item, buf), indent);
            show_record(s, type, item, name, indent + (name ? INDENT : 0));
            s->open = true;
        }
    } else {
        put_heading(s, "", field->title, indent);
        grid_print(s, type, rp_field_item(field, record, 0), n, indent + INDENT, !pairs);
        s->open = true;
    }
}

static void show_record(struct screen *s, const struct rp_type *type, const void *record,
                        const struct rp_field *skip, size_t indent)
{
    show_pairs(s, type, record, skip, indent);
    for (const struct rp_field *f = type->fields; rp_field_here(f); f++) {
        if (!on_screen(f) || is_pair(f))
            continue;
        if (f->type != RP_T_RECORD) {
            show_items(s, f, record, indent);
        } else if (has_content(f->item, rp_field_at(f, record))) {
            put_heading(s, "", f->title, indent);
            show_record(s, f->item, rp_field_at(f, record), NULL, indent + INDENT);
        }
    }
}

void rp_print_table(const struct rp_type *type, const void *root,
                    const struct rp_print_options *options, struct rp_out *to)
{
    struct screen screen = {.to = to,
                            .width = options->width > 0 ? (size_t)options->width : 80,
                            .color = options->color != 0,
                            .wide = options->wide != 0,
                            .all = options->all != 0,
                            .bars = options->bars,
                            .ascii = options->ascii != 0};

    show_record(&screen, type, root, NULL, 0);
}
