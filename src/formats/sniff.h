/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FORMATS_SNIFF_H
#define RP_FORMATS_SNIFF_H
/*
 * Recognising content by its first bytes. The format with the highest confidence reads it; of
 * equal ones the first in the table.
 */
#include <stddef.h>
#include <stdint.h>

#define RP_SNIFF_BYTES 65536

enum rp_sniff {
    RP_SNIFF_NO,
    RP_SNIFF_FALLBACK, /* the right kind of text, without evidence for or against it */
    RP_SNIFF_LIKELY,   /* fits, but other formats may fit better */
    RP_SNIFF_CERTAIN   /* a magic number, or a key that no other format uses */
};

/* The first byte that is not white space (after a byte order mark, if any), or n. */
size_t rp_sniff_space(const uint8_t *head, size_t n, size_t from);

/*
 * Whether the first object at a depth of a JSON text has a key: depth 1 is the top-level object, 2
 * the first object in a top-level array. 1: yes; 0: the head ends before that is known; -1: no (or
 * there is no such object).
 */
int rp_sniff_json_key(const uint8_t *head, size_t n, unsigned depth, const char *key);

#endif
