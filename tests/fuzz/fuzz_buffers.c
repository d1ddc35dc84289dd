/* SPDX-License-Identifier: Apache-2.0 */
/* Buffer assignments of XLA: texts (the live ranges after an empty line) and protobufs. */
#include "formats/buffers/buffers.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct rp_limits limits = {.input_bytes = 1 << 20, .token_bytes = 1 << 12};
    const char *text = (const char *)data, *gap = size ? memmem(text, size, "\n\n", 2) : NULL;
    size_t n = gap ? (size_t)(gap - text) : size;
    struct rp_buffers b;
    bool found;

    rp_buffers_init(&b);
    if (rp_buffers_read_text(&b, text, n, &limits, NULL) == RP_OK && gap)
        (void)rp_buffers_read_ranges(&b, gap + 2, size - n - 2, &limits, NULL);
    rp_buffers_release(&b);
    rp_buffers_init(&b);
    (void)rp_buffers_read_proto(&b, (struct rp_bytes){data, size}, &found, NULL);
    rp_buffers_release(&b);
    return 0;
}
