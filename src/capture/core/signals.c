/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts signals of a running job (record --light): how long its steps take, how much of that are
 * collectives, input data and device work, how long the thread of the steps waited for a processor,
 * and how much memory the process has. They are counted in a file of <reprise/metrics.h>, which
 * `metrics` reads while the process runs. The file has sums and distributions, so that it does not
 * grow with time.
 *
 * Overlapping times of the host count once (a moment in which two collectives are open is one
 * moment of collectives). Device work is added up, because it is delivered in no order. Sums of the
 * host are written with the step in which they ended, so that differences of two readings belong to
 * the same steps; device work, which the driver delivers later, ten times a second.
 *
 * Cost: a comparison for each span, some tens of nanoseconds for each collective and step.
 */
#include "capture/core/state.h"

#include <stdio.h>
#include <stdlib.h>

static const char *signals_variable(const char *name);
#define RP_METRICS_VARIABLE(name) signals_variable(name)
#include <reprise/metrics.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SECOND     1000000000
#define TICKS_SLOW (SECOND / RP_CORE_TICK_NS) /* the memory is read once a second */

static struct {
    _Atomic bool on;
    double ns_per_tick;
    struct total {
        _Atomic uint64_t end; /* end of what was counted last, in the units of its spans */
        _Atomic uint64_t ns;  /* that are not told yet */
    } totals[RP_CORE_TOTALS];
    _Atomic uint32_t tid; /* the thread of the steps; 0: there was no step yet */
    uint32_t read_tid;    /* whose delay_ns it is */
    uint64_t delay_ns, ticks;
} signals;

/* `record` gives a program that it starts these variables; one that runs has none of them. */
static const char *signals_variable(const char *name)
{
    static char folder[sizeof rp_core.root + 16];
    const char *given = getenv(name);

    if (!atomic_load(&rp_core.session) || (given && *given))
        return given;
    snprintf(folder, sizeof folder, "%s%s", rp_core.root,
             strcmp(name, "REPRISE_RECORD") != 0 ? "/metrics" : "");
    return folder;
}

void rp_core_signals_init(void)
{
    const char *option = rp_core_option("signals");

    signals.on = option && !strcmp(option, "on");
    if (signals.on)
        signals.ns_per_tick = (double)SECOND / (double)rp_core_table.ticks(SECOND);
}

void rp_core_signals_forget(void)
{
    for (int i = 0; i < RP_CORE_TOTALS; i++) {
        atomic_store(&signals.totals[i].end, 0);
        atomic_store(&signals.totals[i].ns, 0);
    }
    atomic_store(&signals.tid, 0);
}

bool rp_core_signals(void)
{
    return signals.on;
}

/* -------------------------------------------------------------------------- counting */

static void add(enum rp_core_total which, uint64_t begin, uint64_t end, bool in_ticks)
{
    uint64_t time = end > begin ? end - begin : 0;

    atomic_fetch_add(&signals.totals[which].ns,
                     in_ticks ? (uint64_t)((double)time * signals.ns_per_tick) : time);
}

void rp_core_signal_total(enum rp_core_total which, uint64_t begin, uint64_t end, bool in_ticks)
{
    struct total *total = &signals.totals[which];
    uint64_t before = atomic_load(&total->end), from;

    do {
        if (end <= before)
            return;
        from = begin > before ? begin : before;
    } while (!atomic_compare_exchange_weak(&total->end, &before, end));
    add(which, from, end, in_ticks);
}

/* Recognises kernels of collectives by the begin of their names: NCCL and RCCL. */
static bool is_collective(const char *name)
{
    return name && !strncmp(name, "nccl", 4);
}

void rp_core_signal_span(const struct rp_capture_span *p)
{
    bool in_ticks = p->timebase == RP_CTF_TIME_TICKS;

    if (p->device != RP_CTF_SPAN_DEVICE)
        add(is_collective(p->name) ? RP_CORE_DEVICE_COLLECTIVES : RP_CORE_DEVICE_WORK, p->begin,
            p->end, in_ticks);
    else if (p->kind == RP_CTF_KIND_COLLECTIVE)
        rp_core_signal_total(RP_CORE_COLLECTIVES, p->begin, p->end, in_ticks);
}

bool rp_core_signal_is_input(const char *name)
{
    static const char *const begins[] = {"enumerate(DataLoader)",
                                         "IteratorGetNext",
                                         "data_load",
                                         "dataload",
                                         "load_batch",
                                         "load_data",
                                         "next_batch",
                                         "get_batch"};

    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (!strncmp(name, begins[i], strlen(begins[i])))
            return true;
    return false;
}

/* -------------------------------------------------------------------------- telling */

static uint64_t take(enum rp_core_total which)
{
    return atomic_exchange(&signals.totals[which].ns, 0);
}

static bool may_tell(void)
{
    return signals.on && !atomic_load(&rp_core.sealed) && !rp_core_blind;
}

/* Reports what was counted on the host since the last time. */
static void tell_host(uint64_t *collectives, uint64_t *input)
{
    *collectives = take(RP_CORE_COLLECTIVES);
    *input = take(RP_CORE_INPUT);
    if (*collectives)
        RP_TIMED_SAMPLE("collectives", *collectives);
    if (*input)
        RP_TIMED_SAMPLE("input data", *input);
}

static void tell_device(void)
{
    uint64_t collectives = take(RP_CORE_DEVICE_COLLECTIVES), work = take(RP_CORE_DEVICE_WORK);

    if (collectives)
        RP_TIMED_SAMPLE("collectives", collectives);
    if (work)
        RP_TIMED_SAMPLE("device work", work);
}

void rp_core_signal_step(uint64_t ticks)
{
    uint64_t collectives, input, ns = (uint64_t)((double)ticks * signals.ns_per_tick);

    if (!may_tell())
        return;
    tell_host(&collectives, &input);
    RP_TIMED_SAMPLE("step", ns);
    rp_core_keep_step(ns, collectives, input);
    if (!atomic_load_explicit(&signals.tid, memory_order_relaxed))
        atomic_store(&signals.tid, (uint32_t)syscall(SYS_gettid));
}

/* Called ten times a second on the core's thread. A process without steps has no file. */
void rp_core_signals_tick(void)
{
    uint32_t tid = may_tell() ? atomic_load(&signals.tid) : 0;

    if (!tid)
        return;
    tell_device();

    /* Reports how long the thread of the steps was ready but had no processor. */
    unsigned long long ran, delay;
    if (rp_core_read_schedstat(tid, &ran, &delay)) {
        if (signals.read_tid == tid && delay > signals.delay_ns)
            RP_TIMED_SAMPLE("without a processor", delay - signals.delay_ns);
        signals.read_tid = tid;
        signals.delay_ns = delay;
    }
    if (signals.ticks++ % TICKS_SLOW == 0) {
        unsigned long long pages, resident;
        char text[96];
        rp_core_read_text("/proc/self/statm", text, sizeof text);
        if (sscanf(text, "%llu %llu", &pages, &resident) == 2)
            RP_BYTES("memory", resident * (unsigned long long)sysconf(_SC_PAGESIZE));
    }
}

void rp_core_signals_end(void)
{
    uint64_t collectives, input;

    bool told = may_tell() && atomic_load(&signals.tid);
    if (atomic_load(&rp_core.session))
        signals.on = false;
    if (!told)
        return;
    tell_host(&collectives, &input);
    tell_device();
}

/* The recorder leaves the process, which runs on: for readers of its file it has ended. Nobody
   counts any more: signals are off, and the step that was being counted is done. */
void rp_core_signals_leave(void)
{
    if (!rp_metrics_state1.base)
        return;
    rp_metrics_header()->starttime = 0;
    rp_metrics_after_fork1();
}

void rp_core_signal(enum rp_capture_signal which, uint64_t value)
{
    if (!may_tell() || !atomic_load(&signals.tid))
        return;
    switch (which) {
    case RP_CAPTURE_DEVICE_CLOCK:
        RP_VALUE("device clock (MHz)", value);
        break;
    case RP_CAPTURE_DEVICE_POWER:
        RP_VALUE("device power (W)", value);
        break;
    case RP_CAPTURE_DEVICE_MEMORY:
        RP_BYTES("device memory", value);
        break;
    case RP_CAPTURE_LIMITED_BY_POWER:
        RP_TIMED_SAMPLE("device slowed by its power limit", value);
        break;
    case RP_CAPTURE_LIMITED_BY_HEAT:
        RP_TIMED_SAMPLE("device slowed by heat", value);
        break;
    }
}
