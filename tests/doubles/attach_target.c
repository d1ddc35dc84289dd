/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach_target HOW THREADS: a program that `record --pid` attaches to. Its threads allocate, free
 * and compute in a loop; every round has the same result, to the bit, and no call ends with EINTR.
 * HOW: what the main thread does meanwhile: `alloc` the same as the others, `join` waits for them,
 * `epoll` waits without an end (its loop is woken by a thread), `signals` as alloc, with a handler
 * that allocates, `pipe` writes and reads; `sandbox`: enters a seccomp filter first, `private`: is
 * not dumpable. Its main thread is named as $ATTACH_TARGET_NAME says. Ends at the end of its
 * standard input; prints the number of rounds that were wrong.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <unistd.h>

#include "../../include/reprise/record.h"

#define BLOCKS 64
#define MOST   64 /* threads */

static atomic_bool ended;
static atomic_ulong rounds, wrong;
static int event;

static uint64_t one_round(uint64_t seed)
{
    void *blocks[BLOCKS] = {NULL};
    double sums[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    uint64_t hash = seed, bits;

    RP_RANGE_BEGIN("step");
    for (int i = 0; i < 2000; i++) {
        hash = hash * 6364136223846793005u + 1442695040888963407u;
        size_t k = hash >> 58, size = 16 + (hash >> 40 & 8191);
        free(blocks[k]);
        blocks[k] = malloc(size);
        memset(blocks[k], (int)(hash & 255), size);
        hash ^= ((unsigned char *)blocks[k])[size - 1];
        for (int j = 0; j < 8; j++) /* vector registers */
            sums[j] = sums[j] * 0.999 + (double)(hash >> 32) * 1e-3;
    }
    for (int k = 0; k < BLOCKS; k++)
        free(blocks[k]);
    for (int j = 0; j < 8; j++) {
        memcpy(&bits, &sums[j], 8);
        hash = (hash ^ bits) * 1099511628211u;
    }
    RP_RANGE_END();
    return hash;
}

static void *work(void *seed)
{
    uint64_t first = one_round((uintptr_t)seed);

    while (!ended) {
        wrong += one_round((uintptr_t)seed) != first;
        rounds++;
    }
    return NULL;
}

static void *wake(void *unused)
{
    (void)unused;
    while (!ended) {
        usleep(20000);
        wrong += write(event, &(uint64_t){1}, 8) != 8;
    }
    return NULL;
}

static void *read_end(void *unused)
{
    char c;

    (void)unused;
    while (read(STDIN_FILENO, &c, 1) > 0)
        ;
    ended = true;
    return NULL;
}

static void wait_events(void)
{
    struct epoll_event e = {.events = EPOLLIN};
    int ep = epoll_create1(0);
    uint64_t n;

    epoll_ctl(ep, EPOLL_CTL_ADD, event, &e);
    while (!ended) {
        wrong += epoll_wait(ep, &e, 1, 10000) != 1;
        wrong += read(event, &n, 8) != 8;
        rounds++;
    }
}

static void use_pipe(void)
{
    char text[4096] = "", back[4096];
    int ends[2];

    for (uint64_t i = 0; !ended && !pipe(ends); i++) {
        memset(text, (int)(i & 127), sizeof text);
        wrong += write(ends[1], text, sizeof text) != sizeof text;
        wrong += read(ends[0], back, sizeof back) != sizeof back || memcmp(text, back, sizeof text);
        close(ends[0]);
        close(ends[1]);
        rounds++;
    }
}

static void on_signal(int signal)
{
    char *volatile p =
        calloc(1, 64 + (size_t)signal); /* unwise, but where malloc is not interrupted */

    free(p);
}

/* A handler that allocates may interrupt only what does not: the main thread blocks it in rounds.
 */
static void work_with_signals(void)
{
    struct itimerval often = {{0, 500}, {0, 500}};
    uint64_t first = one_round(1);
    sigset_t alarms;

    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    signal(SIGALRM, on_signal);
    setitimer(ITIMER_REAL, &often, NULL);
    while (!ended) {
        pthread_sigmask(SIG_BLOCK, &alarms, NULL);
        wrong += one_round(1) != first;
        pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
        rounds++;
    }
}

static int enter_sandbox(void)
{
    struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog all = {1, allow};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "alloc";
    int n = argc > 2 ? atoi(argv[2]) : 4;
    pthread_t threads[MOST], reader, waker;
    sigset_t alarms;

    if (getenv("ATTACH_TARGET_NAME"))
        prctl(PR_SET_NAME, getenv("ATTACH_TARGET_NAME"));
    event = eventfd(0, 0);
    if ((!strcmp(how, "sandbox") && enter_sandbox()) ||
        (!strcmp(how, "private") && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)))
        return 77;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    pthread_create(&reader, NULL, read_end, NULL);
    for (int i = 0; i < n && i < MOST; i++)
        pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i + 2));
    if (!strcmp(how, "epoll"))
        pthread_create(&waker, NULL, wake, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    puts("runs");
    fflush(stdout);
    if (!strcmp(how, "epoll"))
        wait_events();
    else if (!strcmp(how, "pipe"))
        use_pipe();
    else if (!strcmp(how, "signals"))
        work_with_signals();
    else if (strcmp(how, "join") != 0)
        work((void *)1);
    for (int i = 0; i < n && i < MOST; i++)
        pthread_join(threads[i], NULL);
    printf("%s, %lu wrong\n", rounds ? "rounds" : "no round", wrong);
    return 0;
}
