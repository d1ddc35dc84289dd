/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source `sample`, loaded by LD_PRELOAD on request, records the stacks of all threads many
 * times a second. It runs on the core's thread. At each tick, for each thread:
 *
 *   its CPU time is unchanged  it has waited since the last tick, with the same stack: the last
 * sample is extended without reading the stack it waits in a system call  the kernel tells its
 * stack pointer (/proc/.../syscall), and the stack is read while it waits; it is not woken it runs
 * it is asked by a signal to copy its own stack (signal.c); answers are unwound every few ticks. A
 * thread of another process (`sample
 *                              --pid`) is stopped for as long as the copy takes (attach.c)
 *
 * While the threads that run do so without a pause, the kernel asks them where it can, and ticks
 * come once for several samples. A wait that such a thread begins ends this for a while, so that
 * waits are seen at every tick in programs that wait now and then.
 *
 * A sample of a running thread stands for the CPU time since the previous one, so that the samples
 * of a thread add up to its CPU time however uneven the ticks are; the rest of the time between
 * them, in which it had no processor, becomes a sample that waited in the same place. A wait is
 * recorded as one sample with its whole duration, and at least every second.
 */
#include "capture/sample/sample.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS   1024
#define LOOK_NS   INT64_C(50000000) /* interval of checks whether there are more or fewer threads */
#define LIST_NS   INT64_C(200000000)  /* ... which threads there are, if their number is the same */
#define CHECK_NS  INT64_C(1000000000) /* ... of the name of a thread */
#define WAIT_NS   UINT64_C(1000000000)
#define STALE_NS  INT64_C(100000000) /* interval of lists of modules; doubled if nothing changed */
#define STALE_MAX INT64_C(6400000000)
#define LAG_NS    INT64_C(4000000)   /* `schedstat` is at most a tick of the kernel behind */
#define OFTEN_NS  INT64_C(1500000)   /* ticks this frequent find what they need in the caches */
#define PAUSE_NS  INT64_C(100000000) /* the longest between two ticks at more than 10 a second */
#define GAP_NS    INT64_C(500000000) /* a longer time without a tick does not count as one sample */
#define UNSEEN_NS INT64_C(20000000)
#define REPEAT_NS INT64_C(40000000) /* the longest time between two ticks while the kernel asks */
#define KEPT      768               /* most files of the kernel that are kept open */
#define HZ        100

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

struct thread {
    uint32_t tid;
    bool is_listed, is_ours;
    int stat, schedstat, syscall, stack; /* its files, which stay open; -1: not open */
    struct rp_sample_stop stop;
    int64_t cpu_ns, checked_ns, asked_ns;
    int64_t sampled_ns; /* the part of its CPU time for which samples stand */
    uint64_t state;     /* of Python; 0: none */
    struct rp_sample_request *request;
    uint64_t asked_weight_ns, asked_ran_ns;
    char name[16];
    bool is_named;     /* in the recording */
    bool is_answered;  /* the last request was */
    unsigned unlooked; /* requests since its file was read last */
    unsigned calls;    /* how often it was recently in a system call; see put_call */
    bool is_busy;      /* it has run without a pause since the last tick */
    bool is_repeated;  /* the kernel asks it */
    int64_t owed_ns;   /* CPU time since then that answers do not account for */
    struct rp_sample_kernel *kernel;
    /* the wait that it is in; weight 0 if there is none */
    uint64_t since, weight_ns;
    uint32_t gil, nframes;
    bool is_cut;
    /* frames of the wait, or of the last sample if that has Python frames (at seen_ns) */
    int64_t seen_ns;
    const char *frames[RP_SAMPLE_FRAMES];
};

static const struct rp_capture *cap;
static struct thread *threads[THREADS];
static size_t nthreads, nallocated;
static struct rp_sample_raw *raw; /* buffer for a thread that waits, or is stopped */
static struct rp_sample_known *known;
static int64_t taken_ns; /* when answers were last taken */
static int64_t last_ns, looked_ns, listed_ns, modules_ns, modules_wait_ns;
static int64_t period_ns,
    pause_ns; /* time between two samples, and between this tick and the next */
static bool is_held,
    is_active; /* is_held: some thread has no processor; is_active: some thread did something */
static bool ask;
static unsigned nanswers; /* most answers of a thread that are kept */
static unsigned
    nrepeats; /* number of answers between two ticks while the kernel asks; 0: it cannot */
static bool repeats, is_calm;    /* repeats: the kernel asks, or may from the next tick on; is_calm:
                                    the last tick allows it */
static unsigned ncalm, calm = 8; /* ticks since one that was not calm, and how many are required */
static enum { CLOCK_BOTH, CLOCK_CPU, CLOCK_WALL } clock_of; /* what the weight of a sample counts */
static uint32_t own_tid;
static uint64_t ntaken;
static bool own_files, stat_tells; /* see look_at */
static bool tells_stacks;          /* the kernel shows its functions to this process */
static unsigned nkept, most_kept;

/* -------------------------------------------------------------------------- files of the kernel */

static int open_task_file(uint32_t tid, const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/task/%u/%s", (int)rp_sample_pid, tid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static size_t read_task_file(uint32_t tid, const char *name, char *to, size_t size)
{
    int fd = open_task_file(tid, name);
    ssize_t n = 0;

    if (fd >= 0) {
        n = read(fd, to, size - 1);
        close(fd);
    }
    n = n > 0 ? n : 0;
    to[n] = '\0';
    return (size_t)n;
}

static size_t read_kept(int *fd, uint32_t tid, const char *name, char *to, size_t size)
{
    if (*fd < 0 && own_files && nkept < most_kept) {
        *fd = open_task_file(tid, name);
        nkept += *fd >= 0;
    }
    if (*fd < 0)
        return read_task_file(tid, name, to, size);
    ssize_t n = pread(*fd, to, size - 1, 0);
    to[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* CPU time of a thread, or -1 if it has ended. */
static int64_t cpu_ns_of(struct thread *t)
{
    clockid_t clock =
        (clockid_t)(~t->tid << 3 | 6); /* a thread's own clock, in the kernel's numbering */
    struct timespec time;
    char text[96];

    if (rp_sample_attached) /* the clocks of other processes are not readable */
        return read_kept(&t->schedstat, t->tid, "schedstat", text, sizeof text)
                   ? strtoll(text, NULL, 10)
                   : -1;
    return clock_gettime(clock, &time) ? -1 : (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static bool has_urgent(uint64_t signals)
{
    return signals >> (SIGURG - 1) & 1;
}

/* Reads `status`, which takes three times as long as `stat`. */
static bool status_blocks(uint32_t tid)
{
    char text[4096], *at;

    if (!read_task_file(tid, "status", text, sizeof text) || !(at = strstr(text, "\nSigBlk:")))
        return true;
    return has_urgent(strtoull(at + 8, NULL, 16));
}

static void forget_file(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        nkept--;
    }
    *fd = -1;
}

static void forget_files(struct thread *t)
{
    forget_file(&t->stat);
    forget_file(&t->schedstat);
    forget_file(&t->syscall);
    forget_file(&t->stack);
}

/* Asked each time, because a program that looks for pending signals would see one that stays
   pending. The state is field 3, after the name in parentheses; the blocked signals are field
   32. */
static void look_at(struct thread *t, bool *runs, bool *blocks)
{
    char text[1024];
    const char *at =
        read_kept(&t->stat, t->tid, "stat", text, sizeof text) ? strrchr(text, ')') : NULL;

    *runs = at && at[1] == ' ' && at[2] == 'R';
    for (unsigned field = 3; at && field <= 32; field++)
        at = strchr(at + 1, ' ');
    *blocks = !at || has_urgent(strtoull(at, NULL, 10));
}

/* Files are kept open only if this thread has a table of its own, in which the program does not see
   them. This thread blocks all signals; if `stat` does not show that, the kernel is asked in
   another way. */
static void look_at_self(void)
{
    struct thread self = {.stat = -1, .schedstat = -1, .syscall = -1, .stack = -1};
    struct rlimit files = {0};
    char text[64];
    bool runs;

    most_kept = getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur / 2 > KEPT
                    ? KEPT
                    : (unsigned)(files.rlim_cur / 2);
    self.tid = rp_sample_attached ? 0 : own_tid;
    own_files = !syscall(SYS_close_range, ~0U, ~0U, CLOSE_RANGE_UNSHARE);
    if (!rp_sample_attached)
        look_at(&self, &runs, &stat_tells);
    stat_tells = rp_sample_attached || (stat_tells && runs);
    forget_files(&self);
    tells_stacks = read_task_file(rp_sample_attached ? (uint32_t)rp_sample_pid : own_tid, "stack",
                                  text, sizeof text);
}

/* Finds where it waits in the kernel; false if it runs, or that is not known. */
static bool waits_at(struct thread *t, struct rp_sample_regs *regs)
{
    char text[256];

    if (!read_kept(&t->syscall, t->tid, "syscall", text, sizeof text) ||
        !strncmp(text, "running", 7))
        return false;
    char *at = strrchr(text, ' ');
    if (!at)
        return false;
    *at = '\0';
    regs->at[RP_SAMPLE_PC] = strtoull(at + 1, NULL, 16);
    at = strrchr(text, ' ');
    regs->at[RP_SAMPLE_SP] = at ? strtoull(at + 1, NULL, 16) : 0;
    regs->known = UINT64_C(1) << RP_SAMPLE_PC | UINT64_C(1) << RP_SAMPLE_SP;
    return regs->at[RP_SAMPLE_SP] != 0;
}

/* Appends the functions of the kernel in which a thread waits to its stack: all of them if this
   process may see them (CAP_SYS_ADMIN), else the one that the kernel shows to everybody who may
   trace the thread. A line of `stack`, the innermost first, is "[<0>] ep_poll+0x31b/0x3a0". */
static uint32_t put_kernel(struct thread *t, const char *frames[RP_SAMPLE_FRAMES], uint32_t n)
{
    char text[2048], frame[128], *end = text;

    if (!read_kept(&t->stack, t->tid, tells_stacks ? "stack" : "wchan", text, sizeof text))
        return n;
    for (end += strlen(text); end > text && n < RP_SAMPLE_FRAMES;) {
        *end = '\0';
        char *line = memrchr(text, '\n', (size_t)(end - text));
        char *name = line ? line + 1 : text;
        end = line ? line : text;
        name = !strncmp(name, "[<", 2) && strchr(name, ' ') ? strchr(name, ' ') + 1 : name;
        name[strcspn(name, "+ \n")] = '\0';
        if (!*name || *name == '0')
            continue;
        snprintf(frame, sizeof frame, "kernel\t%.100s\t[kernel]\t0", name);
        frames[n] = rp_sample_intern(frame);
        n += frames[n] != NULL;
    }
    return n;
}

/* -------------------------------------------------------------------------- writing */

static void put_sample(struct thread *t, struct rp_capture_sample *s)
{
    s->tid = t->tid;
    cap->sample(s);
    if (!t->is_named && t->name[0])
        cap->thread_name(t->tid, t->name);
    t->is_named = true;
    ntaken++;
}

static void end_wait(struct thread *t)
{
    struct rp_capture_sample s = {.gil_tid = t->gil,
                                  .ticks = t->since,
                                  .weight_ns = t->weight_ns,
                                  .state = RP_CTF_SAMPLE_WAITED,
                                  .is_cut = t->is_cut,
                                  .frames = t->frames,
                                  .nframes = t->nframes};

    if (t->weight_ns && clock_of != CLOCK_CPU)
        put_sample(t, &s);
    t->weight_ns = 0;
}

/* The time since its last sample in which the thread ran. */
static uint64_t take_cpu_time(struct thread *t, uint64_t since_ns)
{
    int64_t ran = t->cpu_ns - t->sampled_ns;

    if (rp_sample_attached) {
        ran += LAG_NS;
        ran = ran < (int64_t)since_ns ? ran : (int64_t)since_ns;
    }
    ran = ran > 0 ? ran : 0;
    t->sampled_ns += ran;
    return (uint64_t)ran;
}

/* A thread without Python is put under the one of this or the last tick for which it works; a
   thread with Python may be such an owner. */
static size_t find_owner(struct thread *t, const char *frames[RP_SAMPLE_FRAMES], size_t n,
                         bool has_python)
{
    int64_t since_ns = last_ns - nanswers / 2 * period_ns - pause_ns;

    if (has_python && !t->weight_ns) {
        memcpy(t->frames, frames, n * sizeof *frames);
        t->nframes = (uint32_t)n;
        t->seen_ns = last_ns;
    }
    for (size_t i = 0; i < nthreads && !has_python; i++) {
        struct thread *o = threads[i];
        size_t m = o != t && o->seen_ns >= since_ns && o->seen_ns
                       ? rp_sample_hang(frames, n, o->frames, o->nframes)
                       : 0;

        if (m)
            return m;
    }
    return n;
}

/* On a loaded machine the sampler may have no processor while the thread has one. A single sample
   does not stand for all of that time: what exceeds eight periods has no place. */
static uint64_t put_unseen(struct thread *t, uint64_t ticks, uint64_t ran_ns)
{
    static const char *const nowhere[] = {"native\t[not sampled: no processor for it]\t\t0"};
    int64_t most_ns = 8 * period_ns > UNSEEN_NS ? 8 * period_ns : UNSEEN_NS;
    struct rp_capture_sample s = {
        .ticks = ticks, .state = RP_CTF_SAMPLE_RAN, .frames = nowhere, .nframes = 1};

    if (ran_ns <= (uint64_t)most_ns)
        return ran_ns;
    s.weight_ns = ran_ns - (uint64_t)period_ns;
    put_sample(t, &s);
    return (uint64_t)period_ns;
}

static void close_kernel(struct thread *t)
{
    nkept -= t->kernel != NULL;
    rp_sample_kernel_close(t->kernel);
    t->kernel = NULL;
}

/* Asking for the kernel's functions costs an interrupt for each period, so this is only done while
   more than one of 17 samples are in system calls. */
static uint32_t put_call(struct thread *t, const struct rp_sample_raw *r,
                         const char *frames[RP_SAMPLE_FRAMES], uint32_t n)
{
    enum {
        IN_CALL = 16,
        OPEN = 128,
        PAGE_NS = 50000
    }; /* part of a tick that may be spent on names */
    static bool denied;
    bool in_call = rp_sample_in_system_call(r);
    uint32_t before = n;

    if (in_call && t->calls < 2 * OPEN)
        t->calls += IN_CALL;
    else if (!in_call && t->calls)
        t->calls--;
    if (!t->calls)
        close_kernel(t);
    if (!in_call || n == RP_SAMPLE_FRAMES)
        return n;
    if (!t->kernel && t->calls >= OPEN && !denied && own_files && nkept < most_kept &&
        rp_sample_kernel_names((unsigned)(period_ns / PAGE_NS) + 1)) {
        t->kernel = rp_sample_kernel_open(t->tid, period_ns);
        nkept += t->kernel != NULL;
        denied = !t->kernel;
    }
    if (t->kernel)
        n = rp_sample_kernel_put(t->kernel, &r->regs, frames, n);
    if (n == before)
        frames[n++] = "kernel\t[system call]\t[kernel]\t0";
    return n;
}

/* since_ns: the time for which the sample stands; ran_ns: the part of it on a processor. */
static void put_ran(struct thread *t, struct rp_sample_raw *r, struct rp_sample_known *before,
                    uint64_t ticks, uint64_t since_ns, uint64_t ran_ns)
{
    static const char *frames[RP_SAMPLE_FRAMES];
    struct rp_capture_sample s = {
        .gil_tid = rp_sample_python_holder(&r->lock),
        .ticks = ticks,
        .weight_ns = clock_of == CLOCK_WALL ? since_ns : put_unseen(t, ticks, ran_ns),
        .state = RP_CTF_SAMPLE_RAN,
        .frames = frames};

    s.nframes = (uint32_t)rp_sample_join(r, before, last_ns, frames, &s.is_cut);
    s.nframes = put_call(t, r, frames, s.nframes);
    s.nframes = (uint32_t)find_owner(t, frames, s.nframes, r->npython != 0);
    if (s.weight_ns)
        put_sample(t, &s);
    if (clock_of != CLOCK_BOTH || since_ns < ran_ns + since_ns / 8)
        return;
    s.weight_ns = since_ns - ran_ns;
    s.state = RP_CTF_SAMPLE_WAITED;
    put_sample(t, &s);
}

/* -------------------------------------------------------------------------- one thread */

static void keep_answer(struct thread *t)
{
    struct rp_sample_answer *a =
        t->request && !t->is_repeated ? rp_sample_request_answered(t->request) : NULL;

    if (!a)
        return;
    a->weight_ns = t->asked_weight_ns;
    a->ran_ns = t->asked_ran_ns;
    t->is_answered = true;
}

/* Returns whether there is a next one. */
static bool take_answer(struct thread *t, size_t i)
{
    struct rp_sample_known *before;
    struct rp_sample_answer *a = t->request ? rp_sample_request_kept(t->request, i, &before) : NULL;

    if (a)
        put_ran(t, &a->raw, before, a->ticks, a->weight_ns, a->ran_ns);
    return a != NULL;
}

static void take_all_answers(struct thread *t)
{
    keep_answer(t);
    for (size_t i = 0; take_answer(t, i);)
        i++;
    if (t->request)
        rp_sample_request_clear(t->request);
}

/* Takes the first answers of all threads, then the second ones, and so on, because these are of
   about the same time. */
static void take_answers(int64_t now_ns)
{
    static unsigned nkept_answers; /* of a thread, at most */
    bool more = true;

    nkept_answers += repeats ? nrepeats : 1;
    if (period_ns > OFTEN_NS && nkept_answers < nanswers / 2 && now_ns - taken_ns < PAUSE_NS)
        return;
    nkept_answers = 0;
    taken_ns = now_ns;
    for (size_t k = 0; more; k++) {
        more = false;
        for (size_t i = 0; i < nthreads; i++)
            more |= take_answer(threads[i], k);
    }
    for (size_t i = 0; i < nthreads; i++)
        if (threads[i]->request)
            rp_sample_request_clear(threads[i]->request);
}

static void sample_waiting(struct thread *t, uint64_t weight_ns)
{
    raw->has_native = true;
    rp_sample_grab(raw, t->state, t->tid);
    if (cpu_ns_of(t) != t->cpu_ns)
        raw->has_native = false; /* it has run meanwhile, so its registers are out of date */
    t->since = cap->now();
    t->gil = rp_sample_python_holder(&raw->lock);
    t->nframes = (uint32_t)rp_sample_join(raw, known, last_ns, t->frames, &t->is_cut);
    t->seen_ns = raw->npython ? last_ns : 0;
    if (raw->has_native)
        t->nframes = put_kernel(t, t->frames, t->nframes);
    t->weight_ns = weight_ns;
}

static bool is_pending(const struct thread *t)
{
    return t->request && rp_sample_request_pending(t->request);
}

/* A thread that ran all the time and answered the last request is asked again without reading its
   file, except every eighth time: if it has blocked the signal since, only one is pending. A thread
   that waits would be woken by the signal, so it must have run until almost now. */
static bool keeps_running(struct thread *t)
{
    if (rp_sample_attached || !ask || !t->is_answered || !t->is_busy || t->unlooked == 7) {
        t->unlooked = 0;
        return false;
    }
    t->unlooked++;
    return true;
}

static void sample_running(struct thread *t, uint64_t weight_ns, int64_t now_ns, bool blocks)
{
    if (is_pending(t)) {
        t->asked_weight_ns += weight_ns; /* it has had no processor since then */
        if (now_ns - t->asked_ns < CHECK_NS)
            return;
        weight_ns = t->asked_weight_ns;
        rp_sample_request_forget(t->request);
    }
    if (!t->request)
        t->request = rp_sample_request_new(nanswers);
    t->asked_weight_ns = weight_ns;
    t->asked_ran_ns = take_cpu_time(t, weight_ns);
    t->is_answered = false;
    t->asked_ns = now_ns;
    ask = ask && rp_sample_signal_usable(); /* checked right before, because the program may have
                                               taken the signal */
    if (ask && t->request && !blocks && rp_sample_request_send(t->request, t->tid, t->state))
        return;
    raw->has_native = false; /* takes Python's frames, as far as they do not change */
    rp_sample_grab(raw, t->state, t->tid);
    put_ran(t, raw, known, cap->now(), weight_ns, t->asked_ran_ns);
}

/* -------------------------------------------------------------------------- asked by the kernel */

/* The answers that have come since the last tick are kept, each with its period. */
static void forget_repeat(struct thread *t)
{
    struct rp_sample_answer *a;

    while ((a = rp_sample_request_answered(t->request))) {
        a->weight_ns = a->ran_ns = (uint64_t)period_ns;
        t->sampled_ns += period_ns;
    }
    t->is_repeated = false;
    t->is_answered = true;
    rp_sample_request_forget(t->request);
}

static void end_repeat(struct thread *t)
{
    if (!t->is_repeated)
        return;
    rp_sample_request_stop(t->request);
    forget_repeat(t);
}

static bool begin_repeat(struct thread *t, uint64_t weight_ns)
{
    if (!repeats)
        return false;
    if (!rp_sample_request_repeat(t->request, t->tid, t->state, period_ns)) {
        if (errno != ESRCH) /* the thread has just ended */
            nrepeats = 0;
        return false;
    }
    t->is_repeated = true;
    t->asked_weight_ns = weight_ns;
    t->owed_ns = -period_ns; /* the time since the last sample counts for the next one */
    return true;
}

/* The answers since the last tick share the time. False if the thread has waited or not answered,
   and is not asked any more; *weight_ns: time without an answer. */
static bool keep_repeated(struct thread *t, uint64_t *weight_ns)
{
    struct rp_sample_answer *all[RP_SAMPLE_ANSWERS], *a;
    uint64_t since_ns = *weight_ns + t->asked_weight_ns, ran_ns = take_cpu_time(t, since_ns);
    unsigned n = 0;

    while (n < RP_SAMPLE_ANSWERS && (a = rp_sample_request_answered(t->request)))
        all[n++] = a;
    t->asked_weight_ns = 0;
    t->owed_ns += (int64_t)ran_ns - n * period_ns;
    t->owed_ns = t->owed_ns > -period_ns ? t->owed_ns : -period_ns;
    t->is_busy = n && t->owed_ns < 2 * period_ns && ran_ns + since_ns / 32 >= since_ns;
    *weight_ns = t->is_busy || since_ns < ran_ns ? 0 : since_ns - ran_ns;
    for (unsigned i = 0; i < n; i++) {
        all[i]->ran_ns = ran_ns / n;
        all[i]->weight_ns = (t->is_busy ? since_ns : ran_ns) / n;
    }
    if (t->is_busy) {
        rp_sample_request_go_on(t->request, t->state, n);
        return true;
    }
    if (!n)
        t->sampled_ns -= (int64_t)ran_ns;
    end_repeat(t);
    is_calm = false;
    return false;
}

/* Decides whether the kernel may ask from the next tick on. The more often that had to be ended,
   the more calm ticks are required before the next time. */
static void set_repeats(void)
{
    enum { LEAST = 8, MOST = 1024, GOOD = 16 };
    static unsigned ngood; /* ticks while it asks */
    bool is_busy = false;

    for (size_t i = 0; i < nthreads; i++)
        is_busy |= threads[i]->is_busy && !threads[i]->is_ours;
    ask = ask && (!repeats || rp_sample_signal_usable());
    if (repeats && (!ask || !is_calm || !is_busy || !nrepeats || rp_sample_signal_taken())) {
        for (size_t i = 0; i < nthreads; i++)
            end_repeat(threads[i]);
        repeats = false;
        calm = calm < MOST ? 2 * calm : MOST;
    }
    ncalm = is_calm && is_busy ? ncalm + 1 : 0;
    if (!repeats) {
        ngood = 0;
        repeats = nrepeats && ask && own_files && ncalm >= calm && !rp_sample_signal_taken();
    } else if (++ngood % GOOD == 0 && calm > LEAST) {
        calm /= 2;
    }
}

/* Stops a running thread of another process while its stack is copied. */
static void sample_stopped(struct thread *t, uint64_t weight_ns)
{
    uint64_t ticks = cap->now();

    t->asked_weight_ns += weight_ns;
    switch (rp_sample_stop(&t->stop, t->tid, &raw->regs)) {
    case RP_SAMPLE_STOPPED:
        raw->has_native = true;
        rp_sample_grab(raw, t->state, t->tid);
        rp_sample_go(&t->stop);
        put_ran(t, raw, known, ticks, t->asked_weight_ns, take_cpu_time(t, t->asked_weight_ns));
        t->asked_weight_ns = 0;
        return;
    case RP_SAMPLE_STOPS_LATER:
        return;
    case RP_SAMPLE_CANNOT_STOP: /* it has ended, or a debugger has it */
        raw->has_native = false;
        rp_sample_grab(raw, t->state, t->tid);
        if (raw->npython)
            put_ran(t, raw, known, ticks, t->asked_weight_ns, take_cpu_time(t, t->asked_weight_ns));
        t->asked_weight_ns = 0;
    }
}

static void sample_thread(struct thread *t, uint64_t weight_ns, int64_t now_ns)
{
    int64_t cpu_ns = cpu_ns_of(t), before_ns = t->cpu_ns;
    bool runs = false, blocks = true, was_repeated = t->is_repeated;

    t->cpu_ns = cpu_ns;
    t->is_busy = false;
    if (before_ns == -1)
        t->sampled_ns = cpu_ns;
    if (cpu_ns < 0 || before_ns < 0)
        return; /* it has ended, or is new */
    if (was_repeated && (keep_repeated(t, &weight_ns) || !weight_ns))
        return;
    t->is_busy = !was_repeated && cpu_ns - before_ns >= (int64_t)(weight_ns - weight_ns / 32);
    is_calm &= t->is_busy || cpu_ns - before_ns <= (int64_t)weight_ns / 8;
    if (is_pending(t) && cpu_ns == before_ns && now_ns - t->asked_ns < CHECK_NS) {
        t->asked_weight_ns += weight_ns; /* it has had no processor since then */
        t->seen_ns = t->seen_ns ? now_ns : 0;
        is_held = true;
        return;
    }
    if (rp_sample_attached)
        look_at(t, &runs, &blocks);
    if (t->stop.is_seized) { /* it had not stopped by the previous tick */
        sample_stopped(t, weight_ns);
        return;
    }
    if (cpu_ns == before_ns && t->weight_ns && !runs) {
        t->weight_ns += weight_ns;
        t->seen_ns = t->seen_ns ? now_ns : 0;
        if (t->weight_ns >= WAIT_NS) {
            uint64_t since = cap->now();

            end_wait(t);
            t->since = since;
            t->cpu_ns = -2; /* look at it again */
        }
        return;
    }
    is_active = true;
    end_wait(t);
    if (keeps_running(t)) {
        if (!begin_repeat(t, weight_ns))
            sample_running(t, weight_ns, now_ns, false);
        return;
    }
    if (stat_tells && !rp_sample_attached)
        look_at(t, &runs, &blocks);
    if (!runs && waits_at(t, &raw->regs)) {
        if (clock_of != CLOCK_CPU)
            sample_waiting(t, weight_ns);
        return;
    }
    if (rp_sample_attached) {
        if (runs)
            sample_stopped(t, weight_ns);
        return;
    }
    if (!stat_tells)
        blocks = status_blocks(t->tid);
    sample_running(t, weight_ns, now_ns, blocks);
}

/* -------------------------------------------------------------------------- the list of threads */

static struct thread *thread_find(uint32_t tid)
{
    for (size_t i = 0; i < nthreads; i++)
        if (threads[i]->tid == tid)
            return threads[i];
    return NULL;
}

static void thread_check(struct thread *t, int64_t now_ns)
{
    char name[sizeof t->name + 1];

    t->checked_ns = now_ns;
    read_task_file(t->tid, "comm", name, sizeof name);
    char *end = strchr(name, '\n');
    if (end)
        *end = '\0';
    name[sizeof t->name - 1] = '\0';
    if (strcmp(name, t->name) != 0) {
        memcpy(t->name, name, sizeof t->name);
        t->is_named = false;
    }
    t->is_ours =
        t->tid == own_tid || (t->tid != (uint32_t)rp_sample_pid && !strcmp(t->name, "reprise"));
}

static void thread_add(uint32_t tid)
{
    if (nthreads == THREADS)
        return;
    if (nthreads == nallocated) {
        threads[nallocated] = rp_sample_pages(sizeof **threads);
        if (!threads[nallocated])
            return;
        nallocated++;
    }
    struct thread *t = threads[nthreads++];
    struct rp_sample_request *request = t->request;
    *t = (struct thread){.tid = tid,
                         .is_listed = true,
                         .stat = -1,
                         .schedstat = -1,
                         .syscall = -1,
                         .stack = -1,
                         .cpu_ns = -1,
                         .request = request};
    if (request) {
        rp_sample_request_forget(request);
        rp_sample_request_clear(request);
    }
}

static void set_state(uint32_t tid, uint64_t state)
{
    struct thread *t = thread_find(tid);

    if (t)
        t->state = state;
}

static void list_threads(int64_t now_ns)
{
    char buffer[8192], path[40];
    long n;

    listed_ns = now_ns;
    snprintf(path, sizeof path, "/proc/%d/task", (int)rp_sample_pid);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    while ((n = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0) {
        for (long at = 0; at < n;) {
            struct dirent64 *e = (struct dirent64 *)(void *)(buffer + at);
            uint32_t tid = (uint32_t)strtoul(e->d_name, NULL, 10);
            struct thread *t = tid ? thread_find(tid) : NULL;

            if (t)
                t->is_listed = true;
            else if (tid)
                thread_add(tid);
            at += e->d_reclen;
        }
    }
    close(fd);

    /* Threads that have ended make room for others. */
    for (size_t i = 0; i < nthreads;) {
        struct thread *t = threads[i];
        if (t->is_listed) {
            t->is_listed = false;
            i++;
            continue;
        }
        end_repeat(t);
        take_all_answers(t);
        end_wait(t);
        rp_sample_go(&t->stop);
        forget_files(t);
        close_kernel(t);
        threads[i] = threads[--nthreads];
        threads[nthreads] = t;
    }
    for (size_t i = 0; i < nthreads; i++) {
        threads[i]->state = 0;
        if (now_ns - threads[i]->checked_ns >= CHECK_NS)
            thread_check(threads[i], now_ns);
    }
    rp_sample_python_threads(set_state);
}

/* -------------------------------------------------------------------------- the tick */

static void look_for_modules(int64_t now_ns)
{
    unsigned before = rp_sample_generation;

    if (modules_ns && (!rp_sample_modules_stale || now_ns - modules_ns < modules_wait_ns))
        return;
    rp_sample_modules_stale = false;
    rp_sample_modules_read();
    modules_ns = now_ns;
    if (rp_sample_generation != before) {
        unsigned minor = rp_sample_python_find();
        char text[16];

        modules_wait_ns = STALE_NS;
        snprintf(text, sizeof text, "3.%u", minor);
        if (minor)
            cap->fact("sample.python", text);
    } else if (modules_wait_ns < STALE_MAX) {
        modules_wait_ns *= 2;
    }
}

/* The folder has two more links than there are threads. */
static bool threads_changed(int64_t now_ns)
{
    static nlink_t links;
    char path[40];
    struct stat st;

    if (listed_ns && now_ns - looked_ns < LOOK_NS)
        return false;
    looked_ns = now_ns;
    snprintf(path, sizeof path, "/proc/%d/task", (int)rp_sample_pid);
    if (stat(path, &st))
        st.st_nlink = 0;
    if (listed_ns && st.st_nlink == links && now_ns - listed_ns < LIST_NS)
        return false;
    links = st.st_nlink;
    return true;
}

/* The core's thread was ended and started again, so its files are lost. */
static void lose_files(void)
{
    nkept = 0;
    for (size_t i = 0; i < nthreads; i++) {
        struct thread *t = threads[i];

        t->stat = t->schedstat = t->syscall = t->stack = -1;
        t->kernel = NULL;
        if (t->is_repeated)
            forget_repeat(t);
    }
    rp_sample_signal_forget();
}

static void sample_tick(void);

/* A thread that was asked while it waits for a processor answers as soon as it has one. If there is
   nothing else to see, the next ticks come later. */
static void set_pause(void)
{
    bool is_late = is_held && !is_active && pause_ns <= 4 * period_ns;
    int64_t next_ns = is_late ? 2 * pause_ns : period_ns;

    if (next_ns > 4 * period_ns || next_ns > PAUSE_NS)
        next_ns = pause_ns;
    for (size_t i = 0; i < nthreads && repeats; i++)
        if (threads[i]->is_repeated)
            next_ns = nrepeats * period_ns;
    if (next_ns != pause_ns)
        cap->every(next_ns, sample_tick);
    pause_ns = next_ns;
}

static void sample_tick(void)
{
    static _Thread_local bool is_begun __attribute__((tls_model("initial-exec")));

    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t now_ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;

    if (!cap->active()) {
        for (size_t i = 0; i < nthreads; i++) {
            end_repeat(threads[i]);
            take_all_answers(threads[i]);
            end_wait(threads[i]);
        }
        repeats = false;
        last_ns = 0;
        return;
    }
    if (!is_begun) {
        lose_files();
        own_tid = (uint32_t)syscall(SYS_gettid);
        look_at_self();
        is_begun = true;
    }
    look_for_modules(now_ns);
    if (threads_changed(now_ns)) {
        list_threads(now_ns);

        /* Reports the time that the handlers have taken since the last time. */
        static uint64_t told, in_a_millisecond;
        uint64_t spent = rp_sample_signal_spent();
        if (!in_a_millisecond)
            in_a_millisecond = cap->ticks(1000000);
        if (in_a_millisecond)
            cap->spent((spent - told) * 1000000 / in_a_millisecond);
        told = spent;
    }
    int64_t weight_ns = last_ns && now_ns - last_ns < GAP_NS ? now_ns - last_ns : period_ns;
    last_ns = now_ns;
    for (size_t i = 0; i < nthreads; i++)
        keep_answer(threads[i]);
    if (!repeats)
        take_answers(now_ns);
    is_held = is_active = false;
    is_calm = true;
    for (size_t i = 0; i < nthreads; i++)
        if (!threads[i]->is_ours)
            sample_thread(threads[i], (uint64_t)weight_ns, now_ns);
    if (repeats) /* answers that were just taken still need their places, so there is no room for as
                    many again */
        take_answers(now_ns);
    set_repeats();
    set_pause();
}

/* -------------------------------------------------------------------------- beginning and end */

static void sample_exit(void)
{
    char text[64];

    lose_files(); /* these numbers belonged to another thread; here they may be files of the program
                   */
    own_files = false;
    for (size_t i = 0; i < nthreads; i++) {
        take_all_answers(threads[i]);
        end_wait(threads[i]);
    }
    snprintf(text, sizeof text, "%llu", (unsigned long long)ntaken);
    cap->fact("sample.count", text);
    snprintf(text, sizeof text, "%llu", (unsigned long long)rp_sample_signal_spent());
    cap->fact("sample.handler_ticks", text);
    snprintf(text, sizeof text, "%llu", (unsigned long long)rp_sample_stopped_ns());
    if (rp_sample_attached)
        cap->fact("sample.stopped_ns", text);
    nthreads = 0;
}

static bool can_read_memory(void)
{
    uint64_t wanted = UINT64_C(0x1234567), got = 0;

    return rp_sample_read((uint64_t)(uintptr_t)&wanted, &got, sizeof got) == sizeof got &&
           got == wanted;
}

static void sample_open(void)
{
    if (cap->sealed()) /* a child in a sandbox */
        return;
    if (!rp_sample_attached)
        rp_sample_pid = getpid();
    nthreads = nkept = 0; /* the child has another thread, which has none of the files */
    own_tid = 0;
    repeats = false;
    rp_sample_signal_forget();
    last_ns = listed_ns = 0;
    ntaken = 0;
    cap->source("sample", NULL, sample_exit);
    pause_ns = period_ns;
    cap->every(period_ns, sample_tick);
    cap->fact("source", "sample"); /* the first event starts the ticks */
}

__attribute__((constructor)) static void sample_load(void)
{
    cap = rp_capture_get();
    if (!cap)
        return;
    const char *hz = cap->option("sample.hz");
    const char *clock = cap->option("sample.clock");
    const char *signals = cap->option("sample.signals");
    const char *pid = cap->option("pid");
    long rate = hz ? strtol(hz, NULL, 10) : HZ;
    period_ns = 1000000000 / (rate > 0 ? rate : HZ);
    clock_of = clock && !strcmp(clock, "cpu")    ? CLOCK_CPU
               : clock && !strcmp(clock, "wall") ? CLOCK_WALL
                                                 : CLOCK_BOTH;
    rp_sample_pid = getpid();
    raw = rp_sample_pages(sizeof *raw);
    known = rp_sample_pages(sizeof *known);
    if (!raw || !known || !can_read_memory()) {
        cap->warn("cannot sample: process_vm_readv is not permitted");
        return;
    }
    if (pid) {
        rp_sample_attached = true;
        rp_sample_pid = (pid_t)strtol(pid, NULL, 10);
        sample_open();
        return;
    }
    ask = (!signals || strcmp(signals, "off") != 0) && rp_sample_signal_init();
    nrepeats = (unsigned)(REPEAT_NS / period_ns);
    nanswers = period_ns > OFTEN_NS ? RP_SAMPLE_ANSWERS / 2 : RP_SAMPLE_ANSWERS;
    nrepeats = nrepeats < nanswers / 2 ? nrepeats : nanswers / 2;
    nrepeats = nrepeats > 1 ? nrepeats : 0;
    pthread_atfork(NULL, NULL, sample_open);
    sample_open();
}

/* The process that observes another one has no other library that ends the recording. */
__attribute__((destructor)) static void sample_unload(void)
{
    if (rp_sample_attached)
        rp_capture_close();
}
