/* SPDX-License-Identifier: Apache-2.0 */
/* Installs a library from PyPI with the user's own pip, into a folder that nothing else reads. */
#include "exec/plugin/plugin.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static enum rp_code make_folder(char *path, struct rp_err *err)
{
    for (char *slash = path + 1; *slash; slash++) {
        if (*slash != '/')
            continue;
        *slash = 0;
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return rp_err_set_os(err, errno, "cannot create the folder '%s'", path);
        *slash = '/';
    }
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return rp_err_set_os(err, errno, "cannot create the folder '%s'", path);
    return RP_OK;
}

/* Runs a program with all its output going to `log`; returns its exit status, or -1 if it cannot be
   run. */
static int run_command(char *const argv[], int log)
{
    posix_spawn_file_actions_t actions;
    int status = -1;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, log, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, log, STDERR_FILENO);
    if (posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ) == 0)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    posix_spawn_file_actions_destroy(&actions);
    return status != -1 && WIFEXITED(status) && WEXITSTATUS(status) != 127 ? WEXITSTATUS(status)
                                                                           : -1;
}

static enum rp_code pip_install(const char *package, char *folder, struct rp_err *err)
{
    char python[] = "python3", m[] = "-m", pip[] = "pip", install[] = "install";
    char quiet[] = "--quiet", alone[] = "--no-deps", upgrade[] = "--upgrade";
    char binary[] = "--only-binary=:all:", target[] = "--target", name[128], words[600];

    char *const argv[] = {python,  m,      pip,    install, quiet, alone,
                          upgrade, binary, target, folder,  name,  NULL};
    int log = memfd_create("reprise-pip", MFD_CLOEXEC);
    enum rp_code code = RP_OK;

    if (log < 0)
        return rp_err_set_os(err, errno, "cannot run pip");
    snprintf(name, sizeof name, "%s", package);
    int status = run_command(argv, log);
    /* Finds the last line that is not empty. */
    char text[4096], *save = NULL;
    off_t end = lseek(log, 0, SEEK_END);
    ssize_t n = pread(log, text, sizeof text - 1,
                      end > (off_t)sizeof text - 1 ? end - (off_t)sizeof text + 1 : 0);

    words[0] = 0;
    text[n > 0 ? n : 0] = 0;
    for (char *line = strtok_r(text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save))
        if (line[strspn(line, " ")])
            snprintf(words, sizeof words, "%s", line);
    if (status < 0)
        code = rp_err_set(err, RP_MISSING, "python3 is needed to fetch '%s'", package);
    else if (status != 0)
        code = rp_err_set(err, RP_MISSING,
                          "pip could not fetch '%s' (status %d): %s\n  by hand: pip install "
                          "--no-deps --target %s %s",
                          package, status, words, folder, package);
    close(log);
    return code;
}

enum rp_code rp_plugin_install(const char *package, struct rp_err *err)
{
    struct rp_arena arena = RP_ARENA_INIT;
    char folder[PATH_MAX];

    if (strcmp(package, "xla-cpu-pjrt") != 0 && strcmp(package, "tensorflow-cpu") != 0)
        return rp_err_set(err, RP_USAGE,
                          "no package '%s' to install: xla-cpu-pjrt or tensorflow-cpu", package);
    const char *own = rp_plugin_folder(&arena);
    enum rp_code code =
        own ? RP_OK
            : rp_err_set(err, RP_MISSING,
                         "no home folder: set REPRISE_ENGINES to the folder to install into");
    if (code == RP_OK) {
        snprintf(folder, sizeof folder, "%s", own);
        code = make_folder(folder, err);
    }
    if (code == RP_OK)
        code = pip_install(package, folder, err);
    rp_arena_release(&arena);
    return code;
}
