/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger of the recording on this host says what could not be recorded, and why, and what
 * recording cost. It is a small file that `record` allocates before the program starts, in a shared
 * mapping of every recorded process, so that an event can be counted there when nothing can be
 * written any more (the disk is full, the process has changed its user, it is in a sandbox), and
 * the count survives the process. If `record` did not run on this host, the first event creates the
 * file.
 */
#include "capture/core/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LEDGER_PATH (sizeof rp_core.root + 160)

static void ledger_path(char path[LEDGER_PATH])
{
    snprintf(path, LEDGER_PATH, "%s/" RP_CTF_LEDGER_NAME "%s", rp_core.root, rp_core.host);
}

static void ledger_map(int fd)
{
    struct rp_ctf_ledger *ledger;
    struct stat st;

    if (fstat(fd, &st) || st.st_size < (off_t)sizeof *ledger || !S_ISREG(st.st_mode) ||
        (st.st_uid != rp_core.owner && !(rp_core.file_mode & S_IWGRP)))
        return;
    ledger = mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ledger == MAP_FAILED)
        return;
    if (ledger->magic == RP_CTF_LEDGER_MAGIC)
        rp_core.ledger = ledger;
    else
        munmap(ledger, sizeof *ledger);
}

/* Creates the file under a hidden name first, because a file with this name must be complete. If
   another process was first, its file is used. False if there is none. */
static bool ledger_create(const char *path)
{
    static struct rp_ctf_ledger empty; /* a constant would be 16 KB of each library's file */
    char hidden[LEDGER_PATH], name[64];

    empty.magic = RP_CTF_LEDGER_MAGIC;
    rp_core_hidden_name(name, sizeof name, "ledger");
    snprintf(hidden, sizeof hidden, "%s/%s", rp_core.root, name);
    int fd = rp_core_fits(sizeof empty) ? rp_core_create(hidden, O_RDWR) : -1;
    if (fd < 0)
        return false;
    bool made = write(fd, &empty, sizeof empty) == (ssize_t)sizeof empty &&
                (!link(hidden, path) || errno == EEXIST);
    close(fd);
    unlink(hidden);
    return made;
}

void rp_core_ledger_open(bool create)
{
    char path[LEDGER_PATH];
    int saved = errno;

    if (rp_core.ledger)
        return;
    ledger_path(path);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && create && ledger_create(path))
        fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0) {
        ledger_map(fd);
        close(fd);
    }
    errno = saved;
}

/* Somebody may have truncated the file, and a mapping must not be touched beyond its end. In a
   sandbox this cannot be checked without a system call. */
struct rp_ctf_ledger *rp_core_ledger(void)
{
    char path[LEDGER_PATH];
    struct stat st;
    int saved = errno;

    if (rp_core.ledger && !atomic_load(&rp_core.sealed)) {
        ledger_path(path);
        if (!stat(path, &st) && st.st_size < (off_t)sizeof *rp_core.ledger)
            rp_core.ledger = NULL; /* stays mapped, because other threads may be about to use it */
        errno = saved;
    }
    return rp_core.ledger;
}

/* A row belongs to the first process that stores its key; if all are taken, the last row is
   used. */
static _Atomic uint64_t *ledger_events(struct rp_ctf_ledger *ledger, uint64_t who)
{
    uint32_t at = (uint32_t)(who * 2654435761u) % RP_CTF_LEDGER_ROWS;

    for (uint32_t i = 0; i < RP_CTF_LEDGER_ROWS; i++, at = (at + 1) % RP_CTF_LEDGER_ROWS) {
        struct rp_ctf_ledger_row *row = &ledger->rows[at];
        uint64_t owner = 0;

        if (atomic_compare_exchange_strong((_Atomic uint64_t *)&row->who, &owner, who) ||
            owner == who)
            return (_Atomic uint64_t *)&row->events;
    }
    return (_Atomic uint64_t *)&ledger->rows[RP_CTF_LEDGER_ROWS - 1].events;
}

void rp_core_lose(enum rp_ctf_loss why, uint64_t events)
{
    struct rp_ctf_ledger *ledger = rp_core_ledger();

    if (ledger)
        atomic_fetch_add(ledger_events(ledger, rp_ctf_ledger_who(rp_core.rank, why)), events);
    else if (why != RP_CTF_LOSS_OVERWRITTEN)
        atomic_fetch_add(&rp_core.lost, events);
}

/* The packets of the stream report losses to every reader, too. */
void rp_core_stream_lose(struct rp_core_stream *s, enum rp_ctf_loss why, uint64_t events)
{
    rp_core_lose(why, events);
    s->lost += events;
    if (s->head)
        s->head->discarded = s->lost;
}

enum rp_ctf_loss rp_core_loss(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return RP_CTF_LOSS_DISK;
    case EFBIG:
        return RP_CTF_LOSS_FILE_SIZE;
    case EACCES:
    case EPERM:
    case EROFS:
        return RP_CTF_LOSS_DENIED;
    case EMFILE:
    case ENFILE:
        return RP_CTF_LOSS_FILES;
    case ENOMEM:
        return RP_CTF_LOSS_MEMORY;
    default:
        return RP_CTF_LOSS_OTHER;
    }
}

/* -------------------------------------------------------------------------- the recorder's time */

int64_t rp_core_thread_ns(void)
{
    struct timespec t;

    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) ? 0
                                                      : (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void rp_core_spend(uint64_t ns)
{
    struct rp_ctf_ledger *ledger = rp_core_ledger();

    if (ledger)
        atomic_fetch_add((_Atomic uint64_t *)&ledger->setup_ns, ns);
}

int64_t rp_core_spent(int64_t since_ns)
{
    int64_t now_ns = rp_core_thread_ns();

    rp_core_spend((uint64_t)(now_ns - since_ns));
    return now_ns;
}
