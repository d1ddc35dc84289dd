/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline of a device: columns of block characters for the screen, stacked areas as SVG. */
#include "explain/memory/memory.h"

#include "base/decides.h"
#include "draw/plot.h"
#include "result/print_units.h"

#include <string.h>

#define COLUMNS 46
RP_LIMIT(COLUMNS, "columns", "with its scale it fits a screen of 60");
#define ROWS 8
RP_LIMIT(ROWS, "rows", "of the picture on the screen; --svg draws a larger one");
#define EIGHTHS 8
RP_FACT(EIGHTHS, "parts of a row", "Unicode has blocks of one to eight eighths");

static const char *const blocks[EIGHTHS + 1] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

/* The largest total in a column, in eighths of a row. */
static int64_t column_height(const struct rp_memory_device *d, size_t column, int64_t top)
{
    size_t from = column * d->ntimeline / COLUMNS, to = (column + 1) * d->ntimeline / COLUMNS;
    int64_t most = 0;

    for (size_t i = from; i < to || i == from; i++)
        most = d->timeline[i].allocated_bytes > most ? d->timeline[i].allocated_bytes : most;
    return (int64_t)((double)most / (double)top * ROWS * EIGHTHS + 0.5);
}

static const char *plot_row(const struct rp_memory_device *d, int64_t row, int64_t top,
                            struct rp_arena *arena)
{
    char text[COLUMNS * 3 + 1], label[32] = "";
    size_t used = 0;

    for (size_t c = 0; c < COLUMNS; c++) {
        int64_t height = column_height(d, c, top) - row * EIGHTHS;
        const char *cell = blocks[height < 0 ? 0 : height > EIGHTHS ? EIGHTHS : height];

        memcpy(text + used, cell, strlen(cell));
        used += strlen(cell);
    }
    while (used && text[used - 1] == ' ')
        used--;
    text[used] = '\0';
    if (row == ROWS - 1 || row == ROWS / 2 - 1)
        rp_units_format((double)top * (double)(row + 1) / ROWS, RP_UNIT_BYTES, label, sizeof label);
    return rp_arena_textf(arena, "  %9s %s%s", label, *label ? "┤" : "│", text);
}

const char **rp_memory_plot(const struct rp_memory_device *d, struct rp_arena *arena,
                            size_t *nlines)
{
    const char **lines = RP_ARENA_NEW(arena, const char *, ROWS + 2);
    const struct rp_memory_point *last = d->ntimeline ? &d->timeline[d->ntimeline - 1] : NULL;
    char begin[32], end[32];

    *nlines = 0;
    if (!lines || d->ntimeline < COLUMNS || d->peak_bytes <= 0)
        return lines;
    for (int64_t row = ROWS - 1; row >= 0; row--)
        lines[(*nlines)++] = plot_row(d, row, d->peak_bytes, arena);
    rp_units_format((double)d->timeline[0].ts_ns, RP_UNIT_NS, begin, sizeof begin);
    rp_units_format((double)last->ts_ns, RP_UNIT_NS, end, sizeof end);
    lines[(*nlines)++] =
        rp_arena_textf(arena, "  %9s └%-*s%s", "0", COLUMNS - (int)strlen(end), begin, end);
    return lines;
}

/* ------------------------------------------------------------------ SVG */

/* The order is from below: what stays longest comes first. */
static const struct {
    uint8_t category;
    unsigned colour;
} layers[RP_MEMORY_CATEGORIES] = {
    {RP_MEMORY_BEFORE, RP_COLOUR_GREY},      {RP_MEMORY_PARAMETERS, RP_COLOUR_BLUE},
    {RP_MEMORY_OPTIMIZER, RP_COLOUR_PURPLE}, {RP_MEMORY_GRADIENTS, RP_COLOUR_ORANGE},
    {RP_MEMORY_INPUTS, RP_COLOUR_SKY},       {RP_MEMORY_ACTIVATIONS, RP_COLOUR_GREEN},
    {RP_MEMORY_TEMPORARY, RP_COLOUR_YELLOW}, {RP_MEMORY_UNKNOWN, RP_COLOUR_RED}};

static void draw_layers(const struct rp_memory_device *d, struct rp_plot *plot,
                        struct rp_arena *arena)
{
    size_t n = d->ntimeline, i, k;
    double *x = RP_ARENA_NEW(arena, double, n + 1);
    double *heights = RP_ARENA_NEW(arena, double, n *RP_MEMORY_CATEGORIES + 1);
    unsigned colours[RP_MEMORY_CATEGORIES];
    struct rp_stack stack = {.n = n, .layers = RP_MEMORY_CATEGORIES, .steps = true};

    if (!x || !heights)
        return;
    for (k = 0; k < RP_MEMORY_CATEGORIES; k++) {
        colours[k] = layers[k].colour;
        for (i = 0; i < n; i++) {
            int64_t bytes = d->timeline[i].category_bytes[layers[k].category];

            x[i] = (double)d->timeline[i].ts_ns;
            heights[k * n + i] = bytes > 0 ? (double)bytes : 0;
        }
    }
    stack.x = x;
    stack.heights = heights;
    stack.colours = colours;
    rp_plot_stack(plot, &stack);
}

static void draw_reserved(const struct rp_memory_device *d, struct rp_plot *plot,
                          struct rp_arena *arena)
{
    struct rp_point *points = RP_ARENA_NEW(arena, struct rp_point, d->ntimeline + 1);

    if (!points || d->peak_reserved_bytes == RP_ABSENT_I64)
        return;
    for (size_t i = 0; i < d->ntimeline; i++)
        points[i] =
            (struct rp_point){(double)d->timeline[i].ts_ns, (double)d->timeline[i].reserved_bytes};
    rp_plot_steps(plot, points, d->ntimeline, RP_COLOUR_RED, RP_LINE_DASHED);
}

/* Shows only the categories that occur. */
static void draw_legend(const struct rp_memory_device *d, struct rp_svg *svg)
{
    struct rp_svg_entry entries[RP_MEMORY_CATEGORIES + 1] = {{NULL, 0}};
    size_t k, i;

    for (k = 0; k < RP_MEMORY_CATEGORIES; k++)
        for (i = 0; d->timeline && i < d->ntimeline; i++)
            if (d->timeline[i].category_bytes[layers[k].category] > 0)
                entries[k] = (struct rp_svg_entry){rp_memory_category_names[layers[k].category],
                                                   layers[k].colour};
    if (d->peak_reserved_bytes != RP_ABSENT_I64)
        entries[k] = (struct rp_svg_entry){"reserved (dashed)", RP_COLOUR_RED};
    rp_svg_legend(svg, 90, 46, 880, entries, RP_MEMORY_CATEGORIES + 1);
}

void rp_memory_draw(const struct rp_memory_device *d, struct rp_arena *arena, struct rp_out *to)
{
    int64_t most = d->peak_reserved_bytes > d->peak_bytes ? d->peak_reserved_bytes : d->peak_bytes;
    const struct rp_memory_point *last = d->ntimeline ? &d->timeline[d->ntimeline - 1] : NULL;
    struct rp_plot plot = {.left = 90,
                           .top = 90,
                           .width = 780,
                           .height = 320,
                           .x = {RP_SCALE_LINEAR, RP_UNIT_NS,
                                 last ? (double)d->timeline[0].ts_ns : 0,
                                 last ? (double)last->ts_ns : 1, "time"},
                           .y = {RP_SCALE_LINEAR, RP_UNIT_BYTES, 0, 1.05 * (double)most, "memory"}};
    const char *title =
        rp_arena_textf(arena, "memory of %s, rank %lld", d->device, (long long)d->rank);
    struct rp_svg svg;

    rp_svg_begin(&svg, to, 900, 460, title, d->nfindings ? d->findings[0] : NULL);
    draw_legend(d, &svg);
    rp_plot_begin(&plot, &svg);
    draw_layers(d, &plot, arena);
    draw_reserved(d, &plot, arena);
    rp_plot_end(&plot);
    rp_svg_end(&svg);
}
