/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds whether this thread is in a signal handler. The helper thread must not be started from one,
 * because that allocates memory and the handler may have interrupted an allocation. The kernel has
 * no query for it, but a handler returns to a known function (the restorer), whose address is then
 * on the stack. The callers' part of the stack is searched for it; a system call reads it, so that
 * the end of the stack causes no fault. A stale copy of the address only delays the helper to a
 * later event.
 */
#include "capture/core/state.h"

#include <signal.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define SIGNALS     64
#define STACK_BYTES (1u << 20) /* searched at most */
#define PIECE_WORDS 512
#define FRAME_BYTES 256 /* bytes of a handler's frame that are checked */
#define VDSO_BYTES  8192

struct kernel_action { /* the kernel's layout, with room to spare */
    uintptr_t handler, flags, restorer, more[5];
};

struct range {
    uintptr_t from, to;
};

/* The return addresses of handlers; empty if no handler is installed. */
static struct range handler_return(void)
{
    for (int i = 1; i <= SIGNALS; i++) {
        struct kernel_action action = {0};

        if (syscall(SYS_rt_sigaction, i, NULL, &action, SIGNALS / 8) ||
            action.handler == (uintptr_t)SIG_DFL || action.handler == (uintptr_t)SIG_IGN)
            continue;
#if defined(__x86_64__)
        return (struct range){action.restorer, action.restorer + 1};
#else /* into the vDSO */
        uintptr_t page = (uintptr_t)getauxval(AT_SYSINFO_EHDR);

        return (struct range){page, page + VDSO_BYTES};
#endif
    }
    return (struct range){0, 0};
}

/* Whether a signal frame begins at a return address. On x86_64 the saved registers follow, among
   them the flags, one bit of which is always set, and the user code segment. A stale copy of the
   address, such as libc leaves when it installs a handler, is not followed by these. */
static bool is_signal_frame(const uintptr_t *at, size_t nwords)
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

/* Searches the stack from `at` towards the first caller. 1: a handler's frame was found, 0: none,
   -1: the stack cannot be read. */
static int stack_search(const char *at, struct range wanted)
{
    uintptr_t words[PIECE_WORDS];
    const char *end = at + STACK_BYTES;
    bool read_any = false;

    while (at < end) {
        struct iovec to = {words, sizeof words}, from = {(void *)(uintptr_t)at, sizeof words};
        ssize_t n = syscall(SYS_process_vm_readv, getpid(), &to, 1, &from, 1, 0);
        size_t count = n > 0 ? (size_t)n / sizeof *words : 0;

        for (size_t i = 0; i < count; i++)
            if (words[i] >= wanted.from && words[i] < wanted.to &&
                is_signal_frame(&words[i], count - i))
                return 1;
        if (count < PIECE_WORDS)
            return count || read_any ? 0 : -1;
        read_any = true;
        at += sizeof words - FRAME_BYTES; /* blocks overlap, so that no frame is cut at a border */
    }
    return 0;
}

__attribute__((noinline)) bool rp_core_in_handler(void)
{
    struct range wanted = handler_return();
    sigset_t blocked;
    stack_t other;

    if (wanted.from == wanted.to)
        return false;
    if (!sigaltstack(NULL, &other) && (other.ss_flags & SS_ONSTACK))
        return true;
    int found = stack_search(__builtin_frame_address(0), wanted);
    if (found >= 0)
        return found;
    /* the stack is unreadable: assume a handler if a signal is blocked, which a handler's own
       signal would be */
    return !pthread_sigmask(SIG_BLOCK, NULL, &blocked) && !sigisemptyset(&blocked);
}
