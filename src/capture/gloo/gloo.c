/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source `gloo`, loaded by LD_PRELOAD: collectives of gloo, the library with which PyTorch
 * (torch.distributed on the CPU) and others communicate between hosts. Its functions are C++, but
 * each takes a reference to its options and returns nothing, so that C can stand in for them under
 * their mangled names. A function runs on a thread of gloo's from its begin to its end, so that its
 * span is what the rank waits and transfers. Exceptions pass through.
 *
 * The options begin with a pointer to the context. What it points to is private: the number of
 * ranks is noted when a context is made.
 */
#include "capture/core/core.h"
#include "capture/core/next.h"

#include <stdatomic.h>

#define EXPORT   __attribute__((visibility("default")))
#define CONTEXTS 256

static const struct rp_capture *cap;

/* Contexts that were made; later ones replace the first. */
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

/* The newest one: an address may be used again. 0: unknown. */
static int size_of(uintptr_t context)
{
    uint32_t n = atomic_load(&nmade);

    for (uint32_t i = 0; context && i < n && i < CONTEXTS; i++)
        if (atomic_load(&made[(n - 1 - i) % CONTEXTS].context) == context)
            return atomic_load(&made[(n - 1 - i) % CONTEXTS].size);
    return 0;
}

static void put_call(const char *name, uintptr_t context, uint64_t begin)
{
    struct rp_capture_arg args[2] = {
        {.key = "Collective name", .type = RP_CTF_ARG_TEXT, .text = name + 5}};
    int size = size_of(context);

    args[1] = (struct rp_capture_arg){.key = "Group size", .type = RP_CTF_ARG_INT, .number = size};
    cap->span(&(struct rp_capture_span){.kind = RP_CTF_KIND_COLLECTIVE,
                                        .begin = begin,
                                        .end = cap->now(),
                                        .name = name,
                                        .category = "collective_comm",
                                        .device = RP_CTF_SPAN_DEVICE,
                                        .args = args,
                                        .nargs = size > 0 ? 2 : 1});
}

#define WRAP(symbol, name)                                                             \
    EXPORT void symbol(void *options);                                                 \
    void symbol(void *options)                                                         \
    {                                                                                  \
        static void (*next)(void *);                                                   \
        uint64_t begin;                                                                \
        uintptr_t context;                                                             \
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
        begin = cap->now();                                                            \
        next(options);                                                                 \
        put_call(name, context, begin);                                                \
    }

WRAP(_ZN4gloo9allreduceERKNS_16AllreduceOptionsE, "gloo:all_reduce")
WRAP(_ZN4gloo9allreduceERNS_16AllreduceOptionsE, "gloo:all_reduce")
WRAP(_ZN4gloo9allgatherERNS_16AllgatherOptionsE, "gloo:all_gather")
WRAP(_ZN4gloo10allgathervERNS_17AllgathervOptionsE, "gloo:all_gather")
WRAP(_ZN4gloo8alltoallERNS_15AlltoallOptionsE, "gloo:all_to_all")
WRAP(_ZN4gloo9alltoallvERNS_16AlltoallvOptionsE, "gloo:all_to_all")
WRAP(_ZN4gloo9broadcastERNS_16BroadcastOptionsE, "gloo:broadcast")
WRAP(_ZN4gloo6reduceERNS_13ReduceOptionsE, "gloo:reduce")
WRAP(_ZN4gloo6gatherERNS_13GatherOptionsE, "gloo:gather")
WRAP(_ZN4gloo7gathervERNS_14GathervOptionsE, "gloo:gather")
WRAP(_ZN4gloo7scatterERNS_14ScatterOptionsE, "gloo:scatter")
WRAP(_ZN4gloo7barrierERNS_14BarrierOptionsE, "gloo:barrier")

/* gloo::Context::Context(int rank, int size, int base) and that of the class derived from it, each
   of a whole object and of a part of one; a call inside the library may bypass some of them. */
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

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that C++ gave them
   bool c10d::Work::wait(std::chrono::milliseconds): where the program waits for a collective that
   runs on a thread of gloo's. */
EXPORT bool _ZN4c10d4Work4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(void *work, long ms);
bool _ZN4c10d4Work4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(void *work, long ms)
{
    static bool (*next)(void *, long);
    uint64_t begin;
    bool result;

    if (!next)
        *(void **)&next =
            rp_capture_next("_ZN4c10d4Work4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE",
                            __builtin_return_address(0), "libtorch_cpu");
    if (!next)
        return false;
    if (!cap || !cap->ready())
        return next(work, ms);
    begin = cap->now();
    result = next(work, ms);
    cap->span(&(struct rp_capture_span){.kind = RP_CTF_KIND_WAIT,
                                        .begin = begin,
                                        .end = cap->now(),
                                        .name = "c10d::Work::wait",
                                        .category = "blocking",
                                        .device = RP_CTF_SPAN_DEVICE});
    return result;
}
/* NOLINTEND(bugprone-reserved-identifier) */

__attribute__((constructor)) static void gloo_load(void)
{
    cap = rp_capture_get();
    if (cap)
        cap->source("gloo", NULL, NULL);
}
