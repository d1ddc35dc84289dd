/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * For two recordings of one process by different tools, such as operators by one and device work by
 * the other, finds by how much the clock of the second must be corrected to be that of the first.
 * In this order, from
 *
 *   correlation   calls of one that launched work of the other, by their ids: no work starts before
 *                 its launch, and none ends after a call that waited for it. The offset is in the
 *                 middle between these bounds
 *   names         host spans that both recorded: the i-th of a name in one is the i-th in the other
 *   wall clock    the time of day, if both state it; nothing tells how well the two agree
 *
 * docs/cli/merge.md ("Two recorders of one rank") has the rules.
 */
#include "trace/trace.h"

#define RP_JOINED_KEY "repriseJoined" /* metadata of a trace of two recorders */

enum rp_recorders_by { RP_RECORDERS_NONE, RP_RECORDERS_IDS, RP_RECORDERS_NAMES, RP_RECORDERS_WALL };

struct rp_recorders {
    enum rp_recorders_by by;
    size_t matched;
    int64_t offset_ns; /* to be added to times of the second */
    /* RP_NO_TS: not known. */
    int64_t uncertainty_ns, low_ns, high_ns;
    bool contradiction;               /* low_ns is above high_ns */
    uint8_t *keep[2], *keep_flows[2]; /* by event; 0: the other recording has it, too */
    bool same_ids;                    /* ids of calls mean the same in both */
};

/* Both must be verified completely (RP_NEED_ALL). If they cannot be joined, because both have
   device work, or nothing connects their clocks, returns RP_UNSUPPORTED and says what would help.
   Must be released in every case. */
enum rp_code rp_recorders_align(const struct rp_trace *const traces[2], struct rp_recorders *out,
                                struct rp_err *err);
void rp_recorders_release(struct rp_recorders *r);

/* "correlation", "names" … */
const char *rp_recorders_word(enum rp_recorders_by by);
