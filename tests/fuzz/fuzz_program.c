/* SPDX-License-Identifier: Apache-2.0 */
/* Anything that is taken for a program, through the table of formats. */
#include "read_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_read_program(NULL, data, size);
}
