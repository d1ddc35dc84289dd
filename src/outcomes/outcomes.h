/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The effects of changes that `try --learn` measured on this machine, with the predictions of
 * `simulate`. They are kept in a file of the user, $XDG_DATA_HOME/reprise/outcomes.tsv, and narrow
 * the intervals of later predictions (docs/definitions.md). The file tells nothing about the
 * programs except how many parameters they have. A line is one outcome, its fields are separated by
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

#define RP_OUTCOMES_LEAST 3 /* with fewer programs, an interval does not change */

struct rp_outcome {
    const char *version, *host, *device, *framework, *change;
    int64_t parameters;
    double predicted, measured; /* the time of a step with the change / without it */
};

struct rp_outcomes {
    RP_VEC(struct rp_outcome) list; /* the latest last */
    size_t nrefused;                /* number of lines that are not outcomes */
    char host[128];                 /* this machine's */
    struct rp_arena arena;
};

/* Gives the path of the file; false if the environment names no folder for it. */
bool rp_outcomes_path(char *out, size_t cap);

/* Reads the file; if it does not exist, there are no outcomes. Must be released also after a
   failure. */
enum rp_code rp_outcomes_read(struct rp_outcomes *out, struct rp_err *err);
/* Does the same for a prediction, which goes on without outcomes if they cannot be read. */
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
 * Changes the interval of a prediction (all three: a step with the change / without it) to fit the
 * outcomes of this machine, and returns how many programs they come from. 0 means that it is
 * unchanged, because there are not enough for this device, framework ("torch") and change (a
 * what-if; the order of joined ones does not matter). The prediction is always inside.
 */
size_t rp_outcomes_narrow(const struct rp_outcomes *x, const char *device, const char *framework,
                          const char *change, double predicted, double *low, double *high);
