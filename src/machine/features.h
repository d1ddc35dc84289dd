/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Optional libraries: their purposes, and whether they are compiled in. */
#include <stdbool.h>
#include <stddef.h>

struct rp_feature {
    const char *name;
    const char *purpose;
    const char *package; /* the name of the development package in Debian */
    bool present;
    const char *(*version)(void); /* returns that of the library in use, or NULL */
};

const struct rp_feature *rp_feature_list(size_t *n);
