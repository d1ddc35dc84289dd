/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of rocprofv3, CSV. */
#include "read_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_read_trace(&rp_format_rocprof_csv, "nowhere/fuzz", data, size);
}
