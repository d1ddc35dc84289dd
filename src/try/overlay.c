/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folders that a program may read and cannot change: each one is covered by an overlay file system
 * in a mount namespace of the program's own, and its changes go to a folder of ours. A user
 * namespace makes this possible without privileges if the machine allows it. The kernel (Landlock)
 * refuses to write anywhere else, unless the user has allowed it.
 */
#include "try/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        close(fd);
    return good;
}

/* Maps the user's ids to themselves. Shared memory and queues of System V outlive processes, so
   each run gets its own, if the kernel has them. */
static int enter_namespaces(void)
{
    unsigned uid = getuid(), gid = getgid();
    char map[64];

    if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC) &&
        unshare(CLONE_NEWUSER | CLONE_NEWNS)) {
        if (unshare(CLONE_NEWNS)) /* with privileges nothing else is needed */
            return errno;
    } else {
        write_file("/proc/self/setgroups", "deny");
        snprintf(map, sizeof map, "%u %u 1", uid, uid);
        if (!write_file("/proc/self/uid_map", map))
            return EPERM;
        snprintf(map, sizeof map, "%u %u 1", gid, gid);
        if (!write_file("/proc/self/gid_map", map))
            return EPERM;
    }
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ? errno : 0;
}

/* Commas, colons and backslashes separate the parts of mount options. */
static void escape_option(char *to, size_t cap, const char *path)
{
    size_t n = 0;

    for (; *path && n + 3 < cap; path++) {
        if (strchr(",:\\", *path))
            to[n++] = '\\';
        to[n++] = *path;
    }
    to[n] = '\0';
}

/* `lower` is the folder, opened before another overlay hid it. */
static int cover(const char *folder, int lower, const char *upper, const char *work)
{
    char up[2 * PATH_MAX], working[2 * PATH_MAX], options[4 * PATH_MAX + 128];

    if ((mkdir(upper, 0755) && errno != EEXIST) || (mkdir(work, 0755) && errno != EEXIST))
        return errno;
    escape_option(up, sizeof up, upper);
    escape_option(working, sizeof working, work);
    snprintf(options, sizeof options, "lowerdir=/proc/self/fd/%d,upperdir=%s,workdir=%s,userxattr",
             lower, up, working);
    if (!mount("overlay", folder, "overlay", 0, options))
        return 0;
    options[strlen(options) - strlen(",userxattr")] =
        '\0'; /* older kernels, with privileges, refuse this option */
    return mount("overlay", folder, "overlay", 0, options) ? errno : 0;
}

static int cover_all(const struct rp_try_folders *folders, const int *lower,
                     const char changes[RP_TRY_PATH + 32])
{
    char upper[2 * RP_TRY_PATH], work[2 * RP_TRY_PATH];
    int failed = 0;

    for (size_t i = 0; i < folders->n && !failed; i++) {
        snprintf(upper, sizeof upper, "%s/%zu", changes, i);
        snprintf(work, sizeof work, "%s/%zu.work", changes, i);
        failed = cover(folders->paths[i], lower[i], upper, work);
        if (failed &&
            i == 0) { /* some file systems cannot hold the changes, which are then kept in memory */
            if (mount("tmpfs", changes, "tmpfs", 0, "mode=0755"))
                return errno;
            failed = cover(folders->paths[i], lower[i], upper, work);
        }
    }
    return failed;
}

/* What one run leaves in shared memory is not for the next one. */
static void cover_shared(const char *changes)
{
    static const char shared[] = "/dev/shm";
    char memory[2 * RP_TRY_PATH], upper[2 * RP_TRY_PATH + 16], work[2 * RP_TRY_PATH + 16];
    int lower = open(shared, O_PATH | O_CLOEXEC);

    snprintf(memory, sizeof memory, "%s/memory", changes);
    snprintf(upper, sizeof upper, "%s/upper", memory);
    snprintf(work, sizeof work, "%s/work", memory);
    if (lower >= 0 && strncmp(changes, shared, strlen(shared)) != 0 && !mkdir(memory, 0755) &&
        !mount("tmpfs", memory, "tmpfs", 0, "mode=0755"))
        cover(shared, lower, upper, work);
    if (lower >= 0)
        close(lower);
}

int rp_try_overlay_enter(const struct rp_try_folders *folders, const char *scratch)
{
    char changes[RP_TRY_PATH + 32];
    int lower[RP_TRY_FOLDERS], failed = enter_namespaces();

    snprintf(changes, sizeof changes, "%s/changes", scratch);
    if (!failed && mkdir(changes, 0755) && errno != EEXIST)
        failed = errno;
    for (size_t i = 0; i < folders->n; i++)
        lower[i] = open(folders->paths[i], O_PATH | O_CLOEXEC);
    if (!failed)
        failed = cover_all(folders, lower, changes);
    if (!failed)
        cover_shared(changes);
    for (size_t i = 0; i < folders->n; i++)
        close(lower[i]);
    return failed;
}

/* Tests it by covering a folder, writing into it and looking. */
bool rp_try_overlay_works(const char *scratch)
{
    struct rp_try_folders folders = {.n = 1};
    char file[PATH_MAX + 16];
    int status = 1;

    if (snprintf(folders.paths[0], PATH_MAX, "%s/covered", scratch) >= PATH_MAX ||
        (mkdir(folders.paths[0], 0755) && errno != EEXIST))
        return false;
    snprintf(file, sizeof file, "%s/file", folders.paths[0]);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = rp_try_overlay_enter(&folders, scratch)
                     ? -1
                     : open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

        _exit(fd < 0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 && access(file, F_OK);
}

/* ------------------------------------------------------------------ all other places */

#if __has_include(<linux/landlock.h>)
#include <linux/landlock.h>
#endif

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE /* of Linux 6.2 */
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

#ifdef LANDLOCK_ACCESS_FS_REFER /* without this right no file may be moved to another folder */

#define CREATES                                                                                    \
    (LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |                              \
     LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |    \
     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | \
     LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER)
#define WRITES (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE)

static uint64_t handled(long version)
{
    return CREATES | LANDLOCK_ACCESS_FS_WRITE_FILE |
           (version >= 3 ? LANDLOCK_ACCESS_FS_TRUNCATE : 0);
}

static void allow(int rules, const char *path, uint64_t access)
{
    struct landlock_path_beneath_attr rule = {.parent_fd = open(path, O_PATH | O_CLOEXEC)};
    struct stat st;

    if (rule.parent_fd < 0)
        return;
    rule.allowed_access =
        !fstat(rule.parent_fd, &st) && S_ISDIR(st.st_mode) ? access : access & WRITES;
    syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    close(rule.parent_fd);
}

void rp_try_overlay_close(const struct rp_try_folders *folders, const struct rp_try_folders *more,
                          const char *scratch)
{
    static const char *const systems[] = {"/dev", "/proc", "/sys"};
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    struct landlock_ruleset_attr all = {.handled_access_fs = handled(version)};
    int rules = version < 2 ? -1
                            : (int)syscall(SYS_landlock_create_ruleset, &all,
                                           sizeof all.handled_access_fs, 0);

    if (rules < 0)
        return;
    allow(rules, scratch, all.handled_access_fs);
    for (size_t i = 0; i < sizeof systems / sizeof systems[0]; i++)
        allow(rules, systems[i], all.handled_access_fs);
    for (size_t i = 0; i < folders->n; i++)
        allow(rules, folders->paths[i], all.handled_access_fs);
    for (size_t i = 0; i < more->n; i++)
        allow(rules, more->paths[i], all.handled_access_fs);
    if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        syscall(SYS_landlock_restrict_self, rules, 0);
    close(rules);
}

#else

void rp_try_overlay_close(const struct rp_try_folders *folders, const struct rp_try_folders *more,
                          const char *scratch)
{
    (void)folders;
    (void)more;
    (void)scratch;
}

#endif
