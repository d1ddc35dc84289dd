/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decompression, below rp_input: a codec turns the compressed bytes of a feed into plain bytes, a
 * piece at a time, with memory that does not depend on the input. Codecs are rows of one table and
 * are chosen by the first bytes of the data.
 *
 *     file, pipe, memory  --feed-->  codec  --rp_input_read-->  reader
 *
 * gzip is split once more: the frames (headers, checksums, members) are read in one place and only
 * the deflate stream inside is left to an engine, ISA-L or zlib. So both report the same errors.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A source of compressed bytes. The window [at, end) is available now; more() is called when it is
 * empty and leaves it empty at the end of the data. Up to RP_FEED_BACK bytes that were consumed
 * stay readable before `at`, so that a decoder that read too far can step back.
 */
#define RP_FEED_BACK 8

struct rp_feed {
    const uint8_t *at, *end;
    uint64_t end_offset; /* of `end` in the data */
    bool ended;          /* more() has nothing left to give */
    enum rp_code (*more)(struct rp_feed *feed,
                         struct rp_err *err); /* NULL if the window is all there is */
    void *user;
};

/* Makes the window non-empty, or sets *empty at the end of the data. */
enum rp_code rp_feed_fill(struct rp_feed *feed, bool *empty, struct rp_err *err);
uint64_t rp_feed_position(const struct rp_feed *feed); /* of `at` */

/* How a stream ended; valid once read has returned 0 bytes. */
struct rp_codec_end {
    bool truncated; /* the data stopped before the stream did */
    bool trailing;  /* other data followed the compressed data and was ignored */
};

struct rp_codec {
    const char *name;    /* "gzip": the format */
    const char *engine;  /* "isa-l": the library */
    const char *missing; /* what to install; NULL if the codec works */
    size_t nmagic;
    uint8_t magic[6];
    enum rp_code (*open)(void **state, struct rp_err *err);
    /*
     * Reads up to cap bytes (cap > 0); *got is 0 only at the end, which *end describes. If the data
     * is damaged, the code is RP_FORMAT, *got (possibly not 0) counts the bytes before the damage,
     * and the message names the compressed byte. Must not be called again after a failure.
     */
    enum rp_code (*read)(void *state, struct rp_feed *feed, uint8_t *out, size_t cap, size_t *got,
                         struct rp_codec_end *end, struct rp_err *err);
    void (*close)(void *state);
};

extern const struct rp_codec rp_codec_gzip; /* the best engine of this build */
extern const struct rp_codec rp_codec_gzip_zlib;
extern const struct rp_codec rp_codec_zstd;
extern const struct rp_codec rp_codec_xz;

/* Returns the codec for data that begins with these bytes (6 are enough), or NULL if the data is
   not compressed. */
const struct rp_codec *rp_codec_find(const uint8_t *bytes, size_t n);

/* A raw deflate stream (RFC 1951), for the gzip codecs. */
enum rp_deflate_state { RP_DEFLATE_MORE, RP_DEFLATE_END, RP_DEFLATE_CUT, RP_DEFLATE_BAD };

struct rp_deflate {
    const char *name;
    enum rp_code (*open)(void **state, struct rp_err *err);
    void (*reset)(void *state); /* before each stream */
    /*
     * Returns MORE with at least one byte in *got, END with the feed just after the stream, or CUT
     * or BAD with the bytes decoded before. For BAD, *why is the reason.
     */
    enum rp_code (*step)(void *state, struct rp_feed *feed, uint8_t *out, size_t cap, size_t *got,
                         enum rp_deflate_state *now, const char **why, struct rp_err *err);
    uint32_t (*crc)(uint32_t crc, const uint8_t *bytes, size_t n);
    void (*close)(void *state);
};

extern const struct rp_deflate rp_deflate_zlib;
extern const struct rp_deflate rp_deflate_isal; /* only if RP_HAVE_ISAL */
bool rp_isal_found(void);                       /* only if RP_ISAL_LOADED: whether it can be used */
