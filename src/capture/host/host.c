/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host library, loaded by LD_PRELOAD: it carries the core for all the others and for the macros
 * of <reprise/record.h>, and notes names of threads, forks, execs and libraries that are loaded
 * later. Calls are passed on unchanged. dlopen is not intercepted (a library is searched for beside
 * its caller, and the caller would be this one): the list of loaded objects is looked at instead,
 * ten times a second.
 */
#include "capture/core/core.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static const struct rp_capture *cap;

/* -------------------------------------------------------------------------- for the program */

EXPORT const struct rp_capture *reprise_capture_v1(void);
EXPORT void reprise_record_range_begin(const char *name);
EXPORT void reprise_record_range_end(void);
EXPORT void reprise_record_mark(const char *name);
EXPORT void reprise_record_counter(const char *name, double value);

/* Another library may be initialised before this one. */
const struct rp_capture *reprise_capture_v1(void)
{
    return cap ? cap : rp_capture_own();
}

void reprise_record_range_begin(const char *name)
{
    if (cap)
        cap->range_begin(name);
}

void reprise_record_range_end(void)
{
    if (cap)
        cap->range_end();
}

void reprise_record_mark(const char *name)
{
    if (cap)
        cap->mark(name);
}

void reprise_record_counter(const char *name, double value)
{
    if (cap)
        cap->counter(name, value);
}

/* -------------------------------------------------------------------------- libraries */

static unsigned long long loads; /* that were seen; on the core's thread only */

struct walk {
    size_t at, known;
};

static int see_object(struct dl_phdr_info *info, size_t size, void *user)
{
    struct walk *walk = user;

    (void)size;
    if (walk->at++ >= walk->known && info->dlpi_name && info->dlpi_name[0])
        cap->library(info->dlpi_name);
    return 0;
}

static int count_loads(struct dl_phdr_info *info, size_t size, void *user)
{
    struct dl_phdr_info *out = user;

    (void)size;
    *out = *info;
    return 1;
}

static void on_tick(void)
{
    static size_t known;
    struct dl_phdr_info info = {0};
    struct walk walk = {0, known};

    dl_iterate_phdr(count_loads, &info);
    if (info.dlpi_adds == loads || !cap->active())
        return;
    loads = info.dlpi_adds;
    dl_iterate_phdr(see_object, &walk);
    known = walk.at;
}

/* -------------------------------------------------------------------------- calls passed on */

#define NEXT(name)                                 \
    static __typeof__(&name) next;                 \
    if (!next) {                                   \
        *(void **)&next = dlsym(RTLD_NEXT, #name); \
    }                                              \
    if (!next) {                                   \
        errno = ENOSYS;                            \
        return -1;                                 \
    }

EXPORT pid_t fork(void)
{
    NEXT(fork)
    pid_t child = next();
    int saved = errno;

    if (child > 0 && cap)
        cap->forked((uint32_t)child);
    errno = saved;
    return child;
}

EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
    static int (*next)(pthread_t, const char *);
    int result;

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "pthread_setname_np");
    if (!next)
        return ENOSYS;
    result = next(thread, name);
    if (!result && cap && pthread_equal(thread, pthread_self()))
        cap->thread_name(0, name);
    return result;
}

EXPORT int prctl(int option, ...)
{
    NEXT(prctl)
    unsigned long a[4];
    va_list list;
    int result;

    va_start(list, option);
    for (int i = 0; i < 4; i++)
        a[i] = va_arg(list, unsigned long);
    va_end(list);
    result = next(option, a[0], a[1], a[2], a[3]);
    if (option == PR_SET_SECCOMP && !result)
        rp_capture_seal();
    if (option == PR_SET_NAME && !result && cap) {
        int saved = errno;

        cap->thread_name(0, (const char *)a[0]);
        errno = saved;
    }
    return result;
}

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    NEXT(execve)
    if (cap)
        cap->exec(path);
    return next(path, argv, envp);
}

EXPORT int execv(const char *path, char *const argv[])
{
    NEXT(execv)
    if (cap)
        cap->exec(path);
    return next(path, argv);
}

EXPORT int execvp(const char *file, char *const argv[])
{
    NEXT(execvp)
    if (cap)
        cap->exec(file);
    return next(file, argv);
}

/* -------------------------------------------------------------------------- beginning and end */

__attribute__((constructor(101))) static void load(void)
{
    cap = rp_capture_own();
    if (cap)
        cap->source("host", on_tick, NULL);
}

__attribute__((destructor(101))) static void unload(void)
{
    rp_capture_close();
}
