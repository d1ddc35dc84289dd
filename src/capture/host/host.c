/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host library, loaded by LD_PRELOAD. It contains the core for all other sources and for the
 * macros of <reprise/record.h>, and records thread names, forks, execs and libraries loaded at run
 * time. Calls are forwarded unchanged. dlopen is not intercepted, because it searches relative to
 * its caller, which would be this library; the list of loaded objects is checked ten times a second
 * instead.
 */
#include "capture/core/core.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

#define SECTION      "rp_record"
#define MOST_HEADERS 65536 /* of the sections of a file */

static const struct rp_capture *cap;
static size_t known;             /* objects that have been told; on the core's thread only */
static unsigned long long loads; /* dlpi_adds of the last check */

/* -------------------------------------------------------------------------- for the program */

EXPORT const struct rp_capture *reprise_capture_v1(void);
EXPORT void reprise_record_range_begin(const char *name);
EXPORT void reprise_record_range_end(void);
EXPORT void reprise_record_mark(const char *name);
EXPORT void reprise_record_counter(const char *name, double value);

/*
 * The thread sanitizer of a recorded program does not see how our libraries lock (they are built
 * without it), so it would report them and end the program with its own status. It asks a program
 * for suppressions by this function.
 */
EXPORT const char *__tsan_default_suppressions(void); /* NOLINT: its name */
const char *__tsan_default_suppressions(void)         /* NOLINT */
{
    return "thread:rp_core_helper_start\n"
           "called_from_lib:reprise-host.so\n"
           "called_from_lib:reprise-sample.so\n"
           "called_from_lib:reprise-cuda.so\n"
           "called_from_lib:reprise-nvtx.so\n"
           "called_from_lib:reprise-nccl.so\n"
           "called_from_lib:reprise-opencl.so\n"
           "called_from_lib:reprise-mpi.so\n"
           "called_from_lib:reprise-gloo.so\n"
           "called_from_lib:reprise-frameworks.so\n"
           "called_from_lib:reprise-sycl.so\n"
           "called_from_lib:reprise-hip.so\n"
           "called_from_lib:reprise-blocking.so\n"
           "called_from_lib:reprise-malloc.so\n";
}

/* Safe even if another library is initialised before this one. */
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

struct object_list {
    size_t at, known;
};

static int report_object(struct dl_phdr_info *info, size_t size, void *user)
{
    struct object_list *list = user;

    (void)size;
    if (list->at++ >= list->known && info->dlpi_name && info->dlpi_name[0])
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

static void host_tick(void)
{
    struct dl_phdr_info info = {0};
    struct object_list list = {0, known};

    dl_iterate_phdr(count_loads, &info);
    if (info.dlpi_adds == loads || !cap->active())
        return;
    loads = info.dlpi_adds;
    dl_iterate_phdr(report_object, &list);
    known = list.at;
}

/* -------------------------------------------------------------------------- intercepted calls */

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

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "pthread_setname_np");
    if (!next)
        return ENOSYS;
    int result = next(thread, name);
    if (!result && cap && pthread_equal(thread, pthread_self()))
        cap->thread_name(0, name);
    return result;
}

/* A sandbox may forbid to return from a signal handler, and the sampler's signal may be on its way,
   so it stays pending from here on. False if the program, or nobody, uses the signal. */
static bool hold_sampler_signal(sigset_t *before)
{
    struct sigaction now;
    sigset_t signal;
    Dl_info of;

    if (sigaction(SIGURG, NULL, &now) || !(now.sa_flags & SA_SIGINFO) ||
        !dladdr(*(void **)&now.sa_sigaction, &of) || !of.dli_fname ||
        !strstr(of.dli_fname, "reprise-sample"))
        return false;
    sigemptyset(&signal);
    sigaddset(&signal, SIGURG);
    return !pthread_sigmask(SIG_BLOCK, &signal, before);
}

EXPORT int prctl(int option, ...)
{
    NEXT(prctl)
    unsigned long a[4];
    sigset_t before;
    va_list list;

    va_start(list, option);
    for (int i = 0; i < 4; i++)
        a[i] = va_arg(list, unsigned long);
    va_end(list);
    bool held = option == PR_SET_SECCOMP && hold_sampler_signal(&before);
    int result = next(option, a[0], a[1], a[2], a[3]);
    if (option == PR_SET_SECCOMP && !result)
        rp_capture_seal(a[0] == SECCOMP_MODE_STRICT);
    else if (held)
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (option == PR_SET_NAME && !result && cap) {
        int saved = errno;

        cap->thread_name(0, (const char *)a[0]);
        errno = saved;
    }
    return result;
}

/* libseccomp and others install their filters by this function, because libc has none for it. Other
   calls go on as they came: the compiler makes a jump of it. */
EXPORT long host_syscall(long number, long a, long b, long c, long d, long e,
                         long f) __asm__("syscall");
EXPORT long host_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    typedef long call(long, long, long, long, long, long, long);
    static call *_Atomic next;
    call *to = atomic_load_explicit(&next, memory_order_relaxed);
    sigset_t before;

    if (!to) {
        *(void **)&to = dlsym(RTLD_NEXT, "syscall");
        atomic_store(&next, to);
    }
    if (number != SYS_seccomp || !cap || cap->sealed() ||
        (a != SECCOMP_SET_MODE_STRICT && (a != SECCOMP_SET_MODE_FILTER || !c)))
        return to(number, a, b, c, d, e, f);
    bool held = hold_sampler_signal(&before), all = b & SECCOMP_FILTER_FLAG_TSYNC;
    if (all)
        rp_capture_seal_all();
    long result = to(number, a, b, c, d, e, f);
    /* with this flag alone a number above 0 is a thread that did not take part */
    bool done = all && !(b & SECCOMP_FILTER_FLAG_NEW_LISTENER) ? !result : result >= 0;
    if (done) {
        rp_capture_seal(a == SECCOMP_SET_MODE_STRICT);
        return result;
    }
    int saved = errno;
    if (all)
        rp_capture_unseal();
    if (held)
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
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

/* Workers of Python end without exit handlers; this is recorded, so that they are not taken for
   killed ones. */
EXPORT void _exit(int status) /* NOLINT(bugprone-reserved-identifier): the C library's name */
{
    rp_capture_note_end();
    syscall(SYS_exit_group, status);
    __builtin_unreachable();
}

/* -------------------------------------------------------------------------- attaching */

/* As in <reprise/record.h>: begin and end of a range, a mark, a counter. */
struct functions {
    void (*at[4])(void);
};

static bool read_at(int fd, void *to, size_t size, uint64_t at)
{
    return pread(fd, to, size, (off_t)at) == (ssize_t)size;
}

/* The section of this name in a file; false: it has none. */
static bool find_section(int fd, ElfW(Shdr) * found)
{
    ElfW(Shdr) names;
    char name[sizeof SECTION];
    ElfW(Ehdr) head;

    if (!read_at(fd, &head, sizeof head, 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_shentsize != sizeof names ||
        !read_at(fd, &names, sizeof names, head.e_shoff + head.e_shstrndx * sizeof names))
        return false;
    for (size_t i = 0; i < head.e_shnum && i < MOST_HEADERS; i++)
        if (read_at(fd, found, sizeof *found, head.e_shoff + i * sizeof *found) &&
            read_at(fd, name, sizeof name, names.sh_offset + found->sh_name) &&
            !memcmp(name, SECTION, sizeof name))
            return true;
    return false;
}

/* Whether the program has mapped it, writable. */
static bool is_loaded(const struct dl_phdr_info *info, const ElfW(Shdr) * section)
{
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];

        if (p->p_type == PT_LOAD && p->p_flags & PF_W && section->sh_addr >= p->p_vaddr &&
            section->sh_addr + section->sh_size <= p->p_vaddr + p->p_memsz)
            return true;
    }
    return false;
}

static int fill(struct dl_phdr_info *info, size_t size, void *user)
{
    const struct functions *f = user;
    const char *path = info->dlpi_name && *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
    ElfW(Shdr) section;

    (void)size;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (find_section(fd, &section) && is_loaded(info, &section)) {
        struct functions *to = (struct functions *)(uintptr_t)(info->dlpi_addr + section.sh_addr);

        for (size_t i = 0; i < section.sh_size / sizeof *to; i++)
            for (size_t k = 0; k < sizeof to->at / sizeof *to->at; k++)
                __atomic_store_n(&to[i].at[k], f->at[k], __ATOMIC_RELAXED);
    }
    close(fd);
    return 0;
}

/*
 * Hands the functions to all programs and libraries that have been loaded with <reprise/record.h>,
 * which keeps them in tables. They are filled when the program starts; where the recorder comes
 * later, it finds them by the section of the files that are loaded, and empties them when it
 * leaves.
 */
static void fill_tables(struct functions f)
{
    dl_iterate_phdr(fill, &f);
}

EXPORT int reprise_attach_v1(const char *folder, const char *options);
EXPORT const _Atomic uint32_t *reprise_session_v1(void);

static void attach_leave(void)
{
    fill_tables((struct functions){{NULL}});
}

/* The mark opens the process: it is in the recording even if nothing else happens. */
static void attach_begin(void)
{
    cap = rp_capture_own();
    known = 0;
    loads = 0;
    cap->source("host", host_tick, NULL);
    cap->on_leave(attach_leave);
    cap->mark("attached");
    fill_tables((struct functions){{(void (*)(void))reprise_record_range_begin,
                                    reprise_record_range_end, (void (*)(void))reprise_record_mark,
                                    (void (*)(void))reprise_record_counter}});

    /* Loads the other sources of this recording, which are beside this library. */
    const char *list = cap->option("sources");
    char path[PATH_MAX];
    Dl_info self;
    if (list && dladdr(&known, &self) && strrchr(self.dli_fname, '/')) {
        int folder = (int)(strrchr(self.dli_fname, '/') - self.dli_fname);
        for (size_t n; *list; list += n + (list[n] == ',')) {
            int (*attach)(void) = NULL;
            n = strcspn(list, ",");
            snprintf(path, sizeof path, "%.*s/reprise-%.*s.so", folder, self.dli_fname, (int)n,
                     list);
            void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
            if (library)
                *(void **)&attach = dlsym(library, "reprise_attach_source_v1");
            if (!library || !attach || attach())
                cap->warn(library ? "a source cannot be attached" : dlerror());
        }
    }
}

/* Called by `record` in the main thread of a program that runs, which it has stopped. If `record`
   is killed meanwhile, the result is taken for the number of a system call, so that it is none. */
int reprise_attach_v1(const char *folder, const char *options)
{
    const int no_system_call = 1 << 20;

    return no_system_call | rp_capture_attach(folder, options, attach_begin);
}

const _Atomic uint32_t *reprise_session_v1(void)
{
    return rp_capture_session();
}

/* -------------------------------------------------------------------------- beginning and end */

__attribute__((constructor(101))) static void host_load(void)
{
    cap = rp_capture_own();
    syscall(SYS_getpid); /* finds the next one, which a signal handler could not */
    if (cap)
        cap->source("host", host_tick, NULL);
}

__attribute__((destructor(101))) static void host_unload(void)
{
    rp_capture_close();
}
