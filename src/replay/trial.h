/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Parts of a program on an engine, for searches that run many of them: the values that a part needs
 * are known, it runs once or a few times, and its results are compared.
 */
#include "program/cut.h"
#include "replay/replay.h"

/* An engine as a search uses it. */
struct rp_trial_engine {
    const struct rp_engine *engine;
    const char *where;
    struct rp_engine_options options;
    const char *fault; /* name of an operation that is wrong on it (rp_program_plant), or NULL */
};

struct rp_trial {
    struct rp_program *planted; /* what runs in place of the program, or NULL */
    struct rp_executable *exe;
    size_t noutputs; /* of all partitions */
};

/* Compiles. arguments: of the first run if they are known, else NULL; they must live until the
   trial is closed. Closed in every case by rp_trial_close. */
enum rp_code rp_trial_open(const struct rp_trial_engine *on, const struct rp_program *p,
                           struct rp_tensor *const *arguments, size_t narguments, size_t partitions,
                           struct rp_trial *out, struct rp_err *err);
/* One run; outputs has room for noutputs arrays, which outlive the trial and which the caller
   drops. ns: its time, or NULL. */
enum rp_code rp_trial_run(struct rp_trial *t, struct rp_tensor *const *arguments,
                          struct rp_tensor **outputs, int64_t *ns, struct rp_err *err);
void rp_trial_close(struct rp_trial *t);

/* All of it at once; *outputs is a new list of *n arrays (rp_tensors_drop). */
enum rp_code rp_trial_once(const struct rp_trial_engine *on, const struct rp_program *p,
                           struct rp_tensor *const *arguments, size_t narguments, size_t partitions,
                           struct rp_tensor ***outputs, size_t *n, struct rp_err *err);
/* The first line of an error, cut to cap. */
void rp_trial_message(const struct rp_err *err, char *out, size_t cap);

void rp_tensors_drop(struct rp_tensor **list, size_t n); /* the arrays and the list; NULL is fine */

/* ---- values of operations ---- */

/* Of one operation: its arrays, those of one partition after those of the other. */
struct rp_value {
    struct rp_tensor **at;
    size_t n;
};
struct rp_values {
    const struct rp_program *p;
    size_t partitions;
    struct rp_value *of; /* by operation of the program; `at` is NULL where it is not known */
};
enum rp_code rp_values_init(struct rp_values *v, const struct rp_program *p, size_t partitions,
                            struct rp_err *err);
void rp_values_release(struct rp_values *v);
void rp_values_forget(struct rp_values *v, uint32_t op);
bool rp_values_has(const struct rp_values *v, uint32_t op);
/* Keeps the arrays of an operation: leaf `from` and those after it, of a list with `each` arrays
   for every partition. */
enum rp_code rp_values_put(struct rp_values *v, uint32_t op, struct rp_tensor *const *list,
                           size_t each, size_t from, struct rp_err *err);
/* What a cut takes: a new list of partitions * inputs arrays, each borrowed. RP_BUG where a value
   is not known. */
enum rp_code rp_values_arguments(const struct rp_values *v, const struct rp_cut_program *cut,
                                 struct rp_tensor ***out, struct rp_err *err);

/* ---- the judgement ---- */

/* As rp_trial_once, with every float input changed by about a unit in the last place. */
enum rp_code rp_trial_nudged(const struct rp_trial_engine *on, const struct rp_program *p,
                             struct rp_tensor *const *arguments, size_t narguments,
                             size_t partitions, struct rp_tensor ***outputs, size_t *n,
                             struct rp_err *err);
/* How far each of the first n outputs moves if every float input changes by about a unit in the
   last place, up or down: the largest change of an element. */
enum rp_code rp_trial_sensitivity(const struct rp_trial_engine *on, const struct rp_program *p,
                                  struct rp_tensor *const *arguments, size_t narguments,
                                  size_t partitions, double *moved, size_t n, struct rp_err *err);

/*
 * Whether the arrays of one operation are right. More than the tolerance is no defect where the
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
/* got and want: n arrays, results of `cut`, which gave `want` for `arguments`. */
enum rp_code rp_trial_judge(const struct rp_trial_judge *judge, const struct rp_cut_program *cut,
                            struct rp_tensor *const *arguments, size_t partitions,
                            struct rp_tensor *const *got, struct rp_tensor *const *want, size_t n,
                            struct rp_trial_verdict *out, struct rp_err *err);
