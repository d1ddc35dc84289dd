/* SPDX-License-Identifier: Apache-2.0 */
/* The file of outcomes: parses its lines, adds to it, empties it. */
#include "outcomes/outcomes.h"

#include "outcomes/change.h"
#include "rp_config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMAT     "1"
#define FIELDS     9
#define TEXT_MOST  120       /* characters of a field */
#define BYTES_MOST (1 << 20) /* of the file */
#define RATIO_MOST 1000.0    /* values beyond this, and below its inverse, are not outcomes */

/* ------------------------------------------------------------------ where */

static bool folder_of(char *out, size_t cap)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    int n = data && *data == '/'   ? snprintf(out, cap, "%s/reprise", data)
            : home && *home == '/' ? snprintf(out, cap, "%s/.local/share/reprise", home)
                                   : -1;

    return n > 0 && (size_t)n < cap;
}

bool rp_outcomes_path(char *out, size_t cap)
{
    char folder[PATH_MAX - 32];

    return folder_of(folder, sizeof folder) &&
           (size_t)snprintf(out, cap, "%s/outcomes.tsv", folder) < cap;
}

/* ------------------------------------------------------------------ texts */

/* Copies the characters that a field may contain: printable ASCII. */
static void clean(char *out, size_t cap, const char *text)
{
    size_t n = 0;

    for (; *text && n + 1 < cap; text++)
        out[n++] = *text >= ' ' && *text <= '~' ? *text : '?';
    out[n] = '\0';
}

static bool is_clean(const char *text)
{
    size_t n = 0;

    for (; text[n] >= ' ' && text[n] <= '~';)
        n++;
    return n && n <= TEXT_MOST && !text[n];
}

/* Finds the model of the processor in /proc/cpuinfo. */
static void find_host(char *out, size_t cap)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[256];

    snprintf(out, cap, "unknown");
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');

        line[strcspn(line, "\n")] = '\0';
        if (!colon || (strncmp(line, "model name", 10) != 0 && strncmp(line, "CPU part", 8) != 0))
            continue;
        colon += 1 + strspn(colon + 1, " ");
        if (*colon)
            clean(out, cap < TEXT_MOST ? cap : TEXT_MOST, colon);
        break;
    }
    if (f)
        fclose(f);
}

/* ------------------------------------------------------------------ reading */

static bool read_ratio(const char *text, double *out)
{
    char *end;

    if (*text < '0' || *text > '9') /* blanks, signs and words are not numbers here */
        return false;
    *out = strtod(text, &end);
    return !*end && isfinite(*out) && *out >= 1 / RATIO_MOST && *out <= RATIO_MOST;
}

static bool read_count(const char *text, int64_t *out)
{
    char *end;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return !*end && !errno;
}

/* Reads one line, which it cuts into its fields. */
static bool read_line(char *line, struct rp_outcome *out)
{
    char *field[FIELDS], *at = line, change[RP_CHANGE_MOST];
    size_t n = 0;

    while (n < FIELDS && (field[n] = strsep(&at, "\t")))
        n++;
    if (n < FIELDS || at || strcmp(field[0], FORMAT) != 0)
        return false;
    *out = (struct rp_outcome){.version = field[1],
                               .host = field[2],
                               .device = field[3],
                               .framework = field[4],
                               .change = field[6]};
    return is_clean(field[1]) && is_clean(field[2]) && is_clean(field[3]) && is_clean(field[4]) &&
           read_count(field[5], &out->parameters) &&
           rp_change_canonical(field[6], change, sizeof change) && !strcmp(change, field[6]) &&
           read_ratio(field[7], &out->predicted) && read_ratio(field[8], &out->measured);
}

enum rp_code rp_outcomes_parse(struct rp_outcomes *out, const char *text, size_t n,
                               struct rp_err *err)
{
    char *copy = rp_arena_copy(&out->arena, text, n);

    if (!*out->host)
        find_host(out->host, sizeof out->host);
    RP_TRY(rp_err_need(copy, err, "reading outcomes"));
    for (size_t at = 0; at < n;) {
        const char *newline = memchr(copy + at, '\n', n - at);
        size_t end = newline ? (size_t)(newline - copy) : n;
        bool whole = newline && !memchr(copy + at, '\0', end - at);
        struct rp_outcome one;

        copy[end] = '\0'; /* the text has room for it */
        if (whole && end > at && read_line(copy + at, &one))
            RP_TRY(rp_vec_push(&out->list, one, err));
        else
            out->nrefused += end > at;
        at = end + 1;
    }
    return RP_OK;
}

/* Reads the bytes of an open file; the caller frees them. */
static enum rp_code read_all(int fd, const char *path, char **text, size_t *n, struct rp_err *err)
{
    struct stat st;
    ssize_t got = 0;

    if (fstat(fd, &st) || !S_ISREG(st.st_mode))
        return rp_err_set(err, RP_IO, "'%s' is not a regular file", path);
    if (st.st_size > BYTES_MOST)
        return rp_err_set(err, RP_UNSUPPORTED,
                          "'%s' has more than 1 MiB: empty it with 'reprise try --forget'", path);
    *text = malloc((size_t)st.st_size + 1);
    RP_TRY(rp_err_need(*text, err, "reading outcomes"));
    while (*n < (size_t)st.st_size &&
           (got = pread(fd, *text + *n, (size_t)st.st_size - *n, (off_t)*n)) > 0)
        *n += (size_t)got;
    return got < 0 ? rp_err_set_os(err, errno, "cannot read '%s'", path) : RP_OK;
}

enum rp_code rp_outcomes_read(struct rp_outcomes *out, struct rp_err *err)
{
    char path[PATH_MAX], *text = NULL;
    size_t n = 0;

    find_host(out->host, sizeof out->host);
    if (!rp_outcomes_path(path, sizeof path))
        return RP_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? RP_OK
                   : rp_err_set_os(err, errno, "cannot open '%s'", path);
    enum rp_code code = read_all(fd, path, &text, &n, err);
    close(fd);
    if (code == RP_OK)
        code = rp_outcomes_parse(out, text, n, err);
    free(text);
    return code;
}

void rp_outcomes_use(struct rp_outcomes *out)
{
    struct rp_err why = RP_ERR_INIT;

    if (rp_outcomes_read(out, &why) != RP_OK)
        out->list.n = 0;
}

void rp_outcomes_release(struct rp_outcomes *x)
{
    rp_vec_release(&x->list);
    rp_arena_release(&x->arena);
}

/* ------------------------------------------------------------------ writing */

/* Opens the file for appending, and waits until no other process writes to it. */
static enum rp_code open_locked(int *fd, char *path, size_t cap, struct rp_err *err)
{
    struct stat st;

    if (!rp_outcomes_path(path, cap))
        return rp_err_set(err, RP_UNSUPPORTED,
                          "there is no folder to keep outcomes in: neither XDG_DATA_HOME nor HOME "
                          "names one");

    char folder[PATH_MAX - 32];
    if (folder_of(folder, sizeof folder)) {
        for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
            *slash = '\0';
            mkdir(folder, 0755);
            *slash = '/';
        }
        mkdir(folder, 0700);
    }

    *fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
    if (*fd < 0)
        return rp_err_set_os(err, errno, "cannot open '%s'", path);
    if (!fstat(*fd, &st) && S_ISREG(st.st_mode) && !flock(*fd, LOCK_EX))
        return RP_OK;
    close(*fd);
    return rp_err_set(err, RP_IO, "'%s' is not a file that can be locked", path);
}

static enum rp_code write_all(int fd, const char *path, const char *text, size_t n,
                              struct rp_err *err)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = write(fd, text + done, n - done);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return rp_err_set_os(err, errno, "cannot write '%s'", path);
        done += (size_t)got;
    }
    return RP_OK;
}

static const char *line_of(struct rp_arena *arena, const struct rp_outcome *o, const char *host)
{
    char device[TEXT_MOST], framework[TEXT_MOST], change[RP_CHANGE_MOST];

    clean(device, sizeof device, o->device);
    clean(framework, sizeof framework, o->framework);
    if (!*device || !*framework || !rp_change_canonical(o->change, change, sizeof change))
        return "";
    return rp_arena_textf(arena, FORMAT "\t" RP_VERSION "\t%s\t%s\t%s\t%lld\t%s\t%.6g\t%.6g\n",
                          host, device, framework, (long long)o->parameters, change, o->predicted,
                          o->measured);
}

/* Adds all lines at once, after ending a line that was cut. */
static enum rp_code add_lines(int fd, const char *path, const struct rp_outcome *list, size_t n,
                              struct rp_err *err)
{
    RP_SCOPED(rp_arena_release) struct rp_arena arena = RP_ARENA_INIT;
    char host[128], last = '\n';
    const char *text = "";
    struct stat st;

    find_host(host, sizeof host);
    if (!fstat(fd, &st) && st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) == 1 &&
        last != '\n')
        text = "\n";
    for (size_t i = 0; i < n; i++)
        text = rp_arena_textf(&arena, "%s%s", text, line_of(&arena, &list[i], host));
    RP_TRY(rp_arena_check(&arena, "keeping outcomes", err));
    return write_all(fd, path, text, strlen(text), err);
}

enum rp_code rp_outcomes_add(const struct rp_outcome *list, size_t n, struct rp_err *err)
{
    char path[PATH_MAX];
    int fd;

    RP_TRY(open_locked(&fd, path, sizeof path, err));
    enum rp_code code = add_lines(fd, path, list, n, err);
    close(fd);
    return code;
}

enum rp_code rp_outcomes_forget(struct rp_err *err)
{
    char path[PATH_MAX];
    enum rp_code code = RP_OK;
    int fd;

    if (!rp_outcomes_path(path, sizeof path) || access(path, F_OK))
        return RP_OK;
    RP_TRY(open_locked(&fd, path, sizeof path, err));
    if (ftruncate(fd, 0))
        code = rp_err_set_os(err, errno, "cannot empty '%s'", path);
    close(fd);
    return code;
}
