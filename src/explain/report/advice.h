/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_REPORT_ADVICE_H
#define RP_EXPLAIN_REPORT_ADVICE_H
/*
 * What the report says about a finding: its stable name, what was found, and what to try. Findings
 * name a kind; what to try depends on the kind of program (facts/work/workload.h) and comes from a
 * table (advice_table.c), so that a line names an option or a call which that program has.
 */
#include "facts/work/workload.h"

/* Kinds of findings. Several kinds may have the same stable name: they differ in their cause, and
   so in what helps. X(NAME, "stable name", "what was found") */
#define RP_FOUND_MAP(X)                                                                            \
    X(LAUNCH_BOUND, "launch-bound",                                                                \
      "the host launches work more slowly than the device executes it")                            \
    X(HOST_WORK, "host-work", "the host runs something else while the device has nothing to do")   \
    X(HOST_INPUT, "host-work", "the host prepares input while the device has nothing to do")       \
    X(HOST_COMPILED, "host-work",                                                                  \
      "the wrapper of compiled code runs on the host while the device has nothing to do")          \
    X(HOST_OPERATOR, "host-work",                                                                  \
      "an operator runs on the host while the device has nothing to do")                           \
    X(HOST_EXECUTOR, "host-work",                                                                  \
      "the framework's executor is busy while the device has nothing to do")                       \
    X(START_UP, "start-up", "initialisation and first use, which later steps do not repeat")       \
    X(SYNC_POINTS, "sync-points", "the host waits for the device, which then has no work queued")  \
    X(DATA_LOADER, "data-loader", "the device waits for input data")                               \
    X(DATA_LOADER_HOST, "data-loader", "the operators wait for input data")                        \
    X(HOST_STALL, "host-stall", "host calls that usually take microseconds took far longer")       \
    X(HOST_SILENT, "host-unrecorded",                                                              \
      "the host launches nothing for a long time, and what it does was not recorded")              \
    X(FRAGMENTATION, "fragmentation", "device memory is allocated and freed during the step")      \
    X(UNCACHED, "fragmentation",                                                                   \
      "device memory is allocated and freed for every tensor: nothing caches it")                  \
    X(RESERVED, "fragmentation", "device memory is reserved but not used")                         \
    X(PROFILER, "profiler-overhead", "the profiler itself delays the device")                      \
    X(PROFILER_HOST, "profiler-overhead", "the profiler itself delays the host")                   \
    X(COPIES, "copies", "the device only copies, or waits for copies to begin")                    \
    X(COPIES_PAGEABLE, "copies", "the device only copies, from host memory that is not pinned")    \
    X(COPIES_PINNED, "copies", "the device only copies, or waits for copies to begin")             \
    X(COPIES_BACK, "copies", "the device only copies results to the host")                         \
    X(COPIES_INSIDE, "copies", "the device only copies inside its own memory")                     \
    X(COPIES_FILL, "copies", "the device only fills memory with a value")                          \
    X(DEPENDENCIES, "dependencies", "launched work waits for events or for other streams")         \
    X(DEVICE_WAIT, "device-wait",                                                                  \
      "launched work waits on the device, and the recording does not show for what")               \
    X(HOST_COLLECTIVES, "host-collectives",                                                        \
      "the devices wait for collectives that run on the hosts")                                    \
    X(UNEXPLAINED, "unexplained-idle",                                                             \
      "the device has nothing to do, and the launch of its next work was not recorded")            \
    X(EXPOSED_COMM, "exposed-comm", "communication runs while no compute does")                    \
    X(EXPOSED_PARTLY, "exposed-comm",                                                              \
      "communication runs while no compute does; it may be waiting for ranks that were not given") \
    X(STRAGGLER, "straggler",                                                                      \
      "some ranks arrive late at collectives, and the others wait for them")                       \
    X(STRAGGLER_COMPUTE, "straggler",                                                              \
      "some ranks compute longer and arrive late at collectives: the others wait for them")        \
    X(STRAGGLER_HOST, "straggler",                                                                 \
      "some ranks arrive late at collectives because of their hosts: the others wait for them")    \
    X(STRAGGLER_INPUT, "straggler",                                                                \
      "some ranks arrive late at collectives because of their input: the others wait for them")    \
    X(SLOW_LINK, "slow-link", "large collectives take several times what their links need")        \
    X(BUBBLES, "pipeline-bubbles", "the stages of the pipeline wait for each other")               \
    X(ATYPICAL_STEP, "atypical-step", "a step takes longer than the others")                       \
    X(TINY_KERNELS, "tiny-kernels", "kernels so short that the gaps between them matter")          \
    X(UNFUSED, "unfused-kernels",                                                                  \
      "element-wise kernels follow each other, and each passes over memory again")                 \
    X(UNFUSED_UPDATE, "unfused-kernels",                                                           \
      "the optimizer passes over the parameters in many kernels")                                  \
    X(LAUNCH_GAPS, "launch-latency",                                                               \
      "the device waits between kernels that were launched in time")                               \
    X(LOW_OCCUPANCY, "low-occupancy", "kernels that use only a part of the device")                \
    X(SLOW_OPERATOR, "slow-operator", "an operator runs far below what the device can do")         \
    X(SLOW_ALIGNMENT, "slow-operator",                                                             \
      "an operator runs far below what the device can do, because of a size")                      \
    X(SLOW_SMALL, "slow-operator",                                                                 \
      "an operator runs far below what the device can do: its matrices are small")                 \
    X(SLOW_PRECISION, "slow-operator", "matrix products in float32 do not use the matrix units")   \
    X(SLOW_PRODUCT, "slow-operator",                                                               \
      "matrix products run slower than smaller ones of the same recording")                        \
    X(SLOW_CONVOLUTION, "slow-operator", "convolutions run far below what the device can do")      \
    X(LAYOUT, "layout-transposes",                                                                 \
      "kernels change the layout of tensors before and after convolutions")                        \
    X(SLOW_CLOCK, "clock-trouble", "the device becomes slower while it works")                     \
    X(WRONG_CLOCK, "clock-trouble", "clocks contradict each other")                                \
    X(PYTHON, "python", "Python code runs between the operators")                                  \
    X(WAIT_IDLE, "host-wait", "the host waits in a call while the device has nothing to do")       \
    X(WAIT_THREAD, "host-wait", "the program waits for another of its threads")                    \
    X(WAIT_INPUT, "host-wait", "the program waits for input of another process, a socket or file") \
    X(WAIT_OUTPUT, "host-wait", "the program waits until output is written")                       \
    X(WAIT_CHILD, "host-wait", "the program waits for a child process to end")                     \
    X(WAIT_RANKS, "host-wait", "the program waits for messages of other ranks")                    \
    X(WAIT_SLEEP, "host-wait", "the program sleeps")                                               \
    X(EXPOSED_HOST, "exposed-comm", "the program communicates, and nothing else runs meanwhile")   \
    X(HOST_CODE, "host-code", "code other than operators runs inside longer spans")                \
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

/* The kind of finding about copies, by the name of the copy with most time (may be NULL). */
enum rp_found rp_found_copies(const char *name);

/* The kind of finding about late ranks, by the reason (struct rp_late); both may be NULL. */
enum rp_found rp_found_straggler(const char *cause, const char *evidence);

/* The kind of finding about host work, by what the host runs (may be NULL). */
enum rp_found rp_found_host_work(const char *text);

/* ------------------------------------------------------------------ what to try */

/* One thing to try. */
struct rp_advice {
    const char *text;    /* "{}" is the number of the what-if that brings most */
    const char *what_if; /* of 'reprise simulate': what it would bring; or NULL */
    bool look;           /* it says where to see more: it never brings nothing */
};

#define RP_ADVICE_MOST 3

/* At least one, in the order in which to try them; returns how many. Static texts. */
size_t rp_advice_find(enum rp_found found, const struct rp_workload *workload,
                      struct rp_advice out[RP_ADVICE_MOST]);

/* ------------------------------------------------------------------ the table */

/* What a line of advice is about: of each topic the row that matches in most keys is used. */
enum rp_advice_topic {
    RP_ADVISE_LOOK,      /* where to see more, or what to record */
    RP_ADVISE_GRAPHS,    /* launch many kernels at once */
    RP_ADVISE_COMPILE,   /* fuse kernels */
    RP_ADVISE_OPTIMIZER, /* the update of parameters */
    RP_ADVISE_CALL,      /* an option or call for just this */
    RP_ADVISE_MORE,      /* another one */
    RP_ADVISE_SIZE,      /* more work at once */
    RP_ADVISE_TOPICS
};

/* For keys that are true or false. */
enum { RP_KEY_ANY, RP_KEY_YES, RP_KEY_NO };

/* Keys are sets of bits 1 << value of the enums of struct rp_workload; 0: any. */
struct rp_advice_row {
    uint8_t found, topic;
    uint16_t frameworks;
    uint8_t vendors, modes, parallels, transports, serves;
    uint8_t compiled, graphs, plain_update, with_stack, ours, sampled, no_bf16; /* RP_KEY_* */
    uint8_t half_comm, in_graphs;                                               /* RP_KEY_* */
    uint8_t system;       /* RP_KEY_*; weighs more than the framework, whose profiler it was not */
    uint16_t collectives; /* what communicates most; weighs more than what the job is called */
    const char *text;     /* "": nothing about this topic */
    const char
        *what_if; /* or NULL; of several, as in "bucket=5MB|25MB", the one that brings most */
};

const struct rp_advice_row *rp_advice_rows(size_t *n);

#endif
