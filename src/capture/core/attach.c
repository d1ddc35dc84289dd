/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording that begins while the program runs, and ends before it does (`record --pid`). It can
 * begin again: what belongs to the process (the page, the keys, the streams of its threads) stays,
 * and what belongs to the recording is forgotten.
 *
 * The helper thread ends it, when the options or a line in the control file say so, or when the
 * `record` that asked for it is gone. Files of other threads' streams are unmapped then, so that no
 * thread may be storing an event: each marks its stream as busy before it looks whether the streams
 * are closed, and a barrier on all processors makes one of both visible to the other side.
 */
#include "capture/core/state.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LISTENERS      4
#define QUIET_WAITS_MS 10000 /* an event takes microseconds, unless its thread is stopped */
#define NO_BARRIER_MS  20    /* where the system has none: longer than between two instructions */

static void (*begin)(void);
static void (*listeners[LISTENERS])(void);
static uint32_t nlisteners;
static bool stuck; /* a thread did not come out of an event: nothing can begin again */

const _Atomic uint32_t *rp_capture_session(void)
{
    return &rp_core.session;
}

void rp_core_on_leave(void (*call)(void))
{
    if (nlisteners < LISTENERS)
        listeners[nlisteners++] = call;
}

/* -------------------------------------------------------------------------- beginning */

int rp_capture_attach(const char *root, const char *options, void (*call)(void))
{
    struct rp_core_page *page = rp_core.page;

    if (page && (atomic_load(&rp_core.session) != RP_CORE_LEFT || stuck))
        return EBUSY;
    if (page) {
        /* What the last recording has left, but `closed` and `ended`, which keep events out. */
        page->begun = page->opening = page->opened = page->process = 0;
        page->helper = page->done = page->ticking = page->broken = 0;
        if (rp_core.ledger) /* not before: a thread may have been about to use it */
            munmap(rp_core.ledger, sizeof *rp_core.ledger);
        rp_core.ledger = NULL;
        rp_core.nsources = rp_core.warned = rp_core.closing = rp_core.end_noted = 0;
        rp_core.bytes = rp_core.lost = 0;
        rp_core.stopped = rp_core.pause_told = rp_core.step_tid = 0;
        rp_core.steps_seen = rp_core.on_ns = rp_core.off_ns = rp_core.often_ns = 0;
        rp_core.wants_launches = rp_core.counts_launches = 0;
        rp_core.control_at = 0;
        rp_core.step_due = rp_core.leave_asked = false;
        rp_core_steps_forget();
        rp_core_signals_forget();
        rp_core_keep_forget();
        nlisteners = 0;
    }
    if (!rp_core_process_init(root, options))
        return EINVAL;
    page = rp_core.page;
    begin = call;
    rp_core_image();
    atomic_store(&rp_core.session, RP_CORE_ATTACHED);
    atomic_store(&rp_core.ended, 0);
    atomic_store(&page->closed, 0);
    rp_core_helper_start_here();
    if (atomic_load(&page->joinable))
        return 0;
    atomic_store(&rp_core.ended, 1);
    atomic_store(&rp_core.session, RP_CORE_LEFT);
    return EAGAIN;
}

/* The time of the recording counts from when the sources are there: that takes a while. */
static void count_from_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    rp_core.options.t0_ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Not in the child of a fork, which has the recording from its parent. */
void rp_core_attached(void)
{
    if (atomic_load(&rp_core.session) != RP_CORE_ATTACHED ||
        rp_core.loaded_pid != (uint32_t)getpid())
        return;
    count_from_now();
    begin();
    count_from_now();
}

/* -------------------------------------------------------------------------- ending */

static bool recorder_is_gone(void)
{
    const char *pid = rp_core_option("recorder");

    return pid && kill((pid_t)strtol(pid, NULL, 10), 0) && errno == ESRCH;
}

bool rp_core_is_over(void)
{
    uint32_t attached = RP_CORE_ATTACHED;

    return atomic_load(&rp_core.session) == attached &&
           (atomic_load(&rp_core.leave_asked) || rp_core_window_over() || recorder_is_gone()) &&
           atomic_compare_exchange_strong(&rp_core.session, &attached, RP_CORE_LEAVING);
}

static bool is_any_busy(void)
{
    bool busy = atomic_load(&rp_core.page->entering);

    for (struct rp_core_stream *s = atomic_load(&rp_core.streams); s && !busy; s = s->next)
        busy = atomic_load(&s->busy);
    return busy;
}

/* Closes the streams, and waits until no thread writes into one. */
static bool close_streams(void)
{
    int ms = 0;

    atomic_store(&rp_core.page->closed, 1);
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) ||
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
        usleep(NO_BARRIER_MS * 1000);
    for (; ms < QUIET_WAITS_MS && is_any_busy(); ms++)
        usleep(1000);
    return ms < QUIET_WAITS_MS;
}

/* The last thing that the helper does. */
void rp_core_leave(void)
{
    struct rp_core_page *page = rp_core.page;

    atomic_store(&rp_core.closing, 1);
    for (uint32_t i = 0; i < nlisteners; i++)
        listeners[i]();
    rp_core_steps_end();
    rp_core_signals_end();
    rp_core_steps_leave();
    rp_core_signals_leave();
    rp_capture_note_end();
    if (atomic_load(&page->on) && atomic_load(&page->opened))
        rp_core_put_clock();
    rp_core_tell_pause();
    atomic_store(&rp_core.stopped, 1);
    rp_core_update();
    atomic_store(&rp_core.ended, 1);
    stuck = !close_streams();
    if (!stuck) {
        for (struct rp_core_stream *s = atomic_load(&rp_core.streams); s; s = s->next) {
            rp_core_stream_close(s); /* if its thread has ended */
            rp_core_stream_forget(s);
        }
        atomic_store(&rp_core.wanting, NULL);
        rp_core_slots_forget();
    }
    rp_core_self = NULL;
    if (atomic_exchange(&page->joinable, 0))
        pthread_detach(pthread_self());
    atomic_store(&rp_core.session, RP_CORE_LEFT);
}
