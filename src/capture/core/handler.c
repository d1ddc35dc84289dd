/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether this thread is in a signal handler. The helper thread cannot be started from one: that
 * allocates, and the handler may have come in the middle of an allocation. The kernel leaves no
 * word about it, but a trace: a handler returns to the function that ends it, whose address stands
 * on the stack. The callers' part of the stack is searched for it, read by a system call so that
 * its end is no trap. A stale copy of the address only puts the helper off to a later event.
 */
#include "capture/core/state.h"

#include <signal.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define SIGNALS     64
#define STACK_BYTES (1u << 20) /* as far as is looked */
#define PIECE_WORDS 512
#define FRAME_BYTES 256 /* of a handler's frame that are looked at */
#define VDSO_BYTES  8192

struct kernel_action { /* as the kernel has it; more than it needs */
    uintptr_t handler, flags, restorer, more[5];
};

struct range {
    uintptr_t from, to;
};

/* Where handlers return to; empty where there are none. */
static struct range find_return(void)
{
    for (int i = 1; i <= SIGNALS; i++) {
        struct kernel_action action = {0};

        if (syscall(SYS_rt_sigaction, i, NULL, &action, SIGNALS / 8) ||
            action.handler == (uintptr_t)SIG_DFL || action.handler == (uintptr_t)SIG_IGN)
            continue;
#if defined(__x86_64__)
        return (struct range){action.restorer, action.restorer + 1};
#else /* into the kernel's own page of code */
        uintptr_t page = (uintptr_t)getauxval(AT_SYSINFO_EHDR);

        return (struct range){page, page + VDSO_BYTES};
#endif
    }
    return (struct range){0, 0};
}

/* Whether a return address begins what the kernel put there. On x86_64 the registers follow, among
   them the flags, of which one bit is always set, and the code segment of programs: a stale copy of
   the address, as libc leaves one when a handler is installed, has other neighbours. */
static bool is_frame(const uintptr_t *at, size_t nwords)
{
#if defined(__x86_64__)
    enum { FLAGS = 23, SEGMENT = 24, USER_SEGMENT = 0x33 };

    return nwords > SEGMENT && (at[FLAGS] & 2) && at[FLAGS] < 1 << 22 &&
           (at[SEGMENT] & 0xffff) == USER_SEGMENT;
#else
    (void)at;
    return nwords > 0;
#endif
}

/* From there on, towards the first caller. 1: a handler's frame is there, 0: none, -1: the stack
   cannot be read. */
static int search_stack(const char *at, struct range wanted)
{
    uintptr_t words[PIECE_WORDS];
    const char *end = at + STACK_BYTES;
    bool read_any = false;

    while (at < end) {
        struct iovec to = {words, sizeof words}, from = {(void *)(uintptr_t)at, sizeof words};
        ssize_t n = syscall(SYS_process_vm_readv, getpid(), &to, 1, &from, 1, 0);
        size_t count = n > 0 ? (size_t)n / sizeof *words : 0;

        for (size_t i = 0; i < count; i++)
            if (words[i] >= wanted.from && words[i] < wanted.to && is_frame(&words[i], count - i))
                return 1;
        if (count < PIECE_WORDS)
            return count || read_any ? 0 : -1;
        read_any = true;
        at += sizeof words - FRAME_BYTES; /* one that is cut is seen whole the next time */
    }
    return 0;
}

__attribute__((noinline)) bool rp_core_in_handler(void)
{
    struct range wanted = find_return();
    sigset_t blocked;
    stack_t other;
    int found;

    if (wanted.from == wanted.to)
        return false;
    if (!sigaltstack(NULL, &other) && (other.ss_flags & SS_ONSTACK))
        return true;
    found = search_stack(__builtin_frame_address(0), wanted);
    if (found >= 0)
        return found;
    /* nobody may look: a handler's own signal waits meanwhile */
    return !pthread_sigmask(SIG_BLOCK, NULL, &blocked) && !sigisemptyset(&blocked);
}
