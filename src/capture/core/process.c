/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process: options from the environment, switching recording on and off, fork and exit. A
 * process that records no event leaves no files: the folder, the streams and the helper thread are
 * created at the first event, without locks: each thread creates what is missing, and if two do so
 * at the same time, the file system or an atomic operation decides.
 *
 *   REPRISE_RECORD          the folder of the recording; unset: nothing is recorded
 *   REPRISE_RECORD_OPTIONS  key=value;key=value
 */
#include "abi/launcher_env.h"
#include "capture/core/state.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#define OPENING_TURNS 200
#define LEAVE_WAIT_MS 1000 /* for the helper, at the end of the process */

struct rp_core rp_core;
static pthread_key_t thread_key; /* its destructor runs when a thread ends */
static pthread_key_t main_key;   /* set in the main thread only */
static bool has_thread_key, has_main_key;

/* -------------------------------------------------------------------------- options */

const char *rp_core_option(const char *key)
{
    size_t n = strlen(key);

    for (const char *p = rp_core.texts; *p; p += strlen(p) + 1) {
        if (!strncmp(p, key, n) && p[n] == '=')
            return p + n + 1;
    }
    return NULL;
}

static int64_t option_number(const char *key)
{
    const char *text = rp_core_option(key);

    return text ? strtoll(text, NULL, 10) : 0;
}

/* Uses the launcher's variables of another process, because this one only observes it. */
static void take_launcher_of(uint32_t pid)
{
    static const char *const rank[] = RP_LAUNCHER_RANKS, *const size[] = RP_LAUNCHER_SIZES,
                             *const local[] = RP_LAUNCHER_LOCAL_RANKS;
    const char *const *const lists[] = {rank, size, local};
    static char text[128 << 10];
    char path[40];
    ssize_t n, got = 0;

    snprintf(path, sizeof path, "/proc/%u/environ", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (n = 0; fd >= 0 && (got = read(fd, text + n, sizeof text - 1 - (size_t)n)) > 0;)
        n += got;
    if (fd >= 0)
        close(fd);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const char *const *name = lists[i]; *name; name++) {
            size_t length = strlen(*name);

            unsetenv(*name);
            for (char *at = text; at < text + n; at += strlen(at) + 1)
                if (!strncmp(at, *name, length) && at[length] == '=')
                    setenv(*name, at + length + 1, 1);
        }
}

static void read_rank(void)
{
    static const char *const rank[] = RP_LAUNCHER_RANKS, *const size[] = RP_LAUNCHER_SIZES,
                             *const local[] = RP_LAUNCHER_LOCAL_RANKS;

    rp_core.rank = rp_launcher_number(rank);
    rp_core.world_size = rp_launcher_number(size);
    rp_core.local_rank = rp_launcher_number(local);
}

/* Copies the letters, digits, '-' and '_' up to the first '.', for the name of a folder. */
static void copy_host_name(char *to, size_t size, const char *from)
{
    size_t n = 0;

    for (; *from && n + 1 < size; from++) {
        bool plain = (*from >= 'a' && *from <= 'z') || (*from >= 'A' && *from <= 'Z') ||
                     (*from >= '0' && *from <= '9') || *from == '-' || *from == '_';

        if (plain)
            to[n++] = *from;
        else if (*from == '.')
            break;
    }
    to[n] = '\0';
}

size_t rp_core_read_text(const char *path, char *to, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, to, size - 1) : 0;

    if (fd >= 0)
        close(fd);
    to[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

static void read_machine(void)
{
    char text[256] = "";

    gethostname(text, sizeof text - 1);
    copy_host_name(rp_core.host, sizeof rp_core.host, text);
    if (!rp_core.host[0])
        memcpy(rp_core.host, "host", 5);
    rp_core_read_text("/proc/sys/kernel/random/boot_id", text, sizeof text);
    text[strcspn(text, "\n")] = '\0';
    copy_host_name(rp_core.boot, sizeof rp_core.boot, text);
}

/* -------------------------------------------------------------------------- on and off */

static int64_t since_start_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec - rp_core.options.t0_ns;
}

static bool in_window(void)
{
    const struct rp_core_options *o = &rp_core.options;
    int64_t steps = atomic_load(&rp_core.steps_seen);

    if (o->start_ns || o->duration_ns) {
        int64_t t = since_start_ns();
        if (t < o->start_ns || (o->duration_ns && t >= o->start_ns + o->duration_ns))
            return false;
    }
    return !o->steps || (steps > o->first_step && steps <= o->first_step + o->steps);
}

bool rp_core_window_over(void)
{
    const struct rp_core_options *o = &rp_core.options;

    return (o->duration_ns && since_start_ns() >= o->start_ns + o->duration_ns) ||
           (o->steps && atomic_load(&rp_core.steps_seen) > o->first_step + o->steps);
}

/* Returns false if nothing changes. */
static bool recording_switch(struct rp_core_page *page, bool on)
{
    uint32_t off = 0;

    if (!on) {
        uint32_t before = atomic_load(&page->on);
        if (before) /* done first, because a thread that finds recording off may need it */
            atomic_store(&rp_core.off_at[before % RP_CORE_PAUSES], rp_core_now());
        return atomic_exchange(&page->on, 0) != 0;
    }
    if (atomic_load(&page->on))
        return false;
    return atomic_compare_exchange_strong(&page->on, &off, atomic_fetch_add(&rp_core.times, 1) + 1);
}

/* Whether events are to be recorded now, if that is possible at all. */
static bool is_wanted(void)
{
    return !atomic_load(&rp_core.ended) && !atomic_load(&rp_core.stopped) && in_window();
}

void rp_core_update(void)
{
    struct rp_core_page *page = rp_core.page;
    bool on = atomic_load(&page->image) && !atomic_load(&page->broken) && is_wanted();
    struct timespec t;

    if (!recording_switch(page, on) || !atomic_load(&page->begun))
        return;
    clock_gettime(CLOCK_MONOTONIC, &t);
    atomic_store(on ? &rp_core.on_ns : &rp_core.off_ns, (int64_t)t.tv_sec * 1000000000 + t.tv_nsec);
}

bool rp_core_is_step(const char *name)
{
    static const char *const usual[] = {"step",       "Step",      "ProfilerStep",
                                        "train_step", "iteration", NULL},
                             optimizer[] = "Optimizer.step#"; /* PyTorch's range */
    const char *wanted = rp_core.options.step_name;

    if (wanted)
        return !strncmp(name, wanted, strlen(wanted));
    for (int i = 0; usual[i]; i++) {
        if (!strncmp(name, usual[i], strlen(usual[i])))
            return true;
    }
    /* a program that nobody prepared for --steps */
    return rp_core.options.steps && atomic_load(&rp_core.session) &&
           !strncmp(name, optimizer, sizeof optimizer - 1);
}

/* Steps are counted on the first thread that has one. A NULL name is known to be a step. */
void rp_core_step(const char *name)
{
    uint32_t none = 0;

    if ((name && !rp_core_is_step(name)) || !rp_core_steps_matter())
        return;
    uint32_t tid = (uint32_t)syscall(SYS_gettid);
    if (!atomic_compare_exchange_strong(&rp_core.step_tid, &none, tid) && none != tid)
        return;
    if (atomic_fetch_add(&rp_core.steps_seen, 1) > 0)
        rp_core.step_due = true; /* the previous step has ended */
    rp_core_update();
}

/* -------------------------------------------------------------------------- opening */

static void on_thread_end(void *stream)
{
    struct rp_core_stream *s = stream, *inner;

    if (rp_core_self == s)
        rp_core_self = NULL;
    /* after a fork the stream belongs to the parent */
    if (atomic_load(&rp_core.page->image) != (uint32_t)(s->instance >> 32))
        return;
    for (; s; s = inner) {
        inner = s->inner;
        rp_core_stream_leave(s);
    }
}

/* Called only if the main thread ends before the process, not when the process exits. */
static void on_main_end(void *unused)
{
    (void)unused;
    rp_core_helper_leave();
}

/* In the child of a fork: drops the parent's streams, whose files are not mapped here. */
static void forget_parent(void)
{
    atomic_store(&rp_core.streams, NULL);
    atomic_store(&rp_core.slab, NULL);
    atomic_store(&rp_core.slots, NULL);
    atomic_store(&rp_core.next_slots, NULL);
    atomic_store(&rp_core.slots_busy, 0);
    atomic_store(&rp_core.nslots_filed, 0);
    atomic_store(&rp_core.unused, 0);
    atomic_store(&rp_core.wanting, NULL);
    atomic_store(&rp_core.nended, 0);
    atomic_store(&rp_core.bytes, 0);
    atomic_store(&rp_core.lost, 0);
    atomic_store(&rp_core.off_ns, 0);
    atomic_store(&rp_core.nsources, 0);
    atomic_store(&rp_core.often_ns, 0);
    atomic_store(&rp_core.closing, 0);
    atomic_store(&rp_core.steps_seen, 0); /* every process counts its own steps */
    atomic_store(&rp_core.step_tid, 0);
    rp_core_steps_forget();
    rp_core_signals_forget();
    rp_core_processors_forget();
    rp_core_keep_forget();
    atomic_store(&rp_core.end_noted, 0);
    atomic_store(&rp_core.counts_launches, 0); /* devices do not work in the child */
    rp_core_self = NULL;
    if (has_thread_key)
        pthread_setspecific(thread_key, NULL);
}

uint32_t rp_core_image(void)
{
    struct rp_core_page *page = rp_core.page;
    uint32_t image = page ? atomic_load(&page->image) : 0, none = 0;
    struct timespec t;

    if (image || !page)
        return image;
    clock_gettime(CLOCK_REALTIME, &t);
    image = (uint32_t)t.tv_nsec * 2654435761u ^ (uint32_t)t.tv_sec * 40503u ^
            (uint32_t)getpid() * 2246822519u;
    image |= 1;
    if (atomic_compare_exchange_strong(&page->image, &none, image)) {
        if (rp_core.pid && rp_core.pid != (uint32_t)getpid() &&
            rp_core.forked_pid != (uint32_t)getpid()) {
            forget_parent(); /* the fork bypassed the C library's handlers */
            rp_core.bare_clone = true;
        }
        rp_core.pid = (uint32_t)getpid();
    }
    return atomic_load(&page->image);
}

/* The command line of the process, with spaces. */
static void read_command(char *to, size_t size)
{
    char path[40];

    snprintf(path, sizeof path, "/proc/%u/cmdline", rp_core_subject());
    size_t n = rp_core_read_text(path, to, size);
    for (size_t i = 0; i + 1 < n; i++) {
        if (!to[i])
            to[i] = ' ';
    }
}

static void put_life(const char *what, const char *how)
{
    char key[40];

    snprintf(key, sizeof key, "process.%u.%s", rp_core_subject(), what);
    rp_core_table.fact(key, how);
}

/* Whether the folder is open, or this thread has to open it. That takes two milliseconds if the
   clock must be measured, so a thousand new threads must not all do it. They yield the processor to
   the first one several times, but do not wait longer, because it may have been stopped. */
static bool folder_is_open(void)
{
    struct rp_core_page *page = rp_core.page;
    uint32_t nobody = 0;

    if (atomic_compare_exchange_strong(&page->opening, &nobody, 1))
        return false;
    for (int turn = 0; turn < OPENING_TURNS && !atomic_load(&page->opened); turn++)
        sched_yield();
    return atomic_load(&page->opened);
}

/* Opens the folder. If it cannot be created, warns once; nothing will be recorded. */
static bool open_folder(void)
{
    if (atomic_load(&rp_core.page->opened) || folder_is_open())
        return true;
    /* the second attempt is for the case that another thread took the last room on the disk for the
       same purpose */
    bool opened = rp_core_folder_open();
    if (!opened)
        opened = rp_core_folder_open();
    if (opened) {
        atomic_store(&rp_core.page->opened, 1);
        return true;
    }
    int why = errno;
    if (atomic_load(&rp_core.page->opened))
        return true;
    errno = why;
    rp_core_warn(RP_CORE_WARN_FOLDER,
                 "cannot create a recording in '%s': %m; continuing without it", rp_core.root);
    rp_core.why = rp_core_loss(why);
    atomic_store(&rp_core.page->broken, 1);
    rp_core_update();
    return false;
}

/* Several threads may do this, so that none has to wait. */
static void begin_process(void *unused)
{
    (void)unused;
    rp_core_ledger_open(true);
    rp_core_control_read(true);
    rp_core_update();
    atomic_store(&rp_core.page->begun, 1);
}

static bool open_process(void)
{
    struct rp_core_page *page = rp_core.page;
    int saved = errno;

    if (atomic_load(&rp_core.ended))
        return false;
    rp_core_image();
    if (!atomic_load(&page->begun))
        rp_core_aside(begin_process, NULL);
    if (atomic_load(&page->broken) || atomic_load(&rp_core.ended))
        return false;
    rp_core_helper_start();
    errno = saved;
    return true;
}

/* Does nothing in the child of a vfork, which shares its parent's memory. */
bool rp_core_begin(void)
{
    if (atomic_load(&rp_core.page->begun) || atomic_load(&rp_core.sealed))
        return false;
    uint32_t pid = (uint32_t)getpid();
    return (pid == rp_core.loaded_pid || pid == rp_core.forked_pid) && open_process() &&
           atomic_load(&rp_core.page->on);
}

static void make_stream(void *to)
{
    struct rp_core_stream *s = *(struct rp_core_stream **)to;
    uint32_t none = 0;

    if (open_folder()) {
        s = rp_core_stream_new(s);
        if (!s && !rp_core_own)
            rp_core_lose(RP_CTF_LOSS_MEMORY, 1);
    } else {
        s = NULL;
        if (!rp_core_own)
            rp_core_lose(rp_core.why, 1);
    }
    if (s) {
        rp_core_self = s;
        if (has_thread_key)
            pthread_setspecific(thread_key, s);
        if (atomic_compare_exchange_strong(&rp_core.page->process, &none, 1)) {
            /* Describes the process at the begin of its first stream. */
            char path[40], program[1024], command[2048];
            snprintf(path, sizeof path, "/proc/%u/exe", rp_core_subject());
            ssize_t n = readlink(path, program, sizeof program - 1);
            program[n > 0 ? n : 0] = '\0';
            n = n < (ssize_t)sizeof rp_core.program ? 0 : n - (ssize_t)sizeof rp_core.program + 1;
            memcpy(rp_core.program, program + n, strlen(program + n) + 1);
            read_command(command, sizeof command);
            rp_core_put_process(program, command);
            rp_core_put_clock();
            put_life("began", "recorded");
            if (rp_core.options.step_name)
                rp_core_table.fact("step_name", rp_core.options.step_name);
            if (rp_core.options.steps || rp_core.options.start_ns || rp_core.options.duration_ns)
                rp_core_table.fact("record.window",
                                   "options"); /* written now, because its end may not be seen */
        }
        char name[17] = "";
        if (!syscall(SYS_prctl, PR_GET_NAME, name, 0, 0, 0) && name[0])
            rp_core_table.thread_name(0, name);
    }
    *(struct rp_core_stream **)to = s;
}

/* Opens a stream for this thread. Blocks signals meanwhile and preserves errno. */
static struct rp_core_stream *open_stream(void)
{
    struct rp_core_stream *s = rp_core_self && rp_core_self->left ? rp_core_self : NULL;
    sigset_t all, old;
    int saved = errno;
    int64_t began_ns = rp_core_thread_ns();

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rp_core_self = NULL;
    rp_core_aside(make_stream, &s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!rp_core_in_helper) /* the helper thread counts all of its time */
        rp_core_spent(began_ns);
    errno = saved;
    return s;
}

static void make_inner(void *of)
{
    struct rp_core_stream *s = of;

    s->inner = rp_core_stream_new(NULL);
    if (s->inner)
        s->inner->is_inner = true;
}

/* Blocks signals, so that another handler either waits, or has already opened the stream. */
struct rp_core_stream *rp_core_open_inner(struct rp_core_stream *s)
{
    sigset_t all, old;
    int saved = errno;

    if (atomic_load(&rp_core.sealed))
        return NULL;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (!s->inner)
        rp_core_aside(make_inner, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = saved;
    return s->inner;
}

/* When the nth recording ended; 0 if that was too long ago. */
static uint64_t pause_begin(uint32_t n)
{
    uint32_t times = atomic_load(&rp_core.times);

    return n <= times && times - n < RP_CORE_PAUSES / 2
               ? atomic_load(&rp_core.off_at[n % RP_CORE_PAUSES])
               : 0;
}

void rp_core_tell_pause(void)
{
    uint32_t times = atomic_load(&rp_core.times);

    if (atomic_load(&rp_core.page->on) || !times || !atomic_load(&rp_core.page->begun) ||
        atomic_load(&rp_core.pause_told) == times || atomic_load(&rp_core.sealed))
        return;
    struct rp_core_stream *s = rp_core_open_late();
    if (!s || !pause_begin(times))
        return;
    atomic_store(&rp_core.pause_told, times);
    rp_core_put_pause(s, pause_begin(times));
}

/* Whether this thread may open a stream: not while others are being ended. */
static bool enter(void)
{
    atomic_fetch_add(&rp_core.page->entering, 1);
    if (!atomic_load(&rp_core.page->closed))
        return true;
    atomic_fetch_sub(&rp_core.page->entering, 1);
    return false;
}

static struct rp_core_stream *open_entered(const char *name)
{
    struct rp_core_page *page = rp_core.page;
    struct rp_core_stream *s = rp_core_self;
    bool step = false;

    if (atomic_load(&rp_core.sealed)) { /* a thread that has a stream continues in its chunk */
        if (atomic_load(&page->on) && !rp_core_own)
            rp_core_lose(RP_CTF_LOSS_SANDBOX, 1);
        return NULL;
    }
    if (!open_process()) {
        if (atomic_load(&page->broken) && !rp_core_own && is_wanted())
            rp_core_lose(rp_core.why, 1);
        return NULL;
    }
    if (!atomic_load(&page->on)) {
        step = name && rp_core.options.steps;
        if (step)
            rp_core_step(name);
        if (!atomic_load(&page->on))
            return NULL;
    }
    if (!s || (uint32_t)(s->instance >> 32) != atomic_load(&page->image) || s->left)
        s = open_stream();
    else {
        /* Writes when the pause began, and a resume event, before a thread's first event after a
           pause, because ends of ranges may be missing. A handler that interrupted an event leaves
           this to the next event. */
        uint32_t time = atomic_load(&rp_core.page->on), before = s->time;
        if (before != time && time && !atomic_load(&s->busy)) {
            s->time = time;
            s->input.depth = s->collective.depth = 0; /* their ends may be missing */
            if (before != RP_CORE_NEVER && pause_begin(before))
                rp_core_put_pause(s, pause_begin(before));
            rp_core_put_resume();
        }
    }
    if (s)
        s->step_counted = step;
    return s;
}

struct rp_core_stream *rp_core_open(const char *name)
{
    if (!enter())
        return NULL;
    struct rp_core_stream *s = open_entered(name);
    atomic_fetch_sub(&rp_core.page->entering, 1);
    return s;
}

static struct rp_core_stream *open_late_entered(void)
{
    struct rp_core_page *page = rp_core.page;
    struct rp_core_stream *s = rp_core_self;

    if (!atomic_load(&page->opened) || atomic_load(&page->broken) || atomic_load(&rp_core.ended) ||
        atomic_load(&rp_core.sealed))
        return NULL;
    return s && (uint32_t)(s->instance >> 32) == atomic_load(&page->image) && !s->left
               ? s
               : open_stream();
}

struct rp_core_stream *rp_core_open_late(void)
{
    if (!enter())
        return NULL;
    struct rp_core_stream *s = open_late_entered();
    atomic_fetch_sub(&rp_core.page->entering, 1);
    return s;
}

/* -------------------------------------------------------------------------- fork and end */

void rp_core_child(void)
{
    if (!rp_core.page)
        return;
    memset((void *)rp_core.page, 0,
           sizeof *rp_core.page);     /* does what MADV_WIPEONFORK does, if that is supported */
    if (atomic_load(&rp_core.sealed)) /* the child is in the sandbox, too */
        return;
    forget_parent();
    rp_core.forked_pid = (uint32_t)getpid();
    rp_core.bare_clone = false;
    if (has_main_key)
        pthread_setspecific(main_key, &rp_core);
}

bool rp_core_source(const char *name, void (*on_tick)(void), void (*on_exit)(void))
{
    uint32_t i = atomic_load(&rp_core.nsources);

    if (i >= RP_CORE_SOURCES)
        return false;
    rp_core.sources[i].name = name;
    rp_core.sources[i].on_tick = on_tick;
    rp_core.sources[i].on_exit = on_exit;
    atomic_store(&rp_core.nsources, i + 1);
    return true;
}

void rp_capture_seal(bool strict)
{
    atomic_store(&rp_core.sealed, 1);
    rp_core_blind = strict;
    if (strict && rp_core_self)
        rp_core_self->time = RP_CORE_NEVER; /* its events take the slow path */
}

void rp_capture_seal_all(void)
{
    if (rp_core.page)
        rp_core_helper_leave();
    rp_capture_seal(false);
}

void rp_capture_unseal(void)
{
    struct rp_core_page *page = rp_core.page;

    atomic_store(&rp_core.sealed, 0);
    if (!page || !atomic_load(&page->opened))
        return;
    atomic_store(&page->main_ended, 0);
    atomic_store(&page->done, 0);
    atomic_store(&page->helper, 0);
    rp_core_helper_start();
}

/* Tells that the process has ended regularly: a process that began and has no such fact was killed,
   unless the recording ends in a pause. Not in the child of a vfork, which shares the memory. */
void rp_capture_note_end(void)
{

    if (!rp_core.page || !atomic_load(&rp_core.page->opened) || atomic_load(&rp_core.sealed) ||
        atomic_load(&rp_core.ended) || !atomic_load(&rp_core.page->on) ||
        rp_core.pid != (uint32_t)getpid() || atomic_exchange(&rp_core.end_noted, 1))
        return;
    put_life("ended", rp_core.options.subject || atomic_load(&rp_core.session) == RP_CORE_LEAVING
                          ? "observed no more"
                          : "exit");
}

void rp_capture_close(void)
{
    uint32_t none = 0, attached = RP_CORE_ATTACHED;

    if (!rp_core.page || !atomic_load(&rp_core.page->image) || atomic_load(&rp_core.sealed))
        return;
    if (!atomic_compare_exchange_strong(&rp_core.session, &attached, RP_CORE_WHOLE_LIFE) &&
        attached != RP_CORE_WHOLE_LIFE) { /* the helper ends it, or has done so */
        for (int ms = 0; ms < LEAVE_WAIT_MS && rp_core.session != RP_CORE_LEFT; ms++)
            usleep(1000);
        return;
    }
    rp_core_helper_stop_ticks();
    rp_core_steps_end();
    rp_core_signals_end();
    rp_core_processors_tick(true);
    rp_core_keep_tick();
    rp_capture_note_end();
    for (uint32_t i = 0; i < atomic_load(&rp_core.nsources); i++) {
        if (rp_core.sources[i].on_exit)
            rp_core.sources[i].on_exit();
    }
    if (atomic_load(&rp_core.page->on) && atomic_load(&rp_core.page->opened))
        rp_core_put_clock();
    rp_core_tell_pause();
    if (!atomic_compare_exchange_strong(&rp_core.ended, &none, 1))
        return;
    rp_core_update();
    rp_core_helper_stop();
    rp_core_slots_drop();
    for (struct rp_core_stream *s = atomic_load(&rp_core.streams); s; s = s->next) {
        /* a running thread may be storing an event, so its chunk is not touched */
        if (rp_core_self && s->tid == rp_core_self->tid &&
            atomic_load(&s->state) == RP_CORE_STREAM_USED)
            rp_core_stream_end(s);
        else if (!rp_core_stream_close(s))
            rp_core_stream_drop_spare(s);
    }
    uint64_t lost = atomic_load(&rp_core.lost);
    if (lost)
        rp_core_warn(0, "%llu events could not be recorded", (unsigned long long)lost);
}

/* -------------------------------------------------------------------------- beginning */

void rp_core_warn(unsigned once, const char *fmt, ...)
{
    char line[1024] = "reprise record: ", path[sizeof rp_core.root + 16];
    size_t n = strlen(line);
    int to = STDERR_FILENO;
    va_list list;

    if (once && (atomic_fetch_or(&rp_core.warned, once) & once))
        return;
    va_start(list, fmt);
    int more = vsnprintf(line + n, sizeof line - n - 1, fmt, list);
    va_end(list);
    n += more < 0 ? 0 : (size_t)more < sizeof line - n - 1 ? (size_t)more : sizeof line - n - 2;
    line[n++] = '\n';
    if (atomic_load(&rp_core.session)) { /* it is not the program's affair */
        snprintf(path, sizeof path, "%s/" RP_CTF_WARNINGS_NAME, rp_core.root);
        to = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, rp_core.file_mode);
    }
    if (write(to, line, n) < 0)
        return; /* nothing else to do */
    if (to > STDERR_FILENO)
        close(to);
}

/* Also for a later recording of the same process. */
bool rp_core_process_init(const char *root, const char *options)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    struct rp_core_page *before = rp_core.page;

    if (!root || !*root || strlen(root) >= sizeof rp_core.root)
        return false;
    memcpy(rp_core.root, root, strlen(root) + 1);
    rp_core.loaded_pid = (uint32_t)getpid();
    void *page = before
                     ? before
                     : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    if (!before)
        madvise(page, size, MADV_WIPEONFORK);

    /* Options come from the environment; each has a default. */
    struct rp_core_options *o = &rp_core.options;
    size_t n = options ? strnlen(options, sizeof rp_core.texts - 2) : 0;
    memset(rp_core.texts, 0, sizeof rp_core.texts);
    for (size_t i = 0; i < n; i++)
        rp_core.texts[i] = options[i] == ';' ? '\0' : options[i];
    o->subject = (uint32_t)option_number("pid");
    o->t0_ns = option_number("t0");
    o->start_ns = option_number("start");
    o->duration_ns = option_number("duration");
    o->first_step = option_number("first_step");
    o->steps = option_number("steps");
    o->limit_bytes = (uint64_t)option_number("limit");
    const char *full = rp_core_option("full");
    o->full = full && !strcmp(full, "ring") ? RP_CORE_RING : RP_CORE_STOP;
    o->step_name = rp_core_option("step_name");
    if (rp_core.options.subject)
        take_launcher_of(rp_core.options.subject);
    read_rank();
    read_machine();
    rp_core_steps_init();
    rp_core_access_init();
    rp_core_ledger_open(false);
    if (rp_core.ledger)
        atomic_fetch_add((_Atomic uint64_t *)&rp_core.ledger->loaded, 1);
    rp_core_clock_init();
    rp_core_signals_init();
    rp_core_processors_init();
    rp_core_keep_init();
    rp_core.frequency = 1000000000; /* for retries only; the exact one is in the metadata */
    if (before)
        return true;
    has_thread_key = !pthread_key_create(&thread_key, on_thread_end);
    has_main_key = !pthread_key_create(&main_key, on_main_end);
    if (has_main_key && getpid() == syscall(SYS_gettid))
        pthread_setspecific(main_key, &rp_core);
    pthread_atfork(NULL, NULL, rp_core_child);
    rp_core.page = page;
    return true;
}

static void core_init(void)
{
    rp_core_process_init(getenv("REPRISE_RECORD"), getenv("REPRISE_RECORD_OPTIONS"));
}

const struct rp_capture *rp_capture_own(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, core_init);
    return rp_core.page ? &rp_core_table : NULL;
}

const struct rp_capture *rp_capture_get(void)
{
    const struct rp_capture *(*shared)(void);

    *(void **)&shared = dlsym(RTLD_DEFAULT, "reprise_capture_v1");
    return shared ? shared() : rp_capture_own();
}
