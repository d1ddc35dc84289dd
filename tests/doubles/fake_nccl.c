/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that "uses" NCCL: it loads the profiler plugin as NCCL does (the version in the first
 * argument), initialises it for each communicator, and reports collectives, sends and receives in
 * the order of NCCL 2.23 to 2.30: the call, the kernel launch, then the group with the operations
 * of the kernel; device channels from another thread, a state change after the end, handles of
 * other processes. A communicator of one rank is initialised, and nothing of it is reported. Events
 * stop in the order in which they began.
 *
 *   fake_nccl VERSION ROUNDS [kill|kernels|one]
 *
 * kernels: the launches are driver calls with a kernel, reported by the CUPTI double.
 * one: all communicators have one rank.
 */
#include "fake_cupti.h"
#include "meet.h"

#include "abi/cupti.h"
#include "abi/nccl_profiler.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct rp_nccl_profiler *plugin;
static int version, mask, ranks = 4;
static bool kernels;
static void *contexts[2];

static void initialise(int i)
{
    int code;

    if (version <= 3)
        code = plugin->init1(&contexts[i], &mask);
    else if (version == 4)
        code = plugin->init4(&contexts[i], &mask, i ? "tensor" : "data", 0xabc0u + (unsigned)i, 2,
                             ranks, ranks > 1, NULL);
    else
        code = plugin->init5(&contexts[i], 0xabc0u + (unsigned)i, &mask, i ? "tensor" : "data", 2,
                             ranks, ranks > 1, NULL);
    if (code)
        exit(4);
}

static void describe_coll(struct rp_nccl_descr *d, uint64_t seq)
{
    struct rp_nccl_coll_v1 v1 = {.name = "data",
                                 .comm = 0xabc0,
                                 .seq = seq,
                                 .func = 4,
                                 .count = 1000,
                                 .datatype = 7,
                                 .channels = 2,
                                 .algorithm = 1,
                                 .protocol = 2,
                                 .traffic_bytes = 8000};
    struct rp_nccl_coll_v2 v2 = {.name = "data",
                                 .comm = 0xabc0,
                                 .seq = seq,
                                 .func = "AllReduce",
                                 .count = 1000,
                                 .datatype = "ncclFloat32",
                                 .channels = 2,
                                 .algorithm = "RING",
                                 .protocol = "SIMPLE",
                                 .traffic_bytes = 8000};
    struct rp_nccl_coll_v3 v3 = {.name = "data",
                                 .comm = 0xabc0,
                                 .seq = seq,
                                 .func = "AllReduce",
                                 .count = 1000,
                                 .datatype = "ncclFloat32",
                                 .channels = 2,
                                 .algorithm = "RING",
                                 .protocol = "SIMPLE"};
    struct rp_nccl_coll_v4 v4 = {.seq = seq,
                                 .func = "AllReduce",
                                 .count = 1000,
                                 .datatype = "ncclFloat32",
                                 .channels = 2,
                                 .algorithm = "RING",
                                 .protocol = "SIMPLE"};

    memset(d, 0xee, sizeof *d); /* fields that NCCL does not set are undefined */
    d->type = version >= 5 ? RP_NCCL_COLL : RP_NCCL_COLL | 0xeeeeeeeeeeeeee00u;
    d->parent = NULL;
    d->rank = 1;
    if (version == 1)
        d->coll1 = v1;
    else if (version == 2)
        d->coll2 = v2;
    else if (version == 3)
        d->coll3 = v3;
    else
        d->coll4 = v4;
}

static void describe_p2p(struct rp_nccl_descr *d, const char *func)
{
    struct rp_nccl_p2p_v1 v1 = {.name = "data",
                                .comm = 0xabc0,
                                .func = *func == 'S' ? 6 : 7,
                                .datatype = 9,
                                .count = 50,
                                .peer = 3};
    struct rp_nccl_p2p_v2 v2 = {.name = "data",
                                .comm = 0xabc0,
                                .func = func,
                                .datatype = "ncclBfloat16",
                                .count = 50,
                                .peer = 3};
    struct rp_nccl_p2p_v4 v4 = {
        .func = func, .datatype = "ncclBfloat16", .count = 50, .peer = 3, .channels = 1};

    memset(d, 0xee, sizeof *d);
    d->type = RP_NCCL_P2P;
    d->parent = NULL;
    if (version == 1)
        d->p2p1 = v1;
    else if (version <= 3)
        d->p2p2 = v2;
    else
        d->p2p4 = v4;
}

/* Like NCCL's proxy thread: device channels, which end after the enqueueing. */
static void *run_channels(void *parent)
{
    struct rp_nccl_descr d = {.type = RP_NCCL_KERNEL_CHANNEL, .parent = parent};
    void *handles[2];

    for (int i = 0; i < 2; i++)
        plugin->start(contexts[0], &handles[i], &d);
    usleep(200);
    for (int i = 0; i < 2; i++)
        plugin->stop(handles[i]);
    return NULL;
}

/* The launch of a kernel: cuLaunchKernelEx, as the CUPTI double reports it. */
static void put_launch(const char *name, uint64_t begin, uint64_t end)
{
    static uint32_t correlation = 100;
    union {
        uint8_t bytes[256];
        struct rp_cupti_api_record call;
        struct rp_cupti_kernel_record kernel;
    } r = {.call = {.kind = RP_CUPTI_DRIVER, .id = 652, .start = begin, .end = end}};

    r.call.process = (uint32_t)getpid();
    r.call.thread = (uint32_t)syscall(SYS_gettid);
    r.call.correlation = ++correlation;
    fake_cupti_put(&r);
    memset(&r, 0, sizeof r);
    r.kernel.kind = RP_CUPTI_CONCURRENT_KERNEL;
    r.kernel.start = end + 1000;
    r.kernel.end = end + 51000;
    r.kernel.context = 1;
    r.kernel.stream = 20;
    r.kernel.correlation = correlation;
    r.kernel.name = name;
    fake_cupti_put(&r);
}

static void launch(void *context, const char *name)
{
    struct rp_nccl_descr d = {.type = RP_NCCL_KERNEL_LAUNCH};
    uint64_t begin = fake_cupti_now();
    void *handle = NULL;

    if (mask & RP_NCCL_KERNEL_LAUNCH)
        plugin->start(context, &handle, &d);
    usleep(20);
    if (kernels)
        put_launch(name, begin + 5000, begin + 10000);
    if (handle)
        plugin->stop(handle);
}

static void *start_plain(void *context, uint64_t type)
{
    struct rp_nccl_descr d = {.type = type};
    void *handle = NULL;

    plugin->start(context, &handle, &d);
    return handle;
}

/* The operations of a kernel are reported after its launch, inside a group. */
static void tell(void *context, struct rp_nccl_descr *a, struct rp_nccl_descr *b, void *handles[2])
{
    void *group = start_plain(context, RP_NCCL_GROUP);

    handles[1] = NULL;
    plugin->start(context, &handles[0], a);
    if (b)
        plugin->start(context, &handles[1], b);
    for (int i = 0; i < 2; i++) {
        if (handles[i])
            plugin->stop(handles[i]);
    }
    if (group)
        plugin->stop(group);
}

static void round_of(uint64_t seq)
{
    struct rp_nccl_descr a, b;
    void *handles[2], *api = NULL, *group = NULL;
    pthread_t thread;

    if (ranks == 1)
        return;
    if (version >= 5)
        group = start_plain(contexts[0], RP_NCCL_GROUP_API);
    if (mask & RP_NCCL_COLL_API) {
        a = (struct rp_nccl_descr){.type = RP_NCCL_COLL_API};
        a.coll_api = (struct rp_nccl_coll_api){"AllReduce", 1000, "ncclFloat32", 0, NULL};
        plugin->start(contexts[0], &api, &a);
        plugin->stop(api);
    }
    launch(contexts[0], "ncclDevKernel_AllReduce_Sum_f32_RING_SIMPLE(ncclDevKernelArgsStorage)");
    describe_coll(&a, seq);
    tell(contexts[0], &a, NULL, handles);
    plugin->state(handles[0], 3, NULL); /* after its end */
    if ((mask & RP_NCCL_KERNEL_CHANNEL) && !pthread_create(&thread, NULL, run_channels, handles[0]))
        pthread_join(thread, NULL);
    launch(contexts[1], "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage)");
    describe_p2p(&a, "Send");
    describe_p2p(&b, "Recv");
    tell(contexts[1], &a, &b, handles);
    if (mask & RP_NCCL_CE_COLL) {
        a = (struct rp_nccl_descr){.type = RP_NCCL_CE_COLL};
        a.ce_coll = (struct rp_nccl_ce_coll){
            .seq = seq, .func = "AllGather", .count = 500, .datatype = "ncclInt8"};
        tell(contexts[0], &a, NULL, handles);
    }
    if (group)
        plugin->stop(group);
    plugin->stop((void *)(uintptr_t)0x7fffdeadbeefu); /* of another process */
    usleep(kernels ? 150 : 0);
}

static void load_cuda(void)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    int (*call)(void) = NULL;

    if (library)
        *(void **)&call = dlsym(library, "InitializeInjection");
    if (call && call() != 1)
        exit(3);
}

int main(int argc, char **argv)
{
    const char *path = getenv("NCCL_PROFILER_PLUGIN");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
    char name[32];

    if (argc > 3 && !strcmp(argv[3], "one"))
        ranks = 1;
    kernels = argc > 3 && !strcmp(argv[3], "kernels");
    if (kernels)
        load_cuda();
    version = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 5;
    snprintf(name, sizeof name, "ncclProfiler_v%d", version);
    plugin = library ? dlsym(library, name) : NULL;
    if (plugin) {
        initialise(0);
        initialise(1);
        for (long i = 0; i < rounds; i++) {
            round_of((uint64_t)i);
            if (i == 0)
                meet();
        }
    }
    if (argc > 3 && !strcmp(argv[3], "kill"))
        raise(SIGKILL);
    if (plugin) {
        plugin->finalize(contexts[0]);
        plugin->finalize(contexts[1]);
    }
    printf("done\n");
    return 0;
}
