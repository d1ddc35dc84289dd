/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXEC_EVAL_RANDOM_H
#define RP_EXEC_EVAL_RANDOM_H
#include <stdint.h>

/* ThreeFry 2x32 with 20 rounds of two words; the low halves come first. */
void rp_threefry(uint64_t key, uint64_t counter, uint32_t out[2]);

#endif
