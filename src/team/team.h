/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The processes that `mpirun` or `srun` started, as helpers of process 0: each reads a part of the
 * inputs and sends what it keeps of them. MPI is loaded only where a launcher has started this
 * process beside others; REPRISE_MPI names the library, or is "none".
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_team;

/* *out is NULL where this process is alone. */
enum rp_code rp_team_join(struct rp_team **out, struct rp_err *err);
void rp_team_leave(struct rp_team *team); /* NULL is fine */

size_t rp_team_size(const struct rp_team *team); /* 1 for NULL */
size_t rp_team_rank(const struct rp_team *team); /* 0 for NULL */

/* What a process has sent; of process 0 in the order of the processes. */
typedef enum rp_code rp_team_take(void *user, size_t process, const char *bytes, size_t n,
                                  struct rp_err *err);

/*
 * All processes call it, with what they have or with why they have nothing (code, err). In process
 * 0 `take` gets the bytes of each, or the first failure becomes its own; those of the others live
 * until the next call or rp_team_forget. The others are done when they have sent.
 */
enum rp_code rp_team_gather(struct rp_team *team, enum rp_code code, const void *bytes, size_t n,
                            rp_team_take *take, void *user, struct rp_err *err);

/* Frees what the last gathering brought. */
void rp_team_forget(struct rp_team *team);

/* All processes call it: how many have the same key, and which of them this one is, from 0. */
enum rp_code rp_team_divide(struct rp_team *team, uint64_t key, size_t *place, size_t *of,
                            struct rp_err *err);

/* Memory that processes of one node have in common; all numbers begin at 0. */
struct rp_team_board {
    _Atomic uint64_t bulk_events; /* of what all keep */
    _Atomic uint64_t next_source; /* that nobody has taken */
};

/*
 * All processes call it. *out: the board of the node of process 0, or one of its own where a
 * process cannot see that; it lives until the next call or rp_team_leave. *all: everyone has the
 * same.
 */
enum rp_code rp_team_share(struct rp_team *team, struct rp_team_board **out, bool *all,
                           struct rp_err *err);

/* All processes call it: RP_OK where all are well, else the first failure, in every process. */
enum rp_code rp_team_agree(struct rp_team *team, enum rp_code code, struct rp_err *err);
