/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Texts that the build embeds in the program (cmake/embed.cmake), large ones compressed: plain,
 * they would be a tenth of it.
 */
#include "io/output.h"

#include <stddef.h>

struct rp_embedded {
    const void *bytes;
    size_t packed; /* bytes of gzip; 0: they are the text, which ends with a NUL */
    size_t n;      /* of the text */
};

/* The text, which ends with a NUL and is freed by the caller; NULL after a failure. */
char *rp_embedded_text(const struct rp_embedded *e, struct rp_err *err);
enum rp_code rp_embedded_put(const struct rp_embedded *e, struct rp_out *to, struct rp_err *err);
