/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record as text: its scalars as lines "title  value", then, in the order of the fields, a
 * section for each record, map and list. Fields without title are not shown:
 *
 *     File     resnet.json.gz          scalars of the record
 *     Events   239,093
 *
 *     Kernels                          a list of records: print_grid.c
 *       name         count     total
 *       gemm_128x64  1,200  628.1 ms
 *
 *     rank 0                           RP_BLOCKS: each item a record of its own, indented
 *       Busy  97.7 %
 *
 *     warning: 12 kernels without launch
 *
 * Sections without content do not appear. Nothing is allocated.
 */
#include "result/print_grid.h"
#include "result/print_text.h"
#include "result/print_units.h"
#include "result/result.h"
#include "result/walk.h"

#include <stdio.h>

#define INDENT 2

static void show_record(struct rp_screen *s, const struct rp_type *type, const void *record,
                        const struct rp_field *skip, size_t indent);

static bool on_screen(const struct rp_field *field)
{
    return field->title != NULL;
}

static bool is_warning(const struct rp_field *field)
{
    return (field->flags & RP_WARN) != 0;
}

/* Shown as one line: a scalar, or a list of plain numbers. */
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

static void begin_block(struct rp_screen *s)
{
    if (s->open)
        rp_out_char(s->to, '\n');
    s->open = true;
}

static void put_heading(struct rp_screen *s, const char *before, const char *text, size_t indent)
{
    begin_block(s);
    s->open = false; /* no empty line after the heading */
    rp_screen_pad(s->to, indent);
    rp_screen_style(s, RP_STYLE_BOLD);
    if (*before) {
        rp_out_text(s->to, before);
        rp_out_char(s->to, ' ');
    }
    rp_screen_put(s->to, text, rp_screen_width(text));
    rp_screen_style(s, NULL);
    rp_out_char(s->to, '\n');
}

static bool is_alarming(const struct rp_field *f, const void *record)
{
    if (!is_warning(f))
        return false;
    return f->type == RP_T_I64 || f->type == RP_T_U64 ? rp_field_i64(f, record) != 0 : true;
}

static void put_pair(struct rp_screen *s, const struct rp_field *f, const void *record,
                     size_t indent, size_t title_width)
{
    size_t column = indent + title_width + 2;
    char buf[RP_CELL_BYTES];
    const char *text = rp_units_cell(f, record, buf);

    rp_screen_pad(s->to, indent);
    rp_out_text(s->to, f->title);
    rp_screen_pad(s->to, title_width - rp_screen_width(f->title) + 2);
    if (is_alarming(f, record))
        rp_screen_style(s, RP_STYLE_WARN);
    if (f->flags & RP_SHORTEN)
        rp_screen_put(s->to, text, s->width > column + 16 ? s->width - column : 16);
    else
        rp_screen_wrap(s->to, text, column, column, s->width);
    if (is_alarming(f, record))
        rp_screen_style(s, NULL);
    rp_out_char(s->to, '\n');
}

static bool shows_pair(const struct rp_field *f, const void *record, const struct rp_field *skip)
{
    char buf[RP_CELL_BYTES];

    return f != skip && on_screen(f) && is_pair(f) && rp_units_cell(f, record, buf);
}

static void show_pairs(struct rp_screen *s, const struct rp_type *type, const void *record,
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
        if (shows_pair(f, record, skip))
            put_pair(s, f, record, indent, widest);
}

/* The heading of a block is the first text of the item, or else its first value, as in "rank 3". */
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

static void put_warning(struct rp_screen *s, const char *where, const char *text, size_t indent)
{
    static const char word[] = "warning: ";
    size_t column = indent + sizeof word - 1;

    rp_screen_pad(s->to, indent);
    rp_screen_style(s, RP_STYLE_WARN);
    rp_out_text(s->to, word);
    rp_screen_style(s, NULL);
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

static void show_lines(struct rp_screen *s, const struct rp_field *field, const void *record,
                       size_t indent)
{
    size_t n = rp_field_count(field, record);

    if (is_warning(field)) {
        begin_block(s);
        for (size_t i = 0; i < n; i++)
            put_warning(s, "", string_item(field, record, i), indent);
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
static void show_row_warnings(struct rp_screen *s, const struct rp_type *type, const void *item,
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

static void show_blocks(struct rp_screen *s, const struct rp_field *field, const void *record,
                        size_t indent)
{
    char buf[RP_CELL_BYTES];

    for (size_t i = 0; i < rp_field_count(field, record); i++) {
        const void *item = rp_field_item(field, record, i);
        const struct rp_field *name = naming_field(field->item, item);

        if (name)
            put_heading(s, name->type == RP_T_STR ? "" : name->title,
                        rp_units_cell(name, item, buf), indent);
        show_record(s, field->item, item, name, indent + (name ? INDENT : 0));
        s->open = true;
    }
}

static void show_items(struct rp_screen *s, const struct rp_field *field, const void *record,
                       size_t indent)
{
    size_t n = rp_field_count(field, record);
    bool pairs = field->type == RP_T_MAP && rp_type_nfields(field->item) == 2;

    if (n == 0)
        return;
    if (field->type == RP_T_LIST && rp_type_plain(field->item)) {
        show_lines(s, field, record, indent);
    } else if (field->flags & RP_BLOCKS) {
        show_blocks(s, field, record, indent);
    } else {
        put_heading(s, "", field->title, indent);
        rp_grid_print(s, field->item, rp_field_item(field, record, 0), n, indent + INDENT, !pairs);
        for (size_t i = 0; i < n; i++)
            show_row_warnings(s, field->item, rp_field_item(field, record, i), indent + INDENT);
        s->open = true;
    }
}

static void show_record(struct rp_screen *s, const struct rp_type *type, const void *record,
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
    struct rp_screen screen = {.to = to,
                               .width = options->width > 0 ? (size_t)options->width : 80,
                               .color = options->color != 0};

    show_record(&screen, type, root, NULL, 0);
}
