/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The core of every injected library: it writes events into a recording that stays readable even if
 * the process crashes or is killed.
 *
 * How to use it. An injected library links the core statically and calls
 *
 *     const struct rp_capture *cap = rp_capture_get();
 *     if (!cap)
 *         return;                       // not started by `record`: do nothing
 *     cap->source("cuda", on_tick, on_exit);
 *
 * once, in its initialisation. All libraries of a process then share one core (the host library's
 * if that is loaded), so that each thread has a single stream. From any thread:
 *
 *     cap->enter(&(struct rp_capture_enter){.kind = RP_CTF_KIND_RUNTIME, .name = "cudaMemcpy",
 *                                           .category = "cuda_runtime", .link = correlation});
 *     ...
 *     cap->leave(0, status);
 *
 * for events that happen now on this thread, and cap->span(...) for completed work that has its own
 * timestamps (device work; calls reported by another thread). Names are copied, so they need not
 * outlive the call; after its first use in a packet, a text costs four bytes per event.
 *
 * Every function here keeps these rules: it never fails, never blocks, never ends the process,
 * never allocates from the program's heap, and takes no lock; it costs tens of nanoseconds. An
 * event that cannot be stored is counted as lost. While recording is off (before --start-after,
 * after `record stop`) calls return at once. In the child of a fork the first event opens a new
 * stream; a source that has state of its own must compare cap->process_id(), which changes there.
 *
 * Events are safe in signal handlers; an event that interrupts another event of the same thread
 * goes into a second stream of that thread.
 *
 * The core adds timestamps to events. A span's timestamps are ticks (cap->now()), or nanoseconds of
 * CLOCK_MONOTONIC or CLOCK_REALTIME, as given in `timebase`; the reader converts them with the
 * calibrations that the core records every second.
 */
#include "abi/ctf_wire.h"

#include <stdbool.h>
#include <stddef.h>

#define RP_CAPTURE_VERSION 1

struct rp_capture_enter {
    enum rp_ctf_kind kind;
    uint32_t lane; /* 0, or a number of your own if your calls do not nest with other calls */
    const char *name, *category;
    uint64_t link; /* correlation id; 0: none */
};

/* What ends a step, the best first. */
enum rp_capture_sign {
    RP_CAPTURE_MARK = 1, /* a range or mark that is named a step */
    RP_CAPTURE_OPTIMIZER,
    RP_CAPTURE_EXECUTION /* of a compiled program */
};

/* What a source knows about the device of this process, used for the signals of a job
   (signals.c). */
enum rp_capture_signal {
    RP_CAPTURE_DEVICE_CLOCK,     /* MHz */
    RP_CAPTURE_DEVICE_POWER,     /* W */
    RP_CAPTURE_DEVICE_MEMORY,    /* bytes in use */
    RP_CAPTURE_LIMITED_BY_POWER, /* ns since the last time */
    RP_CAPTURE_LIMITED_BY_HEAT
};

struct rp_capture_arg {
    const char *key;
    enum rp_ctf_arg_type type;
    int64_t number;   /* RP_CTF_ARG_INT */
    double real;      /* RP_CTF_ARG_REAL */
    const char *text; /* RP_CTF_ARG_TEXT */
};

/* Arguments of a span that are added one by one; what does not fit is dropped. */
struct rp_capture_args {
    uint32_t n;
    struct rp_capture_arg at[RP_CTF_ARGS_MAX];
};

static inline void rp_capture_add_number(struct rp_capture_args *a, const char *key, int64_t value)
{
    if (a->n < RP_CTF_ARGS_MAX)
        a->at[a->n++] =
            (struct rp_capture_arg){.key = key, .type = RP_CTF_ARG_INT, .number = value};
}

static inline void rp_capture_add_text(struct rp_capture_args *a, const char *key, const char *text)
{
    if (a->n < RP_CTF_ARGS_MAX)
        a->at[a->n++] = (struct rp_capture_arg){.key = key, .type = RP_CTF_ARG_TEXT, .text = text};
}

struct rp_capture_span {
    enum rp_ctf_kind kind;
    enum rp_ctf_timebase timebase;
    uint64_t begin, end;
    const char *name, *category;
    int32_t device; /* RP_CTF_SPAN_DEVICE: on the host thread `track` (its thread id) */
    uint64_t track; /* stream of the device, or thread id; 0: this thread */
    uint64_t link;
    const struct rp_capture_arg *args;
    uint32_t nargs; /* at most RP_CTF_ARGS_MAX; the rest is dropped */
};

/* The stack of a thread. Frames are texts as described in abi/ctf_wire.h, the outermost first; they
   stay where they are and as they are for the life of the process. */
struct rp_capture_sample {
    uint32_t tid, gil_tid;
    uint64_t ticks, weight_ns;
    enum rp_ctf_sample_state state;
    bool is_cut; /* the outermost frames are not known */
    const char *const *frames;
    uint32_t nframes;
};

struct rp_capture {
    uint32_t version, struct_size;

    /* Whether events are recorded now; to be asked before work that only serves an event. */
    bool (*active)(void);
    /* The same, if the next event may be the first one of the process. It opens the process, which
       may create a thread, so it must not be called inside an allocation. */
    bool (*ready)(void);
    uint64_t (*now)(void);          /* ticks of the trace's clock */
    uint64_t (*ticks)(uint64_t ns); /* this time in ticks, by a measurement of 20 us */
    /* Changes in the child of a fork; never 0. */
    uint32_t (*process_id)(void);

    /* on_tick: called on the core's thread about ten times a second while recording, never
       concurrently; may be NULL. on_exit: called once when the process exits normally, before the
       streams are closed; and in the child of a fork only if that registered itself; may be NULL.
       At most 16 sources; returns false if there are more. */
    bool (*source)(const char *name, void (*on_tick)(void), void (*on_exit)(void));

    /* Ranges, marks and counters of the program, on this thread. Ranges nest and end on the thread
       where they began. */
    void (*range_begin)(const char *name);
    void (*range_end)(void);
    void (*mark)(const char *name);
    void (*counter)(const char *name, double value);

    /* A call or range of a source, on this thread; nests within its lane. */
    void (*enter)(const struct rp_capture_enter *enter);
    void (*leave)(uint32_t lane, int64_t result);

    /* A range that may end on another thread. */
    void (*async_begin)(const char *name, const char *category, uint64_t id);
    void (*async_end)(const char *name, const char *category, uint64_t id);

    void (*span)(const struct rp_capture_span *span);

    /* Counts calls by thread that give work to a device or wait for it, so that a source of
       operators can tell which of them did. Such a source calls want_launches; a source of device
       work counts if count_launches is true. launches: the count of this thread; NULL if nobody
       counts. */
    void (*want_launches)(void);
    bool (*count_launches)(void);
    uint64_t *(*launches)(void);

    /* A step has ended on this thread (steps.c); this switches detail if only some steps are
       recorded in detail. */
    void (*step_end)(enum rp_capture_sign sign, const char *name);
    enum rp_capture_sign (*step_sign)(
        void);            /* the sign by which steps are recognised; 0: none was seen */
    bool (*detail)(void); /* whether operators, calls and device work are recorded in this step */
    /* The callback is called at each switch, on the thread of a step; NULL: the source cannot be
       switched. */
    void (*on_detail)(void (*call)(bool on));
    /* Something begins that detail must see from its begin (a CUDA graph is made), so there is
       detail until the step ends. */
    void (*need_detail)(void);
    /* With record --detail: the callback is called between two steps of which at least one has no
       detail, on the thread of a step. without: the step that has ended has no detail. Only for one
       source. */
    void (*on_boundary)(void (*call)(bool without));

    void (*thread_name)(uint32_t tid, const char *name); /* tid 0: this thread */
    void (*library)(const char *path);
    void (*forked)(uint32_t child);
    void (*exec)(const char *path);
    void (*fact)(const char *key, const char *value); /* "cuda.driver", "13.0" */
    void (*lost)(uint64_t events);                    /* events that the source could not deliver */
    void (*warn)(const char *text); /* a line on stderr, "reprise record: <text>" */
    /* The value of a `record --set` option, or NULL: option("cuda.graph") is "graph" for
       `--set cuda.graph=graph`. Valid for the life of the process. */
    const char *(*option)(const char *key);
    /* The folder of this rank, once an event has opened it (see ready), or NULL. */
    const char *(*folder)(void);

    /* Calls the callback on the core's thread about every `ns`, like on_tick, from the first event
       on; only for one source. */
    void (*every)(int64_t ns, void (*call)(void));
    void (*sample)(const struct rp_capture_sample *sample);
    bool (*sealed)(void); /* the program is in a sandbox: make no system call */
    /* Adds processor time that the source used on threads of the program, for the recording's own
       cost. That of the core's thread is counted already. */
    void (*spent)(uint64_t ns);
    /* Ends the core's thread if the program has only one thread, and starts it again, because some
       programs count the threads of the process. Nothing is called on it in between. */
    void (*rest)(bool rest);
    bool (*signals)(void); /* whether the signals of the job are wanted */
    void (*signal)(enum rp_capture_signal which, uint64_t value);
    /* Called on the core's thread when the recording of a process ends that goes on without it
       (rp_capture_attach): the source must leave the program as it was. For four sources. */
    void (*on_leave)(void (*call)(void));
};

/* The process's core, or NULL if the process is not recorded (REPRISE_RECORD is not set). */
const struct rp_capture *rp_capture_get(void);

/* The core of this library, and its shutdown; for the host library, which shares it, and for tests.
   A library that is used without the host library calls rp_capture_close when it is unloaded. */
const struct rp_capture *rp_capture_own(void);
void rp_capture_close(void);
/* Begins to record this process, which was started without a recorder: into the folder `root`, with
   options as in REPRISE_RECORD_OPTIONS. `begin` is called on the core's thread, which ends the
   recording as the options say; then it can be begun again. Returns 0 or an error: EBUSY, where it
   is recorded already. */
int rp_capture_attach(const char *root, const char *options, void (*begin)(void));
/* How far it is: 1 recorded, 2 ending, 3 ended. */
const _Atomic uint32_t *rp_capture_session(void);
/* Records that the process ends by itself. */
void rp_capture_note_end(void);
/* Stops system calls, because the program has entered a sandbox: events that fit into the open
   files are recorded, the rest is counted as lost. `strict`: seccomp's strict mode, where the
   kernel also takes the calling thread's clocks away (it disables rdtsc): its events are lost. */
void rp_capture_seal(bool strict);
/* Before a filter for all threads is installed, and after it was refused. The filter is also for
   the helper thread, which therefore ends before. */
void rp_capture_seal_all(void);
void rp_capture_unseal(void);
