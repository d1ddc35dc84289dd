/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads OpenBLAS by dlopen, so nothing is linked, and a machine without it uses our own products.
 * The names of its functions tell the width of its integers. It runs in one thread, because its own
 * threads wait by spinning, which costs more than it gains on a shared machine. A library that does
 * not know the processor is not used.
 */
#include "exec/fast/gemm.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };

typedef void sgemm32(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                     int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef void sgemm64(int order, int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha,
                     const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                     int64_t ldc);

static const struct {
    const char *name, *threads, *core;
    bool wide;
} symbols[] = {
    {"cblas_sgemm", "openblas_set_num_threads", "openblas_get_corename", false},
    {"cblas_sgemm64_", "openblas_set_num_threads64_", "openblas_get_corename64_", true},
    {"scipy_cblas_sgemm", "scipy_openblas_set_num_threads", "scipy_openblas_get_corename", false},
    {"scipy_cblas_sgemm64_", "scipy_openblas_set_num_threads64_", "scipy_openblas_get_corename64_",
     true}};

/* On a processor that it does not know, OpenBLAS falls back to kernels of a very old one, which are
   several times slower than our own. */
static bool is_too_old(void *library, const char *symbol)
{
#if defined(__x86_64__)
    static const char *const cores[] = {"Prescott",   "Core2",     "Penryn", "Dunnington",
                                        "Nehalem",    "Atom",      "Banias", "Katmai",
                                        "Coppermine", "Northwood", "Athlon", "Opteron",
                                        "Barcelona",  "Bobcat",    "Generic"};
    char *(*name)(void) = (char *(*)(void))dlsym(library, symbol);
    const char *core = name ? name() : NULL;

    for (size_t i = 0; core && i < sizeof cores / sizeof *cores; i++)
        if (!strncasecmp(core, cores[i], strlen(cores[i])))
            return __builtin_cpu_supports("avx2");
#else
    (void)library;
    (void)symbol;
#endif
    return false;
}

static bool try_library(const char *path, struct rp_blas *out)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    for (size_t i = 0; library && i < sizeof symbols / sizeof *symbols; i++) {
        out->sgemm = dlsym(library, symbols[i].name);
        if (out->sgemm) {
            if (is_too_old(library, symbols[i].core))
                break;
            void (*set_threads)(int) = (void (*)(int))dlsym(library, symbols[i].threads);

            if (set_threads) /* one thread, because tiles are the pool's jobs */
                set_threads(1);
            out->wide = symbols[i].wide;
            snprintf(out->name, sizeof out->name, "%s", path);
            return true;
        }
    }
    if (library)
        dlclose(library);
    return false;
}

bool rp_blas_open(struct rp_blas *out)
{
    static const char *const usual[] = {"libopenblas.so.0", "libopenblas.so"};
    const char *given = getenv("REPRISE_BLAS");

    if (given && *given)
        return strcmp(given, "own") != 0 && try_library(given, out);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (try_library(usual[i], out))
            return true;
    return false;
}

/* Whether rows or columns are contiguous; false if neither. */
static bool leading_dimension(int64_t row, int64_t column, int64_t rows, int64_t columns, int *how,
                              int64_t *ld)
{
    if (column == 1 && row >= columns) {
        *how = PLAIN;
        *ld = row;
        return true;
    }
    *how = TRANSPOSED;
    *ld = column;
    return row == 1 && column >= rows;
}

bool rp_blas_gemm(const struct rp_blas *blas, const struct rp_gemm *g)
{
    int64_t lda, ldb;
    int ta, tb;

    if (!leading_dimension(g->a_row, g->a_column, g->m, g->k, &ta, &lda) ||
        !leading_dimension(g->b_row, g->b_column, g->k, g->n, &tb, &ldb))
        return false;
    if (!blas->wide && (g->m > INT32_MAX || g->n > INT32_MAX || g->k > INT32_MAX ||
                        lda > INT32_MAX || ldb > INT32_MAX))
        return false;
    if (blas->wide)
        ((sgemm64 *)blas->sgemm)(ROW_MAJOR, ta, tb, g->m, g->n, g->k, 1, g->a, lda, g->b, ldb, 0,
                                 g->c, g->c_row);
    else
        ((sgemm32 *)blas->sgemm)(ROW_MAJOR, ta, tb, (int)g->m, (int)g->n, (int)g->k, 1, g->a,
                                 (int)lda, g->b, (int)ldb, 0, g->c, (int)g->c_row);
    return true;
}
