/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators. A handle means nothing outside its process, so a communicator is named by the
 * ranks of its members in MPI_COMM_WORLD, and by the number of earlier ones with the same members.
 * Creating one is collective, so all members count alike. Collectives of a communicator are called
 * in the same order by all members: their number identifies them.
 */
#include "capture/mpi/mpi.h"

#include "capture/core/next.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMS       1024
#define WORLD_MPICH UINT32_C(0x44000000)
#define NULL_MPICH  UINT32_C(0x04000000)
#define WORLD_ABI   UINT32_C(0x101) /* of MPI 5 */
#define NULL_ABI    UINT32_C(0x100)

static struct {
    bool ready, pointers;
    rp_mpi_word world, null;
    int (*rank)(rp_mpi_word, int *), (*size)(rp_mpi_word, int *), (*is_inter)(rp_mpi_word, int *);
    int (*type_size)(rp_mpi_word, int *);
    int (*group)(rp_mpi_word, rp_mpi_word *), (*remote_group)(rp_mpi_word, rp_mpi_word *);
    int (*group_size)(rp_mpi_word, int *), (*group_free)(rp_mpi_word *);
    int (*translate)(rp_mpi_word, int, const int *, rp_mpi_word, int *);
} mpi;

static struct rp_mpi_comm comms[COMMS];
static pthread_mutex_t comms_lock = PTHREAD_MUTEX_INITIALIZER;
/* By members: how many communicators there were. */
static struct {
    uint64_t members;
    uint32_t count;
} made[COMMS];

/* -------------------------------------------------------------------------- the MPI library */

static void *next_of(const char *name, const void *caller)
{
    return rp_capture_next(name, caller, "libmpi");
}

/* An object may have been moved into the program by a copy relocation. */
static rp_mpi_word object_of(const char *name, const void *caller)
{
    void *found = dlsym(RTLD_DEFAULT, name);

    return (rp_mpi_word)(found ? found : next_of(name, caller));
}

static bool is_mpi5(const void *function)
{
    Dl_info info;

    return dladdr(function, &info) && info.dli_fname && strstr(info.dli_fname, "libmpi_abi");
}

void rp_mpi_comms_begin(const void *caller)
{
    if (mpi.ready)
        return;
    rp_mpi_word world = object_of("ompi_mpi_comm_world", caller);
#define FIND(member, name) *(void **)&mpi.member = next_of("PMPI_" name, caller)
    FIND(rank, "Comm_rank");
    FIND(size, "Comm_size");
    FIND(is_inter, "Comm_test_inter");
    FIND(type_size, "Type_size");
    FIND(group, "Comm_group");
    FIND(remote_group, "Comm_remote_group");
    FIND(group_size, "Group_size");
    FIND(group_free, "Group_free");
    FIND(translate, "Group_translate_ranks");
#undef FIND
    if (!mpi.rank || !mpi.size || !mpi.is_inter || !mpi.type_size || !mpi.group ||
        !mpi.remote_group || !mpi.group_size || !mpi.group_free || !mpi.translate)
        return;
    mpi.pointers = world || is_mpi5((const void *)(uintptr_t)mpi.rank);
    mpi.world = world ? world : mpi.pointers ? WORLD_ABI : WORLD_MPICH;
    mpi.null =
        world ? object_of("ompi_mpi_comm_null", caller) : (mpi.pointers ? NULL_ABI : NULL_MPICH);
    mpi.ready = true;
}

static rp_mpi_word handle_of(rp_mpi_word handle)
{
    return mpi.pointers ? handle : (uint32_t)handle;
}

rp_mpi_word rp_mpi_handle_at(rp_mpi_word place, uint32_t i)
{
    return !place         ? 0
           : mpi.pointers ? ((const rp_mpi_word *)place)[i]
                          : ((const uint32_t *)place)[i];
}

/* MPICH has the count of bytes before it. */
int rp_mpi_status_source(rp_mpi_word status)
{
    return ((const int *)status)[mpi.pointers ? 0 : 2];
}

int rp_mpi_type_bytes(rp_mpi_word type)
{
    int bytes = 0;

    return mpi.ready && !mpi.type_size(type, &bytes) && bytes > 0 ? bytes : 0;
}

/* -------------------------------------------------------------------------- communicators */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* A hash of the members' ranks in MPI_COMM_WORLD. */
static uint64_t members_of(rp_mpi_word group, rp_mpi_word world)
{
    int n = 0, *from, *to;
    uint64_t hash = 1;

    if (mpi.group_size(group, &n) || n <= 0)
        return 0;
    from = malloc((size_t)n * sizeof *from);
    to = malloc((size_t)n * sizeof *to);
    for (int i = 0; from && i < n; i++)
        from[i] = i;
    if (from && to && !mpi.translate(group, n, from, world, to))
        for (int i = 0; i < n; i++)
            hash = mix(hash, (uint32_t)to[i]);
    free(from);
    free(to);
    return hash;
}

static uint64_t comm_members(rp_mpi_word handle, bool inter)
{
    rp_mpi_word world = 0, group = 0;
    uint64_t hash = 0;

    if (mpi.group(mpi.world, &world))
        return 0;
    if (!mpi.group(handle, &group)) {
        hash = members_of(group, world);
        mpi.group_free(&group);
    }
    group = 0;
    if (inter && !mpi.remote_group(handle, &group)) { /* a hash that is the same from both sides */
        hash += members_of(group, world);
        mpi.group_free(&group);
    }
    mpi.group_free(&world);
    return hash;
}

static uint32_t count_members(uint64_t members)
{
    for (uint32_t i = 0; i < COMMS; i++) {
        uint32_t at = (uint32_t)(members + i) % COMMS;

        if (made[at].count && made[at].members != members)
            continue;
        made[at].members = members;
        return made[at].count++;
    }
    return 0;
}

static void name_comm(struct rp_mpi_comm *comm, rp_mpi_word handle)
{
    int inter = 0;

    comm->ranks = comm->rank = 0;
    mpi.is_inter(handle, &inter);
    mpi.rank(handle, &comm->rank);
    mpi.size(handle, &comm->ranks);
    comm->inter = inter;
    if (handle == mpi.world) {
        snprintf(comm->group, sizeof comm->group, "MPI_COMM_WORLD");
        return;
    }
    uint64_t members = comm_members(handle, inter);
    snprintf(comm->group, sizeof comm->group, "comm %08x.%u", (uint32_t)(members >> 16),
             count_members(members));
}

static struct rp_mpi_comm *slot_of(rp_mpi_word handle)
{
    for (uint32_t i = 0; i < COMMS; i++)
        if (atomic_load_explicit(&comms[i].handle, memory_order_acquire) == handle)
            return &comms[i];
    return NULL;
}

struct rp_mpi_comm *rp_mpi_comm_of(rp_mpi_word handle)
{
    static _Atomic uint32_t last;
    uint32_t guess = atomic_load_explicit(&last, memory_order_relaxed);

    handle = handle_of(handle);
    if (!mpi.ready || !handle || handle == mpi.null)
        return NULL;
    if (atomic_load_explicit(&comms[guess].handle, memory_order_acquire) == handle)
        return &comms[guess];
    struct rp_mpi_comm *comm = slot_of(handle);
    if (!comm) {
        pthread_mutex_lock(&comms_lock);
        comm = slot_of(handle);
        if (!comm && (comm = slot_of(0))) {
            name_comm(comm, handle);
            atomic_store(&comm->sequence, 0);
            atomic_store_explicit(&comm->handle, handle, memory_order_release);
        }
        pthread_mutex_unlock(&comms_lock);
    }
    if (comm)
        atomic_store_explicit(&last, (uint32_t)(comm - comms), memory_order_relaxed);
    return comm;
}

void rp_mpi_comm_made(rp_mpi_word place, rp_mpi_word on)
{
    (void)on;
    if (mpi.ready)
        rp_mpi_comm_of(rp_mpi_handle_at(place, 0));
}

struct rp_mpi_comm *rp_mpi_window_of(rp_mpi_word handle)
{
    return mpi.ready && handle ? slot_of(handle_of(handle)) : NULL;
}

/* Making a window is a collective of the communicator: all members are at the same number. */
void rp_mpi_window_made(rp_mpi_word place, rp_mpi_word on)
{
    struct rp_mpi_comm *of = rp_mpi_comm_of(on), *window;

    if (!of)
        return;
    pthread_mutex_lock(&comms_lock);
    window = slot_of(0);
    if (window) {
        snprintf(window->group, sizeof window->group, "%.30s window %u", of->group,
                 atomic_load(&of->sequence));
        window->ranks = of->ranks;
        window->rank = of->rank;
        window->inter = false;
        atomic_store(&window->sequence, 0);
        atomic_store_explicit(&window->handle, rp_mpi_handle_at(place, 0), memory_order_release);
    }
    pthread_mutex_unlock(&comms_lock);
}

void rp_mpi_comm_forget(rp_mpi_word place)
{
    rp_mpi_word handle = mpi.ready ? rp_mpi_handle_at(place, 0) : 0;
    struct rp_mpi_comm *comm = handle ? slot_of(handle) : NULL;

    if (comm)
        atomic_store_explicit(&comm->handle, 0, memory_order_release);
}
