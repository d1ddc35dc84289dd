/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds the frameworks that a command can use: those that its Python interpreter finds. */
#include "base/arena.h"

enum rp_dump_framework {
    RP_USES_JAX,
    RP_USES_TENSORFLOW,
    RP_USES_PYTORCH,
    RP_USES_TORCH_XLA,
    RP_USES_RATEX,
    RP_USES_BLADEDISC,
    RP_USES_COUNT
};

struct rp_framework_found {
    bool present;
    const char *name;    /* "jax" */
    const char *version; /* "0.10.2"; NULL: not known */
    const char *package; /* folder of the package; NULL: named by the user, but not found */
    const char
        *library; /* the file that contains its XLA; NULL if there is none, or it was not found */
    uint32_t xla; /* number of the jaxlib whose XLA is as old; 0: not known, or no XLA */
};

struct rp_frameworks {
    const char *interpreter; /* as in the command; NULL if none was found there */
    size_t n;                /* how many are present */
    struct rp_framework_found of[RP_USES_COUNT];
};

/* Examines the words of a command. `only`: names separated by commas, which alone count as present;
   NULL: whatever is found. Texts are in the arena. */
enum rp_code rp_frameworks_find(const char *const *words, size_t n, const char *only,
                                struct rp_arena *arena, struct rp_frameworks *out,
                                struct rp_err *err);

/* Whether a file contains a name that is not part of a longer one. */
bool rp_file_has_name(const char *path, const char *name);
