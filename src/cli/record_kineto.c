/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `record --pid PID --with kineto`: a PyTorch job that was started with KINETO_USE_DAEMON asks a
 * daemon every few seconds whether it should profile itself. This command is that daemon for as
 * long as necessary: it tells the processes that were named what to record, waits for their files
 * and moves them into the folder of the recording. Nothing is loaded into the processes.
 *
 *     job       "ctxt" {gpu, pid, job}          ->   <- "ctxt" {number of processes}
 *     job       "req"  {kind, n, job, pids[n]}  ->   <- "req" the configuration, or nothing
 *
 * Messages are datagrams: the size of the payload, 32 bytes of type, the payload. An answer that
 * comes later than 90 ms is mistaken for that of the next question, so each is answered at once.
 */
#include "cli/record.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MOST_JOBS       64    /* processes */
#define MOST_MESSAGE    65536 /* bytes */
#define ASKS_WITHIN_S   30    /* it asks every 5 seconds, or as its configuration says */
#define WRITES_WITHIN_S 120   /* after its recording time: files of large models take long */
#define WARM_UP_MS      11000 /* time until all have asked and are warm, if several begin together */
#define ACTIVITIES      2 /* the bit of a question for the kinds of activities that can be recorded */
#define TYPE_BYTES      32

struct job {
    int64_t pid;
    bool told, done;
    int failed; /* errno if its file could not be taken, which then stays in place; otherwise 0 */
    off_t size; /* the size of its file at the previous look */
};

#pragma pack(push, 1)
struct message {
    uint64_t size;
    char type[TYPE_BYTES];
    char payload[MOST_MESSAGE];
};
#pragma pack(pop)

struct kineto {
    struct job jobs[MOST_JOBS];
    size_t n;
    char folder[PATH_MAX];    /* where the jobs write */
    char to[PATH_MAX];        /* the recording */
    char configuration[2048]; /* for the jobs */
    int64_t lasts_ms, told_ns;
    struct message message; /* the one that was read */
    char buffer[1 << 16];   /* for copies of files */
};

struct question { /* the payload of "req" before the pids */
    int32_t kind, n;
    int64_t job;
};

static int64_t clock_ns(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* -------------------------------------------------------------------------- the socket */

/* Copies the value of a variable in the environment with which a process was started; "" if it has
   none. */
static void variable_of(int64_t pid, const char *name, char *to, size_t size)
{
    size_t n = strlen(name), room = 0;
    char path[48], *entry = NULL;

    *to = '\0';
    snprintf(path, sizeof path, "/proc/%lld/environ", (long long)pid);
    FILE *f = fopen(path, "re");
    while (f && getdelim(&entry, &room, '\0', f) > 0)
        if (!strncmp(entry, name, n) && entry[n] == '=')
            snprintf(to, size, "%s", entry + n + 1);
    free(entry);
    if (f)
        fclose(f);
}

/* The name includes its final NUL; with a folder it is a file there. */
static int open_socket(const struct kineto *k, char *path, size_t size, struct rp_err *err)
{
    static const char name[] = "\0dynolog";
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t length = offsetof(struct sockaddr_un, sun_path) + sizeof name;
    char folder[256];
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;

    *path = '\0';
    variable_of(k->jobs[0].pid, "KINETO_IPC_SOCKET_DIR", folder, sizeof folder);
    memcpy(at.sun_path, name, sizeof name);
    if (*folder) {
        length = sizeof at;
        if (snprintf(at.sun_path, sizeof at.sun_path, "%s/dynolog", folder) >=
            (int)sizeof at.sun_path)
            errno = ENAMETOOLONG;
        snprintf(path, size, "%s", at.sun_path);
    }
    if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) &&
        !bind(fd, (struct sockaddr *)&at, length))
        return fd;
    if (errno == EADDRINUSE)
        snprintf(err->text, sizeof err->text,
                 "a dynolog daemon, or another 'record --with kineto', answers the jobs of this "
                 "machine: end it, or ask it ('dyno gputrace --pids %lld')",
                 (long long)k->jobs[0].pid);
    else
        snprintf(err->text, sizeof err->text, "cannot open the socket of Kineto%s%.300s%s: %s",
                 *path ? " '" : "", path, *path ? "'" : "", strerror(errno));
    *path = '\0';
    if (fd >= 0)
        close(fd);
    return -1;
}

static void answer(int fd, const struct sockaddr_un *to, socklen_t length, const char *type,
                   const void *payload, size_t size)
{
    struct {
        uint64_t size;
        char type[TYPE_BYTES];
    } head = {.size = size};
    struct iovec parts[2] = {{&head, sizeof head}, {(void *)(uintptr_t)payload, size}};
    struct sockaddr_un at = *to;
    struct msghdr m = {.msg_name = &at, .msg_namelen = length, .msg_iov = parts, .msg_iovlen = 2};

    snprintf(head.type, sizeof head.type, "%s", type);
    (void)!sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT); /* it asks again */
}

/* Finds a named process by its number, as the kernel reports it or, in a container, as the process
   itself does. */
static struct job *job_of(struct kineto *k, pid_t sender, const struct question *q,
                          const char *pids)
{
    int32_t pid;

    for (size_t i = 0; i < k->n; i++) {
        if (k->jobs[i].pid == sender)
            return &k->jobs[i];
        for (int32_t p = 0; sender <= 0 && p < q->n; p++) {
            memcpy(&pid, pids + (size_t)p * sizeof pid, sizeof pid);
            if (k->jobs[i].pid == pid)
                return &k->jobs[i];
        }
    }
    return NULL;
}

static void answer_question(struct kineto *k, int fd, const struct sockaddr_un *from,
                            socklen_t length, const struct message *m, pid_t sender)
{
    struct question q;

    memcpy(&q, m->payload, sizeof q);
    if (q.n < 0 || (size_t)q.n > (m->size - sizeof q) / sizeof(int32_t))
        return;
    struct job *job = job_of(k, sender, &q, m->payload + sizeof q);
    if (!job || job->told || !(q.kind & ACTIVITIES)) {
        answer(fd, from, length, "req", "", 0);
        return;
    }
    answer(fd, from, length, "req", k->configuration, strlen(k->configuration));
    job->told = true;
    k->told_ns = clock_ns(CLOCK_MONOTONIC);
}

/* Handles one message from a process of this user. */
static void take_message(struct kineto *k, int fd)
{
    struct message *m = &k->message;
    char control[CMSG_SPACE(sizeof(struct ucred))] = {0};
    struct sockaddr_un from = {.sun_family = AF_UNIX};
    struct iovec part = {m, sizeof *m};
    struct msghdr head = {.msg_name = &from,
                          .msg_namelen = sizeof from,
                          .msg_iov = &part,
                          .msg_iovlen = 1,
                          .msg_control = control,
                          .msg_controllen = sizeof control};
    ssize_t n = recvmsg(fd, &head, MSG_DONTWAIT);
    struct cmsghdr *c = n >= 0 ? CMSG_FIRSTHDR(&head) : NULL;
    struct ucred who = {0, (uid_t)-1, (gid_t)-1};
    int32_t processes = 1;

    if (c && c->cmsg_type == SCM_CREDENTIALS)
        memcpy(&who, CMSG_DATA(c), sizeof who);
    if (n < (ssize_t)offsetof(struct message, payload) || who.uid != geteuid() ||
        m->size != (uint64_t)n - offsetof(struct message, payload))
        return;
    if (!strncmp(m->type, "ctxt", TYPE_BYTES))
        answer(fd, &from, head.msg_namelen, "ctxt", &processes, sizeof processes);
    else if (!strncmp(m->type, "req", TYPE_BYTES) && m->size >= sizeof(struct question))
        answer_question(k, fd, &from, head.msg_namelen, m, who.pid);
}

/* -------------------------------------------------------------------------- files */

/* Whether the file ends like JSON. */
static bool is_whole(int fd, off_t size)
{
    char end[64];
    ssize_t n = pread(fd, end, sizeof end, size > (off_t)sizeof end ? size - (off_t)sizeof end : 0);

    while (n > 0 && isspace((unsigned char)end[n - 1]))
        n--;
    return n > 0 && end[n - 1] == '}';
}

/* Returns 0, or errno; a failed copy is removed. */
static int copy_file(struct kineto *k, int from, const char *path)
{
    int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), why = to < 0 ? errno : 0;
    ssize_t n = 0, written = 0;

    if (to < 0)
        return why;
    for (off_t at = 0; !why && (n = pread(from, k->buffer, sizeof k->buffer, at)) != 0; at += n) {
        written = n > 0 ? write(to, k->buffer, (size_t)n) : -1;
        why = written == n ? 0 : written < 0 ? errno : ENOSPC;
    }
    why = close(to) && !why ? errno : why;
    if (why)
        unlink(path);
    return why;
}

/* Takes the file of a job when it is complete: its size stays the same, and its last character is
   that of JSON. The job puts its number before the ending; a container has its own file system. */
static void take_file(struct kineto *k, struct job *job)
{
    char root[40] = "", path[2 * PATH_MAX], to[PATH_MAX + 40];
    struct stat st;
    int fd = -1;

    for (size_t i = 0; i < 2 && fd < 0; i++) {
        if (i)
            snprintf(root, sizeof root, "/proc/%lld/root", (long long)job->pid);
        snprintf(path, sizeof path, "%s%s/trace_%lld.json", root, k->folder, (long long)job->pid);
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    }
    if (fd < 0)
        return;
    snprintf(to, sizeof to, "%s/kineto_%lld.json", k->to, (long long)job->pid);
    if (!fstat(fd, &st) && st.st_size && st.st_size == job->size && is_whole(fd, st.st_size)) {
        job->failed = copy_file(k, fd, to);
        job->done = !job->failed;
        if (job->done)
            unlink(path);
    }
    job->size = st.st_size;
    close(fd);
}

/* -------------------------------------------------------------------------- the command */

static bool parse_jobs(struct kineto *k, const char *text, struct rp_err *err)
{
    char *end = NULL;

    for (const char *at = text; k->n < MOST_JOBS; at = end + 1) {
        long long pid = strtoll(at, &end, 10);

        if (end == at || pid <= 0 || pid > INT32_MAX || (*end && *end != ','))
            break;
        k->jobs[k->n++].pid = pid;
        if (!*end)
            return true;
    }
    snprintf(err->text, sizeof err->text,
             "option '--pid' takes up to %d numbers of processes, as in 4711,4712, not '%.200s'",
             MOST_JOBS, text);
    return false;
}

/* Makes a place to which the job may write: below /tmp, or in the folder that its environment
   names. */
static bool make_place(struct kineto *k, struct rp_err *err)
{
    char base[PATH_MAX / 2];

    variable_of(k->jobs[0].pid, "KINETO_ONDEMAND_TRACE_DIR", base, sizeof base);
    snprintf(k->folder, sizeof k->folder, "%s/reprise-kineto-XXXXXX", *base ? base : "/tmp");
    if (mkdtemp(k->folder))
        return true;
    snprintf(err->text, sizeof err->text, "cannot make '%.300s': %s", k->folder, strerror(errno));
    return false;
}

static bool is_waiting(const struct kineto *k)
{
    for (size_t i = 0; i < k->n; i++)
        if (!k->jobs[i].done && !k->jobs[i].failed)
            return true;
    return false;
}

/* Tells why no more files will come; NULL to keep waiting. */
static const char *why_not(const struct kineto *k, int64_t began_ns)
{
    int64_t now = clock_ns(CLOCK_MONOTONIC);
    char path[40];

    for (size_t i = 0; i < k->n; i++) {
        snprintf(path, sizeof path, "/proc/%lld", (long long)k->jobs[i].pid);
        if (!k->jobs[i].done && !k->jobs[i].failed && access(path, F_OK))
            return "the process has ended";
        if (!k->jobs[i].told && now - began_ns > ASKS_WITHIN_S * INT64_C(1000000000))
            return "it does not ask: PyTorch must be imported with KINETO_USE_DAEMON=1 in its "
                   "environment";
    }
    if (k->told_ns && now - k->told_ns > (k->lasts_ms + WARM_UP_MS) * 1000000 +
                                             WRITES_WITHIN_S * INT64_C(1000000000))
        return "it was asked, and has written no file";
    return NULL;
}

static const char *serve(struct kineto *k, int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    int64_t began = clock_ns(CLOCK_MONOTONIC), looked = 0;
    const char *why = NULL;

    while (!why && is_waiting(k)) {
        if (poll(&ready, 1, 100) > 0)
            take_message(k, fd);
        if (clock_ns(CLOCK_MONOTONIC) - looked < 100000000)
            continue;
        for (size_t i = 0; i < k->n; i++)
            if (k->jobs[i].told && !k->jobs[i].done && !k->jobs[i].failed)
                take_file(k, &k->jobs[i]);
        looked = clock_ns(CLOCK_MONOTONIC);
        why = why_not(k, began);
    }
    return is_waiting(k) ? why : NULL;
}

int record_kineto(const char *pids, const char *folder, int64_t lasts_ns, const char *steps,
                  bool quiet)
{
    struct kineto *k = calloc(1, sizeof *k);
    struct rp_err err = RP_ERR_INIT;
    char path[PATH_MAX];
    size_t done = 0;

    if (!k)
        return cli_fail(RP_NOMEM, &err);
    k->lasts_ms = lasts_ns ? lasts_ns / 1000000 : 500;
    snprintf(k->to, sizeof k->to, "%s", folder);
    if (!parse_jobs(k, pids, &err)) {
        free(k);
        return cli_usage("record", &err);
    }
    int fd = make_place(k, &err) ? open_socket(k, path, sizeof path, &err) : -1;
    if (fd < 0 || !cli_make_path(folder)) {
        if (fd >= 0)
            snprintf(err.text, sizeof err.text, "cannot create folder '%.500s': %s", folder,
                     strerror(errno));
        rmdir(k->folder);
        free(k);
        return cli_fail(RP_IO, &err);
    }

    /* Set "10:5" or "5": this many steps, which the job counts. */
    const char *count = steps && strchr(steps, ':') ? strchr(steps, ':') + 1 : steps;
    char *c = k->configuration;
    size_t size = sizeof k->configuration;
    int64_t start = k->n > 1 ? clock_ns(CLOCK_REALTIME) / 1000000 + WARM_UP_MS : 0;
    int n = snprintf(c, size, "ACTIVITIES_LOG_FILE=%s/trace.json\n", k->folder);

    if (steps)
        snprintf(c + n, size - (size_t)n,
                 "PROFILE_START_ITERATION=0\nPROFILE_START_ITERATION_ROUNDUP=1\n"
                 "ACTIVITIES_ITERATIONS=%lld\n",
                 strtoll(count, NULL, 10));
    else
        snprintf(c + n, size - (size_t)n,
                 "PROFILE_START_TIME=%lld\nACTIVITIES_DURATION_MSECS=%lld\n", (long long)start,
                 (long long)k->lasts_ms);

    const char *why = serve(k, fd);
    close(fd);
    if (*path)
        unlink(path);
    rmdir(k->folder);
    for (size_t i = 0; i < k->n; i++) {
        done += k->jobs[i].done;
        if (k->jobs[i].failed)
            fprintf(stderr,
                    "reprise: cannot write 'kineto_%lld.json' into '%s': %s; it stays in '%s'\n",
                    (long long)k->jobs[i].pid, folder, strerror(k->jobs[i].failed), k->folder);
        else if (!k->jobs[i].done)
            fprintf(stderr, "reprise: nothing was recorded of process %lld: %s\n",
                    (long long)k->jobs[i].pid, why);
    }
    if (!quiet && done)
        fprintf(stderr, "reprise: next: reprise report %s\n", folder);
    fd = done == k->n ? 0 : 1;
    free(k);
    return fd;
}
