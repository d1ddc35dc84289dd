/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `record --pid` and `record --all`: records processes that were started without a recorder, from
 * now on and for a while. What forbids it is said before anything is touched.
 *
 * The recorder in the process ends by itself after the time or the steps, or if this command is
 * gone; or it reads in the control file that it is to end. This command looks into its memory for
 * how far that is.
 */
#include "cli/record_live.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MOST_PROCESSES 1024
#define LOOK_NS        20000000
#define LEAVES_WITHIN  1500 /* looks: the device is waited for */
#define THREAD_WITHIN  100  /* looks, until its thread is gone */
#define IS_OVER        3    /* of rp_capture_session */

struct record_live {
    size_t n;
    size_t left_out; /* of those with the name */
    struct {
        pid_t pid;
        uint64_t session; /* address; 0: it is not recorded (any more) */
    } all[MOST_PROCESSES];
};

/* -------------------------------------------------------------------------- /proc */

/* A line of /proc/PID/status, behind its name; "" without one. */
static const char *status_of(pid_t pid, const char *name, char *to, size_t size)
{
    char path[40];
    bool found = false;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(to, (int)size, f))
        found = !strncmp(to, name, strlen(name)) && to[strlen(name)] == ':';
    if (f)
        fclose(f);
    to[found ? strcspn(to, "\n") : 0] = '\0';
    return found ? to + strlen(name) + 1 : to;
}

static long long number_of(pid_t pid, const char *name, int base)
{
    char line[256];

    return (long long)strtoull(status_of(pid, name, line, sizeof line), NULL, base);
}

bool record_live_has_signal(pid_t pid)
{
    return ((number_of(pid, "SigPnd", 16) | number_of(pid, "ShdPnd", 16)) &
            ~number_of(pid, "SigBlk", 16)) != 0;
}

/* Whether a link in /proc/PID is the same as ours. */
static bool has_our(pid_t pid, const char *link)
{
    struct stat ours, its;
    char path[64];

    snprintf(path, sizeof path, "/proc/self/%s", link);
    bool known = !stat(path, &ours);
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, link);
    return !known || stat(path, &its) || (ours.st_ino == its.st_ino && ours.st_dev == its.st_dev);
}

/* Whether its program is for the same processor. */
static bool has_our_machine(pid_t pid)
{
    Elf64_Ehdr heads[2] = {0};
    char path[40];

    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "/proc/%d/exe", i ? (int)pid : (int)getpid());
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read(fd, &heads[i], sizeof heads[i]) != (ssize_t)sizeof heads[i])
            heads[i].e_machine = 0;
        if (fd >= 0)
            close(fd);
    }
    return heads[0].e_machine == heads[1].e_machine;
}

void record_live_explain(pid_t pid, struct rp_err *err)
{
    long long tracer = number_of(pid, "TracerPid", 10);

    if (tracer)
        snprintf(err->text, sizeof err->text,
                 "process %d is traced by process %lld (a debugger, strace, another profiler), and "
                 "a process has one tracer: end that first",
                 (int)pid, tracer);
    else if (number_of(getpid(), "Seccomp", 10))
        snprintf(err->text, sizeof err->text,
                 "cannot attach to process %d: a filter of system calls (seccomp), as containers "
                 "have one, forbids ptrace: 'docker run --cap-add SYS_PTRACE' or '--security-opt "
                 "seccomp=unconfined', or start the program with 'reprise record -- PROGRAM'",
                 (int)pid);
}

/* -------------------------------------------------------------------------- may it be recorded */

static bool is_ours(pid_t pid)
{
    struct stat st;
    char path[40];

    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return !stat(path, &st) && st.st_uid == geteuid();
}

static bool check(pid_t pid, struct rp_err *err)
{
    const char *what = NULL;
    char line[256];

    if (record_attach_check(pid, "record", err) != RP_OK)
        return false;
    if (number_of(pid, "TracerPid", 10)) {
        record_live_explain(pid, err);
        return false;
    }
    if (!is_ours(pid))
        what = "belongs to another user, who must be the one to record it";
    else if (!has_our_machine(pid))
        what = "is for another processor than this reprise";
    else if (!has_our(pid, "ns/mnt") || !has_our(pid, "root") || !has_our(pid, "ns/pid"))
        what = "is in another container or root folder, where paths and process ids are others: "
               "run 'reprise record --pid' in there";
    else if (number_of(pid, "Seccomp", 10) > number_of(getpid(), "Seccomp", 10) ||
             number_of(pid, "Seccomp_filters", 10) > number_of(getpid(), "Seccomp_filters", 10))
        what = "has a sandbox (seccomp) of its own, which may end it where a library is loaded: "
               "start it with 'reprise record -- PROGRAM', or without the sandbox";
    else if (strstr(status_of(pid, "x86_Thread_features", line, sizeof line), "shstk"))
        what = "has a shadow stack (CET), against which calls from outside fail: start it with "
               "'reprise record -- PROGRAM', or with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off";
    if (what)
        snprintf(err->text, sizeof err->text, "process %d %s", (int)pid, what);
    return !what;
}

static bool find_numbers(struct record_live *live, const char *list)
{
    while (*list && live->n < MOST_PROCESSES) {
        char *end;
        long pid = strtol(list, &end, 10);

        if (end == list || pid <= 0 || pid > INT32_MAX || (*end && *end != ','))
            return false;
        live->all[live->n++].pid = (pid_t)pid;
        list = end + (*end == ',');
    }
    return live->n > 0 && !*list;
}

/* Whether its command is called so: the name of its main thread, which programs may change, or the
   file name of its first word. */
static bool is_named(pid_t pid, const char *name)
{
    char line[64], path[40], word[PATH_MAX] = "";
    const char *its = status_of(pid, "Name", line, sizeof line);

    if (!strncmp(its + strspn(its, "\t "), name, 15)) /* the kernel keeps 15 bytes */
        return true;
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, word, sizeof word - 1) : 0;
    if (fd >= 0)
        close(fd);
    word[n > 0 ? n : 0] = '\0';
    const char *slash = strrchr(word, '/');
    return !strcmp(slash ? slash + 1 : word, name);
}

/* Leaves out those that cannot be recorded, and says why; the last reason stays if none can. */
static void leave_out(struct record_live *live, struct rp_err *err)
{
    size_t kept = 0;

    for (size_t i = 0; i < live->n; i++) {
        *err = (struct rp_err)RP_ERR_INIT;
        if (check(live->all[i].pid, err))
            live->all[kept++] = live->all[i];
        else if (i + 1 < live->n || kept)
            fprintf(stderr, "reprise: left out: %s\n", err->text);
    }
    live->left_out = live->n - kept;
    live->n = kept;
    if (kept)
        *err = (struct rp_err)RP_ERR_INIT;
}

struct record_live *record_live_find(const char *pids, const char *name, bool *usage,
                                     struct rp_err *err)
{
    struct record_live *live = calloc(1, sizeof *live);

    *usage = live && pids && (name || !find_numbers(live, pids));
    if (live && name && !pids) {
        DIR *dir = opendir("/proc");
        struct dirent *entry;

        while (dir && (entry = readdir(dir)) && live->n < MOST_PROCESSES) {
            pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

            if (pid > 0 && pid != getpid() && is_ours(pid) && is_named(pid, name) &&
                record_is_running(pid))
                live->all[live->n++].pid = pid;
        }
        if (dir)
            closedir(dir);
    }
    if (*usage)
        snprintf(err->text, sizeof err->text,
                 name ? "'--pid' and '--all' both name the processes: leave one out"
                      : "option '--pid' takes process ids, as in 4711,4712, not '%.200s'",
                 pids);
    else if (live && !live->n)
        snprintf(err->text, sizeof err->text, "no process of yours is named '%.100s'", name);
    for (size_t i = 0; live && pids && i < live->n && !err->text[0]; i++)
        check(live->all[i].pid, err);
    if (live && !pids)
        leave_out(live, err);
    if (!live || !err->text[0])
        return live;
    free(live);
    return NULL;
}

/* -------------------------------------------------------------------------- until it ends */

/* Whether the recorder in the process has ended: by itself, with the process, or since the process
   has begun another program. */
static bool is_over(pid_t pid, uint64_t session)
{
    uint32_t word = 0;
    struct iovec here = {&word, sizeof word}, there = {(void *)(uintptr_t)session, sizeof word};

    return !record_is_running(pid) ||
           process_vm_readv(pid, &here, 1, &there, 1, 0) != (ssize_t)sizeof word || !word ||
           word >= IS_OVER;
}

static bool has_our_thread(pid_t pid)
{
    char path[300], name[32] = "";
    bool found = false;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *dir = opendir(path);
    for (const struct dirent *entry; dir && !found && (entry = readdir(dir));) {
        snprintf(path, sizeof path, "/proc/%d/task/%s/comm", (int)pid, entry->d_name);
        FILE *f = fopen(path, "re");
        found = f && fgets(name, sizeof name, f) && !strncmp(name, "reprise", 7);
        if (f)
            fclose(f);
    }
    if (dir)
        closedir(dir);
    return found;
}

/* The number of those that are still recorded. */
static size_t look(struct record_live *live)
{
    size_t n = 0;

    for (size_t i = 0; i < live->n; i++)
        if (live->all[i].session && is_over(live->all[i].pid, live->all[i].session)) {
            for (int k = 0; k < THREAD_WITHIN && has_our_thread(live->all[i].pid); k++)
                nanosleep(&(struct timespec){.tv_nsec = LOOK_NS / 10}, NULL);
            live->all[i].session = 0;
        } else {
            n += live->all[i].session != 0;
        }
    return n;
}

static void ask_to_leave(const struct record *r)
{
    static const char line[] = "detach\n";
    char path[PATH_MAX + 16];

    snprintf(path, sizeof path, "%s/.control", r->folder);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0 || write(fd, line, sizeof line - 1) < 0)
        fprintf(stderr, "reprise: cannot write '%s': %s\n", path, strerror(errno));
    if (fd >= 0)
        close(fd);
}

static void wait_for_end(const struct record *r, struct record_live *live, const sigset_t *waited)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    int asked = 0; /* looks since then */
    siginfo_t info;

    while (look(live) && asked < LEAVES_WITHIN) {
        bool ends = sigtimedwait(waited, &info, &pause) > 0 && info.si_signo != SIGCHLD;

        if (ends && !asked)
            ask_to_leave(r);
        asked += asked || ends;
    }
    for (size_t i = 0; i < live->n; i++)
        if (live->all[i].session)
            fprintf(stderr, "reprise: process %d is still being recorded: is it stopped?\n",
                    (int)live->all[i].pid);
}

int record_live(const struct record *r, struct record_live *live)
{
    sigset_t waited, old;
    size_t begun = 0, n = live->n, all = n + live->left_out;

    record_block_signals(&waited, &old);
    for (size_t i = 0; i < n; i++) {
        struct rp_err err = RP_ERR_INIT;

        if (record_inject(r, live->all[i].pid, &live->all[i].session, &err)) {
            begun++;
            continue;
        }
        live->all[i].session = 0;
        cli_fail(RP_IO, &err);
    }
    if (begun && !r->quiet)
        fprintf(stderr, "reprise: recording %zu running process%s; Ctrl-C ends the recording\n",
                begun, begun > 1 ? "es" : "");
    wait_for_end(r, live, &waited);

    /* What the recorders have said, which is not for the streams of the programs. */
    char path[PATH_MAX + 16], line[1024];
    snprintf(path, sizeof path, "%s/.warnings", r->folder);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        fputs(line, stderr);
    if (f)
        fclose(f);
    unlink(path);

    free(live);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return begun == all ? 0 : begun ? 1 : 4;
}
