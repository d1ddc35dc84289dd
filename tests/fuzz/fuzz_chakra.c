/* SPDX-License-Identifier: Apache-2.0 */
/* Chakra traces, messages or JSON. */
#include "read_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_read_program(size && *data == '{' ? &rp_format_chakra_json : &rp_format_chakra,
                             data, size);
}
