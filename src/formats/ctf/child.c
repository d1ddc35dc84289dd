/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs libbabeltrace2 in a child process. The library aborts on unexpected input and loops forever
 * on some metadata; neither may end or block this process. The child sends events through a pipe;
 * the parent passes them to other.c. If the child dies, that is reported as an error of the trace;
 * its CPU time is limited by the size of the trace.
 *
 * A message is a u32 with the number of bytes that follow, a u8 with its type, and its fields;
 * numbers are 8 bytes in native byte order, texts are a length, the bytes, and a NUL.
 */
#include "base/clock.h"
#include "formats/ctf/ctf.h"
#include "formats/ctf/other.h"

#include "rp_config.h"

#if RP_HAVE_BABELTRACE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEND_BYTES   (64u << 10)
#define TEXT_MOST    (1u << 20) /* longer texts are truncated */
#define MESSAGE_MOST ((RP_CTF_FIELDS_MAX + 2) * 2u * (TEXT_MOST + 32u))
#define SILENCE_MS   600000 /* without a message */
#define LEAST_S      20     /* of CPU time, plus a second for each MiB of the trace */

enum what { EVENT, LOST, CLOCK, END };

/* -------------------------------------------------------------------------- the child's side */

struct rp_ctf_wire {
    int fd;
    RP_VEC(uint8_t) bytes;
    size_t message; /* where the current message begins */
};

/* The reader is gone, or there is no memory. */
static void give_up(void)
{
    _exit(1);
}

static void put_bytes(struct rp_ctf_wire *w, const void *from, size_t n)
{
    if (rp_vec_reserve(&w->bytes, n, NULL) != RP_OK)
        give_up();
    if (n)
        memcpy(w->bytes.at + w->bytes.n, from, n);
    w->bytes.n += n;
}

static void put_number(struct rp_ctf_wire *w, uint64_t value)
{
    put_bytes(w, &value, sizeof value);
}

static void put_text(struct rp_ctf_wire *w, const char *text)
{
    size_t n = text ? strnlen(text, TEXT_MOST) : 0;

    put_number(w, text ? n : UINT64_MAX);
    if (text) {
        put_bytes(w, text, n);
        put_bytes(w, "", 1);
    }
}

static void begin_message(struct rp_ctf_wire *w, enum what what)
{
    const uint8_t head[5] = {0, 0, 0, 0, (uint8_t)what};

    w->message = w->bytes.n;
    put_bytes(w, head, sizeof head);
}

static void send_all(struct rp_ctf_wire *w)
{
    size_t done = 0;

    while (done < w->bytes.n) {
        ssize_t n = write(w->fd, w->bytes.at + done, w->bytes.n - done);

        if (n <= 0 && errno != EINTR)
            give_up();
        done += n > 0 ? (size_t)n : 0;
    }
    w->bytes.n = 0;
}

static void end_message(struct rp_ctf_wire *w)
{
    uint32_t n = (uint32_t)(w->bytes.n - w->message - 4);

    memcpy(w->bytes.at + w->message, &n, 4);
    if (w->bytes.n >= SEND_BYTES)
        send_all(w);
}

void rp_ctf_wire_event(struct rp_ctf_wire *w, const struct rp_ctf_other_row *e)
{
    begin_message(w, EVENT);
    put_text(w, e->name);
    put_text(w, e->thread);
    put_bytes(w, (const int64_t[]){e->ns, e->pid, e->tid, e->cpu}, 4 * sizeof(int64_t));
    put_number(w, e->nfields);
    for (uint32_t i = 0; i < e->nfields; i++) {
        const struct rp_ctf_field *f = &e->fields[i];

        put_text(w, f->name);
        put_number(w, (uint64_t)f->type | (uint64_t)f->is_unsigned << 8);
        if (f->type == RP_ARG_STR)
            put_text(w, f->text);
        else
            put_bytes(w, f->type == RP_ARG_F64 ? (const void *)&f->f : &f->i, 8);
    }
    end_message(w);
}

void rp_ctf_wire_lost(struct rp_ctf_wire *w, uint64_t events, uint64_t packets, uint64_t undated)
{
    begin_message(w, LOST);
    put_bytes(w, (const uint64_t[]){events, packets, undated}, 3 * sizeof(uint64_t));
    end_message(w);
}

void rp_ctf_wire_clock(struct rp_ctf_wire *w, int64_t offset_ns)
{
    begin_message(w, CLOCK);
    put_bytes(w, &offset_ns, sizeof offset_ns);
    end_message(w);
}

static uint64_t size_of_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    uint64_t sum = 0;
    struct stat st;

    while (dir && (entry = readdir(dir)))
        if (!fstatat(dirfd(dir), entry->d_name, &st, 0) && S_ISREG(st.st_mode))
            sum += (uint64_t)st.st_size;
    if (dir)
        closedir(dir);
    return sum;
}

_Noreturn static void run_child(const char *folder, int to)
{
    struct rp_ctf_wire w = {.fd = to};
    struct rp_err err = RP_ERR_INIT;
    struct rlimit cpu;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (null >= 0) /* its output when it aborts is not useful */
        dup2(null, STDERR_FILENO);
    signal(SIGPIPE, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    cpu.rlim_cur = LEAST_S + (rlim_t)(size_of_folder(folder) >> 20);
    cpu.rlim_max = cpu.rlim_cur + 1;
    setrlimit(RLIMIT_CPU, &cpu);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    enum rp_code code = rp_ctf_babeltrace_run(folder, &w, &err);
    begin_message(&w, END);
    put_number(&w, (uint64_t)code);
    put_text(&w, err.text);
    end_message(&w);
    send_all(&w);
    _exit(0);
}

/* -------------------------------------------------------------------------- the parent's side */

struct child_reader {
    struct rp_ctf_other *other;
    int fd;
    RP_VEC(uint8_t) bytes;
    size_t at; /* of the next message */
    uint64_t events, lost_packets;
    int64_t offset_ns;
    bool has_offset, ended;
};

struct fields {
    const uint8_t *at, *end;
    bool bad;
};

static uint64_t get_number(struct fields *f)
{
    uint64_t value = 0;

    if ((size_t)(f->end - f->at) < sizeof value) {
        f->bad = true;
        return 0;
    }
    memcpy(&value, f->at, sizeof value);
    f->at += sizeof value;
    return value;
}

static const char *get_text(struct fields *f)
{
    uint64_t n = get_number(f);
    const char *text = (const char *)f->at;

    if (n == UINT64_MAX)
        return NULL;
    if (f->bad || (uint64_t)(f->end - f->at) <= n || f->at[n]) {
        f->bad = true;
        return NULL;
    }
    f->at += n + 1;
    return text;
}

static enum rp_code bad_message(struct rp_err *err)
{
    return rp_err_set(err, RP_IO, "invalid data from the libbabeltrace2 process");
}

static enum rp_code take_event(struct child_reader *r, struct fields *f, struct rp_err *err)
{
    const struct rp_read_options *o = r->other->t.options;
    struct rp_ctf_other_row e = {.name = get_text(f)};

    e.thread = get_text(f);
    e.ns = (int64_t)get_number(f);
    e.pid = (int64_t)get_number(f);
    e.tid = (int64_t)get_number(f);
    e.cpu = (int64_t)get_number(f);
    uint64_t n = get_number(f);
    if (f->bad || !e.name || n > RP_CTF_FIELDS_MAX)
        return bad_message(err);
    for (e.nfields = 0; e.nfields < n; e.nfields++) {
        struct rp_ctf_field *out = &e.fields[e.nfields];
        *out = (struct rp_ctf_field){.name = get_text(f)};
        uint64_t type = get_number(f);
        out->type = (uint8_t)type;
        out->is_unsigned = type >> 8 & 1;
        if (out->type == RP_ARG_STR) {
            out->text = get_text(f);
        } else {
            uint64_t value = get_number(f);
            memcpy(out->type == RP_ARG_F64 ? (void *)&out->f : &out->i, &value, sizeof value);
        }
        f->bad |= !out->name || (out->type == RP_ARG_STR && !out->text);
    }
    if (f->bad)
        return bad_message(err);
    if ((++r->events & 65535) == 0 && o->progress && !o->progress(o->progress_user, r->events, 0))
        return rp_err_set(err, RP_CANCELLED, "reading was cancelled");
    return rp_ctf_other_event(r->other, &e, err);
}

static enum rp_code take_message(struct child_reader *r, const uint8_t *at, size_t n,
                                 struct rp_err *err)
{
    struct rp_health *health = r->other->t.health;
    struct fields f = {at + 1, at + n, false};
    const char *text;
    uint64_t code;

    switch ((enum what)at[0]) {
    case EVENT:
        return take_event(r, &f, err);
    case LOST:
        health->lost_events += (int64_t)get_number(&f);
        r->lost_packets += get_number(&f);
        health->missing_ts += (int64_t)get_number(&f);
        return f.bad ? bad_message(err) : RP_OK;
    case CLOCK:
        r->offset_ns = (int64_t)get_number(&f);
        r->has_offset = true;
        return RP_OK;
    case END:
        code = get_number(&f);
        text = get_text(&f);
        r->ended = true;
        if (code != RP_OK)
            return rp_err_set(err, RP_FORMAT, "%s", text ? text : "cannot be read");
        return RP_OK;
    }
    return bad_message(err);
}

/* All complete messages in the buffer. */
static enum rp_code take_messages(struct child_reader *r, struct rp_err *err)
{
    while (r->bytes.n - r->at >= 5) {
        uint32_t n;

        memcpy(&n, r->bytes.at + r->at, 4);
        if (n < 1 || n > MESSAGE_MOST)
            return bad_message(err);
        if (r->bytes.n - r->at - 4 < n)
            break;
        RP_TRY(take_message(r, r->bytes.at + r->at + 4, n, err));
        r->at += 4 + (size_t)n;
    }
    memmove(r->bytes.at, r->bytes.at + r->at, r->bytes.n - r->at);
    r->bytes.n -= r->at;
    r->at = 0;
    return RP_OK;
}

static enum rp_code never_ends(struct rp_err *err)
{
    return rp_err_set(err, RP_FORMAT, "is damaged: libbabeltrace2 does not finish reading it");
}

static enum rp_code receive_events(struct child_reader *r, struct rp_err *err)
{
    while (!r->ended) { /* the pipe may stay open: other forked processes may have inherited it */
        struct pollfd there = {.fd = r->fd, .events = POLLIN};

        RP_TRY(rp_vec_reserve(&r->bytes, SEND_BYTES, err));
        if (poll(&there, 1, SILENCE_MS) == 0)
            return never_ends(err);
        ssize_t n = read(r->fd, r->bytes.at + r->bytes.n, SEND_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return rp_err_set_os(err, errno, "cannot read from the libbabeltrace2 process");
        if (n == 0)
            return RP_OK;
        r->bytes.n += (size_t)n;
        RP_TRY(take_messages(r, err));
    }
    return RP_OK;
}

/* The error for a child that ended without reporting one. */
static enum rp_code judge_end(int status, struct rp_err *err)
{
    if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))
        return never_ends(err);
    if (WIFSIGNALED(status))
        return rp_err_set(err, RP_FORMAT, "is damaged: libbabeltrace2 crashed on it (signal %d)",
                          WTERMSIG(status));
    return rp_err_set(err, RP_IO, "the libbabeltrace2 process failed (exit status %d)",
                      WEXITSTATUS(status));
}

static int end_child(pid_t child, int fd)
{
    int status = 0;

    close(fd);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* A process that is forked while other threads run may inherit a lock that nobody will release, and
   never says a word. It is replaced, with more patience for the next one: a trace may be slow. */
static enum rp_code start_child(struct child_reader *r, const char *folder, pid_t *child,
                                struct rp_err *err)
{
    static const int patience_ms[] = {3000, 20000, SILENCE_MS};
    int fds[2];

    for (int i = 0;; i++) {
        struct pollfd there = {.events = POLLIN};

        if (pipe2(fds, O_CLOEXEC))
            return rp_err_set_os(err, errno, "cannot start libbabeltrace2");
        *child = fork();
        if (*child == 0)
            run_child(folder, fds[1]);
        close(fds[1]);
        r->fd = there.fd = fds[0];
        if (*child < 0) {
            close(fds[0]);
            return rp_err_set_os(err, errno, "cannot start libbabeltrace2");
        }
        if (poll(&there, 1, patience_ms[i]) != 0 || patience_ms[i] == SILENCE_MS)
            return RP_OK;
        kill(*child, SIGKILL);
        end_child(*child, fds[0]);
    }
}

static enum rp_code read_child(struct child_reader *r, const char *folder, struct rp_err *err)
{
    pid_t child = 0;

    RP_TRY(start_child(r, folder, &child, err));
    enum rp_code code = receive_events(r, err);
    if (code != RP_OK)
        kill(child, SIGKILL);
    int status = end_child(child, r->fd);
    return code == RP_OK && !r->ended ? judge_end(status, err) : code;
}

/* With salvage the events before the damage are kept. */
static enum rp_code finish_trace(struct child_reader *r, enum rp_code code,
                                 const struct rp_read_options *options, struct rp_err *err)
{
    struct rp_ctf_other *o = r->other;

    if (code == RP_FORMAT && options->salvage && r->events) {
        o->t.health->salvaged = 1;
        code = rp_builder_warn(o->t.builder, err, "%s", err ? err->text : "damaged");
    }
    RP_TRY(code);
    if (r->lost_packets)
        RP_TRY(rp_builder_warn(o->t.builder, err, "the tracer lost %llu packets of events",
                               (unsigned long long)r->lost_packets));
    return rp_ctf_other_end(o, err);
}

enum rp_code rp_ctf_read_other(struct rp_input *in, const char *folder,
                               const struct rp_read_options *options, struct rp_import *to,
                               struct rp_err *err)
{
    int64_t began = rp_clock_ns();
    struct rp_ctf_other other = {0};
    struct child_reader r = {.other = &other};
    enum rp_code code = rp_proto_trace_init(&other.t, in, options, "ctf", err);

    if (code == RP_OK)
        code = finish_trace(&r, read_child(&r, folder, err), options, err);
    if (code == RP_OK) {
        other.t.trace->base_ns = r.offset_ns;
        other.t.trace->has_base = r.has_offset;
        code = rp_proto_trace_finish(&other.t, to, began, err);
    }
    rp_vec_release(&r.bytes);
    rp_ctf_other_release(&other);
    return code;
}

#else

enum rp_code rp_ctf_read_other(struct rp_input *in, const char *folder,
                               const struct rp_read_options *options, struct rp_import *to,
                               struct rp_err *err)
{
    (void)in;
    (void)options;
    (void)to;
    return rp_err_set(
        err, RP_UNSUPPORTED,
        "'%s' is a CTF trace of another tracer, which needs libbabeltrace2: install it (Debian: "
        "libbabeltrace2-dev) and build reprise again",
        folder);
}

#endif
