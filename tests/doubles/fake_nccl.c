/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses "NCCL": it loads the profiler plugin as NCCL does (the newest version that
 * it knows, first word of the command line), initialises it for each communicator, and tells it
 * collectives, sends and receives, in the ways of that version: group by group, channels of the
 * device from another thread, state after the end, handles of other processes.
 *
 *   fake_nccl VERSION ROUNDS [kill]
 */
#include "abi/nccl_profiler.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct rp_nccl_profiler *plugin;
static int version, mask;
static void *contexts[2];

static void initialise(int i)
{
    int code;

    if (version <= 3)
        code = plugin->init1(&contexts[i], &mask);
    else if (version == 4)
        code = plugin->init4(&contexts[i], &mask, i ? "tensor" : "data", 0xabc0u + (unsigned)i, 2,
                             4, 1, NULL);
    else
        code = plugin->init5(&contexts[i], 0xabc0u + (unsigned)i, &mask, i ? "tensor" : "data", 2,
                             4, 1, NULL);
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

    memset(d, 0xee, sizeof *d); /* what NCCL does not set is anything */
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

static void describe_p2p(struct rp_nccl_descr *d)
{
    struct rp_nccl_p2p_v1 v1 = {
        .name = "data", .comm = 0xabc0, .func = 6, .datatype = 9, .count = 50, .peer = 3};
    struct rp_nccl_p2p_v2 v2 = {.name = "data",
                                .comm = 0xabc0,
                                .func = "Send",
                                .datatype = "ncclBfloat16",
                                .count = 50,
                                .peer = 3};
    struct rp_nccl_p2p_v4 v4 = {
        .func = "Send", .datatype = "ncclBfloat16", .count = 50, .peer = 3, .channels = 1};

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

/* As NCCL's proxy thread: channels of the device, which end after the enqueueing did. */
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

static void round_of(uint64_t seq)
{
    struct rp_nccl_descr d;
    void *coll, *p2p, *api = NULL;
    pthread_t thread;

    if (mask & RP_NCCL_COLL_API) {
        d = (struct rp_nccl_descr){.type = RP_NCCL_COLL_API};
        d.coll_api = (struct rp_nccl_coll_api){"AllReduce", 1000, "ncclFloat32", 0, NULL};
        plugin->start(contexts[0], &api, &d);
    }
    describe_coll(&d, seq);
    plugin->start(contexts[0], &coll, &d);
    describe_p2p(&d);
    plugin->start(contexts[1], &p2p, &d);
    plugin->stop(coll);
    plugin->stop(p2p);
    plugin->stop(api);
    plugin->state(coll, 3, NULL); /* after its end */
    if ((mask & RP_NCCL_KERNEL_CHANNEL) && !pthread_create(&thread, NULL, run_channels, coll))
        pthread_join(thread, NULL);
    plugin->stop((void *)(uintptr_t)0x7fffdeadbeefu); /* of another process */
}

int main(int argc, char **argv)
{
    const char *path = getenv("NCCL_PROFILER_PLUGIN");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
    char name[32];

    version = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 5;
    snprintf(name, sizeof name, "ncclProfiler_v%d", version);
    plugin = library ? dlsym(library, name) : NULL;
    if (plugin) {
        initialise(0);
        initialise(1);
        for (long i = 0; i < rounds; i++)
            round_of((uint64_t)i);
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
