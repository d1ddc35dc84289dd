/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural index in plain C: a table gives each byte a class, most bytes have none. The other
 * variants are tested against it and use it for the last bytes of a piece; it runs on processors
 * without them.
 */
#include "io/json_index.h"

enum { QUOTE = 1, BACKSLASH = 2, STRUCTURAL = 4, CONTROL = 8 };

static const uint8_t classes[256] = {
    [0x00] = CONTROL,   [0x01] = CONTROL,   [0x02] = CONTROL,   [0x03] = CONTROL,
    [0x04] = CONTROL,   [0x05] = CONTROL,   [0x06] = CONTROL,   [0x07] = CONTROL,
    [0x08] = CONTROL,   [0x09] = CONTROL,   [0x0a] = CONTROL,   [0x0b] = CONTROL,
    [0x0c] = CONTROL,   [0x0d] = CONTROL,   [0x0e] = CONTROL,   [0x0f] = CONTROL,
    [0x10] = CONTROL,   [0x11] = CONTROL,   [0x12] = CONTROL,   [0x13] = CONTROL,
    [0x14] = CONTROL,   [0x15] = CONTROL,   [0x16] = CONTROL,   [0x17] = CONTROL,
    [0x18] = CONTROL,   [0x19] = CONTROL,   [0x1a] = CONTROL,   [0x1b] = CONTROL,
    [0x1c] = CONTROL,   [0x1d] = CONTROL,   [0x1e] = CONTROL,   [0x1f] = CONTROL,
    ['"'] = QUOTE,      ['\\'] = BACKSLASH, ['{'] = STRUCTURAL, ['}'] = STRUCTURAL,
    ['['] = STRUCTURAL, [']'] = STRUCTURAL, [','] = STRUCTURAL,
};

size_t rp_json_index_scalar(struct rp_json_index_state *state, const char *text, size_t n,
                            uint32_t base, uint32_t *out)
{
    uint64_t in = state->in_string, escaped = state->escaped;
    uint32_t *o = out;

    for (size_t i = 0; i < n; i++) {
        unsigned class = classes[(unsigned char)text[i]];

        if (class == BACKSLASH) {
            escaped ^= 1;
            state->backslash = 1;
            continue;
        }
        if (class == QUOTE && !escaped) {
            *o++ = base + (uint32_t)i;
            in = ~in;
        } else if (class == STRUCTURAL && !in) {
            *o++ = base + (uint32_t)i;
        } else if (class == CONTROL && in) {
            state->control_bytes++;
        }
        escaped = 0;
    }
    state->in_string = in;
    state->escaped = escaped;
    return (size_t)(o - out);
}
