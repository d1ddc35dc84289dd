/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shared by the files of the mpi library. mpi.c has the wrappers, comms.c the communicators,
 * requests.c what was started and not yet waited for.
 *
 * There is no header of MPI here, because the library works with every implementation. Handles are
 * ints in MPICH and its descendants, and pointers in Open MPI and in the ABI of MPI 5: all
 * parameters are words, which have room for both and pass through untouched.
 */
#include "capture/core/core.h"

#include <stdatomic.h>

#define RP_MPI_HIDDEN __attribute__((visibility("hidden")))

typedef uintptr_t rp_mpi_word;

struct rp_mpi_comm {
    _Atomic rp_mpi_word handle; /* 0: the slot is unused */
    char group[48];             /* the same text for all members */
    int ranks, rank;
    bool inter;                /* between two groups; sizes of the other one are not known */
    _Atomic uint32_t sequence; /* number of the next collective */
};

/* Finds how the library represents handles. */
RP_MPI_HIDDEN void rp_mpi_comms_begin(const void *caller);
/* The communicator of a handle, registered at its first use; NULL if there are too many. */
RP_MPI_HIDDEN struct rp_mpi_comm *rp_mpi_comm_of(rp_mpi_word handle);
/* That of a window, whose fences are numbered apart from the collectives of its communicator; NULL:
   its making was not seen. */
RP_MPI_HIDDEN struct rp_mpi_comm *rp_mpi_window_of(rp_mpi_word handle);
/* The handle stored at `place` is new, or about to be freed; of a window on a communicator. */
RP_MPI_HIDDEN void rp_mpi_comm_made(rp_mpi_word place, rp_mpi_word on);
RP_MPI_HIDDEN void rp_mpi_window_made(rp_mpi_word place, rp_mpi_word on);
RP_MPI_HIDDEN void rp_mpi_comm_forget(rp_mpi_word place);
/* Bytes of an element, or 0. */
RP_MPI_HIDDEN int rp_mpi_type_bytes(rp_mpi_word type);
/* Element i of an array of handles; 0 if there is no array. */
RP_MPI_HIDDEN rp_mpi_word rp_mpi_handle_at(rp_mpi_word place, uint32_t i);
/* The rank that a status names. */
RP_MPI_HIDDEN int rp_mpi_status_source(rp_mpi_word status);

/* What is known about a call that communicates. */
struct rp_mpi_op {
    const char *name;        /* "MPI_Allreduce" */
    bool numbered;           /* a collective, with a number in its communicator */
    char group[48];          /* "": not known */
    int ranks, rank;         /* of the communicator */
    int peer, source;        /* INT_MIN: none; the peer of a collective is its root */
    int64_t bytes, sequence; /* -1: none */
};

/* Keeps the operation for which a request was started. */
RP_MPI_HIDDEN void rp_mpi_request_put(rp_mpi_word handle, const struct rp_mpi_op *op);
/* Finds that operation; `take` also forgets it. False if it is not known. */
RP_MPI_HIDDEN bool rp_mpi_request_find(rp_mpi_word handle, struct rp_mpi_op *op, bool take);
