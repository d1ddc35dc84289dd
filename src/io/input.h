/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_IO_INPUT_H
#define RP_IO_INPUT_H
/*
 * One named stream of bytes: a file, a pipe, standard input, a piece of memory or a member of a
 * tar, decompressed on the way (gzip, zstd, xz; found by their first bytes, not by the name). Plain
 * files are mapped. Offsets are in decompressed bytes. One thread at a time.
 *
 * How an input ends:
 *   normally            read gives 0 bytes and RP_OK
 *   cut short           read gives 0 bytes and RP_OK, rp_input_truncated() is true: the compressed
 *                       stream stopped before its own end, what could be decoded was given out (a
 *                       byte or two at the very end may be missing)
 *   damaged             all that stands before the damage is given out first, then read fails with
 *                       RP_FORMAT (bad data, wrong checksum), every time it is called
 */
#include "base/err.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_input;
struct rp_codec;

/* "-" is standard input. limits: NULL for the defaults; copied. */
enum rp_code rp_input_open(const char *path, const struct rp_limits *limits, struct rp_input **out,
                           struct rp_err *err);

/* bytes must outlive the input. */
enum rp_code rp_input_open_memory(const char *name, const void *bytes, size_t n,
                                  const struct rp_limits *limits, struct rp_input **out,
                                  struct rp_err *err);

void rp_input_close(struct rp_input *in); /* NULL is fine */

/* As given to open; "(standard input)" for "-". Borrowed. */
const char *rp_input_borrow_name(const struct rp_input *in);

/* What lies beside an input that stands for its folder, where that folder is in a tar; NULL for all
   others. Names are those within the folder. Borrowed, by set as well. */
struct rp_beside {
    const char *name;
    const uint8_t *bytes;
    size_t n;
};
void rp_input_set_beside(struct rp_input *in, const struct rp_beside *files, size_t n);
const struct rp_beside *rp_input_borrow_beside(const struct rp_input *in, size_t *n);

/* Up to cap bytes; *got is 0 only at the end. */
enum rp_code rp_input_read(struct rp_input *in, void *buf, size_t cap, size_t *got,
                           struct rp_err *err);

/* Bytes that the next reads will give, without consuming them: as many as there are, at most want
   (up to 64 KiB). Borrowed until the next call. Where damage comes first, fewer and RP_OK. */
enum rp_code rp_input_peek(struct rp_input *in, size_t want, const uint8_t **bytes, size_t *n,
                           struct rp_err *err);

/* The whole content where it is in memory as it is (a plain mapped file, plain memory), without
   reading anything; NULL otherwise. Borrowed until close. */
const uint8_t *rp_input_borrow_mapped(const struct rp_input *in, size_t *n);

/* Bytes of the mapping before this offset will not be looked at soon: their memory is given back,
   and comes again when touched. For walking a large mapping in a small resident size. */
void rp_input_release_before(const struct rp_input *in, size_t offset);

/* The whole rest of the content in memory: mapped where possible, read and held otherwise, up to
   the limit input_bytes. Borrowed until close. Damage is an error. Once it succeeded reads are at
   the end, and slurping again gives the same bytes. */
enum rp_code rp_input_slurp(struct rp_input *in, const uint8_t **bytes, size_t *n,
                            struct rp_err *err);

bool rp_input_truncated(const struct rp_input *in);

/* Behind the compressed data stood something else, which was left out (gzip only; known at the end,
   as truncated is). */
bool rp_input_trailing(const struct rp_input *in);

/* "gzip", "zstd", "xz" or "" */
const char *rp_input_compression(const struct rp_input *in);

/* For progress: bytes of the file consumed so far, and its size (0 where it is not known). */
uint64_t rp_input_file_position(const struct rp_input *in);
uint64_t rp_input_file_size(const struct rp_input *in);

/* Decodes with this codec from now on, for tests and benchmarks; before the first read or peek. */
enum rp_code rp_input_set_codec(struct rp_input *in, const struct rp_codec *codec,
                                struct rp_err *err);

#endif
