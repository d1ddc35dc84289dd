/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of rocprofv3, JSON. */
#include "read_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_read_trace(&rp_format_rocprof_json, "nowhere/fuzz", data, size);
}
