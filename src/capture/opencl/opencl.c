/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opencl library: a layer that the loader puts in front of every platform (OPENCL_LAYERS). It
 * is also in LD_PRELOAD, for loaders without layers: the functions below then intercept the
 * program's calls by symbol name and forward them. If the layer is in use, these only forward.
 *
 * Queues are created with profiling enabled: otherwise a device reports no times. If the program
 * does not request a command's event, the layer does.
 */
#include "capture/opencl/opencl.h"
#include "capture/core/next.h"

#include <pthread.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct rp_opencl rp_opencl;
static bool layered;

/* -------------------------------------------------------------------------- commands */

/* The argument `kernel` of a command that launches one, else NULL. */
#define KERNEL_OF(kind) KERNEL_##kind
#define KERNEL_KERNEL   kernel
#define KERNEL_MEMCPY   NULL
#define KERNEL_MEMSET   NULL
#define KERNEL_SYNC     NULL
#define KERNEL_OTHER    NULL

static bool is_recorded(void)
{
    return rp_opencl.cap && rp_opencl.cap->ready();
}

struct sizes {
    uint32_t dims;
    const size_t *global, *local;
};

#define COMMAND(name, place, kind, bytes, params, args)                                          \
    static int32_t layer_##name params                                                           \
    {                                                                                            \
        struct sizes sizes = SIZES_##name;                                                       \
        struct rp_opencl_command *c =                                                            \
            is_recorded()                                                                        \
                ? rp_opencl_begin("cl" #name, RP_CTF_KIND_##kind, queue, bytes, KERNEL_OF(kind), \
                                  sizes.dims, sizes.global, sizes.local)                         \
                : NULL;                                                                          \
        void *own = NULL, **ev = c && !event ? &own : event;                                     \
        int32_t code = rp_opencl.name args;                                                      \
                                                                                                 \
        rp_opencl_end(c, code, ev ? *ev : NULL, !event);                                         \
        return code;                                                                             \
    }

#define NONE          \
    {                 \
        0, NULL, NULL \
    }
#define SIZES_EnqueueNDRangeKernel \
    {                              \
        dims, global, local        \
    }
#define SIZES_EnqueueTask                NONE
#define SIZES_EnqueueReadBuffer          NONE
#define SIZES_EnqueueWriteBuffer         NONE
#define SIZES_EnqueueCopyBuffer          NONE
#define SIZES_EnqueueFillBuffer          NONE
#define SIZES_EnqueueReadBufferRect      NONE
#define SIZES_EnqueueWriteBufferRect     NONE
#define SIZES_EnqueueCopyBufferRect      NONE
#define SIZES_EnqueueReadImage           NONE
#define SIZES_EnqueueWriteImage          NONE
#define SIZES_EnqueueCopyImage           NONE
#define SIZES_EnqueueCopyImageToBuffer   NONE
#define SIZES_EnqueueCopyBufferToImage   NONE
#define SIZES_EnqueueUnmapMemObject      NONE
#define SIZES_EnqueueMigrateMemObjects   NONE
#define SIZES_EnqueueMarkerWithWaitList  NONE
#define SIZES_EnqueueBarrierWithWaitList NONE
#define SIZES_EnqueueSVMMemcpy           NONE
#define SIZES_EnqueueSVMMemFill          NONE
#define SIZES_EnqueueSVMMap              NONE
#define SIZES_EnqueueSVMUnmap            NONE
#define SIZES_EnqueueSVMMigrateMem       NONE
#define SIZES_EnqueueSVMFree             NONE
#define SIZES_EnqueueFillImage           NONE
#define SIZES_EnqueueNativeKernel        NONE
#define SIZES_EnqueueMarker              NONE

RP_CL_COMMANDS(COMMAND)

static void *layer_EnqueueMapBuffer(void *queue, void *buffer, uint32_t blocking, uint64_t flags,
                                    size_t offset, size_t size, uint32_t nwaits, void *const *waits,
                                    void **event, int32_t *code)
{
    struct rp_opencl_command *c = is_recorded()
                                      ? rp_opencl_begin("clEnqueueMapBuffer", RP_CTF_KIND_MEMCPY,
                                                        queue, size, NULL, 0, NULL, NULL)
                                      : NULL;
    void *own = NULL, **ev = c && !event ? &own : event;
    int32_t result = 0;
    void *mapped = rp_opencl.EnqueueMapBuffer(queue, buffer, blocking, flags, offset, size, nwaits,
                                              waits, ev, &result);

    if (code)
        *code = result;
    rp_opencl_end(c, result, ev ? *ev : NULL, !event);
    return mapped;
}

static void *layer_EnqueueMapImage(void *queue, void *image, uint32_t blocking, uint64_t flags,
                                   const size_t *origin, const size_t *region, size_t *row,
                                   size_t *slice, uint32_t nwaits, void *const *waits, void **event,
                                   int32_t *code)
{
    struct rp_opencl_command *c = is_recorded()
                                      ? rp_opencl_begin("clEnqueueMapImage", RP_CTF_KIND_MEMCPY,
                                                        queue, 0, NULL, 0, NULL, NULL)
                                      : NULL;
    void *own = NULL, **ev = c && !event ? &own : event;
    int32_t result = 0;
    void *mapped = rp_opencl.EnqueueMapImage(queue, image, blocking, flags, origin, region, row,
                                             slice, nwaits, waits, ev, &result);

    if (code)
        *code = result;
    rp_opencl_end(c, result, ev ? *ev : NULL, !event);
    return mapped;
}

/* -------------------------------------------------------------------------- other calls */

static bool enter_call(const char *call)
{
    if (!is_recorded())
        return false;
    rp_opencl.cap->enter(&(struct rp_capture_enter){
        .kind = RP_CTF_KIND_RUNTIME, .name = call, .category = "opencl"});
    return true;
}

#define CALL(name, place, result, params, args) \
    static result layer_##name params           \
    {                                           \
        bool entered = enter_call("cl" #name);  \
        result code;                            \
                                                \
        code = rp_opencl.name args;             \
        if (entered)                            \
            rp_opencl.cap->leave(0, code);      \
        return code;                            \
    }
RP_CL_CALLS(CALL)

static void *layer_CreateCommandQueue(void *context, void *device, uint64_t properties,
                                      int32_t *code)
{
    if (rp_opencl.cap)
        properties |= RP_CL_QUEUE_PROFILING;
    return rp_opencl.CreateCommandQueue(context, device, properties, code);
}

/* Copies the list of pairs with the profiling bit set, adding a pair for it if there is none. */
static void *layer_CreateCommandQueueWithProperties(void *context, void *device,
                                                    const uint64_t *properties, int32_t *code)
{
    uint64_t changed[64] = {0};
    size_t n = 0;
    bool found = false;

    while (properties && properties[n] && n + 4 < sizeof changed / sizeof changed[0]) {
        changed[n] = properties[n];
        changed[n + 1] = properties[n + 1];
        if (changed[n] == RP_CL_QUEUE_PROPERTIES) {
            changed[n + 1] |= RP_CL_QUEUE_PROFILING;
            found = true;
        }
        n += 2;
    }
    if (!rp_opencl.cap || (properties && properties[n])) /* too long: unchanged */
        return rp_opencl.CreateCommandQueueWithProperties(context, device, properties, code);
    if (!found) {
        changed[n] = RP_CL_QUEUE_PROPERTIES;
        changed[n + 1] = RP_CL_QUEUE_PROFILING;
    }
    return rp_opencl.CreateCommandQueueWithProperties(context, device, changed, code);
}

static int32_t layer_SetKernelArg(void *kernel, uint32_t index, size_t size, const void *value)
{
    int32_t code = rp_opencl.SetKernelArg(kernel, index, size, value);

    if (!code && rp_opencl.cap)
        rp_opencl_kernel_set(kernel, index, size, value);
    return code;
}

static int32_t layer_SetKernelArgSVMPointer(void *kernel, uint32_t index, const void *value)
{
    int32_t code = rp_opencl.SetKernelArgSVMPointer(kernel, index, value);

    if (!code && rp_opencl.cap)
        rp_opencl_kernel_set(kernel, index, sizeof value, &value);
    return code;
}

static int32_t layer_ReleaseKernel(void *kernel)
{
    uint32_t references = 0;

    if (rp_opencl.cap &&
        !rp_opencl.GetKernelInfo(kernel, RP_CL_KERNEL_REFERENCES, sizeof references, &references,
                                 NULL) &&
        references <= 1)
        rp_opencl_kernel_forget(kernel);
    return rp_opencl.ReleaseKernel(kernel);
}

/* -------------------------------------------------------------------------- the layer */

static void opencl_begin(void)
{
    rp_opencl.cap = rp_capture_get();
    if (rp_opencl.cap)
        rp_opencl.cap->source("opencl", NULL, rp_opencl_wait_for_all);
}

EXPORT int32_t clGetLayerInfo(uint32_t what, size_t size, void *value, size_t *size_out);
EXPORT int32_t clInitLayer(uint32_t n, void *const *below, uint32_t *n_out, void *const **out);
EXPORT int32_t clInitLayerWithProperties(uint32_t n, void *const *below, uint32_t *n_out,
                                         void *const **out, const void *properties);
EXPORT int32_t clDeinitLayer(void);

int32_t clGetLayerInfo(uint32_t what, size_t size, void *value, size_t *size_out)
{
    static const char name[] = "reprise";
    const uint32_t version = RP_CL_LAYER_API_VERSION_100;
    const void *from = what == RP_CL_LAYER_NAME ? (const void *)name : &version;
    size_t n = what == RP_CL_LAYER_NAME ? sizeof name : sizeof version;

    if ((what != RP_CL_LAYER_NAME && what != RP_CL_LAYER_API_VERSION) || (value && size < n))
        return RP_CL_INVALID_VALUE;
    if (value)
        memcpy(value, from, n);
    if (size_out)
        *size_out = n;
    return 0;
}

int32_t clInitLayer(uint32_t n, void *const *below, uint32_t *n_out, void *const **out)
{
    static void *table[RP_CL_TABLE_MAX];
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint32_t kept = n < RP_CL_TABLE_MAX ? n : RP_CL_TABLE_MAX;

    if (!below || !n_out || !out || n < 107) /* OpenCL 1.2 has all functions that are needed */
        return RP_CL_INVALID_VALUE;
    memcpy(table, below, kept * sizeof *table);
#define TAKE(name, place, ...) \
    if ((place) < kept)        \
        *(void **)&rp_opencl.name = table[place];
#define REPLACE(name, place, ...)       \
    if ((place) < kept && table[place]) \
        table[place] = (void *)layer_##name;
    RP_CL_QUERIES(TAKE)
    RP_CL_COMMANDS(TAKE)
    RP_CL_CALLS(TAKE)
    RP_CL_OWN(TAKE)
    RP_CL_COMMANDS(REPLACE)
    RP_CL_CALLS(REPLACE)
    RP_CL_OWN(REPLACE)
    pthread_once(&once, opencl_begin);
    layered = true;
    *n_out = kept;
    *out = table;
    return 0;
}

int32_t clInitLayerWithProperties(uint32_t n, void *const *below, uint32_t *n_out,
                                  void *const **out, const void *properties)
{
    (void)properties;
    return clInitLayer(n, below, n_out, out);
}

int32_t clDeinitLayer(void)
{
    rp_opencl_wait_for_all();
    return 0;
}

/* -------------------------------------------------------------------------- interception by symbol
 * name */

/* Finds the function that the caller would have called without this library; an extension module
   may bring its own loader under its own name. */
static void *next_function(const char *name, const void *caller)
{
    void *found = rp_capture_next(name, caller, "libOpenCL.so.1");

    return found ? found : rp_capture_next(name, caller, "libOpenCL");
}

static const void *first_caller;

/* If a function is missing that recording needs, nothing is recorded. */
static void find_next(void)
{
    bool complete = true;

#define FIND(name, ...)  *(void **)&rp_opencl.name = next_function("cl" #name, first_caller);
#define CHECK(name, ...) complete = complete && rp_opencl.name;
    RP_CL_QUERIES(FIND)
    RP_CL_COMMANDS(FIND)
    RP_CL_CALLS(FIND)
    RP_CL_OWN(FIND)
    RP_CL_QUERIES(CHECK)
    if (complete)
        opencl_begin();
}

/* Whether calls are intercepted by symbol name; looks up the next functions. */
static bool is_by_name(const void *caller)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (layered)
        return false;
    if (!first_caller)
        first_caller = caller;
    pthread_once(&once, find_next);
    return true;
}

/* `otherwise` is returned if there is no next function. */
#define BY_NAME(name, result, params, args, otherwise)           \
    EXPORT result cl##name params;                               \
    result cl##name params                                       \
    {                                                            \
        const void *caller = __builtin_return_address(0);        \
        static __typeof__(&cl##name) next;                       \
                                                                 \
        if (is_by_name(caller) && rp_opencl.name)                \
            return layer_##name args;                            \
        if (!next)                                               \
            *(void **)&next = next_function("cl" #name, caller); \
        return next ? next args : (otherwise);                   \
    }
#define ev event
#define COMMAND_BY_NAME(name, place, kind, bytes, params, args) \
    BY_NAME(name, int32_t, params, args, RP_CL_INVALID_OPERATION)
#define CALL_BY_NAME(name, place, result, params, args) \
    BY_NAME(name, result, params, args, RP_CL_INVALID_OPERATION)
#define OWN_BY_NAME(name, place, result, params, args) \
    BY_NAME(name, result, params, args, (result)0)

RP_CL_COMMANDS(COMMAND_BY_NAME)
RP_CL_CALLS(CALL_BY_NAME)
RP_CL_OWN(OWN_BY_NAME)
