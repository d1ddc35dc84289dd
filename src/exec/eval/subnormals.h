/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * On the CPU, XLA reads and writes subnormal numbers as zeros, which is visible in results:
 * log(1e-40f) is minus infinity, 1e-40f == 0 is true. `ref` and `fast` do the same. The mode
 * belongs to the thread; threads inherit it from the one that starts them.
 */
#include <stdint.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

/* Returns the previous mode, for rp_subnormals_restore. */
static inline uint64_t rp_subnormals_flush(void)
{
    uint64_t before = 0;

#if defined(__SSE__)
    before = _mm_getcsr();
    _mm_setcsr((unsigned)before | 0x8040); /* results, operands */
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(before | (uint64_t)1 << 24));
#endif
    return before;
}

static inline void rp_subnormals_restore(uint64_t before)
{
#if defined(__SSE__)
    _mm_setcsr((unsigned)before);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(before));
#else
    (void)before;
#endif
}
