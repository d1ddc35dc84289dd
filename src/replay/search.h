/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Searches for the operations that are wrong, or slow, on an engine. */
#include "replay/trial.h"

/* A program with real inputs, the engine in question, and one that is right. */
struct rp_search {
    const struct rp_program *program;
    struct rp_tensor *const *arguments; /* partitions * narguments arrays */
    size_t narguments, partitions;
    const struct rp_trial_engine *tested, *oracle;
    struct rp_tolerance tolerance;
    int64_t slower_ns; /* the complaint is a run that takes at least this time; 0: wrong results */
};

/* The values of the entry's parameters. */
enum rp_code rp_search_parameters(const struct rp_search *s, struct rp_values *values,
                                  struct rp_err *err);

/* ---- what a search leaves ---- */

enum rp_complaint { RP_COMPLAINT_NONE, RP_COMPLAINT_WRONG, RP_COMPLAINT_FAILS, RP_COMPLAINT_SLOW };

/* The smallest part that was found, with its inputs and the correct outputs. */
struct rp_reproducer {
    enum rp_complaint complaint; /* NONE: the whole program is right */
    struct rp_trial_cut part;    /* its outputs are those that are right; without any if unknown */
    int64_t trials, before; /* number of parts that were run; of operations in the whole program */
    bool hidden;            /* the outputs of the whole program do not show it */
    char message[256];      /* message of an engine that fails */
};
void rp_reproducer_release(struct rp_reproducer *r);

/* ---- isolate.c ---- */

struct rp_isolated_op {
    uint32_t op, placed;     /* placed: itself, or the call around it that has a source line */
    const char *verdict;     /* static */
    const char *inside;      /* the operation that calls its computation, or NULL */
    const char *message;     /* or NULL */
    int64_t iteration;       /* iteration of its loop, or RP_ABSENT_I64 */
    int64_t wrong, elements; /* or RP_ABSENT_I64 */
    double max_abs, max_rel;
};
struct rp_isolated {
    struct rp_isolated_op *rows; /* in the order of execution; operations inside of one follow it */
    size_t n;
    int64_t tested;    /* number of operations that ran alone */
    int64_t diverging; /* that differ or fail */
    int64_t sensitive; /* that amplify rounding */
};
/* Rows are in the arena. capture: is filled with the first operation that differs, the innermost
   one if operations call others; or NULL. */
enum rp_code rp_isolate(const struct rp_search *search, struct rp_arena *arena,
                        struct rp_isolated *out, struct rp_reproducer *capture, struct rp_err *err);

/* ---- pair.c ---- */

/* Finds counterparts by what is known about operations: hashes, scopes, names. match: by operation
   of each side, the other side's counterpart, or RP_NONE; only for the entry computations. In the
   arena. */
enum rp_code rp_pair_known(const struct rp_program *left, const struct rp_program *right,
                           struct rp_arena *arena, uint32_t *match[2], struct rp_err *err);
/* Adds counterparts that are only similar. */
enum rp_code rp_pair_similar(const struct rp_program *left, const struct rp_program *right,
                             uint32_t *match[2], struct rp_err *err);
/* An array in short. */
struct rp_value_print {
    uint64_t shape; /* rp_pair_shape */
    double size, sum;
    uint32_t op;
};
/* Returns false if it tells nothing, because all elements are equal. */
bool rp_value_print(const struct rp_tensor *t, struct rp_value_print *out);
/* Adds pairs of the same values. Sorts both lists. */
void rp_pair_values(struct rp_value_print *left, size_t n, struct rp_value_print *right, size_t m,
                    uint32_t *match[2]);
/* Equal for shapes of the same types and dimensions, whatever their layouts. */
uint64_t rp_pair_shape(const struct rp_program *p, uint32_t shape);

/* ---- isolate_pair.c ---- */

struct rp_pair_search {
    struct rp_trial_part side[2]; /* with the same arguments */
    const struct rp_trial_engine *on;
    struct rp_tolerance tolerance;
    bool results_only; /* find only whether they differ, not where */
};
struct rp_pair_row {
    const char *name[2], *opcode[2],
        *source[2];                         /* NULL if not known, or if there is no such side */
    const char *verdict, *inside, *message; /* inside and message may be NULL */
    int64_t iteration, wrong, elements;     /* or RP_ABSENT_I64 */
    double max_abs, max_rel;
};
struct rp_isolated_pair {
    bool differ; /* some result is off by more than rounding explains */
    RP_VEC(struct rp_pair_row) rows;
    size_t first;     /* if they differ: the row of the first pair that differs, innermost */
    int64_t compared; /* pairs */
    int64_t unpaired; /* operations of the left program that have no counterpart */
    int64_t rounded;  /* number of results that are off because the program amplifies rounding */
    int64_t unseen;   /* pairs that differ although all results agree; row 0 is the first */
};
static inline void rp_isolated_pair_release(struct rp_isolated_pair *pair)
{
    rp_vec_release(&pair->rows);
}
/* Texts are in the arena. Call rp_isolated_pair_release in every case. */
enum rp_code rp_isolate_pair(const struct rp_pair_search *search, struct rp_arena *arena,
                             struct rp_isolated_pair *out, struct rp_err *err);

/* Compares two programs that take the inputs of a session, with the bounds of checks. RP_USAGE if
   one takes others. Otherwise like rp_isolate_pair. */
enum rp_code rp_session_compare(const struct rp_session *s, const struct rp_program *left,
                                const struct rp_program *right, const struct rp_trial_engine *on,
                                bool results_only, struct rp_arena *arena,
                                struct rp_isolated_pair *out, struct rp_err *err);
/* Returns RP_USAGE if the inputs of a program are not those of the session. */
enum rp_code rp_session_takes(const struct rp_session *s, const struct rp_program *other,
                              const char *name, struct rp_err *err);

/* ---- bisect.c ---- */

/* Call rp_reproducer_release in every case. */
enum rp_code rp_bisect(const struct rp_search *search, struct rp_arena *arena,
                       struct rp_reproducer *out, struct rp_err *err);

/* Cuts out operations of the entry computation with the values that they take and give on the
   oracle. Call rp_reproducer_release in every case. */
enum rp_code rp_search_part(const struct rp_search *search, const uint8_t *keep,
                            const uint32_t *outputs, size_t noutputs, struct rp_reproducer *out,
                            struct rp_err *err);
