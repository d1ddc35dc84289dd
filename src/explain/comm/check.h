/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Checks whether all ranks make the same collectives. Those of a group are compared one by one:
 * order, kind, size, type, and which ranks did not enter or leave one. No times are needed, so this
 * works for a job that hangs (dumps of PyTorch's Flight Recorder, recordings with open collectives)
 * and for one that ran.
 */
#include "facts/ranks/collectives.h"
#include "result/result.h"

struct rp_comm_call { /* rp_comm_call: one collective of a rank, ended or not */
    const char *kind, *group, *members, *dtype; /* members: "[0, 1]", or NULL if not known */
    const char *shapes;                         /* shapes of its inputs, or NULL */
    const char *line;                           /* line of the program, or NULL */
    int64_t seq, in_bytes, begin_ns;            /* -1: not known */
    int64_t ended;
};
extern const struct rp_type rp_comm_call_type;

struct rp_comm_check { /* rp_comm_check: how one rank differs in one collective */
    const char *group, *collective, *problem, *detail, *line;
    int64_t seq, rank, at_ns;
    int64_t order; /* order of the problems of one collective: causes come first */
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

/* Whether the trace has collectives that did not end, or states for each how it ended. */
bool rp_comm_may_hang(const struct rp_trace *trace);

/* Collects the calls of a rank: from its events if it may hang, else from `list`. */
enum rp_code rp_comm_find_calls(const struct rp_trace *trace, const struct rp_collectives *list,
                                struct rp_arena *arena, struct rp_comm_call **out, size_t *n,
                                struct rp_err *err);
/* Collects the calls of a rank that does not hang. */
enum rp_code rp_comm_list_calls(const struct rp_collectives *list, struct rp_arena *arena,
                                struct rp_comm_call **out, size_t *n, struct rp_err *err);

struct rp_comm_place {
    const char *line; /* "train.py:125 step"; NULL if there are no samples of Python */
    const char *kind; /* kind of the collective that it is in, and seems not to leave; NULL: none */
};

/* Finds the place where a program spent most time since then, by the samples of its main thread, or
   of all threads if that has none: a job that hangs is there until it is ended. */
enum rp_code rp_comm_find_place(const struct rp_trace *trace, int64_t since_ns,
                                struct rp_arena *arena, struct rp_comm_place *out,
                                struct rp_err *err);
/* Appends the collective that a rank is in; `calls` has room for it at the end. */
void rp_comm_add_open(const struct rp_comm_place *place, int64_t begin_ns,
                      struct rp_comm_call *calls, size_t *n);

/* Compares n callers, ordered by rank; world_size is 0 if it is not known. */
enum rp_code rp_comm_compare(const struct rp_comm_caller *callers, size_t n, int64_t world_size,
                             struct rp_arena *arena, struct rp_comm_checks *out,
                             struct rp_err *err);
