/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the places of a session: the folders to which the program could write, and a folder of ours
 * for the hook, logs, caches and redirected changes of the program.
 */
#include "try/place.h"
#include "base/scope.h"
#include "base/text.h"
#include "io/embedded.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern const struct rp_embedded rp_try_hook_text[]; /* hook.py */

/* ------------------------------------------------------------------ folders */

static bool is_inside(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    return !strncmp(path, folder, n) && (path[n] == '/' || !path[n]);
}

bool rp_try_place_covers(const struct rp_try_folders *folders, const char *path)
{
    for (size_t i = 0; i < folders->n; i++)
        if (is_inside(path, folders->paths[i]))
            return true;
    return false;
}

/* Folders of the system are left alone; so is "/", which contains them. */
void rp_try_place_add(struct rp_try_folders *folders, const char *name)
{
    static const char *const systems[] = {"/proc", "/sys", "/dev", "/run", "/tmp"};
    char path[PATH_MAX];
    struct stat st;

    if (!realpath(name, path) || stat(path, &st) || !S_ISDIR(st.st_mode) || !path[1] ||
        rp_try_place_covers(folders, path) || folders->n == RP_TRY_FOLDERS)
        return;
    for (size_t i = 0; i < sizeof systems / sizeof systems[0]; i++)
        if (i < 4 ? is_inside(path, systems[i]) : !strcmp(path, systems[i]))
            return;
    for (size_t i = 0; i < folders->n; i++) /* one that is inside of this one */
        if (is_inside(folders->paths[i], path)) {
            memcpy(folders->paths[i], path, sizeof path);
            return;
        }
    memcpy(folders->paths[folders->n++], path, sizeof path);
}

void rp_try_place_allow(struct rp_try_folders *writes, const char *path)
{
    char folder[PATH_MAX], *slash;

    snprintf(folder, sizeof folder, "%s", path);
    slash = strrchr(folder, '/');
    if (access(path, F_OK) && slash && slash != folder)
        *slash = '\0';
    if (writes->n < RP_TRY_FOLDERS && realpath(folder, writes->paths[writes->n]))
        writes->n++;
}

/* Adds the folder that "runs/a" or "--out=/data/x" names, or the one in which it would be made. */
static void add_argument(struct rp_try_folders *folders, const char *word)
{
    const char *equal = *word == '-' ? strchr(word, '=') : NULL;
    char path[PATH_MAX], *slash;

    snprintf(path, sizeof path, "%s", equal ? equal + 1 : word);
    if (!strchr(path, '/'))
        return;
    if (!access(path, F_OK))
        rp_try_place_add(folders, path);
    slash = strrchr(path, '/');
    if (slash != path) {
        *slash = '\0';
        rp_try_place_add(folders, path);
    }
}

/* Adds file systems that are mounted inside these folders, because an overlay does not show
   them. */
static void add_mounts(struct rp_try_folders *folders)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    size_t outer = folders->n;
    char line[2 * PATH_MAX], path[PATH_MAX];

    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%*d %*d %*s %*s %4095s", path) != 1 || folders->n == RP_TRY_FOLDERS)
            continue;
        for (size_t i = 0; i < outer; i++)
            if (is_inside(path, folders->paths[i]) && strcmp(path, folders->paths[i]) != 0) {
                memcpy(folders->paths[folders->n++], path, sizeof path);
                break;
            }
    }
    if (f)
        fclose(f);
}

void rp_try_place_folders(struct rp_try_folders *out, char *const *words, size_t n, const char *cwd)
{
    const char *home = getenv("HOME");

    rp_try_place_add(out, cwd);
    if (home && *home)
        rp_try_place_add(out, home);
    for (size_t i = 1; i < n; i++)
        add_argument(out, words[i]);
    add_mounts(out);
}

/* ------------------------------------------------------------------ scratch */

static bool write_hook(const char *scratch)
{
    RP_FREED char *text = rp_embedded_text(rp_try_hook_text, NULL);
    char path[PATH_MAX + 64];

    snprintf(path, sizeof path, "%s/hook", scratch);
    if (mkdir(path, 0755))
        return false;
    snprintf(path, sizeof path, "%s/hook/sitecustomize.py", scratch);
    FILE *f = fopen(path, "we");
    bool good = f && text && fputs(text, f) >= 0;
    return (!f || !fclose(f)) && good;
}

enum rp_code rp_try_place_make(char *out, size_t cap, const struct rp_try_folders *folders,
                               struct rp_err *err)
{
    const char *places[] = {getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"};
    char path[PATH_MAX], real[PATH_MAX];

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (!places[i] || !realpath(places[i], real) || rp_try_place_covers(folders, real) ||
            snprintf(path, sizeof path, "%s/reprise-try-XXXXXX", real) >= (int)sizeof path ||
            strlen(path) > 70 || !mkdtemp(path)) /* names of sockets must be short */
            continue;
        if (!write_hook(path))
            return rp_err_set_os(err, errno, "cannot write into '%s'", path);
        snprintf(out, cap, "%s", path);
        return RP_OK;
    }
    return rp_err_set(err, RP_IO,
                      "no folder for temporary files: set TMPDIR to one with a short name that is "
                      "outside of the program's folders");
}

static void remove_below(int folder, unsigned depth)
{
    DIR *dir = folder < 0 ? NULL : fdopendir(folder);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        const char *name = entry->d_name;

        if (!strcmp(name, ".") || !strcmp(name, ".."))
            continue;
        if (unlinkat(dirfd(dir), name, 0) && depth) {
            /* overlays leave folders that nobody may enter */
            (void)!fchmodat(dirfd(dir), name, 0700, 0);
            remove_below(openat(dirfd(dir), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                         depth - 1);
            unlinkat(dirfd(dir), name, AT_REMOVEDIR);
        }
    }
    if (dir)
        closedir(dir);
}

void rp_try_place_remove(const char *path)
{
    if (!rp_text_begins(rp_text_file(path),
                        "reprise-try-")) /* removes only a folder that was made above */
        return;
    remove_below(open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), 64);
    rmdir(path);
}

void rp_try_place_clear(const char *run)
{
    static const char *const left[] = {"changes", "tmp", "inductor", "triton"};
    int folder = open(run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (size_t i = 0; folder >= 0 && i < sizeof left / sizeof *left; i++) {
        remove_below(openat(folder, left[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), 64);
        unlinkat(folder, left[i], AT_REMOVEDIR);
    }
    if (folder >= 0)
        close(folder);
}

/* ------------------------------------------------------------------ memory */

void rp_try_place_memory(int64_t *free_bytes, int64_t *total_bytes)
{
    FILE *f = fopen("/proc/meminfo", "re");
    long long total = 0, left = 0;
    char line[128];

    while (f && fgets(line, sizeof line, f)) {
        sscanf(line, "MemTotal: %lld", &total);
        sscanf(line, "MemAvailable: %lld", &left);
    }
    if (f)
        fclose(f);
    *free_bytes = (int64_t)left * 1024;
    *total_bytes = (int64_t)total * 1024;
}
