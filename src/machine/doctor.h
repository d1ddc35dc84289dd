/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Declarations for `doctor` (doctor.c) and its tests (selftest.c): rows of the answer, the files of
   the tests (selftest_files.c) and the programs that they record (selftest_work.c). */
#include "base/arena.h"

struct rp_doctor_row {
    const char *check, *state, *purpose, *finding, *advice;
};

/* Gives the state of a source of `record` as `doctor` prints it: row->state is "absent" if it
   cannot work here, and row->finding says why. */
void rp_doctor_source(struct rp_arena *arena, const char *source, struct rp_doctor_row *row);
/* Returns the injected library of a source, or NULL. */
const char *rp_doctor_capture(struct rp_arena *arena, const char *source);
/* Returns the first python3 of the PATH that has the package, or NULL. */
const char *rp_doctor_python(struct rp_arena *arena, const char *package);
/* Returns the program `reprise`: this one, or the one beside the library, or that of the PATH; or
   NULL. */
const char *rp_doctor_program(struct rp_arena *arena);

#define RP_DOCTOR_RUNNING 2 /* rows */
/* Fills rows about a process that runs (running.c). */
size_t rp_doctor_running(struct rp_arena *arena, int64_t pid, struct rp_doctor_row *rows);

/* A file that the tests read, which is embedded in the program. */
struct rp_selftest_file {
    const char *name;
    const void *bytes;
    size_t len;
};
extern const struct rp_selftest_file rp_selftest_files[]; /* ends with a row without name */

size_t rp_selftest_count(void);
/* Runs the i-th of rp_selftest_count() tests in a scratch folder, and fills all members of row. */
struct rp_selftest;
enum rp_code rp_selftest_open(struct rp_arena *arena, struct rp_selftest **out, struct rp_err *err);
void rp_selftest_run(struct rp_selftest *tests, size_t i, struct rp_doctor_row *row);
void rp_selftest_close(struct rp_selftest *tests); /* removes the scratch folder */

/* A program that a test records by a source: this program, which then calls `use`, or a Python
   script. */
struct rp_selftest_source {
    const char *name;
    const char *trace; /* a text that the recording must contain; NULL for samples */
    enum rp_code (*use)(struct rp_err *err);
    const char *package, *script; /* NULL, or the package that the script needs, and its file */
};
const struct rp_selftest_source *rp_selftest_source(const char *name); /* or NULL */
#define RP_SELFTEST_WORK "REPRISE_DOCTOR_WORK" /* names the source to the recorded program */
#define RP_SELFTEST_MISSING \
    "not possible here: " /* begins its error if the source is not at fault */

/* If this process is the program that a test records, does its work and returns true. */
bool rp_selftest_is_recorded(struct rp_err *err, enum rp_code *code);
