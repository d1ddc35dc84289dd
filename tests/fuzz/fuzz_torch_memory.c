/* SPDX-License-Identifier: Apache-2.0 */
/* Memory snapshots of PyTorch: pickles, and the same as JSON. */
#include "read_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_read_trace(&rp_format_torch_memory, "fuzz.pickle", data, size);
}
