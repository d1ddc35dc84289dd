/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Copies a trace without some of its events, or with other texts or times. Everything that is
 * computed when a trace is finished is computed again, from what is left; ids of processes,
 * threads, calls and arrows stay.
 */
#include "trace/build/build.h"

struct rp_copy {
    const uint8_t *events, *flows, *samples; /* as in struct rp_append */
    const char *cut;                         /* value of the metadata RP_CUT_KEY; NULL: unchanged */
    const int64_t *add_ns, *longer_ns;       /* as in struct rp_append */
    const char *set_back; /* value of the metadata RP_SET_BACK_KEY (unfold.h); NULL: unchanged */
    const char *warning;  /* one more; NULL: none */
    enum rp_code (*text)(void *user, struct rp_builder *b, enum rp_text_use use, rp_str key,
                         rp_str s, rp_str *out, struct rp_err *err);
    void *text_user;
    /* Whether the metadata with this key is dropped. NULL: none is. */
    bool (*drops)(void *user, const char *key);
};

/* The trace must be verified completely (RP_NEED_ALL). limits may be NULL for the defaults.
   O(events). */
enum rp_code rp_trace_copy(const struct rp_trace *t, const struct rp_copy *how,
                           const struct rp_limits *limits, struct rp_trace **out,
                           struct rp_err *err);

/*
 * The steps of a part of a trace. Where a step begins and how long it lasts depends on its
 * neighbours, and steps without marks are found by comparing many of them; so a part says in its
 * metadata what its steps are, and any format that keeps metadata keeps them. Times are counted
 * from the first event of the part.
 *
 *     "repriseCut":{"previous_end_ns":…,"steps":[{"name":"ProfilerStep#3","number":3,"source":0,
 *                   "begin_ns":…,"end_ns":…,"flags":0,"phase":0,"requests":-1,"tokens":-1},…]}
 *
 * The end of the last step is where the next one began. previous_end_ns is when the device work of
 * the step before the first one ended, if that was after the first one's mark.
 */
#define RP_CUT_KEY "repriseCut"

struct rp_cut_record {
    uint32_t first, n;   /* steps */
    int64_t begin_ns;    /* time of the first event of the part */
    int64_t previous_ns; /* RP_NO_TS: none */
    bool nameless;       /* steps are called "step 3" */
};

/* Writes the record as JSON into the arena. */
const char *rp_cut_describe(const struct rp_trace *t, const struct rp_cut_record *record,
                            struct rp_arena *arena, struct rp_err *err);

/* previous_end_ns in the record of a trace, on its clock; RP_NO_TS if there is none. */
int64_t rp_cut_previous_end(const struct rp_trace *t);
