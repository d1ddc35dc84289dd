/* SPDX-License-Identifier: Apache-2.0 */
/* .npz and .npy: whatever is read can be looked at to its last element. */
#include "exec/data/arrays.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct rp_limits limits = {.input_bytes = 1 << 20,
                                        .held_bytes = 1 << 20,
                                        .token_bytes = 1 << 20,
                                        .events = 1 << 16,
                                        .members = 64,
                                        .depth = 8};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_arrays arrays;

    memset(&arrays, 0, sizeof arrays);
    if (rp_arrays_parse(data, size, &limits, &arrays, NULL) == RP_OK)
        for (size_t i = 0; i < arrays.list.n; i++) {
            const struct rp_tensor *t = arrays.list.at[i].value;

            if (t->n && rp_tensor_number(t, t->n - 1) == 1234567)
                abort();
        }
    rp_arrays_release(&arrays);
    return 0;
}
