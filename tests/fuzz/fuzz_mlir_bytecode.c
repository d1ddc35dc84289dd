/* SPDX-License-Identifier: Apache-2.0 */
/* MLIR bytecode. */
#include "read_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_read_program(&rp_format_mlir_bytecode, data, size);
}
