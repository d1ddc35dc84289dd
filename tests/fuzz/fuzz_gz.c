/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decompression of anything: read by the engine of this build and, for gzip, by zlib too. Where
 * zlib finds all in order, the other must give the same bytes (ISA-L accepts some codes that zlib
 * refuses, so the reverse need not hold).
 */
#include "io/inflate.h"
#include "io/input.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MOST ((size_t)1 << 17)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    enum rp_code code;
    bool whole, truncated;
    size_t n;
};

/* Reads all into out (MOST bytes) in pieces; code is OK where it could be opened. */
static struct outcome decode(const uint8_t *data, size_t size, const struct rp_codec *codec,
                             size_t piece, uint8_t *out)
{
    struct rp_limits limits = RP_LIMITS_DEFAULT;
    struct rp_err err = RP_ERR_INIT;
    struct outcome o = {0};
    struct rp_input *in;
    const uint8_t *head;
    size_t got = 1, n;

    limits.input_bytes = MOST;
    o.code = rp_input_open_memory("fuzz", data, size, &limits, &in, &err);
    if (o.code != RP_OK)
        return o;
    if (codec && *rp_input_compression(in))
        o.code = rp_input_set_codec(in, codec, &err);
    if (o.code == RP_OK && piece % 2)
        o.code = rp_input_peek(in, piece, &head, &n, &err);
    while (o.code == RP_OK && got > 0) {
        size_t room = MOST - o.n;

        if (room == 0) { /* full: one more read tells whether it was all */
            uint8_t more;

            o.code = rp_input_read(in, &more, 1, &got, &err);
            break;
        }
        o.code = rp_input_read(in, out + o.n, piece < room ? piece : room, &got, &err);
        o.n += got;
    }
    o.truncated = rp_input_truncated(in);
    o.whole = o.code == RP_OK && !o.truncated;
    rp_input_close(in);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *a = malloc(2 * MOST), *b = a ? a + MOST : NULL;
    size_t piece = size ? 1 + data[size - 1] * 401u : 1;
    struct outcome fast, plain;

    if (!a)
        return 0;
    fast = decode(data, size, NULL, piece, a);
    if (size >= 2 && memcmp(data, rp_codec_gzip.magic, 2) == 0) {
        plain = decode(data, size, &rp_codec_gzip_zlib, 65536, b);
        /* a failed allocation may have stopped either */
        if (plain.whole && fast.code != RP_NOMEM)
            if (!fast.whole || fast.n != plain.n || memcmp(a, b, plain.n) != 0)
                __builtin_trap();
    }
    free(a);
    return 0;
}
