/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* `record --pid`: processes and when it ends (record_live.c), loading the recorder into a process
   (record_inject.c). */
#include "cli/record.h"

#include <sys/types.h>

/* The processes, from a list of numbers or by their name (one of both is NULL); checks that each
   can be recorded. *usage: the list is wrong. */
struct record_live *record_live_find(const char *pids, const char *name, bool *usage,
                                     struct rp_err *err);

/* Records them into r->folder until they have ended, the options say so, or a signal does. Frees
   `live`. Returns the exit status. */
int record_live(const struct record *r, struct record_live *live);

/* Loads the recorder into the process and begins to record. `session`: where it says in its memory
   how far it is (rp_capture_session). */
bool record_inject(const struct record *r, pid_t pid, uint64_t *session, struct rp_err *err);

/* Why the kernel refused to trace it, if that can be told. */
void record_live_explain(pid_t pid, struct rp_err *err);

/* Whether a signal is about to be delivered to its main thread. */
bool record_live_has_signal(pid_t pid);
