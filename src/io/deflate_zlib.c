/* SPDX-License-Identifier: Apache-2.0 */
/* Inflates by zlib, which is always available: 600 to 900 MB/s of decompressed bytes. */
#include "io/inflate.h"

#include <stdlib.h>
#include <zlib.h>

static enum rp_code zlib_open(void **state, struct rp_err *err)
{
    z_stream *z = calloc(1, sizeof *z);

    if (!z || inflateInit2(z, -MAX_WBITS) != Z_OK) {
        free(z);
        return rp_err_nomem(err, "starting zlib");
    }
    *state = z;
    return RP_OK;
}

static void zlib_reset(void *state)
{
    inflateReset(state);
}

static void zlib_close(void *state)
{
    if (state)
        inflateEnd(state);
    free(state);
}

static uInt clamp(size_t n)
{
    return n < (UINT32_C(1) << 30) ? (uInt)n : (uInt)1 << 30;
}

/* Calls inflate once for the window; returns zlib's status. */
static int call_zlib(z_stream *z, struct rp_feed *feed, uint8_t *out, size_t cap, size_t *got)
{
    uInt in = clamp((size_t)(feed->end - feed->at)), room = clamp(cap);

    z->next_in = (z_const Bytef *)(uintptr_t)feed->at;
    z->avail_in = in;
    z->next_out = out;
    z->avail_out = room;
    int status = inflate(z, Z_NO_FLUSH);
    feed->at += in - z->avail_in;
    *got = room - z->avail_out;
    return status;
}

static enum rp_code zlib_step(void *state, struct rp_feed *feed, uint8_t *out, size_t cap,
                              size_t *got, enum rp_deflate_state *now, const char **why,
                              struct rp_err *err)
{
    z_stream *z = state;

    for (;;) {
        bool empty;

        *got = 0;
        RP_TRY(rp_feed_fill(feed, &empty, err));
        /* also with an empty window: decoded bytes may still be inside */
        int status = call_zlib(z, feed, out, cap, got);
        if (status == Z_MEM_ERROR)
            return rp_err_nomem(err, "decompressing");
        *now = status == Z_STREAM_END                            ? RP_DEFLATE_END
               : status == Z_DATA_ERROR || status == Z_NEED_DICT ? RP_DEFLATE_BAD
               : *got == 0 && empty                              ? RP_DEFLATE_CUT
                                                                 : RP_DEFLATE_MORE;
        if (*now == RP_DEFLATE_BAD)
            *why = z->msg ? z->msg : "bad deflate data";
        if (*now != RP_DEFLATE_MORE || *got > 0)
            return RP_OK;
    }
}

static uint32_t zlib_crc(uint32_t crc, const uint8_t *bytes, size_t n)
{
    return (uint32_t)crc32_z(crc, bytes, n);
}

const struct rp_deflate rp_deflate_zlib = {.name = "zlib",
                                           .open = zlib_open,
                                           .reset = zlib_reset,
                                           .step = zlib_step,
                                           .crc = zlib_crc,
                                           .close = zlib_close};
