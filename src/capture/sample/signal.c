/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that runs copies its own stack, because only it knows its registers: a signal asks it
 * to. The handler copies; it neither unwinds nor allocates, and takes no lock. The signal is one
 * that programs ignore unless they say otherwise (SIGURG), so that it harms nothing if the program
 * resets the handlers of signals. A program that has a handler of its own for it keeps that, and no
 * thread is asked.
 */
#include "capture/sample/sample.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define ASK SIGURG

enum { IDLE, ASKED, BUSY, ANSWERED };

struct rp_sample_request {
    _Atomic uint32_t phase;
    uint32_t tid;
    uint64_t state, magic;
    size_t n; /* answers that are kept; the next one is written after them */
    struct rp_sample_known known;
    struct rp_sample_answer at[RP_SAMPLE_ANSWERS];
};

static const struct rp_capture *cap;
static _Atomic uint64_t spent, usual; /* ticks: of all calls of the handler, of the last one */
static uint64_t interrupted;          /* a call that takes longer had no processor meanwhile */
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

/* Processor time by the clock of the trace: of calls that were interrupted the usual time. */
static void count_spent(uint64_t ticks)
{
    if (ticks < interrupted)
        atomic_store(&usual, ticks);
    else
        ticks = atomic_load(&usual);
    atomic_fetch_add(&spent, ticks);
}

static void on_ask(int number, siginfo_t *info, void *context)
{
    struct rp_sample_request *q = info->si_code == SI_QUEUE ? info->si_value.sival_ptr : NULL;
    struct rp_sample_answer *to;
    uint32_t asked = ASKED;
    uint64_t began = cap->now();
    int saved = errno;

    (void)number;
    if (cap->sealed() || info->si_pid != rp_sample_pid || !q || q->magic != MAGIC ||
        !atomic_compare_exchange_strong(&q->phase, &asked, BUSY))
        return;
    to = &q->at[q->n];
    copy_registers(&to->raw.regs, context);
    to->raw.has_native = true;
    to->ticks = began;
    rp_sample_grab(&to->raw, q->state, q->tid);
    count_spent(cap->now() - began);
    atomic_store(&q->phase, ANSWERED);
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

struct rp_sample_request *rp_sample_request_new(void)
{
    struct rp_sample_request *q = rp_sample_pages(sizeof *q);

    if (q)
        q->magic = MAGIC;
    return q;
}

bool rp_sample_request_send(struct rp_sample_request *q, uint32_t tid, uint64_t state)
{
    siginfo_t info;

    if (q->n == RP_SAMPLE_ANSWERS)
        return false;
    q->at[q->n].raw.copy.enough = q->known.enough;
    q->tid = tid;
    q->state = state;
    atomic_store(&q->phase, ASKED);
    memset(&info, 0, sizeof info);
    info.si_signo = ASK;
    info.si_code = SI_QUEUE;
    info.si_pid = rp_sample_pid;
    info.si_value.sival_ptr = q;
    if (!syscall(SYS_rt_tgsigqueueinfo, rp_sample_pid, tid, ASK, &info))
        return true;
    atomic_store(&q->phase, IDLE);
    return false;
}

struct rp_sample_answer *rp_sample_request_answered(struct rp_sample_request *q)
{
    if (atomic_load(&q->phase) != ANSWERED)
        return NULL;
    atomic_store(&q->phase, IDLE);
    return &q->at[q->n++];
}

struct rp_sample_answer *rp_sample_request_kept(struct rp_sample_request *q, size_t i,
                                                struct rp_sample_known **known)
{
    *known = &q->known;
    return i < q->n ? &q->at[i] : NULL;
}

void rp_sample_request_clear(struct rp_sample_request *q)
{
    q->n = 0;
}

bool rp_sample_request_pending(const struct rp_sample_request *q)
{
    uint32_t phase = atomic_load(&q->phase);

    return phase == ASKED || phase == BUSY;
}

void rp_sample_request_forget(struct rp_sample_request *q)
{
    atomic_store(&q->phase, IDLE);
}

uint64_t rp_sample_signal_spent(void)
{
    return atomic_load(&spent);
}
