/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of BytePS. */
#include "read_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_read_trace(&rp_format_byteps, "nowhere/fuzz.log", data, size);
}
