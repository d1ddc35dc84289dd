/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "trace/trace.h"

#include <string.h>

/* The value of a key of the file's metadata as JSON, or NULL. In our own recordings, notes have no
   quotes. */
static inline const char *rp_trace_meta(const struct rp_trace *t, const char *key)
{
    for (uint32_t i = 0; i < t->nmeta; i++)
        if (strcmp(rp_trace_str(t, t->meta[i].key), key) == 0)
            return rp_trace_str(t, t->meta[i].value);
    return NULL;
}

/* The same from the first character of a text or a number on; a quote may end it. */
static inline const char *rp_trace_note(const struct rp_trace *t, const char *key)
{
    const char *value = rp_trace_meta(t, key);

    return value ? value + (*value == '"') : NULL;
}
