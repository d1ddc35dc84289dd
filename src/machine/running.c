/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `doctor --pid`: whether a process that runs can be asked for a profile by its own framework.
 * PyTorch's profiler (Kineto) asks a daemon from a datagram socket, which is listed in
 * /proc/net/unix by a name that begins so, if KINETO_USE_DAEMON was set; JAX waits only if the
 * program says so.
 */
#include "machine/doctor.h"

#include "base/scope.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MOST_FILES 4096 /* descriptors of the process that are looked at */

/* Whether a file of the process has the text. Its lines end with a NUL in some files. */
static bool proc_has(int64_t pid, const char *name, int end, const char *text)
{
    char path[64];
    RP_FREED char *line = NULL;
    size_t room = 0;
    bool found = false;

    snprintf(path, sizeof path, "/proc/%lld/%s", (long long)pid, name);
    FILE *f = fopen(path, "re");
    while (f && !found && getdelim(&line, &room, end, f) > 0)
        found = strstr(line, text) != NULL;
    if (f)
        fclose(f);
    return found;
}

static bool has_socket(int64_t pid, unsigned long inode)
{
    char path[64], wanted[40], found[40];
    ssize_t n = 0;

    snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
    for (int fd = 0; fd < MOST_FILES; fd++) {
        snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)pid, fd);
        n = readlink(path, found, sizeof found - 1);
        found[n > 0 ? n : 0] = '\0';
        if (!strcmp(found, wanted))
            return true;
    }
    return false;
}

/* Whether it has a socket of a client of dynolog. */
static bool asks_daemon(int64_t pid)
{
    char path[64], line[512];
    unsigned long inode;
    bool found = false;

    snprintf(path, sizeof path, "/proc/%lld/net/unix", (long long)pid);
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f))
        found = strstr(line, "dynoconfigclient") &&
                sscanf(line, "%*s %*s %*s %*s %*s %*s %lu", &inode) == 1 && has_socket(pid, inode);
    if (f)
        fclose(f);
    return found;
}

static void check_kineto(struct rp_arena *arena, int64_t pid, struct rp_doctor_row *row)
{
    row->check = "Kineto on demand";
    if (asks_daemon(pid)) {
        row->state = "ready";
        row->finding = rp_arena_textf(
            arena, "it asks a daemon: 'reprise record --pid %lld --with kineto'", (long long)pid);
    } else if (!proc_has(pid, "maps", '\n', "libtorch_cpu.so")) {
        row->state = "absent";
        row->finding = "PyTorch is not loaded in it";
    } else if (proc_has(pid, "environ", '\0', "KINETO_USE_DAEMON=")) {
        row->state = "limited";
        row->finding = "KINETO_USE_DAEMON is set, but it has no socket: it begins to ask seconds "
                       "after its import, or was built without";
    } else {
        row->state = "limited";
        row->finding = "PyTorch, without KINETO_USE_DAEMON in its environment";
        row->advice = rp_arena_textf(
            arena, "start it with KINETO_USE_DAEMON=1; 'reprise record --pid %lld' needs nothing",
            (long long)pid);
    }
}

static void check_jax(struct rp_arena *arena, int64_t pid, struct rp_doctor_row *row)
{
    row->check = "JAX on demand";
    row->state = "absent";
    row->finding = "JAX is not loaded in it";
    if (!proc_has(pid, "maps", '\n', "/jaxlib/"))
        return;
    row->state = "limited";
    row->finding = "JAX records on demand only in programs that call jax.profiler.start_server";
    row->advice = rp_arena_textf(
        arena, "'reprise record --pid %lld' sees its device work without it", (long long)pid);
}

size_t rp_doctor_running(struct rp_arena *arena, int64_t pid, struct rp_doctor_row *rows)
{
    check_kineto(arena, pid, &rows[0]);
    check_jax(arena, pid, &rows[1]);
    rows[0].purpose = rows[1].purpose = "record --pid";
    return RP_DOCTOR_RUNNING;
}
