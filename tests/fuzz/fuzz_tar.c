/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a tar, once as slices of memory and once through a decompressor (stored gzip made
 * here): both must list the same members with the same bytes.
 */
#include "io/inflate.h"
#include "io/input.h"
#include "io/tar.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A digest of all members, and the code of the end. */
struct listing {
    enum rp_code code;
    unsigned long sum;
    size_t n;
};

static struct listing list(const uint8_t *data, size_t size)
{
    struct rp_limits limits = RP_LIMITS_DEFAULT;
    struct rp_err err = RP_ERR_INIT;
    struct listing l = {.sum = adler32(0, NULL, 0)};
    struct rp_tar_member m = {0};
    struct rp_input *in = NULL;
    struct rp_tar *tar = NULL;

    limits.members = 100;
    l.code = rp_input_open_memory("fuzz", data, size, &limits, &in, &err);
    if (l.code == RP_OK)
        l.code = rp_tar_open(in, &limits, &tar, &err);
    while (l.code == RP_OK) {
        l.code = rp_tar_next(tar, &m, &err);
        if (l.code != RP_OK || !m.name)
            break;
        l.sum = adler32(l.sum, (const Bytef *)m.name, (uInt)strlen(m.name) + 1);
        l.sum = adler32(l.sum, m.bytes, (uInt)m.n);
        l.n += 1 + m.truncated;
        if (m.held && l.n % 2)
            free(rp_tar_keep(tar));
    }
    rp_tar_close(tar);
    rp_input_close(in);
    return l;
}

/* data in a gzip member of stored blocks; NULL without memory. */
static uint8_t *wrap(const uint8_t *data, size_t size, size_t *n)
{
    static const uint8_t head[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
    uint8_t *gz = malloc(size + size / 65535 * 5 + 64), *at = gz;
    uint32_t tail[2] = {(uint32_t)crc32_z(0, data, size), (uint32_t)size};

    if (!gz)
        return NULL;
    memcpy(at, head, sizeof head);
    at += sizeof head;
    do {
        size_t part = size < 65535 ? size : 65535;

        *at++ = part == size;
        *at++ = (uint8_t)part;
        *at++ = (uint8_t)(part >> 8);
        *at++ = (uint8_t)~part;
        *at++ = (uint8_t)(~part >> 8);
        if (part)
            memcpy(at, data, part);
        at += part;
        data += part;
        size -= part;
    } while (size > 0);
    for (int i = 0; i < 8; i++)
        *at++ = (uint8_t)(tail[i / 4] >> (i % 4 * 8));
    *n = (size_t)(at - gz);
    return gz;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct listing slices, copies;
    uint8_t *gz;
    size_t n;

    if (rp_codec_find(data, size))
        return 0; /* fuzz_gz's */
    rp_tar_matches(data, size);
    gz = wrap(data, size, &n);
    if (!gz)
        return 0;
    slices = list(data, size);
    copies = list(gz, n);
    if (slices.code != RP_NOMEM && copies.code != RP_NOMEM)
        if (slices.code != copies.code || slices.sum != copies.sum || slices.n != copies.n)
            __builtin_trap();
    free(gz);
    return 0;
}
