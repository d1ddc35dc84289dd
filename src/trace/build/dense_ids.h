/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Ids of files: 64-bit numbers become dense ones, and a number and its decimal text are
 * the same id. Inside src/trace only.
 */
#include "base/err.h"
#include "base/strtab.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

typedef RP_VEC(int64_t) rp_id_vec;

/*
 * Sets dense[i] to the number of id[i] among the distinct ids, in order of first appearance, and
 * *ndistinct to how many there are. Uses a table over the range of the ids if that is small, as for
 * correlation ids, else a hash map.
 */
enum rp_code rp_dense_ids(const int64_t *id, size_t n, uint32_t *dense, uint32_t *ndistinct,
                          struct rp_err *err);

/* An id that is a number or a text; "7" and 7 are equal, "07" is different. */
struct rp_plain_id {
    int64_t value; /* number or string id */
    bool is_text;
};

struct rp_plain_id rp_plain_number(int64_t number);
struct rp_plain_id rp_plain_text(const struct rp_strtab *tab, uint32_t text);
/* For a missing id: the same as the text "None". */
struct rp_plain_id rp_plain_none(const struct rp_strtab *tab);
