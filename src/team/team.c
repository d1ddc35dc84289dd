/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A binomial tree: process r collects from r + 1, r + 2, r + 4 … and sends all to r minus its
 * lowest bit, so that what process 0 gets is in the order of the processes.
 *
 *     frame   length (8 bytes), code (8 bytes), bytes: the result, or the text of a failure
 *
 * The result may have gigabytes, so a process sends it without a copy.
 */
#include "team/team.h"

#include "base/hash.h"
#include "base/vec.h"
#include "team/mpi.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct frame {
    uint64_t n, code;
    const char *bytes;
    char *received; /* the bytes of another process, which are freed with the frames */
};

struct rp_team {
    struct rp_mpi *mpi;
    size_t rank, size;
    RP_VEC(struct frame) frames; /* of this process and those below it, in their order */
    struct rp_team_board *board; /* mapped */
};

enum rp_code rp_team_join(struct rp_team **out, struct rp_err *err)
{
    struct rp_team *team;

    *out = NULL;
    if (!rp_mpi_is_started())
        return RP_OK;
    team = calloc(1, sizeof *team);
    RP_TRY(rp_err_need(team, err, "joining processes"));
    enum rp_code code = rp_mpi_open(&team->mpi, &team->rank, &team->size, err);
    if (code != RP_OK) {
        free(team);
        return code;
    }
    *out = team;
    return RP_OK;
}

void rp_team_forget(struct rp_team *team)
{
    for (size_t i = 0; i < team->frames.n; i++)
        free(team->frames.at[i].received);
    team->frames.n = 0;
}

static void unmap_board(struct rp_team *team)
{
    if (team->board)
        munmap(team->board, sizeof *team->board);
    team->board = NULL;
}

void rp_team_leave(struct rp_team *team)
{
    if (!team)
        return;
    rp_mpi_close(team->mpi);
    rp_team_forget(team);
    rp_vec_release(&team->frames);
    unmap_board(team);
    free(team);
}

size_t rp_team_size(const struct rp_team *team)
{
    return team ? team->size : 1;
}

size_t rp_team_rank(const struct rp_team *team)
{
    return team ? team->rank : 0;
}

/* The subtree of process r, when it sends, has as many processes as its lowest bit, or as are
   left. */
static enum rp_code climb_tree(struct rp_team *team, struct rp_err *err)
{
    for (size_t step = 1; step < team->size; step *= 2) {
        size_t from = team->rank + step;

        if (team->rank & step) {
            for (size_t i = 0; i < team->frames.n; i++) {
                const struct frame *frame = &team->frames.at[i];
                size_t to = team->rank - step;
                uint64_t head[2] = {frame->n, frame->code};
                RP_TRY(rp_mpi_send(team->mpi, head, sizeof head, to, err));
                RP_TRY(rp_mpi_send(team->mpi, frame->bytes, frame->n, to, err));
            }
            return RP_OK;
        }
        for (size_t i = from; i < from + step && i < team->size; i++) {
            uint64_t head[2];
            struct frame frame;

            RP_TRY(rp_mpi_receive(team->mpi, head, sizeof head, from, err));
            frame = (struct frame){head[0], head[1], NULL, malloc(head[0] + 1)};
            frame.bytes = frame.received;
            if (!frame.received || rp_vec_push(&team->frames, frame, err) != RP_OK) {
                free(frame.received);
                return rp_err_nomem(err, "joining processes");
            }
            RP_TRY(rp_mpi_receive(team->mpi, frame.received, frame.n, from, err));
        }
    }
    return RP_OK;
}

enum rp_code rp_team_gather(struct rp_team *team, enum rp_code code, const void *bytes, size_t n,
                            rp_team_take *take, void *user, struct rp_err *err)
{
    struct rp_err failure = RP_ERR_INIT;
    struct frame own = {n, (uint64_t)code, bytes, NULL};

    if (code != RP_OK) {
        failure = err ? *err : failure;
        own.bytes = failure.text;
        own.n = strlen(failure.text);
    }
    rp_team_forget(team);
    RP_TRY(rp_vec_push(&team->frames, own, err));
    RP_TRY(climb_tree(team, err));
    for (size_t i = 0; i < team->frames.n && !team->rank; i++) {
        const struct frame *frame = &team->frames.at[i];

        if (frame->code != RP_OK)
            return rp_err_set(err, (enum rp_code)frame->code, "%.*s", (int)frame->n, frame->bytes);
        if (take)
            RP_TRY(take(user, i, frame->bytes, frame->n, err));
    }
    return RP_OK;
}

/* Sends the findings of process 0 down the tree. */
static enum rp_code tell_all(struct rp_team *team, void *found, size_t bytes, struct rp_err *err)
{
    size_t step = 1;

    while (step < team->size && !(team->rank & step))
        step *= 2;
    if (team->rank)
        RP_TRY(rp_mpi_receive(team->mpi, found, bytes, team->rank - step, err));
    while (step /= 2)
        if (team->rank + step < team->size)
            RP_TRY(rp_mpi_send(team->mpi, found, bytes, team->rank + step, err));
    return RP_OK;
}

static enum rp_code take_key(void *user, size_t process, const char *bytes, size_t n,
                             struct rp_err *err)
{
    uint64_t *keys = user;

    (void)err;
    memcpy(&keys[process], bytes, n);
    return RP_OK;
}

enum rp_code rp_team_divide(struct rp_team *team, uint64_t key, size_t *place, size_t *of,
                            struct rp_err *err)
{
    RP_FREED uint64_t *keys = calloc(team->size, sizeof *keys);

    RP_TRY(rp_err_need(keys, err, "dividing the files"));
    *place = *of = 0;
    RP_TRY(rp_team_gather(team, RP_OK, &key, sizeof key, take_key, keys, err));
    RP_TRY(tell_all(team, keys, team->size * sizeof *keys, err));
    for (size_t i = 0; i < team->size; i++) {
        *place += i < team->rank && keys[i] == key;
        *of += keys[i] == key;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ the board */

/* Memory of process 0 without a name in any folder: others open it as a file of that process, if it
   has the name that process 0 told them. */
struct board_name {
    uint64_t pid, fd; /* pid 0: there is none */
    char name[40];
};

static struct rp_team_board *map_board(int fd)
{
    int flags = MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0);
    void *memory = mmap(NULL, sizeof(struct rp_team_board), PROT_READ | PROT_WRITE, flags, fd, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static struct rp_team_board *make_board(struct board_name *name, int *fd)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name->name, sizeof name->name, "reprise-%016llx",
             (unsigned long long)rp_hash_join(rp_hash_u64((uint64_t)now.tv_nsec),
                                              (uint64_t)now.tv_sec << 22 ^ (uint64_t)getpid()));
    *fd = memfd_create(name->name, MFD_CLOEXEC);
    if (*fd < 0 || ftruncate(*fd, sizeof(struct rp_team_board)) != 0)
        return NULL;
    name->pid = (uint64_t)getpid();
    name->fd = (uint64_t)*fd;
    return map_board(*fd);
}

static struct rp_team_board *find_board(const struct board_name *name)
{
    char path[80], wanted[80], found[80];

    if (!name->pid)
        return NULL;
    snprintf(path, sizeof path, "/proc/%llu/fd/%llu", (unsigned long long)name->pid,
             (unsigned long long)name->fd);
    snprintf(wanted, sizeof wanted, "/memfd:%s (deleted)", name->name);
    ssize_t n = readlink(path, found, sizeof found);
    if (n != (ssize_t)strlen(wanted) || memcmp(found, wanted, (size_t)n) != 0)
        return NULL;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct rp_team_board *board = fd < 0 ? NULL : map_board(fd);
    if (fd >= 0)
        close(fd);
    return board;
}

static enum rp_code count_board(void *user, size_t process, const char *bytes, size_t n,
                                struct rp_err *err)
{
    (void)process;
    (void)err;
    *(uint64_t *)user += n && *bytes;
    return RP_OK;
}

enum rp_code rp_team_share(struct rp_team *team, struct rp_team_board **out, bool *all,
                           struct rp_err *err)
{
    struct board_name name = {0};
    struct rp_team_board *board = NULL;
    uint64_t sharing = 0;
    int fd = -1;

    unmap_board(team);
    if (!team->rank)
        board = make_board(&name, &fd);
    enum rp_code code = tell_all(team, &name, sizeof name, err);
    if (code == RP_OK && team->rank)
        board = find_board(&name);
    char has = board != NULL;
    if (code == RP_OK) /* waits until all have opened it */
        code = rp_team_gather(team, RP_OK, &has, sizeof has, count_board, &sharing, err);
    if (code == RP_OK)
        code = tell_all(team, &sharing, sizeof sharing, err);
    if (fd >= 0)
        close(fd);
    team->board = board ? board : map_board(-1);
    *out = team->board;
    *all = sharing == team->size;
    if (code != RP_OK)
        return code;
    return rp_err_need(team->board, err, "joining processes");
}

enum rp_code rp_team_agree(struct rp_team *team, enum rp_code code, struct rp_err *err)
{
    enum rp_code found = rp_team_gather(team, code, NULL, 0, NULL, NULL, err);
    uint64_t told = (uint64_t)(team->rank ? RP_OK : found);

    RP_TRY(tell_all(team, &told, sizeof told, err));
    return (enum rp_code)told;
}
