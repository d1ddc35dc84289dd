/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A PJRT plugin as a table of functions whose errors become ours: loading, versions, calls with the
 * struct size that the plugin expects. Nothing here depends on what the functions do.
 */
#include "abi/pjrt.h"
#include "base/err.h"

#include <stdbool.h>

#define RP_PJRT_SIZES 128 /* number of functions whose sizes can be learned */

struct rp_pjrt {
    void *library;
    const uint64_t *api;
    unsigned minor;                /* minor of version 0.<minor> */
    size_t functions;              /* number of functions in its table */
    uint16_t size[RP_PJRT_SIZES];  /* by function: the size of its arguments, if the plugin wants
                                      another; or 0 */
    uint16_t inner[RP_PJRT_SIZES]; /* by function: the same for the struct inside them */
};

/*
 * Loads a plugin and checks its version; only the function that returns the table is called.
 * RP_MISSING if the file, the symbol or a function that we need is missing, or the major version is
 * not supported. The library is never unloaded: plugins have threads.
 */
enum rp_code rp_pjrt_load(const char *path, struct rp_pjrt *out, struct rp_err *err);

/* A struct of arguments, or one inside them. */
struct rp_pjrt_args {
    uint64_t word[RP_PJRT_WORDS];
};
#define RP_PJRT_ARGS \
    {                \
        {            \
            0        \
        }            \
    }

static inline uint64_t rp_pjrt_word(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

static inline void *rp_pjrt_pointer(uint64_t word)
{
    return (void *)(uintptr_t)word;
}

/*
 * Calls a function. Sizes are filled in, also of `inner` (a struct that the arguments point to, or
 * NULL); if the plugin expects other sizes, the call is repeated with those. A failure has the
 * plugin's own message and the matching code; `other` is the code of failures that are not about
 * the program (a lost device).
 */
enum rp_code rp_pjrt_call(struct rp_pjrt *pjrt, enum rp_pjrt_function function,
                          struct rp_pjrt_args *args, struct rp_pjrt_args *inner, enum rp_code other,
                          struct rp_err *err);

/* Calls a function of one argument; gets its result and, unless size is NULL, how long that is. */
enum rp_code rp_pjrt_ask(struct rp_pjrt *pjrt, enum rp_pjrt_function function, const void *of,
                         uint64_t *result, size_t *size, enum rp_code other, struct rp_err *err);

/* Calls functions that have one argument and no result, such as destroy; errors are dropped. */
void rp_pjrt_drop(struct rp_pjrt *pjrt, enum rp_pjrt_function function, void *object);

/* Waits for an event, and destroys it. NULL stands for an event that has happened. */
enum rp_code rp_pjrt_await(struct rp_pjrt *pjrt, void *event, struct rp_err *err);

/* The extension of that type, as words, or NULL. */
const uint64_t *rp_pjrt_extension(const struct rp_pjrt *pjrt, uint32_t type);
