/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source `mpi`, loaded by LD_PRELOAD: MPI calls that communicate or wait, as spans of their
 * thread. MPI's profiling interface gives each function a second name, PMPI_...: both are wrapped,
 * because the Fortran bindings of Open MPI and MPICH call the second one. Of nested calls only the
 * outermost is recorded. Collectives carry their communicator and their number in it, from which
 * the ranks of a collective are matched; sends and receives carry their peer. Calls that start
 * something (MPI_Isend, MPI_Iallreduce) are spans of the call. The call that waits for it
 * (MPI_Wait...) is the collective, the send or the receive: there the rank is held up. One that
 * waits for several has a span for each. A window is a communicator of its own, and its fences are
 * collectives; what is put into it or fetched from it is a span of the call.
 */
#include "capture/mpi/mpi.h"

#include "capture/core/flight.h"
#include "capture/core/next.h"

#include <limits.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define FAILED 16 /* an error of MPI, returned if there is no MPI behind a call */
#define NONE   ((rp_mpi_word)-1)

enum what { COLLECTIVE, STARTED, SENT, POSTED, WAITED, FENCED, PUT, OTHER };

/* How to find the size of a call's data. */
enum sizes {
    ONE,    /* count, type */
    EACH,   /* a count for each rank, which are added up */
    AT_ROOT /* gathers and scatters: these parameters on the root, `other` ones elsewhere */
};

struct call {
    const char *name;
    enum what what;
    enum sizes sizes;
    rp_mpi_word count, type, comm,
        peer; /* indices of parameters; NONE if the call has no such parameter */
    /* For AT_ROOT, the parameters of ranks that are not the root. For calls that send and receive,
       the first is the rank that is received from. */
    rp_mpi_word other_count, other_type;
    rp_mpi_word
        last; /* its last parameter, where a call that starts something stores the request */
};

static const struct rp_capture *cap;
static struct rp_flight flights[RP_FLIGHTS];
static __thread uint32_t depth __attribute__((tls_model("initial-exec")));

/* -------------------------------------------------------------------------- spans */

/* Bytes that the call moves for this rank, or -1. Parameters that a rank does not use may be
   anything, and must not be given to MPI. */
static int64_t bytes_of(const struct call *c, const struct rp_mpi_comm *comm)
{
    bool root = comm && comm->rank == (int)c->peer;
    rp_mpi_word count = c->sizes == AT_ROOT && !root ? c->other_count : c->count;
    rp_mpi_word type = c->sizes == AT_ROOT && !root ? c->other_type : c->type;

    if (count == NONE || type == NONE || !comm || (comm->inter && c->what != SENT))
        return -1;
    int64_t elements = c->sizes == EACH ? 0 : (int)count;
    for (int i = 0; c->sizes == EACH && i < comm->ranks; i++)
        elements += ((const int *)count)[i];
    return elements > 0 ? elements * rp_mpi_type_bytes(type) : elements;
}

static bool has_number(enum what what)
{
    return what == COLLECTIVE || what == STARTED || what == FENCED;
}

static struct rp_mpi_comm *comm_of(enum what what, rp_mpi_word handle)
{
    return handle == NONE                  ? NULL
           : what == FENCED || what == PUT ? rp_mpi_window_of(handle)
                                           : rp_mpi_comm_of(handle);
}

static struct rp_mpi_op op_of(const struct call *c)
{
    struct rp_mpi_comm *comm = comm_of(c->what, c->comm);
    struct rp_mpi_op op = {.name = c->name,
                           .numbered = has_number(c->what),
                           .peer = c->peer == NONE ? INT_MIN : (int)c->peer,
                           .source = INT_MIN,
                           .bytes = bytes_of(c, comm),
                           .sequence = -1};

    if (c->what == SENT && c->other_count != NONE)
        op.source = (int)c->other_count;
    if (!comm)
        return op;
    memcpy(op.group, comm->group, sizeof op.group);
    op.ranks = comm->ranks;
    op.rank = comm->rank;
    if (op.numbered)
        op.sequence = (int64_t)atomic_fetch_add(&comm->sequence, 1);
    return op;
}

static void describe(const struct rp_mpi_op *op, struct rp_capture_args *a)
{
    rp_capture_add_text(a, "Collective name", op->name + 4);
    if (op->group[0]) {
        rp_capture_add_text(a, "Process Group Name", op->group);
        rp_capture_add_number(a, "Group size", op->ranks);
    }
    if (op->bytes >= 0) {
        rp_capture_add_number(a, "In msg nelems", op->bytes);
        rp_capture_add_text(a, "dtype", "Byte");
        rp_capture_add_number(a, "bytes", op->bytes);
    }
    if (op->peer != INT_MIN)
        rp_capture_add_number(a, op->numbered ? "root" : "peer", op->peer);
    if (op->group[0] && op->peer != INT_MIN && !op->numbered)
        rp_capture_add_number(a, "Group rank", op->rank);
    if (op->source != INT_MIN)
        rp_capture_add_number(a, "source", op->source);
    if (op->sequence >= 0)
        rp_capture_add_number(a, "Seq", op->sequence);
}

static const enum rp_ctf_kind kinds[] = {[COLLECTIVE] = RP_CTF_KIND_COLLECTIVE,
                                         [STARTED] = RP_CTF_KIND_OTHER,
                                         [SENT] = RP_CTF_KIND_COLLECTIVE,
                                         [POSTED] = RP_CTF_KIND_OTHER,
                                         [WAITED] = RP_CTF_KIND_WAIT,
                                         [FENCED] = RP_CTF_KIND_COLLECTIVE,
                                         [PUT] = RP_CTF_KIND_OTHER,
                                         [OTHER] = RP_CTF_KIND_OTHER};
static const char *const categories[] = {[COLLECTIVE] = "collective_comm",
                                         [STARTED] = "mpi",
                                         [SENT] = "collective_comm",
                                         [POSTED] = "mpi",
                                         [WAITED] = "blocking",
                                         [FENCED] = "collective_comm",
                                         [PUT] = "mpi",
                                         [OTHER] = "mpi"};

/* Writes a span of a call; op is the operation it is for, or NULL. */
static void put_span(const char *name, enum what what, const struct rp_mpi_op *op, uint64_t begin,
                     uint64_t end)
{
    struct rp_capture_args args;

    args.n = 0;
    if (op)
        describe(op, &args);
    cap->span(&(struct rp_capture_span){.kind = kinds[what],
                                        .begin = begin,
                                        .end = end,
                                        .name = name,
                                        .category = categories[what],
                                        .device = RP_CTF_SPAN_DEVICE,
                                        .args = args.at,
                                        .nargs = args.n});
}

static void put_call(const struct call *c, uint64_t begin, uint64_t end)
{
    if (c->what == WAITED || c->what == OTHER) {
        put_span(c->name, c->what, NULL, begin, end);
        return;
    }
    struct rp_mpi_op op = op_of(c);
    put_span(c->name, c->what, &op, begin, end);
    if (c->what == STARTED || c->what == POSTED)
        rp_mpi_request_put(rp_mpi_handle_at(c->last, 0), &op);
}

/* A call in which a rank may hang is reported while it lasts. */
static struct rp_flight *begin_call(const char *name, enum what what, rp_mpi_word comm,
                                    uint64_t begin)
{
    if (depth != 1 || what == STARTED || what == POSTED || what == PUT || what == OTHER ||
        !cap->ready())
        return NULL;
    return rp_flight_begin(flights, cap, name, comm_of(what, comm), begin);
}

static void describe_flight(const struct rp_flight *flight, struct rp_capture_args *args)
{
    const struct rp_mpi_comm *comm = flight->what;

    rp_capture_add_text(args, "Collective name", flight->name + 4);
    if (!comm || !comm->group[0])
        return;
    rp_capture_add_text(args, "Process Group Name", comm->group);
    rp_capture_add_number(args, "Group size", comm->ranks);
    rp_capture_add_number(args, "Seq", (int64_t)atomic_load(&comm->sequence));
}

static void mpi_tick(void)
{
    rp_flight_tick(flights, cap, describe_flight);
}

/* The end of a call, recorded or not. */
static void end_call(const struct call *c, uint64_t begin)
{
    if (depth != 1)
        return;
    if (cap->ready())
        put_call(c, begin, cap->now());
    else {
        /* Collectives are counted even during a pause, because their numbers must agree between
         * ranks. */
        struct rp_mpi_comm *comm = has_number(c->what) ? comm_of(c->what, c->comm) : NULL;
        if (comm)
            atomic_fetch_add(&comm->sequence, 1);
    }
}

/* -------------------------------------------------------------------------- wrappers */

/* Macros for the parameters and arguments of functions. */
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
/* The last one. */
#define L0  NONE
#define L1  a
#define L2  b
#define L3  c
#define L4  d
#define L5  e
#define L6  f
#define L7  g
#define L8  h
#define L9  i
#define L10 j
#define L12 l

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
    X(Isend, 7, POSTED, ONE, b, c, f, d, NONE, NONE)                       \
    X(Issend, 7, POSTED, ONE, b, c, f, d, NONE, NONE)                      \
    X(Irecv, 7, POSTED, ONE, b, c, f, d, NONE, NONE)                       \
    X(Probe, 4, WAITED, ONE, NONE, NONE, NONE, NONE, NONE, NONE)           \
    X(Win_fence, 2, FENCED, ONE, NONE, NONE, b, NONE, NONE, NONE)          \
    X(Put, 8, PUT, ONE, b, c, h, d, NONE, NONE)                            \
    X(Get, 8, PUT, ONE, b, c, h, d, NONE, NONE)                            \
    X(Accumulate, 9, PUT, ONE, b, c, i, d, NONE, NONE)                     \
    X(Get_accumulate, 12, PUT, ONE, e, f, l, g, NONE, NONE)                \
    X(Win_lock, 4, WAITED, ONE, NONE, NONE, NONE, NONE, NONE, NONE)        \
    X(Win_unlock, 2, WAITED, ONE, NONE, NONE, NONE, NONE, NONE, NONE)      \
    X(Win_flush, 2, WAITED, ONE, NONE, NONE, NONE, NONE, NONE, NONE)       \
    X(Win_start, 3, WAITED, ONE, NONE, NONE, NONE, NONE, NONE, NONE)       \
    X(Win_complete, 1, WAITED, ONE, NONE, NONE, NONE, NONE, NONE, NONE)    \
    X(Win_wait, 1, WAITED, ONE, NONE, NONE, NONE, NONE, NONE, NONE)        \
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

/* Calls the next function without recording anything inside it. */
#define NEXT_ALONE(own, name, n) \
    NEXT(own, name)              \
    if (!cap || depth)           \
        return next(A##n);       \
    depth++;

#define WRAP_AS(own, name_, n, what_, sizes_, count_, type_, comm_, peer_, count2, type2)          \
    EXPORT int own(P##n);                                                                          \
    int own(P##n)                                                                                  \
    {                                                                                              \
        NEXT_ALONE(own, name_, n)                                                                  \
        rp_mpi_comms_begin(caller);                                                                \
        uint64_t begin = cap->now();                                                               \
        struct rp_flight *flight = begin_call("MPI_" #name_, what_, comm_, begin);                 \
        int result = next(A##n);                                                                   \
        rp_flight_end(flight);                                                                     \
        end_call(&(struct call){"MPI_" #name_, what_, sizes_, count_, type_, comm_, peer_, count2, \
                                type2, L##n},                                                      \
                 begin);                                                                           \
        depth--;                                                                                   \
        return result;                                                                             \
    }
#define WRAP(name, ...) \
    WRAP_AS(MPI_##name, name, __VA_ARGS__) WRAP_AS(PMPI_##name, name, __VA_ARGS__)
CALLS(WRAP)

/* A status of our own, if the program wants none: it tells who sent a message that the program
   takes from anybody. Negative ranks mean nobody. */
struct own_status {
    int words[16];
};

static rp_mpi_word status_for(struct own_status *own, rp_mpi_word status)
{
    if (status > 1) /* 0 and 1 are MPI_STATUS_IGNORE */
        return status;
    memset(own, 0xff, sizeof *own);
    return (rp_mpi_word)own->words;
}

static rp_mpi_word source_of(rp_mpi_word asked, rp_mpi_word status, int result)
{
    return (int)asked >= 0 || result ? asked : (rp_mpi_word)rp_mpi_status_source(status);
}

/* X(name, parameters, count, type, comm, to, from, status) */
#define RECEIVERS(X)                  \
    X(Recv, 7, b, c, f, NONE, d, g)   \
    X(Sendrecv, 12, b, c, k, d, i, l) \
    X(Sendrecv_replace, 9, b, c, h, d, f, i)

#define RECEIVE_AS(own, name_, n, count_, type_, comm_, to_, from_, status_)                   \
    EXPORT int own(P##n);                                                                      \
    int own(P##n)                                                                              \
    {                                                                                          \
        NEXT_ALONE(own, name_, n)                                                              \
        struct own_status status;                                                              \
        rp_mpi_comms_begin(caller);                                                            \
        status_ = status_for(&status, status_);                                                \
        uint64_t begin = cap->now();                                                           \
        int result = next(A##n);                                                               \
        W source = source_of(from_, status_, result);                                          \
        end_call(&(struct call){"MPI_" #name_, SENT, ONE, count_, type_, comm_,                \
                                to_ == NONE ? source : to_, to_ == NONE ? NONE : source, NONE, \
                                NONE},                                                         \
                 begin);                                                                       \
        depth--;                                                                               \
        return result;                                                                         \
    }
#define RECEIVE(name, ...) \
    RECEIVE_AS(MPI_##name, name, __VA_ARGS__) RECEIVE_AS(PMPI_##name, name, __VA_ARGS__)
RECEIVERS(RECEIVE)

/* -------------------------------------------------------------------------- waiting */

#define FOLLOWED 16 /* limit for the requests of a call that are followed */

/* Which requests of a call are done when it returns. */
enum done {
    ALL,
    INDEX, /* the one whose index is stored */
    SOME,  /* as many as are stored, by a list of indices */
    FLAG   /* all, if the flag is set */
};

/* The followed requests of a call are kept here, because MPI forgets their handles. */
struct waiting {
    uint32_t n, at[FOLLOWED];
    rp_mpi_word handle[FOLLOWED];
};

static void list_requests(struct waiting *w, rp_mpi_word place, rp_mpi_word count)
{
    struct rp_mpi_op op;

    w->n = 0;
    for (uint32_t i = 0; i < (uint32_t)count && (int)count > 0 && w->n < FOLLOWED; i++) {
        w->handle[w->n] = rp_mpi_handle_at(place, i);
        w->at[w->n] = i;
        w->n += rp_mpi_request_find(w->handle[w->n], &op, false);
    }
}

static bool is_done(enum done how, rp_mpi_word stored, rp_mpi_word list, uint32_t at)
{
    int value = how == ALL ? 1 : *(const int *)stored;

    if (how == INDEX)
        return value == (int)at;
    for (int i = 0; how == SOME && i < value; i++)
        if (((const int *)list)[i] == (int)at)
            return true;
    return how != SOME && value;
}

/* Ends the operations that a call has completed; returns whether there were any. status: that of
   the only one. */
static bool end_requests(const struct waiting *w, const char *name, enum done how,
                         rp_mpi_word stored, rp_mpi_word list, rp_mpi_word status, uint64_t begin)
{
    uint64_t end = cap->now();
    struct rp_mpi_op op;
    bool any = false;

    for (uint32_t i = 0; i < w->n; i++) {
        if (!is_done(how, stored, list, w->at[i]) || !rp_mpi_request_find(w->handle[i], &op, true))
            continue;
        if (!op.numbered && op.peer < 0)
            op.peer = rp_mpi_status_source(status);
        if (!op.numbered && op.peer < 0)
            continue; /* received from anybody, and no status says from whom */
        if (cap->ready())
            put_span(name, op.numbered ? COLLECTIVE : SENT, &op, begin, end);
        any = true;
    }
    return any;
}

/* X(name, parameters, recorded in any case, requests, how many, which are done, where that is
   stored, list of indices, status of a single request) */
#define WAITS(X)                                 \
    X(Wait, 2, true, a, 1, ALL, 0, 0, b)         \
    X(Waitall, 3, true, b, a, ALL, 0, 0, none)   \
    X(Waitany, 4, true, b, a, INDEX, c, 0, d)    \
    X(Waitsome, 5, true, b, a, SOME, c, d, none) \
    X(Test, 3, false, a, 1, FLAG, b, 0, c)       \
    X(Testall, 4, false, b, a, FLAG, c, 0, none) \
    X(Testany, 5, false, b, a, INDEX, c, 0, e)   \
    X(Testsome, 5, false, b, a, SOME, c, d, none)

#define WAIT_AS(own, name_, n, always, place, count, how, stored, list, status_)           \
    EXPORT int own(P##n);                                                                  \
    int own(P##n)                                                                          \
    {                                                                                      \
        NEXT_ALONE(own, name_, n)                                                          \
        struct own_status status;                                                          \
        struct waiting waiting;                                                            \
        W none = 0; /* the call has no such parameter */                                   \
        rp_mpi_comms_begin(caller);                                                        \
        list_requests(&waiting, place, count);                                             \
        status_ = status_for(&status, status_);                                            \
        uint64_t begin = cap->now();                                                       \
        int result = next(A##n);                                                           \
        (void)none;                                                                        \
        if ((result ||                                                                     \
             !end_requests(&waiting, "MPI_" #name_, how, stored, list, status_, begin)) && \
            always)                                                                        \
            end_call(&(struct call){.name = "MPI_" #name_, .what = WAITED}, begin);        \
        depth--;                                                                           \
        return result;                                                                     \
    }
#define WAIT(name, ...) \
    WAIT_AS(MPI_##name, name, __VA_ARGS__) WAIT_AS(PMPI_##name, name, __VA_ARGS__)
WAITS(WAIT)

/* X(name, parameters, what, the communicator that it is collective on, where it stores the new one)
 */
#define CREATORS(X)                        \
    X(Comm_dup, 2, comm, a, b)             \
    X(Comm_dup_with_info, 3, comm, a, c)   \
    X(Comm_create, 3, comm, a, c)          \
    X(Comm_split, 4, comm, a, d)           \
    X(Comm_split_type, 5, comm, a, e)      \
    X(Cart_create, 6, comm, a, f)          \
    X(Win_create, 6, window, e, f)         \
    X(Win_create_dynamic, 3, window, b, c) \
    X(Win_allocate, 6, window, d, f)       \
    X(Win_allocate_shared, 6, window, d, f)

#define CREATE_AS(own, name_, n, noun, comm_, to)                                              \
    EXPORT int own(P##n);                                                                      \
    int own(P##n)                                                                              \
    {                                                                                          \
        NEXT_ALONE(own, name_, n)                                                              \
        rp_mpi_comms_begin(caller);                                                            \
        uint64_t begin = cap->now();                                                           \
        int result = next(A##n);                                                               \
        end_call(&(struct call){"MPI_" #name_, COLLECTIVE, ONE, NONE, NONE, comm_, NONE, NONE, \
                                NONE, NONE},                                                   \
                 begin);                                                                       \
        if (!result)                                                                           \
            rp_mpi_##noun##_made(to, comm_);                                                   \
        depth--;                                                                               \
        return result;                                                                         \
    }
#define CREATE(name, ...) \
    CREATE_AS(MPI_##name, name, __VA_ARGS__) CREATE_AS(PMPI_##name, name, __VA_ARGS__)
CREATORS(CREATE)

#define FREE_AS(own, name)             \
    EXPORT int own(W place);           \
    int own(W place)                   \
    {                                  \
        NEXT(own, name)                \
        if (cap && !depth)             \
            rp_mpi_comm_forget(place); \
        return next(place);            \
    }
FREE_AS(MPI_Comm_free, Comm_free)
FREE_AS(PMPI_Comm_free, Comm_free)
FREE_AS(MPI_Win_free, Win_free)
FREE_AS(PMPI_Win_free, Win_free)

/* -------------------------------------------------------------------------- beginning */

static void end_init(const char *name, uint64_t begin, const void *caller)
{
    if (!cap->ready())
        return;
    rp_mpi_comms_begin(caller);
    put_span(name, OTHER, NULL, begin, cap->now());

    /* The first line of the library's version, as a fact of the recording. */
    static char text[8192]; /* the most that MPI may store */
    int (*version)(char *, int *);
    int n = 0;
    *(void **)&version = rp_capture_next("PMPI_Get_library_version", caller, "libmpi");
    if (version && !version(text, &n)) {
        text[strcspn(text, "\n")] = '\0';
        text[120] = '\0';
        cap->fact("mpi.library", text);
    }
}

#define INIT_AS(own, name_, n)                  \
    EXPORT int own(P##n);                       \
    int own(P##n)                               \
    {                                           \
        NEXT_ALONE(own, name_, n)               \
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
        cap->source("mpi", mpi_tick, NULL);
}
