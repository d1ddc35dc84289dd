/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of MPI that the double has, with handles as in MPICH (ints, -DMPICH) or as in Open MPI
 * (addresses of objects of the library).
 */
#ifndef FAKE_MPI_H
#define FAKE_MPI_H

#ifdef MPICH
typedef int MPI_Comm, MPI_Group, MPI_Datatype, MPI_Op, MPI_Request, MPI_Info, MPI_Win;
#define MPI_COMM_WORLD    0x44000000
#define MPI_COMM_NULL     0x04000000
#define MPI_DOUBLE        0x4c00080b
#define MPI_DATATYPE_NULL 0x0c000000
#define MPI_SUM           0x58000003
#define MPI_INFO_NULL     0x1c000000
#define MPI_IN_PLACE      ((void *)-1)
#define MPI_ANY_SOURCE    (-2)
#define MPI_STATUS_IGNORE ((void *)1)
#define STATUS_SOURCE     2 /* which of its ints */
#else
struct fake_comm;
typedef struct fake_comm *MPI_Comm, *MPI_Group;
typedef const int *MPI_Datatype;
typedef const int *MPI_Op;
typedef int *MPI_Request, *MPI_Info;
typedef struct fake_win *MPI_Win;
extern struct fake_comm ompi_mpi_comm_world, ompi_mpi_comm_null;
extern const int ompi_mpi_double;
#define MPI_COMM_WORLD    (&ompi_mpi_comm_world)
#define MPI_COMM_NULL     (&ompi_mpi_comm_null)
#define MPI_DOUBLE        (&ompi_mpi_double)
#define MPI_DATATYPE_NULL ((MPI_Datatype)0)
#define MPI_SUM           (&ompi_mpi_double)
#define MPI_INFO_NULL     ((MPI_Info)0)
#define MPI_IN_PLACE      ((void *)1)
#define MPI_ANY_SOURCE    (-1)
#define MPI_STATUS_IGNORE ((void *)0)
#define STATUS_SOURCE     0
#endif

struct fake_comm {
    int rank, size, barriers, members[16];
};

void fake_mpi_await_others(MPI_Comm c); /* until they wait for this rank in a collective */

/* X(name, parameters, arguments) */
#define FAKE_MPI(X)                                                                              \
    X(Init, (int *argc, char ***argv), (argc, argv))                                             \
    X(Finalize, (void), ())                                                                      \
    X(Comm_rank, (MPI_Comm c, int *rank), (c, rank))                                             \
    X(Comm_size, (MPI_Comm c, int *size), (c, size))                                             \
    X(Comm_test_inter, (MPI_Comm c, int *is), (c, is))                                           \
    X(Comm_group, (MPI_Comm c, MPI_Group * g), (c, g))                                           \
    X(Comm_remote_group, (MPI_Comm c, MPI_Group * g), (c, g))                                    \
    X(Group_size, (MPI_Group g, int *size), (g, size))                                           \
    X(Group_free, (MPI_Group * g), (g))                                                          \
    X(Group_translate_ranks, (MPI_Group a, int n, const int *from, MPI_Group b, int *to),        \
      (a, n, from, b, to))                                                                       \
    X(Comm_split, (MPI_Comm c, int color, int key, MPI_Comm *to), (c, color, key, to))           \
    X(Comm_free, (MPI_Comm * c), (c))                                                            \
    X(Type_size, (MPI_Datatype type, int *size), (type, size))                                   \
    X(Get_library_version, (char *text, int *n), (text, n))                                      \
    X(Barrier, (MPI_Comm c), (c))                                                                \
    X(Allreduce, (const void *s, void *r, int n, MPI_Datatype type, MPI_Op op, MPI_Comm c),      \
      (s, r, n, type, op, c))                                                                    \
    X(Allgather,                                                                                 \
      (const void *s, int ns, MPI_Datatype ts, void *r, int nr, MPI_Datatype tr, MPI_Comm c),    \
      (s, ns, ts, r, nr, tr, c))                                                                 \
    X(Gather,                                                                                    \
      (const void *s, int ns, MPI_Datatype ts, void *r, int nr, MPI_Datatype tr, int root,       \
       MPI_Comm c),                                                                              \
      (s, ns, ts, r, nr, tr, root, c))                                                           \
    X(Send, (const void *s, int n, MPI_Datatype type, int to, int tag, MPI_Comm c),              \
      (s, n, type, to, tag, c))                                                                  \
    X(Recv, (void *r, int n, MPI_Datatype type, int from, int tag, MPI_Comm c, void *status),    \
      (r, n, type, from, tag, c, status))                                                        \
    X(Iallreduce,                                                                                \
      (const void *s, void *r, int n, MPI_Datatype type, MPI_Op op, MPI_Comm c, MPI_Request *q), \
      (s, r, n, type, op, c, q))                                                                 \
    X(Wait, (MPI_Request * q, void *status), (q, status))                                        \
    X(Win_create, (void *base, long size, int unit, MPI_Info info, MPI_Comm c, MPI_Win *w),      \
      (base, size, unit, info, c, w))                                                            \
    X(Win_fence, (int assert, MPI_Win w), (assert, w))                                           \
    X(Win_free, (MPI_Win * w), (w))                                                              \
    X(Put,                                                                                       \
      (const void *s, int n, MPI_Datatype type, int to, long at, int nt, MPI_Datatype tt,        \
       MPI_Win w),                                                                               \
      (s, n, type, to, at, nt, tt, w))

#define DECLARE(name, parameters, arguments) \
    int MPI_##name parameters;               \
    int PMPI_##name parameters;
FAKE_MPI(DECLARE)
#undef DECLARE

#endif
