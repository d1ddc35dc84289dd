/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a shared library whose symbols are looked up before it is loaded. */
#include "exec/plugin/plugin.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct memory_file file;

    if (memory_file_open(&file, data, size)) {
        rp_elf_has_symbol(file.path, "GetPjrtApi");
        memory_file_close(&file);
    }
    return 0;
}
