/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A binomial tree: process r collects from r + 1, r + 2, r + 4 … and sends all to r minus its
 * lowest bit, so that what process 0 gets is in the order of the processes.
 *
 *     frame   length (8 bytes), code (8 bytes), bytes: what was made, or the text of a failure
 */
#include "team/team.h"

#include "base/vec.h"
#include "team/mpi.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct rp_team {
    struct rp_mpi *mpi;
    size_t rank, size;
    RP_VEC(char) frames; /* of this process and those below it */
};

enum rp_code rp_team_join(struct rp_team **out, struct rp_err *err)
{
    struct rp_team *team;
    enum rp_code code;

    *out = NULL;
    if (!rp_mpi_is_started())
        return RP_OK;
    team = calloc(1, sizeof *team);
    if (!team)
        return rp_err_nomem(err, "joining processes");
    code = rp_mpi_open(&team->mpi, &team->rank, &team->size, err);
    if (code != RP_OK) {
        free(team);
        return code;
    }
    *out = team;
    return RP_OK;
}

void rp_team_leave(struct rp_team *team)
{
    if (!team)
        return;
    rp_mpi_close(team->mpi);
    rp_vec_release(&team->frames);
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

static enum rp_code add_frame(struct rp_team *team, enum rp_code code, const void *bytes, size_t n,
                              struct rp_err *err)
{
    uint64_t head[2] = {n, (uint64_t)code};

    team->frames.n = 0;
    RP_TRY(rp_vec_reserve(&team->frames, sizeof head + n, err));
    memcpy(team->frames.at, head, sizeof head);
    if (n)
        memcpy(team->frames.at + sizeof head, bytes, n);
    team->frames.n = sizeof head + n;
    return RP_OK;
}

static enum rp_code receive_frames(struct rp_team *team, size_t from, struct rp_err *err)
{
    uint64_t n = 0;

    RP_TRY(rp_mpi_receive(team->mpi, &n, sizeof n, from, err));
    RP_TRY(rp_vec_reserve(&team->frames, n, err));
    RP_TRY(rp_mpi_receive(team->mpi, team->frames.at + team->frames.n, n, from, err));
    team->frames.n += n;
    return RP_OK;
}

static enum rp_code climb_tree(struct rp_team *team, struct rp_err *err)
{
    size_t step;

    for (step = 1; step < team->size; step *= 2) {
        uint64_t n = team->frames.n;

        if (team->rank & step) {
            RP_TRY(rp_mpi_send(team->mpi, &n, sizeof n, team->rank - step, err));
            return rp_mpi_send(team->mpi, team->frames.at, n, team->rank - step, err);
        }
        if (team->rank + step < team->size)
            RP_TRY(receive_frames(team, team->rank + step, err));
    }
    return RP_OK;
}

/* The next frame; its failure is the caller's. */
static enum rp_code next_frame(const char **at, const char **bytes, size_t *n, struct rp_err *err)
{
    uint64_t head[2];

    memcpy(head, *at, sizeof head);
    *bytes = *at + sizeof head;
    *n = (size_t)head[0];
    *at = *bytes + *n;
    return head[1] == RP_OK ? RP_OK
                            : rp_err_set(err, (enum rp_code)head[1], "%.*s", (int)*n, *bytes);
}

enum rp_code rp_team_gather(struct rp_team *team, enum rp_code code, const void *bytes, size_t n,
                            rp_team_take *take, void *user, struct rp_err *err)
{
    const char *at, *frame;
    size_t process;

    if (code == RP_OK)
        RP_TRY(add_frame(team, code, bytes, n, err));
    else
        RP_TRY(add_frame(team, code, err ? err->text : "", err ? strlen(err->text) : 0, err));
    RP_TRY(climb_tree(team, err));
    at = team->frames.at;
    for (process = 0; process < team->size && !team->rank; process++) {
        RP_TRY(next_frame(&at, &frame, &n, err));
        if (take)
            RP_TRY(take(user, process, frame, n, err));
    }
    return RP_OK;
}

/* Sends what process 0 found down the tree. */
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
    uint64_t *keys = calloc(team->size, sizeof *keys);
    enum rp_code code = keys ? RP_OK : rp_err_nomem(err, "dividing the files");

    *place = *of = 0;
    if (code == RP_OK)
        code = rp_team_gather(team, RP_OK, &key, sizeof key, take_key, keys, err);
    if (code == RP_OK)
        code = tell_all(team, keys, team->size * sizeof *keys, err);
    for (size_t i = 0; i < team->size && code == RP_OK; i++) {
        *place += i < team->rank && keys[i] == key;
        *of += keys[i] == key;
    }
    free(keys);
    return code;
}

enum rp_code rp_team_agree(struct rp_team *team, enum rp_code code, struct rp_err *err)
{
    enum rp_code found = rp_team_gather(team, code, NULL, 0, NULL, NULL, err);
    uint64_t told = (uint64_t)(team->rank ? RP_OK : found);

    RP_TRY(tell_all(team, &told, sizeof told, err));
    return (enum rp_code)told;
}
