/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What to try about a finding depends on the kind of program (facts/work/workload.h), so that
 * advice names options or calls that the program has. Each finding has a table. A row is about some
 * kinds of the finding and one topic. Among the rows of a topic that match a program, the one with
 * most keys is used, or the first of several. A row without text says that the topic does not
 * apply. Every option or call that a row names must exist in that framework; a unit test walks all
 * kinds of programs and checks the words.
 */
#include "facts/work/workload.h"

struct rp_finding;

/* What a line of advice is about, in the order in which lines are shown. */
enum rp_advice_topic {
    RP_ADVISE_LOOK,      /* where to look further, or what to record */
    RP_ADVISE_GRAPHS,    /* launch many kernels at once */
    RP_ADVISE_COMPILE,   /* fuse kernels */
    RP_ADVISE_OPTIMIZER, /* the update of parameters */
    RP_ADVISE_CALL,      /* an option or call for exactly this */
    RP_ADVISE_MORE,      /* another one */
    RP_ADVISE_SIZE,      /* more work at once */
    RP_ADVISE_TOPICS
};

/* Values of keys that are true or false. */
enum { RP_KEY_ANY, RP_KEY_YES, RP_KEY_NO };

/* Keys are sets of bits 1 << value of the enums of struct rp_workload; 0: any. */
struct rp_advice_row {
    uint8_t topic, kinds; /* kinds: OF(…) of the finding's kinds; 0: any */
    uint16_t frameworks;
    uint8_t vendors, modes, parallels, transports, serves;
    uint8_t compiled, graphs, plain_update, with_stack, ours, sampled, no_bf16; /* RP_KEY_* */
    uint8_t half_comm, in_graphs, ahead;                                        /* RP_KEY_* */
    uint8_t
        system; /* RP_KEY_*; weighs more than the framework, to which the profiler may not belong */
    uint16_t collectives; /* the collectives that communicate most; weighs more than the name of the
                             job */
    const char *text; /* "" means that the topic does not apply; "{}" is the number of the what-if
                         that brings most */
    const char *what_if; /* a what-if of 'reprise simulate' that predicts the gain, or NULL; with
                            several, as in "bucket=5MB|25MB", the one that brings most */
};

#define OF(kind)     (1u << (kind))
#define FW(name)     (1u << RP_FRAMEWORK_##name)
#define BY(name)     (1u << RP_VENDOR_##name)
#define MODE(name)   (1u << RP_MODE_##name)
#define PAR(name)    (1u << RP_PARALLEL_##name)
#define VIA(name)    (1u << RP_TRANSPORT_##name)
#define SERVES(name) (1u << RP_SERVES_##name)
#define COLL(name)   (1u << RP_COLL_##name)

/* The index of the kind with that key. */
unsigned rp_finding_kind(const struct rp_finding *finding, const char *key);

#define RP_ADVICE_MOST 3

/* Finds at least one, in the order in which to try them; returns their number. */
size_t rp_advice_find(const struct rp_finding *finding, unsigned kind,
                      const struct rp_workload *workload,
                      const struct rp_advice_row *out[RP_ADVICE_MOST]);
