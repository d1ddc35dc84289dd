/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the files into which processes with <reprise/metrics.h> count, while they are written or
 * later. The lists of a file only grow at their heads, and each number is one word, so that reading
 * needs no lock; the numbers of a histogram belong together if its sequence is even and the same
 * before and after. A process that was killed in the middle of a sample leaves an odd one behind.
 *
 * Everything in a file may be wrong, and may change at any time, its length too: parts of it are
 * copied with pread before they are checked, and no list is followed further than the file has
 * units. A mapping would end this process if somebody shortens the file.
 */
#define RP_METRICS_LAYOUT_ONLY
#include "metrics/set.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <reprise/metrics.h>
#include <reprise/result.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define MAX_BYTES    ((size_t)1 << 36)
#define LONG_NS      100000000
#define KEPT_AFTER_S 1      /* age of a process below which its tick is measured again */
#define TRIES        100000 /* the most tries to read a histogram between two samples */
#define SPINS        64     /* looks at a histogram that is being written, before a pause */
#define PAUSES       5000   /* the most pauses of this length: half a second */
#define PAUSE_NS     100000
#define LONGEST_NAME 1024

struct metrics_file {
    const char *path;
    int fd;
    size_t size;
    uint32_t units;
    double ns_per_tick;
    int64_t first_ns; /* since 1970 */
    uint64_t first_ticks;
    struct rp_metric_set *out;
};

static enum rp_code damaged(const struct metrics_file *f, uint32_t unit, const char *what,
                            struct rp_err *err)
{
    return rp_err_set(err, RP_FORMAT, "'%s': %s at byte %llu", f->path, what,
                      (unsigned long long)unit * RP_METRICS_UNIT);
}

/* Copies the bytes at an offset; false if the file does not contain all of them (any more). Words
   are copied as a whole, because the kernel copies aligned ones at once. */
static bool copy_at(const struct metrics_file *f, size_t at, void *to, size_t bytes)
{
    ssize_t got;

    do
        got = pread(f->fd, to, bytes, (off_t)at);
    while (got < 0 && errno == EINTR);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return got == (ssize_t)bytes;
}

static bool copy_unit(const struct metrics_file *f, uint32_t unit, void *to, size_t bytes)
{
    return unit && unit < f->units && copy_at(f, (size_t)unit * RP_METRICS_UNIT, to, bytes);
}

/* ---- the clock ---- */

/* Reads the first line of a file without its newline; "" if it cannot be read. */
static void first_line(const char *path, char *to, size_t size)
{
    FILE *in = fopen(path, "re");

    to[0] = '\0';
    if (!in)
        return;
    if (!fgets(to, (int)size, in))
        to[0] = '\0';
    to[strcspn(to, "\n")] = '\0';
    fclose(in);
}

static bool is_this_boot(const struct rp_metrics_file *head)
{
    char boot[64];

    first_line("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    return boot[0] && !strncmp(boot, head->boot_id, sizeof head->boot_id);
}

/* Copies the head, with a reading of the clocks that was not being written. */
static bool copy_head(const struct metrics_file *f, struct rp_metrics_file *head)
{
    const size_t at = offsetof(struct rp_metrics_file, last_sequence);
    uint64_t before, after;
    int tries = 0;

    do
        if (!copy_at(f, at, &before, sizeof before) || !copy_at(f, 0, head, sizeof *head) ||
            !copy_at(f, at, &after, sizeof after))
            return false;
    while (((before & 1) || after != before) && tries++ < TRIES);
    return true;
}

/* Measures from the start of the process until it last read the clocks; if that time is short,
   until now on the same machine. */
static double measure_tick(const struct rp_metrics_file *head)
{
    const struct rp_metrics_moment first = head->first;
    struct rp_metrics_moment last = head->last;
    int64_t elapsed_ns;

    if (head->clock == RP_METRICS_CLOCK_CNTVCT && head->frequency)
        return 1e9 / head->frequency;
    if (head->clock != RP_METRICS_CLOCK_TSC)
        return 1;
#if defined(__x86_64__)
    if (!__builtin_sub_overflow(last.monotonic_ns, first.monotonic_ns, &elapsed_ns) &&
        elapsed_ns < LONG_NS && is_this_boot(head)) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        last.monotonic_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
        last.ticks = __rdtsc();
    }
#endif
    if (__builtin_sub_overflow(last.monotonic_ns, first.monotonic_ns, &elapsed_ns) ||
        elapsed_ns <= 0 || last.ticks <= first.ticks)
        return NAN;
    return (double)elapsed_ns / (double)(last.ticks - first.ticks);
}

/* Converts a moment in ticks to time since 1970; for a damaged file it may be out of range. */
static int64_t real_time(const struct metrics_file *f, uint64_t ticks)
{
    double ns = (double)(int64_t)(ticks - f->first_ticks) * f->ns_per_tick;
    int64_t out;

    if (!(fabs(ns) < 9e18) || __builtin_add_overflow(f->first_ns, (int64_t)ns, &out))
        return ns < 0 ? INT64_MIN : INT64_MAX;
    return out;
}

/* ---- whether the process runs ---- */

/* Whether the end of a process can be noticed here: its number is from the same space of numbers in
   the same boot. Machines and containers may share folders and even a name. */
static bool ran_here(const struct rp_metrics_file *head)
{
    struct stat space;

    return head->starttime >= 0 && head->pid_space && is_this_boot(head) &&
           !stat("/proc/self/ns/pid", &space) && space.st_ino == head->pid_space;
}

static bool is_running(const struct rp_metrics_file *head)
{
    char path[64], line[1024], *at;

    if (!is_this_boot(head))
        return false;
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)head->pid);
    first_line(path, line, sizeof line);
    at = strrchr(line, ')');
    if (at && at[1] && (at[2] == 'Z' || at[2] == 'X'))
        return false;
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at && strtoll(at, NULL, 10) == head->starttime;
}

/* Returns the tick of this machine that the caller keeps; a tick measured over some time is kept
   from then on. */
static double known_tick(const struct rp_metrics_file *head, double *kept)
{
    struct timespec now;

    if (!kept || head->clock != RP_METRICS_CLOCK_TSC || !is_this_boot(head))
        return measure_tick(head);
    if (*kept > 0)
        return *kept;
    double tick = measure_tick(head);
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec - head->first.monotonic_ns / 1000000000 > KEPT_AFTER_S && is_running(head))
        *kept = isnan(tick) ? 0 : tick;
    return tick;
}

/* ---- cells ---- */

/* A consistent copy of a histogram's numbers and counts. */
struct sampled {
    uint64_t sum, least, most, first, last;
    uint64_t count[RP_METRICS_OCTAVES][RP_METRICS_BUCKETS];
};

static enum rp_code copy_histogram(const struct metrics_file *f, uint32_t cell, struct sampled *to,
                                   struct rp_err *err)
{
    struct rp_metrics_histogram h;

    if (!copy_unit(f, cell, &h, sizeof h))
        return damaged(f, cell, "metric outside the file", err);
    to->sum = h.sum;
    to->least = h.least;
    to->most = h.most;
    to->first = h.first;
    to->last = h.last;
    for (int i = 0; i < RP_METRICS_OCTAVES; i++)
        if (!h.octave[i])
            memset(to->count[i], 0, sizeof to->count[i]);
        else if (!copy_unit(f, h.octave[i], to->count[i], sizeof to->count[i]))
            return damaged(f, h.octave[i], "counts outside the file", err);
    return RP_OK;
}

static bool copy_sequence(const struct metrics_file *f, uint32_t cell, uint64_t *to)
{
    return copy_at(f,
                   (size_t)cell * RP_METRICS_UNIT + offsetof(struct rp_metrics_histogram, sequence),
                   to, sizeof *to);
}

/* Reads a histogram between two samples. If its process was killed in a sample, it stays as it was
   then; if the process runs, it may be interrupted in a sample, and gets time to finish it. If
   there is no moment between two samples, the copy is counted as torn. */
static enum rp_code read_histogram(const struct metrics_file *f, uint32_t cell, struct sampled *to,
                                   struct rp_err *err)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    uint64_t before, after;
    int tries = 0, looks = 0;

    while (tries < TRIES) {
        if (!copy_sequence(f, cell, &before))
            return damaged(f, cell, "metric outside the file", err);
        if ((before & 1) && f->out->is_live && looks < SPINS * PAUSES) {
            if (++looks % SPINS == 0)
                nanosleep(&pause, NULL);
            continue;
        }
        RP_TRY(copy_histogram(f, cell, to, err));
        if (copy_sequence(f, cell, &after) && after == before) {
            f->out->torn += before & 1;
            return RP_OK;
        }
        tries++;
    }
    f->out->torn++;
    return RP_OK;
}

/* Returns the bounds of the values that a bucket counts. */
static void bucket_bounds(int octave, int bucket, double *least, double *most)
{
    double width = octave > 1 ? ldexp(1, octave - 1) : 1;

    *least = octave ? (64.0 + bucket) * width : bucket;
    *most = *least + width - 1;
}

static enum rp_code add_histogram(struct metrics_file *f, const char *name, uint32_t kind,
                                  const struct sampled *s, struct rp_err *err)
{
    double scale = kind == RP_METRICS_TICKS ? f->ns_per_tick : 1, least, most;
    struct rp_metric *m = rp_metric_set_metric(f->out, name,
                                               kind == RP_METRICS_SIZES    ? RP_METRIC_BYTES
                                               : kind == RP_METRICS_VALUES ? RP_METRIC_VALUE
                                                                           : RP_METRIC_TIME,
                                               err);
    uint64_t count = 0;

    if (!m)
        return RP_NOMEM;
    for (int i = 0; i < RP_METRICS_OCTAVES; i++)
        for (int k = 0; k < RP_METRICS_BUCKETS; k++) {
            if (!s->count[i][k])
                continue;
            bucket_bounds(i, k, &least, &most);
            RP_TRY(rp_metric_add(m, least * scale, most * scale, s->count[i][k], err));
            count += s->count[i][k];
        }
    if (!count)
        return RP_OK;
    m->count += count;
    m->sum += (double)s->sum * scale;
    m->least = fmin(m->least, (double)s->least * scale);
    m->most = fmax(m->most, (double)s->most * scale);
    if (!m->last_ns || real_time(f, s->first) < m->first_ns)
        m->first_ns = real_time(f, s->first);
    if (real_time(f, s->last) > m->last_ns)
        m->last_ns = real_time(f, s->last);
    return RP_OK;
}

static bool copy_name(const struct metrics_file *f, uint32_t id, char *to, uint32_t *kind)
{
    const size_t text = offsetof(struct rp_metrics_name, text);
    struct rp_metrics_name n;

    if (!copy_unit(f, id, &n, sizeof n) || n.length > LONGEST_NAME ||
        !copy_at(f, (size_t)id * RP_METRICS_UNIT + text, to, n.length + 1) || to[n.length])
        return false;
    *kind = n.kind;
    return true;
}

static enum rp_code read_cell(struct metrics_file *f, uint32_t unit, uint32_t *next,
                              struct sampled *scratch, struct rp_err *err)
{
    char name[LONGEST_NAME + 1];
    struct rp_metrics_cell c;
    uint32_t kind;

    if (!copy_unit(f, unit, &c, sizeof c) || !copy_name(f, c.name, name, &kind) || kind != c.kind ||
        kind < RP_METRICS_COUNTER || kind > RP_METRICS_SIZES)
        return damaged(f, unit, "invalid metric", err);
    *next = c.next;
    if (kind == RP_METRICS_COUNTER)
        return rp_metric_set_count(f->out, name, c.value, err);
    RP_TRY(read_histogram(f, unit, scratch, err));
    return add_histogram(f, name, kind, scratch, err);
}

static enum rp_code read_threads(struct metrics_file *f, uint32_t thread, struct rp_err *err)
{
    struct sampled *scratch = malloc(sizeof *scratch);
    enum rp_code code = rp_err_need(scratch, err, "reading metrics");
    uint32_t cell, left = f->units;

    while (code == RP_OK && thread) {
        struct rp_metrics_thread t;

        if (!copy_unit(f, thread, &t, sizeof t) || !left--) {
            code = damaged(f, thread, "invalid thread", err);
            break;
        }
        for (cell = t.first_cell; code == RP_OK && cell;)
            code = left-- ? read_cell(f, cell, &cell, scratch, err)
                          : damaged(f, cell, "endless list", err);
        thread = t.next;
    }
    free(scratch);
    return code;
}

static enum rp_code read_open(struct metrics_file *f, struct rp_err *err)
{
    struct rp_metric_set *out = f->out;
    struct rp_metrics_file head;

    if (!copy_head(f, &head) || head.magic != RP_METRICS_MAGIC)
        return rp_err_set(err, RP_FORMAT, "'%s': not a file of metrics", f->path);
    f->units = (uint32_t)(f->size / RP_METRICS_UNIT);
    f->ns_per_tick = known_tick(&head, out->tick_ns);
    if (isnan(f->ns_per_tick))
        return rp_err_set(err, RP_FORMAT, "'%s': invalid clock", f->path);
    f->first_ticks = head.first.ticks;
    f->first_ns = head.first.real_ns;
    out->is_own = true;
    out->is_live = is_running(&head);
    out->has_ended = !out->is_live && ran_here(&head);
    out->pid = head.pid;
    out->rank = head.rank < 0 ? RP_ABSENT_I64 : head.rank;
    out->world_size = head.world_size < 0 ? RP_ABSENT_I64 : head.world_size;
    out->host = rp_arena_copy(&out->arena, head.host, strnlen(head.host, sizeof head.host));
    out->command =
        rp_arena_copy(&out->arena, head.command, strnlen(head.command, sizeof head.command));
    if (head.job[0])
        out->job = rp_arena_copy(&out->arena, head.job, strnlen(head.job, sizeof head.job));
    out->lost = head.lost;
    RP_TRY(rp_arena_check(&out->arena, "reading metrics", err));
    return read_threads(f, head.first_thread, err);
}

/* Opens the file with its present size; *grown tells if it is larger than what was read before. */
static enum rp_code open_file(struct metrics_file *f, bool *grown, struct rp_err *err)
{
    size_t before = f->size;
    struct stat st;

    f->fd = open(f->path, O_RDONLY | O_CLOEXEC);
    if (f->fd < 0)
        return rp_err_set_os(err, errno, "'%s'", f->path);
    if (fstat(f->fd, &st) || !S_ISREG(st.st_mode) ||
        st.st_size < (off_t)sizeof(struct rp_metrics_file) || (size_t)st.st_size > MAX_BYTES) {
        close(f->fd);
        return rp_err_set(err, RP_FORMAT, "'%s': not a file of metrics", f->path);
    }
    f->size = (size_t)st.st_size;
    *grown = f->size > before;
    return RP_OK;
}

/* Data missing in the file may be in a part that was added while it was read. */
enum rp_code rp_metric_set_read_file(const char *path, struct rp_metric_set *out,
                                     struct rp_err *err)
{
    struct metrics_file f = {.path = path, .out = out};
    enum rp_code code = RP_FORMAT;
    bool grown = true;

    while (code == RP_FORMAT && grown) {
        struct rp_err ignored;

        code = open_file(&f, &grown, f.size ? &ignored : err);
        if (code != RP_OK)
            return code;
        code = RP_FORMAT;
        if (grown) {
            rp_metric_set_clear(out);
            code = read_open(&f, err);
        }
        close(f.fd);
    }
    rp_metric_set_sort(out);
    return code;
}
