/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises steps while the program runs, and decides what is recorded in each.
 *
 * Sources tell where a step ends: a range named a step, an optimizer, the execution of a compiled
 * program, in this order of trust. Once a better sign has been seen the others do not count. Of
 * several names of a kind (the two optimizers of a GAN) the first one leads, so that all of them
 * together are one step; another one leads when it has been seen several times without it (the
 * program has begun something else).
 *
 * Detail (operators, kernels, calls) is recorded in some steps only (record --detail), or is left
 * out in a few (unless record --every-step), to see how long a step takes without it. Ranges, marks
 * and collectives are recorded in all steps. A switch costs the step after it: that one is in
 * neither count, and not among those with detail. Steps without it lie in spans named "without
 * detail".
 *
 * The steps to compare are neighbours, because steps become longer and shorter for other reasons.
 *
 *     step         0 ... | w   | w+1 ... w+N | ...      | w+M |
 *     detail       on    | on, not counted   | off      | on, again
 */
#include "capture/core/compare.h"
#include "capture/core/state.h"

#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#define NAMES 32
#define LEADS 8 /* after so many ends of another name without the leading one, that name leads */
#define WARM  2 /* steps before the first ones with detail */

/* Without --every-step, these steps have no detail, for comparison; the first of each is not
   counted. */
#define LEFT_OUT_FIRST  10
#define LEFT_OUT_EVERY  8
#define LEFT_OUT_LENGTH 3
#define LEFT_OUT_TIMES  3
#define LEFT_OUT_END    (LEFT_OUT_FIRST + LEFT_OUT_EVERY * LEFT_OUT_TIMES)

static struct {
    _Atomic uint32_t busy; /* a thread is in rp_core_step_end */
    enum rp_capture_sign sign;
    uint64_t leader; /* hash of the name that ends steps; 0: none yet */
    struct {
        uint64_t hash, count;
    } others[NAMES];   /* since it ended */
    uint64_t at;       /* steps that have ended since it leads */
    uint64_t seen;     /* steps that have ended */
    uint64_t detailed; /* of these, those with all detail */
    uint64_t began;    /* in ticks; 0: the first has not begun */
    uint64_t ended;    /* in ticks: the last one that the leader ended; 0: none */
    uint32_t since;    /* steps since the last switch */
    uint32_t with, of; /* --detail N:M; 0 if not given */
    bool measures;
    bool fixed; /* a source cannot be switched, so there is nothing to compare */
    struct kind {
        struct rp_core_times ticks, cpu_ns;
    } on, off;
    uint64_t cpu_ns, switches; /* of the process at the begin of the step */
    uint32_t compared,
        interrupted;          /* steps compared, and steps in which another program ran instead */
    _Atomic uint32_t without; /* detail is off */
    uint64_t gaps;
} steps;

static void (*listeners[RP_CORE_SOURCES])(bool on);
static _Atomic uint32_t nlisteners;
static void (*_Atomic on_boundary)(bool without);

/* -------------------------------------------------------------------------- options */

void rp_core_steps_init(void)
{
    const char *detail = rp_core_option("detail");
    unsigned with = 0, of = 0;

    steps.of = 0;
    if (detail && sscanf(detail, "%u:%u", &with, &of) == 2 && with && of > with + 1) {
        steps.with = with;
        steps.of = of;
    }
    steps.measures = !steps.of && !rp_core_option("every_step") && !rp_core.options.steps;
}

void rp_core_steps_forget(void)
{
    bool measures = steps.measures, fixed = steps.fixed;
    uint32_t with = steps.with, of = steps.of;

    memset(&steps, 0, sizeof steps);
    steps.measures = measures;
    steps.fixed = fixed;
    steps.with = with;
    steps.of = of;
}

void rp_core_steps_leave(void)
{
    steps.of = 0;
    steps.measures = false;
    while (atomic_load(&steps.busy))
        sched_yield();
    atomic_store(&nlisteners, 0);
    atomic_store(&on_boundary, NULL);
    steps.fixed = false;
}

bool rp_core_counts_steps(void)
{
    return rp_core.options.steps || steps.of || steps.measures || rp_core_signals();
}

/* Whether a step that ends may still switch detail. */
static bool is_open(void)
{
    return atomic_load_explicit(&nlisteners, memory_order_relaxed) &&
           (steps.of || (steps.measures && steps.at < LEFT_OUT_END));
}

bool rp_core_steps_matter(void)
{
    return rp_core.options.steps || is_open() || rp_core_signals();
}

enum rp_capture_sign rp_core_step_sign(void)
{
    return steps.sign;
}

bool rp_core_detail(void)
{
    return !atomic_load_explicit(&steps.without, memory_order_relaxed);
}

void rp_core_on_detail(void (*call)(bool on))
{
    uint32_t i = atomic_load(&nlisteners);

    if (!call)
        steps.fixed = true;
    if (!call || i >= RP_CORE_SOURCES)
        return;
    listeners[i] = call;
    atomic_store(&nlisteners, i + 1);
}

void rp_core_on_boundary(void (*call)(bool without))
{
    if (steps.of)
        atomic_store(&on_boundary, call);
}

/* -------------------------------------------------------------------------- counting */

static uint64_t hash_of(const char *name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return h | 1;
}

/* Whether another name than the leader's has been seen so often that it leads from now on. */
static bool takes_over(uint64_t hash)
{
    for (uint32_t i = 0; i < NAMES; i++) {
        if (steps.others[i].hash && steps.others[i].hash != hash)
            continue;
        steps.others[i].hash = hash;
        return ++steps.others[i].count >= LEADS;
    }
    return false;
}

/* Whether a step has ended. */
static bool is_end(enum rp_capture_sign sign, const char *name)
{
    uint64_t hash = hash_of(name);

    if (steps.sign && sign > steps.sign)
        return false;
    if (sign != steps.sign && is_open())
        steps.seen = steps.detailed = 0;
    if (sign != steps.sign || (hash != steps.leader && takes_over(hash))) {
        steps.leader = hash;
        steps.ended = 0;
        if (is_open()) {
            steps.at = 0;
            steps.began = 0; /* the step that has ended is unknown */
            steps.on.ticks.n = steps.off.ticks.n = steps.on.cpu_ns.n = steps.off.cpu_ns.n = 0;
            steps.compared = steps.interrupted = 0;
        }
    }
    steps.sign = sign;
    if (hash != steps.leader)
        return false;
    memset(steps.others, 0, sizeof steps.others);
    return true;
}

/* Whether step number `step` is recorded in detail. */
static bool has_detail(uint64_t step)
{
    if (steps.of)
        return !step || (step >= WARM && (step - WARM) % steps.of <= steps.with);
    if (!steps.measures || steps.fixed || step < LEFT_OUT_FIRST || step >= LEFT_OUT_END)
        return true;
    uint64_t at = step - LEFT_OUT_FIRST;
    return at % LEFT_OUT_EVERY >= LEFT_OUT_LENGTH;
}

/* Whether the time of step number `step` is compared. */
static bool is_compared(uint64_t step)
{
    if (steps.of)
        return step > WARM;
    return step >= LEFT_OUT_FIRST / 2 && step < LEFT_OUT_END;
}

/* Processor time and involuntary switches of the process so far. */
static void read_usage(uint64_t *cpu_ns, uint64_t *switches)
{
    struct timespec t = {0};
    struct rusage used = {0};

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    getrusage(RUSAGE_SELF, &used);
    *cpu_ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
    *switches = (uint64_t)used.ru_nivcsw;
}

static void switch_detail(bool on)
{
    atomic_store(&steps.without, !on);
    for (uint32_t i = 0; i < atomic_load(&nlisteners); i++)
        listeners[i](on);
    if (on)
        rp_core_table.async_end("without detail", "reprise", steps.gaps);
    else
        rp_core_table.async_begin("without detail", "reprise", ++steps.gaps);
    steps.since = 0;
}

static void next_step(uint64_t now)
{
    bool on = rp_core_detail();

    /* Measures the step that has ended, if it was recorded in one way from begin to end. */
    struct kind *kind = on ? &steps.on : &steps.off;
    uint64_t cpu_ns, switches;
    if (steps.began && steps.since) {
        steps.detailed += on && steps.seen;
        if (is_compared(steps.at)) {
            read_usage(&cpu_ns, &switches);
            rp_core_times_add(&kind->ticks, now - steps.began);
            rp_core_times_add(&kind->cpu_ns, cpu_ns - steps.cpu_ns);
            steps.compared++;
            steps.interrupted += switches > steps.switches;
        }
    }
    steps.since++;
    steps.seen++;
    bool next = has_detail(++steps.at);
    if (on && !next)
        switch_detail(false);
    if (!on || !next) {
        void (*call)(bool) = atomic_load(&on_boundary);
        if (call)
            call(!on);
    }
    if (!on && next)
        switch_detail(true);
    if (is_compared(steps.at))
        read_usage(&steps.cpu_ns, &steps.switches);
    steps.began = rp_core_now();
}

void rp_core_step_end(enum rp_capture_sign sign, const char *name)
{
    uint32_t nobody = 0;

    if ((!is_open() && !rp_core_signals()) ||
        !atomic_compare_exchange_strong(&steps.busy, &nobody, 1))
        return;
    uint64_t now = rp_core_now();
    if (is_end(sign, name)) {
        if (steps.ended)
            rp_core_signal_step(now - steps.ended);
        steps.ended = now;
        if (is_open())
            next_step(now);
    }
    atomic_store(&steps.busy, 0);
}

void rp_core_need_detail(void)
{
    uint32_t nobody = 0;

    if (rp_core_detail() || !atomic_compare_exchange_strong(&steps.busy, &nobody, 1))
        return;
    switch_detail(true);
    atomic_store(&steps.busy, 0);
}

/* -------------------------------------------------------------------------- what it came to */

static uint64_t ns_of(uint64_t ticks)
{
    return (uint64_t)((__uint128_t)ticks * 1000000000 / rp_core_table.ticks(1000000000));
}

static void put_number(const char *key, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    rp_core_table.fact(key, text);
}

/* The same share of another time. */
static uint64_t share_of(uint64_t time, uint64_t part, uint64_t whole)
{
    return whole ? (uint64_t)((__uint128_t)time * part / whole) : time;
}

/* Compares steps with and without detail, in nanoseconds. If other programs used the processors in
   a usual step, what recording adds takes longer by the clock than it would alone; then the
   processor time of the process is a second witness, and the smaller difference counts. */
static bool compare(struct rp_core_compared *out)
{
    struct rp_core_compared clock = {0}, cpu = {0};
    bool by_clock = rp_core_compare(&steps.on.ticks, &steps.off.ticks, &clock);
    bool by_cpu = 2 * steps.interrupted > steps.compared &&
                  rp_core_compare(&steps.on.cpu_ns, &steps.off.cpu_ns, &cpu);

    if (by_cpu && (!by_clock || (double)cpu.usual * (double)clock.longer >
                                    (double)clock.usual * (double)cpu.longer)) {
        uint64_t ns = ns_of(rp_core_times_median(&steps.on.ticks));

        *out = (struct rp_core_compared){ns, share_of(ns, cpu.usual, cpu.longer),
                                         share_of(ns, cpu.usual_least, cpu.longer),
                                         share_of(ns, cpu.usual_most, cpu.longer)};
        return true;
    }
    *out = (struct rp_core_compared){ns_of(clock.longer), ns_of(clock.usual),
                                     ns_of(clock.usual_least), ns_of(clock.usual_most)};
    return by_clock;
}

void rp_core_steps_end(void)
{
    struct rp_core_compared times;

    if (!steps.seen || (!steps.of && !steps.measures) || !atomic_load(&rp_core.page->on))
        return;
    if (!rp_core_detail())
        rp_core_table.async_end("without detail", "reprise", steps.gaps);
    if (steps.gaps) {
        put_number("steps.seen", steps.seen);
        put_number("steps.detailed", steps.detailed);
    }
    if (steps.fixed || !compare(&times))
        return;
    put_number("steps.recorded_ns", times.longer);
    put_number("steps.unrecorded_ns", times.usual);
    struct rp_ctf_ledger *ledger = rp_core_ledger();
    if (ledger) {
        atomic_fetch_add((_Atomic uint64_t *)&ledger->recorded_ns, times.longer);
        atomic_fetch_add((_Atomic uint64_t *)&ledger->unrecorded_ns, times.usual);
        atomic_fetch_add((_Atomic uint64_t *)&ledger->unrecorded_least_ns, times.usual_least);
        atomic_fetch_add((_Atomic uint64_t *)&ledger->unrecorded_most_ns, times.usual_most);
    }
}
