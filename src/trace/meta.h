/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TRACE_META_H
#define RP_TRACE_META_H
#include "trace/trace.h"

#include <string.h>

/* The value of a key of the file's metadata, as JSON, or NULL. */
static inline const char *rp_trace_meta(const struct rp_trace *t, const char *key)
{
    for (uint32_t i = 0; i < t->nmeta; i++)
        if (strcmp(rp_trace_str(t, t->meta[i].key), key) == 0)
            return rp_trace_str(t, t->meta[i].value);
    return NULL;
}

#endif
