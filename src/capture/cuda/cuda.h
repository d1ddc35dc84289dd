/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_CAPTURE_CUDA_CUDA_H
#define RP_CAPTURE_CUDA_CUDA_H
/*
 * The files of the cuda library share this page. cuda.c is the injection, its options and its end;
 * cupti.c finds CUPTI; buffers.c hands buffers to it and takes them back on a worker;
 * records.c turns their records into events; names.c has the names.
 */
#include "abi/cupti.h"
#include "capture/core/core.h"

#include <stdatomic.h>

#define RP_CUDA_HIDDEN __attribute__((visibility("hidden")))

struct rp_cupti {
#define RP_CUPTI_FIELD(field, name, args, needed) int(*field) args;
    RP_CUPTI_CALLS(RP_CUPTI_FIELD)
#undef RP_CUPTI_FIELD
    void *handle;
    uint32_t version;
};

struct rp_cuda {
    const struct rp_capture *cap;
    struct rp_cupti cupti;
    void *subscriber;
    bool all_calls;           /* also those of the driver inside a call of the runtime */
    uint32_t process;         /* cap->process_id() of the process that subscribed */
    _Atomic uint32_t running; /* subscribed, and not at the end */
    _Atomic uint32_t used;    /* CUPTI has asked for a buffer: there is something to flush */
    _Atomic uint32_t others;  /* other profilers that asked for CUPTI */
    _Atomic uint64_t kernels, untimed, dropped, bad;
};
extern struct rp_cuda rp_cuda RP_CUDA_HIDDEN;

/* ---- cupti.c ---- */
/* The library that this process uses already, else the best that can be found; the reason else. */
RP_CUDA_HIDDEN const char *rp_cuda_find(struct rp_cupti *out);
/* A function of the loaded CUPTI, NULL where none is loaded. */
RP_CUDA_HIDDEN void *rp_cuda_symbol(const char *name);
RP_CUDA_HIDDEN const char *rp_cuda_error(int code);

/* ---- buffers.c ---- */
RP_CUDA_HIDDEN bool rp_cuda_buffers_begin(void); /* memory and worker */
RP_CUDA_HIDDEN rp_cupti_request rp_cuda_request;
RP_CUDA_HIDDEN rp_cupti_complete rp_cuda_complete;
RP_CUDA_HIDDEN void rp_cuda_buffers_end(void); /* flushes, drains, ends the worker */

/* ---- records.c ---- */
RP_CUDA_HIDDEN void rp_cuda_records(uint8_t *buffer, size_t valid);

/* ---- names.c: for the worker only ---- */
RP_CUDA_HIDDEN const char *rp_cuda_call_name(int domain, uint32_t id);
RP_CUDA_HIDDEN const char *rp_cuda_kernel_name(const char *mangled);

#endif
