/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parent's side of a worker, and the worker without a child. A child that dies closes its end
 * of the socket, so the next answer does not come; the error then consists of the status of the
 * process and its last output. Output is kept in memory and shown only in that case.
 *
 * The library shares the child's memory with the code that answers, and may have damaged it:
 * answers are checked before they are used.
 */
#include "exec/worker/worker.h"

#include "base/text.h"
#include "exec/worker/wire.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_DEVICES (1u << 20)
#define MOST_ARRAYS  (1u << 28)

struct rp_worker {
    const struct rp_worker_ops *ops;
    struct rp_worker_start start;
    int fd, log;    /* of the child */
    int stdout_was; /* for work in this process: a copy of standard output */
    pid_t pid;      /* 0: there is none, or it was already reaped */
    struct rp_worker_facts facts;
};

bool rp_worker_is_profiled(void)
{
    static const char *const names[] = {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH",
                                        "NSYS_PROFILING_SESSION_ID", "ROCP_TOOL_LIBRARIES"};
    const char *preload = getenv("LD_PRELOAD");

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return true;
    return preload && strstr(preload, "Injection");
}

/* ---- a child that died ---- */

/* Finds the most telling line of the log: that of a failed check, else the last one. */
static void last_words(int log, char *out, size_t cap)
{
    static const char *const marks[] = {"Check failed", "what():", "Assertion", "FATAL", "ERROR:"};
    char text[8192], *next;
    off_t end = lseek(log, 0, SEEK_END);
    bool sure = false;

    out[0] = 0;
    off_t from = end > (off_t)sizeof text - 1 ? end - (off_t)sizeof text + 1 : 0;
    ssize_t n = end > 0 ? pread(log, text, sizeof text - 1, from) : 0;
    text[n > 0 ? n : 0] = 0;
    for (char *line = text; *line; line = next) {
        bool marked = false;

        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = 0;
        for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
            marked = marked || strstr(line, marks[i]);
        if (*line && (marked || !sure))
            rp_text_escape(out, cap, line, strlen(line));
        sure = sure || marked;
    }
}

static enum rp_code child_died(struct rp_worker *w, const char *doing, struct rp_err *err)
{
    int status = 0;
    char how[64] = "it ended", words[500];

    if (w->pid > 0)
        while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
            ;
    w->pid = 0;
    if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WIFEXITED(status))
        snprintf(how, sizeof how, "exit status %d", WEXITSTATUS(status));
    rp_err_set(err, RP_IO, "%s ended its process while %s: %s", w->ops->what, doing, how);
    last_words(w->log, words, sizeof words);
    return words[0] ? rp_err_context(err, RP_IO, "its last output: %s", words) : RP_IO;
}

/* ---- requests ---- */

/* Waits for an answer up to the timeout, then ends the child. */
static enum rp_code wait_for(struct rp_worker *w, const char *doing, struct rp_err *err)
{
    int64_t ms = w->start.timeout_ns / 1000000;
    struct pollfd in = {.fd = w->fd, .events = POLLIN};
    char words[500];
    int got;

    if (w->start.timeout_ns <= 0)
        return RP_OK;
    do
        got = poll(&in, 1, ms > INT_MAX ? INT_MAX : (int)ms);
    while (got < 0 && errno == EINTR);
    if (got)
        return RP_OK;
    kill(w->pid, SIGKILL);
    while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    w->pid = 0;
    rp_err_set(err, RP_IO, "%s did not answer for %.3g s while %s: its process was killed",
               w->ops->what, (double)w->start.timeout_ns / 1e9, doing);
    last_words(w->log, words, sizeof words);
    return words[0] ? rp_err_context(err, RP_IO, "its last output: %s", words) : RP_IO;
}

/* Reads the head of an answer, and if it is an error, the error. */
static enum rp_code hear_answer(struct rp_worker *w, const char *doing, uint64_t *n,
                                struct rp_err *err)
{
    struct rp_wire_head head;
    struct rp_err theirs = RP_ERR_INIT;

    RP_TRY(wait_for(w, doing, err));
    if (!rp_wire_receive(w->fd, &head, sizeof head))
        return child_died(w, doing, err);
    if (n)
        *n = head.n;
    if (head.code == RP_OK)
        return RP_OK;
    if (!rp_wire_receive(w->fd, &theirs, sizeof theirs))
        return child_died(w, doing, err);
    theirs.text[sizeof theirs.text - 1] = '\0';
    return rp_err_set(err, head.code <= RP_BUG ? (enum rp_code)head.code : RP_IO, "%s",
                      theirs.text);
}

static enum rp_code ask_child(struct rp_worker *w, enum rp_wire_kind kind, uint64_t n,
                              const char *doing, struct rp_err *err)
{
    struct rp_wire_head head = {kind, RP_OK, n};

    if (w->pid <= 0)
        return rp_err_set(err, RP_IO, "%s ended its process earlier", w->ops->what);
    return rp_wire_send(w->fd, &head, sizeof head) ? RP_OK : child_died(w, doing, err);
}

enum rp_code rp_worker_upload(struct rp_worker *w, struct rp_tensor *const *arguments,
                              struct rp_err *err)
{
    size_t n = w->facts.devices * w->facts.narguments;

    if (w->start.in_process)
        return w->ops->upload(w->start.self, arguments, err);
    RP_TRY(ask_child(w, RP_WIRE_UPLOAD, n, "arguments were sent", err));
    for (size_t i = 0; i < n; i++)
        if (!rp_wire_send_tensor(w->fd,
                                 i < w->start.narguments && arguments[i] == w->start.arguments[i]
                                     ? NULL
                                     : arguments[i]))
            return child_died(w, "arguments were sent", err);
    return hear_answer(w, "arguments were sent", NULL, err);
}

enum rp_code rp_worker_run(struct rp_worker *w, size_t n, int64_t *ns, struct rp_err *err)
{
    if (w->start.in_process)
        return rp_worker_run_here(w->ops, w->start.self, n, ns, err);
    RP_TRY(ask_child(w, RP_WIRE_RUN, n, "running the program", err));
    RP_TRY(hear_answer(w, "running the program", NULL, err));
    if (!rp_wire_receive(w->fd, ns, n * sizeof *ns))
        return child_died(w, "running the program", err);
    return RP_OK;
}

static enum rp_code receive_output(struct rp_worker *w, struct rp_tensor **out, struct rp_err *err)
{
    RP_TRY(rp_wire_receive_tensor(w->fd, out, err));
    return *out ? RP_OK : rp_err_set(err, RP_FORMAT, "%s gave no output", w->ops->what);
}

enum rp_code rp_worker_fetch(struct rp_worker *w, struct rp_tensor **outputs, struct rp_err *err)
{
    size_t n = w->facts.devices * w->facts.noutputs, got = 0;
    enum rp_code code;

    if (w->start.in_process)
        return w->ops->fetch(w->start.self, outputs, err);
    RP_TRY(ask_child(w, RP_WIRE_FETCH, 0, "outputs were read", err));
    RP_TRY(hear_answer(w, "outputs were read", NULL, err));
    for (code = RP_OK; got < n && code == RP_OK; got += code == RP_OK)
        code = receive_output(w, &outputs[got], err);
    if (code == RP_OK)
        return RP_OK;
    while (got)
        rp_tensor_drop(outputs[--got]);
    return code == RP_IO ? child_died(w, "outputs were read", err) : code;
}

enum rp_code rp_worker_mark(struct rp_worker *w, bool begin, struct rp_err *err)
{
    if (w->start.in_process) {
        if (w->ops->mark)
            w->ops->mark(w->start.self, begin);
        return RP_OK;
    }
    RP_TRY(ask_child(w, RP_WIRE_MARK, begin, "marking the runs", err));
    return hear_answer(w, "marking the runs", NULL, err);
}

enum rp_code rp_worker_profile(struct rp_worker *w, unsigned runs, uint8_t **xspace, size_t *n,
                               struct rp_err *err)
{
    uint64_t size = 0;

    *xspace = NULL;
    *n = 0;
    if (!w->ops->profile || !w->facts.can_profile)
        return rp_err_set(err, RP_MISSING,
                          "%s (%s) has no profiler, so there are no times of instructions",
                          w->ops->what, w->facts.platform);
    if (w->start.in_process)
        return w->ops->profile(w->start.self, runs, xspace, n, err);
    RP_TRY(ask_child(w, RP_WIRE_PROFILE, runs, "profiling", err));
    RP_TRY(hear_answer(w, "profiling", &size, err));
    if (size > INT32_MAX) /* the largest size of a protocol buffer */
        return rp_err_set(err, RP_FORMAT, "%s announced a profile of %llu bytes", w->ops->what,
                          (unsigned long long)size);
    *xspace = malloc(size ? size : 1);
    RP_TRY(rp_err_need(*xspace, err, "reading a profile"));
    if (!rp_wire_receive(w->fd, *xspace, size)) {
        free(*xspace);
        *xspace = NULL;
        return child_died(w, "profiling", err);
    }
    *n = size;
    return RP_OK;
}

/* ---- start and stop ---- */

static enum rp_code start_child(struct rp_worker *w, struct rp_err *err)
{
    int pair[2];

    w->log = memfd_create("reprise-log", MFD_CLOEXEC);
    if (w->log < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return rp_err_set_os(err, errno, "cannot create a channel to a child process");
    fflush(NULL);
    w->pid = fork();
    if (w->pid == 0) {
        close(pair[0]);
        dup2(w->log, STDOUT_FILENO);
        dup2(w->log, STDERR_FILENO);
        rp_worker_serve(w->ops, &w->start, pair[1]);
        _exit(
            0); /* nothing is unloaded: a library that fails at that has already given its answer */
    }
    close(pair[1]);
    w->fd = pair[0];
    if (w->pid < 0)
        return rp_err_set_os(err, errno, "cannot create a child process");
    RP_TRY(hear_answer(w, "loading and compiling", NULL, err));
    struct rp_worker_facts *f = &w->facts;
    if (!rp_wire_receive(w->fd, f, sizeof *f))
        return child_died(w, "loading and compiling", err);
    f->platform[sizeof f->platform - 1] = '\0';
    f->version[sizeof f->version - 1] = '\0';
    f->device[sizeof f->device - 1] = '\0';
    if (f->devices > MOST_DEVICES || f->narguments > MOST_ARRAYS || f->noutputs > MOST_ARRAYS ||
        f->can_profile > 1)
        return rp_err_set(err, RP_FORMAT, "%s answered with what cannot be", w->ops->what);
    return RP_OK;
}

/* Both use stdio's buffer, so it is flushed before descriptors change. */
static enum rp_code start_here(struct rp_worker *w, struct rp_err *err)
{
    fflush(stdout);
    w->stdout_was = dup(STDOUT_FILENO);
    if (w->stdout_was >= 0)
        dup2(STDERR_FILENO, STDOUT_FILENO);
    return w->ops->open(w->start.self, &w->facts, err);
}

enum rp_code rp_worker_start(const struct rp_worker_ops *ops, const struct rp_worker_start *start,
                             struct rp_worker **out, struct rp_err *err)
{
    struct rp_worker *w = calloc(1, sizeof *w);

    *out = NULL;
    RP_TRY(rp_err_need(w, err, "starting an engine"));
    *w = (struct rp_worker){.ops = ops, .start = *start, .fd = -1, .log = -1, .stdout_was = -1};
    enum rp_code code = start->in_process ? start_here(w, err) : start_child(w, err);
    if (code != RP_OK) {
        rp_worker_stop(w);
        return code;
    }
    *out = w;
    return RP_OK;
}

const struct rp_worker_facts *rp_worker_borrow_facts(const struct rp_worker *w)
{
    return &w->facts;
}

pid_t rp_worker_process(const struct rp_worker *w)
{
    return w->start.in_process ? getpid() : w->pid;
}

void rp_worker_stop(struct rp_worker *w)
{
    if (!w)
        return;
    if (w->start.in_process)
        w->ops->close(w->start.self);
    if (w->stdout_was >= 0) {
        fflush(stdout);
        dup2(w->stdout_was, STDOUT_FILENO);
        close(w->stdout_was);
    }
    if (w->fd >= 0)
        close(w->fd); /* makes the child end */
    if (w->pid > 0)
        while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    if (w->log >= 0)
        close(w->log);
    free(w);
}
