/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs that `doctor --test` records, one for each source of `record`. They are this program
 * started again, as a variable tells, so that nothing has to be compiled: each does what the source
 * observes in a user's program, with libraries of this machine, which it loads. For NVTX, NCCL and
 * SYCL, the library of the source is loaded and called as they do it, which needs no device.
 * Programs with PyTorch are scripts (selftest_files.c).
 */
#include "abi/nccl_profiler.h"
#include "abi/nvtx.h"
#include "abi/xpti.h"
#include "base/err.h"
#include "machine/doctor.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RANGE       "doctor test"
#define NVTX_RANGE  "doctor test of NVTX"
#define SYCL_CALL   "urQueueFinish"
#define SLEEP_NS    20000000
#define COMPUTE_NS  300000000
#define ALLOCATIONS 100
#define BYTES       4096

static bool find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);

    memcpy(function, &found, sizeof found);
    return found != NULL;
}

/* Loads the first library of the names (NULL ends them), for this whole process. */
static void *load(const char *const *names)
{
    void *library = NULL;

    for (; *names && !library; names++)
        library = dlopen(*names, RTLD_NOW | RTLD_GLOBAL);
    return library;
}

/* Fails for a reason other than the source. */
static enum rp_code missing(struct rp_err *err, const char *what)
{
    return rp_err_set(err, RP_MISSING, RP_SELFTEST_MISSING "%s", what);
}

static enum rp_code no_device(struct rp_err *err, const char *call, int code)
{
    return rp_err_set(err, RP_MISSING, RP_SELFTEST_MISSING "no device here can be used: %s is %d",
                      call, code);
}

/* ------------------------------------------------------------------ what needs no library */

static double cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static enum rp_code use_sleep(struct rp_err *err)
{
    (void)err;
    nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
    return RP_OK;
}

static enum rp_code use_memory(struct rp_err *err)
{
    (void)err;
    for (int i = 0; i < ALLOCATIONS; i++) {
        void *volatile memory = malloc(1 << 16);

        free(memory);
    }
    return RP_OK;
}

static enum rp_code use_processor(struct rp_err *err)
{
    double from = cpu_ns();

    (void)err;
    while (cpu_ns() - from < COMPUTE_NS)
        ;
    return RP_OK;
}

/* ------------------------------------------------------------------ NVTX, NCCL, SYCL */

/* Loads the library that the variable names, as NVTX and NCCL do. Returns NULL and RP_OK if it is
   not set. */
static enum rp_code load_tool(const char *variable, void **library, struct rp_err *err)
{
    const char *path = getenv(variable);

    *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    return !path || *library ? RP_OK
                             : rp_err_set(err, RP_MISSING, "cannot load '%s': %s", path, dlerror());
}

#define NVTX_SLOTS 16
#define NVTX_TABLE \
    "REPRISE_DOCTOR_NVTX" /* its address, because the interface has no argument for it */

static int nvtx_table(uint32_t module, rp_nvtx_function ***table, unsigned *size)
{
    const char *text = getenv(NVTX_TABLE);
    void *at = NULL;

    if (module != RP_NVTX_CORE || !text || sscanf(text, "%p", &at) != 1)
        return 0;
    *table = at;
    *size = NVTX_SLOTS;
    return 1;
}

static const void *nvtx_export(uint32_t id)
{
    static const struct rp_nvtx_callbacks callbacks = {sizeof callbacks, nvtx_table};

    return id == RP_NVTX_TABLE_CALLBACKS ? &callbacks : NULL;
}

static enum rp_code use_nvtx(struct rp_err *err)
{
    rp_nvtx_function functions[NVTX_SLOTS] = {NULL}, *table[NVTX_SLOTS];
    int (*start)(rp_nvtx_get_table *), (*push)(const char *), (*pop)(void);
    void *library;
    char address[32];

    for (int i = 0; i < NVTX_SLOTS; i++)
        table[i] = &functions[i];
    snprintf(address, sizeof address, "%p", (void *)table);
    setenv(NVTX_TABLE, address, 1);
    RP_TRY(load_tool("NVTX_INJECTION64_PATH", &library, err));
    if (!library)
        return RP_OK;
    if (!find(library, "InitializeInjectionNvtx2", &start) || start(nvtx_export) != 1 ||
        !functions[RP_NVTX_PUSH_A] || !functions[RP_NVTX_POP])
        return rp_err_set(err, RP_BUG, "the library of 'nvtx' does not take NVTX's functions");
    memcpy(&push, &functions[RP_NVTX_PUSH_A], sizeof push);
    memcpy(&pop, &functions[RP_NVTX_POP], sizeof pop);
    push(NVTX_RANGE);
    pop();
    return RP_OK;
}

static enum rp_code use_nccl(struct rp_err *err)
{
    struct rp_nccl_descr collective = {.type = RP_NCCL_COLL,
                                       .coll4 = {.func = "AllReduce",
                                                 .count = BYTES,
                                                 .datatype = "ncclFloat32",
                                                 .channels = 1,
                                                 .algorithm = "RING",
                                                 .protocol = "SIMPLE"}};
    void *library, *context = NULL, *handle = NULL;
    int mask = 0;

    RP_TRY(load_tool("NCCL_PROFILER_PLUGIN", &library, err));
    if (!library)
        return RP_OK;
    const struct rp_nccl_profiler *plugin = dlsym(library, "ncclProfiler_v5");
    if (!plugin || plugin->init5(&context, 1, &mask, "doctor", 1, 2, 0, NULL) ||
        plugin->start(context, &handle, &collective) || plugin->stop(handle) ||
        plugin->finalize(context))
        return rp_err_set(err, RP_BUG, "the library of 'nccl' does not take NCCL's events");
    return RP_OK;
}

/* Reports a call to the dispatcher of the SYCL runtime, which loads the source. */
static enum rp_code use_sycl(struct rp_err *err)
{
    static const char *const names[] = {"libxptifw.so", NULL};
    static const char stream[] = "ur.call";
    int (*notify)(uint8_t, uint16_t, void *, void *, uint64_t, const void *), result = 0;
    int (*begin)(const char *, uint32_t, uint32_t, const char *);
    struct rp_xpti_call call = {.name = SYCL_CALL, .result = &result};
    uint8_t (*number)(const char *);
    void (*start)(void);

    if (!load(names) || !find(RTLD_DEFAULT, "xptiFrameworkInitialize", &start) ||
        !find(RTLD_DEFAULT, "xptiInitialize", &begin) ||
        !find(RTLD_DEFAULT, "xptiRegisterStream", &number) ||
        !find(RTLD_DEFAULT, "xptiNotifySubscribers", &notify))
        return missing(err, "the SYCL runtime was not found (libxptifw.so)");
    start();
    begin(stream, 1, 0, "doctor");
    notify(number(stream), RP_XPTI_CALL_BEGIN, NULL, NULL, 1, &call);
    notify(number(stream), RP_XPTI_CALL_END, NULL, NULL, 1, &call);
    return RP_OK;
}

/* ------------------------------------------------------------------ MPI, OpenCL */

/* Runs one process that waits for itself. Handles are pointers in Open MPI and numbers in MPICH. */
static enum rp_code use_mpi(struct rp_err *err)
{
    static const char *const names[] = {"libmpi.so.40", "libmpich.so.12", "libmpi.so.12",
                                        "libmpi.so", NULL};
    void *library = load(names), *world = library ? dlsym(library, "ompi_mpi_comm_world") : NULL;
    int (*init)(int *, char ***), (*barrier)(uintptr_t), (*finalize)(void);

    if (!library)
        return missing(err, "no library of MPI was found (libmpi.so, libmpich.so)");
    /* uses the first library that has it, as in a program that is linked with MPI */
    if (!find(RTLD_DEFAULT, "MPI_Init", &init) || !find(RTLD_DEFAULT, "MPI_Barrier", &barrier) ||
        !find(RTLD_DEFAULT, "MPI_Finalize", &finalize))
        return missing(err, "the library of MPI lacks functions");
    if (init(NULL, NULL) || barrier(world ? (uintptr_t)world : 0x44000000) || finalize())
        return missing(err, "MPI does not start");
    return RP_OK;
}

struct opencl {
    int (*platforms)(uint32_t, void **, uint32_t *);
    int (*devices)(void *, uint64_t, uint32_t, void **, uint32_t *);
    void *(*context)(const intptr_t *, uint32_t, void *const *, void *, void *, int *);
    void *(*queue)(void *, void *, uint64_t, int *);
    void *(*buffer)(void *, uint64_t, size_t, void *, int *);
    int (*fill)(void *, void *, const void *, size_t, size_t, size_t, uint32_t, void *, void *);
    int (*finish)(void *);
};

static bool find_opencl(struct opencl *cl)
{
    return find(RTLD_DEFAULT, "clGetPlatformIDs", &cl->platforms) &&
           find(RTLD_DEFAULT, "clGetDeviceIDs", &cl->devices) &&
           find(RTLD_DEFAULT, "clCreateContext", &cl->context) &&
           find(RTLD_DEFAULT, "clCreateCommandQueue", &cl->queue) &&
           find(RTLD_DEFAULT, "clCreateBuffer", &cl->buffer) &&
           find(RTLD_DEFAULT, "clEnqueueFillBuffer", &cl->fill) &&
           find(RTLD_DEFAULT, "clFinish", &cl->finish);
}

static enum rp_code use_opencl(struct rp_err *err)
{
    static const char *const names[] = {"libOpenCL.so.1", NULL};
    void *platform = NULL, *device = NULL, *queue = NULL, *buffer = NULL;
    const uint64_t all_devices = 0xffffffff;
    struct opencl cl;

    if (!load(names) || !find_opencl(&cl))
        return missing(err, "no OpenCL loader was found (libOpenCL.so.1)");
    int code = cl.platforms(1, &platform, NULL);
    if (code)
        return no_device(err, "clGetPlatformIDs", code);
    code = cl.devices(platform, all_devices, 1, &device, NULL);
    if (code)
        return no_device(err, "clGetDeviceIDs", code);
    void *context = cl.context(NULL, 1, &device, NULL, NULL, &code);
    if (!code)
        queue = cl.queue(context, device, 0, &code);
    if (!code)
        buffer = cl.buffer(context, 1, BYTES, NULL, &code);
    if (!code)
        code = cl.fill(queue, buffer, "", 1, 0, BYTES, 0, NULL, NULL);
    if (!code)
        code = cl.finish(queue);
    return code ? no_device(err, "an OpenCL call", code) : RP_OK;
}

/* ------------------------------------------------------------------ CUDA, HIP */

static enum rp_code use_cuda(struct rp_err *err)
{
    static const char *const names[] = {"libcuda.so.1", NULL};
    int (*init)(unsigned), (*get)(int *, int), (*retain)(void **, int), (*enter)(void *);
    int (*allocate)(uint64_t *, size_t), (*set)(uint64_t, unsigned char, size_t), (*wait)(void);
    void *context = NULL;
    uint64_t memory = 0;
    int device = 0;

    if (!load(names) || !find(RTLD_DEFAULT, "cuInit", &init) ||
        !find(RTLD_DEFAULT, "cuDeviceGet", &get) ||
        !find(RTLD_DEFAULT, "cuDevicePrimaryCtxRetain", &retain) ||
        !find(RTLD_DEFAULT, "cuCtxSetCurrent", &enter) ||
        !find(RTLD_DEFAULT, "cuMemAlloc_v2", &allocate) ||
        !find(RTLD_DEFAULT, "cuMemsetD8_v2", &set) ||
        !find(RTLD_DEFAULT, "cuCtxSynchronize", &wait))
        return missing(err, "no CUDA driver was found (libcuda.so.1)");
    int code = init(0);
    if (code)
        return no_device(err, "cuInit", code);
    code = get(&device, 0);
    if (!code)
        code = retain(&context, device);
    if (!code)
        code = enter(context);
    if (!code)
        code = allocate(&memory, BYTES);
    if (!code)
        code = set(memory, 1, BYTES);
    if (!code)
        code = wait();
    return code ? no_device(err, "a call of the CUDA driver", code) : RP_OK;
}

static enum rp_code use_hip(struct rp_err *err)
{
    static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                        "libamdhip64.so", NULL};
    int (*allocate)(void **, size_t), (*copy)(void *, const void *, size_t, int), (*wait)(void);
    const int to_device = 1;
    char bytes[BYTES] = "";
    void *memory = NULL;

    if (!load(names) || !find(RTLD_DEFAULT, "hipMalloc", &allocate) ||
        !find(RTLD_DEFAULT, "hipMemcpy", &copy) ||
        !find(RTLD_DEFAULT, "hipDeviceSynchronize", &wait))
        return missing(err, "no HIP runtime was found (libamdhip64.so)");
    int code = allocate(&memory, BYTES);
    if (code)
        return no_device(err, "hipMalloc", code);
    code = copy(memory, bytes, BYTES, to_device);
    if (!code)
        code = wait();
    return code ? no_device(err, "a call of HIP", code) : RP_OK;
}

/* ------------------------------------------------------------------ the list */

static const struct rp_selftest_source sources[] = {
    {"host", "\"" RANGE "\"", use_sleep, NULL, NULL},
    {"blocking", "nanosleep", use_sleep, NULL, NULL},
    {"malloc", "malloc calls", use_memory, NULL, NULL},
    {"sample", NULL, use_processor, NULL, NULL},
    {"nvtx", NVTX_RANGE, use_nvtx, NULL, NULL},
    {"nccl", "AllReduce", use_nccl, NULL, NULL},
    {"sycl", SYCL_CALL, use_sycl, NULL, NULL},
    {"mpi", "MPI_Barrier", use_mpi, NULL, NULL},
    {"opencl", "clEnqueueFillBuffer", use_opencl, NULL, NULL},
    {"cuda", "Memset (", use_cuda, NULL, NULL},
    {"hip", "hipMemcpy", use_hip, NULL, NULL},
    {"frameworks", "aten::mm", NULL, "torch", "operators.py"},
    {"gloo", "gloo:all_reduce", NULL, "torch", "collective.py"}};

const struct rp_selftest_source *rp_selftest_source(const char *name)
{
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
        if (!strcmp(sources[i].name, name))
            return &sources[i];
    return NULL;
}

bool rp_selftest_is_recorded(struct rp_err *err, enum rp_code *code)
{
    const char *name = getenv(RP_SELFTEST_WORK);
    const struct rp_selftest_source *source = name ? rp_selftest_source(name) : NULL;

    if (!source || !source->use)
        return false;

    /* Every program records a range, so that its recording is not empty. */
    void (*begin)(const char *), (*end)(void);

    if (find(RTLD_DEFAULT, "reprise_record_range_begin", &begin) &&
        find(RTLD_DEFAULT, "reprise_record_range_end", &end)) {
        begin(RANGE);
        end();
    }

    *code = source->use(err);
    return true;
}
