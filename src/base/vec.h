/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Growable arrays. Small ones are on the heap; from 256 KiB on, an array has pages of its own and
 * grows by mremap: nothing is copied, and capacity that was never touched costs no memory. So
 * doubling the capacity does not double the footprint.
 *
 *     RP_VEC(uint32_t) ids = {0};
 *     RP_TRY(rp_vec_push(&ids, 7, err));
 *     rp_vec_release(&ids);
 *
 * The vector owns `at`; pointers into it are invalid after the next push or reserve.
 */
#include "base/err.h"
#include "base/scope.h"

#include <stddef.h>
#include <stdint.h>

#define RP_NONE UINT32_MAX /* an index or id that refers to nothing */

#define RP_VEC(type)   \
    struct {           \
        type *at;      \
        size_t n, cap; \
    }

/* Declares a vector that is released however the function is left: RP_VEC_LOCAL(int, ids); */
#define RP_VEC_LOCAL(type, name)      \
    RP_SCOPED(rp_vec_release_local)   \
    struct {                          \
        type *at;                     \
        size_t n, cap, element_bytes; \
    } name = {.element_bytes = sizeof(type)}

void rp_vec_release_local(void *vector);

/* Ensures room for n + more elements. */
#define rp_vec_reserve(v, more, err)     \
    ((v)->cap - (v)->n >= (size_t)(more) \
         ? RP_OK                         \
         : rp_vec_grow((void **)&(v)->at, &(v)->cap, (v)->n, (more), sizeof *(v)->at, (err)))

/* Appends one element; evaluates v more than once. */
#define rp_vec_push(v, value, err) \
    (rp_vec_reserve((v), 1, (err)) == RP_OK ? ((v)->at[(v)->n++] = (value), RP_OK) : RP_NOMEM)

/* Frees the memory; the vector is empty and may be used again. */
#define rp_vec_release(v) \
    (rp_vec_drop((v)->at, (v)->cap, sizeof *(v)->at), (v)->at = NULL, (v)->n = (v)->cap = 0)

/*
 * Does the same as rp_vec_reserve for arrays of a known length: asks the system for huge pages,
 * which makes filling the array cheaper. Capacity that is not filled then costs memory.
 */
#define rp_vec_reserve_full(v, more, err)                                                    \
    (rp_vec_reserve((v), (more), (err)) == RP_OK                                             \
         ? (rp_vec_expect_full((v)->at, ((v)->n + (size_t)(more)) * sizeof *(v)->at), RP_OK) \
         : RP_NOMEM)

void rp_vec_expect_full(void *at, size_t bytes);
enum rp_code rp_vec_grow(void **at, size_t *cap, size_t n, size_t more, size_t size,
                         struct rp_err *err);
void rp_vec_drop(void *at, size_t cap, size_t size);
