/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The processes that `mpirun` or `srun` started are helpers of process 0: each reads a part of the
 * inputs and sends its results. MPI is loaded only if a launcher has started this process with
 * others; REPRISE_MPI names the library, or is "none".
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_team;

/* *out is NULL if this process is alone. */
enum rp_code rp_team_join(struct rp_team **out, struct rp_err *err);
void rp_team_leave(struct rp_team *team); /* NULL is fine */

size_t rp_team_size(const struct rp_team *team); /* 1 for NULL */
size_t rp_team_rank(const struct rp_team *team); /* 0 for NULL */

/* Takes the bytes of a process; process 0 gets them in the order of the processes. */
typedef enum rp_code rp_team_take(void *user, size_t process, const char *bytes, size_t n,
                                  struct rp_err *err);

/*
 * All processes must call it, with their bytes or with the reason why they have none (code, err).
 * In process 0, `take` gets the bytes of each, or the first failure becomes its own; the bytes of
 * others live until the next call or rp_team_forget. The other processes are done when they have
 * sent.
 */
enum rp_code rp_team_gather(struct rp_team *team, enum rp_code code, const void *bytes, size_t n,
                            rp_team_take *take, void *user, struct rp_err *err);

/* Frees the bytes of the last gathering. */
void rp_team_forget(struct rp_team *team);

/* All processes must call it: gives how many have the same key, and which of them this one is, from
   0. */
enum rp_code rp_team_divide(struct rp_team *team, uint64_t key, size_t *place, size_t *of,
                            struct rp_err *err);

/* Memory shared by the processes of one node; all numbers begin at 0. */
struct rp_team_board {
    _Atomic uint64_t bulk_events; /* of what all keep */
    _Atomic uint64_t next_source; /* that nobody has taken */
};

/*
 * All processes must call it. *out is the board of the node of process 0, or one of its own if a
 * process cannot see that; it lives until the next call or rp_team_leave. *all tells if everyone
 * has the same.
 */
enum rp_code rp_team_share(struct rp_team *team, struct rp_team_board **out, bool *all,
                           struct rp_err *err);

/* All processes must call it: it returns RP_OK if none has failed, otherwise the first failure, in
   every process. */
enum rp_code rp_team_agree(struct rp_team *team, enum rp_code code, struct rp_err *err);
