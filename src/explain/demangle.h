/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Demangles C++ names (Itanium ABI), which some profilers of AMD devices record. */
#include <stdbool.h>
#include <stddef.h>

/*
 * Writes the part of a mangled name that people need: scopes, names, template arguments, in the
 * form of a declaration: "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bLi256EEvPT_" becomes
 * "aiter::add_rmsnorm_quant_kernel<bf16, 256>(". References to earlier parts (S_, T0_) and the
 * parameters are left out. A name that was truncated, or has unknown parts, is read as far as
 * possible. The output is NUL-terminated and truncated to fit cap. Returns false if the text is not
 * mangled.
 */
bool rp_demangle(const char *name, char *out, size_t cap);
