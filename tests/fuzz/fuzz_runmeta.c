/* SPDX-License-Identifier: Apache-2.0 */
/* TensorFlow's RunMetadata. */
#include "read_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_read_trace(&rp_format_runmeta, "fuzz.pb", data, size);
}
