/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tracks collectives that have begun and not ended. A span is written at its end, so a rank that
 * hangs in a collective would leave no trace of it. One that lasts longer than it should is
 * therefore written while it lasts, as a span of category RP_CTF_IN_FLIGHT on the core's thread,
 * with the begin of the call. If the call ends later, its own span has the same begin.
 *
 * A call that is left by an exception stays in flight, because it did not end.
 */
#include "capture/core/core.h"

#include <stdatomic.h>

#define RP_FLIGHTS      64        /* most at one time; others are not written */
#define RP_FLIGHT_LEAST 250000000 /* in ns; the core checks ten times a second */

struct rp_flight {
    _Atomic uint32_t taken;     /* by this process; 0: free */
    _Atomic(const char *) name; /* NULL if nothing is under way */
    uint64_t begin;
    const void *what; /* the source's */
    uint64_t told;    /* begin of what was written, for the core's thread */
};

static inline struct rp_flight *rp_flight_begin(struct rp_flight *flights,
                                                const struct rp_capture *cap, const char *name,
                                                const void *what, uint64_t begin)
{
    uint32_t process = cap->process_id();

    for (int i = 0; i < RP_FLIGHTS; i++) {
        struct rp_flight *f = &flights[i];
        uint32_t taken = atomic_load_explicit(&f->taken, memory_order_relaxed);

        if (taken == process || !atomic_compare_exchange_strong(&f->taken, &taken, process))
            continue; /* the child of a fork reuses what its parent had taken */
        f->begin = begin;
        f->what = what;
        atomic_store_explicit(&f->name, name, memory_order_release);
        return f;
    }
    return NULL;
}

static inline void rp_flight_end(struct rp_flight *f)
{
    if (!f)
        return;
    atomic_store_explicit(&f->name, NULL, memory_order_relaxed);
    atomic_store_explicit(&f->taken, 0, memory_order_release);
}

/* Called on the core's thread. describe adds arguments. */
static inline void rp_flight_tick(struct rp_flight *flights, const struct rp_capture *cap,
                                  void (*describe)(const struct rp_flight *f,
                                                   struct rp_capture_args *args))
{
    uint64_t now = cap->now(), least = cap->ticks(RP_FLIGHT_LEAST);
    uint32_t process = cap->process_id();

    for (int i = 0; i < RP_FLIGHTS; i++) {
        struct rp_flight *f = &flights[i];
        const char *name = atomic_load_explicit(&f->name, memory_order_acquire);
        struct rp_capture_args args;

        if (!name || f->told == f->begin || now - f->begin < least ||
            atomic_load(&f->taken) != process)
            continue;
        f->told = f->begin;
        args.n = 0;
        describe(f, &args);
        cap->span(&(struct rp_capture_span){.kind = RP_CTF_KIND_WAIT,
                                            .begin = f->begin,
                                            .end = now,
                                            .name = name,
                                            .category = RP_CTF_IN_FLIGHT,
                                            .device = RP_CTF_SPAN_DEVICE,
                                            .args = args.at,
                                            .nargs = args.n});
    }
}
