/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Releases variables however a function is left. Both macros precede a declaration with a value:
 *
 *     RP_SCOPED(rp_work_release) struct rp_work work = {0};
 *     RP_FREED char *text = NULL;
 *     RP_TRY(rp_work_init(&work, trace, NULL, err));
 *
 * A value for the caller must be taken out first: `*out = text; text = NULL;`.
 */
#include <stdlib.h>
#include <string.h>

/* Calls `release` with the variable's address at the end of the scope. */
#define RP_SCOPED(release) __attribute__((cleanup(release)))

/* Does the same with free, for pointers. Vectors have RP_VEC_LOCAL. */
#define RP_FREED RP_SCOPED(rp_free_at)

static inline void rp_free_at(void *variable)
{
    void *memory;

    memcpy(&memory, variable, sizeof memory);
    free(memory);
}
