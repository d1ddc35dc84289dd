/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shared by the files of the opencl library: opencl.c is the layer and its functions, commands.c
 * follows a command to its completion, kernels.c keeps kernels by handle.
 */
#include "abi/opencl_layer.h"
#include "capture/core/core.h"

#include <stdatomic.h>

#define RP_OPENCL_HIDDEN __attribute__((visibility("hidden")))
#define RP_OPENCL_ARGS   16   /* recorded arguments of a kernel */
#define RP_OPENCL_NAME   1024 /* recorded bytes of a kernel's name */

struct rp_opencl { /* rp_opencl: the functions of the next layer */
#define RP_CL_FIELD(name, place, result, params, ...)               result(*name) params;
#define RP_CL_COMMAND_FIELD(name, place, kind, bytes, params, args) int32_t(*name) params;
    RP_CL_QUERIES(RP_CL_FIELD)
    RP_CL_COMMANDS(RP_CL_COMMAND_FIELD)
    RP_CL_CALLS(RP_CL_FIELD)
    RP_CL_OWN(RP_CL_FIELD)
#undef RP_CL_FIELD
#undef RP_CL_COMMAND_FIELD
    const struct rp_capture *cap;
};
extern struct rp_opencl rp_opencl RP_OPENCL_HIDDEN;

struct rp_opencl_kernel {
    char name[RP_OPENCL_NAME];
    uint32_t nargs;
    struct {
        uint32_t size;
        bool is_set;
        uint64_t value; /* its first eight bytes */
    } args[RP_OPENCL_ARGS];
};

/* ---- kernels.c ---- */
RP_OPENCL_HIDDEN void rp_opencl_kernel_set(void *kernel, uint32_t index, size_t size,
                                           const void *value);
RP_OPENCL_HIDDEN void rp_opencl_kernel_get(void *kernel, struct rp_opencl_kernel *out);
RP_OPENCL_HIDDEN void rp_opencl_kernel_forget(void *kernel);

/* ---- commands.c ---- */
struct rp_opencl_command;
/* Called before the OpenCL call; NULL: nothing is recorded. dims 0: not a kernel. */
RP_OPENCL_HIDDEN struct rp_opencl_command *
rp_opencl_begin(const char *call, enum rp_ctf_kind kind, void *queue, uint64_t bytes, void *kernel,
                uint32_t dims, const size_t *global, const size_t *local);
/* Called after it, with the command's event; `own`: the program does not have the event. */
RP_OPENCL_HIDDEN void rp_opencl_end(struct rp_opencl_command *c, int32_t code, void *event,
                                    bool own);
RP_OPENCL_HIDDEN void rp_opencl_wait_for_all(void); /* at exit; waits at most 200 ms */
