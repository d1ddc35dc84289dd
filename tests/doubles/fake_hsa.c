/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AMD's runtimes to a recorder, in two parts: libamdhip64.so, an HSA runtime with one GPU that
 * loads the library in HSA_TOOLS_LIB and gives it its tables, with some functions of HIP on top of
 * it; and (with -DPROGRAM) a program that uses them.
 *
 *   fake_hsa [table AMD-MAJOR BYTES] MODE N    MODE: hip, hsa, refused, again, kill
 *
 * The runtime's clock runs at 100 MHz and 7 s ahead of the host's; the device's is 1,000 ticks
 * ahead of that. Kernels and copies take some microseconds, one after another.
 */
#include "abi/hsa.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct dim3 {
    uint32_t x, y, z;
};
typedef int copy_fn(void *to, uint64_t to_agent, const void *from, uint64_t from_agent, size_t size,
                    uint32_t nwaits, const uint64_t *waits, uint64_t signal);
typedef int engine_fn(void *to, uint64_t to_agent, const void *from, uint64_t from_agent,
                      size_t size, uint32_t nwaits, const uint64_t *waits, uint64_t signal,
                      uint32_t engine, bool force);
typedef int queue_fn(uint64_t agent, uint32_t size, uint32_t type, void *error, void *data,
                     uint32_t private_bytes, uint32_t group_bytes, void **queue);
typedef int64_t wait_fn(uint64_t signal, uint32_t condition, int64_t value, uint64_t timeout,
                        uint32_t hint);

enum { CPU = 11, GPU = 22, AXPY = 0x1000, PLAIN = 0x2000, SMALL = 64 };

void fake_start(uint32_t major, uint32_t bytes);
void fake_stop(void);
void fake_settle(void);
void *fake_core(int number);
void *fake_amd(int number);
void fake_submit(void *queue, const struct rp_hsa_packet *packet);
uint64_t fake_signal(int64_t value);
uint64_t fake_ticks(void);
int hipLaunchKernel(const void *f, struct dim3 grid, struct dim3 block, void **args, size_t shared,
                    void *stream);
int hipMalloc(void **out, size_t bytes);
int hipMemcpy(void *to, const void *from, size_t n, int kind);
int hipMemcpyAsync(void *to, const void *from, size_t n, int kind, void *stream);
int hipStreamCreate(void **out);
int hipStreamSynchronize(void *stream);
int hipDeviceSynchronize(void);

#ifndef PROGRAM

#include <dlfcn.h>
#include <pthread.h>

#define AHEAD       1000
#define WORK_MAX    4096
#define HANDLER_MAX 4096

struct queue {
    rp_hsa_interceptor *interceptor;
    void *data;
    bool profiled;
};

static struct {
    struct rp_hsa_version version;
    void *functions[128];
} core, amd;
static struct rp_hsa_tables tables;
static void *tool;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint64_t signal;
    void *to;
    const void *from;
    size_t bytes;
} work[WORK_MAX];
static _Atomic uint64_t nsubmitted, ndone;
static struct {
    uint64_t signal;
    int64_t value;
    bool (*call)(int64_t value, void *data);
    void *data;
} handlers[HANDLER_MAX];
static _Atomic int nhandlers; /* that are set, or being called */
static bool copies_timed;
static __thread struct queue *writing;
static struct queue *first_queue;

uint64_t fake_ticks(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return ((uint64_t)(t.tv_sec + 7) * 1000000000 + (uint64_t)t.tv_nsec) / 10;
}

/* -------------------------------------------------------------------------- signals */

static _Atomic int64_t *value_of(uint64_t signal)
{
    return (_Atomic int64_t *)&((struct rp_hsa_signal *)(uintptr_t)signal)->value;
}

uint64_t fake_signal(int64_t value)
{
    struct rp_hsa_signal *s = calloc(1, sizeof *s);

    s->kind = RP_HSA_SIGNAL_USER;
    s->value = value;
    return (uint64_t)(uintptr_t)s;
}

static int signal_create(int64_t value, uint32_t n, const uint64_t *consumers, uint64_t *out)
{
    (void)n, (void)consumers;
    *out = fake_signal(value);
    return 0;
}

static int signal_destroy(uint64_t signal)
{
    free((void *)(uintptr_t)signal);
    return 0;
}

static int64_t signal_load(uint64_t signal)
{
    return atomic_load(value_of(signal));
}

static void signal_store(uint64_t signal, int64_t value)
{
    atomic_store(value_of(signal), value);
}

static void signal_subtract(uint64_t signal, int64_t value)
{
    atomic_fetch_sub(value_of(signal), value);
}

static int64_t signal_wait(uint64_t signal, uint32_t condition, int64_t value, uint64_t timeout,
                           uint32_t hint)
{
    (void)condition, (void)timeout, (void)hint;
    while (atomic_load(value_of(signal)) >= value)
        usleep(20);
    return atomic_load(value_of(signal));
}

static int async_handler(uint64_t signal, uint32_t condition, int64_t value,
                         bool (*call)(int64_t, void *), void *data)
{
    int code = RP_HSA_ERROR;

    (void)condition;
    pthread_mutex_lock(&lock);
    for (int i = 0; code && i < HANDLER_MAX; i++) {
        if (handlers[i].call)
            continue;
        handlers[i].signal = signal;
        handlers[i].value = value;
        handlers[i].data = data;
        handlers[i].call = call;
        nhandlers++;
        code = 0;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static void *handler_thread(void *unused)
{
    for (;; usleep(20)) {
        for (int i = 0; i < HANDLER_MAX; i++) {
            bool (*call)(int64_t, void *) = NULL;
            int64_t value = 0;
            void *data;

            pthread_mutex_lock(&lock);
            data = handlers[i].data;
            if (handlers[i].call &&
                (value = atomic_load(value_of(handlers[i].signal))) < handlers[i].value) {
                call = handlers[i].call;
                handlers[i].call = NULL;
            }
            pthread_mutex_unlock(&lock);
            if (!call)
                continue;
            call(value, data);
            nhandlers--;
        }
    }
    return unused;
}

/* Until all handlers have been called: the recorder gives them a limited time at the end. */
void fake_settle(void)
{
    while (nhandlers)
        usleep(100);
}

/* -------------------------------------------------------------------------- the device */

static void device_add(uint64_t signal, void *to, const void *from, size_t bytes)
{
    uint64_t at;

    while (nsubmitted - ndone >= WORK_MAX - 64)
        usleep(20);
    pthread_mutex_lock(&lock);
    at = nsubmitted % WORK_MAX;
    work[at].signal = signal;
    work[at].to = to;
    work[at].from = from;
    work[at].bytes = bytes;
    nsubmitted++;
    pthread_mutex_unlock(&lock);
}

static void *device_thread(void *unused)
{
    for (;;) {
        struct rp_hsa_signal *s;
        uint64_t at = ndone % WORK_MAX, start;

        if (ndone == nsubmitted) {
            usleep(20);
            continue;
        }
        start = fake_ticks();
        while (fake_ticks() < start + 300)
            ;
        if (work[at].to)
            memcpy(work[at].to, work[at].from, work[at].bytes);
        s = (struct rp_hsa_signal *)(uintptr_t)work[at].signal;
        if (s) {
            s->start = start + AHEAD;
            s->end = fake_ticks() + AHEAD;
            s->mailbox = work[at].to != NULL; /* the signal of a copy */
            signal_subtract(work[at].signal, 1);
        }
        ndone++;
    }
    return unused;
}

static int times_of(uint64_t signal, struct rp_hsa_times *times)
{
    const struct rp_hsa_signal *s = (const void *)(uintptr_t)signal;

    times->start = s->start - AHEAD;
    times->end = s->end - AHEAD;
    return 0;
}

static int dispatch_time(uint64_t agent, uint64_t signal, struct rp_hsa_times *times)
{
    return agent == GPU ? times_of(signal, times) : RP_HSA_ERROR;
}

static int copy_time(uint64_t signal, struct rp_hsa_times *times)
{
    const struct rp_hsa_signal *s = (const void *)(uintptr_t)signal;

    return copies_timed && s->mailbox ? times_of(signal, times) : RP_HSA_ERROR;
}

static int copy_enable(bool enable)
{
    copies_timed = enable;
    return 0;
}

static int async_copy(void *to, uint64_t to_agent, const void *from, uint64_t from_agent,
                      size_t size, uint32_t nwaits, const uint64_t *waits, uint64_t signal)
{
    (void)to_agent, (void)from_agent, (void)nwaits, (void)waits;
    if (!size)
        return RP_HSA_ERROR + 1;
    device_add(signal, to, from, size);
    return 0;
}

static int async_copy_on_engine(void *to, uint64_t to_agent, const void *from, uint64_t from_agent,
                                size_t size, uint32_t nwaits, const uint64_t *waits,
                                uint64_t signal, uint32_t engine, bool force)
{
    (void)engine, (void)force;
    return async_copy(to, to_agent, from, from_agent, size, nwaits, waits, signal);
}

/* -------------------------------------------------------------------------- queues */

static int queue_create(uint64_t agent, uint32_t size, uint32_t type, void *error, void *data,
                        uint32_t private_bytes, uint32_t group_bytes, void **queue)
{
    (void)size, (void)type, (void)error, (void)data, (void)private_bytes, (void)group_bytes;
    *queue = calloc(1, sizeof(struct queue));
    return agent == GPU ? 0 : RP_HSA_ERROR;
}

static int queue_destroy(void *queue)
{
    free(queue);
    return 0;
}

static int profiler_enabled(void *queue, int enable)
{
    ((struct queue *)queue)->profiled = enable;
    return 0;
}

static int intercept_register(void *queue, rp_hsa_interceptor *interceptor, void *data)
{
    struct queue *q = queue;

    q->interceptor = interceptor;
    q->data = data;
    return 0;
}

static void write_packets(const void *packets, uint64_t count)
{
    const struct rp_hsa_packet *p = packets;

    for (uint64_t i = 0; i < count; i++)
        device_add(p[i].signal, NULL, NULL, 0);
}

void fake_submit(void *queue, const struct rp_hsa_packet *packet)
{
    struct queue *q = queue;

    writing = q;
    if (q->interceptor)
        q->interceptor(packet, 1, 0, q->data, write_packets);
    else
        write_packets(packet, 1);
}

/* -------------------------------------------------------------------------- information */

static int system_get_info(uint32_t what, void *value)
{
    uint64_t n = what == RP_HSA_SYSTEM_TIMESTAMP ? fake_ticks() : 100000000;

    memcpy(value, &n, sizeof n);
    return 0;
}

static int iterate_agents(int (*each)(uint64_t, void *), void *data)
{
    each(CPU, data);
    return each(GPU, data);
}

static int agent_get_info(uint64_t agent, uint32_t what, void *value)
{
    uint32_t n = what == RP_HSA_AGENT_DEVICE          ? agent == GPU
                 : what == RP_HSA_AGENT_COMPUTE_UNITS ? 60
                 : what == RP_HSA_AGENT_BDF           ? 0xc1 << 8
                 : what == RP_HSA_AGENT_DOMAIN        ? 1
                                                      : 1700;

    if (what == RP_HSA_AGENT_NAME || what == RP_HSA_AGENT_PRODUCT)
        strcpy(value, what == RP_HSA_AGENT_NAME ? "gfx900" : "Fake Instinct");
    else
        memcpy(value, &n, sizeof n);
    return 0;
}

static int iterate_pools(uint64_t agent, int (*each)(uint64_t, void *), void *data)
{
    return each(agent, data);
}

static int pool_get_info(uint64_t pool, uint32_t what, void *value)
{
    uint32_t segment = RP_HSA_SEGMENT_GLOBAL;
    size_t size = (size_t)16 << 30;

    (void)pool;
    memcpy(value, what == RP_HSA_POOL_SIZE ? (void *)&size : (void *)&segment,
           what == RP_HSA_POOL_SIZE ? sizeof size : sizeof segment);
    return 0;
}

static const struct {
    uint64_t object;
    const char *name;
} symbols[] = {{AXPY, "_Z4axpyPff.kd"}, {PLAIN, "plain.kd"}, {0, "a_variable"}};

static int symbol_get_info(uint64_t symbol, uint32_t what, void *value)
{
    uint32_t n = what == RP_HSA_SYMBOL_TYPE ? symbols[symbol].object != 0
                                            : (uint32_t)strlen(symbols[symbol].name);

    if (what == RP_HSA_SYMBOL_KERNEL_OBJECT)
        memcpy(value, &symbols[symbol].object, 8);
    else if (what == RP_HSA_SYMBOL_NAME)
        memcpy(value, symbols[symbol].name, n); /* without a NUL */
    else
        memcpy(value, &n, sizeof n);
    return 0;
}

static int iterate_symbols(uint64_t executable, int (*each)(uint64_t, uint64_t, void *), void *data)
{
    for (uint64_t i = 0; i < 3; i++)
        each(executable, i, data);
    return 0;
}

static int executable_freeze(uint64_t executable, const char *options)
{
    (void)executable, (void)options;
    return 0;
}

static int nothing(void)
{
    return 0;
}

/* -------------------------------------------------------------------------- start and end */

static int place(int number)
{
    return number + (number > RP_HSA_amd_memory_async_copy && amd.version.major > 1 ? 2 : 0);
}

void *fake_core(int number)
{
    return core.functions[number];
}

void *fake_amd(int number)
{
    return amd.functions[place(number)];
}

static void tables_fill(uint32_t major, uint32_t bytes)
{
    static const struct {
        int number;
        void *call;
    } in_core[] = {{RP_HSA_system_get_info, (void *)system_get_info},
                   {RP_HSA_iterate_agents, (void *)iterate_agents},
                   {RP_HSA_agent_get_info, (void *)agent_get_info},
                   {RP_HSA_queue_create, (void *)queue_create},
                   {RP_HSA_queue_destroy, (void *)queue_destroy},
                   {RP_HSA_signal_create, (void *)signal_create},
                   {RP_HSA_signal_destroy, (void *)signal_destroy},
                   {RP_HSA_signal_load_scacquire, (void *)signal_load},
                   {RP_HSA_signal_store_relaxed, (void *)signal_store},
                   {RP_HSA_signal_store_screlease, (void *)signal_store},
                   {RP_HSA_signal_wait_relaxed, (void *)signal_wait},
                   {RP_HSA_signal_wait_scacquire, (void *)signal_wait},
                   {RP_HSA_signal_subtract_screlease, (void *)signal_subtract},
                   {RP_HSA_executable_freeze, (void *)executable_freeze},
                   {RP_HSA_executable_symbol_get_info, (void *)symbol_get_info},
                   {RP_HSA_executable_iterate_symbols, (void *)iterate_symbols}};
    static const struct {
        int number;
        void *call;
    } in_amd[] = {{RP_HSA_amd_profiling_set_profiler_enabled, (void *)profiler_enabled},
                  {RP_HSA_amd_profiling_async_copy_enable, (void *)copy_enable},
                  {RP_HSA_amd_profiling_get_dispatch_time, (void *)dispatch_time},
                  {RP_HSA_amd_profiling_get_async_copy_time, (void *)copy_time},
                  {RP_HSA_amd_signal_async_handler, (void *)async_handler},
                  {RP_HSA_amd_memory_pool_get_info, (void *)pool_get_info},
                  {RP_HSA_amd_agent_iterate_memory_pools, (void *)iterate_pools},
                  {RP_HSA_amd_memory_async_copy, (void *)async_copy},
                  {RP_HSA_amd_queue_intercept_create, (void *)queue_create},
                  {RP_HSA_amd_queue_intercept_register, (void *)intercept_register}};

    core.version = (struct rp_hsa_version){major < 3 ? major : 1, 1016, 0, 0};
    amd.version = (struct rp_hsa_version){major, bytes, 0, 0};
    for (int i = 0; i < 128; i++)
        core.functions[i] = amd.functions[i] = (void *)nothing;
    for (size_t i = 0; i < sizeof in_core / sizeof in_core[0]; i++)
        core.functions[in_core[i].number] = in_core[i].call;
    for (size_t i = 0; i < sizeof in_amd / sizeof in_amd[0]; i++)
        amd.functions[place(in_amd[i].number)] = in_amd[i].call;
    if (major > 1)
        amd.functions[RP_HSA_AMD_2_ASYNC_COPY_ON_ENGINE] = (void *)async_copy_on_engine;
    tables = (struct rp_hsa_tables){{major, sizeof tables, 0, 0}, (void *)&core, (void *)&amd};
}

void fake_start(uint32_t major, uint32_t bytes)
{
    static bool threads;
    const char *path = getenv("HSA_TOOLS_LIB");
    bool (*load)(struct rp_hsa_tables *, uint64_t, uint64_t, const char *const *) = NULL;
    pthread_t thread;

    tables_fill(major, bytes);
    tool = path && *path ? dlopen(path, RTLD_NOW) : NULL;
    if (tool)
        *(void **)&load = dlsym(tool, "OnLoad");
    if (load && !load(&tables, 1, 0, NULL))
        puts("OnLoad failed");
    if (!threads) {
        pthread_create(&thread, NULL, handler_thread, NULL);
        pthread_create(&thread, NULL, device_thread, NULL);
    }
    threads = true;
    ((int (*)(uint64_t, const char *))fake_core(RP_HSA_executable_freeze))(1, NULL);
    first_queue = NULL;
}

void fake_stop(void)
{
    void (*unload)(void) = NULL;

    ((int (*)(void))fake_core(RP_HSA_shut_down))();
    if (tool)
        *(void **)&unload = dlsym(tool, "OnUnload");
    if (unload)
        unload();
}

/* -------------------------------------------------------------------------- HIP */

static struct queue *queue_of(void *stream)
{
    if (!stream && !first_queue)
        hipStreamCreate((void **)&first_queue);
    return stream ? stream : first_queue;
}

int hipStreamCreate(void **out)
{
    return ((queue_fn *)fake_core(RP_HSA_queue_create))(GPU, 1024, 0, NULL, NULL, 0, 0, out);
}

int hipLaunchKernel(const void *f, struct dim3 grid, struct dim3 block, void **args, size_t shared,
                    void *stream)
{
    struct rp_hsa_packet p = {
        .header = RP_HSA_PACKET_KERNEL,
        .workgroup = {(uint16_t)block.x, (uint16_t)block.y, (uint16_t)block.z},
        .grid = {grid.x * block.x, grid.y * block.y, grid.z * block.z},
        .group_bytes = (uint32_t)shared,
        .kernel_object = (uint64_t)(uintptr_t)f};

    (void)args;
    fake_submit(queue_of(stream), &p);
    return 0;
}

int hipStreamSynchronize(void *stream)
{
    uint64_t done = fake_signal(1);
    struct rp_hsa_packet p = {.header = 3, .signal = done};

    fake_submit(queue_of(stream), &p);
    ((wait_fn *)fake_core(RP_HSA_signal_wait_scacquire))(done, RP_HSA_CONDITION_LT, 1, UINT64_MAX,
                                                         0);
    signal_destroy(done);
    return 0;
}

int hipDeviceSynchronize(void)
{
    return hipStreamSynchronize(NULL);
}

int hipMemcpyAsync(void *to, const void *from, size_t n, int kind, void *stream)
{
    uint64_t done;

    (void)stream;
    if (n <= SMALL) { /* by the processor */
        memcpy(to, from, n);
        return 0;
    }
    done = fake_signal(1);
    if (amd.version.major > 1)
        ((engine_fn *)amd.functions[RP_HSA_AMD_2_ASYNC_COPY_ON_ENGINE])(
            to, kind == 1 ? GPU : CPU, from, kind == 1 ? CPU : GPU, n, 0, NULL, done, 1, false);
    else
        ((copy_fn *)fake_amd(RP_HSA_amd_memory_async_copy))(
            to, kind == 1 ? GPU : CPU, from, kind == 1 ? CPU : GPU, n, 0, NULL, done);
    ((wait_fn *)fake_core(RP_HSA_signal_wait_scacquire))(done, RP_HSA_CONDITION_LT, 1, UINT64_MAX,
                                                         0);
    signal_destroy(done);
    return 0;
}

/* The first call of a program that does not start the runtime itself. */
int hipMalloc(void **out, size_t bytes)
{
    if (!tables.core)
        fake_start(1, RP_HSA_AMD_1_BYTES);
    *out = malloc(bytes);
    return *out ? 0 : 2;
}

int hipMemcpy(void *to, const void *from, size_t n, int kind)
{
    return hipMemcpyAsync(to, from, n, kind, NULL);
}

#else

static const struct dim3 four = {4, 2, 1}, threads = {256, 1, 1};

/* N times: a copy to the device, one too small for it, two kernels on two streams, a copy back. */
static void run_hip(long n)
{
    char host[4096] = "unchanged", device[4096], back[4096] = "";
    void *stream;

    hipStreamCreate(&stream);
    for (long i = 0; i < n; i++) {
        hipMemcpy(device, host, sizeof host, 1);
        hipMemcpyAsync(back, device, 8, 2, NULL);
        hipLaunchKernel((const void *)AXPY, four, threads, NULL, 512, NULL);
        hipLaunchKernel((const void *)PLAIN, four, threads, NULL, 0, stream);
        hipStreamSynchronize(stream);
        hipMemcpyAsync(back, device, sizeof back, 2, stream);
    }
    hipDeviceSynchronize();
    printf("%s\n", back);
}

/* Whether what the runtime says about the program's own signal is between two times. */
static bool is_between(int code, const struct rp_hsa_times *t, uint64_t from)
{
    return !code && t->start >= from && t->start < t->end && t->end <= fake_ticks();
}

/* N times: a dispatch and a copy with signals of the program, and their times. */
static void run_hsa(long n)
{
    int (*dispatch_time)(uint64_t, uint64_t, struct rp_hsa_times *) = (int (*)(
        uint64_t, uint64_t, struct rp_hsa_times *))fake_amd(RP_HSA_amd_profiling_get_dispatch_time);
    int (*copy_time)(uint64_t, struct rp_hsa_times *) = (int (*)(
        uint64_t, struct rp_hsa_times *))fake_amd(RP_HSA_amd_profiling_get_async_copy_time);
    void (*enable)(bool) = (void (*)(bool))fake_amd(RP_HSA_amd_profiling_async_copy_enable);
    wait_fn *wait = (wait_fn *)fake_core(RP_HSA_signal_wait_scacquire);
    char host[4096] = "", device[4096];
    struct rp_hsa_times t = {0, 0};
    long right = 0;
    void *queue;

    ((queue_fn *)fake_core(RP_HSA_queue_create))(GPU, 1024, 0, NULL, NULL, 0, 0, &queue);
    enable(true);
    for (long i = 0; i < n; i++) {
        uint64_t done = fake_signal(1), copied = fake_signal(1), from = fake_ticks();
        struct rp_hsa_packet p = {.header = RP_HSA_PACKET_KERNEL,
                                  .workgroup = {64, 1, 1},
                                  .grid = {100, 1, 1},
                                  .kernel_object = i % 2 ? AXPY : 0x3000,
                                  .signal = done};

        fake_submit(queue, &p);
        wait(done, RP_HSA_CONDITION_LT, 1, UINT64_MAX, 0);
        right += is_between(dispatch_time(GPU, done, &t), &t, from);
        ((copy_fn *)fake_amd(RP_HSA_amd_memory_async_copy))(device, GPU, host, CPU, sizeof host, 0,
                                                            NULL, copied);
        wait(copied, RP_HSA_CONDITION_LT, 1, UINT64_MAX, 0);
        right += is_between(copy_time(copied, &t), &t, from);
    }
    printf("%ld of %ld times are right\n", right, 2 * n);
}

/* Copies that the runtime refuses leave the program's signal alone. */
static void run_refused(long n)
{
    char byte[1] = "";
    long refused = 0;

    for (long i = 0; i < n; i++) {
        uint64_t signal = fake_signal(1);

        refused += ((copy_fn *)fake_amd(RP_HSA_amd_memory_async_copy))(byte, GPU, byte, CPU, 0, 0,
                                                                       NULL, signal) != 0;
        usleep(1000);
        refused -= ((struct rp_hsa_signal *)(uintptr_t)signal)->value != 1;
    }
    printf("%ld copies refused\n", refused);
}

int main(int argc, char **argv)
{
    uint32_t major = 1, bytes = RP_HSA_AMD_1_BYTES;
    const char *mode;
    long n;

    if (argc > 3 && !strcmp(argv[1], "table")) {
        major = (uint32_t)strtoul(argv[2], NULL, 10);
        bytes = (uint32_t)strtoul(argv[3], NULL, 10);
        argv += 3;
        argc -= 3;
    }
    mode = argc > 1 ? argv[1] : "hip";
    n = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
    fake_start(major, bytes);
    if (!strcmp(mode, "hsa"))
        run_hsa(n);
    else if (!strcmp(mode, "refused"))
        run_refused(n);
    else
        run_hip(n);
    fflush(stdout);
    fake_settle();
    if (!strcmp(mode, "kill"))
        raise(SIGKILL);
    fake_stop();
    if (!strcmp(mode, "again")) {
        fake_start(major, bytes);
        run_hip(n);
        fake_settle();
        fake_stop();
    }
    return 0;
}

#endif
