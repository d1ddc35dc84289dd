/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_REPLAY_SEARCH_H
#define RP_REPLAY_SEARCH_H
/* Searches for the operations that are wrong, or slow, on an engine. */
#include "replay/trial.h"

/* A program with real inputs, the engine in question, and one that is right. */
struct rp_search {
    const struct rp_program *program;
    struct rp_tensor *const *arguments; /* partitions * narguments arrays */
    size_t narguments, partitions;
    const struct rp_trial_engine *tested, *oracle;
    struct rp_tolerance tolerance;
    int64_t slower_ns; /* the complaint is a run of at least this time; 0: wrong results */
};

/* The values of the entry's parameters. */
enum rp_code rp_search_parameters(const struct rp_search *s, struct rp_values *values,
                                  struct rp_err *err);

/* ---- what a search leaves ---- */

enum rp_complaint { RP_COMPLAINT_NONE, RP_COMPLAINT_WRONG, RP_COMPLAINT_FAILS, RP_COMPLAINT_SLOW };

/* The smallest part that was found, with its inputs and the outputs that are right. */
struct rp_reproducer {
    enum rp_complaint complaint; /* NONE: the whole program does what it should */
    struct rp_cut_program cut;
    struct rp_tensor **arguments, **expected; /* of all partitions; expected NULL: unknown */
    size_t nexpected;
    int64_t trials, before; /* parts that were run; operations of the whole program */
    bool hidden;            /* the outputs of the whole program do not show it */
    char message[256];      /* of an engine that fails */
};
void rp_reproducer_release(struct rp_reproducer *r, size_t partitions);

/* ---- isolate.c ---- */

struct rp_isolated_op {
    uint32_t op, placed;     /* placed: itself, or the call around it that has a source line */
    const char *verdict;     /* static */
    const char *inside;      /* the operation that calls its computation, or NULL */
    const char *message;     /* or NULL */
    int64_t iteration;       /* of the loop it is in, or RP_ABSENT_I64 */
    int64_t wrong, elements; /* or RP_ABSENT_I64 */
    double max_abs, max_rel;
};
struct rp_isolated {
    struct rp_isolated_op *rows; /* in the order of execution; what is inside of one follows it */
    size_t n;
    int64_t tested;    /* operations that ran alone */
    int64_t diverging; /* that differ or fail */
    int64_t sensitive; /* that amplify rounding */
    int64_t untested;  /* that the engine does not support alone */
};
/* Rows are in the arena. capture: filled with the first operation that differs, the innermost one
   where operations call others; or NULL. */
enum rp_code rp_isolate(const struct rp_search *search, struct rp_arena *arena,
                        struct rp_isolated *out, struct rp_reproducer *capture, struct rp_err *err);

/* ---- bisect.c ---- */

/* Released in every case by rp_reproducer_release. */
enum rp_code rp_bisect(const struct rp_search *search, struct rp_arena *arena,
                       struct rp_reproducer *out, struct rp_err *err);

/* Operations of the entry computation with the values that they take and give on the oracle.
   Released in every case by rp_reproducer_release. */
enum rp_code rp_search_part(const struct rp_search *search, const uint8_t *keep,
                            const uint32_t *outputs, size_t noutputs, struct rp_reproducer *out,
                            struct rp_err *err);

#endif
