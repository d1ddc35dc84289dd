/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs work on a stack of its own, because the program's may be one of the smallest that a thread
 * can have, or that of a signal handler; names of files alone take some pages.
 */
#include "capture/core/state.h"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#define ASIDE_BYTES (64 << 10)

/* These exist in programs with a sanitizer that follows stacks: address, thread, memory. */
extern void __asan_init(void) __attribute__((weak)); /* NOLINT: their names */
extern void __tsan_init(void) __attribute__((weak)); /* NOLINT */
extern void __msan_init(void) __attribute__((weak)); /* NOLINT */

struct errand {
    void (*run)(void *of);
    void *of;
    ucontext_t there, back;
};

/* makecontext passes only integers. */
static void begin(unsigned high, unsigned low)
{
    struct errand *e = (struct errand *)((uintptr_t)high << 32 | low);

    e->run(e->of);
}

/* Needs system calls. Without memory, the work is done on the caller's stack; also with a
   sanitizer, which warns of other stacks and has large ones of its own. Cancellation is disabled,
   because a thread that is cancelled in the middle would leave a file that its stream does not
   know. */
void rp_core_aside(void (*run)(void *of), void *of)
{
    struct errand *e = mmap(NULL, ASIDE_BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uintptr_t at = (uintptr_t)e;
    int before;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    if (e == MAP_FAILED || __asan_init || __tsan_init || __msan_init || getcontext(&e->there)) {
        run(of);
    } else {
        e->run = run;
        e->of = of;
        e->there.uc_link = &e->back;
        e->there.uc_stack.ss_sp = e + 1;
        e->there.uc_stack.ss_size = ASIDE_BYTES - sizeof *e;
        makecontext(&e->there, (void (*)(void))begin, 2, (unsigned)(at >> 32), (unsigned)at);
        swapcontext(&e->back, &e->there);
    }
    if (e != MAP_FAILED)
        munmap(e, ASIDE_BYTES);
    pthread_setcancelstate(before, NULL);
}
