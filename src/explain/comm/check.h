/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Do all ranks make the same collectives? Those of a group are compared one by one: order, kind,
 * size, type, and which ranks did not enter or leave one. Needs no times: it works for a job that
 * hangs (dumps of PyTorch's Flight Recorder, recordings with open collectives) and for one that
 * ran.
 */
#include "facts/ranks/collectives.h"
#include "result/result.h"

struct rp_comm_call {                           /* one collective of a rank, ended or not */
    const char *kind, *group, *members, *dtype; /* members: "[0, 1]"; NULL where not known */
    const char *shapes;                         /* of its inputs, or NULL */
    const char *line;                           /* of the program, or NULL */
    int64_t seq, in_bytes, begin_ns;            /* -1: not known */
    int64_t ended;
};
extern const struct rp_type rp_comm_call_type;

struct rp_comm_check { /* what differs: one rank in one collective */
    const char *group, *collective, *problem, *detail, *line;
    int64_t seq, rank, at_ns;
    int64_t order; /* problems of one collective: causes first */
};
extern const struct rp_type rp_comm_check_type;

struct rp_comm_caller {
    int64_t rank;
    const struct rp_comm_call *calls; /* in the order of the program */
    size_t n;
    const char *now; /* where its program was last, or NULL */
};

struct rp_comm_checks {
    struct rp_comm_check *rows;
    size_t n;
    int64_t compared; /* collectives */
    const char *text; /* the answer in one sentence */
};

/* Whether the trace has collectives that did not end, or says of each what became of it. */
bool rp_comm_may_hang(const struct rp_trace *trace);

/* The calls of a rank: from its events where it may hang, else those in `list`. */
enum rp_code rp_comm_find_calls(const struct rp_trace *trace, const struct rp_collectives *list,
                                struct rp_arena *arena, struct rp_comm_call **out, size_t *n,
                                struct rp_err *err);
/* Those of a rank that does not hang. */
enum rp_code rp_comm_list_calls(const struct rp_collectives *list, struct rp_arena *arena,
                                struct rp_comm_call **out, size_t *n, struct rp_err *err);

struct rp_comm_place {
    const char *line; /* "train.py:125 step"; NULL: there are no samples of Python */
    const char *kind; /* of the collective that it is in, and seems not to leave; NULL: none */
};

/* Where a program was longest since then, by the samples of its main thread, or of all where that
   has none: a job that hangs is there until it is ended. */
enum rp_code rp_comm_find_place(const struct rp_trace *trace, int64_t since_ns,
                                struct rp_arena *arena, struct rp_comm_place *out,
                                struct rp_err *err);
/* Appends the collective that a rank is in; there is room for it behind the calls. */
void rp_comm_add_open(const struct rp_comm_place *place, int64_t begin_ns,
                      struct rp_comm_call *calls, size_t *n);

/* n callers, by rank; world_size: 0: not known. */
enum rp_code rp_comm_compare(const struct rp_comm_caller *callers, size_t n, int64_t world_size,
                             struct rp_arena *arena, struct rp_comm_checks *out,
                             struct rp_err *err);
