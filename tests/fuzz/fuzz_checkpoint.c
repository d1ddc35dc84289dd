/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a TensorFlow checkpoint. Checksums would hide everything behind them, so they are
   made to fit first: every block that the index names gets its own. */
#include "formats/tensorflow/checkpoint.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct rp_limits limits = {.input_bytes = 1 << 20,
                                        .held_bytes = 1 << 20,
                                        .token_bytes = 1 << 20,
                                        .events = 1 << 16,
                                        .members = 64,
                                        .depth = 60};

static uint32_t masked_crc(const uint8_t *at, size_t n)
{
    uint32_t c = UINT32_MAX;

    for (size_t i = 0; i < n; i++) {
        c ^= at[i];
        for (int k = 0; k < 8; k++)
            c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
    }
    c = ~c;
    return (c >> 15 | c << 17) + 0xa282ead8u;
}

/* The block of a handle at p; what stands behind the handle. */
static const uint8_t *mend(uint8_t *file, size_t n, const uint8_t *p, const uint8_t *end)
{
    uint64_t offset, size;
    uint32_t crc;

    p = rp_proto_varint_at(p, end, &offset);
    p = p ? rp_proto_varint_at(p, end, &size) : NULL;
    if (!p || offset > n || size > n - offset || n - offset - size < 5)
        return NULL;
    crc = masked_crc(file + offset, (size_t)size + 1);
    memcpy(file + offset + size + 1, &crc, 4);
    return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_checkpoint *c = NULL;
    struct rp_tf_value v;
    uint8_t *file = malloc(size + 1);
    const uint8_t *p;

    if (!file)
        return 0;
    memcpy(file, data, size);
    if (size >= 64) { /* the first data block stands at the beginning, then the index */
        uint8_t first[2] = {0, file[0] & 127};

        mend(file, size, first, first + 2);
        p = mend(file, size, file + size - 48, file + size - 8);
        if (p)
            mend(file, size, p, file + size - 8);
    }
    if (rp_checkpoint_parse(file, size, &limits, &c, NULL) == RP_OK &&
        rp_checkpoint_value(c, "w", &v, NULL) == RP_OK)
        abort(); /* there is no data file */
    rp_checkpoint_close(c);
    free(file);
    return 0;
}
