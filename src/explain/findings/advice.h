/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What to try about a finding depends on the kind of program (facts/work/workload.h), so that a
 * line names an option or a call which that program has. Each finding has a table. A row is about
 * some of its kinds and one topic; of the rows of a topic that match a program, the one with most
 * keys is used, of several the first. A row without text says that the topic does not apply. Every
 * option or call that a row names must exist in that framework; a unit test walks all kinds of
 * programs and checks the words.
 */
#include "facts/work/workload.h"

struct rp_finding;

/* What a line of advice is about, in the order in which lines are shown. */
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
    uint8_t topic, kinds; /* kinds: OF(…) of the finding's; 0: any */
    uint16_t frameworks;
    uint8_t vendors, modes, parallels, transports, serves;
    uint8_t compiled, graphs, plain_update, with_stack, ours, sampled, no_bf16; /* RP_KEY_* */
    uint8_t half_comm, in_graphs;                                               /* RP_KEY_* */
    uint8_t system;       /* RP_KEY_*; weighs more than the framework, whose profiler it was not */
    uint16_t collectives; /* what communicates most; weighs more than what the job is called */
    const char *text;     /* "": nothing about this topic; "{}" is the number of the what-if that
                             brings most */
    const char *what_if;  /* of 'reprise simulate': what it would bring; of several, as in
                             "bucket=5MB|25MB", the one that brings most; or NULL */
};

#define OF(kind)     (1u << (kind))
#define FW(name)     (1u << RP_FRAMEWORK_##name)
#define BY(name)     (1u << RP_VENDOR_##name)
#define MODE(name)   (1u << RP_MODE_##name)
#define PAR(name)    (1u << RP_PARALLEL_##name)
#define VIA(name)    (1u << RP_TRANSPORT_##name)
#define SERVES(name) (1u << RP_SERVES_##name)
#define COLL(name)   (1u << RP_COLL_##name)

/* The kind with that key. */
unsigned rp_finding_kind(const struct rp_finding *finding, const char *key);

#define RP_ADVICE_MOST 3

/* At least one, in the order in which to try them; returns how many. */
size_t rp_advice_find(const struct rp_finding *finding, unsigned kind,
                      const struct rp_workload *workload,
                      const struct rp_advice_row *out[RP_ADVICE_MOST]);
