/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads xz if liblzma was found: streams one after another with padding between them. The decoder
 * may use 256 MiB, four times what xz -9 needs; a file that needs more is refused.
 */
#include "rp_config.h"

#include "io/inflate.h"

#if RP_HAVE_LZMA
#include <lzma.h>
#include <stdlib.h>

#define XZ_MEMORY_BYTES (UINT64_C(256) << 20)

static enum rp_code xz_open(void **state, struct rp_err *err)
{
    lzma_stream *lz = calloc(1, sizeof *lz); /* all zero is LZMA_STREAM_INIT */

    if (!lz || lzma_stream_decoder(lz, XZ_MEMORY_BYTES, LZMA_CONCATENATED) != LZMA_OK) {
        free(lz);
        return rp_err_nomem(err, "starting xz");
    }
    *state = lz;
    return RP_OK;
}

static void xz_close(void *state)
{
    if (state)
        lzma_end(state);
    free(state);
}

static enum rp_code xz_failed(const struct rp_feed *feed, lzma_ret status, struct rp_err *err)
{
    const char *what = "bad data or wrong checksum";

    if (status == LZMA_MEM_ERROR)
        return rp_err_nomem(err, "decompressing xz");
    if (status == LZMA_MEMLIMIT_ERROR)
        return rp_err_set(
            err, RP_LIMIT,
            "xz data needs over 256 MiB to decompress: compress it again with -9 or less");
    if (status == LZMA_FORMAT_ERROR)
        what = "no xz stream";
    else if (status == LZMA_OPTIONS_ERROR)
        what = "unknown options in a header";
    return rp_err_set(err, RP_FORMAT, "xz data is damaged at compressed byte %llu: %s",
                      (unsigned long long)rp_feed_position(feed), what);
}

static enum rp_code xz_read(void *state, struct rp_feed *feed, uint8_t *out, size_t cap,
                            size_t *got, struct rp_codec_end *end, struct rp_err *err)
{
    lzma_stream *lz = state;

    *got = 0;
    for (;;) {
        bool empty;

        RP_TRY(rp_feed_fill(feed, &empty, err));
        lz->next_in = feed->at;
        lz->avail_in = (size_t)(feed->end - feed->at);
        lz->next_out = out;
        lz->avail_out = cap;
        lzma_ret status = lzma_code(lz, empty ? LZMA_FINISH : LZMA_RUN);
        feed->at = lz->next_in;
        *got = cap - lz->avail_out;
        if (status == LZMA_STREAM_END)
            return RP_OK;
        if (status == LZMA_BUF_ERROR && empty && *got == 0) {
            end->truncated = true;
            return RP_OK;
        }
        if (status != LZMA_OK && status != LZMA_BUF_ERROR)
            return xz_failed(feed, status, err);
        if (*got > 0)
            return RP_OK;
    }
}

#define XZ_MISSING NULL
#else
#define XZ_MISSING "liblzma (Debian: liblzma-dev)"
#define xz_open    NULL
#define xz_read    NULL
#define xz_close   NULL
#endif

const struct rp_codec rp_codec_xz = {.name = "xz",
                                     .engine = "liblzma",
                                     .missing = XZ_MISSING,
                                     .nmagic = 6,
                                     .magic = {0xfd, '7', 'z', 'X', 'Z', 0},
                                     .open = xz_open,
                                     .read = xz_read,
                                     .close = xz_close};
