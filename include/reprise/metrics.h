/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPRISE_METRICS_H
#define REPRISE_METRICS_H
/*
 * Timings, values and counters of a program, read by `reprise metrics` while the program runs or
 * after it has ended, however it ended. The header is self-contained: there is nothing to link and
 * nothing to initialise.
 *
 *     void compile(void)
 *     {
 *         RP_TIMED("Compile");               // times to the end of the block
 *         RP_COUNT("UncachedCompile", 1);
 *         RP_BYTES("ProgramSize", bytes);    // distribution of a size
 *         RP_VALUE("GraphNodes", nodes);     // distribution of any other whole number
 *         RP_TIMED_SAMPLE("Queue", ns);      // a duration in nanoseconds, measured elsewhere
 *     }
 *
 * Names are string literals; the same name in several places is one metric. Each thread counts in
 * memory of its own, without locks and without shared cache lines, and readers add the threads up.
 * The memory is that of a file, mapped and shared, so that it outlives the process: in
 * $REPRISE_METRICS_DIR, else in "reprise-metrics" below $XDG_RUNTIME_DIR, else in
 * /dev/shm or /tmp, as "reprise-metrics-<user id>-...". $REPRISE_METRICS=off counts without a file.
 * What cannot be counted because the memory is full ($REPRISE_METRICS_MB, 64 by default) is counted
 * as lost.
 *
 * Times are read from the processor's cycle counter. Distributions are histograms with 64 buckets
 * per power of two: percentiles are within 0.8 % of the exact ones, numbers of samples, sums,
 * minima and maxima are exact.
 *
 * Not for signal handlers: a sample that interrupts another one of the same metric and thread may
 * be lost. After a fork the child counts into a file of its own; so does each loading of a library
 * that keeps its symbols to itself (RTLD_LOCAL), up to 1,024 times.
 *
 * Define RP_METRICS_OFF before including the header to compile the macros to nothing.
 */
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ the file
 * Everything is in units of 64 bytes and is addressed by its unit; 0 is the header itself and
 * means "none". Only the lists grow, at their head. The numbers of a cell are written by one thread
 * at a time, each as one aligned 64-bit word. */

#define RP_METRICS_MAGIC   0x315343495254454dULL /* "METRICS1" */
#define RP_METRICS_UNIT    64
#define RP_METRICS_OCTAVES 59 /* 0: values below 64; then one per power of two */
#define RP_METRICS_BUCKETS 64 /* in an octave */

enum rp_metrics_kind {
    RP_METRICS_COUNTER = 1,
    RP_METRICS_TICKS, /* durations in ticks of the file's clock */
    RP_METRICS_NS,    /* durations in nanoseconds */
    RP_METRICS_VALUES,
    RP_METRICS_SIZES /* bytes */
};

enum rp_metrics_clock { RP_METRICS_CLOCK_NS = 1, RP_METRICS_CLOCK_TSC, RP_METRICS_CLOCK_CNTVCT };

/* The same moment by three clocks. */
struct rp_metrics_moment {
    uint64_t ticks;
    int64_t monotonic_ns, real_ns;
};

struct rp_metrics_file {
    uint64_t magic;
    uint32_t clock;     /* enum rp_metrics_clock */
    uint32_t frequency; /* ticks per second where the processor tells, else 0 */
    int64_t pid, starttime, rank, world_size; /* starttime as in /proc/PID/stat; -1: not known */
    char boot_id[40], host[64], command[256];
    struct rp_metrics_moment first;
    uint64_t last_sequence; /* odd while `last` is written */
    struct rp_metrics_moment last;
    uint64_t lost;         /* samples and counts that found no memory */
    uint32_t units;        /* in use; grows */
    uint32_t first_name;   /* struct rp_metrics_name */
    uint32_t first_thread; /* struct rp_metrics_thread */
    uint32_t pid_space;    /* inode of /proc/self/ns/pid, in which `pid` counts; 0: not known */
    char job[24];          /* what its launcher calls it; "": nothing */
};

struct rp_metrics_name {
    uint32_t next, id, kind, length;
    char text[1]; /* length bytes and a zero */
};

/* The cells of a thread. When the thread ends, the next new thread continues with its cells. */
struct rp_metrics_thread {
    uint32_t next, first_cell;
    uint32_t taken; /* 1: a thread uses it */
    uint32_t reserved;
};

struct rp_metrics_cell {
    uint32_t next, name, kind, reserved; /* name: id */
    int64_t value;                       /* of a counter */
};

/* A cell that is a distribution. The sum wraps around. */
struct rp_metrics_histogram {
    uint32_t next, name, kind, reserved;
    uint64_t sequence; /* odd while a sample is written; two more for each sample */
    uint64_t sum, least, most;
    uint64_t first, last;                /* ticks: when the first sample began, the last ended */
    uint32_t octave[RP_METRICS_OCTAVES]; /* units of arrays of 64 counts */
    uint32_t reserved2;
};

/* Where a value is counted; the reader uses it the other way round. */
static inline unsigned rp_metrics_octave(uint64_t value)
{
    return (63u ^ (unsigned)__builtin_clzll(value | 63)) -
           5; /* one instruction and a subtraction */
}

static inline unsigned rp_metrics_bucket(uint64_t value, unsigned octave)
{
    return (unsigned)(value >> (octave ? octave - 1 : 0)) & 63u;
}

/* ------------------------------------------------------------------ counting */

#if defined(RP_METRICS_OFF) || !defined(__GNUC__) || !defined(__linux__) || !defined(__LP64__) || \
    !(defined(__x86_64__) || defined(__aarch64__))

#define RP_TIMED(name)            ((void)(name))
#define RP_TIMED_SAMPLE(name, ns) ((void)(name), (void)(ns))
#define RP_COUNT(name, n)         ((void)(name), (void)(n))
#define RP_VALUE(name, value)     ((void)(name), (void)(value))
#define RP_BYTES(name, bytes)     ((void)(name), (void)(bytes))

#elif !defined(RP_METRICS_LAYOUT_ONLY)

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* The C library's functions under names of our own: the standard headers declare them only if the
   program asks for POSIX before it includes anything, and it is not for this header to ask. */
#define RP_METRICS_LIBC(type, name, parameters) \
    extern type rp_metrics_libc_##name parameters __asm__(#name)

struct rp_metrics_timespec {
    long seconds, ns;
};

struct rp_metrics_sigset {
    unsigned long bits[16];
};

RP_METRICS_LIBC(int, open, (const char *path, int flags, ...));
RP_METRICS_LIBC(int, close, (int fd));
RP_METRICS_LIBC(long, read, (int fd, void *to, size_t size));
RP_METRICS_LIBC(int, unlink, (const char *path));
RP_METRICS_LIBC(int, mkdir, (const char *path, unsigned mode));
RP_METRICS_LIBC(char *, getcwd, (char *to, size_t size));
RP_METRICS_LIBC(long, readlink, (const char *path, char *to, size_t size));
RP_METRICS_LIBC(int, posix_fallocate, (int fd, long offset, long size));
RP_METRICS_LIBC(void *, mmap,
                (void *at, size_t size, int protection, int flags, int fd, long from));
RP_METRICS_LIBC(int, munmap, (void *at, size_t size));
RP_METRICS_LIBC(int, getrlimit, (int resource, unsigned long *current_and_most));
RP_METRICS_LIBC(int, getpid, (void));
RP_METRICS_LIBC(unsigned, geteuid, (void));
RP_METRICS_LIBC(int, clock_gettime, (int clock, struct rp_metrics_timespec *to));
RP_METRICS_LIBC(int, sched_yield, (void));
RP_METRICS_LIBC(int, pthread_sigmask,
                (int how, const struct rp_metrics_sigset *set, struct rp_metrics_sigset *before));
RP_METRICS_LIBC(int, pthread_setcancelstate, (int state, int *before));
RP_METRICS_LIBC(int, pthread_key_create, (unsigned *key, void (*at_end)(void *)));
RP_METRICS_LIBC(int, pthread_key_delete, (unsigned key));
RP_METRICS_LIBC(int, pthread_setspecific, (unsigned key, const void *value));
RP_METRICS_LIBC(int, pthread_atfork, (void (*)(void), void (*)(void), void (*in_child)(void)));

enum { /* of Linux on x86_64 and aarch64 */
       RP_METRICS_O_RDONLY = 02000000,
       RP_METRICS_O_RDWR = 02000002, /* with O_CLOEXEC */
       RP_METRICS_O_NEW = 02000302,  /* with O_CREAT and O_EXCL */
       RP_METRICS_PROT_BOTH = 3,
       RP_METRICS_MAP_SHARED = 1,
       RP_METRICS_MAP_MEMORY = 0x4022, /* private, anonymous, noreserve */
       RP_METRICS_RLIMIT_FSIZE = 1,
       RP_METRICS_REALTIME = 0,
       RP_METRICS_MONOTONIC = 1,
       RP_METRICS_SIG_SETMASK = 2,
       RP_METRICS_DESTRUCTOR_ROUNDS = 3 /* of four: in the last, sanitizers end the thread */
};

#define RP_METRICS_WEAK  __attribute__((weak))
#define RP_METRICS_SLOW  __attribute__((weak, noinline, cold, visibility("hidden")))
#define RP_METRICS_INIT  (1u << 16) /* bytes of a new file, and by which it grows */
#define RP_METRICS_NAMES 4096u
#define RP_METRICS_FILES 1024 /* of a process: a library that is loaded again starts a new one */

#ifndef RP_METRICS_VARIABLE /* the recorder knows better where it was loaded into a running \
                               process */
#define RP_METRICS_VARIABLE(name) getenv(name)
#endif

#define RP_METRICS_LOAD(p)     __atomic_load_n(p, __ATOMIC_RELAXED)
#define RP_METRICS_STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define RP_METRICS_LIKELY(x)   __builtin_expect(!!(x), 1)

/* Of the process: one, unless it loads libraries that use the header and keep their symbols to
   themselves. */
struct rp_metrics_state {
    uint32_t epoch; /* grows with each fork; 0: not started */
    uint32_t lock, names, clock;
    char *base; /* the mapping */
    size_t cap, size;
    uint32_t shared; /* the thread block that is used under the lock only */
    int key_is_made;
    unsigned key;
    void (*owner)(void *);
    char path[512]; /* "": no file */
};

extern struct rp_metrics_state rp_metrics_state1;
RP_METRICS_WEAK struct rp_metrics_state rp_metrics_state1;
extern __thread uint32_t rp_metrics_self1[2]; /* this thread's block, in which epoch */
RP_METRICS_WEAK __thread uint32_t rp_metrics_self1[2];

/* What a thread knows at one place of the program; valid in its epoch. */
struct rp_metrics_here {
    uint32_t epoch;
    void *cell;
};

struct rp_metrics_section {
    struct rp_metrics_here *here;
    const char *name;
    uint64_t begin;
};

/* What the fast paths do not do; weak, so that a program has each once. */
RP_METRICS_SLOW uint64_t rp_metrics_ticks_slow1(void);
RP_METRICS_SLOW int rp_metrics_grow1(size_t size);
RP_METRICS_SLOW void rp_metrics_after_fork1(void);
RP_METRICS_SLOW void rp_metrics_thread_end1(void *round);
RP_METRICS_SLOW int rp_metrics_start1(void);
RP_METRICS_SLOW void rp_metrics_slow1(struct rp_metrics_here *here, const char *name, uint32_t kind,
                                      uint64_t value, uint64_t begin, uint64_t now);

/* ---- clock ---- */

static inline int64_t rp_metrics_clock_ns(int id)
{
    struct rp_metrics_timespec t;

    rp_metrics_libc_clock_gettime(id, &t);
    return (int64_t)t.seconds * 1000000000 + t.ns;
}

static inline uint64_t rp_metrics_ticks(void)
{
#if defined(__x86_64__)
    if (RP_METRICS_LIKELY(RP_METRICS_LOAD(&rp_metrics_state1.clock) == RP_METRICS_CLOCK_TSC))
        return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;

    if (RP_METRICS_LIKELY(RP_METRICS_LOAD(&rp_metrics_state1.clock) == RP_METRICS_CLOCK_CNTVCT)) {
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
        return ticks;
    }
#endif
    return rp_metrics_ticks_slow1();
}

/* Decides at the first call: a cycle counter that never stops, else the system's clock. */
RP_METRICS_SLOW uint64_t rp_metrics_ticks_slow1(void)
{
    uint32_t clock = RP_METRICS_LOAD(&rp_metrics_state1.clock);

    if (clock == RP_METRICS_CLOCK_NS)
        return (uint64_t)rp_metrics_clock_ns(RP_METRICS_MONOTONIC);
    clock = RP_METRICS_CLOCK_NS;
#if defined(__x86_64__)
    {
        unsigned a = 0, b = 0, c = 0, d = 0;

        if (__get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & 256u))
            clock = RP_METRICS_CLOCK_TSC;
    }
#elif defined(__aarch64__)
    clock = RP_METRICS_CLOCK_CNTVCT;
#endif
    RP_METRICS_STORE(&rp_metrics_state1.clock, clock);
    return rp_metrics_ticks();
}

static inline struct rp_metrics_moment rp_metrics_now(void)
{
    struct rp_metrics_moment m;

    m.ticks = rp_metrics_ticks();
    m.monotonic_ns = rp_metrics_clock_ns(RP_METRICS_MONOTONIC);
    m.real_ns = rp_metrics_clock_ns(RP_METRICS_REALTIME);
    return m;
}

static inline struct rp_metrics_file *rp_metrics_header(void)
{
    return (struct rp_metrics_file *)(void *)rp_metrics_state1.base;
}

static inline void *rp_metrics_at(uint32_t unit)
{
    return rp_metrics_state1.base + (size_t)unit * RP_METRICS_UNIT;
}

/* Under the lock. */
static inline void rp_metrics_update_clock(void)
{
    struct rp_metrics_file *f = rp_metrics_header();
    struct rp_metrics_moment now = rp_metrics_now();

    RP_METRICS_STORE(&f->last_sequence, f->last_sequence + 1);
    RP_METRICS_STORE(&f->last.ticks, now.ticks);
    RP_METRICS_STORE(&f->last.monotonic_ns, now.monotonic_ns);
    RP_METRICS_STORE(&f->last.real_ns, now.real_ns);
    RP_METRICS_STORE(&f->last_sequence, f->last_sequence + 1);
}

/* ---- memory, under the lock ---- */

/* Makes the file as large as that; false if it cannot be. */
RP_METRICS_SLOW int rp_metrics_grow1(size_t size)
{
    struct rp_metrics_state *s = &rp_metrics_state1;
    size_t want = (size + RP_METRICS_INIT - 1) / RP_METRICS_INIT * RP_METRICS_INIT;
    unsigned long limit[2];
    struct rp_metrics_file found;
    int fd, failed;

    if (want > s->cap)
        return 0;
    if (!s->path[0]) {
        s->size = want; /* memory without a file is there already */
        return 1;
    }
    /* beyond the limit the system would send a signal */
    if (!rp_metrics_libc_getrlimit(RP_METRICS_RLIMIT_FSIZE, limit) && limit[0] < want)
        return 0;
    /* by its path: a descriptor kept open could have been closed by the program, and reused */
    fd = rp_metrics_libc_open(s->path, RP_METRICS_O_RDWR);
    if (fd < 0)
        return 0;
    failed = rp_metrics_libc_read(fd, &found, sizeof found) != (long)sizeof found ||
             found.pid != rp_metrics_header()->pid ||
             found.first.ticks != rp_metrics_header()->first.ticks ||
             rp_metrics_libc_posix_fallocate(fd, 0, (long)want);
    rp_metrics_libc_close(fd);
    if (failed)
        return 0;
    s->size = want;
    return 1;
}

/* Units of zeros, or 0. */
static inline uint32_t rp_metrics_new(size_t bytes)
{
    struct rp_metrics_file *f = rp_metrics_header();
    uint32_t at = f->units, n = (uint32_t)((bytes + RP_METRICS_UNIT - 1) / RP_METRICS_UNIT);
    size_t end = ((size_t)at + n) * RP_METRICS_UNIT;

    if (end > rp_metrics_state1.size && !rp_metrics_grow1(end))
        return 0;
    RP_METRICS_STORE(&f->units, at + n);
    return at;
}

/* ---- start, under the lock ---- */

static inline void rp_metrics_read_line(const char *path, char *to, size_t size, char zero)
{
    int fd = rp_metrics_libc_open(path, RP_METRICS_O_RDONLY);
    long n = fd < 0 ? 0 : rp_metrics_libc_read(fd, to, size - 1), i;

    if (fd >= 0)
        rp_metrics_libc_close(fd);
    if (n < 0)
        n = 0;
    for (i = 0; i < n; i++)
        if (to[i] == 0)
            to[i] = zero;
    while (n > 0 && (to[n - 1] == '\n' || to[n - 1] == ' '))
        n--;
    to[n] = 0;
}

/* The 22nd field of /proc/self/stat; the second may contain spaces and brackets. */
static inline int64_t rp_metrics_starttime(void)
{
    char text[1024];
    const char *at;
    int field;

    rp_metrics_read_line("/proc/self/stat", text, sizeof text, ' ');
    at = strrchr(text, ')');
    for (field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoll(at, 0, 10) : -1;
}

/* The link reads "pid:[4026531836]". */
static inline uint32_t rp_metrics_pid_space(void)
{
    char text[64];
    long n = rp_metrics_libc_readlink("/proc/self/ns/pid", text, sizeof text - 1);
    const char *at;

    text[n > 0 ? n : 0] = 0;
    at = strchr(text, '[');
    return at ? (uint32_t)strtoll(at + 1, 0, 10) : 0;
}

static inline int64_t rp_metrics_number(const char *const *names)
{
    for (; *names; names++) {
        const char *text = getenv(*names);
        char *end;
        int64_t n = text && *text ? strtoll(text, &end, 10) : -1;

        if (text && *text && !*end && n >= 0)
            return n;
    }
    return -1;
}

static inline void rp_metrics_job(char *to, size_t size)
{
    static const char *const names[] = {"REPRISE_JOB", "SLURM_JOB_ID",        "PBS_JOBID",
                                        "LSB_JOBID",   "TORCHELASTIC_RUN_ID", 0};
    const char *recording = RP_METRICS_VARIABLE("REPRISE_RECORD"),
               *slash = recording ? strrchr(recording, '/') : 0;
    int i;

    for (i = 0; names[i] && !*to; i++)
        if (getenv(names[i]))
            snprintf(to, size, "%s", getenv(names[i]));
    if (!*to && slash)
        snprintf(to, size, "%s", slash + 1);
}

static inline void rp_metrics_describe(struct rp_metrics_file *f)
{
    static const char *const rank[] = {"RANK",         "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                       "SLURM_PROCID", "HOROVOD_RANK",         0};
    static const char *const size[] = {"WORLD_SIZE",   "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                       "SLURM_NTASKS", "HOROVOD_SIZE",         0};

    f->pid = rp_metrics_libc_getpid();
    f->starttime = rp_metrics_starttime();
    f->pid_space = rp_metrics_pid_space();
    f->rank = rp_metrics_number(rank);
    f->world_size = rp_metrics_number(size);
    rp_metrics_read_line("/proc/sys/kernel/random/boot_id", f->boot_id, sizeof f->boot_id, ' ');
    rp_metrics_read_line("/proc/sys/kernel/hostname", f->host, sizeof f->host, ' ');
    rp_metrics_read_line("/proc/self/cmdline", f->command, sizeof f->command, ' ');
    rp_metrics_job(f->job, sizeof f->job);
    f->first = f->last = rp_metrics_now();
    f->clock = rp_metrics_state1.clock;
#if defined(__aarch64__)
    {
        uint64_t frequency;

        __asm__("mrs %0, cntfrq_el0" : "=r"(frequency));
        f->frequency = (uint32_t)frequency;
    }
#endif
    f->units = (uint32_t)((sizeof *f + RP_METRICS_UNIT - 1) / RP_METRICS_UNIT);
}

/* What the paths of new files begin with; 0 if it is too long. A file is made exclusively, for its
   user only, so that it may be in a folder where everybody can write. */
static inline int rp_metrics_place(int choice, char *to, size_t size)
{
    const char *given = RP_METRICS_VARIABLE("REPRISE_METRICS_DIR"),
               *runtime = getenv("XDG_RUNTIME_DIR");
    char here[256] = "";
    int n = -1;

    if (given && *given) {
        if (choice || (*given != '/' && !rp_metrics_libc_getcwd(here, sizeof here)))
            return 0;
        n = snprintf(to, size, "%s%s%s", here, *here ? "/" : "", given);
    } else if (choice == 0) {
        if (!runtime || *runtime != '/')
            return 0;
        n = snprintf(to, size, "%s/reprise-metrics", runtime);
    } else {
        n = snprintf(to, size, "%s/reprise-metrics-%u-", choice == 1 ? "/dev/shm" : "/tmp",
                     rp_metrics_libc_geteuid());
        return n > 0 && (size_t)n < size;
    }
    if (n < 0 || (size_t)n + 1 >= size)
        return 0;
    rp_metrics_libc_mkdir(to, 0700);
    strcat(to, "/");
    return 1;
}

/* Creates the file with its first bytes; -1 if it cannot be. */
static inline int rp_metrics_create(struct rp_metrics_state *s, int64_t starttime)
{
    unsigned long limit[2];
    char place[400];
    int fd = -1, choice, i, n;

    if (!rp_metrics_libc_getrlimit(RP_METRICS_RLIMIT_FSIZE, limit) && limit[0] < RP_METRICS_INIT)
        return -1;
    for (choice = 0; choice < 3; choice++) {
        if (!rp_metrics_place(choice, place, sizeof place))
            continue;
        for (i = 0; i < RP_METRICS_FILES; i++) {
            n = snprintf(s->path, sizeof s->path, "%s%d-%lld-%d.metrics", place,
                         rp_metrics_libc_getpid(), (long long)starttime, i);
            if (n < 0 || (size_t)n >= sizeof s->path)
                break;
            fd = rp_metrics_libc_open(s->path, RP_METRICS_O_NEW, 0600);
            if (fd >= 0 || errno != EEXIST)
                break;
        }
        if (fd < 0)
            continue;
        if (!rp_metrics_libc_posix_fallocate(fd, 0, RP_METRICS_INIT))
            return fd;
        rp_metrics_libc_unlink(s->path);
        rp_metrics_libc_close(fd);
        fd = -1;
    }
    return -1;
}

RP_METRICS_SLOW void rp_metrics_after_fork1(void)
{
    struct rp_metrics_state *s = &rp_metrics_state1;

    if (s->base)
        rp_metrics_libc_munmap(s->base, s->cap);
    s->base = 0;
    s->size = 0;
    s->names = s->lock = s->shared = 0;
    RP_METRICS_STORE(&s->epoch, s->epoch + 1);
}

/* A thread ends: the next one may continue with its cells. After most of the rounds in which
   destructors run, because others may still count. */
RP_METRICS_SLOW void rp_metrics_thread_end1(void *round)
{
    uintptr_t n = (uintptr_t)round;
    struct rp_metrics_thread *t;

    if (n < RP_METRICS_DESTRUCTOR_ROUNDS) {
        rp_metrics_libc_pthread_setspecific(rp_metrics_state1.key, (void *)(n + 1));
        return;
    }
    if (rp_metrics_self1[0] && rp_metrics_self1[1] == rp_metrics_state1.epoch) {
        t = (struct rp_metrics_thread *)rp_metrics_at(rp_metrics_self1[0]);
        rp_metrics_self1[0] = 0;
        RP_METRICS_STORE(&t->taken, 0);
    }
}

/* The library that contains the destructor is unloaded: threads may end without it. */
__attribute__((destructor)) static void rp_metrics_unload(void)
{
    struct rp_metrics_state *s = &rp_metrics_state1;

    if (s->key_is_made && s->owner == rp_metrics_thread_end1) {
        s->key_is_made = 0;
        rp_metrics_libc_pthread_key_delete(s->key);
    }
}

RP_METRICS_SLOW int rp_metrics_start1(void)
{
    struct rp_metrics_state *s = &rp_metrics_state1;
    const char *megabytes = getenv("REPRISE_METRICS_MB"), *off = getenv("REPRISE_METRICS");
    long mb = megabytes ? strtol(megabytes, 0, 10) : 64;
    int fd = -1, flags;
    void *base;

    if (s->base)
        return 1;
    s->cap = (size_t)(mb < 1 ? 1 : mb > 65536 ? 65536 : mb) << 20;
    s->path[0] = 0;
    if (!off || strcmp(off, "off") != 0)
        fd = rp_metrics_create(s, rp_metrics_starttime());
    flags = fd < 0 ? RP_METRICS_MAP_MEMORY : RP_METRICS_MAP_SHARED;
    base = rp_metrics_libc_mmap(0, s->cap, RP_METRICS_PROT_BOTH, flags, fd, 0);
    if (fd >= 0)
        rp_metrics_libc_close(fd);
    else
        s->path[0] = 0;
    if (base == (void *)-1)
        return 0;
    s->base = (char *)base;
    s->size = RP_METRICS_INIT;
    rp_metrics_describe(rp_metrics_header());
    RP_METRICS_STORE(&rp_metrics_header()->magic, RP_METRICS_MAGIC);
    if (!s->epoch) {
        s->key_is_made = !rp_metrics_libc_pthread_key_create(&s->key, rp_metrics_thread_end1);
        s->owner = rp_metrics_thread_end1;
        rp_metrics_libc_pthread_atfork(0, 0, rp_metrics_after_fork1);
        RP_METRICS_STORE(&s->epoch, 1);
    }
    return 1;
}

/* ---- names, threads and cells, under the lock ---- */

/* The id of a name, which is its unit; 0: no memory. */
static inline uint32_t rp_metrics_name_id(const char *text, uint32_t kind)
{
    struct rp_metrics_file *f = rp_metrics_header();
    size_t length = strlen(text);
    struct rp_metrics_name *n;
    uint32_t at;

    length = length > 1024 ? 1024 : length;
    for (at = f->first_name; at; at = n->next) {
        n = (struct rp_metrics_name *)rp_metrics_at(at);
        if (n->kind == kind && n->length == length && !memcmp(n->text, text, length))
            return at;
    }
    if (rp_metrics_state1.names >= RP_METRICS_NAMES)
        return 0;
    at = rp_metrics_new(sizeof *n + length);
    if (!at)
        return 0;
    n = (struct rp_metrics_name *)rp_metrics_at(at);
    n->id = at;
    n->kind = kind;
    n->length = (uint32_t)length;
    memcpy(n->text, text, length);
    n->next = f->first_name;
    RP_METRICS_STORE(&f->first_name, at);
    rp_metrics_state1.names++;
    return at;
}

static inline uint32_t rp_metrics_thread_new(void)
{
    struct rp_metrics_file *f = rp_metrics_header();
    struct rp_metrics_thread *t;
    uint32_t at;

    for (at = f->first_thread; at; at = t->next) {
        t = (struct rp_metrics_thread *)rp_metrics_at(at);
        if (!__atomic_load_n(&t->taken, __ATOMIC_ACQUIRE)) {
            RP_METRICS_STORE(&t->taken, 1);
            return at;
        }
    }
    at = rp_metrics_new(sizeof *t);
    if (!at)
        return 0;
    t = (struct rp_metrics_thread *)rp_metrics_at(at);
    t->taken = 1;
    t->next = f->first_thread;
    RP_METRICS_STORE(&f->first_thread, at);
    return at;
}

/* This thread's block; 0: no memory. */
static inline uint32_t rp_metrics_thread_self(void)
{
    struct rp_metrics_state *s = &rp_metrics_state1;

    if (rp_metrics_self1[0] && rp_metrics_self1[1] == s->epoch)
        return rp_metrics_self1[0];
    rp_metrics_self1[0] = rp_metrics_thread_new();
    rp_metrics_self1[1] = s->epoch;
    if (rp_metrics_self1[0] && s->key_is_made)
        rp_metrics_libc_pthread_setspecific(s->key, (void *)(uintptr_t)1);
    return rp_metrics_self1[0];
}

/* The cell of a block for a name, made if needed; null: no memory. */
static inline struct rp_metrics_cell *rp_metrics_cell_of(uint32_t block, uint32_t name,
                                                         uint32_t kind, uint64_t begin)
{
    struct rp_metrics_thread *t = (struct rp_metrics_thread *)rp_metrics_at(block);
    struct rp_metrics_histogram *h;
    struct rp_metrics_cell *c;
    uint32_t at;

    for (at = t->first_cell; at; at = c->next) {
        c = (struct rp_metrics_cell *)rp_metrics_at(at);
        if (c->name == name)
            return c;
    }
    at = rp_metrics_new(kind == RP_METRICS_COUNTER ? sizeof *c : sizeof *h);
    if (!at)
        return 0;
    c = (struct rp_metrics_cell *)rp_metrics_at(at);
    c->name = name;
    c->kind = kind;
    if (kind != RP_METRICS_COUNTER) {
        h = (struct rp_metrics_histogram *)(void *)c;
        h->least = UINT64_MAX;
        h->first = begin;
    }
    c->next = t->first_cell;
    RP_METRICS_STORE(&t->first_cell, at);
    return c;
}

/* ---- a sample ---- */

static inline void rp_metrics_write(struct rp_metrics_histogram *h, uint64_t sequence,
                                    uint64_t *count, uint64_t value, uint64_t now)
{
    RP_METRICS_STORE(&h->sequence, sequence + 1);
    RP_METRICS_STORE(count, RP_METRICS_LOAD(count) + 1);
    RP_METRICS_STORE(&h->sum, RP_METRICS_LOAD(&h->sum) + value);
    if (!RP_METRICS_LIKELY(value >= RP_METRICS_LOAD(&h->least)))
        RP_METRICS_STORE(&h->least, value);
    if (!RP_METRICS_LIKELY(value <= RP_METRICS_LOAD(&h->most)))
        RP_METRICS_STORE(&h->most, value);
    RP_METRICS_STORE(&h->last, now);
    RP_METRICS_STORE(&h->sequence, sequence + 2);
}

/* The counts of an octave, which are made under the lock. */
static inline uint64_t *rp_metrics_counts(struct rp_metrics_histogram *h, unsigned octave)
{
    if (!h->octave[octave])
        RP_METRICS_STORE(&h->octave[octave], rp_metrics_new(RP_METRICS_BUCKETS * sizeof(uint64_t)));
    return h->octave[octave] ? (uint64_t *)rp_metrics_at(h->octave[octave]) : 0;
}

/* A sample or count that the fast path cannot take: the thread meets this place, or this power of
   two, for the first time. Without memory for cells of its own, a thread uses the shared block. */
RP_METRICS_SLOW void rp_metrics_slow1(struct rp_metrics_here *here, const char *name, uint32_t kind,
                                      uint64_t value, uint64_t begin, uint64_t now)
{
    struct rp_metrics_state *s = &rp_metrics_state1;
    struct rp_metrics_cell *c = 0;
    uint64_t *counts = 0;
    uint32_t id = 0, block;
    int error = errno, cancel, shared;
    struct rp_metrics_sigset all, before;

    memset(&all, 0xff, sizeof all);
    rp_metrics_libc_pthread_sigmask(RP_METRICS_SIG_SETMASK, &all, &before);
    rp_metrics_libc_pthread_setcancelstate(1, &cancel);
    while (__atomic_exchange_n(&s->lock, 1, __ATOMIC_ACQUIRE))
        rp_metrics_libc_sched_yield();
    if (rp_metrics_start1()) {
        rp_metrics_update_clock();
        id = rp_metrics_name_id(name, kind);
        for (shared = 0; id && shared < 2; shared++) {
            if (shared && !s->shared)
                s->shared = rp_metrics_thread_new();
            block = shared ? s->shared : rp_metrics_thread_self();
            c = block ? rp_metrics_cell_of(block, id, kind, begin) : 0;
            if (c && kind == RP_METRICS_COUNTER)
                break;
            counts = c ? rp_metrics_counts((struct rp_metrics_histogram *)(void *)c,
                                           rp_metrics_octave(value))
                       : 0;
            if (counts)
                break;
        }
        if (c && kind == RP_METRICS_COUNTER)
            RP_METRICS_STORE(&c->value, (int64_t)((uint64_t)c->value + value));
        else if (c && counts)
            rp_metrics_write((struct rp_metrics_histogram *)(void *)c,
                             ((struct rp_metrics_histogram *)(void *)c)->sequence,
                             &counts[rp_metrics_bucket(value, rp_metrics_octave(value))], value,
                             now);
        else
            rp_metrics_header()->lost++;
        if (here && c && !shared) {
            here->cell = c;
            here->epoch = s->epoch;
        }
    }
    __atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE);
    rp_metrics_libc_pthread_setcancelstate(cancel, 0);
    rp_metrics_libc_pthread_sigmask(RP_METRICS_SIG_SETMASK, &before, 0);
    errno = error;
}

static inline void rp_metrics_sample(struct rp_metrics_here *here, const char *name, uint32_t kind,
                                     uint64_t value, uint64_t begin, uint64_t now)
{
    unsigned octave = rp_metrics_octave(value);
    struct rp_metrics_histogram *h;
    uint64_t sequence;

    if (RP_METRICS_LIKELY(here->epoch &&
                          here->epoch == RP_METRICS_LOAD(&rp_metrics_state1.epoch))) {
        h = (struct rp_metrics_histogram *)here->cell;
        sequence = RP_METRICS_LOAD(&h->sequence);
        if (RP_METRICS_LIKELY(h->octave[octave] && (sequence & 0x1ffff) != 0x1fffe)) {
            rp_metrics_write(h, sequence,
                             (uint64_t *)rp_metrics_at(h->octave[octave]) +
                                 rp_metrics_bucket(value, octave),
                             value, now);
            return;
        }
    }
    rp_metrics_slow1(here, name, kind, value, begin, now);
}

static inline void rp_metrics_section_end(const struct rp_metrics_section *s)
{
    uint64_t now = rp_metrics_ticks();

    rp_metrics_sample(s->here, s->name, RP_METRICS_TICKS, now - s->begin, s->begin, now);
}

static inline void rp_metrics_add(struct rp_metrics_here *here, const char *name, uint64_t n)
{
    if (RP_METRICS_LIKELY(here->epoch &&
                          here->epoch == RP_METRICS_LOAD(&rp_metrics_state1.epoch))) {
        int64_t *value = &((struct rp_metrics_cell *)here->cell)->value;

        RP_METRICS_STORE(value, (int64_t)((uint64_t)RP_METRICS_LOAD(value) + n));
        return;
    }
    rp_metrics_slow1(here, name, RP_METRICS_COUNTER, n, 0, 0);
}

#define RP_METRICS_JOIN_(a, b) a##b
#define RP_METRICS_JOIN(a, b)  RP_METRICS_JOIN_(a, b)

/* Expands to declarations. */
#define RP_METRICS_SECTION(name, n)                                                            \
    static __thread struct rp_metrics_here RP_METRICS_JOIN(rp_metrics_here_, n);               \
    __attribute__((unused, cleanup(rp_metrics_section_end))) const struct rp_metrics_section   \
    RP_METRICS_JOIN(rp_metrics_section_, n) = {&RP_METRICS_JOIN(rp_metrics_here_, n), "" name, \
                                               rp_metrics_ticks()}

#define RP_METRICS_TAKE(name, kind, value)                                                      \
    do {                                                                                        \
        static __thread struct rp_metrics_here rp_metrics_here_;                                \
        uint64_t rp_metrics_now_ = rp_metrics_ticks();                                          \
        rp_metrics_sample(&rp_metrics_here_, "" name, kind, (uint64_t)(value), rp_metrics_now_, \
                          rp_metrics_now_);                                                     \
    } while (0)

#define RP_TIMED(name)            RP_METRICS_SECTION(name, __COUNTER__)
#define RP_TIMED_SAMPLE(name, ns) RP_METRICS_TAKE(name, RP_METRICS_NS, ns)
#define RP_VALUE(name, value)     RP_METRICS_TAKE(name, RP_METRICS_VALUES, value)
#define RP_BYTES(name, bytes)     RP_METRICS_TAKE(name, RP_METRICS_SIZES, bytes)
#define RP_COUNT(name, n)                                          \
    do {                                                           \
        static __thread struct rp_metrics_here rp_metrics_here_;   \
        rp_metrics_add(&rp_metrics_here_, "" name, (uint64_t)(n)); \
    } while (0)

#endif

#ifdef __cplusplus
}
#endif

#endif
