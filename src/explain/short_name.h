/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_SHORT_NAME_H
#define RP_EXPLAIN_SHORT_NAME_H
/* Names of kernels as people know them; data keeps the whole name. */
#include <stddef.h>

/*
 * Folds templates and arguments, drops return types, "(anonymous namespace)" and the namespaces in
 * front: "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, …>(int,
 * …)" becomes "vectorized_elementwise_kernel<FillFunctor>": of the template arguments the first
 * that names a functor stays. Writes a NUL-terminated text cut to fit cap; returns its length.
 */
size_t rp_short_name(const char *name, char *out, size_t cap);

#endif
