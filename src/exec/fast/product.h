/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "exec/data/tensor.h"
#include "exec/fast/gemm.h"

struct rp_product { /* as struct rp_gemm */
    unsigned elem;  /* RP_ELEM_F64, _S32 or _S64; integers wrap around */
    int64_t batch, m, n, k;
    const void *a, *b;
    void *c; /* [batch][m][n]; not read */
    int64_t a_row, a_column, a_batch;
    int64_t b_row, b_column, b_batch;
};
enum rp_code rp_product_run(const struct rp_product *p, struct rp_pool *pool, struct rp_err *err);

/* Whether the type is an integer of at most eight bits, or pred. */
bool rp_elem_is_byte(unsigned elem);
/* Multiplies such arrays, whatever p->elem says; p->c has integers of 32 bits. */
enum rp_code rp_product_bytes(const struct rp_product *p, bool a_signed, bool b_signed,
                              struct rp_pool *pool, struct rp_err *err);

/* Makes of complex b, with contiguous columns of k elements, twice as many columns of 2 k real
   numbers: their products with the parts of a are the parts of c. */
enum rp_code rp_product_turn(const struct rp_tensor *b, size_t k, struct rp_tensor **out,
                             struct rp_err *err);
