/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A double of an MPI library: collectives only wait for all members, through a file that the
 * processes map ($FAKE_MPI). Ranks come from OMPI_COMM_WORLD_RANK and _SIZE. Like MPI it ends the
 * process where a datatype is invalid.
 */
#include "fake_mpi.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static struct shared {
    _Atomic int arrived[64][512]; /* by first member and how many there are; by barrier */
    int color[16];
} * shared;

static struct fake_comm made[16];
static int nmade;
#ifdef MPICH
static struct fake_comm world;
static struct fake_comm *comm_of(MPI_Comm c)
{
    return c == MPI_COMM_WORLD ? &world : &made[c & 15];
}
static MPI_Comm handle_of(int i)
{
    return (int)(0x84000000u | (unsigned)i);
}
#else
struct fake_comm ompi_mpi_comm_world, ompi_mpi_comm_null;
const int ompi_mpi_double = 8;
static int request;
#define world ompi_mpi_comm_world
static struct fake_comm *comm_of(MPI_Comm c)
{
    return c;
}
static MPI_Comm handle_of(int i)
{
    return &made[i];
}
#endif

int PMPI_Init(int *argc, char ***argv)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *size = getenv("OMPI_COMM_WORLD_SIZE");
    const char *path = getenv("FAKE_MPI");
    int fd = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;

    (void)argc, (void)argv;
    if (fd < 0 || ftruncate(fd, sizeof *shared))
        exit(9);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    world.rank = rank ? atoi(rank) : 0;
    world.size = size ? atoi(size) : 1;
    for (int i = 0; i < world.size; i++)
        world.members[i] = i;
    return 0;
}

/* Fences only wait for all members. There is one window. */
static struct fake_win {
    MPI_Comm on;
} window;

int PMPI_Win_create(void *base, long size, int unit, MPI_Info info, MPI_Comm c, MPI_Win *w)
{
    (void)base, (void)size, (void)unit, (void)info;
    window.on = c;
#ifdef MPICH
    *w = (int)0xa0000001u;
#else
    *w = &window;
#endif
    return PMPI_Barrier(c);
}

int PMPI_Win_fence(int assert, MPI_Win w)
{
    (void)assert, (void)w;
    return PMPI_Barrier(window.on);
}

int PMPI_Win_free(MPI_Win *w)
{
    *w = 0;
    return 0;
}

int PMPI_Put(const void *s, int n, MPI_Datatype type, int to, long at, int nt, MPI_Datatype tt,
             MPI_Win w)
{
    (void)s, (void)n, (void)type, (void)to, (void)at, (void)nt, (void)tt, (void)w;
    return 0;
}

int PMPI_Finalize(void)
{
    return 0;
}

int PMPI_Comm_rank(MPI_Comm c, int *rank)
{
    if (c == MPI_COMM_NULL)
        abort();
    *rank = comm_of(c)->rank;
    return 0;
}

int PMPI_Comm_size(MPI_Comm c, int *size)
{
    *size = comm_of(c)->size;
    return 0;
}

int PMPI_Comm_test_inter(MPI_Comm c, int *is)
{
    (void)c;
    *is = 0;
    return 0;
}

int PMPI_Comm_group(MPI_Comm c, MPI_Group *g)
{
    *g = c;
    return 0;
}

int PMPI_Comm_remote_group(MPI_Comm c, MPI_Group *g)
{
    (void)c, (void)g;
    return 1;
}

int PMPI_Group_size(MPI_Group g, int *size)
{
    return PMPI_Comm_size(g, size);
}

int PMPI_Group_free(MPI_Group *g)
{
    (void)g;
    return 0;
}

int PMPI_Group_translate_ranks(MPI_Group a, int n, const int *from, MPI_Group b, int *to)
{
    (void)b;
    for (int i = 0; i < n; i++)
        to[i] = comm_of(a)->members[from[i]];
    return 0;
}

int PMPI_Type_size(MPI_Datatype type, int *size)
{
    if (type == MPI_DATATYPE_NULL)
        abort();
    *size = 8;
    return 0;
}

int PMPI_Get_library_version(char *text, int *n)
{
    *n = sprintf(text, "a double of MPI\nsecond line");
    return 0;
}

/* How many have arrived at the next barrier. */
static _Atomic int *arrived_at(const struct fake_comm *comm)
{
    return &shared->arrived[comm->members[0] + 16 * (comm->size < world.size)][comm->barriers];
}

static void wait_until(_Atomic int *arrived, int n)
{
    while (atomic_load(arrived) < n)
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

void fake_mpi_await_others(MPI_Comm c)
{
    wait_until(arrived_at(comm_of(c)), comm_of(c)->size - 1);
}

int PMPI_Barrier(MPI_Comm c)
{
    struct fake_comm *comm = comm_of(c);
    _Atomic int *arrived = arrived_at(comm);

    comm->barriers++;
    atomic_fetch_add(arrived, 1);
    wait_until(arrived, comm->size);
    return 0;
}

int PMPI_Comm_split(MPI_Comm c, int color, int key, MPI_Comm *to)
{
    struct fake_comm *comm = &made[nmade];

    (void)key;
    shared->color[world.rank] = color;
    PMPI_Barrier(c);
    comm->size = 0;
    for (int i = 0; i < world.size; i++) {
        if (shared->color[i] != color)
            continue;
        if (i == world.rank)
            comm->rank = comm->size;
        comm->members[comm->size++] = i;
    }
    PMPI_Barrier(c);
    *to = handle_of(nmade++);
    return 0;
}

int PMPI_Comm_free(MPI_Comm *c)
{
    *c = MPI_COMM_NULL;
    return 0;
}

int PMPI_Allreduce(const void *s, void *r, int n, MPI_Datatype type, MPI_Op op, MPI_Comm c)
{
    (void)s, (void)r, (void)n, (void)type, (void)op;
    return PMPI_Barrier(c);
}

int PMPI_Allgather(const void *s, int ns, MPI_Datatype ts, void *r, int nr, MPI_Datatype tr,
                   MPI_Comm c)
{
    (void)s, (void)ns, (void)ts, (void)r, (void)nr, (void)tr;
    return PMPI_Barrier(c);
}

int PMPI_Gather(const void *s, int ns, MPI_Datatype ts, void *r, int nr, MPI_Datatype tr, int root,
                MPI_Comm c)
{
    (void)s, (void)ns, (void)ts, (void)r, (void)nr, (void)tr, (void)root;
    return PMPI_Barrier(c);
}

int PMPI_Send(const void *s, int n, MPI_Datatype type, int to, int tag, MPI_Comm c)
{
    (void)s, (void)n, (void)type, (void)to, (void)tag, (void)c;
    return 0;
}

/* From the next rank; a receive from anybody takes what comes. */
int PMPI_Recv(void *r, int n, MPI_Datatype type, int from, int tag, MPI_Comm c, void *status)
{
    (void)r, (void)n, (void)type, (void)tag;
    if (status != MPI_STATUS_IGNORE)
        ((int *)status)[STATUS_SOURCE] =
            from >= 0 ? from : (comm_of(c)->rank + 1) % comm_of(c)->size;
    return 0;
}

int PMPI_Iallreduce(const void *s, void *r, int n, MPI_Datatype type, MPI_Op op, MPI_Comm c,
                    MPI_Request *q)
{
    (void)s, (void)r, (void)n, (void)type, (void)op, (void)c;
#ifdef MPICH
    *q = 7;
#else
    *q = &request;
#endif
    return 0;
}

int PMPI_Wait(MPI_Request *q, void *status)
{
    (void)q, (void)status;
    return PMPI_Barrier(MPI_COMM_WORLD);
}

/* As in an MPI library, the first names are weak: tools may define them. */
#define WEAK(name, parameters, arguments) \
    __attribute__((weak, alias("PMPI_" #name))) int MPI_##name parameters;
FAKE_MPI(WEAK)
