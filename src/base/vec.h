/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_BASE_VEC_H
#define RP_BASE_VEC_H
/*
 * Growable columns. Small ones live on the heap; from 256 KiB on a column has pages of its own and
 * grows by mremap: nothing is copied, no old half stays behind, and untouched capacity costs no
 * memory. So a column may double its room without doubling the footprint.
 *
 *     RP_VEC(uint32_t) ids = {0};
 *     RP_TRY(rp_vec_push(&ids, 7, err));
 *     rp_vec_release(&ids);
 *
 * The vector owns `at`; pointers into it are invalid after the next push or reserve.
 */
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define RP_VEC(type)   \
    struct {           \
        type *at;      \
        size_t n, cap; \
    }

/* Room for n + more elements. */
#define rp_vec_reserve(v, more, err)     \
    ((v)->cap - (v)->n >= (size_t)(more) \
         ? RP_OK                         \
         : rp_vec_grow((void **)&(v)->at, &(v)->cap, (v)->n, (more), sizeof *(v)->at, (err)))

/* Appends one element; evaluates v more than once. */
#define rp_vec_push(v, value, err) \
    (rp_vec_reserve((v), 1, (err)) == RP_OK ? ((v)->at[(v)->n++] = (value), RP_OK) : RP_NOMEM)

/* Gives all memory back; the vector may be used again. */
#define rp_vec_release(v) \
    (rp_vec_drop((v)->at, (v)->cap, sizeof *(v)->at), (v)->at = NULL, (v)->n = (v)->cap = 0)

/*
 * n + more elements will be filled soon, all of them: room as by rp_vec_reserve, and the system is
 * asked for large pages, which are given 512 times as much at once. For columns of a known length
 * only: room that is not filled is no longer free.
 */
#define rp_vec_reserve_full(v, more, err)                                                    \
    (rp_vec_reserve((v), (more), (err)) == RP_OK                                             \
         ? (rp_vec_expect_full((v)->at, ((v)->n + (size_t)(more)) * sizeof *(v)->at), RP_OK) \
         : RP_NOMEM)

void rp_vec_expect_full(void *at, size_t bytes);
enum rp_code rp_vec_grow(void **at, size_t *cap, size_t n, size_t more, size_t size,
                         struct rp_err *err);
void rp_vec_drop(void *at, size_t cap, size_t size);

#endif
