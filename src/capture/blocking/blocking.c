/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source `blocking`, loaded by LD_PRELOAD on request: blocking calls, as spans on their thread.
 * A call is recorded when it returns, and only if it took at least a microsecond (--set
 * blocking.min_ns=N), so that calls that did not block cost two reads of the cycle counter and no
 * disk space. Calls of the recorder itself are not recorded.
 */
#include "capture/core/core.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static const struct rp_capture *cap;
static uint64_t min_ticks; /* shorter calls are not recorded */
static uintptr_t recorder, recorder_end;

/* Condition variables have two versions of their symbols, of which the new one is needed. */
static void *find_next(const char *name)
{
#if defined(__x86_64__)
    void *found =
        strncmp(name, "pthread_cond_", 13) ? NULL : dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
#else
    void *found = NULL;
#endif

    return found ? found : dlsym(RTLD_NEXT, name);
}

static bool is_recorder(const void *caller)
{
    return (uintptr_t)caller >= recorder && (uintptr_t)caller < recorder_end;
}

static bool is_recorded(const void *caller)
{
    return cap && !is_recorder(caller) && cap->ready();
}

/* A mutex may belong to an allocator, and then the recording must not be opened here. */
static bool is_recorded_if_open(const void *caller)
{
    return cap && cap->active() && !is_recorder(caller);
}

static void put_call(const char *name, uint64_t begin, int64_t result)
{
    uint64_t end = cap->now();
    int saved = errno;
    const struct rp_capture_arg arg = {.key = "result", .number = result};

    if (end - begin >= min_ticks)
        cap->span(&(struct rp_capture_span){.kind = RP_CTF_KIND_WAIT,
                                            .begin = begin,
                                            .end = end,
                                            .name = name,
                                            .category = "blocking",
                                            .device = RP_CTF_SPAN_DEVICE,
                                            .args = &arg,
                                            .nargs = 1});
    errno = saved;
}

#define WRAP(type, name, parameters, arguments) \
    WRAP_IF(is_recorded, type, name, parameters, arguments)

#define WRAP_IF(condition, type, name, parameters, arguments) \
    EXPORT type name parameters                               \
    {                                                         \
        static __typeof__(&name) next;                        \
        uint64_t begin;                                       \
        type result;                                          \
                                                              \
        if (!next)                                            \
            *(void **)&next = find_next(#name);               \
        if (!condition(__builtin_return_address(0)))          \
            return next arguments;                            \
        begin = cap->now();                                   \
        result = next arguments;                              \
        put_call(#name, begin, (int64_t)result);              \
        return result;                                        \
    }

WRAP(ssize_t, read, (int fd, void *to, size_t n), (fd, to, n))
WRAP(ssize_t, write, (int fd, const void *from, size_t n), (fd, from, n))
WRAP(ssize_t, pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at))
WRAP(ssize_t, pwrite, (int fd, const void *from, size_t n, off_t at), (fd, from, n, at))
WRAP(ssize_t, readv, (int fd, const struct iovec *v, int n), (fd, v, n))
WRAP(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n))
WRAP(ssize_t, recv, (int fd, void *to, size_t n, int flags), (fd, to, n, flags))
WRAP(ssize_t, send, (int fd, const void *from, size_t n, int flags), (fd, from, n, flags))
WRAP(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags))
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags))
WRAP(int, poll, (struct pollfd * fds, nfds_t n, int timeout), (fds, n, timeout))
WRAP(int, select, (int n, fd_set *r, fd_set *w, fd_set *e, struct timeval *t), (n, r, w, e, t))
WRAP(int, epoll_wait, (int fd, struct epoll_event *e, int n, int timeout), (fd, e, n, timeout))
WRAP(int, accept, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n))
WRAP(int, connect, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
WRAP(int, fsync, (int fd), (fd))
WRAP(int, fdatasync, (int fd), (fd))
WRAP(int, nanosleep, (const struct timespec *t, struct timespec *left), (t, left))
WRAP(int, clock_nanosleep,
     (clockid_t c, int flags, const struct timespec *t, struct timespec *left), (c, flags, t, left))
WRAP(int, usleep, (useconds_t us), (us))
WRAP(unsigned, sleep, (unsigned s), (s))
WRAP(pid_t, waitpid, (pid_t pid, int *status, int options), (pid, status, options))
WRAP(int, pthread_join, (pthread_t thread, void **value), (thread, value))
WRAP(int, pthread_cond_wait, (pthread_cond_t * c, pthread_mutex_t *m), (c, m))
WRAP(int, pthread_cond_timedwait,
     (pthread_cond_t * c, pthread_mutex_t *m, const struct timespec *until), (c, m, until))
WRAP(int, pthread_barrier_wait, (pthread_barrier_t * b), (b))
WRAP_IF(is_recorded_if_open, int, pthread_mutex_lock, (pthread_mutex_t * m), (m))
WRAP(int, sem_wait, (sem_t * s), (s))

/* -------------------------------------------------------------------------- beginning */

static int find_recorder(struct dl_phdr_info *info, size_t size, void *inside)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        uintptr_t end = from + info->dlpi_phdr[i].p_memsz;

        if (info->dlpi_phdr[i].p_type == PT_LOAD && (uintptr_t)inside >= from &&
            (uintptr_t)inside < end) {
            recorder = from;
            recorder_end = end;
            return 1;
        }
    }
    return 0;
}

__attribute__((constructor)) static void blocking_load(void)
{
    const struct rp_capture *found = rp_capture_get();

    if (!found)
        return;
    dl_iterate_phdr(find_recorder, (void *)(uintptr_t)found->now);
    const char *text = found->option("blocking.min_ns");
    cap = found;
    min_ticks = cap->ticks(text ? strtoull(text, NULL, 10) : 1000);
    cap->source("blocking", NULL, NULL);
}
