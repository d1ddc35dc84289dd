/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_CLI_RECORD_H
#define RP_CLI_RECORD_H
/* What the files of the command `record` share. */
#include "cli/cli.h"

#include <limits.h>

struct record {
    char folder[PATH_MAX];    /* absolute */
    char libraries[PATH_MAX]; /* the folder of the injected libraries */
    char options[2048];       /* REPRISE_RECORD_OPTIONS */
    char used[512];           /* names of the sources, for the summary */
    bool quiet;
    int32_t rank, restarts; /* by the launcher that started this `record`, or -1 */
};

extern const struct rp_option record_options[];

/* The sources that were asked for (NULL: all that are there), into the environment of the program
   to come. False with a message, and whether that is wrong usage. */
bool record_sources(struct record *r, const char *with, bool *usage, struct rp_err *err);

/* Runs the program; its exit status, 128 + n after signal n, 126 or 127 where it cannot be run. */
int record_run(const struct record *r, const char *const *words, size_t n);

/* Adds this `record` to those that have begun (".begun"), or ended (".ended"), in the folder; its
   place among them, or 0 where that cannot be told. */
long record_note(const struct record *r, const char *list);

/* Removes what dead processes left half made, and tells (unless quiet) what was recorded. */
void record_summary(const struct record *r);

/* start, stop and mark on a recording that runs. */
int record_control(const struct cli_call *call);

#endif
