/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for a debugger or a profiler by looking for one ten times a second, which costs nothing. */
#include "base/err.h"

#include <reprise/recording.h>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Whether another process traces this one; false if the system does not tell. */
static bool is_traced(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    long tracer = 0;

    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "TracerPid:", 10))
            tracer = strtol(line + 10, NULL, 10);
    if (status)
        fclose(status);
    return tracer != 0;
}

/* Whether a line came from the terminal; other input belongs to the program that waits. */
static bool line_came(void)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    char text[256];

    return isatty(STDIN_FILENO) && poll(&in, 1, 0) > 0 && read(STDIN_FILENO, text, sizeof text) > 0;
}

enum rp_code rp_wait_attach(struct rp_err *err)
{
    const struct timespec tenth = {0, 100000000};
    sigset_t usr1, before;

    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    if (pthread_sigmask(SIG_BLOCK, &usr1, &before))
        return rp_err_set(err, RP_IO, "cannot wait for the signal SIGUSR1");
    fprintf(stderr,
            "reprise: process %ld waits: attach a debugger, or press Enter, or 'kill -USR1 %ld'\n",
            (long)getpid(), (long)getpid());
    while (!is_traced() && !line_came() && sigtimedwait(&usr1, NULL, &tenth) != SIGUSR1)
        continue;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return RP_OK;
}
