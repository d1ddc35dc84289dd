/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Observers of PyTorch's operators: the functions of ATen/record_function.h that libtorch_cpu.so
 * exports, and the struct that they take, for x86_64. The same in PyTorch 2.x. A unique_ptr is
 * returned through a pointer in the first argument, which a function of C can do as well.
 */
#include <stdbool.h>
#include <stdint.h>

enum rp_torch_scope {
    RP_TORCH_FUNCTION, /* operators */
    RP_TORCH_BACKWARD, /* nodes of the backward pass */
    RP_TORCH_SCRIPT,
    RP_TORCH_DTYPE,
    RP_TORCH_CLASS,
    RP_TORCH_FEATURE,
    RP_TORCH_LITE,
    RP_TORCH_USER, /* record_function, Optimizer.step, the data loader */
    RP_TORCH_STATIC_OP,
    RP_TORCH_STATIC_MODEL,
    RP_TORCH_SCOPES
};

struct rp_torch_function; /* at::RecordFunction */

struct rp_torch_callback { /* at::RecordFunctionCallback */
    void *(*start)(void **context, const struct rp_torch_function *function);
    void (*end)(const struct rp_torch_function *function, void *context);
    double sampling;
    bool scopes[RP_TORCH_SCOPES];
    bool needs_inputs, needs_outputs, needs_ids;
};
_Static_assert(sizeof(struct rp_torch_callback) == 40, "at::RecordFunctionCallback");

/* ROW(field, mangled name, result, arguments) */
#define RP_TORCH_CALLS(ROW)                                                                     \
    ROW(add, _ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE, uint64_t,                  \
        (struct rp_torch_callback))                                                             \
    ROW(remove, _ZN2at14removeCallbackEm, void, (uint64_t))                                     \
    ROW(disable, _ZN2at15disableCallbackEm, void, (uint64_t))                                   \
    ROW(reenable, _ZN2at16reenableCallbackEm, void, (uint64_t))                                 \
    ROW(name, _ZNK2at14RecordFunction4nameEv, const char *, (const struct rp_torch_function *)) \
    ROW(is_async, _ZNK2at14RecordFunction7isAsyncEv, bool, (const struct rp_torch_function *))
