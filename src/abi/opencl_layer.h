/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The part of OpenCL and its loader layers that is used. A layer gets the function table of the
 * next layer and returns its own. Tables grow at their end, so a function is an index, and tables
 * may be shorter or longer than ours. Handles are pointers.
 */
#include <stddef.h>
#include <stdint.h>

enum {
    RP_CL_LAYER_API_VERSION = 0x4240,
    RP_CL_LAYER_NAME = 0x4241,
    RP_CL_LAYER_API_VERSION_100 = 100,
    RP_CL_INVALID_VALUE = -30,
    RP_CL_INVALID_OPERATION = -59,
    RP_CL_DEVICE_NAME = 0x102b,
    RP_CL_QUEUE_DEVICE = 0x1091,
    RP_CL_QUEUE_PROPERTIES = 0x1093,
    RP_CL_QUEUE_PROFILING = 2, /* a bit of the properties */
    RP_CL_KERNEL_NAME = 0x1190,
    RP_CL_KERNEL_REFERENCES = 0x1192,
    RP_CL_TIME_QUEUED = 0x1280, /* then submitted, started, ended */
    RP_CL_COMPLETE = 0
};

#define RP_CL_TABLE_MAX 256 /* number of entries; the largest known table has 150 */

typedef void rp_cl_event_callback(void *event, int32_t status, void *user);
typedef void rp_cl_svm_free(void *queue, uint32_t n, void **at, void *user);

#define RP_CL_TAIL uint32_t nwaits, void *const *waits, void **event

/* FUNCTION(name without "cl", table index, result, parameters): functions that are called, but not
   intercepted. */
#define RP_CL_QUERIES(FUNCTION)                                                                \
    FUNCTION(GetDeviceInfo, 3, int32_t, (void *, uint32_t, size_t, void *, size_t *))          \
    FUNCTION(GetCommandQueueInfo, 12, int32_t, (void *, uint32_t, size_t, void *, size_t *))   \
    FUNCTION(GetKernelInfo, 39, int32_t, (void *, uint32_t, size_t, void *, size_t *))         \
    FUNCTION(RetainEvent, 43, int32_t, (void *))                                               \
    FUNCTION(ReleaseEvent, 44, int32_t, (void *))                                              \
    FUNCTION(GetEventProfilingInfo, 45, int32_t, (void *, uint32_t, size_t, void *, size_t *)) \
    FUNCTION(SetEventCallback, 81, int32_t, (void *, int32_t, rp_cl_event_callback *, void *))

/* COMMAND(name, index, kind, bytes, parameters, arguments): intercepted functions that return an
   event. The parameter names are ours; `event` is forwarded as `ev`. */
#define RP_CL_COMMANDS(COMMAND)                                                                    \
    COMMAND(EnqueueNDRangeKernel, 59, KERNEL, 0,                                                   \
            (void *queue, void *kernel, uint32_t dims, const size_t *offset, const size_t *global, \
             const size_t *local, RP_CL_TAIL),                                                     \
            (queue, kernel, dims, offset, global, local, nwaits, waits, ev))                       \
    COMMAND(EnqueueTask, 60, KERNEL, 0, (void *queue, void *kernel, RP_CL_TAIL),                   \
            (queue, kernel, nwaits, waits, ev))                                                    \
    COMMAND(EnqueueReadBuffer, 48, MEMCPY, size,                                                   \
            (void *queue, void *buffer, uint32_t blocking, size_t offset, size_t size, void *to,   \
             RP_CL_TAIL),                                                                          \
            (queue, buffer, blocking, offset, size, to, nwaits, waits, ev))                        \
    COMMAND(EnqueueWriteBuffer, 49, MEMCPY, size,                                                  \
            (void *queue, void *buffer, uint32_t blocking, size_t offset, size_t size,             \
             const void *from, RP_CL_TAIL),                                                        \
            (queue, buffer, blocking, offset, size, from, nwaits, waits, ev))                      \
    COMMAND(EnqueueCopyBuffer, 50, MEMCPY, size,                                                   \
            (void *queue, void *from, void *to, size_t from_at, size_t to_at, size_t size,         \
             RP_CL_TAIL),                                                                          \
            (queue, from, to, from_at, to_at, size, nwaits, waits, ev))                            \
    COMMAND(EnqueueFillBuffer, 102, MEMSET, size,                                                  \
            (void *queue, void *buffer, const void *pattern, size_t pattern_size, size_t offset,   \
             size_t size, RP_CL_TAIL),                                                             \
            (queue, buffer, pattern, pattern_size, offset, size, nwaits, waits, ev))               \
    COMMAND(EnqueueReadBufferRect, 86, MEMCPY, region[0] * region[1] * region[2],                  \
            (void *queue, void *buffer, uint32_t blocking, const size_t *origin,                   \
             const size_t *host_origin, const size_t *region, size_t row, size_t slice,            \
             size_t host_row, size_t host_slice, void *to, RP_CL_TAIL),                            \
            (queue, buffer, blocking, origin, host_origin, region, row, slice, host_row,           \
             host_slice, to, nwaits, waits, ev))                                                   \
    COMMAND(EnqueueWriteBufferRect, 87, MEMCPY, region[0] * region[1] * region[2],                 \
            (void *queue, void *buffer, uint32_t blocking, const size_t *origin,                   \
             const size_t *host_origin, const size_t *region, size_t row, size_t slice,            \
             size_t host_row, size_t host_slice, const void *from, RP_CL_TAIL),                    \
            (queue, buffer, blocking, origin, host_origin, region, row, slice, host_row,           \
             host_slice, from, nwaits, waits, ev))                                                 \
    COMMAND(EnqueueCopyBufferRect, 88, MEMCPY, region[0] * region[1] * region[2],                  \
            (void *queue, void *from, void *to, const size_t *from_at, const size_t *to_at,        \
             const size_t *region, size_t from_row, size_t from_slice, size_t to_row,              \
             size_t to_slice, RP_CL_TAIL),                                                         \
            (queue, from, to, from_at, to_at, region, from_row, from_slice, to_row, to_slice,      \
             nwaits, waits, ev))                                                                   \
    COMMAND(EnqueueReadImage, 51, MEMCPY, 0,                                                       \
            (void *queue, void *image, uint32_t blocking, const size_t *origin,                    \
             const size_t *region, size_t row, size_t slice, void *to, RP_CL_TAIL),                \
            (queue, image, blocking, origin, region, row, slice, to, nwaits, waits, ev))           \
    COMMAND(EnqueueWriteImage, 52, MEMCPY, 0,                                                      \
            (void *queue, void *image, uint32_t blocking, const size_t *origin,                    \
             const size_t *region, size_t row, size_t slice, const void *from, RP_CL_TAIL),        \
            (queue, image, blocking, origin, region, row, slice, from, nwaits, waits, ev))         \
    COMMAND(EnqueueCopyImage, 53, MEMCPY, 0,                                                       \
            (void *queue, void *from, void *to, const size_t *from_at, const size_t *to_at,        \
             const size_t *region, RP_CL_TAIL),                                                    \
            (queue, from, to, from_at, to_at, region, nwaits, waits, ev))                          \
    COMMAND(EnqueueCopyImageToBuffer, 54, MEMCPY, 0,                                               \
            (void *queue, void *from, void *to, const size_t *origin, const size_t *region,        \
             size_t offset, RP_CL_TAIL),                                                           \
            (queue, from, to, origin, region, offset, nwaits, waits, ev))                          \
    COMMAND(EnqueueCopyBufferToImage, 55, MEMCPY, 0,                                               \
            (void *queue, void *from, void *to, size_t offset, const size_t *origin,               \
             const size_t *region, RP_CL_TAIL),                                                    \
            (queue, from, to, offset, origin, region, nwaits, waits, ev))                          \
    COMMAND(EnqueueUnmapMemObject, 58, MEMCPY, 0,                                                  \
            (void *queue, void *object, void *mapped, RP_CL_TAIL),                                 \
            (queue, object, mapped, nwaits, waits, ev))                                            \
    COMMAND(EnqueueMigrateMemObjects, 104, MEMCPY, 0,                                              \
            (void *queue, uint32_t n, void *const *objects, uint64_t flags, RP_CL_TAIL),           \
            (queue, n, objects, flags, nwaits, waits, ev))                                         \
    COMMAND(EnqueueMarkerWithWaitList, 105, SYNC, 0, (void *queue, RP_CL_TAIL),                    \
            (queue, nwaits, waits, ev))                                                            \
    COMMAND(EnqueueBarrierWithWaitList, 106, SYNC, 0, (void *queue, RP_CL_TAIL),                   \
            (queue, nwaits, waits, ev))                                                            \
    COMMAND(EnqueueSVMMemcpy, 129, MEMCPY, size,                                                   \
            (void *queue, uint32_t blocking, void *to, const void *from, size_t size, RP_CL_TAIL), \
            (queue, blocking, to, from, size, nwaits, waits, ev))                                  \
    COMMAND(EnqueueSVMMemFill, 130, MEMSET, size,                                                  \
            (void *queue, void *to, const void *pattern, size_t pattern_size, size_t size,         \
             RP_CL_TAIL),                                                                          \
            (queue, to, pattern, pattern_size, size, nwaits, waits, ev))                           \
    COMMAND(EnqueueSVMMap, 131, MEMCPY, size,                                                      \
            (void *queue, uint32_t blocking, uint64_t flags, void *at, size_t size, RP_CL_TAIL),   \
            (queue, blocking, flags, at, size, nwaits, waits, ev))                                 \
    COMMAND(EnqueueSVMUnmap, 132, MEMCPY, 0, (void *queue, void *at, RP_CL_TAIL),                  \
            (queue, at, nwaits, waits, ev))                                                        \
    COMMAND(EnqueueSVMMigrateMem, 139, MEMCPY, 0,                                                  \
            (void *queue, uint32_t n, const void **at, const size_t *bytes, uint64_t flags,        \
             RP_CL_TAIL),                                                                          \
            (queue, n, at, bytes, flags, nwaits, waits, ev))                                       \
    COMMAND(EnqueueSVMFree, 128, OTHER, 0,                                                         \
            (void *queue, uint32_t n, void **at, rp_cl_svm_free *release, void *user, RP_CL_TAIL), \
            (queue, n, at, release, user, nwaits, waits, ev))                                      \
    COMMAND(EnqueueFillImage, 103, MEMSET, 0,                                                      \
            (void *queue, void *image, const void *color, const size_t *origin,                    \
             const size_t *region, RP_CL_TAIL),                                                    \
            (queue, image, color, origin, region, nwaits, waits, ev))                              \
    COMMAND(EnqueueNativeKernel, 61, OTHER, 0,                                                     \
            (void *queue, void (*function)(void *), void *args, size_t size, uint32_t n,           \
             void *const *objects, const void **places, RP_CL_TAIL),                               \
            (queue, function, args, size, n, objects, places, nwaits, waits, ev))                  \
    COMMAND(EnqueueMarker, 62, SYNC, 0, (void *queue, void **event), (queue, ev))

/* CALL(name, index, result, parameters, arguments): functions of which only the host time is
   recorded. */
#define RP_CL_CALLS(CALL)                                                                   \
    CALL(WaitForEvents, 41, int32_t, (uint32_t n, void *const *events), (n, events))        \
    CALL(Flush, 46, int32_t, (void *queue), (queue))                                        \
    CALL(Finish, 47, int32_t, (void *queue), (queue))                                       \
    CALL(EnqueueBarrier, 64, int32_t, (void *queue), (queue))                               \
    CALL(EnqueueWaitForEvents, 63, int32_t, (void *queue, uint32_t n, void *const *events), \
         (queue, n, events))                                                                \
    CALL(BuildProgram, 30, int32_t,                                                         \
         (void *program, uint32_t n, void *const *devices, const char *options,             \
          void (*done)(void *, void *), void *user),                                        \
         (program, n, devices, options, done, user))

/* OWN(name, index, result, parameters, arguments): functions that each need a wrapper of their
   own. */
#define RP_CL_OWN(OWN)                                                                             \
    OWN(CreateCommandQueue, 9, void *,                                                             \
        (void *context, void *device, uint64_t properties, int32_t *code),                         \
        (context, device, properties, code))                                                       \
    OWN(CreateCommandQueueWithProperties, 123, void *,                                             \
        (void *context, void *device, const uint64_t *properties, int32_t *code),                  \
        (context, device, properties, code))                                                       \
    OWN(SetKernelArg, 38, int32_t, (void *kernel, uint32_t index, size_t size, const void *value), \
        (kernel, index, size, value))                                                              \
    OWN(SetKernelArgSVMPointer, 134, int32_t, (void *kernel, uint32_t index, const void *value),   \
        (kernel, index, value))                                                                    \
    OWN(ReleaseKernel, 37, int32_t, (void *kernel), (kernel))                                      \
    OWN(EnqueueMapImage, 57, void *,                                                               \
        (void *queue, void *image, uint32_t blocking, uint64_t flags, const size_t *origin,        \
         const size_t *region, size_t *row, size_t *slice, uint32_t nwaits, void *const *waits,    \
         void **event, int32_t *code),                                                             \
        (queue, image, blocking, flags, origin, region, row, slice, nwaits, waits, event, code))   \
    OWN(EnqueueMapBuffer, 56, void *,                                                              \
        (void *queue, void *buffer, uint32_t blocking, uint64_t flags, size_t offset, size_t size, \
         uint32_t nwaits, void *const *waits, void **event, int32_t *code),                        \
        (queue, buffer, blocking, flags, offset, size, nwaits, waits, event, code))
