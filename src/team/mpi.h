/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The few calls of MPI that a team needs, from whichever library is installed. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct rp_mpi;

/* Whether a launcher has started this process with others. */
bool rp_mpi_is_started(void);

/* Loads the library and initialises it. */
enum rp_code rp_mpi_open(struct rp_mpi **out, size_t *rank, size_t *size, struct rp_err *err);
void rp_mpi_close(struct rp_mpi *mpi);

enum rp_code rp_mpi_send(struct rp_mpi *mpi, const void *bytes, size_t n, size_t to,
                         struct rp_err *err);
enum rp_code rp_mpi_receive(struct rp_mpi *mpi, void *bytes, size_t n, size_t from,
                            struct rp_err *err);
