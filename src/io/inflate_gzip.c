/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip (RFC 1952) around a deflate engine: members one after another, each a header, a deflate
 * stream and a trailer with CRC and length. As gzip -d does it, zeros between and after members are
 * padding, and any other data that follows is ignored and reported. CRC and length are verified; a
 * member whose end is missing counts as truncated, not as damaged.
 *
 *   1f 8b 08 FLG time(4) XFL OS [extra] [name\0] [comment\0] [crc16]  deflate...  CRC32 ISIZE
 */
#include "rp_config.h"

#include "io/inflate.h"
#include "io/proto.h"

#include <stdlib.h>

enum gzip_stage { STAGE_HEADER, STAGE_BODY, STAGE_TRAILER, STAGE_NEXT, STAGE_DONE };

enum { FLAG_HCRC = 2, FLAG_EXTRA = 4, FLAG_NAME = 8, FLAG_COMMENT = 16, FLAG_RESERVED = 0xe0 };

/* Longer names and comments are treated as damage. */
#define HEADER_TEXT_MAX (UINT32_C(1) << 20)

struct gzip {
    const struct rp_deflate *engine;
    void *deflate;
    enum gzip_stage stage;
    uint32_t crc, size;  /* of this member's plain bytes; the size is modulo 2^32 */
    uint32_t header_crc; /* while a header is read */
    bool cut;
    bool trailing;
};

static enum rp_code gzip_open(const struct rp_deflate *engine, void **state, struct rp_err *err)
{
    struct gzip *gz = calloc(1, sizeof *gz);

    RP_TRY(rp_err_need(gz, err, "starting to read gzip"));
    gz->engine = engine;
    enum rp_code code = engine->open(&gz->deflate, err);
    if (code != RP_OK) {
        free(gz);
        return code;
    }
    *state = gz;
    return RP_OK;
}

static void gzip_close(void *state)
{
    struct gzip *gz = state;

    if (!gz)
        return;
    gz->engine->close(gz->deflate);
    free(gz);
}

static enum rp_code gzip_damaged(const struct rp_feed *feed, struct rp_err *err, const char *what)
{
    return rp_err_set(err, RP_FORMAT, "gzip data is damaged at compressed byte %llu: %s",
                      (unsigned long long)rp_feed_position(feed), what);
}

/* Takes the next n bytes (n <= 10); sets gz->cut if the data ends before. */
static enum rp_code take_bytes(struct gzip *gz, struct rp_feed *feed, uint8_t *bytes, size_t n,
                               struct rp_err *err)
{
    for (size_t i = 0; i < n; i++) {
        RP_TRY(rp_feed_fill(feed, &gz->cut, err));
        if (gz->cut)
            return RP_OK;
        bytes[i] = *feed->at++;
    }
    gz->header_crc = gz->engine->crc(gz->header_crc, bytes, n);
    return RP_OK;
}

static enum rp_code skip_text(struct gzip *gz, struct rp_feed *feed, struct rp_err *err)
{
    uint8_t c = 1;

    for (uint32_t n = 0; c != 0 && !gz->cut; n++) {
        if (n == HEADER_TEXT_MAX)
            return gzip_damaged(feed, err, "unterminated file name in the header");
        RP_TRY(take_bytes(gz, feed, &c, 1, err));
    }
    return RP_OK;
}

static enum rp_code check_header_crc(struct gzip *gz, struct rp_feed *feed, struct rp_err *err)
{
    uint32_t want = gz->header_crc & 0xffff;
    uint8_t b[2];

    RP_TRY(take_bytes(gz, feed, b, 2, err));
    if (!gz->cut && b[0] + 256u * b[1] != want)
        return gzip_damaged(feed, err, "the header's checksum is wrong");
    return RP_OK;
}

static enum rp_code read_header(struct gzip *gz, struct rp_feed *feed, struct rp_err *err)
{
    uint8_t h[10];

    gz->header_crc = 0;
    RP_TRY(take_bytes(gz, feed, h, 3, err));
    if (gz->cut)
        return RP_OK;
    if (h[2] != 8)
        return gzip_damaged(feed, err, "unknown compression method");
    RP_TRY(take_bytes(gz, feed, h + 3, 7, err));
    if (gz->cut)
        return RP_OK;
    if (h[3] & FLAG_RESERVED)
        return gzip_damaged(feed, err, "unknown flags in the header");
    if (h[3] & FLAG_EXTRA) {
        uint8_t b[2];
        RP_TRY(take_bytes(gz, feed, b, 2, err));
        for (unsigned len = gz->cut ? 0 : b[0] + 256u * b[1]; len > 0 && !gz->cut; len--)
            RP_TRY(take_bytes(gz, feed, b, 1, err));
    }
    if ((h[3] & FLAG_NAME) && !gz->cut)
        RP_TRY(skip_text(gz, feed, err));
    if ((h[3] & FLAG_COMMENT) && !gz->cut)
        RP_TRY(skip_text(gz, feed, err));
    if ((h[3] & FLAG_HCRC) && !gz->cut)
        RP_TRY(check_header_crc(gz, feed, err));
    gz->engine->reset(gz->deflate);
    gz->crc = gz->size = 0;
    gz->stage = STAGE_BODY;
    return RP_OK;
}

static enum rp_code read_body(struct gzip *gz, struct rp_feed *feed, uint8_t *out, size_t cap,
                              size_t *got, struct rp_err *err)
{
    enum rp_deflate_state now;
    const char *why = "";

    RP_TRY(gz->engine->step(gz->deflate, feed, out, cap, got, &now, &why, err));
    gz->crc = gz->engine->crc(gz->crc, out, *got);
    gz->size += (uint32_t)*got;
    if (now == RP_DEFLATE_BAD)
        return gzip_damaged(feed, err, why);
    gz->cut = now == RP_DEFLATE_CUT;
    if (now == RP_DEFLATE_END)
        gz->stage = STAGE_TRAILER;
    return RP_OK;
}

static enum rp_code read_trailer(struct gzip *gz, struct rp_feed *feed, struct rp_err *err)
{
    uint8_t b[8];

    RP_TRY(take_bytes(gz, feed, b, 8, err));
    if (gz->cut)
        return RP_OK;
    if (rp_proto_load32(b) != gz->crc)
        return gzip_damaged(feed, err, "the checksum (CRC) of the content is wrong");
    if (rp_proto_load32(b + 4) != gz->size)
        return gzip_damaged(feed, err, "the length of the content is wrong");
    gz->stage = STAGE_NEXT;
    return RP_OK;
}

static enum rp_code gzip_read(void *state, struct rp_feed *feed, uint8_t *out, size_t cap,
                              size_t *got, struct rp_codec_end *end, struct rp_err *err)
{
    struct gzip *gz = state;

    *got = 0;
    while (*got == 0 && !gz->cut && gz->stage != STAGE_DONE) {
        switch (gz->stage) {
        case STAGE_HEADER:
            RP_TRY(read_header(gz, feed, err));
            break;
        case STAGE_BODY:
            RP_TRY(read_body(gz, feed, out, cap, got, err));
            break;
        case STAGE_TRAILER:
            RP_TRY(read_trailer(gz, feed, err));
            break;
        default: {
            /* Looks at what follows a member: padding, another member, other data, or the end. */
            uint8_t first = 0;
            bool empty;
            for (;;) {
                RP_TRY(rp_feed_fill(feed, &empty, err));
                if (empty || *feed->at != 0)
                    break;
                feed->at++;
            }
            gz->stage = STAGE_DONE;
            if (!empty) {
                first = *feed->at++;
                RP_TRY(rp_feed_fill(feed, &empty, err));
                gz->cut = empty && first == rp_codec_gzip.magic[0];
                if (!empty && first == rp_codec_gzip.magic[0] &&
                    *feed->at == rp_codec_gzip.magic[1])
                    gz->stage = STAGE_HEADER;
                else
                    gz->trailing = !gz->cut;
                feed->at--;
            }
        }
        }
    }
    end->truncated = gz->cut;
    end->trailing = gz->trailing;
    return RP_OK;
}

static enum rp_code open_zlib(void **state, struct rp_err *err)
{
    return gzip_open(&rp_deflate_zlib, state, err);
}

#define GZIP_CODEC(engine_name, open_function)                                     \
    {                                                                              \
        .name = "gzip", .engine = engine_name, .nmagic = 2, .magic = {0x1f, 0x8b}, \
        .open = open_function, .read = gzip_read, .close = gzip_close              \
    }

const struct rp_codec rp_codec_gzip_zlib = GZIP_CODEC("zlib", open_zlib);

#if RP_HAVE_ISAL
static enum rp_code open_isal(void **state, struct rp_err *err)
{
#if RP_ISAL_LOADED
    if (!rp_isal_found())
        return open_zlib(state, err);
#endif
    return gzip_open(&rp_deflate_isal, state, err);
}

const struct rp_codec rp_codec_gzip = GZIP_CODEC("isa-l", open_isal);
#else
const struct rp_codec rp_codec_gzip = GZIP_CODEC("zlib", open_zlib);
#endif
