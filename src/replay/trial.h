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

/* A program, and as many arrays for each partition as it has inputs. */
struct rp_trial_part {
    const struct rp_program *program;
    struct rp_tensor *const *arguments; /* NULL: they are not known yet */
    size_t narguments, partitions;
};
/* The program of a session with its inputs. */
struct rp_trial_part rp_session_part(const struct rp_session *s);

struct rp_trial {
    struct rp_program *planted; /* the program that runs instead, or NULL */
    struct rp_executable *exe;
    size_t noutputs; /* of all partitions */
};

/* Compiles. Arguments that are known must live until the trial is closed. Call rp_trial_close in
   every case. */
enum rp_code rp_trial_open(const struct rp_trial_engine *on, const struct rp_trial_part *part,
                           struct rp_trial *out, struct rp_err *err);
/* Runs once, and makes a list of outputs, which outlive the trial; it replaces what is in the list.
   ns: gets the time, or NULL. */
enum rp_code rp_trial_run(struct rp_trial *t, struct rp_tensor *const *arguments,
                          struct rp_tensors *outputs, int64_t *ns, struct rp_err *err);
void rp_trial_close(struct rp_trial *t);

/* Does all of this at once. */
enum rp_code rp_trial_once(const struct rp_trial_engine *on, const struct rp_trial_part *part,
                           struct rp_tensors *outputs, struct rp_err *err);
/* The first line of an error, cut to cap. */
void rp_trial_message(const struct rp_err *err, char *out, size_t cap);
/* Whether a failure says nothing about the part that was tried. */
static inline bool rp_trial_is_ours(enum rp_code code)
{
    return code == RP_NOMEM || code == RP_BUG || code == RP_CANCELLED;
}

/* ---- values of operations ---- */

struct rp_values {
    const struct rp_program *p;
    size_t partitions;
    /* By operation of the program its arrays, partition after partition; `at` is NULL if they are
       not known. */
    struct rp_tensors *of;
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

/* A part of the program, with its inputs and outputs. */
struct rp_trial_cut {
    struct rp_cut_program cut;
    struct rp_tensors arguments, outputs;
};
/* Finds the inputs of a part that was cut. RP_BUG if a value is not known. */
enum rp_code rp_values_arguments(const struct rp_values *v, struct rp_trial_cut *part,
                                 struct rp_err *err);
/* Cuts a part, finds its inputs and runs it. Call rp_trial_cut_release in every case. */
enum rp_code rp_values_run(const struct rp_values *v, const struct rp_trial_engine *on,
                           const struct rp_cut *cut, struct rp_trial_cut *out, struct rp_err *err);
struct rp_trial_part rp_trial_cut_part(const struct rp_trial_cut *t, size_t partitions);
void rp_trial_cut_release(struct rp_trial_cut *t);

/* ---- the judgement ---- */

/* Like rp_trial_once, with every float input changed by about a unit in the last place. */
enum rp_code rp_trial_nudged(const struct rp_trial_engine *on, const struct rp_trial_part *part,
                             struct rp_tensors *outputs, struct rp_err *err);
/* How far each of the first n outputs moves if every float input changes by about a unit in the
   last place, up or down, or sums whose terms cancel run in another order: the largest change of
   an element. */
enum rp_code rp_trial_sensitivity(const struct rp_trial_engine *on,
                                  const struct rp_trial_part *part, double *moved, size_t n,
                                  struct rp_err *err);

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
/* got and want are lists of results of the part; want is right. */
enum rp_code rp_trial_judge(const struct rp_trial_judge *judge, const struct rp_trial_part *part,
                            const struct rp_tensors *got, const struct rp_tensors *want,
                            struct rp_trial_verdict *out, struct rp_err *err);
