/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TRACE_BUILD_DENSE_IDS_H
#define RP_TRACE_BUILD_DENSE_IDS_H
/*
 * Ids as files write them: 64-bit numbers become dense ones, and a number and its decimal text are
 * the same id. Inside src/trace only.
 */
#include "base/err.h"
#include "base/strtab.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

typedef RP_VEC(int64_t) rp_id_vec;

/*
 * dense[i] becomes the number of id[i] among the different ids, in the order in which they first
 * appear; *ndistinct how many there are. A table over the range of the ids where that is small, as
 * it is for correlation ids, a hash map otherwise.
 */
enum rp_code rp_dense_ids(const int64_t *id, size_t n, uint32_t *dense, uint32_t *ndistinct,
                          struct rp_err *err);

/* An id that is a number or a text, so that "7" and 7 are equal and "07" is another. */
struct rp_plain_id {
    int64_t value; /* number or string id */
    bool is_text;
};

struct rp_plain_id rp_plain_number(int64_t number);
struct rp_plain_id rp_plain_text(const struct rp_strtab *tab, uint32_t text);
/* Where the file has none: the same as the text "None". */
struct rp_plain_id rp_plain_none(const struct rp_strtab *tab);

#endif
