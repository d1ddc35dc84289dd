/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes data of pages. Texts are strings of RP_IN_SCRIPT, so that no name can end the script
 * element that contains it.
 */
#include "draw/web.h"

#include "base/decides.h"
#include "base/scope.h"
#include "io/escaped.h"
#include "result/print_units.h"
#include "result/walk.h"

#include <inttypes.h>
#include <stdio.h>
#include <zlib.h>

extern const struct rp_embedded rp_web_common_js[], rp_web_tables_js[], rp_web_layers_js[];

static enum rp_code put_part(struct rp_out *to, const struct rp_web_page *page, const char *name,
                             size_t n, struct rp_err *err)
{
    const struct {
        const char *name;
        const struct rp_embedded *text;
        void (*put)(struct rp_out *to, void *user);
    } parts[] = {{"css", page->css, NULL},
                 {"common", rp_web_common_js, NULL},
                 {"tables", rp_web_tables_js, NULL},
                 {"layers", rp_web_layers_js, NULL},
                 {"js", page->js, NULL},
                 {"data", NULL, page->put_data},
                 {"title", NULL, page->put_title}};

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strlen(parts[i].name) == n && !memcmp(name, parts[i].name, n)) {
            if (parts[i].text)
                return rp_embedded_put(parts[i].text, to, err);
            if (parts[i].put)
                parts[i].put(to, page->user);
        }
    return RP_OK;
}

enum rp_code rp_web_put_page(struct rp_out *to, const struct rp_web_page *page, struct rp_err *err)
{
    RP_FREED char *text = rp_embedded_text(page->frame, err);
    const char *frame = text, *mark, *end;

    if (!text)
        return RP_NOMEM;
    while ((mark = strstr(frame, "<!--")) && (end = strstr(mark, "-->"))) {
        rp_out_write(to, frame, (size_t)(mark - frame));
        RP_TRY(put_part(to, page, mark + 4, (size_t)(end - mark - 4), err));
        frame = end + 3;
    }
    rp_out_text(to, frame);
    return RP_OK;
}

/* ------------------------------------------------------------------ records */

static const char *const unit_names[] = {
    [RP_UNIT_NONE] = "",       [RP_UNIT_COUNT] = "count", [RP_UNIT_NS] = "ns",
    [RP_UNIT_BYTES] = "bytes", [RP_UNIT_RATIO] = "ratio", [RP_UNIT_BPS] = "bps",
    [RP_UNIT_FLOPS] = "flops", [RP_UNIT_HZ] = "hz",       [RP_UNIT_FLOP] = "flop"};

static void put_value(struct rp_out *to, const struct rp_field *field, const void *record);

static bool is_wanted(const struct rp_field *field, bool (*wanted)(const struct rp_field *field))
{
    return !wanted || wanted(field);
}

static void put_fields(struct rp_out *to, const struct rp_type *type,
                       bool (*wanted)(const struct rp_field *field))
{
    const char *comma = "";

    rp_out_text(to, "{\"fields\":[");
    for (const struct rp_field *f = type->fields; rp_field_here(f); f++) {
        if (!is_wanted(f, wanted))
            continue;
        rp_out_printf(to, "%s[", comma);
        comma = ",";
        rp_out_escaped(to, RP_IN_SCRIPT, f->key);
        rp_out_char(to, ',');
        rp_out_escaped(to, RP_IN_SCRIPT, f->title);
        rp_out_char(to, ',');
        rp_out_escaped(to, RP_IN_SCRIPT, rp_field_number(f) ? unit_names[f->unit] : "text");
        rp_out_char(to, ',');
        rp_out_escaped(to, RP_IN_SCRIPT, f->doc);
        rp_out_printf(to, ",%u]", f->flags);
    }
    rp_out_text(to, "],");
}

static void put_row(struct rp_out *to, const struct rp_type *type, const void *record,
                    bool (*wanted)(const struct rp_field *field))
{
    const char *comma = "";

    rp_out_char(to, '[');
    for (const struct rp_field *f = type->fields; rp_field_here(f); f++) {
        if (!is_wanted(f, wanted))
            continue;
        rp_out_text(to, comma);
        comma = ",";
        put_value(to, f, record);
    }
    rp_out_char(to, ']');
}

static void put_value(struct rp_out *to, const struct rp_field *field, const void *record)
{
    if (rp_field_null(field, record))
        rp_out_text(to, "null");
    else if (field->type == RP_T_BOOL)
        rp_out_text(to, rp_field_bool(field, record) ? "true" : "false");
    else if (field->type == RP_T_STR)
        rp_out_escaped(to, RP_IN_SCRIPT, rp_field_str(field, record));
    else if (rp_field_number(field)) {
        char text[32];

        if (field->type == RP_T_I64)
            snprintf(text, sizeof text, "%" PRId64, rp_field_i64(field, record));
        else if (field->type == RP_T_U64)
            snprintf(text, sizeof text, "%" PRIu64, rp_field_u64(field, record));
        else
            rp_units_double(rp_field_f64(field, record), text);
        rp_out_text(to, text);
    } else if (field->type == RP_T_RECORD)
        rp_web_record(to, field->item, rp_field_at(field, record), NULL);
    else {
        /* Fields that were wanted in a root are not filtered again inside, so an item is complete.
         */
        const struct rp_field *plain = rp_type_plain(field->item);
        size_t i, n = rp_field_count(field, record);

        if (!plain) {
            put_fields(to, field->item, NULL);
            rp_out_text(to, "\"rows\":");
        }
        rp_out_char(to, '[');
        for (i = 0; i < n; i++) {
            if (i)
                rp_out_text(to, plain ? "," : ",\n");
            if (plain)
                put_value(to, plain, rp_field_item(field, record, i));
            else
                put_row(to, field->item, rp_field_item(field, record, i), NULL);
        }
        rp_out_text(to, plain ? "]" : "]}");
    }
}

void rp_web_record(struct rp_out *to, const struct rp_type *type, const void *record,
                   bool (*wanted)(const struct rp_field *field))
{
    put_fields(to, type, wanted);
    rp_out_text(to, "\"row\":");
    put_row(to, type, record, wanted);
    rp_out_char(to, '}');
}

/* ------------------------------------------------------------------ bytes */

static void put_six(struct rp_web_bytes *b, unsigned six)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    rp_out_char(b->to, digits[six & 63]);
}

static void put_byte(struct rp_web_bytes *b, unsigned byte)
{
    b->held = (b->held << 8 | byte) & 0xffff;
    for (b->bits += 8; b->bits >= 6; b->bits -= 6)
        put_six(b, b->held >> (b->bits - 6));
}

void rp_web_bytes_begin(struct rp_web_bytes *bytes, struct rp_out *to)
{
    *bytes = (struct rp_web_bytes){.to = to};
    rp_out_char(to, '"');
}

void rp_web_bytes_number(struct rp_web_bytes *bytes, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        put_byte(bytes, (unsigned)(number & 0x7f) | 0x80);
    put_byte(bytes, (unsigned)number);
}

static void end_bytes(struct rp_web_bytes *b)
{
    if (b->bits)
        put_six(b, b->held << (6 - b->bits));
    rp_out_text(b->to, b->bits == 2 ? "==" : b->bits == 4 ? "=" : "");
}

void rp_web_bytes_end(struct rp_web_bytes *bytes)
{
    end_bytes(bytes);
    rp_out_char(bytes->to, '"');
}

/* ------------------------------------------------------------------ packed data */

#define PLAIN_BYTES 65536
RP_LIMIT(PLAIN_BYTES, "bytes", "of data that is left readable: packing it would save little");

#define LEVEL 4
RP_LIMIT(LEVEL, "of zlib", "6 makes data a tenth smaller, and takes two thirds longer");

enum { PACKED_BUFFER = 65536, WITH_GZIP = 16 /* zlib: added to the bits of the window */ };

static void pack(z_stream *z, struct rp_out *to)
{
    struct rp_web_bytes bytes = {.to = to};
    uint8_t packed[PACKED_BUFFER];
    int code;

    do {
        z->next_out = packed;
        z->avail_out = sizeof packed;
        code = deflate(z, Z_FINISH);
        for (const uint8_t *at = packed; at < z->next_out; at++)
            put_byte(&bytes, *at);
    } while (code == Z_OK);
    end_bytes(&bytes);
}

enum rp_code rp_web_put_packed(struct rp_out *to, const char *json, size_t n, struct rp_err *err)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)json, .avail_in = (uInt)n};

    if (n < PLAIN_BYTES || n > UINT32_MAX) {
        rp_out_write(to, json, n);
        return RP_OK;
    }
    if (deflateInit2(&z, LEVEL, Z_DEFLATED, MAX_WBITS + WITH_GZIP, MAX_MEM_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return rp_err_nomem(err, "packing a page");
    pack(&z, to);
    deflateEnd(&z);
    return RP_OK;
}
