/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What changes brought that `try --learn` measured on this machine, beside what `simulate` had
 * predicted of them. They are kept in a file of the user, $XDG_DATA_HOME/reprise/outcomes.tsv, and
 * narrow the intervals of later predictions (docs/definitions.md). The file tells nothing about the
 * programs but how many parameters they have. A line is one outcome, its fields are separated by
 * tabs:
 *
 *     1  0.1.0  <processor>  <device>  torch 2.15.0  <parameters>  compile  <predicted>  <measured>
 *
 * The first is the version of the format, the second that of the program, whose predictions other
 * versions do not make. Lines that are not of this form are counted and left out.
 */
#include "base/arena.h"
#include "base/vec.h"

#include <stdbool.h>

#define RP_OUTCOMES_LEAST 3 /* programs: of fewer an interval is not changed */

struct rp_outcome {
    const char *version, *host, *device, *framework, *change;
    int64_t parameters;
    double predicted, measured; /* a step with the change / without it */
};

struct rp_outcomes {
    RP_VEC(struct rp_outcome) list; /* the latest last */
    size_t nrefused;                /* lines that are no outcome */
    char host[128];                 /* this machine's */
    struct rp_arena arena;
};

/* The path of the file; false: the environment names no folder for it. */
bool rp_outcomes_path(char *out, size_t cap);

/* Reads the file; where there is none, there are no outcomes. Release it also after a failure. */
enum rp_code rp_outcomes_read(struct rp_outcomes *out, struct rp_err *err);
/* The same for a prediction, which does without them where they cannot be read. */
void rp_outcomes_use(struct rp_outcomes *out);
/* From a text. */
enum rp_code rp_outcomes_parse(struct rp_outcomes *out, const char *text, size_t n,
                               struct rp_err *err);
void rp_outcomes_release(struct rp_outcomes *x);

/* Appends to the file. Version and host are those of this program and machine. */
enum rp_code rp_outcomes_add(const struct rp_outcome *list, size_t n, struct rp_err *err);
/* Empties the file. */
enum rp_code rp_outcomes_forget(struct rp_err *err);

/*
 * Changes the interval of a prediction (all three: a step with the change / without it) to what the
 * outcomes of this machine say, and returns of how many programs they are. 0: it is unchanged, as
 * there are not enough of this device, framework ("torch") and change (a what-if; the order of
 * those that are joined does not matter). The prediction is always inside.
 */
size_t rp_outcomes_narrow(const struct rp_outcomes *x, const char *device, const char *framework,
                          const char *change, double predicted, double *low, double *high);
