/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A run of the user's program, and the lines that its hook sends (hook.py).
 *
 *     reprise ── keeper ── program ── ranks, loaders …
 *
 * The keeper adopts every process that loses its parent, so that none is left when it ends; it ends
 * with the program, when it is told to, and when reprise dies. All processes below it are stopped
 * between the turns of the program: nothing works ahead meanwhile.
 */
#include "base/vec.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RP_TRY_RANKS 256
#define RP_TRY_LINE  2400
#define RP_TRY_PATH  128 /* for our own folders: names of sockets must be short */

#define RP_TRY_FOLDERS 16
struct rp_try_folders { /* folders that the program sees and cannot change; those inside others come
                           later */
    size_t n;
    char paths[RP_TRY_FOLDERS][PATH_MAX];
};

struct rp_try_start {
    const char *scratch; /* an existing folder for this run */
    const char *cwd;
    char *const *argv, *const *envp;
    const struct rp_try_folders
        *folders; /* folders behind overlays; NULL if the program really writes */
    const struct rp_try_folders *writes; /* other places to which it may write */
};

struct rp_try_rank {
    int fd;
    int64_t rank;
    bool named; /* it has told its number */
    size_t n;   /* bytes of a line that is not complete */
    char bytes[RP_TRY_LINE];
};

struct rp_try_process {
    pid_t pid, parent;
};

struct rp_try_processes {
    struct rp_try_process *at;
    size_t n, cap;
};

struct rp_try_pids {
    pid_t *at;
    size_t n, cap;
};

struct rp_try_child {
    pid_t keeper, program;
    int listening;
    bool frozen, gone, twice;          /* twice: two processes have told the same number */
    bool restless;                     /* its processes could not be stopped */
    int status;                        /* once gone: of wait */
    struct rp_try_processes processes; /* of the program, as they were last seen */
    struct rp_try_pids seen;           /* all of the machine, when they were stopped */
    char scratch[RP_TRY_PATH];
    int64_t world; /* number of ranks, as they report it; 0 if none has connected */
    size_t nranks;
    struct rp_try_rank *ranks[RP_TRY_RANKS];
};

struct rp_try_spent { /* time used by a program from its start to its end, with its children */
    int64_t wall_ns, processor_ns, memory_bytes;
};

/* The socket in the scratch folder to which the hook connects. */
#define RP_TRY_SOCKET "line"
#define RP_TRY_LOG    "log" /* what the program writes to standard error */
#define RP_TRY_OUT    "out" /* and to standard output */
#define RP_TRY_SPENT  "spent"

enum rp_code rp_try_child_start(const struct rp_try_start *start, struct rp_try_child **out,
                                struct rp_err *err);
/* Ends all its processes and frees it; NULL is allowed. */
void rp_try_child_end(struct rp_try_child *child);

/* Gives the next line of any rank. Returns 1 with its text and rank, 0 if there is none within this
   time, and -1 if the program has ended and there are no more lines. */
int rp_try_child_line(struct rp_try_child *child, int timeout_ms, char *line, size_t cap,
                      int64_t *rank);
/* Sends a line to every rank. */
void rp_try_child_tell(struct rp_try_child *child, const char *line);

/* Stops all its processes, or lets them go on. If they start others faster than those can be
   stopped, the child is `restless`. */
void rp_try_child_freeze(struct rp_try_child *child, bool frozen);
/* Returns the processor time that all its processes have used so far. */
int64_t rp_try_child_processor_ns(struct rp_try_child *child);

/* Gives the time that it has used, once it has ended. */
bool rp_try_child_spent(const struct rp_try_child *child, struct rp_try_spent *out);

/* Finds the last line of its output that says why it ended, or "". */
void rp_try_child_last_words(const struct rp_try_child *child, char *out, size_t cap);

/* ---- overlay.c ---- */

/* Called in a child process: from now on the folders are behind overlays whose changes go to
   `scratch`. Returns 0 or an errno. */
int rp_try_overlay_enter(const struct rp_try_folders *folders, const char *scratch);
/* Called after that: nothing else can be written except `more`, the folder of this run and those of
   the system. Kernels before 5.19 cannot do this. */
void rp_try_overlay_close(const struct rp_try_folders *folders, const struct rp_try_folders *more,
                          const char *scratch);
/* Whether this machine lets a process without privileges use overlays. */
bool rp_try_overlay_works(const char *scratch);
