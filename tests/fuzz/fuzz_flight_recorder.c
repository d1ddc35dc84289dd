/* SPDX-License-Identifier: Apache-2.0 */
/* Dumps of PyTorch's Flight Recorder. */
#include "read_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_read_trace(&rp_format_flight_recorder, "nowhere/nccl_trace_rank_3", data, size);
}
