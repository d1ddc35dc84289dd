/* SPDX-License-Identifier: Apache-2.0 */
/* Values recorded beside a program, in all three forms. */
#include "exec/data/snapshot.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_snapshot s;

    if (rp_snapshot_read(data, size, false, &s, NULL) == RP_OK)
        for (size_t i = 0; i < s.arguments.n; i++) {
            const struct rp_tensor *t = s.arguments.at[i];

            if (t->n && t->elem != RP_ELEM_TUPLE && rp_tensor_number(t, t->n - 1) == 1234567)
                abort();
        }
    rp_snapshot_release(&s);
    return 0;
}
