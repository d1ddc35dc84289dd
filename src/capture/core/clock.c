/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of a recording is the processor's cycle counter: one instruction, no system call,
 * synchronous on all cores. It is used on x86_64 if the processor has an invariant TSC, and always
 * on aarch64; otherwise CLOCK_MONOTONIC is used, at 1 GHz. The frequency comes from the processor,
 * else from the kernel's calibration (a perf event's page), else from a measurement of two
 * milliseconds. Only other readers need it, because ours interpolates between the calibrations
 * (three clocks read together) that are recorded at the start, every second and at the end.
 */
#include "capture/core/state.h"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define SECOND INT64_C(1000000000)

static int64_t read_clock(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

uint64_t rp_core_clock_read(void)
{
    return (uint64_t)read_clock(CLOCK_MONOTONIC);
}

struct rp_ctf_clock rp_core_clock_triple(void)
{
    struct rp_ctf_clock best = {.width = UINT32_MAX};

    for (int i = 0; i < 16; i++) {
        uint64_t before = rp_core_now();
        int64_t mono = read_clock(CLOCK_MONOTONIC);
        uint64_t after = rp_core_now();

        if (after - before >= best.width)
            continue;
        best.ticks = before + (after - before) / 2;
        best.monotonic_ns = mono;
        best.realtime_ns = read_clock(CLOCK_REALTIME); /* this clock only dates the recording */
        best.width = (uint32_t)(after - before);
    }
    return best;
}

#if defined(__x86_64__)
static bool tsc_is_invariant(void)
{
    unsigned a, b, c, d;

    return (unsigned)__get_cpuid_max(0x80000000, NULL) >= 0x80000007 &&
           __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
}

static uint64_t frequency_of_processor(void)
{
    unsigned a, b, c, d;

    if ((unsigned)__get_cpuid_max(0, NULL) < 0x15 || !__get_cpuid_count(0x15, 0, &a, &b, &c, &d) ||
        !a || !b || !c)
        return 0;
    return (uint64_t)c * b / a;
}

/* From the kernel's factor that converts the counter to nanoseconds. */
static uint64_t frequency_of_kernel(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_SW_DUMMY,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t frequency = 0;

    if (fd < 0)
        return 0;
    struct perf_event_mmap_page *page = mmap(NULL, page_size, PROT_READ, MAP_SHARED, (int)fd, 0);
    close((int)fd);
    if (page == MAP_FAILED)
        return 0;
    if (page->cap_user_time && page->time_mult)
        frequency = (uint64_t)(((__uint128_t)SECOND << page->time_shift) / page->time_mult);
    munmap(page, page_size);
    return frequency;
}

#endif

void rp_core_clock_init(void)
{
#if defined(__x86_64__)
    rp_core.counter = tsc_is_invariant();
#elif defined(__aarch64__)
    rp_core.counter = true;
#endif
}

uint64_t rp_core_clock_frequency(void)
{
    uint64_t frequency = SECOND;

    if (!rp_core.counter)
        return frequency;
#if defined(__x86_64__)
    frequency = frequency_of_processor();
    if (!frequency)
        frequency = frequency_of_kernel();
    if (!frequency) {
        /* Measures it for two milliseconds. */
        struct rp_ctf_clock a = rp_core_clock_triple(), b;

        do {
            b = rp_core_clock_triple();
        } while (b.monotonic_ns - a.monotonic_ns < 2000000);
        frequency = (uint64_t)((__uint128_t)(b.ticks - a.ticks) * SECOND /
                               (uint64_t)(b.monotonic_ns - a.monotonic_ns));
    }
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(frequency));
#endif
    return frequency ? frequency : SECOND;
}
