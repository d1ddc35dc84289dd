/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the files of the hip library. */
#include "abi/hsa.h"
#include "capture/core/core.h"

/* The functions of the runtime, as they were before this library replaced some. */
#define RP_HIP_CORE_FUNCTIONS(F)                                                             \
    F(shut_down, int, (void))                                                                \
    F(system_get_info, int, (uint32_t what, void *value))                                    \
    F(iterate_agents, int, (int (*each)(uint64_t agent, void *data), void *data))            \
    F(agent_get_info, int, (uint64_t agent, uint32_t what, void *value))                     \
    F(queue_create, int,                                                                     \
      (uint64_t agent, uint32_t size, uint32_t type, void (*on_error)(int, void *, void *),  \
       void *data, uint32_t private_bytes, uint32_t group_bytes, void **queue))              \
    F(queue_destroy, int, (void *queue))                                                     \
    F(memory_allocate, int, (uint64_t region, size_t size, void **out))                      \
    F(memory_free, int, (void *at))                                                          \
    F(memory_copy, int, (void *to, const void *from, size_t size))                           \
    F(signal_create, int,                                                                    \
      (int64_t value, uint32_t nconsumers, const uint64_t *consumers, uint64_t *signal))     \
    F(signal_destroy, int, (uint64_t signal))                                                \
    F(signal_load_scacquire, int64_t, (uint64_t signal))                                     \
    F(signal_store_relaxed, void, (uint64_t signal, int64_t value))                          \
    F(signal_store_screlease, void, (uint64_t signal, int64_t value))                        \
    F(signal_wait_relaxed, int64_t,                                                          \
      (uint64_t signal, uint32_t condition, int64_t value, uint64_t timeout, uint32_t hint)) \
    F(signal_wait_scacquire, int64_t,                                                        \
      (uint64_t signal, uint32_t condition, int64_t value, uint64_t timeout, uint32_t hint)) \
    F(signal_subtract_screlease, void, (uint64_t signal, int64_t value))                     \
    F(executable_freeze, int, (uint64_t executable, const char *options))                    \
    F(executable_symbol_get_info, int, (uint64_t symbol, uint32_t what, void *value))        \
    F(executable_iterate_symbols, int,                                                       \
      (uint64_t executable, int (*each)(uint64_t executable, uint64_t symbol, void *data),   \
       void *data))                                                                          \
    F(executable_load_agent_code_object, int,                                                \
      (uint64_t executable, uint64_t agent, uint64_t reader, const char *options, uint64_t *out))

#define RP_HIP_AMD_FUNCTIONS(F)                                                                 \
    F(amd_profiling_set_profiler_enabled, int, (void *queue, int enable))                       \
    F(amd_profiling_async_copy_enable, int, (bool enable))                                      \
    F(amd_profiling_get_dispatch_time, int,                                                     \
      (uint64_t agent, uint64_t signal, struct rp_hsa_times * times))                           \
    F(amd_profiling_get_async_copy_time, int, (uint64_t signal, struct rp_hsa_times * times))   \
    F(amd_signal_async_handler, int,                                                            \
      (uint64_t signal, uint32_t condition, int64_t value, bool (*on_done)(int64_t, void *),    \
       void *data))                                                                             \
    F(amd_memory_pool_get_info, int, (uint64_t pool, uint32_t what, void *value))               \
    F(amd_agent_iterate_memory_pools, int,                                                      \
      (uint64_t agent, int (*each)(uint64_t pool, void *data), void *data))                     \
    F(amd_memory_pool_allocate, int, (uint64_t pool, size_t size, uint32_t flags, void **out))  \
    F(amd_memory_pool_free, int, (void *at))                                                    \
    F(amd_memory_async_copy, int,                                                               \
      (void *to, uint64_t to_agent, const void *from, uint64_t from_agent, size_t size,         \
       uint32_t nwaits, const uint64_t *waits, uint64_t signal))                                \
    F(amd_memory_lock, int, (void *at, size_t size, uint64_t *agents, int nagents, void **out)) \
    F(amd_memory_unlock, int, (void *at))                                                       \
    F(amd_memory_fill, int, (void *at, uint32_t value, size_t count))                           \
    F(amd_queue_intercept_create, int,                                                          \
      (uint64_t agent, uint32_t size, uint32_t type, void (*on_error)(int, void *, void *),     \
       void *data, uint32_t private_bytes, uint32_t group_bytes, void **queue))                 \
    F(amd_queue_intercept_register, int,                                                        \
      (void *queue, rp_hsa_interceptor *interceptor, void *data))                               \
    F(amd_memory_async_copy_rect, int,                                                          \
      (const void *to, const void *to_offset, const void *from, const void *from_offset,        \
       const uint32_t *range, uint64_t agent, uint32_t direction, uint32_t nwaits,              \
       const uint64_t *waits, uint64_t signal))

struct rp_hip {
    const struct rp_capture *cap; /* NULL if the process is not recorded */
    bool loaded;                  /* the runtime has called OnLoad, and its tables fit */
    bool all_calls, no_calls;     /* --set hip.calls=all, none */
    _Atomic uint64_t agent;       /* the first device that got a queue, or 0 */
    _Atomic bool uses_hip;        /* calls of HIP have been seen, so those of HSA are made by HIP */
#define RP_HIP_MEMBER(name, result, params) result(*name) params;
    RP_HIP_CORE_FUNCTIONS(RP_HIP_MEMBER)
    RP_HIP_AMD_FUNCTIONS(RP_HIP_MEMBER)
#undef RP_HIP_MEMBER
    /* from major 2 on */
    int (*amd_memory_async_copy_on_engine)(void *to, uint64_t to_agent, const void *from,
                                           uint64_t from_agent, size_t size, uint32_t nwaits,
                                           const uint64_t *waits, uint64_t signal, uint32_t engine,
                                           bool force);
};
extern struct rp_hip rp_hip;

/* Finds the core and reads the options, once. False if the process is not recorded. */
bool rp_hip_begin(void);

/* The HIP call that runs on this thread; its device work gets its link and stream. */
struct rp_hip_call {
    uint64_t link; /* 0: none is recorded now */
    uint64_t stream, began;
    uint32_t depth; /* calls inside a call */
    bool submitted; /* device work */
};
struct rp_hip_call *rp_hip_current(void);
uint64_t rp_hip_link(void); /* a new one */
/* Records a call of this thread that ends now. `began` is in ticks. */
void rp_hip_call_put(const char *name, const char *category, uint64_t began, uint64_t link);

#define RP_HIP_COPY_STREAM 2000 /* stream of copies outside HIP calls */

/* names.c: kernels by the address of their code. */
void rp_hip_names_add(uint64_t executable);
const char *rp_hip_name_of(uint64_t kernel_object);

/* devices.c: devices by agent, and the clock. */
void rp_hip_devices_find(void);
bool rp_hip_device_of(uint64_t agent, uint32_t *device); /* false: not a GPU */
void rp_hip_clock_read(void);
uint64_t rp_hip_clock_ns(uint64_t ticks); /* in CLOCK_MONOTONIC */

/* device_state.c: clocks, power and temperature; called ten times a second. */
void rp_hip_state_look(void);

/* work.c: dispatches and copies. */
struct rp_hip_copy {
    uint64_t to_agent, from_agent, bytes;
};
/* Starts to follow a copy. Returns the signal to give to the runtime: that of the program if the
   copy cannot be followed. */
struct rp_hip_work *rp_hip_copy_begin(const struct rp_hip_copy *copy, uint64_t *signal);
void rp_hip_copy_end(struct rp_hip_work *work, int status);
rp_hsa_interceptor rp_hip_intercept;
void *rp_hip_queue_new(uint64_t agent, uint32_t device);
void rp_hip_work_reset(void);
void rp_hip_wait_for_all(void);
