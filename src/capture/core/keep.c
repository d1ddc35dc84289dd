/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder (record --keep): the recording is a ring of the last steps, and when a step
 * was much longer than usual, or `record trigger` asks, the files of that moment get a second name
 * in a folder that the ring does not empty:
 *
 *     run/rank0.host/s_...                          the ring
 *     run.kept/step-000250/rank0.host/s_...         the same files, by a hard link
 *
 * Such a folder is a recording of its own. Each process decides for itself, and asks all of the
 * recording to keep that moment, in the control file: one rank without the others explains nothing.
 * What several ask for within the length of the ring is one moment, unless a step is far slower
 * than the one that was kept. A mark in the recording says which part of the step was longer than
 * usual.
 *
 * On a machine where steps vary there are more moments than folders: the second half of these is
 * for steps that are slower than all that were kept, so that the worst of a week is among them.
 *
 * The thread of the steps only decides; files are linked and removed by the helper thread.
 */
#include "capture/core/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW    64 /* number of steps whose median is what is usual */
#define WARM      16 /* first steps that are never judged slow, because they compile and allocate */
#define MOST_KEPT 20 /* limit of folders, so that the disk stays bounded */
#define ANY_KEPT  10 /* of them for any step that is slow enough */
#define FAR       2  /* times as long as the step that was kept: a moment of its own */
#define MOST_LAST 256 /* steps of the ring */

enum { STEP, COLLECTIVES, INPUT, HOST, PARTS };

static struct {
    double ratio; /* 0: nothing is kept */
    uint32_t last;
    _Atomic uint64_t step;             /* number of steps measured: all but the first, number 0 */
    uint64_t ns[PARTS][WINDOW];        /* of the last ones */
    _Atomic uint64_t began[MOST_LAST]; /* in ticks, by step, for the last ones */
    _Atomic uint64_t quiet;            /* nothing is kept before this step */
    _Atomic uint32_t kept;
    uint64_t kept_ns;                     /* how long that took, as the helper knows it */
    uint64_t moment;                      /* number of the step that was kept last */
    _Atomic uint64_t moment_ns, worst_ns; /* how long it took; the longest of all that were kept */
    _Atomic uint64_t wanted, wanted_ns;   /* number of the step; 0: none */
} keep;

void rp_core_keep_init(void)
{
    const char *ratio = rp_core_option("keep"), *last = rp_core_option("last");

    keep.ratio = ratio ? strtod(ratio, NULL) : 0;
    keep.last = last ? (uint32_t)strtoul(last, NULL, 10) : 0;
    if (!keep.last || keep.last > MOST_LAST)
        keep.last = MOST_LAST;
}

void rp_core_keep_forget(void)
{
    keep.step = keep.quiet = 0;
    keep.kept = 0;
    keep.moment = keep.kept_ns = 0;
    keep.moment_ns = keep.worst_ns = 0;
    atomic_store(&keep.wanted, 0);
}

bool rp_core_keeps(void)
{
    return keep.ratio > 0;
}

/* -------------------------------------------------------------------------- deciding */

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static uint64_t usual(int part)
{
    uint64_t sorted[WINDOW], n = keep.step < WINDOW ? keep.step : WINDOW;

    memcpy(sorted, keep.ns[part], n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_size);
    return n ? sorted[n / 2] : 0;
}

static bool has_room(uint64_t ns)
{
    return keep.kept < ANY_KEPT || (keep.kept < MOST_KEPT && ns > keep.worst_ns);
}

void rp_core_keep_step(uint64_t step_ns, uint64_t collectives_ns, uint64_t input_ns)
{
    uint64_t waited = collectives_ns + input_ns;
    uint64_t ns[PARTS] = {step_ns, collectives_ns, input_ns,
                          step_ns > waited ? step_ns - waited : 0};

    if (!rp_core_keeps())
        return;
    uint64_t usual_ns = usual(STEP);
    if (keep.step >= WARM && (keep.step >= keep.quiet || step_ns > FAR * keep.moment_ns) &&
        has_room(step_ns) && (double)step_ns > keep.ratio * (double)usual_ns) {
        /* Writes into the recording which part of the step was longer than usual. */
        static const char *const names[PARTS] = {NULL, "in collectives, where others were late",
                                                 "for input data", "on the host"};
        int64_t most = INT64_MIN;
        int part = HOST;
        char text[200];
        for (int p = COLLECTIVES; p < PARTS; p++) {
            int64_t more = (int64_t)(ns[p] - usual(p));
            if (more > most) {
                most = more;
                part = p;
            }
        }
        snprintf(text, sizeof text,
                 "kept: step %llu took %.1f ms, usually %.1f ms: %.1f ms more %s",
                 (unsigned long long)keep.step + 1, (double)ns[STEP] / 1e6, (double)usual_ns / 1e6,
                 (double)most / 1e6, names[part]);
        rp_core_table.mark(text);
        keep.quiet = keep.step + keep.last;
        keep.moment_ns = step_ns;
        atomic_store(&keep.wanted_ns, step_ns);
        atomic_store(&keep.wanted, keep.step + 1);
        rp_core_helper_wake();
    }
    for (int p = 0; p < PARTS; p++)
        keep.ns[p][keep.step % WINDOW] = ns[p];
    keep.step++;
    atomic_store(&keep.began[keep.step % MOST_LAST], rp_core_now());
}

/* -------------------------------------------------------------------------- files */

/* Makes the folder "<root>.kept/<name>/<folder of the rank>". */
static bool make_folder(const char *name, char *to, size_t size)
{
    const char *rank = strrchr(rp_core.folder, '/');
    int n = snprintf(to, size, "%s.kept", rp_core.root);

    mkdir(to, rp_core.folder_mode);
    snprintf(to + n, size - (size_t)n, "/%s", name);
    mkdir(to, rp_core.folder_mode);
    n += 1 + (int)strlen(name);
    return snprintf(to + n, size - (size_t)n, "%s", rank ? rank : "/rank") <
               (int)(size - (size_t)n) &&
           (!mkdir(to, rp_core.folder_mode) || errno == EEXIST);
}

/* Hidden files are skipped, because they are not complete. */
bool rp_core_keep_now(const char *name)
{
    char to[sizeof rp_core.folder + 80], from_path[sizeof rp_core.folder + 300],
        to_path[sizeof to + 300];
    DIR *dir = atomic_load(&rp_core.page->opened) && !atomic_load(&rp_core.sealed) &&
                       make_folder(name, to, sizeof to)
                   ? opendir(rp_core.folder)
                   : NULL;
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(from_path, sizeof from_path, "%s/%s", rp_core.folder, entry->d_name);
        snprintf(to_path, sizeof to_path, "%s/%s", to, entry->d_name);
        (void)!link(from_path, to_path); /* the file may have left the ring just now */
    }
    if (dir)
        closedir(dir);
    return dir != NULL;
}

void rp_core_keep_moment(uint64_t step, uint64_t ns)
{
    bool same = keep.moment && step + keep.last > keep.moment && step < keep.moment + keep.last;
    char name[40];

    if (!rp_core_keeps() || keep.kept >= MOST_KEPT || (same && ns <= FAR * keep.kept_ns))
        return;
    keep.moment = step;
    keep.moment_ns = keep.kept_ns = ns;
    if (ns > keep.worst_ns)
        keep.worst_ns = ns;
    keep.kept++;
    keep.quiet = keep.step + keep.last;
    snprintf(name, sizeof name, "step-%06llu", (unsigned long long)step);
    rp_core_keep_now(name);
}

/* Called on the helper's thread ten times a second, and when a step is to be kept. */
void rp_core_keep_tick(void)
{
    uint64_t wanted = atomic_exchange(&keep.wanted, 0), step = keep.step;

    if (wanted && !atomic_load(&rp_core.sealed)) {
        /* Asks all processes of the recording, and this one, to keep the moment. */
        char path[sizeof rp_core.root + 16], line[64];
        uint64_t ns = keep.wanted_ns;
        int n = snprintf(line, sizeof line, "keep %llu %llu\n", (unsigned long long)wanted,
                         (unsigned long long)ns);
        snprintf(path, sizeof path, "%s/" RP_CTF_CONTROL_NAME, rp_core.root);
        int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        bool asked = fd >= 0 && write(fd, line, (size_t)n) == n;
        if (fd >= 0)
            close(fd);
        if (asked)
            rp_core_control_read(false);
        else
            rp_core_keep_moment(wanted, ns);
    }
    if (rp_core_keeps() && step > keep.last)
        rp_core_ring_drop_before(atomic_load(&keep.began[(step - keep.last) % MOST_LAST]));
}
