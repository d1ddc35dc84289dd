/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For `sample --pid`, a child of this process loads the sampling library, which observes the other
 * process from outside. It ends after the duration, when the process ends, or by a signal.
 */
#include "cli/record.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* -------------------------------------------------------------------------- may it be observed */

static size_t read_proc(int64_t pid, const char *name, char *to, size_t size)
{
    char path[64];
    ssize_t n = 0;

    snprintf(path, sizeof path, "/proc/%lld/%s", (long long)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, to, size - 1);
        close(fd);
    }
    to[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* Whether a process runs: not one that has ended and was not waited for. */
bool record_is_running(int64_t pid)
{
    char text[1024];
    const char *at = read_proc(pid, "stat", text, sizeof text) ? strrchr(text, ')') : NULL;

    return at && at[1] == ' ' && at[2] != 'Z' && at[2] != 'X';
}

static bool is_zombie(int64_t pid)
{
    char text[16];

    return read_proc(pid, "stat", text, sizeof text) && !record_is_running(pid);
}

/* The process of a thread; 0: it is not known. */
static long long process_of(int64_t pid)
{
    char text[1024];
    const char *at = read_proc(pid, "status", text, sizeof text) ? strstr(text, "\nTgid:") : NULL;

    return at ? strtoll(at + strlen("\nTgid:"), NULL, 10) : 0;
}

/* A kernel thread has a bit in the flags, the seventh field after the name. */
static bool is_of_kernel(int64_t pid)
{
    char text[1024];
    const char *at = read_proc(pid, "stat", text, sizeof text) ? strrchr(text, ')') : NULL;

    for (int field = 0; at && field < 7; field++)
        at = strchr(at + 1, ' ');
    return at && strtoul(at, NULL, 10) & 0x00200000;
}

#define YAMA_NOBODY 3 /* cannot be lowered */

/* Returns the system setting that may forbid to read the memory of a process of the same user. */
static int yama_scope(void)
{
    char text[16] = "0";
    int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);

    if (fd >= 0 && read(fd, text, sizeof text - 1) < 1)
        text[0] = '0';
    if (fd >= 0)
        close(fd);
    return atoi(text);
}

static void explain_denied(int64_t pid, const char *command, struct rp_err *err)
{
    char path[40];
    struct stat st;
    int scope = yama_scope();

    snprintf(path, sizeof path, "/proc/%lld", (long long)pid);
    bool foreign = !stat(path, &st) && st.st_uid != geteuid();
    if (foreign)
        snprintf(err->text, sizeof err->text,
                 "process %lld belongs to another user: run as that user or as root",
                 (long long)pid);
    else if (scope)
        snprintf(err->text, sizeof err->text,
                 "the kernel does not let this process read process %lld: "
                 "kernel.yama.ptrace_scope is %d; %sstart the program with 'reprise %s -- PROGRAM'",
                 (long long)pid, scope,
                 scope < YAMA_NOBODY ? "run as root, set it to 0 with sysctl, or "
                                     : "until the machine starts again nobody may, not even root: ",
                 command);
    else
        snprintf(
            err->text, sizeof err->text,
            "the kernel does not let this process read process %lld: it is setuid, not "
            "dumpable, or the container lacks CAP_SYS_PTRACE; 'reprise %s -- PROGRAM' needs no "
            "permission",
            (long long)pid, command);
}

static bool has_other_bits(int64_t pid)
{
    char head[EI_NIDENT + 1];

    return read_proc(pid, "exe", head, sizeof head) > EI_CLASS && head[EI_CLASS] != ELFCLASS64;
}

enum rp_code record_attach_check(int64_t pid, const char *command, struct rp_err *err)
{
    const char *what = NULL;
    char path[40];
    int fd;

    snprintf(path, sizeof path, "/proc/%lld/mem", (long long)pid);
    if (!record_is_running(pid)) {
        snprintf(err->text, sizeof err->text,
                 is_zombie(pid) ? "process %lld has ended, and its parent has not waited for it (a "
                                  "zombie)"
                                : "there is no process %lld",
                 (long long)pid);
        return RP_IO;
    }
    long long process = process_of(pid);
    if (process && process != pid) {
        snprintf(err->text, sizeof err->text, "%lld is a thread of process %lld: '--pid %lld'",
                 (long long)pid, process, process);
        return RP_IO;
    }
    if (pid == getpid())
        what = "this command itself";
    else if (is_of_kernel(pid))
        what = "a thread of the kernel, which has no stacks of a program";
    else if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0) {
        explain_denied(pid, command, err);
        return RP_IO;
    } else {
        close(fd);
        what = has_other_bits(pid) ? "not a 64-bit program" : NULL;
    }
    if (what)
        snprintf(err->text, sizeof err->text, "process %lld is %s", (long long)pid, what);
    return what ? RP_IO : RP_OK;
}

/* -------------------------------------------------------------------------- the observer */

int64_t record_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* exit() runs the library's destructor, which closes the recording. */
static void observe(const struct record *r, const struct record_attach *a)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    int64_t until = a->lasts_ns ? record_now_ns() + a->lasts_ns : INT64_MAX;
    char library[PATH_MAX + 64];
    sigset_t ends;

    prctl(PR_SET_PDEATHSIG, SIGTERM); /* blocked, so that the wait below receives it */
    sigemptyset(&ends);
    for (const int *s = (const int[]){SIGTERM, SIGHUP, SIGINT, SIGQUIT, 0}; *s; s++)
        sigaddset(&ends, *s);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    snprintf(library, sizeof library, "%s/reprise-sample.so", r->libraries);
    if (!dlopen(library, RTLD_NOW | RTLD_GLOBAL)) {
        fprintf(stderr, "reprise: cannot load '%s': %s\n", library, dlerror());
        _exit(4);
    }
    while (record_is_running(a->pid) && record_now_ns() < until)
        if (sigtimedwait(&ends, NULL, &pause) > 0)
            break;
    exit(0);
}

/* Any signal ends the recording, but not this process, which prints the summary. */
static int wait_for_observer(pid_t child, const sigset_t *waited)
{
    siginfo_t info;
    int status = 0;

    while (waitpid(child, &status, WNOHANG) == 0)
        if (sigwaitinfo(waited, &info) > 0 && info.si_signo != SIGCHLD)
            kill(child, SIGTERM);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

int record_attach(const struct record *r, const struct record_attach *a)
{
    sigset_t waited, old;

    record_block_signals(&waited, &old);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        observe(r, a);
    int status = child > 0 ? wait_for_observer(child, &waited) : 4;
    sigprocmask(SIG_SETMASK, &old, NULL);
    return status;
}
