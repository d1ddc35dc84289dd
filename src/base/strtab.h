/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Interned strings: each different byte string once, named by a dense 32-bit id. Id 0 is the empty
 * string. Equality is decided by the bytes; the hash only finds the candidate. Strings may contain
 * NUL; each is followed by one more NUL, so that they can be used as C strings.
 *
 *   bytes:   \0 f o r w a r d \0 a d d \0 ...
 *   offset:  0  1              9       13      (n + 1 entries; the NUL belongs to the string)
 */
#include "base/err.h"
#include "base/vec.h"

#include <stddef.h>
#include <stdint.h>

struct rp_strtab {
    RP_VEC(char) bytes;
    RP_VEC(uint64_t) offset; /* n + 1 */
    uint32_t n;
    uint32_t *slot;     /* id, or RP_STRTAB_FREE */
    uint32_t *slot_tag; /* the high half of the hash: most misses never touch the bytes */
    size_t nslots;
};

enum rp_code rp_strtab_init(struct rp_strtab *tab, struct rp_err *err);
void rp_strtab_release(struct rp_strtab *tab);

enum rp_code rp_strtab_intern(struct rp_strtab *tab, const char *s, size_t len, uint32_t *id,
                              struct rp_err *err);

/* Returns the id of s, or UINT32_MAX if it is not in the table. */
uint32_t rp_strtab_find(const struct rp_strtab *tab, const char *s, size_t len);

/* Borrowed until the next intern. */
static inline const char *rp_strtab_borrow(const struct rp_strtab *tab, uint32_t id)
{
    return tab->bytes.at + tab->offset.at[id];
}

static inline size_t rp_strtab_len(const struct rp_strtab *tab, uint32_t id)
{
    return (size_t)(tab->offset.at[id + 1] - tab->offset.at[id] - 1);
}
