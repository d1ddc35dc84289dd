/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FORMATS_DIGEST_DIGEST_H
#define RP_FORMATS_DIGEST_DIGEST_H
/* The first bytes of a digest, by which it is recognised; dataset/digest_file.c reads the rest. */
#define RP_DIGEST_MAGIC "RPDIGEST"

#endif
