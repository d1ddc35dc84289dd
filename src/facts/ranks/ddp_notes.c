/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/ranks/ddp_notes.h"

#include "base/decides.h"
#include "trace/meta.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MANY (INT64_C(1) << 40)
RP_LIMIT(MANY, "bytes of a gradient",
         "of a list with more nothing is believed: the text is damaged");

/* Reads only notes about one model, because with several it is not known whose gradient it is. */
enum rp_code rp_ddp_sizes_read(const struct rp_trace *t, struct rp_ddp_sizes *out,
                               struct rp_err *err)
{
    char key[48];
    size_t before;

    if (rp_trace_meta(t, "gradients.1.0"))
        return RP_OK;
    do {
        before = out->list.n;
        snprintf(key, sizeof key, "gradients.0.%zu", before);
        const char *text = rp_trace_note(t, key);
        while (text && *text >= '0' && *text <= '9') {
            char *end;
            int64_t bytes = strtoll(text, &end, 10);

            if (bytes > MANY) {
                out->list.n = 0;
                return RP_OK;
            }
            RP_TRY(rp_vec_push(&out->list, bytes, err));
            text = end + (*end == ' ');
        }
    } while (out->list.n > before);
    return RP_OK;
}

static double meta_number(const struct rp_trace *t, const char *key)
{
    const char *text = rp_trace_note(t, key);

    return text ? strtod(text, NULL) : 0;
}

/* A rank needs two threads: one that works and one that carries its collectives. */
double rp_ddp_crowded(const struct rp_trace *t)
{
    double processors = meta_number(t, "host.processors"), ranks = meta_number(t, "host.ranks");

    if (!(processors >= 1) || !(ranks >= 2))
        return 0;
    return fmin(fmax(2 - processors / ranks, 0), 1);
}
