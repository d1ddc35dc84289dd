/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * For profilers of NVIDIA GPUs: cudaProfilerStart and Stop enclose the measured runs (`nsys profile
 * -c cudaProfilerApi` and `ncu --profile-from-start off` record nothing else), and each run is an
 * NVTX range. Everything goes through dlopen, and only if the engine's library has loaded CUDA;
 * otherwise these functions do nothing.
 */
#include <stdbool.h>

struct rp_device_marks { /* all zero: begin */
    bool looked, marking;
    int (*start)(void);
    int (*stop)(void);
    int (*push)(const char *name);
    int (*pop)(void);
};

void rp_device_marks_begin(struct rp_device_marks *marks);
void rp_device_marks_end(struct rp_device_marks *marks);
/* Mark ranges; they do nothing outside of begin and end. */
void rp_device_marks_push(struct rp_device_marks *marks, const char *name);
void rp_device_marks_pop(struct rp_device_marks *marks);
