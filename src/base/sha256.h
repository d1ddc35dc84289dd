/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* SHA-256 (FIPS 180-4), for names and checksums of content. */
#include "base/block_hash.h"

struct rp_sha256 {
    struct rp_block_hash s;
};

#define RP_SHA256_TEXT 65 /* in hexadecimal, with the NUL */

void rp_sha256_begin(struct rp_sha256 *s);
void rp_sha256_add(struct rp_sha256 *s, const void *bytes, size_t n);
void rp_sha256_text(struct rp_sha256 *s, char out[RP_SHA256_TEXT]); /* ends it */
