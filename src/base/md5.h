/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* MD5 (RFC 1321), for checksums in files of others; it must not be used for security. */
#include "base/block_hash.h"

struct rp_md5 {
    struct rp_block_hash s;
};

#define RP_MD5_TEXT 33 /* in hexadecimal, with the NUL */

void rp_md5_begin(struct rp_md5 *s);
void rp_md5_add(struct rp_md5 *s, const void *bytes, size_t n);
void rp_md5_text(struct rp_md5 *s, char out[RP_MD5_TEXT]); /* ends it */
