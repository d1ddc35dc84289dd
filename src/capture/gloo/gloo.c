/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source `gloo`, loaded by LD_PRELOAD, records collectives of gloo, the library with which
 * PyTorch (torch.distributed on the CPU) and others communicate between hosts. Its functions are
 * C++, but each takes a reference to its options and returns nothing, so C functions with their
 * mangled names can replace them. A function runs on a thread of gloo's from its begin to its end,
 * so its span is the time that the rank waits and transfers. Exceptions pass through.
 *
 * The options begin with a pointer to the context. What it points to is private: the number of
 * ranks is noted when a context is made. How much is sent is in the options.
 */
#include "capture/core/flight.h"
#include "capture/core/next.h"

#include <stdatomic.h>

#define EXPORT   __attribute__((visibility("default")))
#define CONTEXTS 256
#define LARGEST  (UINT64_C(1) << 40) /* the most bytes that are believed */

static const struct rp_capture *cap;
static struct rp_flight flights[RP_FLIGHTS];

/* Contexts that were made; when full, new ones replace the first. */
static struct {
    _Atomic uintptr_t context;
    _Atomic int size;
} made[CONTEXTS];
static _Atomic uint32_t nmade;

static void note_context(const void *context, int size)
{
    uint32_t at = atomic_fetch_add(&nmade, 1) % CONTEXTS;

    atomic_store(&made[at].size, size);
    atomic_store(&made[at].context, (uintptr_t)context);
}

/* The size of the newest context at this address, which may have been reused. 0: unknown. */
static int size_of(uintptr_t context)
{
    uint32_t n = atomic_load(&nmade);

    for (uint32_t i = 0; context && i < n && i < CONTEXTS; i++)
        if (atomic_load(&made[(n - 1 - i) % CONTEXTS].context) == context)
            return atomic_load(&made[(n - 1 - i) % CONTEXTS].size);
    return 0;
}

/* Where options say how much is sent, in words: a number of elements followed by their size, or a
   buffer (functions, address, bytes) and the size of its elements. 0: they do not. */
struct place {
    uint8_t count, buffer, element;
};

static const struct place nowhere = {0, 0, 0}, at_reduction = {10, 0, 11}, at_root = {4, 0, 5},
                          at_input = {0, 2, 4}, at_output = {0, 5, 6};

/* Bytes of this rank's data; -1: unknown. The layout is that of gloo in PyTorch 2.11 and 2.15;
   values that do not fit are not believed. */
static int64_t bytes_of(const void *options, const struct place *place)
{
    const uint64_t *words = options, *buffer;
    uint64_t element = place->element ? words[place->element] : 0, bytes;

    if (!element || element > 16 || (element & (element - 1)))
        return -1;
    if (place->count)
        return __builtin_mul_overflow(words[place->count], element, &bytes) || bytes > LARGEST
                   ? -1
                   : (int64_t)bytes;
    buffer =
        (const uint64_t *)(uintptr_t)words[place->buffer]; /* NOLINT(performance-no-int-to-ptr) */
    if (!buffer || (uintptr_t)buffer % sizeof *buffer || buffer[2] > LARGEST || buffer[2] % element)
        return -1;
    return (int64_t)buffer[2];
}

static void add_number(struct rp_capture_span *span, struct rp_capture_arg *args, const char *key,
                       int64_t number)
{
    args[span->nargs++] =
        (struct rp_capture_arg){.key = key, .type = RP_CTF_ARG_INT, .number = number};
}

/* `peer`: the other rank of a message, or -1 */
static void put_call(const char *name, int size, int peer, int64_t bytes, uint64_t begin)
{
    struct rp_capture_arg args[6] = {
        {.key = "Collective name", .type = RP_CTF_ARG_TEXT, .text = name + 5}};
    struct rp_capture_span span = {.kind = RP_CTF_KIND_COLLECTIVE,
                                   .begin = begin,
                                   .end = cap->now(),
                                   .name = name,
                                   .category = "collective_comm",
                                   .device = RP_CTF_SPAN_DEVICE,
                                   .args = args,
                                   .nargs = 1};

    if (size > 0)
        add_number(&span, args, "Group size", size);
    if (peer >= 0)
        add_number(&span, args, "peer", peer);
    if (bytes >= 0) {
        add_number(&span, args, "In msg nelems", bytes);
        args[span.nargs++] =
            (struct rp_capture_arg){.key = "dtype", .type = RP_CTF_ARG_TEXT, .text = "Byte"};
        add_number(&span, args, "bytes", bytes);
    }
    cap->span(&span);
}

/* Collectives that this thread runs: messages inside of them are their own affair. */
static _Thread_local int collectives;

#define WRAP(symbol, name, place)                                                      \
    EXPORT void symbol(void *options);                                                 \
    void symbol(void *options)                                                         \
    {                                                                                  \
        static void (*next)(void *);                                                   \
        struct rp_flight *flight;                                                      \
        uint64_t begin;                                                                \
        uintptr_t context;                                                             \
        int64_t bytes;                                                                 \
                                                                                       \
        if (!next)                                                                     \
            *(void **)&next =                                                          \
                rp_capture_next(#symbol, __builtin_return_address(0), "libtorch_cpu"); \
        if (!next)                                                                     \
            return;                                                                    \
        if (!cap || !cap->ready()) {                                                   \
            next(options);                                                             \
            return;                                                                    \
        }                                                                              \
        context = options ? *(const uintptr_t *)options : 0;                           \
        bytes = options ? bytes_of(options, &(place)) : -1;                            \
        begin = cap->now();                                                            \
        flight = rp_flight_begin(flights, cap, name, NULL, begin);                     \
        collectives++;                                                                 \
        next(options);                                                                 \
        collectives--;                                                                 \
        rp_flight_end(flight);                                                         \
        put_call(name, size_of(context), -1, bytes, begin);                            \
    }

WRAP(_ZN4gloo9allreduceERKNS_16AllreduceOptionsE, "gloo:all_reduce", at_reduction)
WRAP(_ZN4gloo9allreduceERNS_16AllreduceOptionsE, "gloo:all_reduce", at_reduction)
WRAP(_ZN4gloo9allgatherERNS_16AllgatherOptionsE, "gloo:all_gather", at_input)
WRAP(_ZN4gloo10allgathervERNS_17AllgathervOptionsE, "gloo:all_gather", nowhere)
WRAP(_ZN4gloo8alltoallERNS_15AlltoallOptionsE, "gloo:all_to_all", at_input)
WRAP(_ZN4gloo9alltoallvERNS_16AlltoallvOptionsE, "gloo:all_to_all", nowhere)
WRAP(_ZN4gloo9broadcastERNS_16BroadcastOptionsE, "gloo:broadcast", at_root)
WRAP(_ZN4gloo6reduceERNS_13ReduceOptionsE, "gloo:reduce", at_root)
WRAP(_ZN4gloo6gatherERNS_13GatherOptionsE, "gloo:gather", at_input)
WRAP(_ZN4gloo7gathervERNS_14GathervOptionsE, "gloo:gather", nowhere)
WRAP(_ZN4gloo7scatterERNS_14ScatterOptionsE, "gloo:scatter", at_output)
WRAP(_ZN4gloo7barrierERNS_14BarrierOptionsE, "gloo:barrier", nowhere)

/* gloo::Context::Context(int rank, int size, int base) and that of the class derived from it, each
   for a whole object and for a part of one, because a call inside the library may bypass some of
   them. */
#define MAKE(symbol)                                                                   \
    EXPORT void symbol(void *context, int rank, int size, int base);                   \
    void symbol(void *context, int rank, int size, int base)                           \
    {                                                                                  \
        static void (*next)(void *, int, int, int);                                    \
                                                                                       \
        if (!next)                                                                     \
            *(void **)&next =                                                          \
                rp_capture_next(#symbol, __builtin_return_address(0), "libtorch_cpu"); \
        if (!next)                                                                     \
            return;                                                                    \
        next(context, rank, size, base);                                               \
        note_context(context, size);                                                   \
    }

MAKE(_ZN4gloo10rendezvous7ContextC1Eiii)
MAKE(_ZN4gloo10rendezvous7ContextC2Eiii)
MAKE(_ZN4gloo7ContextC1Eiii)
MAKE(_ZN4gloo7ContextC2Eiii)

/* A buffer of the transport: its virtual functions, address, bytes and context; the context: its
   virtual functions, this rank and the number of ranks. Values that do not fit are not believed. */
static void put_message(const char *name, const void *buffer, int peer, uint64_t begin)
{
    const uint64_t *words = buffer;
    const struct {
        void *functions;
        int rank, size;
    } *context = (const void *)(uintptr_t)words[3]; /* NOLINT(performance-no-int-to-ptr) */
    bool fits = context && (uintptr_t)context % sizeof(void *) == 0 && context->rank >= 0 &&
                context->rank < context->size && peer < context->size;

    put_call(name, fits ? context->size : 0, fits ? peer : -1,
             words[2] <= LARGEST ? (int64_t)words[2] : -1, begin);
}

/* bool gloo::transport::tcp::UnboundBuffer::waitSend(int *rank, std::chrono::milliseconds), and
   waitRecv: what has been sent to, or is received from the rank that they return. Sending and
   receiving only queue a message; a message whose end nobody waits for is not recorded. */
#define AWAIT(symbol, name)                                                            \
    EXPORT bool symbol(void *buffer, int *rank, long ms);                              \
    bool symbol(void *buffer, int *rank, long ms)                                      \
    {                                                                                  \
        static bool (*next)(void *, int *, long);                                      \
        int peer = -1;                                                                 \
                                                                                       \
        if (!next)                                                                     \
            *(void **)&next =                                                          \
                rp_capture_next(#symbol, __builtin_return_address(0), "libtorch_cpu"); \
        if (!next)                                                                     \
            return false;                                                              \
        if (collectives || !cap || !cap->ready())                                      \
            return next(buffer, rank, ms);                                             \
        uint64_t begin = cap->now();                                                   \
        struct rp_flight *flight = rp_flight_begin(flights, cap, name, NULL, begin);   \
        bool done = next(buffer, &peer, ms);                                           \
        rp_flight_end(flight);                                                         \
        if (rank)                                                                      \
            *rank = peer;                                                              \
        if (done)                                                                      \
            put_message(name, buffer, peer, begin);                                    \
        return done;                                                                   \
    }

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that C++ gave them */
AWAIT(_ZN4gloo9transport3tcp13UnboundBuffer8waitSendEPiNSt6chrono8durationIlSt5ratioILl1ELl1000EEEE,
      "gloo:send")
AWAIT(_ZN4gloo9transport3tcp13UnboundBuffer8waitRecvEPiNSt6chrono8durationIlSt5ratioILl1ELl1000EEEE,
      "gloo:recv")

/* bool c10d::Work::wait(std::chrono::milliseconds): where the program waits for a collective that
   runs on a thread of gloo's. */
EXPORT bool _ZN4c10d4Work4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(void *work, long ms);
bool _ZN4c10d4Work4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(void *work, long ms)
{
    static bool (*next)(void *, long);

    if (!next)
        *(void **)&next =
            rp_capture_next("_ZN4c10d4Work4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE",
                            __builtin_return_address(0), "libtorch_cpu");
    if (!next)
        return false;
    if (!cap || !cap->ready())
        return next(work, ms);
    uint64_t begin = cap->now();
    bool result = next(work, ms);
    cap->span(&(struct rp_capture_span){.kind = RP_CTF_KIND_WAIT,
                                        .begin = begin,
                                        .end = cap->now(),
                                        .name = "c10d::Work::wait",
                                        .category = "blocking",
                                        .device = RP_CTF_SPAN_DEVICE});
    return result;
}
/* NOLINTEND(bugprone-reserved-identifier) */

static void describe_flight(const struct rp_flight *flight, struct rp_capture_args *args)
{
    rp_capture_add_text(args, "Collective name", flight->name + 5);
}

static void gloo_tick(void)
{
    rp_flight_tick(flights, cap, describe_flight);
}

__attribute__((constructor)) static void gloo_load(void)
{
    cap = rp_capture_get();
    if (cap)
        cap->source("gloo", gloo_tick, NULL);
}
