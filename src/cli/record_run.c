/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the recorded program, prints the summary, and sends commands to a running recording. */
#include "cli/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* -------------------------------------------------------------------------- running */

/* Whether to forward a signal to the child. An interrupt from the terminal, or one sent to the
   whole process group, reaches the child anyway; one sent only to this process is forwarded. */
static bool is_forwarded(const siginfo_t *info)
{
    if (info->si_signo == SIGCHLD)
        return false;
    if (info->si_signo != SIGINT && info->si_signo != SIGQUIT)
        return true;
    return info->si_code <= 0 && info->si_pid > 0 && getpgid(info->si_pid) != getpgrp();
}

static int child_wait(pid_t child, const sigset_t *waited, void (*tick)(void *user), void *user)
{
    const struct timespec pause = {.tv_nsec = 200000000};
    siginfo_t info;
    int status = 0;

    for (;;) {
        pid_t done = waitpid(child, &status, WNOHANG);

        if (done == child || (done < 0 && errno != EINTR))
            break;
        if (tick)
            tick(user);
        if ((tick ? sigtimedwait(waited, &info, &pause) : sigwaitinfo(waited, &info)) > 0 &&
            is_forwarded(&info))
            kill(child, info.si_signo);
    }
    if (WIFSIGNALED(status))
        return 128 + WTERMSIG(status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

void record_block_signals(sigset_t *waited, sigset_t *old)
{
    sigemptyset(waited);
    for (const int *s =
             (const int[]){SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, 0};
         *s; s++)
        sigaddset(waited, *s);
    sigprocmask(SIG_BLOCK, waited, old);
}

static void child_exec(char **argv, const sigset_t *old, bool wait_attach, int to_parent)
{
    struct rp_err err = RP_ERR_INIT;

    sigprocmask(SIG_SETMASK, old, NULL);
    if (wait_attach && rp_wait_attach(&err) != RP_OK)
        cli_fail(RP_IO, &err);
    else if (argv[0])
        execvp(argv[0], argv);
    int why = errno;
    if (write(to_parent, &why, sizeof why) < 0)
        _exit(127);
    _exit(127);
}

static int cannot_run(const char *program, int why)
{
    struct rp_err err = RP_ERR_INIT;
    size_t n = strlen(program);
    bool here = (why == ENOENT || why == EACCES) && !access(program, R_OK);
    const char *with = !here                                             ? NULL
                       : n > 3 && !strcmp(program + n - 3, ".py")        ? "python "
                       : !strchr(program, '/') && !access(program, X_OK) ? "./"
                                                                         : NULL;

    snprintf(err.text, sizeof err.text, "cannot run '%.300s': %s%s%s%.300s%s", program,
             strerror(why), with ? "; try '" : "", with ? with : "", with ? program : "",
             with ? "'" : "");
    cli_fail(RP_IO, &err);
    return why == ENOENT ? 127 : 126;
}

int record_run_watched(const char *const *words, size_t n, bool wait_attach,
                       void (*tick)(void *user), void *user)
{
    char **argv = calloc(n + 1, sizeof *argv);
    int fds[2] = {-1, -1}, why = 0;
    sigset_t waited, old;

    if (!argv || pipe2(fds, O_CLOEXEC)) {
        why = errno;
        free(argv);
        return cannot_run(words[0], why);
    }
    for (size_t i = 0; i < n; i++)
        memcpy(&argv[i], &words[i], sizeof argv[i]);
    record_block_signals(&waited, &old);
    pid_t child = fork();
    if (child == 0)
        child_exec(argv, &old, wait_attach, fds[1]);
    why = child < 0 ? errno : 0;
    close(fds[1]);
    if (child > 0 && read(fds[0], &why, sizeof why) != (ssize_t)sizeof why)
        why = 0;
    close(fds[0]);
    int status = child > 0 ? child_wait(child, &waited, tick, user) : 0;
    sigprocmask(SIG_SETMASK, &old, NULL);
    free(argv);
    return why ? cannot_run(words[0], why) : status;
}

int record_run(const char *const *words, size_t n)
{
    return record_run_watched(words, n, false, NULL, NULL);
}

/* -------------------------------------------------------------------------- the summary */

/* Removes the temporary files of dead processes. */
static void remove_unfinished_of(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    char path[PATH_MAX];
    int pid;

    while (dir && (entry = readdir(dir))) {
        if (sscanf(entry->d_name, ".spare_%d_", &pid) != 1 &&
            sscanf(entry->d_name, ".trim_%d_", &pid) != 1 &&
            sscanf(entry->d_name, ".metadata_%d_", &pid) != 1)
            continue;
        if (kill(pid, 0) && errno == ESRCH &&
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path)
            unlink(path);
    }
    if (dir)
        closedir(dir);
}

/* Only for folders of this host: process ids of other hosts are unknown here. */
static void remove_unfinished(const char *root)
{
    char host[256] = "", path[PATH_MAX];
    DIR *dir = opendir(root);
    struct dirent *entry;

    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    while (dir && (entry = readdir(dir))) {
        const char *name = entry->d_name;

        if (name[0] != '.' && *host && strstr(name, host) &&
            snprintf(path, sizeof path, "%s/%s", root, name) < (int)sizeof path)
            remove_unfinished_of(path);
    }
    if (dir)
        closedir(dir);
}

static const char *with_commas(uint64_t n, char *to)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n), out = 0;

    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            to[out++] = ',';
        to[out++] = digits[i];
    }
    to[out] = '\0';
    return to;
}

/* Each `record` appends one byte, so the file's size is the count. */
long record_note(const struct record *r, const char *list)
{
    char path[PATH_MAX + 16];
    off_t place = 0;
    struct stat st;

    snprintf(path, sizeof path, "%s/%s", r->folder, list);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return 0;
    if (!stat(r->folder, &st)) /* for ranks of other users */
        (void)!fchmod(fd, S_IRUSR | S_IWUSR | (st.st_mode & (S_IRGRP | S_IWGRP)));
    if (write(fd, "+", 1) == 1)
        place = lseek(fd, 0, SEEK_CUR);
    close(fd);
    return place > 0 ? (long)place : 0;
}

void record_forget_ledgers(const struct record *r)
{
    DIR *dir = opendir(r->folder);
    struct dirent *entry;
    char path[PATH_MAX + 260];

    while (dir && (entry = readdir(dir))) {
        if (strncmp(entry->d_name, ".ledger_", 8) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", r->folder, entry->d_name);
        unlink(path);
    }
    if (dir)
        closedir(dir);
}

static int64_t time_ns(const struct timeval *t)
{
    return (int64_t)t->tv_sec * 1000000000 + (int64_t)t->tv_usec * 1000;
}

void record_spent(const struct record *r)
{
    struct rusage used;

    if (!getrusage(RUSAGE_CHILDREN, &used))
        rp_recording_spent(r->folder, time_ns(&used.ru_utime) + time_ns(&used.ru_stime));
}

/* Returns by how many percent recorded steps are longer than this. */
static double longer_than(const struct rp_recording *rec, int64_t ns)
{
    return ns > 0 ? 100.0 * ((double)rec->recorded_step_ns / (double)ns - 1) : 0;
}

/* Prints first what the recording did to the program: measured in steps if the recorder saw them,
   otherwise by the CPU time of its own code. */
static void print_cost(const struct rp_recording *rec)
{
    if (rec->unrecorded_step_ns > 0) {
        double longer = longer_than(rec, rec->unrecorded_step_ns);

        if (longer < 1)
            fputs("; steps are less than 1 % longer while recording\n", stderr);
        else
            fprintf(stderr, "; steps are about %.0f %% (%.0f to %.0f) longer while recording\n",
                    longer, longer_than(rec, rec->unrecorded_most_ns),
                    longer_than(rec, rec->unrecorded_least_ns));
        return;
    }
    if (rec->cost_ns > 0)
        fprintf(stderr, "; its own code took about %.1f ms", (double)rec->cost_ns / 1e6);
    if (rec->cost_ns > 0 && rec->cpu_ns > rec->cost_ns)
        fprintf(stderr, " (%.2f %% of the CPU time)",
                100.0 * (double)rec->cost_ns / (double)rec->cpu_ns);
    fputc('\n', stderr);
}

static void print_lost(const struct rp_recording *rec)
{
    char number[32];

    if (rec->lost)
        fprintf(stderr, "reprise: results for this recording do not include the lost events%s%s\n",
                rec->lost_because[0] ? ": " : "", rec->lost_because);
    if (rec->overwritten)
        fprintf(stderr,
                "reprise: the recording is a ring that kept the end of the run: %s older events "
                "were overwritten\n",
                with_commas(rec->overwritten, number));
}

/* Prints the signal, because a shell reports only programs that it has started itself. */
static void print_signal(const struct record *r)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGKILL};

    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        if (r->program && r->status == 128 + crashes[i])
            fprintf(stderr, "reprise: it was ended by signal %d (%s)%s\n", crashes[i],
                    strsignal(crashes[i]),
                    crashes[i] == SIGKILL ? ", as it is when memory runs out" : "");
}

/* Prints what --keep has kept besides the recording. */
static void print_kept(const struct record *r)
{
    char path[PATH_MAX + 16], first[NAME_MAX + 1] = "";
    struct dirent *entry;
    size_t n = 0;

    snprintf(path, sizeof path, "%s.kept", r->folder);
    DIR *dir = opendir(path);
    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.') {
            if (!n++ || strcmp(entry->d_name, first) < 0)
                snprintf(first, sizeof first, "%s", entry->d_name);
        }
    if (dir)
        closedir(dir);
    if (n)
        fprintf(stderr, "reprise: kept %zu of its moments: reprise report %s.kept/%s%s\n", n,
                r->name, first, n > 1 ? ", ..." : "");
}

static void print_events(const struct record *r, const struct rp_recording *rec)
{
    char events[32], number[32], processes[48] = "";

    if (rec->processes > 1)
        snprintf(processes, sizeof processes, " in %llu processes",
                 (unsigned long long)rec->processes);
    fprintf(stderr, "reprise: %s events%s, %.1f MB, %s lost", with_commas(rec->events, events),
            processes, (double)rec->bytes / 1e6, with_commas(rec->lost, number));
    print_cost(rec);
    print_lost(rec);

    /* Print the first line that a Python program left when an exception ended it. */
    char path[PATH_MAX + 16], line[512];
    snprintf(path, sizeof path, "%s/.error", r->folder);
    FILE *f = fopen(path, "re");
    if (f && fgets(line, sizeof line, f))
        fprintf(stderr, "reprise: %s", line);
    if (f)
        fclose(f);

    print_signal(r);
    print_kept(r);
    fprintf(stderr, "reprise: next: reprise %s %s\n",
            record_key_has_source(r, "sample") && !record_key_has_source(r, "frameworks")
                ? "top --by line" /* there are only stacks, and no steps to report */
                : "report",
            r->name);
}

void record_summary(const struct record *r)
{
    struct rp_recording rec = {.struct_size = sizeof rec};
    struct rp_err err = RP_ERR_INIT;

    /* Of several `record`s under one launcher, the last one to end prints the summary for all. */
    long ended = record_note(r, ".ended");
    char path[PATH_MAX + 16];
    struct stat st;
    snprintf(path, sizeof path, "%s/.begun", r->folder);
    bool last = r->rank < 0 || stat(path, &st) || ended >= (long)st.st_size;

    remove_unfinished(r->folder);
    if (rp_recording_divide(r->folder, &err) != RP_OK)
        cli_fail(err.code, &err);
    if (r->quiet || !last)
        return;
    if (rp_recording_scan(r->folder, &rec, &err) != RP_OK) {
        cli_fail(err.code, &err);
        return;
    }
    if (rec.events || rec.lost) {
        print_events(r, &rec);
    } else if (!r->program) {
        fputs("reprise: nothing recorded: the process or the time ended before the recording had "
              "begun\n",
              stderr);
    } else {
        record_tell_nothing(r, &rec);
        print_signal(r);
    }
}

/* -------------------------------------------------------------------------- control */

static int control_usage(const char *text)
{
    struct rp_err err = RP_ERR_INIT;

    snprintf(err.text, sizeof err.text, "%s", text);
    return cli_usage("record", &err);
}

/* Waits until a process has followed; processes look ten times a second. */
static bool control_is_followed(const char *folder, bool mark, uint64_t before)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    uint64_t commands, marks;

    for (int i = 0; i < 150; i++) {
        rp_recording_answers(folder, &commands, &marks);
        if ((mark ? marks : commands) != before)
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

/* Whether the last `start` or `stop` in the control file is a stop. */
static bool is_paused(const char *path)
{
    FILE *f = fopen(path, "re");
    char line[600];
    bool paused = false;

    while (f && fgets(line, sizeof line, f)) {
        if (!strcmp(line, "stop\n") || !strcmp(line, "start\n"))
            paused = line[2] == 'o';
    }
    if (f)
        fclose(f);
    return paused;
}

static int mark_failed(const char *folder, const char *why)
{
    fprintf(stderr, "reprise: the mark is not in the recording '%s': %s\n", folder, why);
    return 1;
}

static int control_result(const char *folder, const char *verb, uint64_t before)
{
    bool mark = !strcmp(verb, "mark");

    if (control_is_followed(folder, mark, before))
        return 0;
    if (!strcmp(verb, "trigger")) {
        fprintf(stderr, "reprise: nothing was kept of '%s': no process is recording now\n", folder);
        return 1;
    }
    if (mark)
        return mark_failed(folder, "no process is recording now");
    fprintf(stderr,
            "reprise: no process has followed yet: '%s' applies to those that begin to record from "
            "now on\n",
            verb);
    return 0;
}

int record_control(const struct cli_call *call)
{
    bool mark = !strcmp(call->words[0], "mark"), trigger = !strcmp(call->words[0], "trigger");
    struct rp_err err = RP_ERR_INIT;
    char path[PATH_MAX], line[600];
    uint64_t commands, marks;

    if (call->nwords != (mark ? 3u : 2u))
        return control_usage(
            mark ? "'record mark' takes a folder and a name"
                 : "'record start', 'record stop' and 'record trigger' take a folder");
    if (mark && (strlen(call->words[2]) > 500 || strchr(call->words[2], '\n')))
        return control_usage("the name of a mark must be one line of at most 500 bytes");
    int n = trigger ? snprintf(line, sizeof line, "trigger %lld\n", (long long)time(NULL))
                    : snprintf(line, sizeof line, "%s%s%s\n", call->words[0], mark ? " " : "",
                               mark ? call->words[2] : "");
    snprintf(path, sizeof path, "%s/.control", call->words[1]);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0) {
        snprintf(err.text, sizeof err.text, "'%.500s' is not a recording: %s", call->words[1],
                 strerror(errno));
        return cli_fail(RP_IO, &err);
    }
    if (mark && is_paused(path)) {
        close(fd);
        return mark_failed(call->words[1], "it is paused ('reprise record start' resumes it)");
    }
    rp_recording_answers(call->words[1], &commands, &marks);
    if (write(fd, line, (size_t)n) != n) {
        snprintf(err.text, sizeof err.text, "cannot write '%.500s': %s", path, strerror(errno));
        close(fd);
        return cli_fail(RP_IO, &err);
    }
    close(fd);
    return control_result(call->words[1], call->words[0], mark ? marks : commands);
}
