/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source `mpi`, loaded by LD_PRELOAD: MPI calls that communicate or wait, as spans of their
 * thread. MPI's profiling interface gives each function a second name, PMPI_...: both are wrapped,
 * because the Fortran bindings of Open MPI and MPICH call the second one. Of nested calls only the
 * outermost is recorded. Collectives carry their communicator and their number in it, from which
 * the ranks of a collective are matched; sends and receives carry their peer. Calls that start
 * something (MPI_Isend, MPI_Iallreduce) are spans of the call; MPI_Wait... has the waiting.
 */
#include "capture/mpi/mpi.h"

#include "capture/core/next.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define FAILED 16 /* an error of MPI, if there is no MPI behind a call */
#define NONE   ((rp_mpi_word)-1)

enum what { COLLECTIVE, STARTED, SENT, POSTED, WAITED, OTHER };

/* How to read the sizes of a call. */
enum sizes {
    ONE,    /* count, type */
    EACH,   /* a count for each rank: their sum */
    AT_ROOT /* gathers and scatters: these on the root, `other` on the others */
};

struct call {
    const char *name;
    enum what what;
    enum sizes sizes;
    rp_mpi_word count, type, comm, peer; /* NONE: the call has no such parameter */
    rp_mpi_word other_count, other_type; /* AT_ROOT: those of ranks that are not the root */
};

static const struct rp_capture *cap;
static __thread uint32_t depth __attribute__((tls_model("initial-exec")));

/* -------------------------------------------------------------------------- spans */

struct args {
    struct rp_capture_arg at[12];
    uint32_t n;
};

static void add_number(struct args *a, const char *key, int64_t value)
{
    a->at[a->n++] = (struct rp_capture_arg){.key = key, .type = RP_CTF_ARG_INT, .number = value};
}

static void add_text(struct args *a, const char *key, const char *text)
{
    a->at[a->n++] = (struct rp_capture_arg){.key = key, .type = RP_CTF_ARG_TEXT, .text = text};
}

/* Bytes that the call moves for this rank, or -1. The parameters of a rank that does not use them
   may be anything, and must not be given to MPI. */
static int64_t bytes_of(const struct call *c, const struct rp_mpi_comm *comm)
{
    bool root = comm && comm->rank == (int)c->peer;
    rp_mpi_word count = c->sizes == AT_ROOT && !root ? c->other_count : c->count;
    rp_mpi_word type = c->sizes == AT_ROOT && !root ? c->other_type : c->type;
    int64_t elements;

    if (count == NONE || type == NONE || !comm || (comm->inter && c->what != SENT))
        return -1;
    elements = c->sizes == EACH ? 0 : (int)count;
    for (int i = 0; c->sizes == EACH && i < comm->ranks; i++)
        elements += ((const int *)count)[i];
    return elements > 0 ? elements * rp_mpi_type_bytes(type) : elements;
}

static bool has_number(enum what what)
{
    return what == COLLECTIVE || what == STARTED;
}

static void describe(const struct call *c, struct args *a)
{
    struct rp_mpi_comm *comm = c->comm == NONE ? NULL : rp_mpi_comm_of(c->comm);
    int64_t bytes = bytes_of(c, comm);

    if (c->what != OTHER)
        add_text(a, "Collective name", c->name + 4);
    if (comm) {
        add_text(a, "Process Group Name", comm->group);
        add_number(a, "Group size", comm->ranks);
    }
    if (bytes >= 0) {
        add_number(a, "In msg nelems", bytes);
        add_text(a, "dtype", "Byte");
        add_number(a, "bytes", bytes);
    }
    if (c->peer != NONE)
        add_number(a, has_number(c->what) ? "root" : "peer", (int)c->peer);
    if (comm && has_number(c->what))
        add_number(a, "Seq", (int64_t)atomic_fetch_add(&comm->sequence, 1));
}

static void put_call(const struct call *c, uint64_t begin, uint64_t end)
{
    static const enum rp_ctf_kind kinds[] = {
        [COLLECTIVE] = RP_CTF_KIND_COLLECTIVE, [STARTED] = RP_CTF_KIND_OTHER,
        [SENT] = RP_CTF_KIND_COLLECTIVE,       [POSTED] = RP_CTF_KIND_OTHER,
        [WAITED] = RP_CTF_KIND_WAIT,           [OTHER] = RP_CTF_KIND_OTHER};
    static const char *const categories[] = {[COLLECTIVE] = "collective_comm",
                                             [STARTED] = "mpi",
                                             [SENT] = "collective_comm",
                                             [POSTED] = "mpi",
                                             [WAITED] = "blocking",
                                             [OTHER] = "mpi"};
    struct args args = {.n = 0};

    if (c->what != WAITED && c->what != OTHER)
        describe(c, &args);
    cap->span(&(struct rp_capture_span){.kind = kinds[c->what],
                                        .begin = begin,
                                        .end = end,
                                        .name = c->name,
                                        .category = categories[c->what],
                                        .device = RP_CTF_SPAN_DEVICE,
                                        .args = args.at,
                                        .nargs = args.n});
}

/* Numbers of collectives must agree between ranks even if some of them pause. */
static void count_call(const struct call *c)
{
    struct rp_mpi_comm *comm =
        has_number(c->what) && c->comm != NONE ? rp_mpi_comm_of(c->comm) : NULL;

    if (comm)
        atomic_fetch_add(&comm->sequence, 1);
}

/* The end of a call, recorded or not. */
static void end_call(const struct call *c, uint64_t begin)
{
    if (depth != 1)
        return;
    if (cap->ready())
        put_call(c, begin, cap->now());
    else
        count_call(c);
}

/* -------------------------------------------------------------------------- wrappers */

/* How a function is called: parameters, and arguments. */
#define W  rp_mpi_word
#define P0 void
#define A0
#define P1  W a
#define A1  a
#define P2  P1, W b
#define A2  A1, b
#define P3  P2, W c
#define A3  A2, c
#define P4  P3, W d
#define A4  A3, d
#define P5  P4, W e
#define A5  A4, e
#define P6  P5, W f
#define A6  A5, f
#define P7  P6, W g
#define A7  A6, g
#define P8  P7, W h
#define A8  A7, h
#define P9  P8, W i
#define A9  A8, i
#define P10 P9, W j
#define A10 A9, j
#define P12 P10, W k, W l
#define A12 A10, k, l

/* X(name, parameters, what, sizes, count, type, comm, peer, other_count, other_type) */
#define CALLS(X)                                                           \
    X(Barrier, 1, COLLECTIVE, ONE, NONE, NONE, a, NONE, NONE, NONE)        \
    X(Bcast, 5, COLLECTIVE, ONE, b, c, e, d, NONE, NONE)                   \
    X(Reduce, 7, COLLECTIVE, ONE, c, d, g, f, NONE, NONE)                  \
    X(Allreduce, 6, COLLECTIVE, ONE, c, d, f, NONE, NONE, NONE)            \
    X(Scan, 6, COLLECTIVE, ONE, c, d, f, NONE, NONE, NONE)                 \
    X(Exscan, 6, COLLECTIVE, ONE, c, d, f, NONE, NONE, NONE)               \
    X(Gather, 8, COLLECTIVE, AT_ROOT, e, f, h, g, b, c)                    \
    X(Gatherv, 9, COLLECTIVE, AT_ROOT, NONE, NONE, i, h, b, c)             \
    X(Scatter, 8, COLLECTIVE, AT_ROOT, b, c, h, g, e, f)                   \
    X(Scatterv, 9, COLLECTIVE, AT_ROOT, NONE, NONE, i, h, f, g)            \
    X(Allgather, 7, COLLECTIVE, ONE, e, f, g, NONE, NONE, NONE)            \
    X(Allgatherv, 8, COLLECTIVE, EACH, e, g, h, NONE, NONE, NONE)          \
    X(Alltoall, 7, COLLECTIVE, ONE, e, f, g, NONE, NONE, NONE)             \
    X(Alltoallv, 9, COLLECTIVE, EACH, f, h, i, NONE, NONE, NONE)           \
    X(Alltoallw, 9, COLLECTIVE, ONE, NONE, NONE, i, NONE, NONE, NONE)      \
    X(Reduce_scatter, 6, COLLECTIVE, EACH, c, d, f, NONE, NONE, NONE)      \
    X(Reduce_scatter_block, 6, COLLECTIVE, ONE, c, d, f, NONE, NONE, NONE) \
    X(Ibarrier, 2, STARTED, ONE, NONE, NONE, a, NONE, NONE, NONE)          \
    X(Ibcast, 6, STARTED, ONE, b, c, e, d, NONE, NONE)                     \
    X(Ireduce, 8, STARTED, ONE, c, d, g, f, NONE, NONE)                    \
    X(Iallreduce, 7, STARTED, ONE, c, d, f, NONE, NONE, NONE)              \
    X(Igather, 9, STARTED, AT_ROOT, e, f, h, g, b, c)                      \
    X(Iscatter, 9, STARTED, AT_ROOT, b, c, h, g, e, f)                     \
    X(Iallgather, 8, STARTED, ONE, e, f, g, NONE, NONE, NONE)              \
    X(Iallgatherv, 9, STARTED, EACH, e, g, h, NONE, NONE, NONE)            \
    X(Ialltoall, 8, STARTED, ONE, e, f, g, NONE, NONE, NONE)               \
    X(Ialltoallv, 10, STARTED, EACH, f, h, i, NONE, NONE, NONE)            \
    X(Ireduce_scatter, 7, STARTED, EACH, c, d, f, NONE, NONE, NONE)        \
    X(Ireduce_scatter_block, 7, STARTED, ONE, c, d, f, NONE, NONE, NONE)   \
    X(Send, 6, SENT, ONE, b, c, f, d, NONE, NONE)                          \
    X(Ssend, 6, SENT, ONE, b, c, f, d, NONE, NONE)                         \
    X(Bsend, 6, SENT, ONE, b, c, f, d, NONE, NONE)                         \
    X(Rsend, 6, SENT, ONE, b, c, f, d, NONE, NONE)                         \
    X(Recv, 7, SENT, ONE, b, c, f, d, NONE, NONE)                          \
    X(Sendrecv, 12, SENT, ONE, b, c, k, d, NONE, NONE)                     \
    X(Sendrecv_replace, 9, SENT, ONE, b, c, h, d, NONE, NONE)              \
    X(Isend, 7, POSTED, ONE, b, c, f, d, NONE, NONE)                       \
    X(Issend, 7, POSTED, ONE, b, c, f, d, NONE, NONE)                      \
    X(Irecv, 7, POSTED, ONE, b, c, f, d, NONE, NONE)                       \
    X(Wait, 2, WAITED, ONE, NONE, NONE, NONE, NONE, NONE, NONE)            \
    X(Waitall, 3, WAITED, ONE, NONE, NONE, NONE, NONE, NONE, NONE)         \
    X(Waitany, 4, WAITED, ONE, NONE, NONE, NONE, NONE, NONE, NONE)         \
    X(Waitsome, 5, WAITED, ONE, NONE, NONE, NONE, NONE, NONE, NONE)        \
    X(Probe, 4, WAITED, ONE, NONE, NONE, NONE, NONE, NONE, NONE)           \
    X(Finalize, 0, OTHER, ONE, NONE, NONE, NONE, NONE, NONE, NONE)

/* Calls the next function of the name; a wrapper under the first name respects other tools. */
#define NEXT(own, name)                                                     \
    static __typeof__(&own) next;                                           \
    const void *caller = __builtin_return_address(0);                       \
                                                                            \
    if (!next)                                                              \
        *(void **)&next = rp_capture_next(#own, caller, "libmpi");          \
    if (!next)                                                              \
        *(void **)&next = rp_capture_next("PMPI_" #name, caller, "libmpi"); \
    if (!next)                                                              \
        return FAILED;

#define WRAP_AS(own, name_, n, what_, sizes_, count_, type_, comm_, peer_, count2, type2)          \
    EXPORT int own(P##n);                                                                          \
    int own(P##n)                                                                                  \
    {                                                                                              \
        NEXT(own, name_)                                                                           \
        if (!cap || depth)                                                                         \
            return next(A##n);                                                                     \
        depth++;                                                                                   \
        rp_mpi_comms_begin(caller);                                                                \
        uint64_t begin = cap->now();                                                               \
        int result = next(A##n);                                                                   \
        end_call(&(struct call){"MPI_" #name_, what_, sizes_, count_, type_, comm_, peer_, count2, \
                                type2},                                                            \
                 begin);                                                                           \
        depth--;                                                                                   \
        return result;                                                                             \
    }
#define WRAP(name, ...) \
    WRAP_AS(MPI_##name, name, __VA_ARGS__) WRAP_AS(PMPI_##name, name, __VA_ARGS__)
CALLS(WRAP)

/* X(name, parameters, the communicator that it is collective on, where it stores the new one) */
#define CREATORS(X)                \
    X(Comm_dup, 2, a, b)           \
    X(Comm_dup_with_info, 3, a, c) \
    X(Comm_create, 3, a, c)        \
    X(Comm_split, 4, a, d)         \
    X(Comm_split_type, 5, a, e)    \
    X(Cart_create, 6, a, f)

#define CREATE_AS(own, name_, n, comm_, to)                                                      \
    EXPORT int own(P##n);                                                                        \
    int own(P##n)                                                                                \
    {                                                                                            \
        NEXT(own, name_)                                                                         \
        if (!cap || depth)                                                                       \
            return next(A##n);                                                                   \
        depth++;                                                                                 \
        rp_mpi_comms_begin(caller);                                                              \
        uint64_t begin = cap->now();                                                             \
        int result = next(A##n);                                                                 \
        end_call(                                                                                \
            &(struct call){"MPI_" #name_, COLLECTIVE, ONE, NONE, NONE, comm_, NONE, NONE, NONE}, \
            begin);                                                                              \
        if (!result)                                                                             \
            rp_mpi_comm_made(to);                                                                \
        depth--;                                                                                 \
        return result;                                                                           \
    }
#define CREATE(name, ...) \
    CREATE_AS(MPI_##name, name, __VA_ARGS__) CREATE_AS(PMPI_##name, name, __VA_ARGS__)
CREATORS(CREATE)

#define FREE_AS(own)                   \
    EXPORT int own(W place);           \
    int own(W place)                   \
    {                                  \
        NEXT(own, Comm_free)           \
        if (cap && !depth)             \
            rp_mpi_comm_forget(place); \
        return next(place);            \
    }
FREE_AS(MPI_Comm_free)
FREE_AS(PMPI_Comm_free)

/* -------------------------------------------------------------------------- beginning */

/* The first line of the library's version, as a fact of the recording. */
static void put_version(const void *caller)
{
    static char text[8192]; /* as much as MPI may store */
    int (*version)(char *, int *);
    int n = 0;

    *(void **)&version = rp_capture_next("PMPI_Get_library_version", caller, "libmpi");
    if (!version || version(text, &n))
        return;
    text[strcspn(text, "\n")] = '\0';
    text[120] = '\0';
    cap->fact("mpi.library", text);
}

static void end_init(const char *name, uint64_t begin, const void *caller)
{
    if (!cap->ready())
        return;
    rp_mpi_comms_begin(caller);
    put_call(&(struct call){name, OTHER, ONE, NONE, NONE, NONE, NONE, NONE, NONE}, begin,
             cap->now());
    put_version(caller);
}

#define INIT_AS(own, name_, n)                  \
    EXPORT int own(P##n);                       \
    int own(P##n)                               \
    {                                           \
        NEXT(own, name_)                        \
        if (!cap || depth)                      \
            return next(A##n);                  \
        depth++;                                \
        uint64_t begin = cap->now();            \
        int result = next(A##n);                \
        end_init("MPI_" #name_, begin, caller); \
        depth--;                                \
        return result;                          \
    }
INIT_AS(MPI_Init, Init, 2)
INIT_AS(PMPI_Init, Init, 2)
INIT_AS(MPI_Init_thread, Init_thread, 4)
INIT_AS(PMPI_Init_thread, Init_thread, 4)

__attribute__((constructor)) static void mpi_load(void)
{
    cap = rp_capture_get();
    if (cap)
        cap->source("mpi", NULL, NULL);
}
