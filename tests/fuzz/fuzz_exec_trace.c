/* SPDX-License-Identifier: Apache-2.0 */
/* Execution traces. */
#include "read_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_read_program(&rp_format_exec_trace, data, size);
}
