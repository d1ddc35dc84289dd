/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads the files in a tar one after another, from any input, which may be compressed. ustar, GNU
 * long names and pax paths and sizes are understood. Folders, links and devices are skipped, and so
 * are the "._" files that macOS adds. Nothing is written to disk.
 *
 *     RP_TRY(rp_tar_open(in, limits, &tar, err));
 *     while ((code = rp_tar_next(tar, &member, err)) == RP_OK && member.name)
 *         ...
 *     rp_tar_close(tar);
 */
#include "base/err.h"
#include "base/limits.h"
#include "io/input.h"
#include "io/output.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RP_TAR_BLOCK 512

struct rp_tar;

struct rp_tar_member {
    const char *name; /* NULL after the last one; borrowed until the next call */
    const uint8_t *bytes;
    size_t n;
    uint64_t offset; /* the offset of the content in the decompressed tar */
    bool truncated;  /* the tar ends inside this member: bytes has the part that is there */
    bool held; /* the bytes were read and live until the next call; otherwise they are a slice of
                  the input's memory and live until it is closed */
};

/* Whether content that begins with these bytes (a block of them, from rp_input_peek) is a tar:
   decided by the header's checksum, never by a name. */
bool rp_tar_matches(const uint8_t *bytes, size_t n);

/* `in` is owned by the caller, must outlive the tar, and must not be read by others. limits:
   members, input_bytes for one member, held_bytes for all that are not slices; may be NULL for the
   defaults. */
enum rp_code rp_tar_open(struct rp_input *in, const struct rp_limits *limits, struct rp_tar **out,
                         struct rp_err *err);
void rp_tar_close(struct rp_tar *tar); /* may be NULL */

/* Returns the next file. Damage is RP_FORMAT with the offset of the bad header. */
enum rp_code rp_tar_next(struct rp_tar *tar, struct rp_tar_member *member, struct rp_err *err);

/* Whether the tar stopped inside a header or a member; known at its end. */
bool rp_tar_truncated(const struct rp_tar *tar);

/* Hands the held bytes of the last member to the caller, who frees them with free(). */
uint8_t *rp_tar_keep(struct rp_tar *tar);

/*
 * Writes a tar with ustar headers with fixed times and owners, so that equal content gives equal
 * files.
 *
 *     rp_tar_put_header(out, "arrays/x.npy", n);
 *     rp_out_write(out, ...);                     n bytes in all
 *     rp_tar_put_end(out, n);
 *     ...
 *     rp_tar_put_last(out);
 */
void rp_tar_put_header(struct rp_out *out, const char *name, uint64_t n); /* name under 100 bytes */
void rp_tar_put_end(struct rp_out *out, uint64_t n); /* Ends a member of n bytes. */
void rp_tar_put_last(struct rp_out *out);
