/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Mangled C++ names (Itanium ABI), as some profilers of AMD devices record them. */
#include <stdbool.h>
#include <stddef.h>

/*
 * Writes what people need of a mangled name: scopes, names, template arguments, in the form of a
 * declaration: "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bLi256EEvPT_" becomes
 * "aiter::add_rmsnorm_quant_kernel<bf16, 256>(". References to earlier parts (S_, T0_) and the
 * parameters are left out. A name that was cut, or that has unknown parts, is read as far as
 * possible. Returns false where the text is not mangled. NUL-terminated, cut to fit cap.
 */
bool rp_demangle(const char *name, char *out, size_t cap);
