/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs: a 64 KiB buffer in front of a descriptor, or memory that grows. A file is written in the
 * folder of its target, so that the rename cannot cross file systems. It has no name, so that
 * nothing is left however the program ends; if the file system has no such files, it has a
 * temporary name. Its mode is that of a new file, or that of the file it replaces. If the folder
 * takes no new file, and for links, devices and pipes, the target itself is opened.
 */
#include "io/output.h"
#include "base/each.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OUT_BUFFER ((size_t)64 << 10)
#define TEMP_TRIES 100

struct rp_out {
    char *name;
    char *temp; /* NULL if it is written in place or has no name */
    bool nameless;
    int fd; /* -1: memory */
    bool own_fd;
    uint64_t position;
    struct rp_err failure;
    size_t n;            /* in buffer */
    char *buffer;        /* OUT_BUFFER bytes */
    RP_VEC(char) memory; /* one byte more than was written, for the NUL */
};

static enum rp_code new_out(const char *name, int fd, struct rp_out **out, struct rp_err *err)
{
    struct rp_out *o = calloc(1, sizeof *o);

    *out = NULL;
    if (o) {
        o->fd = fd;
        o->name = strdup(name);
        o->buffer = malloc(OUT_BUFFER);
    }
    if (!o || !o->name || !o->buffer) {
        rp_out_abandon(o);
        return rp_err_nomem(err, "opening an output");
    }
    *out = o;
    return RP_OK;
}

void rp_out_abandon(struct rp_out *out)
{
    if (!out)
        return;
    if (out->own_fd)
        close(out->fd);
    if (out->temp)
        unlink(out->temp);
    rp_vec_release(&out->memory);
    RP_EACH(free, out->temp, out->buffer, out->name, out);
}

enum rp_code rp_out_open_fd(int fd, const char *name, struct rp_out **out, struct rp_err *err)
{
    return new_out(name, fd, out, err);
}

enum rp_code rp_out_open_memory(struct rp_out **out, struct rp_err *err)
{
    return new_out("(memory)", -1, out, err);
}

/* Makes a name in the folder of path that no other process uses. It does not contain path's own
   name, which may be as long as names can be. */
static char *temp_name(const char *path, int try_number)
{
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + 1 : 0;
    struct timespec now;
    char *name;

    clock_gettime(CLOCK_REALTIME, &now);
    if (asprintf(&name, "%.*s.reprise-%ld-%lx%x.tmp", folder, path, (long)getpid(),
                 (unsigned long)now.tv_nsec, (unsigned)try_number) < 0)
        return NULL;
    return name;
}

/* Opens a file in the folder of the output that nobody else sees. It gets a name by its
   descriptor. */
static bool open_nameless(struct rp_out *o)
{
    const char *slash = strrchr(o->name, '/');
    char *folder = slash ? strndup(o->name, (size_t)(slash - o->name) + 1) : strdup(".");

    if (folder && access("/proc/self/fd", X_OK) == 0)
        o->fd = open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    free(folder);
    o->nameless = o->fd >= 0;
    return o->nameless;
}

/* Gives a nameless file its temporary name. */
static bool name_file(struct rp_out *o)
{
    char link[64];

    snprintf(link, sizeof link, "/proc/self/fd/%d", o->fd);
    for (int i = 0; i < TEMP_TRIES; i++) {
        o->temp = temp_name(o->name, i);
        if (!o->temp) {
            errno = ENOMEM;
            return false;
        }
        if (linkat(AT_FDCWD, link, AT_FDCWD, o->temp, AT_SYMLINK_FOLLOW) == 0)
            return true;
        free(o->temp);
        o->temp = NULL;
        if (errno != EEXIST)
            return false;
    }
    return false;
}

/* Opens a temporary file; errno tells why it failed. */
static bool open_temp(struct rp_out *o)
{
    if (open_nameless(o))
        return true;
    for (int i = 0; i < TEMP_TRIES; i++) {
        char *name = temp_name(o->name, i);

        if (!name) {
            errno = ENOMEM;
            return false;
        }
        o->fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (o->fd >= 0) {
            o->temp = name;
            return true;
        }
        free(name);
        if (errno != EEXIST)
            return false;
    }
    return false;
}

static enum rp_code open_path(struct rp_out *o, struct rp_err *err)
{
    struct stat st;
    bool exists = lstat(o->name, &st) == 0;

    if (exists && S_ISREG(st.st_mode) && access(o->name, W_OK) != 0)
        return rp_err_set_os(err, errno, "cannot write '%s'", o->name);
    if ((!exists || S_ISREG(st.st_mode)) && open_temp(o)) {
        o->own_fd = true;
        if (exists && fchmod(o->fd, st.st_mode & 0777) != 0)
            return rp_err_set_os(err, errno, "cannot set the mode of '%s'", o->name);
        return RP_OK;
    }
    if (!exists)
        return rp_err_set_os(err, errno, "cannot write '%s'", o->name);
    o->fd = open(o->name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
    if (o->fd < 0)
        return rp_err_set_os(err, errno, "cannot write '%s'", o->name);
    o->own_fd = true;
    return RP_OK;
}

enum rp_code rp_out_open(const char *path, struct rp_out **out, struct rp_err *err)
{
    struct rp_out *o;

    *out = NULL;
    if (strcmp(path, "-") == 0)
        return rp_out_open_fd(STDOUT_FILENO, "standard output", out, err);
    RP_TRY(new_out(path, -1, &o, err));
    enum rp_code code = open_path(o, err);
    if (code != RP_OK) {
        rp_out_abandon(o);
        return code;
    }
    *out = o;
    return RP_OK;
}

static void write_fd(struct rp_out *o, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t done = write(o->fd, bytes, n);

        if (done >= 0) {
            bytes += done;
            n -= (size_t)done;
        } else if (errno == EAGAIN) {
            poll(&(struct pollfd){.fd = o->fd, .events = POLLOUT}, 1, -1);
        } else if (errno != EINTR) {
            rp_err_set_os(&o->failure, errno, "cannot write '%s'", o->name);
            return;
        }
    }
}

static void send_buffer(struct rp_out *o)
{
    if (o->failure.code == RP_OK && o->n > 0)
        write_fd(o, o->buffer, o->n);
    o->n = 0;
}

void rp_out_write(struct rp_out *out, const void *bytes, size_t n)
{
    if (n == 0 || out->failure.code != RP_OK)
        return;
    out->position += n;
    if (out->fd < 0) {
        if (rp_vec_reserve(&out->memory, n + 1, &out->failure) == RP_OK) {
            memcpy(out->memory.at + out->memory.n, bytes, n);
            out->memory.n += n;
        }
        return;
    }
    if (n > OUT_BUFFER - out->n)
        send_buffer(out);
    if (n >= OUT_BUFFER) {
        if (out->failure.code == RP_OK)
            write_fd(out, bytes, n);
        return;
    }
    memcpy(out->buffer + out->n, bytes, n);
    out->n += n;
}

void rp_out_text(struct rp_out *out, const char *text)
{
    rp_out_write(out, text, strlen(text));
}

void rp_out_char(struct rp_out *out, char c)
{
    rp_out_write(out, &c, 1);
}

void rp_out_printf(struct rp_out *out, const char *fmt, ...)
{
    char small[512], *text = small, *large = NULL;
    va_list args;

    va_start(args, fmt);
    int n = vsnprintf(small, sizeof small, fmt, args);
    va_end(args);
    if (n >= (int)sizeof small) {
        va_start(args, fmt);
        n = vasprintf(&large, fmt, args);
        va_end(args);
        text = large;
    }
    if (n >= 0)
        rp_out_write(out, text, (size_t)n);
    else if (out->failure.code == RP_OK)
        rp_err_nomem(&out->failure, "formatting text");
    free(large);
}

uint64_t rp_out_position(const struct rp_out *out)
{
    return out->position;
}

const char *rp_out_borrow_memory(struct rp_out *out, size_t *n)
{
    if (n)
        *n = out->memory.n;
    if (!out->memory.at)
        return "";
    out->memory.at[out->memory.n] = '\0';
    return out->memory.at;
}

static enum rp_code first_error(const struct rp_out *out, struct rp_err *err)
{
    if (out->failure.code != RP_OK && err)
        *err = out->failure;
    return out->failure.code;
}

enum rp_code rp_out_flush(struct rp_out *out, struct rp_err *err)
{
    if (out->fd >= 0)
        send_buffer(out);
    return first_error(out, err);
}

/* Does what is left when all bytes are written; errors go to out->failure. */
static void finish_file(struct rp_out *o)
{
    /* a pipe or a device cannot be synced, and need not */
    if (fsync(o->fd) != 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP) {
        rp_err_set_os(&o->failure, errno, "cannot write '%s'", o->name);
        return;
    }
    if (o->nameless && !name_file(o)) {
        rp_err_set_os(&o->failure, errno, "cannot write '%s'", o->name);
        return;
    }
    o->own_fd = false;
    if (close(o->fd) != 0 && errno != EINTR) {
        rp_err_set_os(&o->failure, errno, "cannot write '%s'", o->name);
        return;
    }
    if (!o->temp)
        return;
    if (rename(o->temp, o->name) != 0) {
        rp_err_set_os(&o->failure, errno, "cannot rename '%s' to '%s'", o->temp, o->name);
        return;
    }
    free(o->temp);
    o->temp = NULL;
}

enum rp_code rp_out_close(struct rp_out *out, struct rp_err *err)
{
    if (out->fd >= 0)
        send_buffer(out);
    if (out->failure.code == RP_OK && out->own_fd)
        finish_file(out);
    enum rp_code code = first_error(out, err);
    rp_out_abandon(out);
    return code;
}

enum rp_code rp_out_end(struct rp_out *out, enum rp_code code, struct rp_err *err)
{
    if (code == RP_OK)
        return rp_out_close(out, err);
    rp_out_abandon(out);
    return code;
}
