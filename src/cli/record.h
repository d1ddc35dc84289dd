/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The command `record`: options and folder (cmd_record.c), sources (record_sources.c), running the
   program (record_run.c). */
#include "cli/cli.h"

#include <limits.h>
#include <signal.h>

struct record {
    char folder[PATH_MAX]; /* absolute */
    char name[PATH_MAX];   /* the name by which the user gives it to other commands */
    const char *program;   /* the program that is recorded; NULL for a process that already runs */
    const char **words;    /* the whole command */
    size_t nwords;
    char libraries[PATH_MAX]; /* the folder of the injected libraries */
    char options[2048];       /* REPRISE_RECORD_OPTIONS */
    char used[512];           /* names of the sources in use, for the summary */
    int64_t log_limit;        /* the most bytes of a log of torch.compile; 0 if none is written */
    bool quiet;
    int status;             /* the status of the program when it has ended */
    int32_t rank, restarts; /* set by the launcher that started this `record`, or -1 */
};

extern const struct rp_option record_options[];

/* Returns the i-th word with which a value of the option may begin: a source, a key; NULL after the
   last. */
const char *record_word(const char *option, size_t i);

/* Fills r->libraries; false if they are not installed. */
bool record_find_libraries(struct record *r);

/* Sets the environment that loads the sources in the comma-separated list `with` (NULL for the
   default ones that are installed) into the program. On failure it returns false, and sets *usage
   if the list is wrong. */
bool record_sources(struct record *r, const char *with, bool *usage, struct rp_err *err);

/* Tells frameworks the folder of the recording, into which they write themselves. */
void record_sources_folder(struct record *r);

/* Limits the size of what they have written there; ended: they write no more. */
void record_sources_bound(const struct record *r, bool ended);

/* Runs the program. Returns its exit status, 128 + n after signal n, 126 or 127 if it cannot be
 * run.
 */
int record_run(const char *const *words, size_t n);
/* Does the same; calls `tick` (which may be NULL) about five times a second while the program runs.
   wait_attach: the program begins when a debugger or a profiler has attached. */
int record_run_watched(const char *const *words, size_t n, bool wait_attach,
                       void (*tick)(void *user), void *user);

/* Blocks the signals that are for a child, and SIGCHLD, until it is waited for. */
void record_block_signals(sigset_t *waited, sigset_t *old);

/* A process that is already running (record_attach.c). */
struct record_attach {
    int64_t pid, lasts_ns; /* if lasts is 0, the recording lasts until the process ends or a signal
                              arrives */
};
/* Why it cannot be observed, if so; for the command `sample` or `record`. */
enum rp_code record_attach_check(int64_t pid, const char *command, struct rp_err *err);
bool record_is_running(int64_t pid); /* not one that has ended and was not waited for */
int64_t record_now_ns(void);         /* of the monotonic clock */
int record_attach(const struct record *r, const struct record_attach *attach);

/* `--pid PIDS --with kineto`: uses PyTorch's own profiler in processes that already run
   (record_kineto.c). lasts_ns is half a second if 0; steps, such as "5", replaces it, or is
   NULL. */
int record_kineto(const char *pids, const char *folder, int64_t lasts_ns, const char *steps,
                  bool quiet);

/* Whether `--set` has this key, and the key this value. */
bool record_key_check(const char *key, const char *value, struct rp_err *err);

/* Whether record_sources has enabled the source of a key, such as cuda.graph. */
bool record_key_has_source(const struct record *r, const char *key);

/* Counts this `record` in the file ".begun" or ".ended" of the folder. Returns the count so far, or
   0 if it is unknown. */
long record_note(const struct record *r, const char *list);

/* Removes the counts that an earlier run left in the folder. */
void record_forget_ledgers(const struct record *r);

/* Notes the CPU time of the program that has ended, and of its children. */
void record_spent(const struct record *r);

/* Removes unfinished files of dead processes, and prints (unless quiet) what was recorded. */
void record_summary(const struct record *r);

/* Finds the file of a program as execvp does. */
bool record_find_program(const char *name, char *to, size_t size);

/* Prints why nothing was recorded. */
void record_tell_nothing(const struct record *r, const struct rp_recording *rec);

/* `record start`, `stop` and `mark`: sends a command to a running recording. */
int record_control(const struct cli_call *call);
