/* SPDX-License-Identifier: Apache-2.0 */
/* Values recorded beside a program, in all three forms. */
#include "exec/snapshot.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct rp_limits limits = {.input_bytes = 1 << 20,
                                        .held_bytes = 1 << 20,
                                        .token_bytes = 1 << 20,
                                        .events = 1 << 16,
                                        .members = 64,
                                        .depth = 60};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_snapshot s;

    if (rp_snapshot_read(data, size, &limits, &s, NULL) == RP_OK)
        for (size_t i = 0; i < s.arguments.n; i++) {
            const struct rp_tensor *t = s.arguments.at[i];

            if (t->n && t->elem != RP_ELEM_TUPLE && rp_tensor_number(t, t->n - 1) == 1234567)
                abort();
        }
    rp_snapshot_release(&s);
    return 0;
}
