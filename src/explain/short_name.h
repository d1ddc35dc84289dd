/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Names of kernels as people know them; data keeps the whole name. */
#include "base/arena.h"

#include <stddef.h>

/*
 * Writes what people call a kernel. For a C++ declaration (mangled or not) that is its name and
 * what it applies:
 *
 *   void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, …>(…)
 *                                             vectorized_elementwise_kernel<add>
 *   void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_nn_align4>(…)
 *                                             cutlass_80_tensorop_s1688gemm_128x128_nn_align4
 *   Cijk_Alik_Bljk_BBS_BH_Bias_…_MT256x256x64_MI16x16x1_SN_LDSB1_…
 *                                             Cijk_Alik_Bljk_BBS_BH_Bias_…_MT256x256x64_MI16x16x1
 *
 * Any other name (Triton's, copies, operators, ranges, Python frames) stays as it is. The text is
 * NUL-terminated; if it is longer than cap, it is cut in its middle. Returns its length.
 */
size_t rp_short_name(const char *name, char *out, size_t cap);

/* Writes the text itself, cut in its middle if it is longer than cap: for names of operators,
   ranges and Python frames, which are not C++. */
size_t rp_cut_name(const char *name, char *out, size_t cap);

/*
 * Writes short names of the n rows of a table to the arena. If different names have the same short
 * name, each gets the template arguments or parts in which it differs from the others:
 * "elementwise_kernel<add, bf16>" and "elementwise_kernel<add, f32>". So different names have
 * different labels. A name that is NULL has the label NULL. A failure stays in the arena.
 */
void rp_short_names(const char *const *names, const char **labels, size_t n,
                    struct rp_arena *arena);
