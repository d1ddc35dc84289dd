/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The first bytes of a digest, by which it is recognised; dataset/digest_file.c reads the rest. */
#define RP_DIGEST_MAGIC "RPDIGEST"
