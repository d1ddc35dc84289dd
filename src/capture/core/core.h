/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_CAPTURE_CORE_CORE_H
#define RP_CAPTURE_CORE_CORE_H
/*
 * The core that every injected library is built over: it writes events into a recording that stays
 * readable whatever happens to the process.
 *
 * How to use it. An injected library links the core statically and calls
 *
 *     const struct rp_capture *cap = rp_capture_get();
 *     if (!cap)
 *         return;                       // not started by `record`: do nothing at all
 *     cap->source("cuda", on_tick, on_exit);
 *
 * once, where it is initialised. All libraries of a process share one core that way (that of the
 * host library where it is loaded, else its own), so a thread has one stream. From any thread:
 *
 *     cap->enter(&(struct rp_capture_enter){.kind = RP_CTF_KIND_RUNTIME, .name = "cudaMemcpy",
 *                                           .category = "cuda_runtime", .link = correlation});
 *     ...
 *     cap->leave(0, status);
 *
 * for what happens now on this thread, and cap->span(...) for what is over and has times of its own
 * (device work; calls reported by another thread). Names are copied, so they need not outlive the
 * call; the same text costs four bytes an event after its first use in a packet.
 *
 * Rules that every function here keeps: it never fails, never blocks, never ends the process, never
 * allocates from the program's heap, and takes no lock; it costs tens of nanoseconds. Where an
 * event cannot be kept it is counted as lost. While nothing is recorded (before --start-after,
 * after `record stop`) calls return at once. In the child of a fork the first event opens a new
 * stream; a source that holds state of its own must look at cap->process_id(), which changes then.
 *
 * From a signal handler: events are safe; one that interrupts another event of the same thread goes
 * into a second stream of that thread.
 *
 * Times: events are stamped by the core. A span's times are ticks (cap->now()), or nanoseconds of
 * CLOCK_MONOTONIC or CLOCK_REALTIME: name which in `timebase`; the reader joins them by the
 * calibration that the core records every second.
 */
#include "abi/ctf_wire.h"

#include <stdbool.h>
#include <stddef.h>

#define RP_CAPTURE_VERSION 1

struct rp_capture_enter {
    enum rp_ctf_kind kind;
    uint32_t lane; /* 0, or a number of your own where your calls do not nest with the others */
    const char *name, *category;
    uint64_t link; /* correlation id; 0: none */
};

struct rp_capture_arg {
    const char *key;
    enum rp_ctf_arg_type type;
    int64_t number;   /* RP_CTF_ARG_INT */
    double real;      /* RP_CTF_ARG_REAL */
    const char *text; /* RP_CTF_ARG_TEXT */
};

struct rp_capture_span {
    enum rp_ctf_kind kind;
    enum rp_ctf_timebase timebase;
    uint64_t begin, end;
    const char *name, *category;
    int32_t device; /* RP_CTF_SPAN_DEVICE: on the host thread `track` (a thread id of the system) */
    uint64_t track; /* stream of the device, or thread id; 0: this thread */
    uint64_t link;
    const struct rp_capture_arg *args;
    uint32_t nargs; /* at most RP_CTF_ARGS_MAX; the rest is left out */
};

struct rp_capture {
    uint32_t version, struct_size;

    /* Whether events are kept at this moment: ask before work that only serves an event. */
    bool (*active)(void);
    uint64_t (*now)(void); /* ticks of the trace's clock */
    /* Changes in the child of a fork; never 0. */
    uint32_t (*process_id)(void);

    /* on_tick: from the core's own thread, about ten times a second while recording, never two at a
       time; may be NULL. on_exit: once, when the process ends in the ordinary way, before the
       streams are closed; not in the child of a fork that did not register itself. May be NULL. At
       most 16 sources; false where there is no room. */
    bool (*source)(const char *name, void (*on_tick)(void), void (*on_exit)(void));

    /* Ranges, marks and counters of the program, on this thread. Each begin has its end on the same
       thread, innermost first. */
    void (*range_begin)(const char *name);
    void (*range_end)(void);
    void (*mark)(const char *name);
    void (*counter)(const char *name, double value);

    /* A call or range of a source, on this thread: innermost first within its lane. */
    void (*enter)(const struct rp_capture_enter *enter);
    void (*leave)(uint32_t lane, int64_t result);

    /* A range that may end on another thread. */
    void (*async_begin)(const char *name, const char *category, uint64_t id);
    void (*async_end)(const char *name, const char *category, uint64_t id);

    void (*span)(const struct rp_capture_span *span);

    void (*thread_name)(uint32_t tid, const char *name); /* tid 0: this thread */
    void (*library)(const char *path);
    void (*forked)(uint32_t child);
    void (*exec)(const char *path);
    void (*fact)(const char *key, const char *value); /* "cuda.driver", "13.0" */
    void (*lost)(uint64_t events);                    /* that the source itself could not deliver */
    void (*warn)(const char *text); /* a line on stderr, "reprise record: <text>" */
    /* The value of an option of this source given to `record` (REPRISE_RECORD_OPTIONS), or NULL:
       option("cuda.graph") for `--set cuda.graph=node`. Valid for the life of the process. */
    const char *(*option)(const char *key);
};

/* The process's core, or NULL where no recording was asked for (REPRISE_RECORD is not set). */
const struct rp_capture *rp_capture_get(void);

/* The core within this library, and its end; for the host library, which shares it, and for tests.
   A library that is used without the host library calls the close where it is unloaded. */
const struct rp_capture *rp_capture_own(void);
void rp_capture_close(void);
/* The program may make no system call of its own choice from now on (a sandbox): what fits into the
   files at hand is kept, the rest is counted as lost. */
void rp_capture_seal(void);

#endif
