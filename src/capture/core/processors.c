/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that were ready and had no processor. For each thread that has recorded events the kernel
 * counts how long it ran and how long it was ready and did not run (schedstat). Both are read ten
 * times a second; a time in which the thread was without a processor for a hundredth or more is an
 * event of that thread. At most once a second an event of the recorder's thread says why: the load,
 * how long any thread of the machine waited (PSI), and what the limit of a cgroup took.
 *
 * Cost: 3 us a thread and look (a file is opened and read), of at most MOST threads a look: half a
 * millisecond a second, on the recorder's thread. A quiet machine has no events. Kernels without
 * schedstat (gVisor) have none either.
 */
#include "capture/core/state.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MOST       16  /* threads at one look; more take turns, and their times are longer */
#define PART       100 /* a finding costs a hundredth of the time or more */
#define MACHINE_NS INT64_C(1000000000)

static struct {
    bool on, looked;
    uint32_t turn;
    bool waited; /* a thread did, since the machine was looked at */
    int64_t machine_ns;
    unsigned long long some_us, throttled_ns, periods; /* as last read */
    char cgroup[320];                                  /* the cpu.stat of one with a limit */
    bool is_old;                                       /* of the first version */
    double limit;                                      /* processors */
} look;

void rp_core_processors_init(void)
{
    const char *option = rp_core_option("host.processors");

    look.on = option && !strcmp(option, "on");
}

/* In the child of a fork, whose threads have other numbers. */
void rp_core_processors_forget(void)
{
    look.looked = look.waited = false;
}

/* The number behind a word, or 0. */
static unsigned long long number_of(const char *text, const char *word)
{
    const char *at = strstr(text, word);

    return at ? strtoull(at + strlen(word), NULL, 10) : 0;
}

static void put_counter(const char *name, uint32_t tid, int64_t begin_ns, int64_t end_ns,
                        const struct rp_capture_args *args)
{
    rp_core_table.span(&(struct rp_capture_span){.kind = RP_CTF_KIND_COUNTER,
                                                 .timebase = RP_CTF_TIME_MONOTONIC,
                                                 .begin = (uint64_t)begin_ns,
                                                 .end = (uint64_t)end_ns,
                                                 .name = name,
                                                 .category = "scheduler",
                                                 .device = RP_CTF_SPAN_DEVICE,
                                                 .track = tid,
                                                 .args = args->at,
                                                 .nargs = args->n});
}

/* -------------------------------------------------------------------------- threads */

bool rp_core_read_schedstat(uint32_t tid, unsigned long long *ran_ns, unsigned long long *ready_ns)
{
    char path[64], text[96];

    snprintf(path, sizeof path, "/proc/self/task/%u/schedstat", tid);
    rp_core_read_text(path, text, sizeof text);
    return sscanf(text, "%llu %llu", ran_ns, ready_ns) == 2;
}

static void look_at_thread(struct rp_core_stream *s, int64_t now_ns)
{
    unsigned long long ran, ready;
    struct rp_capture_args args = {0};

    if (!rp_core_read_schedstat(s->tid, &ran, &ready))
        return;
    if (s->seen_tid == s->tid && ready > s->seen_ready_ns &&
        (ready - s->seen_ready_ns) * PART >= (uint64_t)(now_ns - s->seen_ns)) {
        rp_capture_add_number(&args, "ready_ns", (int64_t)(ready - s->seen_ready_ns));
        rp_capture_add_number(&args, "ran_ns", (int64_t)(ran - s->seen_ran_ns));
        rp_capture_add_number(&args, "over_ns", now_ns - s->seen_ns);
        put_counter("waited for a processor", s->tid, s->seen_ns, now_ns, &args);
        look.waited = true;
    }
    s->seen_tid = s->tid;
    s->seen_ns = now_ns;
    s->seen_ready_ns = ready;
    s->seen_ran_ns = ran;
}

/* -------------------------------------------------------------------------- the machine */

/* Takes the folder of a cgroup if it has a limit; else the one around it, up to the root. */
static void find_limit(const char *mount, char *path, bool is_old)
{
    char file[sizeof look.cgroup + 32], text[96];
    long long quota, period;

    for (;;) {
        char *slash = strrchr(path, '/');

        snprintf(file, sizeof file, "%s%.200s/%s", mount, path,
                 is_old ? "cpu.cfs_quota_us" : "cpu.max");
        size_t n = rp_core_read_text(file, text, sizeof text - 24);
        snprintf(file, sizeof file, "%s%.200s/cpu.cfs_period_us", mount, path);
        if (is_old)
            rp_core_read_text(file, text + n, sizeof text - n);
        if (sscanf(text, "%lld %lld", &quota, &period) == 2 && quota > 0 && period > 0) {
            snprintf(look.cgroup, sizeof look.cgroup, "%s%.200s/cpu.stat", mount, path);
            look.limit = (double)quota / (double)period;
            look.is_old = is_old;
        }
        if (look.limit > 0 || !slash)
            return;
        *slash = '\0';
    }
}

static void look_at_machine(int64_t now_ns)
{
    struct rp_capture_args args = {0};
    unsigned long long some_us, throttled_ns = 0, periods = 0;
    char text[1024];
    cpu_set_t set;

    rp_core_read_text("/proc/pressure/cpu", text, sizeof text);
    some_us = number_of(text, "total=");
    if (look.limit > 0) {
        rp_core_read_text(look.cgroup, text, sizeof text);
        periods = number_of(text, "nr_throttled ");
        throttled_ns = look.is_old ? number_of(text, "throttled_time ")
                                   : number_of(text, "throttled_usec ") * 1000;
    }
    if (look.machine_ns && (look.waited || throttled_ns > look.throttled_ns)) {
        rp_core_read_text("/proc/loadavg", text, sizeof text);
        rp_capture_add_number(&args, "load_percent", (int64_t)(strtod(text, NULL) * 100));
        if (!sched_getaffinity(getpid(), sizeof set, &set))
            rp_capture_add_number(&args, "processors", CPU_COUNT(&set));
        rp_capture_add_number(&args, "some_waited_ns", (int64_t)(some_us - look.some_us) * 1000);
        if (look.limit > 0) {
            rp_capture_add_number(&args, "limit_percent", (int64_t)(look.limit * 100));
            rp_capture_add_number(&args, "throttled_ns",
                                  (int64_t)(throttled_ns - look.throttled_ns));
            rp_capture_add_number(&args, "periods", (int64_t)(periods - look.periods));
        }
        rp_capture_add_number(&args, "over_ns", now_ns - look.machine_ns);
        put_counter("processors", 0, look.machine_ns, now_ns, &args);
    }
    look.machine_ns = now_ns;
    look.some_us = some_us;
    look.throttled_ns = throttled_ns;
    look.periods = periods;
    look.waited = false;
}

/* -------------------------------------------------------------------------- ten times a second */

void rp_core_processors_tick(bool last)
{
    uint32_t i = 0, n = 0;
    struct timespec t;

    if (!look.on || atomic_load(&rp_core.sealed) || !atomic_load(&rp_core.page->on) ||
        !atomic_load(&rp_core.page->opened))
        return;
    if (!look.looked) {
        look.on = !access("/proc/self/schedstat", R_OK);
        look.machine_ns = 0;

        /* "4:cpu,cpuacct:/docker/1234" is of the first version, "0::/user.slice" of the second;
           both may be there. In a namespace of its own a container is the root. */
        char text[2048], *rest = text, *line;
        look.limit = 0;
        rp_core_read_text("/proc/self/cgroup", text, sizeof text);
        while (look.limit <= 0 && (line = strsep(&rest, "\n"))) {
            char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
            if (!path)
                continue;
            *path++ = '\0';
            if (!strcmp(path, "/"))
                *path = '\0';
            if (!strcmp(names, ":"))
                find_limit("/sys/fs/cgroup", path, false);
            else if (!strncmp(names, ":cpu", 4) && (!names[4] || names[4] == ','))
                find_limit("/sys/fs/cgroup/cpu", path, true);
        }
        look.looked = true;
    }
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t now_ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    for (struct rp_core_stream *s = atomic_load(&rp_core.streams); s; s = s->next)
        n += atomic_load(&s->state) == RP_CORE_STREAM_USED && !s->is_inner;
    for (struct rp_core_stream *s = atomic_load(&rp_core.streams); s && n; s = s->next)
        if (atomic_load(&s->state) == RP_CORE_STREAM_USED && !s->is_inner &&
            !(rp_core_in_helper && s == rp_core_self) && (i++ + n - look.turn % n) % n < MOST)
            look_at_thread(s, now_ns);
    look.turn += MOST;
    if (last || now_ns - look.machine_ns >= MACHINE_NS)
        look_at_machine(now_ns);
}
