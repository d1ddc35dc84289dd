/* SPDX-License-Identifier: Apache-2.0 */
/* The innermost loop of convolutions keeps a block of results in registers; there is one version
   for each width and machine. A step takes one load of w and one element of x for each row; nothing
   is stored before the end. */
#include "exec/fast/conv.h"

typedef float v8 __attribute__((vector_size(32), aligned(4)));
typedef float v16 __attribute__((vector_size(64), aligned(4)));

/* ROWS rows of VECS vectors: the sum over n steps, added to c unless it is the first part. */
#define KERNEL(name, attribute, ROWS, VEC, LANES, VECS)                                           \
    attribute static void name(size_t n, const struct rp_conv_step *step, const float *const *a,  \
                               const float *b, float *const *c, bool first)                       \
    {                                                                                             \
        VEC acc[ROWS][VECS];                                                                      \
                                                                                                  \
        for (int r = 0; r < ROWS; r++)                                                            \
            for (int v = 0; v < VECS; v++)                                                        \
                acc[r][v] =                                                                       \
                    first ? (VEC){0} : *(const VEC *)(const void *)(c[r] + (int64_t)v * (LANES)); \
        for (size_t i = 0; i < n; i++) {                                                          \
            const float *w = b + step[i].b;                                                       \
            size_t at = step[i].a;                                                                \
            VEC row[VECS];                                                                        \
                                                                                                  \
            for (int v = 0; v < VECS; v++)                                                        \
                row[v] = *(const VEC *)(const void *)(w + (int64_t)v * (LANES));                  \
            for (int r = 0; r < ROWS; r++)                                                        \
                for (int v = 0; v < VECS; v++)                                                    \
                    acc[r][v] += a[r][at] * row[v];                                               \
        }                                                                                         \
        for (int r = 0; r < ROWS; r++)                                                            \
            for (int v = 0; v < VECS; v++)                                                        \
                *(VEC *)(void *)(c[r] + (int64_t)v * (LANES)) = acc[r][v];                        \
    }

KERNEL(plain_8, , 4, v8, 8, 1)
#if defined(__x86_64__)
#define AVX2   __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f,avx512vl")))
KERNEL(avx2_8, AVX2, 8, v8, 8, 1)
KERNEL(avx2_16, AVX2, 6, v8, 8, 2)
KERNEL(avx512_8, AVX512, 8, v8, 8, 1)
KERNEL(avx512_16, AVX512, 8, v16, 16, 1)
KERNEL(avx512_32, AVX512, 8, v16, 16, 2)
#else
KERNEL(plain_16, , 4, v8, 8, 2)
#endif

struct rp_conv_kernel rp_conv_kernel_for(int64_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        return n <= 8    ? (struct rp_conv_kernel){avx512_8, 8, 8}
               : n <= 16 ? (struct rp_conv_kernel){avx512_16, 8, 16}
                         : (struct rp_conv_kernel){avx512_32, 8, 32};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return n <= 8 ? (struct rp_conv_kernel){avx2_8, 8, 8}
                      : (struct rp_conv_kernel){avx2_16, 6, 16};
    return (struct rp_conv_kernel){plain_8, 4, 8};
#else
    return n <= 8 ? (struct rp_conv_kernel){plain_8, 4, 8}
                  : (struct rp_conv_kernel){plain_16, 4, 16};
#endif
}
