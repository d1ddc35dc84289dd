/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXEC_PJRT_PLUGIN_ELF_H
#define RP_EXEC_PJRT_PLUGIN_ELF_H
#include <stdbool.h>

/* Whether a shared library (64-bit ELF, this machine's byte order) has a dynamic symbol of that
   name. Reads the few pages where that stands; what is no such file has none. */
bool rp_elf_has_symbol(const char *path, const char *symbol);

#endif
