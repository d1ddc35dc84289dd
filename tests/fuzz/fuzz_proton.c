/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of Proton. */
#include "read_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_read_trace(&rp_format_proton, "fuzz.hatchet", data, size);
}
