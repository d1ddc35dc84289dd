/* SPDX-License-Identifier: Apache-2.0 */
#include "io/embedded.h"

#include "base/scope.h"

#include <stdbool.h>
#include <stdint.h>
#include <zlib.h>

enum { GZIP_ONLY = 16 /* zlib: added to the bits of the window */ };

static bool unpack(const struct rp_embedded *e, char *out)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)e->bytes,
                  .avail_in = (uInt)e->packed,
                  .next_out = (Bytef *)out,
                  .avail_out = (uInt)e->n};

    if (inflateInit2(&z, MAX_WBITS + GZIP_ONLY) != Z_OK)
        return false;
    bool whole = inflate(&z, Z_FINISH) == Z_STREAM_END;
    inflateEnd(&z);
    return whole;
}

char *rp_embedded_text(const struct rp_embedded *e, struct rp_err *err)
{
    char *text = malloc(e->n + 1);

    if (text && !e->packed)
        memcpy(text, e->bytes, e->n);
    else if (text && !unpack(e, text)) {
        free(text);
        text = NULL;
    }
    if (text)
        text[e->n] = '\0';
    else
        rp_err_nomem(err, "unpacking an embedded text");
    return text;
}

enum rp_code rp_embedded_put(const struct rp_embedded *e, struct rp_out *to, struct rp_err *err)
{
    RP_FREED char *text = rp_embedded_text(e, err);

    if (!text)
        return RP_NOMEM;
    rp_out_text(to, text);
    return RP_OK;
}
