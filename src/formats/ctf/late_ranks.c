/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that no launcher numbered. Processes of torch.multiprocessing.spawn, of Lightning's own
 * launcher and of jax.distributed learn their rank while they run, when their files are in the
 * folder of the host already. Each leaves a note beside it, and when it has ended its files move to
 * a folder of its rank:
 *
 *     .rank_4711_node7 "1 4"          process 4711 of host node7 is rank 1 of 4
 *     node7/s_4711_…                  becomes  rank1.node7/s_4711_…
 *
 * A rank of a launcher that started one process (a Slurm job of one task) is not a rank of the job.
 */
#include <reprise/recording.h>

#include "abi/ctf_wire.h"
#include "base/err.h"
#include "base/order.h"
#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MOST_WAIT_MS 5000

struct late_rank {
    int pid, rank, size;
};
typedef RP_VEC(struct late_rank) rank_vec;

struct divide {
    const char *root;
    char host[256];
    rank_vec ranks; /* of processes of this host that have ended, by process id */
};

RP_ORDER(by_pid, struct late_rank, RP_UP(pid))

static bool has_ended(int pid)
{
    return kill(pid, 0) && errno == ESRCH;
}

/* The process id in the name of a note of this host, or 0. */
static int note_pid(const struct divide *d, const char *name)
{
    int pid = 0, n = 0;

    return sscanf(name, ".rank_%d_%n", &pid, &n) == 1 && n && !strcmp(name + n, d->host) ? pid : 0;
}

/* Ranks that the first one started end after it. */
static bool ends_soon(int pid, int *left_ms)
{
    const struct timespec pause = {.tv_nsec = 10000000};

    for (; !has_ended(pid) && *left_ms > 0; *left_ms -= 10)
        nanosleep(&pause, NULL);
    return has_ended(pid);
}

static enum rp_code read_notes(struct divide *d, struct rp_err *err)
{
    DIR *dir = opendir(d->root);
    char path[PATH_MAX];
    struct dirent *entry;
    enum rp_code code = RP_OK;
    int left_ms = MOST_WAIT_MS;

    while (dir && code == RP_OK && (entry = readdir(dir))) {
        struct late_rank late = {.pid = note_pid(d, entry->d_name)};
        FILE *f = NULL;

        if (late.pid > 0 && ends_soon(late.pid, &left_ms) &&
            snprintf(path, sizeof path, "%s/%s", d->root, entry->d_name) < (int)sizeof path)
            f = fopen(path, "re");
        if (!f)
            continue;
        if (fscanf(f, "%d %d", &late.rank, &late.size) == 2 && late.rank >= 0 && late.size > 1)
            code = rp_vec_push(&d->ranks, late, err);
        fclose(f);
        unlink(path);
    }
    if (dir)
        closedir(dir);
    rp_sort(d->ranks.at, d->ranks.n, sizeof *d->ranks.at, by_pid);
    return code;
}

/* The rank of the process that wrote a file: s_4711_…, .slots_4711_…, .jax_4711_…; or NULL. */
static const struct late_rank *rank_of_file(const struct divide *d, const char *name)
{
    struct late_rank key = {0};

    if (sscanf(name, "%*[.a-z]_%d_", &key.pid) != 1)
        return NULL;
    return bsearch(&key, d->ranks.at, d->ranks.n, sizeof key, by_pid);
}

/* The description of a folder whose processes have no rank, or NULL. To be freed. */
static char *description_without_rank(const char *folder)
{
    static const size_t most = 64 << 10;
    char path[PATH_MAX], *text = NULL, *at;
    int rank, size = 2;
    FILE *f = NULL;

    if (snprintf(path, sizeof path, "%s/metadata", folder) < (int)sizeof path)
        f = fopen(path, "re");
    if (f)
        text = calloc(1, most);
    if (text && fread(text, 1, most - 1, f) == most - 1)
        text[0] = '\0'; /* none of ours */
    if (f)
        fclose(f);
    at = text ? strstr(text, " rank = ") : NULL;
    if (at && sscanf(at, " rank = %d; world_size = %d", &rank, &size) == 2 && size <= 1 &&
        strchr(strchr(at, ';') + 1, ';'))
        return text;
    free(text);
    return NULL;
}

/* Writes the description with another rank, for readers that come at any time. */
static bool write_description(const char *folder, const char *text, const struct late_rank *late)
{
    char path[PATH_MAX], hidden[PATH_MAX];
    const char *at = strstr(text, " rank = ");
    const char *rest = strchr(strchr(at, ';') + 1, ';');
    struct stat st;
    FILE *f = NULL;

    if (snprintf(path, sizeof path, "%s/metadata", folder) < (int)sizeof path &&
        snprintf(hidden, sizeof hidden, "%s/.metadata_%d_", folder, (int)getpid()) <
            (int)sizeof hidden)
        f = fopen(hidden, "we");
    if (!f)
        return false;
    if (!stat(folder, &st))
        (void)!fchmod(fileno(f), RP_CTF_FILE_MODE(st.st_mode));
    bool good = fprintf(f, "%.*s rank = %d; world_size = %d%s", (int)(at - text), text, late->rank,
                        late->size, rest) > 0;
    good = !fclose(f) && good && !rename(hidden, path);
    if (!good)
        unlink(hidden);
    return good;
}

/* For those who may use the folder of the recording. */
static bool make_rank_folder(const char *root, const char *to)
{
    struct stat st;

    if (stat(root, &st))
        return false;
    return mkdir(to, 0700) ? errno == EEXIST
                           : !chmod(to, S_IRWXU | (st.st_mode & (S_IRWXG | S_ISGID)));
}

/* The folder of a rank beside that of its host: "node7" and "rank0.node7" become "rank1.node7". */
static bool open_rank(const struct divide *d, const char *name, const char *text,
                      const struct late_rank *late, char to[PATH_MAX])
{
    char path[PATH_MAX + 16];
    int rank, n = 0;

    if (sscanf(name, "rank%d.%n", &rank, &n) != 1)
        n = 0;
    if (snprintf(to, PATH_MAX, "%s/rank%d.%s", d->root, late->rank, name + n) >= PATH_MAX ||
        !make_rank_folder(d->root, to))
        return false;
    snprintf(path, sizeof path, "%s/metadata", to);
    return (access(path, F_OK) == 0 && strcmp(to + strlen(d->root) + 1, name) != 0) ||
           write_description(to, text, late);
}

/* Removes the folder of the host if nothing is left to read in it. */
static void remove_if_empty(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    bool empty = dir != NULL;
    char path[PATH_MAX];

    while (empty && (entry = readdir(dir)))
        empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
                !strcmp(entry->d_name, "metadata");
    if (dir)
        closedir(dir);
    if (empty && snprintf(path, sizeof path, "%s/metadata", folder) < (int)sizeof path &&
        !unlink(path))
        rmdir(folder);
}

static void divide_folder(const struct divide *d, const char *name)
{
    char folder[PATH_MAX], from[PATH_MAX], to[PATH_MAX], target[2 * PATH_MAX];
    char *text = NULL;
    DIR *dir = NULL;
    struct dirent *entry;

    if (snprintf(folder, sizeof folder, "%s/%s", d->root, name) < (int)sizeof folder)
        text = description_without_rank(folder);
    if (text)
        dir = opendir(folder);
    while (dir && (entry = readdir(dir))) {
        const struct late_rank *late = rank_of_file(d, entry->d_name);

        if (!late || !open_rank(d, name, text, late, to) ||
            snprintf(from, sizeof from, "%s/%s", folder, entry->d_name) >= (int)sizeof from)
            continue;
        snprintf(target, sizeof target, "%s/%s", to, entry->d_name);
        if (strcmp(from, target) != 0)
            rename(from, target);
    }
    if (dir) {
        closedir(dir);
        remove_if_empty(folder);
    }
    free(text);
}

enum rp_code rp_recording_divide(const char *folder, struct rp_err *err)
{
    struct divide d = {.root = folder};
    struct dirent *entry;
    DIR *dir = NULL;

    gethostname(d.host, sizeof d.host - 1);
    enum rp_code code = read_notes(&d, err);
    if (code == RP_OK && d.ranks.n)
        dir = opendir(folder);
    d.host[strcspn(d.host, ".")] = '\0';
    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.' && strstr(entry->d_name, d.host))
            divide_folder(&d, entry->d_name);
    if (dir)
        closedir(dir);
    rp_vec_release(&d.ranks);
    return code;
}
