/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Names of kernels as people know them; data keeps the whole name. */
#include "base/arena.h"

#include <stddef.h>

/*
 * What a kernel is called. Of a C++ declaration (mangled or not) its name and what it applies:
 *
 *   void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, …>(…)
 *                                             vectorized_elementwise_kernel<add>
 *   void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_nn_align4>(…)
 *                                             cutlass_80_tensorop_s1688gemm_128x128_nn_align4
 *   Cijk_Alik_Bljk_BBS_BH_Bias_…_MT256x256x64_MI16x16x1_SN_LDSB1_…
 *                                             Cijk_Alik_Bljk_BBS_BH_Bias_…_MT256x256x64_MI16x16x1
 *
 * Any other name (Triton's, copies, operators, ranges, Python frames) stays as it is. Writes a
 * NUL-terminated text; one that is longer than cap is cut in its middle. Returns its length.
 */
size_t rp_short_name(const char *name, char *out, size_t cap);

/* The text itself, cut in its middle where it is longer than cap: for names of operators, ranges
   and Python frames, which are not C++. */
size_t rp_cut_name(const char *name, char *out, size_t cap);

/*
 * Short names of the n rows of a table, in the arena. Where different names have the same short
 * name, each gets the template arguments or parts in which it differs from the others:
 * "elementwise_kernel<add, bf16>" and "elementwise_kernel<add, f32>". So different names have
 * different labels. A name that is NULL has the label NULL. A failure sticks to the arena.
 */
void rp_short_names(const char *const *names, const char **labels, size_t n,
                    struct rp_arena *arena);
