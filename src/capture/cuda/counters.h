/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Measures hardware counters of each kernel (`record --counters`), instead of CUPTI's records of
   work. */
#include "capture/cuda/cuda.h"

/* Whether counters are wanted; then the next functions replace buffers and records. */
RP_CUDA_HIDDEN bool rp_cuda_counters_wanted(void);
RP_CUDA_HIDDEN void rp_cuda_counters_begin(void);
RP_CUDA_HIDDEN void rp_cuda_counters_callback(int domain, uint32_t id, const void *data);
RP_CUDA_HIDDEN void rp_cuda_counters_end(void);
