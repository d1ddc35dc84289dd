/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One named stream of bytes: a file, a pipe, standard input, memory or a member of a tar,
 * decompressed on the fly (gzip, zstd, xz; recognised by their first bytes, not by the name). Plain
 * files are mapped. Offsets are in decompressed bytes. One thread at a time.
 *
 * How an input ends:
 * - normally: read gives 0 bytes and RP_OK;
 * - cut short: the same, and rp_input_truncated() is true: the compressed stream stopped before its
 *   own end. What could be decoded was returned (a byte or two at the very end may be missing);
 * - damaged: everything before the damage is returned first, then every read fails with RP_FORMAT
 *   (bad data, wrong checksum).
 */
#include "base/err.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_input;
struct rp_codec;

/* Opens a path; "-" is standard input. limits are copied, and may be NULL for the defaults. */
enum rp_code rp_input_open(const char *path, const struct rp_limits *limits, struct rp_input **out,
                           struct rp_err *err);

/* The bytes must outlive the input. */
enum rp_code rp_input_open_memory(const char *name, const void *bytes, size_t n,
                                  const struct rp_limits *limits, struct rp_input **out,
                                  struct rp_err *err);

void rp_input_close(struct rp_input *in); /* may be NULL */

/* Returns the name given to open; "(standard input)" for "-". Borrowed. */
const char *rp_input_borrow_name(const struct rp_input *in);

/* The other files of the folder of an input that represents its folder, if that folder is in a tar;
 * NULL for all other inputs. Names are relative to the folder. Borrowed, also by set. */
struct rp_beside {
    const char *name;
    const uint8_t *bytes;
    size_t n;
};
void rp_input_set_beside(struct rp_input *in, const struct rp_beside *files, size_t n);
const struct rp_beside *rp_input_borrow_beside(const struct rp_input *in, size_t *n);

/* Reads up to cap bytes; *got is 0 only at the end. */
enum rp_code rp_input_read(struct rp_input *in, void *buf, size_t cap, size_t *got,
                           struct rp_err *err);

/* Gives the next bytes without consuming them: at most `want` (up to 64 KiB), fewer at the end or
 * before damage, with RP_OK. They are borrowed until the next call. */
enum rp_code rp_input_peek(struct rp_input *in, size_t want, const uint8_t **bytes, size_t *n,
                           struct rp_err *err);

/* Returns the whole content if it is in memory uncompressed (a mapped file, memory), without
 * reading; otherwise NULL. Borrowed until close. */
const uint8_t *rp_input_borrow_mapped(const struct rp_input *in, size_t *n);

/* Releases the memory of the mapping before this offset; it is mapped again when touched. This
 * serves to read a large mapping with a small resident size. */
void rp_input_release_before(const struct rp_input *in, size_t offset);

/* Gives the rest of the content in memory: mapped if possible, otherwise read, up to the limit
 * input_bytes. Borrowed until close. Damage is an error. After success reads are at the end, and
 * slurping again returns the same bytes. */
enum rp_code rp_input_slurp(struct rp_input *in, const uint8_t **bytes, size_t *n,
                            struct rp_err *err);

bool rp_input_truncated(const struct rp_input *in);

/* Whether other data after the compressed data was ignored (only gzip reports it; known at the end,
 * like truncated). */
bool rp_input_trailing(const struct rp_input *in);

/* "gzip", "zstd", "xz" or "" */
const char *rp_input_compression(const struct rp_input *in);

/* Returns the size of the file, compressed or not; 0 if it is not known. */
uint64_t rp_input_file_size(const struct rp_input *in);

/* Sets the codec, for tests and benchmarks; must be called before the first read or peek. */
enum rp_code rp_input_set_codec(struct rp_input *in, const struct rp_codec *codec,
                                struct rp_err *err);
