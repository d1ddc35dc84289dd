/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_REPORT_ADVICE_H
#define RP_EXPLAIN_REPORT_ADVICE_H
/*
 * What the report says about a finding: its stable name, what was found, and what to try. Findings
 * name a kind; the texts are here and in advice_table.c.
 */
#include <stddef.h>

/* Kinds of findings. Several kinds may have the same stable name: they differ in their cause, and
   so in what helps. X(NAME, "stable name", "what was found") */
#define RP_FOUND_MAP(X)                                                                           \
    X(LAUNCH_BOUND, "launch-bound",                                                               \
      "the host launches work more slowly than the device executes it")                           \
    X(HOST_WORK, "host-work", "the host runs something else while the device has nothing to do")  \
    X(START_UP, "start-up", "initialisation and first use, which later steps do not repeat")      \
    X(SYNC_POINTS, "sync-points", "the host waits for the device, which then has no work queued") \
    X(DATA_LOADER, "data-loader", "the device waits for input data")                              \
    X(DATA_LOADER_HOST, "data-loader", "the operators wait for input data")                       \
    X(HOST_STALL, "host-stall", "host calls that usually take microseconds took far longer")      \
    X(HOST_SILENT, "host-unrecorded",                                                             \
      "the host launches nothing for a long time, and what it does was not recorded")             \
    X(FRAGMENTATION, "fragmentation", "device memory is allocated and freed during the step")     \
    X(RESERVED, "fragmentation", "device memory is reserved but not used")                        \
    X(PROFILER, "profiler-overhead", "the profiler itself delays the device")                     \
    X(PROFILER_HOST, "profiler-overhead", "the profiler itself delays the host")                  \
    X(COPIES, "copies", "the device only copies, or waits for copies to begin")                   \
    X(DEPENDENCIES, "dependencies", "launched work waits for events or for other streams")        \
    X(HOST_COLLECTIVES, "host-collectives",                                                       \
      "the devices wait for collectives that run on the hosts")                                   \
    X(DEVICE_WAIT, "device-wait",                                                                 \
      "launched work waits on the device, and the recording does not show for what")              \
    X(EXPOSED_COMM, "exposed-comm", "communication runs while no compute does")                   \
    X(STRAGGLER, "straggler",                                                                     \
      "some ranks arrive late at collectives, and the others wait for them")                      \
    X(ATYPICAL_STEP, "atypical-step", "a step takes longer than the others")                      \
    X(TINY_KERNELS, "tiny-kernels", "kernels so short that the gaps between them matter")         \
    X(LOW_OCCUPANCY, "low-occupancy", "kernels that use only a part of the device")               \
    X(SLOW_CLOCK, "clock-trouble", "the device becomes slower while it works")                    \
    X(WRONG_CLOCK, "clock-trouble", "clocks contradict each other")                               \
    X(PYTHON, "python", "Python code runs between the operators")                                 \
    X(HOST_CODE, "host-code", "code other than operators runs inside longer spans")               \
    X(NO_OPERATOR, "no-operator", "no operator runs, and nothing else was recorded")

enum rp_found {
#define RP_FOUND_ENUM(name, id, title) RP_FOUND_##name,
    RP_FOUND_MAP(RP_FOUND_ENUM)
#undef RP_FOUND_ENUM
        RP_FOUNDS
};

struct rp_found_text {
    const char *id, *title;
};
extern const struct rp_found_text rp_found_texts[RP_FOUNDS];

/* What to try; never NULL. */
const char *rp_advice_hint(enum rp_found found);

#endif
