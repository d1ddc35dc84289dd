/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper thread does everything that needs a system call and can be deferred. It creates spare
 * chunks, unmaps full ones, trims those of threads that have ended, records a calibration of the
 * clocks once a second, and ten times a second reads the control file, checks the time window and
 * calls the sources' on_tick. While it is not running (it is never started from a signal handler,
 * nor in a child made by a bare clone), threads create their own chunks, and the time window is
 * checked when a packet begins.
 *
 * The program must not notice it. It blocks all signals, so that the program's handlers never run
 * on it. It has a table of file descriptors of its own, so that the program's numbers do not
 * change and a program that closes all descriptors closes none of the recorder's. And it does not
 * keep the process alive, which ends with its last thread: it ends before the main thread does, and
 * is not started again. From then on threads do without it, as they do where it cannot be started.
 *
 * The control file has one command a line, appended by `record start|stop|mark`; each process
 * continues reading where it stopped.
 */
#include "capture/core/state.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define CALIBRATE_NS INT64_C(1000000000)
#define STOP_WAIT_NS 200000000
#define REST_WAIT_NS \
    50000 /* waits for the system to stop counting the helper, at most so many times */
#define REST_WAITS 10000
#define WATCH_NS   5000000 /* interval of checks, in a sandbox, whether the helper is alone */

static pthread_t helper;

static void futex_wait(_Atomic uint32_t *word, uint32_t value, long ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};

    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &t, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void rp_core_helper_wake(void)
{
    atomic_fetch_add(&rp_core.page->wake, 1);
    futex_wake(&rp_core.page->wake);
}

/* -------------------------------------------------------------------------- control */

/* Tells `record`, which waits for it. */
static void control_answer(uint64_t *count)
{
    atomic_fetch_add((_Atomic uint64_t *)count, 1);
}

static void control_mark(const char *name)
{
    struct rp_ctf_ledger *ledger;

    if (!atomic_load(&rp_core.page->on))
        return;
    rp_core_table.mark(name);
    if (rp_core_self && rp_core_self->head && (ledger = rp_core_ledger()))
        control_answer(&ledger->marks);
}

static void control_apply(char *line, bool first)
{
    bool stop = !strcmp(line, "stop");
    struct rp_ctf_ledger *ledger;

    if (stop || !strcmp(line, "start")) {
        if (stop)
            rp_core_table.fact("record.window",
                               "stopped"); /* written now, because its end may not be seen */
        atomic_store(&rp_core.stopped, stop);
        rp_core_update(); /* the next line may be a mark */
        if (!first && (ledger = rp_core_ledger()))
            control_answer(&ledger->commands);
    } else if (!strncmp(line, "trigger ", 8) && !first && !strchr(line, '/')) {
        line[7] = '-'; /* replaces the ':' in the name of its folder */
        if (rp_core_keep_now(line) && (ledger = rp_core_ledger()))
            control_answer(&ledger->commands);
    } else if (!strncmp(line, "keep ", 5) && !first) {
        char *more;
        uint64_t step = strtoull(line + 5, &more, 10);

        rp_core_keep_moment(step, strtoull(more, NULL, 10));
    } else if (!strcmp(line, "detach")) {
        atomic_store(&rp_core.leave_asked, true);
    } else if (!strncmp(line, "mark ", 5) && !first) {
        control_mark(line + 5);
    }
}

void rp_core_control_read(bool first)
{
    char path[sizeof rp_core.root + 16], text[4096];
    ssize_t n, done = 1;

    if (first)
        rp_core.control_at = 0;
    snprintf(path, sizeof path, "%s/" RP_CTF_CONTROL_NAME, rp_core.root);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); /* it may be a pipe */
    if (fd < 0)
        return;
    while (done > 0 && (n = pread(fd, text, sizeof text - 1, rp_core.control_at)) > 0) {
        text[n] = '\0';

        /* Applies the complete lines of the text. */
        char *line = text, *end;
        while ((end = strchr(line, '\n'))) {
            *end = '\0';
            control_apply(line, first);
            line = end + 1;
        }
        done = line - text;
        rp_core.control_at += done;
    }
    close(fd);
}

/* -------------------------------------------------------------------------- the loop */

static int64_t monotonic_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void helper_tick(void)
{
    struct rp_core_stream *s = atomic_load(&rp_core.nended) ? atomic_load(&rp_core.streams) : NULL;

    for (; s; s = s->next)
        rp_core_stream_age(s);
    rp_core_control_read(false);
    rp_core_update();
    rp_core_tell_pause();
    rp_core_signals_tick();
    atomic_store(&rp_core.page->ticking, 1);
    if (!atomic_load(&rp_core.closing))
        rp_core_processors_tick(false);
    for (uint32_t i = 0; i < atomic_load(&rp_core.nsources) && !atomic_load(&rp_core.closing);
         i++) {
        if (rp_core.sources[i].on_tick)
            rp_core.sources[i].on_tick();
    }
    atomic_store(&rp_core.page->ticking, 0);
}

/* Waits for a running tick, because a source's on_exit must be its last callback. */
void rp_core_helper_stop_ticks(void)
{
    atomic_store(&rp_core.closing, 1);
    for (int ms = 0; ms < STOP_WAIT_NS / 1000000 && atomic_load(&rp_core.page->ticking); ms++)
        usleep(1000);
}

/* -------------------------------------------------------------------------- the last thread */

/* Whether the process has only this thread and the main one: this folder has two more links than
   there are threads, and a main thread that has ended counts. */
static bool only_two_threads(void)
{
    struct stat st;

    return !stat("/proc/self/task", &st) && st.st_nlink == 4;
}

/* The exit status of the main thread if it has ended, else -1. Its state follows the program's
   name, which is in parentheses and may contain some; the exit status is the last number. */
static int main_thread_status(void)
{
    char text[1024];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;

    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    char *state = strrchr(text, ')');
    char *status = strrchr(text, ' ');
    if (!state || state[1] != ' ' || (state[2] != 'Z' && state[2] != 'X'))
        return -1;
    return (int)(strtol(status, NULL, 10) >> 8 & 255);
}

/* Ends the process if the main thread has ended by the bare system call (for instance because it is
   the child of a clone) and was the last one; uses its status. */
static void end_if_alone(void)
{
    int status = only_two_threads() ? main_thread_status() : -1;

    if (status < 0)
        return;
    rp_capture_close();
    syscall(SYS_exit, status);
}

/* -------------------------------------------------------------------------- running */

/* Calls the source that wants to be called often, if it is due; returns when it is due next. */
static int64_t helper_often(int64_t due, int64_t now)
{
    int64_t often_ns = atomic_load(&rp_core.often_ns);

    if (!often_ns || atomic_load(&rp_core.closing) || atomic_load(&rp_core.sealed))
        return INT64_MAX;
    if (due == INT64_MAX)
        return now + often_ns;
    if (now < due)
        return due;
    atomic_store(&rp_core.page->ticking, 1);
    if (!atomic_load(&rp_core.closing))
        rp_core.often();
    atomic_store(&rp_core.page->ticking, 0);
    often_ns = atomic_load(&rp_core.often_ns); /* the call may have changed it */
    due += often_ns;
    return due > now ? due : now + often_ns; /* late: leave some out */
}

static long helper_pause_ns(int64_t next, int64_t now)
{
    int64_t left = next > now ? next - now : 0;

    return (long)(atomic_load(&rp_core.sealed) && left > WATCH_NS ? WATCH_NS : left);
}

static void *helper_run(void *unused)
{
    struct rp_core_page *page = rp_core.page;
    int64_t now = monotonic_ns(), next_tick = now + RP_CORE_TICK_NS,
            next_clock = now + CALIBRATE_NS, next_often = INT64_MAX;
    int64_t counted_ns = 0;

    (void)unused;
    rp_core_in_helper = true;
    pthread_setname_np(pthread_self(), "reprise");
    rp_core_attached();
    syscall(SYS_close_range, 0, ~0U, CLOSE_RANGE_UNSHARE); /* from Linux 5.9 on */
    if (atomic_load(&page->on) && !rp_core.options.steps && !rp_core.cost_ps)
        rp_core_measure();
    while (!atomic_load(&rp_core.ended) && !atomic_load(&page->main_ended) &&
           !atomic_load(&page->resting) && !rp_core_is_over()) {
        uint32_t seen = atomic_load(&page->wake);

        /* Makes chunks for the streams that asked for them. */
        struct rp_core_stream *s = atomic_exchange(&rp_core.wanting, NULL), *next;
        rp_core_slots_reserve();
        for (; s; s = next) {
            next = s->next_wanting;
            atomic_store(&s->wanting, 0);
            rp_core_stream_reserve(s);
        }
        rp_core_keep_tick();
        now = monotonic_ns();
        if (now >= next_tick) {
            helper_tick();
            counted_ns = rp_core_spent(counted_ns);
            next_tick = now + RP_CORE_TICK_NS;
        }
        if (now >= next_clock) {
            if (atomic_load(&page->on) && atomic_load(&page->opened))
                rp_core_put_clock();
            next_clock = now + CALIBRATE_NS;
        }
        next_often = helper_often(next_often, now);
        long pause_ns =
            helper_pause_ns(next_often < next_tick ? next_often : next_tick, monotonic_ns());
        if (pause_ns > 0)
            futex_wait(&page->wake, seen, pause_ns);
        if (atomic_load(&page->wake) == seen && next_tick <= next_often)
            end_if_alone();
    }
    bool leaves = atomic_load(&rp_core.session) == RP_CORE_LEAVING;
    rp_core_spent(counted_ns);
    if (leaves) {
        rp_core_leave();
    } else if (rp_core_self) {
        rp_core_stream_end(rp_core_self);
        rp_core_self = NULL;
    }
    atomic_store(&page->done, 1);
    futex_wake(&page->done);
    return NULL;
}

void rp_core_helper_start(void)
{
    if (!atomic_load(&rp_core.page->helper) && !rp_core.bare_clone && !rp_core_in_handler())
        rp_core_helper_start_here();
}

void rp_core_helper_start_here(void)
{
    uint32_t none = 0;
    sigset_t all, old;
    pthread_attr_t attr;

    if (!atomic_compare_exchange_strong(&rp_core.page->helper, &none, 1))
        return;
    sigfillset(&all);
    if (pthread_attr_init(&attr))
        return;
    pthread_attr_setstacksize(&attr, 256 << 10);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool started = !pthread_create(&helper, &attr, helper_run, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    if (!started)
        atomic_store(&rp_core.page->done, 1);
    else if (atomic_load(
                 &rp_core.page->main_ended)) /* ended meanwhile, so it may be too late to join */
        pthread_detach(helper);
    else
        atomic_store(&rp_core.page->joinable, 1);
}

/* Called when the main thread ends, which must not end before the helper. */
void rp_core_helper_leave(void)
{
    struct rp_core_page *page = rp_core.page;

    atomic_store(&page->main_ended, 1);
    atomic_store(&page->helper, 1); /* prevents another start */
    if (!atomic_exchange(&page->joinable, 0))
        return;
    rp_core_helper_wake();
    pthread_join(helper, NULL);
}

/* The system counts a thread until shortly after it has been joined. */
static void helper_rest(void)
{
    struct rp_core_page *page = rp_core.page;

    if (rp_core_in_helper || atomic_load(&rp_core.sealed) || !only_two_threads() ||
        !atomic_exchange(&page->joinable, 0))
        return;
    atomic_store(&page->resting, 1);
    rp_core_helper_wake();
    for (int i = 0; i < 5 && !atomic_load(&page->done); i++)
        futex_wait(&page->done, 0, STOP_WAIT_NS);
    if (!atomic_load(&page->done)) { /* in a long call, for which the program does not wait */
        atomic_store(&page->resting, 0);
        atomic_store(&page->joinable, 1);
        return;
    }
    pthread_join(helper, NULL);
    for (int i = 0; i < REST_WAITS && only_two_threads(); i++)
        futex_wait(&page->resting, 1, REST_WAIT_NS);
}

void rp_core_helper_rest(bool rest)
{
    struct rp_core_page *page = rp_core.page;

    if (rest) {
        helper_rest();
    } else if (atomic_exchange(&page->resting, 0)) {
        atomic_store(&page->done, 0);
        atomic_store(&page->helper, 0);
        rp_core_helper_start();
    }
}

void rp_core_helper_stop(void)
{
    struct rp_core_page *page = rp_core.page;

    if (!atomic_load(&page->joinable) || rp_core_in_helper)
        return;
    rp_core_helper_wake();
    if (!atomic_load(&page->done))
        futex_wait(&page->done, 0, STOP_WAIT_NS);
}
