/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs parts of a program on an engine, for searches that run many of them: the values that a part
 * needs are known, it runs once or a few times, and its results are compared.
 */
#include "program/cut.h"
#include "replay/replay.h"

/* An engine as used by a search. */
struct rp_trial_engine {
    const struct rp_engine *engine;
    const char *where;
    struct rp_engine_options options;
    const char *fault; /* name of an operation that is wrong on it (rp_program_plant), or NULL */
};

struct rp_trial {
    struct rp_program *planted; /* the program that runs instead, or NULL */
    struct rp_executable *exe;
    size_t noutputs; /* of all partitions */
};

/* Compiles. arguments: those of the first run if they are known, else NULL; they must live until
   the trial is closed. Call rp_trial_close in every case. */
enum rp_code rp_trial_open(const struct rp_trial_engine *on, const struct rp_program *p,
                           struct rp_tensor *const *arguments, size_t narguments, size_t partitions,
                           struct rp_trial *out, struct rp_err *err);
/* Runs once; outputs has room for noutputs arrays, which outlive the trial and which the caller
   drops. ns: gets its time, or NULL. */
enum rp_code rp_trial_run(struct rp_trial *t, struct rp_tensor *const *arguments,
                          struct rp_tensor **outputs, int64_t *ns, struct rp_err *err);
void rp_trial_close(struct rp_trial *t);

/* Does all of this at once; *outputs is a new list of *n arrays (rp_tensors_drop). */
enum rp_code rp_trial_once(const struct rp_trial_engine *on, const struct rp_program *p,
                           struct rp_tensor *const *arguments, size_t narguments, size_t partitions,
                           struct rp_tensor ***outputs, size_t *n, struct rp_err *err);
/* The first line of an error, cut to cap. */
void rp_trial_message(const struct rp_err *err, char *out, size_t cap);

void rp_tensors_drop(struct rp_tensor **list,
                     size_t n); /* drops the arrays and the list, which may be NULL */

/* ---- values of operations ---- */

/* The arrays of one operation, partition after partition. */
struct rp_value {
    struct rp_tensor **at;
    size_t n;
};
struct rp_values {
    const struct rp_program *p;
    size_t partitions;
    struct rp_value *of; /* by operation of the program; `at` is NULL if it is not known */
};
enum rp_code rp_values_init(struct rp_values *v, const struct rp_program *p, size_t partitions,
                            struct rp_err *err);
void rp_values_release(struct rp_values *v);
void rp_values_forget(struct rp_values *v, uint32_t op);
bool rp_values_has(const struct rp_values *v, uint32_t op);
/* Keeps the arrays of an operation: those from leaf `from` on, in a list with `each` arrays for
   every partition. */
enum rp_code rp_values_put(struct rp_values *v, uint32_t op, struct rp_tensor *const *list,
                           size_t each, size_t from, struct rp_err *err);
/* Makes the arguments of a cut: a new list of partitions * inputs borrowed arrays. RP_BUG if a
   value is not known. */
enum rp_code rp_values_arguments(const struct rp_values *v, const struct rp_cut_program *cut,
                                 struct rp_tensor ***out, struct rp_err *err);

/* ---- the judgement ---- */

/* Like rp_trial_once, with every float input changed by about a unit in the last place. */
enum rp_code rp_trial_nudged(const struct rp_trial_engine *on, const struct rp_program *p,
                             struct rp_tensor *const *arguments, size_t narguments,
                             size_t partitions, struct rp_tensor ***outputs, size_t *n,
                             struct rp_err *err);
/* How far each of the first n outputs moves if every float input changes by about a unit in the
   last place, up or down, or sums whose terms cancel run in another order: the largest change of
   an element. */
enum rp_code rp_trial_sensitivity(const struct rp_trial_engine *on, const struct rp_program *p,
                                  struct rp_tensor *const *arguments, size_t narguments,
                                  size_t partitions, double *moved, size_t n, struct rp_err *err);

/*
 * Whether the arrays of one operation are right. Exceeding the tolerance is not a defect if the
 * operation amplifies rounding: `want` itself changes by a quarter of that if the inputs change by
 * a unit in the last place.
 */
struct rp_trial_judge {
    const struct rp_trial_engine *oracle;
    struct rp_tolerance tolerance;
};
struct rp_trial_verdict {
    bool ok, sensitive;
    double max_abs, max_rel;
    int64_t wrong, elements;
    const char *reason; /* static, or NULL */
};
/* got and want have n arrays, results of `cut`, which gave `want` for `arguments`. */
enum rp_code rp_trial_judge(const struct rp_trial_judge *judge, const struct rp_cut_program *cut,
                            struct rp_tensor *const *arguments, size_t partitions,
                            struct rp_tensor *const *got, struct rp_tensor *const *want, size_t n,
                            struct rp_trial_verdict *out, struct rp_err *err);
