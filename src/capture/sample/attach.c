/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread of another process is stopped for the time that copying its stack takes, some tens of
 * microseconds: it is seized, interrupted and released again (ptrace), so that between two samples
 * nobody traces it, and its signals, debuggers and children are not affected. A signal that arrives
 * during the stop is passed on. If this process ends, the kernel releases the threads that it had
 * stopped.
 */
#include "capture/sample/sample.h"

#include <elf.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#define PATIENCE_NS INT64_C(2000000) /* a thread may be in the kernel where it cannot stop */

bool rp_sample_attached;
static uint64_t stopped_ns;

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* `ptrace` wants a number as a pointer in its last argument. */
static void *word(uintptr_t v)
{
    return (void *)v; // NOLINT(performance-no-int-to-ptr)
}

static bool take_registers(pid_t tid, struct rp_sample_regs *to)
{
    struct user_regs_struct from;
    struct iovec all = {&from, sizeof from};

    if (ptrace(PTRACE_GETREGSET, tid, word(NT_PRSTATUS), &all) || all.iov_len != sizeof from)
        return false; /* a program of 32 bits has fewer */
#if defined(__x86_64__)
    uint64_t all_of_them[RP_SAMPLE_REGS] = {
        from.rax, from.rdx, from.rcx, from.rbx, from.rsi, from.rdi, from.rbp, from.rsp, from.r8,
        from.r9,  from.r10, from.r11, from.r12, from.r13, from.r14, from.r15, from.rip};

    memcpy(to->at, all_of_them, sizeof all_of_them);
#else
    memcpy(to->at, from.regs, sizeof from.regs);
    to->at[RP_SAMPLE_SP] = from.sp;
    to->at[RP_SAMPLE_PC] = from.pc;
#endif
    to->known = (UINT64_C(1) << RP_SAMPLE_REGS) - 1;
    return true;
}

/* Whether the thread has stopped; *gone: it has ended. */
static bool has_stopped(struct rp_sample_stop *s, bool *gone)
{
    int status = 0;
    pid_t done = waitpid((pid_t)s->tid, &status, __WALL | WNOHANG);

    *gone = done < 0 || (done > 0 && !WIFSTOPPED(status));
    if (done <= 0 || *gone)
        return false;
    /* a stop by the interrupt, or of the whole group, is an event; otherwise a signal is on its
       way */
    s->signal = status >> 16 ? 0 : WSTOPSIG(status);
    return true;
}

enum rp_sample_stopped rp_sample_stop(struct rp_sample_stop *s, uint32_t tid,
                                      struct rp_sample_regs *regs)
{
    static const struct timespec pause = {.tv_nsec = 10000};
    bool gone = false, stopped = false;

    if (!s->is_seized) {
        prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* of this thread only */
        if (ptrace(PTRACE_SEIZE, (pid_t)tid, NULL, NULL))
            return RP_SAMPLE_CANNOT_STOP;
        *s = (struct rp_sample_stop){.tid = tid, .is_seized = true};
        if (ptrace(PTRACE_INTERRUPT, (pid_t)tid, NULL, NULL)) {
            rp_sample_go(s);
            return RP_SAMPLE_CANNOT_STOP;
        }
    }
    for (int64_t until = now_ns() + PATIENCE_NS; !stopped && !gone;) {
        int64_t now = now_ns();

        stopped = has_stopped(s, &gone);
        if (stopped || gone)
            break;
        if (now > until)
            return RP_SAMPLE_STOPS_LATER;
        s->since_ns = now;
        nanosleep(&pause,
                  NULL); /* a thread that sleeps gets a processor sooner than one that polls */
    }
    if (stopped && take_registers((pid_t)tid, regs))
        return RP_SAMPLE_STOPPED;
    rp_sample_go(s);
    return RP_SAMPLE_CANNOT_STOP;
}

void rp_sample_go(struct rp_sample_stop *s)
{
    if (!s->is_seized)
        return;
    ptrace(PTRACE_DETACH, (pid_t)s->tid, NULL, word((uintptr_t)s->signal));
    if (s->since_ns)
        stopped_ns += (uint64_t)(now_ns() - s->since_ns);
    s->is_seized = false;
}

uint64_t rp_sample_stopped_ns(void)
{
    return stopped_ns;
}
