/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A progress line on stderr, from the first second on, redrawn at most five times a second; in a
 * log, a line every half minute of those commands that may be interrupted. The library calls
 * cli_progress_report.
 */
#include "cli/cli.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void cli_progress_begin(struct cli_progress *progress, bool quiet)
{
    *progress =
        (struct cli_progress){.enabled = !quiet, .screen = isatty(STDERR_FILENO), .started = now()};
    progress->last = progress->started;
}

void cli_progress_hold_interrupts(struct cli_progress *progress)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    progress->anytime = pthread_sigmask(SIG_BLOCK, &set, NULL) == 0;
}

static bool is_interrupted(void)
{
    sigset_t set;

    return sigpending(&set) == 0 && sigismember(&set, SIGINT) == 1;
}

int cli_progress_report(void *user, const char *what, uint64_t done, uint64_t total)
{
    struct cli_progress *progress = user;

    if (progress->anytime && is_interrupted())
        return 1;
    if (!progress->enabled)
        return 0;
    double at = now();
    if (at - progress->started < 1 || at - progress->last < (progress->screen ? 0.2 : 30) ||
        (!progress->screen && !progress->anytime))
        return 0;
    progress->last = at;
    progress->shown = progress->screen;
    const char *begin = progress->screen ? "\r\033[K" : "", *end = progress->screen ? "" : "\n";
    if (total)
        fprintf(stderr, "%s%s: %.0f %%%s", begin, what, 100.0 * (double)done / (double)total, end);
    else
        fprintf(stderr, "%s%s: %.0f s%s", begin, what, at - progress->started, end);
    fflush(stderr);
    return 0;
}

void cli_progress_end(struct cli_progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
    progress->shown = false;
    if (progress->anytime) {
        /* Handles the interrupt that waited, and lets others through again. */
        struct timespec none = {0};
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        while (sigtimedwait(&set, NULL, &none) == SIGINT)
            continue;
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    }
    progress->anytime = false;
}
