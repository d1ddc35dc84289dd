/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variants of the structural index, and which of them this processor can run. The caller asks
 * once and keeps the pointer.
 */
#include "io/json_index.h"

static const struct rp_json_indexer scalar = {"scalar", rp_json_index_scalar};

#if defined(__x86_64__)
static const struct rp_json_indexer vector = {"avx2", rp_json_index_avx2};

static bool vector_runs(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("pclmul");
}
#elif defined(__aarch64__)
static const struct rp_json_indexer vector = {"neon", rp_json_index_neon};

static bool vector_runs(void)
{
    return true; /* it is part of the architecture */
}
#else
static const struct rp_json_indexer vector = {"none", NULL};

static bool vector_runs(void)
{
    return false;
}
#endif

const struct rp_json_indexer *rp_json_indexer_at(size_t i)
{
    if (vector_runs()) {
        if (i == 0)
            return &vector;
        i--;
    }
    return i == 0 ? &scalar : NULL;
}
