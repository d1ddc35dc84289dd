/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of the HIP runtime, intercepted by symbol name (LD_PRELOAD): those that launch, copy, wait,
 * allocate, or make streams and modules; no queries. The outermost call of a thread is recorded,
 * with a link; the device work that it submits on this thread has the same link, and its stream.
 * Calls that may submit work are recorded when they end; the link is left out if they did not
 * (small copies by the processor, launches that are captured into a graph).
 *
 * Streams are numbered: 0 is the default stream, the others in the order of their first use.
 */
#include "capture/core/next.h"
#include "capture/hip/hip.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define EXPORT            __attribute__((visibility("default")))
#define STREAMS           1024 /* slots, a power of two; at most 3/4 of them are used */
#define HIP_ERROR_UNKNOWN 999
#define CATEGORY          "cuda_runtime" /* as in the traces of PyTorch for ROCm */
#define SUBMITS(name)     (strstr(name, "Launch") || strstr(name, "Memcpy") || strstr(name, "Memset"))
#define EXT_MODULE_LAUNCH \
    "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j"

static __thread struct rp_hip_call current;
static _Atomic uint32_t links;
static struct {
    const void *handle;
    uint32_t number;
} streams[STREAMS];
static uint32_t nstreams;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct rp_hip_call *rp_hip_current(void)
{
    return &current;
}

/* Links are below 2^32, which keeps correlations of processes apart, and differ from CUDA's and
   OpenCL's. */
uint64_t rp_hip_link(void)
{
    return UINT64_C(0x40000000) + (atomic_fetch_add(&links, 1) & 0x3fffffff);
}

void rp_hip_call_put(const char *name, const char *category, uint64_t began, uint64_t link)
{
    rp_hip.cap->span(&(struct rp_capture_span){.kind = RP_CTF_KIND_RUNTIME,
                                               .timebase = RP_CTF_TIME_TICKS,
                                               .begin = began,
                                               .end = rp_hip.cap->now(),
                                               .name = name,
                                               .category = category,
                                               .device = RP_CTF_SPAN_DEVICE,
                                               .link = link});
}

static uint64_t stream_number(const void *handle)
{
    uint32_t k = (uint32_t)((uint64_t)(uintptr_t)handle * UINT64_C(0x9e3779b97f4a7c15) >> 32);
    uint64_t number = STREAMS - 1;

    if (!handle)
        return 0;
    pthread_mutex_lock(&lock);
    for (k &= STREAMS - 1; streams[k].handle && streams[k].handle != handle;)
        k = (k + 1) & (STREAMS - 1);
    if (!streams[k].handle && nstreams < STREAMS / 4 * 3) {
        streams[k].handle = handle;
        streams[k].number = ++nstreams;
    }
    if (streams[k].handle)
        number = streams[k].number;
    pthread_mutex_unlock(&lock);
    return number;
}

/* Every call that begins also ends. `submits`: it may submit device work. */
static void call_begin(const char *name, bool submits, const void *stream)
{
    if (current.depth++ || !rp_hip_begin())
        return;
    if (!rp_hip.uses_hip)
        rp_hip.uses_hip = true;
    if (!rp_hip.cap->ready())
        return;
    current.link = rp_hip_link();
    current.stream = stream_number(stream);
    current.submitted = false;
    if (submits)
        current.began = rp_hip.cap->now();
    else if (!rp_hip.no_calls)
        rp_hip.cap->enter(&(struct rp_capture_enter){
            .kind = RP_CTF_KIND_RUNTIME, .name = name, .category = CATEGORY, .link = current.link});
}

static void call_end(const char *name, bool submits, int code)
{
    uint64_t link = current.link;

    if (--current.depth || !link)
        return;
    current.link = 0;
    if (rp_hip.no_calls)
        return;
    if (submits)
        rp_hip_call_put(name, CATEGORY, current.began, current.submitted ? link : 0);
    else
        rp_hip.cap->leave(0, code);
}

struct dim3 {
    uint32_t x, y, z;
};

/* F(name, its stream or NULL, parameters, arguments) */
#define HIP_CALLS(F)                                                                               \
    F(hipLaunchKernel, stream,                                                                     \
      (const void *f, struct dim3 grid, struct dim3 block, void **args, size_t shared,             \
       void *stream),                                                                              \
      (f, grid, block, args, shared, stream))                                                      \
    F(hipLaunchKernel_spt, stream,                                                                 \
      (const void *f, struct dim3 grid, struct dim3 block, void **args, size_t shared,             \
       void *stream),                                                                              \
      (f, grid, block, args, shared, stream))                                                      \
    F(hipExtLaunchKernel, stream,                                                                  \
      (const void *f, struct dim3 grid, struct dim3 block, void **args, size_t shared,             \
       void *stream, void *start, void *stop, int flags),                                          \
      (f, grid, block, args, shared, stream, start, stop, flags))                                  \
    F(hipLaunchCooperativeKernel, stream,                                                          \
      (const void *f, struct dim3 grid, struct dim3 block, void **args, uint32_t shared,           \
       void *stream),                                                                              \
      (f, grid, block, args, shared, stream))                                                      \
    F(hipModuleLaunchKernel, stream,                                                               \
      (void *f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz,      \
       uint32_t shared, void *stream, void **args, void **extra),                                  \
      (f, gx, gy, gz, bx, by, bz, shared, stream, args, extra))                                    \
    F(hipGraphLaunch, stream, (void *graph, void *stream), (graph, stream))                        \
    F(hipMemcpy, NULL, (void *to, const void *from, size_t n, int kind), (to, from, n, kind))      \
    F(hipMemcpy_spt, NULL, (void *to, const void *from, size_t n, int kind), (to, from, n, kind))  \
    F(hipMemcpyAsync, stream, (void *to, const void *from, size_t n, int kind, void *stream),      \
      (to, from, n, kind, stream))                                                                 \
    F(hipMemcpyAsync_spt, stream, (void *to, const void *from, size_t n, int kind, void *stream),  \
      (to, from, n, kind, stream))                                                                 \
    F(hipMemcpyWithStream, stream, (void *to, const void *from, size_t n, int kind, void *stream), \
      (to, from, n, kind, stream))                                                                 \
    F(hipMemcpyHtoD, NULL, (void *to, void *from, size_t n), (to, from, n))                        \
    F(hipMemcpyDtoH, NULL, (void *to, void *from, size_t n), (to, from, n))                        \
    F(hipMemcpyDtoD, NULL, (void *to, void *from, size_t n), (to, from, n))                        \
    F(hipMemcpyHtoDAsync, stream, (void *to, void *from, size_t n, void *stream),                  \
      (to, from, n, stream))                                                                       \
    F(hipMemcpyDtoHAsync, stream, (void *to, void *from, size_t n, void *stream),                  \
      (to, from, n, stream))                                                                       \
    F(hipMemcpyDtoDAsync, stream, (void *to, void *from, size_t n, void *stream),                  \
      (to, from, n, stream))                                                                       \
    F(hipMemcpyPeer, NULL, (void *to, int to_id, const void *from, int from_id, size_t n),         \
      (to, to_id, from, from_id, n))                                                               \
    F(hipMemcpyPeerAsync, stream,                                                                  \
      (void *to, int to_id, const void *from, int from_id, size_t n, void *stream),                \
      (to, to_id, from, from_id, n, stream))                                                       \
    F(hipMemcpy2D, NULL,                                                                           \
      (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t w, size_t h,         \
       int kind),                                                                                  \
      (to, to_pitch, from, from_pitch, w, h, kind))                                                \
    F(hipMemcpy2DAsync, stream,                                                                    \
      (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t w, size_t h,         \
       int kind, void *stream),                                                                    \
      (to, to_pitch, from, from_pitch, w, h, kind, stream))                                        \
    F(hipMemcpyToSymbol, NULL,                                                                     \
      (const void *to, const void *from, size_t n, size_t offset, int kind),                       \
      (to, from, n, offset, kind))                                                                 \
    F(hipMemcpyFromSymbol, NULL, (void *to, const void *from, size_t n, size_t offset, int kind),  \
      (to, from, n, offset, kind))                                                                 \
    F(hipMemcpyToSymbolAsync, stream,                                                              \
      (const void *to, const void *from, size_t n, size_t offset, int kind, void *stream),         \
      (to, from, n, offset, kind, stream))                                                         \
    F(hipMemcpyFromSymbolAsync, stream,                                                            \
      (void *to, const void *from, size_t n, size_t offset, int kind, void *stream),               \
      (to, from, n, offset, kind, stream))                                                         \
    F(hipMemset, NULL, (void *to, int value, size_t n), (to, value, n))                            \
    F(hipMemsetAsync, stream, (void *to, int value, size_t n, void *stream),                       \
      (to, value, n, stream))                                                                      \
    F(hipMemsetD8, NULL, (void *to, uint8_t value, size_t n), (to, value, n))                      \
    F(hipMemsetD8Async, stream, (void *to, uint8_t value, size_t n, void *stream),                 \
      (to, value, n, stream))                                                                      \
    F(hipMemsetD16, NULL, (void *to, uint16_t value, size_t n), (to, value, n))                    \
    F(hipMemsetD16Async, stream, (void *to, uint16_t value, size_t n, void *stream),               \
      (to, value, n, stream))                                                                      \
    F(hipMemsetD32, NULL, (void *to, int value, size_t n), (to, value, n))                         \
    F(hipMemsetD32Async, stream, (void *to, int value, size_t n, void *stream),                    \
      (to, value, n, stream))                                                                      \
    F(hipMemset2D, NULL, (void *to, size_t pitch, int value, size_t w, size_t h),                  \
      (to, pitch, value, w, h))                                                                    \
    F(hipMemset2DAsync, stream,                                                                    \
      (void *to, size_t pitch, int value, size_t w, size_t h, void *stream),                       \
      (to, pitch, value, w, h, stream))                                                            \
    F(hipDeviceSynchronize, NULL, (void), ())                                                      \
    F(hipCtxSynchronize, NULL, (void), ())                                                         \
    F(hipStreamSynchronize, stream, (void *stream), (stream))                                      \
    F(hipStreamSynchronize_spt, stream, (void *stream), (stream))                                  \
    F(hipEventSynchronize, NULL, (void *event), (event))                                           \
    F(hipEventRecord, stream, (void *event, void *stream), (event, stream))                        \
    F(hipStreamWaitEvent, stream, (void *stream, void *event, uint32_t flags),                     \
      (stream, event, flags))                                                                      \
    F(hipMalloc, NULL, (void **out, size_t n), (out, n))                                           \
    F(hipFree, NULL, (void *at), (at))                                                             \
    F(hipHostMalloc, NULL, (void **out, size_t n, uint32_t flags), (out, n, flags))                \
    F(hipHostFree, NULL, (void *at), (at))                                                         \
    F(hipHostRegister, NULL, (void *at, size_t n, uint32_t flags), (at, n, flags))                 \
    F(hipHostUnregister, NULL, (void *at), (at))                                                   \
    F(hipMallocManaged, NULL, (void **out, size_t n, uint32_t flags), (out, n, flags))             \
    F(hipMallocAsync, stream, (void **out, size_t n, void *stream), (out, n, stream))              \
    F(hipFreeAsync, stream, (void *at, void *stream), (at, stream))                                \
    F(hipStreamCreate, NULL, (void **out), (out))                                                  \
    F(hipStreamCreateWithFlags, NULL, (void **out, uint32_t flags), (out, flags))                  \
    F(hipStreamCreateWithPriority, NULL, (void **out, uint32_t flags, int priority),               \
      (out, flags, priority))                                                                      \
    F(hipStreamDestroy, stream, (void *stream), (stream))                                          \
    F(hipStreamAddCallback, stream, (void *stream, void *call, void *data, uint32_t flags),        \
      (stream, call, data, flags))                                                                 \
    F(hipLaunchHostFunc, stream, (void *stream, void *call, void *data), (stream, call, data))     \
    F(hipStreamBeginCapture, stream, (void *stream, int mode), (stream, mode))                     \
    F(hipStreamEndCapture, stream, (void *stream, void **graph), (stream, graph))                  \
    F(hipGraphInstantiate, NULL, (void **out, void *graph, void **node, char *log, size_t size),   \
      (out, graph, node, log, size))                                                               \
    F(hipModuleLoad, NULL, (void **out, const char *path), (out, path))                            \
    F(hipModuleLoadData, NULL, (void **out, const void *image), (out, image))

#define HIP_CALL(name, symbol, stream, params, args)                                               \
    {                                                                                              \
        static __typeof__(&name) next;                                                             \
        int code = HIP_ERROR_UNKNOWN;                                                              \
                                                                                                   \
        if (!next)                                                                                 \
            *(void **)&next = rp_capture_next(symbol, __builtin_return_address(0), "libamdhip64"); \
        call_begin(#name, SUBMITS(#name), stream);                                                 \
        if (next)                                                                                  \
            code = next args;                                                                      \
        call_end(#name, SUBMITS(#name), code);                                                     \
        return code;                                                                               \
    }

#define BY_NAME(name, stream, params, args) \
    EXPORT int name params;                 \
    int name params HIP_CALL(name, #name, stream, params, args)
HIP_CALLS(BY_NAME)

/* A C++ function. */
EXPORT int hipExtModuleLaunchKernel(void *f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx,
                                    uint32_t by, uint32_t bz, size_t shared, void *stream,
                                    void **args, void **extra, void *start, void *stop,
                                    uint32_t flags) __asm__(EXT_MODULE_LAUNCH);
int hipExtModuleLaunchKernel(void *f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx,
                             uint32_t by, uint32_t bz, size_t shared, void *stream, void **args,
                             void **extra, void *start, void *stop, uint32_t flags)
    HIP_CALL(hipExtModuleLaunchKernel, EXT_MODULE_LAUNCH, stream, (),
             (f, gx, gy, gz, bx, by, bz, shared, stream, args, extra, start, stop, flags))
