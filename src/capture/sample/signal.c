/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal asks a running thread to copy its own stack, because only it knows its registers. The
 * handler copies; it neither unwinds nor allocates, and takes no lock. The signal is one that
 * programs ignore unless they say otherwise (SIGURG), so it does no harm if the program resets the
 * handlers of signals. A program that has a handler of its own for it keeps that, and no thread is
 * asked.
 *
 * A thread that never pauses need not be asked each time: if permitted, the kernel sends it the
 * signal whenever it has used so much CPU time (perf_event_open), and the recorder wakes up once
 * for several answers. No such event may remain when the program takes the signal, so its calls of
 * sigaction and signal pass through here.
 */
#include "capture/sample/sample.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define ASK    SIGURG
#define EVENTS 1024 /* numbers of their files */
#define EXPORT __attribute__((visibility("default")))

enum { IDLE, ASKED, BUSY, ANSWERED, REPEATED };

struct rp_sample_request {
    _Atomic uint32_t phase;
    uint32_t tid;
    int event; /* -1: none */
    uint64_t magic;
    _Atomic uint64_t state;
    _Atomic size_t enough;
    /* answers: numbers of all that were written, and of those that are no longer kept */
    _Atomic uint32_t written, cleared;
    uint32_t told,
        size; /* told: number of those that were returned; size: the most that are kept */
    struct rp_sample_known known;
    struct rp_sample_answer at[RP_SAMPLE_ANSWERS];
};

static const struct rp_capture *cap;
static _Atomic uint64_t spent, usual; /* in ticks: all calls of the handler; the last one */
static uint64_t interrupted; /* longer calls were interrupted and had no processor meanwhile */
static struct rp_sample_request *_Atomic by_event[EVENTS]; /* indexed by the number of its file */
static _Atomic uint32_t nasking; /* number of events, and of requests that are being sent */
static _Atomic bool is_taken;    /* the program has the signal, or is about to */
#define MAGIC UINT64_C(0x7265707269736571)

static void copy_registers(struct rp_sample_regs *to, const ucontext_t *from)
{
#if defined(__x86_64__)
    static const uint8_t order[RP_SAMPLE_REGS] = {
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
        REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

    for (unsigned i = 0; i < RP_SAMPLE_REGS; i++)
        to->at[i] = (uint64_t)from->uc_mcontext.gregs[order[i]];
#else
    for (unsigned i = 0; i < 31; i++)
        to->at[i] = from->uc_mcontext.regs[i];
    to->at[RP_SAMPLE_SP] = from->uc_mcontext.sp;
    to->at[RP_SAMPLE_PC] = from->uc_mcontext.pc;
#endif
    to->known = (UINT64_C(1) << RP_SAMPLE_REGS) - 1;
}

/* Finds the request to which the signal belongs, and begins it; NULL if there is none. */
static struct rp_sample_request *begin_answer(const siginfo_t *info)
{
    struct rp_sample_request *q = NULL;
    uint32_t asked = ASKED;

    if (info->si_code == SI_QUEUE && info->si_pid == rp_sample_pid) {
        q = info->si_value.sival_ptr;
        return q && q->magic == MAGIC && atomic_compare_exchange_strong(&q->phase, &asked, BUSY)
                   ? q
                   : NULL;
    }
    if ((info->si_code == POLL_IN || info->si_code == POLL_HUP) && info->si_fd >= 0 &&
        info->si_fd < EVENTS)
        q = atomic_load(&by_event[info->si_fd]);
    return q && atomic_load(&q->phase) == REPEATED && q->tid == (uint32_t)syscall(SYS_gettid)
               ? q
               : NULL;
}

static void on_ask(int number, siginfo_t *info, void *context)
{
    uint64_t began = cap->now();
    int saved = errno;
    struct rp_sample_request *q = cap->sealed() ? NULL : begin_answer(info);
    uint32_t n = q ? atomic_load(&q->written) : 0, busy = BUSY;

    (void)number;
    if (!q || n - atomic_load(&q->cleared) == q->size)
        return;
    struct rp_sample_answer *to = &q->at[n % q->size];
    copy_registers(&to->raw.regs, context);
    to->raw.has_native = true;
    to->raw.copy.enough = atomic_load(&q->enough);
    to->ticks = began;
    rp_sample_grab(&to->raw, atomic_load(&q->state), q->tid);

    /* Counts processor time by the clock of the trace; for calls that were interrupted, the usual
       time. */
    uint64_t ticks = cap->now() - began;
    if (ticks < interrupted)
        atomic_store(&usual, ticks);
    else
        ticks = atomic_load(&usual);
    atomic_fetch_add(&spent, ticks);
    atomic_store(&q->written, n + 1);
    atomic_compare_exchange_strong(&q->phase, &busy, ANSWERED);
    errno = saved;
}

bool rp_sample_signal_init(void)
{
    struct sigaction old,
        ours = {.sa_sigaction = on_ask, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};

    cap = rp_capture_get();
    interrupted = cap->ticks(50000);
    if (sigaction(ASK, NULL, &old) || old.sa_handler != SIG_DFL)
        return rp_sample_signal_usable();
    return !sigaction(ASK, &ours, NULL);
}

bool rp_sample_signal_usable(void)
{
    struct sigaction now;

    return !sigaction(ASK, NULL, &now) && now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_ask;
}

struct rp_sample_request *rp_sample_request_new(uint32_t answers)
{
    struct rp_sample_request *q = rp_sample_pages(sizeof *q);

    if (q) {
        q->magic = MAGIC;
        q->event = -1;
        q->size = answers;
    }
    return q;
}

bool rp_sample_request_send(struct rp_sample_request *q, uint32_t tid, uint64_t state)
{
    siginfo_t info;
    bool is_sent;

    if (atomic_load(&q->written) - atomic_load(&q->cleared) == q->size)
        return false;
    if (atomic_load(&q->cleared) == q->told && q->told == atomic_load(&q->written)) {
        q->told = 0; /* starts again with the first ones, which are in the caches */
        atomic_store(&q->written, 0);
        atomic_store(&q->cleared, 0);
    }
    rp_sample_request_go_on(q, state, 0);
    q->tid = tid;
    atomic_store(&q->phase, ASKED);
    memset(&info, 0, sizeof info);
    info.si_signo = ASK;
    info.si_code = SI_QUEUE;
    info.si_pid = rp_sample_pid;
    info.si_value.sival_ptr = q;
    atomic_fetch_add(&nasking, 1);
    is_sent =
        !atomic_load(&is_taken) && !syscall(SYS_rt_tgsigqueueinfo, rp_sample_pid, tid, ASK, &info);
    atomic_fetch_sub(&nasking, 1);
    if (!is_sent)
        atomic_store(&q->phase, IDLE);
    return is_sent;
}

struct rp_sample_answer *rp_sample_request_answered(struct rp_sample_request *q)
{
    if (q->told == atomic_load(&q->written))
        return NULL;
    return &q->at[q->told++ % q->size];
}

struct rp_sample_answer *rp_sample_request_kept(struct rp_sample_request *q, size_t i,
                                                struct rp_sample_known **known)
{
    uint32_t first = atomic_load(&q->cleared);

    *known = &q->known;
    return i < q->told - first ? &q->at[(first + i) % q->size] : NULL;
}

void rp_sample_request_clear(struct rp_sample_request *q)
{
    atomic_store(&q->cleared, q->told);
}

bool rp_sample_request_pending(const struct rp_sample_request *q)
{
    uint32_t phase = atomic_load(&q->phase);

    return phase == ASKED || phase == BUSY;
}

void rp_sample_request_forget(struct rp_sample_request *q)
{
    atomic_store(&q->phase, IDLE);
    q->event = -1;
}

void rp_sample_signal_forget(void)
{
    atomic_store(&nasking, 0);
}

uint64_t rp_sample_signal_spent(void)
{
    return atomic_load(&spent);
}

/* -------------------------------------------------------------------------- asked by the kernel */

/* Opens it with the time in the kernel, if that is permitted, else without. */
static long open_event(uint32_t tid, int64_t period_ns)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_SW_TASK_CLOCK,
        .sample_period = (uint64_t)period_ns,
        .disabled = 1,
        .exclude_hv = 1,
        .wakeup_events = 1,
    };
    long fd;

    do {
        fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, (unsigned long)PERF_FLAG_FD_CLOEXEC);
    } while (fd < 0 && errno == EACCES && !attr.exclude_kernel && (attr.exclude_kernel = 1));
    return fd;
}

bool rp_sample_request_repeat(struct rp_sample_request *q, uint32_t tid, uint64_t state,
                              int64_t period_ns)
{
    struct f_owner_ex owner = {F_OWNER_TID, (pid_t)tid};

    atomic_fetch_add(&nasking, 1);
    errno = EPERM;
    int fd = atomic_load(&is_taken) ? -1 : (int)open_event(tid, period_ns);
    if (fd < 0 || fd >= EVENTS || fcntl(fd, F_SETSIG, ASK) || fcntl(fd, F_SETOWN_EX, &owner) ||
        fcntl(fd, F_SETFL, O_ASYNC)) {
        if (fd >= 0)
            close(fd);
        atomic_fetch_sub(&nasking, 1);
        return false;
    }
    q->tid = tid;
    q->event = fd;
    atomic_store(&by_event[fd], q);
    atomic_store(&q->phase, REPEATED);
    rp_sample_request_go_on(q, state,
                            q->size); /* after so many it ends, unless the recorder continues it */
    return true;
}

void rp_sample_request_go_on(struct rp_sample_request *q, uint64_t state, unsigned n)
{
    atomic_store(&q->state, state);
    atomic_store(&q->enough, q->known.enough);
    if (n && q->event >= 0)
        ioctl(q->event, PERF_EVENT_IOC_REFRESH, n);
}

void rp_sample_request_stop(struct rp_sample_request *q)
{
    if (q->event < 0)
        return;
    close(q->event);
    atomic_store(&by_event[q->event], NULL);
    atomic_store(&q->phase, IDLE);
    atomic_fetch_sub(&nasking, 1);
    q->event = -1;
}

/* -------------------------------------------------------------------------- the program's calls */

/* Waits until no thread is asked: the recorder ends the events when it wakes up next. */
static void give_up_signal(void)
{
    static const struct timespec pause = {.tv_nsec = 1000000};

    atomic_store(&is_taken, true);
    for (unsigned ms = 0; ms < 1000 && atomic_load(&nasking); ms++)
        syscall(SYS_nanosleep, &pause, NULL);
}

bool rp_sample_signal_taken(void)
{
    return atomic_load(&is_taken);
}

EXPORT int sigaction(int number, const struct sigaction *act, struct sigaction *old)
{
    static int (*_Atomic next)(int, const struct sigaction *, struct sigaction *);

    if (!atomic_load(&next))
        atomic_store(&next, (int (*)(int, const struct sigaction *, struct sigaction *))dlsym(
                                RTLD_NEXT, "sigaction"));
    if (number == ASK && act && act->sa_sigaction != on_ask)
        give_up_signal();
    return atomic_load(&next)(number, act, old);
}

EXPORT sighandler_t signal(int number, sighandler_t handler)
{
    static sighandler_t (*_Atomic next)(int, sighandler_t);

    if (!atomic_load(&next))
        atomic_store(&next, (sighandler_t(*)(int, sighandler_t))dlsym(RTLD_NEXT, "signal"));
    if (number == ASK)
        give_up_signal();
    return atomic_load(&next)(number, handler);
}
