/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An emulated driver for AMD's real HSA runtime: the functions of libhsakmt, by LD_PRELOAD and with
 * HSA_ENABLE_INTERRUPT=0. The runtime then finds a processor and one GPU (gfx900, 56 compute
 * units). Each queue has a thread. Packets of compute queues are completed in order, with times:
 * kernels take 20 µs and are not executed, barriers wait for their signals. Packets of copy queues
 * are executed: copies, fills, fences, atomic additions, timestamps. A packet that is not known
 * ends the process with status 70.
 *
 * Memory is the process's own; device and host addresses are the same. As in the kernel, the
 * system's clock is CLOCK_BOOTTIME; the GPU's counter runs at 25 MHz from a start of its own.
 */
#include <hsakmt.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define GIB       ((uint64_t)1 << 30)
#define KERNEL_US 20
#define ALIGNMENT ((uintptr_t)1 << 16)
#define OK        HSAKMT_STATUS_SUCCESS

static const HSAuint32 gpu_node[] = {1};

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t gpu_ticks(void)
{
    return clock_ns(CLOCK_BOOTTIME) / 40 + 123456789;
}

/* -------------------------------------------------------------------------- the machine */

HSAKMT_STATUS hsaKmtOpenKFD(void)
{
    return OK;
}

HSAKMT_STATUS hsaKmtCloseKFD(void)
{
    return OK;
}

HSAKMT_STATUS hsaKmtGetVersion(HsaVersionInfo *version)
{
    version->KernelInterfaceMajorVersion = 1;
    version->KernelInterfaceMinorVersion = 8;
    return OK;
}

HSAKMT_STATUS hsaKmtAcquireSystemProperties(HsaSystemProperties *system)
{
    memset(system, 0, sizeof *system);
    system->NumNodes = 2;
    return OK;
}

HSAKMT_STATUS hsaKmtReleaseSystemProperties(void)
{
    return OK;
}

static void describe_gpu(HsaNodeProperties *node)
{
    static const char name[] = "Emulated GPU";

    node->NumFComputeCores = 224; /* vector units: 4 in each of 56 compute units */
    node->NumSIMDPerCU = 4;
    node->NumShaderBanks = 4;
    node->NumArrays = 1;
    node->NumCUPerArray = 14;
    node->MaxWavesPerSIMD = 10;
    node->WaveFrontSize = 64;
    node->LDSSizeInKB = 64;
    node->MaxSlotsScratchCU = 32;
    node->NumMemoryBanks = 3;
    node->NumCaches = 2;
    node->EngineId.ui32.Major = 9;
    node->EngineId.ui32.uCode = 460;
    node->uCodeEngineVersions.uCodeSDMA = 430;
    node->VendorId = 0x1002;
    node->DeviceId = 0x687f;
    node->LocationId = 0x300;
    node->DrmRenderMinor = 128;
    node->MaxEngineClockMhzFCompute = 1500;
    node->NumSdmaEngines = 2;
    node->NumSdmaQueuesPerEngine = 2;
    node->NumCpQueues = 24;
    node->Capability.ui32.DoorbellType = 2;
    node->LocalMemSize = 8 * GIB;
    node->UniqueID = 1;
    for (size_t i = 0; i < sizeof name; i++)
        node->MarketingName[i] = (HSAuint16)name[i];
    strcpy((char *)node->AMDName, "emulated");
}

HSAKMT_STATUS hsaKmtGetNodeProperties(HSAuint32 id, HsaNodeProperties *node)
{
    memset(node, 0, sizeof *node);
    node->NumIOLinks = 1;
    node->MaxEngineClockMhzCCompute = 2000;
    if (id > 0) {
        describe_gpu(node);
        return OK;
    }
    node->NumCPUCores = 2;
    node->NumCaches = 1;
    node->NumMemoryBanks = 1;
    strcpy((char *)node->AMDName, "processor");
    return OK;
}

HSAKMT_STATUS hsaKmtGetNodeMemoryProperties(HSAuint32 id, HSAuint32 n, HsaMemoryProperties *banks)
{
    static const struct {
        HSA_HEAPTYPE type;
        uint64_t bytes, base;
    } gpu[] = {{HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC, 8 * GIB, 0},
               {HSA_HEAPTYPE_GPU_LDS, 64 << 10, (uint64_t)1 << 48},
               {HSA_HEAPTYPE_GPU_SCRATCH, 4 * GIB, (uint64_t)2 << 48}};

    memset(banks, 0, n * sizeof *banks);
    for (HSAuint32 i = 0; i < n && i < 3; i++) {
        banks[i].HeapType = id ? gpu[i].type : HSA_HEAPTYPE_SYSTEM;
        banks[i].SizeInBytes = id ? gpu[i].bytes : 8 * GIB;
        banks[i].VirtualBaseAddress = id ? gpu[i].base : 0;
        banks[i].Width = id ? 2048 : 64;
        banks[i].MemoryClockMax = 800;
    }
    return OK;
}

HSAKMT_STATUS hsaKmtGetNodeCacheProperties(HSAuint32 id, HSAuint32 processor, HSAuint32 n,
                                           HsaCacheProperties *caches)
{
    (void)processor;
    memset(caches, 0, n * sizeof *caches);
    for (HSAuint32 i = 0; i < n; i++) {
        caches[i].CacheLevel = i + 1;
        caches[i].CacheSize = i ? 4096 : 16;
        caches[i].CacheLineSize = 64;
        caches[i].CacheType.ui32.Data = 1;
        caches[i].CacheType.ui32.HSACU = id != 0;
        caches[i].CacheType.ui32.CPU = id == 0;
    }
    return OK;
}

HSAKMT_STATUS hsaKmtGetNodeIoLinkProperties(HSAuint32 id, HSAuint32 n, HsaIoLinkProperties *links)
{
    memset(links, 0, n * sizeof *links);
    links->IoLinkType = HSA_IOLINKTYPE_PCIEXPRESS;
    links->NodeFrom = id;
    links->NodeTo = id ? 0 : 1;
    links->Weight = 20;
    return OK;
}

HSAKMT_STATUS hsaKmtGetClockCounters(HSAuint32 id, HsaClockCounters *clocks)
{
    (void)id;
    clocks->GPUClockCounter = gpu_ticks();
    clocks->CPUClockCounter = clock_ns(CLOCK_MONOTONIC_RAW);
    clocks->SystemClockCounter = clock_ns(CLOCK_BOOTTIME);
    clocks->SystemClockFrequencyHz = 1000000000;
    return OK;
}

/* -------------------------------------------------------------------------- memory */

struct block {
    char *at;
    uint64_t bytes;
    HSAuint32 node;
    HsaMemFlags flags;
    bool registered; /* memory of the program */
    void *user;
    struct block *next;
};
static struct block *blocks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void block_add(void *at, uint64_t bytes, HSAuint32 node, HsaMemFlags flags, bool registered)
{
    struct block *b = calloc(1, sizeof *b);

    *b = (struct block){at, bytes, node, flags, registered, NULL, NULL};
    pthread_mutex_lock(&lock);
    b->next = blocks;
    blocks = b;
    pthread_mutex_unlock(&lock);
}

static void block_remove(const void *at)
{
    pthread_mutex_lock(&lock);
    for (struct block **b = &blocks; *b; b = &(*b)->next) {
        if ((*b)->at == at) {
            struct block *gone = *b;

            *b = gone->next;
            free(gone);
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

HSAKMT_STATUS hsaKmtAllocMemory(HSAuint32 node, HSAuint64 bytes, HsaMemFlags flags, void **out)
{
    int protection = PROT_READ | PROT_WRITE | (flags.ui32.ExecuteAccess ? PROT_EXEC : 0);
    char *at = mmap(NULL, bytes + ALIGNMENT, protection,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (at == MAP_FAILED)
        return HSAKMT_STATUS_NO_MEMORY;
    at += -(uintptr_t)at & (ALIGNMENT - 1);
    block_add(at, bytes, node, flags, false);
    *out = at;
    return OK;
}

/* The pages are kept: a thread of a queue may still read them. */
HSAKMT_STATUS hsaKmtFreeMemory(void *at, HSAuint64 bytes)
{
    (void)bytes;
    block_remove(at);
    return OK;
}

HSAKMT_STATUS hsaKmtRegisterMemoryWithFlags(void *at, HSAuint64 bytes, HsaMemFlags flags)
{
    block_add(at, bytes, 0, flags, true);
    return OK;
}

HSAKMT_STATUS hsaKmtDeregisterMemory(void *at)
{
    block_remove(at);
    return OK;
}

HSAKMT_STATUS hsaKmtQueryPointerInfo(const void *at, HsaPointerInfo *out)
{
    memset(out, 0, sizeof *out);
    pthread_mutex_lock(&lock);
    for (const struct block *b = blocks; b; b = b->next) {
        if ((const char *)at < b->at || (const char *)at >= b->at + b->bytes)
            continue;
        out->Type = b->registered ? HSA_POINTER_REGISTERED_USER : HSA_POINTER_ALLOCATED;
        out->Node = b->node;
        out->MemFlags = b->flags;
        out->CPUAddress = b->at;
        out->GPUAddress = (HSAuint64)(uintptr_t)b->at;
        out->SizeInBytes = b->bytes;
        out->NRegisteredNodes = b->registered;
        out->NMappedNodes = 1;
        out->RegisteredNodes = out->MappedNodes = gpu_node;
        out->UserData = b->user;
        break;
    }
    pthread_mutex_unlock(&lock);
    return OK;
}

HSAKMT_STATUS hsaKmtSetMemoryUserData(const void *at, void *user)
{
    pthread_mutex_lock(&lock);
    for (struct block *b = blocks; b; b = b->next) {
        if (b->at == at) {
            b->user = user;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return OK;
}

HSAKMT_STATUS hsaKmtMapMemoryToGPU(void *at, HSAuint64 bytes, HSAuint64 *other)
{
    (void)at, (void)bytes;
    if (other)
        *other = 0;
    return OK;
}

HSAKMT_STATUS hsaKmtMapMemoryToGPUNodes(void *at, HSAuint64 bytes, HSAuint64 *other,
                                        HsaMemMapFlags flags, HSAuint64 n, HSAuint32 *nodes)
{
    (void)flags, (void)n, (void)nodes;
    return hsaKmtMapMemoryToGPU(at, bytes, other);
}

HSAKMT_STATUS hsaKmtUnmapMemoryToGPU(void *at)
{
    (void)at;
    return OK;
}

HSAKMT_STATUS hsaKmtSetMemoryPolicy(HSAuint32 node, HSAuint32 policy, HSAuint32 other, void *at,
                                    HSAuint64 bytes)
{
    (void)node, (void)policy, (void)other, (void)at, (void)bytes;
    return OK;
}

/* -------------------------------------------------------------------------- compute queues */

struct signal {
    int64_t kind;
    _Atomic int64_t value;
    uint64_t mailbox;
    uint32_t event, reserved;
    uint64_t start, end;
};

struct packet {
    _Atomic uint16_t header;
    uint16_t words[3];
    uint64_t signals[6]; /* of a barrier: the first five */
    uint64_t done;
};

struct queue {
    char *ring;
    uint64_t bytes;
    _Atomic uint64_t doorbell, read, write; /* the last two: of a copy queue */
    _Atomic uint64_t *read_index;           /* of a compute queue: in the runtime's memory */
    atomic_bool stop;
    pthread_t thread;
};

enum { INVALID = 1, KERNEL = 2, BARRIER_AND = 3, BARRIER_OR = 5 };

static struct signal *signal_at(uint64_t handle)
{
    return (struct signal *)(uintptr_t)handle;
}

static bool is_reached(const struct packet *p, bool any)
{
    int set = 0, zero = 0;

    for (int i = 0; i < 5; i++) {
        set += p->signals[i] != 0;
        zero += p->signals[i] && !signal_at(p->signals[i])->value;
    }
    return any ? zero || !set : zero == set;
}

static void packet_run(const struct queue *q, struct packet *p)
{
    int type = p->header & 0xff;
    uint64_t start = gpu_ticks(), done = p->done;

    if (type == KERNEL)
        usleep(KERNEL_US);
    while ((type == BARRIER_AND || type == BARRIER_OR) && !q->stop &&
           !is_reached(p, type == BARRIER_OR))
        usleep(5);
    p->header = INVALID;
    if (done) {
        signal_at(done)->start = start;
        signal_at(done)->end = gpu_ticks();
    }
}

static void *compute_thread(void *data)
{
    struct queue *q = data;
    uint64_t read = 0;

    while (!q->stop) {
        struct packet *p = (struct packet *)(q->ring + read * sizeof *p % q->bytes);
        uint64_t done;

        if (q->doorbell == UINT64_MAX || q->doorbell < read || (p->header & 0xff) == INVALID) {
            usleep(10);
            continue;
        }
        done = p->done;
        packet_run(q, p);
        *q->read_index = ++read;
        if (done)
            signal_at(done)->value--;
    }
    return NULL;
}

/* -------------------------------------------------------------------------- copy queues */

static uint64_t address(const uint32_t *words)
{
    return words[0] | (uint64_t)words[1] << 32;
}

static void *pointer(const uint32_t *words)
{
    return (void *)(uintptr_t)address(words);
}

/* Of one side of a rectangle: the address of row y of slice z. Sizes are in elements, and stored
   less one. */
static char *row_at(const uint32_t *w, uint32_t shift, uint32_t y, uint32_t z)
{
    uint64_t x0 = w[2] & 0x3fff, y0 = w[2] >> 16 & 0x3fff, z0 = w[3] & 0x7ff;
    uint64_t pitch = (w[3] >> 13) + 1, slice = (w[4] & 0xfffffff) + 1;

    return (char *)pointer(w) + ((x0 + (y0 + y) * pitch + (z0 + z) * slice) << shift);
}

static void copy_rectangle(const uint32_t *w)
{
    uint32_t shift = w[0] >> 29, nx = (w[11] & 0x3fff) + 1, ny = (w[11] >> 16 & 0x3fff) + 1;

    for (uint32_t z = 0; z <= (w[12] & 0x7ff); z++) {
        for (uint32_t y = 0; y < ny; y++)
            memcpy(row_at(w + 6, shift, y, z), row_at(w + 1, shift, y, z), (size_t)nx << shift);
    }
}

/* Executes a packet. Returns its size in words. */
static uint32_t copy_packet(const struct queue *q, const uint32_t *w)
{
    uint32_t operation = w[0] & 0xff, n;

    switch (operation) {
    case 0: /* nothing */
        return 1 + (w[0] >> 16 & 0x3fff);
    case 1: /* copy */
        if ((w[0] >> 8 & 0xff) == 4) {
            copy_rectangle(w);
            return 13;
        }
        if (w[0] >> 8 & 0xff)
            break;
        memcpy(pointer(w + 5), pointer(w + 3), (size_t)(w[1] & 0x3fffffff) + 1);
        return 7;
    case 5: /* fence */
        *(_Atomic uint32_t *)pointer(w + 1) = w[3];
        return 4;
    case 6: /* trap */
        return 2;
    case 8: /* wait for a value */
        while (w[0] >> 31 && !q->stop && (*(_Atomic uint32_t *)pointer(w + 1) & w[4]) != w[3])
            usleep(5);
        return 6;
    case 10: /* addition */
        atomic_fetch_add((_Atomic int64_t *)pointer(w + 1), (int64_t)address(w + 3));
        return 8;
    case 11: /* fill */
        n = ((w[4] & 0x3fffffff) + 1) / 4;
        for (uint32_t *to = pointer(w + 1); n > 0; n--)
            *to++ = w[3];
        return 5;
    case 13: /* timestamp */
        *(uint64_t *)pointer(w + 1) = gpu_ticks();
        return 3;
    default:
        break;
    }
    fprintf(stderr, "fake_kfd: packet %#x of a copy queue is not known\n", w[0]);
    _exit(70);
}

static void *copy_thread(void *data)
{
    struct queue *q = data;

    while (!q->stop) {
        uint32_t words[16];

        if (q->read == q->write) {
            usleep(10);
            continue;
        }
        for (uint32_t i = 0; i < 16; i++)
            memcpy(&words[i], q->ring + (q->read + i * 4) % q->bytes, 4);
        q->read += 4 * copy_packet(q, words);
    }
    return NULL;
}

HSAKMT_STATUS hsaKmtCreateQueue(HSAuint32 node, HSA_QUEUE_TYPE type, HSAuint32 percentage,
                                HSA_QUEUE_PRIORITY priority, void *ring, HSAuint64 bytes,
                                HsaEvent *event, HsaQueueResource *out)
{
    bool compute = type == HSA_QUEUE_COMPUTE_AQL;
    struct queue *q = calloc(1, sizeof *q);

    (void)node, (void)percentage, (void)priority, (void)event;
    q->ring = ring;
    q->bytes = bytes;
    q->doorbell = compute ? UINT64_MAX : 0;
    if (compute) {
        q->read_index = (_Atomic uint64_t *)out->Queue_read_ptr_aql;
    } else {
        out->Queue_read_ptr = (HSAuint32 *)&q->read;
        out->Queue_write_ptr = (HSAuint32 *)&q->write;
    }
    out->Queue_DoorBell_aql = (HSAuint64 *)&q->doorbell;
    out->QueueId = (HSA_QUEUEID)(uintptr_t)q;
    pthread_create(&q->thread, NULL, compute ? compute_thread : copy_thread, q);
    return OK;
}

HSAKMT_STATUS hsaKmtDestroyQueue(HSA_QUEUEID id)
{
    struct queue *q = (struct queue *)(uintptr_t)id;

    q->stop = true;
    pthread_join(q->thread, NULL);
    return OK;
}

HSAKMT_STATUS hsaKmtUpdateQueue(HSA_QUEUEID id, HSAuint32 percentage, HSA_QUEUE_PRIORITY priority,
                                void *ring, HSAuint64 bytes, HsaEvent *event)
{
    (void)id, (void)percentage, (void)priority, (void)ring, (void)bytes, (void)event;
    return OK;
}

HSAKMT_STATUS hsaKmtSetQueueCUMask(HSA_QUEUEID id, HSAuint32 n, HSAuint32 *mask)
{
    (void)id, (void)n, (void)mask;
    return OK;
}

HSAKMT_STATUS hsaKmtAllocQueueGWS(HSA_QUEUEID id, HSAuint32 n, HSAuint32 *first)
{
    (void)id, (void)n, (void)first;
    return HSAKMT_STATUS_NOT_SUPPORTED;
}

/* -------------------------------------------------------------------------- the rest */

HSAKMT_STATUS hsaKmtCreateEvent(HsaEventDescriptor *what, bool manual, bool set, HsaEvent **out)
{
    static _Atomic HSAuint32 ids;

    (void)what, (void)manual, (void)set;
    *out = calloc(1, sizeof **out);
    (*out)->EventId = ++ids;
    return OK;
}

HSAKMT_STATUS hsaKmtDestroyEvent(HsaEvent *event)
{
    free(event);
    return OK;
}

HSAKMT_STATUS hsaKmtSetEvent(HsaEvent *event)
{
    (void)event;
    return OK;
}

HSAKMT_STATUS hsaKmtWaitOnEvent(HsaEvent *event, HSAuint32 ms)
{
    (void)event, (void)ms;
    usleep(1000);
    return OK;
}

HSAKMT_STATUS hsaKmtWaitOnMultipleEvents(HsaEvent **events, HSAuint32 n, bool all, HSAuint32 ms)
{
    (void)all;
    return n ? hsaKmtWaitOnEvent(events[0], ms) : OK;
}

HSAKMT_STATUS hsaKmtSetTrapHandler(HSAuint32 node, void *code, HSAuint64 bytes, void *buffer,
                                   HSAuint64 buffer_bytes)
{
    (void)node, (void)code, (void)bytes, (void)buffer, (void)buffer_bytes;
    return OK;
}

HSAKMT_STATUS hsaKmtGetTileConfig(HSAuint32 node, HsaGpuTileConfig *config)
{
    (void)node, (void)config;
    return OK;
}

HSAKMT_STATUS hsaKmtRuntimeEnable(void *debug, bool setup)
{
    (void)debug, (void)setup;
    return HSAKMT_STATUS_NOT_SUPPORTED;
}

HSAKMT_STATUS hsaKmtRuntimeDisable(void)
{
    return OK;
}

HSAKMT_STATUS hsaKmtGetXNACKMode(HSAint32 *enabled)
{
    *enabled = 0;
    return OK;
}
