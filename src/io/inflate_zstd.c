/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads zstd if the library was found: frames one after another; skippable frames are skipped.
 * Windows up to 128 MiB (the library's own limit) are accepted, so memory stays within that.
 */
#include "rp_config.h"

#include "io/inflate.h"

#if RP_HAVE_ZSTD
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

struct zstd {
    ZSTD_DStream *stream;
    size_t hint; /* 0: at the end of a frame */
};

static enum rp_code zstd_open(void **state, struct rp_err *err)
{
    struct zstd *z = calloc(1, sizeof *z);

    if (z)
        z->stream = ZSTD_createDStream();
    if (!z || !z->stream) {
        free(z);
        return rp_err_nomem(err, "starting zstd");
    }
    *state = z;
    return RP_OK;
}

static void zstd_close(void *state)
{
    struct zstd *z = state;

    if (z)
        ZSTD_freeDStream(z->stream);
    free(z);
}

static enum rp_code zstd_failed(const struct rp_feed *feed, size_t status, struct rp_err *err)
{
    ZSTD_ErrorCode error = ZSTD_getErrorCode(status);

    if (error == ZSTD_error_memory_allocation)
        return rp_err_nomem(err, "decompressing zstd");
    if (error == ZSTD_error_frameParameter_windowTooLarge)
        return rp_err_set(
            err, RP_LIMIT,
            "zstd data needs a window over 128 MiB: compress it again without --long");
    return rp_err_set(err, RP_FORMAT, "zstd data is damaged at compressed byte %llu: %s",
                      (unsigned long long)rp_feed_position(feed), ZSTD_getErrorName(status));
}

static enum rp_code zstd_read(void *state, struct rp_feed *feed, uint8_t *out, size_t cap,
                              size_t *got, struct rp_codec_end *end, struct rp_err *err)
{
    struct zstd *z = state;
    ZSTD_outBuffer to = {out, cap, 0};

    *got = 0;
    for (;;) {
        bool empty;

        RP_TRY(rp_feed_fill(feed, &empty, err));
        if (empty && z->hint == 0)
            return RP_OK;
        ZSTD_inBuffer from = {feed->at, (size_t)(feed->end - feed->at), 0};
        size_t status = ZSTD_decompressStream(z->stream, &to, &from);
        feed->at += from.pos;
        *got = to.pos;
        if (ZSTD_isError(status))
            return zstd_failed(feed, status, err);
        z->hint = status;
        if (*got > 0)
            return RP_OK;
        if (empty && status != 0) {
            end->truncated = true;
            return RP_OK;
        }
    }
}

#define ZSTD_MISSING NULL
#else
#define ZSTD_MISSING "libzstd (Debian: libzstd-dev)"
#define zstd_open    NULL
#define zstd_read    NULL
#define zstd_close   NULL
#endif

const struct rp_codec rp_codec_zstd = {.name = "zstd",
                                       .engine = "libzstd",
                                       .missing = ZSTD_MISSING,
                                       .nmagic = 4,
                                       .magic = {0x28, 0xb5, 0x2f, 0xfd},
                                       .open = zstd_open,
                                       .read = zstd_read,
                                       .close = zstd_close};
