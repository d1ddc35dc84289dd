/* SPDX-License-Identifier: Apache-2.0 */
#include "io/escaped.h"

static void put_out(void *out, const char *bytes, size_t n)
{
    rp_out_write(out, bytes, n);
}

static void put_emit(void *e, const char *bytes, size_t n)
{
    rp_emit_bytes(e, bytes, n);
}

void rp_out_escaped_bytes(struct rp_out *out, enum rp_language language, const char *bytes,
                          size_t n)
{
    rp_escape(language, bytes, n, put_out, out);
}

void rp_out_escaped(struct rp_out *out, enum rp_language language, const char *text)
{
    if (!text && (language == RP_IN_JSON || language == RP_IN_SCRIPT))
        rp_out_text(out, "null");
    else if (!text && language == RP_IN_PYTHON)
        rp_out_text(out, "None");
    else
        rp_out_escaped_bytes(out, language, text ? text : "", text ? strlen(text) : 0);
}

void rp_emit_escaped(struct rp_emit *e, enum rp_language language, const char *bytes, size_t n)
{
    rp_escape(language, bytes, n, put_emit, e);
}
