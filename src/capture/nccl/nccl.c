/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nccl library: an NCCL profiler plugin (NCCL_PROFILER_PLUGIN), versions 1 to 6 of the
 * interface. NCCL initialises it once for each communicator and reports each collective, send and
 * receive when it is enqueued. These become spans of the thread that enqueued them, with
 * communicator, sequence number, bytes, algorithm, protocol and channels. NCCL reports the end of
 * device work only by channel: with `--set nccl.channels=on` a second span covers the time from the
 * first channel's start to the last one's end. (This has a cost: NCCL then polls counters that its
 * kernels write.)
 *
 * NCCL launches the kernel first and reports its collectives immediately after, on the same thread.
 * From version 5 on it also reports the launch, and the span begins with it, so that the launch is
 * inside its collective; for earlier versions the reader looks at the spans after the launch. A
 * communicator of one rank runs copies instead of collectives, and NCCL does not report them.
 *
 * A handle is a number, not a pointer: NCCL may use a handle after its end, and passes handles of
 * other processes. The number gives the slot, and whether the slot still holds that event.
 */
#include "abi/nccl_profiler.h"
#include "capture/core/core.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT  __attribute__((visibility("default")))
#define SLOTS   (1 << 14)
#define TRACKS  UINT64_C(0x4e43000000) /* tracks of device spans, above all thread ids */
#define DEPTH   256                    /* nested events of a thread */
#define THREADS 64 /* threads that enqueue; events of further threads do not nest */

struct comm {
    char name[48];
    uint64_t hash;
    int ranks, rank, nodes;
    uint32_t number;
};

struct op {
    _Atomic uint64_t handle;
    uint64_t type, begin, parent;
    const struct comm *comm;
    char func[32], datatype[16], algorithm[16], protocol[16], group[48];
    uint64_t hash, seq, count;
    int64_t root, peer, traffic;
    uint32_t tid, channels;
    bool stopped;
    _Atomic uint32_t channels_begun, channels_ended;
    _Atomic uint64_t first, last;
};

static const struct rp_capture *cap;
static struct op *slots;
static _Atomic uint64_t handles;
static _Atomic uint32_t comms;
static bool channels_wanted;
/* Open events of a thread. They are not in thread-local storage, because a library loaded at run
   time gets very little of it; only `here` is. */
static struct opened {
    _Atomic uint32_t tid;
    uint32_t n;
    uint64_t handle[DEPTH];
    uint64_t launched; /* begin of the launch whose collectives are reported next */
    const struct comm *launcher;
} opened[THREADS];

static __thread struct here {
    uint32_t process, tid; /* the process id changes in the child of a fork */
    struct opened *opened; /* NULL: too many threads */
} here __attribute__((tls_model("initial-exec")));

/* -------------------------------------------------------------------------- descriptions */

static void copy_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}

static const char *word(const char *const *words, size_t n, unsigned i)
{
    return i < n ? words[i] : "";
}
#define WORD(words, i) word(words, sizeof(words) / sizeof(words)[0], i)

/* Names for the numbers of version 1. */
static const char *const funcs[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                    "AllReduce", "SendRecv", "Send",      "Recv"};
static const char *const types[] = {"ncclInt8",     "ncclUint8",      "ncclInt32",
                                    "ncclUint32",   "ncclInt64",      "ncclUint64",
                                    "ncclFloat16",  "ncclFloat32",    "ncclFloat64",
                                    "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
static const char *const algorithms[] = {
    "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
static const char *const protocols[] = {"LL", "LL128", "SIMPLE"};

/* Type names of PyTorch's traces, and the bytes of an element. */
static const struct {
    const char *nccl, *name;
    int bytes;
} elements[] = {{"ncclInt8", "Char", 1},
                {"ncclUint8", "Byte", 1},
                {"ncclInt32", "Int", 4},
                {"ncclUint32", "Int", 4},
                {"ncclInt64", "Long", 8},
                {"ncclUint64", "Long", 8},
                {"ncclFloat16", "Half", 2},
                {"ncclFloat32", "Float", 4},
                {"ncclFloat64", "Double", 8},
                {"ncclBfloat16", "BFloat16", 2},
                {"ncclFloat8e4m3", "Float8_e4m3fn", 1},
                {"ncclFloat8e5m2", "Float8_e5m2", 1}};

static const char *element_of(const char *type, int *bytes)
{
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++) {
        if (!strcmp(type, elements[i].nccl)) {
            *bytes = elements[i].bytes;
            return elements[i].name;
        }
    }
    *bytes = 0;
    return type;
}

static void describe_op(struct op *e, const char *func, const char *datatype, uint64_t count)
{
    copy_text(e->func, sizeof e->func, func);
    copy_text(e->datatype, sizeof e->datatype, datatype);
    e->count = count;
}

/* The fields that versions 2 to 6 have under the same names. */
#define DESCRIBE_COLL(e, c)                                              \
    do {                                                                 \
        describe_op(e, (c)->func, (c)->datatype, (c)->count);            \
        copy_text((e)->algorithm, sizeof(e)->algorithm, (c)->algorithm); \
        copy_text((e)->protocol, sizeof(e)->protocol, (c)->protocol);    \
        (e)->seq = (c)->seq;                                             \
        (e)->root = (c)->root;                                           \
        (e)->channels = (c)->channels;                                   \
    } while (0)

static void describe_coll(struct op *e, const struct rp_nccl_descr *d, int version)
{
    if (version == 1) {
        /* Version 1 of the description. */
        describe_op(e, WORD(funcs, d->coll1.func), WORD(types, d->coll1.datatype), d->coll1.count);
        copy_text(e->algorithm, sizeof e->algorithm, WORD(algorithms, d->coll1.algorithm));
        copy_text(e->protocol, sizeof e->protocol, WORD(protocols, d->coll1.protocol));
        copy_text(e->group, sizeof e->group, d->coll1.name);
        e->hash = d->coll1.comm;
        e->seq = d->coll1.seq;
        e->root = d->coll1.root;
        e->traffic = (int64_t)d->coll1.traffic_bytes;
        e->channels = d->coll1.channels;
    } else if (version == 2) {
        DESCRIBE_COLL(e, &d->coll2);
        e->traffic = (int64_t)d->coll2.traffic_bytes;
    } else if (version == 3) {
        DESCRIBE_COLL(e, &d->coll3);
    } else {
        DESCRIBE_COLL(e, &d->coll4);
    }
    if (version == 2 || version == 3) { /* these fields are at the same offset in both */
        e->hash = d->coll3.comm;
        copy_text(e->group, sizeof e->group, d->coll3.name);
    }
}

/* Fills the event from its description, whose layout depends on the version: the first has numbers
   where the others have names. */
static void describe(struct op *e, const struct rp_nccl_descr *d, int version)
{
    switch (e->type) {
    case RP_NCCL_COLL:
        describe_coll(e, d, version);
        break;
    case RP_NCCL_P2P:
        if (version == 1) {
            describe_op(e, WORD(funcs, d->p2p1.func), WORD(types, d->p2p1.datatype), d->p2p1.count);
            e->peer = d->p2p1.peer;
        } else if (version <= 3) {
            describe_op(e, d->p2p2.func, d->p2p2.datatype, d->p2p2.count);
            e->peer = d->p2p2.peer;
        } else {
            describe_op(e, d->p2p4.func, d->p2p4.datatype, d->p2p4.count);
            e->peer = d->p2p4.peer;
            e->channels = d->p2p4.channels;
        }
        if (version <= 3) {
            e->hash = d->p2p2.comm;
            copy_text(e->group, sizeof e->group, d->p2p2.name);
        }
        break;
    case RP_NCCL_COLL_API:
        describe_op(e, d->coll_api.func, d->coll_api.datatype, d->coll_api.count);
        e->root = d->coll_api.root;
        break;
    case RP_NCCL_P2P_API:
        describe_op(e, d->p2p_api.func, d->p2p_api.datatype, d->p2p_api.count);
        break;
    case RP_NCCL_CE_COLL:
        describe_op(e, d->ce_coll.func, d->ce_coll.datatype, d->ce_coll.count);
        e->seq = d->ce_coll.seq;
        e->root = d->ce_coll.root;
        break;
    default:
        break;
    }
}

static void add_text(struct rp_capture_args *a, const char *key, const char *text)
{
    if (text[0])
        rp_capture_add_text(a, key, text);
}

/* Elements of the output of a rank that contributes `count`. */
static uint64_t output_elements(const struct op *e)
{
    uint64_t ranks = e->comm->ranks > 0 ? (uint64_t)e->comm->ranks : 1;

    return !strcmp(e->func, "AllGather") ? e->count * ranks : e->count;
}

/* The arguments of the event's span, with the keys of PyTorch's traces; `group` is a buffer for one
   of them. NCCL reports broadcasts and gathers as bytes, whatever their type. */
static void add_args(const struct op *e, struct rp_capture_args *a, char group[40])
{
    uint64_t ranks = e->comm->ranks > 0 ? (uint64_t)e->comm->ranks : 1;
    int bytes;
    const char *type = element_of(e->datatype, &bytes);

    snprintf(group, 40, "%016llx", (unsigned long long)(e->hash ? e->hash : e->comm->hash));
    add_text(a, "Collective name", e->func);
    rp_capture_add_number(
        a, "In msg nelems",
        (int64_t)(!strcmp(e->func, "ReduceScatter") ? e->count * ranks : e->count));
    rp_capture_add_number(a, "Out msg nelems", (int64_t)output_elements(e));
    add_text(a, "dtype", type);
    add_text(a, "Process Group Name", group);
    add_text(a, "Process Group Description", e->group[0] ? e->group : e->comm->name);
    if (e->comm->ranks > 0)
        rp_capture_add_number(a, "Group size", e->comm->ranks);
    if (bytes)
        rp_capture_add_number(a, "bytes", (int64_t)e->count * bytes);
    add_text(a, "algorithm", e->algorithm);
    add_text(a, "protocol", e->protocol);
    if (e->channels)
        rp_capture_add_number(a, "channels", e->channels);
    if (e->traffic)
        rp_capture_add_number(a, "traffic bytes", e->traffic);
    if (e->type == RP_NCCL_P2P) {
        rp_capture_add_number(a, "peer", e->peer);
        if (e->comm->ranks > 0)
            rp_capture_add_number(a, "Group rank", e->comm->rank);
    } else if (e->root >= 0) {
        rp_capture_add_number(a, "root", e->root);
    }
    if (e->type == RP_NCCL_COLL || e->type == RP_NCCL_CE_COLL)
        rp_capture_add_number(a, "Seq", (int64_t)e->seq);
}

/* -------------------------------------------------------------------------- communicators */

static void nccl_begin(void)
{
    cap = rp_capture_get();
    if (!cap)
        return;
    slots = calloc(SLOTS, sizeof *slots);
    const char *text = cap->option("nccl.channels");
    channels_wanted = text && !strcmp(text, "on");
}

static int mask_of(int version)
{
    int mask = RP_NCCL_COLL | RP_NCCL_P2P;

    if (version >= 3 && channels_wanted)
        mask |= RP_NCCL_KERNEL_CHANNEL;
    if (version >= 5)
        mask |= RP_NCCL_COLL_API | RP_NCCL_P2P_API | RP_NCCL_KERNEL_LAUNCH;
    if (version >= 6)
        mask |= RP_NCCL_CE_COLL;
    return mask;
}

/* All communicators share the mask, and other threads may be reading it, so it is stored once. */
static int make_comm(void **context, int *mask, int version, const struct comm *from)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct comm *comm;

    pthread_once(&once, nccl_begin);
    *context = NULL;
    comm = cap && slots ? malloc(sizeof *comm) : NULL;
    if (!comm) {
        *mask = 0;
        return 0; /* NCCL continues without the plugin */
    }
    *comm = *from;
    comm->number = atomic_fetch_add(&comms, 1);
    *context = comm;

    /* Describes the communicator, and once the version of the interface. */
    char key[32], text[160];
    if (version >= 4) {
        snprintf(key, sizeof key, "nccl.comm.%u", comm->number);
        snprintf(text, sizeof text, "%016llx %s rank %d of %d on %d nodes",
                 (unsigned long long)comm->hash, comm->name, comm->rank, comm->ranks, comm->nodes);
        cap->fact(key, text);
    }
    if (!comm->number) {
        snprintf(text, sizeof text, "%d", version);
        cap->fact("nccl.profiler_version", text);
    }
    *mask = mask_of(version);
    return 0;
}

/* -------------------------------------------------------------------------- spans */

static void put_op(const struct op *e, uint64_t from, uint64_t to, bool device)
{
    bool api = e->type == RP_NCCL_COLL_API || e->type == RP_NCCL_P2P_API;
    bool call = api || (channels_wanted && e->channels && !device); /* the device's span follows */
    struct rp_capture_span span = {.kind = call ? RP_CTF_KIND_OPERATOR : RP_CTF_KIND_COLLECTIVE,
                                   .timebase = RP_CTF_TIME_TICKS,
                                   .begin = from,
                                   .end = to,
                                   .category = api      ? "nccl_call"
                                               : device ? "nccl_device"
                                                        : "nccl",
                                   .device = RP_CTF_SPAN_DEVICE,
                                   .track = device ? TRACKS + e->comm->number : e->tid};
    struct rp_capture_args args = {.n = 0};
    char group[40], name[64];

    snprintf(name, sizeof name, "%s%.31s", api ? "nccl" : "nccl:", e->func);
    span.name = name;
    add_args(e, &args, group);
    span.args = args.at;
    span.nargs = args.n;
    cap->span(&span);
}

/* -------------------------------------------------------------------------- events */

static struct op *event_of(const void *handle)
{
    uint64_t number = (uint64_t)(uintptr_t)handle;
    struct op *e = number ? &slots[number % SLOTS] : NULL;

    return e && atomic_load(&e->handle) == number ? e : NULL;
}

static void begin_channel(const struct op *channel)
{
    struct op *e = event_of((const void *)(uintptr_t)channel->parent);
    uint64_t none = 0;

    if (!e)
        return;
    atomic_compare_exchange_strong(&e->first, &none, channel->begin);
    atomic_fetch_add(&e->channels_begun, 1);
}

static void end_channel(const struct op *channel, uint64_t now)
{
    struct op *e = event_of((const void *)(uintptr_t)channel->parent);

    if (!e)
        return;
    atomic_store(&e->last, now);
    if (atomic_fetch_add(&e->channels_ended, 1) + 1 == e->channels)
        put_op(e, atomic_load(&e->first), now, true);
}

static struct opened *thread_slot(uint32_t tid)
{
    for (uint32_t i = 0; i < THREADS; i++) {
        struct opened *o = &opened[(tid + i) % THREADS];
        uint32_t none = 0;

        if (atomic_load(&o->tid) == tid || atomic_compare_exchange_strong(&o->tid, &none, tid))
            return o;
    }
    return NULL;
}

/* This thread; asks for its id once. */
static const struct here *this_thread(void)
{
    uint32_t process = cap->process_id();

    if (here.process != process) {
        here.tid = (uint32_t)syscall(SYS_gettid);
        here.opened = thread_slot(here.tid);
        here.process = process;
    }
    return &here;
}

/* NCCL starts all events of a group, then stops them in the same order. An event is written when
   those that began inside it have stopped, so that the thread's spans nest. */
static void stop_nested(struct op *e, uint64_t now)
{
    struct opened *o = this_thread()->opened;
    bool found = false;

    e->stopped = true;
    for (uint32_t i = 0; o && i < o->n; i++)
        found = found || event_of((const void *)(uintptr_t)o->handle[i]) == e;
    if (!found) {
        put_op(e, e->begin, now, false); /* started by another thread, or too deep */
        return;
    }
    while (o->n) {
        struct op *top = event_of((const void *)(uintptr_t)o->handle[o->n - 1]);

        if (top && !top->stopped)
            return;
        if (top)
            put_op(top, top->begin, now, false);
        o->n--;
    }
}

static uint64_t op_begin(struct opened *o, const struct op *e, uint64_t now)
{
    if (e->type != RP_NCCL_COLL && e->type != RP_NCCL_P2P)
        o->launched = 0;
    return o->launched && o->launcher == e->comm ? o->launched : now;
}

static struct op *make_event(void *context, const struct rp_nccl_descr *d, int version,
                             uint64_t type, uint64_t *number)
{
    *number = atomic_fetch_add(&handles, 1) + 1;
    struct op *e = &slots[*number % SLOTS];
    atomic_store(&e->handle, 0);
    *e = (struct op){.type = type, .comm = context, .root = -1};
    e->tid = this_thread()->tid;
    e->parent = (uint64_t)(uintptr_t)d->parent;
    describe(e, d, version);
    e->begin = cap->now();
    return e;
}

static int event_start(void *context, void **handle, const struct rp_nccl_descr *d, int version)
{
    uint64_t type = version >= 5 ? d->type : d->type & 255, number;

    *handle = NULL;
    if (!context || !cap->ready() ||
        !(type & (RP_NCCL_COLL | RP_NCCL_P2P | RP_NCCL_KERNEL_CHANNEL | RP_NCCL_COLL_API |
                  RP_NCCL_P2P_API | RP_NCCL_KERNEL_LAUNCH | RP_NCCL_CE_COLL)))
        return 0;
    struct opened *o = type == RP_NCCL_KERNEL_CHANNEL ? NULL : this_thread()->opened;
    if (type == RP_NCCL_KERNEL_LAUNCH) {
        if (o) {
            /* A launch is not an event of its own: its begin is kept for its collectives, which
               follow immediately. If any other event comes first, the collectives are reported
               elsewhere. */
            o->launched = cap->now();
            o->launcher = context;
        }
        return 0;
    }
    struct op *e = make_event(context, d, version, type, &number);
    if (o)
        e->begin = op_begin(o, e, e->begin);
    atomic_store(&e->handle, number);
    if (type == RP_NCCL_KERNEL_CHANNEL)
        begin_channel(e);
    else if (o && o->n < DEPTH)
        o->handle[o->n++] = number;
    *handle = (void *)(uintptr_t)number;
    return 0;
}

static int event_stop(void *handle)
{
    struct op *e = slots ? event_of(handle) : NULL;

    if (!e)
        return 0;
    uint64_t now = cap->now();
    if (e->type == RP_NCCL_KERNEL_CHANNEL)
        end_channel(e, now);
    else if (!e->stopped)
        stop_nested(e, now);
    return 0;
}

static int event_state(void *handle, int state, void *args)
{
    (void)handle, (void)state, (void)args;
    return 0;
}

/* The communicator is not freed, because NCCL may still report events of it. */
static int finalize(void *context)
{
    (void)context;
    return 0;
}

/* -------------------------------------------------------------------------- versions */

#define START(version)                                                                   \
    static int start##version(void *context, void **handle, struct rp_nccl_descr *descr) \
    {                                                                                    \
        return event_start(context, handle, descr, version);                             \
    }
START(1)
START(2)
START(3)
START(4)
START(5)
START(6)

#define INIT_PLAIN(version)                                                   \
    static int init##version(void **context, int *mask)                       \
    {                                                                         \
        return make_comm(context, mask, version, &(struct comm){.ranks = 0}); \
    }
INIT_PLAIN(1)
INIT_PLAIN(2)
INIT_PLAIN(3)

static struct comm comm_of(const char *name, uint64_t hash, int nodes, int ranks, int rank)
{
    struct comm comm = {.hash = hash, .ranks = ranks, .rank = rank, .nodes = nodes};

    snprintf(comm.name, sizeof comm.name, "%s", name ? name : "");
    return comm;
}

static int init4(void **context, int *mask, const char *name, uint64_t hash, int nodes, int ranks,
                 int rank, void *log)
{
    struct comm comm = comm_of(name, hash, nodes, ranks, rank);

    (void)log;
    return make_comm(context, mask, 4, &comm);
}

static int init5(void **context, uint64_t hash, int *mask, const char *name, int nodes, int ranks,
                 int rank, void *log)
{
    struct comm comm = comm_of(name, hash, nodes, ranks, rank);

    (void)log;
    return make_comm(context, mask, 5, &comm);
}

static int init6(void **context, uint64_t hash, int *mask, const char *name, int nodes, int ranks,
                 int rank, void *log)
{
    struct comm comm = comm_of(name, hash, nodes, ranks, rank);

    (void)log;
    return make_comm(context, mask, 6, &comm);
}

#define PLUGIN(version, field)                                           \
    EXPORT extern const struct rp_nccl_profiler ncclProfiler_v##version; \
    const struct rp_nccl_profiler ncclProfiler_v##version = {            \
        "reprise", {.field = init##version}, start##version, event_stop, event_state, finalize};
PLUGIN(1, init1)
PLUGIN(2, init1)
PLUGIN(3, init1)
PLUGIN(4, init4)
PLUGIN(5, init5)
PLUGIN(6, init5)
