/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, listens to, stops and ends one run of the program (child.h). */
#include "try/child.h"

#include "base/clock.h"
#include "base/decides.h"
#include "base/order.h"
#include "try/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_LOOKS 1000
RP_LIMIT(MOST_LOOKS, "looks",
         "for processes that were not stopped yet; a program that has more then is refused");

/* ------------------------------------------------------------------ the keeper */

static pid_t parent_of(pid_t pid)
{
    char path[64], text[512], *end;
    int fd, parent = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    end = strrchr(text, ')'); /* the name may contain any character */
    return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

static bool is_below(const struct rp_try_process *known, size_t n, pid_t of, pid_t parent)
{
    bool below = parent == of;

    for (size_t i = 0; i < n && !below; i++)
        below = known[i].pid == parent;
    return below;
}

/* Lists the descendants of a process. */
static void find_descendants(pid_t of, struct rp_try_processes *out)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    size_t n = 0;

    out->n = 0;
    while (dir && (entry = readdir(dir))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid > 1 && rp_vec_push(out, ((struct rp_try_process){pid, parent_of(pid)}), NULL))
            break;
    }
    if (dir)
        closedir(dir);
    for (bool more = true; more;) { /* they come to the front */
        more = false;
        for (size_t i = n; i < out->n; i++)
            if (is_below(out->at, n, of, out->at[i].parent)) {
                struct rp_try_process found = out->at[i];

                out->at[i] = out->at[n];
                out->at[n++] = found;
                more = true;
            }
    }
    out->n = n;
}

/* Kills all descendants of this process until there are none. */
static void kill_descendants(void)
{
    struct rp_try_processes found = {0};

    for (int i = 0; i < 20 && (!i || found.n); i++) {
        find_descendants(getpid(), &found);
        for (size_t k = 0; k < found.n; k++)
            kill(found.at[k].pid, SIGKILL);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
    }
    rp_vec_release(&found);
}

static void program_exec(const struct rp_try_start *start)
{
    sigset_t none;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    if (!chdir(start->cwd))
        execvpe(start->argv[0], start->argv, start->envp);
    fprintf(stderr, "cannot run '%s': %s\n", start->argv[0], strerror(errno));
    fflush(stderr);
    _exit(errno == ENOENT ? 127 : 126);
}

static void redirect(const struct rp_try_start *start)
{
    static const char *const names[] = {RP_TRY_OUT, RP_TRY_LOG};
    char path[PATH_MAX + 16];

    dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", start->scratch, names[i]);
        dup2(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644), STDOUT_FILENO + i);
    }
}

/* Notes the time that the program has used, as three numbers. */
static void keeper_note(const char *scratch, int64_t wall_ns)
{
    char path[PATH_MAX + 16], text[96];
    struct rusage u;

    getrusage(RUSAGE_CHILDREN, &u); /* also of those that the program did not wait for */
    long long seconds = (long long)u.ru_utime.tv_sec + u.ru_stime.tv_sec;
    long long more_us = (long long)u.ru_utime.tv_usec + u.ru_stime.tv_usec;
    snprintf(path, sizeof path, "%s/" RP_TRY_SPENT, scratch);
    int n = snprintf(text, sizeof text, "%lld %lld %lld\n", (long long)wall_ns,
                     seconds * 1000000000 + more_us * 1000, (long long)u.ru_maxrss * 1024);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd >= 0 && write(fd, text, (size_t)n) != n)
        unlink(path);
    if (fd >= 0)
        close(fd);
}

/* Waits for the program, or for the order to end. */
static int keeper_wait(pid_t program, int64_t begun_ns, const sigset_t *waited, const char *scratch)
{
    int64_t wall_ns = 0;
    siginfo_t info;
    int status = 0;

    for (;;) {
        pid_t done = waitpid(-1, &status, WNOHANG);

        if (done == program) {
            wall_ns = rp_clock_ns() - begun_ns;
            break;
        }
        if (done > 0)
            continue; /* one that was adopted */
        if (sigwaitinfo(waited, &info) == SIGTERM) {
            status = SIGTERM;
            break;
        }
    }
    kill_descendants();
    if (wall_ns)
        keeper_note(scratch, wall_ns);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void keeper_run(const struct rp_try_start *start, pid_t parent, int told)
{
    sigset_t waited;

    sigemptyset(&waited);
    sigaddset(&waited, SIGTERM);
    sigaddset(&waited, SIGCHLD);
    sigprocmask(SIG_SETMASK, &waited, NULL);
    signal(SIGINT, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    setsid();
    if (getppid() != parent)
        _exit(1);
    redirect(start);
    int failed = start->folders ? rp_try_overlay_enter(start->folders, start->scratch) : 0;
    if (failed) {
        fprintf(stderr, "cannot protect the program's folders: %s\n", strerror(failed));
        fflush(stderr);
        _exit(125);
    }
    if (start->folders)
        rp_try_overlay_close(start->folders, start->writes, start->scratch);
    int64_t begun_ns = rp_clock_ns(); /* a short program may end before this process goes on */
    pid_t program = fork();
    if (program == 0)
        program_exec(start);
    if (write(told, &program, sizeof program) != (ssize_t)sizeof program || program < 0)
        _exit(125);
    close(told);
    _exit(keeper_wait(program, begun_ns, &waited, start->scratch));
}

/* ------------------------------------------------------------------ starting */

static int open_socket(const char *scratch, struct rp_err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (snprintf(address.sun_path, sizeof address.sun_path, "%s/" RP_TRY_SOCKET, scratch) >=
        (int)sizeof address.sun_path) {
        rp_err_set(err, RP_USAGE, "the name of the folder '%s' is too long: set TMPDIR", scratch);
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unlink(address.sun_path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) ||
        listen(fd, RP_TRY_RANKS)) {
        rp_err_set_os(err, errno, "cannot listen on '%s'", address.sun_path);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return fd;
}

enum rp_code rp_try_child_start(const struct rp_try_start *start, struct rp_try_child **out,
                                struct rp_err *err)
{
    struct rp_try_child *child = calloc(1, sizeof *child);
    pid_t parent = getpid();
    int told[2] = {-1, -1};

    *out = NULL;
    RP_TRY(rp_err_need(child, err, "starting a program"));
    snprintf(child->scratch, sizeof child->scratch, "%s", start->scratch);
    child->listening = open_socket(start->scratch, err);
    if (child->listening < 0 || pipe2(told, O_CLOEXEC)) {
        free(child);
        return err->code == RP_OK ? rp_err_set_os(err, errno, "cannot make a pipe") : err->code;
    }
    child->keeper = fork();
    if (child->keeper == 0)
        keeper_run(start, parent, told[1]);
    close(told[1]);
    if (child->keeper < 0 ||
        read(told[0], &child->program, sizeof child->program) != (ssize_t)sizeof child->program)
        child->program = 0; /* the log says why; the end is found when a line is read */
    close(told[0]);
    if (child->keeper < 0) {
        close(child->listening);
        free(child);
        return rp_err_set_os(err, errno, "cannot start a process");
    }
    *out = child;
    return RP_OK;
}

static void signal_all(const struct rp_try_processes *all, int number)
{
    for (size_t i = 0; i < all->n; i++)
        kill(all->at[i].pid, number);
}

RP_ORDER(by_pid, pid_t, RP_COMPARE(*a, *b))

/* Lists all processes, in the order of their numbers. */
static void list_pids(struct rp_try_pids *out)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;

    out->n = 0;
    while (dir && (entry = readdir(dir))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid > 1 && rp_vec_push(out, pid, NULL))
            break;
    }
    if (dir)
        closedir(dir);
    rp_sort(out->at, out->n, sizeof *out->at, by_pid);
}

/* Stops what began below the process since all processes were listed. Returns whether there may be
   more: a process that has ended again may have started another one. */
static bool stop_new(struct rp_try_child *child, const struct rp_try_pids *now)
{
    const struct rp_try_pids *seen = &child->seen;
    struct rp_try_processes *all = &child->processes;
    bool more = false;

    for (size_t i = 0; i < now->n; i++) {
        if (seen->at && bsearch(&now->at[i], seen->at, seen->n, sizeof *seen->at, by_pid))
            continue;
        pid_t parent = parent_of(now->at[i]);
        if (parent && !is_below(all->at, all->n, child->keeper, parent))
            continue;
        more = true;
        if (parent && !kill(now->at[i], SIGSTOP))
            (void)rp_vec_push(all, ((struct rp_try_process){now->at[i], parent}), NULL);
    }
    return more;
}

/* Looks only at processes that are new since it was stopped the last time, because a process that
   starts another and ends, again and again, is to be slower than this. It has to be seen twice that
   nothing was started. */
static bool stop_all(struct rp_try_child *child)
{
    struct rp_try_pids now = {0};
    int quiet = 0;

    if (!child->seen.n) {
        list_pids(&child->seen);
        find_descendants(child->keeper, &child->processes);
    }
    signal_all(&child->processes, SIGSTOP);
    for (int i = 0; i < MOST_LOOKS && quiet < 2; i++) {
        list_pids(&now);
        quiet = stop_new(child, &now) ? 0 : quiet + 1;
        struct rp_try_pids swap = child->seen;
        child->seen = now;
        now = swap;
    }
    rp_vec_release(&now);
    return quiet == 2;
}

void rp_try_child_freeze(struct rp_try_child *child, bool frozen)
{
    if (child->program <= 0 || child->gone || child->frozen == frozen)
        return;
    if (frozen)
        child->restless |= !stop_all(child);
    else
        signal_all(&child->processes, SIGCONT);
    child->frozen = frozen;
}

int64_t rp_try_child_processor_ns(struct rp_try_child *child)
{
    int64_t sum = 0;

    find_descendants(child->keeper, &child->processes);
    for (size_t i = 0; i < child->processes.n; i++) {
        struct timespec used;
        clockid_t clock;

        if (!clock_getcpuclockid(child->processes.at[i].pid, &clock) &&
            !clock_gettime(clock, &used))
            sum += (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
    }
    return sum;
}

void rp_try_child_end(struct rp_try_child *child)
{
    char path[PATH_MAX + 16];

    if (!child)
        return;
    if (!child->gone) {
        kill(child->keeper, SIGTERM);
        waitpid(child->keeper, NULL, 0);
    }
    for (size_t i = 0; i < child->nranks; i++) {
        close(child->ranks[i]->fd);
        free(child->ranks[i]);
    }
    rp_vec_release(&child->processes);
    rp_vec_release(&child->seen);
    close(child->listening);
    snprintf(path, sizeof path, "%s/" RP_TRY_SOCKET, child->scratch);
    unlink(path);
    rp_try_place_clear(child->scratch);
    free(child);
}

/* ------------------------------------------------------------------ lines */

static void accept_rank(struct rp_try_child *child)
{
    struct rp_try_rank *rank;
    int fd = accept4(child->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    rank = child->nranks < RP_TRY_RANKS ? calloc(1, sizeof *rank) : NULL;
    if (!rank) {
        close(fd);
        return;
    }
    rank->fd = fd;
    child->ranks[child->nranks++] = rank;
}

/* Takes a complete line from what has arrived. */
static bool take_line(struct rp_try_rank *rank, char *line, size_t cap)
{
    char *end = memchr(rank->bytes, '\n', rank->n);
    size_t n = end ? (size_t)(end - rank->bytes) : 0;

    if (!end && rank->n < sizeof rank->bytes)
        return false;
    if (!end) /* it is longer than any line of the hook, and so not from the hook */
        n = rank->n - 1;
    snprintf(line, cap, "%.*s", (int)n, rank->bytes);
    rank->n -= n + 1;
    memmove(rank->bytes, rank->bytes + n + 1, rank->n);
    return true;
}

static void note_hello(struct rp_try_child *child, struct rp_try_rank *rank, const char *line)
{
    long long number, world;

    if (sscanf(line, "hello %lld %lld", &number, &world) != 2)
        return;
    for (size_t i = 0; i < child->nranks; i++) {
        const struct rp_try_rank *other = child->ranks[i];

        child->twice |= other != rank && other->named && other->fd >= 0 && other->rank == number;
    }
    rank->rank = number;
    rank->named = true;
    child->world = world;
}

static bool any_line(struct rp_try_child *child, char *line, size_t cap, int64_t *number)
{
    for (size_t i = 0; i < child->nranks; i++) {
        struct rp_try_rank *rank = child->ranks[i];

        if (take_line(rank, line, cap)) {
            note_hello(child, rank, line);
            *number = rank->rank;
            return true;
        }
    }
    return false;
}

/* Reads what has arrived; returns whether anything was read. */
static bool receive(struct rp_try_child *child, int timeout_ms)
{
    struct pollfd fds[RP_TRY_RANKS + 1];
    size_t n = child->nranks;
    bool got = false;

    fds[n] = (struct pollfd){child->listening, POLLIN, 0};
    for (size_t i = 0; i < n; i++)
        fds[i] = (struct pollfd){child->ranks[i]->fd, POLLIN, 0};
    if (poll(fds, n + 1, timeout_ms) <= 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        struct rp_try_rank *rank = child->ranks[i];
        ssize_t more = 0;

        if (fds[i].revents)
            more = read(rank->fd, rank->bytes + rank->n, sizeof rank->bytes - rank->n);
        if (more > 0)
            rank->n += (size_t)more;
        got |= more > 0;
        if (fds[i].revents && more == 0) { /* closed; poll ignores negative descriptors */
            close(rank->fd);
            rank->fd = -1;
        }
    }
    if (fds[n].revents)
        accept_rank(child);
    return got || fds[n].revents;
}

int rp_try_child_line(struct rp_try_child *child, int timeout_ms, char *line, size_t cap,
                      int64_t *rank)
{
    if (any_line(child, line, cap, rank))
        return 1;
    if (!child->gone && waitpid(child->keeper, &child->status, WNOHANG) == child->keeper)
        child->gone = true;
    if (receive(child, child->gone ? 0 : timeout_ms))
        return any_line(child, line, cap, rank);
    return child->gone ? -1 : 0;
}

void rp_try_child_tell(struct rp_try_child *child, const char *line)
{
    for (size_t i = 0; i < child->nranks; i++)
        if (child->ranks[i]->fd >= 0)
            (void)!send(child->ranks[i]->fd, line, strlen(line), MSG_NOSIGNAL);
}

bool rp_try_child_spent(const struct rp_try_child *child, struct rp_try_spent *out)
{
    char path[PATH_MAX + 16];
    long long wall, processor, memory;

    snprintf(path, sizeof path, "%s/" RP_TRY_SPENT, child->scratch);
    FILE *f = fopen(path, "re");
    bool good = f && fscanf(f, "%lld %lld %lld", &wall, &processor, &memory) == 3 && wall > 0;
    if (f)
        fclose(f);
    if (good)
        *out = (struct rp_try_spent){wall, processor, memory};
    return good;
}

/* ------------------------------------------------------------------ the log */

/* Prefers lines that name the cause to those that followed it. */
static int weight_of(const char *line)
{
    if (strstr(line, "Unknown flag") || strstr(line, "out of memory"))
        return 3;
    return strstr(line, "Error") || strstr(line, "error") || strstr(line, "cannot ") ? 2
           : *line                                                                   ? 1
                                                                                     : 0;
}

void rp_try_child_last_words(const struct rp_try_child *child, char *out, size_t cap)
{
    char path[PATH_MAX + 16], line[512];
    int best = 0, weight;

    *out = '\0';
    snprintf(path, sizeof path, "%s/" RP_TRY_LOG, child->scratch);
    FILE *f = fopen(path, "re");
    if (!f)
        return;
    if (!fseek(f, -16384, SEEK_END))
        (void)!fgets(line, sizeof line, f); /* the rest of a line */
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\r\n")] = '\0';
        weight = weight_of(line + strspn(line, " \t"));
        if (weight && weight >= best) {
            best = weight;
            snprintf(out, cap, "%s", line + strspn(line, " \t"));
        }
    }
    fclose(f);
}
