/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps operations that a call has started and another one will wait for, by the handle of their
 * request. A handle has a few slots where it may be. If these are full, the operation is not
 * followed, and a wait for it has no operation.
 */
#include "capture/mpi/mpi.h"

#include <pthread.h>
#include <string.h>

#define REQUESTS 4096
#define PROBES   16

static struct {
    rp_mpi_word handle; /* 0: the slot is unused */
    struct rp_mpi_op op;
} requests[REQUESTS];
static _Atomic uint32_t pending;
static pthread_mutex_t requests_lock = PTHREAD_MUTEX_INITIALIZER;

/* The slot of a handle, or of 0, among the slots for `at`; -1: none. */
static int slot_among(rp_mpi_word at, rp_mpi_word handle)
{
    uint32_t first = (uint32_t)((uint64_t)at * UINT64_C(0x9e3779b97f4a7c15) >> 40);

    for (uint32_t i = 0; i < PROBES; i++)
        if (requests[(first + i) % REQUESTS].handle == handle)
            return (int)((first + i) % REQUESTS);
    return -1;
}

void rp_mpi_request_put(rp_mpi_word handle, const struct rp_mpi_op *op)
{
    if (!handle)
        return;
    pthread_mutex_lock(&requests_lock);
    int slot = slot_among(handle, handle); /* freed without a wait, so its slot is reused */
    if (slot < 0 && (slot = slot_among(handle, 0)) >= 0)
        atomic_fetch_add(&pending, 1);
    if (slot >= 0) {
        requests[slot].handle = handle;
        requests[slot].op = *op;
    }
    pthread_mutex_unlock(&requests_lock);
}

bool rp_mpi_request_find(rp_mpi_word handle, struct rp_mpi_op *op, bool take)
{
    if (!handle || !atomic_load_explicit(&pending, memory_order_relaxed))
        return false;
    pthread_mutex_lock(&requests_lock);
    int slot = slot_among(handle, handle);
    if (slot >= 0)
        *op = requests[slot].op;
    if (slot >= 0 && take) {
        requests[slot].handle = 0;
        atomic_fetch_sub(&pending, 1);
    }
    pthread_mutex_unlock(&requests_lock);
    return slot >= 0;
}
