/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds frameworks: the Python interpreter is the first word of the command that is one, or the one
 * in the first line of a script (torchrun, pytest). It is asked for its search path, so that
 * virtual environments and PYTHONPATH count; packages and their versions are then names of folders.
 * Nothing is imported.
 */
#include "dump/frameworks.h"
#include "base/text.h"

#include "dump/table.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The release of jaxlib that is as old as a release of a framework, by date. It need not be exact,
   because flags that differ between two known releases are looked up in the library itself. */
struct age {
    uint32_t version;
    const char *jaxlib;
};

static const struct age tensorflow_ages[] = {{2013000, "0.4.9"},  {2014000, "0.4.14"},
                                             {2015000, "0.4.18"}, {2016000, "0.4.23"},
                                             {2017000, "0.4.28"}, {2018000, "0.4.33"},
                                             {2019000, "0.5.1"},  {2020000, "0.7.0"},
                                             {2021000, "0.9.1"},  {0, NULL}};
static const struct age torch_xla_ages[] = {{2001000, "0.4.16"}, {2002000, "0.4.22"},
                                            {2003000, "0.4.26"}, {2004000, "0.4.30"},
                                            {2005000, "0.4.34"}, {2006000, "0.4.38"},
                                            {2007000, "0.5.3"},  {2008000, "0.7.0"},
                                            {2009000, "0.7.2"},  {0, NULL}};

static const struct package {
    enum rp_dump_framework framework;
    const char *name, *folder; /* names of the framework, of the package */
    const char *library;       /* a pattern beside the package's folder, or NULL */
    const struct age *ages;    /* NULL: its version is that of jaxlib, or it has no XLA */
} packages[] = {
    {RP_USES_JAX, "jax", "jaxlib", "jaxlib/libjax_common.so", NULL},
    {RP_USES_JAX, "jax", "jaxlib", "jaxlib/xla_extension.so", NULL},
    {RP_USES_TENSORFLOW, "tensorflow", "tensorflow", "tensorflow/libtensorflow_cc.so*",
     tensorflow_ages},
    {RP_USES_PYTORCH, "pytorch", "torch", NULL, NULL},
    {RP_USES_TORCH_XLA, "torch_xla", "torch_xla", "_XLAC*.so", torch_xla_ages},
    {RP_USES_RATEX, "ratex", "ratex", NULL, NULL},
    {RP_USES_BLADEDISC, "bladedisc", "torch_blade", NULL, NULL},
    {RP_USES_BLADEDISC, "bladedisc", "blade_disc_tf", NULL, NULL},
};

#define NPACKAGES (sizeof packages / sizeof packages[0])

/* ---- the interpreter ---- */

/* "python", "python3", "python3.11", with or without a folder */
static bool is_python(const char *word)
{
    const char *name = rp_text_file(word);

    if (strncmp(name, "python", 6) != 0 && strncmp(name, "pypy", 4) != 0)
        return false;
    name += name[1] == 'y' && name[2] == 'p' ? 4 : 6;
    return name[strspn(name, "0123456789.")] == '\0';
}

/* The file that a shell would run for a word. */
static bool find_program(const char *word, char *out, size_t cap)
{
    const char *path = getenv("PATH");

    if (strchr(word, '/'))
        return snprintf(out, cap, "%s", word) < (int)cap && !access(out, R_OK);
    while (path && *path) {
        size_t len = strcspn(path, ":");

        if (len && snprintf(out, cap, "%.*s/%s", (int)len, path, word) < (int)cap &&
            !access(out, X_OK))
            return true;
        path += len + (path[len] == ':');
    }
    return false;
}

/* The interpreter in the first line of a script: "#!/v/bin/python3 -s", "#!/usr/bin/env python3".
 */
static const char *script_interpreter(const char *word, struct rp_arena *arena)
{
    char path[PATH_MAX], line[512];
    const char *found = NULL;
    FILE *f = find_program(word, path, sizeof path) ? fopen(path, "re") : NULL;

    if (f && fgets(line, sizeof line, f) && line[0] == '#' && line[1] == '!') {
        char *rest = NULL, *part = strtok_r(line + 2, " \t\r\n", &rest);

        for (; part && !found; part = strtok_r(NULL, " \t\r\n", &rest))
            if (is_python(part))
                found = rp_arena_text(arena, part);
    }
    if (f)
        fclose(f);
    return found;
}

/* Skips the words of launchers, their options, and variables before the program. */
static const char *find_interpreter(const char *const *words, size_t n, struct rp_arena *arena)
{
    for (size_t i = 0; i < n; i++) {
        if (is_python(words[i]))
            return words[i];
        const char *found = words[i][0] == '-' ? NULL : script_interpreter(words[i], arena);
        if (found)
            return found;
    }
    return NULL;
}

/* ---- its search path ---- */

/* The interpreter's standard output; what it says on standard error is dropped. */
static FILE *ask_interpreter(const char *interpreter, pid_t *pid)
{
    static const char program[] = "import sys; print('\\n'.join(p for p in sys.path if p))";

    const char *const words[] = {interpreter, "-c", program, NULL};
    posix_spawn_file_actions_t actions;
    char *argv[4];
    int fds[2];

    memcpy(argv, words, sizeof argv); /* a copy of the pointers is safe, because posix_spawn does
                                         not change the words */
    *pid = -1;
    if (pipe2(fds, O_CLOEXEC))
        return NULL;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    int failed = posix_spawnp(pid, interpreter, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    if (!failed)
        return fdopen(fds[0], "r");
    *pid = -1;
    close(fds[0]);
    return NULL;
}

/* ---- packages ---- */

/* The version in the name of "tensorflow_cpu-2.21.0.dist-info" beside the package's folder. */
static const char *version_of(const char *site, const char *package, struct rp_arena *arena)
{
    DIR *dir = opendir(site);
    struct dirent *entry;
    const char *version = NULL;
    size_t n = strlen(package);

    while (dir && !version && (entry = readdir(dir))) {
        const char *dash = strchr(entry->d_name, '-'), *end = strstr(entry->d_name, ".dist-info");
        const char *rest = entry->d_name + n;

        if (!dash || !end || end < dash || strncmp(entry->d_name, package, n) != 0)
            continue;
        if (rest == dash || !strncmp(rest, "_cpu-", 5) || !strncmp(rest, "_gpu-", 5) ||
            !strncmp(rest, "_rocm-", 6) || !strncmp(rest, "_intel-", 7))
            version = rp_arena_textf(arena, "%.*s", (int)(end - dash - 1), dash + 1);
    }
    if (dir)
        closedir(dir);
    return version;
}

static const char *library_of(const char *site, const struct package *package,
                              struct rp_arena *arena)
{
    char pattern[PATH_MAX];
    const char *found = NULL;
    glob_t list;

    if (!package->library ||
        snprintf(pattern, sizeof pattern, "%s/%s", site, package->library) >= (int)sizeof pattern)
        return NULL;
    if (glob(pattern, 0, NULL, &list) == 0 && list.gl_pathc)
        found = rp_arena_text(arena, list.gl_pathv[0]);
    globfree(&list);
    return found;
}

static uint32_t age_of(const struct package *package, const char *version)
{
    const struct age *age = package->ages;
    uint32_t number = version ? rp_release_number(version) : 0, found = 0;

    if (!age || !version)
        return package->framework == RP_USES_JAX ? number : 0;
    for (; age->jaxlib; age++)
        if (age->version <= number)
            found = rp_release_number(age->jaxlib);
    return found;
}

static bool is_listed(const char *list, const char *name)
{
    size_t n = strlen(name);

    while (*list) {
        size_t len = strcspn(list, ",");

        if (len == n && !strncasecmp(list, name, n))
            return true;
        list += len + (list[len] == ',');
    }
    return false;
}

static enum rp_code check_list(const char *list, struct rp_err *err)
{
    while (*list) {
        size_t len = strcspn(list, ","), i = 0;

        while (i < NPACKAGES &&
               (strlen(packages[i].name) != len || strncasecmp(packages[i].name, list, len) != 0))
            i++;
        if (i == NPACKAGES && (len != 3 || strncasecmp(list, "xla", 3) != 0))
            return rp_err_set(err, RP_USAGE,
                              "there is no framework '%.*s': choose from xla, jax, tensorflow, "
                              "pytorch, torch_xla, ratex, bladedisc",
                              (int)len, list);
        list += len + (list[len] == ',');
    }
    return RP_OK;
}

enum rp_code rp_frameworks_find(const char *const *words, size_t n, const char *only,
                                struct rp_arena *arena, struct rp_frameworks *out,
                                struct rp_err *err)
{
    char site[PATH_MAX];
    FILE *lines = NULL;
    pid_t pid = -1;

    *out = (struct rp_frameworks){.interpreter = find_interpreter(words, n, arena)};
    if (only)
        RP_TRY(check_list(only, err));
    if (out->interpreter)
        lines = ask_interpreter(out->interpreter, &pid);
    while (lines && fgets(site, sizeof site, lines)) {
        site[strcspn(site, "\n")] = '\0';
        for (size_t i = 0; i < NPACKAGES; i++) {
            const struct package *package = &packages[i];
            struct rp_framework_found *found = &out->of[packages[i].framework];
            char folder[PATH_MAX];
            struct stat st;

            if ((found->present && (!package->library || found->library)) ||
                snprintf(folder, sizeof folder, "%s/%s", site, package->folder) >=
                    (int)sizeof folder ||
                stat(folder, &st) || !S_ISDIR(st.st_mode))
                continue;
            found->present = true;
            found->package = rp_arena_text(arena, folder);
            if (!found->version)
                found->version = version_of(site, package->folder, arena);
            found->library = library_of(site, package, arena);
            found->xla = age_of(package, found->version);
        }
    }
    if (lines)
        fclose(lines);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    for (size_t i = 0; i < NPACKAGES; i++) {
        struct rp_framework_found *found = &out->of[packages[i].framework];

        found->name = packages[i].name;
        if (only)
            found->present = is_listed(only, packages[i].name);
    }
    for (size_t i = 0; i < RP_USES_COUNT; i++)
        out->n += out->of[i].present;
    return rp_arena_check(arena, "looking for frameworks", err);
}

/* ---- names in libraries ---- */

static bool is_part(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Mapping is safe because an installed library is replaced, not shortened (as in
   rp_elf_has_symbol). */
bool rp_file_has_name(const char *path, const char *name)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = strlen(name);
    bool found = false;
    struct stat st;

    if (fd < 0)
        return false;
    if (fstat(fd, &st) || st.st_size <= 0) {
        close(fd);
        return false;
    }
    size_t size = (size_t)st.st_size;
    const char *all = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (all == MAP_FAILED)
        return false;
    for (const char *at = all; !found && (at = memmem(at, size - (size_t)(at - all), name, n));
         at++)
        found = (at == all || !is_part(at[-1])) && (at + n == all + size || !is_part(at[n]));
    munmap((void *)(uintptr_t)all, size);
    return found;
}
