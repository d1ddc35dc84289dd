/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_REPLAY_ATTACH_H
#define RP_REPLAY_ATTACH_H
#include "base/err.h"

/*
 * Prints the process's number on standard error and waits: until a debugger is attached (Linux says
 * so), a line comes on standard input, or the signal SIGUSR1, for profilers that attach unseen.
 */
enum rp_code rp_replay_wait_attach(struct rp_err *err);

#endif
