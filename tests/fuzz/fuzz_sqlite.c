/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings in SQLite files: Nsight Systems, rocpd, RPD. */
#include "read_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_read_trace(&rp_format_nsys, "nowhere/fuzz", data, size);
}
