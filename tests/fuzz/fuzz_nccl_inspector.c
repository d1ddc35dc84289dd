/* SPDX-License-Identifier: Apache-2.0 */
/* JSON lines of a NCCL Inspector. */
#include "read_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_read_trace(&rp_format_nccl_inspector, "fuzz.jsonl", data, size);
}
