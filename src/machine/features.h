/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Optional libraries: their purpose, and whether they are compiled in. */
#include <stdbool.h>
#include <stddef.h>

struct rp_feature {
    const char *name;
    const char *purpose;
    const char *package; /* Debian's name of the development package */
    bool present;
    const char *(*version)(void); /* of the library in use, or NULL */
};

const struct rp_feature *rp_feature_list(size_t *n);
