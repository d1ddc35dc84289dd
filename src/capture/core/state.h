/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The core's internal state; for the files of this folder only.
 *
 * One word, in a page that the kernel clears in the child of a fork, is non-zero while recording is
 * on. Reading it on the hot path answers three questions at once: is there a recording, is it
 * running, is this still the process that opened the streams.
 *
 *   process ---> stream (one per thread, in a list that only grows; reused when its thread ends:
 *                  |     a second list has those that may be reused)
 *                  |-- chunk in use   a shared file mapping: its contents survive the process
 *                  |   `-- packet     the last one in the chunk, after those of earlier threads
 *                  |-- spare chunk    created by the helper thread, not published yet
 *                  `-- texts          number of each text, and the packet it was last defined in
 */
#include "capture/core/core.h"

#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/types.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define RP_CORE_TEXTS 1024 /* slots of a busy stream's text table; a power of two */
#define RP_CORE_FEW   128  /* slots for any other stream; at least as many as an event has texts */
#define RP_CORE_FIRST \
    4096 /* bytes of a stream's first chunk; the next ones are four times as large */
#define RP_CORE_NEVER     UINT32_MAX /* a value that page->on never has */
#define RP_CORE_SOURCES   16
#define RP_CORE_PAUSES    64
#define RP_CORE_TICK_NS   100000000
#define RP_CORE_KEY_MAX   255 /* bytes of a key or category */
#define RP_CORE_VALUE_MAX 1023

#define RP_CORE_INLINE      inline __attribute__((always_inline))
#define RP_CORE_LIKELY(x)   __builtin_expect(!!(x), 1)
#define RP_CORE_UNLIKELY(x) __builtin_expect(!!(x), 0)

struct rp_core_chunk {
    uint8_t *base;
    size_t size;
    bool in_slot;  /* it is a slot, without a file of its own yet */
    char path[64]; /* relative to the folder */
};

struct rp_core_text {
    uint64_t hash;
    uint32_t packet; /* sequence + 1 of the packet that defines it */
    uint32_t pin;    /* the last event with several texts that used it */
    bool is_step, is_input;
};

enum { RP_CORE_SPARE_NONE, RP_CORE_SPARE_WANTED, RP_CORE_SPARE_READY, RP_CORE_SPARE_BUSY };
enum {
    RP_CORE_STREAM_FREE,
    RP_CORE_STREAM_USED,
    RP_CORE_STREAM_ENDED,  /* its thread has ended; another thread may reuse it */
    RP_CORE_STREAM_CLOSING /* its last chunk is being trimmed */
};

struct rp_core_stream {
    uint8_t *at, *end;          /* of the chunk in use, or NULL */
    struct rp_ctf_packet *head; /* of the packet in use, or NULL */
    uint64_t last;              /* time of the last event */
    uint32_t time;   /* page->on at the last write: a different value means a pause since */
    uint64_t events; /* in the packet */
    uint32_t packet; /* sequence + 1 of the packet in use; 0: none yet */
    _Atomic uint32_t busy;
    struct rp_core_chunk chunk;
    size_t next_size;
    uint64_t lost, retry_at; /* lost: the number that its packets report */
    enum rp_ctf_loss why;    /* its last chunk could not be created */
    uint64_t instance;
    uint32_t tid, first_tid; /* ids of the current thread, and of the first one */
    bool step_counted;       /* the current event begins a step that rp_core_open has counted */
    bool is_inner;           /* of a signal handler: another stream has the same thread */
    uint32_t pin;            /* number of the last event with several texts */
    /* the helper's: what the kernel counted of the thread, and when that was read */
    uint32_t seen_tid;
    int64_t seen_ns;
    uint64_t seen_ready_ns, seen_ran_ns;
    struct rp_core_open { /* rp_core_open: ranges that load input; a collective, and calls in it */
        uint32_t depth, lane;
        uint64_t began;
    } input, collective;
    /* for the ring: sequence of the oldest remaining packet, and of the first one in the chunk in
       use; other threads read both, and advance `oldest` */
    _Atomic uint32_t oldest, chunk_first;
    _Atomic uint32_t ended_of; /* the packet + 1 of which `ended` tells when it ended */
    _Atomic uint64_t ended;
    _Atomic uint32_t state, spare_state;
    bool left;                      /* its recording has ended; its thread begins it anew */
    _Atomic uint32_t turns;         /* number of threads that have used it */
    uint32_t aged_turn, aged_ticks; /* for the helper: how long it has been unused */
    struct rp_core_chunk spare;
    _Atomic(uint8_t *) retired; /* a full chunk to unmap */
    size_t retired_size;
    struct rp_core_stream *next;
    struct rp_core_stream *next_unused;  /* link in the list rp_core.unused */
    struct rp_core_stream *next_wanting; /* link in the list rp_core.wanting */
    _Atomic uint32_t wanting;            /* it is in that list */
    struct rp_core_stream
        *inner;                 /* used by signal handlers that interrupt an event of this stream */
    struct rp_core_text *texts; /* `few`, or a larger table from the second packet on */
    uint32_t mask;              /* its number of slots - 1 */
    struct rp_core_text few[RP_CORE_FEW];
};

/* Cleared by the kernel in the child of a fork. */
struct rp_core_page {
    _Atomic uint32_t on;         /* 0 while recording is off; else how often it was switched on */
    _Atomic uint32_t image;      /* random id of this process; 0: not initialised */
    _Atomic uint32_t begun;      /* `on` was set for the first time */
    _Atomic uint32_t opening;    /* a thread is creating the folder */
    _Atomic uint32_t opened;     /* the folder exists */
    _Atomic uint32_t process;    /* 1: a thread writes the process's first event */
    _Atomic uint32_t helper;     /* 1: a thread starts the helper thread */
    _Atomic uint32_t wake;       /* futex of the helper */
    _Atomic uint32_t done;       /* futex: set when the helper has ended */
    _Atomic uint32_t ticking;    /* the helper is calling on_tick of the sources */
    _Atomic uint32_t broken;     /* the folder cannot be created, so nothing is recorded */
    _Atomic uint32_t main_ended; /* the main thread ends, by pthread_exit or because of a cancel */
    _Atomic uint32_t joinable;   /* the helper runs */
    _Atomic uint32_t resting;    /* it has ended for a while (rp_core_helper_rest) */
    _Atomic uint32_t closed;     /* the streams are ended while the program runs (attach.c) */
    _Atomic uint32_t entering;   /* threads that may be opening a stream */
};

/* Of a process to which `record --pid` attaches: numbers that `record` reads in its memory. */
enum rp_core_session { RP_CORE_WHOLE_LIFE, RP_CORE_ATTACHED, RP_CORE_LEAVING, RP_CORE_LEFT };

enum rp_core_full { RP_CORE_KEEP, RP_CORE_RING, RP_CORE_STOP };

struct rp_core_options {
    int64_t t0_ns, start_ns, duration_ns; /* t0 is since 1970, the others after t0; 0: none */
    int64_t first_step, steps;            /* steps 0: all of them */
    uint64_t limit_bytes;                 /* 0: none */
    enum rp_core_full full;
    const char *step_name; /* prefix of the names of steps; NULL: the usual ones */
    uint32_t subject;      /* the process that this one observes; 0: this one is recorded */
};

struct rp_core {
    struct rp_core_page *page; /* NULL: not recording */
    bool counter;              /* the clock is the processor's cycle counter */
    uint64_t frequency;        /* ticks a second */
    struct rp_core_options options;
    char root[PATH_MAX / 2];         /* of the recording */
    uid_t owner;                     /* of the root */
    mode_t folder_mode, file_mode;   /* permissions for others (rp_core_create) */
    char folder[PATH_MAX / 2 + 160]; /* of this rank */
    char host[80], boot[40];
    char program[256]; /* the last bytes of the program's path */
    char texts[2048];  /* REPRISE_RECORD_OPTIONS, split at ';' */
    int32_t rank, world_size, local_rank;
    uint32_t pid;
    uint32_t cost_ps;
    uint32_t loaded_pid; /* the process that loaded the library */
    uint32_t forked_pid; /* the child that ran the handlers of pthread_atfork */
    bool bare_clone;     /* this process is a child that did not run them */
    _Atomic(struct rp_core_stream *) streams;
    _Atomic(struct rp_core_slots *) next_slots; /* made by the helper */
    _Atomic uint32_t slots_busy;                /* a thread is replacing the slots */
    _Atomic(struct rp_core_slots *) slots; /* room for first chunks, if there are many streams */
    _Atomic uint32_t nslots_filed;         /* number of slots whose chunk got a file at the end */
    _Atomic(struct rp_core_slab *) slab;   /* memory for new ones */
    _Atomic uint64_t unused;               /* list of those whose thread has ended; tagged */
    _Atomic(struct rp_core_stream *) wanting; /* list of those that need the helper */
    _Atomic uint32_t nended;                  /* number of those that the helper may close */
    struct rp_ctf_ledger *_Atomic ledger;     /* NULL if there is none; see rp_core_ledger */
    enum rp_ctf_loss why;                     /* why the folder cannot be created */
    _Atomic uint64_t bytes, lost,
        names; /* bytes on disk; events lost without a ledger; number of files */
    _Atomic uint32_t ended, stopped, warned; /* warned: one bit for each reason */
    _Atomic uint32_t closing;                /* the process is ending */
    _Atomic uint32_t session;                /* enum rp_core_session */
    _Atomic bool leave_asked;                /* by the control file */
    _Atomic uint32_t end_noted;
    _Atomic uint32_t sealed; /* the program is in a sandbox: make no more system calls */
    _Atomic int64_t steps_seen;
    _Atomic uint32_t times;        /* how often recording was switched on */
    _Atomic int64_t on_ns, off_ns; /* CLOCK_MONOTONIC of the last switch on and off, or 0 */
    /* in ticks, when recording was switched off for the nth time; places are reused */
    _Atomic uint64_t off_at[RP_CORE_PAUSES];
    _Atomic uint32_t pause_told; /* the value of page->on before the pause that was recorded last */
    _Atomic uint32_t step_tid;
    _Atomic bool
        step_due; /* tell steps.c as soon as the event that began a step has been written */
    _Atomic uint32_t nsources;
    struct {
        const char *name;
        void (*on_tick)(void), (*on_exit)(void);
    } sources[RP_CORE_SOURCES];
    _Atomic int64_t often_ns; /* time between two calls of `often`; 0: none */
    void (*often)(void);
    _Atomic uint32_t wants_launches, counts_launches; /* a source does */
    int64_t control_at;                               /* how far the control file has been read */
};

extern struct rp_core rp_core __attribute__((visibility("hidden")));
extern __thread struct rp_core_stream *rp_core_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

extern __thread bool rp_core_in_helper
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* This thread is in a sandbox in which reading a clock ends the process, so events are counted as
   lost. */
extern __thread bool rp_core_blind __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* set while the recorder's own events are written, whose loss is not counted */
extern __thread bool rp_core_own __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Calls of this thread that gave work to a device. */
extern __thread uint64_t rp_core_launches
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* ---- clock ---- */
void rp_core_clock_init(void);
uint64_t rp_core_clock_frequency(void); /* may measure for two milliseconds */
uint64_t rp_core_clock_read(void);      /* for systems without a cycle counter */
struct rp_ctf_clock rp_core_clock_triple(void);

static inline uint64_t rp_core_now(void)
{
#if defined(__x86_64__)
    if (RP_CORE_LIKELY(rp_core.counter))
        return __rdtsc();
#elif defined(__aarch64__)
    if (RP_CORE_LIKELY(rp_core.counter)) {
        uint64_t ticks;

        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
        return ticks;
    }
#endif
    return rp_core_clock_read();
}

/* ---- process ---- */
/* The stream of this thread if recording is on, else NULL; opens the stream if needed. */
struct rp_core_stream *rp_core_open(const char *name);
/* A stream for a signal handler that interrupted an event of `s`, or NULL if there is no memory. */
struct rp_core_stream *rp_core_open_inner(struct rp_core_stream *s);
/* Like rp_core_open, for work reported late: also when recording has been switched off. */
struct rp_core_stream *rp_core_open_late(void);
bool rp_core_begin(
    void); /* opens the process, if that was not done yet; returns whether it records */
void rp_core_update(void);           /* recomputes page->on */
void rp_core_step(const char *name); /* a step begins */
bool rp_core_is_step(const char *name);
const char *rp_core_option(const char *key);
/* Reads a small file, cut to the size; "" if there is none. Returns the length. */
size_t rp_core_read_text(const char *path, char *to, size_t size);
enum { RP_CORE_WARN_FOLDER = 1, RP_CORE_WARN_CHUNK = 2, RP_CORE_WARN_FULL = 4 };
void rp_core_warn(unsigned once, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void rp_core_child(void); /* after a fork */
bool rp_core_process_init(const char *root, const char *options);
bool rp_core_window_over(void);                      /* nothing will be recorded any more */
void rp_core_aside(void (*run)(void *of), void *of); /* on a stack of its own */

/* ---- attach ---- */
bool rp_core_is_over(void);  /* helper: the recording of an attached process is to end */
void rp_core_leave(void);    /* helper: ends it */
void rp_core_attached(void); /* helper: it has begun */
void rp_core_on_leave(void (*call)(void));

/* ---- steps ---- */
void rp_core_steps_init(void);
void rp_core_steps_leave(void);  /* nothing of them is asked of sources any more */
void rp_core_steps_forget(void); /* in the child of a fork */
void rp_core_steps_end(void);    /* writes how many steps there were, and what recording cost */
void rp_core_step_end(enum rp_capture_sign sign, const char *name);
enum rp_capture_sign rp_core_step_sign(void);
bool rp_core_detail(void);
bool rp_core_counts_steps(void); /* whether the names of steps matter */
bool rp_core_steps_matter(void); /* whether a step that begins now matters */
void rp_core_on_detail(void (*call)(bool on));
void rp_core_need_detail(void);
void rp_core_on_boundary(void (*call)(bool without));

/* ---- signals ---- */
enum rp_core_total {
    RP_CORE_COLLECTIVES, /* on the host */
    RP_CORE_INPUT,
    RP_CORE_DEVICE_COLLECTIVES,
    RP_CORE_DEVICE_WORK,
    RP_CORE_TOTALS
};
void rp_core_signals_init(void);
void rp_core_signals_forget(void); /* in the child of a fork */
bool rp_core_signals(void);        /* whether they are wanted */
void rp_core_signals_tick(void);   /* helper */
void rp_core_signals_end(void);
void rp_core_signal_step(uint64_t ticks); /* a step has ended that took so long */
/* Adds what lasted from begin to end, in ticks of the clock or in nanoseconds of one clock. */
void rp_core_signal_total(enum rp_core_total which, uint64_t begin, uint64_t end, bool in_ticks);
void rp_core_signal_span(const struct rp_capture_span *span);
bool rp_core_signal_is_input(const char *name); /* whether a range loads input data */
void rp_core_signals_leave(void);
void rp_core_signal(enum rp_capture_signal which, uint64_t value);

/* ---- processors ---- */
void rp_core_processors_init(void);
void rp_core_processors_forget(void);    /* in the child of a fork */
void rp_core_processors_tick(bool last); /* helper; the last time at the end of the process */
/* How long a thread ran, and was ready without running; false if the kernel does not count. */
bool rp_core_read_schedstat(uint32_t tid, unsigned long long *ran_ns, unsigned long long *ready_ns);

/* ---- keep ---- */
void rp_core_keep_init(void);
void rp_core_keep_forget(void); /* in the child of a fork */
bool rp_core_keeps(void);
/* A step has ended; some of its time was in collectives, and in loading input. */
void rp_core_keep_step(uint64_t step_ns, uint64_t collectives_ns, uint64_t input_ns);
bool rp_core_keep_now(const char *name); /* helper */
void rp_core_keep_moment(uint64_t step,
                         uint64_t ns); /* helper: some rank asks for it; its step took so long */
void rp_core_keep_tick(void);

/* ---- ledger ---- */
void rp_core_ledger_open(bool create);      /* unless it is open */
struct rp_ctf_ledger *rp_core_ledger(void); /* NULL if there is none, or it was truncated */
void rp_core_lose(enum rp_ctf_loss why, uint64_t events); /* counts events that are missing */
void rp_core_stream_lose(struct rp_core_stream *s, enum rp_ctf_loss why, uint64_t events);
enum rp_ctf_loss rp_core_loss(int error); /* the reason for an errno */
int64_t rp_core_thread_ns(void);          /* CPU time of this thread */
void rp_core_spend(uint64_t ns);          /* CPU time of the recorder */
/* Adds this thread's CPU time since `since_ns` to the ledger; returns the time now. */
int64_t rp_core_spent(int64_t since_ns);

/* ---- folder ---- */
bool rp_core_fits(size_t size); /* within RLIMIT_FSIZE? exceeding it would raise a signal */
/* Who may use the files of the recording follows from its folder: its owner, or its group too
   (`record
   --group`). rp_core_create opens a new file, with the flags O_RDWR or O_WRONLY. */
void rp_core_access_init(void);
int rp_core_create(const char *path, int flags);
bool rp_core_folder_open(void); /* creates the folder and its metadata if needed */
size_t rp_core_metadata(char *to, size_t size);

/* ---- streams ---- */
void rp_core_hidden_name(char *to, size_t size, const char *what);
/* For this thread; NULL: no memory. own: the one that it had in an earlier recording, or NULL. */
struct rp_core_stream *rp_core_stream_new(struct rp_core_stream *own);
void rp_core_stream_leave(struct rp_core_stream *s); /* its thread ends: another may use it */
bool rp_core_stream_next(struct rp_core_stream *s, size_t need); /* begins a packet */
void rp_core_slots_reserve(void); /* helper: makes room for more streams */
void rp_core_slots_drop(void);    /* at the end: removes the file that the helper made in advance */
void rp_core_stream_reserve(struct rp_core_stream *s); /* helper: creates the spare chunk */
void rp_core_stream_end(struct rp_core_stream *s);     /* trims its last chunk */
void rp_core_stream_forget(struct rp_core_stream *s);  /* the same, for another recording */
void rp_core_slots_forget(void);                       /* when all streams are forgotten */
void rp_core_stream_drop_spare(struct rp_core_stream *s);
bool rp_core_stream_close(struct rp_core_stream *s); /* ends it if its thread has ended */
void rp_core_ring_drop_before(uint64_t ticks);       /* helper: removes files that ended before */
void rp_core_stream_age(struct rp_core_stream *s); /* called once a tick: closes it after a while */

/* ---- helper ---- */
bool rp_core_in_handler(void);        /* is a signal handler running on this thread? */
void rp_core_helper_start(void);      /* unless it runs, or cannot be started from here */
void rp_core_helper_start_here(void); /* where it is known that nothing is interrupted */
void rp_core_helper_wake(void);
void rp_core_helper_stop(void);
void rp_core_helper_leave(
    void); /* the helper ends because the main thread ends before the process */
void rp_core_helper_rest(bool rest);  /* see rp_capture.rest */
void rp_core_helper_stop_ticks(void); /* on_tick is not called after this returns */
void rp_core_control_read(bool first);

/* ---- events ---- */
void rp_core_put_clock(void);
void rp_core_put_resume(void);
void rp_core_put_pause(struct rp_core_stream *s, uint64_t ticks); /* even while it lasts */
void rp_core_tell_pause(void); /* records that there is a pause, unless that was done */
void rp_core_measure(void);    /* measures the cost of an event: sets cost_ps */
void rp_core_put_process(const char *program, const char *command);
/* Writes the names of the process and of the thread again at the beginning of a packet, before its
   first event, because in a ring they would be among the oldest. */
#define RP_CORE_NAMES 640 /* the most bytes that they take */
void rp_core_put_names(struct rp_core_stream *s);
uint32_t rp_core_image(void);
/* The process to which the events belong. */
static inline uint32_t rp_core_subject(void)
{
    return rp_core.options.subject ? rp_core.options.subject : rp_core.pid;
}
bool rp_core_source(const char *name, void (*on_tick)(void), void (*on_exit)(void));
extern const struct rp_capture rp_core_table __attribute__((visibility("hidden")));
